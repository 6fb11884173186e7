//! NDP (Handley et al., SIGCOMM 2017): trimming switches, and receivers that pull.
//!
//! A sender sends a first window at line rate and from then on only what it is pulled for. A switch that has no room for
//! a data packet keeps its header, which goes ahead of data with ACKs, NACKs and pulls: the receiver learns of
//! every packet within a round trip. It answers each with an ACK or a NACK and queues a pull, and sends its pulls at
//! the pace at which its link takes full packets. Headers that find no room go back to the sender, once.
//!
//! Trimming is the switch's ([`Overflow::Trim`]), which [`TransportDef::adjust`] turns on; here is what hosts do. A sender without
//! credit is held; `Sender::next` is the start of the packet whose turn it is, be it one to send again or a new one.

use super::bandwidth_delay;
use engine::{Bytes, Misfit, Time};
use fabric::Setup;
use fabric::axes::congestion_control::{Incident, Trim};
use fabric::axes::transport::Ground;
use fabric::axes::{Chosen, Counter, Definition, Transport, TransportDef};
use fabric::host::{PerFlow, Sender};
use fabric::id::{FlowId, PortId};
use fabric::packet::{Kind, Packet, PacketId, flag};
use fabric::setup::{AckLane, AckPolicy, Overflow, Trimming};
use fabric::view::{HostView, Reply};
use std::collections::VecDeque;

engine::parameters! {
    /// Parameters of NDP.
    pub struct Params {
        /// Packets that a sender sends before it is pulled. Auto: one bandwidth-delay product of the fastest host link and
        /// the longest base round trip, and one more because a pull follows an ACK.
        window: Option<u32> = None,
        /// Full packets that a queue of a switch holds; what finds it full is trimmed.
        queue: u32 = 8,
        /// Bytes that the control queue of a switch's port holds: headers, ACKs, NACKs and pulls. Auto: one bandwidth-delay
        /// product.
        headers: Option<Bytes> = None,
        /// Size of a trimmed packet. Auto: 64B, or the NIC's headers if they are longer.
        header: Option<Bytes> = None,
        /// Size of a pull.
        pull: Bytes = Bytes(64),
        /// Control packets that a port sends before it lets a waiting data packet go.
        ratio: u32 = 10,
    }
}

/// The least room for control packets: a few of the largest.
const LEAST_HEADERS: Bytes = Bytes(2048);
/// The longest first window, in packets.
const LONGEST_WINDOW: u32 = 1 << 24;

impl Params {
    /// Packets that a sender sends before it is pulled.
    fn first_window(&self, setup: &Setup) -> u32 {
        let full = setup.nic.payload as u64 + setup.nic.header as u64;
        let product = bandwidth_delay(setup).div_ceil(full).saturating_add(1);
        self.window.unwrap_or(product.min(LONGEST_WINDOW as u64) as u32)
    }

    fn trimming(&self, setup: &Setup) -> Trimming {
        Trimming {
            queue: self.queue,
            headers: self.headers.map_or_else(|| bandwidth_delay(setup).max(LEAST_HEADERS.0), |bytes| bytes.0),
            header: self.header.map_or(setup.nic.header.max(64), |bytes| bytes.0 as u16),
            ratio: self.ratio,
            returns: true,
        }
    }
}

