//! How many hosts, or flows, send to a host now, as far as the host itself can see.
//!
//! A flow counts from its first packet to its last. One that says nothing for a while leaves the count, and is back with
//! its next packet. Every port of a host counts for itself: its link is what is shared. Where senders are counted, the flows of one
//! divide its share.

use crate::axes::congestion_control::{Counted, Counting};
use crate::run::shard::{PerFlow, Shard};
use crate::setup::{FlowSpec, Setup};
use engine::Time;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// The counts of all ports of hosts.
pub(crate) struct Census {
    /// What is counted, and how long a flow may say nothing.
    rule: Counting,
    /// By NIC.
    counts: Vec<Count>,
    /// By flow.
    flows: PerFlow<Heard>,
}

/// What is known of a flow.
#[derive(Clone, Copy)]
struct Heard {
    /// The host that sends it.
    src: u32,
    /// The NIC where it counts, or none.
    nic: u32,
    /// When it was last heard there.
    last: Time,
}

#[derive(Clone, Default)]
struct Count {
    active: u32,
    /// Flows that count, by the host that sends them; empty where flows are counted.
    senders: BTreeMap<u32, u32>,
    /// Flows by when they were heard, or earlier. Entries of flows that are gone are skipped.
    heard: BinaryHeap<Reverse<(Time, u32)>>,
    /// The longest time of a packet on the link.
    packet: Time,
}

const NO_NIC: u32 = u32::MAX;

impl Count {
    fn join(&mut self, src: u32, by: Counted) {
        self.active += 1;
        if by == Counted::Senders {
            *self.senders.entry(src).or_default() += 1;
        }
    }

    fn leave(&mut self, src: u32) {
        self.active -= 1;
        if let Some(flows) = self.senders.get_mut(&src) {
            *flows -= 1;
            if *flows == 0 {
                self.senders.remove(&src);
            }
        }
    }

    /// Into how many parts the link is divided to give a flow of that host its own.
    fn parts(&self, src: u32, by: Counted) -> u32 {
        match by {
            Counted::Flows => self.active,
            Counted::Senders => self.senders.len() as u32 * self.senders.get(&src).copied().unwrap_or(1),
        }
    }
}

impl Census {
    pub(crate) fn new(rule: Counting, nics: usize, setup: &Setup, shard: &Option<Shard>) -> Census {
        let unheard = |flow: &FlowSpec| Heard { src: flow.src.0, nic: NO_NIC, last: Time::ZERO };
        let flows = PerFlow::new(setup, shard, |flow| flow.dst.0, unheard);
        Census { rule, counts: vec![Count::default(); nics], flows }
    }

    /// A packet of a flow that takes so long on the link came in at `nic`. Gives the number of parts into which the link is divided,
    /// one of which is the flow's.
    pub(crate) fn hear(&mut self, flow: u32, nic: u32, now: Time, packet: Time) -> u32 {
        let Heard { src, nic: at, .. } = self.flows[flow as usize];
        if at != nic {
            if at != NO_NIC {
                self.counts[at as usize].leave(src);
            }
            let count = &mut self.counts[nic as usize];
            count.join(src, self.rule.of);
            count.heard.push(Reverse((now, flow)));
        }
        self.flows[flow as usize] = Heard { src, nic, last: now };
        let count = &mut self.counts[nic as usize];
        count.packet = count.packet.max(packet);
        self.sweep(nic, now);
        self.counts[nic as usize].parts(src, self.rule.of)
    }

    /// A flow is over. Gives the number of parts for those that are left.
    pub(crate) fn leave(&mut self, flow: u32, nic: u32, now: Time) -> u32 {
        let Heard { src, nic: at, .. } = self.flows[flow as usize];
        if at != NO_NIC {
            self.counts[at as usize].leave(src);
            self.flows[flow as usize].nic = NO_NIC;
        }
        self.sweep(nic, now);
        self.counts[nic as usize].parts(src, self.rule.of)
    }

