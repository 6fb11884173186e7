use super::*;
use crate::queueing::drr;
use crate::{congestion_control, testing, transport};
use engine::{Rate, Time};
use fabric::Network;
use fabric::axes::Chosen;
use fabric::bench::{Bench, Builder};
use fabric::setup::FlowSpec;
use fabric::topology::{Shape, bcube::Bcube, star::Star};
use proptest::prelude::*;

const FOUR: Layout = Layout { n: 4 };

#[test]
fn flows_over_the_link_from_switch_23_to_host_15_have_the_queues_of_the_slides() {
    // Switch 23 is on level 1. Q1 to Q3 are transit, Q4 is the last hop.
    let graph = Bcube::default().build().unwrap();
    assert_eq!(graph.ports()[23].iter().map(|&(_, host)| host.0).collect::<Vec<_>>(), [3, 7, 11, 15]);
    assert_eq!(Layout::of(&graph), Ok(FOUR));
    for (dst, queue) in [(12, 1), (13, 2), (14, 3), (15, 4)] {
        assert_eq!(FOUR.switch_queue(1, 15, dst) + 1, queue, "11 -> {dst}");
    }
}

#[test]
fn flows_through_host_15_have_the_queues_of_the_slides() {
    // By its port to switch 19, on level 0. Q1 to Q3: local over four links; Q4 to Q6: local over two; Q7: remote.
    let flows = [(15, 0, 1), (15, 1, 2), (15, 2, 3), (15, 12, 4), (15, 13, 5), (15, 14, 6), (11, 12, 7)];
    for (src, dst, queue) in flows {
        assert_eq!(FOUR.host_queue(0, 15, src, dst) + 1, queue, "{src} -> {dst}");
    }
}

#[test]
fn queues_tell_apart_what_leaves_by_different_ports_after_the_next_hop() {
    for n in 2..6 {
        let layout = Layout { n };
        for (level, host) in (0..2).flat_map(|level| (0..n * n).map(move |host| (level, host))) {
            // What a switch sends to the host: itself, and those it meets on its other level.
            let others = (0..n * n).filter(|&dst| dst != host && layout.meet(1 - level, host, dst));
            let mut queues: Vec<u32> = others.map(|dst| layout.switch_queue(level, host, dst)).collect();
            queues.sort_unstable();
            assert_eq!(queues, (0..n - 1).collect::<Vec<_>>());
            assert_eq!(layout.switch_queue(level, host, host), n - 1);
            let own = layout.digit(host, level);
            (0..n - 1).for_each(|place| assert_eq!(layout.rank(layout.unrank(place, own), own), place));
        }
    }
}

#[test]
fn only_bcubes_of_two_levels_have_a_layout() {
    let build = |n, k| Bcube { n, k, ..Bcube::default() }.build().unwrap();
    for n in [2, 3, 4, 8] {
        assert_eq!(Layout::of(&build(n, 1)), Ok(Layout { n }));
    }
    for (n, k) in [(4, 0), (4, 2), (2, 2), (4, 3), (2, 3)] {
        let refused = Layout::of(&build(n, k)).unwrap_err();
        assert!(refused.to_string().contains("BCube(n, 1)"), "{refused}");
    }
    assert!(Layout::of(&Star::default().build().unwrap()).is_err());
}

fn setup(flows: &[(u32, u32, u64)]) -> Setup {
    let graph = Bcube::default().build().unwrap();
    let flows = (0..).zip(flows).map(|(i, &(src, dst, size))| FlowSpec::plain(i, src, dst, size, Time::ZERO));
    let mut setup = Setup::plain(graph, flows.collect());
    setup.switch.queues = FOUR.n;
    setup.switch.quantum = 1062;
    setup.measure.sample = Some(Time::from_us(10));
    setup
}

/// The fabric of a setup with deficit round robin.
fn fabric(setup: &Setup) -> Fabric<'_> {
    fabric_of(setup)
}

fn scheme(setup: &Setup, params: &Params) -> Portfc {
    Portfc::new(params, &fabric(setup), true)
}

/// A network at line rate with deficit round robin, for which the thresholds are made.
fn network(setup: Setup, params: &Params) -> Network<Portfc> {
    let scheme = scheme(&setup, params);
    let (control, transport) = (congestion_control::None::default(), transport::go_back_n::GoBackN::default());
    testing::chosen(&control, &transport, |chosen| {
        Network::new(setup, scheme, &Chosen { queueing: &drr::Params::default(), ..*chosen })
    })
}

