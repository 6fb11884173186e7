//! Priority flow control (IEEE 802.1Qbb): a full ingress stops its neighbour, class by class.
//!
//! A switch watches what each (ingress port, class) holds. At the dynamic threshold it sends a pause frame up the
//! link; well below, a resume frame. What is in flight meanwhile goes into headroom.
//!
//! In a fabric that loses no frame a pause simply lasts until it is taken back. Where frames can get lost, a pause
//! runs out after a time and is renewed twice in it, as the standard has it: a lost resume must not hold a link for ever.

use super::{Choice, Controls, Deadlines, Report, check_frame, run_with};
use engine::{Bytes, Misfit, Time};
use fabric::deadlock::Waits;
use fabric::network::Core;
use fabric::packet::Packet;
use fabric::scheme::{Counter, FlowControl, Visit};
use fabric::topology::Graph;
use fabric::{Outcome, Setup};

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

impl Choice for Params {
    fn name(&self) -> &'static str {
        "pfc"
    }
    fn about(&self) -> &'static str {
        "Priority flow control: a switch whose ingress is full pauses the neighbour, per port and class. Lossless."
    }
    fn needs_headroom(&self) -> bool {
        true
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
    fn frame_size(&self) -> u64 {
        self.frame.0
    }
    fn may_drop(&self) -> Option<&'static str> {
        self.watchdog.then_some("the watchdog empties queues, and what it lets go may find no room")
    }
    fn waits(&self, setup: &Setup) -> Waits {
        waits(setup)
    }
    fn stops_for_hosts(&self) -> bool {
        true
    }
    fn switch_state(&self, ports: u64, classes: u64) -> u64 {
        // One bit for what it has paused, and one for what is paused here.
        (2 * ports * classes).div_ceil(8)
    }
    fn pause_in(&self, frame: &Packet) -> Option<(u8, bool)> {
        Some((frame.flow as u8, frame.seq == 1))
    }
    fn run(&self, setup: Setup, promised: bool, control: &Controls<'_>, report: &mut Report<'_>) -> Outcome {
        let pause = self.pause.or(pause_limit(&setup.graph));
        let scheme = |setup: &mut Setup| {
            let mut scheme = Pfc::new(self, pause, promised);
            scheme.watchdog = self.watchdog.then(|| Watchdog::new(self, setup));
            scheme
        };
        run_with(scheme, setup, control, report)
    }
}

/// A pause is renewed for as long as the ingress is full: that it runs out does not end a circle.
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

/// The mechanism.
pub struct Pfc {
    frame: u16,
    lossless: bool,
    /// How long a pause lasts; `None` for ever.
    pause: Option<Time>,
    deadlines: Deadlines,
    pauses_sent: u64,
    resumes_sent: u64,
    watchdog: Option<Watchdog>,
}

/// Detection of deadlocks by their length, and recovery from them.
struct Watchdog {
    detection: Time,
    restoration: Time,
    /// The first timer token of its own.
    tokens: u32,
    /// By port and class.
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

impl Watchdog {
    fn new(params: &Params, setup: &Setup) -> Watchdog {
        let places = setup.graph.links.len() * 2 * setup.classes as usize;
        Watchdog {
            detection: params.detection,
            restoration: params.restoration,
            tokens: places as u32 * 2,
            watched: vec![Watched::default(); places],
            drops: 0,
        }
    }
}

/// A timer's token: twice the number of a (port, class), odd for the end of a pause that it obeys, even for the
/// renewal of one that it ordered.
fn token(core: &Core, port: u32, class: u8, end: bool) -> u32 {
    (port * core.classes() as u32 + class as u32) * 2 + end as u32
}

impl Pfc {
    /// PFC whose pauses last for ever or a while, and that promises to lose nothing or does not.
    pub fn new(params: &Params, pause: Option<Time>, lossless: bool) -> Pfc {
        let frame = params.frame.0 as u16;
        Pfc { frame, lossless, pause, deadlines: Deadlines::default(), pauses_sent: 0, resumes_sent: 0, watchdog: None }
    }

    fn order(&mut self, core: &mut Core, port: u32, class: u8) {
        self.pauses_sent += 1;
        core.send_frame(port, self.frame, class as u32, 1);
        if let Some(pause) = self.pause {
            self.deadlines.set(core, token(core, port, class, false), Some(Time(pause.0.div_ceil(2))));
        }
    }
}

/// The watchdog's part.
impl Pfc {
    /// A pause or resume with a watchdog.
    fn watched_frame(&mut self, core: &mut Core, port: u32, class: u8, pause: bool) {
        let place = port * core.classes() as u32 + class as u32;
        if let Some(limit) = self.pause {
            self.deadlines.set(core, token(core, port, class, true), pause.then_some(limit));
        }
        let Some(watchdog) = &mut self.watchdog else { return };
        let (tokens, detection) = (watchdog.tokens, watchdog.detection);
        let watched = &mut watchdog.watched[place as usize];
        watched.ordered = pause;
        if watched.ignoring {
            return;
        }
        let already = core.port(port).paused >> class & 1 == 1;
        core.pause_class(port, class, pause);
        // A renewed pause is the same pause. A NIC has no queue that could be emptied.
        if pause != already && core.port(port).has_queues() {
            self.deadlines.set(core, tokens + place * 2, pause.then_some(detection));
        }
    }

