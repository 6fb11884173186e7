//! `tailwater compare` as people use it: interrupted, side by side, on full disks, and again.

use crate::desk::{Desk, answer, contents};
use crate::patience;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const INCAST: &str = "\
name = \"four into one\"
[topology]
kind = \"star\"
hosts = 5
# The scheme is the command line's business.
[scheme]
preset = \"dcqcn\"
[[flow]]
src = \"h1\"
dst = \"h0\"
size = \"400KB\"
count = 2
[[flow]]
src = \"h2\"
dst = \"h0\"
size = \"400KB\"
[[flow]]
src = \"h3\"
dst = \"h0\"
size = \"500B\"
";

/// With a scenario.
fn desk() -> Desk {
    Desk::with(&[("incast.toml", INCAST)])
}

const GRID: &str = "compare incast.toml --schemes dcqcn,hpcc,pfc --vary switch.buffer=2MB,4MB --seeds 3";

#[test]
fn recorded_runs_are_kept_in_the_store_under_the_same_names() {
    let desk = desk();
    let command = "compare incast.toml --schemes dcqcn,pfc --seeds 2";
    let (plain, _) = desk.works(command);
    assert!(plain.contains("4 runs, 4 new"));
    let before = desk.bytes("results/runs");
    let (recorded, _) = desk.works(&format!("{command} --record"));
    assert!(recorded.contains("4 runs, 4 new"));
    let (after, mut recordings) = (desk.bytes("results/runs"), 0);
    let is_list = |path: &Path| path.ends_with("files.json") || path.ends_with("SHA256SUMS");
    for (path, bytes) in after.iter().filter(|(path, _)| !is_list(path)) {
        if path.ends_with("recording.bin") {
            recordings += 1;
            results::recording::Recorded::read(bytes).unwrap();
        } else {
            assert_eq!(before.get(path), Some(bytes), "{}", path.display());
        }
    }
    assert_eq!((recordings, after.len()), (4, before.len() + 4));
    // With a recording or without: what is there will do.
    for more in ["", " --record"] {
        assert!(desk.works(&format!("{command}{more}")).0.contains("4 runs, 0 new"));
    }
    let comparison: Value = serde_json::from_str(&desk.read("results/compare-incast/comparison.json")).unwrap();
    assert_eq!(comparison["command"], format!("tailwater {command} --record"));
}

