//! Can this fabric deadlock? What waits for what, without running anything.
//!
//! A *channel* is one direction of a link and a lane on it: whatever a flow control can stop without stopping the rest of
//! the link. Channel a *waits for* channel b if a may be stopped until b moves: packets that came over a fill the buffer at its
//! end, and all that empties this buffer is b. Where no channel waits for itself through others, there is an order in which all
//! of them empty, and nothing waits for ever (Dally and Seitz 1987). Where one does, traffic exists that closes the cycle.
//!
//! A scheme says what its channels are and what they wait for ([`Waits`]); the paths that packets take come from the routing
//! tables. For most schemes it is enough to know the *turns* of the routes, from which link into which: these are collected
//! destination by destination, never pair by pair, so that 8192 hosts take seconds.
//!
//! What ends at a host that does not forward waits for nothing, because hosts take in what is for them. What begins at such a
//! host has no channel waiting for it. Neither is part of a cycle, and neither is kept.

use crate::host::NIC_SEED;
use crate::id::NodeId;
use crate::routing::Rule;
use crate::routing::{PortMap, Routing};
use crate::setup::FlowSpec;
use crate::topology::{Graph, Kind};
use engine::Time;
use std::collections::{BTreeSet, HashSet};

/// What a flow control makes wait for what.
pub enum Waits {
    /// Nothing is ever stopped until something else moves. Why, in half a sentence.
    Never(&'static str),
    /// The end of a link stops its neighbour, class by class, until packets that came over it have left: PFC.
    Classes,
    /// The same, with lanes that packets change along their path.
    Lanes(Box<dyn Lanes>),
    /// A rule of its own for every path through the fabric.
    Paths(Box<dyn PathRules>),
}

/// Lanes of a link that are stopped one by one, as [`Waits::Classes`] does it for the classes: a packet that waits at the
/// end of one holds it up until the one it takes next moves.
pub trait Lanes {
    /// How many there are in every class.
    fn count(&self) -> u8;
    /// Where a packet may go next: calls `go` with each port of the node and the lane on its link. Hosts that hang on the same switch
    /// by one link must be alike to it: one stands for all.
    fn next(&self, at: &At<'_>, go: &mut dyn FnMut(u32, u8));
}

/// A packet at a node that it must leave.
pub struct At<'a> {
    /// The fabric.
    pub graph: &'a Graph,
    /// Its ports.
    pub map: &'a PortMap,
    /// The routes, for one state of the links.
    pub routing: &'a Routing,
    /// The node.
    pub node: u32,
    /// The port of the node before by which it came, and the lane; `None` where it starts.
    pub from: Option<(u32, u8)>,
    /// The host it is for.
    pub host: u32,
    /// Ports on shortest paths there, as far as the choice among these may fall on them.
    pub paths: &'a [u32],
}

/// What waits for what along a whole path, for a flow control that does not stop link by link.
pub trait PathRules {
    /// How many channels a link may have in one direction.
    fn lanes(&self) -> u16;
    /// For a packet that leaves the nodes of its path by these ports, the last one to the host it is for: calls `wait` with
    /// two channels of which the first may be stopped until the second moves.
    fn waits(&self, graph: &Graph, map: &PortMap, path: &[u32], wait: &mut dyn FnMut(Channel, Channel));
    /// What a lane is called.
    fn name(&self, lane: u16) -> String {
        format!("queue {lane}")
    }
}

/// One direction of a link, named by the port that sends, and a lane on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Channel {
    /// The port that sends.
    pub port: u32,
    /// The lane, from 0.
    pub lane: u16,
}

/// A state of the links and the routes that go with it.
pub struct State {
    /// Which links work.
    pub up: Vec<bool>,
    /// The routes.
    pub routing: Routing,
}

impl State {
    /// The routes while these links work.
    pub fn new(graph: &Graph, map: &PortMap, up: Vec<bool>) -> State {
        State { routing: Routing::new(graph, map, &up), up }
    }
}

/// Whose packets are looked at.
#[derive(Clone, Copy)]
pub enum Traffic<'a> {
    /// Any host may send to any other.
    Any,
    /// These flows, each on the path its packets take, all in one class. With the flag, their ACKs wait with the data.
    Flows(&'a [FlowSpec], bool),
}

/// One link of a cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// It waits for the next one in the cycle.
    pub channel: Channel,
    /// Two hosts whose packets make it wait.
    pub pair: (u32, u32),
}

