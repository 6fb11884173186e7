//! Who wins where: tails of slowdown by group and size of flow, over all seeds, and which differences are certain.
//!
//! Seeds are pooled: a percentile is that of the flows of all of them. Its interval, and that of a ratio, comes from the jackknife over
//! seeds. All variants see the same traffic under the same seed, so that a ratio is taken seed by seed: what the traffic of a seed does to
//! both cancels.

use crate::comparison::{Labels, SCHEME, in_prose};
use crate::measure::{
    ENOUGH, Estimate, VAGUE, is_vague, jackknife, mean_of_all, percentile_of_all, percentile_with_interval,
};
use crate::print::{columns, field, number, size};
use crate::records::FlowRow;
use std::collections::BTreeMap;

/// Upper ends of size bins where nobody says otherwise.
pub const BINS: [u64; 3] = [10_000, 100_000, 1_000_000];
/// A tail of fewer flows is marked.
pub const FEW: usize = 100;

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

impl Question {
    /// A flow with its slowdown, and its completion time in picoseconds, in a run that ended then, if it counts. One that never began has no place
    /// in a window.
    fn sample<'a>(&self, flow: &'a FlowRow, end_ps: u64) -> Option<Sample<'a>> {
        let all = (self.from_ps, self.until_ps) == (0, u64::MAX);
        let inside = flow.start_ps.map_or(all, |start| start >= self.from_ps && start < self.until_ps);
        let slowdown = flow.slowdown_by(end_ps).filter(|_| inside)?;
        // Those that did not finish take for ever.
        let time = flow.received_ps.filter(|_| slowdown.is_finite()).map_or(f64::INFINITY, |time| time as f64);
        Some(Sample { flow, slowdown, time })
    }
}

/// A flow that counts.
struct Sample<'a> {
    flow: &'a FlowRow,
    slowdown: f64,
    time: f64,
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
    /// The same of completion times, in picoseconds.
    pub times: [Option<Value>; 4],
}

/// The percentiles of a [`Tail`].
pub const PERCENTILES: [(f64, &str); 4] = [(0.5, "p50"), (0.95, "p95"), (0.99, "p99"), (0.999, "p999")];
/// The place of the median among them.
pub const P50: usize = 0;
/// The place of the 99th among them.
pub const P99: usize = 2;

/// Whether a line is the best of those that it is held against.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// The best line.
    pub best: usize,
    /// The others, best first, with how many times the best's they are.
    pub others: Vec<(usize, Value)>,
    /// Seeds that make a difference to any of them.
    pub seeds: usize,
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
    /// By class and seed: sorted slowdowns, those that did not finish as infinity. One seed where all are alike.
    samples: Vec<Vec<Vec<f64>>>,
    /// The same of completion times, in picoseconds.
    times: Vec<Vec<Vec<f64>>>,
    /// By seed; one where all are alike.
    peak_buffer: Vec<f64>,
    /// By collective or job, and seed.
    completions: Vec<Vec<Option<f64>>>,
}

/// What hosts do together: its name, and what it is compared by.
pub type Together = (String, &'static str);

/// The answer of a comparison.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The classes of flows that there are.
    pub classes: Vec<Class>,
    lines: Vec<Line>,
    /// Collectives and jobs.
    collectives: Vec<Together>,
    question: Question,
    /// Seeds that make a difference, and those that were run.
    seeds: usize,
    asked: usize,
}

/// How lines stand by a number over seeds: how many seeds make a difference to a line, and what it has with one of them left out or none. None where
/// a line has nothing.
fn standing(
    lines: &[usize],
    seeds_of: impl Fn(usize) -> usize,
    of: impl Fn(usize, Option<usize>) -> Option<f64>,
) -> Option<Standing> {
    let seeds = lines.iter().map(|&line| seeds_of(line)).max()?;
    // What no seed changes is the same without any of them.
    let of = |line: usize, without: Option<usize>| of(line, without.filter(|_| seeds_of(line) > 1));
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
        let enough = seeds_of(line).max(seeds_of(best)) >= ENOUGH;
        let others = (0..seeds).map(without).collect::<Option<Vec<f64>>>().filter(|_| enough);
        let interval = others.and_then(|others| jackknife(ratio, &others));
        (line, Value { value: ratio, interval })
    };
    Some(Standing { best, others: order[1..].iter().map(against).collect(), seeds })
}

/// Which line's mean over seeds is certainly the least; a value for each line and seed. None if that is nobody's.
pub fn certainly_least(values: &[Vec<f64>]) -> Option<usize> {
    let seeds = values.iter().map(Vec::len).max()?;
    if values.iter().any(|line| line.len() != seeds) {
        return None;
    }
    let alike = |line: usize| values[line].iter().all(|value| *value == values[line][0]);
    let seeds_of = |line: usize| if alike(line) { 1 } else { seeds };
    let lines: Vec<usize> = (0..values.len()).collect();
    let standing = standing(&lines, seeds_of, |line, without| mean_of_all(&values[line], without))?;
    Some(standing.best).filter(|_| standing.certain())
}

