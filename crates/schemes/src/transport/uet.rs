//! The transport of Ultra Ethernet for unordered reliable messages (UE Specification 1.0, 2025).
//!
//! Packets are put where they belong in whatever order they come. A receiver answers when a packet is marked, when its sender asks for it, and
//! otherwise after some bytes: how many bytes have arrived, up to where nothing is missing, which of the 64 packets up to the one that is answered
//! have come. A switch that has no room for a packet trims it to its header, which goes ahead of data; the receiver answers that with a NACK, and the
//! packet is sent again before anything new. What nobody speaks of is sent again after a timeout.
//!
//! The sender counts what is in flight: what it sent, less what the receiver says has arrived and what was trimmed or timed out. It sends while
//! that is less than the window of its congestion control.
//!
//! Where the [edge control](crate::edge_control::rccc) asks for it, receivers hand out credits (RCCC): a sender says with every packet up to where it wants to
//! send, and the receiver gives that to its senders in turn, some packets at a time, at the pace of its link. What is left of the link goes to those that
//! want nothing at the moment, up to one largest window each.
//!
//! Trimming is the switch's ([`Overflow::Trim`]), which [`TransportDef::adjust`] turns on. Over a lossless fabric there is nothing to trim.

use super::bandwidth_delay;
use engine::{Bytes, Misfit, Time};
use fabric::Setup;
use fabric::axes::congestion_control::{Incident, Throttle, Trim};
use fabric::axes::transport::{Ground, Progress};
use fabric::axes::{Chosen, Counter, Definition, Transport, TransportDef};
use fabric::host::{PerFlow, Sender};
use fabric::id::{FlowId, PortId};
use fabric::packet::{Kind, Packet, PacketId, flag};
use fabric::setup::{AckLane, Overflow, Trimming};
use fabric::topology::Graph;
use fabric::view::{HostView, Reply};
use std::collections::{BTreeSet, VecDeque};
use throttle::{Came, Throttle as Slower};

engine::parameters! {
    /// Parameters of Ultra Ethernet's transport.
    pub struct Params {
        /// Whether switches trim packets that find their queue full. Otherwise they are dropped, or flow control keeps them from coming.
        trim: bool = true,
        /// The most that a queue of a switch holds, together with the packet that is being sent. Auto: one bandwidth-delay product of the fastest host
        /// link and the longest base round trip, in whole packets.
        queue: Option<Bytes> = None, if trim == true,
        /// Bytes that the control queue of a switch's port holds: headers, ACKs, NACKs and credits. Auto: twice the queue.
        headers: Option<Bytes> = None, if trim == true,
        /// Size of a trimmed packet.
        header: Bytes = Bytes(64), in Bytes(1)..=Bytes(1000), if trim == true,
        /// Packets are marked while more than this part of the queue waits behind them, the more the longer it is.
        mark_from: f64 = 0.2, in 0.0..=1.0, if trim == true,
        /// All packets are marked above this part.
        mark_all: f64 = 0.8, in 0.0..=1.0, if trim == true,
        /// How long a packet may be without an answer. Auto: nic.timeout if that is written, else 15us and the time in which six full queues drain;
        /// without trimming, queues count as five bandwidth-delay products.
        rto: Option<Time> = None,
        /// Bytes on the wire after which a receiver answers without being asked.
        ack_after: Bytes = Bytes(16_384), in Bytes(0)..=Bytes(1_000_000_000),
    }
}

/// Control packets that a port sends before it lets a waiting data packet go (uet-htsim).
const RATIO: u32 = 100_000;
/// Queues count as so many bandwidth-delay products where switches do not trim (uet-htsim).
const UNTRIMMED_QUEUE: u64 = 5;
/// Packets that an ACK can name.
const MAP: u64 = 64;
/// Between two control packets without credit, the time of so many bytes (uet-htsim).
const EMPTY_PULL: u64 = 1024;
/// A sender without credit asks at least once in 2 to the power of so many timeouts.
const MOST_PATIENCE: u32 = 6;
/// What senders want is told in such units (UE Specification 1.0).
const QUANTUM: u64 = 256;

