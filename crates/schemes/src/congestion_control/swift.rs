//! Swift (Kumar et al., SIGCOMM 2020): the delay is kept at a target by a window that may fall below one packet.
//!
//! The target (§3.5) is a base, plus a part for every hop, plus a part that grows as 1/√cwnd: flows with small windows are many, and
//! many flows need a longer queue. Below the target the window grows by `ai` packets per round trip; above it is cut in proportion to the
//! excess, at most once per round trip (§3.2, Algorithm 1). Below one packet the sender is paced: one packet every rtt / cwnd (§3.4).
//!
//! The paper splits the round trip into fabric delay and endpoint delay, each with a window of its own (§3.1, §3.3). Hosts here answer at
//! once, so that there is no endpoint delay: the fabric's window is the only one.

use super::{Slots, check_intervals};
use engine::{Misfit, Rate, Time};
use fabric::axes::congestion_control::{Ack, FlowStart, Incident, Known, Needs, Permit, Recall};
use fabric::axes::{Chosen, CongestionControl, CongestionControlDef, Counter, Definition};

engine::parameters! {
    /// Parameters of Swift. The paper has the least window; the other numbers are those of the csg-htsim simulator, which calls them
    /// guesses, unless they are auto.
    pub struct Params {
        /// The target delay of a path without hops and of a large window. Auto: 20us, or one and a quarter of the flow's base round trip
        /// if that is longer.
        base_target: Option<Time> = None,
        /// What every switch on the path adds to the target.
        hop_target: Time = Time::from_us(3), in Time::ZERO..=Time::from_ms(1000),
        /// The most that flow-based scaling adds to the target; zero switches it off. Auto: five times the base target if that is written, or
        /// else 100us, however long the path.
        fs_range: Option<Time> = None, in Time::ZERO..=Time::from_ms(1000),
        /// The window, in packets, at and below which flow-based scaling adds all of its range.
        fs_min_cwnd: f64 = 0.1, in 1e-6..=1e6,
        /// The window, in packets, at and above which flow-based scaling adds nothing.
        fs_max_cwnd: f64 = 100.0, in 1e-6..=1e6,
        /// Additive increase in packets per round trip.
        ai: f64 = 1.0, in 1e-6..=1e6,
        /// Strength of a decrease: the share of the excess delay by which the window is cut.
        beta: f64 = 0.8, in 0.0..=1.0,
        /// The largest share of the window that one decrease takes.
        max_mdf: f64 = 0.5, in 0.0..=1.0,
        /// The window never falls below so many packets.
        min_cwnd: f64 = 0.001, in 1e-4..=1e6,
        /// The window never grows above so many packets. Auto: what the sender's link carries within the longest target.
        max_cwnd: Option<f64> = None,
        /// The window of a new flow in packets. Auto: what the sender's link carries in the flow's base round trip.
        initial_cwnd: Option<f64> = None,
        /// After so many timeouts in a row the window falls to the least.
        reset_after: u32 = 5, in 1..=1_000_000,
    }
}

/// The target without scaling, where no scenario sets it.
const BASE_TARGET: Time = Time::from_us(20);

impl Params {
    fn base_target(&self, base_rtt: Time) -> Time {
        self.base_target.unwrap_or(BASE_TARGET.max(Time(base_rtt.0 / 4 * 5)))
    }
    /// How many flows share a queue has nothing to do with propagation, so a long path does not stretch the range.
    fn fs_range(&self) -> Time {
        self.fs_range.unwrap_or(Time(self.base_target.unwrap_or(BASE_TARGET).0 * 5))
    }
}

