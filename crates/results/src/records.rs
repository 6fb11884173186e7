//! Results read back from their folder: what comparisons, verdicts and figures are made of.

use crate::parquet::Spread;
use crate::tables::{self, Table};
use files::SUMMARY;
use files::problem::{Problem, read_text};
use serde_json::Value;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The table of flows.
pub const FLOWS: &str = "flows.parquet";
/// The table of the switches' memory over time.
pub const BUFFERS: &str = "buffers.parquet";
/// The table of links.
pub const LINKS: &str = "links.parquet";
/// Its column of the most bytes that waited for a link, in runs that were asked why.
pub const QUEUED: &str = "most_queued_bytes";
/// The table of the chosen ports over time.
pub const PORTS: &str = "ports.parquet";
/// The table of the chosen flows over time.
pub const RATES: &str = "rates.parquet";

/// The table of where the time of flows went.
pub const PARTS: &str = "parts.parquet";
/// The table of collectives.
pub const COLLECTIVES: &str = "collectives.parquet";
/// The table of jobs.
pub const JOBS: &str = "jobs.parquet";

/// How the first line of the scenario in a folder of results begins: it is the command that was given.
pub const COMMANDS: [&str; 2] = ["# tailwater run ", "# tailwater estimate "];

/// One flow. Times are since its start; `None` for what did not happen.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowRow {
    /// Sending host.
    pub src: String,
    /// Receiving host.
    pub dst: String,
    /// Name of its group.
    pub group: String,
    /// Bytes of message.
    pub size: u64,
    /// When it was handed to the NIC.
    pub start_ps: Option<u64>,
    /// Until its last byte was first put on the sender's link.
    pub injected_ps: Option<u64>,
    /// Until its last byte was received.
    pub received_ps: Option<u64>,
    /// Until its last byte was acknowledged.
    pub acknowledged_ps: Option<u64>,
    /// How long flow control held the flow itself at its NIC.
    pub held_ps: u64,
    /// How long its class was paused there while it was not held.
    pub paused_ps: u64,
    /// The same alone in the network: until received.
    pub ideal_ps: Option<u64>,
    /// Received over ideal.
    pub slowdown: Option<f64>,
    /// Acknowledged over the same alone in the network: the slowdown of SFC, and of BFC's and HPCC's authors.
    pub slowdown_acknowledged: Option<f64>,
}

impl FlowRow {
    /// Its slowdown in a run that ended then: infinite if it did not finish, whether it had begun or still waited for others. None if it has
    /// none by nature: it was to begin later, or to leave.
    pub fn slowdown_by(&self, end_ps: u64) -> Option<f64> {
        self.ideal_ps?;
        let later = self.start_ps.is_some_and(|start| start >= end_ps);
        self.slowdown.or((!later).then_some(f64::INFINITY))
    }
}

/// Memory of one switch at the sampling instants.
#[derive(Clone, Debug, PartialEq)]
pub struct BufferSeries {
    /// The switch.
    pub switch: String,
    /// Instants.
    pub time_ps: Vec<u64>,
    /// Bytes held then.
    pub bytes: Vec<u64>,
    /// The most held since the instant before.
    pub peak_bytes: Vec<u64>,
}

/// One direction of a link over the whole run.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkRow {
    /// Sender.
    pub from: String,
    /// Receiver.
    pub to: String,
    /// Whether the sender is a host.
    pub from_host: bool,
    /// Whether the receiver is a host.
    pub to_host: bool,
    /// Bits per second.
    pub rate_bps: u64,
    /// Bytes sent, of all packets.
    pub sent_bytes: u64,
    /// How long it was held by pauses, if only one of its queues.
    pub paused_ps: u64,
    /// How long a whole class of it was.
    pub paused_class_ps: u64,
    /// The most bytes that waited for it, in a run that was asked why.
    pub most_queued_bytes: Option<u64>,
}

