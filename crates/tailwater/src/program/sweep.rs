//! `tailwater sweep`: many runs as a file, done here, by many processes, or by a cluster.

use crate::program::answer::{self, Asked, BY_SIZE};
use crate::program::commands::{BROKEN, printed, say, threads_or_all};
use crate::program::compare::{about_runs, announce, labels, put, read_summary};
use crate::program::estimate;
use crate::program::interrupt;
use crate::program::place;
use crate::program::planned::{Named, Planned, RUNS, SPEC, SWEEP, TABLE, in_a_line};
use crate::program::progress::{self, GridProgress};
use crate::program::slurm;
use crate::program::usage;
use clap::{Args, Subcommand, ValueEnum};
use engine::{QuantityError, Time};
use files::problem::Problem;
use results::comparison::Table;
use serde_json::{Map, Value, json};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use store::sweep::{self, Options, Status, runs};

/// The scenario beside them.
const SCENARIO: &str = "scenario.toml";

/// What is to be done.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Arguments {
    #[command(subcommand)]
    ask: Option<Ask>,
    // Nothing is flattened into what may be left out: such a group counts as left out even when it is there.
    #[command(flatten)]
    sweep: Option<Named>,
    #[command(flatten)]
    asked: Asked,
    /// Do only shard I of N, counted from 1, and write no folder: the same shard is always the same runs.
    #[arg(long, value_name = "I/N", conflicts_with = "on")]
    shard: Option<String>,
    /// With --shard: when its shard is done, go on with runs that no other process works on.
    #[arg(long, requires = "shard")]
    help_others: bool,
    /// Runs at a time [default: one for each core; with --on, 1, which is also how many cores a task asks for].
    #[arg(long, value_name = "N", value_parser = crate::program::commands::from_one)]
    threads: Option<NonZeroUsize>,
    /// When a process gives no sign of life for so long, others take over its runs.
    #[arg(long, value_name = "TIME", default_value = "60s")]
    lease: String,
    /// Have the runs done elsewhere, and follow them.
    #[arg(long, value_enum, value_name = "ENGINE")]
    on: Option<Engine>,
    #[command(flatten)]
    slurm: slurm::How,
    /// Show no progress and print nothing but problems.
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    reporting: progress::Reporting,
}

/// Who does the runs.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Engine {
    /// An array job of Slurm.
    Slurm,
}

#[derive(Subcommand)]
enum Ask {
    /// Say how far a sweep is: what the store has, which process works on what, and what the cluster says.
    Status {
        #[command(flatten)]
        sweep: Named,
        /// Answer in JSON, for programs.
        #[arg(long)]
        json: bool,
    },
    /// Write the sweep's folder from what the store has; nothing is run.
    Collect {
        #[command(flatten)]
        sweep: Named,
        #[command(flatten)]
        asked: Asked,
        /// Print nothing but problems.
        #[arg(long, short)]
        quiet: bool,
    },
}

