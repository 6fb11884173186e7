//! Many runs of one scenario: every scheme with every varied value and every seed, on all cores.
//!
//! A [`Grid`] says what to compare, its [`plan`](Grid::plan) lists the runs, and [`run()`] sees to it that the store has them all.
//! Runs that are there already are not repeated, so that an interrupted grid goes on where it was; nor are those that
//! another process works on ([`crate::claims`]).

use crate::claims::{Held, Owner};
use crate::digest::Digest;
use crate::store::{Found, Input, Known, Store};
use engine::Time;
use files::SUMMARY;
use files::problem::{Cause, Given, Problem, read_text};
use results::comparison::{Labels, SCHEME, Table};
use run::Finished;
use run::outcome::Cost;
use scenario::Scenario;
use scenario::document::{Document, canonical_value, quote, quoted, suggest};
use scenario::kind::FileKind;
use scenario::presets::{self, Preset};
use scenario::resolve::{Resolved, resolve};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The most runs of a grid.
pub(crate) const MOST: usize = 100_000;

/// A scenario's text, from a file or from elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// What problems call it.
    pub name: String,
    /// The title of a scenario that has none itself.
    pub title: String,
    /// The text.
    pub text: String,
    /// Where files that it names are looked for.
    pub base: PathBuf,
}

impl Source {
    /// Reads a scenario file.
    pub fn load(path: &Path) -> Result<Source, Problem> {
        Ok(Source {
            name: path.display().to_string(),
            title: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
            text: read_text(path)?,
            base: path.parent().unwrap_or(Path::new("")).to_owned(),
        })
    }
}

/// One of the things compared: a name, and what makes it different.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// What people call it.
    pub name: String,
    /// Changes to the scenario, each as after `--set`; see [`Document::set`].
    pub sets: Vec<String>,
}

impl Variant {
    /// Presets as variants of a scenario that is also changed by `sets`.
    ///
    /// Parameters that the scenario has for a mechanism go to the schemes that use it, if any does. A key that would turn a
    /// preset into something else is refused, unless `sets` give it to all: then the name says so, as in `bfc with flow_control=pfc`.
    pub fn schemes(source: &Source, sets: &[String], names: &[String]) -> Result<Vec<Variant>, Problem> {
        let presets = presets_named(names)?;
        if let Some((_, name)) = names.iter().enumerate().find(|(place, name)| names[..*place].contains(name)) {
            let problem = Problem::new("--schemes", format!("{name} is there twice")).given(Given::Schemes);
            return Err(problem.help("name each scheme once"));
        }
        check_changes(&[], sets, !presets.is_empty())?;
        let mut document = Document::parse(source.name.as_str(), source.text.as_str())?;
        document.expect_kind(FileKind::Scenario)?;
        let set_for_all: Vec<&str> = sets.iter().filter_map(|set| Some(set.split_once('=')?.0.trim())).collect();
        // What a preset does not say of these, it means as usual.
        const USUAL: [(&str, &str); 2] = [("scheme.transport", "go-back-n"), ("scheme.edge_control", "none")];
        let meant = |p: &&'static Preset| -> Vec<(&Preset, &(&str, &str))> {
            let unsaid = USUAL.iter().filter(|(key, _)| p.settings.iter().all(|(own, _)| own != key));
            p.settings.iter().chain(unsaid).map(|s| (*p, s)).collect::<Vec<_>>()
        };
        for (preset, (key, value)) in presets.iter().flat_map(meant) {
            let own = document.value(key).filter(|own| *own != canonical_value(value) && !set_for_all.contains(key));
            if let Some(own) = own {
                let message = format!("{key} is set, so that \"{}\" would not be what its name says", preset.name);
                let help =
                    format!("remove it, or use --set {key}={} to have it with every scheme", own.trim_matches('"'));
                return Err(document.problem(key, message).help(help));
            }
        }
        // What the command line says must be of use; the file may be meant for other comparisons, too.
        let in_file = document.clone();
        set_all(&mut document, sets)?;
        let uses = |preset: &Preset, mechanism: &str| {
            let axis = |key: &str| key.strip_prefix("scheme.").is_some_and(|axis| !axis.contains('.'));
            let is = |key: &str, value: &str| match document.value(key) {
                Some(own) => own.trim_matches('"') == mechanism,
                None => value == mechanism,
            };
            preset.settings.iter().any(|(key, value)| axis(key) && is(key, value))
        };
        let mut tables = document.tables_in("scheme");
        tables.retain(|table| {
            let named = |key: &&str| key.strip_prefix("scheme.").and_then(|key| key.split('.').next()) == Some(*table);
            let spared = !set_for_all.iter().any(named);
            let known = presets::all().iter().any(|preset| uses(preset, table));
            presets.iter().any(|preset| uses(preset, table))
                || spared && known && in_file.tables_in("scheme").contains(table)
        });
        let variant = |preset: &&'static Preset| {
            let others = tables.iter().filter(|table| !uses(preset, table));
            let choice = format!("scheme.preset={}", preset.name);
            let sets = [choice].into_iter().chain(others.map(|table| format!("-scheme.{table}"))).collect();
            // A name is that of the preset alone only if it is all of the preset.
            let other = |(_, (key, value)): (&Preset, &(&str, &str))| {
                let own = document.value(key).filter(|own| *own != canonical_value(value))?;
                Some(format!("{}={}", key.strip_prefix("scheme.").unwrap_or(key), own.trim_matches('"')))
            };
            let others: Vec<String> = meant(preset).into_iter().filter_map(other).collect();
            let with = if others.is_empty() { String::new() } else { format!(" with {}", others.join(", ")) };
            Variant { name: format!("{}{with}", preset.name), sets }
        };
        Ok(presets.iter().map(variant).collect())
    }
}

