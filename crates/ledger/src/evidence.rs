//! What the runs say: probes answered run by run, expressions evaluated over seeds.
//!
//! Runs are looked at one at a time and forgotten, for a comparison at paper scale does not fit in memory: [`Evidence`] first
//! collects every probe that an experiment asks, then takes each run ([`Evidence::add`]) and keeps only the answers.
//!
//! Over seeds, samples are pooled: a percentile is that of the samples of all seeds together. A number that a run has one of is the
//! mean over seeds. The interval of a whole expression comes from the jackknife: the expression is evaluated again with
//! each seed left out, and Student's t is applied to the pseudo-values. It respects that the schemes of a ratio ran
//! with the same traffic.

use super::answer::{Samples, answer, distribution, samples, series};
use super::experiment::{Column, Expectation, Experiment, Figure, Kind, Place, Scale, Stated};
use super::expression::{Answers, Bindings, Expression, Missing, Probe, Quantity, Scope, Sizes, Statistic, Step, What};
use results::exhibit::{Curve, Plot, Point};
use results::measure::jackknife;
use results::records::Records;
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
    /// How many seeds it comes from; none of a value that is computed.
    pub seeds: usize,
    /// The samples of its percentiles over all seeds, of the one that has the fewest; none without a percentile.
    pub samples: Option<usize>,
    /// Whether one of its percentiles has too few samples to be trusted.
    pub few: bool,
}

/// What each run of a seed answered.
type BySeed<T> = BTreeMap<u64, Vec<Result<T, Missing>>>;

/// Values over time.
type Series = Vec<(f64, f64)>;

/// The samples of a quantity.
#[derive(Default)]
struct Pool {
    /// Whether a percentile or a distribution is asked for.
    keep: bool,
    by_seed: BySeed<Samples>,
}

/// Names the samples that a probe needs, if it is a statistic of samples that are pooled.
fn pool(probe: &Probe) -> Option<Probe> {
    match probe.what {
        What::Statistic(statistic, quantity) if statistic.pools() => {
            Some(Probe { what: What::Statistic(Statistic::Max, quantity), filters: probe.filters.clone() })
        }
        _ => None,
    }
}

/// The answers of the runs to everything that an experiment asks.
pub struct Evidence<'a> {
    experiment: &'a Experiment,
    scope: Scope,
    /// The same with only those variants that can be run: questions go over these.
    open: Scope,
    scale: Scale,
    sizes: &'a dyn Sizes,
    /// Numbers that a run has one of, by probe.
    answers: BTreeMap<Probe, BySeed<f64>>,
    /// Samples, by the probe for the largest of them.
    pools: BTreeMap<Probe, Pool>,
    /// Series over time, by quantity and filters; of the first seed, for instants of different seeds have nothing to do with one another.
    series: BTreeMap<(Quantity, Probe), Option<Series>>,
    seeds: BTreeSet<u64>,
    runs: usize,
}

impl<'a> Evidence<'a> {
    /// The scale that it is about.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// Nothing known yet about an experiment at a scale.
    pub fn new(experiment: &'a Experiment, scale: Scale, sizes: &'a dyn Sizes) -> Evidence<'a> {
        let scope = experiment.scope(Some(scale));
        let mut open = scope.clone();
        open.variants.retain(|variant| experiment.missing(variant).is_empty());
        let mut evidence = Evidence {
            experiment,
            scope,
            open,
            scale,
            sizes,
            answers: BTreeMap::new(),
            pools: BTreeMap::new(),
            series: BTreeMap::new(),
            seeds: BTreeSet::new(),
            runs: 0,
        };
        for expectation in &experiment.expectations {
            let probes = expectation.value.probes(evidence.scope_of(expectation), &Bindings::new());
            probes.into_iter().for_each(|probe| evidence.want(probe));
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
                    Kind::Cdf { probe, .. } => {
                        for probe in probe.probes(&evidence.scope, &bound) {
                            evidence.pools.entry(probe).or_default().keep = true;
                        }
                    }
                    Kind::Series { of, probe } => {
                        for probe in probe.probes(&evidence.scope, &bound) {
                            evidence.series.entry((*of, probe)).or_default();
                        }
                    }
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
        let folders = grid::run(&plan, &store.clone().thorough(true), threads, observer)?.folders;
        // Seeds turn fastest.
        let runs = cells.iter().flat_map(|cell| (1..=seeds).map(move |seed| (cell, seed)));
        for ((cell, seed), folder) in runs.zip(&folders) {
            let records = store::open(folder).map_err(|problem| failed(vec![problem]))?;
            evidence.add(&Run { variant: cell.variant.clone(), values: cell.values.clone(), seed, records });
        }
        Ok(evidence)
    }

