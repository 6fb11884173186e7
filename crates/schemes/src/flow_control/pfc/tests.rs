use super::*;
use engine::Rate;
use fabric::bench::{Bench, Builder};
use fabric::buffer::{ALPHA_ONE, Share};
use fabric::id::NodeId;
use fabric::setup::FlowSpec;
use fabric::topology::{Graph, Kind};

/// Two senders into one receiver over a switch with little room.
fn incast() -> Setup {
    let mut graph = Graph::default();
    (0..3).for_each(|i| _ = graph.add(Kind::Host, 0, format!("h{i}")));
    let switch = graph.add(Kind::Switch, 1, "s");
    (0..3).for_each(|h| graph.connect(NodeId(h), switch, Rate::from_gbps(100), Time::from_us(1)));
    let flows = (0..2).map(|i| FlowSpec::plain(i, i as u32, 2, 1_000_000, Time::ZERO)).collect();
    let mut setup = Setup::plain(graph, flows);
    setup.switch.pool.fill(Some(100_000));
    setup.switch.resume_gap = 3_000;
    setup.ports.iter_mut().for_each(|p| p.share = Share { alpha: ALPHA_ONE / 4, headroom: 40_000 });
    setup.nic.timeout = Some(Time::from_ms(1));
    setup.measure.pause_log = true;
    setup
}

fn run(setup: Setup, pause: Option<Time>) -> Outcome {
    crate::testing::run(setup, Pfc::new(&Params::default(), pause, true))
}

fn counters(list: &[Counter]) -> std::collections::HashMap<&'static str, u64> {
    list.iter().map(|counter| (counter.name, counter.value)).collect()
}

#[test]
fn a_full_ingress_stops_its_neighbour_and_lets_it_go_again() {
    let outcome = run(incast(), None);
    assert!(outcome.complete() && outcome.violations.is_empty());
    let counters = counters(&outcome.flow_control);
    assert!(counters["pause_frames"] > 10);
    assert_eq!(counters["pause_frames"], counters["resume_frames"]);
    assert_eq!(outcome.counts.pauses, counters["pause_frames"]);
    // The two senders share the link for the whole run: each is held about half of the time.
    let share = outcome.paused[0].0 as f64 / outcome.end.0 as f64;
    assert!((0.4..0.6).contains(&share), "{share}");
    // A pause takes effect after its frame has crossed the link, and the packet before it was done.
    let first = outcome.pause_log.iter().find(|e| e.pause).expect("someone was paused");
    assert!(first.time > Time::from_us(2), "not before the first packets have arrived and a frame came back");
}

/// The receiver takes packets at a fifth of the rate of its link.
fn slow(buffer: u64, xoff: u64) -> Setup {
    let mut setup = incast();
    setup.flows.truncate(1);
    let (rate, until) = (Rate::from_gbps(20), Time::MAX);
    // The receiver's port is the host's end of the third link.
    let port = fabric::routing::PortMap::new(&setup.graph).of(2).start;
    let slow = fabric::setup::SlowReceiver { port, rate, from: Time::ZERO, until, buffer, xoff, xon: xoff / 2 };
    setup.slow.push(slow);
    setup
}

#[test]
fn a_slow_receiver_pauses_its_switch_and_is_never_overrun() {
    let outcome = run(slow(100_000, 50_000), None);
    assert!(outcome.complete() && outcome.violations.is_empty(), "{:?}", outcome.violations);
    // A megabyte at 20 Gb/s.
    let least = Rate::from_gbps(20).time_for(1_062_000);
    let took = outcome.flows[0].received;
    assert!(took >= least && took < least + Time::from_us(30), "{took}");
    let counters = counters(&outcome.transport);
    assert!((50_000..100_000).contains(&counters["receiver_buffer_peak"]));
    assert_eq!((counters["receiver_dropped"], outcome.counts.dropped_full), (0, 0));
    // Without room for what is in flight the promise is broken, and the run says so.
    let outcome = run(slow(60_000, 50_000), None);
    assert!(outcome.violations.iter().any(|v| v.contains("want of room")), "{:?}", outcome.violations);
}

#[test]
fn a_slow_receiver_without_pauses_drops_what_does_not_fit() {
    let outcome = crate::testing::run(slow(100_000, 50_000), fabric::axes::flow_control::NoFlowControl);
    assert!(outcome.complete() && outcome.violations.is_empty());
    let counters = counters(&outcome.transport);
    assert!(counters["receiver_dropped"] > 0 && counters["receiver_dropped"] == outcome.counts.dropped_full);
}