impl Definition for Params {
    fn name(&self) -> &'static str {
        "swift"
    }
    fn about(&self) -> &'static str {
        "Swift: a window, below one packet if need be, keeps the round-trip time at a target that grows with hops and flows."
    }
    fn source(&self) -> &'static str {
        "G. Kumar et al., Swift: Delay is Simple and Effective for Congestion Control in the Datacenter, SIGCOMM 2020"
    }
    fn check(&self) -> Result<(), Misfit> {
        if let Some(base_target) = self.base_target {
            check_intervals(&[("base_target", base_target)])?;
        }
        if self.fs_min_cwnd >= self.fs_max_cwnd {
            return Err(Misfit::new("fs_min_cwnd", self.fs_min_cwnd, "write less than fs_max_cwnd"));
        }
        for (name, cwnd) in [("max_cwnd", self.max_cwnd), ("initial_cwnd", self.initial_cwnd)] {
            if let Some(cwnd) = cwnd
                && !(self.min_cwnd..=1e9).contains(&cwnd)
            {
                return Err(Misfit::new(name, cwnd, "write a number of packets from min_cwnd to 1e9, or \"auto\""));
            }
        }
        Ok(())
    }
    fn conflict(&self, with: &Chosen<'_>) -> Option<Misfit> {
        with.window.then(|| Misfit {
            parameter: "scheme.window",
            message: format!("{} sets the window by itself", self.name()),
            help: "write window = \"none\" in [scheme], and bound it by max_cwnd in [scheme.swift]".to_string(),
        })
    }
}

impl CongestionControlDef for Params {
    fn header(&self) -> (u16, u16) {
        (8, 0) // the time stamp; the ACK has room for it
    }
    fn build(&self) -> Box<dyn CongestionControl> {
        Box::new(Swift { params: self.clone(), flows: Slots::default(), counts: Counts::default() })
    }
}

/// Flow-based scaling (§3.5): α / √cwnd + β, between nothing and its range. All in picoseconds.
#[derive(Clone, Copy, Debug)]
struct Scaling {
    alpha: f64,
    beta: f64,
    range: f64,
}

impl Scaling {
    fn new(p: &Params, range: Time) -> Scaling {
        let range = range.0 as f64;
        let alpha = range / (1.0 / p.fs_min_cwnd.sqrt() - 1.0 / p.fs_max_cwnd.sqrt());
        Scaling { alpha, beta: -alpha / p.fs_max_cwnd.sqrt(), range }
    }
    fn of(&self, cwnd: f64) -> Time {
        Time((self.alpha / cwnd.sqrt() + self.beta).clamp(0.0, self.range) as u64)
    }
}

#[derive(Clone, Debug)]
struct Flow {
    line: Rate,
    /// Bytes of message in a full packet.
    payload: f64,
    /// Bits of a full packet on the wire.
    wire_bits: f64,
    /// The target without flow-based scaling.
    fixed_target: Time,
    scaling: Scaling,
    max_cwnd: f64,
    /// In packets.
    cwnd: f64,
    /// Everything before this byte is acknowledged.
    acked: u64,
    /// The last measured one.
    rtt: Time,
    last_decrease: Time,
    /// Losses reported since the last ACK.
    timeouts: u32,
}

impl Flow {
    fn target(&self) -> Time {
        self.fixed_target + self.scaling.of(self.cwnd)
    }

    /// Whether a round trip has passed since the last decrease. When an ACK asks, that is whether the acknowledged packet was sent after it.
    fn can_decrease(&self, now: Time) -> bool {
        now.saturating_sub(self.last_decrease) >= self.rtt
    }

    fn set(&mut self, cwnd: f64, p: &Params, now: Time) {
        let cwnd = cwnd.min(self.max_cwnd).max(p.min_cwnd);
        // Only what makes the window smaller (csg-htsim): an ACK that leaves it as it is must not put off the next decrease.
        if cwnd < self.cwnd {
            self.last_decrease = now;
        }
        self.cwnd = cwnd;
    }

