//! A job: what was asked for, and what became of it.

use crate::limits;
use crate::workspace::{Workspace, file_below, is_below};
use files::problem::Problem;
use results::comparison::Labels;
use results::recording::RECORDING;
use scenario::document::Document;
use scenario::presets;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use store::INPUT_FILES;
use store::grid::{Axis, check_changes};

/// The scenario of a job, as its process reads it.
pub const SCENARIO: &str = "scenario.toml";
/// What is known of a job.
pub const JOB: &str = "job.json";
/// What its process said.
pub const LOG: &str = "log.jsonl";
/// Where its results go.
pub const OUT: &str = "out";
/// Where what is recorded so far is while it runs.
pub const LIVE: &str = "live";

/// What is asked for.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Request {
    /// One run of a scenario.
    Run {
        /// For people.
        #[serde(default)]
        name: String,
        /// The scenario. It is kept in a file of its own.
        #[serde(default, skip_serializing)]
        text: String,
        /// Changes to it.
        #[serde(default)]
        sets: Vec<String>,
        /// Whether a recording is kept.
        #[serde(default)]
        record: bool,
        /// A closer look: only what is after an instant is recorded.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        closer: Option<Closer>,
    },
    /// A scenario with several schemes, values and seeds.
    Compare {
        /// For people.
        #[serde(default)]
        name: String,
        /// The scenario. It is kept in a file of its own.
        #[serde(default, skip_serializing)]
        text: String,
        /// Presets.
        #[serde(default)]
        schemes: Vec<String>,
        /// How many seeds; none for the scenario's own.
        #[serde(default)]
        seeds: Option<u64>,
        /// Keys with several values, as after `--vary`.
        #[serde(default)]
        vary: Vec<String>,
        /// Changes to all runs.
        #[serde(default)]
        sets: Vec<String>,
        /// Whether recordings are kept.
        #[serde(default)]
        record: bool,
    },
    /// An experiment of the ledger.
    Reproduce {
        /// Its id.
        id: String,
        /// How large.
        #[serde(default = "quick")]
        scale: String,
    },
}

/// A closer look at what is after an instant.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Closer {
    /// The instant, such as `300us`.
    pub from: String,
    /// How long a frame is.
    #[serde(default = "closely")]
    pub every: String,
}

fn closely() -> String {
    "100ns".into()
}

fn quick() -> String {
    "quick".into()
}

/// Where a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Waits for its turn.
    Queued,
    /// Has a process.
    Running,
    /// Is over, and there are results.
    Done,
    /// Is over without; the problem says why.
    Failed,
    /// The user cancelled it.
    Cancelled,
    /// Broke a promise, or its process died.
    Broken,
}

/// How far a job is.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Progress {
    /// Runs in all, as far as known.
    pub runs: usize,
    /// Those that are over.
    pub done: usize,
    /// Of all the work, 0 to 1.
    pub share: f64,
    /// The run that was last heard of.
    pub label: String,
    /// Those under way, and how much of each is done.
    #[serde(skip)]
    pub running: BTreeMap<u64, f64>,
}

/// A run that is in the store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stored {
    /// Its place among the runs of its job.
    pub run: u64,
    /// For people.
    pub label: String,
    /// What is varied, and its values of this run. Jobs of earlier versions do not have them.
    #[serde(default)]
    pub labels: Labels,
    /// The scheme, by the name that was asked for.
    pub scheme: Option<String>,
    /// Its seed.
    pub seed: Option<u64>,
    /// Its name in the store.
    pub key: String,
}

/// One job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// Its number.
    pub id: u64,
    /// What was asked for.
    pub request: Request,
    /// Where it is.
    pub state: State,
    /// When it was asked for, in milliseconds since 1970.
    pub created: u64,
    /// When it was last started.
    pub started: Option<u64>,
    /// When it was over.
    pub ended: Option<u64>,
    /// How far it is.
    pub progress: Progress,
    /// What went wrong.
    pub problem: Option<Value>,
    /// What its user should know.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Its runs in the store, as they are heard of.
    #[serde(default)]
    pub stored: Vec<Stored>,
}

/// Now, in milliseconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

fn refuse(what: &str, message: impl Into<String>, help: impl Into<String>) -> Problem {
    Problem::new(what, message).help(help)
}

