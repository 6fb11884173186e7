//! A workbench around one node, for unit tests of a mechanism: no network, no event loop of others.
//!
//! The node is a real one. A packet that arrives goes by the same code as in a run: load balancing, the hooks of flow control, admission,
//! queues, marking and the choice among queues. Its neighbours are stubs: nothing runs there, and what the node sends to them is kept for
//! the test to look at.
//!
//! ```
//! use fabric::axes::flow_control::{FlowControl, Visit};
//! use fabric::bench::Bench;
//! use fabric::id::{ClassId, PortId};
//! use fabric::message;
//! use fabric::view::{NodeView, Site};
//!
//! message! {
//!     /// Stop sending.
//!     pub struct Stop { class: ClassId }
//! }
//!
//! /// A neighbour that fills a queue with more than 2000 bytes is asked to stop.
//! #[derive(Clone)]
//! struct Shy;
//! impl FlowControl for Shy {
//!     type Node = ();
//!     type Frame = Stop;
//!     type Signal = ();
//!     fn node(&self, _: &Site<'_>) {}
//!     fn enqueued(&self, _: &mut (), at: &mut NodeView<'_>, visit: &Visit) {
//!         if at.queue_bytes(visit.out_port, visit.queue) > 2000 {
//!             at.send_frame(visit.in_port, 64, Stop { class: visit.class });
//!         }
//!     }
//!     fn frame(&self, _: &mut (), at: &mut NodeView<'_>, port: PortId, stop: Stop) {
//!         at.pause_class(port, stop.class, true);
//!     }
//! }
//!
//! // A switch with three hosts. Port 2 sends only when the test says so.
//! let mut bench = Bench::switch(Shy, 3);
//! bench.close(PortId(2));
//! let flow = bench.flow(0, 2, 0);
//! (0..2).for_each(|_| bench.arrive(PortId(0), flow));
//! // Two packets of 1000 bytes and their headers are 2124 bytes: the second is one too many.
//! assert_eq!(bench.frames(), [(PortId(0), Stop { class: ClassId(0) })]);
//! assert_eq!(bench.transmit(PortId(2)).unwrap().packet.seq, 0);
//! // The host at port 2 asks the switch to stop in turn.
//! bench.frame(PortId(2), Stop { class: ClassId(0) });
//! assert!(bench.transmit(PortId(2)).is_none());
//! ```

use crate::axes::congestion_control::{CongestionControl, Notice, Unlimited};
use crate::axes::flow_control::{FlowControl, Job, Layout, Signal};
use crate::axes::load_balancing::Label;
use crate::axes::queueing::Discipline;
use crate::axes::transport::Ground;
use crate::axes::{
    Chosen, CongestionControlDef, Counter, Definition, EdgeControlDef, FlowControlDef, LoadBalancingDef, MarkingDef,
    QueueingDef, Transport, TransportDef,
};
use crate::buffer::Share;
use crate::host::BY_SCHEME;
use crate::id::{ClassId, FlowId, NodeId, PortId, QueueId};
use crate::message::{Message, Packer, Payload, Sealed};
use crate::packet::{Answer, Kind, Packet, PacketId, flag};
use crate::probe::Counts;
use crate::routing::PortMap;
use crate::run::{Class, Network, Outcome};
use crate::setup::{FlowSpec, Setup, SlowReceiver};
use crate::topology::{self, Graph};
use crate::view::{HostView, NodeView, Reply};
use engine::{Event, Misfit, Parameter, Parameters, Rate, Raw, Time, ValueError};
use std::sync::Arc;

/// Flows from each host to each other host of a bench.
const FLOWS: u16 = 8;
/// Bytes of each of them.
const SIZE: u64 = 1_000_000;

/// A bench that is being set up.
pub struct Builder<'a> {
    setup: Setup,
    node: NodeId,
    chosen: Chosen<'a>,
}

impl Builder<'static> {
    /// A switch whose first ports lead to so many hosts and whose next ports lead to so many other switches, at 100 Gb/s over 1 us each.
    ///
    /// Host `p` is the one at port `p`, or behind the switch at port `p`. With two or more switches there is one host more, with the next
    /// number, which all of those switches lead to by paths of the same length.
    pub fn switch(hosts: u16, switches: u16) -> Builder<'static> {
        let (hosts, ports) = (hosts as u32, hosts as u32 + switches as u32);
        let mut graph = Graph::default();
        let far = (switches > 1).then_some(ports);
        (0..ports).chain(far).for_each(|host| _ = graph.add(topology::Kind::Host, 0, format!("h{host}")));
        let node = graph.add(topology::Kind::Switch, 1, "bench");
        let next: Vec<NodeId> =
            (hosts..ports).map(|port| graph.add(topology::Kind::Switch, 2, format!("next{port}"))).collect();
        let wire =
            |graph: &mut Graph, a: NodeId, b: NodeId| graph.connect(a, b, Rate::from_gbps(100), Time::from_us(1));
        (0..hosts).for_each(|host| wire(&mut graph, NodeId(host), node));
        next.iter().for_each(|&switch| wire(&mut graph, switch, node));
        (hosts..ports).zip(&next).for_each(|(host, &switch)| wire(&mut graph, NodeId(host), switch));
        if let Some(far) = far {
            let last = graph.add(topology::Kind::Switch, 3, "last");
            next.iter().for_each(|&switch| wire(&mut graph, switch, last));
            wire(&mut graph, NodeId(far), last);
        }
        Builder::plain(graph, node)
    }

    /// A host, number 0, with one link at 100 Gb/s over 1 us to a switch with so many other hosts.
    pub fn host(others: u16) -> Builder<'static> {
        let mut graph = Graph::default();
        (0..=others).for_each(|host| _ = graph.add(topology::Kind::Host, 0, format!("h{host}")));
        let switch = graph.add(topology::Kind::Switch, 1, "next");
        (0..=others as u32)
            .for_each(|host| graph.connect(NodeId(host), switch, Rate::from_gbps(100), Time::from_us(1)));
        Builder::plain(graph, NodeId(0))
    }

    fn plain(graph: Graph, node: NodeId) -> Builder<'static> {
        let hosts: Vec<u32> = graph.hosts().map(|host| host.0).collect();
        let pairs = hosts.iter().flat_map(|&src| hosts.iter().map(move |&dst| (src, dst)));
        let pairs = pairs.filter(|(src, dst)| src != dst).flat_map(|pair| (0..FLOWS).map(move |_| pair));
        let flows = (0..).zip(pairs).map(|(index, (src, dst))| FlowSpec::plain(index, src, dst, SIZE, Time::ZERO));
        let flows = flows.collect();
        Builder::of(Setup::plain(graph, flows), node)
    }

    /// A node of any fabric, with the flows of its setup.
    pub fn of(setup: Setup, node: NodeId) -> Builder<'static> {
        let chosen = Chosen {
            flow_control: &Bare,
            congestion_control: &Bare,
            edge_control: &Bare,
            transport: &Bare,
            load_balancing: &Bare,
            queueing: &Bare,
            marking: &Bare,
            window: false,
        };
        Builder { setup, node, chosen }
    }
}

