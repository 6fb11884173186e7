//! Fast-forward from the command line: said wherever it is shown, and never taken for a run as a whole.

use crate::desk::Desk;
use serde_json::Value;

const LONG: &str = "\
name = \"long flows\"
[topology]
kind = \"leaf-spine\"
leaves = 2
hosts_per_leaf = 16
spines = 16
[switch]
buffer = \"12MB\"
[scheme]
preset = \"pfc\"
[[collective]]
kind = \"all-to-all\"
size = \"100MB\"
";

const RING: &str = "\
[topology]
kind = \"star\"
hosts = 8
[scheme]
preset = \"pfc\"
[[collective]]
kind = \"ring-all-reduce\"
size = \"64MB\"
";

#[test]
fn a_run_that_skips_says_so_and_how_far_off_it_is() {
    let desk = Desk::with(&[("a.toml", LONG), ("ring.toml", RING)]);
    let (printed, _) = desk.works("run a.toml --within 1% --out out");
    assert!(printed.contains("fast-forward within 1 %: "), "{printed}");
    let summary: Value = serde_json::from_str(&desk.read("out/summary.json")).unwrap();
    let about = &summary["fast_forward"];
    assert!(about["within"] == 0.01 && about["skipped"].as_f64().is_some_and(|share| share > 0.5), "{about}");
    assert!(about["error"]["fct"]["p50"].as_f64().is_some_and(|off| off <= 0.01), "{about}");
    assert!(desk.read("out/report.html").contains("Not all simulated"));
    assert!(desk.read("out/scenario.toml").contains("[fast_forward]\nwithin = 0.01"));
    desk.works("run a.toml --out exact");
    let exact: Value = serde_json::from_str(&desk.read("exact/summary.json")).unwrap();
    assert!(exact.get("fast_forward").is_none());
    desk.refuses("run a.toml --within 1% --record", "--record");
    let (printed, _) = desk.works("run ring.toml --within 1% --out ring");
    assert!(printed.contains("flows were streams, not packets"), "{printed}");
    let ring: Value = serde_json::from_str(&desk.read("ring/summary.json")).unwrap();
    let streams = &ring["fast_forward"]["streams"];
    assert!(streams["windows"].as_u64().is_some_and(|windows| windows >= 2), "{streams}");
    assert!(ring.get("packet_hops").is_none() && ring.get("buffer").is_none(), "nothing is known of packets");
    let said = desk.refuses("run a.toml --within 1% --set measure.why=true", "--set measure.why=true");
    assert!(said.contains("why flows are slow"), "{said}");
}

#[test]
fn runs_that_skip_are_compared_as_such() {
    let desk = Desk::with(&[("a.toml", LONG)]);
    let (printed, _) = desk.works("compare a.toml --schemes pfc,dcqcn --within 1%");
    assert!(printed.contains("fast-forward within 1 %: 2 of 2 runs were not simulated as a whole."), "{printed}");
    let about: Value = serde_json::from_str(&desk.read("results/compare-a/comparison.json")).unwrap();
    assert!(about["command"].as_str().is_some_and(|command| command.contains("--within 1%")), "{about}");
    let (printed, _) = desk.works("compare a.toml --schemes pfc,dcqcn --out exact");
    assert!(printed.contains("2 runs, 2 new") && !printed.contains("fast-forward"), "{printed}");
}
