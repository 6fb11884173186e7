//! What came out of a job.

use crate::job::{Job, LIVE, OUT, Request, SCENARIO, State, Stored};
use crate::limits;
use crate::why::{Words, check, number};
use crate::workspace::{Workspace, file_below, list};
use files::COMPARISON;
use files::SUMMARY;
use files::problem::{Problem, read_text};
use results::causes::STOPS;
use results::comparison::{Labels, SCHEME};
use results::recording::RECORDING;
use results::records::FlowRow;
use serde_json::{Value, json};
use std::cmp::Ordering;
use std::path::{Path, PathBuf};

/// One run of a job.
struct Run {
    stored: Stored,
    folder: PathBuf,
}

fn read_json(folder: &Path, name: &str) -> Option<Value> {
    serde_json::from_str(&read_text(&file_below(folder, name)?).ok()?).ok()
}

/// The runs of a job that are there, in order. Those of a comparison are in the store, and are found there one by one while it goes on.
fn runs(workspace: &Workspace, job: &Job) -> Vec<Run> {
    let out = workspace.job(job.id).join(OUT);
    if let Request::Run { .. } = job.request {
        let (label, key) = (job.request.name().to_string(), String::new());
        let stored = Stored { run: 0, label, labels: Labels::new(), scheme: None, seed: None, key };
        return file_below(&out, SUMMARY).map(|_| Run { stored, folder: out }).into_iter().collect();
    }
    let comparison = read_json(&out, COMPARISON).filter(|_| job.state == State::Done).unwrap_or_default();
    let cells = comparison["cells"].as_array().into_iter().flatten();
    let mut stored: Vec<Stored> = (0..).zip(cells).filter_map(|(run, cell)| of_cell(run, cell)).collect();
    if stored.is_empty() {
        stored = job.stored.clone();
        stored.sort_by_key(|stored| stored.run);
    }
    // A digest and nothing else: whatever a file says, only the store is looked into.
    stored.retain(|stored| !stored.key.is_empty() && stored.key.bytes().all(|byte| byte.is_ascii_hexdigit()));
    stored.into_iter().map(|stored| Run { folder: workspace.run(&stored.key), stored }).collect()
}

/// A cell of a comparison.
fn of_cell(run: u64, cell: &Value) -> Option<Stored> {
    let labels = cell["labels"].as_object().into_iter().flatten();
    let labels: Labels =
        labels.map(|(axis, value)| (axis.clone(), value.as_str().unwrap_or_default().into())).collect();
    let words = labels.iter().map(|(axis, value)| match axis.as_str() {
        SCHEME => value.clone(),
        _ => format!("{axis}={value}"),
    });
    let seed = cell["seed"].as_u64();
    let words: Vec<String> = words.chain(seed.map(|seed| format!("seed {seed}"))).collect();
    let scheme = cell["labels"][SCHEME].as_str().map(String::from);
    Some(Stored { run, label: words.join(", "), labels, scheme, seed, key: cell["digest"].as_str()?.into() })
}

/// The folder of a run of a job. While the only one goes on, what is recorded of it so far is there.
pub fn run_folder(workspace: &Workspace, job: &Job, run: u64) -> Option<PathBuf> {
    let found = runs(workspace, job).into_iter().find(|known| known.stored.run == run).map(|run| run.folder);
    found.or_else(|| live(workspace, job).filter(|_| run == 0))
}

/// Where what is recorded so far is of a run that goes on.
fn live(workspace: &Workspace, job: &Job) -> Option<PathBuf> {
    let folder = workspace.job(job.id).join(LIVE);
    (job.state == State::Running && file_below(&folder, RECORDING).is_some()).then_some(folder)
}

