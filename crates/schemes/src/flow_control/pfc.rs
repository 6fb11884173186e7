//! Priority flow control (IEEE 802.1Qbb): a full ingress stops its neighbour, class by class.
//!
//! A switch watches what each (ingress port, class) holds. At the dynamic threshold it sends a pause frame up the
//! link; well below, a resume frame. What is in flight meanwhile goes into headroom.
//!
//! In a fabric that loses no frame a pause simply lasts until it is taken back. Where frames can get lost, a pause
//! runs out after a time and is renewed twice in it, as the standard has it: a lost resume must not hold a link for ever.

use super::{Deadlines, check_frame, sum};
use engine::{Bytes, Misfit, Time};
use fabric::axes::flow_control::{FlowControl, FlowControlDef, Headroom, Job, Layout, Visit};
use fabric::axes::{Counter, Definition};
use fabric::buffer::{Account, Buffer};
use fabric::deadlock::Waits;
use fabric::id::{ClassId, PortId};
use fabric::packet::Packet;
use fabric::probe::{Because, Subject};
use fabric::topology::Graph;
use fabric::view::{NodeView, Site};
use fabric::{Outcome, Setup, message};

engine::parameters! {
    /// Parameters of PFC. The threshold itself belongs to the switch's buffer.
    pub struct Params {
        /// Size of a pause or resume frame on the wire.
        frame: Bytes = Bytes(64),
        /// How long a pause lasts unless it is renewed; auto: for ever, or 300 us where links can lose frames, and the time of 64 frames of the slowest link at least.
        pause: Option<Time> = None,
        /// Break what looks like a deadlock: a queue that was paused for too long is emptied, and its pauses are ignored for a while.
        watchdog: bool = false,
        /// A queue with packets that was paused this long is taken for deadlocked. (Switches that are sold have 100 to 400 ms.)
        detection: Time = Time::from_us(200), if watchdog == true,
        /// How long pauses are ignored after that.
        restoration: Time = Time::from_us(200), if watchdog == true,
    }
}

impl Definition for Params {
    fn name(&self) -> &'static str {
        "pfc"
    }
    fn about(&self) -> &'static str {
        "Priority flow control: a switch whose ingress is full pauses the neighbour, per port and class. Lossless."
    }
    fn source(&self) -> &'static str {
        "IEEE 802.1Qbb, Priority-based Flow Control, 2011"
    }
    fn check(&self) -> Result<(), Misfit> {
        check_frame("frame", self.frame)?;
        if let Some(pause) = self.pause.filter(|pause| *pause < Time::from_us(1)) {
            return Err(Misfit::new("pause", pause, "write \"1us\" or more, or \"auto\""));
        }
        for (name, time) in [("detection", self.detection), ("restoration", self.restoration)] {
            if !(Time::from_us(1)..=Time::from_ms(10_000)).contains(&time) {
                return Err(Misfit::new(name, time, "write \"1us\" to \"10s\""));
            }
        }
        Ok(())
    }
}

impl FlowControlDef for Params {
    fn soon_over(&self) -> bool {
        true
    }
    fn layout(&self, graph: &Graph) -> Result<Layout, Misfit> {
        let least = frames(graph, self.frame.0, LEAST_PAUSE);
        if let Some(pause) = self.pause.filter(|&pause| pause < least) {
            let help = format!("write \"{least}\" or more: frames that renew shorter ones could fill the slowest link");
            return Err(Misfit::new("pause", pause, help));
        }
        Ok(Layout {
            headroom: Some(Headroom::default()),
            frame: self.frame.0,
            stops_for_hosts: true,
            may_drop: self.watchdog.then_some("the watchdog empties queues, and what it lets go may find no room"),
            ..Layout::default()
        })
    }
    fn waits(&self, setup: &Setup) -> Waits {
        waits(setup)
    }
    fn switch_state(&self, ports: u64, classes: u64) -> u64 {
        // One bit for what it has paused, and one for what is paused here.
        (2 * ports * classes).div_ceil(8)
    }
    fn pause_in(&self, frame: &Packet) -> Option<(u8, bool)> {
        frame.message::<Frame>(0).map(|frame| frame.class())
    }
    fn run(&self, job: Job<'_>) -> Outcome {
        let pause = self.pause.or(pause_limit(&job.setup.graph, self.frame.0));
        let scheme = Pfc::new(self, pause, job.promised);
        job.run(scheme)
    }
}

