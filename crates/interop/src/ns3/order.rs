//! The order in which the reference goes through the queue pairs of a host when it lists them anew: that of a hash map of the GNU C++ library,
//! which keeps all entries in one list, those of a bucket together.

use fabric::id::FlowId;
use fabric::setup::{FlowSpec, Presence, Turn};

/// Buckets of the map as it grows: it is rebuilt when there would be more entries than buckets.
const BUCKETS: [u64; 15] = [1, 13, 29, 59, 127, 257, 541, 1_109, 2_357, 5_087, 10_273, 20_753, 42_043, 85_229, 172_933];

/// A map from keys to flows: its entries in the order in which it gives them.
#[derive(Default)]
struct Map {
    entries: Vec<(u64, FlowId)>,
    size: usize,
}

impl Map {
    fn buckets(&self) -> u64 {
        BUCKETS[self.size]
    }

    /// A new entry is the first of its bucket, and a new bucket the first of all.
    fn place(&mut self, entry: (u64, FlowId)) {
        let bucket = |key: u64| key % self.buckets();
        let same = self.entries.iter().position(|&(key, _)| bucket(key) == bucket(entry.0));
        self.entries.insert(same.unwrap_or(0), entry);
    }

    fn insert(&mut self, key: u64, flow: FlowId) {
        if self.entries.len() as u64 + 1 > self.buckets() && self.size + 1 < BUCKETS.len() {
            self.size += 1;
            std::mem::take(&mut self.entries).into_iter().for_each(|entry| self.place(entry));
        }
        self.place((key, flow));
    }

    fn remove(&mut self, key: u64) {
        self.entries.retain(|&(other, _)| other != key);
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
    map.entries.into_iter().map(|(_, flow)| flow).collect()
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

    const ORDER: [u32; 32] = [
        38, 14, 15, 13, 11, 10, 39, 8, 9, 36, 5, 6, 34, 4, 3, 31, 1, 29, 0, 28, 16, 18, 19, 20, 21, 23, 24, 25, 26, 30,
        33, 35,
    ];
}
