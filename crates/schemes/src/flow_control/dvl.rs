//! Dynamic virtual lanes: congested flows are moved to one queue of their own at every port, switch by switch.
//!
//! Every port has a queue for flows that are not congested (nCFQ) and one for those that are (CFQ). A packet that finds the
//! first too long puts its flow in the switch's table (CFT), and later packets of that flow go to the second. As
//! that grows, packets are accounted to a group of their own at their ingress, and as that grows, the upstream neighbour is
//! told of the flow, keeps it apart as well, and is paused for that queue alone. Markings in both queues keep
//! order when flows change queues. See docs/dvl.md for our reading of the document, and why nothing is lost, overtaken
//! or stuck.

mod lane;

use super::{Choice, Controls, Deadlines, Fabric, Report, Room, check_frame, pfc, run_with};
use engine::{Bytes, Misfit, Time};
use fabric::network::Core;
use fabric::packet::{Kind as PacketKind, Packet, flag};
use fabric::routing::PortMap;
use fabric::scheme::{Counter, FlowControl, Visit};
use fabric::topology::Kind;
use fabric::{Outcome, Setup};
use lane::{CONGESTED, Lane, NOBODY, PLAIN};
use std::collections::VecDeque;

engine::parameters! {
    /// Parameters of DVL and of enhanced DVL. The document gives none: all defaults are ours.
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
        /// The upstream neighbour is told of flows while this ingress group holds at least this much. Auto: what
        /// its link carries in one such round trip.
        tell: Option<Bytes> = None,
        /// Entries of a switch's table of congested flows.
        cft: u32 = 2048,
        /// A neighbour is told of the same flow again after this time, and where deallocation is local, flows that it was told
        /// of are kept apart for this time at least. Auto: sixteen round trips of the link.
        hold: Option<Time> = None,
        /// Size of a frame, be it a pause, a resume, or one that tells of a flow.
        frame: Bytes = Bytes(64),
    }
}

impl Choice for Params {
    fn name(&self) -> &'static str {
        "dvl"
    }
    fn about(&self) -> &'static str {
        "Dynamic virtual lanes: congested flows are moved to a queue of their own at every port, which is paused apart from \
         the other. Lossless."
    }
    fn needs_headroom(&self) -> bool {
        true
    }
    fn check(&self) -> Result<(), Misfit> {
        check_frame("frame", self.frame)?;
        if !(1..=1_000_000).contains(&self.cft) {
            return Err(Misfit::new("cft", self.cft, "write 1 to 1000000"));
        }
        if self.threshold == Some(Bytes(0)) {
            return Err(Misfit::new("threshold", Bytes(0), "write a size above zero, or \"auto\""));
        }
        match self.hold {
            Some(hold) if !(Time::from_ns(10)..=Time::from_ms(1000)).contains(&hold) => {
                Err(Misfit::new("hold", hold, "write \"10ns\" to \"1s\", or \"auto\""))
            }
            _ => Ok(()),
        }
    }
    fn frame_size(&self) -> u64 {
        self.frame.0
    }
    fn other_frames(&self) -> u64 {
        // Others than pauses wait in their mailbox while a frame waits at the port: see `Dvl::pump`.
        1
    }
    fn queues(&self) -> Option<u32> {
        Some(2)
    }
    fn groups(&self) -> u32 {
        2
    }
    fn room(&self, fabric: &Fabric<'_>) -> Result<Option<Room>, Misfit> {
        match fabric.graph.forwarding {
            false => Ok(None),
            true => Err(Misfit {
                parameter: "topology",
                message: "DVL's queues are those of switches, and hosts of this fabric forward".into(),
                help: "write another topology, or another flow control".into(),
            }),
        }
    }
    fn switch_state(&self, ports: u64, classes: u64) -> u64 {
        // An entry of the table of congested flows is a 5-tuple and a port: fourteen bytes. By port and class: what is allocated,
        // marked, paused and asked for.
        self.cft as u64 * 14 + ports * classes * 8
    }
    fn run(&self, setup: Setup, promised: bool, control: &Controls<'_>, report: &mut Report<'_>) -> Outcome {
        run_with(|setup| Dvl::new(self, setup, promised), setup, control, report)
    }
}

