//! The switch: choose a way and a queue, find room, mark, and send in turn.

use super::record::Counted;
use super::{Core, Network};
use crate::near::prefetch;
use crate::packet::{Hop, Kind, PacketId, flag};
use crate::routing::Tuple;
use crate::scheme::{FlowControl, Visit};
use crate::setup::{AckLane, Dice, Scheduler};
use engine::Time;
use std::sync::Arc;

impl Core {
    /// The port by which a packet leaves `node`, if any way is left.
    #[inline]
    pub(super) fn way_out(&self, node: u32, id: PacketId) -> Option<u32> {
        let packet = &self.pool[id];
        self.way(node, packet.dst, &packet.tuple, packet.stamp)
    }

    /// The port by which `node` sends to `host` what has these addresses and was sent at `sent`, if any way is left.
    #[inline]
    pub(super) fn way(&self, node: u32, host: u32, tuple: &Tuple, sent: Time) -> Option<u32> {
        self.routing.choose(node, host, self.setup.spread, node, tuple, sent)
    }

    /// A queue for a packet: its class's, and among these by hash of the flow.
    #[inline]
    pub fn hashed_queue(&self, id: PacketId) -> u32 {
        let packet = &self.pool[id];
        let each = self.setup.switch.queues;
        let base = packet.class as u32 * each;
        if each == 1 { base } else { base + packet.tuple.hash(QUEUE_SEED) % each }
    }

    /// Whether a queue may take `size` more bytes under the egress limit.
    #[inline]
    fn egress_admits(&self, node: u32, queue: u32, size: u64) -> bool {
        let buffer = &self.buffers[node as usize];
        let limit = match (self.setup.switch.egress_alpha, buffer.pool, buffer.egress_part) {
            (_, _, Some(part)) => part,
            (Some(alpha), Some(pool), None) => (((pool - buffer.shared) * alpha) >> 16) + buffer.reserve,
            _ => return true,
        };
        self.queues[queue as usize].bytes + size <= limit
    }

    /// Takes a packet into the switch's memory, if there is room in its queue and in its account.
    #[inline]
    pub(super) fn admits(&mut self, visit: &Visit, second: bool) -> bool {
        let (p, size) = (&self.ports[visit.out_port as usize], visit.size as u64);
        let node = p.node;
        self.egress_admits(node, p.first_queue + visit.queue, size) && {
            let account = self.account_number(visit.in_port, visit.class, second);
            self.buffers[node as usize].admit(&mut self.accounts[account], size)
        }
    }

    /// Puts a packet that was admitted in its queue.
    #[inline]
    pub(super) fn join(&mut self, visit: &Visit, second: bool) {
        let &Visit { packet, in_port, out_port, queue, size, .. } = visit;
        self.pool[packet].in_port = in_port;
        if second {
            self.pool[packet].flags |= flag::SECOND;
        }
        let p = &mut self.ports[out_port as usize];
        p.queued += size as u64;
        self.queues[(p.first_queue + queue) as usize].push(&mut self.pool, packet);
        self.masks.set_filled(out_port, queue, true);
    }

    /// Lets go of a queued packet's memory.
    #[inline]
    pub(super) fn release(&mut self, node: u32, id: PacketId) {
        let packet = &mut self.pool[id];
        let (in_port, class, size) = (packet.in_port, packet.class, packet.size as u64);
        let second = packet.flags & flag::SECOND != 0;
        packet.flags &= !flag::SECOND;
        let number = self.account_number(in_port, class, second);
        self.buffers[node as usize].release(&mut self.accounts[number], size);
    }

    /// Marks the packet that just left `queue` if what it leaves behind is long.
    #[inline]
    fn mark(&mut self, port: u32, left: u64, id: PacketId) {
        let p = &self.ports[port as usize];
        if left <= p.ecn_min as u64 {
            return;
        }
        let Some(ecn) = self.setup.ports[port as usize].ecn else { return };
        let marked = left > ecn.max || {
            let node = self.ports[port as usize].node;
            self.chance(node, ecn.probability * (left - ecn.min) as f64 / (ecn.max - ecn.min) as f64)
        };
        // An ACK that shares the data's queue is marked too, but nobody reads that: its flag echoes the data's mark.
        if marked && self.pool[id].kind == Kind::Data {
            self.pool[id].flags |= flag::MARKED;
            self.counts.marked += 1;
            self.count_at(port, Counted::Mark, 1);
            let peer = self.ports[port as usize].peer;
            self.counts.marked_receiver += self.ports[peer as usize].host as u64;
        }
    }