/// Runs as an answer wants them: where each is in its grid, its flows, and what its summary has besides.
pub struct Run<'a> {
    /// Where it is; those that differ in their seed only follow each other.
    pub labels: &'a Labels,
    /// Its flows.
    pub flows: Vec<FlowRow>,
    /// When it ended.
    pub end_ps: u64,
    /// The names of the groups of flows, in order. Those of others come after them, as their first flows start.
    pub groups: Vec<String>,
    /// The most that a switch held.
    pub peak_buffer: f64,
    /// By collective or job, the mean completion time of its rounds or iterations in picoseconds; none where one did not complete.
    pub completions: Vec<(Together, Option<f64>)>,
}

/// What is kept of a run.
#[derive(PartialEq)]
struct Kept {
    labels: Labels,
    /// Slowdowns and completion times.
    samples: BTreeMap<Class, (Vec<f64>, Vec<f64>)>,
    peak_buffer: f64,
    completions: BTreeMap<Together, Option<f64>>,
}

/// Adds those that are not there yet.
fn join<'a, T: PartialEq + Clone + 'a>(all: &mut Vec<T>, more: impl Iterator<Item = &'a T>) {
    more.for_each(|one| {
        if !all.contains(one) {
            all.push(one.clone());
        }
    });
}

/// The mean of what each seed has, with a seed left out or none. None where a seed has nothing.
fn mean_of(seeds: &[Option<f64>], without: Option<usize>) -> Option<f64> {
    mean_of_all(&seeds.iter().copied().collect::<Option<Vec<f64>>>()?, without)
}

