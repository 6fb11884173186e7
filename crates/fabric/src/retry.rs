//! Link-layer retry (LLR): the two ends of a link that repeats what it damages.
//!
//! What is modelled is Ultra Ethernet's link layer as the SAI proposal of its management group tells it (SAI 1.18, `doc/LLR`). The sending end numbers
//! frames and keeps them until they are acknowledged. The receiving end takes them in order only: at a damaged frame or a gap it asks once (NACK) for
//! all from the first that is missing, discards what comes, and is silent until that one comes. ACKs are cumulative. A sender that hears of no progress repeats
//! everything by itself, and gives up after a few times.
//!
//! Nothing here knows packets, ports or events: frames are numbers with a size, calls are given the time, and what is to be
//! sent is asked for. `run/retry.rs` connects it to the links.

use crate::topology::Link;
use engine::{Rate, Time};
use std::collections::VecDeque;

engine::choice! {
    /// What becomes of frames at a sending end that has given up, or starts again.
    pub enum Unprotected {
        /// They are sent without a number: what is damaged then is lost.
        BestEffort = "best-effort",
        /// They wait.
        Block = "block",
        /// They are dropped.
        Discard = "discard",
    }
}

/// How a link repeats frames, as far as it is not derived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// The most frames that are not acknowledged; `None`: as many as the bytes, and the numbers of frames, allow.
    pub frames: Option<u32>,
    /// The most bytes that are not acknowledged; `None`: twice what the link carries in a round of its own.
    pub bytes: Option<u64>,
    /// Bytes of link time between two ACKs.
    pub spacing: u64,
    /// A sender that hears of no progress for so long repeats everything; `None`: two rounds.
    pub timer: Option<Time>,
    /// It gives up instead of doing so once more often than this in a row; `None` for never.
    pub replays: Option<u32>,
    /// A frame that waits longer for its ACK makes it give up; `None` for never.
    pub age: Option<Time>,
    /// A link that is down for so long loses what it keeps.
    pub link_lost: Time,
    /// What becomes of frames after it has given up.
    pub then: Unprotected,
    /// Whether it starts again then.
    pub restart: bool,
    /// Its ends may give up though nothing is damaged: an ACK may take longer than they wait.
    pub hasty: bool,
}

impl Default for Retry {
    /// As the SAI proposal has it, where it says something.
    fn default() -> Retry {
        Retry {
            frames: None,
            bytes: None,
            spacing: 2048,
            timer: None,
            replays: Some(1),
            age: None,
            link_lost: Time::ZERO,
            then: Unprotected::BestEffort,
            restart: false,
            hasty: false,
        }
    }
}

/// Bytes of a control ordered set: a block of the 64b/66b code.
pub const SET: u16 = 8;

impl Retry {
    /// Whether it may lose a frame while its link works.
    pub fn gives_up(&self) -> bool {
        self.replays.is_some() || self.age.is_some()
    }

    /// The limits of an end of a link: it sends at the first of `rates` and hears at the second, `forth` and `back` are the times from the end of a
    /// transmission to its being handled at the other end, and `largest` is the bytes of the largest frame.
    pub fn limits(&self, rates: (Rate, Rate), forth: Time, back: Time, largest: u64) -> Limits {
        let (out, home) = rates;
        // A frame is sent and arrives. Its ACK waits for the spacing and for a frame under way, is sent, and arrives.
        let sets = match out == home {
            true => out.time_for(2 * SET as u64),
            false => out.time_for(SET as u64) + home.time_for(SET as u64),
        };
        let frames = out.time_for(largest) + home.time_for(largest);
        let round = frames + sets + forth + home.time_for(self.spacing) + back;
        let bytes = self.bytes.unwrap_or(2 * out.bytes_over(round)).max(largest);
        let frames = self.frames.unwrap_or(u32::MAX).min(<Number>::MOST) as u64;
        Limits {
            frames,
            bytes,
            largest,
            round,
            spacing: out.time_for(self.spacing),
            timer: self.timer.unwrap_or(Time(2 * round.0)),
            replays: self.replays,
            age: self.age,
            then: self.then,
            restart: self.restart,
        }
    }
}

/// The same as numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most frames that are kept.
    pub frames: u64,
    /// The most bytes of them.
    pub bytes: u64,
    /// Bytes of the largest frame: as long as it would not fit, nothing new is sent.
    pub largest: u64,
    /// The longest that it takes from a frame's being sent to its ACK, if nothing is damaged.
    pub round: Time,
    /// Time between two ACKs that it sends itself.
    pub spacing: Time,
    /// A sender that hears of no progress for so long repeats everything.
    pub timer: Time,
    /// How often in a row it does so.
    pub replays: Option<u32>,
    /// How long a frame may be kept.
    pub age: Option<Time>,
    /// What becomes of frames after it has given up.
    pub then: Unprotected,
    /// Whether it starts again then.
    pub restart: bool,
}

impl Limits {
    /// Whether it may lose a frame while its link works.
    pub fn gives_up(&self) -> bool {
        self.replays.is_some() || self.age.is_some()
    }

    /// Whether that may happen although nothing is damaged: an ACK may take longer than it waits.
    pub fn hasty(&self) -> bool {
        self.age.is_some_and(|age| age < self.round) || self.replays.is_some() && self.timer < self.round
    }

