//! Fabrics of AI clusters: who reaches whom over what, and which can deadlock.

use scenario::Scenario;
use scenario::deadlock::{Scope, analyse};
use scenario::resolve::{Resolved, resolve};
use std::path::Path;

fn resolved(text: &str) -> Resolved {
    let scenario = Scenario::parse("a.toml", text, Path::new("/nowhere"), &[]);
    scenario.and_then(resolve).unwrap_or_else(|problem| panic!("{problem}\n{text}"))
}

const TREES: [&str; 4] = [
    "kind = \"rail-optimised\"\nservers = 3\nrails = 2\nspines = 2",
    "kind = \"dual-tor\"\nracks = 2\nhosts_per_rack = 3\nspines = 2",
    "kind = \"multi-plane\"\nplanes = 2\nleaves = 2\nhosts_per_leaf = 3\nspines = 2",
    "kind = \"three-tier\"\npods = 2\nleaves = 2\nhosts_per_leaf = 2\nspines = 2\ncores_per_spine = 1",
];
const OTHERS: [&str; 3] =
    ["kind = \"dragonfly\"\nhosts_per_switch = 1", "kind = \"slim-fly\"\nhosts_per_switch = 1", "kind = \"torus\""];

#[test]
fn every_host_reaches_every_other() {
    for shape in TREES.iter().chain(&OTHERS) {
        let text = format!(
            "[topology]\n{shape}\n[scheme]\npreset = \"pfc\"\n[[collective]]\nkind = \"all-to-all\"\nsize = \"2KB\"\n"
        );
        let finished = run::run(resolved(&text), &mut |_, _| true);
        assert_eq!(finished.summary.ending, "complete", "{shape}");
        assert_eq!(finished.summary.violations, Vec::<String>::new(), "{shape}");
    }
}

#[test]
fn trees_are_free_of_deadlock_and_others_say_what_they_need() {
    let answer = |shape: &str| {
        let text = format!(
            "[topology]\n{shape}\n[scheme]\npreset = \"pfc\"\n[[flow]]\nsrc = \"h0\"\ndst = \"h3\"\nsize = \"1KB\"\n"
        );
        analyse(&resolved(&text), &[Scope::Any]).unwrap_or_else(|problem| panic!("{problem}"))
    };
    for shape in TREES {
        assert!(answer(shape).free(), "{shape}");
    }
    for shape in OTHERS {
        let answer = answer(shape);
        assert!(!answer.free() && answer.text().contains("what to add: packets need"), "{shape}: {}", answer.text());
    }
}

#[test]
fn accelerators_of_a_server_talk_over_their_scale_up_switch() {
    let shape =
        "[topology]\nkind = \"rail-optimised\"\nservers = 2\nrails = 2\nspines = 1\n[scheme]\npreset = \"pfc\"\n";
    let flow = |dst: &str| format!("[[flow]]\nsrc = \"h0\"\ndst = \"{dst}\"\nsize = \"1KB\"\n");
    let resolved = resolved(&format!("{shape}{}{}{}", flow("h1"), flow("h2"), flow("h3")));
    let hops: Vec<u8> = resolved.setup.flows.iter().map(|flow| flow.hops).collect();
    // Its server, its rail, and another rail over the spine.
    assert_eq!(hops, [1, 1, 3]);
    let ideal: Vec<u64> = resolved.setup.flows.iter().map(|flow| flow.ideal.0).collect();
    assert!(ideal[0] < ideal[1] && ideal[1] < ideal[2], "{ideal:?}");
}

#[test]
fn both_links_of_a_host_are_used_and_one_is_enough() {
    let text = |down: &str| {
        format!(
            "[topology]\nkind = \"dual-tor\"\nracks = 2\nhosts_per_rack = 2\nspines = 2\n[scheme]\npreset = \"pfc\"\n{down}\
             [[flow]]\nsrc = \"h0\"\ndst = \"h3\"\nsize = \"20KB\"\ncount = 40\n"
        )
    };
    let both = run::run(resolved(&text("")), &mut |_, _| true);
    // The ports of h0 are the first two.
    assert!(both.outcome.sent[0] > 0 && both.outcome.sent[1] > 0);
    let down = "[[link]]\nbetween = [\"h0\", \"tor0\"]\ndown = [[\"0ps\"]]\n";
    let one = run::run(resolved(&text(down)), &mut |_, _| true);
    assert_eq!((one.summary.ending, one.outcome.sent[0]), ("complete", 0));
    assert!(one.summary.end_ps > both.summary.end_ps);
}
