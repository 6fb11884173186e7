//! Congestion notifications as NICs have them: at most so often, and some time after the mark.
//!
//! A receiver's NIC makes a notification (a CNP) of a marked packet, unless it made one for the flow a moment ago, and that takes a while, as
//! does the sender's NIC over it. Here marks come back on ACKs, which path selectors see as they are; what congestion control sees is
//! thinned out and delayed where they arrive. The way back is the same for all packets of a flow, so that this is what comes out.

use crate::axes::Counter;
use crate::axes::congestion_control::{
    Ack, CongestionControl, FlowStart, Incident, Known, Needs, Notice, Permit, Recall,
};
use crate::setup::Notifications;
use engine::{Rate, Time};
use std::collections::VecDeque;

/// A controller that hears of marks as NICs would have it.
pub(super) fn paced(inner: Box<dyn CongestionControl>, rule: Notifications) -> Box<dyn CongestionControl> {
    if rule == Notifications::default() {
        return inner;
    }
    Box::new(Paced { inner, rule, flows: Vec::new(), made: 0, left_out: 0 })
}

#[derive(Clone, Default)]
struct Flow {
    /// When the next notification may be made.
    next: Time,
    /// Those on their way: when they arrive, and up to where the marked packet's ACK acknowledged, and the sender had sent.
    pending: VecDeque<(Time, u64, u64)>,
    /// When the controller itself wants to be called.
    timer: Time,
}

impl Flow {
    /// The next instant at which something is due.
    fn due(&self) -> Time {
        self.pending.front().map_or(Time::MAX, |(at, ..)| *at).min(self.timer)
    }
}

struct Paced {
    inner: Box<dyn CongestionControl>,
    rule: Notifications,
    /// By slot.
    flows: Vec<Flow>,
    made: u64,
    left_out: u64,
}

impl Paced {
    /// Lets the controller do something, with its own timer in the permit.
    fn inner(&mut self, slot: u32, permit: &mut Permit, act: impl FnOnce(&mut dyn CongestionControl, &mut Permit)) {
        let flow = &mut self.flows[slot as usize];
        permit.timer = flow.timer;
        act(&mut *self.inner, permit);
        flow.timer = permit.timer;
        permit.timer = flow.due();
    }
}

impl CongestionControl for Paced {
    fn needs(&self) -> Needs {
        self.inner.needs()
    }

    fn start(&mut self, slot: u32, flow: FlowStart) -> Permit {
        let permit = self.inner.start(slot, flow);
        let slot = slot as usize;
        if self.flows.len() <= slot {
            self.flows.resize(slot + 1, Flow::default());
        }
        self.flows[slot] = Flow { timer: permit.timer, ..Flow::default() };
        permit
    }

    fn ack(&mut self, slot: u32, ack: &Ack<'_>, permit: &mut Permit) {
        let (rule, flow) = (self.rule, &mut self.flows[slot as usize]);
        let mut now = false;
        if ack.marked {
            let made = ack.now >= flow.next;
            self.made += made as u64;
            self.left_out += !made as u64;
            if made {
                flow.next = ack.now + rule.interval;
                now = rule.delay == Time::ZERO;
                if !now {
                    flow.pending.push_back((ack.now + rule.delay, ack.seq, ack.next));
                }
            }
        }
        if now || self.inner.needs().every_ack {
            self.inner(slot, permit, |inner, permit| inner.ack(slot, &Ack { marked: now, ..*ack }, permit));
        } else {
            permit.timer = self.flows[slot as usize].due();
        }
    }

    fn timer(&mut self, slot: u32, now: Time, permit: &mut Permit) {
        if self.flows[slot as usize].timer <= now {
            self.inner(slot, permit, |inner, permit| inner.timer(slot, now, permit));
        }
        while let Some((at, seq, next)) = self.flows[slot as usize].pending.front().copied().filter(|due| due.0 <= now)
        {
            self.flows[slot as usize].pending.pop_front();
            let ack = Ack {
                now,
                cause: at.saturating_sub(self.rule.delay),
                seq,
                next,
                received: seq,
                flight: next.saturating_sub(seq),
                marked: true,
                own: 0,
                tag: 0,
                stamp: Time::ZERO,
                delay: Time::ZERO,
                telemetry: &[],
                share: Rate(0),
            };
            self.inner(slot, permit, |inner, permit| inner.ack(slot, &ack, permit));
        }
        permit.timer = self.flows[slot as usize].due();
    }

