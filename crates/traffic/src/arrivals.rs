//! When messages come: processes with a given mean gap.
//!
//! Logarithms, exponentials and cosines come from `libm`, which computes them alike on every machine: a start must not
//! depend on whose C library was at hand.

use engine::Stream;

/// How the gaps between arrivals are distributed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// Gaps are exponential.
    Poisson,
    /// Gaps are lognormal: their logarithm has this standard deviation. Larger is burstier.
    Lognormal(f64),
    /// All gaps are the same.
    Fixed,
}

/// The largest σ of lognormal gaps. With more, hardly any run would come near the mean.
pub const MAX_SIGMA: f64 = 5.0;

/// The longest mean gap in picoseconds: far beyond every run, and far within what can be computed with.
pub(crate) const MAX_GAP: f64 = 1e30;

impl Arrivals {
    /// A gap at random, in units of the mean gap.
    pub fn gap(self, random: &mut Stream) -> f64 {
        match self {
            Arrivals::Poisson => exponential(random),
            // The mean of exp(μ + σZ) is exp(μ + σ²/2): it is 1 with μ = -σ²/2.
            Arrivals::Lognormal(sigma) => libm::exp(sigma * (normal(random) - sigma / 2.0)),
            Arrivals::Fixed => 1.0,
        }
    }

    /// From any instant to the next arrival, in units of the mean gap.
    ///
    /// An instant falls into a gap with a probability in proportion to its length, and anywhere within it alike. A sender that begins
    /// with this wait sees a process that has always been going on: the mean number of arrivals in *every* window is its
    /// length over the mean gap. Beginning with a gap instead would give, with σ = 2, 26 arrivals too many.
    pub fn wait(self, random: &mut Stream) -> f64 {
        match self {
            // Without memory.
            Arrivals::Poisson => exponential(random),
            // The density x·f(x) of a lognormal f is lognormal too, with μ + σ² for μ.
            Arrivals::Lognormal(sigma) => {
                let gap = libm::exp(sigma * (normal(random) + sigma / 2.0));
                random.uniform() * gap
            }
            Arrivals::Fixed => random.uniform(),
        }
    }
}

fn exponential(random: &mut Stream) -> f64 {
    -libm::log(1.0 - random.uniform())
}

/// A standard normal number, after Box and Muller.
fn normal(random: &mut Stream) -> f64 {
    let radius = (2.0 * exponential(random)).sqrt();
    radius * libm::cos(2.0 * std::f64::consts::PI * random.uniform())
}

/// Time in picoseconds that goes on in steps of fractions: they add up without drift.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock {
    whole: u64,
    part: f64,
}

impl Clock {
    pub fn new(at: u64) -> Clock {
        Clock { whole: at, part: 0.0 }
    }

    /// Goes on, up to the end of time.
    pub fn advance(&mut self, step: f64) {
        let sum = self.part + step;
        let whole = sum.floor();
        self.whole = self.whole.saturating_add(whole as u64);
        self.part = sum - whole;
    }

    /// The picosecond it is in.
    pub fn now(&self) -> u64 {
        self.whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Arrivals; 5] = [
        Arrivals::Poisson,
        Arrivals::Fixed,
        Arrivals::Lognormal(0.5),
        Arrivals::Lognormal(1.0),
        Arrivals::Lognormal(2.0),
    ];

    /// The variance of a gap of mean 1.
    fn variance(arrivals: Arrivals) -> f64 {
        match arrivals {
            Arrivals::Poisson => 1.0,
            Arrivals::Lognormal(sigma) => (sigma * sigma).exp() - 1.0,
            Arrivals::Fixed => 0.0,
        }
    }

    #[test]
    fn the_mean_gap_is_what_was_asked_for() {
        const DRAWS: usize = 1_000_000;
        for (owner, arrivals) in (0..).zip(ALL) {
            let mut random = Stream::new(1, owner);
            let mean = (0..DRAWS).map(|_| arrivals.gap(&mut random)).sum::<f64>() / DRAWS as f64;
            // Four standard errors of the mean: 0.4 % for Poisson, 2.9 % for σ = 2.
            let error = 4.0 * (variance(arrivals) / DRAWS as f64).sqrt();
            assert!((mean - 1.0).abs() <= error, "{arrivals:?}: {mean} is not 1 within {error}");
        }
    }

