use super::*;
use crate::topology::{Link, Shape, bcube, dragonfly, dumbbell, fat_tree, leaf_spine, slim_fly, star, torus};
use engine::{Rate, Time};
use proptest::prelude::*;

const RATE: Rate = Rate::from_gbps(100);
const DELAY: Time = Time::from_us(1);

/// Switches with a host on each, wired like this.
fn switches(count: u32, links: &[(u32, u32)]) -> Graph {
    let mut graph = Graph::default();
    (0..count).for_each(|i| _ = graph.add(Kind::Host, 0, format!("h{i}")));
    (0..count).for_each(|i| _ = graph.add(Kind::Switch, 1, format!("s{i}")));
    (0..count).for_each(|i| graph.connect(NodeId(i), NodeId(count + i), RATE, DELAY));
    links.iter().for_each(|&(a, b)| graph.connect(NodeId(count + a), NodeId(count + b), RATE, DELAY));
    graph
}

fn ring(count: u32) -> Graph {
    switches(count, &(0..count).map(|i| (i, (i + 1) % count)).collect::<Vec<_>>())
}

fn found(graph: &Graph, waits: &Waits, rule: Rule, traffic: Traffic<'_>) -> Finding {
    let map = PortMap::new(graph);
    let state = State::new(graph, &map, vec![true; graph.links.len()]);
    Analysis::new(graph, &map, rule, waits).run(&[&state], traffic).unwrap()
}

fn pfc(graph: &Graph) -> Finding {
    found(graph, &Waits::Classes, Rule::ByFlow, Traffic::Any)
}

/// `from-to` of every link of a cycle.
fn names(graph: &Graph, finding: &Finding) -> Vec<String> {
    let map = PortMap::new(graph);
    let name = |port: u32| graph.nodes[map.node[port as usize] as usize].name.as_str();
    let step = |step: &Step| format!("{}-{}", name(step.channel.port), name(map.peer[step.channel.port as usize]));
    finding.cycle.iter().map(step).collect()
}

#[test]
fn up_and_down_a_tree_of_switches_nothing_waits_for_itself() {
    let shapes: [Box<dyn Shape>; 4] = [
        Box::new(star::Star::default()),
        Box::new(dumbbell::Dumbbell::default()),
        Box::new(leaf_spine::LeafSpine::default()),
        Box::new(fat_tree::FatTree::default()),
    ];
    for shape in shapes {
        let graph = shape.build().unwrap();
        for rule in [Rule::ByFlow, Rule::ByPacket, Rule::ByDestination] {
            let finding = found(&graph, &Waits::Classes, rule, Traffic::Any);
            assert_eq!(finding.cycle, [], "{}", shape.name());
            assert_eq!(finding.valley, None, "{}", shape.name());
        }
    }
    let fat = fat_tree::FatTree::default().build().unwrap();
    let finding = pfc(&fat);
    assert!(finding.up_down && finding.waits > 0 && finding.channels > 0);
}

#[test]
fn a_ring_waits_for_itself_all_around() {
    let graph = ring(5);
    let finding = pfc(&graph);
    assert_eq!(names(&graph, &finding).len(), 5);
    assert!(!finding.up_down);
    // Each link of the cycle ends where the next begins, and the packets named take both.
    let map = PortMap::new(&graph);
    let state = State::new(&graph, &map, vec![true; graph.links.len()]);
    for (place, step) in finding.cycle.iter().enumerate() {
        let next = &finding.cycle[(place + 1) % 5];
        let far = map.node[map.peer[step.channel.port as usize] as usize];
        assert_eq!(far, map.node[next.channel.port as usize]);
        let (_, dst) = step.pair;
        for port in [step.channel.port, next.channel.port] {
            assert!(state.routing.next_hops(map.node[port as usize], dst).contains(&port), "{step:?}");
        }
    }
}

#[test]
fn rings_of_three_and_of_four_differ_by_what_is_shortest() {
    // Around three switches no packet goes farther than one link; around four, those opposite go in either direction.
    assert_eq!(pfc(&ring(3)).cycle, []);
    assert_eq!(pfc(&ring(4)).cycle.len(), 4);
}

