//! Where the program writes, and what it leaves alone there.

use crate::desk::{Desk, STAR, answer};
use std::fs;
use std::process::Command;

fn desk() -> Desk {
    Desk::with(&[("star.toml", STAR)])
}

#[test]
fn a_run_replaces_nothing_but_a_run() {
    let desk = desk();
    desk.works("run star.toml --quiet");
    desk.works("run star.toml --quiet");
    fs::write(desk.path("results/star/notes.md"), "mine").unwrap();
    let said = desk.refuses("run star.toml", "results/star: holds notes.md besides the results of a run");
    assert!(said.contains("--out"), "{said}");
    assert_eq!(desk.read("results/star/notes.md"), "mine");
}

#[test]
fn a_run_and_a_store_do_not_share_a_folder() {
    let desk = desk();
    fs::copy(desk.path("star.toml"), desk.path("runs.toml")).unwrap();
    desk.refuses("run runs.toml", "results/runs: is where compare and sweep keep their runs");
    assert!(!desk.path("results").exists());
    desk.works("run star.toml --quiet --out mine");
    desk.refuses("compare star.toml --schemes pfc --store mine", "mine: has the results of a run");
    desk.works("compare star.toml --schemes pfc --quiet --store kept");
    desk.refuses("run star.toml --out kept", "kept: exists and does not hold results of a run");
}

#[cfg(unix)]
#[test]
fn a_link_given_as_the_place_of_results_stays_one() {
    let desk = desk();
    fs::create_dir(desk.path("disk")).unwrap();
    std::os::unix::fs::symlink("disk", desk.path("link")).unwrap();
    for _ in 0..2 {
        let (printed, _) = desk.works("run star.toml --out link --no-report");
        assert!(printed.ends_with("results in link\n"), "{printed}");
        assert!(desk.path("link").is_symlink() && desk.path("disk/summary.json").is_file());
    }
}

#[test]
fn what_a_command_reads_it_does_not_write_over() {
    let desk = desk();
    fs::write(desk.path("flows.csv"), "src,dst,size,start\nh0,h1,1KB,0us\n").unwrap();
    let traced = "[topology]\nkind = \"star\"\nhosts = 4\n[traffic]\ntrace = \"flows.csv\"\n";
    fs::write(desk.path("traced.toml"), traced).unwrap();
    for out in ["traced.toml", "./traced.toml", "flows.csv"] {
        desk.refuses(&format!("traffic traced.toml --out {out}"), &format!("{out}: is one of the files that are read"));
    }
    assert_eq!(desk.read("traced.toml"), traced);
    fs::write(desk.path("matrix.csv"), "Nodes 16\nConnections 1\n0->15 start 0 size 2000\n").unwrap();
    desk.refuses("import htsim --cm matrix.csv --out matrix.toml", "matrix.csv: is one of the files that are read");
    // Nor what lies beside it and is none of its own.
    desk.refuses("import htsim --cm matrix.csv --out flows.toml", "flows.csv: is there already");
    desk.refuses("import htsim --cm matrix.csv --out star.toml", "star.toml: is there already");
    desk.works("import htsim --cm matrix.csv --out new.toml");
    desk.works("import htsim --cm matrix.csv --out new.toml");
}

#[cfg(target_os = "linux")]
#[test]
fn standard_output_by_its_name_is_written_behind_what_is_there() {
    let desk = desk();
    let line = "echo mine > log; \"$0\" traffic star.toml --out /dev/stdout >> log";
    let mut shell = Command::new("sh");
    shell.args(["-c", line, env!("CARGO_BIN_EXE_tailwater")]).current_dir(desk.path(""));
    assert!(shell.status().unwrap().success());
    let log = desk.read("log");
    assert!(log.starts_with("mine\nsrc,dst,") && log.lines().count() == 4, "{log}");
}

#[test]
fn a_page_of_others_is_not_drawn_over() {
    let desk = desk();
    desk.works("run star.toml --quiet");
    desk.works("report results/star");
    fs::create_dir(desk.path("site")).unwrap();
    fs::write(desk.path("site/report.html"), "<html>mine</html>").unwrap();
    desk.refuses("report results/star --out site", "site/report.html: is there already");
    assert_eq!(desk.read("site/report.html"), "<html>mine</html>");
}

