//! Which cause takes how much of the time of which flows.
//!
//! The parts of a flow say how long it was stopped where, and the stops say because of what: the time of a part goes to the roots of the
//! stops that the flow waited at there meanwhile, in proportion to how long it did.

use super::{Told, many};
use crate::causes::{Causes, Kind, Root};
use crate::parts::PartRow;
use crate::records::{FlowRow, Records};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The least share that is told, in percent.
const LEAST: u64 = 25;
/// How many shares are told.
const MOST: usize = 12;
/// How many places of a share are named.
const NAMED: usize = 3;

/// What one cause takes of the time of some flows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Share {
    /// Which flows, as in "the slowest 1 %".
    pub flows: String,
    /// How many.
    pub count: usize,
    /// The sum of their completion times.
    pub time_ps: u64,
    /// What took part of it, in a few words.
    pub cause: String,
    /// Of head-of-line blocking, why it was, in a clause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// Where: links or hosts, those that took most first.
    pub places: Vec<String>,
    /// How much of the time.
    pub cause_ps: u64,
}

impl Share {
    /// "32 % of the time of the slowest 1 % (12 flows) is waiting behind 4 incasts: leaf0->h0, leaf1->h5, leaf1->h6 and 1 more."
    pub fn sentence(&self) -> String {
        let percent = 100.0 * self.cause_ps as f64 / self.time_ps.max(1) as f64;
        let count = if self.count == 1 { String::new() } else { format!(" ({})", many(self.count, "flow")) };
        let more = self.places.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let places = self.places.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
        let tail = match &self.because {
            Some(because) => format!(" at {places}{more}, because {because}"),
            None if places.is_empty() => String::new(),
            None => format!(": {places}{more}"),
        };
        format!("{percent:.0} % of the time of {}{count} is {}{tail}.", self.flows, self.cause)
    }
}

/// What flows spend time on beyond what they would alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Cause<'a> {
    /// At stops of a root that they do not pass through.
    Blocked(usize),
    /// At stops of a root, or queueing at it.
    Root(usize),
    /// Queueing at a link that is no root.
    Queue,
    /// A part by its name.
    Part(&'a str),
}