/// What a frame says; its word is this, the class, and for a pause the group.
const PAUSE: u32 = 0;
const RESUME: u32 = 1;
/// Keep a flow apart: the flow, and the lane that asks.
const ASK: u32 = 2;
/// A lane no longer asks for anything.
const DROP: u32 = 3;

fn word(what: u32, class: u8, group: usize) -> u32 {
    what | (class as u32) << 8 | (group as u32) << 16
}

/// A port, as packets come in by it or leave by it.
struct Side {
    /// Depth at which the queue of its other flows is congested.
    threshold: u64,
    /// Depth at which its congested flows are accounted apart.
    ingress: u64,
    /// Size of the ingress group at which its neighbour is told.
    tell: u64,
    /// Time between telling the same thing twice.
    hold: Time,
    /// How long a frame takes.
    frame_time: Time,
    /// Frames other than pauses that have not been sent.
    mail: VecDeque<(u32, u64)>,
    /// A look at them is on the event queue.
    waiting: bool,
    /// Of a host: flows that the neighbour asks for, by number, and which of its lanes does.
    listed: Vec<(u32, u32)>,
    /// Of a host: classes of which those are stopped.
    stopped: u32,
}

#[derive(Default)]
struct Counts {
    allocations: u64,
    deallocations: u64,
    isolated: u64,
    full: u64,
    full_packets: u64,
    peak: u64,
    told: u64,
    ended: u64,
    at_hosts: u64,
    markings: u64,
    packets: u64,
    accounted: u64,
    pauses: [u64; 2],
    resumes: [u64; 2],
}

/// The mechanism.
pub struct Dvl {
    frame: u16,
    cft: u32,
    enhanced: bool,
    /// Each switch deallocates for itself.
    local: bool,
    lossless: bool,
    /// How long a pause lasts unless it is renewed; `None` for ever.
    pause: Option<Time>,
    classes: u32,
    map: PortMap,
    /// By port and class.
    lanes: Vec<Lane>,
    sides: Vec<Side>,
    /// Entries in use, by node.
    used: Vec<u32>,
    deadlines: Deadlines,
    /// Where the entry of the packet at hand is in its lane.
    found: Option<usize>,
    counts: Counts,
}

/// What a timer is for; the rest of its token is a place.
const LOOK: u32 = 0;
const MAIL: u32 = 1;
const RENEW: u32 = 2;
const END: u32 = 3;

impl Dvl {
    /// DVL over the fabric of a setup, whose queues and groups it lays out.
    pub fn new(params: &Params, setup: &mut Setup, promised: bool) -> Dvl {
        setup.switch.queues = 2;
        setup.switch.groups = 2;
        let graph = &setup.graph;
        let map = PortMap::new(graph);
        let limit = pfc::pause_limit(graph);
        let side = |port: usize| {
            let link = &graph.links[map.link[port] as usize];
            let latency = |port: usize| {
                let far = map.node[map.peer[port] as usize];
                let switch = graph.nodes[far as usize].kind == Kind::Switch;
                link.delay + if switch { setup.switch.pipeline } else { Time::ZERO }
            };
            // Until an answer has come: both ways, the packets that are under way, and the frame.
            let bytes = 2 * setup.max_packet() + params.frame.0;
            let round = latency(port) + latency(map.peer[port] as usize) + setup.clock.duration(bytes, link.rate);
            let carries = |rounds: u64| link.rate.bytes_in(Time(rounds * round.0)).max(1);
            Side {
                threshold: params.threshold.map_or(carries(4), |bytes| bytes.0),
                ingress: params.ingress.map_or(carries(1), |bytes| bytes.0),
                tell: params.tell.map_or(carries(1), |bytes| bytes.0),
                hold: params.hold.unwrap_or(Time(16 * round.0)),
                frame_time: setup.clock.duration(params.frame.0, link.rate).max(Time(1)),
                mail: VecDeque::new(),
                waiting: false,
                listed: Vec::new(),
                stopped: 0,
            }
        };
        Dvl {
            frame: params.frame.0 as u16,
            cft: params.cft,
            enhanced: params.enhanced,
            // What says that nobody asks any more can get lost.
            local: params.enhanced || limit.is_some(),
            lossless: promised,
            pause: limit,
            classes: setup.classes as u32,
            lanes: vec![Lane::default(); map.count() * setup.classes as usize],
            sides: (0..map.count()).map(side).collect(),
            used: vec![0; graph.nodes.len()],
            deadlines: Deadlines::default(),
            found: None,
            counts: Counts::default(),
            map,
        }
    }

