//! PortFC: lossless flow control for BCube(n, 1) that cannot deadlock.
//!
//! In BCube servers forward, so that PFC's pauses can close a cycle whatever the routes. PortFC looks at *egress* queues and
//! sorts packets by where they go after the next hop ([`layout`]). A congested queue stops exactly the queues that feed
//! it: those of the hosts on its switch that send to it themselves, and, for the last hop, the transit queue one switch back of
//! each host that forwards to it; the frame for that is passed on by the host, whose own queue of forwarded packets is never
//! stopped. So every chain of stops ends after at most two hosts: see docs/portfc.md.
//!
//! A NIC makes packets when it sends them, so that the local queues of a host are sets of flows: stopping one holds its flows.

pub mod layout;
#[cfg(test)]
mod model;
mod sizes;
#[cfg(test)]
mod tests;
mod waits;

use super::{check_frame, fabric_of, max, sum};
use engine::{Bytes, Misfit};
use fabric::axes::flow_control::{self, Fabric, FlowControl, FlowControlDef, Job, Room, Visit};
use fabric::axes::queueing::Discipline;
use fabric::axes::{Counter, Definition};
use fabric::deadlock::Waits;
use fabric::id::{ClassId, FlowId, NodeId, PortId, QueueId};
use fabric::probe::{Because, Scope, Subject};
use fabric::routing::PortMap;
use fabric::run::Wait;
use fabric::topology::Graph;
use fabric::view::{NodeView, Site};
use fabric::{Outcome, Setup, message};
use layout::Layout;
use sizes::{Marks, Sizes};
use std::sync::Arc;

engine::parameters! {
    /// Parameters of PortFC.
    pub struct Params {
        /// A queue longer than this stops what feeds it. Auto: twice what a link carries from a frame to its effect, or as much
        /// less as memory asks for.
        pause: Option<Bytes> = None,
        /// A queue no longer than this lets it go on. Auto: half of that.
        resume: Option<Bytes> = None,
        /// Size of a control frame on the wire.
        frame: Bytes = Bytes(64),
    }
}

impl Definition for Params {
    fn name(&self) -> &'static str {
        "portfc"
    }
    fn about(&self) -> &'static str {
        "PortFC for BCube(n, 1): queues by the egress port after the next hop, stopped from congested egress queues. \
         Lossless, and free of deadlocks."
    }
    fn source(&self) -> &'static str {
        "PortFC (slides)"
    }
    fn check(&self) -> Result<(), Misfit> {
        check_frame("frame", self.frame)?;
        if let Some(pause) = self.pause.filter(|pause| pause.0 == 0) {
            return Err(Misfit::new("pause", pause, "write a size above zero, or \"auto\""));
        }
        match (self.pause, self.resume) {
            (Some(pause), Some(resume)) if resume > pause => {
                Err(Misfit::new("resume", resume, format!("write at most \"{pause}\", which is where it pauses")))
            }
            _ => Ok(()),
        }
    }
}

impl FlowControlDef for Params {
    fn layout(&self, graph: &Graph) -> Result<flow_control::Layout, Misfit> {
        let layout = Layout::of(graph).map_err(|error| Misfit {
            parameter: "topology",
            message: error.to_string(),
            help: "write kind = \"bcube\" and k = 1 in [topology], or another flow control".into(),
        })?;
        if graph.fallible() {
            return Err(Misfit {
                parameter: "link",
                message: "PortFC's queues and frames assume that every link works and loses nothing".into(),
                help: "take loss, corruption and down away, or write another flow control".into(),
            });
        }
        Ok(flow_control::Layout { queues: Some(layout.n), frame: self.frame.0, ..flow_control::Layout::default() })
    }
    fn room(&self, fabric: &Fabric<'_>) -> Option<Room> {
        let layout = Layout::of(fabric.graph).ok()?;
        Some(Sizes::new(self, &layout, fabric).room)
    }
    fn waits(&self, setup: &Setup) -> Waits {
        match Layout::of(&setup.graph) {
            Ok(layout) => Waits::Paths(Box::new(waits::Rules(layout))),
            Err(_) => Waits::Classes,
        }
    }
    fn switch_state(&self, ports: u64, classes: u64) -> u64 {
        // By queue: congested, stopped for its own port, and stopped for the last hop after next. There are as many queues as ports.
        (3 * ports * ports * classes).div_ceil(8)
    }
    fn run(&self, job: Job<'_>) -> Outcome {
        // A queue must get an nth of its link in bytes. Round robin by packets does not starve a queue, but gives less to small packets.
        let unfair = !matches!(job.chosen.queueing.build(), Discipline::Bytes);
        let fabric = Fabric { unfair, ..fabric_of(&job.setup) };
        let scheme = Portfc::new(self, &fabric, job.promised);
        job.run(scheme)
    }
}

