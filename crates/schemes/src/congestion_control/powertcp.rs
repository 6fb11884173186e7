//! PowerTCP (Addanki, Michel, Schmid, NSDI 2022): the window follows the power of the most loaded link.
//!
//! Power is voltage times current (§3.1): the bytes a link holds, BDP plus queue, times the rate at which bytes arrive there, queue
//! gradient plus transmission rate. It equals the bandwidth times the window of all flows together (Property 1). A sender that divides
//! its window by power over base power b²τ therefore reacts to the length of a queue and to its growth at once.
//!
//! With telemetry every ACK moves the window (Algorithm 1). Without, power is estimated from the round-trip time and its gradient, and the
//! window moves once per round trip (θ-PowerTCP, §3.5 and Algorithm 2).

use super::{Slots, check_intervals, check_rates};
use engine::{Misfit, Rate, Time};
use fabric::axes::congestion_control::{Ack, FlowStart, Known, Needs, Permit, Recall};
use fabric::axes::{CongestionControl, CongestionControlDef, Definition};
use fabric::packet::{Hop, MAX_HOPS};

engine::choice! {
    /// What power is computed from.
    pub enum Feedback {
        /// Telemetry of every switch on the path (PowerTCP).
        Telemetry = "telemetry",
        /// The round-trip time alone (θ-PowerTCP).
        Delay = "delay",
    }
}

engine::choice! {
    /// Which of the windows that are remembered, one per round trip, is the old one.
    pub enum OldWindow {
        /// The one from before the acknowledged bytes were sent (Eq. 7).
        Sent = "sent",
        /// The one remembered last, as in the authors' simulator and kernel module.
        Last = "last",
    }
}

engine::parameters! {
    /// Parameters of PowerTCP with the paper's defaults.
    pub struct Params {
        /// What power is computed from: telemetry, or the round-trip time alone (θ-PowerTCP).
        feedback: Feedback = Feedback::Telemetry,
        /// Weight γ of the newest window.
        gamma: f64 = 0.9,
        /// Flows expected to share a sender's link (N): the additive increase β is a bandwidth-delay product divided by it. The default is
        /// that of the authors' simulator, 150 Mb/s of 25 Gb/s.
        flows: u32 = 167, in 1..=1_000_000,
        /// Which remembered window is the old one: that under which the acknowledged bytes were sent, or the last.
        old_window: OldWindow = OldWindow::Sent,
        /// Base round-trip time τ. Auto: the window over the line rate, which is the longest among the flows if the window is "bdp".
        base_rtt: Option<Time> = None,
        /// The rate never falls below.
        min_rate: Rate = Rate::from_mbps(100),
    }
}

impl Definition for Params {
    fn name(&self) -> &'static str {
        "powertcp"
    }
    fn about(&self) -> &'static str {
        "PowerTCP: the window follows the power of the most loaded link, its queue and the growth of the queue multiplied."
    }
    fn source(&self) -> &'static str {
        "V. Addanki, O. Michel and S. Schmid, PowerTCP: Pushing the Performance Limits of Datacenter Networks, NSDI 2022"
    }
    fn check(&self) -> Result<(), Misfit> {
        if !(self.gamma > 0.0 && self.gamma <= 1.0) {
            return Err(Misfit::new("gamma", self.gamma, "write a number above 0 and up to 1, such as 0.9"));
        }
        if let Some(base_rtt) = self.base_rtt {
            check_intervals(&[("base_rtt", base_rtt)])?;
        }
        check_rates(self.min_rate, &[])
    }
}

impl CongestionControlDef for Params {
    fn needs_window(&self) -> bool {
        true
    }
    fn header(&self) -> (u16, u16) {
        match self.feedback {
            Feedback::Telemetry => (42, 28), // the header of HPCC (§3.3)
            Feedback::Delay => (8, 0),       // the time stamp; the ACK has room for it
        }
    }
    fn build(&self) -> Box<dyn CongestionControl> {
        Box::new(PowerTcp { params: self.clone(), flows: Slots::default() })
    }
}

