//! In-order flow deflection (Blitz, §2): a switch whose output is congested sends a *flow* another way, over PFC.
//!
//! How order is kept. All packets of a flow that are under way lie on one path at any time. A switch may therefore choose freely for
//! the first packet of a message. Later it may change its mind only when all that it sent the old way has reached the *last switch*, where all
//! ways to a host meet in one queue. To learn of that it flags one more packet to go the old way (it *asks*), keeps those behind it in a
//! *pen*, and waits for the answer: the last switch answers a flagged packet, and every switch that forwarded it passes the answer back to
//! where the packet came from. An answer that does not come in time means the old way: that is always right.
//!
//! How nothing waits in a circle. A packet's class rises with each deflection: by two onto another shortest way, by one for
//! a hop off the shortest ways and by one more after it. Within a class packets follow shortest ways only, and those in a pen wait for
//! packets further down the same way. So the waits of one class are those of PFC on shortest ways, and waits between classes go up.
//! A packet with no deflection left takes the way routing has for it. See docs/blitz.md.

use super::{Choice, Controls, Report, check_frame, pfc, run_with};
use engine::{Bytes, Misfit, Time};
use fabric::deadlock::{At, Lanes, Waits};
use fabric::network::Core;
use fabric::packet::{Kind as PacketKind, Packet, PacketId, flag};
use fabric::routing::PortMap;
use fabric::scheme::{Counter, FlowControl, Visit};
use fabric::topology::Kind;
use fabric::{Outcome, Setup};
use pfc::Pfc;
use std::collections::BTreeMap;

engine::parameters! {
    /// Parameters of in-order flow deflection.
    pub struct Params {
        /// An output with more than this many bytes waiting is congested. Auto: half of where its marks begin, or 50 KB.
        congested: Option<Bytes> = None,
        /// Flows are deflected to outputs with at most this many bytes waiting. Auto: a quarter of what congests the output they leave.
        clear: Option<Bytes> = None,
        /// Deflect also off the shortest ways where the output has this many times as much waiting and no other shortest way is
        /// clear; 0 for never.
        detours: u32 = 4,
        /// The most deflections of a packet.
        deflections: u8 = 3,
        /// Flows that a switch can remember to have sent another way.
        flows: u32 = 1024,
        /// Answers that a switch can owe or wait for.
        asks: u32 = 256,
        /// Flows of one output and class that can wait for an answer at a time. One: what its leaving does shows before the next leaves.
        pens: u8 = 1,
        /// How long a flow waits for an answer before it goes on the old way.
        patience: Time = Time::from_us(200),
        /// When the table is full, flows of which nothing was seen for this long are forgotten.
        forget: Time = Time::from_ms(10),
        /// Size of an answer, which goes from switch to switch.
        answer: Bytes = Bytes(64),
    }
}

impl Choice for Params {
    fn name(&self) -> &'static str {
        "iofd"
    }
    fn about(&self) -> &'static str {
        "In-order flow deflection over PFC: a switch sends flows around a congested output, a few times at most, and keeps their packets in \
         order. Lossless."
    }
    fn needs_headroom(&self) -> bool {
        true
    }
    fn check(&self) -> Result<(), Misfit> {
        if self.deflections > 3 {
            return Err(Misfit::new("deflections", self.deflections, "write 0 to 3"));
        }
        if !(1..=8).contains(&self.pens) {
            return Err(Misfit::new("pens", self.pens, "write 1 to 8"));
        }
        for (name, count) in [("flows", self.flows), ("asks", self.asks), ("detours", self.detours)] {
            if count > 1 << 24 {
                return Err(Misfit::new(name, count, "write at most 16777216"));
            }
        }
        for (name, time) in [("patience", self.patience), ("forget", self.forget)] {
            if !(Time::from_ns(1)..=Time::from_ms(1_000_000)).contains(&time) {
                return Err(Misfit::new(name, time, "write a time from \"1ns\" to \"1000s\""));
            }
        }
        check_frame("answer", self.answer)
    }
    fn frame_size(&self) -> u64 {
        // A pause may have to wait for an answer that is being sent.
        self.answer.0.max(pfc::Params::default().frame.0)
    }
    fn queues(&self) -> Option<u32> {
        Some(1 + self.pens as u32)
    }
    fn channels(&self) -> u8 {
        2 * self.deflections + 1
    }
    fn waits(&self, _: &Setup) -> Waits {
        Waits::Lanes(Box::new(Rising { deflections: self.deflections, detours: self.detours > 0 }))
    }
    fn stops_for_hosts(&self) -> bool {
        true
    }
    fn switch_state(&self, ports: u64, classes: u64) -> u64 {
        // A flow that goes its own way: its name in eight bytes, ways and times in eight more; an answer awaited: the same.
        (self.flows as u64 + self.asks as u64) * 16 + pfc::Params::default().switch_state(ports, classes)
    }
    fn pause_in(&self, frame: &Packet) -> Option<(u8, bool)> {
        (frame.seq < ANSWER).then_some((frame.flow as u8, frame.seq == 1))
    }
    fn run(&self, setup: Setup, promised: bool, control: &Controls<'_>, report: &mut Report<'_>) -> Outcome {
        let limit = pfc::pause_limit(&setup.graph);
        let pfc = || Pfc::new(&pfc::Params::default(), limit, promised);
        run_with(|setup| Iofd::new(self, setup, pfc()), setup, control, report)
    }
}

