//! Sweeps: what their files mean, and how claims keep workers apart.

use crate::star::STAR;
use run::outcome::Cost;
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use store::claims::{Claim, Claims, FOLDER, State};
use store::grid::{self, Cell, Observer};
use store::sweep::{self, Options, Sweep};
use store::{Digest, Store};

/// A folder with the scenario star.toml.
fn desk() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("star.toml"), STAR).unwrap();
    dir
}

fn parse(text: &str, base: &Path) -> Sweep {
    Sweep::parse("a/sweep.toml", text, base).unwrap_or_else(|problem| panic!("{problem}"))
}

fn labels(plan: &[Cell]) -> Vec<String> {
    plan.iter().map(Cell::label).collect()
}

#[test]
fn a_sweep_is_every_scheme_with_every_row_and_every_value_and_every_seed() {
    let desk = desk();
    let text = "\
scenario = \"star.toml\"
schemes = [\"pfc\", \"hpcc\"]
seeds = [5, 9]
set = [\"nic.payload=1KB\"]
[grid]
\"switch.buffer\" = [\"2MB\", \"4MB\"]
[[list]]
\"flow.0.size\" = \"10KB\"
flow.1.size = \"20KB\"
[[list]]
\"flow.1.size\" = \"40KB\"
\"flow.0.size\" = \"30KB\"
";
    let sweep = parse(text, desk.path());
    let plan = sweep.plan().unwrap();
    assert_eq!(plan.len(), 16);
    assert_eq!(
        labels(&plan)[..5],
        [
            "pfc, flow.0.size=10KB, flow.1.size=20KB, switch.buffer=2MB, seed 5",
            "pfc, flow.0.size=10KB, flow.1.size=20KB, switch.buffer=2MB, seed 9",
            "pfc, flow.0.size=10KB, flow.1.size=20KB, switch.buffer=4MB, seed 5",
            "pfc, flow.0.size=10KB, flow.1.size=20KB, switch.buffer=4MB, seed 9",
            "pfc, flow.0.size=30KB, flow.1.size=40KB, switch.buffer=2MB, seed 5",
        ]
    );
    assert!(labels(&plan)[8].starts_with("hpcc, flow.0.size=10KB"));
    let axes: Vec<&str> = sweep.grid.axes.iter().map(|axis| axis.key.as_str()).collect();
    assert_eq!((sweep.title.as_str(), axes), ("sweep", vec!["flow.0.size", "flow.1.size", "switch.buffer"]));
    let resolved = plan[8].load().unwrap();
    assert_eq!(resolved.setup.flows.iter().map(|flow| flow.size).collect::<Vec<_>>(), [10_000, 20_000]);

    // A comparison of the same runs finds them in the same store: they have the same names.
    let source = grid::Source::load(&desk.path().join("star.toml")).unwrap();
    let sets: Vec<String> = ["nic.payload=1KB"].map(String::from).into();
    let variants = grid::Variant::schemes(&source, &sets, &["pfc".into(), "hpcc".into()]).unwrap();
    let axes = ["flow.0.size=10KB", "flow.1.size=20KB", "switch.buffer=2MB,4MB"];
    let axes = axes.map(|axis| grid::Axis::parse(axis).unwrap()).into();
    let compared = grid::Grid { source, sets, variants, axes, seeds: vec![5, 9] }.plan().unwrap();
    let digests = |plan: &[Cell]| plan.iter().map(|cell| cell.digest).collect::<Vec<_>>();
    assert_eq!(digests(&plan[..4]), digests(&compared[..4]));
    assert_eq!(digests(&plan[8..12]), digests(&compared[4..]));
}

#[test]
fn a_scenario_may_stand_in_the_file_and_a_sweep_may_be_a_single_run() {
    let desk = desk();
    let tables: String = STAR.replace("[topology]", "[scenario.topology]").replace("[[flow]]", "[[scenario.flow]]");
    let inline = parse(&tables, desk.path()).plan().unwrap();
    let text = parse(&format!("scenario = '''\n{STAR}'''"), desk.path()).plan().unwrap();
    let file = parse("scenario = \"star.toml\"\nset = [\"name=sweep\"]", desk.path()).plan().unwrap();
    assert_eq!(labels(&inline), ["seed 1"]);
    assert_eq!(inline[0].digest, text[0].digest);
    assert_eq!(inline[0].digest, file[0].digest);
}

#[test]
fn every_example_of_a_sweep_can_be_run() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/sweeps");
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let sweep = Sweep::load(&entry.unwrap().path()).unwrap_or_else(|problem| panic!("{problem}"));
        for cell in sweep.plan().unwrap() {
            cell.load().unwrap_or_else(|problem| panic!("{problem}"));
        }
        count += 1;
    }
    assert!(count > 0);
}

