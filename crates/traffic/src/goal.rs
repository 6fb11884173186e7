//! Schedules in GOAL (Hoefler, Siebert and Lumsdaine 2009), as LogGOPSim and ATLAHS have them: what every rank sends, receives and computes, and
//! which of that must have ended before.
//!
//! ```text
//! num_ranks 2
//! rank 0 {
//!   a: calc 100
//!   b: send 4096b to 1 tag 7
//!   b requires a
//! }
//! rank 1 {
//!   a: recv 4096b from 0 tag 7
//!   b: calc 50
//!   b requires a
//! }
//! ```
//!
//! Rank *n* is the *n*-th host. A `calc` takes as many nanoseconds, and a rank computes side by side what does not require something else: processors
//! (`cpu`) and NICs (`nic`) are read over. A `recv` is matched with the `send` of the same ranks and tag, the first with the first; it has ended when the message
//! has come and what it requires has ended. A `send` has ended when its last byte is acknowledged. `irequires` waits for the beginning.

use crate::text::{FileFault, FileFaults, Line, quoted};
use crate::{After, FlowRequest, MAX_FLOWS, MAX_SIZE, MAX_START, Names, Task, Traffic};
use engine::Time;
use fabric::id::{FlowId, NodeId};
use fabric::topology::Graph;
use std::collections::HashMap;
use std::io::{self, Write};

/// The group of the flows.
const GROUP: &str = "goal";

/// What an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Send { to: u32, bytes: u64, tag: u64 },
    Receive { from: u32, bytes: u64, tag: u64 },
    Compute { ns: u64 },
}

/// An operation, and where it is written.
#[derive(Clone, Copy)]
struct Operation<'a> {
    rank: u32,
    what: What,
    line: Line<'a>,
    word: &'a str,
}

/// A dependency as it is written.
struct Requires<'a> {
    rank: u32,
    later: &'a str,
    earlier: &'a str,
    /// For its beginning, and not for its end.
    begins: bool,
    line: Line<'a>,
}

/// A schedule as it is written.
#[derive(Default)]
struct Schedule<'a> {
    ranks: u32,
    operations: Vec<Operation<'a>>,
    labels: HashMap<(u32, &'a str), usize>,
    requires: Vec<Requires<'a>>,
    faults: FileFaults,
}

/// A statement ends, if there is one.
fn close<'a>(all: &mut Vec<(Line<'a>, Vec<&'a str>)>, line: Line<'a>, words: &mut Vec<&'a str>) {
    if !words.is_empty() {
        all.push((line, std::mem::take(words)));
    }
}

