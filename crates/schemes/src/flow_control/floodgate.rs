//! Floodgate: a switch sends its next hops no more for a host than one window, and keeps what is beyond it in virtual output queues.
//!
//! A switch has a window for every destination host. A packet that leaves for another switch takes its size out of the window; the
//! downstream switch gives it back with a *credit* when the packet has left it in turn. The last switch sends to its host without a
//! window, so credits come back at the rate of that host's link: an incast fills the switches where it begins, not the one where it ends.
//! A packet that finds its destination's window used up, or others of its destination waiting, waits in a virtual output queue (VOQ),
//! where it is in nobody else's way.
//!
//! This is the practical design: credits for several destinations go together in one frame, once there are `batch` bytes of
//! them or after `interval`, the window has `interval` of the link's rate on top, and a switch has a limited number of VOQs. With an
//! `interval` of zero and `dst_pause` it is the ideal design, but for PFC, which the authors switch off between switches there.
//!
//! Mechanisms and numbers are those of the authors' simulator (Floodgate-NS3: its code, configurations and appendix on queueing), not of the
//! paper's text; no sections are cited for that reason.
//!
//! Credits are sequence numbers, not amounts: a credit that is lost is made good by the next one. A switch that has waited for a credit for
//! `syn_timeout` sends a SYN with the last number that it has put on the link. The link keeps order, so whatever the downstream switch has not
//! received by then is lost, and is given back as well.

use super::{Deadlines, check_frame, lets_all_come, max, pfc, sum};
use engine::{Bytes, Misfit, Rate, Time};
use fabric::axes::flow_control::{FlowControl, FlowControlDef, Headroom, Job, Layout, Over, Visit};
use fabric::axes::{Chosen, Counter, Definition};
use fabric::deadlock::Waits;
use fabric::id::{ClassId, FlowId, NodeId, PortId, QueueId};
use fabric::message::Payload;
use fabric::packet::{Kind, Packet};
use fabric::probe::{Because, Scope, Subject};
use fabric::topology::{self, Graph};
use fabric::view::{NodeView, Site};
use fabric::{Outcome, Setup, message};
use pfc::Pfc;
use std::collections::{BTreeMap, BTreeSet};

engine::choice! {
    /// Whose a destination's window is.
    pub enum Windows {
        /// One of the switch, for all its next hops together.
        Switch = "switch",
        /// One of every next hop.
        NextHop = "next-hop",
    }
}

engine::parameters! {
    /// Parameters of Floodgate. The defaults are those that its authors' simulator ships for the practical design.
    pub struct Params {
        /// A destination's window, in bandwidth-delay products of the next hop; what the link carries in `interval` comes on top.
        window: f64 = 1.5, in 1.0..=100.0,
        /// Whose the window is. Auto: the switch's, or the next hop's where links fail. While routes change a packet can come back to a switch
        /// that it has passed, and would wait there for its own window.
        windows: Option<Windows> = None,
        /// How long a credit may wait for others; zero returns every credit at once, in a frame of its own.
        interval: Time = Time::from_us(10), in Time::ZERO..=Time::from_ms(10),
        /// Credits for so many bytes, of all destinations together, are returned without waiting for the interval to end.
        batch: Bytes = Bytes(10_240), in Bytes(1)..=Bytes(100_000_000),
        /// Credits for a destination are withheld while more than this waits for it in VOQs, in bandwidth-delay products of the switch's
        /// fastest and longest link; zero never withholds any.
        withhold: f64 = 1.5, in 0.0..=1000.0,
        /// Virtual output queues of every port and class. Destinations share them by hash when there are more that wait.
        voqs: u32 = 100, in 1..=4000,
        /// First-hop switches stop hosts from sending to a destination of which they hold too much (per-destination PAUSE).
        dst_pause: bool = false,
        /// What a first-hop switch holds of a host's packets for a destination before it stops the host, in bandwidth-delay products of the
        /// host's link.
        pause_at: f64 = 1.5, in 0.0..=1000.0, if dst_pause == true,
        /// How much less it must hold before it lets the host go on.
        resume_gap: Bytes = Bytes(3072), if dst_pause == true,
        /// How long a switch waits for a credit before it asks with a SYN.
        syn_timeout: Time = Time::from_ms(1), in Time::from_us(1)..=Time::from_ms(10_000),
        /// Size of a frame that names one destination; each further one takes 8 bytes.
        frame: Bytes = Bytes(64),
    }
}

