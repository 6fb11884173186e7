use super::*;
use engine::Rate;
use fabric::Network;
use fabric::buffer::{ALPHA_ONE, Share};
use fabric::setup::{FlowSpec, SeriesSetup};

const HOP: Time = Time::from_us(1);
const FAST: Rate = Rate::from_gbps(100);

/// Leaves with so many hosts each below so many spines; all links alike. Hosts first, leaf by leaf, then leaves, then spines.
fn clos(leaves: u32, each: u32, spines: u32) -> Graph {
    let mut graph = Graph::default();
    (0..leaves * each).for_each(|host| _ = graph.add(topology::Kind::Host, 0, format!("h{host}")));
    (0..leaves).for_each(|leaf| _ = graph.add(topology::Kind::Switch, 1, format!("leaf{leaf}")));
    (0..spines).for_each(|spine| _ = graph.add(topology::Kind::Switch, 2, format!("spine{spine}")));
    let leaf = |number: u32| leaves * each + number;
    (0..leaves * each).for_each(|host| graph.connect(NodeId(host), NodeId(leaf(host / each)), FAST, HOP));
    for spine in 0..spines {
        (0..leaves).for_each(|number| graph.connect(NodeId(leaf(number)), NodeId(leaf(leaves) + spine), FAST, HOP));
    }
    graph
}

/// Two leaves with a link between them.
fn pair(each: u32) -> Graph {
    let mut graph = clos(2, each, 0);
    graph.connect(NodeId(2 * each), NodeId(2 * each + 1), FAST, HOP);
    graph
}

fn setup(graph: Graph, flows: Vec<FlowSpec>) -> Setup {
    let mut setup = Setup::plain(graph, flows);
    setup.switch.resume_gap = 3000;
    setup.ports.iter_mut().for_each(|p| p.share = Share { alpha: ALPHA_ONE / 8, headroom: 60_000 });
    setup
}

/// One flow from each of these hosts to each of those, all at once.
fn flows(from: impl Iterator<Item = u32>, to: &[u32], size: u64) -> Vec<FlowSpec> {
    let pairs = from.flat_map(|src| to.iter().map(move |&dst| (src, dst)));
    (0..).zip(pairs).map(|(number, (src, dst))| FlowSpec::plain(number, src, dst, size, Time::ZERO)).collect()
}

type Net = Network<Over<Floodgate, Pfc>>;

fn network(params: &Params, mut setup: Setup) -> Net {
    let layout = params.layout(&setup.graph).unwrap();
    setup.switch.queues = layout.queues.unwrap();
    let promised = !setup.graph.fallible();
    let scheme = over_pfc(params, &setup, promised);
    crate::testing::network(setup, scheme)
}

fn run(params: &Params, setup: Setup) -> (Outcome, Net) {
    let mut network = network(params, setup);
    let outcome = network.run(|_, _| true);
    assert_eq!(outcome.violations, Vec::<String>::new());
    assert!(outcome.complete(), "{:?}", outcome.stall);
    (outcome, network)
}

fn look<R>(network: &mut Net, node: u32, look: impl FnOnce(&mut Node) -> R) -> R {
    let mut seen = None;
    network.at(NodeId(node), |_, (node, _), _| seen = Some(look(node)));
    seen.unwrap()
}

fn counter(outcome: &Outcome, name: &str) -> u64 {
    outcome.flow_control.iter().find(|counter| counter.name == name).unwrap().value
}

fn ideal() -> Params {
    Params { interval: Time::ZERO, dst_pause: true, ..Params::default() }
}

#[test]
fn a_window_is_one_and_a_half_hop_bdps_and_what_the_link_carries_in_an_interval() {
    // A hop and back are 2 us: 25 KB at 100 Gb/s, 37.5 KB times 1.5. In 10 us the link carries 125 KB.
    let window = |params: &Params| {
        let (_, mut network) = run(params, setup(pair(1), flows(0..1, &[1], 10_000)));
        look(&mut network, 2, |node| (node.towards[&key(1, ClassId(0))].window, node.withhold))
    };
    assert_eq!(window(&Params::default()), (162_500, 37_500));
    assert_eq!(window(&ideal()), (37_500, 37_500));
    assert_eq!(window(&Params { window: 2.0, withhold: 0.0, ..ideal() }), (50_000, u64::MAX));
}

