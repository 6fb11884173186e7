//! Load balancing: which of several paths does a packet take?
//!
//! There are three places to decide. A [`LoadBalancer`] chooses at a switch by what that switch sees. A [`Labeller`] does so, too, and its
//! switches tell one another what they see: by a label on every packet and by packets of their own. A [`PathSelector`] chooses at a host.

use super::{Counter, Definition};
use crate::id::{FlowId, NodeId, PortId};
use crate::packet::Packet;
use crate::port::Port;
use crate::routing::{PortMap, Routing, Rule, Tuple};
use crate::setup::FlowSpec;
use crate::switch::Siding;
use crate::view::Site;
use engine::{Rate, Stream, Time};
use std::collections::{BTreeMap, HashMap};

/// A switch that has a packet and several ports on shortest paths: what its hardware sees.
pub struct Crossroads<'a> {
    /// Now.
    pub now: Time,
    /// The packet.
    pub packet: &'a Packet,
    /// The port it came in by, unless the switch made it itself.
    pub in_port: Option<PortId>,
    pub(crate) node: u32,
    pub(crate) base: u32,
    pub(crate) salt: u32,
    pub(crate) candidates: &'a [u32],
    pub(crate) ports: &'a [Port],
    pub(crate) mbps: &'a [u32],
    pub(crate) flows: &'a [FlowSpec],
    pub(crate) routing: &'a Routing,
    pub(crate) map: &'a PortMap,
    pub(crate) dice: &'a mut Stream,
}

impl Crossroads<'_> {
    /// The switch.
    pub fn node(&self) -> NodeId {
        NodeId(self.node)
    }
    /// How many ports there are to choose from; at least two for a [`LoadBalancer`].
    pub fn len(&self) -> usize {
        self.candidates.len()
    }
    /// Never: a switch without a path is not asked.
    pub fn is_empty(&self) -> bool {
        self.candidates.is_empty()
    }
    fn port(&self, place: usize) -> &Port {
        &self.ports[self.candidates[place] as usize]
    }
    /// The number of a candidate at this switch.
    pub fn id(&self, place: usize) -> PortId {
        PortId((self.candidates[place] - self.base) as u16)
    }
    /// The place of a port among the candidates, if it is one.
    pub fn place(&self, port: PortId) -> Option<usize> {
        self.candidates.iter().position(|&candidate| candidate - self.base == port.0 as u32)
    }
    /// Bytes that wait at a candidate.
    pub fn queued(&self, place: usize) -> u64 {
        self.port(place).queued
    }
    /// Bytes that a candidate has sent.
    pub fn sent(&self, place: usize) -> u64 {
        self.port(place).tx_bytes
    }
    /// Whether the link of a candidate works.
    pub fn up(&self, place: usize) -> bool {
        self.port(place).up
    }
    /// Whether the neighbour has paused the packet's class at a candidate.
    pub fn paused(&self, place: usize) -> bool {
        self.port(place).paused >> self.packet.class & 1 == 1
    }
    /// The rate of a candidate's link.
    pub fn rate(&self, place: usize) -> Rate {
        Rate(self.mbps[self.port(place).table as usize] as u64 * 1_000_000)
    }
    /// A random number below `n`.
    pub fn draw(&mut self, n: u64) -> u64 {
        self.dice.below(n)
    }
    /// The place of a random candidate among those whose link works; among all where none does.
    pub fn draw_up(&mut self) -> usize {
        let up = (0..self.len()).filter(|&place| self.up(place)).count();
        if up == 0 || up == self.len() {
            return self.draw(self.len() as u64) as usize;
        }
        let drawn = self.draw(up as u64) as usize;
        (0..self.len()).filter(|&place| self.up(place)).nth(drawn).unwrap_or(0)
    }
    /// A hash of the packet's addresses, which differs from switch to switch.
    pub fn hash(&self) -> u32 {
        self.packet.tuple.hash(self.node ^ self.salt)
    }
    /// The place that equal-cost multipath would choose.
    pub fn hashed(&self) -> usize {
        self.hash() as usize % self.len()
    }
}

/// A path from a switch to the last one before a host: the ports of the switches on it that have a choice, the first in the lowest 16 bits. Of
/// more than four, the first four; those behind choose by hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Route(pub u64);