impl Definition for Params {
    fn name(&self) -> &'static str {
        "ndp"
    }
    fn about(&self) -> &'static str {
        "NDP: senders start at line rate, switches trim what finds a short queue full to its header, and receivers pull packet by packet \
         at the pace of their link."
    }
    fn needs_size(&self) -> bool {
        true
    }
    fn source(&self) -> &'static str {
        "M. Handley et al., Re-architecting Datacenter Networks and Stacks for Low Latency and High Performance, SIGCOMM 2017"
    }
    fn control_packet(&self) -> u64 {
        self.pull.0
    }
    fn check(&self) -> Result<(), Misfit> {
        if let Some(window) = self.window
            && !(1..=LONGEST_WINDOW).contains(&window)
        {
            return Err(Misfit::new("window", window, format!("write 1 to {LONGEST_WINDOW}, or \"auto\"")));
        }
        for (name, value) in [("queue", self.queue), ("ratio", self.ratio)] {
            if !(1..=1_000_000).contains(&value) {
                return Err(Misfit::new(name, value, "write 1 to 1000000"));
            }
        }
        if let Some(headers) = self.headers
            && !(LEAST_HEADERS..=Bytes(1_000_000_000)).contains(&headers)
        {
            return Err(Misfit::new("headers", headers, format!("write \"{LEAST_HEADERS}\" to \"1GB\", or \"auto\"")));
        }
        for (name, size) in [("header", self.header), ("pull", Some(self.pull))] {
            if let Some(size) = size
                && !(1..=1000).contains(&size.0)
            {
                return Err(Misfit::new(name, size, "write a size from \"1B\" to \"1000B\""));
            }
        }
        Ok(())
    }
    fn conflict(&self, with: &Chosen<'_>) -> Option<Misfit> {
        let others = [
            ("scheme.flow_control", "flow_control", with.flow_control.name()),
            ("scheme.congestion_control", "congestion_control", with.congestion_control.name()),
            ("scheme.edge_control", "edge_control", with.edge_control.name()),
            ("scheme.window", "window", if with.window { "a window" } else { "none" }),
        ];
        let (parameter, axis, name) = others.into_iter().find(|(_, _, name)| *name != "none")?;
        Some(Misfit {
            parameter,
            message: format!("{} is all the control there is: {name} does not go with it", self.name()),
            help: format!("write {axis} = \"none\" in [scheme], or choose another transport"),
        })
    }
}

impl TransportDef for Params {
    fn build(&self, ground: &Ground<'_>) -> Box<dyn Transport> {
        let source = Source { credit: self.first_window(ground.setup), ..Source::default() };
        Box::new(Machine {
            full: ground.setup.nic.payload as u64,
            header: ground.setup.nic.header,
            pull: self.pull.0 as u16,
            timeout: ground.setup.nic.timeout,
            sources: ground.per_sender(|_| source.clone()),
            sinks: ground.per_receiver(|_| Sink::default()),
            pulls: vec![Pulls::default(); ground.nics()],
            nacks: 0,
            pulls_sent: 0,
        })
    }
    fn adjust(&self, setup: &mut Setup) {
        setup.switch.overflow = Overflow::Trim(self.trimming(setup));
        setup.switch.queues = 1;
        let nic = &mut setup.nic;
        nic.acks = AckPolicy::Every(1);
        nic.ack_lane = AckLane::Control;
        nic.timeout = nic.timeout.or(self.timeout());
    }
    fn in_order(&self) -> bool {
        false
    }
    fn drops(&self) -> bool {
        true
    }
    fn timeout(&self) -> Option<Time> {
        // The default of its authors' simulator, as the SFC paper has it (App. B.4).
        Some(Time::from_ms(50))
    }
    fn describe(&self, setup: &Setup) -> String {
        let timeout = setup.nic.timeout.map_or("none".into(), |timeout| timeout.to_string());
        let (window, Trimming { queue, headers, .. }) = (self.first_window(setup), self.trimming(setup));
        let headers = Bytes(headers);
        format!("timeout {timeout}, first window {window} packets, queues of {queue} packets and {headers} of headers")
    }
    fn ignores(&self) -> &'static [&'static str] {
        &["switch.queues", "switch.egress_alpha", "nic.ack_every", "nic.ack_lane", "nic.nack_interval"]
    }
    fn most_packets(&self) -> u64 {
        u32::MAX as u64
    }
    fn slow_receivers(&self) -> bool {
        false
    }
}

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
#[derive(Clone, Debug, Default)]
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
#[derive(Clone, Debug, Default)]
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
    flows: VecDeque<FlowId>,
    /// The link is taken until then by what was pulled.
    busy: Time,
    /// Whether a timer is set for the end of that.
    armed: bool,
}

/// Two numbers in a packet's word.
fn pack(high: u32, low: u32) -> u64 {
    (high as u64) << 32 | low as u64
}

fn unpack(word: u64) -> (u32, u32) {
    ((word >> 32) as u32, word as u32)
}