impl<'a> Builder<'a> {
    /// The rate of every link.
    pub fn rate(self, rate: Rate) -> Self {
        self.setup(|setup| setup.graph.links.iter_mut().for_each(|link| link.rates = [rate; 2]))
    }
    /// The delay of every link.
    pub fn delay(self, delay: Time) -> Self {
        self.setup(|setup| setup.graph.links.iter_mut().for_each(|link| link.delay = delay))
    }
    /// Priority classes.
    pub fn classes(self, classes: u8) -> Self {
        self.setup(|setup| setup.classes = classes)
    }
    /// Queues of every port and class.
    pub fn queues(self, queues: u32) -> Self {
        self.setup(|setup| setup.switch.queues = queues)
    }
    /// Queues, groups and channels as a flow control lays them out.
    pub fn layout(self, layout: &Layout) -> Self {
        self.setup(|setup| {
            setup.switch.queues = layout.queues.unwrap_or(setup.switch.queues);
            setup.switch.express = layout.express;
            setup.switch.groups = layout.groups;
            setup.classes *= layout.channels;
        })
    }
    /// The shared memory of the node, what an account may have of what is free (in 1/65536), and its headroom.
    pub fn memory(self, pool: u64, alpha: u32, headroom: u32) -> Self {
        self.setup(|setup| {
            setup.switch.pool.fill(Some(pool));
            setup.ports.iter_mut().for_each(|port| port.share = Share { alpha, headroom });
        })
    }
    /// The node is a host that takes packets at `rate` only. Its NIC keeps `buffer` bytes, is full with more than `full` and no longer so
    /// with half of that.
    pub fn slow(self, rate: Rate, buffer: u64, full: u64) -> Self {
        let port = PortMap::new(&self.setup.graph).base[self.node.index()];
        let (from, until) = (Time::ZERO, Time::MAX);
        let slow = SlowReceiver { port, rate, from, until, buffer, xoff: full, xon: full / 2 };
        self.setup(|setup| setup.slow.push(slow))
    }
    /// Any other setting.
    pub fn setup(mut self, change: impl FnOnce(&mut Setup)) -> Self {
        change(&mut self.setup);
        self
    }
    /// The transport of a host. Without one, every data packet is acknowledged and nothing is repaired.
    pub fn transport(mut self, transport: &'a dyn TransportDef) -> Self {
        self.chosen.transport = transport;
        self
    }
    /// Congestion control of a host. Without one, flows send at line rate.
    pub fn congestion_control(mut self, control: &'a dyn CongestionControlDef) -> Self {
        self.chosen.congestion_control = control;
        self
    }
    /// Load balancing. Without one, a hash of the flow chooses.
    pub fn load_balancing(mut self, balancing: &'a dyn LoadBalancingDef) -> Self {
        self.chosen.load_balancing = balancing;
        self
    }
    /// The choice among queues. Without one, they take turns packet by packet.
    pub fn queueing(mut self, queueing: &'a dyn QueueingDef) -> Self {
        self.chosen.queueing = queueing;
        self
    }
    /// Marking. Ports mark only where the setup has thresholds for it.
    pub fn marking(mut self, marking: &'a dyn MarkingDef) -> Self {
        self.chosen.marking = marking;
        self
    }

    /// The bench with a flow control.
    pub fn build<F: FlowControl>(self, scheme: F) -> Bench<F> {
        self.build_with(|_| scheme)
    }

    /// The bench with a flow control that is made for its setup.
    pub fn build_with<F: FlowControl>(self, scheme: impl FnOnce(&Setup) -> F) -> Bench<F> {
        let Builder { mut setup, node, chosen } = self;
        setup.rule = chosen.load_balancing.rule();
        chosen.transport.adjust(&mut setup);
        setup.ports.iter_mut().for_each(|port| chosen.marking.port(port));
        let scheme = scheme(&setup);
        let network = Network::alone(setup, node, scheme, &chosen);
        let base = network.core.map.base[node.index()];
        let closed = vec![false; network.core.map.of(node.0).len()];
        let next = vec![0; network.core.setup.flows.len()];
        Bench { network, node, base, closed, next, sent: Vec::new() }
    }
}

