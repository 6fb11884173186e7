//! The C library's random numbers, as the GNU one makes them: an additive feedback generator of degree 31.
//!
//! All who draw share one sequence, in the order of events.

use std::sync::{Arc, Mutex, PoisonError};

/// The generator.
#[derive(Clone, Debug)]
pub struct Rand {
    last: [u32; 31],
    at: usize,
}

impl Default for Rand {
    /// As it is if nobody seeds it.
    fn default() -> Rand {
        Rand::seeded(1)
    }
}

impl Rand {
    /// As it is after `srand(seed)`.
    pub fn seeded(seed: u32) -> Rand {
        let mut last = [seed.max(1); 31];
        // The seed is taken for a signed number.
        let mut word = last[0] as i32 as i64;
        for place in &mut last[1..] {
            word = (word * 16_807 % 2_147_483_647 + 2_147_483_647) % 2_147_483_647;
            *place = word as u32;
        }
        // The first three are taken for the latest, too.
        let mut rand = Rand { last, at: 3 };
        (0..310).for_each(|_| _ = rand.draw());
        rand
    }

    /// The next number, of 31 bits.
    pub fn draw(&mut self) -> u32 {
        // The one of 31 draws ago is replaced by the sum of it and the one of 3 draws ago.
        let sum = self.last[self.at].wrapping_add(self.last[(self.at + 28) % 31]);
        self.last[self.at] = sum;
        self.at = (self.at + 1) % 31;
        sum >> 1
    }
}

/// The one sequence that all switches of a run draw from.
#[derive(Clone, Debug, Default)]
pub struct Shared(Arc<Mutex<Rand>>);

impl Shared {
    /// One that begins with this seed.
    pub fn seeded(seed: u32) -> Shared {
        Shared(Arc::new(Mutex::new(Rand::seeded(seed))))
    }

    /// Several draws that nothing comes between.
    pub fn with<T>(&self, draw: impl FnOnce(&mut Rand) -> T) -> T {
        draw(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The remainder of the next number.
    pub fn below(&self, n: usize) -> usize {
        self.with(Rand::draw) as usize % n.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers were printed by a program that was linked with glibc 2.36.
    #[test]
    fn the_dice_are_those_of_the_c_library() {
        let first = |seed| {
            let mut rand = Rand::seeded(seed);
            [(); 4].map(|()| rand.draw())
        };
        assert_eq!(first(1), [1_804_289_383, 846_930_886, 1_681_692_777, 1_714_636_915]);
        SEEDED.iter().for_each(|(seed, drawn)| assert_eq!(first(*seed), *drawn, "seed {seed}"));
        assert_eq!(first(0), first(1));
    }

    const SEEDED: [(u32, [u32; 4]); 3] = [
        (42, [71_876_166, 708_592_740, 1_483_128_881, 907_283_241]),
        (1 << 31, [1_336_741_213, 1_210_407_648, 1_447_044_896, 337_392_383]),
        (u32::MAX, [254_925_627, 1_205_188_300, 366_127_624, 1_401_405_153]),
    ];
}
