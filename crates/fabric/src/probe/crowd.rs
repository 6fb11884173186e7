//! Who is in which queue. Whoever asks again walks through what has joined since, and not through all of the queue.
//!
//! A queue is kept from the first time that somebody asks. Packets that join and leave have nothing to do for it.

use super::causes::make_room;
use crate::packet::{Fifo, NONE, Packet, PacketId, Pool, flag};
use crate::port::Queue;
use engine::Time;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map for small keys that come from the run itself: it need not resist anybody.
pub(super) type Map<K, V> = HashMap<K, V, BuildHasherDefault<Quick>>;

/// Multiplies by an odd number, the golden ratio in binary, and mixes the upper bits into the lower.
#[derive(Default)]
pub(super) struct Quick(u64);

impl Quick {
    fn mix(&mut self, word: u64) {
        let product = (self.0.rotate_left(29) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ product >> 32;
    }
}

impl Hasher for Quick {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.mix(byte as u64));
    }
    fn write_u8(&mut self, word: u8) {
        self.mix(word as u64);
    }
    fn write_u16(&mut self, word: u16) {
        self.mix(word as u64);
    }
    fn write_u32(&mut self, word: u32) {
        self.mix(word as u64);
    }
    fn write_u64(&mut self, word: u64) {
        self.mix(word);
    }
    fn write_isize(&mut self, word: isize) {
        self.mix(word as u64);
    }
}

/// A flow that has packets in a queue, or had, which came by one port.
#[derive(Clone, Copy, Debug)]
pub(super) struct Guest {
    pub(super) flow: u32,
    /// By which port of the node they came, twice, and one more if they are of the second group.
    from: u32,
    pub(super) bytes: u64,
    /// When the first of those joined that have been counted without a gap. A queue that is stopped loses none, so that this is when the
    /// flow came, or before the stop.
    pub(super) since: Time,
    /// For which host they are.
    pub(super) dst: u32,
    /// Of the drops that were noted at the queue, how many have been charged.
    charged: u64,
    /// What it had there at these.
    had: Had,
}

/// At how many drops a flow had something at a port, and how many bytes, added up over these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Had {
    pub(super) drops: u64,
    pub(super) bytes: u64,
}

impl Had {
    pub(super) fn add(&mut self, more: Had) {
        (self.drops, self.bytes) = (self.drops + more.drops, self.bytes + more.bytes);
    }
}

impl Guest {
    /// Charges the drops since its bytes have changed last, of so many in all.
    #[inline(always)]
    fn charge(&mut self, drops: u64) {
        if self.charged != drops {
            let new = drops - self.charged;
            if self.bytes > 0 {
                self.had.add(Had { drops: new, bytes: new * self.bytes });
            }
            self.charged = drops;
        }
    }

    /// By which port of the node its packets came.
    pub(super) fn in_port(&self) -> u16 {
        (self.from / 2) as u16
    }
}

/// A packet that was counted.
#[derive(Clone, Copy, Debug)]
struct Entry {
    joined: Time,
    id: PacketId,
    /// The place of its flow.
    place: u32,
    size: u16,
}

impl Entry {
    /// Whether it is this packet: another of the same number has joined at another time.
    #[inline]
    fn is(&self, id: PacketId, pool: &Pool) -> bool {
        self.id == id && self.joined == pool[id].next_arrival
    }
}

/// The flows of one queue, as they were when somebody last asked. Packets that join are counted when somebody asks again; those that have left
/// are the ones before what is first then.
#[derive(Clone, Debug, Default)]
pub(super) struct Guests {
    /// Packets of no flow are as those of one with the number [`NONE`].
    flows: Vec<Guest>,
    /// A power of two places, or none: of a flow, or [`NONE`]. A flow has the first free one from where its number leads.
    index: Vec<u32>,
    /// How many of these have packets.
    present: usize,
    /// Whether a flow may be there twice, as its packets came by two ports, or one has no number.
    mixed: bool,
    /// The packets that were counted, first to last, behind some that have left.
    line: Vec<Entry>,
    /// How many of these are no longer counted.
    done: usize,
    /// Packets that were dropped because of what is here. Flows are charged with them when their bytes change: mostly those of one or two have
    /// changed since the drop before.
    drops: u64,
    /// The port, if there were drops.
    port: u32,
    /// What flows had at drops that are no longer among those above.
    gone: Map<u32, Had>,
}

