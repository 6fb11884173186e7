//! The order in which the reference goes through the queue pairs of a host when it lists them anew: that of a hash map of the GNU C++ library,
//! which keeps all entries in one list, those of a bucket together.

use fabric::id::FlowId;
use fabric::setup::{FlowSpec, Presence, Turn};
use std::collections::HashMap;

/// Buckets of the map as it grows: it is rebuilt when there would be more entries than buckets.
const BUCKETS: [u64; 22] = [
    1, 13, 29, 59, 127, 257, 541, 1_109, 2_357, 5_087, 10_273, 20_753, 42_043, 85_229, 172_933, 351_061, 712_697,
    1_447_153, 2_938_679, 5_967_347, 12_117_689, 24_607_243,
];

/// No entry.
const NONE: u32 = u32::MAX;

/// A map from keys to flows: a list in the order in which it gives them.
struct Map {
    /// Key, flow, and the entries before and behind.
    entries: Vec<(u64, FlowId, u32, u32)>,
    /// Where entries are, by key.
    places: HashMap<u64, u32>,
    /// The first entry of each bucket that has any.
    heads: HashMap<u64, u32>,
    first: u32,
    size: usize,
}

impl Default for Map {
    fn default() -> Map {
        Map { entries: Vec::new(), places: HashMap::new(), heads: HashMap::new(), first: NONE, size: 0 }
    }
}

impl Map {
    fn bucket(&self, key: u64) -> u64 {
        key % BUCKETS[self.size]
    }

    fn list(&self) -> impl Iterator<Item = u32> {
        let next = |at: u32| (at != NONE).then_some(at);
        std::iter::successors(next(self.first), move |&at| next(self.entries[at as usize].3))
    }

    /// A new entry is the first of its bucket, and a new bucket the first of all.
    fn place(&mut self, entry: u32) {
        let bucket = self.bucket(self.entries[entry as usize].0);
        let behind = self.heads.insert(bucket, entry).unwrap_or(self.first);
        let before = if behind == NONE { NONE } else { self.entries[behind as usize].2 };
        (self.entries[entry as usize].2, self.entries[entry as usize].3) = (before, behind);
        self.join(before, entry);
        self.join(entry, behind);
    }

    /// Makes two entries neighbours; one of them may be an end of the list.
    fn join(&mut self, before: u32, behind: u32) {
        match before {
            NONE => self.first = behind,
            _ => self.entries[before as usize].3 = behind,
        }
        if behind != NONE {
            self.entries[behind as usize].2 = before;
        }
    }

    fn insert(&mut self, key: u64, flow: FlowId) {
        if self.places.len() as u64 + 1 > BUCKETS[self.size] && self.size + 1 < BUCKETS.len() {
            self.size += 1;
            let all: Vec<u32> = self.list().collect();
            self.heads.clear();
            self.first = NONE;
            all.into_iter().for_each(|entry| self.place(entry));
        }
        let entry = self.entries.len() as u32;
        self.entries.push((key, flow, NONE, NONE));
        self.places.insert(key, entry);
        self.place(entry);
    }

    fn remove(&mut self, key: u64) {
        let Some(entry) = self.places.remove(&key) else { return };
        let (_, _, before, behind) = self.entries[entry as usize];
        let bucket = self.bucket(key);
        if self.heads.get(&bucket) == Some(&entry) {
            match behind {
                at if at != NONE && self.bucket(self.entries[at as usize].0) == bucket => {
                    self.heads.insert(bucket, at);
                }
                _ => drop(self.heads.remove(&bucket)),
            }
        }
        self.join(before, behind);
    }
}

/// The key of a queue pair: destination, source port and priority, which is the flow's tag.
fn key(flow: &FlowSpec) -> u64 {
    (flow.tuple.destination as u64) << 32 | (flow.tuple.source_port as u64) << 16 | flow.tag as u64
}

/// The flows that are there after all these turns, in the reference's order.
pub fn listed(turns: &[Turn<'_>]) -> Vec<FlowId> {
    order(turns, key)
}

/// The same in the order of ConWeave's simulator, whose keys have the destination port, too.
pub fn listed_by_both_ports(turns: &[Turn<'_>]) -> Vec<FlowId> {
    order(turns, |flow| key(flow) | flow.tuple.destination_port as u64)
}

fn order(turns: &[Turn<'_>], key: impl Fn(&FlowSpec) -> u64) -> Vec<FlowId> {
    let mut map = Map::default();
    for &(flow, spec, presence) in turns {
        match presence {
            Presence::Begins => map.insert(key(spec), flow),
            Presence::Ends => map.remove(key(spec)),
        }
    }
    map.list().map(|entry| map.entries[entry as usize].1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::Time;

    /// Forty flows to three hosts, one in five of which ends before the last begins. The order was printed by a program that was built with
    /// GCC 12.
    #[test]
    fn flows_are_listed_as_a_map_of_the_c_plus_plus_library_has_them() {
        let spec = |i: u32| {
            let mut spec = FlowSpec::plain(0, 9, 1 + i % 3, 1, Time::ZERO);
            (spec.tuple.source_port, spec.tag) = (10_000 + (i / 3) as u16, 3);
            spec
        };
        let specs: Vec<FlowSpec> = (0..40).map(spec).collect();
        let mut turns = Vec::new();
        for i in 0..40 {
            turns.push((FlowId(i), &specs[i as usize], Presence::Begins));
            if i % 5 == 4 {
                turns.push((FlowId(i - 2), &specs[i as usize - 2], Presence::Ends));
            }
        }
        let order: Vec<u32> = listed(&turns).into_iter().map(|flow| flow.0).collect();
        assert_eq!(order, ORDER);
    }

    /// More than fit the buckets that a map of 172 933 entries has. The sum was printed by a program that was built with GCC 12.
    #[test]
    fn a_host_may_have_any_number_of_flows() {
        let spec = |i: u32| {
            let mut spec = FlowSpec::plain(0, 9, 1, 1, Time::ZERO);
            spec.tuple.destination = 0x0b00_0001 + i % 97 * 256;
            (spec.tuple.source_port, spec.tag) = ((10_000 + i / 97) as u16, 3);
            spec
        };
        let specs: Vec<FlowSpec> = (0..400_000).map(spec).collect();
        let mut turns = Vec::new();
        for i in 0..400_000 {
            turns.push((FlowId(i), &specs[i as usize], Presence::Begins));
            if i % 5 == 4 {
                turns.push((FlowId(i - 2), &specs[i as usize - 2], Presence::Ends));
            }
        }
        let order = listed(&turns);
        let sum = order.iter().fold(0u64, |sum, flow| sum.wrapping_mul(1_000_003).wrapping_add(flow.0 as u64));
        assert_eq!((order.len(), sum), (320_000, 0x2591_2ff5_9fcf_3c14));
    }

    const ORDER: [u32; 32] = [
        38, 14, 15, 13, 11, 10, 39, 8, 9, 36, 5, 6, 34, 4, 3, 31, 1, 29, 0, 28, 16, 18, 19, 20, 21, 23, 24, 25, 26, 30,
        33, 35,
    ];
}
