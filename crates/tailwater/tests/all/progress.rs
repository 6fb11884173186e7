//! What is reported to programs of runs under way: lines of JSON on standard error.

use crate::patience::{self, Deadline, PATIENCE};
use serde_json::Value;
use std::fs;
use std::process::{Command, Stdio};
use tempfile::TempDir;

const TINY: &str = "[topology]\nkind = \"star\"\nhosts = 3\n[[flow]]\nsrc = \"h1\"\ndst = \"h0\"\nsize = \"10KB\"\n";
const ENDLESS: &str =
    "[topology]\nkind = \"star\"\nhosts = 2\n[[flow]]\nsrc = \"h1\"\ndst = \"h0\"\nsize = \"900GB\"\n";

fn desk(text: &str) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.toml"), text).unwrap();
    dir
}

fn tailwater(dir: &TempDir, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tailwater"));
    command.args(arguments).args(["--progress", "json"]).current_dir(dir.path());
    command
}

/// The exit status and the lines, each of which must be JSON.
fn lines(dir: &TempDir, arguments: &[&str]) -> (Option<i32>, Vec<Value>) {
    let output = tailwater(dir, arguments).stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    let line = |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    (output.status.code(), text.lines().map(line).collect())
}

fn steps(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|line| line["step"].as_str().unwrap()).filter(|step| *step != "running").collect()
}

#[test]
fn a_run_is_planned_and_done() {
    let (code, lines) = lines(&desk(TINY), &["run", "a.toml"]);
    assert_eq!((code, steps(&lines)), (Some(0), vec!["planned", "done"]));
    assert_eq!((&lines[0]["runs"], &lines[lines.len() - 1]["run"]), (&Value::from(1), &Value::from(0)));
}

#[test]
fn a_comparison_reports_every_run_and_of_those_that_are_there_already() {
    let dir = desk(TINY);
    let (code, first) = lines(&dir, &["compare", "a.toml", "--schemes", "pfc,bfc", "--seeds", "2"]);
    assert_eq!((code, steps(&first)), (Some(0), vec!["planned", "done", "done", "done", "done"]));
    assert_eq!(first[0]["runs"], 4);
    assert!(first.iter().any(|line| line["label"] == "bfc, seed 2"));
    let (code, more) = lines(&dir, &["compare", "a.toml", "--schemes", "pfc,hpcc", "--seeds", "2"]);
    // Another comparison gets a folder of its own, which is worth a note once it is known that it can be done.
    assert_eq!((code, steps(&more)), (Some(0), vec!["reused", "reused", "note", "planned", "done", "done"]));
    assert_eq!(more[3]["runs"], 4);
}

#[test]
fn problems_and_notes_are_reported_with_their_places() {
    let bad = desk(&TINY.replace("10KB", "ten"));
    for command in ["run", "compare"] {
        let (code, lines) = lines(&bad, &[command, "a.toml"]);
        assert_eq!((code, steps(&lines)), (Some(1), vec!["problem"]), "{command}");
        assert_eq!((&lines[0]["line"], &lines[0]["column"]), (&Value::from(7), &Value::from(8)));
        assert!(lines[0]["text"].as_str().unwrap().contains("a.toml:7:8: "), "{}", lines[0]);
        assert!(lines[0]["help"].is_string() && lines[0]["message"].is_string() && lines[0]["file"] == "a.toml");
    }
    let (code, lines) = lines(&bad, &["reproduce", "bfc/fig444"]);
    assert_eq!((code, steps(&lines)), (Some(1), vec!["problem"]));
    let noted = desk(&format!("{TINY}[nic]\ntimeout = \"1us\"\n"));
    let (_, lines) = self::lines(&noted, &["run", "a.toml"]);
    assert!(lines.iter().any(|line| line["step"] == "note" && line["text"].is_string()), "{lines:?}");
}

#[test]
fn a_long_run_says_how_far_it_is_and_ends_when_its_standard_input_ends() {
    let dir = desk(ENDLESS);
    let mut child = tailwater(&dir, &["run", "a.toml", "--leash"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = patience::lines(child.stderr.take().unwrap());
    let deadline = Deadline::of("a line of a run under way");
    let running = loop {
        deadline.check();
        let line = lines.recv_timeout(PATIENCE).expect("it says something");
        if line.contains("\"running\"") {
            break line;
        }
    };
    let running: Value = serde_json::from_str(&running).unwrap();
    assert!(running["share"].as_f64().unwrap() < 0.5 && running["simulated_ps"].is_u64(), "{running}");
    drop(child.stdin.take());
    assert_eq!(patience::status("a run without its leash", &mut child).code(), Some(130));
    assert!(!dir.path().join("results/a").exists());
}