/// Makes the changes of `--set`, or says all that is wrong with them.
fn set_all(document: &mut Document, sets: &[String]) -> Result<(), Problem> {
    let wrong: Vec<Problem> = sets.iter().filter_map(|set| document.set(set).err()).collect();
    Problem::all(wrong).map_or(Ok(()), Err)
}

/// The presets that `--schemes` names, or all names that are none's.
fn presets_named(names: &[String]) -> Result<Vec<&'static Preset>, Problem> {
    let known: Vec<&str> = presets::all().iter().map(|preset| preset.name).collect();
    let unknown = |name: &String| {
        let help = match name.is_empty() {
            true => "write names with one comma between them".into(),
            false => presets::instead_of(name),
        };
        let problem = Problem::new("--schemes", format!("there is no preset {}", quoted(name)));
        problem.given(Given::Schemes).meant(suggest(name, &known)).help(help)
    };
    let wrong = names.iter().filter(|name| presets::named(name).is_none()).map(unknown);
    match Problem::all(wrong) {
        Some(problem) => Err(problem),
        None => Ok(names.iter().filter_map(|name| presets::named(name)).collect()),
    }
}

/// A key with the values that it is to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The key's path.
    pub key: String,
    /// The values, written as for `--set`.
    pub values: Vec<String>,
}

impl Axis {
    /// Reads `key=v1,v2,…` as after `--vary`. A comma within brackets or quotes belongs to a value.
    pub fn parse(text: &str) -> Result<Axis, Problem> {
        let problem = |message: &str, help: &str| {
            let problem = Problem::new(format!("--vary {text}"), message).help(help);
            Err(problem.given(Given::Vary(text.into())))
        };
        let Some((key, values)) = text.split_once('=') else {
            return problem("has no \"=\"", "write --vary key=value,value, such as --vary switch.buffer=4MB,8MB");
        };
        let (mut depth, mut quote) = (0, None);
        let values: Vec<String> = values
            .split(|c: char| {
                match (quote, c) {
                    (Some(open), c) if c == open => quote = None,
                    (Some(_), _) => {}
                    (None, '"' | '\'') => quote = Some(c),
                    (None, '[' | '{') => depth += 1,
                    (None, ']' | '}') => depth -= 1,
                    (None, _) => {}
                }
                c == ',' && depth == 0 && quote.is_none()
            })
            .map(|value| value.trim().to_string())
            .collect();
        let key = tidy(key);
        match key.as_str() {
            "seed" => return problem("the seed is not varied like this", "write --seeds, such as --seeds 1,2,3"),
            "scheme.preset" => {
                return problem("schemes are not varied like this", "write --schemes, such as --schemes dcqcn,hpcc");
            }
            _ => {}
        }
        if values.iter().any(String::is_empty) {
            return problem("has an empty value", "write values with one comma between them");
        }
        let distinct: BTreeSet<String> = values.iter().map(|value| canonical_value(value)).collect();
        if distinct.len() < values.len() {
            return problem("has a value twice", "write each value once");
        }
        Ok(Axis { key, values })
    }
}

/// A key's path as it is known: without blanks around its parts.
pub(crate) fn tidy(key: &str) -> String {
    key.split('.').map(str::trim).collect::<Vec<_>>().join(".")
}

/// Whether a key is that one, or lies within it.
pub(crate) fn is_within(key: &str, other: &str) -> bool {
    key.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Whether a value of one key changes the other.
pub(crate) fn overlap(one: &str, two: &str) -> bool {
    is_within(one, two) || is_within(two, one)
}

/// The first change for all runs that a key's own values would undo.
pub(crate) fn undone<'a>(sets: &'a [String], key: &str) -> Option<&'a String> {
    let changed = |set: &str| tidy(set.strip_prefix('-').unwrap_or(set).split('=').next().unwrap_or_default());
    sets.iter().find(|set| is_within(&changed(set), key))
}

/// Seeds are whole numbers of TOML.
const LARGEST_SEED: u64 = i64::MAX as u64;

