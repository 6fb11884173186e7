//! What a sender's ToR remembers of congestion elsewhere (§3.4).

use engine::Time;

/// The ends of pauses by congested destination, in a hash-addressed table without keys: two destinations with the
/// same place are one.
pub(super) struct Cache {
    /// None before the first pause.
    ends: Vec<Time>,
    entries: u32,
    /// When the last of all pauses ends.
    latest: Time,
    /// Places of pauses that have not ended, and of some that have.
    live: Vec<u32>,
    /// The most pauses that it ever held at once.
    pub(super) peak: u64,
}

impl Cache {
    /// A table of so many places.
    pub(super) fn new(entries: u32) -> Cache {
        Cache { ends: Vec::new(), entries, latest: Time::ZERO, live: Vec::new(), peak: 0 }
    }

    /// Where a destination's address and class lead.
    fn place(&self, address: u32, class: u8) -> usize {
        let key = (address as u64) << 8 | class as u64;
        (((key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) * self.entries as u64) >> 32) as usize
    }

    /// Remembers that traffic to `address` is to wait until `end`, or longer if that was known.
    pub(super) fn store(&mut self, address: u32, class: u8, now: Time, end: Time) {
        if self.ends.is_empty() {
            self.ends = vec![Time::ZERO; self.entries as usize];
        }
        let place = self.place(address, class);
        if self.ends[place] <= now {
            self.live.retain(|&place| self.ends[place as usize] > now);
            self.live.push(place as u32);
            self.peak = self.peak.max(self.live.len() as u64);
        }
        self.ends[place] = self.ends[place].max(end);
        self.latest = self.latest.max(end);
    }

    /// How long traffic to `address` is still to wait.
    #[inline]
    pub(super) fn left(&self, address: u32, class: u8, now: Time) -> Time {
        if self.latest <= now {
            return Time::ZERO;
        }
        self.ends[self.place(address, class)].saturating_sub(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: fn(u64) -> Time = Time::from_us;

    #[test]
    fn the_later_end_counts_and_passes() {
        let mut cache = Cache::new(32_768);
        assert_eq!(cache.left(5, 0, US(0)), US(0));
        cache.store(5, 0, US(1), US(20));
        cache.store(5, 0, US(2), US(10));
        assert_eq!(cache.left(5, 0, US(4)), US(16), "a shorter pause does not shorten it");
        cache.store(5, 0, US(4), US(30));
        assert_eq!(cache.left(5, 0, US(4)), US(26));
        assert_eq!(cache.left(5, 1, US(4)), US(0), "another class of the same host");
        assert_eq!(cache.left(6, 0, US(4)), US(0), "another host");
        assert_eq!((cache.left(5, 0, US(30)), cache.left(5, 0, US(40))), (US(0), US(0)));
        cache.store(5, 0, US(40), US(41));
        assert_eq!(cache.left(5, 0, US(40)), US(1), "an end that has passed is no longer the maximum");
        assert_eq!(cache.peak, 1);
    }

    #[test]
    fn two_destinations_with_the_same_place_are_one() {
        let mut cache = Cache::new(4);
        let other = (1..).find(|&other| cache.place(other, 0) == cache.place(0, 0)).unwrap();
        cache.store(0, 0, US(0), US(10));
        assert_eq!(cache.left(other, 0, US(2)), US(8));
        cache.store(other, 0, US(2), US(20));
        assert_eq!(cache.left(0, 0, US(2)), US(18));
        assert_eq!(cache.peak, 1);
    }

    #[test]
    fn addresses_spread_over_all_places() {
        let cache = Cache::new(64);
        let places: std::collections::HashSet<usize> =
            (0..1000).map(|host| cache.place(0x0b00_0001 + (host << 8), 0)).collect();
        assert_eq!(places.len(), 64);
        assert!(places.iter().all(|&place| place < 64));
    }
}
