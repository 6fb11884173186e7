//! Files of htsim as scenarios.

use fabric::topology::Kind;
use files::problem::Problem;
use interop::htsim::{Imported, Starts, Text, import, import_from};
use scenario::resolve::Resolved;
use std::fs;

const TREE: &str = include_str!("../../../../tests/samples/htsim/three-tiers.topo");

const LEAF_SPINE: &str = "\
Nodes 32
Tiers 2
Podsize 32
Tier 0
Downlink_speed_Gbps 100
Radix_Down 8
Radix_Up 4
Oversubscribed 2
Downlink_Latency_ns 1000
Tier 1
Downlink_speed_Gbps 100
Radix_Down 8
Bundle 2
Downlink_Latency_ns 2000
";

fn read(matrix: &str, topology: Option<&str>) -> Result<Imported, Problem> {
    let topology = topology.map(|text| Text { name: "a.topo", text });
    import(Text { name: "a.cm", text: matrix }, topology, "made")
}

/// The scenario, written and read as people do.
fn load(imported: &Imported) -> Resolved {
    load_with(imported, &[])
}

/// The same with keys set otherwise.
fn load_with(imported: &Imported, sets: &[String]) -> Resolved {
    let dir = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
    put("made.toml", &imported.scenario);
    put("made.csv", &imported.flows);
    imported.graph.iter().for_each(|graph| put("made.graph.toml", graph));
    run::load(&dir.path().join("made.toml"), sets).unwrap_or_else(|problem| panic!("{problem}"))
}

const PERMUTATION: &str = "Nodes 16\nConnections 2\n0->15 start 0 size 2000000\n3->1 id 7 start 1500.0 size 9\n";

#[test]
fn connections_are_flows_with_sizes_in_bytes_and_starts_in_picoseconds() {
    let imported = read(PERMUTATION, Some(TREE)).unwrap();
    let setup = load(&imported).setup;
    let flows: Vec<_> = setup.flows.iter().map(|flow| (flow.src.0, flow.dst.0, flow.size, flow.start.0)).collect();
    assert_eq!(flows, [(0, 15, 2_000_000, 0), (3, 1, 9, 1500)]);
    assert_eq!(imported.notes.len(), 1, "{:?}", imported.notes);
    assert!(imported.notes[0].contains("Queue_Up"));
}

#[test]
fn a_seed_draws_new_paths_for_a_matrix_and_a_salt_keeps_them() {
    let mut matrix = "Nodes 32\nConnections 8\n".to_string();
    matrix.extend((0..8).map(|host| format!("{host}->{} start 0 size 200000\n", host + 8)));
    let imported = read(&matrix, Some(LEAF_SPINE)).unwrap();
    let times = |sets: &[&str]| {
        let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
        let outcome = load_with(&imported, &sets).simulate(&mut |_, _| true);
        assert!(outcome.complete(), "{sets:?}");
        outcome.flows.iter().map(|flow| flow.received).collect::<Vec<_>>()
    };
    assert_ne!(times(&["seed=1"]), times(&["seed=2"]));
    assert_eq!(times(&["seed=2"]), times(&["seed=2"]));
    assert_eq!(times(&["seed=1", "scheme.salt=5"]), times(&["seed=2", "scheme.salt=5"]));
}

#[test]
fn three_tiers_are_wired_as_htsim_wires_them() {
    let graph = load(&read(PERMUTATION, Some(TREE)).unwrap()).setup.graph;
    let tier = |tier: u8| graph.nodes.iter().filter(|node| node.tier == tier && node.kind == Kind::Switch).count();
    assert_eq!((graph.hosts().count(), tier(1), tier(2), tier(3)), (16, 8, 8, 4));
    let links: Vec<(String, u64)> = graph
        .links
        .iter()
        .map(|link| {
            let name = |node: u32| graph.nodes[node as usize].name.as_str();
            (format!("{} {}", name(link.a.0), name(link.b.0)), link.delay.ns())
        })
        .collect();
    assert_eq!(links.len(), 16 + 16 + 16);
    for (ends, delay) in [("h5 tor2", 500), ("tor2 agg3", 600), ("agg3 core1", 700), ("agg3 core3", 700)] {
        assert!(links.contains(&(ends.into(), delay)), "{ends}: {links:?}");
    }
    let setup = load(&read(PERMUTATION, Some(TREE)).unwrap()).setup;
    let outcome = format!("{:?}", setup.switch);
    assert!(outcome.contains("200000"), "the switches' latency: {outcome}");
}

