//! The host's NIC: flows take turns, paced and windowed; receivers acknowledge; lost packets are sent again.

use super::{Core, Network, class};
use crate::packet::{Fifo, Kind, NONE, Packet, PacketId, Pool, flag};
use crate::scheme::{Ack, FlowControl, FlowStart, Permit};
use crate::setup::{AckLane, AckPolicy, NicWake, WindowRule};
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
    window: u64,
    /// Not before this instant.
    due: Time,
    /// As congestion control has it.
    rate: Rate,
    nic: u32,
    /// Place in the NIC's list.
    place: u32,
    /// Number of its congestion-control state.
    slot: u32,
    /// Bytes on the wire of the last packet sent.
    last_size: u16,
    class: u8,
    started: bool,

    /// Times it started over since something new was acknowledged.
    tries: u8,
    /// When congestion control wants to be called.
    timer: Time,
    /// When the pending timer event comes; [`Time::MAX`] for none.
    armed: Time,
    /// When to start over if nothing is acknowledged.
    expires: Time,
    /// The furthest byte ever sent.
    high: u64,
    /// When its last byte was first put on the link.
    pub injected: Time,
    /// When its last byte was acknowledged; [`Time::MAX`] if it has not been.
    pub finished: Time,
}

const _: () = assert!(size_of::<Sender>() == 128);

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
            started: false,
            tries: 0,
            high: 0,
            injected: Time::MAX,
            finished: Time::MAX,
        }
    }
}

impl Sender {
    /// Whether the flow has been handed to its NIC.
    pub fn started(&self) -> bool {
        self.started
    }
    fn permit(&self) -> Permit {
        Permit { rate: self.rate, timer: self.timer, repace: false }
    }
    fn done(&self) -> bool {
        self.acked >= self.size
    }
    fn backlogged(&self) -> bool {
        self.next < self.size
    }
    fn eligible(&self) -> bool {
        self.backlogged() && self.next - self.acked < self.window
    }
}

/// The receiving side of a flow.
#[derive(Clone, Debug)]
pub struct Receiver {
    /// The next byte in order.
    pub expected: u64,
    /// For which gap the last NACK was sent, and when the next may be.
    nack: (u64, Time),
    /// Packets since the last ACK.
    unacked: u32,
    /// When its last byte arrived; [`Time::MAX`] if it has not.
    pub finished: Time,
    /// It was forgotten when its sender was done, and is a new flow to stray packets.
    forgotten: bool,
}

impl Default for Receiver {
    fn default() -> Receiver {
        Receiver { expected: 0, nack: (0, Time::ZERO), unacked: 0, finished: Time::MAX, forgotten: false }
    }
}

/// Numbers for the congestion-control states of active flows.
#[derive(Default)]
pub(super) struct Slots {
    free: Vec<u32>,
    used: u32,
}
impl Slots {
    fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.used += 1;
            self.used - 1
        })
    }
}

/// A set of places in a NIC's list.
#[derive(Default)]
struct Places(Vec<u64>);
impl Places {
    #[inline]
    fn set(&mut self, place: u32, on: bool) {
        let (word, bit) = (place as usize / 64, 1u64 << (place % 64));
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        if on {
            self.0[word] |= bit;
        } else {
            self.0[word] &= !bit;
        }
    }
    /// The first member in `from..to`.
    #[inline]
    fn first(&self, from: u32, to: u32) -> Option<u32> {
        let mut word = from as usize / 64;
        let mut mask = u64::MAX << (from % 64);
        while word < self.0.len() && (word as u32) * 64 < to {
            let bits = self.0[word] & mask;
            if bits != 0 {
                let place = word as u32 * 64 + bits.trailing_zeros();
                return (place < to).then_some(place);
            }
            mask = u64::MAX;
            word += 1;
        }
        None
    }
    fn is_empty(&self) -> bool {
        self.0.iter().all(|&w| w == 0)
    }
}

/// One port of a host, with the flows that send by it.
pub(super) struct Nic {
    port: u32,
    line: Rate,
    /// Active flows in the order they started. Finished ones are swept out when the search for the next
    /// packet comes past them.
    flows: Vec<u32>,
    /// Places of flows with bytes left to send.
    backlogged: Places,
    /// Places of flows with bytes left that their window lets go.
    eligible: Places,
    /// Places of finished flows.
    finished: Places,
    /// Place of the flow that sent last.
    last: u32,
    acks: Fifo,
    /// When the pending look comes; [`Time::MAX`] for none.
    wake: Time,
    /// Its rank, to know it from one that was put off.
    wake_rank: u32,
}