#[test]
fn a_flow_alone_never_waits_and_its_credits_come_back_ten_packets_at_a_time() {
    let (outcome, mut network) = run(&Params::default(), setup(pair(1), flows(0..1, &[1], 1_000_000)));
    // 1000 packets of 1062 B: ten of them are the first 10 240 B or more.
    assert_eq!((counter(&outcome, "credit_frames"), counter(&outcome, "credit_frames_by_timer")), (100, 0));
    assert_eq!((counter(&outcome, "voq_packets"), counter(&outcome, "syn_frames")), (0, 0));
    assert_eq!(counter(&outcome, "credited_bytes"), 1_062_000);
    // The last ACK is at the sender before the last credit is at the first switch, or not; nothing else may be missing.
    assert!(look(&mut network, 2, |node| node.towards[&key(1, ClassId(0))].used) <= 10_620);
    let alone = crate::testing::run(setup(pair(1), flows(0..1, &[1], 1_000_000)), Pfc::beneath(&pair(1), true));
    assert_eq!(outcome.flows[0].received, alone.flows[0].received);
    // With an interval of zero they come back packet by packet.
    let (outcome, _) = run(&ideal(), setup(pair(1), flows(0..1, &[1], 1_000_000)));
    assert_eq!(counter(&outcome, "credit_frames"), 1000);
}

#[test]
fn credits_that_fill_no_batch_wait_for_the_interval() {
    let mut flows = flows(0..1, &[1], 5_000);
    flows.push(FlowSpec::plain(1, 0, 1, 5_000, Time::from_us(30)));
    flows.push(FlowSpec::plain(2, 0, 1, 1_000, Time::from_us(60)));
    let (outcome, _) = run(&Params::default(), setup(pair(1), flows));
    assert_eq!((counter(&outcome, "credit_frames"), counter(&outcome, "credit_frames_by_timer")), (2, 2));
}

#[test]
fn no_more_than_a_window_is_on_the_way_to_a_destination() {
    for params in [Params::default(), ideal()] {
        // Four senders on one leaf, their receiver on the other: the hop between them is as fast as the last.
        let traffic = || flows(0..4, &[4], 1_000_000);
        let mut slow = pair(4);
        slow.links[4].rates = [Rate::from_gbps(25); 2];
        let (outcome, _) = run(&params, setup(slow, traffic()));
        let window = 37_500 + FAST.bytes_in(params.interval);
        let peak = counter(&outcome, "window_peak_bytes");
        assert!(peak <= window && peak > window - 1062, "{peak} of {window}");
        assert!(counter(&outcome, "voq_packets") > 1000);
        // The last switch never holds more than what is on the way to it.
        assert!(outcome.peak[9] <= window, "{}", outcome.peak[9]);
    }
}

#[test]
fn next_hops_share_a_window_or_have_one_each() {
    // Sixteen flows from one leaf over two spines to one slow host.
    let make = || {
        let mut graph = clos(2, 16, 2);
        graph.links[16].rates = [Rate::from_gbps(10); 2];
        setup(graph, flows(0..16, &[16], 200_000))
    };
    let peak = |windows: Windows| {
        let (outcome, _) = run(&Params { windows: Some(windows), ..ideal() }, make());
        counter(&outcome, "window_peak_bytes")
    };
    assert!((36_000..=37_500).contains(&peak(Windows::Switch)));
    assert!((72_000..=75_000).contains(&peak(Windows::NextHop)));
}

#[test]
fn an_incast_fills_the_switches_where_it_begins() {
    // The appendix of the authors' simulator: with Floodgate the last switch holds at most a window for every spine, without
    // it about half of what all senders send at once, which comes in twice as fast as it leaves: here 24 times 250 KB.
    let make = || {
        let mut setup = setup(clos(4, 8, 2), flows(8..32, &[0], 250_000));
        setup.ports.iter_mut().for_each(|port| port.share.alpha = ALPHA_ONE);
        setup
    };
    let plain = crate::testing::run(make(), Pfc::beneath(&clos(4, 8, 2), true));
    let (practical, _) = run(&Params::default(), make());
    let (ideal, _) = run(&ideal(), make());
    let (last, window) = (32, 162_500);
    assert!(plain.peak[last] > 2_000_000, "{}", plain.peak[last]);
    assert!(practical.peak[last] <= 2 * window, "{}", practical.peak[last]);
    assert!(ideal.peak[last] <= 2 * 37_500, "{}", ideal.peak[last]);
    assert!((33..36).all(|first| practical.peak[first] > plain.peak[first]), "the first switches hold it instead");
    // Nothing is lost of the receiver's link: all end within a few microseconds of one another.
    let end = |outcome: &Outcome| outcome.flows.iter().map(|flow| flow.received).max().unwrap();
    assert!(end(&practical) < end(&plain) + Time::from_us(20), "{} {}", end(&practical), end(&plain));
    assert!(end(&ideal) < end(&plain) + Time::from_us(60), "{} {}", end(&ideal), end(&plain));
}

