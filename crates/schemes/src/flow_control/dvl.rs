//! Dynamic virtual lanes: congested flows are moved to one queue of their own at every port, switch by switch.
//!
//! Every port has a queue for flows that are not congested (nCFQ) and one for those that are (CFQ). A packet that finds the
//! first too long puts its flow in the switch's table (CFT), and later packets of that flow go to the second. As
//! that grows, packets are accounted to a group of their own at their ingress, and as that grows, the upstream neighbour is
//! notified of the flow, keeps it apart as well, and is paused for that queue alone. Markings in both queues keep
//! order when flows change queues. See docs/dvl.md for our reading of the paper, and why nothing is lost, overtaken
//! or stuck.

mod lane;

use super::{Deadlines, check_frame, max, needs_order, pfc, sum};
use engine::{Bytes, Misfit, Rate, Time};
use fabric::axes::flow_control::{FlowControl, FlowControlDef, Headroom, Job, Layout, Visit};
use fabric::axes::{Chosen, Counter, Definition};
use fabric::id::{ClassId, FlowId, PortId, QueueId};
use fabric::packet::{Kind, flag};
use fabric::probe::{Because, Scope, Subject};
use fabric::topology::Graph;
use fabric::view::{NodeView, Site};
use fabric::{Outcome, message};
use lane::{CONGESTED, Lane, NO_LANE, PLAIN};
use std::collections::VecDeque;

engine::parameters! {
    /// Parameters of DVL and of enhanced DVL. The paper gives none: all defaults are ours.
    pub struct Params {
        /// Enhanced DVL: queues are deallocated by each switch for itself, and while markings are in both queues a pause of
        /// one stops both.
        enhanced: bool = false,
        /// A flow whose packet finds this much in the queue of a port is congested. Auto: what the port sends in
        /// four times the round trip to its neighbour.
        threshold: Option<Bytes> = None,
        /// Packets are accounted to the ingress group of congested flows while their queue is at least this long. Auto:
        /// what the port sends in one such round trip.
        ingress: Option<Bytes> = None,
        /// The upstream neighbour is notified of flows while this ingress group holds at least this much. Auto: what
        /// its link carries in one such round trip.
        tell: Option<Bytes> = None,
        /// Entries of a switch's table of congested flows.
        cft: u32 = 2048,
        /// A neighbour is notified of the same flow again after this time, and where deallocation is local, flows that it was
        /// notified of are kept apart for this time at least. Auto: sixteen round trips of the link.
        hold: Option<Time> = None,
        /// Size of a frame, be it a pause, a resume, or one that notifies of a flow.
        frame: Bytes = Bytes(64),
        /// The neighbour is notified of a flow at most this often while it is kept apart. Auto: as often as it takes.
        messages: Option<u32> = None,
        /// Bytes of the flow's packet that a frame that notifies of it carries, besides those of `frame`.
        octets: Bytes = Bytes(0),
        /// Entries live as in IEEE 802.1Qcz: those that the switch made for itself until its queues are short, those that the
        /// neighbour downstream asked for up to this time longer; no switch withdraws what it asked for. Auto: as in DVL.
        life: Option<Time> = None,
    }
}

