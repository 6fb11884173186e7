//! What leaves a switch by one port in one class: two queues, the flows that are kept apart, and the markings that keep
//! order between the queues.

use engine::Time;
use fabric::id::{FlowId, PortId};
use std::collections::VecDeque;

/// The queue of flows that are not congested (nCFQ), counted from the first of its lane; also their ingress group.
pub const PLAIN: usize = 0;
/// The queue of congested flows (CFQ).
pub const CONGESTED: usize = 1;

/// No lane downstream asks for a flow to be kept apart.
pub const NO_LANE: u32 = u32::MAX;

/// Who made an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Creation {
    /// This switch, whose queue was too long.
    pub local: bool,
    /// The neighbour downstream, by a message.
    pub remote: bool,
}

/// A line of the CFT: a flow that is kept apart at this lane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry {
    /// The flow; it stands for the addresses and ports that hardware would compare.
    pub flow: FlowId,
    /// The lane downstream that asks for it, by the downstream neighbour's own number, or [`NO_LANE`].
    pub asked: u32,
    /// When the upstream neighbour was last notified of it.
    pub notified: Option<Time>,
    /// How often that was.
    pub messages: u32,
    /// Who made it.
    pub creation: Creation,
}

/// Why a pair of markings was put in the queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The queue of congested flows was allocated.
    Allocated,
    /// A flow joined others in it.
    Joined,
    /// It was deallocated.
    Deallocated,
}

/// A marking and its twin, each as the number of packets that join its queue before it.
#[derive(Clone, Copy, Debug)]
struct Marking {
    at: [u64; 2],
    cause: Cause,
}

impl Marking {
    /// The queue that must not go on before its twin is reached in the other.
    fn waits(&self) -> usize {
        match self.cause {
            Cause::Allocated | Cause::Joined => CONGESTED,
            Cause::Deallocated => PLAIN,
        }
    }
}

/// Longer than any time between two notifications of a flow in tests.
#[cfg(test)]
const NOTICE: Time = Time::from_us(10);

/// One lane.
///
/// A marking needs no packet: it is known by how many packets of its queue must leave before it. Allocation and
/// deallocation follow the paper to the letter: a marking at the head of a queue blocks it until its twin is at the head
/// of the other. For each of the two it is enough to look at the queue that flows move *to*: the other has nothing behind
/// its marking but what a later marking holds back as well. [`Cause::Joined`] is ours: the paper does not say how a
/// flow joins a queue that has been allocated. The same pair of markings keeps its order, but only the queue it joins
/// waits; otherwise a paused queue of congested flows would block all others.
#[derive(Clone, Debug, Default)]
pub struct Lane {
    /// The queue of congested flows is allocated.
    pub allocated: bool,
    /// What the downstream neighbour has paused.
    pub stopped: [bool; 2],
    /// Packets that ever joined and ever left each queue.
    joined: [u64; 2],
    left: [u64; 2],
    markings: VecDeque<Marking>,
    /// How many of them are not [`Cause::Joined`].
    syncs: u32,
    /// Flows that are kept apart, by number.
    flows: Vec<Entry>,
    /// How many of them the downstream neighbour asks for.
    pub asked: u32,
    /// Ingress ports whose neighbours were notified of some of them.
    pub notified: Vec<PortId>,
    /// Not deallocated before.
    pub until: Time,
    /// A look at that time is on the event queue.
    pub waiting: bool,
    /// A pause of one queue stops the other as well.
    pub both: bool,
}

impl Lane {
    /// Where a flow's entry is, or where it would be.
    #[inline]
    pub fn find(&self, flow: FlowId) -> Result<usize, usize> {
        self.flows.binary_search_by_key(&flow, |entry| entry.flow)
    }

    /// An entry.
    #[inline]
    pub fn entry(&mut self, place: usize) -> &mut Entry {
        &mut self.flows[place]
    }

    /// All entries.
    pub fn entries(&mut self) -> &mut [Entry] {
        &mut self.flows
    }

