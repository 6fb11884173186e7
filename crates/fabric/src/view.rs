//! What a mechanism sees of the one node that it is called for, and does to it.
//!
//! A [`Site`] is what a node is, before the run. A [`NodeView`] is a node as flow control and marking see it while the run goes on, a
//! [`HostView`] is a host as a transport sees it. All of them number ports from the node's first, so that a mechanism cannot name a port
//! of another node. A number that the node does not have is a mistake: what would act on another node panics, and what only looks panics in
//! debug builds.

use crate::axes::congestion_control::Incident;
use crate::axes::flow_control::Visit;
use crate::buffer::{Account, Buffer};
use crate::clock::Clock;
use crate::host::{BY_SCHEME, BY_TRANSPORT, Receiver, Sender};
use crate::id::{ClassId, FlowId, NodeId, PortId, QueueId};
use crate::message::{Message, Packer, assert_frame, assert_signal};
use crate::packet::{Answer, Kind, NONE, Packet, PacketId, flag};
use crate::probe::{Because, Counted, Counts, Scope, Subject};
use crate::routing::PortMap;
use crate::run::{Class, Core};
use crate::setup::{FlowSpec, PortSetup, Setup};
use crate::topology::{self, Link};
use engine::{Event, Rate, Time};

/// The number of a node's port in the whole fabric.
///
/// # Panics
///
/// If the node has no such port: it may be one of another node.
#[inline]
fn own_port(map: &PortMap, node: u32, port: PortId) -> u32 {
    let ports = map.of(node);
    let number = ports.start + port.0 as u32;
    if number >= ports.end {
        foreign(node, port, ports.len());
    }
    number
}

#[cold]
#[inline(never)]
fn foreign(node: u32, port: PortId, ports: usize) -> ! {
    let plural = if ports == 1 { "" } else { "s" };
    panic!(
        "there is no port {} at node {node}, which has {ports} port{plural}: ports are numbered from the node's first",
        port.0
    )
}

/// A node before the run: its ports and where they lead.
pub struct Site<'a> {
    /// The run.
    pub setup: &'a Setup,
    /// All ports of the fabric.
    pub map: &'a PortMap,
    /// The node.
    pub node: NodeId,
    /// The longest base round trip among the run's flows ([`Setup::longest_rtt`]).
    pub longest_rtt: Time,
}

impl<'a> Site<'a> {
    fn global(&self, port: PortId) -> usize {
        own_port(self.map, self.node.0, port) as usize
    }
    fn kind(&self, node: u32) -> topology::Kind {
        self.setup.graph.nodes[node as usize].kind
    }
    /// Whether it is a host.
    pub fn is_host(&self) -> bool {
        self.kind(self.node.0) == topology::Kind::Host
    }
    /// Whether it forwards packets of others: a switch, or a host that does.
    pub fn forwards(&self) -> bool {
        self.setup.graph.forwards(self.node, self.ports().len())
    }
    /// Its ports.
    pub fn ports(&self) -> impl ExactSizeIterator<Item = PortId> + use<> {
        (0..self.map.of(self.node.0).len() as u16).map(PortId)
    }
    /// The number of a port in the whole fabric.
    pub fn number(&self, port: PortId) -> u32 {
        self.global(port) as u32
    }
    /// The link of a port.
    pub fn link(&self, port: PortId) -> &'a Link {
        &self.setup.graph.links[self.map.link[self.global(port)] as usize]
    }
    /// The rate at which a port sends.
    pub fn rate(&self, port: PortId) -> Rate {
        self.link(port).rate(self.node)
    }
    /// The rate at which packets come in by a port.
    pub fn rate_in(&self, port: PortId) -> Rate {
        self.link(port).rate_to(self.node)
    }
    /// How a port is set up.
    pub fn port(&self, port: PortId) -> &'a PortSetup {
        &self.setup.ports[self.global(port)]
    }
    /// The node that a port leads to.
    pub fn neighbour(&self, port: PortId) -> NodeId {
        NodeId(self.map.node[self.map.peer[self.global(port)] as usize])
    }
    /// Whether a port leads to a host.
    pub fn faces_host(&self, port: PortId) -> bool {
        self.kind(self.neighbour(port).0) == topology::Kind::Host
    }
    /// From the end of a transmission to its being handled at the neighbour, and the same in the opposite direction. There and back is a loop of
    /// control: what a frame takes to act, once it has arrived, is in the first.
    pub fn latency(&self, port: PortId) -> (Time, Time) {
        let to = |node: u32| {
            let switch = self.kind(node) == topology::Kind::Switch;
            self.link(port).delay + if switch { self.setup.switch.pipeline } else { Time::ZERO }
        };
        (to(self.neighbour(port).0) + self.setup.switch.reaction, to(self.node.0))
    }
}

