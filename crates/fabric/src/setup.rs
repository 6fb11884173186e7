//! Everything a run needs, resolved to numbers: what the front ends hand to the fabric.

use crate::buffer::Share;
use crate::clock::Clock;
use crate::id::{ClassId, FlowId, NodeId};
use crate::probe::Recording;
use crate::retry::Limits;
use crate::routing::{PortMap, Rule, Tuple};
use crate::topology::{Graph, Kind, WHOLE};
use engine::{Rate, Time};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A message from one host to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowSpec {
    /// Sending host.
    pub src: NodeId,
    /// Receiving host.
    pub dst: NodeId,
    /// Bytes of message; above zero.
    pub size: u64,
    /// When it is handed to the NIC.
    pub start: Time,
    /// Priority class, 0-based.
    pub class: ClassId,
    /// What switches hash.
    pub tuple: Tuple,
    /// Window in bytes at line rate; 0 for none.
    pub window: u64,
    /// Round-trip time of the idle network, for congestion control.
    pub base_rtt: Time,
    /// Completion time of the same message alone in the network, to its last byte received; the denominator of slowdown.
    pub ideal: Time,
    /// The same to the acknowledgement of its last byte.
    pub ideal_acknowledged: Time,
    /// When its sender leaves: what it has sent by then and one packet more is all there will be. [`Time::MAX`] for never.
    pub until: Time,
    /// Switches on its path.
    pub hops: u8,
    /// A number of the caller's own.
    pub tag: u16,
}

/// A flow that waits for another to end where this one starts: to be received there, or acknowledged there. Either may be a [`Task`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct After {
    /// The flow that waits. It starts at its `start` or when all it waits for has come, whichever is later.
    pub flow: FlowId,
    /// The flow it waits for.
    pub first: FlowId,
    /// Time between the two.
    pub gap: Time,
}

/// What a host does for a while when all that it waits for has come: it computes, or only waits for several things at once. It sends nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Who does it.
    pub host: NodeId,
    /// The earliest that it begins.
    pub start: Time,
    /// How long it takes.
    pub lasts: Time,
}

impl Task {
    /// Numbers from here on are tasks' where flows wait for one another.
    const FIRST: u32 = 1 << 31;

    /// What a task is called in an [`After`].
    pub fn id(number: usize) -> FlowId {
        FlowId(Task::FIRST | number as u32)
    }

    /// The number of the task that is called so; `None` for a flow.
    pub fn number(id: FlowId) -> Option<usize> {
        id.0.checked_sub(Task::FIRST).map(|number| number as usize)
    }

    /// A place for everything in one table: flows, and behind them tasks.
    pub fn place(id: FlowId, flows: usize) -> usize {
        Task::number(id).map_or(id.index(), |task| flows + task)
    }
}

/// When an egress queue marks packets (RED as data centres use it).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ecn {
    /// No marks up to this many bytes.
    pub min: u64,
    /// All packets are marked above this many bytes.
    pub max: u64,
    /// Probability just below `max`, reached linearly from `min`.
    pub probability: f64,
    /// What counts is all that waits at the port, not only in the packet's queue.
    pub by_port: bool,
}

/// Settings of one port.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PortSetup {
    /// Its share of the switch's memory, as an ingress.
    pub share: Share,
    /// Marking of its egress queues.
    pub ecn: Option<Ecn>,
    /// How long its egress queues may be, as a part of what is usual, in 1/65536; see [`Link::depths`](crate::topology::Link::depths).
    pub depth: u32,
}

impl Default for PortSetup {
    fn default() -> PortSetup {
        PortSetup { share: Share::default(), ecn: None, depth: WHOLE }
    }
}

impl PortSetup {
    /// The part of so many bytes of a queue that is this port's.
    pub fn part(&self, bytes: u64) -> u64 {
        part(bytes, self.depth)
    }
}

/// A part, in 1/65536, of so many bytes.
pub fn part(bytes: u64, depth: u32) -> u64 {
    match depth {
        WHOLE => bytes,
        _ => (bytes as u128 * depth as u128 / WHOLE as u128) as u64,
    }
}

/// How ports share the pool of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// By thresholds that follow what is free.
    Dynamic,
    /// So many bytes for every (ingress port, class), which may be more than there are for all of them together.
    Absolute(u64),
    /// The same share for every (ingress port, class).
    Ingress,
    /// The same share for every egress queue.
    Egress,
}

