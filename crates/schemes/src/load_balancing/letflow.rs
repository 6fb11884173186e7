//! LetFlow (Vanini et al., NSDI 2017): a flowlet takes a random path.
//!
//! A switch keeps a table of flowlets by hash of the flow. A packet that follows the last one of its entry within the timeout takes
//! the same port; after a longer gap it takes a random one, for it can no longer overtake what went before. Nothing measures the paths:
//! on a slow path packets are held back, gaps open and the flow leaves, on a fast one it stays.
//!
//! The timeout follows the fabric: after a base round trip without a packet, what went before has most likely arrived. The size of the table
//! is ours: so large that flows rarely share an entry.

use engine::Time;
use fabric::axes::load_balancing::Crossroads;
use fabric::axes::{Counter, Definition, LoadBalancer, LoadBalancingDef};
use fabric::id::PortId;
use fabric::routing::Rule;
use fabric::view::Site;

engine::parameters! {
    /// Parameters of LetFlow.
    pub struct Params {
        /// A packet that comes later than this after the last of its entry begins a flowlet. Auto: the longest base round trip among the flows.
        timeout: Option<Time> = None, in Time::from_ns(1)..=Time::from_ms(10_000),
        /// Entries of the table of a switch.
        entries: u32 = 65_536, in 1..=1 << 20,
    }
}

impl Definition for Params {
    fn name(&self) -> &'static str {
        "letflow"
    }
    fn about(&self) -> &'static str {
        "LetFlow: a packet that follows the last one of its flow after a gap takes a random path, and those behind it the same."
    }
    fn source(&self) -> &'static str {
        "E. Vanini, R. Pan, M. Alizadeh, P. Taheri, T. Edsall, Let It Flow: Resilient Asymmetric Load Balancing with Flowlet Switching, NSDI 2017"
    }
}

impl LoadBalancingDef for Params {
    // A flow may take any of the shortest paths: the analysis of deadlocks has to see them all.
    fn rule(&self) -> Rule {
        Rule::ByPacket
    }
    fn switch(&self, site: &Site<'_>) -> Option<Box<dyn LoadBalancer>> {
        // A node that never forwards has no table.
        site.forwards().then(|| Box::new(LetFlow::new(self, site.longest_rtt)) as Box<dyn LoadBalancer>)
    }
    fn may_reorder(&self) -> bool {
        true
    }
}

/// An entry of the table.
#[derive(Clone, Copy)]
struct Flowlet {
    /// When its last packet came.
    last: Time,
    port: PortId,
}

struct LetFlow {
    timeout: Time,
    table: Vec<Option<Flowlet>>,
    flowlets: u64,
}

impl LetFlow {
    fn new(params: &Params, longest_rtt: Time) -> LetFlow {
        let timeout = params.timeout.unwrap_or(longest_rtt);
        LetFlow { timeout, table: vec![None; params.entries as usize], flowlets: 0 }
    }

    /// The port of a packet's entry, while the flowlet lasts.
    fn current(&self, entry: usize, now: Time) -> Option<PortId> {
        self.table[entry].filter(|flowlet| now - flowlet.last <= self.timeout).map(|flowlet| flowlet.port)
    }
}

