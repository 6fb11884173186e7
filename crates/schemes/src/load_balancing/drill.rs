//! DRILL (Ghorbani et al., SIGCOMM 2017): every packet takes the shortest of a few queues.
//!
//! DRILL(d, m), §3.2: for every packet a switch looks at d random ports among those on shortest paths and at the m best ones of the last
//! time, and takes the one where least waits. It remembers the m best of these for the next time. Only queues of the switch itself
//! count, so that it acts within a packet's time, and packets of a flow overtake one another as much as queues differ.
//!
//! In a fabric whose paths differ, the paper divides them into groups of equal ones by a control plane (§3.4) and hashes flows to a group. Here
//! a switch chooses among all shortest paths, equal or not.

use engine::Misfit;
use fabric::axes::load_balancing::Crossroads;
use fabric::axes::{Definition, LoadBalancer, LoadBalancingDef};
use fabric::id::{NodeId, PortId};
use fabric::routing::Rule;
use fabric::view::Site;
use std::collections::HashMap;

engine::choice! {
    /// For what ports are remembered.
    pub enum Memory {
        /// For all that the switch sends to the same switch, as all of it has the same ports to choose from.
        Switch = "switch",
        /// For each destination host, as in the simulator of ConWeave's authors.
        Host = "host",
    }
}

engine::parameters! {
    /// Parameters of DRILL.
    pub struct Params {
        /// How many random ports a switch looks at for every packet.
        d: u32 = 2, in 1..=64,
        /// How many of the best ports it remembers.
        m: u32 = 1, in 0..=64,
        /// For what they are remembered.
        memory: Memory = Memory::Switch,
    }
}

impl Definition for Params {
    fn name(&self) -> &'static str {
        "drill"
    }
    fn about(&self) -> &'static str {
        "DRILL: every packet takes the shortest queue of a few random ports and the best ones of the last time. Packets overtake one another."
    }
    fn source(&self) -> &'static str {
        "S. Ghorbani, Z. Yang, P. B. Godfrey, Y. Ganjali, A. Firoozshahian, DRILL: Micro Load Balancing for Low-latency Data Center Networks, \
         SIGCOMM 2017"
    }
    fn check(&self) -> Result<(), Misfit> {
        if self.d + self.m < 2 {
            let help = "write d = 2 or m = 1: with one port to look at, every packet takes a random one";
            return Err(Misfit::new("d", self.d, help));
        }
        Ok(())
    }
}

impl LoadBalancingDef for Params {
    fn rule(&self) -> Rule {
        Rule::ByPacket
    }
    fn switch(&self, site: &Site<'_>) -> Option<Box<dyn LoadBalancer>> {
        let drill = Drill { params: self.clone(), best: HashMap::new(), ports: Vec::new(), left: Vec::new() };
        site.forwards().then(|| Box::new(drill) as Box<dyn LoadBalancer>)
    }
    fn may_reorder(&self) -> bool {
        true
    }
}

struct Drill {
    params: Params,
    /// The best ports of the last time, the very best first.
    best: HashMap<NodeId, Vec<PortId>>,
    /// The places that are looked at for a packet, and those of which others are drawn.
    ports: Vec<usize>,
    left: Vec<usize>,
}

impl LoadBalancer for Drill {
    fn choose(&mut self, at: &mut Crossroads<'_>) -> usize {
        let toward = match self.params.memory {
            Memory::Switch => at.toward(),
            Memory::Host => NodeId(at.packet.dst),
        };
        let best = self.best.entry(toward).or_default();
        let ports = &mut self.ports;
        ports.clear();
        // What is remembered comes first, so that it is kept where others are no better.
        ports.extend(best.iter().filter_map(|&port| at.place(port)));
        // So many different ones of all, each as likely as the others.
        self.left.clear();
        self.left.extend(0..at.len());
        for _ in 0..(self.params.d as usize).min(at.len()) {
            let place = self.left.swap_remove(at.draw(self.left.len() as u64) as usize);
            if !ports.contains(&place) {
                ports.push(place);
            }
        }
        ports.sort_by_key(|&place| (!at.up(place), at.queued(place)));
        best.clear();
        best.extend(ports.iter().take(self.params.m as usize).map(|&place| at.id(place)));
        ports[0]
    }
    fn rerouted(&mut self) {
        self.best.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load_balancing::tests::ports;
    use fabric::axes::flow_control::NoFlowControl;
    use fabric::bench::Builder;

    #[test]
    fn with_all_ports_looked_at_packets_are_dealt_out_evenly() {
        // Both queues are looked at every time, so that they never differ by more than a packet.
        let sent = ports(&Params { d: 2, m: 0, ..Params::default() }, 0, 20);
        assert_eq!(sent.iter().filter(|port| **port == 1).count(), 10, "{sent:?}");
    }

    #[test]
    fn the_shorter_queue_is_taken_and_remembered() {
        // Four paths, ports 1 to 4, of which only port 3 sends. One random port is looked at, and the best of the last time.
        let params = Params { d: 1, m: 1, ..Params::default() };
        let mut bench = Builder::switch(1, 4).load_balancing(&params).build(NoFlowControl);
        [1, 2, 4].into_iter().for_each(|port| bench.close(PortId(port)));
        let flow = bench.flow(0, 5, 0);
        for _ in 0..200 {
            bench.arrive(PortId(0), flow);
            // Port 3 has sent it when the next comes, and no other has.
            bench.advance(engine::Time::from_us(1));
        }
        let waiting: Vec<u64> = [1, 2, 3, 4].map(|port| bench.view().queued(PortId(port)) / 1062).into();
        // Until port 3 is found, and the one time for each other port that is found empty: then it is never left again.
        assert_eq!(waiting[2], 0);
        assert!(waiting.iter().all(|packets| *packets <= 10), "{waiting:?}");
        assert_eq!(waiting.iter().sum::<u64>() + bench.data().len() as u64, 200);
    }

    #[test]
    fn one_port_to_look_at_is_refused() {
        assert!(Params { d: 1, m: 0, ..Params::default() }.check().is_err());
    }
}
