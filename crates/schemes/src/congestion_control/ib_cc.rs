//! InfiniBand's congestion control (IBA specification, annex A10; Gran et al., IPDPS 2010).
//!
//! A switch whose queue is long marks packets (FECN), the receiver returns the mark (BECN). Each raises the flow's index into the
//! congestion control table (CCT), whose entry is how long to wait after a packet, in times of that packet; a timer lowers the index
//! again, one step at a time. Index 0 is line rate.
//!
//! PFC stands in for credits between neighbours here: both stop a neighbour before a buffer overflows.

use super::{Slots, check_intervals};
use engine::{Misfit, Rate, Time};
use fabric::axes::congestion_control::{Ack, FlowStart, Known, Needs, Permit, Recall};
use fabric::axes::{CongestionControl, CongestionControlDef, Counter, Definition};

engine::parameters! {
    /// Parameters of a channel adapter. What switches mark is set by [switch].
    pub struct Params {
        /// How far a BECN moves the index (CCTI_Increase).
        ccti_increase: u32 = 1,
        /// The highest index (CCTI_Limit).
        ccti_limit: u32 = 127,
        /// The lowest index (CCTI_Min).
        ccti_min: u32 = 0,
        /// Time after which the index falls by one (CCTI_Timer): 150 units of 1.024 us.
        ccti_timer: Time = Time::from_ns(153_600),
        /// Entry i of the table: i times this many packet times between packets.
        cct_step: f64 = 1.0,
    }
}

impl Definition for Params {
    fn name(&self) -> &'static str {
        "ib-cc"
    }
    fn about(&self) -> &'static str {
        "InfiniBand congestion control: each notification raises a flow's index into a table of delays between packets, a timer lowers it."
    }
    fn source(&self) -> &'static str {
        "InfiniBand Architecture Specification, volume 1, annex A10: congestion control"
    }
    fn check(&self) -> Result<(), Misfit> {
        check_intervals(&[("ccti_timer", self.ccti_timer)])?;
        if !(1..=255).contains(&self.ccti_increase) {
            return Err(Misfit::new("ccti_increase", self.ccti_increase, "write 1 to 255"));
        }
        if !(1..=65_535).contains(&self.ccti_limit) {
            return Err(Misfit::new("ccti_limit", self.ccti_limit, "write 1 to 65535"));
        }
        if self.ccti_min > self.ccti_limit {
            let help = format!("write a number up to ccti_limit, which is {}", self.ccti_limit);
            return Err(Misfit::new("ccti_min", self.ccti_min, help));
        }
        if !(0.0..=1000.0).contains(&self.cct_step) {
            return Err(Misfit::new("cct_step", self.cct_step, "write a number from 0 to 1000"));
        }
        Ok(())
    }
}

impl CongestionControlDef for Params {
    fn uses_marks(&self) -> bool {
        true
    }
    fn notified(&self) -> bool {
        true
    }
    fn build(&self) -> Box<dyn CongestionControl> {
        Box::new(IbCc { params: self.clone(), flows: Slots::default(), notifications: 0, highest: 0 })
    }
}

#[derive(Clone, Debug)]
struct Flow {
    line: Rate,
    index: u32,
}

struct IbCc {
    params: Params,
    flows: Slots<Flow>,
    notifications: u64,
    highest: u32,
}

impl Flow {
    fn rate(&self, p: &Params) -> Rate {
        Rate((self.line.0 as f64 / (1.0 + self.index as f64 * p.cct_step)) as u64).max(Rate(1))
    }
}

impl CongestionControl for IbCc {
    fn needs(&self) -> Needs {
        Needs::default()
    }

    fn start(&mut self, slot: u32, flow: FlowStart) -> Permit {
        let state = Flow { line: flow.line, index: self.params.ccti_min };
        let rate = state.rate(&self.params);
        self.flows.put(slot, state);
        Permit::at(rate)
    }

    fn ack(&mut self, slot: u32, ack: &Ack<'_>, permit: &mut Permit) {
        if !ack.marked {
            return;
        }
        let (p, flow) = (&self.params, self.flows.get(slot));
        self.notifications += 1;
        flow.index = (flow.index + p.ccti_increase).min(p.ccti_limit);
        self.highest = self.highest.max(flow.index);
        permit.rate = flow.rate(p);
        if permit.timer == Time::MAX && flow.index > p.ccti_min {
            permit.timer = ack.now + p.ccti_timer;
        }
    }

    fn timer(&mut self, slot: u32, now: Time, permit: &mut Permit) {
        let (p, flow) = (&self.params, self.flows.get(slot));
        flow.index = flow.index.saturating_sub(1).max(p.ccti_min);
        permit.rate = flow.rate(p);
        permit.timer = if flow.index > p.ccti_min { now + p.ccti_timer } else { Time::MAX };
    }

    fn counters(&self) -> Vec<Counter> {
        vec![Counter::sum("becn", self.notifications), Counter::max("ccti_max", self.highest as u64)]
    }

    fn known(&self) -> Option<&dyn Recall> {
        Some(self)
    }
}

impl Recall for IbCc {
    fn recall(&self, slot: u32, _: Time, say: &mut dyn FnMut(Known)) {
        say(Known::Level(self.flows.peek(slot).index as f64, 1.0 + self.flows.peek(slot).index as f64));
    }
}

#[cfg(test)]
mod tests {
    use super::super::plain_ack;
    use super::*;

    const LINE: Rate = Rate::from_gbps(56);

    fn ack(now: Time, marked: bool) -> Ack<'static> {
        Ack { marked, ..plain_ack(now) }
    }

    #[test]
    fn notifications_climb_the_table_and_the_timer_comes_down_one_step_at_a_time() {
        let params = Params { cct_step: 1.0, ccti_limit: 3, ..Params::default() };
        let mut cc = params.build();
        let mut permit = cc.start(
            0,
            FlowStart { line: LINE, base_rtt: Time::from_us(4), window: 0, ..crate::congestion_control::plain_start() },
        );
        assert_eq!(permit.rate, LINE);
        cc.ack(0, &ack(Time::from_us(1), false), &mut permit);
        assert_eq!((permit.rate, permit.timer), (LINE, Time::MAX));
        for (n, index) in [(1, 1), (2, 2), (3, 3), (4, 3)] {
            cc.ack(0, &ack(Time::from_us(n), true), &mut permit);
            assert_eq!(permit.rate, Rate(LINE.0 / (1 + index)), "index {index}");
        }
        let first = Time::from_us(1) + params.ccti_timer;
        assert_eq!(permit.timer, first, "later notifications do not put it off");
        for index in [2, 1, 0] {
            cc.timer(0, permit.timer, &mut permit);
            assert_eq!(permit.rate, Rate(LINE.0 / (1 + index)));
        }
        assert_eq!(permit.timer, Time::MAX);
        assert_eq!(cc.counters(), [Counter::sum("becn", 4), Counter::max("ccti_max", 3)]);
    }

    #[test]
    fn values_that_cannot_be_are_refused() {
        let wrong = [
            Params { ccti_increase: 0, ..Params::default() },
            Params { ccti_min: 128, ..Params::default() },
            Params { ccti_limit: 0, ..Params::default() },
            Params { ccti_timer: Time::ZERO, ..Params::default() },
            Params { cct_step: -1.0, ..Params::default() },
        ];
        wrong.iter().for_each(|params| assert!(params.check().is_err(), "{params:?}"));
        assert_eq!(Params::default().check(), Ok(()));
    }
}