    /// One of its timers went off: even, a pause has lasted for long; odd, pauses have been ignored for long enough.
    fn watch(&mut self, core: &mut Core, own: u32) {
        let (place, classes) = (own / 2, core.classes() as u32);
        let (port, class) = (place / classes, (place % classes) as u8);
        let Some(watchdog) = &mut self.watchdog else { return };
        let (tokens, detection, restoration) = (watchdog.tokens, watchdog.detection, watchdog.restoration);
        let watched = &mut watchdog.watched[place as usize];
        if own % 2 == 1 {
            watched.ignoring = false;
            if watched.ordered {
                core.pause_class(port, class, true);
                self.deadlines.set(core, tokens + place * 2, Some(detection));
            }
            return;
        }
        let queues = core.class_queues(class);
        if !queues.clone().any(|queue| core.queues().is_filled(port, queue)) {
            return self.deadlines.set(core, tokens + place * 2, Some(detection));
        }
        watched.ignoring = true;
        watched.fired += 1;
        let dropped: Vec<Visit> = queues.flat_map(|queue| core.empty_queue(port, queue)).collect();
        watchdog.drops += dropped.len() as u64;
        core.pause_class(port, class, false);
        for visit in dropped {
            self.dequeued(core, &visit);
            core.drop_packet(visit.packet);
        }
        self.deadlines.set(core, tokens + place * 2 + 1, Some(restoration));
    }
}

impl FlowControl for Pfc {
    const LOOKS_AT_QUEUES: bool = false;

    fn lossless(&self) -> bool {
        self.lossless
    }

    #[inline]
    fn enqueued(&mut self, core: &mut Core, visit: &Visit) {
        let (in_port, class) = (visit.in_port, visit.class);
        let (account, buffer) = core.account(in_port, class);
        if !account.paused && buffer.over(account) {
            account.paused = true;
            self.order(core, in_port, class);
        }
    }

    #[inline]
    fn dequeued(&mut self, core: &mut Core, visit: &Visit) {
        let (in_port, class) = (visit.in_port, visit.class);
        let (account, buffer) = core.account(in_port, class);
        if account.paused && buffer.under(account) {
            account.paused = false;
            self.resumes_sent += 1;
            core.send_frame(in_port, self.frame, class as u32, 0);
        }
    }

    fn frame(&mut self, core: &mut Core, port: u32, frame: &Packet) {
        let (class, pause) = (frame.flow as u8, frame.seq == 1);
        if self.watchdog.is_some() {
            return self.watched_frame(core, port, class, pause);
        }
        core.pause_class(port, class, pause);
        if let Some(limit) = self.pause {
            self.deadlines.set(core, token(core, port, class, true), pause.then_some(limit));
        }
    }

    fn receiver_full(&mut self, core: &mut Core, port: u32, full: bool) {
        for class in 0..core.classes() {
            let (account, _) = core.account(port, class);
            if account.paused == full {
                continue;
            }
            account.paused = full;
            if full {
                self.order(core, port, class);
            } else {
                self.resumes_sent += 1;
                core.send_frame(port, self.frame, class as u32, 0);
            }
        }
    }

    fn timer(&mut self, core: &mut Core, token: u32) {
        if !self.deadlines.due(core, token) {
            return;
        }
        if let Some(own) = self.watchdog.as_ref().and_then(|watchdog| token.checked_sub(watchdog.tokens)) {
            return self.watch(core, own);
        }
        let (place, classes) = (token / 2, core.classes() as u32);
        let (port, class) = (place / classes, (place % classes) as u8);
        if token % 2 == 1 {
            if self.watchdog.is_some() {
                return self.watched_frame(core, port, class, false);
            }
            core.pause_class(port, class, false);
        } else if core.account(port, class).0.paused {
            self.order(core, port, class);
        }
    }

    fn link_lost(&mut self, core: &mut Core, port: u32) {
        for class in 0..core.classes() {
            core.account(port, class).0.paused = false;
            if let Some(watchdog) = &mut self.watchdog {
                let place = port * core.classes() as u32 + class as u32;
                let watched = &mut watchdog.watched[place as usize];
                (watched.ordered, watched.ignoring) = (false, false);
                let tokens = watchdog.tokens + place * 2;
                (tokens..tokens + 2).for_each(|token| self.deadlines.set(core, token, None));
            }
        }
    }