impl Nic {
    pub(super) fn new(port: u32, line: Rate) -> Nic {
        Nic {
            port,
            line,
            flows: Vec::new(),
            backlogged: Places::default(),
            eligible: Places::default(),
            finished: Places::default(),
            last: 0,
            acks: Fifo::default(),
            wake: Time::MAX,
            wake_rank: 0,
        }
    }

    /// Whether the end of a transmission should look for more.
    #[inline]
    pub(super) fn has_work(&self) -> bool {
        !self.acks.is_empty() || !self.backlogged.is_empty() || !self.finished.is_empty()
    }

    pub(super) fn drop_acks(&mut self, pool: &Pool) -> Vec<PacketId> {
        std::iter::from_fn(|| self.acks.pop(pool)).collect()
    }

    /// ACKs waiting to be sent.
    pub(super) fn acks(&self) -> &Fifo {
        &self.acks
    }

    /// Removes finished flows from `from` on, and says where `kept` has moved.
    fn sweep(&mut self, from: u32, kept: Option<u32>, senders: &mut [Sender]) -> Option<u32> {
        let mut moved = kept;
        let mut to = from;
        for place in from..self.flows.len() as u32 {
            let flow = self.flows[place as usize];
            let sender = &mut senders[flow as usize];
            if sender.done() {
                sender.place = NONE;
                continue;
            }
            if kept == Some(place) {
                moved = Some(to);
            }
            self.flows[to as usize] = flow;
            sender.place = to;
            self.backlogged.set(to, sender.backlogged());
            self.eligible.set(to, sender.eligible());
            self.finished.set(to, false);
            to += 1;
        }
        for place in to..self.flows.len() as u32 {
            self.backlogged.set(place, false);
            self.eligible.set(place, false);
            self.finished.set(place, false);
        }
        self.flows.truncate(to as usize);
        moved
    }
}

impl Core {
    /// The NIC by which packets of `flow` leave `host` in the given direction.
    fn nic_of(&self, host: u32, flow: u32, reverse: bool) -> u32 {
        let spec = &self.setup.flows[flow as usize];
        let (to, tuple) = if reverse { (spec.src, spec.tuple.reversed()) } else { (spec.dst, spec.tuple) };
        let port = match self.routing.next_hops(host, to) {
            [] => self.map.of(host).start,
            [only] => *only,
            several => several[tuple.hash(NIC_SEED) as usize % several.len()],
        };
        self.ports[port as usize].nic
    }

    /// Whether a flow will send by itself, now or later.
    pub(super) fn may_send(&self, flow: u32) -> bool {
        let s = &self.senders[flow as usize];
        let held = self.ports[self.nics[s.nic as usize].port as usize].paused >> s.class & 1 == 1;
        s.started && !s.done() && ((s.eligible() && !held) || (s.expires != Time::MAX && !held))
    }

    /// Goes back to the last acknowledged byte. Senders that lose the same race again and again could do so for ever;
    /// from the second time on without progress, each waits a random time, twice as long every time.
    fn start_over(&mut self, flow: u32) {
        let src = self.setup.flows[flow as usize].src;
        let s = &mut self.senders[flow as usize];
        s.next = s.acked;
        if self.setup.nic.recovery.backoff {
            if s.tries > 0 {
                let packets = self.streams[src as usize].below(1 << s.tries.min(12));
                let line = self.nics[s.nic as usize].line;
                let wait = Time(line.time_for(s.last_size as u64).0 * packets);
                s.due = s.due.max(self.now + wait);
            }
            s.tries = s.tries.saturating_add(1);
        }
        self.note(flow);
    }

    fn note(&mut self, flow: u32) {
        let s = &self.senders[flow as usize];
        if s.place == NONE {
            return;
        }
        let nic = &mut self.nics[s.nic as usize];
        nic.backlogged.set(s.place, s.backlogged());
        nic.eligible.set(s.place, s.eligible());
        nic.finished.set(s.place, s.done());
    }

    /// The time the flow must wait after a packet of `size` bytes.
    #[inline]
    fn pace(&self, nic: u32, size: u16, rate: Rate) -> Time {
        let line = self.nics[nic as usize].line;
        if !self.setup.nic.paced || rate == line {
            let table = self.ports[self.nics[nic as usize].port as usize].table;
            return Time(self.tables[table as usize][size as usize]);
        }
        self.setup.clock.duration(size as u64, rate)
    }

