//! Credit-based flow control (CBFC), the lossless link layer of Ultra Ethernet: a node sends only what its neighbour has granted room for.
//!
//! A class is a virtual channel (VC). The sender of a link counts the credits that it has consumed, S_CC, and those that it knows to be freed, S_CF; their
//! difference is in use, S_CU. A packet takes ⌈(size + overhead) / credit size⌉ credits and may go if they are within the VC's limit, S_CL. The receiver counts
//! what came, R_CC, and what has left its memory again, R_CF, and says R_CF in a CF_Update, a control ordered set of 8 bytes, no more often than once in
//! so many bytes of link time. Counters are cyclic, with 20 bits.
//!
//! A packet or an update that the link loses leaves the counters apart. So the sender says S_CC of all VCs in a CC_Update every so often, and the receiver takes
//! what it has not seen of it by then for lost, and frees it: the link keeps order. Nothing is agreed upon anew when a link comes back: what was lost with it is
//! found in the same way.
//!
//! Counters, messages, spacings, limits and defaults are those of the SAI proposal for CBFC (SAI 1.18, `doc/CBFC`), which follows section 5.2 of the Ultra
//! Ethernet specification 1.0. That text says no more than that. What is ours:
//! - A CF_Update is about one VC. VCs with something to say take turns.
//! - A VC that has nothing new to say says nothing: a sender that has all credits back needs no update. Where links can lose frames, what was said last is said
//!   again after the longest spacing for as long as a CC_Update takes to come, which is answered with what was said last in any case. So CC_Updates are sent
//!   only while credits are in use, and a fabric without traffic is at rest.
//! - An update that still waits to be sent when it would be said anew says the new number instead. A link that is so slow, as one that keeps little for its
//!   replays may be, gets updates that say nothing new less and less often, so that they leave room for packets.
//! - ACKs that go in the control queue have a VC of their own that takes no credits, as a best-effort VC has none.
//! - A NIC does not look at the next packet: a VC of it is stopped while its largest packet would not fit. A switch looks at the first packet of each queue.
//! - How many credits are granted (`cbfc/sizes.rs`).

#[cfg(test)]
mod model;
mod sizes;
#[cfg(test)]
mod tests;
mod vc;

use super::{Deadlines, fabric_of, lets_all_come, max, sum};
use engine::{Bytes, Misfit, Time};
use fabric::axes::flow_control::{Fabric, FlowControl, FlowControlDef, Job, Layout, Room, Visit};
use fabric::axes::{Chosen, Counter, Definition};
use fabric::deadlock::Waits;
use fabric::id::{ClassId, PortId};
use fabric::message::Payload;
use fabric::probe::{Because, Scope, Subject};
use fabric::topology::Graph;
use fabric::view::{NodeView, Site};
use fabric::{Outcome, Setup, message};
use sizes::{Grant, Sizes};
use std::sync::Arc;
use vc::{BITS, MOST, Vc};

engine::choice! {
    /// How the VCs of a port share its credits.
    pub enum Sharing {
        /// Not at all: each has its own.
        Reserved = "reserved",
        /// Each has a reserve, and beyond it what all share, up to a limit.
        Static = "static",
        /// Each has a reserve, and beyond it what all share, up to a multiple of what is free of that.
        Dynamic = "dynamic",
    }
}

