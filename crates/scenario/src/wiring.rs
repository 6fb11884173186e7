//! The fabric of a scenario: a shape with its parameters or a graph file, and what single links have of their own.

use super::settings::{MAX_RATE, MIN_RATE};
use crate::Beside;
use crate::declared::{Key, Section};
use crate::document::{Document, Item, Table, quoted, suggest};
use crate::kind::FileKind;
use crate::scenario::Problems;
use engine::{Bytes, Kind as ValueKind, Limits, Rate, Raw, Time, Value, ValueError};
use fabric::id::NodeId;
use fabric::retry::{Retry, Unprotected};
use fabric::topology::{self, Graph, GraphError, Kind, Link, MAX_LINKS, MAX_NODES, ShapeError, WHOLE};
use files::problem::{Cause, Problem};
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::LazyLock;
use traffic::{MAX_START, Names};

/// The longest propagation delay.
const MAX_DELAY: Time = Time::from_ms(1_000);
/// The shortest and the longest that queues may be, as a part of what is usual.
const LEAST_DEPTH: f64 = 0.01;
const MOST_DEPTH: f64 = 16.0;
/// The most problems of a graph file that are shown.
const MOST_PROBLEMS: usize = 20;
/// In fabrics with more nodes than this an unknown name is not compared with all of theirs.
const MANY_NODES: usize = 20_000;

/// A node as people write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NodeRef {
    Name(String),
    Number(u32),
}

impl Value for NodeRef {
    fn kind() -> ValueKind {
        let said = "a node's name in quotes, such as \"h0\", or its number";
        ValueKind::Either { name: "node", said, of: vec![ValueKind::Text, u32::kind()] }
    }
    fn read(raw: &Raw) -> Result<Self, ValueError> {
        match raw {
            Raw::Text(text) => Ok(NodeRef::Name(text.clone())),
            Raw::Integer(_) => u32::read(raw).map(NodeRef::Number),
            _ => Err(ValueError::Expected { expected: Self::kind().to_string(), found: None }),
        }
    }
    fn raw(&self) -> Raw {
        match self {
            NodeRef::Name(name) => Raw::Text(name.clone()),
            NodeRef::Number(number) => number.raw(),
        }
    }
    fn show(&self) -> String {
        match self {
            NodeRef::Name(name) => format!("{name:?}"),
            NodeRef::Number(number) => number.to_string(),
        }
    }
}

/// `[[link]]`.
pub(crate) static LINK: LazyLock<Section> = LazyLock::new(|| {
    let ends = ValueKind::Array {
        name: "two nodes",
        said: "an array of two nodes, such as [\"leaf0\", \"spine1\"]",
        of: Box::new(NodeRef::kind()),
        length: (2..=2).into(),
    };
    let array =
        |name, said, of: ValueKind, length: Limits<u64>| ValueKind::Array { name, said, of: Box::new(of), length };
    let outage = array("array of times", "an array of times", Time::kind(), (1..=2).into());
    let outages = array("array of arrays of times", "an array of arrays of times", outage, (0..).into());
    let topologys = "the topology's";
    let keys = vec![
        Key::new("between", ends, "The ends. Their order matters to `rate_back` and `queues_back` alone.").needed(),
        Key::within::<Rate>("rate", MIN_RATE..=MAX_RATE, "Bits per second in each direction.").otherwise(topologys),
        Key::within::<Rate>("rate_back", MIN_RATE..=MAX_RATE, "Bits per second from the second end to the first.")
            .otherwise("as `rate`"),
        Key::within::<Time>("delay", Time(1)..=MAX_DELAY, "Propagation delay.").otherwise(topologys),
        Key::within::<f64>(
            "queues",
            LEAST_DEPTH..=MOST_DEPTH,
            "Length of the queues that feed it, where they have limits, and of what they mark from on, as a part of what is usual.",
        )
        .or(1.0),
        Key::within::<f64>(
            "queues_back",
            LEAST_DEPTH..=MOST_DEPTH,
            "The same of the queues that feed it from the second end to the first.",
        )
        .otherwise("as `queues`"),
        Key::within::<f64>("loss", 0.0..=1.0, "Probability, 0 to 1, that a packet vanishes.").or(0.0),
        Key::within::<f64>(
            "corruption",
            0.0..=1.0,
            "Probability, 0 to 1, that a packet arrives damaged and is discarded.",
        )
        .or(0.0),
        Key::within::<f64>(
            "bit_error_rate",
            0.0..=1.0,
            "Probability that a bit arrives wrong, after error correction: a packet with such a bit is damaged.",
        )
        .otherwise("as in `[links]`"),
        Key::of::<bool>("retry", "Whether it repeats what is lost or damaged, as `[links.retry]` has it.")
            .otherwise("as in `[links.retry]`"),
        Key::new(
            "down",
            outages,
            "Outages: `[[\"1ms\", \"2ms\"], [\"5ms\"]]` is down from 1ms to 2ms and from 5ms for good.",
        )
        .otherwise("never"),
    ];
    Section::many("link", "What one link has of its own. Parallel links between the two nodes share it.", keys)
});