impl Guests {
    /// Adds a flow.
    #[cold]
    #[inline(never)]
    fn add(&mut self, flow: u32, from: u32) {
        self.mixed |= flow == NONE;
        let (charged, had) = (self.drops, Had::default());
        self.flows.push(Guest { flow, from, bytes: 0, since: Time::ZERO, dst: 0, charged, had });
        let place = self.flows.len() - 1;
        if 2 * self.flows.len() > self.index.len() {
            let room = (4 * (self.flows.len() + 1)).next_power_of_two();
            self.index.clear();
            self.index.resize(room, NONE);
            (0..place).for_each(|place| self.enter(place));
        }
        self.enter(place);
    }

    /// Puts a flow in the index, where there is room.
    fn enter(&mut self, place: usize) {
        let (flow, mask) = (self.flows[place].flow, self.index.len() - 1);
        let mut at = spread(flow) & mask;
        while self.index[at] != NONE {
            self.mixed |= self.flows[self.index[at] as usize].flow == flow;
            at = (at + 1) & mask;
        }
        self.index[at] = place as u32;
    }

    /// Counts a packet and all behind it.
    fn join(&mut self, first: PacketId, pool: &Pool) {
        let mut next = first;
        make_room(&mut self.line);
        while next != NONE {
            next = self.join_known(next, pool);
            if next != NONE {
                let packet = &pool[next];
                self.add(packet.flow, came_by(packet));
            }
        }
    }

    /// The same up to the first of a flow that is new, which it gives, or [`NONE`].
    fn join_known(&mut self, first: PacketId, pool: &Pool) -> PacketId {
        let (index, flows, line) = (self.index.as_slice(), self.flows.as_mut_slice(), &mut self.line);
        let (mask, drops) = (index.len().wrapping_sub(1), self.drops);
        let mut next = first;
        while next != NONE {
            let packet = &pool[next];
            let (flow, from) = (packet.flow, came_by(packet));
            let mut at = spread(flow) & mask;
            let place = loop {
                // An index without room is empty.
                let Some(&place) = index.get(at).filter(|place| **place != NONE) else { return next };
                let guest = &flows[place as usize];
                if guest.flow == flow && guest.from == from {
                    break place;
                }
                at = (at + 1) & mask;
            };
            let guest = &mut flows[place as usize];
            if drops > 0 {
                guest.charge(drops);
            }
            if guest.bytes == 0 {
                self.present += 1;
                (guest.since, guest.dst) = (packet.next_arrival, packet.dst);
            }
            guest.bytes += packet.size as u64;
            line.push(Entry { joined: packet.next_arrival, id: next, place, size: packet.size });
            next = pool.after(next);
        }
        NONE
    }

    /// Whether nothing has joined or left since somebody last asked.
    #[inline]
    fn is_up_to_date(&self, queue: &Fifo, pool: &Pool) -> bool {
        let (first, last) = (self.line.get(self.done), self.line.last());
        first.is_some_and(|first| first.is(queue.head(), pool)) && last.is_some_and(|last| pool.after(last.id) == NONE)
    }

    /// Counts those that have joined a queue since somebody last asked, and no longer those that have left it.
    #[inline(never)]
    fn catch_up(&mut self, queue: &Fifo, pool: &Pool) {
        let head = queue.head();
        // Packets leave in the order in which they joined. Flows that have left keep their places until all are counted again.
        let gone = head == NONE || self.line.last().is_none_or(|last| last.joined < pool[head].next_arrival);
        if gone || self.flows.len() > 2 * self.present + 16 {
            self.clear();
        } else {
            self.leave(head, pool);
        }
        let next = self.line.last().map_or(head, |last| pool.after(last.id));
        self.join(next, pool);
    }