/// The mechanism.
struct Machine {
    /// Bytes of message in a full packet.
    full: u64,
    /// Bytes of headers on a data packet.
    header: u16,
    /// Bytes of a pull.
    pull: u16,
    timeout: Option<Time>,
    sources: PerFlow<Source>,
    sinks: PerFlow<Sink>,
    /// By NIC.
    pulls: Vec<Pulls>,
    nacks: u64,
    pulls_sent: u64,
}

impl Machine {
    /// Packets of a flow that were never sent.
    fn unsent(&self, s: &Sender) -> u32 {
        (s.size - s.high).div_ceil(self.full) as u32
    }

    /// Finds the packet that a flow sends next, if it may.
    fn take_turn(&mut self, at: &mut HostView<'_>, flow: FlowId) {
        let s = at.sender(flow);
        let unsent = self.unsent(s);
        let source = &mut self.sources[flow.index()];
        let again = source.repeat();
        // It knows of nothing in flight that would bring a pull: the receiver does not wait for it.
        if source.credit == 0 && source.expected <= 0 && source.flying == 0 {
            source.credit = (source.again.len() as u32 + unsent).min(1);
        }
        s.next = again.map_or(s.high, |packet| packet as u64 * self.full);
        at.hold(flow, source.credit == 0);
    }

    /// Sends pulls of a host's port, one flow after the other, no faster than the link takes what they bring.
    fn send_pulls(&mut self, at: &mut HostView<'_>, port: PortId) {
        let (nic, now) = (at.nic(port) as usize, at.now());
        while let Some(&flow) = self.pulls[nic].flows.front() {
            let (pulls, sink) = (&mut self.pulls[nic], &mut self.sinks[flow.index()]);
            if sink.pending == 0 {
                pulls.flows.pop_front();
                continue;
            }
            if pulls.busy > now {
                if !pulls.armed {
                    pulls.armed = true;
                    at.set_timer(port, pulls.busy);
                }
                return;
            }
            pulls.flows.pop_front();
            sink.pending -= 1;
            sink.pulls += 1;
            if sink.pending > 0 {
                pulls.flows.push_back(flow);
            }
            self.pulls_sent += 1;
            let spec = *at.flow(flow);
            let payload = (spec.size - sink.got).min(self.full) as u16;
            pulls.busy = now + at.on_wire(port, payload + self.header);
            let pull = Packet {
                flow: flow.0,
                seq: pack(sink.pulls, sink.next),
                stamp: Time(sink.pulls as u64),
                next_arrival: now,
                tuple: spec.tuple.reversed(),
                dst: spec.src.0,
                size: self.pull,
                kind: Kind::Grant,
                class: spec.class.0,
                ..Packet::BLANK
            };
            at.send(port, pull);
        }
    }
}

impl Transport for Machine {
    fn sent(&mut self, at: &mut HostView<'_>, flow: FlowId, id: PacketId, _: bool) {
        let now = at.now();
        let packet = (at.packet(id).seq / self.full) as u32;
        let s = at.sender(flow);
        let unsent = self.unsent(s);
        if let (Some(timeout), Time::MAX) = (self.timeout, s.expires) {
            s.expires = now + timeout;
            at.arm(flow);
        }
        let source = &mut self.sources[flow.index()];
        if source.first == 0 && source.packets.is_empty() {
            // What a message leaves of its first window is no credit for later.
            source.credit = source.credit.min(unsent + 1);
        }
        if source.again.front() == Some(&packet) {
            source.again.pop_front();
        }
        match source.state(packet) {
            Some(state) => *state = State::Flying(now),
            None => source.packets.push_back(State::Flying(now)),
        }
        source.flying += 1;
        source.credit -= 1;
        let data = at.packet_mut(id);
        // The paths are taken in turn (§3.1.1), also by what is sent again.
        data.stamp = Time(source.sent as u64);
        source.sent += 1;
        // Nothing is pulled that is not there to be sent (App. B.4 of the SFC paper has byte-level credits for that).
        let more = source.again.len() as i64 + unsent as i64;
        if more > source.credit as i64 + source.expected as i64 {
            source.expected += 1;
            data.flags |= flag::WANTS;
        }
        self.take_turn(at, flow);
    }