impl Definition for Params {
    fn name(&self) -> &'static str {
        "floodgate"
    }
    fn about(&self) -> &'static str {
        "Floodgate: switches have a window for every destination host, refilled by credits of the next switch; what is beyond it waits \
         in virtual output queues. PFC stays underneath. Lossless."
    }
    fn source(&self) -> &'static str {
        "K. Liu, C. Tian, Q. Wang, H. Zheng, P. Yu, W. Sun, Y. Xu, K. Meng, L. Han, J. Fu, W. Dou and G. Chen, \
         Floodgate: Taming Incast in Datacenter Networks, CoNEXT 2021"
    }
    fn conflict(&self, with: &Chosen<'_>) -> Option<Misfit> {
        // A packet put aside has not left the last switch, which returns no credit for it. Packets of the new path take the whole window of their destination
        // and wait for the last one of the old path, which waits for a window.
        let because = "those would take up the window that the packet they wait for needs, and both wait for ever";
        lets_all_come(self.name(), because, with)
    }
    fn check(&self) -> Result<(), Misfit> {
        check_frame("frame", self.frame)?;
        if self.longest_frame() > 2048 {
            return Err(Misfit::new("frame", self.frame, "write a size up to \"1928B\""));
        }
        Ok(())
    }
}

impl Params {
    /// Bytes of a frame that names so many destinations.
    fn frame_size(&self, destinations: usize) -> u64 {
        self.frame.0 + (destinations as u64 - 1) * ENTRY
    }
    fn longest_frame(&self) -> u64 {
        self.frame_size(MOST)
    }
}

impl FlowControlDef for Params {
    fn layout(&self, graph: &Graph) -> Result<Layout, Misfit> {
        if graph.forwarding {
            return Err(Misfit {
                parameter: "topology",
                message: "Floodgate's windows are those of switches, and hosts of this fabric forward".into(),
                help: "write another topology, or another flow control".into(),
            });
        }
        if self.windows == Some(Windows::Switch) && fails(graph) {
            return Err(Misfit {
                parameter: "scheme.floodgate.windows",
                message: "links of this fabric fail, and packets that come back to a switch by new routes would wait for their own window for ever"
                    .into(),
                help: "write \"next-hop\" or \"auto\"".into(),
            });
        }
        let host = |node: u32| graph.nodes[node as usize].kind == topology::Kind::Host;
        let lossy = graph.links.iter().any(|link| link.lossy() && (host(link.a.0) || host(link.b.0)));
        if self.dst_pause && lossy {
            return Err(Misfit {
                parameter: "scheme.floodgate.dst_pause",
                message:
                    "a host that does not hear that it may go on is stopped for ever, and links of hosts lose frames"
                        .into(),
                help: "write false, or leave loss and corruption to links between switches".into(),
            });
        }
        Ok(Layout {
            queues: Some(self.voqs + 1),
            // Floodgate's frames are control packets: a pause of PFC overtakes all but the one that is being sent.
            headroom: Some(Headroom::default()),
            frame: self.longest_frame().max(pfc::Params::default().frame.0),
            stops_for_hosts: true,
            ..Layout::default()
        })
    }
    fn waits(&self, _: &Setup) -> Waits {
        // A VOQ waits until packets for its first destination have left the next switch; it may have packets for any destination behind
        // that one. So a link waits for the links that its packets go on by, as it does with PFC underneath. That next hops which share
        // a window wait for what each other's packets go on by is not followed: both are nearer to the destination.
        Waits::Classes
    }
    fn switch_state(&self, ports: u64, classes: u64) -> u64 {
        // By VOQ: the destination and what waits for it. The window of a destination takes a word in a table that is as long as there are hosts;
        // that is not counted here.
        self.voqs as u64 * classes * 8 + pfc::Params::default().switch_state(ports, classes)
    }
    fn pause_in(&self, frame: &Packet) -> Option<(u8, bool)> {
        pfc::pause_beneath(frame)
    }
    fn run(&self, job: Job<'_>) -> Outcome {
        let scheme = over_pfc(self, &job.setup, job.promised);
        job.run(scheme)
    }
}

/// Floodgate as it is meant to be run: over PFC.
fn over_pfc(params: &Params, setup: &Setup, promised: bool) -> Over<Floodgate, Pfc> {
    let by_hop = match params.windows {
        None => fails(&setup.graph),
        Some(windows) => windows == Windows::NextHop,
    };
    Over { upper: Floodgate { params: params.clone(), by_hop }, lower: Pfc::beneath(&setup.graph, promised) }
}

/// Whether any link ever fails, so that routes change.
fn fails(graph: &Graph) -> bool {
    graph.links.iter().any(|link| link.failures().next().is_some())
}

