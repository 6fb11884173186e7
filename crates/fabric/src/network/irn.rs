//! Selective repeat as IRN has it (Mittal et al., SIGCOMM 2018): receivers take packets in any order and name every one
//! that came too early; senders send again only what is missing.
//!
//! A sender's `next` is what it sends next, as everywhere; while it repairs a loss that is a missing packet, and `high` is
//! where it goes on afterwards. What go-back-N has no use for is kept here, in runs with selective repeat only.

use super::part::{Part, PerFlow};
use super::{Core, Receiver};
use crate::packet::{Kind, Packet, PacketId, flag};
use crate::scheme::Counter;
use crate::setup::{AckPolicy, FlowSpec, IrnSetup, Setup};
use engine::Time;
use std::collections::VecDeque;

/// Numbers of packets of one flow, from a moving first one on.
#[derive(Clone, Debug, Default)]
struct Packets {
    /// Words that have been passed.
    gone: u64,
    words: VecDeque<u64>,
    count: u64,
}

impl Packets {
    /// Adds a number that has not been passed; false if it is there already.
    fn insert(&mut self, number: u64) -> bool {
        let (word, bit) = ((number / 64 - self.gone) as usize, 1 << (number % 64));
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        self.count += new as u64;
        new
    }

    /// Forgets all numbers before `number`.
    fn pass(&mut self, number: u64) {
        while self.gone < number / 64 {
            let Some(word) = self.words.pop_front() else {
                self.gone = number / 64;
                return;
            };
            self.count -= word.count_ones() as u64;
            self.gone += 1;
        }
        if let Some(word) = self.words.front_mut() {
            let left = *word & u64::MAX << (number % 64);
            self.count -= (*word ^ left).count_ones() as u64;
            *word = left;
        }
    }

    /// The first number from `number` on that is not there.
    fn gap(&self, number: u64) -> u64 {
        let mut word = (number / 64).saturating_sub(self.gone) as usize;
        let mut below = !(u64::MAX << (number % 64));
        while let Some(&bits) = self.words.get(word) {
            let missing = !(bits | below);
            if missing != 0 {
                return (self.gone + word as u64) * 64 + missing.trailing_zeros() as u64;
            }
            below = 0;
            word += 1;
        }
        number.max((self.gone + word as u64) * 64)
    }
}

/// What a receiver knows of a flow beyond what came in order.
#[derive(Clone, Debug)]
struct Arrived {
    packets: Packets,
    /// Bytes of message; `u64::MAX` before the last packet has come.
    end: u64,
}

/// What a sender knows of a flow beyond what is acknowledged in order.
#[derive(Clone, Debug, Default)]
struct Repair {
    /// Packets that arrived ahead of missing ones.
    sacked: Packets,
    /// It repairs until everything before this byte is acknowledged.
    until: u64,
    /// Packets before this byte that are not acknowledged are lost.
    lost: u64,
    /// What was missing before this byte was sent again.
    resent: u64,
    /// The last news of the flow, or its first packet on the way after none.
    since: Time,
    /// The last timeout, if it began the repair that is under way.
    timeout: Option<Time>,
}

/// The side tables of a run with selective repeat.
pub(super) struct State {
    arrived: PerFlow<Arrived>,
    repair: PerFlow<Repair>,
    nacks: u64,
    duplicates: u64,
    recoveries: u64,
    timeouts_low: u64,
    timeouts_high: u64,
}

impl State {
    pub(super) fn new(setup: &Setup, part: &Option<Part>) -> State {
        let arrived = |_: &FlowSpec| Arrived { packets: Packets::default(), end: u64::MAX };
        State {
            arrived: PerFlow::new(setup, part, |flow| flow.dst, arrived),
            repair: PerFlow::new(setup, part, |flow| flow.src, |_| Repair::default()),
            nacks: 0,
            duplicates: 0,
            recoveries: 0,
            timeouts_low: 0,
            timeouts_high: 0,
        }
    }

