//! The two halves of a flow, and what hosts do for every transport: make packets, take in answers, keep deadlines.

use crate::axes::congestion_control::{Ack, Incident, Notice, Permit};
use crate::axes::flow_control::FlowControl;
use crate::axes::transport::Progress;
use crate::id::FlowId;
use crate::packet::{Kind, NONE, Packet, PacketId, flag};
use crate::routing::Tuple;
use crate::run::{Class, Core, Network};
use crate::setup::{FlowSpec, Presence, WindowRule};
use engine::{Event, Rate, Time};

/// How long flow control has kept a flow from sending.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hold {
    /// Since when it does; [`Time::MAX`] while it does not.
    since: Time,
    /// Ended holds.
    total: Time,
}

impl Hold {
    pub(crate) const NEVER: Hold = Hold { since: Time::MAX, total: Time::ZERO };

    pub(crate) fn turn(&mut self, now: Time, hold: bool) {
        self.total = self.until(now);
        self.since = if hold { now } else { Time::MAX };
    }
    /// It was held for so much longer.
    pub(crate) fn stretch(&mut self, by: Time) {
        self.total += by;
    }
    /// In all until `now`.
    pub(crate) fn until(&self, now: Time) -> Time {
        self.total + now.saturating_sub(self.since)
    }
}

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
    pub(crate) window: u64,
    /// Not before this instant.
    pub(crate) due: Time,
    /// As congestion control has it.
    pub(crate) rate: Rate,
    pub(crate) nic: u32,
    /// Place in the NIC's list.
    pub(crate) place: u32,
    /// Number of its congestion-control state.
    pub(crate) slot: u32,
    /// Bytes on the wire of the last packet sent.
    pub last_size: u16,
    pub(crate) class: u8,
    /// Why it may not send: [`BY_SCHEME`], [`IN_LINE`], [`BY_TRANSPORT`].
    pub(crate) held: u8,

    /// The scheme's name for it.
    pub(crate) tag: u16,
    /// Times it started over since something new was acknowledged.
    pub tries: u8,
    /// What its packets carry of [`flag::OWN`], shifted down.
    pub(crate) own: u8,
    /// When congestion control wants to be called.
    pub(crate) timer: Time,
    /// When the pending timer event comes; [`Time::MAX`] for none.
    pub(crate) armed: Time,
    /// When the transport wants to be called if nothing is heard; [`Time::MAX`] for never.
    pub expires: Time,
    /// The furthest byte ever sent.
    pub high: u64,
    /// The receiving host.
    pub(crate) dst: u32,
    /// What switches hash.
    pub(crate) tuple: Tuple,
    /// When its last byte was acknowledged; [`Time::MAX`] if it has not been.
    pub finished: Time,
}

const _: () = assert!(size_of::<Sender>() == 128);

/// The scheme keeps a flow from sending.
pub(crate) const BY_SCHEME: u8 = 1;
/// Another message to the same host goes first.
pub(crate) const IN_LINE: u8 = 2;
/// The transport waits for a grant.
pub(crate) const BY_TRANSPORT: u8 = 4;

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
            own: 0,
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
    /// Whether all of it is acknowledged.
    pub fn done(&self) -> bool {
        self.acked >= self.size
    }
    pub(crate) fn backlogged(&self) -> bool {
        self.next < self.size
    }
    pub(crate) fn eligible(&self) -> bool {
        // A sender that went back may hear of bytes beyond where it is: with a transport that stays there, that is more than any window.
        self.backlogged() && self.next.wrapping_sub(self.acked) < self.window && self.held == 0
    }
}

/// The receiving side of a flow, in one cache line.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Receiver {
    /// The next byte in order.
    pub expected: u64,
    /// For which gap the last NACK was sent, and when the next may be.
    pub nack: (u64, Time),
    /// The last packet that came too early.
    pub early: u64,
    /// When its last byte arrived; [`Time::MAX`] if it has not.
    pub finished: Time,
    /// The sending host.
    src: u32,
    /// Packets since the last ACK.
    pub unacked: u32,
    /// When the latest of its packets that have arrived was sent.
    pub latest: Time,
    /// It was forgotten when its sender was done, and is a new flow to stray packets.
    pub forgotten: bool,
}