/// One node, a switch or a host, as flow control sees it.
pub struct NodeView<'a> {
    core: &'a mut Core,
    node: u32,
    /// Its first port in the whole fabric.
    base: u32,
    /// Which of two flow controls looks.
    layer: u8,
}

impl<'a> NodeView<'a> {
    #[inline]
    pub(crate) fn new(core: &'a mut Core, node: u32, base: u32) -> NodeView<'a> {
        NodeView { core, node, base, layer: 0 }
    }

    /// The same node as the lower of two flow controls sees it.
    #[inline]
    pub(crate) fn lower(&mut self, layer: u8) -> NodeView<'_> {
        NodeView { core: self.core, node: self.node, base: self.base, layer }
    }

    /// For what is done with every packet: a port of another node is found in debug builds only.
    #[inline]
    fn global(&self, port: PortId) -> u32 {
        if cfg!(debug_assertions) {
            return own_port(&self.core.map, self.node, port);
        }
        self.base + port.0 as u32
    }
    /// For what is rarely done, and would be done to another node.
    #[inline]
    fn own(&self, port: PortId) -> u32 {
        own_port(&self.core.map, self.node, port)
    }
    /// The same with a queue of the port.
    #[inline]
    fn own_queue(&self, port: PortId, queue: QueueId) -> u32 {
        let queues = self.core.switches.per_port;
        assert!(queue.0 < queues, "queue {queue} of a port that has {queues}");
        self.own(port)
    }
    #[inline]
    fn line(&self, port: PortId) -> &crate::port::Port {
        &self.core.ports[self.global(port) as usize]
    }
    /// A flow is held, named and timed at the host that it begins at.
    fn own_flow(&self, flow: FlowId) -> usize {
        assert!(self.core.setup.flows[flow.index()].src == NodeId(self.node), "{flow} does not begin at this node");
        flow.index()
    }

    /// Now.
    #[inline]
    pub fn now(&self) -> Time {
        self.core.time.now
    }
    /// The node.
    pub fn node(&self) -> NodeId {
        NodeId(self.node)
    }
    /// Priority classes of data.
    #[inline]
    pub fn classes(&self) -> u8 {
        self.core.switches.classes as u8
    }
    /// Its ports.
    pub fn ports(&self) -> impl Iterator<Item = PortId> + use<> {
        (0..self.core.map.of(self.node).len() as u16).map(PortId)
    }
    /// A random number below `n`.
    pub fn draw(&mut self, n: u64) -> u64 {
        self.core.dice.streams[self.node as usize].below(n)
    }
}

/// Ports.
impl NodeView<'_> {
    /// Bytes that wait at a port, of all kinds.
    #[inline]
    pub fn queued(&self, port: PortId) -> u64 {
        self.line(port).queued
    }
    /// Bytes that a port has sent.
    pub fn sent(&self, port: PortId) -> u64 {
        self.line(port).tx_bytes
    }
    /// Whether the neighbour has paused a class at a port.
    #[inline]
    pub fn is_paused(&self, port: PortId, class: ClassId) -> bool {
        self.line(port).paused >> class.0 & 1 == 1
    }
    /// Whether the link of a port works.
    #[inline]
    pub fn is_up(&self, port: PortId) -> bool {
        self.line(port).up
    }
    /// When the transmission under way at a port ends; in the past, the port is idle.
    #[inline]
    pub fn free_at(&self, port: PortId) -> Time {
        self.line(port).free_at
    }
    /// Whether a frame waits to be sent by a port.
    pub fn has_frames(&self, port: PortId) -> bool {
        self.line(port).urgent
    }
    /// Whether the node is a host.
    #[inline]
    pub fn is_host(&self) -> bool {
        self.line(PortId(0)).host
    }
    /// Whether packets of others are queued at its ports: at a switch, or at a host that forwards.
    #[inline]
    pub fn has_queues(&self) -> bool {
        self.line(PortId(0)).has_queues()
    }
    /// Whether a port leads to a host.
    #[inline]
    pub fn faces_host(&self, port: PortId) -> bool {
        self.core.ports[self.line(port).peer as usize].host
    }
    /// The rate at which a port sends.
    pub fn rate(&self, port: PortId) -> Rate {
        self.core.rate(self.global(port))
    }
    /// The ports on shortest paths to `host`.
    #[inline]
    pub fn paths(&self, host: NodeId) -> impl Iterator<Item = PortId> + '_ {
        self.core.routing.next_hops(self.node, host.0).iter().map(|port| PortId((port - self.base) as u16))
    }
    /// The node to which the neighbour at `port` passes a packet on by the rule of routing. That is in the routing tables, which the
    /// control plane gives to every node; it says nothing about the neighbour itself.
    pub fn beyond(&self, port: PortId, id: PacketId) -> Option<NodeId> {
        let (packet, map) = (&self.core.pool[id], &self.core.map);
        let neighbour = map.node[self.line(port).peer as usize];
        let next = self.core.path(neighbour, packet.dst, &packet.tuple, packet.stamp)?;
        Some(NodeId(map.node[map.peer[next as usize] as usize]))
    }
    /// The port by which something goes back to the host that sent a data packet, if any path is left.
    pub fn path_back(&self, data: &Packet) -> Option<PortId> {
        let src = self.core.setup.flows[data.flow as usize].src;
        let port = self.core.path(self.node, src.0, &data.tuple.reversed(), self.core.time.now)?;
        Some(PortId((port - self.base) as u16))
    }
}

