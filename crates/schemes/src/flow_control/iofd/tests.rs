use super::*;
use engine::Rate;
use fabric::bench::{Bench, Builder};
use fabric::buffer::{ALPHA_ONE, Share};
use fabric::id::NodeId;
use fabric::routing::Routing;
use fabric::setup::FlowSpec;
use proptest::prelude::*;
use std::collections::{BTreeSet, HashMap};

const RATE: Rate = Rate::from_gbps(100);

fn leaf_spine(leaves: u32, hosts: u32, spines: u32, mut delay: impl FnMut() -> u64) -> Graph {
    let mut g = Graph::default();
    (0..leaves * hosts).for_each(|i| _ = g.add(Kind::Host, 0, format!("h{i}")));
    (0..leaves).for_each(|i| _ = g.add(Kind::Switch, 1, format!("leaf{i}")));
    (0..spines).for_each(|i| _ = g.add(Kind::Switch, 2, format!("spine{i}")));
    let first = leaves * hosts;
    (0..first).for_each(|i| g.connect(NodeId(i), NodeId(first + i / hosts), RATE, Time::from_ns(delay())));
    for leaf in 0..leaves {
        (0..spines)
            .for_each(|s| g.connect(NodeId(first + leaf), NodeId(first + leaves + s), RATE, Time::from_ns(delay())));
    }
    g
}

/// Three tiers: `pods` pods of `half` edge and `half` aggregation switches, and `half` cores for each of these.
fn fat_tree(pods: u32, half: u32, hosts: u32) -> Graph {
    let mut g = Graph::default();
    let count = pods * half * hosts;
    (0..count).for_each(|i| _ = g.add(Kind::Host, 0, format!("h{i}")));
    (0..pods * half).for_each(|i| _ = g.add(Kind::Switch, 1, format!("edge{i}")));
    (0..pods * half).for_each(|i| _ = g.add(Kind::Switch, 2, format!("agg{i}")));
    (0..half * half).for_each(|i| _ = g.add(Kind::Switch, 3, format!("core{i}")));
    let (edge, agg, core) = (count, count + pods * half, count + 2 * pods * half);
    let delay = Time::from_us(1);
    (0..count).for_each(|i| g.connect(NodeId(i), NodeId(edge + i / hosts), RATE, delay));
    for pod in 0..pods {
        for a in 0..half {
            (0..half).for_each(|e| g.connect(NodeId(edge + pod * half + e), NodeId(agg + pod * half + a), RATE, delay));
            (0..half).for_each(|c| g.connect(NodeId(agg + pod * half + a), NodeId(core + a * half + c), RATE, delay));
        }
    }
    g
}

/// A run with room for what the longest of the links above can have in flight.
fn setup(graph: Graph, flows: Vec<FlowSpec>, params: &Params) -> Setup {
    let mut setup = Setup::plain(graph, flows);
    setup.classes = params.channels();
    setup.switch.queues = 1 + params.pens as u32;
    setup.switch.pool.fill(Some(2_000_000));
    setup.switch.resume_gap = 3_000;
    setup.ports.iter_mut().for_each(|p| p.share = Share { alpha: ALPHA_ONE / 8, headroom: 300_000 });
    setup
}

fn run(setup: Setup, params: &Params, lossless: bool) -> Outcome {
    let pause = (!lossless).then_some(Time::from_us(100));
    let upper = Iofd::new(params, &setup);
    let lower = Pfc::new(&pfc::Params::default(), pause, lossless);
    crate::testing::run(setup, Over { upper, lower })
}

fn counter(outcome: &Outcome, name: &str) -> u64 {
    outcome.flow_control.iter().find(|counter| counter.name == name).map(|counter| counter.value).expect("counted")
}

/// So eager that flows change paths all the time.
fn eager(congested: u64, clear: u64) -> Params {
    Params { congested: Some(Bytes(congested)), clear: Some(Bytes(clear)), ..Params::default() }
}

#[derive(Clone, Debug)]
struct Case {
    leaves: u32,
    hosts: u32,
    spines: u32,
    delays: Vec<u64>,
    flows: Vec<(u32, u32, u64, u64)>,
    params: Params,
    tall: bool,
    loss: Vec<(u32, f64)>,
}

