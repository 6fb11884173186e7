//! Each mechanism alone, on two switches in a row.

use super::*;
use crate::queueing::drr;
use crate::{congestion_control, transport};
use fabric::Network;
use fabric::axes::Chosen;
use fabric::bench::{Bench, Builder, Timer};
use fabric::buffer::{ALPHA_ONE, Share};
use fabric::id::NodeId;
use fabric::setup::FlowSpec;
use fabric::topology;

const HOP: Time = Time::from_us(1);

/// Senders on one switch, a receiver behind another; hosts first, the receiver last among them.
fn line(senders: u32, middle: u64) -> Graph {
    let mut graph = Graph::default();
    (0..=senders).for_each(|i| _ = graph.add(topology::Kind::Host, 0, format!("h{i}")));
    let (near, far) = (graph.add(topology::Kind::Switch, 1, "near"), graph.add(topology::Kind::Switch, 1, "far"));
    (0..senders).for_each(|host| graph.connect(NodeId(host), near, Rate::from_gbps(100), HOP));
    graph.connect(near, far, Rate::from_gbps(middle), HOP);
    graph.connect(NodeId(senders), far, Rate::from_gbps(100), HOP);
    graph
}

fn setup(graph: Graph, flows: Vec<FlowSpec>) -> Setup {
    let mut setup = Setup::plain(graph, flows);
    setup.switch.quantum = 1062;
    setup.switch.resume_gap = 3000;
    setup.ports.iter_mut().for_each(|p| p.share = Share { alpha: ALPHA_ONE / 8, headroom: 60_000 });
    setup
}

fn flows(senders: u32, each: u32, size: u64) -> Vec<FlowSpec> {
    let one = |n: u32| FlowSpec::plain(n as u16, n % senders, senders, size, Time::from_ns(n as u64 * 10));
    (0..senders * each).map(one).collect()
}

/// Every node of the line and what it keeps.
type Line = Network<Over<Bfc, Pfc>>;

/// BFC over PFC, with queues laid out as it asks and served by deficit round robin.
fn network(params: &Params, mut setup: Setup, promised: bool) -> Line {
    let layout = params.layout(&setup.graph).unwrap();
    setup.switch.queues = layout.queues.unwrap();
    setup.switch.express = layout.express;
    let scheme = over_pfc(params, &setup, promised);
    let (line_rate, transport) = (congestion_control::None::default(), transport::go_back_n::GoBackN::default());
    crate::testing::chosen(&line_rate, &transport, |chosen| {
        Network::new(setup, scheme, &Chosen { queueing: &drr::Params::default(), ..*chosen })
    })
}

fn run(params: &Params, setup: Setup) -> (Outcome, Line) {
    let mut network = network(params, setup, true);
    let outcome = network.run(|_, _| true);
    assert_eq!(outcome.violations, Vec::<String>::new());
    assert!(outcome.complete(), "{:?}", outcome.stall);
    (outcome, network)
}

/// What the two switches of a line with so many senders keep.
fn switches<R>(network: &Line, senders: u32, look: impl Fn(&Node) -> R) -> [R; 2] {
    [senders + 1, senders + 2].map(|switch| look(&network.node(NodeId(switch)).0))
}

/// No flow has a queue, an entry or a place in a filter any more.
fn assert_clean(network: &Line, senders: u32) {
    switches(network, senders, |node| {
        assert!(node.taken.iter().all(|&taken| taken == 0) && node.physical.iter().all(|queue| queue.flows == 0));
        assert_eq!(node.counts.pauses, node.counts.resumes + node.table.len() as u64);
        let paused: usize = node.ingress.iter().map(|ingress| ingress.filter.len()).sum();
        assert_eq!(paused, node.table.len(), "all remaining entries wait for their turn to be resumed");
    });
}

