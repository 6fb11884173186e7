//! A running fabric: nodes that share nothing, and the events between them.
//!
//! Two kinds of event carry the traffic: a packet's *arrival* at a port, and the *end of a transmission*. A link delivers
//! in order, so it has one pending arrival however many packets are in flight; a transmitter that would find
//! nothing to send has no pending end at all. Everything else (pacing, timers, flow starts, samples) is rare.
//!
//! [`Core`] is the hardware and knows no scheme; [`Network`] runs it with one. The core is made of rooms: the switches, the
//! hosts, the probes, and here the time, the wires, the dice and the progress of the run.

mod blocks;
pub mod forward;
mod links;
mod outcome;
mod parallel;
pub(crate) mod reaction;
pub(crate) mod retry;
pub(crate) mod shard;
pub(crate) mod stall;

pub use outcome::{Exchange, FlowRecord, Outcome, Stall, Wait};
pub use parallel::{Plan, partition, worthwhile};

use crate::axes::flow_control::{FlowControl, Signal};
use crate::axes::transport::Ground;
use crate::axes::{Chosen, Transport};
use crate::host::Hosts;
use crate::id::{ClassId, FlowId, NodeId, PortId};
use crate::message::Unpacker;
use crate::packet::{Kind, Packet, PacketId, Pool, flag};
use crate::port::{Port, detour};
use crate::prefetch::prefetch;
use crate::probe::{Counts, Probes};
use crate::routing::{PortMap, Routing};
use crate::setup::{AckLane, Dice, Setup, Ties};
use crate::switch::Switches;
use crate::topology;
use crate::view::{HostView, NodeView, Site};
use blocks::Blocks;
use engine::random::{Consecutive, Fixed};
use engine::{Event, EventQueue, Rate, Stream, Time};
use forward::Forward;
use reaction::Reactions;
use retry::{First, Retries};
use shard::Shard;
use std::collections::HashMap;
use std::sync::Arc;

/// Kinds of events, in the order they come at one instant among equally old causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Class {
    LinkChange,
    Arrival,
    TxEnd,
    NicWake,
    FlowTimer,
    PortTimer,
    HoldTimer,
    Sample,
    Monitor,
    Series,
    Leave,
    LateStart,
    FlowStart,
    TransportTimer,
    Receive,
    Relay,
    Reaction,
    Balance,
    Forward,
    Retry,
}

impl Class {
    const ALL: [Class; 20] = [
        Class::LinkChange,
        Class::Arrival,
        Class::TxEnd,
        Class::NicWake,
        Class::FlowTimer,
        Class::PortTimer,
        Class::HoldTimer,
        Class::Sample,
        Class::Monitor,
        Class::Series,
        Class::Leave,
        Class::LateStart,
        Class::FlowStart,
        Class::TransportTimer,
        Class::Receive,
        Class::Relay,
        Class::Reaction,
        Class::Balance,
        Class::Forward,
        Class::Retry,
    ];

    /// Of an event.
    pub(crate) fn of(event: Event) -> Class {
        Class::ALL[event.class() as usize]
    }

    /// Whether it happens to a node, and not to the run as a whole: such events are the same however a fabric is cut.
    fn at_a_node(self) -> bool {
        use Class::{FlowStart, Forward, LinkChange, Monitor, Sample, Series};
        !matches!(self, LinkChange | Sample | Monitor | Series | FlowStart | Forward)
    }
}

/// The clock and what is planned.
pub(crate) struct Timeline {
    pub(crate) now: Time,
    /// The event being handled.
    pub(crate) current: Event,
    pub(crate) events: Box<EventQueue>,
    /// Ranks are drawn one after the other.
    pub(crate) in_sequence: bool,
    sequence: u32,
    /// How far ahead most events are planned.
    horizon: Time,
    /// All events are done in the order of time, one after the other, so that one is far from the next.
    far_apart: bool,
    /// How much was skipped so far.
    pub(crate) skipped: Time,
}

impl Timeline {
    /// When something comes that a scenario has at `real`: sooner by all that was skipped.
    #[inline]
    pub(crate) fn planned(&self, real: Time) -> Time {
        if real == Time::MAX { real } else { real.saturating_sub(self.skipped) }
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

    /// A port begins to send so many bytes after `lag`. Gives when they arrive, and with which rank.
    #[inline(always)]
    fn begin(&mut self, p: &mut Port, wire: &Wire, size: u16, lag: Time) -> (Time, u32) {
        let end = self.now + lag + wire.time_at(p, size);
        let arrival = end + p.latency;
        p.end_rank = self.rank(end);
        p.free_at = end;
        p.tx_bytes += size as u64;
        (arrival, self.rank(arrival))
    }
}

/// How long packets take on links.
pub(crate) struct Wire {
    /// Transmission times in picoseconds, a row of `table_row` packet sizes for each rate in use.
    tables: Vec<u64>,
    table_row: usize,
    /// The rates in use in Mbit/s.
    pub(crate) mbps: Vec<u32>,
}

impl Wire {
    fn new(setup: &Setup, rates: &[Rate]) -> Wire {
        let each = Wire::row(setup);
        let row = |&rate: &Rate| (0..each as u64).map(move |bytes| (bytes, rate));
        Wire {
            tables: rates.iter().flat_map(row).map(|(bytes, rate)| setup.clock.duration(bytes, rate).0).collect(),
            table_row: each,
            mbps: rates.iter().map(|rate| (rate.0 / 1_000_000) as u32).collect(),
        }
    }

    /// How many packet sizes there are.
    fn row(setup: &Setup) -> usize {
        setup.max_packet().max(2048) as usize + 1
    }

    /// Whether a packet may be so long.
    pub(crate) fn holds(&self, size: u16) -> bool {
        (size as usize) < self.table_row
    }