impl Case {
    fn setup(&self) -> Setup {
        let mut at = 0;
        let mut graph = match self.tall {
            false => leaf_spine(self.leaves, self.hosts, self.spines, || {
                at += 1;
                self.delays[at % self.delays.len()]
            }),
            true => fat_tree(self.leaves, 2, self.hosts),
        };
        let links = graph.links.len();
        for (link, loss) in &self.loss {
            graph.links[*link as usize % links].loss = *loss;
        }
        let hosts = graph.hosts().count() as u32;
        let flows = (0..).zip(&self.flows).map(|(i, &(src, dst, size, start))| {
            let src = src % hosts;
            FlowSpec::plain(i, src, (src + 1 + dst % (hosts - 1)) % hosts, size, Time::from_ns(start))
        });
        let mut flows: Vec<_> = flows.collect();
        flows.sort_by_key(|flow| flow.start);
        let mut setup = setup(graph, flows, &self.params);
        if !self.loss.is_empty() {
            setup.nic.timeout = Some(Time::from_ms(1));
        }
        setup
    }
}

fn case(loss: bool) -> impl Strategy<Value = Case> {
    let flow = (any::<u32>(), any::<u32>(), prop_oneof![1u64..5_000, 1u64..400_000], 0u64..20_000);
    let size = (2u32..=4, 1u32..=4, 2u32..=4);
    let delays = prop::collection::vec(prop_oneof![50u64..500, 50u64..10_000], 1..12);
    let limits =
        (0u64..30_000, 0u64..30_000, 1u8..=3, prop_oneof![Just(1024u32), 0u32..6], prop_oneof![Just(256u32), 0u32..6]);
    let patience = prop_oneof![Just(200_000u64), 100u64..20_000];
    let lost = prop::collection::vec((any::<u32>(), 0.001f64..0.05), if loss { 1..4 } else { 0..1 });
    (
        size,
        delays,
        prop::collection::vec(flow, 1..60),
        limits,
        (1u8..=4, patience, 0u32..=3, any::<bool>()),
        any::<bool>(),
        lost,
    )
        .prop_map(
            |(
                (leaves, hosts, spines),
                delays,
                flows,
                (a, b, deflections, table, asks),
                (pens, patience, detours, first),
                tall,
                loss,
            )| {
                let patience = Time::from_ns(patience);
                let asking = if first { Asking::First } else { Asking::Last };
                let limits = Params {
                    deflections,
                    flows: table,
                    asks,
                    pens,
                    patience,
                    detours,
                    asking,
                    ..eager(a.max(b), a.min(b))
                };
                Case { leaves, hosts, spines, delays, flows, params: limits, tall, loss }
            },
        )
}

#[test]
fn under_any_load_and_delays_order_holds_nothing_is_lost_and_every_flow_ends() {
    let (mut deflected, mut moved, mut late) = (0, 0, 0);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 200,
        ..ProptestConfig::with_source_file(file!())
    });
    let tally = std::cell::RefCell::new((&mut deflected, &mut moved, &mut late));
    let result = runner.run(&case(false), |case| {
        let outcome = run(case.setup(), &case.params, true);
        prop_assert_eq!(&outcome.violations, &Vec::<String>::new());
        prop_assert!(outcome.complete(), "{:?}", outcome.stall);
        let c = &outcome.counts;
        prop_assert_eq!((c.overtaken, c.out_of_order, c.dropped_full, c.retransmitted.0), (0, 0, 0, 0));
        prop_assert!(counter(&outcome, "deflections_of_a_packet_max") <= case.params.deflections as u64);
        prop_assert!(counter(&outcome, "table_peak") <= case.params.flows as u64);
        let mut tally = tally.borrow_mut();
        *tally.0 += counter(&outcome, "deflections");
        *tally.1 += counter(&outcome, "flows_moved");
        *tally.2 += counter(&outcome, "answers_late");
        Ok(())
    });
    if let Err(failure) = result {
        panic!("{failure}");
    }
    assert!(
        deflected > 1000 && moved > 100 && late > 10,
        "{deflected} deflections, {moved} moves, {late} late answers"
    );
}