impl Definition for Params {
    fn name(&self) -> &'static str {
        "dvl"
    }
    fn about(&self) -> &'static str {
        "Dynamic virtual lanes: congested flows are moved to a queue of their own at every port, which is paused apart from \
         the other. Lossless."
    }
    fn source(&self) -> &'static str {
        "L. Gonzalez-Naharro et al., Efficient Dynamic Isolation of Congestion in Lossless DataCenter Networks, \
         NEAT workshop at SIGCOMM 2019"
    }
    fn conflict(&self, with: &Chosen<'_>) -> Option<Misfit> {
        needs_order(self.name(), with)
    }
    fn check(&self) -> Result<(), Misfit> {
        check_frame("frame", self.frame)?;
        if !(1..=1_000_000).contains(&self.cft) {
            return Err(Misfit::new("cft", self.cft, "write 1 to 1000000"));
        }
        if self.threshold == Some(Bytes(0)) {
            return Err(Misfit::new("threshold", Bytes(0), "write a size above zero, or \"auto\""));
        }
        if self.messages == Some(0) {
            return Err(Misfit::new("messages", 0, "write 1 or more, or \"auto\""));
        }
        if self.octets > Bytes(512) {
            return Err(Misfit::new("octets", self.octets, "write \"0B\" to \"512B\""));
        }
        if let Some(life) = self.life.filter(|life| !(Time::from_ns(10)..=Time::from_ms(10_000)).contains(life)) {
            return Err(Misfit::new("life", life, "write \"10ns\" to \"10s\", or \"auto\""));
        }
        match self.hold {
            Some(hold) if !(Time::from_ns(10)..=Time::from_ms(1000)).contains(&hold) => {
                Err(Misfit::new("hold", hold, "write \"10ns\" to \"1s\", or \"auto\""))
            }
            _ => Ok(()),
        }
    }
}

impl FlowControlDef for Params {
    fn layout(&self, graph: &Graph) -> Result<Layout, Misfit> {
        if graph.forwarding {
            return Err(Misfit {
                parameter: "topology",
                message: "DVL's queues are those of switches, and hosts of this fabric forward".into(),
                help: "write another topology, or another flow control".into(),
            });
        }
        Ok(Layout {
            queues: Some(2),
            groups: 2,
            // Others than pauses wait in their mailbox while a frame waits at the port: see `Dvl::pump`.
            headroom: Some(Headroom { other_frames: 1 }),
            // The largest: headroom has room for whichever waits before a pause.
            frame: self.frame.0 + self.octets.0,
            ..Layout::default()
        })
    }
    fn switch_state(&self, ports: u64, classes: u64) -> u64 {
        // An entry of the table of congested flows is a 5-tuple and a port: fourteen bytes. By port and class: what is allocated,
        // marked, paused and asked for.
        self.cft as u64 * 14 + ports * classes * 8
    }
    fn run(&self, job: Job<'_>) -> Outcome {
        let scheme = Dvl::new(self, &job.setup.graph, job.promised);
        job.run(scheme)
    }
}

message! {
    /// What a frame says.
    pub enum Frame {
        /// Stop a group of a class.
        Pause {
            /// The class.
            class: ClassId,
            /// Its congested flows, or else the others.
            congested: bool,
        },
        /// Go on with it.
        Resume {
            /// The class.
            class: ClassId,
            /// Its congested flows, or else the others.
            congested: bool,
        },
        /// Keep a flow apart.
        Ask {
            /// Its class.
            class: ClassId,
            /// The flow.
            flow: FlowId,
            /// The lane that asks, as its own switch numbers it: compared with no other switch's.
            lane: u32,
        },
        /// A lane no longer asks for anything.
        Drop {
            /// Its class.
            class: ClassId,
            /// The lane.
            lane: u32,
        },
    }
}

/// What a timer of a port is for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Timer {
    /// A lane may be deallocated from now on.
    Look(ClassId),
    /// A frame that is no pause may find its turn.
    Mail,
    /// The pause of a group at the neighbour must be renewed.
    Renew(ClassId, usize),
    /// The neighbour's pause of a group has run out.
    End(ClassId, usize),
}

impl Timer {
    fn count(classes: u8) -> u32 {
        classes as u32 * 5 + 1
    }

    fn number(self, classes: u8) -> u32 {
        let place = |class: ClassId, group: usize| classes as u32 + 1 + (class.0 as u32 * 2 + group as u32) * 2;
        match self {
            Timer::Look(class) => class.0 as u32,
            Timer::Mail => classes as u32,
            Timer::Renew(class, group) => place(class, group),
            Timer::End(class, group) => place(class, group) + 1,
        }
    }