/// Packets and queues.
impl NodeView<'_> {
    /// A packet that is here.
    #[inline]
    pub fn packet(&self, id: PacketId) -> &Packet {
        &self.core.pool[id]
    }
    /// A packet that is here, to be changed.
    #[inline]
    pub fn packet_mut(&mut self, id: PacketId) -> &mut Packet {
        &mut self.core.pool[id]
    }
    /// The word of a queued packet that is the scheme's own.
    #[inline]
    pub fn word(&mut self, id: PacketId) -> &mut u32 {
        &mut self.core.pool[id].next_rank
    }
    /// A queue for a packet: its class's, and among these by hash of the flow.
    #[inline]
    pub fn hashed_queue(&self, id: PacketId) -> QueueId {
        QueueId(self.core.hashed_queue(id))
    }
    /// The queues of a class at any port.
    pub fn class_queues(&self, class: ClassId) -> impl Iterator<Item = QueueId> + Clone + use<> {
        self.core.class_queues(class.0).map(QueueId)
    }
    #[inline]
    fn slot(&self, port: PortId, queue: QueueId) -> usize {
        debug_assert!(self.has_queues(), "a host that does not forward has no queues");
        debug_assert!(queue.0 < self.core.switches.per_port, "a queue of another port");
        (self.line(port).first_queue + queue.0) as usize
    }
    /// Bytes in a queue.
    #[inline]
    pub fn queue_bytes(&self, port: PortId, queue: QueueId) -> u64 {
        self.core.switches.queues[self.slot(port, queue)].bytes
    }
    /// The first packet in a queue.
    #[inline]
    pub fn head(&self, port: PortId, queue: QueueId) -> Option<PacketId> {
        let id = self.core.switches.queues[self.slot(port, queue)].packets.head();
        (id != NONE).then_some(id)
    }
    /// Whether a queue has packets.
    #[inline]
    pub fn is_filled(&self, port: PortId, queue: QueueId) -> bool {
        self.core.switches.masks.is_filled(self.global(port), queue.0)
    }
    /// Whether the scheme holds a queue.
    #[inline]
    pub fn is_held(&self, port: PortId, queue: QueueId) -> bool {
        self.core.switches.masks.is_held(self.global(port), queue.0)
    }
    /// How many queues of a port have something to send and are not held by the scheme.
    #[inline]
    pub fn active_queues(&self, port: PortId) -> u32 {
        self.core.switches.masks.active(self.global(port))
    }
    /// The queues of a port that have packets.
    pub fn filled_queues(&self, port: PortId) -> impl Iterator<Item = QueueId> + '_ {
        self.core.switches.masks.all_filled(self.global(port)).map(QueueId)
    }
    /// Keeps a queue from sending, or lets it go on.
    #[inline]
    pub fn hold_queue(&mut self, port: PortId, queue: QueueId, hold: bool) {
        // Schemes call this with every packet, and rarely is there anything to change.
        if self.core.switches.masks.is_held(self.global(port), queue.0) != hold {
            let port = self.own_queue(port, queue);
            self.core.switches.masks.set_held(port, queue.0, hold);
            self.core.refresh_queue(port, queue.0);
            self.core.probes.note_single();
            if self.core.probes.causes.is_some() {
                self.core.note_stop(port, Scope::Held(queue), hold);
            }
            if !hold {
                self.core.kicks.push(port);
            }
        }
    }
    /// Moves all that waits in a queue of a port to the end of a queue of the same or another port. No hook hears of it: packets will
    /// leave by another port or queue than they joined.
    pub fn shift(&mut self, from: (PortId, QueueId), to: (PortId, QueueId)) {
        let ports = (self.own_queue(from.0, from.1), self.own_queue(to.0, to.1));
        let (source, target) = (self.slot(from.0, from.1), self.slot(to.0, to.1));
        let (from, to) = ((ports.0, from.1.0), (ports.1, to.1.0));
        let core = &mut *self.core;
        let bytes = core.switches.queues[source].bytes;
        if bytes == 0 {
            return;
        }
        while let Some(id) = core.switches.queues[source].pop(&core.pool) {
            core.mark_moving(source, target, id);
            core.switches.queues[target].push(&mut core.pool, id);
        }
        [source, target].into_iter().for_each(|slot| core.note_rearranged(slot));
        core.ports[from.0 as usize].queued -= bytes;
        core.ports[to.0 as usize].queued += bytes;
        core.switches.masks.set_filled(from.0, from.1, false);
        core.switches.masks.set_filled(to.0, to.1, true);
        core.kicks.push(to.0);
    }
    /// The packets in a queue, first to last.
    pub fn waiting(&self, port: PortId, queue: QueueId) -> impl Iterator<Item = PacketId> + '_ {
        self.core.switches.queues[self.slot(port, queue)].packets.iter(&self.core.pool)
    }
    /// Moves those packets of a queue that `which` chooses to the end of another queue of the same port, in their order. No hook hears
    /// of it.
    pub fn sort_out(&mut self, port: PortId, from: QueueId, to: QueueId, which: impl Fn(PacketId, &Packet) -> bool) {
        let (number, source, target) = (self.own(port), self.slot(port, from), self.slot(port, to));
        assert!(source != target, "packets are sorted into another queue");
        let core = &mut *self.core;
        let mut all = std::mem::take(&mut core.switches.queues[source]);
        while let Some(id) = all.pop(&core.pool) {
            let queue = if which(id, &core.pool[id]) { target } else { source };
            core.mark_moving(source, queue, id);
            core.switches.queues[queue].push(&mut core.pool, id);
        }
        [source, target].into_iter().for_each(|slot| core.note_rearranged(slot));
        for (slot, queue) in [(source, from), (target, to)] {
            core.switches.masks.set_filled(number, queue.0, core.switches.queues[slot].bytes > 0);
        }
        core.kicks.push(number);
    }
    /// Puts a packet ahead of all others in its queue, if it is still there.
    pub fn put_first(&mut self, port: PortId, queue: QueueId, packet: PacketId) {
        self.own(port);
        let slot = self.slot(port, queue);
        let others: Vec<PacketId> = self.waiting(port, queue).collect();
        if !others.contains(&packet) {
            return;
        }
        let core = &mut *self.core;
        let queue = &mut core.switches.queues[slot];
        *queue = Default::default();
        queue.push(&mut core.pool, packet);
        others.into_iter().filter(|&id| id != packet).for_each(|id| queue.push(&mut core.pool, id));
        core.note_rearranged(slot);
    }
    /// Takes everything out of a queue, to be dropped. The scheme is to do for each packet what it does when one leaves, and to
    /// discard it with [`NodeView::drop_packet`].
    ///
    /// # Panics
    ///
    /// If there is one flow control [over](crate::axes::flow_control::Over) another, which would not hear of it.
    pub fn empty_queue(&mut self, port: PortId, queue: QueueId) -> Vec<Visit> {
        assert!(
            self.core.switches.layers == 1,
            "one of two flow controls empties a queue: the other would not hear of it"
        );
        let port = self.own_queue(port, queue);
        self.core.empty_queue(port, queue.0)
    }
    /// Discards a packet that the scheme took out of its queue.
    pub fn drop_packet(&mut self, packet: PacketId) {
        self.core.counts.dropped_scheme += 1;
        self.core.discard(packet);
    }
    /// The account of packets that came in by a port in a class, and the memory it is in.
    #[inline]
    pub fn account(&mut self, port: PortId, class: ClassId) -> (&mut Account, &Buffer) {
        self.group_account(port, class, false)
    }
    /// The account of one of two groups of packets, see [`Layout::groups`](crate::axes::flow_control::Layout), and the memory it is in.
    #[inline]
    pub fn group_account(&mut self, port: PortId, class: ClassId, second: bool) -> (&mut Account, &Buffer) {
        let number = self.core.account_number(self.global(port), class.0, second);
        let switches = &mut self.core.switches;
        (&mut switches.accounts[number], &switches.buffers[self.node as usize])
    }
}