/// Refuses axes that would undo one another, or what is set for all runs, and a choice of a scheme where schemes are compared: labels
/// would name what is not run.
pub fn check_changes(axes: &[Axis], sets: &[String], schemes: bool) -> Result<(), Problem> {
    const ONE: &str = "leave out one of the two";
    let set_problem = |set: &String, message: String| {
        Problem::new(format!("--set {set}"), message).given(Given::Set(set.clone())).help(ONE)
    };
    // A table that has it counts, too.
    let chooses = |set: &&String| {
        let alone = Document::parse("", "");
        alone.is_ok_and(|mut alone| alone.set(set).is_ok() && alone.value("scheme.preset").is_some())
    };
    if let Some(set) = sets.iter().find(chooses).filter(|_| schemes) {
        return Err(set_problem(set, "the schemes are given, too".into()));
    }
    for (place, Axis { key, .. }) in axes.iter().enumerate() {
        let vary = |message: String| Problem::new(format!("--vary {key}"), message).given(Given::Vary(key.clone()));
        if let Some(other) = axes[..place].iter().find(|other| overlap(&other.key, key)) {
            return Err(match other.key == *key {
                true => vary("is there twice".into()).help("write all values of a key in one --vary"),
                false => vary(format!("changes the same as --vary {}", other.key)).help("vary one of the two"),
            });
        }
        if schemes && is_within("scheme.preset", key) {
            return Err(vary("chooses schemes, and so does --schemes".into()).help(ONE));
        }
        if let Some(set) = undone(sets, key) {
            return Err(set_problem(set, format!("{key} is given with --vary, too")));
        }
    }
    Ok(())
}

/// What `--seeds` says, beside what `--set` says; none for the scenario's own.
pub fn seeds(text: Option<&str>, sets: &[String]) -> Result<Vec<u64>, Problem> {
    let Some(text) = text else { return Ok(Vec::new()) };
    let problem = |message: String| {
        Problem::new("--seeds", message)
            .help("write how many, such as 3, or which, such as 5,9; a single one with --set seed=5")
    };
    if sets.iter().any(|set| set.split('=').next().is_some_and(|key| key.trim() == "seed")) {
        return Err(problem("the seed is given with --set, too".into()));
    }
    let numbers: Result<Vec<u64>, _> = text.split(',').map(|seed| seed.trim().parse::<u64>()).collect();
    match numbers.as_deref() {
        Ok([_, _, ..]) if numbers.iter().flatten().any(|&seed| seed > LARGEST_SEED) => {
            Err(problem(format!("{LARGEST_SEED} is the largest seed")))
        }
        Err(_) if text.trim().strip_prefix('-').is_some_and(|number| number.parse::<u64>().is_ok()) => {
            Err(problem(format!("{} is negative; there are 1 to 10000 seeds", text.trim())))
        }
        Err(_) => Err(problem(format!("\"{}\" is not a number, or numbers with commas", text.escape_debug()))),
        Ok([count @ 1..=10_000]) => Ok((1..=*count).collect()),
        Ok([count]) => Err(problem(format!("{count} is not a number of seeds from 1 to 10000"))),
        Ok(seeds) => match seeds.iter().enumerate().find(|(place, seed)| seeds[..*place].contains(seed)) {
            Some((_, seed)) => Err(problem(format!("{seed} is there twice"))),
            None => Ok(seeds.to_vec()),
        },
    }
}

/// What to run: a scenario with every variant, every combination of varied values, and every seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    /// The scenario.
    pub source: Source,
    /// Changes to it for all runs.
    pub sets: Vec<String>,
    /// What is compared; none for the scenario as it is.
    pub variants: Vec<Variant>,
    /// What is varied besides.
    pub axes: Vec<Axis>,
    /// The seeds; none for the scenario's own.
    pub seeds: Vec<u64>,
}

/// One run of a grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Where in the grid it is: the name of each axis, the first being `scheme` where variants are compared, and its value.
    pub labels: Labels,
    /// Its seed.
    pub seed: u64,
    /// Every change to the scenario, in order.
    pub sets: Vec<String>,
    /// The scenario.
    pub source: Arc<Source>,
    /// What names it in a store.
    pub digest: Digest,
}

impl Grid {
    /// Lists the runs, variant by variant, with the last axis turning fastest and the seeds within.
    pub fn plan(&self) -> Result<Vec<Cell>, Vec<Problem>> {
        let stop = |problem| vec![problem];
        let chosen = |variant: &Variant| variant.sets.iter().any(|set| set.starts_with("scheme.preset="));
        check_changes(&self.axes, &self.sets, self.variants.iter().any(chosen)).map_err(stop)?;
        let sizes = self.axes.iter().map(|axis| axis.values.len()).chain([self.variants.len(), self.seeds.len()]);
        let count = sizes.fold(1_usize, |all, size| all.saturating_mul(size.max(1)));
        if count > MOST {
            let problem = Problem::new("the grid", format!("has {count} runs; {MOST} is the most"));
            return Err(stop(problem.help("vary less at once")));
        }
        let source = Arc::new(self.source.clone());
        let mut document = Document::parse(source.name.as_str(), source.text.as_str()).map_err(stop)?;
        set_all(&mut document, &self.sets).map_err(stop)?;
        // The title and the seed are part of the results even where they are left out.
        let mut always = Vec::new();
        if document.value("name").is_none() {
            always.push(format!("name={}", quote(&source.title)));
        }
        let own: Option<u64> = document.root().optional("seed").map_err(stop)?;
        let seeds = if self.seeds.is_empty() { vec![own.unwrap_or(1)] } else { self.seeds.clone() };

        let mut points = vec![(Vec::new(), Vec::new())];
        if !self.variants.is_empty() {
            let point = |variant: &Variant| (vec![(SCHEME.to_string(), variant.name.clone())], variant.sets.clone());
            points = self.variants.iter().map(point).collect();
        }
        for Axis { key, values } in &self.axes {
            let with = |(labels, sets): &(Vec<(String, String)>, Vec<String>), value: &String| {
                let (mut labels, mut sets) = (labels.clone(), sets.clone());
                labels.push((key.clone(), value.clone()));
                sets.push(format!("{key}={value}"));
                (labels, sets)
            };
            points = points.iter().flat_map(|point| values.iter().map(move |value| with(point, value))).collect();
        }
        let (mut cells, mut problems, mut known) = (Vec::new(), Vec::new(), Known::new());
        for (labels, own_sets) in points {
            for &seed in &seeds {
                let changes: Vec<String> =
                    [&always, &own_sets].into_iter().flatten().cloned().chain([format!("seed={seed}")]).collect();
                let mut document = document.clone();
                let changed = changes.iter().try_for_each(|set| document.set(set));
                let digest = Input::new(&document, &source.base, &mut known).digest();
                let sets = [self.sets.clone(), changes].concat();
                let cell = Cell { labels: labels.clone(), seed, sets, source: source.clone(), digest };
                match changed {
                    Ok(()) => cells.push(cell),
                    Err(problem) => problems.push(cell.explain(problem)),
                }
            }
        }
        if problems.is_empty() { Ok(cells) } else { Err(distinct(problems)) }
    }
}