const _: () = assert!(size_of::<Receiver>() == 64);

impl Receiver {
    /// Of a flow that has not begun.
    pub(crate) fn new(flow: &FlowSpec) -> Receiver {
        Receiver {
            expected: 0,
            nack: (0, Time::ZERO),
            early: 0,
            finished: Time::MAX,
            src: flow.src.0,
            unacked: 0,
            latest: Time::ZERO,
            forgotten: false,
        }
    }
}

impl Core {
    /// Takes over what congestion control decided.
    pub(crate) fn apply(&mut self, flow: u32, permit: Permit) {
        self.take_over(flow, permit);
        self.note(flow);
    }

    /// The same without bringing the NIC's sets up to date.
    #[inline(always)]
    fn take_over(&mut self, flow: u32, permit: Permit) {
        let s = &self.hosts.senders[flow as usize];
        let (old, nic, size) = (s.rate, s.nic, s.last_size);
        if permit.repace && permit.rate != old {
            let pace = |rate| match self.setup.habits.shifts {
                true => self.setup.clock.duration(size as u64, rate),
                false => self.pace(nic, size, rate),
            };
            let (was, is) = (pace(old), pace(permit.rate));
            let due = Time((s.due.0 + is.0).saturating_sub(was.0));
            self.set_due(flow, due);
        }
        let s = &mut self.hosts.senders[flow as usize];
        if permit.repace
            && s.due < self.hosts.nics[nic as usize].wake
            && self.hosts.nics[nic as usize].wake != Time::MAX
        {
            let at = s.due.max(self.time.now);
            self.set_wake(nic, at);
        }
        if permit.resume > self.hosts.senders[flow as usize].due {
            self.set_due(flow, permit.resume);
        }
        let s = &mut self.hosts.senders[flow as usize];
        (s.rate, s.timer, s.own) = (permit.rate, permit.timer, (permit.own >> flag::OWN_SHIFT) as u8);
        if self.hosts.needs.window {
            s.window = permit.window.max(1).min(self.hosts.cap);
            self.keep_window(flow);
        } else if permit.rate != old {
            self.rewindow(flow);
        }
        self.arm(flow);
    }

    /// Sets a flow's window by its rate.
    #[inline]
    pub(crate) fn rewindow(&mut self, flow: u32) {
        if self.hosts.needs.window {
            let s = &mut self.hosts.senders[flow as usize];
            s.window = s.window.max(1).min(self.hosts.cap);
            return self.keep_window(flow);
        }
        let base = self.setup.flows[flow as usize].window;
        let s = &mut self.hosts.senders[flow as usize];
        s.window = match (base, self.setup.nic.window) {
            (0, _) => u64::MAX,
            (base, WindowRule::Fixed) => base,
            (base, WindowRule::Scaled) => {
                let line = self.hosts.nics[s.nic as usize].line.0;
                let scaled = match base.checked_mul(s.rate.0) {
                    Some(product) => product / line,
                    None => (base as u128 * s.rate.0 as u128 / line as u128) as u64,
                };
                scaled.max(1)
            }
        };
        s.window = s.window.min(self.hosts.cap);
        self.keep_window(flow);
    }

    /// A flow has another window: where the transport counts what is in flight, it is not the NIC that looks at it.
    #[inline]
    fn keep_window(&mut self, flow: u32) {
        if let Some(windows) = &mut self.hosts.windows {
            windows[flow as usize] = std::mem::replace(&mut self.hosts.senders[flow as usize].window, u64::MAX);
        }
    }

    /// Bytes of message that a flow may have in flight; `u64::MAX` for any number.
    pub(crate) fn window(&self, flow: u32) -> u64 {
        match &self.hosts.windows {
            Some(windows) => windows[flow as usize],
            None => self.hosts.senders[flow as usize].window,
        }
    }

    /// What a flow may do now.
    #[inline]
    fn permit(&self, flow: u32) -> Permit {
        let s = &self.hosts.senders[flow as usize];
        let own = (s.own as u16) << flag::OWN_SHIFT;
        let window = self.window(flow);
        Permit { rate: s.rate, window, timer: s.timer, repace: false, resume: Time::ZERO, own }
    }

