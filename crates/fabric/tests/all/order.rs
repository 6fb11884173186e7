//! Flows that wait for others, flows that leave, what is followed closely, and memory in fixed shares.

use engine::{Rate, Time};
use fabric::axes::flow_control::NoFlowControl;
use fabric::id::{ClassId, FlowId, NodeId};
use fabric::setup::{After, FlowSpec, Lines, SeriesSetup, Split, Task};
use fabric::topology::{Graph, Kind};
use fabric::{Outcome, Setup};
use proptest::prelude::*;

fn run(setup: Setup) -> Outcome {
    let outcome = crate::run(setup, NoFlowControl);
    assert_eq!(outcome.violations, Vec::<String>::new());
    outcome
}

fn star(hosts: u32) -> Graph {
    let mut graph = Graph::default();
    let hosts: Vec<NodeId> = (0..hosts).map(|i| graph.add(Kind::Host, 0, format!("h{i}"))).collect();
    let switch = graph.add(Kind::Switch, 1, "s");
    hosts.iter().for_each(|&h| graph.connect(h, switch, Rate::from_gbps(100), Time::from_us(1)));
    graph
}

fn flow(index: u16, src: u32, dst: u32, size: u64, start: Time) -> FlowSpec {
    FlowSpec::plain(index, src, dst, size, start)
}

const GAP: Time = Time::from_us(3);

#[test]
fn a_flow_waits_for_what_its_source_receives_and_for_what_it_has_sent() {
    // A ring: 0 to 1, then 1 to 2, then 2 to 0; and a second message of host 0 after its first is acknowledged.
    let flows = vec![
        flow(0, 0, 1, 5000, Time::ZERO),
        flow(1, 1, 2, 5000, Time::ZERO),
        flow(2, 2, 0, 5000, Time::ZERO),
        flow(3, 0, 2, 700, Time::ZERO),
    ];
    let after = |flow, first, gap| After { flow, first, gap };
    let mut setup = Setup::plain(star(3), flows);
    setup.after = vec![
        after(FlowId(1), FlowId(0), Time::ZERO),
        after(FlowId(2), FlowId(1), GAP),
        after(FlowId(3), FlowId(0), GAP),
    ];
    let outcome = run(setup);
    let f = &outcome.flows;
    assert!(outcome.complete());
    assert_eq!(f[1].start, f[0].received);
    assert_eq!(f[2].start, f[1].received + GAP);
    assert_eq!(f[3].start, f[0].acknowledged + GAP);
    // Alone in the network, each takes as long as the first; without a gap, the ACK of the first goes ahead.
    assert_eq!(f[1].received - f[1].start, f[0].received + Time(66 * 80));
    assert_eq!(f[2].received - f[2].start, f[0].received);
}

#[test]
fn tasks_lie_between_flows_and_take_their_time() {
    // Host 1 computes for 7 us when it has both messages, then for 2 us more, and sends; host 0 computes from the beginning on.
    let flows = vec![
        flow(0, 0, 1, 5000, Time::ZERO),
        flow(1, 2, 1, 9000, Time::ZERO),
        flow(2, 1, 0, 5000, Time::ZERO),
        flow(3, 0, 2, 5000, Time::ZERO),
    ];
    let task =
        |host, start, lasts| Task { host: NodeId(host), start: Time::from_us(start), lasts: Time::from_us(lasts) };
    let after = |flow, first| After { flow, first, gap: Time::ZERO };
    let mut setup = Setup::plain(star(3), flows);
    setup.tasks = vec![task(1, 0, 7), task(1, 0, 2), task(0, 3, 40), task(1, 0, 1)];
    setup.after = vec![
        after(Task::id(0), FlowId(0)),
        after(Task::id(0), FlowId(1)),
        after(Task::id(1), Task::id(0)),
        after(FlowId(2), Task::id(1)),
        after(FlowId(2), Task::id(3)),
        after(FlowId(3), Task::id(2)),
    ];
    let outcome = run(setup);
    let f = &outcome.flows;
    assert!(outcome.complete());
    assert_eq!(f[2].start, f[0].received.max(f[1].received) + Time::from_us(9));
    assert_eq!(f[3].start, Time::from_us(43));
}

