//! Load balancing: which of several paths a packet takes. One file each.

use fabric::axes::LoadBalancingDef;
use fabric::axes::registry::Axis;

pub mod adaptive;
pub mod bitmap;
pub mod d_mod_k;
pub mod drill;
pub mod ecmp;
pub mod letflow;
pub mod reps;
pub mod spray;
pub mod wcmp;

/// Every load balancer, the usual one first.
pub(crate) fn list(axis: &mut Axis<dyn LoadBalancingDef>) {
    axis.add(|| Box::new(ecmp::Params::default()))
        .add(|| Box::new(spray::Params::default()))
        .add(|| Box::new(d_mod_k::Params::default()))
        .add(|| Box::new(letflow::Params::default()))
        .add(|| Box::new(wcmp::Params::default()))
        .add(|| Box::new(drill::Params::default()))
        .add(|| Box::new(adaptive::Params::default()))
        .add(|| Box::new(bitmap::Params::default()))
        .add(|| Box::new(reps::Params::default()));
}

#[cfg(test)]
mod tests {
    use engine::Time;
    use fabric::axes::LoadBalancingDef;
    use fabric::axes::flow_control::NoFlowControl;
    use fabric::bench::Builder;
    use fabric::id::PortId;

    /// The ports by which the packets of a flow leave a switch that has two paths to their destination, ports 1 and 2. The packets are
    /// numbered by their stamps, as transports that spray do it.
    pub(super) fn ports(balancing: &dyn LoadBalancingDef, flow: usize, packets: u64) -> Vec<u16> {
        let mut bench = Builder::switch(1, 2).load_balancing(balancing).build(NoFlowControl);
        let flow = bench.flow(0, 3, flow);
        (0..packets).for_each(|number| bench.arrive_as(PortId(0), flow, |packet| packet.stamp = Time(number)));
        bench.advance(Time::from_us(10));
        let mut sent = bench.data();
        sent.sort_by_key(|sent| sent.packet.stamp);
        sent.iter().map(|sent| sent.port.0).collect()
    }
}
