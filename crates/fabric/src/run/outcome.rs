//! The end of a run: what came out, and whether it can be believed.

use super::forward::Forwarded;
use super::{Core, Network};
use crate::axes::flow_control::FlowControl;
use crate::axes::{Counter, Histogram};
use crate::id::FlowId;
use crate::packet::Fifo;
use crate::port::Flying;
use crate::probe::{Captured, Counts, Histograms, PauseEvent, Recording, Samples, Series, Span, Stops};
use crate::retry::Tally;
use crate::setup::FlowSpec;
use crate::topology::Graph;
use engine::Time;
use std::time::Duration;

/// A queue of an egress port that may not send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wait {
    /// The port.
    pub port: u32,
    /// The queue, counted from the port's first.
    pub queue: u32,
}

/// Why a run ended with flows unfinished although nothing more could happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stall {
    /// Queues wait for each other in a cycle: each is stopped because the next cannot empty. The queues of one cycle, in
    /// order.
    Deadlock(Vec<Wait>),
    /// Ports are paused and no node is left to resume them, without a cycle.
    Blocked(Vec<u32>),
    /// The network is empty; the missing data was lost and no sender will repeat it.
    Lost,
}

/// When the stages of a flow happened; [`Time::MAX`] for those that did not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowRecord {
    /// The flow.
    pub spec: FlowSpec,
    /// Bytes received in order.
    pub delivered: u64,
    /// It was handed to its NIC: the planned start, or later if it waited for others.
    pub start: Time,
    /// Bytes of message; fewer than planned if its sender left early.
    pub size: u64,
    /// Its last byte was first put on the sender's link.
    pub injected: Time,
    /// Its last byte arrived.
    pub received: Time,
    /// Its last byte was acknowledged.
    pub acknowledged: Time,
    /// How long flow control kept it, and not all of its class, from sending.
    pub held: Time,
    /// How long its class was paused at its NIC while it had bytes left that it had never sent, and was not held besides.
    pub paused: Time,
}

/// What the shards of a run sent each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    /// How many shards there were; 0 for a run by one thread.
    pub shards: usize,
    /// For how long they run side by side without exchanging anything.
    pub look_ahead: Time,
    /// How often they did.
    pub stretches: u64,
    /// Of these, those that were large enough for all threads.
    pub together: u64,
    /// Pairs of shards with something to send, summed over the stretches: the number of messages, if there were one for each pair.
    pub mails: u64,
    /// Packets that went from one shard to another.
    pub packets: u64,
    /// What they take in memory, with their telemetry: about what would go over a network between machines.
    pub bytes: u64,
    /// What all shards took, by the clock of [`Setup::clocked`](crate::Setup::clocked).
    pub work: Duration,
    /// What the whole took from the first stretch to the last, by that clock, with what shards exchange in between.
    pub whole: Duration,
    /// What the slowest shard of each stretch took: that is how long it lasts where each has a core of its own.
    pub slowest: Duration,
}

/// What a run produced.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// When the run ended.
    pub end: Time,
    /// All flows, in order of start.
    pub flows: Vec<FlowRecord>,
    /// Flows in the order they were acknowledged to the end.
    pub finished: Vec<FlowId>,
    /// Totals.
    pub counts: Counts,
    /// Packets still queued or in flight.
    pub left: u64,
    /// What flow control counted.
    pub flow_control: Vec<Counter>,
    /// What flow control saw at the sampling instants.
    pub histograms: Vec<Histogram>,
    /// What congestion control counted.
    pub congestion_control: Vec<Counter>,
    /// What the transport and the receivers counted.
    pub transport: Vec<Counter>,
    /// What load balancing and marking counted at switches.
    pub switches: Vec<Counter>,
    /// How long each port, or something of it, was held by its neighbour.
    pub paused: Vec<Time>,
    /// Of that, how long whole classes were, and how long all of it was.
    pub stopped: Vec<(Time, Time)>,
    /// Pauses and resumes, if they were to be kept.
    pub pause_log: Vec<PauseEvent>,
    /// Peak occupancy by node; 0 for hosts that do not forward.
    pub peak: Vec<u64>,
    /// Occupancy of the switches.
    pub samples: Samples,
    /// What was followed closely.
    pub series: Series,
    /// The ports and the flows that were.
    pub watched: (Vec<u32>, Vec<FlowId>),
    /// What links that repeat frames did, by the port at whose end it was.
    pub retries: Vec<(u32, Tally)>,
    /// Bytes that each port sent, of all packets.
    pub sent: Vec<u64>,
    /// The queue monitor's histograms at the instants they were to be kept.
    pub monitor: Vec<Histograms>,
    /// What was recorded, if anything was.
    pub recording: Option<Recording>,
    /// Who stopped whom and why, if that was asked.
    pub stops: Option<Stops>,
    /// What the captured ports sent, in order of time.
    pub captured: Vec<Captured>,
    /// Where the time of the flows went, in order of flow, if that was asked.
    pub parts: Option<Vec<Span>>,
    /// Queues of every egress port.
    pub queues: u32,
    /// Why flows are unfinished although the network, or a region of it, had come to rest.
    pub stall: Option<Stall>,
    /// Stopped from outside before its time.
    pub interrupted: bool,
    /// What the shards of a run on several threads sent each other. It does not affect the result.
    pub exchange: Exchange,
    /// How many turns the blocks of all shards had; 0 for a run in the order of time.
    pub turns: u64,
    /// What was skipped, in a run that may skip.
    pub forwarded: Option<Forwarded>,
    /// Broken promises. A run with any is not a result.
    pub violations: Vec<String>,
}

