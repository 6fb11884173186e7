//! NDP: switches cut packets down to their headers when a queue is full, and receivers pull what senders may send.
//!
//! A sender sends a first window at line rate and from then on only what it is pulled for. A switch that has no room for
//! a data packet keeps its header, which goes ahead of data with ACKs, NACKs and pulls: the receiver learns of
//! every packet within a round trip. It answers each with an ACK or a NACK and queues a pull, and sends its pulls at
//! the pace at which its link takes full packets. Headers that find no room go back to the sender, once.
//!
//! The NIC's turns, pacing and packets are those of go-back-N. A sender without credit is held; `Sender::next` is the start
//! of the packet whose turn it is, be it one to send again or a new one.

use super::part::{Part, PerFlow};
use super::record::Counted;
use super::transport::BY_SCHEME;
use super::{Core, Counts, class};
use crate::packet::{Kind, NONE, Packet, PacketId, flag};
use crate::scheme::{Counter, Visit};
use crate::setup::{NdpSetup, Setup};
use engine::{Event, Time};
use std::collections::VecDeque;

/// What became of a packet that was sent.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// Sent then, and nothing heard of it since.
    Flying(Time),
    /// Known not to have arrived; to be sent again.
    Missing,
    /// Arrived.
    Acked,
}

/// The sending side of a flow.
#[derive(Clone, Debug)]
struct Source {
    /// The first packet not known to have arrived.
    first: u32,
    /// That packet and all later ones that were sent.
    packets: VecDeque<State>,
    /// Packets to send again, in turn.
    again: VecDeque<u32>,
    /// Packets that may be sent now.
    credit: u32,
    /// Pulls to come: asked for, or owed for a packet that was trimmed. Below zero while a pull is ahead of the NACK of its
    /// packet.
    expected: i32,
    /// The number of the last pull.
    pulled: u32,
    /// Packets in flight.
    flying: u32,
    /// When something was last heard of the receiver.
    heard: Time,
    /// Packets sent.
    sent: u32,
    /// How many packets arrived, and how many did not.
    fates: (u32, u32),
}

impl Source {
    fn state(&mut self, packet: u32) -> Option<&mut State> {
        self.packets.get_mut(packet.checked_sub(self.first)? as usize)
    }

    /// A packet is not in flight any more. Says whether it was.
    fn land(&mut self, packet: u32, now: State) -> bool {
        let Some(state) = self.state(packet) else { return false };
        let flying = matches!(state, State::Flying(_));
        if flying || now == State::Acked {
            *state = now;
        }
        self.flying -= flying as u32;
        flying
    }

    /// All packets before `count` have arrived.
    fn arrived(&mut self, count: u32) {
        while self.first < count || self.packets.front() == Some(&State::Acked) {
            match self.packets.pop_front() {
                Some(State::Flying(_)) => self.flying -= 1,
                Some(_) => {}
                // Not even a broken peer makes packets arrive that were not sent.
                None => return,
            }
            self.first += 1;
        }
    }

    /// The packet to send again whose turn it is.
    fn repeat(&mut self) -> Option<u32> {
        // One may have arrived after all, or too late for the timeout.
        while let Some(&packet) = self.again.front() {
            if self.state(packet).is_some_and(|state| *state == State::Missing) {
                return Some(packet);
            }
            self.again.pop_front();
        }
        None
    }
}

/// The receiving side of a flow.
#[derive(Clone, Debug)]
struct Sink {
    /// The first packet that has not arrived.
    next: u32,
    /// Which of the later ones have.
    early: VecDeque<bool>,
    /// The number of packets, once the last one was there.
    count: Option<u32>,
    /// Bytes of message that are there.
    got: u64,
    /// Pulls to be sent.
    pending: u32,
    /// Pulls sent.
    pulls: u32,
}

impl Sink {
    fn has(&self, packet: u32) -> bool {
        packet < self.next || self.early.get((packet - self.next) as usize) == Some(&true)
    }

    fn take(&mut self, packet: u32) {
        let place = (packet - self.next) as usize;
        if place >= self.early.len() {
            self.early.resize(place + 1, false);
        }
        self.early[place] = true;
        while self.early.front() == Some(&true) {
            self.early.pop_front();
            self.next += 1;
        }
    }
}

/// The pulls of one port of a host.
#[derive(Clone, Debug, Default)]
struct Pulls {
    /// Flows with pulls to be sent, in turn.
    flows: VecDeque<u32>,
    /// The link is taken until then by what was pulled.
    busy: Time,
    /// Whether the end of that is on the event queue.
    armed: bool,
}

