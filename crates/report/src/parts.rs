//! Where the time of flows went: a waterfall of the slowest flow of each group, and shares by size.

use crate::Format;
use crate::spans::{Span, SpanRow, Spans, rank};
use results::parts::PartRow;
use results::records::{FlowRow, Records};
use serde_json::Value;
use std::collections::BTreeMap;

/// The most groups that have a waterfall.
const MOST: usize = 6;
/// The least share that is worth a word.
const LEAST: f64 = 0.01;

/// The charts of a run that was asked where time goes: shares first.
pub fn charts(run: &Records, parts: &[PartRow<'_>]) -> Vec<Spans> {
    let shares = shares(run, parts);
    shares.into_iter().chain(waterfalls(run, parts)).collect()
}

/// The names of the groups, in order.
fn groups(run: &Records) -> Vec<&str> {
    let all = run.summary["groups"].as_array();
    all.into_iter().flatten().filter_map(|group| group["name"].as_str()).collect()
}

/// How many flows there are of a group and size, and the time of each part.
type Class<'a> = (usize, BTreeMap<&'a str, f64>);

/// Of flows of each size, the share of every part in their time.
fn shares(run: &Records, parts: &[PartRow<'_>]) -> Option<Spans> {
    let bins: Vec<(u64, Option<u64>)> = run.summary["slowdown_by_size"]
        .as_array()?
        .iter()
        .map(|bin| (bin["above"].as_u64().unwrap_or(0), bin["up_to"].as_u64()))
        .collect();
    let bin = |size: u64| bins.iter().position(|(above, end)| size > *above && end.is_none_or(|end| size <= end));
    let groups = groups(run);
    // By group and size.
    let mut sums: BTreeMap<(usize, usize), Class<'_>> = BTreeMap::new();
    for flow in parts.chunk_by(|a, b| a.flow == b.flow) {
        let Some(row) = run.flows.get(flow[0].flow).filter(|row| row.received_ps.is_some()) else { continue };
        let (Some(group), Some(bin)) = (groups.iter().position(|name| *name == row.group), bin(row.size)) else {
            continue;
        };
        let (count, sums) = sums.entry((group, bin)).or_default();
        *count += 1;
        flow.iter().for_each(|part| *sums.entry(part.part).or_default() += part.time_ps as f64);
    }
    let mut rows: Vec<SpanRow> = Vec::new();
    let mut before = None;
    for ((group, bin), (count, sums)) in &sums {
        let size = |bytes: u64| Format::Bytes.show(bytes as f64);
        let sizes = match bins[*bin] {
            (_, Some(end)) => format!("up to {}", size(end)),
            (above, None) => format!("over {}", size(above)),
        };
        let total: f64 = sums.values().sum();
        let mut sums: Vec<(&str, f64)> = sums.iter().map(|(part, sum)| (*part, *sum)).collect();
        sums.sort_by_key(|(part, _)| rank(part));
        let mut at = 0.0;
        let span = |(part, sum): (&str, f64)| {
            let from = at;
            at += sum / total;
            Span { from, to: at.min(1.0), kind: part.into() }
        };
        let plural = if *count == 1 { "" } else { "s" };
        rows.push(SpanRow {
            name: format!("{}, {sizes}", groups[*group]),
            note: format!("{count} flow{plural}"),
            apart: before.is_some_and(|before| before != *group),
            spans: sums.into_iter().map(span).collect(),
        });
        before = Some(*group);
    }
    (!rows.is_empty()).then(|| Spans {
        id: "parts".into(),
        title: "Where the time of flows went".into(),
        subtitle: "Completion times of finished flows, summed by group and size".into(),
        caption: "The parts of a flow add up to its completion time. `parts.parquet` has them flow by flow.".into(),
        x: "share of completion time".into(),
        format: Format::Percent,
        rows,
    })
}

/// The finished flow of a group with the largest slowdown, the first of several. Where none has a slowdown, as all left early, the one that
/// took longest.
fn slowest<'r>(run: &'r Records, group: &str) -> Option<(usize, &'r FlowRow)> {
    let own = run.flows.iter().enumerate().filter(|(_, flow)| flow.group == group && flow.received_ps.is_some());
    let worth = |flow: &FlowRow| (flow.slowdown.unwrap_or(0.0), flow.received_ps);
    own.reduce(|best, next| if worth(next.1) > worth(best.1) { next } else { best })
}