#[derive(Clone, Debug)]
struct Flow {
    line: Rate,
    /// Base round trip τ in picoseconds.
    tau: f64,
    /// Additive increase β in bytes.
    beta: f64,
    /// The least and the largest window.
    limits: (f64, f64),
    cwnd: f64,
    /// The window when the segments that are acknowledged now began to be sent: what was current a round trip ago.
    old: f64,
    /// The window when the round trip began: the old one when it ends.
    current: f64,
    /// The round trip ends when a byte from here on is acknowledged; 0 before the first ACK.
    round: u64,
    /// Power over base power, averaged over a base round trip.
    power: f64,
    /// What the last ACK said of each switch, and of how many.
    hops: [Hop; MAX_HOPS],
    known: usize,
    /// The round-trip time that the last ACK showed, and when.
    rtt: Time,
    seen: Time,
}

struct PowerTcp {
    params: Params,
    flows: Slots<Flow>,
}

/// Power over base power, and the picoseconds over which it was measured.
type Sample = (f64, f64);

impl Flow {
    /// Algorithm 1, lines 8 to 23: the power of the most loaded link, relative to its own base power.
    fn measured(&self, hops: &[Hop]) -> Option<Sample> {
        if hops.len() != self.known {
            return None; // the path has changed
        }
        let links = hops.iter().zip(&self.hops).filter_map(|(now, before)| self.link(now, before));
        links.max_by(|a, b| a.0.total_cmp(&b.0))
    }

    /// The power of one link; nothing where the counters belong to another link, or a newer ACK has come first.
    fn link(&self, now: &Hop, before: &Hop) -> Option<Sample> {
        if now.time <= before.time || now.tx_bytes() < before.tx_bytes() || !now.is_of_same_port(before) {
            return None;
        }
        let dt = (now.time.0 - before.time.0) as f64;
        let bandwidth = now.mbps as f64 * 1e6 / 8e12; // bytes in a picosecond
        // What arrived is what was sent and what the queue grew by. A queue that was emptied by force makes it negative.
        let sent = (now.tx_bytes() - before.tx_bytes()) as f64;
        let current = (sent + now.queued as f64 - before.queued as f64).max(0.0) / dt;
        let voltage = now.queued as f64 + bandwidth * self.tau;
        Some((current * voltage / (bandwidth * bandwidth * self.tau), dt))
    }

    /// Keeps the newest of what each switch said. An ACK that was overtaken says what is known to be older.
    fn remember(&mut self, hops: &[Hop]) {
        let same_length = hops.len() == self.known;
        // Another path: all of it is new, unless the ACK is older than what is known.
        if !same_length && hops.first().zip(self.hops.first()).is_some_and(|(now, known)| now.time < known.time) {
            return;
        }
        for (now, known) in hops.iter().zip(&mut self.hops) {
            if !same_length || now.time > known.time {
                *known = *now;
            }
        }
        self.known = hops.len();
    }

    /// Algorithm 2, lines 9 to 12: the same from round-trip times, if the link sends at its full rate (Eq. 8).
    fn estimated(&self, now: Time, rtt: Time) -> Option<Sample> {
        if self.seen == Time::ZERO || now <= self.seen {
            return None;
        }
        let dt = (now.0 - self.seen.0) as f64;
        let gradient = (rtt.0 as f64 - self.rtt.0 as f64) / dt;
        // ACKs that come in faster than their packets went out would make a negative current.
        Some(((gradient + 1.0).max(0.0) * rtt.0 as f64 / self.tau, dt))
    }

    /// Smooths power over a base round trip (Algorithm 1, line 24).
    fn smooth(&mut self, (power, dt): Sample) {
        let dt = dt.min(self.tau);
        self.power = (self.power * (self.tau - dt) + power * dt) / self.tau;
    }

    /// The control law (Eq. 7). A link without any arrivals has no power, and the window is as large as it may be.
    fn update(&mut self, gamma: f64) {
        let next = gamma * (self.old / self.power + self.beta) + (1.0 - gamma) * self.cwnd;
        self.cwnd = next.clamp(self.limits.0, self.limits.1);
    }

    /// The rate goes with the window (Algorithm 1, line 6).
    fn grant(&self, permit: &mut Permit) {
        let rate = Rate((self.cwnd * 8e12 / self.tau) as u64).min(self.line);
        permit.repace = rate != permit.rate;
        (permit.rate, permit.window) = (rate, self.cwnd as u64);
    }
}

impl CongestionControl for PowerTcp {
    fn needs(&self) -> Needs {
        let telemetry = self.params.feedback == Feedback::Telemetry;
        Needs { telemetry, every_ack: true, window: true, ..Needs::default() }
    }