#[test]
fn a_flow_that_waits_for_several_starts_after_the_last_and_not_before_its_time() {
    let late = Time::from_us(500);
    let flows =
        vec![flow(0, 0, 2, 100_000, Time::ZERO), flow(1, 1, 2, 1000, Time::ZERO), flow(2, 2, 0, 1000, Time::ZERO)];
    let both = vec![
        After { flow: FlowId(2), first: FlowId(0), gap: GAP },
        After { flow: FlowId(2), first: FlowId(1), gap: Time::ZERO },
    ];
    let mut setup = Setup::plain(star(3), flows.clone());
    setup.after = both.clone();
    let outcome = run(setup);
    assert_eq!(outcome.flows[2].start, outcome.flows[0].received + GAP);
    let mut setup = Setup::plain(star(3), flows);
    setup.flows[2].start = late;
    setup.after = both;
    assert_eq!(run(setup).flows[2].start, late);
}

#[test]
fn a_flow_that_waits_for_one_that_is_lost_never_starts() {
    let mut setup = Setup::plain(star(3), vec![flow(0, 0, 1, 500, Time::ZERO), flow(1, 1, 2, 500, Time::ZERO)]);
    setup.graph.links[0].loss = 1.0;
    setup.after = vec![After { flow: FlowId(1), first: FlowId(0), gap: GAP }];
    setup.measure.sample = Some(Time::from_us(1));
    let outcome = run(setup);
    assert_eq!(outcome.stall, Some(fabric::run::Stall::Lost));
    assert_eq!((outcome.flows[1].start, outcome.flows[1].received), (Time::MAX, Time::MAX));
}

#[test]
fn a_flow_whose_sender_leaves_ends_with_one_packet_more() {
    let mut setup = Setup::plain(star(2), vec![flow(0, 0, 1, 1_000_000_000, Time::ZERO)]);
    setup.flows[0].until = Time::from_us(100);
    // A receiver that acknowledges now and then must still see the end.
    setup.nic.acks = fabric::setup::AckPolicy::Every(64);
    let outcome = run(setup);
    let packet = 1062 * 80; // picoseconds
    let begun = Time::from_us(100).0.div_ceil(packet);
    assert!(outcome.complete());
    assert_eq!((outcome.flows[0].size, outcome.flows[0].delivered), ((begun + 1) * 1000, (begun + 1) * 1000));
    assert_eq!(outcome.flows[0].received.0, (begun + 1) * packet + packet + 2_000_000);
}

#[test]
fn a_flow_that_ended_before_its_sender_leaves_is_whole() {
    let mut setup = Setup::plain(star(2), vec![flow(0, 0, 1, 5000, Time::ZERO)]);
    setup.flows[0].until = Time::from_us(100);
    let outcome = run(setup);
    assert_eq!((outcome.flows[0].size, outcome.complete()), (5000, true));
}