/// The slowest flow of each group, part by part and hop by hop.
fn waterfalls(run: &Records, parts: &[PartRow<'_>]) -> Vec<Spans> {
    let of = |(place, group): (usize, &&str)| {
        let (number, flow) = slowest(run, group)?;
        let from = parts.partition_point(|part| part.flow < number);
        let own = &parts[from..][..parts[from..].partition_point(|part| part.flow == number)];
        let rows = rows(own);
        let slowed = flow.slowdown.map(|slowdown| format!(", slowdown {}", Format::Plain.show(slowdown)));
        let slowed = slowed.unwrap_or_default();
        let took = Format::Time.show(flow.received_ps? as f64 / 1e12);
        (!rows.is_empty()).then(|| Spans {
            id: format!("slowest-{}", place + 1),
            title: format!("The slowest flow of {group}: {} to {}, {took}", flow.src, flow.dst),
            subtitle: format!("Flow {number}, {}{slowed}", Format::Bytes.show(flow.size as f64)),
            caption: "Above, what its sender did before it sent the packet that completed the flow, summed by part. Below, that packet's \
                      path, link by link."
                .into(),
            x: "time".into(),
            format: Format::Time,
            rows,
        })
    };
    groups(run).iter().enumerate().filter_map(of).take(MOST).collect()
}

/// A row for each part at the sender, one for each link after it, and one for the receiver.
fn rows(parts: &[PartRow<'_>]) -> Vec<SpanRow> {
    let mut rows: Vec<SpanRow> = Vec::new();
    let (mut at, mut last, mut on_path) = (0.0, None, false);
    for part in parts {
        let time = part.time_ps as f64 / 1e12;
        let span = Span { from: at, to: at + time, kind: part.part.into() };
        at = span.to;
        match rows.last_mut().filter(|_| part.hop.is_some() && last == part.hop) {
            Some(row) => row.spans.push(span),
            None => {
                let name = match part.hop {
                    Some(_) => part.place.replace("->", " → "),
                    None => format!("{}: {}", part.place, part.part),
                };
                let apart = part.hop.is_some() && !on_path;
                on_path |= part.hop.is_some();
                rows.push(SpanRow { name, note: String::new(), apart, spans: vec![span] });
            }
        }
        last = part.hop;
    }
    for row in &mut rows {
        let length: f64 = row.spans.iter().map(|span| span.to - span.from).sum();
        row.note = Format::Time.show(length);
    }
    rows
}

/// Where the time of all finished flows went, in a sentence.
pub(crate) fn sentence(summary: &Value) -> String {
    let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
    for group in summary["why"]["parts"].as_array().into_iter().flatten() {
        for (part, time) in group["parts_ps"].as_object().into_iter().flatten() {
            *sums.entry(part).or_default() += time.as_f64().unwrap_or(0.0);
        }
    }
    let total: f64 = sums.values().sum();
    let mut all: Vec<(&str, f64)> = sums.into_iter().collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    let shares = all.iter().map(|(part, sum)| (part, sum / total)).filter(|(_, share)| *share >= LEAST);
    let shares: Vec<String> = shares.map(|(part, share)| format!("{} {part}", Format::Percent.show(share))).collect();
    match shares.split_last() {
        None => "No flow finished.".into(),
        Some((only, [])) => format!("The time of all finished flows is {only}."),
        Some((last, others)) => format!("The time of all finished flows is {} and {last}.", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::path::PathBuf;

    fn part(flow: usize, part: &'static str, hop: Option<u64>, time_ps: u64) -> PartRow<'static> {
        let place = if hop.is_some() { "h0->sw0" } else { "h0" };
        PartRow { flow, part, place, hop, time_ps }
    }

    fn records(received: [Option<u64>; 3]) -> Records {
        let flow = |received_ps: Option<u64>| FlowRow {
            held_ps: 0,
            paused_ps: 0,
            src: "h0".into(),
            dst: "h1".into(),
            group: "load".into(),
            size: 5_000,
            start_ps: Some(0),
            injected_ps: None,
            received_ps,
            acknowledged_ps: received_ps,
            ideal_ps: Some(100),
            slowdown: received_ps.map(|time| time as f64 / 100.0),
            slowdown_acknowledged: None,
        };
        let bins = json!([{ "above": 0, "up_to": 1000 }, { "above": 1000, "up_to": null }]);
        let summary = json!({
            "groups": [{ "name": "load" }, { "name": "nobody" }],
            "slowdown_by_size": bins,
            "why": { "parts": [{ "group": "load", "parts_ps": { "turn": 250, "serialisation": 150 } }] },
        });
        let flows = received.map(flow).to_vec();
        let (folder, buffers, links) = (PathBuf::new(), Vec::new(), Vec::new());
        Records { folder, summary, flows, buffers, links, ports: Vec::new(), rates: Vec::new() }
    }

    #[test]
    fn a_waterfall_goes_from_the_start_to_the_end_of_the_slowest_flow_that_finished() {
        let run = records([Some(100), Some(300), None]);
        let parts = [
            part(0, "serialisation", Some(0), 100),
            part(1, "turn", None, 250),
            part(1, "serialisation", Some(0), 20),
            part(1, "propagation", Some(0), 30),
            part(2, "answer", None, 900),
        ];
        let all = charts(&run, &parts);
        let [shares, waterfall] = all.as_slice() else { panic!("{all:?}") };
        let [row] = shares.rows.as_slice() else { panic!("{shares:?}") };
        assert_eq!((row.name.as_str(), row.note.as_str()), ("load, over 1 KB", "2 flows"), "the third did not finish");
        let kinds: Vec<_> = row.spans.iter().map(|span| (span.kind.as_str(), span.from, span.to)).collect();
        assert_eq!(kinds, [("serialisation", 0.0, 0.3), ("propagation", 0.3, 0.375), ("turn", 0.375, 1.0)]);
        assert!(waterfall.subtitle == "Flow 1, 5 KB, slowdown 3", "{}", waterfall.subtitle);
        let names: Vec<_> =
            waterfall.rows.iter().map(|row| (row.name.as_str(), row.note.as_str(), row.apart)).collect();
        assert_eq!(names, [("h0: turn", "250 ps", false), ("h0 → sw0", "50 ps", true)]);
        let last = waterfall.rows[1].spans.last().unwrap();
        assert!((last.to - 300e-12).abs() < 1e-15 && waterfall.rows[1].spans[0].from == waterfall.rows[0].spans[0].to);
        for chart in &all {
            assert!(chart.drawing().png().unwrap().starts_with(b"\x89PNG"));
            assert!(chart.svg().contains(&chart.title));
        }
    }

    #[test]
    fn among_flows_that_left_early_the_one_that_took_longest_is_shown() {
        let mut run = records([Some(100), Some(300), Some(200)]);
        run.flows.iter_mut().for_each(|flow| flow.slowdown = None);
        assert_eq!(slowest(&run, "load").map(|(number, _)| number), Some(1));
        run.flows[2].slowdown = Some(2.0);
        assert_eq!(slowest(&run, "load").map(|(number, _)| number), Some(2));
        assert!(slowest(&run, "nobody").is_none());
    }

    #[test]
    fn a_run_that_was_not_asked_shows_nothing() {
        assert_eq!(charts(&records([Some(100), None, None]), &[]), []);
    }

    #[test]
    fn the_largest_part_is_named_first() {
        let text = sentence(&records([None; 3]).summary);
        assert_eq!(text, "The time of all finished flows is 62.5% turn and 37.5% serialisation.");
        assert_eq!(sentence(&json!({})), "No flow finished.");
    }
}
