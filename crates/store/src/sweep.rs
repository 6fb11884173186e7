//! A sweep: many runs as a file, which any number of processes on any number of machines do together.
//!
//! ```toml
//! scenario = "incast.toml"          # relative to this file; or a table [scenario]
//! schemes = ["dcqcn", "hpcc"]
//! seeds = 10                        # or which: [1, 5, 9]
//! set = ["switch.buffer=8MB"]       # for all runs
//! [grid]                            # every combination
//! "load.0.load" = [0.3, 0.5, 0.7]
//! [[list]]                          # or keys that change together, row by row
//! "topology.hosts" = 16
//! "switch.ports" = 20
//! ```
//!
//! The order of the plan is that of [`Grid::plan`]: schemes, rows of the list, keys of the grid, seeds.

use crate::claims::{Owner, State};
use crate::grid::{self, Axis, Cell, Done, Failed, Grid, Observer, Source, Variant, overlap, tidy, undone};
use crate::store::{Found, Store};
use files::problem::{Given, Problem, read_text};
use results::comparison::SCHEME;
use scenario::document::{Document, Item, Table, canonical_value, quote, quoted};
use scenario::kind::FileKind;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

pub use crate::grid::Options;

pub mod runs;

/// The most seeds.
const MOST_SEEDS: u64 = 10_000;

/// A sweep's file, read.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// What people call it: the file's name without its ending.
    pub title: String,
    /// The file's text.
    pub text: String,
    /// What it amounts to. Its axes are the keys of the list and then those of the grid, as the labels of the runs
    /// have them; if there is a list, not every combination is run.
    pub grid: Grid,
    /// By row of the list: keys and values.
    pub rows: Vec<Vec<(String, String)>>,
    /// By `key=value`, a problem at its place in the file.
    places: BTreeMap<String, Problem>,
}

impl Sweep {
    /// Reads a sweep's file.
    pub fn load(path: &Path) -> Result<Sweep, Problem> {
        let text = read_text(path)?;
        Sweep::parse(&path.display().to_string(), &text, path.parent().unwrap_or(Path::new("")))
    }

    /// Reads the text of a sweep that is called `name`, with files looked for in `base`.
    pub fn parse(name: &str, text: &str, base: &Path) -> Result<Sweep, Problem> {
        let document = Document::parse(name, text)?;
        document.expect_kind(FileKind::Sweep)?;
        let title = Path::new(name).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let mut root = document.root();
        let source = read_scenario(&document, &mut root, &title, base)?;
        let schemes = read_texts(&mut root, "schemes", "[\"dcqcn\", \"hpcc\"]")?;
        let sets = read_texts(&mut root, "set", "[\"switch.buffer=4MB\"]")?;
        let seeds = read_seeds(&mut root)?;
        let mut places = BTreeMap::new();
        let axes = read_grid(&mut root, &mut places)?;
        let rows = read_list(&mut root, &axes, &mut places)?;
        let at_set = |problem: Problem| match problem.given {
            Some(Given::Set(_)) => rephrase(root.problem_at("set", ""), &problem),
            _ => problem,
        };
        // A wrong change is reported here, at its place.
        let mut trial = Document::parse(source.name.as_str(), source.text.as_str())?;
        sets.iter().try_for_each(|set| trial.set(set)).map_err(at_set)?;
        let at_schemes = |problem: Problem| match problem.given {
            Some(Given::Schemes) => rephrase(root.problem_at("schemes", ""), &problem),
            _ => problem,
        };
        let variants =
            Variant::schemes(&source, &sets, &schemes).map_err(|problem| problem.map(at_schemes).map(at_set))?;
        if rows.iter().flatten().any(|(key, _)| key == "scheme") && !schemes.is_empty() {
            let problem = root.problem_at("schemes", "[[list]] chooses schemes, too");
            return Err(problem.help("leave out one of the two"));
        }
        let varied = rows.iter().flatten().map(|(key, _)| key).chain(axes.iter().map(|axis| &axis.key));
        if let Some((set, key)) = varied.filter_map(|key| Some((undone(&sets, key)?, key))).next() {
            let problem = root.problem_at("set", format!("{set}: {key} is given in [grid] or [[list]], too"));
            return Err(problem.help("give a key its values in one place"));
        }
        let seed_set = sets.iter().any(|set| set.split('=').next().is_some_and(|key| key.trim() == "seed"));
        if seed_set && !seeds.is_empty() {
            let problem = root.problem_at("set", "the seed is given with seeds, too");
            return Err(problem.help("leave it out of set"));
        }
        root.finish()?;
        let keys = rows.first().into_iter().flatten().map(|(key, _)| key.clone());
        let of_list = keys.map(|key| {
            let mut values: Vec<String> = Vec::new();
            for (own, value) in rows.iter().flatten() {
                if *own == key && !values.contains(value) {
                    values.push(value.clone());
                }
            }
            Axis { key, values }
        });
        let axes = of_list.chain(axes).collect();
        Ok(Sweep { title, text: text.into(), grid: Grid { source, sets, variants, axes, seeds }, rows, places })
    }

