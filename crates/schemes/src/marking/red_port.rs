//! RED by port: as RED, but what counts is all that waits at the port.

use fabric::axes::{Definition, MarkingDef};
use fabric::setup::PortSetup;

engine::parameters! {
    /// The thresholds are the scenario's (`switch.ecn_min`, `ecn_max`, `ecn_probability`).
    pub struct Params {}
}

impl Definition for Params {
    fn name(&self) -> &'static str {
        "red-port"
    }
    fn about(&self) -> &'static str {
        "A packet is marked with a probability that grows with all that waits at the port that it leaves by."
    }
}

impl MarkingDef for Params {
    fn port(&self, port: &mut PortSetup) {
        if let Some(ecn) = &mut port.ecn {
            ecn.by_port = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::marking::tests::marks;

    #[test]
    fn a_packet_is_marked_for_all_that_it_leaves_behind_at_the_port() {
        // Of five in all, the first leaves 4248 bytes and the second 3186, be it the only one of its queue.
        assert_eq!(marks(&Params::default(), [1, 4]), [(1, true), (0, true), (1, false), (1, false), (1, false)]);
    }
}