engine::parameters! {
    /// `[links]`.
    pub struct LinksSettings {
        /// Probability, 0 to 1, that a bit arrives wrong, after error correction: a packet with such a bit is damaged.
        bit_error_rate: f64 = 0.0, in 0.0..=1.0,
    }
}

engine::parameters! {
    /// `[links.retry]`.
    pub struct RetrySettings {
        /// Whether links repeat what is lost or damaged. `[[link]]` may differ.
        on: bool = true,
        /// The most frames that a sender keeps until they are acknowledged; `"auto"`: as many as the bytes allow.
        frames: Option<u32> = None, in 1..=524_288,
        /// The most bytes of them; `"auto"`: twice what the link carries from a frame's being sent to its ACK.
        bytes: Option<Bytes> = None, in Bytes(64)..=Bytes(1_000_000_000),
        /// Bytes of link time between two ACKs (CTLOS_TARGET_SPACING).
        ack_spacing: Bytes = Bytes(2048), in Bytes(64)..=Bytes(65_535),
        /// A sender that hears of no progress for so long repeats everything (REPLAY_TIMER_MAX); `"auto"`: twice the time from a frame's being sent to its ACK.
        timer: Option<Time> = None, in Time(1)..=MAX_DELAY,
        /// Repeat for ever, instead of giving up. Then a link that works loses nothing.
        endless: bool = false,
        /// How often in a row the timer makes it repeat before it gives up (REPLAY_COUNT_MAX).
        max_replays: u32 = 1, in 0..=255, if endless == false,
        /// A frame that waits so long for its ACK makes it give up (DATA_AGE_TIMEOUT); 0 for never.
        data_age: Time = Time::ZERO, in Time::ZERO..=MAX_DELAY, if endless == false,
        /// What becomes of frames after it has given up.
        after: Unprotected = Unprotected::BestEffort, if endless == false,
        /// Start again after it has given up (RE_INIT_ON_FLUSH).
        restart: bool = false, if endless == false,
        /// A link that is down for less has not failed: it repeats afterwards what it had sent, and what waits for it waits on (PCS_LOST_TIMEOUT).
        link_lost: Time = Time::ZERO, in Time::ZERO..=MAX_DELAY,
        /// Replays in a row of a pause that the automatic headroom of switches allows for; `"auto"`: until more are less likely than 1 in 1e9, or 4.
        pause_replays: Option<u32> = None, in 0..=16,
    }
}

impl RetrySettings {
    /// What links do.
    fn retry(&self) -> Retry {
        Retry {
            frames: self.frames,
            bytes: self.bytes.map(|bytes| bytes.0),
            spacing: self.ack_spacing.0,
            timer: self.timer,
            replays: (!self.endless).then_some(self.max_replays),
            age: (!self.endless && self.data_age > Time::ZERO).then_some(self.data_age),
            link_lost: self.link_lost,
            then: self.after,
            restart: self.restart,
            // Known with the rest of the scenario.
            hasty: false,
        }
    }
}

/// `[links]`.
pub(crate) static LINKS: LazyLock<Section> = LazyLock::new(|| {
    let about = "What all links have that have nothing of their own.";
    Section::of("links", about, &LinksSettings::default()).with_tables(vec!["retry"])
});

/// `[links.retry]`.
pub(crate) static RETRY: LazyLock<Section> = LazyLock::new(|| {
    let about = "Links that repeat what they lose or damage (link-layer retry, as in Ultra Ethernet). They do where this table is written.";
    Section::of("links.retry", about, &RetrySettings::default())
});

/// `[topology]`, by kind: every shape with its parameters, and a graph file.
pub(crate) static TOPOLOGIES: LazyLock<Vec<Section>> = LazyLock::new(|| {
    let kind = || Key::of::<String>("kind", "The shape of the fabric, or `file`.").needed();
    let section = |name: &'static str, about: &str, keys: Vec<Key>| Section {
        with: Some(("topology.kind", name)),
        ..Section::new("topology", about, [vec![kind()], keys].concat())
    };
    let shapes = topology::shapes();
    let shapes = shapes
        .iter()
        .map(|shape| section(shape.name(), shape.about(), shape.list().into_iter().map(Key::from).collect()));
    let about = "The graph file. A relative path is taken from the folder of the scenario file.";
    let file = section(FILE, "The fabric of a graph file.", vec![Key::of::<String>("path", about).needed()]);
    shapes.chain([file]).collect()
});

/// The topology that is read from a file.
const FILE: &str = "file";