    fn data(&mut self, at: &mut HostView<'_>, port: PortId, id: PacketId) {
        let (packet, now) = (*at.packet(id), at.now());
        let (flow, number) = (FlowId(packet.flow), (packet.seq / self.full) as u32);
        let (r, sink) = (at.receiver(flow), &mut self.sinks[flow.index()]);
        let mut early = false;
        if packet.kind == Kind::Data {
            early = number > sink.next;
            if HostView::is_last(&packet) {
                sink.count = Some(number + 1);
            }
            if !sink.has(number) {
                sink.got += (packet.size - self.header) as u64;
                sink.take(number);
            }
            r.expected = (sink.next as u64 * self.full).min(sink.got);
        }
        let complete = sink.count == Some(sink.next);
        let ended = complete && r.finished == Time::MAX;
        if ended {
            r.finished = now;
            (sink.pending, sink.early) = Default::default();
        }
        // A header of a packet that is there already misses nothing.
        let missed = packet.kind == Kind::Trimmed && !sink.has(number);
        let asked = packet.flags & flag::WANTS != 0;
        let pull = !complete && (missed || asked);
        if pull {
            sink.pending += 1;
        }
        if pull && sink.pending == 1 {
            self.pulls[at.nic(port) as usize].flows.push_back(flow);
        }
        self.nacks += missed as u64;
        at.counts().out_of_order += early as u64;
        let answer = Some(if missed { Kind::Nack } else { Kind::Ack });
        at.reply(port, id, Reply { answer, seq: pack(number, sink.next), ended });
        if pull {
            self.send_pulls(at, port);
        }
    }

    fn control(&mut self, at: &mut HostView<'_>, packet: &Packet, _: PacketId) {
        let now = at.now();
        let flow = FlowId(packet.flow);
        let asked = packet.flags & flag::WANTS != 0;
        let (number, mut arrived) = unpack(packet.seq);
        let (s, source) = (at.sender(flow), &mut self.sources[flow.index()]);
        let mut incident = None;
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
                incident = Some(Incident::Trimmed(Trim { bytes: self.full, ..Trim::default() }));
            }
            Kind::Grant => {
                // Numbers make up for pulls that were lost or overtaken.
                let more = number.saturating_sub(source.pulled);
                source.pulled += more;
                source.expected -= more as i32;
                source.credit += more;
                incident = (more > 0).then_some(Incident::Granted(more as u64 * self.full));
            }
            _ => {
                arrived = 0;
                source.fates.1 += 1;
                source.expected -= asked as i32;
                let number = (packet.seq / self.full) as u32;
                if source.land(number, State::Missing) {
                    source.again.push_front(number);
                    // Generally it waits for a pull, so as not to repeat the incast. If at least a quarter of its packets
                    // arrive, it was a bad path (htsim's rule).
                    let (good, bad) = source.fates;
                    source.credit += (good + bad < good.saturating_mul(4)) as u32;
                }
                incident = Some(Incident::Trimmed(Trim { bytes: self.full, ..Trim::default() }));
            }
        }
        source.heard = now;
        source.arrived(arrived);
        s.acked = (source.first as u64 * self.full).min(s.size);
        if s.done() {
            (source.packets, source.again) = Default::default();
            s.next = s.size;
            return;
        }
        self.take_turn(at, flow);
        if let Some(incident) = incident {
            at.report(flow, incident);
        }
    }

    /// What was sent a timeout ago is lost, and if nothing is in flight, so are the pulls.
    fn expired(&mut self, at: &mut HostView<'_>, flow: FlowId) {
        let (now, timeout) = (at.now(), self.timeout.unwrap_or_default());
        let source = &mut self.sources[flow.index()];
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
        let failed = lost > 0 || silent;
        at.counts().timeouts += failed as u64;
        at.sender(flow).expires = oldest + timeout;
        self.take_turn(at, flow);
        if failed {
            at.report_timeout(flow);
        }
    }

    /// The link of a port is free for what its next pull brings.
    fn timer(&mut self, at: &mut HostView<'_>, port: PortId) {
        self.pulls[at.nic(port) as usize].armed = false;
        self.send_pulls(at, port);
    }

    fn counters(&self) -> Vec<Counter> {
        vec![Counter::sum("pulls", self.pulls_sent), Counter::sum("nacks", self.nacks)]
    }
}

#[cfg(test)]
mod tests;
