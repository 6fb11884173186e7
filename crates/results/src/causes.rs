//! Chains of causes: from every stop to its root, and what each root cost whom.
//!
//! A run that is asked why writes two tables: [`STOPS`], every stop with who ordered it and what filled that node, and [`WAITS`], the flows
//! that waited at each. All that is said here can be checked against the two.

use crate::tables::{self, Column, Columns, Table};
use files::problem::Problem;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// The table of stops.
pub const STOPS: &str = "stops.parquet";
/// The table of the flows that waited at them.
pub const WAITS: &str = "waits.parquet";

/// What a stop stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// A class, by the neighbour.
    Class(u8),
    /// A queue, by the neighbour.
    Queue(u64),
    /// A queue, by the scheme at this node.
    Held(u64),
    /// A flow at its host.
    Flow(u64),
}

impl Scope {
    /// Its name in the table.
    pub fn word(self) -> &'static str {
        match self {
            Scope::Class(_) => "class",
            Scope::Queue(_) => "queue",
            Scope::Held(_) => "held queue",
            Scope::Flow(_) => "flow",
        }
    }

    /// The class, queue or flow.
    pub fn number(self) -> u64 {
        match self {
            Scope::Class(class) => class as u64,
            Scope::Queue(number) | Scope::Held(number) | Scope::Flow(number) => number,
        }
    }

    fn read(word: &str, number: u64) -> Option<Scope> {
        Some(match word {
            "class" => Scope::Class(number as u8),
            "queue" => Scope::Queue(number),
            "held queue" => Scope::Held(number),
            "flow" => Scope::Flow(number),
            _ => return None,
        })
    }
}

/// What an egress port waited for while it filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// For its link: more came in than it carries.
    Busy,
    /// For the end of a stop.
    Stopped,
    /// For its link, which still sent what a stop had left behind.
    Draining,
    /// For its link to come back.
    Down,
    /// For the host to take packets: it is a NIC.
    Receiver,
}

impl Waiting {
    const ALL: [(Waiting, &'static str); 5] = [
        (Waiting::Busy, "busy"),
        (Waiting::Stopped, "stopped"),
        (Waiting::Draining, "draining"),
        (Waiting::Down, "down"),
        (Waiting::Receiver, "receiver"),
    ];

    /// Its name in the table.
    pub fn word(self) -> &'static str {
        Waiting::ALL.iter().find(|(waiting, _)| *waiting == self).map_or("", |(_, word)| word)
    }
}

/// What filled the node that ordered a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fill {
    /// The egress port with most of the bytes; of a slow receiver, its NIC.
    pub port: u64,
    /// The queue with most of these.
    pub queue: u64,
    /// Bytes there that count.
    pub bytes: u64,
    /// How many flows had packets at that port; 0 if it was stopped.
    pub flows: u64,
    /// What the port waited for.
    pub waiting: Waiting,
}

/// A stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The port that stops.
    pub port: u64,
    /// What of it.
    pub scope: Scope,
    /// Since when.
    pub from_ps: u64,
    /// Until when; none if it did not end.
    pub until_ps: Option<u64>,
    /// The node that ordered it, by its place in [`Causes::nodes`].
    pub by: usize,
    /// When it did.
    pub ordered_ps: Option<u64>,
    /// What filled that node.
    pub fill: Option<Fill>,
    /// The stop that the filling port waited for, by its row.
    pub cause: Option<usize>,
}

/// A flow that waited at a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The stop, by its row.
    pub stop: usize,
    /// The flow.
    pub flow: u64,
    /// For how long, up to the end of the stop.
    pub time_ps: u64,
    /// Its path does not lead through the root.
    pub victim: bool,
}

/// All stops of a run and who waited at them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Causes {
    /// Names of nodes.
    pub nodes: Vec<String>,
    /// The ends of every port that is spoken of.
    pub ports: HashMap<u64, (String, String)>,
    /// The stops, in order of time.
    pub stops: Vec<Stop>,
    /// The flows, by stop.
    pub waits: Vec<Wait>,
    /// When the run ended.
    pub end_ps: u64,
}

