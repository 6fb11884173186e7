//! The numbers of a comparison: what the runs of a grid came to, side by side.

use crate::answer::{Answer, Class, P99};
use crate::measure::{Estimate, Percentiles, VAGUE};
use crate::print::{columns, field, number, size};
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
    at: At,
}

/// Where in a summary a number of a comparison is. Groups and collectives are found by their names: runs need not have the same.
#[derive(Clone, Debug)]
pub enum At {
    /// At this JSON pointer.
    Pointer(String),
    /// A percentile of slowdown, flows that did not finish taken to be the slowest.
    Slowdown {
        /// Of one group alone.
        group: Option<String>,
        /// Of one of the ranges of sizes alone.
        bin: Option<usize>,
        /// Which: `p50`, `p99` and so on.
        percentile: &'static str,
    },
    /// The mean completion time of a collective, if all of its rounds are done.
    Completion(String),
    /// The mean time of an iteration of a job, if all of its iterations are done.
    Iteration(String),
    /// Nowhere: it was computed from flows.
    Flows,
}

impl At {
    /// The number there is.
    pub fn of(&self, summary: &Value) -> Option<f64> {
        match self {
            At::Pointer(at) => summary.pointer(at)?.as_f64(),
            At::Slowdown { group, bin, percentile } => {
                let flows = group.as_ref().map_or(Some(summary), |group| named(summary, "groups", group))?;
                let flows = bin.map_or(Some(flows), |bin| flows["slowdown_by_size"].get(bin))?;
                Percentiles::read(&flows["slowdown"], percentile)
            }
            At::Completion(name) => {
                let collective = named(summary, "collectives", name)?;
                let done = collective["finished"] == collective["rounds"];
                collective["completion_ps"]["mean"].as_f64().filter(|_| done)
            }
            At::Iteration(name) => {
                let job = named(summary, "jobs", name)?;
                let done = job["finished"] == job["iterations"];
                job["iteration_ps"]["mean"].as_f64().filter(|_| done)
            }
            At::Flows => None,
        }
    }
}

/// What hosts of these runs do together, in order: collectives, then jobs. The key of each time in files, what it is of, its name for people, and where it is.
pub fn together<'a>(summaries: impl Iterator<Item = &'a Value> + Clone) -> Vec<(String, String, &'static str, At)> {
    let names = |list: &'static str| {
        let mut names: Vec<&str> = Vec::new();
        for one in summaries.clone().flat_map(|summary| summary[list].as_array().into_iter().flatten()) {
            let name = one["name"].as_str().unwrap_or_default();
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    };
    let collective =
        |name: &str| (format!("completion_ps_{name}"), name.into(), COMPLETION, At::Completion(name.into()));
    let job = |name: &str| (format!("iteration_ps_{name}"), name.into(), ITERATION, At::Iteration(name.into()));
    names("collectives").into_iter().map(collective).chain(names("jobs").into_iter().map(job)).collect()
}

/// A key with its value as a sentence has it: `switch.buffer = 2MB`, and `load of the first [[load]] 30 %`.
pub fn in_prose(key: &str, value: &str) -> String {
    let parts: Vec<&str> = key.split('.').collect();
    let place = |at: &str| at.parse::<usize>().ok();
    let [table, at, leaf @ ..] = parts.as_slice() else { return format!("{key} = {value}") };
    let (Some(at), false) = (place(at), leaf.is_empty()) else { return format!("{key} = {value}") };
    const ORDINALS: [&str; 5] = ["first", "second", "third", "fourth", "fifth"];
    let nth = ORDINALS.get(at).map_or(format!("{}th", at + 1), |nth| nth.to_string());
    let value = match (leaf.last(), value.parse::<f64>()) {
        (Some(&"load"), Ok(share)) => format!("{} %", (share * 1e6).round() / 1e4),
        _ => value.to_string(),
    };
    format!("{} of the {nth} [[{table}]] {value}", leaf.join(" ").replace('_', " "))
}

/// What collectives are compared by.
pub const COMPLETION: &str = "completion time";
/// What jobs are compared by.
pub const ITERATION: &str = "iteration time";

