//! Tables as CSV, and completion times in comparisons.

use crate::desk::{Desk, STAR, answer};
use std::fs;

fn desk() -> Desk {
    Desk::with(&[("s.toml", STAR)])
}

#[test]
fn the_flows_of_a_run_are_csv_line_by_line() {
    let desk = desk();
    desk.works("run s.toml --no-report --out out");
    let (csv, _) = desk.works("export out");
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 3);
    let heads: Vec<&str> = lines[0].split(',').collect();
    let table = results::tables::read(&desk.path("out/flows.parquet")).unwrap();
    let names: Vec<&str> = table.columns().iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(heads, names);
    let at = |name: &str| heads.iter().position(|head| *head == name).unwrap();
    let first: Vec<&str> = lines[1].split(',').collect();
    assert_eq!((first[at("src")], first[at("dst")], first[at("size_bytes")]), ("h1", "h0", "100000"));
    let flows = results::records::open_flows(&desk.path("out")).unwrap();
    assert_eq!(first[at("received_ps")].parse::<u64>().ok(), flows[0].received_ps);
    assert_eq!(first[at("slowdown")].parse::<f64>().ok(), flows[0].slowdown);
    // To a file, and of another table.
    desk.works("export out --out flows.csv");
    assert_eq!(desk.read("flows.csv"), csv);
    let (links, _) = desk.works("export out --table links");
    assert_eq!(links.lines().count(), 1 + 8);
    // Several are told apart by their folders.
    desk.works("run s.toml --no-report --out two");
    let (both, _) = desk.works("export out two");
    assert!(both.starts_with("folder,") && both.contains("\ntwo,"), "{both}");
    assert_eq!(both.lines().count(), 5);
}

#[test]
fn the_flows_of_a_comparison_have_its_schemes_and_seeds_in_columns() {
    let desk = desk();
    desk.works("compare s.toml --schemes pfc,hpcc --vary switch.buffer=1MB,2MB --seeds 2");
    let (csv, _) = desk.works("export results/compare-s");
    assert!(csv.starts_with("scheme,switch.buffer,seed,"), "{csv}");
    assert_eq!(csv.lines().count(), 1 + 8 * 2);
    for row in ["\npfc,1MB,1,", "\npfc,2MB,2,", "\nhpcc,2MB,1,"] {
        assert_eq!(csv.matches(row).count(), 2, "{row}");
    }
}

#[test]
fn what_cannot_be_exported_is_refused_with_what_can() {
    let desk = desk();
    desk.works("run s.toml --no-report --out out");
    let said = desk.refuses("export out --table flow", "out: has no table \"flow\"");
    assert!(said.contains("its tables are buffers, flows, links"), "{said}");
    desk.refuses("export out --table ../out/flows", "out: has no table");
    desk.refuses("export nowhere", "nowhere: is no folder of a run, a comparison or a sweep");
    desk.works("compare s.toml --schemes pfc --seeds 1");
    desk.refuses("export out results/compare-s", "results/compare-s");
    fs::write(desk.path("out/flows.parquet"), "damaged").unwrap();
    desk.refuses("export out", "out");
    fs::write(desk.path("results/compare-s/comparison.json"), "{").unwrap();
    desk.refuses("export results/compare-s", "results/compare-s/comparison.json");
}

#[test]
fn a_comparison_prints_completion_times_if_asked_and_its_files_have_them() {
    let desk = desk();
    let (plain, _) = desk.works("compare s.toml --schemes pfc,hpcc");
    assert!(!plain.contains("completion time in us"), "{plain}");
    let (times, _) = desk.works("compare s.toml --schemes pfc,hpcc --times");
    assert!(times.contains("\ncompletion time in us by flow size, p50 / p99\n"), "{times}");
    assert!(desk.read("results/compare-s/by_size.csv").lines().next().unwrap().ends_with("time_ps_p999_high"));
    let page = desk.read("results/compare-s/report.html");
    assert!(page.contains("Completion times by flow size"));
    // The foot says which version has drawn it.
    let (version, _) = desk.works("--version");
    let version = version.lines().next().unwrap().trim_start_matches("tailwater ").to_string();
    assert!(page.contains(&format!("<footer>Tailwater {version}</footer>")), "{version}");
}

#[test]
#[cfg(target_os = "linux")]
fn what_cannot_be_printed_is_no_success() {
    let desk = desk();
    desk.works("run s.toml --no-report --out out");
    for command in ["export out", "--help", "run --help", "--version"] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let (status, _, said) = answer(desk.command(command).stdout(full).output().unwrap());
        assert_eq!(status, Some(1), "{command}: {said}");
        assert!(said.contains("error: standard output: No space left"), "{command}: {said}");
    }
}