/// `tailwater sweep`.
pub fn sweep(arguments: &Arguments) -> Result<ExitCode, Problem> {
    arguments.reporting.begin();
    let nothing = Asked::default();
    let (named, asked) = match (&arguments.ask, &arguments.sweep) {
        (Some(Ask::Status { sweep, .. }), _) => (sweep, &nothing),
        (Some(Ask::Collect { sweep, asked, .. }), _) => (sweep, asked),
        (None, Some(sweep)) => (sweep, &arguments.asked),
        (None, None) => return Err(Problem::new("tailwater sweep", "no file is named").help("name a sweep's file")),
    };
    let mut planned = match Planned::new(named, asked) {
        Ok(planned) => planned,
        Err(problems) => return Ok(usage::refuse(&problems)),
    };
    match &arguments.ask {
        Some(Ask::Status { json, .. }) => return print_status(&planned, *json),
        Some(Ask::Collect { quiet, .. }) => return collect(&mut planned, *quiet, 0),
        None => {}
    }
    let lease = read_lease(&arguments.lease)?;
    planned.store = planned.store.lease(lease);
    let shard = arguments.shard.as_deref().map(read_shard).transpose()?;
    if arguments.on.is_some() {
        let follow = slurm::follow(&planned, &arguments.slurm, arguments.threads, &arguments.lease, arguments.quiet)?;
        return if follow { collect(&mut planned, arguments.quiet, 0) } else { Ok(ExitCode::SUCCESS) };
    }
    // All runs were checked before they were divided into shards, and to do so in each shard takes long.
    let options = Options {
        threads: threads_or_all(arguments.threads),
        shard,
        help: arguments.help_others,
        wait: shard.is_none(),
        check: !arguments.help_others,
    };
    interrupt::heed(interrupt::of_runs(planned.store.folder()));
    let progress = GridProgress::new(arguments.quiet);
    let result = sweep::work(&planned.plan, &planned.store, &options, &progress);
    progress.finish();
    let done = match result {
        Ok(done) => done,
        Err(failed) => {
            failed.problems.into_iter().for_each(|problem| {
                progress::problem(&planned.sweep.explain(planned.instead.explain(problem)));
            });
            if failed.finished > 0 {
                let folder = planned.store.folder().display();
                progress::note(&format!("{} of {} runs are in {folder}", failed.finished, failed.runs));
            }
            return Ok(interrupt::status(if failed.broken { ExitCode::from(BROKEN) } else { ExitCode::FAILURE }));
        }
    };
    let Some((index, count)) = shard else { return collect(&mut planned, arguments.quiet, done.ran) };
    if arguments.quiet {
        return Ok(ExitCode::SUCCESS);
    }
    let left = if done.left > 0 { format!(", {} left to others", done.left) } else { String::new() };
    let folder = planned.store.folder().display();
    let runs = done.ran + done.reused + done.left;
    printed(say(format!("shard {index} of {count}: {runs} runs, {} new{left}; in {folder}\n", done.ran)))
}

/// What `--lease` says.
fn read_lease(text: &str) -> Result<Duration, Problem> {
    let problem = |message: String| Problem::new("--lease", message).help("write a time of at least 1s, such as 60s");
    let time: Time = text.parse().map_err(|error: QuantityError| problem(error.to_string()))?;
    match time.secs_f64() {
        1.0.. => Ok(Duration::from_secs_f64(time.secs_f64())),
        _ => Err(problem(format!("{text} is too short for file systems on a network"))),
    }
}

/// What `--shard` says.
fn read_shard(text: &str) -> Result<(usize, usize), Problem> {
    let numbers = text.split_once('/').and_then(|(index, count)| Some((index.parse().ok()?, count.parse().ok()?)));
    match numbers {
        Some((index, count)) if (1..=count).contains(&index) => Ok((index, count)),
        _ => Err(Problem::new("--shard", format!("\"{}\" names no shard", text.escape_debug()))
            .help("write I/N with I from 1 to N, such as 2/8")),
    }
}

/// `tailwater sweep status`.
fn print_status(planned: &Planned, json: bool) -> Result<ExitCode, Problem> {
    let status = planned.status()?;
    let jobs = slurm::states(&planned.out);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let running = status.running.iter().map(|(place, owner)| (&planned.plan[*place], owner));
    if json {
        let running = running.map(|(cell, owner)| {
            json!({ "labels": labels(&cell.labels), "seed": cell.seed, "digest": cell.digest.to_string(),
                "host": owner.host, "process": owner.process, "since": owner.since })
        });
        let answer = json!({
            "runs": status.runs,
            "finished": status.finished,
            "running": running.collect::<Vec<_>>(),
            "missing": status.missing.len(),
            "lost": status.lost,
            "broken": status.broken,
            "slurm": jobs.iter().map(|(id, states)| json!({ "job": id, "states": states })).collect::<Vec<_>>(),
        });
        return printed(say(format!("{answer:#}\n")));
    }
    let mut text = in_a_line(&status);
    text += &format!("; in {}\n", planned.store.folder().display());
    for (cell, owner) in running {
        // Its clock may be another.
        let age =
            now.checked_sub(owner.since).map_or("from the future by its clock".into(), |age| format!("for {age} s"));
        text += &format!("  {}: {} process {}, {age}\n", cell.label(), owner.host, owner.process);
    }
    for folder in &status.broken {
        text += &format!("  broke a promise: {}\n", folder.display());
    }
    for (id, states) in jobs {
        let states: Vec<String> = states.iter().map(|(state, count)| format!("{count} {state}")).collect();
        let states = if states.is_empty() { "over".into() } else { states.join(", ") };
        text += &format!("  Slurm job {id}: {states}\n");
    }
    printed(say(text))
}