/// The most destinations that a frame names.
const MOST: usize = 16;
/// Bytes of a destination and a sequence number in a frame.
const ENTRY: u64 = 8;

message! {
    /// What a frame says.
    pub enum Frame {
        /// From the downstream switch: what has left it.
        Credit {
            /// By destination, see [`entry`].
            entries: Payload,
        },
        /// From the upstream switch, which misses credits: what it has sent.
        Syn {
            /// By destination, see [`entry`].
            entries: Payload,
        },
        /// From the first switch to a host: stop sending to a destination, or go on.
        Pause {
            /// The destination.
            host: NodeId,
            /// The class.
            class: ClassId,
            /// Stop.
            on: bool,
        },
    }
}

/// A destination and a class: each class has windows of its own, as it has pauses of its own under PFC.
type Key = u32;

fn key(host: u32, class: ClassId) -> Key {
    host << 8 | class.0 as u32
}
fn class_of(key: Key) -> ClassId {
    ClassId(key as u8)
}

/// A destination and a sequence number as they are in a frame.
fn entry(key: Key, number: u32) -> u64 {
    (key as u64) << 32 | number as u64
}
fn read_entry(entry: u64) -> (Key, u32) {
    ((entry >> 32) as u32, entry as u32)
}

/// What is on the way to one destination by one port. Sequence numbers count bytes since the link came up, and wrap.
struct Out {
    port: PortId,
    /// Given to the port, from the window.
    passed: u32,
    /// Put on the link.
    sent: u32,
    /// Given back.
    credited: u32,
    /// Bytes in the port's ordinary queue: what waits in a VOQ there comes after them.
    ahead: u32,
    /// Bytes in a VOQ of the port.
    waiting: u64,
    /// When something was given back last, or taken while nothing was missing.
    heard: Time,
}

impl Out {
    fn missing(&self) -> u32 {
        self.passed.wrapping_sub(self.credited)
    }
}

/// What came for one destination by one port.
struct In {
    port: PortId,
    /// Received, or known to be lost.
    received: u32,
    /// Has left again, or is known to be lost.
    left: u32,
    /// What was said of that.
    said: u32,
    /// The neighbour wants to hear it again.
    asked: bool,
    /// Bytes that are here.
    here: u64,
    /// The host at the port is stopped.
    paused: bool,
}

impl In {
    fn owed(&self) -> u64 {
        self.left.wrapping_sub(self.said) as u64
    }
}

/// Why a VOQ is held where the next switch has not withheld credits.
const NO_WINDOW: &str = "the window toward a destination is used up by packets whose credits are still under way";
/// Why a VOQ is held that has a window.
const NOT_FIRST: &str = "packets for the same destination are ahead in the ordinary queue";

/// What a switch keeps of one destination.
#[derive(Default)]
struct Toward {
    window: u64,
    /// Bytes taken out of the window.
    used: u64,
    /// Bytes in VOQs.
    waiting: u64,
    /// The VOQ, while something waits.
    voq: u32,
    outs: Vec<Out>,
    ins: Vec<In>,
}

impl Toward {
    fn outgoing(&mut self, port: PortId, now: Time) -> &mut Out {
        let at = self.outs.iter().position(|out| out.port == port).unwrap_or_else(|| {
            self.outs.push(Out { port, passed: 0, sent: 0, credited: 0, ahead: 0, waiting: 0, heard: now });
            self.outs.len() - 1
        });
        &mut self.outs[at]
    }
    fn incoming(&mut self, port: PortId) -> &mut In {
        let at = self.ins.iter().position(|from| from.port == port).unwrap_or_else(|| {
            self.ins.push(In { port, received: 0, left: 0, said: 0, asked: false, here: 0, paused: false });
            self.ins.len() - 1
        });
        &mut self.ins[at]
    }
    /// The VOQs where something waits.
    fn places(&self) -> impl Iterator<Item = (PortId, u32)> + '_ {
        self.outs.iter().filter(|out| out.waiting > 0).map(|out| (out.port, self.voq))
    }
}

/// A port.
struct Line {
    neighbour: NodeId,
    to_host: bool,
    /// The window of destinations whose next hop is there.
    window: u64,
    /// What it holds for a destination before a host there is stopped.
    pause_at: u64,
    /// How often the link was lost.
    losses: u32,
    /// Destinations of which the neighbour is to hear.
    owed: BTreeSet<Key>,
    /// Bytes of credit for those of them that are not withheld.
    ready: u64,
    /// The interval runs.
    collecting: bool,
    /// The timeout of a SYN runs.
    expecting: bool,
    /// Bytes in the port's VOQs.
    waiting: u64,
    /// At a host: destinations that it must not send to.
    stopped: BTreeSet<Key>,
}

