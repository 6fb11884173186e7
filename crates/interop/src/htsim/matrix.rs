//! Connection matrices: who sends what to whom, and what waits for what.

use super::tree::Tree;
use super::{Line, MOST_HOSTS, Text};
use engine::{Bytes, Time};
use files::problem::Problem;
use scenario::document::quoted;
use std::collections::BTreeMap;
use std::fmt::Write;
use traffic::{MAX_SIZE, MAX_START};

/// So many problems of a matrix are told at once.
const MOST_PROBLEMS: usize = 20;

/// What the starts of a matrix are counted in: its simulators differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Starts {
    /// Picoseconds, as htsim has them.
    #[default]
    Picoseconds,
    /// Microseconds of which only whole ones count, as uet-htsim has them.
    Microseconds,
}

/// A connection of a matrix.
pub(super) struct Connection<'a> {
    pub line: Line<'a>,
    pub src: u64,
    pub dst: u64,
    pub size: u64,
    /// In picoseconds.
    pub start: Option<u64>,
    pub id: Option<u64>,
    /// It is one of several messages of the connection with its id.
    pub message: bool,
    /// It has a priority.
    pub prio: bool,
    /// The trigger that starts it.
    pub trigger: Option<u64>,
    /// The triggers that its end sets off, and whether that is its end at the sender.
    pub fires: Vec<(u64, bool)>,
}

/// A trigger of a matrix.
struct Trigger<'a> {
    line: Line<'a>,
    kind: &'a str,
    count: u64,
}

/// A link that is down: one upwards from an aggregation switch.
pub(super) struct Failure<'a> {
    pub line: Line<'a>,
    /// The switch, counted over all pods.
    pub agg: u64,
    /// Its how manieth link upwards.
    pub link: u64,
}

/// A connection matrix.
pub(super) struct Matrix<'a> {
    pub nodes: u64,
    pub connections: Vec<Connection<'a>>,
    triggers: BTreeMap<u64, Trigger<'a>>,
    pub failures: Vec<Failure<'a>>,
}

/// A flow of a scenario: a connection, or messages of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Its sender.
    pub src: u64,
    /// Its receiver.
    pub dst: u64,
    /// Bytes, of all its messages.
    pub size: u64,
    /// The planned start, in picoseconds.
    pub start: u64,
    /// Its id, if the matrix gives one.
    pub id: Option<u64>,
    /// The lines of the matrix that it is made of: the first one's place among connections, and how many.
    pub first: usize,
    /// How many messages it is.
    pub messages: u64,
    /// Whether another waits for it.
    awaited: bool,
    /// The places of the flows that it waits for.
    after: Vec<usize>,
}

/// The flows as a trace.
pub(super) fn trace(flows: &[Flow]) -> String {
    let mut out = String::from("src,dst,size_bytes,start_ps,id,after\n");
    for (place, flow) in flows.iter().enumerate() {
        let id = if flow.awaited { format!("c{place}") } else { String::new() };
        let after: Vec<String> = flow.after.iter().map(|cause| format!("c{cause}")).collect();
        let Flow { src, dst, size, start, .. } = flow;
        let _ = writeln!(out, "h{src},h{dst},{size},{start},{id},{}", after.join(";"));
    }
    out
}