/// What an analysis found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finding {
    /// Channels that wait or are waited for.
    pub channels: usize,
    /// Pairs of channels of which one waits for the other.
    pub waits: usize,
    /// A shortest cycle of channels that wait for one another; empty if there is none.
    pub cycle: Vec<Step>,
    /// Every path goes up the tiers of the fabric and then down.
    pub up_down: bool,
    /// Three nodes of a path that comes down to the middle one and goes up again, if there is any.
    pub valley: Option<[u32; 3]>,
}

/// More paths than can be followed one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMany;

/// The most hops that are followed, of all paths together.
const MAX_HOPS: usize = 100_000_000;
/// The most steps in search of a shorter cycle.
const MAX_SEARCH: usize = 200_000_000;

/// The fabric and its rules, ready to be looked at.
pub struct Analysis<'a> {
    graph: &'a Graph,
    map: &'a PortMap,
    rule: Rule,
    salt: u32,
    waits: &'a Waits,
}

/// Class by class, as they are.
struct Straight;

impl Lanes for Straight {
    fn count(&self) -> u8 {
        1
    }
    fn next(&self, at: &At<'_>, go: &mut dyn FnMut(u32, u8)) {
        at.paths.iter().for_each(|&port| go(port, 0));
    }
}

/// Where packets come from.
#[derive(Clone, Copy)]
enum Source<'a> {
    /// Every host.
    All,
    /// One flow.
    Flow(&'a FlowSpec),
}

impl<'a> Analysis<'a> {
    /// A fabric whose nodes choose among equally short paths by `rule`, under a flow control that waits like this.
    pub fn new(graph: &'a Graph, map: &'a PortMap, rule: Rule, waits: &'a Waits) -> Analysis<'a> {
        Analysis { graph, map, rule, salt: 0, waits }
    }

    /// The same with hashes that have a [salt](crate::Setup::salt).
    pub fn salted(self, salt: u32) -> Analysis<'a> {
        Analysis { salt, ..self }
    }

    /// Looks for a cycle among what packets may wait for while the links are in any of these states. With more than one, a
    /// packet may have been sent by the routes of one and go on by those of another.
    pub fn run(&self, states: &[&State], traffic: Traffic<'_>) -> Result<Finding, TooMany> {
        let (edges, lanes) = match self.waits {
            Waits::Never(_) => return Ok(Finding::default()),
            Waits::Classes => self.turns(states, traffic, &Straight, &mut |_, _, _| true),
            Waits::Lanes(rule) => self.turns(states, traffic, rule.as_ref(), &mut |_, _, _| true),
            Waits::Paths(rule) => (self.along_paths(states, traffic, rule.as_ref())?, rule.lanes() as usize),
        };
        let cycle = edges.shortest_cycle();
        let pairs = self.pairs(states, traffic, &cycle)?;
        let channel = |number: u32| Channel { port: number / lanes as u32, lane: (number as usize % lanes) as u16 };
        let steps = cycle.iter().zip(pairs).map(|(&at, pair)| Step { channel: channel(at), pair });
        let (up_down, valley) = self.shape(&edges, lanes);
        Ok(Finding { channels: edges.touched(), waits: edges.to.len(), cycle: steps.collect(), up_down, valley })
    }

    fn far(&self, port: u32) -> u32 {
        self.map.node[self.map.peer[port as usize] as usize]
    }

    /// Whether a node passes on what is not for it.
    fn forwards(&self, node: u32) -> bool {
        self.graph.forwards(NodeId(node), self.map.of(node).len())
    }

    /// Whether both ends of a port's link forward.
    fn inner(&self, port: u32) -> bool {
        self.forwards(self.map.node[port as usize]) && self.forwards(self.far(port))
    }

    /// The ports by which packets for `host` may leave `node`.
    fn paths<'s>(&self, state: &'s State, source: Source<'_>, node: u32, host: u32) -> &'s [u32] {
        let paths = state.routing.next_hops(node, host);
        let one = |rule: Rule, seed: u32, flow: &FlowSpec| {
            let chosen = state.routing.choose(node, host, rule, seed ^ self.salt, &flow.tuple, Time::ZERO);
            let place = paths.iter().position(|&path| Some(path) == chosen);
            place.map_or(&paths[..0], |place| &paths[place..place + 1])
        };
        // A host with several links sends a flow by one of them, whatever the switches do.
        match (source, self.rule) {
            (Source::Flow(flow), _) if flow.src == NodeId(node) => one(Rule::ByFlow, NIC_SEED, flow),
            (Source::Flow(flow), Rule::ByFlow | Rule::ByDestination) => one(self.rule, node, flow),
            (Source::All, Rule::ByDestination) if self.graph.nodes[node as usize].kind == Kind::Switch => {
                one(self.rule, node, &FlowSpec::plain(0, host, host, 1, Time::ZERO))
            }
            _ => paths,
        }
    }

