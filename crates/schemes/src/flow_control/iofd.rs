//! In-order flow deflection (Blitz, §2): a switch whose output is congested sends a *flow* by another path, over PFC.
//!
//! How order is kept. All packets of a flow that are in flight lie on one path at any time. A switch may therefore choose freely for
//! the first packet of a message. Later it may change its mind only when all that it sent by the old path has reached the *last switch*,
//! where all paths to a host meet in one queue. To learn of that it flags one more packet to take the old path (it *asks*), keeps those
//! behind it in a *pen*, and waits for the answer. That packet is the flow's first in the congested queue and goes ahead of others
//! there, and the flow's others are taken out of the queue, so that the wait is for what is on the path and not for the queue: the last switch answers a flagged packet, and every switch that forwarded it passes the
//! answer back to where the packet came from. An answer that does not come in time means the old path: that is always right.
//!
//! How nothing waits in a cycle. A packet's class rises with each deflection: by two onto another shortest path, by one for
//! a hop off the shortest paths and by one more after it. Within a class packets follow shortest paths only, and those in a pen wait for
//! packets further down the same path. So the waits of one class are those of PFC on shortest paths, and waits between classes go up.
//! A packet with no deflection left takes the path that routing has for it. See docs/blitz.md.

use super::{Deadlines, check_frame, max, needs_order, pfc, samples, sum};
use engine::{Bytes, Misfit, Time};
use fabric::axes::flow_control::{FlowControl, FlowControlDef, Headroom, Job, Layout, Over, Visit};
use fabric::axes::{Chosen, Counter, Definition, Histogram};
use fabric::deadlock::{At, Lanes, Waits};
use fabric::id::{ClassId, FlowId, NodeId, PortId, QueueId};
use fabric::packet::{Kind as PacketKind, Packet, PacketId, flag};
use fabric::probe::Scope;
use fabric::routing::PortMap;
use fabric::topology::{Graph, Kind};
use fabric::view::{NodeView, Site};
use fabric::{Outcome, Setup, message};
use pfc::Pfc;
use std::collections::BTreeMap;
use std::sync::Arc;

engine::choice! {
    /// Which packet of a flow asks whether the old path is empty.
    pub enum Asking {
        /// Its first in the congested queue, ahead of other flows there; the flow takes its others along.
        First = "first",
        /// The one that finds the queue congested, behind all that waits there.
        Last = "last",
    }
}

engine::parameters! {
    /// Parameters of in-order flow deflection.
    pub struct Params {
        /// An output with more than this many bytes waiting is congested. Auto: where its marks begin, or 100 KB.
        congested: Option<Bytes> = None,
        /// Flows are deflected to outputs with at most this many bytes waiting. Auto: a quarter of what congests the output they leave.
        clear: Option<Bytes> = None,
        /// Deflect also off the shortest paths where the output has this many times as much waiting and no other shortest path is
        /// clear; 0 for never.
        detours: u32 = 4,
        /// The most deflections of a packet.
        deflections: u8 = 3,
        /// Flows that a switch can remember to have sent by another path.
        flows: u32 = 1024,
        /// Answers that a switch can owe or wait for.
        asks: u32 = 256,
        /// Flows of one output and class that can wait for an answer at a time. One: what its leaving does shows before the next leaves.
        pens: u8 = 1,
        /// Which packet of a flow asks whether the old path is empty.
        asking: Asking = Asking::First,
        /// How long a flow waits for an answer before it goes on by the old path.
        patience: Time = Time::from_us(200),
        /// When the table is full, flows of which nothing was seen for this long are forgotten.
        forget: Time = Time::from_ms(10),
        /// Size of an answer, which goes from switch to switch.
        answer: Bytes = Bytes(64),
    }
}

impl Params {
    /// Virtual channels of every class: two for each deflection, and one to start in.
    fn channels(&self) -> u8 {
        2 * self.deflections + 1
    }
}