/// A way out of a switch: a port, and the channel that packets have from there on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Way {
    port: u32,
    channel: u8,
}

/// The channel of packets that came in `channel` and go on by a shortest way.
fn onward(channel: u8) -> u8 {
    channel.next_multiple_of(2)
}

/// How often a packet of that channel was deflected.
fn deflections(channel: u8) -> u8 {
    channel.div_ceil(2)
}

/// The channels, for the analysis of deadlocks. What waits in a pen is not counted: it goes on after `patience` at the latest.
struct Rising {
    deflections: u8,
    detours: bool,
}

impl Lanes for Rising {
    fn count(&self) -> u8 {
        2 * self.deflections + 1
    }

    fn next(&self, at: &At<'_>, go: &mut dyn FnMut(u32, u8)) {
        let Some((came, channel)) = at.from else { return at.ways.iter().for_each(|&port| go(port, 0)) };
        let straight = onward(channel);
        at.ways.iter().for_each(|&port| go(port, straight));
        if deflections(channel) >= self.deflections {
            return;
        }
        let shortest = at.routing.next_hops(at.node, at.host);
        shortest.iter().for_each(|&port| go(port, straight + 2));
        let to_host = |port: u32| {
            let far = at.map.node[at.map.peer[port as usize] as usize];
            at.graph.nodes[far as usize].kind == Kind::Host
        };
        let detours = at.map.of(at.node).filter(|&port| {
            self.detours && port != at.map.peer[came as usize] && !to_host(port) && !shortest.contains(&port)
        });
        detours.for_each(|port| go(port, straight + 1));
    }
}

/// A flow, in one of its channels, that goes another way than routing has it, or is about to.
#[derive(Clone, Debug)]
struct Entry {
    way: Way,
    /// Its last packet that came by was sent then.
    last: Time,
    seen: Time,
    wait: Option<Wait>,
}

/// A flow that waits for an answer.
#[derive(Clone, Copy, Debug)]
struct Wait {
    /// When the packet that asks was sent.
    stamp: Time,
    /// The queue of the old port where the flow's packets are kept.
    pen: u32,
    /// How congested the old port was.
    urgency: Urgency,
}

/// How far from the shortest ways a flow may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Urgency {
    /// Onto another of them.
    Shortest,
    /// To any neighbour that helps.
    Detour,
}

/// How a packet came to a switch, and where routing would have it go.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    in_port: u32,
    channel: u8,
    chosen: u32,
}

/// What a switch does with an answer.
#[derive(Clone, Copy, Debug)]
struct Ask {
    /// The port to pass it on by, if another switch asked.
    back: Option<u32>,
    /// The channel in which the flow came, if this switch asked.
    own: Option<u8>,
    at: Time,
}

#[derive(Clone, Debug, Default)]
struct Switch {
    /// By flow and the channel it comes in.
    flows: BTreeMap<(u32, u8), Entry>,
    /// By flow and when its packet was sent; several if the packet came by more than once.
    asks: BTreeMap<(u32, Time), Vec<Ask>>,
    asked: u32,
    /// Waits by timer: switch, flow, channel and stamp.
    waits: Vec<(u32, u32, u8, Time)>,
    /// Places among them that are free.
    idle: Vec<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    deflections: u64,
    most: u8,
    flows: u64,
    table_full: u64,
    table_peak: u64,
    asks: u64,
    asks_full: u64,
    pens_full: u64,
    moves: u64,
    stays: u64,
    late: u64,
    held: u64,
    forgotten: u64,
}

/// The mechanism.
pub struct Iofd {
    params: Params,
    pfc: Pfc,
    /// Classes of the scenario.
    classes: u8,
    /// By port: bytes waiting that congest it, and that leave it clear.
    marks: Vec<(u64, u64)>,
    /// By port: the flow that last joined a queue there, and the bytes it brought since any other did.
    tails: Vec<(u32, u64)>,
    /// By port: leads to a host.
    to_host: Vec<bool>,
    /// By node: has a single link.
    single: Vec<bool>,
    switches: Vec<Switch>,
    /// By port and channel-class: which pens are taken, a bit each.
    pens: Vec<u8>,
    /// The queue for the packet at hand, as `way` decided.
    queue: u32,
    tally: Tally,
}

/// Timers of waits are told from PFC's by this bit.
const WAIT: u32 = 1 << 31;
/// Words of frames below this are PFC's.
const ANSWER: u64 = 2;

impl Iofd {
    fn new(params: &Params, setup: &Setup, pfc: Pfc) -> Iofd {
        let map = PortMap::new(&setup.graph);
        let marks = setup.ports.iter().map(|port| {
            let begin = port.ecn.map_or(100_000, |ecn| ecn.min);
            let congested = params.congested.map_or(begin / 2, |bytes| bytes.0);
            (congested, params.clear.map_or(congested / 4, |bytes| bytes.0))
        });
        let nodes = &setup.graph.nodes;
        Iofd {
            classes: setup.classes / params.channels(),
            marks: marks.collect(),
            tails: vec![(u32::MAX, 0); map.count()],
            to_host: map.peer.iter().map(|&p| nodes[map.node[p as usize] as usize].kind == Kind::Host).collect(),
            single: (0..nodes.len() as u32).map(|node| map.of(node).len() == 1).collect(),
            switches: vec![Switch::default(); nodes.len()],
            pens: vec![0; map.count() * setup.classes as usize],
            queue: 0,
            tally: Tally::default(),
            params: params.clone(),
            pfc,
        }
    }

