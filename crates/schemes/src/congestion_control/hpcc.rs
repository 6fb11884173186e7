//! HPCC (Li et al., SIGCOMM 2019): every ACK reports how full each link on the path was; the sender aims at η.
//!
//! U, the most loaded link's use (its throughput plus its queue, relative to a bandwidth-delay product), is averaged over
//! a base round trip. Above η, or after `max_stage` additive steps, the rate is divided by U/η; below, it grows by `ai`.
//! The reference rate moves once per round trip; between, ACKs act on it without moving it (`per_ack`).

use super::{Slots, check_rates};
use engine::{Misfit, Rate, Time};
use fabric::axes::congestion_control::{Ack, FlowStart, Known, Needs, Permit, Recall};
use fabric::axes::{CongestionControl, CongestionControlDef, Definition};
use fabric::packet::{Hop, MAX_HOPS};

engine::parameters! {
    /// Parameters of HPCC with the paper's defaults.
    pub struct Params {
        /// Target utilisation η.
        eta: f64 = 0.95,
        /// Additive steps before a multiplicative one (maxStage).
        max_stage: u32 = 5,
        /// Additive increase (W_AI as a rate).
        ai: Rate = Rate::from_mbps(40),
        /// The rate never falls below.
        min_rate: Rate = Rate::from_mbps(1000),
        /// React to every ACK, not only once per round trip.
        per_ack: bool = true,
        /// Keep a rate per hop and use the smallest, instead of one rate for the most loaded hop.
        per_hop: bool = false,
        /// Between round trips, ignore hops whose queue is empty.
        skip_empty: bool = false,
        /// Width of the telemetry fields: 0 for exact values; n for the 64-bit header of the HPCC authors' simulator with
        /// units of n × 128 B sent and n × 80 B queued, nanoseconds, five hops and five known line rates.
        header_units: u32 = 0,
        /// Whether that header has a code for 40 Gb/s, too, as in ConWeave's simulator.
        header_40g: bool = false,
    }
}

impl Definition for Params {
    fn name(&self) -> &'static str {
        "hpcc"
    }
    fn about(&self) -> &'static str {
        "HPCC: per-hop telemetry in every ACK, the sender steers the most loaded link to a target utilisation."
    }
    fn source(&self) -> &'static str {
        "Y. Li et al., HPCC: High Precision Congestion Control, SIGCOMM 2019"
    }
    fn check(&self) -> Result<(), Misfit> {
        if self.eta <= 0.0 {
            return Err(Misfit::new("eta", self.eta, "write a share above zero, such as 0.95"));
        }
        if self.header_units > 1_000_000 {
            return Err(Misfit::new("header_units", self.header_units, "write at most 1000000"));
        }
        check_rates(self.min_rate, &[("ai", self.ai)])
    }
}

impl CongestionControlDef for Params {
    fn needs_window(&self) -> bool {
        true
    }
    fn header(&self) -> (u16, u16) {
        (42, 28) // five hops of 8 B and a count, in the packet and again in its ACK
    }
    fn build(&self) -> Box<dyn CongestionControl> {
        Box::new(Hpcc { params: self.clone(), flows: Slots::default() })
    }
}

#[derive(Clone, Copy, Debug)]
struct PerHop {
    u: f64,
    rate: Rate,
    stage: u32,
}

#[derive(Clone, Debug)]
struct Flow {
    line: Rate,
    base_rtt: f64,
    window: f64,
    /// The round trip ends when this byte is acknowledged; 0 before the first ACK.
    round: u64,
    rate: Rate,
    stage: u32,
    u: f64,
    last: [Hop; MAX_HOPS],
    per_hop: [PerHop; MAX_HOPS],
}

struct Hpcc {
    params: Params,
    flows: Slots<Flow>,
}

/// What changed at a hop between two packets.
struct Delta {
    ns: f64,
    seconds: f64,
    bytes: u64,
    queued: f64,
    line: f64,
    empty: bool,
}

impl Params {
    fn max_hops(&self) -> usize {
        if self.header_units == 0 { MAX_HOPS } else { 5 }
    }

