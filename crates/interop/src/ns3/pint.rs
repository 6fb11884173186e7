//! HPCC-PINT as the reference has it (Ben Basat et al., PINT, SIGCOMM 2020, §4.3): a switch writes the highest utilisation on the path
//! on a packet, as a logarithm of one or two bytes, rounded up or down at random; senders act on a share of the ACKs.
//!
//! All of its dice are the C library's, which nobody seeds: one sequence for switches and senders, in the order of events. So a run can be
//! compared to the byte, and it is not offered for scenarios.

use super::rand::{Rand, Shared};
use engine::{Parameter, Parameters, Rate, Raw, Time, ValueError};
use fabric::axes::congestion_control::{Ack, FlowStart, Needs, Permit};
use fabric::axes::flow_control::Visit;
use fabric::axes::{CongestionControl, CongestionControlDef, Definition, Marking, MarkingDef};
use fabric::id::PortId;
use fabric::view::{NodeView, Site};
use std::collections::HashMap;

/// What a configuration says of it.
#[derive(Clone, Debug)]
pub struct Pint {
    /// The target utilisation.
    pub eta: f64,
    /// Additive steps before a multiplicative one.
    pub max_stage: u32,
    /// The additive increase.
    pub ai: Rate,
    /// The least rate.
    pub min_rate: Rate,
    /// The base of the logarithms.
    pub log_base: f64,
    /// The share of ACKs that senders act on.
    pub share: f64,
    /// The longest round trip, in nanoseconds: switches average over it.
    pub longest_rtt: u32,
    /// The dice.
    pub dice: Shared,
}

/// Utilisation is counted in so many parts.
const PARTS: f64 = 512.0;
/// Binary places of approximate logarithms, and the bits of a number that they look at.
const PLACES: i32 = 1 << 15;
const LOOKED_AT: i32 = 16;

impl Pint {
    /// Whether a logarithm is kept in one byte and not in two.
    fn one_byte(&self) -> bool {
        ((PARTS * PARTS).ln() * self.log_factor()).log2().ceil() <= 8.0
    }

    fn log_factor(&self) -> f64 {
        1.0 / self.log_base.ln()
    }

    /// The logarithm of a utilisation.
    fn encode(&self, u: f64, dice: &mut Rand) -> u16 {
        let parts = ((u * PARTS).ceil() as u32).max(1) as f64;
        let power = parts.ln() * self.log_factor();
        let (above, below) = (power.ceil() as u16, power.floor() as u16);
        let mut upper = self.log_base.powf(above as f64);
        let lower = self.log_base.powf(below as f64);
        if above == below {
            upper *= self.log_base;
        }
        let up = ((dice.draw() % 65_536) as f64) < (parts - lower) / (upper - lower) * 65_536.0;
        if up { above } else { below }
    }

    fn decode(&self, power: u16) -> f64 {
        self.log_base.powf(power as f64) / PARTS
    }
}

/// The logarithm of a number as a switch approximates it: of its first bits, the rest rounded at random.
fn log2(x: i32, dice: &mut Rand) -> i32 {
    let mut looked_at = x;
    let bits = ((x as f64).log2() as i32).wrapping_add(1);
    if bits > LOOKED_AT {
        let hidden = bits - LOOKED_AT;
        let mask = (1u32 << hidden) - 1;
        looked_at = x >> hidden << hidden;
        if x as u32 & mask > dice.draw() & mask {
            looked_at = looked_at.wrapping_add(1 << hidden);
        }
    }
    ((looked_at as f64).log2() * PLACES as f64) as i32
}

impl Parameters for Pint {
    fn list(&self) -> Vec<Parameter> {
        Vec::new()
    }
    fn set(&mut self, _: &str, _: &Raw) -> Option<Result<(), ValueError>> {
        None
    }
}

impl Definition for Pint {
    fn name(&self) -> &'static str {
        "hpcc-pint"
    }
    fn about(&self) -> &'static str {
        "HPCC with one or two bytes of telemetry, as the reference simulator has it."
    }
    fn source(&self) -> &'static str {
        "R. Ben Basat et al., PINT: Probabilistic In-band Network Telemetry, SIGCOMM 2020"
    }
}

impl CongestionControlDef for Pint {
    fn switch_half(&self) -> Option<Box<dyn MarkingDef>> {
        Some(Box::new(self.clone()))
    }
    fn build(&self) -> Box<dyn CongestionControl> {
        Box::new(Senders { pint: self.clone(), flows: HashMap::new() })
    }
}

impl MarkingDef for Pint {
    fn switch(&self, site: &Site<'_>) -> Option<Box<dyn Marking>> {
        let port = |port: PortId| Port { bytes_per_second: site.rate(port).0 / 8, ..Port::default() };
        Some(Box::new(Switch { pint: self.clone(), ports: site.ports().map(port).collect() }))
    }
}

/// What a switch knows of an egress port.
#[derive(Clone, Default)]
struct Port {
    bytes_per_second: u64,
    /// Bytes of the last packet of any kind, and when it left.
    last: (u16, Time),
    u: f64,
}

struct Switch {
    pint: Pint,
    ports: Vec<Port>,
}