fn counter(outcome: &Outcome, name: &str) -> u64 {
    outcome.flow_control.iter().find(|counter| counter.name == name).unwrap().value
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
    let (outcome, network) = run(&Params::default(), setup(line(2, 100), flows(2, 1, 2_000_000)));
    switches(&network, 2, |node| assert_eq!(node.thresholds, [37_500]));
    // Two flows share the middle link; each may build half of it, and as much again until the pause takes effect.
    assert!((37_500..2 * 75_000 + 10_000).contains(&outcome.peak[3]), "{}", outcome.peak[3]);
    assert_eq!(outcome.counts.pauses, 0, "PFC is not needed");
    assert!(counter(&outcome, "flows_paused") > 10);
    assert_clean(&network, 2);
}

#[test]
fn a_flow_alone_is_never_paused_and_pays_for_the_frames_only() {
    let (outcome, _) = run(&Params::default(), setup(line(1, 100), flows(1, 1, 1_000_000)));
    assert_eq!((counter(&outcome, "flows_paused"), counter(&outcome, "filter_frames")), (0, 0));
    // 146 bytes every microsecond: 1.17 % of a link at 100 Gb/s, at the slowest of its links.
    let (packet, frame) = (1062 * 80, 146 * 80);
    let ideal = 1002 * packet + 3_000_000;
    let time = outcome.flows[0].received.0;
    let frames = (time - ideal) as f64 / frame as f64;
    assert!((80.0..90.0).contains(&frames), "{frames} frames in 85 us");
}

#[test]
fn flows_have_queues_of_their_own_until_there_are_none_left() {
    let (outcome, network) = run(&Params::default(), setup(line(8, 100), flows(8, 3, 100_000)));
    assert_eq!(counter(&outcome, "queue_collisions"), 0);
    assert_clean(&network, 8);
    for crowded in [Crowded::Random, Crowded::Shortest, Crowded::Unpaused] {
        let params = Params { queues: 4, crowded, ..Params::default() };
        let (outcome, network) = run(&params, setup(line(8, 100), flows(8, 3, 100_000)));
        assert!(counter(&outcome, "queue_collisions") > 0);
        assert_clean(&network, 8);
    }
}

#[test]
fn queues_by_hash_collide_while_others_are_free() {
    let params = Params { assignment: Assignment::Hashed, ..Params::default() };
    let (outcome, network) = run(&params, setup(line(8, 100), flows(8, 3, 100_000)));
    assert!(counter(&outcome, "queue_collisions") > 0);
    assert_clean(&network, 8);
}

#[test]
fn at_most_one_flow_of_a_queue_is_resumed_in_half_a_hop_round_trip() {
    let traffic = || {
        let mut setup = setup(line(8, 100), flows(8, 8, 100_000));
        setup.measure.sample = Some(HOP);
        setup
    };
    let listed = Params { emptied: Emptied::Listed, ..Params::default() };
    let checked = Params { resume: Resume::Checked, ..Params::default() };
    for params in [Params::default(), listed, checked] {
        let params = Params { queues: 1, ..params };
        let (outcome, network) = run(&params, traffic());
        // Both switches have one busy queue.
        let most = 2 * (outcome.end.0 / 1_000_000 + 2);
        let resumes = counter(&outcome, "flows_resumed");
        assert!(resumes > 50 && resumes <= most, "{resumes} of {most}");
        assert_clean(&network, 8);
    }
    let [checked, all] = [Resume::Checked, Resume::All].map(|resume| {
        let (outcome, network) = run(&Params { queues: 1, resume, ..Params::default() }, traffic());
        assert_clean(&network, 8);
        above(&outcome, 100)
    });
    assert!(all > 1.5 * checked, "longer than 100 KB: {checked} and {all} of the time");
}