#[derive(Default)]
struct Counts {
    used_peak: u64,
    voq_packets: u64,
    voq_bytes: u64,
    voq_peak: u64,
    voqs_peak: u64,
    voq_collisions: u64,
    frames: u64,
    frames_by_timer: u64,
    credits: u64,
    withheld: u64,
    syns: u64,
    recovered: u64,
    pauses: u64,
    resumes: u64,
}

/// What a node keeps; a host has lines alone.
pub struct Node {
    towards: BTreeMap<Key, Toward>,
    lines: Vec<Line>,
    /// Credits for a destination are withheld while more than this waits for it.
    withhold: u64,
    /// By class and VOQ: destinations that have it.
    takers: Vec<u32>,
    deadlines: Deadlines,
    counts: Counts,
}

/// Timers of a port.
const COLLECT: u32 = 0;
const EXPECT: u32 = 1;
const TIMERS: u32 = 2;

/// The mechanism: what all nodes share.
#[derive(Clone)]
pub struct Floodgate {
    params: Params,
    /// Every next hop has a window of its own.
    by_hop: bool,
}

/// Bandwidth-delay products as bytes.
fn times(factor: f64, bytes: u64) -> u64 {
    (factor * bytes as f64) as u64
}

impl Floodgate {
    /// The queue of what has passed its window, counted within its class.
    fn ordinary(&self) -> u32 {
        self.params.voqs
    }
    fn number(&self, class: ClassId, queue: u32) -> QueueId {
        QueueId(class.0 as u32 * (self.params.voqs + 1) + queue)
    }

    /// What a switch keeps of a destination, from its first packet on.
    fn meet(&self, node: &mut Node, at: &NodeView<'_>, key: Key) {
        let lines = &node.lines;
        node.towards.entry(key).or_insert_with(|| {
            // The window is that of the largest next hop; without a path, of the largest port.
            let largest = at.paths(NodeId(key >> 8)).map(|port| lines[port.index()].window).max();
            let window = largest.or(lines.iter().map(|line| line.window).max()).unwrap_or(0);
            Toward { window, ..Toward::default() }
        });
    }

    /// Whether the window of a destination has room for a packet that leaves by `port`. One packet may always go: a window smaller
    /// than it would hold it for ever.
    fn admits(&self, node: &Node, toward: &Toward, port: PortId, size: u16) -> bool {
        let (used, window) = match self.by_hop {
            false => (toward.used, toward.window),
            true => {
                let used = toward.outs.iter().find(|out| out.port == port).map_or(0, Out::missing);
                (used as u64, node.lines[port.index()].window)
            }
        };
        used == 0 || used + size as u64 <= window
    }

