//! Switches that trim: a data packet that finds its queue full loses its payload, and its header goes ahead of data.
//!
//! Headers and all other control packets share a queue of limited length. A header that finds it full is lost, or goes back to its sender, once.
//! It says whether it lost its payload at the last switch before its receiver: then no other path would have helped.

use crate::axes::Counter;
use crate::axes::flow_control::{FlowControl, Visit};
use crate::id::{ClassId, PortId, QueueId};
use crate::packet::{Kind, PacketId, flag};
use crate::probe::{Counted, Lost};
use crate::run::{Core, Network, hook};
use crate::setup::{PortSetup, Setup, Trimming};

/// The control packets at one port.
#[derive(Clone, Debug, Default)]
struct Line {
    bytes: u64,
    peak: u64,
    /// How many were sent while data waited, since data was sent.
    turn: u32,
}

/// The control packets of all trimming switches.
pub(super) struct Headers {
    trimming: Trimming,
    /// By port.
    lines: Vec<Line>,
    /// By port, the most bytes of control packets.
    limits: Vec<u64>,
    overflows: u64,
    returned: u64,
}

impl Headers {
    pub(super) fn new(trimming: Trimming, setup: &Setup) -> Headers {
        // However short a queue is, a header and an ACK find room.
        let least = setup.nic.ack_size.max(trimming.header) as u64;
        let limit = |port: &PortSetup| port.part(trimming.headers).max(least.min(trimming.headers));
        let limits = setup.ports.iter().map(limit).collect();
        Headers { trimming, lines: vec![Line::default(); setup.ports.len()], limits, overflows: 0, returned: 0 }
    }

    pub(super) fn absorb_port(&mut self, other: &Headers, port: usize) {
        self.lines[port] = other.lines[port].clone();
    }

    pub(super) fn absorb_counts(&mut self, other: &Headers) {
        self.overflows += other.overflows;
        self.returned += other.returned;
    }

    /// The link at `port` is down, and with it what waited there.
    pub(super) fn forget(&mut self, port: u32) {
        let line = &mut self.lines[port as usize];
        (line.bytes, line.turn) = (0, 0);
    }

    /// Bytes of control packets at a port, and the most there may be.
    pub(super) fn bytes(&self, port: usize) -> (u64, u64) {
        (self.lines[port].bytes, self.limits[port])
    }

    pub(super) fn counters(&self) -> Vec<Counter> {
        vec![
            Counter::sum("header_overflows", self.overflows),
            Counter::sum("returned", self.returned),
            Counter::max("peak_header_queue", self.lines.iter().map(|line| line.peak).max().unwrap_or(0)),
        ]
    }
}

impl<F: FlowControl> Network<F> {
    /// A data packet finds no room: it loses its payload, or the last packet in its queue does. Which of the two is left to
    /// chance, so that no flow always loses (Handley et al., SIGCOMM 2017, §3.1).
    ///
    /// Hooks hear of what leaves a data queue and of what joins it. A header is in the control queue, of which they hear nothing.
    #[inline(never)]
    pub(super) fn trim(&mut self, out: u32, visit: &Visit, second: bool) {
        let (node, base) = (self.core.ports[out as usize].node, self.core.ports[out as usize].base);
        if self.core.dice.chance(node, 0.5)
            && let Some(last) = self.core.take_last(out, visit.queue)
        {
            hook!(self, out, |scheme, state, at, local| scheme.dequeued(state, at, &last));
            self.core.run_marking(node, base, |marking, at| marking.dequeued(at, &last));
            self.core.cut(out, last.packet);
            if self.core.admits(node, base + visit.in_port.0 as u32, out, visit, second) {
                self.core.join(out, visit, second);
                hook!(self, out, |scheme, state, at, local| scheme.enqueued(state, at, visit));
                return self.core.run_marking(node, base, |marking, at| marking.enqueued(at, visit));
            }
        }
        self.count_gone(base + visit.in_port.0 as u32, visit.packet);
        self.core.cut(out, visit.packet);
    }
}

