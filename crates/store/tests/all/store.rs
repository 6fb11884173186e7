//! The store and the grid: the same input has the same name and is run once, and nothing that is finished is lost.

use crate::star::STAR;
use proptest::prelude::*;
use run::outcome::Cost;
use scenario::document::Document;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::SystemTime;
use store::grid::{self, Axis, Cell, Grid, Observer, Source, Variant};
use store::{Digest, Found, Input, Known, Store};

fn source(text: &str, base: &Path) -> Source {
    Source { name: "star.toml".into(), title: "star".into(), text: text.into(), base: base.into() }
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| word.to_string()).collect()
}

/// Three schemes, two buffers, two seeds: twelve runs.
fn grid(text: &str, base: &Path) -> Grid {
    let source = source(text, base);
    let variants = Variant::schemes(&source, &[], &strings(&["dcqcn", "hpcc", "pfc"])).unwrap();
    let axes = vec![Axis::parse("switch.buffer=2MB,4MB").unwrap()];
    Grid { source, sets: vec![], variants, axes, seeds: vec![1, 2] }
}

#[derive(Default)]
struct Watch {
    notes: Mutex<Vec<String>>,
    started: Mutex<Vec<usize>>,
    finished: Mutex<Vec<(usize, bool)>>,
    reused: Mutex<Vec<usize>>,
}

impl Watch {
    /// Runs that were begun, those that were not needed, and notes.
    fn counts(&self) -> (usize, usize, usize) {
        (self.started.lock().unwrap().len(), self.reused.lock().unwrap().len(), self.notes.lock().unwrap().len())
    }
}

impl Observer for Watch {
    fn note(&self, note: &str) {
        self.notes.lock().unwrap().push(note.into());
    }
    fn started(&self, place: usize, _: &Cell) {
        self.started.lock().unwrap().push(place);
    }
    fn reused(&self, place: usize, _: &Cell) {
        self.reused.lock().unwrap().push(place);
    }
    fn finished(&self, place: usize, _: &Cell, cost: Option<&Cost>) {
        self.finished.lock().unwrap().push((place, cost.is_some()));
    }
}

/// Every file below a folder with its content, what runs cost and its digest left out, and when it was written.
fn contents(folder: &Path) -> BTreeMap<PathBuf, (Vec<u8>, SystemTime)> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let mut bytes = fs::read(&path).unwrap();
            if path.ends_with("summary.json") {
                let mut summary: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
                assert!(summary["cost"].take().is_object());
                bytes = summary.to_string().into_bytes();
            }
            if path.ends_with("SHA256SUMS") {
                let text = String::from_utf8(bytes).unwrap();
                bytes = text.lines().filter(|line| !line.ends_with("  summary.json")).collect::<String>().into_bytes();
            }
            let written = fs::metadata(&path).unwrap().modified().unwrap();
            found.insert(path.strip_prefix(folder).unwrap().to_path_buf(), (bytes, written));
        }
    }
    found
}

fn bytes(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    contents(folder).into_iter().map(|(path, (bytes, _))| (path, bytes)).collect()
}

#[test]
fn a_grid_is_run_once_and_never_again() {
    let dir = tempfile::tempdir().unwrap();
    let (store, plan) = (Store::new(dir.path().join("runs")), grid(STAR, dir.path()).plan().unwrap());
    let labels: Vec<String> = plan.iter().map(Cell::label).collect();
    assert_eq!(
        labels[..3],
        ["dcqcn, switch.buffer=2MB, seed 1", "dcqcn, switch.buffer=2MB, seed 2", "dcqcn, switch.buffer=4MB, seed 1"]
    );
    assert_eq!(plan.len(), 12);

    let watch = Watch::default();
    let done = grid::run(&plan, &store, 2, &watch).unwrap();
    assert_eq!((done.ran, done.reused, watch.counts()), (12, 0, (12, 0, 0)));
    assert_eq!(done.folders, plan.iter().map(|cell| store.path(cell.digest)).collect::<Vec<_>>());
    let mut finished = watch.finished.into_inner().unwrap();
    finished.sort_unstable();
    assert_eq!(finished, (0..12).map(|place| (place, true)).collect::<Vec<_>>());

    let before = contents(store.folder());
    let watch = Watch::default();
    let again = grid::run(&plan, &store, 2, &watch).unwrap();
    assert_eq!((again.ran, again.reused, watch.counts()), (0, 12, (0, 12, 0)));
    assert_eq!(again.folders, done.folders);
    assert_eq!(contents(store.folder()), before, "not a file was touched");
}

