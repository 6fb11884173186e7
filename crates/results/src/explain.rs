//! Why a run was slow, in sentences and as JSON.

mod deeds;
mod shares;

pub use deeds::deeds;
pub use shares::{Share, shares};

use crate::causes::{Causes, Filled, How, Kind, Loss, Root, Step, Stop, Times, Waiting};
use crate::parts::PartRow;
use crate::records::{FlowRow, Records};
use files::problem::Problem;
use serde::Serialize;
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
/// How many flows of a link are named.
const NAMED: usize = 4;

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
            Kind::Cycle => format!("{} waited for each other in a cycle when the run was stopped", self.place),
            Kind::Saturated if self.flows == 0 => format!("the link {} is saturated", self.place),
            Kind::Saturated => format!("the link {} is saturated by {}", self.place, many(self.flows as usize, "flow")),
            Kind::SlowReceiver => format!("{} takes packets more slowly than they come", self.place),
            Kind::LinkDown => format!("the link {} is down", self.place),
            Kind::NoPath => format!("the link {} leads nowhere: a link behind it is down", self.place),
            Kind::LossyLink => format!("the link {} loses packets", self.place),
            Kind::LinkRetry => {
                format!("the link {} repeats frames, or takes none before it has heard of some", self.place)
            }
            Kind::Scheme => {
                let rule = self.rule.as_ref().map(|rule| format!(": {rule}")).unwrap_or_default();
                format!("the scheme at {} holds, with no queue to blame{rule}", self.place)
            }
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
        text += ".";
        if self.stops > 0 {
            text += &format!(
                " {} at {} from {} {until}, {} in all; chains have up to {}.",
                many(self.stops, "stop"),
                many(self.stopped_ports, "port"),
                time(self.from_ps),
                time(self.stopped_ps),
                many(self.depth, "step"),
            );
        }
        let faulty = matches!(self.kind, Kind::LinkDown | Kind::NoPath | Kind::LossyLink | Kind::LinkRetry);
        if self.lost > 0 {
            let lost = if self.lost == 1 { "was" } else { "were" };
            let how = if faulty { "lost there" } else { "dropped for want of room because of it" };
            // Of stops it was said before.
            let when =
                if self.stops > 0 && !faulty { String::new() } else { format!(" from {} {until}", time(self.from_ps)) };
            text += &format!(
                " {} of {} {lost} {how}{when}.",
                many(self.lost as usize, "packet"),
                many(self.waiting_flows, "flow"),
            );
        }
        if !self.fillers.is_empty() {
            let share = |filled: &Filled| format!("{:.0} % {}", 100.0 * filled.share, flow_name(flows, filled.flow));
            let told: Vec<String> = self.fillers.iter().map(share).collect();
            text += &format!(" What filled it then was {}.", told.join("; "));
        }
        if faulty {
            text += &match (self.waited_ps, self.lost) {
                (0, 0) => " It cost no flow any time.".to_string(),
                // What it cost those that did not finish is not known.
                (0, _) => String::new(),
                (cost, 0) => format!(" {} waited for it {} in all.", many(self.waiting_flows, "flow"), time(cost)),
                (cost, _) => format!(" It cost them {} of sending again, or of waiting for it.", time(cost)),
            };
        } else if self.waiting_flows > 0 {
            let did = match (self.stops, self.lost_ps) {
                (0, _) => "spent",
                _ => "waited",
            };
            let again = match (self.stops, self.lost_ps) {
                (_, 0) => String::new(),
                (0, _) => " on sending again".into(),
                (_, lost) => format!(", {} of that at sending again", time(lost)),
            };
            text += &format!(" {} {did} {} in all{again}", many(self.waiting_flows, "flow"), time(self.waited_ps));
            text += &match self.victims {
                0 => "; no victims: all of them pass through it.".into(),
                victims => {
                    let worst: Vec<String> = self
                        .worst_victims
                        .iter()
                        .map(|victim| {
                            let end = if victim.for_ever { " and did not end" } else { "" };
                            format!("{}, {}{end}", flow_name(flows, victim.flow), time(victim.waited_ps))
                        })
                        .collect();
                    let verb = if victims == 1 { "does" } else { "do" };
                    format!(
                        "; {victims} of them {verb} not pass through it and {did} {}: {}.",
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

    /// What was stopped in a step: "held queue 0", or "held queue 1 and held queue 0 in turn".
    fn all_stopped(&self, chain: &[usize]) -> String {
        let mut all: Vec<String> = Vec::new();
        for what in chain.iter().map(|&row| self.what(&self.stops[row])) {
            if !all.contains(&what) {
                all.push(what);
            }
        }
        match all.as_slice() {
            [only] => only.clone(),
            [first, second] => format!("{first} and {second} in turn"),
            [first, others @ ..] => format!("{first} and {} others in turn", others.len()),
            [] => String::new(),
        }
    }

    /// What filled the node that ordered a stop, in a clause that begins with a comma.
    fn because(&self, stop: &Stop) -> String {
        let Some(fill) = stop.fill else { return String::new() };
        if fill.waiting == Waiting::Receiver {
            return format!(", because {} itself was full", self.nodes[stop.by]);
        }
        let state = match fill.waiting {
            Waiting::Stopped => ", which was stopped itself",
            Waiting::Draining => ", which still sent what a stop had left",
            Waiting::Released => ", which was idle until a stop ended and let go of all at once",
            Waiting::Down => ", which was down",
            Waiting::Busy | Waiting::Receiver => "",
        };
        let bytes = if fill.bytes == 0 { String::new() } else { format!(" with {}", size(fill.bytes)) };
        let also: Vec<&str> = stop.also.iter().map(|&port| self.port(port)).collect();
        let also =
            if also.is_empty() { String::new() } else { format!(", and of {} with about as much", also.join(", ")) };
        format!(", because of {}{bytes}{state}{also}", self.port(fill.port))
    }

    /// From a stop to its root, a line for each step and one for the root.
    pub fn tell(&self, row: usize, root: &Root) -> Vec<String> {
        let chain = self.chain(row);
        let mut lines = Vec::new();
        let mut rest = chain.steps.as_slice();
        for Step { stop: row, first, count } in self.steps(&chain) {
            let own;
            (own, rest) = rest.split_at(count);
            let (stop, first) = (&self.stops[row], &self.stops[first]);
            let (port, what) = (self.port(stop.port), self.all_stopped(own));
            let length = match (stop.until_ps, count) {
                (Some(until), 1) => format!("for {} from {}", time(until - stop.from_ps), time(stop.from_ps)),
                (Some(until), _) => format!("{count} times from {} to {}", time(first.from_ps), time(until)),
                (None, 1) => format!("from {} to the end", time(stop.from_ps)),
                (None, _) => format!("{count} times from {} to the end", time(first.from_ps)),
            };
            let (by, begun) = (&self.nodes[first.by], if count > 1 { ", at first" } else { "" });
            let indent = if lines.is_empty() { "" } else { "  " };
            lines.push(format!(
                "{indent}{port} had {what} stopped {length}, by order of {by}{begun}{}.",
                self.because(first)
            ));
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
            "also": stop.also.iter().map(|&port| self.port(port)).collect::<Vec<_>>(),
            "rule": stop.rule.map(|rule| self.rules[rule].as_str()),
        })
    }

    /// A chain port by port; where a port was stopped several times in a row, how often.
    fn chain_json(&self, row: usize) -> Value {
        let step = |step: Step| {
            let mut told = self.stop_json(step.stop);
            if step.count > 1 {
                told["times"] = step.count.into();
                told["first"] = self.stop_json(step.first);
            }
            told
        };
        self.steps(&self.chain(row)).into_iter().map(step).collect()
    }
}

/// Answers a question. `parts` has where the time of flows went.
pub fn explain(
    records: &Records,
    causes: &Causes,
    parts: &[PartRow<'_>],
    question: &Question,
) -> Result<Explanation, Problem> {
    let (roots, of_stop, of_loss) = causes.whole_forest();
    let told = Told { records, causes, parts, roots, of_stop, of_loss };
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

/// What a port did.
#[derive(Serialize)]
struct Did {
    sent_bytes: u64,
    rate_bps: u64,
    /// The share of what its link could have carried in all the run.
    used: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    most_queued_bytes: Option<u64>,
    /// Flows whose completing packets left by it, the largest first, and how long these packets waited there.
    flows: Vec<usize>,
    queueing_ps: u64,
    stopped_ps: u64,
    /// Stops that were ordered because of what waited for it, and those of them that have a cause themselves.
    ordered: usize,
    passed_on: usize,
}

impl Did {
    /// How much it carried, how long its queue was, and who used it.
    fn sentences(&self, rows: &[FlowRow], name: &str) -> Vec<String> {
        let rate = scaled(self.rate_bps as f64, 1000.0, &["b/s", "Kb/s", "Mb/s", "Gb/s", "Tb/s"]);
        let queue = match self.most_queued_bytes {
            None => String::new(),
            Some(0) => " Nothing ever waited for it.".into(),
            Some(bytes) => format!(" The most that waited for it was {}.", size(bytes)),
        };
        let mut sentences = vec![format!(
            "{name} sent {}, {:.1} % of what {rate} are in all the run.{queue}",
            size(self.sent_bytes),
            100.0 * self.used
        )];
        let named: Vec<String> = self.flows.iter().take(NAMED).map(|flow| flow_name(rows, *flow as u64)).collect();
        let more = self.flows.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        let waited = match (self.queueing_ps, self.stopped_ps) {
            (0, 0) => String::new(),
            (queued, 0) => format!(" Their last packets queued there for {} in all.", time(queued)),
            (queued, stopped) => format!(
                " Their last packets queued there for {} in all, and were stopped for {}.",
                time(queued),
                time(stopped)
            ),
        };
        sentences.push(match self.flows.len() {
            0 => "No flow that ended took it with its last packet.".into(),
            1 => format!("1 flow that ended took it: {}.{waited}", named.join("; ")),
            all => format!("{all} flows that ended took it, the largest of them {}{more}.{waited}", named.join("; ")),
        });
        sentences
    }
}

/// A run with all that is known of its causes.
struct Told<'a> {
    records: &'a Records,
    causes: &'a Causes,
    parts: &'a [PartRow<'a>],
    roots: Vec<Root>,
    /// By stop, and by loss, the place of its root.
    of_stop: Vec<usize>,
    of_loss: Vec<usize>,
}

impl Told<'_> {
    fn run(&self) -> Explanation {
        let mut sentences = deeds(&self.records.summary);
        if self.roots.is_empty() && sentences.is_empty() {
            sentences.push("Nothing was stopped.".into());
        }
        let flows = &self.records.flows;
        for (place, root) in self.roots.iter().take(MOST).enumerate() {
            let meanwhile = self.meanwhile(root).map(|told| format!(" {told}")).unwrap_or_default();
            sentences.push(format!("{}. {}{meanwhile}", place + 1, root.sentence(flows)));
        }
        if self.roots.len() > MOST {
            sentences.push(format!("And {}: see --json.", many(self.roots.len() - MOST, "smaller root")));
        }
        let shares = shares::of(self);
        sentences.extend(shares.iter().map(Share::sentence));
        let deeds = deeds(&self.records.summary);
        let json = json!({ "deeds": deeds, "roots": self.roots, "shares": shares, "sentences": sentences });
        Explanation { sentences, json }
    }

    /// What may be why a link was saturated: which links of the same node were down meanwhile, whose traffic it carried, and that it repeated frames itself.
    fn meanwhile(&self, root: &Root) -> Option<String> {
        let same = |other: &Root| other.kind == Kind::LinkRetry && other.place == root.place;
        let repeated = root.kind == Kind::Saturated && self.roots.iter().any(same);
        let repeated = repeated.then(|| "The link repeated frames meanwhile.".to_string());
        let all: Vec<String> = self.down_meanwhile(root).into_iter().chain(repeated).collect();
        (!all.is_empty()).then(|| all.join(" "))
    }

    fn down_meanwhile(&self, root: &Root) -> Option<String> {
        let (from, _) = root.place.split_once("->").filter(|_| root.kind == Kind::Saturated)?;
        let end = root.until_ps.unwrap_or(u64::MAX);
        let other = |outage: &Value| {
            let (a, b) = (outage["a"].as_str()?, outage["b"].as_str()?);
            let to = if a == from { b } else { Some(a).filter(|_| b == from)? };
            let overlaps =
                outage["from_ps"].as_u64()? < end && outage["until_ps"].as_u64().is_none_or(|u| u > root.from_ps);
            overlaps.then(|| format!("{from}->{to}"))
        };
        let mut down: Vec<String> = self.records.summary["outages"].as_array()?.iter().filter_map(other).collect();
        down.dedup();
        let verb = if down.len() == 1 { "was" } else { "were" };
        (!down.is_empty()).then(|| format!("Meanwhile {} {verb} down.", down.join(", ")))
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
        let own = self.causes.waits.iter().filter(|wait| wait.flow == flow);
        let waits: Vec<_> = own.filter(|wait| self.causes.span(wait).is_some()).collect();
        let spans = |which: &dyn Fn(usize) -> bool| {
            let mut times = Times::default();
            for wait in waits.iter().filter(|wait| which(wait.stop)) {
                times.spans.extend(self.causes.span(wait));
                times.victim |= wait.victim;
            }
            (times.victim, times.total())
        };
        let name = flow_name(&self.records.flows, flow);
        let total = spans(&|_| true).1;
        let FlowRow { received_ps: life, start_ps, .. } = self.records.flows[flow as usize];
        let mut sentences = vec![match (total, life) {
            (0, None) if start_ps.is_none_or(|start| start >= self.causes.end_ps) => {
                format!("{name} had not begun when the run ended.")
            }
            (0, None) => format!("{name} waited at no stop and did not finish."),
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
        let lost = self.losses_of(flow);
        sentences.extend(lost.iter().take(MOST).map(|(loss, root)| self.tell_loss(loss, root)));
        let list: Vec<Value> = causes
            .iter()
            .map(|&(waited_ps, victim, root, longest)| {
                let root = &self.roots[root];
                json!({ "root": root, "waited_ps": waited_ps, "victim": victim, "longest": self.causes.chain_json(longest) })
            })
            .collect();
        let lost: Vec<Value> = lost
            .iter()
            .map(|(loss, root)| {
                json!({
                    "root": root,
                    "how": loss.how.word(),
                    "port": self.causes.port(loss.port),
                    "packets": loss.packets,
                    "cost_ps": loss.cost_ps,
                    "victim": loss.victim,
                    "sentence": self.tell_loss(loss, root),
                })
            })
            .collect();
        let json = json!({
            "flow": flow,
            "waited_ps": total,
            "parts": parts,
            "causes": list,
            "losses": lost,
            "sentences": sentences,
        });
        Ok(Explanation { sentences, json })
    }

    /// What a flow lost, and the roots of that, the costliest first.
    fn losses_of(&self, flow: u64) -> Vec<(&Loss, &Root)> {
        let own = (0..self.causes.losses.len()).filter(|&row| self.causes.losses[row].flow == flow);
        let mut all: Vec<(&Loss, &Root)> =
            own.map(|row| (&self.causes.losses[row], &self.roots[self.of_loss[row]])).collect();
        all.sort_by_key(|(loss, _)| (std::cmp::Reverse((loss.cost_ps, loss.packets)), loss.port));
        all
    }

    fn tell_loss(&self, loss: &Loss, root: &Root) -> String {
        let port = self.causes.port(loss.port);
        let packets = many(loss.packets as usize, "packet");
        let verb = if loss.packets == 1 { "was" } else { "were" };
        let what = match (loss.how, loss.packets) {
            (How::Retry, _) => format!("it waited while {port} repeated frames, or until it had heard of some"),
            (_, 0) => format!("it waited for {port} to come back"),
            (How::Room, _) if root.kind == Kind::SlowReceiver => format!("{packets} {verb} dropped at {}", root.place),
            (How::Room, _) => format!("there was no room for {packets} at {port}"),
            (How::Fault | How::Down | How::NoPath, _) => format!("{packets} {verb} lost on {port}"),
        };
        let part = if loss.victim { ", through which it does not pass" } else { "" };
        // What it lost after its last byte had come cost it nothing.
        let cost = match loss.cost_ps {
            0 => "No time".into(),
            cost if loss.packets == 0 => time(cost),
            cost => format!("{} of sending again", time(cost)),
        };
        let root = match loss.how {
            How::Room => format!(", as {}{part}", root.clause()),
            _ => String::new(),
        };
        format!("{cost} because {what}{root}.")
    }

    /// The number of the port that a text names.
    fn port(&self, link: &str) -> Result<u64, Problem> {
        let name = |text: &str| text.split_whitespace().collect::<String>().to_lowercase();
        let wanted = name(link);
        let links = || self.causes.names.iter();
        if let Some(place) = links().position(|known| name(known) == wanted) {
            return Ok(place as u64);
        }
        let parallel = |known: &&String| name(known).strip_prefix(&wanted).is_some_and(|rest| rest.starts_with('#'));
        let several: Vec<&str> = links().filter(parallel).map(String::as_str).collect();
        if !several.is_empty() {
            let message = format!("there are {} links {link}", several.len());
            return Err(Problem::new("--link", message).help(format!("write one of {}", several.join(", "))));
        }
        let ends: Vec<&str> = wanted.split("->").collect();
        let near: Vec<&str> = links()
            .filter(|known| {
                let known = name(known);
                let mut own = known.split("->");
                let from = own.next();
                ends.first().copied() == from || ends.get(1).copied() == own.next()
            })
            .take(MOST)
            .map(String::as_str)
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
        let name = self.causes.port(port).to_string();
        let rows: Vec<usize> =
            (0..self.causes.stops.len()).filter(|&row| self.causes.stops[row].port == port).collect();
        let did = self.did(port);
        let mut sentences = did.sentences(&self.records.flows, &name);
        if rows.is_empty() {
            sentences.push("Nothing was stopped there.".into());
        } else {
            let mut times = Times::default();
            rows.iter().for_each(|&row| times.spans.push((self.causes.stops[row].from_ps, self.causes.until(row))));
            let mut by: Vec<&str> =
                rows.iter().map(|&row| self.causes.nodes[self.causes.stops[row].by].as_str()).collect();
            by.sort_unstable();
            by.dedup();
            let more = if by.len() > MOST { ", …" } else { "" };
            by.truncate(MOST);
            sentences.push(format!(
                "It had something stopped for {}, by {} that {}{more} ordered.",
                time(times.total()),
                many(rows.len(), "stop"),
                by.join(", ")
            ));
        }
        let mut lead = sentences.clone();
        let by_root = self.by_root(&rows);
        sentences.extend(self.tell_roots(&by_root));
        let own: Vec<&Root> = self.roots.iter().filter(|root| root.ports.contains(&name)).collect();
        for root in &own {
            sentences.push(format!("It is a root itself. {}", root.sentence(&self.records.flows)));
        }
        let orders: Option<String> = match (did.ordered, did.passed_on) {
            (0, _) => Some("It stopped nobody: no stop was ordered because of what waited for it.".into()),
            (_, 0) => None,
            (all, passed_on) => Some(format!(
                "Because of what waited for it {} ordered{} while it was stopped itself or still sent what a stop had left.",
                if all == 1 { "1 stop was".into() } else { format!("{all} stops were") },
                if all == passed_on { String::new() } else { format!(", {passed_on} of them") }
            )),
        };
        lead.extend(orders.clone());
        sentences.extend(orders);
        let json = json!({
            "link": name,
            "did": did,
            "lead": lead,
            "stops": rows.len(),
            "causes": self.roots_json(&by_root),
            "sentences": sentences,
        });
        Ok(Explanation { sentences, json })
    }

    /// What a port did, whether it was stopped or not.
    fn did(&self, port: u64) -> Did {
        let name = self.causes.port(port);
        let link = self.records.links.get(port as usize);
        let here = || self.parts.iter().filter(|part| part.place == name && part.hop.is_some());
        let mut flows: Vec<usize> = here().map(|part| part.flow).collect();
        flows.dedup();
        let size = |flow: &usize| self.records.flows.get(*flow).map_or(0, |row| row.size);
        flows.sort_by_key(|flow| (std::cmp::Reverse(size(flow)), *flow));
        let sum = |part: &str| here().filter(|row| row.part == part).map(|row| row.time_ps).sum();
        let because = self.causes.stops.iter().filter(|stop| stop.fill.is_some_and(|fill| fill.port == port));
        let whole = link.map_or(0.0, |link| link.rate_bps as f64 / 8e12 * self.causes.end_ps as f64);
        let sent_bytes = link.map_or(0, |link| link.sent_bytes);
        Did {
            sent_bytes,
            rate_bps: link.map_or(0, |link| link.rate_bps),
            used: if whole > 0.0 { sent_bytes as f64 / whole } else { 0.0 },
            // What waits at a host's NIC is flows, not packets, unless it forwards.
            most_queued_bytes: link
                .and_then(|link| link.most_queued_bytes.filter(|bytes| *bytes > 0 || !link.from_host)),
            queueing_ps: sum("queueing"),
            stopped_ps: sum("stopped"),
            ordered: because.clone().count(),
            passed_on: because.filter(|stop| stop.cause.is_some()).count(),
            flows,
        }
    }

    fn at(&self, at: u64) -> Result<Explanation, Problem> {
        if at > self.causes.end_ps {
            let message = format!("{} is after the end of the run", time(at));
            let help = match self.causes.end_ps {
                end @ ..1_000_000 => format!("write a time up to {end}ps"),
                end => format!("write a time up to {}us", end / 1_000_000),
            };
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
                let names: Vec<&str> = ports.iter().take(MOST).map(|&port| self.causes.port(port)).collect();
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
        let ends = self.causes.ends();
        for &row in rows {
            let length = self.causes.until(row) - self.causes.stops[row].from_ps;
            let weight = (ends[row].1, length);
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
    use crate::causes::{Fill, How, Loss, Scope, Wait};
    use crate::records::LinkRow;

    /// h1 sends to h2 and h3 to h4 over sw0 and sw1. Port 0 is h1->sw0, 1 is sw0->sw1, 2 is sw1->h2, 3 is h3->sw0.
    fn run() -> (Records, Causes) {
        let ends = [("h1", "sw0"), ("sw0", "sw1"), ("sw1", "h2"), ("h3", "sw0")];
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
            also: Vec::new(),
            rule: None,
            cause,
        };
        let causes = Causes {
            nodes: ["sw0", "sw1", "h1", "h2", "h3"].map(String::from).to_vec(),
            ends: vec![(2, 0), (0, 1), (1, 3), (4, 0)],
            names: ends.map(|(from, to)| format!("{from}->{to}")).to_vec(),
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
            ..Causes::default()
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
            most_queued_bytes: Some(700),
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
        let place = |causes: &Causes| (causes.roots()[0].kind, causes.roots()[0].place.clone());
        assert_eq!(place(&causes), (Kind::Cycle, "h1->sw0, sw0->sw1".into()), "the run might have gone on");
        causes.deadlock = true;
        let (roots, of_stop) = causes.forest();
        assert_eq!((roots.len(), of_stop), (1, vec![0; 3]));
        assert_eq!((roots[0].kind, roots[0].place.as_str()), (Kind::Deadlock, "h1->sw0, sw0->sw1"));
        assert_eq!(roots[0].depth, 3, "one step to the cycle and two in it");
        assert_eq!(causes.chain(2), crate::causes::Chain { steps: vec![2, 0, 1], cycle: Some(1) });
    }

    #[test]
    fn a_deadlock_comes_first_and_a_lossy_link_before_what_costs_victims_less() {
        let (_, mut causes) = run();
        let lone = |port, cause| Stop { port, cause, until_ps: None, ..causes.stops[1].clone() };
        let (a, b) = (lone(0, Some(4)), lone(3, Some(3)));
        causes.stops.extend([a, b]);
        causes.deadlock = true;
        let loss = Loss {
            port: 1,
            how: How::Fault,
            flow: 0,
            packets: 2,
            first_ps: 5,
            last_ps: 6,
            cost_ps: 60_000,
            fill: None,
            cause: None,
            victim: false,
        };
        causes.losses.push(loss);
        let roots = causes.roots();
        let kinds: Vec<Kind> = roots.iter().map(|root| root.kind).collect();
        assert_eq!(kinds, [Kind::Deadlock, Kind::LossyLink, Kind::Saturated]);
        assert!(roots[0].victim_ps == 0 && roots[2].victim_ps > 0, "nobody waited at the deadlock in these tables");
        // Who waits for a link without losing anything there does not say when it lost something.
        let waited = Loss { how: How::Down, packets: 0, first_ps: 0, last_ps: 19_000, ..causes.losses[0] };
        let lost = Loss { how: How::Down, first_ps: 300, last_ps: 400, ..causes.losses[0] };
        let mut down = causes.clone();
        down.losses = vec![waited, lost];
        let root = down.roots().into_iter().find(|root| root.kind == Kind::LinkDown).unwrap();
        assert_eq!((root.from_ps, root.until_ps, root.lost), (300, Some(400), 2));
        down.losses.pop();
        let root = down.roots().into_iter().find(|root| root.kind == Kind::LinkDown).unwrap();
        assert_eq!((root.from_ps, root.until_ps, root.lost), (0, Some(19_000), 0));
        let said = roots[1].sentence(&[]);
        let end = "It cost them 60.0 ns of sending again, or of waiting for it.";
        assert_eq!(
            said,
            format!("The link sw0->sw1 loses packets. 2 packets of 1 flow were lost there from 5 ps until 6 ps. {end}")
        );
    }

    #[test]
    fn queues_of_a_port_that_stop_each_other_again_and_again_are_one_step() {
        let (_, mut causes) = run();
        // Two queues of sw0->sw1 in turn, the first of them because of sw1->h2.
        let first = causes.stops.len();
        for turn in 0..40u64 {
            let (from_ps, until_ps) = (1_000 + turn * 100, Some(1_100 + turn * 100));
            let cause = if turn == 0 { Some(0) } else { Some(first + turn as usize - 1) };
            let scope = Scope::Held(turn % 2);
            causes.stops.push(Stop { scope, from_ps, until_ps, cause, ..causes.stops[0].clone() });
        }
        causes.stops[1].cause = Some(first + 39);
        let (roots, of_stop) = causes.forest();
        assert_eq!(roots[of_stop[1]].depth, 2);
        let said = causes.tell(1, &roots[of_stop[1]]);
        assert_eq!(said.len(), 3, "{said:?}");
        assert!(
            said[1].contains("sw0->sw1 had held queue 1 and 2 others in turn stopped 41 times from 1.00 ns to 5.00 ns")
        );
        let chain = causes.chain_json(1);
        assert_eq!((chain.as_array().map(Vec::len), &chain[1]["times"]), (Some(2), &json!(41)));
    }

    #[test]
    fn what_takes_more_than_a_quarter_of_the_time_of_some_flows_is_told() {
        let (mut records, causes) = run();
        records.summary["groups"] = json!([{ "name": "all" }, { "name": "nobody" }]);
        records.links[2].to_host = true;
        (records.flows[0].slowdown, records.flows[1].slowdown) = (Some(2.0), Some(3.0));
        let part = |flow, part, place, hop, time_ps| PartRow { flow, part, place, hop, time_ps };
        let parts = [
            // h1 was paused because of sw1->h2, and then its packet waited there.
            part(0, "pause", "h1", None, 6_000),
            part(0, "serialisation", "h1", None, 2_000),
            part(0, "propagation", "h1->sw0", Some(0), 4_000),
            part(0, "queueing", "sw1->h2", Some(2), 3_000),
            // h3 sends to h4, and was paused because of it, too, and at sw0->sw1 for the last 1000 of that.
            part(1, "pause", "h3", None, 6_000),
            part(1, "serialisation", "h3", None, 1_000),
            part(1, "propagation", "h3->sw0", Some(0), 1_000),
            part(1, "stopped", "sw0->sw1", Some(1), 1_000),
            part(1, "queueing", "sw0->sw1", Some(1), 6_000),
        ];
        let said: Vec<String> = shares(&records, &causes, &parts).iter().map(Share::sentence).collect();
        assert_eq!(
            said,
            [
                "47 % of the time of flow 1, the slowest, is head-of-line blocking at h3, sw0->sw1, because the link sw1->h2 is saturated \
                 by 2 flows.",
                "40 % of the time of flow 1, the slowest, is queueing at 1 link that is no root: sw0->sw1.",
                "30 % of the time of group \"all\" (2 flows) is waiting behind 1 incast: sw1->h2.",
            ]
        );
        let all = explain(&records, &causes, &parts, &Question::Run).unwrap();
        assert_eq!(all.json["shares"][2]["cause_ps"], 9_000);
        assert!(all.sentences.ends_with(&said), "{:?}", all.sentences);
    }

    #[test]
    fn tables_are_read_back_as_they_were() {
        let (mut records, mut causes) = run();
        causes.rules = vec!["it is so".into()];
        (causes.stops[1].fill, causes.stops[1].cause, causes.stops[1].rule) = (None, None, Some(0));
        causes.stops[2].also = vec![0, 3];
        let loss = Loss {
            port: 2,
            how: How::NoPath,
            flow: 1,
            packets: 3,
            first_ps: 1,
            last_ps: 2,
            cost_ps: 9,
            fill: None,
            cause: None,
            victim: false,
        };
        causes.losses = vec![loss];
        records.folder = std::env::temp_dir().join(format!("tailwater-causes-{}", std::process::id()));
        records.summary["end_ps"] = causes.end_ps.into();
        std::fs::create_dir_all(&records.folder).unwrap();
        for (name, columns) in causes.columns() {
            crate::tables::write(&records.folder.join(name), &columns).unwrap();
        }
        let read = Causes::open(&records);
        std::fs::remove_dir_all(&records.folder).unwrap();
        let read = read.unwrap().unwrap();
        // Nodes may have other numbers.
        let by = |causes: &Causes, stop: &Stop| causes.nodes[stop.by].clone();
        assert!(read.stops.iter().zip(&causes.stops).all(|(a, b)| by(&read, a) == by(&causes, b)));
        let rest = |causes: &Causes| causes.stops.iter().map(|stop| Stop { by: 0, ..stop.clone() }).collect::<Vec<_>>();
        assert_eq!((rest(&read), &read.waits, &read.losses), (rest(&causes), &causes.waits, &causes.losses));
        assert_eq!((&read.names, &read.rules, read.roots()), (&causes.names, &causes.rules, causes.roots()));
    }

    #[test]
    fn a_victim_hears_of_the_root_step_by_step() {
        let (records, causes) = run();
        let said = explain(&records, &causes, &[], &Question::Flow(1)).unwrap().sentences;
        assert_eq!(said[0], "flow 1 (h3 to h4, group \"all\") waited at stops for 7.00 ns of its 15.0 ns.");
        assert!(said[1].contains("sw1->h2 is saturated by 2 flows, through which it does not pass"), "{}", said[1]);
        let said = explain(&records, &causes, &[], &Question::Link("H1 -> SW0".into())).unwrap().sentences;
        assert_eq!(said[2], "It had something stopped for 6.00 ns, by 1 stop that sw0 ordered.");
        let steps = ["by order of sw0, because of sw0->sw1 with 5.00 KB, which was stopped itself", "by order of sw1"];
        steps.iter().zip(&said[4..]).for_each(|(step, line)| assert!(line.contains(step), "{line}"));
        let said = explain(&records, &causes, &[], &Question::At(1_500)).unwrap().sentences;
        assert_eq!(said[0], "At 1.50 ns there were 1 stop at 1 port: sw0->sw1.");
    }

    #[test]
    fn a_saturated_link_that_repeats_is_told_so() {
        let (records, mut causes) = run();
        causes.losses = vec![Loss {
            port: 2,
            how: How::Retry,
            flow: 1,
            packets: 0,
            first_ps: 0,
            last_ps: 15_000,
            cost_ps: 2_000,
            fill: None,
            cause: None,
            victim: false,
        }];
        let said = explain(&records, &causes, &[], &Question::Run).unwrap().sentences;
        let of = |kind: &str| said.iter().find(|line| line.contains(kind)).unwrap_or_else(|| panic!("{said:?}"));
        assert!(of("saturated").ends_with(" 7.00 ns. The link repeated frames meanwhile."), "{said:?}");
        let wanted = "The link sw1->h2 repeats frames, or takes none before it has heard of some. 1 flow waited for it 2.00 ns in all.";
        assert!(of("repeats frames").ends_with(wanted), "{said:?}");
        let said = explain(&records, &causes, &[], &Question::Flow(1)).unwrap().sentences;
        let wanted = "2.00 ns because it waited while sw1->h2 repeated frames, or until it had heard of some.";
        assert!(said.iter().any(|line| line == wanted), "{said:?}");
    }

    #[test]
    fn a_flow_that_did_not_end_or_begin_is_told_so() {
        let (mut records, mut causes) = run();
        causes.waits.clear();
        records.flows[0].received_ps = None;
        let said = |records: &Records| explain(records, &causes, &[], &Question::Flow(0)).unwrap().sentences[0].clone();
        assert!(said(&records).ends_with("waited at no stop and did not finish."));
        for start in [None, Some(20_000), Some(50_000)] {
            records.flows[0].start_ps = start;
            assert!(said(&records).ends_with("had not begun when the run ended."));
        }
    }

    #[test]
    fn what_waits_when_its_flow_has_ended_costs_it_nothing() {
        let (mut records, mut causes) = run();
        // Packets that were sent again wait on, at two stops from 2 to 9 ns.
        records.flows[1].received_ps = Some(5_000);
        causes.ended_ps = vec![15_000, 5_000];
        let said = explain(&records, &causes, &[], &Question::Flow(1)).unwrap().sentences;
        assert_eq!(said[0], "flow 1 (h3 to h4, group \"all\") waited at stops for 3.00 ns of its 5.00 ns.");
        let root = &causes.roots()[0];
        assert_eq!((root.victims, root.victim_ps, root.waited_ps), (1, 3_000, 9_000));
        // One that had ended before is none of its victims.
        causes.ended_ps[1] = 1_000;
        assert_eq!((causes.roots()[0].victims, causes.roots()[0].waiting_flows), (0, 1));
        let said = explain(&records, &causes, &[], &Question::Flow(1)).unwrap().sentences;
        assert!(said[0].ends_with("waited at no stop."), "{said:?}");
    }

    #[test]
    fn a_link_that_stopped_nobody_is_told_by_what_it_did() {
        let (mut records, mut causes) = run();
        (records.links[3].rate_bps, records.links[3].sent_bytes) = (8_000_000_000_000, 5_000);
        causes.stops.pop();
        causes.waits.pop();
        let part = |flow, part, place, hop, time_ps| PartRow { flow, part, place, hop, time_ps };
        let parts = [
            part(0, "serialisation", "h1->sw0", Some(0), 10),
            part(1, "serialisation", "h3->sw0", Some(0), 10),
            part(1, "queueing", "h3->sw0", Some(0), 40),
        ];
        let told = explain(&records, &causes, &parts, &Question::Link("h3->sw0".into())).unwrap();
        assert_eq!(
            told.sentences,
            [
                "h3->sw0 sent 5.00 KB, 25.0 % of what 8.00 Tb/s are in all the run. The most that waited for it was 700 B.",
                "1 flow that ended took it: flow 1 (h3 to h4, group \"all\"). Their last packets queued there for 40 ps in all.",
                "Nothing was stopped there.",
                "It stopped nobody: no stop was ordered because of what waited for it.",
            ]
        );
        assert_eq!((&told.json["did"]["flows"], &told.json["did"]["used"]), (&json!([1]), &json!(0.25)));
        let told = explain(&records, &causes, &parts, &Question::Link("sw0->sw1".into())).unwrap();
        let last = "Because of what waited for it 1 stop was ordered while it was stopped itself or still sent what a stop had left.";
        assert_eq!(told.sentences.last().unwrap(), last);
    }

    #[test]
    fn what_never_ends_comes_first_in_a_run_that_came_to_rest() {
        let (mut records, mut causes) = run();
        // Flow 1 waited long at stops that ended, flow 0 is no victim, and flow 2 has waited for a moment at one that did not.
        causes.stops.push(Stop { until_ps: None, from_ps: 19_990, ..causes.stops[2].clone() });
        causes.waits.push(Wait { stop: 3, flow: 2, time_ps: 10, victim: true });
        records.flows.push(FlowRow { received_ps: None, ..records.flows[0].clone() });
        let worst =
            |causes: &Causes| causes.roots()[0].worst_victims.iter().map(|waited| waited.flow).collect::<Vec<_>>();
        assert_eq!(worst(&causes), [1, 2], "the run was only stopped");
        causes.stalled = true;
        assert_eq!(worst(&causes), [2, 1]);
        let said = causes.roots()[0].sentence(&records.flows);
        assert!(said.contains("flow 2 (h1 to h2, group \"all\"), 10 ps and did not end; flow 1"), "{said}");
        assert_eq!(causes.victims(&causes.forest().1, 0), causes.roots()[0].worst_victims);
        let part = |flow, part, place, hop, time_ps| PartRow { flow, part, place, hop, time_ps };
        let parts = [part(1, "pause", "h3", None, 6_000), part(2, "answer", "h1", None, 20_000)];
        let said: Vec<String> = shares(&records, &causes, &parts).iter().map(Share::sentence).collect();
        let first = "100 % of the time of flow 2, which never ends, is head-of-line blocking at h1, because the link sw1->h2 is \
                     saturated by 2 flows.";
        assert_eq!(said[0], first);
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
        assert!(refused(Question::At(20_001)).contains("after the end of the run write a time up to 20000ps"));
    }
}
