//! Files of the htsim simulator: connection matrices (`.cm`) and fat-tree topologies (`.topo`), as scenarios.
//!
//! A matrix lists connections, one in each line, after a head that counts them:
//!
//! ```text
//! Nodes 16
//! Connections 2
//! Triggers 1
//! 0->15 id 1 start 0 size 2000000 recv_done_trigger 1
//! 15->3 id 2 trigger 1 size 1000000
//! trigger id 1 oneshot
//! ```
//!
//! Sizes are in bytes and starts in picoseconds. A connection with `trigger` starts when that trigger fires: a `oneshot` when the
//! one connection that names it is done, a `barrier` when all `count` are. With `send_done_trigger` that is when the sender knows, with
//! `recv_done_trigger` when the receiver has everything. That is what flows that wait can say, as long as the host that waits is
//! the one that knows; what they cannot say is refused.

use engine::{Bytes, Time};
use fabric::topology::{MAX_LINKS, MAX_NODES, MAX_PORTS, MAX_ROUTES};
use files::problem::Problem;
use scenario::document::{quote, quoted};
use scenario::resolve::resolve;
use scenario::{Beside, Scenario, SwitchSettings};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use traffic::{MAX_SIZE, MAX_START};

/// The most hosts, which is also more than htsim has room for.
const MOST_HOSTS: u64 = if cfg!(fuzzing) { 400 } else { 1 << 20 };

/// The fastest link of a scenario.
const MOST_GBPS: u64 = 100_000;

/// The longest delay of a link and of a switch, a second.
const MOST_NS: u64 = 1_000_000_000;

/// How often the switches' memory is doubled until it holds what lossless links need.
const DOUBLINGS: u32 = 20;

/// A file's name and text.
#[derive(Clone, Copy, Debug)]
pub struct Text<'a> {
    /// What problems call it.
    pub name: &'a str,
    /// What is in it.
    pub text: &'a str,
}

/// What files of htsim become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The scenario.
    pub scenario: String,
    /// The flows, which the scenario names `NAME.csv`.
    pub flows: String,
    /// The graph, if there is one, which the scenario names `NAME.graph.toml`.
    pub graph: Option<String>,
    /// What was left out, for people.
    pub notes: Vec<String>,
}

/// A line with something in it.
struct Line<'a> {
    file: &'a str,
    number: usize,
    text: &'a str,
}

impl<'a> Line<'a> {
    /// The lines of a file that are neither blank nor comments.
    fn all(file: Text<'a>) -> impl Iterator<Item = Line<'a>> {
        let line = |(at, text)| Line { file: file.name, number: at + 1, text };
        let has_content = |line: &Line<'_>| !line.text.trim().is_empty() && !line.text.trim_start().starts_with('#');
        file.text.lines().enumerate().map(line).filter(has_content)
    }

    fn words(&self) -> Vec<&'a str> {
        self.text.split_whitespace().collect()
    }

    /// A problem at a word of the line, or at its beginning.
    fn problem(&self, word: &str, message: impl Into<String>, help: impl Into<String>) -> Problem {
        let column = self.text.find(word).map_or(1, |at| self.text[..at].chars().count() + 1);
        Problem::new(self.file, message).at(self.number, column, self.text).help(help)
    }

    /// The whole number after a word.
    fn number(&self, word: &str, value: Option<&&str>) -> Result<u64, Problem> {
        let found = value.map_or("nothing".into(), |value| quoted(value));
        let message = format!("{word}: expected a whole number, found {found}");
        let help = format!("write {word} and a number");
        value.and_then(|value| value.parse().ok()).ok_or_else(|| self.problem(value.unwrap_or(&word), message, help))
    }
}

/// A connection of a matrix.
struct Connection<'a> {
    line: Line<'a>,
    src: u64,
    dst: u64,
    size: u64,
    start: Option<u64>,
    id: Option<u64>,
    /// The trigger that starts it.
    trigger: Option<u64>,
    /// The triggers that its end sets off, and whether that is its end at the sender.
    fires: Vec<(u64, bool)>,
}

/// A trigger of a matrix.
struct Trigger<'a> {
    line: Line<'a>,
    kind: &'a str,
    count: u64,
}

/// A connection matrix.
struct Matrix<'a> {
    nodes: u64,
    connections: Vec<Connection<'a>>,
    triggers: BTreeMap<u64, Trigger<'a>>,
}

/// How a scenario that comes from here begins.
pub const FROM: &str = "# From htsim's ";