impl Params {
    fn full(setup: &Setup) -> u64 {
        setup.nic.payload as u64 + setup.nic.header as u64
    }

    /// The most packets that a queue holds, the one that is being sent among them.
    fn packets(&self, setup: &Setup) -> u64 {
        let bytes = self.queue.map_or_else(|| bandwidth_delay(setup), |bytes| bytes.0);
        bytes.div_ceil(Params::full(setup)).clamp(2, 1 << 20)
    }

    fn trimming(&self, setup: &Setup) -> Trimming {
        let packets = self.packets(setup);
        let twice = 2 * packets * Params::full(setup);
        Trimming {
            queue: packets as u32 - 1,
            headers: self.headers.map_or(twice, |bytes| bytes.0),
            header: self.header.0 as u16,
            ratio: RATIO,
            returns: false,
        }
    }

    /// How long a packet may be without an answer.
    fn timeout_in(&self, setup: &Setup) -> Time {
        let queue = match self.trim {
            true => self.packets(setup) * Params::full(setup),
            false => UNTRIMMED_QUEUE * bandwidth_delay(setup),
        };
        let drained = setup.graph.hosts_rate().unwrap_or_default().time_for(6 * queue);
        self.rto.or(setup.nic.timeout).unwrap_or(Time::from_us(15) + drained)
    }
}

impl Definition for Params {
    fn name(&self) -> &'static str {
        "uet"
    }
    fn about(&self) -> &'static str {
        "Ultra Ethernet's transport: packets in any order, ACKs that say what has arrived, NACKs for trimmed packets, and timeouts for the rest."
    }
    fn source(&self) -> &'static str {
        "Ultra Ethernet Consortium, Ultra Ethernet Specification 1.0, 2025; details as in its simulator, uet-htsim"
    }
    fn control_packet(&self) -> u64 {
        64
    }
    fn check(&self) -> Result<(), Misfit> {
        if self.mark_from > self.mark_all {
            return Err(Misfit::new("mark_from", self.mark_from, "write no more than mark_all"));
        }
        for (name, size) in [("queue", self.queue), ("headers", self.headers)] {
            if let Some(size) = size
                && !(Bytes(2048)..=Bytes(1_000_000_000)).contains(&size)
            {
                return Err(Misfit::new(name, size, "write \"2048B\" to \"1GB\", or \"auto\""));
            }
        }
        match self.rto {
            Some(rto) if !(Time::from_us(1)..=Time::from_ms(1_000_000)).contains(&rto) => {
                Err(Misfit::new("rto", rto, "write a time from \"1us\" to \"1000s\", or \"auto\""))
            }
            _ => Ok(()),
        }
    }
    fn conflict(&self, with: &Chosen<'_>) -> Option<Misfit> {
        let control = with.flow_control.name();
        (self.trim && control != "none").then(|| Misfit {
            parameter: "scheme.uet.trim",
            message: format!(
                "switches that trim leave {control} nothing to do: a queue is cut before it fills the memory"
            ),
            help: "write trim = false in [scheme.uet], or flow_control = \"none\" in [scheme]".to_string(),
        })
    }
    fn remark(&self, with: &Chosen<'_>, _: &Graph) -> Option<String> {
        let control = with.congestion_control;
        let slower = control.hears_of_trims() || with.edge_control.name() == "rccc";
        (self.trim && !slower).then(|| {
            format!(
                "{} does not slow down for packets that are trimmed: their headers go ahead of data and can fill a link, as congestion_control = \"nscc\" would not let them",
                control.name()
            )
        })
    }
}