    /// Whether a packet that was admitted at `port` need not wait for anything.
    #[inline]
    fn may_pass(&self, port: u32) -> bool {
        self.is_idle(port) && self.ports[port as usize].paused == 0
    }

    /// Which queue of `port` sends next.
    #[inline]
    fn pick_queue(&mut self, port: u32) -> Option<u32> {
        if let Some(express) = self.setup.switch.express {
            let each = self.setup.switch.queues;
            let mut first = (0..self.classes).map(|class| class * each + express);
            if let Some(queue) = first.find(|&queue| self.masks.is_ready(port, queue)) {
                return Some(queue);
            }
        }
        let (last, first) = (self.ports[port as usize].last as u32, self.ports[port as usize].first_queue);
        let queue = match self.setup.switch.scheduler {
            Scheduler::RoundRobin => self.masks.next_ready(port, last)?,
            Scheduler::Priority => {
                let each = self.setup.switch.queues;
                let class = self.masks.all_ready(port).next()? / each;
                let mut queues = self.masks.all_ready(port).take_while(|queue| queue / each == class);
                let first = queues.next()?;
                if first > last { first } else { queues.find(|&queue| queue > last).unwrap_or(first) }
            }
            Scheduler::Shortest => {
                let left = |queue: u32| {
                    let packet = &self.pool[self.queues[(first + queue) as usize].packets.head()];
                    self.setup.flows[packet.flow as usize].size - packet.seq
                };
                self.masks.all_ready(port).min_by_key(|&queue| (left(queue), queue))?
            }
            Scheduler::Deficit => {
                let mut queue = last;
                loop {
                    let q = &mut self.queues[(first + queue) as usize];
                    let fits = |deficit: u32| deficit >= self.pool[q.packets.head()].size as u32;
                    if self.masks.is_ready(port, queue) && fits(q.deficit) {
                        break queue;
                    }
                    queue = self.masks.next_ready(port, queue)?;
                    self.queues[(first + queue) as usize].deficit += self.setup.switch.quantum;
                }
            }
        };
        self.ports[port as usize].last = queue as u16;
        Some(queue)
    }

    /// Fetches the packet that `port` will most likely send next: it may have lain in its queue for long.
    #[inline]
    pub(super) fn fetch_next(&self, port: u32) {
        let p = &self.ports[port as usize];
        if let Some(queue) = self.masks.next_ready(port, p.last as u32) {
            self.pool.fetch(self.queues[(p.first_queue + queue) as usize].packets.head());
        }
    }

    /// Drops everything that waits at `port`. Gives the data packets, whose memory is free again and who are to be discarded.
    fn flush(&mut self, port: u32) -> Vec<Visit> {
        let mut freed = Vec::new();
        if self.ports[port as usize].has_queues() {
            (0..self.per_port).for_each(|queue| freed.extend(self.empty_queue(port, queue)));
            self.counts.dropped_down += freed.len() as u64;
        }
        let p = &mut self.ports[port as usize];
        p.urgent = false;
        if let Some(ndp) = &mut self.ndp {
            ndp.forget_headers(port);
        }
        let mut waiting = vec![];
        while let Some(id) = p.frames.pop(&self.pool).or_else(|| p.control.pop(&self.pool)) {
            p.queued -= self.pool[id].size as u64;
            waiting.push(id);
        }
        if p.host {
            waiting.extend(self.nics[p.nic as usize].drop_acks(&self.pool));
        }
        for id in waiting {
            self.counts.dropped_down += 1;
            self.count_at(port, Counted::Drop, 1);
            self.discard(id);
        }
        freed
    }

    /// Takes everything out of a queue of `port`, to be dropped. The scheme is to hear of each packet as if it had left, and to
    /// discard it with [`Core::drop_packet`].
    pub fn empty_queue(&mut self, port: u32, queue: u32) -> Vec<Visit> {
        let mut freed = Vec::new();
        let (first, node) = (self.ports[port as usize].first_queue, self.ports[port as usize].node);
        while let Some(id) = self.queues[(first + queue) as usize].pop(&self.pool) {
            let (in_port, class, size) = (self.pool[id].in_port, self.pool[id].class, self.pool[id].size);
            self.release(node, id);
            freed.push(Visit { packet: id, in_port, out_port: port, queue, class, size });
            self.ports[port as usize].queued -= size as u64;
        }
        self.count_at(port, Counted::Drop, freed.len());
        self.queues[(first + queue) as usize].deficit = 0;
        self.masks.set_filled(port, queue, false);
        freed
    }

