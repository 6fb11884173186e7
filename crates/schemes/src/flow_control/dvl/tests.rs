use super::*;
use engine::Rate;
use fabric::Setup;
use fabric::bench::{Bench, Builder};
use fabric::buffer::{ALPHA_ONE, Share};
use fabric::id::NodeId;
use fabric::setup::FlowSpec;
use fabric::topology::Kind;
use std::collections::HashMap;

const CLASS: ClassId = ClassId(0);

/// Three senders into one receiver over a switch with little room.
fn incast() -> Setup {
    let mut graph = Graph::default();
    (0..4).for_each(|i| _ = graph.add(Kind::Host, 0, format!("h{i}")));
    let switch = graph.add(Kind::Switch, 1, "s");
    (0..4).for_each(|h| graph.connect(NodeId(h), switch, Rate::from_gbps(100), Time::from_us(1)));
    let flows = (0..3).map(|i| FlowSpec::plain(i, i as u32, 3, 1_000_000, Time::ZERO)).collect();
    let mut setup = Setup::plain(graph, flows);
    (setup.switch.queues, setup.switch.groups) = (2, 2);
    setup.switch.pool.fill(Some(400_000));
    setup.switch.resume_gap = 3_000;
    setup.ports.iter_mut().for_each(|p| p.share = Share { alpha: ALPHA_ONE / 4, headroom: 40_000 });
    setup
}

fn scheme(enhanced: bool, setup: &Setup) -> Dvl {
    Dvl::new(&Params { enhanced, ..Params::default() }, &setup.graph, true)
}

#[test]
fn a_timer_is_read_back_from_its_number_and_no_two_share_one() {
    for classes in 1..=8 {
        let each = |class| {
            let groups = [PLAIN, CONGESTED].into_iter();
            let groups = groups.flat_map(move |group| [Timer::Renew(class, group), Timer::End(class, group)]);
            groups.chain([Timer::Look(class)])
        };
        let all = (0..classes).map(ClassId).flat_map(each).chain([Timer::Mail]);
        let mut numbers: Vec<u32> = all
            .map(|timer| {
                let number = timer.number(classes);
                assert_eq!(Timer::of(number, classes), timer);
                number
            })
            .collect();
        numbers.sort();
        assert_eq!(numbers, (0..Timer::count(classes)).collect::<Vec<u32>>());
    }
}

#[test]
fn congested_flows_are_kept_apart_in_switch_and_nics_and_everything_is_given_back() {
    for enhanced in [false, true] {
        let setup = incast();
        let scheme = scheme(enhanced, &setup);
        let outcome = crate::testing::run(setup, scheme);
        assert!(outcome.complete() && outcome.violations.is_empty(), "{:?}", outcome.violations);
        let counters: HashMap<&str, u64> = outcome.flow_control.iter().map(|c| (c.name, c.value)).collect();
        assert!(counters["flows_isolated"] >= 2 && counters["flows_isolated_at_hosts"] >= 2, "{counters:?}");
        assert!(counters["pause_frames_cfq"] > 0, "{counters:?}");
        assert_eq!(counters["pause_frames"], counters["resume_frames"]);
        assert_eq!(counters["cfq_allocations"], counters["cfq_deallocations"]);
        // Two of three are enough: the third has the other queue for itself.
        assert_eq!((counters["cfq_left"], counters["markings_left"], counters["cft_peak"]), (0, 0, 2));
    }
}

/// A switch with four hosts, and little room.
fn bench(params: &Params) -> Bench<Dvl> {
    let builder = Builder::switch(4, 0).memory(400_000, ALPHA_ONE / 4, 40_000);
    let builder = builder.layout(&params.layout(&Graph::default()).unwrap());
    builder.build_with(|setup| Dvl::new(params, &setup.graph, true))
}

const PORT: PortId = PortId(3);

#[test]
fn a_flow_whose_packet_finds_the_threshold_goes_on_in_the_second_queue_after_the_first_has_sent_what_came_before() {
    let mut bench = bench(&Params { threshold: Some(Bytes(5_000)), ..Params::default() });
    let (flow, other) = (bench.flow(0, 3, 0), bench.flow(1, 3, 0));
    bench.close(PORT);
    let queues = |bench: &mut Bench<Dvl>| [0, 1].map(|queue| bench.view().queue_bytes(PORT, QueueId(queue)));
    // The fifth packet finds 4248 bytes, the sixth 5310.
    (0..5).for_each(|_| bench.arrive(PortId(0), flow));
    assert_eq!(queues(&mut bench), [5310, 0]);
    (0..2).for_each(|_| bench.arrive(PortId(0), flow));
    assert_eq!(queues(&mut bench), [5310, 2124]);
    assert_eq!(bench.held_queues(PORT), [QueueId(1)]);
    // A flow that comes when the first queue is short is not kept apart.
    assert_eq!(bench.transmit(PORT).unwrap().packet.seq, 0);
    bench.arrive(PortId(1), other);
    assert_eq!(queues(&mut bench), [5310, 2124]);
    let sent: Vec<_> = std::iter::from_fn(|| bench.transmit(PORT)).map(|sent| sent.packet).collect();
    let own: Vec<(u64, u16)> = sent.iter().filter(|p| p.flow == flow.0).map(|p| (p.seq, p.tag)).collect();
    assert_eq!(own, [(1000, 0), (2000, 0), (3000, 0), (4000, 0), (5000, 1), (6000, 1)]);
    assert_eq!((sent.len(), bench.node().used), (7, 0), "nothing is left to be kept apart");
}