    /// A packet goes while all packets in flight, itself included, fit in the window; with less than one packet, while none is in flight,
    /// and not before rtt / cwnd after the last.
    fn allow(&self, permit: &mut Permit) {
        // The NIC sends while fewer bytes than the window are in flight: a byte more than room for all but one packet.
        permit.window = ((self.cwnd - 1.0).max(0.0) * self.payload) as u64 + 1;
        let rate = if self.cwnd < 1.0 {
            let paced = self.wire_bits * 1e12 * self.cwnd / self.rtt.0.max(1) as f64;
            Rate(paced as u64).max(Rate(1)).min(self.line)
        } else {
            self.line
        };
        permit.repace = rate != permit.rate;
        permit.rate = rate;
    }
}

#[derive(Debug, Default)]
struct Counts {
    delay_cuts: u64,
    loss_cuts: u64,
    resets: u64,
    paced_acks: u64,
}

struct Swift {
    params: Params,
    flows: Slots<Flow>,
    counts: Counts,
}

impl CongestionControl for Swift {
    fn needs(&self) -> Needs {
        Needs { every_ack: true, window: true, incidents: true, ..Needs::default() }
    }

    fn start(&mut self, slot: u32, flow: FlowStart) -> Permit {
        let p = &self.params;
        let base = p.base_target(flow.base_rtt);
        let fixed_target = base + Time(p.hop_target.0 * flow.hops as u64);
        let range = p.fs_range();
        let wire = (flow.payload + flow.header) as f64;
        // Without a base round trip, or on a slow link, still one packet.
        let carried = |time: Time| (flow.line.bytes_over(time) as f64 / wire).max(1.0);
        let max_cwnd = p.max_cwnd.unwrap_or_else(|| carried(fixed_target + range)).max(p.min_cwnd);
        let cwnd = p.initial_cwnd.unwrap_or_else(|| carried(flow.base_rtt));
        let state = Flow {
            line: flow.line,
            payload: flow.payload as f64,
            wire_bits: wire * 8.0,
            fixed_target,
            scaling: Scaling::new(p, range),
            max_cwnd,
            cwnd: cwnd.min(max_cwnd).max(p.min_cwnd),
            acked: 0,
            rtt: flow.base_rtt,
            last_decrease: flow.now,
            timeouts: 0,
        };
        let mut permit = Permit::at(flow.line);
        state.allow(&mut permit);
        permit.repace = false;
        self.flows.put(slot, state);
        permit
    }

    fn ack(&mut self, slot: u32, ack: &Ack<'_>, permit: &mut Permit) {
        let (p, flow) = (&self.params, self.flows.get(slot));
        let (delay, target) = (ack.now.saturating_sub(ack.stamp), flow.target());
        (flow.rtt, flow.timeouts) = (delay, 0);
        let packets = ack.seq.saturating_sub(flow.acked) as f64 / flow.payload;
        flow.acked = flow.acked.max(ack.seq);
        if delay < target {
            // Below one packet, an ACK is a round trip's whole increase and more (Algorithm 1, line 11).
            flow.set(flow.cwnd + p.ai * packets / flow.cwnd.max(1.0), p, ack.now);
        } else if flow.can_decrease(ack.now) {
            let excess = (delay - target).0 as f64 / delay.0.max(1) as f64;
            flow.set(flow.cwnd * (1.0 - p.beta * excess).max(1.0 - p.max_mdf), p, ack.now);
            self.counts.delay_cuts += 1;
        }
        self.counts.paced_acks += (flow.cwnd < 1.0) as u64;
        flow.allow(permit);
    }

    fn incident(&mut self, slot: u32, now: Time, incident: Incident, permit: &mut Permit) {
        if incident != Incident::Lost {
            return;
        }
        let (p, flow) = (&self.params, self.flows.get(slot));
        // A gap is reported along with the ACK that shows it, which ends the row; a timeout comes alone.
        flow.timeouts += 1;
        if flow.timeouts >= p.reset_after {
            flow.set(p.min_cwnd, p, now);
            self.counts.resets += 1;
        } else if flow.can_decrease(now) {
            flow.set(flow.cwnd * (1.0 - p.max_mdf), p, now);
            self.counts.loss_cuts += 1;
        }
        flow.allow(permit);
    }