/// How many choices a [`Route`] can name.
const MOST_CHOICES: usize = 4;
/// The most routes that a switch knows to another. Of more it knows an even selection.
pub const MOST_ROUTES: usize = 1024;
/// The most that are looked at to select from.
const MOST_LISTED: usize = 1 << 16;

/// An even selection of routes, if there are more than a switch knows.
fn selection(all: Vec<Route>) -> Vec<Route> {
    match all.len() {
        count if count > MOST_ROUTES => (0..MOST_ROUTES).map(|place| all[place * count / MOST_ROUTES]).collect(),
        _ => all,
    }
}

impl Route {
    /// The port by which it leaves the first switch that has a choice.
    pub fn first(self) -> PortId {
        self.at(0)
    }
    /// The port by which it leaves the switch that has choice number `choice`, counted from zero.
    pub fn at(self, choice: u32) -> PortId {
        PortId((self.0 >> (16 * choice.min(MOST_CHOICES as u32 - 1))) as u16)
    }
}

/// What the control plane knows, and gives to every switch: the routing tables and the links. It says nothing of the load.
impl Crossroads<'_> {
    fn beyond(&self, port: u32) -> u32 {
        self.map.node[self.map.peer[port as usize] as usize]
    }
    /// The switch that a host hangs on, if it has a single link.
    pub fn home(&self, host: NodeId) -> Option<NodeId> {
        self.routing.home(host.0).map(NodeId)
    }
    /// What tells the packet's destination from others that are reached by other paths: its switch, or the host itself if it has several.
    pub fn toward(&self) -> NodeId {
        let host = NodeId(self.packet.dst);
        self.home(host).unwrap_or(host)
    }
    /// The first and the last switch on the packet's path, if each end of the flow has a single link, and they are two.
    pub fn leaves(&self) -> Option<(NodeId, NodeId)> {
        let flow = self.flows.get(self.packet.flow as usize)?;
        let (from, to) = if flow.dst.0 == self.packet.dst { (flow.src, flow.dst) } else { (flow.dst, flow.src) };
        let (first, last) = (self.home(from)?, self.home(to)?);
        (first != last).then_some((first, last))
    }
    /// All shortest paths from here to the packet's destination.
    pub fn routes(&self) -> Vec<Route> {
        let mut all = Vec::new();
        self.add_routes(self.node, Route::default(), 0, &mut all);
        selection(all)
    }
    fn add_routes(&self, node: u32, route: Route, choices: usize, all: &mut Vec<Route>) {
        let (hops, base) = (self.routing.next_hops(node, self.packet.dst), self.map.base[node as usize]);
        if all.len() >= MOST_LISTED {
            return;
        }
        match hops {
            // Also where the host's own link is down: paths are kept by leaf.
            _ if node == self.packet.dst || self.routing.home(self.packet.dst) == Some(node) => all.push(route),
            [] => {}
            [only] => self.add_routes(self.beyond(*only), route, choices, all),
            _ if choices == MOST_CHOICES => all.push(route),
            several => several.iter().for_each(|&port| {
                let named = Route(route.0 | ((port - base) as u64) << (16 * choices));
                self.add_routes(self.beyond(port), named, choices + 1, all);
            }),
        }
    }
    /// The place of the port by which a path goes on from here, and counts the choice; by hash where the path says nothing, or its link is down.
    pub fn follow(&self, route: Route, choices: &mut u32) -> usize {
        if self.len() == 1 {
            return 0;
        }
        let named = (*choices < MOST_CHOICES as u32).then(|| self.place(route.at(*choices))).flatten();
        *choices += 1;
        named.filter(|&place| self.up(place)).unwrap_or_else(|| self.hashed())
    }
    /// What a candidate's path carries at most to the packet's destination, in Mbit/s: its own link, or all that the switches behind it
    /// have together. The only link of a host does not count.
    pub fn capacity(&self, place: usize) -> u64 {
        self.capacity_of(self.candidates[place], &mut HashMap::new())
    }
    /// `known`: what switches have together.
    fn capacity_of(&self, port: u32, known: &mut HashMap<u32, u64>) -> u64 {
        let own = self.mbps[self.ports[port as usize].table as usize] as u64;
        let (next, host) = (self.beyond(port), self.packet.dst);
        if next == host || self.routing.home(host) == Some(next) {
            return own;
        }
        if let Some(&behind) = known.get(&next) {
            return own.min(behind);
        }
        let behind = self.routing.next_hops(next, host).iter().map(|&port| self.capacity_of(port, known)).sum();
        known.insert(next, behind);
        own.min(behind)
    }
    /// How long a packet of no size takes from here to the last switch before the packet's destination and back, where nothing waits.
    pub fn leaf_rtt(&self) -> Time {
        let (mut node, mut time) = (self.node, Time::ZERO);
        while Some(node) != self.routing.home(self.packet.dst) {
            let Some(&port) = self.routing.next_hops(node, self.packet.dst).first() else { break };
            let back = self.map.peer[port as usize];
            time += self.ports[port as usize].latency + self.ports[back as usize].latency;
            node = self.map.node[back as usize];
            if node == self.packet.dst {
                break;
            }
        }
        time
    }
}

