//! `tailwater import`: files of other simulators as scenarios.

use crate::program::commands::{printed, say};
use crate::program::progress;
use clap::Subcommand;
use files::problem::{Problem, read_text};
use interop::chakra;
use interop::htsim::{self, Imported, Starts, Text};
use interop::simccl;
use scenario::document::quote;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Whose files.
#[derive(Subcommand)]
pub enum From {
    /// A connection matrix (.cm) of htsim, and its topology (.topo).
    Htsim {
        /// The connection matrix.
        #[arg(long, value_name = "FILE")]
        cm: PathBuf,
        /// The topology [default: a fat tree of as many hosts with 100Gbps links].
        #[arg(long, value_name = "FILE")]
        topo: Option<PathBuf>,
        /// What the matrix counts starts in: picoseconds, as htsim does, or whole microseconds, as uet-htsim does.
        #[arg(long, value_enum, default_value_t = Unit::Ps)]
        starts: Unit,
        /// Where the scenario goes. Its flows go beside it, with the ending .csv, and its graph, if there is one, .graph.toml.
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
    /// Execution traces (.et) of Chakra, one file for each rank.
    Chakra {
        /// The traces, in the order of ranks.
        #[arg(required = true, value_name = "FILE")]
        traces: Vec<PathBuf>,
        /// Where the scenario goes. Its schedule goes beside it, with the ending .goal.
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
    /// A list of flows of SimCCL (ncclFlowModel_detailed_flows.csv).
    Simccl {
        /// The list.
        #[arg(value_name = "FILE")]
        flows: PathBuf,
        /// Where the scenario goes. Its schedule goes beside it, with the ending .goal.
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
}

/// What a matrix counts starts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Unit {
    /// Picoseconds.
    Ps,
    /// Whole microseconds.
    Us,
}

/// Reads files of another simulator and writes a scenario.
pub fn import(from: &From) -> Result<ExitCode, Problem> {
    match from {
        From::Htsim { cm, topo, starts, out } => {
            let read: Vec<&Path> = [Some(cm), topo.as_ref()].into_iter().flatten().map(PathBuf::as_path).collect();
            let (cm_name, cm_text) = (cm.display().to_string(), read_text(cm)?);
            let topo = topo.as_ref().map(|path| Ok((path.display().to_string(), read_text(path)?))).transpose()?;
            let topo = topo.as_ref().map(|(name, text)| Text { name, text });
            let starts = match starts {
                Unit::Ps => Starts::Picoseconds,
                Unit::Us => Starts::Microseconds,
            };
            let make = |stem: &str| htsim::import_from(Text { name: &cm_name, text: &cm_text }, starts, topo, stem);
            write(out, &read, ("csv", htsim::FROM), make)
        }
        From::Chakra { traces, out } => {
            let mut contents = Vec::new();
            for path in traces {
                let name = path.display().to_string();
                let bytes = std::fs::read(path).map_err(|error| {
                    Problem::new(&name, format!("cannot be read: {error}")).help("give the files of all ranks")
                })?;
                contents.push((name, bytes));
            }
            let files: Vec<chakra::File<'_>> =
                contents.iter().map(|(name, bytes)| chakra::File { name, bytes }).collect();
            let read: Vec<&Path> = traces.iter().map(PathBuf::as_path).collect();
            write(out, &read, ("goal", chakra::FROM), |stem| chakra::import(&files, stem))
        }
        From::Simccl { flows, out } => {
            let (name, text) = (flows.display().to_string(), read_text(flows)?);
            let list = Text { name: &name, text: &text };
            write(out, &[flows], ("goal", simccl::FROM), |stem| simccl::import(list, stem))
        }
    }
}

/// Writes what was imported: the scenario, its flows beside it with that ending, and its graph. Files that `from` did not begin are left alone.
fn write(
    out: &Path,
    read: &[&Path],
    (ending, from): (&str, &str),
    make: impl FnOnce(&str) -> Result<Imported, Problem>,
) -> Result<ExitCode, Problem> {
    let beside = |ending: &str| out.with_extension(ending);
    if out.extension().is_none_or(|ending| ending != "toml") {
        return Err(Problem::new("--out", "is not the name of a scenario").help("end it with .toml"));
    }
    let Some(stem) = out.file_stem().and_then(|stem| stem.to_str()) else {
        return Err(Problem::new("--out", "is not text in UTF-8, and the scenario names files after it")
            .help("use another name"));
    };
    let imported = make(stem)?;
    let (flows, graph) = (beside(ending), beside("graph.toml"));
    let mut all: Vec<(&Path, &str)> = vec![(&flows, &imported.flows)];
    all.extend(imported.graph.as_ref().map(|text| (graph.as_path(), text.as_str())));
    all.push((out, &imported.scenario));
    let names: Vec<&Path> = all.iter().map(|(path, _)| *path).collect();
    files::outputs::check_outputs(&names, read)?;
    check_own(out, &names, from)?;
    files::write_all(&all)?;
    imported.notes.iter().for_each(|note| progress::note(note));
    printed(say(format!("{}\n", out.display())))
}

/// Refuses to write over files that no earlier import of the same name has written.
fn check_own(out: &Path, names: &[&Path], from: &str) -> Result<(), Problem> {
    let earlier = std::fs::read_to_string(out).unwrap_or_default();
    let own = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        earlier.starts_with(from) && (path == out || earlier.contains(&quote(&name)))
    };
    match names.iter().find(|path| path.exists() && !own(path)) {
        Some(path) => {
            Err(Problem::new(path.display().to_string(), "is there already, and is not of an earlier import")
                .help("choose another name with --out, or move the file away"))
        }
        None => Ok(()),
    }
}
