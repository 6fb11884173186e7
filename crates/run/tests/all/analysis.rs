//! What can deadlock, by analysis: the right answer for fabrics that are known, and never one that a run disproves.

use crate::graphs::{around, flow, graph, ring};
use fabric::run::Stall;
use proptest::prelude::*;
use scenario::Scenario;
use scenario::deadlock::{Answer, Scope, analyse};
use scenario::resolve::{Resolved, resolve};
use std::collections::BTreeSet;
use std::path::Path;

const BOTH: [Scope; 2] = [Scope::Any, Scope::Flows];

fn load(text: &str, base: &Path, sets: &[&str]) -> Resolved {
    let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
    Scenario::parse("a.toml", text, base, &sets).and_then(resolve).unwrap_or_else(|problem| panic!("{problem}"))
}

/// A scenario on a graph of its own, with the least buffer that is accepted.
fn on_graph(switches: u32, links: &[(u32, u32)], flows: &str, sets: &[&str]) -> Resolved {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("graph.toml"), graph(switches, links)).unwrap();
    let text = format!("[topology]\nkind = \"file\"\npath = \"graph.toml\"\n{flows}");
    let all: Vec<String> = sets.iter().map(|set| set.to_string()).chain(["switch.buffer=1B".into()]).collect();
    let refused = Scenario::parse("a.toml", &text, folder.path(), &all).and_then(resolve);
    let least = refused.err().and_then(|problem| Some(problem.help.as_deref()?.split('"').nth(1)?.to_string()));
    let buffer = format!("switch.buffer={}", least.unwrap_or("1MB".into()));
    load(&text, folder.path(), &[sets, &[&buffer]].concat())
}

fn answer(resolved: &Resolved) -> Answer {
    analyse(resolved, &BOTH).unwrap()
}

#[test]
fn a_clos_is_free_under_every_scheme_that_waits_and_says_that_paths_go_up_and_down() {
    for topology in ["star", "dumbbell", "leaf-spine", "fat-tree"] {
        for preset in ["pfc", "dcqcn", "hpcc", "bfc", "bfc-vfid", "sfc", "floodgate", "cbfc"] {
            let text = format!("[topology]\nkind = \"{topology}\"\n{}", flow(0, 3, "1MB") + &flow(3, 1, "1MB"));
            let found = answer(&load(&text, Path::new("/nowhere"), &[&format!("scheme.preset={preset}")]));
            assert!(found.free() && found.never.is_none(), "{topology}, {preset}: {found:?}");
            assert_eq!(found.cases.len(), 2);
            if topology == "fat-tree" {
                assert!(found.cases[0].up_down && found.cases[0].waits > 0);
                assert!(found.text().contains("any traffic: free of deadlock: every path goes up and then down"));
            }
        }
    }
}

#[test]
fn a_ring_can_deadlock_and_the_answer_names_links_and_hosts() {
    for preset in ["pfc", "bfc", "sfc", "floodgate", "cbfc"] {
        let set = format!("scheme.preset={preset}");
        let found = answer(&on_graph(5, &ring(5), &around(5, "10MB"), &[&set]));
        assert!(!found.free(), "{preset}");
        let [any, flows] = found.cases.as_slice() else { panic!("{found:?}") };
        for case in [any, flows] {
            let links: BTreeSet<String> = case.cycle.iter().map(|w| format!("{} {}", w.from, w.to)).collect();
            let expected = ["s0 s1", "s1 s2", "s2 s3", "s3 s4", "s4 s0"].map(String::from);
            assert_eq!(links.into_iter().collect::<Vec<_>>(), expected);
        }
        let text = found.text();
        assert!(text.contains("  s0 -> s1  waits for  s1 -> s2  as from h0 to h2\n"), "{text}");
    }
}

#[test]
fn deflections_in_rising_channels_are_free_on_a_clos() {
    for topology in ["leaf-spine", "fat-tree"] {
        for deflections in 0..=3 {
            let text = format!("[topology]\nkind = \"{topology}\"\n{}", flow(0, 20, "1MB"));
            let sets = ["scheme.flow_control=iofd", &format!("scheme.iofd.deflections={deflections}")];
            let found = answer(&load(&text, Path::new("/nowhere"), &sets));
            assert!(found.free() && found.never.is_none(), "{topology}, {deflections}: {}", found.text());
            assert_eq!(found.cases[0].up_down, deflections == 0, "detours come down and go up again");
        }
    }
    // In a ring the shortest paths alone close the cycle.
    let ring = on_graph(5, &ring(5), &around(5, "1MB"), &["scheme.flow_control=iofd"]);
    assert!(!answer(&ring).free());
}

#[test]
fn pfc_can_deadlock_where_hosts_forward_and_portfc_cannot() {
    for n in [2, 4, 8] {
        let text =
            format!("[topology]\nkind = \"bcube\"\nn = {n}\nk = 1\n{}", flow(0, n + 1, "1MB") + &flow(n, 1, "1MB"));
        let of = |preset: &str| answer(&load(&text, Path::new("/nowhere"), &[&format!("scheme.preset={preset}")]));
        let pfc = of("pfc");
        assert_eq!(pfc.cases[0].cycle.len(), 8, "a square of hosts and the switches between them");
        assert!(pfc.cases[0].valley.is_some());
        assert!(!of("bfc").free());
        let portfc = of("portfc");
        assert!(portfc.free() && portfc.never.is_none() && portfc.cases[0].waits > 0, "{portfc:?}");
    }
}

