//! Who wins where: tails of slowdown by group and size of flow, over all seeds, and which differences are certain.
//!
//! Seeds are pooled: a percentile is that of the flows of all of them. Its interval, and that of a ratio, comes from the jackknife over
//! seeds. All variants see the same traffic under the same seed, so that a ratio is taken seed by seed: what the traffic of a seed does to
//! both cancels.

use crate::comparison::Labels;
use crate::measure::{jackknife, percentile, quantile_interval};
use crate::records::FlowRow;
use std::collections::BTreeMap;

/// Upper ends of size bins where nobody says otherwise.
pub const BINS: [u64; 3] = [10_000, 100_000, 1_000_000];
/// A tail of fewer flows is marked.
pub const FEW: usize = 100;
/// Fewer seeds say nothing about how far a number can be trusted.
pub const ENOUGH: usize = 3;

/// Which flows count, and how they are told apart.
#[derive(Clone, Debug)]
pub struct Question {
    /// Upper ends of size bins, in bytes, rising.
    pub bins: Vec<u64>,
    /// Only flows that start from this instant on count,
    pub from_ps: u64,
    /// and before this one.
    pub until_ps: u64,
}

impl Default for Question {
    fn default() -> Question {
        Question { bins: BINS.to_vec(), from_ps: 0, until_ps: u64::MAX }
    }
}

/// Flows that are looked at together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Class {
    /// The group; none where there is only one.
    pub group: Option<String>,
    /// Larger than this many bytes,
    pub above: u64,
    /// up to this many; none: whatever the size.
    pub up_to: Option<u64>,
    /// Whether it has all sizes of its group.
    pub whole: bool,
}

impl Class {
    /// A head of a column: `load ≤10KB`.
    pub fn head(&self) -> String {
        let sizes = match (self.whole, self.above, self.up_to) {
            (true, ..) => String::new(),
            (_, 0, Some(end)) => format!("≤{}", size(end)),
            (_, above, None) => format!(">{}", size(above)),
            (_, above, Some(end)) => format!("{}–{}", size(above), size(end)),
        };
        match (&self.group, sizes.is_empty()) {
            (None, true) => "all".into(),
            (None, false) => sizes,
            (Some(group), true) => group.clone(),
            (Some(group), false) => format!("{group} {sizes}"),
        }
    }

    /// In a sentence: `flows of load up to 10KB`.
    pub fn words(&self) -> String {
        let of = self.group.as_ref().map_or(String::new(), |group| format!(" of {group}"));
        match (self.whole, self.above, self.up_to) {
            (true, ..) => format!("flows{of}"),
            (_, 0, Some(end)) => format!("flows{of} up to {}", size(end)),
            (_, above, None) => format!("flows{of} above {}", size(above)),
            (_, above, Some(end)) => format!("flows{of} of {} to {}", size(above), size(end)),
        }
    }

    fn has(&self, flow: &FlowRow) -> bool {
        self.group.as_ref().is_none_or(|group| *group == flow.group)
            && (self.whole || flow.size > self.above && self.up_to.is_none_or(|end| flow.size <= end))
    }
}

/// A size for people.
pub fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes}B"),
        1_000..1_000_000 => format!("{}KB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{}MB", bytes as f64 / 1e6),
        _ => format!("{}GB", bytes as f64 / 1e9),
    }
}

/// A number over seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Value {
    /// The number.
    pub value: f64,
    /// Its 95 % interval, where there is one.
    pub interval: Option<(f64, f64)>,
}

/// What one line of a comparison has of a class of flows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tail {
    /// How many flows, over all seeds.
    pub flows: usize,
    /// How many of them did not finish. They are taken to be slower than all that did.
    pub unfinished: usize,
    /// Percentiles of slowdown: the median, the 95th, the 99th, the 99.9th. None where it falls on flows that did not finish.
    pub percentiles: [Option<Value>; 4],
}

/// The percentiles of a [`Tail`].
pub const PERCENTILES: [(f64, &str); 4] = [(0.5, "p50"), (0.95, "p95"), (0.99, "p99"), (0.999, "p999")];
/// The place of the 99th among them.
pub const P99: usize = 2;

