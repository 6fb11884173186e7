//! A folder of results: `summary.json`, `flows.parquet` and the scenario that gave them.

use crate::files::{Folder, SUMMARY};
use crate::measure::{SizeBin, Spread, by_size, slowdowns};
use crate::problem::Problem;
use arrow::array::{ArrayRef, Float64Array, StringArray, UInt8Array, UInt32Array, UInt64Array};
use arrow::record_batch::RecordBatch;
use engine::Time;
use fabric::Outcome;
use fabric::network::Stall;
use fabric::routing::PortMap;
use fabric::topology::{Graph, Kind};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// What a run was: the part of a summary that its input decides.
#[derive(Clone, Debug, Serialize)]
pub struct Identity {
    /// The scenario's title.
    pub scenario: String,
    /// Flow control by name.
    pub flow_control: String,
    /// Congestion control by name.
    pub congestion_control: String,
    /// The seed.
    pub seed: u64,
}

/// Packets and bytes of message.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Volume {
    /// Packets.
    pub packets: u64,
    /// Bytes of message.
    pub bytes: u64,
}

impl From<(u64, u64)> for Volume {
    fn from((packets, bytes): (u64, u64)) -> Volume {
        Volume { packets, bytes }
    }
}

/// Packets lost, by cause.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Dropped {
    /// In all.
    pub packets: u64,
    /// Bytes on the wire of all of them.
    pub wire_bytes: u64,
    /// No room in a buffer.
    pub buffer: u64,
    /// Lost or damaged on a link.
    pub link_fault: u64,
    /// Lost with a link that went down, or without a way.
    pub link_down: u64,
}

/// How long a link was held by pauses, in one direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PausedLink {
    /// The sender that had to wait.
    pub from: String,
    /// The receiver that made it wait.
    pub to: String,
    /// Picoseconds.
    pub paused_ps: u64,
    /// Of the time from the first flow's start to the end.
    pub share: f64,
}

/// Pauses.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pauses {
    /// Pause frames obeyed.
    pub pauses: u64,
    /// Resume frames obeyed.
    pub resumes: u64,
    /// Sum over all links and directions.
    pub paused_ps: u64,
    /// The links that were held at all.
    pub links: Vec<PausedLink>,
}

/// A switch's memory.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Occupancy {
    /// The switch.
    pub switch: String,
    /// The most bytes it ever held; exact.
    pub peak: u64,
    /// Bytes held at the sampling instants.
    pub sampled: Spread,
}

/// Memory of all switches.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Buffers {
    /// The most that any switch ever held.
    pub peak: u64,
    /// Samples of all switches together.
    pub sampled: Spread,
    /// Switch by switch.
    pub switches: Vec<Occupancy>,
}

/// What the run cost; the only part of a summary that differs from one run to the next.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// Seconds on the clock, from the built fabric to the last event.
    pub wall_seconds: f64,
    /// Packet-hops per second of it.
    pub packet_hops_per_second: f64,
    /// Peak resident memory of the process, where the system tells.
    pub peak_memory_bytes: Option<u64>,
}

/// `summary.json`.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Version of the program.
    pub tailwater: &'static str,
    /// What ran.
    #[serde(flatten)]
    pub identity: Identity,
    /// Flows in the scenario.
    pub flows: usize,
    /// Flows acknowledged to the end.
    pub finished: usize,
    /// Simulated picoseconds.
    pub end_ps: u64,
    /// How the run ended: `complete`, `stopped`, `interrupted`, `deadlock`, `blocked` or `lost`.
    pub ending: &'static str,
    /// The ports of a deadlock's circle, or all that are blocked, as `from -> to`.
    pub waiting: Vec<String>,
    /// Handed to links by senders, retransmissions included.
    pub injected: Volume,
    /// Reached their receivers, duplicates included.
    pub delivered: Volume,
    /// Sent again.
    pub retransmitted: Volume,
    /// Lost.
    pub dropped: Dropped,
    /// Packets queued or in flight at the end.
    pub left: u64,
    /// Data packets marked by switches.
    pub marked: u64,
    /// ACKs and NACKs sent.
    pub acks: u64,
    /// Senders that started over after a timeout.
    pub timeouts: u64,
    /// Slowdown of finished flows.
    pub slowdown: Spread,
    /// The same by size.
    pub slowdown_by_size: Vec<SizeBin>,
    /// Pauses.
    pub pause: Pauses,
    /// Switch memory.
    pub buffer: Buffers,
    /// What the schemes counted.
    pub counters: BTreeMap<String, u64>,
    /// Events handled.
    pub events: u64,
    /// Packets that crossed a link.
    pub packet_hops: u64,
    /// Promises that were broken; empty in every result that can be believed.
    pub violations: Vec<String>,
    /// Time and memory.
    pub cost: Cost,
}