/// The member of a list of a summary that has this name.
fn named<'a>(summary: &'a Value, list: &str, name: &str) -> Option<&'a Value> {
    summary[list].as_array()?.iter().find(|member| member["name"] == name)
}

/// Names of groups that have flows with a slowdown, in any of these runs, in order.
pub fn groups_with_slowdowns<'a>(summaries: impl Iterator<Item = &'a Value>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for summary in summaries {
        for group in summary["groups"].as_array().into_iter().flatten() {
            let count = |key: &str| group["slowdown"][key].as_u64().unwrap_or(0);
            let name = group["name"].as_str().unwrap_or_default();
            if count("count") + count("unfinished") > 0 && !names.iter().any(|known| known == name) {
                names.push(name.into());
            }
        }
    }
    names
}

impl Measure {
    /// What it cannot be below: a slowdown is at least 1.
    fn least(&self) -> f64 {
        if self.key.starts_with("slowdown") { 1.0 } else { 0.0 }
    }

    /// What a run has of it, by its summary.
    pub fn of(&self, summary: &Value) -> Option<f64> {
        self.at.of(summary)
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
    let mark = estimate.mark();
    // An end of an interval, or half of it.
    let symmetric = estimate.spread(|_| String::new()).starts_with(" ±");
    format!("{mark}{mean:.digits$}{}", estimate.spread(|value| show(if symmetric { value } else { value.max(least) })))
}

/// The numbers that are compared. Of the bins of sizes, the smallest and the largest with flows in any run.
fn measures(summaries: &[Value]) -> Vec<Measure> {
    let measure = |key: &str, head: &str, label: &str, unit: Unit, at: At| Measure {
        key: key.into(),
        head: head.into(),
        label: label.into(),
        unit,
        better: Some(Better::Less),
        at,
    };
    let pointer = |at: &str| At::Pointer(at.into());
    let slowdown = |group: Option<&String>, bin, percentile| At::Slowdown { group: group.cloned(), bin, percentile };
    let mut all = vec![
        Measure { better: None, ..measure("flows", "flows", "flows", Unit::Count, pointer("/flows")) },
        Measure {
            better: Some(Better::More),
            ..measure("finished", "finished", "finished", Unit::Count, pointer("/finished"))
        },
    ];
    // Several groups are not pooled: an incast would drown the rest.
    let groups = groups_with_slowdowns(summaries.iter());
    match groups.as_slice() {
        [] | [_] => {
            for (q, head) in [("p50", "slowdown p50"), ("p95", "p95"), ("p99", "p99")] {
                let (key, label) = (format!("slowdown_{q}"), format!("slowdown {q}"));
                all.push(measure(&key, head, &label, Unit::Ratio, slowdown(None, None, q)));
            }
        }
        several => {
            for name in several {
                for q in ["p50", "p99"] {
                    let (key, label) = (format!("slowdown_{q}_{name}"), format!("slowdown {q} {name}"));
                    let at = slowdown(Some(name), None, q);
                    all.push(measure(&key, &format!("{name} {q}"), &label, Unit::Ratio, at));
                }
            }
        }
    }
    let bins = |summary: &Value| summary["slowdown_by_size"].as_array().cloned().unwrap_or_default();
    let filled = |bin: &Value| ["count", "unfinished"].iter().any(|key| bin["slowdown"][key].as_u64().unwrap_or(0) > 0);
    let places = |summary| bins(summary).iter().enumerate().filter(|(_, bin)| filled(bin)).map(|(i, _)| i).collect();
    let places: Vec<usize> = summaries.iter().flat_map(|summary| -> Vec<usize> { places(summary) }).collect();
    let ends = (places.iter().min(), places.iter().max());
    if let ((Some(&low), Some(&high)), Some(summary)) = (ends, summaries.first())
        && low != high
        && groups.len() < 2
    {
        let bins = bins(summary);
        let end = |place: usize, end: &str| bins.get(place).and_then(|bin| bin[end].as_u64());
        if let Some(top) = end(low, "up_to") {
            let (head, at) = (format!("p99 ≤{}", size(top)), slowdown(None, Some(low), "p99"));
            all.push(measure("slowdown_p99_small", &head, "slowdown p99 small", Unit::Ratio, at));
        }
        if let Some(bottom) = end(high, "above") {
            let (head, at) = (format!("p99 >{}", size(bottom)), slowdown(None, Some(high), "p99"));
            all.push(measure("slowdown_p99_large", &head, "slowdown p99 large", Unit::Ratio, at));
        }
    }
    for (key, name, what, at) in together(summaries.iter()) {
        let (head, label) = (format!("{name} us"), format!("{what} of {name}"));
        all.push(measure(&key, &head, &label, Unit::Microseconds, at));
    }
    all.extend([
        measure("peak_buffer_bytes", "peak buffer KB", "peak buffer", Unit::Kilobytes, pointer("/buffer/peak")),
        measure("paused_ps", "paused us", "paused", Unit::Microseconds, pointer("/pause/paused_ps")),
    ]);
    // Links of which single queues are paused carry on, and schemes that pause no link keep flows at their NICs instead.
    let most = |at: &str| summaries.iter().filter_map(|summary| summary.pointer(at)?.as_u64()).max().unwrap_or(0);
    let single = |summary: &Value| {
        let of = |at: &str| summary.pointer(at).and_then(Value::as_u64);
        of("/pause/class_ps").is_some_and(|class| of("/pause/paused_ps").is_some_and(|any| any > class))
    };
    if summaries.iter().any(single) {
        let label = "paused, a whole class";
        all.push(measure("paused_class_ps", "of it class us", label, Unit::Microseconds, pointer("/pause/class_ps")));
    }
    if most("/held/held_ps") > 0 {
        all.push(measure("held_ps", "held us", "flows held", Unit::Microseconds, pointer("/held/held_ps")));
    }
    all.push(measure("dropped_packets", "drops", "dropped", Unit::Count, pointer("/dropped/packets")));
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
                // A mean of some of the seeds would be of those where all went well.
                let values: Option<Vec<f64>> = runs.iter().map(|(_, summary)| measure.of(summary)).collect();
                Estimate::of(&values.unwrap_or_default())
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
        let tails = |measure: &Measure| measure.key.starts_with("slowdown_p9");
        let at = self.measures.iter().position(tails).unwrap_or(self.measures.len());
        let group = |class: &Class| class.group.as_ref().map_or(String::new(), |group| format!("_{group}"));
        let sizes = |class: &Class| match (class.whole, class.up_to) {
            (true, _) => "all".to_string(),
            (false, Some(end)) => format!("{}_{end}", class.above),
            (false, None) => format!("{}_more", class.above),
        };
        let measure = |class: &Class| Measure {
            key: format!("slowdown_p99{}_{}", group(class), sizes(class)),
            head: format!("p99 {}", class.head()),
            label: match (class.whole, &class.group) {
                (true, None) => "p99 slowdown".into(),
                _ => format!("p99 slowdown of {}", class.words()),
            },
            unit: Unit::Ratio,
            better: Some(Better::Less),
            at: At::Flows,
        };
        let kept = |place: &usize| !tails(&self.measures[*place]);
        let (before, after): (Vec<usize>, Vec<usize>) =
            (0..self.measures.len()).filter(kept).partition(|&place| place < at);
        let old = |places: &[usize]| places.iter().map(|&place| self.measures[place].clone()).collect::<Vec<_>>();
        let measures = [old(&before), answer.classes.iter().map(measure).collect(), old(&after)].concat();
        let row = |(line, row): (usize, &Row)| {
            let tail = |class: usize| match answer.tail(line, class).percentiles[P99] {
                Some(tail) => Estimate::with_interval(tail.value, tail.interval, answer.seeds()),
                None => Estimate::of(&[]),
            };
            let old = |places: &[usize]| places.iter().map(|&place| row.values[place]).collect::<Vec<_>>();
            let tails = (0..answer.classes.len()).map(tail).collect();
            Row { values: [old(&before), tails, old(&after)].concat(), ..row.clone() }
        };
        let rows = self.rows.iter().enumerate().map(row).collect();
        Table { measures, rows, ..self.clone() }
    }