#[test]
fn packets_and_answers_that_get_lost_cost_no_order_and_no_flow() {
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 100,
        ..ProptestConfig::with_source_file(file!())
    });
    let moved = std::cell::Cell::new(0);
    let result = runner.run(&case(true), |case| {
        let outcome = run(case.setup(), &case.params, false);
        prop_assert_eq!(&outcome.violations, &Vec::<String>::new());
        prop_assert!(outcome.complete(), "{:?}", outcome.stall);
        prop_assert_eq!(outcome.counts.overtaken, 0);
        moved.set(moved.get() + counter(&outcome, "flows_moved"));
        Ok(())
    });
    if let Err(failure) = result {
        panic!("{failure}");
    }
    assert!(moved.get() > 50, "{}", moved.get());
}

#[test]
fn two_flows_on_one_uplink_part_and_both_go_at_full_speed() {
    // Among flows from two hosts, two that hash onto the same of two spines.
    let alone = |name: &str, deflections: u8| {
        let graph = leaf_spine(2, 2, 2, || 500);
        let map = PortMap::new(&graph);
        let routing = Routing::new(&graph, &map, &vec![true; graph.links.len()]);
        let spine = |flow: &FlowSpec| routing.next_hops(4, flow.dst.0)[flow.tuple.hash(4) as usize % 2];
        let first = FlowSpec::plain(0, 0, 2, 3_000_000, Time::ZERO);
        let second = (1..).map(|i| FlowSpec::plain(i, 1, 3, 3_000_000, Time::from_us(20)));
        let second = second.clone().find(|flow| spine(flow) == spine(&first)).expect("half of them do");
        let params = Params { deflections, ..Params::default() };
        let outcome = run(setup(graph, vec![first, second], &params), &params, true);
        assert!(outcome.complete() && outcome.violations.is_empty(), "{name}");
        assert_eq!(outcome.counts.overtaken, 0);
        assert!(counter(&outcome, "flows_moved") <= 2, "{name}: a flow alone on its path stays there");
        (outcome.end, counter(&outcome, "flows_deflected"))
    };
    let (together, none) = alone("without", 0);
    let (apart, some) = alone("with", 3);
    assert_eq!(none, 0);
    assert!(some >= 1);
    // 3 MB at 100 Gb/s take 255 us with headers, twice that on a shared link.
    assert!(together > Time::from_us(500) && apart < Time::from_us(330), "{together} and {apart}");
}

/// Whether waits of links for links can close a cycle: by (link direction as its egress port, class), all that a packet that came
/// over one may need next, for every destination. `rises` says what class a packet has after a hop.
fn has_cycle(graph: &Graph, channels: u8, rises: impl Fn(u8, bool, bool) -> Option<u8>) -> bool {
    let map = PortMap::new(graph);
    let routing = Routing::new(graph, &map, &vec![true; graph.links.len()]);
    let switch = |node: u32| graph.nodes[node as usize].kind == Kind::Switch;
    let mut needs: HashMap<(u32, u8), BTreeSet<(u32, u8)>> = HashMap::new();
    for dst in graph.hosts() {
        // Everything that packets to this host may hold, from every other host on.
        let mut todo: Vec<(u32, u8)> = graph.hosts().filter(|&h| h != dst).map(|h| (map.of(h.0).start, 0)).collect();
        let mut seen: BTreeSet<(u32, u8)> = todo.iter().copied().collect();
        while let Some((port, class)) = todo.pop() {
            let node = map.node[map.peer[port as usize] as usize];
            if !switch(node) {
                continue;
            }
            let hops = routing.next_hops(node, dst.0);
            let last = hops.iter().any(|&hop| map.node[map.peer[hop as usize] as usize] == dst.0);
            for next in map.of(node).filter(|&next| next != map.peer[port as usize]) {
                let far = map.node[map.peer[next as usize] as usize];
                let shortest = hops.contains(&next);
                if !switch(far) && far != dst.0 {
                    continue;
                }
                // Any shortest path may be the one that routing has, and any may be a deflection.
                for deflected in [false, true] {
                    let impossible = if deflected { last } else { !shortest };
                    if impossible {
                        continue;
                    }
                    let Some(after) = rises(class, deflected, shortest).filter(|after| *after < channels) else {
                        continue;
                    };
                    needs.entry((port, class)).or_default().insert((next, after));
                    if seen.insert((next, after)) {
                        todo.push((next, after));
                    }
                }
            }
        }
    }
    // Depth-first, with what is on the path marked.
    let mut state: HashMap<(u32, u8), bool> = HashMap::new();
    for &root in needs.keys() {
        let mut path = vec![(root, needs[&root].iter().copied().collect::<Vec<_>>())];
        if state.contains_key(&root) {
            continue;
        }
        state.insert(root, true);
        while let Some((at, next)) = path.last_mut() {
            match next.pop() {
                Some(to) => match state.get(&to) {
                    Some(true) => return true,
                    Some(false) => {}
                    None => {
                        state.insert(to, true);
                        path.push((to, needs.get(&to).into_iter().flatten().copied().collect()));
                    }
                },
                None => {
                    state.insert(*at, false);
                    path.pop();
                }
            }
        }
    }
    false
}