    /// How long a packet of `size` bytes takes at the rate of a table.
    #[inline]
    pub(crate) fn time(&self, table: u16, size: u16) -> Time {
        Time(self.tables[table as usize * self.table_row + size as usize])
    }

    /// The same at the rate of a port.
    #[inline(always)]
    pub(crate) fn time_at(&self, port: &Port, size: u16) -> Time {
        Time(self.tables[port.times as usize + size as usize])
    }
}

/// Where random numbers come from.
pub(crate) struct Random {
    /// By node.
    pub(crate) streams: Vec<Stream>,
    /// In the order of events, for runs that are compared with ns-3.
    pub(crate) shared: Option<Consecutive>,
    /// By node, where all are alike.
    alike: Vec<Fixed>,
    /// With shared dice: of links with a loss of their own by number, and in the end of all others.
    pub(crate) faults: Vec<Fixed>,
}

impl Random {
    fn new(setup: &Setup) -> Random {
        let (nodes, links) = (setup.graph.nodes.len() as u64, setup.graph.links.len());
        Random {
            streams: (0..nodes).map(|node| Stream::new(setup.seed, node)).collect(),
            shared: match setup.dice {
                Dice::PerNode | Dice::Alike { .. } => None,
                Dice::Shared { first, .. } => Some(Consecutive::new(first)),
            },
            alike: match setup.dice {
                Dice::Alike { stream, seed } => vec![Fixed::seeded(seed, stream); nodes as usize],
                Dice::PerNode | Dice::Shared { .. } => Vec::new(),
            },
            faults: match setup.dice {
                Dice::PerNode => Vec::new(),
                Dice::Shared { .. } => vec![Fixed::new(FAULTS); links + 1],
                Dice::Alike { seed, .. } => vec![Fixed::seeded(seed, FAULTS); links + 1],
            },
        }
    }

    /// Whether something of probability `p` happens at `node`.
    pub(crate) fn chance(&mut self, node: u32, p: f64) -> bool {
        match (&mut self.shared, self.alike.get_mut(node as usize)) {
            (Some(dice), _) => dice.uniform() < p,
            (None, Some(dice)) => dice.uniform() < p,
            (None, None) => self.streams[node as usize].chance(p),
        }
    }
}

/// How far the run has come.
pub(crate) struct Progress {
    pub(crate) next_flow: usize,
    pub(crate) active: u32,
    /// Flows that ended, in order, with the event that ended them.
    pub(crate) finished: Vec<(Event, u32)>,
    /// What had moved at the last sample that saw something new, and when that was.
    pub(crate) last: (u64, Time),
    /// What had moved here at the last sample.
    pub(crate) moved_before: u64,
    /// ACKs and NACKs that reached their senders.
    pub(crate) answers: u64,
    /// How many at the last sample that saw more of them, and when that was.
    pub(crate) answered: (u64, Time),
    /// Timers of the scheme that have not gone off.
    pub(crate) timers: u32,
    /// How long nothing may move while flows are active: longer than any link, timeout or back-off.
    pub(crate) patience: Time,
    /// How far flows had come when that was last looked for, and when it was.
    pub(crate) gain: (u64, Time),
    /// How long packets may move without any flow coming further.
    pub(crate) gain_patience: Option<stall::GainPatience>,
    /// Flows are active and nothing has moved for that long, or nothing can any more.
    pub(crate) stuck: bool,
    /// States of the links to come: when, and which are up then.
    pub(crate) changes: Vec<(Time, Vec<bool>)>,
    /// How many turns the blocks had.
    pub(crate) turns: u64,
}

impl Progress {
    /// Whether it is time to look how far flows have come.
    pub(crate) fn gain_due(&self, now: Time) -> bool {
        self.gain_patience.is_some_and(|patience| now.saturating_sub(self.gain.1) > patience.time())
    }