    /// The number of the class that a channel of a scenario's class is.
    fn class(&self, base: u8, channel: u8) -> u8 {
        channel * self.classes + base
    }
    fn channel(&self, class: u8) -> u8 {
        class / self.classes
    }
    /// The first queue of a class: the one that is not a pen.
    fn lane(&self, class: u8) -> u32 {
        class as u32 * (1 + self.params.pens as u32)
    }

    /// How far from the shortest ways a flow may go to get around an output. What waits there of the flow itself does not
    /// count: it would only take that along.
    fn urgency(&self, core: &Core, port: u32, flow: u32) -> Option<Urgency> {
        let tail = self.tails[port as usize];
        let own = if tail.0 == flow { tail.1 } else { 0 };
        let others = core.port(port).queued.saturating_sub(own);
        let detours = self.params.detours as u64;
        match self.marks[port as usize].0 {
            limit if detours > 0 && others > detours * limit => Some(Urgency::Detour),
            limit if others > limit => Some(Urgency::Shortest),
            _ => None,
        }
    }

    /// A better way than `now` for a packet that came in by `in_port` in `channel`.
    fn better(&self, core: &Core, id: PacketId, by: Arrival, now: Way, urgency: Urgency) -> Option<Way> {
        let Arrival { in_port, channel, chosen } = by;
        if deflections(channel) >= self.params.deflections {
            return None;
        }
        let packet = core.packet(id);
        let (node, base) = (core.port(in_port).node, packet.class % self.classes);
        let clear = self.marks[now.port as usize].1;
        let open = |way: &Way| {
            let port = core.port(way.port);
            let paused = port.paused >> self.class(base, way.channel) & 1 == 1;
            way.port != now.port && port.up && !paused && port.queued <= clear
        };
        // Back to where routing has it costs no deflection.
        let shortest = core.ways(node, packet.dst).iter().map(|&port| match port == chosen {
            true => Way { port, channel: onward(channel) },
            false => Way { port, channel: onward(channel) + 2 },
        });
        let least = |way: &Way| (core.port(way.port).queued, way.channel, way.port);
        let found = shortest.filter(open).min_by_key(least);
        if found.is_some() || urgency == Urgency::Shortest {
            return found;
        }
        // A neighbour helps if it is not where the packet comes from and would not send it back here.
        let ways = core.ways(node, packet.dst);
        let helps = |way: &Way| {
            let neighbour = core.port(core.port(way.port).peer).node;
            let next = core.routed(neighbour, id);
            way.port != in_port
                && !self.to_host[way.port as usize]
                && !ways.contains(&way.port)
                && next.is_some_and(|next| core.port(core.port(next).peer).node != node)
        };
        let others = core.ports_of(node).map(|port| Way { port, channel: onward(channel) + 1 });
        others.filter(|way| open(way) && helps(way)).min_by_key(least)
    }

    /// Room in a switch's table of flows.
    fn room(&mut self, node: u32, now: Time) -> bool {
        let (limit, forget) = (self.params.flows as usize, self.params.forget);
        let flows = &mut self.switches[node as usize].flows;
        if flows.len() >= limit {
            let before = flows.len();
            flows.retain(|_, entry| entry.wait.is_some() || entry.seen + forget > now);
            self.tally.forgotten += (before - flows.len()) as u64;
        }
        let full = flows.len() >= limit;
        self.tally.table_full += full as u64;
        !full
    }

    /// Notes that the answer to a packet is awaited. False if there is no room.
    fn note(&mut self, node: u32, packet: &Packet, ask: Ask) -> bool {
        let (limit, patience) = (self.params.asks, self.params.patience);
        let switch = &mut self.switches[node as usize];
        if switch.asked >= limit {
            // What has not been answered for so long was lost.
            switch.asks.retain(|_, asks| asks.iter().any(|a| a.at + Time(4 * patience.0) > ask.at));
            switch.asked = switch.asks.values().map(|asks| asks.len() as u32).sum();
        }
        if switch.asked >= limit {
            self.tally.asks_full += 1;
            return false;
        }
        switch.asked += 1;
        switch.asks.entry((packet.flow, packet.stamp)).or_default().push(ask);
        true
    }

    /// A pen of a port and class that nobody has.
    fn pen(&mut self, core: &mut Core, port: u32, class: u8) -> Option<u32> {
        let taken = &mut self.pens[port as usize * core.classes() as usize + class as usize];
        let free = (!*taken).trailing_zeros();
        if free >= self.params.pens as u32 {
            self.tally.pens_full += 1;
            return None;
        }
        *taken |= 1 << free;
        let queue = self.lane(class) + 1 + free;
        core.hold_queue(port, queue, true);
        Some(queue)
    }

    fn free_pen(&mut self, core: &Core, port: u32, pen: u32) {
        let each = 1 + self.params.pens as u32;
        let (class, place) = (pen / each, pen % each - 1);
        self.pens[port as usize * core.classes() as usize + class as usize] &= !(1 << place);
    }

