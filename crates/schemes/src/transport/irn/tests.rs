use super::*;
use crate::{congestion_control, testing};
use engine::Rate;
use fabric::axes::flow_control::NoFlowControl;
use fabric::bench::{Bench, Builder};
use fabric::id::NodeId;
use fabric::packet::Answer;
use fabric::routing::Rule;
use fabric::setup::FlowSpec;
use fabric::topology::{self, Graph};
use fabric::{Network, Outcome};
use proptest::prelude::*;
use std::collections::{BTreeSet, HashMap};

fn graph(senders: u32, paths: u32) -> Graph {
    let mut graph = Graph::default();
    let hosts: Vec<NodeId> = (0..senders + 1).map(|i| graph.add(topology::Kind::Host, 0, format!("h{i}"))).collect();
    let (left, right) = (graph.add(topology::Kind::Switch, 1, "left"), graph.add(topology::Kind::Switch, 1, "right"));
    let (us, line) = (Time::from_us(1), Rate::from_gbps(100));
    (0..senders).for_each(|h| graph.connect(hosts[h as usize], left, line, us));
    graph.connect(hosts[senders as usize], right, line, us);
    for path in 0..paths {
        let middle = graph.add(topology::Kind::Switch, 2, format!("m{path}"));
        // Paths of different lengths, so that packets overtake each other.
        graph.connect(left, middle, line, Time::from_ns(500 + 700 * path as u64));
        graph.connect(middle, right, line, us);
    }
    graph
}

fn setup(senders: u32, paths: u32, size: u64) -> Setup {
    let flows = (0..senders as u16).map(|i| FlowSpec::plain(i, i as u32, senders, size, Time::ZERO)).collect();
    let mut setup = Setup::plain(graph(senders, paths), flows);
    setup.flows.iter_mut().for_each(|flow| flow.base_rtt = Time::from_us(12));
    setup
}

fn run_with(params: &Params, mut setup: Setup) -> (Outcome, HashMap<&'static str, u64>) {
    params.adjust(&mut setup);
    let unlimited = congestion_control::None::default();
    let outcome =
        testing::chosen(&unlimited, params, |chosen| Network::new(setup, NoFlowControl, chosen).run(|_, _| true));
    assert_eq!(outcome.violations, Vec::<String>::new());
    let counters = outcome.transport.iter().map(|counter| (counter.name, counter.value)).collect();
    (outcome, counters)
}

fn run(setup: Setup) -> (Outcome, HashMap<&'static str, u64>) {
    run_with(&Params::default(), setup)
}

/// The links of `setup` that data and ACKs of all flows pass.
fn lossy(mut setup: Setup, loss: f64) -> Setup {
    let last = setup.flows.len();
    setup.graph.links[last].loss = loss;
    setup
}

#[test]
fn without_loss_nothing_is_sent_twice_and_no_more_than_the_cap_is_in_flight() {
    let (outcome, counters) = run(setup(1, 1, 1_000_000));
    assert!(outcome.complete());
    assert_eq!(outcome.counts.retransmitted.0, 0);
    assert_eq!(counters["irn_nacks"] + counters["irn_timeouts_low"] + counters["irn_timeouts_high"], 0);
    // Three senders, each with 150 KB in flight at most: in the queue of the receiver's link that makes at most their sum.
    let (outcome, _) = run(setup(3, 1, 1_000_000));
    let product: u64 = 12 * 12_500;
    assert_eq!(Params::default().cap, None);
    let peak = outcome.peak.iter().max().copied().unwrap_or(0);
    assert!(peak < 3 * (product + 2000) * 1062 / 1000 && peak > product, "{peak}");
}

