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
use fabric::deadlock::Waits;
use fabric::id::{ClassId, PortId};
use fabric::packet::Packet;
use fabric::topology::Graph;
use fabric::view::{NodeView, Site};
use fabric::{Outcome, Setup, message};

engine::parameters! {
    /// Parameters of PFC. The threshold itself belongs to the switch's buffer.
    pub struct Params {
        /// Size of a pause or resume frame on the wire.
        frame: Bytes = Bytes(64),
        /// How long a pause lasts unless it is renewed; auto: for ever, or 300 us where links can lose frames.
        pause: Option<Time> = None,
        /// Break what looks like a deadlock: a queue that was paused for too long is emptied, and its pauses are ignored for a while.
        watchdog: bool = false,
        /// A queue with packets that was paused this long is taken for deadlocked. (Switches that are sold have 100 to 400 ms.)
        detection: Time = Time::from_us(200),
        /// How long pauses are ignored after that.
        restoration: Time = Time::from_us(200),
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
    fn layout(&self, _: &Graph) -> Result<Layout, Misfit> {
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
        frame.message::<Frame>(0).map(Frame::class)
    }
    fn run(&self, job: Job<'_>) -> Outcome {
        let pause = self.pause.or(pause_limit(&job.setup.graph));
        let scheme = Pfc::new(self, pause, job.promised);
        job.run(scheme)
    }
}

/// Whether a frame of a scheme with PFC beneath it is a pause, and of which class.
pub fn pause_beneath(frame: &Packet) -> Option<(u8, bool)> {
    frame.message::<Frame>(1).map(Frame::class)
}

/// A pause is renewed for as long as the ingress is full: that it runs out does not end a cycle.
pub(super) fn waits(setup: &Setup) -> Waits {
    match setup.switch.pool.iter().all(Option::is_none) {
        true => Waits::Never("no switch ever runs out of memory"),
        false => Waits::Classes,
    }
}

/// How long a pause lasts unless it is renewed: for ever, or 300 us where links can lose frames.
pub(super) fn pause_limit(graph: &Graph) -> Option<Time> {
    graph.fallible().then_some(Time::from_us(300))
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
    fn class(self) -> (u8, bool) {
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
        Pfc::new(&Params::default(), pause_limit(graph), lossless)
    }

    #[cold]
    fn order(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, class: ClassId) {
        node.pauses_sent += 1;
        at.send_frame(port, self.frame, Frame::Pause { class });
        if let Some(pause) = self.pause {
            node.deadlines.set(at, port, timer(class, RENEW), Some(Time(pause.0.div_ceil(2))));
        }
    }

    #[cold]
    fn resume(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, class: ClassId) {
        node.resumes_sent += 1;
        at.send_frame(port, self.frame, Frame::Resume { class });
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

    fn timers(&self, classes: u8) -> u32 {
        classes as u32 * TIMERS
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
mod tests {
    use super::*;
    use engine::Rate;
    use fabric::bench::{Bench, Builder};
    use fabric::buffer::{ALPHA_ONE, Share};
    use fabric::id::NodeId;
    use fabric::setup::FlowSpec;
    use fabric::topology::{Graph, Kind};

    /// Two senders into one receiver over a switch with little room.
    fn incast() -> Setup {
        let mut graph = Graph::default();
        (0..3).for_each(|i| _ = graph.add(Kind::Host, 0, format!("h{i}")));
        let switch = graph.add(Kind::Switch, 1, "s");
        (0..3).for_each(|h| graph.connect(NodeId(h), switch, Rate::from_gbps(100), Time::from_us(1)));
        let flows = (0..2).map(|i| FlowSpec::plain(i, i as u32, 2, 1_000_000, Time::ZERO)).collect();
        let mut setup = Setup::plain(graph, flows);
        setup.switch.pool.fill(Some(100_000));
        setup.switch.resume_gap = 3_000;
        setup.ports.iter_mut().for_each(|p| p.share = Share { alpha: ALPHA_ONE / 4, headroom: 40_000 });
        setup.nic.timeout = Some(Time::from_ms(1));
        setup.measure.pause_log = true;
        setup
    }

    fn run(setup: Setup, pause: Option<Time>) -> Outcome {
        crate::testing::run(setup, Pfc::new(&Params::default(), pause, true))
    }

    fn counters(list: &[Counter]) -> std::collections::HashMap<&'static str, u64> {
        list.iter().map(|counter| (counter.name, counter.value)).collect()
    }

    #[test]
    fn a_full_ingress_stops_its_neighbour_and_lets_it_go_again() {
        let outcome = run(incast(), None);
        assert!(outcome.complete() && outcome.violations.is_empty());
        let counters = counters(&outcome.flow_control);
        assert!(counters["pause_frames"] > 10);
        assert_eq!(counters["pause_frames"], counters["resume_frames"]);
        assert_eq!(outcome.counts.pauses, counters["pause_frames"]);
        // The two senders share the link for the whole run: each is held about half of the time.
        let share = outcome.paused[0].0 as f64 / outcome.end.0 as f64;
        assert!((0.4..0.6).contains(&share), "{share}");
        // A pause takes effect after its frame has crossed the link, and the packet before it was done.
        let first = outcome.pause_log.iter().find(|e| e.pause).expect("someone was paused");
        assert!(first.time > Time::from_us(2), "not before the first packets have arrived and a frame came back");
    }

    /// The receiver takes packets at a fifth of the rate of its link.
    fn slow(buffer: u64, xoff: u64) -> Setup {
        let mut setup = incast();
        setup.flows.truncate(1);
        let (rate, until) = (Rate::from_gbps(20), Time::MAX);
        // The receiver's port is the host's end of the third link.
        let port = fabric::routing::PortMap::new(&setup.graph).of(2).start;
        let slow = fabric::setup::SlowReceiver { port, rate, from: Time::ZERO, until, buffer, xoff, xon: xoff / 2 };
        setup.slow.push(slow);
        setup
    }

    #[test]
    fn a_slow_receiver_pauses_its_switch_and_is_never_overrun() {
        let outcome = run(slow(100_000, 50_000), None);
        assert!(outcome.complete() && outcome.violations.is_empty(), "{:?}", outcome.violations);
        // A megabyte at 20 Gb/s.
        let least = Rate::from_gbps(20).time_for(1_062_000);
        let took = outcome.flows[0].received;
        assert!(took >= least && took < least + Time::from_us(30), "{took}");
        let counters = counters(&outcome.transport);
        assert!((50_000..100_000).contains(&counters["receiver_buffer_peak"]));
        assert_eq!((counters["receiver_dropped"], outcome.counts.dropped_full), (0, 0));
        // Without room for what is in flight the promise is broken, and the run says so.
        let outcome = run(slow(60_000, 50_000), None);
        assert!(outcome.violations.iter().any(|v| v.contains("want of room")), "{:?}", outcome.violations);
    }

    #[test]
    fn a_slow_receiver_without_pauses_drops_what_does_not_fit() {
        let outcome = crate::testing::run(slow(100_000, 50_000), fabric::axes::flow_control::NoFlowControl);
        assert!(outcome.complete() && outcome.violations.is_empty());
        let counters = counters(&outcome.transport);
        assert!(counters["receiver_dropped"] > 0 && counters["receiver_dropped"] == outcome.counts.dropped_full);
    }

    #[test]
    fn a_receiver_that_is_slow_for_a_while_is_fast_again_afterwards() {
        let mut setup = slow(400_000, 300_000);
        (setup.slow[0].from, setup.slow[0].until) = (Time::from_us(20), Time::from_us(50));
        let outcome = run(setup, None);
        assert!(outcome.complete() && outcome.violations.is_empty());
        // It could take a fifth for 30 us; the rest waited for 24 us of the link's time.
        let alone = run(Setup { slow: vec![], ..slow(0, 0) }, None).flows[0].received;
        let late = outcome.flows[0].received - alone;
        assert!(late > Time::from_us(20) && late < Time::from_us(26), "{late}");
    }

    const CLASS: ClassId = ClassId(0);
    const SENDER: PortId = PortId(0);
    const RECEIVER: PortId = PortId(2);

    /// A switch with a pool of 100 KB, of which each ingress may have a quarter of what is free, and resumes 3 KB below. The port to the
    /// receiver sends when it is asked to.
    fn bench(params: &Params, pause: Option<Time>) -> Bench<Pfc> {
        let builder = Builder::switch(3, 0).memory(100_000, ALPHA_ONE / 4, 40_000);
        let builder = builder.setup(|setup| setup.switch.resume_gap = 3_000);
        let mut bench = builder.build(Pfc::new(params, pause, true));
        bench.close(RECEIVER);
        bench
    }

    fn fill(bench: &mut Bench<Pfc>, packets: u32) {
        let flow = bench.flow(0, 2, 0);
        (0..packets).for_each(|_| bench.arrive(SENDER, flow));
    }

    #[test]
    fn the_packet_that_crosses_the_threshold_pauses_its_sender_and_the_one_that_brings_it_under_resumes() {
        let mut bench = bench(&Params::default(), None);
        // n packets are over (100 000 − 1062 n) / 4 from n = 19 on.
        fill(&mut bench, 18);
        assert_eq!(bench.frames(), []);
        fill(&mut bench, 1);
        assert_eq!(bench.frames(), [(SENDER, Frame::Pause { class: CLASS })]);
        fill(&mut bench, 3);
        assert_eq!(bench.frames(), [], "it was said already");
        // And 3000 bytes under it with n = 16.
        (0..5).for_each(|_| _ = bench.transmit(RECEIVER).unwrap());
        assert_eq!(bench.frames(), []);
        bench.transmit(RECEIVER).unwrap();
        assert_eq!(bench.view().queued(RECEIVER), 16 * 1062);
        assert_eq!(bench.frames(), [(SENDER, Frame::Resume { class: CLASS })]);
    }

    #[test]
    fn a_paused_port_sends_nothing_of_the_class_until_it_is_resumed_or_the_pause_runs_out() {
        let mut bench = bench(&Params::default(), Some(Time::from_us(300)));
        fill(&mut bench, 3);
        bench.frame(RECEIVER, Frame::Pause { class: CLASS });
        assert_eq!(bench.paused_classes(RECEIVER), [CLASS]);
        assert!(bench.transmit(RECEIVER).is_none());
        bench.frame(RECEIVER, Frame::Resume { class: CLASS });
        assert_eq!(bench.transmit(RECEIVER).unwrap().packet.seq, 0);
        bench.frame(RECEIVER, Frame::Pause { class: CLASS });
        bench.advance(Time::from_us(300) - Time(1));
        assert!(bench.transmit(RECEIVER).is_none());
        bench.advance(Time(1));
        assert_eq!(bench.transmit(RECEIVER).unwrap().packet.seq, 1000);
    }

    #[test]
    fn a_pause_that_runs_out_is_renewed_twice_in_its_time() {
        let mut bench = bench(&Params::default(), Some(Time::from_us(300)));
        fill(&mut bench, 19);
        bench.advance(Time::from_us(300));
        let pauses: Vec<Time> = bench.sent().iter().map(|sent| sent.time).collect();
        assert_eq!(pauses, [0, 150, 300].map(Time::from_us));
    }

    #[test]
    fn a_nic_that_is_full_pauses_its_switch_and_resumes_it_when_half_of_that_is_left() {
        // A packet takes 85 us at 100 Mb/s: the host takes none before that.
        let builder = Builder::host(1).slow(Rate::from_mbps(100), 20_000, 5_000);
        let mut bench = builder.build(Pfc::new(&Params::default(), None, true));
        let flow = bench.flow(1, 0, 0);
        // Five packets are 5310 bytes, and two are 2124.
        (0..5).for_each(|_| bench.arrive(PortId(0), flow));
        assert_eq!(bench.frames(), [(PortId(0), Frame::Pause { class: CLASS })]);
        bench.advance(Time::from_us(2 * 85));
        assert_eq!(bench.frames(), []);
        bench.advance(Time::from_us(85));
        assert_eq!(bench.frames(), [(PortId(0), Frame::Resume { class: CLASS })]);
    }

    #[test]
    fn a_watchdog_empties_a_queue_that_was_paused_for_long_and_ignores_pauses_for_a_while() {
        // The receiver pauses its switch once, and never takes it back.
        let stuck = |params: &Params| {
            let mut bench = bench(params, None);
            bench.frame(RECEIVER, Frame::Pause { class: CLASS });
            fill(&mut bench, 19);
            bench.advance(Time::from_us(199));
            assert_eq!(bench.view().queued(RECEIVER), 19 * 1062);
            bench.advance(Time::from_us(1));
            bench
        };
        let patient = stuck(&Params::default());
        assert_eq!(patient.counts().dropped_scheme, 0);
        let mut watched = stuck(&Params { watchdog: true, restoration: Time::from_us(20), ..Params::default() });
        assert_eq!((watched.counts().dropped_scheme, watched.node().drops), (19, 19));
        // What was dropped is gone from the books, too.
        let said: Vec<Frame> = watched.frames().into_iter().map(|(_, frame)| frame).collect();
        assert_eq!(said, [Frame::Pause { class: CLASS }, Frame::Resume { class: CLASS }]);
        // While it is ignored, packets get through; then it counts again, and later again not.
        fill(&mut watched, 2);
        assert!(watched.transmit(RECEIVER).is_some());
        watched.frame(RECEIVER, Frame::Pause { class: CLASS });
        watched.advance_to(Time::from_us(219));
        assert_eq!(watched.paused_classes(RECEIVER), []);
        watched.advance_to(Time::from_us(220));
        assert_eq!(watched.paused_classes(RECEIVER), [CLASS]);
        assert!(watched.transmit(RECEIVER).is_none());
        watched.advance_to(Time::from_us(420));
        assert_eq!((watched.counts().dropped_scheme, watched.node().watched[2].fired), (20, 2));
    }

    #[test]
    fn a_renewed_pause_holds_and_a_lost_resume_does_not_hold_for_ever() {
        // Pauses shorter than the time a neighbour must wait are renewed: the outcome is the same.
        let forever = run(incast(), None);
        let renewed = run(incast(), Some(Time::from_us(10)));
        assert!(renewed.complete() && renewed.violations.is_empty());
        assert_eq!(forever.flows[0].received, renewed.flows[0].received);
        // With half of all frames lost, both flows still finish.
        let mut setup = incast();
        setup.graph.links[0].loss = 0.3;
        setup.graph.links[1].loss = 0.3;
        let scheme = Pfc::new(&Params::default(), Some(Time::from_us(50)), false);
        let outcome = crate::testing::run(setup, scheme);
        assert!(outcome.complete() && outcome.violations.is_empty());
    }
}