    fn merge(&mut self, other: Pfc) {
        self.pauses_sent += other.pauses_sent;
        self.resumes_sent += other.resumes_sent;
        if let (Some(mine), Some(theirs)) = (&mut self.watchdog, other.watchdog) {
            mine.watched.iter_mut().zip(theirs.watched).for_each(|(mine, theirs)| mine.fired += theirs.fired);
            mine.drops += theirs.drops;
        }
    }
    fn counters(&self) -> Vec<Counter> {
        let mut all = vec![("pause_frames", self.pauses_sent), ("resume_frames", self.resumes_sent)];
        if let Some(watchdog) = &self.watchdog {
            let fired = || watchdog.watched.iter().map(|watched| watched.fired);
            // The ports of one circle go off together; one that goes off again was in another.
            all.push(("deadlocks_broken", fired().max().unwrap_or(0)));
            all.push(("watchdog_fired", fired().sum()));
            all.push(("watchdog_drops", watchdog.drops));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::Rate;
    use fabric::Network;
    use fabric::buffer::{ALPHA_ONE, Share};
    use fabric::scheme::Unlimited;
    use fabric::setup::FlowSpec;
    use fabric::topology::{Graph, Kind};

    /// Two senders into one receiver over a switch with little room.
    fn incast() -> Setup {
        let mut graph = Graph::default();
        (0..3).for_each(|i| _ = graph.add(Kind::Host, 0, format!("h{i}")));
        let switch = graph.add(Kind::Switch, 1, "s");
        (0..3).for_each(|h| graph.connect(h, switch, Rate::from_gbps(100), Time::from_us(1)));
        let flows = (0..2).map(|i| FlowSpec::plain(i, i as u32, 2, 1_000_000, Time::ZERO)).collect();
        let mut setup = Setup::plain(graph, flows);
        setup.switch.pool.fill(Some(100_000));
        setup.switch.resume_gap = 3_000;
        setup.ports.iter_mut().for_each(|p| p.share = Share { alpha: ALPHA_ONE / 4, headroom: 40_000 });
        setup.nic.recovery.timeout = Some(Time::from_ms(1));
        setup.measure.pause_log = true;
        setup
    }

    fn run(setup: Setup, pause: Option<Time>) -> Outcome {
        let scheme = Pfc::new(&Params::default(), pause, true);
        Network::new(setup, scheme, Box::new(Unlimited)).run(|_, _| true)
    }

    #[test]
    fn a_full_ingress_stops_its_neighbour_and_lets_it_go_again() {
        let outcome = run(incast(), None);
        assert!(outcome.complete() && outcome.violations.is_empty());
        let counters: std::collections::HashMap<_, _> = outcome.flow_control.iter().copied().collect();
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
        let counters: std::collections::HashMap<_, _> = outcome.transport.iter().copied().collect();
        assert!((50_000..100_000).contains(&counters["receiver_buffer_peak"]));
        assert_eq!((counters["receiver_dropped"], outcome.counts.dropped_full), (0, 0));
        // Without room for what is on the way the promise is broken, and the run says so.
        let outcome = run(slow(60_000, 50_000), None);
        assert!(outcome.violations.iter().any(|v| v.contains("want of room")), "{:?}", outcome.violations);
    }

    #[test]
    fn a_slow_receiver_without_pauses_drops_what_does_not_fit() {
        let scheme = fabric::scheme::NoFlowControl;
        let outcome = Network::new(slow(100_000, 50_000), scheme, Box::new(Unlimited)).run(|_, _| true);
        assert!(outcome.complete() && outcome.violations.is_empty());
        let counters: std::collections::HashMap<_, _> = outcome.transport.iter().copied().collect();
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

    #[test]
    fn a_watchdog_empties_a_queue_that_was_paused_for_long_and_ignores_pauses_for_a_while() {
        // The receiver pauses its switch once, and never takes it back.
        let stuck = |params: &Params| {
            let mut setup = incast();
            setup.measure.sample = Some(Time::from_us(10));
            setup.stop = Time::from_ms(20);
            let mut scheme = Pfc::new(params, None, false);
            scheme.watchdog = params.watchdog.then(|| Watchdog::new(params, &setup));
            let mut network = Network::new(setup, scheme, Box::new(Unlimited));
            network.core.send_frame(2, 64, 0, 1);
            network.run(|_, _| true)
        };
        let patient = stuck(&Params::default());
        assert!(!patient.complete() && patient.counts.dropped_scheme == 0);
        let watched = stuck(&Params { watchdog: true, restoration: Time::from_us(20), ..Params::default() });
        let counters: std::collections::HashMap<_, _> = watched.flow_control.iter().copied().collect();
        assert!(watched.violations.is_empty(), "{:?}", watched.violations);
        assert!(counters["deadlocks_broken"] >= 2, "the pause was never taken back: {counters:?}");
        assert_eq!(counters["watchdog_drops"], watched.counts.dropped_scheme);
        // While it is ignored, packets get through; in the end all of them.
        assert!(watched.complete(), "{:?}", watched.counts);
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
        let outcome = Network::new(setup, scheme, Box::new(Unlimited)).run(|_, _| true);
        assert!(outcome.complete() && outcome.violations.is_empty());
    }
}