#[test]
fn a_comparison_gives_a_table_and_says_how_it_came_about() {
    let desk = desk();
    let (printed, said) = desk.works(GRID);
    assert_eq!(said.lines().count(), 18, "a line for each run without a terminal: {said}");
    assert!(said.contains("18 of 18: ") && said.contains("hpcc, switch.buffer=4MB, seed 2: "), "{said}");
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines[0], "four into one");
    assert!(lines[2] == "with switch.buffer = 2MB, 1 flow up to 10KB: too few to judge by their p99", "{printed}");
    let words =
        |line: &&str| line.split("  ").map(str::trim).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(",");
    let place = lines.iter().position(|line| *line == "p99 slowdown by flow size").expect("the table by size");
    assert_eq!(words(&lines[place + 1]), "scheme,switch.buffer,all,≤10KB,100KB–1MB");
    assert!(lines[place + 2..place + 8].iter().all(|line| line.ends_with('?')), "{printed}");
    assert_eq!(
        lines[place + 8],
        "? fewer than 100 flows; 95 % intervals over 3 seeds, or of one seed's flows where seeds change nothing"
    );
    let place = place + 10;
    assert_eq!(
        words(&lines[place]),
        "scheme,switch.buffer,flows,slowdown p50,peak buffer KB,paused us,held us,drops,ending"
    );
    let rows: Vec<Vec<&str>> =
        lines[place + 1..place + 7].iter().map(|line| line.split_whitespace().collect()).collect();
    let labels: Vec<String> = rows.iter().map(|row| row[..2].join(" ")).collect();
    assert_eq!(labels, ["dcqcn 2MB", "dcqcn 4MB", "hpcc 2MB", "hpcc 4MB", "pfc 2MB", "pfc 4MB"]);
    assert!(rows.iter().all(|row| row[2] == "4" && row.last() == Some(&"complete")), "{printed}");
    assert_eq!(*lines.last().unwrap(), "18 runs, 18 new; comparison in results/compare-incast");

    let comparison: Value = serde_json::from_str(&desk.read("results/compare-incast/comparison.json")).unwrap();
    assert_eq!(comparison["scenario"], "four into one");
    assert_eq!(
        comparison["command"],
        format!("tailwater {GRID}")
            .replace(" --vary switch.buffer=2MB,4MB --seeds 3", " --seeds 3 --vary switch.buffer=2MB,4MB")
    );
    assert_eq!(comparison["axes"][0]["values"], serde_json::json!(["dcqcn", "hpcc", "pfc"]));
    assert_eq!(comparison["axes"][1]["name"], "switch.buffer");
    assert_eq!(comparison["seeds"], serde_json::json!([1, 2, 3]));
    let cells = comparison["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 18);
    for cell in cells {
        let folder = desk.path("results/compare-incast").join(cell["folder"].as_str().unwrap());
        let summary: Value = serde_json::from_str(&fs::read_to_string(folder.join("summary.json")).unwrap()).unwrap();
        assert_eq!(summary["seed"], cell["seed"]);
        let named: &Value = &cell["labels"]["scheme"];
        let control = summary["congestion_control"].as_str().unwrap();
        assert_eq!(control, if named == "pfc" { "none" } else { named.as_str().unwrap() });
    }
    assert_eq!(desk.read("results/compare-incast/scenario.toml"), INCAST);

    // The means and intervals of the table are those of the runs.
    let table = desk.read("results/compare-incast/table.csv");
    let mut lines = table.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().unwrap();
    let column = |name: &str| head.iter().position(|head| *head == name).unwrap();
    let first = lines.next().unwrap();
    let p99: Vec<f64> = (0..3)
        .map(|i| {
            let folder = desk.path("results/compare-incast").join(cells[i]["folder"].as_str().unwrap());
            let summary: Value =
                serde_json::from_str(&fs::read_to_string(folder.join("summary.json")).unwrap()).unwrap();
            summary["slowdown"]["p99"].as_f64().unwrap()
        })
        .collect();
    let mean = p99.iter().sum::<f64>() / 3.0;
    let deviation = (p99.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / 2.0).sqrt();
    let number = |name: &str| first[column(name)].parse::<f64>().unwrap();
    assert!(deviation > 0.0, "the seeds differ");
    assert!((number("slowdown_p99") - mean).abs() < 1e-9);
    assert!((number("slowdown_p99_ci95") - 4.303 * deviation / 3f64.sqrt()).abs() < 1e-9);
    let described = |key: &str| {
        let mut measures = comparison["measures"].as_array().unwrap().iter();
        let measure = measures.find(|measure| measure["key"] == key).unwrap();
        (measure["label"].clone(), measure["unit"].clone(), measure["better"].clone())
    };
    assert_eq!(described("flows"), ("flows".into(), "count".into(), Value::Null));
    assert_eq!(described("finished"), ("finished".into(), "count".into(), "more".into()));
    assert_eq!(described("slowdown_p99"), ("slowdown p99".into(), "ratio".into(), "less".into()));
    assert_eq!(described("peak_buffer_bytes"), ("peak buffer".into(), "bytes".into(), "less".into()));
    assert_eq!(described("paused_ps"), ("paused".into(), "ps".into(), "less".into()));
    let row = &comparison["rows"][0];
    assert_eq!(row["measures"]["slowdown_p99"]["mean"].as_f64(), Some(number("slowdown_p99")));
    assert_eq!(row["endings"]["complete"], 3);
}

#[test]
fn the_second_time_nothing_is_run_and_the_same_is_said() {
    let desk = desk();
    let (first, _) = desk.works(&format!("{GRID} --threads 1"));
    let (runs, comparison) = (contents(&desk.path("results/runs")), desk.bytes("results/compare-incast"));
    let (second, said) = desk.works(&format!("{GRID} --threads 3"));
    assert_eq!(said, "");
    assert_eq!(second, first.replace("18 new", "0 new"));
    assert_eq!(contents(&desk.path("results/runs")), runs, "not a file was touched");
    assert_eq!(desk.bytes("results/compare-incast"), comparison);
    // A subset of the grid, asked for with --set, is there too.
    let (part, _) = desk.works("compare incast.toml --set switch.buffer=4MB --set scheme.preset=hpcc --set seed=2");
    assert!(part.contains("1 run, 0 new"), "{part}");
    let quiet = desk.works(&format!("{GRID} --quiet --store other --out out"));
    assert_eq!(quiet, (String::new(), String::new()));
}

