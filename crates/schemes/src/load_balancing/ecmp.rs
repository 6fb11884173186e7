//! ECMP: a hash of the flow chooses, so that all its packets take the same path.

use fabric::axes::{Definition, LoadBalancingDef};
use fabric::routing::Rule;

engine::parameters! {
    /// ECMP has nothing to set.
    pub struct Params {}
}

impl Definition for Params {
    fn name(&self) -> &'static str {
        "ecmp"
    }
    fn about(&self) -> &'static str {
        "Equal-cost multipath: a hash of the flow chooses, so that all its packets take the same path."
    }
}

impl LoadBalancingDef for Params {
    fn rule(&self) -> Rule {
        Rule::ByFlow
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load_balancing::tests::ports;
    use std::collections::BTreeSet;

    #[test]
    fn all_packets_of_a_flow_take_one_path_and_flows_are_spread() {
        let flows: Vec<_> = (0..8).map(|nth| ports(&Params::default(), nth, 5)).collect();
        assert!(flows.iter().all(|ports| ports.iter().all(|port| *port == ports[0])));
        assert_eq!(flows.concat().into_iter().collect::<BTreeSet<u16>>(), [1, 2].into());
    }
}
