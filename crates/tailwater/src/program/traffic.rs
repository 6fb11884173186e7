//! `tailwater traffic`: what a scenario sends, as a file or in a table.

use crate::program::commands::{printed, say};
use clap::ValueEnum;
use files::problem::{Problem, read_text};
use scenario::Scenario;
use scenario::document::Document;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// How flows are written.
#[derive(Clone, Copy, ValueEnum)]
pub enum Format {
    /// A trace file, which scenarios read.
    Csv,
    /// The flow file (flow.txt) of the HPCC authors' ns-3 simulator.
    Ns3,
    /// A schedule in GOAL, for LogGOPSim and ATLAHS; scenarios read it, too.
    Goal,
}

/// Checks that a file can be written, and that it is none of those that a scenario is read from.
pub fn check_output(out: &Path, scenario: &Path, sets: &[String]) -> Result<(), Problem> {
    let mut document = Document::parse(scenario.display().to_string(), read_text(scenario)?)?;
    sets.iter().try_for_each(|set| document.set(set))?;
    let base = scenario.parent().unwrap_or(Path::new(""));
    let named = store::INPUT_FILES.iter().flat_map(|pattern| document.texts(pattern)).map(|(_, name)| base.join(name));
    let read: Vec<PathBuf> = named.chain([scenario.to_owned()]).collect();
    files::outputs::check_outputs(&[out], &read.iter().map(PathBuf::as_path).collect::<Vec<_>>())
}

/// Writes the flows of a scenario to a file or to standard output, or describes them.
pub fn traffic(
    scenario: &Path,
    sets: &[String],
    out: Option<PathBuf>,
    format: Format,
    describe: bool,
) -> Result<ExitCode, Problem> {
    if let Some(path) = &out {
        check_output(path, scenario, sets)?;
    }
    let scenario = Scenario::load(scenario, sets)?;
    let text = match format {
        // Only the file would be thrown away.
        _ if describe && out.is_none() => String::new(),
        Format::Csv => scenario.trace()?,
        Format::Goal => scenario.goal()?,
        Format::Ns3 => interop::ns3::export::flow_file(&scenario)?,
    };
    match &out {
        Some(path) => files::write_all(&[(path, &text)])?,
        None if !describe => return printed(say(text)),
        None => {}
    }
    if describe {
        return printed(say(scenario.describe_traffic()));
    }
    Ok(ExitCode::SUCCESS)
}
