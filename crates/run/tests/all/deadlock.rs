//! A cycle of switches that wait for one another: found and named where there is one, and never where there is none.

use crate::graphs::{around, graph, ring};
use engine::Time;
use fabric::Outcome;
use fabric::id::NodeId;
use fabric::routing::PortMap;
use fabric::run::{Stall, Wait};
use fabric::topology::Graph;
use scenario::Scenario;
use scenario::resolve::{Resolved, resolve};
use std::path::Path;

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
    std::fs::write(folder.path().join("ring.toml"), graph(switches, &ring(switches))).unwrap();
    let text = format!(
        "[topology]\nkind = \"file\"\npath = \"ring.toml\"\n[scheme]\npreset = \"pfc\"\n{}",
        around(switches, size)
    );
    let resolved = resolved(&text, folder.path(), sets);
    let outcome = run(&resolved);
    (outcome, resolved.setup.graph)
}

/// Each port leads to the node of the next one, and none comes twice.
#[track_caller]
fn is_a_cycle(cycle: &[Wait], graph: &Graph) {
    let map = PortMap::new(graph);
    let cycle: Vec<u32> = cycle.iter().map(|wait| wait.port).collect();
    assert!(cycle.len() >= 2, "{cycle:?}");
    for (place, &port) in cycle.iter().enumerate() {
        let next = cycle[(place + 1) % cycle.len()];
        let far = map.node[map.peer[port as usize] as usize];
        assert_eq!(far, map.node[next as usize], "port {port} leads to node {far}, not to port {next}: {cycle:?}");
        assert!(graph.forwards(NodeId(far), map.of(far).len()), "{far}");
        assert!(!cycle[..place].contains(&port), "{cycle:?}");
    }
}

#[test]
fn a_loaded_ring_of_five_switches_deadlocks_and_the_run_ends_by_itself() {
    let (outcome, graph) = on_a_ring(5, "10MB", &[]);
    assert!(!outcome.complete() && !outcome.interrupted);
    let Some(Stall::Deadlock(cycle)) = &outcome.stall else { panic!("{:?}", outcome.stall) };
    is_a_cycle(cycle, &graph);
    // The only cycle there is goes around the whole ring, clockwise.
    assert_eq!(cycle.len(), 5);
    assert!(outcome.left > 0, "the packets that wait are still there");
    assert_eq!(outcome.counts.dropped_full, 0);
    assert!(outcome.end < Time::from_ms(200), "{}", outcome.end);
}

#[test]
fn larger_rings_deadlock_too() {
    for switches in [6, 7, 9] {
        let (outcome, graph) = on_a_ring(switches, "10MB", &[]);
        let Some(Stall::Deadlock(cycle)) = &outcome.stall else { panic!("{switches}: {:?}", outcome.stall) };
        is_a_cycle(cycle, &graph);
        assert_eq!(cycle.len() as u32, switches);
    }
}

#[test]
fn timeouts_do_not_hide_a_deadlock() {
    // Senders that could start over are paused themselves: nothing will ever move again.
    let (outcome, graph) = on_a_ring(5, "10MB", &["nic.timeout=500us"]);
    let Some(Stall::Deadlock(cycle)) = &outcome.stall else { panic!("{:?}", outcome.stall) };
    is_a_cycle(cycle, &graph);
}

#[test]
fn a_summary_names_the_ports_of_the_cycle() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("ring.toml"), graph(5, &ring(5))).unwrap();
    let text = format!("[topology]\nkind = \"file\"\npath = \"ring.toml\"\n{}", around(5, "10MB"));
    let finished = run::run(resolved(&text, folder.path(), &[]), &mut |_, _| true);
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
    let Some(Stall::Deadlock(cycle)) = &outcome.stall else { panic!("{:?}", outcome.stall) };
    is_a_cycle(cycle, &graph);
}

#[test]
fn a_run_that_is_stopped_while_it_moves_is_not_stalled() {
    let (outcome, _) = on_a_ring(5, "10MB", &["stop=3us"]);
    assert!(!outcome.complete());
    assert_eq!(outcome.stall, None);
}

#[test]
fn the_same_load_never_deadlocks_on_a_leaf_spine() {
    // Up and then down: no path leads from a spine's output back to its input.
    for hosts in [5, 6, 9] {
        for spines in 1..=4 {
            let text = format!(
                "[topology]\nkind = \"leaf-spine\"\nleaves = {hosts}\nhosts_per_leaf = 1\nspines = {spines}\n\
                 [scheme]\npreset = \"pfc\"\n{}",
                around(hosts, "1MB")
            );
            let outcome = run(&resolved(&text, Path::new("/nowhere"), &[]));
            assert!(outcome.complete(), "{hosts} hosts and {spines} spines: {:?}", outcome.stall);
            assert_eq!((&outcome.stall, outcome.left, outcome.counts.dropped_full), (&None, 0, 0));
        }
    }
}

