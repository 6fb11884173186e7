//! The stops of a run, by the names of nodes.

use fabric::Outcome;
use fabric::probe::{self, Lost, Part, Place, Scope, Span, Waiting};
use fabric::routing::PortMap;
use fabric::run::Stall;
use fabric::topology::{Graph, Link};
use results::causes::{self, Causes, Filler, How, Loss};
use results::records::link_names;

/// The names of all ports.
fn port_names(graph: &Graph, map: &PortMap) -> Vec<String> {
    let node = |port: usize| graph.nodes[map.node[port] as usize].name.as_str();
    link_names((0..map.count()).map(|port| (node(port), node(map.peer[port] as usize))))
}

/// All stops of a run that was asked why.
pub fn of(graph: &Graph, map: &PortMap, outcome: &Outcome) -> Option<Causes> {
    let all = outcome.stops.as_ref()?;
    let mut rules: Vec<&str> = Vec::new();
    let mut rule = |text| {
        rules.iter().position(|known| *known == text).unwrap_or_else(|| {
            rules.push(text);
            rules.len() - 1
        })
    };
    let fill = |fill: probe::Fill| causes::Fill {
        port: fill.port as u64,
        queue: fill.queue as u64,
        bytes: fill.bytes,
        flows: fill.flows as u64,
        waiting: match fill.waiting {
            Waiting::Busy => causes::Waiting::Busy,
            Waiting::Stopped => causes::Waiting::Stopped,
            Waiting::Draining => causes::Waiting::Draining,
            Waiting::Released => causes::Waiting::Released,
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
        also: stop.also.iter().map(|&port| port as u64).collect(),
        rule: stop.rule.map(&mut rule),
        cause: stop.cause.map(|cause| cause as usize),
    };
    let wait = |kept: &probe::Kept| causes::Wait {
        stop: kept.stop as usize,
        flow: kept.flow.0 as u64,
        time_ps: kept.time.0,
        victim: kept.victim,
    };
    let filler = |filler: &probe::Filler| Filler {
        port: filler.port as u64,
        flow: filler.flow.0 as u64,
        drops: filler.drops,
        bytes: filler.bytes,
    };
    let stops = all.stops.iter().map(stop).collect();
    Some(Causes {
        nodes: graph.nodes.iter().map(|node| node.name.clone()).collect(),
        ends: (0..map.count())
            .map(|port| (map.node[port] as usize, map.node[map.peer[port] as usize] as usize))
            .collect(),
        names: port_names(graph, map),
        rules: rules.into_iter().map(String::from).collect(),
        stops,
        waits: all.kept.iter().map(wait).collect(),
        losses: losses(graph, map, outcome, &all.losses, fill),
        fillers: all.fillers.iter().map(filler).collect(),
        ended_ps: outcome.flows.iter().map(|flow| flow.received.0).collect(),
        end_ps: outcome.end.0,
        deadlock: matches!(outcome.stall, Some(Stall::Deadlock(_))),
        stalled: outcome.stall.is_some(),
    })
}

/// What flows lost, and what it cost them; and who waited for the link of its NIC, or while a link repeated.
fn losses(
    graph: &Graph,
    map: &PortMap,
    outcome: &Outcome,
    lost: &[probe::Loss],
    fill: impl Fn(probe::Fill) -> causes::Fill,
) -> Vec<Loss> {
    let spans = || outcome.parts.iter().flatten();
    let loss = |loss: &probe::Loss| Loss {
        port: loss.port as u64,
        how: match loss.how {
            Lost::Fault => How::Fault,
            Lost::Down => How::Down,
            Lost::NoPath => How::NoPath,
            Lost::Room => How::Room,
        },
        flow: loss.flow.0 as u64,
        packets: loss.packets,
        first_ps: loss.first.0,
        last_ps: loss.last.0,
        cost_ps: loss.cost.0,
        fill: loss.fill.map(&fill),
        cause: loss.cause.map(|cause| cause as usize),
        victim: loss.victim,
    };
    let waited = |span: &Span, how: How, port: u32| {
        let record = &outcome.flows[span.flow.index()];
        Loss {
            port: port as u64,
            how,
            flow: span.flow.0 as u64,
            packets: 0,
            first_ps: record.start.0,
            last_ps: record.received.min(outcome.end).0,
            cost_ps: span.time.0,
            fill: None,
            cause: None,
            victim: false,
        }
    };
    // Of a host's links the one that does such a thing.
    let own = |span: &Span, does: &dyn Fn(&Link) -> bool| {
        let mut own = map.of(outcome.flows[span.flow.index()].spec.src.0);
        let first = own.start;
        own.find(|port| does(&graph.links[map.link[*port as usize] as usize])).unwrap_or(first)
    };
    let fails = |link: &Link| link.failures().next().is_some();
    let repeats = |link: &Link| link.retry.is_some();
    let mut all: Vec<Loss> = lost.iter().map(loss).collect();
    if graph.fallible() {
        let down = spans().filter(|span| span.part == Part::Down);
        all.extend(down.map(|span| waited(span, How::Down, own(span, &fails))));
    }
    if graph.repeats() {
        let repeated = spans().filter(|span| span.part == Part::Retry);
        all.extend(repeated.map(|span| {
            let port = match span.place {
                Place::Port(port) => port,
                Place::Node(_) => own(span, &repeats),
            };
            waited(span, How::Retry, port)
        }));
    }
    all.sort_by_key(|loss| (loss.port, loss.how, loss.flow));
    // Behind what its NIC repeats, and repeated itself.
    all.dedup_by(|next, kept| {
        let same = next.how == How::Retry && (next.port, next.how, next.flow) == (kept.port, kept.how, kept.flow);
        kept.cost_ps += if same { next.cost_ps } else { 0 };
        same
    });
    all
}