    /// Lists the runs.
    pub fn plan(&self) -> Result<Vec<Cell>, Vec<Problem>> {
        let keys = self.rows.first().map_or(0, Vec::len);
        // A row is a variant of each scheme, so that it is applied where a varied value would be.
        let none = [Variant { name: String::new(), sets: Vec::new() }];
        let schemes = if self.grid.variants.is_empty() { none.as_slice() } else { &self.grid.variants };
        let no_row = [Vec::new()];
        let rows = if self.rows.is_empty() { no_row.as_slice() } else { &self.rows };
        let mut grid = Grid { axes: self.grid.axes[keys..].to_vec(), variants: Vec::new(), ..self.grid.clone() };
        let mut labels = Vec::new();
        for scheme in schemes {
            for row in rows {
                let sets: Vec<String> = row.iter().map(|(key, value)| format!("{key}={value}")).collect();
                let words = Some(scheme.name.clone()).into_iter().filter(|name| !name.is_empty());
                let name = words.chain(sets.clone()).collect::<Vec<_>>().join(", ");
                let own = (!scheme.name.is_empty()).then(|| (SCHEME.to_string(), scheme.name.clone()));
                labels.push(own.into_iter().chain(row.iter().cloned()).collect::<Vec<_>>());
                grid.variants.push(Variant { name, sets: [scheme.sets.clone(), sets].concat() });
            }
        }
        let located =
            |problems: Vec<Problem>| problems.into_iter().map(|problem| self.explain(problem)).collect::<Vec<_>>();
        let mut plan = grid.plan().map_err(located)?;
        let each = plan.len() / labels.len().max(1);
        for (cells, labels) in plan.chunks_mut(each.max(1)).zip(labels) {
            cells.iter_mut().for_each(|cell| _ = cell.labels.splice(..1, labels.iter().cloned()));
        }
        Ok(plan)
    }

    /// Puts a problem of a run at its line of the sweep's file, if it is about a value from there.
    pub fn explain(&self, problem: Problem) -> Problem {
        let set = problem.given.as_ref().and_then(Given::assignment);
        match set.and_then(|set| self.places.get(set)) {
            Some(place) => rephrase(place.clone(), &problem),
            None => problem,
        }
    }
}

/// The place of one problem, with what another says.
fn rephrase(place: Problem, problem: &Problem) -> Problem {
    let about = problem.given.as_ref().and_then(Given::assignment);
    let about = about.map_or(String::new(), |about| format!("{about}: "));
    let place = place.saying(format!("{about}{}", problem.message)).cause(problem.cause);
    let place = problem.run.iter().fold(place, Problem::in_run);
    match &problem.help {
        Some(help) => place.help(help.as_str()),
        None => place,
    }
}