    /// A VOQ for a destination that has none: one that nobody has, or else by hash.
    fn assign(&self, node: &Node, key: Key) -> u32 {
        let first = class_of(key).index() * self.params.voqs as usize;
        let takers = &node.takers[first..first + self.params.voqs as usize];
        let hashed = (key as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        takers.iter().position(|&count| count == 0).map_or(hashed as u32 % self.params.voqs, |free| free as u32)
    }

    /// Whether a packet takes room in a window: data for another switch.
    fn is_gated(&self, node: &Node, at: &NodeView<'_>, visit: &Visit) -> bool {
        let packet = at.packet(visit.packet);
        packet.kind == Kind::Data && node.lines[visit.out_port.index()].neighbour.0 != packet.dst
    }

    /// Holds a VOQ whose first packet has no window, or comes after others for its destination in the ordinary queue.
    fn look(&self, node: &Node, at: &mut NodeView<'_>, port: PortId, queue: QueueId) {
        let mut ahead = false;
        let hold = at.head(port, queue).is_some_and(|head| {
            let &Packet { dst, class, size, .. } = at.packet(head);
            let toward = &node.towards[&key(dst, ClassId(class))];
            ahead = toward.outs.iter().any(|out| out.port == port && out.ahead > 0);
            ahead || !self.admits(node, toward, port, size)
        });
        at.hold_queue(port, queue, hold);
        if hold && let Some(head) = at.head(port, queue) {
            let &Packet { dst, class, .. } = at.packet(head);
            at.stopped_for(port, Scope::Held(queue), Subject::toward(NodeId(dst), ClassId(class)));
            at.stopped_by_rule(port, Scope::Held(queue), if ahead { NOT_FIRST } else { NO_WINDOW });
        }
    }

    /// Looks at every VOQ where packets for a destination wait.
    fn look_at_all(&self, node: &Node, at: &mut NodeView<'_>, key: Key) {
        for (port, voq) in node.towards[&key].places() {
            self.look(node, at, port, self.number(class_of(key), voq));
        }
    }

    /// Something was taken from a window by `port`: a credit is expected.
    fn expect(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId) {
        let line = &mut node.lines[port.index()];
        if !line.expecting {
            line.expecting = true;
            node.deadlines.set(at, port, EXPECT, Some(self.params.syn_timeout));
        }
    }

    /// Returns the credits of a port if there are enough, and otherwise makes sure that the interval runs.
    fn collect(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId) {
        let line = &mut node.lines[port.index()];
        if line.ready >= self.params.batch.0 || line.ready > 0 && self.params.interval == Time::ZERO {
            self.return_credits(node, at, port);
        } else if line.ready > 0 && !line.collecting {
            line.collecting = true;
            node.deadlines.set(at, port, COLLECT, Some(self.params.interval));
        }
    }

    /// Sends the neighbour at a port all credits that are not withheld.
    fn return_credits(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId) {
        let line = &mut node.lines[port.index()];
        (line.ready, line.collecting) = (0, false);
        node.deadlines.set(at, port, COLLECT, None);
        let (towards, withhold) = (&mut node.towards, node.withhold);
        let mut entries: Vec<u64> = Vec::new();
        line.owed.retain(|&key| {
            let Some(toward) = towards.get_mut(&key).filter(|toward| toward.waiting <= withhold) else { return true };
            let from = toward.incoming(port);
            node.counts.credits += from.owed();
            (from.said, from.asked) = (from.left, false);
            entries.push(entry(key, from.left));
            false
        });
        for some in entries.chunks(MOST) {
            node.counts.frames += 1;
            at.send_note(port, self.params.frame_size(some.len()) as u16, Frame::Credit { entries: some.into() });
        }
    }

    /// More waits for a destination than credits are returned for: those that have not been sent are withheld.
    fn withhold(&self, node: &mut Node, at: &mut NodeView<'_>, key: Key) {
        node.counts.withheld += 1;
        let (host, class) = (NodeId(key >> 8), class_of(key));
        for from in &node.towards[&key].ins {
            at.orders(from.port, Subject::toward(host, class), Because::Toward { host, class });
            node.lines[from.port.index()].ready -= from.owed();
        }
    }

    /// Little enough waits for a destination again.
    fn relent(&self, node: &mut Node, at: &mut NodeView<'_>, key: Key) {
        let owed = |from: &In| (from.port, from.owed(), from.asked);
        let all: Vec<(PortId, u64, bool)> = node.towards[&key].ins.iter().map(owed).collect();
        for (port, owed, asked) in all {
            node.lines[port.index()].ready += owed;
            match asked {
                true => self.return_credits(node, at, port),
                false => self.collect(node, at, port),
            }
        }
    }

    /// Packets that came in by `port` have left, or are lost: the neighbour gets that much of its window back.
    fn owe(&self, node: &mut Node, port: PortId, key: Key, bytes: u32) {
        let withhold = node.withhold;
        let Some(toward) = node.towards.get_mut(&key) else { return };
        let from = toward.incoming(port);
        from.left = from.left.wrapping_add(bytes);
        let line = &mut node.lines[port.index()];
        line.owed.insert(key);
        if toward.waiting <= withhold {
            line.ready += bytes as u64;
        }
    }

    /// A credit of the neighbour at `port`.
    fn credit(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, key: Key, number: u32) {
        let Some(toward) = node.towards.get_mut(&key) else { return };
        let out = toward.outgoing(port, at.now());
        let bytes = number.wrapping_sub(out.credited);
        // An older number than the last one; or one from before the link was lost, which no neighbour sends.
        if bytes > out.sent.wrapping_sub(out.credited) {
            return;
        }
        out.heard = at.now();
        out.credited = number;
        toward.used -= bytes as u64;
        self.look_at_all(node, at, key);
    }

    /// The neighbour at `port` misses credits, and has sent so much.
    fn answer(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, key: Key, number: u32) {
        self.meet(node, at, key);
        let Some(toward) = node.towards.get_mut(&key) else { return };
        let from = toward.incoming(port);
        from.asked = true;
        let lost = number.wrapping_sub(from.received);
        if lost != 0 && lost < 1 << 31 {
            from.received = number;
            node.counts.recovered += lost as u64;
            self.owe(node, port, key, lost);
        }
        node.lines[port.index()].owed.insert(key);
    }

    /// Asks for the credits of a port that have not come for long.
    fn ask(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId) {
        let (now, timeout) = (at.now(), self.params.syn_timeout);
        let mut missing = false;
        let mut entries: Vec<u64> = Vec::new();
        for (&key, toward) in &node.towards {
            for out in toward.outs.iter().filter(|out| out.port == port && out.missing() > 0) {
                missing = true;
                if out.sent != out.credited && out.heard + timeout <= now {
                    entries.push(entry(key, out.sent));
                }
            }
        }
        for some in entries.chunks(MOST) {
            node.counts.syns += 1;
            at.send_note(port, self.params.frame_size(some.len()) as u16, Frame::Syn { entries: some.into() });
        }
        if missing {
            self.expect(node, at, port);
        }
    }

    /// Stops the host at a port from sending to a destination, or lets it go on.
    fn stop_host(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, key: Key) {
        let line = &node.lines[port.index()];
        let Some(toward) = node.towards.get_mut(&key).filter(|_| self.params.dst_pause && line.to_host) else { return };
        let from = toward.incoming(port);
        let limit = if from.paused { line.pause_at.saturating_sub(self.params.resume_gap.0) } else { line.pause_at };
        let on = from.here > limit;
        if on != from.paused {
            from.paused = on;
            *(if on { &mut node.counts.pauses } else { &mut node.counts.resumes }) += 1;
            let (host, class) = (NodeId(key >> 8), class_of(key));
            if on {
                at.orders(port, Subject::toward(host, class), Because::Toward { host, class });
            }
            let frame = Frame::Pause { host, class, on };
            at.send_note(port, self.params.frame_size(1) as u16, frame);
        }
    }

    /// What a host has been told of a flow that sends by `port`.
    fn obey(&self, node: &Node, at: &mut NodeView<'_>, port: PortId, flow: FlowId) {
        let key = key(at.flow(flow).dst.0, at.flow_class(flow));
        let stopped = node.lines[port.index()].stopped.contains(&key);
        at.hold_flow(flow, stopped);
        if stopped {
            at.held_for(flow, None, Subject::toward(NodeId(key >> 8), class_of(key)));
        }
    }
}

impl FlowControl for Floodgate {
    type Node = Node;
    type Frame = Frame;
    type Signal = ();