    /// Adds how far another shard has come.
    fn absorb(&mut self, mut other: Progress) {
        self.active += other.active;
        self.timers += other.timers;
        self.turns += other.turns;
        self.next_flow = self.next_flow.max(other.next_flow);
        self.finished.append(&mut other.finished);
    }
}

/// The hardware: links, switches, hosts, and the events under way.
pub struct Core {
    pub(crate) time: Timeline,
    pub(crate) setup: Arc<Setup>,
    pub(crate) map: Arc<PortMap>,
    pub(crate) routing: Arc<Routing>,
    pub(crate) pool: Pool,
    pub(crate) ports: Vec<Port>,
    pub(crate) wire: Wire,
    pub(crate) dice: Random,
    /// Ports that a hook gave something to do.
    pub(crate) kicks: Vec<u32>,
    /// Frames that have arrived and do not act yet.
    pub(crate) reactions: Reactions,
    /// The ends of links that repeat frames.
    pub(crate) retry: Retries,
    pub(crate) switches: Switches,
    pub(crate) hosts: Hosts,
    pub(crate) probes: Probes,
    pub(crate) counts: Counts,
    pub(crate) progress: Progress,
    /// What is skipped, in runs that may skip.
    pub(crate) forward: Option<Box<Forward>>,
    /// What schemes would have counted in what was skipped, when the run is over.
    counters_skipped: HashMap<&'static str, u64>,
    /// The shard of the fabric that is run here, if it is not all.
    pub(crate) shard: Option<Shard>,
    /// The blocks in which it is run.
    blocks: Option<Box<Blocks>>,
    /// What comes out is defined by the order in which one thread does things.
    sequential: bool,
    /// It does not fit into a cache.
    pub(crate) large: bool,
    /// Nobody asks where packets have been, or why they were stopped.
    pub(crate) unwatched: bool,
    /// A packet that finds its port idle, and moves nothing in the books, may go on at once.
    pub(crate) quick: bool,
}

/// A fabric with what runs on it.
pub struct Network<F: FlowControl> {
    /// The hardware.
    pub(crate) core: Core,
    /// Flow control: what all nodes share.
    pub(crate) scheme: F,
    /// And what it keeps at each node.
    pub(crate) nodes: Vec<F::Node>,
    pub(crate) transport: Box<dyn Transport>,
    /// Those of the shards that were absorbed at the end.
    transports: Vec<Box<dyn Transport>>,
    /// Whether the transport takes packets in order only.
    in_order: bool,
}

/// The ports of a fabric and the paths through it.
#[derive(Clone)]
struct Paths {
    map: Arc<PortMap>,
    routing: Arc<Routing>,
}

impl Paths {
    fn new(setup: &Setup) -> Paths {
        let map = PortMap::new(&setup.graph);
        let up: Vec<bool> = setup.graph.links.iter().map(|link| !link.never()).collect();
        let routing = Routing::new(&setup.graph, &map, &up);
        Paths { map: Arc::new(map), routing: Arc::new(routing) }
    }
}

impl Core {
    /// `lossless`: flow control promises to lose nothing.
    fn new(setup: Arc<Setup>, paths: Paths, chosen: &Chosen<'_>, shard: Option<Shard>, lossless: bool) -> Core {
        let graph = &setup.graph;
        let Paths { map, routing } = paths;
        let map_ports = map.count();
        let per_port = setup.classes as u32 * setup.switch.queues;
        let mut rates: Vec<_> = graph.rates().collect();
        rates.sort_unstable();
        rates.dedup();
        let mut ports = ports(&setup, &map, &rates, per_port, &shard);
        let retry = Retries::new(&setup, &mut ports, &map);
        let own = ports.iter().filter(|p: &&Port| shard.as_ref().is_none_or(|shard| shard.owns(p.node))).count();
        let density = own as f64 * EVENTS_PER_PORT;
        let near = ports.iter().map(|p: &Port| p.latency).filter(|&l| l <= Time::from_us(4)).max();
        let horizon = near.unwrap_or_default() + setup.clock.duration(setup.max_packet(), setup.top_rate());
        let farthest = ports.iter().map(|p| p.latency).max().unwrap_or_default() + setup.switch.reaction;
        let timeout = chosen.transport.patience(&setup);
        // A congestion control may pace one packet in a thousand round trips.
        let repeated = (0..map.count() as u32).filter_map(|port| setup.retry_limits(&map, port));
        let repeated = repeated.map(|limits| limits.patience()).max().unwrap_or_default();
        let patience = Time(stall::PATIENCE.0 + 8 * timeout.0.saturating_add(repeated.0) + 4096 * farthest.0);
        let gain_patience = stall::GainPatience::new(&setup, patience, timeout);
        let hosts = Hosts::new(&setup, &map, chosen, &shard);
        let mut switches = Switches::new(&setup, &map, chosen, lossless);
        switches.noted = hosts.needs.telemetry || setup.measure.why;
        let probes = Probes::new(&setup, &map, &shard);
        let unwatched = !setup.measure.why && probes.causes.is_none();
        let with_answers = hosts.needs.delay || chosen.transport.selective();
        Core {
            time: Timeline {
                now: Time::ZERO,
                current: Event::last_at(Time::ZERO),
                events: Box::new(EventQueue::new(density, horizon)),
                in_sequence: setup.ties == Ties::Sequence,
                sequence: 0,
                horizon,
                far_apart: true,
                skipped: Time::ZERO,
            },
            pool: Pool::new(hosts.needs.telemetry, with_answers)
                .with_trails(setup.measure.why)
                .with_labels(switches.labels.any()),
            wire: Wire::new(&setup, &rates),
            dice: Random::new(&setup),
            kicks: Vec::new(),
            reactions: Reactions::new(&setup, ports.len()),
            retry,
            switches,
            probes,
            counts: Counts::default(),
            progress: Progress {
                next_flow: 0,
                active: 0,
                finished: Vec::new(),
                last: (0, Time::ZERO),
                moved_before: 0,
                answers: 0,
                answered: (0, Time::ZERO),
                timers: 0,
                patience,
                gain: (0, Time::ZERO),
                gain_patience,
                stuck: false,
                changes: links::changes(&setup),
                turns: 0,
            },
            forward: Forward::new(&setup),
            counters_skipped: HashMap::new(),
            hosts,
            ports,
            routing,
            map,
            shard,
            blocks: None,
            sequential: chosen.transport.sequential(),
            large: map_ports >= blocks::LARGE,
            unwatched,
            quick: true,
            setup,
        }
    }

    /// The rank of an event at `at` that is set in motion now.
    #[inline]
    pub(crate) fn rank(&mut self, at: Time) -> u32 {
        self.time.rank(at)
    }

    /// Where the run ends, and where it or a frame does.
    fn limits(&self) -> (Time, Time) {
        let stop = self.time.planned(self.setup.stop);
        (stop, self.frame_edge(stop))
    }

    /// Plans a timer of the scheme.
    pub(crate) fn plan_timer(&mut self, at: Time, class: Class, source: u32) {
        let rank = self.rank(at);
        self.progress.timers += 1;
        self.time.events.push(Event::new(at, rank, class as u8, source));
    }

