//! What one run answers: numbers, distributions and time series from its records.

use super::expression::{Missing, Probe, Quantity, Scalar, Statistic, What, matches, size_range, time_range};
use results::measure::jain;
use results::records::{BufferSeries, FlowRow, FlowSeries, LinkRow, PortSeries, Records};
use serde_json::Value;
use std::collections::BTreeMap;

/// The quantiles that a cumulative distribution is drawn through, with more of them in the tail.
fn distribution_quantiles() -> impl Iterator<Item = f64> {
    let body = (0..100).map(|i| i as f64 / 100.0);
    let tail = (0..20).map(|i| 0.99 + i as f64 / 2000.0);
    body.chain(tail).chain([0.9999, 1.0])
}

/// The most points of a time series that are kept.
const MOST_POINTS: usize = 2000;

const PS_PER_US: f64 = 1e6;

/// Bytes and picoseconds to Gb/s.
fn gbps(bytes: f64, ps: f64) -> f64 {
    bytes * 8e3 / ps
}

fn pattern(probe: &Probe, key: &str, text: &str) -> bool {
    probe.filter(key).is_none_or(|pattern| matches(pattern, text))
}

/// The window of `during`, in picoseconds.
fn window(probe: &Probe) -> Option<(u64, u64)> {
    probe.filter("during").and_then(|text| time_range(text).ok())
}

/// The instant of `until`, in picoseconds, from which on nothing counts as received.
fn deadline(probe: &Probe) -> Option<u64> {
    probe.filter("until").and_then(|text| text.parse::<engine::Time>().ok()).map(|time| time.0)
}

/// How long a flow took. With a deadline a flow that was not received by then has taken until then, and one that was to start later
/// does not count.
fn took(flow: &FlowRow, deadline: Option<u64>) -> Option<u64> {
    let Some(deadline) = deadline else { return flow.received_ps };
    let left = deadline.checked_sub(started(flow)?)?;
    Some(flow.received_ps.map_or(left, |took| took.min(left)))
}

/// Whether a flow was received to the end, by the deadline if there is one.
fn in_time(flow: &FlowRow, deadline: Option<u64>) -> bool {
    let end = |took: u64| started(flow).map_or(took, |start| start.saturating_add(took));
    flow.received_ps.is_some_and(|took| deadline.is_none_or(|deadline| end(took) < deadline))
}

/// When a flow started, if it did.
fn started(flow: &FlowRow) -> Option<u64> {
    flow.start_ps
}

/// The flows that a probe is about.
fn chosen<'a>(probe: &Probe, records: &'a Records) -> impl Iterator<Item = &'a FlowRow> {
    let sizes = probe.filter("size").and_then(|text| size_range(text).ok());
    let window = window(probe);
    // Groups are few and flows are many.
    let mut groups: Vec<(&str, bool)> = Vec::new();
    let mut of_group = move |group: &'a str| match groups.iter().find(|(known, _)| *known == group) {
        Some((_, fits)) => *fits,
        None => {
            let fits = pattern(probe, "group", group);
            groups.push((group, fits));
            fits
        }
    };
    records.flows.iter().filter(move |flow| {
        sizes.is_none_or(|(low, high)| flow.size > low && flow.size <= high)
            && window.is_none_or(|(from, to)| started(flow).is_some_and(|start| (from..to).contains(&start)))
            && of_group(&flow.group)
            && pattern(probe, "src", &flow.src)
            && pattern(probe, "dst", &flow.dst)
    })
}

fn watched<'a>(probe: &Probe, records: &'a Records) -> impl Iterator<Item = &'a FlowSeries> {
    records.rates.iter().filter(move |series| pattern(probe, "group", &series.group))
}

/// From the first flow's start to the last event.
fn duration(records: &Records) -> Result<f64, Missing> {
    let start = records.flows.iter().filter_map(started).min().unwrap_or(0);
    let end = records.summary.get("end_ps").and_then(Value::as_u64).unwrap_or(0);
    if end > start { Ok((end - start) as f64) } else { Err("the run took no time".into()) }
}

/// Bytes that a watched flow received in the window, or in all.
fn received(series: &FlowSeries, window: Option<(u64, u64)>) -> f64 {
    let (from, to) = window.unwrap_or((0, u64::MAX));
    let at = |when: u64| {
        let place = series.time_ps.partition_point(|time| *time <= when);
        place.checked_sub(1).and_then(|place| series.received_bytes.get(place)).copied().unwrap_or(0)
    };
    (at(to) - at(from).min(at(to))) as f64
}

