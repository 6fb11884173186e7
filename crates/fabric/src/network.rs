//! A running fabric: nodes that share nothing, and the events between them.
//!
//! Two kinds of event carry the traffic: a packet's *arrival* at a port, and the *end of a transmission*. A link delivers
//! in order, so it has one pending arrival however many packets are in flight; a transmitter that would find
//! nothing to send has no pending end at all. Everything else (pacing, timers, flow starts, samples) is rare.
//!
//! [`Core`] is the hardware and knows no scheme; [`Network`] runs it with one.

mod census;
mod check;
mod irn;
mod ndp;
mod nic;
mod parallel;
mod part;
mod relay;
mod sample;
mod slow;
mod stall;
mod switch;
mod transport;
mod waiting;

pub use check::{FlowRecord, Outcome, Stall, Wait};
pub use nic::NIC_SEED;
pub use parallel::{Plan, partition, worthwhile};
pub use transport::{Receiver, Sender};

use crate::buffer::{Account, Buffer};
use crate::near::prefetch;
use crate::packet::{Kind, NONE, Packet, PacketId, Pool, flag};
use crate::port::{Port, Queue, QueueMasks, detour};
use crate::routing::{PortMap, Routing, Tuple};
use crate::scheme::{CongestionControl, FlowControl, Needs};
use crate::setup::{Dice, FlowSpec, NdpSetup, Setup, Split, Ties};
use crate::topology;
use census::Census;
use engine::random::{Consecutive, Fixed};
use engine::{Event, EventQueue, Rate, Stream, Time};
use nic::Nic;
use part::{Part, PerFlow};
use relay::Relay;
pub use sample::{Samples, Series};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use waiting::Waiting;

/// Classes of events, in the order they come at one instant among equally old causes.
mod class {
    pub const LINK_CHANGE: u8 = 0;
    pub const ARRIVAL: u8 = 1;
    pub const TX_END: u8 = 2;
    pub const NIC_WAKE: u8 = 3;
    pub const FLOW_TIMER: u8 = 4;
    pub const SCHEME_TIMER: u8 = 5;
    pub const SAMPLE: u8 = 6;
    pub const MONITOR: u8 = 7;
    pub const SERIES: u8 = 8;
    pub const LEAVE: u8 = 9;
    pub const LATE_START: u8 = 10;
    pub const FLOW_START: u8 = 11;
    pub const PULL: u8 = 12;
    pub const RECEIVE: u8 = 13;
    pub const RELAY: u8 = 14;
}

/// What a run counts as it goes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    /// Events handled.
    pub events: u64,
    /// Packets that crossed a link.
    pub hops: u64,
    /// Data packets handed to a link by their sender, retransmissions included, and their bytes of message.
    pub injected: (u64, u64),
    /// Data packets that reached their receiver, duplicates included, and their bytes of message.
    pub delivered: (u64, u64),
    /// Data packets sent again, and their bytes of message.
    pub retransmitted: (u64, u64),
    /// Bytes of frames and signals that flow control made.
    pub control_bytes: u64,
    /// Packets of any kind created (data, ACKs, frames, signals).
    pub created: u64,
    /// Packets of any kind that ended at a node that used them.
    pub consumed: u64,
    /// Packets that found no room in a buffer.
    pub dropped_full: u64,
    /// Packets lost or damaged on a link.
    pub dropped_fault: u64,
    /// Packets lost with a link that went down, or without a way to their destination.
    pub dropped_down: u64,
    /// Packets that the scheme dropped from a queue.
    pub dropped_scheme: u64,
    /// Bytes on the wire of all packets dropped.
    pub dropped_bytes: u64,
    /// Data packets among those dropped, and their bytes of message.
    pub dropped_data: (u64, u64),
    /// Data packets that a switch cut down to their headers, and their bytes of message.
    pub trimmed: (u64, u64),
    /// Data packets that arrived ahead of one sent before them.
    pub out_of_order: u64,
    /// Data packets that arrived after one of their flow that was sent later.
    pub overtaken: u64,
    /// Packets marked by switches.
    pub marked: u64,
    /// Those among them that were marked before the link to a host.
    pub marked_receiver: u64,
    /// ACKs and NACKs sent.
    pub acks: u64,
    /// Pauses and resumes received by ports.
    pub pauses: u64,
    /// See `pauses`.
    pub resumes: u64,
    /// Times a sender started over because of a timeout.
    pub timeouts: u64,
}

impl Counts {
    /// Adds what another part of the fabric has counted.
    fn add(&mut self, other: &Counts) {
        let pair = |a: &mut (u64, u64), b: (u64, u64)| *a = (a.0 + b.0, a.1 + b.1);
        pair(&mut self.injected, other.injected);
        pair(&mut self.delivered, other.delivered);
        pair(&mut self.retransmitted, other.retransmitted);
        pair(&mut self.dropped_data, other.dropped_data);
        pair(&mut self.trimmed, other.trimmed);
        self.events += other.events;
        self.hops += other.hops;
        self.control_bytes += other.control_bytes;
        self.created += other.created;
        self.consumed += other.consumed;
        self.dropped_full += other.dropped_full;
        self.dropped_fault += other.dropped_fault;
        self.dropped_down += other.dropped_down;
        self.dropped_scheme += other.dropped_scheme;
        self.dropped_bytes += other.dropped_bytes;
        self.out_of_order += other.out_of_order;
        self.overtaken += other.overtaken;
        self.marked_receiver += other.marked_receiver;
        self.marked += other.marked;
        self.acks += other.acks;
        self.pauses += other.pauses;
        self.resumes += other.resumes;
        self.timeouts += other.timeouts;
    }

