//! The front end for the HPCC authors' ns-3 simulator: its files in, its files out.
//!
//! Nothing in the fabric knows of it: [`translate`] turns the files into a [`fabric::Setup`] like any other, with that
//! simulator's header sizes, grain of time, acknowledgements and window, and [`output`] writes what it would.

pub mod balancing;
pub mod broadcom;
pub mod config;
pub mod export;
pub mod flows;
pub mod forks;
pub mod irn;
pub mod order;
pub mod output;
pub mod pint;
pub mod rand;
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
    /// What the command line says.
    pub options: Options,
    /// What the reference would pass over in silence: more lines than a file announces.
    pub notes: Vec<Problem>,
}

/// What is said on the command line and not in a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// The topology file, in place of the one that the configuration names.
    pub topology: Option<PathBuf>,
    /// The flow file, in place of the one that the configuration names.
    pub flows: Option<PathBuf>,
    /// The folder of all results, in place of those that the configuration names.
    pub out: Option<PathBuf>,
    /// Options of ns3-datacenter's programs.
    pub datacenter: forks::powertcp::Choices,
}

/// Reads a configuration and the files it names, which are relative to the working directory.
pub fn read(path: &Path) -> Result<Inputs, Problem> {
    read_with(path, Options::default())
}

/// The same with what the command line says.
pub fn read_with(path: &Path, options: Options) -> Result<Inputs, Problem> {
    let mut config = config::parse_with(&path.display().to_string(), &read_text(path)?, &options)?;
    let topology_file = config.topology_file.display().to_string();
    let mut notes = Vec::new();
    let text = read_text(&config.topology_file).map_err(|problem| unreadable(&config, &options).unwrap_or(problem))?;
    let (topology, surplus) = read_topology(&topology_file, &text, &mut config)?;
    let fork = config.fork;
    if *fork != forks::hpcc::FORK {
        let differs = fork.differs.map_or(String::new(), |why| format!("; not the same to the byte: {why}"));
        notes.push(Problem::new(path.display().to_string(), format!("read as {} ({}){differs}", fork.name, fork.home)));
    }
    forks::powertcp::take(&mut config, &options)?;
    notes.extend(config.unwritten());
    if *fork == forks::floodgate::FORK {
        notes.extend(forks::floodgate::notes(&config));
    }
    notes.extend(surplus);
    let (flows, surplus) = flows_of(&config, &topology, &options)?;
    notes.extend(surplus);
    // Some examples name a list of nodes that is not there, of which nothing would be written.
    if let Some(file) = &config.trace_file
        && (*fork == forks::hpcc::FORK || file.exists())
    {
        let name = file.display().to_string();
        let text = read_text(file).map_err(|problem| unreadable(&config, &options).unwrap_or(problem))?;
        let (traced, surplus) = trace::parse_with_surplus(&name, &text, &topology)?;
        notes.extend(surplus);
        if config.enable_trace && !traced.is_empty() {
            let message = format!("the binary packet trace of {} nodes is not written", traced.len());
            notes.push(
                config
                    .problem("ENABLE_TRACE", message)
                    .help("the run itself is the same; write ENABLE_TRACE 0 if no trace is wanted"),
            );
        }
    }
    Ok(Inputs { config, topology, flows, config_file: path.into(), topology_file, options, notes })
}

/// All files that cannot be read, of those that the configuration names and that the run needs, with the place where it does.
fn unreadable(config: &config::Config, options: &Options) -> Option<Problem> {
    let drawn = *config.fork == forks::floodgate::FORK && !config.floodgate.from_file;
    let own = !drawn && options.datacenter.workload.is_none();
    let traces = *config.fork == forks::hpcc::FORK;
    let files = [
        ("TOPOLOGY_FILE", Some(&config.topology_file), options.topology.is_some(), None),
        ("FLOW_FILE", Some(&config.flow_file).filter(|_| own), options.flows.is_some(), config.fork.without_flows),
        ("TRACE_FILE", config.trace_file.as_ref().filter(|_| traces), false, None),
    ];
    Problem::all(files.into_iter().filter_map(|(key, file, given, help)| {
        let file = file?;
        let problem = read_text(file).err()?;
        let named = config.problem(key, "");
        Some(match (help, named.line.filter(|_| !given && !file.exists())) {
            (Some(help), _) => problem.help(help),
            (None, Some(line)) => problem.help(format!(
                "{key} names it, in line {line} of {}; names are taken from the current directory",
                named.file
            )),
            (None, None) => problem,
        })
    }))
}

/// The flows in the order of their starts, read or drawn, and what is wrong with the file's count.
fn flows_of(
    config: &config::Config,
    topology: &topology::Topology,
    options: &Options,
) -> Result<(Vec<flows::FlowLine>, Option<Problem>), Problem> {
    if let Some(workload) = &options.datacenter.workload {
        return Ok((flows::in_order(workload.draw(topology)?), None));
    }
    let fork = config.fork;
    if *fork == forks::floodgate::FORK && !config.floodgate.from_file {
        let drawn = forks::floodgate::traffic::draw(config, topology, translate::own_streams(topology))?;
        return Ok((flows::in_order(drawn), None));
    }
    let name = config.flow_file.display().to_string();
    let text = read_text(&config.flow_file).map_err(|problem| unreadable(config, options).unwrap_or(problem))?;
    let (flows, surplus) = flows::parse_as(&name, &text, topology, fork)?;
    Ok((flows::in_order(flows), surplus))
}

/// Reads a topology in the form that the configuration's simulator has. A configuration that could be several simulators' is told by it.
pub fn read_topology(
    file: &str,
    text: &str,
    config: &mut config::Config,
) -> Result<(topology::Topology, Option<Problem>), Problem> {
    let problem = match topology::parse_as(file, text, config.fork) {
        Ok(read) => return Ok(read),
        Err(problem) => problem,
    };
    if *config.fork == forks::hpcc::FORK
        && let Ok(read) = topology::parse_as(file, text, &forks::powertcp::FORK)
    {
        config.fork = &forks::powertcp::FORK;
        return Ok(read);
    }
    Err(problem)
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
        let drawn = !c.floodgate.from_file || self.options.datacenter.workload.is_some();
        let flow_file = Some(&c.flow_file).filter(|_| !drawn);
        let own = c.floodgate.config_file.as_ref();
        let read = [Some(&self.config_file), Some(&c.topology_file), flow_file, c.trace_file.as_ref(), own];
        let read: Vec<&Path> = read.into_iter().flatten().map(PathBuf::as_path).collect();
        files::outputs::check_outputs(&self.outputs(), &read)
    }

    /// Writes them.
    pub fn write(&self, graph: &Graph, outcome: &Outcome) -> Result<(), Problem> {
        let map = PortMap::new(graph);
        let texts = [
            match self.config.fork.results {
                forks::Results::Tabs => forks::floodgate::results::text(self, outcome),
                results => output::fct(outcome, results),
            },
            output::pfc(outcome, graph, &map),
            output::queue_lengths(outcome, graph, &map),
        ];
        let written: Vec<(&Path, &str)> = self.outputs().into_iter().zip(texts.iter().map(String::as_str)).collect();
        files::write_all(&written)
    }
}

/// Runs what was read.
pub fn run(inputs: &Inputs, report: &mut Report<'_>) -> Result<Outcome, Problem> {
    let translated = translate::translate(inputs)?;
    Ok(translated.run(report))
}