#[test]
fn two_comparisons_at_once_are_both_kept() {
    let desk = desk();
    let at_once = |more: &str| {
        let begin =
            |scheme| desk.command(&format!("compare star.toml --schemes {scheme} --seeds 2{more}")).spawn().unwrap();
        ["pfc", "hpcc"].map(begin).map(|child| answer(child.wait_with_output().unwrap()))
    };
    let answers = at_once("");
    assert!(answers.iter().all(|(status, ..)| *status == Some(0)), "{answers:?}");
    let commands = ["compare-star", "compare-star-2"].map(|name| desk.read(&format!("results/{name}/comparison.json")));
    assert!(
        ["pfc", "hpcc"].iter().all(|scheme| commands.iter().any(|text| text.contains(&format!("--schemes {scheme}"))))
    );
    let answers = at_once(" --out mine");
    let mut statuses = answers.clone().map(|(status, ..)| status);
    statuses.sort();
    assert_eq!(statuses, [Some(0), Some(1)], "{answers:?}");
    assert!(answers.iter().any(|(_, _, said)| said.contains("mine: has another comparison")), "{answers:?}");
    let left = fs::read_dir(desk.path("mine")).unwrap().flatten().map(|entry| entry.file_name().into_string().unwrap());
    assert!(left.into_iter().all(|name| !name.starts_with('.')), "no claim is left");
}

#[test]
fn a_sweep_takes_the_place_of_no_other() {
    let desk = desk();
    let put = |folder: &str, scheme: &str| {
        fs::create_dir_all(desk.path(folder)).unwrap();
        let text = format!("scenario = \"../star.toml\"\nschemes = [\"{scheme}\"]\n");
        fs::write(desk.path(folder).join("job.toml"), text).unwrap();
    };
    put("a", "pfc");
    put("b", "hpcc");
    desk.works("sweep a/job.toml --quiet");
    let before = desk.bytes("results/sweep-job");
    let (printed, said) = desk.works("sweep b/job.toml");
    assert!(printed.contains("sweep in results/sweep-job-2"), "{printed}");
    assert!(said.contains("results/sweep-job has another sweep; this one goes to results/sweep-job-2"), "{said}");
    assert_eq!(desk.bytes("results/sweep-job"), before);
    desk.refuses(
        "sweep b/job.toml --out results/sweep-job",
        "results/sweep-job: has another sweep: tailwater sweep a/job.toml",
    );
    // One that was edited is the same.
    put("a", "dcqcn");
    assert!(desk.works("sweep a/job.toml").0.contains("sweep in results/sweep-job\n"));
    assert!(desk.read("results/sweep-job/sweep.toml").contains("dcqcn"));
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let desk = desk();
    let set = "--set switch.buffer=9MB";
    desk.refuses(
        &format!("compare star.toml --vary switch.buffer=2MB,4MB {set}"),
        &format!("{set}: switch.buffer is given with --vary, too"),
    );
    desk.refuses(
        "compare star.toml --schemes pfc --set scheme.preset=hpcc",
        "--set scheme.preset=hpcc: the schemes are given, too",
    );
    desk.refuses("compare star.toml --vary flow.0.size=1KB --vary flow.00.size=2KB", "--vary flow.00.size");
    assert!(!desk.path("results").exists());
}

#[cfg(target_os = "linux")]
#[test]
fn flows_that_there_is_no_memory_for_are_refused_before_any_is_taken() {
    let desk = desk();
    let check = |set: &str| {
        let program = env!("CARGO_BIN_EXE_tailwater");
        let line = format!("ulimit -v 1500000; exec '{program}' check star.toml --set {set}");
        let mut shell = Command::new("sh");
        answer(shell.args(["-c", &line]).current_dir(desk.path("")).output().unwrap())
    };
    let (status, _, said) = check("flow.0.count=20000000");
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains("there is no memory for more than ") && said.contains("\n  help: "), "{said}");
    let (status, _, said) = check("flow.0.count=1000");
    assert_eq!(status, Some(0), "{said}");
}

#[test]
fn what_is_recorded_under_way_goes_to_a_file_that_can_be_written() {
    let desk = Desk::with(&[("s.toml", STAR)]);
    let refused = |place: &str, words: &str| {
        let said =
            desk.refuses(&format!("run s.toml --out out --record-live {place}"), place.split("/x").next().unwrap());
        assert!(said.contains(words), "{said}");
        assert!(!desk.path("out").exists(), "it is refused before the run");
    };
    refused("s.toml/x", "is a file; a folder is needed there");
    refused("/dev/full", "is no file");
    desk.works("run s.toml --out out --record-live live/recording.bin --quiet");
}

#[test]
fn a_closer_look_needs_to_know_when_the_run_ends() {
    let desk = Desk::with(&[("s.toml", STAR)]);
    let said = desk.refuses("run s.toml --record-from 1us", "--record-from: needs to know when the run ends");
    assert!(said.contains("the scenario has no `stop`") && said.contains("--set stop="), "{said}");
    desk.works("run s.toml --record-from 1us --set stop=10us --quiet --no-report");
}