/// The shares of a run, for whoever has its tables.
pub fn shares(records: &Records, causes: &Causes, parts: &[PartRow<'_>]) -> Vec<Share> {
    let (roots, of_stop, of_loss) = causes.whole_forest();
    of(&Told { records, causes, parts, roots, of_stop, of_loss })
}

/// Of a run: the slowest flows, then every group, then every size.
pub(super) fn of(told: &Told<'_>) -> Vec<Share> {
    let costs = Costs::new(told);
    let mut all = Vec::new();
    for (name, flows) in classes(told.records, told.causes.stalled) {
        all.extend(costs.shares(&name, &flows));
    }
    all.truncate(MOST);
    all
}

/// A size that is a limit, without zeros behind its point.
fn round(bytes: u64) -> String {
    super::size(bytes).replace(".00 ", " ").replace(".0 ", " ")
}

/// The flows that are looked at together, with what to call them.
fn classes(records: &Records, stalled: bool) -> Vec<(String, Vec<usize>)> {
    let all: Vec<(usize, &FlowRow)> =
        records.flows.iter().enumerate().filter(|(_, flow)| flow.received_ps.is_some()).collect();
    let pick = |which: &dyn Fn(&FlowRow) -> bool| -> Vec<usize> {
        all.iter().filter(|(_, flow)| which(flow)).map(|(row, _)| *row).collect()
    };
    // Of a run that came to rest those that never end are slower than any other.
    let mut classes = Vec::new();
    if stalled {
        let begun = |row: &FlowRow| row.received_ps.is_none() && row.start_ps.is_some();
        let never: Vec<usize> =
            records.flows.iter().enumerate().filter(|(_, flow)| begun(flow)).map(|(row, _)| row).collect();
        let name = match never.as_slice() {
            [only] => format!("flow {only}, which never ends,"),
            _ => "flows that never end".into(),
        };
        classes.push((name, never));
    }
    let mut slowest: Vec<(f64, usize)> = all.iter().filter_map(|(row, flow)| Some((flow.slowdown?, *row))).collect();
    slowest.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    slowest.truncate(slowest.len().div_ceil(100));
    let name = match (slowest.as_slice(), stalled) {
        ([(_, only)], false) => format!("flow {only}, the slowest,"),
        ([(_, only)], true) => format!("flow {only}, the slowest that ended,"),
        (_, false) => "the slowest 1 %".into(),
        (_, true) => "the slowest 1 % of those that ended".into(),
    };
    classes.push((name, slowest.into_iter().map(|(_, row)| row).collect::<Vec<_>>()));
    let names = |key: &str| records.summary[key].as_array().into_iter().flatten();
    for group in names("groups").filter_map(|group| group["name"].as_str()) {
        classes.push((format!("group {group:?}"), pick(&|flow| flow.group == group)));
    }
    for bin in names("slowdown_by_size") {
        let (above, end) = (bin["above"].as_u64().unwrap_or(0), bin["up_to"].as_u64());
        let name = match end {
            Some(end) => format!("flows up to {}", round(end)),
            None => format!("flows over {}", round(above)),
        };
        classes.push((name, pick(&|flow| flow.size > above && end.is_none_or(|end| flow.size <= end))));
    }
    // The same flows under another name say nothing new.
    let mut seen: BTreeSet<Vec<usize>> = BTreeSet::new();
    classes.retain(|(_, flows)| {
        let mut sorted = flows.clone();
        sorted.sort_unstable();
        !flows.is_empty() && seen.insert(sorted)
    });
    classes
}

/// The time of every flow by cause and place.
struct Costs<'a> {
    told: &'a Told<'a>,
    /// By flow, its time in all, and what took how much of it where.
    flows: HashMap<usize, (u64, Vec<Cost<'a>>)>,
}

type Cost<'a> = (Cause<'a>, &'a str, u64);

/// When a flow waited at a stop, and why: from, until, the root, and whether the flow does not pass through that.
type Wait = (u64, u64, usize, bool);

impl<'a> Costs<'a> {
    fn new(told: &'a Told<'a>) -> Costs<'a> {
        let mut waits: HashMap<(u64, u64), Vec<Wait>> = HashMap::new();
        for wait in &told.causes.waits {
            let Some((from, until)) = told.causes.span(wait) else { continue };
            let spans = waits.entry((wait.flow, told.causes.stops[wait.stop].port)).or_default();
            spans.push((from, until, told.of_stop[wait.stop], wait.victim));
        }
        let ports: HashMap<&str, u64> = told.causes.names.iter().map(String::as_str).zip(0..).collect();
        // Saturated links, by name.
        let saturated = told.roots.iter().zip(0..).filter(|(root, _)| root.kind == Kind::Saturated);
        let saturated: HashMap<&str, usize> = saturated.map(|(root, place)| (root.place.as_str(), place)).collect();
        let scene = Scene { told, waits, ports, saturated };
        let chunks = told.parts.chunk_by(|a, b| a.flow == b.flow);
        let whole = chunks.filter(|parts| parts[0].flow < told.records.flows.len());
        let flow = |parts: &'a [PartRow<'a>]| {
            (parts[0].flow, (parts.iter().map(|part| part.time_ps).sum(), scene.costs(parts)))
        };
        Costs { told, flows: whole.map(flow).collect() }
    }

    /// What takes more than a quarter of the time of some flows.
    fn shares(&self, name: &str, flows: &[usize]) -> Vec<Share> {
        let mut total = 0u64;
        let mut sums: BTreeMap<Cause<'_>, BTreeMap<&str, u64>> = BTreeMap::new();
        for (time, costs) in flows.iter().filter_map(|flow| self.flows.get(flow)) {
            total += time;
            for (cause, place, time) in costs {
                *sums.entry(*cause).or_default().entry(place).or_default() += time;
            }
        }
        let of = |places: &BTreeMap<&str, u64>| places.values().sum::<u64>();
        let many_ports = |places: BTreeMap<&str, u64>| {
            let mut places: Vec<(&str, u64)> = places.into_iter().collect();
            places.sort_by_key(|(place, time)| (Reverse(*time), *place));
            places.into_iter().map(|(place, _)| place.to_string()).collect::<Vec<_>>()
        };
        let mut told: Vec<(u64, String, Vec<String>, Option<String>)> = Vec::new();
        // Incasts are told together.
        let incasts: BTreeMap<&str, u64> = sums
            .iter()
            .filter_map(|(cause, places)| match cause {
                Cause::Root(root) if self.is_incast(&self.told.roots[*root]) => {
                    Some((self.told.roots[*root].place.as_str(), of(places)))
                }
                _ => None,
            })
            .collect();
        if !incasts.is_empty() {
            let clause = format!("waiting behind {}", many(incasts.len(), "incast"));
            told.push((of(&incasts), clause, many_ports(incasts), None));
        }
        for (cause, places) in sums {
            let time = of(&places);
            match cause {
                Cause::Root(root) if self.is_incast(&self.told.roots[root]) => {}
                Cause::Root(root) => {
                    let root = &self.told.roots[root];
                    told.push((time, format!("waiting because {}", root.clause()), Vec::new(), None));
                }
                Cause::Blocked(root) => {
                    let because = self.told.roots[root].clause();
                    told.push((time, "head-of-line blocking".into(), many_ports(places), Some(because)));
                }
                Cause::Queue => {
                    let count = if places.len() == 1 {
                        "1 link that is no root".into()
                    } else {
                        format!("{} links that are no roots", places.len())
                    };
                    told.push((time, format!("queueing at {count}"), many_ports(places), None));
                }
                Cause::Part(part) => told.push((time, words(part).to_string(), Vec::new(), None)),
            }
        }
        told.retain(|(time, ..)| *time as u128 * 100 > total as u128 * LEAST as u128);
        told.sort_by_key(|(time, clause, _, because)| (Reverse(*time), clause.clone(), because.clone()));
        let share = |(cause_ps, cause, places, because)| Share {
            flows: name.into(),
            count: flows.len(),
            time_ps: total,
            cause,
            because,
            places,
            cause_ps,
        };
        told.into_iter().map(share).collect()
    }

    /// Whether a root is a link to a host that several flows fill.
    fn is_incast(&self, root: &Root) -> bool {
        let port = self.told.causes.names.iter().position(|name| *name == root.place);
        let to_host = port.and_then(|port| self.told.records.links.get(port)).is_some_and(|link| link.to_host);
        root.kind == Kind::Saturated && root.flows > 1 && to_host
    }
}

