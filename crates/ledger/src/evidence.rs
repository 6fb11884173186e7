//! What the runs say: probes answered run by run, expressions evaluated over seeds.
//!
//! Runs are looked at one at a time and forgotten, for a comparison at paper scale does not fit in memory: [`Evidence`] first
//! collects every probe that an experiment asks, then takes each run ([`Evidence::add`]) and keeps only the answers.
//!
//! Over seeds, a measure is the mean of its values by seed. The interval of a whole expression comes from the jackknife:
//! the expression is evaluated again with each seed left out, and Student's t is applied to the
//! pseudo-values. For a plain measure that is exactly the t-interval of the mean; it also respects that the schemes
//! of a ratio ran with the same traffic.

use super::answer::{answer, distribution, series};
use super::experiment::{Column, Expectation, Experiment, Figure, Kind, Scale};
use super::expression::{Answers, Bindings, Expression, Missing, Probe, Quantity, Scope, Sizes, Step};
use results::exhibit::{Curve, Plot, Point};
use results::measure::Estimate;
use results::records::{self, Records};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use store::Store;
use store::grid::{self, Failed, Grid, Observer, Source, Variant};

/// A run of an experiment, read back.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Its variant.
    pub variant: String,
    /// Varied labels and their values.
    pub values: Vec<(String, String)>,
    /// Its seed.
    pub seed: u64,
    /// What came out.
    pub records: Records,
}

impl Run {
    /// Whether a probe asks about this run. A label that the run was not varied by may have any value.
    fn answers(&self, probe: &Probe) -> bool {
        probe.filters.iter().all(|(key, value)| match key.as_str() {
            "variant" => *value == self.variant,
            "seed" => value.parse() == Ok(self.seed),
            key => self.values.iter().find(|(label, _)| label == key).is_none_or(|(_, own)| own == value),
        })
    }
}

/// A value over seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// The value.
    pub value: f64,
    /// Where the true value lies with 95 % confidence; none with fewer than two seeds.
    pub interval: Option<(f64, f64)>,
    /// How many seeds it comes from.
    pub seeds: usize,
}

/// What is drawn of a run without an expression: a distribution, or a time series.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Shape {
    Cdf(Quantity),
    Series(Quantity),
}

/// What is drawn, by seed.
type BySeed = BTreeMap<u64, Vec<(f64, f64)>>;

/// The answers of the runs to everything that an experiment asks.
pub struct Evidence<'a> {
    experiment: &'a Experiment,
    scope: Scope,
    /// The same with only those variants that can be run: questions go over these.
    open: Scope,
    sizes: &'a dyn Sizes,
    /// By probe and seed: what each run that it is about answered.
    answers: BTreeMap<Probe, BTreeMap<u64, Vec<Result<f64, Missing>>>>,
    /// By shape and its filters.
    shapes: BTreeMap<(Shape, Probe), BySeed>,
    seeds: BTreeSet<u64>,
    runs: usize,
}

