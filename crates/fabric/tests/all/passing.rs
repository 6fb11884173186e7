//! A packet that finds its port idle is sent without joining a queue, if the scheme does not look at queues. The outcome is the same.

use engine::{Rate, Time};
use fabric::axes::flow_control::{FlowControl, Visit};
use fabric::id::{ClassId, NodeId, PortId};
use fabric::setup::{AckLane, Ecn, FlowSpec};
use fabric::topology::{Graph, Kind};
use fabric::view::{NodeView, Site};
use fabric::{Outcome, Setup, message};
use proptest::prelude::*;

/// Stops the neighbour while more than so many bytes are here that came from it.
#[derive(Clone)]
struct Stop<const LOOKS: bool>(u64);

message! {
    struct Frame { class: ClassId, pause: bool }
}

impl<const LOOKS: bool> FlowControl for Stop<LOOKS> {
    type Node = ();
    type Frame = Frame;
    type Signal = ();
    const LOOKS_AT_QUEUES: bool = LOOKS;

    fn node(&self, _: &Site<'_>) {}
    fn enqueued(&self, _: &mut (), at: &mut NodeView<'_>, visit: &Visit) {
        let (account, _) = at.account(visit.in_port, visit.class);
        if !account.paused && account.total() > self.0 {
            account.paused = true;
            at.send_frame(visit.in_port, 64, Frame { class: visit.class, pause: true });
        }
    }
    fn dequeued(&self, _: &mut (), at: &mut NodeView<'_>, visit: &Visit) {
        let (account, _) = at.account(visit.in_port, visit.class);
        if account.paused && account.total() <= self.0 / 2 {
            account.paused = false;
            at.send_frame(visit.in_port, 64, Frame { class: visit.class, pause: false });
        }
    }
    fn frame(&self, _: &mut (), at: &mut NodeView<'_>, port: PortId, frame: Frame) {
        at.pause_class(port, frame.class, frame.pause);
    }
}

fn run<const LOOKS: bool>(setup: &Setup, limit: u64, scheduler: &str) -> Outcome {
    let outcome = crate::run_queued(setup.clone(), Stop::<LOOKS>(limit), scheduler);
    assert_eq!(outcome.violations, Vec::<String>::new());
    outcome
}

/// Two switches with three hosts each, joined by two links.
fn dumbbell(gbps: [u64; 2]) -> Graph {
    let mut graph = Graph::default();
    let hosts: Vec<NodeId> = (0..6).map(|i| graph.add(Kind::Host, 0, format!("h{i}"))).collect();
    let switches = ["a", "b"].map(|name| graph.add(Kind::Switch, 1, name));
    for (place, &host) in hosts.iter().enumerate() {
        graph.connect(host, switches[place / 3], Rate::from_gbps(gbps[0]), Time::from_ns(300));
    }
    (0..2).for_each(|_| graph.connect(switches[0], switches[1], Rate::from_gbps(gbps[1]), Time::from_ns(900)));
    graph
}

const SCHEDULERS: [&str; 4] = ["round-robin", "drr", "priority", "shortest"];

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
            class: ClassId(class % classes),
            ..FlowSpec::plain(number, src, (src + step) % 6, size, Time::from_ns(start))
        };
        let mut flows: Vec<FlowSpec> = (0..).zip(&messages).map(message).collect();
        flows.sort_by_key(|flow| flow.start);
        let mut setup = Setup::plain(dumbbell(gbps), flows);
        setup.classes = classes;
        setup.switch.queues = queues;
        setup.switch.quantum = 1_500;
        setup.measure.sample = Some(Time::from_us(3));
        let ecn = Ecn { min: 2_000, max: 20_000, probability: 0.3, by_port: false };
        setup.ports.iter_mut().for_each(|port| port.ecn = Some(ecn));
        if with_data {
            setup.nic.ack_lane = AckLane::Data(None);
        }
        let (joins, passes) = (run::<true>(&setup, limit, SCHEDULERS[scheduler]), run::<false>(&setup, limit, SCHEDULERS[scheduler]));
        prop_assert!(joins.complete());
        prop_assert_eq!(joins.flows, passes.flows);
        prop_assert_eq!(joins.counts, passes.counts);
        prop_assert_eq!((joins.end, joins.finished, joins.paused, joins.peak), (passes.end, passes.finished, passes.paused, passes.peak));
        prop_assert_eq!(joins.samples, passes.samples);
    }
}
