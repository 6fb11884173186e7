//! Times that can be computed by hand, to the picosecond.

use engine::{Rate, Time};
use fabric::axes::flow_control::NoFlowControl;
use fabric::id::NodeId;
use fabric::setup::FlowSpec;
use fabric::topology::{Graph, Kind};
use fabric::{Outcome, Setup};

const HEADER: u64 = 62;
const ACK: u64 = 66;

fn run(setup: Setup) -> Outcome {
    let outcome = crate::run(setup, NoFlowControl);
    assert_eq!(outcome.violations, Vec::<String>::new());
    outcome
}

/// Hosts around one switch, each with its own rate and delay.
fn star(links: &[(u64, u64)]) -> Graph {
    let mut graph = Graph::default();
    let hosts: Vec<NodeId> = (0..links.len()).map(|i| graph.add(Kind::Host, 0, format!("h{i}"))).collect();
    let switch = graph.add(Kind::Switch, 1, "s");
    hosts.iter().zip(links).for_each(|(&h, &(gbps, ns))| {
        graph.connect(h, switch, Rate::from_gbps(gbps), Time::from_ns(ns));
    });
    graph
}

fn flow(src: u32, dst: u32, size: u64, start: Time) -> FlowSpec {
    FlowSpec::plain(0, src, dst, size, start)
}

/// Picoseconds that `bytes` take at `gbps`, rounded up.
fn on_wire(bytes: u64, gbps: u64) -> u64 {
    (bytes * 8_000).div_ceil(gbps)
}

#[test]
fn one_packet_takes_its_bits_and_the_delays() {
    for (a, b, size) in [((100, 1000), (100, 1000), 1000), ((56, 333), (25, 70), 1), ((400, 1), (1, 5_000_000), 777)] {
        let start = Time(12_345);
        let outcome = run(Setup::plain(star(&[a, b]), vec![flow(0, 1, size, start)]));
        let forward = on_wire(size + HEADER, a.0) + on_wire(size + HEADER, b.0);
        let back = on_wire(ACK, b.0) + on_wire(ACK, a.0);
        let delays = (a.1 + b.1) * 1000;
        let record = &outcome.flows[0];
        assert_eq!(record.injected, start);
        assert_eq!((record.received - start).0, forward + delays);
        assert_eq!((record.acknowledged - start).0, forward + back + 2 * delays);
        assert_eq!((outcome.counts.hops, outcome.counts.injected), (4, (1, size)));
    }
}

#[test]
fn a_long_flow_is_paced_by_its_slowest_link() {
    // 1000 full packets and one of 7 bytes: the first crosses the fast link, then the slow one is never idle.
    let (fast, slow, packets) = (100, 40, 1000);
    let outcome =
        run(Setup::plain(star(&[(fast, 1000), (slow, 2000)]), vec![flow(0, 1, packets * 1000 + 7, Time::ZERO)]));
    let full = 1000 + HEADER;
    let expected = on_wire(full, fast) + packets * on_wire(full, slow) + on_wire(7 + HEADER, slow) + 3_000_000;
    assert_eq!(outcome.flows[0].received.0, expected);
    // In the reverse case, the small packet arrives while the last full one is still on the fast link.
    let outcome =
        run(Setup::plain(star(&[(slow, 1000), (fast, 2000)]), vec![flow(0, 1, packets * 1000 + 7, Time::ZERO)]));
    let behind = on_wire(7 + HEADER, slow).max(on_wire(full, fast));
    let expected = packets * on_wire(full, slow) + behind + on_wire(7 + HEADER, fast) + 3_000_000;
    assert_eq!(outcome.flows[0].received.0, expected);
}

#[test]
fn two_flows_share_a_link_packet_by_packet() {
    // Both start at once: packets of equal size alternate on the shared link, host 0 first.
    let n = 50;
    let flows = vec![flow(0, 2, n * 1000, Time::ZERO), flow(1, 2, n * 1000, Time::ZERO)];
    let outcome = run(Setup::plain(star(&[(100, 1000); 3]), flows));
    let packet = on_wire(1000 + HEADER, 100);
    let first_in_queue = packet + 1_000_000;
    let nth_out = |count: u64| first_in_queue + count * packet + 1_000_000;
    assert_eq!(outcome.flows[0].received.0, nth_out(2 * n - 1));
    assert_eq!(outcome.flows[1].received.0, nth_out(2 * n));
    // In each packet time two arrive and one leaves. Arrivals come before the end of a transmission at the same
    // instant (their cause is older), so the last two find n − 1 packets.
    assert_eq!(outcome.peak[3], (n + 1) * (1000 + HEADER));
}