#[test]
fn a_listed_flow_is_resumed_by_the_next_frame_one_to_an_interval_however_long_the_queue() {
    let params = Params { queues: 1, high_priority: false, ..Params::default() };
    let layout = params.layout(&Graph::default()).unwrap();
    let mut bench = Builder::switch(3, 0).layout(&layout).build_with(|setup| Bfc::new(&params, setup));
    let flows = [0, 1, 2, 3, 4].map(|nth| bench.flow(0, 2, nth));
    bench.close(RECEIVER);
    // 35 packets are not too many; each of the four after them pauses its flow.
    (0..35).for_each(|_| bench.arrive(SENDER, flows[4]));
    flows[..4].iter().for_each(|&flow| bench.arrive(SENDER, flow));
    let paused = |bench: &Bench<Bfc>| bench.node().ingress[0].filter.len();
    assert_eq!(paused(&bench), 4);
    // All have left and are on the list, and no timer but the frame's is set.
    (0..39).for_each(|_| _ = bench.transmit(RECEIVER));
    let listed = paused(&bench);
    assert!(listed >= 3, "a frame may have gone meanwhile");
    assert!(bench.timers().iter().all(|(_, timer)| matches!(timer, Timer::Port(SENDER, TICK))), "{:?}", bench.timers());
    // The queue has become too long again: that is no reason to wait.
    bench.close(RECEIVER);
    (0..60).for_each(|_| bench.arrive(SENDER, flows[4]));
    assert_eq!(paused(&bench), listed + 1);
    for left in (1..=listed).rev() {
        let due = bench.timers()[0].0;
        bench.advance_to(due);
        assert_eq!(paused(&bench), left);
    }
    bench.advance(Time::from_us(5));
    assert_eq!(paused(&bench), 1, "the last has packets queued and is not listed");
}

#[test]
fn a_listed_flow_that_is_paused_again_goes_to_the_end_of_the_list() {
    let params = Params { queues: 1, high_priority: false, ..Params::default() };
    let layout = params.layout(&Graph::default()).unwrap();
    let mut bench = Builder::switch(3, 0).layout(&layout).build_with(|setup| Bfc::new(&params, setup));
    let flows = [0, 1].map(|nth| bench.flow(0, 2, nth));
    bench.close(RECEIVER);
    flows.iter().for_each(|&flow| bench.arrive(SENDER, flow));
    let first = bench.at(|bfc, node, at| {
        let (spot, [one, two]) = (Spot { port: RECEIVER, class: ClassId(0), queue: 0 }, [0, 1]);
        assert_eq!([one, two].map(|id| node.table[id].flow), flows.map(|flow| flow.0));
        [one, two].into_iter().for_each(|id| bfc.pause(node, at, id, spot, 0));
        bfc.list(node, at, spot, one);
        bfc.pause(node, at, one, spot, 0);
        [two, one].into_iter().for_each(|id| bfc.list(node, at, spot, id));
        bfc.next_listed(node, bfc.place(spot)).map(|(id, _)| id)
    });
    assert_eq!(first, Some(1));
}

#[test]
fn a_flow_with_nothing_queued_is_to_be_resumed_when_its_queue_is_short() {
    for (emptied, listed) in [(Emptied::Waits, 0), (Emptied::Listed, 1)] {
        let params = Params { queues: 1, high_priority: false, emptied, ..Params::default() };
        let layout = params.layout(&Graph::default()).unwrap();
        let mut bench = Builder::switch(3, 0).layout(&layout).build_with(|setup| Bfc::new(&params, setup));
        let flows = [0, 1].map(|nth| bench.flow(0, 2, nth));
        bench.close(RECEIVER);
        (0..35).for_each(|_| bench.arrive(SENDER, flows[1]));
        bench.arrive(SENDER, flows[0]);
        // The queue has another 60 packets when the one of the first flow has left.
        (0..60).for_each(|_| bench.arrive(SENDER, flows[1]));
        (0..36).for_each(|_| _ = bench.transmit(RECEIVER));
        let paused = |bench: &Bench<Bfc>| bench.node().ingress[0].filter.len();
        bench.advance(Time::from_us(3));
        assert_eq!(paused(&bench), 2 - listed);
        // 35 packets are left after another 25.
        (0..25).for_each(|_| _ = bench.transmit(RECEIVER));
        bench.advance(Time::from_us(3));
        assert_eq!(paused(&bench), 0);
    }
}

/// What the preset `bfc-nsdi22` sets.
fn nsdi22() -> Params {
    let (pauses, resume, keep) = (Pauses::Queues, Resume::Marked, Time::from_us(6));
    Params { queues: 31, pauses, resume, keep, high_priority: false, ..Params::default() }
}