/// All values of a quantity in a run.
pub(super) fn samples(quantity: Quantity, probe: &Probe, records: &Records) -> Result<Vec<f64>, Missing> {
    let flows = |value: fn(&FlowRow) -> Option<f64>| chosen(probe, records).filter_map(value).collect::<Vec<f64>>();
    let us = |ps: Option<u64>| ps.map(|ps| ps as f64 / PS_PER_US);
    let window = window(probe);
    let inside = |time: u64| window.is_none_or(|(from, to)| (from..to).contains(&time));
    let timed = |times: &[u64], values: &[u64]| -> Vec<f64> {
        times.iter().zip(values).filter(|(time, _)| inside(**time)).map(|(_, value)| *value as f64).collect()
    };
    let (values, kind) = match quantity {
        Quantity::Slowdown => (flows(|flow| flow.slowdown), "no such flow finished"),
        Quantity::SlowdownAcknowledged => (flows(|flow| flow.slowdown_acknowledged), "no such flow finished"),
        Quantity::Fct => {
            let took = |flow: &FlowRow| us(took(flow, deadline(probe)));
            (chosen(probe, records).filter_map(took).collect(), "no such flow finished")
        }
        Quantity::Acknowledged => {
            (chosen(probe, records).filter_map(|flow| us(flow.acknowledged_ps)).collect(), "no such flow finished")
        }
        Quantity::Injected => {
            (chosen(probe, records).filter_map(|flow| us(flow.injected_ps)).collect(), "no such flow was sent")
        }
        Quantity::Size => (flows(|flow| Some(flow.size as f64)), "there is no such flow"),
        Quantity::Throughput => {
            let deadline = deadline(probe);
            let rate = |flow: &FlowRow| {
                let took = took(flow, deadline).filter(|ps| *ps > 0)? as f64;
                Some(if in_time(flow, deadline) { gbps(flow.size as f64, took) } else { 0.0 })
            };
            (chosen(probe, records).filter_map(rate).collect(), "no such flow finished")
        }
        Quantity::Receiver => {
            let span = duration(records)?;
            let mut hosts: BTreeMap<&str, u64> = BTreeMap::new();
            for link in records.links.iter().filter(|link| link.to_host && pattern(probe, "host", &link.to)) {
                *hosts.entry(&link.to).or_default() += link.sent_bytes;
            }
            (hosts.values().map(|bytes| gbps(*bytes as f64, span)).collect(), "there is no such host")
        }
        Quantity::Buffer | Quantity::Watermark => {
            let chosen = records.buffers.iter().filter(|series| pattern(probe, "switch", &series.switch));
            let held = |series: &BufferSeries| {
                let bytes = if quantity == Quantity::Buffer { &series.bytes } else { &series.peak_bytes };
                timed(&series.time_ps, bytes)
            };
            (chosen.flat_map(held).collect(), "no such switch was sampled")
        }
        Quantity::Queue => (
            ports(probe, records).flat_map(|port| timed(&port.time_ps, &port.queue_bytes)).collect(),
            "no such port was watched",
        ),
        Quantity::FlowRate => (
            watched(probe, records).flat_map(rates).filter(|(t, _)| inside(*t)).map(|(_, r)| r).collect(),
            "no such flow was watched",
        ),
        Quantity::Sampled => {
            let name = probe.filter("name").ok_or("sampled needs name='…', a histogram of summary.json")?;
            let counts = records.summary.get("histograms").and_then(|all| all.get(name)).and_then(Value::as_array);
            let counts = counts.ok_or_else(|| format!("the run has no histogram {name}"))?;
            let each = counts.iter().map(|count| count.as_u64().unwrap_or(0) as usize);
            let values = each.enumerate().flat_map(|(value, count)| std::iter::repeat_n(value as f64, count));
            (values.collect(), "the histogram is empty")
        }
        Quantity::PortRate => (
            ports(probe, records).flat_map(sent).filter(|(t, _)| inside(*t)).map(|(_, r)| r).collect(),
            "no such port was watched",
        ),
    };
    if values.is_empty() { Err(kind.into()) } else { Ok(values) }
}

