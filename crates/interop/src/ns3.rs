//! The front end for the HPCC authors' ns-3 simulator: its files in, its files out.
//!
//! Nothing in the fabric knows of it: [`translate`] turns the files into a [`fabric::Setup`] like any other, with that
//! simulator's header sizes, grain of time, acknowledgements and window, and [`output`] writes what it would.

pub mod config;
pub mod export;
pub mod flows;
pub mod output;
pub mod tokens;
pub mod topology;
pub mod trace;
pub mod translate;

use fabric::Outcome;
use fabric::axes::flow_control::Report;
use fabric::routing::PortMap;
use fabric::topology::Graph;
use files::problem::{Problem, read_text};
use std::path::{Path, PathBuf};

/// The inputs of a run, read and found sound.
pub struct Inputs {
    /// The configuration.
    pub config: config::Config,
    /// The wiring.
    pub topology: topology::Topology,
    /// The flows.
    pub flows: Vec<flows::FlowLine>,
    /// The configuration's own file.
    pub config_file: PathBuf,
    /// The topology file's name, for messages.
    pub topology_file: String,
    /// What the reference would pass over in silence: more lines than a file announces.
    pub notes: Vec<Problem>,
}

/// Reads a configuration and the files it names, which are relative to the working directory.
pub fn read(path: &Path) -> Result<Inputs, Problem> {
    let config = config::parse(&path.display().to_string(), &read_text(path)?)?;
    let topology_file = config.topology_file.display().to_string();
    let mut notes = Vec::new();
    let (topology, surplus) = topology::parse_with_surplus(&topology_file, &read_text(&config.topology_file)?)?;
    notes.extend(surplus);
    let flow_file = config.flow_file.display().to_string();
    let (flows, surplus) = flows::parse_with_surplus(&flow_file, &read_text(&config.flow_file)?, &topology)?;
    notes.extend(surplus);
    if let Some(file) = &config.trace_file {
        let name = file.display().to_string();
        let (traced, surplus) = trace::parse_with_surplus(&name, &read_text(file)?, &topology)?;
        notes.extend(surplus);
        if config.enable_trace && !traced.is_empty() {
            let message = format!("a packet trace of {} nodes is asked for, and none is written", traced.len());
            return Err(config.problem("ENABLE_TRACE", message).help(
                "set ENABLE_TRACE 0, or list no nodes in the trace file; the binary trace format is not supported",
            ));
        }
    }
    Ok(Inputs { config, topology, flows, config_file: path.into(), topology_file, notes })
}

impl Inputs {
    /// The files that a run writes: completion times, pauses and, if it is asked for, queue lengths.
    pub fn outputs(&self) -> Vec<&Path> {
        let c = &self.config;
        [Some(&c.fct_output_file), Some(&c.pfc_output_file), c.qlen_mon_file.as_ref()]
            .into_iter()
            .flatten()
            .map(PathBuf::as_path)
            .collect()
    }

    /// Checks, before a long run, that they can be written, and that none of them is a file that was read.
    pub fn check_outputs(&self) -> Result<(), Problem> {
        let c = &self.config;
        let read = [Some(&self.config_file), Some(&c.topology_file), Some(&c.flow_file), c.trace_file.as_ref()];
        let read: Vec<&Path> = read.into_iter().flatten().map(PathBuf::as_path).collect();
        files::outputs::check_outputs(&self.outputs(), &read)
    }

    /// Writes them.
    pub fn write(&self, graph: &Graph, outcome: &Outcome) -> Result<(), Problem> {
        let map = PortMap::new(graph);
        let texts =
            [output::fct(outcome), output::pfc(outcome, graph, &map), output::queue_lengths(outcome, graph, &map)];
        let written: Vec<(&Path, &str)> = self.outputs().into_iter().zip(texts.iter().map(String::as_str)).collect();
        files::write_all(&written)
    }
}

/// Runs what was read.
pub fn run(inputs: &Inputs, report: &mut Report<'_>) -> Result<Outcome, Problem> {
    let translated = translate::translate(inputs)?;
    Ok(translated.run(report))
}
