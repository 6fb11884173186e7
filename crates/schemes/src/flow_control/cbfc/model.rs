//! The loop of credits, every order of its steps explored: the counters of a run, with three bits, between the ends of one link.
//!
//! A sender sends packets of one or two credits, and says now and then what it has sent; the receiver takes what comes, lets it leave when it likes, and says
//! what has left. The link keeps order, delivers when it likes, and loses a few of whatever is on it. As counters are cyclic there is no last packet: all states
//! that a run of any length can come to are there.
//!
//! What is looked at, in words:
//!
//! 1. *The buffer is enough.* The credits of what is in the receiver's memory, and on its way there, are never more than are in use at the sender, which are
//!    never more than its limit.
//! 2. *The receiver knows what it has*: R_CC − R_CF is what is in its memory.
//! 3. *No credit is lost for good.* From every state, if nothing more is sent or lost, what is said leads back to a link at rest with all credits.

use super::vc::Vc;
use std::collections::{HashMap, VecDeque};

const BITS: u32 = 3;
/// Half of what a counter counts: two packets of two credits.
const LIMIT: u32 = 1 << (BITS - 1);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Item {
    Packet(u32),
    /// CC_Update.
    Sync(u32),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Loop {
    sender: Vc<BITS>,
    receiver: Vc<BITS>,
    forth: VecDeque<Item>,
    /// CF_Updates.
    back: VecDeque<u32>,
    /// Packets in the receiver's memory.
    held: VecDeque<u32>,
    losses: u32,
}

/// What is explored, and how it differs from what CBFC does, to see that mistakes are found.
#[derive(Clone, Copy)]
struct Model {
    limit: u32,
    losses: u32,
    /// There are CC_Updates.
    syncs: bool,
    /// The receiver answers them.
    answers: bool,
    /// They keep their place among packets.
    in_order: bool,
}

const CBFC: Model = Model { limit: LIMIT, losses: 1, syncs: true, answers: true, in_order: true };
/// Packets and updates on the link at a time.
const FLIGHT: usize = 3;

/// Whether a step is the link's or the receiver's own, so that it is taken sooner or later; sending more, or losing, is not.
type Step = (bool, Loop);

fn credits<'a>(packets: impl Iterator<Item = &'a u32>) -> u32 {
    packets.sum()
}