/// Settings of the switches.
#[derive(Clone, Debug)]
pub struct SwitchSetup {
    /// Bytes of shared pool per node (memory less headroom and reserve), hosts that forward included; `None` for no limit.
    pub pool: Vec<Option<u64>>,
    /// How the pool is shared.
    pub split: Split,
    /// Guaranteed to every (ingress port, class).
    pub reserve: u64,
    /// Accounts of every (ingress port, class): one, or two for schemes that distinguish two groups of packets.
    pub groups: u32,
    /// Bytes of headroom that all accounts of a switch share, used when their own is full.
    pub global_headroom: u64,
    /// How far under the threshold a paused account must be to resume.
    pub resume_gap: u64,
    /// Bytes of a cell, in which memory is given out; 1 for bytes. The sizes above are whole cells.
    pub cell: u32,
    /// A queue may hold at most this fraction (in 1/65536) of the free pool, and a reserve; `None` for no such limit.
    pub egress_alpha: Option<u64>,
    /// From a packet's arrival to its being queued.
    pub pipeline: Time,
    /// From the arrival of a frame at a switch or a NIC to its taking effect.
    pub reaction: Time,
    /// Queues per class and egress port; flows are hashed onto them.
    pub queues: u32,
    /// A queue of every port and class, counted from the first of them, that goes before all others.
    pub express: Option<u32>,
    /// Bytes per turn of a queue, for disciplines that count bytes.
    pub quantum: u32,
    /// What becomes of a packet that finds no room.
    pub overflow: Overflow,
}

/// What a switch does with a data packet that finds no room in its queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Overflow {
    /// It is dropped.
    Drop,
    /// It, or the last packet in its queue, is cut down to a header, which goes ahead of data.
    Trim(Trimming),
}

/// How a switch trims.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trimming {
    /// The most that a data queue may hold, in full packets.
    pub queue: u32,
    /// The most that the control packets at a port may be, in bytes.
    pub headers: u64,
    /// Bytes of a packet that lost its payload.
    pub header: u16,
    /// Control packets that a port sends before it lets a waiting data packet go.
    pub ratio: u32,
    /// Whether a header that finds no room goes back to its sender.
    pub returns: bool,
}

/// When a receiver acknowledges.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AckPolicy {
    /// Every so many packets, and at the end of a message.
    Every(u32),
    /// Every packet once `interval` bytes have arrived; before that where the byte count is a multiple of
    /// `chunk` (0: never). This is what the reference does.
    After {
        /// Bytes.
        interval: u64,
        /// Bytes.
        chunk: u64,
    },
}

/// Where ACKs travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckLane {
    /// In the strict-priority control queue of every port; pauses do not touch them.
    Control,
    /// In their flow's class. At the receiving host they wait while the given class is paused, or never.
    Data(Option<u8>),
}

engine::choice! {
    /// When a NIC with nothing to send looks again by itself.
    pub enum NicWake {
        /// As soon as any flow that may send is due.
        Due = "due",
        /// When the earliest of all unfinished flows is due; not at all if one of them is overdue (held by its
        /// window). This is what the reference does.
        Earliest = "earliest",
        /// When the earliest of those unfinished flows is due that are not overdue. Some descendants of the reference do.
        Later = "later",
    }
}

engine::choice! {
    /// Which messages of a host wait for one another at its NIC.
    pub enum Lines {
        /// None: a queue for every message.
        Flow = "flow",
        /// Those to the same host and of the same class: each begins when the one before it has been sent.
        Destination = "destination",
    }
}

engine::choice! {
    /// How the window follows the rate.
    pub enum WindowRule {
        /// It does not.
        Fixed = "fixed",
        /// The window shrinks in proportion to the rate.
        Scaled = "scaled",
    }
}