/// Watched ports that a measure means.
fn ports<'a>(probe: &'a Probe, records: &'a Records) -> impl Iterator<Item = &'a PortSeries> {
    records.ports.iter().filter(|port| pattern(probe, "port", &format!("{}->{}", port.from, port.to)))
}

/// Receiving rate of a watched flow by interval, at the interval's end.
fn rates(series: &FlowSeries) -> impl Iterator<Item = (u64, f64)> {
    growth(&series.time_ps, &series.received_bytes)
}

/// Sending rate of a watched port by interval, at the interval's end.
fn sent(series: &PortSeries) -> impl Iterator<Item = (u64, f64)> {
    growth(&series.time_ps, &series.sent_bytes)
}

/// How far from its equal share a port may be to count as settled.
const SETTLED: f64 = 0.1;

/// See `settled_us` in the table of scalars.
fn settled(probe: &Probe, records: &Records) -> Result<f64, Missing> {
    let Some((from, to)) = window(probe) else { return Err("settled_us needs during='…'".into()) };
    let rate = probe.filter("rate").and_then(|text| text.parse::<engine::Rate>().ok());
    let rate = rate.ok_or("settled_us needs rate='…', such as rate='100Gbps'")?.0 as f64 / 1e9;
    let chosen: Vec<&PortSeries> = ports(probe, records).collect();
    let share = rate / chosen.len() as f64;
    let all = || chosen.iter().flat_map(|port| sent(port)).filter(|(end, _)| (from..to).contains(end) && *end > from);
    if all().next().is_none() {
        return Err("no such port was watched".into());
    }
    let apart = all().filter(|(_, sent)| (sent / share - 1.0).abs() > SETTLED).map(|(end, _)| end);
    let until = apart.max().unwrap_or(from);
    Ok((until - from) as f64 / PS_PER_US)
}

/// What bytes that only grow in number grew by in every interval, as a rate at the interval's end.
fn growth<'a>(time_ps: &'a [u64], bytes: &'a [u64]) -> impl Iterator<Item = (u64, f64)> + 'a {
    let points = move || time_ps.iter().zip(bytes);
    points().zip(points().skip(1)).filter(|((before, _), (after, _))| after > before).map(
        |((before, start), (after, end))| (*after, gbps(end.saturating_sub(*start) as f64, (after - before) as f64)),
    )
}

/// Mean over the links that a probe is about.
fn over_links(probe: &Probe, records: &Records, value: impl Fn(&LinkRow) -> f64) -> Result<f64, Missing> {
    let kind = |link: &LinkRow| match (link.from_host, link.to_host) {
        (true, _) => "up",
        (_, true) => "down",
        _ => "core",
    };
    let chosen = records.links.iter().filter(|link| {
        probe.filter("kind").is_none_or(|own| own == kind(link))
            && pattern(probe, "link", &format!("{}->{}", link.from, link.to))
    });
    let (sum, count) = chosen.fold((0.0, 0usize), |(sum, count), link| (sum + value(link), count + 1));
    if count > 0 { Ok(sum / count as f64) } else { Err("there is no such link".into()) }
}