    /// Offers what is recorded so far to who watches the run, together with that of the other shards. Nothing of the run changes.
    fn offer_recording(&self, others: &[&Core]) {
        let recording = |core: &Core| core.probes.recorder.as_ref().map(|recorder| recorder.recording.clone());
        let frames = |core: &Core| core.probes.recorder.as_ref().map(|recorder| recorder.recording.frames);
        let Some(live) = &self.setup.measure.live else { return };
        // Shards between two frames have as many; others are offered later.
        if others.iter().any(|other| frames(other) != frames(self)) {
            return;
        }
        (live.0)(&mut || {
            let mut whole = recording(self).unwrap_or_default();
            others.iter().filter_map(|other| recording(other)).for_each(|other| whole.absorb(other));
            whole
        });
    }

    /// Whether all flows are finished and the network is empty: what is still planned are timers without a purpose.
    fn is_done(&self) -> bool {
        self.progress.next_flow == self.setup.flows.len()
            && self.pool.live() == 0
            && self.nothing_posted()
            && !self.hosts.waiting.any_planned()
            && self.setup.measure.queue_monitor.is_none()
    }

    /// The rate at which `port` sends.
    pub(crate) fn rate(&self, port: u32) -> Rate {
        self.map.rate(&self.setup.graph, port)
    }

    /// The rate at which packets come in by `port`.
    pub(crate) fn rate_in(&self, port: u32) -> Rate {
        self.rate(self.map.peer[port as usize])
    }

    /// When a packet of `size` bytes that has just arrived at `port` began to be sent.
    pub(crate) fn sent_at(&self, port: u32, size: u16) -> Time {
        let far = &self.ports[self.ports[port as usize].peer as usize];
        self.time.now.saturating_sub(far.latency).saturating_sub(self.wire.time(far.table, size))
    }

    /// Puts a packet on the wire, which is free after `lag`.
    #[inline(never)]
    pub(crate) fn start(&mut self, port: u32, id: PacketId, lag: Time) {
        let size = self.pool[id].size;
        self.start_sized(port, id, size, lag);
    }

    /// The same of a packet whose size is known. For the most common cases: a copy of its own.
    #[inline(always)]
    pub(crate) fn start_sized(&mut self, port: u32, id: PacketId, size: u16, lag: Time) {
        let p = &mut self.ports[port as usize];
        let (arrival, rank) = self.time.begin(p, &self.wire, size, lag);
        match &mut self.blocks {
            Some(blocks) if p.detour == detour::ABROAD => blocks.send(p.toward, p.peer, id, arrival, rank),
            _ => self.start_otherwise(port, id, arrival, rank),
        }
    }

    /// A packet that has just been put on the wire goes to a node of the same block, or takes a detour.
    #[inline(never)]
    fn start_otherwise(&mut self, port: u32, id: PacketId, arrival: Time, rank: u32) {
        let p = &self.ports[port as usize];
        let peer = p.peer;
        if p.detour == 0 || !self.detour(port, id, arrival, rank) {
            self.fly(peer, id, arrival, rank);
        }
    }

    /// The same of a data packet, of whose way something may be kept, at a port whose link is still taken for as long as `lag`.
    #[inline(always)]
    pub(crate) fn start_late(&mut self, port: u32, id: PacketId, size: u16, lag: Time) {
        if lag > Time::ZERO && self.pool.traced() {
            self.delay_trail(port, id, lag);
        }
        self.start_sized(port, id, size, lag);
    }

    /// Adds a packet to those in flight towards `port`.
    #[inline(never)]
    fn fly(&mut self, port: u32, id: PacketId, arrival: Time, rank: u32) {
        if self.ports[port as usize].flying.push(&mut self.pool, id, arrival, rank) {
            self.time.events.push(Event::new(arrival, rank, Class::Arrival as u8, port));
        }
    }

    /// Whether a transmission is under way at `port`. It may end at this very instant, only later in it.
    #[inline]
    pub(crate) fn is_sending(&self, port: u32) -> bool {
        let p = &self.ports[port as usize];
        let now = self.time.now;
        p.free_at > now
            || p.free_at == now && Event::new(p.free_at, p.end_rank, Class::TxEnd as u8, port) > self.time.current
    }

    /// Whether a switch's `port` is idle and nothing waits there: what comes now is sent at once.
    #[inline]
    pub(crate) fn is_idle(&self, port: u32) -> bool {
        let p = &self.ports[port as usize];
        p.queued == 0 && !p.wake && !self.is_sending(port)
    }

    /// Whether the transmission under way at `port`, which ends at this very instant, is the next thing to happen here. Then it has: an event less.
    /// The next packet that arrives here, as far as it is no event yet, comes at `next`.
    #[inline(never)]
    pub(crate) fn ends_next(&mut self, port: u32, next: Event) -> bool {
        let p = &self.ports[port as usize];
        let end = Event::new(p.free_at, p.end_rank, Class::TxEnd as u8, port);
        if end > self.time.current {
            if end >= next || self.time.events.has_before(end) {
                return false;
            }
            self.time.current = end;
            self.counts.events += 1;
        }
        true
    }

    /// Puts the end of the transmission under way on the event queue.
    #[inline]
    pub(crate) fn schedule_end(&mut self, port: u32) {
        let p = &mut self.ports[port as usize];
        p.wake = true;
        self.time.events.push(Event::new(p.free_at, p.end_rank, Class::TxEnd as u8, port));
    }

    /// Bytes that `port` has sent: of a packet that is being sent only the whole bytes that are on the wire already.
    pub(crate) fn sent_by_now(&self, port: usize) -> u64 {
        self.sent_by(port, self.time.now)
    }

    /// The same by a later instant, up to which nothing more is sent.
    pub(crate) fn sent_by(&self, port: usize, then: Time) -> u64 {
        let p = &self.ports[port];
        if p.free_at <= then {
            return p.tx_bytes;
        }
        p.tx_bytes.saturating_sub(self.rate(port as u32).bytes_over(p.free_at - then))
    }