impl Model {
    fn steps(self, from: &Loop) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::new();
        let mut step = |sure: bool, change: &dyn Fn(&mut Loop)| {
            let mut to = from.clone();
            change(&mut to);
            steps.push((sure, to));
        };
        for cost in 1..=2 {
            if from.sender.in_use() + cost <= self.limit && from.forth.len() < FLIGHT {
                step(false, &|to| {
                    to.sender.send(cost);
                    to.forth.push_back(Item::Packet(cost));
                });
            }
        }
        let said = from.forth.iter().any(|item| matches!(item, Item::Sync(_)));
        if self.syncs && from.sender.in_use() > 0 && !said && from.forth.len() < FLIGHT {
            step(true, &|to| match self.in_order {
                true => to.forth.push_back(Item::Sync(to.sender.consumed)),
                false => to.forth.push_front(Item::Sync(to.sender.consumed)),
            });
        }
        if let Some(&item) = from.forth.front() {
            step(true, &|to| {
                to.forth.pop_front();
                match item {
                    Item::Packet(cost) => {
                        to.receiver.receive(cost);
                        to.held.push_back(cost);
                    }
                    Item::Sync(consumed) => {
                        let owed = to.receiver.owed;
                        to.receiver.resynchronise(consumed);
                        to.receiver.owed = if self.answers { to.receiver.owed } else { owed };
                    }
                }
            });
            if from.losses > 0 {
                step(false, &|to| {
                    to.forth.pop_front();
                    to.losses -= 1;
                });
            }
        }
        if let Some(&cost) = from.held.front() {
            step(true, &|to| {
                to.held.pop_front();
                to.receiver.release(cost);
            });
        }
        if from.receiver.owed && from.back.is_empty() {
            step(true, &|to| {
                to.back.push_back(to.receiver.left);
                to.receiver.owed = false;
            });
        }
        if let Some(&freed) = from.back.front() {
            step(true, &|to| {
                to.back.pop_front();
                if to.sender.gets_back(freed) {
                    to.sender.freed = freed;
                }
            });
            if from.losses > 0 {
                step(false, &|to| {
                    to.back.pop_front();
                    to.losses -= 1;
                });
            }
        }
        steps
    }

    /// What is wrong with a state by itself.
    fn wrong(self, at: &Loop) -> Option<&'static str> {
        let on_way = at.forth.iter().map(|item| if let Item::Packet(cost) = item { cost } else { &0 });
        let (held, used) = (credits(at.held.iter()), at.sender.in_use());
        if held + credits(on_way) > used || used > self.limit {
            return Some("the buffer is not enough");
        }
        (at.receiver.held() != held).then_some("the receiver does not know what it has")
    }

    /// How many states there are, or what is wrong, and where.
    fn explore(self) -> Result<usize, (&'static str, String)> {
        let (forth, back, held) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
        let first = Loop { sender: Vc::new(0), receiver: Vc::new(0), forth, back, held, losses: self.losses };
        let mut known = HashMap::from([(first.clone(), 0)]);
        let mut states = vec![first];
        // By state: those from which a sure step leads there.
        let mut before: Vec<Vec<usize>> = vec![Vec::new()];
        let mut next = 0;
        while next < states.len() {
            if let Some(wrong) = self.wrong(&states[next]) {
                return Err((wrong, format!("{:?}", states[next])));
            }
            for (sure, to) in self.steps(&states[next]) {
                let number = *known.entry(to).or_insert_with_key(|to| {
                    states.push(to.clone());
                    before.push(Vec::new());
                    states.len() - 1
                });
                if sure {
                    before[number].push(next);
                }
            }
            next += 1;
        }
        let rest = |at: &Loop| {
            at.forth.is_empty()
                && at.back.is_empty()
                && at.held.is_empty()
                && at.sender.in_use() == 0
                && !at.receiver.owed
        };
        let mut leads: Vec<bool> = states.iter().map(rest).collect();
        let mut open: Vec<usize> = (0..states.len()).filter(|&number| leads[number]).collect();
        while let Some(number) = open.pop() {
            for &from in &before[number] {
                if !std::mem::replace(&mut leads[from], true) {
                    open.push(from);
                }
            }
        }
        match leads.iter().position(|leads| !leads) {
            Some(lost) => Err(("a credit is lost for good", format!("{:?}", states[lost]))),
            None => Ok(states.len()),
        }
    }
}

#[test]
fn no_credit_is_lost_for_good_and_the_buffer_is_always_enough() {
    for losses in 0..=2 {
        let found = Model { losses, ..CBFC }.explore();
        println!("cbfc, {losses} losses: {:?} states", found.as_ref().ok());
        assert!(found.is_ok(), "{losses} losses: {found:?}");
    }
}

#[test]
fn mistakes_are_found() {
    let found = |model: Model| model.explore().err().map(|(wrong, _)| wrong);
    // Packets that are lost are told by CC_Updates alone, and updates that are lost by the answers to them.
    assert_eq!(found(Model { syncs: false, ..CBFC }), Some("a credit is lost for good"));
    assert_eq!(found(Model { answers: false, ..CBFC }), Some("a credit is lost for good"));
    // One that went ahead of packets would free the credits of what is still to come.
    assert_eq!(found(Model { in_order: false, losses: 0, ..CBFC }), Some("the buffer is not enough"));
    // With more credits than half of what a counter counts, a loss of all of them cannot be told from a number from before.
    assert_eq!(found(Model { limit: LIMIT + 1, losses: 3, ..CBFC }), Some("a credit is lost for good"));
}
