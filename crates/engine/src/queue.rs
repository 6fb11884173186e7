//! The event queue: a timing wheel with a total, insertion-independent order.
//!
//! Events are ordered by time; among events of one instant, by **rank**, then by class, then by source. The rank says
//! which was set in motion earlier (a packet that left its sender a microsecond ago comes before a transmitter that
//! became busy 80 ns ago; see [`Event::rank_of`]). Everything in that order is a property of the event itself, so the order
//! in which events are pushed, and the thread that pushes them, cannot show in a result.
//!
//! The wheel holds the near future in buckets that are sorted only when they come up; a bitmap skips empty
//! stretches, and a heap holds what lies beyond the wheel.

use crate::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const CLASS_BITS: u32 = 8;
const SOURCE_BITS: u32 = 28;
const RANK_BITS: u32 = 64 - CLASS_BITS - SOURCE_BITS;
const RANK_MAX: u64 = (1 << RANK_BITS) - 1;

/// Something that happens at an instant. Sixteen bytes, compared as one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    time: Time,
    key: u64,
}

impl Ord for Event {
    #[inline]
    fn cmp(&self, other: &Event) -> std::cmp::Ordering {
        self.order().cmp(&other.order())
    }
}

impl PartialOrd for Event {
    #[inline]
    fn partial_cmp(&self, other: &Event) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
    // One comparison of two words, where the rest would make three branches of it.
    #[inline]
    fn lt(&self, other: &Event) -> bool {
        self.order() < other.order()
    }
    #[inline]
    fn le(&self, other: &Event) -> bool {
        self.order() <= other.order()
    }
    #[inline]
    fn gt(&self, other: &Event) -> bool {
        self.order() > other.order()
    }
    #[inline]
    fn ge(&self, other: &Event) -> bool {
        self.order() >= other.order()
    }
}

impl Event {
    /// Before all others.
    pub const ZERO: Event = Event { time: Time::ZERO, key: 0 };
    /// After all others.
    pub const NEVER: Event = Event { time: Time::MAX, key: u64::MAX };

    /// Before all events at `time`.
    #[inline]
    pub fn first_at(time: Time) -> Event {
        Event { time, key: 0 }
    }

    /// The highest rank: last among the events of its instant.
    pub const LAST: u32 = RANK_MAX as u32;

    /// The rank of an event at `time` that was set in motion at `cause`: the older, the earlier. Causes more than
    /// 268 µs before their event rank alike.
    #[inline]
    pub fn rank_of(time: Time, cause: Time) -> u32 {
        debug_assert!(cause <= time);
        (RANK_MAX - (time.0 - cause.0).min(RANK_MAX)) as u32
    }

    /// After all events at `time`.
    pub fn last_at(time: Time) -> Event {
        Event { time, key: u64::MAX }
    }

    /// The largest source that an event can name.
    pub const MAX_SOURCE: u32 = (1 << SOURCE_BITS) - 1;

    /// An event of `class` from `source` at `time`.
    #[inline]
    pub fn new(time: Time, rank: u32, class: u8, source: u32) -> Event {
        debug_assert!(rank as u64 <= RANK_MAX && source <= Event::MAX_SOURCE);
        let key = (rank as u64) << (CLASS_BITS + SOURCE_BITS) | (class as u64) << SOURCE_BITS | source as u64;
        Event { time, key }
    }
    /// When it happens.
    #[inline]
    pub fn time(self) -> Time {
        self.time
    }
    /// Its place among the events of its instant.
    #[inline]
    pub fn rank(self) -> u32 {
        (self.key >> (CLASS_BITS + SOURCE_BITS)) as u32
    }
    /// What kind of thing happens.
    #[inline]
    pub fn class(self) -> u8 {
        (self.key >> SOURCE_BITS) as u8
    }
    /// To what it happens: a number whose meaning belongs to the class.
    #[inline]
    pub fn source(self) -> u32 {
        self.key as u32 & Event::MAX_SOURCE
    }
    #[inline]
    fn order(self) -> u128 {
        (self.time.0 as u128) << 64 | self.key as u128
    }
}

/// Buckets up to this long are sorted by counting.
const SMALL: usize = 16;
const WORD: u64 = 64;
const NONE: u32 = u32::MAX;
const PER_BLOCK: usize = 3;

/// A cache line of events. Blocks are handed out again as soon as they are free, while they are still near.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Block {
    events: [Event; PER_BLOCK],
    next: u32,
    len: u32,
}

const _: () = assert!(size_of::<Block>() == 64);