    /// Makes sure that the flow's next deadline has an event.
    pub(crate) fn arm(&mut self, flow: u32) {
        let s = &mut self.hosts.senders[flow as usize];
        let next = s.timer.min(s.expires);
        if next < s.armed && !s.done() {
            s.armed = next.max(self.time.now);
            self.time.events.push(Event::new(s.armed, 0, Class::FlowTimer as u8, flow));
        }
    }

    /// The next packet of a flow, and whether its bytes were sent before.
    #[inline(always)]
    pub(crate) fn make_packet(&mut self, flow: u32) -> (PacketId, bool) {
        let nic = &self.setup.nic;
        let s = &mut self.hosts.senders[flow as usize];
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
                self.hosts.injected[flow as usize] = self.time.now;
            }
        }
        let sent = last && s.next == s.high;
        s.last_size = size;
        self.counts.created += 1;
        self.counts.injected.0 += 1;
        self.counts.injected.1 += payload as u64;
        let mut packet = Packet {
            flow,
            seq,
            stamp: self.time.now,
            next_arrival: self.time.now,
            tuple: s.tuple,
            dst: s.dst,
            size,
            tag: s.tag,
            class: s.class,
            flags: if last { flag::LAST } else { 0 }
                | if seq == 0 { flag::FIRST } else { 0 }
                | if fresh { flag::FRESH } else { 0 }
                | (s.own as u16) << flag::OWN_SHIFT,
            ..Packet::BLANK
        };
        if !self.hosts.selectors.is_empty() {
            self.select_path(flow, &mut packet);
        }
        if sent && !self.hosts.lines.is_empty() {
            self.leave_line(flow);
        }
        if last && !again {
            self.count_standstill(flow, false);
        }
        let noted = self.pool.traced() && (again || self.stands_out(&packet));
        let id = self.pool.insert(packet);
        if noted {
            self.depart(flow, id, again);
        }
        (id, again)
    }

    /// Gives a packet the entropy that its host's path selector wants.
    #[inline(never)]
    fn select_path(&mut self, flow: u32, packet: &mut Packet) {
        let src = self.setup.flows[flow as usize].src.index();
        if let Some(selector) = &mut self.hosts.selectors[src] {
            let (own, dice) = (packet.tuple.source_port, &mut self.dice.streams[src]);
            packet.tuple.source_port = selector.next(FlowId(flow), own, self.time.now, dice);
        }
    }

    /// Answers a data packet, or not. The ACK is made of the packet itself: it keeps the mark, the stamp and the telemetry.
    #[inline(always)]
    pub(crate) fn answer(&mut self, port: u32, id: PacketId, answer: Option<Kind>, expected: u64) {
        let Some(kind) = answer else {
            self.counts.consumed += 1;
            return self.pool.remove(id);
        };
        if self.hosts.needs.delay {
            self.pool.answer(id).delay = self.time.now.saturating_sub(self.pool[id].stamp);
        }
        let a = &mut self.pool[id];
        let (flow, src, dst) = (a.flow, a.dst, self.hosts.receivers[a.flow as usize].src);
        a.kind = kind;
        a.seq = expected;
        a.size = self.setup.nic.ack_size;
        a.dst = dst;
        a.tuple = a.tuple.reversed();
        self.counts.consumed += 1;
        self.counts.created += 1;
        self.counts.acks += 1;
        let p = &self.ports[port as usize];
        let (nic, port) = if p.alone {
            (p.nic, port)
        } else {
            let nic = self.nic_of(src, flow, true);
            (nic, self.hosts.nics[nic as usize].port)
        };
        self.hosts.nics[nic as usize].acks.push(&mut self.pool, id);
        self.kicks.push(port);
    }

    /// A packet has come in at a host's port by which it counts who sends to it: what share the flow has of the link
    /// goes on the ACK that the packet will be. A flow that is over does not count.
    pub(crate) fn count_flow(&mut self, port: u32, id: PacketId, over: bool) {
        let (nic, flow, line) = (self.ports[port as usize].nic, self.pool[id].flow, self.rate_in(port));
        let far = self.ports[port as usize].peer;
        let packet = self.wire.time(self.ports[far as usize].table, self.pool[id].size);
        let Some(census) = &mut self.hosts.census else { return };
        let parts =
            if over { census.leave(flow, nic, self.time.now) } else { census.hear(flow, nic, self.time.now, packet) };
        self.pool.set_share(id, Rate(line.0 / parts.max(1) as u64));
    }

    /// Sends a control packet of a receiver to the sender of its flow, whose data came in by the NIC `here`.
    pub(crate) fn send_from_receiver(&mut self, here: u32, id: PacketId) {
        let flow = self.pool[id].flow;
        let host = self.setup.flows[flow as usize].dst;
        let nic = if self.map.of(host.0).len() == 1 { here } else { self.nic_of(host.0, flow, true) };
        self.hosts.nics[nic as usize].acks.push(&mut self.pool, id);
        self.kicks.push(self.hosts.nics[nic as usize].port);
    }

    /// A switch's report has reached the sender of the packet that it is about.
    pub(super) fn receive_notice(&mut self, id: PacketId) {
        let packet = self.pool[id];
        self.counts.consumed += 1;
        self.pool.remove(id);
        let s = &self.hosts.senders[packet.flow as usize];
        if s.done() {
            return;
        }
        let notice = Notice::read(&packet, self.time.now);
        let mut permit = self.permit(packet.flow);
        self.hosts.control.notice(s.slot, &notice, &mut permit);
        self.apply(packet.flow, permit);
        self.kicks.push(self.hosts.nics[self.hosts.senders[packet.flow as usize].nic as usize].port);
    }

    /// Notifies a flow's path selector of a timeout.
    pub(crate) fn report_silence(&mut self, flow: u32) {
        if !self.hosts.selectors.is_empty() {
            let src = self.setup.flows[flow as usize].src.index();
            if let Some(selector) = &mut self.hosts.selectors[src] {
                selector.expired(FlowId(flow), self.time.now);
            }
        }
    }

    /// Notifies a flow's congestion control and its path selector of what the transport found out.
    pub(crate) fn report_incident(&mut self, flow: u32, incident: Incident) {
        if incident == Incident::Lost && !self.hosts.selectors.is_empty() {
            let src = self.setup.flows[flow as usize].src.index();
            if let Some(selector) = &mut self.hosts.selectors[src] {
                selector.lost(FlowId(flow), self.time.now);
            }
        }
        if self.hosts.needs.incidents {
            let s = &self.hosts.senders[flow as usize];
            let mut permit = self.permit(flow);
            self.hosts.control.incident(s.slot, self.time.now, incident, &mut permit);
            self.apply(flow, permit);
        }
    }
}