/// Whether a line is the best of those that it is held against.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// The best line.
    pub best: usize,
    /// The others, best first, with how many times the best's they are.
    pub others: Vec<(usize, Value)>,
}

impl Standing {
    /// Whether a line is certainly worse than the best.
    pub fn worse(&self, line: usize) -> bool {
        let certain = |ratio: &Value| ratio.interval.is_some_and(|(low, _)| low > 1.0);
        self.others.iter().any(|(other, ratio)| *other == line && certain(ratio))
    }

    /// Whether the best is certainly better than all others.
    pub fn certain(&self) -> bool {
        !self.others.is_empty() && self.others.iter().all(|(line, _)| self.worse(*line))
    }
}

/// A line: runs that differ in their seed only.
#[derive(Clone, Debug)]
struct Line {
    labels: Labels,
    /// By class and seed: sorted slowdowns, those that did not finish as infinity.
    samples: Vec<Vec<Vec<f64>>>,
    /// By seed.
    peak_buffer: Vec<f64>,
}

/// The answer of a comparison.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The classes of flows that there are.
    pub classes: Vec<Class>,
    lines: Vec<Line>,
    question: Question,
    /// Seeds that make a difference, and those that were run.
    seeds: usize,
    asked: usize,
}

/// A percentile of sorted samples; none where it falls on what did not finish.
fn tail(sorted: &[f64], q: f64) -> Option<f64> {
    (!sorted.is_empty()).then(|| percentile(sorted, q)).filter(|value| value.is_finite())
}

/// Sorted samples of all seeds but one.
fn pooled(seeds: &[Vec<f64>], without: Option<usize>) -> Vec<f64> {
    let kept = seeds.iter().enumerate().filter(|(seed, _)| Some(*seed) != without);
    let mut all: Vec<f64> = kept.flat_map(|(_, values)| values.iter().copied()).collect();
    all.sort_by(f64::total_cmp);
    all
}

/// The jackknife's interval of something over seeds.
fn over_seeds(seeds: usize, value: f64, without: impl Fn(usize) -> Option<f64>) -> Option<(f64, f64)> {
    let others: Option<Vec<f64>> = (0..seeds).map(without).collect();
    jackknife(value, &others?)
}

/// How lines stand by a number over seeds: what a line has, with a seed left out or none, and whether it has a single sample. None where a line has
/// nothing.
fn standing(
    lines: &[usize],
    seeds: usize,
    single: impl Fn(usize) -> bool,
    of: impl Fn(usize, Option<usize>) -> Option<f64>,
) -> Option<Standing> {
    let mut order = lines
        .iter()
        .map(|&line| of(line, None).filter(|value| *value > 0.0).map(|value| (line, value)))
        .collect::<Option<Vec<_>>>()?;
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let &(best, least) = order.first()?;
    let against = |&(line, value): &(usize, f64)| {
        let ratio = value / least;
        let without = |seed| Some(of(line, Some(seed))? / of(best, Some(seed))?).filter(|ratio| ratio.is_finite());
        // Two single samples say nothing about others.
        let enough = seeds >= ENOUGH && !(single(line) && single(best));
        let interval = enough.then(|| over_seeds(seeds, ratio, without)).flatten();
        (line, Value { value: ratio, interval })
    };
    Some(Standing { best, others: order[1..].iter().map(against).collect() })
}

/// Which line's mean over seeds is certainly the least; a value for each line and seed. None if that is nobody's.
pub fn certainly_least(values: &[Vec<f64>]) -> Option<usize> {
    let seeds = values.iter().map(Vec::len).max()?;
    let of = |line: usize, without: Option<usize>| {
        let kept = values[line].iter().enumerate().filter(|(seed, _)| Some(*seed) != without).map(|(_, value)| *value);
        let kept: Vec<f64> = kept.collect();
        (!kept.is_empty()).then(|| kept.iter().sum::<f64>() / kept.len() as f64)
    };
    let alike = values.iter().all(|line| line.len() == seeds) && seeds >= ENOUGH;
    let lines: Vec<usize> = (0..values.len()).collect();
    let standing = standing(&lines, seeds, |_| false, of).filter(|standing| alike && standing.certain())?;
    Some(standing.best)
}

