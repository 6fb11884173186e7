//! Results read back from their folder: what comparisons, verdicts and figures are made of.

use serde_json::Value;
use std::path::PathBuf;

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
    pub start_ps: u64,
    /// Until its last byte was first put on the sender's link.
    pub injected_ps: Option<u64>,
    /// Until its last byte was received.
    pub received_ps: Option<u64>,
    /// Until its last byte was acknowledged.
    pub acknowledged_ps: Option<u64>,
    /// The same alone in the network: until received.
    pub ideal_ps: Option<u64>,
    /// Received over ideal (BFC's definition of slowdown).
    pub slowdown: Option<f64>,
    /// Acknowledged over the same alone in the network (SFC's definition of slowdown).
    pub slowdown_acknowledged: Option<f64>,
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
}

/// One direction of a link over the whole run.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkRow {
    /// Sender.
    pub from: String,
    /// Receiver.
    pub to: String,
    /// Whether the receiver is a host.
    pub to_host: bool,
    /// Bits per second.
    pub rate_bps: u64,
    /// Bytes sent, of all packets.
    pub sent_bytes: u64,
    /// How long it was held by pauses.
    pub paused_ps: u64,
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