#[test]
fn the_number_of_threads_does_not_show_in_the_store() {
    let dir = tempfile::tempdir().unwrap();
    let plan = grid(STAR, dir.path()).plan().unwrap();
    let stores = [1, 5].map(|threads| {
        let store = Store::new(dir.path().join(threads.to_string()));
        grid::run(&plan, &store, threads, &()).unwrap();
        bytes(store.folder())
    });
    assert_eq!(stores[0].len(), 12 * 7);
    assert!(stores[0] == stores[1]);
}

#[test]
fn a_folder_is_named_after_its_scenario_which_gives_the_same_run_again() {
    let dir = tempfile::tempdir().unwrap();
    let (store, plan) = (Store::new(dir.path()), grid(STAR, dir.path()).plan().unwrap());
    grid::run(&plan[..1], &store, 1, &()).unwrap();
    let folder = store.path(plan[0].digest);
    let scenario = fs::read_to_string(folder.join("scenario.toml")).unwrap();
    assert_eq!(Digest::of(&scenario), plan[0].digest);
    let again = run::run(run::load(&folder.join("scenario.toml"), &[]).unwrap(), &mut |_, _| true);
    again.write(&dir.path().join("again"), &scenario).unwrap();
    let (mut stored, mut again) = (bytes(&folder), bytes(&dir.path().join("again")));
    stored.remove(Path::new("files.json")).unwrap();
    // The one has the digest of files.json, which the other has not.
    [&mut stored, &mut again].into_iter().for_each(|files| _ = files.remove(Path::new("SHA256SUMS")).unwrap());
    assert_eq!(stored, again);
}

#[test]
fn cells_with_the_same_input_are_one_run() {
    let dir = tempfile::tempdir().unwrap();
    let mut grid = grid(STAR, dir.path());
    grid.variants = vec![
        Variant { name: "a".into(), sets: strings(&["scheme.preset=hpcc"]) },
        Variant { name: "b".into(), sets: strings(&["scheme.preset=pfc", "scheme.preset=\"hpcc\""]) },
    ];
    let (store, plan, watch) = (Store::new(dir.path()), grid.plan().unwrap(), Watch::default());
    let done = grid::run(&plan, &store, 2, &watch).unwrap();
    assert_eq!((plan.len(), done.ran, watch.counts()), (8, 4, (4, 0, 0)));
    assert_eq!(done.folders[..4], done.folders[4..]);
}

#[test]
fn two_grids_on_one_store_at_once_end_well() {
    let dir = tempfile::tempdir().unwrap();
    let plan = grid(STAR, dir.path()).plan().unwrap();
    let (shared, alone) = (Store::new(dir.path().join("shared")), Store::new(dir.path().join("alone")));
    grid::run(&plan, &alone, 2, &()).unwrap();
    std::thread::scope(|scope| {
        let both = [(); 2].map(|()| scope.spawn(|| grid::run(&plan, &shared, 2, &()).unwrap()));
        let ran: usize = both.map(|thread| thread.join().unwrap().ran).iter().sum();
        assert_eq!(ran, 12, "none was done twice");
    });
    assert!(bytes(shared.folder()) == bytes(alone.folder()), "the same files, and no drafts");
}

#[test]
fn a_damaged_folder_is_reported_and_run_again() {
    let dir = tempfile::tempdir().unwrap();
    let plan = grid(STAR, dir.path()).plan().unwrap();
    let (plan, store) = (&plan[..2], Store::new(dir.path()));
    grid::run(plan, &store, 1, &()).unwrap();
    let (whole, folder) = (bytes(store.folder()), store.path(plan[0].digest));
    let damages: [(&str, &dyn Fn()); 6] = [
        ("flows.parquet: No such file", &|| fs::remove_file(folder.join("flows.parquet")).unwrap()),
        ("flows.parquet has 100 of", &|| {
            fs::OpenOptions::new().write(true).open(folder.join("flows.parquet")).unwrap().set_len(100).unwrap()
        }),
        ("summary.json: EOF", &|| fs::write(folder.join("summary.json"), "{\"tailwater\": ").unwrap()),
        ("files.json: No such file", &|| fs::remove_file(folder.join("files.json")).unwrap()),
        ("scenario.toml is not what", &|| {
            let text = fs::read_to_string(folder.join("scenario.toml")).unwrap();
            fs::write(folder.join("scenario.toml"), text.replace("h1", "h3")).unwrap()
        }),
        ("files.json: No such file", &|| {
            fs::remove_dir_all(&folder).unwrap();
            fs::create_dir(&folder).unwrap()
        }),
    ];
    for (message, damage) in damages {
        damage();
        assert!(matches!(store.lookup(plan[0].digest), Ok(Found::Damaged(_))), "{message}");
        let watch = Watch::default();
        let done = grid::run(plan, &store, 1, &watch).unwrap();
        assert_eq!((done.ran, watch.counts()), (1, (1, 1, 1)), "{message}");
        let note = watch.notes.into_inner().unwrap().remove(0);
        assert!(note.contains(message) && note.contains(&plan[0].digest.to_string()), "{message}: {note}");
        assert!(note.contains("is run again (dcqcn, switch.buffer=2MB, seed 1)"), "{note}");
        assert_eq!(bytes(store.folder()), whole);
    }
}

