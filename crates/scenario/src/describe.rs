//! A resolved scenario in plain text, for people to check before they run it.

use crate::resolve::Resolved;
use crate::{Choices, GroupReport, Scenario, WindowSize};
use engine::{Parameter, Rate, Time, Value};
use fabric::routing::PortMap;
use fabric::setup::{AckLane, Split};
use fabric::topology::{Kind, Link, WHOLE};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Width of the column of labels.
const MARGIN: usize = 16;

/// The most kinds of links, and of switches, that are listed.
const MOST_KINDS: usize = 12;

/// What makes the memory of two switches the same.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct SwitchKind {
    tier: u8,
    ports: usize,
    /// The least and the most of a port.
    headroom: (u64, u64),
    pool: Option<u64>,
}

/// Lines of a label and a text, aligned.
#[derive(Default)]
struct Sheet(String);

impl Sheet {
    fn line(&mut self, label: &str, text: impl AsRef<str>) {
        _ = writeln!(self.0, "{}", format!("{label:MARGIN$}{}", text.as_ref()).trim_end());
    }
}

/// A number with four significant digits at most.
fn four_digits(value: f64) -> String {
    let digits = (3 - value.abs().max(1e-300).log10().floor() as i32).clamp(0, 3) as usize;
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
}

/// A value in the largest unit that it fills.
fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    let (scale, unit) = units.iter().rev().find(|(scale, _)| value >= *scale).unwrap_or(&units[0]);
    format!("{}{unit}", four_digits(value / scale))
}

/// A time, rounded.
fn time(time: Time) -> String {
    scaled(time.0 as f64, &[(1.0, "ps"), (1e3, "ns"), (1e6, "us"), (1e9, "ms"), (1e12, "s")])
}

/// A size, rounded.
fn size(bytes: u128) -> String {
    scaled(bytes as f64, &[(1.0, "B"), (1e3, "KB"), (1e6, "MB"), (1e9, "GB"), (1e12, "TB")])
}

/// One value, or the least and the most of several.
fn range<T: Copy + Ord>(values: impl Iterator<Item = T> + Clone, show: impl Fn(T) -> String) -> String {
    let (Some(least), Some(most)) = (values.clone().min(), values.max()) else { return "none".into() };
    if least == most { show(least) } else { format!("{} to {}", show(least), show(most)) }
}