#[test]
fn flows_that_do_not_close_the_ring_are_free_on_it() {
    let graph = ring(5);
    let flow = |src: u32| FlowSpec::plain(src as u16, src, (src + 2) % 5, 1000, Time::ZERO);
    let of = |flows: &[FlowSpec], acks| found(&graph, &Waits::Classes, Rule::ByFlow, Traffic::Flows(flows, acks));
    let all: Vec<FlowSpec> = (0..5).map(flow).collect();
    let finding = of(&all, false);
    assert_eq!(names(&graph, &finding), ["s0-s1", "s1-s2", "s2-s3", "s3-s4", "s4-s0"]);
    let pairs: Vec<_> = finding.cycle.iter().map(|step| step.pair).collect();
    assert_eq!(pairs, [(0, 2), (1, 3), (2, 4), (3, 0), (4, 1)]);
    assert_eq!(of(&all[..4], false).cycle, []);
    assert_eq!(of(&all[..4], false).waits, 4);
    // Four flows in one direction and the ACKs of all go back the other: still open on both sides.
    assert_eq!(of(&all[..4], true).cycle, []);
    assert_eq!(of(&all[..4], true).waits, 8);
}

#[test]
fn a_cycle_can_close_only_while_routes_change() {
    // A square with its two states: one link of it down, or the opposite one. Each leaves a line.
    let graph = ring(4);
    let map = PortMap::new(&graph);
    let state = |down: usize| {
        let mut up = vec![true; graph.links.len()];
        up[down] = false;
        State::new(&graph, &map, up)
    };
    let (one, other) = (state(4), state(6));
    let analysis = Analysis::new(&graph, &map, Rule::ByFlow, &Waits::Classes);
    for single in [&one, &other] {
        assert_eq!(analysis.run(&[single], Traffic::Any).unwrap().cycle, []);
    }
    // What was sent in one direction round the ring comes to a switch that now sends it back: two such neighbours wait for each other.
    assert_eq!(analysis.run(&[&one, &other], Traffic::Any).unwrap().cycle.len(), 2);
}

#[test]
fn a_clos_whose_links_fail_may_go_up_again() {
    // leaf0 has only spine0 left and leaf1 only spine1: between them the path is by leaf2.
    let graph =
        leaf_spine::LeafSpine { leaves: 3, hosts_per_leaf: 1, spines: 2, ..Default::default() }.build().unwrap();
    let map = PortMap::new(&graph);
    let node = |name: &str| graph.nodes.iter().position(|node| node.name == name).unwrap() as u32;
    let link = |a: &str, b: &str| {
        let ends = (node(a), node(b));
        graph.links.iter().position(|l| (l.a.0, l.b.0) == ends || (l.b.0, l.a.0) == ends).unwrap()
    };
    let mut up = vec![true; graph.links.len()];
    let leaves: Vec<&str> = graph.nodes.iter().filter(|n| n.tier == 1).map(|n| n.name.as_str()).collect();
    let spines: Vec<&str> = graph.nodes.iter().filter(|n| n.tier == 2).map(|n| n.name.as_str()).collect();
    up[link(leaves[0], spines[1])] = false;
    up[link(leaves[1], spines[0])] = false;
    let state = State::new(&graph, &map, up);
    let finding = Analysis::new(&graph, &map, Rule::ByFlow, &Waits::Classes).run(&[&state], Traffic::Any).unwrap();
    assert_eq!(finding.cycle, [], "one valley alone closes nothing");
    assert!(!finding.up_down);
    let valley = finding.valley.unwrap().map(|n| graph.nodes[n as usize].name.as_str());
    assert_eq!(valley[1], leaves[2]);
}

/// BCube(n, 1) with a switch in the place of every host, and the host on it.
fn bcube(n: u32) -> Graph {
    let plain = bcube::Bcube { n, ..Default::default() }.build().unwrap();
    let hosts = n * n;
    let mut graph = Graph::default();
    (0..hosts).for_each(|i| _ = graph.add(Kind::Host, 0, format!("h{i}")));
    plain.nodes.iter().for_each(|node| _ = graph.add(Kind::Switch, node.tier + 1, format!("x{}", node.name)));
    (0..hosts).for_each(|i| graph.connect(NodeId(i), NodeId(hosts + i), RATE, DELAY));
    plain.links.iter().for_each(|link| {
        graph.links.push(Link { a: NodeId(hosts + link.a.0), b: NodeId(hosts + link.b.0), ..link.clone() })
    });
    graph
}