#[test]
fn with_classes_that_rise_no_cycle_of_waits_can_form_and_without_it_can() {
    let channels = Params::default().channels();
    let ours = |channel: u8, deflected: bool, shortest: bool| match (deflected, shortest) {
        (false, _) => Some(onward(channel)),
        _ if deflections(channel) >= 3 => None,
        (true, true) => Some(onward(channel) + 2),
        (true, false) => Some(onward(channel) + 1),
    };
    // One class for each number of deflections, the hop of the deflection included, is not enough.
    let plain = |class: u8, deflected: bool, _: bool| (!deflected || class < 3).then_some(class + deflected as u8);
    let flat = |class: u8, _: bool, _: bool| Some(class);
    for graph in [leaf_spine(3, 2, 3, || 500), leaf_spine(4, 1, 2, || 500), fat_tree(3, 2, 1)] {
        assert!(!has_cycle(&graph, channels, ours));
        assert!(has_cycle(&graph, 4, plain));
        assert!(has_cycle(&graph, 1, flat));
    }
}

#[test]
fn values_that_cannot_be_are_refused() {
    let wrong = [
        Params { deflections: 4, ..Params::default() },
        Params { pens: 0, ..Params::default() },
        Params { asks: u32::MAX, ..Params::default() },
        Params { patience: Time::ZERO, ..Params::default() },
        Params { answer: Bytes(0), ..Params::default() },
    ];
    wrong.iter().for_each(|params| assert!(params.check().is_err(), "{params:?}"));
    assert_eq!(Params::default().check(), Ok(()));
}