    fn of(number: u32, classes: u8) -> Timer {
        let Some(place) = number.checked_sub(classes as u32 + 1) else {
            return if number < classes as u32 { Timer::Look(ClassId(number as u8)) } else { Timer::Mail };
        };
        let (class, group) = (ClassId((place / 4) as u8), (place / 2 % 2) as usize);
        if place.is_multiple_of(2) { Timer::Renew(class, group) } else { Timer::End(class, group) }
    }
}

/// A port, as packets come in by it or leave by it.
struct Side {
    /// Depth at which the queue of its other flows is congested.
    threshold: u64,
    /// Depth at which its congested flows are accounted apart.
    ingress: u64,
    /// Size of the ingress group at which its neighbour is notified.
    notify: u64,
    /// Time between two notifications of the same flow.
    hold: Time,
    /// How long a frame takes.
    frame_time: Time,
    /// Frames other than pauses that have not been sent.
    mail: VecDeque<Frame>,
    /// A look at them is on the event queue.
    waiting: bool,
    /// Of a host: flows that the neighbour asks for, by number, and which of its lanes does.
    listed: Vec<(FlowId, u32)>,
    /// Of a host: classes of which those are stopped.
    stopped: u32,
}

#[derive(Default)]
struct Counts {
    local: u64,
    remote: u64,
    /// Pauses of one queue that stopped the other as well.
    both: u64,
    allocations: u64,
    deallocations: u64,
    isolated: u64,
    full: u64,
    full_packets: u64,
    peak: u64,
    notified: u64,
    ended: u64,
    at_hosts: u64,
    markings: u64,
    packets: u64,
    accounted: u64,
    pauses: [u64; 2],
    resumes: [u64; 2],
}

/// The mechanism: what all nodes share.
#[derive(Clone)]
pub struct Dvl {
    params: Params,
    frame: u16,
    /// Size of a frame that notifies of a flow.
    message: u16,
    /// How many of these there are for a flow at most.
    messages: u32,
    /// How long a neighbour's entry lives, as in 802.1Qcz.
    life: Option<Time>,
    cft: u32,
    enhanced: bool,
    /// Each switch deallocates for itself.
    local: bool,
    lossless: bool,
    /// How long a pause lasts unless it is renewed; `None` for ever.
    pause: Option<Time>,
}

/// What a node keeps.
pub struct Node {
    classes: u8,
    /// By port and class.
    lanes: Vec<Lane>,
    /// By port.
    sides: Vec<Side>,
    /// Entries in use.
    used: u32,
    deadlines: Deadlines,
    /// Where the entry of the packet at hand is in its lane.
    found: Option<usize>,
    counts: Counts,
}

impl Node {
    /// The number of a lane.
    #[inline]
    fn number(&self, port: PortId, class: ClassId) -> usize {
        port.index() * self.classes as usize + class.index()
    }
    #[inline]
    fn lane(&mut self, port: PortId, class: ClassId) -> &mut Lane {
        let number = self.number(port, class);
        &mut self.lanes[number]
    }
    #[inline]
    fn side(&mut self, port: PortId) -> &mut Side {
        &mut self.sides[port.index()]
    }
    fn sum(&self, of: impl Fn(&Lane) -> u64) -> u64 {
        self.lanes.iter().map(of).sum()
    }
}

/// A queue of a class at any port.
#[inline]
fn queue_of(class: ClassId, queue: usize) -> QueueId {
    QueueId(class.0 as u32 * 2 + queue as u32)
}

/// Which of the two queues of its class this is.
#[inline]
fn place_of(queue: QueueId) -> usize {
    (queue.0 & 1) as usize
}

impl Dvl {
    /// DVL over a fabric, which promises to lose nothing or does not.
    pub fn new(params: &Params, graph: &Graph, lossless: bool) -> Dvl {
        let limit = pfc::pause_limit(graph, params.frame.0 + params.octets.0);
        Dvl {
            params: params.clone(),
            frame: params.frame.0 as u16,
            message: (params.frame.0 + params.octets.0) as u16,
            messages: params.messages.unwrap_or(u32::MAX),
            life: params.life,
            cft: params.cft,
            enhanced: params.enhanced,
            // The frame that withdraws a request can get lost.
            local: params.enhanced || params.life.is_some() || limit.is_some(),
            lossless,
            pause: limit,
        }
    }

