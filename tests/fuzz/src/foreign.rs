//! Files of other simulators.

use crate::{has_a_place, install, parts};
use files::problem::Problem;
use interop::htsim::{self, Imported, Text};
use interop::ns3::forks::FORKS;
use interop::ns3::{self, Inputs};
use interop::simccl;
use scenario::resolve::resolve;
use scenario::{Beside, Scenario};
use std::sync::LazyLock;

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
