//! A circle of switches that wait for one another: found and named where there is one, and never where there is none.

use engine::Time;
use fabric::Outcome;
use fabric::network::Stall;
use fabric::routing::PortMap;
use fabric::topology::{Graph, Kind};
use lab::resolve::{Resolved, resolve};
use lab::scenario::Scenario;
use std::path::Path;

/// A ring of switches with a host on each, as a graph file.
fn ring(switches: u32) -> String {
    let mut text = String::new();
    for (kind, letter) in [("host", 'h'), ("switch", 's')] {
        (0..switches).for_each(|i| text += &format!("[[node]]\nname = \"{letter}{i}\"\nkind = \"{kind}\"\n"));
    }
    let mut link = |a: String, b: String| {
        text += &format!("[[link]]\nbetween = [\"{a}\", \"{b}\"]\nrate = \"100Gbps\"\ndelay = \"1us\"\n");
    };
    (0..switches).for_each(|i| link(format!("h{i}"), format!("s{i}")));
    (0..switches).for_each(|i| link(format!("s{i}"), format!("s{}", (i + 1) % switches)));
    text
}

/// Every host sends to the one two places on.
fn flows(hosts: u32, size: &str) -> String {
    let flow = |i: u32| format!("[[flow]]\nsrc = \"h{i}\"\ndst = \"h{}\"\nsize = \"{size}\"\n", (i + 2) % hosts);
    (0..hosts).map(flow).collect()
}

fn resolved(text: &str, base: &Path, sets: &[&str]) -> Resolved {
    let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
    let read = |sets: &[String]| Scenario::parse("a.toml", text, base, sets).and_then(resolve);
    if sets.iter().any(|set| set.starts_with("switch.buffer")) {
        return read(&sets).unwrap_or_else(|problem| panic!("{problem}"));
    }
    // The least buffer that is accepted; its refusal names it.
    let Err(problem) = read(&[sets.as_slice(), &["switch.buffer=1B".into()]].concat()) else {
        panic!("one byte is enough")
    };
    let least = problem.help.as_deref().unwrap().split('"').nth(1).unwrap();
    let buffer = format!("switch.buffer={least}");
    read(&[sets.as_slice(), &[buffer]].concat()).unwrap_or_else(|problem| panic!("{problem}"))
}

fn run(resolved: &Resolved) -> Outcome {
    let outcome = resolved.simulate(&mut |_, _| true);
    assert_eq!(outcome.violations, Vec::<String>::new());
    outcome
}

fn on_a_ring(switches: u32, size: &str, sets: &[&str]) -> (Outcome, Graph) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("ring.toml"), ring(switches)).unwrap();
    let text = format!(
        "[topology]\nkind = \"file\"\npath = \"ring.toml\"\n[scheme]\npreset = \"pfc\"\n{}",
        flows(switches, size)
    );
    let resolved = resolved(&text, folder.path(), sets);
    let outcome = run(&resolved);
    (outcome, resolved.setup.graph)
}

/// Each port leads to the node of the next one, and none comes twice.
#[track_caller]
fn is_a_circle(circle: &[u32], graph: &Graph) {
    let map = PortMap::new(graph);
    assert!(circle.len() >= 2, "{circle:?}");
    for (place, &port) in circle.iter().enumerate() {
        let next = circle[(place + 1) % circle.len()];
        let far = map.node[map.peer[port as usize] as usize];
        assert_eq!(far, map.node[next as usize], "port {port} leads to node {far}, not to port {next}: {circle:?}");
        assert_eq!(graph.nodes[far as usize].kind, Kind::Switch);
        assert!(!circle[..place].contains(&port), "{circle:?}");
    }
}

#[test]
fn a_loaded_ring_of_five_switches_deadlocks_and_the_run_ends_by_itself() {
    let (outcome, graph) = on_a_ring(5, "10MB", &[]);
    assert!(!outcome.complete() && !outcome.interrupted);
    let Some(Stall::Deadlock(circle)) = &outcome.stall else { panic!("{:?}", outcome.stall) };
    is_a_circle(circle, &graph);
    // The only circle there is goes around the whole ring, clockwise.
    assert_eq!(circle.len(), 5);
    assert!(outcome.left > 0, "the packets that wait are still there");
    assert_eq!(outcome.counts.dropped_full, 0);
    assert!(outcome.end < Time::from_ms(200), "{}", outcome.end);
}

#[test]
fn larger_rings_deadlock_too() {
    for switches in [6, 7, 9] {
        let (outcome, graph) = on_a_ring(switches, "10MB", &[]);
        let Some(Stall::Deadlock(circle)) = &outcome.stall else { panic!("{switches}: {:?}", outcome.stall) };
        is_a_circle(circle, &graph);
        assert_eq!(circle.len() as u32, switches);
    }
}

#[test]
fn timeouts_do_not_hide_a_deadlock() {
    // Senders that could start over are paused themselves: nothing will ever move again.
    let (outcome, graph) = on_a_ring(5, "10MB", &["nic.timeout=500us"]);
    let Some(Stall::Deadlock(circle)) = &outcome.stall else { panic!("{:?}", outcome.stall) };
    is_a_circle(circle, &graph);
}

#[test]
fn a_summary_names_the_ports_of_the_circle() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("ring.toml"), ring(5)).unwrap();
    let text = format!("[topology]\nkind = \"file\"\npath = \"ring.toml\"\n{}", flows(5, "10MB"));
    let finished = lab::run::run(resolved(&text, folder.path(), &[]), &mut |_, _| true);
    assert_eq!(finished.summary.ending, "deadlock");
    let waiting: std::collections::BTreeSet<_> = finished.summary.waiting.iter().map(String::as_str).collect();
    let expected = ["s0 -> s1", "s1 -> s2", "s2 -> s3", "s3 -> s4", "s4 -> s0"];
    assert_eq!(waiting.into_iter().collect::<Vec<_>>(), expected);
}

#[test]
fn a_ring_with_room_for_everything_does_not_deadlock() {
    let (outcome, _) = on_a_ring(5, "100KB", &["switch.buffer=100MB"]);
    assert!(outcome.complete());
    assert_eq!(outcome.stall, None);
}

#[test]
fn a_deadlock_that_is_stopped_is_still_called_one() {
    // The stop comes long after the last packet moved, and long before the run would end by itself.
    let (outcome, graph) = on_a_ring(5, "10MB", &["stop=50ms"]);
    let Some(Stall::Deadlock(circle)) = &outcome.stall else { panic!("{:?}", outcome.stall) };
    is_a_circle(circle, &graph);
}

#[test]
fn a_run_that_is_stopped_while_it_moves_is_not_stalled() {
    let (outcome, _) = on_a_ring(5, "10MB", &["stop=5us"]);
    assert!(!outcome.complete());
    assert_eq!(outcome.stall, None);
}

#[test]
fn the_same_load_never_deadlocks_on_a_leaf_spine() {
    // Up and then down: no way leads from a spine's output back to its input.
    for hosts in [5, 6, 9] {
        for spines in 1..=4 {
            let text = format!(
                "[topology]\nkind = \"leaf-spine\"\nleaves = {hosts}\nhosts_per_leaf = 1\nspines = {spines}\n\
                 [scheme]\npreset = \"pfc\"\n{}",
                flows(hosts, "1MB")
            );
            let outcome = run(&resolved(&text, Path::new("/nowhere"), &[]));
            assert!(outcome.complete(), "{hosts} hosts and {spines} spines: {:?}", outcome.stall);
            assert_eq!((&outcome.stall, outcome.left, outcome.counts.dropped_full), (&None, 0, 0));
        }
    }
}
