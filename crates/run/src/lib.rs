//! Running one scenario, from its file to its folder of results.
//!
//! [`run()`] does it; [`outcome`] turns what came out into a summary and tables, [`recording`] into a recording. How fast runs are,
//! [`mod@bench`] measures.

pub mod bench;
pub mod outcome;
pub mod recording;
pub mod slowdown;

use crate::outcome::{Identity, Summary};
use engine::Value;
use fabric::Outcome;
use fabric::routing::PortMap;
use fabric::topology::{Graph, Kind};
use files::Folder;
use files::problem::Problem;
use interop::pcapng::{self, Scene};
use results::recording::RECORDING;
use results::records::OVERRIDE;
use results::tables::Columns;
use scenario::Scenario;
use scenario::resolve::{Resolved, resolve};
use schemes::flow_control::{Choice, Report};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The file of what was captured.
pub const CAPTURE: &str = "capture.pcapng";

/// A run that has ended.
pub struct Finished {
    /// What came out, summed up.
    pub summary: Summary,
    /// What came out, whole.
    pub outcome: Outcome,
    graph: Graph,
    groups: Vec<String>,
    capture: Option<Capture>,
    recorded: Option<recording::Scene>,
}

/// What is needed to write what was captured.
struct Capture {
    ports: Vec<u32>,
    flow_control: Box<dyn Choice>,
    payload: u64,
}

/// Runs a resolved scenario.
pub fn run(resolved: Resolved, report: &mut Report<'_>) -> Finished {
    let recorded = resolved.setup.measure.record.is_some().then(|| recording::Scene::new(&resolved));
    let Resolved { name, setup, flow_control, congestion_control, edge_control, transport, promised, groups, .. } =
        resolved;
    let graph = setup.graph.clone();
    let map = PortMap::new(&graph);
    let switches = (0..).zip(&graph.nodes).filter(|(_, node)| node.kind == Kind::Switch);
    let ports = switches.map(|(node, _)| map.of(node).len()).max().unwrap_or(0);
    let identity = Identity {
        scenario: name,
        flow_control: flow_control.name().into(),
        congestion_control: congestion_control.name().into(),
        edge_control: edge_control.name().into(),
        transport: transport.name().into(),
        routing: setup.spread.show().trim_matches('"').into(),
        switch_state_bytes: flow_control.switch_state(ports as u64, setup.classes as u64),
        seed: setup.seed,
    };
    let (capture, payload) = (setup.measure.capture.clone(), setup.nic.payload as u64);
    let start = Instant::now();
    let outcome = flow_control.run(setup, promised, &|| congestion_control.build(), report);
    let summary = Summary::new(identity, &graph, &groups, &outcome, start.elapsed());
    let capture = capture.map(|capture| Capture { ports: capture.ports, flow_control, payload });
    Finished { summary, outcome, graph, groups, capture, recorded }
}

impl Finished {
    /// Its tables, in memory, by the names of their files.
    pub fn tables(&self) -> Vec<(&'static str, Columns)> {
        outcome::all_columns(&self.graph, &self.groups, &self.outcome)
    }

    /// Writes the folder of results; `scenario` is the file that gave them.
    pub fn write(&self, out: &Path, scenario: &str) -> Result<PathBuf, Problem> {
        self.write_into(Folder::prepare(out)?, scenario)
    }

    /// The same, into a folder that is prepared already.
    pub fn write_into(&self, folder: Folder, scenario: &str) -> Result<PathBuf, Problem> {
        if let Some(Capture { ports, flow_control, payload }) = &self.capture {
            let map = PortMap::new(&self.graph);
            let scene = Scene { graph: &self.graph, map: &map, flow_control: &**flow_control, payload: *payload };
            let mut bytes = Vec::new();
            // Memory does not refuse.
            _ = pcapng::write(&mut bytes, &scene, ports, &self.outcome.captured);
            folder.write(CAPTURE, bytes)?;
        }
        if let Some(scene) = &self.recorded {
            folder.write(RECORDING, scene.write(&self.summary.identity, &self.outcome))?;
        }
        outcome::write(folder, &self.summary, scenario, &self.graph, &self.groups, &self.outcome)
    }
}

/// The scenario as it was run: its text, and below it what was changed.
pub fn with_overrides(text: &str, sets: &[String]) -> String {
    let mut record = text.trim_end().to_string() + "\n";
    if !sets.is_empty() {
        record += "\n# Run with:\n";
        sets.iter().for_each(|set| record += &format!("{OVERRIDE}{set}\n"));
    }
    record
}

/// Reads and resolves a scenario file with overrides.
pub fn load(path: &Path, sets: &[String]) -> Result<Resolved, Problem> {
    resolve(Scenario::load(path, sets)?)
}