/// The control packets at a port of a switch.
#[derive(Clone, Debug, Default)]
struct Headers {
    bytes: u64,
    peak: u64,
    /// How many were sent while data waited, since data was sent.
    turn: u32,
}

/// All of NDP's state.
pub(super) struct Ndp {
    setup: NdpSetup,
    /// By flow.
    sources: PerFlow<Source>,
    sinks: PerFlow<Sink>,
    /// By NIC.
    pulls: Vec<Pulls>,
    /// By port.
    headers: Vec<Headers>,
    nacks: u64,
    pulls_sent: u64,
    overflows: u64,
    returned: u64,
}

impl Ndp {
    pub(super) fn new(own: NdpSetup, setup: &Setup, part: &Option<Part>, ports: usize, nics: usize) -> Ndp {
        let source = Source {
            first: 0,
            packets: VecDeque::new(),
            again: VecDeque::new(),
            credit: own.window,
            expected: 0,
            pulled: 0,
            flying: 0,
            heard: Time::ZERO,
            sent: 0,
            fates: (0, 0),
        };
        let sink = Sink { next: 0, early: VecDeque::new(), count: None, got: 0, pending: 0, pulls: 0 };
        Ndp {
            setup: own,
            sources: PerFlow::new(setup, part, |flow| flow.src, |_| source.clone()),
            sinks: PerFlow::new(setup, part, |flow| flow.dst, |_| sink.clone()),
            pulls: vec![Pulls::default(); nics],
            headers: vec![Headers::default(); ports],
            nacks: 0,
            pulls_sent: 0,
            overflows: 0,
            returned: 0,
        }
    }

    /// Takes over the ports and flows of another part, and adds what it counted.
    pub(super) fn absorb(&mut self, other: &Ndp, mine: impl Fn(usize) -> bool) {
        for port in (0..self.headers.len()).filter(|&port| mine(port)) {
            self.headers[port] = other.headers[port].clone();
        }
        self.sources.absorb(&other.sources);
        self.sinks.absorb(&other.sinks);
        self.nacks += other.nacks;
        self.pulls_sent += other.pulls_sent;
        self.overflows += other.overflows;
        self.returned += other.returned;
    }

    /// The link at `port` is down, and with it what waited there.
    pub(super) fn forget_headers(&mut self, port: u32) {
        let headers = &mut self.headers[port as usize];
        (headers.bytes, headers.turn) = (0, 0);
    }

    /// Bytes of control packets at a port, and the most there may be.
    pub(super) fn header_bytes(&self, port: usize) -> (u64, u64) {
        (self.headers[port].bytes, self.setup.headers)
    }

    pub(super) fn counters(&self, counts: &Counts) -> Vec<Counter> {
        vec![
            ("trimmed", counts.trimmed.0),
            ("trimmed_bytes", counts.trimmed.1),
            ("header_overflows", self.overflows),
            ("returned", self.returned),
            ("pulls", self.pulls_sent),
            ("nacks", self.nacks),
            ("peak_header_queue", self.headers.iter().map(|headers| headers.peak).max().unwrap_or(0)),
        ]
    }
}

/// Two numbers in a packet's word.
fn pack(high: u32, low: u32) -> u64 {
    (high as u64) << 32 | low as u64
}

fn unpack(word: u64) -> (u32, u32) {
    ((word >> 32) as u32, word as u32)
}

// The switch.
impl Core {
    /// A data packet finds no room: it loses its payload, or the last packet in its queue does. Which of the two is left to
    /// chance, so that no flow always loses (§3.1).
    pub(super) fn trim(&mut self, visit: &Visit) {
        let &Visit { packet, out_port, queue, .. } = visit;
        let p = &self.ports[out_port as usize];
        let (node, number) = (p.node, (p.first_queue + queue) as usize);
        if self.chance(node, 0.5)
            && let Some(last) = self.queues[number].pop_last(&mut self.pool)
        {
            let size = self.pool[last].size as u64;
            self.release(node, last);
            self.ports[out_port as usize].queued -= size;
            self.cut(out_port, last);
            if self.admits(visit, false) {
                return self.join(visit, false);
            }
            self.masks.set_filled(out_port, queue, self.queues[number].bytes > 0);
        }
        self.cut(out_port, packet);
    }

    /// Makes a header of a data packet that leaves by `port`.
    fn cut(&mut self, port: u32, id: PacketId) {
        let (nic, packet) = (&self.setup.nic, &mut self.pool[id]);
        self.counts.trimmed.0 += 1;
        self.counts.trimmed.1 += (packet.size - nic.header) as u64;
        packet.kind = Kind::Header;
        packet.size = packet.size.min(nic.ndp.map_or(0, |ndp| ndp.header));
        self.queue_header(port, id);
    }

