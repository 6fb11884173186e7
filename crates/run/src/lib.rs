//! Running one scenario, from its file to its folder of results.
//!
//! [`run()`] does it; [`outcome`] turns what came out into a summary and tables, [`recording`] into a recording, [`pcapng`] into a
//! capture. How fast runs are, [`mod@bench`] measures. Which code it was, [`code`] says.

pub mod bench;
mod causes;
mod code;
pub mod collective;
pub mod forward;
pub mod job;
pub mod outcome;
pub mod pcapng;
pub mod recording;
pub mod slowdown;
pub mod why;

pub use code::{code, code_of};

use crate::forward::FastForward;
use crate::outcome::{Identity, Summary};
use crate::pcapng::Scene;
use ::estimate::Estimate;
use engine::Time;
use fabric::Outcome;
use fabric::axes::FlowControlDef;
use fabric::axes::flow_control::Report;
use fabric::id::NodeId;
use fabric::routing::PortMap;
use fabric::topology::Graph;
use files::Folder;
use files::problem::Problem;
use results::causes::Causes;
use results::recording::RECORDING;
use results::records::JOBS;
use results::tables::Columns;
use scenario::Scenario;
use scenario::document::{Document, quote};
use scenario::estimate::Method;
use scenario::resolve::{Resolved, resolve};
use std::path::{Path, PathBuf};
use std::time::Instant;
use traffic::Messages;

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
    collectives: Vec<Messages>,
    jobs: job::Jobs,
    capture: Option<Capture>,
    recorded: Option<recording::Scene>,
    causes: Option<Causes>,
}

/// What is needed to write what was captured.
struct Capture {
    ports: Vec<u32>,
    flow_control: Box<dyn FlowControlDef>,
    payload: u64,
}

/// Runs a resolved scenario.
pub fn run(resolved: Resolved, report: &mut Report<'_>) -> Finished {
    let recorded = resolved.setup.measure.record.is_some().then(|| recording::Scene::new(&resolved));
    let setup = &resolved.setup;
    let graph = setup.graph.clone();
    let identity = Identity::of(&resolved);
    let (capture, payload) = (setup.measure.capture.clone(), setup.nic.payload as u64);
    let start = Instant::now();
    let mut forward = None;
    let (outcome, estimate) = match resolved.estimate.method {
        Method::None => (simulate(&resolved, report, &mut forward), None),
        _ => {
            let Estimate { outcome, about } = estimate::estimate(&resolved, report);
            (outcome, Some(about))
        }
    };
    let (groups, collectives) = (resolved.groups, resolved.collectives);
    let jobs = job::Jobs::new(&resolved.jobs, &resolved.setup, &outcome);
    let wall = start.elapsed();
    let causes = causes::of(&graph, &PortMap::new(&graph), &outcome);
    let mut summary = Summary::new(identity, &graph, &groups, &collectives, &outcome, causes.as_ref(), wall);
    summary.estimate = estimate;
    summary.jobs = jobs.all.clone();
    summary.fast_forward = forward;
    summary.notes = resolved.notes.iter().map(ToString::to_string).collect();
    let flow_control = resolved.choices.flow_control;
    let capture = capture.map(|capture| Capture { ports: capture.ports, flow_control, payload });
    Finished { summary, outcome, graph, groups, collectives, jobs, capture, recorded, causes }
}

/// Simulates it, and skips what may be skipped; again and exactly, if what was skipped is off by more than was asked for.
fn simulate(resolved: &Resolved, report: &mut Report<'_>, forward: &mut Option<FastForward>) -> Outcome {
    if let Some((outcome, about)) = repeat_soon(resolved, report) {
        *forward = Some(about);
        return outcome;
    }
    let streams = resolved.setup.within.and_then(|within| {
        let skipped = estimate::skip::skip(resolved, report)?;
        Some((FastForward::of_streams(within, &skipped), skipped))
    });
    let tried = match streams {
        Some((about, skipped)) if !about.streams_exceed() => {
            *forward = Some(about);
            return skipped.outcome;
        }
        Some((about, _)) => Some(FastForward { fell_back: true, ..about }),
        None => None,
    };
    if let Some(within) = resolved.setup.within.filter(|_| !resolved.repeats) {
        *forward = Some(tried.unwrap_or_else(|| FastForward::nothing(within)));
        return resolved.simulate_exactly(report);
    }
    let outcome = resolved.simulate(report);
    *forward = FastForward::of(&outcome);
    match forward {
        Some(about) if about.exceeds(&outcome) && !outcome.interrupted => {
            about.fell_back = true;
            resolved.simulate_exactly(report)
        }
        _ => outcome,
    }
}

