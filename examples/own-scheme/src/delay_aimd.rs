//! Additive increase, multiplicative decrease on delay: once per round trip a sender adds a step, or, if the round trip took longer than it
//! should, gives up a share of its rate.

use tailwater::axes::congestion_control::{Ack, FlowStart, Needs, Permit};
use tailwater::axes::{CongestionControl, CongestionControlDef, Definition};
use tailwater::schemes::congestion_control::{Slots, check_rates};
use tailwater::{Misfit, Rate, Time};

tailwater::parameters! {
    /// Parameters of AIMD on delay.
    pub struct Params {
        /// How long packets may wait in queues before the rate falls.
        target: Time = Time::from_us(5),
        /// What a good round trip adds.
        increase: Rate = Rate::from_mbps(500),
        /// The share of the rate that a bad one takes.
        decrease: f64 = 0.3, in 0.0..=0.9,
        /// The rate never falls below.
        min_rate: Rate = Rate::from_mbps(100),
    }
}

impl Definition for Params {
    fn name(&self) -> &'static str {
        "delay-aimd"
    }
    fn about(&self) -> &'static str {
        "AIMD on delay: a sender adds to its rate until packets wait for too long, and then gives up a share of it."
    }
    fn check(&self) -> Result<(), Misfit> {
        check_rates(self.min_rate, &[("increase", self.increase)])
    }
}

impl CongestionControlDef for Params {
    fn build(&self) -> Box<dyn CongestionControl> {
        Box::new(Aimd { params: self.clone(), flows: Slots::default() })
    }
    fn header(&self) -> (u16, u16) {
        (8, 0) // when the packet was sent; an ACK has room for it
    }
}

#[derive(Clone)]
struct Flow {
    line: Rate,
    base_rtt: Time,
    /// The round trip ends with the ACK for this byte.
    round: u64,
}

struct Aimd {
    params: Params,
    flows: Slots<Flow>,
}

impl CongestionControl for Aimd {
    fn needs(&self) -> Needs {
        Needs { every_ack: true, ..Needs::default() }
    }

    fn start(&mut self, slot: u32, flow: FlowStart) -> Permit {
        self.flows.put(slot, Flow { line: flow.line, base_rtt: flow.base_rtt, round: 0 });
        Permit::at(flow.line)
    }

    fn ack(&mut self, slot: u32, ack: &Ack<'_>, permit: &mut Permit) {
        let (params, flow) = (&self.params, self.flows.get(slot));
        if ack.seq <= flow.round {
            return;
        }
        flow.round = ack.next;
        permit.rate = if ack.now - ack.stamp > flow.base_rtt + params.target {
            Rate((permit.rate.0 as f64 * (1.0 - params.decrease)) as u64).max(params.min_rate)
        } else {
            Rate(permit.rate.0 + params.increase.0).min(flow.line)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailwater::testing::{incast, plain_ack, plain_start, run_with};

    /// The rates in Mb/s after round trips that took so many microseconds; an idle one takes 10.
    fn rates(rtts: &[u64]) -> Vec<u64> {
        let mut control = Params::default().build();
        let mut permit = control.start(0, plain_start());
        let after = |(round, rtt): (u64, &u64)| {
            let (now, seq) = (Time::from_ms(1 + round), 1 + round * 1000);
            let ack = Ack { seq, next: seq + 999, stamp: now - Time::from_us(*rtt), ..plain_ack(now) };
            control.ack(0, &ack, &mut permit);
            permit.rate.0 / 1_000_000
        };
        (0..).zip(rtts).map(after).collect()
    }

    #[test]
    fn a_long_round_trip_takes_a_share_and_a_short_one_adds_a_step() {
        assert_eq!(rates(&[12, 16, 15, 100, 10]), [100_000, 70_000, 70_500, 49_350, 49_850]);
    }

    #[test]
    fn two_senders_share_a_link_and_keep_its_queue_short() {
        let outcome = run_with(incast(2, 10_000_000), tailwater::axes::flow_control::NoFlowControl, &Params::default());
        assert!(outcome.complete() && outcome.violations.is_empty());
        let [one, other] = [0, 1].map(|flow: usize| outcome.flows[flow].received.0 as f64);
        assert!((0.8..1.25).contains(&(one / other)), "{one} {other}");
        // 20 MB take 1.7 ms on an ideal link.
        assert!(outcome.end < Time::from_ms(3), "{}", outcome.end);
    }
}
