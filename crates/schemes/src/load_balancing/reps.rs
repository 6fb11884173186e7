//! REPS (Bonato et al., 2024): a sender recycles the entropies of packets that came through unmarked.
//!
//! A sender keeps a ring of a few entropies for each flow. An ACK without a mark puts the entropy of its packet in, as fresh. The next packet
//! takes the oldest fresh one, which is then used up; without a fresh one it takes a random one, and explores. So packets follow paths
//! that were just free, and leave those whose packets are marked, without any state of the paths (§3.1).
//!
//! *Freezing* (§3.2): after a timeout something is likely to have failed, and exploring would send packets into it. Then the sender takes the
//! entropies of the ring over and over, fresh or not, for a while. What comes back unmarked goes on filling the ring. Afterwards the ring is emptied
//! and a few packets explore.
//!
//! Eight entropies are the paper's; how long a ring is frozen and how many packets explore afterwards are those of the Ultra Ethernet group's
//! simulator (uet-htsim, `reps`).

use engine::{Stream, Time};
use fabric::axes::{Counter, Definition, LoadBalancingDef, PathSelector};
use fabric::id::FlowId;
use fabric::view::Site;
use std::collections::HashMap;

engine::parameters! {
    /// Parameters of REPS.
    pub struct Params {
        /// Entropies that a flow keeps.
        ring: u32 = 8, in 1..=256,
        /// Entropies to draw from, when exploring.
        paths: u32 = 65_536, in 2..=65_536,
        /// Whether a ring is frozen after a timeout.
        freezing: bool = true,
        /// How long it is frozen.
        frozen: Time = Time::from_ms(10), in Time::from_us(1)..=Time::from_ms(10_000), if freezing == true,
        /// How many packets explore afterwards.
        explore: u32 = 16, in 0..=65_536, if freezing == true,
    }
}

impl Definition for Params {
    fn name(&self) -> &'static str {
        "reps"
    }
    fn about(&self) -> &'static str {
        "REPS: a sender uses the entropies of packets that were acknowledged unmarked again, and else random ones. Packets overtake one another."
    }
    fn source(&self) -> &'static str {
        "T. Bonato, A. Kabbani, A. Ghalayini, M. Papamichael, M. Dohadwala, L. Gianinazzi, M. Khalilov, E. Achermann, D. De Sensi, T. Hoefler, REPS: \
         Recycled Entropy Packet Spraying for Adaptive Load Balancing and Failure Mitigation, arXiv 2407.21625, 2024"
    }
}

impl LoadBalancingDef for Params {
    fn host(&self, _: &Site<'_>) -> Option<Box<dyn PathSelector>> {
        Some(Box::new(Reps::new(self)))
    }
    fn may_reorder(&self) -> bool {
        true
    }
}

/// An entropy of a ring.
#[derive(Clone, Copy, Default)]
struct Kept {
    entropy: u16,
    fresh: bool,
}

/// What a sender keeps of a flow.
#[derive(Default)]
struct Flow {
    /// Never longer than the ring.
    kept: Vec<Kept>,
    /// Where the next entropy goes.
    head: usize,
    /// How many are fresh: those before the head.
    fresh: usize,
    /// Where a frozen ring is.
    turn: usize,
    frozen_until: Option<Time>,
    explore: u32,
}

struct Reps {
    params: Params,
    flows: HashMap<FlowId, Flow>,
    recycled: u64,
    explored: u64,
    freezes: u64,
}

impl Reps {
    fn new(params: &Params) -> Reps {
        Reps { params: params.clone(), flows: HashMap::new(), recycled: 0, explored: 0, freezes: 0 }
    }
}

impl Flow {
    fn add(&mut self, entropy: u16, ring: usize) {
        let kept = Kept { entropy, fresh: true };
        if self.kept.len() < ring {
            self.kept.push(kept);
            self.fresh += 1;
        } else {
            self.fresh += !self.kept[self.head].fresh as usize;
            self.kept[self.head] = kept;
        }
        self.head = (self.head + 1) % ring;
    }

    /// Thaws a ring whose time is over.
    fn thaw(&mut self, now: Time, explore: u32) {
        if self.frozen_until.is_some_and(|until| until < now) {
            *self = Flow { explore, ..Flow::default() };
        }
    }

    fn recycle(&mut self, ring: usize) -> Option<u16> {
        if self.explore > 0 {
            self.explore -= 1;
            return None;
        }
        let place = match self.frozen_until {
            None if self.fresh > 0 => (self.head + ring - self.fresh) % ring,
            Some(_) if !self.kept.is_empty() => {
                self.turn %= self.kept.len();
                self.turn += 1;
                self.turn - 1
            }
            _ => return None,
        };
        let kept = &mut self.kept[place];
        self.fresh -= kept.fresh as usize;
        kept.fresh = false;
        Some(kept.entropy)
    }
}