/// The node that an item names.
pub(super) fn node(item: &Item<'_>, names: &Names<'_>) -> Result<NodeId, Problem> {
    let reference: NodeRef = item.read()?;
    let nodes = &names.graph().nodes;
    let found = match &reference {
        NodeRef::Name(name) => names.find(name),
        NodeRef::Number(number) => Some(NodeId(*number)).filter(|node| node.index() < nodes.len()),
    };
    let name = if let NodeRef::Name(name) = &reference { name } else { "" };
    found.ok_or_else(|| unknown_node(item, &reference.show(), name, names))
}

/// The problem that an item names a node that is not there.
pub(super) fn unknown_node(item: &Item<'_>, shown: &str, name: &str, names: &Names<'_>) -> Problem {
    let nodes = &names.graph().nodes;
    let range = ranges(names.graph());
    let meant = match nodes.len() <= MANY_NODES && !name.is_empty() {
        true => meant(name, &nodes.iter().map(|node| node.name.as_str()).collect::<Vec<_>>()),
        false => None,
    };
    let problem = item.problem(format!("there is no node {shown}")).meant(meant).cause(Cause::Fabric);
    problem.help(match meant {
        Some(meant) => format!("did you mean \"{meant}\"? The nodes are {range}"),
        None => format!("the nodes are {range}, or numbers from 0 to {}", nodes.len().saturating_sub(1)),
    })
}

/// The node that a name was probably meant for: one of the same number whose letters begin alike, as `s0` and `switch0` are `sw0`, or else the
/// nearest.
fn meant<'a>(name: &str, nodes: &[&'a str]) -> Option<&'a str> {
    let split = |name: &str| {
        let letters = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let word: String = letters.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
        (word, name[letters.len()..].to_string())
    };
    let (word, number) = split(name);
    let alike = |node: &&&str| {
        let (letters, own) = split(node);
        let long = letters.starts_with(&word) || word.starts_with(&letters);
        !word.is_empty() && !letters.is_empty() && !number.is_empty() && own == number && long
    };
    let alike: Vec<&'a str> = nodes.iter().filter(alike).copied().collect();
    match alike.as_slice() {
        [one] => Some(one),
        [] => suggest(name, nodes),
        several => suggest(name, several),
    }
}

/// The names of a graph's nodes in short: the first and the last of each row of one kind and name.
fn ranges(graph: &Graph) -> String {
    let stem = |name: &str| name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let alike = |a: &topology::Node, b: &topology::Node| {
        (a.kind, a.tier) == (b.kind, b.tier) && a.name[..stem(&a.name)] == b.name[..stem(&b.name)]
    };
    let rows = graph.nodes.chunk_by(alike);
    let row = |row: &[topology::Node]| match row {
        [one] => one.name.clone(),
        [first, .., last] => format!("{} … {}", first.name, last.name),
        [] => String::new(),
    };
    let rows: Vec<String> = rows.take(8).map(row).collect();
    rows.join(", ")
}

/// A topology as a scenario says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// Its shape, or `file`.
    pub kind: String,
    /// The shape's parameters and their values, or the path of the file.
    pub settings: Vec<(&'static str, String)>,
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [("path", path)] = self.settings.as_slice() {
            return write!(f, "{} {path}", self.kind);
        }
        let settings: Vec<String> = self.settings.iter().map(|(name, value)| format!("{name} {value}")).collect();
        write!(f, "{}: {}", self.kind, settings.join(", "))
    }
}