    /// Drops a packet at `port` for want of room, or of a way.
    #[cold]
    #[inline(never)]
    fn lose(&mut self, port: u32, id: PacketId, full: bool) {
        *(if full { &mut self.counts.dropped_full } else { &mut self.counts.dropped_down }) += 1;
        self.count_at(port, Counted::Drop, 1);
        self.discard(id);
    }

    /// Discards a packet that the scheme took out of its queue.
    pub fn drop_packet(&mut self, packet: PacketId) {
        self.counts.dropped_scheme += 1;
        self.discard(packet);
    }

    /// Whether a packet is lost on a link with faults, or with a link that went down.
    pub(super) fn lost_on_the_way(&mut self, port: u32, id: PacketId) -> bool {
        let number = self.map.link[port as usize] as usize;
        let link = &self.setup.graph.links[number];
        // A packet that left before its link failed and came back in time for the next repair is lost too.
        let sent = self.sent_at(port, self.pool[id].size);
        let cut = link.outages.iter().any(|&(from, to)| from <= self.now && to.is_none_or(|to| sent < to));
        if cut {
            self.counts.dropped_down += 1;
        } else {
            let lost = match self.setup.dice {
                Dice::PerNode => {
                    let stream = &mut self.streams[self.ports[port as usize].node as usize];
                    // Two draws, so that the same seed loses the same packets whatever the other probability.
                    let (lost, damaged) = (stream.chance(link.loss), stream.chance(link.corruption));
                    lost || damaged
                }
                Dice::Shared { common_loss, .. } => {
                    let own = if link.loss == common_loss { self.faults.len() - 1 } else { number };
                    self.faults[own].uniform() < link.loss
                }
            };
            if !lost {
                return false;
            }
            self.counts.dropped_fault += 1;
        }
        self.count_at(port, Counted::Drop, 1);
        self.discard(id);
        true
    }
}

/// Seed of the hash that spreads flows over the queues of a class; unlike any node's.
const QUEUE_SEED: u32 = 0x9e37_79b9;

impl<F: FlowControl> Network<F> {
    /// A packet has come in by `in_port`.
    #[inline]
    pub(super) fn switch_receive(&mut self, in_port: u32, id: PacketId) {
        let core = &mut self.core;
        let node = core.ports[in_port as usize].node;
        let Some(out) = core.way_out(node, id) else {
            return core.lose(in_port, id, false);
        };
        let out = match core.pool[id].kind {
            Kind::Data => self.scheme.way(core, in_port, id, out),
            _ => out,
        };
        prefetch(&core.ports[out as usize].free_at);
        let (class, kind, size) = (core.pool[id].class, core.pool[id].kind, core.pool[id].size);
        if kind != Kind::Data && (core.setup.nic.ack_lane == AckLane::Control || kind == Kind::Signal) {
            if !core.ports[out as usize].up {
                return core.lose(out, id, false);
            }
            if kind == Kind::Signal {
                core.count_at(out, Counted::Signal, 1);
                let mut signal = core.pool[id];
                self.scheme.passing(core, in_port, out, &mut signal);
                core.pool[id] = signal;
            }
            if core.ndp.is_some() {
                core.queue_header(out, id);
                return self.drain_kicks();
            }
            if core.is_idle(out) {
                let lag = self.scheme.lag(core, out);
                return core.start(out, id, lag);
            }
            let p = &mut core.ports[out as usize];
            p.queued += core.pool[id].size as u64;
            p.control.push(&mut core.pool, id);
            return self.kick(out);
        }
        let visit = Visit { packet: id, in_port, out_port: out, queue: 0, class, size };
        let queue = self.scheme.queue(core, &visit);
        let visit = Visit { queue, ..visit };
        let second = self.scheme.second_group(core, &visit);
        let admitted = core.ports[out as usize].up && core.admits(&visit, second);
        if !admitted {
            if core.ports[out as usize].up && core.ndp.is_some() {
                core.trim(&visit);
                return self.drain_kicks();
            }
            return core.lose(out, id, core.ports[out as usize].up);
        }
        if !F::LOOKS_AT_QUEUES && core.may_pass(out) {
            self.scheme.enqueued(core, &visit);
            self.drain_kicks();
            // Unless the scheme has something to say by this port.
            if self.core.may_pass(out) {
                return self.pass(&visit, second);
            }
            self.core.join(&visit, second);
        } else {
            core.join(&visit, second);
            self.scheme.enqueued(core, &visit);
            self.drain_kicks();
        }
        self.kick(out);
    }