impl PathSelector for Reps {
    fn next(&mut self, flow: FlowId, _: u16, now: Time, dice: &mut Stream) -> u16 {
        let Params { ring, paths, explore, .. } = self.params;
        let flow = self.flows.entry(flow).or_default();
        flow.thaw(now, explore);
        match flow.recycle(ring as usize) {
            Some(entropy) => {
                self.recycled += 1;
                entropy
            }
            None => {
                self.explored += 1;
                dice.below(paths as u64) as u16
            }
        }
    }
    fn acknowledged(&mut self, flow: FlowId, entropy: u16, marked: bool, now: Time) {
        let Params { ring, explore, .. } = self.params;
        if let Some(flow) = self.flows.get_mut(&flow) {
            flow.thaw(now, explore);
            if !marked {
                flow.add(entropy, ring as usize);
            }
        }
    }
    fn expired(&mut self, flow: FlowId, now: Time) {
        let Params { freezing, frozen, .. } = self.params;
        let open = |flow: &&mut Flow| freezing && flow.frozen_until.is_none() && flow.explore == 0;
        if let Some(flow) = self.flows.get_mut(&flow).filter(open) {
            flow.frozen_until = Some(now + frozen);
            self.freezes += 1;
        }
    }
    fn ended(&mut self, flow: FlowId) {
        self.flows.remove(&flow);
    }
    fn counters(&self) -> Vec<Counter> {
        vec![
            Counter::sum("reps_recycled", self.recycled),
            Counter::sum("reps_explored", self.explored),
            Counter::sum("reps_freezes", self.freezes),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOW: FlowId = FlowId(7);

    struct Sender(Reps, Stream);

    impl Sender {
        fn new(params: Params) -> Sender {
            Sender(Reps::new(&params), Stream::new(1, 1))
        }
        fn send(&mut self, now: u64) -> u16 {
            self.0.next(FLOW, 0, Time::from_us(now), &mut self.1)
        }
        fn hear(&mut self, entropy: u16, marked: bool) {
            self.0.acknowledged(FLOW, entropy, marked, Time::ZERO);
        }
    }

    #[test]
    fn what_came_back_unmarked_is_sent_again_once_the_oldest_first() {
        let mut sender = Sender::new(Params::default());
        let first: Vec<u16> = (0..4).map(|_| sender.send(0)).collect();
        assert!(first.windows(2).any(|two| two[0] != two[1]), "exploring");
        for (place, entropy) in [101, 102, 103].into_iter().enumerate() {
            sender.hear(entropy, place == 1);
        }
        assert_eq!((sender.send(0), sender.send(0)), (101, 103));
        assert_eq!((sender.0.recycled, sender.0.explored), (2, 4));
        sender.send(0);
        assert_eq!((sender.0.recycled, sender.0.explored), (2, 5), "nothing fresh is left");
    }

    #[test]
    fn a_full_ring_forgets_the_oldest() {
        let mut sender = Sender::new(Params { ring: 4, ..Params::default() });
        sender.send(0);
        (1..=6).for_each(|entropy| sender.hear(entropy, false));
        assert_eq!((0..4).map(|_| sender.send(0)).collect::<Vec<_>>(), [3, 4, 5, 6]);
    }

    #[test]
    fn a_frozen_ring_goes_round_and_is_emptied_when_it_thaws() {
        let params = Params { ring: 4, frozen: Time::from_us(100), explore: 2, ..Params::default() };
        let mut sender = Sender::new(params);
        sender.send(0);
        [1, 2, 3].into_iter().for_each(|entropy| sender.hear(entropy, false));
        assert_eq!(sender.send(0), 1);
        sender.0.expired(FLOW, Time::ZERO);
        // Used up or not, all of them, again and again.
        assert_eq!((0..6).map(|_| sender.send(50)).collect::<Vec<_>>(), [1, 2, 3, 1, 2, 3]);
        sender.0.expired(FLOW, Time::from_us(60));
        assert_eq!(sender.0.freezes, 1, "it is frozen already");
        let explored = sender.0.explored;
        sender.send(101);
        sender.hear(9, false);
        sender.send(102);
        assert_eq!(sender.0.explored, explored + 2);
        assert_eq!(sender.send(103), 9);
    }

    #[test]
    fn without_freezing_a_timeout_changes_nothing() {
        let mut sender = Sender::new(Params { freezing: false, ..Params::default() });
        sender.send(0);
        sender.0.expired(FLOW, Time::ZERO);
        assert_eq!(sender.0.freezes, 0);
        sender.0.ended(FLOW);
        assert!(sender.0.flows.is_empty());
    }
}
