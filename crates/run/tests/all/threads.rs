//! A run on several threads gives what one thread gives, to the byte.

use crate::same::assert_same;
use engine::Time;
use fabric::Outcome;
use fabric::run::{Plan, partition};
use run::recording::record;
use scenario::Scenario;
use scenario::resolve::{Resolved, resolve};
use std::path::Path;

fn read(text: &str, sets: &[String]) -> Resolved {
    let scenario = Scenario::parse("a.toml", text, Path::new("/nowhere"), sets);
    scenario.and_then(resolve).unwrap_or_else(|problem| panic!("{problem}\n{text}"))
}

fn run(resolved: &Resolved, threads: usize) -> Outcome {
    resolved.simulate_on(threads, &mut |_, _| true)
}

fn in_blocks(resolved: &Resolved, threads: usize, blocks: usize) -> Outcome {
    let outcome = resolved.simulate_in(threads, Some(blocks), &mut |_, _| true);
    assert_eq!(outcome.turns > 30, blocks > threads, "{} turns of {blocks} blocks, {threads} threads", outcome.turns);
    outcome
}

const LEAF_SPINE: &str = "\
[topology]
kind = \"leaf-spine\"
leaves = 4
hosts_per_leaf = 8
spines = 4
[measure]
ports = [\"leaf0->*\"]
series = \"3us\"
capture = [\"leaf1->*\"]
";

const BCUBE: &str = "\
[topology]
kind = \"bcube\"
n = 4
k = 1
";

const TRAFFIC: &str = "\
[switch]
buffer = \"3MB\"
[[load]]
sizes = \"hadoop\"
load = 0.5
duration = \"150us\"
[[incast]]
degree = 12
size_each = \"30KB\"
every = \"50us\"
arrivals = \"fixed\"
duration = \"150us\"
";

#[test]
fn every_preset_gives_the_same_on_any_number_of_threads() {
    for preset in scenario::presets::all() {
        let fabric = if preset.name == "portfc" { BCUBE } else { LEAF_SPINE };
        let text = format!("stop = \"300us\"\n{fabric}{TRAFFIC}");
        let resolved = read(&text, &[format!("scheme.preset=\"{}\"", preset.name)]);
        let one = run(&resolved, 1);
        assert!(one.counts.hops > 50_000, "{}: {} hops", preset.name, one.counts.hops);
        for threads in [2, 3, 4] {
            assert!(
                partition(&resolved.setup, &*resolved.choices.transport, threads)
                    .is_some_and(|Plan { shards, .. }| shards == threads)
            );
            assert_same(&one, &run(&resolved, threads), &format!("{} on {threads} threads", preset.name));
        }
    }
}

#[test]
fn every_preset_gives_the_same_in_any_number_of_blocks() {
    for preset in scenario::presets::all() {
        let fabric = if preset.name == "portfc" { BCUBE } else { LEAF_SPINE };
        for stop in ["", "stop = \"180us\"\n"] {
            let resolved = read(&format!("{stop}{fabric}{TRAFFIC}"), &[format!("scheme.preset=\"{}\"", preset.name)]);
            let whole = in_blocks(&resolved, 1, 1);
            assert!(whole.counts.hops > 50_000, "{}: {} hops", preset.name, whole.counts.hops);
            for (threads, blocks) in [(1, 2), (1, 3), (1, 4), (2, 4)] {
                let what = format!("{} on {threads} threads in {blocks} blocks", preset.name);
                assert_same(&whole, &in_blocks(&resolved, threads, blocks), &what);
            }
            for threads in [1, 2] {
                let nodes = run(&resolved, threads);
                assert!(nodes.turns > 30, "{}: {} turns", preset.name, nodes.turns);
                assert_same(&whole, &nodes, &format!("{} on {threads} threads, node by node", preset.name));
            }
        }
    }
}

#[test]
fn what_waits_for_others_starts_as_it_would_in_any_number_of_blocks_and_threads() {
    let mut lost = 0;
    for kind in ["ring-all-reduce", "halving-doubling-all-reduce", "all-to-all"] {
        let collective = format!("[[collective]]\nkind = \"{kind}\"\nsize = \"400KB\"\nrounds = 3\ngap = \"4us\"\n");
        let link = "[[link]]\nbetween = [\"leaf2\", \"spine1\"]\ndown = [[\"20us\", \"45us\"]]\n";
        let resolved = read(&format!("{LEAF_SPINE}{link}{collective}"), &["scheme.preset=\"dcqcn+win\"".into()]);
        // A recording must not take a flow that has not begun for one that is over.
        let resolved = record(resolved, Some(Time::from_us(3)));
        let whole = in_blocks(&resolved, 1, 1);
        assert!(whole.complete(), "{kind}: {:?}", whole.counts);
        lost += whole.counts.dropped_down;
        for (threads, blocks) in [(1, 2), (1, 4), (2, 1), (2, 4)] {
            let what = format!("{kind} on {threads} threads in {blocks} blocks");
            assert_same(&whole, &in_blocks(&resolved, threads, blocks), &what);
        }
        for threads in [1, 2] {
            assert_same(&whole, &run(&resolved, threads), &format!("{kind} on {threads} threads, node by node"));
        }
    }
    assert!(lost > 0, "the link that fails carries nothing");
}

#[test]
fn a_run_ends_at_the_same_instant_in_any_number_of_blocks_although_senders_repeat_themselves() {
    // The timeout is shorter than the round trip: when the last ACK arrives, senders are about to send again.
    let text = "seed = 627\n[topology]\nkind = \"chain\"\nswitches = 5\n[nic]\ntimeout = \"1us\"\n\
                [scheme]\npreset = \"swift\"\n[scheme.swift]\nreset_after = 1\n\
                [[collective]]\nkind = \"ring-all-reduce\"\nsize = \"263B\"\n";
    let mut resolved = read(text, &[]);
    resolved.setup.nic.timeout = Some(Time(1));
    let whole = resolved.simulate_in(1, Some(1), &mut |_, _| true);
    assert!(whole.complete() && whole.counts.timeouts > 0);
    for (threads, blocks) in [(1, 2), (1, 4), (2, 1), (2, 4)] {
        let other = resolved.simulate_in(threads, Some(blocks), &mut |_, _| true);
        assert_same(&whole, &other, &format!("{threads} threads, {blocks} blocks"));
    }
    for threads in [1, 2] {
        assert_same(&whole, &run(&resolved, threads), &format!("{threads} threads, node by node"));
    }
}

/// A fabric of that size is done in blocks by default, by one thread and by each of two.
#[test]
fn a_large_fabric_gives_the_same_in_the_blocks_that_it_asks_for() {
    for preset in scenario::presets::all() {
        let fabric = match preset.name {
            "portfc" => "kind = \"bcube\"\nn = 32\nk = 1\n",
            _ => "kind = \"fat-tree\"\nk = 16\n",
        };
        let traffic = "\
            [[load]]\nsizes = \"hadoop\"\nload = 0.4\nduration = \"3us\"\n\
            [[incast]]\ndegree = 40\nsize_each = \"20KB\"\nevery = \"20us\"\nduration = \"3us\"\n";
        let text = format!("stop = \"30us\"\n[topology]\n{fabric}{traffic}");
        let resolved = read(&text, &[format!("scheme.preset=\"{}\"", preset.name)]);
        let whole = in_blocks(&resolved, 1, 1);
        assert!(whole.counts.hops > 5_000, "{}: {} hops", preset.name, whole.counts.hops);
        for threads in [1, 2] {
            let outcome = run(&resolved, threads);
            assert!(outcome.turns > 10, "{}: {} turns", preset.name, outcome.turns);
            assert_same(&whole, &outcome, &format!("{} on {threads} threads", preset.name));
        }
    }
}

#[test]
fn every_count_that_an_experiment_asks_for_is_kept_by_some_scheme() {
    let mut kept = std::collections::BTreeSet::new();
    for preset in scenario::presets::all() {
        let fabric = if preset.name == "portfc" { BCUBE } else { LEAF_SPINE };
        let text = format!("stop = \"1us\"\n{fabric}{TRAFFIC}");
        let outcome = run(&read(&text, &[format!("scheme.preset=\"{}\"", preset.name)]), 1);
        let all = outcome.flow_control.iter().chain(&outcome.congestion_control).chain(&outcome.transport);
        kept.extend(all.chain(&outcome.switches).map(|counter| counter.name.to_string()));
    }
    let balanced = read(&format!("stop = \"1us\"\n{LEAF_SPINE}{TRAFFIC}"), &["scheme.load_balancing=conweave".into()]);
    kept.extend(run(&balanced, 1).switches.iter().map(|counter| counter.name.to_string()));
    kept.insert("out_of_order".into());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let documents = std::fs::read_dir(folder).unwrap().flat_map(|document| std::fs::read_dir(document.unwrap().path()));
    let files: Vec<_> = documents.flatten().map(|file| file.unwrap().path()).collect();
    assert!(files.len() > 50);
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for asked in text.split("counter('").skip(1).filter_map(|rest| rest.split('\'').next()) {
            assert!(kept.contains(asked), "{} asks for {asked}", file.display());
        }
    }
}

/// What is paused when the last host hears of the last message is so until then, in the last frame, too.
#[test]
fn the_last_frame_of_a_recording_ends_when_the_last_host_has_heard() {
    let text = "\
[topology]
kind = \"dumbbell\"
left = 7
right = 1
bottlenecks = 2
host_rate = \"14486836bps\"
[switch]
buffer = \"41001B\"
[nic]
receive_latency = \"1ps\"
payload = \"18B\"
[scheme]
flow_control = \"cbfc\"
[[incast]]
degree = 5
size = \"140B\"
every = \"1ns\"
count = 2
";
    let resolved = record(read(text, &[]), None);
    let whole = resolved.simulate_in(1, Some(1), &mut |_, _| true);
    for (threads, blocks) in [(1, 2), (2, 2), (3, 3), (3, 4)] {
        let other = resolved.simulate_in(threads, Some(blocks), &mut |_, _| true);
        assert_same(&whole, &other, &format!("{threads} threads, {blocks} blocks"));
    }
}
