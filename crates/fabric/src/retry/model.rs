//! Two ends of a link that repeats, every order of their steps explored: the real ends, with numbers of two bits.
//!
//! A sender sends new frames and repeats, and its timer goes off whenever something is kept; the receiver answers. The link keeps order in both directions,
//! delivers when it likes, and damages or loses a few of whatever is on it. As numbers are cyclic there is no last frame: all states that a run of any length
//! can come to are there.
//!
//! What is looked at, in words:
//!
//! 1. *Nothing is lost, and nothing comes twice*: every frame is passed on once, and in order.
//! 2. *It ends*: from every state, if nothing new is sent and nothing more lost, everything comes, and the sender keeps nothing.
//! 3. Where ends give up and start again: the same of what is sent afterwards.

use super::*;
use std::collections::{HashMap, VecDeque};

const BITS: u32 = 2;
const SIZE: u16 = 100;
/// Frames, or sets, on the link in a direction at a time.
const FLIGHT: usize = 2;

/// What is on the link to the receiver; with a frame, which of all time it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Item {
    New,
    Again(Number<BITS>),
    Init(Number<BITS>),
}

#[derive(Clone, Debug)]
struct Link {
    sender: Sender<BITS>,
    receiver: Receiver<BITS>,
    forth: VecDeque<(Item, u64)>,
    back: VecDeque<Said<BITS>>,
    losses: u32,
    /// How many frames of all time were sent, and passed on or given up.
    sent: u64,
    passed: u64,
}

/// What is explored, and how it differs from what links do, to see that mistakes are found.
#[derive(Clone, Copy)]
struct Model {
    frames: u64,
    losses: u32,
    replays: Option<u32>,
    /// The sender's timer goes off.
    timer: bool,
}

const LLR: Model = Model { frames: 2, losses: 1, replays: None, timer: true };

/// All that decides what is done next: counts of all time relative to what was passed on, and deadlines only as to whether there are any.
type Key = (
    (State, Vec<u64>, Number<BITS>, Option<Number<BITS>>, bool, u32, bool),
    (Number<BITS>, Number<BITS>, Asked, bool, Option<Number<BITS>>),
    Vec<(Item, u64)>,
    Vec<Said<BITS>>,
    (u32, u64),
);

impl Link {
    fn key(&self) -> Key {
        let (tx, rx) = (&self.sender, &self.receiver);
        let sizes = tx.held.iter().map(|held| held.size as u64).collect();
        let attempts = if tx.limits.replays.is_some() { tx.attempts } else { 0 };
        (
            (tx.state, sizes, tx.base, tx.again, tx.deadline != Time::MAX, attempts, tx.owes),
            (rx.expected, rx.fresh, rx.asked, rx.news, rx.heard),
            self.forth.iter().map(|&(item, count)| (item, count.wrapping_sub(self.passed))).collect(),
            self.back.iter().copied().collect(),
            (self.losses, self.sent - self.passed),
        )
    }

    /// A frame comes: the one of all time that it is, and what the receiver makes of it.
    fn take(&mut self, count: u64, taken: Taken) -> Result<(), &'static str> {
        match taken {
            Taken::Passed if count == self.passed => self.passed += 1,
            Taken::Passed => return Err("a frame is passed on out of its turn"),
            Taken::Duplicate if count >= self.passed => {
                return Err("a frame that has not come is taken for one that has");
            }
            Taken::Awaited | Taken::Duplicate => {}
        }
        Ok(())
    }

    /// The first thing on the link arrives.
    fn arrive(&mut self, condition: Condition) -> Result<(), &'static str> {
        let Some((item, count)) = self.forth.pop_front() else { return Ok(()) };
        match item {
            Item::New => {
                let taken = self.receiver.first(condition);
                self.take(count, taken)?;
            }
            Item::Again(number) => {
                let taken = self.receiver.again(number, condition);
                self.take(count, taken)?;
            }
            // What was given up is so for the books whether the receiver hears of it or not.
            Item::Init(next) => {
                self.receiver.renew(next);
                self.passed = count;
                if condition == Condition::Good {
                    self.receiver.hear();
                }
            }
        }
        Ok(())
    }

    fn hear(&mut self, said: Said<BITS>) {
        match said {
            Said::Ack(expected) => self.sender.ack(Time::ZERO, expected),
            Said::Nack(expected) => _ = self.sender.nack(Time::ZERO, expected),
            Said::Echo(next) => self.sender.echo(next),
            Said::Init { .. } => {}
        }
    }

    fn at_rest(&self) -> bool {
        let quiet = self.forth.is_empty() && self.back.is_empty() && self.sender.kept() == (0, 0);
        quiet
            && self.sender.protects()
            && self.receiver.missing() == 0
            && self.sent == self.passed
            && self.receiver.due() == Time::MAX
    }
}