impl Outcome {
    /// One of which only the flows are known: those that ended in the order in which they did, and when the last did.
    pub fn of_flows(graph: &Graph, end: Time, flows: Vec<FlowRecord>, finished: Vec<FlowId>) -> Outcome {
        let (nodes, ports) = (graph.nodes.len(), graph.links.len() * 2);
        Outcome {
            end,
            flows,
            finished,
            counts: Counts::default(),
            left: 0,
            flow_control: Vec::new(),
            histograms: Vec::new(),
            congestion_control: Vec::new(),
            transport: Vec::new(),
            switches: Vec::new(),
            paused: vec![Time::ZERO; ports],
            stopped: vec![(Time::ZERO, Time::ZERO); ports],
            pause_log: Vec::new(),
            peak: vec![0; nodes],
            samples: Samples::new(nodes),
            series: Series::default(),
            watched: Default::default(),
            retries: Vec::new(),
            sent: vec![0; ports],
            monitor: Vec::new(),
            recording: None,
            stops: None,
            captured: Vec::new(),
            parts: None,
            queues: 0,
            stall: None,
            interrupted: false,
            exchange: Exchange::default(),
            turns: 0,
            forwarded: None,
            violations: Vec::new(),
        }
    }

    /// Flows that were acknowledged to the end.
    pub fn complete(&self) -> bool {
        self.finished.len() == self.flows.len()
    }
}

fn length(list: &Fifo, core: &Core) -> (u64, u64) {
    list.iter(&core.pool).fold((0, 0), |(n, bytes), id| (n + 1, bytes + core.pool[id].size as u64))
}

impl Core {
    /// What trimming switches counted.
    fn trim_counters(&self) -> Vec<Counter> {
        let own = self.switches.trim_counters();
        if own.is_empty() {
            return own;
        }
        let trimmed = self.counts.trimmed;
        let mut all = vec![Counter::sum("trimmed", trimmed.0), Counter::sum("trimmed_bytes", trimmed.1)];
        all.extend(own);
        all
    }