/// Flows that begin at this host.
impl NodeView<'_> {
    /// The flows that send by a port; finished ones may be among them.
    pub fn flows_at(&self, port: PortId) -> impl ExactSizeIterator<Item = FlowId> + '_ {
        assert!(self.is_host(), "flows begin at hosts");
        self.core.hosts.nics[self.line(port).nic as usize].flows.iter().copied().map(FlowId)
    }
    /// What was asked of a flow.
    #[inline]
    pub fn flow(&self, flow: FlowId) -> &FlowSpec {
        &self.core.setup.flows[flow.index()]
    }
    /// The class of a flow.
    pub fn flow_class(&self, flow: FlowId) -> ClassId {
        self.core.setup.flows[flow.index()].class
    }
    /// Whether the last byte of a flow was acknowledged.
    pub fn flow_done(&self, flow: FlowId) -> bool {
        self.core.hosts.senders[self.own_flow(flow)].finished != Time::MAX
    }
    /// Whether a flow has sent its first packet.
    pub fn flow_open(&self, flow: FlowId) -> bool {
        self.core.hosts.senders[self.own_flow(flow)].high > 0
    }
    /// The tag of a flow that has started.
    pub fn flow_tag(&self, flow: FlowId) -> u16 {
        self.core.hosts.senders[self.own_flow(flow)].tag
    }
    /// Gives a flow that has started another tag, which the packets it sends from now on carry.
    pub fn set_flow_tag(&mut self, flow: FlowId, tag: u16) {
        let place = self.own_flow(flow);
        self.core.hosts.senders[place].tag = tag;
    }
    /// Keeps a flow from sending, or lets it go on.
    pub fn hold_flow(&mut self, flow: FlowId, hold: bool) {
        let place = self.own_flow(flow);
        let core = &mut *self.core;
        let sender = &mut core.hosts.senders[place];
        if (sender.held & BY_SCHEME != 0) == hold {
            return;
        }
        sender.held ^= BY_SCHEME;
        core.hosts.holds[place].turn(core.time.now, hold);
        core.count_standstill(flow.0, !hold);
        core.note_held(flow.0, hold);
        if core.probes.causes.is_some() {
            let port = core.hosts.nics[core.hosts.senders[place].nic as usize].port;
            core.note_stop(port, Scope::Flow(flow), hold);
        }
        core.note(flow.0);
        if !hold {
            core.kicks.push(core.hosts.nics[core.hosts.senders[place].nic as usize].port);
        }
    }
    /// Says that it is not the neighbour but `node` that wants a flow held which is: recordings show it.
    pub fn held_by(&mut self, flow: FlowId, node: NodeId) {
        self.core.probes.held_by(flow.0, node.0);
        self.held_for(flow, Some(node), Subject::flow(flow));
    }
}