message! {
    /// What a frame says: something is congested, or no longer is.
    pub struct Frame {
        /// What.
        about: About,
        /// In which class.
        class: ClassId,
        /// Stop what feeds it, or let that go on.
        pause: bool,
    }
}

message! {
    /// What a frame is about.
    #[derive(Copy)]
    pub enum About {
        /// A transit queue of a switch: from the switch to its hosts.
        Transit {
            /// The port of the switch.
            port: PortId,
        },
        /// The last-hop queue of a switch: from the switch to its hosts.
        LastHop {
            /// The port of the switch.
            port: PortId,
        },
        /// The same, passed on by a host to its other switch.
        PassedOn {
            /// The port of the congested switch.
            port: PortId,
        },
        /// A host's queue of forwarded packets: to the switch that feeds it.
        Remote,
    }
}

/// What stops a host from sending its own packets to a port of its switch.
#[derive(Clone, Copy, Default)]
struct Stops {
    transit: bool,
    last_hop: bool,
}

#[derive(Default)]
struct Counts {
    pauses: u64,
    passed_on: u64,
    transit: u64,
    last_hop: u64,
    remote: u64,
    peak: u64,
}

/// The mechanism: what all nodes share.
#[derive(Clone)]
pub struct Portfc {
    layout: Layout,
    /// Where ports lead.
    map: Arc<PortMap>,
    lossless: bool,
    frame: u16,
    /// Of switches and of hosts.
    marks: [Marks; 2],
    classes: u32,
}

/// What a node keeps. A host uses some of it, a switch the rest.
pub struct Node {
    /// By port and queue: it is congested.
    congested: Vec<bool>,
    /// By port of a switch and class: how many of its transit queues are congested.
    group: Vec<u32>,
    /// By port of a host, class, and port of its switch.
    stops: Vec<Stops>,
    /// By port of a switch and queue: the last hop after next is congested.
    far: Vec<bool>,
    /// By port of a switch and class: its host's queue of forwarded packets is congested.
    remote: Vec<bool>,
    counts: Counts,
}

impl Portfc {
    /// PortFC over a fabric, which is a BCube(n, 1), as [`FlowControlDef::layout`] makes sure.
    pub fn new(params: &Params, fabric: &Fabric<'_>, promised: bool) -> Portfc {
        let layout = Layout::of(fabric.graph).unwrap_or(Layout { n: 1 });
        let sizes = Sizes::new(params, &layout, fabric);
        Portfc {
            layout,
            map: Arc::new(PortMap::new(fabric.graph)),
            lossless: promised,
            frame: params.frame.0 as u16,
            marks: [sizes.switch, sizes.host],
            classes: fabric.classes as u32,
        }
    }

    /// The number of something that every port, class and switch port or queue has.
    #[inline]
    fn place(&self, port: PortId, class: ClassId, which: u32) -> usize {
        self.lane(port, class) * self.layout.n as usize + which as usize
    }

    #[inline]
    fn lane(&self, port: PortId, class: ClassId) -> usize {
        port.index() * self.classes as usize + class.index()
    }

    /// The number of something that every port and queue of a port has.
    #[inline]
    fn slot(&self, visit: &Visit) -> usize {
        visit.out_port.index() * (self.classes * self.layout.n) as usize + visit.queue.index()
    }

    /// The first queue of a class.
    #[inline]
    fn first(&self, class: ClassId) -> u32 {
        class.0 as u32 * self.layout.n
    }

    /// The host that a port of a switch leads to, and the switch's level. A host's ports are numbered by level.
    #[inline]
    fn facing(&self, switch: NodeId, port: PortId) -> (u32, u32) {
        let peer = self.map.peer[self.map.base[switch.index()] as usize + port.index()];
        let host = self.map.node[peer as usize];
        (host, peer - self.map.base[host as usize])
    }

    /// What a frame is about, for those who ask why.
    fn subject(about: About, class: ClassId) -> Subject {
        let (kind, port) = match about {
            About::Transit { port } => (0, port.0),
            About::LastHop { port } => (1, port.0),
            About::PassedOn { port } => (2, port.0),
            About::Remote => (3, 0),
        };
        Subject::name(kind << 24 | (class.0 as u32) << 16 | port as u32)
    }