/// Acts at the first leaf of a small fabric, which has two hosts and two spines, with one pen for every port and class.
fn at_leaf(act: impl FnOnce(&Iofd, &mut Node, &mut NodeView<'_>)) {
    let params = Params::default();
    let flows = (0..2).map(|flow| FlowSpec::plain(flow, 0, 2, 1, Time::ZERO)).collect();
    let setup = setup(leaf_spine(2, 2, 2, || 500), flows, &params);
    let scheme = Iofd::new(&params, &setup);
    Builder::of(setup, NodeId(4)).build(scheme).at(act);
}

/// A leaf with two hosts and two spines, behind both of which is host 4.
fn leaf(asking: Asking) -> Bench<Iofd> {
    let params = Params { asking, ..Params::default() };
    let layout = params.layout(&Graph::default()).unwrap();
    Builder::switch(2, 2).layout(&layout).build_with(|setup| Iofd::new(&params, setup))
}

const SPINES: [PortId; 2] = [PortId(2), PortId(3)];

/// A leaf whose spines' ports are closed, two flows from host 0 to host 4 that routing has on the same path, and the two ports: theirs
/// and the other.
fn crowded(asking: Asking) -> (Bench<Iofd>, [FlowId; 2], [PortId; 2]) {
    // Of three flows, two have the same of two paths.
    let routed = |nth: usize| {
        let mut bench = leaf(asking);
        let flow = bench.flow(0, 4, nth);
        bench.arrive(PortId(0), flow);
        bench.data()[0].port
    };
    let ports = [0, 1, 2].map(routed);
    let pairs = [(0, 1), (0, 2), (1, 2)];
    let (a, b) = pairs.into_iter().find(|&(a, b)| ports[a] == ports[b]).expect("two of three");
    let mut bench = leaf(asking);
    SPINES.into_iter().for_each(|port| bench.close(port));
    let flows = [a, b].map(|nth| bench.flow(0, 4, nth));
    let other = if ports[a] == SPINES[0] { SPINES[1] } else { SPINES[0] };
    (bench, flows, [ports[a], other])
}

#[test]
fn a_flow_keeps_its_path_without_congestion_and_a_new_one_goes_around_a_congested_port() {
    // A port is congested with more than 100 000 bytes of others: 94 packets of 1062 bytes are not enough, 95 are.
    for (packets, goes_around) in [(94, false), (95, true)] {
        let (mut bench, [first, second], ports) = crowded(Asking::First);
        (0..packets).for_each(|_| bench.arrive(PortId(0), first));
        assert_eq!(ports.map(|port| bench.view().queued(port)), [packets * 1062, 0], "its own packets do not count");
        bench.arrive(PortId(0), second);
        let more = if goes_around { [0, 1] } else { [1, 0] };
        assert_eq!(ports.map(|port| bench.view().queued(port)), [(packets + more[0]) * 1062, more[1] * 1062]);
        assert_eq!(bench.node().tally.flows, goes_around as u64);
    }
}

#[test]
fn a_flow_that_is_under_way_waits_in_a_pen_until_its_last_packet_on_the_old_path_was_heard_of() {
    let (mut bench, [first, second], [old, new]) = crowded(Asking::Last);
    bench.arrive(PortId(0), second);
    (0..95).for_each(|_| bench.arrive(PortId(0), first));
    // The packet that finds the port congested takes the old path and asks; what comes after it waits.
    bench.advance(Time::from_us(1));
    let asked = bench.now();
    bench.arrive(PortId(0), second);
    bench.advance(Time::from_us(1));
    (0..3).for_each(|_| bench.arrive(PortId(0), second));
    assert_eq!((bench.view().queued(old), bench.view().queued(new)), ((97 + 3) * 1062, 0));
    assert_eq!((bench.node().tally.asks, bench.node().tally.held), (1, 3));
    bench.frame(old, Answer { flow: second, stamp: asked });
    assert_eq!((bench.view().queued(old), bench.view().queued(new)), (97 * 1062, 3 * 1062));
    let moved: Vec<u64> = std::iter::from_fn(|| bench.transmit(new)).map(|sent| sent.packet.seq).collect();
    assert_eq!(moved, [2000, 3000, 4000]);
    let reactions = &bench.node().tally.reactions;
    assert_eq!((reactions.count, reactions.total, reactions.by_us[1]), (1, Time::from_us(1), 1));
}

#[test]
fn a_flow_asks_ahead_of_the_congested_queue_and_takes_along_what_waits_there() {
    let (mut bench, [first, second], [old, new]) = crowded(Asking::First);
    (0..50).for_each(|_| bench.arrive(PortId(0), first));
    bench.advance(Time::from_us(1));
    let asked = bench.now();
    bench.arrive(PortId(0), second);
    bench.advance(Time::from_us(1));
    (0..2).for_each(|_| bench.arrive(PortId(0), second));
    (0..50).for_each(|_| bench.arrive(PortId(0), first));
    // This one finds the port congested.
    bench.arrive(PortId(0), second);
    bench.arrive(PortId(0), second);
    assert_eq!((bench.node().tally.asks, bench.node().tally.held), (1, 2));
    // The flow's first is now ahead of fifty that came before it, and none of its others is in the queue.
    let sent: Vec<_> = std::iter::from_fn(|| bench.transmit(old)).map(|sent| sent.packet).collect();
    assert_eq!((sent.len(), FlowId(sent[0].flow), sent[0].seq), (101, second, 0));
    assert!(sent[0].flags & flag::ASKS != 0 && sent[1..].iter().all(|packet| FlowId(packet.flow) == first));
    bench.frame(old, Answer { flow: second, stamp: asked });
    let moved: Vec<u64> = std::iter::from_fn(|| bench.transmit(new)).map(|sent| sent.packet.seq).collect();
    assert_eq!(moved, [1000, 2000, 3000, 4000]);
}

#[test]
fn a_flow_with_nothing_in_the_congested_queue_asks_ahead_of_it_all_the_same() {
    let (mut bench, [first, second], [old, _]) = crowded(Asking::First);
    bench.arrive(PortId(0), second);
    assert_eq!(bench.transmit(old).map(|sent| sent.packet.seq), Some(0));
    (0..95).for_each(|_| bench.arrive(PortId(0), first));
    bench.arrive(PortId(0), second);
    let sent = bench.transmit(old).expect("the port is open").packet;
    assert_eq!((FlowId(sent.flow), sent.seq, sent.flags & flag::ASKS != 0), (second, 1000, true));
}

#[test]
fn a_pen_has_one_flow_at_a_time_and_is_not_the_lane_of_its_class() {
    at_leaf(|scheme, node, at| {
        let (uplink, class) = (PortId(2), ClassId(2));
        let pen = scheme.take_pen(node, at, uplink, class, (FlowId(0), 0)).expect("all pens are free");
        assert_eq!((scheme.lane(class), scheme.pen_queue(pen)), (QueueId(4), QueueId(5)));
        assert!(at.is_held(uplink, scheme.pen_queue(pen)) && !at.is_held(uplink, scheme.lane(class)));
        assert_eq!(scheme.take_pen(node, at, uplink, class, (FlowId(1), 0)), None);
        assert_eq!(node.tally.pens_full, 1);
        assert!(scheme.take_pen(node, at, PortId(3), class, (FlowId(1), 0)).is_some(), "other ports have their own");
        node.free_pen(at, uplink, pen);
        assert_eq!(scheme.take_pen(node, at, uplink, class, (FlowId(1), 0)), Some(pen));
    });
}

#[test]
fn a_timer_of_a_wait_that_is_over_does_not_end_the_wait_of_the_next_flow_in_the_pen() {
    at_leaf(|scheme, node, at| {
        let hop = Hop { port: PortId(2), channel: 0 };
        let wait = |node: &mut Node, at: &mut NodeView<'_>, flow: u32, patience: Time| {
            let key = (FlowId(flow), 0);
            let pen = scheme.take_pen(node, at, hop.port, ClassId(0), key).expect("it is free");
            let wait = Wait { stamp: Time(flow as u64), pen, urgency: Urgency::Shortest, since: at.now() };
            node.flows.insert(key, Entry { hop, chosen: hop.port, last: wait.stamp, seen: at.now(), wait: Some(wait) });
            node.deadlines.set(at, hop.port, pen.0, Some(patience));
            pen
        };
        // The first flow would be out of patience by now, but its answer has come and the pen is another flow's.
        let pen = wait(node, at, 0, Time::ZERO);
        scheme.answered(node, at, (FlowId(0), 0), Time(0));
        assert_eq!((node.tally.stays, *node.pen(hop.port, pen)), (1, None));
        assert_eq!(wait(node, at, 1, Time::from_us(200)), pen);
        scheme.timer(node, at, hop.port, pen.0);
        assert_eq!((node.tally.late, *node.pen(hop.port, pen)), (0, Some((FlowId(1), 0))));
    });
}

#[test]
fn an_answer_is_passed_back_once_to_whoever_asked() {
    at_leaf(|scheme, node, at| {
        let packet = Packet { flow: 7, stamp: Time(9), ..Packet::BLANK };
        let ask = Ask { back: Some(PortId(3)), own: None, at: at.now() };
        assert!(scheme.note(node, &packet, ask));
        let answer = Answer { flow: FlowId(7), stamp: Time(9) };
        let other = Answer { stamp: Time(8), ..answer.clone() };
        scheme.frame(node, at, PortId(2), other);
        assert_eq!((node.asked, at.queued(PortId(3))), (1, 0));
        (0..2).for_each(|_| scheme.frame(node, at, PortId(2), answer.clone()));
        assert_eq!((node.asked, at.queued(PortId(3))), (0, scheme.params.answer.0));
    });
}