/// A packet that the node has sent to a neighbour.
#[derive(Clone, Debug)]
pub struct Sent {
    /// When the node began to send it.
    pub time: Time,
    /// When the neighbour would have it.
    pub arrival: Time,
    /// By which port.
    pub port: PortId,
    /// The packet.
    pub packet: Packet,
    /// What an ACK says beyond its header, with a transport or a congestion control that needs it.
    pub answer: Option<Answer>,
    /// What switches wrote on it for one another, with a load balancer that does.
    pub label: Option<Label>,
    payload: Option<Payload>,
}

impl Sent {
    /// Whether a switch has marked it.
    pub fn marked(&self) -> bool {
        self.packet.flags & flag::MARKED != 0
    }
    /// What a frame says.
    pub fn message<M: Message>(&self) -> M {
        let packet = &self.packet;
        Sealed { layer: packet.tag as u8, bits: packet.bits(), payload: self.payload.clone() }.open()
    }
    /// What a frame carries beyond that.
    pub fn payload(&self) -> Option<&[u64]> {
        self.payload.as_deref()
    }
}

/// A timer of flow control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// Of a port, with its number there.
    Port(PortId, u32),
    /// Of a flow.
    Flow(FlowId),
}

/// A node under test. Ports are numbered as at the node.
pub struct Bench<F: FlowControl> {
    network: Network<F>,
    node: NodeId,
    /// Its first port in the whole fabric.
    base: u32,
    /// By port: it sends only when asked to.
    closed: Vec<bool>,
    /// By flow: the next byte that arrives of it.
    next: Vec<u64>,
    /// Output that the test has not looked at yet.
    sent: Vec<Sent>,
}

/// Building one.
impl<F: FlowControl> Bench<F> {
    /// A switch with so many hosts.
    pub fn switch(scheme: F, ports: u16) -> Bench<F> {
        Builder::switch(ports, 0).build(scheme)
    }
    /// A host behind a switch, with one other host.
    pub fn host(scheme: F) -> Bench<F> {
        Builder::host(1).build(scheme)
    }
    /// Flow number `nth` of those from a host to another.
    ///
    /// # Panics
    ///
    /// Where the setup has none.
    pub fn flow(&self, src: u32, dst: u32, nth: usize) -> FlowId {
        let flows = (0..).map(FlowId).zip(&self.network.core.setup.flows);
        let mut flows = flows.filter(|(_, flow)| (flow.src, flow.dst) == (NodeId(src), NodeId(dst)));
        flows.nth(nth).expect("a flow between the two hosts").0
    }
}

/// Time.
impl<F: FlowControl> Bench<F> {
    /// Now.
    pub fn now(&self) -> Time {
        self.network.core.time.now
    }

    /// Lets time pass: timers go off, transmissions end, and whatever follows from that happens.
    pub fn advance(&mut self, by: Time) {
        self.advance_to(self.now() + by);
    }

    /// The same up to an instant, and everything at that instant.
    pub fn advance_to(&mut self, then: Time) {
        self.settle();
        while let Some(event) = self.network.core.time.events.pop_before(Event::last_at(then)) {
            self.network.step(event);
            self.collect();
        }
        let time = &mut self.network.core.time;
        (time.now, time.current) = (then, Event::last_at(then));
    }

    /// The timers of flow control that are set, in the order in which they go off.
    pub fn timers(&mut self) -> Vec<(Time, Timer)> {
        let core = &mut self.network.core;
        let mut events = core.time.events.drain();
        events.iter().for_each(|&event| core.time.events.push(event));
        events.sort_unstable();
        let (base, each) = (self.base, core.switches.timers);
        let timer = |event: &Event| match Class::of(*event) {
            Class::PortTimer => Some(Timer::Port(PortId((event.source() / each - base) as u16), event.source() % each)),
            Class::HoldTimer => Some(Timer::Flow(FlowId(event.source()))),
            _ => None,
        };
        events.iter().filter_map(|event| Some((event.time(), timer(event)?))).collect()
    }
}

/// What comes in.
impl<F: FlowControl> Bench<F> {
    /// The next data packet of a flow arrives by a port, in full size as long as the flow has as much.
    pub fn arrive(&mut self, port: PortId, flow: FlowId) {
        self.arrive_as(port, flow, |_| {});
    }

    /// The same with a packet that is changed before.
    pub fn arrive_as(&mut self, port: PortId, flow: FlowId, change: impl FnOnce(&mut Packet)) {
        let setup = self.network.core.setup.clone();
        let (spec, seq) = (&setup.flows[flow.index()], self.next[flow.index()]);
        let payload = (spec.size - seq).min(setup.nic.payload as u64);
        self.next[flow.index()] += payload;
        let first = if seq == 0 { flag::FIRST | flag::FRESH } else { 0 };
        let last = if seq + payload == spec.size { flag::LAST } else { 0 };
        let mut packet = Packet {
            flow: flow.0,
            seq,
            stamp: self.now(),
            tuple: spec.tuple,
            dst: spec.dst.0,
            size: payload as u16 + setup.nic.header,
            tag: self.network.scheme.tag(&spec.tuple),
            class: spec.class.0,
            flags: first | last,
            ..Packet::BLANK
        };
        change(&mut packet);
        self.packet(port, packet, None);
    }

    /// Any packet arrives by a port, with what it says beyond its header if it is an ACK that does.
    pub fn packet(&mut self, port: PortId, packet: Packet, answer: Option<Answer>) {
        self.settle();
        let core = &mut self.network.core;
        let id = core.pool.insert(packet);
        if let Some(answer) = answer {
            *core.pool.answer(id) = answer;
        }
        self.deliver(port, id);
    }

