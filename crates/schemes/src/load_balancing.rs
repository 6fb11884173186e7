//! Load balancing: which of several paths a packet takes. One file each.

use engine::Misfit;
use fabric::axes::LoadBalancingDef;
use fabric::axes::registry::Axis;

pub mod adaptive;
pub mod bitmap;
pub mod conga;
pub mod conweave;
pub mod d_mod_k;
pub mod drill;
pub mod ecmp;
pub mod letflow;
pub mod mixed;
pub mod oblivious;
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
        .add(|| Box::new(conga::Params::default()))
        .add(|| Box::new(conweave::Params::default()))
        .add(|| Box::new(bitmap::Params::default()))
        .add(|| Box::new(reps::Params::default()))
        .add(|| Box::new(oblivious::Params::default()))
        .add(|| Box::new(mixed::Params::default()));
}

/// A number of entropies whose lower bits are a place among them.
fn power_of_two(name: &'static str, count: u32) -> Result<(), Misfit> {
    match count.is_power_of_two() {
        true => Ok(()),
        false => {
            let above = count.next_power_of_two();
            Err(Misfit::new(name, count, format!("write {} or {above}", above / 2)))
        }
    }
}

#[cfg(test)]
mod tests {
    use engine::{Rate, Time};
    use fabric::Setup;
    use fabric::axes::LoadBalancingDef;
    use fabric::axes::flow_control::NoFlowControl;
    use fabric::bench::{Bench, Builder};
    use fabric::id::{NodeId, PortId};
    use fabric::setup::FlowSpec;
    use fabric::topology::{Graph, Kind};

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

    /// Leaves with hosts, and spines: a leaf's first ports lead to its hosts, the next to the spines; port `p` of a spine to leaf `p`.
    pub(super) struct Fabric {
        pub(super) setup: Setup,
        pub(super) hosts: Vec<NodeId>,
        pub(super) leaves: Vec<NodeId>,
        pub(super) spines: Vec<NodeId>,
    }

    impl Fabric {
        /// One node of it.
        pub(super) fn bench(setup: &Setup, node: NodeId, balancing: &dyn LoadBalancingDef) -> Bench<NoFlowControl> {
            Builder::of(setup.clone(), node).load_balancing(balancing).build(NoFlowControl)
        }
    }

    /// Such a fabric with links of 100 Gb/s and 1 us, and a flow from every host to every other.
    pub(super) fn leaf_spine(leaves: usize, hosts: usize, spines: usize) -> Fabric {
        let mut graph = Graph::default();
        let add = |graph: &mut Graph, kind, tier, count: usize| -> Vec<NodeId> {
            (0..count).map(|number| graph.add(kind, tier, format!("{tier}-{number}"))).collect()
        };
        let all = add(&mut graph, Kind::Host, 0, leaves * hosts);
        let leaves = add(&mut graph, Kind::Switch, 1, leaves);
        let spines = add(&mut graph, Kind::Switch, 2, spines);
        let (rate, delay) = (Rate::from_gbps(100), Time::from_us(1));
        all.iter().enumerate().for_each(|(host, &node)| graph.connect(node, leaves[host / hosts], rate, delay));
        for &leaf in &leaves {
            spines.iter().for_each(|&spine| graph.connect(leaf, spine, rate, delay));
        }
        let pairs =
            all.iter().flat_map(|src| all.iter().map(move |dst| (src.0, dst.0))).filter(|(src, dst)| src != dst);
        let flows = (0..).zip(pairs).map(|(index, (src, dst))| FlowSpec::plain(index, src, dst, 1_000_000, Time::ZERO));
        let flows = flows.map(|flow| FlowSpec { base_rtt: Time::from_us(9), ..flow }).collect();
        Fabric { setup: Setup::plain(graph, flows), hosts: all, leaves, spines }
    }
}