impl<'a> Evidence<'a> {
    /// Nothing known yet about an experiment at a scale.
    pub fn new(experiment: &'a Experiment, scale: Scale, sizes: &'a dyn Sizes) -> Evidence<'a> {
        let scope = experiment.scope(Some(scale));
        let mut open = scope.clone();
        open.variants.retain(|variant| experiment.missing(variant).is_empty());
        let mut evidence = Evidence {
            experiment,
            scope,
            open,
            sizes,
            answers: BTreeMap::new(),
            shapes: BTreeMap::new(),
            seeds: BTreeSet::new(),
            runs: 0,
        };
        for expectation in &experiment.expectations {
            let probes = expectation.value.probes(evidence.scope_of(expectation), &Bindings::new());
            evidence.answers.extend(probes.into_iter().map(|probe| (probe, BTreeMap::new())));
        }
        for column in &experiment.columns {
            for variant in evidence.open.variants.clone() {
                evidence.ask(&column.value, &with(&Bindings::new(), "variant", &variant));
            }
        }
        for figure in &experiment.figures {
            for (_, _, bound) in evidence.curves(figure) {
                match &figure.kind {
                    Kind::Lines { x, y } | Kind::Bars { x, y } => {
                        for step in evidence.steps(figure, x) {
                            evidence.ask(y, &with(&bound, x, &step.name));
                        }
                    }
                    Kind::Cdf { of, probe } => evidence.watch(Shape::Cdf(*of), probe, &bound),
                    Kind::Series { of, probe } => evidence.watch(Shape::Series(*of), probe, &bound),
                    Kind::Sizes { .. } => {}
                }
            }
        }
        evidence
    }

    /// Sees to it that the store has every run of an experiment that can be done, with that many seeds, and hears them all.
    pub fn gather(
        experiment: &'a Experiment,
        scale: Scale,
        seeds: u64,
        store: &Store,
        threads: usize,
        observer: &dyn Observer,
    ) -> Result<Evidence<'a>, Failed> {
        let mut evidence = Evidence::new(experiment, scale, super::sizes());
        let mut cells = experiment.cells(scale);
        cells.retain(|cell| experiment.missing(&cell.variant).is_empty());
        let Some(scenario) = experiment.scenario.as_ref().filter(|_| !cells.is_empty()) else { return Ok(evidence) };
        let grid = Grid {
            source: Source {
                name: experiment.id.clone(),
                title: experiment.id.clone(),
                text: scenario.clone(),
                base: experiment.file.as_deref().and_then(Path::parent).unwrap_or(Path::new("")).to_owned(),
            },
            sets: Vec::new(),
            variants: cells.iter().map(|cell| Variant { name: cell.name(), sets: cell.sets.clone() }).collect(),
            axes: Vec::new(),
            seeds: (1..=seeds).collect(),
        };
        let failed = |problems| Failed { problems, broken: false, finished: 0, runs: 0 };
        let plan = grid.plan().map_err(failed)?;
        let folders = grid::run(&plan, store, threads, observer)?.folders;
        // Seeds turn fastest.
        let runs = cells.iter().flat_map(|cell| (1..=seeds).map(move |seed| (cell, seed)));
        for ((cell, seed), folder) in runs.zip(&folders) {
            let records = records::open(folder).map_err(|problem| failed(vec![problem]))?;
            evidence.add(&Run { variant: cell.variant.clone(), values: cell.values.clone(), seed, records });
        }
        Ok(evidence)
    }

    fn ask(&mut self, expression: &Expression, bound: &Bindings) {
        for probe in expression.probes(&self.scope, bound) {
            self.answers.entry(probe).or_default();
        }
    }

    fn watch(&mut self, shape: Shape, probe: &Expression, bound: &Bindings) {
        for probe in probe.probes(&self.scope, bound) {
            self.shapes.entry((shape.clone(), probe)).or_default();
        }
    }

    /// How many runs it has seen.
    pub fn runs(&self) -> usize {
        self.runs
    }

    /// How many seeds it has seen.
    pub fn seeds(&self) -> usize {
        self.seeds.len()
    }

    /// Takes what a run has to say.
    pub fn add(&mut self, run: &Run) {
        self.runs += 1;
        self.seeds.insert(run.seed);
        for (probe, answers) in self.answers.iter_mut().filter(|(probe, _)| run.answers(probe)) {
            answers.entry(run.seed).or_default().push(answer(probe, &run.records));
        }
        for ((shape, probe), drawn) in self.shapes.iter_mut().filter(|((_, probe), _)| run.answers(probe)) {
            let points = match shape {
                Shape::Cdf(quantity) => distribution(*quantity, probe, &run.records),
                Shape::Series(quantity) => series(*quantity, probe, &run.records),
            };
            drawn.entry(run.seed).or_insert(points);
        }
    }

    /// What an expectation is about. A question goes over what there is; a claim must not be judged by less than it says.
    fn scope_of(&self, expectation: &Expectation) -> &Scope {
        if expectation.range.is_open() { &self.open } else { &self.scope }
    }

    /// The variants that an expectation asks about.
    pub fn variants_of(&self, expectation: &Expectation) -> BTreeSet<String> {
        let probes = expectation.value.probes(self.scope_of(expectation), &Bindings::new());
        let only = self.scope.variants.first().filter(|_| self.scope.variants.len() == 1);
        probes
            .iter()
            .filter_map(|probe| probe.filter("variant").or(only.map(String::as_str)).map(String::from))
            .collect()
    }

    /// What an expectation is about, measured, or why it has no value.
    pub fn expected(&self, expectation: &Expectation) -> Result<Measured, Missing> {
        self.value(&expectation.value, &Bindings::new(), self.scope_of(expectation))
    }

    /// What every variant that can be run has in a column, or why there is no value.
    pub fn column(&self, column: &Column) -> Vec<(&str, Result<Measured, Missing>)> {
        let value = |variant: &String| {
            let bound = with(&Bindings::new(), "variant", variant);
            self.value(&column.value, &bound, &self.open)
        };
        self.open.variants.iter().map(|variant| (variant.as_str(), value(variant))).collect()
    }

    fn value(&self, expression: &Expression, bound: &Bindings, scope: &Scope) -> Result<Measured, Missing> {
        let all: Vec<u64> = self.seeds.iter().copied().collect();
        let value = self.evaluate(expression, bound, scope, &all)?;
        // A value that no run was asked for is exact.
        let measured = !expression.probes(scope, bound).is_empty();
        let seeds = if measured { all.len() } else { 0 };
        let mut interval = None;
        if seeds > 1 {
            let without = |i: usize| {
                let others: Vec<u64> =
                    all.iter().copied().enumerate().filter(|(j, _)| *j != i).map(|(_, s)| s).collect();
                self.evaluate(expression, bound, scope, &others)
            };
            let n = seeds as f64;
            let pseudo: Result<Vec<f64>, Missing> =
                (0..seeds).map(|i| Ok(n * value - (n - 1.0) * without(i)?)).collect();
            let half = pseudo.ok().and_then(|pseudo| Estimate::of(&pseudo).half);
            interval = half.map(|half| (value - half, value + half));
        }
        Ok(Measured { value, interval, seeds })
    }

    fn evaluate(
        &self,
        expression: &Expression,
        bound: &Bindings,
        scope: &Scope,
        seeds: &[u64],
    ) -> Result<f64, Missing> {
        let mut probe = |probe: &Probe| self.answer(probe, seeds);
        let answers = &mut Answers { scope, sizes: self.sizes, probe: &mut probe };
        expression.evaluate(bound, answers)
    }

    /// Mean over the seeds that have an answer.
    fn answer(&self, probe: &Probe, seeds: &[u64]) -> Result<f64, Missing> {
        let only = self.scope.variants.first().filter(|_| self.scope.variants.len() == 1);
        let nothing = || match probe.filter("variant").or(only.map(String::as_str)) {
            Some(variant) if self.experiment.missing(variant).is_empty() => {
                let values: Vec<String> = probe
                    .filters
                    .iter()
                    .filter(|(key, _)| self.scope.labels.iter().any(|label| label.name == *key))
                    .map(|(key, value)| format!(" at {key}={value}"))
                    .collect();
                format!("there is no run of {variant}{}", values.join(","))
            }
            Some(variant) => {
                format!("{variant} needs {} (not there yet)", self.experiment.missing(variant).join(", "))
            }
            None => "there is no run".into(),
        };
        let by_seed = self.answers.get(probe).ok_or_else(nothing)?;
        let (mut sum, mut count, mut why) = (0.0, 0usize, None);
        for seed in seeds {
            for answer in by_seed.get(seed).into_iter().flatten() {
                match answer {
                    Ok(value) => {
                        sum += value;
                        count += 1;
                    }
                    Err(missing) => why = why.or(Some(missing.clone())),
                }
            }
        }
        if count > 0 { Ok(sum / count as f64) } else { Err(why.unwrap_or_else(nothing)) }
    }

    /// Name, variant and bindings of every curve of a figure, panels apart.
    fn curves(&self, figure: &Figure) -> Vec<(String, Option<String>, Bindings)> {
        let x = match &figure.kind {
            Kind::Lines { x, .. } | Kind::Bars { x, .. } => Some(x.as_str()),
            _ => None,
        };
        let mut curves = vec![(String::new(), None, Bindings::new())];
        if matches!(figure.kind, Kind::Sizes { .. }) {
            return Vec::new();
        }
        let variants = &self.scope.variants;
        if x != Some("variant") {
            let shown = variants.iter().filter(|name| figure.variants.is_empty() || figure.variants.contains(name));
            curves = shown
                .map(|name| (name.clone(), Some(name.clone()), vec![("variant".to_string(), name.clone())]))
                .collect();
        }
        for label in self.scope.labels.iter().filter(|label| Some(label.name.as_str()) != x) {
            curves = curves
                .into_iter()
                .flat_map(|(name, variant, bound)| {
                    let varied =
                        label.variants.as_ref().zip(variant.as_ref()).is_none_or(|(all, one)| all.contains(one));
                    if !varied {
                        return vec![(name, variant, bound)];
                    }
                    let one = |step: &Step| {
                        let value = format!("{} {}", label.name, step.name);
                        let name = if name.is_empty() { value } else { format!("{name}, {value}") };
                        (name, variant.clone(), with(&bound, &label.name, &step.name))
                    };
                    label.values.iter().map(one).collect()
                })
                .collect();
        }
        // With a single variant, what is varied says it all.
        if let ([only], [.., _]) = (variants.as_slice(), curves.as_slice())
            && curves.len() > 1
        {
            for (name, ..) in &mut curves {
                if let Some(rest) = name.strip_prefix(&format!("{only}, ")) {
                    *name = rest.to_string();
                }
            }
        }
        curves
    }

    /// A figure's panels with what is known so far; curves without data are left out.
    pub fn plots(&self, figure: &Figure) -> Vec<Plot> {
        if let Kind::Sizes { workloads } = &figure.kind {
            return vec![self.size_distribution(figure, workloads)];
        }
        let categories = self.categories(figure);
        let panels = figure.panel.as_ref().and_then(|panel| self.scope.steps(panel));
        let mut plots: Vec<(Option<String>, Plot)> = match panels {
            Some(steps) => steps
                .into_iter()
                .map(|step| {
                    let of = figure.panel.as_deref().map(|panel| self.experiment.axis_title(panel)).unwrap_or_default();
                    let title = format!("{}, {of} {}", figure.title, step.name);
                    (Some(step.name), Plot { title, categories: categories.clone(), curves: Vec::new() })
                })
                .collect(),
            None => {
                vec![(None, Plot { title: figure.title.clone(), categories: categories.clone(), curves: Vec::new() })]
            }
        };
        for (name, variant, bound) in self.curves(figure) {
            let points = self.points(figure, &bound);
            if points.is_empty() {
                continue;
            }
            for (value, plot) in &mut plots {
                let panel = figure.panel.as_deref().unwrap_or_default();
                let own = bound.iter().find(|(key, _)| key == panel).map(|(_, value)| value);
                if let (Some(value), Some(own)) = (value.as_ref(), own)
                    && value != own
                {
                    continue;
                }
                // The panel's title says it already.
                let name = match value {
                    Some(value) => {
                        name.replace(&format!(", {panel} {value}"), "").replace(&format!("{panel} {value}"), "")
                    }
                    None => name.clone(),
                };
                let name = name.trim_start_matches(", ").to_string();
                plot.curves.push(Curve { name, variant: variant.clone(), points: points.clone() });
            }
        }
        plots.into_iter().map(|(_, plot)| plot).collect()
    }

    /// What a figure goes through along its horizontal axis; of variants, those that it shows and that can be run.
    fn steps(&self, figure: &Figure, x: &str) -> Vec<Step> {
        let mut steps = self.open.steps(x).unwrap_or_default();
        steps.retain(|step| x != "variant" || figure.variants.is_empty() || figure.variants.contains(&step.name));
        steps
    }

    /// The names along the horizontal axis: of bars, and of values that are no numbers.
    fn categories(&self, figure: &Figure) -> Option<Vec<String>> {
        let (x, bars) = match &figure.kind {
            Kind::Lines { x, .. } => (x, false),
            Kind::Bars { x, .. } => (x, true),
            _ => return None,
        };
        let steps = self.steps(figure, x);
        let numbers = x == "size" || steps.iter().all(|step| step.is_number);
        (bars || !numbers).then(|| steps.into_iter().map(|step| step.name).collect())
    }

    fn points(&self, figure: &Figure, bound: &Bindings) -> Vec<Point> {
        match &figure.kind {
            Kind::Lines { x, y } | Kind::Bars { x, y } => {
                let named = self.categories(figure).is_some();
                let steps = self.steps(figure, x).into_iter();
                steps
                    .enumerate()
                    .filter_map(|(place, step)| {
                        let measured = self.value(y, &with(bound, x, &step.name), &self.scope).ok()?;
                        let x = if named { place as f64 } else { step.x };
                        Some(Point { x, y: measured.value, interval: measured.interval })
                    })
                    .collect()
            }
            Kind::Cdf { of, probe } => {
                let by_seed = self.shape(Shape::Cdf(*of), probe, bound);
                let drawn: Vec<&Vec<(f64, f64)>> =
                    by_seed.iter().filter(|points| !points.is_empty()).copied().collect();
                let Some(first) = drawn.first() else { return Vec::new() };
                // The mean over seeds of each quantile.
                let mean = |i: usize| drawn.iter().map(|points| points[i].0).sum::<f64>() / drawn.len() as f64;
                let point = |(i, (_, y)): (usize, &(f64, f64))| Point { x: mean(i), y: *y, interval: None };
                first.iter().enumerate().map(point).collect()
            }
            Kind::Series { of, probe } => {
                // Of the first seed: instants of different seeds have nothing to do with one another.
                let first = self.shape(Shape::Series(*of), probe, bound).into_iter().next();
                let point = |&(x, y): &(f64, f64)| Point { x, y, interval: None };
                first.map(|points| points.iter().map(point).collect()).unwrap_or_default()
            }
            Kind::Sizes { .. } => Vec::new(),
        }
    }

    fn shape(&self, shape: Shape, probe: &Expression, bound: &Bindings) -> Vec<&Vec<(f64, f64)>> {
        let probe = probe.probes(&self.scope, bound).into_iter().next();
        let drawn = probe.and_then(|probe| self.shapes.get(&(shape, probe)));
        drawn.map(|by_seed| by_seed.values().collect()).unwrap_or_default()
    }

    fn size_distribution(&self, figure: &Figure, workloads: &[String]) -> Plot {
        // From 100 B to 100 MB, twenty to a decade.
        let sizes: Vec<u64> = (0..=120).map(|i| (100.0 * 10f64.powf(i as f64 / 20.0)).round() as u64).collect();
        let curve = |workload: &String| {
            let point = |&size: &u64| {
                let y = self.sizes.bytes_share(workload, size)?;
                Some(Point { x: size as f64, y, interval: None })
            };
            let points: Vec<Point> = sizes.iter().filter_map(point).collect();
            (!points.is_empty()).then(|| Curve { name: workload.clone(), variant: None, points })
        };
        Plot { title: figure.title.clone(), categories: None, curves: workloads.iter().filter_map(curve).collect() }
    }
}

fn with(bound: &Bindings, key: &str, value: &str) -> Bindings {
    bound.iter().cloned().chain([(key.to_string(), value.to_string())]).collect()
}