/// The statements of a text: their line, and their words. Braces are words of their own. And the comment that is not closed, if there is one.
fn statements(text: &str) -> (Vec<(Line<'_>, Vec<&str>)>, Option<FileFault>) {
    let mut all = Vec::new();
    let mut comment: Option<FileFault> = None;
    for (number, text) in (1..).zip(text.lines()) {
        let line = Line { number, text };
        let mut rest = text;
        let mut words: Vec<&str> = Vec::new();
        while !rest.is_empty() {
            if comment.is_some() {
                match rest.find("*/") {
                    Some(at) => (comment, rest) = (None, &rest[at + 2..]),
                    None => break,
                }
                continue;
            }
            rest = rest.trim_start();
            if rest.starts_with("//") || rest.starts_with('#') {
                break;
            } else if rest.starts_with("/*") {
                comment = Some(line.fault(&rest[..2], "the comment is not closed", "add */"));
                rest = &rest[2..];
            } else if let Some(after) = rest.strip_prefix(';') {
                close(&mut all, line, &mut words);
                rest = after;
            } else if rest.starts_with(['{', '}']) {
                // An opening one belongs to its rank, a closing one to nobody.
                if rest.starts_with('}') {
                    close(&mut all, line, &mut words);
                }
                words.push(&rest[..1]);
                close(&mut all, line, &mut words);
                rest = &rest[1..];
            } else if rest.starts_with(':') {
                words.push(&rest[..1]);
                rest = &rest[1..];
            } else {
                let stop = |c: char| c.is_whitespace() || ";{}:".contains(c);
                let end = rest.find(stop).unwrap_or(rest.len());
                // A comment may follow a word at once.
                let end = ["//", "/*"].iter().filter_map(|mark| rest[..end].find(mark)).min().unwrap_or(end);
                words.push(&rest[..end]);
                rest = &rest[end..];
            }
        }
        close(&mut all, line, &mut words);
    }
    (all, comment)
}

/// A number of bytes: `100b`, or `100` and `b` apart.
fn bytes<'a>(line: Line<'a>, words: &mut &[&'a str]) -> Result<u64, FileFault> {
    const HELP: &str = "write a whole number and b, such as 4096b";
    let Some((&word, rest)) = words.split_first() else {
        return Err(line.fault(line.end(), "the size is missing", HELP));
    };
    *words = rest;
    let digits = match word.strip_suffix('b') {
        Some(digits) => digits,
        None if words.first() == Some(&"b") => {
            *words = &words[1..];
            word
        }
        None => return Err(line.fault(word, format!("{} is no size", quoted(word)), HELP)),
    };
    let size: u64 = digits.parse().map_err(|_| line.fault(word, format!("{} is no size", quoted(word)), HELP))?;
    if size > MAX_SIZE.0 {
        return Err(line.fault(
            word,
            format!("{size} B are more than a message may have"),
            format!("write {MAX_SIZE} or less"),
        ));
    }
    Ok(size)
}

fn number<'a, T: std::str::FromStr>(
    line: Line<'a>,
    words: &mut &[&'a str],
    what: &str,
) -> Result<(T, &'a str), FileFault> {
    let help = "write a whole number";
    let Some((&word, rest)) = words.split_first() else {
        return Err(line.fault(line.end(), format!("{what} is missing"), help));
    };
    *words = rest;
    if word == "-1" {
        let message = format!("any {what} may be meant, and which it is shows only in a run");
        return Err(line.fault(word, message, "write which"));
    }
    word.parse()
        .map(|value| (value, word))
        .map_err(|_| line.fault(word, format!("{} is no {what}", quoted(word)), help))
}

impl<'a> Schedule<'a> {
    fn read(text: &'a str) -> Schedule<'a> {
        let mut made = Schedule::default();
        let mut rank: Option<u32> = None;
        let mut counted = false;
        let mut last = Line { number: 1, text: "" };
        let (all, open) = statements(text);
        for (line, words) in all {
            last = line;
            if made.faults.full() {
                break;
            }
            let said = match words.as_slice() {
                ["num_ranks", ..] if counted => {
                    Err(line.fault(words[0], "num_ranks is there twice", "write it once, before the first rank"))
                }
                ["num_ranks", ..] => {
                    let mut rest = &words[1..];
                    counted = true;
                    number(line, &mut rest, "number of ranks").map(|(ranks, _)| made.ranks = ranks)
                }
                ["rank", word, "{"] => match word.parse::<u32>() {
                    Ok(number) if number < made.ranks => {
                        rank = Some(number);
                        Ok(())
                    }
                    Ok(number) if counted => {
                        let message = format!("there is no rank {number}: num_ranks is {}", made.ranks);
                        Err(line.fault(word, message, "raise num_ranks, or write a lower rank"))
                    }
                    Ok(_) => Err(line.fault(word, "num_ranks is missing", "write num_ranks before the first rank")),
                    Err(_) => Err(line.fault(word, format!("{} is no rank", quoted(word)), "write a whole number")),
                },
                ["}"] if rank.is_some() => {
                    rank = None;
                    Ok(())
                }
                _ => match rank {
                    Some(rank) => made.statement(rank, line, &words),
                    None => Err(line.fault(
                        words[0],
                        format!("{} is outside of a rank", quoted(words[0])),
                        "open one with rank N {",
                    )),
                },
            };
            if let Err(fault) = said {
                made.faults.push(fault);
            }
        }
        if let Some(fault) = open {
            made.faults.push(fault);
        } else if rank.is_some() && made.faults.is_empty() {
            made.faults.push(last.fault(last.end(), "the last rank is not closed", "add }"));
        }
        made
    }

    fn statement(&mut self, rank: u32, line: Line<'a>, words: &[&'a str]) -> Result<(), FileFault> {
        if let [later, "requires" | "irequires", earlier] = words {
            let begins = words[1] == "irequires";
            self.requires.push(Requires { rank, later, earlier, begins, line });
            return Ok(());
        }
        let (label, mut rest) = match words {
            [label, ":", rest @ ..] => (Some(*label), rest),
            rest => (None, rest),
        };
        let Some((&word, after)) = rest.split_first() else {
            return Err(line.fault(line.end(), "there is nothing behind the label", "write send, recv or calc"));
        };
        rest = after;
        let what = match word {
            "calc" => {
                let (ns, at) = number::<u64>(line, &mut rest, "time")?;
                if ns > MAX_START.0 / 1000 {
                    return Err(line.fault(at, format!("{ns} ns are too long"), format!("write {MAX_START} or less")));
                }
                What::Compute { ns }
            }
            "send" | "recv" => {
                let size = bytes(line, &mut rest)?;
                let direction = if word == "send" { "to" } else { "from" };
                if rest.first() != Some(&direction) {
                    let at = rest.first().copied().unwrap_or(line.end());
                    return Err(line.fault(
                        at,
                        format!("{direction} is missing"),
                        format!("write {word} {size}b {direction} a rank"),
                    ));
                }
                rest = &rest[1..];
                let (peer, at) = number::<u32>(line, &mut rest, "rank")?;
                if peer >= self.ranks {
                    let message = format!("there is no rank {peer}: num_ranks is {}", self.ranks);
                    return Err(line.fault(at, message, "write a lower rank"));
                }
                if peer == rank {
                    return Err(line.fault(at, format!("rank {rank} sends to itself"), "name another rank"));
                }
                let mut tag = 0;
                if rest.first() == Some(&"tag") {
                    rest = &rest[1..];
                    tag = number(line, &mut rest, "tag")?.0;
                }
                match direction {
                    "to" => What::Send { to: peer, bytes: size, tag },
                    _ => What::Receive { from: peer, bytes: size, tag },
                }
            }
            other => {
                let message = format!("{} is no operation", quoted(other));
                return Err(line.fault(other, message, "write send, recv, calc, or LABEL requires LABEL"));
            }
        };
        while let [key @ ("cpu" | "nic"), more @ ..] = rest {
            rest = more;
            number::<u32>(line, &mut rest, key)?;
        }
        if let Some(&word) = rest.first() {
            return Err(line.fault(
                word,
                format!("{} does not belong here", quoted(word)),
                "write one operation in a line",
            ));
        }
        let place = self.operations.len();
        self.operations.push(Operation { rank, what, line, word });
        if let Some(label) = label
            && self.labels.insert((rank, label), place).is_some()
        {
            let message = format!("rank {rank} has the label {} twice", quoted(label));
            return Err(line.fault(label, message, "give every operation of a rank a label of its own"));
        }
        if self.operations.len() as u64 > MAX_FLOWS {
            return Err(line.fault(word, format!("there are more than {MAX_FLOWS} operations"), "cut the schedule"));
        }
        Ok(())
    }
}

/// Reads a schedule as flows and tasks, or says what is wrong with each of its lines.
pub fn read_goal(text: &str, nodes: &Names<'_>) -> Result<Traffic, FileFaults> {
    let mut schedule = Schedule::read(text);
    let hosts: Vec<NodeId> = nodes.graph().hosts().collect();
    let mut faults = std::mem::take(&mut schedule.faults);
    if schedule.ranks as usize > hosts.len() && faults.is_empty() {
        let line = statements(text).0.into_iter().find(|(_, words)| words[0] == "num_ranks");
        let (line, word) = line.map_or((Line { number: 1, text: "" }, ""), |(line, words)| (line, words[0]));
        let message = format!("{} ranks do not fit on {} hosts", schedule.ranks, hosts.len());
        faults.push(line.fault(word, message, "give the fabric more hosts"));
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let mut traffic = Traffic::default();
    let group = traffic.group(GROUP);
    // By operation, what it is here. A receive is a task that waits for its message.
    let mut ids: Vec<FlowId> = Vec::with_capacity(schedule.operations.len());
    let mut sent: HashMap<(u32, u32, u64), Vec<usize>> = HashMap::new();
    for (place, operation) in schedule.operations.iter().enumerate() {
        let host = hosts[operation.rank as usize];
        ids.push(match operation.what {
            What::Send { to, bytes, tag } => {
                sent.entry((operation.rank, to, tag)).or_default().push(place);
                let flow = FlowRequest::new(host, hosts[to as usize], bytes.max(1), Time::ZERO);
                traffic.flows.push(FlowRequest { group, ..flow });
                FlowId(traffic.flows.len() as u32 - 1)
            }
            What::Receive { .. } | What::Compute { .. } => {
                let lasts = if let What::Compute { ns } = operation.what { Time(ns * 1000) } else { Time::ZERO };
                traffic.tasks.push(Task { host, start: Time::ZERO, lasts });
                Task::id(traffic.tasks.len() - 1)
            }
        });
    }
    // The first receive of a pair and tag is of the first message.
    let mut next: HashMap<(u32, u32, u64), usize> = HashMap::new();
    let mut matched = vec![false; schedule.operations.len()];
    for (place, operation) in schedule.operations.iter().enumerate() {
        let What::Receive { from, bytes, tag } = operation.what else { continue };
        let key = (from, operation.rank, tag);
        let turn = next.entry(key).or_default();
        let Some(&message) = sent.get(&key).and_then(|all| all.get(*turn)) else {
            let message = format!("rank {from} sends no message with tag {tag} that this could receive");
            faults.push(operation.line.fault(operation.word, message, "add its send, or take the recv away"));
            continue;
        };
        *turn += 1;
        matched[message] = true;
        if let What::Send { bytes: sent, .. } = schedule.operations[message].what
            && sent > bytes
        {
            let line = schedule.operations[message].line.number;
            let message = format!("it receives {bytes} B, and the message of line {line} has {sent}");
            faults.push(operation.line.fault(operation.word, message, "write the same size"));
        }
        traffic.after.push(After { flow: ids[place], first: ids[message], gap: Time::ZERO });
    }
    for (place, operation) in schedule.operations.iter().enumerate() {
        if let What::Send { to, tag, .. } = operation.what
            && !matched[place]
        {
            let message = format!("rank {to} receives no message with tag {tag} from rank {}", operation.rank);
            faults.push(operation.line.fault(operation.word, message, "add its recv, or take the send away"));
        }
    }
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); schedule.operations.len()];
    let mut begins: Vec<Vec<usize>> = vec![Vec::new(); schedule.operations.len()];
    for one in &schedule.requires {
        let find = |label: &str| schedule.labels.get(&(one.rank, label)).copied();
        for label in [one.later, one.earlier].into_iter().filter(|label| find(label).is_none()) {
            let message = format!("rank {} has no operation with the label {}", one.rank, quoted(label));
            faults.push(one.line.fault(label, message, "write the label of an operation of this rank"));
        }
        if let (Some(later), Some(earlier)) = (find(one.later), find(one.earlier)) {
            let list = if one.begins { &mut begins } else { &mut before };
            list[later].push(earlier);
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    if let Err((place, message, help)) = begin_together(&mut before, &begins) {
        let operation = &schedule.operations[place];
        faults.push(operation.line.fault(operation.word, message, help));
        return Err(faults);
    }
    for (place, firsts) in before.iter_mut().enumerate() {
        firsts.sort_unstable();
        firsts.dedup();
        let waits = firsts.iter().map(|&first| After { flow: ids[place], first: ids[first], gap: Time::ZERO });
        traffic.after.extend(waits);
    }
    if let Err((id, fault)) = traffic.check_after(nodes) {
        let place = ids.iter().position(|&own| own == id).unwrap_or(0);
        let operation = &schedule.operations[place];
        faults.push(operation.line.fault(operation.word, fault.message, "let one of them wait for less"));
    }
    faults.or(traffic)
}

/// What begins with another waits for what that waits for: `begins` says by operation with which it begins, `before` what must have ended before.
/// An operation that cannot, why, and what to do.
fn begin_together(before: &mut [Vec<usize>], begins: &[Vec<usize>]) -> Result<(), (usize, String, &'static str)> {
    // Each after all with which it begins, from those that begin with no other: what is done is looked at no more.
    let mut open: Vec<usize> = begins.iter().map(Vec::len).collect();
    let mut with: Vec<Vec<usize>> = vec![Vec::new(); begins.len()];
    for (place, others) in begins.iter().enumerate() {
        others.iter().for_each(|&other| with[other].push(place));
    }
    let mut ready: Vec<usize> = (0..begins.len()).filter(|&place| open[place] == 0).collect();
    let mut done = 0;
    let mut waits = 0;
    while let Some(place) = ready.pop() {
        done += 1;
        if !begins[place].is_empty() {
            let more = begins[place].iter().flat_map(|&other| before[other].iter().copied());
            let mut all: Vec<usize> = before[place].iter().copied().chain(more).collect();
            all.sort_unstable();
            all.dedup();
            waits += all.len() as u64;
            if waits > MAX_FLOWS {
                let message = format!("what begins together waits for more than {MAX_FLOWS} others in all");
                return Err((place, message, "have operations begin with one that waits for less"));
            }
            before[place] = all;
        }
        for &later in &with[place] {
            open[later] -= 1;
            if open[later] == 0 {
                ready.push(later);
            }
        }
    }
    // Those that are left are in a cycle, or lead to one: backwards from any of them is one that is in it.
    let Some(mut place) = (done < begins.len()).then(|| open.iter().position(|&open| open > 0)).flatten() else {
        return Ok(());
    };
    let next = |place: usize| begins[place].iter().copied().find(|&other| open[other] > 0).unwrap_or(place);
    (0..begins.len()).for_each(|_| place = next(place));
    // The first of the cycle, as it is written.
    let mut least = place;
    for _ in 0..begins.len() {
        place = next(place);
        least = least.min(place);
    }
    let place = least;
    let message = "it begins with itself: irequires leads from it back to it in a cycle".to_string();
    Err((place, message, "take one irequires of the cycle away"))
}

/// Writes flows and tasks as a schedule. Times are rounded to nanoseconds.
pub fn write_goal(out: &mut dyn Write, graph: &Graph, traffic: &Traffic) -> io::Result<()> {
    let refused = |message: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, message.to_string()));
    if traffic.flows.iter().any(|flow| flow.until != Time::MAX) {
        return refused("a schedule has no messages that leave before their end");
    }
    let hosts: Vec<NodeId> = graph.hosts().collect();
    let mut rank = vec![0usize; graph.nodes.len()];
    hosts.iter().enumerate().for_each(|(number, host)| rank[host.index()] = number);
    let ns = |time: Time| (time.0 + 500) / 1000;
    let mut lines: Vec<Vec<String>> = vec![Vec::new(); hosts.len()];
    let mut delays = 0;
    // A time to wait at a rank: the label of a calc of that length.
    let mut delay = |lines: &mut Vec<String>, time: Time| {
        delays += 1;
        lines.push(format!("d{delays}: calc {}", ns(time)));
        format!("d{delays}")
    };
    for (number, flow) in traffic.flows.iter().enumerate() {
        let (src, dst) = (rank[flow.src.index()], rank[flow.dst.index()]);
        lines[src].push(format!("s{number}: send {}b to {dst} tag {number}", flow.size));
        lines[dst].push(format!("r{number}: recv {}b from {src} tag {number}", flow.size));
        if flow.start > Time::ZERO {
            let label = delay(&mut lines[src], flow.start);
            lines[src].push(format!("s{number} requires {label}"));
        }
    }
    for (number, task) in traffic.tasks.iter().enumerate() {
        let at = rank[task.host.index()];
        lines[at].push(format!("t{number}: calc {}", ns(task.lasts)));
        if task.start > Time::ZERO {
            let label = delay(&mut lines[at], task.start);
            lines[at].push(format!("t{number} requires {label}"));
        }
    }
    for wait in &traffic.after {
        let at = |id: FlowId| match Task::number(id) {
            Some(task) => (format!("t{task}"), traffic.tasks[task].host),
            None => (format!("s{id}"), traffic.flows[id.index()].src),
        };
        let (later, host) = at(wait.flow);
        let lines = &mut lines[rank[host.index()]];
        let (mut earlier, from) = at(wait.first);
        if from != host {
            earlier = format!("r{}", wait.first);
        }
        if wait.gap > Time::ZERO {
            let label = delay(lines, wait.gap);
            lines.push(format!("{label} requires {earlier}"));
            earlier = label;
        }
        lines.push(format!("{later} requires {earlier}"));
    }
    writeln!(out, "num_ranks {}", hosts.len())?;
    for (number, lines) in lines.iter().enumerate() {
        writeln!(out, "\nrank {number} {{")?;
        lines.iter().try_for_each(|line| writeln!(out, "{line}"))?;
        writeln!(out, "}}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::star;

    fn read(text: &str) -> Result<Traffic, Vec<String>> {
        let graph = star();
        let made = read_goal(text, &Names::new(&graph));
        made.map_err(|faults| faults.list().iter().map(FileFault::to_string).collect())
    }

    /// Two ranks: the first computes and sends, the second answers; comments and separators of every kind.
    const PING: &str = "// a ping\nnum_ranks 2\nrank 0 {\n l1: calc 10 cpu 1; l2: send 100b to 1 tag 5 cpu 0 nic 0\n l2 requires l1\n \
        l3: recv 200 b from 1 tag 6 /* the\n answer */\n}\nrank 1 { l1: recv 100b from 0 tag 5\n l2: send 200b to 0 tag 6\n l2 requires l1 }\n";

    #[test]
    fn every_send_receive_and_dependency_is_accounted_for() {
        let traffic = read(PING).unwrap();
        let sizes: Vec<_> = traffic.flows.iter().map(|flow| (flow.src.0, flow.dst.0, flow.size)).collect();
        assert_eq!(sizes, [(0, 1, 100), (1, 0, 200)]);
        // The calc, and two receives.
        let lasts: Vec<_> = traffic.tasks.iter().map(|task| (task.host.0, task.lasts)).collect();
        assert_eq!(lasts, [(0, Time::from_ns(10)), (0, Time::ZERO), (1, Time::ZERO)]);
        let mut waits: Vec<(u32, u32)> = traffic.after.iter().map(|wait| (wait.flow.0, wait.first.0)).collect();
        waits.sort_unstable();
        let task = |number| Task::id(number).0;
        assert_eq!(waits, [(0, task(0)), (1, task(2)), (task(1), 1), (task(2), 0)]);
    }

    /// A binomial tree of 32 ranks, the form of LogGOPSim's own example (`binary_tree_32.goal`): every rank but the first receives, and sends to
    /// those that are a power of two away, all of which wait for what it has received.
    #[test]
    fn a_binomial_tree_of_32_ranks_has_its_31_messages_and_26_dependencies() {
        let mut text = String::from("num_ranks 32\n");
        let (mut messages, mut requires) = (0, 0);
        for rank in 0..32u32 {
            text += &format!("\nrank {rank} {{\n");
            let mut label = 0;
            if rank > 0 {
                label += 1;
                text += &format!("l1: recv 1b from {} tag 0\n", rank - (1 << rank.ilog2()));
            }
            for away in (0..5).map(|power| 1 << power).filter(|&away| away > rank) {
                label += 1;
                messages += 1;
                text += &format!("l{label}: send 1b to {} tag 0\n", rank + away);
                if rank > 0 {
                    requires += 1;
                    text += &format!("l{label} requires l1\n");
                }
            }
            text += "}\n";
        }
        assert_eq!((messages, requires), (31, 26));
        let graph = crate::tests::star_of(32);
        let traffic = read_goal(&text, &Names::new(&graph)).unwrap_or_else(|faults| panic!("{faults}"));
        assert_eq!((traffic.flows.len(), traffic.tasks.len()), (31, 31));
        // Every receive waits for its message, and what requires it for the receive.
        assert_eq!(traffic.after.len(), 31 + 26);
    }

    #[test]
    fn what_begins_with_another_waits_for_what_that_waits_for() {
        let text = "num_ranks 2\nrank 0 {\na: calc 5\nb: calc 7\nc: send 1b to 1\nb requires a\nc irequires b\n}\nrank 1 {\nrecv 1b from 0\n}\n";
        let traffic = read(text).unwrap();
        assert!(traffic.after.contains(&After { flow: FlowId(0), first: Task::id(0), gap: Time::ZERO }));
        assert!(!traffic.after.iter().any(|wait| wait.flow == FlowId(0) && wait.first == Task::id(1)));
    }

    #[test]
    fn messages_of_one_tag_are_received_in_their_order() {
        let text = "num_ranks 2\nrank 0 {\na: send 1b to 1 tag 3\nb: send 2b to 1 tag 3\n}\nrank 1 {\na: recv 1b from 0 tag 3\nb: recv 2b from 0 tag 3\n}\n";
        let waits: Vec<_> =
            read(text).unwrap().after.iter().map(|wait| (Task::number(wait.flow), wait.first.0)).collect();
        assert_eq!(waits, [(Some(0), 0), (Some(1), 1)]);
    }

    #[test]
    fn a_bad_record_is_named_with_its_line_and_a_remedy() {
        let ranks = |body: &str| format!("num_ranks 2\nrank 0 {{\n{body}\n}}\nrank 1 {{\n}}\n");
        for (text, words) in [
            ("rank 0 {\n}\n".into(), "1:6: num_ranks is missing"),
            (format!("{}num_ranks 1\n", ranks("calc 1")), "7:1: num_ranks is there twice"),
            (ranks("a: calc 1\nb: calc 2\na irequires b\nb irequires a"), "3:4: it begins with itself"),
            ("num_ranks 1\nrank 0 {\na requires b\n}\n".into(), "rank 0 has no operation with the label \"a\""),
            (ranks("a: calc 1\na irequires a"), "3:4: it begins with itself"),
            (ranks("send 5 to 1"), "3:6: \"5\" is no size"),
            (ranks("send 5b to 7"), "3:12: there is no rank 7"),
            (ranks("send 5b to 0"), "rank 0 sends to itself"),
            (ranks("send 5b from 1"), "to is missing"),
            (ranks("recv 5b from -1"), "any rank may be meant"),
            (ranks("a: send 5b to 1"), "3:4: rank 1 receives no message with tag 0 from rank 0"),
            (ranks("recv 5b from 1 tag 2"), "rank 1 sends no message with tag 2"),
            (ranks("put 5b to 1"), "\"put\" is no operation"),
            (ranks("calc x"), "\"x\" is no time"),
            (ranks("calc 99999999999999999999"), "is no time"),
            (ranks("calc 5 six"), "\"six\" does not belong here"),
            (ranks("a: calc 1\na: calc 2"), "4:1: rank 0 has the label \"a\" twice"),
            (ranks("a: calc 1\nb requires a"), "no operation with the label \"b\""),
            (ranks("a: calc 1\nb: calc 1\na requires b\nb requires a"), "two flows wait for each other"),
            ("num_ranks 9\nrank 0 {\n}\n".into(), "1:1: 9 ranks do not fit on 3 hosts"),
            ("num_ranks 2\nrank 0 {\ncalc 1\n".into(), "the last rank is not closed"),
            ("num_ranks 2 /* two\nrank 0 {\n}\n".into(), "1:13: the comment is not closed"),
            ("num_ranks 2\ncalc 1\n".into(), "\"calc\" is outside of a rank"),
            ("num_ranks 2\nrank 2 {\n}\n".into(), "there is no rank 2: num_ranks is 2"),
        ] {
            let said = read(&text).unwrap_err();
            assert!(said.iter().any(|fault| fault.contains(words)), "{text}: {said:?}");
        }
        // All at once.
        assert_eq!(read(&ranks("send 5 to 1\nput\ncalc")).unwrap_err().len(), 3);
    }

    #[test]
    fn what_is_written_waits_for_the_same() {
        let graph = star();
        let traffic = read(PING).unwrap();
        let mut bytes = Vec::new();
        write_goal(&mut bytes, &graph, &traffic).unwrap();
        let again = read_goal(std::str::from_utf8(&bytes).unwrap(), &Names::new(&graph)).unwrap();
        let flat = |traffic: &Traffic| {
            let mut flat = traffic.without_tasks(1000).unwrap();
            flat.after.sort_by_key(|wait| (wait.flow, wait.first));
            (flat.flows, flat.after)
        };
        assert_eq!(flat(&traffic), flat(&again));
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "(num_ranks 3\n)?(rank [0-3] \\{\n)?([a-c]: |[a-c] i?requires [a-c]|send [0-9]+b to [0-3]|recv 5b from 1|calc [0-9]+|tag -?1|[ ;:{}\n]|/\\*|//|\u{e4}){0,30}") {
            _ = read(&text);
        }
    }

    #[test]
    fn a_long_chain_of_beginnings_is_read_at_once() {
        // Each begins with the one before it, written backwards and forwards; the first waits for one that takes long.
        for backwards in [false, true] {
            let mut pairs: Vec<usize> = (1..3000).collect();
            if backwards {
                pairs.reverse();
            }
            let mut text = "num_ranks 2\nrank 0 {\nz: calc 9\nc0: calc 1\nc0 requires z\ns: send 1b to 1\n".to_string();
            pairs.iter().for_each(|number| text += &format!("c{number}: calc 1\n"));
            pairs.iter().for_each(|number| text += &format!("c{number} irequires c{}\n", number - 1));
            text += "}\nrank 1 {\nrecv 1b from 0\n}\n";
            let begin = std::time::Instant::now();
            let traffic = read(&text).unwrap();
            assert!(begin.elapsed() < std::time::Duration::from_secs(5), "{:?}", begin.elapsed());
            // All wait for the first calc alone, and the receive for its message.
            assert_eq!(traffic.after.len(), 3000 + 1);
            assert_eq!(traffic.after.iter().filter(|wait| wait.first == Task::id(0)).count(), 3000);
        }
    }
}
