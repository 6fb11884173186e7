//! Direct apportioning of sending rates (Blitz, §2): a receiver of n senders has each send at its link's rate over n.
//!
//! The receiver counts the hosts that send to it now, and every ACK carries the count; flows of one host divide its share. The sender takes its share at once, up or
//! down, so that rates are right one round trip after a flow came or went, without iterating. Congestion inside the
//! network is left to DCQCN: the lower of the two rates counts. Switches therefore do not mark before links to hosts, where
//! DASR is at work, unless they are asked to.

use super::{Slots, check_intervals, dcqcn};
use engine::{Misfit, Only, Parameter, Parameters, Rate, Raw, Time, Value, ValueError};
use fabric::axes::congestion_control::{Ack, Counted, Counting, FlowStart, Known, Needs, Permit, Recall};
use fabric::axes::{CongestionControl, CongestionControlDef, Counter, Definition};

engine::parameters! {
    /// Parameters of DASR alone.
    pub struct Own {
        /// Among whom a receiver divides its link.
        count: Counted = Counted::Senders,
        /// A receiver takes a flow for stalled when it has heard nothing for this long (or for two packets' times at its share, if
        /// that is longer).
        stall: Time = Time::from_us(100),
        /// Fall back on DCQCN for congestion inside the network.
        fallback: bool = true,
        /// Switches mark before links to hosts, too: the fallback then acts on congestion that is DASR's.
        edge_marks: bool = false, if fallback == true,
    }
}

/// Parameters of DASR and of the DCQCN behind it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Params {
    /// DASR's.
    pub own: Own,
    /// DCQCN's, under the same names as there.
    pub dcqcn: dcqcn::Params,
}

impl Parameters for Params {
    fn list(&self) -> Vec<Parameter> {
        let mut dcqcn = self.dcqcn.list();
        for parameter in &mut dcqcn {
            parameter.only.push(Only::Beside { key: "fallback", value: true.show() });
        }
        [self.own.list(), dcqcn].concat()
    }
    fn set(&mut self, name: &str, raw: &Raw) -> Option<Result<(), ValueError>> {
        self.own.set(name, raw).or_else(|| self.dcqcn.set(name, raw))
    }
}

impl Definition for Params {
    fn name(&self) -> &'static str {
        "dasr"
    }
    fn about(&self) -> &'static str {
        "DASR: a receiver of n senders has each send at its link's rate over n, reported in every ACK. DCQCN for congestion inside the network."
    }
    fn source(&self) -> &'static str {
        "the Blitz paper (DASR: receivers divide their link among those that send to them)"
    }
    fn check(&self) -> Result<(), Misfit> {
        check_intervals(&[("stall", self.own.stall)])?;
        self.dcqcn.check()
    }
}

impl CongestionControlDef for Params {
    fn uses_marks(&self) -> bool {
        self.own.fallback
    }
    fn marks_before_hosts(&self) -> bool {
        self.own.edge_marks
    }
    fn header(&self) -> (u16, u16) {
        // The count, as a word of its own in every ACK.
        (0, 4)
    }
    fn build(&self) -> Box<dyn CongestionControl> {
        let fallback = self.own.fallback.then(|| self.dcqcn.build());
        let census = Counting { of: self.own.count, stall: self.own.stall };
        Box::new(Dasr { census, fallback, flows: Slots::default(), changes: 0, fallbacks: 0 })
    }
}

#[derive(Clone, Debug)]
struct Flow {
    line: Rate,
    /// What the receiver grants.
    share: Rate,
    /// What DCQCN permits.
    other: Permit,
}

struct Dasr {
    census: Counting,
    fallback: Option<Box<dyn CongestionControl>>,
    flows: Slots<Flow>,
    changes: u64,
    fallbacks: u64,
}

