//! D-mod-K: the number of the destination chooses, so that all that goes to a host comes down the same path.

use fabric::axes::{Definition, LoadBalancingDef};
use fabric::routing::Rule;

engine::parameters! {
    /// D-mod-K has nothing to set.
    pub struct Params {}
}

impl Definition for Params {
    fn name(&self) -> &'static str {
        "d-mod-k"
    }
    fn about(&self) -> &'static str {
        "D-mod-K: the number of the destination chooses, so that all that goes to a host comes down the same path."
    }
}

impl LoadBalancingDef for Params {
    fn rule(&self) -> Rule {
        Rule::ByDestination
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load_balancing::tests::ports;

    #[test]
    fn the_number_of_the_destination_chooses_whatever_the_flow() {
        // Host 3 and two paths: 3 mod 2 is 1, the second.
        (0..8).for_each(|nth| assert_eq!(ports(&Params::default(), nth, 2), [2, 2]));
    }
}