/// Why something is stopped, for runs in which that is asked. A scheme says what it orders and what it obeys; none of it changes the run.
impl NodeView<'_> {
    /// The neighbour at `port` is being told to stop what `subject` names.
    #[inline]
    pub fn orders(&mut self, port: PortId, subject: Subject, because: Because) {
        if self.core.probes.causes.is_some() {
            let port = self.own(port);
            self.core.note_order(port, None, subject, because);
        }
    }
    /// The sender of a flow is being told to stop it.
    #[inline]
    pub fn orders_sender(&mut self, flow: FlowId, because: Because) {
        if self.core.probes.causes.is_some() {
            let port = self.own(PortId(0));
            self.core.note_order(port, Some(flow), Subject::flow(flow), because);
        }
    }
    /// What has just stopped at `port` has because the neighbour ordered what `subject` names.
    #[inline]
    pub fn stopped_for(&mut self, port: PortId, scope: Scope, subject: Subject) {
        if self.core.probes.causes.is_some() {
            let (port, now) = (self.own(port), self.core.time.now);
            self.core.probes.stopped_by(port, scope, now, None, subject);
        }
    }
    /// A flow that has just been held is because `by`, or the neighbour, ordered what `subject` names.
    #[inline]
    pub fn held_for(&mut self, flow: FlowId, by: Option<NodeId>, subject: Subject) {
        if self.core.probes.causes.is_some() {
            let place = self.own_flow(flow);
            let core = &mut *self.core;
            let port = core.hosts.nics[core.hosts.senders[place].nic as usize].port;
            core.probes.stopped_by(port, Scope::Flow(flow), core.time.now, by.map(|node| node.0), subject);
        }
    }
    /// What has just stopped at `port` has by a rule of the scheme, if it was not ordered: `rule` says in a clause which.
    #[inline]
    pub fn stopped_by_rule(&mut self, port: PortId, scope: Scope, rule: &'static str) {
        if self.core.probes.causes.is_some() {
            let (port, now) = (self.own(port), self.core.time.now);
            self.core.probes.stopped_by_rule(port, scope, now, rule);
        }
    }
    /// A queue that this node has just held is because of something at the node itself.
    #[inline]
    pub fn held_because(&mut self, port: PortId, queue: QueueId, because: Because) {
        if self.core.probes.causes.is_some() {
            let port = self.own(port);
            self.core.note_own(port, Scope::Held(queue), because);
        }
    }
}