/// What a part is, as something that takes time.
fn words(part: &str) -> &str {
    match part {
        "line" => "waiting for earlier messages to the same host",
        "hold" => "being held by flow control",
        "pause" => "being paused by flow control",
        "stopped" => "being in stopped queues",
        "grant" => "waiting for grants of the receiver",
        "window" => "waiting for the window to open",
        "pacing" => "waiting because of the rates that congestion control allows",
        "turn" => "waiting for a turn at the NIC",
        "retransmission" => "sending again",
        "answer" => "waiting for an answer to what was sent",
        "down" => "waiting for the link of the NIC to come back",
        "forwarding" => "being forwarded by hosts",
        "receiver" => "being in the NIC of a slow receiver",
        "host" => "being on the way between hosts and their NICs",
        "retry" => "waiting for links that repeat what they damage",
        other => other,
    }
}

/// What is needed to say what the parts of a flow are because of.
struct Scene<'a> {
    told: &'a Told<'a>,
    /// By flow and port.
    waits: HashMap<(u64, u64), Vec<Wait>>,
    ports: HashMap<&'a str, u64>,
    saturated: HashMap<&'a str, usize>,
}

impl<'a> Scene<'a> {
    /// The costs of a flow, whose parts are in the order of its way.
    fn costs(&self, parts: &[PartRow<'a>]) -> Vec<Cost<'a>> {
        let flow = parts[0].flow;
        let row = &self.told.records.flows[flow];
        let mut costs = Vec::new();
        let start = row.start_ps.unwrap_or(0);
        // What is at its receiver comes after the path.
        let at_sender = |part: &&PartRow<'_>| match part.part {
            "receiver" => false,
            "host" => part.place == row.src,
            _ => part.hop.is_none(),
        };
        let sender: u64 = parts.iter().filter(at_sender).map(|part| part.time_ps).sum();
        let mut now = start + sender;
        for part in parts {
            let PartRow { part, place, hop, time_ps, .. } = *part;
            match part {
                "serialisation" | "propagation" => {}
                // At its NIC the flow was stopped at any time before.
                "pause" | "hold" => {
                    let names = self
                        .told
                        .causes
                        .names
                        .iter()
                        .zip(0..)
                        .filter(|(name, _)| name.strip_prefix(place).is_some_and(|rest| rest.starts_with("->")));
                    let spans = names.flat_map(|(_, port)| self.spans(flow, port, start, start + sender)).collect();
                    self.split(&mut costs, spans, part, place, time_ps);
                }
                // What it sent is somewhere on its way, at stops perhaps.
                "answer" => {
                    let spans = self.waits.keys().filter(|(of, _)| *of == flow as u64);
                    let spans = spans.flat_map(|&(_, port)| self.spans(flow, port, start, self.told.causes.end_ps));
                    self.split(&mut costs, spans.collect(), part, place, time_ps);
                }
                "stopped" => {
                    let queued = parts.iter().filter(|p| p.hop == hop && p.part == "queueing").map(|p| p.time_ps);
                    let until = now + time_ps + queued.sum::<u64>();
                    let port = self.ports.get(place).copied().unwrap_or(u64::MAX);
                    self.split(&mut costs, self.spans(flow, port, now, until), part, place, time_ps);
                }
                "queueing" => {
                    let cause = self.saturated.get(place).map_or(Cause::Queue, |&root| Cause::Root(root));
                    costs.push((cause, place, time_ps));
                }
                other => costs.push((Cause::Part(other), place, time_ps)),
            }
            if hop.is_some() {
                now += time_ps;
            }
        }
        costs
    }

    /// How long a flow waited at the stops of a port in a stretch of time, by why.
    fn spans(&self, flow: usize, port: u64, from: u64, until: u64) -> Vec<(Cause<'a>, u64)> {
        let waits = self.waits.get(&(flow as u64, port)).map_or(&[][..], Vec::as_slice);
        let mut spans: BTreeMap<Cause<'a>, u64> = BTreeMap::new();
        for &(begin, end, root, victim) in waits {
            let time = end.min(until).saturating_sub(begin.max(from));
            let cause = if victim { Cause::Blocked(root) } else { Cause::Root(root) };
            *spans.entry(cause).or_default() += time;
        }
        spans.into_iter().filter(|(_, time)| *time > 0).collect()
    }

    /// Gives the time of a part to why it was, in proportion. What cannot be divided goes to the largest.
    fn split(&self, costs: &mut Vec<Cost<'a>>, spans: Vec<(Cause<'a>, u64)>, part: &'a str, place: &'a str, time: u64) {
        let sum: u128 = spans.iter().map(|(_, span)| *span as u128).sum();
        let Some(largest) = spans.iter().max_by_key(|(cause, span)| (*span, Reverse(*cause))).map(|(cause, _)| *cause)
        else {
            return costs.push((Cause::Part(part), place, time));
        };
        let mut rest = time;
        for (cause, span) in spans.into_iter().filter(|(cause, _)| *cause != largest) {
            let own = (time as u128 * span as u128 / sum) as u64;
            rest -= own;
            costs.push((cause, place, own));
        }
        costs.push((largest, place, rest));
    }
}