impl Grid {
    /// What the runs of its plan came to, by their summaries in the same order.
    pub fn table(&self, plan: &[Cell], summaries: &[Value]) -> Table {
        let scheme = (!self.variants.is_empty()).then(|| SCHEME.to_string());
        let axes = scheme.into_iter().chain(self.axes.iter().map(|axis| axis.key.clone())).collect();
        Table::new(axes, &plan.iter().map(|cell| &cell.labels).collect::<Vec<_>>(), summaries)
    }
}

impl Cell {
    /// The run in a few words.
    pub fn label(&self) -> String {
        let value = |(axis, value): &(String, String)| match axis.as_str() {
            SCHEME => value.clone(),
            _ => format!("{axis}={value}"),
        };
        let words: Vec<String> = self.labels.iter().map(value).chain([format!("seed {}", self.seed)]).collect();
        words.join(", ")
    }

    /// Reads and resolves it.
    pub fn load(&self) -> Result<Resolved, Problem> {
        let source = &self.source;
        let scenario = Scenario::parse(&source.name, &source.text, &source.base, &self.sets);
        scenario.and_then(resolve).map_err(|problem| problem.map(|problem| self.explain(problem)))
    }

    /// Its whole input, read anew.
    pub fn input(&self) -> Result<Input, Problem> {
        let mut document = Document::parse(self.source.name.as_str(), self.source.text.as_str())?;
        set_all(&mut document, &self.sets)?;
        Ok(Input::new(&document, &self.source.base, &mut Known::new()))
    }

    /// A problem that says which run it is about, and which option.
    fn explain(&self, problem: Problem) -> Problem {
        let mut varied = self.labels.iter().map(|(key, value)| format!("{key}={value}"));
        let assignment = problem.given.as_ref().and_then(Given::assignment);
        let Some(varied) = varied.find(|varied| assignment == Some(varied)) else {
            return problem.in_run(self.label());
        };
        let help = problem.help.clone().unwrap_or_else(|| "change the value".into());
        let option = Problem::new(format!("--vary {varied}"), problem.message.as_str()).help(help);
        let option = problem.key.iter().fold(option, Problem::key).cause(problem.cause);
        option.given(Given::Vary(varied)).in_run(self.label())
    }
}

/// Each problem once, whichever runs have it.
fn distinct(problems: Vec<Problem>) -> Vec<Problem> {
    let mut seen = BTreeSet::new();
    let gist = |problem: &Problem| (problem.file.clone(), problem.line, problem.column, problem.message.clone());
    problems.into_iter().flat_map(Problem::split).filter(|problem| seen.insert(gist(problem))).collect()
}

/// How much work a run is, before it is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Data packets to be sent, if nothing is lost.
    pub packets: u64,
    /// When the run is cut off, if it is.
    pub stop: Option<Time>,
}

/// Packet-hops for each data packet, ACKs included, until a finished run shows it: three links there and back.
pub const HOPS: f64 = 6.0;

impl Work {
    /// Of a run that is ready to go.
    pub fn of(resolved: &Resolved) -> Work {
        let setup = &resolved.setup;
        let stop = (setup.stop != Time::MAX).then_some(setup.stop);
        let fastest = setup.top_rate().0 as f64 / 8e12;
        let packets = setup.flows.iter().map(|flow| {
            let room = stop.map_or(u64::MAX, |stop| (stop.saturating_sub(flow.start).0 as f64 * fastest) as u64);
            flow.size.min(room).div_ceil(setup.nic.payload.max(1) as u64)
        });
        Work { packets: packets.sum(), stop }
    }

    /// How much of it is done, where each data packet crosses about so many links.
    pub fn share(&self, now: Time, hops: u64, each: f64) -> f64 {
        let share = match self.stop {
            Some(stop) => now.0 as f64 / stop.0.max(1) as f64,
            None => hops as f64 / (self.packets as f64 * each).max(1.0),
        };
        share.min(0.99)
    }
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Simulated time.
    pub now: Time,
    /// Packet-hops so far.
    pub hops: u64,
    /// Time on the clock since it was started.
    pub elapsed: Duration,
}