#[test]
fn a_flow_to_another_host_does_not_wait_behind_an_incast() {
    // Hosts 1 to 3 send to host 4, whose link is slow; host 0 sends to host 5 over the same link between the switches.
    let make = || {
        let mut graph = pair(4);
        graph.links[4].rates = [Rate::from_gbps(10); 2];
        let mut flows = flows(1..4, &[4], 1_000_000);
        flows.push(FlowSpec::plain(9, 0, 5, 200_000, Time::from_us(50)));
        let mut setup = setup(graph, flows);
        // An eighth of it is more than the window, so that PFC has no reason to stop the link between the switches.
        setup.switch.pool = vec![Some(3_000_000); 10];
        setup
    };
    let took = |outcome: &Outcome| outcome.flows[3].received - outcome.flows[3].spec.start;
    let plain = crate::testing::run(make(), Pfc::beneath(&make().graph, true));
    let (with, _) = run(&Params { dst_pause: true, ..Params::default() }, make());
    assert!(plain.counts.pauses > 0 && with.counts.pauses == 0);
    assert!(took(&plain) > Time::from_us(150), "{}", took(&plain));
    // Alone it takes 201 packets of 85 ns and 3 us.
    assert!(took(&with) < Time::from_us(45), "{}", took(&with));
}

#[test]
fn telemetry_does_not_tell_a_flow_of_what_waits_for_other_hosts() {
    // As above, with HPCC and more senders, so that much waits in VOQs where the flow to host 9 passes.
    let make = |incast: bool| {
        let mut graph = pair(8);
        graph.links[8].rates = [Rate::from_gbps(10); 2];
        let mut all = if incast { flows(1..8, &[8], 500_000) } else { Vec::new() };
        all.push(FlowSpec::plain(99, 0, 9, 200_000, Time::from_us(20)));
        all.iter_mut().for_each(|flow| (flow.base_rtt, flow.window) = (Time::from_us(7), 87_500));
        let mut setup = setup(graph, all);
        setup.switch.pool = vec![Some(12_000_000); 18];
        setup
    };
    let took = |incast: bool| {
        let params = Params::default();
        let mut setup = make(incast);
        setup.switch.queues = params.layout(&setup.graph).unwrap().queues.unwrap();
        let scheme = over_pfc(&params, &setup, true);
        let control = crate::congestion_control::hpcc::Params::default();
        let outcome = crate::testing::run_with(setup, scheme, &control);
        assert_eq!(outcome.violations, Vec::<String>::new());
        let victim = outcome.flows.last().unwrap();
        (victim.received - victim.spec.start, counter(&outcome, "voq_packets"))
    };
    let ((alone, _), (beside, waited)) = (took(false), took(true));
    assert!(waited > 100, "{waited}");
    assert!(beside.0 < alone.0 * 13 / 10, "{beside} beside an incast, {alone} alone");
}