/// A priority queue of [`Event`]s that never hands out the past.
pub struct EventQueue {
    /// Bucket `b` holds the events of slot numbers congruent to `b`, in a list of blocks.
    buckets: Vec<u32>,
    blocks: Vec<Block>,
    free: u32,
    /// One bit per bucket: it holds something.
    occupied: Vec<u64>,
    /// The slot now being handed out, sorted, from `position` to `end`. What lies behind is old.
    current: Vec<Event>,
    position: usize,
    end: usize,
    /// Where a small bucket is gathered before it is sorted.
    gathered: [Event; SMALL],
    slot: u64,
    /// Events in buckets (not in `current`, not in `far`).
    waiting: usize,
    far: BinaryHeap<Reverse<Event>>,
    shift: u32,
    mask: u64,
    /// Of a small queue: nothing that is at hand comes before. Of any other it is not kept.
    first: Time,
}

impl EventQueue {
    /// A queue for about `density` events per nanosecond of simulated time, most of them planned at most `horizon`
    /// ahead. Both are hints for speed and never change the order.
    pub fn new(density: f64, horizon: Time) -> EventQueue {
        // About four events in a bucket, few enough to sort at once, and a wheel that just spans the horizon.
        let shift = (4_000.0 / density.max(1e-3)).clamp(64.0, 4096.0).log2().round() as u32;
        let buckets = ((horizon.0 >> shift) + 2).next_power_of_two().clamp(WORD, 1 << 16);
        EventQueue {
            buckets: vec![NONE; buckets as usize],
            blocks: Vec::new(),
            free: NONE,
            occupied: vec![0; (buckets / WORD) as usize],
            current: vec![Event::first_at(Time::ZERO); SMALL],
            position: 0,
            end: 0,
            gathered: [Event::first_at(Time::ZERO); SMALL],
            slot: 0,
            waiting: 0,
            far: BinaryHeap::new(),
            shift,
            mask: buckets - 1,
            first: Time::ZERO,
        }
    }

    /// A queue for the few events of one node: no wheel, but a list of what comes up to the instant that was last given to
    /// [`EventQueue::open`], kept in order, and a heap for what comes later.
    pub fn small() -> EventQueue {
        // A wheel with one bucket, which is never used: every instant is a slot.
        EventQueue {
            buckets: vec![NONE],
            blocks: Vec::new(),
            free: NONE,
            occupied: vec![0],
            current: vec![Event::first_at(Time::ZERO); SMALL],
            position: 0,
            end: 0,
            gathered: [Event::first_at(Time::ZERO); SMALL],
            slot: 0,
            waiting: 0,
            far: BinaryHeap::new(),
            shift: 0,
            mask: 0,
            first: Time::MAX,
        }
    }

    /// Lets a small queue have at hand what comes up to `until`. Any other has its wheel for that.
    pub fn open(&mut self, until: Time) {
        if self.mask != 0 {
            return;
        }
        if self.position >= self.end {
            (self.position, self.end) = (0, 0);
        }
        self.slot = self.slot.max(until.0);
        while let Some(&Reverse(event)) = self.far.peek()
            && event.time.0 <= self.slot
        {
            self.far.pop();
            self.push(event);
        }
    }

    /// Adds an event, which must not lie before the last one popped.
    #[inline]
    pub fn push(&mut self, event: Event) {
        if event.time.0 >> self.shift <= self.slot && self.position == self.end {
            // Nothing is at hand: no need to look for its place. There is room for a few at all times.
            self.current[0] = event;
            (self.position, self.end) = (0, 1);
            self.first = self.first.min(event.time);
        } else {
            self.push_among(event);
        }
    }

    /// The same where others are, or later than what is at hand.
    #[inline(never)]
    fn push_among(&mut self, event: Event) {
        let slot = event.time.0 >> self.shift;
        if slot > self.slot {
            if slot - self.slot > self.mask {
                self.far.push(Reverse(event));
                return;
            }
            self.place(slot, event);
        } else {
            // Also an event before the slot at hand, which a look ahead may have opened early.
            let mut i = self.end;
            self.end += 1;
            if i == self.current.len() {
                self.current.push(event);
            }
            while i > self.position && self.current[i - 1].order() > event.order() {
                self.current[i] = self.current[i - 1];
                i -= 1;
            }
            self.current[i] = event;
            self.first = self.first.min(event.time);
        }
    }

    #[inline]
    fn place(&mut self, slot: u64, event: Event) {
        let bucket = slot & self.mask;
        self.waiting += 1;
        let head = self.buckets[bucket as usize];
        if head != NONE {
            let block = &mut self.blocks[head as usize];
            if (block.len as usize) < PER_BLOCK {
                block.events[block.len as usize] = event;
                block.len += 1;
                return;
            }
        } else {
            self.occupied[(bucket / WORD) as usize] |= 1 << (bucket % WORD);
        }
        let fresh = Block { events: [event; PER_BLOCK], next: head, len: 1 };
        let id = self.free;
        self.buckets[bucket as usize] = if id != NONE {
            self.free = self.blocks[id as usize].next;
            self.blocks[id as usize] = fresh;
            id
        } else {
            self.blocks.push(fresh);
            self.blocks.len() as u32 - 1
        };
    }