/// Whether a frame of a scheme with PFC beneath it is a pause, and of which class.
pub fn pause_beneath(frame: &Packet) -> Option<(u8, bool)> {
    frame.message::<Frame>(1).map(|frame| frame.class())
}

/// A pause is renewed for as long as the ingress is full: that it runs out does not end a cycle.
pub(super) fn waits(setup: &Setup) -> Waits {
    match setup.switch.pool.iter().all(Option::is_none) {
        true => Waits::Never("no switch ever runs out of memory"),
        false => Waits::Classes,
    }
}

/// How many frames must fit in the time of a pause. It is renewed twice in it, for each of eight classes: that is half of the link.
const LEAST_PAUSE: u64 = 32;

/// So many frames on the slowest link, in whole microseconds.
fn frames(graph: &Graph, frame: u64, count: u64) -> Time {
    let one = graph.rates().map(|rate| rate.time_for(frame)).max().unwrap_or_default();
    Time::from_us(one.0.saturating_mul(count).div_ceil(1_000_000))
}

/// How long a pause lasts unless it is renewed: for ever, or 300 us where links can lose frames, and longer where links are so slow that renewing
/// it would take much of them.
pub(super) fn pause_limit(graph: &Graph, frame: u64) -> Option<Time> {
    graph.fallible().then(|| Time::from_us(300).max(frames(graph, frame, 2 * LEAST_PAUSE)))
}

message! {
    /// What a frame says.
    pub enum Frame {
        /// Stop this class.
        Pause {
            /// The class.
            class: ClassId,
        },
        /// Go on.
        Resume {
            /// The class.
            class: ClassId,
        },
    }
}

impl Frame {
    fn class(&self) -> (u8, bool) {
        match self {
            Frame::Pause { class } => (class.0, true),
            Frame::Resume { class } => (class.0, false),
        }
    }
}

/// The mechanism: what all nodes share.
#[derive(Clone)]
pub struct Pfc {
    frame: u16,
    lossless: bool,
    /// How long a pause lasts; `None` for ever.
    pause: Option<Time>,
    watchdog: Option<Watchdog>,
}

/// Detection of deadlocks by their length, and recovery from them.
#[derive(Clone, Copy)]
struct Watchdog {
    detection: Time,
    restoration: Time,
}

/// What a node keeps.
pub struct Node {
    deadlines: Deadlines,
    pauses_sent: u64,
    resumes_sent: u64,
    /// By port and class; empty without a watchdog.
    watched: Vec<Watched>,
    drops: u64,
}

#[derive(Clone, Copy, Default)]
struct Watched {
    /// The neighbour's last word was a pause.
    ordered: bool,
    /// Pauses are ignored for the time being.
    ignoring: bool,
    /// How often this port was taken for deadlocked.
    fired: u64,
}

/// What a timer of a (port, class) is for; four in a row.
const RENEW: u32 = 0;
const END: u32 = 1;
const DETECT: u32 = 2;
const RESTORE: u32 = 3;
const TIMERS: u32 = 4;

fn timer(class: ClassId, what: u32) -> u32 {
    class.0 as u32 * TIMERS + what
}

impl Pfc {
    /// PFC whose pauses last for ever or a while, and that promises to lose nothing or does not.
    pub fn new(params: &Params, pause: Option<Time>, lossless: bool) -> Pfc {
        let watchdog = Watchdog { detection: params.detection, restoration: params.restoration };
        Pfc { frame: params.frame.0 as u16, lossless, pause, watchdog: params.watchdog.then_some(watchdog) }
    }