#[test]
fn servers_that_forward_close_cycles() {
    for n in [2, 4] {
        let graph = bcube(n);
        let finding = pfc(&graph);
        assert!(finding.cycle.len() >= 4, "{:?}", names(&graph, &finding));
        assert!(finding.valley.is_some(), "a path comes down to a server and goes up again");
    }
}

/// Lanes that rise whenever a packet comes down to a server of [`bcube`] and goes up again.
struct Rising(u8);

impl Lanes for Rising {
    fn count(&self) -> u8 {
        self.0
    }
    fn next(&self, at: &At<'_>, go: &mut dyn FnMut(u32, u8)) {
        let server = at.graph.nodes[at.node as usize].tier == 1;
        let lane = at.from.map_or(0, |(_, lane)| if server { (lane + 1).min(self.0 - 1) } else { lane });
        at.paths.iter().for_each(|&port| go(port, lane));
    }
}

#[test]
fn lanes_that_rise_open_the_cycles_and_too_few_do_not() {
    let graph = bcube(4);
    let free =
        |lanes| found(&graph, &Waits::Lanes(Box::new(Rising(lanes))), Rule::ByPacket, Traffic::Any).cycle.is_empty();
    assert!(!free(1));
    // A lane for the path up to the first switch, and one after every server on the path.
    assert!(free(3));
}

/// Lanes by a rule for each port that a packet may take: where it comes from, and over which port; `None` where it may not take it.
struct ByRule<F>(u8, F);

impl<F: Fn(&At<'_>, u32) -> Option<u8>> Lanes for ByRule<F> {
    fn count(&self) -> u8 {
        self.0
    }
    fn next(&self, at: &At<'_>, go: &mut dyn FnMut(u32, u8)) {
        at.paths.iter().for_each(|&port| _ = (self.1)(at, port).map(|lane| go(port, lane.min(self.0 - 1))));
    }
}

/// The number of a switch, as its name has it; none of a host.
fn switch(graph: &Graph, node: u32) -> Option<u32> {
    graph.nodes[node as usize].name.strip_prefix("sw").and_then(|number| number.parse().ok())
}

/// Whether no cycle is left with so many lanes.
fn opened(graph: &Graph, lanes: u8, rule: impl Fn(&At<'_>, u32) -> Option<u8> + 'static) -> bool {
    let waits = Waits::Lanes(Box::new(ByRule(lanes, rule)));
    found(graph, &waits, Rule::ByPacket, Traffic::Any).cycle.is_empty()
}

#[test]
fn a_dragonfly_needs_a_lane_for_each_link_between_groups() {
    let shape = dragonfly::Dragonfly { hosts_per_switch: 1, ..Default::default() };
    let graph = shape.build().unwrap();
    let own = shape.switches_per_group;
    let ends = move |at: &At<'_>, port: u32| {
        (switch(at.graph, at.node), switch(at.graph, at.map.node[at.map.peer[port as usize] as usize]))
    };
    let crosses = move |at: &At<'_>, port: u32| matches!(ends(at, port), (Some(a), Some(b)) if a / own != b / own);
    let rising = move |at: &At<'_>, port: u32| Some(at.from.map_or(0, |from| from.1) + u8::from(crosses(at, port)));
    // Shortest paths cross up to three.
    assert!(!opened(&graph, 2, rising) && !opened(&graph, 3, rising) && opened(&graph, 4, rising));
    // By the link between their groups alone, as its paper has it: local, global, local.
    let direct = move |at: &At<'_>, port: u32| {
        let home = |host: u32| {
            at.graph.links.iter().find(|link| link.a.0 == host).and_then(|link| switch(at.graph, link.b.0)).unwrap()
                / own
        };
        let ((Some(here), Some(there)), to) = (ends(at, port), home(at.host)) else { return rising(at, port) };
        (here / own == there / own || there / own == to).then(|| rising(at, port)).flatten()
    };
    assert!(!opened(&graph, 1, direct) && opened(&graph, 2, direct));
}

