//! Recycling first, then a bitmap: the mixed multipathing of Ultra Ethernet's simulator, and its default (uet-htsim, `mixed`).
//!
//! A sender keeps the entropies of packets that were acknowledged unmarked, in the order in which they came back, and uses each once more. Where it has none,
//! it takes what the [bitmap] gives, which hears of every entropy, too. Other than with [REPS](super::reps) no such entropy is forgotten
//! while a flow lasts, and a timeout freezes nothing.

use super::bitmap;
use engine::{Misfit, Stream, Time};
use fabric::axes::{Counter, Definition, LoadBalancingDef, PathSelector};
use fabric::id::FlowId;
use fabric::view::Site;
use std::collections::{HashMap, VecDeque};

engine::parameters! {
    /// Parameters of mixed multipathing.
    pub struct Params {
        /// Entropies of a flow; a power of two.
        paths: u32 = 64, in 1..=32_768,
        /// The largest penalty of the bitmap.
        most: u32 = 15, in 1..=255,
        /// Penalty of a loss and of a trimmed packet; a mark's is one, a timeout's the largest.
        loss: u32 = 4, in 0..=255,
    }
}

impl Definition for Params {
    fn name(&self) -> &'static str {
        "mixed"
    }
    fn about(&self) -> &'static str {
        "A sender uses the entropies of packets that were acknowledged unmarked once more, and else those of a bitmap. Packets overtake one another."
    }
    fn source(&self) -> &'static str {
        "Ultra Ethernet Consortium, Ultra Ethernet Specification 1.0, 2025; as in its simulator, uet-htsim"
    }
    fn check(&self) -> Result<(), Misfit> {
        super::power_of_two("paths", self.paths)
    }
}

impl LoadBalancingDef for Params {
    fn host(&self, _: &Site<'_>) -> Option<Box<dyn PathSelector>> {
        let Params { paths, most, loss } = *self;
        let bitmap = bitmap::Bitmap::new(bitmap::Params { paths, most, loss });
        Some(Box::new(Mixed { bitmap, back: HashMap::new(), recycled: 0 }))
    }
    fn may_reorder(&self) -> bool {
        true
    }
}

struct Mixed {
    bitmap: bitmap::Bitmap,
    /// By flow, entropies that came back unmarked.
    back: HashMap<FlowId, VecDeque<u16>>,
    recycled: u64,
}

impl PathSelector for Mixed {
    fn next(&mut self, flow: FlowId, own: u16, now: Time, dice: &mut Stream) -> u16 {
        match self.back.get_mut(&flow).and_then(VecDeque::pop_front) {
            Some(entropy) => {
                self.recycled += 1;
                entropy
            }
            None => self.bitmap.next(flow, own, now, dice),
        }
    }
    fn acknowledged(&mut self, flow: FlowId, entropy: u16, marked: bool, now: Time) {
        self.bitmap.acknowledged(flow, entropy, marked, now);
        if !marked {
            self.back.entry(flow).or_default().push_back(entropy);
        }
    }
    fn trimmed(&mut self, flow: FlowId, entropy: u16, now: Time) {
        self.bitmap.trimmed(flow, entropy, now);
    }
    fn lost(&mut self, flow: FlowId, now: Time) {
        self.bitmap.lost(flow, now);
    }
    fn expired(&mut self, flow: FlowId, now: Time) {
        self.bitmap.expired(flow, now);
    }
    fn ended(&mut self, flow: FlowId) {
        self.bitmap.ended(flow);
        self.back.remove(&flow);
    }
    fn counters(&self) -> Vec<Counter> {
        let mut counters = self.bitmap.counters();
        counters.push(Counter::sum("mixed_recycled", self.recycled));
        counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOW: FlowId = FlowId(3);

    #[test]
    fn what_came_back_unmarked_goes_first_and_the_bitmap_skips_what_was_marked() {
        let params = bitmap::Params { paths: 4, ..bitmap::Params::default() };
        let mut mixed = Mixed { bitmap: bitmap::Bitmap::new(params), back: HashMap::new(), recycled: 0 };
        let mut dice = Stream::new(1, 1);
        let mut next = |mixed: &mut Mixed| mixed.next(FLOW, 0, Time::ZERO, &mut dice);
        let first: Vec<u16> = (0..4).map(|_| next(&mut mixed)).collect();
        mixed.acknowledged(FLOW, first[2], false, Time::ZERO);
        mixed.acknowledged(FLOW, first[0], true, Time::ZERO);
        mixed.acknowledged(FLOW, first[3], false, Time::ZERO);
        assert_eq!((next(&mut mixed), next(&mut mixed)), (first[2], first[3]));
        let round: Vec<u16> = (0..3).map(|_| next(&mut mixed)).collect();
        assert!(!round.contains(&first[0]), "the marked one is skipped once");
        assert_eq!(mixed.recycled, 2);
        mixed.ended(FLOW);
        assert!(mixed.back.is_empty());
    }
}