    /// Takes over what congestion control decided.
    fn apply(&mut self, flow: u32, permit: Permit) {
        let s = &self.senders[flow as usize];
        let (old, nic, size) = (s.rate, s.nic, s.last_size);
        if permit.repace && permit.rate != old {
            let (was, is) = (self.pace(nic, size, old), self.pace(nic, size, permit.rate));
            let due = Time((s.due.0 + is.0).saturating_sub(was.0));
            self.senders[flow as usize].due = due;
        }
        let s = &mut self.senders[flow as usize];
        if permit.repace && s.due < self.nics[nic as usize].wake && self.nics[nic as usize].wake != Time::MAX {
            let at = s.due.max(self.now);
            self.set_wake(nic, at);
        }
        let s = &mut self.senders[flow as usize];
        (s.rate, s.timer) = (permit.rate, permit.timer);
        if permit.rate != old {
            self.rewindow(flow);
        }
        self.arm(flow);
    }

    fn rewindow(&mut self, flow: u32) {
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
        self.note(flow);
    }

    /// Makes sure that the flow's next deadline has an event.
    fn arm(&mut self, flow: u32) {
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
            self.counts.timeouts += 1;
            self.start_over(flow);
            self.kicks.push(self.nics[self.senders[flow as usize].nic as usize].port);
        }
        self.apply(flow, permit);
    }

    /// Spreads the flows over their hosts' ports again after a change of routes.
    pub(super) fn reassign_flows(&mut self) {
        for flow in 0..self.next_flow as u32 {
            let (src, old) = (self.setup.flows[flow as usize].src, self.senders[flow as usize].nic);
            if self.senders[flow as usize].done() || self.map.of(src).len() == 1 {
                continue;
            }
            let nic = self.nic_of(src, flow, false);
            if nic == old {
                continue;
            }
            let place = self.senders[flow as usize].place;
            let list = &mut self.nics[old as usize].flows;
            list.remove(place as usize);
            for (i, &f) in list.iter().enumerate().skip(place as usize) {
                self.senders[f as usize].place = i as u32;
            }
            let gone = list.len() as u32;
            let moved: Vec<u32> = list[place as usize..].to_vec();
            let n = &mut self.nics[old as usize];
            for set in [&mut n.backlogged, &mut n.eligible, &mut n.finished] {
                set.set(gone, false);
            }
            moved.into_iter().for_each(|f| self.note(f));
            let n = &mut self.nics[nic as usize];
            n.flows.push(flow);
            self.senders[flow as usize].nic = nic;
            self.senders[flow as usize].place = n.flows.len() as u32 - 1;
            self.note(flow);
            self.kicks.push(self.nics[nic as usize].port);
        }
    }

    /// Hands the flows whose time has come to their NICs.
    fn begin_flow(&mut self, flow: u32) {
        let spec = self.setup.flows[flow as usize];
        let nic = self.nic_of(spec.src, flow, false);
        let slot = self.slots.take();
        let line = self.nics[nic as usize].line;
        let permit = self.control.start(slot, FlowStart { line, base_rtt: spec.base_rtt, window: spec.window });
        let n = &mut self.nics[nic as usize];
        n.flows.push(flow);
        self.senders[flow as usize] = Sender {
            size: spec.size,
            due: self.now,
            rate: permit.rate,
            timer: permit.timer,
            nic,
            place: n.flows.len() as u32 - 1,
            slot,
            class: spec.class,
            started: true,
            ..Sender::default()
        };
        self.active += 1;
        self.rewindow(flow);
        self.arm(flow);
        self.kicks.push(self.nics[nic as usize].port);
    }

    /// The flow whose turn it is, or none. Sweeps finished flows that the search passes.
    fn pick_flow(&mut self, nic: u32) -> Option<u32> {
        let n = &mut self.nics[nic as usize];
        let count = n.flows.len() as u32;
        if count == 0 {
            return None;
        }
        let paused = self.ports[n.port as usize].paused;
        let start = (n.last + 1) % count;
        let mut found = None;
        'search: for (from, to) in [(start, count), (0, start)] {
            let mut at = from;
            while let Some(place) = n.eligible.first(at, to) {
                let s = &self.senders[n.flows[place as usize] as usize];
                if s.due <= self.now && paused >> s.class & 1 == 0 {
                    found = Some(place);
                    break 'search;
                }
                at = place + 1;
            }
        }
        let passed = match found {
            Some(place) if place >= start => n.finished.first(start, place),
            Some(place) => n.finished.first(0, place).or_else(|| n.finished.first(start, count)),
            None => n.finished.first(0, count),
        };
        if let Some(from) = passed {
            found = n.sweep(from, found, &mut self.senders);
        }
        let place = found?;
        n.last = place;
        Some(n.flows[place as usize])
    }

    /// Nothing can be sent now: look again when a flow is due.
    fn plan_wake(&mut self, nic: u32) {
        let n = &self.nics[nic as usize];
        if n.wake != Time::MAX {
            return;
        }
        let paused = self.ports[n.port as usize].paused;
        let all = self.setup.nic.wake == NicWake::Earliest;
        let set = if all { &n.backlogged } else { &n.eligible };
        let (mut at, mut earliest) = (0, Time::MAX);
        while let Some(place) = set.first(at, n.flows.len() as u32) {
            let s = &self.senders[n.flows[place as usize] as usize];
            at = place + 1;
            if !all && paused >> s.class & 1 == 1 {
                continue;
            }
            earliest = earliest.min(s.due);
            if earliest <= self.now {
                return;
            }
        }
        if earliest != Time::MAX {
            self.set_wake(nic, earliest);
        }
    }

    fn set_wake(&mut self, nic: u32, at: Time) {
        let rank = self.rank(at);
        let n = &mut self.nics[nic as usize];
        (n.wake, n.wake_rank) = (at, rank);
        self.events.push(Event::new(at, rank, class::NIC_WAKE, nic));
    }

    /// The next packet of a flow.
    fn make_packet(&mut self, flow: u32) -> PacketId {
        let spec = &self.setup.flows[flow as usize];
        let nic = &self.setup.nic;
        let s = &mut self.senders[flow as usize];
        let payload = (s.size - s.next).min(nic.payload as u64) as u16;
        let (seq, size) = (s.next, payload + nic.header);
        s.next += payload as u64;
        let last = s.next == s.size;
        if s.next <= s.high {
            self.counts.retransmitted.0 += 1;
            self.counts.retransmitted.1 += payload as u64;
        } else {
            s.high = s.next;
            if last {
                s.injected = self.now;
            }
        }
        s.last_size = size;
        self.counts.created += 1;
        self.counts.injected.0 += 1;
        self.counts.injected.1 += payload as u64;
        let flags = if last { flag::LAST } else { 0 } | if seq == 0 { flag::FIRST } else { 0 };
        let packet = Packet {
            flow,
            seq,
            stamp: self.now,
            sent: self.now,
            tuple: spec.tuple,
            dst: spec.dst,
            in_port: NONE,
            size,
            payload,
            kind: Kind::Data,
            class: spec.class,
            flags,
            hops: 0,
            reports: 0,
        };
        let s = &self.senders[flow as usize];
        let due = self.now + self.pace(s.nic, size, s.rate);
        let s = &mut self.senders[flow as usize];
        s.due = due;
        if let (Some(timeout), Time::MAX) = (self.setup.nic.recovery.timeout, s.expires) {
            s.expires = self.now + timeout;
            self.arm(flow);
        }
        self.note(flow);
        self.pool.insert(packet)
    }

    /// A data packet has reached its receiver.
    fn receive_data(&mut self, port: u32, id: PacketId) {
        let packet = self.pool[id];
        let (flow, now) = (packet.flow, self.now);
        self.counts.delivered.0 += 1;
        self.counts.delivered.1 += packet.payload as u64;
        let spec = &self.setup.flows[flow as usize];
        let recovery = &self.setup.nic.recovery;
        let r = &mut self.receivers[flow as usize];
        if recovery.forget && !r.forgotten && self.senders[flow as usize].done() {
            (r.expected, r.nack, r.forgotten) = (0, (0, Time::ZERO), true);
        }
        let mut answer = None;
        if packet.seq == r.expected {
            r.expected += packet.payload as u64;
            r.unacked += 1;
            let end = r.expected == spec.size;
            if end && !r.forgotten {
                r.finished = now;
            }
            let due = match self.setup.nic.acks {
                AckPolicy::Every(k) => end || r.unacked >= k,
                AckPolicy::After { interval, chunk } => {
                    r.expected >= interval || (chunk > 0 && r.expected % chunk == 0)
                }
            };
            if due {
                r.unacked = 0;
                answer = Some(Kind::Ack);
            }
        } else if packet.seq > r.expected {
            self.counts.out_of_order += !r.forgotten as u64;
            if now >= r.nack.1 || r.nack.0 != r.expected {
                r.nack = (r.expected, now + recovery.nack_interval);
                if recovery.chunk > 0 {
                    r.expected = r.expected / recovery.chunk * recovery.chunk;
                }
                answer = Some(Kind::Nack);
            }
        } else if recovery.ack_duplicates {
            answer = Some(Kind::Ack);
        }
        let Some(kind) = answer else {
            self.counts.consumed += 1;
            return self.pool.remove(id);
        };
        // The ACK is made of the packet itself: it keeps the mark, the stamp and the telemetry.
        let expected = r.expected;
        let (dst, src) = (spec.src, spec.dst);
        let a = &mut self.pool[id];
        a.kind = kind;
        a.seq = expected;
        a.size = self.setup.nic.ack_size;
        a.payload = 0;
        a.dst = dst;
        a.tuple = a.tuple.reversed();
        a.hops = 0;
        self.counts.consumed += 1;
        self.counts.created += 1;
        self.counts.acks += 1;
        let here = self.ports[port as usize].nic;
        let nic = if self.map.of(src).len() == 1 { here } else { self.nic_of(src, flow, true) };
        self.nics[nic as usize].acks.push(&mut self.pool, id);
        self.kicks.push(self.nics[nic as usize].port);
    }

    /// An ACK or NACK has reached its sender.
    fn receive_ack(&mut self, id: PacketId) {
        let packet = self.pool[id];
        let (flow, now) = (packet.flow, self.now);
        self.counts.consumed += 1;
        let recovery = self.setup.nic.recovery;
        let s = &mut self.senders[flow as usize];
        if s.done() {
            return self.pool.remove(id);
        }
        let seq = if recovery.chunk > 0 { packet.seq / recovery.chunk * recovery.chunk } else { packet.seq };
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
        let s = &mut self.senders[flow as usize];
        let done = s.done();
        if done {
            s.finished = now;
            s.expires = Time::MAX;
            self.finished.push(flow);
            self.active -= 1;
        }
        // Also the last ACK of a flow is shown: what it says may move the NIC's next look.
        let marked = packet.flags & flag::MARKED != 0;
        if marked || self.needs.every_ack {
            let telemetry = self.pool.telemetry(id);
            let (cause, seq, next, stamp) = (packet.sent, packet.seq, s.next, packet.stamp);
            let ack = Ack { now, cause, seq, next, marked, stamp, telemetry };
            let mut permit = s.permit();
            self.control.ack(s.slot, &ack, &mut permit);
            self.apply(flow, permit);
        }
        if done {
            self.slots.free.push(self.senders[flow as usize].slot);
        }
        self.note(flow);
        self.pool.remove(id);
        self.kicks.push(self.nics[self.senders[flow as usize].nic as usize].port);
    }
}

