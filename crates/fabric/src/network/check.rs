//! The end of a run: what came out, and whether it can be believed.

use super::{Core, Counts, Histograms, Network, PauseEvent, Samples, Series};
use crate::packet::Fifo;
use crate::scheme::{Counter, FlowControl, Histogram};
use crate::setup::FlowSpec;
use crate::topology::Kind;
use engine::Time;

/// Why a run ended with flows unfinished although nothing more could happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stall {
    /// Ports wait for each other in a circle: each is paused by the next, which cannot empty its buffer. The
    /// ports of one circle, in order.
    Deadlock(Vec<u32>),
    /// Ports are paused and nobody is left to resume them, without a circle.
    Blocked(Vec<u32>),
    /// The network is empty; what is missing was lost and nobody will send it again.
    Lost,
}

/// When the parts of a flow happened; [`Time::MAX`] for what did not.
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
}

/// What a run produced.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// When the run ended.
    pub end: Time,
    /// All flows, in order of start.
    pub flows: Vec<FlowRecord>,
    /// Flows in the order they were acknowledged to the end.
    pub finished: Vec<u32>,
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
    /// How long each port was held by its neighbour.
    pub paused: Vec<Time>,
    /// Pauses and resumes, if they were to be kept.
    pub pause_log: Vec<PauseEvent>,
    /// Peak occupancy by node; 0 for hosts.
    pub peak: Vec<u64>,
    /// Occupancy of the switches.
    pub samples: Samples,
    /// What was followed closely.
    pub series: Series,
    /// The ports and the flows that were.
    pub watched: (Vec<u32>, Vec<u32>),
    /// Bytes that each port sent, of all packets.
    pub sent: Vec<u64>,
    /// The queue monitor's histograms at the instants they were to be kept.
    pub monitor: Vec<Histograms>,
    /// Why flows are unfinished although the network had come to rest.
    pub stall: Option<Stall>,
    /// Stopped from outside before its time.
    pub interrupted: bool,
    /// Broken promises. A run with any is not a result.
    pub violations: Vec<String>,
}

impl Outcome {
    /// Flows that were acknowledged to the end.
    pub fn complete(&self) -> bool {
        self.finished.len() == self.flows.len()
    }
}

fn length(list: &Fifo, core: &Core) -> (u64, u64) {
    list.iter(&core.pool).fold((0, 0), |(n, bytes), id| (n + 1, bytes + core.pool[id].size as u64))
}

impl Core {
    /// Counts what is where and compares it with the books.
    pub(super) fn audit(&self, lossless: bool, in_order: bool) -> Vec<String> {
        let mut wrong = Vec::new();
        let (mut flying, mut waiting) = (0, 0);
        let mut held = vec![0u64; self.buffers.len()];
        for (number, port) in self.ports.iter().enumerate() {
            flying += port.flying.count(&self.pool);
            let (frames, frame_bytes) = length(&port.frames, self);
            let (control, control_bytes) = length(&port.control, self);
            let mut bytes = frame_bytes + control_bytes;
            waiting += frames + control;
            if port.host {
                waiting += length(self.nics[port.nic as usize].acks(), self).0;
            } else {
                let first = port.first_queue as usize;
                for queue in &self.queues[first..first + self.per_port as usize] {
                    let (packets, queue_bytes) = length(&queue.packets, self);
                    waiting += packets;
                    bytes += queue_bytes;
                    held[port.node as usize] += queue_bytes;
                    if queue_bytes != queue.bytes {
                        wrong.push(format!(
                            "a queue of port {number} holds {queue_bytes} B, its counter says {}",
                            queue.bytes
                        ));
                    }
                }
            }
            if bytes != port.queued {
                wrong.push(format!("port {number} holds {bytes} B, its counter says {}", port.queued));
            }
        }
        for (node, buffer) in self.buffers.iter().enumerate() {
            let name = &self.setup.graph.nodes[node].name;
            if held[node] != buffer.used {
                wrong.push(format!("the queues of {name} hold {} B, its buffer says {}", held[node], buffer.used));
            }
            let each = self.ports.len() * self.classes as usize;
            let accounts = self.map.of(node as u32).flat_map(|p| {
                let first = (p * self.classes) as usize;
                self.accounts.chunks(each).flat_map(move |group| &group[first..first + self.classes as usize])
            });
            let (mut by_ingress, mut global) = (0, 0);
            accounts.for_each(|a| {
                by_ingress += a.total();
                global += a.global as u64;
            });
            if by_ingress != buffer.used {
                wrong.push(format!(
                    "the ingress accounts of {name} sum to {by_ingress} B, its buffer says {}",
                    buffer.used
                ));
            }
            if global != buffer.global.1 {
                wrong.push(format!(
                    "the accounts of {name} have {global} B of common headroom, its buffer says {}",
                    buffer.global.1
                ));
            }
            if buffer.pool.is_some_and(|pool| buffer.shared > pool) || buffer.global.1 > buffer.global.0 {
                wrong.push(format!("{name} holds more than its memory"));
            }
        }
        let c = &self.counts;
        let dropped = c.dropped_full + c.dropped_fault + c.dropped_down;
        if c.created != c.consumed + dropped + self.pool.live() || self.pool.live() != flying + waiting {
            wrong.push(format!(
                "packets are not conserved: {} created, {} consumed, {dropped} dropped, {} left of which {flying} in flight \
                 and {waiting} waiting",
                c.created,
                c.consumed,
                self.pool.live()
            ));
        }
        if lossless && c.dropped_full > 0 {
            wrong.push(format!("{} packets were dropped for want of room in a lossless fabric", c.dropped_full));
        }
        if in_order && c.out_of_order > 0 && dropped == 0 && self.changes.is_empty() {
            wrong.push(format!("{} packets arrived out of order though none was lost", c.out_of_order));
        }
        for (flow, (s, r)) in self.senders.iter().zip(&self.receivers).enumerate() {
            if s.finished != Time::MAX && r.finished > s.finished {
                wrong.push(format!("flow {flow} ended at its sender before its {} B were received", s.size));
            }
        }
        wrong
    }

