//! Why a run was slow, in sentences and as JSON.

use crate::causes::{Causes, Kind, Root, Stop, Times, Waiting};
use crate::parts::PartRow;
use crate::records::{FlowRow, Records};
use files::problem::Problem;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// Of the whole run.
    Run,
    /// Why a flow was slow.
    Flow(u64),
    /// Why a link was stopped: `A->B`.
    Link(String),
    /// What was stopped at an instant, and why.
    At(u64),
}

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// For people. A line that begins with a space belongs to the one before.
    pub sentences: Vec<String>,
    /// For programs.
    pub json: Value,
}

/// How many roots, ports or steps are told.
const MOST: usize = 8;

/// A time for people, to three digits.
pub fn time(ps: u64) -> String {
    scaled(ps as f64, 1000.0, &["ps", "ns", "us", "ms", "s"])
}

/// A size for people, to three digits.
fn size(bytes: u64) -> String {
    scaled(bytes as f64, 1000.0, &["B", "KB", "MB", "GB"])
}

fn scaled(mut value: f64, step: f64, units: &[&str]) -> String {
    let mut unit = 0;
    while value >= step - 0.5 && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    let digits = if unit == 0 || value >= 99.95 {
        0
    } else if value >= 9.995 {
        1
    } else {
        2
    };
    format!("{value:.digits$} {}", units[unit])
}

fn many(count: usize, one: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") }
}

impl Root {
    /// What it is, in a clause.
    pub fn clause(&self) -> String {
        match self.kind {
            Kind::Deadlock => format!("{} wait for each other in a cycle: a deadlock", self.place),
            Kind::Saturated if self.flows == 0 => format!("the link {} is saturated", self.place),
            Kind::Saturated => format!("the link {} is saturated by {}", self.place, many(self.flows as usize, "flow")),
            Kind::SlowReceiver => format!("{} takes packets more slowly than they come", self.place),
            Kind::LinkDown => format!("the link {} is down", self.place),
            Kind::Scheme => format!("the scheme at {} holds, with no queue to blame", self.place),
        }
    }

    /// All that grew from it, in sentences.
    pub fn sentence(&self, flows: &[FlowRow]) -> String {
        let clause = self.clause();
        // A name stays as it is written.
        let mut text = match clause.strip_prefix("the ") {
            Some(rest) => format!("The {rest}"),
            None => clause,
        };
        let until = self.until_ps.map_or("and did not end".into(), |until| format!("until {}", time(until)));
        text += &format!(
            ". {} at {} from {} {until}, {} in all; chains have up to {}.",
            many(self.stops, "stop"),
            many(self.stopped_ports, "port"),
            time(self.from_ps),
            time(self.stopped_ps),
            many(self.depth, "step"),
        );
        if self.waiting_flows > 0 {
            text += &format!(" {} waited {} in all", many(self.waiting_flows, "flow"), time(self.waited_ps));
            text += &match self.victims {
                0 => "; no victims: all of them pass through it.".into(),
                victims => {
                    let worst: Vec<String> = self
                        .worst_victims
                        .iter()
                        .map(|victim| format!("{}, {}", flow_name(flows, victim.flow), time(victim.waited_ps)))
                        .collect();
                    let verb = if victims == 1 { "does" } else { "do" };
                    format!(
                        "; {victims} of them {verb} not pass through it and waited {}: {}.",
                        time(self.victim_ps),
                        worst.join("; ")
                    )
                }
            };
        }
        text
    }
}

fn flow_name(flows: &[FlowRow], flow: u64) -> String {
    match flows.get(flow as usize) {
        Some(row) => format!("flow {flow} ({} to {}, group {:?})", row.src, row.dst, row.group),
        None => format!("flow {flow}"),
    }
}

impl Causes {
    /// What a stop was, in a clause.
    fn what(&self, stop: &Stop) -> String {
        format!("{} {}", stop.scope.word(), stop.scope.number())
    }