/// Settings of the hosts' NICs and their transport.
#[derive(Clone, Copy, Debug)]
pub struct NicSetup {
    /// Bytes of message in a full packet.
    pub payload: u16,
    /// Bytes of headers on a data packet.
    pub header: u16,
    /// Bytes of an ACK.
    pub ack_size: u16,
    /// When receivers acknowledge.
    pub acks: AckPolicy,
    /// Where ACKs travel.
    pub ack_lane: AckLane,
    /// A sender that hears nothing for so long takes what it sent for lost; `None` for never.
    pub timeout: Option<Time>,
    /// A receiver that misses something says so at most this often for the same gap.
    pub nack_interval: Time,
    /// Whether packets are spaced by the flow's rate; otherwise only the window slows a flow.
    pub paced: bool,
    /// When an idle NIC looks again.
    pub wake: NicWake,
    /// How the window follows the rate.
    pub window: WindowRule,
    /// Which messages wait for one another.
    pub lines: Lines,
    /// How long NICs take over congestion notifications.
    pub notifications: Notifications,
    /// What lies between a NIC and its host.
    pub bus: Bus,
}

/// How NICs notify senders of marks. All zero: every marked packet, at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Notifications {
    /// A flow's sender is notified at most this often.
    pub interval: Time,
    /// From a mark that comes back to its taking effect.
    pub delay: Time,
}

/// How long messages take between a host and its NIC. Flows start, and are waited for, as NICs see them; results are as hosts do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bus {
    /// From a message's being handed over to its first packet's being ready.
    pub send: Time,
    /// From the last byte, or the last ACK, to the host's knowing of it.
    pub receive: Time,
}

/// A NIC whose host takes packets more slowly than its link brings them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlowReceiver {
    /// The port of the host.
    pub port: u32,
    /// How fast the host takes data packets.
    pub rate: Rate,
    /// Since when.
    pub from: Time,
    /// Until when; then as fast as the link.
    pub until: Time,
    /// Bytes of packets that the NIC can keep; what does not fit is dropped.
    pub buffer: u64,
    /// With more than this it asks its neighbour to stop, if the flow control knows how.
    pub xoff: u64,
    /// With no more than this it lets the neighbour go on.
    pub xon: u64,
}

/// What forwarding costs a host, where hosts do.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Forward {
    /// From a packet's arrival to its being queued.
    pub delay: Time,
    /// The most that a port sends of forwarded data; `None` for as much as its link carries.
    pub rate: Option<Rate>,
    /// Forwarded data goes before the host's own. Otherwise the two take turns.
    pub first: bool,
}

/// What to record while running.
#[derive(Clone, Debug, Default)]
pub struct MeasureSetup {
    /// How often the occupancy of the switches is sampled while flows are active; `None` for never.
    pub sample: Option<Time>,
    /// Time series of chosen ports and flows.
    pub series: Option<SeriesSetup>,
    /// Ports whose packets are kept.
    pub capture: Option<CaptureSetup>,
    /// What every port and chosen flows did, frame by frame.
    pub record: Option<RecordSetup>,
    /// Who watches the recording while it grows.
    pub live: Option<Live>,
    /// Keep the instant of every pause and resume.
    pub pause_log: bool,
    /// Find out why flows are slow: where the time of each goes, who stopped whom, and what filled the one who did.
    pub why: bool,
    /// Histograms of every egress port's queue length.
    pub queue_monitor: Option<QueueMonitor>,
}

/// Is offered a recording, and has it put together if it is wanted.
pub type Watcher = dyn Fn(&mut dyn FnMut() -> Recording) + Send + Sync;

/// Who watches a recording while it grows, and is offered it now and then.
#[derive(Clone)]
pub struct Live(pub Arc<Watcher>);

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Live")
    }
}

/// What to capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureSetup {
    /// Ports, in ascending order: what they send is kept.
    pub ports: Vec<u32>,
    /// The first so many packets of each.
    pub limit: u32,
}

/// How to record a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordSetup {
    /// How long a frame is to begin with.
    pub every: Time,
    /// The most frames: when there are as many, they are merged in pairs.
    pub frames: usize,
    /// Flows that are recorded, in ascending order.
    pub flows: Vec<FlowId>,
}

/// What to follow closely.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesSetup {
    /// Time between samples while flows are active.
    pub every: Time,
    /// Ports whose queue and sent bytes are sampled.
    pub ports: Vec<u32>,
    /// Flows whose received bytes are sampled.
    pub flows: Vec<FlowId>,
}

/// When queue lengths are sampled, and when the histograms so far are kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueueMonitor {
    /// First sample.
    pub from: Time,
    /// No sample is planned from here on.
    pub to: Time,
    /// Time between samples.
    pub every: Time,
    /// The histograms are kept at samples whose instant is a multiple of this.
    pub keep: Time,
}