/// Runs as an answer wants them: where each is in its grid, its flows, and its summary's peak of buffer.
pub struct Run<'a> {
    /// Where it is; those that differ in their seed only follow each other.
    pub labels: &'a Labels,
    /// Its flows.
    pub flows: Vec<FlowRow>,
    /// The most that a switch held.
    pub peak_buffer: f64,
}

impl Answer {
    /// Of runs that come one by one, so that not all flows are in memory at once. The classes are those of the first run of
    /// each line: all have the same traffic.
    pub fn new<'a, E>(question: Question, runs: impl Iterator<Item = Result<Run<'a>, E>>) -> Result<Answer, E> {
        let (mut classes, mut lines): (Vec<Class>, Vec<Line>) = (Vec::new(), Vec::new());
        let mut kept: Vec<(Labels, BTreeMap<Class, Vec<f64>>, f64)> = Vec::new();
        for run in runs {
            let run = run?;
            let counts = |flow: &&FlowRow| {
                flow.start_ps.is_some_and(|start| start >= question.from_ps && start < question.until_ps)
            };
            let flows: Vec<&FlowRow> = run.flows.iter().filter(counts).collect();
            let mut samples = BTreeMap::new();
            for class in classes_of(&flows, &question.bins) {
                let mut values: Vec<f64> =
                    flows.iter().filter(|flow| class.has(flow)).map(|f| f.slowdown.unwrap_or(f64::INFINITY)).collect();
                values.sort_by(f64::total_cmp);
                if !classes.contains(&class) {
                    classes.push(class.clone());
                }
                samples.insert(class, values);
            }
            kept.push((run.labels.clone(), samples, run.peak_buffer));
        }
        tidy(&mut classes);
        for same in kept.chunk_by(|a, b| a.0 == b.0) {
            // Where no seed makes a difference there is one sample, however many they are.
            let alike = same.iter().all(|run| (&run.1, run.2) == (&same[0].1, same[0].2));
            let same = if alike { &same[..1] } else { same };
            let of = |class: &Class| same.iter().map(|run| run.1.get(class).cloned().unwrap_or_default()).collect();
            lines.push(Line {
                labels: same[0].0.clone(),
                samples: classes.iter().map(of).collect(),
                peak_buffer: same.iter().map(|run| run.2).collect(),
            });
        }
        let seeds = lines.iter().map(|line| line.peak_buffer.len()).max().unwrap_or(0);
        let asked = kept.chunk_by(|a, b| a.0 == b.0).map(<[_]>::len).max().unwrap_or(0);
        Ok(Answer { classes, lines, question, seeds, asked })
    }

    /// Where each line is in the grid.
    pub fn labels(&self) -> impl Iterator<Item = &Labels> {
        self.lines.iter().map(|line| &line.labels)
    }

    /// How many seeds it is from.
    pub fn seeds(&self) -> usize {
        self.seeds
    }

    /// What was asked.
    pub fn question(&self) -> &Question {
        &self.question
    }

    /// What a line has of a class.
    pub fn tail(&self, line: usize, class: usize) -> Tail {
        let seeds = &self.lines[line].samples[class];
        let all = pooled(seeds, None);
        let percentile = |(q, _): (f64, &str)| {
            let value = tail(&all, q)?;
            let interval = match seeds.len() {
                1 => quantile_interval(&all, q).filter(|(_, high)| high.is_finite()),
                several if several < ENOUGH => None,
                several => over_seeds(several, value, |seed| tail(&pooled(seeds, Some(seed)), q)),
            };
            Some(Value { value, interval: interval.map(|(low, high)| (low.max(1.0_f64.min(value)), high)) })
        };
        let unfinished = all.iter().filter(|value| value.is_infinite()).count();
        Tail { flows: all.len(), unfinished, percentiles: PERCENTILES.map(percentile) }
    }

    /// How lines stand by a percentile of a class; none where a line has no value.
    fn by_tail(&self, lines: &[usize], class: usize, q: f64) -> Option<Standing> {
        // One that no seed changes is the same without any of them.
        let of = |line: usize, without: Option<usize>| {
            let seeds = &self.lines[line].samples[class];
            tail(&pooled(seeds, without.filter(|_| seeds.len() > 1)), q)
        };
        self.standing(lines, of)
    }

    /// How lines stand by the memory that they need.
    fn by_buffer(&self, lines: &[usize]) -> Option<Standing> {
        let of = |line: usize, without: Option<usize>| {
            let without = without.filter(|_| self.lines[line].peak_buffer.len() > 1);
            let kept = self.lines[line].peak_buffer.iter().enumerate().filter(|(seed, _)| Some(*seed) != without);
            let kept: Vec<f64> = kept.map(|(_, value)| *value).collect();
            (!kept.is_empty()).then(|| kept.iter().sum::<f64>() / kept.len() as f64)
        };
        self.standing(lines, of)
    }

    fn standing(&self, lines: &[usize], of: impl Fn(usize, Option<usize>) -> Option<f64>) -> Option<Standing> {
        standing(lines, self.seeds, |line| self.lines[line].peak_buffer.len() == 1, of)
    }

    /// Lines that differ in their first label alone: those that are held against each other.
    fn contests(&self) -> Vec<Vec<usize>> {
        let mut contests: Vec<Vec<usize>> = Vec::new();
        for (place, line) in self.lines.iter().enumerate() {
            let same = |other: &&mut Vec<usize>| self.lines[other[0]].labels.get(1..) == line.labels.get(1..);
            match contests.iter_mut().find(same) {
                Some(contest) => contest.push(place),
                None => contests.push(vec![place]),
            }
        }
        contests
    }

    /// Lines that are certainly the best of their contest by the 99th percentile of a class. Nobody wins by a few flows.
    pub fn winners(&self, class: usize) -> Vec<usize> {
        let flows = |line: usize| self.lines[line].samples[class].iter().map(Vec::len).sum::<usize>();
        let standing = |contest: Vec<usize>| {
            let enough = contest.iter().all(|&line| flows(line) >= FEW);
            self.by_tail(&contest, class, 0.99).filter(|standing| enough && standing.certain())
        };
        self.contests().into_iter().filter_map(standing).map(|standing| standing.best).collect()
    }

    /// Who wins where and by how much, some clauses for each contest: by the tail of the smallest and of the largest flows of every group, and by
    /// memory. Nothing where there is nothing to compare.
    pub fn clauses(&self) -> Vec<Vec<String>> {
        self.contests().iter().filter(|contest| contest.len() > 1).map(|contest| self.contest(contest)).collect()
    }

    /// The same, a sentence for each contest.
    pub fn sentences(&self) -> Vec<String> {
        self.clauses().iter().map(|clauses| clauses.join("; ") + ".").collect()
    }

    fn contest(&self, contest: &[usize]) -> Vec<String> {
        let rest = self.lines[contest[0]].labels.get(1..).unwrap_or_default();
        let at: Vec<String> = rest.iter().map(|(axis, value)| format!("{axis} = {value}")).collect();
        let at = if at.is_empty() { String::new() } else { format!("with {}, ", at.join(", ")) };
        let mut clauses = Vec::new();
        for (place, class) in self.classes.iter().enumerate() {
            let in_group = |other: &&Class| other.group == class.group && !other.whole;
            let parts: Vec<&Class> = self.classes.iter().filter(in_group).collect();
            let ends = [parts.first(), parts.last()];
            if !(if parts.is_empty() { class.whole } else { ends.contains(&Some(&class)) }) {
                continue;
            }
            let flows: usize = self.lines[contest[0]].samples[place].iter().map(Vec::len).sum();
            let what = format!("{at}{flows} {}", class.words());
            clauses.push(match self.by_tail(contest, place, 0.99) {
                _ if flows < FEW => format!("{what}: too few to judge by their p99"),
                Some(standing) => self.clause(&standing, &what, "p99 slowdown", &|line| {
                    self.tail(line, place).percentiles[P99].map_or("-".into(), |value| short(value.value))
                }),
                None => format!("{what}: not all finish under every one"),
            });
        }
        if let Some(standing) = self.by_buffer(contest) {
            let mean = |line: usize| {
                let all = &self.lines[line].peak_buffer;
                size_of(all.iter().sum::<f64>() / all.len().max(1) as f64)
            };
            clauses.push(self.clause(&standing, &format!("{at}memory"), "peak buffer", &mean));
        }
        clauses
    }

    fn name(&self, line: usize) -> &str {
        self.lines[line].labels.first().map_or("", |(_, value)| value.as_str())
    }

    /// Who is best by one measure: the winner and the next, or those that cannot be told apart.
    fn clause(&self, standing: &Standing, what: &str, measure: &str, show: &dyn Fn(usize) -> String) -> String {
        let times = |value: &Value| match value.interval {
            Some((low, high)) if short(high) != short(low) => {
                format!("{}× that ({}–{})", short(value.value), short(low), short(high))
            }
            _ => format!("{}× that", short(value.value)),
        };
        let best = self.name(standing.best);
        let level: Vec<usize> =
            standing.others.iter().map(|(line, _)| *line).filter(|line| !standing.worse(*line)).collect();
        let next = standing.others.iter().find(|(line, _)| standing.worse(*line));
        let next = next.map_or(String::new(), |(line, ratio)| format!(", {} has {}", self.name(*line), times(ratio)));
        let value = show(standing.best);
        if level.is_empty() {
            return format!("{what}: {best} has the lowest {measure}, {value}{next}");
        }
        if self.seeds < ENOUGH {
            let level =
                standing.others.iter().filter(|(_, ratio)| ratio.value <= 1.0).map(|(line, _)| self.name(*line));
            let level: Vec<&str> = std::iter::once(best).chain(level).collect();
            let why = match (self.seeds, self.asked) {
                (1, 2..) => "all seeds are alike",
                (1, _) => "one seed",
                _ => "two seeds",
            };
            let level = level.join(" and ");
            return format!("{what}: the lowest {measure} is {value}, of {level}; {why}, so nothing is certain");
        }
        let names: Vec<&str> = std::iter::once(best).chain(level.iter().map(|line| self.name(*line))).collect();
        let last = names.len() - 1;
        let names = format!("{} and {}", names[..last].join(", "), names[last]);
        format!("{what}: {names} cannot be told apart by {measure}, {value} and up{next}")
    }

    /// For people: the 99th percentile of every class and the median of all, a line each. What is certainly the best has a star.
    pub fn text(&self) -> String {
        if self.classes.is_empty() || self.lines.is_empty() {
            return String::new();
        }
        let axes = self.lines[0].labels.iter().map(|(axis, _)| axis.clone());
        let mut table: Vec<Vec<String>> = vec![axes.chain(self.classes.iter().map(Class::head)).collect()];
        let winners: Vec<Vec<usize>> = (0..self.classes.len()).map(|class| self.winners(class)).collect();
        let (mut few, mut open, mut star) = (false, false, false);
        for (place, line) in self.lines.iter().enumerate() {
            let cell = |class: usize| {
                let tail = self.tail(place, class);
                let Some(value) = tail.percentiles[P99] else {
                    open |= tail.flows > 0;
                    return if tail.flows > 0 { "not finished".into() } else { "-".to_string() };
                };
                let mut text = shown(&value);
                if tail.flows < FEW {
                    few = true;
                    text.push('?');
                }
                if winners[class].contains(&place) {
                    star = true;
                    text.push('*');
                }
                text
            };
            let cells: Vec<String> = (0..self.classes.len()).map(cell).collect();
            table.push(line.labels.iter().map(|(_, value)| value.clone()).chain(cells).collect());
        }
        let axes = self.lines[0].labels.len();
        let mut text = format!("p99 slowdown by flow size{}\n{}", self.window(), columns(&table, axes));
        let mut notes = Vec::new();
        if star {
            notes.push("* certainly the lowest".to_string());
        }
        if few {
            notes.push(format!("? fewer than {FEW} flows"));
        }
        if open {
            notes.push("flows that did not finish are taken to be the slowest".into());
        }
        match (self.seeds, self.asked) {
            (1, 2..) => notes.push("no seed makes a difference: they count as one".to_string()),
            (ENOUGH.., _) => notes.push(format!("95 % intervals over {} seeds", self.seeds)),
            (2, _) => notes.push(format!("two seeds have no intervals: take {ENOUGH} or more")),
            _ => {}
        }
        if !notes.is_empty() {
            text += &format!("{}\n", notes.join("; "));
        }
        text
    }

    /// Which flows count, if not all.
    pub fn window(&self) -> String {
        let time = |ps: u64| format!("{}us", ps as f64 / 1e6);
        match (self.question.from_ps, self.question.until_ps) {
            (0, u64::MAX) => String::new(),
            (from, u64::MAX) => format!(", flows that start from {} on", time(from)),
            (from, until) => format!(", flows that start from {} until {}", time(from), time(until)),
        }
    }

    /// For programs: a line for each line and class.
    pub fn csv(&self) -> String {
        let field = |text: &str| match text.contains([',', '"', '\n', '\r']) {
            true => format!("\"{}\"", text.replace('"', "\"\"")),
            false => text.into(),
        };
        let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
        let axes = self.lines.first().map_or(&[][..], |line| &line.labels);
        let mut heads: Vec<String> = axes.iter().map(|(axis, _)| field(axis)).collect();
        heads.extend(["group", "above_bytes", "up_to_bytes", "flows", "unfinished"].map(String::from));
        heads.extend(PERCENTILES.iter().flat_map(|(_, q)| [q.to_string(), format!("{q}_low"), format!("{q}_high")]));
        let mut text = heads.join(",") + "\n";
        for (place, line) in self.lines.iter().enumerate() {
            for (at, class) in self.classes.iter().enumerate() {
                let tail = self.tail(place, at);
                let mut fields: Vec<String> = line.labels.iter().map(|(_, value)| field(value)).collect();
                fields.push(class.group.as_deref().map_or(String::new(), field));
                fields.push(class.above.to_string());
                fields.push(class.up_to.map_or(String::new(), |end| end.to_string()));
                fields.extend([tail.flows.to_string(), tail.unfinished.to_string()]);
                for value in &tail.percentiles {
                    let ends = value.and_then(|value| value.interval);
                    fields.push(number(value.map(|value| value.value)));
                    fields.extend([number(ends.map(|ends| ends.0)), number(ends.map(|ends| ends.1))]);
                }
                text += &(fields.join(",") + "\n");
            }
        }
        text
    }
}