/// Turns a connection matrix, and a topology if there is one, into a scenario whose files begin with `stem`.
///
/// What comes out can be run: it is checked as a scenario here, and what is wrong is put down to a line of these files.
pub fn import(matrix: Text<'_>, topology: Option<Text<'_>>, stem: &str) -> Result<Imported, Problem> {
    let read = Matrix::read(matrix)?;
    let mut notes = Vec::new();
    let (mut fabric, mut pipeline, mut graph) = (String::new(), None, None);
    let mut source = format!("{FROM}{}", quoted(matrix.name));
    match topology {
        Some(file) => {
            let tree = Tree::read(file)?;
            if read.nodes > tree.nodes {
                let message = format!("has {} nodes, but {} has {}", read.nodes, file.name, tree.nodes);
                return Err(Problem::new(matrix.name, message).help("give the topology that the matrix was made for"));
            }
            let _ = write!(source, " and {}", quoted(file.name));
            if tree.tiers.len() == 2 {
                fabric = tree.leaf_spine();
            } else {
                graph = Some(tree.graph());
                let path = quote(&format!("{stem}.graph.toml"));
                let _ = writeln!(fabric, "[topology]\nkind = \"file\"\npath = {path}");
            }
            pipeline = Some(tree.tiers[0].switch_latency).filter(|latency| *latency > 0);
            if tree.queues {
                notes.push(format!(
                    "{}: Queue_Up and Queue_Down are left out: switches here share one memory; set switch.buffer",
                    file.name
                ));
            }
        }
        None => {
            let k = (1..=160u64).map(|half| 2 * half).find(|k| k * k * k / 4 == read.nodes);
            let Some(k) = k else {
                let message = format!("{} nodes are not a fat tree of k-port switches, which has k³/4", read.nodes);
                return Err(Problem::new(matrix.name, message).help("give the topology, too, with --topo"));
            };
            let _ = writeln!(fabric, "[topology]\nkind = \"fat-tree\"\nk = {k}");
            notes.push(format!("no topology was given: a fat tree of {k}-port switches with 100Gbps and 1us links"));
        }
    }
    let trace = format!("{stem}.csv");
    let scenario = |buffer: Option<Bytes>| {
        let mut text = format!("{source}.\nname = {}\n\n{fabric}", quote(stem));
        if pipeline.is_some() || buffer.is_some() {
            text += "\n[switch]\n";
        }
        let _ = pipeline.map_or(Ok(()), |latency| writeln!(text, "pipeline = \"{latency}ns\""));
        let _ = buffer.map_or(Ok(()), |buffer| writeln!(text, "buffer = \"{buffer}\""));
        // A matrix says which flows there are: the seed is left to say which paths they take.
        text += "\n[scheme]\nsalt = \"seed\"\n";
        let _ = writeln!(text, "\n[traffic]\ntrace = {}", quote(&trace));
        text
    };
    let flows = read.flows()?;
    let graph_name = format!("{stem}.graph.toml");
    let mut files = vec![(trace.as_str(), flows.as_str())];
    files.extend(graph.as_ref().map(|graph| (graph_name.as_str(), graph.as_str())));
    let check = |text: &str| Scenario::parse_beside(stem, text, Beside::Texts(&files), &[]).and_then(resolve).map(drop);

    let mut text = scenario(None);
    let mut found = check(&text);
    let usual = SwitchSettings::default().buffer;
    for doubling in 1..=DOUBLINGS {
        // The files say nothing of a shared memory, so it is made as large as it must be.
        if !found.as_ref().is_err_and(|problem| problem.key.as_deref() == Some("switch.buffer")) {
            break;
        }
        let buffer = Bytes(usual.0 << doubling);
        text = scenario(Some(buffer));
        found = check(&text);
        if found.is_ok() {
            notes.push(format!("switch.buffer is {buffer}: {usual} would not hold the headroom of lossless links"));
        }
    }
    found.map_err(|problem| read.blame(&problem, &trace, topology.unwrap_or(matrix).name))?;
    Ok(Imported { scenario: text, flows, graph, notes })
}