engine::parameters! {
    /// Parameters of CBFC. Defaults and limits are those of the SAI proposal.
    pub struct Params {
        /// Bytes of a credit. Auto: 128 B, or the largest power of two that is not above the switches' cells.
        credit: Option<Bytes> = None, in Bytes(16)..=Bytes(16_384),
        /// Bytes that a packet takes besides its own, from -16 to 127.
        overhead: f64 = 0.0, in -16.0..=127.0,
        /// How the VCs of a port share its credits.
        sharing: Sharing = Sharing::Reserved,
        /// Credits of a VC, or, where VCs share them, of a port. Auto: what one VC needs for the full rate of the link, as far as the memory goes.
        credits: Option<u32> = None, in 1..=MOST,
        /// What automatic credits are multiplied by: more to hold what waits, fewer to see what is lost.
        factor: f64 = 1.0, in 0.01..=1000.0,
        /// Credits that a VC has for itself where VCs share the others. Auto: those of two largest packets.
        reserve: Option<u32> = None, in 1..=MOST,
        /// The most that a VC takes of what is shared, in credits; 0 for no limit.
        most: u32 = 0, in 0..=MOST, if sharing == Sharing::Static,
        /// What a VC may take of what is shared, as a multiple of what is free of it: a power of two.
        alpha: f64 = 1.0, in 0.0078125..=128.0, if sharing == Sharing::Dynamic,
        /// The size of packets that automatic credits are enough for. Auto: the largest.
        packet: Option<Bytes> = None, in Bytes(1)..=Bytes(65_535),
        /// Link time between two CF_Updates of a port at least, in bytes.
        cf_spacing: Bytes = Bytes(6400), in Bytes(800)..=Bytes(1_048_576),
        /// The same at most, where links can lose frames: a multiple of 16384.
        cf_longest: Bytes = Bytes(262_144), in Bytes(16_384)..=Bytes(1_048_576),
        /// Time between two CC_Updates of a port.
        cc_interval: Time = Time::from_us(256), in Time::from_us(1)..=Time::from_ms(250),
    }
}

/// Bytes of a CF_Update, a control ordered set.
const CF_UPDATE: u16 = 8;
/// Bytes of a CC_Update, an Ethernet frame.
const CC_UPDATE: u16 = 64;

/// The longest that the same is not said again: the longest time between CC_Updates that may be set.
const LONGEST: Time = Time::from_ms(250);

impl Definition for Params {
    fn name(&self) -> &'static str {
        "cbfc"
    }
    fn about(&self) -> &'static str {
        "Credit-based flow control of Ultra Ethernet: a node sends only what its neighbour has granted room for, by virtual channel. Lossless."
    }
    fn source(&self) -> &'static str {
        "Ultra Ethernet Consortium, Ultra Ethernet Specification 1.0, section 5.2, 2025; SAI Proposal: Credit Based Flow Control, 2026"
    }
    fn check(&self) -> Result<(), Misfit> {
        if self.overhead.fract() != 0.0 {
            return Err(Misfit::new("overhead", self.overhead, "write a whole number of bytes".to_string()));
        }
        if !self.cf_longest.0.is_multiple_of(16_384) {
            return Err(Misfit::new("cf_longest", self.cf_longest, "write a multiple of \"16384B\"".to_string()));
        }
        if self.cf_longest < self.cf_spacing {
            let help = format!("write at least \"{}\", which is cf_spacing", self.cf_spacing);
            return Err(Misfit::new("cf_longest", self.cf_longest, help));
        }
        if self.shift().is_none() {
            let help = "write a power of two, such as 0.5, 1.0 or 8.0".to_string();
            return Err(Misfit::new("alpha", self.alpha, help));
        }
        Ok(())
    }
    fn conflict(&self, with: &Chosen<'_>) -> Option<Misfit> {
        let because = "those keep the credits that the packets they wait for need, and both wait for ever";
        lets_all_come(self.name(), because, with)
    }
}

impl Params {
    /// The power of two that `alpha` is.
    fn shift(&self) -> Option<i8> {
        (-7..=7).find(|&shift| 2f64.powi(shift as i32) == self.alpha)
    }
}