/// Text in columns: the first `left` from the left, the others from the right.
fn columns(table: &[Vec<String>], left: usize) -> String {
    let width = |column: usize| table.iter().filter_map(|line| line.get(column)).map(|c| c.chars().count()).max();
    let widths: Vec<usize> = (0..).map_while(width).collect();
    let mut text = String::new();
    for line in table {
        let cells = line.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if column < left { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        text += &format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
    text
}

/// Three digits.
fn short(value: f64) -> String {
    let digits = match value.abs() {
        ..9.995 => 2,
        ..99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$}")
}

fn shown(value: &Value) -> String {
    match value.interval {
        Some((low, high)) if short(high) != short(low) => {
            format!("{} ({}–{})", short(value.value), short(low), short(high))
        }
        _ => short(value.value),
    }
}

/// Bytes as people say them, three digits.
fn size_of(bytes: f64) -> String {
    match bytes {
        ..1e6 => format!("{} KB", short(bytes / 1e3)),
        _ => format!("{} MB", short(bytes / 1e6)),
    }
}

/// The classes of flows that there are: all of a group, and its sizes where it has several.
fn classes_of(flows: &[&FlowRow], bins: &[u64]) -> Vec<Class> {
    let mut groups: Vec<&str> = Vec::new();
    for flow in flows {
        if !groups.contains(&flow.group.as_str()) {
            groups.push(&flow.group);
        }
    }
    let several = groups.len() > 1;
    let mut classes = Vec::new();
    for group in groups {
        let name = several.then(|| group.to_string());
        classes.push(Class { group: name.clone(), above: 0, up_to: None, whole: true });
        let ends = bins.iter().map(|&end| Some(end)).chain([None]);
        for (above, up_to) in [0].into_iter().chain(bins.iter().copied()).zip(ends) {
            let class = Class { group: name.clone(), above, up_to, whole: false };
            if flows.iter().any(|flow| flow.group == group && class.has(flow)) {
                classes.push(class);
            }
        }
    }
    classes
}

/// In order, and without the sizes of groups that have one alone.
fn tidy(classes: &mut Vec<Class>) {
    let groups: Vec<Option<String>> = classes.iter().map(|class| class.group.clone()).collect();
    let place = |class: &Class| (groups.iter().position(|group| *group == class.group), !class.whole, class.above);
    let mut sorted = classes.clone();
    sorted.sort_by_key(|class| place(class));
    let parts = |group: &Option<String>| sorted.iter().filter(|class| !class.whole && class.group == *group).count();
    *classes = sorted.iter().filter(|class| class.whole || parts(&class.group) > 1).cloned().collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(group: &str, size: u64, slowdown: Option<f64>) -> FlowRow {
        let time = slowdown.map(|slowdown| (slowdown * 1e6) as u64);
        FlowRow {
            src: "h0".into(),
            dst: "h1".into(),
            group: group.into(),
            size,
            start_ps: Some(size),
            injected_ps: time,
            received_ps: time,
            acknowledged_ps: time,
            held_ps: 0,
            paused_ps: 0,
            ideal_ps: Some(1_000_000),
            slowdown,
            slowdown_acknowledged: slowdown,
        }
    }

    /// Two schemes, three seeds: `b` is 1.5 times as slow as `a` for small flows in every seed, though seeds differ a lot.
    fn answer(question: Question, last: Option<f64>) -> Answer {
        let labels = ["a", "b"].map(|name| vec![("scheme".to_string(), name.to_string())]);
        let mut runs = Vec::new();
        for (labels, factor) in labels.iter().zip([1.0, 1.5]) {
            for seed in [1.0, 2.0, 4.0] {
                let mut flows: Vec<FlowRow> = (0..200)
                    .map(|at| flow("load", 1_000, Some((1.0 + f64::from(at) / 100.0) * seed * factor)))
                    .collect();
                flows.extend((0..200).map(|at| flow("load", 2_000_000, Some(2.0 + f64::from(at % 7)))));
                flows.push(flow("incast", 64_000, if factor > 1.0 { last } else { Some(3.0) }));
                runs.push(Ok::<_, ()>(Run { labels, flows, peak_buffer: 1e6 * factor }));
            }
        }
        Answer::new(question, runs.into_iter()).unwrap()
    }

    #[test]
    fn pairs_of_seeds_tell_apart_what_seeds_hide() {
        let answer = answer(Question::default(), Some(3.0));
        let heads: Vec<String> = answer.classes.iter().map(Class::head).collect();
        assert_eq!(heads, ["load", "load ≤10KB", "load >1MB", "incast"]);
        let small = answer.tail(0, 1);
        let (low, high) = small.percentiles[2].unwrap().interval.unwrap();
        assert!(low < 8.0 && high > 12.0, "seeds differ: {low} to {high}");
        let standing = answer.by_tail(&[0, 1], 1, 0.99).unwrap();
        assert!(standing.certain() && (standing.others[0].1.value - 1.5).abs() < 1e-9);
        assert_eq!(answer.winners(1), [0]);
        assert!(answer.winners(2).is_empty(), "large flows are alike");
    }

    #[test]
    fn one_sentence_says_who_wins_where_and_by_how_much() {
        let clauses = answer(Question::default(), Some(3.0)).clauses().remove(0);
        assert_eq!(
            clauses,
            [
                "600 flows of load up to 10KB: a has the lowest p99 slowdown, 11.7, b has 1.50× that",
                "600 flows of load above 1MB: a and b cannot be told apart by p99 slowdown, 8.00 and up",
                "3 flows of incast: too few to judge by their p99",
                "memory: a has the lowest peak buffer, 1.00 MB, b has 1.50× that",
            ]
        );
    }

    #[test]
    fn flows_that_do_not_finish_are_the_slowest() {
        let answer = answer(Question::default(), None);
        let tail = answer.tail(1, 3);
        assert_eq!((tail.flows, tail.unfinished, tail.percentiles[2]), (3, 3, None));
        let text = answer.text();
        assert!(text.contains("not finished") && text.contains("taken to be the slowest"), "{text}");
    }

    #[test]
    fn bins_and_windows_are_the_users() {
        let question = Question { bins: vec![500_000], from_ps: 1_500, until_ps: u64::MAX };
        let answer = answer(question, Some(3.0));
        let heads: Vec<String> = answer.classes.iter().map(Class::head).collect();
        assert_eq!(heads, ["load", "incast"], "small flows start too early");
        assert_eq!(answer.tail(0, 0).flows, 200, "without the small ones, seeds are alike");
        assert!(
            answer.text().starts_with("p99 slowdown by flow size, flows that start from 0.0015us on\n"),
            "{}",
            answer.text()
        );
        assert_eq!(answer.csv().lines().count(), 5);
    }

    #[test]
    fn seeds_that_change_nothing_are_one_sample() {
        let labels = ["a", "b", "c"].map(|name| vec![("scheme".to_string(), name.to_string())]);
        let answer = |differs: bool| {
            let runs = [(0, 1.0), (1, 1.0), (2, 3.0)].into_iter().flat_map(|(line, factor)| {
                (0..4).map(move |seed| (line, factor, if differs && line == 2 { f64::from(seed) } else { 0.0 }))
            });
            let run = |(line, factor, more): (usize, f64, f64)| {
                let slowdown = |at: i32| 1.0 + factor * (f64::from(at) + more);
                let flows = (0..60).map(|at| flow("load", 5_000, Some(slowdown(at)))).collect();
                Ok::<_, ()>(Run { labels: &labels[line], flows, peak_buffer: factor })
            };
            Answer::new(Question::default(), runs.map(run)).unwrap()
        };
        let alike = answer(false);
        assert_eq!((alike.seeds(), alike.tail(0, 0).flows), (1, 60));
        let text = alike.text();
        assert!(text.contains("no seed makes a difference") && text.contains('?') && !text.contains('*'), "{text}");
        // One that differs, beside two that do not.
        let mixed = answer(true);
        assert_eq!((mixed.seeds(), mixed.tail(0, 0).flows, mixed.tail(2, 0).flows), (4, 60, 240));
        let standing = mixed.by_tail(&[0, 1, 2], 0, 0.99).unwrap();
        assert!(!standing.worse(1) && standing.worse(2), "{standing:?}");
    }

    #[test]
    fn one_seed_has_no_certain_winner() {
        let labels = ["a", "b"].map(|name| vec![("scheme".to_string(), name.to_string())]);
        let runs = labels.iter().zip([1.0, 9.0]).map(|(labels, factor)| {
            let flows = (0..300).map(|at| flow("load", 5_000, Some(1.0 + factor * f64::from(at)))).collect();
            Ok::<_, ()>(Run { labels, flows, peak_buffer: factor })
        });
        let answer = Answer::new(Question::default(), runs).unwrap();
        assert!(answer.winners(0).is_empty());
        assert!(answer.sentences()[0].contains("of a; one seed, so nothing is certain"), "{:?}", answer.sentences());
    }
}