/// Changes one byte in the middle of a file, which keeps its length.
fn flip(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_changed_digit_in_a_summary_is_noticed_and_the_run_is_done_again() {
    let dir = tempfile::tempdir().unwrap();
    let plan = grid(STAR, dir.path()).plan().unwrap();
    let (plan, store) = (&plan[..1], Store::new(dir.path()));
    grid::run(plan, &store, 1, &()).unwrap();
    let (whole, summary) = (bytes(store.folder()), store.path(plan[0].digest).join("summary.json"));
    let text = fs::read_to_string(&summary).unwrap();
    let digits: Vec<usize> = text.char_indices().filter(|(_, c)| c.is_ascii_digit()).map(|(place, _)| place).collect();
    for &place in digits.iter().step_by(digits.len() / 8) {
        let mut changed = text.clone().into_bytes();
        changed[place] = if changed[place] == b'9' { b'8' } else { changed[place] + 1 };
        fs::write(&summary, changed).unwrap();
        assert!(matches!(store.lookup(plan[0].digest), Ok(Found::Damaged(_))), "the digit at {place}");
    }
    let watch = Watch::default();
    assert_eq!(grid::run(plan, &store, 1, &watch).unwrap().ran, 1);
    let note = watch.notes.into_inner().unwrap().remove(0);
    assert!(note.contains("summary.json has another SHA-256 than SHA256SUMS says; it is run again"), "{note}");
    assert_eq!(bytes(store.folder()), whole);
}

#[test]
fn a_changed_byte_in_a_table_is_noticed_by_those_who_read_tables_and_by_verification() {
    let dir = tempfile::tempdir().unwrap();
    let plan = grid(STAR, dir.path()).plan().unwrap();
    let (plan, store) = (&plan[..2], Store::new(dir.path().join("runs")));
    grid::run(plan, &store, 1, &()).unwrap();
    let (whole, name) = (bytes(store.folder()), plan[0].digest.to_string());
    for file in ["flows.parquet", "buffers.parquet", "links.parquet", "files.json"] {
        flip(&store.path(plan[0].digest).join(file));
        let checked = store.verify(&name);
        assert!(checked.digests && checked.damage.is_some_and(|problem| problem.message.contains(file)), "{file}");
        assert_eq!(store.verify(&plan[1].digest.to_string()).damage, None);
        let thorough = store.clone().thorough(true);
        assert!(matches!(thorough.lookup(plan[0].digest), Ok(Found::Damaged(_))), "{file}");
        assert_eq!(grid::run(plan, &thorough, 1, &()).unwrap().ran, 1, "{file}");
        assert_eq!(bytes(store.folder()), whole, "{file}");
    }
    // Put aside, it is done again from its own scenario.
    flip(&store.path(plan[0].digest).join("flows.parquet"));
    let aside = store.put_aside(&name).unwrap();
    assert_eq!(aside, store.folder().join("damaged").join(&name));
    assert_eq!(store.names().unwrap(), [plan[1].digest.to_string()]);
    let again = store::again(&name, &aside, dir.path()).expect("the same program gives it the same name");
    assert_eq!(grid::run(&[again], &store, 1, &()).unwrap().ran, 1);
    assert_eq!(store.put_aside(&name).unwrap(), store.folder().join("damaged").join(format!("{name}.2")));
}

#[test]
fn a_store_from_before_there_were_digests_works_and_verification_says_that_it_has_none() {
    let dir = tempfile::tempdir().unwrap();
    let plan = grid(STAR, dir.path()).plan().unwrap();
    let (plan, store) = (&plan[..1], Store::new(dir.path()));
    grid::run(plan, &store, 1, &()).unwrap();
    fs::remove_file(store.path(plan[0].digest).join("SHA256SUMS")).unwrap();
    for store in [store.clone(), store.clone().thorough(true)] {
        assert_eq!(grid::run(plan, &store, 1, &()).unwrap().reused, 1);
    }
    let checked = store.verify(&plan[0].digest.to_string());
    assert_eq!((checked.digests, checked.damage), (false, None));
    fs::write(store.path(plan[0].digest).join("SHA256SUMS"), "").unwrap();
    assert!(store.verify(&plan[0].digest.to_string()).damage.is_some(), "a list that was cut off is none");
}

#[test]
fn a_file_in_the_way_is_refused_before_anything_runs_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let plan = grid(STAR, dir.path()).plan().unwrap();
    let store = Store::new(dir.path().join("runs"));
    let expect = |file: &Path| {
        let watch = Watch::default();
        let failed = grid::run(&plan, &store, 2, &watch).unwrap_err();
        assert_eq!(
            failed.problems[0].to_string().lines().next().unwrap(),
            format!("{}: is a file; a folder is needed there", file.display())
        );
        assert!(failed.problems[0].help.is_some() && !failed.broken);
        assert_eq!(watch.started.into_inner().unwrap(), [0; 0]);
        assert_eq!(fs::read_to_string(file).unwrap(), "thesis");
    };
    fs::write(store.folder(), "thesis").unwrap();
    expect(store.folder());
    fs::remove_file(store.folder()).unwrap();
    fs::create_dir(store.folder()).unwrap();
    let file = store.path(plan[7].digest);
    fs::write(&file, "thesis").unwrap();
    expect(&file);
}

