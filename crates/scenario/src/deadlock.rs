//! Can this scenario deadlock? The analysis of [`fabric::deadlock`] for a scenario's fabric, routes, flow control and flows.

use crate::resolve::Resolved;
use fabric::deadlock::{Analysis, Finding, State, Step, Traffic, Waits};
use fabric::id::NodeId;
use fabric::routing::PortMap;
use fabric::setup::AckLane;
use fabric::topology::{Graph, Link};
use files::problem::Problem;
use serde::Serialize;
use std::fmt::Write;

/// The answer for a scenario.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// The scenario's title.
    pub scenario: String,
    /// Flow control by name.
    pub flow_control: String,
    /// Why nothing ever waits, for a flow control of which that is true. There are no cases then.
    pub never: Option<String>,
    /// What was looked at, case by case.
    pub cases: Vec<Case>,
    /// What packets need in a fabric of this shape so that no cycle can close; left out where shortest paths are enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needs: Option<&'static str>,
}

/// The links in one state, or in any of several, and whose packets.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Case {
    /// Whose packets: `any` or `flows`.
    pub traffic: &'static str,
    /// The state of the links.
    pub links: String,
    /// No cycle can close.
    pub free: bool,
    /// Channels (one direction of a link, and a lane on it) that wait or are waited for.
    pub channels: usize,
    /// Pairs of channels of which one waits for the other.
    pub waits: usize,
    /// Every path goes up the tiers of the fabric and then down.
    pub up_down: bool,
    /// Nodes of a path that comes down to the middle one and goes up again.
    pub valley: Option<[String; 3]>,
    /// A shortest cycle, link by link; empty if none can close.
    pub cycle: Vec<Waiting>,
}

/// One link of a cycle, which waits for the next one in it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Waiting {
    /// The node that waits.
    pub from: String,
    /// The node that makes it wait.
    pub to: String,
    /// What of the link waits, where it is not the whole.
    pub lane: Option<String>,
    /// A host whose packets make it wait, …
    pub src: String,
    /// … and the host they are for.
    pub dst: String,
}

/// Whose packets are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Any host may send to any other.
    Any,
    /// The scenario's own flows.
    Flows,
}

/// The states of the links that a run goes through, with their names. A state that comes again is listed once.
fn states(graph: &Graph, map: &PortMap, stop: engine::Time) -> Vec<(String, State)> {
    let outages = graph.links.iter().flat_map(Link::failures);
    let mut times: Vec<_> = outages.flat_map(|(down, up)| [Some(down), up]).flatten().filter(|&t| t < stop).collect();
    times.push(engine::Time::ZERO);
    times.sort_unstable();
    let mut found: Vec<(String, State)> = Vec::new();
    for time in times {
        let up: Vec<bool> = graph.links.iter().map(|link| !link.failed_at(time)).collect();
        if found.iter().any(|(_, state)| state.up == up) {
            continue;
        }
        let name = |node: NodeId| graph[node].name.as_str();
        let down = graph.links.iter().zip(&up).filter(|(_, up)| !**up);
        let down: Vec<String> = down.map(|(link, _)| format!("{}–{}", name(link.a), name(link.b))).collect();
        let title = match down.as_slice() {
            [] => "all links up".into(),
            few if few.len() <= 3 => format!("{} down", few.join(", ")),
            [first, ..] => format!("{first} and {} more links down", down.len() - 1),
        };
        found.push((title, State::new(graph, map, up)));
    }
    found
}

/// Looks at a scenario, for any traffic, for its own flows, or for both.
pub fn analyse(resolved: &Resolved, scopes: &[Scope]) -> Result<Answer, Problem> {
    let setup = &resolved.setup;
    let graph = &setup.graph;
    let map = PortMap::new(graph);
    let waits = resolved.choices.flow_control.waits(setup);
    let mut answer = Answer {
        scenario: resolved.name.clone(),
        flow_control: resolved.choices.flow_control.name().into(),
        never: None,
        cases: Vec::new(),
        needs: fabric::topology::shape(&resolved.topology.kind).and_then(|shape| shape.against_deadlock()),
    };
    if let Waits::Never(why) = waits {
        answer.never = Some(why.into());
        return Ok(answer);
    }
    let states = states(graph, &map, setup.stop);
    let analysis = Analysis::new(graph, &map, setup.rule, &waits).salted(setup.salt);
    let acks = matches!(setup.nic.ack_lane, AckLane::Data(_));
    let mut sets: Vec<(String, Vec<&State>)> = states.iter().map(|(name, state)| (name.clone(), vec![state])).collect();
    if states.len() > 1 {
        sets.push(("while routes change".into(), states.iter().map(|(_, state)| state).collect()));
    }
    let too_many = |_| {
        Problem::new("topology", "there are too many paths through this fabric to follow each of them")
            .help("make the fabric smaller, or look at the flows alone with --flows")
    };
    // Classes do not wait for one another, so that each is looked at by itself; for any traffic, all are alike.
    let mut by_class: Vec<Vec<_>> = vec![Vec::new(); setup.classes as usize];
    setup.flows.iter().for_each(|flow| by_class[flow.class.index()].push(*flow));
    for &scope in scopes {
        for (links, set) in &sets {
            let (finding, class) = match scope {
                Scope::Any => (analysis.run(set, Traffic::Any).map_err(too_many)?, None),
                Scope::Flows => {
                    let mut all = Finding { up_down: true, ..Finding::default() };
                    let mut class = None;
                    for (number, flows) in by_class.iter().enumerate().filter(|(_, flows)| !flows.is_empty()) {
                        let one = analysis.run(set, Traffic::Flows(flows, acks)).map_err(too_many)?;
                        all.channels += one.channels;
                        all.waits += one.waits;
                        all.up_down &= one.up_down;
                        all.valley = all.valley.or(one.valley);
                        if !one.cycle.is_empty() && (all.cycle.is_empty() || one.cycle.len() < all.cycle.len()) {
                            all.cycle = one.cycle;
                            class = (setup.classes > 1).then_some(number);
                        }
                    }
                    (all, class)
                }
            };
            let traffic = if scope == Scope::Any { "any" } else { "flows" };
            answer.cases.push(case(graph, &map, &waits, traffic, links, class, finding));
        }
    }
    Ok(answer)
}