#[test]
fn a_nic_stops_the_flows_that_it_was_asked_to_keep_apart_and_no_others() {
    let params = Params::default();
    let builder = Builder::host(1).layout(&params.layout(&Graph::default()).unwrap());
    let mut bench = builder.build_with(|setup| scheme(false, setup));
    let (port, flow, other) = (PortId(0), bench.flow(0, 1, 0), bench.flow(0, 1, 1));
    bench.close(port);
    [flow, other].into_iter().for_each(|flow| bench.start(flow, 100_000));
    bench.frame(port, Frame::Ask { class: CLASS, flow, lane: 5 });
    bench.frame(port, Frame::Pause { class: CLASS, congested: true });
    assert_eq!(bench.held_flows(), [flow]);
    assert_eq!(bench.transmit(port).unwrap().packet.flow, other.0);
    bench.frame(port, Frame::Drop { class: CLASS, lane: 5 });
    assert_eq!(bench.held_flows(), []);
}

#[test]
fn a_lane_is_deallocated_when_the_last_that_asked_for_one_of_its_flows_no_longer_does() {
    let mut bench = bench(&Params { enhanced: false, ..Params::default() });
    let ask = |flow, lane| Frame::Ask { class: CLASS, flow: FlowId(flow), lane };
    let drop = |lane| Frame::Drop { class: CLASS, lane };
    let hear = |bench: &mut Bench<Dvl>, frames: &[Frame]| {
        frames.iter().for_each(|frame| bench.frame(PORT, frame.clone()));
        bench.at(|_, node, _| (node.used, node.lane(PORT, CLASS).asked))
    };
    assert_eq!(hear(&mut bench, &[ask(0, 5), ask(1, 6), ask(1, 5), ask(2, 7)]), (3, 3));
    // Nothing is left of lane 6, whose flow another asked for later.
    assert_eq!(hear(&mut bench, &[drop(6), drop(5)]), (3, 1));
    assert_eq!(hear(&mut bench, &[drop(7)]), (0, 0));
    assert!(!bench.at(|_, node, _| node.lane(PORT, CLASS).allocated));
    // A lost link takes back whatever was asked over it, by whichever lane, and the pauses with it.
    let pause = Frame::Pause { class: CLASS, congested: true };
    assert_eq!(hear(&mut bench, &[ask(0, 0), ask(1, 9), pause]), (2, 2));
    assert_eq!(bench.at(|_, node, _| node.lane(PORT, CLASS).stopped), [false, true]);
    bench.at(|dvl, node, at| dvl.link_lost(node, at, PORT));
    assert_eq!(bench.at(|_, node, _| (node.used, node.lane(PORT, CLASS).stopped)), (0, [false, false]));
}

#[test]
fn enhanced_dvl_keeps_a_flow_apart_for_a_while_after_it_was_asked_to() {
    let hold = Time::from_us(40);
    let mut bench = bench(&Params { enhanced: true, hold: Some(hold), ..Params::default() });
    bench.frame(PORT, Frame::Ask { class: CLASS, flow: FlowId(0), lane: 5 });
    bench.frame(PORT, Frame::Drop { class: CLASS, lane: 5 });
    let allocated = |bench: &mut Bench<Dvl>| bench.at(|_, node, _| node.lane(PORT, CLASS).allocated);
    bench.advance(hold - Time(1));
    assert!(allocated(&mut bench));
    bench.advance(Time(1));
    assert!(!allocated(&mut bench));
}