#[test]
fn a_single_loss_costs_a_single_packet() {
    // The first packet on the last link that the dice of this seed take is in the midst of the message.
    let seeds = (1..200).map(|seed| {
        let mut setup = lossy(setup(1, 1, 200_000), 0.004);
        setup.seed = seed;
        run(setup)
    });
    let mut seen = 0;
    for (outcome, counters) in seeds {
        assert!(outcome.complete());
        // One data packet was lost and not among the last, whose loss no later packet shows.
        if outcome.counts.dropped_fault == 1 && counters["irn_nacks"] > 0 {
            seen += 1;
            assert_eq!(outcome.counts.retransmitted.0, 1);
            assert_eq!((counters["irn_recoveries"], counters["irn_duplicates"], outcome.counts.timeouts), (1, 0, 0));
            // It took a round trip to hear of it and to repair it, not a timeout.
            assert!(outcome.flows[0].received < Time::from_us(16 + 8 + 24), "{:?}", outcome.flows[0]);
        }
    }
    assert!(seen > 20, "{seen}");
}

#[test]
fn the_loss_of_a_lone_packet_is_repaired_after_the_short_timeout_and_of_many_after_the_long_one() {
    let first = |size: u64, seed: u64| {
        let mut setup = lossy(setup(1, 1, size), 0.5);
        setup.seed = seed;
        run(setup)
    };
    let (mut short, mut long) = (0, 0);
    for seed in 0..40 {
        let (outcome, counters) = first(700, seed);
        assert!(outcome.complete());
        if outcome.counts.dropped_fault == 1 {
            short += 1;
            assert_eq!((counters["irn_timeouts_low"], counters["irn_timeouts_high"]), (1, 0));
            assert!(outcome.flows[0].acknowledged > Time::from_us(100));
            assert!(outcome.flows[0].acknowledged < Time::from_us(100 + 14));
        }
        long += first(100_000, seed).1["irn_timeouts_high"];
    }
    assert!(short > 5 && long > 5, "{short} {long}");
}

#[test]
fn after_a_timeout_everything_that_was_lost_before_it_is_sent_again_at_once() {
    // The link is down while the second half of the message passes: nothing reveals the loss but the clock.
    let mut setup = setup(1, 1, 100_000);
    setup.graph.links[1].outages = vec![(Time::from_us(8), Some(Time::from_us(30)))];
    let (outcome, counters) = run(setup);
    assert!(outcome.complete());
    assert_eq!((outcome.counts.timeouts, counters["irn_timeouts_high"]), (1, 1));
    // One packet to find out, and a round trip later all the others.
    assert!(outcome.flows[0].received < Time::from_us(320 + 20 + 12 + 12), "{:?}", outcome.flows[0].received);
    assert!(outcome.counts.retransmitted.0 <= 60 && outcome.counts.retransmitted.0 > 10);
}

#[test]
fn a_timeout_that_was_too_short_repeats_one_packet_and_not_all() {
    let mut setup = setup(10, 1, 400_000);
    // Eight times the cap in one queue takes 100 us: two who start behind it lose patience while their packets wait.
    setup.flows[8..].iter_mut().for_each(|flow| flow.start = Time::from_us(30));
    let hasty = Params { rto_low: Some(Time::from_us(60)), rto_high: Some(Time::from_us(60)), ..Params::default() };
    let (outcome, counters) = run_with(&hasty, setup);
    assert!(outcome.complete());
    let timeouts = outcome.counts.timeouts;
    assert!(timeouts >= 2);
    assert_eq!(outcome.counts.retransmitted.0, counters["irn_duplicates"]);
    assert!(outcome.counts.retransmitted.0 <= timeouts, "{:?}", outcome.counts);
}

#[test]
fn packets_over_paths_of_different_lengths_arrive_in_any_order_and_all_count() {
    let mut setup = setup(2, 4, 500_000);
    setup.rule = Rule::ByPacket;
    let (outcome, counters) = run(setup);
    assert!(outcome.complete() && outcome.counts.out_of_order > 100);
    assert!(counters["irn_nacks"] >= outcome.counts.out_of_order);
    // What was sent again needlessly came twice.
    assert_eq!(counters["irn_duplicates"], outcome.counts.retransmitted.0);
    for flow in &outcome.flows {
        assert_eq!(flow.delivered, 500_000);
        assert!(flow.received < flow.acknowledged);
    }
}