/// What chooses at one switch.
pub trait LoadBalancer: Send {
    /// The place of the chosen port among the candidates.
    fn choose(&mut self, at: &mut Crossroads<'_>) -> usize;
    /// Routing has other tables, because links have failed or come back.
    fn rerouted(&mut self) {}
    /// What it counted.
    fn counters(&self) -> Vec<Counter> {
        Vec::new()
    }
}

/// What switches write on a packet for one another; its meaning is the scheme's own. A packet that comes from a host has the label of one that
/// was there before: the first switch on its path writes all of it.
pub type Label = [u64; 4];

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// It goes on by the candidate at that place.
    By(usize),
    /// It waits in the siding with that number, behind those that wait there, until they are [released](Orders::release).
    Wait(u32),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Order {
    Advise { flow: u32, class: u8, tuple: Tuple, kind: u16, word: u64, ahead: bool },
    Timer(Time),
    Release(u32),
}

/// What a [`Labeller`] has done besides: once the packet that it was called for is on its way.
pub struct Orders<'a> {
    /// Now.
    pub now: Time,
    pub(crate) node: u32,
    pub(crate) sidings: &'a BTreeMap<(u32, u32), Siding>,
    pub(crate) list: &'a mut Vec<Order>,
}

impl Orders<'_> {
    /// The switch.
    pub fn node(&self) -> NodeId {
        NodeId(self.node)
    }
    /// Sends a word of some kind to the first switch on the path of a data packet, in a control packet of 64 bytes that goes ahead of all data.
    pub fn advise(&mut self, data: &Packet, kind: u16, word: u64) {
        self.push_advice(data, kind, word, false);
    }
    /// The same, and it is sent before the packet goes on: ahead of a pause for which that may be the reason.
    pub fn advise_ahead(&mut self, data: &Packet, kind: u16, word: u64) {
        self.push_advice(data, kind, word, true);
    }
    fn push_advice(&mut self, data: &Packet, kind: u16, word: u64, ahead: bool) {
        let (flow, class, tuple) = (data.flow, data.class, data.tuple.reversed());
        self.list.push(Order::Advise { flow, class, tuple, kind, word, ahead });
    }
    /// Calls [`Labeller::timer`] at an instant.
    pub fn set_timer(&mut self, at: Time) {
        self.list.push(Order::Timer(at));
    }
    /// Lets all that waits in a siding go on, in its order, as soon as there is room for it in the switch's shared memory.
    pub fn release(&mut self, siding: u32) {
        self.list.push(Order::Release(siding));
    }
    /// Whether packets wait in a siding. They may after it was released.
    pub fn waits(&self, siding: u32) -> bool {
        self.sidings.contains_key(&(self.node, siding))
    }
}