impl TransportDef for Params {
    fn build(&self, ground: &Ground<'_>) -> Box<dyn Transport> {
        let setup = ground.setup;
        let full = Params::full(setup);
        let credits = ground.needs.credits.map(|credits| Handout {
            grant: (credits.packets as u64 * setup.nic.payload as u64 / QUANTUM * QUANTUM).max(QUANTUM),
            pace: credits.pace,
            size: credits.size,
            most: (bandwidth_delay(setup) * 3 / 2).max(full),
            throttle: credits.throttle.map(|rule| match rule.every {
                Time::ZERO => Throttle { every: Time(setup.longest_rtt().0 / 2 * 3), ..rule },
                _ => rule,
            }),
        });
        let source = Source { credit: credits.map_or(0, |credits| credits.most as i64), ..Source::default() };
        Box::new(Machine {
            full: setup.nic.payload as u64,
            wire: full,
            header: setup.nic.header,
            cut: self.header.0 as u16,
            rto: self.timeout_in(setup),
            ack_after: self.ack_after.0,
            credits,
            sources: ground.per_sender(|_| source.clone()),
            sinks: ground.per_receiver(|_| Sink::default()),
            pulls: vec![Pulls::default(); ground.nics()],
            senders: vec![0; if credits.is_some() { setup.graph.nodes.len() } else { 0 }],
            counts: Counts::default(),
        })
    }
    fn adjust(&self, setup: &mut Setup) {
        if !self.trim {
            return;
        }
        let trimming = self.trimming(setup);
        let (packets, full) = (self.packets(setup), Params::full(setup));
        setup.switch.overflow = Overflow::Trim(trimming);
        setup.switch.queues = 1;
        setup.nic.ack_lane = AckLane::Control;
        let part = |part: f64| (packets as f64 * part).ceil() as u64 * full;
        for port in &mut setup.ports {
            let (min, max) = (port.part(part(self.mark_from)), port.part(part(self.mark_all)));
            if let Some(ecn) = &mut port.ecn {
                (ecn.min, ecn.max, ecn.probability) = (min, max, 1.0);
            }
        }
    }
    fn in_order(&self) -> bool {
        false
    }
    fn selective(&self) -> bool {
        true
    }
    fn drops(&self) -> bool {
        self.trim
    }
    fn own_timeout(&self) -> bool {
        true
    }
    fn patience(&self, setup: &Setup) -> Time {
        self.timeout_in(setup)
    }
    fn describe(&self, setup: &Setup) -> String {
        let rto = self.timeout_in(setup);
        match self.trim {
            true => {
                let Trimming { headers, .. } = self.trimming(setup);
                let queue = Bytes(self.packets(setup) * Params::full(setup));
                format!("timeout {rto}, queues of {queue} and {} of headers", Bytes(headers))
            }
            false => format!("timeout {rto}, nothing is trimmed"),
        }
    }
    fn ignores(&self) -> &'static [&'static str] {
        match self.trim {
            true => &[
                "switch.queues",
                "switch.egress_alpha",
                "switch.ecn_min",
                "switch.ecn_max",
                "switch.ecn_probability",
                "nic.ack_every",
                "nic.ack_lane",
                "nic.nack_interval",
            ],
            false => &["nic.ack_every", "nic.nack_interval"],
        }
    }
    fn most_packets(&self) -> u64 {
        u32::MAX as u64
    }
}

/// What became of a packet that was sent.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// Sent then, and nothing heard of it since.
    Flying(Time),
    /// Trimmed, or nothing was heard of it; to be sent again.
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
    /// Packets to send again, the first one first.
    again: BTreeSet<u32>,
    /// Bytes of message in those.
    missing: u64,
    /// How many are in that state.
    flying: u32,
    /// Bytes of message in flight. What the receiver has counted may be ahead of what is known of single packets.
    flight: i64,
    /// Bytes of message that have arrived, as the receiver counts them.
    received: u64,
    /// Bytes on the wire that it may send, where receivers hand out credits; it may send while there is any.
    credit: i64,
    /// All that it was ever given, in the receiver's count.
    given: u64,
    /// The receiver has answered: what credit there was at first is void.
    heard: bool,
    /// When something was last heard or sent.
    news: Time,
    /// It is out of credit and nothing was heard for long: the next packet goes as a header.
    asks: bool,
    /// How often it has asked because of that since it was last given credit. It waits twice as long each time: where many senders wait for
    /// one receiver, what they ask would take the link from data.
    asked: u32,
    /// Packets of which no more than such a header has gone.
    headers: Vec<u32>,
    /// It has something to send and may: one of its host's [`senders`](Machine::senders).
    active: bool,
}