impl Flow {
    /// The lower of the two rates. Returns whether DCQCN's is.
    fn settle(&self, permit: &mut Permit) -> bool {
        *permit = Permit {
            window: u64::MAX,
            rate: self.share.min(self.other.rate),
            timer: self.other.timer,
            repace: true,
            resume: permit.resume,
            own: self.other.own,
        };
        self.other.rate < self.share
    }
}

impl CongestionControl for Dasr {
    fn needs(&self) -> Needs {
        Needs { every_ack: true, census: Some(self.census), ..Needs::default() }
    }

    fn start(&mut self, slot: u32, flow: FlowStart) -> Permit {
        let free = Permit::at(flow.line);
        let other = self.fallback.as_mut().map_or(free, |fallback| fallback.start(slot, flow));
        self.flows.put(slot, Flow { line: flow.line, share: flow.line, other });
        free
    }

    fn ack(&mut self, slot: u32, ack: &Ack<'_>, permit: &mut Permit) {
        let flow = self.flows.get(slot);
        if let Some(fallback) = &mut self.fallback {
            fallback.ack(slot, ack, &mut flow.other);
        }
        let share = ack.share.min(flow.line).max(Rate(1));
        self.changes += (share != flow.share) as u64;
        flow.share = share;
        self.fallbacks += flow.settle(permit) as u64;
    }

    fn timer(&mut self, slot: u32, now: Time, permit: &mut Permit) {
        let flow = self.flows.get(slot);
        match &mut self.fallback {
            Some(fallback) => fallback.timer(slot, now, &mut flow.other),
            None => flow.other.timer = Time::MAX,
        }
        flow.settle(permit);
    }

    fn counters(&self) -> Vec<Counter> {
        let mut counters =
            vec![Counter::sum("share_changes", self.changes), Counter::sum("fallback_acks", self.fallbacks)];
        counters.extend(self.fallback.iter().flat_map(|fallback| fallback.counters()));
        counters
    }

    fn known(&self) -> Option<&dyn Recall> {
        let silent = self.fallback.as_ref().is_some_and(|fallback| fallback.known().is_none());
        (!silent).then_some(self)
    }
}