    /// From a stop to its root, a line for each step and one for the root.
    pub fn tell(&self, row: usize, root: &Root) -> Vec<String> {
        let chain = self.chain(row);
        let mut lines = Vec::new();
        for (step, &row) in chain.steps.iter().enumerate() {
            let stop = &self.stops[row];
            let (port, what) = (self.port(stop.port), self.what(stop));
            let length = match stop.until_ps {
                Some(until) => format!("for {} from {}", time(until - stop.from_ps), time(stop.from_ps)),
                None => format!("from {} to the end", time(stop.from_ps)),
            };
            let by = &self.nodes[stop.by];
            let because = match stop.fill {
                None => String::new(),
                Some(fill) if fill.waiting == Waiting::Receiver => format!(", because {by} itself was full"),
                Some(fill) => {
                    let state = match fill.waiting {
                        Waiting::Stopped => ", which was stopped itself",
                        Waiting::Draining => ", which still sent what a stop had left",
                        Waiting::Down => ", which was down",
                        Waiting::Busy | Waiting::Receiver => "",
                    };
                    let bytes = if fill.bytes == 0 { String::new() } else { format!(" with {}", size(fill.bytes)) };
                    format!(", because of {}{bytes}{state}", self.port(fill.port))
                }
            };
            let indent = if step == 0 { "" } else { "  " };
            lines.push(format!("{indent}{port} had {what} stopped {length}, by order of {by}{because}."));
        }
        lines.push(format!("  The root: {}.", root.clause()));
        lines
    }

    fn stop_json(&self, row: usize) -> Value {
        let stop = &self.stops[row];
        let fill = stop.fill.map(|fill| {
            json!({
                "port": self.port(fill.port),
                "queue": fill.queue,
                "bytes": fill.bytes,
                "flows": fill.flows,
                "waiting": fill.waiting.word(),
            })
        });
        json!({
            "stop": row,
            "port": self.port(stop.port),
            "scope": stop.scope.word(),
            "number": stop.scope.number(),
            "from_ps": stop.from_ps,
            "until_ps": stop.until_ps,
            "by": self.nodes[stop.by],
            "ordered_ps": stop.ordered_ps,
            "filled": fill,
        })
    }

    fn chain_json(&self, row: usize) -> Value {
        self.chain(row).steps.into_iter().map(|row| self.stop_json(row)).collect()
    }
}

/// What the counters of a run say about what its scheme did, and did not.
pub fn deeds(summary: &Value) -> Vec<String> {
    let mut said = Vec::new();
    let count = |path: &str| summary.pointer(path).and_then(Value::as_u64).unwrap_or(0);
    let text = |key: &str| summary[key].as_str().unwrap_or_default();
    let stops = summary.pointer("/why/stops").and_then(Value::as_u64);
    let control = text("flow_control");
    if control != "none" && stops == Some(0) {
        let mut sentence = format!("Flow control ({control}) never stopped anything");
        let fullest = summary.pointer("/why/fullest_account");
        if let Some(share) = fullest.and_then(|account| account["share"].as_f64()) {
            sentence += &format!(
                ": at the sampling instants the fullest account reached {:.0} % of its threshold",
                100.0 * share
            );
        }
        said.push(sentence + ".");
    }
    let congestion = text("congestion_control");
    if summary.pointer("/why/marks_only") == Some(&Value::Bool(true)) && congestion != "none" && count("/marked") == 0 {
        said.push(format!("Congestion control ({congestion}) never acted: no packet was marked."));
    }
    match (count("/dropped/buffer"), count("/retransmitted/packets")) {
        (0, 0) => {}
        (0, again) => {
            said.push(format!("{} sent again, none for want of room in a buffer.", many(again as usize, "packet")))
        }
        (dropped, _) => said.push(format!("{} dropped for want of room.", many(dropped as usize, "packet"))),
    }
    let unfinished = count("/flows").saturating_sub(count("/finished")) as usize;
    if unfinished > 0 {
        said.push(format!("{} did not finish: {}.", many(unfinished, "flow"), text("ending")));
    }
    said
}

