//! Who is in which queue, kept up as packets come and go, so that nobody has to walk through a queue to know.
//!
//! A queue is kept from the first time that somebody asks until it is empty: one that nobody asks for costs nothing.

use crate::packet::{Fifo, NONE, Packet, Pool, flag};
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

/// A flow that has packets in a queue, or had.
#[derive(Clone, Copy, Debug)]
pub(super) struct Guest {
    /// [`NONE`]: a place that nobody has.
    pub(super) flow: u32,
    packets: u32,
    pub(super) bytes: u64,
    /// Since when it has had some there.
    pub(super) since: Time,
    /// By which port of the node its last packet came, and for which host that is.
    pub(super) dst: u32,
    pub(super) in_port: u16,
}

impl Guest {
    const NOBODY: Guest = Guest { flow: NONE, packets: 0, bytes: 0, since: Time::ZERO, dst: 0, in_port: 0 };
}

/// The flows of one queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Guests {
    /// A power of two places, or none; a flow has the first free one from where its number leads. Who has left keeps his place until the
    /// table is full.
    table: Vec<Guest>,
    /// Places that are taken, and how many of them by flows with packets.
    taken: usize,
    present: usize,
    /// Bytes by the port they came in by, and whether they are of the second group.
    from: Vec<[u64; 2]>,
}

impl Guests {
    /// The place of a flow, or the one that it would have. There is one that nobody has.
    #[inline]
    fn place(&self, flow: u32) -> usize {
        let mask = self.table.len() - 1;
        // The golden ratio in binary; the upper bits of a product depend on all of the factor's.
        let mut place = (flow.wrapping_mul(0x9e37_79b9) >> 16) as usize & mask;
        while self.table[place].flow != flow && self.table[place].flow != NONE {
            place = (place + 1) & mask;
        }
        place
    }

    /// Makes room, and forgets who has left.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let places = (4 * (self.present + 1)).next_power_of_two();
        let old = std::mem::replace(&mut self.table, vec![Guest::NOBODY; places]);
        self.taken = self.present;
        for guest in old.into_iter().filter(|guest| guest.packets > 0) {
            let place = self.place(guest.flow);
            self.table[place] = guest;
        }
    }

    #[inline(always)]
    fn join(&mut self, packet: &Packet) {
        let place = packet.in_port as usize;
        if self.from.len() <= place {
            self.from.resize(place + 1, [0; 2]);
        }
        let bytes = packet.size as u64;
        self.from[place][group(packet)] += bytes;
        if packet.flow == NONE {
            return;
        }
        if 2 * self.taken >= self.table.len() {
            self.grow();
        }
        let place = self.place(packet.flow);
        let guest = &mut self.table[place];
        if guest.packets == 0 {
            self.taken += (guest.flow == NONE) as usize;
            self.present += 1;
            *guest = Guest { flow: packet.flow, since: packet.next_arrival, ..Guest::NOBODY };
        }
        guest.packets += 1;
        guest.bytes += bytes;
        (guest.in_port, guest.dst) = (packet.in_port, packet.dst);
    }

    #[inline(always)]
    fn leave(&mut self, packet: &Packet, second: bool) {
        let bytes = packet.size as u64;
        if let Some(from) = self.from.get_mut(packet.in_port as usize) {
            from[second as usize] -= bytes;
        }
        if packet.flow == NONE || self.table.is_empty() {
            return;
        }
        let place = self.place(packet.flow);
        let guest = &mut self.table[place];
        if guest.packets > 0 {
            guest.packets -= 1;
            guest.bytes -= bytes;
            self.present -= (guest.packets == 0) as usize;
        }
    }

    /// Bytes that came in by a port of the node, of one of two groups.
    pub(super) fn from(&self, in_port: u16, second: bool) -> u64 {
        self.from.get(in_port as usize).map_or(0, |bytes| bytes[second as usize])
    }

    /// How many flows have packets here.
    pub(super) fn count(&self) -> usize {
        self.present
    }

    /// The flows that have packets here.
    pub(super) fn flows(&self) -> impl Iterator<Item = &Guest> {
        self.table.iter().filter(|guest| guest.packets > 0)
    }

    fn clear(&mut self) {
        self.table.fill(Guest::NOBODY);
        (self.taken, self.present) = (0, 0);
        self.from.fill([0; 2]);
    }
}

fn group(packet: &Packet) -> usize {
    (packet.flags & flag::SECOND != 0) as usize
}

/// The flows of the queues that somebody asked for, by the number of the queue among those of all ports.
#[derive(Default)]
pub(super) struct Crowd {
    /// By queue, its place below, or [`NONE`].
    places: Vec<u32>,
    kept: Vec<Guests>,
    free: Vec<u32>,
}

impl Crowd {
    /// The flows of a queue, which has these packets.
    pub(super) fn of(&mut self, slot: usize, queue: &Fifo, pool: &Pool) -> &Guests {
        if self.places.len() <= slot {
            self.places.resize(slot + 1, NONE);
        }
        if self.places[slot] == NONE {
            let place = self.free.pop().unwrap_or_else(|| {
                self.kept.push(Guests::default());
                self.kept.len() as u32 - 1
            });
            queue.iter(pool).for_each(|id| self.kept[place as usize].join(&pool[id]));
            self.places[slot] = place;
        }
        &self.kept[self.places[slot] as usize]
    }

    /// A packet has joined a queue.
    #[inline]
    pub(super) fn join(&mut self, slot: usize, packet: &Packet) {
        if let Some(&place) = self.places.get(slot)
            && place != NONE
        {
            self.kept[place as usize].join(packet);
        }
    }