#[test]
fn credits_are_withheld_while_much_waits_for_their_destination() {
    // Three leaves in a row: the middle one fills up to its threshold, then the first one has to wait.
    let make = || {
        let mut graph = clos(3, 8, 0);
        graph.connect(NodeId(24), NodeId(25), FAST, HOP);
        graph.connect(NodeId(25), NodeId(26), FAST, HOP);
        graph.links[16].rates = [Rate::from_gbps(5); 2];
        let onward = fabric::routing::PortMap::new(&graph).of(25).last().unwrap();
        let mut setup = setup(graph, flows(0..8, &[16], 500_000));
        setup.measure.series = Some(SeriesSetup { every: Time::from_us(5), ports: vec![onward], flows: vec![] });
        setup
    };
    let (with, _) = run(&Params { window: 4.0, interval: Time::ZERO, ..Params::default() }, make());
    let (without, _) = run(&Params { window: 4.0, interval: Time::ZERO, withhold: 0.0, ..Params::default() }, make());
    assert!(counter(&with, "credits_withheld") > 0 && counter(&without, "credits_withheld") == 0);
    // A window of 100 KB may come in either way, and stays there if credits come back as packets leave. Withheld until 37.5 KB are left, they
    // let the queue fall that far before the next come in.
    let mean = |outcome: &Outcome| {
        let samples = &outcome.series.ports;
        let middle = &samples[samples.len() / 4..samples.len() * 3 / 4];
        middle.iter().map(|sample| sample.0).sum::<u64>() / middle.len() as u64
    };
    assert!(mean(&without) > 90_000, "{}", mean(&without));
    assert!(mean(&with) < 80_000, "{}", mean(&with));
    assert_eq!(with.counts.dropped() + with.counts.out_of_order, 0);
}

#[test]
fn destinations_have_queues_of_their_own_until_there_are_none_left() {
    let make = || {
        let mut graph = pair(4);
        (4..8).for_each(|link| graph.links[link].rates = [Rate::from_gbps(10); 2]);
        setup(graph, flows(0..4, &[4, 5, 6, 7], 200_000))
    };
    let (outcome, mut network) = run(&ideal(), make());
    assert_eq!((counter(&outcome, "voqs_peak"), counter(&outcome, "voq_collisions")), (4, 0));
    assert!(look(&mut network, 8, |node| node.takers.iter().all(|&count| count == 0)));
    for voqs in [1, 3] {
        let (outcome, mut network) = run(&Params { voqs, ..ideal() }, make());
        assert_eq!(counter(&outcome, "voqs_peak"), voqs as u64);
        assert!(counter(&outcome, "voq_collisions") > 0);
        assert_eq!(outcome.counts.out_of_order, 0);
        assert!(look(&mut network, 8, |node| node.takers.iter().all(|&count| count == 0)));
    }
}

#[test]
fn a_host_is_stopped_for_one_destination_alone() {
    let make = || {
        let mut graph = pair(2);
        graph.links[2].rates = [Rate::from_gbps(5); 2];
        setup(graph, flows(0..1, &[2, 3], 1_000_000))
    };
    let (outcome, mut network) = run(&ideal(), make());
    assert!(counter(&outcome, "dst_pauses") > 0 && outcome.counts.pauses == 0);
    assert_eq!(counter(&outcome, "dst_pauses"), counter(&outcome, "dst_resumes"));
    // The other flow has the sender's link for itself: 85 us, and what the first one took of it.
    assert!(outcome.flows[1].received < Time::from_us(120), "{}", outcome.flows[1].received);
    assert!(look(&mut network, 0, |node| node.lines[0].stopped.is_empty()));
    // 37.5 KB and what comes in before the host hears of it.
    assert!(outcome.peak[4] < 37_500 + 37_500, "{}", outcome.peak[4]);
}

#[test]
fn a_flow_that_starts_while_its_destination_is_stopped_waits() {
    let mut flows = flows(0..1, &[2], 500_000);
    flows.push(FlowSpec::plain(1, 0, 2, 1_000, Time::from_us(100)));
    let mut graph = pair(2);
    graph.links[2].rates = [Rate::from_gbps(5); 2];
    let (outcome, _) = run(&ideal(), setup(graph, flows));
    assert!(outcome.flows[1].received > Time::from_us(110));
}

#[test]
fn a_lost_credit_is_made_good_by_the_next_one() {
    let (_, mut network) = run(&ideal(), setup(pair(1), flows(0..1, &[1], 100_000)));
    let (key, port) = (key(1, ClassId(0)), PortId(1));
    network.at(NodeId(2), |scheme, (node, _), at| {
        let floodgate = &scheme.upper;
        let toward = node.towards.get_mut(&key).unwrap();
        (toward.used, toward.outs[0].passed, toward.outs[0].sent, toward.outs[0].credited) = (5000, 5000, 5000, 0);
        // Numbers, not amounts: 3000 alone says what 1000 and 3000 say.
        floodgate.credit(node, at, port, key, 3000);
        assert_eq!(node.towards[&key].used, 2000);
        // An old one changes nothing, nor does one of what was never sent.
        floodgate.credit(node, at, port, key, 1000);
        floodgate.credit(node, at, port, key, 6000);
        assert_eq!(node.towards[&key].used, 2000);
    });
}

