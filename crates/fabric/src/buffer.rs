//! A switch's shared packet memory, as ingress accounting sees it.
//!
//! Every (ingress port, class) owns a small *reserve*. Beyond it, bytes come out of the *shared* pool, up to a
//! dynamic threshold: a fraction α of what is still free. Beyond that they go into the port's *headroom*, which
//! exists to hold what is in flight while a pause travels upstream, and beyond that into a headroom that all share. A
//! packet that fits nowhere is dropped.
//!
//! A scheme may split an (ingress port, class) into two groups with an account each.
//!
//! Memory may be given out in *cells*: a packet takes whole ones, and all that is counted here are the bytes of cells.

/// What one (ingress port, class) holds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Account {
    /// Bytes in reserve and shared pool.
    pub bytes: u64,
    /// Bytes in headroom.
    pub headroom: u32,
    /// Bytes in the headroom that all accounts of a switch share.
    pub global: u32,
    /// What it may hold.
    pub share: Share,
    /// The scheme has asked the neighbour to stop.
    pub paused: bool,
}

impl Account {
    /// An empty account.
    pub fn new(share: Share) -> Account {
        Account { share, ..Account::default() }
    }

    /// All bytes that it holds.
    #[inline]
    pub fn total(&self) -> u64 {
        self.bytes + self.headroom as u64 + self.global as u64
    }
}

/// A port's share of its switch's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Share {
    /// α in units of 1/65536: the dynamic threshold is α times the free shared memory.
    pub alpha: u32,
    /// Bytes of headroom of each of the port's classes.
    pub headroom: u32,
}

/// One in α's fixed-point form.
pub const ALPHA_ONE: u32 = 1 << 16;

/// The packet memory of one switch.
#[derive(Clone, Debug, Default)]
pub struct Buffer {
    /// Bytes that may be held in the shared pool: the memory less all headroom and reserve. `None`: no limit.
    pub pool: Option<u64>,
    /// Bytes of the shared pool in use.
    pub shared: u64,
    /// Bytes of the headroom that all accounts share, and how many of them are in use.
    pub global: (u64, u64),
    /// Bytes held in all.
    pub used: u64,
    /// The most held since this was last looked at.
    pub watermark: u64,
    /// The most ever held before that.
    pub peak: u64,
    /// What one account may take of the pool, whatever is free; `None` for a dynamic threshold.
    pub ingress_part: Option<u64>,
    /// What one egress queue may hold, whatever is free.
    pub egress_part: Option<u64>,
    /// Guaranteed to every (ingress port, class).
    pub reserve: u64,
    /// A paused account may resume when it is this far under its threshold.
    pub resume_gap: u64,
    /// As long as no more of the shared pool is in use than this …
    pub lull: u64,
    /// … every account below this many bytes, with the packet at hand, is [calm](Buffer::calm), if it has nothing in headroom. Zero where that
    /// is not known.
    pub quiet: u64,
    /// Bytes of a cell; 0 or 1 where memory is given out byte by byte.
    pub cell: u64,
}

impl Buffer {
    /// The same with what is calm whatever the account, where none has less than so much of α.
    pub fn with_least_alpha(self, alpha: u32) -> Buffer {
        let lull = self.pool.map_or(u64::MAX, |pool| pool / 8);
        let threshold = match (self.pool, self.ingress_part) {
            (None, _) => u64::MAX >> 1,
            (Some(pool), part) => {
                let free = (pool - lull).saturating_sub(u16::MAX as u64);
                part.filter(|_| free > 0).unwrap_or(((free as u128 * alpha as u128) >> 16) as u64)
            }
        };
        let known = self.cell <= 1 && threshold > 0;
        // The reserve does not count: a packet without headroom must fit as a whole.
        Buffer { lull, quiet: if known { threshold } else { 0 }, ..self }
    }

    /// What a packet takes of the memory.
    #[inline]
    pub fn charge(&self, size: u64) -> u64 {
        if self.cell > 1 { size.next_multiple_of(self.cell) } else { size }
    }

    /// A threshold, in whole cells.
    #[inline]
    fn whole(&self, bytes: u64) -> u64 {
        if self.cell > 1 { bytes - bytes % self.cell } else { bytes }
    }

