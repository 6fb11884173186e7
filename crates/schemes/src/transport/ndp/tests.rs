//! Times and counts that can be computed by hand, and that every flow ends whatever is lost.

use super::*;
use crate::{congestion_control, edge_control, flow_control, load_balancing, marking, queueing, testing};
use engine::Rate;
use fabric::axes::flow_control::NoFlowControl;
use fabric::axes::{CongestionControlDef, EdgeControlDef, FlowControlDef};
use fabric::bench::{Bench, Builder};
use fabric::id::{ClassId, NodeId};
use fabric::routing::Rule;
use fabric::setup::FlowSpec;
use fabric::topology::{self, Graph, Shape, bcube::Bcube};
use fabric::{Network, Outcome};
use proptest::prelude::*;

/// Picoseconds at 100 Gb/s of a full packet, of a header or pull, and of an ACK or NACK.
const FULL: u64 = 1062 * 80;
const SMALL: u64 = 64 * 80;
const ACK: u64 = 66 * 80;
/// Picoseconds of every link's delay.
const DELAY: u64 = 1_000_000;

const NDP: Params = Params {
    window: Some(60),
    queue: 8,
    headers: Some(Bytes(50_000)),
    header: Some(Bytes(64)),
    pull: Bytes(64),
    ratio: 10,
};

fn setup(graph: Graph, flows: Vec<FlowSpec>) -> Setup {
    let mut setup = Setup::plain(graph, flows);
    setup.rule = Rule::ByPacket;
    setup
}

