//! OnRamp (Liu et al., NSDI 2021): a sender pauses a flow whose packets take too long, on top of any congestion control.
//!
//! The receiver measures how long a packet was in flight (O) and reports it in the ACK. Above a threshold T the sender
//! pauses the flow for as long as the queue takes to drain to it, O − T. What the sender has paused since that packet left
//! (P) the packet could not see, so that it is taken off: gain × (O − T − P). The gain keeps senders that pause at the same
//! time from starting again at the same time: a flow pauses several times for what one ACK said, each time after it has sent
//! something and heard again. ACKs that come while it is paused do not make the pause longer.

use crate::congestion_control::Slots;
use engine::{Misfit, Time};
use fabric::axes::congestion_control::{Ack, FlowStart, Incident, Known, Needs, Notice, Permit, Recall};
use fabric::axes::edge_control::{Around, over};
use fabric::axes::{CongestionControl, CongestionControlDef, Counter, Definition, EdgeControlDef};
use std::collections::VecDeque;

engine::parameters! {
    /// Parameters of OnRamp.
    pub struct Params {
        /// The one-way delay above which a flow is paused. Auto: the flow's base round-trip time.
        threshold: Option<Time> = None,
        /// The part of what is too long that a flow is paused for.
        gain: f64 = 0.25,
    }
}

impl Definition for Params {
    fn name(&self) -> &'static str {
        "onramp"
    }
    fn about(&self) -> &'static str {
        "OnRamp: receivers measure one-way delays, and a sender pauses a flow whose packets take longer than a threshold."
    }
    fn source(&self) -> &'static str {
        "S. Liu et al., Breaking the Transience-Equilibrium Nexus: A New Approach to Datacenter Packet Transport, NSDI 2021"
    }
    fn check(&self) -> Result<(), Misfit> {
        if !(self.gain > 0.0 && self.gain <= 1.0) {
            return Err(Misfit::new("gain", self.gain, "write a number above 0, up to 1"));
        }
        match self.threshold {
            Some(threshold) if threshold == Time::ZERO || threshold > Time::from_ms(1_000_000) => {
                Err(Misfit::new("threshold", threshold, "write a time from \"1ps\" to \"1000s\", or \"auto\""))
            }
            _ => Ok(()),
        }
    }
}

impl EdgeControlDef for Params {
    fn over(&self, inner: Box<dyn CongestionControlDef>) -> Box<dyn CongestionControlDef> {
        over(self.clone(), inner)
    }
}

impl Around for Params {
    fn build(&self, inner: Box<dyn CongestionControl>) -> Box<dyn CongestionControl> {
        Box::new(OnRamp::new(self, inner))
    }
    fn header(&self, inner: &dyn CongestionControlDef) -> (u16, u16) {
        // A time stamp there, a delay back.
        let (data, ack) = inner.header();
        (data + 8, ack + 8)
    }
}

/// The pauses of a flow that packets now in flight may not have seen.
#[derive(Clone, Debug, Default)]
struct Flow {
    threshold: Time,
    /// Start and end, in order; the last may end in the future.
    pauses: VecDeque<(Time, Time)>,
    /// How long they are together.
    total: Time,
}

impl Flow {
    /// How long the flow has been paused since `stamp`, and will be.
    fn paused_since(&mut self, stamp: Time) -> Time {
        while let Some(&(start, end)) = self.pauses.front()
            && end <= stamp
        {
            self.total = self.total.saturating_sub(end - start);
            self.pauses.pop_front();
        }
        let before = self.pauses.front().map_or(Time::ZERO, |&(start, _)| stamp.saturating_sub(start));
        self.total.saturating_sub(before)
    }

    /// Pauses for `time` from now.
    fn pause(&mut self, now: Time, time: Time) {
        self.total += time;
        self.pauses.push_back((now, now + time));
    }

    fn end(&self) -> Time {
        self.pauses.back().map_or(Time::ZERO, |&(_, end)| end)
    }
}

/// The mechanism.
pub struct OnRamp {
    params: Params,
    inner: Box<dyn CongestionControl>,
    /// What the congestion control itself wants to see.
    needs: Needs,
    flows: Slots<Flow>,
    pauses: u64,
    paused: Time,
}

impl OnRamp {
    /// OnRamp on top of a congestion control.
    pub fn new(params: &Params, inner: Box<dyn CongestionControl>) -> OnRamp {
        let needs = inner.needs();
        OnRamp { params: params.clone(), inner, needs, flows: Slots::default(), pauses: 0, paused: Time::ZERO }
    }
}