    /// A control packet of the transport arrives for the sender of a flow.
    pub fn control(&mut self, port: PortId, flow: FlowId, kind: Kind, seq: u64) {
        self.control_as(port, flow, kind, seq, None);
    }

    /// The same with what it says beyond its header.
    pub fn control_as(&mut self, port: PortId, flow: FlowId, kind: Kind, seq: u64, answer: Option<Answer>) {
        let setup = self.network.core.setup.clone();
        let packet = Packet { kind, seq, size: setup.nic.ack_size, ..self.backward(flow) };
        self.packet(port, packet, answer);
    }

    /// What the bench of a neighbour has sent arrives.
    pub fn hear(&mut self, port: PortId, sent: &Sent) {
        self.settle();
        let core = &mut self.network.core;
        let mut packet = sent.packet;
        if let Some(payload) = &sent.payload {
            packet.flow = core.pool.store_payload(payload.clone());
        }
        let id = core.pool.insert(packet);
        if let Some(answer) = sent.answer {
            *core.pool.answer(id) = answer;
        }
        if let (Some(label), Some(own)) = (sent.label, core.pool.label(id)) {
            *own = label;
        }
        self.deliver(port, id);
    }

    /// A frame of the neighbour at a port arrives.
    pub fn frame(&mut self, port: PortId, message: impl Message) {
        self.frame_in(0, port, message);
    }

    /// The same for the flow control beneath another.
    pub fn frame_beneath(&mut self, port: PortId, message: impl Message) {
        self.frame_in(1, port, message);
    }

    fn frame_in(&mut self, layer: u8, port: PortId, message: impl Message) {
        self.settle();
        let blank = Packet { size: 64, stamp: self.now(), ..Packet::BLANK };
        let id = self.network.core.pool.insert_frame(blank, layer, message);
        self.deliver(port, id);
    }

    /// A signal for the sender of a flow arrives: a switch passes it on, a host hears it.
    pub fn signal(&mut self, port: PortId, flow: FlowId, message: F::Signal) {
        let packet = Packet { kind: Kind::Signal, seq: Packer::of(message).0 as u64, size: 64, ..self.backward(flow) };
        self.packet(port, packet, None);
    }

    /// A packet from the receiver of a flow to its sender.
    fn backward(&self, flow: FlowId) -> Packet {
        let spec = &self.network.core.setup.flows[flow.index()];
        let (stamp, tuple) = (self.now(), spec.tuple.reversed());
        Packet { flow: flow.0, stamp, tuple, dst: spec.src.0, class: spec.class.0, ..Packet::BLANK }
    }

    fn deliver(&mut self, port: PortId, id: PacketId) {
        let (core, port) = (&mut self.network.core, self.base + port.0 as u32);
        let now = core.time.now;
        core.ports[port as usize].flying.push(&mut core.pool, id, now, 0);
        self.network.arrive(port);
        self.settle();
    }

    /// A flow of so many bytes is handed to the NIC of the host.
    pub fn start(&mut self, flow: FlowId, size: u64) {
        self.settle();
        Arc::make_mut(&mut self.network.core.setup).flows[flow.index()].size = size;
        self.network.begin(flow.0);
        self.settle();
    }
}

/// Ports.
impl<F: FlowControl> Bench<F> {
    /// A port sends nothing from now on unless it is asked to with [`Bench::transmit`].
    pub fn close(&mut self, port: PortId) {
        self.closed[port.index()] = true;
        self.stop(port);
    }

    /// Lets a port stand as if the end of a transmission were planned, which is not: nothing else begins one.
    fn stop(&mut self, port: PortId) {
        let (number, events) = (self.base + port.0 as u32, &mut self.network.core.time.events);
        let ends = |event: &Event| Class::of(*event) == Class::TxEnd && event.source() == number;
        events.drain().into_iter().filter(|event| !ends(event)).for_each(|event| events.push(event));
        self.port_mut(port).wake = true;
    }

    /// A port sends by itself again.
    pub fn open(&mut self, port: PortId) {
        if std::mem::take(&mut self.closed[port.index()]) {
            self.port_mut(port).wake = false;
            self.network.kick(self.base + port.0 as u32);
            self.settle();
        }
    }

    /// Lets a port send its next packet, which is a frame if there is one, and closes it. If the port is still sending, time passes
    /// until it is not. Gives the packet.
    pub fn transmit(&mut self, port: PortId) -> Option<Sent> {
        self.close(port);
        let free = self.port_mut(port).free_at;
        self.advance_to(free.max(self.now()));
        self.port_mut(port).wake = false;
        self.network.transmit(self.base + port.0 as u32);
        self.stop(port);
        let before = self.sent.len();
        self.settle();
        let place = (before..self.sent.len()).find(|&place| self.sent[place].port == port)?;
        Some(self.sent.remove(place))
    }

    fn port_mut(&mut self, port: PortId) -> &mut crate::port::Port {
        &mut self.network.core.ports[self.base as usize + port.index()]
    }

    /// Does what hooks have set in motion, and keeps what comes out.
    fn settle(&mut self) {
        self.network.drain_kicks();
        self.collect();
    }

    fn collect(&mut self) {
        let core = &mut self.network.core;
        let (time, base) = (core.time.now, self.base);
        self.sent.extend(core.take_post().into_iter().map(|posted| Sent {
            time,
            arrival: posted.arrival,
            port: PortId((posted.port - base) as u16),
            packet: posted.packet,
            answer: posted.answer,
            label: posted.label,
            payload: posted.payload,
        }));
    }
}

