//! DRILL (Ghorbani et al., SIGCOMM 2017): every packet takes the least loaded of two random ports and the one that was best before.

use super::Balancing;
use crate::ns3::rand::Shared;
use fabric::axes::LoadBalancer;
use fabric::axes::load_balancing::Crossroads;
use fabric::id::PortId;
use fabric::packet::Kind;
use std::collections::HashMap;

/// Random ports that are looked at.
const SAMPLES: usize = 2;

pub(super) struct Drill {
    dice: Shared,
    /// The port that was best, by destination.
    best: HashMap<u32, PortId>,
}

impl Drill {
    pub(super) fn new(all: &Balancing) -> Drill {
        Drill { dice: all.dice.clone(), best: HashMap::new() }
    }
}

impl LoadBalancer for Drill {
    fn choose(&mut self, at: &mut Crossroads<'_>) -> usize {
        if at.packet.kind != Kind::Data {
            return at.hashed();
        }
        // All are shuffled for the sake of the first.
        let mut places: Vec<usize> = (0..at.len()).collect();
        self.dice.with(|dice| {
            for i in 1..places.len() {
                places.swap(i, dice.draw() as usize % (i + 1));
            }
        });
        let before = self.best.get(&at.packet.dst).and_then(|&port| at.place(port));
        let seen = before.into_iter().chain(places.iter().copied().take(SAMPLES));
        // Of equals, the first.
        let best = seen.min_by_key(|&place| at.queued(place)).unwrap_or(0);
        self.best.insert(at.packet.dst, at.id(best));
        best
    }
}
