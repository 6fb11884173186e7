//! Chains of causes: from every stop to its root, and what each root cost whom.
//!
//! A run that is asked why writes three tables: [`STOPS`], every stop with who ordered it and what filled that node, [`WAITS`], the flows
//! that waited at each, and [`LOSSES`], what flows lost on links; and two more if packets were dropped for want of room, [`DROPS`] and [`FILLERS`]. All that is said here can be
//! checked against these.

mod table;

pub use table::{DROPS, FILLERS, LOSSES, STOPS, WAITS};

use crate::parquet::Spread;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasherDefault;

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
    /// For its link, which was idle until a stopped port before it let go at once of what it had kept.
    Released,
    /// For its link to come back.
    Down,
    /// For the host to take packets: it is a NIC.
    Receiver,
}

impl Waiting {
    const ALL: [(Waiting, &'static str); 6] = [
        (Waiting::Busy, "busy"),
        (Waiting::Stopped, "stopped"),
        (Waiting::Draining, "draining"),
        (Waiting::Released, "released"),
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
    /// The egress port with most of the bytes; of several with at least half as many, each in its turn. Of a slow receiver, its NIC.
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
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// Other ports that held at least half as much, and waited for nothing but their links.
    pub also: Vec<u64>,
    /// By which rule of the scheme, by its place in [`Causes::rules`], if nothing filled.
    pub rule: Option<usize>,
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

/// How packets were lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum How {
    /// The link lost or damaged them.
    Fault,
    /// The link went down with them, or was down. Without a packet: the flow waited for its NIC's link.
    Down,
    /// There was no path behind the link.
    NoPath,
    /// Nothing was lost: the flow waited while the link repeated frames, or until it had heard of some.
    Retry,
    /// There was no room for them.
    Room,
}

impl How {
    const ALL: [(How, &'static str); 5] = [
        (How::Fault, "fault"),
        (How::Down, "down"),
        (How::NoPath, "no path"),
        (How::Retry, "retry"),
        (How::Room, "no room"),
    ];

    /// Its name in the table.
    pub fn word(self) -> &'static str {
        How::ALL.iter().find(|(how, _)| *how == self).map_or("", |(_, word)| word)
    }
}

/// What a flow lost at a port, or on its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The port whose link it was, or that the packets were to leave by.
    pub port: u64,
    /// How.
    pub how: How,
    /// The flow.
    pub flow: u64,
    /// Packets.
    pub packets: u64,
    /// When the first was lost; without a packet, when the flow began.
    pub first_ps: u64,
    /// When the last was; without a packet, when the flow ended.
    pub last_ps: u64,
    /// How long the flow was at sending again, waited for the link of its NIC, or while a link repeated.
    pub cost_ps: u64,
    /// Of packets for which there was no room, what had taken it when the first was dropped, with the most flows that had at any.
    pub fill: Option<Fill>,
    /// The stop that the filling port waited for then, by its row.
    pub cause: Option<usize>,
    /// The flow's path does not lead through the root.
    pub victim: bool,
}

/// What a flow had at a port when packets were dropped because of what was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filler {
    /// The port.
    pub port: u64,
    /// The flow.
    pub flow: u64,
    /// At how many drops it had something there.
    pub drops: u64,
    /// How many bytes, added up over these.
    pub bytes: u64,
}

/// A flow and its share of what filled a root.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Filled {
    /// The flow.
    pub flow: u64,
    /// Of all bytes that were there when packets were dropped, added up over these.
    pub share: f64,
}