impl Definition for Params {
    fn name(&self) -> &'static str {
        "iofd"
    }
    fn about(&self) -> &'static str {
        "In-order flow deflection over PFC: a switch sends flows around a congested output, a few times at most, and keeps their packets in \
         order. Lossless."
    }
    fn source(&self) -> &'static str {
        "Xue, Chaudhry, Vamanan, Vijaykumar, Thottethodi, Fast Congestion Control in RDMA-based Datacenter Networks (Blitz), \
         SIGCOMM Posters and Demos 2018"
    }
    fn conflict(&self, with: &Chosen<'_>) -> Option<Misfit> {
        needs_order(self.name(), with)
    }
    fn control_packet(&self) -> u64 {
        self.answer.0
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
}

impl FlowControlDef for Params {
    fn layout(&self, _: &Graph) -> Result<Layout, Misfit> {
        Ok(Layout {
            queues: Some(1 + self.pens as u32),
            channels: self.channels(),
            headroom: Some(Headroom::default()),
            // A pause may have to wait for an answer that is being sent.
            frame: self.answer.0.max(pfc::Params::default().frame.0),
            stops_for_hosts: true,
            ..Layout::default()
        })
    }
    fn waits(&self, _: &Setup) -> Waits {
        Waits::Lanes(Box::new(Rising { deflections: self.deflections, detours: self.detours > 0 }))
    }
    fn switch_state(&self, ports: u64, classes: u64) -> u64 {
        // A flow that takes its own path: its name in eight bytes, hops and times in eight more; an answer awaited: the same.
        (self.flows as u64 + self.asks as u64) * 16 + pfc::Params::default().switch_state(ports, classes)
    }
    fn pause_in(&self, frame: &Packet) -> Option<(u8, bool)> {
        pfc::pause_beneath(frame)
    }
    fn run(&self, job: Job<'_>) -> Outcome {
        let upper = Iofd::new(self, &job.setup);
        let lower = Pfc::beneath(&job.setup.graph, job.promised);
        job.run(Over { upper, lower })
    }
}

message! {
    /// A flagged packet has reached the last switch on its path. The answer goes back hop by hop.
    pub struct Answer {
        /// The flow of the packet.
        flow: FlowId,
        /// When the packet was sent.
        stamp: Time,
    }
}

/// Why a pen is held.
const IN_PEN: &str =
    "a flow that is to be deflected waits in its pen until the last switch of its old path has answered";

/// A next hop: a port, and the channel that packets have from there on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hop {
    port: PortId,
    channel: u8,
}

/// The channel of packets that came in `channel` and go on by a shortest path.
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
        let Some((came, channel)) = at.from else { return at.paths.iter().for_each(|&port| go(port, 0)) };
        let straight = onward(channel);
        at.paths.iter().for_each(|&port| go(port, straight));
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

/// A flow and the channel it comes in.
type Key = (FlowId, u8);

/// A flow, in one of its channels, that takes another path than routing has for it, or is about to.
#[derive(Clone, Debug)]
struct Entry {
    hop: Hop,
    /// Where the last packet that came by would have gone without an entry.
    chosen: PortId,
    /// When its last packet that came by was sent.
    last: Time,
    seen: Time,
    wait: Option<Wait>,
}

/// A flow that waits for an answer.
#[derive(Clone, Copy, Debug)]
struct Wait {
    /// When the packet that asks was sent.
    stamp: Time,
    /// The pen of the old port where the flow's packets are kept.
    pen: Pen,
    /// How congested the old port was.
    urgency: Urgency,
    /// When the port was found congested.
    since: Time,
}

/// A pen among those of its port, class by class. The timer of its wait has the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pen(u32);

/// How far from the shortest paths a flow may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Urgency {
    /// Onto another of them.
    Shortest,
    /// To any neighbour that helps.
    Detour,
}

/// What of a flow waits in a lane.
enum FirstWaiting {
    None,
    Some(PacketId),
    /// Packets of more than one stage of the flow.
    Mixed,
}

/// How a packet came to a switch, and where routing would have it go.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    in_port: PortId,
    channel: u8,
    chosen: PortId,
}