impl Source {
    fn state(&mut self, packet: u32) -> Option<&mut State> {
        self.packets.get_mut(packet.checked_sub(self.first)? as usize)
    }
}

/// The receiving side of a flow.
#[derive(Clone, Debug, Default)]
struct Sink {
    /// The first packet that has not arrived.
    next: u32,
    /// Which of the later ones have.
    early: VecDeque<bool>,
    /// How many of them.
    waiting: u32,
    /// The number of packets, once the last one was there.
    count: Option<u32>,
    /// Bytes of message that are there.
    got: u64,
    /// Bytes on the wire since the last ACK.
    accepted: u64,
    /// Its sender asked for an ACK, and wants another one when nothing is missing any more.
    asked: bool,
    /// Up to where its sender wants credit, and has it.
    wanted: u64,
    given: u64,
    /// It is among those that want credit, or among those that may have some all the same.
    in_turn: bool,
    in_rest: bool,
}

impl Sink {
    fn has(&self, packet: u32) -> bool {
        packet < self.next || self.early.get((packet - self.next) as usize) == Some(&true)
    }

    /// A packet that was not there yet has come. True if it came in order.
    fn take(&mut self, packet: u32) -> bool {
        let place = (packet - self.next) as usize;
        if place >= self.early.len() {
            self.early.resize(place + 1, false);
        }
        self.early[place] = true;
        self.waiting += 1;
        while self.early.front() == Some(&true) {
            self.early.pop_front();
            self.next += 1;
            self.waiting -= 1;
        }
        place == 0
    }

    /// Which of the 64 packets up to `packet`, behind the first one that is missing, have arrived: the last one in the highest bit.
    fn map(&self, packet: u32) -> u64 {
        (0..MAP)
            .filter(|&back| packet as u64 >= back && self.has((packet as u64 - back) as u32))
            .fold(0, |map, back| map | 1 << (MAP - 1 - back))
    }
}

/// How credits are handed out.
#[derive(Clone, Copy, Debug)]
struct Handout {
    /// Bytes in one control packet.
    grant: u64,
    /// Thousandths of the link's rate.
    pace: u32,
    /// Bytes of that control packet.
    size: u16,
    /// The most that a sender may have.
    most: u64,
    /// How receivers hand out less, if they do.
    throttle: Option<Throttle>,
}

/// The credits of one port of a host.
#[derive(Clone, Debug, Default)]
struct Pulls {
    /// Flows that want credit, in turn.
    turn: VecDeque<FlowId>,
    /// Flows that want none, which may have what is left.
    rest: VecDeque<FlowId>,
    /// The link is taken until then by what was handed out.
    busy: Time,
    /// Whether a timer is set for the end of that.
    armed: bool,
    /// How much less it hands out.
    slower: Slower,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    nacks: u64,
    duplicates: u64,
    pulls: u64,
    asked: u64,
}

/// The mechanism.
struct Machine {
    /// Bytes of message in a full packet, and all its bytes.
    full: u64,
    wire: u64,
    /// Bytes of headers on a data packet, and of a packet that was trimmed.
    header: u16,
    cut: u16,
    rto: Time,
    ack_after: u64,
    credits: Option<Handout>,
    sources: PerFlow<Source>,
    sinks: PerFlow<Sink>,
    /// By NIC.
    pulls: Vec<Pulls>,
    /// By host, where receivers hand out credits: how many flows have something to send and may.
    senders: Vec<u32>,
    counts: Counts,
}

impl Machine {
    /// Bytes of message in a packet of a flow.
    fn payload(&self, size: u64, packet: u32) -> u64 {
        (size - packet as u64 * self.full).min(self.full)
    }

