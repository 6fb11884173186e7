//! The reference's output files, in its formats.

use super::forks::Results;
use engine::Time;
use fabric::Outcome;
use fabric::routing::PortMap;
use fabric::topology::{Graph, Kind};
use std::fmt::Write;

/// `fct.txt`: a line per finished flow, in the order they finished.
pub fn fct(outcome: &Outcome, results: Results) -> String {
    let mut out = String::new();
    for &flow in &outcome.finished {
        let record = &outcome.flows[flow.index()];
        let (spec, fct) = (&record.spec, record.acknowledged - record.spec.start);
        let _ = match results {
            Results::Numbers => write!(out, "{} {} ", spec.src, spec.dst),
            Results::Addresses | Results::Tabs => {
                write!(out, "{:08x} {:08x} ", spec.tuple.source, spec.tuple.destination)
            }
        };
        let _ = writeln!(
            out,
            "{} {} {} {} {} {}",
            spec.tuple.source_port,
            spec.tuple.destination_port,
            spec.size,
            spec.start.ns(),
            fct.ns(),
            spec.ideal.ns(),
        );
    }
    out
}

/// `pfc.txt`: a line per pause (1) or resume (0), at the port that obeys it.
pub fn pfc(outcome: &Outcome, graph: &Graph, map: &PortMap) -> String {
    let mut out = String::new();
    for event in &outcome.pause_log {
        let node = map.node[event.port as usize];
        let kind = (graph.nodes[node as usize].kind == Kind::Switch) as u8;
        let index = event.port - map.base[node as usize] + 1;
        let _ = writeln!(out, "{} {node} {kind} {index} {}", event.time.ns(), event.pause as u8);
    }
    out
}

/// The queue-length monitor's file: at every hundredth of a second, the histogram so far of each switch port.
pub fn queue_lengths(outcome: &Outcome, graph: &Graph, map: &PortMap) -> String {
    let mut out = String::new();
    for (time, histograms) in &outcome.monitor {
        let _ = writeln!(out, "time: {}", time.ns());
        for (port, counts) in histograms.iter().enumerate() {
            let node = map.node[port];
            if graph.nodes[node as usize].kind == Kind::Host {
                continue;
            }
            let _ = write!(out, "{node} {}", port as u32 - map.base[node as usize] + 1);
            counts.iter().for_each(|count| _ = write!(out, " {count}"));
            out.push('\n');
        }
    }
    out
}

/// What ConWeave's simulator says that its load balancers counted, in its words; nothing for others.
pub fn counts(outcome: &Outcome) -> String {
    const LINES: [(&str, &str); 10] = [
        ("flowlet_timeouts", "Number of flowlet's timeout"),
        ("conweave_replies", "Number of INIT's Reply sent (RTT_REPLY)"),
        ("conweave_timely_replies", "Number of Timely RTT_REPLY (INIT's Reply)"),
        ("conweave_clears", "Number of TAIL's Reply Sent (CLEAR)"),
        ("conweave_timely_clears", "Number of Timely CLEAR (TAIL's Reply)"),
        ("conweave_notifies", "Number of NOTIFY Sent"),
        ("conweave_reroutes", "Number of Rerouting"),
        ("conweave_reordered", "Number of OoO enqueued pkts"),
        ("conweave_flushes", "Number of VOQ Flush Total"),
        ("conweave_flushes_by_tail", "Number of VOQ Flush by TAIL"),
    ];
    let value = |name: &str| outcome.switches.iter().find(|counter| counter.name == name).map(|counter| counter.value);
    let line = |(name, words): (&str, &str)| value(name).map(|value| format!("{words}:{value}\n"));
    LINES.into_iter().filter_map(line).collect()
}

/// A line for people: how a run went.
pub fn summary(outcome: &Outcome, wall: std::time::Duration) -> String {
    let c = &outcome.counts;
    let secs = wall.as_secs_f64();
    let last = outcome.flows.iter().map(|f| f.acknowledged).filter(|&t| t != Time::MAX).max().unwrap_or_default();
    format!(
        "{} of {} flows finished, the last at {:.6} s; {} packet-hops in {secs:.2} s ({:.2} M/s, {:.2} events each); {} pauses, \
         {} packets dropped",
        outcome.finished.len(),
        outcome.flows.len(),
        last.secs_f64(),
        c.hops,
        c.hops as f64 / secs.max(1e-9) / 1e6,
        c.events as f64 / c.hops.max(1) as f64,
        c.pauses,
        c.dropped(),
    )
}
