//! What comes to harm: claims with other clocks, damaged files, disks that take no more.

use crate::desk::{Desk, STAR, answer};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

/// With a sweep of two runs and a comparison of the same.
fn desk() -> Desk {
    let sweep = "scenario = \"star.toml\"\nschemes = [\"pfc\", \"hpcc\"]\n";
    Desk::with(&[("star.toml", STAR), ("sweep.toml", sweep)])
}

/// The folders of the runs in results/runs.
fn runs(desk: &Desk) -> Vec<PathBuf> {
    let entries = fs::read_dir(desk.path("results/runs")).unwrap().map(|entry| entry.unwrap().path());
    let mut runs: Vec<PathBuf> = entries.filter(|path| path.join("summary.json").exists()).collect();
    runs.sort();
    runs
}

/// Changes one byte in the middle of a file, which keeps its length.
fn flip(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_sweep_says_whom_it_waits_for_and_takes_over_a_claim_dated_in_the_future() {
    let desk = desk();
    desk.works("sweep sweep.toml --quiet");
    let run = runs(&desk).remove(0);
    for more in ["", " --progress json"] {
        fs::remove_dir_all(&run).unwrap();
        let claims = desk.path("results/runs/claims");
        fs::create_dir_all(&claims).unwrap();
        let claim = claims.join(format!("{}.1", run.file_name().unwrap().to_str().unwrap()));
        // In the year 2100, by a clock of its own.
        let owner = json!({ "host": "n17", "machine": "elsewhere", "process": 4711, "began": 1, "lease": 2500, "since": 4_102_444_800_u64 });
        fs::write(&claim, owner.to_string()).unwrap();
        let file = fs::OpenOptions::new().write(true).open(&claim).unwrap();
        file.set_modified(SystemTime::now() + Duration::from_secs(365 * 24 * 3600)).unwrap();
        let (_, said) = desk.works(&format!("sweep sweep.toml{more}"));
        if more.is_empty() {
            let words = "process 4711 of n17, at it since 2100-01-01 00:00:00 UTC by its clock; no sign of life for";
            assert!(said.contains("waiting for ") && said.contains(words), "{said}");
        } else {
            let lines: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            let waiting = lines.iter().find(|line| line["step"] == "waiting").unwrap_or_else(|| panic!("{said}"));
            assert_eq!(
                (&waiting["host"], &waiting["process"], &waiting["lease_s"]),
                (&json!("n17"), &json!(4711), &json!(2))
            );
            assert!(waiting["waited_s"].as_u64() >= Some(1) && waiting["since"] == 4_102_444_800_u64, "{waiting}");
        }
        assert!(run.exists() && !claims.exists());
    }
}

#[test]
fn damaged_tables_are_refused_by_reports_run_again_by_comparisons_and_repaired_by_verification() {
    let desk = desk();
    let command = "compare star.toml --schemes pfc,hpcc";
    desk.works(command);
    let (whole, first) = (desk.bytes("results/runs"), runs(&desk).remove(0));
    let flows = first.join("flows.parquet");
    let place = first.strip_prefix(desk.path("")).unwrap().display().to_string();
    let (printed, _) = desk.works("store verify");
    assert_eq!(printed, "2 runs, 0 damaged\n");

    flip(&flows);
    let said =
        desk.refuses(&format!("report {place}"), &format!("{place}/flows.parquet: cannot be read: it is damaged"));
    assert!(said.contains("tailwater store verify --repair"), "{said}");
    let (status, printed, _) = answer(desk.command("store verify").output().unwrap());
    assert_eq!(status, Some(1));
    assert!(printed.contains(&format!("{place}: is damaged: flows.parquet has another SHA-256")), "{printed}");
    assert!(printed.contains("2 runs, 1 damaged; --repair puts"), "{printed}");
    let (printed, said) = desk.works(command);
    assert!(printed.contains("2 runs, 1 new") && said.contains("it is run again"), "{printed}{said}");
    assert_eq!(desk.bytes("results/runs"), whole);

    flip(&flows);
    flip(&runs(&desk)[1].join("summary.json"));
    let (printed, _) = desk.works("store verify --repair --json");
    let answer: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((&answer["runs"], answer["damaged"].as_array().map(Vec::len)), (&json!(2), Some(2)), "{printed}");
    assert!(answer["damaged"].as_array().unwrap().iter().all(|run| run["again"] == true), "{printed}");
    assert!(desk.path("results/runs/damaged").join(first.file_name().unwrap()).join("flows.parquet").exists());
    fs::remove_dir_all(desk.path("results/runs/damaged")).unwrap();
    assert_eq!(desk.bytes("results/runs"), whole);

    for run in runs(&desk) {
        fs::remove_file(run.join("SHA256SUMS")).unwrap();
    }
    assert!(desk.works("store verify").0.starts_with("2 runs, 0 damaged, 2 without digests"));
    assert!(desk.works(command).0.contains("2 runs, 0 new"));
    desk.refuses("store verify nowhere", "nowhere: cannot be read");
}

#[test]
fn a_folder_of_a_run_whose_tables_are_damaged_is_not_drawn() {
    let desk = desk();
    desk.works("run star.toml --out out --quiet");
    desk.works("report out");
    flip(&desk.path("out/links.parquet"));
    desk.refuses("report out", "out/links.parquet: cannot be read: it is damaged");
}

/// Every file and folder below a folder.
fn names(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(next) = open.pop() {
        for path in fs::read_dir(next).unwrap().map(|entry| entry.unwrap().path()) {
            found.push(path.strip_prefix(folder).unwrap().display().to_string());
            open.extend(path.is_dir().then_some(path));
        }
    }
    found.sort();
    found
}

#[test]
fn a_disk_that_takes_no_more_leaves_the_whole_folder_or_all_but_its_page_or_nothing_of_it() {
    let desk = desk();
    desk.works("sweep sweep.toml --out full --quiet");
    for (command, folder) in [
        ("run star.toml --quiet --out", "run"),
        ("compare star.toml --schemes pfc,hpcc --quiet --out", "compare"),
        ("sweep collect sweep.toml --quiet --out", "sweep"),
    ] {
        desk.works(&format!("{command} whole-{folder}"));
        let whole = names(&desk.path(&format!("whole-{folder}")));
        // The page is the longest file.
        let drawn = |name: &&String| name.as_str() == "report.html" || name.starts_with("figures");
        let undrawn: Vec<String> = whole.iter().filter(|name| !drawn(name)).cloned().collect();
        let place = desk.path(folder);
        fs::create_dir(&place).unwrap();
        let (mut failed, mut pages) = (0, 0);
        // The longest file that may be written grows. What is cut off is first written in part and then refused.
        for blocks in [0, 1, 2, 4, 6, 8, 12, 16, 24, 32, 64, 128, 100_000] {
            let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" {command} {folder}/out");
            let mut sh = Command::new("sh");
            sh.arg("-c").arg(&script).arg(env!("CARGO_BIN_EXE_tailwater")).current_dir(desk.path(""));
            let (status, _, said) = answer(sh.stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap());
            if status == Some(0) {
                assert_eq!(names(&place.join("out")), whole, "{script}");
                fs::remove_dir_all(place.join("out")).unwrap();
            } else {
                failed += 1;
                assert_eq!(status, Some(1), "{script}: {said}");
                if place.join("out").exists() {
                    pages += 1;
                    assert_eq!(names(&place.join("out")), undrawn, "{script}: {said}");
                    assert!(said.contains("/out/report.html: cannot be written") && said.contains("help: "), "{said}");
                    fs::remove_dir_all(place.join("out")).unwrap();
                }
            }
            assert_eq!(names(&place), [""; 0], "{script}: {said}");
        }
        assert!((3..13).contains(&failed), "{command} failed {failed} times");
        assert!((1..failed).contains(&pages), "{command} did without its page {pages} times");
        // What was there stays as it was.
        desk.works(&format!("{command} {folder}/out"));
        let before = desk.bytes(&format!("{folder}/out"));
        let script = format!("trap '' XFSZ; ulimit -f 4; exec \"$0\" {command} {folder}/out");
        let mut sh = Command::new("sh");
        sh.arg("-c").arg(&script).arg(env!("CARGO_BIN_EXE_tailwater")).current_dir(desk.path(""));
        assert_eq!(sh.output().unwrap().status.code(), Some(1), "{script}");
        assert_eq!(desk.bytes(&format!("{folder}/out")), before, "{script}");
    }
}

#[test]
fn a_single_run_is_verified_and_what_is_no_store_is_refused() {
    let desk = desk();
    desk.works("run star.toml --out one --quiet --no-report");
    assert!(desk.works("store verify one").0.starts_with("1 runs, 0 damaged"));
    flip(&desk.path("one/flows.parquet"));
    let (status, printed, _) = answer(desk.command("store verify one").output().unwrap());
    assert!(
        status == Some(1) && printed.contains("flows.parquet") && printed.contains("1 runs, 1 damaged"),
        "{printed}"
    );
    fs::remove_file(desk.path("one/summary.json")).unwrap();
    assert_eq!(answer(desk.command("store verify one").output().unwrap()).0, Some(1));
    // The folder around it has files, and none of a store.
    desk.refuses("store verify .", ".: is no store of runs, and no folder of a run");
    fs::create_dir_all(desk.path("empty/claims")).unwrap();
    assert!(desk.works("store verify empty").0.starts_with("0 runs, 0 damaged"));
}