/// Frames, signals, pauses and timers.
impl NodeView<'_> {
    /// Sends a frame of `size` bytes to the neighbour at a port, ahead of everything else.
    pub fn send_frame<M: Message>(&mut self, port: PortId, size: u16, message: M) {
        const { assert_frame::<M>() };
        let port = self.own(port);
        if self.core.ports[port as usize].up {
            let id = self.make_frame(port, size, message);
            if self.core.setup.habits.frames_in_turn && self.core.ports[port as usize].has_queues() {
                return self.core.queue_control(port, id);
            }
            let p = &mut self.core.ports[port as usize];
            p.queued += size as u64;
            p.frames.push(&mut self.core.pool, id);
            p.urgent = true;
            self.core.kicks.push(port);
        } else if self.core.setup.habits.leaks
            && let Some(dice) = &mut self.core.dice.shared
        {
            dice.pass(); // the identification of a frame that is never sent
        }
    }

    /// Sends a frame as [`NodeView::send_frame`] does. If a frame of this flow control that `supersedes` takes for outdated still waits
    /// at the port, that one says `message` instead, in its place, and is given back as it was.
    ///
    /// So no more frames wait than there are subjects to speak of, however often the scheme changes its mind. The reference sends each.
    pub fn send_latest<M: Message>(
        &mut self,
        port: PortId,
        size: u16,
        message: M,
        supersedes: impl Fn(&M) -> bool,
    ) -> Option<M> {
        if self.core.setup.clock == Clock::Exact && self.has_frames(port) {
            let (own, layer) = (self.own(port), self.layer);
            let core = &mut *self.core;
            let waiting = |id: PacketId| Some((id, core.pool.frame_says::<M>(id, layer).filter(&supersedes)?));
            let found = core.ports[own as usize].frames.iter(&core.pool).find_map(waiting);
            if let Some((id, old)) = found {
                core.pool.say_instead(id, message);
                return Some(old);
            }
        }
        self.send_frame(port, size, message);
        None
    }

    /// Sends a frame as [`NodeView::send_frame`] does, but by a switch's control queue, so that it delays no other frame.
    pub fn send_note<M: Message>(&mut self, port: PortId, size: u16, message: M) {
        const { assert_frame::<M>() };
        let port = self.own(port);
        if self.core.ports[port as usize].up {
            let id = self.make_frame(port, size, message);
            self.core.queue_signal(port, id);
        }
    }

    fn make_frame(&mut self, port: u32, size: u16, message: impl Message) -> PacketId {
        let core = &mut *self.core;
        assert!(core.wire.holds(size), "a frame of {size} B is longer than any packet");
        core.probes.count_at(port, Counted::Frame, 1);
        core.counts.created += 1;
        core.counts.control_bytes += size as u64;
        if let Some(dice) = &mut core.dice.shared {
            dice.pass(); // its identification
        }
        let now = core.time.now;
        let blank = Packet { size, stamp: now, next_arrival: now, ..Packet::BLANK };
        core.pool.insert_frame(blank, self.layer, message)
    }

    /// Sends a control packet of `size` bytes by a port of a switch to the host that sent the data packet `data`, in
    /// the control queue of every port on its path: never paused, never short of room. It carries the data packet's
    /// flow and class, and its addresses swapped.
    pub fn send_signal<M: Message>(&mut self, port: PortId, data: &Packet, size: u16, message: M) {
        const { assert_signal::<M>() };
        let (bits, _) = Packer::of(message);
        self.send_back(
            port,
            data,
            Packet { seq: bits as u64, tag: self.layer as u16, size, kind: Kind::Signal, ..*data },
        );
    }

    fn send_back(&mut self, port: PortId, data: &Packet, packet: Packet) {
        let (port, core) = (self.own(port), &mut *self.core);
        if !core.ports[port as usize].up {
            return;
        }
        assert!(core.wire.holds(packet.size), "a signal of {} B is longer than any packet", packet.size);
        core.probes.count_at(port, Counted::Signal, 1);
        core.counts.created += 1;
        core.counts.control_bytes += packet.size as u64;
        let stamp = if packet.kind == Kind::Notice { data.stamp } else { core.time.now };
        let id = core.pool.insert(Packet {
            stamp,
            dst: core.setup.flows[data.flow as usize].src.0,
            tuple: data.tuple.reversed(),
            flags: 0,
            reports: 0,
            ..packet
        });
        core.queue_signal(port, id);
    }

    /// Reports an egress port to the congestion control of a data packet's sender, in a control packet of `size` bytes: what waits there, and
    /// how fast it is. `word` is the program's own.
    pub fn notify_sender(&mut self, data: PacketId, out_port: PortId, size: u16, word: u16) {
        let data = self.core.pool[data];
        let Some(back) = self.path_back(&data) else { return };
        let p = self.line(out_port);
        let mbps = self.core.wire.mbps[p.table as usize] as u64;
        let seq = p.queued.min(u32::MAX as u64) | mbps << 32;
        self.send_back(back, &data, Packet { seq, tag: word, size, kind: Kind::Notice, ..data });
    }

    /// Stops or resumes one class of everything that a port sends.
    pub fn pause_class(&mut self, port: PortId, class: ClassId, pause: bool) {
        let port = self.own(port);
        self.core.pause_class(port, class.0, pause);
    }

    /// Resumes one class of everything that a port sends because its pause has run out, which is not logged: nobody said so.
    pub fn end_pause(&mut self, port: PortId, class: ClassId) {
        let port = self.own(port);
        self.core.turn_class(port, class.0, false);
    }

    /// Stops or resumes one queue of a switch's port, unless it is so already. The port counts as paused while any of
    /// its queues is.
    pub fn pause_queue(&mut self, port: PortId, queue: QueueId, pause: bool) {
        let (port, core) = (self.own_queue(port, queue), &mut *self.core);
        if core.switches.masks.is_paused(port, queue.0) == pause {
            return;
        }
        core.switches.masks.set_paused(port, queue.0, pause);
        core.refresh_queue(port, queue.0);
        core.probes.note_single();
        if core.probes.causes.is_some() {
            core.note_stop(port, Scope::Queue(queue), pause);
        }
        let class = (queue.0 / core.setup.switch.queues) as u8;
        let paused = core.class_queues(class).any(|q| core.switches.masks.is_paused(port, q));
        let whole = core.class_queues(class).all(|q| core.switches.masks.is_paused(port, q));
        core.probes.breadth.turn(port, class, core.time.now, whole);
        core.log_pause(port, pause);
        core.note_pause(port, class, pause, paused);
    }

    /// Calls the scheme's timer hook at `at`, with the port and a number below [`FlowControl::timers`](crate::axes::FlowControl::timers).
    pub fn set_timer(&mut self, port: PortId, timer: u32, at: Time) {
        let switches = &self.core.switches;
        let own = switches.first_timers[self.layer as usize] + timer;
        assert!(own < switches.declared_timers, "timer {timer} is more than the scheme declares for a port");
        let source = self.own(port) * switches.timers + own;
        self.core.plan_timer(at, Class::PortTimer, source);
    }

    /// Calls the scheme's flow-timer hook at `at`.
    pub fn set_flow_timer(&mut self, flow: FlowId, at: Time) {
        self.own_flow(flow);
        self.core.plan_timer(at, Class::HoldTimer, flow.0);
    }
}

