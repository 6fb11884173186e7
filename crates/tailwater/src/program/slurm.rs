//! A sweep on Slurm: an array job whose tasks fill the store together.
//!
//! Only the store counts: Slurm is asked only whether it still has something of a job. So it does not matter how a task ended.

use crate::program::planned::{Planned, in_a_line};
use crate::program::progress;
use files::problem::{Problem, read_text};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use store::grid::{self, Options};

/// How a job is submitted.
#[derive(clap::Args)]
pub struct How {
    /// Options for sbatch, such as "--time=1:00:00 --partition=short"; may be given several times.
    #[arg(long = "slurm", value_name = "OPTIONS", requires = "on", allow_hyphen_values = true)]
    options: Vec<String>,
    /// The most tasks of the array, each of which does one run after another [default: 100].
    #[arg(long, value_name = "N", requires = "on", default_value = "100")]
    tasks: NonZeroUsize,
    /// Submit and leave; follow with `tailwater sweep status`, or with the same command again.
    #[arg(long, requires = "on")]
    detach: bool,
}

/// The folder of a sweep with what has to do with Slurm.
pub const FOLDER: &str = "slurm";
/// The jobs that were submitted.
const JOBS: &str = "jobs.json";
/// What is submitted.
const SCRIPT: &str = "job.sh";
/// The tasks of an array where the cluster does not say how many there may be.
const ARRAY: usize = 1001;
/// Between two looks at the store and the queue.
const LOOK: Duration = Duration::from_secs(2);
/// A job that the queue does not have yet, or not any more, is asked for so many times more: queues are slow, too.
const PATIENCE: usize = 3;
/// A queue that does not answer is asked so many times more.
const DEAF: usize = 300;

/// A word for a shell.
pub fn word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,+:%@".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.into(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// What squeue says of a job that it has forgotten; it ends like any other failure.
const FORGOTTEN: &str = "Invalid job id";

/// Why a program of Slurm has no answer.
enum Refusal {
    /// The queue has forgotten the job.
    Forgotten,
    /// Anything else.
    Failed(Problem),
}

impl Refusal {
    fn problem(self) -> Problem {
        match self {
            Refusal::Failed(problem) => problem,
            Refusal::Forgotten => Problem::new("squeue", "has forgotten the job").help("submit it again"),
        }
    }
}

/// What a program of Slurm prints.
fn ask(program: &str, arguments: &[&str]) -> Result<String, Refusal> {
    let problem = |message: String| {
        Problem::new(program, message).help("run this where sbatch, squeue and scontrol work, or without --on slurm")
    };
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|error| Refusal::Failed(problem(format!("cannot be started: {error}"))))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_string();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false if text(&output.stderr).contains(FORGOTTEN) => Err(Refusal::Forgotten),
        false => Err(Refusal::Failed(problem(format!("failed: {}", text(&output.stderr))))),
    }
}

/// The most tasks of an array.
fn largest_array() -> usize {
    let config = ask("scontrol", &["show", "config"]).unwrap_or_default();
    let line = config.lines().find_map(|line| line.trim().strip_prefix("MaxArraySize"));
    let number = line.and_then(|line| line.trim_start_matches([' ', '=']).trim().parse().ok());
    // The numbers of the tasks are below it, and begin at 1 here.
    number.unwrap_or(ARRAY).saturating_sub(1).max(1)
}

/// The jobs of a sweep, in order.
fn jobs(out: &Path) -> Vec<String> {
    let text = read_text(&out.join(FOLDER).join(JOBS)).unwrap_or_default();
    let value: Value = serde_json::from_str(&text).unwrap_or_default();
    value["jobs"].as_array().into_iter().flatten().filter_map(|job| Some(job.as_str()?.to_string())).collect()
}

/// By job of a sweep: what its tasks are at, and how many. A job that is over has none.
pub fn states(out: &Path) -> Vec<(String, BTreeMap<String, usize>)> {
    let state = |job: String| {
        let queued = queue(&job).unwrap_or_default();
        (job, queued)
    };
    jobs(out).into_iter().map(state).collect()
}

/// What the queue has of a job. A job that it has forgotten is no problem; a queue that cannot be asked is.
fn queue(job: &str) -> Result<BTreeMap<String, usize>, Problem> {
    let text = match ask("squeue", &["--noheader", "--array", "--jobs", job, "--format", "%T"]) {
        Ok(text) => text,
        Err(Refusal::Forgotten) => String::new(),
        Err(Refusal::Failed(problem)) => return Err(problem),
    };
    let mut states = BTreeMap::new();
    text.lines().for_each(|state| *states.entry(state.trim().to_lowercase()).or_default() += 1);
    // These come back no more, but may stay for a while.
    for over in ["completed", "completing", "failed", "cancelled", "timeout", "node_fail", "out_of_memory"] {
        states.remove(over);
    }
    Ok(states)
}