/// What comes out. Nothing is given twice.
impl<F: FlowControl> Bench<F> {
    /// Everything that was sent, in order.
    pub fn sent(&mut self) -> Vec<Sent> {
        self.settle();
        std::mem::take(&mut self.sent)
    }

    /// What was sent of some kinds.
    fn take(&mut self, which: impl Fn(Kind) -> bool) -> Vec<Sent> {
        let (taken, left) = self.sent().into_iter().partition(|sent| which(sent.packet.kind));
        self.sent = left;
        taken
    }

    /// Frames, and by which port. Of one flow control over another, see [`Bench::frames_in`].
    pub fn frames(&mut self) -> Vec<(PortId, F::Frame)> {
        self.take(|kind| kind == Kind::Frame).iter().map(|sent| (sent.port, sent.message())).collect()
    }

    /// Frames of one of two flow controls, 0 for the upper and 1 for the lower. Those of the other are passed over.
    pub fn frames_in<M: Message>(&mut self, layer: u16) -> Vec<(PortId, M)> {
        let frames = self.take(|kind| kind == Kind::Frame);
        frames.iter().filter(|sent| sent.packet.tag == layer).map(|sent| (sent.port, sent.message())).collect()
    }

    /// Signals, and by which port.
    pub fn signals(&mut self) -> Vec<(PortId, Signal<F::Signal>)> {
        let signals = self.take(|kind| kind == Kind::Signal);
        signals.iter().map(|sent| (sent.port, Network::<F>::read_signal(&sent.packet))).collect()
    }

    /// Reports to the congestion control of senders, as these will read them, and by which port.
    pub fn notices(&mut self) -> Vec<(PortId, Notice)> {
        let notices = self.take(|kind| kind == Kind::Notice);
        notices.iter().map(|sent| (sent.port, Notice::read(&sent.packet, sent.arrival))).collect()
    }

    /// Data packets.
    pub fn data(&mut self) -> Vec<Sent> {
        self.take(|kind| kind == Kind::Data)
    }

    /// ACKs, NACKs and other control packets of the transport, and what trimming left of data packets.
    pub fn controls(&mut self) -> Vec<Sent> {
        self.take(|kind| matches!(kind, Kind::Ack | Kind::Nack | Kind::Grant | Kind::Trimmed | Kind::Returned))
    }
}

/// What the node is like.
impl<F: FlowControl> Bench<F> {
    /// Calls hooks of flow control, or does with the node whatever a hook may, and lets follow what does.
    pub fn at<R>(&mut self, act: impl FnOnce(&F, &mut F::Node, &mut NodeView<'_>) -> R) -> R {
        let node = self.node.index();
        let Network { core, scheme, nodes, .. } = &mut self.network;
        let result = act(scheme, &mut nodes[node], &mut NodeView::new(core, node as u32, self.base));
        self.settle();
        result
    }

    /// The same with the transport of a host.
    pub fn at_host<R>(&mut self, act: impl FnOnce(&mut dyn Transport, &mut HostView<'_>) -> R) -> R {
        let result = self.network.at_host(self.base, |transport, at, _| act(transport, at));
        self.settle();
        result
    }

    /// The node as flow control sees it.
    pub fn view(&mut self) -> NodeView<'_> {
        NodeView::new(&mut self.network.core, self.node.0, self.base)
    }

    /// What flow control keeps at the node.
    pub fn node(&self) -> &F::Node {
        &self.network.nodes[self.node.index()]
    }

    /// What load balancing and marking counted.
    pub fn switch_counters(&self) -> Vec<Counter> {
        self.network.core.switches.counters()
    }

    /// What was counted.
    pub fn counts(&self) -> &Counts {
        &self.network.core.counts
    }

    /// Whatever of the node decides what it does from now on, as text: two benches of one node that give the same act alike. What flow
    /// control keeps there itself is not in it, nor are congestion control and the transport. Timers of flow control are in it if there is a
    /// `grain`: counted from now on, and rounded to that.
    pub fn outlook(&mut self, grain: Option<Time>) -> String {
        let (timers, now) = (self.timers(), self.now());
        let core = &self.network.core;
        let packet = |id: PacketId| {
            let Packet { seq, next_rank, flow, dst, tuple, in_port, size, tag, kind, class, flags, .. } = core.pool[id];
            let (flow, payload) = match flags & flag::PAYLOAD != 0 {
                true => (0, core.pool.payload(flow)),
                false => (flow, Default::default()),
            };
            let word = if kind == Kind::Data { next_rank } else { 0 };
            format!("{kind:?}{:?}", (flow, seq, dst, tuple, (in_port, size, tag, class, flags, word), payload))
        };
        let list = |fifo: &crate::packet::Fifo| fifo.iter(&core.pool).map(packet).collect::<String>();
        let (masks, switches) = (&core.switches.masks, &core.switches);
        let mut all = String::new();
        let ports = core.map.of(self.node.0);
        for port in ports.clone() {
            let p = &core.ports[port as usize];
            all += &format!("\nport {:?} frames {} control {}", (p.paused, p.up), list(&p.frames), list(&p.control));
            if p.has_queues() {
                all += &format!(" last {}", p.last);
                for queue in 0..switches.per_port {
                    let q = &switches.queues[(p.first_queue + queue) as usize];
                    let state = (masks.is_paused(port, queue), masks.is_held(port, queue), q.deficit);
                    all += &format!(" queue {state:?} {}", list(&q.packets));
                }
            }
            for group in 0..core.setup.switch.groups {
                for class in 0..core.setup.classes {
                    all += &format!(" {:?}", switches.accounts[core.account_number(port, class, group == 1)]);
                }
            }
            if p.host {
                let nic = &core.hosts.nics[p.nic as usize];
                all += &format!(" nic {:?}", (nic.last, nic.relayed, &nic.flows));
            }
        }
        for (flow, spec) in (0..).zip(&core.setup.flows) {
            if spec.src == self.node {
                let s = &core.hosts.senders[flow];
                all += &format!("\nsends {:?}", (s.next, s.acked, s.size, s.window, s.held, s.tag, s.high));
            }
            if spec.dst == self.node {
                let r = &core.hosts.receivers[flow];
                all += &format!("\nreceives {:?}", (r.expected, r.unacked, r.early));
            }
        }
        let buffer = &switches.buffers[self.node.index()];
        all += &format!("\n{:?} {:?}", (buffer.shared, buffer.global), core.dice.streams[self.node.index()]);
        for (grain, (time, timer)) in grain.into_iter().flat_map(|grain| timers.iter().map(move |timer| (grain, timer)))
        {
            all += &format!("\n{timer:?} in {}", (time.saturating_sub(now).0 + grain.0 / 2) / grain.0);
        }
        all
    }

    /// Frames that wait at a port, and other control packets that do.
    pub fn waiting(&self, port: PortId) -> (usize, usize) {
        let core = &self.network.core;
        let p = &core.ports[self.base as usize + port.index()];
        (p.frames.iter(&core.pool).count(), p.control.iter(&core.pool).count())
    }

    /// The queues of a port that flow control holds.
    pub fn held_queues(&mut self, port: PortId) -> Vec<QueueId> {
        let queues = self.network.core.switches.per_port;
        let view = self.view();
        (0..queues).map(QueueId).filter(|&queue| view.is_held(port, queue)).collect()
    }

    /// The classes of a port that its neighbour has paused.
    pub fn paused_classes(&mut self, port: PortId) -> Vec<ClassId> {
        let view = self.view();
        (0..view.classes()).map(ClassId).filter(|&class| view.is_paused(port, class)).collect()
    }

    /// The flows from this host that flow control holds.
    pub fn held_flows(&self) -> Vec<FlowId> {
        let core = &self.network.core;
        let own = (0..).map(FlowId).zip(&core.setup.flows).filter(|(_, flow)| flow.src == self.node);
        own.map(|(flow, _)| flow).filter(|flow| core.hosts.senders[flow.index()].held & BY_SCHEME != 0).collect()
    }
}

/// Stands in for whatever a bench is built without.
struct Bare;

impl Parameters for Bare {
    fn list(&self) -> Vec<Parameter> {
        Vec::new()
    }
    fn set(&mut self, _: &str, _: &Raw) -> Option<Result<(), ValueError>> {
        None
    }
}

impl Definition for Bare {
    fn name(&self) -> &'static str {
        "none"
    }
    fn about(&self) -> &'static str {
        "Nothing."
    }
}

