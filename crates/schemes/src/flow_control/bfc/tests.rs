//! Each mechanism alone, on two switches in a row.

use super::*;
use fabric::Network;
use fabric::buffer::{ALPHA_ONE, Share};
use fabric::scheme::Unlimited;
use fabric::setup::{FlowSpec, Scheduler};
use fabric::topology::Graph;

const HOP: Time = Time::from_us(1);

/// Senders on one switch, a receiver behind another; hosts first, the receiver last among them.
fn line(senders: u32, middle: u64) -> Graph {
    let mut graph = Graph::default();
    (0..=senders).for_each(|i| _ = graph.add(Kind::Host, 0, format!("h{i}")));
    let (near, far) = (graph.add(Kind::Switch, 1, "near"), graph.add(Kind::Switch, 1, "far"));
    (0..senders).for_each(|host| graph.connect(host, near, Rate::from_gbps(100), HOP));
    graph.connect(near, far, Rate::from_gbps(middle), HOP);
    graph.connect(senders, far, Rate::from_gbps(100), HOP);
    graph
}

fn setup(graph: Graph, flows: Vec<FlowSpec>) -> Setup {
    let mut setup = Setup::plain(graph, flows);
    setup.switch.scheduler = Scheduler::Deficit;
    setup.switch.quantum = 1062;
    setup.switch.resume_gap = 3000;
    setup.ports.iter_mut().for_each(|p| p.share = Share { alpha: ALPHA_ONE / 8, headroom: 60_000 });
    setup
}

fn flows(senders: u32, each: u32, size: u64) -> Vec<FlowSpec> {
    let one = |n: u32| FlowSpec::plain(n as u16, n % senders, senders, size, Time::from_ns(n as u64 * 10));
    (0..senders * each).map(one).collect()
}

fn run(params: &Params, mut setup: Setup) -> (Outcome, Bfc) {
    let scheme = Bfc::new(params, &mut setup, true);
    let mut network = Network::new(setup, scheme, Box::new(Unlimited));
    let outcome = network.run(|_, _| true);
    assert_eq!(outcome.violations, Vec::<String>::new());
    assert!(outcome.complete(), "{:?}", outcome.stall);
    (outcome, network.scheme)
}

/// Nobody has a queue, an entry or a place in a filter any more.
fn assert_clean(bfc: &Bfc) {
    assert!(bfc.taken.iter().all(|&taken| taken == 0) && bfc.physical.iter().all(|queue| queue.flows == 0));
    assert_eq!(bfc.counts.pauses, bfc.counts.resumes + bfc.table.len() as u64);
    let paused: usize = bfc.ingress.iter().map(|ingress| ingress.filter.len()).sum();
    assert_eq!(paused, bfc.table.len(), "what is left in the table waits for its turn to be resumed");
}

fn counter(outcome: &Outcome, name: &str) -> u64 {
    outcome.flow_control.iter().find(|(n, _)| *n == name).map(|(_, count)| *count).unwrap()
}

/// The share of samples of a physical queue that had more than so many kilobytes.
fn above(outcome: &Outcome, kilobytes: usize) -> f64 {
    let counts = &outcome.histograms.iter().find(|(name, _)| *name == "physical_queue_kb").unwrap().1;
    counts.iter().skip(kilobytes + 1).sum::<u64>() as f64 / counts.iter().sum::<u64>() as f64
}

#[test]
fn the_threshold_is_one_and_a_half_hop_round_trips_shared_by_the_active_queues() {
    // §3.4 with the numbers of §4.1: (2 us + 1 us) at 100 Gb/s.
    assert_eq!(Rate::from_gbps(100).bytes_in(Time::from_us(3)), 37_500);
    let (outcome, bfc) = run(&Params::default(), setup(line(2, 100), flows(2, 1, 2_000_000)));
    assert!(bfc.thresholds.iter().all(|&bytes| bytes == 37_500));
    // Two flows share the middle link; each may build half of it, and as much again until the pause takes effect.
    assert!((37_500..2 * 75_000 + 10_000).contains(&outcome.peak[3]), "{}", outcome.peak[3]);
    assert_eq!(outcome.counts.pauses, 0, "PFC is not needed");
    assert!(counter(&outcome, "flows_paused") > 10);
    assert_clean(&bfc);
}

#[test]
fn a_flow_alone_is_never_paused_and_pays_for_the_frames_only() {
    let (outcome, bfc) = run(&Params::default(), setup(line(1, 100), flows(1, 1, 1_000_000)));
    assert_eq!((bfc.counts.pauses, bfc.counts.frames), (0, 0));
    // 146 bytes every microsecond: 1.17 % of a link at 100 Gb/s, at the slowest of its links.
    let (packet, frame) = (1062 * 80, 146 * 80);
    let ideal = 1002 * packet + 3_000_000;
    let time = outcome.flows[0].received.0;
    let frames = (time - ideal) as f64 / frame as f64;
    assert!((80.0..90.0).contains(&frames), "{frames} frames in 85 us");
}