/// Writes everything that a sweep's folder has, and prints the table.
fn collect(planned: &mut Planned, quiet: bool, ran: usize) -> Result<ExitCode, Problem> {
    let status = planned.status()?;
    if status.finished < status.runs {
        let place = planned.store.folder().display().to_string();
        return Err(Problem::new(place, in_a_line(&status)).help("do the rest first, with tailwater sweep"));
    }
    let claim = planned.claim(quiet)?;
    let written = write(planned, &status, quiet, ran);
    drop(claim);
    if written.is_err() {
        // One that was made for it goes with it.
        _ = std::fs::remove_dir(&planned.out);
    }
    written
}

fn write(planned: &Planned, status: &Status, quiet: bool, ran: usize) -> Result<ExitCode, Problem> {
    let Planned { sweep, plan, store, out, .. } = planned;
    let folders: Vec<PathBuf> = plan.iter().map(|cell| store.path(cell.digest)).collect();
    let summaries = folders.iter().map(|folder| read_summary(folder)).collect::<Result<Vec<_>, _>>()?;
    let table = sweep.grid.table(plan, &summaries);
    let answer = answer::answer(planned.question.clone(), plan, &folders, &summaries)?;
    let mut about = about(planned, &folders, &table);
    about.extend(answer::about(&answer));
    about.extend(estimate::about(&summaries).map(|said| ("estimate".into(), said.trim_end().into())));
    let about = format!("{:#}\n", Value::from(about));
    // The file that marks a sweep's folder comes first: an interruption leaves nothing that is refused later.
    let paths = [SWEEP, TABLE, BY_SIZE, SPEC, SCENARIO].map(|name| out.join(name));
    let texts = [about.as_str(), &table.csv(), &answer.csv(), &sweep.text, &sweep.grid.source.text]
        .map(|text| text.as_bytes().to_vec());
    let mut all: Vec<(PathBuf, Vec<u8>)> = paths.into_iter().zip(texts).collect();
    all.push((out.join(RUNS), runs::bytes(plan, &summaries, &table)));
    let title = summaries.first().and_then(|summary| summary["scenario"].as_str()).unwrap_or(&sweep.title);
    let titled = estimate::titled(title, &summaries.iter().collect::<Vec<_>>());
    let page = report::sweeps::page(&titled, &table, Some(&answer), &sweep.text, &command(planned));
    let written = put(out, &all, report::folder::files(&page, out));
    let new = if ran > 0 { format!(", {ran} new") } else { String::new() };
    let (title, answer, table) = (&table.title, answer::text(&answer, &table, planned.times), table.brief());
    let estimated = estimate::about(&summaries).unwrap_or_default();
    let text = format!("{title}\n\n{answer}\n{table}\n{estimated}");
    announce(&text, &format!("{} runs{new}; sweep in {}\n", status.runs, out.display()), quiet, written)
}

/// The command that gives the same sweep.
fn command(planned: &Planned) -> String {
    let record = if planned.store.is_recorded() { " --record" } else { "" };
    let asked = planned.asked.iter().map(|(name, value)| format!(" --{name} {}", slurm::word(value)));
    let asked: String = asked.collect();
    let asked =
        planned.instead.options().into_iter().fold(asked, |all, (name, value)| all + &format!(" --{name} {value}"));
    format!("tailwater sweep {}{record}{asked}", slurm::word(&planned.spec.display().to_string()))
}

/// `sweep.json`.
fn about(planned: &Planned, folders: &[PathBuf], table: &Table) -> Map<String, Value> {
    let Planned { sweep, plan, out, .. } = planned;
    let values = |axis: &String| {
        let mut values: Vec<&str> = Vec::new();
        for (name, value) in plan.iter().flat_map(|cell| &cell.labels) {
            if name == axis && !values.contains(&value.as_str()) {
                values.push(value);
            }
        }
        json!({ "name": axis, "values": values })
    };
    let mut about = about_runs(plan, folders, table, out);
    about.extend([
        ("scenario".into(), table.title.as_str().into()),
        ("command".into(), command(planned).into()),
        ("sets".into(), json!(sweep.grid.sets)),
        ("axes".into(), table.axes.iter().map(values).collect()),
        ("file".into(), place::file(&planned.spec).into()),
    ]);
    about
}
