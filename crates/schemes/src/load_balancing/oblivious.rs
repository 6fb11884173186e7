//! Oblivious spraying at the sender, as in Ultra Ethernet's multipathing: all entropies in turn, whatever is heard of them.
//!
//! A sender gives the packets of a flow so many entropies, one after the other, each once in a round and every round in another order (uet-htsim,
//! `oblivious`). Switches hash them, so that entropies may share a path.

use engine::{Misfit, Stream, Time};
use fabric::axes::{Definition, LoadBalancingDef, PathSelector};
use fabric::id::FlowId;
use fabric::view::Site;
use std::collections::HashMap;

engine::parameters! {
    /// Parameters of oblivious spraying.
    pub struct Params {
        /// Entropies of a flow; a power of two.
        paths: u32 = 64, in 1..=32_768,
    }
}

impl Definition for Params {
    fn name(&self) -> &'static str {
        "oblivious"
    }
    fn about(&self) -> &'static str {
        "A sender gives packets all entropies in turn, every round in another order. Packets overtake one another."
    }
    fn source(&self) -> &'static str {
        "Ultra Ethernet Consortium, Ultra Ethernet Specification 1.0, 2025; as in its simulator, uet-htsim"
    }
    fn check(&self) -> Result<(), Misfit> {
        super::power_of_two("paths", self.paths)
    }
}

impl LoadBalancingDef for Params {
    fn host(&self, _: &Site<'_>) -> Option<Box<dyn PathSelector>> {
        Some(Box::new(Oblivious { paths: self.paths, flows: HashMap::new() }))
    }
    fn may_reorder(&self) -> bool {
        true
    }
}

/// Where a flow's round is, and its order: the place is combined with it by exclusive or.
#[derive(Clone, Copy)]
struct Round {
    turn: u16,
    order: u16,
}

struct Oblivious {
    paths: u32,
    flows: HashMap<FlowId, Round>,
}

impl PathSelector for Oblivious {
    fn next(&mut self, flow: FlowId, own: u16, _: Time, dice: &mut Stream) -> u16 {
        let mask = (self.paths - 1) as u16;
        let mut order = || dice.below(self.paths as u64) as u16;
        let round = self.flows.entry(flow).or_insert_with(|| Round { turn: 0, order: order() });
        let entropy = round.turn ^ round.order;
        round.turn += 1;
        if round.turn as u32 == self.paths {
            *round = Round { turn: 0, order: order() };
        }
        // The upper bits are the flow's own, so that flows do not share their paths.
        (own & !mask) | entropy
    }
    fn ended(&mut self, flow: FlowId) {
        self.flows.remove(&flow);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_entropy_has_its_turn_in_each_round_whatever_is_heard_of_it() {
        let (flow, mut dice) = (FlowId(3), Stream::new(1, 1));
        let mut spray = Oblivious { paths: 8, flows: HashMap::new() };
        let all: BTreeSet<u16> = (0xabc0..0xabc8).collect();
        let mut orders = BTreeSet::new();
        for _ in 0..20 {
            let round: Vec<u16> = (0..8).map(|_| spray.next(flow, 0xabc5, Time::ZERO, &mut dice)).collect();
            spray.acknowledged(flow, round[0], true, Time::ZERO);
            spray.expired(flow, Time::ZERO);
            assert_eq!(round.iter().copied().collect::<BTreeSet<_>>(), all);
            orders.insert(round);
        }
        assert!(orders.len() > 3, "rounds have different orders");
        spray.ended(flow);
        assert!(spray.flows.is_empty());
    }
}