    fn node(&self, site: &Site<'_>) -> Node {
        let bdp = |port: PortId, rate: Rate| {
            let (to, back) = site.latency(port);
            rate.bytes_in(to + back)
        };
        let line = |port: PortId| Line {
            neighbour: site.neighbour(port),
            to_host: site.faces_host(port),
            window: times(self.params.window, bdp(port, site.rate(port)))
                + site.rate(port).bytes_in(self.params.interval),
            pause_at: times(self.params.pause_at, bdp(port, site.rate_in(port))),
            losses: 0,
            owed: BTreeSet::new(),
            ready: 0,
            collecting: false,
            expecting: false,
            waiting: 0,
            stopped: BTreeSet::new(),
        };
        let rate = site.ports().map(|port| site.rate(port)).max().unwrap_or_default();
        let longest = site.ports().map(|port| site.latency(port)).map(|(to, back)| to + back).max().unwrap_or_default();
        let withhold = match self.params.withhold {
            0.0 => u64::MAX,
            factor => times(factor, rate.bytes_in(longest)),
        };
        let takers = if site.is_host() { 0 } else { site.setup.classes as usize * self.params.voqs as usize };
        Node {
            towards: BTreeMap::new(),
            lines: site.ports().map(line).collect(),
            withhold,
            takers: vec![0; takers],
            deadlines: Deadlines::new(site.ports().len(), TIMERS),
            counts: Counts::default(),
        }
    }

    fn timers(&self, _: u8) -> u32 {
        TIMERS
    }

    fn flow_started(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, flow: FlowId) {
        if !node.lines[port.index()].stopped.is_empty() {
            self.obey(node, at, port, flow);
        }
    }

    fn flow_moved(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, flow: FlowId) {
        self.obey(node, at, port, flow);
    }

    fn queue(&self, node: &mut Node, at: &mut NodeView<'_>, visit: &Visit) -> QueueId {
        let mut queue = self.ordinary();
        if self.is_gated(node, at, visit) {
            let key = key(at.packet(visit.packet).dst, visit.class);
            match node.towards.get(&key) {
                Some(toward) if toward.waiting > 0 => queue = toward.voq,
                Some(toward) if !self.admits(node, toward, visit.out_port, visit.size) => {
                    queue = self.assign(node, key)
                }
                _ => {}
            }
        }
        self.number(visit.class, queue)
    }

