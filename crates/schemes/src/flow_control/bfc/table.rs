//! The table of virtual flows of a switch (BFC §3.8).
//!
//! As many buckets as there are VFIDs, so that an entry need not store its VFID, and four entries in each, told apart by
//! ingress and egress. What finds its bucket full goes into a small cache; what finds that full too has no entry.

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

/// What a switch knows of a flow while a packet of it is queued, or while it is paused.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The next in the bucket.
    next: EntryId,
    /// Told apart by where it comes from and goes to.
    pub in_port: u32,
    /// See `in_port`: the port and class it leaves by.
    pub lane: u32,
    /// Packets in the queue.
    pub packets: u32,
    /// The flow whose packet came last.
    pub flow: u32,
    /// Its virtual flow.
    pub vfid: u16,
    /// Its physical queue, while it has packets there.
    pub queue: u16,
    /// Whether it is paused.
    pub state: State,
    /// It is in the cache because its bucket was full.
    cached: bool,
    /// Counts the uses of this place, so that an old note of it is known.
    pub turn: u32,
}

/// The tables of all switches.
pub struct Table {
    /// First entry of every bucket, switch by switch.
    buckets: Vec<EntryId>,
    entries: Vec<Entry>,
    free: Vec<EntryId>,
    /// Entries in the cache of each switch.
    cached: Vec<u32>,
    /// Entries of each switch.
    held: Vec<u32>,
    /// The most entries that a switch ever had.
    pub peak: u32,
    vfids: u32,
    bucket: u32,
    cache: u32,
    /// Flows that went to the cache.
    pub cache_uses: u64,
}

impl Table {
    /// Tables for `switches` switches.
    pub fn new(switches: usize, vfids: u32, bucket: u32, cache: u32) -> Table {
        Table {
            buckets: vec![NONE; switches * vfids as usize],
            entries: Vec::new(),
            free: Vec::new(),
            cached: vec![0; switches],
            held: vec![0; switches],
            peak: 0,
            vfids,
            bucket,
            cache,
            cache_uses: 0,
        }
    }

    fn place(&self, switch: u32, vfid: u16) -> usize {
        switch as usize * self.vfids as usize + vfid as usize
    }

    /// The entry of a flow.
    #[inline]
    pub fn find(&self, switch: u32, vfid: u16, in_port: u32, lane: u32) -> Option<EntryId> {
        let mut id = self.buckets[self.place(switch, vfid)];
        while id != NONE {
            let entry = &self.entries[id as usize];
            if entry.in_port == in_port && entry.lane == lane {
                return Some(id);
            }
            id = entry.next;
        }
        None
    }

    /// Whether a bucket has room.
    fn bucket_has_room(&self, switch: u32, vfid: u16) -> bool {
        let (mut id, mut inside) = (self.buckets[self.place(switch, vfid)], 0);
        while id != NONE {
            inside += !self.entries[id as usize].cached as u32;
            id = self.entries[id as usize].next;
        }
        inside < self.bucket
    }

    /// Whether a flow's bucket or else the cache has room for one more.
    #[inline]
    pub fn has_room(&self, switch: u32, vfid: u16) -> bool {
        self.cached[switch as usize] < self.cache || self.bucket_has_room(switch, vfid)
    }

    /// Makes an entry, for which there must be room.
    pub fn insert(&mut self, switch: u32, vfid: u16, in_port: u32, lane: u32, flow: u32) -> EntryId {
        let place = self.place(switch, vfid);
        let cached = !self.bucket_has_room(switch, vfid);
        if cached {
            self.cached[switch as usize] += 1;
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
        self.held[switch as usize] += 1;
        self.peak = self.peak.max(self.held[switch as usize]);
        id
    }

    /// Adds what the tables of other switches have counted.
    pub fn merge(&mut self, other: &Table) {
        self.peak = self.peak.max(other.peak);
        self.cache_uses += other.cache_uses;
    }

    /// Forgets an entry.
    pub fn remove(&mut self, switch: u32, id: EntryId) {
        let entry = self.entries[id as usize];
        let place = self.place(switch, entry.vfid);
        if self.buckets[place] == id {
            self.buckets[place] = entry.next;
        } else {
            let mut before = self.buckets[place];
            while self.entries[before as usize].next != id {
                before = self.entries[before as usize].next;
            }
            self.entries[before as usize].next = entry.next;
        }
        self.cached[switch as usize] -= entry.cached as u32;
        self.held[switch as usize] -= 1;
        self.entries[id as usize].turn += 1;
        self.free.push(id);
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
        let mut table = Table::new(2, 16, 4, 2);
        let ids: Vec<_> = (0..6).map(|port| table.insert(1, 7, port, 9, 0)).collect();
        assert_eq!((table.cache_uses, table.has_room(1, 7)), (2, false));
        assert!(table.has_room(0, 7) && table.has_room(1, 8), "others have room");
        table.insert(0, 7, 6, 9, 0);
        table.insert(1, 8, 6, 9, 0);
        (0..6).for_each(|port| assert_eq!(table.find(1, 7, port, 9), Some(ids[port as usize])));
        assert_eq!((table.find(1, 7, 0, 8), table.find(0, 7, 0, 9), table.find(1, 6, 0, 9)), (None, None, None));
        // Room in the bucket is used again, and an entry that comes back is known to be another.
        let turn = table[ids[0]].turn;
        table.remove(1, ids[0]);
        assert_eq!(table.find(1, 7, 0, 9), None);
        let again = table.insert(1, 7, 0, 9, 0);
        assert_eq!((again, table.cache_uses), (ids[0], 2));
        assert!(table[again].turn > turn);
        assert_eq!(table.len(), 8);
        ids[1..].iter().for_each(|&id| table.remove(1, id));
        (1..6).for_each(|port| assert_eq!(table.find(1, 7, port, 9), None));
        assert_eq!(table.find(1, 7, 0, 9), Some(again));
    }
}
