//! The examples give the same results, to the picosecond, unless a change is intended.
//!
//! A digest that differs is either a fault or a change of behaviour. The digest covers the whole run; `tests/golden` of the
//! repository has what it was made of, a line per flow, so that the message can say which flow differs first and how. Where it is
//! a change that was meant, the new digest is in the message, and `REWRITE_GOLDEN=1` with these tests writes the files anew.

use fabric::Outcome;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The repository, wherever in it this crate is.
fn root() -> &'static Path {
    let mut folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    folders.find(|folder| folder.join("Cargo.lock").is_file()).expect("a workspace above the crate")
}

fn example(name: &str) -> PathBuf {
    root().join("examples").join(name)
}

fn run(path: &Path, sets: &[&str]) -> run::Finished {
    let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
    let resolved = run::load(path, &sets).unwrap_or_else(|problem| panic!("{problem}"));
    let finished = run::run(resolved, &mut |_, _| true);
    assert_eq!(finished.summary.violations, Vec::<String>::new(), "{}", path.display());
    finished
}

/// A line per flow with everything that happened to it, in plain numbers.
fn rendering(outcome: &Outcome) -> String {
    let mut text = String::new();
    for flow in &outcome.flows {
        let spec = &flow.spec;
        let times =
            [spec.start, spec.ideal, spec.base_rtt, flow.injected, flow.received, flow.acknowledged].map(|t| t.0);
        writeln!(text, "{} {} {} {} {} {times:?}", spec.src, spec.dst, spec.class, spec.size, spec.window).unwrap();
    }
    let finished: Vec<u32> = outcome.finished.iter().map(|flow| flow.0).collect();
    writeln!(text, "{finished:?}").unwrap();
    text
}

/// FNV-1a, 64 bits.
fn digest(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ byte as u64).wrapping_mul(0x0100_0000_01b3))
}

/// What the columns of a rendering are.
const HEAD: &str = "# src dst class size window [start, ideal, base RTT, injected, received, acknowledged], in bytes and ps; \
                    in the end, the order in which flows finished\n";

/// Bytes of a rendering that are kept at most.
const KEPT: usize = 50_000;

/// What is kept of a rendering: its first lines, and how many there are besides.
fn kept(rendering: &str) -> String {
    let mut text = HEAD.to_string();
    let mut lines = rendering.lines().peekable();
    while let Some(line) = lines.next_if(|line| text.len() + line.len() < KEPT) {
        text += line;
        text += "\n";
    }
    match lines.count() {
        0 => {}
        more => writeln!(text, "# and {more} more").unwrap(),
    }
    text
}

/// The first lines that differ, with their numbers: what is expected and what was found. Of long lines, the place that differs.
fn difference(expected: &str, found: &str) -> Option<String> {
    const LINES: usize = 5;
    let (mut expected, mut found) = (expected.lines(), found.lines());
    let (mut text, mut count) = (String::new(), 0);
    for number in 1.. {
        let (old, new) = (expected.next(), found.next());
        if old.is_none() && new.is_none() {
            break;
        }
        if old == new {
            continue;
        }
        count += 1;
        if count <= LINES {
            let (a, b) = (old.unwrap_or("(no line)"), new.unwrap_or("(no line)"));
            let same = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
            let near = |line: &str| line.chars().skip(same.saturating_sub(100)).take(200).collect::<String>();
            writeln!(text, "line {number}, column {}\n  expected: {}\n  found:    {}", same + 1, near(a), near(b))
                .unwrap();
        }
    }
    match count {
        0 => return None,
        count if count > LINES => writeln!(text, "and {} more lines", count - LINES).unwrap(),
        _ => {}
    }
    Some(text)
}