    /// The number of the first queue of a lane at its port.
    fn first_queue(&self, lane: u32) -> u32 {
        lane % self.classes * 2
    }

    /// Bytes in the queues of a lane.
    fn queued(&self, core: &Core, lane: u32) -> u64 {
        let (port, first) = (lane / self.classes, self.first_queue(lane));
        core.queue_bytes(port, first) + core.queue_bytes(port, first + 1)
    }

    /// Lets the queues of a lane do what pauses and markings allow.
    fn apply(&self, core: &mut Core, lane: u32) {
        let (port, first, l) = (lane / self.classes, self.first_queue(lane), &self.lanes[lane as usize]);
        let both = self.enhanced && l.in_sync() && l.stopped.contains(&true);
        for queue in [PLAIN, CONGESTED] {
            core.pause_queue(port, first + queue as u32, l.stopped[queue] || both);
            core.hold_queue(port, first + queue as u32, l.blocked(queue));
        }
    }

    /// Keeps a flow apart at a lane where it is not yet, if the table has room. Gives the place of its entry.
    fn isolate(&mut self, core: &mut Core, lane: u32, place: usize, flow: u32) -> Option<usize> {
        let node = self.map.node[(lane / self.classes) as usize] as usize;
        if self.used[node] == self.cft {
            self.counts.full += 1;
            return None;
        }
        self.used[node] += 1;
        self.counts.peak = self.counts.peak.max(self.used[node] as u64);
        self.counts.isolated += 1;
        let l = &mut self.lanes[lane as usize];
        self.counts.allocations += !l.allocated as u64;
        self.counts.markings += 1;
        l.insert(place, flow);
        self.apply(core, lane);
        Some(place)
    }

    /// Deallocates the queue of congested flows of a lane if it is no longer needed: both queues together are shorter than
    /// what makes a flow congested, and nobody downstream asks for flows to be kept apart. Enhanced DVL does not wait for
    /// the latter, only for a time after it was asked. In no case while the queue is paused: its marking would block the
    /// other queue for as long.
    fn relax(&mut self, core: &mut Core, lane: u32) {
        let port = lane / self.classes;
        let l = &self.lanes[lane as usize];
        if !l.allocated
            || l.stopped[CONGESTED]
            || self.queued(core, lane) >= self.sides[port as usize].threshold
            || (if self.local { core.now() < l.until } else { l.asked > 0 })
        {
            return;
        }
        let l = &mut self.lanes[lane as usize];
        let free = l.deallocate();
        let told = std::mem::take(&mut l.told);
        self.used[self.map.node[port as usize] as usize] -= free;
        self.counts.deallocations += 1;
        self.counts.markings += 1;
        for in_port in told {
            // A switch that deallocates for itself need not know; a NIC has no queue to tell it.
            if !self.local || core.port(core.port(in_port).peer).host {
                self.counts.ended += 1;
                self.post(core, in_port, word(DROP, (lane % self.classes) as u8, 0), lane as u64);
            }
        }
        self.apply(core, lane);
    }

    /// Sends something to a neighbour that is no pause, in its turn.
    fn post(&mut self, core: &mut Core, port: u32, word: u32, long: u64) {
        self.sides[port as usize].mail.push_back((word, long));
        self.pump(core, port);
    }

    /// Sends the next of those frames unless one waits already: a pause finds at most one of them before it.
    fn pump(&mut self, core: &mut Core, port: u32) {
        let urgent = core.port(port).urgent;
        let side = &mut self.sides[port as usize];
        if !urgent && let Some((word, long)) = side.mail.pop_front() {
            core.send_frame(port, self.frame, word, long);
        }
        if !side.mail.is_empty() && !side.waiting {
            side.waiting = true;
            core.set_timer(core.now() + side.frame_time, port << 2 | MAIL);
        }
    }

