//! Files of other simulators.

use crate::{has_a_place, install, parts, pieces};
use fabric::topology::{Graph, Shape, star::Star};
use files::problem::Problem;
use interop::chakra;
use interop::htsim::{self, Imported, Text};
use interop::ns3::forks::{FORKS, floodgate, powertcp};
use interop::ns3::{self, Inputs};
use interop::simccl;
use scenario::resolve::resolve;
use scenario::{Beside, Scenario};
use std::sync::LazyLock;
use traffic::{Names, Traffic, read_goal, write_goal};

/// Three hosts and a ring of three switches.
pub(crate) const TOPOLOGY: &str = include_str!("../../samples/ns3/topology.txt");

static RING: LazyLock<ns3::topology::Topology> =
    LazyLock::new(|| ns3::topology::parse("topology.txt", TOPOLOGY).unwrap_or_else(|problem| panic!("{problem}")));

/// A configuration.
pub fn config(bytes: &[u8]) {
    let Some([text]) = parts(bytes) else { return };
    if let Err(problem) = ns3::config::parse("config.txt", text) {
        has_a_place(&problem, &[("config.txt", text)]);
    }
}

/// A topology, in the form of each of the family.
pub fn topology(bytes: &[u8]) {
    let Some([text]) = parts(bytes) else { return };
    for fork in FORKS {
        match ns3::topology::parse_as("topology.txt", text, fork) {
            Err(problem) => has_a_place(&problem, &[("topology.txt", text)]),
            Ok((_, surplus)) => surplus.iter().for_each(|problem| has_a_place(problem, &[("topology.txt", text)])),
        }
    }
}

/// Flows on a topology, in the form of each of the family.
pub fn flows(bytes: &[u8]) {
    let Some([text]) = parts(bytes) else { return };
    for fork in FORKS {
        match ns3::flows::parse_as("flow.txt", text, &RING, fork) {
            Err(problem) => has_a_place(&problem, &[("flow.txt", text)]),
            Ok((flows, surplus)) => {
                flows
                    .iter()
                    .for_each(|flow| assert!(RING.is_host(flow.src) && RING.is_host(flow.dst) && flow.size > 0));
                surplus.iter().for_each(|problem| has_a_place(problem, &[("flow.txt", text)]));
            }
        }
    }
}

/// The nodes that are traced.
pub fn trace(bytes: &[u8]) {
    let Some([text]) = parts(bytes) else { return };
    match ns3::trace::parse_with_surplus("trace.txt", text, &RING) {
        Err(problem) => has_a_place(&problem, &[("trace.txt", text)]),
        Ok((nodes, surplus)) => {
            assert!(nodes.iter().all(|node| *node < 6));
            surplus.iter().for_each(|problem| has_a_place(problem, &[("trace.txt", text)]));
        }
    }
}

/// The four files together, as far as a run that could begin.
pub fn ns3(bytes: &[u8]) {
    install();
    let Some([config, topology, flows, trace]) = parts(bytes) else { return };
    let read = || -> Result<Inputs, Problem> {
        let config = ns3::config::parse("config.txt", config)?;
        let topology = ns3::topology::parse("topology.txt", topology)?;
        let flows = ns3::flows::parse("flow.txt", flows, &topology)?;
        ns3::trace::parse("trace.txt", trace, &topology)?;
        let (config_file, topology_file) = ("config.txt".into(), "topology.txt".into());
        let (options, notes) = Default::default();
        Ok(Inputs { config, config_file, topology, flows, topology_file, options, notes })
    };
    let refused = match read() {
        Ok(inputs) => ns3::translate::translate(&inputs).err(),
        Err(problem) => Some(problem),
    };
    let texts = [("config.txt", config), ("topology.txt", topology), ("flow.txt", flows), ("trace.txt", trace)];
    refused.iter().for_each(|problem| has_a_place(problem, &texts));
}