fn run(setup: Setup, params: &Params) -> Outcome {
    network(setup, params).run(|_, _| true)
}

/// A node of the same fabric alone.
fn bench(node: u32, flows: &[(u32, u32, u64)], params: &Params) -> Bench<Portfc> {
    let builder = Builder::of(setup(flows), NodeId(node)).queueing(&drr::Params {});
    builder.build_with(|setup| scheme(setup, params))
}

fn counter(outcome: &Outcome, name: &str) -> u64 {
    outcome.flow_control.iter().find(|counter| counter.name == name).unwrap().value
}

#[test]
fn a_layout_has_as_many_queues_as_a_switch_has_ports_and_is_refused_where_links_fail() {
    let params = Params::default();
    let mut graph = Bcube::default().build().unwrap();
    let layout = params.layout(&graph).unwrap();
    assert_eq!((layout.queues, layout.express, layout.headroom, layout.frame), (Some(4), None, None, 64));
    graph.links[0].loss = 0.1;
    assert_eq!(params.layout(&graph).unwrap_err().parameter, "link");
    assert_eq!(params.layout(&Star::default().build().unwrap()).unwrap_err().parameter, "topology");
}

#[test]
fn a_congested_last_hop_stops_senders_two_switches_away() {
    // Hosts 3, 7 and 11 send to 15 over switch 23, and 0 and 1 through others.
    let outcome =
        run(setup(&[(3, 15, 500_000), (7, 15, 500_000), (0, 15, 500_000), (1, 15, 500_000)]), &Params::default());
    assert!(outcome.complete() && outcome.violations.is_empty(), "{:?} {:?}", outcome.stall, outcome.violations);
    assert_eq!(outcome.counts.dropped_full, 0);
    assert!(counter(&outcome, "last_hop_congested") > 0 && counter(&outcome, "frames_passed_on") > 0);
    assert_eq!(outcome.counts.pauses, 0, "no class is paused");
}

#[test]
fn a_flow_beside_an_incast_keeps_its_link() {
    // Host 15 sends to 12, and to 13 with all other hosts of switch 19.
    let outcome = run(
        setup(&[(15, 13, 2_000_000), (14, 13, 2_000_000), (12, 13, 2_000_000), (15, 12, 2_000_000)]),
        &Params::default(),
    );
    assert!(outcome.complete() && outcome.violations.is_empty());
    let line = Time(2_000_000 * 80 * 1062 / 1000);
    let victim = outcome.flows[3].received;
    // Three into one: the incast's flow of host 15 takes a third of its link at most.
    assert!(victim < Time(line.0 * 8 / 5), "{victim} against {line}");
}

#[test]
fn a_queue_that_could_never_empty_is_named_by_its_holder() {
    let setup = setup(&[(3, 15, 1000)]);
    let scheme = scheme(&setup, &Params::default());
    let (map, switch) = (scheme.map.clone(), NodeId(23));
    let mut node = scheme.node(&Site { setup: &setup, map: &map, node: switch, longest_rtt: Time::ZERO });
    // Switch 23's queue for what host 15 forwards to 13, the second of them.
    let (port, class, queue) = (PortId(3), ClassId(0), QueueId(1));
    node.far[scheme.place(port, class, 1)] = true;
    let expected = Wait { port: map.base[19] + 1, queue: 3 };
    assert_eq!(scheme.holder(&node, switch, port, queue), Some(vec![expected]));
    node.remote[scheme.lane(port, class)] = true;
    let own = Wait { port: map.base[15], queue: 0 };
    assert_eq!(scheme.holder(&node, switch, port, queue), Some(vec![own, expected]));
}

#[test]
fn a_frame_that_was_passed_on_holds_one_transit_queue_and_a_full_host_holds_all() {
    let mut bench = bench(23, &[(3, 15, 1000)], &Params::default());
    let (port, class) = (PortId(3), ClassId(0));
    // Port 1 of switch 19 leads to host 13.
    let far = About::PassedOn { port: PortId(1) };
    bench.frame(port, Frame { about: far, class, pause: true });
    assert_eq!(bench.held_queues(port), [QueueId(1)]);
    bench.frame(port, Frame { about: About::Remote, class, pause: true });
    assert_eq!(bench.held_queues(port), [0, 1, 2].map(QueueId), "the last hop is never held");
    bench.frame(port, Frame { about: far, class, pause: false });
    bench.frame(port, Frame { about: About::Remote, class, pause: false });
    assert_eq!(bench.held_queues(port), []);
}