fn switch_with(params: &Params) -> Bench<Bfc> {
    let layout = params.layout(&Graph::default()).unwrap();
    Builder::switch(3, 0).layout(&layout).build_with(|setup| Bfc::new(params, setup))
}

#[test]
fn a_flow_is_paused_until_the_last_packet_that_found_the_queue_too_long_has_left() {
    let mut bench = switch_with(&Params { resume: Resume::Marked, high_priority: false, ..Params::default() });
    let flow = bench.flow(0, 2, 0);
    bench.close(RECEIVER);
    (0..40).for_each(|_| bench.arrive(SENDER, flow));
    let marks = |bench: &Bench<Bfc>| bench.node().ingress[0].marks.values().copied().collect::<Vec<u32>>();
    // 35 packets are not too many.
    assert_eq!((bench.node().ingress[0].filter.len(), marks(&bench)), (1, vec![5]));
    (0..39).for_each(|_| _ = bench.transmit(RECEIVER));
    assert_eq!((bench.node().ingress[0].filter.len(), marks(&bench)), (1, vec![1]));
    let before = bench.node().counts.frames;
    bench.transmit(RECEIVER);
    assert_eq!((bench.node().ingress[0].filter.len(), marks(&bench)), (0, vec![]));
    assert_eq!(bench.node().counts.frames, before + 1, "a frame says so at once");
}

#[test]
fn a_flow_with_one_packet_queued_is_not_paused_by_the_queue_of_others() {
    let mut bench =
        switch_with(&Params { queues: 1, resume: Resume::Marked, high_priority: false, ..Params::default() });
    let flows = [0, 1].map(|nth| bench.flow(0, 2, nth));
    bench.close(RECEIVER);
    (0..35).for_each(|_| bench.arrive(SENDER, flows[0]));
    bench.arrive(SENDER, flows[1]);
    assert_eq!(bench.node().ingress[0].filter.len(), 0);
    bench.arrive(SENDER, flows[1]);
    assert_eq!(bench.node().ingress[0].filter.len(), 1);
}

#[test]
fn a_pause_names_the_queue_upstream_and_holds_whoever_is_in_it() {
    let mut bench = switch_with(&Params { queues: 2, keep: Time::ZERO, ..nsdi22() });
    let (flow, shape) = (bench.flow(0, 2, 0), Shape::new(128, 4));
    bench.close(RECEIVER);
    // It came from the seventh queue of the switch before.
    let upstream = Bfc::queue_name(QueueId(7));
    (0..40).for_each(|_| bench.arrive_as(SENDER, flow, |packet| packet.tag = upstream));
    let sent = Received::new(bench.node().ingress[0].filter.snapshot(), shape);
    assert!(sent.pauses(shape, upstream) && !sent.pauses(shape, Bfc::queue_name(QueueId(8))));
    // A packet that leaves carries the number of its queue here.
    let queue = bench.node().table[0].queue;
    let number = QueueId(queue as u32);
    assert_eq!(bench.transmit(RECEIVER).unwrap().packet.tag, Bfc::queue_name(number));
    // The neighbour pauses that queue, which holds it whatever flow is first.
    let mut filter = Counting::new(shape);
    filter.insert(Bfc::queue_name(number));
    bench.frame(RECEIVER, Frame { filter: filter.snapshot() });
    assert_eq!(bench.held_queues(RECEIVER), [number]);
    // No other flow gets a queue that is paused, even if it is empty.
    bench.frame(RECEIVER, Frame { filter: Counting::new(shape).snapshot() });
    (0..39).for_each(|_| _ = bench.transmit(RECEIVER));
    bench.frame(RECEIVER, Frame { filter: filter.snapshot() });
    let other = bench.flow(0, 2, 1);
    for _ in 0..20 {
        bench.close(RECEIVER);
        bench.arrive(SENDER, other);
        assert!(bench.node().taken.contains(&(1 << (1 - queue))) && bench.held_queues(RECEIVER).is_empty());
        bench.transmit(RECEIVER);
    }
}

