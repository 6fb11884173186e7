//! Many runs: planned here, done here or by a worker that has a run's text and expected name.

use crate::problem::{failed, raised, several};
use crate::single::{Figures, figures};
use crate::table::Table;
use crate::watch::{GridWatch, Watch, of_grid, watched};
use crate::{check_threads, threads_or_all};
use files::problem::{Problem, read_text};
use files::sums::SUMS;
use files::{FILES, SUMMARY};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use results::comparison;
use results::tables::Column;
use scenario::document::Document;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use store::grid::{self, Axis, Cell, Done, Failed, Grid, Source, Variant};
use store::sweep::Sweep;
use store::{Digest, Found, Input, Known, Store};

/// A source as Python hands it over: name, title, text, and the folder of its files.
type Text = (String, String, String, PathBuf);

fn source((name, title, text, base): Text) -> Source {
    Source { name, title, text, base }
}

/// What is to be run.
#[pyclass(frozen, module = "tailwater")]
pub struct Plan {
    grid: Grid,
    cells: Vec<Cell>,
    /// The sweep it is of, if it is of one: it knows the places of problems.
    sweep: Option<Sweep>,
}

/// A run of a plan: labels, seed, changes, and its name in a store.
type Planned = (Vec<(String, String)>, u64, Vec<String>, String);

#[pymethods]
impl Plan {
    /// Of a scenario with every scheme, every combination of varied values and every seed, each as the command line has it.
    #[new]
    fn new(
        py: Python<'_>,
        text: Text,
        sets: Vec<String>,
        schemes: Vec<String>,
        vary: Vec<String>,
        seeds: Option<String>,
    ) -> PyResult<Plan> {
        let plan = || -> Result<Plan, Vec<Problem>> {
            let stop = |problem| vec![problem];
            let source = source(text);
            let seeds = grid::seeds(seeds.as_deref(), &sets).map_err(stop)?;
            let axes = vary.iter().map(|text| Axis::parse(text)).collect::<Result<Vec<_>, _>>().map_err(stop)?;
            let variants = Variant::schemes(&source, &sets, &schemes).map_err(stop)?;
            let grid = Grid { source, sets, variants, axes, seeds };
            let cells = grid.plan()?;
            Ok(Plan { grid, cells, sweep: None })
        };
        py.detach(plan).map_err(|problems| several(py, &problems))
    }

    /// Of a sweep's text, which problems call `name`; files that it names are looked for in `base`.
    #[staticmethod]
    fn sweep(py: Python<'_>, name: String, text: String, base: PathBuf) -> PyResult<Plan> {
        let plan = || -> Result<Plan, Vec<Problem>> {
            let sweep = Sweep::parse(&name, &text, &base).map_err(|problem| vec![problem])?;
            let cells = sweep.plan()?;
            Ok(Plan { grid: sweep.grid.clone(), cells, sweep: Some(sweep) })
        };
        py.detach(plan).map_err(|problems| several(py, &problems))
    }

    /// The runs.
    #[getter]
    fn cells(&self) -> Vec<Planned> {
        let cell = |c: &Cell| (c.labels.clone(), c.seed, c.sets.clone(), c.digest.to_string());
        self.cells.iter().map(cell).collect()
    }

    /// The scenario.
    #[getter]
    fn source(&self) -> Text {
        let Source { name, title, text, base } = self.grid.source.clone();
        (name, title, text, base)
    }

    /// By run, whether a store has it.
    fn found(&self, py: Python<'_>, store: PathBuf, record: bool) -> PyResult<Vec<bool>> {
        let store = Store::new(store).recorded(record);
        let there = |cell: &Cell| Ok(matches!(store.lookup(cell.digest)?, Found::Whole(_)));
        let all = py.detach(|| self.cells.iter().map(there).collect::<Result<Vec<_>, Problem>>());
        all.map_err(|problem| raised(py, problem))
    }

    /// Sees to it that a store has all runs: their folders, how many were done now, and notes.
    #[pyo3(signature = (store, record = false, threads = None, progress = None))]
    fn run(
        &self,
        py: Python<'_>,
        store: PathBuf,
        record: bool,
        threads: Option<usize>,
        progress: Option<Bound<'_, PyAny>>,
    ) -> PyResult<(Vec<PathBuf>, usize, Vec<String>)> {
        check_threads(threads)?;
        let store = Store::new(store).recorded(record).thorough(true);
        let explain = |problem: Problem| match &self.sweep {
            Some(sweep) => sweep.explain(problem),
            None => problem,
        };
        let (done, notes) = run_all(py, &self.cells, &store, threads, progress, &explain)?;
        Ok((done.folders, done.ran, notes))
    }

    /// What the runs in these folders came to: a line for each point of the grid.
    fn table(&self, py: Python<'_>, folders: Vec<PathBuf>) -> PyResult<(Table, String)> {
        let load = || {
            let summary = |folder: &PathBuf| {
                let path = folder.join(SUMMARY);
                serde_json::from_str(&read_text(&path)?)
                    .map_err(|e| Problem::new(path.display().to_string(), format!("is damaged: {e}")))
            };
            folders.iter().map(summary).collect::<Result<Vec<_>, Problem>>()
        };
        let summaries = py.detach(load).map_err(|problem| raised(py, problem))?;
        let table = self.grid.table(&self.cells, &summaries);
        Ok((Table::new(columns(&table))?, table.text()))
    }