    /// All before this packet have left.
    fn leave(&mut self, head: PacketId, pool: &Pool) {
        let (flows, drops) = (self.flows.as_mut_slice(), self.drops);
        let (mut done, mut present) = (self.done, self.present);
        for entry in &self.line[self.done..] {
            if entry.id == head && entry.is(head, pool) {
                break;
            }
            done += 1;
            let guest = &mut flows[entry.place as usize];
            if drops > 0 {
                guest.charge(drops);
            }
            guest.bytes -= entry.size as u64;
            present -= (guest.bytes == 0) as usize;
        }
        (self.done, self.present) = (done, present);
        if done == self.line.len() {
            return self.clear();
        }
        if done > 64 && done > 3 * (self.line.len() - done) {
            self.line.drain(..done);
            self.done = 0;
        }
    }

    /// Bytes that came in by a port of the node, of one of two groups.
    pub(super) fn from(&self, in_port: u16, second: bool) -> u64 {
        let from = 2 * in_port as u32 + second as u32;
        self.flows.iter().filter(|guest| guest.from == from).map(|guest| guest.bytes).sum()
    }

    /// Bytes of all packets.
    pub(super) fn bytes(&self) -> u64 {
        self.flows.iter().map(|guest| guest.bytes).sum()
    }

    /// How many flows have packets here.
    #[inline]
    pub(super) fn count(&self) -> usize {
        if self.mixed { self.count_mixed() } else { self.present }
    }

    #[inline(never)]
    fn count_mixed(&self) -> usize {
        let mut all: Vec<u32> = self.flows().map(|guest| guest.flow).collect();
        all.sort_unstable();
        all.dedup();
        all.len()
    }

    /// The flows that have packets here, those twice whose packets came by two ports.
    pub(super) fn flows(&self) -> impl Iterator<Item = &Guest> {
        self.flows.iter().filter(|guest| guest.bytes > 0 && guest.flow != NONE)
    }

    /// Charges all drops, and gives what flows had at them since they were last told.
    fn tell(&mut self) -> impl Iterator<Item = (u32, Had)> {
        let drops = self.drops;
        let flows = self.flows.iter_mut().filter(|guest| guest.flow != NONE).map(move |guest| {
            guest.charge(drops);
            (guest.flow, std::mem::take(&mut guest.had))
        });
        flows.chain(self.gone.drain()).filter(|(_, had)| had.drops > 0)
    }

    fn clear(&mut self) {
        if self.drops > 0 {
            let mut gone = std::mem::take(&mut self.gone);
            self.tell().for_each(|(flow, had)| gone.entry(flow).or_default().add(had));
            self.gone = gone;
        }
        self.flows.clear();
        self.index.fill(NONE);
        self.line.clear();
        (self.present, self.mixed, self.done) = (0, false, 0);
    }
}

/// By which port of its node a packet came, twice, and one more if it is of the second group.
#[inline]
fn came_by(packet: &Packet) -> u32 {
    2 * packet.in_port as u32 + (packet.flags & flag::SECOND != 0) as u32
}

/// Where the number of a flow leads.
#[inline]
fn spread(flow: u32) -> usize {
    // The golden ratio in binary; the upper bits of a product depend on all of the factor's.
    (flow.wrapping_mul(0x9e37_79b9) >> 16) as usize
}

/// The flows of the queues that somebody asked for, by the number of the queue among those of all ports.
#[derive(Default)]
pub(super) struct Crowd {
    /// By queue, its place below, or [`NONE`].
    places: Vec<u32>,
    kept: Vec<Guests>,
    free: Vec<u32>,
    /// With so many that are kept, those that are empty are forgotten.
    many: usize,
    /// What flows had at ports when packets were dropped because of that, of queues that have been forgotten.
    gone: Map<(u32, u32), Had>,
}

/// Queues that are kept without a look at whether they are empty.
const FEW: usize = 1024;

impl Crowd {
    /// The flows of a queue, of all `queues`.
    pub(super) fn of(&mut self, slot: usize, queues: &[Queue], pool: &Pool) -> &Guests {
        self.kept_of(slot, queues, pool)
    }