    /// Packets dropped for whatever reason.
    pub fn dropped(&self) -> u64 {
        self.dropped_full + self.dropped_fault + self.dropped_down + self.dropped_scheme
    }
}

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

/// How long flow control has kept a flow from sending.
#[derive(Clone, Copy, Debug, Default)]
struct Hold {
    since: Option<Time>,
    total: Time,
}

impl Hold {
    fn turn(&mut self, now: Time, hold: bool) {
        self.total = self.until(now);
        self.since = hold.then_some(now);
    }
    fn until(&self, now: Time) -> Time {
        self.total + self.since.map_or(Time::ZERO, |since| now.saturating_sub(since))
    }
}

/// A packet that a captured port sent.
#[derive(Clone, Debug)]
pub struct Captured {
    /// When its first bit was put on the link.
    pub time: Time,
    /// By which port.
    pub port: u32,
    /// The packet.
    pub packet: Packet,
    /// What it carries, if it is a frame that carries something.
    pub payload: Box<[u64]>,
}

/// The queue monitor's histograms at an instant: by port, how many samples had so many whole kilobytes.
pub type Histograms = (Time, Vec<Vec<u32>>);

/// The hardware: links, switches, NICs, and the events under way.
pub struct Core {
    pub(crate) now: Time,
    /// The event being handled.
    current: Event,
    pub(crate) events: EventQueue,
    pub(crate) setup: Arc<Setup>,
    pub(crate) map: Arc<PortMap>,
    pub(crate) routing: Arc<Routing>,
    pub(crate) pool: Pool,
    pub(crate) ports: Vec<Port>,
    pub(crate) queues: Vec<Queue>,
    pub(crate) masks: QueueMasks,
    /// Transmission times in picoseconds, a row of `table_row` packet sizes for each rate in use.
    tables: Vec<u64>,
    table_row: usize,
    /// The rates in use in Mbit/s.
    mbps: Vec<u32>,
    /// By node; hosts that do not forward have an unused one.
    pub(crate) buffers: Vec<Buffer>,
    /// By port and class; behind them all, those of the second group.
    pub(crate) accounts: Vec<Account>,
    streams: Vec<Stream>,
    shared: Option<Consecutive>,
    /// With shared dice: of links with a loss of their own by number, and in the end of all others.
    faults: Vec<Fixed>,
    /// Ports that a hook gave something to do.
    kicks: Vec<u32>,
    nics: Vec<Nic>,
    pub(crate) senders: PerFlow<Sender>,
    pub(crate) receivers: PerFlow<Receiver>,
    /// When the last byte of each flow was first put on its sender's link.
    injected: PerFlow<Time>,
    /// Hosts that take packets slowly.
    slow: slow::State,
    /// Selective repeat, in runs with it.
    irn: Option<irn::State>,
    control: Box<dyn CongestionControl>,
    /// Those of the parts that were absorbed at the end.
    controls: Vec<Box<dyn CongestionControl>>,
    needs: Needs,
    /// Receivers' counts of the flows that send to them, if somebody needs them.
    census: Option<Box<Census>>,
    slots: nic::Slots,
    /// Messages that wait for another of their host to be sent, which is the first of their line; by where from, where to
    /// and class. Empty unless NICs have lines.
    lines: HashMap<(u32, u32, u8), VecDeque<u32>>,
    next_flow: usize,
    active: u32,
    /// Flows that ended, in order, with the event that ended them.
    pub(crate) finished: Vec<(Event, u32)>,
    pub(crate) counts: Counts,
    pub(crate) pause_log: Vec<PauseEvent>,
    /// Time between samples now.
    sample_every: Option<Time>,
    /// Occupancy of the switches.
    pub(crate) samples: Samples,
    /// What is followed closely.
    pub(crate) series: Series,
    /// Flows that wait for others.
    waiting: Waiting,
    /// The state of NDP, where it is used.
    ndp: Option<Box<ndp::Ndp>>,
    /// What hosts that forward are about to queue or to send.
    relay: Relay,
    /// Queue-length histograms of the monitor: by port, samples with that many whole kilobytes.
    pub(crate) monitor: Vec<Vec<u32>>,
    pub(crate) kept: Vec<Histograms>,
    /// What had moved at the last sample that saw something new, and when that was.
    progress: (u64, Time),
    /// What had moved here at the last sample.
    moved_before: u64,
    /// Timers of the scheme that have not gone off.
    timers: u32,
    /// How long nothing may move while flows are active: longer than any link, timeout or back-off.
    patience: Time,
    /// Flows are active and nothing has moved for that long, or nothing can any more.
    stuck: bool,
    /// Ranks are drawn one after the other.
    in_sequence: bool,
    sequence: u32,
    classes: u32,
    per_port: u32,
    /// States of the links to come: when, and which are up then.
    changes: Vec<(Time, Vec<bool>)>,
    /// Flows that flow control has ever kept from sending.
    holds: HashMap<u32, Hold>,
    /// What was captured.
    captured: Vec<Captured>,
    /// By port, how much more of it may be. Empty where nothing is.
    capture_left: Vec<u32>,
    /// The part of the fabric that is run here, if it is not all.
    part: Option<Part>,
}