/// All stops of a run and who waited at them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Causes {
    /// Names of nodes.
    pub nodes: Vec<String>,
    /// By port, its ends, by their places among the nodes.
    pub ends: Vec<(usize, usize)>,
    /// By port, its name.
    pub names: Vec<String>,
    /// Rules of the scheme that are spoken of.
    pub rules: Vec<String>,
    /// The stops, in order of time.
    pub stops: Vec<Stop>,
    /// The flows, by stop.
    pub waits: Vec<Wait>,
    /// What was lost, by port.
    pub losses: Vec<Loss>,
    /// Who filled the ports because of which packets were dropped, by port and flow.
    pub fillers: Vec<Filler>,
    /// By flow, when it had all bytes: what its packets waited later cost it nothing. [`u64::MAX`] of one that did not end, or that is not here.
    pub ended_ps: Vec<u64>,
    /// When the run ended.
    pub end_ps: u64,
    /// Whether it ended in a deadlock.
    pub deadlock: bool,
    /// Whether it came to rest with flows that had not ended, so that what had not ended by then never does.
    pub stalled: bool,
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
    /// Stops that wait for each other, and nothing can end them.
    Deadlock,
    /// Stops that waited for each other when the run was stopped.
    Cycle,
    /// More comes in than a link carries.
    Saturated,
    /// A host takes packets too slowly.
    SlowReceiver,
    /// A link that is down.
    LinkDown,
    /// Behind a link that works there is no path: one further on is down.
    NoPath,
    /// A link that loses or damages packets.
    LossyLink,
    /// A link that repeats what it damages, and keeps waiting what comes behind it.
    LinkRetry,
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
    /// Whether it would wait for ever.
    #[serde(skip_serializing_if = "is_false")]
    pub for_ever: bool,
}

impl Waited {
    /// Those first that would wait for ever, then those that waited longest.
    fn worst_first(all: &mut [Waited]) {
        all.sort_by_key(|waited| (!waited.for_ever, Reverse(waited.waited_ps), waited.flow));
    }
}

/// A root, with everything that grew from it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Root {
    /// What it is.
    pub kind: Kind,
    /// Where: `from->to` of a port, or a node; of a deadlock, its ports in order.
    pub place: String,
    /// The ports of a cycle, each waiting for the next; else the port that filled, or none.
    pub ports: Vec<String>,
    /// Of a scheme, the rule by which it holds, where it says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Of a link that is down or loses packets, how many it lost; of others, how many were dropped for want of room because of it.
    #[serde(skip_serializing_if = "is_zero")]
    pub lost: u64,
    /// How long flows were at sending these again, or waited for a link to come back.
    #[serde(skip_serializing_if = "is_zero")]
    pub lost_ps: u64,
    /// Who filled it when packets were dropped because of it, those with most first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fillers: Vec<Filled>,
    /// The most flows that filled it at once.
    pub flows: u64,
    /// When the first of its stops began, or the first packet was lost.
    pub from_ps: u64,
    /// When the last of them ended, or the last packet was lost; none if a stop did not end.
    pub until_ps: Option<u64>,
    /// How many stops.
    pub stops: usize,
    /// How many ports they stopped.
    pub stopped_ports: usize,
    /// How long in all.
    pub stopped_ps: u64,
    /// The longest chain that leads here, in ports.
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

/// How many victims of a root, and how many who fill it, are named.
const NAMED: usize = 5;

