//! What exists: schemes, and what the papers claim of them.

use crate::problem::{failed, raised, several};
use crate::single::{Figures, figures};
use crate::watch::{GridWatch, Watch, of_grid, watched};
use crate::{check_threads, threads_or_all};
use engine::Parameters;
use files::problem::Problem;
use ledger::evidence::Evidence;
use ledger::experiment::{Experiment, Scale};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use results::verdict::Judged;
use serde_json::{Value, json};
use std::path::PathBuf;
use store::Store;
use store::grid::Failed;

/// By expectation, what was measured and what was expected, for people.
type Values = Vec<(String, String)>;

fn text(value: &Value) -> String {
    value.to_string()
}

/// Every scheme, preset and topology, with parameters and defaults, in JSON.
#[pyfunction]
pub fn schemes() -> String {
    let entry = |kind: &str, name: &str, about: &str, parameters: &dyn Parameters| {
        let parameter = |p: engine::Parameter| json!({ "name": p.name, "kind": p.kind.to_string(), "default": p.value, "about": p.about });
        let parameters: Vec<Value> = parameters.list().into_iter().map(parameter).collect();
        json!({ "kind": kind, "name": name, "about": about, "parameters": parameters })
    };
    let mut all: Vec<Value> = Vec::new();
    for preset in &fabric::Registry::get().presets {
        let settings: serde_json::Map<_, _> =
            preset.settings.iter().map(|(key, value)| (key.to_string(), json!(value))).collect();
        all.push(json!({ "kind": "preset", "name": preset.name, "about": preset.about, "settings": settings, "parameters": [] }));
    }
    for (axis, variants) in fabric::Registry::get().definitions() {
        all.extend(variants.iter().map(|variant| entry(axis, variant.name(), variant.about(), &**variant)));
    }
    all.extend(fabric::topology::shapes().iter().map(|c| entry("topology", c.name(), c.about(), &**c)));
    text(&Value::Array(all))
}

/// Every experiment of the ledger, in JSON.
#[pyfunction]
pub fn claims(py: Python<'_>) -> PyResult<String> {
    let entry = |e: &Experiment| {
        let document = format!("{}, {}", e.document, e.place);
        json!({ "id": e.id, "title": e.title, "document": document, "says": e.says, "needs": e.needs() })
    };
    let all = ledger::all().map_err(|problem| raised(py, problem))?;
    Ok(text(&Value::Array(all.iter().map(entry).collect())))
}

/// Runs an experiment: its verdict in JSON, the verdict in a line, measured and expected values for people, and its figures. Writes its
/// folder below `out`, if there is one.
#[pyfunction]
#[pyo3(signature = (name, scale, seeds, store, out = None, threads = None, progress = None))]
#[expect(clippy::too_many_arguments, reason = "the Python half gives them names")]
pub fn reproduce(
    py: Python<'_>,
    name: String,
    scale: String,
    seeds: Option<u64>,
    store: PathBuf,
    out: Option<PathBuf>,
    threads: Option<usize>,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<(String, String, Values, Figures)> {
    check_threads(threads)?;
    let find = || -> Result<(Experiment, Scale), Problem> {
        let scales = [Scale::Quick, Scale::Paper];
        let scale = scales.into_iter().find(|known| known.name() == scale);
        let scale = scale.ok_or_else(|| Problem::new("scale", "is not known").help("write quick or paper"))?;
        let mut found = ledger::named(&name)?;
        match (found.pop(), found.is_empty()) {
            (Some(experiment), true) => Ok((experiment, scale)),
            (last, _) => {
                let ids: Vec<&str> = found.iter().chain(&last).map(|e| e.id.as_str()).collect();
                let message = format!("names {} experiments", ids.len());
                Err(Problem::new(name.as_str(), message).help(format!("name one: {}", ids.join(", "))))
            }
        }
    };
    let (experiment, scale) = find().map_err(|problem| raised(py, problem))?;
    let (watch, store) = (Watch::default(), Store::new(store).thorough(true));
    let go = || -> Result<_, Failed> {
        let (observer, threads) = (GridWatch::new(&watch), threads_or_all(threads));
        let own = seeds.unwrap_or(experiment.seeds(scale));
        let evidence = Evidence::gather(&experiment, scale, own, &store, threads, &observer)?;
        let verdict = ledger::judge(&experiment, scale, &evidence);
        let name = experiment.file.as_ref().map_or(experiment.id.clone(), |file| file.display().to_string());
        let seeds = seeds.map_or(String::new(), |seeds| format!(" --seeds {seeds}"));
        let command = format!("tailwater reproduce {name} --scale {}{seeds}", scale.name());
        Ok((report::claims::experiment(&ledger::exhibit(&experiment, &evidence), &verdict, &command), verdict))
    };
    let notify = |state| of_grid(progress.as_ref(), state);
    let (report, verdict) = watched(py, &watch, &notify, go)?.map_err(|f| failed(py, &f))?;
    if let Some(out) = out {
        let folder = out.join(&experiment.id);
        let write = || {
            files::make_folder(&folder)?;
            report::folder::write(&report, &folder)?;
            verdict.write(&folder)
        };
        py.detach(write).map_err(|problem| several(py, &[problem]))?;
    }
    let values = |judged: &Judged| (judged.measured(), judged.expected());
    let json = serde_json::to_string(&verdict).map_err(|e| PyRuntimeError::new_err(e.to_string()))?;
    Ok((json, verdict.line(), verdict.expectations.iter().map(values).collect(), figures(&report)))
}