    /// How long it may hear nothing until it gives up, or until it repeats everything for as long as it likes.
    pub fn patience(&self) -> Time {
        let replays = self.replays.map_or(1, |replays| replays as u64 + 1);
        let silent = Time(self.timer.0.saturating_mul(replays).saturating_add(self.round.0));
        self.age.map_or(silent, |age| if self.replays.is_some() { silent.min(age) } else { age })
    }
}

/// What one end has done, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// ACKs sent.
    pub acks: u64,
    /// NACKs sent.
    pub nacks: u64,
    /// Times that all was repeated because of a NACK.
    pub replays: u64,
    /// The same because nothing was heard.
    pub timeouts: u64,
    /// Frames that were sent again, and their bytes.
    pub repeated: (u64, u64),
    /// Frames that came damaged or did not come, and were to be repeated.
    pub damaged: u64,
    /// Frames that came whole and were discarded because one before them was missing.
    pub discarded: u64,
    /// Frames that came again.
    pub duplicates: u64,
    /// ACKs and NACKs, and what else two ends say to each other, that were damaged or did not come.
    pub sets_lost: u64,
    /// Times that the end gave up.
    pub flushes: u64,
    /// Frames that were lost because of that, or were sent unprotected and damaged.
    pub lost: u64,
    /// How long frames were late that had to be repeated, or came after one that had to: one after the other, as if there were no others. In picoseconds.
    pub late: u64,
}

impl Tally {
    /// Adds what another end has done.
    pub fn add(&mut self, other: &Tally) {
        self.acks += other.acks;
        self.nacks += other.nacks;
        self.replays += other.replays;
        self.timeouts += other.timeouts;
        self.repeated = (self.repeated.0 + other.repeated.0, self.repeated.1 + other.repeated.1);
        self.damaged += other.damaged;
        self.discarded += other.discarded;
        self.duplicates += other.duplicates;
        self.sets_lost += other.sets_lost;
        self.flushes += other.flushes;
        self.lost += other.lost;
        self.late += other.late;
    }
}

/// The number of a frame. Numbers are cyclic: after the largest comes 0.
///
/// The SAI proposal does not say how many bits it has. Descriptions of the ordered sets of specification 1.0.1 (section 5.1.4) and of tests of hardware have 20.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Number<const BITS: u32 = 20>(u32);

impl<const BITS: u32> Number<BITS> {
    /// The most frames that may be kept: half of all numbers, so that one that has come before can be told from one that is to come.
    pub const MOST: u32 = 1 << (BITS - 1);
    /// That of the first frame of all: every run that sends a few hundred of them goes through the wrap.
    const FIRST: Number<BITS> = Number::of(0u32.wrapping_sub(256));

    const fn of(count: u32) -> Number<BITS> {
        Number(count & ((1 << BITS) - 1))
    }
    /// The number of a frame so many later.
    pub(crate) fn plus(self, frames: u32) -> Number<BITS> {
        Number::of(self.0.wrapping_add(frames))
    }
    /// How many frames later than another this one is, if it is not earlier.
    fn after(self, other: Number<BITS>) -> u32 {
        Self::of(self.0.wrapping_sub(other.0)).0
    }
    /// Whether it is that of an earlier frame than another.
    fn is_before(self, other: Number<BITS>) -> bool {
        (1..=Self::MOST).contains(&other.after(self))
    }
    /// As it goes with a frame.
    pub(crate) fn bits(self) -> u64 {
        self.0 as u64
    }
    /// From what came with a frame.
    pub(crate) fn from_bits(bits: u64) -> Number<BITS> {
        Number::of(bits as u32)
    }
}

/// What two ends say to each other in a control ordered set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Said<const BITS: u32 = 20> {
    /// All frames below this number have come.
    Ack(Number<BITS>),
    /// The same, and what follows is to be sent again.
    Nack(Number<BITS>),
    /// The sender has given up, and its next frame has this number. The hardware says so only if it starts again, and asks for an echo then;
    /// otherwise it is but for the books: what the receiver waits for will not come.
    Init {
        /// That number.
        next: Number<BITS>,
        /// Whether it asks for an echo.
        echo: bool,
    },
    /// The receiver has heard that.
    Echo(Number<BITS>),
}

/// A frame that is kept.
#[derive(Clone, Copy, Debug)]
struct Held {
    size: u16,
    at: Time,
}

/// What a sending end does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    /// Frames are numbered.
    Advance,
    /// It gave up and waits for the echo.
    Init,
    /// It gave up.
    Flush,
}

/// The sending end of a link.
#[derive(Clone, Debug)]
pub struct Sender<const BITS: u32 = 20> {
    limits: Limits,
    state: State,
    /// The replay buffer: frames that are not acknowledged.
    held: VecDeque<Held>,
    /// Their bytes.
    bytes: u64,
    /// The number of the first.
    base: Number<BITS>,
    /// The next to be sent again.
    again: Option<Number<BITS>>,
    /// When all is repeated if nothing is heard before; [`Time::MAX`] while there is nothing to hear of.
    deadline: Time,
    /// How often it was since the last progress.
    attempts: u32,
    /// It has to tell the other end that it gave up.
    owes: bool,
}

impl<const BITS: u32> Sender<BITS> {
    /// One that has sent nothing.
    pub fn new(limits: Limits) -> Self {
        Self::from(limits, Number::FIRST)
    }