    fn enqueued(&self, node: &mut Node, at: &mut NodeView<'_>, visit: &Visit) {
        let &Visit { packet, in_port, out_port, queue, class, size } = visit;
        if at.packet(packet).kind != Kind::Data {
            return;
        }
        let (key, now, withhold) = (key(at.packet(packet).dst, class), at.now(), node.withhold);
        self.meet(node, at, key);
        let Some(toward) = node.towards.get_mut(&key) else { return };
        let from = toward.incoming(in_port);
        from.received = from.received.wrapping_add(size as u32);
        from.here += size as u64;
        // What came before its link was lost is nothing that the neighbour waits for.
        *at.word(packet) = node.lines[in_port.index()].losses;
        self.stop_host(node, at, in_port, key);
        if !self.is_gated(node, at, visit) {
            return;
        }
        let voq = queue.0 - self.number(class, 0).0;
        let Some(toward) = node.towards.get_mut(&key) else { return };
        if voq == self.ordinary() {
            toward.used += size as u64;
            node.counts.used_peak = node.counts.used_peak.max(toward.used);
            let out = toward.outgoing(out_port, now);
            if out.missing() == 0 {
                out.heard = now;
            }
            out.passed = out.passed.wrapping_add(size as u32);
            out.ahead += size as u32;
            return self.expect(node, at, out_port);
        }
        if toward.waiting == 0 {
            toward.voq = voq;
            let takers = &mut node.takers[class.index() * self.params.voqs as usize + voq as usize];
            *takers += 1;
            node.counts.voq_collisions += (*takers > 1) as u64;
            let taken = node.takers.iter().filter(|&&count| count > 0).count();
            node.counts.voqs_peak = node.counts.voqs_peak.max(taken as u64);
        }
        let before = toward.waiting <= withhold;
        toward.waiting += size as u64;
        toward.outgoing(out_port, now).waiting += size as u64;
        node.lines[out_port.index()].waiting += size as u64;
        node.counts.voq_packets += 1;
        node.counts.voq_bytes += size as u64;
        node.counts.voq_peak = node.counts.voq_peak.max(node.counts.voq_bytes);
        if before && toward.waiting > withhold {
            self.withhold(node, at, key);
        }
        if at.head(out_port, queue) == Some(packet) {
            self.look(node, at, out_port, queue);
        }
    }

    /// What waits in VOQs is the business of its destinations alone: others are told of the ordinary queue.
    fn reported_queue(&self, node: &Node, at: &NodeView<'_>, visit: &Visit) -> Option<u64> {
        let &Visit { packet, out_port, queue, class, size, .. } = visit;
        // The packet has left its queue, and is still counted here if that was a VOQ.
        let own = if queue == self.number(class, self.ordinary()) { 0 } else { size as u64 };
        let waiting = node.lines[out_port.index()].waiting - own;
        let toward = node.towards.get(&key(at.packet(packet).dst, class));
        let concerned = toward.is_some_and(|toward| toward.waiting > own);
        (waiting > 0 && !concerned).then(|| at.queued(out_port) - waiting)
    }

    fn dequeued(&self, node: &mut Node, at: &mut NodeView<'_>, visit: &Visit) {
        let &Visit { packet, in_port, class, size, .. } = visit;
        if at.packet(packet).kind != Kind::Data {
            return;
        }
        let key = key(at.packet(packet).dst, class);
        if self.is_gated(node, at, visit) {
            self.gone(node, at, visit, key);
        }
        let Some(toward) = node.towards.get_mut(&key) else { return };
        toward.incoming(in_port).here -= size as u64;
        self.stop_host(node, at, in_port, key);
        let line = &node.lines[in_port.index()];
        if !line.to_host && *at.word(packet) == line.losses {
            self.owe(node, in_port, key, size as u32);
            self.collect(node, at, in_port);
        }
    }

    fn frame(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, frame: Frame) {
        match frame {
            Frame::Credit { entries } => entries.iter().for_each(|&entry| {
                let (key, number) = read_entry(entry);
                self.credit(node, at, port, key, number);
            }),
            Frame::Syn { entries } => {
                for &entry in &entries {
                    let (key, number) = read_entry(entry);
                    self.answer(node, at, port, key, number);
                }
                self.return_credits(node, at, port);
            }
            Frame::Pause { host, class, on } => {
                let key = key(host.0, class);
                let stopped = &mut node.lines[port.index()].stopped;
                if on {
                    stopped.insert(key)
                } else {
                    stopped.remove(&key)
                };
                for flow in at.flows_at(port).collect::<Vec<FlowId>>() {
                    self.obey(node, at, port, flow);
                }
            }
        }
    }