/// What runs at one switch of a scheme whose switches tell one another what they see: it reads and writes the label of every packet.
///
/// Packets that wait in a siding are in a memory of their own: no flow control sees them, and no neighbour is stopped because of them.
pub trait Labeller: Send {
    /// A packet has come in. There may be only one candidate.
    fn pass(&mut self, at: &mut Crossroads<'_>, label: &mut Label, orders: &mut Orders<'_>) -> Pass;
    /// The last switch on a flow's path has sent a word to this one, which is the first.
    fn advised(&mut self, _flow: FlowId, _kind: u16, _word: u64, _orders: &mut Orders<'_>) {}
    /// It is the time that a timer was set for.
    fn timer(&mut self, _orders: &mut Orders<'_>) {}
    /// The last packet that waited in a siding is on its way.
    fn drained(&mut self, _siding: u32, _orders: &mut Orders<'_>) {}
    /// Routing has other tables, because links have failed or come back.
    fn rerouted(&mut self) {}
    /// Whether it has kept packets of a flow in order, if it does at all.
    fn in_order(&self) -> bool {
        true
    }
    /// What it counted.
    fn counters(&self) -> Vec<Counter> {
        Vec::new()
    }
}

/// What chooses at one host, by the entropy that switches hash (the source port of a packet).
pub trait PathSelector: Send {
    /// The entropy of a flow's next packet, given the flow's own.
    fn next(&mut self, flow: FlowId, own: u16, now: Time, dice: &mut Stream) -> u16;
    /// A packet with that entropy was acknowledged, marked by a switch or not.
    fn acknowledged(&mut self, _flow: FlowId, _entropy: u16, _marked: bool, _now: Time) {}
    /// A packet with that entropy was trimmed to its header, before the last switch on its path.
    fn trimmed(&mut self, _flow: FlowId, _entropy: u16, _now: Time) {}
    /// A packet was lost: the receiver, or a timeout, said so.
    fn lost(&mut self, _flow: FlowId, _now: Time) {}
    /// Nothing was heard for the time of a timeout; `lost` is called, too.
    fn expired(&mut self, _flow: FlowId, _now: Time) {}
    /// A flow is over.
    fn ended(&mut self, _flow: FlowId) {}
    /// What it counted.
    fn counters(&self) -> Vec<Counter> {
        Vec::new()
    }
}

/// What the program knows of a load balancer.
pub trait LoadBalancingDef: Definition {
    /// The rule by which routing chooses where nothing else does: for switches without a [`LoadBalancer`], for control packets that a
    /// switch makes, and for the analysis of paths.
    fn rule(&self) -> Rule {
        Rule::ByFlow
    }
    /// What chooses at a switch; `None` where the rule is all.
    fn switch(&self, _site: &Site<'_>) -> Option<Box<dyn LoadBalancer>> {
        None
    }
    /// What chooses at a switch and writes labels, instead of [`LoadBalancingDef::switch`]. `lossless`: flow control promises to lose nothing.
    fn labeller(&self, _site: &Site<'_>, _lossless: bool) -> Option<Box<dyn Labeller>> {
        None
    }
    /// What chooses at a host; `None` where a flow keeps its entropy.
    fn host(&self, _site: &Site<'_>) -> Option<Box<dyn PathSelector>> {
        None
    }
    /// Whether packets of a flow may overtake one another.
    fn may_reorder(&self) -> bool {
        false
    }
    /// Whether the last switch puts packets aside until those before them have come.
    fn sets_aside(&self) -> bool {
        false
    }
    /// Whether switches know paths by name, and so [no more than so many](MOST_ROUTES).
    fn names_paths(&self) -> bool {
        false
    }
    /// Whether all packets of a flow that are in flight are on one path.
    fn one_path(&self) -> bool {
        !self.may_reorder()
    }
    /// Whether the rule alone says which path a flow takes.
    fn by_rule(&self) -> bool {
        self.one_path()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_more_routes_than_a_switch_knows_it_knows_some_by_every_port() {
        // 64 ports, by each of which there are 64 paths.
        let all: Vec<Route> = (0..64u64).flat_map(|first| (0..64).map(move |then| Route(first | then << 16))).collect();
        let known = selection(all.clone());
        assert_eq!(known.len(), MOST_ROUTES);
        let by = |port: u16| known.iter().filter(|route| route.first() == PortId(port)).count();
        assert!((0..64).all(|port| by(port) == MOST_ROUTES / 64));
        assert_eq!(selection(all[..1024].to_vec()), all[..1024]);
    }
}