/// `from -> to` of a port.
fn port_name(graph: &Graph, map: &PortMap, port: u32) -> (String, String) {
    let name = |p: u32| graph.nodes[map.node[p as usize] as usize].name.clone();
    (name(port), name(map.peer[port as usize]))
}

impl Summary {
    /// Sums up a run.
    pub fn new(identity: Identity, graph: &Graph, outcome: &Outcome, wall: Duration) -> Summary {
        let map = PortMap::new(graph);
        let c = &outcome.counts;
        let begin = outcome.flows.first().map_or(Time::ZERO, |f| f.spec.start);
        let span = outcome.end.saturating_sub(begin).0.max(1) as f64;
        let (ending, ports) = match &outcome.stall {
            _ if outcome.interrupted => ("interrupted", &[][..]),
            Some(Stall::Deadlock(ports)) => ("deadlock", &ports[..]),
            Some(Stall::Blocked(ports)) => ("blocked", &ports[..]),
            Some(Stall::Lost) => ("lost", &[][..]),
            None if outcome.complete() => ("complete", &[][..]),
            None => ("stopped", &[][..]),
        };
        let waiting = ports.iter().map(|&p| port_name(graph, &map, p)).map(|(a, b)| format!("{a} -> {b}")).collect();
        let slowdowns = slowdowns(outcome);
        let switches = graph.nodes.iter().enumerate().filter(|(_, n)| n.kind == Kind::Switch);
        let to_f64 = |samples: &[u32]| samples.iter().map(|&s| s as f64).collect::<Vec<_>>();
        let all_samples: Vec<f64> = outcome.samples.iter().flat_map(|s| to_f64(s)).collect();
        let links = outcome.paused.iter().enumerate().filter(|(_, t)| **t > Time::ZERO).map(|(port, t)| {
            let (from, to) = port_name(graph, &map, port as u32);
            PausedLink { from, to, paused_ps: t.0, share: t.0 as f64 / span }
        });
        let wall_seconds = wall.as_secs_f64();
        Summary {
            tailwater: env!("CARGO_PKG_VERSION"),
            identity,
            flows: outcome.flows.len(),
            finished: outcome.finished.len(),
            end_ps: outcome.end.0,
            ending,
            waiting,
            injected: c.injected.into(),
            delivered: c.delivered.into(),
            retransmitted: c.retransmitted.into(),
            dropped: Dropped {
                packets: c.dropped_full + c.dropped_fault + c.dropped_down,
                wire_bytes: c.dropped_bytes,
                buffer: c.dropped_full,
                link_fault: c.dropped_fault,
                link_down: c.dropped_down,
            },
            left: outcome.left,
            marked: c.marked,
            acks: c.acks,
            timeouts: c.timeouts,
            slowdown: Spread::of(slowdowns.iter().map(|(_, s)| *s).collect()),
            slowdown_by_size: by_size(&slowdowns),
            pause: Pauses {
                pauses: c.pauses,
                resumes: c.resumes,
                paused_ps: outcome.paused.iter().map(|t| t.0).sum(),
                links: links.collect(),
            },
            buffer: Buffers {
                peak: outcome.peak.iter().copied().max().unwrap_or(0),
                sampled: Spread::of(all_samples),
                switches: switches
                    .map(|(node, n)| Occupancy {
                        switch: n.name.clone(),
                        peak: outcome.peak[node],
                        sampled: Spread::of(to_f64(&outcome.samples[node])),
                    })
                    .collect(),
            },
            counters: outcome
                .flow_control
                .iter()
                .chain(&outcome.congestion_control)
                .map(|(name, count)| (name.to_string(), *count))
                .collect(),
            events: c.events,
            packet_hops: c.hops,
            violations: outcome.violations.clone(),
            cost: Cost {
                wall_seconds,
                packet_hops_per_second: c.hops as f64 / wall_seconds.max(1e-9),
                peak_memory_bytes: peak_memory(),
            },
        }
    }
}