    fn timer(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, timer: u32) {
        if !node.deadlines.due(at, port, timer) {
            return;
        }
        if timer == COLLECT {
            let before = node.counts.frames;
            self.return_credits(node, at, port);
            node.counts.frames_by_timer += node.counts.frames - before;
        } else {
            node.lines[port.index()].expecting = false;
            self.ask(node, at, port);
        }
    }

    fn link_lost(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId) {
        let line = &mut node.lines[port.index()];
        line.losses += 1;
        line.owed.clear();
        line.ready = 0;
        if at.is_host() {
            line.stopped.clear();
            for flow in at.flows_at(port).collect::<Vec<FlowId>>() {
                self.obey(node, at, port, flow);
            }
            return;
        }
        for toward in node.towards.values_mut() {
            for out in toward.outs.iter_mut().filter(|out| out.port == port) {
                toward.used -= out.missing() as u64;
                *out = Out { port, passed: 0, sent: 0, credited: 0, ahead: 0, ..*out };
            }
            for from in toward.ins.iter_mut().filter(|from| from.port == port) {
                *from = In { port, received: 0, left: 0, said: 0, asked: false, here: from.here, paused: false };
            }
        }
        let keys: Vec<Key> = node.towards.keys().copied().collect();
        keys.into_iter().for_each(|key| self.look_at_all(node, at, key));
    }

    fn counters(&self, nodes: &[&Node]) -> Vec<Counter> {
        let counted = |name: &'static str, of: fn(&Counts) -> u64| sum(name, nodes, |node| of(&node.counts));
        vec![
            counted("credit_frames", |c| c.frames),
            counted("credit_frames_by_timer", |c| c.frames_by_timer),
            counted("credited_bytes", |c| c.credits),
            counted("credits_withheld", |c| c.withheld),
            max("window_peak_bytes", nodes, |node| node.counts.used_peak),
            counted("voq_packets", |c| c.voq_packets),
            max("voq_peak_bytes", nodes, |node| node.counts.voq_peak),
            max("voqs_peak", nodes, |node| node.counts.voqs_peak),
            counted("voq_collisions", |c| c.voq_collisions),
            counted("syn_frames", |c| c.syns),
            counted("recovered_bytes", |c| c.recovered),
            counted("dst_pauses", |c| c.pauses),
            counted("dst_resumes", |c| c.resumes),
        ]
    }
}

impl Floodgate {
    /// A packet for another switch has left its queue, to be sent or because its link failed.
    fn gone(&self, node: &mut Node, at: &mut NodeView<'_>, visit: &Visit, key: Key) {
        let &Visit { out_port, queue, class, size, .. } = visit;
        let (now, up, withhold) = (at.now(), at.is_up(out_port), node.withhold);
        let Some(toward) = node.towards.get_mut(&key) else { return };
        if queue == self.number(class, self.ordinary()) {
            // The counts of a link that was lost are void already.
            if up {
                let out = toward.outgoing(out_port, now);
                out.sent = out.sent.wrapping_add(size as u32);
                out.ahead -= size as u32;
                if out.ahead == 0 && out.waiting > 0 {
                    let queue = self.number(class, toward.voq);
                    self.look(node, at, out_port, queue);
                }
            }
            return;
        }
        let out = toward.outgoing(out_port, now);
        out.waiting -= size as u64;
        node.lines[out_port.index()].waiting -= size as u64;
        if up {
            if out.missing() == 0 {
                out.heard = now;
            }
            out.passed = out.passed.wrapping_add(size as u32);
            out.sent = out.sent.wrapping_add(size as u32);
            toward.used += size as u64;
            node.counts.used_peak = node.counts.used_peak.max(toward.used);
        }
        let before = toward.waiting > withhold;
        toward.waiting -= size as u64;
        node.counts.voq_bytes -= size as u64;
        if toward.waiting == 0 {
            node.takers[class.index() * self.params.voqs as usize + toward.voq as usize] -= 1;
        }
        let relents = before && toward.waiting <= withhold;
        // The next packet may be for another destination, and the same window has less room for other ports.
        self.look(node, at, out_port, queue);
        self.look_at_all(node, at, key);
        if up {
            self.expect(node, at, out_port);
        }
        if relents {
            self.relent(node, at, key);
        }
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