fn run(mut setup: Setup, params: &Params) -> Outcome {
    params.adjust(&mut setup);
    // Some hundred million events are for ever.
    let mut reports = 0;
    let unlimited = congestion_control::None::default();
    let outcome = testing::chosen(&unlimited, params, |chosen| {
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
fn star(hosts: u32) -> Graph {
    let mut graph = Graph::default();
    (0..hosts).for_each(|host| _ = graph.add(topology::Kind::Host, 0, format!("h{host}")));
    let switch = graph.add(topology::Kind::Switch, 1, "s");
    (0..hosts).for_each(|host| graph.connect(NodeId(host), switch, Rate::from_gbps(100), Time(DELAY)));
    graph
}

fn leaf_spine(leaves: u32, hosts: u32, spines: u32) -> Graph {
    let mut graph = Graph::default();
    (0..leaves * hosts).for_each(|host| _ = graph.add(topology::Kind::Host, 0, format!("h{host}")));
    let leaf: Vec<NodeId> =
        (0..leaves).map(|leaf| graph.add(topology::Kind::Switch, 1, format!("leaf{leaf}"))).collect();
    let spine: Vec<NodeId> =
        (0..spines).map(|spine| graph.add(topology::Kind::Switch, 2, format!("spine{spine}"))).collect();
    let (rate, delay) = (Rate::from_gbps(100), Time(DELAY));
    (0..leaves * hosts).for_each(|host| graph.connect(NodeId(host), leaf[(host / hosts) as usize], rate, delay));
    leaf.iter().for_each(|&leaf| spine.iter().for_each(|&spine| graph.connect(leaf, spine, rate, delay)));
    graph
}

/// All other hosts send to host 0 at once.
fn incast(senders: u32, size: u64) -> Vec<FlowSpec> {
    (0..senders).map(|i| FlowSpec::plain(i as u16, i + 1, 0, size, Time::ZERO)).collect()
}

#[test]
fn a_flow_alone_takes_its_ideal_time_to_the_picosecond() {
    for size in [1, 1000, 1001, 59_000, 60_000, 61_000, 1_000_000, 3_000_007] {
        let outcome = run(setup(star(2), vec![FlowSpec::plain(0, 0, 1, size, Time::ZERO)]), &NDP);
        let packets = size.div_ceil(1000);
        let last = (size - (packets - 1) * 1000 + 62) * 80;
        // The last packet crosses the second link behind the one before it, which is full.
        let behind = if packets > 1 { last.max(FULL) } else { last };
        let expected = (packets - 1) * FULL + behind + last + 2 * DELAY;
        assert_eq!(outcome.flows[0].received.0, expected, "{size} B");
        assert_eq!((outcome.counts.trimmed, outcome.counts.retransmitted), ((0, 0), (0, 0)));
        // What the first window covers is not pulled.
        assert_eq!(count(&outcome, "pulls"), packets.saturating_sub(60));
    }
}

#[test]
fn what_finds_the_queue_full_is_trimmed_and_pulled_at_the_pace_of_the_link() {
    // Twenty packets come in at once: one is sent, eight wait, eleven lose their payload.
    let outcome = run(setup(star(21), incast(20, 1000)), &NDP);
    assert_eq!((outcome.counts.trimmed, count(&outcome, "nacks")), ((11, 11_000), 11));
    assert_eq!((outcome.counts.retransmitted.0, count(&outcome, "pulls")), (11, 11));
    assert_eq!(count(&outcome, "header_overflows"), 0);
    // Ten of the eleven wait while the first is being put on the wire.
    assert_eq!(count(&outcome, "peak_header_queue"), 11 * 64);
    assert_eq!(outcome.peak[21], 8 * 1062);
    // The first header follows the first packet; its NACK waits for that packet's ACK, and its pull for the NACK, here and at
    // the switch. From then on the receiver sends a pull in each packet time, and its link has no gap.
    let header = (FULL + DELAY) + FULL + SMALL + DELAY;
    let first_pull = header + (ACK - SMALL) + ACK + (ACK - SMALL);
    let last_pull = first_pull + 10 * FULL;
    let end = outcome.flows.iter().map(|flow| flow.received.0).max().unwrap();
    assert_eq!(end, last_pull + 2 * (SMALL + DELAY) + 2 * (FULL + DELAY));
    assert_eq!((outcome.counts.timeouts, outcome.counts.dropped_full), (0, 0));
}

#[test]
fn an_incast_keeps_the_receivers_link_busy_and_its_queue_short() {
    let (senders, packets) = (30, 100);
    let outcome = run(setup(star(senders + 1), incast(senders, packets * 1000)), &NDP);
    let end = outcome.flows.iter().map(|flow| flow.received.0).max().unwrap();
    let all = senders as u64 * packets * FULL;
    let round = 4 * DELAY + 2 * FULL + 2 * SMALL;
    // Headers of all packets trimmed go over the same link; a round trip is lost in the beginning.
    let headers = outcome.counts.trimmed.0 * SMALL;
    assert!(end >= all + 2 * DELAY && end <= all + headers + 2 * round, "{end} ps for {all} ps of packets");
    assert!(outcome.peak[senders as usize + 1] <= 8 * 1062);
    // After the first windows little is trimmed: pulls come at the pace of the link.
    let first = senders as u64 * NDP.window.unwrap() as u64;
    assert!(outcome.counts.trimmed.0 < first * 3 / 2, "{:?}", outcome.counts.trimmed);
    assert_eq!((outcome.counts.timeouts, outcome.counts.dropped_full), (0, 0));
}

#[test]
fn pulls_take_flows_in_turn() {
    // Two long flows to one host get the same, though one starts with a head start of its whole window.
    let mut flows = incast(2, 1_000_000);
    flows[1].start = Time::from_us(10);
    let outcome = run(setup(star(3), flows), &NDP);
    let life = |flow: usize| (outcome.flows[flow].received - outcome.flows[flow].spec.start).0 as f64;
    let ratio = life(1) / life(0);
    assert!((0.9..=1.1).contains(&ratio), "{ratio}");
}

#[test]
fn headers_that_find_no_room_go_back_to_their_senders() {
    // A hundred packets at once, room for ten headers.
    let ndp = Params { headers: Some(Bytes(640)), ..NDP };
    let outcome = run(setup(star(101), incast(100, 1000)), &ndp);
    // Nine packets are sent or wait, ten headers wait, the rest goes back.
    assert!(count(&outcome, "returned") >= 100 - 9 - 10, "{:?}", outcome.transport);
    assert_eq!(count(&outcome, "header_overflows"), count(&outcome, "returned"));
    assert_eq!(count(&outcome, "peak_header_queue"), 640);
    // There is always room on the path back, so that nothing is lost.
    assert_eq!((outcome.counts.timeouts, outcome.counts.dropped_full), (0, 0));
}

#[test]
fn control_packets_that_find_no_room_are_lost_and_made_up_for_by_a_timeout() {
    // Single packets to and from a host whose port has room for three control packets: ACKs are lost among headers.
    let mut flows = incast(40, 1000);
    flows.extend((0..40).map(|i| FlowSpec::plain(100 + i, 0, i as u32 + 1, 1000, Time::ZERO)));
    let ndp = Params { headers: Some(Bytes(200)), ..NDP };
    let mut setup = setup(star(41), flows);
    setup.nic.timeout = Some(Time::from_us(300));
    let outcome = run(setup, &ndp);
    assert!(outcome.counts.dropped_full > 0 && outcome.counts.timeouts > 0, "{:?}", outcome.counts);
}

#[test]
fn data_has_its_turn_among_headers() {
    // One packet in eleven: with ten times as many headers as that, data would otherwise starve for their whole length.
    let strict = Params { ratio: u32::MAX, ..NDP };
    let first = |ndp: Params| {
        let outcome = run(setup(star(101), incast(100, 1000)), &ndp);
        let mut ends: Vec<u64> = outcome.flows.iter().map(|flow| flow.received.0).collect();
        ends.sort_unstable();
        (ends[0], ends[1])
    };
    // The first is on the wire before any other has come. The second waits for ten headers, or for all ninety-one.
    let start = FULL + DELAY + FULL;
    assert_eq!(first(NDP), (start + DELAY, start + 10 * SMALL + FULL + DELAY));
    assert_eq!(first(strict), (start + DELAY, start + 91 * SMALL + FULL + DELAY));
}

#[test]
fn an_ack_that_was_lost_is_made_up_for_by_a_later_one() {
    let mut graph = star(2);
    graph.links[0].loss = 0.2;
    let outcome = run(setup(graph, vec![FlowSpec::plain(0, 0, 1, 50_000, Time::ZERO)]), &NDP);
    assert!(outcome.counts.dropped_fault > 0 && outcome.counts.timeouts > 0);
    assert!(outcome.counts.acks > 50 - 20, "{:?}", outcome.counts);
}

#[test]
fn a_flow_that_leaves_early_ends_with_what_it_sent() {
    let mut flows = incast(3, 10_000_000);
    flows[1].until = Time::from_us(50);
    let outcome = run(setup(star(4), flows), &NDP);
    assert!(outcome.flows[1].size < 1_000_000 && outcome.flows[1].delivered == outcome.flows[1].size);
}

#[test]
fn spraying_fills_all_paths_of_a_leaf() {
    // Four hosts send to four others over four spines: all of the bisection, whatever a hash would have chosen.
    let flows: Vec<_> = (0..4).map(|i| FlowSpec::plain(i as u16, i, 4 + i, 5_000_000, Time::ZERO)).collect();
    let outcome = run(setup(leaf_spine(2, 4, 4), flows), &Params { window: Some(105), ..NDP });
    let ideal = 5000 * FULL;
    let worst = outcome.flows.iter().map(|flow| flow.received.0).max().unwrap();
    assert!(worst < ideal * 104 / 100, "{worst} ps, ideal {ideal} ps, {:?}", outcome.transport);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn every_flow_ends_whatever_is_lost_and_when(
        (leaves, hosts, spines) in (1u32..4, 1u32..4, 1u32..4),
        messages in prop::collection::vec((any::<u16>(), any::<u16>(), 1u64..200_000, 0u64..40_000, 0u8..3), 1..40),
        faults in prop::collection::vec((any::<prop::sample::Index>(), 0.0f64..0.05), 0..4),
        outage in prop::option::of((any::<prop::sample::Index>(), 1u64..40_000, 1u64..200_000)),
        (window, queue, headers, ratio) in (1u32..80, 1u32..9, 130u64..3000, 1u32..12),
        (timeout, pool, seed) in (60u64..3000, 2000u64..200_000, any::<u64>()),
        incast in any::<bool>(),
    ) {
        let mut graph = leaf_spine(leaves, hosts.max(2 / leaves), spines);
        let all = leaves * hosts.max(2 / leaves);
        for (link, loss) in &faults {
            let link = link.index(graph.links.len());
            graph.links[link].loss = *loss;
        }
        if let Some((link, from, length)) = outage {
            let link = link.index(graph.links.len());
            graph.links[link].outages.push((Time::from_ns(from), Some(Time::from_ns(from + length))));
        }
        let mut flows: Vec<_> = messages.iter().enumerate().map(|(i, &(src, dst, size, start, class))| {
            let dst = if incast { 0 } else { dst as u32 % all };
            let src = (dst + 1 + src as u32 % (all - 1)) % all;
            FlowSpec { class: ClassId(class), ..FlowSpec::plain(i as u16, src, dst, size, Time::from_ns(start)) }
        }).collect();
        flows.sort_by_key(|flow| flow.start);
        let ndp = Params { window: Some(window), queue, headers: Some(Bytes(headers)), ratio, ..NDP };
        let mut setup = setup(graph, flows);
        setup.classes = 3;
        setup.seed = seed;
        setup.nic.timeout = Some(Time::from_us(timeout));
        setup.switch.pool.fill(Some(pool));
        setup.measure.sample = Some(Time::from_us(10));
        let outcome = run(setup, &ndp);
        prop_assert!(count(&outcome, "peak_header_queue") <= headers);
        prop_assert!(outcome.peak.iter().all(|&peak| peak <= pool));
        for flow in &outcome.flows {
            prop_assert_eq!(flow.delivered, flow.spec.size);
            prop_assert!(flow.injected < flow.received && flow.received < flow.acknowledged);
        }
    }

    #[test]
    fn a_pull_that_overtakes_its_nack_costs_no_timeout(
        messages in prop::collection::vec((any::<bool>(), 1u64..80_000, 0u64..30_000), 2..8),
        (window, headers, payload) in (8u32..60, 1500u64..4000, 500u16..2000),
        (short, long, seed) in (1u64..2000, 2000u64..9000, any::<u64>()),
    ) {
        // Slow paths of unlike lengths between two hosts: headers, NACKs and pulls overtake each other.
        let mut graph = leaf_spine(2, 1, 3);
        for (place, link) in graph.links.iter_mut().enumerate().skip(2) {
            (link.rates, link.delay) = ([Rate::from_gbps(10); 2], Time::from_ns(if place % 3 == 0 { short } else { long }));
        }
        let mut flows: Vec<_> = messages.iter().enumerate().map(|(i, &(back, size, start))| {
            FlowSpec::plain(i as u16, back as u32, !back as u32, size, Time::from_ns(start))
        }).collect();
        flows.sort_by_key(|flow| flow.start);
        let ndp = Params { window: Some(window), headers: Some(Bytes(headers)), ..NDP };
        let mut setup = setup(graph, flows);
        setup.nic.payload = payload;
        setup.seed = seed;
        let outcome = run(setup, &ndp);
        prop_assert!(outcome.counts.dropped_full > 0 || outcome.counts.timeouts == 0, "{:?}", outcome.counts);
    }
}

#[test]
fn hosts_that_forward_keep_count_of_their_control_queues() {
    // Every message has far more control packets than a control queue holds.
    let graph = Bcube { n: 2, k: 1, ..Bcube::default() }.build().unwrap();
    let flows = (0..4).map(|i| FlowSpec::plain(i, i as u32, 3 - i as u32, 5_000_000, Time::ZERO)).collect();
    run(setup(graph, flows), &NDP);
}

#[test]
fn what_is_left_to_be_derived_is_a_bandwidth_delay_product() {
    let mut graph = Graph::default();
    let (a, b) = (graph.add(topology::Kind::Host, 0, "a"), graph.add(topology::Kind::Host, 0, "b"));
    let switch = graph.add(topology::Kind::Switch, 1, "s");
    graph.connect(a, switch, Rate::from_gbps(100), Time::from_us(1));
    graph.connect(b, switch, Rate::from_gbps(50), Time::from_us(1));
    let flow = FlowSpec { base_rtt: Time::from_us(8), ..FlowSpec::plain(0, a.0, b.0, 1000, Time::ZERO) };
    let mut setup = Setup::plain(graph, vec![flow]);
    let params = Params::default();
    params.adjust(&mut setup);
    // 100 Gb/s for 8 us are 100 000 B, which is 94.2 packets of 1062 B.
    assert_eq!(params.first_window(&setup), 96);
    let expected = Trimming { queue: 8, headers: 100_000, header: 64, ratio: 10, returns: true };
    assert_eq!(setup.switch.overflow, Overflow::Trim(expected));
    assert_eq!(setup.nic.timeout, Some(Time::from_ms(50)));
}

#[test]
fn a_timeout_that_is_written_stays_and_switches_have_one_queue_per_class() {
    let mut setup = setup(star(2), Vec::new());
    setup.nic.timeout = Some(Time::from_us(70));
    setup.nic.acks = AckPolicy::Every(4);
    setup.nic.ack_lane = AckLane::Data(Some(0));
    setup.switch.queues = 8;
    Params::default().adjust(&mut setup);
    assert_eq!(setup.nic.timeout, Some(Time::from_us(70)));
    assert_eq!((setup.nic.acks, setup.nic.ack_lane), (AckPolicy::Every(1), AckLane::Control));
    assert_eq!(setup.switch.queues, 1);
}

#[test]
fn no_other_control_goes_with_it() {
    let conflict = |fc: &dyn FlowControlDef, cc: &dyn CongestionControlDef, ec: &dyn EdgeControlDef, window: bool| {
        NDP.conflict(&Chosen {
            flow_control: fc,
            congestion_control: cc,
            edge_control: ec,
            transport: &NDP,
            load_balancing: &load_balancing::spray::Params::default(),
            queueing: &queueing::round_robin::Params::default(),
            marking: &marking::red::Params::default(),
            window,
        })
    };
    let (no_fc, no_cc, no_ec) =
        (flow_control::None::default(), congestion_control::None::default(), edge_control::None::default());
    let (pfc, dcqcn, onramp) = (
        flow_control::pfc::Params::default(),
        congestion_control::dcqcn::Params::default(),
        edge_control::onramp::Params::default(),
    );
    assert_eq!(conflict(&no_fc, &no_cc, &no_ec, false), None);
    let misfit = conflict(&pfc, &dcqcn, &onramp, true).unwrap();
    assert_eq!(misfit.parameter, "scheme.flow_control");
    assert_eq!(misfit.message, "ndp is all the control there is: pfc does not go with it");
    assert_eq!(misfit.help, "write flow_control = \"none\" in [scheme], or choose another transport");
    assert_eq!(conflict(&no_fc, &dcqcn, &onramp, true).unwrap().parameter, "scheme.congestion_control");
    assert_eq!(conflict(&no_fc, &no_cc, &onramp, true).unwrap().parameter, "scheme.edge_control");
    let misfit = conflict(&no_fc, &no_cc, &no_ec, true).unwrap();
    assert_eq!(misfit.parameter, "scheme.window");
    assert_eq!(misfit.message, "ndp is all the control there is: a window does not go with it");
}

#[test]
fn values_that_cannot_be_are_named() {
    assert_eq!(Params::default().check(), Ok(()));
    let wrong = [
        ("window", Params { window: Some(0), ..Params::default() }),
        ("queue", Params { queue: 0, ..Params::default() }),
        ("ratio", Params { ratio: 0, ..Params::default() }),
        ("headers", Params { headers: Some(Bytes(100)), ..Params::default() }),
        ("header", Params { header: Some(Bytes(0)), ..Params::default() }),
        ("pull", Params { pull: Bytes(1001), ..Params::default() }),
    ];
    for (name, params) in wrong {
        assert_eq!(params.check().unwrap_err().parameter, name);
    }
}

#[test]
fn a_switch_cuts_the_packet_that_finds_a_full_queue_to_its_header_and_sends_that_first() {
    let params = Params::default();
    let mut bench = Builder::switch(3, 0).transport(&params).build(NoFlowControl);
    let (sender, receiver, flow) = (PortId(0), PortId(2), bench.flow(0, 2, 0));
    bench.close(receiver);
    let queue = params.queue as u64;
    (0..queue).for_each(|_| bench.arrive(sender, flow));
    assert_eq!((bench.counts().trimmed, bench.view().queued(receiver)), ((0, 0), queue * 1062));
    bench.arrive(sender, flow);
    assert_eq!((bench.counts().trimmed, bench.view().queued(receiver)), ((1, 1000), queue * 1062 + 64));
    let first = bench.transmit(receiver).unwrap().packet;
    // The last that came or the last in the queue: the dice have it.
    assert_eq!((first.kind, first.size), (Kind::Trimmed, 64));
    assert!([queue - 1, queue].contains(&(first.seq / 1000)));
    assert_eq!(bench.transmit(receiver).unwrap().packet.kind, Kind::Data);
}

#[test]
fn a_receiver_pulls_packet_by_packet_at_the_pace_of_its_link() {
    let params = Params::default();
    let mut bench = Builder::host(1).transport(&params).build(NoFlowControl);
    let (port, flow) = (PortId(0), bench.flow(1, 0, 0));
    (0..3).for_each(|_| bench.arrive_as(port, flow, |packet| packet.flags |= flag::WANTS));
    bench.advance(Time::from_us(1));
    let answers = bench.controls();
    let (pulls, acks): (Vec<_>, Vec<_>) = answers.iter().partition(|sent| sent.packet.kind == Kind::Grant);
    assert_eq!(acks.iter().map(|sent| unpack(sent.packet.seq)).collect::<Vec<_>>(), [(0, 1), (1, 2), (2, 3)]);
    // The first after the first ACK, of 66 bytes. What each brings is 1062 bytes, at 80 ps per byte.
    let times: Vec<u64> = pulls.iter().map(|sent| sent.time.0).collect();
    assert_eq!(times, [66 * 80, 1062 * 80, 2 * 1062 * 80]);
    assert_eq!(pulls.iter().map(|sent| unpack(sent.packet.seq).0).collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn a_sender_waits_for_pulls_after_its_first_window_and_repeats_what_was_trimmed_first() {
    let params = Params { window: Some(3), ..Params::default() };
    let mut bench = Builder::host(1).transport(&params).build(NoFlowControl);
    let (port, flow) = (PortId(0), bench.flow(0, 1, 0));
    let sent = |bench: &mut Bench<NoFlowControl>| {
        bench.advance(Time::from_us(1));
        bench.data().iter().map(|sent| sent.packet.seq / 1000).collect::<Vec<_>>()
    };
    bench.start(flow, 6_000);
    assert_eq!(sent(&mut bench), [0, 1, 2]);
    bench.control(port, flow, Kind::Ack, pack(0, 1));
    bench.control(port, flow, Kind::Nack, pack(1, 1));
    assert_eq!(sent(&mut bench), []);
    bench.control(port, flow, Kind::Grant, pack(1, 1));
    assert_eq!(sent(&mut bench), [1]);
    // The second pull was lost: the third makes up for it.
    bench.control(port, flow, Kind::Grant, pack(3, 1));
    assert_eq!(sent(&mut bench), [3, 4]);
}