#[test]
fn two_tiers_are_a_leaf_spine_with_bundles_and_no_topology_is_htsims_own_fat_tree() {
    let matrix = "Nodes 32\nConnections 1\n31->0 start 0 size 1\n";
    let graph = load(&read(matrix, Some(LEAF_SPINE)).unwrap()).setup.graph;
    assert_eq!((graph.hosts().count(), graph.nodes.len(), graph.links.len()), (32, 32 + 4 + 2, 32 + 4 * 2 * 2));
    let graph = load(&read(PERMUTATION, None).unwrap()).setup.graph;
    assert_eq!((graph.hosts().count(), graph.nodes.len()), (16, 16 + 20));
    let problem = read("Nodes 10\nConnections 1\n1->0 start 0 size 1\n", None).unwrap_err();
    assert!(problem.message.contains("10 nodes are not a fat tree") && problem.help.is_some(), "{problem}");
}

#[test]
fn triggers_are_flows_that_wait_for_what_their_sender_knows() {
    let matrix = "\
Nodes 16
Connections 5
Triggers 2
# A ring: who has received goes on.
0->1 id 1 start 0 size 1000 recv_done_trigger 1
1->2 id 2 trigger 1 size 1000
3->4 id 3 start 0 size 1000 send_done_trigger 2
3->5 id 4 start 0 size 1000 send_done_trigger 2
3->6 id 5 trigger 2 size 1000
trigger id 1 oneshot
trigger id 2 barrier count 2
";
    let imported = read(matrix, Some(TREE)).unwrap();
    assert!(imported.flows.contains("\nh1,h2,1000,0,,c0\n"), "{}", imported.flows);
    assert!(imported.flows.ends_with("\nh3,h6,1000,0,,c2;c3\n"), "{}", imported.flows);
    let finished = run::run(load(&imported), &mut |_, _| true);
    let start = |flow: usize| finished.outcome.flows[flow].start;
    assert!(start(1) > start(0) && start(4) > start(3), "they wait");
}