    fn counters(&self) -> Vec<Counter> {
        let Counts { delay_cuts, loss_cuts, resets, paced_acks } = self.counts;
        vec![
            Counter::sum("delay_cuts", delay_cuts),
            Counter::sum("loss_cuts", loss_cuts),
            Counter::sum("window_resets", resets),
            Counter::sum("paced_acks", paced_acks),
        ]
    }

    fn known(&self) -> Option<&dyn Recall> {
        Some(self)
    }
}

impl Recall for Swift {
    fn recall(&self, slot: u32, now: Time, say: &mut dyn FnMut(Known)) {
        let flow = self.flows.peek(slot);
        say(Known::level(flow.cwnd));
        say(Known::Byte(flow.acked));
        say(Known::Word(flow.rtt.0));
        say(Known::Word(flow.timeouts as u64));
        // A decrease of long ago puts off no other: round trips are no longer than that.
        say(Known::Word(now.saturating_sub(flow.last_decrease).0.min(64 * flow.rtt.0)));
    }
}

#[cfg(test)]
mod tests {
    use super::super::{plain_ack, plain_start};
    use super::*;
    use fabric::axes::congestion_control::Trim;
    use fabric::axes::flow_control::NoFlowControl;
    use fabric::id::NodeId;
    use fabric::setup::FlowSpec;
    use fabric::topology::{Graph, Kind};
    use fabric::{Network, Outcome, Setup};
    use std::sync::{Arc, Mutex};

    const LINE: Rate = Rate::from_gbps(100);
    const US: fn(u64) -> Time = Time::from_us;