    /// Moves the events of a bucket to `current`, sorted.
    #[inline]
    fn empty(&mut self, bucket: u64) {
        let first = std::mem::replace(&mut self.buckets[bucket as usize], NONE);
        let (mut id, mut n) = (first, 0);
        // Only the block at the front of a bucket has room left. Copying whole blocks needs no loop over events.
        while id != NONE && n + PER_BLOCK <= SMALL {
            let block = &mut self.blocks[id as usize];
            self.gathered[n..n + PER_BLOCK].copy_from_slice(&block.events);
            n += block.len as usize;
            let next = block.next;
            (block.next, self.free) = (self.free, id);
            id = next;
        }
        if id == NONE {
            self.end = n;
            return sort_small(&self.gathered, n, &mut self.current);
        }
        self.empty_large(id, n);
    }

    /// The same for more than fit in `gathered`, which has the first `n` of them.
    #[cold]
    fn empty_large(&mut self, mut id: u32, n: usize) {
        self.current.clear();
        self.current.extend_from_slice(&self.gathered[..n]);
        while id != NONE {
            let block = &mut self.blocks[id as usize];
            self.current.extend_from_slice(&block.events[..block.len as usize]);
            let next = block.next;
            (block.next, self.free) = (self.free, id);
            id = next;
        }
        self.end = self.current.len();
        self.current.sort_unstable_by_key(|e| e.order());
        self.current.resize(self.end.max(SMALL), Event::first_at(Time::ZERO));
    }

    /// The next of the slot at hand.
    #[inline]
    fn at_hand(&self) -> Option<Event> {
        if self.position < self.end { self.current.get(self.position).copied() } else { None }
    }

    /// Takes the next event.
    #[inline]
    pub fn pop(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.at_hand() {
                self.position += 1;
                self.renew_first();
                return Some(event);
            }
            if !self.advance() {
                return None;
            }
        }
    }

    /// Whether there may be an event at `time` or before, of what a small queue has at [hand](EventQueue::open): a look that costs little. Any other queue
    /// does not know.
    #[inline(always)]
    pub fn may_have_before(&self, time: Time) -> bool {
        self.first <= time
    }

    /// Keeps when the next event comes, after one was taken.
    #[inline]
    fn renew_first(&mut self) {
        if self.mask == 0 {
            self.first = self.at_hand().map_or(Time::MAX, |event| event.time);
        }
    }

    /// Takes the next event if it comes before `limit`.
    #[inline]
    pub fn pop_before(&mut self, limit: Event) -> Option<Event> {
        loop {
            if let Some(event) = self.at_hand() {
                return (event < limit).then(|| {
                    self.position += 1;
                    self.renew_first();
                    event
                });
            }
            // All of the slot at hand has been handed out, and it is the limit's.
            if limit.time.0 >> self.shift <= self.slot || !self.advance() {
                return None;
            }
        }
    }

    /// Whether there is an event before `limit`.
    #[inline]
    pub fn has_before(&mut self, limit: Event) -> bool {
        loop {
            if let Some(event) = self.at_hand() {
                return event < limit;
            }
            if limit.time.0 >> self.shift <= self.slot || !self.advance() {
                return false;
            }
        }
    }

    /// The next event, without taking it.
    #[inline]
    pub fn next_event(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.at_hand() {
                return Some(event);
            }
            if !self.advance() {
                return None;
            }
        }
    }

    /// The time of the next event, without taking it.
    pub fn next_time(&mut self) -> Option<Time> {
        if self.waiting == 0 && self.position >= self.end {
            return self.far.peek().map(|Reverse(event)| event.time);
        }
        self.next_event().map(Event::time)
    }

    /// Moves on to the next slot that holds something.
    fn advance(&mut self) -> bool {
        (self.position, self.end) = (0, 0);
        if self.waiting > 0 {
            self.slot = self.next_occupied(self.slot);
        } else if let Some(Reverse(event)) = self.far.peek() {
            self.slot = event.time.0 >> self.shift;
        } else {
            return false;
        }
        while let Some(&Reverse(event)) = self.far.peek() {
            let slot = event.time.0 >> self.shift;
            if slot - self.slot > self.mask {
                break;
            }
            self.far.pop();
            self.place(slot, event);
        }
        let bucket = self.slot & self.mask;
        self.occupied[(bucket / WORD) as usize] &= !(1 << (bucket % WORD));
        self.empty(bucket);
        self.waiting -= self.end;
        self.renew_first();
        true
    }

    /// The first slot after `slot` whose bucket is occupied.
    fn next_occupied(&self, slot: u64) -> u64 {
        let from = (slot + 1) & self.mask;
        let words = self.occupied.len() as u64;
        let first = from / WORD;
        let head = self.occupied[first as usize] & (u64::MAX << (from % WORD));
        let mut found = None;
        if head != 0 {
            found = Some(first * WORD + head.trailing_zeros() as u64);
        }
        let mut step = 1;
        while found.is_none() {
            let word = (first + step) & (words - 1);
            let bits = self.occupied[word as usize];
            if bits != 0 {
                found = Some(word * WORD + bits.trailing_zeros() as u64);
            }
            step += 1;
            debug_assert!(step <= words + 1);
        }
        let bucket = found.unwrap_or(from);
        slot + 1 + ((bucket + self.mask + 1 - from) & self.mask)
    }

    /// Takes everything that is left, in no order.
    pub fn drain(&mut self) -> Vec<Event> {
        let mut all = self.current[self.position..self.end].to_vec();
        while self.waiting > 0 {
            self.advance();
            all.extend_from_slice(&self.current[..self.end]);
        }
        (self.position, self.end) = (0, 0);
        all.extend(self.far.drain().map(|Reverse(event)| event));
        all
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.position >= self.end && self.waiting == 0 && self.far.is_empty()
    }
}