impl<F: FlowControl> Network<F> {
    /// A data packet has reached its receiver, or what a trimming switch left of it.
    #[inline]
    pub(crate) fn receive_data(&mut self, port: u32, id: PacketId) {
        self.count_gone(port, id);
        let core = &mut self.core;
        let packet = &core.pool[id];
        if packet.kind == Kind::Data {
            core.counts.delivered.0 += 1;
            core.counts.delivered.1 += (packet.size - core.setup.nic.header) as u64;
        }
        self.at_host(port, |transport, at, local| transport.data(at, local, id));
    }

    /// A deadline of a flow may have come.
    pub(crate) fn flow_timer(&mut self, flow: u32) {
        let now = self.core.time.now;
        let s = &mut self.core.hosts.senders[flow as usize];
        if s.armed != now {
            return;
        }
        s.armed = Time::MAX;
        if s.done() {
            return;
        }
        self.look_before_timer(flow);
        let core = &mut self.core;
        let mut permit = core.permit(flow);
        let s = &core.hosts.senders[flow as usize];
        if permit.timer <= now {
            core.hosts.control.timer(s.slot, now, &mut permit);
            debug_assert!(permit.timer > now);
        }
        let (expired, port) = (s.expires <= now, core.hosts.nics[s.nic as usize].port);
        // What the controller hears of the timeout comes after what it decided by its own timer.
        let first = core.hosts.needs.incidents;
        if first {
            core.apply(flow, permit);
        }
        if expired {
            self.core.hosts.senders[flow as usize].expires = Time::MAX;
            self.at_host(port, |transport, at, _| transport.expired(at, FlowId(flow)));
            self.core.kicks.push(port);
        }
        match first {
            true => self.core.arm(flow),
            false => self.core.apply(flow, permit),
        }
        self.window_changed(flow);
    }