/// What a switch does with an answer.
#[derive(Clone, Copy, Debug)]
struct Ask {
    /// The port to pass it on by, if another switch asked.
    back: Option<PortId>,
    /// The channel in which the flow came, if this switch asked.
    own: Option<u8>,
    at: Time,
}

/// What a node keeps of a port.
#[derive(Clone, Copy, Debug)]
struct Port {
    /// It is congested with more bytes waiting than this.
    congested: u64,
    /// Flows that leave it go to ports with at most so many bytes waiting.
    clear: u64,
    tail: Tail,
    faces_host: bool,
}

/// The flow that last joined a queue of a port, and the bytes it brought since any other did.
#[derive(Clone, Copy, Debug, Default)]
struct Tail {
    flow: Option<FlowId>,
    bytes: u64,
}

impl Tail {
    /// What of it is a flow's own.
    fn of(&self, flow: FlowId) -> u64 {
        if self.flow == Some(flow) { self.bytes } else { 0 }
    }
    fn join(&mut self, flow: FlowId, bytes: u64) {
        *self = Tail { flow: Some(flow), bytes: bytes + self.of(flow) };
    }
}

#[derive(Clone, Debug, Default)]
struct Tally {
    deflections: u64,
    most: u8,
    flows: u64,
    /// Of which with their first packet, without a wait.
    at_once: u64,
    reactions: Reactions,
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

/// How long flows waited for their answers.
#[derive(Clone, Debug, Default)]
struct Reactions {
    count: u64,
    total: Time,
    longest: Time,
    /// Those longer than the base round trip of their flow.
    slow: u64,
    /// By whole microseconds.
    by_us: Vec<u64>,
}

impl Reactions {
    fn add(&mut self, wait: Time, base_rtt: Time) {
        self.count += 1;
        self.total += wait;
        self.longest = self.longest.max(wait);
        self.slow += (wait > base_rtt) as u64;
        let bin = (wait.0 / Time::from_us(1).0).min(LAST_BIN) as usize;
        self.by_us.resize(self.by_us.len().max(bin + 1), 0);
        self.by_us[bin] += 1;
    }
}

/// The last bin of the histogram of waits, for a millisecond and more.
const LAST_BIN: u64 = 1000;

/// What a node keeps.
pub struct Node {
    ports: Vec<Port>,
    flows: BTreeMap<Key, Entry>,
    /// By flow and when its packet was sent; several if the packet came by more than once.
    asks: BTreeMap<(FlowId, Time), Vec<Ask>>,
    asked: u32,
    /// Pens of a port, of all classes together.
    pens_each: usize,
    /// By port and pen: who has it.
    pens: Vec<Option<Key>>,
    /// By port and pen: how long the flow in it waits.
    deadlines: Deadlines,
    /// The queue for the packet at hand, as [`FlowControl::divert`] decided.
    queue: QueueId,
    /// That packet is to be the first in it.
    ahead: bool,
    tally: Tally,
}

impl Node {
    /// Who has a pen of a port.
    fn pen(&mut self, port: PortId, pen: Pen) -> &mut Option<Key> {
        &mut self.pens[port.index() * self.pens_each + pen.0 as usize]
    }

    fn free_pen(&mut self, at: &mut NodeView<'_>, port: PortId, pen: Pen) {
        *self.pen(port, pen) = None;
        // The next flow in the pen must not be woken by a timer of this wait.
        self.deadlines.set(at, port, pen.0, None);
    }

    /// The entry of a flow that waits no longer.
    fn settle(&mut self, key: Key, hop: Hop, chosen: PortId) {
        if hop == (Hop { port: chosen, channel: onward(key.1) }) {
            self.flows.remove(&key);
        } else if let Some(entry) = self.flows.get_mut(&key) {
            (entry.hop, entry.wait) = (hop, None);
        }
    }