    /// Forgets a packet that did not make it.
    pub(crate) fn discard(&mut self, id: PacketId) {
        let packet = self.pool[id];
        if packet.flags & flag::PAYLOAD != 0 {
            self.pool.take_payload(packet.flow);
        }
        self.counts.dropped_bytes += packet.size as u64;
        if packet.kind == Kind::Data {
            self.counts.dropped_data.0 += 1;
            self.counts.dropped_data.1 += (packet.size - self.setup.nic.header) as u64;
        }
        self.pool.remove(id);
    }
}

/// All ports as they are before the run.
fn ports(setup: &Setup, map: &PortMap, rates: &[Rate], per_port: u32, shard: &Option<Shard>) -> Vec<Port> {
    let graph = &setup.graph;
    let mut nics = 0;
    let mut ports = Vec::with_capacity(map.count());
    let mut first_queue = 0;
    for port in 0..map.count() {
        let (node, peer, link) = (map.node[port], map.peer[port], &graph.links[map.link[port] as usize]);
        let host = graph.nodes[node as usize].kind == topology::Kind::Host;
        let relays = host && graph.forwards(NodeId(node), map.of(node).len());
        let far = map.node[peer as usize];
        let to_switch = graph.nodes[far as usize].kind == topology::Kind::Switch;
        let pipeline = if to_switch { setup.switch.pipeline } else { Time::ZERO };
        let remote = shard.as_ref().is_some_and(|shard| shard.owns(node) && !shard.owns(far));
        let capture = setup.measure.capture.as_ref();
        let captured = capture.is_some_and(|capture| capture.ports.binary_search(&(port as u32)).is_ok());
        let base = map.base[node as usize];
        let rate = rates.binary_search(&map.rate(graph, port as u32)).unwrap_or(0);
        ports.push(Port {
            free_at: Time::ZERO,
            end_rank: 0,
            frames: Default::default(),
            urgent: false,
            detour: (remote as u8 * detour::REMOTE) | (captured as u8 * detour::CAPTURED),
            control: Default::default(),
            queued: 0,
            tx_bytes: 0,
            flying: Default::default(),
            base,
            local: (port as u32 - base) as u16,
            alone: map.of(node).len() == 1,
            toward: u32::MAX,
            times: (rate * Wire::row(setup)) as u32,
            node,
            peer,
            first_queue,
            ecn_min: setup.ports[port].ecn.map_or(u32::MAX, |e| e.min.min(u32::MAX as u64) as u32),
            latency: link.delay + pipeline,
            table: rate as u16,
            last: 0,
            paused: 0,
            wake: false,
            up: true,
            host,
            relays,
            faulty: link.errs(),
            nic: nics,
            pause_start: Time::ZERO,
            pause_total: Time::ZERO,
        });
        nics += host as u32;
        if !host || relays {
            first_queue += per_port;
        }
    }
    ports
}

/// Calls a hook of flow control at the node of a port: its state, its view, and the port's own number there.
macro_rules! hook {
    ($net:expr, $port:expr, |$scheme:ident, $node:ident, $at:ident, $local:ident| $call:expr) => {{
        let p = &$net.core.ports[$port as usize];
        let (number, base) = (p.node, p.base);
        #[allow(unused_variables)]
        let $local = $crate::id::PortId(p.local);
        let ($scheme, $node) = (&$net.scheme, &mut $net.nodes[number as usize]);
        let $at = &mut $crate::view::NodeView::new(&mut $net.core, number, base);
        $call
    }};
}
pub(crate) use hook;

impl<F: FlowControl> Network<F> {
    /// Builds the fabric and loads the flows.
    pub fn new(setup: Setup, scheme: F, chosen: &Chosen<'_>) -> Network<F> {
        let paths = Paths::new(&setup);
        Network::shard(Arc::new(setup), paths, scheme, chosen, None)
    }