/// A run of another process that this one waits for.
#[derive(Clone, Debug, PartialEq)]
pub struct Wait<'a> {
    /// Its place in the plan.
    pub place: usize,
    /// The run.
    pub cell: &'a Cell,
    /// Whose it is, and for how long nothing was heard of it.
    pub held: Held,
    /// For how long it has been waited for.
    pub waited: Duration,
}

/// An observer of a grid's runs. Cells are identified by their place in the plan.
pub trait Observer: Sync {
    /// Something worth knowing, such as a damaged folder that is run again.
    fn note(&self, _note: &str) {}
    /// The runs that are to be done, with their work; called once, before the first.
    fn planned(&self, _runs: &[(usize, Work)]) {}
    /// A run whose results are there already, perhaps written by another process just now.
    fn reused(&self, _place: usize, _cell: &Cell) {}
    /// A run begins.
    fn started(&self, _place: usize, _cell: &Cell) {}
    /// It goes on.
    fn progress(&self, _place: usize, _cell: &Cell, _step: &Step) {}
    /// It is in the store, or has failed.
    fn finished(&self, _place: usize, _cell: &Cell, _cost: Option<&Cost>) {}
    /// Another process works on it.
    fn elsewhere(&self, _place: usize, _cell: &Cell, _owner: &Owner) {}
    /// There is nothing to do but to wait for runs of other processes: all of them. Called after a second, and then ever more rarely.
    fn waiting(&self, _runs: &[Wait<'_>]) {}
    /// So many of the runs that are to be done have been read, of so many.
    fn checked(&self, _runs: usize, _of: usize) {}
    /// Whether to stop: no run is begun, and those under way are dropped. Asked again and again.
    fn stop(&self) -> bool {
        false
    }
}

impl Observer for () {}

/// What became of a grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// By cell, the folder of its results.
    pub folders: Vec<PathBuf>,
    /// Runs that were done now.
    pub ran: usize,
    /// Runs that were there before, or that other processes did meanwhile.
    pub reused: usize,
    /// Runs that other processes still work on; none, where they were waited for.
    pub left: usize,
}

/// Why a grid is not complete. What is finished is in the store all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// What went wrong, in the order of the plan.
    pub problems: Vec<Problem>,
    /// Whether a run broke its promises.
    pub broken: bool,
    /// Runs in the store.
    pub finished: usize,
    /// Runs in all.
    pub runs: usize,
}

impl Failed {
    fn new(mut problems: Vec<(usize, Problem)>, broken: bool, finished: usize, runs: usize) -> Failed {
        problems.sort_by_key(|(place, _)| *place);
        let problems = distinct(problems.into_iter().map(|(_, problem)| problem).collect());
        Failed { problems, broken, finished, runs }
    }
}

/// Why a run gave no results.
enum Fault {
    /// The input, or a broken promise.
    Run(Problem, bool),
    /// The store takes nothing more.
    Store(Problem),
    /// The observer asked to stop.
    Stopped,
}

/// How runs are done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many at a time; where there are fewer runs, each has several.
    pub threads: usize,
    /// A shard's number, counted from 1, and how many there are (N): this shard's runs, every N-th, are done first.
    pub shard: Option<(usize, usize)>,
    /// Go on with the other shards, or do only that one.
    pub help: bool,
    /// Wait for runs that other processes work on, or leave those runs to them.
    pub wait: bool,
    /// Read and resolve all runs before the first begins: what is wrong is known at once, and the longest come first.
    pub check: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { threads: 1, shard: None, help: false, wait: true, check: true }
    }
}

impl Options {
    /// The runs of a plan that are to be seen to, those with the same input once, in order.
    fn places(&self, plan: &[Cell]) -> Vec<usize> {
        let mut seen = BTreeSet::new();
        let places = (0..plan.len()).filter(|&place| seen.insert(plan[place].digest));
        let Some((shard, shards)) = self.shard else { return places.collect() };
        // How many shards after its own.
        let turn = |rank: usize| (rank + shards.saturating_sub(shard - 1)) % shards;
        let mut places: Vec<(usize, usize)> = places.enumerate().map(|(rank, place)| (turn(rank), place)).collect();
        places.retain(|(turn, _)| *turn == 0 || self.help);
        places.sort_unstable();
        places.into_iter().map(|(_, place)| place).collect()
    }
}

/// A plan that was looked at: which of its runs the store lacks, and that they can all be done.
pub struct Ready<'a> {
    plan: &'a [Cell],
    store: &'a Store,
    /// Those that are to be done.
    missing: Vec<(usize, Work)>,
    /// All runs; cells with the same input are one.
    runs: usize,
    /// Whether runs of others are waited for.
    wait: bool,
}

/// Finds out which runs of a plan the store lacks, and reads and resolves these. Nothing is written.
pub fn ready<'a>(
    plan: &'a [Cell],
    store: &'a Store,
    threads: usize,
    observer: &dyn Observer,
) -> Result<Ready<'a>, Failed> {
    prepare(plan, store, &Options { threads, ..Options::default() }, observer)
}