    fn count_flow(&mut self, hop: Hop, channel: u8) {
        self.tally.flows += (hop.channel > onward(channel)) as u64;
    }
}

/// The mechanism: what all nodes share.
#[derive(Clone)]
pub struct Iofd {
    params: Params,
    /// Classes of the scenario.
    classes: u8,
    /// By node: has a single link.
    single: Arc<[bool]>,
}

impl Iofd {
    fn new(params: &Params, setup: &Setup) -> Iofd {
        let map = PortMap::new(&setup.graph);
        Iofd {
            params: params.clone(),
            classes: setup.classes / params.channels(),
            single: (0..setup.graph.nodes.len() as u32).map(|node| map.of(node).len() == 1).collect(),
        }
    }

    /// The number of the class that a channel of a scenario's class is.
    fn class(&self, base: u8, channel: u8) -> ClassId {
        ClassId(channel * self.classes + base)
    }
    fn channel(&self, class: ClassId) -> u8 {
        class.0 / self.classes
    }
    /// The first queue of a class: the one that is not a pen.
    fn lane(&self, class: ClassId) -> QueueId {
        QueueId(class.0 as u32 * (1 + self.params.pens as u32))
    }
    /// The queue that is a pen.
    fn pen_queue(&self, pen: Pen) -> QueueId {
        let pens = self.params.pens as u32;
        let (class, place) = (pen.0 / pens, pen.0 % pens);
        QueueId(self.lane(ClassId(class as u8)).0 + 1 + place)
    }

    /// How far from the shortest paths a flow may go to get around an output. What waits there of the flow itself does not
    /// count: it would only take that along.
    fn urgency(&self, node: &Node, at: &NodeView<'_>, port: PortId, flow: FlowId) -> Option<Urgency> {
        let here = &node.ports[port.index()];
        let others = at.queued(port).saturating_sub(here.tail.of(flow));
        let detours = self.params.detours as u64;
        match here.congested {
            limit if detours > 0 && others > detours * limit => Some(Urgency::Detour),
            limit if others > limit => Some(Urgency::Shortest),
            _ => None,
        }
    }

    /// A better next hop than `now` for a packet.
    fn better(
        &self,
        node: &Node,
        at: &NodeView<'_>,
        id: PacketId,
        by: Arrival,
        now: Hop,
        urgency: Urgency,
    ) -> Option<Hop> {
        let Arrival { in_port, channel, chosen } = by;
        if deflections(channel) >= self.params.deflections {
            return None;
        }
        let packet = at.packet(id);
        let base = packet.class % self.classes;
        let clear = node.ports[now.port.index()].clear;
        let open = |hop: &Hop| {
            let paused = at.is_paused(hop.port, self.class(base, hop.channel));
            hop.port != now.port && at.is_up(hop.port) && !paused && at.queued(hop.port) <= clear
        };
        // Back to where routing has it costs no deflection.
        let shortest = at.paths(NodeId(packet.dst)).map(|port| match port == chosen {
            true => Hop { port, channel: onward(channel) },
            false => Hop { port, channel: onward(channel) + 2 },
        });
        let least = |hop: &Hop| (at.queued(hop.port), hop.channel, hop.port);
        let found = shortest.filter(open).min_by_key(least);
        if found.is_some() || urgency == Urgency::Shortest {
            return found;
        }
        // A neighbour helps if it is not where the packet comes from and would not send it back here.
        let helps = |hop: &Hop| {
            hop.port != in_port
                && !node.ports[hop.port.index()].faces_host
                && !at.paths(NodeId(packet.dst)).any(|port| port == hop.port)
                && at.beyond(hop.port, id).is_some_and(|next| next != at.node())
        };
        let others = at.ports().map(|port| Hop { port, channel: onward(channel) + 1 });
        others.filter(|hop| open(hop) && helps(hop)).min_by_key(least)
    }

    /// Room in a switch's table of flows.
    fn room(&self, node: &mut Node, now: Time) -> bool {
        let (limit, forget) = (self.params.flows as usize, self.params.forget);
        if node.flows.len() >= limit {
            let before = node.flows.len();
            node.flows.retain(|_, entry| entry.wait.is_some() || entry.seen + forget > now);
            node.tally.forgotten += (before - node.flows.len()) as u64;
        }
        let full = node.flows.len() >= limit;
        node.tally.table_full += full as u64;
        !full
    }