/// A fabric with its flow-control scheme.
pub struct Network<F: FlowControl> {
    /// The hardware.
    pub core: Core,
    /// The scheme.
    pub scheme: F,
}

/// The ports of a fabric and the ways through it.
#[derive(Clone)]
struct Ways {
    map: Arc<PortMap>,
    routing: Arc<Routing>,
}

impl Ways {
    fn new(setup: &Setup) -> Ways {
        let map = PortMap::new(&setup.graph);
        let routing = Routing::new(&setup.graph, &map, &vec![true; setup.graph.links.len()]);
        Ways { map: Arc::new(map), routing: Arc::new(routing) }
    }
}

impl Core {
    fn new(setup: Arc<Setup>, ways: Ways, control: Box<dyn CongestionControl>, part: Option<Part>) -> Core {
        let graph = &setup.graph;
        let Ways { map, routing } = ways;
        let classes = setup.classes as u32;
        let per_port = classes * setup.switch.queues;
        let needs = control.needs();

        let mut rates: Vec<_> = graph.links.iter().map(|l| l.rate).collect();
        rates.sort_unstable();
        rates.dedup();
        let longest = setup.max_packet().max(2048);
        let row = |&rate: &Rate| (0..=longest).map(move |bytes| (bytes, rate));
        let tables = rates.iter().flat_map(row).map(|(bytes, rate)| setup.clock.duration(bytes, rate).0).collect();

        let mut nics = Vec::new();
        let mut ports = Vec::with_capacity(map.count());
        let mut first_queue = 0;
        for port in 0..map.count() {
            let (node, peer, link) = (map.node[port], map.peer[port], &graph.links[map.link[port] as usize]);
            let host = graph.nodes[node as usize].kind == topology::Kind::Host;
            let relays = host && graph.forwards(node, map.of(node).len());
            let far = graph.nodes[map.node[peer as usize] as usize].kind;
            let pipeline = if far == topology::Kind::Switch { setup.switch.pipeline } else { Time::ZERO };
            ports.push(Port {
                free_at: Time::ZERO,
                end_rank: 0,
                frames: Default::default(),
                urgent: false,
                detour: {
                    let far = map.node[peer as usize];
                    let remote = part.as_ref().is_some_and(|part| part.owns(node) && !part.owns(far));
                    let capture = setup.measure.capture.as_ref();
                    let captured = capture.is_some_and(|capture| capture.ports.binary_search(&(port as u32)).is_ok());
                    (remote as u8 * detour::REMOTE) | (captured as u8 * detour::CAPTURED)
                },
                control: Default::default(),
                queued: 0,
                tx_bytes: 0,
                flying: Default::default(),
                gap: [0; 2],
                node,
                peer,
                first_queue,
                ecn_min: setup.ports[port].ecn.map_or(u32::MAX, |e| e.min.min(u32::MAX as u64) as u32),
                latency: link.delay + pipeline,
                table: rates.binary_search(&link.rate).unwrap_or(0) as u16,
                last: 0,
                paused: 0,
                wake: false,
                up: true,
                host,
                relays,
                faulty: link.lossy(),
                nic: nics.len() as u32,
                pause_start: Time::ZERO,
                pause_total: Time::ZERO,
            });
            if host {
                nics.push(Nic::new(port as u32, link.rate));
            }
            if !host || relays {
                first_queue += per_port;
            }
        }
        let nodes = graph.nodes.len();
        let shared = |node: usize| Buffer {
            pool: setup.switch.pool[node],
            reserve: setup.switch.reserve,
            resume_gap: setup.switch.resume_gap,
            global: (setup.switch.global_headroom, 0),
            ..Buffer::default()
        };
        let buffer = |node: usize| {
            let parts = map.of(node as u32).len() as u64 * classes as u64;
            let part = |of: u64| setup.switch.pool[node].map(|pool| pool / of.max(1));
            let (ingress_part, egress_part) = match setup.switch.split {
                Split::Dynamic => (None, None),
                Split::Ingress => (part(parts * setup.switch.groups as u64), None),
                Split::Egress => (None, part(parts * setup.switch.queues as u64)),
            };
            let short = |ndp: &NdpSetup| ndp.queue as u64 * (setup.nic.payload as u64 + setup.nic.header as u64);
            let egress_part = setup.nic.ndp.as_ref().map(short).or(egress_part);
            Buffer { ingress_part, egress_part, ..shared(node) }
        };
        let group = || setup.ports.iter().flat_map(|p| std::iter::repeat_n(Account::new(p.share), classes as usize));
        let accounts = (0..setup.switch.groups).flat_map(|_| group());
        let changes = link_changes(&setup);
        // A busy full-duplex 100 Gb/s link sees some twenty events in a microsecond.
        let density = setup.graph.links.len() as f64 * 0.02;
        let near = ports.iter().map(|p: &Port| p.latency).filter(|&l| l <= Time::from_us(4)).max();
        let horizon = near.unwrap_or_default() + setup.clock.duration(setup.max_packet(), setup.top_rate());
        let ndp = setup.nic.ndp.map(|own| Box::new(ndp::Ndp::new(own, &setup, &part, map.count(), nics.len())));
        let farthest = ports.iter().map(|p| p.latency).max().unwrap_or_default();
        let timeout = setup.nic.irn.map(|irn| irn.high).or(setup.nic.recovery.timeout).unwrap_or_default();
        let patience = Time(stall::PATIENCE.0 + 8 * timeout.0 + 16 * farthest.0);
        Core {
            now: Time::ZERO,
            current: Event::new(Time::ZERO, Event::LAST, 15, u32::MAX),
            events: EventQueue::new(density, horizon),
            pool: Pool::new(needs.telemetry, needs.delay || setup.nic.irn.is_some()),
            queues: vec![Queue::default(); first_queue as usize],
            masks: QueueMasks::new(map.count(), per_port as usize),
            tables,
            table_row: longest as usize + 1,
            mbps: rates.iter().map(|rate| (rate.0 / 1_000_000) as u32).collect(),
            in_sequence: setup.ties == Ties::Sequence,
            buffers: (0..nodes).map(buffer).collect(),
            accounts: accounts.collect(),
            streams: (0..nodes as u64).map(|n| Stream::new(setup.seed, n)).collect(),
            shared: match setup.dice {
                Dice::PerNode => None,
                Dice::Shared { first, .. } => Some(Consecutive::new(first)),
            },
            faults: if setup.dice == Dice::PerNode { vec![] } else { vec![Fixed::new(FAULTS); graph.links.len() + 1] },
            kicks: Vec::new(),
            census: needs.census.map(|stall| Box::new(Census::new(stall, nics.len(), &setup, &part))),
            nics,
            senders: PerFlow::new(&setup, &part, |flow| flow.src, |_| Sender::default()),
            receivers: PerFlow::new(&setup, &part, |flow| flow.dst, Receiver::new),
            injected: PerFlow::new(&setup, &part, |flow| flow.src, |_| Time::MAX),
            slow: slow::State::new(&setup.slow, |port| graph.links[map.link[port as usize] as usize].rate),
            irn: setup.nic.irn.map(|_| irn::State::new(&setup, &part)),
            control,
            controls: Vec::new(),
            holds: HashMap::new(),
            captured: Vec::new(),
            capture_left: setup
                .measure
                .capture
                .iter()
                .flat_map(|c| std::iter::repeat_n(c.limit, map.count()))
                .collect(),
            needs,
            slots: nic::Slots::default(),
            lines: HashMap::new(),
            next_flow: 0,
            active: 0,
            finished: Vec::new(),
            counts: Counts::default(),
            pause_log: Vec::new(),
            sample_every: setup.measure.sample,
            samples: Samples::new(nodes),
            series: Series::default(),
            waiting: Waiting::new(&setup),
            ndp,
            relay: Relay::new(&setup, map.count()),
            monitor: vec![Vec::new(); if setup.measure.queue_monitor.is_some() { map.count() } else { 0 }],
            kept: Vec::new(),
            progress: (0, Time::ZERO),
            moved_before: 0,
            timers: 0,
            patience,
            stuck: false,
            sequence: 0,
            classes,
            per_port,
            changes,
            ports,
            routing,
            map,
            part,
            setup,
        }
    }