/// The scenario: a file's name, a text, or a table.
fn read_scenario(document: &Document, root: &mut Table<'_>, title: &str, base: &Path) -> Result<Source, Problem> {
    const REMEDY: &str = "write scenario = \"file.toml\", or begin it here with a line [scenario]";
    let Some(item) = root.item("scenario") else {
        return Err(root.problem("the file has no scenario").help(REMEDY));
    };
    let here = |text: String| Source {
        name: format!("[scenario] of {}", document.file()),
        title: title.into(),
        text,
        base: base.into(),
    };
    if let Some(text) = document.part("scenario") {
        return Ok(here(text));
    }
    let text: String = item.read().map_err(|problem| problem.help(REMEDY))?;
    if text.contains('\n') {
        return Ok(here(text));
    }
    Source::load(&base.join(&text)).map_err(|problem| {
        let message = format!("{}: {}", problem.file, problem.message);
        item.problem(message).help("name a scenario file, relative to this one")
    })
}

/// An array of texts, or none.
fn read_texts(root: &mut Table<'_>, key: &str, example: &str) -> Result<Vec<String>, Problem> {
    let Some(item) = root.item(key) else { return Ok(Vec::new()) };
    let help = |problem: Problem| problem.help(format!("write {key} = {example}"));
    item.items().map_err(help)?.iter().map(|item| item.read().map_err(help)).collect()
}

/// How many seeds, or which; none for the scenario's own.
fn read_seeds(root: &mut Table<'_>) -> Result<Vec<u64>, Problem> {
    let Some(item) = root.item("seeds") else { return Ok(Vec::new()) };
    const REMEDY: &str = "write how many, such as seeds = 10, or which, such as seeds = [5, 9]";
    let help = |problem: Problem| problem.help(REMEDY);
    if !item.is_array() {
        return match item.read::<u64>().map_err(help)? {
            count @ 1..=MOST_SEEDS => Ok((1..=count).collect()),
            count => Err(help(item.problem(format!("{count} is not a number of seeds from 1 to {MOST_SEEDS}")))),
        };
    }
    let mut seeds = Vec::new();
    for item in item.items()? {
        let seed: u64 = item.read().map_err(help)?;
        if seeds.contains(&seed) {
            return Err(item.problem(format!("{seed} is there twice")).help("name each seed once"));
        }
        seeds.push(seed);
    }
    if seeds.is_empty() { Err(help(item.problem("names no seed"))) } else { Ok(seeds) }
}

/// A key that may be varied.
fn check_key(key: &str, item: &Item<'_>) -> Result<(), Problem> {
    match key {
        "seed" => Err(item.problem("the seed is not varied like this").help("write seeds = 10, or seeds = [1, 2]")),
        "scheme.preset" => {
            Err(item.problem("schemes are not varied like this").help("write schemes = [\"dcqcn\", \"hpcc\"]"))
        }
        _ if key.contains('=') || key.starts_with('-') || key.split('.').any(|part| part.trim().is_empty()) => {
            let problem = item.problem(format!("{} is not the path of a key", quoted(key)));
            Err(problem.help("write keys with dots between them, such as \"switch.buffer\""))
        }
        _ => Ok(()),
    }
}

/// `[grid]`.
fn read_grid(root: &mut Table<'_>, places: &mut BTreeMap<String, Problem>) -> Result<Vec<Axis>, Problem> {
    let Some(mut table) = root.table("grid")? else { return Ok(Vec::new()) };
    let mut axes: Vec<Axis> = Vec::new();
    for (key, item) in table.leaves() {
        let key = tidy(&key);
        check_key(&key, &item)?;
        let help = |problem: Problem| problem.help(format!("write its values in brackets: {} = [1, 2]", quote(&key)));
        if let Some(axis) = axes.iter().find(|axis| overlap(&axis.key, &key)) {
            return Err(match axis.key == key {
                true => item.problem(format!("{key} is there twice")).help("write all values of a key in one line"),
                false => item.problem(format!("{key} changes the same as {}", axis.key)).help("vary one of the two"),
            });
        }
        let (mut values, mut seen) = (Vec::new(), BTreeSet::new());
        for item in item.items().map_err(help)? {
            let value = item.as_set();
            if !seen.insert(canonical_value(&value)) {
                return Err(item.problem(format!("{value} is there twice")).help("write each value once"));
            }
            places.insert(format!("{key}={value}"), item.problem(""));
            values.push(value);
        }
        if values.is_empty() {
            return Err(help(item.problem("has no values")));
        }
        axes.push(Axis { key, values });
    }
    Ok(axes)
}