    /// Notes that the answer to a packet is awaited. False if there is no room.
    fn note(&self, node: &mut Node, packet: &Packet, ask: Ask) -> bool {
        let (limit, patience) = (self.params.asks, self.params.patience);
        if node.asked >= limit {
            // What has not been answered for so long was lost.
            node.asks.retain(|_, asks| asks.iter().any(|a| a.at + Time(4 * patience.0) > ask.at));
            node.asked = node.asks.values().map(|asks| asks.len() as u32).sum();
        }
        if node.asked >= limit {
            node.tally.asks_full += 1;
            return false;
        }
        node.asked += 1;
        node.asks.entry((FlowId(packet.flow), packet.stamp)).or_default().push(ask);
        true
    }

    /// The first packet of a flow that waits in the lane of a port, to ask for those behind it. None if there is none, or if some came
    /// in another channel: that is another stage of the flow, which must not be overtaken.
    fn first_waiting(&self, at: &NodeView<'_>, port: PortId, lane: QueueId, key: Key) -> FirstWaiting {
        let mut first = None;
        for id in at.waiting(port, lane) {
            let packet = at.packet(id);
            if packet.kind != PacketKind::Data || FlowId(packet.flow) != key.0 {
                continue;
            }
            if self.channel(ClassId(packet.class)) != key.1 {
                return FirstWaiting::Mixed;
            }
            first = first.or(Some(id));
        }
        first.map_or(FirstWaiting::None, FirstWaiting::Some)
    }

    /// A flow that waits in the lane of a port leaves it for a pen, but for its first packet, which asks and goes ahead. False if
    /// there is no room for the answer.
    fn set_aside(&self, node: &mut Node, at: &mut NodeView<'_>, hop: Hop, pen: Pen, first: PacketId, key: Key) -> bool {
        let packet = *at.packet(first);
        let lane = self.lane(self.class(packet.class % self.classes, hop.channel));
        let asked = match packet.flags & flag::ASKS != 0 {
            // Another switch asked by the same packet: the answer is for both.
            true => {
                let asks = node.asks.get_mut(&(key.0, packet.stamp)).and_then(|asks| asks.last_mut());
                asks.map(|ask| ask.own = Some(key.1)).is_some()
            }
            false => self.note(node, &packet, Ask { back: None, own: Some(key.1), at: at.now() }),
        };
        if asked {
            at.packet_mut(first).flags |= flag::ASKS;
            let others = |id: PacketId, other: &Packet| {
                id != first && other.kind == PacketKind::Data && FlowId(other.flow) == key.0
            };
            at.sort_out(hop.port, lane, self.pen_queue(pen), others);
            at.put_first(hop.port, lane, first);
        }
        asked
    }

    /// Gives a flow a free pen of a port and class.
    fn take_pen(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, class: ClassId, key: Key) -> Option<Pen> {
        let pens = self.params.pens as u32;
        let mut all = (class.0 as u32 * pens..(class.0 as u32 + 1) * pens).map(Pen);
        let Some(pen) = all.find(|&pen| node.pen(port, pen).is_none()) else {
            node.tally.pens_full += 1;
            return None;
        };
        *node.pen(port, pen) = Some(key);
        at.hold_queue(port, self.pen_queue(pen), true);
        at.stopped_by_rule(port, Scope::Held(self.pen_queue(pen)), IN_PEN);
        Some(pen)
    }

    /// A flow waits no longer: what is in its pen goes on by `hop`.
    fn release(&self, node: &mut Node, at: &mut NodeView<'_>, flow: FlowId, old: Hop, pen: Pen, hop: Hop) {
        let base = (pen.0 / self.params.pens as u32) as u8 % self.classes;
        let class = self.class(base, hop.channel);
        let queue = self.pen_queue(pen);
        let bytes = at.queue_bytes(old.port, queue);
        if bytes > 0 && hop.port != old.port {
            node.ports[hop.port.index()].tail.join(flow, bytes);
        }
        at.shift((old.port, queue), (hop.port, self.lane(class)));
        node.free_pen(at, old.port, pen);
    }

