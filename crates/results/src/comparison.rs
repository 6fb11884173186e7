//! The numbers of a comparison: what the runs of a grid came to, side by side.

use crate::answer::{Answer, Class, P99};
use crate::measure::Estimate;
use serde_json::Value;
use std::collections::BTreeMap;

/// The name of the axis of schemes, or of other variants.
pub const SCHEME: &str = "scheme";

/// Where in a comparison a run is: the name of each axis, the first being [`SCHEME`] where variants are compared, and its value.
pub type Labels = Vec<(String, String)>;

/// A number that each run has.
#[derive(Clone)]
pub struct Measure {
    /// In files.
    pub key: String,
    /// For people, as the head of a narrow column.
    pub head: String,
    /// For people, in full and without the unit.
    pub label: String,
    /// What people read it in.
    pub unit: Unit,
    /// Which of two values is better, where one is.
    pub better: Option<Better>,
    /// Where it is in a summary.
    at: String,
}

impl Measure {
    /// What it cannot be below: a slowdown is at least 1.
    fn least(&self) -> f64 {
        if self.key.starts_with("slowdown") { 1.0 } else { 0.0 }
    }

    /// What a run has of it, by its summary.
    pub fn of(&self, summary: &Value) -> Option<f64> {
        summary.pointer(&self.at)?.as_f64()
    }
}

/// Which of two values of a measure is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// The larger one.
    More,
    /// The smaller one.
    Less,
}

impl Better {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Better::More => "more",
            Better::Less => "less",
        }
    }
}

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Things.
    Count,
    /// Something against something else.
    Ratio,
    /// From bytes.
    Kilobytes,
    /// From picoseconds.
    Microseconds,
}

impl Unit {
    /// The name, in JSON, of the unit that the numbers of files are in.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Count => "count",
            Unit::Ratio => "ratio",
            Unit::Kilobytes => "bytes",
            Unit::Microseconds => "ps",
        }
    }
}

/// Runs that differ only in their seed.
#[derive(Clone)]
pub struct Row {
    /// Where in the grid it is.
    pub labels: Labels,
    /// By measure, the mean over the runs.
    pub values: Vec<Estimate>,
    /// How many runs ended how.
    pub endings: BTreeMap<String, usize>,
}

/// A line for each point of a grid, a column for each axis and measure.
#[derive(Clone)]
pub struct Table {
    /// The scenario's title.
    pub title: String,
    /// What differs from line to line.
    pub axes: Vec<String>,
    /// What was measured.
    pub measures: Vec<Measure>,
    /// The lines, in the order of the plan.
    pub rows: Vec<Row>,
}

/// A mean for people, in that unit; the ends of its interval are not below `least`.
fn in_words(estimate: &Estimate, unit: Unit, least: f64) -> String {
    let scale = match unit {
        Unit::Count | Unit::Ratio => 1.0,
        Unit::Kilobytes => 1e3,
        Unit::Microseconds => 1e6,
    };
    let Some(mean) = estimate.mean.map(|mean| mean / scale) else { return "-".into() };
    let exact = estimate.half.is_none_or(|half| half <= 0.0);
    let digits = match mean.abs() {
        _ if unit == Unit::Count && exact => 0,
        0.0 => 0,
        ..10.0 => 2,
        ..100.0 => 1,
        _ => 0,
    };
    let show = |value: f64| format!("{:.digits$}", value / scale);
    // An end of an interval, or half of it.
    let symmetric = estimate.spread(|_| String::new()).starts_with(" ±");
    format!("{mean:.digits$}{}", estimate.spread(|value| show(if symmetric { value } else { value.max(least) })))
}

/// An end of a bin of sizes.
fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes}B"),
        1_000..1_000_000 => format!("{}KB", bytes as f64 / 1e3),
        _ => format!("{}MB", bytes as f64 / 1e6),
    }
}