    /// Tells the upstream neighbour of the packet's flow, once in a while as long as it does not come as a congested one.
    fn tell(&mut self, core: &mut Core, lane: u32, place: usize, visit: &Visit) {
        let (now, hold) = (core.now(), self.sides[visit.in_port as usize].hold);
        let apart = core.packet(visit.packet).tag == CONGESTED as u16;
        let l = &mut self.lanes[lane as usize];
        let entry = l.entry(place);
        let flow = entry.flow;
        if entry.told.is_some_and(|told| apart || now < told + hold) {
            return;
        }
        entry.told = Some(now);
        if !l.told.contains(&visit.in_port) {
            l.told.push(visit.in_port);
        }
        self.counts.told += 1;
        self.post(core, visit.in_port, word(ASK, visit.class, 0), (flow as u64) << 32 | lane as u64);
    }

    /// The neighbour at `port` of a switch asks that a flow be kept apart.
    fn asked(&mut self, core: &mut Core, port: u32, class: u8, flow: u32, by: u32) {
        let lane = port * self.classes + class as u32;
        let place = match self.lanes[lane as usize].find(flow) {
            Ok(place) => place,
            Err(place) => match self.isolate(core, lane, place, flow) {
                Some(place) => place,
                None => return,
            },
        };
        let hold = self.sides[port as usize].hold;
        let l = &mut self.lanes[lane as usize];
        let before = std::mem::replace(&mut l.entry(place).asked, by);
        l.asked += (before == NOBODY) as u32;
        l.until = core.now() + hold;
        if self.local && !l.waiting {
            l.waiting = true;
            core.set_timer(l.until, lane << 2 | LOOK);
        }
    }

    /// A lane of the neighbour at `port` asks for nothing any more; with [`NOBODY`], none does.
    fn unasked(&mut self, core: &mut Core, port: u32, class: u8, by: u32) {
        let lane = port * self.classes + class as u32;
        let l = &mut self.lanes[lane as usize];
        let mut gone = 0;
        for entry in l.entries() {
            if entry.asked != NOBODY && (by == NOBODY || entry.asked == by) {
                entry.asked = NOBODY;
                gone += 1;
            }
        }
        l.asked -= gone;
        self.relax(core, lane);
    }

    /// A NIC keeps a flow apart: it is stopped by pauses of congested flows alone.
    fn list(&mut self, core: &mut Core, port: u32, flow: u32, by: u32) {
        let side = &mut self.sides[port as usize];
        side.listed.retain(|&(other, _)| !core.flow_done(other));
        // It may have ended, or moved to another port.
        if core.flow_done(flow) || !core.flows_at(port).contains(&flow) {
            return;
        }
        match side.listed.binary_search_by_key(&flow, |&(flow, _)| flow) {
            Ok(place) => side.listed[place].1 = by,
            Err(place) => side.listed.insert(place, (flow, by)),
        }
        self.counts.at_hosts += 1;
        core.set_flow_tag(flow, CONGESTED as u16);
        let stopped = side.stopped >> core.flow_class(flow) & 1 == 1;
        core.hold_flow(flow, stopped);
    }

    /// A NIC no longer keeps flows apart that a lane of its neighbour asked for; with [`NOBODY`], any flow.
    fn unlist(&mut self, core: &mut Core, port: u32, by: u32) {
        self.sides[port as usize].listed.retain(|&(flow, asked)| {
            let gone = by == NOBODY || asked == by;
            if gone {
                core.set_flow_tag(flow, PLAIN as u16);
                core.hold_flow(flow, false);
            }
            !gone
        });
    }

    /// A neighbour stops or resumes a group of what `port` sends.
    fn stop(&mut self, core: &mut Core, port: u32, class: u8, group: usize, stop: bool) {
        if let Some(limit) = self.pause {
            let token = self.token(port, class, group, END);
            self.deadlines.set(core, token, stop.then_some(limit));
        }
        if !core.port(port).host {
            let lane = port * self.classes + class as u32;
            self.lanes[lane as usize].stopped[group] = stop;
            self.apply(core, lane);
            return self.relax(core, lane);
        }
        if group == PLAIN {
            // All of the class: a NIC whose neighbour has no room for others need not send congested flows.
            return core.pause_class(port, class, stop);
        }
        let side = &mut self.sides[port as usize];
        side.stopped = if stop { side.stopped | 1 << class } else { side.stopped & !(1 << class) };
        for &(flow, _) in &side.listed {
            if core.flow_class(flow) == class {
                core.hold_flow(flow, stop);
            }
        }
    }

    fn token(&self, port: u32, class: u8, group: usize, what: u32) -> u32 {
        ((port * self.classes + class as u32) * 2 + group as u32) << 2 | what
    }

