//! Deficit round robin (Shreedhar and Varghese 1995): the same number of bytes from each queue in turn. A switch can do it by itself.

use fabric::axes::queueing::Discipline;
use fabric::axes::{Definition, QueueingDef};

engine::parameters! {
    /// The bytes of a turn are the scenario's (`switch.quantum`).
    pub struct Params {}
}

impl Definition for Params {
    fn name(&self) -> &'static str {
        "drr"
    }
    fn about(&self) -> &'static str {
        "Deficit round robin: the same number of bytes from each queue in turn."
    }
    fn source(&self) -> &'static str {
        "M. Shreedhar and G. Varghese, Efficient Fair Queueing using Deficit Round Robin, SIGCOMM 1995"
    }
}

impl QueueingDef for Params {
    fn build(&self) -> Discipline {
        Discipline::Bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queueing::tests::{Waiting, bench, order};

    #[test]
    fn each_queue_gets_the_same_bytes_in_turn_whatever_the_size_of_its_packets() {
        // Turns of 1062 bytes: one packet of 1062, or two of 531.
        let waiting: Waiting = [(3, |_| {}), (6, |packet| packet.size = 531)];
        assert_eq!(order(&mut bench(&Params::default(), waiting)), [1, 1, 0, 1, 1, 0, 1, 1, 0]);
    }
}
