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

/// L'Ecuyer's MRG32k3a: a generator with 2^127 numbers between one stream and the next, which ns-3 uses.
#[derive(Clone, Debug, PartialEq)]
struct Mrg {
    one: [u64; 3],
    two: [u64; 3],
}

type Matrix = [[u64; 3]; 3];
const M1: u64 = 4_294_967_087;
const M2: u64 = 4_294_944_443;
const A1: Matrix = [[0, 1, 0], [0, 0, 1], [M1 - 810_728, 1_403_580, 0]];
const A2: Matrix = [[0, 1, 0], [0, 0, 1], [M2 - 1_370_589, 0, 527_612]];

fn apply(a: &Matrix, v: [u64; 3], m: u64) -> [u64; 3] {
    // A sum of three products stays below 2^66; reduced one by one it fits.
    std::array::from_fn(|i| (0..3).fold(0, |sum, j| (sum + a[i][j] * v[j] % m) % m))
}

fn square(a: &Matrix, m: u64) -> Matrix {
    let column = |j: usize| apply(a, [a[0][j], a[1][j], a[2][j]], m);
    let columns = [column(0), column(1), column(2)];
    std::array::from_fn(|i| std::array::from_fn(|j| columns[j][i]))
}

/// The matrices that skip 2^power numbers.
fn skip(power: u32) -> (Matrix, Matrix) {
    (0..power).fold((A1, A2), |(a, b), _| (square(&a, M1), square(&b, M2)))
}

impl Mrg {
    fn advance(&mut self, (a, b): &(Matrix, Matrix)) {
        self.one = apply(a, self.one, M1);
        self.two = apply(b, self.two, M2);
    }

    /// The start of a stream: all seeds 1, substream 1.
    fn stream(number: u64) -> Mrg {
        Mrg::seeded(1, number)
    }

    /// The same with all seeds another number.
    fn seeded(seed: u32, number: u64) -> Mrg {
        let mut state = Mrg { one: [seed as u64; 3], two: [seed as u64; 3] };
        state.advance(&skip(76));
        for bit in 0..64 {
            if number >> bit & 1 == 1 {
                state.advance(&skip(127 + bit));
            }
        }
        state
    }

    fn next(&mut self) -> f64 {
        self.advance(&(A1, A2));
        let (p1, p2) = (self.one[2], self.two[2]);
        let difference = if p1 > p2 { p1 - p2 } else { p1 + M1 - p2 };
        difference as f64 * (1.0 / (M1 + 1) as f64)
    }
}

/// Random numbers as an ns-3 program draws them that makes a new variable for every draw: the first number of one
/// stream after the other. One sequence for the whole run, so only for runs on one thread.
#[derive(Clone, Debug)]
pub struct Consecutive {
    at: Mrg,
    step: (Matrix, Matrix),
}

impl Consecutive {
    /// Draws from stream `first` on.
    pub fn new(first: u64) -> Consecutive {
        Consecutive { at: Mrg::stream(first), step: skip(127) }
    }
    /// Uniform in (0, 1).
    pub fn uniform(&mut self) -> f64 {
        let value = self.at.clone().next();
        self.pass();
        value
    }
    /// Leaves one stream out.
    pub fn pass(&mut self) {
        self.at.advance(&self.step);
    }
}

/// One stream of the same generator, drawn from again and again.
#[derive(Clone, Debug)]
pub struct Fixed(Mrg);

impl Fixed {
    /// The stream a program asks for by number, apart from those handed out one after the other.
    pub fn new(number: u64) -> Fixed {
        Fixed::seeded(1, number)
    }
    /// One of those that are handed out one after the other, by its number.
    pub fn handed_out(number: u64) -> Fixed {
        Fixed(Mrg::stream(number))
    }
    /// One that is asked for by number, of a generator with that seed.
    pub fn seeded(seed: u32, number: u64) -> Fixed {
        Fixed(Mrg::seeded(seed, (1 << 63) + number))
    }
    /// Uniform in (0, 1).
    pub fn uniform(&mut self) -> f64 {
        self.0.next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_mrg32k3a() {
        // The published test: all seeds 12345, the first numbers of the first two streams (package RngStreams).
        let mut state = Mrg { one: [12_345; 3], two: [12_345; 3] };
        let mut second = state.clone();
        second.advance(&skip(127));
        assert!((state.next() - 0.127_011_122_046_577).abs() < 1e-12);
        assert!((state.next() - 0.318_527_565_396_794).abs() < 1e-12);
        assert!((second.next() - 0.759_581_862_401_2).abs() < 1e-9);
    }

    #[test]
    fn consecutive_draws_are_the_first_of_each_stream() {
        let mut draws = Consecutive::new(5);
        let expected: Vec<f64> = (5..9).map(|n| Mrg::stream(n).next()).collect();
        assert_eq!((draws.uniform(), draws.uniform()), (expected[0], expected[1]));
        draws.pass();
        assert_eq!(draws.uniform(), expected[3]);
    }

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
