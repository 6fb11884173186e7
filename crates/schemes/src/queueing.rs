//! Queueing: which queue of an egress port sends next. One file each.
//!
//! How many queues a class has is the scenario's (`switch.queues`): with one, all of these are first come, first served within a class;
//! with several, flows are hashed onto them (stochastic fair queueing), and with very many that is nearly a queue per flow (ideal fair
//! queueing).

use fabric::axes::QueueingDef;
use fabric::axes::registry::Axis;

pub mod drr;
pub mod priority;
pub mod round_robin;
pub mod shortest;

/// Every discipline, the usual one first.
pub(crate) fn list(axis: &mut Axis<dyn QueueingDef>) {
    axis.add(|| Box::new(drr::Params::default()))
        .add(|| Box::new(round_robin::Params::default()))
        .add(|| Box::new(priority::Params::default()))
        .add(|| Box::new(shortest::Params::default()));
}

#[cfg(test)]
mod tests {
    use fabric::axes::QueueingDef;
    use fabric::axes::flow_control::NoFlowControl;
    use fabric::bench::{Bench, Builder};
    use fabric::id::PortId;
    use fabric::packet::Packet;

    /// By class: how many packets wait, and what they are like.
    pub(super) type Waiting = [(usize, fn(&mut Packet)); 2];

    /// A switch port with two classes of which packets wait.
    pub(super) fn bench(queueing: &dyn QueueingDef, waiting: Waiting) -> Bench<NoFlowControl> {
        let builder = Builder::switch(3, 0).classes(2).setup(|setup| setup.switch.quantum = 1062);
        let mut bench = builder.queueing(queueing).build(NoFlowControl);
        bench.close(PortId(2));
        for (class, (count, like)) in (0..).zip(waiting) {
            let flow = bench.flow(class as u32, 2, 0);
            for _ in 0..count {
                bench.arrive_as(PortId(class as u16), flow, |packet| {
                    packet.class = class;
                    like(packet);
                });
            }
        }
        bench
    }

    /// The classes of what the port sends, in order.
    pub(super) fn order(bench: &mut Bench<NoFlowControl>) -> Vec<u8> {
        std::iter::from_fn(|| bench.transmit(PortId(2))).map(|sent| sent.packet.class).collect()
    }
}