    fn start(&mut self, slot: u32, flow: FlowStart) -> Permit {
        let p = &self.params;
        // A window that was written by hand may be too small for the flow's own path.
        let auto = || flow.line.time_for(flow.window).max(flow.base_rtt);
        let tau = p.base_rtt.unwrap_or_else(auto).max(Time(1));
        // All flows start with a full window at line rate (§3.3). Beyond, a flow would wait at its own NIC, which no telemetry shows.
        let window = flow.line.bytes_over(tau).max(1);
        let least = p.min_rate.bytes_over(tau).clamp(1, window);
        let state = Flow {
            line: flow.line,
            tau: tau.0 as f64,
            beta: window as f64 / p.flows as f64,
            limits: (least as f64, window as f64),
            cwnd: window as f64,
            old: window as f64,
            current: window as f64,
            round: 0,
            power: 1.0,
            hops: [Hop::default(); MAX_HOPS],
            known: 0,
            rtt: Time::ZERO,
            seen: Time::ZERO,
        };
        self.flows.put(slot, state);
        Permit { window, ..Permit::at(flow.line) }
    }

    fn ack(&mut self, slot: u32, ack: &Ack<'_>, permit: &mut Permit) {
        let (gamma, last) = (self.params.gamma, self.params.old_window == OldWindow::Last);
        let flow = self.flows.get(slot);
        // The first ACK has nothing to be compared with.
        let (first, full) = (flow.round == 0, ack.seq > flow.round);
        if full {
            flow.old = flow.current;
        }
        match self.params.feedback {
            Feedback::Telemetry => {
                if let Some(sample) = flow.measured(ack.telemetry) {
                    flow.smooth(sample);
                    flow.update(gamma);
                }
                flow.remember(ack.telemetry);
            }
            Feedback::Delay => {
                let rtt = ack.now - ack.stamp;
                if let Some(sample) = flow.estimated(ack.now, rtt) {
                    flow.smooth(sample);
                }
                if full && !first {
                    flow.update(gamma);
                }
                (flow.rtt, flow.seen) = (rtt, ack.now);
            }
        }
        flow.grant(permit);
        if full {
            // The window is remembered once per round trip (§3.3), for the ACKs of what is sent from now on.
            flow.current = flow.cwnd;
            if last {
                flow.old = flow.cwnd;
            }
            flow.round = flow.round.max(ack.next);
        }
    }

    fn known(&self) -> Option<&dyn Recall> {
        Some(self)
    }
}

impl Recall for PowerTcp {
    fn recall(&self, slot: u32, _: Time, say: &mut dyn FnMut(Known)) {
        let flow = self.flows.peek(slot);
        say(Known::level(flow.cwnd));
        say(Known::level(flow.old));
        say(Known::level(flow.current));
        say(Known::Word(flow.power.to_bits()));
        say(Known::Byte(flow.round));
        flow.hops[..flow.known].iter().for_each(|hop| say(Known::Hop(*hop)));
        say(Known::Word(flow.rtt.0));
        say(Known::Instant(flow.seen));
    }
}

#[cfg(test)]
mod tests {
    use super::super::{plain_ack, plain_start};
    use super::*;
    use fabric::axes::flow_control::NoFlowControl;
    use fabric::id::NodeId;
    use fabric::setup::{FlowSpec, SeriesSetup};
    use fabric::topology::{Graph, Kind};
    use fabric::{Network, Outcome, Setup};

    const LINE: Rate = Rate::from_gbps(100);
    /// What 100 Gb/s carry in the base round trip of 10 us.
    const BDP: u32 = 125_000;