/// Builds what `[topology]` describes, and says what that is. Files are looked for in `base`.
pub(super) fn read_topology(root: &mut Table<'_>, base: Beside<'_>) -> Result<(Graph, Topology), Problem> {
    let names: Vec<&str> = topology::shapes().iter().map(|shape| shape.name()).chain([FILE]).collect();
    let kinds = names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
    let Some(mut table) = root.table("topology")? else {
        let problem = root.problem("the file has no [topology]");
        return Err(problem.help(format!("add [topology] and in it kind = one of {kinds}")));
    };
    let Some(item) = table.item("kind") else { return Err(table.missing("kind", &format!("one of {kinds}"))) };
    let kind: String = item.read()?;
    if let Some(section) = TOPOLOGIES.iter().find(|section| section.with.is_some_and(|(_, name)| name == kind)) {
        table.takes(section);
    }
    if kind == FILE {
        let path: String = table.required("path")?;
        let text = base.read(&path).map_err(|problem| elsewhere(&table, "path", &problem))?;
        table.finish()?;
        let graph = read_graph(&base.path(&path).display().to_string(), text)?;
        return Ok((graph, Topology { kind, settings: vec![("path", path)] }));
    }
    let Some(mut shape) = topology::shape(&kind) else {
        let meant = suggest(&kind, &names);
        let help = match meant {
            Some(meant) => format!("did you mean \"{meant}\"? It is one of {kinds}"),
            None => format!("write one of {kinds}"),
        };
        return Err(item.problem(format!("there is no topology {}", quoted(&kind))).help(help).meant(meant));
    };
    let mut wrong = Problems::default();
    wrong.keep(table.fill(&mut *shape));
    let parameters = shape.list();
    let usual = topology::shape(&kind).map_or_else(Vec::new, |shape| shape.list());
    let mut replaced: Vec<&str> = Vec::new();
    let graph = loop {
        let error = match shape.build() {
            Ok(graph) => break graph,
            Err(error) => error,
        };
        let problem = match error {
            ShapeError::TooManyRoutes { .. } => table.problem(error.problem()),
            _ => table.problem_at(error.parameter().unwrap_or("kind"), error.problem()),
        };
        let problem = problem.help(error.remedy());
        let alone = error.parameter().filter(|_| !matches!(error, ShapeError::TooMany { .. }));
        let usual = alone.and_then(|parameter| usual.iter().find(|usual| usual.name == parameter));
        match usual.filter(|usual| !replaced.contains(&usual.name)) {
            // One that cannot be whatever the others are: they are looked at without it.
            Some(usual) => {
                wrong.keep::<()>(Err(problem));
                replaced.push(usual.name);
                shape.set(usual.name, &usual.raw);
            }
            None if wrong.is_empty() => return Err(problem),
            None => return wrong.or(()).and(Err(problem)),
        }
    };
    wrong.or(())?;
    for link in &graph.links {
        let ends = || format!("{} to {}", graph[link.a].name, graph[link.b].name);
        let rate = link.rates.into_iter().find(|rate| !(MIN_RATE..=MAX_RATE).contains(rate));
        if rate.is_some() || !(Time(1)..=MAX_DELAY).contains(&link.delay) {
            let rate = rate.unwrap_or(link.rates[0]);
            let message = format!("the link {} is out of range: {rate} with a delay of {}", ends(), link.delay);
            let help = format!("write rates from {MIN_RATE} to {MAX_RATE}, and delays from {} to {MAX_DELAY}", Time(1));
            return Err(table.problem(message).help(help));
        }
    }
    table.finish()?;
    let setting = |p: &engine::Parameter| (p.name, p.value.trim_matches('"').to_string());
    Ok((graph, Topology { kind, settings: parameters.iter().map(setting).collect() }))
}

/// A fabric that stands for one that cannot be.
pub(super) fn stand_in() -> Graph {
    topology::shape("star").and_then(|shape| shape.build().ok()).unwrap_or_default()
}

/// The problem that a file named under `key` cannot be read.
pub(super) fn elsewhere(table: &Table<'_>, key: &str, problem: &Problem) -> Problem {
    let message = format!("{key}: {} {}", problem.file, problem.message);
    table.problem_at(key, message).help("the path is taken from the folder of the scenario file")
}

/// Gives the problem of a graph its remedy, where there is one.
pub(super) fn remedied(problem: Problem, error: &GraphError) -> Problem {
    match error.remedy() {
        Some(remedy) => problem.help(remedy),
        None => problem,
    }
}

/// The keys of a link, as far as they are there.
#[derive(Clone, Default)]
struct LinkSettings {
    rate: Option<Rate>,
    rate_back: Option<Rate>,
    queues: Option<f64>,
    queues_back: Option<f64>,
    delay: Option<Time>,
    loss: Option<f64>,
    corruption: Option<f64>,
    bit_errors: Option<f64>,
    retry: Option<bool>,
    down: Option<Vec<(Time, Option<Time>)>>,
}

impl LinkSettings {
    fn read(table: &mut Table<'_>) -> Result<LinkSettings, Problem> {
        let mut wrong = Problems::default();
        let rate = wrong.keep(table.optional("rate")).flatten();
        let rate_back = wrong.keep(table.optional("rate_back")).flatten();
        let queues = wrong.keep(table.optional("queues")).flatten();
        let queues_back = wrong.keep(table.optional("queues_back")).flatten();
        let delay = wrong.keep(table.optional("delay")).flatten();
        let loss = wrong.keep(table.optional("loss")).flatten();
        let corruption = wrong.keep(table.optional("corruption")).flatten();
        let bit_errors = wrong.keep(table.optional("bit_error_rate")).flatten();
        let retry = wrong.keep(table.optional("retry")).flatten();
        let down = wrong.keep(table.item("down").map(|item| read_outages(&item)).transpose()).flatten();
        wrong.or(LinkSettings {
            rate,
            rate_back,
            queues,
            queues_back,
            delay,
            loss,
            corruption,
            bit_errors,
            retry,
            down,
        })
    }

    /// Gives them to a link, of whose ends `from` was written first, and which repeats frames as `retry` has it if it does.
    fn apply(self, link: &mut Link, from: NodeId, retry: Retry) {
        let back = 1 - link.direction(from);
        if let Some(rate) = self.rate {
            link.rates = [rate; 2];
        }
        if let Some(rate) = self.rate_back {
            link.rates[back] = rate;
        }
        let depth = |part: f64| (part * WHOLE as f64).round() as u32;
        if let Some(part) = self.queues {
            link.depths = [depth(part); 2];
        }
        if let Some(part) = self.queues_back {
            link.depths[back] = depth(part);
        }
        link.delay = self.delay.unwrap_or(link.delay);
        link.loss = self.loss.unwrap_or(link.loss);
        link.corruption = self.corruption.unwrap_or(link.corruption);
        link.bit_errors = self.bit_errors.unwrap_or(link.bit_errors);
        link.retry = self.retry.map_or(link.retry, |on| on.then_some(retry));
        link.outages = self.down.unwrap_or_else(|| std::mem::take(&mut link.outages));
    }
}