#[test]
fn what_never_waits_is_free_anywhere_and_says_why() {
    for (preset, why) in [("lossy", "dropped"), ("dcqcn-no-pfc", "dropped"), ("ideal-fq", "dropped")] {
        let found = answer(&on_graph(5, &ring(5), &around(5, "1MB"), &[&format!("scheme.preset={preset}")]));
        assert!(found.free() && found.cases.is_empty());
        assert!(found.never.as_deref().is_some_and(|text| text.contains(why)), "{found:?}");
    }
    let found = answer(&on_graph(5, &ring(5), &around(5, "1MB"), &["scheme.preset=sfc", "scheme.sfc.pfc=false"]));
    assert!(found.never.is_some_and(|why| why.contains("runs out by itself")));
    let found = answer(&on_graph(5, &ring(5), &around(5, "1MB"), &["scheme.preset=pfc", "switch.unlimited=true"]));
    assert!(found.never.is_some_and(|why| why.contains("memory")));
}

#[test]
fn flows_that_leave_the_ring_open_are_free_where_any_traffic_is_not() {
    let found = answer(&on_graph(5, &ring(5), &(flow(0, 2, "1MB") + &flow(2, 4, "1MB")), &["scheme.preset=pfc"]));
    assert!(!found.cases[0].free && found.cases[1].free);
    assert_eq!((found.cases[0].traffic, found.cases[1].traffic), ("any", "flows"));
    let only = on_graph(5, &ring(5), &flow(0, 2, "1MB"), &["scheme.preset=pfc"]);
    assert!(analyse(&only, &[Scope::Flows]).unwrap().free());
}

#[test]
fn classes_do_not_wait_for_one_another() {
    // Five flows that close a ring together, but not in one class.
    let flows = |class: u32| -> String {
        (0..5).map(|i| flow(i, (i + 2) % 5, "1MB") + &format!("class = {}\n", if i == 4 { class } else { 1 })).collect()
    };
    let sets = ["scheme.preset=pfc", "traffic.classes=2"];
    let apart = on_graph(5, &ring(5), &flows(0), &sets);
    assert!(analyse(&apart, &[Scope::Flows]).unwrap().free());
    let together = analyse(&on_graph(5, &ring(5), &flows(1), &sets), &[Scope::Flows]).unwrap();
    assert_eq!(together.cases[0].cycle[0].lane.as_deref(), Some("class 1"));
}

#[test]
fn every_state_of_the_links_is_looked_at_and_the_change_between_them() {
    // leaf0 loses spine1, leaf1 loses spine0: what goes between them comes down to another leaf and up again. Over two leaves,
    // one for each direction, that closes a cycle: a Clos with failures is no longer safe.
    let text = format!(
        "stop = \"1ms\"\n[topology]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 1\n[scheme]\npreset = \"pfc\"\n\
         [[link]]\nbetween = [\"leaf0\", \"spine1\"]\ndown = [[\"10us\"]]\n\
         [[link]]\nbetween = [\"leaf1\", \"spine0\"]\ndown = [[\"20us\"]]\n{}",
        flow(0, 1, "1MB")
    );
    let resolved = load(&text, Path::new("/nowhere"), &[]);
    let found = analyse(&resolved, &[Scope::Any]).unwrap();
    let names: Vec<&str> = found.cases.iter().map(|case| case.links.as_str()).collect();
    let last = "leaf0–spine1, leaf1–spine0 down";
    assert_eq!(names, ["all links up", "leaf0–spine1 down", last, "while routes change"]);
    assert!(found.cases[0].up_down && found.cases[1].up_down);
    assert!(!found.cases[2].up_down && found.cases[2].valley.is_some());
    let cycle: Vec<String> = found.cases[2].cycle.iter().map(|w| format!("{} {}", w.from, w.to)).collect();
    assert_eq!(cycle, ["leaf2 spine0", "spine0 leaf3", "leaf3 spine1", "spine1 leaf2"]);
    assert!(!found.cases[3].free, "what can happen in one state can happen while they change");
    assert!(found.text().contains("down and up again"));
}

type Pairs = Vec<(u32, u32)>;

/// Connected graphs of switches, and flows between their hosts. Half of them are rings with at most a chord, loaded all around.
fn fabrics() -> impl Strategy<Value = (u32, Pairs, Pairs)> {
    (4u32..8, any::<bool>()).prop_flat_map(|(count, round)| {
        let more = prop::collection::btree_set((0..count, 0..count), 0..if round { 2 } else { 6 });
        let flows = prop::collection::vec((0..count, 0..count), 4..10);
        (more, flows).prop_map(move |(more, mut flows)| {
            let mut links: BTreeSet<(u32, u32)> = (1..count).map(|i| (i - 1, i)).collect();
            links.extend(more.into_iter().filter(|(a, b)| a < b));
            if round {
                links.insert((0, count - 1));
                flows.extend((0..count).map(|i| (i, (i + 2) % count)));
            }
            flows.retain(|(src, dst)| src != dst);
            (count, links.into_iter().collect(), flows)
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The analysis may call a danger what no run meets; what it calls free must never stop.
    #[test]
    fn no_run_deadlocks_where_the_analysis_says_free((count, links, flows) in fabrics(), scheme in 0usize..5) {
        let text: String = flows.iter().map(|&(src, dst)| flow(src, dst, "4MB")).collect();
        prop_assume!(!text.is_empty());
        let set = format!("scheme.preset={}", ["pfc", "bfc", "dcqcn", "floodgate", "cbfc"][scheme]);
        let resolved = on_graph(count, &links, &text, &[&set]);
        let found = answer(&resolved);
        let outcome = resolved.simulate(&mut |_, _| true);
        prop_assert!(found.cases[1].free || !found.cases[0].free, "flows are part of any traffic");
        if let Some(Stall::Deadlock(_)) = &outcome.stall {
            prop_assert!(!found.cases[1].free, "{}", found.text());
        } else if found.cases[1].free {
            prop_assert!(outcome.complete(), "{:?}", outcome.stall);
        }
    }
}
