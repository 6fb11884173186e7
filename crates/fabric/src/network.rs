//! A running fabric: nodes that share nothing, and the events between them.
//!
//! Two kinds of event carry the traffic: a packet's *arrival* at a port, and the *end of a transmission*. A link delivers
//! in order, so it has one pending arrival however many packets are in flight; a transmitter that would find
//! nothing to send has no pending end at all. Everything else (pacing, timers, flow starts, samples) is rare.
//!
//! [`Core`] is the hardware and knows no scheme; [`Network`] runs it with one.

mod blocks;
mod capture;
mod census;
mod check;
mod counts;
mod hands;
mod irn;
mod ndp;
mod nic;
mod parallel;
mod part;
mod record;
mod relay;
mod sample;
mod slow;
mod stall;
mod switch;
mod transport;
mod waiting;

pub use capture::Captured;
pub use check::{Exchange, FlowRecord, Outcome, Stall, Wait};
pub use counts::Counts;
pub use nic::NIC_SEED;
pub use parallel::{Plan, partition, worthwhile};
pub use record::{Column, FLOW_COLUMNS, PORT_COLUMNS, Recording};
pub use transport::{Receiver, Sender};

use crate::buffer::{Account, Buffer};
use crate::near::prefetch;
use crate::packet::{Kind, PacketId, Pool, flag};
use crate::port::{Port, Queue, QueueMasks, detour};
use crate::routing::{PortMap, Routing};
use crate::scheme::{CongestionControl, FlowControl, Needs};
use crate::setup::{Dice, NdpSetup, Setup, Split, Ties};
use crate::topology;
use blocks::Blocks;
use census::Census;
use engine::random::{Consecutive, Fixed};
use engine::{Event, EventQueue, Rate, Stream, Time};
use hands::Hold;
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

    /// Whether it happens to a node, and not to the run as a whole: such events are the same however a fabric is cut.
    pub fn at_a_node(class: u8) -> bool {
        !matches!(class, LINK_CHANGE | SAMPLE | MONITOR | SERIES | FLOW_START)
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
    /// How far ahead most events are planned.
    horizon: Time,
    /// States of the links to come: when, and which are up then.
    changes: Vec<(Time, Vec<bool>)>,
    /// How long flow control has kept each flow from sending.
    holds: PerFlow<Hold>,
    /// What was captured.
    captured: Vec<Captured>,
    /// By port, how much more of it may be. Empty where nothing is.
    capture_left: Vec<u32>,
    /// What is recorded, if anything is.
    recorder: Option<Box<record::Recorder>>,
    /// The part of the fabric that is run here, if it is not all.
    part: Option<Part>,
    /// The blocks in which it is run.
    blocks: Option<Box<Blocks>>,
    /// How many turns they had.
    turns: u64,
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
        let own = ports.iter().filter(|p: &&Port| part.as_ref().is_none_or(|part| part.owns(p.node))).count();
        let density = own as f64 * EVENTS_PER_PORT;
        let near = ports.iter().map(|p: &Port| p.latency).filter(|&l| l <= Time::from_us(4)).max();
        let horizon = near.unwrap_or_default() + setup.clock.duration(setup.max_packet(), setup.top_rate());
        let ndp = setup.nic.ndp.map(|own| Box::new(ndp::Ndp::new(own, &setup, &part, map.count(), nics.len())));
        let farthest = ports.iter().map(|p| p.latency).max().unwrap_or_default();
        let timeout = setup.nic.irn.map(|irn| irn.high).or(setup.nic.recovery.timeout).unwrap_or_default();
        let recorder = setup.measure.record.as_ref();
        let recorder = recorder.map(|record| Box::new(record::Recorder::new(record, &setup, &map, &part)));
        let patience = Time(stall::PATIENCE.0 + 8 * timeout.0 + 16 * farthest.0);
        Core {
            now: Time::ZERO,
            current: Event::new(Time::ZERO, Event::LAST, 15, u32::MAX),
            horizon,
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
            holds: PerFlow::new(&setup, &part, |flow| flow.src, |_| Hold::NEVER),
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
            recorder,
            ports,
            routing,
            map,
            part,
            blocks: None,
            turns: 0,
            setup,
        }
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
        if p.detour != 0 {
            if p.detour == detour::ABROAD {
                return self.send_abroad(peer, id, arrival, rank);
            }
            if self.detour(port, id, arrival, rank) {
                return;
            }
        }
        self.fly(peer, id, arrival, rank);
    }

    /// Adds a packet to those in flight towards `port`.
    #[inline]
    fn fly(&mut self, port: u32, id: PacketId, arrival: Time, rank: u32) {
        if self.ports[port as usize].flying.push(&mut self.pool, id, arrival, rank) {
            self.events.push(Event::new(arrival, rank, class::ARRIVAL, port));
        }
    }

    /// Whether a transmission is under way at `port`. It may end at this very instant, only later in it.
    #[inline]
    fn is_sending(&self, port: u32) -> bool {
        let p = &self.ports[port as usize];
        Event::new(p.free_at, p.end_rank, class::TX_END, port) > self.current
    }

    /// Whether a switch's `port` is idle and nothing waits there: what comes now is sent at once.
    #[inline]
    fn is_idle(&self, port: u32) -> bool {
        let p = &self.ports[port as usize];
        p.queued == 0 && !p.wake && !self.is_sending(port)
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
        self.sent_by(port, self.now)
    }

    /// The same by a later instant, up to which nothing more is sent.
    fn sent_by(&self, port: usize, then: Time) -> u64 {
        let p = &self.ports[port];
        if p.free_at <= then {
            return p.tx_bytes;
        }
        p.tx_bytes.saturating_sub(self.rate(port as u32).bytes_in(p.free_at - then))
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
        self.core.cut_into_blocks();
        let interrupted = self.run_blocks(&mut report) || self.run_through(report);
        self.outcome(interrupted)
    }

    /// True if the report ended the run.
    fn run_through(&mut self, mut report: impl FnMut(Time, u64) -> bool) -> bool {
        let stop = self.core.setup.stop;
        let mut countdown = REPORT_EVERY;
        let mut edge = self.core.frame_edge(stop);
        while let Some(event) = self.core.events.pop() {
            if event.time() >= edge || self.core.stuck {
                if event.time() >= stop || self.core.stuck {
                    self.core.now = self.core.now.max(stop.min(event.time()));
                    break;
                }
                self.core.record_until(event.time());
                edge = self.core.frame_edge(stop);
            }
            self.step(event);
            if self.core.active == 0 && self.core.is_done() {
                break;
            }
            countdown -= 1;
            if countdown == 0 {
                countdown = REPORT_EVERY;
                if !report(self.core.now, self.core.counts.hops) {
                    return true;
                }
            }
        }
        false
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
        if event.class() == class::ARRIVAL {
            self.core.counts.events += 1;
            self.arrive(source);
        } else if event.class() == class::TX_END {
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
        let source = event.source();
        self.core.counts.events += class::at_a_node(event.class()) as u64;
        match event.class() {
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
        let (host, relays, faulty) = (p.host, p.relays, p.faulty);
        if faulty && core.lost_on_the_way(port, id) {
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
        if self.core.ports[port as usize].wake {
            return;
        }
        if self.core.is_sending(port) {
            self.core.schedule_end(port);
        } else {
            self.transmit(port);
        }
    }

    /// Sends the next packet of an idle port, if there is one.
    #[inline]
    fn transmit(&mut self, port: u32) {
        let core = &mut self.core;
        let p = &core.ports[port as usize];
        if p.detour == 0 {
            // What is sent here will fly there.
            prefetch(&core.ports[p.peer as usize].flying);
        }
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

/// Events per nanosecond: a busy full-duplex 100 Gb/s link sees some twenty in a microsecond.
const EVENTS_PER_PORT: f64 = 0.01;

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