    /// A packet of one of two groups has left a queue, which may be empty now.
    #[inline]
    pub(super) fn leave(&mut self, slot: usize, packet: &Packet, second: bool, empty: bool) {
        if let Some(&place) = self.places.get(slot)
            && place != NONE
        {
            match empty {
                true => self.forget(slot),
                false => self.kept[place as usize].leave(packet, second),
            }
        }
    }

    /// A queue changes in some other way, or is empty.
    pub(super) fn forget(&mut self, slot: usize) {
        if let Some(place) = self.places.get_mut(slot).filter(|place| **place != NONE) {
            self.kept[*place as usize].clear();
            self.free.push(std::mem::replace(place, NONE));
        }
    }

    /// What is wrong with what is kept, if anything is: it differs from what a walk through the queues finds.
    pub(super) fn audit<'a>(&self, queue: impl Fn(usize) -> &'a Fifo, pool: &Pool) -> Option<usize> {
        let kept = self.places.iter().enumerate().filter(|(_, place)| **place != NONE);
        kept.map(|(slot, &place)| (slot, &self.kept[place as usize])).find_map(|(slot, guests)| {
            let mut found = Guests::default();
            queue(slot).iter(pool).for_each(|id| found.join(&pool[id]));
            let flows = |guests: &Guests| {
                let mut all: Vec<_> = guests.flows().map(|g| (g.flow, g.packets, g.bytes)).collect();
                all.sort_unstable();
                all
            };
            let ports = 0..guests.from.len().max(found.from.len()) as u16;
            let same = flows(guests) == flows(&found)
                && guests.count() == found.count()
                && ports
                    .flat_map(|port| [(port, false), (port, true)])
                    .all(|(p, s)| guests.from(p, s) == found.from(p, s));
            (!same).then_some(slot)
        })
    }
}

/// Packets in the order of a queue, for tests.
#[cfg(test)]
fn line(pool: &mut Pool, packets: &[(u32, u16, u64)]) -> (Fifo, Vec<u32>) {
    let mut queue = Fifo::default();
    let packet = |&(flow, in_port, at): &(u32, u16, u64)| Packet {
        flow,
        in_port,
        size: 100,
        next_arrival: Time(at),
        ..Packet::BLANK
    };
    let ids: Vec<u32> = packets.iter().map(|of| pool.insert(packet(of))).collect();
    ids.iter().for_each(|&id| queue.push(pool, id));
    (queue, ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_what_a_walk_finds() {
        let mut pool = Pool::new(false, false);
        let (mut queue, _) = line(&mut pool, &[(7, 0, 10), (8, 1, 20), (7, 0, 30)]);
        let mut crowd = Crowd::default();
        // Nobody has asked yet.
        crowd.join(3, &pool[queue.head()]);
        let guests = crowd.of(3, &queue, &pool);
        assert_eq!((guests.count(), guests.from(0, false), guests.from(1, false)), (2, 200, 100));
        let guest = |guests: &Guests, flow: u32| *guests.flows().find(|guest| guest.flow == flow).unwrap();
        let (flow, since) = (guest(guests, 7), guest(guests, 8).since);
        assert_eq!((flow.packets, flow.bytes, flow.since, since), (2, 200, Time(10), Time(20)));

        let first = queue.pop(&pool).unwrap();
        crowd.leave(3, &pool[first], false, false);
        let (_, new) = line(&mut pool, &[(9, 1, 40)]);
        queue.push(&mut pool, new[0]);
        crowd.join(3, &pool[new[0]]);
        assert_eq!(crowd.audit(|_| &queue, &pool), None);
        assert_eq!(crowd.of(3, &queue, &pool).count(), 3);
        // A flow that has packets all the time has been there since its first.
        assert_eq!(guest(crowd.of(3, &queue, &pool), 7).since, Time(10));
        crowd.leave(3, &pool[new[0]], false, false);
        assert_eq!(crowd.audit(|_| &queue, &pool), Some(3), "a packet left and is still in its queue");
        crowd.forget(3);
        assert_eq!(crowd.of(3, &queue, &pool).count(), 3);
    }

    #[test]
    fn a_queue_that_is_empty_is_no_longer_kept() {
        let mut pool = Pool::new(false, false);
        let (mut queue, _) = line(&mut pool, &[(1, 0, 5)]);
        let mut crowd = Crowd::default();
        crowd.of(0, &queue, &pool);
        let id = queue.pop(&pool).unwrap();
        crowd.leave(0, &pool[id], false, true);
        assert_eq!((crowd.places[0], crowd.free.len()), (NONE, 1));
        let guests = crowd.of(0, &queue, &pool);
        assert_eq!((guests.count(), guests.flows().count(), guests.from(0, false)), (0, 0, 0));
    }

    #[test]
    fn many_flows_come_and_go() {
        let mut pool = Pool::new(false, false);
        let all: Vec<(u32, u16, u64)> = (0..500u32).map(|at| (at * 64 % 1000, (at % 3) as u16, at as u64)).collect();
        let (mut queue, _) = line(&mut pool, &all);
        let mut crowd = Crowd::default();
        crowd.of(0, &queue, &pool);
        for at in 0..1000u32 {
            let left = queue.pop(&pool).unwrap();
            crowd.leave(0, &pool[left], false, false);
            let (_, new) = line(&mut pool, &[(1000 + at / 3, 1, at as u64)]);
            queue.push(&mut pool, new[0]);
            crowd.join(0, &pool[new[0]]);
            assert_eq!(crowd.audit(|_| &queue, &pool), None, "after {at}");
        }
    }
}
