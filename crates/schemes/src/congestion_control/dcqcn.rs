//! DCQCN (Zhu et al., SIGCOMM 2015), as Mellanox NICs have it and the HPCC authors' simulator models it.
//!
//! A marked ACK is a congestion notification. α estimates how often they come: an average updated every
//! `alpha_interval`. Every `decrease_interval` in which a notification came, the rate falls by α/2. A timer that starts
//! over with every decrease raises it again: first half-way back to the target (fast recovery), then with the
//! target itself growing by `ai`, then by `hai`. There is no byte counter.
//!
//! Only ticks that change a rate are events: α is brought up to date when it is next needed.

use super::{Slots, check_intervals, check_rates, check_shares};
use engine::{Misfit, Rate, Time};
use fabric::axes::congestion_control::{Ack, FlowStart, Known, Needs, Permit, Recall};
use fabric::axes::{CongestionControl, CongestionControlDef, Counter, Definition};

engine::parameters! {
    /// Parameters of DCQCN; defaults for 100 Gb/s as in the HPCC authors' experiments.
    pub struct Params {
        /// How often the estimate α is updated.
        alpha_interval: Time = Time::from_us(1),
        /// The rate falls at most this often.
        decrease_interval: Time = Time::from_us(4),
        /// Time from a decrease, or an increase, to the next increase.
        increase_timer: Time = Time::from_us(300),
        /// Weight g of the newest interval in α.
        gain: f64 = 1.0 / 256.0,
        /// Increases by fast recovery before the target grows.
        recovery_stages: u32 = 1,
        /// Growth of the target rate, once.
        ai: Rate = Rate::from_mbps(20),
        /// Growth of the target rate, afterwards.
        hai: Rate = Rate::from_mbps(200),
        /// The rate never falls below.
        min_rate: Rate = Rate::from_mbps(1000),
        /// Let every decrease pull the target down, also within one increase period.
        clamp_target: bool = false,
    }
}

impl Definition for Params {
    fn name(&self) -> &'static str {
        "dcqcn"
    }
    fn about(&self) -> &'static str {
        "DCQCN: ECN marks cut the sender's rate, a timer raises it again."
    }
    fn source(&self) -> &'static str {
        "Y. Zhu et al., Congestion Control for Large-Scale RDMA Deployments, SIGCOMM 2015"
    }
    fn check(&self) -> Result<(), Misfit> {
        check_intervals(&[
            ("alpha_interval", self.alpha_interval),
            ("decrease_interval", self.decrease_interval),
            ("increase_timer", self.increase_timer),
        ])?;
        check_shares(&[("gain", self.gain)])?;
        check_rates(self.min_rate, &[("ai", self.ai), ("hai", self.hai)])
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
        Box::new(Dcqcn { params: self.clone(), flows: Slots::default(), notifications: 0, decreases: 0 })
    }
}

#[derive(Clone, Debug)]
struct Flow {
    line: Rate,
    target: Rate,
    alpha: f64,
    /// A notification came since α was last updated.
    seen_by_alpha: bool,
    next_alpha: Time,
    /// A notification came since the last decrease tick.
    seen_by_decrease: bool,
    next_decrease: Time,
    next_increase: Time,
    /// Increases since the last decrease.
    stage: u32,
    /// No notification has come yet.
    fresh: bool,
}

struct Dcqcn {
    params: Params,
    flows: Slots<Flow>,
    notifications: u64,
    decreases: u64,
}

impl Flow {
    /// Brings α up to date: the first missed tick knows whether a notification came, later ones saw none.
    fn update_alpha(&mut self, now: Time, cause: Time, p: &Params) {
        // A tick at this very instant was set off one interval ago, and comes first only if that was before `cause`.
        while self.next_alpha < now || (self.next_alpha == now && self.next_alpha - p.alpha_interval < cause) {
            self.alpha *= 1.0 - p.gain;
            if self.seen_by_alpha {
                self.alpha += p.gain;
                self.seen_by_alpha = false;
            }
            self.next_alpha += p.alpha_interval;
        }
    }

    fn deadline(&self) -> Time {
        if self.seen_by_decrease { self.next_decrease.min(self.next_increase) } else { self.next_increase }
    }