#[test]
fn what_is_wrong_with_a_sweep_is_reported_with_its_line_and_a_remedy() {
    let desk = desk();
    for (text, line, message) in [
        ("seeds = 3", None, "the file has no scenario"),
        ("scenario = \"nowhere.toml\"", Some(1), "nowhere.toml: cannot be read"),
        ("scenario = \"star.toml\"\nschemes = [\"hpc\"]", Some(2), "there is no preset \"hpc\""),
        ("scenario = \"star.toml\"\nschemes = \"hpcc\"", Some(2), "expected an array"),
        ("scenario = \"star.toml\"\nseeds = 0", Some(2), "0 is not a number of seeds"),
        ("scenario = \"star.toml\"\nseeds = []", Some(2), "names no seed"),
        ("scenario = \"star.toml\"\nseeds = [1, 2, 1]", Some(2), "1 is there twice"),
        ("scenario = \"star.toml\"\nset = [\"flow.7.size=1KB\"]", Some(2), "flow.7 is not there"),
        ("scenario = \"star.toml\"\nset = [\"seed=1\"]\nseeds = 2", Some(2), "the seed is given with seeds"),
        ("scenario = \"star.toml\"\nsedes = 3", Some(2), "unknown key \"sedes\""),
        ("scenario = \"star.toml\"\n[grid]\n\"switch.buffer\" = \"4MB\"", Some(3), "expected an array"),
        ("scenario = \"star.toml\"\n[grid]\n\"switch.buffer\" = []", Some(3), "has no values"),
        ("scenario = \"star.toml\"\n[grid]\n\"switch.buffer\" = [\"4MB\", '4MB']", Some(3), "is there twice"),
        ("scenario = \"star.toml\"\n[grid]\n\"a.b\" = [1]\na.b = [2]", Some(4), "a.b is there twice"),
        ("scenario = \"star.toml\"\n[grid]\nseed = [1, 2]", Some(3), "the seed is not varied like this"),
        ("scenario = \"star.toml\"\n[grid]\nscheme.preset = [\"pfc\"]", Some(3), "schemes are not varied"),
        ("scenario = \"star.toml\"\n[grid]\n\"a..b\" = [1]", Some(3), "is not the path of a key"),
        ("scenario = \"star.toml\"\nlist = 3", Some(2), "expected tables"),
        ("scenario = \"star.toml\"\n[[list]]", Some(2), "the row is empty"),
        ("scenario = \"star.toml\"\n[[list]]\na = 1\n[[list]]\nb = 1", Some(4), "a row has b, the first has a"),
        ("scenario = \"star.toml\"\n[[list]]\na = 1\n[[list]]\na = 1", Some(4), "the row is there twice"),
        ("scenario = \"star.toml\"\n[grid]\n\" a . b\" = [1]\na.b = [2]", Some(4), "a.b is there twice"),
        ("scenario = \"star.toml\"\n[grid]\n\"a.b\" = [1]\n\"a\" = [2]", Some(4), "a changes the same as a.b"),
        ("scenario = \"star.toml\"\n[grid]\n\"a.b\" = [1]\n[[list]]\na = 2", Some(5), "a is in [grid], too"),
        ("scenario = \"star.toml\"\n[[list]]\n\"a.b\" = 1\n\"a.b.c\" = 2", Some(4), "a.b.c changes the same as a.b"),
        (
            "scenario = \"star.toml\"\nset = [\"switch.buffer=9MB\"]\n[grid]\n\"switch.buffer\" = [\"4MB\"]",
            Some(2),
            "switch.buffer is given in [grid] or [[list]], too",
        ),
        (
            "scenario = \"star.toml\"\nschemes = [\"pfc\"]\nset = [\"scheme.preset=hpcc\"]",
            Some(3),
            "the schemes are given, too",
        ),
        ("scenario = \"star.toml\"\n[grid]\na = [1]\n[[list]]\na = 1", Some(5), "a is in [grid], too"),
    ] {
        let problem = Sweep::parse("sweep.toml", text, desk.path()).expect_err(text);
        assert!(problem.message.contains(message), "{text}: {problem}");
        assert_eq!((problem.file.as_str(), problem.line), ("sweep.toml", line), "{text}: {problem}");
        assert!(problem.help.is_some(), "{text}: {problem}");
    }
    let text = "scenario = \"star.toml\"\nschemes = [\"hpc\", \"bfcc\"]";
    let both = Sweep::parse("sweep.toml", text, desk.path()).unwrap_err().split();
    assert_eq!(both.len(), 2, "{both:?}");
    assert!(both.iter().all(|problem| problem.file == "sweep.toml" && problem.line == Some(2)), "{both:?}");
}