    fn ask(&mut self, expression: &Expression, bound: &Bindings) {
        expression.probes(&self.scope, bound).into_iter().for_each(|probe| self.want(probe));
    }

    fn want(&mut self, probe: Probe) {
        let keep = matches!(probe.what, What::Statistic(Statistic::Quantile(_), _));
        match pool(&probe) {
            Some(samples) => self.pools.entry(samples).or_default().keep |= keep,
            None => _ = self.answers.entry(probe).or_default(),
        }
    }

    /// How many runs it has seen.
    pub fn runs(&self) -> usize {
        self.runs
    }

    /// The seeds that it has seen.
    pub fn seeds(&self) -> impl ExactSizeIterator<Item = u64> {
        self.seeds.iter().copied()
    }

    /// Takes what a run has to say.
    pub fn add(&mut self, run: &Run) {
        self.runs += 1;
        self.seeds.insert(run.seed);
        for (probe, answers) in self.answers.iter_mut().filter(|(probe, _)| run.answers(probe)) {
            answers.entry(run.seed).or_default().push(answer(probe, &run.records));
        }
        for (probe, pool) in self.pools.iter_mut().filter(|(probe, _)| run.answers(probe)) {
            let What::Statistic(_, quantity) = probe.what else { continue };
            let values = samples(quantity, probe, &run.records).map(|values| Samples::of(values, pool.keep));
            pool.by_seed.entry(run.seed).or_default().push(values);
        }
        for ((quantity, probe), drawn) in self.series.iter_mut().filter(|((_, probe), _)| run.answers(probe)) {
            drawn.get_or_insert_with(|| series(*quantity, probe, &run.records));
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
        let probes = expression.probes(scope, bound);
        // A value that no run was asked for is exact.
        let seeds = if probes.is_empty() { 0 } else { all.len() };
        let interval = match seeds {
            0 | 1 => None,
            // Pooled percentiles of the same samples more and fewer times are not quite the same.
            _ if probes.iter().all(|probe| self.alike(probe)) => Some((value, value)),
            _ => {
                let others = |seed: &u64| all.iter().copied().filter(|other| other != seed).collect::<Vec<u64>>();
                let without: Result<Vec<f64>, Missing> =
                    all.iter().map(|seed| self.evaluate(expression, bound, scope, &others(seed))).collect();
                let (least, most) = expression.bounds();
                let clip = |(low, high): (f64, f64)| (low.max(least).min(value), high.min(most).max(value));
                without.ok().and_then(|without| jackknife(value, &without)).map(clip)
            }
        };
        let percentiles = probes.iter().filter_map(|probe| match probe.what {
            What::Statistic(statistic, _) => Some((self.count(probe), statistic.enough()?)),
            _ => None,
        });
        let (samples, few) = percentiles.fold((None, false), |(least, few), (count, enough)| {
            (Some(least.map_or(count, |least: usize| least.min(count))), few || (count as f64) < enough)
        });
        Ok(Measured { value, interval, seeds, samples, few })
    }

    /// Whether all seeds have the same to say.
    fn alike(&self, probe: &Probe) -> bool {
        fn same<T: PartialEq>(by_seed: &BySeed<T>, seeds: usize) -> bool {
            by_seed.len() == seeds && by_seed.values().zip(by_seed.values().skip(1)).all(|(a, b)| a == b)
        }
        let seeds = self.seeds.len();
        match pool(probe) {
            Some(samples) => self.pools.get(&samples).is_some_and(|pool| same(&pool.by_seed, seeds)),
            None => self.answers.get(probe).is_some_and(|by_seed| same(by_seed, seeds)),
        }
    }

    /// How many samples there are over all seeds. Seeds that are all the same are one sample, however many they are.
    fn count(&self, probe: &Probe) -> usize {
        let found = pool(probe).and_then(|samples| self.pools.get(&samples));
        let seeds = if self.alike(probe) { 1 } else { usize::MAX };
        let pools = found.into_iter().flat_map(|pool| pool.by_seed.values().take(seeds));
        pools.flatten().flatten().map(|part| part.count).sum()
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

    /// What a probe is over the seeds that have an answer: of their samples together, or the mean.
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
        fn heard<'b, T>(by_seed: &'b BySeed<T>, seeds: &[u64]) -> (Vec<&'b T>, Option<Missing>) {
            let (mut heard, mut why) = (Vec::new(), None);
            for answer in seeds.iter().filter_map(|seed| by_seed.get(seed)).flatten() {
                match answer {
                    Ok(value) => heard.push(value),
                    Err(missing) => why = why.or(Some(missing.clone())),
                }
            }
            (heard, why)
        }
        if let (Some(samples), What::Statistic(statistic, _)) = (pool(probe), &probe.what) {
            let pool = self.pools.get(&samples).ok_or_else(nothing)?;
            return match heard(&pool.by_seed, seeds) {
                (parts, why) if parts.is_empty() => Err(why.unwrap_or_else(nothing)),
                (parts, _) => Ok(statistic.of(&parts)),
            };
        }
        let (values, why) = heard(self.answers.get(probe).ok_or_else(nothing)?, seeds);
        match values.len() {
            0 => Err(why.unwrap_or_else(nothing)),
            count => Ok(values.into_iter().sum::<f64>() / count as f64),
        }
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
                    let panel = figure.panel.as_deref().map(|panel| self.experiment.axis(panel));
                    let (of, unit) = panel.unwrap_or_default();
                    let unit = unit.map_or(String::new(), |unit| format!(" ({})", unit.symbol()));
                    let title = format!("{}, {of}{unit} {}", figure.title, step.name);
                    (Some(step.name), Plot { title, categories: categories.clone(), ..Plot::default() })
                })
                .collect(),
            None => {
                vec![(None, Plot { title: figure.title.clone(), categories: categories.clone(), ..Plot::default() })]
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
        for (value, plot) in &mut plots {
            let here = |stated: &&Stated| stated.panel.is_none() || stated.panel == *value;
            for Stated { variant, x, y, .. } in figure.stated.iter().filter(here) {
                let named = |name| plot.categories.iter().flatten().position(|known| known == name);
                // A value that is not run at this scale has no place.
                let Some(x) = (match x {
                    Place::At(x) => Some(*x),
                    Place::Named(name) => named(name).map(|place| place as f64),
                }) else {
                    continue;
                };
                let point = Point { x, y: *y, interval: None };
                match plot.stated.iter_mut().find(|curve| curve.variant == *variant) {
                    Some(curve) => curve.points.push(point),
                    None => {
                        let name = variant.as_ref().map_or("the paper".into(), |name| format!("{name}, in the paper"));
                        plot.stated.push(Curve { name, variant: variant.clone(), points: vec![point] });
                    }
                }
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
            Kind::Cdf { probe, .. } => {
                let probe = probe.probes(&self.scope, bound).into_iter().next();
                let pool = probe.and_then(|probe| self.pools.get(&probe));
                let parts: Vec<&Samples> =
                    pool.into_iter().flat_map(|pool| pool.by_seed.values().flatten().flatten()).collect();
                if parts.is_empty() {
                    return Vec::new();
                }
                distribution(&parts).into_iter().map(|(x, y)| Point { x, y, interval: None }).collect()
            }
            Kind::Series { of, probe } => {
                let probe = probe.probes(&self.scope, bound).into_iter().next();
                let drawn = probe.and_then(|probe| self.series.get(&(*of, probe))?.as_ref());
                let point = |&(x, y): &(f64, f64)| Point { x, y, interval: None };
                drawn.map(|points| points.iter().map(point).collect()).unwrap_or_default()
            }
            Kind::Sizes { .. } => Vec::new(),
        }
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
        Plot { title: figure.title.clone(), curves: workloads.iter().filter_map(curve).collect(), ..Plot::default() }
    }
}

fn with(bound: &Bindings, key: &str, value: &str) -> Bindings {
    bound.iter().cloned().chain([(key.to_string(), value.to_string())]).collect()
}
