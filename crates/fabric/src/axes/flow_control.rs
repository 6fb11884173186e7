//! Flow control between neighbours: what happens around the queues of switches, and at the NICs.

use super::{Chosen, Counter, Definition, Histogram};
use crate::buffer::{Account, Buffer};
use crate::deadlock::Waits;
use crate::id::{ClassId, FlowId, NodeId, PortId, QueueId};
use crate::message::{Message, Sealed};
use crate::packet::{Packet, PacketId};
use crate::routing::Tuple;
use crate::run::{Network, Outcome, Wait, partition};
use crate::setup::{Forward, Setup};
use crate::topology::Graph;
use crate::view::{NodeView, Site};
use engine::{Misfit, Time};

/// A packet at a switch.
#[derive(Clone, Copy, Debug)]
pub struct Visit {
    /// The packet.
    pub packet: PacketId,
    /// The port it came in by.
    pub in_port: PortId,
    /// The port it leaves by.
    pub out_port: PortId,
    /// The queue of that port.
    pub queue: QueueId,
    /// Its priority class.
    pub class: ClassId,
    /// Bytes on the wire.
    pub size: u16,
}

/// A signal that passes a switch or has reached its host.
#[derive(Clone, Debug)]
pub struct Signal<M> {
    /// The flow whose packet made a switch send it.
    pub flow: FlowId,
    /// Its class.
    pub class: ClassId,
    /// Where it comes from and goes to: the data packet's addresses swapped.
    pub tuple: Tuple,
    /// Bytes on the wire.
    pub size: u16,
    /// What it says.
    pub message: M,
}