#[test]
fn a_slim_fly_needs_a_lane_for_each_link() {
    let graph = slim_fly::SlimFly { hosts_per_switch: 1, ..Default::default() }.build().unwrap();
    let rising = |at: &At<'_>, _| {
        Some(at.from.map_or(0, |(port, lane)| lane + u8::from(switch(at.graph, at.map.node[port as usize]).is_some())))
    };
    assert!(!opened(&graph, 1, rising) && opened(&graph, 2, rising));
}

#[test]
fn a_torus_needs_two_lanes_and_an_order_of_dimensions() {
    for (x, y, z) in [(4, 4, 1), (5, 4, 3), (3, 3, 1)] {
        let graph = torus::Torus { x, y, z, ..Default::default() }.build().unwrap();
        let sizes = [x, y, z];
        let places = move |number: u32| [number % x, number / x % y, number / x / y];
        // The dimension of a link between switches, and whether it goes around the end.
        let along = move |at: &At<'_>, port: u32| {
            let [from, to] =
                [port, at.map.peer[port as usize]].map(|port| switch(at.graph, at.map.node[port as usize]));
            let (from, to) = (places(from?), places(to?));
            let dimension = (0..3).find(|&dimension| from[dimension] != to[dimension])?;
            Some((dimension, from[dimension].abs_diff(to[dimension]) > 1 && sizes[dimension] > 2))
        };
        let lane = move |at: &At<'_>, port: u32| {
            let Some((dimension, around)) = along(at, port) else { return 0 };
            let before = at.from.filter(|from| along(at, from.0).is_some_and(|(of, _)| of == dimension));
            before.map_or(0, |from| from.1) | u8::from(around)
        };
        let any = move |at: &At<'_>, port: u32| Some(lane(at, port));
        let ordered = move |at: &At<'_>, port: u32| {
            let first = at.paths.iter().filter_map(|&port| along(at, port)).map(|(dimension, _)| dimension).min();
            (along(at, port).map(|(dimension, _)| dimension) == first).then(|| lane(at, port))
        };
        assert!(!opened(&graph, 2, any) && opened(&graph, 2, ordered), "{x} × {y} × {z}");
        // Around three switches no packet goes farther than one link.
        assert_eq!(opened(&graph, 1, ordered), x == 3, "{x} × {y} × {z}");
    }
}

/// A rule by whole paths that says what [`Waits::Classes`] says.
struct EveryTurn;

impl PathRules for EveryTurn {
    fn lanes(&self) -> u16 {
        1
    }
    fn waits(&self, _: &Graph, _: &PortMap, path: &[u32], wait: &mut dyn FnMut(Channel, Channel)) {
        let channel = |port: u32| Channel { port, lane: 0 };
        path.windows(2).for_each(|pair| wait(channel(pair[0]), channel(pair[1])));
    }
}

/// Rules by egress port on [`bcube`]: a server's own packets wait for the switch's queue they join; transit waits for the forwarding
/// server's queue and, past it, for the last hop; what is forwarded and what is on its last hop wait for nothing.
struct PortRules;

impl PathRules for PortRules {
    fn lanes(&self) -> u16 {
        // The last hop, and transit by the server after next.
        5
    }
    fn waits(&self, graph: &Graph, map: &PortMap, path: &[u32], wait: &mut dyn FnMut(Channel, Channel)) {
        // Without the links between a server and its host.
        let path = &path[1..path.len() - 1];
        let queue = |port: u32, lane: u16| Channel { port, lane };
        let end = map.node[map.peer[path[path.len() - 1] as usize] as usize];
        let lane = (end % 4) as u16 + 1;
        assert!(graph.nodes[end as usize].tier == 1 && path.len().is_multiple_of(2));
        match *path {
            [own, last] => wait(queue(own, 0), queue(last, 0)),
            [own, transit, remote, last] => {
                wait(queue(own, lane), queue(transit, lane));
                wait(queue(transit, lane), queue(remote, 0));
                wait(queue(transit, lane), queue(last, 0));
            }
            _ => panic!("{path:?}"),
        }
    }
}