    /// An answer is here: nothing of the flow is in flight any more but what waits here.
    fn answered(&self, node: &mut Node, at: &mut NodeView<'_>, key: Key, stamp: Time) {
        let (flow, channel) = key;
        let Some(entry) = node.flows.get(&key) else { return };
        let (old, chosen) = (entry.hop, entry.chosen);
        let Some(wait) = entry.wait else {
            // The last packet of the message has arrived, and nothing came after it.
            if entry.last == stamp {
                node.flows.remove(&key);
            }
            return;
        };
        if wait.stamp != stamp {
            return;
        }
        node.tally.reactions.add(at.now() - wait.since, at.flow(flow).base_rtt);
        // What was clear when the flow asked may no longer be. That its old path is shorter now means little: it was kept from it.
        let first = at.head(old.port, self.pen_queue(wait.pen));
        let target = first.and_then(|id| {
            let by = Arrival { in_port: PortId(at.packet(id).in_port), channel, chosen };
            self.better(node, at, id, by, old, wait.urgency)
        });
        let hop = target.unwrap_or(old);
        if hop == old {
            node.tally.stays += 1;
        } else {
            node.tally.moves += 1;
            node.count_flow(hop, channel);
        }
        self.release(node, at, flow, old, wait.pen, hop);
        node.settle(key, hop, chosen);
    }

    fn answer(&self, at: &mut NodeView<'_>, port: PortId, answer: Answer) {
        at.send_note(port, self.params.answer.0 as u16, answer);
    }
}

impl FlowControl for Iofd {
    type Node = Node;
    type Frame = Answer;
    type Signal = ();

    fn node(&self, site: &Site<'_>) -> Node {
        let port = |port: PortId| {
            let begin = site.port(port).ecn.map_or(100_000, |ecn| ecn.min);
            let congested = self.params.congested.map_or(begin, |bytes| bytes.0);
            let clear = self.params.clear.map_or(congested / 4, |bytes| bytes.0);
            Port { congested, clear, tail: Tail::default(), faces_host: site.faces_host(port) }
        };
        let each = self.timers(site.setup.classes);
        Node {
            ports: site.ports().map(port).collect(),
            flows: BTreeMap::new(),
            asks: BTreeMap::new(),
            asked: 0,
            pens_each: each as usize,
            pens: vec![None; site.ports().len() * each as usize],
            deadlines: Deadlines::new(site.ports().len(), each),
            queue: QueueId(0),
            ahead: false,
            tally: Tally::default(),
        }
    }

    fn timers(&self, classes: u8) -> u32 {
        classes as u32 * self.params.pens as u32
    }