impl FlowControlDef for Params {
    fn layout(&self, _: &Graph) -> Result<Layout, Misfit> {
        Ok(Layout { frame: CC_UPDATE as u64, stops_for_hosts: true, grants: true, ..Layout::default() })
    }
    fn least(&self, largest: u64, cell: u64) -> u64 {
        Sizes::least(self, largest, cell)
    }
    fn room(&self, fabric: &Fabric<'_>) -> Option<Room> {
        Some(Sizes::new(self, fabric).room(fabric))
    }
    fn notes(&self, fabric: &Fabric<'_>) -> Vec<String> {
        Sizes::new(self, fabric).notes(self, fabric.graph)
    }
    fn explain(&self, fabric: &Fabric<'_>) -> Option<(&'static str, Vec<String>)> {
        Some(("credits", Sizes::new(self, fabric).explain(self)))
    }
    fn waits(&self, _: &Setup) -> Waits {
        // The credits of a link are back when the packets that took them have left its end, class by class. They run out also where memory never does. What
        // classes share of them cannot stop one that has a packet of its own reserved.
        Waits::Classes
    }
    fn switch_state(&self, ports: u64, classes: u64) -> u64 {
        // By port and VC, S_CC, S_CF, S_CL, S_CU, R_CC and R_CF; by port, limit and use.
        (ports * (6 * classes + 2) * BITS as u64).div_ceil(8)
    }
    fn run(&self, job: Job<'_>) -> Outcome {
        let scheme = Cbfc::new(self, &job.setup, job.promised);
        job.run(scheme)
    }
}

message! {
    /// What is said on a link.
    pub enum Frame {
        /// CF_Update, from the receiver: what has left its memory.
        Freed {
            /// Of which VC.
            vc: ClassId,
            /// R_CF.
            freed: u32,
        },
        /// CC_Update, from the sender: what it has sent.
        Consumed {
            /// S_CC of every VC.
            counters: Payload,
        },
    }
}

/// A port.
struct Line {
    vcs: Vec<Vc>,
    /// What the neighbour grants.
    out: Grant,
    /// What is granted to the neighbour.
    own: Grant,
    /// Shared credits in use, of all VCs.
    shared: u32,
    /// The VC of which the neighbour heard last.
    told: usize,
    /// The next CF_Update may go.
    next: Time,
    /// When R_CF of any VC changed last.
    changed: Time,
    /// Least time between two CF_Updates.
    spacing: Time,
    /// A CF_Update, or a CC_Update, is planned.
    planned: [bool; 2],
    /// How long until a CF_Update, or a CC_Update, says the same again.
    paces: [Pace; 2],
}

impl Line {
    /// Credits that a VC has beyond its reserve.
    fn beyond(&self, in_use: u32) -> u32 {
        in_use.saturating_sub(self.out.reserved)
    }
    /// Whether a packet may go by a VC.
    fn fits(&self, vc: usize, cost: u32) -> bool {
        let used = self.vcs[vc].in_use();
        let (before, after) = (self.beyond(used), self.beyond(used + cost));
        if after == before {
            return true;
        }
        let free = self.out.shared.saturating_sub(self.shared);
        after - before <= free && after as u64 <= self.out.most(free)
    }
    /// S_CC of a VC grows, or S_CF does.
    fn turn(&mut self, vc: usize, change: impl FnOnce(&mut Vc)) {
        let before = self.beyond(self.vcs[vc].in_use());
        change(&mut self.vcs[vc]);
        self.shared = self.shared + self.beyond(self.vcs[vc].in_use()) - before;
    }
}

/// How long until something is said again.
#[derive(Clone, Copy)]
struct Pace {
    usual: Time,
    now: Time,
    /// It waited to be sent until it was due again.
    late: bool,
}

impl Pace {
    fn new(usual: Time) -> Pace {
        Pace { usual, now: usual, late: false }
    }
    /// There is something new to say.
    fn fresh(&mut self) {
        *self = Pace::new(self.usual);
    }
    /// It is said, instead of what still waits or not.
    fn said(&mut self, instead: bool) -> Time {
        self.late |= instead;
        if self.late {
            self.now = Time(2 * self.now.0).min(LONGEST).max(self.usual);
        }
        self.now
    }
}

#[derive(Default)]
struct Counts {
    cf_updates: u64,
    cc_updates: u64,
    recovered: u64,
    stops: u64,
    peak: u64,
}