/// A file of a job's results: of its own folder, or `runs/N/…` of one of its runs in the store.
pub fn file(workspace: &Workspace, job: &Job, path: &str) -> Option<PathBuf> {
    if let Some((run, rest)) = path.strip_prefix("runs/").and_then(|rest| rest.split_once('/'))
        && matches!(job.request, Request::Compare { .. })
    {
        return file_below(&run_folder(workspace, job, run.parse().ok()?)?, rest);
    }
    let folder = match &job.request {
        Request::Reproduce { id, .. } => workspace.ledger().join(id),
        _ => workspace.job(job.id).join(OUT),
    };
    // Before there are results, the scenario is that of the job.
    let asked = || file_below(&workspace.job(job.id), path).filter(|_| path == SCENARIO);
    file_below(&folder, path).or_else(asked)
}

/// A job, whole.
pub fn whole(workspace: &Workspace, job: &Job) -> Value {
    let folder = workspace.job(job.id);
    let out = folder.join(OUT);
    let mut json = job.json();
    let runs = runs(workspace, job);
    let mut files = Vec::new();
    match &job.request {
        Request::Reproduce { id, .. } => list(&workspace.ledger().join(id), "", &mut files),
        _ => list(&out, "", &mut files),
    }
    let compared = matches!(job.request, Request::Compare { .. });
    for run in runs.iter().filter(|_| compared) {
        list(&run.folder, &format!("runs/{}/", run.stored.run), &mut files);
    }
    // Experiments of many runs are looked at as a whole.
    let short = runs.len() <= limits::RUNS;
    let shown = runs.iter().map(|run| {
        let summary = read_json(&run.folder, SUMMARY).filter(|_| short).unwrap_or_default();
        let stored = &run.stored;
        json!({
            "run": stored.run,
            "label": stored.label,
            "labels": stored.labels,
            "scheme": stored.scheme.clone().or_else(|| scheme(&summary)),
            "seed": stored.seed.or(summary["seed"].as_u64()),
            "folder": stored.key,
            "recording": file_below(&run.folder, RECORDING).is_some(),
            "why": file_below(&run.folder, STOPS).is_some(),
            "summary": summary,
        })
    });
    let verdict = match &job.request {
        Request::Reproduce { id, .. } => read_json(&workspace.ledger().join(id), "verdict.json"),
        _ => None,
    };
    json["results"] = json!({
        "runs": shown.collect::<Vec<_>>(),
        "comparison": read_json(&out, COMPARISON),
        "verdict": verdict,
        "files": files.iter().map(|(path, bytes)| json!({ "path": path, "bytes": bytes })).collect::<Vec<_>>(),
        "complete": job.state == State::Done,
        "live": live(workspace, job).is_some(),
    });
    json["request"] = json!(job.request);
    json["text"] = json!(file_below(&folder, SCENARIO).and_then(|path| read_text(&path).ok()));
    json["notes"] = json!(job.notes);
    json
}

/// The mechanisms of a run in a few words.
fn scheme(summary: &Value) -> Option<String> {
    let (fc, cc) = (summary["flow_control"].as_str()?, summary["congestion_control"].as_str()?);
    Some(if cc == "none" { fc.to_string() } else { format!("{fc} with {cc}") })
}

