//! One run: from a text to results in memory, and from there to a folder.

use crate::controller::Controller;
use crate::problem::{broken, raised, several};
use crate::table::Table;
use crate::watch::{Watch, of_run, watched};
use crate::{check_threads, threads_or_all};
use ::run::Finished;
use engine::{QuantityError, Time};
use fabric::axes::Definition;
use files::problem::{Problem, read_text};
use interop::ns3::{output, translate};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use results::causes::{Causes, DROPS, FILLERS, LOSSES, STOPS, WAITS};
use results::explain::Question;
use results::records::{BUFFERS, COLLECTIVES, FLOWS, JOBS, LINKS, PARTS, PORTS, RATES};
use results::tables;
use scenario::Scenario;
use scenario::resolve::resolve;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use store::grid::{HOPS, Source, Work};

/// A run that has ended, with everything that came out.
#[pyclass(frozen, module = "tailwater")]
pub struct Run {
    finished: Finished,
    scenario: String,
    /// What the user should know.
    #[pyo3(get)]
    notes: Vec<String>,
}

/// Tables by name.
type Tables = BTreeMap<&'static str, Py<Table>>;

/// The stem of a table's file.
fn stem(file: &str) -> &str {
    file.strip_suffix(".parquet").unwrap_or(file)
}

#[pymethods]
impl Run {
    /// `summary.json`.
    #[getter]
    fn summary(&self) -> PyResult<String> {
        self.finished.summary.json().map_err(|e| PyRuntimeError::new_err(e.to_string()))
    }

    /// `scenario.toml`: the text, or with what was changed in it.
    #[getter]
    fn scenario(&self) -> &str {
        &self.scenario
    }

    /// Promises that were broken.
    #[getter]
    fn violations(&self) -> Vec<String> {
        self.finished.summary.violations.clone()
    }

    /// The tables by name, made anew.
    fn tables(&self, py: Python<'_>) -> PyResult<Tables> {
        let mut all = BTreeMap::new();
        for (file, columns) in py.detach(|| self.finished.tables()) {
            all.insert(stem(file), Py::new(py, Table::new(columns)?)?);
        }
        Ok(all)
    }

    /// Writes a folder of results as `tailwater run` does, with its report or without.
    fn write(&self, py: Python<'_>, out: PathBuf, report: bool) -> PyResult<PathBuf> {
        let results = |folder: &Path| self.finished.write(folder, &self.scenario);
        let write = || report::folder::write_whole(&out, report, results);
        match py.detach(write) {
            Ok((path, None)) => Ok(path),
            Ok((_, Some(problem))) | Err(problem) => Err(raised(py, problem)),
        }
    }
}

/// Reads a scenario file: name, title, text, and the folder in which files that it names are looked for.
#[pyfunction]
pub fn read(py: Python<'_>, path: PathBuf) -> PyResult<(String, String, String, PathBuf)> {
    let Source { name, title, text, base } = Source::load(&path).map_err(|problem| raised(py, problem))?;
    Ok((name, title, text, base))
}

/// The length of a recording's frames, where it was given.
fn frames(text: Option<&str>) -> Result<Option<Time>, Problem> {
    let Some(text) = text else { return Ok(None) };
    let remedy = "write a time above zero, such as 1us";
    let every: Time = text.parse().map_err(|e: QuantityError| Problem::new("record", e.to_string()).help(remedy))?;
    if !(Time(1)..=Time::from_ms(1_000)).contains(&every) {
        return Err(Problem::new("record", "is nothing, or more than a second").help(remedy));
    }
    Ok(Some(every))
}

/// Runs a scenario. `progress` is called with simulated seconds, the share that is done, and packet-hops.
#[pyfunction]
#[pyo3(signature = (name, text, base, sets, threads = None, record = false, every = None, controller = None, progress = None))]
#[expect(clippy::too_many_arguments, reason = "the Python half gives them names")]
pub fn run(
    py: Python<'_>,
    name: String,
    text: String,
    base: PathBuf,
    sets: Vec<String>,
    threads: Option<usize>,
    record: bool,
    every: Option<String>,
    controller: Option<Bound<'_, PyAny>>,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Run> {
    check_threads(threads)?;
    let watch = Arc::new(Watch::default());
    let controller = controller.map(|prototype| Controller::new(&prototype, &watch)).transpose()?;
    let remark = controller.as_ref().map(Controller::name);
    let remark = remark.map(|name| format!("\n# Run with a congestion control written in Python: {name}\n"));
    let fault = controller.as_ref().map(Controller::fault);
    // Python runs on one thread at a time.
    let threads = if controller.is_some() { 1 } else { threads_or_all(threads) };
    let load = || -> Result<_, Problem> {
        let every = frames(every.as_deref())?;
        let mut scenario = Scenario::parse(&name, &text, &base, &sets)?;
        if let Some(controller) = controller {
            scenario = scenario.controlled_by(Box::new(controller))?;
        }
        let resolved = resolve(scenario)?.on_threads(threads);
        let as_run = ::run::as_run(&name, &text, &sets, None)? + remark.as_deref().unwrap_or_default();
        if record || every.is_some() {
            ::run::recording::check(&resolved)?;
            return Ok((::run::recording::record(resolved, every), as_run));
        }
        Ok((resolved, as_run))
    };
    let go = || -> Result<_, Problem> {
        let (resolved, as_run) = load()?;
        let notes: Vec<String> = resolved.notes.iter().map(ToString::to_string).collect();
        let work = Work::of(&resolved);
        let finished = ::run::run(resolved, &mut |now, hops| {
            watch.report(now.0, work.share(now, hops, HOPS), hops);
            !watch.stopped()
        });
        if !finished.outcome.interrupted {
            watch.report(finished.summary.end_ps, 1.0, finished.summary.packet_hops);
        }
        Ok((finished, as_run, notes))
    };
    let notify = |state| of_run(progress.as_ref(), state);
    let result = watched(py, &watch, &notify, go);
    if let Some(error) = fault.and_then(|fault| fault.take()) {
        return Err(error);
    }
    let (finished, scenario, notes) = result?.map_err(|problem| raised(py, problem))?;
    Ok(Run { finished, scenario, notes })
}