    /// What changed at a hop; nothing where the path has changed and the counters are another port's, or where a newer ACK has come first.
    /// The authors' header, with its units, does not say which port it is.
    fn delta(&self, now: &Hop, before: &Hop) -> Option<Delta> {
        if self.header_units == 0 {
            if now.time <= before.time || now.tx_bytes() < before.tx_bytes() || !now.is_of_same_port(before) {
                return None;
            }
            let ps = (now.time.0 - before.time.0) as f64;
            return Some(Delta {
                ns: ps * 1e-3,
                seconds: ps * 1e-12,
                bytes: now.tx_bytes() - before.tx_bytes(),
                queued: now.queued.min(before.queued) as f64,
                line: now.mbps as f64 * 1e6,
                empty: now.queued == 0,
            });
        }
        // The header has 24 bits of nanoseconds, 20 of bytes sent, 17 of bytes queued, 3 for the line rate.
        let (byte_unit, queue_unit) = (128 * self.header_units as u64, 80 * self.header_units as u64);
        let difference = |a: u64, b: u64, bits: u32| (a.wrapping_sub(b)) & ((1 << bits) - 1);
        let queued = |h: &Hop| ((h.queued as u64 / queue_unit) & 0x1_ffff) * queue_unit;
        let ns = difference(now.time.ns(), before.time.ns(), 24) as f64;
        let known = [25_000, 50_000, 100_000, 200_000, 400_000];
        Some(Delta {
            ns,
            seconds: ns * 1e-9,
            bytes: difference(now.tx_bytes() / byte_unit, before.tx_bytes() / byte_unit, 20) * byte_unit,
            queued: queued(now).min(queued(before)) as f64,
            // A rate without a code reads as the first, 25 Gb/s.
            line: if known.contains(&now.mbps) || self.header_40g && now.mbps == 40_000 { now.mbps } else { 25_000 }
                as f64
                * 1e6,
            empty: queued(now) == 0,
        })
    }

    /// The next rate and stage, given how far the use is from the target.
    fn step(&self, rate: Rate, stage: u32, u: f64, line: Rate) -> (Rate, u32) {
        let excess = u / self.eta;
        let (next, stage) = if excess >= 1.0 || stage >= self.max_stage {
            (((rate.0 as f64 / excess) as u64).saturating_add(self.ai.0), 0)
        } else {
            (rate.0 + self.ai.0, stage + 1)
        };
        (Rate(next).max(self.min_rate).min(line), stage)
    }
}

impl Flow {
    fn average(&self, old: f64, new: f64, ns: f64) -> f64 {
        let ns = ns.min(self.base_rtt);
        (old * (self.base_rtt - ns) + new * ns) / self.base_rtt
    }

    /// Reacts to an ACK's telemetry; `full` at the end of a round trip. Gives the new rate, if there is one.
    fn react(&mut self, p: &Params, hops: &[Hop], full: bool) -> Option<Rate> {
        let (mut worst, mut worst_ns) = (0.0, 0.0);
        // A bit for each.
        let mut seen = 0u32;
        for (i, hop) in hops.iter().enumerate() {
            let Some(d) = p.delta(hop, &self.last[i]) else {
                // What an overtaken ACK says is older than what is known.
                if hop.time > self.last[i].time {
                    self.last[i] = *hop;
                }
                continue;
            };
            if p.skip_empty && !full && d.empty {
                continue;
            }
            seen |= 1 << i;
            let throughput = (d.bytes * 8) as f64 / d.seconds;
            let u = throughput / d.line + d.queued * self.line.0 as f64 / d.line / self.window;
            if p.per_hop {
                self.per_hop[i].u = self.average(self.per_hop[i].u, u, d.ns);
            } else if u > worst {
                (worst, worst_ns) = (u, d.ns);
            }
            self.last[i] = *hop;
        }
        if seen == 0 {
            return None;
        }
        if !p.per_hop {
            self.u = self.average(self.u, worst, worst_ns);
            let (rate, stage) = p.step(self.rate, self.stage, self.u, self.line);
            if full {
                (self.rate, self.stage) = (rate, stage);
            }
            return Some(rate);
        }
        let mut slowest = self.line;
        for (i, hop) in self.per_hop.iter_mut().take(hops.len()).enumerate() {
            if seen >> i & 1 == 0 {
                slowest = slowest.min(hop.rate);
                continue;
            }
            let (rate, stage) = p.step(hop.rate, hop.stage, hop.u, self.line);
            slowest = slowest.min(rate);
            if full {
                (hop.rate, hop.stage) = (rate, stage);
            }
        }
        if full {
            self.rate = slowest;
        }
        Some(slowest)
    }
}

