//! The examples give the same results, to the picosecond, until somebody means to change them.
//!
//! A digest that differs is either a fault or a change of behaviour. Where it is a change that was meant, the new
//! digest is in the message.

use fabric::Outcome;
use std::fmt::Write;
use std::path::{Path, PathBuf};

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

fn run(path: &Path, sets: &[&str]) -> run::Finished {
    let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
    let resolved = run::load(path, &sets).unwrap_or_else(|problem| panic!("{problem}"));
    let finished = run::run(resolved, &mut |_, _| true);
    assert_eq!(finished.summary.violations, Vec::<String>::new(), "{}", path.display());
    finished
}

/// A line per flow with everything that happened to it, in plain numbers.
fn rendering(outcome: &Outcome) -> String {
    let mut text = String::new();
    for flow in &outcome.flows {
        let spec = &flow.spec;
        let times =
            [spec.start, spec.ideal, spec.base_rtt, flow.injected, flow.received, flow.acknowledged].map(|t| t.0);
        writeln!(text, "{} {} {} {} {} {times:?}", spec.src, spec.dst, spec.class, spec.size, spec.window).unwrap();
    }
    writeln!(text, "{:?}", outcome.finished).unwrap();
    text
}

/// FNV-1a, 64 bits.
fn digest(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ byte as u64).wrapping_mul(0x0100_0000_01b3))
}

#[track_caller]
fn golden(name: &str, expected: u64) {
    let found = digest(&rendering(&run(&example(name), &[]).outcome));
    assert_eq!(found, expected, "{name} gives {found:#018x} now");
}

#[test]
fn the_deadlock_example_is_what_it_was() {
    golden("bcube_deadlock.toml", 0xe72f_8eb8_cf92_affd);
}

#[test]
fn the_incast_example_is_what_it_was() {
    golden("incast.toml", 0xbb70_de1c_7ab3_eae5);
}

#[test]
fn the_leaf_spine_example_is_what_it_was() {
    golden("leaf_spine.toml", 0xbbd5_ce0b_be55_a8e2);
}

#[test]
fn the_link_failure_example_is_what_it_was() {
    golden("link_failure.toml", 0xb89f_4b9e_a9c2_5b3f);
}

#[test]
fn the_lossy_link_example_is_what_it_was() {
    golden("lossy_link.toml", 0x3df8_c41f_4537_8f59);
}

#[test]
fn the_slow_receiver_example_is_what_it_was() {
    golden("slow_receiver.toml", 0x1c66_1e91_1b35_0646);
}

#[test]
fn the_web_search_example_is_what_it_was() {
    golden("websearch_incast.toml", 0x9437_babb_a829_4a92);
}

#[test]
fn the_hot_spot_example_is_what_it_was() {
    golden("hot_spot.toml", 0xb78c_2719_2693_5feb);
}

#[test]
fn every_example_has_a_digest() {
    let folder = std::fs::read_dir(example("")).unwrap();
    let mut names: Vec<_> = folder.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| name.ends_with(".toml"));
    names.sort();
    assert_eq!(
        names,
        [
            "bcube_deadlock.toml",
            "hot_spot.toml",
            "incast.toml",
            "leaf_spine.toml",
            "link_failure.toml",
            "lossy_link.toml",
            "slow_receiver.toml",
            "websearch_incast.toml"
        ]
    );
}

/// `summary.json` without what a run costs, and `flows.parquet`.
fn written(path: &Path, sets: &[&str]) -> (String, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let out = run(path, sets).write(&folder.path().join("out"), "").unwrap_or_else(|problem| panic!("{problem}"));
    let summary = std::fs::read_to_string(out.join("summary.json")).unwrap();
    let mut summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    assert!(summary.as_object_mut().unwrap().remove("cost").is_some());
    (serde_json::to_string_pretty(&summary).unwrap(), std::fs::read(out.join("flows.parquet")).unwrap())
}

#[test]
fn two_runs_write_the_same_bytes() {
    for name in ["incast.toml", "leaf_spine.toml", "link_failure.toml", "lossy_link.toml"] {
        let (first, second) = (written(&example(name), &[]), written(&example(name), &[]));
        assert_eq!(first.0, second.0, "{name}: summary.json");
        assert!(first.1 == second.1, "{name}: flows.parquet");
    }
}

#[test]
fn another_seed_loses_other_packets() {
    let flows = |seed: &str| written(&example("lossy_link.toml"), &[seed]).1;
    assert!(flows("seed=1") != flows("seed=2"));
}