    /// A target of 23 us on a path of one hop, whatever the window.
    fn steady(initial_cwnd: f64) -> Params {
        Params { initial_cwnd: Some(initial_cwnd), fs_range: Some(Time::ZERO), ..Params::default() }
    }
    fn started(params: Params) -> (Box<dyn CongestionControl>, Permit) {
        let mut cc = params.build();
        let permit = cc.start(0, plain_start());
        (cc, permit)
    }
    /// An ACK at `now` of a packet sent `rtt` before.
    fn ack(now: u64, rtt: u64, seq: u64) -> Ack<'static> {
        Ack { stamp: US(now - rtt), seq, ..plain_ack(US(now)) }
    }
    /// The window in packets that a permit stands for, to the nearest hundredth.
    fn packets(permit: &Permit) -> f64 {
        ((permit.window - 1) as f64 / 10.0).round() / 100.0 + 1.0
    }

    #[test]
    fn the_target_grows_with_hops_and_with_small_windows_between_two_bounds() {
        // α = 30 us / (1/√0.25 − 1/√4) = 20 us, β = −20 us / √4 = −10 us.
        let p = Params { fs_min_cwnd: 0.25, fs_max_cwnd: 4.0, fs_range: Some(US(30)), ..Params::default() };
        let scaling = Scaling::new(&p, US(30));
        for (cwnd, us) in [(0.01, 30), (0.25, 30), (1.0, 10), (4.0, 0), (400.0, 0)] {
            assert_eq!(scaling.of(cwnd), US(us), "{cwnd}");
        }
        let mut cc = Swift { params: p, flows: Slots::default(), counts: Counts::default() };
        cc.start(0, FlowStart { hops: 5, ..plain_start() });
        let flow = cc.flows.get(0);
        flow.cwnd = 1.0;
        assert_eq!(flow.target(), US(20 + 5 * 3 + 10));
        // A path whose idle round trip is longer than the usual target has one of its own.
        cc.start(1, FlowStart { base_rtt: US(400), ..plain_start() });
        assert_eq!(cc.flows.get(1).fixed_target, US(500 + 3));
    }

    #[test]
    fn the_range_of_flow_scaling_is_five_base_targets_however_long_the_path() {
        let range = |params: Params, base_rtt| {
            let mut cc = Swift { params, flows: Slots::default(), counts: Counts::default() };
            cc.start(0, FlowStart { base_rtt, ..plain_start() });
            Time(cc.flows.get(0).scaling.range as u64)
        };
        assert_eq!(range(Params::default(), US(10)), US(100));
        assert_eq!(range(Params::default(), US(400)), US(100));
        assert_eq!(range(Params { base_target: Some(US(50)), ..Params::default() }, US(10)), US(250));
    }

    #[test]
    fn a_flow_starts_with_one_bandwidth_delay_product_at_line_rate() {
        let (_, permit) = started(Params::default());
        // 125,000 B of 10 us at 100 Gb/s are 117.7 packets of 1062 B.
        assert_eq!((permit.window, permit.rate), (116_702 + 1, LINE));
    }

    #[test]
    fn below_the_target_a_round_trip_adds_one_packet() {
        let (mut cc, mut permit) = started(steady(10.0));
        assert_eq!(permit.window, 9_001, "ten packets in flight, not eleven");
        cc.ack(0, &ack(30, 22, 1000), &mut permit);
        assert_eq!(permit.window, 9_101);
        cc.ack(0, &ack(31, 22, 6000), &mut permit);
        // 10.1 + 5 / 10.1
        assert_eq!(permit.window, 9_596);
        for i in 0..10 {
            cc.ack(0, &ack(32 + i, 22, 7000 + 1000 * i), &mut permit);
        }
        assert!((11.4..11.6).contains(&packets(&permit)), "{permit:?}");
        assert_eq!(permit.rate, LINE);
    }

    #[test]
    fn above_the_target_the_window_is_cut_by_the_excess_once_per_round_trip() {
        let (mut cc, mut permit) = started(steady(10.0));
        // Half of the delay is excess: 1 − 0.8 · 0.5.
        cc.ack(0, &ack(50, 46, 1000), &mut permit);
        assert_eq!(packets(&permit), 6.0);
        cc.ack(0, &ack(60, 46, 2000), &mut permit);
        cc.ack(0, &ack(95, 46, 3000), &mut permit);
        assert_eq!(packets(&permit), 6.0, "these were sent before the cut");
        cc.ack(0, &ack(96, 46, 4000), &mut permit);
        assert_eq!(packets(&permit), 3.6);
        // 1 − 0.8 · 0.9 would leave less than half.
        cc.ack(0, &ack(500, 230, 5000), &mut permit);
        assert_eq!(packets(&permit), 1.8);
        assert_eq!(cc.counters()[0], Counter::sum("delay_cuts", 3));
    }

    #[test]
    fn below_one_packet_the_sender_is_paced_at_one_packet_every_round_trip_over_the_window() {
        let (mut cc, mut permit) = started(steady(1.0));
        assert_eq!((permit.window, permit.rate), (1, LINE));
        cc.ack(0, &ack(50, 46, 1000), &mut permit);
        assert_eq!((permit.window, permit.repace), (1, true), "nothing else may be in flight");
        // 0.6 packets per 46 us.
        assert_eq!(permit.rate.time_for(1062).ns(), 46_000 * 10 / 6);
        // An ACK below the target adds a whole packet, and the pace ends.
        cc.ack(0, &ack(150, 20, 2000), &mut permit);
        assert_eq!((permit.window, permit.rate, permit.repace), (601, LINE, true));
        assert_eq!(cc.counters()[3], Counter::sum("paced_acks", 1));
    }

    #[test]
    fn the_window_keeps_within_its_bounds() {
        let (mut cc, mut permit) = started(Params { max_cwnd: Some(10.5), ..steady(10.0) });
        (1..20).for_each(|i| cc.ack(0, &ack(30 + i, 20, 1000 * i), &mut permit));
        assert_eq!(packets(&permit), 10.5);
        let (mut cc, mut permit) = started(Params { min_cwnd: 0.25, ..steady(1.0) });
        (1..20).for_each(|i| cc.ack(0, &ack(10_000 * i, 1000, 1000 * i), &mut permit));
        assert_eq!(permit.rate.time_for(1062).ns(), 4_000_000);
    }

    #[test]
    fn a_loss_takes_half_of_the_window_once_per_round_trip_and_five_timeouts_all_of_it() {
        let (mut cc, mut permit) = started(steady(16.0));
        cc.incident(0, US(9), Incident::Lost, &mut permit);
        assert_eq!(packets(&permit), 16.0, "no round trip has passed");
        cc.incident(0, US(10), Incident::Lost, &mut permit);
        cc.incident(0, US(15), Incident::Lost, &mut permit);
        cc.incident(0, US(15), Incident::Trimmed(Trim::default()), &mut permit);
        assert_eq!(packets(&permit), 8.0);
        // What is heard ends the row.
        cc.ack(0, &ack(20, 10, 0), &mut permit);
        (1..=4).for_each(|i| cc.incident(0, US(100 * i), Incident::Lost, &mut permit));
        assert_eq!(permit.rate.time_for(1062).ns(), 10_000 * 2, "8 / 2 / 2 / 2 / 2");
        cc.incident(0, US(500), Incident::Lost, &mut permit);
        assert_eq!(permit.rate.time_for(1062).ns() / 1000, 10_000, "a thousandth of a packet per 10 us");
    }

    #[test]
    fn numbers_that_cannot_be_are_refused() {
        let wrong = [
            Params { base_target: Some(Time::ZERO), ..Params::default() },
            Params { fs_min_cwnd: 100.0, ..Params::default() },
            Params { max_cwnd: Some(0.0), ..Params::default() },
        ];
        assert!(wrong.iter().all(|p| p.check().is_err()));
        assert!(Params::default().check().is_ok());
        assert!(steady(1.0).check().is_ok(), "a range of zero switches flow scaling off");
    }

    /// What ACKs said and did: when, the delay in microseconds, the window in packets.
    type Log = Arc<Mutex<Vec<(Time, f64, f64)>>>;

    /// Swift, with every ACK written down.
    struct Watched(Swift, Log);
    impl CongestionControl for Watched {
        fn needs(&self) -> Needs {
            self.0.needs()
        }
        fn start(&mut self, slot: u32, flow: FlowStart) -> Permit {
            self.0.start(slot, flow)
        }
        fn ack(&mut self, slot: u32, ack: &Ack<'_>, permit: &mut Permit) {
            self.0.ack(slot, ack, permit);
            let cwnd = self.0.flows.get(slot).cwnd;
            self.1.lock().unwrap().push((ack.now, (ack.now - ack.stamp).0 as f64 / 1e6, cwnd));
        }
    }

    /// `n` hosts send `size` bytes each to one, over links of 1 us. Gives the mean delay and the mean window of the ACKs after `after`, too.
    fn incast(params: Params, n: u16, size: u64, after: Time) -> (Outcome, f64, f64) {
        let mut graph = Graph::default();
        (0..=n).for_each(|i| _ = graph.add(Kind::Host, 0, format!("h{i}")));
        let switch = graph.add(Kind::Switch, 1, "s");
        (0..=n as u32).for_each(|host| graph.connect(NodeId(host), switch, LINE, US(1)));
        let base_rtt = Time(4 * US(1).0 + 2 * LINE.time_for(1062).0 + 2 * LINE.time_for(66).0);
        let flow = |i| FlowSpec { base_rtt, ..FlowSpec::plain(i, i as u32 + 1, 0, size, Time::ZERO) };
        let mut setup = Setup::plain(graph, (0..n).map(flow).collect());
        setup.switch.pool.fill(None);
        let log = Log::default();
        let kept = log.clone();
        let make = move || {
            let swift = Swift { params: params.clone(), flows: Slots::default(), counts: Counts::default() };
            Box::new(Watched(swift, kept.clone())) as Box<dyn CongestionControl>
        };
        let control = crate::testing::Made(make);
        let transport = crate::transport::go_back_n::GoBackN::default();
        let outcome = crate::testing::chosen(&control, &transport, |chosen: &Chosen<'_>| {
            Network::new(setup, NoFlowControl, chosen).run(|_, _| true)
        });
        assert!(outcome.complete() && outcome.violations.is_empty());
        let log = log.lock().unwrap();
        let first_end = outcome.flows.iter().map(|flow| flow.received).min().unwrap();
        let late: Vec<_> = log.iter().filter(|(now, ..)| (after..first_end).contains(now)).collect();
        let sum = late.iter().fold((0.0, 0.0), |sum, (_, delay, cwnd)| (sum.0 + delay, sum.1 + cwnd));
        (outcome, sum.0 / late.len() as f64, sum.1 / late.len() as f64)
    }

    /// How long the receiver's link needs for `n` messages, over how long they took.
    fn utilisation(outcome: &Outcome) -> f64 {
        let bytes: u64 = outcome.flows.iter().map(|flow| flow.spec.size / 1000 * 1062).sum();
        let last = outcome.flows.iter().map(|flow| flow.received).max().unwrap();
        LINE.time_for(bytes).0 as f64 / last.0 as f64
    }

    #[test]
    fn two_flows_keep_the_delay_at_the_target_and_the_link_full() {
        let (outcome, delay, cwnd) = incast(Params::default(), 2, 20_000_000, US(2000));
        // 23 us and no scaling at windows of more than a hundred packets; both together fill 23 us of the link.
        assert!((21.0..24.0).contains(&delay), "{delay} us");
        assert!((120.0..150.0).contains(&cwnd), "{cwnd} packets");
        assert!(utilisation(&outcome) > 0.98, "{}", utilisation(&outcome));
    }

    #[test]
    fn an_incast_that_windows_of_one_packet_would_swamp_is_held_at_the_target_by_pacing() {
        // A thousand packets of 1062 B in flight are 85 us of the link, however slow the flows would like to be.
        let whole = Params { min_cwnd: 1.0, ..steady(1.0) };
        let (_, delay, _) = incast(whole, 1000, 100_000, US(1000));
        assert!((84.0..86.0).contains(&delay), "{delay} us");
        let (outcome, delay, cwnd) = incast(steady(1.0), 1000, 100_000, US(1000));
        assert!((22.0..30.0).contains(&delay), "{delay} us");
        assert!(cwnd < 1.0, "{cwnd} packets");
        assert!(utilisation(&outcome) > 0.9, "{}", utilisation(&outcome));
    }

    #[test]
    fn flow_scaling_gives_many_flows_the_longer_target_of_their_windows() {
        let run = |fs_range| {
            let params = Params { initial_cwnd: Some(1.0), fs_range, ..Params::default() };
            let (outcome, delay, cwnd) = incast(params, 64, 500_000, US(1000));
            assert!(utilisation(&outcome) > 0.99, "{}", utilisation(&outcome));
            (delay, cwnd)
        };
        // 64 windows fill the link for one delay: the target of 6 packets is 23 us + 32.7 us / √6 − 3.3 us = 33 us, or 388 packets.
        let (delay, cwnd) = run(None);
        assert!((31.0..35.0).contains(&delay) && (5.5..7.0).contains(&cwnd), "{delay} us, {cwnd} packets");
        let (delay, cwnd) = run(Some(Time::ZERO));
        assert!((22.0..25.0).contains(&delay) && (4.0..5.0).contains(&cwnd), "{delay} us, {cwnd} packets");
    }
}