#[test]
fn chosen_ports_and_flows_are_sampled_at_their_pace() {
    let flows = vec![flow(0, 0, 2, 1_000_000, Time::ZERO), flow(1, 1, 2, 1_000_000, Time::ZERO)];
    let mut setup = Setup::plain(star(3), flows);
    let map = fabric::routing::PortMap::new(&setup.graph);
    let port =
        (0..map.count() as u32).find(|&p| map.node[p as usize] == 3 && map.node[map.peer[p as usize] as usize] == 2);
    let port = port.unwrap();
    setup.measure.series = Some(SeriesSetup { every: Time::from_us(1), ports: vec![port], flows: vec![FlowId(1)] });
    let outcome = run(setup);
    let (s, packet) = (&outcome.series, 1062 * 80);
    assert_eq!(s.times[7], Time::from_us(7));
    assert_eq!((s.times.len(), s.times.len()), (s.ports.len(), s.flows.len()));
    // From when the first packets are in, the port sends one after the other and the queue grows at the same pace.
    let first = 1_000_000 + packet;
    let at = 50_000_000u64;
    let begun = (at - first).div_ceil(packet) * 1062;
    let arrived = (at - 1_000_000) / packet * 2 * 1062;
    // Of the packet on the wire, what is there already counts.
    let sent = (at - first) / 80;
    assert_eq!(s.ports[50].0, arrived - begun);
    assert!(s.ports[50].1.abs_diff(sent) <= 1, "{} B against {sent} B", s.ports[50].1);
    assert_eq!(s.flows[0], 0);
    assert_eq!(*s.flows.last().unwrap(), 1_000_000);
    assert!(s.flows.is_sorted());
}

#[test]
fn watermarks_see_what_happens_between_samples() {
    let mut setup = Setup::plain(star(3), vec![flow(0, 0, 2, 10_000, Time::ZERO), flow(1, 1, 2, 10_000, Time::ZERO)]);
    setup.measure.sample = Some(Time::from_us(4));
    let outcome = run(setup);
    let (used, marks) = (&outcome.samples.used[3], &outcome.samples.watermarks[3]);
    assert_eq!(outcome.samples.times.len(), marks.len());
    assert_eq!(*marks.iter().max().unwrap() as u64, outcome.peak[3]);
    assert!(used.iter().zip(marks).all(|(used, mark)| used <= mark));
    assert!(*used.iter().max().unwrap() < *marks.iter().max().unwrap());
}

#[test]
fn fixed_parts_leave_room_for_the_others() {
    // Hosts 0 and 1 overload host 2; with 4 egress queues each may hold a quarter.
    let flows = vec![flow(0, 0, 2, 1_000_000, Time::ZERO), flow(1, 1, 2, 1_000_000, Time::ZERO)];
    let mut setup = Setup::plain(star(4), flows);
    setup.switch.pool = vec![Some(40_000); 5];
    setup.switch.split = Split::Egress;
    setup.nic.timeout = Some(Time::from_us(100));
    let outcome = run(setup);
    assert!(outcome.counts.dropped_full > 0);
    assert_eq!(outcome.peak[4], 9 * 1062, "nine packets fit in a quarter");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Random messages, each of which may wait for an earlier one that ends where it starts: all end, and in order.
    #[test]
    fn whatever_waits_for_whatever_came_before_ends(
        picks in prop::collection::vec((0u32..5, 1u32..5, 1u64..20_000, 0u64..20, any::<prop::sample::Index>(), any::<bool>()), 1..30)
    ) {
        let mut flows: Vec<FlowSpec> = Vec::new();
        let (mut after, mut tasks) = (Vec::new(), Vec::new());
        let mut start = 0;
        for (number, (src, step, size, later, which, waits)) in (0..).zip(picks) {
            start += later;
            let mut src = src;
            if waits && number > 0 {
                let first = which.index(number as usize) as u32;
                src = if size % 2 == 0 { flows[first as usize].src.0 } else { flows[first as usize].dst.0 };
                let mut first = FlowId(first);
                // Some by way of one task, or two in a row.
                for _ in 0..size % 3 {
                    let task = Task::id(tasks.len());
                    tasks.push(Task { host: NodeId(src), start: Time::from_us(start), lasts: Time::from_ns(size % 4 * 100) });
                    after.push(After { flow: task, first, gap: Time::from_ns(50) });
                    first = task;
                }
                after.push(After { flow: FlowId(number), first, gap: Time::from_ns(size % 5 * 300) });
            }
            flows.push(flow(number as u16, src, (src + step) % 5, size, Time::from_us(start)));
        }
        let mut setup = Setup::plain(star(5), flows);
        setup.after = after.clone();
        setup.tasks = tasks;
        setup.measure.sample = Some(Time::from_us(2));
        let outcome = run(setup);
        prop_assert!(outcome.complete());
        for a in after.into_iter().filter(|a| Task::number(a.flow).or(Task::number(a.first)).is_none()) {
            let (first, then) = (&outcome.flows[a.first.index()], &outcome.flows[a.flow.index()]);
            let ended = if first.spec.dst == then.spec.src { first.received } else { first.acknowledged };
            prop_assert!(then.start >= ended + a.gap);
        }
    }
}

