//! What a sender's ToR makes of the traffic it sends towards one host (§3.4).

use engine::Time;
use std::collections::HashMap;

/// Discounting rate estimators by destination: bytes seen in about the last `window`.
pub(super) struct Estimator {
    /// A count loses an eighth of itself every eighth of the window.
    step: Time,
    /// Bytes, and the step up to which they are discounted.
    counts: HashMap<(u32, u8), (u64, u64)>,
}

impl Estimator {
    /// Estimators that look back so far.
    pub(super) fn new(window: Time) -> Estimator {
        Estimator { step: Time((window.0 / 8).max(1)), counts: HashMap::new() }
    }

    /// Counts a packet to a host, and gives the bytes that went there lately.
    pub(super) fn add(&mut self, host: u32, class: u8, size: u64, now: Time) -> u64 {
        let step = now.0 / self.step.0;
        let (bytes, last) = self.counts.entry((host, class)).or_insert((0, step));
        while *last < step && *bytes > 0 {
            *bytes -= bytes.div_ceil(8);
            *last += 1;
        }
        *last = step;
        *bytes += size;
        *bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_fades_by_an_eighth_every_eighth_of_the_window() {
        let mut estimator = Estimator::new(Time::from_us(8));
        assert_eq!(estimator.add(1, 0, 64_000, Time::from_us(0)), 64_000);
        assert_eq!(estimator.add(1, 0, 0, Time::from_ns(999)), 64_000);
        assert_eq!(estimator.add(1, 0, 0, Time::from_us(1)), 56_000);
        assert_eq!(estimator.add(1, 0, 0, Time::from_us(3)), 42_875);
        assert_eq!(estimator.add(2, 0, 10, Time::from_us(3)), 10, "another host");
        assert_eq!(estimator.add(1, 0, 0, Time::from_ms(1)), 0);
    }

    #[test]
    fn a_steady_stream_counts_as_what_its_link_carries_in_the_window() {
        // 12 500 B every microsecond are 100 Gb/s: 125 KB in 10 us.
        let mut estimator = Estimator::new(Time::from_us(10));
        let last = (0..1_000).map(|us| estimator.add(1, 0, 12_500, Time::from_us(us))).last();
        assert!(last.is_some_and(|bytes| (105_000..=125_000).contains(&bytes)), "{last:?}");
    }
}