    /// Whether nothing will move any more by itself: nothing is in flight or being sent, no flow may send now or later,
    /// no timer of the scheme is set, no link will change.
    pub(super) fn at_rest(&self) -> bool {
        let moving = self.ports.iter().any(|p| !p.flying.is_empty() || p.wake);
        let change = self.changes.last().is_some_and(|(time, _)| time.saturating_add(self.setup.reroute) >= self.now);
        !moving && !change && self.timers == 0 && !(0..self.next_flow as u32).any(|flow| self.may_send(flow))
    }

    /// Tells a network that is stuck from one that is merely done, or was stopped while it moved.
    fn stall(&self) -> Option<Stall> {
        if self.active == 0 || !(self.stuck || self.at_rest()) {
            return None;
        }
        let stuck: Vec<u32> = (0..self.ports.len() as u32)
            .filter(|&p| {
                let port = &self.ports[p as usize];
                port.paused != 0 && (port.queued > 0 || port.host)
            })
            .collect();
        if stuck.is_empty() {
            return Some(Stall::Lost);
        }
        Some(match self.circle(&stuck) {
            Some(circle) => Stall::Deadlock(circle),
            None => Stall::Blocked(stuck),
        })
    }

    /// A circle of paused ports: the neighbour that paused a port holds packets from it that wait for
    /// another paused port.
    fn circle(&self, stuck: &[u32]) -> Option<Vec<u32>> {
        let waits_for = |port: u32| -> Vec<u32> {
            let far = self.ports[port as usize].peer;
            let node = self.ports[far as usize].node;
            if self.setup.graph.nodes[node as usize].kind == Kind::Host {
                return Vec::new();
            }
            let blocked = stuck.iter().copied().filter(|&p| self.ports[p as usize].node == node);
            blocked
                .filter(|&p| {
                    let first = self.ports[p as usize].first_queue as usize;
                    let mut queues = self.queues[first..first + self.per_port as usize].iter();
                    queues.any(|q| q.packets.iter(&self.pool).any(|id| self.pool[id].in_port == far))
                })
                .collect()
        };
        // Depth-first search with the path kept, from every stuck port in turn.
        let mut state = vec![0u8; self.ports.len()];
        for &root in stuck {
            let mut path = vec![(root, waits_for(root))];
            while let Some((port, next)) = path.last_mut() {
                let port = *port;
                state[port as usize] = 1;
                match next.pop() {
                    Some(to) if state[to as usize] == 1 => {
                        let at = path.iter().position(|(p, _)| *p == to)?;
                        return Some(path[at..].iter().map(|(p, _)| *p).collect());
                    }
                    Some(to) if state[to as usize] == 0 => {
                        let next = waits_for(to);
                        path.push((to, next));
                    }
                    Some(_) => {}
                    None => {
                        state[port as usize] = 2;
                        path.pop();
                    }
                }
            }
        }
        None
    }
}

impl<F: FlowControl> Network<F> {
    pub(super) fn outcome(&mut self, interrupted: bool) -> Outcome {
        let core = &mut self.core;
        let violations = core.audit(self.scheme.lossless(), self.scheme.in_order());
        let stall = if interrupted { None } else { core.stall() };
        for port in &mut core.ports {
            if port.paused != 0 {
                port.pause_total += core.now - port.pause_start;
            }
        }
        let halves = core.senders.iter().zip(&core.receivers).zip(&core.injected);
        let flows = core.setup.flows.iter().zip(halves);
        Outcome {
            end: core.now,
            flows: flows
                .enumerate()
                .map(|(flow, (&spec, ((s, r), &injected)))| FlowRecord {
                    spec,
                    delivered: r.expected,
                    start: core.waiting.begun(flow, spec.start),
                    size: if s.started() { s.size } else { spec.size },
                    injected,
                    received: r.finished,
                    acknowledged: s.finished,
                })
                .collect(),
            finished: std::mem::take(&mut core.finished),
            left: core.pool.live(),
            flow_control: self.scheme.counters(),
            histograms: self.scheme.histograms(),
            congestion_control: core.control.counters(),
            paused: core.ports.iter().map(|p| p.pause_total).collect(),
            pause_log: std::mem::take(&mut core.pause_log),
            peak: core.buffers.iter().map(|b| b.peak.max(b.watermark)).collect(),
            sent: (0..core.ports.len()).map(|port| core.sent_by_now(port)).collect(),
            series: std::mem::take(&mut core.series),
            watched: core.setup.measure.series.as_ref().map(|s| (s.ports.clone(), s.flows.clone())).unwrap_or_default(),
            samples: std::mem::take(&mut core.samples),
            monitor: std::mem::take(&mut core.kept),
            counts: core.counts.clone(),
            stall,
            interrupted,
            violations,
        }
    }
}