/// Takes the store away when the first run is in it, and puts a file in its place.
struct Thief<'a>(&'a Path, &'a Path, Watch);

impl Observer for Thief<'_> {
    fn finished(&self, place: usize, cell: &Cell, cost: Option<&Cost>) {
        if self.2.finished.lock().unwrap().is_empty() {
            fs::rename(self.0, self.1).unwrap();
            fs::write(self.0, "").unwrap();
        }
        self.2.finished(place, cell, cost);
    }
}

#[test]
fn a_store_that_fails_midway_keeps_what_is_finished_and_goes_on_later() {
    let dir = tempfile::tempdir().unwrap();
    let plan = grid(STAR, dir.path()).plan().unwrap();
    let (store, away) = (Store::new(dir.path().join("runs")), dir.path().join("away"));
    let thief = Thief(store.folder(), &away, Watch::default());
    let failed = grid::run(&plan, &store, 1, &thief).unwrap_err();
    assert_eq!((failed.finished, failed.runs, failed.broken, failed.problems.len()), (1, 12, false, 1));
    assert_eq!(thief.2.finished.into_inner().unwrap().len(), 2, "after the failure no run is begun");
    let problem = failed.problems[0].to_string();
    assert!(problem.starts_with(&store.folder().display().to_string()), "{problem}");
    assert!(problem.contains("cannot be written") && problem.contains("what is finished stays"), "{problem}");

    fs::remove_file(store.folder()).unwrap();
    fs::rename(&away, store.folder()).unwrap();
    let done = grid::run(&plan, &store, 2, &()).unwrap();
    assert_eq!((done.ran, done.reused), (11, 1));
}

#[test]
fn problems_of_all_cells_are_found_before_anything_runs() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::new(dir.path().join("runs"));
    let refusals = |axes: &[&str], schemes: &[&str]| -> Vec<String> {
        let mut grid = grid(STAR, dir.path());
        grid.variants = Variant::schemes(&grid.source, &[], &strings(schemes)).unwrap();
        grid.axes = axes.iter().map(|axis| Axis::parse(axis).unwrap()).collect();
        let watch = Watch::default();
        let problems = match grid.plan() {
            Ok(plan) => grid::run(&plan, &store, 2, &watch).unwrap_err().problems,
            Err(problems) => problems,
        };
        assert_eq!(watch.counts().0, 0);
        assert!(!store.folder().exists(), "nothing is written");
        assert!(problems.iter().all(|problem| problem.help.is_some()), "{problems:?}");
        let lines = problems.iter().map(|problem| problem.to_string().lines().next().unwrap_or_default().to_string());
        lines.collect()
    };
    let problems = refusals(&["switch.buffer=4MB,4XB,1B"], &["dcqcn", "pfc"]);
    assert_eq!(problems.len(), 2, "each is reported once, not for every scheme and seed: {problems:?}");
    assert!(problems[0].starts_with("--vary switch.buffer=4XB: unknown unit \"XB\""), "{problems:?}");
    assert!(problems[0].ends_with("(in the run dcqcn, switch.buffer=4XB, seed 1)"), "{problems:?}");
    assert!(problems[1].starts_with("--vary switch.buffer=1B: the buffer of sw0"), "{problems:?}");
    let problems = refusals(&["switch.bufer=4MB"], &["hpcc"]);
    assert!(
        problems[0].contains("unknown key \"bufer\"") && problems[0].contains("(in the run hpcc, "),
        "{problems:?}"
    );
    let problems = refusals(&["flow.7.size=1KB,2KB", "nic.payload=1KB"], &["pfc"]);
    assert!(
        problems[0].contains("flow.7 is not there") && problems[0].contains("flow.7.size=1KB, nic"),
        "{problems:?}"
    );
    let problems = refusals(&["switch.buffer=4MB", "switch.buffer=8MB"], &["pfc"]);
    assert_eq!(problems, ["--vary switch.buffer: is there twice"]);
    let problems = refusals(&["switch.buffer=4MB", "switch . buffer=8MB"], &["pfc"]);
    assert_eq!(problems, ["--vary switch.buffer: is there twice"]);
    // A place in an array has one spelling.
    for place in ["00", "+0"] {
        let problems = refusals(&["flow.0.size=1KB,2KB", &format!("flow.{place}.size=3KB")], &["pfc"]);
        assert!(problems[0].contains(&format!("\"{place}\" is not a place in an array")), "{problems:?}");
    }
    let problems = refusals(&["topology.hosts=8,9", "topology={kind=\"star\",hosts=3}"], &["pfc"]);
    assert_eq!(problems, ["--vary topology: changes the same as --vary topology.hosts"]);
    let problems = refusals(&["scheme={preset=\"hpcc\"}"], &["pfc"]);
    assert_eq!(problems, ["--vary scheme: chooses schemes, and so does --schemes"]);
    let many = format!("switch.buffer={}", (1..2000).map(|i| format!("{i}MB")).collect::<Vec<_>>().join(","));
    let problems = refusals(&[&many, &many.replace("buffer", "reserve")], &["pfc"]);
    assert!(problems[0].contains("has 7992002 runs"), "{problems:?}");
}