/// The same, as the options say.
pub fn prepare<'a>(
    plan: &'a [Cell],
    store: &'a Store,
    options: &Options,
    observer: &dyn Observer,
) -> Result<Ready<'a>, Failed> {
    let places = options.places(plan);
    let (mut missing, mut damaged) = (Vec::new(), Vec::new());
    for &place in &places {
        let cell = &plan[place];
        match store.lookup(cell.digest).map_err(|p| Failed::new(vec![(place, p)], false, 0, places.len()))? {
            Found::Whole(_) => observer.reused(place, cell),
            Found::Nothing => missing.push(place),
            Found::Damaged(problem) => {
                damaged.push(format!("{problem}; it is run again ({})", cell.label()));
                missing.push(place);
            }
        }
    }
    // Nothing is noted of runs before it is known that all of them can be done.
    let note_damaged = || damaged.iter().for_each(|note| observer.note(note));
    let (runs, wait) = (places.len(), options.wait);
    if !options.check {
        note_damaged();
        let missing = missing.into_iter().map(|place| (place, Work::default())).collect();
        return Ok(Ready { plan, store, missing, runs, wait });
    }
    let (works, problems, notes) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()), Mutex::new(BTreeMap::new()));
    let checked = AtomicUsize::new(0);
    on_threads(options.threads, &missing, |&place| {
        if observer.stop() {
            return;
        }
        let loaded = plan[place].load();
        observer.checked(checked.fetch_add(1, Ordering::Relaxed) + 1, missing.len());
        match loaded {
            Ok(resolved) => {
                locked(&works).push((place, Work::of(&resolved)));
                let mut notes = locked(&notes);
                for note in resolved.notes {
                    let known = notes.entry(note.to_string()).or_insert_with(|| (note.idle, BTreeSet::new()));
                    known.1.insert(place);
                }
            }
            Err(problem) => locked(&problems).push((place, problem)),
        }
    });
    let mut problems = taken(problems);
    if observer.stop() {
        problems = vec![(0, stopped())];
    }
    if !problems.is_empty() {
        return Err(Failed::new(problems, false, runs - missing.len(), runs));
    }
    note_damaged();
    let notes: BTreeMap<String, (Option<String>, BTreeSet<usize>)> = taken(notes);
    for (note, (idle, places)) in &notes {
        // A key that some schemes have no use for is meant for the others, which may have been run before.
        let same = |(other, _): &&(Option<String>, BTreeSet<usize>)| idle.is_some() && other == idle;
        let runs: BTreeSet<usize> = notes.values().filter(same).flat_map(|(_, places)| places).copied().collect();
        if idle.is_some() && (runs.len() < missing.len() || missing.len() < plan.len()) {
            continue;
        }
        let label = places.first().map_or(String::new(), |&place| plan[place].label());
        let others = if places.len() > 1 { format!(" and {} more", places.len() - 1) } else { String::new() };
        observer.note(&format!("{label}{others}: {note}"));
    }
    let mut missing = taken(works);
    let rank: BTreeMap<usize, usize> = places.iter().enumerate().map(|(rank, &place)| (place, rank)).collect();
    // The longest first, so that all threads end at about the same time.
    missing.sort_by_key(|(place, work)| match options.shard {
        Some(_) => (std::cmp::Reverse(0), rank[place]),
        None => (std::cmp::Reverse(work.packets), *place),
    });
    Ok(Ready { plan, store, missing, runs, wait })
}

/// The problem that the observer asked to stop.
fn stopped() -> Problem {
    Problem::new("the runs", "were stopped").help("what is finished stays; the same command goes on from there")
}

/// Runs that are to be done: first those that no other process is known to work on.
struct Queue {
    open: VecDeque<usize>,
    /// Runs that other processes worked on.
    elsewhere: VecDeque<usize>,
}

/// The pause between two looks at runs of others: at first, and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// Between two reports of what is waited for: at first, and at most.
const REPORTS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Runs of others that are waited for, and since when.
struct Waits {
    runs: BTreeMap<usize, (Instant, Held)>,
    /// When they are reported next, and how long after that.
    next: Option<(Instant, Duration)>,
}

impl Waits {
    /// What is to be reported now, if anything is.
    fn due<'a>(&mut self, plan: &'a [Cell]) -> Vec<Wait<'a>> {
        let now = Instant::now();
        let (next, pause) = *self.next.get_or_insert((now + REPORTS.0, REPORTS.0));
        if now < next {
            return Vec::new();
        }
        let pause = (pause * 2).min(REPORTS.1);
        self.next = Some((now + pause, pause));
        let wait = |(&place, (since, held)): (&usize, &(Instant, Held))| Wait {
            place,
            cell: &plan[place],
            held: held.clone(),
            waited: now.duration_since(*since),
        };
        self.runs.iter().map(wait).collect()
    }
}