    fn divert(&self, node: &mut Node, at: &mut NodeView<'_>, in_port: PortId, id: PacketId, chosen: PortId) -> PortId {
        let (packet, now) = (*at.packet(id), at.now());
        let (base, channel) = (packet.class % self.classes, self.channel(ClassId(packet.class)));
        // At the last switch all channels come together.
        if node.ports[chosen.index()].faces_host {
            node.queue = self.lane(ClassId(base));
            return chosen;
        }
        let default = Hop { port: chosen, channel: onward(channel) };
        let key = (FlowId(packet.flow), channel);
        let entry = node.flows.get(&key);
        let mut known = entry.is_some();
        let (mut hop, mut wait) = entry.map_or((default, None), |entry| (entry.hop, entry.wait));
        let mut own = None;
        node.ahead = false;
        if wait.is_none()
            && self.single[packet.dst as usize]
            && (known || packet.flags & flag::FRESH != 0 || packet.flags & flag::LAST == 0)
            && let Some(urgency) = self.urgency(node, at, hop.port, key.0)
            && let Some(better) = self.better(node, at, id, Arrival { in_port, channel, chosen }, hop, urgency)
        {
            if !known && packet.flags & flag::FRESH != 0 {
                // No packet of the flow is in the network: it may take any path.
                if self.room(node, now) {
                    hop = better;
                    node.count_flow(hop, channel);
                    node.tally.at_once += 1;
                    node.flows.insert(key, Entry { hop, chosen, last: packet.stamp, seen: now, wait: None });
                    known = true;
                }
            } else if packet.flags & flag::LAST == 0 && (known || self.room(node, now)) {
                let old = self.class(base, hop.channel);
                if let Some(pen) = self.take_pen(node, at, hop.port, old, key) {
                    let mut new = Wait { stamp: packet.stamp, pen, urgency, since: now };
                    let first = match self.params.asking {
                        Asking::First => self.first_waiting(at, hop.port, self.lane(old), key),
                        Asking::Last => FirstWaiting::Mixed,
                    };
                    match first {
                        FirstWaiting::Some(first) if self.set_aside(node, at, hop, pen, first, key) => {
                            // This packet does not ask: it waits with the others.
                            node.tally.asks += 1;
                            new.stamp = at.packet(first).stamp;
                            wait = Some(new);
                            node.flows.insert(key, Entry { hop, chosen, last: packet.stamp, seen: now, wait });
                            node.deadlines.set(at, hop.port, pen.0, Some(self.params.patience));
                            known = true;
                        }
                        FirstWaiting::Some(_) => node.free_pen(at, hop.port, pen),
                        FirstWaiting::None => (own, node.ahead) = (Some(new), true),
                        FirstWaiting::Mixed => own = Some(new),
                    }
                }
            }
        }
        // The switch asks to be notified of a message's last packet so that it can forget the flow.
        let ends = packet.flags & flag::LAST != 0 && known;
        let passes = packet.flags & flag::ASKS != 0;
        if own.is_some() || ends || passes {
            let back = passes.then_some(in_port);
            let mine = (own.is_some() || ends).then_some(channel);
            if self.note(node, &packet, Ask { back, own: mine, at: now }) {
                node.tally.asks += (mine.is_some()) as u64;
                at.packet_mut(id).flags |= flag::ASKS;
                if let Some(wait) = own {
                    node.flows.insert(key, Entry { hop, chosen, last: packet.stamp, seen: now, wait: Some(wait) });
                    node.deadlines.set(at, hop.port, wait.pen.0, Some(self.params.patience));
                }
            } else {
                at.packet_mut(id).flags &= !flag::ASKS;
                if let Some(wait) = own {
                    node.free_pen(at, hop.port, wait.pen);
                    node.ahead = false;
                }
            }
        }
        node.tally.table_peak = node.tally.table_peak.max(node.flows.len() as u64);
        if let Some(entry) = node.flows.get_mut(&key) {
            (entry.chosen, entry.last, entry.seen) = (chosen, packet.stamp, now);
        }
        // The packet that asks still takes the old path; only those behind it are kept.
        match wait {
            Some(wait) => {
                node.tally.held += 1;
                node.queue = self.pen_queue(wait.pen);
            }
            None => node.queue = self.lane(self.class(base, hop.channel)),
        }
        hop.port
    }

    #[inline]
    fn queue(&self, node: &mut Node, at: &mut NodeView<'_>, visit: &Visit) -> QueueId {
        match at.packet(visit.packet).kind {
            PacketKind::Data => node.queue,
            _ => self.lane(visit.class),
        }
    }

    #[inline]
    fn enqueued(&self, node: &mut Node, at: &mut NodeView<'_>, visit: &Visit) {
        let packet = at.packet(visit.packet);
        let (flow, stamp) = (FlowId(packet.flow), packet.stamp);
        let asks = packet.flags & flag::ASKS != 0 && packet.kind == PacketKind::Data;
        let port = &mut node.ports[visit.out_port.index()];
        port.tail.join(flow, visit.size as u64);
        if asks && port.faces_host {
            at.packet_mut(visit.packet).flags &= !flag::ASKS;
            self.answer(at, visit.in_port, Answer { flow, stamp });
        }
        if std::mem::take(&mut node.ahead) {
            at.put_first(visit.out_port, visit.queue, visit.packet);
        }
    }

