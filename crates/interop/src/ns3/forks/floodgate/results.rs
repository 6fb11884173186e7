//! Floodgate's completion times: what a flow would take alone, and a line when its last byte arrives beside the one when it is acknowledged.

use crate::ns3::Inputs;
use crate::ns3::config::Config;
use crate::ns3::flows::FlowLine;
use crate::ns3::topology::Topology;
use engine::Time;
use fabric::Outcome;
use std::collections::HashMap;
use std::fmt::Write;

/// What its formula takes for the headers of a packet.
const HEADERS: u32 = 78;
/// What it takes for an acknowledgement.
const ACK: u32 = 84;

/// What a flow would take alone, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ideal {
    /// Until its last acknowledgement.
    pub acknowledged: u64,
    /// Until its last byte.
    pub received: u64,
}

/// The shortest ways between hosts, by the sums of delays and of the times that 1000 bytes take on each link.
pub struct Ways {
    of: HashMap<u32, Vec<(u64, u64)>>,
    payload: u32,
    bytes_per_second: f64,
}

impl Ways {
    /// From the sources of these flows.
    pub fn new(config: &Config, topology: &Topology, flows: &[FlowLine]) -> Ways {
        let mut next: Vec<Vec<(u32, u64, u64)>> = vec![Vec::new(); topology.nodes() as usize];
        for link in &topology.links {
            let sending = 8_000_000_000_000 / link.rate.0.max(1);
            for (from, to) in [(link.a, link.b), (link.b, link.a)] {
                if let Some(next) = next.get_mut(from as usize) {
                    next.push((to, link.delay.ns(), sending));
                }
            }
        }
        let mut of = HashMap::new();
        for flow in flows {
            of.entry(flow.src).or_insert_with(|| shortest(&next, flow.src));
        }
        let rate = topology.hosts().next().and_then(|host| topology.links.iter().find(|l| l.a == host || l.b == host));
        let bytes_per_second = (rate.map_or(1, |link| link.rate.0) / 8) as f64;
        Ways { of, payload: config.packet_payload_size, bytes_per_second }
    }

    /// What a flow would take alone, by the simulator's formula.
    pub fn ideal(&self, flow: &FlowLine) -> Ideal {
        let ways = self.of.get(&flow.src).and_then(|ways| ways.get(flow.dst as usize));
        let (delay, sending) = ways.copied().unwrap_or_default();
        // In microseconds.
        let alone = |bytes: u32| (delay as f64 + sending as f64 / 1000.0 * bytes as f64) / 1000.0;
        let (full, rest) = (flow.size / self.payload as u64, (flow.size % self.payload as u64) as u32);
        let of = |back: f64| {
            let seconds = match full {
                0 => alone(rest) / 1e6 + back / 1e6,
                _ => {
                    let mtu = self.payload + HEADERS;
                    (alone(mtu) + back) / 1e6
                        + ((full - 1) * mtu as u64) as f64 / self.bytes_per_second
                        + (rest + HEADERS) as f64 / self.bytes_per_second
                }
            };
            (seconds * 1e9) as u64
        };
        Ideal { acknowledged: of(alone(ACK)), received: of(0.0) }
    }
}

/// The least sums from one node to all others, of delays and of sending times each for itself.
fn shortest(next: &[Vec<(u32, u64, u64)>], from: u32) -> Vec<(u64, u64)> {
    const FAR: u64 = u64::MAX / 4;
    let mut found = vec![(FAR, FAR); next.len()];
    if let Some(own) = found.get_mut(from as usize) {
        *own = (0, 0);
    }
    let mut changed = vec![from];
    while !changed.is_empty() {
        let mut again = Vec::new();
        for node in changed {
            let Some(&(delay, sending)) = found.get(node as usize) else { continue };
            for &(to, on, time) in next.get(node as usize).into_iter().flatten() {
                let Some(best) = found.get_mut(to as usize) else { continue };
                let better = (best.0.min(delay + on), best.1.min(sending + time));
                if better != *best {
                    *best = better;
                    again.push(to);
                }
            }
        }
        again.sort_unstable();
        again.dedup();
        changed = again;
    }
    found
}

/// The lines, in the order of time: `rcv` when all has arrived, without that word when all is acknowledged.
pub fn text(inputs: &Inputs, outcome: &Outcome) -> String {
    let ways = Ways::new(&inputs.config, &inputs.topology, &inputs.flows);
    let mut lines: Vec<(Time, bool, usize)> = Vec::new();
    let finished = |time: Time| time != Time::MAX;
    lines.extend(outcome.finished.iter().map(|id| (outcome.flows[id.index()].acknowledged, true, id.index())));
    let received = outcome.flows.iter().enumerate().filter(|(_, flow)| finished(flow.received));
    lines.extend(received.map(|(at, flow)| (flow.received, false, at)));
    // Those that are acknowledged at the same instant stay in their order.
    lines.sort_by_key(|&(time, acknowledged, _)| (time, acknowledged));
    let mut out = String::new();
    for (time, acknowledged, at) in lines {
        let Some((record, line)) = outcome.flows.get(at).zip(inputs.flows.get(at)) else { continue };
        let ideal = ways.ideal(line);
        let (word, ideal) = if acknowledged { ("", ideal.acknowledged) } else { ("rcv ", ideal.received) };
        let FlowLine { src, dst, size, message: (pair, number), .. } = line;
        let (start, fct) = (record.spec.start.ns(), (time - record.spec.start).ns() as f64);
        let _ = write!(out, "{word}{src}\t{dst}\t{size}\t{start}\t{pair}\t{number}\t");
        let _ = writeln!(out, "{:.6}\t{:.6}\t{:.6} ", fct / 1e3, ideal as f64 / 1e3, fct / ideal.max(1) as f64);
    }
    out
}
