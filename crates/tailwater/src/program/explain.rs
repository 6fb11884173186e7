//! `tailwater explain`: why flows waited, from a folder of results.

use crate::program::commands::{printed, say};
use crate::program::place::COMPARISON;
use crate::program::planned::SWEEP;
use engine::{QuantityError, Time};
use files::SUMMARY;
use files::problem::Problem;
use results::causes::Causes;
use results::explain::{Question, explain as answer};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// How many folders a refusal names.
const MOST: usize = 8;

/// What `tailwater explain` is asked.
#[derive(clap::Args)]
pub struct Arguments {
    /// A folder of results, of a run with `measure.why = true`, or its summary.json.
    folder: PathBuf,
    /// Why this flow was slow; numbered as in flows.parquet.
    #[arg(long, value_name = "N", conflicts_with_all = ["link", "at"], allow_hyphen_values = true)]
    flow: Option<String>,
    /// Why this link was stopped, such as `leaf0->spine1`.
    #[arg(long, value_name = "A->B", conflicts_with = "at")]
    link: Option<String>,
    /// What was stopped at this instant, such as 300us.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    at: Option<String>,
    /// Answer in JSON, for programs.
    #[arg(long)]
    json: bool,
}

impl Arguments {
    fn question(&self) -> Result<Question, Problem> {
        if let Some(text) = &self.flow {
            let number = text.parse().map_err(|_| {
                Problem::new("--flow", format!("{text} is not the number of a flow"))
                    .help("write a number from 0 on, as in the column `flow` of flows.parquet")
            })?;
            return Ok(Question::Flow(number));
        }
        if let Some(link) = &self.link {
            return Ok(Question::Link(link.clone()));
        }
        let Some(text) = &self.at else { return Ok(Question::Run) };
        let wrong = |e: QuantityError| Problem::new("--at", format!("{text}: {e}")).help("write a time as in 300us");
        Ok(Question::At(text.parse::<Time>().map_err(wrong)?.0))
    }
}

/// The folder of results that a path means, or what to write instead.
fn folder(path: &Path) -> Result<&Path, Problem> {
    let problem = |message: String| Problem::new(path.display().to_string(), message);
    if path.is_file() {
        // Other files may be of anything.
        let above = path.parent().filter(|_| path.file_name().is_some_and(|name| name == SUMMARY));
        return above.map(|above| if above.as_os_str().is_empty() { Path::new(".") } else { above }).ok_or_else(|| {
            problem("is a file".into()).help("name the folder that `tailwater run` wrote, or its summary.json")
        });
    }
    if path.join(SUMMARY).is_file() {
        return Ok(path);
    }
    for (mark, what) in [(COMPARISON, "comparison"), (SWEEP, "sweep")] {
        if path.join(mark).is_file() {
            return Err(several(path, mark, what));
        }
    }
    let inside = || std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut runs: Vec<String> =
        inside().filter(|inner| inner.join(SUMMARY).is_file()).map(|inner| inner.display().to_string()).collect();
    runs.sort_unstable();
    Err(match (path.is_dir(), runs.is_empty()) {
        (false, _) => problem("there is no such folder".into())
            .help("name the folder of a run: `tailwater run` says at its end where it is"),
        (true, true) => problem(format!("is no folder of results: it has no {SUMMARY}"))
            .help("name the folder that `tailwater run` wrote"),
        (true, false) => problem(format!("is no folder of results: it has no {SUMMARY}"))
            .help(format!("name one of the folders inside: {}", listed(&runs))),
    })
}

fn listed(all: &[String]) -> String {
    let more = if all.len() > MOST { format!(", and {} more", all.len() - MOST) } else { String::new() };
    all.iter().take(MOST).cloned().collect::<Vec<_>>().join(", ") + &more
}

/// What to write instead of the folder of a comparison or a sweep: one of its runs that was asked why, if there is any.
fn several(path: &Path, mark: &str, what: &str) -> Problem {
    let text = std::fs::read_to_string(path.join(mark)).unwrap_or_default();
    let about: Value = serde_json::from_str(&text).unwrap_or_default();
    let cell = |cell: &Value| {
        let folder = path.join(cell["folder"].as_str()?);
        let labels = cell["labels"].as_object().into_iter().flatten();
        let mut labels: Vec<String> =
            labels.map(|(axis, value)| format!("{axis} {}", value.as_str().unwrap_or_default())).collect();
        labels.push(format!("seed {}", cell["seed"]));
        let asked = folder.join(results::causes::STOPS).is_file();
        Some((asked, format!("{} ({})", shortened(&folder).display(), labels.join(", "))))
    };
    let cells: Vec<(bool, String)> = about["cells"].as_array().into_iter().flatten().filter_map(cell).collect();
    let asked: Vec<String> = cells.iter().filter(|(asked, _)| *asked).map(|(_, name)| name.clone()).collect();
    let runs = if cells.len() == 1 { "1 run".into() } else { format!("{} runs", cells.len()) };
    let problem =
        Problem::new(path.display().to_string(), format!("is a {what} of {runs}, and one run is explained at a time"));
    match (asked.is_empty(), what) {
        (false, _) => problem.help(format!("name the folder of one of them: {}", listed(&asked))),
        (true, "sweep") => problem
            .help("none of them was asked why: put `why = true` under [measure] in the scenario, sweep again, and name the folder of a run"),
        (true, _) => problem.help(
            "none of them was asked why: compare again with `--set measure.why=true`, and name the folder of one of the runs",
        ),
    }
}

/// A path without `..` where these can be had away.
fn shortened(path: &Path) -> PathBuf {
    let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let here = std::env::current_dir().and_then(|here| here.canonicalize()).unwrap_or_default();
    whole.strip_prefix(&here).map_or_else(|_| path.to_owned(), Path::to_owned)
}

/// `tailwater explain`.
pub fn explain(arguments: &Arguments) -> Result<ExitCode, Problem> {
    let question = arguments.question()?;
    let folder = folder(&arguments.folder)?;
    let records = store::open(folder)?;
    let Some(causes) = Causes::open(&records)? else {
        return Err(Problem::new(folder.display().to_string(), "this run was not asked why, so nothing of it was kept").help(
            "run it again with `tailwater run SCENARIO --set measure.why=true`, or with `why = true` under [measure] in the scenario",
        ));
    };
    let table = results::parts::open(folder)?;
    let parts = table.as_ref().map(results::parts::rows).transpose()?.unwrap_or_default();
    let explained = answer(&records, &causes, &parts, &question)?;
    printed(say(match arguments.json {
        true => serde_json::to_string_pretty(&explained.json).unwrap_or_default() + "\n",
        false => explained.sentences.join("\n") + "\n",
    }))
}