#[test]
fn what_is_wrong_or_cannot_be_said_is_refused_with_its_line_and_a_remedy() {
    let head = "Nodes 16\nConnections 1\n";
    let two = "Nodes 16\nConnections 2\nTriggers 1\n";
    for (matrix, line, message) in [
        ("Connections 0\n".to_string(), None, "how many Nodes"),
        ("Nodes 16\nConnections 2\n0->1 start 0 size 1".into(), None, "says Connections 2, but has 1"),
        (format!("{head}0-1 start 0 size 1"), Some(3), "unknown word \"0-1\""),
        (format!("{head}0->x start 0 size 1"), Some(3), "\"0->x\" is not A->B"),
        (format!("{head}0->16 start 0 size 1"), Some(3), "there is no node 16"),
        (format!("{head}4->4 start 0 size 1"), Some(3), "a node sends to itself"),
        (format!("{head}0->1 start 0"), Some(3), "has no size above 0"),
        (format!("{head}0->1 start 0 size 0"), Some(3), "has no size above 0"),
        (format!("{head}0->1 start -5 size 1"), Some(3), "start: expected a time"),
        ("Nodes 16\nConnections 0\n".into(), None, "has no connections"),
        (format!("{head}0->1 start 18000000000000000000 size 1"), Some(3), "later than a scenario can say"),
        (format!("{head}0->1 start 0 size 1000000000001"), Some(3), "more than a flow can have"),
        (
            format!(
                "{two}0->1 id 1 trigger 1 size 1 send_done_trigger 1\n0->2 id 2 start 0 size 1\ntrigger id 1 oneshot"
            ),
            Some(4),
            "wait",
        ),
        (format!("{head}0->1 start 0 size big"), Some(3), "size: expected a whole number, found \"big\""),
        (format!("{head}0->1 size 1"), Some(3), "needs a start or a trigger"),
        (format!("{head}0->1 start 0 trigger 1 size 1"), Some(3), "needs a start or a trigger"),
        (format!("{head}0->1 start 0 size 1 prio x"), Some(3), "prio: expected a whole number"),
        (format!("{head}0->1 start 0 size 1 addon 3"), Some(3), "addon is not read"),
        (format!("{head}0->1 msg start 0 size 1"), Some(3), "a message needs the id"),
        (
            "Nodes 16\nConnections 2\n0->1 id 1 msg start 0 size 1\n0->1 id 1 start 0 size 1".into(),
            Some(4),
            "id 1 is there twice",
        ),
        (
            "Nodes 16\nConnections 2\n0->1 id 1 msg start 0 size 1\n0->2 id 1 msg start 0 size 1".into(),
            Some(4),
            "between other nodes: 0->1",
        ),
        (format!("{head}0->1 start 0 size 1 colour 3"), Some(3), "unknown word \"colour\""),
        (format!("{head}0->1 trigger 1 size 1"), Some(3), "there is no trigger 1"),
        (
            format!("{head}failure switch_type AGG switch_id 1"),
            Some(3),
            "needs a switch_type, a switch_id and a link_id",
        ),
        (format!("{head}failure switch_type TOR switch_id 1 link_id 0"), Some(3), "do not fail in htsim either"),
        (
            format!("{head}Failures 1\n0->1 start 0 size 1\nfailure switch_type AGG switch_id 8 link_id 0"),
            Some(5),
            "there is no aggregation switch 8",
        ),
        (
            format!("{head}Failures 1\n0->1 start 0 size 1\nfailure switch_type AGG switch_id 7 link_id 2"),
            Some(5),
            "there is no link 2 upwards",
        ),
        (
            format!("{head}0->1 start 0 size 1\nfailure switch_type AGG switch_id 1 link_id 0"),
            None,
            "says Failures 0, but has 1",
        ),
        (
            format!(
                "{two}0->1 id 1 start 0 size 1 recv_done_trigger 1\n5->2 id 2 trigger 1 size 1\ntrigger id 1 oneshot"
            ),
            Some(5),
            "5 is to start when 1 knows that 0->1 is done",
        ),
        (
            format!(
                "{two}0->1 id 1 start 0 size 1 send_done_trigger 1\n1->2 id 2 trigger 1 size 1\ntrigger id 1 oneshot"
            ),
            Some(5),
            "1 is to start when 0 knows",
        ),
        (
            format!(
                "{two}0->1 id 1 start 0 size 1 recv_done_trigger 1\n1->2 id 2 trigger 1 size 1\ntrigger id 1 multishot"
            ),
            Some(6),
            "trigger 1 is multishot",
        ),
        (
            format!(
                "{two}0->1 id 1 start 0 size 1 recv_done_trigger 1\n1->2 id 2 trigger 1 size 1\ntrigger id 1 barrier count 2"
            ),
            Some(6),
            "is a barrier of 2, but 1",
        ),
        (
            format!("{two}0->1 id 1 start 0 size 1\n1->2 id 1 start 0 size 1\ntrigger id 1 oneshot"),
            Some(5),
            "id 1 is there twice",
        ),
    ] {
        let problem = read(&matrix, Some(TREE)).expect_err(&matrix);
        assert!(problem.message.contains(message), "{matrix}: {problem}");
        assert_eq!((problem.file.as_str(), problem.line), ("a.cm", line), "{problem}");
        assert!(problem.help.is_some(), "{problem}");
    }
    for (from, to, message) in [
        ("Nodes 16", "Nodes 8", "Radix_Down of Tier 2 is 4, but the rest needs 2"),
        ("Nodes 16", "Nodes 18", "Nodes by Podsize: 18 is not a multiple of 4"),
        ("Tiers 3", "Tiers 2", "says Tiers 2, and has Tier 0, 1, 2"),
        ("Radix_Up 2", "Radix_Up 3", "Radix_Up of Tier 0 is 3, but the rest needs 2"),
        ("Downlink_Latency_ns 500", "", "Tier 0 lacks its speed, latency or radix"),
        ("Switch_Latency_ns 200\n\nTier 1", "\nTier 1", "different Switch_Latency_ns"),
        ("Queue_Up 100000", "Queue_In 1", "unknown key \"Queue_In\""),
        ("Podsize 4", "Podsize four", "Podsize: expected a whole number"),
        ("Podsize 4", "Pods 4", "unknown key \"Pods\""),
        (
            "Downlink_speed_Gbps 100",
            "Downlink_speed_Gbps 100001",
            "Downlink_speed_Gbps is 100001, and 100000 is the most",
        ),
        ("Downlink_Latency_ns 500", "Downlink_Latency_ns 1000000001", "and 1000000000 is the most"),
        ("Radix_Down 2", "Oversubscribed 18446744073709551615", "and 1048576 is the most"),
        ("Radix_Down 2", "Bundle 1048577", "and 1048576 is the most"),
    ] {
        let topology = TREE.replacen(from, to, 1);
        let problem = read(PERMUTATION, Some(&topology)).expect_err(to);
        assert!(problem.message.contains(message), "{to}: {problem}");
        assert!(problem.help.is_some(), "{problem}");
    }
}