#[test]
fn what_is_overtaken_by_less_than_it_may_be_is_not_sent_again() {
    let sprayed = |reordering| {
        let mut setup = setup(2, 4, 500_000);
        setup.rule = Rule::ByPacket;
        run_with(&Params { reordering, ..Params::default() }, setup).0
    };
    let (one, many) = (sprayed(1), sprayed(150));
    assert!(one.counts.retransmitted.0 > 100 && many.counts.out_of_order > 100);
    // More than are ever in flight.
    assert_eq!((many.counts.retransmitted.0, many.counts.timeouts), (0, 0));
    assert!(many.complete() && many.end < one.end);
}

#[test]
fn timeouts_that_nobody_wrote_outlast_the_round_trip() {
    let mut setup = setup(1, 1, 1000);
    setup.flows[0].base_rtt = Time::from_ms(8);
    let irn = Params::default().limits(&setup);
    assert_eq!((irn.low, irn.high), (Time::from_ms(16), Time::from_ms(16)));
    let written = Params { rto_low: Some(Time::from_us(70)), rto_high: Some(Time::from_us(90)), ..Params::default() };
    let irn = written.limits(&setup);
    assert_eq!((irn.low, irn.high), (Time::from_us(70), Time::from_us(90)));
}

#[test]
fn the_timeout_of_the_nic_is_the_long_one() {
    let mut setup = setup(1, 1, 1000);
    setup.nic.timeout = Some(Time::from_us(50));
    let irn = Params::default().limits(&setup);
    assert_eq!((irn.low, irn.high, irn.cap), (Time::from_us(50), Time::from_us(50), 150_000));
    let wrong = Params { rto_low: Some(Time::ZERO), ..Params::default() };
    assert_eq!(wrong.check().unwrap_err().parameter, "rto_low");
    let wrong = Params { cap: Some(Bytes(0)), ..Params::default() };
    assert_eq!(wrong.check().unwrap_err().parameter, "cap");
}

proptest! {
    #[test]
    fn every_flow_is_received_whole_whatever_is_lost_and_in_any_order(
        (senders, paths) in (1u32..=4, 1u32..=4),
        size in prop_oneof![1u64..3000, 1u64..200_000],
        (forth, back) in (0.0..0.4f64, 0.0..0.3f64),
        (acks, cap, seed, spray, pool) in (1u32..=5, prop::option::of(1u64..100_000), 0u64..1000, any::<bool>(), 3_000u64..200_000),
        reordering in prop_oneof![Just(1u32), 1u32..100],
    ) {
        let mut setup = setup(senders, paths, size);
        setup.seed = seed;
        setup.rule = if spray { Rule::ByPacket } else { Rule::ByFlow };
        setup.graph.links[senders as usize].loss = forth;
        setup.graph.links[0].loss = back;
        setup.switch.pool.fill(Some(pool));
        setup.nic.acks = AckPolicy::Every(acks);
        let (outcome, counters) = run_with(&Params { cap: cap.map(Bytes), reordering, ..Params::default() }, setup);
        prop_assert!(outcome.complete(), "{:?} {:?}", outcome.counts, outcome.stall);
        for flow in &outcome.flows {
            prop_assert_eq!(flow.delivered, size);
        }
        let c = &outcome.counts;
        prop_assert_eq!(c.injected.1, size * senders as u64 + c.retransmitted.1);
        // Each byte counts once; what came again is a duplicate.
        let packets = size.div_ceil(1000) * senders as u64;
        prop_assert_eq!(c.delivered.0, packets + counters["irn_duplicates"]);
        prop_assert_eq!(outcome.left, 0);
    }
}

proptest! {
    #[test]
    fn numbers_of_packets_are_kept_as_a_set_would(
        steps in prop::collection::vec((0u64..300, prop::bool::weighted(0.1)), 1..200),
    ) {
        let (mut packets, mut set, mut first) = (Packets::default(), BTreeSet::new(), 0);
        for (number, pass) in steps {
            if pass {
                first = first.max(number);
                packets.pass(first);
                set.retain(|&n| n >= first);
            } else if number >= first {
                prop_assert_eq!(packets.insert(number), set.insert(number));
            }
            prop_assert_eq!(packets.count, set.len() as u64);
            let from = number.max(first);
            prop_assert_eq!(packets.gap(from), (from..).find(|n| !set.contains(n)).unwrap_or(0));
        }
    }
}

