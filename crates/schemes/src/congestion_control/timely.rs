//! TIMELY (Mittal et al., SIGCOMM 2015): the round-trip time and its trend set the rate.
//!
//! Once per round trip: below `t_low` the rate grows; above `t_high` it falls towards `t_high`; between, it grows
//! while the smoothed round-trip time falls and shrinks by its gradient while it rises. After five increases in a row
//! the step is `hai`.

use super::{Slots, check_intervals, check_rates, check_shares};
use engine::{Misfit, Rate, Time};
use fabric::axes::congestion_control::{Ack, FlowStart, Known, Needs, Permit, Recall};
use fabric::axes::{CongestionControl, CongestionControlDef, Definition};

engine::parameters! {
    /// Parameters of TIMELY; defaults as in the HPCC authors' simulator.
    pub struct Params {
        /// Weight of the newest round-trip difference.
        alpha: f64 = 0.875,
        /// Strength of a decrease.
        beta: f64 = 0.8,
        /// Below this round-trip time the rate always grows.
        t_low: Time = Time::from_us(50),
        /// Above this round-trip time the rate always falls.
        t_high: Time = Time::from_us(500),
        /// The round-trip time by which the gradient is normalised.
        min_rtt: Time = Time::from_us(20),
        /// Additive increase.
        ai: Rate = Rate::from_mbps(100),
        /// Additive increase after five in a row.
        hai: Rate = Rate::from_mbps(500),
        /// The rate never falls below.
        min_rate: Rate = Rate::from_mbps(1000),
    }
}

impl Definition for Params {
    fn name(&self) -> &'static str {
        "timely"
    }
    fn about(&self) -> &'static str {
        "TIMELY: the round-trip time and its gradient set the sender's rate."
    }
    fn source(&self) -> &'static str {
        "R. Mittal et al., TIMELY: RTT-based Congestion Control for the Datacenter, SIGCOMM 2015"
    }
    fn check(&self) -> Result<(), Misfit> {
        check_shares(&[("alpha", self.alpha), ("beta", self.beta)])?;
        check_intervals(&[("min_rtt", self.min_rtt), ("t_high", self.t_high)])?;
        check_rates(self.min_rate, &[("ai", self.ai), ("hai", self.hai)])
    }
}

impl CongestionControlDef for Params {
    fn header(&self) -> (u16, u16) {
        (8, 0) // the time stamp; the ACK has room for it
    }
    fn build(&self) -> Box<dyn CongestionControl> {
        Box::new(Timely { params: self.clone(), flows: Slots::default() })
    }
}

#[derive(Clone, Debug)]
struct Flow {
    line: Rate,
    round: u64,
    rate: Rate,
    stage: u32,
    last_rtt: Time,
    /// Smoothed difference of consecutive round-trip times in nanoseconds.
    trend: f64,
}

struct Timely {
    params: Params,
    flows: Slots<Flow>,
}

fn ns(time: Time) -> f64 {
    time.0 as f64 / 1000.0
}

impl CongestionControl for Timely {
    fn needs(&self) -> Needs {
        Needs { every_ack: true, ..Needs::default() }
    }

    fn start(&mut self, slot: u32, flow: FlowStart) -> Permit {
        let state = Flow { line: flow.line, round: 0, rate: flow.line, stage: 0, last_rtt: Time::ZERO, trend: 0.0 };
        self.flows.put(slot, state);
        Permit::at(flow.line)
    }

    fn ack(&mut self, slot: u32, ack: &Ack<'_>, permit: &mut Permit) {
        let p = &self.params;
        let flow = self.flows.get(slot);
        if ack.seq <= flow.round {
            return;
        }
        let rtt = ack.now - ack.stamp;
        if flow.round != 0 {
            flow.trend = (1.0 - p.alpha) * flow.trend + p.alpha * (ns(rtt) - ns(flow.last_rtt));
            let gradient = flow.trend / ns(p.min_rtt);
            let factor = if rtt < p.t_low {
                None
            } else if rtt > p.t_high {
                Some(1.0 - p.beta * (1.0 - ns(p.t_high) / ns(rtt)))
            } else if gradient <= 0.0 {
                None
            } else {
                Some((1.0 - p.beta * gradient).max(0.0))
            };
            match factor {
                None => {
                    let step = if flow.stage < 5 { p.ai } else { p.hai };
                    flow.rate = Rate(flow.rate.0 + step.0).min(flow.line);
                    flow.stage += 1;
                }
                Some(factor) => {
                    flow.rate = Rate((flow.rate.0 as f64 * factor) as u64).max(p.min_rate);
                    flow.stage = 0;
                }
            }
            permit.rate = flow.rate;
        }
        if ack.next > flow.round {
            flow.round = ack.next;
            flow.last_rtt = rtt;
        }
    }

    fn known(&self) -> Option<&dyn Recall> {
        Some(self)
    }
}

impl Recall for Timely {
    fn recall(&self, slot: u32, _: Time, say: &mut dyn FnMut(Known)) {
        let flow = self.flows.peek(slot);
        say(Known::level(flow.rate.0 as f64));
        say(Known::Byte(flow.round));
        // It grows for ever, and from here on makes no difference.
        say(Known::Word(flow.stage.min(5) as u64));
        say(Known::Word(flow.last_rtt.0));
        say(Known::Word(flow.trend.to_bits()));
    }
}

#[cfg(test)]
mod tests {
    use super::super::plain_ack;
    use super::*;

    /// Feeds one ACK per round trip with the given round-trip times and gives the rates after each.
    fn rates(rtts: &[u64]) -> Vec<u64> {
        let mut cc = Params::default().build();
        let start = FlowStart {
            line: Rate::from_gbps(10),
            base_rtt: Time::from_us(8),
            window: 0,
            ..crate::congestion_control::plain_start()
        };
        let mut permit = cc.start(0, start);
        let mut out = vec![];
        for (i, &us) in rtts.iter().enumerate() {
            let (now, seq) = (Time::from_ms(1 + i as u64), i as u64 * 100 + 1);
            let stamp = now - Time::from_us(us);
            cc.ack(0, &Ack { seq, next: seq + 99, stamp, ..plain_ack(now) }, &mut permit);
            out.push(permit.rate.0 / 1_000_000);
        }
        out
    }

    #[test]
    fn a_short_round_trip_never_slows_a_flow() {
        assert_eq!(rates(&[10, 20, 40, 10]), [10_000; 4]);
    }

    #[test]
    fn a_rising_round_trip_slows_it_by_its_gradient() {
        // 100 to 110 µs: trend 0.875 · 10 µs, gradient 0.4375, factor 1 − 0.8 · 0.4375 = 0.65.
        assert!((6_499..=6_500).contains(&rates(&[100, 110])[1]));
    }

    #[test]
    fn a_very_long_round_trip_slows_it_towards_the_limit() {
        assert_eq!(rates(&[1000, 1000])[1], 6_000);
    }

    #[test]
    fn the_sixth_increase_is_larger() {
        let mut rtts = vec![1000, 1000];
        rtts.extend([10; 7]);
        let r = rates(&rtts);
        assert_eq!(r[2..], [6_100, 6_200, 6_300, 6_400, 6_500, 7_000, 7_500]);
    }
}