/// What a port is that waited for this and for nothing else.
fn kind_of(waiting: Waiting) -> Kind {
    match waiting {
        Waiting::Receiver => Kind::SlowReceiver,
        Waiting::Down => Kind::LinkDown,
        _ => Kind::Saturated,
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn is_false(is: &bool) -> bool {
    !is
}

/// A step of a chain: stops of one port, each because of the next. Two queues of a port may stop each other again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The first of them, by its row: the latest in time.
    pub stop: usize,
    /// The last of them, whose cause is at another port.
    pub first: usize,
    /// How many there are.
    pub count: usize,
}

impl Causes {
    /// The name of a port.
    pub fn port(&self, port: u64) -> &str {
        self.names.get(port as usize).map_or("", String::as_str)
    }

    /// The node that a port belongs to.
    fn node(&self, port: u64) -> &str {
        self.ends.get(port as usize).map_or("", |(from, _)| self.nodes[*from].as_str())
    }

    /// When a stop ended, or the run.
    pub fn until(&self, stop: usize) -> u64 {
        let Stop { from_ps, until_ps, .. } = self.stops[stop];
        until_ps.unwrap_or(self.end_ps).max(from_ps)
    }

    /// From when until when a flow waited at a stop, as far as it had not ended.
    pub(crate) fn span(&self, wait: &Wait) -> Option<(u64, u64)> {
        let until = self.until(wait.stop);
        let (from, end) = (until.saturating_sub(wait.time_ps), self.ended_ps.get(wait.flow as usize));
        let until = end.map_or(until, |&end| until.min(end));
        (from < until).then_some((from, until))
    }

    /// Follows causes to the root.
    pub fn chain(&self, stop: usize) -> Chain {
        let mut steps = vec![stop];
        let mut places: HashMap<usize, usize, BuildHasherDefault<Spread>> = HashMap::default();
        places.insert(stop, 0);
        while let Some(next) = self.stops[steps[steps.len() - 1]].cause {
            if let Some(&begin) = places.get(&next) {
                return Chain { steps, cycle: Some(begin) };
            }
            places.insert(next, steps.len());
            steps.push(next);
        }
        Chain { steps, cycle: None }
    }

    /// A chain port by port.
    pub fn steps(&self, chain: &Chain) -> Vec<Step> {
        let same = |a: &usize, b: &usize| self.stops[*a].port == self.stops[*b].port;
        let step = |rows: &[usize]| Step { stop: rows[0], first: rows[rows.len() - 1], count: rows.len() };
        chain.steps.chunk_by(same).map(step).collect()
    }

    /// What is at the end of a chain, and the ports that it is: those of a cycle begin with the lowest.
    pub fn root(&self, chain: &Chain) -> (Kind, Vec<u64>) {
        if let Some(begin) = chain.cycle {
            let mut ports: Vec<u64> = chain.steps[begin..].iter().map(|&row| self.stops[row].port).collect();
            let lowest = ports.iter().enumerate().min_by_key(|(_, port)| **port).map_or(0, |(place, _)| place);
            ports.rotate_left(lowest);
            return (if self.deadlock { Kind::Deadlock } else { Kind::Cycle }, ports);
        }
        let last = &self.stops[chain.steps[chain.steps.len() - 1]];
        match last.fill {
            None => (Kind::Scheme, Vec::new()),
            Some(fill) => (kind_of(fill.waiting), vec![fill.port]),
        }
    }

    /// The name of a root.
    fn place(&self, kind: Kind, ports: &[u64], last: usize) -> String {
        match kind {
            Kind::Scheme => self.nodes[self.stops[last].by].clone(),
            Kind::SlowReceiver => ports.first().map_or("", |&port| self.node(port)).to_string(),
            _ => ports.iter().map(|&port| self.port(port)).collect::<Vec<_>>().join(", "),
        }
    }

    /// Where following causes leads from every stop, and over how many ports: a row without a cause, or the first row of a cycle.
    pub(crate) fn ends(&self) -> Vec<(usize, usize)> {
        let mut ends: Vec<Option<(usize, usize)>> = vec![None; self.stops.len()];
        // By row, in which round it was passed, and its place in that round's path.
        let mut passed: Vec<(usize, usize)> = vec![(usize::MAX, 0); self.stops.len()];
        let mut path = Vec::new();
        for first in 0..self.stops.len() {
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
            for row in path.drain(..).rev() {
                let next = self.stops[row].cause.map(|cause| self.stops[cause].port);
                depth += (next != Some(self.stops[row].port)) as usize;
                ends[row] = Some((end, depth));
            }
        }
        ends.into_iter().map(|end| end.unwrap_or_default()).collect()
    }

    /// All roots, worst first: deadlocks, behind which nothing goes on; then others that never end; then by what they cost flows that cannot
    /// help it, which are victims and those that lose packets; then by what they cost anybody.
    pub fn roots(&self) -> Vec<Root> {
        self.forest().0
    }

    /// The roots, and by stop the place of its root among them.
    pub fn forest(&self) -> (Vec<Root>, Vec<usize>) {
        let (roots, of_stop, _) = self.whole_forest();
        (roots, of_stop)
    }

    /// The roots, and by stop, and by loss, the place of its root among them.
    pub(crate) fn whole_forest(&self) -> (Vec<Root>, Vec<usize>, Vec<usize>) {
        let ends = self.ends();
        // Ends that are the same place are one root.
        let mut trees: Vec<Tree> = Vec::new();
        let mut by_name: HashMap<Name, usize, BuildHasherDefault<Spread>> = HashMap::default();
        let mut by_end: Vec<Option<usize>> = vec![None; ends.len()];
        let mut of_stop = Vec::with_capacity(ends.len());
        // Most ends are the same place as the one before.
        let mut last: Option<((u64, Waiting), usize)> = None;
        for (row, &(end, depth)) in ends.iter().enumerate() {
            let Stop { fill, cause, .. } = self.stops[end];
            let what = fill.filter(|_| cause.is_none()).map(|fill| (fill.port, fill.waiting));
            let tree = *by_end[end].get_or_insert_with(|| {
                if let Some((_, tree)) = last.filter(|(before, _)| what == Some(*before)) {
                    return tree;
                }
                let (kind, ports) = self.root(&self.chain(end));
                // Of a scheme it is the node that tells, and the rule.
                let (node, rule) =
                    if kind == Kind::Scheme { (self.stops[end].by, self.stops[end].rule) } else { (0, None) };
                *by_name.entry((kind, ports.clone(), node, rule)).or_insert_with(|| {
                    trees.push(Tree::new(kind, self.place(kind, &ports, end), ports, rule));
                    trees.len() - 1
                })
            });
            last = what.map(|what| (what, tree)).or(last);
            of_stop.push(tree);
            trees[tree].rows.push(row);
            trees[tree].depth = trees[tree].depth.max(depth);
        }
        let mut of_loss = Vec::with_capacity(self.losses.len());
        for loss in &self.losses {
            let (kind, port) = match (loss.how, loss.fill) {
                (How::Fault, _) => (Kind::LossyLink, loss.port),
                (How::Down, _) => (Kind::LinkDown, loss.port),
                (How::NoPath, _) => (Kind::NoPath, loss.port),
                (How::Retry, _) => (Kind::LinkRetry, loss.port),
                (How::Room, None) => (Kind::Saturated, loss.port),
                (How::Room, Some(fill)) => (kind_of(fill.waiting), fill.port),
            };
            // What waited for a stop has the root of that.
            let tree = loss.cause.map(|cause| of_stop[cause]).unwrap_or_else(|| {
                *by_name.entry((kind, vec![port], 0, None)).or_insert_with(|| {
                    let place = if kind == Kind::SlowReceiver { self.node(port) } else { self.port(port) };
                    trees.push(Tree::new(kind, place.to_string(), vec![port], None));
                    trees.len() - 1
                })
            });
            trees[tree].losses.push(*loss);
            of_loss.push(tree);
            let times = trees[tree].flows.entry(loss.flow).or_default();
            times.more += loss.cost_ps;
            times.victim |= loss.victim;
        }
        for wait in &self.waits {
            let Some(span) = self.span(wait) else { continue };
            let times = trees[of_stop[wait.stop]].flows.entry(wait.flow).or_default();
            times.spans.push(span);
            times.victim |= wait.victim;
            times.for_ever |= self.never_ends(wait.stop);
        }
        let mut roots: Vec<(usize, Root)> = trees.into_iter().map(|tree| self.sum_up(tree)).enumerate().collect();
        let cost = |root: &Root| {
            let helpless = match root.kind {
                // Nobody in a cycle can open it.
                Kind::Cycle | Kind::LinkDown | Kind::NoPath | Kind::LossyLink | Kind::LinkRetry => root.waited_ps,
                _ => root.victim_ps,
            };
            // Behind what never ends nothing goes on, however short it has been so far.
            let ends = !self.stalled || root.until_ps.is_some();
            (root.kind != Kind::Deadlock, ends, Reverse((helpless, root.waited_ps, root.stopped_ps)))
        };
        let name = |root: &Root| (root.kind, root.place.clone(), root.rule.clone());
        roots.sort_by(|(_, a), (_, b)| cost(a).cmp(&cost(b)).then_with(|| name(a).cmp(&name(b))));
        let mut places = vec![0; roots.len()];
        roots.iter().enumerate().for_each(|(place, (tree, _))| places[*tree] = place);
        of_stop.iter_mut().chain(&mut of_loss).for_each(|tree| *tree = places[*tree]);
        (roots.into_iter().map(|(_, root)| root).collect(), of_stop, of_loss)
    }

    /// Whether a stop is one that nothing can end any more.
    fn never_ends(&self, stop: usize) -> bool {
        self.stalled && self.stops[stop].until_ps.is_none()
    }

    /// All victims of a root, worst first, given the root of every stop.
    pub fn victims(&self, of_stop: &[usize], root: usize) -> Vec<Waited> {
        let mut flows: BTreeMap<u64, Times> = BTreeMap::new();
        for wait in self.waits.iter().filter(|wait| wait.victim && of_stop[wait.stop] == root) {
            let Some(span) = self.span(wait) else { continue };
            let times = flows.entry(wait.flow).or_default();
            times.spans.push(span);
            times.for_ever |= self.never_ends(wait.stop);
        }
        let waited = |(flow, times): (u64, Times)| {
            let for_ever = times.for_ever;
            Waited { flow, for_ever, waited_ps: times.total() }
        };
        let mut all: Vec<Waited> = flows.into_iter().map(waited).collect();
        Waited::worst_first(&mut all);
        all
    }

    /// Who filled these ports when packets were dropped because of them, those with most first.
    fn fillers_of(&self, ports: &[u64]) -> Vec<Filled> {
        let mut own: Vec<&Filler> = self.fillers.iter().filter(|filler| ports.contains(&filler.port)).collect();
        let total: u64 = own.iter().map(|filler| filler.bytes).sum();
        own.sort_by_key(|filler| (Reverse(filler.bytes), filler.flow));
        let share = |filler: &&Filler| Filled { flow: filler.flow, share: filler.bytes as f64 / total.max(1) as f64 };
        own.iter().take(NAMED).map(share).collect()
    }

    fn sum_up(&self, tree: Tree) -> Root {
        let Tree { kind, place, ports, rule, rows, losses, depth, flows } = tree;
        let stops = || rows.iter().map(|&row| (row, &self.stops[row]));
        let mut stopped: Vec<u64> = stops().map(|(_, stop)| stop.port).collect();
        stopped.sort_unstable();
        stopped.dedup();
        let waited = |(flow, times): (u64, Times)| {
            let for_ever = times.for_ever;
            (times.victim, Waited { flow, for_ever, waited_ps: times.total() })
        };
        let flows: Vec<(bool, Waited)> = flows.into_iter().map(waited).collect();
        let mut victims: Vec<Waited> =
            flows.iter().filter(|(victim, _)| *victim).map(|(_, waited)| waited.clone()).collect();
        Waited::worst_first(&mut victims);
        let filled = stops().filter(|(_, stop)| stop.cause.is_none()).filter_map(|(_, stop)| stop.fill);
        let dropped = losses.iter().filter(|loss| loss.cause.is_none()).filter_map(|loss| loss.fill);
        // Who only waited does not say when something was lost.
        let any = losses.iter().any(|loss| loss.packets > 0);
        let known = || losses.iter().filter(move |loss| !any || loss.packets > 0);
        let fillers = if dropped.clone().next().is_some() { self.fillers_of(&ports) } else { Vec::new() };
        Root {
            kind,
            place,
            ports: ports.iter().map(|&port| self.port(port).to_string()).collect(),
            rule: rule.map(|rule| self.rules[rule].clone()),
            lost: losses.iter().map(|loss| loss.packets).sum(),
            lost_ps: losses.iter().map(|loss| loss.cost_ps).sum(),
            fillers,
            flows: filled.chain(dropped).map(|fill| fill.flows).max().unwrap_or(0),
            from_ps: stops().map(|(_, stop)| stop.from_ps).chain(known().map(|l| l.first_ps)).min().unwrap_or(0),
            until_ps: match stops().any(|(_, stop)| stop.until_ps.is_none()) {
                true => None,
                false => stops().map(|(row, _)| self.until(row)).chain(known().map(|l| l.last_ps)).max(),
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

/// What tells a root from others: what it is, its ports, and of a scheme the node and the rule.
type Name = (Kind, Vec<u64>, usize, Option<usize>);

/// A congestion tree while it is put together.
struct Tree {
    kind: Kind,
    place: String,
    ports: Vec<u64>,
    rule: Option<usize>,
    rows: Vec<usize>,
    losses: Vec<Loss>,
    depth: usize,
    flows: BTreeMap<u64, Times>,
}

impl Tree {
    fn new(kind: Kind, place: String, ports: Vec<u64>, rule: Option<usize>) -> Tree {
        let (rows, losses, flows) = (Vec::new(), Vec::new(), BTreeMap::new());
        Tree { kind, place, ports, rule, rows, losses, depth: 0, flows }
    }
}

/// When a flow waited.
#[derive(Default)]
pub(crate) struct Times {
    pub(crate) spans: Vec<(u64, u64)>,
    /// Besides, at no instant that is known.
    pub(crate) more: u64,
    pub(crate) victim: bool,
    pub(crate) for_ever: bool,
}

impl Times {
    /// How long, with what overlaps counted once.
    pub(crate) fn total(mut self) -> u64 {
        self.spans.sort_unstable();
        let (mut total, mut reached) = (self.more, 0);
        for (from, until) in self.spans {
            total += until.saturating_sub(from.max(reached));
            reached = reached.max(until);
        }
        total
    }
}
