//! RED as data centres use it: a packet is marked with a probability that grows with the length of its queue.

use fabric::axes::{Definition, MarkingDef};

engine::parameters! {
    /// The thresholds are the scenario's (`switch.ecn_min`, `ecn_max`, `ecn_probability`).
    pub struct Params {}
}

impl Definition for Params {
    fn name(&self) -> &'static str {
        "red"
    }
    fn about(&self) -> &'static str {
        "A packet is marked with a probability that grows with the length of the queue that it leaves."
    }
    fn source(&self) -> &'static str {
        "S. Floyd and V. Jacobson, Random Early Detection Gateways for Congestion Avoidance, IEEE/ACM ToN 1993"
    }
}

impl MarkingDef for Params {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::marking::tests::marks;

    #[test]
    fn a_packet_is_marked_for_what_it_leaves_behind_in_its_own_queue() {
        // Of five, the first leaves 4248 bytes, the second 3186 and the third 2124.
        assert_eq!(marks(&Params::default(), [5, 0]), [true, true, false, false, false].map(|marked| (0, marked)));
        // That others wait at the port does not matter.
        assert_eq!(marks(&Params::default(), [1, 3]), [(1, false), (0, false), (1, false), (1, false)]);
    }
}
