//! How many flows send to a host now, as far as the host itself can see.
//!
//! A flow counts from its first packet to its last. One that says nothing for a while leaves the count, and is back with
//! its next packet. Every port of a host counts for itself: its link is what is shared.

use crate::run::shard::{PerFlow, Shard};
use crate::setup::Setup;
use engine::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The counts of all ports of hosts.
pub(crate) struct Census {
    /// How long a flow may say nothing.
    stall: Time,
    /// By NIC.
    counts: Vec<Count>,
    /// By flow: the NIC where it counts, or none, and when it was last heard there.
    flows: PerFlow<(u32, Time)>,
}

#[derive(Clone, Default)]
struct Count {
    active: u32,
    /// Flows by when they were heard, or earlier. Entries of flows that are gone are skipped.
    heard: BinaryHeap<Reverse<(Time, u32)>>,
    /// The longest time of a packet on the link.
    packet: Time,
}

const NO_NIC: u32 = u32::MAX;

impl Census {
    pub(crate) fn new(stall: Time, nics: usize, setup: &Setup, shard: &Option<Shard>) -> Census {
        let flows = PerFlow::new(setup, shard, |flow| flow.dst.0, |_| (NO_NIC, Time::ZERO));
        Census { stall, counts: vec![Count::default(); nics], flows }
    }

    /// A packet of a flow that takes so long on the link came in at `nic`. Gives how many flows send to it now.
    pub(crate) fn hear(&mut self, flow: u32, nic: u32, now: Time, packet: Time) -> u32 {
        let (at, _) = self.flows[flow as usize];
        if at != nic {
            if at != NO_NIC {
                self.counts[at as usize].active -= 1;
            }
            let count = &mut self.counts[nic as usize];
            count.active += 1;
            count.heard.push(Reverse((now, flow)));
        }
        self.flows[flow as usize] = (nic, now);
        let count = &mut self.counts[nic as usize];
        count.packet = count.packet.max(packet);
        self.sweep(nic, now)
    }

    /// A flow is over. Gives how many are left.
    pub(crate) fn leave(&mut self, flow: u32, nic: u32, now: Time) -> u32 {
        let (at, _) = self.flows[flow as usize];
        if at != NO_NIC {
            self.counts[at as usize].active -= 1;
            self.flows[flow as usize].0 = NO_NIC;
        }
        self.sweep(nic, now)
    }

    /// Flows that were silent for too long leave. A share of the link may be so small that a flow sends only now and then:
    /// two of its packets' times are never too long.
    fn sweep(&mut self, nic: u32, now: Time) -> u32 {
        let count = &mut self.counts[nic as usize];
        while let Some(&Reverse((heard, flow))) = count.heard.peek() {
            let silence = self.stall.max(Time(2 * count.active as u64 * count.packet.0));
            if heard + silence > now {
                break;
            }
            count.heard.pop();
            match self.flows[flow as usize] {
                (at, last) if at == nic && last == heard => {
                    count.active -= 1;
                    self.flows[flow as usize].0 = NO_NIC;
                }
                (at, last) if at == nic => count.heard.push(Reverse((last, flow))),
                _ => {}
            }
        }
        count.active
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::FlowSpec;
    use crate::topology::Graph;
    use proptest::prelude::*;

    fn census(nics: usize, flows: u16) -> Census {
        let flows = (0..flows).map(|flow| FlowSpec::plain(flow, 0, 1, 1, Time::ZERO)).collect();
        Census::new(STALL, nics, &Setup::plain(Graph::default(), flows), &None)
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
