//! The probes: what is measured, sampled, recorded and captured while a run goes on. None of it changes the run.

mod blame;
mod breadth;
mod capture;
mod causes;
mod counts;
mod crowd;
mod parts;
mod record;
mod roots;
mod sample;

pub use capture::Captured;
pub use causes::{Because, Fill, Filler, Kept, Loss, Lost, Scope, Stop, Stops, Subject, Waiting};
pub use counts::Counts;
pub use parts::{Part, Place, Span};
pub use record::{Column, FLOW_COLUMNS, PORT_COLUMNS, Recording};
pub use sample::{Samples, Series};

pub(crate) use breadth::{Breadth, Paused, Standstill};
pub(crate) use parts::Trail;
pub(crate) use record::Counted;
pub(crate) use sample::Pulse;

use crate::routing::PortMap;
use crate::run::shard::Shard;
use crate::setup::{Setup, Ties};
use causes::Causes;
use engine::Time;
use parts::Parts;
use record::Recorder;

/// A pause or resume as its receiver saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PauseEvent {
    /// When.
    pub time: Time,
    /// At which port.
    pub port: u32,
    /// Whether it stops the port or lets it go on.
    pub pause: bool,
}

/// The queue monitor's histograms at an instant: by port, how many samples had so many whole kilobytes.
pub type Histograms = (Time, Vec<Vec<u32>>);

/// Everything that is kept for people to look at.
pub(crate) struct Probes {
    pub(crate) pause_log: Vec<PauseEvent>,
    /// How much of each port pauses stop.
    pub(crate) breadth: Breadth,
    /// Time between samples now.
    pub(crate) sample_every: Option<Time>,
    /// Occupancy of the switches.
    pub(crate) samples: Samples,
    /// What is followed closely.
    pub(crate) series: Series,
    /// Queue-length histograms of the monitor: by port, samples with that many whole kilobytes.
    pub(crate) monitor: Vec<Vec<u32>>,
    pub(crate) kept: Vec<Histograms>,
    pub(crate) captured: Vec<Captured>,
    /// By port, how much more may be captured. Empty where nothing is.
    pub(crate) capture_left: Vec<u32>,
    /// What is recorded, if anything is.
    pub(crate) recorder: Option<Box<Recorder>>,
    /// Where the time of flows goes, if that is asked.
    pub(crate) parts: Option<Box<Parts>>,
    /// Who stopped whom and why, if that is asked.
    pub(crate) causes: Option<Box<Causes>>,
}

impl Probes {
    pub(crate) fn new(setup: &Setup, map: &PortMap, shard: &Option<Shard>) -> Probes {
        let measure = &setup.measure;
        let limits = measure.capture.iter().flat_map(|c| std::iter::repeat_n(c.limit, map.count()));
        let recorder = measure.record.as_ref();
        let marks = || setup.ports.iter().any(|port| port.ecn.is_some_and(|ecn| ecn.min > 0));
        Probes {
            pause_log: Vec::new(),
            breadth: Breadth::new(map.count(), setup.classes as u32),
            sample_every: measure.sample,
            samples: Samples::new(setup.graph.nodes.len()),
            series: Series::default(),
            monitor: vec![Vec::new(); if measure.queue_monitor.is_some() { map.count() } else { 0 }],
            kept: Vec::new(),
            captured: Vec::new(),
            capture_left: limits.collect(),
            recorder: recorder.map(|record| Box::new(Recorder::new(record, setup, map, shard))),
            parts: measure.why.then(|| Box::new(Parts::new(setup, shard))),
            causes: measure.why.then(|| Box::new(Causes::new(map.count(), marks()))),
        }
    }

    /// A pause or resume has come.
    pub(crate) fn log_pause(&mut self, time: Time, port: u32, pause: bool) {
        self.pause_log.push(PauseEvent { time, port, pause });
    }

    /// The pauses and resumes, in the order of time. Blocks and shards log them in their own order; of those at one instant the lower port
    /// comes first then, whoever ran it.
    pub(crate) fn take_pause_log(&mut self, ties: Ties) -> Vec<PauseEvent> {
        let mut log = std::mem::take(&mut self.pause_log);
        if ties == Ties::Cause {
            log.sort_by_key(|event| (event.time, event.port));
        }
        log
    }

    /// Takes over what another shard has kept of the nodes that `mine` picks.
    pub(crate) fn absorb(&mut self, mut other: Probes, setup: &Setup, map: &PortMap, mine: impl Fn(u32) -> bool) {
        for node in (0..self.samples.used.len()).filter(|&node| mine(node as u32)) {
            self.samples.used[node] = std::mem::take(&mut other.samples.used[node]);
            self.samples.watermarks[node] = std::mem::take(&mut other.samples.watermarks[node]);
        }
        if let Some(series) = &setup.measure.series {
            let port = |port: u32| mine(map.node[port as usize]);
            let flow = |flow: u32| mine(setup.flows[flow as usize].dst.0);
            self.series.absorb(&other.series, series, port, flow);
        }
        self.pause_log.append(&mut other.pause_log);
        for (kept, theirs) in self.kept.iter_mut().zip(&mut other.kept) {
            let ports = kept.1.iter_mut().zip(&mut theirs.1).enumerate();
            ports
                .filter(|(port, _)| mine(map.node[*port]))
                .for_each(|(_, (ours, theirs))| std::mem::swap(ours, theirs));
        }
        self.captured.append(&mut other.captured);
        self.breadth.absorb(&other.breadth, |port| mine(map.node[port]));
        if let (Some(recorder), Some(theirs)) = (&mut self.recorder, other.recorder) {
            recorder.recording.absorb(theirs.recording);
        }
        if let (Some(parts), Some(theirs)) = (&mut self.parts, other.parts) {
            parts.absorb(*theirs);
        }
        if let (Some(causes), Some(theirs)) = (&mut self.causes, other.causes) {
            causes.absorb(*theirs);
        }
    }
}