/// What one run answers.
pub(super) fn answer(probe: &Probe, records: &Records) -> Result<f64, Missing> {
    let number = |path: &str| {
        let mut value = &records.summary;
        for key in path.split('.') {
            let next = match value {
                Value::Array(values) => key.parse::<usize>().ok().and_then(|place| values.get(place)),
                other => other.get(key),
            };
            value = next.ok_or_else(|| format!("summary.json has no {path}"))?;
        }
        value.as_f64().ok_or_else(|| format!("{path} in summary.json is no number"))
    };
    match &probe.what {
        What::Statistic(Statistic::Count, quantity) => {
            Ok(samples(*quantity, probe, records).map_or(0.0, |values| values.len() as f64))
        }
        What::Statistic(statistic, quantity) => {
            Ok(statistic.of(&[&Samples::of(samples(*quantity, probe, records)?, true)]))
        }
        What::Counter(name) => records
            .summary
            .get("counters")
            .and_then(|counters| counters.get(name))
            .and_then(Value::as_f64)
            .ok_or_else(|| format!("the run did not count {name}")),
        What::Summary(path) => number(path),
        What::Ending(ending) => {
            let own = records.summary.get("ending").and_then(Value::as_str).ok_or("summary.json has no ending")?;
            Ok(if own == ending { 1.0 } else { 0.0 })
        }
        What::Scalar(scalar) => match scalar {
            Scalar::PeakBuffer => {
                let switches = records.summary.get("buffer").and_then(|buffer| buffer.get("switches"));
                let peak = |switch: &Value| {
                    let name = switch.get("switch")?.as_str()?;
                    pattern(probe, "switch", name).then(|| switch.get("peak")?.as_f64())?
                };
                let peaks = switches.and_then(Value::as_array).into_iter().flatten().filter_map(peak);
                peaks.reduce(f64::max).ok_or_else(|| "there is no such switch".into())
            }
            Scalar::PauseShare => {
                let span = duration(records)?;
                over_links(probe, records, |link| link.paused_ps as f64 / span)
            }
            Scalar::Utilisation => {
                let span = duration(records)?;
                let used = |link: &LinkRow| gbps(link.sent_bytes as f64, span) * 1e9 / link.rate_bps.max(1) as f64;
                over_links(probe, records, used)
            }
            Scalar::FinishedShare => {
                let (all, done) = chosen(probe, records)
                    .fold((0usize, 0usize), |(all, done), f| (all + 1, done + f.received_ps.is_some() as usize));
                if all > 0 { Ok(done as f64 / all as f64) } else { Err("there is no such flow".into()) }
            }
            Scalar::DeliveredShare => {
                let deadline = deadline(probe);
                let (all, done) = chosen(probe, records).fold((0, 0), |(all, done), flow| {
                    (all + flow.size, done + if in_time(flow, deadline) { flow.size } else { 0 })
                });
                if all > 0 { Ok(done as f64 / all as f64) } else { Err("there is no such flow".into()) }
            }
            Scalar::Drops => number("dropped.buffer"),
            Scalar::Fairness => {
                let bytes: Vec<f64> = watched(probe, records).map(|series| received(series, window(probe))).collect();
                let shares = if bytes.is_empty() { samples(Quantity::Throughput, probe, records)? } else { bytes };
                jain(&shares).ok_or_else(|| "nothing was received".into())
            }
            Scalar::Goodput => goodput(probe, records),
            Scalar::Settled => settled(probe, records),
        },
    }
}

fn goodput(probe: &Probe, records: &Records) -> Result<f64, Missing> {
    let window = window(probe);
    let (mut bytes, mut first, mut last) = (0.0, u64::MAX, 0);
    for series in watched(probe, records) {
        bytes += received(series, window);
        first = first.min(series.time_ps.first().copied().unwrap_or(u64::MAX));
        last = last.max(series.time_ps.last().copied().unwrap_or(0));
    }
    if let (Some((from, to)), true) = (window, first < last) {
        (first, last) = (from.max(first), to.min(last));
    }
    if first >= last {
        // Nothing was watched: from completed flows.
        (bytes, first, last) = (0.0, u64::MAX, 0);
        for flow in chosen(probe, records) {
            let Some(start) = started(flow) else { continue };
            first = first.min(start);
            if let Some(received) = flow.received_ps {
                bytes += flow.size as f64;
                last = last.max(start + received);
            }
        }
    }
    if first < last { Ok(gbps(bytes, (last - first) as f64)) } else { Err("no such flow finished".into()) }
}

/// The samples of one run: at least one. The values themselves are kept only where a percentile is asked for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Samples {
    pub count: usize,
    sum: f64,
    /// Sum of the squares of the distances from the mean.
    squares: f64,
    min: f64,
    max: f64,
    /// From small to large.
    sorted: Vec<f64>,
}

impl Samples {
    pub fn of(mut values: Vec<f64>, keep: bool) -> Samples {
        let sum: f64 = values.iter().sum();
        let mean = sum / values.len() as f64;
        let mut samples = Samples {
            count: values.len(),
            sum,
            squares: values.iter().map(|x| (x - mean).powi(2)).sum(),
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            sorted: Vec::new(),
        };
        if keep {
            values.sort_by(f64::total_cmp);
            values.shrink_to_fit();
            samples.sorted = values;
        }
        samples
    }

    /// The value below which a share `q` of all samples lies, with linear interpolation between neighbours.
    fn quantile(parts: &[&Samples], q: f64) -> f64 {
        let count: usize = parts.iter().map(|part| part.sorted.len()).sum();
        let at = q * count.saturating_sub(1) as f64;
        let low = Samples::ranked(parts, at.floor() as usize);
        let high = if at.fract() > 0.0 { Samples::ranked(parts, at.ceil() as usize) } else { low };
        low + (high - low) * at.fract()
    }