    /// Pauses a group at the upstream neighbour.
    fn order(&mut self, core: &mut Core, port: u32, class: u8, group: usize) {
        self.counts.pauses[group] += 1;
        core.send_frame(port, self.frame, word(PAUSE, class, group), 0);
        if let Some(pause) = self.pause {
            let token = self.token(port, class, group, RENEW);
            self.deadlines.set(core, token, Some(Time(pause.0.div_ceil(2))));
        }
    }

    fn sum(&self, of: impl Fn(&Lane) -> u64) -> u64 {
        self.lanes.iter().map(of).sum()
    }
}

impl FlowControl for Dvl {
    fn lossless(&self) -> bool {
        self.lossless
    }

    fn flow_moved(&mut self, core: &mut Core, port: u32, flow: u32) {
        // What was asked for is no longer about this flow.
        for other in self.map.of(self.map.node[port as usize]) {
            self.sides[other as usize].listed.retain(|&(listed, _)| listed != flow);
        }
        core.set_flow_tag(flow, PLAIN as u16);
        core.hold_flow(flow, false);
    }

    #[inline]
    fn queue(&mut self, core: &mut Core, visit: &Visit) -> u32 {
        let first = visit.class as u32 * 2;
        let packet = core.packet(visit.packet);
        let (flow, data) = (packet.flow, packet.kind == PacketKind::Data);
        self.found = None;
        // ACKs among the data are nobody's flow.
        if !data {
            return first;
        }
        let lane = visit.out_port * self.classes + visit.class as u32;
        let l = &self.lanes[lane as usize];
        let missing = if l.allocated {
            match l.find(flow) {
                Ok(place) => {
                    self.found = Some(place);
                    return first + CONGESTED as u32;
                }
                Err(place) => place,
            }
        } else {
            0
        };
        if core.queue_bytes(visit.out_port, first) < self.sides[visit.out_port as usize].threshold {
            return first;
        }
        self.found = self.isolate(core, lane, missing, flow);
        self.counts.full_packets += self.found.is_none() as u64;
        first + self.found.map_or(PLAIN, |_| CONGESTED) as u32
    }

    #[inline]
    fn second_group(&mut self, core: &mut Core, visit: &Visit) -> bool {
        let packet = core.packet(visit.packet);
        if packet.kind != PacketKind::Data {
            return false;
        }
        // What comes out of the neighbour's queue of congested flows is stopped with it, and with nothing else.
        if packet.tag == CONGESTED as u16 {
            return true;
        }
        // What does not must not use headroom that was kept for the other queue.
        let apart = self.found.is_some()
            && core.queue_bytes(visit.out_port, visit.queue) >= self.sides[visit.out_port as usize].ingress;
        apart && {
            let (account, buffer) = core.group_account(visit.in_port, visit.class, true);
            buffer.fits(account, visit.size as u64)
        }
    }

    #[inline]
    fn enqueued(&mut self, core: &mut Core, visit: &Visit) {
        let &Visit { in_port, out_port, class, .. } = visit;
        let lane = out_port * self.classes + class as u32;
        let queue = (visit.queue & 1) as usize;
        self.lanes[lane as usize].join(queue);
        self.counts.packets += queue as u64;
        let second = core.packet(visit.packet).flags & flag::SECOND != 0;
        let (account, buffer) = core.group_account(in_port, class, second);
        let total = account.total();
        if !account.paused && buffer.over(account) {
            account.paused = true;
            self.order(core, in_port, class, second as usize);
        }
        if second {
            self.counts.accounted += 1;
            if let Some(place) = self.found
                && total >= self.sides[in_port as usize].tell
            {
                self.tell(core, lane, place, visit);
            }
        }
    }

    #[inline]
    fn dequeued(&mut self, core: &mut Core, visit: &Visit) {
        let &Visit { in_port, out_port, class, packet, .. } = visit;
        let lane = out_port * self.classes + class as u32;
        let queue = (visit.queue & 1) as usize;
        core.set_tag(packet, queue as u16);
        for group in [PLAIN, CONGESTED] {
            let (account, buffer) = core.group_account(in_port, class, group == CONGESTED);
            if account.paused && buffer.under(account) {
                account.paused = false;
                self.counts.resumes[group] += 1;
                core.send_frame(in_port, self.frame, word(RESUME, class, group), 0);
            }
        }
        let l = &mut self.lanes[lane as usize];
        if l.leave(queue) {
            self.apply(core, lane);
        }
        if self.lanes[lane as usize].allocated {
            self.relax(core, lane);
        }
    }