    /// Now.
    #[inline]
    pub fn now(&self) -> Time {
        self.now
    }

    /// Priority classes of data.
    pub fn classes(&self) -> u8 {
        self.classes as u8
    }

    /// The account of packets that came in by `port` in `class`, and the memory it is in.
    #[inline]
    pub fn account(&mut self, port: u32, class: u8) -> (&mut Account, &Buffer) {
        let node = self.ports[port as usize].node;
        (&mut self.accounts[(port * self.classes + class as u32) as usize], &self.buffers[node as usize])
    }

    /// Which account that is, or the one of the second group.
    #[inline]
    fn account_number(&self, port: u32, class: u8, second: bool) -> usize {
        let group = if second { self.ports.len() } else { 0 };
        group * self.classes as usize + (port * self.classes + class as u32) as usize
    }

    /// The account of one of two groups of packets, see [`FlowControl::second_group`], and the memory it is in.
    #[inline]
    pub fn group_account(&mut self, port: u32, class: u8, second: bool) -> (&mut Account, &Buffer) {
        let node = self.ports[port as usize].node;
        let number = self.account_number(port, class, second);
        (&mut self.accounts[number], &self.buffers[node as usize])
    }

    /// Where a port leads and how fast.
    pub fn port(&self, port: u32) -> &Port {
        &self.ports[port as usize]
    }

    /// The rate of the link at `port`.
    pub fn rate(&self, port: u32) -> Rate {
        self.setup.graph.links[self.map.link[port as usize] as usize].rate
    }

    /// A packet.
    #[inline]
    pub fn packet(&self, id: PacketId) -> &Packet {
        &self.pool[id]
    }

    /// A packet, to be changed.
    #[inline]
    pub fn packet_mut(&mut self, id: PacketId) -> &mut Packet {
        &mut self.pool[id]
    }

    /// The ports of `node` on shortest ways to `host`.
    #[inline]
    pub fn ways(&self, node: u32, host: u32) -> &[u32] {
        self.routing.next_hops(node, host)
    }

    /// The port by which `node` would send a packet on, as routing has it.
    #[inline]
    pub fn routed(&self, node: u32, id: PacketId) -> Option<u32> {
        self.way_out(node, id)
    }