#[test]
fn a_value_that_a_run_refuses_is_reported_at_its_line_of_the_sweep() {
    let desk = desk();
    let store = Store::new(desk.path().join("runs"));
    for (text, line, message) in [
        ("[grid]\n\"flow.7.size\" = [\"1KB\"]", 3, "flow.7.size=1KB: flow.7 is not there"),
        ("[grid]\n\"switch.buffer\" = [\"4MB\",\n\"4XB\"]", 4, "switch.buffer=4XB: unknown unit"),
        ("[[list]]\n\"switch.buffer\" = \"4MB\"\n[[list]]\n\"switch.buffer\" = \"1B\"", 5, "switch.buffer=1B: "),
    ] {
        let sweep = parse(&format!("scenario = \"star.toml\"\n{text}"), desk.path());
        let problems = match sweep.plan() {
            Ok(plan) => {
                let failed = sweep::work(&plan, &store, &Options::default(), &()).expect_err(text);
                failed.problems.into_iter().map(|problem| sweep.explain(problem)).collect()
            }
            Err(problems) => problems,
        };
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert_eq!((problems[0].file.as_str(), problems[0].line), ("a/sweep.toml", Some(line)), "{}", problems[0]);
        assert!(problems[0].message.starts_with(message) && problems[0].help.is_some(), "{}", problems[0]);
        assert!(!store.folder().exists(), "nothing is written");
    }
    let many = |key: &str| format!("\"{key}\" = {:?}\n", (1..2000).collect::<Vec<_>>());
    let text = format!("scenario = \"star.toml\"\n[grid]\n{}{}", many("a"), many("b"));
    let problems = parse(&text, desk.path()).plan().unwrap_err();
    assert!(problems[0].message.contains("has 3996001 runs"), "{problems:?}");
}