    /// Finds the packet that a flow sends next, if it may.
    fn take_turn(&mut self, at: &mut HostView<'_>, flow: FlowId) {
        let window = at.window(flow);
        let s = at.sender(flow);
        let source = &mut self.sources[flow.index()];
        s.next = source.again.first().map_or(s.high, |&packet| packet as u64 * self.full);
        // With nothing in flight it would hear of nothing more.
        let open = source.flying == 0 || (source.flight.max(0) as u64) < window;
        let credit = self.credits.is_none() || source.credit > 0 || source.asks;
        let active = open && credit && s.next < s.size;
        if self.credits.is_some() && active != source.active {
            source.active = active;
            let senders = &mut self.senders[at.flow(flow).src.index()];
            *senders = if active { *senders + 1 } else { *senders - 1 };
        }
        at.hold(flow, !(open && credit));
    }

    /// Up to where a sender wants to send, in the receiver's count of what it gave.
    ///
    /// Of several flows that may send none can use more than its part of its host's link, so it wants no more (uet-htsim).
    fn wanted(&self, s: &Sender, source: &Source, window: u64, most: u64, senders: u32) -> u64 {
        let on_wire = |payload: u64| payload + payload.div_ceil(self.full) * self.header as u64;
        let backlog = s.size - s.high;
        let mut wanted = on_wire(backlog) + on_wire(source.missing);
        if window < u64::MAX {
            // The window lets one packet go while less than it is in flight: that is one packet more.
            wanted = wanted.min(on_wire(window).saturating_add(2 * self.wire));
        }
        let mut more = wanted.min(most) as i64 - source.credit;
        if !source.heard && backlog > 0 {
            more = more.max(self.wire as i64);
        }
        more /= senders.max(1) as i64;
        source.given.saturating_add_signed(more).next_multiple_of(QUANTUM)
    }

    /// A packet is not in flight any more, and has to be sent again.
    fn miss(&mut self, flow: FlowId, packet: u32, payload: u64) {
        let source = &mut self.sources[flow.index()];
        if let Some(state) = source.state(packet) {
            *state = State::Missing;
        }
        source.flying -= 1;
        source.flight -= payload as i64;
        source.missing += payload;
        source.again.insert(packet);
    }

    /// A packet has arrived.
    fn land(&mut self, flow: FlowId, size: u64, packet: u32) {
        let payload = self.payload(size, packet);
        let source = &mut self.sources[flow.index()];
        match source.state(packet) {
            Some(state @ State::Flying(_)) => {
                *state = State::Acked;
                source.flying -= 1;
            }
            Some(state @ State::Missing) => {
                *state = State::Acked;
                source.again.remove(&packet);
                source.missing -= payload;
                // It was taken for lost, and its receiver has counted it.
                source.flight += payload as i64;
            }
            _ => {}
        }
    }

    /// Sees to it that a receiver's port hands credit to a flow.
    fn request(&mut self, at: &mut HostView<'_>, port: PortId, flow: FlowId) {
        let sink = &mut self.sinks[flow.index()];
        if !sink.in_turn {
            sink.in_turn = true;
            self.pulls[at.nic(port) as usize].turn.push_back(flow);
        }
        self.hand_out(at, port);
    }

