//! Why flows took the time they took: the table of their parts, and its sums.

use fabric::Outcome;
use fabric::probe::{Place, Span};
use fabric::routing::PortMap;
use fabric::topology::Graph;
use results::tables::{Column, Columns};
use serde::Serialize;
use std::collections::BTreeMap;

/// What a run that was asked knows of the causes of what happened.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Why {
    /// Where the time of flows went, by group.
    pub parts: Vec<GroupParts>,
}

/// Where the time of a group's flows went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GroupParts {
    /// Its name.
    pub group: String,
    /// Flows that were received to the end.
    pub finished: usize,
    /// The sum of their completion times, which is that of their parts.
    pub completion_ps: u64,
    /// By part, the sum over these flows.
    pub parts_ps: BTreeMap<&'static str, u64>,
    /// By part, the sum over the flows that were not, to the end of the run; left out where all were.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub unfinished_ps: BTreeMap<&'static str, u64>,
}

impl Why {
    /// Of a run that was asked.
    pub fn new(groups: &[String], outcome: &Outcome) -> Option<Why> {
        let spans = outcome.parts.as_ref()?;
        let empty = |group: &String| GroupParts {
            group: group.clone(),
            finished: 0,
            completion_ps: 0,
            parts_ps: BTreeMap::new(),
            unfinished_ps: BTreeMap::new(),
        };
        let mut all: Vec<GroupParts> = groups.iter().map(empty).collect();
        for flow in spans.chunk_by(|a, b| a.flow == b.flow) {
            let first = &flow[0];
            let Some(group) = all.get_mut(outcome.flows[first.flow.index()].spec.tag as usize) else { continue };
            group.finished += first.finished as usize;
            for span in flow {
                if span.finished {
                    group.completion_ps = group.completion_ps.saturating_add(span.time.0);
                }
                let sums = if span.finished { &mut group.parts_ps } else { &mut group.unfinished_ps };
                let sum = sums.entry(span.part.name()).or_default();
                *sum = sum.saturating_add(span.time.0);
            }
        }
        Some(Why { parts: all })
    }
}

/// The table of parts.
pub(crate) fn part_columns(graph: &Graph, map: &PortMap, spans: &[Span]) -> Columns {
    let node = |port: usize| graph.nodes[map.node[port] as usize].name.as_str();
    let ports: Vec<String> =
        (0..map.count()).map(|port| format!("{}->{}", node(port), node(map.peer[port] as usize))).collect();
    let place = |span: &Span| match span.place {
        Place::Node(number) => graph.nodes[number as usize].name.as_str(),
        Place::Port(port) => ports[port as usize].as_str(),
    };
    vec![
        ("flow", Column::counts(spans.iter().map(|span| span.flow.0 as u64))),
        ("part", Column::texts(spans.iter().map(|span| span.part.name()))),
        ("place", Column::texts(spans.iter().map(place))),
        ("hop", Column::maybe_counts(spans.iter().map(|span| span.hop.map(u64::from)))),
        ("time_ps", Column::counts(spans.iter().map(|span| span.time.0))),
        ("finished", Column::small(spans.iter().map(|span| span.finished as u8))),
    ]
}