    /// What stands before every number: runs that did not end well, and packets that were lost. A line each.
    pub fn troubles(&self) -> Vec<String> {
        let place = |key: &str| self.measures.iter().position(|measure| measure.key == key);
        let (flows, finished, drops) = (place("flows"), place("finished"), place("dropped_packets"));
        let mut lines = Vec::new();
        for row in &self.rows {
            let mean = |place: Option<usize>| row.values.get(place?)?.mean;
            let name: Vec<&str> = row.labels.iter().map(|(_, value)| value.as_str()).collect();
            let name = if name.is_empty() { "the run".into() } else { name.join(", ") };
            let runs: usize = row.endings.values().sum();
            let bad = row.endings.iter().filter(|(ending, _)| !["complete", "stopped"].contains(&ending.as_str()));
            for (ending, count) in bad {
                let (all, done) = (mean(flows).unwrap_or(0.0), mean(finished).unwrap_or(0.0));
                let (times, average) = match runs {
                    1 => (String::new(), ""),
                    _ => (format!(" in {count} of {runs} runs"), " on average"),
                };
                lines.push(format!("{name}: {ending}{times}, {done:.0} of {all:.0} flows finished{average}"));
            }
            if let Some(lost) = mean(drops).filter(|lost| *lost > 0.0) {
                let lost = match lost {
                    ..0.1 => "less than 0.1".to_string(),
                    ..10.0 if lost.fract() > 0.0 => format!("{lost:.1}"),
                    _ => format!("{lost:.0}"),
                };
                let average = if runs == 1 { "" } else { " in a run on average" };
                let packets = if lost == "1" { "packet" } else { "packets" };
                lines.push(format!("{name}: {lost} {packets} lost{average}"));
            }
        }
        lines
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
        let last = lines[0].len() - 1;
        let vague = self.rows.iter().any(|row| measures.iter().any(|(at, _)| row.values[*at].is_vague()));
        let note = if vague { format!("{VAGUE}\n") } else { String::new() };
        columns(&lines, |column| column < self.axes.len() || column == last) + &note
    }