/// The names of files that a scenario has after all these changes; each may be an array of alternatives.
///
/// A name that leads out of the workspace is refused.
pub fn inputs(text: &str, sets: &[String], vary: &[String]) -> Result<BTreeSet<String>, Problem> {
    if text.len() > limits::SCENARIO {
        let message = format!("has {} bytes; {} is the most", text.len(), limits::SCENARIO);
        return Err(refuse("scenario", message, "leave something out, or put the flows into a file"));
    }
    if sets.len() > limits::SETS || vary.len() > limits::SETS {
        return Err(refuse("scenario", "has too many changes", format!("{} is the most", limits::SETS)));
    }
    let mut document = Document::parse("scenario", text)?;
    sets.iter().try_for_each(|set| document.set(set))?;
    let mut names = BTreeSet::new();
    look(&document, &mut names)?;
    for axis in vary {
        let axis = Axis::parse(axis)?;
        for value in &axis.values {
            let mut varied = document.clone();
            varied.set(&format!("{}={value}", axis.key))?;
            look(&varied, &mut names)?;
        }
    }
    Ok(names)
}

fn look(document: &Document, names: &mut BTreeSet<String>) -> Result<(), Problem> {
    for (key, name) in INPUT_FILES.iter().flat_map(|pattern| document.texts(pattern)) {
        if !is_below(name) {
            let help = "put the file into the workspace's folder files and write its name, such as \"graph.toml\"";
            return Err(document.problem(&key, format!("{key} names a file outside of the workspace")).help(help));
        }
        names.insert(name.to_string());
    }
    Ok(())
}

impl Request {
    /// Looks whether it can be done, as far as that is seen without reading the scenario.
    pub fn check(&self) -> Result<(), Problem> {
        let count = |runs: usize| match runs {
            ..=limits::RUNS => Ok(()),
            _ => {
                let help = "leave out schemes, seeds or values; the command line has no such limit";
                Err(refuse("the comparison", format!("has {runs} runs; {} is the most", limits::RUNS), help))
            }
        };
        if self.name().chars().count() > limits::NAME {
            return Err(refuse("name", "is too long", format!("write {} characters at most", limits::NAME)));
        }
        match self {
            Request::Run { .. } => Ok(()),
            Request::Compare { schemes, seeds, vary, sets, .. } => {
                let twice = schemes.iter().enumerate().find(|(place, name)| schemes[..*place].contains(name));
                if let Some((_, name)) = twice {
                    return Err(refuse("schemes", format!("{name:?} is there twice"), "name each scheme once"));
                }
                if let Some(name) = schemes.iter().find(|name| presets::named(name).is_none()) {
                    let help = "choose among those of /api/presets";
                    return Err(refuse("schemes", format!("there is no preset {name:?}"), help));
                }
                if *seeds == Some(0) {
                    return Err(refuse("seeds", "is 0", "write 1 or more"));
                }
                let axes = vary.iter().map(|axis| Axis::parse(axis)).collect::<Result<Vec<_>, _>>()?;
                check_changes(&axes, sets, !schemes.is_empty())?;
                let sizes = axes.iter().map(|axis| axis.values.len()).chain([schemes.len()]);
                let points = sizes.fold(1_usize, |all, size| all.saturating_mul(size.max(1)));
                count(points.saturating_mul(usize::try_from(seeds.unwrap_or(1)).unwrap_or(usize::MAX)))
            }
            Request::Reproduce { id, scale } => {
                if ledger::text(id).is_none() {
                    let help = "choose among those of /api/experiments";
                    return Err(refuse("id", format!("there is no experiment {id:?}"), help));
                }
                match scale.as_str() {
                    "quick" | "paper" => Ok(()),
                    _ => Err(refuse("scale", format!("there is no scale {scale:?}"), "write quick or paper")),
                }
            }
        }
    }

    /// What people call it.
    pub fn name(&self) -> &str {
        match self {
            Request::Run { name, .. } | Request::Compare { name, .. } => name,
            Request::Reproduce { id, .. } => id,
        }
    }