#[test]
fn files_that_a_scenario_names_are_part_of_its_input() {
    let dir = tempfile::tempdir().unwrap();
    let text = "topology.kind = \"file\"\ntopology.path = \"graph.toml\"\ntraffic.trace = \"flows.csv\"\nload = [{ sizes = \"own.cdf\" }, { sizes = \"websearch\" }]";
    let place = |name: &str, changed: &str, content: &str| {
        let base = dir.path().join(name);
        fs::create_dir_all(&base).unwrap();
        for file in ["graph.toml", "flows.csv", "own.cdf"] {
            fs::write(base.join(file), if file == changed { content } else { "the same" }).unwrap();
        }
        let mut known = Known::new();
        let input = Input::new(&Document::parse("a", text).unwrap(), &base, &mut known);
        assert_eq!(known.len(), 4);
        input
    };
    let first = place("a", "", "");
    assert_eq!(first, place("b", "", ""), "wherever the files are");
    assert_eq!(first.text().matches("has SHA-256").count(), 3, "{}", first.text());
    for file in ["graph.toml", "flows.csv", "own.cdf"] {
        assert_ne!(first.digest(), place("c", file, "the other").digest(), "{file}");
    }
    let gone = dir.path().join("nowhere");
    let input = Input::new(&Document::parse("a", text).unwrap(), &gone, &mut Known::new());
    assert!(!input.text().contains("SHA-256"));
}

/// Changes a file as soon as a run begins.
struct Editor<'a>(&'a Path);

impl Observer for Editor<'_> {
    fn started(&self, _: usize, _: &Cell) {
        fs::write(self.0, "src,dst,size,start\nh2,h0,1KB,0us\n").unwrap();
    }
}

#[test]
fn a_file_that_changes_after_planning_gives_no_result_under_the_wrong_name() {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("flows.csv");
    fs::write(&trace, "src,dst,size,start\nh1,h0,1KB,0us\n").unwrap();
    let text = "topology.kind = \"star\"\ntraffic.trace = \"flows.csv\"";
    let grid = Grid { source: source(text, dir.path()), sets: vec![], variants: vec![], axes: vec![], seeds: vec![] };
    let (plan, store) = (grid.plan().unwrap(), Store::new(dir.path().join("runs")));
    let failed = grid::run(&plan, &store, 1, &Editor(&trace)).unwrap_err();
    assert!(failed.problems[0].message.contains("has changed in the meantime"), "{failed:?}");
    assert_eq!(fs::read_dir(store.folder()).unwrap().count(), 0);
    let plan = grid.plan().unwrap();
    assert_eq!(grid::run(&plan, &store, 1, &()).unwrap().ran, 1);
}