#[test]
fn long_links_get_the_memory_that_they_need() {
    let matrix = "Nodes 32\nConnections 1\n31->0 start 0 size 1\n";
    let long = LEAF_SPINE.replace("Downlink_Latency_ns 2000", "Downlink_Latency_ns 2000000");
    let imported = read(matrix, Some(&long)).unwrap();
    assert!(imported.scenario.contains("\n[switch]\nbuffer = \""), "{}", imported.scenario);
    assert!(imported.notes.iter().any(|note| note.starts_with("switch.buffer is ")), "{:?}", imported.notes);
    load(&imported);
}

#[test]
fn topologies_beyond_all_memory_are_refused_before_a_graph_is_written() {
    let matrix = "Nodes 2\nConnections 1\n0->1 start 0 size 1\n";
    let begin = std::time::Instant::now();
    // 65 536 pods of one host each: as many racks.
    let pods = "Nodes 65536\nTiers 3\nPodsize 1\n\
                Tier 0\nDownlink_speed_Gbps 100\nDownlink_Latency_ns 1\nRadix_Down 1\nRadix_Up 1\n\
                Tier 1\nDownlink_speed_Gbps 100\nDownlink_Latency_ns 1\nRadix_Down 1\nRadix_Up 1\n\
                Tier 2\nDownlink_speed_Gbps 100\nDownlink_Latency_ns 1\nRadix_Down 65536\n";
    let problem = read(matrix, Some(pods)).unwrap_err();
    assert!(problem.message.contains("ports at one switch") && problem.file == "a.topo", "{problem}");
    let problem = read("Nodes 1024000\nConnections 1\n0->1 start 0 size 1\n", None).unwrap_err();
    assert!(problem.message.starts_with("what it describes cannot be run: "), "{problem}");
    assert!(problem.message.contains("more than 1000000 nodes") && problem.file == "a.cm", "{problem}");
    assert!(begin.elapsed().as_secs() < 5, "{:?}", begin.elapsed());
}

const MESSAGES: &str = include_str!("../../../../tests/samples/htsim/messages.cm");

#[test]
fn messages_are_flows_one_after_the_other_and_failed_links_are_not_there() {
    for topology in [Some(TREE), None] {
        let imported = read(MESSAGES, topology).unwrap();
        assert!(imported.scenario.contains("[nic]\nqueues = \"destination\"\n"), "{}", imported.scenario);
        let resolved = load(&imported);
        let graph = &resolved.setup.graph;
        let name = |node: fabric::id::NodeId| graph.nodes[node.index()].name.as_str();
        let up: Vec<&str> = graph.links.iter().filter(|link| name(link.a) == "agg1").map(|link| name(link.b)).collect();
        assert_eq!(up, ["core1"], "the second link of agg1 went to core3");
        let notes = imported.notes.join("\n");
        assert!(
            notes.contains("prio is left out, on 1 connection") && notes.contains("messages to the same host"),
            "{notes}"
        );
        let outcome = resolved.simulate(&mut |_, _| true);
        assert!(outcome.complete());
    }
}

#[test]
fn starts_are_whole_microseconds_where_they_are_said_to_be() {
    let matrix = Text { name: "a.cm", text: "Nodes 16\nConnections 2\n0->15 start 3 size 1\n3->1 start 1.9 size 9\n" };
    let imported = import_from(matrix, Starts::Microseconds, None, "made").unwrap();
    assert!(
        imported.flows.contains("h0,h15,1,3000000,,") && imported.flows.contains("h3,h1,9,1000000,,"),
        "{}",
        imported.flows
    );
}

#[test]
fn all_lines_that_are_wrong_are_told_at_once() {
    let matrix = "Nodes 16\nConnections 3\n0->1 start 0\n0=1\n2->3 start 0 size 1\nfailure\n";
    let lines: Vec<Option<usize>> =
        read(matrix, None).unwrap_err().split().iter().map(|problem| problem.line).collect();
    assert_eq!(lines, [Some(3), Some(4), Some(6)]);
}