#[test]
fn flows_have_queues_of_their_own_until_there_are_none_left() {
    let (outcome, bfc) = run(&Params::default(), setup(line(8, 100), flows(8, 3, 100_000)));
    assert_eq!(counter(&outcome, "queue_collisions"), 0);
    assert_clean(&bfc);
    for crowded in [Crowded::Random, Crowded::Shortest, Crowded::Unpaused] {
        let params = Params { queues: 4, crowded, ..Params::default() };
        let (outcome, bfc) = run(&params, setup(line(8, 100), flows(8, 3, 100_000)));
        assert!(counter(&outcome, "queue_collisions") > 0);
        assert_clean(&bfc);
    }
}

#[test]
fn queues_by_hash_collide_while_others_are_free() {
    let params = Params { assignment: Assignment::Hashed, ..Params::default() };
    let (outcome, bfc) = run(&params, setup(line(8, 100), flows(8, 3, 100_000)));
    assert!(counter(&outcome, "queue_collisions") > 0);
    assert_clean(&bfc);
}

#[test]
fn at_most_one_flow_of_a_queue_is_resumed_in_half_a_hop_round_trip() {
    let params = Params { queues: 1, ..Params::default() };
    let traffic = || {
        let mut setup = setup(line(8, 100), flows(8, 8, 100_000));
        setup.measure.sample = Some(HOP);
        setup
    };
    let (outcome, bfc) = run(&params, traffic());
    // Both switches have one busy queue.
    let most = 2 * (outcome.end.0 / 1_000_000 + 2);
    assert!(bfc.counts.resumes > 50 && bfc.counts.resumes <= most, "{} of {most}", bfc.counts.resumes);
    assert_clean(&bfc);
    let all = Params { resume: Resume::All, ..params };
    let (greedy, bfc) = run(&all, traffic());
    let (paced, greedy) = (above(&outcome, 100), above(&greedy, 100));
    assert!(greedy > 1.5 * paced, "longer than 100 KB: {paced} and {greedy} of the time");
    assert_clean(&bfc);
}

#[test]
fn a_single_packet_goes_ahead_of_the_queues() {
    let late = Time::from_us(100);
    let traffic = || {
        let mut flows = flows(8, 1, 1_000_000);
        flows.push(FlowSpec { start: late, ..FlowSpec::plain(99, 0, 8, 500, late) });
        setup(line(8, 100), flows)
    };
    let (ahead, _) = run(&Params::default(), traffic());
    let (behind, _) = run(&Params { high_priority: false, ..Params::default() }, traffic());
    let time = |outcome: &Outcome| (outcome.flows[8].received - late).0;
    // Three hops, and at each at most the packet that is being sent and a frame before it.
    assert!(time(&ahead) < 3_000_000 + 3 * (562 + 1062 + 2 * 146) * 80, "{}", time(&ahead));
    assert!(time(&behind) > time(&ahead));
}

#[test]
fn strangers_in_a_tiny_filter_are_held_but_not_for_ever() {
    let params = Params { filter: Bytes(1), hashes: 1, ..Params::default() };
    let (outcome, bfc) = run(&params, setup(line(8, 400), flows(8, 6, 60_000)));
    assert!(counter(&outcome, "filter_false_positives") > 0, "{:?}", outcome.flow_control);
    assert_clean(&bfc);
}

#[test]
fn a_full_table_sends_flows_through_the_overflow_queue() {
    let params = Params { vfids: 2, bucket: 1, cache: 0, high_priority: false, ..Params::default() };
    let mut setup = setup(line(8, 40), flows(8, 2, 60_000));
    setup.nic.recovery.timeout = Some(Time::from_ms(1));
    let scheme = Bfc::new(&params, &mut setup, true);
    let mut network = Network::new(setup, scheme, Box::new(Unlimited));
    let outcome = network.run(|_, _| true);
    assert!(outcome.complete() && outcome.counts.dropped_full == 0);
    assert!(counter(&outcome, "overflow_packets") > 0);
    assert_clean(&network.scheme);
}

#[test]
fn a_lost_filter_is_repaired_by_the_next() {
    let mut setup = setup(line(4, 40), flows(4, 2, 200_000));
    setup.graph.links[4].loss = 0.3;
    setup.nic.recovery.timeout = Some(Time::from_us(200));
    let scheme = Bfc::new(&Params::default(), &mut setup, false);
    let mut network = Network::new(setup, scheme, Box::new(Unlimited));
    let outcome = network.run(|_, _| true);
    assert!(outcome.complete() && outcome.counts.dropped_fault > 100, "{:?}", outcome.stall);
}

#[test]
fn a_long_link_has_a_long_period_and_a_high_threshold() {
    let mut graph = line(2, 100);
    graph.links[2].delay = Time::from_us(200);
    let (outcome, bfc) = run(&Params::default(), setup(graph, flows(2, 1, 30_000_000)));
    let middle = bfc.ingress.iter().map(|ingress| ingress.period).max();
    assert_eq!(middle, Some(Time::from_us(200)));
    assert_eq!(bfc.thresholds.iter().max(), Some(&Rate::from_gbps(100).bytes_in(Time::from_us(600))));
    // The long link is kept busy: the two take little longer than their bytes.
    let bytes = 2 * 30_000 * 1062 * 80;
    assert!(outcome.flows[1].received.0 < bytes * 102 / 100 + 210_000_000);
}
