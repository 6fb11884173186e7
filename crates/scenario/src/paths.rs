//! The path a flow takes, and how long an idle network needs for it.

use engine::{Rate, Time};
use fabric::clock::Clock;
use fabric::host::NIC_SEED;
use fabric::id::NodeId;
use fabric::routing::{PortMap, Routing, Rule, Tuple};
use fabric::topology::{Graph, Kind};
use std::collections::HashMap;

/// One link on a flow's path, in the direction it is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leg {
    /// Bits per second.
    pub rate: Rate,
    /// From the end of a packet's transmission to its being queued, or received, at the far end.
    pub latency: Time,
}

/// The routes of a fabric while all of its links work but those that never do.
pub struct Paths<'a> {
    graph: &'a Graph,
    routing: Routing,
    rule: Rule,
    salt: u32,
    forward: Time,
    /// By port, what leaving by it costs, and the node that it leads to.
    legs: Vec<(Leg, u32)>,
}

impl<'a> Paths<'a> {
    /// Routes over `graph`, whose ports are `map` and whose switches choose by `rule` and take `pipeline` per packet; hosts
    /// that forward take `forward`.
    pub fn new(graph: &'a Graph, map: &PortMap, rule: Rule, pipeline: Time, forward: Time) -> Paths<'a> {
        let up: Vec<bool> = graph.links.iter().map(|link| !link.never()).collect();
        let routing = Routing::new(graph, map, &up);
        let leg = |port: usize| {
            let link = &graph.links[map.link[port] as usize];
            let far = map.node[map.peer[port] as usize];
            let pipeline = match graph.nodes[far as usize].kind {
                Kind::Switch => pipeline,
                Kind::Host => Time::ZERO,
            };
            (Leg { rate: map.rate(graph, port as u32), latency: link.delay + pipeline }, far)
        };
        Paths { graph, routing, rule, salt: 0, forward, legs: (0..map.count()).map(leg).collect() }
    }

    /// The same with hashes that have a [salt](fabric::Setup::salt).
    pub fn salted(self, salt: u32) -> Paths<'a> {
        Paths { salt, ..self }
    }

    /// What leaving a node by `port` costs.
    pub fn leg(&self, port: u32) -> Leg {
        self.legs[port as usize].0
    }

    /// The ports by which packets with this tuple leave the nodes on their path from one host to another; cut short where there is no path.
    pub fn steps(&self, from: NodeId, to: NodeId, tuple: Tuple) -> impl Iterator<Item = u32> {
        // Shortest paths never come back to a node.
        let (mut node, mut left) = (from, self.graph.nodes.len() + 1);
        std::iter::from_fn(move || {
            left = left.checked_sub(1).filter(|_| node != to)?;
            // A host with several links sends a flow by one of them, whatever the switches do.
            let (seed, rule) = if node == from { (NIC_SEED, Rule::ByFlow) } else { (node.0, self.rule) };
            let port = self.routing.choose(node.0, to.0, rule, seed ^ self.salt, &tuple, Time::ZERO)?;
            node = NodeId(self.far(port));
            Some(port)
        })
    }

    /// How many shortest paths lead from one host to another.
    pub fn count(&self, from: NodeId, to: NodeId) -> u64 {
        self.count_from(from.0, to.0, &mut HashMap::new())
    }
    /// `known`: the count of nodes that were passed before.
    fn count_from(&self, node: u32, to: u32, known: &mut HashMap<u32, u64>) -> u64 {
        if node == to {
            return 1;
        }
        if let Some(&count) = known.get(&node) {
            return count;
        }
        let next = self.routing.next_hops(node, to).iter().map(|&port| self.far(port));
        let count = next.map(|next| self.count_from(next, to, known)).fold(0, u64::saturating_add);
        known.insert(node, count);
        count
    }

    /// The switch of a host, if it has one link.
    pub fn home(&self, host: NodeId) -> Option<NodeId> {
        self.routing.home(host.0).map(NodeId)
    }

    /// The node that a port leads to.
    fn far(&self, port: u32) -> u32 {
        self.legs[port as usize].1
    }

    /// Walks from one host to another as packets with this tuple do, and writes the legs down. False where there is no path.
    pub fn walk(&self, from: NodeId, to: NodeId, tuple: Tuple, legs: &mut Vec<Leg>) -> bool {
        legs.clear();
        let mut node = from;
        for port in self.steps(from, to, tuple) {
            node = NodeId(self.far(port));
            let mut leg = self.leg(port);
            if node != to && self.graph[node].kind == Kind::Host {
                leg.latency += self.forward;
            }
            legs.push(leg);
        }
        node == to
    }
}

/// How a message is cut into packets, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    /// Bytes of message in a full packet; above zero.
    pub payload: u64,
    /// Bytes of headers on every packet.
    pub header: u64,
}

