//! Why things are stopped: what a person worked out by hand of the examples (docs/guides/why.md), and what must hold of any run.

use crate::same::assert_same;
use engine::Time;
use fabric::Outcome;
use fabric::probe::{Scope, Stop, Waiting};
use fabric::routing::PortMap;
use fabric::topology::Graph;
use results::causes::{Kind, Root};
use scenario::Scenario;
use scenario::resolve::{Resolved, resolve};
use std::collections::BTreeMap;
use std::path::Path;

/// What cannot be otherwise, whatever the scheme: every stop is there, and every chain ends in a root that the stops confirm.
pub fn check(graph: &Graph, outcome: &Outcome) {
    let map = PortMap::new(graph);
    let all = outcome.stops.as_ref().expect("the run was asked why");
    assert!(all.stops.is_sorted_by_key(|stop| (stop.from, stop.port)), "in order of time");
    let mut paused: BTreeMap<u32, Vec<(Time, Time)>> = BTreeMap::new();
    let mut held = vec![Time::ZERO; outcome.flows.len()];
    for (row, stop) in all.stops.iter().enumerate() {
        let until = stop.until.unwrap_or(outcome.end);
        assert!(stop.from <= until && stop.ordered.is_none_or(|ordered| ordered <= stop.from), "{stop:?}");
        match stop.scope {
            Scope::Class(_) | Scope::Queue(_) => paused.entry(stop.port).or_default().push((stop.from, until)),
            Scope::Flow(flow) => held[flow.index()] += until - stop.from,
            Scope::Held(_) => {}
        }
        check_cause(&map, outcome, row, stop);
        check_root(&all.stops, row);
    }
    // The stops of ports are all pauses that were counted, and those of flows all holds.
    for (port, total) in outcome.paused.iter().enumerate() {
        let mut spans = paused.remove(&(port as u32)).unwrap_or_default();
        spans.sort_unstable();
        let (mut sum, mut reached) = (Time::ZERO, Time::ZERO);
        for (from, until) in spans {
            sum += until.saturating_sub(from.max(reached));
            reached = reached.max(until);
        }
        assert_eq!(sum, *total, "port {port}");
    }
    for (flow, (record, held)) in outcome.flows.iter().zip(held).enumerate() {
        assert_eq!(held, record.held, "flow {flow}");
    }
    for kept in &all.kept {
        let stop = &all.stops[kept.stop as usize];
        let life = stop.until.unwrap_or(outcome.end) - stop.from;
        assert!(Time::ZERO < kept.time && kept.time <= life, "{kept:?} at {stop:?}");
    }
}

/// A port that waited for a stop did so when the order was given; one that did not is at the node that gave it.
fn check_cause(map: &PortMap, outcome: &Outcome, row: usize, stop: &Stop) {
    let all = outcome.stops.as_ref().expect("the run was asked why");
    let Some(fill) = stop.fill else {
        return assert_eq!(stop.cause, None, "stop {row}");
    };
    // Of a stop that did not end it is the end of the run that counts, unless the node was empty by then.
    let ordered = stop.ordered.unwrap_or(stop.from);
    let then = [ordered, if stop.until.is_none() { outcome.end } else { ordered }];
    match (fill.waiting, stop.cause.map(|cause| &all.stops[cause as usize])) {
        (Waiting::Stopped, Some(cause)) => {
            assert_eq!(cause.port, fill.port, "stop {row}");
            let covers = |then: Time| cause.from <= then && cause.until.is_none_or(|until| until >= then);
            assert!(then.into_iter().any(covers), "stop {row}: {cause:?} at {then:?}");
        }
        (Waiting::Draining, Some(cause)) => {
            assert_eq!(cause.port, fill.port, "stop {row}");
            assert!(cause.until.is_some_and(|until| until <= then[1]), "stop {row}: {cause:?} at {then:?}");
        }
        (Waiting::Busy | Waiting::Down | Waiting::Receiver, None) => {}
        (waiting, cause) => panic!("stop {row}: {waiting:?} with {cause:?}"),
    }
    // A signal may be about a link further on.
    if fill.bytes > 0 {
        assert_eq!(map.node[fill.port as usize], stop.by, "stop {row}: {stop:?}");
    }
}

/// Following causes comes to the root that is named, and ends there or goes round.
fn check_root(stops: &[Stop], first: usize) {
    let mut row = first as u32;
    for _ in 0..=stops.len() {
        if row == stops[first].root {
            let mut next = stops[row as usize].cause;
            // It has no cause, or comes back to itself.
            for _ in 0..=stops.len() {
                match next {
                    None => return assert_eq!(stops[row as usize].cause, None),
                    Some(again) if again == row => return,
                    Some(other) => next = stops[other as usize].cause,
                }
            }
            break;
        }
        row = stops[row as usize].cause.unwrap_or_else(|| panic!("stop {first} ends at {row}, not at its root"));
    }
    panic!("stop {first} does not lead to its root");
}

fn example(name: &str, preset: &str, more: &[&str]) -> Resolved {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../examples/{name}.toml"));
    let sets = [format!("scheme.preset={preset}"), "measure.why=true".into()];
    let sets: Vec<String> = sets.into_iter().chain(more.iter().map(|set| set.to_string())).collect();
    Scenario::load(&path, &sets).and_then(resolve).unwrap_or_else(|problem| panic!("{problem}"))
}

/// The roots of an example, after all that must hold of it was checked.
fn roots(name: &str, preset: &str, more: &[&str]) -> Vec<Root> {
    let resolved = example(name, preset, more);
    let graph = resolved.setup.graph.clone();
    let finished = run::run(resolved, &mut |_, _| true);
    check(&graph, &finished.outcome);
    finished.summary.why.expect("the run was asked why").roots
}