fn case(
    graph: &Graph,
    map: &PortMap,
    waits: &Waits,
    traffic: &'static str,
    links: &str,
    class: Option<usize>,
    finding: Finding,
) -> Case {
    let name = |node: u32| graph.nodes[node as usize].name.clone();
    let lane = |lane: u16| match waits {
        Waits::Lanes(rule) if rule.count() > 1 => Some(format!("lane {lane}")),
        Waits::Paths(rule) => Some(rule.name(lane)),
        _ => None,
    };
    let waiting = |step: &Step| {
        let port = step.channel.port;
        let names: Vec<String> =
            [class.map(|class| format!("class {class}")), lane(step.channel.lane)].into_iter().flatten().collect();
        Waiting {
            from: name(map.node[port as usize]),
            to: name(map.node[map.peer[port as usize] as usize]),
            lane: (!names.is_empty()).then(|| names.join(", ")),
            src: name(step.pair.0),
            dst: name(step.pair.1),
        }
    };
    Case {
        traffic,
        links: links.into(),
        free: finding.cycle.is_empty(),
        channels: finding.channels,
        waits: finding.waits,
        up_down: finding.up_down,
        valley: finding.valley.map(|nodes| nodes.map(name)),
        cycle: finding.cycle.iter().map(waiting).collect(),
    }
}

impl Answer {
    /// Whether no cycle can close in any of the cases.
    pub fn free(&self) -> bool {
        self.cases.iter().all(|case| case.free)
    }

    /// The answer for people.
    pub fn text(&self) -> String {
        let mut out = format!("{}: {}\n", self.scenario, self.flow_control);
        if let Some(why) = &self.never {
            let _ = writeln!(out, "free of deadlock: {why}");
        }
        let changing = self.cases.iter().any(|case| case.links != self.cases[0].links);
        for case in &self.cases {
            let whose = case.whose();
            let links = if changing { format!(", {}", case.links) } else { String::new() };
            let _ = write!(out, "{whose}{links}: ");
            out += &case.text();
        }
        if let Some(needs) = self.needs.filter(|_| !self.free()) {
            let _ = writeln!(out, "what to add: {needs}");
        }
        out
    }
}

impl Case {
    /// Whose packets, for people.
    pub fn whose(&self) -> &'static str {
        if self.traffic == "any" { "any traffic" } else { "the scenario's flows" }
    }

    fn text(&self) -> String {
        let mut out = String::new();
        if self.free {
            let why = match (self.waits, self.up_down) {
                (0, _) => "no link ever waits for another".into(),
                (_, true) => {
                    format!("every path goes up and then down, and none of {} channels waits for itself", self.channels)
                }
                _ => format!("none of {} channels waits for itself", self.channels),
            };
            let _ = writeln!(out, "free of deadlock: {why}");
        } else {
            let _ = writeln!(out, "can deadlock: {} links wait for one another in a cycle", self.cycle.len());
            let link = |step: &Waiting| {
                let lane = step.lane.as_ref().map_or(String::new(), |lane| format!(" ({lane})"));
                format!("{} -> {}{lane}", step.from, step.to)
            };
            let wide = self.cycle.iter().map(|step| link(step).chars().count()).max().unwrap_or(0);
            for (place, step) in self.cycle.iter().enumerate() {
                let next = &self.cycle[(place + 1) % self.cycle.len()];
                let (this, next) = (link(step), link(next));
                let _ =
                    writeln!(out, "  {this:<wide$}  waits for  {next:<wide$}  as from {} to {}", step.src, step.dst);
            }
        }
        if let Some([a, b, c]) = &self.valley {
            let _ = writeln!(out, "  not up and then down: a path goes {a} -> {b} -> {c}, down and up again");
        }
        out
    }
}