/// Answers a question. `parts` has where the time of flows went.
pub fn explain(
    records: &Records,
    causes: &Causes,
    parts: &[PartRow<'_>],
    question: &Question,
) -> Result<Explanation, Problem> {
    let (roots, of_stop) = causes.forest();
    let told = Told { records, causes, parts, roots, of_stop };
    match question {
        Question::Run => Ok(told.run()),
        Question::Flow(flow) => told.flow(*flow),
        Question::Link(link) => told.link(link),
        Question::At(at) => told.at(*at),
    }
}

/// Where the time of a flow went, the longest parts first: "Its time: 3 us pause at h4, 1 us queueing at sw0->sw1."
fn whereabouts(parts: &[&PartRow<'_>]) -> Option<String> {
    let mut longest = parts.to_vec();
    longest.sort_by_key(|part| std::cmp::Reverse(part.time_ps));
    let told: Vec<String> = longest
        .iter()
        .take(MOST)
        .map(|part| format!("{} {} at {}", time(part.time_ps), part.part, part.place))
        .collect();
    let rest: u64 = longest.iter().skip(MOST).map(|part| part.time_ps).sum();
    let rest = if rest > 0 { format!(", and {} in smaller parts", time(rest)) } else { String::new() };
    (!told.is_empty()).then(|| format!("Its time: {}{rest}.", told.join(", ")))
}

struct Told<'a> {
    records: &'a Records,
    causes: &'a Causes,
    parts: &'a [PartRow<'a>],
    roots: Vec<Root>,
    of_stop: Vec<usize>,
}

