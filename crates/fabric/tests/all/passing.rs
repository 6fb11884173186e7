//! A packet that finds its port idle is sent without joining a queue, if the scheme does not look at queues. Nobody can tell.

use engine::{Rate, Time};
use fabric::network::Core;
use fabric::packet::Packet;
use fabric::scheme::{FlowControl, Unlimited, Visit};
use fabric::setup::{AckLane, Ecn, FlowSpec, Scheduler};
use fabric::topology::{Graph, Kind};
use fabric::{Network, Outcome, Setup};
use proptest::prelude::*;

/// Stops the neighbour while more than so many bytes are here that came from it.
struct Stop<const LOOKS: bool>(u64);

impl<const LOOKS: bool> FlowControl for Stop<LOOKS> {
    const LOOKS_AT_QUEUES: bool = LOOKS;

    fn enqueued(&mut self, core: &mut Core, visit: &Visit) {
        let (account, _) = core.account(visit.in_port, visit.class);
        if !account.paused && account.total() > self.0 {
            account.paused = true;
            core.send_frame(visit.in_port, 64, visit.class as u32, 1);
        }
    }
    fn dequeued(&mut self, core: &mut Core, visit: &Visit) {
        let (account, _) = core.account(visit.in_port, visit.class);
        if account.paused && account.total() <= self.0 / 2 {
            account.paused = false;
            core.send_frame(visit.in_port, 64, visit.class as u32, 0);
        }
    }
    fn frame(&mut self, core: &mut Core, port: u32, frame: &Packet) {
        core.pause_class(port, frame.flow as u8, frame.seq == 1);
    }
    fn merge(&mut self, _: Self) {}
}

fn run<const LOOKS: bool>(setup: &Setup, limit: u64) -> Outcome {
    let outcome = Network::new(setup.clone(), Stop::<LOOKS>(limit), Box::new(Unlimited)).run(|_, _| true);
    assert_eq!(outcome.violations, Vec::<String>::new());
    outcome
}

/// Two switches with three hosts each, joined by two links.
fn dumbbell(gbps: [u64; 2]) -> Graph {
    let mut graph = Graph::default();
    let hosts: Vec<u32> = (0..6).map(|i| graph.add(Kind::Host, 0, format!("h{i}"))).collect();
    let switches = ["a", "b"].map(|name| graph.add(Kind::Switch, 1, name));
    for (place, &host) in hosts.iter().enumerate() {
        graph.connect(host, switches[place / 3], Rate::from_gbps(gbps[0]), Time::from_ns(300));
    }
    (0..2).for_each(|_| graph.connect(switches[0], switches[1], Rate::from_gbps(gbps[1]), Time::from_ns(900)));
    graph
}

const SCHEDULERS: [Scheduler; 4] =
    [Scheduler::RoundRobin, Scheduler::Deficit, Scheduler::Priority, Scheduler::Shortest];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn a_packet_that_does_not_join_its_queue_changes_nothing(
        messages in prop::collection::vec((0u32..6, 1u32..6, 1u64..60_000, 0u64..9_000, 0u8..3), 1..40),
        (classes, queues, scheduler) in (1u8..4, 1u32..6, 0usize..4),
        gbps in [10u64..101, 10u64..101],
        limit in 500u64..30_000,
        with_data: bool,
    ) {
        let message = |(number, &(src, step, size, start, class)): (u16, &(u32, u32, u64, u64, u8))| FlowSpec {
            class: class % classes,
            ..FlowSpec::plain(number, src, (src + step) % 6, size, Time::from_ns(start))
        };
        let mut flows: Vec<FlowSpec> = (0..).zip(&messages).map(message).collect();
        flows.sort_by_key(|flow| flow.start);
        let mut setup = Setup::plain(dumbbell(gbps), flows);
        setup.classes = classes;
        setup.switch.queues = queues;
        setup.switch.scheduler = SCHEDULERS[scheduler];
        setup.switch.quantum = 1_500;
        setup.measure.sample = Some(Time::from_us(3));
        let ecn = Ecn { min: 2_000, max: 20_000, probability: 0.3 };
        setup.ports.iter_mut().for_each(|port| port.ecn = Some(ecn));
        if with_data {
            setup.nic.ack_lane = AckLane::Data(None);
        }
        let (joins, passes) = (run::<true>(&setup, limit), run::<false>(&setup, limit));
        prop_assert!(joins.complete());
        prop_assert_eq!(joins.flows, passes.flows);
        prop_assert_eq!(joins.counts, passes.counts);
        prop_assert_eq!((joins.end, joins.finished, joins.paused, joins.peak), (passes.end, passes.finished, passes.paused, passes.peak));
        prop_assert_eq!(joins.samples, passes.samples);
    }
}