#[test]
fn killed_at_any_moment_and_run_again_it_ends_with_the_same_files() {
    let desk = desk();
    desk.works(&format!("{GRID} --store calm --out calm-out"));
    let mut dice = 12345_u64;
    let mut killed = 0;
    for _ in 0..60 {
        let mut child = desk.command(&format!("{GRID} --store wild --out wild-out")).spawn().unwrap();
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        std::thread::sleep(Duration::from_micros((dice >> 40) % 25_000));
        child.kill().unwrap();
        killed += patience::status("a comparison that was killed", &mut child).code().is_none() as u32;
    }
    assert!(killed > 0, "it was never interrupted");
    desk.works(&format!("{GRID} --store wild --out wild-out"));
    let same = |a: &str, b: &str| {
        let (a, b) = (desk.bytes(a), desk.bytes(b));
        // Elsewhere the owner of a draft is not known to be dead before a day is over.
        let draft = |path: &&PathBuf| cfg!(target_os = "linux") || !path.to_string_lossy().contains(".part");
        assert_eq!(a.keys().filter(draft).collect::<Vec<_>>(), b.keys().filter(draft).collect::<Vec<_>>());
        assert!(a.iter().all(|(path, bytes)| b.get(path).is_none_or(|other| other == bytes)));
    };
    same("calm", "wild");
    assert_eq!(desk.read("calm-out/table.csv"), desk.read("wild-out/table.csv"));
    assert_eq!(desk.bytes("calm-out").len(), desk.bytes("wild-out").len());
    assert_eq!(
        desk.read("calm-out/comparison.json").replace("../calm", "../wild"),
        desk.read("wild-out/comparison.json")
    );
}

#[test]
fn two_processes_on_one_store_end_well() {
    let desk = desk();
    desk.works(&format!("{GRID} --store alone --out one"));
    let both = [(); 2].map(|()| desk.command(&format!("{GRID} --store shared --out both")).spawn().unwrap());
    for child in both {
        let (status, printed, said) = answer(patience::output("a comparison beside another", child));
        assert_eq!(status, Some(0), "{said}");
        assert!(printed.contains("18 runs, "), "{printed}");
    }
    assert!(desk.bytes("shared") == desk.bytes("alone"));
    let files = |folder: &str| desk.bytes(folder).into_keys().collect::<Vec<_>>();
    assert_eq!(files("both"), files("one"), "a comparison has all its files and no draft is left");
}

#[cfg(unix)]
#[test]
fn a_full_disk_loses_no_finished_run() {
    let desk = desk();
    // Few large flows are much work and little to write; many small ones are the reverse.
    let grid = "compare incast.toml --vary flow.2.count=1,8000 --threads 1";
    let program = env!("CARGO_BIN_EXE_tailwater");
    let limited = format!("trap '' XFSZ; ulimit -f 64; exec {program} {grid} --set flow.0.count=100");
    let output = Command::new("sh").args(["-c", &limited]).current_dir(desk.path("")).output().unwrap();
    let (status, printed, said) = answer(output);
    assert_eq!((status, printed.as_str()), (Some(1), ""), "{said}");
    assert!(said.contains("error: results/runs/") && said.contains("cannot be written"), "{said}");
    assert!(said.contains("help: make room on the disk"), "{said}");
    assert_eq!(fs::read_dir(desk.path("results/runs")).unwrap().count(), 0, "nothing half-written");

    let limited = limited.replace("count=1,8000", "count=8000,1,2,3,4").replace("--threads 1", "--threads 5");
    let output = Command::new("sh").args(["-c", &limited]).current_dir(desk.path("")).output().unwrap();
    let (status, _, said) = answer(output);
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("4 of 5 runs are in results/runs"), "{said}");
    let kept = contents(&desk.path("results/runs"));
    let (printed, _) = desk.works("compare incast.toml --vary flow.2.count=8000,1,2,3,4 --set flow.0.count=100");
    assert!(printed.contains("5 runs, 1 new"), "{printed}");
    let after = contents(&desk.path("results/runs"));
    assert!(kept.iter().all(|(path, found)| after.get(path) == Some(found)), "what was finished is not touched");
}