impl<'a> Matrix<'a> {
    /// Reads all lines, and tells of all that are wrong.
    pub(super) fn read(file: Text<'a>, starts: Starts) -> Result<Matrix<'a>, Problem> {
        let mut read = Read { starts, ..Read::default() };
        let wrong = Line::all(file).filter_map(|line| read.line(line).err()).take(MOST_PROBLEMS);
        if let Some(problem) = Problem::all(wrong) {
            return Err(problem);
        }
        let Read { counts, connections, triggers, failures, .. } = read;
        let problem = |message: String, help: &str| Err(Problem::new(file.name, message).help(help));
        let count = |head: &str| counts.get(head).copied();
        if let Some(nodes) = count("Nodes").filter(|nodes| *nodes > MOST_HOSTS) {
            return problem(format!("has {nodes} Nodes; {MOST_HOSTS} is the most"), "give a smaller matrix");
        }
        let Some(nodes) = count("Nodes").filter(|&nodes| nodes > 1) else {
            return problem("does not say how many Nodes there are".into(), "begin with Nodes and a number above 1");
        };
        let found = [("Connections", connections.len()), ("Triggers", triggers.len()), ("Failures", failures.len())];
        for (head, found) in found {
            if count(head).unwrap_or(0) != found as u64 {
                let said = count(head).unwrap_or(0);
                return problem(format!("says {head} {said}, but has {found}"), "check that the file is whole");
            }
        }
        if connections.is_empty() {
            return problem("has no connections".into(), "add one, such as 0->1 start 0 size 1000000, and count it");
        }
        let mut ids: BTreeMap<u64, &Connection<'_>> = BTreeMap::new();
        for connection in &connections {
            let Connection { line, src, dst, id, message, .. } = connection;
            if let Some(node) = [src, dst].into_iter().find(|node| **node >= nodes) {
                let message = format!("there is no node {node}");
                return Err(line.problem(&node.to_string(), message, format!("nodes are 0 to {}", nodes - 1)));
            }
            if src == dst {
                return Err(line.problem("->", "a node sends to itself", "name two nodes"));
            }
            let Some(id) = *id else { continue };
            match ids.insert(id, connection) {
                Some(first) if !message || !first.message => {
                    let help = "give each connection its own, or write msg behind each for messages of one connection";
                    return Err(line.problem("id", format!("id {id} is there twice"), help));
                }
                Some(first) if (first.src, first.dst) != (*src, *dst) => {
                    let message = format!("id {id} is there twice, between other nodes: {}->{}", first.src, first.dst);
                    return Err(line.problem("id", message, "give messages between other nodes an id of their own"));
                }
                _ => {}
            }
        }
        Ok(Matrix { nodes, connections, triggers, failures })
    }

    /// A problem of the scenario as one of the files that it was made of: of a connection, if it is one of the trace, or else of `file`.
    pub(super) fn blame(&self, problem: &Problem, flows: &[Flow], trace: &str, file: &str) -> Problem {
        // Flows are one in each line after the first.
        let by_line = || problem.line.filter(|_| problem.file == trace).and_then(|line| line.checked_sub(2));
        let rest = || problem.message.strip_prefix("flow ")?.split_once(&format!(" of {trace}: "));
        let (place, message) = match rest() {
            Some((number, message)) => (number.parse().ok().and_then(|number: usize| number.checked_sub(1)), message),
            None => (by_line(), problem.message.as_str()),
        };
        let help = problem.help.clone().unwrap_or_else(|| "change it in this file".into());
        match place.and_then(|place| self.connections.get(flows.get(place)?.first)) {
            Some(Connection { line, .. }) => line.problem("", message, help),
            None => Problem::new(file, format!("what it describes cannot be run: {message}")).help(help),
        }
    }

    /// The flows. With `joined`, messages of a connection that start at the same instant are one.
    pub(super) fn flows(&self, joined: bool) -> Result<Vec<Flow>, Problem> {
        let mut flows: Vec<Flow> = Vec::new();
        // By connection, its flow; by id, the latest flow.
        let mut flow_of = Vec::with_capacity(self.connections.len());
        let mut latest: BTreeMap<u64, usize> = BTreeMap::new();
        for (first, connection) in self.connections.iter().enumerate() {
            let &Connection { src, dst, size, start, id, message, .. } = connection;
            let start = start.unwrap_or(0);
            let plain =
                |place: usize| self.connections[place].trigger.is_none() && self.connections[place].fires.is_empty();
            let before = id.filter(|_| joined && message && plain(first)).and_then(|id| latest.get(&id).copied());
            let before = before.filter(|&flow| plain(flows[flow].first) && flows[flow].start == start);
            let together = before.and_then(|flow| Some((flow, flows[flow].size.checked_add(size)?)));
            match together.filter(|(_, size)| *size <= MAX_SIZE.0) {
                Some((flow, size)) => {
                    (flows[flow].size, flows[flow].messages) = (size, flows[flow].messages + 1);
                    flow_of.push(flow);
                }
                None => {
                    flow_of.push(flows.len());
                    id.into_iter().for_each(|id| _ = latest.insert(id, flows.len()));
                    let (messages, awaited, after) = (1, false, Vec::new());
                    flows.push(Flow { src, dst, size, start, id, first, messages, awaited, after });
                }
            }
        }
        // By trigger, the connections that set it off, and where they are done.
        let mut causes: BTreeMap<u64, Vec<(usize, bool)>> = BTreeMap::new();
        for (place, connection) in self.connections.iter().enumerate() {
            flows[flow_of[place]].awaited |= !connection.fires.is_empty();
            for &(trigger, at_sender) in &connection.fires {
                causes.entry(trigger).or_default().push((place, at_sender));
            }
        }
        for (place, connection) in self.connections.iter().enumerate() {
            let Connection { src, line, .. } = connection;
            let Some(id) = connection.trigger else { continue };
            let Some(trigger) = self.triggers.get(&id) else {
                let help = "add a line: trigger id N oneshot";
                return Err(line.problem("trigger", format!("there is no trigger {id}"), help));
            };
            let causes = causes.get(&id).map_or(&[][..], Vec::as_slice);
            trigger.check(id, causes.len())?;
            for &(cause, at_sender) in causes {
                let first = &self.connections[cause];
                let knows = if at_sender { first.src } else { first.dst };
                if knows != *src {
                    let word = if at_sender { "send_done_trigger" } else { "recv_done_trigger" };
                    let message = format!(
                        "{src} is to start when {knows} knows that {}->{} is done ({word}), but nothing notifies {src}",
                        first.src, first.dst
                    );
                    let help =
                        "here a flow waits only for what its own sender knows; let a flow carry the notification";
                    return Err(line.problem("trigger", message, help));
                }
                flows[flow_of[place]].after.push(flow_of[cause]);
            }
        }
        Ok(flows)
    }

    /// How many triggers it has.
    pub(super) fn triggers(&self) -> usize {
        self.triggers.len()
    }

    /// Takes the links out of a topology that are down.
    pub(super) fn fail(&self, tree: &mut Tree) -> Result<(), Problem> {
        self.failures.iter().try_for_each(|Failure { line, agg, link }| {
            tree.fail(*agg, *link).map_err(|(message, help)| line.problem("failure", message, help))
        })
    }

    /// What is left out of it, for people.
    pub(super) fn notes(&self, name: &str) -> Vec<String> {
        let prio = self.connections.iter().filter(|connection| connection.prio).count();
        let said = format!("{name}: prio is left out, on {prio} connections: a flow has no priority of its own here");
        (prio > 0).then_some(said).into_iter().collect()
    }
}

/// A matrix that is being read.
#[derive(Default)]
struct Read<'a> {
    starts: Starts,
    counts: BTreeMap<&'a str, u64>,
    connections: Vec<Connection<'a>>,
    triggers: BTreeMap<u64, Trigger<'a>>,
    failures: Vec<Failure<'a>>,
}