    /// The ports of a node.
    pub fn ports_of(&self, node: u32) -> std::ops::Range<u32> {
        self.map.of(node)
    }

    /// Moves all that waits in a queue of a port to the end of a queue of the same or another port of its switch.
    pub fn shift(&mut self, from: (u32, u32), to: (u32, u32)) {
        let number = |core: &Core, (port, queue): (u32, u32)| (core.ports[port as usize].first_queue + queue) as usize;
        let (source, target) = (number(self, from), number(self, to));
        let bytes = self.queues[source].bytes;
        if bytes == 0 {
            return;
        }
        while let Some(id) = self.queues[source].pop(&self.pool) {
            self.queues[target].push(&mut self.pool, id);
        }
        self.ports[from.0 as usize].queued -= bytes;
        self.ports[to.0 as usize].queued += bytes;
        self.masks.set_filled(from.0, from.1, false);
        self.masks.set_filled(to.0, to.1, true);
        self.kicks.push(to.0);
    }

    /// The word of a queued packet that is the scheme's own.
    #[inline]
    pub fn word(&mut self, id: PacketId) -> &mut u32 {
        &mut self.pool[id].next_rank
    }

    /// Gives a packet another tag for the rest of its way.
    #[inline]
    pub fn set_tag(&mut self, id: PacketId, tag: u16) {
        self.pool[id].tag = tag;
    }

    /// The port by which a switch sends something back to the host that sent a data packet, if any way is left.
    pub fn way_back(&self, node: u32, data: &Packet) -> Option<u32> {
        self.way(node, self.setup.flows[data.flow as usize].src, &data.tuple.reversed(), self.now)
    }

    /// Bytes in a queue of `port`.
    #[inline]
    pub fn queue_bytes(&self, port: u32, queue: u32) -> u64 {
        self.queues[(self.ports[port as usize].first_queue + queue) as usize].bytes
    }

    /// The queues of a class at any port.
    pub fn class_queues(&self, class: u8) -> std::ops::Range<u32> {
        let each = self.setup.switch.queues;
        class as u32 * each..(class as u32 + 1) * each
    }

    /// The first packet in a queue of `port`.
    #[inline]
    pub fn head(&self, port: u32, queue: u32) -> Option<PacketId> {
        let id = self.queues[(self.ports[port as usize].first_queue + queue) as usize].packets.head();
        (id != NONE).then_some(id)
    }

    /// The states of all queues.
    #[inline]
    pub fn queues(&self) -> &QueueMasks {
        &self.masks
    }

    /// Keeps a queue of `port` from sending, or lets it go on.
    #[inline]
    pub fn hold_queue(&mut self, port: u32, queue: u32, hold: bool) {
        if self.masks.is_held(port, queue) != hold {
            self.masks.set_held(port, queue, hold);
            if !hold {
                self.kicks.push(port);
            }
        }
    }

    /// The flows that send by a host's `port`; finished ones may be among them.
    pub fn flows_at(&self, port: u32) -> &[u32] {
        &self.nics[self.ports[port as usize].nic as usize].flows
    }

    /// What was asked of a flow.
    #[inline]
    pub fn flow(&self, flow: u32) -> &FlowSpec {
        &self.setup.flows[flow as usize]
    }

    /// The class of a flow.
    pub fn flow_class(&self, flow: u32) -> u8 {
        self.setup.flows[flow as usize].class
    }

    /// Whether the last byte of a flow was acknowledged.
    pub fn flow_done(&self, flow: u32) -> bool {
        self.senders[flow as usize].finished != Time::MAX
    }

    /// The tag of a flow that has started.
    pub fn flow_tag(&self, flow: u32) -> u16 {
        self.senders[flow as usize].tag
    }

    /// Gives a flow that has started another tag, which the packets it sends from now on carry.
    pub fn set_flow_tag(&mut self, flow: u32, tag: u16) {
        self.senders[flow as usize].tag = tag;
    }

    /// Keeps a flow from sending, or lets it go on.
    pub fn hold_flow(&mut self, flow: u32, hold: bool) {
        let sender = &mut self.senders[flow as usize];
        if (sender.held & transport::BY_SCHEME != 0) == hold {
            return;
        }
        sender.held ^= transport::BY_SCHEME;
        self.holds.entry(flow).or_default().turn(self.now, hold);
        self.note(flow);
        if !hold {
            self.kicks.push(self.nics[self.senders[flow as usize].nic as usize].port);
        }
    }

    /// A random number below `n` of the node at `port`.
    pub fn draw(&mut self, port: u32, n: u64) -> u64 {
        self.streams[self.ports[port as usize].node as usize].below(n)
    }

    /// Sends a frame that carries a payload, as [`Core::send_frame`] does. Its receiver takes it with
    /// [`Core::take_payload`].
    pub fn send_payload(&mut self, port: u32, size: u16, word: u32, payload: Box<[u64]>) {
        if self.ports[port as usize].up {
            let place = self.pool.store_payload(payload);
            let id = self.new_frame(port, size, word, place as u64);
            self.pool[id].flags |= flag::PAYLOAD;
        }
    }

    /// What an arrived frame carries; to be taken once.
    pub fn take_payload(&mut self, frame: &Packet) -> Box<[u64]> {
        self.pool.take_payload(frame.seq as u32)
    }