/// Whether a step is taken sooner or later; sending more, or losing, is not.
type Step = (bool, Result<Link, &'static str>);

impl Model {
    fn first(self) -> Link {
        let retry = Retry {
            frames: None,
            bytes: Some(u64::MAX),
            spacing: 0,
            replays: self.replays,
            restart: true,
            ..Retry::default()
        };
        let retry = Retry { then: Unprotected::Block, timer: Some(Time(1)), ..retry };
        let rate = Rate::from_gbps(100);
        let limits = Limits { frames: self.frames, ..retry.limits((rate, rate), Time::ZERO, Time::ZERO, SIZE as u64) };
        let begin = Number::of(0);
        let (sender, receiver) = (Sender::from(limits, begin), Receiver::from(&limits, begin));
        let (forth, back) = (VecDeque::new(), VecDeque::new());
        Link { sender, receiver, forth, back, losses: self.losses, sent: 0, passed: 0 }
    }

    fn steps(self, from: &Link) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::new();
        let mut step = |sure: bool, change: &dyn Fn(&mut Link) -> Result<(), &'static str>| {
            let mut to = from.clone();
            let done = change(&mut to);
            steps.push((sure, done.map(|()| to)));
        };
        if from.forth.len() < FLIGHT {
            // What a sender has to say goes first, then what it repeats.
            if from.sender.speaks() {
                step(true, &|to| {
                    if let Some(Said::Init { next, .. }) = to.sender.say() {
                        to.forth.push_back((Item::Init(next), to.sent));
                    }
                    Ok(())
                });
            } else if from.sender.repeats() {
                step(true, &|to| {
                    let Some((number, _)) = to.sender.repeat(Time::ZERO) else { return Err("nothing to repeat") };
                    let behind = to.sender.next().after(number) as u64;
                    to.forth.push_back((Item::Again(number), to.sent - behind));
                    Ok(())
                });
            } else if from.sender.is_open() {
                step(false, &|to| {
                    to.sender.sent(Time::ZERO, SIZE);
                    to.forth.push_back((Item::New, to.sent));
                    to.sent += 1;
                    Ok(())
                });
            }
        }
        if from.sender.due() != Time::MAX && self.timer {
            step(true, &|to| {
                to.sender.expire(to.sender.due());
                Ok(())
            });
        }
        if from.receiver.due() != Time::MAX && from.back.len() < FLIGHT {
            step(true, &|to| {
                let said = to.receiver.say(Time::from_ms(1));
                to.back.extend(said);
                Ok(())
            });
        }
        if !from.forth.is_empty() {
            step(true, &|to| to.arrive(Condition::Good));
            for condition in [Condition::Damaged, Condition::Missing] {
                if from.losses > 0 {
                    step(false, &|to| {
                        to.losses -= 1;
                        to.arrive(condition)
                    });
                }
            }
        }
        if let Some(&said) = from.back.front() {
            step(true, &|to| {
                to.back.pop_front();
                to.hear(said);
                Ok(())
            });
            if from.losses > 0 {
                step(false, &|to| {
                    to.back.pop_front();
                    to.losses -= 1;
                    Ok(())
                });
            }
        }
        steps
    }

    /// How many states there are, or what is wrong, and where.
    fn explore(self) -> Result<usize, (&'static str, String)> {
        let first = self.first();
        let mut known = HashMap::from([(first.key(), 0)]);
        let mut states = vec![first];
        // By state: those from which a sure step leads there.
        let mut before: Vec<Vec<usize>> = vec![Vec::new()];
        let mut next = 0;
        while next < states.len() {
            for (sure, to) in self.steps(&states[next]) {
                let to = to.map_err(|wrong| (wrong, format!("{:?}", states[next])))?;
                let number = *known.entry(to.key()).or_insert_with(|| {
                    states.push(to);
                    before.push(Vec::new());
                    states.len() - 1
                });
                if sure {
                    before[number].push(next);
                }
            }
            next += 1;
        }
        let mut leads: Vec<bool> = states.iter().map(Link::at_rest).collect();
        let mut open: Vec<usize> = (0..states.len()).filter(|&number| leads[number]).collect();
        while let Some(number) = open.pop() {
            for &from in &before[number] {
                if !std::mem::replace(&mut leads[from], true) {
                    open.push(from);
                }
            }
        }
        match leads.iter().position(|leads| !leads) {
            Some(stuck) => Err(("it does not end", format!("{:?}", states[stuck]))),
            None => Ok(states.len()),
        }
    }
}

#[test]
fn every_frame_comes_once_and_in_order_and_it_ends() {
    for (frames, losses) in [(1, 3), (2, 0), (2, 1), (2, 2), (2, 3)] {
        let found = Model { frames, losses, ..LLR }.explore();
        println!("retry, {frames} frames, {losses} losses: {:?} states", found.as_ref().ok());
        assert!(found.is_ok(), "{frames} frames, {losses} losses: {found:?}");
    }
}

#[test]
fn ends_that_give_up_start_again_and_go_on() {
    for replays in [0, 1] {
        let found = Model { replays: Some(replays), losses: 0, ..LLR }.explore();
        println!("retry, giving up after {replays} replays: {:?} states", found.as_ref().ok());
        assert!(found.is_ok(), "{replays} replays: {found:?}");
    }
}

/// An echo says which number it has heard: one that comes late, of two that were asked for, answers no later INIT.
#[test]
fn a_late_echo_answers_no_later_init() {
    let found = Model { replays: Some(0), losses: 1, ..LLR }.explore();
    println!("retry, giving up at once with a loss: {:?} states", found.as_ref().ok());
    assert!(found.is_ok(), "{found:?}");
}

#[test]
fn mistakes_are_found() {
    let found = |model: Model| model.explore().err().map(|(wrong, _)| wrong);
    // The last frame, and a NACK, are told by the timer alone.
    assert_eq!(found(Model { timer: false, ..LLR }), Some("it does not end"));
    // More frames than half of all numbers: one that comes again is taken for one that is to come, or the other way round.
    assert!(found(Model { frames: 3, losses: 2, ..LLR }).is_some());
}