    /// A control packet leaves by `port`, if there is room. A header that finds none goes back to its sender, if there is
    /// room for it on that way; everything else is lost.
    pub(super) fn queue_header(&mut self, port: u32, id: PacketId) {
        if self.add_header(port, id) {
            return;
        }
        if let Some(ndp) = &mut self.ndp {
            ndp.overflows += 1;
        }
        if self.pool[id].kind == Kind::Header {
            let node = self.ports[port as usize].node;
            let src = self.setup.flows[self.pool[id].flow as usize].src;
            let packet = &mut self.pool[id];
            packet.kind = Kind::Returned;
            packet.dst = src;
            packet.tuple = packet.tuple.reversed();
            let (tuple, stamp) = (packet.tuple, packet.stamp);
            if let Some(back) = self.way(node, src, &tuple, stamp)
                && self.ports[back as usize].up
                && self.add_header(back, id)
            {
                if let Some(ndp) = &mut self.ndp {
                    ndp.returned += 1;
                }
                return;
            }
        }
        self.counts.dropped_full += 1;
        self.count_at(port, Counted::Drop, 1);
        self.discard(id);
    }

    fn add_header(&mut self, port: u32, id: PacketId) -> bool {
        let Some(ndp) = &mut self.ndp else { return false };
        let size = self.pool[id].size as u64;
        let headers = &mut ndp.headers[port as usize];
        if headers.bytes + size > ndp.setup.headers {
            return false;
        }
        headers.bytes += size;
        headers.peak = headers.peak.max(headers.bytes);
        let p = &mut self.ports[port as usize];
        p.queued += size;
        p.control.push(&mut self.pool, id);
        self.kicks.push(port);
        true
    }

    /// The control packet that a `port` with queues sends next, unless it is the turn of data that waits.
    #[inline]
    pub(super) fn next_control(&mut self, port: u32) -> Option<PacketId> {
        if let Some(ndp) = &mut self.ndp {
            let headers = &mut ndp.headers[port as usize];
            if self.masks.any_ready(port) {
                if headers.turn >= ndp.setup.ratio {
                    headers.turn = 0;
                    return None;
                }
                headers.turn += 1;
            }
            headers.bytes -= self.pool[self.ports[port as usize].control.head()].size as u64;
        }
        let p = &mut self.ports[port as usize];
        let id = p.control.pop(&self.pool)?;
        p.queued -= self.pool[id].size as u64;
        Some(id)
    }
}

// The sender.
impl Core {
    /// Packets of a flow that were never sent.
    fn unsent(&self, flow: u32) -> u32 {
        let s = &self.senders[flow as usize];
        (s.size - s.high).div_ceil(self.setup.nic.payload as u64) as u32
    }

    /// A flow has sent the packet whose turn it was.
    pub(super) fn ndp_sent(&mut self, flow: u32, id: PacketId) {
        let packet = (self.pool[id].seq / self.setup.nic.payload as u64) as u32;
        let unsent = self.unsent(flow);
        let Some(ndp) = &mut self.ndp else { return };
        let source = &mut ndp.sources[flow as usize];
        if source.first == 0 && source.packets.is_empty() {
            // What a message leaves of its first window is no credit for later.
            source.credit = source.credit.min(unsent + 1);
        }
        if source.again.front() == Some(&packet) {
            source.again.pop_front();
        }
        match source.state(packet) {
            Some(state) => *state = State::Flying(self.now),
            None => source.packets.push_back(State::Flying(self.now)),
        }
        source.flying += 1;
        source.credit -= 1;
        // The ways are taken in turn (§3.1.1), also by what is sent again.
        self.pool[id].stamp = Time(source.sent as u64);
        source.sent += 1;
        // Nothing is pulled that is not there to be sent (App. B.4 of the SFC paper has byte-level credits for that).
        let more = source.again.len() as i64 + unsent as i64;
        if more > source.credit as i64 + source.expected as i64 {
            source.expected += 1;
            self.pool[id].flags |= flag::WANTS;
        }
        self.ndp_turn(flow);
    }

