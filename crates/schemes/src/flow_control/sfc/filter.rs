//! The filter that keeps a switch from notifying the same sender again and again (§3.2).

use engine::Time;
use fabric::routing::Tuple;

/// A Bloom filter of the flows that were notified lately, emptied at every reset.
pub(super) struct Filter {
    /// One register per hash function, one after the other; none before the first flow.
    words: Vec<u64>,
    /// Bits of one register.
    bits: u32,
    hashes: u32,
    /// Time between resets.
    reset: Time,
    /// Resets so far. It is part of what is hashed, so that two flows taken for one now are not after the next reset
    /// (§4).
    version: u64,
    /// Words that are not zero.
    dirty: Vec<u32>,
    members: u64,
    /// The most flows ever in it.
    pub(super) peak: u64,
}

impl Filter {
    /// A filter of so many bytes.
    pub(super) fn new(bytes: u64, hashes: u32, reset: Time) -> Filter {
        let bits = (bytes * 8 / hashes as u64) as u32;
        Filter { words: Vec::new(), bits, hashes, reset, version: 0, dirty: Vec::new(), members: 0, peak: 0 }
    }

    /// Whether the flow is in it, or seems to be.
    #[cfg(test)]
    pub(super) fn has(&self, tuple: &Tuple, now: Time) -> bool {
        let version = now.0 / self.reset.0;
        let set = |stage: u32| {
            let seed = (version as u32).wrapping_mul(0x9e37_79b9) ^ stage.wrapping_mul(0x85eb_ca6b);
            let place = stage * self.bits + tuple.hash(seed) % self.bits;
            self.words[place as usize / 64] >> (place % 64) & 1 == 1
        };
        version == self.version && !self.words.is_empty() && (0..self.hashes).all(set)
    }

    /// Whether the flow is in it, or seems to be. It is afterwards.
    pub(super) fn insert(&mut self, tuple: &Tuple, now: Time) -> bool {
        let version = now.0 / self.reset.0;
        if version != self.version {
            self.version = version;
            self.members = 0;
            self.dirty.drain(..).for_each(|word| self.words[word as usize] = 0);
        }
        if self.words.is_empty() {
            self.words = vec![0; (self.bits as usize * self.hashes as usize).div_ceil(64)];
        }
        let mut known = true;
        for stage in 0..self.hashes {
            let seed = (version as u32).wrapping_mul(0x9e37_79b9) ^ stage.wrapping_mul(0x85eb_ca6b);
            let place = stage * self.bits + tuple.hash(seed) % self.bits;
            let (word, bit) = (place / 64, 1 << (place % 64));
            let bits = &mut self.words[word as usize];
            if *bits == 0 {
                self.dirty.push(word);
            }
            known &= *bits & bit != 0;
            *bits |= bit;
        }
        if !known {
            self.members += 1;
            self.peak = self.peak.max(self.members);
        }
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tuple(source: u32) -> Tuple {
        Tuple { source, destination: 1, source_port: 2, destination_port: 3 }
    }

    #[test]
    fn a_flow_is_notified_once_between_resets() {
        let mut filter = Filter::new(8192, 3, Time::from_us(5));
        assert!(!filter.insert(&tuple(7), Time::from_us(11)));
        assert!(filter.insert(&tuple(7), Time::from_us(14)));
        assert!(!filter.insert(&tuple(8), Time::from_us(14)));
        assert!(!filter.insert(&tuple(7), Time::from_us(15)), "the reset at 15 us forgets it");
        assert_eq!(filter.peak, 2);
    }

    #[test]
    fn the_version_stops_a_false_positive_from_repeating() {
        // Two hash functions of 16 bits each: with a few flows in it, one more is often taken for a known one.
        let mut filter = Filter::new(4, 2, Time::from_us(1));
        let mut wrong = 0;
        let mut again = 0;
        let mut before = false;
        for version in 0..2_000 {
            let now = Time::from_us(version);
            (0..6).for_each(|flow| _ = filter.insert(&tuple(flow), now));
            let mistaken = filter.insert(&tuple(99), now);
            wrong += mistaken as u32;
            again += (mistaken && before) as u32;
            before = mistaken;
        }
        // (1 - (15/16)^6)² = 10 % of the time, and independently of the time before.
        assert!((100..300).contains(&wrong), "{wrong}");
        assert!(again < wrong / 4, "{again} of {wrong} came after another");
    }
}