/// `[["1ms", "2ms"], ["5ms"]]`: down from the first instant, to the second if there is one.
fn read_outages(item: &Item<'_>) -> Result<Vec<(Time, Option<Time>)>, Problem> {
    const SHAPE: &str = "write [[\"1ms\", \"2ms\"], [\"5ms\"]]: down from 1ms to 2ms, and from 5ms for good";
    let mut outages: Vec<(Time, Option<Time>)> = Vec::new();
    for outage in item.items().map_err(|problem| problem.help(SHAPE))? {
        let times = outage.items().map_err(|problem| problem.help(SHAPE))?;
        let mut instants = Vec::new();
        for time in &times {
            let instant: Time = time.read()?;
            if instant > MAX_START {
                return Err(time.problem(format!("{instant} is too late")).help(format!("write {MAX_START} or less")));
            }
            instants.push(instant);
        }
        let (from, to) = match *instants.as_slice() {
            [from] => (from, None),
            [from, to] => (from, Some(to)),
            _ => return Err(outage.problem(format!("an outage has {} times", instants.len())).help(SHAPE)),
        };
        if to.is_some_and(|to| to <= from) {
            return Err(outage.problem("the outage ends before it begins").help("write the earlier instant first"));
        }
        match outages.last() {
            Some((_, None)) => {
                return Err(outage.problem("the outage before has no end").help("drop this one, or end that one"));
            }
            Some((_, Some(end))) if from <= *end => {
                let help = "sort the outages, and join those that touch";
                return Err(outage.problem("the outage does not begin after the one before").help(help));
            }
            _ => outages.push((from, to)),
        }
    }
    Ok(outages)
}

/// The two nodes of `between`.
fn read_ends(table: &mut Table<'_>, names: &Names<'_>) -> Result<(NodeId, NodeId), Problem> {
    const SHAPE: &str = "write the names of two nodes: between = [\"leaf0\", \"spine1\"]";
    let Some(item) = table.item("between") else { return Err(table.missing("between", "[\"leaf0\", \"spine1\"]")) };
    let ends = item.items().map_err(|problem| problem.help(SHAPE))?;
    let [a, b] = ends.as_slice() else {
        return Err(item.problem(format!("a link has two ends, not {}", ends.len())).help(SHAPE));
    };
    let mut wrong = Problems::default();
    let (a, b) = (wrong.keep(node(a, names)), wrong.keep(node(b, names)));
    let (a, b) = wrong.or((a.unwrap_or(NodeId(0)), b.unwrap_or(NodeId(0))))?;
    if a == b {
        return Err(item.problem("both ends are the same node").help(SHAPE));
    }
    Ok((a, b))
}

/// Gives links what `[links]` says of them all, and how they repeat frames.
fn read_all_links(root: &mut Table<'_>, graph: &mut Graph) -> Result<RetrySettings, Problem> {
    let (mut own, mut retry) = (LinksSettings::default(), RetrySettings::default());
    let Some(mut table) = root.table("links")? else { return Ok(RetrySettings { on: false, ..retry }) };
    table.takes(&LINKS);
    let mut wrong = Problems::default();
    let set = wrong.keep(table.fill(&mut own)).unwrap_or_default();
    match wrong.keep(table.table("retry")).flatten() {
        None => retry.on = false,
        Some(mut inner) => {
            inner.takes(&RETRY);
            wrong.keep(inner.fill(&mut retry));
            wrong.keep(inner.finish());
        }
    }
    wrong.keep(table.finish());
    for link in &mut graph.links {
        if set.contains(&"bit_error_rate") {
            link.bit_errors = own.bit_error_rate;
        }
        link.retry = (retry.on || link.retry.is_some()).then(|| retry.retry());
    }
    wrong.or(retry)
}

/// Gives links what `[links]` says of them all and `[[link]]` of each. Parallel links share it. Gives how many replays of a pause headroom allows for, if
/// that is not derived.
pub(super) fn read_links(root: &mut Table<'_>, graph: &mut Graph) -> Result<Option<u32>, Problem> {
    let mut wrong = Problems::default();
    let settings = wrong.keep(read_all_links(root, graph)).unwrap_or_default();
    wrong.keep(read_each_link(root, graph, settings.retry()));
    wrong.or(settings.pause_replays)
}