    /// Counts what is where and compares it with the books.
    pub(super) fn audit(&self, lossless: bool, in_order: bool) -> Vec<String> {
        let mut wrong = Vec::new();
        let (mut flying, mut waiting) = (0, 0);
        let mut held = vec![0u64; self.switches.buffers.len()];
        for (number, port) in self.ports.iter().enumerate() {
            flying += port.flying.count(&self.pool);
            let (frames, frame_bytes) = length(&port.frames, self);
            let (control, control_bytes) = length(&port.control, self);
            let mut bytes = frame_bytes + control_bytes;
            waiting += frames + control;
            if port.host {
                waiting += length(self.hosts.nics[port.nic as usize].acks(), self).0;
            }
            if port.has_queues() {
                let first = port.first_queue as usize;
                for queue in &self.switches.queues[first..first + self.switches.per_port as usize] {
                    let (packets, queue_bytes) = length(&queue.packets, self);
                    waiting += packets;
                    bytes += queue_bytes;
                    let buffer = &self.switches.buffers[port.node as usize];
                    let charges = queue.packets.iter(&self.pool).map(|id| buffer.charge(self.pool[id].size as u64));
                    held[port.node as usize] += charges.sum::<u64>();
                    if queue_bytes != queue.bytes {
                        wrong.push(format!(
                            "a queue of port {number} holds {queue_bytes} B, its counter says {}",
                            queue.bytes
                        ));
                    }
                }
            }
            if port.has_queues() {
                wrong.extend(self.switches.audit_control(number, control_bytes));
            }
            bytes += self.retry.claimed(number);
            if bytes != port.queued {
                wrong.push(format!("port {number} holds {bytes} B, its counter says {}", port.queued));
            }
        }
        waiting += self.hosts.slow.packets().map(|list| length(list, self).0).sum::<u64>();
        waiting += self.retry.aside().map(|list| length(list, self).0).sum::<u64>();
        waiting += self.switches.labels.waiting().map(|list| length(list, self).0).sum::<u64>();
        flying += self.hosts.relay.delayed().iter().map(|list| list.count(&self.pool)).sum::<u64>();
        flying += self.reactions.waiting().iter().map(|list| list.count(&self.pool)).sum::<u64>();
        for (node, held) in held.into_iter().enumerate() {
            let name = &self.setup.graph.nodes[node].name;
            wrong.extend(self.switches.audit_node(name, node, self.map.of(node as u32), self.ports.len(), held));
        }
        let c = &self.counts;
        let dropped = c.dropped();
        if c.created != c.consumed + dropped + self.pool.live() || self.pool.live() != flying + waiting {
            wrong.push(format!(
                "packets are not conserved: {} created, {} consumed, {dropped} dropped, {} left of which {flying} in flight \
                 and {waiting} waiting",
                c.created,
                c.consumed,
                self.pool.live()
            ));
        }
        let (ended, bytes) =
            (c.delivered.0 + c.trimmed.0 + c.dropped_data.0, c.delivered.1 + c.trimmed.1 + c.dropped_data.1);
        if self.pool.live() == 0 && c.injected != (ended, bytes) {
            wrong.push(format!(
                "data is not conserved: {:?} injected, {:?} delivered, {:?} trimmed, {:?} dropped (packets, bytes of message)",
                c.injected, c.delivered, c.trimmed, c.dropped_data
            ));
        }
        if lossless && c.dropped_full > 0 {
            wrong.push(format!("{} packets were dropped for want of room in a lossless fabric", c.dropped_full));
        }
        if in_order && c.out_of_order > 0 && dropped == 0 && self.progress.changes.is_empty() {
            wrong.push(format!("{} packets arrived out of order though none was lost", c.out_of_order));
        }
        wrong.extend(self.hosts.audit());
        wrong.extend(self.audit_links());
        wrong
    }

    /// Whether the link by which a flow sends, which is not over, has given up and sends nothing more.
    fn is_blocked(&self, flow: u32) -> bool {
        self.retry.is_blocked(self.hosts.nics[self.hosts.senders[flow as usize].nic as usize].port)
    }

    /// Whether nothing will move any more by itself: nothing is in flight or being sent, no flow may send now or later,
    /// no timer of the scheme is set, no link will change.
    pub(crate) fn at_rest(&self) -> bool {
        let moving = !self.nothing_posted()
            || self.ports.iter().any(|p| !p.flying.is_empty() || p.wake)
            || self.retry.moving()
            || self.hosts.slow.packets().any(|list| !list.is_empty());
        let change = self
            .progress
            .changes
            .last()
            .is_some_and(|(time, _)| time.saturating_add(self.setup.reroute) >= self.time.now);
        !moving
            && !self.hosts.relay.moving()
            && self.reactions.waiting().iter().all(Flying::is_empty)
            && !change
            && self.progress.timers == 0
            && !(0..self.progress.next_flow as u32).any(|flow| self.may_send(flow) && !self.is_blocked(flow))
    }

    /// When hosts hear of the end of a message: a little later. What they would hear after the stop, they do not.
    fn heard(&self) -> impl Fn(Time) -> Time + use<> {
        let (receive, stop) = (self.setup.nic.bus.receive, self.setup.stop);
        move |at| match at.saturating_add(receive) {
            _ if receive == Time::ZERO => at,
            heard if heard >= stop => Time::MAX,
            heard => heard,
        }
    }

    /// Up to when all is counted: what stands still when nothing moves any more does so until the last host has heard.
    pub(super) fn last_instant(&self) -> Time {
        let (hosts, heard) = (&self.hosts, self.heard());
        let ends = hosts.senders.iter().map(|s| s.finished).chain(hosts.receivers.iter().map(|r| r.finished));
        let ends = ends.filter(|_| self.setup.nic.bus.receive > Time::ZERO).map(heard).filter(|at| *at != Time::MAX);
        self.time.now.max(ends.max().unwrap_or_default())
    }
}

