//! From results to figures: what one run looks like, and how several compare.

use crate::{Axis, Figure, Format, Mark, Palette, Point, Series, Style};
use results::comparison::{At, Labels, SCHEME};
use results::measure::{Estimate, percentile_with_interval};
use results::records::{BufferSeries, FlowRow, Records};
use std::collections::{BTreeMap, BTreeSet};

/// Runs that differ in their seed only, under one name.
#[derive(Clone, Debug)]
pub struct Curve<'a> {
    /// What people call them: a scheme, mostly.
    pub name: String,
    /// Where in a comparison they are: the name of each axis, and its value. The first may be the scheme.
    pub labels: Labels,
    /// The runs.
    pub runs: Vec<&'a Records>,
}

/// Runs with their labels, those that differ in their seed only under one name; `title` is what the only one is called.
pub fn of_grid<'a>(title: &str, labels: &[&Labels], records: &'a [Records]) -> Vec<Curve<'a>> {
    let mut curves: Vec<Curve<'a>> = Vec::new();
    for (&labels, run) in labels.iter().zip(records) {
        match curves.iter_mut().find(|curve| curve.labels == *labels) {
            Some(curve) => curve.runs.push(run),
            None => {
                let values: Vec<&str> = labels.iter().map(|(_, value)| value.as_str()).collect();
                let name = if values.is_empty() { title.into() } else { values.join(", ") };
                curves.push(Curve { name, labels: labels.clone(), runs: vec![run] });
            }
        }
    }
    curves
}

/// Upper ends of the size bins that figures have, in bytes.
const ENDS: [u64; 12] =
    [100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000, 30_000_000];
/// The fewest flows of a run that a bin's percentile is computed from.
const FEWEST: usize = 5;
/// The most lines of a figure in which each is to be followed.
const FEW_LINES: usize = 6;
/// The most points of a distribution that are drawn.
const MOST_POINTS: usize = 1000;

/// A size for people.
fn size(bytes: u64) -> String {
    Format::Bytes.show(bytes as f64)
}