/// Gives links what `[[link]]` says of them.
fn read_each_link(root: &mut Table<'_>, graph: &mut Graph, retry: Retry) -> Result<(), Problem> {
    let tables = root.tables("link")?;
    if tables.is_empty() {
        return Ok(());
    }
    let mut between: HashMap<(NodeId, NodeId), Vec<usize>> = HashMap::new();
    for (number, link) in graph.links.iter().enumerate() {
        between.entry((link.a.min(link.b), link.a.max(link.b))).or_default().push(number);
    }
    let (mut changes, mut wrong) = (Vec::new(), Problems::default());
    let names = Names::new(graph);
    let read = |mut table: Table<'_>| {
        table.takes(&LINK);
        let ends = read_ends(&mut table, &names);
        let settings = LinkSettings::read(&mut table);
        let (ends, settings) = match (ends, settings) {
            (Ok(ends), Ok(settings)) => (ends, settings),
            (ends, settings) => {
                let wrong = Problem::all(ends.err().into_iter().chain(settings.err()));
                return Err(wrong.unwrap_or_else(|| table.problem("cannot be read")));
            }
        };
        let (a, b) = ends;
        let Some(links) = between.get(&(a.min(b), a.max(b))) else {
            let name = |node: NodeId| graph[node].name.as_str();
            let peers = graph.links.iter().filter(|link| link.a == a || link.b == a);
            let peers: Vec<&str> = peers.take(8).map(|link| name(if link.a == a { link.b } else { link.a })).collect();
            let message = format!("between: {} and {} are not linked", name(a), name(b));
            let help = format!("{} is linked with {}", name(a), peers.join(", "));
            return Err(table.problem_at("between", message).help(help).cause(Cause::Fabric));
        };
        table.finish()?;
        Ok((links, settings, a))
    };
    for table in tables {
        changes.extend(wrong.keep(read(table)));
    }
    for (links, settings, from) in wrong.or(changes)? {
        for &link in links {
            settings.clone().apply(&mut graph.links[link], from, retry);
        }
    }
    Ok(())
}

engine::choice! {
    /// What a node of a graph file is.
    pub enum NodeKind {
        /// Sends and receives.
        Host = "host",
        /// Forwards.
        Switch = "switch",
    }
}

/// Reads a graph file: `[[node]]` and `[[link]]`.
pub(super) fn read_graph(file: &str, text: String) -> Result<Graph, Problem> {
    let document = Document::parse(file, text)?;
    document.expect_kind(FileKind::Graph)?;
    let mut root = document.root();
    let forwarding: Option<bool> = root.optional("hosts_forward")?;
    let (nodes, links) = (root.tables("node")?, root.tables("link")?);
    root.finish()?;
    for (count, most, what) in [(nodes.len(), MAX_NODES, "nodes"), (links.len(), MAX_LINKS, "links")] {
        if count as u64 > most {
            return Err(Problem::new(file, format!("has {count} {what}")).help(format!("{most} is the most")));
        }
    }
    let mut graph = Graph { forwarding: forwarding.unwrap_or(false), ..Graph::default() };
    let mut wrong = Problems::default();
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut without_tier = Vec::new();
    for (number, mut table) in nodes.into_iter().enumerate() {
        let name: Option<String> = wrong.keep(table.required("name"));
        let kind = match wrong.keep(table.required("kind")) {
            Some(NodeKind::Switch) => Kind::Switch,
            // Of one that cannot be read there is a problem: the links to it are good all the same.
            Some(NodeKind::Host) | None => Kind::Host,
        };
        let tier: Option<u8> = wrong.keep(table.optional("tier")).flatten();
        if let Some(name) = &name
            && let Some(other) = seen.insert(name.clone(), number)
        {
            let message = format!("name: nodes {other} and {number} are both named {}", quoted(name));
            wrong.keep(Err::<(), _>(table.problem_at("name", message).help("rename one")));
        }
        wrong.keep(table.finish());
        if tier.is_none() && kind == Kind::Switch {
            without_tier.push(number);
        }
        graph.add(kind, tier.unwrap_or(0), name.unwrap_or_default());
    }
    let mut wires = Vec::new();
    let names = Names::new(&graph);
    for mut table in links {
        table.takes(&LINK);
        let ends = wrong.keep(read_ends(&mut table, &names));
        let settings = wrong.keep(LinkSettings::read(&mut table));
        let (mut rate, mut delay) = (None, None);
        if let Some(settings) = &settings {
            let missing = |key: &str, kind: String| table.missing(key, &kind);
            rate = wrong.keep(settings.rate.ok_or_else(|| missing("rate", Rate::kind().to_string())));
            delay = wrong.keep(settings.delay.ok_or_else(|| missing("delay", Time::kind().to_string())));
            // What was not read, because of a problem before it, would seem to be unknown.
            wrong.keep(table.finish());
        }
        if let (Some((a, b)), Some(settings), Some(rate), Some(delay)) = (ends, settings, rate, delay) {
            let mut link = Link::new(a, b, rate, delay);
            settings.apply(&mut link, a, Retry::default());
            wires.push(link);
        }
    }
    graph.links = wrong.or(wires).map_err(|problem| few(problem, file))?;
    let unlinked = unlinked(&graph, &document);
    if let Some(problem) = Problem::all(unlinked) {
        return Err(few(problem, file));
    }
    graph.check().map_err(|error| remedied(Problem::new(file, error.problem()), &error))?;
    let far = distances(&graph);
    without_tier.into_iter().for_each(|node| graph.nodes[node].tier = far[node]);
    Ok(graph)
}

