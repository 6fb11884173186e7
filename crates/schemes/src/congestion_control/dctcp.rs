//! DCTCP (Alizadeh et al., SIGCOMM 2010), rate-based as in the HPCC authors' simulator.
//!
//! α averages the share of marked ACKs per round trip. The first mark of a round trip cuts the rate by α/2; a round
//! trip without a cut adds `ai`.

use super::{Slots, check_rates, check_shares};
use engine::{Misfit, Rate, Time};
use fabric::axes::congestion_control::{Ack, FlowStart, Known, Needs, Permit, Recall};
use fabric::axes::{CongestionControl, CongestionControlDef, Definition};

engine::parameters! {
    /// Parameters of DCTCP; defaults as in the HPCC authors' experiments at 100 Gb/s.
    pub struct Params {
        /// Weight g of the newest round trip in α.
        gain: f64 = 1.0 / 16.0,
        /// Additive increase per round trip.
        ai: Rate = Rate::from_mbps(615),
        /// The rate never falls below.
        min_rate: Rate = Rate::from_mbps(1000),
        /// Bytes of message in a full packet, to turn bytes into a number of ACKs. Auto: the NIC's.
        packet: Option<u32> = None,
    }
}

impl Definition for Params {
    fn name(&self) -> &'static str {
        "dctcp"
    }
    fn about(&self) -> &'static str {
        "DCTCP: the share of marked packets in a round trip sets how far the rate is cut."
    }
    fn source(&self) -> &'static str {
        "M. Alizadeh et al., Data Center TCP (DCTCP), SIGCOMM 2010"
    }
    fn check(&self) -> Result<(), Misfit> {
        if self.packet == Some(0) {
            return Err(Misfit::new("packet", 0, "write the bytes of message in a full packet, such as 1000"));
        }
        check_shares(&[("gain", self.gain)])?;
        check_rates(self.min_rate, &[("ai", self.ai)])
    }
}

impl CongestionControlDef for Params {
    fn uses_marks(&self) -> bool {
        true
    }
    fn build(&self) -> Box<dyn CongestionControl> {
        Box::new(Dctcp { params: self.clone(), flows: Slots::default() })
    }
}

#[derive(Clone, Debug)]
struct Flow {
    line: Rate,
    packet: u64,
    /// The round trip ends when this byte is acknowledged; 0 before the first ACK.
    round: u64,
    alpha: f64,
    marks: u64,
    /// ACKs expected in this round trip.
    expected: u64,
    /// The rate was cut; until this byte is acknowledged it is not cut again.
    cut_until: Option<u64>,
}

struct Dctcp {
    params: Params,
    flows: Slots<Flow>,
}

impl CongestionControl for Dctcp {
    fn needs(&self) -> Needs {
        Needs { every_ack: true, ..Needs::default() }
    }

    fn start(&mut self, slot: u32, flow: FlowStart) -> Permit {
        let packet = self.params.packet.unwrap_or(flow.payload) as u64;
        let state = Flow { line: flow.line, packet, round: 0, alpha: 1.0, marks: 0, expected: 0, cut_until: None };
        self.flows.put(slot, state);
        Permit::at(flow.line)
    }

    fn ack(&mut self, slot: u32, ack: &Ack<'_>, permit: &mut Permit) {
        let p = &self.params;
        let flow = self.flows.get(slot);
        let packet = flow.packet;
        let packets = |bytes: u64| bytes / packet + 1;
        flow.marks += ack.marked as u64;
        let round_over = ack.seq > flow.round;
        if round_over {
            if flow.round == 0 {
                flow.expected = packets(ack.next);
            } else {
                let share = (flow.marks as f64 / flow.expected as f64).min(1.0);
                flow.alpha = (1.0 - p.gain) * flow.alpha + p.gain * share;
                flow.marks = 0;
                flow.expected = packets(ack.next.saturating_sub(ack.seq));
            }
            flow.round = ack.next;
        }
        if flow.cut_until.is_some_and(|byte| ack.seq > byte) {
            flow.cut_until = None;
        }
        if ack.marked && flow.cut_until.is_none() {
            permit.rate = Rate((permit.rate.0 as f64 * (1.0 - flow.alpha / 2.0)) as u64).max(p.min_rate);
            flow.cut_until = Some(ack.next);
        }
        if flow.cut_until.is_none() && round_over {
            permit.rate = Rate(permit.rate.0 + p.ai.0).min(flow.line);
        }
    }

    fn known(&self) -> Option<&dyn Recall> {
        Some(self)
    }
}

impl Recall for Dctcp {
    fn recall(&self, slot: u32, _: Time, say: &mut dyn FnMut(Known)) {
        let flow = self.flows.peek(slot);
        say(Known::Level(flow.alpha, 1.0));
        say(Known::Byte(flow.round));
        say(Known::Word(flow.marks));
        say(Known::Word(flow.expected));
        flow.cut_until.into_iter().for_each(|byte| say(Known::Byte(byte)));
    }
}

#[cfg(test)]
mod tests {
    use super::super::plain_ack;
    use super::*;

    fn ack(seq: u64, next: u64, marked: bool) -> Ack<'static> {
        Ack { seq, next, marked, ..plain_ack(Time::from_us(1)) }
    }

    #[test]
    fn one_cut_per_round_trip_and_growth_without_marks() {
        let line = Rate::from_gbps(100);
        let mut cc = Params::default().build();
        let mut permit = cc.start(
            0,
            FlowStart { line, base_rtt: Time::from_us(8), window: 0, ..crate::congestion_control::plain_start() },
        );
        cc.ack(0, &ack(1000, 10_000, true), &mut permit);
        assert_eq!(permit.rate, Rate::from_gbps(50), "α starts at one");
        cc.ack(0, &ack(2000, 11_000, true), &mut permit);
        assert_eq!(permit.rate, Rate::from_gbps(50), "not again in the same round trip");
        cc.ack(0, &ack(11_000, 20_000, false), &mut permit);
        assert_eq!(permit.rate, Rate(50_615_000_000));
    }

    #[test]
    fn alpha_follows_the_share_of_marks() {
        let mut cc = Params { gain: 0.5, ..Params::default() }.build();
        let start = FlowStart {
            line: Rate::from_gbps(100),
            base_rtt: Time::from_us(8),
            window: 0,
            ..crate::congestion_control::plain_start()
        };
        let mut permit = cc.start(0, start);
        cc.ack(0, &ack(1000, 4_000, false), &mut permit);
        cc.ack(0, &ack(5_000, 8_000, false), &mut permit); // α = 0.5
        cc.ack(0, &ack(9_000, 12_000, false), &mut permit); // α = 0.25
        let before = permit.rate.0;
        cc.ack(0, &ack(10_000, 13_000, true), &mut permit);
        assert_eq!(permit.rate.0, (before as f64 * (1.0 - 0.125)) as u64);
    }
}
