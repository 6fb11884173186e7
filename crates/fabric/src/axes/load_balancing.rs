//! Load balancing: which of several paths does a packet take?

use super::{Counter, Definition};
use crate::id::{FlowId, NodeId, PortId};
use crate::packet::Packet;
use crate::port::Port;
use crate::routing::Rule;
use crate::view::Site;
use engine::{Rate, Stream, Time};

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
    pub(crate) candidates: &'a [u32],
    pub(crate) ports: &'a [Port],
    pub(crate) mbps: &'a [u32],
    pub(crate) dice: &'a mut Stream,
}

impl Crossroads<'_> {
    /// The switch.
    pub fn node(&self) -> NodeId {
        NodeId(self.node)
    }
    /// How many ports there are to choose from; at least two.
    pub fn len(&self) -> usize {
        self.candidates.len()
    }
    /// Never: a switch without a choice is not asked.
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
    /// A hash of the packet's addresses, which differs from switch to switch.
    pub fn hash(&self) -> u32 {
        self.packet.tuple.hash(self.node)
    }
}

/// What chooses at one switch.
pub trait LoadBalancer: Send {
    /// The place of the chosen port among the candidates.
    fn choose(&mut self, at: &mut Crossroads<'_>) -> usize;
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
    /// A packet was lost.
    fn lost(&mut self, _flow: FlowId, _now: Time) {}
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
    /// What chooses at a host; `None` where a flow keeps its entropy.
    fn host(&self, _site: &Site<'_>) -> Option<Box<dyn PathSelector>> {
        None
    }
    /// Whether packets of a flow may overtake one another.
    fn may_reorder(&self) -> bool {
        false
    }
}
