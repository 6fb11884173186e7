//! The table of virtual flows of a switch (BFC §3.8).
//!
//! As many buckets as there are VFIDs, so that an entry need not store its VFID, and four entries in each, distinguished by
//! ingress and egress. What finds its bucket full goes into a small cache; what finds that full too has no entry.

use engine::Time;
use fabric::id::PortId;

/// Number of an entry; [`NONE`] for none.
pub type EntryId = u32;
/// No entry.
pub const NONE: EntryId = u32::MAX;
/// No queue.
pub const NO_QUEUE: u16 = u16::MAX;

/// Whether a flow is paused at its upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It is not.
    Running,
    /// It is.
    Paused,
    /// It is, and waits for its turn to be resumed.
    Listed,
}

/// What a switch knows of a flow while a packet of it is queued, while it is paused, or while it keeps its queue.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The next in the bucket.
    next: EntryId,
    /// Distinguished by where it comes from and goes to.
    pub in_port: PortId,
    /// See `in_port`: the port and class it leaves by.
    lane: u32,
    /// Packets in the queue.
    pub packets: u32,
    /// The flow whose packet came last.
    pub flow: u32,
    /// Its virtual flow.
    pub vfid: u16,
    /// Its physical queue, while it has packets there or keeps it.
    pub queue: u16,
    /// With no packet there, it keeps the queue until then.
    pub until: Time,
    /// What its pause named.
    pub name: u16,
    /// Whether it is paused.
    pub state: State,
    /// It is in the cache because its bucket was full.
    cached: bool,
    /// Counts the uses of this place, so that an old note of it is known.
    pub turn: u32,
}

/// The table of one switch.
pub struct Table {
    /// First entry of every bucket.
    buckets: Vec<EntryId>,
    entries: Vec<Entry>,
    free: Vec<EntryId>,
    /// Entries in the cache.
    cached: u32,
    /// Entries in all.
    held: u32,
    /// The most entries that there ever were.
    pub peak: u32,
    bucket: u32,
    cache: u32,
    /// Flows that went to the cache.
    pub cache_uses: u64,
}

impl Table {
    /// A table for `vfids` virtual flows.
    pub fn new(vfids: u32, bucket: u32, cache: u32) -> Table {
        Table {
            buckets: vec![NONE; vfids as usize],
            entries: Vec::new(),
            free: Vec::new(),
            cached: 0,
            held: 0,
            peak: 0,
            bucket,
            cache,
            cache_uses: 0,
        }
    }

    /// The entry of a flow.
    #[inline]
    pub fn find(&self, vfid: u16, in_port: PortId, lane: u32) -> Option<EntryId> {
        let mut id = self.buckets[vfid as usize];
        while id != NONE {
            let entry = &self.entries[id as usize];
            if entry.in_port == in_port && entry.lane == lane {
                return Some(id);
            }
            id = entry.next;
        }
        None
    }

    /// Whether nobody has an entry in a bucket.
    #[inline]
    pub fn is_empty_at(&self, vfid: u16) -> bool {
        self.buckets[vfid as usize] == NONE
    }

    /// An entry was made and forgotten in an instant.
    #[inline]
    pub fn touch(&mut self) {
        self.peak = self.peak.max(self.held + 1);
    }

    /// Whether a bucket has room.
    fn bucket_has_room(&self, vfid: u16) -> bool {
        let (mut id, mut inside) = (self.buckets[vfid as usize], 0);
        while id != NONE {
            inside += !self.entries[id as usize].cached as u32;
            id = self.entries[id as usize].next;
        }
        inside < self.bucket
    }

    /// Whether a flow's bucket or else the cache has room for one more.
    #[inline]
    pub fn has_room(&self, vfid: u16) -> bool {
        self.cached < self.cache || self.bucket_has_room(vfid)
    }