    fn side(&self, site: &Site<'_>, port: PortId) -> Side {
        let (params, setup) = (&self.params, site.setup);
        let (out, home) = (site.rate(port), site.rate_in(port));
        // Until an answer has come: both directions, the packets that are in flight, and the frame.
        let (packet, frame) = (setup.max_packet(), params.frame.0);
        let (there, back) = site.latency(port);
        let on_link = match out == home {
            true => setup.clock.duration(2 * packet + frame, out),
            false => setup.clock.duration(packet + frame, out) + setup.clock.duration(packet, home),
        };
        let round = there + back + on_link;
        let carries = |rate: Rate, rounds: u64| rate.bytes_in(Time(rounds * round.0)).max(1);
        Side {
            threshold: params.threshold.map_or(carries(out, 4), |bytes| bytes.0),
            ingress: params.ingress.map_or(carries(out, 1), |bytes| bytes.0),
            notify: params.tell.map_or(carries(home, 1), |bytes| bytes.0),
            hold: params.hold.unwrap_or(Time(16 * round.0)),
            frame_time: setup.clock.duration(frame, out).max(Time(1)),
            mail: VecDeque::new(),
            waiting: false,
            listed: Vec::new(),
            stopped: 0,
        }
    }

    /// Lets the queues of a lane do what pauses and markings allow.
    fn apply(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, class: ClassId) {
        let number = node.number(port, class);
        let l = &mut node.lanes[number];
        let both = self.enhanced && l.in_sync() && l.stopped.contains(&true);
        let before = std::mem::replace(&mut l.both, both);
        node.counts.both += (both && !before && l.stopped.contains(&false)) as u64;
        for queue in [PLAIN, CONGESTED] {
            let number = queue_of(class, queue);
            at.pause_queue(port, number, l.stopped[queue] || both);
            if both && !l.stopped[queue] {
                at.stopped_for(port, Scope::Queue(number), Subject::queue(queue_of(class, 1 - queue)));
            }
            let blocked = l.blocked(queue);
            at.hold_queue(port, number, blocked);
            if blocked {
                // What was in the other queue before goes first.
                at.held_because(port, number, Because::Queue { port, queue: queue_of(class, 1 - queue) });
            }
        }
    }

    /// Keeps a flow apart at a lane where it is not yet, if the table has room. Gives the place of its entry.
    fn isolate(
        &self,
        node: &mut Node,
        at: &mut NodeView<'_>,
        (port, class): (PortId, ClassId),
        place: usize,
        flow: FlowId,
    ) -> Option<usize> {
        if node.used == self.cft {
            node.counts.full += 1;
            return None;
        }
        node.used += 1;
        node.counts.peak = node.counts.peak.max(node.used as u64);
        node.counts.isolated += 1;
        node.counts.markings += 1;
        let l = node.lane(port, class);
        let allocates = !l.allocated;
        l.insert(place, flow);
        node.counts.allocations += allocates as u64;
        self.apply(node, at, port, class);
        Some(place)
    }

    /// Deallocates the queue of congested flows of a lane if it is no longer needed: both queues together are shorter than
    /// what makes a flow congested, and no lane downstream asks for flows to be kept apart. Enhanced DVL does not wait for
    /// the latter, only for a time after it was asked. In no case while the queue is paused: its marking would block the
    /// other queue for as long.
    fn relax(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, class: ClassId) {
        let queued =
            || [PLAIN, CONGESTED].iter().map(|&queue| at.queue_bytes(port, queue_of(class, queue))).sum::<u64>();
        let number = node.number(port, class);
        let l = &mut node.lanes[number];
        if !l.allocated {
            return;
        }
        let congested = l.stopped[CONGESTED] || queued() >= node.sides[port.index()].threshold;
        if let Some(life) = self.life {
            if congested {
                l.until = at.now() + life;
                return;
            }
            if l.has_remote() && at.now() < l.until {
                if at.queue_bytes(port, queue_of(class, CONGESTED)) == 0 {
                    node.used -= l.forget_local();
                }
                return;
            }
        } else if congested || (if self.local { at.now() < l.until } else { l.asked > 0 }) {
            return;
        }
        node.used -= l.deallocate();
        let notified = std::mem::take(&mut l.notified);
        node.counts.deallocations += 1;
        node.counts.markings += 1;
        for in_port in notified {
            // A switch that deallocates for itself need not know; a NIC has no queue to go by.
            if !self.local || at.faces_host(in_port) {
                node.counts.ended += 1;
                self.post(node, at, in_port, Frame::Drop { class, lane: number as u32 });
            }
        }
        self.apply(node, at, port, class);
    }