/// The numbers that are compared. Of the bins of sizes, the smallest and the largest with flows in any run.
fn measures(summaries: &[Value]) -> Vec<Measure> {
    let measure = |key: &str, head: &str, label: &str, unit: Unit, at: &str| Measure {
        key: key.into(),
        head: head.into(),
        label: label.into(),
        unit,
        better: Some(Better::Less),
        at: at.into(),
    };
    let mut all = vec![
        Measure { better: None, ..measure("flows", "flows", "flows", Unit::Count, "/flows") },
        Measure { better: Some(Better::More), ..measure("finished", "finished", "finished", Unit::Count, "/finished") },
    ];
    // All runs are of one scenario and have the same groups. Several are not pooled: an incast would drown the rest.
    let groups = summaries.first().and_then(|summary| summary["groups"].as_array()).cloned().unwrap_or_default();
    let with_flows: Vec<(usize, &str)> = groups
        .iter()
        .enumerate()
        .filter(|(_, group)| group["slowdown"]["count"].as_u64().is_some_and(|count| count > 0))
        .map(|(place, group)| (place, group["name"].as_str().unwrap_or_default()))
        .collect();
    match with_flows.as_slice() {
        [] | [_] => all.extend([
            measure("slowdown_p50", "slowdown p50", "slowdown p50", Unit::Ratio, "/slowdown/p50"),
            measure("slowdown_p95", "p95", "slowdown p95", Unit::Ratio, "/slowdown/p95"),
            measure("slowdown_p99", "p99", "slowdown p99", Unit::Ratio, "/slowdown/p99"),
        ]),
        several => {
            for (place, name) in several {
                for q in ["p50", "p99"] {
                    let (key, at) = (format!("slowdown_{q}_{name}"), format!("/groups/{place}/slowdown/{q}"));
                    let label = format!("slowdown {q} {name}");
                    all.push(measure(&key, &format!("{name} {q}"), &label, Unit::Ratio, &at));
                }
            }
        }
    }
    let bins = |summary: &Value| summary["slowdown_by_size"].as_array().cloned().unwrap_or_default();
    let filled = |bin: &Value| bin["slowdown"]["count"].as_u64().is_some_and(|count| count > 0);
    let places = |summary| bins(summary).iter().enumerate().filter(|(_, bin)| filled(bin)).map(|(i, _)| i).collect();
    let places: Vec<usize> = summaries.iter().flat_map(|summary| -> Vec<usize> { places(summary) }).collect();
    let ends = (places.iter().min(), places.iter().max());
    let one_group = with_flows.len() < 2;
    if let ((Some(&low), Some(&high)), Some(summary)) = (ends, summaries.first())
        && low != high
        && one_group
    {
        let bins = bins(summary);
        let end = |place: usize, end: &str| bins.get(place).and_then(|bin| bin[end].as_u64());
        if let Some(top) = end(low, "up_to") {
            let at = format!("/slowdown_by_size/{low}/slowdown/p99");
            let head = format!("p99 ≤{}", size(top));
            all.push(measure("slowdown_p99_small", &head, "slowdown p99 small", Unit::Ratio, &at));
        }
        if let Some(bottom) = end(high, "above") {
            let at = format!("/slowdown_by_size/{high}/slowdown/p99");
            let head = format!("p99 >{}", size(bottom));
            all.push(measure("slowdown_p99_large", &head, "slowdown p99 large", Unit::Ratio, &at));
        }
    }
    let collectives =
        summaries.first().and_then(|summary| summary["collectives"].as_array()).cloned().unwrap_or_default();
    for (place, collective) in collectives.iter().enumerate() {
        let name = collective["name"].as_str().unwrap_or_default();
        let (key, at) = (format!("completion_ps_{name}"), format!("/collectives/{place}/completion_ps/mean"));
        let label = format!("completion time of {name}");
        all.push(measure(&key, &format!("{name} us"), &label, Unit::Microseconds, &at));
    }
    all.extend([
        measure("peak_buffer_bytes", "peak buffer KB", "peak buffer", Unit::Kilobytes, "/buffer/peak"),
        measure("paused_ps", "paused us", "paused", Unit::Microseconds, "/pause/paused_ps"),
    ]);
    // Links of which single queues are paused carry on, and schemes that pause no link keep flows at their NICs instead.
    let most = |at: &str| summaries.iter().filter_map(|summary| summary.pointer(at)?.as_u64()).max().unwrap_or(0);
    let single = |summary: &Value| {
        let of = |at: &str| summary.pointer(at).and_then(Value::as_u64);
        of("/pause/class_ps").is_some_and(|class| of("/pause/paused_ps").is_some_and(|any| any > class))
    };
    if summaries.iter().any(single) {
        let label = "paused, a whole class";
        all.push(measure("paused_class_ps", "of it class us", label, Unit::Microseconds, "/pause/class_ps"));
    }
    if most("/held/held_ps") > 0 {
        all.push(measure("held_ps", "held us", "flows held", Unit::Microseconds, "/held/held_ps"));
    }
    all.push(measure("dropped_packets", "drops", "dropped", Unit::Count, "/dropped/packets"));
    all
}

impl Table {
    /// Of runs along these axes, with their summaries in the same order; those that differ only in their seed follow each other.
    pub fn new(axes: Vec<String>, runs: &[&Labels], summaries: &[Value]) -> Table {
        let measures = measures(summaries);
        let mut rows: Vec<Row> = Vec::new();
        let cells: Vec<(&Labels, &Value)> = runs.iter().copied().zip(summaries).collect();
        for runs in cells.chunk_by(|a, b| a.0 == b.0) {
            let values = |measure: &Measure| {
                let values = runs.iter().filter_map(|(_, summary)| measure.of(summary));
                Estimate::of(&values.collect::<Vec<_>>())
            };
            let mut endings = BTreeMap::new();
            for (_, summary) in runs {
                *endings.entry(summary["ending"].as_str().unwrap_or("unknown").to_string()).or_default() += 1;
            }
            let labels = runs.first().map(|(labels, _)| (*labels).clone()).unwrap_or_default();
            rows.push(Row { labels, values: measures.iter().map(values).collect(), endings });
        }
        Table {
            title: summaries.first().and_then(|s| s["scenario"].as_str()).unwrap_or_default().to_string(),
            axes,
            measures,
            rows,
        }
    }