impl<'a> Read<'a> {
    fn line(&mut self, line: Line<'a>) -> Result<(), Problem> {
        let words = line.words();
        match words[0] {
            head @ ("Nodes" | "Connections" | "Triggers" | "Failures") => {
                _ = self.counts.insert(head, line.number(head, words.get(1))?);
            }
            "trigger" => {
                let (id, trigger) = read_trigger(line)?;
                if let Some(Trigger { line, .. }) = self.triggers.insert(id, trigger) {
                    let message = format!("trigger {id} is there twice");
                    return Err(line.problem("trigger", message, "give each trigger an id of its own"));
                }
            }
            "failure" => self.failures.push(read_failure(line)?),
            word if word.contains("->") => self.connections.push(read_connection(line, self.starts)?),
            word => {
                let help = "write Nodes, Connections, Triggers, Failures, A->B, trigger or failure";
                return Err(line.problem(word, format!("unknown word {}", quoted(word)), help));
            }
        }
        Ok(())
    }
}

impl Trigger<'_> {
    /// Whether it can be said by waiting for all of so many.
    fn check(&self, id: u64, causes: usize) -> Result<(), Problem> {
        let problem = |message: String, help: &str| Err(self.line.problem(self.kind, message, help));
        match (self.kind, causes as u64) {
            (_, 0) => {
                problem(format!("nothing sets trigger {id} off"), "name it in a send_done_trigger or recv_done_trigger")
            }
            ("oneshot", 1) => Ok(()),
            ("oneshot", _) => {
                problem(format!("trigger {id} is oneshot, but {causes} connections set it off"), "make it a barrier")
            }
            ("barrier", causes) if causes == self.count => Ok(()),
            ("barrier", causes) => problem(
                format!("trigger {id} is a barrier of {}, but {causes} connections set it off", self.count),
                "write their number as its count",
            ),
            _ => problem(
                format!(
                    "trigger {id} is multishot, which cannot be said here: whom it starts depends on who is done first"
                ),
                "give each connection a oneshot trigger of its own",
            ),
        }
    }
}