    /// A packet is dropped because of what is in a queue, of a port. Gives how many flows have packets there.
    #[inline]
    pub(super) fn note_drop(&mut self, slot: usize, port: u32, queues: &[Queue], pool: &Pool) -> usize {
        let guests = self.kept_of(slot, queues, pool);
        (guests.drops, guests.port) = (guests.drops + 1, port);
        guests.count()
    }

    /// By port and flow, what flows had when packets were dropped because of what was there, since this was last asked.
    pub(super) fn fillers(&mut self) -> Map<(u32, u32), Had> {
        (0..self.kept.len()).for_each(|place| self.tell(place));
        std::mem::take(&mut self.gone)
    }

    /// Takes over what flows had at drops in a queue.
    fn tell(&mut self, place: usize) {
        let guests = &mut self.kept[place];
        let port = guests.port;
        if guests.drops > 0 {
            guests.tell().for_each(|(flow, had)| self.gone.entry((port, flow)).or_default().add(had));
        }
    }

    #[inline]
    fn kept_of(&mut self, slot: usize, queues: &[Queue], pool: &Pool) -> &mut Guests {
        if self.places.get(slot).is_none_or(|place| *place == NONE) {
            self.enter(slot, queues);
        }
        let (guests, queue) = (&mut self.kept[self.places[slot] as usize], &queues[slot].packets);
        if !guests.is_up_to_date(queue, pool) {
            guests.catch_up(queue, pool);
        }
        guests
    }

    /// Keeps a queue from now on.
    #[cold]
    #[inline(never)]
    fn enter(&mut self, slot: usize, queues: &[Queue]) {
        if self.places.len() <= slot {
            self.places.resize(queues.len().max(slot + 1), NONE);
        }
        self.places[slot] = self.place(queues);
    }

    /// A place for a queue.
    fn place(&mut self, queues: &[Queue]) -> u32 {
        if self.free.is_empty() && self.kept.len() >= self.many.max(FEW) {
            let empty = |(slot, place): &(usize, &u32)| **place != NONE && queues[*slot].bytes == 0;
            let empty: Vec<usize> = self.places.iter().enumerate().filter(empty).map(|(slot, _)| slot).collect();
            empty.into_iter().for_each(|slot| self.forget(slot));
            self.many = 2 * (self.kept.len() - self.free.len());
        }
        self.free.pop().unwrap_or_else(|| {
            self.kept.push(Guests::default());
            self.kept.len() as u32 - 1
        })
    }

    /// A queue changes in another way than by packets that join at its end and leave at its beginning.
    pub(super) fn forget(&mut self, slot: usize) {
        if let Some(place) = self.places.get_mut(slot).filter(|place| **place != NONE) {
            let place = std::mem::replace(place, NONE);
            self.tell(place as usize);
            let guests = &mut self.kept[place as usize];
            guests.drops = 0;
            guests.clear();
            self.free.push(place);
        }
    }

