//! `tailwater explain`: why flows waited, from a folder of results.

use crate::program::commands::{printed, say};
use engine::{QuantityError, Time};
use files::problem::Problem;
use results::causes::Causes;
use results::explain::{Question, explain as answer};
use std::path::PathBuf;
use std::process::ExitCode;

/// What `tailwater explain` is asked.
#[derive(clap::Args)]
pub struct Arguments {
    /// A folder of results, of a run with `measure.why = true`.
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

/// `tailwater explain`.
pub fn explain(arguments: &Arguments) -> Result<ExitCode, Problem> {
    let question = arguments.question()?;
    let records = store::open(&arguments.folder)?;
    let end_ps = records.summary["end_ps"].as_u64().unwrap_or(0);
    let Some(causes) = Causes::open(&arguments.folder, end_ps)? else {
        let folder = arguments.folder.display();
        return Err(Problem::new(folder.to_string(), "this run was not asked why, so nothing of it was kept")
            .help("run it again with `tailwater run SCENARIO --set measure.why=true`"));
    };
    let table = results::parts::open(&arguments.folder)?;
    let parts = table.as_ref().map(results::parts::rows).transpose()?.unwrap_or_default();
    let explained = answer(&records, &causes, &parts, &question)?;
    printed(say(match arguments.json {
        true => serde_json::to_string_pretty(&explained.json).unwrap_or_default() + "\n",
        false => explained.sentences.join("\n") + "\n",
    }))
}