    /// Keeps a flow apart that is not yet, from its next packet on.
    pub fn insert(&mut self, place: usize, flow: FlowId) {
        self.flows
            .insert(place, Entry { flow, asked: NO_LANE, notified: None, messages: 0, creation: Creation::default() });
        let cause = if self.allocated { Cause::Joined } else { Cause::Allocated };
        self.allocated = true;
        self.mark(cause);
    }

    /// Keeps nothing apart any more, from the next packet on. Gives the number of entries that are free.
    pub fn deallocate(&mut self) -> u32 {
        let entries = self.flows.len() as u32;
        self.flows.clear();
        self.allocated = false;
        self.asked = 0;
        self.mark(Cause::Deallocated);
        entries
    }

    /// Forgets flows that only this switch keeps apart. Only while the queue of congested flows is empty: then the next packet
    /// of such a flow overtakes none. Gives the number of entries that are free.
    pub fn forget_local(&mut self) -> u32 {
        let before = self.flows.len();
        self.flows.retain(|entry| entry.creation.remote);
        (before - self.flows.len()) as u32
    }

    /// Whether the neighbour downstream made any of the entries.
    pub fn has_remote(&self) -> bool {
        self.flows.iter().any(|entry| entry.creation.remote)
    }

    /// Puts a marking in both queues.
    fn mark(&mut self, cause: Cause) {
        self.markings.push_back(Marking { at: self.joined, cause });
        self.syncs += (cause != Cause::Joined) as u32;
        self.pass();
    }

    /// Forgets markings that hold nothing back any more. True if there were any.
    fn pass(&mut self) -> bool {
        let before = self.markings.len();
        while let Some(first) = self.markings.front() {
            let other = 1 - first.waits();
            if self.left[other] < first.at[other] {
                break;
            }
            self.syncs -= (first.cause != Cause::Joined) as u32;
            self.markings.pop_front();
        }
        self.markings.len() != before
    }

    /// A packet joined a queue.
    #[inline]
    pub fn join(&mut self, queue: usize) {
        self.joined[queue] += 1;
    }

    /// A packet left a queue. True if a marking blocked something, or does now.
    #[inline]
    pub fn leave(&mut self, queue: usize) -> bool {
        self.left[queue] += 1;
        !self.markings.is_empty() && {
            self.pass();
            true
        }
    }

    /// Whether a marking at its head blocks a queue.
    pub fn blocked(&self, queue: usize) -> bool {
        self.markings.front().is_some_and(|first| first.waits() == queue && self.left[queue] == first.at[queue])
    }

    /// Whether markings of an allocation or deallocation are in the queues.
    pub fn in_sync(&self) -> bool {
        self.syncs > 0
    }

    /// What decides what it does next. Markings count from the packets that have left; `left` says how far off an instant is.
    #[cfg(test)]
    pub fn outlook(&self, left: impl Fn(Time) -> u64) -> String {
        let queued = [PLAIN, CONGESTED].map(|queue| self.joined[queue] - self.left[queue]);
        let ahead = |marking: &Marking| {
            let at = [PLAIN, CONGESTED].map(|queue| marking.at[queue] as i64 - self.left[queue] as i64);
            (at, marking.cause)
        };
        let entries = self.flows.iter().map(|entry| {
            let Entry { flow, asked, notified, messages, creation } = *entry;
            // Only how long ago it was counts: as if it were to come.
            (flow, asked, notified.map(|at| left(at + NOTICE)), messages, creation)
        });
        let (markings, entries): (Vec<_>, Vec<_>) = (self.markings.iter().map(ahead).collect(), entries.collect());
        let flags = (self.allocated, self.stopped, self.waiting, self.both);
        format!("{flags:?} {queued:?} {markings:?} {entries:?} {} {:?} {}", self.asked, self.notified, left(self.until))
    }