    /// Sends a frame of `size` bytes to the neighbour at `port`, ahead of everything else. The two words are
    /// the scheme's own.
    pub fn send_frame(&mut self, port: u32, size: u16, word: u32, long: u64) {
        if self.ports[port as usize].up {
            self.new_frame(port, size, word, long);
        }
    }

    /// Sends a frame as [`Core::send_frame`] does, but by a switch's control queue, so that it delays no other frame.
    pub fn send_note(&mut self, port: u32, size: u16, word: u32, long: u64) {
        if self.ports[port as usize].up {
            let id = self.make_frame(size, word, long);
            let p = &mut self.ports[port as usize];
            p.queued += size as u64;
            p.control.push(&mut self.pool, id);
            self.kicks.push(port);
        }
    }

    fn new_frame(&mut self, port: u32, size: u16, word: u32, long: u64) -> PacketId {
        let id = self.make_frame(size, word, long);
        let p = &mut self.ports[port as usize];
        p.queued += size as u64;
        p.frames.push(&mut self.pool, id);
        p.urgent = true;
        self.kicks.push(port);
        id
    }

    fn make_frame(&mut self, size: u16, word: u32, long: u64) -> PacketId {
        self.counts.created += 1;
        self.counts.control_bytes += size as u64;
        if let Some(dice) = &mut self.shared {
            dice.pass(); // its identification
        }
        self.pool.insert(Packet {
            flow: word,
            seq: long,
            stamp: self.now,
            next_arrival: self.now,
            next: NONE,
            next_rank: 0,
            tuple: Tuple::default(),
            dst: u32::MAX,
            in_port: NONE,
            size,
            tag: 0,
            kind: Kind::Frame,
            class: 0,
            flags: 0,
            reports: 0,
        })
    }

    /// Sends a control packet of `size` bytes by `port` of a switch to the host that sent the data packet `data`, in
    /// the control queue of every port on its way: never paused, never short of room. It carries the data packet's
    /// flow, class and tag, its addresses swapped, and a word of the scheme's own.
    pub fn send_signal(&mut self, port: u32, data: &Packet, size: u16, word: u64) {
        if !self.ports[port as usize].up {
            return;
        }
        self.counts.created += 1;
        self.counts.control_bytes += size as u64;
        let id = self.pool.insert(Packet {
            seq: word,
            stamp: self.now,
            dst: self.setup.flows[data.flow as usize].src,
            tuple: data.tuple.reversed(),
            size,
            kind: Kind::Signal,
            flags: 0,
            reports: 0,
            ..*data
        });
        let p = &mut self.ports[port as usize];
        p.queued += size as u64;
        p.control.push(&mut self.pool, id);
        self.kicks.push(port);
    }

    /// Stops or resumes one class of everything that `port` sends.
    pub fn pause_class(&mut self, port: u32, class: u8, pause: bool) {
        self.note_pause(port, class, pause, pause);
        if self.ports[port as usize].has_queues() {
            self.class_queues(class).for_each(|q| self.masks.set_paused(port, q, pause));
        }
    }

    /// Stops or resumes one queue of a switch's `port`, unless it is so already. The port counts as paused while any of
    /// its queues is.
    pub fn pause_queue(&mut self, port: u32, queue: u32, pause: bool) {
        if self.masks.is_paused(port, queue) == pause {
            return;
        }
        self.masks.set_paused(port, queue, pause);
        let class = (queue / self.setup.switch.queues) as u8;
        let paused = self.class_queues(class).any(|q| self.masks.is_paused(port, q));
        self.note_pause(port, class, pause, paused);
    }

    /// A pause or resume of something in a class has come, of which something is `paused` now.
    fn note_pause(&mut self, port: u32, class: u8, pause: bool, paused: bool) {
        let p = &mut self.ports[port as usize];
        let before = p.paused;
        p.paused = if paused { before | 1 << class } else { before & !(1 << class) };
        match (before != 0, p.paused != 0) {
            (false, true) => p.pause_start = self.now,
            (true, false) => p.pause_total += self.now - p.pause_start,
            _ => {}
        }
        *(if pause { &mut self.counts.pauses } else { &mut self.counts.resumes }) += 1;
        if self.setup.measure.pause_log {
            self.pause_log.push(PauseEvent { time: self.now, port, pause });
        }
        if !pause {
            self.kicks.push(port);
        }
    }

    /// Calls the scheme's timer hook at `at` with a token of the scheme's own.
    pub fn set_timer(&mut self, at: Time, token: u32) {
        let rank = self.rank(at);
        self.timers += 1;
        self.events.push(Event::new(at, rank, class::SCHEME_TIMER, token));
    }

    /// Whether something of probability `p` happens at `node`.
    fn chance(&mut self, node: u32, p: f64) -> bool {
        match &mut self.shared {
            None => self.streams[node as usize].chance(p),
            Some(dice) => dice.uniform() < p,
        }
    }

    /// The rank of an event at `at` that is set in motion now.
    #[inline]
    fn rank(&mut self, at: Time) -> u32 {
        if !self.in_sequence {
            return Event::rank_of(at, self.now);
        }
        // Only compared among events of one instant, so that starting over does no harm.
        self.sequence = if self.sequence + 1 < Event::LAST { self.sequence + 1 } else { 0 };
        self.sequence
    }