/// What a node keeps.
pub struct Node {
    lines: Vec<Line>,
    deadlines: Deadlines,
    counts: Counts,
}

/// Timers of a port: a CF_Update may go.
const TELL: u32 = 0;
/// A CC_Update is due.
const SYNC: u32 = 1;
/// What was said last is to be said again.
const REPEAT: u32 = 2;
const TIMERS: u32 = 3;

/// Why a VC waits where the next node has given back all that has left it.
const UNDER_WAY: &str = "the credits of the link are used up by packets, and updates, that are under way";

/// The mechanism: what all nodes share.
#[derive(Clone)]
pub struct Cbfc {
    sizes: Arc<Sizes>,
    spacing: (u64, u64),
    cc_interval: Time,
    /// Links can lose frames.
    fallible: bool,
    lossless: bool,
    /// Where counters begin.
    first: u32,
}

impl Cbfc {
    /// CBFC over the fabric of a setup, which has been given the room to lose nothing or not.
    pub fn new(params: &Params, setup: &Setup, promised: bool) -> Cbfc {
        Cbfc {
            sizes: Arc::new(Sizes::new(params, &fabric_of(setup))),
            spacing: (params.cf_spacing.0, params.cf_longest.0),
            cc_interval: params.cc_interval,
            fallible: setup.graph.fallible(),
            lossless: promised,
            first: 0,
        }
    }

    fn cost(&self, size: u16) -> u32 {
        self.sizes.cost(size as u64) as u32
    }

    /// Credits of a VC are free again: of a packet that came in by `port`.
    #[inline]
    fn free(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, class: ClassId, credits: u32) {
        let line = &mut node.lines[port.index()];
        let vc = &mut line.vcs[class.index()];
        vc.release(credits);
        line.changed = at.now();
        line.paces[TELL as usize].fresh();
        self.watch(node, at, port, class);
        self.tell(node, at, port);
    }

    /// So much is here, or so little, that it is to be known why the neighbour stops.
    #[inline]
    fn watch(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, class: ClassId) {
        let line = &mut node.lines[port.index()];
        let (own, vc) = (line.own, &mut line.vcs[class.index()]);
        let held = vc.held();
        if at.has_queues() {
            // The neighbour can send no full packet until something leaves.
            at.account(port, class).0.paused = held + self.cost(self.sizes.largest as u16) > own.limit();
        }
        let full = held > own.mark;
        if full && !vc.full {
            at.orders(port, Subject::class(class), Because::Account { class, second: false });
        }
        vc.full = full;
    }

    /// Sends a CF_Update about a VC that has something to say, or plans one for when it may go.
    fn tell(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId) {
        let line = &mut node.lines[port.index()];
        let count = line.vcs.len();
        let mut turns = (1..=count).map(|step| (line.told + step) % count);
        let Some(vc) = turns.find(|&vc| line.vcs[vc].owed) else { return };
        let now = at.now();
        // What is owed while the link is down is said when the neighbour asks.
        if !at.is_up(port) {
            return;
        }
        if now >= line.next {
            let class = ClassId(vc as u8);
            let update = Frame::Freed { vc: class, freed: line.vcs[vc].left };
            let same = |old: &Frame| matches!(old, Frame::Freed { vc, .. } if *vc == class);
            let instead = at.send_latest(port, CF_UPDATE, update, same).is_some();
            node.counts.cf_updates += !instead as u64;
            line.vcs[vc].owed = false;
            (line.told, line.next) = (vc, now + line.spacing);
            let again = line.paces[TELL as usize].said(instead);
            if self.fallible {
                node.deadlines.set(at, port, REPEAT, Some(again));
            }
            if !line.vcs.iter().any(|vc| vc.owed) {
                return;
            }
        }
        if !std::mem::replace(&mut line.planned[TELL as usize], true) {
            node.deadlines.set(at, port, TELL, Some(line.next - now));
        }
    }