    /// PFC with its defaults, to stay beneath another scheme.
    pub fn beneath(graph: &Graph, lossless: bool) -> Pfc {
        let params = Params::default();
        Pfc::new(&params, pause_limit(graph, params.frame.0), lossless)
    }

    #[cold]
    fn order(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, class: ClassId) {
        node.pauses_sent += 1;
        at.orders(port, Subject::class(class), Because::Account { class, second: false });
        self.say(node, at, port, Frame::Pause { class });
        if let Some(pause) = self.pause {
            node.deadlines.set(at, port, timer(class, RENEW), Some(Time(pause.0.div_ceil(2))));
        }
    }

    #[cold]
    fn resume(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, class: ClassId) {
        node.resumes_sent += 1;
        self.say(node, at, port, Frame::Resume { class });
    }

    /// What is said last of a class counts: a frame of it that has not left yet says it. So no more than one of each class waits at a
    /// port, which is what headroom is computed with.
    fn say(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, frame: Frame) {
        let class = frame.class().0;
        match at.send_latest(port, self.frame, frame, |old: &Frame| old.class().0 == class) {
            Some(Frame::Pause { .. }) => node.pauses_sent -= 1,
            Some(Frame::Resume { .. }) => node.resumes_sent -= 1,
            None => {}
        }
    }

    /// A neighbour's word, or the end of its pause.
    fn obey(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, class: ClassId, pause: bool) {
        match self.watchdog {
            Some(watchdog) => watchdog.obey(node, at, port, class, pause),
            None => at.pause_class(port, class, pause),
        }
        // The end of a pause is itself a timer: that it has gone off does not set it anew.
        if let Some(limit) = self.pause {
            node.deadlines.set(at, port, timer(class, END), pause.then_some(limit));
        }
    }
}

impl Node {
    fn watched(&mut self, at: &NodeView<'_>, port: PortId, class: ClassId) -> &mut Watched {
        &mut self.watched[port.index() * at.classes() as usize + class.index()]
    }
}

impl Watchdog {
    fn obey(self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, class: ClassId, pause: bool) {
        let watched = node.watched(at, port, class);
        watched.ordered = pause;
        if watched.ignoring {
            return;
        }
        let already = at.is_paused(port, class);
        at.pause_class(port, class, pause);
        // A renewed pause is the same pause. A NIC has no queue that could be emptied.
        if pause != already && at.has_queues() {
            node.deadlines.set(at, port, timer(class, DETECT), pause.then_some(self.detection));
        }
    }

    /// Pauses have been ignored for long enough.
    fn restore(self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, class: ClassId) {
        let watched = node.watched(at, port, class);
        watched.ignoring = false;
        if watched.ordered {
            at.pause_class(port, class, true);
            node.deadlines.set(at, port, timer(class, DETECT), Some(self.detection));
        }
    }

    /// A pause has lasted for long. Gives the packets that are to be dropped.
    fn detect(self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, class: ClassId) -> Vec<Visit> {
        let queues = at.class_queues(class);
        if !queues.clone().any(|queue| at.is_filled(port, queue)) {
            node.deadlines.set(at, port, timer(class, DETECT), Some(self.detection));
            return Vec::new();
        }
        let watched = node.watched(at, port, class);
        watched.ignoring = true;
        watched.fired += 1;
        let dropped: Vec<Visit> = queues.flat_map(|queue| at.empty_queue(port, queue)).collect();
        node.drops += dropped.len() as u64;
        at.pause_class(port, class, false);
        dropped
    }
}

impl FlowControl for Pfc {
    type Node = Node;
    type Frame = Frame;
    type Signal = ();
    const LOOKS_AT_QUEUES: bool = false;
    const CHOOSES: bool = false;

