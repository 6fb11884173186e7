//! `tailwater estimate`, and what `compare` and `sweep` need for estimates instead of runs.

use crate::program::commands::{self, Record};
use crate::program::forward;
use crate::program::slurm;
use clap::{Args, ValueEnum};
use files::problem::{Given, Problem};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// How completion times are estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Method {
    /// Link by link, each alone; what flows lose adds up.
    Links,
    /// All links shared fairly at once.
    MaxMin,
}

impl Method {
    /// What a scenario calls it.
    fn set(self) -> String {
        let word = match self {
            Method::Links => "links",
            Method::MaxMin => "max-min",
        };
        format!("estimate.method={word}")
    }
}

/// The method, and how much is simulated to calibrate it.
#[derive(Args)]
pub struct How {
    /// How they are estimated.
    #[arg(long, value_enum, default_value_t = Method::Links)]
    method: Method,
    /// The share of the traffic that is simulated: to learn what the scheme makes of it, and to measure the error [default: the scenario's, or 0.1].
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true)]
    calibrate: Option<String>,
}

/// The same where runs are what is usual.
#[derive(Args, Default)]
pub struct Instead {
    /// Estimate every run instead of simulating it: in seconds, with an error that is measured and stated.
    #[arg(long, value_enum, value_name = "METHOD")]
    pub estimate: Option<Method>,
    /// With --estimate, the share of each run's traffic that is simulated [default: the scenario's, or 0.1].
    #[arg(long, value_name = "SHARE", requires = "estimate", allow_hyphen_values = true)]
    pub calibrate: Option<String>,
    /// Skip what is steady, as long as the error that is measured stays within this share, such as `1%`. Every result says so.
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true, value_parser = forward::share, conflicts_with = "estimate")]
    pub within: Option<forward::Share>,
}

fn sets(method: Method, calibrate: Option<&String>) -> impl Iterator<Item = String> {
    std::iter::once(method.set()).chain(calibrate.map(|share| format!("estimate.calibrate={share}")))
}

impl Instead {
    /// The changes to a scenario that say so.
    pub fn sets(&self) -> Vec<String> {
        let estimate = self.estimate.into_iter().flat_map(|method| sets(method, self.calibrate.as_ref()));
        estimate.chain(self.within.as_ref().map(forward::Share::set)).collect()
    }

    /// A problem in the words of who asked for estimates.
    pub fn explain(&self, problem: Problem) -> Problem {
        let Some(method) = self.estimate.and_then(|method| method.to_possible_value()) else { return problem };
        let place = format!("--estimate {}", method.get_name());
        as_asked(problem, &self.sets(), &place, "simulate the runs: leave --estimate out")
    }

    /// The options, for the command that gives the same.
    pub fn options(&self) -> Vec<(&'static str, String)> {
        let method = self.estimate.and_then(|method| method.to_possible_value());
        let method = method.map(|method| ("estimate", method.get_name().to_string()));
        let calibrate = self.calibrate.clone().map(|share| ("calibrate", share));
        let within = self.within.as_ref().map(|share| ("within", share.to_string()));
        method.into_iter().chain(calibrate).chain(within).collect()
    }
}

/// `tailwater estimate`.
pub fn estimate(
    scenario: &Path,
    how: &How,
    mut changes: Vec<String>,
    out: Option<PathBuf>,
    report: bool,
    quiet: bool,
) -> Result<ExitCode, Problem> {
    let method = how.method.to_possible_value().map_or(String::new(), |method| method.get_name().to_string());
    let options = [("method", method)].into_iter().chain(how.calibrate.clone().map(|share| ("calibrate", share)));
    let command = commands::command("estimate", scenario, &options.collect::<Vec<_>>(), &changes);
    let own: Vec<String> = sets(how.method, how.calibrate.as_ref()).collect();
    changes.extend(own.iter().cloned());
    let stem = scenario.file_stem().map_or("run".into(), |stem| stem.to_string_lossy().into_owned());
    let out = out.unwrap_or_else(|| Path::new("results").join(format!("{stem}-estimate")));
    let record = Record { wanted: false, every: None, from: None, live: None };
    let place = format!("tailwater estimate {}", scenario.display());
    let remedy = format!("simulate it with `tailwater run {}`", slurm::word(&scenario.display().to_string()));
    commands::run(scenario, &changes, Some(out), &record, report, None, quiet, &command)
        .map_err(|problem| as_asked(problem, &own, &place, &remedy))
}

/// A problem with an estimate, in the words of who asked for it on the command line and wrote no [estimate] into a file: `own` are the changes that
/// say so. `remedy`: what gives an answer without one.
fn as_asked(problem: Problem, own: &[String], place: &str, remedy: &str) -> Problem {
    problem.map(|problem| {
        let assignment = problem.given.as_ref().and_then(Given::assignment);
        let Some(assignment) = assignment.filter(|assignment| own.iter().any(|set| set == assignment)) else {
            return problem;
        };
        let place = if assignment.starts_with("estimate.calibrate=") { "--calibrate" } else { place };
        let help = problem.help.as_deref().unwrap_or_default();
        let help = help
            .replace("leave [estimate] out", remedy)
            .replace("write calibrate =", "give --calibrate")
            .replace("write a larger share", "give a larger share with --calibrate");
        let asked = Problem::new(place, problem.message.as_str()).help(help).cause(problem.cause);
        problem.run.iter().fold(asked, |asked, run| asked.in_run(run.as_str()))
    })
}

/// The title of a page of results, of which some may be estimates.
pub fn titled(title: &str, summaries: &[&Value]) -> String {
    let some = summaries.iter().any(|summary| summary.get("estimate").is_some());
    format!("{title}{}{}", if some { ": estimates, not runs" } else { "" }, forward::titled(summaries))
}

/// What is to be said of results of which some are estimates, or skip something, by their summaries; nothing where none is.
pub fn about(summaries: &[Value]) -> Option<String> {
    let said: String = estimated(summaries).into_iter().chain(forward::about(summaries)).collect();
    (!said.is_empty()).then_some(said)
}

fn estimated(summaries: &[Value]) -> Option<String> {
    let estimates: Vec<&Value> = summaries.iter().filter_map(|summary| summary.get("estimate")).collect();
    let first = estimates.first()?;
    let method = first["method"].as_str().unwrap_or_default();
    let (some, all) = (estimates.len(), summaries.len());
    let which = if some == all { "all".to_string() } else { format!("{some} of {all}") };
    let worst = |path: &str| {
        let values = estimates.iter().filter_map(|estimate| estimate.pointer(path)?.as_f64());
        values.max_by(|a, b| a.abs().total_cmp(&b.abs()))
    };
    let unknown = estimates.iter().any(|estimate| estimate["error"].is_null());
    let error = match (unknown, worst("/error/fct/p50"), worst("/error/p99/off")) {
        (false, Some(fct), Some(p99)) => format!(
            "where they were simulated too, half of the completion times are within {:.1} % of the exact ones in the worst of them, and p99 slowdown is off \
             by at most {:.1} %",
            100.0 * fct,
            100.0 * p99.abs()
        ),
        _ => "the error is not known".into(),
    };
    Some(format!("{which} of these are estimates ({method}), not runs: {error}\n"))
}