/// `[[list]]`.
fn read_list(
    root: &mut Table<'_>,
    axes: &[Axis],
    places: &mut BTreeMap<String, Problem>,
) -> Result<Vec<Vec<(String, String)>>, Problem> {
    let mut rows: Vec<Vec<(String, String)>> = Vec::new();
    for mut table in root.tables("list")? {
        let mut row: Vec<(String, String)> = Vec::new();
        for (key, item) in table.leaves() {
            let key = tidy(&key);
            check_key(&key, &item)?;
            if axes.iter().any(|axis| overlap(&axis.key, &key)) {
                return Err(item
                    .problem(format!("{key} is in [grid], too"))
                    .help("give a key its values in one place"));
            }
            if let Some((other, _)) = row.iter().find(|(other, _)| overlap(other, &key)) {
                return Err(item
                    .problem(format!("{key} changes the same as {other}"))
                    .help("leave out one of the two"));
            }
            let value = item.as_set();
            places.entry(format!("{key}={value}")).or_insert_with(|| item.problem(""));
            row.push((key, value));
        }
        row.sort();
        let keys = |row: &[(String, String)]| row.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>();
        if let Some(first) = rows.first()
            && keys(first) != keys(&row)
        {
            let message = format!("a row has {}, the first has {}", keys(&row).join(", "), keys(first).join(", "));
            return Err(table.problem(message).help("give every row the same keys"));
        }
        let canonical = |row: &[(String, String)]| row.iter().map(|(_, v)| canonical_value(v)).collect::<Vec<_>>();
        if rows.iter().any(|other| canonical(other) == canonical(&row)) {
            return Err(table.problem("the row is there twice").help("write each row once, with at least one key"));
        }
        if row.is_empty() {
            return Err(table.problem("the row is empty").help("give it keys, such as \"switch.buffer\" = \"4MB\""));
        }
        rows.push(row);
    }
    Ok(rows)
}

/// Sees to it that the store has the runs of a plan, or a shard of them, together with any other processes that work on it.
pub fn work(plan: &[Cell], store: &Store, options: &Options, observer: &dyn Observer) -> Result<Done, Failed> {
    grid::prepare(plan, store, options, observer)?.run(options.threads, observer)
}

/// How far a plan is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Runs in all; cells with the same input are one.
    pub runs: usize,
    /// Runs in the store.
    pub finished: usize,
    /// Runs that a process works on, by their place in the plan.
    pub running: Vec<(usize, Owner)>,
    /// Runs that no process works on.
    pub missing: Vec<usize>,
    /// Of these, how many were begun by a process that has ended.
    pub lost: usize,
    /// Of these, those that broke a promise; the folder says which.
    pub broken: Vec<PathBuf>,
}

/// Looks what a store has of a plan. Only the store counts, not which process filled it.
pub fn status(plan: &[Cell], store: &Store) -> Result<Status, Problem> {
    let (mut status, mut seen, claims) = (Status::default(), BTreeSet::new(), store.claims());
    for (place, cell) in plan.iter().enumerate().filter(|(_, cell)| seen.insert(cell.digest)) {
        status.runs += 1;
        if let Found::Whole(_) = store.lookup(cell.digest)? {
            status.finished += 1;
            continue;
        }
        match claims.state(cell.digest)? {
            State::Held(owner) => status.running.push((place, owner)),
            state => {
                status.missing.push(place);
                status.lost += usize::from(matches!(state, State::Void(_)));
                let broken = store.folder().join(format!("broken-{}", cell.digest));
                status.broken.extend(broken.is_dir().then_some(broken));
            }
        }
    }
    Ok(status)
}
