//! Reports of results, from the command line.

use std::path::Path;
use std::process::{Command, Output};

const SCENARIO: &str = "name = \"a <test> & more\"\n[topology]\nkind = \"star\"\nhosts = 8\n[scheme]\npreset = \"dcqcn\"\n\
    [measure]\nports = [\"*->h0\"]\nflows = [\"answers\"]\n\
    [[incast]]\nname = \"answers\"\ndegree = 7\nsize_each = \"200KB\"\nto = \"h0\"\n\
    [[load]]\nsizes = \"google\"\nload = 0.2\nduration = \"200us\"\n";

fn tailwater(at: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tailwater")).args(words).current_dir(at).output().unwrap()
}

fn works(at: &Path, words: &[&str]) -> String {
    let output = tailwater(at, words);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_run_has_a_page_that_needs_no_network_and_its_figures_as_images_if_asked() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("s.toml"), SCENARIO).unwrap();
    works(dir.path(), &["run", "s.toml", "--out", "out"]);
    let page = std::fs::read_to_string(dir.path().join("out/report.html")).unwrap();
    for part in
        ["a &lt;test&gt; &amp; more", "dcqcn", "Queues of the watched ports", "Rates of the watched flows", "answers"]
    {
        assert!(page.contains(part), "no {part}");
    }
    // Drawn again from the folder alone, it is the same.
    works(dir.path(), &["report", "out", "--out", "again"]);
    for name in ["queues", "flow-rates", "buffers", "receivers", "slowdown-p99-load"] {
        let svg = std::fs::read_to_string(dir.path().join(format!("out/figures/{name}.svg"))).unwrap();
        assert!(svg.starts_with("<svg") && svg.contains("</text>"), "{name}");
        assert_eq!(std::fs::read_to_string(dir.path().join(format!("again/figures/{name}.svg"))).unwrap(), svg);
        assert!(!dir.path().join(format!("out/figures/{name}.png")).exists(), "{name}");
        let png = std::fs::read(dir.path().join(format!("again/figures/{name}.png"))).unwrap();
        assert!(png.starts_with(b"\x89PNG"), "{name}");
    }
    assert_eq!(std::fs::read_to_string(dir.path().join("again/report.html")).unwrap(), page);
    works(dir.path(), &["run", "s.toml", "--out", "plain", "--no-report"]);
    assert!(!dir.path().join("plain/report.html").exists());
}

#[test]
fn a_comparison_has_a_page_with_every_scheme() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("s.toml"), SCENARIO).unwrap();
    works(
        dir.path(),
        &["compare", "s.toml", "--schemes", "pfc,hpcc", "--vary", "switch.buffer=4MB,8MB", "--out", "cmp"],
    );
    let page = std::fs::read_to_string(dir.path().join("cmp/report.html")).unwrap();
    assert!(page.contains("pfc, 4MB") && page.contains("hpcc, 8MB") && page.contains("--vary switch.buffer=4MB,8MB"));
    assert!(dir.path().join("cmp/figures/p99-by-value.png").is_file());
    let runs: Vec<_> = std::fs::read_dir(dir.path().join("results/runs")).unwrap().map(|e| e.unwrap().path()).collect();
    let mut words = vec!["report", "--out", "side"];
    words.extend(runs.iter().filter_map(|path| path.to_str()));
    works(dir.path(), &words);
    assert!(dir.path().join("side/report.html").is_file());
}

const TOGETHER: &str = "name = \"together\"\n[topology]\nkind = \"star\"\nhosts = 4\n\
    [[collective]]\nname = \"ring\"\nkind = \"ring-all-reduce\"\nhosts = \"h0..h3\"\nsize = \"40KB\"\nrounds = 2\n\
    [[flow]]\nname = \"one\"\nsrc = \"h0\"\ndst = \"h1\"\nsize = \"10KB\"\n";

#[test]
fn a_collective_is_told_step_by_step_and_groups_apart_on_the_terminal_and_on_the_page() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("s.toml"), TOGETHER).unwrap();
    let said = works(dir.path(), &["run", "s.toml", "--out", "out"]);
    let line = |start: &str| said.lines().find(|line| line.starts_with(start)).map(str::to_string);
    assert!(line("ring, up to 10KB").is_some() && line("one, up to 10KB").is_some(), "{said}");
    assert!(line("ring, all").is_none(), "one size is all: {said}");
    // A ring of four reduces in three steps and gathers in three.
    let steps = line("  6 steps, ").unwrap_or_else(|| panic!("{said}"));
    assert!(steps.contains("us each; the longest is step ") && steps.contains(" of round "), "{steps}");
    let page = std::fs::read_to_string(dir.path().join("out/report.html")).unwrap();
    for part in ["Collectives</h2>", "ring-all-reduce", "2 of 2", "Completion time by step", "p99 time"] {
        assert!(page.contains(part), "no {part}");
    }
}

#[test]
fn one_receiver_is_a_number_and_no_distribution() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = "[topology]\nkind = \"star\"\nhosts = 4\n\
        [[incast]]\ndegree = 3\nsize_each = \"200KB\"\nto = \"h0\"\ncount = 1\n";
    std::fs::write(dir.path().join("s.toml"), scenario).unwrap();
    works(dir.path(), &["run", "s.toml", "--out", "out"]);
    let page = std::fs::read_to_string(dir.path().join("out/report.html")).unwrap();
    assert!(!page.contains("Throughput of the receivers") && page.contains("Mean rate of the receivers"));
}

#[test]
fn what_is_not_a_folder_of_results_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let output = tailwater(dir.path(), &["report", "nothing"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("nothing/summary.json"), "{said}");
    assert!(said.contains("name the folder of a run"), "{said}");
    std::fs::write(dir.path().join("s.toml"), SCENARIO).unwrap();
    works(dir.path(), &["run", "s.toml", "--out", "out", "--no-report"]);
    std::fs::write(dir.path().join("out/flows.parquet"), "not a table").unwrap();
    let output = tailwater(dir.path(), &["report", "out"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("flows.parquet: cannot be read"), "{said}");
    assert!(!dir.path().join("out/report.html").exists(), "nothing is half-written");
}