    fn from(limits: Limits, base: Number<BITS>) -> Self {
        Sender {
            limits,
            state: State::Advance,
            held: VecDeque::new(),
            bytes: 0,
            base,
            again: None,
            deadline: Time::MAX,
            attempts: 0,
            owes: false,
        }
    }

    /// The number of the next new frame.
    pub fn next(&self) -> Number<BITS> {
        self.base.plus(self.held.len() as u32)
    }

    /// Frames that are kept, and their bytes.
    pub fn kept(&self) -> (u64, u64) {
        (self.held.len() as u64, self.bytes)
    }

    /// Whether frames are numbered, and not sent unprotected.
    pub fn protects(&self) -> bool {
        self.state == State::Advance
    }

    /// Whether a new frame may be sent now.
    #[inline]
    pub fn is_open(&self) -> bool {
        match self.state {
            State::Advance => {
                let room = (self.held.len() as u64) < self.limits.frames;
                self.again.is_none() && room && self.bytes + self.limits.largest <= self.limits.bytes
            }
            State::Init | State::Flush => self.limits.then != Unprotected::Block,
        }
    }

    /// Whether something will be sent again, or may be: it keeps frames, or starts again.
    pub fn is_busy(&self) -> bool {
        !self.held.is_empty() || self.state == State::Init
    }

    /// Whether nothing will ever be sent again.
    pub fn is_blocked(&self) -> bool {
        self.state == State::Flush && !self.is_open()
    }

    /// A new frame is sent. Whether it goes on the link, and is numbered.
    pub fn sent(&mut self, now: Time, size: u16) -> Sent {
        if self.state != State::Advance {
            return if self.limits.then == Unprotected::Discard { Sent::Dropped } else { Sent::Bare };
        }
        if self.held.is_empty() {
            self.deadline = now + self.limits.timer;
        }
        self.held.push_back(Held { size, at: now });
        self.bytes += size as u64;
        Sent::Numbered
    }

    /// All frames below `expected` have come.
    pub fn ack(&mut self, now: Time, expected: Number<BITS>) {
        let come = expected.after(self.base);
        // An ACK from before it started again says nothing.
        if self.state != State::Advance || come == 0 || !self.knows(expected) {
            return;
        }
        // How many of what is kept need not be sent again yet.
        let passed = self.again.map(|at| at.after(self.base).max(come) - come);
        self.bytes -= self.held.drain(..come as usize).map(|held| held.size as u64).sum::<u64>();
        self.base = expected;
        self.attempts = 0;
        self.deadline = if self.held.is_empty() { Time::MAX } else { now + self.limits.timer };
        self.again = passed.map(|passed| self.base.plus(passed)).filter(|at| *at != self.next());
    }

    /// Whether a number is one of those up to which frames may have come.
    fn knows(&self, expected: Number<BITS>) -> bool {
        expected.after(self.base) as usize <= self.held.len()
    }

    /// The same, and the others are to be sent again. True if there are any.
    pub fn nack(&mut self, now: Time, expected: Number<BITS>) -> bool {
        if self.state != State::Advance || !self.knows(expected) {
            return false;
        }
        self.ack(now, expected);
        self.begin_again(now)
    }

    fn begin_again(&mut self, now: Time) -> bool {
        if self.held.is_empty() {
            return false;
        }
        self.again = Some(self.base);
        self.deadline = now + self.limits.timer;
        true
    }

    /// Whether a frame is to be sent again.
    pub fn repeats(&self) -> bool {
        self.again.is_some()
    }

    /// The next frame to be sent again, which is sent now: its number and its size.
    pub fn repeat(&mut self, now: Time) -> Option<(Number<BITS>, u16)> {
        let number = self.again?;
        let held = self.held.get(number.after(self.base) as usize)?;
        // The answer to this one is what is waited for.
        self.deadline = now + self.limits.timer;
        self.again = Some(number.plus(1)).filter(|next| *next != self.next());
        Some((number, held.size))
    }

    /// When something is to be done if nothing is heard before.
    pub fn due(&self) -> Time {
        let age = self.limits.age.filter(|_| self.state == State::Advance);
        let oldest = self.held.front().zip(age).map(|(held, age)| held.at.saturating_add(age));
        oldest.map_or(self.deadline, |oldest| oldest.min(self.deadline))
    }

    /// Time has come this far. What it does about it.
    pub fn expire(&mut self, now: Time) -> Expiry {
        if now < self.due() {
            return Expiry::Nothing;
        }
        if self.state == State::Init {
            (self.owes, self.deadline) = (true, now + self.limits.timer);
            return Expiry::Nothing;
        }
        let old = now < self.deadline;
        if old || self.limits.replays.is_some_and(|most| self.attempts >= most) {
            let lost = self.give_up(now);
            return Expiry::GaveUp(lost);
        }
        self.attempts += 1;
        match self.begin_again(now) {
            true => Expiry::Replay,
            false => Expiry::Nothing,
        }
    }

    /// Gives up: what it keeps is lost, unless it has come unnoticed. Gives how many frames it was.
    pub fn give_up(&mut self, now: Time) -> u64 {
        let lost = self.forget();
        self.owes = true;
        (self.state, self.deadline) = match self.limits.restart {
            true => (State::Init, now + self.limits.timer),
            false => (State::Flush, Time::MAX),
        };
        lost
    }