    /// Destinations, one for all that are reached by the same routes.
    fn destinations(&self, alike: bool) -> Vec<u32> {
        let mut switches = HashSet::new();
        let single = |host: u32| {
            let ports = self.map.of(host);
            (ports.len() == 1 && !self.forwards(host)).then(|| self.far(ports.start)).filter(|&v| self.forwards(v))
        };
        let hosts = self.graph.hosts().map(|host| host.0);
        hosts.filter(|&host| !alike || single(host).is_none_or(|switch| switches.insert(switch))).collect()
    }

    /// The turns of all routes, as waits of channels for one another. `seen` is called with each as often as it is met,
    /// with the channels so far from which the path can be traced back, and says whether to go on.
    fn turns(&self, states: &[&State], traffic: Traffic<'_>, rule: &dyn Lanes, seen: &mut Seen<'_>) -> (Edges, usize) {
        let lanes = rule.count().max(1) as usize;
        let (turns, walk) = (Turns::new(self, lanes), Walk::new(self.map.count() * lanes));
        let mut hunt = Hunt { rule, turns, walk, seen };
        match traffic {
            Traffic::Any => {
                for host in self.destinations(self.rule != Rule::ByDestination) {
                    if !self.follow(states, Source::All, host, &mut hunt) {
                        break;
                    }
                }
            }
            Traffic::Flows(flows, acks) => {
                for flow in flows {
                    let back = FlowSpec { src: flow.dst, dst: flow.src, tuple: flow.tuple.reversed(), ..*flow };
                    let both = [Some(*flow), acks.then_some(back)];
                    let mut go = |flow: &FlowSpec| self.follow(states, Source::Flow(flow), flow.dst.0, &mut hunt);
                    if !both.iter().flatten().all(&mut go) {
                        break;
                    }
                }
            }
        }
        (hunt.turns.edges(self), lanes)
    }

    /// Follows packets for `host` wherever they may go. False if there is no need to go on.
    fn follow(&self, states: &[&State], source: Source<'_>, host: u32, hunt: &mut Hunt<'_, '_>) -> bool {
        let Hunt { rule, turns, walk, seen } = hunt;
        walk.begin();
        let lanes = turns.lanes as u32;
        let mut on = true;
        let mut leave = |walk: &mut Walk, node: u32, from: Option<u32>| {
            for state in states {
                let came = from.map(|channel| (channel / lanes, (channel % lanes) as u8));
                let (graph, map, routing) = (self.graph, self.map, &state.routing);
                let paths = self.paths(state, source, node, host);
                rule.next(&At { graph, map, routing, node, from: came, host, paths }, &mut |port, lane| {
                    if !state.up[map.link[port as usize] as usize] {
                        return;
                    }
                    let next = port * lanes + lane as u32;
                    walk.reach(next, from);
                    if let Some(from) = from.filter(|&from| turns.add(from, next)) {
                        on &= seen((from, next), &walk.before, host);
                    }
                });
            }
        };
        match source {
            Source::Flow(flow) => leave(walk, flow.src.0, None),
            Source::All => {
                let others = self.graph.hosts().filter(|other| other.0 != host);
                others.for_each(|other| leave(walk, other.0, None));
            }
        }
        while let Some(channel) = walk.open.pop() {
            let node = self.far(channel / lanes);
            if node != host && self.forwards(node) {
                leave(walk, node, Some(channel));
            }
        }
        on
    }

    /// The waits of a rule that needs whole paths.
    fn along_paths(&self, states: &[&State], traffic: Traffic<'_>, rule: &dyn PathRules) -> Result<Edges, TooMany> {
        let mut edges = BTreeSet::new();
        self.every_path(states, traffic, &mut |path, _| {
            rule.waits(self.graph, self.map, path, &mut |a, b| _ = edges.insert((number(rule, a), number(rule, b))));
        })?;
        let count = self.map.count() * rule.lanes() as usize;
        Ok(Edges::new(count, edges.into_iter()))
    }