    /// Its kind in a word.
    pub fn kind(&self) -> &'static str {
        match self {
            Request::Run { .. } => "run",
            Request::Compare { .. } => "compare",
            Request::Reproduce { .. } => "reproduce",
        }
    }

    /// The scenario's text, if it has one; it is taken out.
    pub fn take_text(&mut self) -> Option<String> {
        match self {
            Request::Run { text, .. } | Request::Compare { text, .. } => Some(std::mem::take(text)),
            Request::Reproduce { .. } => None,
        }
    }

    /// The same with a scenario's text.
    pub fn with_text(mut self, scenario: String) -> Request {
        if let Request::Run { text, .. } | Request::Compare { text, .. } = &mut self {
            *text = scenario;
        }
        self
    }

    fn changes(&self) -> (&[String], &[String]) {
        match self {
            Request::Run { sets, .. } => (sets, &[]),
            Request::Compare { sets, vary, .. } => (sets, vary),
            Request::Reproduce { .. } => (&[], &[]),
        }
    }

    /// The arguments of its process, which works in the workspace.
    pub fn arguments(&self, workspace: &Workspace, id: u64, threads: usize) -> Vec<String> {
        let text = |path: PathBuf| path.display().to_string();
        let (store, ledger) = (text(workspace.runs()), text(workspace.ledger()));
        let (scenario, out) = (format!("jobs/{id}/{SCENARIO}"), format!("jobs/{id}/{OUT}"));
        let mut words: Vec<String> = Vec::new();
        let mut add = |more: &[&str]| words.extend(more.iter().map(|word| word.to_string()));
        let recorded = |record: &bool| if *record { ["--record"].as_slice() } else { &[] };
        match self {
            Request::Run { sets, record, closer, .. } => {
                add(&["run", &scenario, "--out", &out]);
                sets.iter().for_each(|set| add(&[&format!("--set={set}")]));
                add(recorded(record));
                match closer {
                    Some(Closer { from, every }) => {
                        add(&[&format!("--record-from={from}"), &format!("--record-every={every}")])
                    }
                    None if *record => add(&[&format!("--record-live=jobs/{id}/{LIVE}/{RECORDING}")]),
                    None => {}
                }
            }
            Request::Compare { schemes, seeds, vary, sets, record, .. } => {
                add(&["compare", &scenario, "--out", &out, "--store", &store]);
                if !schemes.is_empty() {
                    add(&["--schemes", &schemes.join(",")]);
                }
                seeds.iter().for_each(|seeds| add(&["--seeds", &seeds.to_string()]));
                vary.iter().for_each(|axis| add(&[&format!("--vary={axis}")]));
                sets.iter().for_each(|set| add(&[&format!("--set={set}")]));
                add(recorded(record));
            }
            Request::Reproduce { id, scale } => {
                add(&["reproduce", id, "--scale", scale, "--out", &ledger, "--store", &store]);
            }
        }
        add(&["--threads", &threads.to_string(), "--progress", "json", "--leash"]);
        words
    }
}

impl Job {
    /// Writes a new job's folder: its scenario, the files that it names, and what is known of it.
    pub fn create(workspace: &Workspace, id: u64, mut request: Request) -> Result<Job, Problem> {
        let text = request.take_text();
        let names = match &text {
            Some(text) => inputs(text, request.changes().0, request.changes().1)?,
            None => BTreeSet::new(),
        };
        let folder = workspace.job(id);
        files::make_folder(&folder)?;
        let made = || {
            names.iter().try_for_each(|name| copy(&workspace.inputs(), name, &folder))?;
            if let Some(text) = &text {
                files::write_all(&[(&folder.join(SCENARIO), text)])?;
            }
            let job = Job {
                id,
                request,
                state: State::Queued,
                created: now(),
                started: None,
                ended: None,
                progress: Progress::default(),
                problem: None,
                notes: Vec::new(),
                stored: Vec::new(),
            };
            job.write(workspace)?;
            Ok(job)
        };
        made().inspect_err(|_| _ = fs::remove_dir_all(&folder))
    }

    /// Writes what is known of it.
    pub fn write(&self, workspace: &Workspace) -> Result<(), Problem> {
        let path = workspace.job(self.id).join(JOB);
        let text = serde_json::to_string_pretty(self)
            .map_err(|error| Problem::new(path.display().to_string(), format!("cannot be written: {error}")))?;
        files::write_all(&[(&path, text + "\n")])
    }

    /// Reads a job back.
    pub fn read(folder: &Path, id: u64) -> Result<Job, Problem> {
        let path = folder.join(JOB);
        let wrong = |message: String| {
            let help = "the job is not listed; put the file right or remove the job's folder";
            Problem::new(path.display().to_string(), message).help(help)
        };
        let size = fs::metadata(&path).map_err(|error| wrong(format!("cannot be read: {error}")))?.len();
        if size > limits::BODY as u64 {
            return Err(wrong(format!("has {size} bytes, more than a job's")));
        }
        let job: Job = serde_json::from_str(&files::problem::read_text(&path)?)
            .map_err(|error| wrong(format!("is damaged: {error}")))?;
        if job.id != id {
            return Err(wrong(format!("is of job {}", job.id)));
        }
        job.request.check().map_err(|problem| wrong(format!("cannot be done by this version: {problem}")))?;
        Ok(job)
    }

