//! What a scenario asks to be followed closely: ports by pattern, and flows by group.

use crate::document::{Item, Table, quoted, suggest};
use crate::scenario::Problems;
use fabric::routing::PortMap;
use fabric::topology::{Graph, Kind};
use files::problem::{Cause, Problem};

/// The ports and groups of flows whose time series are kept, and the ports that are captured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watch {
    /// Port numbers, in ascending order.
    pub ports: Vec<u32>,
    /// Numbers of groups.
    pub groups: Vec<u16>,
    /// Ports whose packets are captured, in ascending order.
    pub capture: Vec<u32>,
}

/// Reads `ports`, `flows` and `capture` of `[measure]`. The groups of flows may not be known.
pub(super) fn read(table: &mut Table<'_>, graph: &Graph, groups: Option<&[String]>) -> Result<Watch, Problem> {
    let mut wrong = Problems::default();
    let (seen, capture) = (wrong.keep(ports(table, "ports", graph)), wrong.keep(ports(table, "capture", graph)));
    let mut watch = Watch { ports: seen.unwrap_or_default(), groups: Vec::new(), capture: capture.unwrap_or_default() };
    if let (Some(item), Some(groups)) = (table.item("flows"), groups) {
        for item in wrong.keep(one_or_many(&item)).unwrap_or_default() {
            let Some(name) = wrong.keep(item.read::<String>()) else { continue };
            let Some(group) = groups.iter().position(|group| *group == name) else {
                let known: Vec<&str> = groups.iter().map(String::as_str).collect();
                let help = match suggest(&name, &known) {
                    Some(meant) => format!("did you mean \"{meant}\"? The groups are {}", known.join(", ")),
                    None => format!("the groups are {}", known.join(", ")),
                };
                let problem = item.problem(format!("there is no group of flows {}", quoted(&name)));
                wrong.keep::<()>(Err(problem.help(help)));
                continue;
            };
            watch.groups.push(group as u16);
        }
        watch.groups.sort_unstable();
        watch.groups.dedup();
    }
    wrong.or(watch)
}

/// The ports that a key names, in ascending order.
fn ports(table: &mut Table<'_>, key: &str, graph: &Graph) -> Result<Vec<u32>, Problem> {
    let (mut ports, mut wrong) = (Vec::new(), Problems::default());
    let Some(item) = table.item(key) else { return Ok(ports) };
    let map = PortMap::new(graph);
    for item in one_or_many(&item)? {
        let Some(pattern) = wrong.keep(item.read::<String>()) else { continue };
        let before = ports.len();
        ports.extend((0..map.count() as u32).filter(|&port| matches(graph, &map, port, &pattern)));
        if ports.len() == before {
            let help = "write \"leaf0->h3\" (from a node to its neighbour, * for any text), \"hosts\" (from switches to \
                        hosts), \"switches\" (between switches) or \"nics\" (from hosts)";
            let problem = item.problem(format!("no port is {}", quoted(&pattern))).cause(Cause::Fabric);
            wrong.keep::<()>(Err(problem.help(help)));
        }
    }
    ports.sort_unstable();
    ports.dedup();
    wrong.or(ports)
}

/// A value by itself, or all of an array.
fn one_or_many<'a>(item: &Item<'a>) -> Result<Vec<Item<'a>>, Problem> {
    if item.is_array() { item.items() } else { Ok(vec![item.clone()]) }
}

fn matches(graph: &Graph, map: &PortMap, port: u32, pattern: &str) -> bool {
    let (from, to) = (map.node[port as usize], map.node[map.peer[port as usize] as usize]);
    let (from, to) = (&graph.nodes[from as usize], &graph.nodes[to as usize]);
    match pattern {
        "hosts" => from.kind == Kind::Switch && to.kind == Kind::Host,
        "switches" => from.kind == Kind::Switch && to.kind == Kind::Switch,
        "nics" => from.kind == Kind::Host,
        _ => pattern.split_once("->").is_some_and(|(a, b)| like(&from.name, a.trim()) && like(&to.name, b.trim())),
    }
}

/// Whether `name` is what `pattern` says, in which `*` stands for any text.
pub fn like(name: &str, pattern: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return name == pattern };
    let Some(mut name) = name.strip_prefix(head) else { return false };
    // The earliest place of each piece leaves the most for the next, so that no other place need be tried.
    let (middle, tail) = rest.rsplit_once('*').unwrap_or(("", rest));
    for piece in middle.split('*') {
        let Some((_, after)) = name.split_once(piece) else { return false };
        name = after;
    }
    name.ends_with(tail)
}

#[cfg(test)]
mod tests {
    use super::like;
    use std::time::{Duration, Instant};

    #[test]
    fn a_star_stands_for_any_text() {
        for (name, pattern) in [("leaf0", "leaf0"), ("leaf0", "leaf*"), ("leaf0", "*0"), ("leaf0", "l*f*"), ("", "*")] {
            assert!(like(name, pattern), "{name} {pattern}");
        }
        for (name, pattern) in [("leaf0", "leaf"), ("leaf0", "spine*"), ("leaf0", "*1"), ("leaf0", "")] {
            assert!(!like(name, pattern), "{name} {pattern}");
        }
        for (name, pattern) in [("abab", "*ab"), ("aXbXc", "a*X*c"), ("aba", "a*b*a"), ("é0", "*0"), ("ab", "**a**b**")]
        {
            assert!(like(name, pattern), "{name} {pattern}");
        }
        // What the head has taken is not there for the tail.
        for (name, pattern) in [("a", "a*a"), ("aba", "ab*ba"), ("ab", "a*b*b"), ("abc", "*b*b*")] {
            assert!(!like(name, pattern), "{name} {pattern}");
        }
    }

    #[test]
    fn many_stars_take_no_longer_than_few() {
        let (name, begin) = ("a".repeat(5_000), Instant::now());
        assert!(!like(&name, &("*a".repeat(40) + "*b")) && like(&name, &("*a".repeat(40) + "*")));
        assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    }
}