    /// Whether all flows are finished and the network is empty: what is still planned are timers without a purpose.
    fn is_done(&self) -> bool {
        self.next_flow == self.setup.flows.len()
            && self.pool.live() == 0
            && self.nothing_posted()
            && !self.waiting.any_planned()
            && self.setup.measure.queue_monitor.is_none()
    }

    /// How long a packet of `size` bytes takes at the rate of a table.
    #[inline]
    fn on_wire(&self, table: u16, size: u16) -> Time {
        Time(self.tables[table as usize * self.table_row + size as usize])
    }

    /// When a packet of `size` bytes that has just arrived at `port` began to be sent.
    fn sent_at(&self, port: u32, size: u16) -> Time {
        let far = &self.ports[self.ports[port as usize].peer as usize];
        self.now.saturating_sub(far.latency).saturating_sub(self.on_wire(far.table, size))
    }

    /// Puts a packet on the wire, which is free after `lag`.
    #[inline]
    fn start(&mut self, port: u32, id: PacketId, lag: Time) {
        let p = &self.ports[port as usize];
        let end = self.now + lag + self.on_wire(p.table, self.pool[id].size);
        let (arrival, peer) = (end + p.latency, p.peer);
        let (end_rank, rank) = (self.rank(end), self.rank(arrival));
        let packet = &mut self.pool[id];
        let p = &mut self.ports[port as usize];
        p.end_rank = end_rank;
        p.free_at = end;
        p.tx_bytes += packet.size as u64;
        if p.detour != 0 && self.detour(port, id, arrival, rank) {
            return;
        }
        if self.ports[peer as usize].flying.push(&mut self.pool, id, arrival, rank) {
            self.events.push(Event::new(arrival, rank, class::ARRIVAL, peer));
        }
    }

    /// Puts the end of the transmission under way on the event queue.
    #[inline]
    fn schedule_end(&mut self, port: u32) {
        let p = &mut self.ports[port as usize];
        p.wake = true;
        self.events.push(Event::new(p.free_at, p.end_rank, class::TX_END, port));
    }

    /// Bytes that `port` has sent: of a packet that is being sent only what is on the wire already.
    fn sent_by_now(&self, port: usize) -> u64 {
        let p = &self.ports[port];
        let coming = self.rate(port as u32).bytes_in(p.free_at.saturating_sub(self.now));
        p.tx_bytes.saturating_sub(coming)
    }

    /// Forgets a packet that did not make it.
    fn discard(&mut self, id: PacketId) {
        if self.pool[id].flags & flag::PAYLOAD != 0 {
            let place = self.pool[id].seq as u32;
            self.pool.take_payload(place);
        }
        let packet = &self.pool[id];
        self.counts.dropped_bytes += packet.size as u64;
        if packet.kind == Kind::Data {
            self.counts.dropped_data.0 += 1;
            self.counts.dropped_data.1 += (packet.size - self.setup.nic.header) as u64;
        }
        self.pool.remove(id);
    }
}

impl<F: FlowControl> Network<F> {
    /// Builds the fabric and loads the flows.
    pub fn new(setup: Setup, scheme: F, control: Box<dyn CongestionControl>) -> Network<F> {
        let ways = Ways::new(&setup);
        Network::part(Arc::new(setup), ways, scheme, control, None)
    }

    fn part(
        setup: Arc<Setup>,
        ways: Ways,
        scheme: F,
        control: Box<dyn CongestionControl>,
        part: Option<Part>,
    ) -> Network<F> {
        let mut core = Core::new(setup, ways, control, part);
        core.next_flow = core.next_own_flow(0);
        if let Some(flow) = core.setup.flows.get(core.next_flow) {
            core.events.push(Event::new(flow.start, Event::LAST, class::FLOW_START, 0));
        }
        if let Some(flow) = core.setup.flows.first() {
            let start = flow.start;
            if core.setup.measure.sample.is_some() {
                core.events.push(Event::new(start, Event::LAST, class::SAMPLE, 0));
            }
            if core.setup.measure.series.is_some() {
                core.events.push(Event::new(start, Event::LAST, class::SERIES, 0));
            }
        }
        if let Some(monitor) = core.setup.measure.queue_monitor {
            core.events.push(Event::new(monitor.from, 0, class::MONITOR, 0));
        }
        for (index, (time, _)) in core.changes.iter().enumerate() {
            let reroute = time.saturating_add(core.setup.reroute);
            core.events.push(Event::new(*time, 0, class::LINK_CHANGE, index as u32 * 2));
            core.events.push(Event::new(reroute, 0, class::LINK_CHANGE, index as u32 * 2 + 1));
        }
        Network { core, scheme }
    }

    /// Runs until nothing is left to do, or to the scenario's stop. `report` is called now and then with the
    /// simulated time and the number of packet-hops; it ends the run early by returning false.
    pub fn run(&mut self, mut report: impl FnMut(Time, u64) -> bool) -> Outcome {
        let stop = self.core.setup.stop;
        let mut interrupted = false;
        let mut countdown = REPORT_EVERY;
        while let Some(event) = self.core.events.pop() {
            if event.time() >= stop || self.core.stuck {
                self.core.now = self.core.now.max(stop.min(event.time()));
                break;
            }
            self.step(event);
            if self.core.active == 0 && self.core.is_done() {
                break;
            }
            countdown -= 1;
            if countdown == 0 {
                countdown = REPORT_EVERY;
                if !report(self.core.now, self.core.counts.hops) {
                    interrupted = true;
                    break;
                }
            }
        }
        self.outcome(interrupted)
    }

