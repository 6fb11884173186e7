//! Times and counts that can be computed by hand, and that every flow ends whatever is lost.

use super::*;
use crate::congestion_control::{self, nscc};
use crate::{edge_control, flow_control, load_balancing, marking, queueing};
use engine::Rate;
use fabric::axes::flow_control::NoFlowControl;
use fabric::axes::{CongestionControlDef, EdgeControlDef};
use fabric::bench::{Bench, Builder};
use fabric::id::NodeId;
use fabric::packet::Answer;
use fabric::setup::{Ecn, FlowSpec};
use fabric::topology::{self, Graph};
use fabric::{Network, Outcome};
use proptest::prelude::*;

/// Picoseconds at 100 Gb/s of a full packet, of a header, a NACK or a credit, and of an ACK.
const FULL: u64 = 1062 * 80;
const SMALL: u64 = 64 * 80;
const ACK: u64 = 66 * 80;
/// Picoseconds of every link's delay.
const DELAY: u64 = 1_000_000;
const HOST: PortId = PortId(0);

/// Which of the two controls there are.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Control {
    Nothing,
    Nscc,
    Rccc,
    Both,
}

fn choose<R>(control: Control, params: &Params, act: impl FnOnce(&Chosen<'_>) -> R) -> R {
    let inner: Box<dyn CongestionControlDef> = match control {
        Control::Nscc | Control::Both => Box::new(nscc::Params::default()),
        _ => Box::new(congestion_control::None::default()),
    };
    let rccc = edge_control::rccc::Params::default();
    let none = edge_control::None::default();
    let edge: &dyn EdgeControlDef = if matches!(control, Control::Rccc | Control::Both) { &rccc } else { &none };
    let both = edge.over(inner);
    act(&Chosen {
        flow_control: &flow_control::None::default(),
        congestion_control: &*both,
        edge_control: edge,
        transport: params,
        load_balancing: &load_balancing::mixed::Params::default(),
        queueing: &queueing::round_robin::Params::default(),
        marking: &marking::red::Params::default(),
        window: false,
    })
}

fn run(mut setup: Setup, control: Control, params: &Params) -> Outcome {
    for port in &mut setup.ports {
        port.ecn = Some(Ecn { min: 0, max: 0, probability: 1.0, by_port: false });
    }
    params.adjust(&mut setup);
    // Some hundred million events are for ever.
    let mut reports = 0;
    let outcome = choose(control, params, |chosen| {
        Network::new(setup, NoFlowControl, chosen).run(|_, _| {
            reports += 1;
            reports < 500
        })
    });
    assert_eq!(outcome.violations, Vec::<String>::new());
    assert!(outcome.complete(), "{} of {} flows, {:?}", outcome.finished.len(), outcome.flows.len(), outcome.counts);
    assert_eq!(outcome.left, 0);
    outcome
}

fn count(outcome: &Outcome, name: &str) -> u64 {
    outcome.transport.iter().find(|counter| counter.name == name).expect("a counter").value
}

/// Hosts around a switch, with 100 Gb/s and 1 us each.
fn star(hosts: u32, flows: Vec<FlowSpec>) -> Setup {
    let mut graph = Graph::default();
    (0..hosts).for_each(|host| _ = graph.add(topology::Kind::Host, 0, format!("h{host}")));
    let switch = graph.add(topology::Kind::Switch, 1, "s");
    (0..hosts).for_each(|host| graph.connect(NodeId(host), switch, Rate::from_gbps(100), Time(DELAY)));
    with_rtt(graph, flows, 4 * DELAY + 2 * FULL + 2 * ACK)
}

fn with_rtt(graph: Graph, flows: Vec<FlowSpec>, rtt: u64) -> Setup {
    let flows = flows.into_iter().map(|flow| FlowSpec { base_rtt: Time(rtt), ..flow }).collect();
    Setup::plain(graph, flows)
}

fn leaf_spine(leaves: u32, hosts: u32, spines: u32, flows: Vec<FlowSpec>) -> Setup {
    let mut graph = Graph::default();
    (0..leaves * hosts).for_each(|host| _ = graph.add(topology::Kind::Host, 0, format!("h{host}")));
    let add = |graph: &mut Graph, tier: u8, name: String| graph.add(topology::Kind::Switch, tier, name);
    let leaf: Vec<NodeId> = (0..leaves).map(|leaf| add(&mut graph, 1, format!("leaf{leaf}"))).collect();
    let spine: Vec<NodeId> = (0..spines).map(|spine| add(&mut graph, 2, format!("spine{spine}"))).collect();
    let (rate, delay) = (Rate::from_gbps(100), Time(DELAY));
    (0..leaves * hosts).for_each(|host| graph.connect(NodeId(host), leaf[(host / hosts) as usize], rate, delay));
    leaf.iter().for_each(|&leaf| spine.iter().for_each(|&spine| graph.connect(leaf, spine, rate, delay)));
    with_rtt(graph, flows, 8 * DELAY + 4 * FULL + 4 * ACK)
}

/// All other hosts send to host 0 at once.
fn incast(senders: u32, size: u64) -> Vec<FlowSpec> {
    (0..senders).map(|i| FlowSpec::plain(i as u16, i + 1, 0, size, Time::ZERO)).collect()
}

#[test]
fn a_flow_alone_takes_its_ideal_time_to_the_picosecond_under_every_control() {
    for control in [Control::Nothing, Control::Nscc, Control::Both] {
        for size in [1, 1000, 1001, 59_000, 1_000_000, 3_000_007] {
            let setup = star(2, vec![FlowSpec::plain(0, 0, 1, size, Time::ZERO)]);
            let outcome = run(setup, control, &Params::default());
            let packets = size.div_ceil(1000);
            let last = (size - (packets - 1) * 1000 + 62) * 80;
            // The last packet crosses the second link behind the one before it, which is full.
            let behind = if packets > 1 { last.max(FULL) } else { last };
            let expected = (packets - 1) * FULL + behind + last + 2 * DELAY;
            // Credits come at 99 % of the link's rate, behind what is in flight at first.
            if control != Control::Both || size < 50_000 {
                assert_eq!(outcome.flows[0].received.0, expected, "{size} B under {control:?}");
            } else {
                assert!(
                    outcome.flows[0].received.0 < expected * 102 / 100 + 4 * FULL,
                    "{size} B: {:?}",
                    outcome.flows[0]
                );
            }
            assert_eq!((outcome.counts.trimmed, outcome.counts.retransmitted), ((0, 0), (0, 0)));
        }
    }
}

#[test]
fn what_finds_the_queue_full_is_trimmed_and_sent_again_a_round_trip_later() {
    // Twenty packets come in at once: one is sent, eight wait, eleven lose their payload. Of those eleven, which come again almost at once, two do.
    let params = Params { queue: Some(Bytes(9 * 1062)), ..Params::default() };
    let outcome = run(star(21, incast(20, 1000)), Control::Nothing, &params);
    assert_eq!((outcome.counts.trimmed, count(&outcome, "nacks")), ((13, 13_000), 13));
    assert_eq!((outcome.counts.retransmitted.0, outcome.counts.timeouts), (13, 0));
    assert_eq!(outcome.peak[21], 8 * 1062);
    // A packet comes again when it, its header, its NACK and it have crossed two links each. The last two do so twice, and are behind one another at most.
    let end = outcome.flows.iter().map(|flow| flow.received.0).max().unwrap();
    let again = (FULL + DELAY) + (SMALL + DELAY) + 2 * (ACK + DELAY);
    let least = 2 * again + 2 * (FULL + DELAY);
    assert!(end >= least && end < least + 4 * FULL + 40 * ACK, "{end} {least}");
}

#[test]
fn senders_of_an_incast_share_the_link_and_repeat_little_of_what_they_send() {
    let params = Params::default();
    let ideal = 16 * 1000 * FULL;
    let last = |outcome: &Outcome| outcome.flows.iter().map(|flow| flow.received.0).max().unwrap();
    for (control, share) in [(Control::Nscc, 110), (Control::Rccc, 106), (Control::Both, 106)] {
        let outcome = run(star(17, incast(16, 1_000_000)), control, &params);
        assert!(last(&outcome) < ideal / 100 * share, "{control:?}: {} of {ideal}", last(&outcome));
        // All begin with a window; after that little is trimmed.
        assert!(outcome.counts.trimmed.0 < 16 * 200, "{control:?}: {:?}", outcome.counts.trimmed);
        // Receivers do not answer on their own: a window that is cut to less than is in flight may leave one packet unanswered.
        assert!(outcome.counts.timeouts < 4, "{control:?}: {}", outcome.counts.timeouts);
    }
}

#[test]
fn receivers_answer_the_first_packet_the_marked_and_those_that_ask_and_else_after_some_bytes() {
    let mut bench = bench(Control::Nothing);
    let flow = bench.flow(1, 0, 0);
    let mut answers = |seq: u64, flags: u16| {
        bench.arrive_as(HOST, flow, |packet| (packet.seq, packet.size, packet.flags) = (seq, 1062, flags));
        let answers = bench.controls();
        bench.advance(Time::from_us(1));
        answers.iter().map(|sent| (sent.packet.kind, sent.packet.seq, sent.answer.expect("one"))).collect::<Vec<_>>()
    };
    let says = |sack, got, map| Answer { sack, words: [got, map], ..Answer::default() };
    let last = 1 << 63;
    assert_eq!(answers(0, 0), [(Kind::Ack, 1000, says(0, 1000, last))]);
    assert_eq!(answers(1000, 0), []);
    // Packet 5 is early: the map ends with it, and has packets 0 and 1.
    let map = last | last >> 4 | last >> 5;
    assert_eq!(answers(5000, flag::MARKED), [(Kind::Ack, 2000, says(5, 3000, map))]);
    assert_eq!(answers(2000, 0), []);
    let asked = answers(4000, flag::WANTS);
    assert_eq!(asked, [(Kind::Ack, 3000, says(4, 5000, last | last >> 2 | last >> 3 | last >> 4))]);
    // When nothing is missing any more, it says so, since it was asked.
    assert_eq!(answers(3000, 0), [(Kind::Ack, 6000, says(3, 6000, last | last >> 1 | last >> 2 | last >> 3))]);
    // 16 384 B are fifteen packets and a half.
    (6..21).for_each(|packet| assert_eq!(answers(packet * 1000, 0), []));
    assert_eq!(answers(21_000, 0).len(), 1);
    // What is there already is answered at once.
    assert_eq!(answers(3000, 0).len(), 1);
}

/// A host that is both a sender and a receiver, beside others.
fn bench(control: Control) -> Bench<NoFlowControl> {
    let params = Params::default();
    let both = edge_control::rccc::Params::default().over(Box::new(congestion_control::None::default()));
    let none = congestion_control::None::default();
    let control: &dyn CongestionControlDef = if control == Control::Rccc { &*both } else { &none };
    Builder::host(3)
        .setup(|setup| setup.flows.iter_mut().for_each(|flow| flow.base_rtt = Time::from_us(8)))
        .transport(&params)
        .congestion_control(control)
        .build(NoFlowControl)
}

#[test]
fn a_sender_without_credit_asks_half_as_often_each_time_until_it_is_given_some() {
    let mut bench = bench(Control::Rccc);
    let flow = bench.flow(0, 1, 0);
    bench.start(flow, 10_000_000);
    bench.advance(Time::from_us(20));
    let hear = |bench: &mut Bench<NoFlowControl>, kind: Kind, seq: u64, sack: u64| {
        let answer = Answer { sack, words: [seq, u64::MAX], ..Answer::default() };
        bench.control_as(HOST, flow, kind, seq, Some(answer));
    };
    // Steps of 1 us until it sends something; 10 ms are more than any wait here.
    let wait = |bench: &mut Bench<NoFlowControl>| {
        let begin = bench.now();
        for _ in 0..10_000 {
            bench.advance(Time::from_us(1));
            if let Some(sent) = bench.sent().first() {
                return (bench.now() - begin, sent.packet);
            }
        }
        panic!("it never asks");
    };
    // Six queues of 95 packets and 15 us. It looks once in that time.
    let rto = Time::from_us(15) + Time(6 * 95 * FULL);
    let round = |bench: &mut Bench<NoFlowControl>| {
        let arrived = bench.data().last().expect("what the first credit is for").packet.seq + 1000;
        hear(bench, Kind::Ack, arrived, arrived / 1000 - 1);
        for nth in 0..4 {
            let (wait, packet) = wait(bench);
            assert_eq!((packet.kind, packet.seq), (Kind::Trimmed, arrived));
            hear(bench, Kind::Nack, arrived, arrived / 1000);
            let least = Time(rto.0 << nth);
            assert!(wait >= least && wait < least + rto + Time::from_us(2), "{nth}: {wait}");
        }
    };
    round(&mut bench);
    bench.control(HOST, flow, Kind::Grant, 1 << 20);
    bench.advance(Time::from_us(20));
    round(&mut bench);
}

fn lossy(loss: f64, control: Control, seed: u64) -> Outcome {
    let flows = (0..4).map(|i| FlowSpec::plain(i as u16, i, 4 + i % 3, 60_000, Time::from_us(3 * i as u64))).collect();
    let mut setup = leaf_spine(2, 4, 2, flows);
    setup.seed = seed;
    setup.graph.links.iter_mut().for_each(|link| link.loss = loss);
    run(setup, control, &Params { queue: Some(Bytes(4 * 1062)), ..Params::default() })
}

#[test]
fn a_lost_packet_comes_again_after_the_timeout() {
    let outcome = lossy(0.02, Control::Both, 1);
    assert!(outcome.counts.dropped_fault > 0 && outcome.counts.timeouts > 0);
    let rto = Params::default().timeout_in(&star(2, incast(1, 1)));
    // Six queues of one product, which is 50 packets, at 100 Gb/s, and 15 us.
    assert_eq!(rto, Time::from_us(15) + Time(6 * 50 * FULL));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_flow_ends_whatever_is_lost_or_trimmed(
        loss in 0.0..0.3f64,
        seed in 0..1000u64,
        control in prop::sample::select(vec![Control::Nothing, Control::Nscc, Control::Rccc, Control::Both]),
    ) {
        lossy(loss, control, seed);
    }

    #[test]
    fn every_flow_ends_when_a_path_fails_for_a_while_or_for_ever(
        from in 0..60u64,
        back in prop::option::of(1..400u64),
        control in prop::sample::select(vec![Control::Nscc, Control::Rccc, Control::Both]),
    ) {
        let flows = (0..4).map(|i| FlowSpec::plain(i as u16, i, 4 + i, 400_000, Time::ZERO)).collect();
        let mut setup = leaf_spine(2, 4, 3, flows);
        // Hosts come first: the ninth link is the first from a leaf to a spine.
        let from = Time::from_us(from);
        setup.graph.links[8].outages = vec![(from, back.map(|us| from + Time::from_us(us)))];
        setup.reroute = Time::from_ms(1);
        run(setup, control, &Params::default());
    }
}
