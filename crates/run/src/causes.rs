//! The stops of a run, by the names of nodes.

use fabric::Outcome;
use fabric::probe::{self, Scope, Waiting};
use fabric::routing::PortMap;
use fabric::topology::Graph;
use results::causes::{self, Causes};
use std::collections::HashMap;

/// All stops of a run that was asked why.
pub fn of(graph: &Graph, map: &PortMap, outcome: &Outcome) -> Option<Causes> {
    let all = outcome.stops.as_ref()?;
    let name = |port: u32| graph.nodes[map.node[port as usize] as usize].name.clone();
    let mut ports = HashMap::new();
    for port in all.stops.iter().flat_map(|stop| [Some(stop.port), stop.fill.map(|fill| fill.port)]).flatten() {
        ports.entry(port as u64).or_insert_with(|| (name(port), name(map.peer[port as usize])));
    }
    let fill = |fill: probe::Fill| causes::Fill {
        port: fill.port as u64,
        queue: fill.queue as u64,
        bytes: fill.bytes,
        flows: fill.flows as u64,
        waiting: match fill.waiting {
            Waiting::Busy => causes::Waiting::Busy,
            Waiting::Stopped => causes::Waiting::Stopped,
            Waiting::Draining => causes::Waiting::Draining,
            Waiting::Down => causes::Waiting::Down,
            Waiting::Receiver => causes::Waiting::Receiver,
        },
    };
    let stop = |stop: &probe::Stop| causes::Stop {
        port: stop.port as u64,
        scope: match stop.scope {
            Scope::Class(class) => causes::Scope::Class(class.0),
            Scope::Queue(queue) => causes::Scope::Queue(queue.0 as u64),
            Scope::Held(queue) => causes::Scope::Held(queue.0 as u64),
            Scope::Flow(flow) => causes::Scope::Flow(flow.0 as u64),
        },
        from_ps: stop.from.0,
        until_ps: stop.until.map(|until| until.0),
        by: stop.by as usize,
        ordered_ps: stop.ordered.map(|time| time.0),
        fill: stop.fill.map(fill),
        cause: stop.cause.map(|cause| cause as usize),
    };
    let wait = |kept: &probe::Kept| causes::Wait {
        stop: kept.stop as usize,
        flow: kept.flow.0 as u64,
        time_ps: kept.time.0,
        victim: kept.victim,
    };
    Some(Causes {
        nodes: graph.nodes.iter().map(|node| node.name.clone()).collect(),
        ports,
        stops: all.stops.iter().map(stop).collect(),
        waits: all.kept.iter().map(wait).collect(),
        end_ps: outcome.end.0,
    })
}
