//! Strict priority: class 0 first; among the queues of a class, one packet from each in turn.

use fabric::axes::queueing::{Discipline, PortQueues};
use fabric::axes::{Definition, Queueing, QueueingDef};
use fabric::id::QueueId;

engine::parameters! {
    /// Strict priority has nothing to set.
    pub struct Params {}
}

impl Definition for Params {
    fn name(&self) -> &'static str {
        "priority"
    }
    fn about(&self) -> &'static str {
        "Classes in strict order, class 0 first; among the queues of a class, one packet from each in turn."
    }
}

impl QueueingDef for Params {
    fn build(&self) -> Discipline {
        Discipline::Own(Box::new(Priority))
    }
}

struct Priority;

impl Queueing for Priority {
    fn pick(&self, port: &mut PortQueues<'_>) -> Option<QueueId> {
        let class = port.class(port.ready().next()?);
        let mut queues = port.ready().take_while(|queue| port.class(*queue) == class);
        let (first, last) = (queues.next()?, port.last());
        Some(if first > last { first } else { queues.find(|&queue| queue > last).unwrap_or(first) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queueing::tests::{bench, order};

    #[test]
    fn class_1_waits_until_class_0_has_nothing_to_send() {
        let mut bench = bench(&Params::default(), [(2, |_| {}), (2, |_| {})]);
        assert_eq!(order(&mut bench), [0, 0, 1, 1]);
    }
}