#[test]
fn a_window_lets_a_packet_go_for_each_that_is_acknowledged() {
    // A window of three packets over a round trip of many: three packets per round trip.
    let mut spec = flow(0, 1, 9_000, Time::ZERO);
    spec.window = 3_000;
    let outcome = run(Setup::plain(star(&[(100, 10_000); 2]), vec![spec]));
    let packet = on_wire(1000 + HEADER, 100);
    let round = 2 * packet + 2 * on_wire(ACK, 100) + 40_000_000;
    assert_eq!(outcome.flows[0].received.0, 2 * round + 4 * packet + 20_000_000);
}

#[test]
fn a_switch_pipeline_delays_every_packet_once_per_switch() {
    let mut setup = Setup::plain(star(&[(100, 1000); 2]), vec![flow(0, 1, 1000, Time::ZERO)]);
    setup.switch.pipeline = Time::from_ns(450);
    let outcome = run(setup);
    assert_eq!(outcome.flows[0].received.0, 2 * on_wire(1000 + HEADER, 100) + 2_000_000 + 450_000);
}

#[test]
fn an_ack_for_every_fourth_packet_and_the_last() {
    let mut setup = Setup::plain(star(&[(100, 1000); 2]), vec![flow(0, 1, 10_000, Time::ZERO)]);
    setup.nic.acks = fabric::setup::AckPolicy::Every(4);
    let outcome = run(setup);
    assert_eq!(outcome.counts.acks, 3);
    assert!(outcome.complete());
}

#[test]
fn acks_overtake_data_in_the_control_queue() {
    // Hosts 0 and 1 flood host 2 while host 2 sends one packet to host 0: its ACK waits for no data at the switch
    // except the packet on the wire.
    let flows =
        vec![flow(1, 0, 200_000, Time::ZERO), flow(2, 0, 200_000, Time::ZERO), flow(0, 1, 1000, Time::from_us(8))];
    let outcome = run(Setup::plain(star(&[(100, 1000); 3]), flows));
    let packet = on_wire(1000 + HEADER, 100);
    let alone = 2 * packet + 2 * on_wire(ACK, 100) + 4_000_000;
    let took = (outcome.flows[2].acknowledged - Time::from_us(8)).0;
    // At each of its four transmissions it can find one packet or a few ACKs on the wire, never a queue.
    assert!(took < alone + 4 * packet, "{took} ps against {alone} ps alone");
}

#[test]
fn what_does_not_fit_is_dropped_and_sent_again() {
    let flows = (0..4).map(|i| flow(i, 4, 500_000, Time::ZERO)).collect();
    let mut setup = Setup::plain(star(&[(100, 1000); 5]), flows);
    setup.switch.pool.fill(Some(20_000));
    setup.nic.timeout = Some(Time::from_us(500));
    let outcome = run(setup);
    assert!(outcome.complete());
    assert!(outcome.counts.dropped_full > 0 && outcome.counts.retransmitted.0 > 0);
    assert!(outcome.peak[5] <= 20_000);
    assert_eq!(outcome.counts.injected.0, outcome.counts.delivered.0 + outcome.counts.dropped_full);
}

#[test]
fn lost_without_a_timeout_is_told_from_deadlock() {
    let mut graph = star(&[(100, 1000); 2]);
    graph.links[1].loss = 1.0;
    let outcome = run(Setup::plain(graph, vec![flow(0, 1, 5000, Time::ZERO)]));
    assert_eq!(outcome.stall, Some(fabric::run::Stall::Lost));
    assert_eq!(outcome.counts.dropped_fault, 5);
}

#[test]
fn samples_of_a_very_long_run_are_thinned_and_not_endless() {
    // A flow that waits half a second for a link, sampled every microsecond.
    let mut graph = star(&[(100, 1000); 2]);
    graph.links[0].outages.push((Time(1), Some(Time::from_ms(500))));
    let mut setup = Setup::plain(graph, vec![flow(0, 1, 5000, Time::ZERO)]);
    setup.measure.sample = Some(Time::from_us(1));
    setup.nic.timeout = Some(Time::from_ms(1));
    let outcome = run(setup);
    assert!(outcome.complete());
    let count = outcome.samples.used[2].len();
    assert!((1 << 16..=1 << 17).contains(&count), "{count}");
}
