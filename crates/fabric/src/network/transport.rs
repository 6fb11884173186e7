//! The transport: messages cut into packets, acknowledged, and sent again where something got lost.

use super::{Core, class};
use crate::packet::{Kind, NONE, Packet, PacketId, flag};
use crate::routing::Tuple;
use crate::scheme::{Ack, Permit};
use crate::setup::{AckPolicy, FlowSpec, WindowRule};
use engine::{Event, Rate, Time};

/// The sending side of a flow. What every packet needs is in the first cache line.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Sender {
    /// The next byte to send.
    pub next: u64,
    /// Everything before it is acknowledged.
    pub acked: u64,
    /// Bytes of message.
    pub size: u64,
    /// Bytes that may be unacknowledged now; `u64::MAX` for any number.
    pub(super) window: u64,
    /// Not before this instant.
    pub(super) due: Time,
    /// As congestion control has it.
    pub(super) rate: Rate,
    pub(super) nic: u32,
    /// Place in the NIC's list.
    pub(super) place: u32,
    /// Number of its congestion-control state.
    pub(super) slot: u32,
    /// Bytes on the wire of the last packet sent.
    pub(super) last_size: u16,
    pub(super) class: u8,
    /// Why it may not send: [`BY_SCHEME`], [`IN_LINE`].
    pub(super) held: u8,

    /// The scheme's name for it.
    pub(super) tag: u16,
    /// Times it started over since something new was acknowledged.
    pub(super) tries: u8,
    /// When congestion control wants to be called.
    pub(super) timer: Time,
    /// When the pending timer event comes; [`Time::MAX`] for none.
    pub(super) armed: Time,
    /// When to start over if nothing is acknowledged.
    pub(super) expires: Time,
    /// The furthest byte ever sent.
    pub(super) high: u64,
    /// The receiving host.
    pub(super) dst: u32,
    /// What switches hash.
    pub(super) tuple: Tuple,
    /// When its last byte was acknowledged; [`Time::MAX`] if it has not been.
    pub finished: Time,
}

const _: () = assert!(size_of::<Sender>() == 128);

/// The scheme keeps a flow from sending.
pub(super) const BY_SCHEME: u8 = 1;
/// Another message to the same host goes first.
pub(super) const IN_LINE: u8 = 2;

impl Default for Sender {
    fn default() -> Sender {
        Sender {
            next: 0,
            acked: 0,
            size: 0,
            window: u64::MAX,
            due: Time::ZERO,
            rate: Rate(0),
            timer: Time::MAX,
            armed: Time::MAX,
            expires: Time::MAX,
            nic: NONE,
            place: NONE,
            slot: NONE,
            last_size: 0,
            class: 0,
            held: 0,
            tag: 0,
            tries: 0,
            high: 0,
            dst: NONE,
            tuple: Tuple::default(),
            finished: Time::MAX,
        }
    }
}

impl Sender {
    /// Whether the flow has been handed to its NIC.
    pub fn started(&self) -> bool {
        self.slot != NONE
    }
    pub(super) fn permit(&self) -> Permit {
        Permit { rate: self.rate, timer: self.timer, repace: false, resume: Time::ZERO }
    }
    pub(super) fn done(&self) -> bool {
        self.acked >= self.size
    }
    pub(super) fn backlogged(&self) -> bool {
        self.next < self.size
    }
    pub(super) fn eligible(&self) -> bool {
        self.backlogged() && self.next - self.acked < self.window && self.held == 0
    }
}

/// The receiving side of a flow, in one cache line.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Receiver {
    /// The next byte in order.
    pub expected: u64,
    /// For which gap the last NACK was sent, and when the next may be.
    nack: (u64, Time),
    /// The last packet that came too early.
    early: u64,
    /// When its last byte arrived; [`Time::MAX`] if it has not.
    pub finished: Time,
    /// The sending host.
    src: u32,
    /// Packets since the last ACK.
    pub(super) unacked: u32,
    /// When the latest of its packets that have arrived was sent.
    latest: Time,
    /// It was forgotten when its sender was done, and is a new flow to stray packets.
    forgotten: bool,
}

const _: () = assert!(size_of::<Receiver>() == 64);