#[test]
fn a_host_passes_a_pause_of_a_last_hop_on_by_its_other_port_and_stops_its_own_flows_there() {
    // Host 15 reaches 12 to 14 by port 0 over switch 19, whose port 1 leads to host 13.
    let mut bench = bench(15, &[(15, 13, 10_000), (15, 12, 10_000)], &Params::default());
    let (port, other, class) = (PortId(0), PortId(1), ClassId(0));
    [port, other].into_iter().for_each(|port| bench.close(port));
    [0, 1].into_iter().for_each(|flow| bench.start(FlowId(flow), 10_000));
    for pause in [true, false] {
        bench.frame(port, Frame { about: About::LastHop { port: PortId(1) }, class, pause });
        assert_eq!(bench.held_flows(), if pause { vec![FlowId(0)] } else { vec![] });
        let passed = Frame { about: About::PassedOn { port: PortId(1) }, class, pause };
        assert_eq!(bench.transmit(other).unwrap().message::<Frame>(), passed);
    }
}

#[test]
fn a_switch_notifies_its_other_hosts_of_a_last_hop_that_is_over_the_threshold_until_it_is_under_the_other() {
    let params = Params { pause: Some(Bytes(10_000)), resume: Some(Bytes(5_000)), ..Params::default() };
    let mut bench = bench(23, &[(3, 15, 500_000)], &params);
    // Host 3 is at port 0, host 15 at port 3. Ten packets of 1062 bytes are over, four are under.
    bench.close(PortId(3));
    (0..9).for_each(|_| bench.arrive(PortId(0), FlowId(0)));
    assert_eq!(bench.frames(), []);
    let said = |pause: bool| {
        let frame = Frame { about: About::LastHop { port: PortId(3) }, class: ClassId(0), pause };
        [0, 1, 2].map(|port| (PortId(port), frame.clone()))
    };
    let heard = |bench: &mut Bench<Portfc>| {
        let mut heard = bench.frames();
        heard.sort_by_key(|(port, _)| *port);
        heard
    };
    bench.arrive(PortId(0), FlowId(0));
    assert_eq!(heard(&mut bench), said(true));
    (0..5).for_each(|_| _ = bench.transmit(PortId(3)).unwrap());
    assert_eq!(bench.frames(), []);
    bench.transmit(PortId(3)).unwrap();
    assert_eq!(heard(&mut bench), said(false));
}

#[test]
fn memory_decides_how_long_queues_may_get() {
    let graph = Bcube::default().build().unwrap();
    let sizes = |pool: u64, params: &Params| {
        let pool = vec![Some(pool); graph.nodes.len()];
        let setup = setup(&[]);
        let fabric = Fabric { pool: &pool, graph: &graph, ..fabric(&setup) };
        Sizes::new(params, &FOUR, &fabric)
    };
    let (small, middle, large) = (800_000, 1_000_000, 4_000_000);
    let auto = |pool| sizes(pool, &Params::default());
    assert!(
        auto(small).switch.pause < auto(middle).switch.pause && auto(middle).switch.pause < auto(large).switch.pause
    );
    assert_eq!((auto(large).room, auto(middle).room), (Room::Enough, Room::Enough));
    assert_eq!(auto(1_000_000_000).switch.pause, auto(large).switch.pause);
    assert!(matches!(auto(500_000).room, Room::Short(note) if note.contains("switch.buffer")));
    let set = Params { pause: Some(Bytes(100_000)), ..Params::default() };
    assert!(matches!(sizes(middle, &set).room, Room::Short(_)));
    assert_eq!((sizes(middle, &set).switch.pause, sizes(middle, &set).switch.resume), (100_000, 50_000));
}

/// A random BCube with its traffic.
#[derive(Clone, Debug)]
struct Case {
    n: u32,
    gbps: u64,
    delay_ns: u64,
    pipeline_ns: u64,
    forward_ns: u64,
    forward_share: u64,
    payload: u16,
    params: Params,
    /// Messages go to so many hosts only, if any number.
    crowd: u32,
    messages: Vec<(u32, u32, u64, u64)>,
}