#[test]
fn a_receiver_that_is_slow_for_a_while_is_fast_again_afterwards() {
    let mut setup = slow(400_000, 300_000);
    (setup.slow[0].from, setup.slow[0].until) = (Time::from_us(20), Time::from_us(50));
    let outcome = run(setup, None);
    assert!(outcome.complete() && outcome.violations.is_empty());
    // It could take a fifth for 30 us; the rest waited for 24 us of the link's time.
    let alone = run(Setup { slow: vec![], ..slow(0, 0) }, None).flows[0].received;
    let late = outcome.flows[0].received - alone;
    assert!(late > Time::from_us(20) && late < Time::from_us(26), "{late}");
}

const CLASS: ClassId = ClassId(0);
const SENDER: PortId = PortId(0);
const RECEIVER: PortId = PortId(2);

/// A switch with a pool of 100 KB, of which each ingress may have a quarter of what is free, and resumes 3 KB below. The port to the
/// receiver sends when it is asked to.
fn bench(params: &Params, pause: Option<Time>) -> Bench<Pfc> {
    let builder = Builder::switch(3, 0).memory(100_000, ALPHA_ONE / 4, 40_000);
    let builder = builder.setup(|setup| setup.switch.resume_gap = 3_000);
    let mut bench = builder.build(Pfc::new(params, pause, true));
    bench.close(RECEIVER);
    bench
}

fn fill(bench: &mut Bench<Pfc>, packets: u32) {
    let flow = bench.flow(0, 2, 0);
    (0..packets).for_each(|_| bench.arrive(SENDER, flow));
}

#[test]
fn the_packet_that_crosses_the_threshold_pauses_its_sender_and_the_one_that_brings_it_under_resumes() {
    let mut bench = bench(&Params::default(), None);
    // n packets are over (100 000 − 1062 n) / 4 from n = 19 on.
    fill(&mut bench, 18);
    assert_eq!(bench.frames(), []);
    fill(&mut bench, 1);
    assert_eq!(bench.frames(), [(SENDER, Frame::Pause { class: CLASS })]);
    fill(&mut bench, 3);
    assert_eq!(bench.frames(), [], "it was said already");
    // And 3000 bytes under it with n = 16.
    (0..5).for_each(|_| _ = bench.transmit(RECEIVER).unwrap());
    assert_eq!(bench.frames(), []);
    bench.transmit(RECEIVER).unwrap();
    assert_eq!(bench.view().queued(RECEIVER), 16 * 1062);
    assert_eq!(bench.frames(), [(SENDER, Frame::Resume { class: CLASS })]);
}

#[test]
fn at_most_one_frame_of_a_class_waits_however_often_it_changes_its_mind() {
    // Without a gap and with nothing to share, every packet pauses and every packet that leaves resumes.
    let builder = Builder::switch(3, 0).memory(100_000, 0, 40_000);
    let mut bench = builder.build(Pfc::new(&Params::default(), None, true));
    [SENDER, RECEIVER].into_iter().for_each(|port| bench.close(port));
    for _ in 0..50 {
        fill(&mut bench, 1);
        assert!(bench.transmit(RECEIVER).is_some());
    }
    let said: Vec<Frame> = std::iter::from_fn(|| bench.transmit(SENDER)).map(|sent| sent.message()).collect();
    assert_eq!(said, [Frame::Resume { class: CLASS }]);
    let node = bench.node();
    assert_eq!((node.pauses_sent, node.resumes_sent), (0, 1), "what was never sent is not counted");
}

#[test]
fn a_paused_port_sends_nothing_of_the_class_until_it_is_resumed_or_the_pause_runs_out() {
    let mut bench = bench(&Params::default(), Some(Time::from_us(300)));
    fill(&mut bench, 3);
    bench.frame(RECEIVER, Frame::Pause { class: CLASS });
    assert_eq!(bench.paused_classes(RECEIVER), [CLASS]);
    assert!(bench.transmit(RECEIVER).is_none());
    bench.frame(RECEIVER, Frame::Resume { class: CLASS });
    assert_eq!(bench.transmit(RECEIVER).unwrap().packet.seq, 0);
    bench.frame(RECEIVER, Frame::Pause { class: CLASS });
    bench.advance(Time::from_us(300) - Time(1));
    assert!(bench.transmit(RECEIVER).is_none());
    bench.advance(Time(1));
    assert_eq!(bench.transmit(RECEIVER).unwrap().packet.seq, 1000);
}