    /// Flows that were silent for too long leave. A share of the link may be so small that a flow sends only now and then:
    /// two of its packets' times are never too long.
    fn sweep(&mut self, nic: u32, now: Time) {
        let count = &mut self.counts[nic as usize];
        while let Some(&Reverse((heard, flow))) = count.heard.peek() {
            let known = &mut self.flows[flow as usize];
            let parts = count.parts(known.src, self.rule.of);
            let silence = self.rule.stall.max(Time(2 * parts as u64 * count.packet.0));
            if heard + silence > now {
                break;
            }
            count.heard.pop();
            if known.nic != nic {
                continue;
            }
            if known.last == heard {
                count.leave(known.src);
                known.nic = NO_NIC;
            } else {
                count.heard.push(Reverse((known.last, flow)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Graph;
    use proptest::prelude::*;

    fn census(nics: usize, flows: u16) -> Census {
        let flows = (0..flows).map(|flow| FlowSpec::plain(flow, 0, 1, 1, Time::ZERO)).collect();
        let rule = Counting { of: Counted::Flows, stall: STALL };
        Census::new(rule, nics, &Setup::plain(Graph::default(), flows), &None)
    }

    /// A census of senders, of flows by the hosts that send them.
    fn of_senders(from: &[u32]) -> Census {
        let flows = (0..).zip(from).map(|(flow, &src)| FlowSpec::plain(flow, src, 9, 1, Time::ZERO)).collect();
        let rule = Counting { of: Counted::Senders, stall: STALL };
        Census::new(rule, 1, &Setup::plain(Graph::default(), flows), &None)
    }

    #[test]
    fn senders_count_once_and_their_flows_divide_the_share_of_one() {
        let mut census = of_senders(&[0, 0, 1, 0]);
        let (us, short) = (Time::from_us, Time::from_ns(80));
        assert_eq!(census.hear(0, 0, us(1), short), 1);
        assert_eq!(census.hear(1, 0, us(2), short), 2, "a second flow of the only sender has half of its share");
        assert_eq!(census.hear(2, 0, us(3), short), 2, "another sender has half of the link");
        assert_eq!(census.hear(0, 0, us(4), short), 4, "two flows divide the other half");
        assert_eq!(census.hear(3, 0, us(5), short), 6, "and three");
        assert_eq!(census.hear(2, 0, us(5), short), 2, "which is nothing to the other sender");
        census.leave(0, 0, us(6));
        census.leave(3, 0, us(6));
        assert_eq!(census.hear(1, 0, us(7), short), 2);
        census.leave(1, 0, us(8));
        assert_eq!(census.hear(2, 0, us(9), short), 1, "a sender counts until its last flow is over");
        // A flow that stalls leaves the count of its sender.
        census.hear(0, 0, us(9), short);
        assert_eq!(census.hear(2, 0, us(20), short), 1);
    }

    const STALL: Time = Time::from_us(10);

    #[test]
    fn a_flow_counts_from_its_first_packet_to_its_last_and_not_while_it_stalls() {
        let mut census = census(2, 4);
        let us = Time::from_us;
        let short = Time::from_ns(80);
        assert_eq!(census.hear(0, 0, us(1), short), 1);
        assert_eq!(census.hear(1, 0, us(2), short), 2);
        assert_eq!(census.hear(1, 0, us(8), short), 2);
        assert_eq!(census.hear(2, 1, us(8), short), 1, "another port counts for itself");
        // Flow 0 was last heard at 1 us.
        assert_eq!(census.hear(1, 0, us(11), short), 1);
        assert_eq!(census.hear(0, 0, us(12), short), 2, "it is back with its next packet");
        assert_eq!(census.leave(0, 0, us(13)), 1);
        assert_eq!(census.leave(0, 0, us(13)), 1, "a packet after its last does not count it out again");
        // A flow that changes ports is counted where it is.
        assert_eq!(census.hear(1, 1, us(14), short), 2);
        assert_eq!(census.hear(3, 0, us(14), short), 1);
    }

    #[test]
    fn a_flow_that_keeps_to_a_small_share_does_not_stall() {
        let mut census = census(1, 100);
        let packet = Time::from_us(1);
        (0..100).for_each(|flow| _ = census.hear(flow, 0, Time::from_us(flow as u64), packet));
        // Each is heard every hundred packets.
        assert_eq!(census.hear(0, 0, Time::from_us(100), packet), 100);
    }

    proptest! {
        #[test]
        fn the_count_is_that_of_a_list(events in prop::collection::vec((0u32..6, 0u32..2, any::<bool>(), 0u64..4_000), 1..200)) {
            let mut census = census(2, 6);
            let mut heard: Vec<Option<(u32, u64)>> = vec![None; 6];
            let mut now = 0;
            for (flow, nic, over, step) in events {
                now += step;
                // Packets that take no time: only the limit counts.
                let count = match over {
                    true => census.leave(flow, nic, Time::from_ns(now)),
                    false => census.hear(flow, nic, Time::from_ns(now), Time::ZERO),
                };
                heard[flow as usize] = (!over).then_some((nic, now));
                let alive = |h: &&(u32, u64)| h.0 == nic && now < h.1 + 10_000;
                prop_assert_eq!(count as usize, heard.iter().flatten().filter(alive).count());
            }
        }
    }
}