/// What a receiver does about a data packet.
#[derive(Clone, Copy, Debug)]
pub struct Reply {
    /// An ACK or NACK, or nothing. It is made of the packet itself: it keeps the mark, the stamp and the telemetry.
    pub answer: Option<Kind>,
    /// What the answer says: the next byte expected, or what else the transport understands.
    pub seq: u64,
    /// The message is complete with this packet.
    pub ended: bool,
}

/// One host, as a transport sees it.
pub struct HostView<'a> {
    core: &'a mut Core,
    node: u32,
    base: u32,
}

impl<'a> HostView<'a> {
    #[inline]
    pub(crate) fn new(core: &'a mut Core, node: u32, base: u32) -> HostView<'a> {
        HostView { core, node, base }
    }
    #[inline]
    fn global(&self, port: PortId) -> u32 {
        if cfg!(debug_assertions) {
            return own_port(&self.core.map, self.node, port);
        }
        self.base + port.0 as u32
    }
    fn begins_here(&self, flow: FlowId) -> bool {
        self.core.setup.flows[flow.index()].src == NodeId(self.node)
    }
    fn own_nic(&self, port: PortId) -> u32 {
        self.core.ports[own_port(&self.core.map, self.node, port) as usize].nic
    }
    /// Now.
    #[inline]
    pub fn now(&self) -> Time {
        self.core.time.now
    }
    /// The run.
    #[inline]
    pub fn setup(&self) -> &Setup {
        &self.core.setup
    }
    /// What was asked of a flow.
    #[inline]
    pub fn flow(&self, flow: FlowId) -> &FlowSpec {
        &self.core.setup.flows[flow.index()]
    }
    /// A packet.
    #[inline]
    pub fn packet(&self, id: PacketId) -> &Packet {
        &self.core.pool[id]
    }
    /// A packet, to be changed.
    #[inline]
    pub fn packet_mut(&mut self, id: PacketId) -> &mut Packet {
        &mut self.core.pool[id]
    }
    /// What an ACK says beyond its header; only with a transport that is [selective](crate::axes::TransportDef::selective).
    #[inline]
    pub fn extra(&mut self, id: PacketId) -> &mut Answer {
        self.core.pool.answer(id)
    }
    /// The sending side of a flow from this host.
    #[inline]
    pub fn sender(&mut self, flow: FlowId) -> &mut Sender {
        debug_assert!(self.begins_here(flow), "{flow} does not begin at this host");
        &mut self.core.hosts.senders[flow.index()]
    }
    /// The receiving side of a flow to this host.
    #[inline]
    pub fn receiver(&mut self, flow: FlowId) -> &mut Receiver {
        debug_assert!(self.core.setup.flows[flow.index()].dst == NodeId(self.node), "{flow} does not end at this host");
        &mut self.core.hosts.receivers[flow.index()]
    }
    /// Whether a flow's sender is done, wherever it is. Only a transport whose runs are
    /// [sequential](crate::axes::TransportDef::sequential) may ask that of another host.
    pub fn sender_done(&self, flow: FlowId) -> bool {
        self.core.hosts.senders[flow.index()].done()
    }
    /// What the run counts.
    #[inline]
    pub fn counts(&mut self) -> &mut Counts {
        &mut self.core.counts
    }
    /// A random number below `n`.
    pub fn draw(&mut self, n: u64) -> u64 {
        self.core.dice.streams[self.node as usize].below(n)
    }
    /// The rate of the link that a flow sends by.
    pub fn line(&self, flow: FlowId) -> Rate {
        self.core.hosts.nics[self.core.hosts.senders[flow.index()].nic as usize].line
    }
    /// How long a packet of `size` bytes takes on the link of a port towards this host.
    pub fn on_wire(&self, port: PortId, size: u16) -> Time {
        let far = self.core.ports[self.global(port) as usize].peer;
        self.core.wire.time(self.core.ports[far as usize].table, size)
    }
    /// The number of a port among those of all hosts.
    #[inline]
    pub fn nic(&self, port: PortId) -> u32 {
        self.core.ports[self.global(port) as usize].nic
    }

    /// Answers a data packet, or not.
    #[inline(always)]
    pub fn reply(&mut self, port: PortId, id: PacketId, reply: Reply) {
        let (port, core) = (self.global(port), &mut *self.core);
        let flow = core.pool[id].flow;
        if core.hosts.census.is_some() {
            let over = core.hosts.receivers[flow as usize].finished != Time::MAX;
            core.count_flow(port, id, over);
        }
        if reply.ended {
            if core.pool.traced() {
                core.complete_parts(flow, id);
            }
            let host = core.pool[id].dst;
            core.ended_at(flow, host);
        }
        core.answer(port, id, reply.answer, reply.seq);
    }

    /// Sends a control packet of the transport's own from the receiver of a flow to its sender, whose data came in by `port`.
    pub fn send(&mut self, port: PortId, packet: Packet) {
        let here = self.own_nic(port);
        self.core.counts.created += 1;
        let id = self.core.pool.insert(packet);
        self.core.send_from_receiver(here, id);
    }

    /// Calls the transport's timer hook for a port at `at`.
    pub fn set_timer(&mut self, port: PortId, at: Time) {
        let nic = self.own_nic(port);
        let rank = self.core.rank(at);
        self.core.time.events.push(Event::new(at, rank, Class::TransportTimer as u8, nic));
    }

    /// Bytes of message that a flow may have in flight; `u64::MAX` for any number.
    #[inline]
    pub fn window(&self, flow: FlowId) -> u64 {
        self.core.window(flow.0)
    }

    /// Makes sure that the deadline in [`Sender::expires`] is kept. Needed whenever it comes sooner than before.
    #[inline]
    pub fn arm(&mut self, flow: FlowId) {
        self.core.arm(flow.0);
    }
    /// Notifies the NIC that what a flow may send has changed: its `next`, its `high` or its size. Not needed after an ACK.
    pub fn note(&mut self, flow: FlowId) {
        self.core.note(flow.0);
    }
    /// A flow sends nothing before this instant.
    pub fn due_at(&mut self, flow: FlowId, due: Time) {
        assert!(self.begins_here(flow), "{flow} does not begin at this host");
        self.core.due_at(flow.0, due);
    }
    /// When a flow may send at the earliest.
    pub fn due(&self, flow: FlowId) -> Time {
        self.core.hosts.senders[flow.index()].due
    }
    /// Keeps a flow from sending for want of a grant, or lets it go on.
    pub fn hold(&mut self, flow: FlowId, hold: bool) {
        assert!(self.begins_here(flow), "{flow} does not begin at this host");
        let s = &mut self.core.hosts.senders[flow.index()];
        s.held = if hold { s.held | BY_TRANSPORT } else { s.held & !BY_TRANSPORT };
        self.core.note(flow.0);
    }
    /// Notifies a flow's congestion control and its path selector of what happened.
    pub fn report(&mut self, flow: FlowId, incident: Incident) {
        assert!(self.begins_here(flow), "{flow} does not begin at this host");
        self.core.report_incident(flow.0, incident);
    }
    /// The same of packets that are lost because nothing was heard for the time of a timeout.
    pub fn report_timeout(&mut self, flow: FlowId) {
        self.report(flow, Incident::Lost);
        self.core.report_silence(flow.0);
    }
    /// Whether a data packet is the last of its message.
    pub fn is_last(packet: &Packet) -> bool {
        packet.flags & flag::LAST != 0
    }
}