impl CongestionControl for OnRamp {
    fn needs(&self) -> Needs {
        Needs { every_ack: true, delay: true, ..self.needs }
    }
    fn start(&mut self, slot: u32, flow: FlowStart) -> Permit {
        let threshold = self.params.threshold.unwrap_or(flow.base_rtt);
        self.flows.put(slot, Flow { threshold, ..Flow::default() });
        self.inner.start(slot, flow)
    }
    fn ack(&mut self, slot: u32, ack: &Ack<'_>, permit: &mut Permit) {
        if self.needs.every_ack || ack.marked {
            self.inner.ack(slot, ack, permit);
        }
        let flow = self.flows.get(slot);
        let excess = ack.delay.saturating_sub(flow.threshold);
        if excess > Time::ZERO && flow.end() <= ack.now {
            let left = excess.saturating_sub(flow.paused_since(ack.stamp));
            let time = Time((left.0 as f64 * self.params.gain) as u64);
            if time > Time::ZERO {
                flow.pause(ack.now, time);
                self.pauses += 1;
                self.paused += time;
            }
        }
        // A change of the rate may have moved the flow's next packet: the pause holds all the same.
        permit.resume = flow.end();
    }
    fn timer(&mut self, slot: u32, now: Time, permit: &mut Permit) {
        self.inner.timer(slot, now, permit);
        permit.resume = self.flows.get(slot).end();
    }
    fn notice(&mut self, slot: u32, notice: &Notice, permit: &mut Permit) {
        self.inner.notice(slot, notice, permit);
        permit.resume = self.flows.get(slot).end();
    }
    fn incident(&mut self, slot: u32, now: Time, incident: Incident, permit: &mut Permit) {
        self.inner.incident(slot, now, incident, permit);
        permit.resume = self.flows.get(slot).end();
    }
    fn counters(&self) -> Vec<Counter> {
        let mut counters = self.inner.counters();
        counters.extend([Counter::sum("onramp_pauses", self.pauses), Counter::sum("onramp_paused_ps", self.paused.0)]);
        counters
    }
    fn known(&self) -> Option<&dyn Recall> {
        self.inner.known().map(|_| self as &dyn Recall)
    }
}

impl Recall for OnRamp {
    fn recall(&self, slot: u32, now: Time, say: &mut dyn FnMut(Known)) {
        let flow = self.flows.peek(slot);
        say(Known::Level(flow.total.0 as f64, flow.threshold.0.max(1) as f64));
        for &(start, end) in &flow.pauses {
            say(Known::Instant(start));
            say(Known::Instant(end));
        }
        if let Some(inner) = self.inner.known() {
            inner.recall(slot, now, say);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::Rate;
    use fabric::axes::congestion_control::Unlimited;

    const US: fn(u64) -> Time = Time::from_us;

    fn ack(now: u64, stamp: u64, delay: u64) -> Ack<'static> {
        Ack { stamp: US(stamp), delay: US(delay), ..crate::congestion_control::plain_ack(US(now)) }
    }

    fn started(params: Params) -> (OnRamp, Permit) {
        let mut onramp = OnRamp::new(&params, Box::new(Unlimited));
        let flow = FlowStart {
            line: Rate::from_gbps(100),
            base_rtt: US(10),
            window: 0,
            ..crate::congestion_control::plain_start()
        };
        let permit = onramp.start(0, flow);
        (onramp, permit)
    }

    #[test]
    fn a_flow_pauses_for_a_part_of_what_is_above_the_threshold() {
        let (mut onramp, mut permit) = started(Params { gain: 1.0, ..Params::default() });
        onramp.ack(0, &ack(20, 5, 10), &mut permit);
        assert_eq!(permit.resume, Time::ZERO, "at the threshold");
        onramp.ack(0, &ack(50, 5, 40), &mut permit);
        assert_eq!(permit.resume, US(80));
        let (mut half, mut permit) = started(Params { gain: 0.5, ..Params::default() });
        half.ack(0, &ack(50, 5, 40), &mut permit);
        assert_eq!(permit.resume, US(65));
    }

    #[test]
    fn what_was_paused_since_the_packet_left_is_not_paused_again() {
        let (mut onramp, mut permit) = started(Params { gain: 1.0, ..Params::default() });
        onramp.ack(0, &ack(50, 5, 40), &mut permit);
        // A paused flow is paused already.
        onramp.ack(0, &ack(52, 6, 47), &mut permit);
        assert_eq!(permit.resume, US(80));
        // Sent before the pause of 30 us, as slow as the first, heard of after it: that pause was for it, too.
        onramp.ack(0, &ack(81, 7, 40), &mut permit);
        assert_eq!(permit.resume, US(80));
        // Slower by 7 us: so much longer.
        onramp.ack(0, &ack(82, 8, 47), &mut permit);
        assert_eq!(permit.resume, US(89));
        // Sent in the midst of the first pause (the NIC had it already), it has seen a part of it.
        onramp.ack(0, &ack(110, 60, 47), &mut permit);
        assert_eq!(permit.resume, US(110 + 37 - 27));
        // Sent after all of them: the whole excess counts.
        onramp.ack(0, &ack(200, 150, 45), &mut permit);
        assert_eq!(permit.resume, US(235));
        assert_eq!(
            onramp.counters(),
            [Counter::sum("onramp_pauses", 4), Counter::sum("onramp_paused_ps", US(30 + 7 + 10 + 35).0)]
        );
    }

    #[test]
    fn the_congestion_control_underneath_sees_only_what_it_asked_for() {
        struct Marks(u64);
        impl CongestionControl for Marks {
            fn needs(&self) -> Needs {
                Needs::default()
            }
            fn start(&mut self, _: u32, flow: FlowStart) -> Permit {
                Unlimited.start(0, flow)
            }
            fn ack(&mut self, _: u32, _: &Ack<'_>, _: &mut Permit) {
                self.0 += 1;
            }
            fn counters(&self) -> Vec<Counter> {
                vec![Counter::sum("seen", self.0)]
            }
        }
        let mut onramp = OnRamp::new(&Params::default(), Box::new(Marks(0)));
        let mut permit = onramp.start(
            0,
            FlowStart { line: Rate(1), base_rtt: US(10), window: 0, ..crate::congestion_control::plain_start() },
        );
        assert_eq!(onramp.needs(), Needs { every_ack: true, delay: true, ..Needs::default() });
        onramp.ack(0, &ack(20, 5, 9), &mut permit);
        onramp.ack(0, &Ack { marked: true, ..ack(20, 5, 9) }, &mut permit);
        assert_eq!(onramp.counters()[0], Counter::sum("seen", 1));
    }
}