    fn shard(setup: Arc<Setup>, paths: Paths, scheme: F, chosen: &Chosen<'_>, shard: Option<Shard>) -> Network<F> {
        const { crate::message::assert_messages::<F::Frame, F::Signal>() };
        const { assert!(!F::COUNTS || F::LOOKS_AT_QUEUES && (!F::PASSES || F::CHOOSES), "what is counted joins its queue") };
        let mut core = Core::new(setup, paths, chosen, shard, scheme.lossless());
        core.switches.declared_timers = scheme.timers(core.setup.classes);
        core.switches.timers = core.switches.declared_timers.max(1);
        let timers = core.ports.len() as u64 * core.switches.timers as u64;
        assert!(timers <= Event::MAX_SOURCE as u64 + 1, "{timers} timers are more than events can name");
        core.switches.first_timers = scheme.first_timers(core.setup.classes);
        core.switches.layers = F::LAYERS;
        // Without a say of the scheme's own, a packet's queue is that of its class.
        core.switches.data_passes &= F::CHOOSES || core.setup.switch.queues == 1;
        core.switches.answers_queue = core.switches.data_passes && core.setup.nic.ack_lane != AckLane::Control;
        core.progress.next_flow = core.next_own_flow(0);
        let events = &mut core.time.events;
        if let Some(flow) = core.setup.flows.get(core.progress.next_flow) {
            events.push(Event::new(flow.start, Event::LAST, Class::FlowStart as u8, 0));
        }
        if let Some(flow) = core.setup.flows.first() {
            let start = flow.start;
            if core.setup.measure.sample.is_some() {
                events.push(Event::new(start, Event::LAST, Class::Sample as u8, 0));
            }
            if core.setup.measure.series.is_some() {
                events.push(Event::new(start, Event::LAST, Class::Series as u8, 0));
            }
        }
        if let Some(monitor) = core.setup.measure.queue_monitor {
            events.push(Event::new(monitor.from, 0, Class::Monitor as u8, 0));
        }
        for (index, (time, _)) in core.progress.changes.iter().enumerate() {
            let reroute = time.saturating_add(core.setup.reroute);
            events.push(Event::new(*time, 0, Class::LinkChange as u8, index as u32 * 2));
            events.push(Event::new(reroute, 0, Class::LinkChange as u8, index as u32 * 2 + 1));
        }
        let longest_rtt = core.setup.longest_rtt();
        let site = |node: u32| Site { setup: &core.setup, map: &core.map, node: NodeId(node), longest_rtt };
        let nodes = (0..core.setup.graph.nodes.len() as u32).map(|node| scheme.node(&site(node))).collect();
        let (nics, needs) = (core.hosts.nics.len(), core.hosts.needs);
        let ground = Ground { setup: &core.setup, shard: &core.shard, nics, needs };
        let transport = chosen.transport.build(&ground);
        core.hosts.windows = transport.counts_flight().then(|| ground.per_sender(|_| u64::MAX));
        core.hosts.nacks_trimmed = transport.nacks_trimmed();
        core.hosts.cap = transport.window_cap();
        core.hosts.asks = transport.asked();
        // At a host that forwards, a packet that goes straight on may come between the ends of two ports: all of them are planned.
        core.hosts.looks_for_all |= core.hosts.asks || core.ports.iter().any(|port| port.relays);
        core.hosts.tells_sent = transport.hears_sent();
        if let Some(causes) = core.probes.causes.as_mut().filter(|_| F::LOOKS_AT_QUEUES) {
            causes.all_join();
        }
        if let Some(parts) = &mut core.probes.parts {
            if chosen.transport.in_order() {
                parts.last_completes();
            }
            if !core.progress.changes.is_empty() {
                parts.keep_all();
            }
        }
        let in_order = chosen.transport.in_order() && !chosen.load_balancing.may_reorder();
        Network { core, scheme, nodes, transport, transports: Vec::new(), in_order }
    }

    /// Runs until nothing is left to do, or to the scenario's stop. `report` is called now and then with the
    /// simulated time and the number of packet-hops; it ends the run early by returning false.
    pub fn run(&mut self, mut report: impl FnMut(Time, u64) -> bool) -> Outcome {
        self.core.plan_first_look();
        self.core.cut_into_blocks();
        let interrupted = self.run_blocks(&mut report) || self.run_through(report);
        self.outcome(interrupted)
    }

    /// True if the report ended the run.
    fn run_through(&mut self, mut report: impl FnMut(Time, u64) -> bool) -> bool {
        let mut countdown = REPORT_EVERY;
        let (mut stop, mut edge) = self.core.limits();
        while let Some(event) = self.core.time.events.pop() {
            // A look is nothing that happens: a run that has nothing else to do is over.
            let nothing_else = self.core.progress.stuck || self.core.time.events.is_empty();
            if event.class() == Class::Forward as u8 && nothing_else {
                continue;
            }
            if event.time() >= edge || self.core.progress.stuck {
                if event.time() >= stop || self.core.progress.stuck {
                    self.core.time.now = self.core.time.now.max(stop.min(event.time()));
                    break;
                }
                self.core.record_until(event.time());
                edge = self.core.frame_edge(stop);
            }
            self.step(event);
            if event.class() == Class::Forward as u8 {
                (stop, edge) = self.core.limits();
            }
            if self.core.progress.active == 0 && self.core.is_done() {
                break;
            }
            countdown -= 1;
            if countdown == 0 {
                countdown = REPORT_EVERY;
                if !report(self.core.time.now, self.core.counts.hops) {
                    return true;
                }
                self.core.offer_recording(&[]);
            }
        }
        false
    }

    /// Makes an event happen.
    #[inline]
    pub(crate) fn step(&mut self, event: Event) {
        self.core.time.now = event.time();
        self.core.time.current = event;
        self.handle(event);
        self.drain_kicks();
    }

    /// Makes the end of a transmission happen: most events that a node plans itself.
    #[inline(always)]
    fn end_transmission(&mut self, event: Event) {
        let core = &mut self.core;
        (core.time.now, core.time.current) = (event.time(), event);
        core.counts.events += 1;
        let port = event.source();
        core.ports[port as usize].wake = false;
        self.transmit(port);
        self.drain_kicks();
    }

    /// Makes the arrival of a packet happen. The next one here, or the end of the turn, is `next`.
    #[inline(always)]
    fn step_arrival(&mut self, event: Event, id: PacketId, next: Event) {
        let core = &mut self.core;
        core.time.now = event.time();
        core.time.current = event;
        let port = event.source();
        let p = &core.ports[port as usize];
        if p.host || p.faulty {
            self.receive(port, id, next);
        } else {
            self.count_arrival(port, id);
            self.switch_arrival(port, id, next);
        }
        self.drain_kicks();
    }

    /// A packet has arrived at a switch's `port`, and was not lost on the way.
    #[inline(always)]
    fn switch_arrival(&mut self, port: u32, id: PacketId, next: Event) {
        let (core, switches) = (&self.core, &self.core.switches);
        match core.pool[id].kind {
            Kind::Data if F::PASSES && switches.data_passes => self.straight_on(port, id, next, true),
            // Half of all packets are ACKs on their way: ahead of all data, or among it.
            Kind::Ack if switches.answers_pass => self.straight_on(port, id, next, false),
            Kind::Ack if F::PASSES && !F::CHOOSES && switches.answers_queue => self.straight_on(port, id, next, true),
            Kind::Frame => self.frame_arrives(port, id),
            _ => self.switch_receive(port, id, next),
        }
    }