#[test]
fn a_scheme_is_what_its_name_says_or_refused() {
    let schemes = |text: &str, sets: &[&str], names: &[&str]| {
        Variant::schemes(&source(text, Path::new("")), &strings(sets), &strings(names))
    };
    let all = ["pfc", "hpcc", "dctcp"];
    let with = |line: &str| format!("[scheme]\npreset = \"dcqcn\"\n{line}\n{STAR}");
    let names: Vec<String> = schemes(&with(""), &[], &all).unwrap().into_iter().map(|variant| variant.name).collect();
    assert_eq!(names, all);
    // What agrees with every preset is no contradiction.
    schemes(&with("flow_control = \"pfc\""), &[], &all).unwrap();
    let problem = schemes(&with("window = \"bdp\""), &[], &all).unwrap_err();
    assert_eq!((problem.file.as_str(), problem.line), ("star.toml", Some(3)), "{problem}");
    assert!(problem.message.contains("\"pfc\" would not be what its name says"), "{problem}");
    assert!(problem.help.as_deref().unwrap().contains("--set scheme.window=bdp"), "{problem}");
    schemes(&with("window = \"bdp\""), &[], &["hpcc", "dctcp"]).unwrap();
    schemes(&with("window = \"bdp\""), &["scheme.window=bdp"], &all).unwrap();
    // A name says what `--set` makes of a preset.
    let named = |sets: &[&str], all: &[&str]| -> Vec<String> {
        schemes(STAR, sets, all).unwrap().into_iter().map(|variant| variant.name).collect()
    };
    assert_eq!(named(&["scheme.flow_control=pfc"], &["bfc", "hpcc"]), ["bfc with flow_control=pfc", "hpcc"]);
    assert_eq!(
        named(&["scheme={flow_control=\"none\", transport='irn'}"], &["hpcc"]),
        ["hpcc with flow_control=none, transport=irn"]
    );
    let queues = ["switch.queues=4", "switch.buffer=4MB"];
    assert_eq!(named(&queues, &["dcqcn+win+sfq", "bfc"]), ["dcqcn+win+sfq with switch.queues=4", "bfc"]);
    let problem = schemes(&with("[switch]\necn_min = \"100KB\""), &[], &all).unwrap_err();
    assert!(problem.message.contains("\"dctcp\"") && problem.line == Some(4), "{problem}");
    assert!(schemes(STAR, &[], &["pfc", "hpc"]).unwrap_err().to_string().contains("did you mean \"hpcc\""));
    assert!(schemes(STAR, &[], &["pfc", "pfc"]).unwrap_err().message.contains("twice"));
    for set in ["scheme.preset=hpcc", "scheme={preset=\"hpcc\"}"] {
        let problem = schemes(STAR, &[set], &["pfc"]).unwrap_err();
        assert_eq!(
            (problem.file.as_str(), problem.message.as_str()),
            (&*format!("--set {set}"), "the schemes are given, too")
        );
        assert!(schemes(STAR, &[set], &[]).is_ok());
    }
}

#[test]
fn parameters_of_a_mechanism_go_to_the_schemes_that_use_it() {
    let digests = |parameters: &str, sets: &[&str], names: &[&str]| -> Vec<Digest> {
        let source = source(&format!("{STAR}{parameters}"), Path::new(""));
        let sets = strings(sets);
        let variants = Variant::schemes(&source, &sets, &strings(names)).unwrap();
        let plan = Grid { source, sets, variants, axes: vec![], seeds: vec![] }.plan().unwrap();
        assert!(plan.iter().all(|cell| cell.load().is_ok()), "{parameters}");
        plan.iter().map(|cell| cell.digest).collect()
    };
    let tuned = "[scheme.hpcc]\neta = 0.9\n";
    let (plain, with) = (digests("", &[], &["pfc", "hpcc"]), digests(tuned, &[], &["pfc", "hpcc"]));
    assert_ne!(plain[1], with[1]);
    assert_eq!(digests(tuned, &[], &["hpcc"]), with[1..]);
    assert_eq!(digests("", &["scheme.hpcc.eta=0.9"], &["pfc", "hpcc"])[1], with[1]);
    assert_eq!(digests(tuned, &[], &["pfc"]), with[..1]);
    // What the command line sets must be of use to some scheme.
    let source = source(STAR, Path::new(""));
    let sets = strings(&["scheme.hpcc.eta=0.9"]);
    let variants = Variant::schemes(&source, &sets, &strings(&["pfc"])).unwrap();
    let plan = Grid { source, sets, variants, axes: vec![], seeds: vec![] }.plan().unwrap();
    assert!(plan[0].load().unwrap_err().message.contains("which the scenario does not use"));
}