/// The four files in the form of that of the family which the configuration is of.
pub fn forks(bytes: &[u8]) {
    install();
    let Some([config, topology, flows, trace]) = parts(bytes) else { return };
    let read = || -> Result<Inputs, Problem> {
        let mut config = ns3::config::parse("config.txt", config)?;
        // It names a file, of which there is none.
        config.floodgate.config_file = None;
        let (topology, _) = ns3::read_topology("topology.txt", topology, &mut config)?;
        let (flows, _) = ns3::flows::parse_as("flow.txt", flows, &topology, config.fork)?;
        ns3::trace::parse_with_surplus("trace.txt", trace, &topology)?;
        let (config_file, topology_file) = ("config.txt".into(), "topology.txt".into());
        let (options, notes) = Default::default();
        Ok(Inputs { config, config_file, topology, flows, topology_file, options, notes })
    };
    let refused = match read() {
        Ok(inputs) => ns3::translate::translate(&inputs).err(),
        Err(problem) => Some(problem),
    };
    let texts = [("config.txt", config), ("topology.txt", topology), ("flow.txt", flows), ("trace.txt", trace)];
    refused.iter().for_each(|problem| has_a_place(problem, &texts));
}

/// Tables of sizes as PowerTCP's workload program and Floodgate have them.
pub fn sizes(bytes: &[u8]) {
    let Some([text]) = parts(bytes) else { return };
    let in_order = |points: &[(f64, f64)]| {
        assert!(
            !points.is_empty() && points.iter().all(|(size, share)| size.is_finite() && (0.0..=1.0).contains(share))
        );
        assert!(points.is_sorted_by(|a, b| a.0 <= b.0 && a.1 <= b.1), "{points:?}");
    };
    match powertcp::workload::sizes("sizes.txt", text) {
        Err(problem) => has_a_place(&problem, &[("sizes.txt", text)]),
        Ok(points) => in_order(&points),
    }
    match floodgate::traffic::points("sizes.txt", text) {
        Err(problem) => has_a_place(&problem, &[("sizes.txt", text)]),
        Ok((mean, points)) => {
            assert!(mean > 0);
            in_order(&points);
        }
    }
}

/// The switches with windows.
pub fn windows(bytes: &[u8]) {
    let Some([text]) = parts(bytes) else { return };
    match floodgate::windows::queues("windows.cfg", text, &RING) {
        Err(problem) => has_a_place(&problem, &[("windows.cfg", text)]),
        Ok(queues) => assert!(queues > 0),
    }
}

fn star(hosts: u32) -> Graph {
    Star { hosts, ..Star::default() }.build().unwrap_or_else(|error| panic!("{}", error.problem()))
}

static HOSTS: LazyLock<Graph> = LazyLock::new(|| star(4));

/// What a schedule moves and computes, in order.
fn work(traffic: &Traffic) -> (Vec<[u64; 3]>, Vec<[u64; 2]>) {
    let flows = traffic.flows.iter().map(|flow| [flow.src.0 as u64, flow.dst.0 as u64, flow.size]);
    let mut flows: Vec<_> = flows.collect();
    let tasks = traffic.tasks.iter().filter(|task| task.lasts.0 > 0).map(|task| [task.host.0 as u64, task.lasts.0]);
    let mut tasks: Vec<_> = tasks.collect();
    flows.sort_unstable();
    tasks.sort_unstable();
    (flows, tasks)
}

/// A schedule, which is written and read back.
pub fn goal(bytes: &[u8]) {
    let Some([text]) = parts(bytes) else { return };
    let names = Names::new(&HOSTS);
    match read_goal(text, &names) {
        Err(faults) => faults.list().iter().for_each(|fault| {
            assert!(!fault.message.is_empty() && !fault.help.is_empty(), "{fault}");
            assert!((1..=text.split('\n').count()).contains(&fault.line), "{fault}");
            assert!((1..=fault.source.chars().count() + 1).contains(&fault.column), "{fault}");
        }),
        Ok(traffic) => {
            let mut written = Vec::new();
            write_goal(&mut written, &HOSTS, &traffic).expect("memory does not refuse, and nobody leaves");
            let written = String::from_utf8(written).expect("text");
            let read = read_goal(&written, &names).unwrap_or_else(|fault| panic!("{fault}\n{written}"));
            assert_eq!(work(&read), work(&traffic), "{written}");
            if let Ok(flat) = traffic.without_tasks(10_000) {
                assert_eq!(work(&flat).0, work(&traffic).0);
            }
        }
    }
}