const TWELVE: &str = "\
scenario = \"star.toml\"
schemes = [\"pfc\", \"hpcc\"]
seeds = 3
[grid]
\"switch.buffer\" = [\"2MB\", \"4MB\"]
";

#[derive(Default)]
struct Watch {
    started: Mutex<Vec<usize>>,
    elsewhere: Mutex<Vec<usize>>,
    /// Hosts that were waited for, and for how long nothing was heard of them.
    waited: Mutex<Vec<(String, Duration)>>,
    stop_after: Option<usize>,
    finished: Mutex<usize>,
}

impl Observer for Watch {
    fn started(&self, place: usize, _: &Cell) {
        self.started.lock().unwrap().push(place);
    }
    fn elsewhere(&self, place: usize, _: &Cell, _: &store::claims::Owner) {
        self.elsewhere.lock().unwrap().push(place);
    }
    fn waiting(&self, runs: &[grid::Wait<'_>]) {
        let waits = runs.iter().map(|run| (run.held.owner.host.clone(), run.held.silent));
        self.waited.lock().unwrap().extend(waits);
    }
    fn finished(&self, _: usize, _: &Cell, _: Option<&Cost>) {
        *self.finished.lock().unwrap() += 1;
    }
    fn stop(&self) -> bool {
        self.stop_after.is_some_and(|count| *self.finished.lock().unwrap() >= count)
    }
}

#[test]
fn shards_cover_every_run_once_and_one_shard_may_help_the_others() {
    let desk = desk();
    let plan = parse(TWELVE, desk.path()).plan().unwrap();
    let store = Store::new(desk.path().join("runs"));
    let mut all = Vec::new();
    for shard in 1..=5 {
        let watch = Watch::default();
        let options = Options { shard: Some((shard, 5)), ..Options::default() };
        let done = sweep::work(&plan, &store, &options, &watch).unwrap();
        let mut started = watch.started.into_inner().unwrap();
        assert_eq!((done.ran, done.reused, done.left), (started.len(), 0, 0));
        started.sort_unstable();
        assert_eq!(started, (0..12).filter(|place| place % 5 == shard - 1).collect::<Vec<_>>());
        all.extend(started);
    }
    all.sort_unstable();
    assert_eq!(all, (0..12).collect::<Vec<_>>());

    let store = Store::new(desk.path().join("helped"));
    let watch = Watch::default();
    let options = Options { shard: Some((3, 5)), help: true, check: false, ..Options::default() };
    assert_eq!(sweep::work(&plan, &store, &options, &watch).unwrap().ran, 12);
    assert_eq!(watch.started.into_inner().unwrap(), [2, 7, 3, 8, 4, 9, 0, 5, 10, 1, 6, 11], "its own shard first");
}

#[test]
fn a_sweep_that_is_stopped_goes_on_later() {
    let desk = desk();
    let plan = parse(TWELVE, desk.path()).plan().unwrap();
    let store = Store::new(desk.path().join("runs"));
    let watch = Watch { stop_after: Some(5), ..Watch::default() };
    let failed = sweep::work(&plan, &store, &Options::default(), &watch).unwrap_err();
    assert_eq!((failed.finished, failed.runs, failed.problems.len()), (5, 12, 1));
    assert!(failed.problems[0].message.contains("stopped") && failed.problems[0].help.is_some());
    let status = sweep::status(&plan, &store).unwrap();
    assert_eq!((status.finished, status.running.len(), status.missing.len(), status.lost), (5, 0, 7, 0));
    assert_eq!(sweep::work(&plan, &store, &Options::default(), &()).unwrap().ran, 7);
    assert!(!store.folder().join(FOLDER).exists(), "nothing is left of claims");
}

/// Waits until something holds, which the message names if it never does.
#[track_caller]
fn until(what: &str, holds: impl Fn() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(120), "waited two minutes in vain: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_run_of_another_process_is_waited_for_or_left_to_it() {
    let desk = desk();
    let plan = parse(TWELVE, desk.path()).plan().unwrap();
    let store = Store::new(desk.path().join("runs"));
    let theirs = store.claims();
    let claim = theirs.claim(plan[4].digest).unwrap().expect("it is free");
    let status = sweep::status(&plan, &store).unwrap();
    assert_eq!((status.running[0].0, status.running[0].1.process), (4, std::process::id()));

    let watch = Watch::default();
    let done = sweep::work(&plan, &store, &Options { wait: false, ..Options::default() }, &watch).unwrap();
    assert_eq!((done.ran, done.reused, done.left), (11, 0, 1));
    assert_eq!(*watch.elsewhere.lock().unwrap(), [4]);

    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| sweep::work(&plan, &store, &Options::default(), &watch).unwrap());
        until("a process waits for the run of another", || watch.elsewhere.lock().unwrap().len() >= 2);
        // They give up: the process that waits does it.
        drop(claim);
        assert_eq!(waiting.join().unwrap().ran, 1);
    });
}

#[test]
fn one_of_many_gets_a_claim_and_the_next_one_gets_it_after_that() {
    let dir = tempfile::tempdir().unwrap();
    let digest = Digest::of("a run");
    for round in 0..50 {
        let got: Vec<_> = std::thread::scope(|scope| {
            let tried: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| Claims::new(dir.path(), Duration::from_secs(60)).claim(digest).unwrap().ok()))
                .collect();
            tried.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(got.iter().flatten().count(), 1, "round {round}");
    }
}

/// A claim of a process on another machine, whose text is as this program writes it.
fn foreign(store: &Path, digest: Digest, lease: Duration) {
    let claims = Claims::new(store, lease);
    let claim = claims.claim(digest).unwrap().unwrap();
    let path = store.join(FOLDER).join(format!("{digest}.1"));
    let text = fs::read_to_string(&path).unwrap();
    drop(claim);
    let mut owner: serde_json::Value = serde_json::from_str(&text).unwrap();
    owner["machine"] = "elsewhere".into();
    owner["host"] = "n17".into();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, owner.to_string()).unwrap();
}

