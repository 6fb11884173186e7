use super::*;
use engine::Rate;
use fabric::id::NodeId;
use fabric::routing::PortMap;
use fabric::topology::Graph;

/// Two hosts on each of two leaves, and two spines.
fn leaf_spine() -> Graph {
    let mut graph = Graph::default();
    (0..4).for_each(|i| _ = graph.add(fabric::topology::Kind::Host, 0, format!("h{i}")));
    (4..8).for_each(|i| _ = graph.add(fabric::topology::Kind::Switch, 1, format!("s{i}")));
    let mut join = |a, b| graph.connect(NodeId(a), NodeId(b), Rate::from_gbps(100), Time::from_us(1));
    (0..4).for_each(|host| join(host, 4 + host / 2));
    [(4, 6), (4, 7), (5, 7), (5, 6)].into_iter().for_each(|(leaf, spine)| join(leaf, spine));
    graph
}

#[test]
fn a_path_is_numbered_by_the_ports_of_its_switches() {
    let graph = leaf_spine();
    let paths = Paths::new(&graph, &PortMap::new(&graph)).unwrap();
    // Leaves have two hosts, then spines; each spine has leaf 4 first. Ports count from 1.
    assert_eq!(paths.between(NodeId(4), NodeId(5)), [3 | 2 << 8, 4 | 2 << 8]);
    assert_eq!(paths.between(NodeId(5), NodeId(4)), [3 | 1 << 8, 4 | 1 << 8]);
    assert_eq!(paths.round_trip(NodeId(4), NodeId(5)), Time::from_us(4));
}

#[test]
fn fabrics_whose_paths_have_no_numbers_are_refused_with_the_reason() {
    let refused = |change: fn(&mut Graph), why: &str| {
        let mut graph = leaf_spine();
        change(&mut graph);
        let reason = Paths::new(&graph, &PortMap::new(&graph)).unwrap_err();
        assert!(reason.contains(why), "{reason}");
    };
    refused(|graph| graph.connect(NodeId(0), NodeId(5), Rate::from_gbps(100), Time::from_us(1)), "several links");
    refused(
        |graph| graph.connect(NodeId(4), NodeId(5), Rate::from_gbps(100), Time::from_us(1)),
        "both have hosts and are joined",
    );
    refused(
        |graph| {
            let host = graph.add(fabric::topology::Kind::Host, 0, "h");
            graph.connect(host, NodeId(6), Rate::from_gbps(100), Time::from_us(1));
        },
        "hosts and",
    );
}

#[test]
fn a_sweep_finds_what_is_older_than_the_time_between_two() {
    let us = Time::from_us;
    let mut sweeps = Ticks::new(us(100));
    assert_eq!((sweeps.count(us(500)), sweeps.swept(us(500), us(0))), (0, false));
    sweeps.begin(us(10));
    sweeps.begin(us(50));
    assert_eq!([us(109), us(110), us(310)].map(|now| sweeps.count(now)), [0, 1, 3]);
    // At 210 us, what was touched at 110 us is not older than 100 us, and what was at 109 us is.
    assert!(!sweeps.swept(us(250), us(110)) && sweeps.swept(us(250), us(109)) && !sweeps.swept(us(209), us(109)));
}
