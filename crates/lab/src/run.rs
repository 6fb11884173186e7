//! Running one scenario, from its file to its folder of results.

use crate::files::Folder;
use crate::problem::Problem;
use crate::resolve::{Resolved, resolve};
use crate::results::{self, Identity, Summary};
use crate::scenario::Scenario;
use fabric::Outcome;
use fabric::topology::Graph;
use schemes::flow_control::Report;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A run that has ended.
pub struct Finished {
    /// What came out, summed up.
    pub summary: Summary,
    /// What came out, whole.
    pub outcome: Outcome,
    graph: Graph,
    groups: Vec<String>,
}

/// Runs a resolved scenario.
pub fn run(resolved: Resolved, report: &mut Report<'_>) -> Finished {
    let Resolved { name, setup, flow_control, congestion_control, promised, groups, .. } = resolved;
    let identity = Identity {
        scenario: name,
        flow_control: flow_control.name().into(),
        congestion_control: congestion_control.name().into(),
        seed: setup.seed,
    };
    let graph = setup.graph.clone();
    let start = Instant::now();
    let outcome = flow_control.run(setup, promised, &|| congestion_control.build(), report);
    let summary = Summary::new(identity, &graph, &groups, &outcome, start.elapsed());
    Finished { summary, outcome, graph, groups }
}

impl Finished {
    /// Writes the folder of results; `scenario` is the file that gave them.
    pub fn write(&self, out: &Path, scenario: &str) -> Result<PathBuf, Problem> {
        self.write_into(Folder::prepare(out)?, scenario)
    }

    /// The same, into a folder that is prepared already.
    pub fn write_into(&self, folder: Folder, scenario: &str) -> Result<PathBuf, Problem> {
        results::write(folder, &self.summary, scenario, &self.graph, &self.groups, &self.outcome)
    }
}

/// Reads and resolves a scenario file with overrides.
pub fn load(path: &Path, sets: &[String]) -> Result<Resolved, Problem> {
    resolve(Scenario::load(path, sets)?)
}