    /// Sends a packet that was admitted at once, as if it had been in its queue and had left it in the same instant.
    #[inline]
    fn pass(&mut self, visit: &Visit, second: bool) {
        let &Visit { packet, in_port, out_port, queue, class, size } = visit;
        let core = &mut self.core;
        debug_assert!(core.setup.switch.express.is_none());
        let number = core.account_number(in_port, class, second);
        let p = &mut core.ports[out_port as usize];
        let (node, tx_bytes, table) = (p.node, p.tx_bytes, p.table);
        p.last = queue as u16;
        // As in `switch_transmit`: what the scheme sets free is sent after this packet.
        p.wake = true;
        core.buffers[node as usize].release(&mut core.accounts[number], size as u64);
        if core.needs.telemetry && core.pool[packet].kind == Kind::Data {
            let mbps = core.mbps[table as usize];
            core.pool.push_hop(packet, Hop { time: core.now, tx_bytes, queued: 0, mbps });
        }
        self.scheme.dequeued(core, visit);
        self.drain_kicks();
        let core = &mut self.core;
        core.ports[out_port as usize].wake = false;
        let lag = self.scheme.lag(core, out_port);
        core.start(out_port, packet, lag);
        if core.ports[out_port as usize].queued > 0 {
            core.schedule_end(out_port);
        }
    }

    /// Sends the next data packet of a switch port; false if none may go.
    #[inline]
    pub(super) fn switch_transmit(&mut self, port: u32) -> bool {
        let core = &mut self.core;
        let Some(queue) = core.pick_queue(port) else { return false };
        let number = (core.ports[port as usize].first_queue + queue) as usize;
        let Some(id) = core.queues[number].pop(&core.pool) else { return false };
        let left = core.queues[number].bytes;
        let (in_port, class, size, kind) = {
            let packet = &core.pool[id];
            (packet.in_port, packet.class, packet.size as u64, packet.kind)
        };
        let each = core.setup.switch.queues;
        let express = |first: u32| queue % each == first;
        if core.setup.switch.scheduler == Scheduler::Deficit && !core.setup.switch.express.is_some_and(express) {
            let q = &mut core.queues[number];
            q.deficit = if left == 0 { 0 } else { q.deficit - size as u32 };
        }
        if left == 0 {
            core.masks.set_filled(port, queue, false);
        }
        let p = &mut core.ports[port as usize];
        p.queued -= size;
        let (node, queued, tx_bytes) = (p.node, p.queued, p.tx_bytes);
        core.release(node, id);
        core.mark(port, left, id);
        if core.needs.telemetry && kind == Kind::Data {
            let mbps = core.mbps[core.ports[port as usize].table as usize];
            let queued = queued.min(u32::MAX as u64) as u32;
            core.pool.push_hop(id, Hop { time: core.now, tx_bytes, queued, mbps });
        }
        let visit = Visit { packet: id, in_port, out_port: port, queue, class, size: size as u16 };
        // The port is taken by this packet already: nothing that the scheme sets free may slip in before it.
        core.ports[port as usize].wake = true;
        self.scheme.dequeued(core, &visit);
        self.drain_kicks();
        self.core.ports[port as usize].wake = false;
        let lag = self.scheme.lag(&self.core, port);
        self.core.start(port, id, lag);
        true
    }

    /// Links fail or come back.
    pub(super) fn change_links(&mut self, index: u32) {
        let core = &mut self.core;
        let up = core.changes[index as usize].1.clone();
        for port in 0..core.ports.len() as u32 {
            let works = up[core.map.link[port as usize] as usize];
            if works == core.ports[port as usize].up || !core.owns(core.ports[port as usize].node) {
                continue;
            }
            core.ports[port as usize].up = works;
            if works {
                core.kicks.push(port);
            } else {
                let freed = core.flush(port);
                (0..core.classes as u8).for_each(|class| {
                    if core.ports[port as usize].paused >> class & 1 == 1 {
                        core.pause_class(port, class, false);
                    }
                });
                self.scheme.link_lost(core, port);
                for visit in freed {
                    self.scheme.dequeued(core, &visit);
                    core.discard(visit.packet);
                }
            }
            // Packets in flight when a link fails are lost when they would arrive.
            core.ports[port as usize].faulty = true;
        }
    }

    /// New routes for the links that work now.
    pub(super) fn reroute(&mut self, index: u32) {
        let core = &mut self.core;
        if core.is_first() {
            let up = &core.changes[index as usize].1;
            core.routing = Arc::new(crate::routing::Routing::new(&core.setup.graph, &core.map, up));
        }
        for flow in core.reassign_flows() {
            let port = core.nics[core.senders[flow as usize].nic as usize].port;
            self.scheme.flow_moved(core, port, flow);
        }
    }
}