    /// Sends something to a neighbour that is no pause, in its turn.
    fn post(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, frame: Frame) {
        node.side(port).mail.push_back(frame);
        self.pump(node, at, port);
    }

    /// Sends the next of those frames unless one waits already: a pause finds at most one of them before it.
    fn pump(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId) {
        let side = node.side(port);
        if !at.has_frames(port)
            && let Some(frame) = side.mail.pop_front()
        {
            let size = if matches!(frame, Frame::Ask { .. }) { self.message } else { self.frame };
            at.send_frame(port, size, frame);
        }
        if !side.mail.is_empty() && !side.waiting {
            side.waiting = true;
            at.set_timer(port, Timer::Mail.number(at.classes()), at.now() + side.frame_time);
        }
    }

    /// Notifies the upstream neighbour of the packet's flow, once in a while as long as it does not come as a congested one.
    fn notify(&self, node: &mut Node, at: &mut NodeView<'_>, place: usize, visit: &Visit) {
        let (now, hold) = (at.now(), node.side(visit.in_port).hold);
        let apart = at.packet(visit.packet).tag == CONGESTED as u16;
        let number = node.number(visit.out_port, visit.class);
        let l = &mut node.lanes[number];
        let entry = l.entry(place);
        let flow = entry.flow;
        if entry.notified.is_some_and(|last| apart || now < last + hold) || entry.messages == self.messages {
            return;
        }
        entry.notified = Some(now);
        entry.messages += 1;
        if !l.notified.contains(&visit.in_port) {
            l.notified.push(visit.in_port);
        }
        node.counts.notified += 1;
        self.post(node, at, visit.in_port, Frame::Ask { class: visit.class, flow, lane: number as u32 });
    }

    /// The neighbour at `port` of a switch asks that a flow be kept apart.
    fn asked(&self, node: &mut Node, at: &mut NodeView<'_>, (port, class): (PortId, ClassId), flow: FlowId, by: u32) {
        let place = match node.lane(port, class).find(flow) {
            Ok(place) => place,
            Err(place) => match self.isolate(node, at, (port, class), place, flow) {
                Some(place) => place,
                None => return,
            },
        };
        let hold = self.life.unwrap_or(node.side(port).hold);
        let number = node.number(port, class);
        let l = &mut node.lanes[number];
        let entry = l.entry(place);
        node.counts.remote += !entry.creation.remote as u64;
        entry.creation.remote = true;
        let before = std::mem::replace(&mut entry.asked, by);
        l.asked += (before == NO_LANE) as u32;
        l.until = at.now() + hold;
        // What lives on for long is looked at when a packet leaves: a timer would only keep the run from ending.
        if self.local && self.life.is_none() && !l.waiting {
            l.waiting = true;
            at.set_timer(port, Timer::Look(class).number(at.classes()), l.until);
        }
    }

    /// A lane of the neighbour at `port` asks for nothing any more; with [`NO_LANE`], none does.
    fn unasked(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, class: ClassId, by: u32) {
        let l = node.lane(port, class);
        let mut gone = 0;
        for entry in l.entries() {
            if entry.asked != NO_LANE && (by == NO_LANE || entry.asked == by) {
                entry.asked = NO_LANE;
                gone += 1;
            }
        }
        l.asked -= gone;
        self.relax(node, at, port, class);
    }