#[track_caller]
fn golden(name: &str, expected: u64) {
    let rendering = rendering(&run(&example(name), &[]).outcome);
    let (found, text) = (digest(&rendering), kept(&rendering));
    let path = root().join("tests/golden").join(name).with_extension("txt");
    if std::env::var_os("REWRITE_GOLDEN").is_some() {
        std::fs::write(&path, &text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
    let before = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}; REWRITE_GOLDEN=1 writes it", path.display()));
    let difference = difference(&before, &text);
    let place = path.strip_prefix(root()).unwrap().display();
    let shown = match &difference {
        Some(difference) => format!("{place} differs:\n{HEAD}{difference}"),
        None => format!("{place} is the same: what differs comes after what it keeps\n"),
    };
    assert_eq!(found, expected, "{name} gives {found:#018x} now; {shown}");
    assert!(difference.is_none(), "{name} is what it was, but its file is not (REWRITE_GOLDEN=1 mends it); {shown}");
}

#[test]
fn the_first_lines_that_differ_are_shown_with_their_places() {
    assert_eq!(difference("a\nb\n", "a\nb\n"), None);
    let shown = difference("a\n1 2 3\nc\n", "a\n1 2 4\nc\nd\n").unwrap();
    let lines = ["line 2, column 5", "  expected: 1 2 3", "  found:    1 2 4"];
    assert!(shown.starts_with(&lines.join("\n")), "{shown}");
    assert!(shown.ends_with("line 4, column 1\n  expected: (no line)\n  found:    d\n"), "{shown}");
    let (old, new) = ("x\n".repeat(9), "y\n".repeat(9));
    assert!(difference(&old, &new).unwrap().ends_with("and 4 more lines\n"));
    let (old, new) = (format!("{}1", "-".repeat(5000)), format!("{}2", "-".repeat(5000)));
    let shown = difference(&old, &new).unwrap();
    assert!(shown.len() < 500 && shown.contains("-1\n") && shown.contains("-2\n"), "{shown}");
}

#[test]
fn what_is_kept_of_a_long_rendering_is_its_beginning_and_its_length() {
    let long = "0123456789\n".repeat(10_000);
    let text = kept(&long);
    assert!(text.len() <= KEPT + 20, "{}", text.len());
    let lines = text.lines().filter(|line| !line.starts_with('#')).count();
    assert!(text.ends_with(&format!("# and {} more\n", 10_000 - lines)));
    assert_eq!(kept("a\nb\n"), format!("{HEAD}a\nb\n"));
}

#[test]
fn the_deadlock_example_is_what_it_was() {
    golden("bcube_deadlock.toml", 0xe72f_8eb8_cf92_affd);
}

#[test]
fn the_asymmetric_example_is_what_it_was() {
    golden("asymmetric.toml", 0xc90b_61cc_90be_1152);
}

#[test]
fn the_incast_example_is_what_it_was() {
    golden("incast.toml", 0xbb70_de1c_7ab3_eae5);
}

#[test]
fn the_leaf_spine_example_is_what_it_was() {
    golden("leaf_spine.toml", 0xbbd5_ce0b_be55_a8e2);
}

#[test]
fn the_link_failure_example_is_what_it_was() {
    golden("link_failure.toml", 0xb89f_4b9e_a9c2_5b3f);
}

#[test]
fn the_lossy_link_example_is_what_it_was() {
    golden("lossy_link.toml", 0x3df8_c41f_4537_8f59);
}

#[test]
fn the_slow_receiver_example_is_what_it_was() {
    golden("slow_receiver.toml", 0x1c66_1e91_1b35_0646);
}

#[test]
fn the_web_search_example_is_what_it_was() {
    golden("websearch_incast.toml", 0x9437_babb_a829_4a92);
}

#[test]
fn the_hadoop_example_is_what_it_was() {
    golden("hadoop_incast.toml", 0xa37d_a0b9_e91f_a990);
}

#[test]
fn the_hot_spot_example_is_what_it_was() {
    golden("hot_spot.toml", 0xb78c_2719_2693_5feb);
}

#[test]
fn every_example_has_a_digest() {
    let folder = std::fs::read_dir(example("")).unwrap();
    let mut names: Vec<_> = folder.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| name.ends_with(".toml"));
    names.sort();
    assert_eq!(
        names,
        [
            "asymmetric.toml",
            "bcube_deadlock.toml",
            "hadoop_incast.toml",
            "hot_spot.toml",
            "incast.toml",
            "leaf_spine.toml",
            "link_failure.toml",
            "lossy_link.toml",
            "slow_receiver.toml",
            "websearch_incast.toml"
        ]
    );
}

/// `summary.json` without what a run costs, and `flows.parquet`.
fn written(path: &Path, sets: &[&str]) -> (String, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let out = run(path, sets).write(&folder.path().join("out"), "").unwrap_or_else(|problem| panic!("{problem}"));
    let summary = std::fs::read_to_string(out.join("summary.json")).unwrap();
    let mut summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    assert!(summary.as_object_mut().unwrap().remove("cost").is_some());
    (serde_json::to_string_pretty(&summary).unwrap(), std::fs::read(out.join("flows.parquet")).unwrap())
}

#[test]
fn two_runs_write_the_same_bytes() {
    for name in ["incast.toml", "leaf_spine.toml", "link_failure.toml", "lossy_link.toml"] {
        let (first, second) = (written(&example(name), &[]), written(&example(name), &[]));
        assert_eq!(first.0, second.0, "{name}: summary.json");
        assert!(first.1 == second.1, "{name}: flows.parquet");
    }
}

#[test]
fn another_seed_loses_other_packets() {
    let flows = |seed: &str| written(&example("lossy_link.toml"), &[seed]).1;
    assert!(flows("seed=1") != flows("seed=2"));
}