    /// The sample that so many stand before, of all together. The parts stay where they are: a search by value counts in each of them
    /// how many are no larger.
    fn ranked(parts: &[&Samples], rank: usize) -> f64 {
        let (mut low, mut high) = (0, u64::MAX);
        while low < high {
            let middle = low + (high - low) / 2;
            let up_to = |part: &&Samples| part.sorted.partition_point(|value| key(*value) <= middle);
            if parts.iter().map(up_to).sum::<usize>() > rank {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        f64::from_bits(if low >> 63 == 1 { low & !(1 << 63) } else { !low })
    }
}

/// A whole number that orders numbers as `f64::total_cmp` does.
fn key(value: f64) -> u64 {
    let bits = value.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

impl Statistic {
    /// Whether it is of the samples of all seeds together. Numbers that grow with the samples are means over seeds.
    pub(super) fn pools(self) -> bool {
        !matches!(self, Statistic::Count | Statistic::Total)
    }

    /// Of the samples of several runs together.
    pub(super) fn of(self, parts: &[&Samples]) -> f64 {
        let sum = |part: fn(&Samples) -> f64| parts.iter().map(|samples| part(samples)).sum::<f64>();
        let n = sum(|part| part.count as f64);
        let mean = sum(|part| part.sum) / n;
        match self {
            Statistic::Quantile(millionths) => Samples::quantile(parts, millionths as f64 / 1e6),
            Statistic::Mean => mean,
            Statistic::Max => parts.iter().map(|part| part.max).fold(f64::NEG_INFINITY, f64::max),
            Statistic::Min => parts.iter().map(|part| part.min).fold(f64::INFINITY, f64::min),
            Statistic::Count => n,
            Statistic::Total => sum(|part| part.sum),
            Statistic::Deviation => {
                let own =
                    |part: &&Samples| part.squares + part.count as f64 * (part.sum / part.count as f64 - mean).powi(2);
                (parts.iter().map(own).sum::<f64>() / n).sqrt()
            }
        }
    }

    /// How many samples it takes to be trusted; `None` where that is no matter of their number. Ten beyond a percentile, and a hundred
    /// in all.
    pub(super) fn enough(self) -> Option<f64> {
        match self {
            Statistic::Quantile(millionths) => Some((1e7 / (1_000_000 - millionths.min(999_999)) as f64).max(100.0)),
            _ => None,
        }
    }
}

/// The cumulative distribution of pooled samples, as values and the shares up to them.
pub(super) fn distribution(parts: &[&Samples]) -> Vec<(f64, f64)> {
    distribution_quantiles().map(|q| (Samples::quantile(parts, q), q)).collect()
}

/// Values over time in us; where several ports, flows or switches are meant, their sum.
pub(super) fn series(quantity: Quantity, probe: &Probe, records: &Records) -> Vec<(f64, f64)> {
    let mut sums: BTreeMap<u64, f64> = BTreeMap::new();
    let mut add = |time: u64, value: f64| *sums.entry(time).or_default() += value;
    match quantity {
        Quantity::Buffer | Quantity::Watermark => {
            for one in records.buffers.iter().filter(|one| pattern(probe, "switch", &one.switch)) {
                let bytes = if quantity == Quantity::Buffer { &one.bytes } else { &one.peak_bytes };
                one.time_ps.iter().zip(bytes).for_each(|(time, bytes)| add(*time, *bytes as f64));
            }
        }
        Quantity::Queue => {
            for one in ports(probe, records) {
                one.time_ps.iter().zip(&one.queue_bytes).for_each(|(time, bytes)| add(*time, *bytes as f64));
            }
        }
        Quantity::FlowRate => watched(probe, records).flat_map(rates).for_each(|(time, rate)| add(time, rate)),
        Quantity::PortRate => ports(probe, records).flat_map(sent).for_each(|(time, rate)| add(time, rate)),
        _ => {}
    }
    let inside = |time: u64| window(probe).is_none_or(|(from, to)| (from..to).contains(&time));
    let points: Vec<(f64, f64)> =
        sums.into_iter().filter(|(time, _)| inside(*time)).map(|(t, v)| (t as f64 / PS_PER_US, v)).collect();
    let every = points.len().div_ceil(MOST_POINTS).max(1);
    points.into_iter().step_by(every).collect()
}