    /// What is wrong with what is kept, if anything is: it differs from what a walk through the queues finds.
    pub(super) fn audit(&mut self, queues: &[Queue], pool: &Pool) -> Option<usize> {
        (0..self.places.len()).filter(|&slot| self.places[slot] != NONE).collect::<Vec<_>>().into_iter().find(|&slot| {
            let mut found = Guests::default();
            found.join(queues[slot].packets.head(), pool);
            let guests = self.of(slot, queues, pool);
            let flows = |guests: &Guests| {
                let there = guests.flows.iter().filter(|guest| guest.bytes > 0);
                let mut all: Vec<_> = there.map(|guest| (guest.flow, guest.from, guest.bytes)).collect();
                all.sort_unstable();
                all
            };
            flows(guests) != flows(&found) || guests.count() != found.count()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Puts packets of these flows, ports of arrival and times at the end of a queue.
    fn add(queue: &mut Queue, pool: &mut Pool, packets: &[(u32, u16, u64)]) {
        for &(flow, in_port, at) in packets {
            let packet = Packet { flow, in_port, size: 100, next_arrival: Time(at), ..Packet::BLANK };
            let id = pool.insert(packet);
            queue.push(pool, id);
        }
    }

    fn take(queue: &mut Queue, pool: &mut Pool) {
        let id = queue.pop(pool).unwrap();
        pool.remove(id);
    }

    #[test]
    fn what_is_kept_is_what_a_walk_finds() {
        let (mut pool, mut crowd) = (Pool::new(false, false), Crowd::default());
        let mut queues = vec![Queue::default(); 4];
        add(&mut queues[3], &mut pool, &[(7, 0, 10), (8, 1, 20), (7, 0, 30)]);
        let guests = crowd.of(3, &queues, &pool);
        assert_eq!((guests.count(), guests.from(0, false), guests.from(1, false)), (2, 200, 100));
        let guest = |guests: &Guests, flow: u32| *guests.flows().find(|guest| guest.flow == flow).unwrap();
        let (flow, since) = (guest(guests, 7), guest(guests, 8).since);
        assert_eq!((flow.bytes, flow.since, since), (200, Time(10), Time(20)));

        take(&mut queues[3], &mut pool);
        add(&mut queues[3], &mut pool, &[(9, 1, 40)]);
        assert_eq!(crowd.audit(&queues, &pool), None);
        assert_eq!(crowd.of(3, &queues, &pool).count(), 3);
        // A flow that has packets all the time has been there since its first.
        assert_eq!(guest(crowd.of(3, &queues, &pool), 7).since, Time(10));
        // What is taken from the end, or moved, is to be told.
        let last = queues[3].pop_last(&mut pool).unwrap();
        pool.remove(last);
        assert_eq!(crowd.audit(&queues, &pool), Some(3));
        crowd.forget(3);
        assert_eq!(crowd.audit(&queues, &pool), None);
        assert_eq!(crowd.of(3, &queues, &pool).count(), 2);
    }

    #[test]
    fn a_queue_that_is_empty_has_nobody_and_is_forgotten_when_there_are_many() {
        let (mut pool, mut crowd) = (Pool::new(false, false), Crowd::default());
        let mut queues = vec![Queue::default(); FEW + 1];
        for slot in 0..FEW {
            add(&mut queues[slot], &mut pool, &[(1, 0, 5)]);
            assert_eq!(crowd.of(slot, &queues, &pool).count(), 1);
        }
        take(&mut queues[0], &mut pool);
        let guests = crowd.of(0, &queues, &pool);
        assert_eq!((guests.count(), guests.flows().count(), guests.from(0, false)), (0, 0, 0));
        crowd.of(FEW, &queues, &pool);
        assert_eq!((crowd.places[0], crowd.kept.len()), (NONE, FEW));
    }

    #[test]
    fn many_flows_come_and_go() {
        let all: Vec<(u32, u16, u64)> = (0..500u32).map(|at| (at * 64 % 1000, (at % 3) as u16, at as u64)).collect();
        // However rarely somebody asks.
        for often in [1, 7, 300, 499, 900] {
            let (mut pool, mut crowd) = (Pool::new(false, false), Crowd::default());
            let mut queues = vec![Queue::default()];
            add(&mut queues[0], &mut pool, &all);
            crowd.of(0, &queues, &pool);
            for at in 0..2000u32 {
                take(&mut queues[0], &mut pool);
                add(&mut queues[0], &mut pool, &[(1000 + at / 3, 1, 1000 + at as u64)]);
                if at % often == 0 {
                    assert_eq!(crowd.audit(&queues, &pool), None, "after {at}, every {often}");
                }
            }
        }
    }

    #[test]
    fn a_flow_that_comes_back_has_been_there_since_then() {
        let (mut pool, mut crowd) = (Pool::new(false, false), Crowd::default());
        let mut queues = vec![Queue::default()];
        add(&mut queues[0], &mut pool, &[(1, 0, 5), (2, 0, 6), (3, 0, 7)]);
        crowd.of(0, &queues, &pool);
        take(&mut queues[0], &mut pool);
        add(&mut queues[0], &mut pool, &[(1, 0, 40), (2, 0, 50)]);
        let mut all: Vec<_> = crowd.of(0, &queues, &pool).flows().map(|guest| (guest.flow, guest.since.0)).collect();
        all.sort_unstable();
        assert_eq!(all, [(1, 40), (2, 6), (3, 7)]);
    }
}