/// A name for each of these links, by their ends: `from->to`, and with a number from 1 on, `from->to#2`, where two nodes have several.
pub fn link_names<'a>(ends: impl Iterator<Item = (&'a str, &'a str)> + Clone) -> Vec<String> {
    let mut counts: HashMap<(&str, &str), usize, BuildHasherDefault<Spread>> = HashMap::default();
    counts.reserve(ends.size_hint().0);
    ends.clone().for_each(|ends| *counts.entry(ends).or_default() += 1);
    counts.retain(|_, count| *count > 1);
    // From here on, how many have a name.
    counts.values_mut().for_each(|count| *count = 0);
    let name = |(from, to): (&'a str, &'a str)| {
        let mut name = String::with_capacity(from.len() + to.len() + 4);
        [from, "->", to].into_iter().for_each(|piece| name.push_str(piece));
        if let Some(next) = if counts.is_empty() { None } else { counts.get_mut(&(from, to)) } {
            *next += 1;
            name.push_str(&format!("#{next}"));
        }
        name
    };
    ends.map(name).collect()
}

/// A chosen port at the sampling instants.
#[derive(Clone, Debug, PartialEq)]
pub struct PortSeries {
    /// The node it belongs to.
    pub from: String,
    /// The node at the other end.
    pub to: String,
    /// Instants.
    pub time_ps: Vec<u64>,
    /// Bytes waiting then.
    pub queue_bytes: Vec<u64>,
    /// Bytes sent by then.
    pub sent_bytes: Vec<u64>,
}

/// A chosen flow at the sampling instants.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowSeries {
    /// Its row.
    pub flow: u32,
    /// Name of its group.
    pub group: String,
    /// Instants.
    pub time_ps: Vec<u64>,
    /// Bytes received in order by then.
    pub received_bytes: Vec<u64>,
}

/// A folder of results.
#[derive(Clone, Debug, PartialEq)]
pub struct Records {
    /// Where it is.
    pub folder: PathBuf,
    /// `summary.json`.
    pub summary: Value,
    /// Flow by flow.
    pub flows: Vec<FlowRow>,
    /// Switch by switch.
    pub buffers: Vec<BufferSeries>,
    /// Link by link, both directions.
    pub links: Vec<LinkRow>,
    /// The chosen ports.
    pub ports: Vec<PortSeries>,
    /// The chosen flows.
    pub rates: Vec<FlowSeries>,
}

/// Reads only the flows of a folder of results.
pub fn open_flows(folder: &Path) -> Result<Vec<FlowRow>, Problem> {
    flows(&tables::read(&folder.join(FLOWS))?)
}

/// Reads a folder of results back.
pub fn open(folder: &Path) -> Result<Records, Problem> {
    let path = folder.join(SUMMARY);
    let text = read_text(&path)?;
    let summary = serde_json::from_str(&text).map_err(|e| {
        Problem::new(path.display().to_string(), format!("is not what a run writes: {e}"))
            .help("remove its folder and run the scenario again")
    })?;
    let optional = |name: &str| folder.join(name).is_file().then(|| tables::read(&folder.join(name))).transpose();
    Ok(Records {
        folder: folder.to_owned(),
        summary,
        flows: flows(&tables::read(&folder.join(FLOWS))?)?,
        buffers: buffers(&tables::read(&folder.join(BUFFERS))?)?,
        links: links(&tables::read(&folder.join(LINKS))?)?,
        ports: optional(PORTS)?.map_or(Ok(vec![]), |table| ports(&table))?,
        rates: optional(RATES)?.map_or(Ok(vec![]), |table| rates(&table))?,
    })
}