/// Peak resident memory of this process, where the system tells.
pub fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kb| kb * 1024)
}

/// Writes a folder of results and gives its path.
pub fn write(
    folder: Folder,
    summary: &Summary,
    scenario: &str,
    graph: &Graph,
    outcome: &Outcome,
) -> Result<PathBuf, Problem> {
    write_flows(&folder.file("flows.parquet"), graph, outcome)?;
    folder.write("scenario.toml", scenario)?;
    let text =
        serde_json::to_string_pretty(summary).map_err(|e| Problem::new(SUMMARY, format!("cannot be written: {e}")))?;
    folder.write(SUMMARY, &(text + "\n"))?;
    folder.publish()
}

/// The time from a flow's start to `then`, if that came.
fn since(start: Time, then: Time) -> Option<u64> {
    (then != Time::MAX).then(|| (then - start).0)
}

/// Writes the flows, one row each, as a Parquet table.
fn write_flows(path: &Path, graph: &Graph, outcome: &Outcome) -> Result<(), Problem> {
    let rows = &outcome.flows;
    let name = |node: u32| graph.nodes[node as usize].name.as_str();
    let fct = |then: fn(&fabric::network::FlowRecord) -> Time| -> ArrayRef {
        Arc::new(rows.iter().map(|f| since(f.spec.start, then(f))).collect::<UInt64Array>())
    };
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("flow", Arc::new((0..rows.len() as u32).collect::<UInt32Array>())),
        ("src", Arc::new(rows.iter().map(|f| Some(name(f.spec.src))).collect::<StringArray>())),
        ("dst", Arc::new(rows.iter().map(|f| Some(name(f.spec.dst))).collect::<StringArray>())),
        ("class", Arc::new(rows.iter().map(|f| f.spec.class).collect::<UInt8Array>())),
        ("size_bytes", Arc::new(rows.iter().map(|f| f.spec.size).collect::<UInt64Array>())),
        ("start_ps", Arc::new(rows.iter().map(|f| f.spec.start.0).collect::<UInt64Array>())),
        ("injected_ps", fct(|f| f.injected)),
        ("received_ps", fct(|f| f.received)),
        ("acknowledged_ps", fct(|f| f.acknowledged)),
        ("ideal_ps", Arc::new(rows.iter().map(|f| f.spec.ideal.0).collect::<UInt64Array>())),
        (
            "slowdown",
            Arc::new(
                rows.iter()
                    .map(|f| Some(since(f.spec.start, f.received)? as f64 / f.spec.ideal.0.max(1) as f64))
                    .collect::<Float64Array>(),
            ),
        ),
    ];
    let problem = |e: String| Problem::new(path.display().to_string(), format!("cannot be written: {e}"));
    let batch = RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, a)| (n, a, true)))
        .map_err(|e| problem(e.to_string()))?;
    let file = std::fs::File::create(path).map_err(|e| problem(e.to_string()))?;
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut writer =
        ArrowWriter::try_new(file, batch.schema(), Some(properties)).map_err(|e| problem(e.to_string()))?;
    writer.write(&batch).map_err(|e| problem(e.to_string()))?;
    writer.close().map_err(|e| problem(e.to_string()))?;
    Ok(())
}