    /// For programs: every number in full.
    pub fn csv(&self) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Spread;
    use serde_json::json;

    const NEVER: f64 = f64::INFINITY;

    fn summary(groups: &[(&str, &[f64])]) -> Value {
        let spread = |values: &[f64]| serde_json::to_value(Spread::of(values.to_vec())).unwrap();
        let group = |(name, values): &(&str, &[f64])| json!({ "name": name, "slowdown": spread(values) });
        let all: Vec<f64> = groups.iter().flat_map(|(_, values)| values.iter().copied()).collect();
        let finished = all.iter().filter(|value| value.is_finite()).count();
        json!({
            "ending": "stopped", "flows": all.len(), "finished": finished, "slowdown": spread(&all),
            "groups": groups.iter().map(group).collect::<Vec<_>>(),
            "dropped": { "packets": 0 }, "buffer": { "peak": 0 }, "pause": { "paused_ps": 0 },
        })
    }

    fn of(summaries: &[Value]) -> Table {
        let labels = vec![(SCHEME.to_string(), "a".to_string())];
        Table::new(vec![SCHEME.into()], &vec![&labels; summaries.len()], summaries)
    }

    fn mean(table: &Table, key: &str) -> Option<f64> {
        table.rows[0].values[table.measures.iter().position(|measure| measure.key == key).expect(key)].mean
    }

    #[test]
    fn a_percentile_is_of_all_flows_and_none_where_it_falls_on_one_that_did_not_finish() {
        let table = of(&[summary(&[("load", &[1.0, 2.0, NEVER, NEVER, 9.0])])]);
        assert_eq!([mean(&table, "slowdown_p50"), mean(&table, "slowdown_p99")], [Some(9.0), None]);
        // A seed without a value leaves none for all.
        let table = of(&[summary(&[("load", &[1.0])]), summary(&[("load", &[NEVER])])]);
        assert_eq!(mean(&table, "slowdown_p50"), None);
    }

