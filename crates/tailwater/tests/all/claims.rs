//! The ledger as people use it: what is claimed, and whether it holds.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn tailwater(desk: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tailwater")).args(arguments).current_dir(desk).output().unwrap()
}

#[track_caller]
fn works(desk: &Path, arguments: &[&str]) -> String {
    let output = tailwater(desk, arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn refuses(desk: &Path, arguments: &[&str]) -> String {
    let output = tailwater(desk, arguments);
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8(output.stderr).unwrap()
}

/// An experiment that computes and runs nothing.
const COMPUTED: &str = r#"
id = "mine/sums"
document = "a schoolbook"
place = "page 1"
title = "Sums"
says = "One and one is two."

[[expect]]
paper = "one and one is two"
value = "1 + 1"
at_least = 2
at_most = 2

[[expect]]
paper = "two and two is five"
value = "2 + 2"
at_least = 5
"#;

#[test]
fn claims_lists_every_experiment_and_filters() {
    let desk = tempfile::tempdir().unwrap();
    let all = works(desk.path(), &["claims"]);
    assert_eq!(all.lines().count(), ledger::ids().count());
    for id in ledger::ids() {
        assert!(all.lines().any(|line| line.split_whitespace().next() == Some(id)), "{id}");
    }
    let some = works(desk.path(), &["claims", "Bloom"]);
    assert!(some.lines().count() < all.lines().count() && some.contains("bfc/bloom"), "{some}");
    let problem = refuses(desk.path(), &["claims", "no such thing"]);
    assert!(problem.contains("help:"), "{problem}");
}

#[test]
fn an_experiment_of_ones_own_gives_a_verdict_on_paper_and_as_json() {
    let desk = tempfile::tempdir().unwrap();
    std::fs::write(desk.path().join("sums.toml"), COMPUTED).unwrap();
    let printed = works(desk.path(), &["reproduce", "sums.toml", "--out", "out"]);
    assert!(printed.contains("holds in part (1 of 2 expectations hold)"), "{printed}");
    assert!(printed.contains("does not hold") && printed.contains("two and two is five"), "{printed}");
    let text = std::fs::read_to_string(desk.path().join("out/mine/sums/verdict.json")).unwrap();
    let verdict: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(verdict["verdict"], "holds in part");
    assert_eq!(verdict["expectations"][1]["value"], 4.0);
    assert_eq!(works(desk.path(), &["reproduce", "sums.toml", "--out", "out", "--quiet"]), "");
}

#[test]
fn an_unknown_experiment_is_refused_with_near_ones() {
    let desk = tempfile::tempdir().unwrap();
    let problem = refuses(desk.path(), &["reproduce", "fig5a"]);
    assert!(problem.contains("did you mean bfc/fig5a"), "{problem}");
    let problem = refuses(desk.path(), &["reproduce", "nothing.toml"]);
    assert!(problem.contains("nothing.toml"), "{problem}");
    assert_eq!(tailwater(desk.path(), &["reproduce"]).status.code(), Some(2));
    assert_eq!(tailwater(desk.path(), &["reproduce", "bfc/fig4", "--scale", "huge"]).status.code(), Some(2));
}

/// An experiment with a few small runs.
const RUN: &str = r#"
id = "mine/incast"
document = "a thesis"
place = "chapter 3"
title = "Two schemes"
says = "A window keeps the queue short."
bins = ["100KB", "1MB"]

[scenario.topology]
kind = "star"
hosts = 5
[[scenario.incast]]
name = "incast"
to = "h0"
degree = 4
size_each = "200KB"
[scenario.measure]
ports = ["sw0->h0"]

[scale.quick]
seeds = 2

[[variant]]
name = "PFC"
preset = "pfc"
[[variant]]
name = "window"
preset = "window"
[[variant]]
name = "the next big thing"
preset = "warp"

[[vary]]
label = "degree"
key = "incast.0.degree"
values = [2, 4]

[[figure]]
title = "Completion times"
kind = "lines"
x = "degree"
y = "p99(fct_us, group='incast')"
y_title = "p99 FCT (us)"

[[figure]]
title = "Queue"
kind = "series"
of = "queue(port='sw0->h0')"
panel = "degree"

[[expect]]
paper = "the queue is shorter with a window"
value = "smallest(max(queue, variant='PFC') / max(queue, variant='window') over degree)"
at_least = 1

[[expect]]
paper = "the last of two comes when both are through"
value = "max(fct_us, variant='PFC', degree=2)"
at_least = 34
at_most = 38

[[expect]]
paper = "the next big thing is best"
value = "max(fct_us, variant='the next big thing', degree=2)"
at_most = 1
"#;

#[test]
fn an_experiment_is_run_drawn_and_judged_once_and_what_is_missing_is_named() {
    let desk = tempfile::tempdir().unwrap();
    std::fs::write(desk.path().join("incast.toml"), RUN).unwrap();
    let printed = works(desk.path(), &["reproduce", "incast.toml", "--out", "out", "--store", "runs"]);
    assert!(printed.contains("needs warp (2 of 3 expectations hold)"), "{printed}");
    let folder = desk.path().join("out/mine/incast");
    let verdict = std::fs::read_to_string(folder.join("verdict.json")).unwrap();
    let value: Value = serde_json::from_str(&verdict).unwrap();
    assert_eq!((&value["runs"], &value["needs"]), (&Value::from(8), &serde_json::json!(["warp"])));
    let page = std::fs::read_to_string(folder.join("report.html")).unwrap();
    assert!(page.contains("the queue is shorter with a window") && page.contains("tailwater reproduce incast.toml"));
    for image in ["1-completion-times.png", "2-1-queue.svg", "2-2-queue.svg"] {
        assert!(folder.join("figures").join(image).is_file(), "{image}");
    }
    let runs = || std::fs::read_dir(desk.path().join("runs")).unwrap().count();
    let before = runs();
    works(desk.path(), &["reproduce", "incast.toml", "--out", "out", "--store", "runs", "--quiet"]);
    assert_eq!(runs(), before, "what was run is not run again");
    assert_eq!(std::fs::read_to_string(folder.join("verdict.json")).unwrap(), verdict);
}

#[test]
fn a_page_and_a_text_begin_with_scale_and_seeds_and_promise_no_interval_that_is_not_there() {
    let desk = tempfile::tempdir().unwrap();
    std::fs::write(desk.path().join("incast.toml"), RUN).unwrap();
    let read = || std::fs::read_to_string(desk.path().join("out/mine/incast/report.html")).unwrap();
    let run = |seeds: &str| {
        works(desk.path(), &["reproduce", "incast.toml", "--out", "out", "--store", "runs", "--seeds", seeds])
    };
    let two = run("2");
    assert_eq!(two.lines().nth(1), Some("  quick scale, 2 seeds, 8 runs"), "{two}");
    assert!(read().contains("95 % confidence intervals over 2 seeds"));
    let one = run("1");
    assert_eq!(one.lines().nth(1), Some("  quick scale, 1 seed, 4 runs"), "{one}");
    assert!(
        one.contains("with no interval to be sure") && one.contains("needs warp (0 of 3 expectations hold)"),
        "{one}"
    );
    assert!(read().contains("with one seed: there are no intervals") && !read().contains("confidence intervals over"));
}

#[test]
fn results_are_published_and_claims_show_what_is_published_beside_what_was_run_here() {
    let desk = tempfile::tempdir().unwrap();
    std::fs::write(desk.path().join("sums.toml"), COMPUTED).unwrap();
    let printed = works(desk.path(), &["reproduce", "sums.toml", "bfc/fig4", "--out", "out", "--publish"]);
    assert!(printed.contains("published/mine/sums.json"), "{printed}");
    let read = |path: &str| std::fs::read_to_string(desk.path().join(path)).unwrap();
    let published: Value = serde_json::from_str(&read("published/bfc/fig4.json")).unwrap();
    assert_eq!((&published["id"], &published["scale"]), (&Value::from("bfc/fig4"), &Value::from("quick")));
    assert_eq!(published["figures"][0], "fig4-1.svg");
    assert!(read("published/bfc/fig4-1.svg").starts_with("<svg"));
    assert_eq!(published["expectations"].as_array().unwrap().len(), 8);

    let claims = works(desk.path(), &["claims", "bfc/fig4", "--json", "--out", "out"]);
    let claims: Value = serde_json::from_str(&claims).unwrap();
    let row = &claims[0];
    assert_eq!((&row["id"], &row["paper"]["key"]), (&Value::from("bfc/fig4"), &Value::from("bfc")));
    assert_eq!((&row["here"]["verdict"], &row["here"]["claims"]), (&published["verdict"], &Value::from(8)));
    assert!(row["published"].is_null() || row["published"]["verdict"].is_string());
    let all: Value = serde_json::from_str(&works(desk.path(), &["claims", "--json"])).unwrap();
    assert_eq!(all.as_array().unwrap().len(), ledger::ids().count());
    assert_eq!(all[0]["here"], Value::Null);

    assert_eq!(works(desk.path(), &["claims", "--check"]), "");
    let table = works(desk.path(), &["claims", "--markdown", "blitz"]);
    assert!(table.starts_with("| row |") && table.contains("blitz/fig1a") && !table.contains("bfc/"), "{table}");
    assert!(works(desk.path(), &["claims", "--markdown"]).contains("bfc/"));
    assert!(refuses(desk.path(), &["claims", "--markdown", "nobody"]).contains("has no rows"));
    let (begin, end) = ("<!-- ledger:bfc:begin -->\n", "<!-- ledger:bfc:end -->\n");
    std::fs::create_dir(desk.path().join("docs")).unwrap();
    std::fs::write(desk.path().join("README.md"), "nothing\n").unwrap();
    std::fs::write(desk.path().join("docs/a.md"), format!("{begin}{end}")).unwrap();
    assert_eq!(works(desk.path(), &["claims", "--write-docs"]), "docs/a.md\n");
    assert!(read("docs/a.md").contains("(../experiments/bfc/fig4.toml)") && read("README.md") == "nothing\n");
    assert_eq!(works(desk.path(), &["claims", "--write-docs"]), "");
}

#[test]
fn what_is_published_is_judged_again_without_running_and_what_was_not_measured_is_refused() {
    let desk = tempfile::tempdir().unwrap();
    assert!(refuses(desk.path(), &["claims", "--rejudge"]).contains("published: has no published result"));
    works(desk.path(), &["reproduce", "bfc/fig4", "--out", "out", "--publish", "--quiet"]);
    let path = desk.path().join("published/bfc/fig4.json");
    let now = std::fs::read_to_string(&path).unwrap();
    assert_eq!(works(desk.path(), &["claims", "--rejudge"]), "", "nothing changed");

    // As an earlier version of the row would have judged it.
    let mut old: Value = serde_json::from_str(&now).unwrap();
    let digest = old["experiment"].as_str().unwrap().to_string();
    old["experiment"] = "0".repeat(digest.len()).into();
    let judged =
        old["expectations"].as_array_mut().unwrap().iter_mut().find(|judged| judged["holds"] == "holds").unwrap();
    (judged["at_least"], judged["at_most"], judged["holds"]) = (1e9.into(), Value::Null, "does not hold".into());
    std::fs::write(&path, format!("{old:#}\n")).unwrap();
    let printed = works(desk.path(), &["claims", "--rejudge"]);
    assert!(printed.starts_with("bfc/fig4  ") && printed.lines().count() == 1, "{printed}");
    let mut again: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    assert!(again["judged"].as_str().is_some_and(|date| date.starts_with("20")), "{again}");
    again["judged"] = Value::Null;
    assert_eq!(again, serde_json::from_str::<Value>(&now).unwrap());

    // With an expectation that was not measured, and with other runs.
    for (from, expected) in [("\"bytes_share(", "has no value of"), ("\"setting\": \"", "is of other runs")] {
        let text = now.replacen(from, &format!("{from}0"), 1);
        assert_ne!(text, now, "{from}");
        std::fs::write(&path, &text).unwrap();
        let problem = refuses(desk.path(), &["claims", "--rejudge"]);
        assert!(problem.contains(expected) && problem.contains("tailwater reproduce bfc/fig4"), "{problem}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn a_preset_is_listed_with_the_papers_of_its_parts() {
    let desk = tempfile::tempdir().unwrap();
    for (preset, titles) in [
        (
            "blitz",
            &["Fast Congestion Control in RDMA", "Dart: Divide and Specialize", "Congestion Control for Large-Scale"][..],
        ),
        ("802.1qcz", &["Efficient Dynamic Isolation", "802.1Qcz: Congestion Isolation"]),
        ("dcqcn+win+letflow", &["Congestion Control for Large-Scale", "Let It Flow", "802.1Qbb"]),
    ] {
        let text = works(desk.path(), &["schemes", preset]);
        assert!(titles.iter().all(|title| text.contains(title)), "{text}");
    }
    let claims = works(desk.path(), &["claims", "--json", "802.1qcz"]);
    let claims: Value = serde_json::from_str(&claims).unwrap();
    assert_eq!(claims[0]["cites"][0]["name"], "802.1Qcz");
    let claims = works(desk.path(), &["claims", "--json", "blitz/dart-latency"]);
    let claims: Value = serde_json::from_str(&claims).unwrap();
    assert_eq!(claims[0]["paper"]["key"], "dart");
}

#[test]
fn a_scheme_is_listed_by_name_with_its_paper() {
    let desk = tempfile::tempdir().unwrap();
    let one = works(desk.path(), &["schemes", "hpcc"]);
    assert!(one.contains("HPCC: High Precision Congestion Control, SIGCOMM, 2019"), "{one}");
    assert!(!one.contains("  dcqcn\n"), "{one}");
    assert!(refuses(desk.path(), &["schemes", "hpc"]).contains("did you mean \"hpcc\""));
}