impl Recall for Dasr {
    fn recall(&self, slot: u32, now: Time, say: &mut dyn FnMut(Known)) {
        let Flow { share, other, .. } = self.flows.peek(slot);
        say(Known::level(share.0 as f64));
        say(Known::level(other.rate.0 as f64));
        say(Known::Instant(other.timer));
        if let Some(fallback) = self.fallback.as_ref().and_then(|fallback| fallback.known()) {
            fallback.recall(slot, now, say);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::plain_ack;
    use super::*;
    use fabric::axes::Chosen;
    use fabric::axes::flow_control::NoFlowControl;
    use fabric::id::NodeId;
    use fabric::setup::FlowSpec;
    use fabric::topology::{Graph, Kind};
    use fabric::{Network, Outcome, Setup};
    use proptest::prelude::*;
    use std::sync::{Arc, Mutex};

    const LINE: Rate = Rate::from_gbps(100);

    fn ack(now: Time, share: Rate, marked: bool) -> Ack<'static> {
        Ack { share, marked, ..plain_ack(now) }
    }

    fn started(line: Rate, fallback: bool) -> (Box<dyn CongestionControl>, Permit) {
        let mut params = Params::default();
        params.own.fallback = fallback;
        let mut cc = params.build();
        let permit = cc.start(
            0,
            FlowStart { line, base_rtt: Time::from_us(8), window: 0, ..crate::congestion_control::plain_start() },
        );
        (cc, permit)
    }

    #[test]
    fn a_sender_takes_its_share_at_once_and_never_more_than_its_own_line() {
        let (mut cc, mut permit) = started(Rate::from_gbps(25), true);
        assert_eq!(permit.rate, Rate::from_gbps(25));
        for (share, rate) in [(50, 25), (10, 10), (20, 20), (1, 1), (100, 25)] {
            cc.ack(0, &ack(Time::from_us(9), Rate::from_gbps(share), false), &mut permit);
            assert_eq!((permit.rate, permit.repace), (Rate::from_gbps(rate), true));
        }
        assert_eq!(permit.timer, Time::MAX, "nothing else moves it");
    }

    #[test]
    fn the_lower_of_share_and_fallback_counts() {
        let (mut cc, mut permit) = started(LINE, true);
        cc.ack(0, &ack(Time::from_us(9), LINE, true), &mut permit);
        cc.timer(0, permit.timer, &mut permit);
        let cut = permit.rate;
        assert!(cut < Rate::from_gbps(52), "DCQCN all but halves at its first decrease: {cut}");
        cc.ack(0, &ack(Time::from_us(20), Rate::from_gbps(10), false), &mut permit);
        assert_eq!(permit.rate, Rate::from_gbps(10));
        cc.ack(0, &ack(Time::from_us(21), Rate::from_gbps(80), false), &mut permit);
        assert_eq!(permit.rate, cut);
        let (mut alone, mut permit) = started(LINE, false);
        alone.ack(0, &ack(Time::from_us(9), LINE, true), &mut permit);
        assert_eq!((permit.rate, permit.timer), (LINE, Time::MAX), "without the fallback marks mean nothing");
    }

    /// Rates as flows are given them: slot, when, how much.
    type Log = Arc<Mutex<Vec<(u32, Time, Rate)>>>;

    /// DASR, with every rate it gives written down.
    struct Watched(Box<dyn CongestionControl>, Log);
    impl CongestionControl for Watched {
        fn needs(&self) -> Needs {
            self.0.needs()
        }
        fn start(&mut self, slot: u32, flow: FlowStart) -> Permit {
            self.0.start(slot, flow)
        }
        fn ack(&mut self, slot: u32, ack: &Ack<'_>, permit: &mut Permit) {
            self.0.ack(slot, ack, permit);
            self.1.lock().unwrap().push((slot, ack.now, permit.rate));
        }
    }

    const HOP: Time = Time::from_us(1);

    /// A star whose host 0 receives, and the flows to it by (size, start), each from a host of its own.
    fn star(hosts: &[Rate], flows: &[(u64, Time)]) -> (Outcome, Vec<(u32, Time, Rate)>) {
        let flows: Vec<_> = (1..).zip(flows).map(|(src, &(size, start))| (src, size, start)).collect();
        counted(Counted::Senders, hosts, &flows)
    }

    /// The same with flows by (sender, size, start).
    fn counted(count: Counted, hosts: &[Rate], flows: &[(u32, u64, Time)]) -> (Outcome, Vec<(u32, Time, Rate)>) {
        let mut graph = Graph::default();
        (0..hosts.len()).for_each(|i| _ = graph.add(Kind::Host, 0, format!("h{i}")));
        let switch = graph.add(Kind::Switch, 1, "s");
        (0..).zip(hosts).for_each(|(host, &rate)| graph.connect(NodeId(host), switch, rate, HOP));
        let flow = |(i, &(src, size, start)): (u16, &(u32, u64, Time))| FlowSpec::plain(i, src, 0, size, start);
        let mut setup = Setup::plain(graph, (0..).zip(flows).map(flow).collect());
        setup.switch.pool.fill(None);
        let log = Log::default();
        let mut params = Params::default();
        (params.own.fallback, params.own.count) = (false, count);
        let kept = log.clone();
        let control =
            crate::testing::Made(move || Box::new(Watched(params.build(), kept.clone())) as Box<dyn CongestionControl>);
        let transport = crate::transport::go_back_n::GoBackN::default();
        let run = |chosen: &Chosen<'_>| Network::new(setup, NoFlowControl, chosen).run(|_, _| true);
        let outcome = crate::testing::chosen(&control, &transport, run);
        assert!(outcome.complete() && outcome.violations.is_empty());
        let log = log.lock().unwrap().clone();
        (outcome, log)
    }

    /// Four times a link's delay, a full packet and an ACK over two links each.
    fn base_rtt() -> Time {
        Time(4 * HOP.0 + 2 * LINE.time_for(1062).0 + 2 * LINE.time_for(66).0)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn flows_that_join_at_once_have_their_share_after_one_round_trip_and_serialisation(n in 2u32..=100) {
            let flows = vec![(2_000_000, Time::ZERO); n as usize];
            let (_, log) = star(&vec![LINE; n as usize + 1], &flows);
            // A first packet waits for those of the others; the first ACKs that have seen all of them follow them.
            let rounds = 2 * n as u64 * LINE.time_for(1062).0;
            let by = Time(base_rtt().0 + rounds);
            for slot in 0..n {
                let of: Vec<_> = log.iter().filter(|(s, ..)| *s == slot).collect();
                let last_before = of.iter().rev().find(|(_, now, _)| *now <= by).expect("an ACK came in time");
                prop_assert_eq!(last_before.2, Rate(LINE.0 / n as u64), "flow {} by {}", slot, by);
            }
        }

        #[test]
        fn flows_that_stay_take_over_from_one_that_ends_after_one_round_trip(n in 2u32..=20, size in 100_000u64..300_000) {
            // All but the first have much more to send.
            let flows: Vec<_> = (0..n).map(|i| (if i == 0 { size } else { 3_000_000 }, Time::ZERO)).collect();
            let (outcome, log) = star(&vec![LINE; n as usize + 1], &flows);
            let gone = outcome.flows[0].received;
            // The next packet of each flow comes a round of the others later; its ACK goes straight back.
            let round = n as u64 * LINE.time_for(1062).0;
            let by = Time(gone.0 + 2 * HOP.0 + 2 * LINE.time_for(66).0 + 2 * round);
            for slot in 1..n {
                let before = log.iter().rfind(|(s, now, _)| *s == slot && *now < gone);
                prop_assert_eq!(before.map(|b| b.2), Some(Rate(LINE.0 / n as u64)));
                let after = log.iter().rfind(|(s, now, _)| *s == slot && *now <= by);
                prop_assert_eq!(after.map(|a| a.2), Some(Rate(LINE.0 / (n - 1) as u64)));
            }
        }
    }

    #[test]
    fn a_sender_of_three_flows_has_no_more_than_a_sender_of_one_unless_flows_are_counted() {
        let flows = [1, 1, 1, 2].map(|src| (src, 1_000_000, Time::ZERO));
        for (count, rates) in [(Counted::Senders, [6, 6, 6, 2]), (Counted::Flows, [4; 4])] {
            let (_, log) = counted(count, &[LINE; 3], &flows);
            let at = |slot| log.iter().rfind(|(s, now, _)| *s == slot && *now < Time::from_us(50)).unwrap().2;
            assert_eq!([0, 1, 2, 3].map(at), rates.map(|parts| Rate(LINE.0 / parts)), "{count:?}");
        }
    }

    #[test]
    fn hosts_of_different_rates_share_the_receivers_link() {
        // A slow sender cannot use its share of a fast link; what a slow receiver has is divided as it is.
        let (g10, g25) = (Rate::from_gbps(10), Rate::from_gbps(25));
        let (_, log) = star(&[LINE, g25, LINE], &[(1_000_000, Time::ZERO), (1_000_000, Time::ZERO)]);
        let at = |log: &[(u32, Time, Rate)], slot: u32| {
            log.iter().rfind(|(s, now, _)| *s == slot && *now < Time::from_us(50)).unwrap().2
        };
        assert_eq!((at(&log, 0), at(&log, 1)), (g25, Rate::from_gbps(50)));
        let (_, log) = star(&[g10, LINE, LINE], &[(100_000, Time::ZERO), (100_000, Time::ZERO)]);
        assert_eq!((at(&log, 0), at(&log, 1)), (Rate::from_gbps(5), Rate::from_gbps(5)));
    }
}