/// Seed of the hash that spreads flows over the ports of a host with several.
pub const NIC_SEED: u32 = 0x8bad_f00d;

impl<F: FlowControl> Network<F> {
    /// A packet has come in at a host.
    #[inline]
    pub(super) fn host_receive(&mut self, port: u32, id: PacketId) {
        if self.core.pool[id].kind == Kind::Data {
            self.core.receive_data(port, id);
        } else {
            self.core.receive_ack(id);
        }
    }

    /// Starts the flows that begin now, and sets the alarm for the next.
    pub(super) fn start_flows(&mut self) {
        while let Some(spec) = self.core.setup.flows.get(self.core.next_flow) {
            if spec.start > self.core.now {
                let start = spec.start;
                self.core.events.push(Event::new(start, Event::LAST, class::FLOW_START, 0));
                break;
            }
            let flow = self.core.next_flow as u32;
            self.core.next_flow += 1;
            self.core.begin_flow(flow);
            // Each flow in turn, so that an idle NIC starts with the first of several.
            self.drain_kicks();
        }
    }

    /// Sends the next packet of a host's port; false if there is none.
    #[inline]
    pub(super) fn nic_transmit(&mut self, port: u32) -> bool {
        let core = &mut self.core;
        let nic = core.ports[port as usize].nic;
        let free = match core.setup.nic.ack_lane {
            AckLane::Data(Some(class)) => core.ports[port as usize].paused >> class & 1 == 0,
            _ => true,
        };
        if free && let Some(id) = core.nics[nic as usize].acks.pop(&core.pool) {
            core.start(port, id);
            return true;
        }
        match core.pick_flow(nic) {
            Some(flow) => {
                let id = core.make_packet(flow);
                core.start(port, id);
                true
            }
            None => {
                core.plan_wake(nic);
                false
            }
        }
    }

    /// A NIC looks again.
    pub(super) fn nic_wake(&mut self, nic: u32) {
        let n = &mut self.core.nics[nic as usize];
        if n.wake == self.core.now && n.wake_rank == self.core.current.rank() {
            n.wake = Time::MAX;
            let port = n.port;
            self.kick(port);
        }
    }
}