fn case() -> impl Strategy<Value = Case> {
    let wires = (prop::sample::select(vec![10u64, 40, 100, 400]), 100u64..3_000, 0u64..600);
    let forward = (prop_oneof![Just(0u64), 0u64..3_000], 20u64..200);
    let marks = (prop::option::of(1u64..60_000), prop::option::of(0u64..60_000));
    let size = prop_oneof![1u64..2_000, 1u64..300_000];
    let message = (any::<u32>(), any::<u32>(), size, prop_oneof![Just(0u64), 0u64..30_000]);
    let scale = (2u32..=5, 64u16..=4096, 0u32..=6);
    (scale, wires, forward, marks, prop::collection::vec(message, 1..80)).prop_map(
        |(
            (n, payload, crowd),
            (gbps, delay_ns, pipeline_ns),
            (forward_ns, forward_share),
            (pause, resume),
            messages,
        )| {
            let resume = pause.and(resume).map(|resume| Bytes(resume.min(pause.unwrap_or(resume))));
            let params = Params { pause: pause.map(Bytes), resume, ..Params::default() };
            Case { n, gbps, delay_ns, pipeline_ns, forward_ns, forward_share, payload, params, crowd, messages }
        },
    )
}

impl Case {
    /// The setup with just enough memory.
    fn setup(&self) -> Setup {
        let hosts = self.n * self.n;
        let shape = Bcube { n: self.n, k: 1, rate: Rate::from_gbps(self.gbps), delay: Time::from_ns(self.delay_ns) };
        let mut messages = self.messages.clone();
        messages.sort_by_key(|message| message.3);
        let flows = (0..).zip(&messages).map(|(i, &(src, dst, size, start))| {
            let dst = (if self.crowd > 0 { dst % self.crowd * 7 } else { dst }) % hosts;
            let src = (dst + 1 + src % (hosts - 1)) % hosts;
            FlowSpec::plain(i, src, dst, size, Time::from_ns(start))
        });
        let mut setup = Setup::plain(shape.build().unwrap(), flows.collect());
        setup.nic.payload = self.payload;
        setup.switch.queues = self.n;
        setup.switch.quantum = self.payload as u32 + 62;
        setup.switch.pipeline = Time::from_ns(self.pipeline_ns);
        setup.forward.delay = Time::from_ns(self.forward_ns);
        // A host that forwards more slowly than its links, now and then.
        let limit = Rate(shape.rate.0 * self.forward_share / 100);
        setup.forward.rate = (self.forward_share < 100).then_some(limit);
        setup.measure.sample = Some(Time::from_us(10));
        let enough = |pool: u64| {
            let pool = vec![Some(pool); setup.graph.nodes.len()];
            Sizes::new(&self.params, &Layout { n: self.n }, &Fabric { pool: &pool, ..fabric(&setup) }).room
                == Room::Enough
        };
        let (mut short, mut least) = (0u64, 1 << 40);
        while short + 1 < least {
            let middle = (short + least) / 2;
            if enough(middle) { least = middle } else { short = middle }
        }
        setup.switch.pool.fill(Some(least));
        setup
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn portfc_loses_nothing_keeps_order_and_never_stops_for_good(case in case()) {
        let setup = case.setup();
        let pool = setup.switch.pool[0].unwrap();
        let outcome = run(setup, &case.params);
        prop_assert_eq!(&outcome.violations, &Vec::<String>::new());
        prop_assert!(outcome.complete(), "{} of {}: {:?}", outcome.finished.len(), outcome.flows.len(), outcome.stall);
        prop_assert_eq!((&outcome.stall, outcome.left), (&None, 0));
        prop_assert_eq!((outcome.counts.dropped(), outcome.counts.out_of_order, outcome.counts.retransmitted), (0, 0, (0, 0)));
        prop_assert!(outcome.peak.iter().all(|&peak| peak <= pool));
    }

    #[test]
    fn portfc_gives_the_same_outcome_again(case in case()) {
        let (one, two) = (run(case.setup(), &case.params), run(case.setup(), &case.params));
        prop_assert_eq!((one.flows, one.counts, one.peak), (two.flows, two.counts, two.peak));
    }
}