    /// What is said last of a queue counts: a frame about it that has not left yet says it.
    fn notify(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, frame: Frame, because: Because) {
        node.counts.pauses += frame.pause as u64;
        if frame.pause {
            at.orders(port, Self::subject(frame.about, frame.class), because);
        }
        let Frame { about, class, .. } = frame;
        let old = at.send_latest(port, self.frame, frame, |old: &Frame| (old.about, old.class) == (about, class));
        node.counts.pauses -= old.is_some_and(|old| old.pause) as u64;
    }

    /// A queue has become congested, or no longer is: notifies the nodes that feed it.
    fn change(&self, node: &mut Node, at: &mut NodeView<'_>, visit: &Visit, congested: bool) {
        let (out, class) = (visit.out_port, visit.class);
        let queue = visit.queue.0 - self.first(class);
        let because = Because::Queue { port: out, queue: visit.queue };
        node.congested[self.place(out, class, queue)] = congested;
        if at.is_host() {
            node.counts.remote += congested as u64;
            let frame = Frame { about: About::Remote, class, pause: congested };
            return self.notify(node, at, visit.in_port, frame, because);
        }
        let last_hop = queue == self.layout.last_hop();
        let about = if last_hop { About::LastHop { port: out } } else { About::Transit { port: out } };
        *(if last_hop { &mut node.counts.last_hop } else { &mut node.counts.transit }) += congested as u64;
        if !last_hop {
            // Its hosts have one queue for all transit over that port: they are notified of the first and of the last.
            let group = &mut node.group[self.lane(out, class)];
            let before = *group;
            *group = if congested { before + 1 } else { before - 1 };
            if before + *group != 1 {
                return;
            }
        }
        for port in at.ports().filter(|&port| port != out) {
            self.notify(node, at, port, Frame { about, class, pause: congested }, because);
        }
    }

    /// Whether a flow that sends by a host's `port` is stopped.
    fn stopped(&self, node: &Node, at: &NodeView<'_>, port: PortId, flow: FlowId) -> bool {
        let (far, last_hop) = self.next(at, port, flow);
        let stops = node.stops[self.place(port, at.flow_class(flow), far)];
        if last_hop { stops.last_hop } else { stops.transit }
    }

    /// The port of the switch at a host's `port` by which a flow goes on, and whether that is its last hop.
    fn next(&self, at: &NodeView<'_>, port: PortId, flow: FlowId) -> (u32, bool) {
        let (host, dst) = (at.node().0, at.flow(flow).dst);
        let level = port.0 as u32;
        (self.layout.digit(dst.0, level), self.layout.meet(level, host, dst.0))
    }

    /// Holds a flow of a host's `port` if it is stopped.
    fn hold(&self, node: &Node, at: &mut NodeView<'_>, port: PortId, flow: FlowId) {
        let stopped = self.stopped(node, at, port, flow);
        at.hold_flow(flow, stopped);
        if stopped {
            let (far, last_hop) = self.next(at, port, flow);
            let far = PortId(far as u16);
            let about = if last_hop { About::LastHop { port: far } } else { About::Transit { port: far } };
            at.held_for(flow, None, Self::subject(about, at.flow_class(flow)));
        }
    }

    /// Holds the flows of a host's `port` that are stopped, and no others.
    fn look(&self, node: &Node, at: &mut NodeView<'_>, port: PortId) {
        let flows: Vec<FlowId> = at.flows_at(port).collect();
        for flow in flows {
            if !at.flow_done(flow) {
                self.hold(node, at, port, flow);
            }
        }
    }

    /// Holds the transit queues of a switch port that are stopped, and no others.
    fn look_at_queues(&self, node: &Node, at: &mut NodeView<'_>, port: PortId, class: ClassId) {
        for queue in 0..self.layout.last_hop() {
            let stopped = node.far[self.place(port, class, queue)] || node.remote[self.lane(port, class)];
            let number = QueueId(self.first(class) + queue);
            at.hold_queue(port, number, stopped);
            if stopped {
                let far = || {
                    let (host, level) = self.facing(at.node(), port);
                    PortId(self.layout.unrank(queue, self.layout.digit(host, 1 - level)) as u16)
                };
                let about = match node.remote[self.lane(port, class)] {
                    true => About::Remote,
                    false => About::PassedOn { port: far() },
                };
                at.stopped_for(port, Scope::Held(number), Self::subject(about, class));
            }
        }
    }
}

impl FlowControl for Portfc {
    type Node = Node;
    type Frame = Frame;
    type Signal = ();