    /// Figures of the runs in these folders.
    fn draw(&self, py: Python<'_>, folders: Vec<PathBuf>) -> PyResult<Figures> {
        let draw = || -> Result<Figures, Problem> {
            let records = folders.iter().map(|folder| store::open(folder)).collect::<Result<Vec<_>, _>>()?;
            let title = self.grid.source.title.as_str();
            let curves = report::curves::of_grid(
                title,
                &self.cells.iter().map(|cell| &cell.labels).collect::<Vec<_>>(),
                &records,
            );
            Ok(figures(&report::pages::comparison(title, &curves, None, &self.grid.source.text, "")))
        };
        py.detach(draw).map_err(|problem| raised(py, problem))
    }
}

/// A comparison's table in columns: the axes, how many runs, means and halves of their 95 % intervals, endings.
fn columns(table: &comparison::Table) -> Vec<(String, Column)> {
    let rows = &table.rows;
    let mut all: Vec<(String, Column)> = Vec::new();
    for axis in &table.axes {
        let labels = rows.iter().map(|row| row.labels.iter().find(|(name, _)| name == axis).map(|(_, v)| v.as_str()));
        all.push((axis.clone(), Column::maybe_texts(labels)));
    }
    let runs = rows.iter().map(|row| row.endings.values().sum::<usize>() as u64);
    all.push(("runs".into(), Column::counts(runs)));
    for (place, measure) in table.measures.iter().enumerate() {
        let mean = rows.iter().map(|row| row.values.get(place).and_then(|value| value.mean));
        let half = rows.iter().map(|row| row.values.get(place).and_then(|value| value.half));
        all.push((measure.key.clone(), Column::numbers(mean)));
        all.push((format!("{}_ci95", measure.key), Column::numbers(half)));
    }
    let ending = |row: &comparison::Row| {
        let each: Vec<String> = row.endings.iter().map(|(ending, count)| format!("{ending}:{count}")).collect();
        each.join(" ")
    };
    let endings: Vec<String> = rows.iter().map(ending).collect();
    all.push(("endings".into(), Column::texts(endings.iter().map(String::as_str))));
    all
}

fn run_all(
    py: Python<'_>,
    cells: &[Cell],
    store: &Store,
    threads: Option<usize>,
    progress: Option<Bound<'_, PyAny>>,
    explain: &dyn Fn(Problem) -> Problem,
) -> PyResult<(Done, Vec<String>)> {
    let watch = Watch::default();
    let go = || -> Result<_, Failed> {
        let observer = GridWatch::new(&watch);
        let done = grid::run(cells, store, threads_or_all(threads), &observer)?;
        Ok((done, observer.notes()))
    };
    let notify = |state| of_grid(progress.as_ref(), state);
    watched(py, &watch, &notify, go)?.map_err(|mut f| {
        f.problems = f.problems.into_iter().map(explain).collect();
        failed(py, &f)
    })
}

/// Does one run into a store, unless it is there; the scenario's text and the changes must come to what `name` says.
#[pyfunction]
#[pyo3(signature = (text, labels, seed, sets, name, store, record = false, threads = None))]
#[expect(clippy::too_many_arguments, reason = "the Python half gives them names")]
pub fn work(
    py: Python<'_>,
    text: Text,
    labels: Vec<(String, String)>,
    seed: u64,
    sets: Vec<String>,
    name: String,
    store: PathBuf,
    record: bool,
    threads: Option<usize>,
) -> PyResult<(PathBuf, bool)> {
    check_threads(threads)?;
    let cell = || -> Result<Cell, Problem> {
        let source = source(text);
        let mut document = Document::parse(source.name.as_str(), source.text.as_str())?;
        sets.iter().try_for_each(|set| document.set(set))?;
        let digest = Input::new(&document, &source.base, &mut Known::new()).digest();
        if digest.to_string() != name {
            let message = format!("is {digest} here, and {name} where it was planned");
            let help = "have the same version of tailwater everywhere, and the files that the scenario names";
            return Err(Problem::new(source.name.as_str(), message).help(help));
        }
        Ok(Cell { labels, seed, sets, source: Arc::new(source), digest })
    };
    let cell = cell().map_err(|problem| raised(py, problem))?;
    let store = Store::new(store).recorded(record);
    let (done, _) = run_all(py, &[cell], &store, threads, None, &|problem| problem)?;
    let folder = done.folders.into_iter().next().ok_or_else(|| PyRuntimeError::new_err("a run without a folder"))?;
    Ok((folder, done.ran == 1))
}

/// Puts a run that was done elsewhere into a store: its files, by name.
#[pyfunction]
#[pyo3(signature = (contents, name, store, record = false))]
pub fn keep(
    py: Python<'_>,
    contents: BTreeMap<String, Bound<'_, PyBytes>>,
    name: String,
    store: PathBuf,
    record: bool,
) -> PyResult<PathBuf> {
    let store = Store::new(store).recorded(record);
    let keep = || -> Result<PathBuf, Problem> {
        let scenario = contents.get("scenario.toml").map_or(&[][..], |bytes| bytes.as_bytes());
        let digest = Digest::of(&String::from_utf8_lossy(scenario));
        if digest.to_string() != name {
            return Err(Problem::new(name, "is not the run that was sent back").help("run the same call again"));
        }
        store.prepare()?;
        files::sweep(store.folder());
        let folder = store.draft(digest)?;
        // The lists of files and of their digests are made anew.
        for (file, bytes) in contents.iter().filter(|(file, _)| ![FILES, SUMS].contains(&file.as_str())) {
            if file.contains(['/', '\\']) {
                return Err(Problem::new(file.as_str(), "is not the name of a file of results"));
            }
            folder.write(file, bytes.as_bytes())?;
        }
        folder.publish()
    };
    keep().map_err(|problem| raised(py, problem))
}