    /// How many markings are in each queue.
    pub fn markings(&self) -> usize {
        self.markings.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What may happen to a lane.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        /// A packet of a flow comes.
        Packet(u32),
        /// A flow is to be kept apart.
        Apart(u32),
        Deallocate,
        /// A queue may send one packet, unless it is stopped or blocked.
        Send(usize),
        Stop(usize, bool),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => (0u32..4).prop_map(Step::Packet),
            2 => (0u32..4).prop_map(Step::Apart),
            1 => Just(Step::Deallocate),
            6 => (0usize..2).prop_map(Step::Send),
            1 => (0usize..2, any::<bool>()).prop_map(|(queue, stop)| Step::Stop(queue, stop)),
        ]
    }

    /// A lane with its packets: flow and number.
    #[derive(Default)]
    struct Model {
        lane: Lane,
        queues: [VecDeque<(u32, u32)>; 2],
        sent: [u32; 4],
        numbers: [u32; 4],
    }

    impl Model {
        fn go(&mut self, step: Step) -> Result<(), TestCaseError> {
            match step {
                Step::Packet(flow) => {
                    let queue = if self.lane.find(FlowId(flow)).is_ok() { CONGESTED } else { PLAIN };
                    self.lane.join(queue);
                    self.queues[queue].push_back((flow, self.numbers[flow as usize]));
                    self.numbers[flow as usize] += 1;
                }
                Step::Apart(flow) => {
                    if let Err(place) = self.lane.find(FlowId(flow)) {
                        self.lane.insert(place, FlowId(flow));
                    }
                }
                Step::Deallocate if self.lane.allocated => _ = self.lane.deallocate(),
                Step::Deallocate => {}
                Step::Stop(queue, stop) => self.lane.stopped[queue] = stop,
                Step::Send(queue) => {
                    if !self.lane.stopped[queue]
                        && !self.lane.blocked(queue)
                        && let Some((flow, number)) = self.queues[queue].pop_front()
                    {
                        prop_assert_eq!(self.sent[flow as usize], number, "flow {} out of order", flow);
                        self.sent[flow as usize] += 1;
                        self.lane.leave(queue);
                    }
                }
            }
            Ok(())
        }
    }

    proptest! {
        #[test]
        fn no_packet_overtakes_another_of_its_flow_and_no_marking_stays_for_ever(
            steps in prop::collection::vec(step(), 1..400),
        ) {
            let mut model = Model::default();
            for step in steps {
                model.go(step)?;
                prop_assert!(!(model.lane.blocked(PLAIN) && model.lane.blocked(CONGESTED)), "each waits for the other");
            }
            // Once nothing is stopped any more, everything leaves.
            model.lane.stopped = [false; 2];
            for _ in 0..800 {
                model.go(Step::Send(PLAIN))?;
                model.go(Step::Send(CONGESTED))?;
            }
            prop_assert_eq!(model.sent, model.numbers);
            prop_assert_eq!((model.lane.markings(), model.lane.in_sync()), (0, false));
        }
    }

    #[test]
    fn a_marking_blocks_the_queue_that_flows_move_to() {
        let mut lane = Lane::default();
        (0..3).for_each(|_| lane.join(PLAIN));
        lane.insert(0, FlowId(7));
        assert!(lane.allocated && lane.in_sync() && lane.blocked(CONGESTED) && !lane.blocked(PLAIN));
        lane.join(CONGESTED);
        (0..2).for_each(|_| assert!(lane.leave(PLAIN)));
        assert!(lane.blocked(CONGESTED));
        assert!(lane.leave(PLAIN));
        assert!(!lane.blocked(CONGESTED) && !lane.in_sync());
        // Another joins while the first queue is empty: nothing to wait for.
        lane.insert(1, FlowId(9));
        assert_eq!(lane.markings(), 0);
        // What comes after the deallocation waits for the one packet.
        assert_eq!(lane.deallocate(), 2);
        lane.join(PLAIN);
        assert!(lane.blocked(PLAIN) && !lane.blocked(CONGESTED));
        lane.leave(CONGESTED);
        assert!(!lane.blocked(PLAIN));
    }

    #[test]
    fn a_paused_queue_of_congested_flows_does_not_block_the_others_when_one_more_joins() {
        let mut lane = Lane::default();
        lane.insert(0, FlowId(1));
        (0..5).for_each(|_| lane.join(CONGESTED));
        lane.join(PLAIN);
        lane.insert(1, FlowId(2));
        assert!(!lane.blocked(PLAIN) && !lane.in_sync());
        lane.leave(PLAIN);
        lane.join(PLAIN);
        assert!(!lane.blocked(PLAIN));
    }
}
