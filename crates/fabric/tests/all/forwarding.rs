//! Hosts that forward: where packets go, what it costs, and how they share their links.

use engine::{Rate, Time};
use fabric::Outcome;
use fabric::axes::flow_control::NoFlowControl;
use fabric::id::NodeId;
use fabric::routing::{PortMap, Routing};
use fabric::setup::{FlowSpec, Setup};
use fabric::topology::{Graph, Kind, Shape, bcube::Bcube};

fn bcube(n: u32, k: u32) -> Graph {
    Bcube { n, k, ..Bcube::default() }.build().unwrap()
}

fn setup(graph: Graph, flows: &[(u32, u32, u64)]) -> Setup {
    let flows = (0..).zip(flows).map(|(i, &(src, dst, size))| FlowSpec::plain(i, src, dst, size, Time::ZERO));
    let mut setup = Setup::plain(graph, flows.collect());
    // The senders go at line rate; whatever piles up has room.
    setup.switch.pool.fill(Some(1_000_000_000));
    setup
}

fn run(setup: Setup) -> Outcome {
    let outcome = crate::run(setup, NoFlowControl);
    assert_eq!(outcome.violations, Vec::<String>::new());
    assert!(outcome.complete());
    outcome
}

/// Links of a shortest path.
fn links(graph: &Graph, from: u32, to: u32) -> u32 {
    let map = PortMap::new(graph);
    let routing = Routing::new(graph, &map, &vec![true; graph.links.len()]);
    let (mut node, mut count) = (from, 0);
    while node != to {
        assert!((count as usize) < graph.nodes.len(), "the path from {from} to {to} has a cycle");
        let port = routing.next_hops(node, to)[0];
        (node, count) = (map.node[map.peer[port as usize] as usize], count + 1);
    }
    count
}

#[test]
fn a_way_has_two_links_for_every_digit_that_differs() {
    for (n, k) in [(2, 1), (4, 1), (3, 2), (2, 3)] {
        let graph = bcube(n, k);
        let hosts = n.pow(k + 1);
        for (a, b) in (0..hosts).flat_map(|a| (0..hosts).map(move |b| (a, b))) {
            let differ = (0..=k).filter(|&i| a / n.pow(i) % n != b / n.pow(i) % n).count() as u32;
            assert_eq!(links(&graph, a, b), 2 * differ, "BCube({n}, {k}), {a} to {b}");
        }
    }
}

#[test]
fn hosts_forward_only_where_the_graph_says_so() {
    let mut graph = bcube(4, 1);
    graph.forwarding = false;
    let map = PortMap::new(&graph);
    let routing = Routing::new(&graph, &map, &vec![true; graph.links.len()]);
    assert!(routing.next_hops(0, 5).is_empty());
    assert_eq!(routing.next_hops(0, 4).len(), 1);
    // A host with a single link has nowhere to forward to.
    graph.forwarding = true;
    let lonely = graph.add(Kind::Host, 0, "lonely");
    assert!(graph.forwards(NodeId(0), 2) && graph.forwards(NodeId(16), 4) && !graph.forwards(lonely, 1));
}

#[test]
fn forwarding_takes_its_delay_once_per_forwarding_host() {
    let took = |k: u32, dst: u32, delay: Time| {
        let mut setup = setup(bcube(2, k), &[(0, dst, 5_000)]);
        setup.forward.delay = delay;
        run(setup).flows[0].received
    };
    let delay = Time::from_ns(700);
    for (k, dst, forwarders) in [(1, 1, 0), (1, 3, 1), (2, 7, 2), (3, 15, 3)] {
        assert_eq!(took(k, dst, delay), took(k, dst, Time::ZERO) + Time(delay.0 * forwarders), "BCube(2, {k})");
    }
}

/// A host between two switches: `h0` sends through `h1` to `h2`, and `h1` sends to `h2` itself.
fn line() -> Graph {
    let mut graph = Graph { forwarding: true, ..Graph::default() };
    (0..3).for_each(|i| _ = graph.add(Kind::Host, 0, format!("h{i}")));
    let (s, t) = (graph.add(Kind::Switch, 1, "s"), graph.add(Kind::Switch, 1, "t"));
    for (host, switch) in [(0, s), (1, s), (1, t), (2, t)] {
        graph.connect(NodeId(host), switch, Rate::from_gbps(100), Time::from_us(1));
    }
    graph
}

#[test]
fn a_host_takes_turns_between_its_own_packets_and_those_of_others() {
    // Four own flows against one that is forwarded: the link is still shared in halves.
    let mut flows = vec![(0, 2, 1_000_000)];
    flows.extend([(1, 2, 250_000); 4]);
    let outcome = run(setup(line(), &flows));
    let (forwarded, own) = (outcome.flows[0].received, outcome.flows[1..].iter().map(|f| f.received).max().unwrap());
    let both = Time(2_000_000 * 80 * 1062 / 1000);
    for end in [forwarded, own] {
        assert!(end > Time(both.0 * 95 / 100) && end < Time(both.0 + 10_000_000), "{end} against {both}");
    }
}

#[test]
fn a_host_that_forwards_first_sends_its_own_packets_when_there_are_no_others() {
    let mut setup = setup(line(), &[(0, 2, 1_000_000), (1, 2, 1_000_000)]);
    setup.forward.first = true;
    let outcome = run(setup);
    let (forwarded, own) = (outcome.flows[0].received, outcome.flows[1].received);
    let one = Time(1_000_000 * 80 * 1062 / 1000);
    assert!(forwarded < Time(one.0 + 10_000_000), "{forwarded} against {one}");
    assert!(own > Time(one.0 * 19 / 10) && own < Time(one.0 * 2 + 10_000_000), "{own} against twice {one}");
}

#[test]
fn a_limit_on_forwarding_slows_what_is_forwarded_and_nothing_else() {
    let ends = |rate: Option<Rate>, flows: &[(u32, u32, u64)]| {
        let mut setup = setup(line(), flows);
        setup.forward.rate = rate;
        run(setup).flows.iter().map(|flow| flow.received.us_f64()).collect::<Vec<_>>()
    };
    let limit = Some(Rate::from_gbps(25));
    let wire = 1_000_000.0 * 1.062 * 8.0 / 1000.0 / 100.0; // at 100 Gb/s, in us
    let alone = ends(limit, &[(0, 2, 1_000_000)])[0];
    assert!((alone / (4.0 * wire) - 1.0).abs() < 0.03, "{alone}");
    // Its own packets have the other three quarters of the link.
    let own = ends(limit, &[(0, 2, 1_000_000), (1, 2, 1_000_000)])[1];
    assert!((own / (wire * 4.0 / 3.0) - 1.0).abs() < 0.03, "{own}");
    let free = ends(None, &[(0, 2, 1_000_000)])[0];
    assert!((free / wire - 1.0).abs() < 0.06, "{free}");
}

/// Packets that come more slowly than the link sends find it idle, and are forwarded no faster than the limit all the same.
#[test]
fn a_limit_on_forwarding_holds_where_nothing_queues() {
    let mut graph = line();
    graph.links[0].rates = [Rate::from_gbps(50); 2];
    let mut setup = setup(graph, &[(0, 2, 1_000_000)]);
    setup.forward.rate = Some(Rate::from_gbps(25));
    let took = run(setup).flows[0].received.us_f64();
    let limited = 1_000_000.0 * 1.062 * 8.0 / 1000.0 / 25.0;
    assert!((took / limited - 1.0).abs() < 0.03, "{took} against {limited}");
}