impl Ready<'_> {
    /// Does the runs, several at a time, and writes each as soon as it is over.
    ///
    /// One that fails does not stop the others, but no more are begun once the store cannot be written. A run that
    /// another process works on is waited for; if that process fails, the run is done here.
    pub fn run(self, threads: usize, observer: &dyn Observer) -> Result<Done, Failed> {
        let Ready { plan, store, missing, runs, wait } = self;
        if !missing.is_empty() {
            let before = runs - missing.len();
            store.prepare().map_err(|problem| Failed::new(vec![(0, problem)], false, before, runs))?;
            observer.planned(&missing);
        }
        files::sweep(store.folder());
        let claims = store.claims();
        let queue = Queue { open: missing.iter().map(|(place, _)| *place).collect(), elsewhere: VecDeque::new() };
        let (queue, faults, over) = (Mutex::new(queue), Mutex::new(Vec::new()), AtomicBool::new(false));
        let (ran, left) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let waits = Mutex::new(Waits { runs: BTreeMap::new(), next: None });
        // Threads that would find no run of their own help with the others.
        let each = (threads / missing.len().max(1)).max(1);
        let fail = |place: usize, fault: Fault| {
            over.fetch_or(matches!(fault, Fault::Store(_) | Fault::Stopped), Ordering::Relaxed);
            locked(&faults).push((place, fault));
        };
        // Says whether the run needs no more attention.
        let see_to = |place: usize, first: bool| -> bool {
            let cell = &plan[place];
            if let Ok(Found::Whole(_)) = store.lookup(cell.digest) {
                locked(&waits).runs.remove(&place);
                observer.reused(place, cell);
                return true;
            }
            let claim = match claims.claim(cell.digest) {
                Ok(Ok(claim)) => claim,
                Ok(Err(held)) => {
                    if first {
                        observer.elsewhere(place, cell, &held.owner);
                    }
                    // A run is left to a process that lives. Whether one does that is elsewhere shows within a lease.
                    let leave = !wait && held.alive;
                    left.fetch_add(usize::from(leave), Ordering::Relaxed);
                    let mut waits = locked(&waits);
                    match leave {
                        true => _ = waits.runs.remove(&place),
                        false => waits.runs.entry(place).or_insert_with(|| (Instant::now(), Held::default())).1 = held,
                    }
                    return leave;
                }
                Err(problem) => {
                    observer.started(place, cell);
                    observer.finished(place, cell, None);
                    fail(place, Fault::Store(full(cell, store, &problem)));
                    return true;
                }
            };
            locked(&waits).runs.remove(&place);
            // The process that had it may have finished just before.
            if let Ok(Found::Whole(_)) = store.lookup(cell.digest) {
                claim.done();
                observer.reused(place, cell);
                return true;
            }
            observer.started(place, cell);
            let result = run_one(place, cell, store, each, observer);
            match &result {
                Ok(_) => claim.done(),
                Err(_) => drop(claim),
            }
            observer.finished(place, cell, result.as_ref().ok());
            match result {
                Ok(_) => _ = ran.fetch_add(1, Ordering::Relaxed),
                Err(fault) => fail(place, fault),
            }
            true
        };
        let work = || {
            let mut pause = PAUSES.0;
            while !over.load(Ordering::Relaxed) {
                let (next, first, waiting) = {
                    let mut queue = locked(&queue);
                    let open = queue.open.pop_front();
                    let waiting = queue.elsewhere.len();
                    (open.or_else(|| queue.elsewhere.pop_front()), open.is_some(), waiting)
                };
                let Some(place) = next else { break };
                if observer.stop() {
                    fail(place, Fault::Stopped);
                } else if see_to(place, first) {
                    pause = PAUSES.0;
                } else {
                    locked(&queue).elsewhere.push_back(place);
                    if !first {
                        let due = locked(&waits).due(plan);
                        if !due.is_empty() {
                            observer.waiting(&due);
                        }
                        // All of them are looked at in that time, however many they are.
                        std::thread::sleep(pause / waiting.max(1) as u32);
                        pause = (pause + pause / (8 * waiting.max(1) as u32)).min(PAUSES.1);
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..threads.clamp(1, missing.len().max(1)) {
                scope.spawn(work);
            }
        });
        let names: BTreeMap<String, Digest> = plan.iter().map(|cell| (cell.digest.to_string(), cell.digest)).collect();
        claims.tidy(|name| names.get(name).is_some_and(|name| matches!(store.lookup(*name), Ok(Found::Whole(_)))));
        let (faults, queue) = (taken(faults), taken(queue));
        if faults.is_empty() {
            let folders = plan.iter().map(|cell| store.path(cell.digest)).collect();
            let (ran, left) = (ran.into_inner(), left.into_inner());
            return Ok(Done { folders, ran, reused: runs - ran - left, left });
        }
        let broken = faults.iter().any(|(_, fault)| matches!(fault, Fault::Run(_, true)));
        let finished = runs - faults.len() - queue.open.len() - queue.elsewhere.len() - left.into_inner();
        let problems = faults.into_iter().map(|(place, fault)| match fault {
            Fault::Run(problem, _) | Fault::Store(problem) => (place, problem),
            Fault::Stopped => (place, stopped()),
        });
        Err(Failed::new(problems.collect(), broken, finished, runs))
    }
}

/// Does all runs of a plan that the store does not have: [`ready`], then [`Ready::run`].
pub fn run(plan: &[Cell], store: &Store, threads: usize, observer: &dyn Observer) -> Result<Done, Failed> {
    ready(plan, store, threads, observer)?.run(threads, observer)
}

fn run_one(place: usize, cell: &Cell, store: &Store, threads: usize, observer: &dyn Observer) -> Result<Cost, Fault> {
    let plain = |problem| Fault::Run(problem, false);
    let mut resolved = cell.load().map_err(plain)?.on_threads(threads);
    if store.is_recorded() {
        run::recording::check(&resolved).map_err(plain)?;
        resolved = run::recording::record(resolved, None);
    }
    let start = Instant::now();
    let mut stop = false;
    let finished = run::run(resolved, &mut |now, hops| {
        observer.progress(place, cell, &Step { now, hops, elapsed: start.elapsed() });
        stop |= observer.stop();
        !stop
    });
    if stop {
        return Err(Fault::Stopped);
    }
    // The files it names were read while it was planned and again now. They must be what its name says.
    let input = cell.input().map_err(plain)?;
    if input.digest() != cell.digest {
        let problem = Problem::new(cell.source.name.as_str(), "names a file that has changed in the meantime");
        return Err(plain(cell.explain(problem.help("run the same command again"))));
    }
    keep(cell, store, &input, &finished)?;
    Ok(finished.summary.cost)
}

/// The problem that a store takes nothing more.
fn full(cell: &Cell, store: &Store, problem: &Problem) -> Problem {
    let place = store.path(cell.digest).display().to_string();
    let remedy = "make room on the disk or choose another store";
    Problem::new(place, problem.message.as_str())
        .help(format!("{remedy}; what is finished stays, and the same command goes on from there"))
}

/// Puts a run's results in the store.
fn keep(cell: &Cell, store: &Store, input: &Input, finished: &Finished) -> Result<(), Fault> {
    let full = |problem: Problem| Fault::Store(full(cell, store, &problem));
    if let [first, ..] = finished.summary.violations.as_slice() {
        let path = store.broken(cell.digest).and_then(|folder| finished.write_into(folder, input.text()));
        let place = path.map_err(full)?.join(SUMMARY).display().to_string();
        let problem = Problem::new(place, format!("broken promise: {first}")).cause(Cause::BrokenPromise);
        let problem = problem.help("this run is not a result; its folder is for inspection");
        return Err(Fault::Run(cell.explain(problem), true));
    }
    store.draft(cell.digest).and_then(|folder| finished.write_into(folder, input.text())).map_err(full)?;
    Ok(())
}

/// Calls `work` with every item, on several threads that take the items in order.
fn on_threads<T: Sync>(threads: usize, items: &[T], work: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    let take = || items.get(next.fetch_add(1, Ordering::Relaxed));
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, items.len().max(1)) {
            scope.spawn(|| std::iter::from_fn(take).for_each(&work));
        }
    });
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn taken<T>(mutex: Mutex<T>) -> T {
    mutex.into_inner().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_broke_a_promise_is_put_aside_and_is_no_result() {
        let text = "topology.kind = \"star\"\nflow = [{ src = \"h1\", dst = \"h0\", size = \"1KB\" }]";
        let source = Source { name: "a.toml".into(), title: "a".into(), text: text.into(), base: PathBuf::new() };
        let grid = Grid { source, sets: vec![], variants: vec![], axes: vec![], seeds: vec![3] };
        let plan = grid.plan().unwrap();
        let cell = &plan[0];
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(dir.path());
        let mut finished = run::run(cell.load().unwrap(), &mut |_, _| true);
        finished.summary.violations.push("two bytes are missing".into());
        let Err(Fault::Run(problem, true)) = keep(cell, &store, &cell.input().unwrap(), &finished) else {
            panic!("it was taken for a result");
        };
        let aside = dir.path().join(format!("broken-{}", cell.digest));
        assert_eq!(problem.file, aside.join(SUMMARY).display().to_string());
        assert_eq!(problem.message, "broken promise: two bytes are missing");
        assert_eq!((problem.run.as_deref(), problem.cause), (Some("seed 3"), Cause::BrokenPromise));
        assert!(aside.join(SUMMARY).is_file());
        assert_eq!(store.lookup(cell.digest), Ok(Found::Nothing));
    }

    #[test]
    fn varied_values_are_split_at_commas_outside_of_brackets_and_quotes() {
        let values = |text: &str| Axis::parse(text).map(|axis| (axis.key, axis.values));
        let expect = |key: &str, values: &[&str]| Ok((key.to_string(), values.iter().map(|v| v.to_string()).collect()));
        assert_eq!(values("switch.buffer = 4MB, 8MB"), expect("switch.buffer", &["4MB", "8MB"]));
        assert_eq!(values("a=[[\"1ms\", 2]],[3,4]"), expect("a", &["[[\"1ms\", 2]]", "[3,4]"]));
        assert_eq!(values("a='x,y',\"[,\",z=1"), expect("a", &["'x,y'", "\"[,\"", "z=1"]));
        assert_eq!(values("a={ b = 1, c = 2 },3"), expect("a", &["{ b = 1, c = 2 }", "3"]));
        for bad in ["a", "a=", "a=1,", "a=,1", "a=1,1", "a=1,0x1", "seed=1,2", "scheme.preset=hpcc,pfc"] {
            let problem = values(bad).unwrap_err();
            assert!(problem.file.starts_with("--vary") && problem.help.is_some(), "{problem}");
        }
    }
}