    /// Takes over the flows of another part, and adds what it counted.
    pub(super) fn absorb(&mut self, other: &State) {
        self.arrived.absorb(&other.arrived);
        self.repair.absorb(&other.repair);
        self.nacks += other.nacks;
        self.duplicates += other.duplicates;
        self.recoveries += other.recoveries;
        self.timeouts_low += other.timeouts_low;
        self.timeouts_high += other.timeouts_high;
    }

    pub(super) fn counters(&self) -> Vec<Counter> {
        vec![
            ("irn_nacks", self.nacks),
            ("irn_duplicates", self.duplicates),
            ("irn_recoveries", self.recoveries),
            ("irn_timeouts_low", self.timeouts_low),
            ("irn_timeouts_high", self.timeouts_high),
        ]
    }
}

impl Core {
    /// A data packet has reached its receiver.
    pub(super) fn receive_any(&mut self, port: u32, id: PacketId) {
        let packet = self.pool[id];
        let (flow, full) = (packet.flow as usize, self.setup.nic.payload as u64);
        let payload = (packet.size - self.setup.nic.header) as u64;
        self.counts.delivered.0 += 1;
        self.counts.delivered.1 += payload;
        let Some(irn) = &mut self.irn else { return };
        let (r, here): (&mut Receiver, _) = (&mut self.receivers[flow], &mut irn.arrived[flow]);
        let number = packet.seq / full;
        let fresh = packet.seq >= r.expected && here.packets.insert(number);
        irn.duplicates += !fresh as u64;
        if packet.flags & flag::LAST != 0 {
            here.end = packet.seq + payload;
        }
        let mut ended = false;
        let answer = if packet.seq > r.expected {
            self.counts.out_of_order += fresh as u64;
            irn.nacks += 1;
            Some(Kind::Nack)
        } else if fresh {
            let next = here.packets.gap(number + 1);
            here.packets.pass(next);
            r.expected = (next * full).min(here.end);
            r.unacked += 1;
            ended = r.expected == here.end;
            if ended {
                r.finished = self.now;
                here.packets = Packets::default();
            }
            let every = if let AckPolicy::Every(every) = self.setup.nic.acks { every } else { 1 };
            (ended || r.unacked >= every).then_some(Kind::Ack)
        } else {
            Some(Kind::Ack)
        };
        if answer.is_some() {
            r.unacked = 0;
        }
        let (expected, over) = (r.expected, r.finished != Time::MAX);
        if self.census.is_some() {
            self.count_flow(port, id, over);
        }
        if ended {
            self.ended_at(packet.flow, packet.dst);
        }
        self.pool.answer(id).sack = packet.seq;
        self.answer(port, id, answer, expected);
    }

    /// How long a flow waits for news now: shortly where too few packets are on the way to tell of a loss.
    fn patience_of(&self, flow: u32, irn: &IrnSetup) -> (Time, bool) {
        let (s, full) = (&self.senders[flow as usize], self.setup.nic.payload as u64);
        let sacked = self.irn.as_ref().map_or(0, |state| state.repair[flow as usize].sacked.count);
        let few = (s.high - s.acked).div_ceil(full) - sacked < irn.few as u64;
        (if few { irn.low } else { irn.high }, few)
    }

    /// Chooses what a flow sends next: what is lost first, then what is new.
    fn aim(&mut self, flow: u32) {
        let full = self.setup.nic.payload as u64;
        let (Some(irn), s) = (&self.irn, &mut self.senders[flow as usize]) else { return };
        let f = &irn.repair[flow as usize];
        s.next = s.high;
        if s.acked < f.until {
            let missing = f.sacked.gap(f.resent.max(s.acked).div_ceil(full)) * full;
            if missing < f.lost {
                s.next = missing;
            }
        }
    }