/// Has the missing runs of a sweep done by Slurm, and waits until all are there. Says whether they are: not, if it was asked to
/// detach.
///
/// May be interrupted and called again at any time: what is in the queue is followed, and only what is missing is
/// submitted.
pub fn follow(
    planned: &Planned,
    how: &How,
    threads: Option<NonZeroUsize>,
    lease: &str,
    quiet: bool,
) -> Result<bool, Problem> {
    let note = |text: String| {
        if !quiet {
            progress::note(&text);
        }
    };
    let (mut before, mut absent, mut line, mut deaf) = (None, 0, String::new(), 0);
    loop {
        let status = planned.status()?;
        if status.finished == status.runs {
            return Ok(true);
        }
        let mut queued: BTreeMap<String, usize> = BTreeMap::new();
        let asked: Result<(), Problem> = jobs(&planned.out).iter().try_for_each(|job| {
            queue(job)?.into_iter().for_each(|(state, count)| *queued.entry(state).or_default() += count);
            Ok(())
        });
        // A controller that is restarted does not answer for a while; one that never did is a problem at once.
        deaf = if asked.is_err() { deaf + 1 } else { 0 };
        match asked {
            Err(problem) if deaf > DEAF || line.is_empty() => return Err(problem),
            Err(_) => {
                std::thread::sleep(LOOK);
                continue;
            }
            Ok(()) => {}
        }
        let now = in_a_line(&status);
        if now != line {
            line = now;
            let queued: Vec<String> = queued.iter().map(|(state, count)| format!("{count} {state}")).collect();
            let queued = if queued.is_empty() { "no tasks".into() } else { queued.join(", ") };
            note(format!("{line}; Slurm: {queued}"));
        }
        absent = if queued.is_empty() { absent + 1 } else { 0 };
        // A task of a job that is over keeps no claim for long.
        let idle = status.running.is_empty() && (absent > PATIENCE || before.is_none() && absent > 0);
        if idle && before == Some(status.finished) {
            let logs = planned.out.join(FOLDER);
            return Err(Problem::new(logs.display().to_string(), format!("the last job did nothing: {line}"))
                .help("look what its tasks wrote there; then run the same command again"));
        }
        if idle {
            before = Some(status.finished);
            absent = 0;
            let job = submit(planned, how, threads.map_or(1, NonZeroUsize::get), lease, status.missing.len())?;
            note(format!("submitted as job {job}"));
        }
        if how.detach {
            return Ok(false);
        }
        std::thread::sleep(LOOK);
    }
}

/// Submits a job for so many missing runs, and remembers it.
fn submit(planned: &Planned, how: &How, threads: usize, lease: &str, missing: usize) -> Result<String, Problem> {
    // What is wrong with a run is better known now than from a hundred tasks.
    let options =
        Options { threads: std::thread::available_parallelism().map_or(1, NonZeroUsize::get), ..Options::default() };
    if let Err(failed) = grid::prepare(&planned.plan, &planned.store, &options, &()) {
        let mut problems = failed.problems.into_iter().map(|problem| planned.sweep.explain(problem));
        let last = problems.next_back();
        problems.for_each(|problem| progress::problem(&problem));
        return Err(last.unwrap_or_else(|| Problem::new("the sweep", "cannot be run")));
    }
    planned.store.prepare()?;
    let folder = planned.out.join(FOLDER);
    files::make_folder(&folder)?;
    let tasks = missing.div_ceil(threads).min(how.tasks.get()).min(largest_array()).max(1);
    let whole = |path: &Path| {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        word(&path.display().to_string())
    };
    // The tasks must know the schemes that this program knows.
    let program = std::env::current_exe().map_err(|error| {
        Problem::new("tailwater", format!("does not find itself: {error}")).help("start it by its path")
    })?;
    let mut record = if planned.store.is_recorded() { " --record".to_string() } else { String::new() };
    planned.instead.options().into_iter().for_each(|(name, value)| record += &format!(" --{name} {}", word(&value)));
    let script = format!(
        "#!/bin/sh\n\
         #SBATCH --job-name={}\n\
         #SBATCH --array=1-{tasks}\n\
         #SBATCH --cpus-per-task={threads}\n\
         #SBATCH --requeue\n\
         #SBATCH --open-mode=append\n\
         #SBATCH --output={}\n\
         exec {} sweep {} --store {} --out {}{record} --shard \"$SLURM_ARRAY_TASK_ID/{tasks}\" --help-others \\\n    \
         --threads {threads} --lease {}\n",
        word(&format!("tailwater-{}", planned.sweep.title)),
        whole(&folder.join("%A_%a.log")),
        whole(&program),
        whole(&planned.spec),
        whole(planned.store.folder()),
        whole(&planned.out),
        word(lease),
    );
    let path = folder.join(SCRIPT);
    files::write_all(&[(path.as_path(), script)])?;
    let path = path.display().to_string();
    let mut arguments = vec!["--parsable"];
    arguments.extend(how.options.iter().flat_map(|options| options.split_whitespace()));
    arguments.push(&path);
    let answer = ask("sbatch", &arguments).map_err(Refusal::problem)?;
    let job = answer.lines().last().and_then(|line| line.split(';').next()).unwrap_or_default().to_string();
    let mut all = jobs(&planned.out);
    all.push(job.clone());
    files::write_all(&[(folder.join(JOBS).as_path(), format!("{:#}\n", json!({ "jobs": all })))])?;
    Ok(job)
}