    /// A NIC keeps a flow apart: it is stopped by pauses of congested flows alone.
    fn list(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, flow: FlowId, by: u32) {
        let side = node.side(port);
        side.listed.retain(|&(other, _)| !at.flow_done(other));
        // It may have ended, or moved to another port.
        if at.flow_done(flow) || !at.flows_at(port).any(|other| other == flow) {
            return;
        }
        match side.listed.binary_search_by_key(&flow, |&(flow, _)| flow) {
            Ok(place) => side.listed[place].1 = by,
            Err(place) => side.listed.insert(place, (flow, by)),
        }
        at.set_flow_tag(flow, CONGESTED as u16);
        let class = at.flow_class(flow);
        let stopped = side.stopped >> class.0 & 1 == 1;
        at.hold_flow(flow, stopped);
        if stopped {
            at.held_for(flow, None, Subject::queue(queue_of(class, CONGESTED)));
        }
        node.counts.at_hosts += 1;
    }

    /// A NIC no longer keeps flows apart that a lane of its neighbour asked for; with [`NO_LANE`], any flow.
    fn unlist(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, by: u32) {
        node.side(port).listed.retain(|&(flow, asked)| {
            let gone = by == NO_LANE || asked == by;
            if gone {
                at.set_flow_tag(flow, PLAIN as u16);
                at.hold_flow(flow, false);
            }
            !gone
        });
    }

    /// A neighbour stops or resumes a group of what `port` sends.
    fn stop(&self, node: &mut Node, at: &mut NodeView<'_>, (port, class): (PortId, ClassId), group: usize, stop: bool) {
        if let Some(limit) = self.pause {
            let timer = Timer::End(class, group).number(at.classes());
            node.deadlines.set(at, port, timer, stop.then_some(limit));
        }
        if !at.is_host() {
            node.lane(port, class).stopped[group] = stop;
            self.apply(node, at, port, class);
            return self.relax(node, at, port, class);
        }
        if group == PLAIN {
            // All of the class: a NIC whose neighbour has no room for others need not send congested flows.
            at.pause_class(port, class, stop);
            return at.stopped_for(port, Scope::Class(class), Subject::queue(queue_of(class, PLAIN)));
        }
        let side = node.side(port);
        side.stopped = if stop { side.stopped | 1 << class.0 } else { side.stopped & !(1 << class.0) };
        for &(flow, _) in &side.listed {
            if at.flow_class(flow) == class {
                at.hold_flow(flow, stop);
                at.held_for(flow, None, Subject::queue(queue_of(class, CONGESTED)));
            }
        }
    }

    /// Pauses a group at the upstream neighbour.
    fn order(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, class: ClassId, group: usize) {
        let because = Because::Account { class, second: group == CONGESTED };
        at.orders(port, Subject::queue(queue_of(class, group)), because);
        self.say(node, at, port, (class, group), true);
        if let Some(pause) = self.pause {
            let timer = Timer::Renew(class, group).number(at.classes());
            node.deadlines.set(at, port, timer, Some(Time(pause.0.div_ceil(2))));
        }
    }

    /// Says a pause or a resume. What is said last of a group counts: a frame about it that has not left yet says it. So no more than one
    /// of each waits at a port, which is what headroom is computed with.
    fn say(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, (class, group): (ClassId, usize), pause: bool) {
        let congested = group == CONGESTED;
        let (order, go_on) = (Frame::Pause { class, congested }, Frame::Resume { class, congested });
        let frame = if pause { order.clone() } else { go_on.clone() };
        let old = at.send_latest(port, self.frame, frame, |old: &Frame| *old == order || *old == go_on);
        let Counts { pauses, resumes, .. } = &mut node.counts;
        *(if pause { &mut pauses[group] } else { &mut resumes[group] }) += 1;
        if let Some(old) = old {
            *(if old == order { &mut pauses[group] } else { &mut resumes[group] }) -= 1;
        }
    }
}