    /// A packet of a flow was sent, as its `next` shows; `again` if not for the first time.
    pub(super) fn sent_any(&mut self, flow: u32, again: bool, setup: &IrnSetup) {
        let Some(irn) = &mut self.irn else { return };
        let (s, f) = (&mut self.senders[flow as usize], &mut irn.repair[flow as usize]);
        let repairing = s.acked < f.until;
        if again {
            f.resent = s.next;
        }
        if s.expires == Time::MAX {
            f.since = self.now;
            let (wait, _) = self.patience_of(flow, setup);
            self.senders[flow as usize].expires = self.now + wait;
            self.arm(flow);
        }
        if repairing {
            self.aim(flow);
        }
    }

    /// What an ACK or NACK says of what has arrived.
    pub(super) fn acked_any(&mut self, id: PacketId, packet: &Packet, setup: &IrnSetup) {
        let (flow, full) = (packet.flow, self.setup.nic.payload as u64);
        let sack = self.pool.answer(id).sack;
        let Some(irn) = &mut self.irn else { return };
        let (s, f) = (&mut self.senders[flow as usize], &mut irn.repair[flow as usize]);
        let mut news = false;
        if packet.seq > s.acked {
            s.acked = packet.seq;
            f.sacked.pass(packet.seq.div_ceil(full));
            news = true;
            // What was sent after the timeout is there, and what was sent before is not.
            if f.timeout.is_some_and(|timeout| packet.stamp >= timeout) {
                f.lost = f.lost.max(f.until);
            }
        }
        // One that overtook or was overtaken by a later ACK tells nothing new.
        if packet.kind == Kind::Nack && sack > s.acked {
            news |= f.sacked.insert(sack / full);
            if s.acked >= f.until {
                irn.recoveries += 1;
                (f.until, f.lost, f.resent, f.timeout) = (s.high, s.acked + 1, s.acked, None);
            }
            f.lost = f.lost.max(sack);
        }
        if s.done() {
            *f = Repair::default();
            s.next = s.high;
            return;
        }
        if news {
            f.since = self.now;
            let (wait, _) = self.patience_of(flow, setup);
            let s = &mut self.senders[flow as usize];
            s.expires = if s.high > s.acked { self.now + wait } else { Time::MAX };
        }
        self.aim(flow);
        self.arm(flow);
    }

    /// A flow may have waited too long for news.
    pub(super) fn expired_any(&mut self, flow: u32, setup: &IrnSetup) {
        let now = self.now;
        let (wait, few) = self.patience_of(flow, setup);
        let Some(irn) = &mut self.irn else { return };
        let (s, f) = (&mut self.senders[flow as usize], &mut irn.repair[flow as usize]);
        // There has been news since the alarm was set, or more packets are on the way now, which have longer.
        if f.since + wait > now {
            s.expires = f.since + wait;
            return;
        }
        self.counts.timeouts += 1;
        *(if few { &mut irn.timeouts_low } else { &mut irn.timeouts_high }) += 1;
        irn.recoveries += (s.acked >= f.until) as u64;
        (f.until, f.lost, f.resent, f.timeout, f.since) = (s.high, s.acked + 1, s.acked, Some(now), now);
        s.expires = now + wait;
        self.aim(flow);
        self.note(flow);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn numbers_of_packets_are_kept_as_a_set_would(
            steps in prop::collection::vec((0u64..300, prop::bool::weighted(0.1)), 1..200),
        ) {
            let (mut packets, mut set, mut first) = (Packets::default(), BTreeSet::new(), 0);
            for (number, pass) in steps {
                if pass {
                    first = first.max(number);
                    packets.pass(first);
                    set.retain(|&n| n >= first);
                } else if number >= first {
                    prop_assert_eq!(packets.insert(number), set.insert(number));
                }
                prop_assert_eq!(packets.count, set.len() as u64);
                let from = number.max(first);
                prop_assert_eq!(packets.gap(from), (from..).find(|n| !set.contains(n)).unwrap_or(0));
            }
        }
    }
}