#[test]
fn a_syn_makes_good_what_was_lost_on_the_link() {
    let (_, mut network) = run(&ideal(), setup(pair(1), flows(0..1, &[1], 100_000)));
    let (key, port) = (key(1, ClassId(0)), PortId(1));
    network.at(NodeId(3), |scheme, (node, _), at| {
        let before = node.towards[&key].ins[0].left;
        assert_eq!((before, node.towards[&key].ins[0].received), (106_200, 106_200));
        let frames = node.counts.frames;
        // The upstream switch has sent 2124 B that never came.
        scheme.upper.frame(node, at, port, Frame::Syn { entries: [entry(key, 108_324)].into() });
        let from = &node.towards[&key].ins[0];
        assert_eq!((from.received, from.left, from.said), (108_324, 108_324, 108_324));
        assert_eq!((node.counts.recovered, node.counts.frames), (2124, frames + 1));
        // Asked again, it says the same again: that answer may have been lost.
        scheme.upper.frame(node, at, port, Frame::Syn { entries: [entry(key, 108_324)].into() });
        assert_eq!((node.counts.recovered, node.counts.frames), (2124, frames + 2));
    });
}

#[test]
fn links_that_lose_packets_and_credits_stop_no_flow_for_ever() {
    for params in [Params::default(), ideal()] {
        let params = Params { syn_timeout: Time::from_us(50), ..params };
        let mut graph = pair(4);
        graph.links[8].loss = 0.05;
        let mut setup = setup(graph, flows(0..4, &[4, 5], 500_000));
        setup.nic.timeout = Some(Time::from_us(200));
        let (outcome, mut network) = run(&params, setup);
        assert!(outcome.counts.dropped_fault > 100);
        assert!(counter(&outcome, "syn_frames") > 0 && counter(&outcome, "recovered_bytes") > 0);
        look(&mut network, 8, |node| {
            assert!(node.towards.values().all(|toward| toward.waiting == 0));
        });
    }
}

#[test]
fn a_link_that_fails_and_comes_back_leaves_no_window_short() {
    for params in [Params::default(), ideal()] {
        let mut graph = clos(2, 4, 2);
        // Once in the middle of it all, once right after.
        graph.links[8].outages =
            vec![(Time::from_us(40), Some(Time::from_us(90))), (Time::from_us(95), Some(Time::from_us(99)))];
        let mut setup = setup(graph, flows(0..4, &[4, 5], 500_000));
        setup.nic.timeout = Some(Time::from_us(200));
        let (outcome, mut network) = run(&params, setup);
        assert!(outcome.counts.dropped_down > 0 && counter(&outcome, "voq_packets") > 0);
        for switch in 8..12 {
            look(&mut network, switch, |node| {
                for toward in node.towards.values() {
                    let missing: u64 = toward.outs.iter().map(|out| out.missing() as u64).sum();
                    assert_eq!((toward.used, toward.waiting), (missing, 0));
                    assert!(toward.ins.iter().all(|from| from.here == 0));
                }
            });
        }
    }
}

#[test]
fn fabrics_and_settings_that_could_stop_for_ever_are_refused() {
    let graph = Graph { forwarding: true, ..pair(1) };
    assert_eq!(Params::default().layout(&graph).unwrap_err().parameter, "topology");
    let mut graph = pair(1);
    graph.links[2].loss = 0.1;
    assert!(ideal().layout(&graph).is_ok());
    graph.links[0].loss = 0.1;
    assert!(Params::default().layout(&graph).is_ok());
    assert_eq!(ideal().layout(&graph).unwrap_err().parameter, "scheme.floodgate.dst_pause");
    let mut graph = pair(1);
    graph.links[2].outages = vec![(Time::from_us(1), None)];
    assert!(Params::default().layout(&graph).is_ok());
    let shared = Params { windows: Some(Windows::Switch), ..Params::default() };
    assert_eq!(shared.layout(&graph).unwrap_err().parameter, "scheme.floodgate.windows");
    assert!(Params { frame: Bytes(1929), ..Params::default() }.check().is_err());
    assert!(Params::default().check().is_ok());
}
