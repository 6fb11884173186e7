//! What PowerTCP's programs print as they run, which its scripts sift for their figures.

use super::Program;
use crate::ns3::Inputs;
use engine::Time;
use fabric::Outcome;
use fabric::routing::PortMap;
use fabric::setup::SeriesSetup;
use fabric::topology::Graph;
use std::fmt::Write;

/// The port of the first ToR of which the burst program prints power.
const RECEIVER: usize = 16;

/// What the program looks at, and how often. Round trips are those of the nearest and the farthest pair of hosts, in nanoseconds.
pub fn series(inputs: &Inputs, map: &PortMap, (shortest, longest): (u64, u64)) -> Option<SeriesSetup> {
    let (factor, rtt, ports) = match inputs.options.datacenter.program? {
        Program::Burst => (1.5, shortest, receivers(inputs, map)),
        Program::Fairness => (0.5, longest, senders(inputs, map)),
        Program::Workload => return None,
    };
    let every = Time::from_ns(fabric::clock::whole_ns(factor * rtt as f64 * 1e-9).max(1));
    Some(SeriesSetup { every, ports, flows: Vec::new() })
}

/// The ports by which the first switch sends to its hosts, then those by which these hosts send.
fn receivers(inputs: &Inputs, map: &PortMap) -> Vec<u32> {
    let topology = &inputs.topology;
    let Some(tor) = (0..topology.nodes()).find(|&node| !topology.is_host(node)) else { return Vec::new() };
    let to_hosts = map.of(tor).filter(|&port| topology.is_host(map.node[map.peer[port as usize] as usize]));
    let down: Vec<u32> = to_hosts.collect();
    let up: Vec<u32> = down.iter().map(|&port| map.peer[port as usize]).collect();
    [down, up].concat()
}

/// The first port of as many hosts as there are flows.
fn senders(inputs: &Inputs, map: &PortMap) -> Vec<u32> {
    let hosts = inputs.topology.hosts().take(inputs.flows.len());
    hosts.filter_map(|host| map.of(host).next()).collect()
}

/// The lines.
pub fn text(inputs: &Inputs, graph: &Graph, outcome: &Outcome, longest: u64) -> String {
    match inputs.options.datacenter.program {
        None => String::new(),
        Some(Program::Burst) => burst(graph, outcome, longest),
        Some(Program::Fairness) => fairness(outcome),
        Some(Program::Workload) => workload(outcome),
    }
}

/// Of every sample but the first: its instant, the time since the one before, and what each port sent since.
fn steps(outcome: &Outcome) -> impl Iterator<Item = (f64, f64, Vec<(u64, u64)>)> + '_ {
    let width = outcome.watched.0.len().max(1);
    let rows = outcome.series.ports.chunks(width);
    let rows: Vec<_> = outcome.series.times.iter().zip(rows).collect();
    (1..rows.len()).map(move |at| {
        let ((before, old), (now, new)) = (rows[at - 1], rows[at]);
        let sent = new.iter().zip(old).map(|(new, old)| (new.0, new.1 - old.1)).collect();
        (now.secs_f64(), (*now - *before).secs_f64(), sent)
    })
}

fn burst(graph: &Graph, outcome: &Outcome, longest: u64) -> String {
    let map = PortMap::new(graph);
    let ports = &outcome.watched.0[..outcome.watched.0.len() / 2];
    let mut out = String::new();
    for (time, step, row) in steps(outcome) {
        let (down, up) = row.split_at(ports.len());
        // As the program has it: bytes beside bits, and what was printed for the port before where there is nothing of its own.
        let (mut power, mut at_receiver) = (0.0, 0.0);
        for (number, &(queued, sent)) in down.iter().enumerate() {
            let throughput = sent as f64 * 8.0 / step;
            if number == RECEIVER {
                let rate = map.rate(graph, ports[number]).0 as f64;
                let base = rate * longest as f64 * 1e-9;
                power = up[number].1 as f64 * 8.0 / step * (queued as f64 + base) / (rate * base);
                at_receiver = throughput;
            }
            let _ = writeln!(
                out,
                "ToR 0 Port {number} throughput {} txBytes {sent} qlen {queued} time {} normpower {}",
                six(throughput),
                six(time),
                six(power)
            );
        }
        let buffer: u64 = down.iter().map(|port| port.0).sum();
        let _ = writeln!(out, "ToR 0 Total 0 throughput {} buffer {buffer} time {}", six(at_receiver), six(time));
    }
    out
}

fn fairness(outcome: &Outcome) -> String {
    let mut out = String::new();
    for (time, step, row) in steps(outcome) {
        for (number, (_, sent)) in row.iter().enumerate() {
            let throughput = six(*sent as f64 * 8.0 / step);
            let _ = writeln!(out, "Src {number} Total 0 throughput {throughput} time {}", six(time));
        }
    }
    out
}

fn workload(outcome: &Outcome) -> String {
    let mut out = String::new();
    for &id in &outcome.finished {
        let record = &outcome.flows[id.index()];
        let (spec, fct) = (&record.spec, record.acknowledged - record.spec.start);
        let _ = writeln!(out, "FCT {} size {} baseFCT {}", fct.ns(), spec.size, spec.ideal.ns());
    }
    out
}

/// A number as C++ prints it: six digits, without zeros at the end, with an exponent where it is very large or very small.
fn six(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let text = format!("{value:.5e}");
    let Some((digits, exponent)) = text.split_once('e') else { return text };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text.to_string(),
    };
    if (-4..6).contains(&exponent) {
        return trim(&format!("{value:.*}", (5 - exponent).max(0) as usize));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trim(digits), exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_printed_as_in_c() {
        for (value, text) in [
            (0.0, "0"),
            (0.130007, "0.130007"),
            (0.1300068, "0.130007"),
            (2.5e10, "2.5e+10"),
            (24_985_714_285.0, "2.49857e+10"),
            (1_000_000.0, "1e+06"),
            (999_999.4, "999999"),
            (999_999.6, "1e+06"),
            (0.000123456, "0.000123456"),
            (0.0000123456, "1.23456e-05"),
            (-1.5, "-1.5"),
        ] {
            assert_eq!(six(value), text);
        }
    }
}
