//! Weighted ECMP (Zhou et al., EuroSys 2014): a hash of the flow chooses, and a path gets as many flows as it carries bytes.
//!
//! A path's weight is what it carries at most: its first link, or what the switches behind it have together towards the destination, whichever
//! is less. So the links far from a switch count, too, as in WCMP, whose controller computes weights from the whole fabric. The paper's reduction
//! of weights to small tables is left out: weights are exact. They follow the routing tables when links fail and come back.

use fabric::axes::load_balancing::Crossroads;
use fabric::axes::{Definition, LoadBalancer, LoadBalancingDef};
use fabric::id::NodeId;
use fabric::routing::Rule;
use fabric::view::Site;
use std::collections::HashMap;

engine::parameters! {
    /// Weighted ECMP has nothing to set.
    pub struct Params {}
}

impl Definition for Params {
    fn name(&self) -> &'static str {
        "wcmp"
    }
    fn about(&self) -> &'static str {
        "Weighted ECMP: a hash of the flow chooses, and each path gets flows in proportion to what it carries to their destination."
    }
    fn source(&self) -> &'static str {
        "J. Zhou, M. Tewari, M. Zhu, A. Kabbani, L. Poutievski, A. Singh, A. Vahdat, WCMP: Weighted Cost Multipathing for Improved Fairness in \
         Data Centers, EuroSys 2014"
    }
}

impl LoadBalancingDef for Params {
    // The analysis of deadlocks has to see every path that a flow may be given.
    fn rule(&self) -> Rule {
        Rule::ByPacket
    }
    fn switch(&self, site: &Site<'_>) -> Option<Box<dyn LoadBalancer>> {
        site.forwards().then(|| Box::<Weighted>::default() as Box<dyn LoadBalancer>)
    }
    fn by_rule(&self) -> bool {
        false
    }
}

#[derive(Default)]
struct Weighted {
    /// By destination: for each candidate, the sum of the weights up to it.
    sums: HashMap<NodeId, Vec<u64>>,
}

impl LoadBalancer for Weighted {
    fn choose(&mut self, at: &mut Crossroads<'_>) -> usize {
        let sums = self.sums.entry(at.toward()).or_insert_with(|| {
            let weight = |sum: &mut u64, place| {
                *sum += at.capacity(place);
                Some(*sum)
            };
            (0..at.len()).scan(0, weight).collect()
        });
        // As many equal parts as the weights have together: the hash, as a fraction of its range, is in one of them.
        let part = (at.hash() as u64 * *sums.last().unwrap_or(&1)) >> 32;
        sums.partition_point(|&sum| sum <= part).min(at.len() - 1)
    }
    fn rerouted(&mut self) {
        self.sums.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::{Rate, Time};
    use fabric::axes::flow_control::NoFlowControl;
    use fabric::bench::{Bench, Builder};
    use fabric::id::PortId;

    /// How many of so many flows leave a switch by each of its ports to `next` switches, of which the first is reached at 25 instead of 100
    /// Gb/s, or reaches the last switch so.
    fn flows(next: u16, far: bool) -> Vec<usize> {
        let slow = |setup: &mut fabric::Setup| {
            // Ports of the switch to the next ones come first, then those of the next ones to their hosts, then to the last switch.
            let switches = setup.graph.links.len() - 1 - next as usize;
            setup.graph.links[if far { switches } else { 1 }].rates = [Rate::from_gbps(25); 2];
        };
        let mut bench: Bench<NoFlowControl> =
            Builder::switch(1, next).setup(slow).load_balancing(&Params::default()).build(NoFlowControl);
        let flow = bench.flow(0, next as u32 + 1, 0);
        for nth in 0..2000u16 {
            bench.arrive_as(PortId(0), flow, |packet| {
                packet.tuple.source_port = nth;
                packet.seq = 0;
            });
        }
        bench.advance(Time::from_us(10_000));
        let sent = bench.data();
        (1..=next).map(|port| sent.iter().filter(|sent| sent.port == PortId(port)).count()).collect()
    }

    #[test]
    fn a_path_gets_flows_in_proportion_to_its_narrowest_link_wherever_that_is() {
        // Weights of 25 and twice 100: 2000 flows are 222 and 889 each, with a standard deviation of 14 and 22.
        for far in [false, true] {
            let flows = flows(3, far);
            assert!((165..280).contains(&flows[0]), "{far}: {flows:?}");
            assert!(flows[1..].iter().all(|flows| (800..980).contains(flows)), "{far}: {flows:?}");
        }
    }
}
