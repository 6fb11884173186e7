//! When collectives were done: round by round, and step by step.

use engine::Time;
use fabric::Outcome;
use results::measure::Spread;
use results::tables::{Column, Columns};
use serde::Serialize;
use std::ops::Range;
use traffic::Messages;

/// A collective in a few numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Together {
    /// Its group.
    pub name: String,
    /// What was done.
    pub kind: &'static str,
    /// How many hosts took part.
    pub hosts: u64,
    /// Steps of a round.
    pub steps: u64,
    /// How often it was to be done.
    pub rounds: u64,
    /// How often it was done.
    pub finished: usize,
    /// From the start of a round's first message to the receipt of its last, in picoseconds, over the rounds that were done.
    pub completion_ps: Spread,
    /// The size over the mean completion time, in bits per second, as NCCL's tests define it.
    pub algorithm_bps: Option<f64>,
    /// The same times what an algorithm that moves the least takes of every host's link, as NCCL's tests define bus bandwidth.
    pub bus_bps: Option<f64>,
    /// From the start of the first round to the end of the last, with what hosts compute in between; none if it is not done.
    pub total_ps: Option<u64>,
}

/// From when to when messages were under way: none where one did not start, or was not received.
fn span(outcome: &Outcome, messages: Range<usize>) -> (Option<u64>, Option<u64>) {
    let flows = &outcome.flows[messages];
    let begin = flows.iter().map(|flow| flow.start).min().filter(|&start| start != Time::MAX);
    let end = flows.iter().map(|flow| flow.received).max().filter(|&end| end != Time::MAX);
    (begin.map(|time| time.0), end.map(|time| time.0))
}

/// All messages of a round.
fn round(messages: &Messages, round: u64) -> Range<usize> {
    messages.step(round, 0).start..messages.step(round, messages.steps() - 1).end
}

fn name<'a>(groups: &'a [String], messages: &Messages) -> &'a str {
    groups.get(messages.group as usize).map_or("", String::as_str)
}

impl Together {
    pub(crate) fn new(groups: &[String], messages: &Messages, outcome: &Outcome) -> Together {
        let spans: Vec<_> = (0..messages.rounds).map(|at| span(outcome, round(messages, at))).collect();
        let took = |&(begin, end): &(Option<u64>, Option<u64>)| Some((end? - begin?) as f64);
        let times: Vec<f64> = spans.iter().filter_map(took).collect();
        let ends: Option<Vec<u64>> = spans.iter().map(|span| span.1).collect();
        let total = ends.and_then(|ends| Some(ends.into_iter().max()? - spans.first()?.0?));
        let completion = Spread::of(times);
        let counted = messages.operation.counted(messages.hosts, messages.size);
        let algorithm = completion.mean.filter(|&mean| mean > 0.0).map(|mean| counted * 8e12 / mean);
        let (pieces, of) = messages.operation.bus(messages.hosts);
        Together {
            name: name(groups, messages).into(),
            kind: messages.operation.word(),
            hosts: messages.hosts,
            steps: messages.steps(),
            rounds: messages.rounds,
            finished: completion.count,
            completion_ps: completion,
            algorithm_bps: algorithm,
            bus_bps: algorithm.map(|bps| bps * pieces as f64 / of as f64),
            total_ps: total,
        }
    }
}

/// A row for each round, without a step, and one for each of its steps.
pub(crate) fn columns(groups: &[String], collectives: &[Messages], outcome: &Outcome) -> Columns {
    let mut rows: Vec<(&Messages, u64, Option<u64>, Range<usize>)> = Vec::new();
    for messages in collectives {
        for at in 0..messages.rounds {
            rows.push((messages, at, None, round(messages, at)));
            rows.extend((0..messages.steps()).map(|step| (messages, at, Some(step), messages.step(at, step))));
        }
    }
    let spans: Vec<_> = rows.iter().map(|row| span(outcome, row.3.clone())).collect();
    vec![
        ("collective", Column::texts(rows.iter().map(|row| name(groups, row.0)))),
        ("kind", Column::texts(rows.iter().map(|row| row.0.operation.word()))),
        ("round", Column::counts(rows.iter().map(|row| row.1))),
        ("step", Column::maybe_counts(rows.iter().map(|row| row.2))),
        ("messages", Column::counts(rows.iter().map(|row| row.3.len() as u64))),
        ("start_ps", Column::maybe_counts(spans.iter().map(|span| span.0))),
        ("end_ps", Column::maybe_counts(spans.iter().map(|span| span.1))),
        ("completion_ps", Column::maybe_counts(spans.iter().map(|&(begin, end)| Some(end? - begin?)))),
    ]
}