    /// What one account may take of the shared pool now.
    #[inline]
    pub fn threshold(&self, share: Share) -> u64 {
        match (self.pool, self.ingress_part) {
            (None, _) => u64::MAX,
            (Some(pool), None) => self.whole((pool - self.shared).saturating_mul(share.alpha as u64) >> 16),
            (_, Some(part)) => self.whole(part),
        }
    }

    /// How much one account alone may hold until it is over its threshold; `None` if there is no limit.
    pub fn alone(&self, share: Share) -> Option<u64> {
        let pool = self.pool?;
        let alpha = share.alpha as u128;
        // What it holds is no longer free: x = α (pool - x).
        let dynamic = || (pool as u128 * alpha / (ALPHA_ONE as u128 + alpha)) as u64;
        Some(self.reserve + self.ingress_part.map_or_else(dynamic, |part| part.min(pool)))
    }

    #[inline]
    fn shared_of(&self, account: &Account) -> u64 {
        account.bytes.saturating_sub(self.reserve)
    }

    /// Takes in a packet if it fits.
    #[inline]
    pub fn admit(&mut self, account: &mut Account, size: u64) -> bool {
        let size = self.charge(size);
        // α above one lets an account have more than what is free, but none may have more than all of it.
        let free = self.pool.map_or(u64::MAX, |pool| pool - self.shared);
        let threshold = if size > free { 0 } else { self.threshold(account.share) };
        let headroom_full = size + account.headroom as u64 > account.share.headroom as u64;
        let bytes = account.bytes + size;
        if bytes > self.reserve && headroom_full && size + self.shared_of(account) > threshold {
            return self.admit_last(account, size);
        }
        if bytes <= self.reserve {
            account.bytes = bytes;
        } else if bytes - self.reserve > threshold {
            account.headroom += size as u32;
        } else {
            account.bytes = bytes;
            self.shared += size.min(bytes - self.reserve);
        }
        self.used += size;
        self.watermark = self.watermark.max(self.used);
        true
    }

    /// Takes a packet that fits nowhere else into the headroom that all share, if it fits there.
    #[cold]
    fn admit_last(&mut self, account: &mut Account, size: u64) -> bool {
        let (room, in_use) = self.global;
        if in_use + size > room {
            return false;
        }
        self.global.1 += size;
        account.global += size as u32;
        self.used += size;
        self.watermark = self.watermark.max(self.used);
        true
    }

    /// Whether a packet would fit without headroom.
    #[inline]
    pub fn fits(&self, account: &Account, size: u64) -> bool {
        let size = self.charge(size);
        let bytes = account.bytes + size;
        let free = self.pool.map_or(u64::MAX, |pool| pool - self.shared);
        account.headroom == 0
            && account.global == 0
            && (bytes <= self.reserve
                || (size <= free
                    && bytes - self.reserve <= self.threshold(account.share)
                    && self.fits_whole(account, size)))
    }

    /// A packet for which there is no headroom must fit into the account's part of the shared pool as a whole, also where the reserve would
    /// take some of it.
    #[inline]
    fn fits_whole(&self, account: &Account, size: u64) -> bool {
        size <= account.share.headroom as u64 || size + self.shared_of(account) <= self.threshold(account.share)
    }

    /// Whether a packet would fit without headroom and leave the account below its threshold: taken in and let go at once, it changes nothing.
    #[inline]
    pub fn calm(&self, account: &Account, size: u64) -> bool {
        if self.shared <= self.lull && account.bytes + size < self.quiet {
            return account.headroom == 0 && account.global == 0;
        }
        self.calm_by_books(account, size)
    }

    /// The same as the books have it.
    #[inline(never)]
    fn calm_by_books(&self, account: &Account, size: u64) -> bool {
        let (own, threshold) = self.with(account, size);
        let whole = || own == 0 || self.fits_whole(account, self.charge(size));
        account.headroom == 0 && account.global == 0 && own < threshold && whole()
    }

    /// What an account would have of the shared pool with a packet more, and its threshold then, which is 0 if the packet does not fit.
    #[inline]
    pub(crate) fn with(&self, account: &Account, size: u64) -> (u64, u64) {
        let size = self.charge(size);
        let own = (account.bytes + size).saturating_sub(self.reserve);
        let threshold = match (self.pool, self.ingress_part) {
            (None, _) => u64::MAX,
            (Some(pool), _) if size > pool - self.shared => 0,
            (Some(_), Some(part)) => self.whole(part),
            (Some(pool), None) => {
                let free = pool - self.shared - own.min(size);
                self.whole(free.saturating_mul(account.share.alpha as u64) >> 16)
            }
        };
        (own, threshold)
    }