impl<'a> Matrix<'a> {
    fn read(file: Text<'a>) -> Result<Matrix<'a>, Problem> {
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        let (mut connections, mut triggers) = (Vec::new(), BTreeMap::new());
        for line in Line::all(file) {
            let words = line.words();
            match words[0] {
                head @ ("Nodes" | "Connections" | "Triggers" | "Failures") => {
                    _ = counts.insert(head, line.number(head, words.get(1))?);
                }
                "trigger" => {
                    let (id, trigger) = read_trigger(line)?;
                    if let Some(Trigger { line, .. }) = triggers.insert(id, trigger) {
                        let message = format!("trigger {id} is there twice");
                        return Err(line.problem("trigger", message, "give each trigger an id of its own"));
                    }
                }
                "failure" => {
                    let help = "remove it, and give the scenario a [[link]] with down";
                    return Err(line.problem("failure", "failures are not read", help));
                }
                word if word.contains("->") => connections.push(read_connection(line)?),
                word => {
                    let help = "write Nodes, Connections, Triggers, A->B, or trigger";
                    return Err(line.problem(word, format!("unknown word {}", quoted(word)), help));
                }
            }
        }
        let problem = |message: String, help: &str| Err(Problem::new(file.name, message).help(help));
        let count = |head: &str| counts.get(head).copied();
        if let Some(nodes) = count("Nodes").filter(|nodes| *nodes > MOST_HOSTS) {
            return problem(format!("has {nodes} Nodes; {MOST_HOSTS} is the most"), "give a smaller matrix");
        }
        let Some(nodes) = count("Nodes").filter(|&nodes| nodes > 1) else {
            return problem("does not say how many Nodes there are".into(), "begin with Nodes and a number above 1");
        };
        for (head, found) in [("Connections", connections.len()), ("Triggers", triggers.len())] {
            if count(head).unwrap_or(0) != found as u64 {
                let said = count(head).unwrap_or(0);
                return problem(format!("says {head} {said}, but has {found}"), "check that the file is whole");
            }
        }
        if connections.is_empty() {
            return problem("has no connections".into(), "add one, such as 0->1 start 0 size 1000000, and count it");
        }
        let mut ids = BTreeSet::new();
        for Connection { line, src, dst, id, .. } in &connections {
            if let Some(node) = [src, dst].into_iter().find(|node| **node >= nodes) {
                let message = format!("there is no node {node}");
                return Err(line.problem(&node.to_string(), message, format!("nodes are 0 to {}", nodes - 1)));
            }
            if src == dst {
                return Err(line.problem("->", "a node sends to itself", "name two nodes"));
            }
            if let Some(id) = id.filter(|id| !ids.insert(*id)) {
                return Err(line.problem("id", format!("id {id} is there twice"), "give each connection its own"));
            }
        }
        Ok(Matrix { nodes, connections, triggers })
    }

    /// A problem of the scenario as one of the files that it was made of: of a connection, if it is one of the trace, or else of `file`.
    fn blame(&self, problem: &Problem, trace: &str, file: &str) -> Problem {
        // Flows are in the order of connections, one in each line after the first.
        let by_line = || problem.line.filter(|_| problem.file == trace).and_then(|line| line.checked_sub(2));
        let rest = || problem.message.strip_prefix("flow ")?.split_once(&format!(" of {trace}: "));
        let (place, message) = match rest() {
            Some((number, message)) => (number.parse().ok().and_then(|number: usize| number.checked_sub(1)), message),
            None => (by_line(), problem.message.as_str()),
        };
        let help = problem.help.clone().unwrap_or_else(|| "change it in this file".into());
        match place.and_then(|place| self.connections.get(place)) {
            Some(Connection { line, .. }) => line.problem("", message, help),
            None => Problem::new(file, format!("what it describes cannot be run: {message}")).help(help),
        }
    }

    /// The flows as a trace.
    fn flows(&self) -> Result<String, Problem> {
        // By trigger, the connections that set it off, and where they are done.
        let mut causes: BTreeMap<u64, Vec<(usize, bool)>> = BTreeMap::new();
        for (place, connection) in self.connections.iter().enumerate() {
            for &(trigger, at_sender) in &connection.fires {
                causes.entry(trigger).or_default().push((place, at_sender));
            }
        }
        let mut out = String::from("src,dst,size_bytes,start_ps,id,after\n");
        for (place, connection) in self.connections.iter().enumerate() {
            let Connection { src, dst, size, line, .. } = connection;
            let mut after = Vec::new();
            if let Some(id) = connection.trigger {
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
                    after.push(format!("c{cause}"));
                }
            }
            let start = connection.start.unwrap_or(0);
            let id = if connection.fires.is_empty() { String::new() } else { format!("c{place}") };
            let _ = writeln!(out, "h{src},h{dst},{size},{start},{id},{}", after.join(";"));
        }
        Ok(out)
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

fn read_connection(line: Line<'_>) -> Result<Connection<'_>, Problem> {
    let words = line.words();
    let ends = words[0].split_once("->").and_then(|(src, dst)| Some((src.parse().ok()?, dst.parse().ok()?)));
    let Some((src, dst)) = ends else {
        return Err(line.problem(words[0], format!("{} is not A->B", quoted(words[0])), "write two numbers of nodes"));
    };
    let (mut size, mut start, mut id, mut trigger, mut fires) = (None, None, None, None, Vec::new());
    let mut rest = words[1..].iter();
    while let Some(&word) = rest.next() {
        match word {
            "start" => {
                let value = rest.next();
                // Scripts write 1e6 and 0.0, too.
                let time =
                    value.and_then(|value| value.parse::<f64>().ok()).filter(|time| (0.0..1.8e19).contains(time));
                let exact = value.and_then(|value| value.parse::<u64>().ok());
                let Some(time) = exact.or(time.map(|time| time.round() as u64)) else {
                    let help = "write start and picoseconds, from 0 on";
                    return Err(line.problem(value.unwrap_or(&word), "start: expected a time", help));
                };
                if time > MAX_START.0 {
                    let message = format!("start is {}, later than a scenario can say", Time(time));
                    let help = format!("start it at {} picoseconds or before", MAX_START.0);
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
            "prio" | "addon" => {
                let message = format!("{word} is not read: flows have no such thing here");
                return Err(line.problem(word, message, "remove it"));
            }
            word => {
                let help = "write start, size, id, trigger, send_done_trigger or recv_done_trigger";
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
    Ok(Connection { line, src, dst, size, start, id, trigger, fires })
}

/// A tier of a topology, with the links below it.
#[derive(Clone, Copy, Default)]
struct Tier {
    /// Rate of a link, in Gbps.
    gbps: u64,
    /// Delay of a link, in nanoseconds.
    latency: u64,
    switch_latency: u64,
    down: u64,
    up: u64,
    oversubscribed: u64,
    bundle: u64,
}

/// A topology: a fat tree of two or three tiers.
struct Tree {
    nodes: u64,
    /// Switches of a pod: those above hosts, and those above these.
    tors: u64,
    aggs: u64,
    pods: u64,
    cores: u64,
    tiers: Vec<Tier>,
    /// Whether it has sizes of queues.
    queues: bool,
}

impl Tree {
    fn read(file: Text<'_>) -> Result<Tree, Problem> {
        let (mut nodes, mut count, mut podsize, mut queues) = (None, None, None, false);
        let mut tiers: BTreeMap<u64, Tier> = BTreeMap::new();
        let mut current = None;
        for line in Line::all(file) {
            let words = line.words();
            let key = words[0].to_lowercase();
            let value = line.number(words[0], words.get(1))?;
            let most = match key.as_str() {
                "downlink_speed_gbps" => MOST_GBPS,
                "downlink_latency_ns" | "switch_latency_ns" => MOST_NS,
                "queue_up" | "queue_down" => u64::MAX,
                _ => MOST_HOSTS,
            };
            if value > most {
                let message = format!("{} is {value}, and {most} is the most", words[0]);
                return Err(line.problem(words.get(1).unwrap_or(&""), message, format!("write {most} or less")));
            }
            match (key.as_str(), current) {
                ("nodes", None) => nodes = Some(value),
                ("tiers", None) => count = Some(value),
                ("podsize", None) => podsize = Some(value),
                ("tier", _) if value > 2 => {
                    return Err(line.problem("", format!("there is no tier {value}"), "tiers are 0, 1 and 2"));
                }
                ("tier", _) => {
                    current = Some(value);
                    tiers.insert(value, Tier { oversubscribed: 1, bundle: 1, ..Tier::default() });
                }
                (key, Some(number)) => {
                    let tier = tiers.entry(number).or_default();
                    match key {
                        "downlink_speed_gbps" => tier.gbps = value,
                        "downlink_latency_ns" => tier.latency = value,
                        "switch_latency_ns" => tier.switch_latency = value,
                        "radix_down" => tier.down = value,
                        "radix_up" => tier.up = value,
                        "oversubscribed" => tier.oversubscribed = value,
                        "bundle" => tier.bundle = value,
                        "queue_up" | "queue_down" => queues = true,
                        _ => {
                            let help = "the keys of a tier are Downlink_speed_Gbps, Downlink_Latency_ns, Switch_Latency_ns, Radix_Down, Radix_Up, Oversubscribed, Bundle, Queue_Up and Queue_Down";
                            return Err(line.problem(words[0], format!("unknown key {}", quoted(words[0])), help));
                        }
                    }
                }
                _ => {
                    let help = "before the first Tier there are Nodes, Tiers and Podsize";
                    return Err(line.problem(words[0], format!("unknown key {}", quoted(words[0])), help));
                }
            }
        }
        let problem = |message: String, help: &str| Problem::new(file.name, message).help(help);
        let needed = |value: Option<u64>, key: &str| {
            value
                .filter(|value| (1..=MOST_HOSTS).contains(value))
                .ok_or_else(|| problem(format!("has no {key} above 0"), "add it before the first Tier"))
        };
        let (nodes, podsize) = (needed(nodes, "Nodes")?, needed(podsize, "Podsize")?);
        let count = needed(count, "Tiers")?;
        if !(2..=3).contains(&count) || !tiers.keys().copied().eq(0..count) {
            let found: Vec<String> = tiers.keys().map(u64::to_string).collect();
            let message = format!("says Tiers {count}, and has Tier {}", found.join(", "));
            return Err(problem(message, "write 2 or 3 tiers, from Tier 0 on"));
        }
        let tiers: Vec<Tier> = tiers.into_values().collect();
        for (number, tier) in tiers.iter().enumerate() {
            let up = number + 1 == tiers.len() || tier.up > 0;
            if tier.gbps == 0
                || tier.latency == 0
                || tier.down == 0
                || tier.bundle == 0
                || tier.oversubscribed == 0
                || !up
            {
                let message = format!("Tier {number} lacks its speed, latency or radix");
                return Err(problem(
                    message,
                    "give it Downlink_speed_Gbps, Downlink_Latency_ns, Radix_Down and, below the top, Radix_Up",
                ));
            }
        }
        if tiers.iter().any(|tier| tier.switch_latency != tiers[0].switch_latency) {
            let message = "its tiers have different Switch_Latency_ns, and switches here are all alike".into();
            return Err(problem(message, "give them one value, or put the difference into the links' latency"));
        }
        Tree { nodes, tors: 0, aggs: 0, pods: 0, cores: 0, tiers, queues }
            .sized(podsize)
            .map_err(|(message, help)| problem(message, help))
    }

    /// Works out how many switches there are, as htsim does, and holds that against the radices.
    fn sized(mut self, podsize: u64) -> Result<Tree, (String, &'static str)> {
        const HELP: &str = "check Nodes, Podsize, the radices, Oversubscribed and Bundle: htsim refuses it, too";
        let exact = |a: u64, b: u64, what: &str| match (b > 0 && a.is_multiple_of(b)).then(|| a / b) {
            Some(parts @ 1..) => Ok(parts),
            _ => Err((format!("{what}: {a} is not a multiple of {b}"), HELP)),
        };
        let [bottom, middle] = [self.tiers[0], self.tiers[1]];
        if bottom.bundle != 1 {
            return Err(("Tier 0 has a Bundle: hosts have one link".into(), HELP));
        }
        self.pods = exact(self.nodes, podsize, "Nodes by Podsize")?;
        if self.tiers.len() == 2 && self.pods != 1 {
            return Err(("with two tiers there is one pod".into(), "write Podsize as Nodes"));
        }
        self.tors = exact(podsize, bottom.down, "Podsize by Radix_Down of Tier 0")?;
        let uplinks =
            exact(self.nodes * bottom.gbps, middle.gbps * bottom.oversubscribed, "speed of hosts by that of uplinks")?;
        self.aggs = exact(uplinks, self.pods * middle.down, "uplinks by Radix_Down of Tier 1")?;
        let same = |what: &str, has: u64, needs: u64| match has == needs {
            true => Ok(()),
            false => Err((format!("{what} is {has}, but the rest needs {needs}"), HELP)),
        };
        same("Radix_Down of Tier 1", middle.down, self.tors * middle.bundle)?;
        same("Radix_Up of Tier 0", bottom.up, self.aggs * middle.bundle)?;
        if let Some(top) = self.tiers.get(2) {
            let uplinks =
                exact(uplinks * middle.gbps, top.gbps * middle.oversubscribed, "speed below by that of the top")?;
            self.cores = exact(uplinks, top.down, "uplinks by Radix_Down of Tier 2")?;
            let each = exact(middle.up, top.bundle, "Radix_Up of Tier 1 by Bundle of Tier 2")?;
            same("Radix_Down of Tier 2", top.down, self.pods * top.bundle)?;
            same("the number of top switches", self.cores, self.aggs * each)?;
        }
        self.fits()?;
        Ok(self)
    }

    /// Refuses what is larger than any fabric here, before its graph is written.
    fn fits(&self) -> Result<(), (String, &'static str)> {
        let all = |each: u64| self.pods.saturating_mul(each);
        let bundles = |switches: u64, links: u64, tier: usize| {
            switches.saturating_mul(links).saturating_mul(self.tiers.get(tier).map_or(0, |tier| tier.bundle))
        };
        let (roots, aggs) = (all(self.tors), all(self.aggs));
        let nodes = self.nodes.saturating_add(roots).saturating_add(aggs).saturating_add(self.cores);
        let links = self.nodes.saturating_add(bundles(roots, self.aggs, 1));
        let links = links.saturating_add(if self.cores > 0 { bundles(aggs, self.tiers[1].up, 2) } else { 0 });
        let ports = self.tiers.iter().map(|tier| tier.down.saturating_add(tier.up)).max().unwrap_or(0);
        let limits = [
            (nodes, MAX_NODES, "nodes"),
            (links, MAX_LINKS, "links"),
            (ports, MAX_PORTS, "ports at one switch"),
            (nodes.saturating_mul(roots), MAX_ROUTES, "entries of routing tables"),
        ];
        match limits.into_iter().find(|(count, most, _)| count > most) {
            Some((count, most, what)) => {
                Err((format!("it describes {count} {what}, and {most} is the most"), "give a smaller topology"))
            }
            None => Ok(()),
        }
    }

    /// Two tiers, as a shape that scenarios have.
    fn leaf_spine(&self) -> String {
        let [bottom, middle] = [self.tiers[0], self.tiers[1]];
        format!(
            "[topology]\nkind = \"leaf-spine\"\nleaves = {}\nhosts_per_leaf = {}\nspines = {}\nlinks_per_pair = {}\n\
             host_rate = \"{}Gbps\"\nhost_delay = \"{}ns\"\nuplink_rate = \"{}Gbps\"\nuplink_delay = \"{}ns\"\n",
            self.tors, bottom.down, self.aggs, middle.bundle, bottom.gbps, bottom.latency, middle.gbps, middle.latency
        )
    }

    /// Three tiers, as a graph.
    fn graph(&self) -> String {
        let mut out = String::new();
        let mut node = |name: String, kind: &str, tier: u8| {
            let _ = writeln!(out, "[[node]]\nname = \"{name}\"\nkind = \"{kind}\"\ntier = {tier}\n");
        };
        (0..self.nodes).for_each(|host| node(format!("h{host}"), "host", 0));
        (0..self.tors * self.pods).for_each(|tor| node(format!("tor{tor}"), "switch", 1));
        (0..self.aggs * self.pods).for_each(|agg| node(format!("agg{agg}"), "switch", 2));
        (0..self.cores).for_each(|core| node(format!("core{core}"), "switch", 3));
        let mut link = |a: String, b: String, tier: &Tier| {
            for _ in 0..tier.bundle {
                let (rate, delay) = (tier.gbps, tier.latency);
                let _ = writeln!(
                    out,
                    "[[link]]\nbetween = [\"{a}\", \"{b}\"]\nrate = \"{rate}Gbps\"\ndelay = \"{delay}ns\"\n"
                );
            }
        };
        let [bottom, middle, top] = [&self.tiers[0], &self.tiers[1], &self.tiers[2]];
        (0..self.nodes).for_each(|host| link(format!("h{host}"), format!("tor{}", host / bottom.down), bottom));
        for tor in 0..self.tors * self.pods {
            let first = tor / self.tors * self.aggs;
            (first..first + self.aggs).for_each(|agg| link(format!("tor{tor}"), format!("agg{agg}"), middle));
        }
        for agg in 0..self.aggs * self.pods {
            // Switches in the same place of their pods share their tops.
            let own = |up| agg % self.aggs + self.aggs * up;
            (0..middle.up / top.bundle).for_each(|up| link(format!("agg{agg}"), format!("core{}", own(up)), top));
        }
        out
    }
}