    #[test]
    fn the_logarithms_of_lognormal_gaps_are_normal_with_their_sigma() {
        const DRAWS: usize = 200_000;
        for sigma in [0.5, 1.0, 2.0] {
            let mut random = Stream::new(3, 0);
            let logs: Vec<f64> = (0..DRAWS).map(|_| Arrivals::Lognormal(sigma).gap(&mut random).ln()).collect();
            let mean = logs.iter().sum::<f64>() / DRAWS as f64;
            let moment = |k: i32| logs.iter().map(|log| ((log - mean) / sigma).powi(k)).sum::<f64>() / DRAWS as f64;
            assert!((mean + sigma * sigma / 2.0).abs() < 4.0 * sigma / (DRAWS as f64).sqrt(), "σ {sigma}: μ {mean}");
            // The standard error of a variance is √(2/n), of the third moment √(15/n) at most, of the fourth √(96/n).
            let error = |of: f64| 4.0 * (of / DRAWS as f64).sqrt();
            assert!((moment(2) - 1.0).abs() < error(2.0), "σ {sigma}: {}", moment(2));
            assert!(moment(3).abs() < error(15.0), "σ {sigma}: {}", moment(3));
            assert!((moment(4) - 3.0).abs() < error(96.0), "σ {sigma}: {}", moment(4));
        }
    }

    #[test]
    fn exponential_gaps_are_exponential() {
        const DRAWS: usize = 200_000;
        let mut random = Stream::new(5, 0);
        let gaps: Vec<f64> = (0..DRAWS).map(|_| Arrivals::Poisson.gap(&mut random)).collect();
        for at in [0.01f64, 0.1, 0.5, 1.0, 2.0, 4.0] {
            let share = gaps.iter().filter(|gap| **gap <= at).count() as f64 / DRAWS as f64;
            assert!((share - (1.0 - (-at).exp())).abs() < 4.0 * 0.5 / (DRAWS as f64).sqrt(), "at {at}: {share}");
        }
    }

    #[test]
    fn arrivals_in_a_window_are_as_many_as_its_mean_gaps_from_the_beginning() {
        // The mean over many beginnings of the number of arrivals within 20 mean gaps.
        const RUNS: usize = 40_000;
        const WINDOW: f64 = 20.0;
        for (owner, arrivals) in (0..).zip(ALL) {
            let mut random = Stream::new(9, owner);
            let counts: Vec<f64> = (0..RUNS)
                .map(|_| {
                    let (mut at, mut count) = (arrivals.wait(&mut random), 0.0);
                    while at < WINDOW {
                        count += 1.0;
                        at += arrivals.gap(&mut random);
                    }
                    count
                })
                .collect();
            let mean = counts.iter().sum::<f64>() / RUNS as f64;
            let spread = counts.iter().map(|count| (count - mean) * (count - mean)).sum::<f64>() / RUNS as f64;
            let error = 4.0 * (spread / RUNS as f64).sqrt();
            assert!((mean - WINDOW).abs() <= error.max(1e-9), "{arrivals:?}: {mean} within {error}");
        }
    }

    #[test]
    fn fractions_of_a_picosecond_are_not_lost() {
        let mut clock = Clock::new(5);
        (0..3_000_000).for_each(|_| clock.advance(1.0 / 3.0));
        assert!((1_000_004..=1_000_005).contains(&clock.now()), "{}", clock.now());
        clock.advance(f64::MAX);
        assert_eq!(clock.now(), u64::MAX);
    }

    #[test]
    fn the_functions_behind_it_give_these_very_bits() {
        let mut random = Stream::new(1, 0);
        let gaps = [Arrivals::Poisson.gap(&mut random), Arrivals::Lognormal(2.0).gap(&mut random)];
        let wait = Arrivals::Lognormal(2.0).wait(&mut random);
        assert_eq!(
            [gaps[0], gaps[1], wait].map(f64::to_bits),
            [4_610_119_094_716_745_946, 4_581_658_551_175_181_539, 4_584_093_797_501_465_247]
        );
    }
}