#[test]
fn bad_input_is_refused_before_anything_is_written() {
    let desk = desk();
    let before = desk.bytes("");
    fs::write(desk.path("conflict.toml"), INCAST.replace("preset = \"dcqcn\"", "window = \"bdp\"")).unwrap();
    desk.refuses("compare nothing.toml", "nothing.toml: cannot be read");
    desk.refuses("compare incast.toml --schemes dcqcn,hpc", "--schemes: there is no preset \"hpc\"");
    let said = desk.refuses("compare incast.toml --schemes hpc,bfcc --seeds -1 --vary x --bins q", "--schemes: ");
    assert_eq!(said.matches("error: --").count(), 5, "{said}");
    assert!(said.contains("did you mean \"hpcc\"?") && said.contains("did you mean \"bfc\"?"), "{said}");
    let said = desk.refuses("compare incast.toml --vary flow.size=1KB,2KB", "--vary flow.size=1KB: ");
    assert!(said.contains("write flow.0.size"), "{said}");
    let said = desk.refuses("compare incast.toml --set flow.9.size=1KB --set scheme=hpcc", "--set flow.9.size=1KB: ");
    assert!(said.contains("error: --set scheme=hpcc: scheme is a table"), "{said}");
    desk.refuses("compare incast.toml --schemes dcqcn,,hpcc", "--schemes: there is no preset \"\"");
    desk.refuses("compare conflict.toml --schemes dcqcn,hpcc", "conflict.toml:7:10: scheme.window is set");
    desk.refuses("compare incast.toml --set switch.bufer=1MB", "--set switch.bufer=1MB: unknown key");
    desk.refuses("compare incast.toml --vary switch.buffer", "--vary switch.buffer: has no \"=\"");
    for seeds in ["0", "x", "1,1", "3,", "20000", "1.5"] {
        desk.refuses(&format!("compare incast.toml --seeds {seeds}"), "--seeds: ");
    }
    desk.refuses("compare incast.toml --seeds 2 --set seed=3", "--seeds: the seed is given with --set, too");
    let said = desk
        .refuses("compare incast.toml --schemes pfc,hpcc --vary switch.buffer=1MB,1XB", "--vary switch.buffer=1XB: ");
    assert!(said.contains("(in the run pfc, switch.buffer=1XB, seed 1)"), "{said}");
    desk.refuses("compare incast.toml --out incast.toml", "incast.toml: is a file");
    fs::remove_file(desk.path("conflict.toml")).unwrap();
    assert_eq!(desk.bytes(""), before);
    desk.refuses("compare incast.toml --store incast.toml", "incast.toml: is a file");
    assert_eq!(desk.read("incast.toml"), INCAST);
}

#[test]
fn a_comparison_writes_over_comparisons_only() {
    let desk = desk();
    fs::create_dir(desk.path("mine")).unwrap();
    fs::write(desk.path("mine/scenario.toml"), "thesis").unwrap();
    desk.refuses("compare incast.toml --out mine", "mine: has a scenario.toml that is not of a comparison");
    assert_eq!(desk.read("mine/scenario.toml"), "thesis");
    assert!(!Path::exists(&desk.path("results")));
    // Nor does it mix with other things; the store may be inside.
    fs::rename(desk.path("mine/scenario.toml"), desk.path("mine/thesis.txt")).unwrap();
    desk.refuses(
        "compare incast.toml --out mine --store mine/runs",
        "mine: has a thesis.txt that is not of a comparison",
    );
    fs::remove_file(desk.path("mine/thesis.txt")).unwrap();
    for new in ["1 new", "0 new"] {
        let (printed, _) = desk.works("compare incast.toml --out mine --store mine/runs");
        assert!(printed.contains(new), "{printed}");
    }
    let comparison: Value = serde_json::from_str(&desk.read("mine/comparison.json")).unwrap();
    let cell = &comparison["cells"][0];
    assert_eq!(cell["folder"], format!("runs/{}", cell["digest"].as_str().unwrap()));
    assert_eq!((&comparison["axes"], &cell["labels"]), (&serde_json::json!([]), &serde_json::json!({})));
}

#[test]
fn a_comparison_of_other_schemes_gets_a_folder_of_its_own() {
    let desk = desk();
    desk.works("compare incast.toml --schemes pfc,hpcc");
    let first = desk.read("results/compare-incast/comparison.json");
    let (printed, said) = desk.works("compare incast.toml --schemes pfc,dcqcn");
    assert!(printed.contains("comparison in results/compare-incast-2"), "{printed}");
    assert!(said.contains("note: results/compare-incast has another comparison; this one goes to"), "{said}");
    assert_eq!(desk.read("results/compare-incast/comparison.json"), first);
    // The same again, also with more seeds, takes its own place.
    let (printed, said) = desk.works("compare incast.toml --schemes pfc,hpcc --seeds 2");
    assert!(printed.contains("comparison in results/compare-incast\n") && !said.contains("another"), "{printed}{said}");
    let said = desk.refuses(
        "compare incast.toml --out results/compare-incast-2",
        "results/compare-incast-2: has another comparison",
    );
    assert!(said.contains("tailwater compare incast.toml --schemes pfc,dcqcn") && said.contains("--replace"), "{said}");
    desk.works("compare incast.toml --out results/compare-incast-2 --replace");
    // Nothing is noted of a comparison that cannot be done.
    let said = desk.refuses("compare incast.toml --vary switch.buffer=1XB,1MB", "--vary switch.buffer=1XB: ");
    assert!(!said.contains("note: "), "{said}");
}