fn plural(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

fn parameters(list: &[Parameter]) -> String {
    let each = |parameter: &Parameter| format!("{} = {}", parameter.name, parameter.value);
    list.iter().map(each).collect::<Vec<_>>().join(", ")
}

impl Resolved {
    /// Everything that the run will be, in aligned lines of plain text.
    pub fn describe(&self) -> String {
        let mut sheet = Sheet::default();
        sheet.line("scenario", &self.name);
        self.describe_fabric(&mut sheet);
        self.describe_memory(&mut sheet);
        self.describe_switch(&mut sheet);
        self.describe_nic(&mut sheet);
        self.describe_scheme(&mut sheet);
        self.describe_flows(&mut sheet);
        for note in &self.notes {
            sheet.line("note", &**note);
        }
        sheet.0
    }

    fn describe_fabric(&self, sheet: &mut Sheet) {
        let graph = &self.setup.graph;
        sheet.line("topology", self.topology.to_string());
        let hosts = graph.hosts().count();
        let switches = plural(graph.nodes.len() - hosts, "switch", "switches");
        sheet.line("nodes", format!("{}, {switches}", plural(hosts, "host", "hosts")));
        // By the tiers of the two ends, and then by what a link is.
        type Own = ([Rate; 2], Time, [u32; 2]);
        let mut kinds: BTreeMap<((u8, u8), Own), usize> = BTreeMap::new();
        for link in &graph.links {
            let (a, b) = (graph[link.a].tier, graph[link.b].tier);
            let ([mut rates, mut depths], up) = ([link.rates.map(|rate| rate.0), link.depths.map(u64::from)], a <= b);
            // Upwards first; between switches of one tier, the faster first.
            if !up || a == b && rates[0] < rates[1] {
                rates.reverse();
                depths.reverse();
            }
            let kind = ((a.min(b), a.max(b)), (rates.map(Rate), link.delay, depths.map(|depth| depth as u32)));
            *kinds.entry(kind).or_default() += 1;
        }
        for (place, (((low, high), (rates, delay, depths)), count)) in kinds.iter().take(MOST_KINDS).enumerate() {
            let ways = if low == high { ["one way", "the other"] } else { ["up", "down"] };
            let both = |texts: [String; 2]| match texts[0] == texts[1] {
                true => texts[0].clone(),
                false => format!("{} {} and {} {}", texts[0], ways[0], texts[1], ways[1]),
            };
            let queues = match *depths == [WHOLE; 2] {
                true => String::new(),
                false => {
                    let part = |depth: u32| four_digits(depth as f64 / WHOLE as f64);
                    format!(", queues of {} of their length", both(depths.map(part)))
                }
            };
            let rate = both(rates.map(|rate| rate.to_string()));
            let text = format!("{count} between tier {low} and tier {high}: {rate}, {delay}{queues}");
            sheet.line(if place == 0 { "links" } else { "" }, text);
        }
        if kinds.len() > MOST_KINDS {
            sheet.line("", format!("and {} other kinds", kinds.len() - MOST_KINDS));
        }
        let faulty = |test: fn(&Link) -> bool| graph.links.iter().filter(|link| test(link)).count();
        let (lossy, failing) = (faulty(Link::lossy), faulty(|link| link.failures().next().is_some()));
        let mut faults = Vec::new();
        if lossy > 0 {
            faults.push(plural(lossy, "link loses packets", "links lose packets"));
        }
        if failing > 0 {
            faults.push(plural(failing, "link fails", "links fail"));
        }
        if !faults.is_empty() {
            sheet.line("faults", faults.join(", "));
        }
        self.describe_retry(sheet);
        self.describe_oversubscription(sheet);
    }

    /// How much more can come up to a switch than it can pass on upwards.
    fn describe_oversubscription(&self, sheet: &mut Sheet) {
        let graph = &self.setup.graph;
        let mut rates = vec![(0u128, 0u128); graph.nodes.len()];
        for link in &graph.links {
            for (node, peer) in [(link.a, link.b), (link.b, link.a)] {
                let (tier, peer) = (graph[node].tier, graph[peer].tier);
                if peer < tier {
                    rates[node.index()].0 += link.rate_to(node).0 as u128;
                } else if peer > tier {
                    rates[node.index()].1 += link.rate(node).0 as u128;
                }
            }
        }
        let mut tiers: BTreeMap<u8, Vec<u128>> = BTreeMap::new();
        for (node, &(down, up)) in graph.nodes.iter().zip(&rates) {
            if node.kind == Kind::Switch && down > 0 && up > 0 {
                tiers.entry(node.tier).or_default().push(down * 1_000_000 / up);
            }
        }
        for (tier, ratios) in tiers {
            let show = |ratio: u128| format!("{}:1", four_digits(ratio as f64 / 1e6));
            let text = format!("oversubscription {}", range(ratios.iter().copied(), show));
            sheet.line(&format!("tier {tier}"), text);
        }
    }

    /// Links that repeat, by what they keep.
    fn describe_retry(&self, sheet: &mut Sheet) {
        let (setup, map) = (&self.setup, PortMap::new(&self.setup.graph));
        let mut kinds: BTreeMap<(u64, Time, Time, Option<u32>), usize> = BTreeMap::new();
        for port in 0..map.count() as u32 {
            if let Some(limits) = setup.retry_limits(&map, port) {
                *kinds.entry((limits.bytes, limits.round, limits.timer, limits.replays)).or_default() += 1;
            }
        }
        for (place, (&(bytes, round, timer, replays), &count)) in kinds.iter().take(MOST_KINDS).enumerate() {
            let ends = match replays {
                None => "for ever".into(),
                Some(most) => format!("{} at most", plural(most as usize, "time", "times")),
            };
            let text = format!(
                "{} of links: {} kept for {} from a frame to its ACK, repeated after {} without news, {ends}",
                plural(count, "end", "ends"),
                size(bytes as u128),
                time(round),
                time(timer),
            );
            sheet.line(if place == 0 { "link retry" } else { "" }, text);
        }
    }

    fn describe_memory(&self, sheet: &mut Sheet) {
        let (setup, graph) = (&self.setup, &self.setup.graph);
        let Some(buffer) = self.buffer else {
            sheet.line("buffer", "unlimited");
            return self.describe_own(sheet);
        };
        let map = fabric::routing::PortMap::new(graph);
        let mut kinds: BTreeMap<SwitchKind, (usize, &str)> = BTreeMap::new();
        for (number, node) in (0..).zip(&graph.nodes).filter(|(_, node)| node.kind == Kind::Switch) {
            let headroom = map.of(number).map(|port| setup.ports[port as usize].share.headroom as u64);
            let kind = SwitchKind {
                tier: node.tier,
                ports: map.of(number).len(),
                headroom: (headroom.clone().min().unwrap_or(0), headroom.max().unwrap_or(0)),
                pool: setup.switch.pool[number as usize],
            };
            kinds.entry(kind).or_insert((0, node.name.as_str())).0 += 1;
        }
        for (place, (kind, (count, first))) in kinds.iter().take(MOST_KINDS).enumerate() {
            let who = if *count == 1 { first.to_string() } else { format!("{count} switches such as {first}") };
            let text = format!(
                "{who}, {}: {buffer}, of which {} shared; per port and class {} headroom, {} reserve",
                plural(kind.ports, "port", "ports"),
                kind.pool.map_or("all".into(), |pool| size(pool as u128)),
                range([kind.headroom.0, kind.headroom.1].into_iter(), |bytes| size(bytes as u128)),
                size(setup.switch.reserve as u128),
            );
            sheet.line(if place == 0 { "buffer" } else { "" }, text);
        }
        if kinds.len() > MOST_KINDS {
            sheet.line("", format!("and {} other kinds of switch", kinds.len() - MOST_KINDS));
        }
        if setup.switch.cell > 1 {
            sheet.line("cells", format!("of {} B; sizes above are whole ones", setup.switch.cell));
        }
        self.describe_headroom(sheet);
        self.describe_own(sheet);
    }

    /// The sizes that flow control comes to by itself.
    fn describe_own(&self, sheet: &mut Sheet) {
        let Some((name, lines)) = &self.explained else { return };
        for (place, line) in lines.iter().enumerate() {
            sheet.line(if place == 0 { name } else { "" }, line);
        }
    }

    /// What headroom is for, loop by loop.
    fn describe_headroom(&self, sheet: &mut Sheet) {
        for (place, (pause, given)) in self.loops.iter().take(MOST_KINDS).enumerate() {
            let needed = pause.headroom();
            let given = match *given == needed {
                true => String::new(),
                false => format!("; {} is given", size(*given as u128)),
            };
            let cells = match pause.cell {
                1 => String::new(),
                cell => {
                    let (worst, cells) = pause.worst();
                    format!(", up to {} of {cell} B for every {worst} B", plural(cells as usize, "cell", "cells"))
                }
            };
            let retry = match pause.retry.kept {
                0 => String::new(),
                kept => format!(
                    "; of these {} that the neighbour keeps to repeat, and what comes while a pause is repeated for {}",
                    size(kept as u128),
                    time(pause.retry.late),
                ),
            };
            let text = format!(
                "{} at {}: {} that arrive within {} (to here {}, until the pause acts {}), and two packets of {} B{cells}{given}{retry}",
                size(needed as u128),
                match pause.rate == pause.own {
                    true => pause.rate.to_string(),
                    false => format!("{} ({} to the neighbour)", pause.rate, pause.own),
                },
                size(pause.in_flight() as u128),
                time(pause.to_here + pause.hears()),
                time(pause.to_here),
                time(pause.hears()),
                pause.largest,
            );
            sheet.line(if place == 0 { "headroom" } else { "" }, text);
        }
        if self.loops.len() > MOST_KINDS {
            sheet.line("", format!("and {} other kinds of link", self.loops.len() - MOST_KINDS));
        }
    }

    fn describe_switch(&self, sheet: &mut Sheet) {
        let (setup, switch) = (&self.setup, &self.setup.switch);
        let one = fabric::buffer::ALPHA_ONE as f64;
        let alpha = setup.ports.iter().map(|port| port.share.alpha).max().unwrap_or(0) as f64 / one;
        let egress =
            switch.egress_alpha.map_or("none".into(), |alpha| format!("alpha {}", four_digits(alpha as f64 / one)));
        let threshold = match switch.split {
            Split::Absolute(most) => format!("threshold {}", size(most as u128)),
            Split::Ingress | Split::Egress => "an equal part for each".into(),
            Split::Dynamic => format!("alpha {}", four_digits(alpha)),
        };
        let pauses = match (self.layout.headroom.is_some(), switch.reaction) {
            (false, _) if switch.split == Split::Dynamic => String::new(),
            (false, _) => format!("{threshold}, "),
            (true, after) => {
                let after =
                    if after == Time::ZERO { String::new() } else { format!("pauses act after {}, ", time(after)) };
                format!("{threshold}, resume gap {}, {after}", size(switch.resume_gap as u128))
            }
        };
        let text = format!("{pauses}egress limit {egress}, pipeline {}", time(switch.pipeline));
        sheet.line("switch", text);
        let queues = plural(switch.queues as usize, "queue", "queues");
        let classes = plural(setup.classes as usize, "class", "classes");
        let scheduler = self.choices.queueing.name();
        sheet.line("queues", format!("{classes} of {queues}, {scheduler}, quantum {} B", switch.quantum));
        let marks = setup.ports.iter().filter_map(|port| port.ecn);
        let probability = marks.clone().map(|ecn| ecn.probability).next();
        sheet.line(
            "marks",
            match probability {
                None => "none".into(),
                Some(probability) => format!(
                    "from {}, all from {}, probability {probability}",
                    range(marks.clone().map(|ecn| ecn.min), |bytes| size(bytes as u128)),
                    range(marks.map(|ecn| ecn.max), |bytes| size(bytes as u128)),
                ),
            },
        );
    }

    fn describe_nic(&self, sheet: &mut Sheet) {
        let nic = &self.setup.nic;
        if self.setup.graph.forwarding {
            let forward = &self.setup.forward;
            let rate = forward.rate.map_or("as fast as its link".into(), |rate| format!("at most {rate} by each port"));
            let hosts = || self.setup.graph.hosts().map(|host| self.setup.switch.pool[host.index()]);
            let memory = match hosts().flatten().max() {
                None => "memory without end".into(),
                Some(most) => format!("up to {} of shared memory", size(most as u128)),
            };
            let order = if forward.first { ", before their own" } else { "" };
            sheet.line("forwarding", format!("hosts, after {}, {rate}{order}, {memory}", time(forward.delay)));
        }
        let acks = match nic.acks {
            fabric::setup::AckPolicy::Every(1) => "every packet".into(),
            fabric::setup::AckPolicy::Every(count) => format!("every {count} packets"),
            fabric::setup::AckPolicy::After { interval, chunk } => format!("after {interval} B, by {chunk} B"),
        };
        let lane = if nic.ack_lane == AckLane::Control { "control" } else { "data" };
        let text = format!(
            "payload {} B, header {} B, ACK {} B for {acks} in the {lane} lane, {}",
            nic.payload,
            nic.header,
            nic.ack_size,
            if nic.paced { "paced" } else { "not paced" },
        );
        sheet.line("nic", text);
        let fabric::setup::Bus { send, receive } = nic.bus;
        if send + receive > Time::ZERO {
            let text = format!("{} from a host to its NIC, {} from there to a host", time(send), time(receive));
            sheet.line("latency", text);
        }
        let fabric::setup::Notifications { interval, delay } = nic.notifications;
        if interval + delay > Time::ZERO {
            sheet.line("notifications", format!("after {}, at most every {}", time(delay), time(interval)));
        }
        let transport = &self.choices.transport;
        sheet.line("recovery", format!("{}, {}", transport.name(), transport.describe(&self.setup)));
        for slow in &self.setup.slow {
            let node = fabric::routing::PortMap::new(&self.setup.graph).node[slow.port as usize];
            let (name, rate) = (&self.setup.graph.nodes[node as usize].name, slow.rate);
            sheet.line("slow", format!("{name} takes {rate}, NIC {}", size(slow.buffer as u128)));
        }
    }

    fn describe_scheme(&self, sheet: &mut Sheet) {
        let Choices { flow_control: fc, congestion_control: cc, transport: tp, edge_control: edge, .. } = &self.choices;
        let (lb, queueing, marking) = (&self.choices.load_balancing, &self.choices.queueing, &self.choices.marking);
        let salt = match self.setup.salt {
            0 => String::new(),
            salt => format!(", hashes with salt {salt}"),
        };
        sheet.line("load balancing", format!("{}{salt}", lb.name()));
        let preset = self.preset.as_ref().map_or(String::new(), |preset| format!(" (preset {preset})"));
        let on_top = if edge.name() == "none" { String::new() } else { format!(" with {}", edge.name()) };
        let text = format!("flow control {}, congestion control {}{on_top}{preset}", fc.name(), cc.name());
        sheet.line("scheme", text);
        let lists = [
            (fc.name(), fc.list()),
            (cc.name(), cc.list()),
            (edge.name(), edge.list()),
            (tp.name(), tp.list()),
            (lb.name(), lb.list()),
            (queueing.name(), queueing.list()),
            (marking.name(), marking.list()),
        ];
        for (name, list) in lists {
            if !list.is_empty() {
                sheet.line(&format!("  {name}"), parameters(&list));
            }
        }
        let rule = self.setup.nic.window.show();
        let windows = range(self.setup.flows.iter().map(|flow| flow.window), |bytes| size(bytes as u128));
        sheet.line(
            "window",
            match self.window {
                WindowSize::None => "none".into(),
                WindowSize::Bdp => format!("{windows} (one BDP), {}", rule.trim_matches('"')),
                WindowSize::Fixed(_) => format!("{windows}, {}", rule.trim_matches('"')),
            },
        );
        let promise =
            match (self.layout.headroom.is_some() || self.layout.grants || self.buffer.is_none(), self.promised) {
                (_, true) => "no packet is lost for want of room",
                (true, false) => "none; see the notes",
                (false, false) => "none; what does not fit is dropped",
            };
        sheet.line("promise", promise);
    }

    fn describe_flows(&self, sheet: &mut Sheet) {
        let flows = &self.setup.flows;
        let bytes: u128 = flows.iter().map(|flow| flow.size as u128).sum();
        let text = format!(
            "{}, {} in all, sizes {}, starts {}",
            plural(flows.len(), "flow", "flows"),
            size(bytes),
            range(flows.iter().map(|flow| flow.size), |bytes| size(bytes as u128)),
            range(flows.iter().map(|flow| flow.start), time),
        );
        sheet.line("flows", text);
        sheet.line("base RTT", range(flows.iter().map(|flow| flow.base_rtt), time));
        sheet.line("alone", format!("a flow takes {}", range(flows.iter().map(|flow| flow.ideal), time)));
        let stop = match self.setup.stop {
            Time::MAX => "when all flows are finished".into(),
            stop => format!("at {stop}"),
        };
        sheet.line("stop", stop);
        let sample = self.setup.measure.sample.map_or("no sampling".into(), |every| format!("sampled every {every}"));
        sheet.line("measure", format!("{sample}, seed {}", self.setup.seed));
    }
}

/// A share in percent.
fn percent(share: Option<f64>) -> String {
    share.map_or("-".into(), |share| format!("{}%", four_digits(share * 100.0)))
}

impl Scenario {
    /// The groups of flows in aligned lines, as they continue [`Resolved::describe`]; nothing if there is only one and it was not
    /// drawn.
    pub fn describe_groups(&self) -> String {
        let mut sheet = Sheet::default();
        let groups = self.groups();
        if groups.len() == 1 && self.plans.is_empty() {
            return String::new();
        }
        for group in groups {
            let GroupReport { name, flows, bytes, of_hosts, of_core, of_asked, .. } = &group;
            let mut text = format!("{name}: {}", plural(*flows, "flow", "flows"));
            if !group.leaves {
                _ = write!(text, ", {}", size(*bytes));
            }
            if of_hosts.is_some() {
                _ = write!(text, ", {} of the hosts' links", percent(*of_hosts));
            }
            if of_core.is_some() {
                _ = write!(text, ", {} of the core", percent(*of_core));
                if group.across_core != *of_core {
                    _ = write!(text, " ({} counting what crosses it)", percent(group.across_core));
                }
            }
            if of_asked.is_some() {
                _ = write!(text, ", {} of what was asked", percent(*of_asked));
            }
            let (begin, end) = group.window;
            _ = write!(text, ", {} to {}", time(begin), time(end));
            sheet.line("group", text);
        }
        sheet.0
    }

    /// The groups of flows as a table: what was drawn, and beside it what was to be.
    pub fn describe_traffic(&self) -> String {
        const HEAD: [&str; 10] =
            ["group", "flows", "bytes", "mean size", "expected", "of hosts", "of core", "of asked", "from", "to"];
        let row = |group: GroupReport| {
            let bytes = |bytes: f64| size(bytes.round() as u128);
            let mean = (group.flows > 0 && !group.leaves).then(|| bytes(group.bytes as f64 / group.flows as f64));
            [
                group.name,
                group.flows.to_string(),
                if group.leaves { "-".into() } else { size(group.bytes) },
                mean.unwrap_or("-".into()),
                group.expected_size.map_or("-".into(), bytes),
                percent(group.of_hosts),
                percent(group.of_core),
                percent(group.of_asked),
                time(group.window.0),
                time(group.window.1),
            ]
        };
        let rows: Vec<[String; 10]> =
            std::iter::once(HEAD.map(String::from)).chain(self.groups().into_iter().map(row)).collect();
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: [usize; 10] = std::array::from_fn(width);
        let mut text = String::new();
        for row in &rows {
            let [name, cells @ ..] = row;
            _ = write!(text, "{name:<0$}", widths[0]);
            cells.iter().zip(&widths[1..]).for_each(|(cell, width)| _ = write!(text, "  {cell:>width$}"));
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_rounded_for_people() {
        assert_eq!(time(Time(8_363_520)), "8.364us");
        assert_eq!(time(Time::ZERO), "0ps");
        assert_eq!(time(Time::from_ms(20)), "20ms");
        assert_eq!((size(12_000_000), size(104_569), size(7)), ("12MB".into(), "104.6KB".into(), "7B".into()));
        assert_eq!(four_digits(0.125), "0.125");
    }
}
