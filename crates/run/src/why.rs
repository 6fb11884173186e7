//! Why flows took the time they took: the table of their parts, and its sums.

use fabric::Outcome;
use fabric::probe::{Part, Place, Span};
use fabric::topology::Graph;
use results::causes::{Causes, Root};
use results::tables::{Column, Columns};
use serde::Serialize;
use std::collections::BTreeMap;

/// What a run that was asked knows of the causes of what happened.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Why {
    /// Where the time of flows went, by group.
    pub parts: Vec<GroupParts>,
    /// How many stops there were.
    pub stops: usize,
    /// What the chains of causes lead to, worst first.
    pub roots: Vec<Root>,
    /// The account that came nearest to its threshold; left out where there is no threshold, or something was stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fullest_account: Option<FullestAccount>,
    /// The port that came nearest to where marking begins; left out where no port marks, or one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fullest_port: Option<FullestAccount>,
    /// Whether congestion control sees nothing but marks.
    pub marks_only: bool,
    /// Whether the thresholds of accounts follow what is free.
    pub dynamic: bool,
}

/// An account, or a port, and its threshold.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FullestAccount {
    /// Bytes that count against the threshold.
    pub bytes: u64,
    /// The threshold then.
    pub threshold: u64,
    /// One over the other.
    pub share: f64,
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
    pub fn new(groups: &[String], causes: Option<&Causes>, outcome: &Outcome) -> Option<Why> {
        let (spans, stops, causes) = (outcome.parts.as_ref()?, outcome.stops.as_ref()?, causes?);
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
        let account = |(bytes, threshold): (u64, u64)| FullestAccount {
            bytes,
            threshold,
            share: bytes as f64 / threshold as f64,
        };
        Some(Why {
            parts: all,
            stops: causes.stops.len(),
            roots: causes.roots(),
            fullest_account: stops.fullest.map(account),
            fullest_port: stops.fullest_port.map(account),
            marks_only: stops.marks_only,
            dynamic: stops.dynamic,
        })
    }
}

/// The table of parts, given the names of all ports.
pub(crate) fn part_columns(graph: &Graph, ports: &[String], spans: &[Span]) -> Columns {
    let nodes = graph.nodes.iter().map(|node| node.name.as_str());
    let places: Vec<&str> = nodes.chain(ports.iter().map(String::as_str)).collect();
    let place = |span: &Span| match span.place {
        Place::Node(number) => number as usize,
        Place::Port(port) => graph.nodes.len() + port as usize,
    };
    let parts = Part::ALL.map(Part::name);
    vec![
        ("flow", Column::counts(spans.iter().map(|span| span.flow.0 as u64))),
        ("part", Column::named(&parts, spans.iter().map(|span| span.part as usize))),
        ("place", Column::named(&places, spans.iter().map(place))),
        ("hop", Column::maybe_counts(spans.iter().map(|span| span.hop.map(u64::from)))),
        ("time_ps", Column::counts(spans.iter().map(|span| span.time.0))),
        ("finished", Column::small(spans.iter().map(|span| span.finished as u8))),
    ]
}