impl Told<'_> {
    fn run(&self) -> Explanation {
        let mut sentences = deeds(&self.records.summary);
        if self.roots.is_empty() && sentences.is_empty() {
            sentences.push("Nothing was stopped.".into());
        }
        let flows = &self.records.flows;
        for (place, root) in self.roots.iter().take(MOST).enumerate() {
            sentences.push(format!("{}. {}", place + 1, root.sentence(flows)));
        }
        if self.roots.len() > MOST {
            sentences.push(format!("And {}: see --json.", many(self.roots.len() - MOST, "smaller root")));
        }
        let json = json!({ "deeds": deeds(&self.records.summary), "roots": self.roots, "sentences": sentences });
        Explanation { sentences, json }
    }

    fn flow(&self, flow: u64) -> Result<Explanation, Problem> {
        let count = self.records.flows.len() as u64;
        if flow >= count {
            let message = format!("there is no flow {flow}: the run has {}", many(count as usize, "flow"));
            return Err(Problem::new("--flow", message).help(match count {
                0 => "leave --flow out".into(),
                _ => format!("write a number from 0 to {}, as in the column `flow` of flows.parquet", count - 1),
            }));
        }
        let waits: Vec<_> = self.causes.waits.iter().filter(|wait| wait.flow == flow).collect();
        let spans = |which: &dyn Fn(usize) -> bool| {
            let mut times = Times::default();
            for wait in waits.iter().filter(|wait| which(wait.stop)) {
                let until = self.causes.until(wait.stop);
                times.spans.push((until.saturating_sub(wait.time_ps), until));
                times.victim |= wait.victim;
            }
            (times.victim, times.total())
        };
        let name = flow_name(&self.records.flows, flow);
        let total = spans(&|_| true).1;
        let life = self.records.flows[flow as usize].received_ps;
        let mut sentences = vec![match (total, life) {
            (0, _) => format!("{name} waited at no stop."),
            (_, Some(life)) => format!("{name} waited at stops for {} of its {}.", time(total), time(life)),
            (_, None) => format!("{name} waited at stops for {} and did not finish.", time(total)),
        }];
        let mut parts: Vec<&PartRow<'_>> = self.parts.iter().filter(|part| part.flow as u64 == flow).collect();
        sentences.extend(whereabouts(&parts));
        parts.sort_by_key(|part| part.hop);
        let parts: Vec<Value> = parts
            .iter()
            .map(|part| json!({ "part": part.part, "place": part.place, "hop": part.hop, "time_ps": part.time_ps }))
            .collect();
        let mut by_root: BTreeMap<usize, Vec<&crate::causes::Wait>> = BTreeMap::new();
        waits.iter().for_each(|wait| by_root.entry(self.of_stop[wait.stop]).or_default().push(wait));
        let mut causes: Vec<(u64, bool, usize, usize)> = by_root
            .into_iter()
            .filter_map(|(root, waits)| {
                let longest = waits.iter().max_by_key(|wait| (wait.time_ps, std::cmp::Reverse(wait.stop)))?;
                let (victim, total) = spans(&|stop| self.of_stop[stop] == root);
                Some((total, victim, root, longest.stop))
            })
            .collect();
        causes.sort_by_key(|&(total, _, root, _)| (std::cmp::Reverse(total), root));
        for &(total, victim, root, longest) in causes.iter().take(MOST) {
            let part = if victim { ", through which it does not pass" } else { "" };
            sentences.push(format!(
                "{} because {}{part}. The longest of these stops:",
                time(total),
                self.roots[root].clause()
            ));
            sentences.extend(self.causes.tell(longest, &self.roots[root]).into_iter().map(|line| format!("  {line}")));
        }
        let list: Vec<Value> = causes
            .iter()
            .map(|&(waited_ps, victim, root, longest)| {
                let root = &self.roots[root];
                json!({ "root": root, "waited_ps": waited_ps, "victim": victim, "longest": self.causes.chain_json(longest) })
            })
            .collect();
        let json = json!({ "flow": flow, "waited_ps": total, "parts": parts, "causes": list, "sentences": sentences });
        Ok(Explanation { sentences, json })
    }

    /// The number of the port that a text names.
    fn port(&self, link: &str) -> Result<u64, Problem> {
        let name = |text: &str| text.split_whitespace().collect::<String>().to_lowercase();
        let wanted = name(link);
        let links = || self.records.links.iter().map(|row| format!("{}->{}", row.from, row.to));
        if let Some(place) = links().position(|known| name(&known) == wanted) {
            return Ok(place as u64);
        }
        let ends: Vec<&str> = wanted.split("->").collect();
        let near: Vec<String> = links()
            .filter(|known| {
                let known = name(known);
                let mut own = known.split("->");
                let from = own.next();
                ends.first().copied() == from || ends.get(1).copied() == own.next()
            })
            .take(MOST)
            .collect();
        let help = match (wanted.contains("->"), near.as_slice()) {
            (false, _) => "write both ends, the sender first, as in --link \"leaf0->spine1\"".into(),
            (true, []) => "write names of nodes as in the column `from` of links.parquet".into(),
            (true, near) => format!("these begin or end there: {}", near.join(", ")),
        };
        Err(Problem::new("--link", format!("there is no link {link}")).help(help))
    }

    fn link(&self, link: &str) -> Result<Explanation, Problem> {
        let port = self.port(link)?;
        let row = &self.records.links[port as usize];
        let name = format!("{}->{}", row.from, row.to);
        let rows: Vec<usize> =
            (0..self.causes.stops.len()).filter(|&row| self.causes.stops[row].port == port).collect();
        let mut sentences = Vec::new();
        if rows.is_empty() {
            sentences.push(format!("Nothing was stopped at {name}."));
        } else {
            let mut times = Times::default();
            rows.iter().for_each(|&row| times.spans.push((self.causes.stops[row].from_ps, self.causes.until(row))));
            sentences.push(format!(
                "{name} had something stopped for {}, by {}.",
                time(times.total()),
                many(rows.len(), "stop")
            ));
        }
        let by_root = self.by_root(&rows);
        sentences.extend(self.tell_roots(&by_root));
        for root in self.roots.iter().filter(|root| root.ports.contains(&name)) {
            sentences.push(format!("It is a root itself. {}", root.sentence(&self.records.flows)));
        }
        let json =
            json!({ "link": name, "stops": rows.len(), "causes": self.roots_json(&by_root), "sentences": sentences });
        Ok(Explanation { sentences, json })
    }

    fn at(&self, at: u64) -> Result<Explanation, Problem> {
        if at > self.causes.end_ps {
            let message = format!("{} is after the end of the run", time(at));
            let help = format!("write a time up to {}us", self.causes.end_ps / 1_000_000);
            return Err(Problem::new("--at", message).help(help));
        }
        let covers = |&row: &usize| {
            let stop = &self.causes.stops[row];
            stop.from_ps <= at && stop.until_ps.is_none_or(|until| at < until)
        };
        let rows: Vec<usize> = (0..self.causes.stops.len()).filter(covers).collect();
        let mut ports: Vec<u64> = rows.iter().map(|&row| self.causes.stops[row].port).collect();
        ports.sort_unstable();
        ports.dedup();
        let mut sentences = vec![match rows.len() {
            0 => format!("At {} nothing was stopped.", time(at)),
            stops => {
                let names: Vec<String> = ports.iter().take(MOST).map(|&port| self.causes.port(port)).collect();
                let more = if ports.len() > MOST { ", …" } else { "" };
                let (stops, count) = (many(stops, "stop"), many(ports.len(), "port"));
                format!("At {} there were {stops} at {count}: {}{more}.", time(at), names.join(", "))
            }
        }];
        let by_root = self.by_root(&rows);
        sentences.extend(self.tell_roots(&by_root));
        let json =
            json!({ "at_ps": at, "stops": rows.len(), "causes": self.roots_json(&by_root), "sentences": sentences });
        Ok(Explanation { sentences, json })
    }

    /// Stops by their roots: how long in all, how many, and the one with the longest chain, of these the longest stop.
    fn by_root(&self, rows: &[usize]) -> Vec<(u64, usize, usize, usize)> {
        let mut all: BTreeMap<usize, (u64, usize, (usize, u64), usize)> = BTreeMap::new();
        for &row in rows {
            let length = self.causes.until(row) - self.causes.stops[row].from_ps;
            let weight = (self.causes.chain(row).steps.len(), length);
            let entry = all.entry(self.of_stop[row]).or_insert((0, 0, (0, 0), row));
            entry.0 += length;
            entry.1 += 1;
            if weight > entry.2 {
                (entry.2, entry.3) = (weight, row);
            }
        }
        let mut all: Vec<_> = all.into_iter().map(|(root, (total, count, _, row))| (total, count, root, row)).collect();
        all.sort_by_key(|&(total, _, root, _)| (std::cmp::Reverse(total), root));
        all
    }

    fn tell_roots(&self, by_root: &[(u64, usize, usize, usize)]) -> Vec<String> {
        let mut sentences = Vec::new();
        for &(total, count, root, row) in by_root.iter().take(MOST) {
            let clause = self.roots[root].clause();
            sentences.push(format!("{}, {} in all, because {clause}. One of them:", many(count, "stop"), time(total)));
            sentences.extend(self.causes.tell(row, &self.roots[root]).into_iter().map(|line| format!("  {line}")));
        }
        sentences
    }

    fn roots_json(&self, by_root: &[(u64, usize, usize, usize)]) -> Value {
        let one = |&(total, count, root, row): &(u64, usize, usize, usize)| {
            let root = &self.roots[root];
            json!({ "root": root, "stopped_ps": total, "stops": count, "example": self.causes.chain_json(row) })
        };
        by_root.iter().map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::causes::{Fill, Scope, Wait};
    use crate::records::LinkRow;

    /// h1 sends to h2 and h3 to h4 over sw0 and sw1. Port 0 is h1->sw0, 1 is sw0->sw1, 2 is sw1->h2, 3 is h3->sw0.
    fn run() -> (Records, Causes) {
        let ends = [("h1", "sw0"), ("sw0", "sw1"), ("sw1", "h2"), ("h3", "sw0")];
        let ports = (0..).zip(ends).map(|(port, (from, to))| (port, (from.into(), to.into()))).collect();
        let stop = |port, from_ps, until_ps, by, fill: (u64, Waiting), cause: Option<usize>| Stop {
            port,
            scope: Scope::Class(0),
            from_ps,
            until_ps,
            by,
            ordered_ps: Some(from_ps - 10),
            fill: Some(Fill {
                port: fill.0,
                queue: 0,
                bytes: 5_000,
                flows: if cause.is_none() { 2 } else { 0 },
                waiting: fill.1,
            }),
            cause,
        };
        let causes = Causes {
            nodes: vec!["sw0".into(), "sw1".into()],
            ports,
            stops: vec![
                stop(1, 1_000, Some(9_000), 1, (2, Waiting::Busy), None),
                stop(0, 2_000, Some(8_000), 0, (1, Waiting::Stopped), Some(0)),
                stop(3, 2_000, Some(8_000), 0, (1, Waiting::Stopped), Some(0)),
            ],
            waits: vec![
                Wait { stop: 0, flow: 1, time_ps: 7_000, victim: true },
                Wait { stop: 1, flow: 0, time_ps: 6_000, victim: false },
                Wait { stop: 2, flow: 1, time_ps: 6_000, victim: true },
            ],
            end_ps: 20_000,
        };
        let flow = |src: &str, dst: &str| FlowRow {
            held_ps: 0,
            paused_ps: 0,
            src: src.into(),
            dst: dst.into(),
            group: "all".into(),
            size: 1000,
            start_ps: Some(0),
            injected_ps: None,
            received_ps: Some(15_000),
            acknowledged_ps: None,
            ideal_ps: None,
            slowdown: None,
            slowdown_acknowledged: None,
        };
        let link = |(from, to): (&str, &str)| LinkRow {
            paused_class_ps: 0,
            from: from.into(),
            to: to.into(),
            from_host: false,
            to_host: false,
            rate_bps: 1,
            sent_bytes: 0,
            paused_ps: 0,
        };
        let records = Records {
            folder: "nowhere".into(),
            summary: json!({ "flows": 2, "finished": 2, "flow_control": "pfc" }),
            flows: vec![flow("h1", "h2"), flow("h3", "h4")],
            buffers: Vec::new(),
            links: ends.map(link).to_vec(),
            ports: Vec::new(),
            rates: Vec::new(),
        };
        (records, causes)
    }

    #[test]
    fn a_flow_is_told_where_its_time_went() {
        let (records, causes) = run();
        let part = |flow, part, place, hop, time_ps| PartRow { flow, part, place, hop, time_ps };
        let parts = [
            part(0, "serialisation", "h1", None, 1_000),
            part(1, "pause", "h3", None, 6_000),
            part(1, "queueing", "sw0->sw1", Some(1), 9_000),
        ];
        let told = explain(&records, &causes, &parts, &Question::Flow(1)).unwrap();
        assert_eq!(told.sentences[1], "Its time: 9.00 ns queueing at sw0->sw1, 6.00 ns pause at h3.");
        assert_eq!(told.json["parts"][0]["part"], "pause", "in the order of the path");
    }

    #[test]
    fn a_root_has_what_grew_from_it_and_what_it_cost() {
        let (_, causes) = run();
        let (roots, of_stop) = causes.forest();
        assert_eq!((roots.len(), of_stop), (1, vec![0; 3]));
        let root = &roots[0];
        assert_eq!((root.kind, root.place.as_str(), root.flows, root.depth), (Kind::Saturated, "sw1->h2", 2, 2));
        assert_eq!((root.stops, root.stopped_ports, root.stopped_ps), (3, 3, 20_000));
        // From 2000 to 9000: what overlaps counts once.
        assert_eq!((root.victims, root.victim_ps, root.waited_ps), (1, 7_000, 13_000));
    }

    #[test]
    fn stops_that_wait_for_each_other_are_one_root() {
        let (_, mut causes) = run();
        causes.stops[0].cause = Some(1);
        let (roots, of_stop) = causes.forest();
        assert_eq!((roots.len(), of_stop), (1, vec![0; 3]));
        assert_eq!((roots[0].kind, roots[0].place.as_str()), (Kind::Deadlock, "h1->sw0, sw0->sw1"));
        assert_eq!(roots[0].depth, 3, "one step to the cycle and two in it");
        assert_eq!(causes.chain(2), crate::causes::Chain { steps: vec![2, 0, 1], cycle: Some(1) });
    }

    #[test]
    fn tables_are_read_back_as_they_were() {
        let (_, causes) = run();
        let folder = std::env::temp_dir().join(format!("tailwater-causes-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for (name, columns) in causes.columns() {
            crate::tables::write(&folder.join(name), &columns).unwrap();
        }
        let read = Causes::open(&folder, causes.end_ps);
        std::fs::remove_dir_all(&folder).unwrap();
        let read = read.unwrap().unwrap();
        assert_eq!((read.stops.len(), &read.waits, read.roots()), (3, &causes.waits, causes.roots()));
    }

    #[test]
    fn a_victim_hears_of_the_root_step_by_step() {
        let (records, causes) = run();
        let said = explain(&records, &causes, &[], &Question::Flow(1)).unwrap().sentences;
        assert_eq!(said[0], "flow 1 (h3 to h4, group \"all\") waited at stops for 7.00 ns of its 15.0 ns.");
        assert!(said[1].contains("sw1->h2 is saturated by 2 flows, through which it does not pass"), "{}", said[1]);
        let said = explain(&records, &causes, &[], &Question::Link("H1 -> SW0".into())).unwrap().sentences;
        assert_eq!(said[0], "h1->sw0 had something stopped for 6.00 ns, by 1 stop.");
        let steps = ["by order of sw0, because of sw0->sw1 with 5.00 KB, which was stopped itself", "by order of sw1"];
        steps.iter().zip(&said[2..]).for_each(|(step, line)| assert!(line.contains(step), "{line}"));
        let said = explain(&records, &causes, &[], &Question::At(1_500)).unwrap().sentences;
        assert_eq!(said[0], "At 1.50 ns there were 1 stop at 1 port: sw0->sw1.");
    }

    #[test]
    fn what_is_not_there_is_refused_with_what_is() {
        let (records, causes) = run();
        let refused = |question| {
            let problem = explain(&records, &causes, &[], &question).unwrap_err();
            format!("{} {}", problem.message, problem.help.clone().unwrap_or_default())
        };
        assert!(
            refused(Question::Flow(2)).contains("there is no flow 2: the run has 2 flows write a number from 0 to 1")
        );
        assert!(refused(Question::Link("sw0->h9".into())).contains("these begin or end there: sw0->sw1"));
        assert!(refused(Question::Link("sw0".into())).contains("write both ends"));
        assert!(refused(Question::At(20_001)).contains("after the end of the run"));
    }

    #[test]
    fn a_scheme_that_did_nothing_is_said_to_have_done_nothing() {
        let why = json!({ "stops": 0, "fullest_account": { "share": 0.612 }, "marks_only": true });
        let summary = json!({ "flow_control": "pfc", "congestion_control": "dcqcn", "marked": 0, "why": why });
        let said = deeds(&summary);
        assert_eq!(said.len(), 2);
        assert!(said[0].contains("never stopped anything: at the sampling instants the fullest account reached 61 %"));
        assert_eq!(said[1], "Congestion control (dcqcn) never acted: no packet was marked.");
    }
}