/// A folder of results: its summary, its scenario, its tables.
#[pyfunction]
pub fn open(py: Python<'_>, folder: PathBuf) -> PyResult<(String, String, Tables)> {
    let load = || -> Result<_, Problem> {
        files::sums::check(&folder, |name| name.ends_with(".parquet") || name == files::SUMMARY)?;
        let why = [PARTS, STOPS, WAITS, LOSSES, DROPS, FILLERS];
        let there = [FLOWS, BUFFERS, LINKS, PORTS, RATES, COLLECTIVES, JOBS].into_iter().chain(why);
        let there = there.filter(|name| [FLOWS, BUFFERS, LINKS].contains(name) || folder.join(name).is_file());
        let tables = there.map(|name| Ok((stem(name), tables::read(&folder.join(name))?)));
        let tables = tables.collect::<Result<Vec<_>, Problem>>()?;
        Ok((read_text(&folder.join(files::SUMMARY))?, report::folder::scenario(&folder)?, tables))
    };
    let (summary, scenario, tables) = py.detach(load).map_err(|problem| raised(py, problem))?;
    let mut all = BTreeMap::new();
    for (name, table) in tables {
        all.insert(name, Py::new(py, Table::new(table.into_columns())?)?);
    }
    Ok((summary, scenario, all))
}

/// Figures by their ids, as SVG.
pub type Figures = Vec<(String, String)>;

/// The figures of a report.
pub fn figures(report: &report::pages::Report) -> Figures {
    report.drawings().map(|(id, drawing)| (id.to_string(), drawing.svg())).collect()
}

/// Draws a folder of results.
#[pyfunction]
pub fn draw(py: Python<'_>, folder: PathBuf) -> PyResult<Figures> {
    let draw = || Ok(figures(&report::folder::of_run(&folder, &store::open(&folder)?)?));
    py.detach(draw).map_err(|problem| raised(py, problem))
}

/// What `tailwater explain --json` says of a folder of results; nothing of a run that was not asked why.
#[pyfunction]
#[pyo3(signature = (folder, flow = None, link = None, at = None))]
pub fn explain(
    py: Python<'_>,
    folder: PathBuf,
    flow: Option<u64>,
    link: Option<String>,
    at: Option<String>,
) -> PyResult<Option<String>> {
    let answer = || -> Result<_, Problem> {
        let question = match (flow, link, at) {
            (Some(flow), ..) => Question::Flow(flow),
            (_, Some(link), _) => Question::Link(link),
            (.., Some(at)) => {
                let wrong = |e: QuantityError| Problem::new("at", e.to_string()).help("write a time, such as 300us");
                Question::At(at.parse::<Time>().map_err(wrong)?.0)
            }
            _ => Question::Run,
        };
        let records = store::open(&folder)?;
        let Some(causes) = Causes::open(&records)? else { return Ok(None) };
        let table = results::parts::open(&folder)?;
        let parts = table.as_ref().map(results::parts::rows).transpose()?.unwrap_or_default();
        Ok(Some(results::explain::explain(&records, &causes, &parts, &question)?.json.to_string()))
    };
    py.detach(answer).map_err(|problem| raised(py, problem))
}

/// Runs the ns-3 simulator's files and writes its files: what it says, its notes, and the files.
#[pyfunction]
#[pyo3(signature = (config, progress = None))]
pub fn ns3(
    py: Python<'_>,
    config: PathBuf,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<(String, Vec<String>, Vec<PathBuf>)> {
    let watch = Watch::default();
    let go = || -> Result<_, Problem> {
        let inputs = interop::ns3::read(&config)?;
        inputs.check_outputs()?;
        let translated = translate::translate(&inputs)?;
        let graph = translated.setup.graph.clone();
        let until = translated.setup.flows.last().map_or(0, |flow| flow.start.0);
        let start = Instant::now();
        let outcome = translated.run(&mut |now, hops| {
            watch.report(now.0, (now.0 as f64 / until.max(1) as f64).min(0.99), hops);
            !watch.stopped()
        });
        let wall = start.elapsed();
        let written = if outcome.interrupted || !outcome.violations.is_empty() {
            Vec::new()
        } else {
            watch.report(outcome.end.0, 1.0, outcome.counts.hops);
            inputs.write(&graph, &outcome)?;
            inputs.outputs().into_iter().map(Path::to_owned).collect()
        };
        let notes: Vec<String> = inputs.notes.iter().map(Problem::to_string).collect();
        Ok((output::summary(&outcome, wall), notes, written, outcome.violations))
    };
    let notify = |state| of_run(progress.as_ref(), state);
    let (summary, notes, written, violations) =
        watched(py, &watch, &notify, go)?.map_err(|problem| several(py, &[problem]))?;
    match violations.is_empty() {
        true => Ok((summary, notes, written)),
        false => Err(broken(py, &violations, None)),
    }
}