    /// As the list of jobs has it.
    pub fn json(&self) -> Value {
        let mut json = json!({
            "id": self.id,
            "kind": self.request.kind(),
            "name": self.request.name(),
            "state": self.state,
            "created": self.created,
            "started": self.started,
            "ended": self.ended,
            "progress": self.progress,
            "problem": self.problem,
        });
        match &self.request {
            Request::Run { .. } => {}
            Request::Compare { schemes, seeds, .. } => {
                json["schemes"] = json!(schemes);
                json["seeds"] = json!(seeds);
            }
            Request::Reproduce { scale, .. } => json["scale"] = json!(scale),
        }
        json
    }

    /// Takes in a line that its process said. Gives whether it belongs into the log.
    pub fn hear(&mut self, line: &Value) -> bool {
        let run = line["run"].as_u64().unwrap_or(0);
        let progress = &mut self.progress;
        if let Some(label) = line["label"].as_str() {
            progress.label = label.into();
        }
        match line["step"].as_str().unwrap_or_default() {
            "planned" => progress.runs = progress.runs.max(line["runs"].as_u64().unwrap_or(0) as usize),
            "running" => _ = progress.running.insert(run, line["share"].as_f64().unwrap_or(0.0)),
            step @ ("done" | "reused" | "failed") => {
                if step != "failed" && line["key"].is_string() {
                    self.stored.extend(Stored::deserialize(line));
                }
                progress.running.remove(&run);
                progress.done += 1;
                progress.runs = progress.runs.max(progress.done);
            }
            "note" if self.notes.len() < 100 => self.notes.extend(line["text"].as_str().map(String::from)),
            // The first says most; the later ones often follow from it.
            "problem" if self.problem.is_none() => self.problem = Some(line.clone()),
            _ => {}
        }
        let under_way: f64 = progress.running.values().sum();
        progress.share = ((progress.done as f64 + under_way) / progress.runs.max(1) as f64).clamp(0.0, 1.0);
        line["step"] != "running"
    }
}

/// The file of that name that a scenario may read; none where it is not there, since what it names may be a word.
pub fn input(folder: &Path, name: &str) -> Result<Option<PathBuf>, Problem> {
    if folder.join(name).symlink_metadata().is_err() {
        return Ok(None);
    }
    let problem = |message: String, help: &str| Problem::new(format!("files/{name}"), message).help(help);
    let Some(file) = file_below(folder, name) else {
        return Err(problem("is no file, or leads out of the workspace".into(), "put the file itself there"));
    };
    match fs::metadata(&file).map_or(0, |meta| meta.len()) {
        ..=limits::INPUT => Ok(Some(file)),
        size => {
            let message = format!("has {size} bytes; {} is the most", limits::INPUT);
            Err(problem(message, "use a smaller file, or the command line"))
        }
    }
}

