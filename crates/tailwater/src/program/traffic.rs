//! `tailwater traffic`: what a scenario sends, as a file or in a table.

use crate::program::commands::{printed, say};
use clap::ValueEnum;
use files::problem::Problem;
use scenario::Scenario;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// How flows are written.
#[derive(Clone, Copy, ValueEnum)]
pub enum Format {
    /// A trace file, which scenarios read.
    Csv,
    /// The flow file (flow.txt) of the HPCC authors' ns-3 simulator.
    Ns3,
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
        files::check_writable(path)?;
    }
    let scenario = Scenario::load(scenario, sets)?;
    let text = match format {
        // Only the file would be thrown away.
        _ if describe && out.is_none() => String::new(),
        Format::Csv => scenario.trace()?,
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