    /// Hands out credits of a host's port, one flow after the other, no faster than its link takes what they bring.
    fn hand_out(&mut self, at: &mut HostView<'_>, port: PortId) {
        let Some(rule) = self.credits else { return };
        let (nic, now) = (at.nic(port) as usize, at.now());
        loop {
            let pulls = &mut self.pulls[nic];
            let wanting = !pulls.turn.is_empty();
            let Some(&flow) = pulls.turn.front().or(pulls.rest.front()) else { return };
            if pulls.busy > now {
                if !pulls.armed {
                    pulls.armed = true;
                    at.set_timer(port, pulls.busy);
                }
                return;
            }
            let sink = &mut self.sinks[flow.index()];
            _ = if wanting { pulls.turn.pop_front() } else { pulls.rest.pop_front() };
            if sink.count == Some(sink.next) {
                (sink.in_turn, sink.in_rest) = (false, false);
                continue;
            }
            let more = if wanting { rule.grant.min(sink.wanted.saturating_sub(sink.given)) } else { rule.grant };
            sink.given += more;
            if wanting && sink.wanted > sink.given {
                pulls.turn.push_back(flow);
            } else if wanting {
                sink.in_turn = false;
                if !sink.in_rest {
                    sink.in_rest = true;
                    pulls.rest.push_back(flow);
                }
            } else if sink.wanted <= sink.given && sink.given - sink.wanted < rule.most {
                pulls.rest.push_back(flow);
            } else {
                sink.in_rest = false;
            }
            let bytes = if more > 0 { more } else { EMPTY_PULL };
            let packet = at.on_wire(port, self.wire as u16).0 as u128;
            let mut time = Time((packet * bytes as u128 * 1000 / (self.wire * rule.pace as u64) as u128) as u64);
            if let Some(throttle) = rule.throttle {
                pulls.slower.advance(&throttle, now, &mut |n| at.draw(n));
                time = pulls.slower.stretch(time);
            }
            pulls.busy = now + time;
            self.counts.pulls += 1;
            let spec = *at.flow(flow);
            let pull = Packet {
                flow: flow.0,
                seq: sink.given,
                stamp: now,
                next_arrival: now,
                tuple: spec.tuple.reversed(),
                dst: spec.src.0,
                size: rule.size,
                kind: Kind::Grant,
                class: spec.class.0,
                ..Packet::BLANK
            };
            at.send(port, pull);
        }
    }
}

impl Transport for Machine {
    fn sent(&mut self, at: &mut HostView<'_>, flow: FlowId, id: PacketId, again: bool) {
        let (now, rto, window) = (at.now(), self.rto, at.window(flow));
        let data = *at.packet(id);
        let packet = (data.seq / self.full) as u32;
        let payload = (data.size - self.header) as u64;
        let s = at.sender(flow);
        let all_sent = s.high == s.size;
        if s.expires == Time::MAX {
            s.expires = now + rto;
            at.arm(flow);
        }
        let source = &mut self.sources[flow.index()];
        if source.again.remove(&packet) {
            source.missing -= payload;
        }
        match source.state(packet) {
            Some(state) => *state = State::Flying(now),
            None => source.packets.push_back(State::Flying(now)),
        }
        source.flying += 1;
        source.flight += payload as i64;
        source.news = now;
        let mut wants = again || all_sent || source.flight + 1 >= window.min(i64::MAX as u64) as i64;
        if let Some(rule) = self.credits {
            let header_only = std::mem::take(&mut source.asks);
            source.credit -= if header_only { 0 } else { data.size as i64 };
            wants |= source.credit <= 0;
            let senders = self.senders[at.flow(flow).src.index()];
            let source = &self.sources[flow.index()];
            let wanted = self.wanted(at.sender(flow), source, window, rule.most, senders);
            at.extra(id).words[0] = wanted;
            if header_only {
                // It is answered like a packet that was trimmed at its receiver.
                self.counts.asked += 1;
                // What carries nothing of the message is no data.
                let counts = at.counts();
                counts.injected = (counts.injected.0 - 1, counts.injected.1 - payload);
                if again {
                    counts.retransmitted = (counts.retransmitted.0 - 1, counts.retransmitted.1 - payload);
                } else {
                    self.sources[flow.index()].headers.push(packet);
                }
                let (cut, data) = (self.cut, at.packet_mut(id));
                data.kind = Kind::Trimmed;
                data.size = data.size.min(cut);
                data.flags |= flag::LAST_HOP;
            } else if again
                && let Some(place) = self.sources[flow.index()].headers.iter().position(|own| *own == packet)
            {
                // It goes for the first time.
                self.sources[flow.index()].headers.swap_remove(place);
                let counts = at.counts();
                counts.retransmitted = (counts.retransmitted.0 - 1, counts.retransmitted.1 - payload);
            }
        }
        if wants {
            at.packet_mut(id).flags |= flag::WANTS;
        }
        self.take_turn(at, flow);
    }