engine::choice! {
    /// Which of two events at the same instant comes first.
    pub enum Ties {
        /// The one with the earlier cause, then by kind and place: a property of the events alone.
        Cause = "cause",
        /// The one that was planned first in the whole run, as ns-3 has it. Such a run needs a single thread.
        Sequence = "sequence",
    }
}

/// A flow that began or ended at a host.
pub type Turn<'a> = (FlowId, &'a FlowSpec, Presence);

/// The flows of a host in a new order, made of all that began and ended there.
pub type Relist = fn(&[Turn<'_>]) -> Vec<FlowId>;

/// Whether a flow is there from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It begins.
    Begins,
    /// All of it is acknowledged.
    Ends,
}

/// What a simulator does that a run is compared with to the byte, and that no hardware would. Nothing of it by default.
#[derive(Clone, Copy, Debug, Default)]
pub struct Habits {
    /// A change of rate moves a flow's next packet even where packets are not spaced by the rate.
    pub shifts: bool,
    /// Packets of this class go among the control packets: ahead of all others, in no account, unmarked and never paused.
    pub control_class: Option<ClassId>,
    /// NICs never take finished flows off their lists. A place that was seen with one is not served again, whoever has it after the lists
    /// were made anew.
    pub keeps_finished: bool,
    /// Hosts draw for every packet that they take a second time whether it is lost, and do nothing about it.
    pub draws_twice: bool,
    /// A frame waits for the control packets that came before it.
    pub frames_in_turn: bool,
    /// What a failed link drops stays charged to its switch's memory; marking and flow control hear neither of it nor of the link.
    pub leaks: bool,
    /// After a change of routes every host lists its flows anew, in the order that this makes of all that began and ended there.
    pub relist: Option<Relist>,
}

/// Where switches and links get their random numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Dice {
    /// Each node from its own stream, seeded with the run's seed.
    PerNode,
    /// All from one sequence, in the order of events, as an ns-3 program draws them. Such a run needs a single thread.
    Shared {
        /// A new stream for every mark and every frame, from this number on.
        first: u64,
    },
    /// The same generator, but every switch draws its marks from the same stream of its own.
    Alike {
        /// The stream's number.
        stream: u64,
        /// The generator's seed.
        seed: u32,
    },
}

/// A whole run.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The wiring.
    pub graph: Graph,
    /// The grain of durations.
    pub clock: Clock,
    /// The order of simultaneous events.
    pub ties: Ties,
    /// Where random numbers come from.
    pub dice: Dice,
    /// Seed of all random streams.
    pub seed: u64,
    /// Priority classes of data.
    pub classes: u8,
    /// What the run has in common with another simulator's.
    pub habits: Habits,
    /// The choice among equally short paths, where no load balancer makes it.
    pub rule: Rule,
    /// What switches, and hosts with several links, add to the seeds of their hashes. Zero: each has its own seed, the same in every run.
    pub salt: u32,
    /// By port number, see [`crate::routing::PortMap`].
    pub ports: Vec<PortSetup>,
    /// Switches.
    pub switch: SwitchSetup,
    /// Hosts.
    pub nic: NicSetup,
    /// Hosts that forward.
    pub forward: Forward,
    /// Flows in order of start.
    pub flows: Vec<FlowSpec>,
    /// Which of them, and of the tasks, wait for others.
    pub after: Vec<After>,
    /// What hosts do between flows.
    pub tasks: Vec<Task>,
    /// Hosts that take packets slowly.
    pub slow: Vec<SlowReceiver>,
    /// What to record.
    pub measure: MeasureSetup,
    /// Nothing happens from this instant on.
    pub stop: Time,
    /// Between a link's failure or repair and the new routes.
    pub reroute: Time,
    /// The most threads to run it on. The result does not depend on it.
    pub threads: usize,
    /// A clock for who wants to know how long each shard takes: they are run in turns by one thread then, and what it shows is kept in
    /// [`Exchange`](crate::run::Exchange). The result does not depend on it.
    pub clocked: Option<fn() -> Duration>,
    /// In how many blocks each thread runs its shard; if not set, node by node, or as its size and its links ask for. The result does not depend on it.
    pub blocks: Option<usize>,
    /// Skip what is steady, as long as the error that is measured stays within this share: [`crate::run::forward`]. The result
    /// is not that of an exact run, and says so. `None`: exact.
    pub within: Option<f64>,
}