/// The square of forwarding hosts in `examples/`.
fn square(sets: &[&str]) -> Resolved {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/bcube_deadlock.toml");
    let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
    Scenario::load(&path, &sets).and_then(resolve).unwrap_or_else(|problem| panic!("{problem}"))
}

fn counter(outcome: &Outcome, name: &str) -> u64 {
    outcome.flow_control.iter().find(|counter| counter.name == name).map_or(0, |counter| counter.value)
}

/// Variations of the square: memory of the hosts, delays and who begins.
const SQUARES: [[&str; 3]; 6] = [
    ["nic.forward_buffer=100KB", "flow.0.start=0us", "seed=1"],
    ["nic.forward_buffer=80KB", "flow.1.start=3us", "seed=2"],
    ["nic.forward_buffer=100KB", "nic.forward_delay=0us", "flow.2.start=1us"],
    ["nic.forward_buffer=120KB", "switch.buffer=800KB", "flow.3.start=2us"],
    ["nic.forward_buffer=150KB", "switch.buffer=1MB", "flow.0.start=5us"],
    ["nic.forward_buffer=150KB", "nic.forward_delay=500ns", "flow.1.start=2us"],
];

#[test]
fn pfc_deadlocks_on_a_square_of_forwarding_hosts_every_time_and_portfc_never() {
    for sets in SQUARES {
        let resolved = square(&sets);
        let outcome = run(&resolved);
        let Some(Stall::Deadlock(cycle)) = &outcome.stall else { panic!("{sets:?}: {:?}", outcome.stall) };
        is_a_cycle(cycle, &resolved.setup.graph);
        assert_eq!((cycle.len(), outcome.counts.dropped()), (8, 0), "once round the square");

        let resolved = square(&[&sets[..], &["scheme.preset=portfc"]].concat());
        assert!(resolved.promised, "{:?}", resolved.notes);
        let outcome = run(&resolved);
        assert!(outcome.complete(), "{sets:?}: {:?}", outcome.stall);
        assert_eq!((outcome.left, outcome.counts.dropped(), outcome.counts.retransmitted), (0, 0, (0, 0)));
    }
}

#[test]
fn a_watchdog_breaks_the_deadlock_and_it_closes_again() {
    for sets in SQUARES {
        let resolved = square(&[&sets[..], &["scheme.preset=pfc-watchdog"]].concat());
        assert!(!resolved.promised);
        let outcome = run(&resolved);
        assert!(outcome.complete(), "{:?}", outcome.stall);
        assert!(counter(&outcome, "deadlocks_broken") >= 2, "{sets:?}: {:?}", outcome.flow_control);
        assert_eq!(counter(&outcome, "watchdog_drops"), outcome.counts.dropped_scheme);
        assert!(outcome.counts.dropped_scheme > 0 && outcome.counts.retransmitted.0 > 0);
    }
}

#[test]
fn a_deadlock_is_seen_while_other_traffic_goes_on() {
    // Two hosts that have nothing to do with the square.
    let other = ["flow.4.src=h10", "flow.4.dst=h11", "flow.4.size=100MB", "stop=500us"];
    let outcome = run(&square(&other));
    assert!(matches!(outcome.stall, Some(Stall::Deadlock(_))), "{:?}", outcome.stall);
    let busy = outcome.flows.iter().find(|flow| flow.spec.src == NodeId(10)).unwrap();
    assert!(busy.delivered > 5_000_000, "{}", busy.delivered);
    // And it does not keep flows from being tried that come later.
    let late = ["flow.4.src=h10", "flow.4.dst=h11", "flow.4.size=1MB", "flow.4.start=3ms"];
    let outcome = run(&square(&late));
    assert!(matches!(outcome.stall, Some(Stall::Deadlock(_))));
    assert_eq!(outcome.finished.len(), 1);
}

#[test]
fn portfc_refuses_what_it_is_not_made_for() {
    let refused = |text: &str, words: &[&str]| {
        let text = format!("[scheme]\npreset = \"portfc\"\n{text}[[flow]]\nsrc = 0\ndst = 1\nsize = \"1KB\"\n");
        let problem = Scenario::parse("a.toml", &text, Path::new("/nowhere"), &[]).and_then(resolve).unwrap_err();
        let shown = format!("{problem} {:?}", problem.help);
        words.iter().for_each(|word| assert!(shown.contains(word), "\"{word}\" is not in: {shown}"));
    };
    refused("[topology]\nkind = \"bcube\"\nk = 2\n", &["BCube(n, 1) only", "k = 1"]);
    refused("[topology]\nkind = \"leaf-spine\"\n", &["BCube(n, 1) only", "kind = \"bcube\""]);
    let down = "[topology]\nkind = \"bcube\"\n[[link]]\nbetween = [\"h0\", \"l0s0\"]\ndown = [[\"1us\", \"2us\"]]\n";
    refused(down, &["every link works"]);
}
