//! A port: a transmitter with its queues, and the packets in flight towards it.

use crate::packet::{Fifo, NONE, PacketId, Pool};
use engine::Time;

/// Packets in flight on a link, in order of arrival. Each packet knows the next and when that arrives, so that handling
/// one touches no other.
#[derive(Clone, Copy, Debug)]
pub struct Flying {
    /// The next to arrive, or [`NONE`].
    head: PacketId,
    /// The last to arrive.
    tail: PacketId,
}

impl Default for Flying {
    fn default() -> Flying {
        Flying { head: NONE, tail: NONE }
    }
}

impl Flying {
    /// Whether nothing is in flight.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head == NONE
    }
    /// The next to arrive, or [`NONE`].
    #[inline]
    pub fn head(&self) -> PacketId {
        self.head
    }
    /// Adds a packet that arrives last. True if it is the only one, and its arrival must be planned.
    #[inline]
    pub fn push(&mut self, pool: &mut Pool, id: PacketId, arrival: Time, rank: u32) -> bool {
        let only = self.head == NONE;
        if only {
            self.head = id;
        } else {
            let before = &mut pool[self.tail];
            (before.next, before.next_arrival, before.next_rank) = (id, arrival, rank);
        }
        self.tail = id;
        only
    }
    /// Takes the packet that has arrived, and says when the next does and with which rank.
    #[inline]
    pub fn pop(&mut self, pool: &Pool) -> Option<(PacketId, Option<(Time, u32)>)> {
        let id = self.head;
        if id == NONE {
            return None;
        }
        if id == self.tail {
            self.head = NONE;
            return Some((id, None));
        }
        let packet = &pool[id];
        self.head = packet.next;
        Some((id, Some((packet.next_arrival, packet.next_rank))))
    }
    /// How many are in flight.
    pub fn count(&self, pool: &Pool) -> u64 {
        let mut id = self.head;
        let mut count = (id != NONE) as u64;
        while id != NONE && id != self.tail {
            id = pool[id].next;
            count += 1;
        }
        count
    }
}

/// Bits of [`Port::detour`].
pub mod detour {
    /// The other end is run by another thread.
    pub const REMOTE: u8 = 1;
    /// It is captured.
    pub const CAPTURED: u8 = 2;
    /// The other end is in another block.
    pub const ABROAD: u8 = 4;
    /// Its link repeats frames.
    pub const REPEATED: u8 = 8;
}

/// One end of a link. What receiving needs fills the first cache line, what sending needs the second.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Port {
    /// Packets in flight towards this port.
    pub flying: Flying,
    /// The node it belongs to.
    pub node: u32,
    /// Number of this port's NIC, for a host.
    pub nic: u32,
    /// Which classes the neighbour has paused, one bit each.
    pub paused: u32,
    /// Whether it belongs to a host.
    pub host: bool,
    /// Whether it belongs to a host that forwards, and so has queues besides its NIC.
    pub relays: bool,
    /// Whether packets may be lost on the link to this port: its link has faults, repeats frames, or has failed before.
    pub faulty: bool,
    /// Whether its node has no other.
    pub alone: bool,
    /// Since when something is paused here.
    pub pause_start: Time,
    /// How long something was paused here, ended pauses only.
    pub pause_total: Time,
    /// Frames for the neighbour: ahead of everything, never paused.
    pub frames: Fifo,
    /// The first port of its node.
    pub base: u32,
    /// Its own number at its node.
    pub local: u16,
    /// Which of the rates in use.
    pub table: u16,
    /// First of its queues.
    pub first_queue: u32,
    /// Marking starts above this many bytes in a queue.
    pub ecn_min: u32,

    /// When the transmission under way ends; in the past, the transmitter is idle.
    pub free_at: Time,
    /// From the end of a transmission here to the packet being handled at the other end.
    pub latency: Time,
    /// Bytes sent so far.
    pub tx_bytes: u64,
    /// Bytes waiting here, in all queues.
    pub queued: u64,
    /// The rank of the end of the transmission among the events of that instant.
    pub end_rank: u32,
    /// The other end of the link.
    pub peer: u32,
    /// The block of nodes at the other end, where that is another.
    pub toward: u32,
    /// Where transmission times at its rate begin; see `Wire`.
    pub times: u32,
    /// Whether the end of the transmission is on the event queue.
    pub wake: bool,
    /// Whether the link works.
    pub up: bool,
    /// Whether frames are waiting.
    pub urgent: bool,
    /// What is to be done with what is sent besides sending it; see [`detour`].
    pub detour: u8,
    /// The queue served last.
    pub last: u16,
    /// Control packets: ahead of all data, never paused.
    pub control: Fifo,
}

const _: () = assert!(std::mem::offset_of!(Port, free_at) == 64 && size_of::<Port>() == 128);

