//! Round robin: one packet from each queue in turn. It is what a switch does by itself.

use fabric::axes::queueing::Discipline;
use fabric::axes::{Definition, QueueingDef};

engine::parameters! {
    /// Round robin has nothing to set.
    pub struct Params {}
}

impl Definition for Params {
    fn name(&self) -> &'static str {
        "round-robin"
    }
    fn about(&self) -> &'static str {
        "One packet from each queue in turn."
    }
}

impl QueueingDef for Params {
    fn build(&self) -> Discipline {
        Discipline::Packets
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queueing::tests::{Waiting, bench, order};

    #[test]
    fn each_queue_sends_one_packet_in_turn_whatever_its_size() {
        let waiting: Waiting = [(3, |_| {}), (5, |packet| packet.size = 531)];
        assert_eq!(order(&mut bench(&Params::default(), waiting)), [1, 0, 1, 0, 1, 0, 1, 1]);
    }
}