impl Answer {
    /// Of runs that come one by one, so that not all flows are in memory at once.
    pub fn new<'a, E>(question: Question, runs: impl Iterator<Item = Result<Run<'a>, E>>) -> Result<Answer, E> {
        let (mut classes, mut lines): (Vec<Class>, Vec<Line>) = (Vec::new(), Vec::new());
        let mut kept: Vec<Kept> = Vec::new();
        let (mut groups, mut collectives): (Vec<String>, Vec<Together>) = Default::default();
        for run in runs {
            let run = run?;
            let flows: Vec<Sample<'_>> =
                run.flows.iter().filter_map(|flow| question.sample(flow, run.end_ps)).collect();
            let mut samples = BTreeMap::new();
            for class in classes_of(&flows, &question.bins) {
                let inside = flows.iter().filter(|sample| class.has(sample.flow));
                let mut values: (Vec<f64>, Vec<f64>) = inside.map(|sample| (sample.slowdown, sample.time)).unzip();
                values.0.sort_by(f64::total_cmp);
                values.1.sort_by(f64::total_cmp);
                if !classes.contains(&class) {
                    classes.push(class.clone());
                }
                samples.insert(class, values);
            }
            join(&mut groups, run.groups.iter());
            join(&mut collectives, run.completions.iter().map(|(one, _)| one));
            let completions = run.completions.into_iter().collect();
            kept.push(Kept { labels: run.labels.clone(), samples, peak_buffer: run.peak_buffer, completions });
        }
        tidy(&mut classes, &groups);
        for same in kept.chunk_by(|a, b| a.labels == b.labels) {
            let of = |class: &Class| -> (Vec<Vec<f64>>, Vec<Vec<f64>>) {
                same.iter().map(|run| run.samples.get(class).cloned().unwrap_or_default()).unzip()
            };
            let alike = |(slowdowns, times)| (once_if_alike(slowdowns), once_if_alike(times));
            let (samples, times) = classes.iter().map(of).map(alike).unzip();
            let completion =
                |one: &Together| same.iter().map(|run| run.completions.get(one).copied().flatten()).collect();
            lines.push(Line {
                labels: same[0].labels.clone(),
                samples,
                times,
                peak_buffer: once_if_alike(same.iter().map(|run| run.peak_buffer).collect()),
                completions: collectives.iter().map(completion).map(once_if_alike).collect(),
            });
        }
        let seeds_of = |line: &Line| {
            let numbers = line.completions.iter().map(Vec::len).chain([line.peak_buffer.len()]);
            line.samples.iter().map(Vec::len).chain(numbers).max()
        };
        let seeds = lines.iter().filter_map(seeds_of).max().unwrap_or(0);
        let asked = kept.chunk_by(|a, b| a.labels == b.labels).map(<[_]>::len).max().unwrap_or(0);
        // The name of the only group says nothing.
        if classes.iter().all(|class| class.group == classes[0].group) {
            classes.iter_mut().for_each(|class| class.group = None);
        }
        Ok(Answer { classes, lines, collectives, question, seeds, asked })
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
        let (seeds, times) = (&self.lines[line].samples[class], &self.lines[line].times[class]);
        let percentile = |(q, _): (f64, &str)| {
            let (value, interval) = percentile_with_interval(seeds, q)?;
            // A slowdown is hardly ever below 1.
            let least = 1.0_f64.min(value);
            Some(Value { value, interval: interval.map(|(low, high)| (low.max(least), high)) })
        };
        let time = |(q, _): (f64, &str)| {
            let (value, interval) = percentile_with_interval(times, q)?;
            Some(Value { value, interval: interval.map(|(low, high)| (low.max(0.0), high)) })
        };
        let unfinished = seeds.iter().flatten().filter(|value| value.is_infinite()).count();
        let flows = seeds.iter().map(Vec::len).sum();
        Tail { flows, unfinished, percentiles: PERCENTILES.map(percentile), times: PERCENTILES.map(time) }
    }

    /// What hosts do together: collectives and jobs.
    pub fn together(&self) -> &[Together] {
        &self.collectives
    }

    /// The mean time of a line's rounds of a collective, or iterations of a job, over seeds, in picoseconds; none where one did not complete.
    pub fn completion(&self, line: usize, together: usize) -> Option<Value> {
        let seeds = self.lines[line].completions[together].iter().copied().collect::<Option<Vec<f64>>>()?;
        let estimate = Estimate::of(&seeds);
        Some(Value { value: estimate.mean?, interval: estimate.interval().filter(|_| estimate.count >= ENOUGH) })
    }

    /// The lines that certainly complete a collective or a job first.
    pub fn first(&self, together: usize) -> Vec<usize> {
        let standing = |contest: Vec<usize>| self.by_completion(&contest, together).filter(Standing::certain);
        self.contests().into_iter().filter_map(standing).map(|standing| standing.best).collect()
    }

    /// How lines stand by a percentile of a class; none where a line has no value.
    fn by_tail(&self, lines: &[usize], class: usize, q: f64) -> Option<Standing> {
        let seeds = |line: usize| &self.lines[line].samples[class];
        standing(lines, |line| seeds(line).len(), |line, without| percentile_of_all(seeds(line), without, q))
    }

    /// How lines stand by the memory that they need.
    fn by_buffer(&self, lines: &[usize]) -> Option<Standing> {
        let seeds = |line: usize| &self.lines[line].peak_buffer;
        standing(lines, |line| seeds(line).len(), |line, without| mean_of_all(seeds(line), without))
    }

    /// How lines stand by the completion time of a collective; none where one does not complete.
    fn by_completion(&self, lines: &[usize], collective: usize) -> Option<Standing> {
        let seeds = |line: usize| &self.lines[line].completions[collective];
        standing(lines, |line| seeds(line).len(), |line, without| mean_of(seeds(line), without))
    }

    /// How many flows of a class each of these lines has; the least, where they differ.
    fn flows(&self, lines: &[usize], class: usize) -> usize {
        let flows = |&line: &usize| self.lines[line].samples[class].iter().map(Vec::len).sum();
        lines.iter().map(flows).min().unwrap_or(0)
    }

    /// Lines that differ in their scheme alone: those that are held against each other. Where anything else differs, so does the traffic, or what
    /// is asked of the fabric.
    fn contests(&self) -> Vec<Vec<usize>> {
        let mut contests: Vec<Vec<usize>> = Vec::new();
        for (place, line) in self.lines.iter().enumerate() {
            let schemes = line.labels.first().is_some_and(|(axis, _)| axis == SCHEME);
            let same =
                |other: &&mut Vec<usize>| schemes && self.lines[other[0]].labels.get(1..) == line.labels.get(1..);
            match contests.iter_mut().find(same) {
                Some(contest) => contest.push(place),
                None => contests.push(vec![place]),
            }
        }
        contests
    }

    /// Lines that are certainly the best of their contest by the 99th percentile of a class. Nobody wins by a few flows.
    pub fn winners(&self, class: usize) -> Vec<usize> {
        let standing = |contest: Vec<usize>| {
            let enough = self.flows(&contest, class) >= FEW;
            self.by_tail(&contest, class, 0.99).filter(|standing| enough && standing.certain())
        };
        self.contests().into_iter().filter_map(standing).map(|standing| standing.best).collect()
    }

    /// Who wins where and by how much, some clauses for each contest: by the completion of every collective, by the tail of the smallest and of the
    /// largest flows of every group, and by memory. Nothing where there is nothing to compare.
    pub fn clauses(&self) -> Vec<Vec<String>> {
        self.contests().iter().filter(|contest| contest.len() > 1).map(|contest| self.contest(contest)).collect()
    }

    /// The same, a sentence for each contest.
    pub fn sentences(&self) -> Vec<String> {
        self.clauses().iter().map(|clauses| clauses.join("; ") + ".").collect()
    }

    fn contest(&self, contest: &[usize]) -> Vec<String> {
        let rest = self.lines[contest[0]].labels.get(1..).unwrap_or_default();
        let at: Vec<String> = rest.iter().map(|(axis, value)| in_prose(axis, value)).collect();
        let at = if at.is_empty() { String::new() } else { format!("with {}, ", at.join(", ")) };
        let mut clauses = Vec::new();
        for (place, (name, measure)) in self.collectives.iter().enumerate() {
            let what = format!("{at}{name}");
            let show = |line: usize| mean_of(&self.lines[line].completions[place], None).map_or("-".into(), time_of);
            clauses.push(match self.by_completion(contest, place) {
                Some(standing) => self.clause(&standing, &what, measure, &show),
                None => format!("{what}: it does not complete under every one"),
            });
        }
        for (place, class) in self.classes.iter().enumerate() {
            let in_group = |other: &&Class| other.group == class.group && !other.whole;
            let parts: Vec<&Class> = self.classes.iter().filter(in_group).collect();
            let ends = [parts.first(), parts.last()];
            if !(if parts.is_empty() { class.whole } else { ends.contains(&Some(&class)) }) {
                continue;
            }
            let flows = self.flows(contest, place);
            let words = class.words();
            let what = match flows {
                1 => format!("{at}1 {}", words.replacen("flows", "flow", 1)),
                _ => format!("{at}{flows} {words}"),
            };
            clauses.push(match flows {
                0 => format!("{at}{words}: not every one has any"),
                1..FEW => format!("{what}: too few to judge by their p99"),
                _ => self.tails(contest, place, &what),
            });
        }
        if let Some(standing) = self.by_buffer(contest) {
            let mean = |line: usize| mean_of_all(&self.lines[line].peak_buffer, None).map_or("-".into(), size_of);
            clauses.push(self.clause(&standing, &format!("{at}memory"), "peak buffer", &mean));
        }
        clauses
    }

    /// Who is best by the tail of a class, and under whom it falls on flows that did not finish.
    fn tails(&self, contest: &[usize], class: usize, what: &str) -> String {
        let value = |line: usize| self.tail(line, class).percentiles[P99];
        let show = |line: usize| value(line).map_or("-".into(), |value| short(value.value));
        let (done, open): (Vec<usize>, Vec<usize>) = contest.iter().partition(|&&line| value(line).is_some());
        let open: Vec<&str> = open.iter().map(|&line| self.name(line)).collect();
        let late = if open.is_empty() {
            String::new()
        } else {
            format!("; with {}, over 1 % of them do not finish", open.join(" and "))
        };
        match (done.as_slice(), self.by_tail(&done, class, 0.99)) {
            ([], _) => format!("{what}: over 1 % of them do not finish, whoever it is"),
            (&[only], _) => format!("{what}: p99 slowdown {} with {}{late}", show(only), self.name(only)),
            (_, Some(standing)) => self.clause(&standing, what, "p99 slowdown", &show) + &late,
            (_, None) => format!("{what}: no p99 slowdown to compare"),
        }
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
        // Two that no seed changes have a ratio, and nothing that says how far it can be trusted.
        let (single, level): (Vec<_>, Vec<_>) =
            standing.others.iter().filter(|(line, _)| !standing.worse(*line)).partition(|(_, r)| r.interval.is_none());
        let next = standing.others.iter().find(|(line, _)| standing.worse(*line));
        let next = next.map_or(String::new(), |(line, ratio)| format!(", {} has {}", self.name(*line), times(ratio)));
        let value = show(standing.best);
        if level.is_empty() && single.is_empty() {
            return format!("{what}: {best} has the lowest {measure}, {value}{next}");
        }
        if standing.seeds < ENOUGH {
            let level =
                standing.others.iter().filter(|(_, ratio)| ratio.value <= 1.0).map(|(line, _)| self.name(*line));
            let level: Vec<&str> = std::iter::once(best).chain(level).collect();
            let why = match (standing.seeds, self.asked) {
                (1, 2..) => "all seeds are alike",
                (1, _) => "one seed",
                _ => "two seeds",
            };
            let level = level.join(" and ");
            // A tail of one seed says too little for a ratio. A collective's time is a sum over all of its messages.
            let next = standing
                .others
                .iter()
                .find(|(_, ratio)| ratio.value > 1.0 && self.collectives.iter().any(|(_, own)| *own == measure));
            let next =
                next.map_or(String::new(), |(line, ratio)| format!(", {} has {}", self.name(*line), times(ratio)));
            return format!("{what}: the lowest {measure} is {value}, of {level}{next}; {why}, so nothing is certain");
        }
        let single: String = single
            .iter()
            .map(|(line, ratio)| format!(", {} has {}, both without chance", self.name(*line), times(ratio)))
            .collect();
        let names = std::iter::once(standing.best).chain(level.iter().map(|(line, _)| *line));
        let names: Vec<String> = names.map(|line| format!("{} ({})", self.name(line), show(line))).collect();
        match names.split_last() {
            Some((last, others)) if !others.is_empty() => {
                let next =
                    next.replace("× that", &format!("× {best}'s")) + &single.replace("× that", &format!("× {best}'s"));
                format!("{what}: {} and {last} cannot be told apart by {measure}{next}", others.join(", "))
            }
            _ => format!("{what}: {best} has the lowest {measure}, {value}{next}{single}"),
        }
    }

    /// For people: the 99th percentile of every class, a line for each line. What is certainly the best has a star.
    pub fn text(&self) -> String {
        if self.classes.is_empty() || self.lines.is_empty() {
            return String::new();
        }
        let axes = self.lines[0].labels.iter().map(|(axis, _)| axis.clone());
        let mut table: Vec<Vec<String>> = vec![axes.chain(self.classes.iter().map(Class::head)).collect()];
        let winners: Vec<Vec<usize>> = (0..self.classes.len()).map(|class| self.winners(class)).collect();
        let (mut few, mut open, mut star, mut vague) = (false, false, false, false);
        for (place, line) in self.lines.iter().enumerate() {
            let cell = |class: usize| {
                let tail = self.tail(place, class);
                let Some(value) = tail.percentiles[P99] else {
                    open |= tail.flows > 0;
                    return if tail.flows > 0 { "not finished".into() } else { "-".to_string() };
                };
                let mut text = shown(&value);
                vague |= is_vague(value.value, value.interval);
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
        let mut text =
            format!("p99 slowdown by flow size{}\n{}", self.window(), columns(&table, |column| column < axes));
        let mut notes = Vec::new();
        if star {
            notes.push("* certainly the lowest".to_string());
        }
        if vague {
            notes.push(VAGUE.into());
        }
        if few {
            notes.push(format!("? fewer than {FEW} flows"));
        }
        if open {
            notes.push("flows that did not finish are taken to be the slowest".into());
        }
        if self.asked > 1 {
            notes.push(self.basis());
        }
        if !notes.is_empty() {
            text += &format!("{}\n", notes.join("; "));
        }
        text
    }

    /// For people: the median and the 99th percentile of the completion times of every class, in microseconds.
    pub fn times(&self) -> String {
        if self.classes.is_empty() || self.lines.is_empty() {
            return String::new();
        }
        let axes = self.lines[0].labels.iter().map(|(axis, _)| axis.clone());
        let mut table: Vec<Vec<String>> = vec![axes.chain(self.classes.iter().map(Class::head)).collect()];
        let mut few = false;
        for (place, line) in self.lines.iter().enumerate() {
            let cell = |class: usize| {
                let tail = self.tail(place, class);
                let us = |value: Option<Value>| value.map_or("not finished".into(), |value| short(value.value / 1e6));
                few |= (1..FEW).contains(&tail.flows);
                match tail.flows {
                    0 => "-".into(),
                    flows => {
                        let mark = if flows < FEW { "?" } else { "" };
                        format!("{} / {}{mark}", us(tail.times[P50]), us(tail.times[P99]))
                    }
                }
            };
            let cells: Vec<String> = (0..self.classes.len()).map(cell).collect();
            table.push(line.labels.iter().map(|(_, value)| value.clone()).chain(cells).collect());
        }
        let axes = self.lines[0].labels.len();
        let note = if few { format!("? fewer than {FEW} flows\n") } else { String::new() };
        let table = columns(&table, |column| column < axes);
        format!("completion time in us by flow size, p50 / p99{}\n{table}{note}", self.window())
    }

    /// What the numbers are from, and what can be said about how far they can be trusted.
    pub fn basis(&self) -> String {
        let classes = self.lines.iter().flat_map(|line| &line.samples);
        let single =
            classes.filter(|seeds| seeds.first().is_some_and(|flows| !flows.is_empty())).any(|seeds| seeds.len() == 1);
        match (self.seeds, self.asked) {
            (1, 2..) => "no seed makes a difference: they count as one".into(),
            (..2, _) => "one seed, so nothing is certain".into(),
            (..ENOUGH, _) => format!("two seeds have no intervals: take {ENOUGH} or more"),
            (seeds, _) if single => {
                format!("95 % intervals over {seeds} seeds, or of one seed's flows where seeds change nothing")
            }
            (seeds, _) => format!("95 % intervals over {seeds} seeds"),
        }
    }

    /// Which flows count, if not all.
    pub fn window(&self) -> String {
        match (self.question.from_ps, self.question.until_ps) {
            (0, u64::MAX) => String::new(),
            (from, u64::MAX) => format!(", flows that start from {} on", time(from)),
            (0, until) => format!(", flows that start before {}", time(until)),
            (from, until) => format!(", flows that start from {} until {}", time(from), time(until)),
        }
    }

    /// For programs: a line for each line and class.
    pub fn csv(&self) -> String {
        let axes = self.lines.first().map_or(&[][..], |line| &line.labels);
        let mut heads: Vec<String> = axes.iter().map(|(axis, _)| field(axis)).collect();
        heads.extend(["group", "above_bytes", "up_to_bytes", "flows", "unfinished"].map(String::from));
        let three = |name: String| [name.clone(), format!("{name}_low"), format!("{name}_high")];
        heads.extend(PERCENTILES.iter().flat_map(|(_, q)| three(q.to_string())));
        heads.extend(PERCENTILES.iter().flat_map(|(_, q)| three(format!("time_ps_{q}"))));
        let mut text = heads.join(",") + "\n";
        for (place, line) in self.lines.iter().enumerate() {
            for (at, class) in self.classes.iter().enumerate() {
                let tail = self.tail(place, at);
                let mut fields: Vec<String> = line.labels.iter().map(|(_, value)| field(value)).collect();
                fields.push(class.group.as_deref().map_or(String::new(), field));
                fields.push(class.above.to_string());
                fields.push(class.up_to.map_or(String::new(), |end| end.to_string()));
                fields.extend([tail.flows.to_string(), tail.unfinished.to_string()]);
                for value in tail.percentiles.iter().chain(&tail.times) {
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

/// A time in the largest unit of which it has one or more.
fn time(ps: u64) -> String {
    match ps {
        1_000_000_000_000.. => format!("{}s", ps as f64 / 1e12),
        1_000_000_000.. => format!("{}ms", ps as f64 / 1e9),
        1_000_000.. => format!("{}us", ps as f64 / 1e6),
        1_000.. => format!("{}ns", ps as f64 / 1e3),
        _ => format!("{ps}ps"),
    }
}

/// One value where all are alike: however many they are, they are one sample.
fn once_if_alike<T: PartialEq>(mut values: Vec<T>) -> Vec<T> {
    if values.iter().all(|value| *value == values[0]) {
        values.truncate(1);
    }
    values
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
        interval if is_vague(value.value, interval) => format!("~{}", short(value.value)),
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

/// A time as people say it, three digits.
fn time_of(ps: f64) -> String {
    match ps {
        ..1e6 => format!("{} ns", short(ps / 1e3)),
        ..1e9 => format!("{} us", short(ps / 1e6)),
        _ => format!("{} ms", short(ps / 1e9)),
    }
}

/// The classes of these flows: all of a group, and its sizes.
fn classes_of(flows: &[Sample<'_>], bins: &[u64]) -> Vec<Class> {
    let mut groups: Vec<&str> = Vec::new();
    for Sample { flow, .. } in flows {
        if !groups.contains(&flow.group.as_str()) {
            groups.push(&flow.group);
        }
    }
    let mut classes = Vec::new();
    for group in groups {
        let name = Some(group.to_string());
        classes.push(Class { group: name.clone(), above: 0, up_to: None, whole: true });
        let ends = bins.iter().map(|&end| Some(end)).chain([None]);
        for (above, up_to) in [0].into_iter().chain(bins.iter().copied()).zip(ends) {
            let class = Class { group: name.clone(), above, up_to, whole: false };
            if flows.iter().any(|sample| class.has(sample.flow)) {
                classes.push(class);
            }
        }
    }
    classes
}

/// In the order of `groups`, and without the sizes of groups that have one alone.
fn tidy(classes: &mut Vec<Class>, groups: &[String]) {
    let named = groups.iter().cloned().map(Some);
    let groups: Vec<Option<String>> = named.chain(classes.iter().map(|class| class.group.clone())).collect();
    let place = |class: &Class| (groups.iter().position(|group| *group == class.group), !class.whole, class.above);
    let mut sorted = classes.clone();
    sorted.sort_by_key(|class| place(class));
    let parts = |group: &Option<String>| sorted.iter().filter(|class| !class.whole && class.group == *group).count();
    *classes = sorted.iter().filter(|class| class.whole || parts(&class.group) > 1).cloned().collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: u64 = 1_000_000_000;

    fn schemes(names: &[&str]) -> Vec<Labels> {
        names.iter().map(|name| vec![(SCHEME.to_string(), name.to_string())]).collect()
    }

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

    fn run(labels: &Labels, flows: Vec<FlowRow>) -> Run<'_> {
        Run { labels, flows, end_ps: END, groups: Vec::new(), peak_buffer: 0.0, completions: Vec::new() }
    }

    #[test]
    fn who_completes_a_collective_first_is_said_first() {
        let labels = ["a", "b"].map(|name| vec![("scheme".to_string(), name.to_string())]);
        let said = |seeds: usize, last: Option<f64>| {
            let runs = labels.iter().zip([1.0, 1.5]).flat_map(|(labels, factor)| {
                (0..seeds).map(move |seed| {
                    let flows = (0..200).map(|_| flow("ring", 5_000, Some(2.0))).collect();
                    let time = Some(factor * (1e9 + 1e7 * seed as f64)).filter(|_| factor < 1.2 || last.is_some());
                    let completions = vec![(("ring".to_string(), crate::comparison::COMPLETION), time)];
                    Ok::<_, ()>(Run { peak_buffer: 1.0, completions, ..run(labels, flows) })
                })
            });
            Answer::new(Question::default(), runs).unwrap().clauses().remove(0).remove(0)
        };
        assert_eq!(said(3, Some(1.0)), "ring: a has the lowest completion time, 1.01 ms, b has 1.50× that");
        let one =
            "ring: the lowest completion time is 1.00 ms, of a, b has 1.50× that; one seed, so nothing is certain";
        assert_eq!(said(1, Some(1.0)), one);
        assert_eq!(said(3, None), "ring: it does not complete under every one");
    }

    #[test]
    fn a_tail_that_is_known_badly_has_a_mark_and_no_interval() {
        let seen = |spread: f64| {
            let answer = with(&["a"], Question::default(), |_, seed| {
                (0..200)
                    .map(|at| flow("load", 1_000, Some(1.0 + f64::from(at) * (1.0 + spread * seed as f64))))
                    .collect()
            });
            answer.text()
        };
        let (good, bad) = (seen(0.01), seen(3.0));
        assert!(good.contains('–') && !good.contains('~'), "{good}");
        assert!(!bad.contains('–') && bad.contains(" ~") && bad.contains(VAGUE), "{bad}");
    }

    #[test]
    fn groups_come_in_the_order_of_the_summary() {
        let labels = vec![("scheme".to_string(), "a".to_string())];
        let flows = || vec![flow("late", 1, Some(2.0)), flow("early", 1, Some(2.0)), flow("other", 1, Some(2.0))];
        let heads = |groups: &[&str]| {
            let groups = groups.iter().map(|name| name.to_string()).collect();
            let runs = [Ok::<_, ()>(Run { groups, ..run(&labels, flows()) })];
            let answer = Answer::new(Question::default(), runs.into_iter()).unwrap();
            answer.classes.iter().map(Class::head).collect::<Vec<_>>()
        };
        assert_eq!(heads(&["early", "late"]), ["early", "late", "other"]);
        assert_eq!(heads(&[]), ["late", "early", "other"]);
    }

    /// Two schemes, three seeds: `b` is 1.5 times as slow as `a` for small flows in every seed, though seeds differ a lot. Other flows are the
    /// same in all.
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
                runs.push(Ok::<_, ()>(Run { peak_buffer: (1e6 + seed) * factor, ..run(labels, flows) }));
            }
        }
        Answer::new(question, runs.into_iter()).unwrap()
    }

    #[test]
    fn completion_times_are_those_of_the_same_flows_in_microseconds() {
        let late = answer(Question::default(), None);
        let tail = late.tail(0, 3);
        // Every flow takes a microsecond alone.
        assert_eq!((tail.flows, tail.times[P50].unwrap().value), (1, 3e6), "one of three seeds that are alike");
        assert_eq!(late.tail(1, 3).times[P99], None, "it did not finish");
        let text = late.times();
        assert!(text.starts_with("completion time in us by flow size, p50 / p99\nscheme"), "{text}");
        assert!(text.contains("3.00 / 3.00?") && text.contains("not finished / not finished?"), "{text}");
        assert!(text.ends_with("? fewer than 100 flows\n"), "{text}");
        let csv = late.csv();
        let mut lines = csv.lines();
        let heads: Vec<&str> = lines.next().unwrap().split(',').collect();
        let at = heads.iter().position(|head| *head == "time_ps_p50").unwrap();
        let ring = lines.find(|line| line.starts_with("a,incast")).unwrap();
        assert_eq!(ring.split(',').nth(at), Some("3000000"));
        assert!(lines.all(|line| line.split(',').count() == heads.len()));
        let from = answer(Question { from_ps: 1_500, ..Question::default() }, Some(3.0)).times();
        assert!(from.starts_with("completion time in us by flow size, p50 / p99, flows that start from 1.5ns on"));
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
                "200 flows of load above 1MB: the lowest p99 slowdown is 8.00, of a and b; all seeds are alike, so nothing is certain",
                "1 flow of incast: too few to judge by their p99",
                "memory: a has the lowest peak buffer, 1.00 MB, b has 1.50× that",
            ]
        );
    }

    #[test]
    fn flows_that_do_not_finish_are_the_slowest() {
        let answer = answer(Question::default(), None);
        let tail = answer.tail(1, 3);
        assert_eq!((tail.flows, tail.unfinished, tail.percentiles[2]), (1, 1, None));
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
            answer.text().starts_with("p99 slowdown by flow size, flows that start from 1.5ns on\n"),
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
                Ok::<_, ()>(Run { peak_buffer: factor, ..self::run(&labels[line], flows) })
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

    /// Three seeds of each scheme with the flows that `of` makes for scheme and seed.
    fn with(names: &[&str], question: Question, of: impl Fn(usize, usize) -> Vec<FlowRow>) -> Answer {
        let labels = schemes(names);
        let places = (0..names.len()).flat_map(|line| (0..3).map(move |seed| (line, seed)));
        let run = |(line, seed): (usize, usize)| {
            let peak_buffer = (seed + 1) as f64;
            Ok::<_, ()>(Run { peak_buffer, ..run(&labels[line], of(line, seed)) })
        };
        Answer::new(question, places.map(run)).unwrap()
    }

    #[test]
    fn a_run_that_stops_early_is_judged_by_the_flows_that_it_had() {
        let answer = with(&["a"], Question::default(), |_, seed| {
            let mut flows: Vec<FlowRow> =
                (0..10).map(|at| flow("load", 1_000, Some(1.0 + (at + seed) as f64))).collect();
            // To begin after the end; waiting for others until the end; under way; to leave.
            flows.extend((0..100).map(|_| FlowRow { start_ps: Some(END), ..flow("load", 1_000, None) }));
            flows.extend((0..2).map(|_| FlowRow { start_ps: None, ..flow("load", 1_000, None) }));
            flows.push(flow("load", 1_000, None));
            flows.push(FlowRow { ideal_ps: None, ..flow("load", 1_000, None) });
            flows
        });
        let tail = answer.tail(0, 0);
        assert_eq!((tail.flows, tail.unfinished), (39, 9));
        // 1 once, 2 twice, 3 to 10 thrice each, 11, 11, 12 and nine that are infinite: the 20th of 39 is 8.
        assert_eq!(tail.percentiles[0].unwrap().value, 8.0);
        assert!(tail.percentiles[1].is_none());
    }

    #[test]
    fn a_group_that_a_seed_does_not_have_stays_apart_from_the_others() {
        let answer = with(&["a"], Question::default(), |_, seed| match seed {
            0 => vec![flow("load", 1_000, Some(1.0)), flow("incast", 1_000, Some(9.0))],
            1 => vec![flow("load", 1_000, Some(2.0))],
            _ => vec![flow("incast", 1_000, Some(8.0))],
        });
        let heads: Vec<String> = answer.classes.iter().map(Class::head).collect();
        assert_eq!(heads, ["load", "incast"]);
        assert_eq!([0, 1].map(|class| answer.tail(0, class).flows), [2, 2]);
    }

    #[test]
    fn what_no_seed_changes_is_one_sample_though_others_change() {
        let answer = with(&["a", "b"], Question::default(), |line, seed| {
            let load = (0..100).map(|at| flow("load", 1_000, Some(1.0 + (at * (seed + 1)) as f64)));
            let fixed = (0..48).map(|at| flow("fixed", 1_000, Some(2.0 + (at + line) as f64)));
            load.chain(fixed).collect()
        });
        assert_eq!([0, 1].map(|class| answer.tail(0, class).flows), [300, 48]);
        let said = answer.sentences().remove(0);
        assert!(said.contains("48 flows of fixed: too few to judge"), "{said}");
        assert!(answer.winners(1).is_empty());
        assert_eq!(answer.basis(), "95 % intervals over 3 seeds, or of one seed's flows where seeds change nothing");
    }

    #[test]
    fn the_order_of_the_schemes_decides_nothing() {
        let of = |names: [&str; 2]| {
            let answer = with(&names, Question::default(), |line, seed| {
                let differs = if names[line] == "a" { seed } else { 0 };
                (0..48).map(|at| flow("load", 1_000, Some(1.0 + (at + differs) as f64))).collect()
            });
            answer.sentences().remove(0)
        };
        assert!(of(["a", "b"]).starts_with("48 flows: too few"), "{}", of(["a", "b"]));
        assert!(of(["b", "a"]).starts_with("48 flows: too few"), "{}", of(["b", "a"]));
    }

    #[test]
    fn those_that_finish_are_compared_beside_one_that_does_not() {
        let answer = with(&["a", "b", "c"], Question::default(), |line, seed| {
            let slowdown = |at: usize| (1.0 + (at * (seed + 1)) as f64) * (line + 1) as f64;
            (0..200).map(|at| flow("load", 1_000, Some(slowdown(at)).filter(|_| line != 1 || at < 150))).collect()
        });
        let said = answer.sentences().remove(0);
        assert!(said.contains("a has the lowest p99 slowdown") && said.contains("c has 3.00× that"), "{said}");
        assert!(said.contains("; with b, over 1 % of them do not finish"), "{said}");
    }

    #[test]
    fn what_no_seed_changes_is_not_level_with_what_differs_from_it() {
        // `a` and `c` draw nothing at random; `b` does, and is nearly as good as `a`.
        let answer = with(&["a", "b", "c"], Question::default(), |line, seed| {
            let factor = [1.0, 0.9 + 0.1 * seed as f64, 16.0][line];
            (0..200).map(|at| flow("load", 1_000, Some(1.0 + factor * at as f64))).collect()
        });
        let said = answer.sentences().remove(0);
        assert!(said.contains("a (198) and b (213) cannot be told apart by p99 slowdown"), "{said}");
        assert!(said.contains("c has 15.9× a's, both without chance"), "{said}");
    }

    #[test]
    fn values_of_a_key_are_no_contestants() {
        let labels = ["0.1", "0.2"].map(|load| vec![("load.0.load".to_string(), load.to_string())]);
        let run = |labels| Ok::<_, ()>(self::run(labels, vec![flow("load", 1, Some(1.0))]));
        let answer = Answer::new(Question::default(), labels.iter().map(run)).unwrap();
        assert!(answer.clauses().is_empty());
    }

    #[test]
    fn the_least_is_certain_only_where_seeds_say_so() {
        let values = |lines: &[[f64; 3]]| lines.iter().map(|line| line.to_vec()).collect::<Vec<_>>();
        assert_eq!(certainly_least(&values(&[[9.0, 10.0, 11.0], [1.0, 1.1, 1.2]])), Some(1));
        assert_eq!(certainly_least(&values(&[[1.0, 2.0, 9.0], [1.5, 2.5, 3.5]])), None);
        assert_eq!(certainly_least(&values(&[[2.0; 3], [1.0; 3]])), None, "seeds that are alike are one");
        assert_eq!(certainly_least(&values(&[[0.0; 3], [1.0, 2.0, 3.0]])), None, "no ratio to nothing");
        assert_eq!(certainly_least(&[vec![1.0, 2.0, 3.0], vec![9.0, 9.5]]), None, "a seed is missing");
    }

    #[test]
    fn one_seed_has_no_certain_winner() {
        let labels = ["a", "b"].map(|name| vec![("scheme".to_string(), name.to_string())]);
        let runs = labels.iter().zip([1.0, 9.0]).map(|(labels, factor)| {
            let flows = (0..300).map(|at| flow("load", 5_000, Some(1.0 + factor * f64::from(at)))).collect();
            Ok::<_, ()>(Run { peak_buffer: factor, ..run(labels, flows) })
        });
        let answer = Answer::new(Question::default(), runs).unwrap();
        assert!(answer.winners(0).is_empty());
        assert!(answer.sentences()[0].contains("of a; one seed, so nothing is certain"), "{:?}", answer.sentences());
    }
}
