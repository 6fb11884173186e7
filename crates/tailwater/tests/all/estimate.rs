//! Estimates from the command line: quick, and never taken for runs.

use crate::desk::Desk;
use serde_json::Value;

const LOADED: &str = "\
name = \"messages\"
[topology]
kind = \"leaf-spine\"
leaves = 2
hosts_per_leaf = 8
spines = 4
[scheme]
preset = \"dcqcn+win\"
[[load]]
sizes = \"google\"
load = 0.3
duration = \"300us\"
[estimate]
calibrate = 0.3
";

fn summary(desk: &Desk, folder: &str) -> Value {
    serde_json::from_str(&desk.read(&format!("{folder}/summary.json"))).unwrap()
}

#[test]
fn an_estimate_says_wherever_it_is_shown_that_it_is_one_and_how_far_off() {
    let desk = Desk::with(&[("a.toml", LOADED)]);
    for method in ["links", "max-min"] {
        let (printed, _) = desk.works(&format!("estimate a.toml --method {method} --out out"));
        assert!(printed.contains(&format!("estimated by {method}, not simulated: on ")), "{printed}");
        assert!(!printed.contains("packet-hops") && !printed.contains("pauses"), "{printed}");
        let summary = summary(&desk, "out");
        assert_eq!(
            (&summary["estimate"]["method"], &summary["estimate"]["calibrated_on"]),
            (&method.into(), &0.3.into())
        );
        let error = &summary["estimate"]["error"];
        assert!(error["fct"]["p50"].is_number() && error["fct"]["interval"]["p50"].is_array(), "{error}");
        for unknown in ["pause", "buffer", "packet_hops", "dropped", "utilisation"] {
            assert!(summary.get(unknown).is_none(), "{unknown}: {}", summary[unknown]);
        }
        assert_eq!(summary["ending"], "complete");
        assert!(desk.read("out/report.html").contains(&format!("estimated by {method}")));
    }
    let said = desk.refuses("estimate a.toml --calibrate 0", "--calibrate: pfc stops neighbours");
    assert!(
        said.contains("give --calibrate 0.1, or another share, or simulate it with `tailwater run a.toml`"),
        "{said}"
    );
    desk.refuses("run a.toml --record --set estimate.method=links", "--record");
}

#[test]
fn estimates_are_compared_as_estimates_and_not_taken_for_runs() {
    let desk = Desk::with(&[("a.toml", LOADED)]);
    let estimated = "compare a.toml --schemes dcqcn+win,bfc --estimate links";
    let (printed, _) = desk.works(estimated);
    assert!(printed.contains("all of these are estimates (links), not runs: "), "{printed}");
    assert!(printed.contains("2 runs, 2 new"), "{printed}");
    let about: Value = serde_json::from_str(&desk.read("results/compare-a/comparison.json")).unwrap();
    assert!(about["estimate"].as_str().is_some_and(|said| said.contains("not runs")), "{about}");
    assert!(about["command"].as_str().is_some_and(|command| command.contains("--estimate links")), "{about}");
    assert!(desk.read("results/compare-a/report.html").contains("messages: estimates, not runs"));
    // The same again is there; runs are others.
    assert!(desk.works(estimated).0.contains("2 runs, 0 new"));
    let (printed, _) = desk.works("compare a.toml --schemes dcqcn+win,bfc");
    assert!(printed.contains("2 runs, 2 new") && !printed.contains("estimates"), "{printed}");
}