    /// A flow waits no longer: what is in its pen goes its way.
    fn release(&mut self, core: &mut Core, flow: u32, old: Way, pen: u32, way: Way) {
        let base = core.flow_class(flow);
        let class = self.class(base, way.channel);
        let bytes = core.queue_bytes(old.port, pen);
        let tail = &mut self.tails[way.port as usize];
        if bytes > 0 && way.port != old.port {
            *tail = (flow, bytes + if tail.0 == flow { tail.1 } else { 0 });
        }
        core.shift((old.port, pen), (way.port, self.lane(class)));
        self.free_pen(core, old.port, pen);
    }

    /// An answer is here: nothing of the flow is under way any more but what waits here.
    fn answered(&mut self, core: &mut Core, node: u32, flow: u32, stamp: Time, channel: u8) {
        let Some(entry) = self.switches[node as usize].flows.get(&(flow, channel)) else { return };
        let old = entry.way;
        let Some(wait) = entry.wait else {
            // The last packet of the message has arrived, and nothing came after it.
            if entry.last == stamp {
                self.switches[node as usize].flows.remove(&(flow, channel));
            }
            return;
        };
        if wait.stamp != stamp {
            return;
        }
        // What was clear when the flow asked may no longer be. That its old way is shorter now means little: it was kept from it.
        let first = core.head(old.port, wait.pen);
        let target = first.and_then(|id| {
            let by = Arrival { in_port: core.packet(id).in_port, channel, chosen: core.routed(node, id)? };
            Some((self.better(core, id, by, old, wait.urgency).unwrap_or(old), by.chosen))
        });
        let (way, chosen) = target.unwrap_or((old, old.port));
        if way == old {
            self.tally.stays += 1;
        } else {
            self.tally.moves += 1;
            self.count_flow(way, channel);
        }
        self.release(core, flow, old, wait.pen, way);
        self.settle(node, (flow, channel), way, chosen);
    }

    /// The entry of a flow that waits no longer.
    fn settle(&mut self, node: u32, key: (u32, u8), way: Way, chosen: u32) {
        let flows = &mut self.switches[node as usize].flows;
        if way == (Way { port: chosen, channel: onward(key.1) }) {
            flows.remove(&key);
        } else if let Some(entry) = flows.get_mut(&key) {
            (entry.way, entry.wait) = (way, None);
        }
    }

    fn count_flow(&mut self, way: Way, channel: u8) {
        self.tally.flows += (way.channel > onward(channel)) as u64;
    }

    /// A flow starts to wait: sets its alarm.
    fn alarm(&mut self, core: &mut Core, wait: (u32, u32, u8, Time)) {
        let (node, nodes) = (wait.0, self.switches.len() as u32);
        let switch = &mut self.switches[node as usize];
        let place = switch.idle.pop().unwrap_or_else(|| {
            switch.waits.push(wait);
            switch.waits.len() as u32 - 1
        });
        switch.waits[place as usize] = wait;
        // The number must not depend on what other switches do.
        core.set_timer(core.now() + self.params.patience, WAIT | (place * nodes + node));
    }
}

impl FlowControl for Iofd {
    fn lossless(&self) -> bool {
        self.pfc.lossless()
    }

    fn way(&mut self, core: &mut Core, in_port: u32, id: PacketId, chosen: u32) -> u32 {
        let packet = *core.packet(id);
        let (node, now) = (core.port(in_port).node, core.now());
        let (base, channel) = (packet.class % self.classes, self.channel(packet.class));
        // At the last switch all channels come together.
        if self.to_host[chosen as usize] {
            self.queue = self.lane(base);
            return chosen;
        }
        let default = Way { port: chosen, channel: onward(channel) };
        let key = (packet.flow, channel);
        let mut entry = self.switches[node as usize].flows.get(&key).cloned();
        let (mut way, wait) = entry.as_ref().map_or((default, None), |entry| (entry.way, entry.wait));
        let mut own = None;
        if wait.is_none()
            && self.single[packet.dst as usize]
            && (entry.is_some() || packet.flags & flag::FRESH != 0 || packet.flags & flag::LAST == 0)
            && let Some(urgency) = self.urgency(core, way.port, packet.flow)
            && let Some(better) = self.better(core, id, Arrival { in_port, channel, chosen }, way, urgency)
        {
            if entry.is_none() && packet.flags & flag::FRESH != 0 {
                // Nothing of the flow is anywhere: it may go any way.
                if self.room(node, now) {
                    way = better;
                    self.count_flow(way, channel);
                    let new = Entry { way, last: packet.stamp, seen: now, wait: None };
                    self.switches[node as usize].flows.insert(key, new.clone());
                    entry = Some(new);
                }
            } else if packet.flags & flag::LAST == 0 && (entry.is_some() || self.room(node, now)) {
                let old = self.class(base, way.channel);
                if let Some(pen) = self.pen(core, way.port, old) {
                    own = Some((Wait { stamp: packet.stamp, pen, urgency }, way));
                }
            }
        }
        // Of a message's last packet the switch wants to hear so that it can forget the flow.
        let ends = packet.flags & flag::LAST != 0 && entry.is_some();
        let passes = packet.flags & flag::ASKS != 0;
        if own.is_some() || ends || passes {
            let back = passes.then_some(in_port);
            let mine = (own.is_some() || ends).then_some(channel);
            if self.note(node, &packet, Ask { back, own: mine, at: now }) {
                self.tally.asks += (mine.is_some()) as u64;
                core.packet_mut(id).flags |= flag::ASKS;
                if let Some((wait, old)) = own {
                    let new = Entry { way: old, last: packet.stamp, seen: now, wait: Some(wait) };
                    self.switches[node as usize].flows.insert(key, new);
                    self.alarm(core, (node, packet.flow, channel, packet.stamp));
                }
            } else {
                core.packet_mut(id).flags &= !flag::ASKS;
                if let Some((wait, old)) = own {
                    self.free_pen(core, old.port, wait.pen);
                }
            }
        }
        let flows = &mut self.switches[node as usize].flows;
        self.tally.table_peak = self.tally.table_peak.max(flows.len() as u64);
        if let Some(entry) = flows.get_mut(&key) {
            (entry.last, entry.seen) = (packet.stamp, now);
        }
        match wait {
            Some(wait) => {
                self.tally.held += 1;
                self.queue = wait.pen;
            }
            None => self.queue = self.lane(self.class(base, way.channel)),
        }
        way.port
    }