    #[inline]
    fn dequeued(&self, node: &mut Node, at: &mut NodeView<'_>, visit: &Visit) {
        // From here on the packet is in the class of the queue it was in.
        let class = ClassId((visit.queue.0 / (1 + self.params.pens as u32)) as u8);
        if class != visit.class {
            at.packet_mut(visit.packet).class = class.0;
            let (before, after) = (deflections(self.channel(visit.class)), deflections(self.channel(class)));
            if after > before && !node.ports[visit.out_port.index()].faces_host {
                node.tally.deflections += 1;
                node.tally.most = node.tally.most.max(after);
            }
        }
    }

    fn frame(&self, node: &mut Node, at: &mut NodeView<'_>, _: PortId, answer: Answer) {
        let (flow, stamp) = (answer.flow, answer.stamp);
        let Some(asks) = node.asks.get_mut(&(flow, stamp)) else { return };
        let Some(ask) = asks.pop() else { return };
        if asks.is_empty() {
            node.asks.remove(&(flow, stamp));
        }
        node.asked -= 1;
        if let Some(back) = ask.back {
            self.answer(at, back, answer);
        }
        if let Some(channel) = ask.own {
            self.answered(node, at, (flow, channel), stamp);
        }
    }

    fn timer(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, timer: u32) {
        if !node.deadlines.due(at, port, timer) {
            return;
        }
        let Some(key) = *node.pen(port, Pen(timer)) else { return };
        let Some(entry) = node.flows.get(&key) else { return };
        let (old, chosen, Some(wait)) = (entry.hop, entry.chosen, entry.wait) else { return };
        node.tally.late += 1;
        self.release(node, at, key.0, old, wait.pen, old);
        node.settle(key, old, chosen);
    }

    fn link_lost(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId) {
        let gone = |entry: &Entry| entry.hop.port == port;
        // What was in their pens went with the link.
        let waits: Vec<Pen> = node.flows.values().filter(|e| gone(e)).filter_map(|e| e.wait).map(|w| w.pen).collect();
        node.flows.retain(|_, entry| !gone(entry));
        waits.into_iter().for_each(|pen| node.free_pen(at, port, pen));
    }

    fn counters(&self, nodes: &[&Node]) -> Vec<Counter> {
        vec![
            sum("deflections", nodes, |node| node.tally.deflections),
            max("deflections_of_a_packet_max", nodes, |node| node.tally.most as u64),
            sum("flows_deflected", nodes, |node| node.tally.flows),
            sum("table_full", nodes, |node| node.tally.table_full),
            max("table_peak", nodes, |node| node.tally.table_peak),
            sum("asks", nodes, |node| node.tally.asks),
            sum("asks_full", nodes, |node| node.tally.asks_full),
            sum("pens_full", nodes, |node| node.tally.pens_full),
            sum("flows_moved", nodes, |node| node.tally.moves),
            sum("flows_stayed", nodes, |node| node.tally.stays),
            sum("answers_late", nodes, |node| node.tally.late),
            sum("packets_held", nodes, |node| node.tally.held),
            sum("flows_forgotten", nodes, |node| node.tally.forgotten),
            sum("flows_deflected_at_once", nodes, |node| node.tally.at_once),
            sum("reactions", nodes, |node| node.tally.reactions.count),
            sum("reactions_over_rtt", nodes, |node| node.tally.reactions.slow),
            sum("reactions_ns", nodes, |node| node.tally.reactions.total.0 / 1000),
            max("reaction_max_ns", nodes, |node| node.tally.reactions.longest.0 / 1000),
        ]
    }

    fn histograms(&self, nodes: &[&Node]) -> Vec<Histogram> {
        vec![("reaction_us", samples(nodes, |node| &node.tally.reactions.by_us))]
    }
}

#[cfg(test)]
mod tests;