    fn data(&mut self, at: &mut HostView<'_>, port: PortId, id: PacketId) {
        let (packet, now) = (*at.packet(id), at.now());
        let (flow, number) = (FlowId(packet.flow), (packet.seq / self.full) as u32);
        let wanted = at.extra(id).words[0];
        if let Some(throttle) = self.credits.and_then(|rule| rule.throttle) {
            let slower = &mut self.pulls[at.nic(port) as usize].slower;
            slower.advance(&throttle, now, &mut |n| at.draw(n));
            slower.count(match (packet.kind, packet.flags) {
                (Kind::Trimmed, flags) if flags & flag::LAST_HOP != 0 => Came::TrimmedHere,
                (Kind::Trimmed, _) => Came::TrimmedElsewhere,
                (_, flags) if flags & flag::MARKED != 0 => Came::Marked,
                _ => Came::Whole,
            });
        }
        let (r, sink) = (at.receiver(flow), &mut self.sinks[flow.index()]);
        let (mut answer, mut early, mut ended) = (Some(Kind::Ack), false, false);
        let missed = packet.kind == Kind::Trimmed && !sink.has(number);
        if packet.kind == Kind::Data && !sink.has(number) {
            let first = sink.got == 0;
            sink.got += (packet.size - self.header) as u64;
            sink.accepted += packet.size as u64;
            if HostView::is_last(&packet) {
                sink.count = Some(number + 1);
            }
            let wants = packet.flags & flag::WANTS != 0;
            sink.asked |= wants;
            early = !sink.take(number);
            let whole = !early && sink.waiting == 0 && std::mem::take(&mut sink.asked);
            r.expected = (sink.next as u64 * self.full).min(sink.got);
            ended = sink.count == Some(sink.next);
            let due = sink.accepted >= self.ack_after || packet.flags & flag::MARKED != 0;
            if first || wants || whole || due || ended {
                sink.accepted = 0;
            } else {
                answer = None;
            }
            if ended {
                r.finished = now;
            }
        } else if missed {
            self.counts.nacks += 1;
            answer = Some(Kind::Nack);
        } else {
            // Its sender does not know that it is there.
            self.counts.duplicates += 1;
            sink.accepted = 0;
        }
        let (seq, map, got) = (r.expected, sink.map(number), sink.got);
        let complete = sink.count == Some(sink.next);
        let more = wanted > sink.wanted;
        sink.wanted = sink.wanted.max(wanted);
        at.counts().out_of_order += early as u64;
        let extra = at.extra(id);
        (extra.sack, extra.words) = (number as u64, [got, map]);
        at.reply(port, id, Reply { answer, seq, ended });
        if self.credits.is_some() && !complete && (more || missed) {
            self.request(at, port, flow);
        }
    }