/// A queue of data packets at an egress port.
#[derive(Clone, Copy, Debug, Default)]
pub struct Queue {
    /// The packets.
    pub packets: Fifo,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes this queue may still send in its turn (deficit round robin).
    pub deficit: u32,
}

/// The state of 64 queues of a port, a bit each.
#[derive(Clone, Copy, Debug, Default)]
struct States {
    /// Has packets.
    filled: u64,
    /// Its class is paused.
    paused: u64,
    /// The scheme holds it.
    held: u64,
}

impl States {
    #[inline]
    fn ready(self) -> u64 {
        self.filled & !(self.paused | self.held)
    }
    fn blocked(self) -> u64 {
        self.filled & (self.paused | self.held)
    }
}

/// Which queues of a port have packets and which may not send, as bit sets.
#[derive(Clone, Debug)]
pub struct QueueMasks {
    /// By port and word.
    words: Vec<States>,
    per_port: usize,
}

impl QueueMasks {
    /// For `ports` ports of `queues` queues each.
    pub fn new(ports: usize, queues: usize) -> QueueMasks {
        let per_port = queues.div_ceil(64).max(1);
        QueueMasks { words: vec![States::default(); ports * per_port], per_port }
    }
    #[inline]
    fn set(&mut self, port: u32, queue: u32, which: impl Fn(&mut States) -> &mut u64, on: bool) {
        let word = which(&mut self.words[port as usize * self.per_port + queue as usize / 64]);
        let bit = 1 << (queue % 64);
        *word = if on { *word | bit } else { *word & !bit };
    }
    /// A queue has packets now, or no longer.
    #[inline]
    pub fn set_filled(&mut self, port: u32, queue: u32, filled: bool) {
        self.set(port, queue, |states| &mut states.filled, filled);
    }
    /// The class of a queue is paused now, or no longer.
    #[inline]
    pub fn set_paused(&mut self, port: u32, queue: u32, paused: bool) {
        self.set(port, queue, |states| &mut states.paused, paused);
    }
    /// The scheme holds a queue now, or no longer.
    #[inline]
    pub fn set_held(&mut self, port: u32, queue: u32, held: bool) {
        self.set(port, queue, |states| &mut states.held, held);
    }
    /// Whether a port has no more queues than a word has bits.
    #[inline(always)]
    pub fn one_word(&self) -> bool {
        self.per_port == 1
    }
    /// The queues that have something to send and may, where a port has one word.
    #[inline(always)]
    pub fn ready(&self, port: u32) -> u64 {
        self.words[port as usize].ready()
    }
    #[inline]
    fn of(&self, port: u32) -> &[States] {
        let start = port as usize * self.per_port;
        &self.words[start..start + self.per_port]
    }
    /// Takes over the states of a port.
    pub(crate) fn copy(&mut self, from: &QueueMasks, port: u32) {
        let words = port as usize * self.per_port..(port as usize + 1) * self.per_port;
        self.words[words.clone()].copy_from_slice(&from.words[words]);
    }
    /// Whether some queue has something to send and may.
    #[inline]
    pub fn any_ready(&self, port: u32) -> bool {
        if self.per_port == 1 {
            return self.words[port as usize].ready() != 0;
        }
        self.of(port).iter().any(|states| states.ready() != 0)
    }
    /// Whether a queue has something to send and may.
    #[inline]
    pub fn is_ready(&self, port: u32, queue: u32) -> bool {
        self.words[port as usize * self.per_port + queue as usize / 64].ready() & (1 << (queue % 64)) != 0
    }
    /// Whether a queue has packets.
    #[inline]
    pub fn is_filled(&self, port: u32, queue: u32) -> bool {
        self.words[port as usize * self.per_port + queue as usize / 64].filled & (1 << (queue % 64)) != 0
    }
    /// Whether a queue has packets, and no other of the port has.
    #[inline]
    pub fn is_only_filled(&self, port: u32, queue: u32) -> bool {
        let own = |word: usize| if word == queue as usize / 64 { 1 << (queue % 64) } else { 0 };
        self.of(port).iter().enumerate().all(|(word, states)| states.filled == own(word))
    }
    /// Whether a neighbour's pause stops a queue.
    #[inline]
    pub fn is_paused(&self, port: u32, queue: u32) -> bool {
        self.words[port as usize * self.per_port + queue as usize / 64].paused & (1 << (queue % 64)) != 0
    }
    /// Which queues have packets and which may not send, as numbers.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u64> {
        self.words.iter().flat_map(|states| [states.filled, states.paused, states.held])
    }
    /// Whether the scheme holds a queue.
    #[inline]
    pub fn is_held(&self, port: u32, queue: u32) -> bool {
        self.words[port as usize * self.per_port + queue as usize / 64].held & (1 << (queue % 64)) != 0
    }
    /// Whether some queue has packets and may not send them.
    pub fn any_blocked(&self, port: u32) -> bool {
        self.of(port).iter().any(|states| states.blocked() != 0)
    }
    /// The queues that have packets and may not send them.
    pub fn all_blocked(&self, port: u32) -> impl Iterator<Item = u32> + '_ {
        let words = (0..).step_by(64).zip(self.of(port));
        words.flat_map(|(first, states)| bits(states.blocked()).map(move |bit| first + bit))
    }
    /// How many queues have something to send and are not held by the scheme.
    #[inline]
    pub fn active(&self, port: u32) -> u32 {
        self.of(port).iter().map(|states| (states.filled & !states.held).count_ones()).sum()
    }
    /// The queues that have something to send and may.
    pub fn all_ready(&self, port: u32) -> impl Iterator<Item = u32> + '_ {
        (0..)
            .step_by(64)
            .zip(self.of(port))
            .flat_map(|(first, states)| bits(states.ready()).map(move |bit| first + bit))
    }
    /// Whether some queue has packets.
    #[inline]
    pub(crate) fn any_filled(&self, port: u32) -> bool {
        self.of(port).iter().any(|states| states.filled != 0)
    }
    /// The queues that have packets.
    pub fn all_filled(&self, port: u32) -> impl Iterator<Item = u32> + '_ {
        (0..).step_by(64).zip(self.of(port)).flat_map(|(first, states)| bits(states.filled).map(move |bit| first + bit))
    }
    /// The first queue after `last`, going round, that has something to send and may.
    #[inline]
    pub fn next_ready(&self, port: u32, last: u32) -> Option<u32> {
        if self.per_port == 1 {
            return after(self.words[port as usize].ready(), last);
        }
        let words = self.of(port);
        let first = (last as usize + 1) / 64 % words.len();
        for step in 0..=words.len() {
            let index = (first + step) % words.len();
            let mut ready = words[index].ready();
            if step == 0 {
                ready &= u64::MAX << ((last + 1) % 64);
            }
            if ready != 0 {
                return Some(index as u32 * 64 + ready.trailing_zeros());
            }
        }
        None
    }
}