/// A flow control. The fabric owns queues, buffers and schedulers and calls these hooks; a scheme acts through the [`NodeView`] of the
/// one node that a hook is called for. What it keeps at that node is a [`FlowControl::Node`]; what all nodes share never changes.
///
/// All hooks but [`FlowControl::node`] default to doing nothing.
pub trait FlowControl: Clone + Send + 'static {
    /// What it keeps at one node.
    type Node: Send;
    /// What its frames say, from a node to its neighbour.
    type Frame: Message;
    /// What its signals say, from a switch to a host. One without a payload.
    type Signal: Message;
    /// Whether [`FlowControl::enqueued`] or [`FlowControl::dequeued`] look at the queues of a port, or whether queues are held or
    /// served by rules of the scheme's own. If not, a packet that finds its port idle is sent without joining a queue, which is faster
    /// and cannot be seen from outside.
    const LOOKS_AT_QUEUES: bool = true;

    /// Whether any of [`FlowControl::divert`], [`FlowControl::queue`], [`FlowControl::second_group`], [`FlowControl::admits`] and
    /// [`FlowControl::lag`] is its own. If not, they are not asked of a packet that finds its port idle.
    const CHOOSES: bool = true;

    /// Whether a packet that finds its port idle and all of its queues empty may go straight on. A scheme that does not look at queues and chooses
    /// nothing lets it if it is [unmoved](FlowControl::unmoved); any other has to say in [`FlowControl::passes`].
    const PASSES: bool = !Self::LOOKS_AT_QUEUES && !Self::CHOOSES;

    /// Whether it counts what crosses links: [`FlowControl::arrived`], [`FlowControl::gone`] and [`FlowControl::sent`] are called. If not, nothing is
    /// spent on them. What counts is what a pause of its class could stop: data, and ACKs where they travel with it.
    const COUNTS: bool = false;

    /// How many flow controls it is; more than one only if it is one [over](Over) another.
    const LAYERS: u8 = 1;

    /// What it keeps at a node, at the start.
    fn node(&self, site: &Site<'_>) -> Self::Node;
    /// Whether the scheme promises that no buffer overflows. A run that breaks the promise fails.
    fn lossless(&self) -> bool {
        false
    }
    /// Whether packets of a flow must have arrived in order, as far as none was lost. A run that breaks the promise fails.
    fn in_order(&self, _nodes: &[&Self::Node]) -> bool {
        true
    }
    /// How many timers a port has, given the classes of data.
    fn timers(&self, _classes: u8) -> u32 {
        0
    }
    /// The first timer of each layer, where one flow control is [over](Over) another.
    fn first_timers(&self, _classes: u8) -> [u32; 2] {
        [0; 2]
    }
    /// The scheme's name for a flow, which its packets carry.
    fn tag(&self, _tuple: &Tuple) -> u16 {
        0
    }

    /// At a host: a flow was handed to the NIC at `port`.
    #[inline]
    fn flow_started(&self, _node: &mut Self::Node, _at: &mut NodeView<'_>, _port: PortId, _flow: FlowId) {}
    /// At a host: the first packet of a flow is being sent by `port`.
    #[inline]
    fn flow_opened(&self, _node: &mut Self::Node, _at: &mut NodeView<'_>, _port: PortId, _flow: FlowId) {}
    /// At a host: a flow sends by another `port` from now on, because routes have changed.
    #[inline]
    fn flow_moved(&self, _node: &mut Self::Node, _at: &mut NodeView<'_>, _port: PortId, _flow: FlowId) {}
    /// At a host: a signal has arrived at `port`.
    fn signal(&self, _node: &mut Self::Node, _at: &mut NodeView<'_>, _port: PortId, _signal: Signal<Self::Signal>) {}
    /// At a host: a timer set with [`NodeView::set_flow_timer`] went off.
    fn flow_timer(&self, _node: &mut Self::Node, _at: &mut NodeView<'_>, _flow: FlowId) {}
    /// At a host: the memory of the NIC at `port` is full, or no longer so; said again with every packet.
    fn receiver_full(&self, _node: &mut Self::Node, _at: &mut NodeView<'_>, _port: PortId, _full: bool) {}

    /// A data packet has come in by `in_port` and would leave by `chosen`, as load balancing has it: the port it leaves by.
    #[inline]
    fn divert(
        &self,
        _node: &mut Self::Node,
        _at: &mut NodeView<'_>,
        _in_port: PortId,
        _packet: PacketId,
        chosen: PortId,
    ) -> PortId {
        chosen
    }
    /// A packet leaves by `visit.out_port`: the queue of that port it should join. It may yet find no room;
    /// if it does, [`FlowControl::enqueued`] comes next.
    #[inline]
    fn queue(&self, _node: &mut Self::Node, at: &mut NodeView<'_>, visit: &Visit) -> QueueId {
        at.hashed_queue(visit.packet)
    }
    /// Whether a packet for `visit.queue` belongs in the second account of its ingress port and class, in schemes whose
    /// [`Layout::groups`] is 2.
    #[inline]
    fn second_group(&self, _node: &mut Self::Node, _at: &mut NodeView<'_>, _visit: &Visit) -> bool {
        false
    }
    /// Whether a packet may join `visit.queue`, in schemes that have accounts of their own. If not, it is dropped.
    #[inline]
    fn admits(&self, _node: &mut Self::Node, _at: &mut NodeView<'_>, _visit: &Visit) -> bool {
        true
    }
    /// Whether a packet of `size` bytes that leaves as soon as it has come moves nothing here: neither [`FlowControl::enqueued`] nor
    /// [`FlowControl::dequeued`] would do anything, and both are left out. Asked of schemes that do not look at queues, with the account in
    /// which the packet would be for no time; if so, it must be [calm](Buffer::calm).
    #[inline]
    fn unmoved(&self, _account: &Account, _buffer: &Buffer, _size: u64) -> bool {
        false
    }
    /// Whether a packet may go straight on, which is [unmoved](FlowControl::unmoved) and finds the port by which it leaves up, idle, paused by nobody and with
    /// nothing in its queues; and the queue that it would have joined. Nothing may change: [`FlowControl::passed`] comes next if it does, in place of
    /// [`FlowControl::divert`], [`FlowControl::queue`], [`FlowControl::admits`], [`FlowControl::enqueued`] and [`FlowControl::dequeued`]. Asked of schemes with
    /// [`FlowControl::PASSES`] that look at queues or choose.
    #[inline]
    fn passes(&self, _node: &Self::Node, _at: &NodeView<'_>, _visit: &Visit) -> Option<QueueId> {
        None
    }
    /// A packet goes straight on. Whatever it would have changed in its queue has to be changed now.
    #[inline]
    fn passed(&self, _node: &mut Self::Node, _at: &mut NodeView<'_>, _visit: &Visit) {}
    /// A packet was put in `visit.queue`. For each of these calls there is one of [`FlowControl::dequeued`], as long as the scheme empties
    /// no queue itself.
    #[inline]
    fn enqueued(&self, _node: &mut Self::Node, _at: &mut NodeView<'_>, _visit: &Visit) {}
    /// Bytes that telemetry says are left at the port by which a data packet leaves, where the packet is not to hear of all that waits there.
    /// Asked just before [`FlowControl::dequeued`], in runs with telemetry. A packet that finds its port idle and empty reports none.
    #[inline]
    fn reported_queue(&self, _node: &Self::Node, _at: &NodeView<'_>, _visit: &Visit) -> Option<u64> {
        None
    }
    /// A packet has left `visit.queue`, to be sent, to be trimmed, or because its link failed. One that is to be trimmed
    /// still has its payload.
    #[inline]
    fn dequeued(&self, _node: &mut Self::Node, _at: &mut NodeView<'_>, _visit: &Visit) {}
    /// A packet is about to be sent by `port`: for how long the link is still taken by what was not simulated.
    #[inline]
    fn lag(&self, _node: &mut Self::Node, _at: &NodeView<'_>, _port: PortId) -> Time {
        Time::ZERO
    }
    /// A signal passes a switch other than the one that sent it: it came in by `in_port` and leaves by `out_port`, with the size and the message
    /// that this leaves it.
    fn passing(
        &self,
        _node: &mut Self::Node,
        _at: &mut NodeView<'_>,
        _in_port: PortId,
        _out_port: PortId,
        _signal: &mut Signal<Self::Signal>,
    ) {
    }

    /// A packet of `size` bytes has come in by `port`, at a switch or a host. Called of schemes that [count](FlowControl::COUNTS), before anything else hears
    /// of the packet.
    #[inline]
    fn arrived(&self, _node: &mut Self::Node, _at: &mut NodeView<'_>, _port: PortId, _class: ClassId, _size: u16) {}
    /// A packet that came in by `port` and was in no queue is no longer here: its host has taken it, or a switch had no room or no path for it. What was in
    /// a queue is [dequeued](FlowControl::dequeued) instead. Called of schemes that [count](FlowControl::COUNTS).
    #[inline]
    fn gone(&self, _node: &mut Self::Node, _at: &mut NodeView<'_>, _port: PortId, _class: ClassId, _size: u16) {}
    /// A packet is being sent by `port`, of a queue or of a host's own. Called of schemes that [count](FlowControl::COUNTS).
    #[inline]
    fn sent(&self, _node: &mut Self::Node, _at: &mut NodeView<'_>, _port: PortId, _class: ClassId, _size: u16) {}

    /// A neighbour's frame arrived at `port`.
    fn frame(&self, _node: &mut Self::Node, _at: &mut NodeView<'_>, _port: PortId, _frame: Self::Frame) {}
    /// A timer set with [`NodeView::set_timer`] went off.
    fn timer(&self, _node: &mut Self::Node, _at: &mut NodeView<'_>, _port: PortId, _timer: u32) {}
    /// The link at `port` went down: whatever was agreed over it is void.
    fn link_lost(&self, _node: &mut Self::Node, _at: &mut NodeView<'_>, _port: PortId) {}
    /// The occupancy of the switches is being sampled: time to fill histograms.
    fn observe(&self, _node: &mut Self::Node, _at: &NodeView<'_>) {}
    /// The run has ended with a queue of `port` held by [`NodeView::hold_queue`]: the queues that must empty before it may go on.
    /// `None` where the scheme does not say: then it is whatever the packets of that link wait for at its other end.
    fn holder(&self, _node: &Self::Node, _at: NodeId, _port: PortId, _queue: QueueId) -> Option<Vec<Wait>> {
        None
    }
    /// The run has ended while timers are set. Whether what this node has still to say at `port` may let go of what waits at the other end of that link,
    /// though no packet moves.
    fn owes(&self, _node: &Self::Node, _port: PortId) -> bool {
        true
    }
    /// What was counted at all nodes together.
    fn counters(&self, _nodes: &[&Self::Node]) -> Vec<Counter> {
        Vec::new()
    }
    /// A digest of what a node keeps that decides what it does next, with instants as far off as they are; none where it does not say. Time that
    /// is skipped is exact only where all nodes do.
    fn digest(&self, _node: &Self::Node, _now: Time) -> Option<u64> {
        None
    }
    /// What was seen at all nodes together.
    fn histograms(&self, _nodes: &[&Self::Node]) -> Vec<Histogram> {
        Vec::new()
    }
}

/// No flow control: what does not fit is dropped.
#[derive(Clone)]
pub struct NoFlowControl;
impl FlowControl for NoFlowControl {
    type Node = ();
    type Frame = ();
    type Signal = ();
    const LOOKS_AT_QUEUES: bool = false;
    const CHOOSES: bool = false;
    fn node(&self, _: &Site<'_>) {}
    fn digest(&self, _: &(), _: Time) -> Option<u64> {
        Some(0)
    }
    #[inline]
    fn unmoved(&self, account: &Account, buffer: &Buffer, size: u64) -> bool {
        buffer.calm(account, size)
    }
}

/// One flow control over another, such as over PFC as a backstop. The lower one hears of packets, frames and lost links first; queues,
/// paths, signals and flows are the upper one's business alone. Frames and timers of the two are kept apart.
#[derive(Clone)]
pub struct Over<U, L> {
    /// The scheme.
    pub upper: U,
    /// What stays beneath it.
    pub lower: L,
}

/// The layer of the lower of two flow controls.
const LOWER: u8 = 1;

impl<U: FlowControl, L: FlowControl> FlowControl for Over<U, L> {
    const LAYERS: u8 = U::LAYERS + L::LAYERS;
    type Node = (U::Node, L::Node);
    type Frame = Sealed;
    type Signal = U::Signal;
    const LOOKS_AT_QUEUES: bool = U::LOOKS_AT_QUEUES || L::LOOKS_AT_QUEUES;
    const CHOOSES: bool = U::CHOOSES || L::CHOOSES;
    const PASSES: bool = U::PASSES && L::PASSES && !L::CHOOSES;
    const COUNTS: bool = U::COUNTS || L::COUNTS;

    fn node(&self, site: &Site<'_>) -> Self::Node {
        const { assert!(U::LAYERS == 1 && L::LAYERS == 1, "two flow controls can be stacked, not more") };
        const { assert!(L::Signal::BITS + L::Signal::PAYLOADS == 0, "the lower of two flow controls has no signals") };
        (self.upper.node(site), self.lower.node(site))
    }
    fn lossless(&self) -> bool {
        self.lower.lossless() || self.upper.lossless()
    }
    fn in_order(&self, nodes: &[&Self::Node]) -> bool {
        let (upper, lower): (Vec<&U::Node>, Vec<&L::Node>) = nodes.iter().map(|(upper, lower)| (upper, lower)).unzip();
        self.upper.in_order(&upper) && self.lower.in_order(&lower)
    }
    fn timers(&self, classes: u8) -> u32 {
        self.lower.timers(classes) + self.upper.timers(classes)
    }
    fn first_timers(&self, classes: u8) -> [u32; 2] {
        [self.lower.timers(classes), 0]
    }
    fn tag(&self, tuple: &Tuple) -> u16 {
        self.upper.tag(tuple)
    }
    #[inline]
    fn flow_started(&self, node: &mut Self::Node, at: &mut NodeView<'_>, port: PortId, flow: FlowId) {
        self.upper.flow_started(&mut node.0, at, port, flow);
    }
    #[inline]
    fn flow_opened(&self, node: &mut Self::Node, at: &mut NodeView<'_>, port: PortId, flow: FlowId) {
        self.upper.flow_opened(&mut node.0, at, port, flow);
    }
    fn flow_moved(&self, node: &mut Self::Node, at: &mut NodeView<'_>, port: PortId, flow: FlowId) {
        self.upper.flow_moved(&mut node.0, at, port, flow);
    }
    fn signal(&self, node: &mut Self::Node, at: &mut NodeView<'_>, port: PortId, signal: Signal<U::Signal>) {
        self.upper.signal(&mut node.0, at, port, signal);
    }
    fn flow_timer(&self, node: &mut Self::Node, at: &mut NodeView<'_>, flow: FlowId) {
        self.upper.flow_timer(&mut node.0, at, flow);
    }
    fn receiver_full(&self, node: &mut Self::Node, at: &mut NodeView<'_>, port: PortId, full: bool) {
        self.lower.receiver_full(&mut node.1, &mut at.lower(LOWER), port, full);
        self.upper.receiver_full(&mut node.0, at, port, full);
    }
    #[inline]
    fn divert(
        &self,
        node: &mut Self::Node,
        at: &mut NodeView<'_>,
        in_port: PortId,
        packet: PacketId,
        chosen: PortId,
    ) -> PortId {
        self.upper.divert(&mut node.0, at, in_port, packet, chosen)
    }
    #[inline]
    fn queue(&self, node: &mut Self::Node, at: &mut NodeView<'_>, visit: &Visit) -> QueueId {
        self.upper.queue(&mut node.0, at, visit)
    }
    #[inline]
    fn second_group(&self, node: &mut Self::Node, at: &mut NodeView<'_>, visit: &Visit) -> bool {
        self.upper.second_group(&mut node.0, at, visit)
    }
    #[inline]
    fn admits(&self, node: &mut Self::Node, at: &mut NodeView<'_>, visit: &Visit) -> bool {
        self.upper.admits(&mut node.0, at, visit) && self.lower.admits(&mut node.1, &mut at.lower(LOWER), visit)
    }
    #[inline]
    fn unmoved(&self, account: &Account, buffer: &Buffer, size: u64) -> bool {
        self.upper.unmoved(account, buffer, size) && self.lower.unmoved(account, buffer, size)
    }
    #[inline]
    fn passes(&self, node: &Self::Node, at: &NodeView<'_>, visit: &Visit) -> Option<QueueId> {
        self.upper.passes(&node.0, at, visit)
    }
    #[inline]
    fn passed(&self, node: &mut Self::Node, at: &mut NodeView<'_>, visit: &Visit) {
        self.upper.passed(&mut node.0, at, visit);
    }
    #[inline]
    fn enqueued(&self, node: &mut Self::Node, at: &mut NodeView<'_>, visit: &Visit) {
        self.lower.enqueued(&mut node.1, &mut at.lower(LOWER), visit);
        self.upper.enqueued(&mut node.0, at, visit);
    }
    #[inline]
    fn reported_queue(&self, node: &Self::Node, at: &NodeView<'_>, visit: &Visit) -> Option<u64> {
        self.upper.reported_queue(&node.0, at, visit).or_else(|| self.lower.reported_queue(&node.1, at, visit))
    }
    #[inline]
    fn dequeued(&self, node: &mut Self::Node, at: &mut NodeView<'_>, visit: &Visit) {
        self.lower.dequeued(&mut node.1, &mut at.lower(LOWER), visit);
        self.upper.dequeued(&mut node.0, at, visit);
    }
    #[inline(always)]
    fn lag(&self, node: &mut Self::Node, at: &NodeView<'_>, port: PortId) -> Time {
        self.upper.lag(&mut node.0, at, port) + self.lower.lag(&mut node.1, at, port)
    }
    fn passing(
        &self,
        node: &mut Self::Node,
        at: &mut NodeView<'_>,
        in_port: PortId,
        out_port: PortId,
        signal: &mut Signal<U::Signal>,
    ) {
        self.upper.passing(&mut node.0, at, in_port, out_port, signal);
    }
    #[inline]
    fn arrived(&self, node: &mut Self::Node, at: &mut NodeView<'_>, port: PortId, class: ClassId, size: u16) {
        self.lower.arrived(&mut node.1, &mut at.lower(LOWER), port, class, size);
        self.upper.arrived(&mut node.0, at, port, class, size);
    }
    #[inline]
    fn gone(&self, node: &mut Self::Node, at: &mut NodeView<'_>, port: PortId, class: ClassId, size: u16) {
        self.lower.gone(&mut node.1, &mut at.lower(LOWER), port, class, size);
        self.upper.gone(&mut node.0, at, port, class, size);
    }
    #[inline]
    fn sent(&self, node: &mut Self::Node, at: &mut NodeView<'_>, port: PortId, class: ClassId, size: u16) {
        self.lower.sent(&mut node.1, &mut at.lower(LOWER), port, class, size);
        self.upper.sent(&mut node.0, at, port, class, size);
    }
    fn frame(&self, node: &mut Self::Node, at: &mut NodeView<'_>, port: PortId, frame: Sealed) {
        if frame.layer() == LOWER {
            self.lower.frame(&mut node.1, &mut at.lower(LOWER), port, frame.open());
        } else {
            self.upper.frame(&mut node.0, at, port, frame.open());
        }
    }
    fn timer(&self, node: &mut Self::Node, at: &mut NodeView<'_>, port: PortId, timer: u32) {
        let first = self.lower.timers(at.classes());
        match timer.checked_sub(first) {
            None => self.lower.timer(&mut node.1, &mut at.lower(LOWER), port, timer),
            Some(own) => self.upper.timer(&mut node.0, at, port, own),
        }
    }
    fn link_lost(&self, node: &mut Self::Node, at: &mut NodeView<'_>, port: PortId) {
        self.lower.link_lost(&mut node.1, &mut at.lower(LOWER), port);
        self.upper.link_lost(&mut node.0, at, port);
    }
    fn observe(&self, node: &mut Self::Node, at: &NodeView<'_>) {
        self.lower.observe(&mut node.1, at);
        self.upper.observe(&mut node.0, at);
    }
    fn holder(&self, node: &Self::Node, at: NodeId, port: PortId, queue: QueueId) -> Option<Vec<Wait>> {
        self.upper.holder(&node.0, at, port, queue)
    }
    fn owes(&self, node: &Self::Node, port: PortId) -> bool {
        self.upper.owes(&node.0, port) || self.lower.owes(&node.1, port)
    }
    fn counters(&self, nodes: &[&Self::Node]) -> Vec<Counter> {
        let (upper, lower): (Vec<&U::Node>, Vec<&L::Node>) = nodes.iter().map(|(upper, lower)| (upper, lower)).unzip();
        let mut all = self.upper.counters(&upper);
        all.extend(self.lower.counters(&lower));
        all
    }
    fn digest(&self, node: &Self::Node, now: Time) -> Option<u64> {
        let (upper, lower) = (self.upper.digest(&node.0, now)?, self.lower.digest(&node.1, now)?);
        Some(upper.rotate_left(32) ^ lower)
    }
    fn histograms(&self, nodes: &[&Self::Node]) -> Vec<Histogram> {
        let (upper, lower): (Vec<&U::Node>, Vec<&L::Node>) = nodes.iter().map(|(upper, lower)| (upper, lower)).unzip();
        let mut all = self.upper.histograms(&upper);
        all.extend(self.lower.histograms(&lower));
        all
    }
}

/// What a scheme needs of every switch, declared before the run and fixed from then on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Queues of every port and class, if it lays them out itself; otherwise the scenario does.
    pub queues: Option<u32>,
    /// Which of those goes before all others.
    pub express: Option<u32>,
    /// Groups of packets that it distinguishes at every ingress port and class, each with its own share of the memory: 1 or 2.
    pub groups: u32,
    /// How many times it lays out every class of the scenario, as virtual channels.
    pub channels: u8,
    /// The headroom that makes it lossless; `None` for a scheme that does without.
    pub headroom: Option<Headroom>,
    /// Bytes of its longest frame.
    pub frame: u64,
    /// Whether a host whose NIC is full can stop its switch.
    pub stops_for_hosts: bool,
    /// Why it may drop packets although it has its headroom, if it may.
    pub may_drop: Option<&'static str>,
    /// Whether neighbours send only what room was granted for before: nothing that comes in is more than there is room for, whatever gets lost on links and
    /// whatever the size of cells, at hosts as well.
    pub grants: bool,
}

/// What headroom must hold besides what a link has in flight while a pause travels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Headroom {
    /// How many frames may go ahead of a pause, besides a pause and a resume of every class.
    pub other_frames: u64,
}

impl Default for Layout {
    /// The scenario's queues, and no headroom.
    fn default() -> Layout {
        Layout {
            queues: None,
            express: None,
            groups: 1,
            channels: 1,
            headroom: None,
            frame: 0,
            stops_for_hosts: false,
            may_drop: None,
            grants: false,
        }
    }
}

/// What a scheme may want to know of the fabric it is to run on.
pub struct Fabric<'a> {
    /// The wiring.
    pub graph: &'a Graph,
    /// Memory that is shared at each node; `None` for no limit.
    pub pool: &'a [Option<u64>],
    /// Bytes of the largest packet.
    pub largest: u64,
    /// Priority classes.
    pub classes: u8,
    /// A switch's delay.
    pub pipeline: Time,
    /// From the arrival of a frame to its taking effect.
    pub reaction: Time,
    /// What forwarding costs hosts.
    pub forward: Forward,
    /// Queues of a port that have something to send do not get equal bytes.
    pub unfair: bool,
    /// Bytes of a cell of memory; 1 for bytes.
    pub cell: u64,
    /// Hosts whose NICs have so much memory: those that take packets slowly.
    pub nics: Vec<(NodeId, u64)>,
}

/// Whether there is memory enough for a scheme to lose nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Room {
    /// There is.
    Enough,
    /// There is not: what the user should know.
    Short(String),
}

/// What the program knows of a flow control.
pub trait FlowControlDef: Definition {
    /// What it needs of every switch of a fabric. The parameter of a misfit is a key from the root of a scenario.
    fn layout(&self, graph: &Graph) -> Result<Layout, Misfit>;
    /// Bytes of memory that every port and class must have besides headroom, where packets have this size at most and memory these cells. A largest packet
    /// unless it says otherwise: with less, ports would starve one another.
    fn least(&self, largest: u64, cell: u64) -> u64 {
        largest.next_multiple_of(cell)
    }
    /// Whether there is memory enough, for a scheme that keeps within memory by its own means, without headroom.
    fn room(&self, _fabric: &Fabric<'_>) -> Option<Room> {
        None
    }
    /// What the user should know of the sizes that it comes to, as notes of a check.
    fn notes(&self, _fabric: &Fabric<'_>) -> Vec<String> {
        Vec::new()
    }
    /// The sizes that it comes to, and how, as lines of a check: what the first of them is called, and the lines.
    fn explain(&self, _fabric: &Fabric<'_>) -> Option<(&'static str, Vec<String>)> {
        None
    }
    /// What it makes wait for what, for the analysis of deadlocks. A scheme that does not say is taken to stop neighbours class by
    /// class, as PFC does.
    fn waits(&self, _setup: &Setup) -> Waits {
        Waits::Classes
    }
    /// Whether a frame is a pause (true) or a resume of PFC, and of which class.
    fn pause_in(&self, _frame: &Packet) -> Option<(u8, bool)> {
        None
    }
    /// Whether all that its nodes keep follows from the packets of the last round trips, so that flows whose rates are steady go on as they did. Time is skipped
    /// only then.
    fn soon_over(&self) -> bool {
        false
    }
    /// Bytes of state that it keeps in a switch with so many ports and classes, besides the packets, as hardware would hold them.
    fn switch_state(&self, _ports: u64, _classes: u64) -> u64 {
        0
    }
    /// Runs a fabric under it: [`Job::run`] with the mechanism.
    fn run(&self, job: Job<'_>) -> Outcome;
}

/// Called now and then with the simulated time and the packet-hops so far; false ends the run.
pub type Report<'a> = dyn FnMut(Time, u64) -> bool + 'a;

/// A run to be done.
pub struct Job<'a> {
    /// The fabric and its flows.
    pub setup: Setup,
    /// Whether the setup gives flow control the room to lose nothing.
    pub promised: bool,
    /// What runs beside flow control.
    pub chosen: Chosen<'a>,
    /// Receives reports of the progress.
    pub report: &'a mut Report<'a>,
}

impl Job<'_> {
    /// Runs it under `scheme`, on as many threads as the setup allows and the fabric is worth. The scheme's own type is built into the event
    /// loop.
    pub fn run<F: FlowControl>(self, scheme: F) -> Outcome {
        let Job { setup, chosen, report, .. } = self;
        // What may be skipped is known when all nodes have come to one instant.
        let threads = if setup.within.is_some() { 1 } else { setup.threads };
        match partition(&setup, chosen.transport, threads) {
            None => Network::new(setup, scheme, &chosen).run(report),
            Some(plan) => Network::run_shards(setup, &plan, scheme, &chosen, report),
        }
    }
}