/// Tries for a small part of the run's work whether all of it repeats: what is exact goes before all else.
fn repeat_soon(resolved: &Resolved, report: &mut Report<'_>) -> Option<(Outcome, FastForward)> {
    resolved.setup.within.filter(|_| resolved.repeats)?;
    let most = estimate::skip::hops(&resolved.setup) as u64 / SOON;
    let outcome = resolved.simulate(&mut |now, hops| hops < most && report(now, hops));
    let about = FastForward::of(&outcome)?;
    (!outcome.interrupted && about.exact()).then_some((outcome, about))
}

/// What repeats shows it within such a part of a run.
const SOON: u64 = 200;

impl Finished {
    /// The same, of whose recording only what is after an instant is written; the last frame at the least.
    pub fn recorded_from(mut self, from: Time) -> Finished {
        self.recorded.iter_mut().for_each(|scene| scene.from = from);
        self
    }

    /// Its tables, in memory, by the names of their files.
    pub fn tables(&self) -> Vec<(&'static str, Columns)> {
        let causes = self.causes.as_ref();
        if self.summary.flows_alone() {
            let mut all = outcome::estimated_columns(&self.graph, &self.groups, &self.collectives, &self.outcome);
            all.extend(self.job_columns());
            return all;
        }
        let mut all = outcome::all_columns(&self.graph, &self.groups, &self.collectives, &self.outcome, causes);
        all.extend(self.job_columns());
        all
    }

    fn job_columns(&self) -> Option<(&'static str, Columns)> {
        (!self.jobs.all.is_empty()).then(|| (JOBS, self.jobs.columns()))
    }

    /// The flow that finished with the largest slowdown, in words; the first of several.
    pub fn slowest(&self) -> Option<String> {
        let flows = self.outcome.flows.iter().enumerate().rev();
        let slowed = flows.filter_map(|(i, flow)| Some((i, flow, slowdown::slowdown(flow)?)));
        let (i, flow, slowdown) = slowed.max_by(|a, b| a.2.total_cmp(&b.2))?;
        let name = |node: NodeId| &self.graph.nodes[node.index()].name;
        let group = match &self.groups[..] {
            [] | [_] => String::new(),
            groups => format!(", group \"{}\"", groups[flow.spec.tag as usize]),
        };
        let us = slowdown::since(flow, flow.received)? as f64 / 1e6;
        Some(format!(
            "flow {i} ({} to {}, {}{group}) took {us:.3} us, {slowdown:.2} times as long as alone",
            name(flow.spec.src),
            name(flow.spec.dst),
            results::print::size(flow.size),
        ))
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
        outcome::write(folder, &self.summary, scenario, self.tables())
    }
}

/// The scenario as it was run, which gives the same by itself as long as the files that it names are beside it: its text, or with what was
/// changed in it. Its first line is the command, if there was one.
pub fn as_run(name: &str, text: &str, sets: &[String], command: Option<&str>) -> Result<String, Problem> {
    let mut document = Document::parse(name.to_string(), text)?;
    sets.iter().try_for_each(|set| document.set(set))?;
    // Without a title a run has its file's name.
    let untitled = document.value("name").is_none() && !name.contains(char::is_control);
    let title = if untitled { format!("name = {}\n", quote(name)) } else { String::new() };
    let command = command.filter(|command| !command.contains(char::is_control));
    let head = command.map_or(String::new(), |command| format!("# {command}\n"));
    Ok(match sets {
        [] => format!("{head}{title}{}\n", text.trim_start_matches('\u{feff}').trim_end()),
        _ if head.is_empty() => format!("{title}{}", document.canonical()),
        _ => format!("{head}\n{title}{}", document.canonical()),
    })
}

/// Reads and resolves a scenario file with overrides.
pub fn load(path: &Path, sets: &[String]) -> Result<Resolved, Problem> {
    resolve(Scenario::load(path, sets)?)
}

/// Tests find the schemes that come with the program.
#[cfg(test)]
#[ctor::ctor]
#[allow(unsafe_code)]
fn install() {
    schemes::install();
}