/// Traces of up to four ranks. What is made of them can be run.
pub fn chakra(bytes: &[u8]) {
    install();
    let names = ["t.0.et", "t.1.et", "t.2.et", "t.3.et"];
    let pieces = pieces(bytes, names.len());
    let files = names.iter().zip(&pieces).map(|(name, bytes)| chakra::File { name, bytes });
    let files: Vec<chakra::File<'_>> = files.collect();
    match chakra::import(&files, "made") {
        Err(problem) => {
            assert!(names.contains(&problem.file.as_str()), "{problem}");
            assert!(problem.help.is_some(), "{problem}");
            has_a_place(&problem, &[]);
        }
        Ok(Imported { scenario, flows, .. }) => {
            let graph = star(files.len() as u32);
            let read = read_goal(&flows, &Names::new(&graph));
            assert!(read.is_ok(), "{}\n{flows}", read.err().map_or(String::new(), |faults| faults.to_string()));
            let files = [("made.goal", flows.as_str())];
            let read = Scenario::parse_beside("made.toml", &scenario, Beside::Texts(&files), &[]).and_then(resolve);
            assert!(read.is_ok(), "{}\n{scenario}", read.err().map_or(String::new(), |problem| problem.to_string()));
        }
    }
}

/// A matrix and a topology, if there is one. What is made of them can be run.
pub fn htsim(bytes: &[u8]) {
    install();
    let Some([matrix, topology]) = parts(bytes) else { return };
    let named = |name, text| Text { name, text };
    let tree = (!topology.is_empty()).then(|| named("a.topo", topology));
    match htsim::import(named("a.cm", matrix), tree, "made") {
        Err(problem) => {
            assert!(["a.cm", "a.topo"].contains(&problem.file.as_str()), "{problem}");
            assert!(problem.help.is_some(), "{problem}");
            has_a_place(&problem, &[("a.cm", matrix), ("a.topo", topology)]);
        }
        Ok(Imported { scenario, flows, graph, .. }) => {
            let files = [("made.csv", flows.as_str()), ("made.graph.toml", graph.as_deref().unwrap_or_default())];
            let read = Scenario::parse_beside("made.toml", &scenario, Beside::Texts(&files), &[]).and_then(resolve);
            assert!(read.is_ok(), "{}\n{scenario}", read.err().map_or(String::new(), |problem| problem.to_string()));
        }
    }
}

/// A command line of uet-htsim with a matrix and a topology, if there is one. What is made of them can be run.
pub fn htsim_line(bytes: &[u8]) {
    install();
    let Some([line, matrix, topology]) = parts(bytes) else { return };
    let words: Vec<String> = line.split_whitespace().map(String::from).collect();
    let command = match htsim::command::Command::read(&words) {
        Ok(command) => command,
        Err(problem) => {
            problem.split().iter().for_each(|problem| {
                assert!(problem.file.starts_with('-') && problem.help.is_some(), "{problem}");
            });
            return;
        }
    };
    let named = |name, text| Text { name, text };
    let tree = (!topology.is_empty()).then(|| named("a.topo", topology));
    match htsim::plan::plan(&command, named("a.cm", matrix), tree) {
        Err(problem) => problem.split().iter().for_each(|problem| {
            assert!(problem.help.is_some(), "{problem}");
            if !problem.file.starts_with('-') {
                has_a_place(problem, &[("a.cm", matrix), ("a.topo", topology)]);
            }
        }),
        Ok(planned) => assert!(planned.resolved().is_ok(), "{}", planned.scenario),
    }
}

/// A list of flows of SimCCL. What is made of it can be run.
pub fn simccl(bytes: &[u8]) {
    install();
    let Some([list]) = parts(bytes) else { return };
    match simccl::import(Text { name: "flows.csv", text: list }, "made") {
        Err(problem) => has_a_place(&problem, &[("flows.csv", list)]),
        Ok(Imported { scenario, flows, .. }) => {
            let files = [("made.goal", flows.as_str())];
            let read = Scenario::parse_beside("made.toml", &scenario, Beside::Texts(&files), &[]).and_then(resolve);
            assert!(read.is_ok(), "{}\n{scenario}", read.err().map_or(String::new(), |problem| problem.to_string()));
        }
    }
}
