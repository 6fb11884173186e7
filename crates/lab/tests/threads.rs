//! A run on several threads gives what one thread gives, to the byte.

use fabric::Outcome;
use fabric::network::{Plan, partition};
use lab::resolve::{Resolved, resolve};
use lab::scenario::Scenario;
use std::path::Path;

fn read(text: &str, sets: &[String]) -> Resolved {
    let scenario = Scenario::parse("a.toml", text, Path::new("/nowhere"), sets);
    scenario.and_then(resolve).unwrap_or_else(|problem| panic!("{problem}\n{text}"))
}

fn run(resolved: &Resolved, threads: usize) -> Outcome {
    let mut again = read_again(resolved);
    again.threads = threads;
    let control = || resolved.congestion_control.build();
    resolved.flow_control.run(again, resolved.promised, &control, &mut |_, _| true)
}

fn read_again(resolved: &Resolved) -> fabric::Setup {
    resolved.setup.clone()
}

const LEAF_SPINE: &str = "\
stop = \"300us\"
[topology]
kind = \"leaf-spine\"
leaves = 4
hosts_per_leaf = 8
spines = 4
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
[measure]
ports = [\"leaf0->*\"]
series = \"3us\"
";

fn assert_same(one: &Outcome, several: &Outcome, what: &str) {
    assert_eq!(one.end, several.end, "{what}");
    assert_eq!(one.counts, several.counts, "{what}");
    assert_eq!(one.finished, several.finished, "{what}");
    assert_eq!(one.flow_control, several.flow_control, "{what}");
    assert_eq!(one.histograms, several.histograms, "{what}");
    assert_eq!(one.congestion_control, several.congestion_control, "{what}");
    assert_eq!(one.samples, several.samples, "{what}");
    assert_eq!(one.series, several.series, "{what}");
    assert!(one.flows == several.flows, "{what}");
    assert_eq!((&one.paused, &one.peak, &one.sent), (&several.paused, &several.peak, &several.sent), "{what}");
    assert_eq!((one.left, &one.stall), (several.left, &several.stall), "{what}");
    assert_eq!(one.violations, several.violations, "{what}");
}

#[test]
fn every_preset_gives_the_same_on_any_number_of_threads() {
    for preset in lab::presets::PRESETS {
        let resolved = read(LEAF_SPINE, &[format!("scheme.preset=\"{}\"", preset.name)]);
        let one = run(&resolved, 1);
        assert!(one.counts.hops > 50_000, "{}: {} hops", preset.name, one.counts.hops);
        for threads in [2, 3, 4] {
            assert!(partition(&resolved.setup, threads).is_some_and(|Plan { parts, .. }| parts == threads));
            assert_same(&one, &run(&resolved, threads), &format!("{} on {threads} threads", preset.name));
        }
    }
}