impl Port {
    /// The average utilisation when a packet leaves and `queued` bytes stay behind.
    fn utilisation(&self, now: Time, queued: u64, longest_rtt: u32, dice: &mut Rand) -> f64 {
        let rtt = longest_rtt as u64;
        let elapsed = (now.ns() - self.last.1.ns()).min(rtt);
        let places = PLACES as f64;
        let exact = |x: f64| x.log2() * places;
        let (log_rtt, log_rate, log_ns) = (exact(rtt as f64), exact(self.bytes_per_second as f64), exact(1e9));
        let (mut queue, mut sent, mut before) = (0.0, 0.0, 0.0);
        if queued >> 8 > 0 {
            let (log_elapsed, log_queued) = (log2(elapsed as i32, dice), log2((queued >> 8) as i32, dice));
            let sum = log_elapsed.wrapping_add(log_queued) as f64 + log_ns - log_rate - 2.0 * log_rtt;
            queue = 2f64.powf(sum / places) * 256.0;
        }
        if self.last.0 > 0 {
            let sum = log2(self.last.0 as i32, dice) as f64 + log_ns - log_rate - log_rtt;
            sent = 2f64.powf(sum / places);
        }
        if rtt > elapsed && self.u > 0.0 {
            let log_rest = log2((rtt - elapsed) as i32, dice);
            let log_u = log2((self.u * 8192.0).round() as i32, dice);
            before = 2f64.powf((log_rest.wrapping_add(log_u) as f64 - log_rtt) / places) / 8192.0;
        }
        queue + sent + before
    }
}

impl Marking for Switch {
    fn dequeued(&mut self, at: &mut NodeView<'_>, visit: &Visit) {
        let (now, queued) = (at.now(), at.queued(visit.out_port));
        let port = &mut self.ports[visit.out_port.index()];
        let (u, power) = self.pint.dice.with(|dice| {
            let u = port.utilisation(now, queued, self.pint.longest_rtt, dice);
            (u, self.pint.encode(u, dice))
        });
        (port.u, port.last) = (u, (visit.size, now));
        let written = &mut at.packet_mut(visit.packet).tag;
        if power > *written {
            *written = if self.pint.one_byte() { power & 0xff } else { power };
        }
    }

    fn passed(&mut self, at: &mut NodeView<'_>, port: PortId, size: u16) {
        self.ports[port.index()].last = (size, at.now());
    }
}

struct Flow {
    line: Rate,
    rate: Rate,
    stage: u32,
    /// The round trip ends when this byte is acknowledged; 0 before the first ACK.
    round: u64,
}

struct Senders {
    pint: Pint,
    flows: HashMap<u32, Flow>,
}

impl CongestionControl for Senders {
    fn needs(&self) -> Needs {
        Needs { every_ack: true, ..Needs::default() }
    }

    fn start(&mut self, slot: u32, flow: FlowStart) -> Permit {
        self.flows.insert(slot, Flow { line: flow.line, rate: flow.line, stage: 0, round: 0 });
        Permit::at(flow.line)
    }

    fn ack(&mut self, slot: u32, ack: &Ack<'_>, permit: &mut Permit) {
        let p = &self.pint;
        let drawn = p.dice.below(65_536) as u32;
        let Some(flow) = self.flows.get_mut(&slot).filter(|_| drawn < (65_536.0 * p.share) as u32) else { return };
        if flow.round == 0 {
            flow.round = ack.next;
            return;
        }
        let full = ack.seq > flow.round;
        let excess = p.decode(ack.tag) / p.eta;
        let (rate, stage) = match excess >= 1.0 || flow.stage >= p.max_stage {
            true => (((flow.rate.0 as f64 / excess) as u64).saturating_add(p.ai.0), 0),
            false => (flow.rate.0.saturating_add(p.ai.0), flow.stage + 1),
        };
        let rate = Rate(rate).max(p.min_rate).min(flow.line);
        (permit.rate, permit.repace) = (rate, true);
        if full {
            (flow.rate, flow.stage, flow.round) = (rate, stage, flow.round.max(ack.next));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pint(log_base: f64) -> Pint {
        Pint {
            eta: 0.95,
            max_stage: 0,
            ai: Rate::from_mbps(50),
            min_rate: Rate::from_mbps(100),
            log_base,
            share: 1.0,
            longest_rtt: 8_320,
            dice: Shared::default(),
        }
    }

    #[test]
    fn a_utilisation_is_written_to_within_a_step_of_the_logarithm() {
        let mut dice = Rand::default();
        for (base, one_byte) in [(1.05, true), (1.01, false)] {
            let pint = pint(base);
            assert_eq!(pint.one_byte(), one_byte);
            for u in [0.01, 0.3, 0.95, 1.0, 3.7] {
                let read = pint.decode(pint.encode(u, &mut dice));
                let parts = (u * PARTS).ceil() / PARTS;
                assert!(read / parts < base * 1.000_001 && parts / read < base * 1.000_001, "{u} as {read}");
            }
        }
    }

    #[test]
    fn a_full_port_with_a_queue_is_used_more_than_once() {
        // Packets of 1050 B back to back at 100 Gb/s, and half a bandwidth-delay product that stays behind them.
        let mut dice = Rand::default();
        let mut port = Port { bytes_per_second: 12_500_000_000, ..Port::default() };
        for i in 1..2_000 {
            let now = Time::from_ns(84 * i);
            port.u = port.utilisation(now, 52_000, 8_320, &mut dice);
            port.last = (1_050, now);
        }
        assert!((1.45..1.55).contains(&port.u), "{}", port.u);
    }
}