#[test]
fn a_flow_comes_back_to_its_queue_for_a_while_even_if_another_has_it_meanwhile() {
    let mut bench =
        switch_with(&Params { queues: 2, high_priority: false, keep: Time::from_us(6), ..Params::default() });
    let flows = [0, 1, 2].map(|nth| bench.flow(0, 2, nth));
    bench.arrive(SENDER, flows[0]);
    while bench.transmit(RECEIVER).is_some() {}
    let queue = bench.node().table[0].queue;
    assert_eq!((bench.node().table.len(), bench.node().taken.iter().all(|&taken| taken == 0)), (1, true));
    bench.close(RECEIVER);
    flows[1..].iter().for_each(|&flow| bench.arrive(SENDER, flow));
    bench.advance(Time::from_us(4));
    bench.arrive(SENDER, flows[0]);
    let node = bench.node();
    assert_eq!((node.table[0].flow, node.table[0].queue), (flows[0].0, queue));
    assert_eq!(node.physical.iter().map(|physical| physical.flows).max(), Some(2));
    // When it has been away for longer, it is forgotten.
    (0..3).for_each(|_| _ = bench.transmit(RECEIVER));
    assert_eq!(bench.node().table.len(), 3);
    bench.advance(Time::from_us(7));
    bench.arrive(SENDER, flows[1]);
    assert_eq!(bench.node().table.len(), 1);
}

#[test]
fn the_form_of_2022_leaves_nothing_paused() {
    for (senders, middle) in [(8, 100), (8, 40), (2, 400)] {
        for params in [nsdi22(), Params { queues: 2, ..nsdi22() }, Params { keep: Time::ZERO, ..nsdi22() }] {
            let (outcome, network) = run(&params, setup(line(senders, middle), flows(senders, 6, 100_000)));
            assert!(counter(&outcome, "flows_paused") > 0);
            assert_eq!(counter(&outcome, "flows_paused"), counter(&outcome, "flows_resumed"));
            switches(&network, senders, |node| {
                assert!(node.taken.iter().all(|&taken| taken == 0));
                assert!(node.ingress.iter().all(|ingress| ingress.marks.is_empty() && ingress.filter.is_empty()));
            });
        }
    }
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
    let (outcome, network) = run(&params, setup(line(8, 400), flows(8, 6, 60_000)));
    assert!(counter(&outcome, "filter_false_positives") > 0, "{:?}", outcome.flow_control);
    assert_clean(&network, 8);
}

#[test]
fn a_full_table_sends_flows_through_the_overflow_queue() {
    let params = Params { vfids: 2, bucket: 1, cache: 0, high_priority: false, ..Params::default() };
    let mut setup = setup(line(8, 40), flows(8, 2, 60_000));
    setup.nic.timeout = Some(Time::from_ms(1));
    let mut network = network(&params, setup, true);
    let outcome = network.run(|_, _| true);
    assert!(outcome.complete() && outcome.counts.dropped_full == 0);
    assert!(counter(&outcome, "overflow_packets") > 0);
    assert_clean(&network, 8);
}

#[test]
fn a_lost_filter_is_repaired_by_the_next() {
    let mut setup = setup(line(4, 40), flows(4, 2, 200_000));
    setup.graph.links[4].loss = 0.3;
    setup.nic.timeout = Some(Time::from_us(200));
    let outcome = network(&Params::default(), setup, false).run(|_, _| true);
    assert!(outcome.complete() && outcome.counts.dropped_fault > 100, "{:?}", outcome.stall);
}

#[test]
fn a_long_link_has_a_long_period_and_a_high_threshold() {
    let mut graph = line(2, 100);
    graph.links[2].delay = Time::from_us(200);
    let (outcome, network) = run(&Params::default(), setup(graph, flows(2, 1, 30_000_000)));
    switches(&network, 2, |node| {
        let middle = node.ingress.iter().map(|ingress| ingress.period).max();
        assert_eq!(middle, Some(Time::from_us(200)));
        assert_eq!(node.thresholds.iter().max(), Some(&Rate::from_gbps(100).bytes_in(Time::from_us(600))));
    });
    // The long link is kept busy: the two take little longer than their bytes.
    let bytes = 2 * 30_000 * 1062 * 80;
    assert!(outcome.flows[1].received.0 < bytes * 102 / 100 + 210_000_000);
}