    /// Finds the packet that a flow sends next, if it may.
    fn ndp_turn(&mut self, flow: u32) {
        let unsent = self.unsent(flow);
        let Some(ndp) = &mut self.ndp else { return };
        let source = &mut ndp.sources[flow as usize];
        let again = source.repeat();
        // It knows of nothing under way that would bring a pull: the receiver does not wait for it.
        if source.credit == 0 && source.expected <= 0 && source.flying == 0 {
            source.credit = (source.again.len() as u32 + unsent).min(1);
        }
        let s = &mut self.senders[flow as usize];
        s.next = again.map_or(s.high, |packet| packet as u64 * self.setup.nic.payload as u64);
        s.held = if source.credit == 0 { s.held | BY_SCHEME } else { s.held & !BY_SCHEME };
        self.note(flow);
    }

    /// An ACK, a NACK, a pull or a returned header has reached its sender.
    fn ndp_heard(&mut self, packet: &Packet) {
        let (flow, now) = (packet.flow, self.now);
        let payload = self.setup.nic.payload as u64;
        let asked = packet.flags & flag::WANTS != 0;
        let (number, mut arrived) = unpack(packet.seq);
        let Some(ndp) = &mut self.ndp else { return };
        let s = &mut self.senders[flow as usize];
        if s.done() {
            return;
        }
        let source = &mut ndp.sources[flow as usize];
        match packet.kind {
            Kind::Ack => {
                source.fates.0 += 1;
                source.land(number, State::Acked);
            }
            Kind::Nack => {
                source.fates.1 += 1;
                if source.land(number, State::Missing) {
                    source.again.push_back(number);
                }
                source.expected += !asked as i32;
            }
            Kind::Pull => {
                // Numbers make up for pulls that were lost or overtaken.
                let more = number.saturating_sub(source.pulled);
                source.pulled += more;
                source.expected -= more as i32;
                source.credit += more;
            }
            _ => {
                arrived = 0;
                source.fates.1 += 1;
                source.expected -= asked as i32;
                let number = (packet.seq / payload) as u32;
                if source.land(number, State::Missing) {
                    source.again.push_front(number);
                    // Generally it waits for a pull, so as not to repeat the incast. If at least a quarter of its packets
                    // arrive, it was a bad path (htsim's rule).
                    let (good, bad) = source.fates;
                    source.credit += (good + bad < good.saturating_mul(4)) as u32;
                }
            }
        }
        source.heard = now;
        source.arrived(arrived);
        s.acked = (source.first as u64 * payload).min(s.size);
        if s.done() {
            (source.packets, source.again) = Default::default();
            s.next = s.size;
            s.finished = now;
            s.expires = Time::MAX;
            self.finished.push((self.current, flow));
            self.active -= 1;
            self.slots.free.push(s.slot);
            self.ended_at(flow, self.setup.flows[flow as usize].src);
            self.note(flow);
        } else {
            self.ndp_turn(flow);
        }
        self.kicks.push(self.nics[self.senders[flow as usize].nic as usize].port);
    }

    /// A flow's deadline: what was sent that long ago is lost, and if nothing is in flight, so are the pulls.
    pub(super) fn ndp_timeout(&mut self, flow: u32) {
        let now = self.now;
        let timeout = self.setup.nic.recovery.timeout.unwrap_or_default();
        let Some(ndp) = &mut self.ndp else { return };
        let source = &mut ndp.sources[flow as usize];
        let (mut lost, mut oldest) = (0, now);
        for (packet, state) in (source.first..).zip(&mut source.packets) {
            match *state {
                State::Flying(sent) if sent + timeout <= now => {
                    *state = State::Missing;
                    source.again.push_back(packet);
                    lost += 1;
                }
                State::Flying(sent) => oldest = oldest.min(sent),
                _ => {}
            }
        }
        source.flying -= lost;
        // As many may follow as have left the network.
        source.credit += lost;
        source.expected = (source.expected - lost as i32).max(0);
        let unpulled = source.flying == 0 && source.credit == 0;
        let silent = unpulled && source.heard + timeout <= now;
        if silent {
            source.credit = source.expected.max(1) as u32;
            source.expected = 0;
        } else if unpulled {
            oldest = source.heard;
        }
        self.counts.timeouts += (lost > 0 || silent) as u64;
        self.senders[flow as usize].expires = oldest + timeout;
        self.ndp_turn(flow);
    }
}