#[test]
fn classes_go_in_strict_order_and_short_messages_before_long_ones() {
    // Two long messages are under way when a short one of another sender comes.
    let run_with = |scheduler, queues, class| {
        let late = Time::from_us(20);
        let mut flows =
            vec![flow(0, 0, 3, 400_000, Time::ZERO), flow(1, 1, 3, 400_000, Time::ZERO), flow(2, 2, 3, 20_000, late)];
        (flows[0].class, flows[1].class) = (class, class);
        let mut setup = Setup::plain(star(4), flows);
        setup.classes = 2;
        setup.switch.queues = queues;
        (crate::run_queued(setup, NoFlowControl, scheduler).flows[2].received - late).0
    };
    let alone = 21 * 1062 * 80 + 2_000_000;
    let wait = 2 * 1062 * 80;
    assert!(run_with("priority", 1, ClassId(1)) <= alone + wait, "class 0 goes first");
    assert!(run_with("round-robin", 1, ClassId(0)) > 2 * alone, "one queue is first come, first served");
    // With enough queues that the three have one each, the shortest goes first.
    assert!(run_with("shortest", 64, ClassId(0)) <= alone + wait);
}

#[test]
fn messages_to_one_host_wait_for_one_another_where_a_nic_has_a_queue_for_each_destination() {
    // Three messages to host 1, and one to host 2 that takes turns with them.
    let flows = vec![
        flow(0, 0, 1, 50_000, Time::ZERO),
        flow(1, 0, 1, 3000, Time::ZERO),
        flow(2, 0, 2, 20_000, Time::ZERO),
        flow(3, 0, 1, 1000, Time::from_us(1)),
    ];
    let injected = |lines: Lines| -> Vec<Time> {
        let mut setup = Setup::plain(star(3), flows.clone());
        setup.nic.lines = lines;
        let outcome = run(setup);
        assert!(outcome.complete());
        outcome.flows.iter().map(|flow| flow.injected).collect()
    };
    let own = injected(Lines::Flow);
    assert!(own[1] < own[0] && own[3] < own[2] && own[2] < own[0]);
    let shared = injected(Lines::Destination);
    assert!(shared[2] < shared[0] && shared[0] < shared[1] && shared[1] < shared[3]);
    // The link is never idle, whatever the order.
    assert_eq!(own.iter().max().map(|time| time.0 / 100_000), shared.iter().max().map(|time| time.0 / 100_000));
}

proptest! {
    #[test]
    fn every_message_gets_its_turn_whatever_is_lost(
        messages in prop::collection::vec((0u32..4, 1u32..4, 1u64..30_000, 0u64..20), 1..30),
        loss in 0.0f64..0.05,
        leave in 0u64..20,
    ) {
        let mut flows: Vec<FlowSpec> = messages
            .iter()
            .map(|&(src, step, size, start)| flow(0, src, (src + step) % 4, size, Time::from_us(start)))
            .collect();
        flows.sort_by_key(|flow| flow.start);
        // Some leave before they had their turn.
        flows.iter_mut().step_by(5).for_each(|flow| flow.until = flow.start + Time::from_us(leave));
        let mut setup = Setup::plain(star(4), flows);
        setup.nic.lines = Lines::Destination;
        setup.nic.timeout = Some(Time::from_us(100));
        setup.graph.links.iter_mut().for_each(|link| link.loss = loss);
        let outcome = run(setup);
        prop_assert!(outcome.complete(), "{:?}", outcome.stall);
    }
}