/// From a stop to its root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// The stops, by row: the first, the one that caused it, and so on.
    pub steps: Vec<usize>,
    /// Where in the steps a cycle begins that the last step closes.
    pub cycle: Option<usize>,
}

/// What is at the end of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Stops that wait for each other.
    Deadlock,
    /// More comes in than a link carries.
    Saturated,
    /// A host takes packets too slowly.
    SlowReceiver,
    /// A link that is down.
    LinkDown,
    /// A rule of the scheme, not something that fills.
    Scheme,
}

/// A flow and how long it waited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Waited {
    /// The flow.
    pub flow: u64,
    /// How long, with times that overlap counted once.
    pub waited_ps: u64,
}

/// A root, with everything that grew from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Root {
    /// What it is.
    pub kind: Kind,
    /// Where: `from->to` of a port, or a node; of a deadlock, its ports in order.
    pub place: String,
    /// The ports of a deadlock, each waiting for the next; else the port that filled, or none.
    pub ports: Vec<String>,
    /// The most flows that filled it at once.
    pub flows: u64,
    /// When the first of its stops began.
    pub from_ps: u64,
    /// When the last of them ended; none if one did not.
    pub until_ps: Option<u64>,
    /// How many stops.
    pub stops: usize,
    /// How many ports they stopped.
    pub stopped_ports: usize,
    /// How long in all.
    pub stopped_ps: u64,
    /// The longest chain that leads here, in stops.
    pub depth: usize,
    /// Flows that waited.
    pub waiting_flows: usize,
    /// How long in all, over flows.
    pub waited_ps: u64,
    /// How many of them do not pass through the root.
    pub victims: usize,
    /// How long these waited in all.
    pub victim_ps: u64,
    /// The victims that waited longest, worst first.
    pub worst_victims: Vec<Waited>,
}

/// How many victims of a root are named.
const NAMED: usize = 5;

impl Causes {
    /// Reads the tables of a folder of results; `None` if the run was not asked why.
    pub fn open(folder: &Path, end_ps: u64) -> Result<Option<Causes>, Problem> {
        let (stops, waits) = (folder.join(STOPS), folder.join(WAITS));
        if !stops.is_file() {
            return Ok(None);
        }
        Causes::read(&tables::read(&stops)?, &tables::read(&waits)?, end_ps).map(Some)
    }

    fn read(table: &Table, waits: &Table, end_ps: u64) -> Result<Causes, Problem> {
        let damaged = |what: &str| {
            Problem::new(STOPS, format!("is not what a run writes: {what}"))
                .help("remove its folder and run the scenario again")
        };
        let mut all = Causes { end_ps, ..Causes::default() };
        let mut nodes: HashMap<String, usize> = HashMap::new();
        let (port, from, to) = (table.counts("port")?, table.texts("from")?, table.texts("to")?);
        let (scope, number) = (table.texts("scope")?, table.counts("number")?);
        let (begin, end) = (table.counts("from_ps")?, table.maybe_counts("until_ps")?);
        let (by, ordered) = (table.texts("by")?, table.maybe_counts("ordered_ps")?);
        let filled = table.maybe_counts("filled_port")?;
        let (filled_from, filled_to) = (table.texts("filled_from")?, table.texts("filled_to")?);
        let (queue, bytes) = (table.counts("filled_queue")?, table.counts("filled_bytes")?);
        let (flows, waiting) = (table.counts("filled_flows")?, table.texts("waiting")?);
        let cause = table.maybe_counts("cause")?;
        for row in 0..table.rows() {
            all.ports.entry(port[row]).or_insert_with(|| (from[row].into(), to[row].into()));
            let fill = match filled[row] {
                None => None,
                Some(port) => {
                    all.ports.entry(port).or_insert_with(|| (filled_from[row].into(), filled_to[row].into()));
                    let word = Waiting::ALL.iter().find(|(_, word)| *word == waiting[row]);
                    let &(waiting, _) = word.ok_or_else(|| damaged("a port waits for nothing that is known"))?;
                    Some(Fill { port, queue: queue[row], bytes: bytes[row], flows: flows[row], waiting })
                }
            };
            let next = nodes.len();
            let by = *nodes.entry(by[row].into()).or_insert(next);
            let cause = cause[row].map(|cause| cause as usize);
            if cause.is_some_and(|cause| cause >= table.rows()) {
                return Err(damaged("a cause is not in it"));
            }
            all.stops.push(Stop {
                port: port[row],
                scope: Scope::read(scope[row], number[row]).ok_or_else(|| damaged("a scope is not known"))?,
                from_ps: begin[row],
                until_ps: end[row],
                by,
                ordered_ps: ordered[row],
                fill,
                cause,
            });
        }
        all.nodes = vec![String::new(); nodes.len()];
        nodes.into_iter().for_each(|(name, place)| all.nodes[place] = name);
        let (stop, flow) = (waits.counts("stop")?, waits.counts("flow")?);
        let (time, victim) = (waits.counts("waited_ps")?, waits.counts("victim")?);
        for row in 0..waits.rows() {
            let stop = stop[row] as usize;
            if stop >= all.stops.len() {
                return Err(damaged("a flow waited at a stop that is not in it"));
            }
            all.waits.push(Wait { stop, flow: flow[row], time_ps: time[row], victim: victim[row] != 0 });
        }
        Ok(all)
    }