// The receiver.
impl Core {
    /// A packet has come in at a host.
    pub(super) fn ndp_receive(&mut self, port: u32, id: PacketId) {
        let packet = self.pool[id];
        if !matches!(packet.kind, Kind::Data | Kind::Header) {
            self.counts.consumed += 1;
            self.pool.remove(id);
            return self.ndp_heard(&packet);
        }
        let full = self.setup.nic.payload as u64;
        let (flow, number) = (packet.flow, (packet.seq / full) as u32);
        let Some(ndp) = &mut self.ndp else { return };
        let sink = &mut ndp.sinks[flow as usize];
        let r = &mut self.receivers[flow as usize];
        if packet.kind == Kind::Data {
            let payload = (packet.size - self.setup.nic.header) as u64;
            self.counts.delivered.0 += 1;
            self.counts.delivered.1 += payload;
            self.counts.out_of_order += (number > sink.next) as u64;
            if packet.flags & flag::LAST != 0 {
                sink.count = Some(number + 1);
            }
            if !sink.has(number) {
                sink.got += payload;
                sink.take(number);
            }
            r.expected = (sink.next as u64 * full).min(sink.got);
        }
        let complete = sink.count == Some(sink.next);
        let ended = complete && r.finished == Time::MAX;
        if ended {
            r.finished = self.now;
            (sink.pending, sink.early) = Default::default();
        }
        // The ACK is made of the packet itself. A header of a packet that is there already misses nothing.
        let missed = packet.kind == Kind::Header && !sink.has(number);
        let asked = packet.flags & flag::WANTS != 0;
        let pull = !complete && (missed || asked);
        if pull {
            sink.pending += 1;
        }
        let here = self.ports[port as usize].nic;
        if pull && sink.pending == 1 {
            ndp.pulls[here as usize].flows.push_back(flow);
        }
        ndp.nacks += missed as u64;
        let answer = &mut self.pool[id];
        answer.kind = if missed { Kind::Nack } else { Kind::Ack };
        answer.seq = pack(number, sink.next);
        answer.size = self.setup.nic.ack_size;
        answer.dst = self.setup.flows[flow as usize].src;
        answer.tuple = answer.tuple.reversed();
        self.counts.consumed += 1;
        self.counts.created += 1;
        self.counts.acks += 1;
        if ended {
            self.ended_at(flow, packet.dst);
        }
        self.send_back(flow, here, id);
        if pull {
            self.send_pulls(here);
        }
    }

    /// Sends a control packet of a receiver, whose data came in by the NIC `here`.
    fn send_back(&mut self, flow: u32, here: u32, id: PacketId) {
        let host = self.setup.flows[flow as usize].dst;
        let nic = if self.map.of(host).len() == 1 { here } else { self.nic_of(host, flow, true) };
        self.nics[nic as usize].acks.push(&mut self.pool, id);
        self.kicks.push(self.nics[nic as usize].port);
    }

    /// Sends pulls of a host's port, one flow after the other, no faster than the link takes what they bring.
    fn send_pulls(&mut self, nic: u32) {
        while let Some(ndp) = &mut self.ndp
            && let Some(&flow) = ndp.pulls[nic as usize].flows.front()
        {
            let (pulls, sink) = (&mut ndp.pulls[nic as usize], &mut ndp.sinks[flow as usize]);
            if sink.pending == 0 {
                pulls.flows.pop_front();
                continue;
            }
            if pulls.busy > self.now {
                if !pulls.armed {
                    pulls.armed = true;
                    let at = pulls.busy;
                    let rank = self.rank(at);
                    self.events.push(Event::new(at, rank, class::PULL, nic));
                }
                return;
            }
            pulls.flows.pop_front();
            sink.pending -= 1;
            sink.pulls += 1;
            if sink.pending > 0 {
                pulls.flows.push_back(flow);
            }
            ndp.pulls_sent += 1;
            let spec = &self.setup.flows[flow as usize];
            let payload = (spec.size - sink.got).min(self.setup.nic.payload as u64) as u16;
            let table = self.ports[self.nics[nic as usize].port as usize].table as usize;
            let size = payload + self.setup.nic.header;
            pulls.busy = self.now + Time(self.tables[table * self.table_row + size as usize]);
            self.counts.created += 1;
            let id = self.pool.insert(Packet {
                flow,
                seq: pack(sink.pulls, sink.next),
                stamp: Time(sink.pulls as u64),
                next_arrival: self.now,
                next: NONE,
                next_rank: 0,
                tuple: spec.tuple.reversed(),
                dst: spec.src,
                in_port: NONE,
                size: ndp.setup.pull,
                tag: 0,
                kind: Kind::Pull,
                class: spec.class,
                flags: 0,
                reports: 0,
            });
            self.send_back(flow, nic, id);
        }
    }

    /// The link of a NIC is free for what its next pull brings.
    pub(super) fn pull_timer(&mut self, nic: u32) {
        if let Some(ndp) = &mut self.ndp {
            ndp.pulls[nic as usize].armed = false;
        }
        self.send_pulls(nic);
    }
}