    /// The most held since the last call.
    pub fn take_watermark(&mut self) -> u64 {
        self.peak = self.peak.max(self.watermark);
        std::mem::replace(&mut self.watermark, self.used)
    }

    /// Lets a packet go: headroom empties first (what all share before the account's own), then the shared pool, then the
    /// reserve.
    #[inline]
    pub fn release(&mut self, account: &mut Account, size: u64) {
        let size = self.charge(size);
        let mut rest = size;
        if account.global > 0 {
            let from_global = (account.global as u64).min(rest);
            account.global -= from_global as u32;
            self.global.1 -= from_global;
            rest -= from_global;
        }
        let from_headroom = (account.headroom as u64).min(rest);
        rest -= from_headroom;
        let from_shared = rest.min(self.shared_of(account));
        account.headroom -= from_headroom as u32;
        account.bytes -= rest;
        self.shared -= from_shared;
        self.used -= size;
    }

    /// Whether the neighbour should stop: the threshold is reached, or headroom is in use.
    #[inline]
    pub fn over(&self, account: &Account) -> bool {
        account.headroom > 0 || account.global > 0 || self.shared_of(account) >= self.threshold(account.share)
    }

    /// Whether a stopped neighbour may go on.
    #[inline]
    pub fn under(&self, account: &Account) -> bool {
        let shared = self.shared_of(account);
        account.headroom == 0
            && account.global == 0
            && (shared == 0 || shared + self.resume_gap <= self.threshold(account.share))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SHARE: Share = Share { alpha: ALPHA_ONE / 8, headroom: 3_000 };

    proptest! {
        /// What is computed before the run never calls an account calm that the books do not.
        #[test]
        fn what_is_quiet_is_calm_by_the_books(
            pool in prop::option::of(0u64..2_000_000),
            part in prop::option::of(0u64..200_000),
            (reserve, cell) in (0u64..5_000, 0u64..300),
            (alpha, more) in (0u32..4 * ALPHA_ONE, 0u32..ALPHA_ONE),
            (shared, bytes) in (0.0f64..1.0, 0.0f64..1.0),
            (headroom, size) in (0u32..2, 1u64..10_000),
        ) {
            let buffer = Buffer { pool, reserve, cell, ingress_part: part.filter(|_| pool.is_some()), ..Buffer::default() };
            let plain = Buffer { shared: (pool.unwrap_or(1_000_000) as f64 * shared) as u64, ..buffer };
            let known = plain.clone().with_least_alpha(alpha);
            let share = Share { alpha: alpha + more, headroom: 3_000 };
            let account = Account { bytes: (400_000.0 * bytes) as u64, headroom, ..Account::new(share) };
            prop_assert_eq!(known.calm(&account, size), plain.calm_by_books(&account, size));
        }
    }

    fn buffer() -> Buffer {
        Buffer { pool: Some(80_000), reserve: 4_000, resume_gap: 3_000, ..Buffer::default() }
    }

    #[test]
    fn memory_fills_reserve_then_pool_then_headroom_then_drops() {
        let (mut b, mut a) = (buffer(), Account::new(SHARE));
        (0..4).for_each(|_| assert!(b.admit(&mut a, 1000)));
        assert_eq!((b.shared, a.bytes, a.headroom), (0, 4000, 0));
        // The threshold shrinks as the pool fills: 8 more packets fit under (80 000 − used)/8.
        let mut count = 0;
        while a.headroom == 0 {
            assert!(b.admit(&mut a, 1000));
            count += 1;
        }
        assert_eq!((count, b.shared), (10, 9_000));
        assert!(b.over(&a));
        assert!(b.admit(&mut a, 1000) && b.admit(&mut a, 1000));
        assert!(!b.admit(&mut a, 1000), "headroom is full");
        // What all share comes last, and is the first to empty.
        b.global = (2_500, 0);
        assert!(b.admit(&mut a, 1000) && b.admit(&mut a, 1000) && !b.admit(&mut a, 1000));
        assert_eq!((b.global, a.global, a.headroom), ((2_500, 2_000), 2_000, 3_000));
        b.release(&mut a, 2_500);
        assert_eq!((b.global.1, a.global, a.headroom), (0, 0, 2_500));
    }

    #[test]
    fn a_pause_ends_only_well_under_the_threshold() {
        let (mut b, mut a) = (buffer(), Account::new(SHARE));
        (0..14).for_each(|_| assert!(b.admit(&mut a, 1000)));
        assert!(b.over(&a) && !b.under(&a));
        b.release(&mut a, 1000);
        assert_eq!(a.headroom, 0);
        assert!(!b.under(&a), "within the gap");
        (0..3).for_each(|_| b.release(&mut a, 1000));
        assert!(b.under(&a));
    }

    #[test]
    fn a_packet_takes_whole_cells_and_thresholds_count_them() {
        // 100 cells of 200 B: an eighth of what is free is 12 cells.
        let mut b = Buffer { pool: Some(20_000), cell: 200, ..Buffer::default() };
        let mut a = Account::new(SHARE);
        assert_eq!(b.threshold(SHARE), 2_400);
        assert!(b.admit(&mut a, 1) && b.admit(&mut a, 200) && b.admit(&mut a, 201));
        assert_eq!((a.bytes, b.shared, b.used), (800, 800, 800));
        // 96 cells are free: 12. With 95 it would be 11.875, which is 11.
        assert_eq!(b.threshold(SHARE), 2_400);
        assert!(b.admit(&mut a, 63));
        assert_eq!(b.threshold(SHARE), 2_200);
        b.release(&mut a, 201);
        assert_eq!((a.bytes, b.used), (600, 600));
    }

    proptest! {
        #[test]
        fn bytes_in_equal_bytes_out_and_limits_hold(
            sizes in prop::collection::vec((1u64..1500, 0usize..3, any::<bool>()), 1..400),
            global in 0u64..10_000,
            cell in prop_oneof![Just(0u64), Just(1), Just(80), Just(208), Just(254)],
            headroom in prop_oneof![Just(3_000u32), 0u32..1_600],
            pool in prop_oneof![Just(80_000u64), 2_000u64..20_000, 90_000u64..900_000],
            known in any::<bool>(),
        ) {
            let share = Share { headroom, ..SHARE };
            let b = Buffer { pool: Some(pool), global: (global, 0), cell, ..buffer() };
            let mut b = if known { b.with_least_alpha(share.alpha) } else { b };
            let charge = |size: &u64| if cell > 1 { size.div_ceil(cell) * cell } else { *size };
            let mut accounts = [Account::new(share); 3];
            let mut held: [Vec<u64>; 3] = Default::default();
            for (size, i, enter) in sizes {
                if enter {
                    if b.calm(&accounts[i], size) {
                        let (mut buffer, mut account) = (b.clone(), accounts[i]);
                        prop_assert!(buffer.admit(&mut account, size) && !buffer.over(&account));
                        buffer.release(&mut account, size);
                        buffer.watermark = b.watermark;
                        prop_assert_eq!(format!("{buffer:?} {account:?}"), format!("{b:?} {:?}", accounts[i]));
                    }
                    // What fits needs no headroom, and what needs none fits.
                    let (fits, before) = (b.fits(&accounts[i], size), accounts[i].headroom + accounts[i].global);
                    let admitted = b.admit(&mut accounts[i], size);
                    let after = accounts[i].headroom + accounts[i].global;
                    prop_assert!(before > 0 || fits == (admitted && after == 0));
                    if admitted {
                        held[i].push(size);
                    }
                } else if let Some(size) = held[i].pop() {
                    b.release(&mut accounts[i], size);
                }
                let total: u64 = held.iter().flatten().map(charge).sum();
                prop_assert_eq!(b.used, total);
                for (account, held) in accounts.iter().zip(&held) {
                    prop_assert_eq!(account.total(), held.iter().map(charge).sum::<u64>());
                    prop_assert!(account.headroom <= headroom);
                }
                prop_assert_eq!(b.global.1, accounts.iter().map(|a| a.global as u64).sum::<u64>());
                prop_assert!(b.global.1 <= global);
                prop_assert_eq!(b.shared, accounts.iter().map(|a| a.bytes.saturating_sub(b.reserve)).sum::<u64>());
                prop_assert!(b.shared <= pool);
            }
        }
    }
}