    /// Both tables, by the names of their files.
    pub fn columns(&self) -> [(&'static str, Columns); 2] {
        let rows = || self.stops.iter();
        let end = |port: u64| self.ports.get(&port).map_or(("", ""), |(from, to)| (from.as_str(), to.as_str()));
        let filled = |stop: &Stop| stop.fill.map_or(("", ""), |fill| end(fill.port));
        let fill = |of: fn(Fill) -> u64| Column::counts(rows().map(move |stop| stop.fill.map_or(0, of)));
        let stops = vec![
            ("stop", Column::counts(0..self.stops.len() as u64)),
            ("port", Column::counts(rows().map(|stop| stop.port))),
            ("from", Column::texts(rows().map(|stop| end(stop.port).0))),
            ("to", Column::texts(rows().map(|stop| end(stop.port).1))),
            ("scope", Column::texts(rows().map(|stop| stop.scope.word()))),
            ("number", Column::counts(rows().map(|stop| stop.scope.number()))),
            ("from_ps", Column::counts(rows().map(|stop| stop.from_ps))),
            ("until_ps", Column::maybe_counts(rows().map(|stop| stop.until_ps))),
            ("by", Column::texts(rows().map(|stop| self.nodes[stop.by].as_str()))),
            ("ordered_ps", Column::maybe_counts(rows().map(|stop| stop.ordered_ps))),
            ("filled_port", Column::maybe_counts(rows().map(|stop| stop.fill.map(|fill| fill.port)))),
            ("filled_from", Column::texts(rows().map(|stop| filled(stop).0))),
            ("filled_to", Column::texts(rows().map(|stop| filled(stop).1))),
            ("filled_queue", fill(|fill| fill.queue)),
            ("filled_bytes", fill(|fill| fill.bytes)),
            ("filled_flows", fill(|fill| fill.flows)),
            ("waiting", Column::texts(rows().map(|stop| stop.fill.map_or("", |fill| fill.waiting.word())))),
            ("cause", Column::maybe_counts(rows().map(|stop| stop.cause.map(|cause| cause as u64)))),
        ];
        let waits = vec![
            ("stop", Column::counts(self.waits.iter().map(|wait| wait.stop as u64))),
            ("flow", Column::counts(self.waits.iter().map(|wait| wait.flow))),
            ("waited_ps", Column::counts(self.waits.iter().map(|wait| wait.time_ps))),
            ("victim", Column::counts(self.waits.iter().map(|wait| wait.victim as u64))),
        ];
        [(STOPS, stops), (WAITS, waits)]
    }

    /// `from->to` of a port.
    pub fn port(&self, port: u64) -> String {
        self.ports.get(&port).map_or_else(|| format!("port {port}"), |(from, to)| format!("{from}->{to}"))
    }

    /// When a stop ended, or the run.
    pub fn until(&self, stop: usize) -> u64 {
        let Stop { from_ps, until_ps, .. } = self.stops[stop];
        until_ps.unwrap_or(self.end_ps).max(from_ps)
    }

    /// Follows causes to the root.
    pub fn chain(&self, stop: usize) -> Chain {
        let mut steps = vec![stop];
        while let Some(next) = self.stops[steps[steps.len() - 1]].cause {
            if let Some(begin) = steps.iter().position(|&row| row == next) {
                return Chain { steps, cycle: Some(begin) };
            }
            steps.push(next);
        }
        Chain { steps, cycle: None }
    }

    /// What is at the end of a chain, and the ports that it is: those of a cycle begin with the lowest.
    pub fn root(&self, chain: &Chain) -> (Kind, Vec<u64>) {
        if let Some(begin) = chain.cycle {
            let mut ports: Vec<u64> = chain.steps[begin..].iter().map(|&row| self.stops[row].port).collect();
            let lowest = ports.iter().enumerate().min_by_key(|(_, port)| **port).map_or(0, |(place, _)| place);
            ports.rotate_left(lowest);
            return (Kind::Deadlock, ports);
        }
        let last = &self.stops[chain.steps[chain.steps.len() - 1]];
        match last.fill {
            None => (Kind::Scheme, Vec::new()),
            Some(fill) => {
                let kind = match fill.waiting {
                    Waiting::Receiver => Kind::SlowReceiver,
                    Waiting::Down => Kind::LinkDown,
                    _ => Kind::Saturated,
                };
                (kind, vec![fill.port])
            }
        }
    }

    /// The name of a root.
    fn place(&self, kind: Kind, ports: &[u64], last: usize) -> String {
        match kind {
            Kind::Scheme => self.nodes[self.stops[last].by].clone(),
            Kind::SlowReceiver => {
                ports.first().and_then(|port| self.ports.get(port)).map_or(String::new(), |p| p.0.clone())
            }
            _ => ports.iter().map(|&port| self.port(port)).collect::<Vec<_>>().join(", "),
        }
    }

    /// Where following causes leads from every stop, and in how many steps: a row without a cause, or the first row of a cycle.
    fn ends(&self) -> Vec<(usize, usize)> {
        let mut ends: Vec<Option<(usize, usize)>> = vec![None; self.stops.len()];
        // By row, in which round it was passed, and its place in that round's path.
        let mut passed: Vec<(usize, usize)> = vec![(usize::MAX, 0); self.stops.len()];
        for first in 0..self.stops.len() {
            let mut path = Vec::new();
            let mut row = first;
            let (end, mut depth) = loop {
                if let Some(known) = ends[row] {
                    break known;
                }
                if passed[row].0 == first {
                    let cycle = path.split_off(passed[row].1);
                    let lowest = cycle.iter().copied().min().unwrap_or(row);
                    cycle.iter().for_each(|&member| ends[member] = Some((lowest, cycle.len())));
                    break (lowest, cycle.len());
                }
                passed[row] = (first, path.len());
                path.push(row);
                match self.stops[row].cause {
                    Some(next) => row = next,
                    None => break (row, 0),
                }
            };
            for row in path.into_iter().rev() {
                depth += 1;
                ends[row] = Some((end, depth));
            }
        }
        ends.into_iter().map(|end| end.unwrap_or_default()).collect()
    }

    /// All roots, worst first: by what they cost victims, then by what they cost anybody.
    pub fn roots(&self) -> Vec<Root> {
        self.forest().0
    }

    /// The roots, and by stop the place of its root among them.
    pub fn forest(&self) -> (Vec<Root>, Vec<usize>) {
        let ends = self.ends();
        // Ends that are the same place are one root.
        let mut trees: Vec<Tree> = Vec::new();
        let mut by_name: HashMap<(Kind, String), usize> = HashMap::new();
        let mut by_end: HashMap<usize, usize> = HashMap::new();
        let mut of_stop = Vec::with_capacity(ends.len());
        for (row, &(end, depth)) in ends.iter().enumerate() {
            let tree = *by_end.entry(end).or_insert_with(|| {
                let (kind, ports) = self.root(&self.chain(end));
                let place = self.place(kind, &ports, end);
                *by_name.entry((kind, place.clone())).or_insert_with(|| {
                    trees.push(Tree { kind, place, ports, rows: Vec::new(), depth: 0, flows: BTreeMap::new() });
                    trees.len() - 1
                })
            });
            of_stop.push(tree);
            trees[tree].rows.push(row);
            trees[tree].depth = trees[tree].depth.max(depth);
        }
        for wait in &self.waits {
            let until = self.until(wait.stop);
            let times = trees[of_stop[wait.stop]].flows.entry(wait.flow).or_default();
            times.spans.push((until.saturating_sub(wait.time_ps), until));
            times.victim |= wait.victim;
        }
        let mut roots: Vec<(usize, Root)> = trees.into_iter().map(|tree| self.sum_up(tree)).enumerate().collect();
        let cost = |root: &Root| std::cmp::Reverse((root.victim_ps, root.waited_ps, root.stopped_ps));
        roots.sort_by(|(_, a), (_, b)| cost(a).cmp(&cost(b)).then_with(|| (a.kind, &a.place).cmp(&(b.kind, &b.place))));
        let mut places = vec![0; roots.len()];
        roots.iter().enumerate().for_each(|(place, (tree, _))| places[*tree] = place);
        of_stop.iter_mut().for_each(|tree| *tree = places[*tree]);
        (roots.into_iter().map(|(_, root)| root).collect(), of_stop)
    }

    fn sum_up(&self, tree: Tree) -> Root {
        let Tree { kind, place, ports, rows, depth, flows } = tree;
        let stops = || rows.iter().map(|&row| (row, &self.stops[row]));
        let mut stopped: Vec<u64> = stops().map(|(_, stop)| stop.port).collect();
        stopped.sort_unstable();
        stopped.dedup();
        let flows: Vec<(bool, Waited)> =
            flows.into_iter().map(|(flow, times)| (times.victim, Waited { flow, waited_ps: times.total() })).collect();
        let mut victims: Vec<Waited> =
            flows.iter().filter(|(victim, _)| *victim).map(|(_, waited)| waited.clone()).collect();
        victims.sort_by_key(|waited| (std::cmp::Reverse(waited.waited_ps), waited.flow));
        let filled = stops().filter(|(_, stop)| stop.cause.is_none()).filter_map(|(_, stop)| stop.fill);
        Root {
            kind,
            place,
            ports: ports.iter().map(|&port| self.port(port)).collect(),
            flows: filled.map(|fill| fill.flows).max().unwrap_or(0),
            from_ps: stops().map(|(_, stop)| stop.from_ps).min().unwrap_or(0),
            until_ps: match stops().any(|(_, stop)| stop.until_ps.is_none()) {
                true => None,
                false => stops().map(|(row, _)| self.until(row)).max(),
            },
            stops: rows.len(),
            stopped_ports: stopped.len(),
            stopped_ps: stops().map(|(row, stop)| self.until(row) - stop.from_ps).sum(),
            depth,
            waiting_flows: flows.len(),
            waited_ps: flows.iter().map(|(_, waited)| waited.waited_ps).sum(),
            victims: victims.len(),
            victim_ps: victims.iter().map(|waited| waited.waited_ps).sum(),
            worst_victims: victims.into_iter().take(NAMED).collect(),
        }
    }
}

/// A congestion tree while it is put together.
struct Tree {
    kind: Kind,
    place: String,
    ports: Vec<u64>,
    rows: Vec<usize>,
    depth: usize,
    flows: BTreeMap<u64, Times>,
}

/// When a flow waited.
#[derive(Default)]
pub(crate) struct Times {
    pub(crate) spans: Vec<(u64, u64)>,
    pub(crate) victim: bool,
}

impl Times {
    /// How long, with what overlaps counted once.
    pub(crate) fn total(mut self) -> u64 {
        self.spans.sort_unstable();
        let (mut total, mut reached) = (0, 0);
        for (from, until) in self.spans {
            total += until.saturating_sub(from.max(reached));
            reached = reached.max(until);
        }
        total
    }
}