#[test]
fn the_hot_spot_is_the_root_and_only_pfc_makes_a_victim_of_the_bystander() {
    for preset in ["pfc", "bfc", "sfc", "dvl"] {
        let roots = roots("hot_spot", preset, &[]);
        let worst = &roots[0];
        assert_eq!((worst.kind, worst.place.as_str(), worst.flows), (Kind::Saturated, "sw1->h5", 4), "{preset}");
        // By way of sw0->sw1, or from the switch to the senders.
        assert_eq!(worst.depth, if preset == "sfc" { 1 } else { 2 }, "{preset}");
        let victims: Vec<u64> = roots.iter().flat_map(|root| &root.worst_victims).map(|victim| victim.flow).collect();
        // Flow 0 is the bystander: it starts first.
        assert_eq!(victims, if preset == "pfc" { vec![0] } else { vec![] }, "{preset}");
    }
}

#[test]
fn an_incast_has_one_root_and_no_victims() {
    for preset in ["pfc", "bfc", "sfc", "dvl"] {
        let roots = roots("incast", preset, &[]);
        assert_eq!(roots.len(), 1, "{preset}");
        let root = &roots[0];
        assert_eq!((root.kind, root.place.as_str(), root.flows), (Kind::Saturated, "sw0->h0", 16), "{preset}");
        assert_eq!((root.waiting_flows, root.victims), (16, 0), "{preset}");
        // DVL also holds a queue of the congested port itself, behind what was there before.
        let (depth, ports) = if preset == "dvl" { (2, 17) } else { (1, 16) };
        assert_eq!((root.depth, root.stopped_ports), (depth, ports), "{preset}");
    }
}

#[test]
fn a_deadlock_is_a_root_of_its_own_and_portfc_has_none() {
    let pfc = roots("bcube_deadlock", "pfc", &[]);
    assert_eq!(pfc[0].kind, Kind::Deadlock);
    // The square, in one of its two directions.
    let square = ["h0->l0s0", "l0s0->h1", "h1->l1s1", "l1s1->h5", "h5->l0s1", "l0s1->h4", "h4->l1s0", "l1s0->h0"];
    assert!(pfc.iter().any(|root| root.kind == Kind::Deadlock && root.ports == square), "{pfc:?}");
    assert!(pfc.iter().all(|root| root.kind == Kind::Saturated || root.until_ps.is_none()));
    let portfc = roots("bcube_deadlock", "portfc", &[]);
    for root in &portfc[..8] {
        let (from, to) = root.place.split_once("->").expect("a port");
        assert_eq!((root.kind, &from[..1]), (Kind::Saturated, "l"), "{}", root.place);
        assert!(["h0", "h1", "h4", "h5"].contains(&to), "{}", root.place);
    }
}

#[test]
fn a_slow_receiver_is_the_root_from_the_instant_it_is_slow() {
    for (preset, depth, victims) in [("pfc", 4, 1), ("sfc", 2, 0), ("bfc", 4, 0)] {
        let roots = roots("slow_receiver", preset, &["stop=1ms"]);
        let named = |kind, place: &str| {
            let found = roots.iter().find(|root| root.kind == kind && root.place == place);
            found.unwrap_or_else(|| panic!("{preset}: {place} is no root"))
        };
        let slow = named(Kind::SlowReceiver, "h15");
        assert_eq!((slow.depth, slow.victims), (depth, victims), "{preset}");
        let before = named(Kind::Saturated, "leaf1->h15");
        assert_eq!(before.flows, 4, "{preset}");
        assert!(before.from_ps < 100_000_000 && 100_000_000 < slow.from_ps, "{preset}");
    }
}

#[test]
fn every_preset_gives_the_same_asked_why_or_not_on_any_number_of_threads() {
    const TRAFFIC: &str = "\
        [switch]\nbuffer = \"1500KB\"\n\
        [[load]]\nsizes = \"hadoop\"\nload = 0.5\nduration = \"60us\"\n\
        [[incast]]\ndegree = 8\nsize_each = \"60KB\"\nevery = \"30us\"\narrivals = \"fixed\"\nduration = \"60us\"\n";
    for preset in scenario::presets::all() {
        let fabric = match preset.name {
            "portfc" => "kind = \"bcube\"\nn = 4\nk = 1\n",
            _ => "kind = \"leaf-spine\"\nleaves = 3\nhosts_per_leaf = 4\nspines = 2\n",
        };
        let text = format!("stop = \"150us\"\n[topology]\n{fabric}{TRAFFIC}");
        let read = |why: bool| {
            let sets = [format!("scheme.preset=\"{}\"", preset.name), format!("measure.why={why}")];
            let scenario = Scenario::parse("a.toml", &text, Path::new("/nowhere"), &sets);
            scenario.and_then(resolve).unwrap_or_else(|problem| panic!("{problem}\n{text}"))
        };
        let (plain, asked) = (read(false), read(true));
        let one = asked.simulate_on(1, &mut |_, _| true);
        check(&asked.setup.graph, &one);
        let without = plain.simulate_on(1, &mut |_, _| true);
        assert!(without.stops.is_none());
        assert_same(&one, &without, preset.name);
        for (threads, blocks) in [(2, 1), (3, 3), (1, 4)] {
            let other = asked.simulate_in(threads, Some(blocks), &mut |_, _| true);
            assert!(other.stops.is_some());
            assert_same(&one, &other, &format!("{} on {threads} threads in {blocks} blocks", preset.name));
        }
    }
}