    fn decrease(&mut self, now: Time, p: &Params, rate: &mut Rate) {
        self.update_alpha(now, now, p);
        self.next_decrease += p.decrease_interval;
        self.seen_by_decrease = false;
        if p.clamp_target || self.stage != 0 {
            self.target = *rate;
        }
        *rate = Rate((rate.0 as f64 * (1.0 - self.alpha / 2.0)) as u64).max(p.min_rate);
        self.stage = 0;
        self.next_increase = now + p.increase_timer;
    }

    fn increase(&mut self, now: Time, p: &Params, rate: &mut Rate) {
        self.next_increase = now + p.increase_timer;
        if self.stage >= p.recovery_stages {
            let step = if self.stage == p.recovery_stages { p.ai } else { p.hai };
            self.target = Rate(self.target.0 + step.0).min(self.line);
        }
        *rate = Rate(rate.0 / 2 + self.target.0 / 2);
        self.stage += 1;
    }
}

impl CongestionControl for Dcqcn {
    fn needs(&self) -> Needs {
        Needs::default()
    }

    fn start(&mut self, slot: u32, flow: FlowStart) -> Permit {
        let state = Flow {
            line: flow.line,
            target: flow.line,
            alpha: 1.0,
            seen_by_alpha: false,
            next_alpha: Time::MAX,
            seen_by_decrease: false,
            next_decrease: Time::MAX,
            next_increase: Time::MAX,
            stage: 0,
            fresh: true,
        };
        self.flows.put(slot, state);
        Permit::at(flow.line)
    }

    fn ack(&mut self, slot: u32, ack: &Ack<'_>, permit: &mut Permit) {
        if !ack.marked {
            return;
        }
        self.notifications += 1;
        let (p, now) = (&self.params, ack.now);
        let flow = self.flows.get(slot);
        if flow.fresh {
            flow.fresh = false;
            flow.target = permit.rate;
            flow.next_alpha = now + p.alpha_interval;
            // A nanosecond later than α's tick, so that a decrease sees it.
            flow.next_decrease = now + p.decrease_interval + Time::from_ns(1);
        } else {
            flow.update_alpha(now, ack.cause, p);
            flow.seen_by_alpha = true;
            if flow.next_decrease <= now {
                let behind = (now - flow.next_decrease).0 / p.decrease_interval.0 + 1;
                flow.next_decrease += Time(behind * p.decrease_interval.0);
            }
        }
        flow.seen_by_decrease = true;
        permit.timer = flow.deadline();
    }

    fn timer(&mut self, slot: u32, now: Time, permit: &mut Permit) {
        let flow = self.flows.get(slot);
        // Of two ticks at one instant the one that was set earlier comes first. A decrease puts the increase off.
        let increase_first = self.params.increase_timer > self.params.decrease_interval;
        if increase_first && flow.next_increase <= now {
            flow.increase(now, &self.params, &mut permit.rate);
        }
        if flow.seen_by_decrease && flow.next_decrease <= now {
            flow.decrease(now, &self.params, &mut permit.rate);
            self.decreases += 1;
        }
        if flow.next_increase <= now {
            flow.increase(now, &self.params, &mut permit.rate);
        }
        permit.timer = flow.deadline();
    }

    fn timer_set(&self, slot: u32, now: Time) -> Time {
        let flow = self.flows.peek(slot);
        // An increase was set off long before.
        let decrease = flow.seen_by_decrease && flow.next_decrease == now && flow.next_increase != now;
        if decrease { now.saturating_sub(self.params.decrease_interval) } else { Time::ZERO }
    }

    fn counters(&self) -> Vec<Counter> {
        vec![Counter::sum("notifications", self.notifications), Counter::sum("rate_decreases", self.decreases)]
    }

    fn known(&self) -> Option<&dyn Recall> {
        Some(self)
    }
}