    /// Stops what a VC has no credits for, and lets go what it has.
    #[inline]
    fn look(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, class: ClassId) {
        let line = &mut node.lines[port.index()];
        let largest = line.fits(class.index(), self.cost(self.sizes.largest as u16));
        if largest && !line.vcs[class.index()].stopped {
            return;
        }
        self.turn(node, at, port, class, largest);
    }

    #[inline(never)]
    fn turn(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, class: ClassId, largest: bool) {
        let line = &mut node.lines[port.index()];
        let before = line.vcs[class.index()].stopped;
        let mut stopped = false;
        if at.is_host() {
            stopped = !largest;
            if at.is_paused(port, class) != stopped {
                at.pause_class(port, class, stopped);
                self.say_why(at, port, Scope::Class(class), class, stopped);
            }
        } else {
            for queue in at.class_queues(class) {
                let stop = !largest
                    && at.head(port, queue).is_some_and(|head| {
                        let size = at.packet(head).size;
                        !line.fits(class.index(), self.cost(size))
                    });
                at.pause_queue(port, queue, stop);
                self.say_why(at, port, Scope::Queue(queue), class, stop);
                stopped |= stop;
            }
        }
        node.counts.stops += (stopped && !before) as u64;
        line.vcs[class.index()].stopped = stopped;
    }

    fn say_why(&self, at: &mut NodeView<'_>, port: PortId, scope: Scope, class: ClassId, stop: bool) {
        if stop {
            at.stopped_for(port, scope, Subject::class(class));
            at.stopped_by_rule(port, scope, UNDER_WAY);
        }
    }

    /// The same for whatever a VC's credits matter to: the others, too, where they share.
    fn look_at_all(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, class: ClassId) {
        if node.lines[port.index()].out.shared == 0 {
            return self.look(node, at, port, class);
        }
        (0..at.classes()).map(ClassId).for_each(|class| self.look(node, at, port, class));
    }

    /// The neighbour says R_CF of a VC.
    fn freed(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, class: ClassId, freed: u32) {
        let line = &mut node.lines[port.index()];
        if !line.vcs[class.index()].gets_back(freed) {
            return;
        }
        line.turn(class.index(), |vc| vc.freed = freed);
        self.look_at_all(node, at, port, class);
    }

    /// The neighbour says S_CC of all VCs.
    fn consumed(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, counters: &[u64]) {
        let line = &mut node.lines[port.index()];
        for (vc, &counter) in line.vcs.iter_mut().zip(counters) {
            node.counts.recovered += vc.resynchronise(counter as u32) as u64;
        }
        self.tell(node, at, port);
    }
}

impl FlowControl for Cbfc {
    type Node = Node;
    type Frame = Frame;
    type Signal = ();
    const CHOOSES: bool = false;
    const COUNTS: bool = true;

    fn node(&self, site: &Site<'_>) -> Node {
        let line = |port: PortId| {
            let (number, rate) = (site.number(port), site.rate(port));
            Line {
                vcs: vec![Vc::new(self.first); site.setup.classes as usize],
                out: self.sizes.grants[site.map.peer[number as usize] as usize],
                own: self.sizes.grants[number as usize],
                shared: 0,
                told: 0,
                next: Time::ZERO,
                changed: Time::ZERO,
                spacing: rate.time_for(self.spacing.0),
                planned: [false; 2],
                paces: [rate.time_for(self.spacing.1), self.cc_interval].map(Pace::new),
            }
        };
        Node {
            lines: site.ports().map(line).collect(),
            deadlines: Deadlines::new(site.ports().len(), TIMERS),
            counts: Counts::default(),
        }
    }

    fn lossless(&self) -> bool {
        self.lossless
    }

    fn timers(&self, _: u8) -> u32 {
        TIMERS
    }

    fn arrived(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, class: ClassId, size: u16) {
        node.lines[port.index()].vcs[class.index()].receive(self.cost(size));
        if !at.has_queues() {
            self.watch(node, at, port, class);
        }
    }