    /// Gives every port that a hook called upon its chance.
    #[inline(always)]
    pub(crate) fn drain_kicks(&mut self) {
        if !self.core.kicks.is_empty() {
            self.drain_some();
        }
    }

    #[inline(never)]
    fn drain_some(&mut self) {
        while let Some(port) = self.core.kicks.pop() {
            self.kick(port);
        }
    }

    #[inline]
    fn handle(&mut self, event: Event) {
        let source = event.source();
        if event.class() == Class::Arrival as u8 {
            self.core.counts.events += 1;
            self.arrive(source);
        } else if event.class() == Class::TxEnd as u8 {
            self.core.counts.events += 1;
            self.core.ports[source as usize].wake = false;
            self.transmit(source);
        } else {
            self.handle_other(event);
        }
    }

    /// The rest of it, which is rare.
    #[inline(never)]
    fn handle_other(&mut self, event: Event) {
        let (source, class) = (event.source(), Class::of(event));
        self.core.counts.events += class.at_a_node() as u64;
        match class {
            Class::NicWake => self.nic_wake(source),
            Class::FlowTimer => self.flow_timer(source),
            Class::FlowStart => self.start_flows(),
            Class::Sample => {
                self.observe();
                self.core.sample();
            }
            Class::Forward => self.look_ahead(),
            Class::Monitor => self.core.monitor(),
            Class::Series => self.core.follow(),
            Class::Leave => self.core.leave(source),
            Class::LateStart => self.late_start(source),
            Class::TransportTimer => {
                let port = self.core.hosts.nics[source as usize].port;
                self.at_host(port, |transport, at, local| transport.timer(at, local));
            }
            Class::Receive => self.received(source),
            Class::Relay => self.relay_event(source),
            Class::Reaction => self.reaction_event(source),
            Class::Balance => self.balance_event(source),
            Class::Retry => self.retry_event(source),
            Class::PortTimer => {
                self.core.progress.timers -= 1;
                let (port, timer) = (source / self.core.switches.timers, source % self.core.switches.timers);
                hook!(self, port, |scheme, node, at, local| scheme.timer(node, at, local, timer));
            }
            Class::HoldTimer => {
                self.core.progress.timers -= 1;
                let port = self.core.hosts.nics[self.core.hosts.senders[source as usize].nic as usize].port;
                hook!(self, port, |scheme, node, at, local| scheme.flow_timer(node, at, FlowId(source)));
            }
            Class::LinkChange if source.is_multiple_of(2) => self.change_links(source / 2),
            Class::LinkChange => self.reroute(source / 2),
            Class::Arrival | Class::TxEnd => unreachable!("handled before"),
        }
    }

    /// What flow control keeps at a node.
    pub fn node(&self, node: NodeId) -> &F::Node {
        &self.nodes[node.index()]
    }