    /// Makes an entry, for which there must be room.
    pub fn insert(&mut self, vfid: u16, in_port: PortId, lane: u32, flow: u32) -> EntryId {
        let place = vfid as usize;
        let cached = !self.bucket_has_room(vfid);
        if cached {
            self.cached += 1;
            self.cache_uses += 1;
        }
        let mut entry = Entry {
            next: self.buckets[place],
            in_port,
            lane,
            packets: 0,
            flow,
            vfid,
            queue: NO_QUEUE,
            until: Time::ZERO,
            name: 0,
            state: State::Running,
            cached,
            turn: 0,
        };
        let id = match self.free.pop() {
            Some(id) => {
                entry.turn = self.entries[id as usize].turn + 1;
                self.entries[id as usize] = entry;
                id
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as EntryId - 1
            }
        };
        self.buckets[place] = id;
        self.held += 1;
        self.peak = self.peak.max(self.held);
        id
    }

    /// Forgets an entry.
    pub fn remove(&mut self, id: EntryId) {
        let entry = self.entries[id as usize];
        let place = entry.vfid as usize;
        if self.buckets[place] == id {
            self.buckets[place] = entry.next;
        } else {
            let mut before = self.buckets[place];
            while self.entries[before as usize].next != id {
                before = self.entries[before as usize].next;
            }
            self.entries[before as usize].next = entry.next;
        }
        self.cached -= entry.cached as u32;
        self.held -= 1;
        self.entries[id as usize].turn += 1;
        self.free.push(id);
    }

    /// What decides what it gives next: all but the flows that only counters know, and turns, which only notes of entries know.
    #[cfg(test)]
    pub fn outlook(&self) -> String {
        let entry = |entry: &Entry| format!("{:?}", Entry { flow: 0, turn: 0, ..*entry });
        let entries = self.entries.iter().enumerate();
        let entries = entries.map(|(id, held)| match self.free.contains(&(id as EntryId)) {
            true => String::new(),
            false => entry(held),
        });
        let buckets = self.buckets.iter().enumerate().filter(|(_, first)| **first != NONE);
        format!("{:?} {:?} {:?}", buckets.collect::<Vec<_>>(), entries.collect::<Vec<_>>(), self.free)
    }

    /// Entries in use.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }
}

impl std::ops::Index<EntryId> for Table {
    type Output = Entry;
    #[inline]
    fn index(&self, id: EntryId) -> &Entry {
        &self.entries[id as usize]
    }
}

impl std::ops::IndexMut<EntryId> for Table {
    #[inline]
    fn index_mut(&mut self, id: EntryId) -> &mut Entry {
        &mut self.entries[id as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_takes_four_the_cache_the_rest_and_then_there_is_no_room() {
        let mut table = Table::new(16, 4, 2);
        let ids: Vec<_> = (0..6).map(|port| table.insert(7, PortId(port), 9, 0)).collect();
        assert_eq!((table.cache_uses, table.has_room(7)), (2, false));
        assert!(table.has_room(8), "another bucket has room");
        table.insert(8, PortId(6), 9, 0);
        (0..6).for_each(|port| assert_eq!(table.find(7, PortId(port), 9), Some(ids[port as usize])));
        assert_eq!((table.find(7, PortId(0), 8), table.find(6, PortId(0), 9)), (None, None));
        // Room in the bucket is used again, and an entry that comes back is known to be another.
        let turn = table[ids[0]].turn;
        table.remove(ids[0]);
        assert_eq!(table.find(7, PortId(0), 9), None);
        let again = table.insert(7, PortId(0), 9, 0);
        assert_eq!((again, table.cache_uses), (ids[0], 2));
        assert!(table[again].turn > turn);
        assert_eq!((table.len(), table.peak), (7, 7));
        ids[1..].iter().for_each(|&id| table.remove(id));
        (1..6).for_each(|port| assert_eq!(table.find(7, PortId(port), 9), None));
        assert_eq!(table.find(7, PortId(0), 9), Some(again));
    }
}