/// Copies a file that a scenario names into a job's folder, so that the job stays what it is.
fn copy(from: &Path, name: &str, to: &Path) -> Result<(), Problem> {
    let Some(file) = input(from, name)? else { return Ok(()) };
    if [SCENARIO, JOB, LOG, OUT, LIVE].contains(&name.split('/').next().unwrap_or_default()) {
        return Err(refuse(name, "has a name that jobs use themselves", "rename the file"));
    }
    let target = to.join(name);
    let refused = |error: std::io::Error| refuse(name, format!("cannot be copied: {error}"), "check the disk");
    target.parent().map_or(Ok(()), fs::create_dir_all).map_err(refused)?;
    fs::copy(&file, &target).map(drop).map_err(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_outside_of_the_workspace_are_refused_wherever_they_are_named() {
        let text = "[topology]\nkind = \"file\"\npath = \"graph.toml\"\n";
        assert_eq!(inputs(text, &[], &[]).unwrap().into_iter().collect::<Vec<_>>(), ["graph.toml"]);
        for bad in ["/etc/passwd", "../graph.toml", "a/../../b", ".ssh/id", "~/../x"] {
            let text = format!("[topology]\nkind = \"file\"\npath = \"{bad}\"\n");
            let problem = inputs(&text, &[], &[]).unwrap_err();
            assert_eq!((problem.line, problem.column), (Some(3), Some(8)), "{problem}");
            let set = format!("topology.path={bad}");
            assert!(inputs(text.as_str(), &[set], &[]).is_err());
            assert!(inputs("", &[], &[format!("traffic.trace=a.csv,{bad}")]).is_err());
            assert!(inputs(&format!("[[load]]\nsizes = \"{bad}\""), &[], &[]).is_err());
        }
        for good in ["websearch", "64KB", "uniform 1KB..100KB", "mine/sizes.txt"] {
            assert!(inputs(&format!("[[load]]\nsizes = \"{good}\""), &[], &[]).is_ok(), "{good}");
        }
        assert!(inputs("[[load]]\nsizes = \"uniform /../../etc/passwd\"", &[], &[]).is_err());
    }

    #[test]
    fn the_size_of_a_comparison_is_bounded() {
        let compare = |seeds: u64, vary: &[&str]| Request::Compare {
            name: String::new(),
            text: String::new(),
            schemes: vec!["pfc".into(), "hpcc".into()],
            seeds: Some(seeds),
            vary: vary.iter().map(|axis| axis.to_string()).collect(),
            sets: Vec::new(),
            record: false,
        };
        assert!(compare(50, &[]).check().is_ok() && compare(51, &[]).check().is_err());
        assert!(compare(25, &["a=1,2"]).check().is_ok() && compare(26, &["a=1,2"]).check().is_err());
        assert!(compare(u64::MAX, &["a=1,2"]).check().is_err() && compare(0, &[]).check().is_err());
    }

    #[test]
    fn a_comparison_that_contradicts_itself_is_refused() {
        let said = |schemes: &[&str], vary: &[&str], sets: &[&str]| {
            let texts = |words: &[&str]| words.iter().map(|word| word.to_string()).collect::<Vec<_>>();
            let (name, text) = (String::new(), String::new());
            let (schemes, vary, sets) = (texts(schemes), texts(vary), texts(sets));
            let request = Request::Compare { name, text, schemes, seeds: None, vary, sets, record: false };
            request.check().map_or_else(|problem| problem.message.clone(), |()| String::new())
        };
        assert_eq!(said(&["pfc", "hpcc"], &["a.b=1,2"], &["a.c=1"]), "");
        assert!(said(&["pfc", "pfc"], &[], &[]).contains("twice"));
        assert!(said(&[], &["a.b=1,2", "a={b=3}"], &[]).contains("changes the same"));
        assert!(said(&[], &["a.b=1,2"], &["a.b=3"]).contains("is given with --vary, too"));
        assert!(said(&["pfc"], &[], &["scheme.preset=hpcc"]).contains("the schemes are given, too"));
    }

    #[test]
    fn progress_is_put_together_from_what_the_process_says() {
        let request = Request::Reproduce { id: "bfc/fig4".into(), scale: "quick".into() };
        let (progress, problem, notes) = (Progress::default(), None, Vec::new());
        let (started, ended, stored) = (None, None, Vec::new());
        let state = State::Running;
        let mut job = Job { id: 1, request, state, created: 0, started, ended, progress, problem, notes, stored };
        let said = [
            json!({"step": "reused", "run": 0, "label": "a", "labels": [["scheme", "pfc"]], "key": "5eed", "scheme": "pfc", "seed": 3}),
            json!({"step": "planned", "runs": 4}),
            json!({"step": "running", "run": 2, "label": "b", "share": 0.5}),
            json!({"step": "done", "run": 1, "label": "c"}),
            json!({"step": "problem", "message": "first"}),
            json!({"step": "problem", "message": "second"}),
            json!("nonsense"),
        ];
        let logged: Vec<bool> = said.iter().map(|line| job.hear(line)).collect();
        assert_eq!(logged, [true, true, false, true, true, true, true]);
        assert_eq!((job.progress.runs, job.progress.done, job.progress.share), (4, 2, 0.625));
        assert_eq!(job.problem.unwrap()["message"], "first");
        let (label, scheme, key) = ("a".into(), Some("pfc".into()), "5eed".into());
        let labels = vec![("scheme".into(), "pfc".into())];
        assert_eq!(job.stored, [Stored { run: 0, label, labels, scheme, seed: Some(3), key }]);
    }
}
