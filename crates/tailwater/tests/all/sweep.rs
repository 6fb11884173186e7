//! `tailwater sweep` as people use it: on many processes that are killed, in shards, and collected.

use crate::desk::{Desk, STAR};
use crate::patience::{self, Deadline};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};

const INCAST: &str = "\
name = \"eight into one\"
[topology]
kind = \"star\"
hosts = 9
[[incast]]
degree = 8
size = \"1MB\"
load = 0.5
duration = \"1ms\"
";

const SWEEP: &str = "\
scenario = \"incast.toml\"
schemes = [\"dcqcn\", \"hpcc\"]
seeds = 4
[grid]
\"switch.buffer\" = [\"2MB\", \"4MB\", \"8MB\"]
\"incast.0.load\" = [0.3, 0.6]
";

/// With a sweep of 48 runs.
fn desk() -> Desk {
    Desk::with(&[("incast.toml", INCAST), ("sweep.toml", SWEEP)])
}

/// A worker whose words go to a file.
fn worker(desk: &Desk, number: usize) -> Child {
    let mut command = desk.command("sweep sweep.toml --store shared --out shared-out --threads 1 --lease 2s");
    let log = fs::File::create(desk.path(&format!("{number}.log"))).unwrap();
    command.stdout(Stdio::null()).stderr(log).spawn().unwrap()
}

/// Runs that are in a store.
fn finished(store: &Path) -> usize {
    let whole = |entry: &fs::DirEntry| entry.path().join("summary.json").exists() && !is_draft(&entry.path());
    fs::read_dir(store).map_or(0, |entries| entries.flatten().filter(whole).count())
}

fn is_draft(path: &Path) -> bool {
    path.file_name().unwrap().to_string_lossy().starts_with('.')
}

#[test]
fn three_workers_killed_twenty_times_lose_nothing_and_repeat_only_what_was_running() {
    let desk = desk();
    desk.works("sweep sweep.toml --store alone --out alone-out --quiet");
    let mut workers: Vec<Child> = (0..3).map(|number| worker(&desk, number)).collect();
    let (mut begun, mut killed) = (3, 0);
    // The next worker in turn, when two more runs are there.
    let mut seen = 0;
    let deadline = Deadline::of("two more runs are there, or all workers have ended");
    while killed < 20 {
        deadline.check();
        let now = finished(&desk.path("shared"));
        if now < seen + 2 {
            if workers.iter_mut().all(|worker| worker.try_wait().unwrap().is_some()) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
            continue;
        }
        seen = now;
        let turn = killed % 3;
        workers[turn].kill().unwrap();
        patience::status("a worker that was killed", &mut workers[turn]);
        killed += 1;
        workers[turn] = worker(&desk, begun);
        begun += 1;
    }
    for worker in &mut workers {
        assert!(patience::status("a worker", worker).success(), "the last ones end well");
    }
    assert_eq!(killed, 20, "{seen} runs were there");
    assert!(desk.bytes("shared") == desk.bytes("alone"), "the same files, and nothing besides");
    for file in ["table.csv", "runs.parquet"] {
        let read = |folder: &str| fs::read(desk.path(folder).join(file)).unwrap();
        assert!(read("shared-out") == read("alone-out"), "{file}");
    }
    // A worker reports each run that it has finished, and may be killed between that and the report: none comes twice.
    let logs: String = (0..begun).map(|n| fs::read_to_string(desk.path(&format!("{n}.log"))).unwrap()).collect();
    let reported = logs.lines().filter(|line| line.contains("packet-hops/s")).count();
    assert!(reported <= 48, "{reported} runs were finished for 48 results");
}

#[test]
fn shards_in_stores_of_their_own_make_the_whole_and_are_collected() {
    let desk = desk();
    desk.works("sweep sweep.toml --store alone --out alone-out --quiet");
    desk.refuses("sweep collect sweep.toml --store shards", "shards: 0 of 48 runs are there");
    for shard in 1..=4 {
        let (printed, _) = desk.works(&format!("sweep sweep.toml --store shards --shard {shard}/4"));
        assert!(printed.starts_with(&format!("shard {shard} of 4: 12 runs, 12 new;")), "{printed}");
    }
    assert!(desk.bytes("shards") == desk.bytes("alone"));
    assert!(!desk.path("results").exists(), "a shard writes no folder");
    let (printed, _) = desk.works("sweep status sweep.toml --store shards");
    assert!(printed.starts_with("48 of 48 runs are there, 0 under way, 0 missing;"), "{printed}");
    let (printed, _) = desk.works("sweep collect sweep.toml --store shards");
    assert!(printed.ends_with("48 runs; sweep in results/sweep-sweep\n"), "{printed}");
    for file in ["table.csv", "runs.parquet", "sweep.toml", "scenario.toml", "report.html"] {
        assert!(desk.path("results/sweep-sweep").join(file).is_file(), "{file}");
    }
    let about: Value = serde_json::from_str(&desk.read("results/sweep-sweep/sweep.json")).unwrap();
    assert_eq!(about["axes"][1]["name"], "switch.buffer");
    assert_eq!(about["cells"].as_array().unwrap().len(), 48);
    assert_eq!(about["rows"].as_array().unwrap().len(), 12);
    let folder = about["cells"][0]["folder"].as_str().unwrap();
    assert!(desk.path("results/sweep-sweep").join(folder).join("flows.parquet").is_file(), "{folder}");
    let figures: Vec<String> = fs::read_dir(desk.path("results/sweep-sweep/figures"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    for figure in ["lines-slowdown-p99-all.svg", "map-slowdown-p99-all-1.svg", "map-slowdown-p99-all-2.png"] {
        assert!(figures.iter().any(|name| name == figure), "{figure}: {figures:?}");
    }
    let (json, _) = desk.works("sweep status sweep.toml --store shards --json");
    let status: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((status["runs"].as_u64(), status["finished"].as_u64()), (Some(48), Some(48)));
}

#[test]
fn wrong_options_and_values_are_refused_before_anything_runs() {
    let desk = desk();
    desk.refuses("sweep nowhere.toml", "nowhere.toml: cannot be read");
    for shard in ["0/4", "5/4", "1", "a/b", "1/0"] {
        desk.refuses(&format!("sweep sweep.toml --shard {shard}"), "--shard: ");
    }
    desk.refuses("sweep sweep.toml --lease 10ms", "--lease: ");
    desk.refuses("sweep sweep.toml --lease soon", "--lease: ");
    fs::write(desk.path("bad.toml"), "scenario = \"incast.toml\"\n[grid]\n\"switch.buffer\" = [\"4XB\"]").unwrap();
    desk.refuses("sweep bad.toml", "bad.toml:3:20: switch.buffer=4XB: unknown unit");
    fs::create_dir(desk.path("mine")).unwrap();
    fs::write(desk.path("mine/table.csv"), "1,2").unwrap();
    desk.refuses("sweep sweep.toml --out mine", "mine: has a table.csv that is not of a sweep");
    // Where there is no Slurm it says so.
    let mut command = desk.command("sweep sweep.toml --on slurm");
    let output = command.env("PATH", desk.path("none")).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("error: sbatch: cannot be started") && said.contains("help: "), "{said}");
    assert!(!desk.path("results/sweep-sweep/slurm/jobs.json").exists());
}

#[test]
fn two_comparisons_at_once_do_no_run_twice() {
    let desk = desk();
    let compare = |number: usize| {
        let mut command = desk.command(&format!(
            "compare incast.toml --schemes dcqcn,hpcc,pfc --seeds 4 --store runs --threads 1 --out out{number} --progress json"
        ));
        command.spawn().unwrap()
    };
    let outputs = [0, 1].map(compare).map(|child| patience::output("a comparison beside another", child));
    let done = |output: &std::process::Output| {
        let said = String::from_utf8(output.stderr.clone()).unwrap();
        assert!(output.status.success(), "{said}");
        said.lines().filter(|line| line.contains("\"step\":\"done\"")).count()
    };
    assert_eq!(outputs.iter().map(done).sum::<usize>(), 12);
}

#[test]
fn a_file_of_another_kind_is_told_once_what_takes_it() {
    let experiment = include_str!("../../../../examples/why/bfc-fig13.toml");
    let sweep = include_str!("../../../../examples/sweeps/buffer.toml");
    let graph = "[[node]]\nname = \"h0\"\nkind = \"host\"\n";
    let files = [("experiment.toml", experiment), ("sweep.toml", sweep), ("star.toml", STAR), ("graph.toml", graph)];
    let desk = Desk::with(&files);
    let once = |arguments: &str, message: &str, remedy: &str| {
        let said = desk.refuses(arguments, message);
        assert_eq!(said.matches("error: ").count(), 1, "{arguments}: {said}");
        assert!(said.contains(remedy), "{arguments}: {said}");
    };
    let takes_scenarios =
        ["run", "check", "estimate", "deadlock", "traffic", "compare", "compare --schemes dcqcn,hpcc --seeds 2"];
    for command in takes_scenarios {
        let (command, options) = command.split_once(' ').unwrap_or((command, ""));
        for (file, is, remedy) in [
            ("experiment.toml", "an experiment", "tailwater reproduce"),
            ("sweep.toml", "a sweep", "tailwater sweep"),
            ("graph.toml", "a graph file", "[topology]"),
        ] {
            let message = format!("{file}: the file is {is}, not a scenario");
            once(&format!("{command} {file} {options}"), &message, remedy);
        }
    }
    once("sweep experiment.toml", "experiment.toml: the file is an experiment, not a sweep", "tailwater reproduce");
    once("sweep star.toml", "star.toml: the file is a scenario, not a sweep", "tailwater run");
    once("reproduce star.toml", "star.toml: the file is a scenario, not an experiment", "tailwater run");
    once("reproduce sweep.toml", "sweep.toml: the file is a sweep, not an experiment", "tailwater sweep");
}