#[test]
fn stops_that_end_at_the_next_server_close_no_cycle() {
    let graph = bcube(4);
    let free = found(&graph, &Waits::Paths(Box::new(PortRules)), Rule::ByPacket, Traffic::Any);
    assert_eq!(free.cycle, []);
    assert!(free.waits > 100);
    let every = found(&graph, &Waits::Paths(Box::new(EveryTurn)), Rule::ByPacket, Traffic::Any);
    assert_eq!(every.cycle.len(), pfc(&graph).cycle.len());
    assert!(!every.cycle.is_empty());
}

/// A cycle by trying every continuation, on a small graph.
fn has_cycle(count: u32, pairs: &BTreeSet<(u32, u32)>) -> Option<usize> {
    // The length of the shortest: powers of the adjacency matrix.
    let step = |reach: &BTreeSet<(u32, u32)>| -> BTreeSet<(u32, u32)> {
        let on = |&(a, b): &(u32, u32)| pairs.range((b, 0)..(b + 1, 0)).map(move |&(_, c)| (a, c));
        reach.iter().flat_map(on).collect()
    };
    let mut reach = pairs.clone();
    (1..=count as usize).find(|_| {
        let closed = reach.iter().any(|(a, b)| a == b);
        reach = step(&reach);
        closed
    })
}

fn graphs() -> impl Strategy<Value = Graph> {
    (2u32..8).prop_flat_map(|count| {
        let links = prop::collection::btree_set((0..count, 0..count), 0..14);
        links.prop_map(move |links| {
            // A line keeps it in one piece.
            let mut all: BTreeSet<(u32, u32)> = (1..count).map(|i| (i - 1, i)).collect();
            all.extend(links.into_iter().filter(|(a, b)| a < b));
            switches(count, &all.into_iter().collect::<Vec<_>>())
        })
    })
}

proptest! {
    #[test]
    fn a_cycle_is_found_where_there_is_one_and_it_is_a_shortest(
        count in 1u32..12,
        pairs in prop::collection::btree_set((0u32..12, 0u32..12), 0..30),
    ) {
        let pairs: BTreeSet<_> = pairs.into_iter().filter(|&(a, b)| a < count && b < count).collect();
        let cycle = Edges::new(count as usize, pairs.iter().copied()).shortest_cycle();
        prop_assert_eq!((!cycle.is_empty()).then_some(cycle.len()), has_cycle(count, &pairs));
        for (place, &at) in cycle.iter().enumerate() {
            prop_assert!(pairs.contains(&(at, cycle[(place + 1) % cycle.len()])));
        }
    }

    #[test]
    fn turns_of_the_tables_and_paths_one_by_one_agree(graph in graphs()) {
        let turns = pfc(&graph);
        let paths = found(&graph, &Waits::Paths(Box::new(EveryTurn)), Rule::ByFlow, Traffic::Any);
        prop_assert_eq!(turns.cycle.len(), paths.cycle.len());
        // The turns from and to hosts are kept by the one and not by the other.
        prop_assert!(turns.waits <= paths.waits);
    }

    #[test]
    fn some_flows_wait_for_no_more_than_all(graph in graphs(), seed in any::<u16>()) {
        let hosts = graph.hosts().count() as u32;
        let flows: Vec<FlowSpec> = (0..6)
            .map(|i| (i, (seed as u32 >> i) % hosts, (seed as u32 >> (2 * i)) % hosts))
            .filter(|(_, src, dst)| src != dst)
            .map(|(i, src, dst)| FlowSpec::plain(i as u16, src, dst, 1, Time::ZERO))
            .collect();
        let all = pfc(&graph);
        let some = found(&graph, &Waits::Classes, Rule::ByFlow, Traffic::Flows(&flows, true));
        prop_assert!(some.waits <= all.waits);
        prop_assert!(some.cycle.is_empty() || !all.cycle.is_empty());
    }
}
