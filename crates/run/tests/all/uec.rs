//! Completion times of Ultra Ethernet's transport beside those of the group's own simulator, whose dice are others (tests/samples/uec).

use run::load;
use std::fs;

const TIMES: &str = include_str!("../../../../tests/samples/uec/times.csv");

/// How long every flow took until its sender knew, and when the last one ended, in microseconds, with a seed.
fn times(hosts: u32, flows: &str, seed: u64) -> (Vec<f64>, f64) {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("flows.csv"), flows).unwrap();
    let k = if hosts == 16 { 4 } else { 8 };
    let text = format!(
        "seed = {seed}\n[topology]\nkind = \"fat-tree\"\nk = {k}\n[traffic]\ntrace = \"flows.csv\"\n\
         [scheme]\npreset = \"uec-nscc\"\nsalt = \"seed\"\n[switch]\nunlimited = true\n\
         [nic]\npayload = \"4086B\"\nheader = \"64B\"\nack_size = \"64B\"\n"
    );
    let path = dir.path().join("run.toml");
    fs::write(&path, text).unwrap();
    let resolved = load(&path, &[]).unwrap_or_else(|problem| panic!("{problem}"));
    let outcome = run::run(resolved, &mut |_, _| true).outcome;
    assert!(outcome.complete() && outcome.violations.is_empty(), "{:?}", outcome.violations);
    let us = |time: engine::Time| time.0 as f64 / 1e6;
    let mut all: Vec<f64> = outcome.flows.iter().map(|flow| us(flow.acknowledged - flow.start)).collect();
    all.sort_by(f64::total_cmp);
    (all, outcome.flows.iter().map(|flow| us(flow.acknowledged)).fold(0.0, f64::max))
}

/// What the simulator measured: mean, 25th, 50th, 75th, 90th and 99th percentile, and the last.
fn measured(name: &str) -> Vec<f64> {
    let line = TIMES.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(',')).expect("a line");
    line.split(',').map(|field| field.parse().unwrap()).collect()
}

fn ours(name: &str, hosts: u32, flows: &str, seed: u64) -> Vec<f64> {
    let (all, last) = times(hosts, flows, seed);
    let at = |p: f64| all[((p * all.len() as f64) as usize).min(all.len() - 1)];
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    println!("{name} with seed {seed}: {mean:.1} {:.1} {last:.1}", at(0.5));
    [mean].into_iter().chain([0.25, 0.5, 0.75, 0.9, 0.99].map(at)).chain([last]).collect()
}

#[test]
fn a_message_alone_takes_what_it_takes_there() {
    let (all, _) = times(16, "src,dst,size_bytes,start_ps\nh2,h9,1500000,0\n", 1);
    assert!((all[0] - 135.575).abs() < 0.001, "{all:?}");
}

#[test]
fn an_incast_and_a_mix_take_what_they_take_there_within_a_tenth() {
    for (name, hosts, flows) in [
        ("incast12", 16, include_str!("../../../../tests/samples/uec/incast12.csv")),
        ("incast60", 128, include_str!("../../../../tests/samples/uec/incast60.csv")),
        ("mixed128", 128, include_str!("../../../../tests/samples/uec/mixed128.csv")),
    ] {
        let theirs = measured(name);
        let seeds = [1, 2, 3];
        let runs: Vec<Vec<f64>> = seeds.iter().map(|&seed| ours(name, hosts, flows, seed)).collect();
        for (place, theirs) in theirs.iter().enumerate() {
            let mean = runs.iter().map(|run| run[place]).sum::<f64>() / seeds.len() as f64;
            assert!((mean / theirs - 1.0).abs() < 0.1, "{name}, number {place}: {mean:.1} us, and there {theirs} us");
        }
    }
}