    fn node(&self, site: &Site<'_>) -> Node {
        let lanes = site.ports().len() * self.classes as usize;
        let places = lanes * self.layout.n as usize;
        Node {
            congested: vec![false; places],
            group: vec![0; lanes],
            stops: vec![Stops::default(); places],
            far: vec![false; places],
            remote: vec![false; lanes],
            counts: Counts::default(),
        }
    }

    fn lossless(&self) -> bool {
        self.lossless
    }

    fn flow_started(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, flow: FlowId) {
        self.hold(node, at, port, flow);
    }

    fn flow_moved(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, flow: FlowId) {
        self.flow_started(node, at, port, flow);
    }

    #[inline]
    fn queue(&self, _: &mut Node, at: &mut NodeView<'_>, visit: &Visit) -> QueueId {
        let first = self.first(visit.class);
        if at.is_host() {
            return QueueId(first);
        }
        let (host, level) = self.facing(at.node(), visit.out_port);
        QueueId(first + self.layout.switch_queue(level, host, at.packet(visit.packet).dst))
    }

    #[inline]
    fn enqueued(&self, node: &mut Node, at: &mut NodeView<'_>, visit: &Visit) {
        let bytes = at.queue_bytes(visit.out_port, visit.queue);
        node.counts.peak = node.counts.peak.max(bytes);
        if bytes > self.marks[at.is_host() as usize].pause && !node.congested[self.slot(visit)] {
            self.change(node, at, visit, true);
        }
    }

    #[inline]
    fn dequeued(&self, node: &mut Node, at: &mut NodeView<'_>, visit: &Visit) {
        if node.congested[self.slot(visit)]
            && at.queue_bytes(visit.out_port, visit.queue) <= self.marks[at.is_host() as usize].resume
        {
            self.change(node, at, visit, false);
        }
    }

    fn frame(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, frame: Frame) {
        let Frame { about, class, pause } = frame;
        match about {
            About::Transit { port: far } => {
                node.stops[self.place(port, class, far.0 as u32)].transit = pause;
                self.look(node, at, port);
            }
            About::LastHop { port: far } => {
                node.stops[self.place(port, class, far.0 as u32)].last_hop = pause;
                self.look(node, at, port);
                node.counts.passed_on += pause as u64;
                let other = PortId(1 - port.0);
                let heard = Because::Heard { port, subject: Self::subject(about, class) };
                self.notify(node, at, other, Frame { about: About::PassedOn { port: far }, class, pause }, heard);
            }
            About::PassedOn { port: far } => {
                // The host at this port, as the far switch numbers it, is not among the transit queues.
                let (host, level) = self.facing(at.node(), port);
                let queue = self.layout.rank(far.0 as u32, self.layout.digit(host, 1 - level));
                node.far[self.place(port, class, queue)] = pause;
                self.look_at_queues(node, at, port, class);
            }
            About::Remote => {
                node.remote[self.lane(port, class)] = pause;
                self.look_at_queues(node, at, port, class);
            }
        }
    }

    fn holder(&self, node: &Node, at: NodeId, port: PortId, queue: QueueId) -> Option<Vec<Wait>> {
        let (class, queue) = (ClassId((queue.0 / self.layout.n) as u8), queue.0 % self.layout.n);
        let (host, level) = self.facing(at, port);
        // The host's port on its other level.
        let far = self.map.base[host as usize] + 1 - level;
        let first = self.first(class);
        let mut waits = Vec::new();
        if node.remote[self.lane(port, class)] {
            waits.push(Wait { port: far, queue: first });
        }
        if node.far[self.place(port, class, queue)] {
            let digit = self.layout.unrank(queue, self.layout.digit(host, 1 - level));
            let switch = self.map.node[self.map.peer[far as usize] as usize];
            waits.push(Wait { port: self.map.base[switch as usize] + digit, queue: first + self.layout.last_hop() });
        }
        Some(waits)
    }

    fn counters(&self, nodes: &[&Node]) -> Vec<Counter> {
        vec![
            sum("pause_frames", nodes, |node| node.counts.pauses),
            sum("frames_passed_on", nodes, |node| node.counts.passed_on),
            sum("transit_congested", nodes, |node| node.counts.transit),
            sum("last_hop_congested", nodes, |node| node.counts.last_hop),
            sum("remote_congested", nodes, |node| node.counts.remote),
            max("queue_peak_bytes", nodes, |node| node.counts.peak),
            Counter::max("pause_threshold_bytes", self.marks[0].pause),
        ]
    }
}