impl Core {
    /// Takes the last packet out of a queue of `port`.
    fn take_last(&mut self, port: u32, queue: QueueId) -> Option<Visit> {
        let p = &mut self.ports[port as usize];
        let (node, base, out_port) = (p.node, p.base, PortId(p.local));
        let waiting = &mut self.switches.queues[(p.first_queue + queue.0) as usize];
        let id = waiting.pop_last(&mut self.pool)?;
        let packet = &self.pool[id];
        let (in_port, class, size) = (PortId(packet.in_port), ClassId(packet.class), packet.size);
        p.queued -= size as u64;
        self.switches.masks.set_filled(port, queue.0, waiting.bytes > 0);
        if waiting.bytes == 0 {
            waiting.deficit = 0;
        }
        self.release(node, base, id);
        self.note_rearranged((self.ports[port as usize].first_queue + queue.0) as usize);
        Some(Visit { packet: id, in_port, out_port, queue, class, size })
    }

    /// Makes a header of a data packet that leaves by `port`.
    fn cut(&mut self, port: u32, id: PacketId) {
        let header = self.switches.headers.as_ref().map_or(0, |headers| headers.trimming.header);
        self.note_loss(port, id, Lost::Room);
        let last_hop = self.ports[self.map.peer[port as usize] as usize].host;
        let packet = &mut self.pool[id];
        self.counts.trimmed.0 += 1;
        self.counts.trimmed.1 += (packet.size - self.setup.nic.header) as u64;
        packet.kind = Kind::Trimmed;
        packet.size = packet.size.min(header);
        if last_hop {
            packet.flags |= flag::LAST_HOP;
        }
        self.queue_header(port, id);
    }

    /// A control packet leaves by `port`, if there is room. A header that finds none goes back to its sender, if there is
    /// room for it on that path; everything else is lost.
    pub(super) fn queue_header(&mut self, port: u32, id: PacketId) {
        if self.add_header(port, id) {
            return;
        }
        if let Some(headers) = &mut self.switches.headers {
            headers.overflows += 1;
        }
        let returns = self.switches.headers.as_ref().is_some_and(|headers| headers.trimming.returns);
        if returns && self.pool[id].kind == Kind::Trimmed {
            let node = self.ports[port as usize].node;
            let src = self.setup.flows[self.pool[id].flow as usize].src;
            let packet = &mut self.pool[id];
            packet.kind = Kind::Returned;
            packet.dst = src.0;
            packet.tuple = packet.tuple.reversed();
            let (tuple, stamp) = (packet.tuple, packet.stamp);
            if let Some(back) = self.path(node, src.0, &tuple, stamp)
                && self.ports[back as usize].up
                && self.add_header(back, id)
            {
                if let Some(headers) = &mut self.switches.headers {
                    headers.returned += 1;
                }
                return;
            }
        }
        self.counts.dropped_full += 1;
        self.probes.count_at(port, Counted::Drop, 1);
        let ahead = self.switches.headers.as_ref().map_or(0, |headers| headers.lines[port as usize].bytes);
        self.note_no_room_ahead(port, ahead);
        self.note_loss(port, id, Lost::Room);
        self.discard(id);
    }

    fn add_header(&mut self, port: u32, id: PacketId) -> bool {
        let Some(headers) = &mut self.switches.headers else { return false };
        let size = self.pool[id].size as u64;
        let line = &mut headers.lines[port as usize];
        if line.bytes + size > headers.limits[port as usize] {
            return false;
        }
        line.bytes += size;
        line.peak = line.peak.max(line.bytes);
        self.queue_control(port, id);
        true
    }

    /// The control packet that a `port` with queues sends next, unless it is the turn of data that waits.
    #[inline]
    pub(crate) fn next_control(&mut self, port: u32) -> Option<PacketId> {
        if let Some(headers) = &mut self.switches.headers {
            let line = &mut headers.lines[port as usize];
            if self.switches.masks.any_ready(port) {
                if line.turn >= headers.trimming.ratio {
                    line.turn = 0;
                    return None;
                }
                line.turn += 1;
            }
            line.bytes -= self.pool[self.ports[port as usize].control.head()].size as u64;
        }
        let p = &mut self.ports[port as usize];
        let id = p.control.pop(&self.pool)?;
        p.queued -= self.pool[id].size as u64;
        Some(id)
    }
}