    fn control(&mut self, at: &mut HostView<'_>, packet: &Packet, id: PacketId) {
        let now = at.now();
        let flow = FlowId(packet.flow);
        let size = at.sender(flow).size;
        let source = &mut self.sources[flow.index()];
        source.news = now;
        if !source.heard {
            // What it could send at first is no credit for later.
            source.heard = true;
            source.credit = source.credit.min(0);
        }
        match packet.kind {
            Kind::Ack => {
                let extra = *at.extra(id);
                let [got, map] = extra.words;
                let more = got.saturating_sub(source.received);
                source.received += more;
                source.flight -= more as i64;
                let first = source.first;
                for packet in first..packet.seq.div_ceil(self.full) as u32 {
                    self.land(flow, size, packet);
                }
                for back in (0..MAP).filter(|back| map >> (MAP - 1 - back) & 1 == 1) {
                    self.land(flow, size, (extra.sack - back.min(extra.sack)) as u32);
                }
                let source = &mut self.sources[flow.index()];
                while source.packets.front() == Some(&State::Acked) {
                    source.packets.pop_front();
                    source.first += 1;
                }
                let s = at.sender(flow);
                s.acked = s.acked.max(packet.seq);
                if s.done() {
                    *source = Source::default();
                    s.next = s.size;
                    return;
                }
            }
            Kind::Nack => {
                let number = at.extra(id).sack as u32;
                if let Some(State::Flying(_)) = source.state(number) {
                    let flight = source.flight.max(0) as u64;
                    let bytes = self.payload(size, number);
                    self.miss(flow, number, bytes);
                    let forgiven = self.credits.is_some() && packet.flags & flag::LAST_HOP != 0;
                    let rtt = now.saturating_sub(packet.stamp);
                    at.report(flow, Incident::Trimmed(Trim { bytes, flight, rtt, forgiven }));
                }
            }
            Kind::Grant => {
                let more = packet.seq.saturating_sub(source.given);
                source.given += more;
                let most = self.credits.map_or(0, |rule| rule.most as i64);
                source.credit = (source.credit + more as i64).min(most);
                if more > 0 {
                    source.asked = 0;
                    at.report(flow, Incident::Granted(more));
                }
            }
            _ => {}
        }
        self.take_turn(at, flow);
    }

    /// What was sent a timeout ago and nobody has spoken of is sent again; a sender that waits for credit asks for it.
    fn expired(&mut self, at: &mut HostView<'_>, flow: FlowId) {
        let (now, rto) = (at.now(), self.rto);
        let size = at.sender(flow).size;
        let source = &self.sources[flow.index()];
        let (mut lost, mut oldest) = (Vec::new(), None);
        for (packet, state) in (source.first..).zip(&source.packets) {
            match *state {
                State::Flying(sent) if sent + rto <= now => lost.push(packet),
                State::Flying(sent) => oldest = Some(oldest.map_or(sent, |time: Time| time.min(sent))),
                _ => {}
            }
        }
        for &packet in &lost {
            self.miss(flow, packet, self.payload(size, packet));
        }
        let source = &mut self.sources[flow.index()];
        let waits = self.credits.is_some() && source.credit <= 0 && source.flying == 0;
        let patience = Time(rto.0.saturating_mul(1 << source.asked.min(MOST_PATIENCE)));
        let silent = waits && source.news.saturating_add(patience) <= now;
        source.asked += silent as u32;
        source.asks |= silent || waits && !lost.is_empty();
        // Where credits may be all that is waited for, there is always another deadline.
        let next = oldest.map(|sent| sent + rto).or(self.credits.map(|_| now + rto));
        at.sender(flow).expires = next.unwrap_or(Time::MAX);
        at.counts().timeouts += lost.len() as u64;
        for _ in &lost {
            at.report_timeout(flow);
        }
        self.take_turn(at, flow);
    }

    /// The link of a port is free for what its next credit brings.
    fn timer(&mut self, at: &mut HostView<'_>, port: PortId) {
        self.pulls[at.nic(port) as usize].armed = false;
        self.hand_out(at, port);
    }

    fn window_changed(&mut self, at: &mut HostView<'_>, flow: FlowId) {
        self.take_turn(at, flow);
    }

    fn counts_flight(&self) -> bool {
        true
    }

    fn nacks_trimmed(&self) -> bool {
        true
    }

    fn progress(&self, flow: FlowId, sender: &Sender) -> Progress {
        let source = &self.sources[flow.index()];
        // Of a flow that is done nothing is kept.
        match sender.done() {
            true => Progress { next: sender.high, received: sender.size, flight: 0 },
            false => Progress { next: sender.high, received: source.received, flight: source.flight.max(0) as u64 },
        }
    }

    fn counters(&self) -> Vec<Counter> {
        let Counts { nacks, duplicates, pulls, asked } = self.counts;
        vec![
            Counter::sum("nacks", nacks),
            Counter::sum("duplicates", duplicates),
            Counter::sum("pulls", pulls),
            Counter::sum("pulls_asked_for", asked),
        ]
    }
}

mod throttle;

#[cfg(test)]
mod tests;