    #[test]
    fn groups_are_found_by_their_names() {
        let one = summary(&[("load", &[1.0]), ("incast", &[5.0])]);
        let other = summary(&[("incast", &[7.0]), ("load", &[3.0])]);
        let table = of(&[one, other]);
        assert_eq!([mean(&table, "slowdown_p50_load"), mean(&table, "slowdown_p50_incast")], [Some(2.0), Some(6.0)]);
    }

    #[test]
    fn a_collective_of_which_rounds_are_open_has_no_completion_time() {
        let with = |finished: u64| {
            let mut summary = summary(&[("load", &[1.0])]);
            let time = json!({ "mean": 5e6 });
            summary["collectives"] =
                json!([{ "name": "ring", "rounds": 4, "finished": finished, "completion_ps": time }]);
            summary
        };
        assert_eq!(mean(&of(&[with(4)]), "completion_ps_ring"), Some(5e6));
        assert_eq!(mean(&of(&[with(1)]), "completion_ps_ring"), None);
    }

    #[test]
    fn a_key_of_a_table_among_several_has_words_in_a_sentence() {
        assert_eq!(in_prose("load.0.load", "0.3"), "load of the first [[load]] 30 %");
        assert_eq!(in_prose("incast.1.size_each", "64KB"), "size each of the second [[incast]] 64KB");
        assert_eq!(in_prose("switch.buffer", "2MB"), "switch.buffer = 2MB");
        assert_eq!(in_prose("scheme.hpcc.eta", "0.9"), "scheme.hpcc.eta = 0.9");
    }

    #[test]
    fn an_iteration_of_a_job_has_a_time_if_all_are_done() {
        let with = |finished: u64| {
            let mut summary = summary(&[("load", &[1.0])]);
            let time = json!({ "mean": 7e6 });
            summary["jobs"] = json!([{ "name": "job", "iterations": 2, "finished": finished, "iteration_ps": time }]);
            summary
        };
        assert_eq!(mean(&of(&[with(2)]), "iteration_ps_job"), Some(7e6));
        assert_eq!(mean(&of(&[with(1)]), "iteration_ps_job"), None);
    }

    #[test]
    fn an_interval_wider_than_its_value_is_not_shown() {
        let words = |values: &[f64]| in_words(&Estimate::of(values), Unit::Ratio, 1.0);
        assert_eq!(words(&[3.0, 3.1, 3.2]), "3.10 ±0.25");
        assert_eq!(words(&[1.0, 3.0, 9.0]), "~4.33");
        assert_eq!(words(&[2.0, 2.0]), "2.00");
        let peaks = |values: &[f64]| {
            let one = |peak: &f64| {
                let mut summary = summary(&[("load", &[1.0])]);
                summary["buffer"]["peak"] = json!(peak);
                summary
            };
            of(&values.iter().map(one).collect::<Vec<_>>()).brief()
        };
        assert!(peaks(&[1e3, 9e3, 2e3]).ends_with(&format!("{VAGUE}\n")));
        assert!(!peaks(&[1e3, 1.1e3, 1.05e3]).contains('~'));
    }

    #[test]
    fn troubles_of_one_run_have_no_average() {
        let mut summary = summary(&[("load", &[NEVER])]);
        summary["ending"] = json!("deadlock");
        summary["dropped"]["packets"] = json!(5);
        assert_eq!(of(&[summary]).troubles(), ["a: deadlock, 0 of 1 flows finished", "a: 5 packets lost"]);
    }

    #[test]
    fn troubles_are_said_in_words_and_small_losses_are_not_rounded_away() {
        let mut summaries = [summary(&[("load", &[1.0])]), summary(&[("load", &[NEVER])])];
        summaries[1]["ending"] = json!("deadlock");
        summaries[1]["dropped"]["packets"] = json!(1);
        let said =
            ["a: deadlock in 1 of 2 runs, 0 of 1 flows finished on average", "a: 0.5 packets lost in a run on average"];
        assert_eq!(of(&summaries).troubles(), said);
    }
}
