//! Packet spraying: every packet takes a path of its own, all paths in turn.

use fabric::axes::{Definition, LoadBalancingDef};
use fabric::routing::Rule;

engine::parameters! {
    /// Spraying has nothing to set.
    pub struct Params {}
}

impl Definition for Params {
    fn name(&self) -> &'static str {
        "spray"
    }
    fn about(&self) -> &'static str {
        "Packet spraying: every packet takes a path of its own, all paths in turn. Packets overtake one another."
    }
}

impl LoadBalancingDef for Params {
    fn rule(&self) -> Rule {
        Rule::ByPacket
    }
    fn may_reorder(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load_balancing::tests::ports;

    #[test]
    fn the_packets_of_a_flow_take_all_paths_in_turn() {
        let sent = ports(&Params::default(), 0, 10);
        // Each round of two takes both, in one order or the other.
        assert!(sent.chunks(2).all(|round| round == [1, 2] || round == [2, 1]), "{sent:?}");
    }
}
