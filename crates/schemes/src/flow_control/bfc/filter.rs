//! Multistage Bloom filters of paused flows (BFC §3.6).
//!
//! A filter of m bits and k hash functions has k stages of m/k bits; every member sets one bit in each. The downstream switch
//! counts, so that a bit is cleared with its last member only; the upstream gets the plain bits.

/// The shape of a filter, which every node must know alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Bits of a stage.
    stage: u32,
    /// Stages: hash functions.
    stages: u32,
}

impl Shape {
    /// A filter of `bytes` bytes and `stages` hash functions; at least a bit for each.
    pub fn new(bytes: u32, stages: u32) -> Shape {
        Shape { stage: bytes * 8 / stages, stages }
    }

    /// Words of 64 bits that hold it.
    pub fn words(self) -> usize {
        (self.stage * self.stages).div_ceil(64) as usize
    }

    /// The places of the bits of a flow, one in each stage.
    #[inline]
    fn places(self, vfid: u16) -> impl Iterator<Item = u32> {
        (0..self.stages).map(move |stage| {
            // An odd multiplier of its own for every stage; the high half is well mixed.
            let key = (vfid as u64 + 1).wrapping_mul(MULTIPLIERS[stage as usize % MULTIPLIERS.len()]);
            let hash = (key ^ (key >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32;
            stage * self.stage + ((hash * self.stage as u64) >> 32) as u32
        })
    }

    /// Whether a flow is in the filter with these bits, or seems to be.
    #[inline]
    pub fn matches(self, bits: &[u64], vfid: u16) -> bool {
        self.places(vfid).all(|place| bits[place as usize / 64] >> (place % 64) & 1 == 1)
    }
}

/// The most hash functions.
pub const MAX_HASHES: u32 = 16;

const MULTIPLIERS: [u64; MAX_HASHES as usize] = {
    let mut all = [0; MAX_HASHES as usize];
    let mut state: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut i = 0;
    while i < all.len() {
        state = state.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(0x1405_7b7e_f767_814f);
        all[i] = state | 1;
        i += 1;
    }
    all
};

/// A filter that members can leave.
#[derive(Clone, Debug)]
pub struct Counting {
    shape: Shape,
    counts: Vec<u16>,
    bits: Vec<u64>,
    /// The members, in ascending order; a flow that is in it twice is listed twice.
    members: Vec<u16>,
}

impl Counting {
    /// An empty filter.
    pub fn new(shape: Shape) -> Counting {
        let counts = vec![0; (shape.stage * shape.stages) as usize];
        Counting { shape, counts, bits: vec![0; shape.words()], members: Vec::new() }
    }

    /// A flow joins.
    pub fn insert(&mut self, vfid: u16) {
        for place in self.shape.places(vfid) {
            self.counts[place as usize] += 1;
            self.bits[place as usize / 64] |= 1 << (place % 64);
        }
        let at = self.members.partition_point(|&member| member < vfid);
        self.members.insert(at, vfid);
    }

    /// A member leaves.
    pub fn remove(&mut self, vfid: u16) {
        let Ok(at) = self.members.binary_search(&vfid) else { return };
        self.members.remove(at);
        for place in self.shape.places(vfid) {
            self.counts[place as usize] -= 1;
            if self.counts[place as usize] == 0 {
                self.bits[place as usize / 64] &= !(1 << (place % 64));
            }
        }
    }

    /// How many are in it.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// What a pause frame carries: the bits. Behind them, for statistics only, the real members.
    pub fn snapshot(&self) -> Box<[u64]> {
        self.bits.iter().copied().chain(self.members.iter().map(|&member| member as u64)).collect()
    }
}

/// A filter as its receiver knows it.
#[derive(Clone, Debug, Default)]
pub struct Received {
    content: Box<[u64]>,
    any: bool,
}

impl Received {
    /// The content of a frame.
    pub fn new(content: Box<[u64]>, shape: Shape) -> Received {
        let any = content[..shape.words()].iter().any(|&word| word != 0);
        Received { content, any }
    }

    /// Whether it pauses a flow.
    #[inline]
    pub fn pauses(&self, shape: Shape, vfid: u16) -> bool {
        self.any && shape.matches(&self.content, vfid)
    }

    /// Whether it pauses anything.
    #[inline]
    pub fn any(&self) -> bool {
        self.any
    }

    /// Whether a flow that it pauses is really a member.
    pub fn really(&self, shape: Shape, vfid: u16) -> bool {
        self.content[shape.words()..].binary_search(&(vfid as u64)).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_member_always_matches_until_it_has_left_as_often_as_it_came(
            bytes in 4u32..200,
            stages in 1u32..=8,
            steps in prop::collection::vec((any::<bool>(), 0u16..40), 0..200),
        ) {
            let shape = Shape::new(bytes, stages);
            let mut filter = Counting::new(shape);
            let mut books = [0u32; 40];
            for (join, vfid) in steps {
                if join {
                    filter.insert(vfid);
                    books[vfid as usize] += 1;
                } else {
                    filter.remove(vfid);
                    books[vfid as usize] = books[vfid as usize].saturating_sub(1);
                }
            }
            let received = Received::new(filter.snapshot(), shape);
            for vfid in 0..40 {
                let member = books[vfid as usize] > 0;
                prop_assert!(!member || received.pauses(shape, vfid));
                prop_assert_eq!(received.really(shape, vfid), member);
            }
            prop_assert_eq!(filter.len() as u32, books.iter().sum::<u32>());
            // Empty again means not a bit is left.
            (0..40).for_each(|vfid| (0..books[vfid as usize]).for_each(|_| filter.remove(vfid)));
            prop_assert!(filter.is_empty() && !Received::new(filter.snapshot(), shape).any());
        }
    }

    /// With 32 members in 128 bytes and four hash functions, (1 - (1 - 1/256)^32)^4 = 1.9e-4: one in some 5000 strangers
    /// matches. (The paper says one in five million.)
    #[test]
    fn strangers_match_as_often_as_the_arithmetic_says() {
        let shape = Shape::new(128, 4);
        let (mut strangers, mut matched) = (0, 0);
        for round in 0..200u32 {
            let mut filter = Counting::new(shape);
            (0..32).for_each(|i| filter.insert((round * 7919 + i * 523) as u16 % 16384));
            let received = Received::new(filter.snapshot(), shape);
            for vfid in (0..16384).filter(|&v| !received.really(shape, v)) {
                strangers += 1;
                matched += received.pauses(shape, vfid) as u32;
            }
        }
        let rate = matched as f64 / strangers as f64;
        let expected = (1.0 - (1.0 - 1.0 / 256.0f64).powi(32)).powi(4);
        assert!((0.8..1.25).contains(&(rate / expected)), "{rate} against {expected}");
    }
}