/// Sorts `n` events by counting for each how many come before it: no branch depends on the order, which is
/// unpredictable.
#[inline]
fn sort_small(events: &[Event; SMALL], n: usize, sorted: &mut [Event]) {
    let sorted = &mut sorted[..SMALL];
    let n = n.min(SMALL);
    let mut place = [0u8; SMALL];
    for i in 1..n {
        let event = events[i].order();
        let mut before = i as u8;
        for j in 0..i {
            let later = (events[j].order() > event) as u8;
            place[j] += later;
            before -= later;
        }
        place[i] = before;
    }
    for i in 0..n {
        sorted[place[i] as usize % SMALL] = events[i];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_earlier_cause_then_class_then_source_breaks_a_tie() {
        let at = Time::from_us(5);
        let old = Event::new(at, Event::rank_of(at, Time::from_us(3)), 9, 9);
        let young = Event::new(at, Event::rank_of(at, Time::from_us(4)), 0, 0);
        let classes = (Event::new(at, 7, 1, 9), Event::new(at, 7, 2, 0));
        let sources = (Event::new(at, 7, 1, 1), Event::new(at, 7, 1, 2));
        assert!(old < young && classes.0 < classes.1 && sources.0 < sources.1);
        assert_eq!((old.class(), old.source(), old.time()), (9, 9, at));
    }

    proptest! {
        /// A model check against sorting: pushes interleaved with pops, near and far, any density.
        #[test]
        fn events_come_out_in_order_whatever_the_order_they_went_in(
            density in 0.0001f64..100.0,
            horizon in 0u64..10_000_000,
            script in prop::collection::vec((0u64..20_000_000, 0u8..4, 0u32..4, 0usize..3), 1..300),
            drained: bool,
            small: bool,
        ) {
            let mut queue = if small { EventQueue::small() } else { EventQueue::new(density, Time(horizon)) };
            let mut model = std::collections::BTreeSet::new();
            let mut now = Time::ZERO;
            for (delay, class, source, pops) in script {
                let at = now + Time(delay);
                let event = Event::new(at, Event::rank_of(at, now), class, source);
                if model.insert(event) {
                    queue.push(event);
                }
                // A look ahead changes nothing, however far.
                queue.open(now + Time(delay / 2 * pops as u64));
                for _ in 0..pops {
                    let limit = Event::first_at(now + Time(delay / 3));
                    let before = model.first().copied().filter(|event| *event < limit);
                    prop_assert_eq!(queue.has_before(limit), before.is_some());
                    prop_assert_eq!(queue.pop_before(limit), before);
                    if let Some(event) = before {
                        model.remove(&event);
                        now = event.time();
                    }
                    prop_assert_eq!(queue.next_time(), model.first().map(|e| e.time()));
                    let popped = queue.pop();
                    prop_assert_eq!(popped, model.pop_first());
                    now = popped.map_or(now, |e| e.time());
                }
            }
            if drained {
                let mut rest = queue.drain();
                rest.sort_unstable();
                prop_assert!(rest.iter().eq(&model));
                model.clear();
            }
            while let Some(event) = queue.pop() {
                prop_assert_eq!(Some(event), model.pop_first());
            }
            prop_assert!(model.is_empty() && queue.is_empty());
        }
    }
}