    fn forget(&mut self) -> u64 {
        let lost = self.held.len() as u64;
        self.base = self.next();
        self.held.clear();
        (self.bytes, self.again, self.attempts, self.deadline) = (0, None, 0, Time::MAX);
        lost
    }

    /// The link has come back, and what it kept was lost if it was down for too long. Bringing a link up starts both ends again.
    pub fn link_up(&mut self, now: Time, lost: bool) -> u64 {
        if lost {
            let frames = self.forget();
            (self.state, self.owes) = (State::Advance, false);
            return frames;
        }
        self.attempts = 0;
        if self.state == State::Advance {
            self.begin_again(now);
        }
        0
    }

    /// The other end has heard that it starts again.
    pub fn echo(&mut self, next: Number<BITS>) {
        if self.state == State::Init && next == self.next() {
            (self.state, self.deadline, self.owes) = (State::Advance, Time::MAX, false);
        }
    }

    /// Whether it has something to say.
    pub fn speaks(&self) -> bool {
        self.owes
    }

    /// What it says now.
    pub fn say(&mut self) -> Option<Said<BITS>> {
        std::mem::take(&mut self.owes).then(|| Said::Init { next: self.next(), echo: self.state == State::Init })
    }
}

/// What becomes of a new frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// It is kept until it is acknowledged.
    Numbered,
    /// It is on its own.
    Bare,
    /// It is dropped.
    Dropped,
}

/// What a sending end does when it has waited long enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// Nothing, or it says something.
    Nothing,
    /// It sends everything again.
    Replay,
    /// It gives up so many frames.
    GaveUp(u64),
}

/// How a frame comes to the end of its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Whole.
    Good,
    /// Damaged: its number cannot be read.
    Damaged,
    /// Not at all.
    Missing,
}

/// What a receiving end does with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is passed on.
    Passed,
    /// It is discarded; it will come again.
    Awaited,
    /// It has come before.
    Duplicate,
}

/// Where the receiving end is with a NACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Asked {
    /// Nothing is missing, as far as it knows.
    Not,
    /// It is about to ask.
    Owed,
    /// It has asked, and is silent until what it asked for comes.
    Sent,
}

/// The receiving end of a link.
#[derive(Clone, Debug)]
pub struct Receiver<const BITS: u32 = 20> {
    spacing: Time,
    /// The number of the next frame to be passed on.
    expected: Number<BITS>,
    /// The number of the next frame to come for the first time: links keep order.
    fresh: Number<BITS>,
    asked: Asked,
    /// There is something to acknowledge.
    news: bool,
    /// It has heard that the sender starts again.
    heard: Option<Number<BITS>>,
    /// An ACK goes no sooner.
    silent: Time,
}

impl<const BITS: u32> Receiver<BITS> {
    /// One that has received nothing.
    pub fn new(limits: &Limits) -> Self {
        Self::from(limits, Number::FIRST)
    }

    fn from(limits: &Limits, first: Number<BITS>) -> Self {
        let (expected, fresh, asked, news) = (first, first, Asked::Not, false);
        Receiver { spacing: limits.spacing, expected, fresh, asked, news, heard: None, silent: Time::ZERO }
    }

    /// The number of the next frame to be passed on.
    pub fn expected(&self) -> Number<BITS> {
        self.expected
    }

    /// Frames that have been sent for the first time and that it still waits for.
    pub fn missing(&self) -> u64 {
        self.fresh.after(self.expected) as u64
    }

    /// The next frame comes for the first time.
    pub fn first(&mut self, condition: Condition) -> Taken {
        let number = self.fresh;
        self.fresh = number.plus(1);
        self.take(number, condition)
    }

    /// A frame comes again.
    pub fn again(&mut self, number: Number<BITS>, condition: Condition) -> Taken {
        debug_assert!(number.is_before(self.fresh), "frame {number:?} comes again before it came");
        self.take(number, condition)
    }

    fn take(&mut self, number: Number<BITS>, condition: Condition) -> Taken {
        match condition {
            Condition::Missing => Taken::Awaited,
            Condition::Good if number == self.expected => {
                self.expected = number.plus(1);
                (self.asked, self.news) = (Asked::Not, true);
                Taken::Passed
            }
            // The sender does not know that it has come. One who waits for an answer to a NACK has not been heard, then: were it silent, and what it
            // asked for not sent yet, both would wait for each other for ever.
            Condition::Good if number.is_before(self.expected) => {
                if self.asked == Asked::Sent {
                    self.asked = Asked::Not;
                }
                self.news = true;
                Taken::Duplicate
            }
            // A damaged frame, or a gap.
            Condition::Good | Condition::Damaged => {
                if self.asked == Asked::Not {
                    self.asked = Asked::Owed;
                }
                Taken::Awaited
            }
        }
    }

    /// What it waits for will not come: the sender's next frame has this number. Gives how many frames these were.
    pub fn renew(&mut self, next: Number<BITS>) -> u64 {
        debug_assert!(!self.fresh.is_before(next), "frames up to {next:?} were sent, {:?} came", self.fresh);
        let lost = self.missing();
        (self.expected, self.asked, self.news) = (self.fresh, Asked::Not, false);
        lost
    }