const PORT: PortId = PortId(0);

/// The numbers of the packets that were sent within a microsecond, which is enough for eleven.
fn sent(bench: &mut Bench<NoFlowControl>) -> Vec<u64> {
    bench.advance(Time::from_us(1));
    bench.data().iter().map(|sent| sent.packet.seq / 1000).collect()
}

#[test]
fn a_sender_repeats_the_missing_packet_alone_and_keeps_within_its_cap() {
    let params = Params { cap: Some(Bytes(4_000)), ..Params::default() };
    let mut bench = Builder::host(1).transport(&params).build(NoFlowControl);
    let flow = bench.flow(0, 1, 0);
    bench.start(flow, 6_000);
    assert_eq!(sent(&mut bench), [0, 1, 2, 3]);
    // Packet 2 has arrived and packet 1 has not.
    let sack = Answer { sack: 2_000, ..Answer::default() };
    bench.control_as(PORT, flow, Kind::Nack, 1_000, Some(sack));
    assert_eq!(sent(&mut bench), [1, 4]);
    bench.control_as(PORT, flow, Kind::Ack, 3_000, None);
    assert_eq!(sent(&mut bench), [5]);
    bench.control_as(PORT, flow, Kind::Ack, 6_000, None);
    assert!(bench.view().flow_done(flow));
}

#[test]
fn a_sender_that_expects_reordering_repeats_a_packet_when_one_so_far_behind_it_has_arrived() {
    let params = Params { cap: Some(Bytes(6_000)), reordering: 3, ..Params::default() };
    let mut bench = Builder::host(1).transport(&params).build(NoFlowControl);
    let flow = bench.flow(0, 1, 0);
    bench.start(flow, 8_000);
    assert_eq!(sent(&mut bench), [0, 1, 2, 3, 4, 5]);
    let mut sack = |packet: u64| {
        let sack = Answer { sack: packet * 1_000, ..Answer::default() };
        bench.control_as(PORT, flow, Kind::Nack, 1_000, Some(sack));
        sent(&mut bench)
    };
    // Packet 1 is missing; 2 and 3 may have overtaken it, and 4 may not.
    assert_eq!(sack(2), [6]);
    assert_eq!(sack(3), []);
    assert_eq!(sack(4), [1]);
    // Two packets behind packet 5, which is missing now, nothing has arrived.
    assert_eq!(sack(6), []);
}

#[test]
fn few_packets_in_flight_are_repeated_after_the_short_timeout_and_more_after_the_long_one() {
    for (size, timeout) in [(2_000, 100), (4_000, 320)] {
        let params = Params { cap: Some(Bytes(10_000)), ..Params::default() };
        let mut bench = Builder::host(1).transport(&params).build(NoFlowControl);
        let flow = bench.flow(0, 1, 0);
        bench.start(flow, size);
        sent(&mut bench);
        bench.advance_to(Time::from_us(timeout) - Time(1));
        assert_eq!(bench.data().len(), 0);
        bench.advance(Time(1));
        assert_eq!(bench.data().iter().map(|sent| sent.packet.seq).collect::<Vec<_>>(), [0], "{size} bytes");
    }
}

#[test]
fn a_receiver_takes_packets_in_any_order_and_names_each_that_came_early() {
    let params = Params::default();
    let mut bench = Builder::host(1).transport(&params).build(NoFlowControl);
    let flow = bench.flow(1, 0, 0);
    let mut answer = |seq: u64| {
        bench.arrive_as(PORT, flow, |packet| packet.seq = seq);
        let sent = bench.controls().remove(0);
        bench.advance(Time::from_us(1));
        (sent.packet.kind, sent.packet.seq, sent.answer.unwrap().sack)
    };
    assert_eq!(answer(0), (Kind::Ack, 1_000, 0));
    assert_eq!(answer(2_000), (Kind::Nack, 1_000, 2_000));
    assert_eq!(answer(3_000), (Kind::Nack, 1_000, 3_000));
    assert_eq!(answer(1_000), (Kind::Ack, 4_000, 1_000));
}