fn flows(table: &Table) -> Result<Vec<FlowRow>, Problem> {
    let (src, dst, group) = (table.texts("src")?, table.texts("dst")?, table.texts("group")?);
    let (size, start) = (table.counts("size_bytes")?, table.maybe_counts("start_ps")?);
    let time = |name| table.maybe_counts(name);
    let (injected, received, acknowledged) = (time("injected_ps")?, time("received_ps")?, time("acknowledged_ps")?);
    let ideal = time("ideal_ps")?;
    // Runs from before do not have them.
    let has = |name: &str| table.columns().iter().any(|(column, _)| column == name);
    let stood = |name| if has(name) { table.counts(name) } else { Ok(vec![0; table.rows()]) };
    let (held, paused) = (stood("held_ps")?, stood("paused_ps")?);
    let slowdown = table.numbers("slowdown")?;
    let slowdown_acknowledged = table.numbers("slowdown_acknowledged")?;
    let row = |row: usize| FlowRow {
        src: src[row].into(),
        dst: dst[row].into(),
        group: group[row].into(),
        size: size[row],
        start_ps: start[row],
        injected_ps: injected[row],
        received_ps: received[row],
        acknowledged_ps: acknowledged[row],
        held_ps: held[row],
        paused_ps: paused[row],
        ideal_ps: ideal[row],
        slowdown: slowdown[row],
        slowdown_acknowledged: slowdown_acknowledged[row],
    };
    Ok((0..table.rows()).map(row).collect())
}

/// Where the value of a column changes: ranges of rows that belong together.
fn runs<T: PartialEq>(column: &[T]) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for row in 0..column.len() {
        match runs.last_mut() {
            Some(run) if column[run.start] == column[row] => run.end = row + 1,
            _ => runs.push(row..row + 1),
        }
    }
    runs
}

fn buffers(table: &Table) -> Result<Vec<BufferSeries>, Problem> {
    let (switch, time) = (table.texts("switch")?, table.counts("time_ps")?);
    let (bytes, peak) = (table.counts("bytes")?, table.counts("peak_bytes")?);
    let series = |run: Range<usize>| BufferSeries {
        switch: switch[run.start].into(),
        time_ps: time[run.clone()].to_vec(),
        bytes: bytes[run.clone()].to_vec(),
        peak_bytes: peak[run].to_vec(),
    };
    Ok(runs(&switch).into_iter().map(series).collect())
}

fn links(table: &Table) -> Result<Vec<LinkRow>, Problem> {
    let (from, to) = (table.texts("from")?, table.texts("to")?);
    let (from_kind, to_kind) = (table.texts("from_kind")?, table.texts("to_kind")?);
    let (rate, sent, paused) = (table.counts("rate_bps")?, table.counts("sent_bytes")?, table.counts("paused_ps")?);
    // Earlier runs did not tell them apart.
    let has = |name: &str| table.columns().iter().any(|(column, _)| column == name);
    let class = if has("paused_class_ps") { table.counts("paused_class_ps")? } else { paused.clone() };
    let queued = if has(QUEUED) { Some(table.counts(QUEUED)?) } else { None };
    let row = |row: usize| LinkRow {
        from: from[row].into(),
        to: to[row].into(),
        from_host: from_kind[row] == "host",
        to_host: to_kind[row] == "host",
        rate_bps: rate[row],
        sent_bytes: sent[row],
        paused_ps: paused[row],
        paused_class_ps: class[row],
        most_queued_bytes: queued.as_ref().map(|queued| queued[row]),
    };
    Ok((0..table.rows()).map(row).collect())
}

fn ports(table: &Table) -> Result<Vec<PortSeries>, Problem> {
    let (port, from, to) = (table.counts("port")?, table.texts("from")?, table.texts("to")?);
    let time = table.counts("time_ps")?;
    let (queue, sent) = (table.counts("queue_bytes")?, table.counts("sent_bytes")?);
    let series = |run: Range<usize>| PortSeries {
        from: from[run.start].into(),
        to: to[run.start].into(),
        time_ps: time[run.clone()].to_vec(),
        queue_bytes: queue[run.clone()].to_vec(),
        sent_bytes: sent[run].to_vec(),
    };
    Ok(runs(&port).into_iter().map(series).collect())
}

fn rates(table: &Table) -> Result<Vec<FlowSeries>, Problem> {
    let (flow, group) = (table.counts("flow")?, table.texts("group")?);
    let (time, received) = (table.counts("time_ps")?, table.counts("received_bytes")?);
    let series = |run: Range<usize>| FlowSeries {
        flow: flow[run.start] as u32,
        group: group[run.start].into(),
        time_ps: time[run.clone()].to_vec(),
        received_bytes: received[run].to_vec(),
    };
    Ok(runs(&flow).into_iter().map(series).collect())
}