    /// The link was down for so long that nothing is sent again.
    pub fn restart(&mut self) {
        self.renew(self.fresh);
        (self.heard, self.silent) = (None, Time::ZERO);
    }

    /// A frame that was under way when its link failed for too long does not come.
    pub fn cut(&mut self) {
        self.fresh = self.fresh.plus(1);
        self.renew(self.fresh);
    }

    /// The sender asks for an echo.
    pub fn hear(&mut self) {
        self.heard = Some(self.expected);
    }

    /// When it has something to say; [`Time::MAX`] for never.
    pub fn due(&self) -> Time {
        match self.asked {
            _ if self.heard.is_some() => Time::ZERO,
            Asked::Owed => Time::ZERO,
            Asked::Not if self.news => self.silent,
            Asked::Not | Asked::Sent => Time::MAX,
        }
    }

    /// What it says now.
    pub fn say(&mut self, now: Time) -> Option<Said<BITS>> {
        if now < self.due() {
            return None;
        }
        if let Some(next) = self.heard.take() {
            return Some(Said::Echo(next));
        }
        self.silent = now + self.spacing;
        self.news = false;
        Some(match self.asked {
            Asked::Owed => {
                self.asked = Asked::Sent;
                Said::Nack(self.expected)
            }
            _ => Said::Ack(self.expected),
        })
    }
}