    /// Lets something happen at a node before or after the run, for tests that need the state of a run.
    pub fn at(&mut self, node: NodeId, act: impl FnOnce(&F, &mut F::Node, &mut NodeView<'_>)) {
        let base = self.core.map.base[node.index()];
        act(&self.scheme, &mut self.nodes[node.index()], &mut NodeView::new(&mut self.core, node.0, base));
        self.drain_kicks();
    }

    /// Lets the transport act at the host of a port.
    #[inline]
    pub(crate) fn at_host<R>(
        &mut self,
        port: u32,
        act: impl FnOnce(&mut dyn Transport, &mut HostView<'_>, PortId) -> R,
    ) -> R {
        let p = &self.core.ports[port as usize];
        let (node, base, local) = (p.node, p.base, PortId(p.local));
        act(&mut *self.transport, &mut HostView::new(&mut self.core, node, base), local)
    }

    /// Lets flow control fill its histograms.
    fn observe(&mut self) {
        for node in 0..self.nodes.len() as u32 {
            // Whether blocks have turns does not matter here: samples belong to all.
            if self.core.shard.as_ref().is_none_or(|shard| shard.owns(node)) {
                let base = self.core.map.base[node as usize];
                let at = NodeView::new(&mut self.core, node, base);
                self.scheme.observe(&mut self.nodes[node as usize], &at);
            }
        }
    }

    /// The first packet in flight towards `port` has arrived.
    #[inline]
    pub(crate) fn arrive(&mut self, port: u32) {
        let core = &mut self.core;
        let p = &mut core.ports[port as usize];
        let Some((id, next)) = p.flying.pop(&core.pool) else { return };
        if let Some((arrival, rank)) = next {
            core.pool.fetch(p.flying.head());
            core.time.events.push(Event::new(arrival, rank, Class::Arrival as u8, port));
        }
        core.counts.hops += 1;
        // In the order of time, all that comes next is an event.
        let next = if core.time.far_apart { Event::NEVER } else { Event::ZERO };
        self.receive(port, id, next);
    }

    /// A packet has arrived at `port`, which is most likely a host's. A copy of its own of what happens there most.
    #[inline(always)]
    pub(crate) fn receive_here(&mut self, port: u32, id: PacketId, next: Event) {
        let core = &self.core;
        let p = &core.ports[port as usize];
        let plain = p.host && !p.relays && !p.faulty;
        match core.pool[id].kind {
            Kind::Data if plain && core.hosts.slow.is_empty() => {
                self.count_arrival(port, id);
                self.receive_data(port, id);
            }
            Kind::Ack if plain => {
                self.count_arrival(port, id);
                self.count_gone(port, id);
                self.receive_control(port, id);
            }
            _ => self.receive(port, id, next),
        }
    }

    /// A packet has arrived at `port`. The next one here that is no event yet comes at `next`, or no sooner.
    #[inline(never)]
    fn receive(&mut self, port: u32, id: PacketId, next: Event) {
        let core = &mut self.core;
        let p = &core.ports[port as usize];
        let (host, relays, faulty) = (p.host, p.relays, p.faulty);
        let id = match faulty {
            true => match core.cross_link(port, id) {
                Some(id) => id,
                None => return,
            },
            false => id,
        };
        self.count_arrival(port, id);
        let core = &mut self.core;
        if core.pool[id].kind == Kind::Frame {
            self.frame_arrives(port, id);
        } else if host {
            if relays && core.pool[id].dst != core.ports[port as usize].node {
                return self.relay_receive(port, id);
            }
            self.host_receive(port, id);
        } else {
            self.switch_arrival(port, id, next);
        }
    }

    /// A signal as hooks see it.
    pub(crate) fn read_signal(packet: &Packet) -> Signal<F::Signal> {
        Signal {
            flow: FlowId(packet.flow),
            class: ClassId(packet.class),
            tuple: packet.tuple,
            size: packet.size,
            message: Unpacker::read(packet.seq as u128, None),
        }
    }

    /// A port has something new to send: send it now, or when the transmission under way ends.
    #[inline(always)]
    pub(crate) fn kick(&mut self, port: u32) {
        if self.core.ports[port as usize].wake {
            return;
        }
        if self.core.is_sending(port) {
            self.core.schedule_end(port);
        } else {
            self.transmit(port);
        }
    }

    /// For how long the link of `port` is still taken by what was not simulated.
    #[inline]
    pub(crate) fn lag(&mut self, port: u32) -> Time {
        let p = &self.core.ports[port as usize];
        let (node, base, local) = (p.node, p.base, PortId(p.local));
        self.lag_at(node, base, local)
    }

    /// The same of a port of which node and number are known.
    #[inline]
    pub(crate) fn lag_at(&mut self, node: u32, base: u32, port: PortId) -> Time {
        // No panic for a node that cannot be: the whole of it vanishes for schemes without a lag.
        debug_assert!((node as usize) < self.nodes.len());
        let Some(state) = self.nodes.get_mut(node as usize) else { return Time::ZERO };
        self.scheme.lag(state, &NodeView::new(&mut self.core, node, base), port)
    }

    /// Sends the next packet of an idle port, if there is one.
    #[inline]
    pub(crate) fn transmit(&mut self, port: u32) {
        let p = &self.core.ports[port as usize];
        // Most have nothing but data to send.
        if p.urgent | p.relays | !p.up || !p.control.is_empty() {
            self.transmit_any(port);
        } else if p.host {
            self.transmit_own(port);
        } else {
            self.transmit_data(port);
        }
    }

    /// Sends the next packet of an idle host's port, if there is one.
    #[inline(never)]
    fn transmit_own(&mut self, port: u32) {
        if self.nic_transmit(port) {
            let core = &mut self.core;
            let p = &core.ports[port as usize];
            let more = p.urgent || core.hosts.nics[p.nic as usize].has_work(core.hosts.looks_for_all);
            if more && !core.link_waits(port) {
                core.schedule_end(port);
            }
        }
    }

    /// Sends the next data packet of an idle port of a switch, if there is one.
    #[inline(never)]
    fn transmit_data(&mut self, port: u32) {
        if !self.switch_transmit(port) {
            return;
        }
        let core = &mut self.core;
        let p = &core.ports[port as usize];
        let more = p.queued > 0 && (p.urgent || !p.control.is_empty() || core.switches.masks.any_ready(port));
        if more && !core.link_waits(port) {
            if core.large {
                core.fetch_next(port);
            }
            core.schedule_end(port);
        }
    }

    #[inline(never)]
    fn transmit_any(&mut self, port: u32) {
        let core = &mut self.core;
        if core.time.far_apart {
            let p = &core.ports[port as usize];
            // What is sent here will fly there.
            prefetch(&core.ports[p.peer as usize].flying);
        }
        let p = &mut core.ports[port as usize];
        if !p.up {
            return;
        }
        let links_turn = p.urgent && p.detour & detour::REPEATED != 0;
        let first = if links_turn { core.link_first(port) } else { First::Others };
        let p = &mut core.ports[port as usize];
        if first == First::Waits {
            return;
        } else if first == First::Sent {
        } else if p.urgent {
            let Some(id) = p.frames.pop(&core.pool) else { return };
            p.urgent = !p.frames.is_empty();
            p.queued -= core.pool[id].size as u64;
            if !p.host {
                core.leave_control(port, id);
            }
            core.start(port, id, Time::ZERO);
        } else if p.host {
            if !(if p.relays { self.relay_transmit(port) } else { self.nic_transmit(port) }) {
                return;
            }
        } else if !p.control.is_empty()
            && let Some(id) = core.next_control(port)
        {
            core.leave_control(port, id);
            let lag = self.lag(port);
            self.core.start(port, id, lag);
        } else if !self.switch_transmit(port) {
            return;
        }
        let core = &mut self.core;
        let p = &core.ports[port as usize];
        let more = if p.host {
            core.hosts.nics[p.nic as usize].has_work(core.hosts.looks_for_all) || p.relays && core.may_relay(port)
        } else {
            p.queued > 0 && (!p.control.is_empty() || core.switches.masks.any_ready(port))
        };
        if (more || p.urgent) && !core.link_waits(port) {
            if core.large && !p.host {
                core.fetch_next(port);
            }
            core.schedule_end(port);
        }
    }
}

/// Events per nanosecond: a busy full-duplex 100 Gb/s link sees some twenty in a microsecond.
const EVENTS_PER_PORT: f64 = 0.01;

/// The stream from which shared dice draw losses.
const FAULTS: u64 = 50;

/// Events between two progress reports.
const REPORT_EVERY: u32 = 1 << 18;
