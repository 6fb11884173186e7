//! Shortest remaining message first, as pFabric has it (Alizadeh et al., SIGCOMM 2013).

use fabric::axes::queueing::{Discipline, PortQueues};
use fabric::axes::{Definition, Queueing, QueueingDef};
use fabric::id::QueueId;

engine::parameters! {
    /// It has nothing to set.
    pub struct Params {}
}

impl Definition for Params {
    fn name(&self) -> &'static str {
        "shortest"
    }
    fn about(&self) -> &'static str {
        "The queue whose first packet belongs to the message with the fewest bytes left (as pFabric has it)."
    }
    fn needs_size(&self) -> bool {
        true
    }
    fn source(&self) -> &'static str {
        "M. Alizadeh et al., pFabric: Minimal Near-Optimal Datacenter Transport, SIGCOMM 2013"
    }
}

impl QueueingDef for Params {
    fn build(&self) -> Discipline {
        Discipline::Own(Box::new(Shortest))
    }
}

struct Shortest;

impl Queueing for Shortest {
    fn pick(&self, port: &mut PortQueues<'_>) -> Option<QueueId> {
        port.ready().min_by_key(|&queue| (port.left(port.head(queue)), queue))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queueing::tests::{Waiting, bench, order};

    #[test]
    fn the_queue_whose_first_packet_is_nearest_to_the_end_of_its_message_goes_first() {
        // Of a megabyte, the packets of class 0 have all before them, those of class 1 their last 2000 bytes.
        let waiting: Waiting = [(2, |_| {}), (2, |packet| packet.seq += 998_000)];
        assert_eq!(order(&mut bench(&Params::default(), waiting)), [1, 1, 0, 0]);
    }
}