impl Receiver {
    /// Of a flow that has not begun.
    pub(super) fn new(flow: &FlowSpec) -> Receiver {
        Receiver {
            expected: 0,
            nack: (0, Time::ZERO),
            early: 0,
            finished: Time::MAX,
            src: flow.src,
            unacked: 0,
            latest: Time::ZERO,
            forgotten: false,
        }
    }
}

impl Core {
    /// Goes back to the last acknowledged byte. Senders that lose the same race again and again could do so for ever;
    /// from the second time on without progress, each waits a random time, twice as long every time.
    pub(super) fn start_over(&mut self, flow: u32) {
        let src = self.setup.flows[flow as usize].src;
        let s = &mut self.senders[flow as usize];
        s.next = s.acked;
        if self.setup.nic.recovery.backoff {
            if s.tries > 0 {
                let packets = self.streams[src as usize].below(1 << s.tries.min(12));
                let line = self.nics[s.nic as usize].line;
                let wait = Time(line.time_for(s.last_size as u64).0 * packets);
                let due = s.due.max(self.now + wait);
                self.due_at(flow, due);
            }
            let s = &mut self.senders[flow as usize];
            s.tries = s.tries.saturating_add(1);
        }
        self.note(flow);
    }

    /// Takes over what congestion control decided.
    pub(super) fn apply(&mut self, flow: u32, permit: Permit) {
        let s = &self.senders[flow as usize];
        let (old, nic, size) = (s.rate, s.nic, s.last_size);
        if permit.repace && permit.rate != old {
            let (was, is) = (self.pace(nic, size, old), self.pace(nic, size, permit.rate));
            let due = Time((s.due.0 + is.0).saturating_sub(was.0));
            self.due_at(flow, due);
        }
        let s = &mut self.senders[flow as usize];
        if permit.repace && s.due < self.nics[nic as usize].wake && self.nics[nic as usize].wake != Time::MAX {
            let at = s.due.max(self.now);
            self.set_wake(nic, at);
        }
        if permit.resume > self.senders[flow as usize].due {
            self.due_at(flow, permit.resume);
        }
        let s = &mut self.senders[flow as usize];
        (s.rate, s.timer) = (permit.rate, permit.timer);
        if permit.rate != old {
            self.rewindow(flow);
        }
        self.arm(flow);
    }

    pub(super) fn rewindow(&mut self, flow: u32) {
        let base = self.setup.flows[flow as usize].window;
        let s = &mut self.senders[flow as usize];
        s.window = match (base, self.setup.nic.window) {
            (0, _) => u64::MAX,
            (base, WindowRule::Fixed) => base,
            (base, WindowRule::Scaled) => {
                let line = self.nics[s.nic as usize].line.0;
                ((base as u128 * s.rate.0 as u128 / line as u128) as u64).max(1)
            }
        };
        if let Some(irn) = &self.setup.nic.irn {
            s.window = s.window.min(irn.cap);
        }
        self.note(flow);
    }

    /// Makes sure that the flow's next deadline has an event.
    pub(super) fn arm(&mut self, flow: u32) {
        let s = &mut self.senders[flow as usize];
        let next = s.timer.min(s.expires);
        if next < s.armed && !s.done() {
            s.armed = next.max(self.now);
            self.events.push(Event::new(s.armed, 0, class::FLOW_TIMER, flow));
        }
    }

    /// A deadline of a flow may have come.
    pub(super) fn flow_timer(&mut self, flow: u32) {
        let now = self.now;
        let s = &mut self.senders[flow as usize];
        if s.armed != now {
            return;
        }
        s.armed = Time::MAX;
        if s.done() {
            return;
        }
        let mut permit = s.permit();
        if permit.timer <= now {
            self.control.timer(s.slot, now, &mut permit);
            debug_assert!(permit.timer > now);
        }
        if s.expires <= now {
            s.expires = Time::MAX;
            if self.ndp.is_some() {
                self.ndp_timeout(flow);
            } else if let Some(irn) = self.setup.nic.irn {
                self.expired_any(flow, &irn);
            } else {
                self.counts.timeouts += 1;
                self.start_over(flow);
            }
            self.kicks.push(self.nics[self.senders[flow as usize].nic as usize].port);
        }
        self.apply(flow, permit);
    }