impl CongestionControl for Hpcc {
    fn needs(&self) -> Needs {
        Needs { telemetry: true, every_ack: true, ..Needs::default() }
    }

    fn start(&mut self, slot: u32, flow: FlowStart) -> Permit {
        let state = Flow {
            line: flow.line,
            base_rtt: flow.base_rtt.0 as f64 * 1e-3,
            window: flow.window as f64,
            round: 0,
            rate: flow.line,
            stage: 0,
            u: 1.0,
            last: [Hop::default(); MAX_HOPS],
            per_hop: [PerHop { u: 1.0, rate: flow.line, stage: 0 }; MAX_HOPS],
        };
        self.flows.put(slot, state);
        Permit::at(flow.line)
    }

    fn ack(&mut self, slot: u32, ack: &Ack<'_>, permit: &mut Permit) {
        let p = &self.params;
        let flow = self.flows.get(slot);
        let full = ack.seq > flow.round;
        if !full && !p.per_ack {
            return;
        }
        let hops = ack.telemetry;
        if flow.round == 0 {
            flow.round = ack.next;
            flow.last[..hops.len()].copy_from_slice(hops);
            return;
        }
        if hops.len() <= p.max_hops()
            && let Some(rate) = flow.react(p, hops, full)
        {
            permit.rate = rate;
            permit.repace = true;
        }
        if full {
            flow.round = flow.round.max(ack.next);
        }
    }

    fn known(&self) -> Option<&dyn Recall> {
        Some(self)
    }
}