    fn node(&self, site: &Site<'_>) -> Node {
        let (ports, classes) = (site.ports().len(), site.setup.classes);
        let places = if self.watchdog.is_some() { ports * classes as usize } else { 0 };
        Node {
            deadlines: Deadlines::new(ports, self.timers(classes)),
            pauses_sent: 0,
            resumes_sent: 0,
            watched: vec![Watched::default(); places],
            drops: 0,
        }
    }

    fn lossless(&self) -> bool {
        self.lossless
    }

    fn digest(&self, _: &Node, _: Time) -> Option<u64> {
        // Without timers, who is paused is all there is, and accounts and ports have that.
        (self.pause.is_none() && self.watchdog.is_none()).then_some(0)
    }

    fn timers(&self, classes: u8) -> u32 {
        classes as u32 * TIMERS
    }

    #[inline(always)]
    fn unmoved(&self, account: &Account, buffer: &Buffer, size: u64) -> bool {
        !account.paused && buffer.calm(account, size)
    }

    #[inline(always)]
    fn enqueued(&self, node: &mut Node, at: &mut NodeView<'_>, visit: &Visit) {
        let (account, buffer) = at.account(visit.in_port, visit.class);
        if !account.paused && buffer.over(account) {
            account.paused = true;
            self.order(node, at, visit.in_port, visit.class);
        }
    }

    #[inline(always)]
    fn dequeued(&self, node: &mut Node, at: &mut NodeView<'_>, visit: &Visit) {
        let (account, buffer) = at.account(visit.in_port, visit.class);
        if account.paused && buffer.under(account) {
            account.paused = false;
            self.resume(node, at, visit.in_port, visit.class);
        }
    }

    fn frame(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, frame: Frame) {
        let (class, pause) = frame.class();
        self.obey(node, at, port, ClassId(class), pause);
    }

    fn receiver_full(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, full: bool) {
        for class in (0..at.classes()).map(ClassId) {
            let (account, _) = at.account(port, class);
            if account.paused == full {
                continue;
            }
            account.paused = full;
            if full {
                self.order(node, at, port, class);
            } else {
                self.resume(node, at, port, class);
            }
        }
    }

    fn timer(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, timer: u32) {
        if !node.deadlines.due(at, port, timer) {
            return;
        }
        let class = ClassId((timer / TIMERS) as u8);
        match (timer % TIMERS, self.watchdog) {
            (END, _) => self.obey(node, at, port, class, false),
            (DETECT, Some(watchdog)) => {
                let dropped = watchdog.detect(node, at, port, class);
                let fired = !dropped.is_empty();
                for visit in dropped {
                    self.dequeued(node, at, &visit);
                    at.drop_packet(visit.packet);
                }
                if fired {
                    node.deadlines.set(at, port, self::timer(class, RESTORE), Some(watchdog.restoration));
                }
            }
            (RESTORE, Some(watchdog)) => watchdog.restore(node, at, port, class),
            _ if at.account(port, class).0.paused => self.order(node, at, port, class),
            _ => {}
        }
    }

    fn link_lost(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId) {
        for class in (0..at.classes()).map(ClassId) {
            at.account(port, class).0.paused = false;
            if self.watchdog.is_some() {
                let watched = node.watched(at, port, class);
                (watched.ordered, watched.ignoring) = (false, false);
                [DETECT, RESTORE].into_iter().for_each(|what| node.deadlines.set(at, port, timer(class, what), None));
            }
        }
    }

    fn counters(&self, nodes: &[&Node]) -> Vec<Counter> {
        let mut all = vec![
            sum("pause_frames", nodes, |node| node.pauses_sent),
            sum("resume_frames", nodes, |node| node.resumes_sent),
        ];
        if self.watchdog.is_some() {
            let fired = || nodes.iter().flat_map(|node| &node.watched).map(|watched| watched.fired);
            // The ports of one cycle go off together; one that goes off again was in another.
            all.push(Counter::max("deadlocks_broken", fired().max().unwrap_or(0)));
            all.push(Counter::sum("watchdog_fired", fired().sum()));
            all.push(sum("watchdog_drops", nodes, |node| node.drops));
        }
        all
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