#[test]
fn a_pause_of_one_queue_stops_both_while_markings_are_in_them_with_enhanced_dvl_alone() {
    for enhanced in [false, true] {
        let mut bench = bench(&Params { enhanced, threshold: Some(Bytes(5_000)), ..Params::default() });
        let flow = bench.flow(0, 3, 0);
        bench.close(PORT);
        // Five packets in the first queue, and behind the marking one in the second.
        (0..6).for_each(|_| bench.arrive(PortId(0), flow));
        assert!(bench.at(|_, node, _| node.lane(PORT, CLASS).in_sync()));
        bench.frame(PORT, Frame::Pause { class: CLASS, congested: true });
        assert_eq!(bench.transmit(PORT).is_none(), enhanced, "the first queue was not paused itself");
        assert_eq!(bench.node().counts.both, enhanced as u64);
        bench.frame(PORT, Frame::Resume { class: CLASS, congested: true });
        // The markings meet when the first queue is empty; from then on a pause stops its own queue alone.
        while bench.at(|_, node, _| node.lane(PORT, CLASS).in_sync()) {
            assert!(bench.transmit(PORT).is_some());
        }
        bench.frame(PORT, Frame::Pause { class: CLASS, congested: true });
        let other = bench.flow(1, 3, 1);
        bench.arrive(PortId(1), other);
        assert_eq!(bench.transmit(PORT).map(|sent| sent.packet.flow), Some(other.0));
        assert_eq!(bench.node().counts.both, enhanced as u64);
    }
}

/// 802.1Qcz as its preset has it, with thresholds that a few packets reach.
fn qcz() -> Params {
    Params {
        threshold: Some(Bytes(5_000)),
        ingress: Some(Bytes(1)),
        tell: Some(Bytes(1)),
        hold: Some(Time::from_ns(100)),
        messages: Some(3),
        octets: Bytes(48),
        life: Some(Time::from_ms(1000)),
        ..Params::default()
    }
}

#[test]
fn a_neighbour_is_notified_of_a_flow_no_more_often_than_may_be() {
    let notified = |params: Params| {
        let mut bench = bench(&params);
        let flow = bench.flow(0, 3, 0);
        bench.close(PORT);
        for _ in 0..16 {
            bench.arrive(PortId(0), flow);
            bench.advance(Time::from_us(1));
        }
        bench.node().counts.notified
    };
    assert_eq!(notified(qcz()), 3);
    assert!(notified(Params { messages: None, ..qcz() }) > 3);
}

#[test]
fn a_neighbours_entry_outlives_those_that_the_switch_made_for_itself() {
    let life = Time::from_us(50);
    let mut bench = bench(&Params { life: Some(life), ..qcz() });
    let (flow, other) = (bench.flow(0, 3, 0), bench.flow(1, 3, 1));
    bench.close(PORT);
    (0..6).for_each(|_| bench.arrive(PortId(0), flow));
    bench.frame(PORT, Frame::Ask { class: CLASS, flow: other, lane: 5 });
    let counts = |bench: &mut Bench<Dvl>| (bench.node().counts.local, bench.node().counts.remote, bench.node().used);
    assert_eq!(counts(&mut bench), (1, 1, 2));
    while bench.transmit(PORT).is_some() {}
    assert_eq!(counts(&mut bench), (1, 1, 1), "what the switch made for itself is gone");
    // The last look before its end finds it there, the first one after does not.
    bench.advance(Time(life.0 / 2));
    bench.arrive(PortId(1), other);
    bench.transmit(PORT);
    assert_eq!(bench.node().used, 1);
    bench.advance(life);
    bench.arrive(PortId(1), other);
    bench.transmit(PORT);
    assert_eq!((bench.node().used, bench.node().counts.deallocations), (0, 1));
}

#[test]
fn a_frame_that_notifies_of_a_flow_carries_the_octets_of_its_packet() {
    let scheme = Dvl::new(&qcz(), &Graph::default(), true);
    assert_eq!((scheme.frame, scheme.message), (64, 112));
    assert_eq!(qcz().layout(&Graph::default()).unwrap().frame, 112);
    let wrong = [
        Params { messages: Some(0), ..Params::default() },
        Params { octets: Bytes(513), ..Params::default() },
        Params { life: Some(Time(1)), ..Params::default() },
    ];
    assert_eq!(wrong.map(|params| params.check().unwrap_err().parameter), ["messages", "octets", "life"]);
}

#[test]
fn of_several_changes_of_mind_a_neighbour_hears_the_last() {
    let mut bench = bench(&Params::default());
    let port = PortId(0);
    bench.close(port);
    bench.at(|scheme, node, at| {
        for _ in 0..3 {
            scheme.order(node, at, port, CLASS, PLAIN);
            scheme.say(node, at, port, (CLASS, PLAIN), false);
            scheme.order(node, at, port, CLASS, CONGESTED);
        }
    });
    let frames: Vec<Frame> = std::iter::from_fn(|| bench.transmit(port)).map(|sent| sent.message()).collect();
    let [plain, congested] = [false, true];
    assert_eq!(
        frames,
        [Frame::Resume { class: CLASS, congested: plain }, Frame::Pause { class: CLASS, congested }],
        "one frame for each group"
    );
    let counts = &bench.node().counts;
    assert_eq!((counts.pauses, counts.resumes), ([0, 1], [1, 0]), "what was not said is not counted");
}