impl Recall for Dcqcn {
    fn recall(&self, slot: u32, _: Time, say: &mut dyn FnMut(Known)) {
        let flow = self.flows.peek(slot);
        say(Known::level(flow.target.0 as f64));
        say(Known::Level(flow.alpha, 1.0));
        for instant in [flow.next_alpha, flow.next_decrease, flow.next_increase] {
            say(Known::Instant(instant));
        }
        // Beyond the last, all stages are alike.
        let stage = flow.stage.min(self.params.recovery_stages + 2) as u64;
        say(Known::Word(
            stage << 3 | (flow.seen_by_alpha as u64) << 2 | (flow.seen_by_decrease as u64) << 1 | flow.fresh as u64,
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::super::plain_ack;
    use super::*;

    const LINE: Rate = Rate::from_gbps(100);

    fn marked(now: Time) -> Ack<'static> {
        Ack { marked: true, ..plain_ack(now) }
    }

    fn fresh() -> (Box<dyn CongestionControl>, Permit) {
        let mut cc = Params::default().build();
        let permit = cc.start(
            0,
            FlowStart { line: LINE, base_rtt: Time::from_us(8), window: 0, ..crate::congestion_control::plain_start() },
        );
        (cc, permit)
    }

    #[test]
    fn the_first_notification_halves_the_rate_at_the_next_decrease_tick() {
        let (mut cc, mut permit) = fresh();
        cc.ack(0, &marked(Time::from_us(10)), &mut permit);
        assert_eq!(permit.rate, LINE);
        assert_eq!(permit.timer, Time::from_us(14) + Time::from_ns(1));
        let at = permit.timer;
        cc.timer(0, at, &mut permit);
        // α decays from 1 at each of the four ticks before.
        let alpha = (1.0f64 - 1.0 / 256.0).powi(4);
        let expected = 100e9 * (1.0 - alpha / 2.0);
        assert!((permit.rate.0 as f64 - expected).abs() < 2.0, "{} {expected}", permit.rate.0);
        assert_eq!(permit.timer, at + Time::from_us(300));
    }

    #[test]
    fn recovery_goes_half_way_then_the_target_grows() {
        let (mut cc, mut permit) = fresh();
        cc.ack(0, &marked(Time::from_us(1)), &mut permit);
        let mut at = permit.timer;
        cc.timer(0, at, &mut permit);
        let low = permit.rate.0;
        let mut rates = vec![];
        for _ in 0..3 {
            at = permit.timer;
            cc.timer(0, at, &mut permit);
            rates.push(permit.rate.0);
        }
        assert_eq!(rates[0], low / 2 + LINE.0 / 2);
        // The target is at line rate already and stays there.
        assert_eq!(rates[1], rates[0] / 2 + LINE.0 / 2);
        assert!(rates[2] <= LINE.0);
    }

    #[test]
    fn a_decrease_and_an_increase_at_one_instant_come_in_the_order_in_which_they_were_set() {
        let twenty = Time::from_us(20);
        // The increase was set after the decrease, which puts it off; and long before it.
        for (increase_timer, twice) in [(twenty, false), (Time::from_us(40), true)] {
            let params = Params { decrease_interval: twenty, increase_timer, ..Params::default() };
            let mut cc = params.build();
            let mut permit = cc.start(0, FlowStart { line: LINE, ..crate::congestion_control::plain_start() });
            cc.ack(0, &marked(Time::from_us(1)), &mut permit);
            let first = permit.timer;
            cc.timer(0, first, &mut permit);
            let low = permit.rate.0;
            let tick = first + increase_timer;
            cc.ack(0, &marked(tick - Time::from_us(1)), &mut permit);
            assert_eq!(permit.timer, tick);
            cc.timer(0, tick, &mut permit);
            assert_eq!(permit.rate.0 > low * 6 / 10, twice, "{} of {low}", permit.rate.0);
        }
    }

    #[test]
    fn without_notifications_nothing_is_scheduled() {
        let (mut cc, mut permit) = fresh();
        cc.ack(0, &Ack { marked: false, ..marked(Time::from_us(1)) }, &mut permit);
        assert_eq!((permit.timer, permit.rate), (Time::MAX, LINE));
    }

    #[test]
    fn the_rate_never_falls_below_its_floor() {
        let (mut cc, mut permit) = fresh();
        let mut now = Time::from_us(1);
        for _ in 0..200 {
            cc.ack(0, &marked(now), &mut permit);
            now = permit.timer;
            cc.timer(0, now, &mut permit);
        }
        assert_eq!(permit.rate, Rate::from_mbps(1000));
    }
}
