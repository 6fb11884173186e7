//! NDP: times and counts that can be computed by hand, and that every flow ends whatever is lost.

use engine::{Rate, Time};
use fabric::scheme::{NoFlowControl, Unlimited};
use fabric::setup::{FlowSpec, NdpSetup, Spread};
use fabric::topology::{Graph, Kind, Shape, bcube::Bcube};
use fabric::{Network, Outcome, Setup};
use proptest::prelude::*;

/// Picoseconds at 100 Gb/s of a full packet, of a header or pull, and of an ACK or NACK.
const FULL: u64 = 1062 * 80;
const SMALL: u64 = 64 * 80;
const ACK: u64 = 66 * 80;
/// Picoseconds of every link's delay.
const DELAY: u64 = 1_000_000;

const NDP: NdpSetup = NdpSetup { window: 60, queue: 8, headers: 50_000, header: 64, pull: 64, ratio: 10 };

fn setup(graph: Graph, flows: Vec<FlowSpec>, ndp: NdpSetup) -> Setup {
    let mut setup = Setup::plain(graph, flows);
    setup.spread = Spread::Packet;
    setup.nic.ndp = Some(ndp);
    setup.nic.recovery.timeout = Some(Time::from_ms(50));
    setup
}

fn run(setup: Setup) -> Outcome {
    // Some hundred million events are for ever.
    let mut reports = 0;
    let outcome = Network::new(setup, NoFlowControl, Box::new(Unlimited)).run(|_, _| {
        reports += 1;
        reports < 500
    });
    assert_eq!(outcome.violations, Vec::<String>::new());
    assert!(outcome.complete(), "{} of {} flows, {:?}", outcome.finished.len(), outcome.flows.len(), outcome.counts);
    assert_eq!(outcome.left, 0);
    outcome
}

fn count(outcome: &Outcome, name: &str) -> u64 {
    outcome.transport.iter().find(|(counter, _)| *counter == name).expect("a counter").1
}

/// Hosts around a switch, with 100 Gb/s and 1 us each.
fn star(hosts: u32) -> Graph {
    let mut graph = Graph::default();
    (0..hosts).for_each(|host| _ = graph.add(Kind::Host, 0, format!("h{host}")));
    let switch = graph.add(Kind::Switch, 1, "s");
    (0..hosts).for_each(|host| graph.connect(host, switch, Rate::from_gbps(100), Time(DELAY)));
    graph
}

fn leaf_spine(leaves: u32, hosts: u32, spines: u32) -> Graph {
    let mut graph = Graph::default();
    (0..leaves * hosts).for_each(|host| _ = graph.add(Kind::Host, 0, format!("h{host}")));
    let leaf: Vec<u32> = (0..leaves).map(|leaf| graph.add(Kind::Switch, 1, format!("leaf{leaf}"))).collect();
    let spine: Vec<u32> = (0..spines).map(|spine| graph.add(Kind::Switch, 2, format!("spine{spine}"))).collect();
    let (rate, delay) = (Rate::from_gbps(100), Time(DELAY));
    (0..leaves * hosts).for_each(|host| graph.connect(host, leaf[(host / hosts) as usize], rate, delay));
    leaf.iter().for_each(|&leaf| spine.iter().for_each(|&spine| graph.connect(leaf, spine, rate, delay)));
    graph
}

/// Everybody else sends to host 0 at once.
fn incast(senders: u32, size: u64) -> Vec<FlowSpec> {
    (0..senders).map(|i| FlowSpec::plain(i as u16, i + 1, 0, size, Time::ZERO)).collect()
}