/// The columns of flows, each with its value of a row.
type Column = (&'static str, fn(usize, &FlowRow) -> Value);
const COLUMNS: &[Column] = &[
    ("flow", |row, _| json!(row)),
    ("group", |_, flow| json!(flow.group)),
    ("src", |_, flow| json!(flow.src)),
    ("dst", |_, flow| json!(flow.dst)),
    ("size", |_, flow| json!(flow.size)),
    ("start_ps", |_, flow| json!(flow.start_ps)),
    ("injected_ps", |_, flow| json!(flow.injected_ps)),
    ("received_ps", |_, flow| json!(flow.received_ps)),
    ("acknowledged_ps", |_, flow| json!(flow.acknowledged_ps)),
    ("held_ps", |_, flow| json!(flow.held_ps)),
    ("paused_ps", |_, flow| json!(flow.paused_ps)),
    ("ideal_ps", |_, flow| json!(flow.ideal_ps)),
    ("slowdown", |_, flow| json!(flow.slowdown)),
    ("slowdown_acknowledged", |_, flow| json!(flow.slowdown_acknowledged)),
];

/// Orders values; what is not there comes last, whatever the order.
fn order(a: &Value, b: &Value, descending: bool) -> Ordering {
    let by = match (a, b) {
        (Value::Null, Value::Null) => return Ordering::Equal,
        (Value::Null, _) => return Ordering::Greater,
        (_, Value::Null) => return Ordering::Less,
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (a, b) => a.as_f64().unwrap_or(0.0).total_cmp(&b.as_f64().unwrap_or(0.0)),
    };
    if descending { by.reverse() } else { by }
}

/// Some of the flows of a folder of results, as the words of a query say.
pub fn flows(folder: &Path, query: &Words) -> Result<Value, Problem> {
    check(query, &["sort", "desc", "offset", "limit", "group", "slower"])?;
    let number = |key: &str, default: u64| Ok(number(query, key)?.unwrap_or(default) as usize);
    let (offset, limit) = (number("offset", 0)?, number("limit", 200)?.min(limits::ROWS));
    let sort = query.get("sort").map_or("flow", String::as_str);
    let Some((_, key)) = COLUMNS.iter().find(|(name, _)| *name == sort) else {
        let names: Vec<&str> = COLUMNS.iter().map(|(name, _)| *name).collect();
        return Err(Problem::new("sort", "is not a column").help(format!("write one of {}", names.join(", "))));
    };
    let descending = match query.get("desc").map(String::as_str) {
        None | Some("" | "0" | "false") => false,
        Some("1" | "true") => true,
        Some(_) => return Err(Problem::new("desc", "is neither true nor false").help("write 1 or 0, or leave it out")),
    };
    let flows = store::open_flows(folder)?;
    let mut groups: Vec<&str> = flows.iter().map(|flow| flow.group.as_str()).collect();
    groups.sort_unstable();
    groups.dedup();
    let slower: f64 = match query.get("slower").filter(|text| !text.is_empty()) {
        None => 0.0,
        Some(text) => {
            text.parse().map_err(|_| Problem::new("slower", "is not a number").help("write a slowdown, such as 20"))?
        }
    };
    // A flow that never ended is slower than any.
    let slow = |flow: &FlowRow| slower <= 0.0 || flow.slowdown.is_none_or(|slowdown| slowdown > slower);
    let in_group = |flow: &FlowRow| query.get("group").is_none_or(|group| group.is_empty() || *group == flow.group);
    let wanted = |flow: &FlowRow| in_group(flow) && slow(flow);
    let mut rows: Vec<(Value, usize)> =
        flows.iter().enumerate().filter(|(_, flow)| wanted(flow)).map(|(row, flow)| (key(row, flow), row)).collect();
    rows.sort_by(|a, b| order(&a.0, &b.0, descending).then(a.1.cmp(&b.1)));
    let shown = rows.iter().skip(offset).take(limit);
    let shown = shown.map(|(_, row)| COLUMNS.iter().map(|(_, value)| value(*row, &flows[*row])).collect::<Vec<_>>());
    Ok(json!({
        "total": rows.len(),
        "offset": offset,
        "columns": COLUMNS.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
        "rows": shown.collect::<Vec<_>>(),
        "groups": groups,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_has_its_labels_one_by_one_beside_its_name() {
        let labels = json!({ "scheme": "pfc", "switch.buffer": "2MB" });
        let run = of_cell(3, &json!({ "labels": labels, "seed": 2, "digest": "5eed" })).unwrap();
        assert!(run.label.contains("pfc") && run.label.ends_with(", seed 2"), "{}", run.label);
        let pair = |axis: &str, value: &str| (axis.to_string(), value.to_string());
        assert_eq!(run.labels, [pair("scheme", "pfc"), pair("switch.buffer", "2MB")]);
        assert_eq!((run.scheme.as_deref(), run.seed), (Some("pfc"), Some(2)));
        assert_eq!(of_cell(3, &json!({ "labels": labels })), None);
    }
}