impl Recall for Hpcc {
    fn recall(&self, slot: u32, _: Time, say: &mut dyn FnMut(Known)) {
        let flow = self.flows.peek(slot);
        say(Known::level(flow.rate.0 as f64));
        say(Known::Byte(flow.round));
        say(Known::Word(flow.u.to_bits()));
        say(Known::Word(flow.stage as u64));
        let heard = |hop: &&Hop| hop.time > Time::ZERO;
        flow.last.iter().filter(heard).for_each(|hop| say(Known::Hop(*hop)));
        if self.params.per_hop {
            for hop in &flow.per_hop {
                say(Known::level(hop.rate.0 as f64));
                say(Known::Word(hop.u.to_bits()));
                say(Known::Word(hop.stage as u64));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::plain_ack;
    use super::*;

    const LINE: Rate = Rate::from_gbps(100);

    fn hop(us: u64, tx_bytes: u64, queued: u32) -> Hop {
        Hop::new(Time::from_us(us), 7, tx_bytes, queued, 100_000)
    }
    fn start(params: Params) -> (Box<dyn CongestionControl>, Permit) {
        let mut cc = params.build();
        let permit = cc.start(
            0,
            FlowStart {
                line: LINE,
                base_rtt: Time::from_us(10),
                window: 125_000,
                ..crate::congestion_control::plain_start()
            },
        );
        (cc, permit)
    }
    fn ack<'a>(seq: u64, next: u64, telemetry: &'a [Hop]) -> Ack<'a> {
        Ack { seq, next, telemetry, ..plain_ack(Time::from_us(20)) }
    }

    #[test]
    fn a_full_link_with_one_bdp_queued_halves_the_rate() {
        for header_units in [0, 1] {
            let (mut cc, mut permit) = start(Params { header_units, ..Params::default() });
            cc.ack(0, &ack(1000, 50_000, &[hop(0, 0, 125_000)]), &mut permit);
            assert_eq!(permit.rate, LINE, "the first ACK only sets the base");
            // Ten microseconds at line rate with a full BDP in the queue: U = 1 + 1.
            cc.ack(0, &ack(51_000, 90_000, &[hop(10, 125_056, 125_040)]), &mut permit);
            let expected = 100e9 / (2.0 / 0.95) + 40e6;
            assert!((permit.rate.0 as f64 / expected - 1.0).abs() < 2e-3, "{} {expected}", permit.rate.0);
            assert!(permit.repace);
        }
    }

    #[test]
    fn a_half_used_link_lets_the_rate_grow_by_steps_and_then_at_once() {
        let (mut cc, mut permit) = start(Params { ai: Rate::from_gbps(1), ..Params::default() });
        cc.ack(0, &ack(1, 10, &[hop(0, 0, 250_000)]), &mut permit);
        // A full link with two BDP queued: U = 3. Then half of the link, no queue: U = 0.5.
        let mut gbps = vec![];
        for i in 1..9u64 {
            let (sent, queued) = if i == 1 { (125_000, 250_000) } else { (62_500 * (i + 1), 0) };
            cc.ack(0, &ack(i * 10 + 1, (i + 1) * 10, &[hop(i * 10, sent, queued)]), &mut permit);
            gbps.push(permit.rate.0 as f64 / 1e9);
        }
        let low = 100.0 / (3.0 / 0.95) + 1.0;
        assert!((gbps[0] - low).abs() < 0.01, "{gbps:?}");
        for (i, rate) in gbps[1..6].iter().enumerate() {
            assert!((rate - (low + 1.0 + i as f64)).abs() < 0.01, "{gbps:?}");
        }
        assert!((gbps[6] - ((low + 5.0) / (0.5 / 0.95) + 1.0)).abs() < 0.01, "{gbps:?}");
    }

    #[test]
    fn between_round_trips_the_reference_rate_stays() {
        let (mut cc, mut permit) = start(Params::default());
        cc.ack(0, &ack(1, 1000, &[hop(0, 0, 0)]), &mut permit);
        cc.ack(0, &ack(2, 2000, &[hop(10, 125_000, 125_000)]), &mut permit);
        let once = permit.rate;
        cc.ack(0, &ack(3, 2000, &[hop(20, 250_000, 125_000)]), &mut permit);
        // Both reactions start from line rate: the second sees U = 2 where the first saw U = 1.
        assert!(once > permit.rate);
        assert!(permit.rate.0 > 40_000_000_000, "one division, not two: {}", permit.rate.0);
    }

    #[test]
    fn per_hop_rates_follow_the_tightest_hop() {
        let (mut cc, mut permit) = start(Params { per_hop: true, ..Params::default() });
        cc.ack(0, &ack(1, 1000, &[hop(0, 0, 0), hop(0, 0, 125_000)]), &mut permit);
        cc.ack(0, &ack(2000, 3000, &[hop(10, 10_000, 0), hop(10, 125_000, 125_000)]), &mut permit);
        let expected = 100e9 / (2.0 / 0.95);
        assert!((permit.rate.0 as f64 / expected - 1.0).abs() < 2e-3);
    }

    #[test]
    fn counters_of_another_port_and_of_overtaken_acks_are_not_compared() {
        let (mut cc, mut permit) = start(Params::default());
        cc.ack(0, &ack(1, 1000, &[hop(0, 0, 125_000)]), &mut permit);
        // Another port that has sent more, and a full queue: nothing is known of its rate.
        let other = |us, tx_bytes| Hop::new(Time::from_us(us), 8, tx_bytes, 125_000, 100_000);
        cc.ack(0, &ack(2, 2000, &[other(10, 125_000)]), &mut permit);
        assert_eq!(permit.rate, LINE);
        // An ACK that was overtaken changes nothing; the next one is compared with the newest.
        cc.ack(0, &ack(3, 3000, &[other(5, 62_500)]), &mut permit);
        assert_eq!(permit.rate, LINE);
        cc.ack(0, &ack(4, 4000, &[other(20, 250_000)]), &mut permit);
        let expected = 100e9 / (2.0 / 0.95) + 40e6;
        assert!((permit.rate.0 as f64 / expected - 1.0).abs() < 2e-3, "{} {expected}", permit.rate.0);
    }

    #[test]
    fn the_header_wraps_and_knows_five_rates() {
        let p = Params { header_units: 4, ..Params::default() };
        let (a, b) = (hop(16_777, 536_870_900, 0), hop(16_778, 536_870_912 + 5 * 512, 0));
        let d = p.delta(&b, &a).unwrap();
        assert_eq!((d.ns, d.bytes), (1000.0, 6 * 512));
        let odd = p.delta(&Hop::new(b.time, b.port(), b.tx_bytes(), 0, 40_000), &a).unwrap();
        assert_eq!(odd.line, 25e9);
    }
}