    fn gone(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, class: ClassId, size: u16) {
        self.free(node, at, port, class, self.cost(size));
    }

    fn sent(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, class: ClassId, size: u16) {
        let line = &mut node.lines[port.index()];
        let cost = self.cost(size);
        line.turn(class.index(), |vc| vc.send(cost));
        node.counts.peak = node.counts.peak.max(line.vcs[class.index()].in_use() as u64);
        let late = line.paces[SYNC as usize].late;
        line.paces[SYNC as usize].fresh();
        if !std::mem::replace(&mut line.planned[SYNC as usize], true) || late {
            node.deadlines.set(at, port, SYNC, Some(self.cc_interval));
        }
        self.look_at_all(node, at, port, class);
    }

    fn enqueued(&self, node: &mut Node, at: &mut NodeView<'_>, visit: &Visit) {
        self.watch(node, at, visit.in_port, visit.class);
        // It is the first of its queue, or others have been looked at before it.
        if at.is_host() || at.queue_bytes(visit.out_port, visit.queue) == visit.size as u64 {
            self.look(node, at, visit.out_port, visit.class);
        }
    }

    fn dequeued(&self, node: &mut Node, at: &mut NodeView<'_>, visit: &Visit) {
        self.free(node, at, visit.in_port, visit.class, self.cost(visit.size));
    }

    fn frame(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, frame: Frame) {
        match frame {
            Frame::Freed { vc, freed } => self.freed(node, at, port, vc, freed),
            Frame::Consumed { counters } => self.consumed(node, at, port, &counters),
        }
    }

    fn timer(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, timer: u32) {
        if !node.deadlines.due(at, port, timer) {
            return;
        }
        let line = &mut node.lines[port.index()];
        match timer {
            TELL => {
                line.planned[TELL as usize] = false;
                self.tell(node, at, port);
            }
            SYNC => {
                line.planned[SYNC as usize] = line.vcs.iter().any(|vc| vc.in_use() > 0);
                if !line.planned[SYNC as usize] {
                    return;
                }
                let counters: Vec<u64> = line.vcs.iter().map(|vc| vc.consumed as u64).collect();
                let mut again = self.cc_interval;
                if at.is_up(port) {
                    let update = Frame::Consumed { counters: counters.into() };
                    let same = |old: &Frame| matches!(old, Frame::Consumed { .. });
                    let instead = at.send_latest(port, CC_UPDATE, update, same).is_some();
                    node.counts.cc_updates += !instead as u64;
                    again = line.paces[SYNC as usize].said(instead);
                }
                node.deadlines.set(at, port, SYNC, Some(again));
            }
            // By then the neighbour has asked if it misses something.
            _ if at.now() - line.changed > self.cc_interval => {}
            _ => {
                line.vcs.iter_mut().for_each(|vc| vc.owed |= vc.used);
                self.tell(node, at, port);
            }
        }
    }

    fn link_lost(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId) {
        // Every pause has ended with the link; credits stay where they are.
        for class in (0..at.classes()).map(ClassId) {
            node.lines[port.index()].vcs[class.index()].stopped = false;
            self.look(node, at, port, class);
        }
    }

    fn owes(&self, node: &Node, port: PortId) -> bool {
        let line = &node.lines[port.index()];
        // Where links lose nothing, and VCs share nothing, the neighbour knows all once it has been told.
        self.fallible || line.own.shared > 0 || line.planned[TELL as usize] || line.vcs.iter().any(|vc| vc.owed)
    }

    fn counters(&self, nodes: &[&Node]) -> Vec<Counter> {
        vec![
            sum("cf_updates", nodes, |node| node.counts.cf_updates),
            sum("cc_updates", nodes, |node| node.counts.cc_updates),
            sum("credits_recovered", nodes, |node| node.counts.recovered),
            sum("credit_stops", nodes, |node| node.counts.stops),
            max("credits_peak", nodes, |node| node.counts.peak),
        ]
    }
}