#[test]
fn a_flow_alone_takes_its_ideal_time_to_the_picosecond() {
    for size in [1, 1000, 1001, 59_000, 60_000, 61_000, 1_000_000, 3_000_007] {
        let outcome = run(setup(star(2), vec![FlowSpec::plain(0, 0, 1, size, Time::ZERO)], NDP));
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
    let outcome = run(setup(star(21), incast(20, 1000), NDP));
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
    let outcome = run(setup(star(senders + 1), incast(senders, packets * 1000), NDP));
    let end = outcome.flows.iter().map(|flow| flow.received.0).max().unwrap();
    let all = senders as u64 * packets * FULL;
    let round = 4 * DELAY + 2 * FULL + 2 * SMALL;
    // Headers of all packets trimmed go over the same link; a round trip is lost in the beginning.
    let headers = outcome.counts.trimmed.0 * SMALL;
    assert!(end >= all + 2 * DELAY && end <= all + headers + 2 * round, "{end} ps for {all} ps of packets");
    assert!(outcome.peak[senders as usize + 1] <= 8 * 1062);
    // After the first windows little is trimmed: pulls come at the pace of the link.
    let first = senders as u64 * NDP.window as u64;
    assert!(outcome.counts.trimmed.0 < first * 3 / 2, "{:?}", outcome.counts.trimmed);
    assert_eq!((outcome.counts.timeouts, outcome.counts.dropped_full), (0, 0));
}

#[test]
fn pulls_take_flows_in_turn() {
    // Two long flows to one host get the same, though one starts with a head start of its whole window.
    let mut flows = incast(2, 1_000_000);
    flows[1].start = Time::from_us(10);
    let outcome = run(setup(star(3), flows, NDP));
    let life = |flow: usize| (outcome.flows[flow].received - outcome.flows[flow].spec.start).0 as f64;
    let ratio = life(1) / life(0);
    assert!((0.9..=1.1).contains(&ratio), "{ratio}");
}

#[test]
fn headers_that_find_no_room_go_back_to_their_senders() {
    // A hundred packets at once, room for ten headers.
    let ndp = NdpSetup { headers: 640, ..NDP };
    let outcome = run(setup(star(101), incast(100, 1000), ndp));
    // Nine packets are sent or wait, ten headers wait, the rest goes back.
    assert!(count(&outcome, "returned") >= 100 - 9 - 10, "{:?}", outcome.transport);
    assert_eq!(count(&outcome, "header_overflows"), count(&outcome, "returned"));
    assert_eq!(count(&outcome, "peak_header_queue"), 640);
    // There is always room on the way back, so that nothing is lost.
    assert_eq!((outcome.counts.timeouts, outcome.counts.dropped_full), (0, 0));
}

#[test]
fn control_packets_that_find_no_room_are_lost_and_made_up_for_by_a_timeout() {
    // Single packets to and from a host whose port has room for three control packets: ACKs are lost among headers.
    let mut flows = incast(40, 1000);
    flows.extend((0..40).map(|i| FlowSpec::plain(100 + i, 0, i as u32 + 1, 1000, Time::ZERO)));
    let ndp = NdpSetup { headers: 200, ..NDP };
    let mut setup = setup(star(41), flows, ndp);
    setup.nic.recovery.timeout = Some(Time::from_us(300));
    let outcome = run(setup);
    assert!(outcome.counts.dropped_full > 0 && outcome.counts.timeouts > 0, "{:?}", outcome.counts);
}

#[test]
fn data_has_its_turn_among_headers() {
    // One packet in eleven: with ten times as many headers as that, data would otherwise starve for their whole length.
    let strict = NdpSetup { ratio: u32::MAX, ..NDP };
    let first = |ndp: NdpSetup| {
        let outcome = run(setup(star(101), incast(100, 1000), ndp));
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
    let outcome = run(setup(graph, vec![FlowSpec::plain(0, 0, 1, 50_000, Time::ZERO)], NDP));
    assert!(outcome.counts.dropped_fault > 0 && outcome.counts.timeouts > 0);
    assert!(outcome.counts.acks > 50 - 20, "{:?}", outcome.counts);
}

#[test]
fn a_flow_that_leaves_early_ends_with_what_it_sent() {
    let mut flows = incast(3, 10_000_000);
    flows[1].until = Time::from_us(50);
    let outcome = run(setup(star(4), flows, NDP));
    assert!(outcome.flows[1].size < 1_000_000 && outcome.flows[1].delivered == outcome.flows[1].size);
}

#[test]
fn spraying_fills_all_ways_of_a_leaf() {
    // Four hosts send to four others over four spines: all of the bisection, whatever a hash would have chosen.
    let flows: Vec<_> = (0..4).map(|i| FlowSpec::plain(i as u16, i, 4 + i, 5_000_000, Time::ZERO)).collect();
    let outcome = run(setup(leaf_spine(2, 4, 4), flows, NdpSetup { window: 105, ..NDP }));
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
            FlowSpec { class, ..FlowSpec::plain(i as u16, src, dst, size, Time::from_ns(start)) }
        }).collect();
        flows.sort_by_key(|flow| flow.start);
        let ndp = NdpSetup { window, queue, headers, ratio, ..NDP };
        let mut setup = setup(graph, flows, ndp);
        setup.classes = 3;
        setup.seed = seed;
        setup.nic.recovery.timeout = Some(Time::from_us(timeout));
        setup.switch.pool.fill(Some(pool));
        setup.measure.sample = Some(Time::from_us(10));
        let outcome = run(setup);
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
        // Slow ways of unlike lengths between two hosts: headers, NACKs and pulls overtake each other.
        let mut graph = leaf_spine(2, 1, 3);
        for (place, link) in graph.links.iter_mut().enumerate().skip(2) {
            (link.rate, link.delay) = (Rate::from_gbps(10), Time::from_ns(if place % 3 == 0 { short } else { long }));
        }
        let mut flows: Vec<_> = messages.iter().enumerate().map(|(i, &(back, size, start))| {
            FlowSpec::plain(i as u16, back as u32, !back as u32, size, Time::from_ns(start))
        }).collect();
        flows.sort_by_key(|flow| flow.start);
        let mut setup = setup(graph, flows, NdpSetup { window, headers, ..NDP });
        setup.nic.payload = payload;
        setup.seed = seed;
        let outcome = run(setup);
        prop_assert!(outcome.counts.dropped_full > 0 || outcome.counts.timeouts == 0, "{:?}", outcome.counts);
    }
}

#[test]
fn hosts_that_forward_keep_count_of_their_control_queues() {
    // Every message has far more control packets than a control queue holds.
    let graph = Bcube { n: 2, k: 1, ..Bcube::default() }.build().unwrap();
    let flows = (0..4).map(|i| FlowSpec::plain(i, i as u32, 3 - i as u32, 5_000_000, Time::ZERO)).collect();
    run(setup(graph, flows, NDP));
}