impl Link {
    /// How likely a frame of `size` bytes is not to come whole, besides being lost or damaged as a packet: one of its bits is wrong.
    ///
    /// That is 1 − (1 − b)^(8·size), put together from b with additions and multiplications alone, so that it is the same number on every
    /// machine, and precise where b is tiny.
    pub fn spoils(&self, size: u16) -> f64 {
        let both = |a: f64, b: f64| a + b - a * b;
        let (mut power, mut left, mut all) = (self.bit_errors, size as u32 * 8, 0.0);
        while left > 0 {
            if left & 1 == 1 {
                all = both(all, power);
            }
            power = both(power, power);
            left >>= 1;
        }
        all
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    const RATE: Rate = Rate::from_gbps(100);
    const DELAY: Time = Time::from_us(1);
    const SIZE: u16 = 1000;

    fn limits(retry: Retry) -> Limits {
        retry.limits((RATE, RATE), DELAY, DELAY, SIZE as u64)
    }

    fn ends(retry: Retry) -> (Sender, Receiver) {
        let limits = limits(retry);
        (Sender::new(limits), Receiver::new(&limits))
    }

    /// The number of a frame with so many before it.
    fn n(count: u32) -> Number {
        <Number>::FIRST.plus(count)
    }

    fn send(tx: &mut Sender, now: u64, frames: u64) {
        (0..frames).for_each(|_| assert_eq!(tx.sent(Time(now), SIZE), Sent::Numbered));
    }

    #[test]
    fn the_round_of_a_link_is_what_the_clocks_say() {
        // 80 ns for 1000 B, twice; 640 ps for a set, twice; 1 µs there and back; 2048 B of spacing are 163.84 ns.
        let limits = limits(Retry::default());
        assert_eq!(limits.round, Time(2 * 80_000 + 2 * 640 + 2 * 1_000_000 + 163_840));
        assert_eq!(limits.timer, Time(2 * limits.round.0));
        assert_eq!(limits.bytes, 2 * (limits.round.0 / 80));
    }

    #[test]
    fn acks_are_cumulative_and_free_the_buffer() {
        let (mut tx, _) = ends(Retry { bytes: Some(5000), ..Retry::default() });
        send(&mut tx, 0, 5);
        assert!(!tx.is_open());
        tx.ack(Time(9), n(3));
        assert_eq!((tx.kept(), tx.is_open()), ((2, 2000), true));
        // An old one, or one of what was never sent, says nothing.
        tx.ack(Time(9), n(2));
        tx.ack(Time(9), n(6));
        assert_eq!(tx.kept(), (2, 2000));
        tx.ack(Time(9), n(5));
        assert_eq!((tx.kept(), tx.due()), ((0, 0), Time::MAX));
    }

    #[test]
    fn numbers_are_compared_around_the_wrap() {
        let last = <Number>::of(u32::MAX);
        assert_eq!((last.bits(), last.plus(1).bits(), <Number>::from_bits(1 << 20).bits()), (0xf_ffff, 0, 0));
        for number in [Number::of(0), Number::of(1), last, Number::of(<Number>::MOST), Number::of(<Number>::MOST - 1)] {
            for frames in [1, 2, 255, <Number>::MOST - 1] {
                let later = number.plus(frames);
                assert!(number.is_before(later) && !later.is_before(number) && !number.is_before(number));
                assert_eq!(later.after(number), frames);
            }
            assert!(
                number.is_before(number.plus(<Number>::MOST)) && !number.is_before(number.plus(<Number>::MOST + 1))
            );
        }
    }

    #[test]
    fn both_ends_go_through_the_wrap_whatever_happens_there() {
        // Five frames, of which each in turn is the first with number 0.
        for before in 0..=5u32 {
            let begin = <Number>::of(0u32.wrapping_sub(before));
            let limits = limits(Retry { bytes: Some(5000), ..Retry::default() });
            let (mut tx, mut rx) = (Sender::from(limits, begin), Receiver::from(&limits, begin));
            send(&mut tx, 0, 5);
            assert_eq!((tx.is_open(), tx.next()), (false, begin.plus(5)));
            // The third is damaged.
            let taken = [0, 1, 2, 3, 4].map(|i| rx.first([Condition::Good, Condition::Damaged][(i == 2) as usize]));
            assert_eq!(taken, [Taken::Passed, Taken::Passed, Taken::Awaited, Taken::Awaited, Taken::Awaited]);
            assert_eq!((rx.say(Time(1)), rx.missing()), (Some(Said::Nack(begin.plus(2))), 3));
            assert!(tx.nack(Time(2), begin.plus(2)));
            assert_eq!(tx.repeat(Time(2)), Some((begin.plus(2), SIZE)));
            // An ACK from before, and one of what was never sent, say nothing.
            tx.ack(Time(3), begin.plus(1));
            tx.ack(Time(3), begin.plus(6));
            assert!(!tx.nack(Time(3), begin.plus(1)) && !tx.nack(Time(3), begin.plus(6)));
            assert_eq!(tx.kept(), (3, 3000));
            assert_eq!(rx.again(begin.plus(2), Condition::Good), Taken::Passed);
            tx.ack(Time(4), begin.plus(3));
            assert_eq!(
                (tx.repeat(Time(4)), tx.repeat(Time(5))),
                (Some((begin.plus(3), SIZE)), Some((begin.plus(4), SIZE)))
            );
            assert_eq!(rx.again(begin.plus(1), Condition::Good), Taken::Duplicate);
            assert_eq!(rx.again(begin.plus(3), Condition::Good), Taken::Passed);
            assert_eq!((rx.again(begin.plus(4), Condition::Good), rx.missing()), (Taken::Passed, 0));
            tx.ack(Time(6), rx.expected());
            assert_eq!((tx.kept(), tx.is_open(), tx.due()), ((0, 0), true, Time::MAX));
        }
    }

    #[test]
    fn no_more_frames_are_kept_than_half_of_all_numbers() {
        let retry = Retry { frames: Some(u32::MAX), bytes: Some(u64::MAX / 2), ..Retry::default() };
        assert_eq!(limits(retry).frames, 1 << 19);
        let (mut tx, mut rx) = ends(retry);
        send(&mut tx, 0, 1 << 19);
        assert!(!tx.is_open());
        // All have come, and no ACK: what comes again has come before, to the first of them.
        (0..1 << 19).for_each(|_| assert_eq!(rx.first(Condition::Good), Taken::Passed));
        assert_eq!(rx.again(n(0), Condition::Good), Taken::Duplicate);
        tx.ack(Time(1), rx.expected());
        assert_eq!(tx.kept(), (0, 0));
    }

    #[test]
    fn frames_are_limited_like_bytes() {
        let (mut tx, _) = ends(Retry { frames: Some(3), ..Retry::default() });
        send(&mut tx, 0, 3);
        assert!(!tx.is_open());
        tx.ack(Time(1), n(1));
        assert!(tx.is_open());
    }

    #[test]
    fn a_damaged_frame_is_asked_for_once_and_what_follows_is_discarded_in_silence() {
        let (_, mut rx) = ends(Retry::default());
        assert_eq!(rx.first(Condition::Good), Taken::Passed);
        assert_eq!(rx.first(Condition::Damaged), Taken::Awaited);
        assert_eq!(rx.say(Time(5)), Some(Said::Nack(n(1))));
        assert_eq!(rx.first(Condition::Good), Taken::Awaited);
        assert_eq!(rx.first(Condition::Damaged), Taken::Awaited);
        assert_eq!((rx.due(), rx.say(Time::from_ms(1)), rx.missing()), (Time::MAX, None, 3));
        // Also when what was asked for comes damaged again.
        assert_eq!(rx.again(n(1), Condition::Damaged), Taken::Awaited);
        assert_eq!(rx.say(Time::from_ms(1)), None);
        assert_eq!(rx.again(n(1), Condition::Good), Taken::Passed);
        assert_eq!(rx.say(Time::from_ms(1)), Some(Said::Ack(n(2))));
        assert_eq!(rx.again(n(2), Condition::Good), Taken::Passed);
        assert_eq!((rx.again(n(1), Condition::Good), rx.missing()), (Taken::Duplicate, 1));
    }

    #[test]
    fn a_frame_that_does_not_come_is_noticed_with_the_next() {
        let (_, mut rx) = ends(Retry::default());
        assert_eq!(rx.first(Condition::Missing), Taken::Awaited);
        assert_eq!(rx.say(Time(1)), None);
        assert_eq!(rx.first(Condition::Good), Taken::Awaited);
        assert_eq!(rx.say(Time(1)), Some(Said::Nack(n(0))));
    }

    #[test]
    fn a_duplicate_ends_the_silence_of_a_receiver_that_was_not_heard() {
        // A frame that had come is repeated and damaged: the receiver asks for the next, which was never sent, and is not heard.
        let (_, mut rx) = ends(Retry::default());
        rx.first(Condition::Good);
        rx.say(Time::ZERO);
        assert_eq!(rx.again(n(0), Condition::Damaged), Taken::Awaited);
        assert_eq!(rx.say(Time::ZERO), Some(Said::Nack(n(1))));
        assert_eq!(
            (rx.again(n(0), Condition::Good), rx.say(Time::from_ms(1))),
            (Taken::Duplicate, Some(Said::Ack(n(1))))
        );
    }

    #[test]
    fn acks_are_spaced_and_a_nack_is_not() {
        let (_, mut rx) = ends(Retry::default());
        let spacing = limits(Retry::default()).spacing;
        rx.first(Condition::Good);
        assert_eq!(rx.say(Time(7)), Some(Said::Ack(n(1))));
        rx.first(Condition::Good);
        assert_eq!((rx.say(Time(8)), rx.due()), (None, Time(7) + spacing));
        rx.first(Condition::Damaged);
        assert_eq!(rx.say(Time(9)), Some(Said::Nack(n(2))));
    }

    #[test]
    fn a_sender_repeats_from_the_first_that_is_missing_before_anything_new() {
        let (mut tx, _) = ends(Retry::default());
        send(&mut tx, 0, 5);
        assert!(tx.nack(Time(9), n(2)) && !tx.is_open());
        let again: Vec<_> = std::iter::from_fn(|| tx.repeat(Time(10))).map(|(number, _)| number).collect();
        assert_eq!((again, tx.is_open()), (vec![n(2), n(3), n(4)], true));
        // What is acknowledged meanwhile is not sent again.
        assert!(tx.nack(Time(20), n(2)));
        assert_eq!(tx.repeat(Time(20)), Some((n(2), SIZE)));
        tx.ack(Time(21), n(4));
        assert_eq!((tx.repeat(Time(22)), tx.repeat(Time(23))), (Some((n(4), SIZE)), None));
        // All has come: nothing to repeat.
        assert!(!tx.nack(Time(30), n(5)));
    }

    #[test]
    fn silence_makes_a_sender_repeat_and_then_give_up() {
        let (mut tx, _) = ends(Retry { timer: Some(Time(100)), ..Retry::default() });
        send(&mut tx, 50, 2);
        assert_eq!(tx.due(), Time(150));
        assert_eq!((tx.expire(Time(149)), tx.expire(Time(150))), (Expiry::Nothing, Expiry::Replay));
        assert_eq!((tx.repeat(Time(150)), tx.repeat(Time(230))), (Some((n(0), SIZE)), Some((n(1), SIZE))));
        // The answer to the last of them is waited for.
        assert_eq!((tx.due(), tx.expire(Time(330))), (Time(330), Expiry::GaveUp(2)));
        assert_eq!((tx.say(), tx.due()), (Some(Said::Init { next: n(2), echo: false }), Time::MAX));
        assert_eq!((tx.is_open(), tx.sent(Time(400), SIZE)), (true, Sent::Bare));
    }

    #[test]
    fn progress_gives_a_sender_new_patience_and_one_without_a_limit_never_gives_up() {
        let (mut tx, _) = ends(Retry { timer: Some(Time(100)), ..Retry::default() });
        send(&mut tx, 0, 3);
        assert_eq!(tx.expire(Time(100)), Expiry::Replay);
        tx.ack(Time(120), n(1));
        assert_eq!((tx.due(), tx.expire(Time(220))), (Time(220), Expiry::Replay));
        let (mut tx, _) = ends(Retry { timer: Some(Time(100)), replays: None, ..Retry::default() });
        send(&mut tx, 0, 1);
        assert!((1..1000).all(|round| tx.expire(Time(round * 100)) == Expiry::Replay));
    }

    #[test]
    fn a_frame_that_is_too_old_makes_a_sender_give_up_whatever_comes_meanwhile() {
        let (mut tx, _) =
            ends(Retry { age: Some(Time(1000)), timer: Some(Time(600)), replays: None, ..Retry::default() });
        send(&mut tx, 0, 1);
        send(&mut tx, 300, 1);
        tx.ack(Time(500), n(1));
        assert_eq!(tx.due(), Time(1100));
        assert_eq!((tx.expire(Time(1100)), tx.due()), (Expiry::Replay, Time(1300)));
        assert_eq!(tx.expire(Time(1300)), Expiry::GaveUp(1));
    }

    #[test]
    fn after_giving_up_frames_go_unprotected_wait_or_are_dropped() {
        for (then, open, sent) in [
            (Unprotected::BestEffort, true, Sent::Bare),
            (Unprotected::Block, false, Sent::Bare),
            (Unprotected::Discard, true, Sent::Dropped),
        ] {
            let (mut tx, _) = ends(Retry { then, ..Retry::default() });
            send(&mut tx, 0, 1);
            assert_eq!(tx.give_up(Time(5)), 1);
            assert_eq!((tx.is_open(), tx.sent(Time(6), SIZE)), (open, sent));
        }
    }

    #[test]
    fn both_ends_start_again_with_an_echo_that_is_asked_for_until_it_comes() {
        let (mut tx, mut rx) = ends(Retry { restart: true, timer: Some(Time(100)), ..Retry::default() });
        send(&mut tx, 0, 3);
        let taken = [Condition::Good, Condition::Damaged, Condition::Good].map(|condition| rx.first(condition));
        assert_eq!(taken, [Taken::Passed, Taken::Awaited, Taken::Awaited]);
        assert_eq!(tx.give_up(Time(5)), 3);
        let said = tx.say();
        assert_eq!(said, Some(Said::Init { next: n(3), echo: true }));
        assert_eq!((tx.due(), tx.expire(Time(105)), tx.say()), (Time(105), Expiry::Nothing, said));
        assert_eq!(rx.renew(n(3)), 2);
        rx.hear();
        assert_eq!(rx.say(Time(107)), Some(Said::Echo(n(3))));
        // An ACK from before says nothing.
        tx.ack(Time(108), n(1));
        tx.echo(n(3));
        assert!(tx.protects() && tx.due() == Time::MAX);
        assert_eq!((tx.sent(Time(110), SIZE), rx.first(Condition::Good)), (Sent::Numbered, Taken::Passed));
        assert_eq!(rx.say(Time::from_us(9)), Some(Said::Ack(n(4))));
        tx.ack(Time(120), n(4));
        assert_eq!(tx.kept(), (0, 0));
    }

    #[test]
    fn a_link_that_comes_back_in_time_repeats_and_one_that_does_not_begins_anew() {
        let (mut tx, _) = ends(Retry::default());
        send(&mut tx, 0, 2);
        assert_eq!((tx.link_up(Time(90), false), tx.repeat(Time(90))), (0, Some((n(0), SIZE))));
        assert_eq!((tx.link_up(Time(99), true), tx.kept(), tx.next()), (2, (0, 0), n(2)));
        tx.give_up(Time(100));
        tx.link_up(Time(120), true);
        assert!(tx.protects() && !tx.speaks());
    }

    #[test]
    fn bits_spoil_frames_as_the_power_says() {
        let mut link = Link::new(crate::id::NodeId(0), crate::id::NodeId(1), RATE, DELAY);
        assert_eq!(link.spoils(1000), 0.0);
        for errors in [1e-15, 1e-12, 1e-9, 1e-6, 1e-3, 0.5] {
            link.bit_errors = errors;
            for size in [1u16, 8, 64, 1062, 9000] {
                let exact = -(8.0 * size as f64 * (-errors).ln_1p()).exp_m1();
                assert!((link.spoils(size) / exact - 1.0).abs() < 1e-12, "{errors} {size}");
            }
        }
    }

    /// A link without a network: what is under way in each direction, in steps.
    struct Wire {
        steps: usize,
        forth: VecDeque<(usize, Option<Number>, Condition)>,
        back: VecDeque<(usize, Said, bool)>,
    }

    proptest! {
        /// Whatever is damaged or lost in either direction, all frames are passed on once and in order, no more are kept than may be, and it ends.
        #[test]
        fn everything_comes_once_and_in_order(
            first in prop_oneof![Just(0u32), (1u32 << 20) - 220..1 << 20, any::<u32>()],
            frames in 1u64..200,
            bytes in 1000u64..20_000,
            timer in 20u64..60,
            spacing in 0u64..4000,
            steps in 1usize..8,
            fates in prop::collection::vec(0u8..20, 1..400),
        ) {
            let retry = Retry {
                bytes: Some(bytes), timer: Some(Time(timer * 80_000)), replays: None, spacing, ..Retry::default()
            };
            let (begin, limits) = (<Number>::of(first), limits(retry));
            let (mut tx, mut rx) = (Sender::from(limits, begin), Receiver::from(&limits, begin));
            let mut wire = Wire { steps, forth: VecDeque::new(), back: VecDeque::new() };
            // In the end the link is good, so that it ends.
            let mut fates = fates.into_iter().chain(std::iter::repeat(10));
            let mut fate = || match fates.next() {
                Some(0..4) => Condition::Damaged,
                Some(4..7) => Condition::Missing,
                _ => Condition::Good,
            };
            let (mut sent, mut passed, mut step) = (0, 0u64, 0usize);
            while passed < frames || tx.kept().0 > 0 {
                step += 1;
                prop_assert!(step < 200_000, "it does not end: {tx:?} {rx:?}");
                let now = Time(step as u64 * 80_000);
                while wire.forth.front().is_some_and(|&(at, ..)| at <= step) {
                    let Some((_, again, condition)) = wire.forth.pop_front() else { break };
                    let expected = rx.expected();
                    let taken = match again {
                        None => rx.first(condition),
                        Some(number) => rx.again(number, condition),
                    };
                    if taken == Taken::Passed {
                        prop_assert_eq!(expected, begin.plus(passed as u32));
                        passed += 1;
                    }
                }
                while wire.back.front().is_some_and(|&(at, ..)| at <= step) {
                    match wire.back.pop_front() {
                        Some((_, Said::Ack(expected), true)) => tx.ack(now, expected),
                        Some((_, Said::Nack(expected), true)) => _ = tx.nack(now, expected),
                        _ => {}
                    }
                }
                prop_assert_ne!(tx.expire(now), Expiry::GaveUp(0));
                if let Some(said) = rx.say(now) {
                    wire.back.push_back((step + wire.steps, said, fate() == Condition::Good));
                }
                if let Some((number, _)) = tx.repeat(now) {
                    wire.forth.push_back((step + wire.steps, Some(number), fate()));
                } else if tx.is_open() && sent < frames {
                    sent += 1;
                    prop_assert_eq!(tx.sent(now, SIZE), Sent::Numbered);
                    wire.forth.push_back((step + wire.steps, None, fate()));
                }
                prop_assert!(tx.kept().1 <= bytes);
            }
            prop_assert_eq!((passed, rx.missing()), (frames, 0));
        }
    }
}
