//! The counters of a virtual channel of a link: what its two ends keep, and what they make of each other's updates.

/// Bits of a counter.
pub(super) const BITS: u32 = 20;
/// The most credits that may be in use: half of what a counter counts, so that a number from before can be told from one from after.
pub(super) const MOST: u32 = 1 << (BITS - 1);

/// A virtual channel of a link, in both directions. With counters of fewer bits all that can happen to it can be explored.
#[derive(Clone, Default, Debug, PartialEq, Eq, Hash)]
pub(super) struct Vc<const BITS: u32 = 20> {
    /// As a sender: S_CC.
    pub(super) consumed: u32,
    /// S_CF.
    pub(super) freed: u32,
    /// Some of it waits for credits.
    pub(super) stopped: bool,
    /// As a receiver: R_CC.
    pub(super) came: u32,
    /// R_CF.
    pub(super) left: u32,
    /// The neighbour is to hear of R_CF.
    pub(super) owed: bool,
    /// Something has come, so that there is something to say again.
    pub(super) used: bool,
    /// So much is here that the neighbour cannot send at its full rate.
    pub(super) full: bool,
}

/// A counter of so many bits.
fn cyclic(count: u32, bits: u32) -> u32 {
    count & ((1 << bits) - 1)
}

impl<const BITS: u32> Vc<BITS> {
    /// One whose counters begin there.
    pub(super) fn new(first: u32) -> Self {
        let first = cyclic(first, BITS);
        Vc { consumed: first, freed: first, came: first, left: first, ..Vc::default() }
    }

    /// What a counter is further than another.
    fn ahead(counter: u32, other: u32) -> u32 {
        cyclic(counter.wrapping_sub(other), BITS)
    }

    /// S_CU.
    pub(super) fn in_use(&self) -> u32 {
        Self::ahead(self.consumed, self.freed)
    }

    /// Credits of what is here.
    pub(super) fn held(&self) -> u32 {
        Self::ahead(self.came, self.left)
    }

    /// A packet of so many credits is sent.
    pub(super) fn send(&mut self, credits: u32) {
        self.consumed = cyclic(self.consumed + credits, BITS);
    }

    /// One has come.
    pub(super) fn receive(&mut self, credits: u32) {
        self.came = cyclic(self.came + credits, BITS);
        self.used = true;
    }

    /// One has left again.
    pub(super) fn release(&mut self, credits: u32) {
        self.left = cyclic(self.left + credits, BITS);
        self.owed = true;
    }

    /// Whether there are credits back, if the receiver says that R_CF is this.
    pub(super) fn gets_back(&self, freed: u32) -> bool {
        // More than is in use cannot come back: the number is from before the last one.
        (1..=self.in_use()).contains(&Self::ahead(freed, self.freed))
    }

    /// The sender says that S_CC is this. What has not come by now is lost; what came after it was said is not known to it. Gives how many credits that are.
    pub(super) fn resynchronise(&mut self, consumed: u32) -> u32 {
        let lost = Self::ahead(consumed, self.came);
        let lost = if lost <= 1 << (BITS - 1) { lost } else { 0 };
        if lost > 0 {
            self.left = cyclic(self.left + lost, BITS);
            self.came = consumed;
            self.used = true;
        }
        // The neighbour has credits in use: it may have missed what was said last.
        self.owed |= self.used;
        lost
    }
}