    fn hop(us: u64, tx_bytes: u64, queued: u32) -> Hop {
        Hop::new(Time::from_us(us), 7, tx_bytes, queued, 100_000)
    }
    /// The paper's parameters with β = 1250 B.
    fn params() -> Params {
        Params { flows: 100, ..Params::default() }
    }
    fn start(params: Params) -> (Box<dyn CongestionControl>, Permit) {
        let mut cc = params.build();
        let permit = cc.start(0, plain_start());
        (cc, permit)
    }
    fn ack<'a>(seq: u64, next: u64, telemetry: &'a [Hop]) -> Ack<'a> {
        Ack { seq, next, telemetry, ..plain_ack(Time::from_us(20)) }
    }
    /// The permit after two ACKs.
    fn after(first: &[Hop], second: &[Hop]) -> Permit {
        let (mut cc, mut permit) = start(params());
        cc.ack(0, &ack(1, 1000, first), &mut permit);
        assert_eq!((permit.rate, permit.window), (LINE, BDP as u64), "the first ACK has nothing to be compared with");
        cc.ack(0, &ack(2, 2000, second), &mut permit);
        permit
    }
    fn delayed() -> Params {
        Params { feedback: Feedback::Delay, ..params() }
    }
    /// An ACK at an instant with a round-trip time, both in microseconds.
    fn late(seq: u64, next: u64, now: u64, rtt: u64) -> Ack<'static> {
        Ack { seq, next, stamp: Time::from_us(now - rtt), ..plain_ack(Time::from_us(now)) }
    }

    #[test]
    fn a_flow_starts_at_line_rate_with_a_full_window() {
        let (cc, permit) = start(Params::default());
        assert_eq!((permit.rate, permit.window), (LINE, BDP as u64));
        assert_eq!((cc.needs().telemetry, cc.needs().window), (true, true));
        assert!(!start(delayed()).0.needs().telemetry);
    }

    #[test]
    fn a_standing_queue_of_one_bdp_doubles_power() {
        // Current b, voltage 2 BDP: Γ = 2 e. The window is 0.9 (125000 / 2 + 1250) + 0.1 · 125000.
        let permit = after(&[hop(0, 0, BDP)], &[hop(10, 125_000, BDP)]);
        assert_eq!(permit.window, 69_875);
        assert_eq!(permit.rate, Rate::from_mbps(55_900));
        assert!(permit.repace);
    }

    #[test]
    fn a_queue_that_grows_counts_before_it_is_long() {
        // Half a BDP more in a round trip: current 1.5 b, voltage 1.5 BDP: Γ = 2.25 e.
        // The window is 0.9 (125000 / 2.25 + 1250) + 0.1 · 125000.
        assert_eq!(after(&[hop(0, 0, 0)], &[hop(10, 125_000, 62_500)]).window, 63_625);
        // The same queue after it was twice as long: current 0.5 b, so that Γ = 0.75 e, and nobody slows down.
        assert_eq!(after(&[hop(0, 0, BDP)], &[hop(10, 125_000, 62_500)]).window, BDP as u64);
    }

    #[test]
    fn power_is_averaged_over_a_base_round_trip() {
        // Γ = 2 e for a tenth of it: 0.9 · 1 + 0.1 · 2 = 1.1. The window is 0.9 (125000 / 1.1 + 1250) + 0.1 · 125000.
        assert_eq!(after(&[hop(0, 0, BDP)], &[hop(1, 12_500, BDP)]).window, 115_897);
        // What took longer counts as one.
        assert_eq!(after(&[hop(0, 0, BDP)], &[hop(40, 500_000, BDP)]).window, 69_875);
    }

    #[test]
    fn the_link_with_the_most_power_counts_whatever_its_rate() {
        // 25 Gb/s carry 31250 B in a base round trip, and as many wait.
        let slow = |us, tx_bytes| Hop::new(Time::from_us(us), 8, tx_bytes, 31_250, 25_000);
        let (before, now) =
            ([hop(0, 0, 0), slow(0, 0), hop(0, 0, 0)], [hop(10, 9, 0), slow(10, 31_250), hop(10, 9, 0)]);
        assert_eq!(after(&before, &now).window, 69_875);
    }

    #[test]
    fn the_old_window_is_that_under_which_the_acknowledged_bytes_were_sent_or_the_last() {
        let windows = |old_window| {
            let (mut cc, mut permit) = start(Params { old_window, ..params() });
            let acks = [(1, 1000), (2, 1001), (3, 1002), (1001, 2000), (1002, 2001), (2001, 3000)];
            let acks = (0..).zip(acks).map(|(i, (seq, next))| {
                cc.ack(0, &ack(seq, next, &[hop(10 * i, 125_000 * i, BDP)]), &mut permit);
                permit.window
            });
            acks.collect::<Vec<_>>()
        };
        // With Γ = 2 e throughout and an old window of 125000 B: 0.9 · 63750 + 0.1 · w, four times. The third of them, 63811.25, is remembered
        // and is the old window of what was sent under it: 0.9 (63811.25 / 2 + 1250) + 0.1 · 63756.125.
        assert_eq!(windows(OldWindow::Sent), [125_000, 69_875, 64_362, 63_811, 63_756, 36_215]);
        // As the last one it is used at once: 0.9 · 33155.625 + 0.1 · 63811.25, then 0.9 · 33155.625 + 0.1 · 36221.1875.
        assert_eq!(windows(OldWindow::Last), [125_000, 69_875, 64_362, 63_811, 36_221, 33_462]);
    }

    #[test]
    fn the_window_stays_between_the_least_rate_and_a_bandwidth_delay_product() {
        let (mut cc, mut permit) = start(Params { flows: 1_000_000, ..Params::default() });
        for i in 0..100 {
            cc.ack(0, &ack(1 + i, 1 + i, &[hop(10 * i, 125_000 * i, 100 * BDP)]), &mut permit);
        }
        assert_eq!((permit.rate, permit.window), (Rate::from_mbps(100), 125));
        // Nothing arrives any more.
        for i in 0..100 {
            cc.ack(0, &ack(101 + i, 101 + i, &[hop(1000 + 10 * i, 125_000 * 100, 0)]), &mut permit);
        }
        assert_eq!((permit.rate, permit.window), (LINE, BDP as u64));
    }

    #[test]
    fn counters_of_another_link_are_not_compared() {
        let before = [hop(5, 50_000, BDP)];
        // As fast, and it has sent more: only its number says that it is another.
        let other = Hop::new(Time::from_us(10), 8, 125_000, BDP, 100_000);
        for now in
            [vec![hop(10, 0, BDP)], vec![hop(4, 60_000, BDP)], vec![other], vec![hop(10, 125_000, BDP); 2], vec![]]
        {
            assert_eq!(after(&before, &now).window, BDP as u64, "{now:?}");
        }
    }

    #[test]
    fn an_overtaken_ack_leaves_what_a_newer_one_said() {
        let (mut cc, mut permit) = start(params());
        cc.ack(0, &ack(1, 1000, &[hop(10, 125_000, BDP)]), &mut permit);
        cc.ack(0, &ack(2, 2000, &[hop(5, 0, 0)]), &mut permit);
        assert_eq!(permit.window, BDP as u64);
        // Compared with the newer one: current b, voltage 2 BDP. With the older one, the queue would have grown by a BDP.
        cc.ack(0, &ack(3, 3000, &[hop(20, 250_000, BDP)]), &mut permit);
        assert_eq!(permit.window, 69_875);
    }

    #[test]
    fn without_telemetry_the_round_trip_and_its_gradient_stand_for_power() {
        // Twice the base round trip and steady: Γ = 2 e. From 20 to 25 us in 10 us: Γ = (1 + 0.5) · 2.5 e, and the window is
        // 0.9 (125000 / 3.75 + 1250) + 0.1 · 125000. Falling by as much as time goes on, a queue has no arrivals.
        for (rtt, window) in [(20, 69_875), (25, 43_625), (10, BDP as u64)] {
            let (mut cc, mut permit) = start(delayed());
            cc.ack(0, &late(1, 1000, 30, 20), &mut permit);
            cc.ack(0, &late(1001, 2000, 40, rtt), &mut permit);
            assert_eq!(permit.window, window);
        }
    }

    #[test]
    fn without_telemetry_the_window_moves_once_per_round_trip() {
        let (mut cc, mut permit) = start(delayed());
        let mut windows = vec![];
        for (now, seq, next) in [(30, 1, 1000), (40, 500, 1500), (50, 1000, 2000), (60, 1001, 2001), (70, 1002, 2002)] {
            cc.ack(0, &late(seq, next, now, 20), &mut permit);
            windows.push(permit.window);
        }
        assert_eq!(windows, [125_000, 125_000, 125_000, 69_875, 69_875]);
    }

    #[test]
    fn the_base_round_trip_is_the_longest_of_the_scenario_unless_it_is_written() {
        let window_of = |params: Params, window| params.build().start(0, FlowStart { window, ..plain_start() }).window;
        assert_eq!(window_of(Params::default(), 2 * BDP as u64), 2 * BDP as u64);
        assert_eq!(window_of(Params::default(), 1000), BDP as u64, "never below the flow's own");
        let written = Params { base_rtt: Some(Time::from_us(5)), ..Params::default() };
        assert_eq!(window_of(written, 2 * BDP as u64), 62_500);
    }

    #[test]
    fn parameters_that_cannot_be_are_refused() {
        let refused = |params: Params| params.check().unwrap_err().parameter;
        assert_eq!(refused(Params { gamma: 0.0, ..Params::default() }), "gamma");
        assert_eq!(refused(Params { gamma: f64::NAN, ..Params::default() }), "gamma");
        assert_eq!(refused(Params { min_rate: Rate(0), ..Params::default() }), "min_rate");
        assert_eq!(refused(Params { base_rtt: Some(Time::ZERO), ..Params::default() }), "base_rtt");
        assert!(Params::default().check().is_ok());
    }

    const HOP: Time = Time::from_us(2);
    const SENDERS: u32 = 10;

    /// Ten senders to one receiver by a switch, with the queue before the receiver and the bytes sent from it every microsecond.
    fn incast(params: &Params, size: u64) -> (Outcome, Vec<(u64, u64)>, u64) {
        let mut graph = Graph::default();
        (0..=SENDERS).for_each(|i| _ = graph.add(Kind::Host, 0, format!("h{i}")));
        let switch = graph.add(Kind::Switch, 1, "s");
        (0..=SENDERS).for_each(|host| graph.connect(NodeId(host), switch, LINE, HOP));
        let base_rtt = Time(4 * HOP.0 + 2 * LINE.time_for(1062).0 + 2 * LINE.time_for(66).0);
        let flow = |i: u32| FlowSpec { base_rtt, ..FlowSpec::plain(i as u16, i, 0, size, Time::ZERO) };
        let mut setup = Setup::plain(graph, (1..=SENDERS).map(flow).collect());
        setup.switch.pool.fill(None);
        setup.measure.series = Some(SeriesSetup { every: Time::from_us(1), ports: vec![SENDERS + 1], flows: vec![] });
        let transport = crate::transport::go_back_n::GoBackN::default();
        let outcome = crate::testing::chosen(params, &transport, |chosen| {
            Network::new(setup, NoFlowControl, chosen).run(|_, _| true)
        });
        assert!(outcome.complete() && outcome.violations.is_empty());
        let samples = outcome.series.ports.clone();
        (outcome, samples, LINE.bytes_over(base_rtt))
    }

    /// The mean queue and the share of the link that was used, from the middle of a run until flows end.
    fn settled(samples: &[(u64, u64)]) -> (f64, f64) {
        let (from, to) = (samples.len() / 2, samples.len() * 9 / 10);
        let queue = samples[from..to].iter().map(|sample| sample.0 as f64).sum::<f64>() / (to - from) as f64;
        let sent = (samples[to].1 - samples[from].1) as f64;
        (queue, sent / LINE.bytes_over(Time::from_us((to - from) as u64)) as f64)
    }

    #[test]
    fn an_incast_settles_at_the_queue_of_theorem_1_and_fills_the_link() {
        for feedback in [Feedback::Telemetry, Feedback::Delay] {
            // Ten flows add a BDP / 50 each: a fifth of a BDP stays in the queue (appendix A). Windows do not count headers, and packets are whole.
            let (outcome, samples, bdp) = incast(&Params { feedback, flows: 50, ..Params::default() }, 4_000_000);
            let ((queue, used), expected) = (settled(&samples), 0.2 * bdp as f64);
            assert!((0.9..1.25).contains(&(queue / expected)), "{feedback:?}: {queue} B, not {expected}");
            assert!(used > 0.999, "{feedback:?}: {used} of the link");
            let ends = outcome.flows.iter().map(|flow| flow.received.0 as f64);
            let (first, last) = (ends.clone().fold(f64::MAX, f64::min), ends.fold(0.0, f64::max));
            assert!(first / last > 0.9, "{feedback:?}: flows end from {first} to {last}");
        }
    }

    #[test]
    fn with_the_defaults_an_incast_ends_in_a_queue_near_zero() {
        for feedback in [Feedback::Telemetry, Feedback::Delay] {
            let (_, samples, bdp) = incast(&Params { feedback, ..Params::default() }, 4_000_000);
            let (queue, used) = settled(&samples);
            assert!(queue < 0.1 * bdp as f64, "{feedback:?}: {queue} B of {bdp}");
            assert!(used > 0.98, "{feedback:?}: {used} of the link");
        }
    }
}