impl FlowControl for Dvl {
    type Node = Node;
    type Frame = Frame;
    type Signal = ();

    fn node(&self, site: &Site<'_>) -> Node {
        let (ports, classes) = (site.ports().len(), site.setup.classes);
        Node {
            classes,
            lanes: vec![Lane::default(); ports * classes as usize],
            sides: site.ports().map(|port| self.side(site, port)).collect(),
            used: 0,
            deadlines: Deadlines::new(ports, self.timers(classes)),
            found: None,
            counts: Counts::default(),
        }
    }

    fn lossless(&self) -> bool {
        self.lossless
    }

    fn timers(&self, classes: u8) -> u32 {
        Timer::count(classes)
    }

    fn flow_moved(&self, node: &mut Node, at: &mut NodeView<'_>, _: PortId, flow: FlowId) {
        // What was asked for is no longer about this flow.
        for side in &mut node.sides {
            side.listed.retain(|&(listed, _)| listed != flow);
        }
        at.set_flow_tag(flow, PLAIN as u16);
        at.hold_flow(flow, false);
    }

    #[inline]
    fn queue(&self, node: &mut Node, at: &mut NodeView<'_>, visit: &Visit) -> QueueId {
        let &Visit { out_port, class, .. } = visit;
        let plain = queue_of(class, PLAIN);
        let packet = at.packet(visit.packet);
        let (flow, data) = (FlowId(packet.flow), packet.kind == Kind::Data);
        node.found = None;
        // ACKs among the data belong to no flow.
        if !data {
            return plain;
        }
        let l = node.lane(out_port, class);
        let missing = if l.allocated {
            match l.find(flow) {
                Ok(place) => {
                    node.found = Some(place);
                    return queue_of(class, CONGESTED);
                }
                Err(place) => place,
            }
        } else {
            0
        };
        if at.queue_bytes(out_port, plain) < node.side(out_port).threshold {
            return plain;
        }
        node.found = self.isolate(node, at, (out_port, class), missing, flow);
        if let Some(place) = node.found {
            node.counts.local += 1;
            node.lane(out_port, class).entry(place).creation.local = true;
        }
        node.counts.full_packets += node.found.is_none() as u64;
        queue_of(class, node.found.map_or(PLAIN, |_| CONGESTED))
    }

    #[inline]
    fn second_group(&self, node: &mut Node, at: &mut NodeView<'_>, visit: &Visit) -> bool {
        let packet = at.packet(visit.packet);
        if packet.kind != Kind::Data {
            return false;
        }
        // What comes out of the neighbour's queue of congested flows is stopped with it, and with nothing else.
        if packet.tag == CONGESTED as u16 {
            return true;
        }
        // What does not must not use headroom that was kept for the other queue.
        let apart =
            node.found.is_some() && at.queue_bytes(visit.out_port, visit.queue) >= node.side(visit.out_port).ingress;
        apart && {
            let (account, buffer) = at.group_account(visit.in_port, visit.class, true);
            buffer.fits(account, visit.size as u64)
        }
    }

    #[inline]
    fn enqueued(&self, node: &mut Node, at: &mut NodeView<'_>, visit: &Visit) {
        let &Visit { in_port, out_port, class, .. } = visit;
        let queue = place_of(visit.queue);
        node.lane(out_port, class).join(queue);
        node.counts.packets += queue as u64;
        let second = at.packet(visit.packet).flags & flag::SECOND != 0;
        let (account, buffer) = at.group_account(in_port, class, second);
        let total = account.total();
        if !account.paused && buffer.over(account) {
            account.paused = true;
            self.order(node, at, in_port, class, second as usize);
        }
        if second {
            node.counts.accounted += 1;
            if let Some(place) = node.found
                && total >= node.side(in_port).notify
            {
                self.notify(node, at, place, visit);
            }
        }
    }

