//! How long bits take: exactly, or as a coarser simulator's clock would have it.

use engine::{Rate, Time};

engine::choice! {
    /// The grain of time that durations are rounded to.
    pub enum Clock {
        /// Picoseconds, rounded up, so that no link is faster than its rate.
        Exact = "exact",
        /// Whole nanoseconds, truncated, with the floating-point detour of ns-3: links come out up to 1 ns
        /// per packet fast. For comparing with that simulator only.
        Nanoseconds = "ns-3",
    }
}

impl Clock {
    /// The time `bytes` take at `rate`, which must be above zero.
    #[inline]
    pub fn duration(self, bytes: u64, rate: Rate) -> Time {
        match self {
            Clock::Exact => {
                if bytes < 1 << 21 {
                    Time((bytes * 8_000_000_000_000).div_ceil(rate.0))
                } else {
                    rate.time_for(bytes)
                }
            }
            Clock::Nanoseconds => Time::from_ns(whole_ns((bytes * 8) as f64 / rate.0 as f64)),
        }
    }
}

/// Seconds as a double, to whole nanoseconds, through a 64.64 fixed-point number: a value that is an exact number of
/// nanoseconds usually loses its last one in between.
pub fn whole_ns(seconds: f64) -> u64 {
    let whole = seconds.floor();
    let fraction = ((seconds - whole) * 18_446_744_073_709_551_616.0) as u64;
    whole as u64 * 1_000_000_000 + ((fraction as u128 * 1_000_000_000) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_time_rounds_up_to_a_picosecond() {
        assert_eq!(Clock::Exact.duration(1048, Rate::from_gbps(100)), Time(83_840));
        assert_eq!(Clock::Exact.duration(1, Rate::from_gbps(56)), Time(143));
        assert_eq!(Clock::Exact.duration(1 << 30, Rate::from_gbps(1)), Rate::from_gbps(1).time_for(1 << 30));
    }

    #[test]
    fn the_coarse_clock_truncates_as_its_model_does() {
        let at = |bytes| Clock::Nanoseconds.duration(bytes, Rate::from_gbps(100)).ns();
        assert_eq!((at(1048), at(60), at(43)), (83, 4, 3));
        // 2.002 s in a double is a hair less than it says; the reference starts that flow a nanosecond early.
        assert_eq!(whole_ns(2.002), 2_001_999_999);
        assert_eq!(whole_ns(2.004), 2_004_000_000);
    }
}