fn read_trigger(line: Line<'_>) -> Result<(u64, Trigger<'_>), Problem> {
    let words = line.words();
    let (mut id, mut count, mut kind) = (None, 0, None);
    let mut rest = words[1..].iter();
    while let Some(&word) = rest.next() {
        match word {
            "id" => id = Some(line.number("id", rest.next())?),
            "count" => count = line.number("count", rest.next())?,
            "oneshot" | "multishot" | "barrier" => kind = Some(word),
            word => {
                let help = "write id, count, oneshot, multishot or barrier";
                return Err(line.problem(word, format!("unknown word {}", quoted(word)), help));
            }
        }
    }
    match (id, kind) {
        (Some(id @ 1..), Some(kind)) => Ok((id, Trigger { line, kind, count })),
        _ => Err(line.problem("trigger", "needs an id above 0 and a kind", "write trigger id 1 oneshot")),
    }
}

fn read_failure(line: Line<'_>) -> Result<Failure<'_>, Problem> {
    let words = line.words();
    let (mut agg, mut link, mut kind) = (None, None, None);
    let mut rest = words[1..].iter();
    while let Some(&word) = rest.next() {
        match word {
            "switch_type" => kind = rest.next().copied(),
            "switch_id" => agg = Some(line.number("switch_id", rest.next())?),
            "link_id" => link = Some(line.number("link_id", rest.next())?),
            word => {
                let help = "write switch_type, switch_id or link_id";
                return Err(line.problem(word, format!("unknown word {}", quoted(word)), help));
            }
        }
    }
    match (kind, agg, link) {
        (Some("AGG"), Some(agg), Some(link)) => Ok(Failure { line, agg, link }),
        (Some(kind @ ("TOR" | "CORE")), ..) => {
            let message = format!("links of switch_type {kind} do not fail in htsim either");
            Err(line.problem(kind, message, "write switch_type AGG: a link between an aggregation and a core switch"))
        }
        _ => {
            let help = "write failure switch_type AGG switch_id N link_id N";
            Err(line.problem("failure", "needs a switch_type, a switch_id and a link_id", help))
        }
    }
}

fn read_connection(line: Line<'_>, starts: Starts) -> Result<Connection<'_>, Problem> {
    let words = line.words();
    let ends = words[0].split_once("->").and_then(|(src, dst)| Some((src.parse().ok()?, dst.parse().ok()?)));
    let Some((src, dst)) = ends else {
        return Err(line.problem(words[0], format!("{} is not A->B", quoted(words[0])), "write two numbers of nodes"));
    };
    let (mut size, mut start, mut id, mut trigger, mut fires) = (None, None, None, None, Vec::new());
    let (mut message, mut prio) = (false, false);
    let mut rest = words[1..].iter().peekable();
    while let Some(&word) = rest.next() {
        match word {
            "start" => {
                let value = rest.next();
                // Scripts write 1e6 and 0.0, too.
                let time =
                    value.and_then(|value| value.parse::<f64>().ok()).filter(|time| (0.0..1.8e19).contains(time));
                let exact = value.and_then(|value| value.parse::<u64>().ok());
                let time = match starts {
                    Starts::Picoseconds => exact.or(time.map(|time| time.round() as u64)),
                    // That program has the microseconds as a whole number.
                    Starts::Microseconds => {
                        exact.or(time.map(|time| time as u64)).map(|us| us.saturating_mul(Time::from_us(1).0))
                    }
                };
                let Some(time) = time else {
                    let help = match starts {
                        Starts::Picoseconds => "write start and picoseconds, from 0 on",
                        Starts::Microseconds => "write start and microseconds, from 0 on",
                    };
                    return Err(line.problem(value.unwrap_or(&word), "start: expected a time", help));
                };
                if time > MAX_START.0 {
                    let message = format!("start is {}, later than a scenario can say", Time(time));
                    let help = match starts {
                        Starts::Picoseconds => format!("start it at {} picoseconds or before", MAX_START.0),
                        Starts::Microseconds => {
                            format!("start it at {} microseconds or before", MAX_START.0 / Time::from_us(1).0)
                        }
                    };
                    return Err(line.problem(value.unwrap_or(&word), message, help));
                }
                start = Some(time);
            }
            "size" => {
                let value = rest.next();
                let bytes = line.number("size", value)?;
                if bytes > MAX_SIZE.0 {
                    let message = format!("size is {}, more than a flow can have", Bytes(bytes));
                    let help = format!("write {} bytes or less, or split the connection", MAX_SIZE.0);
                    return Err(line.problem(value.unwrap_or(&word), message, help));
                }
                size = Some(bytes);
            }
            "id" => id = Some(line.number("id", rest.next())?),
            "trigger" => trigger = Some(line.number("trigger", rest.next())?),
            "send_done_trigger" => fires.push((line.number(word, rest.next())?, true)),
            "recv_done_trigger" => fires.push((line.number(word, rest.next())?, false)),
            "prio" => {
                line.number("prio", rest.next())?;
                prio = true;
            }
            // The number of a message is left out more often than not.
            "msg" => {
                message = true;
                _ = rest.next_if(|word| word.parse::<u64>().is_ok());
            }
            "addon" => {
                let message = format!("{word} is not read: flows have no such thing here");
                return Err(line.problem(word, message, "remove it"));
            }
            word => {
                let help = "write start, size, id, msg, prio, trigger, send_done_trigger or recv_done_trigger";
                return Err(line.problem(word, format!("unknown word {}", quoted(word)), help));
            }
        }
    }
    let Some(size) = size.filter(|size| *size > 0) else {
        return Err(line.problem(
            "size",
            "has no size above 0",
            "write size and bytes; flows without end are not read",
        ));
    };
    if start.is_some() == trigger.is_some() {
        return Err(line.problem("start", "needs a start or a trigger, and not both", "write one of them"));
    }
    if message && id.is_none() {
        let help = "write id and the number of the connection that it is a message of";
        return Err(line.problem("msg", "a message needs the id of its connection", help));
    }
    Ok(Connection { line, src, dst, size, start, id, message, prio, trigger, fires })
}