    #[inline]
    fn dequeued(&self, node: &mut Node, at: &mut NodeView<'_>, visit: &Visit) {
        let &Visit { in_port, out_port, class, packet, .. } = visit;
        let queue = place_of(visit.queue);
        at.packet_mut(packet).tag = queue as u16;
        for group in [PLAIN, CONGESTED] {
            let (account, buffer) = at.group_account(in_port, class, group == CONGESTED);
            if account.paused && buffer.under(account) {
                account.paused = false;
                self.say(node, at, in_port, (class, group), false);
            }
        }
        if node.lane(out_port, class).leave(queue) {
            self.apply(node, at, out_port, class);
        }
        if node.lane(out_port, class).allocated {
            self.relax(node, at, out_port, class);
        }
    }

    fn frame(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, frame: Frame) {
        let host = at.is_host();
        match frame {
            Frame::Pause { class, congested } => self.stop(node, at, (port, class), congested as usize, true),
            Frame::Resume { class, congested } => self.stop(node, at, (port, class), congested as usize, false),
            Frame::Ask { flow, lane, .. } if host => self.list(node, at, port, flow, lane),
            Frame::Ask { class, flow, lane } => self.asked(node, at, (port, class), flow, lane),
            Frame::Drop { lane, .. } if host => self.unlist(node, at, port, lane),
            Frame::Drop { class, lane } => self.unasked(node, at, port, class, lane),
        }
    }

    fn timer(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, timer: u32) {
        match Timer::of(timer, at.classes()) {
            Timer::Look(class) => {
                let l = node.lane(port, class);
                l.waiting = l.allocated && at.now() < l.until;
                if l.waiting {
                    return at.set_timer(port, timer, l.until);
                }
                self.relax(node, at, port, class);
            }
            Timer::Mail => {
                node.side(port).waiting = false;
                self.pump(node, at, port);
            }
            _ if !node.deadlines.due(at, port, timer) => {}
            Timer::End(class, group) => self.stop(node, at, (port, class), group, false),
            Timer::Renew(class, group) => {
                if at.group_account(port, class, group == CONGESTED).0.paused {
                    self.order(node, at, port, class, group);
                }
            }
        }
    }

    fn link_lost(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId) {
        node.side(port).mail.clear();
        let classes = (0..at.classes()).map(ClassId);
        for class in classes.clone() {
            for group in [PLAIN, CONGESTED] {
                at.group_account(port, class, group == CONGESTED).0.paused = false;
                self.stop(node, at, (port, class), group, false);
            }
        }
        if at.is_host() {
            return self.unlist(node, at, port, NO_LANE);
        }
        classes.for_each(|class| self.unasked(node, at, port, class, NO_LANE));
    }

    fn counters(&self, nodes: &[&Node]) -> Vec<Counter> {
        let count = |name: &'static str, of: fn(&Counts) -> u64| sum(name, nodes, |node| of(&node.counts));
        vec![
            count("cfq_allocations", |c| c.allocations),
            count("cfq_deallocations", |c| c.deallocations),
            sum("cfq_left", nodes, |node| node.sum(|lane| lane.allocated as u64)),
            count("cfq_packets", |c| c.packets),
            count("flows_isolated", |c| c.isolated),
            count("flows_isolated_locally", |c| c.local),
            count("flows_isolated_by_message", |c| c.remote),
            max("cft_peak", nodes, |node| node.counts.peak),
            count("cft_full", |c| c.full),
            count("cft_full_packets", |c| c.full_packets),
            count("ingress_cfq_packets", |c| c.accounted),
            count("notifications", |c| c.notified),
            count("notifications_ended", |c| c.ended),
            count("flows_isolated_at_hosts", |c| c.at_hosts),
            count("markings", |c| c.markings),
            sum("markings_left", nodes, |node| node.sum(|lane| lane.markings() as u64)),
            count("pause_frames", |c| c.pauses.iter().sum()),
            count("resume_frames", |c| c.resumes.iter().sum()),
            count("pause_frames_cfq", |c| c.pauses[CONGESTED]),
            count("pauses_of_both", |c| c.both),
        ]
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