    /// The next packet of a flow.
    pub(super) fn make_packet(&mut self, flow: u32) -> PacketId {
        let nic = &self.setup.nic;
        let s = &mut self.senders[flow as usize];
        let payload = (s.size - s.next).min(nic.payload as u64) as u16;
        let (seq, size) = (s.next, payload + nic.header);
        s.next += payload as u64;
        let last = s.next == s.size;
        let fresh = s.high == 0;
        let again = s.next <= s.high;
        if again {
            self.counts.retransmitted.0 += 1;
            self.counts.retransmitted.1 += payload as u64;
        } else {
            s.high = s.next;
            if last {
                self.injected[flow as usize] = self.now;
            }
        }
        let sent = last && s.next == s.high;
        s.last_size = size;
        self.counts.created += 1;
        self.counts.injected.0 += 1;
        self.counts.injected.1 += payload as u64;
        let packet = Packet {
            flow,
            seq,
            stamp: self.now,
            next_arrival: self.now,
            next: NONE,
            next_rank: 0,
            tuple: s.tuple,
            dst: s.dst,
            in_port: NONE,
            size,
            tag: s.tag,
            kind: Kind::Data,
            class: s.class,
            flags: if last { flag::LAST } else { 0 }
                | if seq == 0 { flag::FIRST } else { 0 }
                | if fresh { flag::FRESH } else { 0 },
            reports: 0,
        };
        if let Some(irn) = nic.irn {
            self.sent_any(flow, again, &irn);
        } else if let (Some(timeout), Time::MAX) = (nic.recovery.timeout, s.expires) {
            s.expires = self.now + timeout;
            self.arm(flow);
        }
        if sent && !self.lines.is_empty() {
            self.leave_line(flow);
        }
        self.pool.insert(packet)
    }

    /// A data packet has reached its receiver.
    pub(super) fn receive_data(&mut self, port: u32, id: PacketId) {
        if self.irn.is_some() {
            return self.receive_any(port, id);
        }
        let packet = self.pool[id];
        let (flow, now) = (packet.flow, self.now);
        self.counts.delivered.0 += 1;
        let payload = (packet.size - self.setup.nic.header) as u64;
        self.counts.delivered.1 += payload;
        let recovery = &self.setup.nic.recovery;
        let r = &mut self.receivers[flow as usize];
        if recovery.forget && !r.forgotten && self.senders[flow as usize].done() {
            (r.expected, r.nack, r.forgotten) = (0, (0, Time::ZERO), true);
        }
        self.counts.overtaken += (packet.stamp < r.latest) as u64;
        r.latest = r.latest.max(packet.stamp);
        let (mut answer, mut ended) = (None, false);
        if packet.seq == r.expected {
            r.expected += payload;
            r.unacked += 1;
            let end = packet.flags & flag::LAST != 0;
            ended = end && !r.forgotten;
            if ended {
                r.finished = now;
            }
            let due = match self.setup.nic.acks {
                AckPolicy::Every(k) => end || r.unacked >= k,
                AckPolicy::After { interval, chunk } => {
                    r.expected >= interval || (chunk > 0 && r.expected.is_multiple_of(chunk))
                }
            };
            if due {
                r.unacked = 0;
                answer = Some(Kind::Ack);
            }
        } else if packet.seq > r.expected {
            self.counts.out_of_order += !r.forgotten as u64;
            // A packet behind the last one is of a new round, whose first packet got lost like that of the last.
            let again = recovery.rounds && packet.seq <= r.early;
            r.early = packet.seq;
            if now >= r.nack.1 || r.nack.0 != r.expected || again {
                r.nack = (r.expected, now + recovery.nack_interval);
                r.expected = recovery.whole_chunks(r.expected);
                answer = Some(Kind::Nack);
            }
        } else if recovery.ack_duplicates {
            answer = Some(Kind::Ack);
        }
        let (expected, over) = (r.expected, r.finished != Time::MAX);
        if self.census.is_some() {
            self.count_flow(port, id, over);
        }
        if ended {
            self.ended_at(flow, packet.dst);
        }
        self.answer(port, id, answer, expected);
    }