    fn frame(&mut self, core: &mut Core, port: u32, frame: &Packet) {
        let (what, class, group) = (frame.flow & 0xff, (frame.flow >> 8) as u8, (frame.flow >> 16) as usize);
        let host = core.port(port).host;
        match what {
            PAUSE | RESUME => self.stop(core, port, class, group, what == PAUSE),
            ASK if host => self.list(core, port, (frame.seq >> 32) as u32, frame.seq as u32),
            ASK => self.asked(core, port, class, (frame.seq >> 32) as u32, frame.seq as u32),
            _ if host => self.unlist(core, port, frame.seq as u32),
            _ => self.unasked(core, port, class, frame.seq as u32),
        }
    }

    fn timer(&mut self, core: &mut Core, token: u32) {
        let place = token >> 2;
        match token & 3 {
            LOOK => {
                let l = &mut self.lanes[place as usize];
                l.waiting = l.allocated && core.now() < l.until;
                if l.waiting {
                    return core.set_timer(l.until, token);
                }
                self.relax(core, place);
            }
            MAIL => {
                self.sides[place as usize].waiting = false;
                self.pump(core, place);
            }
            _ if !self.deadlines.due(core, token) => {}
            what => {
                let (group, lane) = (place as usize % 2, place / 2);
                let (port, class) = (lane / self.classes, (lane % self.classes) as u8);
                if what == END {
                    self.stop(core, port, class, group, false);
                } else if core.group_account(port, class, group == CONGESTED).0.paused {
                    self.order(core, port, class, group);
                }
            }
        }
    }

    fn link_lost(&mut self, core: &mut Core, port: u32) {
        self.sides[port as usize].mail.clear();
        for class in 0..self.classes as u8 {
            for group in [PLAIN, CONGESTED] {
                core.group_account(port, class, group == CONGESTED).0.paused = false;
                self.stop(core, port, class, group, false);
            }
        }
        if core.port(port).host {
            return self.unlist(core, port, NOBODY);
        }
        (0..self.classes as u8).for_each(|class| self.unasked(core, port, class, NOBODY));
    }

    fn merge(&mut self, other: Dvl) {
        let (c, o) = (&mut self.counts, other.counts);
        c.allocations += o.allocations;
        c.deallocations += o.deallocations;
        c.isolated += o.isolated;
        c.full += o.full;
        c.full_packets += o.full_packets;
        c.peak = c.peak.max(o.peak);
        c.told += o.told;
        c.ended += o.ended;
        c.at_hosts += o.at_hosts;
        c.markings += o.markings;
        c.packets += o.packets;
        c.accounted += o.accounted;
        for group in [PLAIN, CONGESTED] {
            c.pauses[group] += o.pauses[group];
            c.resumes[group] += o.resumes[group];
        }
        // A lane that nothing is left of is as good as any other such.
        let left = |lane: &Lane| lane.allocated || lane.markings() > 0;
        let pairs = self.lanes.iter_mut().zip(other.lanes);
        pairs.filter(|(_, theirs)| left(theirs)).for_each(|(mine, theirs)| *mine = theirs);
    }

    fn counters(&self) -> Vec<Counter> {
        let c = &self.counts;
        vec![
            ("cfq_allocations", c.allocations),
            ("cfq_deallocations", c.deallocations),
            ("cfq_left", self.sum(|lane| lane.allocated as u64)),
            ("cfq_packets", c.packets),
            ("flows_isolated", c.isolated),
            ("cft_peak", c.peak),
            ("cft_full", c.full),
            ("cft_full_packets", c.full_packets),
            ("ingress_cfq_packets", c.accounted),
            ("notifications", c.told),
            ("notifications_ended", c.ended),
            ("flows_isolated_at_hosts", c.at_hosts),
            ("markings", c.markings),
            ("markings_left", self.sum(|lane| lane.markings() as u64)),
            ("pause_frames", c.pauses.iter().sum()),
            ("resume_frames", c.resumes.iter().sum()),
            ("pause_frames_cfq", c.pauses[CONGESTED]),
        ]
    }
}