impl FlowControlDef for Bare {
    fn layout(&self, _: &Graph) -> Result<Layout, Misfit> {
        Ok(Layout::default())
    }
    fn run(&self, job: Job<'_>) -> Outcome {
        job.run(crate::axes::flow_control::NoFlowControl)
    }
}

impl CongestionControlDef for Bare {
    fn build(&self) -> Box<dyn CongestionControl> {
        Box::new(Unlimited)
    }
}

impl EdgeControlDef for Bare {
    fn over(&self, inner: Box<dyn CongestionControlDef>) -> Box<dyn CongestionControlDef> {
        inner
    }
}

impl TransportDef for Bare {
    fn build(&self, _: &Ground<'_>) -> Box<dyn Transport> {
        Box::new(Bare)
    }
}

impl Transport for Bare {
    fn sent(&mut self, _: &mut HostView<'_>, _: FlowId, _: PacketId, _: bool) {}
    fn data(&mut self, at: &mut HostView<'_>, port: PortId, id: PacketId) {
        let (packet, header) = (*at.packet(id), at.setup().nic.header);
        let receiver = at.receiver(FlowId(packet.flow));
        receiver.expected = receiver.expected.max(packet.seq + (packet.size - header) as u64);
        let (seq, ended) = (receiver.expected, HostView::is_last(&packet));
        at.reply(port, id, Reply { answer: Some(Kind::Ack), seq, ended });
    }
    fn control(&mut self, at: &mut HostView<'_>, packet: &Packet, _: PacketId) {
        let sender = at.sender(FlowId(packet.flow));
        sender.acked = sender.acked.max(packet.seq);
    }
    fn expired(&mut self, _: &mut HostView<'_>, _: FlowId) {}
}

impl LoadBalancingDef for Bare {}

impl QueueingDef for Bare {
    fn build(&self) -> Discipline {
        Discipline::Packets
    }
}

impl MarkingDef for Bare {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axes::flow_control::NoFlowControl;
    use crate::buffer::ALPHA_ONE;
    use crate::view::Site;

    #[test]
    #[should_panic(expected = "there is no port 3")]
    fn a_port_that_the_node_does_not_have_cannot_be_looked_at() {
        Bench::switch(NoFlowControl, 3).view().queued(PortId(3));
    }

    /// What something panics with.
    fn panics(act: impl FnOnce()) -> String {
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(act)).expect_err("a panic");
        caught.downcast_ref::<String>().cloned().unwrap_or_default()
    }

    #[test]
    fn what_is_done_to_a_port_of_another_node_is_refused_in_every_build() {
        // The first port of the next switch, counted on from the three of this one.
        let (port, queue, class, now) = (PortId(3), QueueId(0), ClassId(0), Time::ZERO);
        let switch = || Builder::switch(2, 1).build(Diary);
        type Act<'a> = &'a dyn Fn(&mut NodeView<'_>);
        let acts: [Act<'_>; 9] = [
            &|at| at.send_frame(port, 64, 0u16),
            &|at| at.send_note(port, 64, 0u16),
            &|at| at.send_signal(port, &Packet::BLANK, 64, 0u32),
            &|at| at.pause_class(port, class, true),
            &|at| at.pause_queue(port, queue, true),
            &|at| at.hold_queue(port, queue, true),
            &|at| at.shift((PortId(0), queue), (port, queue)),
            &|at| _ = at.empty_queue(port, queue),
            &|at| at.set_timer(port, 0, now),
        ];
        for (number, act) in acts.into_iter().enumerate() {
            let said = panics(|| act(&mut switch().view()));
            assert!(said.contains("there is no port 3 at node 3, which has 3 ports"), "act {number}: {said:?}");
        }
        let acts: [&dyn Fn(&mut HostView<'_>); 2] =
            [&|at| at.send(PortId(1), Packet::BLANK), &|at| at.set_timer(PortId(1), now)];
        for act in acts {
            let said = panics(|| Bench::host(Diary).at_host(|_, at| act(at)));
            assert!(said.contains("there is no port 1 at node 0, which has 1 port"), "{said:?}");
        }
        let said = panics(|| {
            let bench = switch();
            let core = &bench.network.core;
            Site { setup: &core.setup, map: &core.map, node: bench.node, longest_rtt: Time::ZERO }.link(port);
        });
        assert!(said.contains("there is no port 3 at node 3"), "{said:?}");
    }

    #[test]
    #[should_panic(expected = "flows begin at hosts")]
    fn a_switch_has_no_flows() {
        _ = Bench::switch(NoFlowControl, 3).view().flows_at(PortId(0)).len();
    }

    #[test]
    #[should_panic(expected = "more than the scheme declares")]
    fn a_timer_that_was_not_declared_is_an_error() {
        Bench::switch(NoFlowControl, 3).view().set_timer(PortId(0), 0, Time::from_us(1));
    }

    /// Sends a payload to the neighbour for every packet, and keeps the last that came.
    #[derive(Clone)]
    struct Echo;
    impl FlowControl for Echo {
        type Node = Vec<u64>;
        type Frame = Payload;
        type Signal = ();
        fn node(&self, _: &Site<'_>) -> Vec<u64> {
            Vec::new()
        }
        fn enqueued(&self, _: &mut Vec<u64>, at: &mut NodeView<'_>, visit: &crate::axes::flow_control::Visit) {
            at.send_frame(visit.in_port, 64, Box::new([7, visit.size as u64]) as Payload);
        }
        fn frame(&self, node: &mut Vec<u64>, _: &mut NodeView<'_>, _: PortId, frame: Payload) {
            *node = frame.into();
        }
    }

    #[test]
    fn what_a_bench_sends_is_heard_by_that_of_its_neighbour_and_outlooks_tell_states_apart() {
        let (mut host, mut switch) = (Bench::host(Echo), Bench::switch(Echo, 2));
        let (port, flow) = (PortId(0), switch.flow(0, 1, 0));
        (0..2).for_each(|port| switch.close(PortId(port)));
        let empty = switch.outlook(None);
        switch.arrive(port, flow);
        assert_eq!((switch.waiting(port), switch.waiting(PortId(1))), ((1, 0), (0, 0)));
        assert_ne!(switch.outlook(None), empty);
        let frame = switch.transmit(port).unwrap();
        assert_eq!(frame.payload(), Some([7, 1062].as_slice()));
        host.hear(port, &frame);
        assert_eq!(host.node(), &[7, 1062]);
        // Apart from the time, all is as it was.
        switch.transmit(PortId(1));
        assert_eq!(switch.outlook(None), empty);
    }

    /// Keeps what happens to it, with the time.
    #[derive(Clone)]
    struct Diary;

    #[derive(Debug, PartialEq)]
    enum Entry {
        Frame(PortId, u16),
        Timer(PortId, u32),
        FlowTimer(FlowId),
        Signal(FlowId, u32),
    }

    impl FlowControl for Diary {
        type Node = Vec<(Time, Entry)>;
        type Frame = u16;
        type Signal = u32;
        fn node(&self, _: &Site<'_>) -> Self::Node {
            Vec::new()
        }
        fn timers(&self, _: u8) -> u32 {
            3
        }
        fn frame(&self, node: &mut Self::Node, at: &mut NodeView<'_>, port: PortId, frame: u16) {
            node.push((at.now(), Entry::Frame(port, frame)));
        }
        fn timer(&self, node: &mut Self::Node, at: &mut NodeView<'_>, port: PortId, timer: u32) {
            node.push((at.now(), Entry::Timer(port, timer)));
        }
        fn flow_timer(&self, node: &mut Self::Node, at: &mut NodeView<'_>, flow: FlowId) {
            node.push((at.now(), Entry::FlowTimer(flow)));
        }
        fn signal(&self, node: &mut Self::Node, at: &mut NodeView<'_>, _: PortId, signal: Signal<u32>) {
            node.push((at.now(), Entry::Signal(signal.flow, signal.message)));
        }
    }

    #[test]
    fn timers_go_off_in_the_order_of_their_times_and_not_before() {
        let mut bench = Bench::host(Diary);
        let (port, flow, us) = (PortId(0), bench.flow(0, 1, 0), Time::from_us);
        bench.close(port);
        bench.start(flow, 1000);
        bench.at(|_, _, at| {
            at.set_timer(port, 2, us(30));
            at.set_timer(port, 1, us(10));
            at.set_flow_timer(flow, us(20));
        });
        let set = [(us(10), Timer::Port(port, 1)), (us(20), Timer::Flow(flow)), (us(30), Timer::Port(port, 2))];
        assert_eq!(bench.timers(), set);
        bench.advance(us(20));
        assert_eq!(bench.node()[..], [(us(10), Entry::Timer(port, 1)), (us(20), Entry::FlowTimer(flow))]);
        // What was looked at is still there, and so is what is set in between.
        assert_eq!(bench.timers(), set[2..]);
        bench.at(|_, _, at| at.set_timer(port, 0, us(25)));
        bench.advance(us(10));
        assert_eq!(bench.node()[2..], [(us(25), Entry::Timer(port, 0)), (us(30), Entry::Timer(port, 2))]);
    }

    #[test]
    fn frames_and_signals_of_the_scheme_come_in_and_go_out_as_its_types() {
        let mut host = Bench::host(Diary);
        let (port, flow) = (PortId(0), host.flow(0, 1, 3));
        host.start(flow, 1000);
        host.frame(port, 7u16);
        host.signal(port, flow, 8);
        assert_eq!(host.node()[..], [(Time::ZERO, Entry::Frame(port, 7)), (Time::ZERO, Entry::Signal(flow, 8))]);
        let mut switch = Bench::switch(Diary, 3);
        let flow = switch.flow(1, 2, 0);
        switch.at(|_, _, at| at.send_frame(PortId(2), 64, 9u16));
        assert_eq!(switch.frames(), [(PortId(2), 9)]);
        assert!(switch.frames().is_empty(), "nothing is given twice");
        // A signal for the sender, host 1, passes the switch.
        switch.signal(PortId(2), flow, 10);
        let signals: Vec<_> = switch.signals().into_iter().map(|(port, s)| (port, s.flow, s.message)).collect();
        assert_eq!(signals, [(PortId(1), flow, 10)]);
    }

    #[test]
    fn a_closed_port_sends_one_packet_when_asked_to_and_an_open_one_all_at_the_pace_of_its_link() {
        let mut bench = Builder::switch(3, 0).rate(Rate::from_gbps(10)).build(NoFlowControl);
        let (from, to, flow) = (PortId(0), PortId(2), bench.flow(0, 2, 0));
        bench.close(to);
        (0..5).for_each(|_| bench.arrive(from, flow));
        bench.advance(Time::from_us(50));
        assert_eq!((bench.data().len(), bench.view().queued(to)), (0, 5310));
        // 1062 bytes at 10 Gb/s, and a link of 1 us.
        let packet = Time(1062 * 800);
        let sent = [bench.transmit(to).unwrap(), bench.transmit(to).unwrap()];
        assert_eq!(sent.each_ref().map(|sent| sent.packet.seq), [0, 1000]);
        assert_eq!(sent.each_ref().map(|sent| sent.time), [Time::from_us(50), Time::from_us(50) + packet]);
        assert!(sent.iter().all(|sent| sent.arrival == sent.time + packet + Time::from_us(1)));
        bench.open(to);
        bench.advance(Time::from_us(10));
        let rest: Vec<(u64, Time)> = bench.data().iter().map(|sent| (sent.packet.seq, sent.time)).collect();
        let time = |n: u64| Time(Time::from_us(50).0 + n * packet.0);
        assert_eq!(rest, [(2000, time(2)), (3000, time(3)), (4000, time(4))]);
        assert!(bench.transmit(to).is_none());
    }

    #[test]
    fn hosts_are_numbered_by_port_and_the_one_behind_all_switches_comes_last() {
        let mut bench = Builder::switch(2, 2).build(NoFlowControl);
        for (dst, ports) in [(0, &[0][..]), (1, &[1]), (2, &[2]), (3, &[3]), (4, &[2, 3])] {
            let mut paths: Vec<u16> = bench.view().paths(NodeId(dst)).map(|port| port.0).collect();
            paths.sort_unstable();
            assert_eq!(paths, ports, "host {dst}");
        }
        let faces: Vec<bool> = (0..4).map(|port| bench.view().faces_host(PortId(port))).collect();
        assert_eq!(faces, [true, true, false, false]);
    }

    #[test]
    fn a_host_sends_at_line_rate_and_answers_what_it_receives() {
        let mut bench = Bench::host(NoFlowControl);
        let (port, out, back) = (PortId(0), bench.flow(0, 1, 0), bench.flow(1, 0, 0));
        bench.start(out, 2500);
        bench.arrive(port, back);
        bench.advance(Time::from_us(1));
        // The first packet is under way when the ACK comes.
        let sizes: Vec<u16> = bench.sent().iter().map(|sent| sent.packet.size).collect();
        assert_eq!(sizes, [1062, 66, 1062, 562]);
        bench.control(port, out, Kind::Ack, 2500);
        assert!(bench.view().flow_done(out));
    }

    #[test]
    fn a_packet_is_in_the_account_of_the_port_that_it_came_in_by() {
        let mut bench = Builder::switch(3, 0).memory(10_000, ALPHA_ONE, 0).build(NoFlowControl);
        let flow = bench.flow(1, 2, 0);
        bench.close(PortId(2));
        (0..3).for_each(|_| bench.arrive(PortId(1), flow));
        let total = |bench: &mut Bench<NoFlowControl>, port| bench.view().account(PortId(port), ClassId(0)).0.total();
        assert_eq!([0, 1, 2].map(|port| total(&mut bench, port)), [0, 3186, 0]);
        bench.transmit(PortId(2));
        assert_eq!(total(&mut bench, 1), 2124);
    }
}