impl LoadBalancer for LetFlow {
    fn choose(&mut self, at: &mut Crossroads<'_>) -> usize {
        let entry = at.hash() as usize % self.table.len();
        // Flows share entries, and links fail: the port may not be a candidate of this packet.
        let current = self.current(entry, at.now);
        let place = current.and_then(|port| at.place(port)).filter(|&place| at.up(place));
        let place = place.unwrap_or_else(|| {
            self.flowlets += 1;
            at.draw_up()
        });
        self.table[entry] = Some(Flowlet { last: at.now, port: at.id(place) });
        place
    }
    fn counters(&self) -> Vec<Counter> {
        vec![Counter::sum("flowlets", self.flowlets)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow_control::pfc::{self, Pfc};
    use crate::load_balancing::ecmp;
    use crate::testing::chosen;
    use crate::{congestion_control, transport};
    use engine::Rate;
    use fabric::axes::Chosen;
    use fabric::axes::flow_control::NoFlowControl;
    use fabric::bench::Builder;
    use fabric::buffer::{ALPHA_ONE, Share};
    use fabric::id::NodeId;
    use fabric::setup::FlowSpec;
    use fabric::topology::{Graph, Kind};
    use fabric::{Network, Outcome, Setup};

    #[test]
    fn an_entry_lasts_for_the_timeout_after_its_last_packet() {
        let mut letflow = LetFlow::new(&Params { entries: 4, ..Params::default() }, Time::from_us(100));
        letflow.table[1] = Some(Flowlet { last: Time::from_us(100), port: PortId(7) });
        assert_eq!(letflow.current(1, Time::from_us(200)), Some(PortId(7)));
        assert_eq!(letflow.current(1, Time::from_us(201)), None);
        assert_eq!(letflow.current(2, Time::from_us(100)), None, "another entry");
    }

    /// Two hosts on two leaves with four spines between them.
    fn two_leaves() -> Setup {
        let mut graph = Graph::default();
        let hosts = [graph.add(Kind::Host, 0, "h0"), graph.add(Kind::Host, 0, "h1")];
        let leaves = [graph.add(Kind::Switch, 1, "leaf0"), graph.add(Kind::Switch, 1, "leaf1")];
        for (host, leaf) in hosts.into_iter().zip(leaves) {
            graph.connect(host, leaf, Rate::from_gbps(100), Time::from_us(1));
        }
        for spine in 0..4 {
            let spine = graph.add(Kind::Switch, 2, format!("spine{spine}"));
            leaves.iter().for_each(|&leaf| graph.connect(leaf, spine, Rate::from_gbps(100), Time::from_us(1)));
        }
        let flow = FlowSpec::plain(0, hosts[0].0, hosts[1].0, 1_000_000, Time::ZERO);
        Setup::plain(graph, vec![FlowSpec { base_rtt: Time::from_us(9), ..flow }])
    }

    fn run(params: Params) -> (Outcome, u64) {
        let transport = transport::go_back_n::GoBackN::default();
        let outcome = chosen(&congestion_control::None::default(), &transport, |usual| {
            let chosen = Chosen { load_balancing: &params, ..*usual };
            Network::new(two_leaves(), NoFlowControl, &chosen).run(|_, _| true)
        });
        assert!(outcome.complete() && outcome.violations.is_empty(), "{:?}", outcome.violations);
        let count = outcome.switches.iter().find(|counter| counter.name == "flowlets").unwrap().value;
        (outcome, count)
    }

    #[test]
    fn a_flow_without_gaps_is_one_flowlet() {
        let (outcome, flowlets) = run(Params::default());
        // One of the data, and one of the ACKs at the other leaf.
        assert_eq!((flowlets, outcome.counts.out_of_order), (2, 0));
    }

    #[test]
    fn a_timeout_shorter_than_the_gap_between_packets_sprays_them() {
        let (_, flowlets) = run(Params { timeout: Some(Time::from_ns(1)), ..Params::default() });
        assert!(flowlets > 1000, "{flowlets}");
    }

    #[test]
    fn packets_within_the_timeout_follow_one_another_and_later_ones_take_any_port() {
        // Two paths, ports 1 and 2. A packet every 100 us continues the flowlet, one every 101 us begins another.
        let ports = |gap: Time| -> Vec<u16> {
            let params = Params { timeout: Some(Time::from_us(100)), ..Params::default() };
            let mut bench = Builder::switch(1, 2).load_balancing(&params).build(NoFlowControl);
            let flow = bench.flow(0, 3, 0);
            for _ in 0..64 {
                bench.arrive(PortId(0), flow);
                bench.advance(gap);
            }
            bench.data().iter().map(|sent| sent.port.0).collect()
        };
        let together = ports(Time::from_us(100));
        assert!(together.len() == 64 && together.iter().all(|port| *port == together[0]), "{together:?}");
        let apart = ports(Time::from_us(101));
        // 64 fair draws: 32 are expected of each, with a standard deviation of 4.
        let first = apart.iter().filter(|port| **port == 1).count();
        assert!((16..=48).contains(&first), "{apart:?}");
        assert_eq!(apart, ports(Time::from_us(101)), "drawn from the stream of the switch");
    }

    /// Eight hosts at 10 Gb/s on a leaf send to eight on another. One of two spines has 100 Gb/s up, the other 10 Gb/s.
    fn asymmetric(balancing: &dyn LoadBalancingDef) -> (Outcome, f64) {
        let mut graph = Graph::default();
        let hosts: Vec<NodeId> = (0..16).map(|host| graph.add(Kind::Host, 0, format!("h{host}"))).collect();
        let leaves = [graph.add(Kind::Switch, 1, "leaf0"), graph.add(Kind::Switch, 1, "leaf1")];
        let spines = [graph.add(Kind::Switch, 2, "fast"), graph.add(Kind::Switch, 2, "slow")];
        for (number, &host) in hosts.iter().enumerate() {
            graph.connect(host, leaves[number / 8], Rate::from_gbps(10), Time::from_us(1));
        }
        graph.connect(leaves[0], spines[0], Rate::from_gbps(100), Time::from_us(1));
        graph.connect(leaves[0], spines[1], Rate::from_gbps(10), Time::from_us(1));
        spines.iter().for_each(|&spine| graph.connect(leaves[1], spine, Rate::from_gbps(100), Time::from_us(1)));
        // The ports of the first leaf are eight to hosts, then the two uplinks.
        let up = fabric::routing::PortMap::new(&graph).of(leaves[0].0).start as usize + 8;
        // There and back over four links of 1 us each, with a packet of 1062 B and an ACK at 10 Gb/s twice.
        let base_rtt = Time::from_us(10);
        let flow = |index: u16| {
            let (from, to) = (hosts[index as usize].0, hosts[index as usize + 8].0);
            FlowSpec { base_rtt, ..FlowSpec::plain(index, from, to, 1_000_000, Time::ZERO) }
        };
        let mut setup = Setup::plain(graph, (0..8).map(flow).collect());
        setup.rule = balancing.rule();
        setup.switch.pool.fill(Some(1_000_000));
        setup.switch.resume_gap = 3_000;
        setup.ports.iter_mut().for_each(|port| port.share = Share { alpha: ALPHA_ONE / 32, headroom: 40_000 });
        setup.nic.timeout = Some(Time::from_ms(5));
        let transport = transport::go_back_n::GoBackN::default();
        let outcome = chosen(&congestion_control::None::default(), &transport, |usual| {
            let chosen = Chosen { load_balancing: balancing, ..*usual };
            Network::new(setup, Pfc::new(&pfc::Params::default(), None, true), &chosen).run(|_, _| true)
        });
        assert!(outcome.complete() && outcome.violations.is_empty(), "{:?}", outcome.violations);
        let (fast, slow) = (outcome.sent[up], outcome.sent[up + 1]);
        (outcome, slow as f64 / (fast + slow) as f64)
    }

    #[test]
    fn flowlets_leave_a_slow_uplink_which_ecmp_keeps_loading() {
        // Flows on the slow uplink are paused, so that gaps open; at 10 Gb/s without pauses a packet follows every 0.85 us.
        let (hashed, hashed_share) = asymmetric(&ecmp::Params::default());
        let (flowlets, share) = asymmetric(&Params::default());
        assert!(hashed.counts.pauses > 0, "the slow uplink is overloaded");
        assert!(share < hashed_share / 2.0, "{share} of the bytes take the slow uplink, with ECMP {hashed_share}");
        assert!(flowlets.end.0 < hashed.end.0 / 2, "{} against {}", flowlets.end, hashed.end);
    }
}