/// BFC alone, without a queue for single packets, at a node of a bench.
fn bench(builder: Builder<'_>) -> Bench<Bfc> {
    let params = Params { high_priority: false, ..Params::default() };
    let layout = params.layout(&Graph::default()).unwrap();
    builder.layout(&layout).build_with(|setup| Bfc::new(&params, setup))
}

/// A frame that pauses these flows.
fn pausing<F: FlowControl>(bench: &mut Bench<F>, flows: &[FlowId]) -> Frame {
    let mut filter = Counting::new(shape());
    bench.at(|_, _, at| flows.iter().for_each(|&flow| filter.insert(tag(&at.flow(flow).tuple))));
    Frame { filter: filter.snapshot() }
}

fn shape() -> Shape {
    Shape::new(Params::default().filter.0 as u32, Params::default().hashes)
}

fn tag(tuple: &Tuple) -> u16 {
    Bfc::new(&Params::default(), &Setup::plain(Graph::default(), Vec::new())).tag(tuple)
}

const SENDER: PortId = PortId(0);
const RECEIVER: PortId = PortId(2);

#[test]
fn a_queue_is_held_while_its_first_packet_is_of_a_flow_in_the_filter() {
    let mut bench = bench(Builder::switch(3, 0));
    let flows = [bench.flow(0, 2, 0), bench.flow(0, 2, 1)];
    bench.close(RECEIVER);
    for flow in [flows[0], flows[1], flows[1]] {
        bench.arrive(SENDER, flow);
    }
    assert_eq!([0, 1].map(|queue| bench.view().queue_bytes(RECEIVER, QueueId(queue))), [1062, 2124]);
    let first = pausing(&mut bench, &flows[..1]);
    bench.frame(RECEIVER, first);
    assert_eq!(bench.held_queues(RECEIVER), [QueueId(0)]);
    assert_eq!(bench.transmit(RECEIVER).unwrap().packet.flow, flows[1].0);
    let second = pausing(&mut bench, &flows[1..]);
    bench.frame(RECEIVER, second);
    assert_eq!(bench.held_queues(RECEIVER), [QueueId(1)]);
    assert_eq!(bench.transmit(RECEIVER).unwrap().packet.flow, flows[0].0);
    assert!(bench.transmit(RECEIVER).is_none());
    let empty = pausing(&mut bench, &[]);
    bench.frame(RECEIVER, empty);
    assert_eq!(bench.held_queues(RECEIVER), []);
    assert_eq!(bench.transmit(RECEIVER).unwrap().packet.flow, flows[1].0);
}

#[test]
fn the_first_filter_after_a_queue_crosses_its_threshold_has_the_flow() {
    let mut bench = bench(Builder::switch(3, 0));
    let flow = bench.flow(0, 2, 0);
    bench.close(RECEIVER);
    // One active queue: 3 us at 100 Gb/s are 37 500 bytes, of which the 36th packet is one too many.
    (0..35).for_each(|_| bench.arrive(SENDER, flow));
    assert_eq!(bench.timers(), []);
    bench.arrive(SENDER, flow);
    let timers = bench.timers();
    assert!(matches!(timers[..], [(at, Timer::Port(SENDER, TICK))] if at <= HOP), "{timers:?}");
    bench.advance_to(timers[0].0);
    let filter = pausing(&mut bench, &[flow]);
    assert_eq!(bench.frames(), [(SENDER, filter.clone())]);
    // One more in every period, and an empty one after the queue is short enough again: at 35 packets.
    bench.advance(HOP);
    assert_eq!(bench.frames(), [(SENDER, filter)]);
    bench.transmit(RECEIVER).unwrap();
    bench.advance(HOP);
    let empty = pausing(&mut bench, &[]);
    assert_eq!(bench.frames(), [(SENDER, empty)]);
    bench.advance(Time::from_us(10));
    assert_eq!(bench.frames(), []);
}