impl FlowSpec {
    /// A flow with nothing special about it, number `index` of its scenario, between two hosts by their numbers.
    pub fn plain(index: u16, src: u32, dst: u32, size: u64, start: Time) -> FlowSpec {
        let address = |node: u32| 0x0b00_0001 + (node << 8);
        let tuple = Tuple {
            source: address(src),
            destination: address(dst),
            source_port: 10_000u16.wrapping_add(index),
            destination_port: 4791,
        };
        FlowSpec {
            src: NodeId(src),
            dst: NodeId(dst),
            size,
            start,
            class: ClassId(0),
            tuple,
            window: 0,
            base_rtt: Time::ZERO,
            ideal: Time(1),
            ideal_acknowledged: Time(1),
            until: Time::MAX,
            hops: 1,
            tag: 0,
        }
    }
}

impl Setup {
    /// The longest base round trip among the flows; zero without any.
    pub fn longest_rtt(&self) -> Time {
        self.flows.iter().map(|flow| flow.base_rtt).max().unwrap_or_default()
    }

    /// A run of `flows` over `graph` with plain settings: exact time, 12 MB switches that take what fits, an ACK for
    /// every packet in the control queue, no window, no timeout.
    pub fn plain(graph: Graph, flows: Vec<FlowSpec>) -> Setup {
        let ports = graph.links.len() * 2;
        let share = Share { alpha: u32::MAX, headroom: 0 };
        Setup {
            clock: Clock::Exact,
            ties: Ties::Cause,
            dice: Dice::PerNode,
            seed: 1,
            classes: 1,
            habits: Habits::default(),
            rule: Rule::ByFlow,
            salt: 0,
            ports: vec![PortSetup { share, ..PortSetup::default() }; ports],
            switch: SwitchSetup {
                pool: vec![Some(12_000_000); graph.nodes.len()],
                split: Split::Dynamic,
                reserve: 0,
                groups: 1,
                global_headroom: 0,
                resume_gap: 0,
                cell: 1,
                egress_alpha: None,
                pipeline: Time::ZERO,
                reaction: Time::ZERO,
                queues: 1,
                express: None,
                quantum: 0,
                overflow: Overflow::Drop,
            },
            nic: NicSetup {
                payload: 1000,
                header: 62,
                ack_size: 66,
                acks: AckPolicy::Every(1),
                ack_lane: AckLane::Control,
                timeout: None,
                nack_interval: Time::from_us(500),
                paced: true,
                wake: NicWake::Due,
                window: WindowRule::Fixed,
                lines: Lines::Flow,
                notifications: Notifications::default(),
                bus: Bus::default(),
            },
            forward: Forward::default(),
            flows,
            after: Vec::new(),
            tasks: Vec::new(),
            slow: Vec::new(),
            measure: MeasureSetup::default(),
            stop: Time::MAX,
            reroute: Time::ZERO,
            threads: 1,
            clocked: None,
            blocks: None,
            within: None,
            graph,
        }
    }

    /// The limits of the sending end at a port, if its link repeats frames.
    pub fn retry_limits(&self, map: &PortMap, port: u32) -> Option<Limits> {
        let (graph, peer) = (&self.graph, map.peer[port as usize]);
        let link = &graph.links[map.link[port as usize] as usize];
        // From the end of a transmission to its being handled at a node: links of switches end behind their pipelines.
        let to = |port: u32| {
            let kind = self.graph.nodes[map.node[port as usize] as usize].kind;
            link.delay + if kind == Kind::Switch { self.switch.pipeline } else { Time::ZERO }
        };
        let retry = link.retry?;
        let rates = (map.rate(graph, port), map.rate(graph, peer));
        Some(retry.limits(rates, to(peer), to(port), self.max_packet()))
    }

    /// Bytes of the largest packet.
    pub fn max_packet(&self) -> u64 {
        (self.nic.payload as u64 + self.nic.header as u64).max(self.nic.ack_size as u64)
    }
    /// The fastest link, in its faster direction.
    pub fn top_rate(&self) -> Rate {
        self.graph.rates().max().unwrap_or_default()
    }
}