    fn notice(&mut self, slot: u32, notice: &Notice, permit: &mut Permit) {
        self.inner(slot, permit, |inner, permit| inner.notice(slot, notice, permit));
    }

    fn incident(&mut self, slot: u32, now: Time, incident: Incident, permit: &mut Permit) {
        self.inner(slot, permit, |inner, permit| inner.incident(slot, now, incident, permit));
    }

    fn counters(&self) -> Vec<Counter> {
        let mut all = self.inner.counters();
        all.push(Counter::sum("cnps", self.made));
        all.push(Counter::sum("cnps_left_out", self.left_out));
        all
    }

    fn known(&self) -> Option<&dyn Recall> {
        self.inner.known().map(|_| self as &dyn Recall)
    }
}

impl Recall for Paced {
    fn recall(&self, slot: u32, now: Time, say: &mut dyn FnMut(Known)) {
        let flow = &self.flows[slot as usize];
        // That the next may be made by now is all there is to know.
        say(Known::Word(flow.next.saturating_sub(now).0));
        say(Known::Instant(flow.timer));
        for &(at, seq, next) in &flow.pending {
            say(Known::Instant(at));
            say(Known::Byte(seq));
            say(Known::Byte(next));
        }
        if let Some(inner) = self.inner.known() {
            inner.recall(slot, now, say);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    /// When a controller was notified, and when its timer went off. The timer is set for 100 us once.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<(&'static str, Time)>>>);

    impl CongestionControl for Log {
        fn needs(&self) -> Needs {
            Needs::default()
        }
        fn start(&mut self, _: u32, flow: FlowStart) -> Permit {
            Permit { timer: Time::from_us(100), ..Permit::at(flow.line) }
        }
        fn ack(&mut self, _: u32, ack: &Ack<'_>, _: &mut Permit) {
            self.0.lock().expect("one thread").push(("marked", ack.now));
        }
        fn timer(&mut self, _: u32, now: Time, permit: &mut Permit) {
            self.0.lock().expect("one thread").push(("timer", now));
            permit.timer = Time::MAX;
        }
    }

    /// What happens to a controller of a flow whose ACKs come at these instants, all of them marked.
    fn heard(rule: Notifications, acks: &[u64]) -> Vec<(&'static str, u64)> {
        let log = Log::default();
        let mut control = paced(Box::new(log.clone()), rule);
        let start = FlowStart {
            now: Time::ZERO,
            line: Rate::from_gbps(100),
            base_rtt: Time::from_us(8),
            window: 0,
            size: 1_000_000,
            hops: 1,
            payload: 1000,
            header: 62,
            longest_rtt: Time::from_us(8),
            trims: false,
        };
        let mut permit = control.start(0, start);
        let until = |control: &mut Box<dyn CongestionControl>, permit: &mut Permit, end: Time| {
            while permit.timer <= end && permit.timer < Time::MAX {
                let now = permit.timer;
                control.timer(0, now, permit);
                assert!(permit.timer > now, "the timer must move on");
            }
        };
        for &us in acks {
            let now = Time::from_us(us);
            until(&mut control, &mut permit, now);
            let ack = Ack {
                now,
                cause: now,
                seq: 0,
                next: 0,
                received: 0,
                flight: 0,
                marked: true,
                own: 0,
                tag: 0,
                stamp: Time::ZERO,
                delay: Time::ZERO,
                telemetry: &[],
                share: Rate(0),
            };
            control.ack(0, &ack, &mut permit);
        }
        until(&mut control, &mut permit, Time::from_ms(10));
        let log = log.0.lock().expect("one thread");
        log.iter().map(|&(what, at)| (what, at.0 / 1_000_000)).collect()
    }

    #[test]
    fn marks_within_the_interval_make_no_notification() {
        let rule = Notifications { interval: Time::from_us(50), delay: Time::ZERO };
        let all = heard(rule, &[1, 2, 40, 51, 60, 110]);
        assert_eq!(all, [("marked", 1), ("marked", 51), ("timer", 100), ("marked", 110)]);
    }

    #[test]
    fn notifications_come_late_and_do_not_displace_the_controllers_timer() {
        let rule = Notifications { interval: Time::ZERO, delay: Time::from_us(7) };
        assert_eq!(heard(rule, &[1, 2, 95]), [("marked", 8), ("marked", 9), ("timer", 100), ("marked", 102)]);
        let both = Notifications { interval: Time::from_us(2), delay: Time::from_us(7) };
        assert_eq!(heard(both, &[1, 2, 3]), [("marked", 8), ("marked", 10), ("timer", 100)]);
    }
}