    /// Congestion control may have changed a flow's window: the transport is told if it is the one that looks at it.
    #[inline]
    pub(crate) fn window_changed(&mut self, flow: u32) {
        if self.core.hosts.windows.is_none() {
            return;
        }
        let s = &self.core.hosts.senders[flow as usize];
        if !s.done() {
            let port = self.core.hosts.nics[s.nic as usize].port;
            self.at_host(port, |transport, at, _| transport.window_changed(at, FlowId(flow)));
        }
    }

    /// An ACK, a NACK or another control packet of the transport has reached its sender.
    #[inline]
    pub(crate) fn receive_control(&mut self, port: u32, id: PacketId) {
        let core = &mut self.core;
        let packet = core.pool[id];
        let (flow, now) = (packet.flow, core.time.now);
        core.counts.consumed += 1;
        core.progress.answers += matches!(packet.kind, Kind::Ack | Kind::Nack) as u64;
        if core.hosts.senders[flow as usize].done() {
            return core.pool.remove(id);
        }
        self.at_host(port, |transport, at, _| transport.control(at, &packet, id));
        let core = &mut self.core;
        let s = &mut core.hosts.senders[flow as usize];
        let done = s.done();
        if done {
            s.finished = now;
            s.expires = Time::MAX;
            core.progress.finished.push((core.time.current, flow));
            core.progress.active -= 1;
            core.note_presence(flow, Presence::Ends);
        }
        let marked = packet.flags & flag::MARKED != 0;
        if !core.hosts.selectors.is_empty() && matches!(packet.kind, Kind::Ack | Kind::Nack) {
            let src = core.setup.flows[flow as usize].src.index();
            if let Some(selector) = &mut core.hosts.selectors[src] {
                // At the last switch, no other path would have helped.
                let elsewhere = packet.flags & flag::LAST_HOP == 0;
                match core.hosts.nacks_trimmed && packet.kind == Kind::Nack && elsewhere {
                    true => selector.trimmed(FlowId(flow), packet.tuple.destination_port, now),
                    false => selector.acknowledged(FlowId(flow), packet.tuple.destination_port, marked, now),
                }
                if done {
                    selector.ended(FlowId(flow));
                }
            }
        }
        // Also the last ACK of a flow is shown: what it says may move the NIC's next look.
        let arrived = packet.kind == Kind::Ack || packet.kind == Kind::Nack && !core.hosts.nacks_trimmed;
        if arrived && (marked || core.hosts.needs.every_ack) {
            let progress = self.transport.progress(FlowId(flow), &core.hosts.senders[flow as usize]);
            core.show_ack(port, id, &packet, progress);
            self.window_changed(flow);
        }
        let core = &mut self.core;
        if done {
            core.hosts.slots.free.push(core.hosts.senders[flow as usize].slot);
            core.ended_at(flow, core.setup.flows[flow as usize].src.0);
        }
        core.note_here(flow);
        core.pool.remove(id);
        let n = &core.hosts.nics[core.hosts.senders[flow as usize].nic as usize];
        // Of two ACKs one finds nothing that it would let go: its flow has sent all.
        if n.has_work(core.hosts.looks_for_all) {
            core.kicks.push(n.port);
        }
    }
}

impl Core {
    /// Shows an ACK to congestion control.
    #[inline]
    fn show_ack(&mut self, port: u32, id: PacketId, packet: &Packet, progress: Progress) {
        let delay = if self.hosts.needs.delay { self.pool.answer(id).delay } else { Time::ZERO };
        let s = &self.hosts.senders[packet.flow as usize];
        let ack = Ack {
            now: self.time.now,
            cause: self.sent_at(port, packet.size),
            seq: packet.seq,
            next: progress.next,
            received: progress.received,
            flight: progress.flight,
            marked: packet.flags & flag::MARKED != 0,
            own: packet.flags & flag::OWN,
            tag: packet.tag,
            stamp: packet.stamp,
            delay,
            telemetry: self.pool.telemetry(id),
            share: self.pool.share(id),
        };
        let mut permit = self.permit(packet.flow);
        self.hosts.control.ack(s.slot, &ack, &mut permit);
        // The sets of the NIC are brought up to date when all of the ACK is known.
        self.take_over(packet.flow, permit);
    }
}