/// The first place after `last`, going round, that is a one of a word.
#[inline(always)]
pub fn after(word: u64, last: u32) -> Option<u32> {
    let after = word & u64::MAX.checked_shl(last + 1).unwrap_or(0);
    (word != 0).then(|| if after != 0 { after } else { word }.trailing_zeros())
}

/// The places of the ones in a word, lowest first.
fn bits(mut word: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = (word != 0).then(|| word.trailing_zeros())?;
        word &= word - 1;
        Some(bit)
    })
}

impl Port {
    /// Whether packets of others are queued here: at a switch, or at a host that forwards.
    #[inline]
    pub fn has_queues(&self) -> bool {
        !self.host || self.relays
    }
}

impl Queue {
    /// Appends a packet.
    #[inline]
    pub fn push(&mut self, pool: &mut Pool, id: PacketId) {
        self.bytes += pool[id].size as u64;
        self.packets.push(pool, id);
    }
    /// Takes the first packet.
    #[inline]
    pub fn pop(&mut self, pool: &Pool) -> Option<PacketId> {
        let id = self.packets.pop(pool)?;
        self.bytes -= pool[id].size as u64;
        Some(id)
    }
    /// Takes the last packet.
    pub fn pop_last(&mut self, pool: &mut Pool) -> Option<PacketId> {
        let id = self.packets.pop_last(pool)?;
        self.bytes -= pool[id].size as u64;
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn round_robin_finds_the_next_queue_that_may_send(
            queues in 1u32..200,
            filled in prop::collection::vec(any::<u8>(), 200),
            blocked in prop::collection::vec(any::<u8>(), 200),
            last in 0u32..200,
        ) {
            let last = last % queues;
            let mut masks = QueueMasks::new(3, queues as usize);
            let may = |q: u32| filled[q as usize] % 3 == 0 && blocked[q as usize] % 2 == 0;
            for q in 0..queues {
                masks.set_filled(1, q, filled[q as usize] % 3 == 0);
                // Either reason is enough.
                masks.set_held(1, q, blocked[q as usize] % 4 == 1);
                masks.set_paused(1, q, blocked[q as usize] % 4 == 3);
            }
            prop_assert_eq!(masks.all_ready(1).collect::<Vec<_>>(), (0..queues).filter(|&q| may(q)).collect::<Vec<_>>());
            let expected = (1..=queues).map(|i| (last + i) % queues).find(|&q| may(q));
            prop_assert_eq!(masks.next_ready(1, last), expected);
            prop_assert_eq!(masks.any_ready(1), expected.is_some());
            prop_assert!(!masks.any_ready(0) && !masks.any_ready(2));
        }
    }
}