    /// The same with tails by group and size of flow in place of those of all flows: what figures are drawn of.
    pub fn by_size(&self, answer: &Answer) -> Table {
        let mut table = self.clone();
        let tails = |measure: &Measure| measure.key.starts_with("slowdown_p9");
        let at = table.measures.iter().position(tails).unwrap_or(table.measures.len());
        let kept: Vec<bool> = table.measures.iter().map(|measure| !tails(measure)).collect();
        let only = |place: &mut usize| {
            *place += 1;
            kept[*place - 1]
        };
        let mut place = 0;
        table.measures.retain(|_| only(&mut place));
        for row in &mut table.rows {
            let mut place = 0;
            row.values.retain(|_| only(&mut place));
        }
        let measure = |class: &Class| Measure {
            key: format!("slowdown_p99 {}", class.head()),
            head: format!("p99 {}", class.head()),
            label: format!("p99 slowdown, {}", class.words()),
            unit: Unit::Ratio,
            better: Some(Better::Less),
            at: String::new(),
        };
        table.measures.splice(at..at, answer.classes.iter().map(measure));
        for (line, row) in table.rows.iter_mut().enumerate() {
            let value = |class: usize| {
                let tail = answer.tail(line, class).percentiles[P99];
                tail.map_or(Estimate::of(&[]), |tail| {
                    Estimate::with_interval(tail.value, tail.interval, answer.seeds())
                })
            };
            row.values.splice(at..at, (0..answer.classes.len()).map(value));
        }
        table
    }

    /// For people: a column for each axis and measure, as wide as it must be, under the title.
    pub fn text(&self) -> String {
        format!("{}\n\n{}", self.title, self.columns(&|_| true))
    }

    /// The same without the title, without tails of slowdown, which are told by size, and without counts that say that all is well.
    pub fn brief(&self) -> String {
        let all_finished = {
            let place = |key: &str| self.measures.iter().position(|measure| measure.key == key);
            let (flows, finished) = (place("flows"), place("finished"));
            let mean = |row: &Row, place: Option<usize>| row.values.get(place?)?.mean;
            self.rows.iter().all(|row| mean(row, flows) == mean(row, finished))
        };
        let told =
            |measure: &Measure| measure.key.starts_with("slowdown_p9") || all_finished && measure.key == "finished";
        self.columns(&|measure| !told(measure))
    }

    fn columns(&self, shown: &dyn Fn(&Measure) -> bool) -> String {
        let measures: Vec<(usize, &Measure)> =
            self.measures.iter().enumerate().filter(|(_, measure)| shown(measure)).collect();
        let ending = |row: &Row| match row.endings.iter().collect::<Vec<_>>().as_slice() {
            [(ending, _)] => ending.to_string(),
            several => several.iter().map(|(ending, n)| format!("{n} {ending}")).collect::<Vec<_>>().join(", "),
        };
        let heads =
            self.axes.iter().cloned().chain(measures.iter().map(|(_, m)| m.head.clone())).chain(["ending".into()]);
        let mut lines: Vec<Vec<String>> = vec![heads.collect()];
        for row in &self.rows {
            let values = measures
                .iter()
                .filter_map(|(at, measure)| Some(in_words(row.values.get(*at)?, measure.unit, measure.least())));
            lines.push(row.labels.iter().map(|(_, value)| value.clone()).chain(values).chain([ending(row)]).collect());
        }
        let width = |column: usize| lines.iter().filter_map(|l| l.get(column)).map(|c| c.chars().count()).max();
        let widths: Vec<usize> = (0..).map_while(width).collect();
        let mut text = String::new();
        for line in &lines {
            let cells = line.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
                let left = column < self.axes.len() || column + 1 == widths.len();
                if left { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
            });
            text += &format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end());
        }
        text
    }

    /// For programs: every number in full.
    pub fn csv(&self) -> String {
        let field = |text: &str| match text.contains([',', '"', '\n', '\r']) {
            true => format!("\"{}\"", text.replace('"', "\"\"")),
            false => text.into(),
        };
        let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
        let heads = self.measures.iter().flat_map(|m| [m.key.clone(), format!("{}_ci95", m.key)]);
        let heads =
            self.axes.iter().map(|axis| field(axis)).chain(["runs".into()]).chain(heads).chain(["endings".into()]);
        let mut text = heads.collect::<Vec<String>>().join(",") + "\n";
        for row in &self.rows {
            let runs: usize = row.endings.values().sum();
            let values = row.values.iter().flat_map(|value| [number(value.mean), number(value.half)]);
            let endings: Vec<String> = row.endings.iter().map(|(ending, count)| format!("{ending}:{count}")).collect();
            let labels = row.labels.iter().map(|(_, value)| field(value));
            let fields = labels.chain([runs.to_string()]).chain(values).chain([endings.join(" ")]);
            text += &(fields.collect::<Vec<String>>().join(",") + "\n");
        }
        text
    }
}