    /// Calls `each` with every path and the hosts at its ends.
    fn every_path(&self, states: &[&State], traffic: Traffic<'_>, each: &mut EachPath<'_>) -> Result<(), TooMany> {
        let mut left = MAX_HOPS;
        let mut one = |source: Source<'_>, src: u32, dst: u32| -> Result<(), TooMany> {
            let mut path: Vec<u32> = Vec::new();
            // Ports still to be tried at each node of the path.
            let ports = |node: u32| -> Vec<u32> {
                let works = |state: &&State, port: u32| state.up[self.map.link[port as usize] as usize];
                let paths = states.iter().flat_map(|state| {
                    self.paths(state, source, node, dst).iter().copied().filter(move |&port| works(state, port))
                });
                let paths: BTreeSet<u32> = paths.collect();
                paths.into_iter().collect()
            };
            let mut open = vec![ports(src)];
            while let Some(here) = open.last_mut() {
                let Some(port) = here.pop() else {
                    open.pop();
                    path.pop();
                    continue;
                };
                left = left.checked_sub(1).ok_or(TooMany)?;
                let node = self.far(port);
                if node == dst {
                    path.push(port);
                    each(&path, (src, dst));
                    path.pop();
                } else if self.forwards(node) && node != src && !path.iter().any(|&p| self.far(p) == node) {
                    path.push(port);
                    open.push(ports(node));
                }
            }
            Ok(())
        };
        match traffic {
            Traffic::Any => {
                for src in self.graph.hosts() {
                    for dst in self.graph.hosts().filter(|&dst| dst != src) {
                        one(Source::All, src.0, dst.0)?;
                    }
                }
            }
            Traffic::Flows(flows, acks) => {
                for flow in flows {
                    one(Source::Flow(flow), flow.src.0, flow.dst.0)?;
                    if acks {
                        let back = FlowSpec { src: flow.dst, dst: flow.src, tuple: flow.tuple.reversed(), ..*flow };
                        one(Source::Flow(&back), back.src.0, back.dst.0)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// For every channel of a cycle, hosts whose packets make it wait for the next.
    fn pairs(&self, states: &[&State], traffic: Traffic<'_>, cycle: &[u32]) -> Result<Vec<(u32, u32)>, TooMany> {
        let mut pairs: Vec<Option<(u32, u32)>> = vec![None; cycle.len()];
        if cycle.is_empty() {
            return Ok(Vec::new());
        }
        let place = |(a, b): (u32, u32)| {
            let at = cycle.iter().position(|&channel| channel == a)?;
            (cycle[(at + 1) % cycle.len()] == b).then_some(at)
        };
        match self.waits {
            Waits::Never(_) => {}
            Waits::Paths(rule) => self.every_path(states, traffic, &mut |path, pair| {
                rule.waits(self.graph, self.map, path, &mut |a, b| {
                    if let Some(at) = place((number(rule.as_ref(), a), number(rule.as_ref(), b))) {
                        pairs[at].get_or_insert(pair);
                    }
                });
            })?,
            Waits::Classes | Waits::Lanes(_) => {
                let straight: &dyn Lanes = &Straight;
                let rule = if let Waits::Lanes(rule) = self.waits { rule.as_ref() } else { straight };
                let lanes = rule.count().max(1) as u32;
                self.turns(states, traffic, rule, &mut |edge, before, host| {
                    if let Some(at) = place(edge) {
                        let mut channel = edge.0;
                        while before[channel as usize] != START {
                            channel = before[channel as usize];
                        }
                        pairs[at].get_or_insert((self.map.node[(channel / lanes) as usize], host));
                    }
                    pairs.iter().any(Option::is_none)
                });
            }
        }
        Ok(pairs.into_iter().map(Option::unwrap_or_default).collect())
    }

    /// Whether paths go up and then down, and a place where one does not.
    fn shape(&self, edges: &Edges, lanes: usize) -> (bool, Option<[u32; 3]>) {
        let tier = |node: u32| self.graph.nodes[node as usize].tier;
        let (mut up_down, mut valley) = (true, None);
        for (a, b) in edges.iter() {
            let (a, b) = (a / lanes as u32, b / lanes as u32);
            let nodes = [self.map.node[a as usize], self.far(a), self.far(b)];
            if self.map.node[b as usize] != nodes[1] {
                continue;
            }
            let [first, middle, last] = nodes.map(tier);
            up_down &= first != middle && middle != last;
            if middle < first && middle < last && self.forwards(nodes[1]) {
                up_down = false;
                valley = valley.or(Some(nodes));
            }
        }
        (up_down, valley)
    }
}

fn number(rule: &dyn PathRules, channel: Channel) -> u32 {
    channel.port * rule.lanes() as u32 + channel.lane as u32
}

/// Receives a turn between two channels, the channel before each on the path, and the host it leads to. False ends the search.
type Seen<'s> = dyn FnMut((u32, u32), &[u32], u32) -> bool + 's;
/// Receives a path and the hosts at its ends.
type EachPath<'e> = dyn FnMut(&[u32], (u32, u32)) + 'e;

/// Turns being collected.
struct Hunt<'h, 's> {
    rule: &'h dyn Lanes,
    turns: Turns,
    walk: Walk,
    seen: &'h mut Seen<'s>,
}

const START: u32 = u32::MAX;

/// Channels that packets for one host can reach.
struct Walk {
    /// By channel: the round in which it was last reached.
    round: Vec<u32>,
    /// By channel: the one before it on a path, [`START`] at its beginning.
    before: Vec<u32>,
    now: u32,
    open: Vec<u32>,
}

impl Walk {
    fn new(channels: usize) -> Walk {
        Walk { round: vec![0; channels], before: vec![START; channels], now: 0, open: Vec::new() }
    }

    fn begin(&mut self) {
        self.now += 1;
        self.open.clear();
    }

    fn reach(&mut self, channel: u32, from: Option<u32>) {
        if self.round[channel as usize] != self.now {
            self.round[channel as usize] = self.now;
            self.before[channel as usize] = from.unwrap_or(START);
            self.open.push(channel);
        }
    }
}

/// Which channel of a node's links is followed by which: a bit for each pair.
struct Turns {
    lanes: usize,
    /// By port: its place among those of its node whose links join two nodes that forward; [`START`] for others.
    place: Vec<u32>,
    /// By port: where the rows of its lanes begin.
    row: Vec<usize>,
    /// By node: words of a row.
    words: Vec<usize>,
    bits: Vec<u64>,
}

impl Turns {
    fn new(analysis: &Analysis<'_>, lanes: usize) -> Turns {
        let map = analysis.map;
        let mut place = vec![START; map.count()];
        let mut words = Vec::with_capacity(analysis.graph.nodes.len());
        for node in 0..analysis.graph.nodes.len() as u32 {
            let inner = map.of(node).filter(|&port| analysis.inner(port));
            let count = (0..).zip(inner).map(|(at, port)| place[port as usize] = at).count();
            words.push((count * lanes).div_ceil(64));
        }
        let mut row = vec![0; map.count()];
        let mut total = 0;
        for port in 0..map.count() {
            row[port] = total;
            if place[port] != START {
                total += lanes * words[analysis.far(port as u32) as usize];
            }
        }
        // The words of the node a port leads to, where they are needed.
        let words = (0..map.count() as u32).map(|port| words[analysis.far(port) as usize]).collect();
        Turns { lanes, place, row, words, bits: vec![0; total] }
    }

    /// Notes a turn from channel to channel. False if neither can be part of a cycle.
    #[inline]
    fn add(&mut self, from: u32, to: u32) -> bool {
        let split = |channel: u32| (channel as usize / self.lanes, channel as usize % self.lanes);
        let ((a, lane_a), (b, lane_b)) = (split(from), split(to));
        if self.place[a] == START || self.place[b] == START {
            return false;
        }
        let bit = self.place[b] as usize * self.lanes + lane_b;
        self.bits[self.row[a] + lane_a * self.words[a] + bit / 64] |= 1 << (bit % 64);
        true
    }

    fn edges(&self, analysis: &Analysis<'_>) -> Edges {
        let map = analysis.map;
        let mut found = Vec::new();
        for a in (0..map.count()).filter(|&a| self.place[a] != START) {
            let inner: Vec<u32> =
                map.of(analysis.far(a as u32)).filter(|&port| self.place[port as usize] != START).collect();
            for lane in 0..self.lanes {
                let row = self.row[a] + lane * self.words[a];
                for (word, &bits) in self.bits[row..row + self.words[a]].iter().enumerate() {
                    let mut bits = bits;
                    while bits != 0 {
                        let bit = word * 64 + bits.trailing_zeros() as usize;
                        bits &= bits - 1;
                        let to = inner[bit / self.lanes] * self.lanes as u32 + (bit % self.lanes) as u32;
                        found.push(((a * self.lanes + lane) as u32, to));
                    }
                }
            }
        }
        Edges::new(map.count() * self.lanes, found.into_iter())
    }
}

/// Which channel waits for which.
#[derive(Clone, Debug)]
pub struct Edges {
    /// Where the successors of each begin.
    first: Vec<u32>,
    to: Vec<u32>,
}

impl Edges {
    /// Pairs of numbers below `count`, sorted.
    pub fn new(count: usize, pairs: impl Iterator<Item = (u32, u32)>) -> Edges {
        let mut first = vec![0u32; count + 1];
        let to = pairs.map(|(a, b)| {
            first[a as usize + 1] += 1;
            b
        });
        let to = to.collect();
        (0..count).for_each(|at| first[at + 1] += first[at]);
        Edges { first, to }
    }

    fn of(&self, a: u32) -> &[u32] {
        &self.to[self.first[a as usize] as usize..self.first[a as usize + 1] as usize]
    }

    fn count(&self) -> u32 {
        self.first.len() as u32 - 1
    }

    fn iter(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        (0..self.count()).flat_map(|a| self.of(a).iter().map(move |&b| (a, b)))
    }

    /// How many wait or are waited for.
    fn touched(&self) -> usize {
        let mut touched = vec![false; self.count() as usize];
        self.iter().for_each(|(a, b)| (touched[a as usize], touched[b as usize]) = (true, true));
        touched.iter().filter(|&&touched| touched).count()
    }

    /// Removes the channels that wait for nothing, repeatedly, and gives the rest: empty if there is no cycle.
    fn knot(&self) -> Vec<bool> {
        let mut back: Vec<(u32, u32)> = self.iter().map(|(a, b)| (b, a)).collect();
        back.sort_unstable();
        let back = Edges::new(self.count() as usize, back.into_iter());
        let mut left: Vec<u32> = (0..self.count()).map(|a| self.of(a).len() as u32).collect();
        let mut open: Vec<u32> = (0..self.count()).filter(|&a| left[a as usize] == 0).collect();
        let mut stays = vec![true; self.count() as usize];
        while let Some(b) = open.pop() {
            stays[b as usize] = false;
            for &a in back.of(b) {
                left[a as usize] -= 1;
                if left[a as usize] == 0 {
                    open.push(a);
                }
            }
        }
        stays
    }

    /// A shortest cycle, from its lowest number on; empty if there is none. In a graph of many cycles the search for a shorter
    /// one ends at some point.
    pub fn shortest_cycle(&self) -> Vec<u32> {
        let stays = self.knot();
        let mut best: Vec<u32> = Vec::new();
        let mut before = vec![START; self.count() as usize];
        let mut depth = vec![u32::MAX; self.count() as usize];
        let mut order: Vec<u32> = Vec::new();
        let mut steps = 0;
        for root in (0..self.count()).filter(|&at| stays[at as usize]) {
            order.drain(..).for_each(|at| depth[at as usize] = u32::MAX);
            order.push(root);
            depth[root as usize] = 0;
            let mut at = 0;
            'search: while at < order.len() {
                let now = order[at];
                at += 1;
                // What is farther cannot close a shorter cycle.
                if !best.is_empty() && depth[now as usize] as usize + 1 >= best.len() {
                    break;
                }
                for &next in self.of(now).iter().filter(|&&next| stays[next as usize]) {
                    steps += 1;
                    if next == root {
                        let mut cycle = vec![now];
                        while cycle[cycle.len() - 1] != root {
                            cycle.push(before[cycle[cycle.len() - 1] as usize]);
                        }
                        cycle.reverse();
                        best = cycle;
                        break 'search;
                    }
                    if depth[next as usize] == u32::MAX {
                        depth[next as usize] = depth[now as usize] + 1;
                        before[next as usize] = now;
                        order.push(next);
                    }
                }
            }
            if steps > MAX_SEARCH && !best.is_empty() {
                break;
            }
        }
        best
    }
}

#[cfg(test)]
mod tests;