    /// Answers a data packet, or not. The ACK is made of the packet itself: it keeps the mark, the stamp and the telemetry.
    #[inline]
    pub(super) fn answer(&mut self, port: u32, id: PacketId, answer: Option<Kind>, expected: u64) {
        let Some(kind) = answer else {
            self.counts.consumed += 1;
            return self.pool.remove(id);
        };
        if self.needs.delay {
            self.pool.answer(id).delay = self.now.saturating_sub(self.pool[id].stamp);
        }
        let a = &mut self.pool[id];
        let (flow, src, dst) = (a.flow, a.dst, self.receivers[a.flow as usize].src);
        a.kind = kind;
        a.seq = expected;
        a.size = self.setup.nic.ack_size;
        a.dst = dst;
        a.tuple = a.tuple.reversed();
        self.counts.consumed += 1;
        self.counts.created += 1;
        self.counts.acks += 1;
        let here = self.ports[port as usize].nic;
        let nic = if self.map.of(src).len() == 1 { here } else { self.nic_of(src, flow, true) };
        self.nics[nic as usize].acks.push(&mut self.pool, id);
        self.kicks.push(self.nics[nic as usize].port);
    }

    /// A packet has come in at a host's port by which it counts the flows that send to it: what share each has of the link
    /// goes on the ACK that the packet will be. A flow that is over does not count.
    pub(super) fn count_flow(&mut self, port: u32, id: PacketId, over: bool) {
        let (nic, flow, line) = (self.ports[port as usize].nic, self.pool[id].flow, self.rate(port));
        let packet = self.on_wire(self.ports[port as usize].table, self.pool[id].size);
        let Some(census) = &mut self.census else { return };
        let count = if over { census.leave(flow, nic, self.now) } else { census.hear(flow, nic, self.now, packet) };
        self.pool.set_share(id, Rate(line.0 / count.max(1) as u64));
    }

    /// An ACK or NACK has reached its sender.
    pub(super) fn receive_ack(&mut self, port: u32, id: PacketId) {
        let packet = self.pool[id];
        let (flow, now) = (packet.flow, self.now);
        self.counts.consumed += 1;
        let recovery = self.setup.nic.recovery;
        let s = &mut self.senders[flow as usize];
        if s.done() {
            return self.pool.remove(id);
        }
        if let Some(irn) = self.setup.nic.irn {
            self.acked_any(id, &packet, &irn);
        } else {
            let seq = recovery.whole_chunks(packet.seq);
            // With a chunk, only the end of the message itself acknowledges a last chunk that is not full.
            let seq = if packet.seq == s.size { packet.seq } else { seq };
            if seq > s.acked {
                s.acked = seq;
                s.tries = 0;
                s.next = s.next.max(seq);
                s.expires = match recovery.timeout {
                    Some(timeout) if s.next > s.acked => now + timeout,
                    _ => Time::MAX,
                };
            }
            if packet.kind == Kind::Nack && !s.done() {
                self.start_over(flow);
            }
        }
        let s = &mut self.senders[flow as usize];
        let done = s.done();
        if done {
            s.finished = now;
            s.expires = Time::MAX;
            self.finished.push((self.current, flow));
            self.active -= 1;
        }
        // Also the last ACK of a flow is shown: what it says may move the NIC's next look.
        let marked = packet.flags & flag::MARKED != 0;
        if marked || self.needs.every_ack {
            let (seq, stamp) = (packet.seq, packet.stamp);
            let next = if self.irn.is_some() { s.high } else { s.next };
            let delay = if self.needs.delay { self.pool.answer(id).delay } else { Time::ZERO };
            let cause = self.sent_at(port, packet.size);
            let s = &self.senders[flow as usize];
            let telemetry = self.pool.telemetry(id);
            let share = self.pool.share(id);
            let ack = Ack { now, cause, seq, next, marked, stamp, delay, telemetry, share };
            let mut permit = s.permit();
            self.control.ack(s.slot, &ack, &mut permit);
            self.apply(flow, permit);
        }
        if done {
            self.slots.free.push(self.senders[flow as usize].slot);
            self.ended_at(flow, self.setup.flows[flow as usize].src);
        }
        self.note(flow);
        self.pool.remove(id);
        self.kicks.push(self.nics[self.senders[flow as usize].nic as usize].port);
    }
}