impl<F: FlowControl> Network<F> {
    pub(super) fn outcome(&mut self, interrupted: bool) -> Outcome {
        let core = &mut self.core;
        let nodes: Vec<&F::Node> = self.nodes.iter().collect();
        let in_order = self.in_order && self.scheme.in_order(&nodes) && core.switches.labels.in_order();
        let (bus, heard) = (core.setup.nic.bus, core.heard());
        core.time.now = core.last_instant();
        core.end_recording(core.time.now);
        let mut violations = core.audit(self.scheme.lossless(), in_order);
        let (parts, repeats, wrong) = core.settle_parts();
        violations.extend(wrong);
        let stops = core.end_causes(&repeats);
        let stall = if interrupted { None } else { core.stall(&self.scheme, &self.nodes) };
        for port in &mut core.ports {
            if port.paused != 0 {
                port.pause_total += core.time.now - port.pause_start;
            }
        }
        let mut finished = std::mem::take(&mut core.progress.finished);
        let forwarded = core.unwind();
        if !core.hosts.controls.is_empty() {
            finished.sort_by_key(|(event, _)| *event);
        }
        let transports = std::iter::once(&self.transport).chain(&self.transports);
        let mut transport = core.with_skipped(Counter::merged(transports.map(|transport| transport.counters())));
        transport.extend(core.trim_counters());
        transport.extend(core.hosts.counters());
        let mut captured = std::mem::take(&mut core.probes.captured);
        captured.sort_by_key(|captured| (captured.time, captured.port));
        let hosts = &core.hosts;
        if bus.receive > Time::ZERO {
            finished.retain(|(_, flow)| heard(hosts.senders[*flow as usize].finished) != Time::MAX);
        }
        let begun = |flow: usize, spec: &FlowSpec| match hosts.waiting.begun(flow, spec.start) {
            Time::MAX => Time::MAX,
            at => at.saturating_sub(bus.send),
        };
        let halves = hosts.senders.iter().zip(hosts.receivers.iter()).zip(hosts.injected.iter());
        let flows = core.setup.flows.iter().zip(halves);
        Outcome {
            end: core.time.now,
            flows: flows
                .enumerate()
                .map(|(flow, (&spec, ((s, r), &injected)))| FlowRecord {
                    spec,
                    delivered: r.expected,
                    start: begun(flow, &spec),
                    size: if s.started() { s.size } else { spec.size },
                    injected,
                    received: heard(r.finished),
                    acknowledged: heard(s.finished),
                    held: hosts.holds[flow].until(core.time.now.min(s.finished)),
                    paused: if s.started() {
                        hosts.standstills[flow].until(core.class_paused(flow as u32, core.time.now))
                    } else {
                        Time::ZERO
                    },
                })
                .collect(),
            finished: finished.into_iter().map(|(_, flow)| FlowId(flow)).collect(),
            left: core.pool.live(),
            flow_control: core.with_skipped(self.scheme.counters(&nodes)),
            histograms: self.scheme.histograms(&nodes),
            congestion_control: core.with_skipped(hosts.control_counters()),
            transport,
            switches: core.with_skipped(core.switches.counters()),
            paused: core.ports.iter().map(|p| p.pause_total).collect(),
            stopped: (0..core.ports.len() as u32).map(|port| core.probes.breadth.until(port, core.time.now)).collect(),
            pause_log: core.probes.take_pause_log(core.setup.ties),
            peak: core.switches.buffers.iter().map(|b| b.peak.max(b.watermark)).collect(),
            retries: core.retry.tallies(),
            sent: (0..core.ports.len()).map(|port| core.sent_by_now(port)).collect(),
            series: std::mem::take(&mut core.probes.series),
            watched: core.setup.measure.series.as_ref().map(|s| (s.ports.clone(), s.flows.clone())).unwrap_or_default(),
            samples: std::mem::take(&mut core.probes.samples),
            monitor: std::mem::take(&mut core.probes.kept),
            recording: core.probes.recorder.take().map(|recorder| recorder.recording),
            stops,
            captured,
            parts,
            counts: core.counts.clone(),
            queues: core.switches.per_port,
            stall,
            interrupted,
            exchange: Exchange::default(),
            turns: core.progress.turns,
            forwarded,
            violations,
        }
    }
}