/// The size bins that have flows: above, up to, and a name.
fn bins(curves: &[Curve<'_>], of: &dyn Fn(&FlowRow) -> bool) -> Vec<(u64, u64, String)> {
    let ends = ENDS.into_iter().chain([u64::MAX]);
    let starts = [0].into_iter().chain(ENDS);
    let name = |above: u64, up_to: u64| match (above, up_to) {
        (0, end) => format!("≤{}", size(end)),
        (above, u64::MAX) => format!(">{}", size(above)),
        (above, end) => {
            let (from, to) = (size(above), size(end));
            match (from.split_once(' '), to.split_once(' ')) {
                (Some((number, a)), Some((_, b))) if a == b => format!("{number}–{to}"),
                _ => format!("{from}–{to}"),
            }
        }
    };
    let inside = |flow: &FlowRow, above: u64, up_to: u64| of(flow) && flow.size > above && flow.size <= up_to;
    let enough = |above, up_to| {
        let flows = |run: &&Records| run.flows.iter().filter(|flow| inside(flow, above, up_to)).count();
        curves.iter().flat_map(|curve| &curve.runs).any(|run| flows(run) >= FEWEST)
    };
    let kept = starts.zip(ends).filter(|&(above, up_to)| enough(above, up_to));
    kept.map(|(above, up_to)| (above, up_to, name(above, up_to))).collect()
}

/// The interval of a mean over seeds as it is drawn: not of two, whose interval says nothing, and never below 0, where nothing
/// that is drawn can be.
fn drawn(estimate: Estimate) -> Option<(f64, f64)> {
    estimate.interval().filter(|_| estimate.count > 2).map(|(low, high)| (low.max(0.0), high))
}

/// A percentile over seeds with its interval; runs that have fewer than [`FEWEST`] values do not count.
fn tail(mut samples: Vec<Vec<f64>>, q: f64) -> Option<(f64, Option<(f64, f64)>)> {
    samples.retain(|values| values.len() >= FEWEST);
    let (value, interval) = percentile_with_interval(&samples, q)?;
    Some((value, interval.map(|(low, high)| (low.max(1.0_f64.min(value)), high))))
}

/// Slowdowns of a run's flows, infinite for those that did not finish.
fn samples(run: &Records, of: &dyn Fn(&FlowRow) -> bool) -> Vec<f64> {
    let end_ps = run.summary["end_ps"].as_u64().unwrap_or(u64::MAX);
    run.flows.iter().filter(|flow| of(flow)).filter_map(|flow| flow.slowdown_by(end_ps)).collect()
}

/// Says in a figure of slowdowns what becomes of flows that did not finish, if there are any.
fn note_unfinished(figure: &mut Figure, curves: &[Curve<'_>], of: &dyn Fn(&FlowRow) -> bool) {
    let open = |run: &&Records| samples(run, of).iter().filter(|slowdown| slowdown.is_infinite()).count();
    let open: usize = curves.iter().flat_map(|curve| &curve.runs).map(open).sum();
    if open > 0 {
        let flows = if open == 1 { "1 flow".into() } else { format!("{open} flows") };
        figure.notes.push(format!("{flows} that did not finish are taken to be the slowest, and not drawn"));
    }
}

/// The percentile `q` of slowdown by size of flow, of the flows of a group or of all.
pub fn slowdown_by_size(curves: &[Curve<'_>], palette: &mut Palette, q: f64, group: Option<&str>) -> Figure {
    let of = |flow: &FlowRow| flow.ideal_ps.is_some() && group.is_none_or(|group| flow.group == group);
    let bins = bins(curves, &of);
    let name = format!("p{}", q * 100.0);
    let id = group.map_or(format!("slowdown-{name}"), |group| format!("slowdown-{name}-{}", word(group)));
    let x = Axis::categories("Flow size", bins.iter().map(|(_, _, name)| name.clone()));
    let mut figure =
        Figure::new(id, format!("{name} of slowdown by flow size"), x, Axis::log(format!("{name} slowdown")));
    figure.subtitle = group.map_or(String::new(), |group| format!("flows of group {group}"));
    for curve in curves {
        let point = |(place, (above, up_to, _)): (usize, &(u64, u64, String))| {
            let inside = |flow: &FlowRow| of(flow) && flow.size > *above && flow.size <= *up_to;
            let values = |run: &&Records| samples(run, &inside);
            let (y, interval) = tail(curve.runs.iter().map(values).collect(), q)?;
            Some(Point { x: place as f64, y, interval })
        };
        figure.series.push(palette.series(&curve.name, Style::LineMarkers, bins.iter().enumerate().filter_map(point)));
    }
    figure.marks.push(Mark::y(1.0, "alone in the network"));
    figure.notes.push(format!("sizes of which a run has fewer than {FEWEST} flows are left out"));
    note_unfinished(&mut figure, curves, &of);
    figure
}

/// The distribution of slowdowns, of the flows of a group or of all: for flows that are all of a size, by which there is nothing
/// to see.
pub fn slowdowns(curves: &[Curve<'_>], palette: &mut Palette, group: Option<&str>) -> Figure {
    let of = |flow: &&FlowRow| group.is_none_or(|group| flow.group == group);
    let id = group.map_or("slowdowns".into(), |group| format!("slowdowns-{}", word(group)));
    let figure = Figure::new(id, "Slowdown of the flows", Axis::log("Slowdown"), share());
    let values = |run: &Records| samples(run, &|flow| of(&flow));
    let mut figure = cdf(figure, curves, palette, values);
    note_unfinished(&mut figure, curves, &|flow| of(&flow));
    let sizes = || curves.iter().flat_map(|curve| &curve.runs).flat_map(|run| run.flows.iter().filter(of));
    let (least, most) = (sizes().map(|flow| flow.size).min(), sizes().map(|flow| flow.size).max());
    let flows = group.map_or("flows".into(), |group| format!("flows of group {group}"));
    figure.subtitle = match (least, most) {
        (Some(least), Some(most)) if least == most => format!("{flows}, {} each", size(least)),
        (Some(least), Some(most)) => format!("{flows}, {} to {}", size(least), size(most)),
        _ => flows,
    };
    // Of a single flow there is no distribution.
    figure.series.iter_mut().filter(|series| series.points.len() < 2).for_each(|series| series.points.clear());
    figure
}

/// How slowdowns are drawn: by size, at the tail and in the middle, where there are several sizes.
fn slowdown_figures(curves: &[Curve<'_>], palette: &mut Palette, group: Option<&str>) -> Vec<Figure> {
    let of = |flow: &FlowRow| flow.ideal_ps.is_some() && group.is_none_or(|group| flow.group == group);
    match bins(curves, &of).len() {
        0 | 1 => vec![slowdowns(curves, palette, group)],
        _ => [0.99, 0.5].map(|q| slowdown_by_size(curves, palette, q, group)).into(),
    }
}

/// `text` as part of a file's name.
pub(crate) fn word(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect()
}

/// The points of a distribution function: share of values up to x, which begins with none at the smallest. A single value has no distribution.
pub(crate) fn distribution(mut values: Vec<f64>) -> Vec<(f64, f64)> {
    // What is infinite has its share, and no place.
    values.retain(|value| !value.is_nan());
    let all = values.len();
    values.retain(|value| value.is_finite());
    values.sort_by(f64::total_cmp);
    let n = values.len();
    let at = |place: usize| (values[place], (place + 1) as f64 / all as f64);
    let begin = values.first().filter(|_| n > 1).map(|&least| (least, 0.0)).into_iter();
    if n <= MOST_POINTS {
        return begin.chain((0..n).map(at)).collect();
    }
    // Evenly by share, and the upper end, which people look at, more closely.
    let coarse = (0..MOST_POINTS).map(|step| step * (n - 1) / MOST_POINTS);
    let tail = n - n / 100;
    let fine = (0..200).map(|step| tail + step * (n - 1 - tail) / 200);
    let mut places: Vec<usize> = coarse.chain(fine).chain([n - 1]).collect();
    places.sort_unstable();
    places.dedup();
    begin.chain(places.into_iter().map(at)).collect()
}

/// The distribution of something, seeds taken together.
pub fn cdf(
    figure: Figure,
    curves: &[Curve<'_>],
    palette: &mut Palette,
    values: impl Fn(&Records) -> Vec<f64>,
) -> Figure {
    let mut figure = figure;
    for curve in curves {
        let all: Vec<f64> = curve.runs.iter().flat_map(|run| values(run)).collect();
        figure.series.push(palette.series(&curve.name, Style::Step, distribution(all)));
    }
    figure
}

fn share() -> Axis {
    Axis::linear("Share").format(Format::Percent).range(0.0, 1.0)
}

/// Memory of the switches: the most held between one sample and the next.
pub fn buffers(curves: &[Curve<'_>], palette: &mut Palette) -> Figure {
    let x = Axis::linear("Switch buffer occupancy").format(Format::Bytes);
    let figure = Figure::new("buffers", "Buffer occupancy of the switches", x, share());
    cdf(figure, curves, palette, |run| {
        run.buffers.iter().flat_map(|series| &series.peak_bytes).map(|&bytes| bytes as f64).collect()
    })
}

/// How long the flows of each group took.
fn completion(run: &Records) -> Figure {
    let x = Axis::log("Completion time").format(Format::Time);
    let mut figure = Figure::new("completion", "Completion times", x, share());
    let mut palette = Palette::default();
    let mut groups: Vec<&str> = Vec::new();
    for flow in &run.flows {
        if !groups.contains(&flow.group.as_str()) && groups.len() < FEW_LINES {
            groups.push(&flow.group);
        }
    }
    for group in groups {
        let of = run.flows.iter().filter(|flow| flow.group == group);
        let times = of.filter_map(|flow| Some(flow.received_ps? as f64 / 1e12)).collect();
        let name = if group.is_empty() { "flows" } else { group };
        let mut points = distribution(times);
        // Beside the lines of other groups, a single flow is a step.
        if let &[(time, _)] = points.as_slice() {
            points.insert(0, (time, 0.0));
        }
        figure.series.push(palette.series(name, Style::Step, points));
    }
    figure
}

/// Marks what happened to links in a figure over time. Many of them would hide what it shows.
fn mark_outages(run: &Records, figure: &mut Figure) {
    let outages = run.summary["outages"].as_array().map_or(&[][..], Vec::as_slice);
    if outages.len() > FEW_LINES {
        figure.notes.push(format!("{} outages of links are not marked", outages.len()));
        return;
    }
    for outage in outages {
        let name = |end: &str| outage[end].as_str().unwrap_or_default().to_string();
        let link = format!("{}–{}", name("a"), name("b"));
        let times = [(outage["from_ps"].as_u64(), "down"), (outage["until_ps"].as_u64(), "up")];
        for (time, what) in times {
            figure.marks.extend(time.map(|time| Mark::x(time as f64 / 1e12, format!("{link} {what}"))));
        }
    }
}

/// Memory over time of the switches that held the most.
fn memory(run: &Records) -> Figure {
    let x = Axis::linear("Time").format(Format::Time);
    let y = Axis::linear("Switch buffer occupancy").format(Format::Bytes);
    let mut figure = Figure::new("memory", "Buffer occupancy over time", x, y);
    let mut palette = Palette::default();
    let most = |series: &&BufferSeries| series.peak_bytes.iter().copied().max().unwrap_or(0);
    let mut fullest: Vec<&BufferSeries> = run.buffers.iter().filter(|series| most(series) > 0).collect();
    fullest.sort_by_key(|series| std::cmp::Reverse(most(series)));
    let all = fullest.len();
    fullest.truncate(FEW_LINES);
    if all > fullest.len() {
        figure.subtitle = format!("the {} of {all} switches that held the most", fullest.len());
    }
    for series in fullest {
        let points =
            series.time_ps.iter().zip(&series.peak_bytes).map(|(&time, &bytes)| (time as f64 / 1e12, bytes as f64));
        figure.series.push(palette.series(&series.switch, Style::Line, points.collect::<Vec<_>>()));
    }
    figure
}

/// Bits per second that arrived at each host that somebody sends to, over the whole run.
pub(crate) fn received(run: &Records) -> Vec<f64> {
    let span = span(run);
    let receivers: BTreeSet<&str> = run.flows.iter().map(|flow| flow.dst.as_str()).collect();
    let links = run.links.iter().filter(|link| link.to_host && receivers.contains(link.to.as_str()));
    links.map(|link| link.sent_bytes as f64 * 8e12 / span).collect()
}

/// What arrived at each host that somebody sends to, over the whole run.
pub fn receivers(curves: &[Curve<'_>], palette: &mut Palette) -> Figure {
    let most = curves.iter().flat_map(|curve| &curve.runs).flat_map(|run| received(run)).fold(0.0, f64::max);
    let mut x = Axis::linear("Receiver throughput").format(Format::Rate);
    // From nothing: what differs little is to look so.
    x.range = (most > 0.0).then_some((0.0, 1.02 * most));
    let figure = Figure::new("receivers", "Throughput of the receivers", x, share());
    cdf(figure, curves, palette, received)
}

/// Picoseconds from the first flow's start to the end.
pub(crate) fn span(run: &Records) -> f64 {
    let begin = run.flows.iter().filter_map(|flow| flow.start_ps).min().unwrap_or(0);
    let end = run.summary["end_ps"].as_u64().unwrap_or(0);
    end.saturating_sub(begin).max(1) as f64
}

/// The share of time that a class of links was paused, by kind of link. One of which only a queue is paused carries what is in the others.
pub fn pauses(curves: &[Curve<'_>], palette: &mut Palette) -> Figure {
    type Kind = (&'static str, fn(&results::records::LinkRow) -> bool);
    let kinds: [Kind; 3] = [
        ("from hosts", |link| link.from_host),
        ("between switches", |link| !link.from_host && !link.to_host),
        ("to hosts", |link| link.to_host),
    ];
    let x = Axis::categories("Links", kinds.iter().map(|(name, _)| *name));
    let y = Axis::linear("Time paused").format(Format::Percent);
    let mut figure = Figure::new("pauses", "Share of time that links are paused", x, y);
    for curve in curves {
        let point = |(place, (_, of)): (usize, &Kind)| {
            let mean = |run: &&Records| {
                let links: Vec<f64> = run
                    .links
                    .iter()
                    .filter(|link| of(link))
                    .map(|link| link.paused_class_ps as f64 / span(run))
                    .collect();
                links.iter().sum::<f64>() / links.len().max(1) as f64
            };
            let estimate = Estimate::of(&curve.runs.iter().map(mean).collect::<Vec<_>>());
            Point { x: place as f64, y: estimate.mean.unwrap_or(0.0), interval: drawn(estimate) }
        };
        figure.series.push(palette.series(&curve.name, Style::Bars, kinds.iter().enumerate().map(point)));
    }
    figure
}

/// Queue of each watched port over time, of one run.
pub fn queues(run: &Records, palette: &mut Palette) -> Figure {
    let x = Axis::linear("Time").format(Format::Time);
    let mut figure =
        Figure::new("queues", "Queues of the watched ports", x, Axis::linear("Queue").format(Format::Bytes));
    for port in run.ports.iter().take(MOST_LINES) {
        let points = port.time_ps.iter().zip(&port.queue_bytes).map(|(&t, &bytes)| (t as f64 / 1e12, bytes as f64));
        figure.series.push(palette.series(&format!("{} → {}", port.from, port.to), Style::Line, points));
    }
    more(&mut figure, run.ports.len());
    figure
}

/// The most lines of a figure over time.
const MOST_LINES: usize = 12;

fn more(figure: &mut Figure, all: usize) {
    if all > MOST_LINES {
        figure.notes.push(format!("the first {MOST_LINES} of {all}"));
    }
}

/// Bits per second between one instant and the next, from bytes so far.
fn rates(time_ps: &[u64], bytes: &[u64]) -> Vec<(f64, f64)> {
    let steps = time_ps.windows(2).zip(bytes.windows(2));
    let rate = |(time, bytes): (&[u64], &[u64])| {
        let (sent, passed) = (bytes[1].saturating_sub(bytes[0]), time[1].saturating_sub(time[0]));
        (time[1] as f64 / 1e12, sent as f64 * 8e12 / passed.max(1) as f64)
    };
    steps.map(rate).collect()
}

/// Rate of each watched port over time, of one run.
pub fn port_rates(run: &Records, palette: &mut Palette) -> Figure {
    let x = Axis::linear("Time").format(Format::Time);
    let mut figure =
        Figure::new("port-rates", "Rates of the watched ports", x, Axis::linear("Rate").format(Format::Rate));
    for port in run.ports.iter().take(MOST_LINES) {
        let name = format!("{} → {}", port.from, port.to);
        figure.series.push(palette.series(&name, Style::Line, rates(&port.time_ps, &port.sent_bytes)));
    }
    more(&mut figure, run.ports.len());
    figure
}

/// Rate of each watched flow over time, of one run.
pub fn flow_rates(run: &Records, palette: &mut Palette) -> Figure {
    let x = Axis::linear("Time").format(Format::Time);
    let mut figure =
        Figure::new("flow-rates", "Rates of the watched flows", x, Axis::linear("Rate").format(Format::Rate));
    for flow in run.rates.iter().take(MOST_LINES) {
        let name = format!("{} {}", flow.group, flow.flow);
        figure.series.push(palette.series(&name, Style::Line, rates(&flow.time_ps, &flow.received_bytes)));
    }
    more(&mut figure, run.rates.len());
    figure
}

/// Names of the groups of flows that have slowdowns, in order of appearance.
fn groups(curves: &[Curve<'_>]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for flow in curves.iter().flat_map(|curve| &curve.runs).flat_map(|run| &run.flows) {
        if flow.slowdown.is_some() && !names.contains(&flow.group) {
            names.push(flow.group.clone());
        }
    }
    names
}

/// A number of the summary by the values of the one axis that is varied besides the scheme.
fn by_value(curves: &[Curve<'_>], palette: &mut Palette, id: &str, title: &str, y: Axis, at: &At) -> Option<Figure> {
    let (axis, _) = curves.first()?.labels.iter().find(|(axis, _)| axis != SCHEME)?;
    if curves.iter().any(|curve| curve.labels.iter().filter(|(axis, _)| axis != SCHEME).count() != 1) {
        return None;
    }
    let label = |curve: &Curve<'_>, of: &dyn Fn(&str) -> bool| {
        curve.labels.iter().find(|(axis, _)| of(axis)).map(|(_, value)| value.clone()).unwrap_or_default()
    };
    let value = |curve: &Curve<'_>| label(curve, &|axis| axis != SCHEME);
    let scheme = |curve: &Curve<'_>| label(curve, &|axis| axis == SCHEME);
    let in_order = |of: &dyn Fn(&Curve<'_>) -> String| {
        let mut all: Vec<String> = Vec::new();
        curves.iter().map(of).for_each(|one| {
            if !all.contains(&one) {
                all.push(one)
            }
        });
        all
    };
    let (values, schemes) = (in_order(&value), in_order(&scheme));
    let mut figure = Figure::new(id, title, Axis::categories(axis.clone(), values.clone()), y);
    for name in schemes {
        let points = curves.iter().filter(|curve| scheme(curve) == name).filter_map(|curve| {
            let numbers: Option<Vec<f64>> = curve.runs.iter().map(|run| at.of(&run.summary)).collect();
            let estimate = Estimate::of(&numbers?);
            let x = values.iter().position(|one| *one == value(curve))? as f64;
            Some(Point { x, y: estimate.mean?, interval: drawn(estimate) })
        });
        let shown = if name.is_empty() { "all" } else { &name };
        figure.series.push(palette.series(shown, Style::LineMarkers, points.collect::<Vec<_>>()));
    }
    Some(figure)
}

/// Gives what is of a scheme its colour, whatever else it is of.
fn of_schemes(curves: &[Curve<'_>], palette: &mut Palette) {
    let mut kin: BTreeMap<&str, usize> = BTreeMap::new();
    for curve in curves {
        if let Some((_, scheme)) = curve.labels.iter().find(|(axis, _)| axis == SCHEME) {
            let nth = kin.entry(scheme).or_insert(0);
            palette.kin(&curve.name, scheme, *nth);
            *nth += 1;
        }
    }
}

/// Every figure that the results support.
pub fn all(curves: &[Curve<'_>], palette: &mut Palette) -> Vec<Figure> {
    let mut figures = Vec::new();
    of_schemes(curves, palette);
    let p99 = Axis::log("p99 slowdown");
    let tail = At::Slowdown { group: None, bin: None, percentile: "p99" };
    figures.extend(by_value(curves, palette, "p99-by-value", "p99 of slowdown", p99, &tail));
    let peak = Axis::linear("Peak buffer").format(Format::Bytes);
    figures.extend(by_value(
        curves,
        palette,
        "buffer-by-value",
        "Peak buffer of a switch",
        peak,
        &At::Pointer("/buffer/peak".into()),
    ));
    let groups = groups(curves);
    match groups.as_slice() {
        [] => {}
        [_] => figures.extend(slowdown_figures(curves, palette, None)),
        several => {
            for group in several {
                figures.extend(slowdown_figures(curves, palette, Some(group)));
            }
        }
    }
    figures.push(buffers(curves, palette));
    figures.push(receivers(curves, palette));
    let paused = |run: &&Records| run.links.iter().any(|link| link.paused_class_ps > 0);
    if curves.iter().flat_map(|curve| &curve.runs).any(paused) {
        figures.push(pauses(curves, palette));
    }
    if let [Curve { runs, .. }] = curves
        && let [run] = runs.as_slice()
    {
        figures.push(completion(run));
        let mut over_time = vec![memory(run)];
        let mut own = Palette::default();
        if !run.ports.is_empty() {
            over_time.extend([queues(run, &mut own), port_rates(run, &mut own)]);
        }
        if !run.rates.is_empty() {
            over_time.push(flow_rates(run, &mut Palette::default()));
        }
        over_time.iter_mut().for_each(|figure| mark_outages(run, figure));
        figures.extend(over_time);
    }
    // A distribution of one value is a line, and the value stands in a table.
    let worth = |series: &Series| match series.style {
        Style::Step => series.points.iter().any(|point| point.x != series.points[0].x),
        _ => !series.points.is_empty(),
    };
    figures.retain(|figure| figure.series.iter().any(worth));
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_distribution_keeps_its_ends_and_its_shares() {
        let short = distribution(vec![3.0, 1.0, f64::NAN, 2.0]);
        assert_eq!(short, [(1.0, 0.0), (1.0, 1.0 / 3.0), (2.0, 2.0 / 3.0), (3.0, 1.0)]);
        assert_eq!(distribution(vec![3.0]), [(3.0, 1.0)]);
        let long = distribution((1..=100_000).map(f64::from).collect());
        assert!(long.len() <= MOST_POINTS + 202 && long[..2] == [(1.0, 0.0), (1.0, 1e-5)]);
        assert_eq!(long.last(), Some(&(100_000.0, 1.0)));
        assert!(long[1..].iter().all(|&(x, share)| (x / 1e5 - share).abs() < 1e-9));
        let open = distribution(vec![1.0, f64::INFINITY, 2.0, f64::NAN, f64::INFINITY]);
        assert_eq!(open, [(1.0, 0.0), (1.0, 0.25), (2.0, 0.5)], "half of them never come");
    }

    #[test]
    fn one_run_has_order_statistics_and_several_have_the_jackknifes_interval() {
        let run: Vec<f64> = (1..=1000).map(f64::from).collect();
        let (value, interval) = tail(vec![run.clone()], 0.5).unwrap();
        assert_eq!((value, interval), (500.5, Some((469.0, 531.0))));
        let moved = |by: f64| run.iter().map(|v| v + by).collect::<Vec<_>>();
        assert_eq!(tail(vec![run.clone(), moved(2.0), vec![]], 0.5), Some((501.5, None)), "two seeds say little");
        let (value, interval) = tail(vec![run.clone(), moved(1.0), moved(2.0)], 0.5).unwrap();
        assert_eq!(value, 501.5);
        // Medians of the flows of two seeds are 501, 501.5 and 502; pseudo-values lie 2 · 0.5 apart. On a logarithmic scale.
        let half: f64 = 4.303 / 3f64.sqrt() / 501.5;
        assert!((interval.unwrap().1 - 501.5 * half.exp()).abs() < 1e-3);
        assert_eq!(tail(vec![vec![1.0; 4]], 0.5), None, "too few values");
    }
}