    #[inline]
    fn queue(&mut self, core: &mut Core, visit: &Visit) -> u32 {
        match core.packet(visit.packet).kind {
            PacketKind::Data => self.queue,
            _ => self.lane(visit.class),
        }
    }

    #[inline]
    fn enqueued(&mut self, core: &mut Core, visit: &Visit) {
        self.pfc.enqueued(core, visit);
        let packet = core.packet(visit.packet);
        let tail = &mut self.tails[visit.out_port as usize];
        *tail = (packet.flow, visit.size as u64 + if tail.0 == packet.flow { tail.1 } else { 0 });
        let asks = packet.flags & flag::ASKS != 0 && packet.kind == PacketKind::Data;
        if asks && self.to_host[visit.out_port as usize] {
            let (flow, stamp) = (packet.flow, packet.stamp);
            core.packet_mut(visit.packet).flags &= !flag::ASKS;
            core.send_note(visit.in_port, self.params.answer.0 as u16, flow, ANSWER + stamp.0);
        }
    }

    #[inline]
    fn dequeued(&mut self, core: &mut Core, visit: &Visit) {
        self.pfc.dequeued(core, visit);
        // From here on the packet is in the class of the queue it was in.
        let class = (visit.queue / (1 + self.params.pens as u32)) as u8;
        if class != visit.class {
            core.packet_mut(visit.packet).class = class;
            let (before, after) = (deflections(self.channel(visit.class)), deflections(self.channel(class)));
            if after > before && !self.to_host[visit.out_port as usize] {
                self.tally.deflections += 1;
                self.tally.most = self.tally.most.max(after);
            }
        }
    }

    fn frame(&mut self, core: &mut Core, port: u32, frame: &Packet) {
        if frame.seq < ANSWER {
            return self.pfc.frame(core, port, frame);
        }
        let (node, flow, stamp) = (core.port(port).node, frame.flow, Time(frame.seq - ANSWER));
        let switch = &mut self.switches[node as usize];
        let Some(asks) = switch.asks.get_mut(&(flow, stamp)) else { return };
        let Some(ask) = asks.pop() else { return };
        if asks.is_empty() {
            switch.asks.remove(&(flow, stamp));
        }
        switch.asked -= 1;
        if let Some(back) = ask.back {
            core.send_note(back, self.params.answer.0 as u16, flow, ANSWER + stamp.0);
        }
        if let Some(channel) = ask.own {
            self.answered(core, node, flow, stamp, channel);
        }
    }

    fn timer(&mut self, core: &mut Core, token: u32) {
        if token & WAIT == 0 {
            return self.pfc.timer(core, token);
        }
        let (token, nodes) = (token & !WAIT, self.switches.len() as u32);
        let switch = &mut self.switches[(token % nodes) as usize];
        let (node, flow, channel, stamp) = switch.waits[(token / nodes) as usize];
        switch.idle.push(token / nodes);
        let Some(entry) = self.switches[node as usize].flows.get(&(flow, channel)) else { return };
        let (old, Some(wait)) = (entry.way, entry.wait) else { return };
        if wait.stamp != stamp {
            return;
        }
        self.tally.late += 1;
        let first = core.head(old.port, wait.pen);
        let chosen = first.and_then(|id| core.routed(node, id)).unwrap_or(old.port);
        self.release(core, flow, old, wait.pen, old);
        self.settle(node, (flow, channel), old, chosen);
    }

    fn link_lost(&mut self, core: &mut Core, port: u32) {
        self.pfc.link_lost(core, port);
        let node = core.port(port).node;
        let gone = |entry: &Entry| entry.way.port == port;
        let flows = &mut self.switches[node as usize].flows;
        // What was in their pens went with the link.
        let waits: Vec<u32> = flows.values().filter(|e| gone(e)).filter_map(|e| e.wait).map(|w| w.pen).collect();
        flows.retain(|_, entry| !gone(entry));
        waits.into_iter().for_each(|pen| self.free_pen(core, port, pen));
    }

    fn receiver_full(&mut self, core: &mut Core, port: u32, full: bool) {
        self.pfc.receiver_full(core, port, full);
    }