/// When the last byte of a message alone in the network is received, counted from its start.
///
/// All packets but the last are alike. On its path through a row of store-and-forward hops a packet waits for the one before
/// it only, so the last packet arrives after the longest chain of "then": some number of hops with the first packet,
/// all others but the last at the slowest of these, and the last packet from there on. With n packets, S the
/// transmission time of a full packet on a hop and L that of the last one, it is
///
/// ```text
/// Σ latency + max over m of [ Σ(h ≤ m) S(h) + (n − 2) · max(h ≤ m) S(h) + Σ(h ≥ m) L(h) ]
/// ```
///
/// and with a single packet Σ latency + Σ L. The result is the latest [`Time`] where it would be later still.
pub fn ideal_time(clock: Clock, path: &[Leg], framing: Framing, size: u64) -> Time {
    let packets = size.div_ceil(framing.payload).max(1);
    let last = size - (packets - 1) * framing.payload + framing.header;
    let full = framing.payload + framing.header;
    let time = |bytes: u64, leg: &Leg| clock.duration(bytes, leg.rate).0 as u128;
    let latency: u128 = path.iter().map(|leg| leg.latency.0 as u128).sum();
    // What the last packet still has to do, beginning with the hop at hand.
    let mut rest: u128 = path.iter().map(|leg| time(last, leg)).sum();
    let mut longest = rest;
    if packets > 1 {
        let (mut first, mut slowest) = (0, 0);
        longest = 0;
        for leg in path {
            let own = time(full, leg);
            first += own;
            slowest = own.max(slowest);
            longest = longest.max(first + (packets as u128 - 2) * slowest + rest);
            rest -= time(last, leg);
        }
    }
    Time(u64::try_from(latency + longest).unwrap_or(u64::MAX))
}

/// How long one packet of so many bytes takes in an idle network.
pub fn alone(clock: Clock, path: &[Leg], bytes: u64) -> Time {
    Time(path.iter().map(|leg| clock.duration(bytes, leg.rate).0 + leg.latency.0).sum())
}

/// How long one full packet takes to the receiver, and its ACK back, in an idle network.
pub fn round_trip(clock: Clock, forth: &[Leg], back: &[Leg], framing: Framing, ack: u64) -> Time {
    alone(clock, forth, framing.payload + framing.header) + alone(clock, back, ack)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FRAMING: Framing = Framing { payload: 1000, header: 62 };

    /// Packet by packet: each is sent when it has arrived and the one before it has been sent.
    fn packet_by_packet(path: &[Leg], framing: Framing, size: u64) -> Time {
        let mut free = vec![0u64; path.len()];
        let (mut left, mut end) = (size, 0);
        while left > 0 {
            let payload = left.min(framing.payload);
            left -= payload;
            let mut here = 0;
            for (leg, free) in path.iter().zip(&mut free) {
                *free = here.max(*free) + Clock::Exact.duration(payload + framing.header, leg.rate).0;
                here = *free + leg.latency.0;
            }
            end = here;
        }
        Time(end)
    }

    proptest! {
        #[test]
        fn the_formula_agrees_with_going_packet_by_packet(
            legs in prop::collection::vec((1u64..400, 0u64..3_000_000), 1..7),
            payload in 1u64..1500,
            header in 1u64..200,
            size in 1u64..40_000,
        ) {
            let path: Vec<_> =
                legs.iter().map(|&(gbps, ps)| Leg { rate: Rate::from_gbps(gbps), latency: Time(ps) }).collect();
            let framing = Framing { payload, header };
            // A small last packet after large ones is the interesting case: sizes just above a multiple.
            for size in [size, size / payload * payload + 1, size.div_ceil(payload) * payload] {
                let expected = packet_by_packet(&path, framing, size);
                prop_assert_eq!(ideal_time(Clock::Exact, &path, framing, size), expected);
            }
        }
    }

    #[test]
    fn one_packet_takes_each_link_in_turn() {
        let leg = Leg { rate: Rate::from_gbps(100), latency: Time::from_us(1) };
        let expected = Time::from_us(2) + Time(2 * 84_960);
        assert_eq!(ideal_time(Clock::Exact, &[leg, leg], FRAMING, 1000), expected);
        let back = Time::from_us(2) + Time(2 * 5_280);
        assert_eq!(round_trip(Clock::Exact, &[leg, leg], &[leg, leg], FRAMING, 66), expected + back);
    }

    #[test]
    fn the_largest_message_on_the_slowest_link_does_not_overflow() {
        let leg = Leg { rate: Rate(1), latency: Time::from_us(1) };
        assert_eq!(ideal_time(Clock::Exact, &[leg], FRAMING, u64::MAX), Time::MAX);
    }
}