#[test]
fn a_host_that_does_not_forward_keeps_only_what_its_ports_received() {
    let host = bench(Builder::host(1));
    let node = host.node();
    assert_eq!((node.egress.len(), node.egress[0].due), (1, Time::MAX));
    assert!(node.ingress.is_empty() && node.taken.is_empty() && node.physical.is_empty());
    for ports in [2, 3] {
        let switch = bench(Builder::switch(ports as u16, 0));
        let node = switch.node();
        assert_eq!((node.egress.len(), node.ingress.len(), node.physical.len()), (ports, ports, ports * 32));
    }
}

#[test]
fn a_filter_holds_the_flows_of_a_nic_until_the_next_one_does_not() {
    let filter = |word: u64| Frame { filter: vec![word; shape().words()].into() };
    let mut bench = bench(Builder::host(1));
    let flows = [bench.flow(0, 1, 0), bench.flow(0, 1, 1)];
    flows.iter().for_each(|&flow| bench.start(flow, 100_000));
    bench.frame(SENDER, filter(u64::MAX));
    assert_eq!(bench.held_flows(), flows, "a filter of ones holds every flow");
    // A packet may be under way.
    bench.advance(HOP);
    bench.sent();
    bench.advance(HOP);
    assert!(bench.data().is_empty());
    bench.frame(SENDER, filter(0));
    assert_eq!(bench.held_flows(), []);
    bench.advance(Time::from_us(100));
    assert!(bench.data().iter().any(|sent| sent.packet.seq == 99_000));
    // One of two.
    let one = pausing(&mut bench, &flows[1..]);
    bench.frame(SENDER, one);
    assert_eq!(bench.held_flows(), flows[1..]);
}

#[test]
fn the_first_packet_of_a_flow_leaves_a_nic_although_its_hash_is_paused() {
    for (high_priority, sent) in [(true, 1), (false, 0)] {
        let params = Params { assignment: Assignment::Hashed, high_priority, ..Params::default() };
        let layout = params.layout(&Graph::default()).unwrap();
        let mut bench = Builder::host(1).layout(&layout).build_with(|setup| Bfc::new(&params, setup));
        bench.frame(SENDER, Frame { filter: vec![u64::MAX; shape().words()].into() });
        let flow = bench.flow(0, 1, 0);
        bench.start(flow, 100_000);
        bench.advance(HOP);
        assert_eq!(bench.data().len(), sent);
        assert_eq!(bench.held_flows(), [flow], "the others wait");
        // A filter that says the same again holds it still.
        bench.frame(SENDER, Frame { filter: vec![u64::MAX; shape().words()].into() });
        bench.advance(HOP);
        assert_eq!(bench.data().len(), 0);
    }
}

#[test]
fn collisions_are_counted_over_all_ports_for_as_long_as_flows_start() {
    let params = Params { queues: 4, ..Params::default() };
    let mut traffic = flows(8, 3, 100_000);
    traffic.push(FlowSpec::plain(99, 0, 8, 500, Time::from_us(100)));
    let mut setup = setup(line(8, 100), traffic);
    setup.measure.sample = Some(HOP);
    let (outcome, _) = run(&params, setup);
    let sampled = counter(&outcome, "ports_sampled");
    // Nine ports of one switch and two of the other, every microsecond up to the last start.
    assert!((11 * 99..=11 * 102).contains(&sampled), "{sampled}");
    let (sharing, sharing_ever) = (counter(&outcome, "ports_sampled_sharing"), counter(&outcome, "ports_sharing"));
    assert!(sharing > 0 && sharing <= sharing_ever);
    let histogram = |name: &str| &outcome.histograms.iter().find(|(own, _)| *own == name).unwrap().1;
    for name in ["queues_occupied", "flows_sharing"] {
        assert_eq!(histogram(name).iter().sum::<u64>(), sampled, "{name}");
    }
    assert_eq!(sampled - histogram("flows_sharing")[0], sharing);
    assert_eq!(histogram("active_vfids").iter().sum::<u64>() * 11, sampled * 2);
}
