//! Random streams that belong to a node, not to the program.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A reproducible stream of random numbers, derived from the run's seed and an owner's number.
#[derive(Clone, Debug)]
pub struct Stream(Xoshiro256PlusPlus);

/// The finaliser of SplitMix64: spreads consecutive numbers over the whole range.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Stream {
    /// The stream of `owner` in the run seeded with `seed`. Streams of different owners are unrelated.
    pub fn new(seed: u64, owner: u64) -> Stream {
        let key = mix(mix(seed.wrapping_add(0x9e37_79b9_7f4a_7c15)) ^ mix(owner.wrapping_add(0xd1b5_4a32_d192_ed03)));
        Stream(Xoshiro256PlusPlus::seed_from_u64(key))
    }

    /// The next 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in [0, 1) with 53 bits.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform in `0..n`; `n` must be above zero.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        ((self.bits() as u128 * n as u128) >> 64) as u64
    }

    /// True with probability `p`.
    #[inline]
    pub fn chance(&mut self, p: f64) -> bool {
        self.uniform() < p
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_depends_on_seed_and_owner_only() {
        let draw = |seed, owner| Stream::new(seed, owner).bits();
        assert_eq!(draw(1, 2), draw(1, 2));
        assert_ne!(draw(1, 2), draw(2, 1));
        assert_ne!(draw(0, 0), draw(0, 1));
    }

    #[test]
    fn uniform_draws_fill_the_unit_interval_evenly() {
        let mut stream = Stream::new(7, 0);
        let mean = (0..100_000).map(|_| stream.uniform()).sum::<f64>() / 1e5;
        assert!((mean - 0.5).abs() < 0.005, "mean {mean}");
        assert!((0..1000).all(|_| stream.below(3) < 3));
    }
}