    /// Makes an event happen.
    #[inline]
    fn step(&mut self, event: Event) {
        self.core.now = event.time();
        self.core.current = event;
        self.handle(event);
        self.drain_kicks();
    }

    /// Gives every port that a hook called upon its chance.
    #[inline]
    fn drain_kicks(&mut self) {
        while let Some(port) = self.core.kicks.pop() {
            self.kick(port);
        }
    }

    #[inline]
    fn handle(&mut self, event: Event) {
        let source = event.source();
        // What happens to a node, and not to the run as a whole.
        self.core.counts.events += (class::ARRIVAL..=class::SCHEME_TIMER).contains(&event.class()) as u64;
        match event.class() {
            class::ARRIVAL => self.arrive(source),
            class::TX_END => {
                self.core.ports[source as usize].wake = false;
                self.transmit(source);
            }
            class::NIC_WAKE => self.nic_wake(source),
            class::FLOW_TIMER => self.core.flow_timer(source),
            class::FLOW_START => self.start_flows(),
            class::SAMPLE => {
                self.scheme.observe(&self.core);
                self.core.sample();
            }
            class::MONITOR => self.core.monitor(),
            class::SERIES => self.core.follow(),
            class::LEAVE => self.core.leave(source),
            class::LATE_START => self.late_start(source),
            class::PULL => self.core.pull_timer(source),
            class::RECEIVE => self.received(source),
            class::RELAY => self.relay_event(source),
            class::SCHEME_TIMER => {
                self.core.timers -= 1;
                self.scheme.timer(&mut self.core, source);
            }
            _ if source.is_multiple_of(2) => self.change_links(source / 2),
            _ => self.reroute(source / 2),
        }
    }

    /// The first packet in flight towards `port` has arrived.
    #[inline]
    fn arrive(&mut self, port: u32) {
        let core = &mut self.core;
        let p = &mut core.ports[port as usize];
        let Some((id, next)) = p.flying.pop(&core.pool) else { return };
        if let Some((arrival, rank)) = next {
            core.pool.fetch(p.flying.head());
            core.events.push(Event::new(arrival, rank, class::ARRIVAL, port));
        }
        core.counts.hops += 1;
        let (host, relays, faulty, up) = (p.host, p.relays, p.faulty, p.up);
        if (faulty || !up) && core.lost_on_the_way(port, id) {
            return;
        }
        if core.pool[id].kind == Kind::Frame {
            let frame = core.pool[id];
            core.pool.remove(id);
            core.counts.consumed += 1;
            self.scheme.frame(core, port, &frame);
        } else if host {
            if relays && core.pool[id].dst != core.ports[port as usize].node {
                return self.relay_receive(port, id);
            }
            self.host_receive(port, id);
        } else {
            self.switch_receive(port, id);
        }
    }

    /// A port has something new to send: send it now, or when the transmission under way ends.
    #[inline]
    fn kick(&mut self, port: u32) {
        let p = &self.core.ports[port as usize];
        if p.wake {
            return;
        }
        // The transmission may end at this very instant, only later in it.
        let end = Event::new(p.free_at, p.end_rank, class::TX_END, port);
        if end > self.core.current {
            self.core.schedule_end(port);
        } else {
            self.transmit(port);
        }
    }

    /// Sends the next packet of an idle port, if there is one.
    #[inline]
    fn transmit(&mut self, port: u32) {
        let core = &mut self.core;
        // What is sent here will fly there.
        prefetch(&core.ports[core.ports[port as usize].peer as usize].flying);
        let p = &mut core.ports[port as usize];
        if !p.up {
            return;
        }
        if p.urgent {
            let Some(id) = p.frames.pop(&core.pool) else { return };
            p.urgent = !p.frames.is_empty();
            p.queued -= core.pool[id].size as u64;
            core.start(port, id, Time::ZERO);
        } else if p.host {
            if !(if p.relays { self.relay_transmit(port) } else { self.nic_transmit(port) }) {
                return;
            }
        } else if !p.control.is_empty()
            && let Some(id) = core.next_control(port)
        {
            let lag = self.scheme.lag(core, port);
            core.start(port, id, lag);
        } else if !self.switch_transmit(port) {
            return;
        }
        let core = &mut self.core;
        let p = &core.ports[port as usize];
        let more = if p.host {
            core.nics[p.nic as usize].has_work() || p.relays && core.may_relay(port)
        } else {
            !p.control.is_empty() || core.masks.any_ready(port)
        };
        if more || p.urgent {
            if !p.host {
                core.fetch_next(port);
            }
            core.schedule_end(port);
        }
    }
}

/// The stream from which shared dice draw losses.
const FAULTS: u64 = 50;

/// Events between two progress reports.
const REPORT_EVERY: u32 = 1 << 18;

/// The states of the links over time, from their outages; nothing if none ever fails.
fn link_changes(setup: &Setup) -> Vec<(Time, Vec<bool>)> {
    let links = &setup.graph.links;
    let mut times: Vec<Time> =
        links.iter().flat_map(|l| &l.outages).flat_map(|&(a, b)| [Some(a), b]).flatten().collect();
    times.sort_unstable();
    times.dedup();
    times.into_iter().map(|t| (t, links.iter().map(|link| link.up_at(t)).collect())).collect()
}