/// Every host of a graph file that has no link.
fn unlinked(graph: &Graph, document: &Document) -> Vec<Problem> {
    let mut linked = vec![false; graph.nodes.len()];
    graph.links.iter().flat_map(|link| [link.a, link.b]).for_each(|end| linked[end.index()] = true);
    let without = graph.hosts().filter(|host| !linked[host.index()]);
    let problem = |host: NodeId| {
        let error = GraphError::Unlinked { host, name: graph[host].name.clone() };
        remedied(document.problem(&format!("node.{}.name", host.index()), error.problem()), &error)
    };
    without.map(problem).collect()
}

/// The first of many problems of a file, and how many more there are.
fn few(problem: Problem, file: &str) -> Problem {
    let mut all = problem.clone().split();
    let more = all.len().saturating_sub(MOST_PROBLEMS);
    all.truncate(MOST_PROBLEMS);
    let rest = Problem::new(file, format!("and {more} more")).help("mend these first; the file is checked again");
    Problem::all(all.into_iter().chain((more > 0).then_some(rest))).unwrap_or(problem)
}

/// How many links each node is away from the nearest host.
fn distances(graph: &Graph) -> Vec<u8> {
    let ports = graph.ports();
    let mut far = vec![u8::MAX; graph.nodes.len()];
    let mut open: VecDeque<NodeId> = graph.hosts().collect();
    open.iter().for_each(|&host| far[host.index()] = 0);
    while let Some(node) = open.pop_front() {
        for &(_, peer) in &ports[node.index()] {
            if far[peer.index()] == u8::MAX {
                far[peer.index()] = far[node.index()].saturating_add(1);
                // Past the last number a tier can have there is nothing left to tell apart.
                if far[peer.index()] < u8::MAX {
                    open.push_back(peer);
                }
            }
        }
    }
    far
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(text: &str) -> Result<Graph, Problem> {
        let mut graph = topology::shape("star").unwrap().build().unwrap();
        let document = Document::parse("a.toml", text).unwrap();
        read_links(&mut document.root(), &mut graph)?;
        graph.check().unwrap();
        Ok(graph)
    }

    #[test]
    fn a_link_takes_what_is_written_and_keeps_the_rest() {
        let graph =
            links("[[link]]\nbetween = [\"sw0\", 3]\nloss = 0.01\ndown = [[\"1us\", \"2us\"], [\"5us\"]]").unwrap();
        let expected = Link {
            loss: 0.01,
            outages: vec![(Time::from_us(1), Some(Time::from_us(2))), (Time::from_us(5), None)],
            ..Link::new(NodeId(3), NodeId(16), Rate::from_gbps(100), Time::from_us(1))
        };
        assert_eq!(graph.links[3], expected);
        assert_eq!(graph.links[2].loss, 0.0);
    }

    #[test]
    fn a_wrong_link_is_refused_with_place_and_remedy() {
        let refused = |text: &str, message: &str| {
            let problem = links(&format!("[[link]]\n{text}")).unwrap_err();
            assert!(problem.message.contains(message), "{problem}");
            assert!(problem.line.is_some(), "{problem}");
        };
        refused("loss = 0.1", "has no between");
        refused("between = [\"h0\"]", "two ends, not 1");
        refused("between = \"h0\"", "expected an array");
        refused("between = [\"h0\", \"sw9\"]", "no node \"sw9\"");
        refused("between = [\"h0\", true]", "a node's name");
        refused("between = [0, 0]", "the same node");
        refused("between = [\"h0\", \"h1\"]", "h0 and h1 are not linked");
        let good = "between = [\"h0\", \"sw0\"]\n";
        refused(&format!("{good}loss = 1.5"), "loss is 1.5");
        refused(&format!("{good}rate = \"0bps\""), "rate is 0bps");
        refused(&format!("{good}delay = \"0ps\""), "delay is 0ps");
        refused(&format!("{good}down = [\"1ms\"]"), "expected an array");
        refused(&format!("{good}down = [[\"2ms\", \"1ms\"]]"), "ends before it begins");
        refused(&format!("{good}down = [[\"1ms\", \"3ms\"], [\"2ms\"]]"), "does not begin after");
        refused(&format!("{good}down = [[\"1ms\"], [\"2ms\"]]"), "has no end");
        refused(&format!("{good}down = [[]]"), "has 0 times");
        refused(&format!("{good}color = 1"), "unknown key");
    }

    const PAIR: &str = "\
[[node]]
name = \"a\"
kind = \"host\"
[[node]]
name = \"b\"
kind = \"host\"
[[node]]
name = \"s\"
kind = \"switch\"
[[link]]
between = [\"a\", \"s\"]
rate = \"10Gbps\"
delay = \"1us\"
[[link]]
between = [1, 2]
rate = \"25Gbps\"
delay = \"2us\"
loss = 0.5
";

    #[test]
    fn a_graph_file_is_read() {
        let graph = read_graph("net.toml", PAIR.into()).unwrap();
        let tiers: Vec<_> = graph.nodes.iter().map(|node| (node.name.as_str(), node.kind, node.tier)).collect();
        assert_eq!(tiers, [("a", Kind::Host, 0), ("b", Kind::Host, 0), ("s", Kind::Switch, 1)]);
        assert_eq!(
            graph.links[1],
            Link { loss: 0.5, ..Link::new(NodeId(1), NodeId(2), Rate::from_gbps(25), Time::from_us(2)) }
        );
    }

    #[test]
    fn everything_wrong_with_a_graph_file_is_said_at_once() {
        let text = PAIR
            .replacen("kind = \"host\"", "kind = \"router\"", 1)
            .replacen("name = \"b\"", "name = \"a\"\ncolour = 1", 1)
            .replacen("[\"a\", \"s\"]", "[\"c\", \"t\"]", 1)
            .replacen("rate = \"25Gbps\"\n", "rate = \"25\"\n", 1)
            .replacen("loss = 0.5", "loss = 5", 1);
        let problem = read_graph("net.toml", text).unwrap_err();
        let lines: Vec<_> = problem.clone().split().iter().map(|problem| problem.line.unwrap()).collect();
        assert_eq!(lines, [3, 5, 6, 12, 12, 17, 19], "{problem}");
        assert!(problem.clone().split().iter().all(|problem| problem.help.is_some()), "{problem}");
    }

    #[test]
    fn hosts_without_a_link_are_all_named_and_many_problems_are_counted() {
        let hosts = |count: usize| {
            let hosts = (0..count).map(|n| format!("[[node]]\nname = \"x{n}\"\nkind = \"host\"\n")).collect::<String>();
            read_graph("net.toml", format!("{PAIR}{hosts}")).unwrap_err().split()
        };
        let two = hosts(2);
        assert_eq!((two.len(), two[0].line, two[1].line), (2, Some(20), Some(23)), "{two:?}");
        assert!(two.iter().all(|problem| problem.help.is_some()), "{two:?}");
        let many = hosts(33);
        assert_eq!((many.len(), many[20].message.as_str()), (21, "and 13 more"));
    }

    #[test]
    fn a_switch_by_another_name_is_answered_with_its_own() {
        let mut graph = topology::shape("chain").unwrap().build().unwrap();
        let text = "[[link]]\nbetween = [\"s0\", \"switch1\"]\n[[link]]\nbetween = [\"s9\", \"H0\"]";
        let document = Document::parse("a.toml", text).unwrap();
        let problem = read_links(&mut document.root(), &mut graph).unwrap_err();
        let helps: Vec<String> = problem.split().iter().map(|problem| problem.help.clone().unwrap()).collect();
        let meant = |name: &str| format!("did you mean \"{name}\"? The nodes are h0 … ");
        assert!(helps[0].starts_with(&meant("sw0")) && helps[1].starts_with(&meant("sw1")), "{helps:?}");
        assert!(helps[2].contains("sw0 … ") && helps[3].starts_with(&meant("h0")), "{helps:?}");
    }

    #[test]
    fn a_range_of_names_has_nodes_of_one_name() {
        let graph = topology::shape("rail-optimised").unwrap().build().unwrap();
        let rows = ranges(&graph);
        let name = |name: &str| name.trim_end_matches(|c: char| c.is_ascii_digit()).to_string();
        for row in rows.split(", ").filter(|row| row.contains(" … ")) {
            let (first, last) = row.split_once(" … ").unwrap();
            assert_eq!(name(first), name(last), "{rows}");
        }
        assert!(rows.contains("rail0 … rail") && rows.contains("up0 … up"), "{rows}");
    }

    #[test]
    fn a_wrong_graph_file_is_refused() {
        let refused = |from: &str, to: &str, message: &str| {
            assert!(PAIR.contains(from));
            let problem = read_graph("net.toml", PAIR.replacen(from, to, 1)).unwrap_err();
            assert!(problem.message.contains(message), "{problem}");
            assert_eq!(problem.file, "net.toml");
        };
        refused("name = \"b\"", "name = \"a\"", "both named \"a\"");
        refused("kind = \"host\"", "kind = \"router\"", "one of \"host\" \"switch\"");
        refused("rate = \"10Gbps\"\n", "", "has no rate");
        refused("delay = \"1us\"\n", "", "has no delay");
        refused("[1, 2]", "[0, 2]", "has no link");
        refused("[1, 2]", "[1, 7]", "no node 7");
    }
}