    fn merge(&mut self, other: Iofd) {
        let (t, o) = (&mut self.tally, other.tally);
        t.deflections += o.deflections;
        t.most = t.most.max(o.most);
        t.flows += o.flows;
        t.table_full += o.table_full;
        t.table_peak = t.table_peak.max(o.table_peak);
        t.asks += o.asks;
        t.asks_full += o.asks_full;
        t.pens_full += o.pens_full;
        t.moves += o.moves;
        t.stays += o.stays;
        t.late += o.late;
        t.held += o.held;
        t.forgotten += o.forgotten;
        self.pfc.merge(other.pfc);
    }

    fn counters(&self) -> Vec<Counter> {
        let t = &self.tally;
        let mut counters = vec![
            ("deflections", t.deflections),
            ("deflections_of_a_packet_max", t.most as u64),
            ("flows_deflected", t.flows),
            ("table_full", t.table_full),
            ("table_peak", t.table_peak),
            ("asks", t.asks),
            ("asks_full", t.asks_full),
            ("pens_full", t.pens_full),
            ("flows_moved", t.moves),
            ("flows_stayed", t.stays),
            ("answers_late", t.late),
            ("packets_held", t.held),
            ("flows_forgotten", t.forgotten),
        ];
        counters.extend(self.pfc.counters());
        counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::Rate;
    use fabric::Network;
    use fabric::buffer::{ALPHA_ONE, Share};
    use fabric::routing::Routing;
    use fabric::scheme::Unlimited;
    use fabric::setup::FlowSpec;
    use fabric::topology::Graph;
    use proptest::prelude::*;
    use std::collections::{BTreeSet, HashMap};

    const RATE: Rate = Rate::from_gbps(100);

    fn leaf_spine(leaves: u32, hosts: u32, spines: u32, mut delay: impl FnMut() -> u64) -> Graph {
        let mut g = Graph::default();
        (0..leaves * hosts).for_each(|i| _ = g.add(Kind::Host, 0, format!("h{i}")));
        (0..leaves).for_each(|i| _ = g.add(Kind::Switch, 1, format!("leaf{i}")));
        (0..spines).for_each(|i| _ = g.add(Kind::Switch, 2, format!("spine{i}")));
        let first = leaves * hosts;
        (0..first).for_each(|i| g.connect(i, first + i / hosts, RATE, Time::from_ns(delay())));
        for leaf in 0..leaves {
            (0..spines).for_each(|s| g.connect(first + leaf, first + leaves + s, RATE, Time::from_ns(delay())));
        }
        g
    }

    /// Three tiers: `pods` pods of `half` edge and `half` aggregation switches, and `half` cores for each of these.
    fn fat_tree(pods: u32, half: u32, hosts: u32) -> Graph {
        let mut g = Graph::default();
        let count = pods * half * hosts;
        (0..count).for_each(|i| _ = g.add(Kind::Host, 0, format!("h{i}")));
        (0..pods * half).for_each(|i| _ = g.add(Kind::Switch, 1, format!("edge{i}")));
        (0..pods * half).for_each(|i| _ = g.add(Kind::Switch, 2, format!("agg{i}")));
        (0..half * half).for_each(|i| _ = g.add(Kind::Switch, 3, format!("core{i}")));
        let (edge, agg, core) = (count, count + pods * half, count + 2 * pods * half);
        let delay = Time::from_us(1);
        (0..count).for_each(|i| g.connect(i, edge + i / hosts, RATE, delay));
        for pod in 0..pods {
            for a in 0..half {
                (0..half).for_each(|e| g.connect(edge + pod * half + e, agg + pod * half + a, RATE, delay));
                (0..half).for_each(|c| g.connect(agg + pod * half + a, core + a * half + c, RATE, delay));
            }
        }
        g
    }

    /// A run with room for what the longest of the links above can have in flight.
    fn setup(graph: Graph, flows: Vec<FlowSpec>, params: &Params) -> Setup {
        let mut setup = Setup::plain(graph, flows);
        setup.classes = params.channels();
        setup.switch.queues = 1 + params.pens as u32;
        setup.switch.pool.fill(Some(2_000_000));
        setup.switch.resume_gap = 3_000;
        setup.ports.iter_mut().for_each(|p| p.share = Share { alpha: ALPHA_ONE / 8, headroom: 300_000 });
        setup
    }

    fn run(setup: Setup, params: &Params, lossless: bool) -> Outcome {
        let pause = (!lossless).then_some(Time::from_us(100));
        let scheme = Iofd::new(params, &setup, Pfc::new(&pfc::Params::default(), pause, lossless));
        Network::new(setup, scheme, Box::new(Unlimited)).run(|_, _| true)
    }

    fn counter(outcome: &Outcome, name: &str) -> u64 {
        outcome.flow_control.iter().find(|(n, _)| *n == name).map(|(_, count)| *count).expect("counted")
    }

    /// So eager that flows change ways all the time.
    fn eager(congested: u64, clear: u64) -> Params {
        Params { congested: Some(Bytes(congested)), clear: Some(Bytes(clear)), ..Params::default() }
    }

    #[derive(Clone, Debug)]
    struct Case {
        leaves: u32,
        hosts: u32,
        spines: u32,
        delays: Vec<u64>,
        flows: Vec<(u32, u32, u64, u64)>,
        params: Params,
        tall: bool,
        loss: Vec<(u32, f64)>,
    }

    impl Case {
        fn setup(&self) -> Setup {
            let mut at = 0;
            let mut graph = match self.tall {
                false => leaf_spine(self.leaves, self.hosts, self.spines, || {
                    at += 1;
                    self.delays[at % self.delays.len()]
                }),
                true => fat_tree(self.leaves, 2, self.hosts),
            };
            let links = graph.links.len();
            for (link, loss) in &self.loss {
                graph.links[*link as usize % links].loss = *loss;
            }
            let hosts = graph.hosts().count() as u32;
            let flows = (0..).zip(&self.flows).map(|(i, &(src, dst, size, start))| {
                let src = src % hosts;
                FlowSpec::plain(i, src, (src + 1 + dst % (hosts - 1)) % hosts, size, Time::from_ns(start))
            });
            let mut flows: Vec<_> = flows.collect();
            flows.sort_by_key(|flow| flow.start);
            let mut setup = setup(graph, flows, &self.params);
            if !self.loss.is_empty() {
                setup.nic.recovery.timeout = Some(Time::from_ms(1));
            }
            setup
        }
    }

    fn case(loss: bool) -> impl Strategy<Value = Case> {
        let flow = (any::<u32>(), any::<u32>(), prop_oneof![1u64..5_000, 1u64..400_000], 0u64..20_000);
        let size = (2u32..=4, 1u32..=4, 2u32..=4);
        let delays = prop::collection::vec(prop_oneof![50u64..500, 50u64..10_000], 1..12);
        let limits = (
            0u64..30_000,
            0u64..30_000,
            1u8..=3,
            prop_oneof![Just(1024u32), 0u32..6],
            prop_oneof![Just(256u32), 0u32..6],
        );
        let patience = prop_oneof![Just(200_000u64), 100u64..20_000];
        let lost = prop::collection::vec((any::<u32>(), 0.001f64..0.05), if loss { 1..4 } else { 0..1 });
        (size, delays, prop::collection::vec(flow, 1..60), limits, (1u8..=4, patience, 0u32..=3), any::<bool>(), lost)
            .prop_map(
                |(
                    (leaves, hosts, spines),
                    delays,
                    flows,
                    (a, b, deflections, table, asks),
                    (pens, patience, detours),
                    tall,
                    loss,
                )| {
                    let patience = Time::from_ns(patience);
                    let limits = Params {
                        deflections,
                        flows: table,
                        asks,
                        pens,
                        patience,
                        detours,
                        ..eager(a.max(b), a.min(b))
                    };
                    Case { leaves, hosts, spines, delays, flows, params: limits, tall, loss }
                },
            )
    }

    #[test]
    fn under_any_load_and_delays_order_holds_nothing_is_lost_and_every_flow_ends() {
        let (mut deflected, mut moved, mut late) = (0, 0, 0);
        let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
            cases: 200,
            failure_persistence: None,
            ..ProptestConfig::default()
        });
        let tally = std::cell::RefCell::new((&mut deflected, &mut moved, &mut late));
        let result = runner.run(&case(false), |case| {
            let outcome = run(case.setup(), &case.params, true);
            prop_assert_eq!(&outcome.violations, &Vec::<String>::new());
            prop_assert!(outcome.complete(), "{:?}", outcome.stall);
            let c = &outcome.counts;
            prop_assert_eq!((c.overtaken, c.out_of_order, c.dropped_full, c.retransmitted.0), (0, 0, 0, 0));
            prop_assert!(counter(&outcome, "deflections_of_a_packet_max") <= case.params.deflections as u64);
            prop_assert!(counter(&outcome, "table_peak") <= case.params.flows as u64);
            let mut tally = tally.borrow_mut();
            *tally.0 += counter(&outcome, "deflections");
            *tally.1 += counter(&outcome, "flows_moved");
            *tally.2 += counter(&outcome, "answers_late");
            Ok(())
        });
        if let Err(failure) = result {
            panic!("{failure}");
        }
        assert!(
            deflected > 1000 && moved > 100 && late > 10,
            "{deflected} deflections, {moved} moves, {late} late answers"
        );
    }

    #[test]
    fn packets_and_answers_that_get_lost_cost_no_order_and_no_flow() {
        let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
            cases: 100,
            failure_persistence: None,
            ..ProptestConfig::default()
        });
        let moved = std::cell::Cell::new(0);
        let result = runner.run(&case(true), |case| {
            let outcome = run(case.setup(), &case.params, false);
            prop_assert_eq!(&outcome.violations, &Vec::<String>::new());
            prop_assert!(outcome.complete(), "{:?}", outcome.stall);
            prop_assert_eq!(outcome.counts.overtaken, 0);
            moved.set(moved.get() + counter(&outcome, "flows_moved"));
            Ok(())
        });
        if let Err(failure) = result {
            panic!("{failure}");
        }
        assert!(moved.get() > 50, "{}", moved.get());
    }

    #[test]
    fn two_flows_on_one_uplink_part_and_both_go_at_full_speed() {
        // Among flows from two hosts, two that hash onto the same of two spines.
        let alone = |name: &str, deflections: u8| {
            let graph = leaf_spine(2, 2, 2, || 500);
            let map = PortMap::new(&graph);
            let routing = Routing::new(&graph, &map, &vec![true; graph.links.len()]);
            let spine = |flow: &FlowSpec| routing.next_hops(4, flow.dst)[flow.tuple.hash(4) as usize % 2];
            let first = FlowSpec::plain(0, 0, 2, 3_000_000, Time::ZERO);
            let second = (1..).map(|i| FlowSpec::plain(i, 1, 3, 3_000_000, Time::from_us(20)));
            let second = second.clone().find(|flow| spine(flow) == spine(&first)).expect("half of them do");
            let params = Params { deflections, ..Params::default() };
            let outcome = run(setup(graph, vec![first, second], &params), &params, true);
            assert!(outcome.complete() && outcome.violations.is_empty(), "{name}");
            assert_eq!(outcome.counts.overtaken, 0);
            assert!(counter(&outcome, "flows_moved") <= 2, "{name}: a flow alone on its way stays there");
            (outcome.end, counter(&outcome, "flows_deflected"))
        };
        let (together, none) = alone("without", 0);
        let (apart, some) = alone("with", 3);
        assert_eq!(none, 0);
        assert!(some >= 1);
        // 3 MB at 100 Gb/s take 255 us with headers, twice that on a shared link.
        assert!(together > Time::from_us(500) && apart < Time::from_us(330), "{together} and {apart}");
    }

    /// Whether waits of links for links can close a circle: by (link direction as its egress port, class), all that a packet that came
    /// over one may need next, for every destination. `rises` says what class a packet has after a hop.
    fn has_circle(graph: &Graph, channels: u8, rises: impl Fn(u8, bool, bool) -> Option<u8>) -> bool {
        let map = PortMap::new(graph);
        let routing = Routing::new(graph, &map, &vec![true; graph.links.len()]);
        let switch = |node: u32| graph.nodes[node as usize].kind == Kind::Switch;
        let mut needs: HashMap<(u32, u8), BTreeSet<(u32, u8)>> = HashMap::new();
        for dst in graph.hosts() {
            // Everything that packets to this host may hold, from every other host on.
            let mut todo: Vec<(u32, u8)> = graph.hosts().filter(|&h| h != dst).map(|h| (map.of(h).start, 0)).collect();
            let mut seen: BTreeSet<(u32, u8)> = todo.iter().copied().collect();
            while let Some((port, class)) = todo.pop() {
                let node = map.node[map.peer[port as usize] as usize];
                if !switch(node) {
                    continue;
                }
                let ways = routing.next_hops(node, dst);
                let last = ways.iter().any(|&way| map.node[map.peer[way as usize] as usize] == dst);
                for next in map.of(node).filter(|&next| next != map.peer[port as usize]) {
                    let far = map.node[map.peer[next as usize] as usize];
                    let shortest = ways.contains(&next);
                    if !switch(far) && far != dst {
                        continue;
                    }
                    // Any shortest way may be the one that routing has, and any may be a deflection.
                    for deflected in [false, true] {
                        let impossible = if deflected { last } else { !shortest };
                        if impossible {
                            continue;
                        }
                        let Some(after) = rises(class, deflected, shortest).filter(|after| *after < channels) else {
                            continue;
                        };
                        needs.entry((port, class)).or_default().insert((next, after));
                        if seen.insert((next, after)) {
                            todo.push((next, after));
                        }
                    }
                }
            }
        }
        // Depth-first, with what is on the path marked.
        let mut state: HashMap<(u32, u8), bool> = HashMap::new();
        for &root in needs.keys() {
            let mut path = vec![(root, needs[&root].iter().copied().collect::<Vec<_>>())];
            if state.contains_key(&root) {
                continue;
            }
            state.insert(root, true);
            while let Some((at, next)) = path.last_mut() {
                match next.pop() {
                    Some(to) => match state.get(&to) {
                        Some(true) => return true,
                        Some(false) => {}
                        None => {
                            state.insert(to, true);
                            path.push((to, needs.get(&to).into_iter().flatten().copied().collect()));
                        }
                    },
                    None => {
                        state.insert(*at, false);
                        path.pop();
                    }
                }
            }
        }
        false
    }

    #[test]
    fn with_classes_that_rise_no_circle_of_waits_can_form_and_without_it_can() {
        let channels = Params::default().channels();
        let ours = |channel: u8, deflected: bool, shortest: bool| match (deflected, shortest) {
            (false, _) => Some(onward(channel)),
            _ if deflections(channel) >= 3 => None,
            (true, true) => Some(onward(channel) + 2),
            (true, false) => Some(onward(channel) + 1),
        };
        // One class for each number of deflections, the hop of the deflection included, is not enough.
        let plain = |class: u8, deflected: bool, _: bool| (!deflected || class < 3).then_some(class + deflected as u8);
        let flat = |class: u8, _: bool, _: bool| Some(class);
        for graph in [leaf_spine(3, 2, 3, || 500), leaf_spine(4, 1, 2, || 500), fat_tree(3, 2, 1)] {
            assert!(!has_circle(&graph, channels, ours));
            assert!(has_circle(&graph, 4, plain));
            assert!(has_circle(&graph, 1, flat));
        }
    }

    #[test]
    fn values_that_cannot_be_are_refused() {
        let wrong = [
            Params { deflections: 4, ..Params::default() },
            Params { pens: 0, ..Params::default() },
            Params { asks: u32::MAX, ..Params::default() },
            Params { patience: Time::ZERO, ..Params::default() },
            Params { answer: Bytes(0), ..Params::default() },
        ];
        wrong.iter().for_each(|params| assert!(params.check().is_err(), "{params:?}"));
        assert_eq!(Params::default().check(), Ok(()));
    }
}