#[test]
fn a_claim_without_a_sign_of_life_is_void_after_its_own_lease_and_exactly_one_takes_it_over() {
    let dir = tempfile::tempdir().unwrap();
    let digest = Digest::of("a run");
    foreign(dir.path(), digest, Duration::from_millis(1500));
    let begin = Instant::now();
    // The lease of the process that looks does not count.
    let impatient = Claims::new(dir.path(), Duration::from_millis(100));
    let State::Held(owner) = impatient.state(digest).unwrap() else { panic!("it is not void yet") };
    assert_eq!(owner.host, "n17");
    assert!(impatient.claim(digest).unwrap().is_err());
    until("the claim is void", || matches!(impatient.state(digest).unwrap(), State::Void(_)));
    assert!(begin.elapsed() >= Duration::from_millis(1400), "{:?}", begin.elapsed());
    let all: Vec<Claims> = (0..8).map(|_| Claims::new(dir.path(), Duration::from_secs(60))).collect();
    let got: Vec<_> = std::thread::scope(|scope| {
        let take = |claims| scope.spawn(move || patiently(claims, digest, Duration::from_secs(3)));
        let tried: Vec<_> = all.iter().map(take).collect();
        tried.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(got.iter().flatten().count(), 1);
    got.into_iter().flatten().for_each(|claim| claim.done());
    assert_eq!(impatient.state(digest).unwrap(), State::Free);
    assert!(fs::read_dir(dir.path().join(FOLDER)).unwrap().all(|entry| entry.unwrap().path().ends_with("clock")));
}

/// Asks for a claim again and again, for so long.
fn patiently(claims: &Claims, digest: Digest, patience: Duration) -> Option<Claim> {
    let begin = Instant::now();
    loop {
        match claims.claim(digest).unwrap() {
            Ok(claim) => return Some(claim),
            Err(_) if begin.elapsed() > patience => return None,
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// Dates a claim so far from now, after it or before.
fn date(store: &Path, digest: Digest, distance: Duration, after: bool) {
    let file = fs::OpenOptions::new().write(true).open(store.join(FOLDER).join(format!("{digest}.1"))).unwrap();
    let now = std::time::SystemTime::now();
    file.set_modified(if after { now + distance } else { now - distance }).unwrap();
}

#[test]
fn a_claim_dated_in_the_future_is_void_after_its_lease_like_any_other() {
    let dir = tempfile::tempdir().unwrap();
    let digest = Digest::of("a run");
    foreign(dir.path(), digest, Duration::from_millis(500));
    date(dir.path(), digest, Duration::from_secs(365 * 24 * 3600), true);
    let claims = Claims::new(dir.path(), Duration::from_secs(60));
    let begin = Instant::now();
    assert!(patiently(&claims, digest, Duration::from_secs(20)).is_some(), "it is void at some time");
    assert!(begin.elapsed() >= Duration::from_millis(500), "but not before its lease: {:?}", begin.elapsed());
}

#[test]
fn a_claim_dated_in_the_past_is_void_only_when_it_was_watched_for_its_lease() {
    let dir = tempfile::tempdir().unwrap();
    let digest = Digest::of("a run");
    foreign(dir.path(), digest, Duration::from_millis(1500));
    date(dir.path(), digest, Duration::from_secs(365 * 24 * 3600), false);
    let claims = Claims::new(dir.path(), Duration::from_secs(60));
    let begin = Instant::now();
    assert!(claims.claim(digest).unwrap().is_err(), "its owner may be alive, with another clock");
    // A sign of life counts from when it is seen, whatever time it bears.
    std::thread::sleep(Duration::from_millis(700));
    date(dir.path(), digest, Duration::from_secs(700 * 24 * 3600), false);
    assert!(patiently(&claims, digest, Duration::from_secs(20)).is_some());
    assert!(begin.elapsed() >= Duration::from_millis(2200), "{:?}", begin.elapsed());
}

#[test]
fn a_sweep_waits_for_a_claim_dated_in_the_future_no_longer_than_its_lease_and_says_for_whom() {
    let desk = desk();
    let plan = parse("scenario = \"star.toml\"", desk.path()).plan().unwrap();
    let store = Store::new(desk.path().join("runs"));
    for wait in [true, false] {
        fs::create_dir_all(store.folder()).unwrap();
        foreign(store.folder(), plan[0].digest, Duration::from_millis(2500));
        date(store.folder(), plan[0].digest, Duration::from_secs(365 * 24 * 3600), true);
        let watch = Watch::default();
        let done = sweep::work(&plan, &store, &Options { wait, ..Options::default() }, &watch).unwrap();
        assert_eq!((done.ran, done.left), (1, 0), "a run is not left to a process that gives no sign of life");
        let waited = watch.waited.into_inner().unwrap();
        let (host, silent) = waited.first().expect("it says whom it waits for");
        assert!(host == "n17" && *silent >= Duration::from_millis(900), "{waited:?}");
        assert!(!store.folder().join(FOLDER).exists(), "nothing is left of claims");
        fs::remove_dir_all(store.folder()).unwrap();
    }
}

#[test]
fn a_run_is_left_to_a_process_elsewhere_as_soon_as_that_shows_a_sign_of_life() {
    let desk = desk();
    let plan = parse("scenario = \"star.toml\"", desk.path()).plan().unwrap();
    let store = Store::new(desk.path().join("runs"));
    fs::create_dir_all(store.folder()).unwrap();
    foreign(store.folder(), plan[0].digest, Duration::from_secs(3600));
    let options = Options { wait: false, ..Options::default() };
    std::thread::scope(|scope| {
        let work = scope.spawn(|| sweep::work(&plan, &store, &options, &()).unwrap());
        let mut age = 1;
        while !work.is_finished() {
            std::thread::sleep(Duration::from_millis(50));
            date(store.folder(), plan[0].digest, Duration::from_secs(age), true);
            age += 1;
        }
        assert_eq!(work.join().unwrap().left, 1);
    });
}

#[test]
fn a_process_whose_claim_was_taken_over_leaves_the_new_owner_alone() {
    let dir = tempfile::tempdir().unwrap();
    let digest = Digest::of("a run");
    let first = Claims::new(dir.path(), Duration::from_secs(60));
    let claim = first.claim(digest).unwrap().unwrap();
    // It beats every ten seconds, and has said that it is void after half a second.
    let path = dir.path().join(FOLDER).join(format!("{digest}.1"));
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("60000", "500")).unwrap();
    let second = Claims::new(dir.path(), Duration::from_secs(60));
    let taken = patiently(&second, digest, Duration::from_secs(9)).expect("it is void");
    fs::write(&path, text).unwrap();
    drop(claim);
    assert!(matches!(second.state(digest).unwrap(), State::Held(_)), "the second still has it");
    drop(taken);
    assert_eq!(second.state(digest).unwrap(), State::Free);
}

#[test]
fn a_claim_is_kept_up_as_long_as_its_owner_lives() {
    let dir = tempfile::tempdir().unwrap();
    let digest = Digest::of("a run");
    let owner = Claims::new(dir.path(), Duration::from_millis(600));
    let claim = owner.claim(digest).unwrap().unwrap();
    let path = dir.path().join(FOLDER).join(format!("{digest}.1"));
    let beat = || fs::metadata(&path).unwrap().modified().unwrap();
    let first = beat();
    until("the owner of the claim gives a sign of life", || beat() != first);
    drop(claim);
    assert!(!path.exists());
}

#[test]
fn a_process_of_this_machine_that_is_gone_holds_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let digest = Digest::of("a run");
    let claims = Claims::new(dir.path(), Duration::from_secs(3600));
    let claim = claims.claim(digest).unwrap().unwrap();
    let path = dir.path().join(FOLDER).join(format!("{digest}.1"));
    let text = fs::read_to_string(&path).unwrap();
    let mut child = std::process::Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    let mut owner: serde_json::Value = serde_json::from_str(&text).unwrap();
    if owner["machine"] == "" {
        return; // The system does not list its processes.
    }
    let began = owner["began"].clone();
    for (process, began) in [(child.id(), began.clone()), (std::process::id(), 1.into())] {
        owner["process"] = process.into();
        owner["began"] = began;
        fs::write(&path, owner.to_string()).unwrap();
        assert!(matches!(claims.state(digest).unwrap(), State::Void(_)), "{owner}");
    }
    drop(claim);
    // A claim whose text was never written counts as any other, until the lease is over.
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "").unwrap();
    assert!(matches!(claims.state(digest).unwrap(), State::Held(_)));
}