#[test]
fn the_title_and_the_seed_are_part_of_the_input_even_where_they_are_left_out() {
    let plan = |text: &str, title: &str, seeds: &[u64]| {
        let source = Source { title: title.into(), ..source(text, Path::new("")) };
        Grid { source, sets: vec![], variants: vec![], axes: vec![], seeds: seeds.into() }.plan().unwrap().remove(0)
    };
    let first = plan(STAR, "a \"title\"", &[]);
    assert_eq!(first.seed, 1);
    assert_eq!(first.digest, plan(STAR, "a \"title\"", &[1]).digest);
    assert_eq!(first.digest, plan(&format!("seed = 1\nname = 'a \"title\"'\n{STAR}"), "other", &[]).digest);
    assert_ne!(first.digest, plan(STAR, "other", &[]).digest);
    assert_ne!(first.digest, plan(STAR, "a \"title\"", &[2]).digest);
    assert_eq!(plan(&format!("seed = 5\n{STAR}"), "a", &[]).seed, 5);
}

/// What TOML can hold, without dates.
#[derive(Clone, Debug, PartialEq)]
enum Tree {
    Text(String),
    Integer(i64),
    Float(f64),
    Bool(bool),
    Array(Vec<Tree>),
    Table(BTreeMap<String, Tree>),
}

fn leaf() -> impl Strategy<Value = Tree> {
    prop_oneof![
        "[ -~äß€\n\t\u{7f}]{0,6}".prop_map(Tree::Text),
        any::<i64>().prop_map(Tree::Integer),
        any::<f64>().prop_filter("numbers only", |x| !x.is_nan()).prop_map(Tree::Float),
        any::<bool>().prop_map(Tree::Bool),
    ]
}

fn table() -> impl Strategy<Value = BTreeMap<String, Tree>> {
    let tree = leaf().prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Tree::Array),
            prop::collection::btree_map("[a-z]{1,3}", inner, 0..4).prop_map(Tree::Table),
        ]
    });
    prop::collection::btree_map("[a-z]{1,3}", tree, 0..5)
}

/// A writer that formats the same content differently each time.
struct Scribe(u64);

impl Scribe {
    fn dice(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn shuffled<'a>(&mut self, table: &'a BTreeMap<String, Tree>) -> Vec<(&'a String, &'a Tree)> {
        let mut members: Vec<_> = table.iter().collect();
        for i in (1..members.len()).rev() {
            members.swap(i, self.dice(i as u64 + 1) as usize);
        }
        members
    }

    fn text(&mut self, text: &str) -> String {
        let plain = !text.contains(|c: char| c.is_control() || c == '\'');
        if plain && self.dice(2) == 0 {
            return format!("'{text}'");
        }
        let escape = |c: char| match c {
            '\n' if self.dice(2) == 0 => "\\n".into(),
            '"' => "\\\"".into(),
            '\\' => "\\\\".into(),
            c if c.is_control() || self.dice(4) == 0 => format!("\\u{:04x}", c as u32),
            c => c.to_string(),
        };
        format!("\"{}\"", text.chars().map(escape).collect::<String>())
    }

    fn key(&mut self, key: &str) -> String {
        if self.dice(3) == 0 { self.text(key) } else { key.into() }
    }

    fn value(&mut self, tree: &Tree) -> String {
        match tree {
            Tree::Text(text) => self.text(text),
            Tree::Integer(number) if *number >= 0 && self.dice(3) == 0 => format!("0x{number:x}"),
            Tree::Integer(number) if *number >= 0 && self.dice(3) == 0 => format!("+{number}"),
            Tree::Integer(number) => number.to_string(),
            Tree::Float(number) if number.is_finite() && self.dice(2) == 0 => format!("{number:e}"),
            Tree::Float(number) => format!("{number:?}"),
            Tree::Bool(flag) => flag.to_string(),
            Tree::Array(trees) => {
                let space = ["", " ", "\n  # why\n"][self.dice(3) as usize];
                let end = if self.dice(2) == 0 && !trees.is_empty() { "," } else { "" };
                let items: Vec<String> = trees.iter().map(|tree| self.value(tree)).collect();
                format!("[{space}{}{end}{space}]", items.join(&format!(",{space}")))
            }
            Tree::Table(table) => {
                let members = self.shuffled(table);
                let members: Vec<String> = members
                    .into_iter()
                    .map(|(key, tree)| format!("{} = {}", self.key(key), self.value(tree)))
                    .collect();
                format!("{{ {} }}", members.join(" , "))
            }
        }
    }