#[test]
fn a_pause_that_runs_out_is_renewed_twice_in_its_time() {
    let mut bench = bench(&Params::default(), Some(Time::from_us(300)));
    fill(&mut bench, 19);
    bench.advance(Time::from_us(300));
    let pauses: Vec<Time> = bench.sent().iter().map(|sent| sent.time).collect();
    assert_eq!(pauses, [0, 150, 300].map(Time::from_us));
}

#[test]
fn a_nic_that_is_full_pauses_its_switch_and_resumes_it_when_half_of_that_is_left() {
    // A packet takes 85 us at 100 Mb/s: the host takes none before that.
    let builder = Builder::host(1).slow(Rate::from_mbps(100), 20_000, 5_000);
    let mut bench = builder.build(Pfc::new(&Params::default(), None, true));
    let flow = bench.flow(1, 0, 0);
    // Five packets are 5310 bytes, and two are 2124.
    (0..5).for_each(|_| bench.arrive(PortId(0), flow));
    assert_eq!(bench.frames(), [(PortId(0), Frame::Pause { class: CLASS })]);
    bench.advance(Time::from_us(2 * 85));
    assert_eq!(bench.frames(), []);
    bench.advance(Time::from_us(85));
    assert_eq!(bench.frames(), [(PortId(0), Frame::Resume { class: CLASS })]);
}

#[test]
fn a_watchdog_empties_a_queue_that_was_paused_for_long_and_ignores_pauses_for_a_while() {
    // The receiver pauses its switch once, and never takes it back.
    let stuck = |params: &Params| {
        let mut bench = bench(params, None);
        bench.frame(RECEIVER, Frame::Pause { class: CLASS });
        fill(&mut bench, 19);
        bench.advance(Time::from_us(199));
        assert_eq!(bench.view().queued(RECEIVER), 19 * 1062);
        bench.advance(Time::from_us(1));
        bench
    };
    let patient = stuck(&Params::default());
    assert_eq!(patient.counts().dropped_scheme, 0);
    let mut watched = stuck(&Params { watchdog: true, restoration: Time::from_us(20), ..Params::default() });
    assert_eq!((watched.counts().dropped_scheme, watched.node().drops), (19, 19));
    // What was dropped is gone from the books, too.
    let said: Vec<Frame> = watched.frames().into_iter().map(|(_, frame)| frame).collect();
    assert_eq!(said, [Frame::Pause { class: CLASS }, Frame::Resume { class: CLASS }]);
    // While it is ignored, packets get through; then it counts again, and later again not.
    fill(&mut watched, 2);
    assert!(watched.transmit(RECEIVER).is_some());
    watched.frame(RECEIVER, Frame::Pause { class: CLASS });
    watched.advance_to(Time::from_us(219));
    assert_eq!(watched.paused_classes(RECEIVER), []);
    watched.advance_to(Time::from_us(220));
    assert_eq!(watched.paused_classes(RECEIVER), [CLASS]);
    assert!(watched.transmit(RECEIVER).is_none());
    watched.advance_to(Time::from_us(420));
    assert_eq!((watched.counts().dropped_scheme, watched.node().watched[2].fired), (20, 2));
}

#[test]
fn a_renewed_pause_holds_and_a_lost_resume_does_not_hold_for_ever() {
    // Pauses shorter than the time a neighbour must wait are renewed: the outcome is the same.
    let forever = run(incast(), None);
    let renewed = run(incast(), Some(Time::from_us(10)));
    assert!(renewed.complete() && renewed.violations.is_empty());
    assert_eq!(forever.flows[0].received, renewed.flows[0].received);
    // With half of all frames lost, both flows still finish.
    let mut setup = incast();
    setup.graph.links[0].loss = 0.3;
    setup.graph.links[1].loss = 0.3;
    let scheme = Pfc::new(&Params::default(), Some(Time::from_us(50)), false);
    let outcome = crate::testing::run(setup, scheme);
    assert!(outcome.complete() && outcome.violations.is_empty());
}