    /// Writes a table's plain lines, then the tables in it that have a line of their own.
    fn table(&mut self, table: &BTreeMap<String, Tree>, path: &str, out: &mut String) {
        let mut below = Vec::new();
        for (key, tree) in self.shuffled(table) {
            match tree {
                Tree::Table(inner) if self.dice(2) == 0 => below.push((key, inner)),
                Tree::Table(inner) if !inner.is_empty() && self.dice(2) == 0 => {
                    for (last, tree) in self.shuffled(inner) {
                        *out += &format!("{} . {} = {}\n", self.key(key), self.key(last), self.value(tree));
                    }
                }
                _ => {
                    *out += &format!(
                        "{}={}{}\n",
                        self.key(key),
                        self.value(tree),
                        ["", "  # so", "\r"][self.dice(3) as usize]
                    )
                }
            }
        }
        for (key, inner) in below {
            let path = if path.is_empty() { self.key(key) } else { format!("{path}.{}", self.key(key)) };
            *out += &format!("\n# a table\n [ {path} ]\n");
            self.table(inner, &path, out);
        }
    }
}

fn digest(text: &str, sets: &[String]) -> Digest {
    let mut document = Document::parse("a", text).unwrap_or_else(|problem| panic!("{problem}\n{text}"));
    sets.iter().for_each(|set| document.set(set).unwrap_or_else(|problem| panic!("{problem}")));
    let input = Input::new(&document, Path::new("/nowhere"), &mut Known::new());
    // What is stored says the same as what was read.
    let canonical = Document::parse("b", input.text()).unwrap_or_else(|problem| panic!("{problem}"));
    assert_eq!(canonical.canonical(), document.canonical());
    input.digest()
}

/// Takes one leaf out of a table of tables, and says what it was as `--set` does.
fn pluck(table: &mut BTreeMap<String, Tree>, scribe: &mut Scribe, path: &str) -> Option<String> {
    let keys: Vec<String> = table.keys().cloned().collect();
    let key = keys.get(scribe.dice(keys.len().max(1) as u64) as usize)?;
    let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
    match table.get_mut(key)? {
        Tree::Table(inner) if !inner.is_empty() => pluck(inner, scribe, &path),
        _ => {
            let tree = table.remove(key)?;
            Some(format!("{path} = {}", scribe.value(&tree)))
        }
    }
}

proptest! {
    #[test]
    fn texts_that_mean_the_same_have_the_same_digest(table in table(), seed: u64, plucked in 0..4) {
        let (mut scribe, mut text, mut other) = (Scribe(seed), String::new(), String::new());
        scribe.table(&table, "", &mut text);
        let expected = digest(&text, &[]);
        let mut rest = table;
        let mut sets: Vec<String> = (0..plucked).filter_map(|_| pluck(&mut rest, &mut scribe, "")).collect();
        scribe.table(&rest, "", &mut other);
        sets.reverse();
        prop_assert_eq!(digest(&other, &sets), expected, "{}\nand\n{}\nwith {:?}", text, other, sets);
    }

    #[test]
    fn texts_that_mean_different_things_have_different_digests(table in table(), other in table(), seed: u64) {
        let mut scribe = Scribe(seed);
        let [a, b] = [&table, &other].map(|table| {
            let mut text = String::new();
            scribe.table(table, "", &mut text);
            digest(&text, &[])
        });
        prop_assert_eq!(a == b, table == other);
    }
}

#[test]
fn what_is_set_for_all_runs_is_not_varied_besides() {
    let dir = tempfile::tempdir().unwrap();
    let plan = |sets: &[&str], axis: &str| {
        let mut grid = grid(STAR, dir.path());
        (grid.sets, grid.axes) = (strings(sets), vec![Axis::parse(axis).unwrap()]);
        grid.plan().map(|plan| plan.len()).map_err(|problems| problems[0].to_string())
    };
    for (set, axis) in [
        ("switch.buffer=9MB", "switch.buffer=4MB,8MB"),
        ("switch . buffer = 9MB", "switch.buffer=4MB,8MB"),
        ("-switch.buffer", "switch.buffer=4MB,8MB"),
        ("switch.buffer=9MB", "switch={reserve=\"1KB\"}"),
    ] {
        let said = plan(&[set], axis).unwrap_err();
        assert!(
            said.starts_with(&format!("--set {set}: switch")) && said.contains("is given with --vary, too"),
            "{said}"
        );
    }
    // A table that is set may have a key of it varied.
    assert!(plan(&["switch={reserve=\"1KB\"}", "nic.payload=1KB"], "switch.buffer=4MB,8MB").is_ok());
}

#[test]
fn a_store_is_not_made_in_the_folder_of_a_run() {
    let dir = tempfile::tempdir().unwrap();
    let plan = grid(STAR, dir.path()).plan().unwrap();
    fs::write(dir.path().join("summary.json"), "{}").unwrap();
    let failed = grid::run(&plan, &Store::new(dir.path()), 2, &Watch::default()).unwrap_err();
    assert!(failed.problems[0].message.contains("results of a run"), "{:?}", failed.problems);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}
