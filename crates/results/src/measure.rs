//! From what happened to numbers people compare.

use serde::Serialize;

/// The value below which a share `q` of sorted `values` lies, with linear interpolation between neighbours.
pub fn percentile(values: &[f64], q: f64) -> f64 {
    if values.is_empty() {
        return f64::NAN;
    }
    let at = q * (values.len() - 1) as f64;
    let (low, high) = (at.floor() as usize, at.ceil() as usize);
    values[low] + (values[high] - values[low]) * (at - low as f64)
}

/// Standard normal quantile of a 95 % interval.
const Z: f64 = 1.959_963_984_540_054;

/// A 95 % confidence interval of the quantile `q` of sorted `values`, free of assumptions on their distribution: the order
/// statistics between which it lies with that probability, by the normal approximation of the binomial. `None` where there
/// are too few values.
pub fn quantile_interval(values: &[f64], q: f64) -> Option<(f64, f64)> {
    let n = values.len() as f64;
    let spread = Z * (n * q * (1.0 - q)).sqrt();
    let (low, high) = ((n * q - spread).floor(), (n * q + spread).ceil());
    (low >= 1.0 && high <= n).then(|| (values[low as usize - 1], values[high as usize - 1]))
}

/// A 95 % confidence interval of the mean, by the normal approximation. `None` for fewer than two values. Where all values are
/// positive it is that of the mean's logarithm, so that it is positive, too.
pub fn mean_interval(values: &[f64]) -> Option<(f64, f64)> {
    let n = values.len() as f64;
    if values.len() < 2 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0);
    let half = Z * (variance / n).sqrt();
    Some(around(mean, half, values.iter().all(|value| *value > 0.0)))
}

/// The interval around a mean. On a logarithmic scale if it is one of positive values.
fn around(mean: f64, half: f64, positive: bool) -> (f64, f64) {
    match positive {
        true => (mean * (-half / mean).exp(), mean * (half / mean).exp()),
        false => (mean - half, mean + half),
    }
}

/// An interval around what cannot be below `least`, such as a slowdown below 1, or is below it itself: its lower end is not, either.
pub fn not_below(least: f64, value: f64, (low, high): (f64, f64)) -> (f64, f64) {
    (low.max(least.min(value)), high)
}

/// Whether a number is known so badly that its 95 % interval is wider than the number itself: people are shown `~` before it instead of the
/// interval, in every table. Files have both.
pub fn is_vague(value: f64, interval: Option<(f64, f64)>) -> bool {
    interval.is_some_and(|(low, high)| high - low > value.abs())
}

/// What says so below a table.
pub const VAGUE: &str = "~ roughly: the 95 % interval is wider than the value, take more seeds";

/// A mean over seeds, or another number over them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The number; `None` of nothing.
    pub mean: Option<f64>,
    /// Half of its 95 % confidence interval, by Student's t distribution if it is a mean; `None` for fewer than two values.
    pub half: Option<f64>,
    /// How many values.
    pub count: usize,
    ends: Option<(f64, f64)>,
    /// Whether the ends are as far from the number as each other, so that half of the interval tells both.
    symmetric: bool,
}

impl Estimate {
    /// Of one value for each seed.
    pub fn of(values: &[f64]) -> Estimate {
        let count = values.len();
        if count == 0 {
            return Estimate { mean: None, half: None, count, ends: None, symmetric: true };
        }
        let mean = values.iter().sum::<f64>() / count as f64;
        let half = (count > 1).then(|| {
            let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (count - 1) as f64;
            student(count - 1) * (variance / count as f64).sqrt()
        });
        let positive = values.iter().all(|value| *value > 0.0);
        let ends = half.map(|half| around(mean, half, positive));
        // A wide interval of positive values is not symmetric.
        let symmetric = !positive || half.is_none_or(|half| half <= mean / 4.0);
        Estimate { mean: Some(mean), half, count, ends, symmetric }
    }

    /// A value over `count` seeds whose interval was computed elsewhere.
    pub fn with_interval(value: f64, interval: Option<(f64, f64)>, count: usize) -> Estimate {
        let half = interval.map(|(low, high)| (high - low) / 2.0);
        Estimate { mean: Some(value), half, count, ends: interval, symmetric: false }
    }

    /// The confidence interval: of positive values it is positive.
    pub fn interval(&self) -> Option<(f64, f64)> {
        self.ends
    }

    /// Whether the interval is wider than the number.
    pub fn is_vague(&self) -> bool {
        self.mean.is_some_and(|mean| is_vague(mean, self.ends))
    }

    /// What stands before the number: `~` if it is vague.
    pub fn mark(&self) -> &'static str {
        if self.is_vague() { "~" } else { "" }
    }

    /// What stands behind the number: `±` and half of the interval, or its ends where it is not symmetric. Nothing where there
    /// is no interval, it has no width, or the number is vague.
    pub fn spread(&self, show: impl Fn(f64) -> String) -> String {
        if self.is_vague() {
            return String::new();
        }
        match (self.ends, self.half) {
            (Some((low, high)), Some(half)) if half > 0.0 => match self.symmetric {
                true => format!(" ±{}", show(half)),
                false => format!(" ({}–{})", show(low), show(high)),
            },
            _ => String::new(),
        }
    }
}

/// The 95 % confidence interval of a value over seeds, from what it is with each seed left out: Student's t on the jackknife's
/// pseudo-values. On a logarithmic scale where all are positive, so that what cannot be negative has no negative interval.
/// `None` for fewer than two seeds.
pub fn jackknife(value: f64, without: &[f64]) -> Option<(f64, f64)> {
    let log = value > 0.0 && without.iter().all(|other| *other > 0.0);
    let scaled = |x: f64| if log { x.ln() } else { x };
    let n = without.len() as f64;
    let pseudo: Vec<f64> =
        without.iter().map(|other| scaled(value) + (n - 1.0) * (scaled(value) - scaled(*other))).collect();
    let half = Estimate::of(&pseudo).half?;
    let (low, high) = match log {
        // Not by way of the logarithm, which would move a value that has no spread.
        true => (value * (-half).exp(), value * half.exp()),
        false => (value - half, value + half),
    };
    (low.is_finite() && high.is_finite()).then_some((low, high))
}

/// Fewer seeds say nothing about how far a number can be trusted.
pub const ENOUGH: usize = 3;

/// A percentile of the samples of several seeds, with one of them left out or none. Samples that are infinite, such as the slowdown of a flow
/// that did not finish, are the largest; none where the percentile falls on those.
pub fn percentile_of_all(seeds: &[Vec<f64>], without: Option<usize>, q: f64) -> Option<f64> {
    let all = pooled(seeds, without);
    (!all.is_empty()).then(|| percentile(&all, q)).filter(|value| value.is_finite())
}

/// The same with its 95 % interval: by order statistics of one seed, by the jackknife of [`ENOUGH`] or more, none of fewer.
pub fn percentile_with_interval(seeds: &[Vec<f64>], q: f64) -> Option<(f64, Option<(f64, f64)>)> {
    let value = percentile_of_all(seeds, None, q)?;
    let interval = match seeds.len() {
        1 => quantile_interval(&pooled(seeds, None), q).filter(|(_, high)| high.is_finite()),
        several if several < ENOUGH => None,
        several => {
            let others = (0..several).map(|seed| percentile_of_all(seeds, Some(seed), q));
            others.collect::<Option<Vec<f64>>>().and_then(|others| jackknife(value, &others))
        }
    };
    Some((value, interval))
}

/// The samples of all seeds but one, sorted.
fn pooled(seeds: &[Vec<f64>], without: Option<usize>) -> Vec<f64> {
    let kept = seeds.iter().enumerate().filter(|(seed, _)| Some(*seed) != without);
    let mut all: Vec<f64> = kept.flat_map(|(_, values)| values.iter().copied()).collect();
    all.sort_by(f64::total_cmp);
    all
}

/// The mean of one value for each seed, with one of them left out or none.
pub fn mean_of_all(seeds: &[f64], without: Option<usize>) -> Option<f64> {
    let kept = || seeds.iter().enumerate().filter(|(seed, _)| Some(*seed) != without).map(|(_, value)| *value);
    (kept().count() > 0).then(|| kept().sum::<f64>() / kept().count() as f64)
}

/// The 97.5 % quantile of Student's t distribution for so many degrees of freedom, from 1.
fn student(freedom: usize) -> f64 {
    const SMALL: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
        2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
    ];
    let n = freedom as f64;
    // Beyond the table two terms of its expansion in 1/n are good to the same digits.
    SMALL.get(freedom.wrapping_sub(1)).copied().unwrap_or(1.960 + 2.372 / n + 2.823 / (n * n))
}

/// Jain's index of fairness: 1 if all values are the same, 1/n if one has everything. `None` of nothing, or of nothing but
/// zeros.
pub fn jain(values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().sum();
    let squares: f64 = values.iter().map(|x| x * x).sum();
    (squares > 0.0).then(|| sum * sum / (values.len() as f64 * squares))
}

/// 95 % confidence intervals; `null` where there are too few values.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Intervals {
    /// Of the mean.
    pub mean: Option<(f64, f64)>,
    /// Of the median.
    pub p50: Option<(f64, f64)>,
    /// Of the 95th percentile.
    pub p95: Option<(f64, f64)>,
    /// Of the 99th percentile.
    pub p99: Option<(f64, f64)>,
    /// Of the 99.9th percentile.
    pub p999: Option<(f64, f64)>,
}

/// A distribution in a few numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// How many values.
    pub count: usize,
    /// Their mean.
    pub mean: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p999: Option<f64>,
    /// The largest.
    pub max: Option<f64>,
    /// How far each can be trusted, if the values were drawn independently.
    pub interval: Intervals,
    /// Values that are infinite, such as the slowdown of a flow that did not finish. All of the above is of the others.
    #[serde(skip_serializing_if = "is_zero")]
    pub unfinished: usize,
    /// The percentiles with these among the values, where there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub with_unfinished: Option<Percentiles>,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Percentiles; `null` where one falls on what did not finish.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Percentiles {
    /// Median.
    pub p50: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p999: Option<f64>,
}

impl Percentiles {
    fn of(sorted: &[f64]) -> Percentiles {
        let at = |q| Some(percentile(sorted, q)).filter(|value| value.is_finite());
        Percentiles { p50: at(0.5), p95: at(0.95), p99: at(0.99), p999: at(0.999) }
    }

    /// One of them, from a [`Spread`] in JSON: with what did not finish, if there is any.
    pub fn read(spread: &serde_json::Value, name: &str) -> Option<f64> {
        spread.get("with_unfinished").unwrap_or(spread)[name].as_f64()
    }
}

impl Spread {
    /// Of slowdowns, which are hardly ever below 1.
    pub fn of_slowdowns(values: Vec<f64>) -> Spread {
        let mut spread = Spread::of(values);
        let interval = spread.mean.zip(spread.interval.mean);
        spread.interval.mean = interval.map(|(mean, interval)| not_below(1.0, mean, interval));
        spread
    }

    /// Of any values; they need not be sorted.
    pub fn of(mut values: Vec<f64>) -> Spread {
        values.sort_unstable_by(f64::total_cmp);
        let finite = values.partition_point(|value| value.is_finite());
        let unfinished = values.len() - finite;
        let with_unfinished = (unfinished > 0).then(|| Percentiles::of(&values));
        values.truncate(finite);
        let some = |x: f64| (!values.is_empty()).then_some(x);
        let at = |q| some(percentile(&values, q));
        let around = |q| quantile_interval(&values, q);
        Spread {
            count: values.len(),
            mean: some(values.iter().sum::<f64>() / values.len() as f64),
            p50: at(0.5),
            p95: at(0.95),
            p99: at(0.99),
            p999: at(0.999),
            max: at(1.0),
            interval: Intervals {
                mean: mean_interval(&values),
                p50: around(0.5),
                p95: around(0.95),
                p99: around(0.99),
                p999: around(0.999),
            },
            unfinished,
            with_unfinished,
        }
    }
}

/// Slowdowns of flows of one range of sizes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SizeBin {
    /// Larger than this many bytes,
    pub above: u64,
    /// up to this many; none for the last.
    pub up_to: Option<u64>,
    /// Slowdown of the finished flows in it.
    pub slowdown: Spread,
}

/// Upper ends of the size bins.
const BINS: [u64; 4] = [1_000, 10_000, 100_000, 1_000_000];

/// Slowdowns, with the sizes of their flows, by size.
pub fn by_size(slowdowns: &[(u64, f64)]) -> Vec<SizeBin> {
    let ends = BINS.iter().map(|&b| Some(b)).chain([None]);
    let starts = [0].into_iter().chain(BINS);
    starts
        .zip(ends)
        .map(|(above, up_to)| {
            let inside = slowdowns.iter().filter(|(size, _)| *size > above && up_to.is_none_or(|end| *size <= end));
            SizeBin { above, up_to, slowdown: Spread::of_slowdowns(inside.map(|(_, s)| *s).collect()) }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_over_seeds_is_students_on_pseudo_values_and_positive_where_all_is() {
        // Of the mean of 1, 2 and 3 the values without each are 2.5, 2 and 1.5. On a logarithmic scale the pseudo-values
        // are 3 ln 2 - 2 ln(2.5, 2, 1.5) = 0.2469, 0.6931, 1.2685, with a deviation of 0.5119; t(2) = 4.303.
        let (low, high) = jackknife(2.0, &[2.5, 2.0, 1.5]).unwrap();
        let half: f64 = 4.303 * 0.511_9 / 3f64.sqrt();
        assert!((low - 2.0 * (-half).exp()).abs() < 1e-3, "{low}");
        assert!((high - 2.0 * half.exp()).abs() < 1e-2, "{high}");
        // With a zero among them it is the interval of the mean: of 0, 0 and 3, deviation sqrt(3).
        let (low, high) = jackknife(1.0, &[1.5, 1.5, 0.0]).unwrap();
        assert!((low - (1.0 - 4.303)).abs() < 1e-9 && (high - (1.0 + 4.303)).abs() < 1e-9, "{low} {high}");
        assert_eq!(jackknife(0.1, &[0.1, 0.1]), Some((0.1, 0.1)));
        assert_eq!(jackknife(2.0, &[2.0]), None);
        assert_eq!(jackknife(2.0, &[]), None);
    }

    #[test]
    fn a_percentile_of_all_seeds_is_none_where_it_falls_on_what_did_not_finish() {
        let seeds = [vec![1.0, 5.0], vec![3.0], vec![2.0, f64::INFINITY]];
        assert_eq!(percentile_of_all(&seeds, None, 0.5), Some(3.0));
        assert_eq!(percentile_of_all(&seeds, Some(0), 0.5), Some(3.0));
        assert_eq!(percentile_of_all(&seeds, None, 0.99), None);
        assert_eq!(percentile_of_all(&seeds, Some(2), 1.0), Some(5.0));
        assert_eq!(percentile_of_all(&[vec![], vec![]], None, 0.5), None);
        // Two seeds have no interval; three have the jackknife's, if it is a number whichever is left out.
        assert_eq!(percentile_with_interval(&seeds[..2], 0.5), Some((3.0, None)));
        let (value, interval) = percentile_with_interval(&seeds, 0.5).unwrap();
        let others: Vec<f64> = (0..3).filter_map(|seed| percentile_of_all(&seeds, Some(seed), 0.5)).collect();
        assert_eq!((value, interval, others), (3.0, jackknife(3.0, &[3.0, 3.5, 3.0]), vec![3.0, 3.5, 3.0]));
        let one: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(
            percentile_with_interval(std::slice::from_ref(&one), 0.5),
            Some((50.5, quantile_interval(&one, 0.5)))
        );
        assert_eq!(
            [mean_of_all(&[1.0, 2.0, 6.0], None), mean_of_all(&[1.0, 2.0, 6.0], Some(2))],
            [Some(3.0), Some(1.5)]
        );
        assert_eq!(mean_of_all(&[1.0], Some(0)), None);
    }

    #[test]
    fn what_did_not_finish_is_counted_apart_and_among_all() {
        let spread = Spread::of(vec![f64::INFINITY, 2.0, 1.0, 3.0, f64::INFINITY]);
        assert_eq!((spread.count, spread.p50, spread.max, spread.unfinished), (3, Some(2.0), Some(3.0), 2));
        let all = Percentiles { p50: Some(3.0), ..Percentiles::default() };
        assert_eq!(spread.with_unfinished, Some(all), "the 95th falls on what did not finish");
        let json = serde_json::to_value(&spread).unwrap();
        assert_eq!([Percentiles::read(&json, "p50"), Percentiles::read(&json, "p99")], [Some(3.0), None]);
        let json = serde_json::to_value(Spread::of(vec![1.0, 2.0, 3.0])).unwrap();
        assert_eq!(Percentiles::read(&json, "p50"), Some(2.0));
        assert!(json.get("unfinished").is_none() && json.get("with_unfinished").is_none());
    }

    #[test]
    fn no_interval_of_slowdowns_is_below_what_they_can_be() {
        let few = vec![1.0, 1.0, 1.0, 10.0];
        assert!(Spread::of(few.clone()).interval.mean.unwrap().0 < 1.0, "this no longer tests anything");
        let spread = Spread::of_slowdowns(few.clone());
        assert_eq!(spread.interval.mean.unwrap(), (1.0, Spread::of(few).interval.mean.unwrap().1));
        let sizes: Vec<(u64, f64)> = [1.0, 1.0, 1.0, 10.0].map(|slowdown| (500, slowdown)).into();
        assert_eq!(by_size(&sizes)[0].slowdown, spread);
        // Where the mean is below, which happens if another path is shorter, its interval is around it all the same.
        let (low, high) = Spread::of_slowdowns(vec![0.9, 0.95, 0.92]).interval.mean.unwrap();
        assert!(low < high && low <= 0.93, "{low} to {high}");
    }

    #[test]
    fn an_interval_from_elsewhere_keeps_both_of_its_ends() {
        let estimate = Estimate::with_interval(4.59, Some((3.85, 7.97)), 1);
        assert_eq!(estimate.interval(), Some((3.85, 7.97)));
        assert_eq!(estimate.spread(|end| end.to_string()), " (3.85–7.97)");
    }

    #[test]
    fn percentiles_interpolate_between_neighbours() {
        let values = [1.0, 2.0, 3.0, 4.0];
        assert_eq!(percentile(&values, 0.5), 2.5);
        assert_eq!(percentile(&values, 1.0), 4.0);
        assert_eq!(percentile(&values, 0.0), 1.0);
        assert!((percentile(&values, 0.95) - 3.85).abs() < 1e-12);
        assert!(percentile(&[], 0.5).is_nan());
    }

    #[test]
    fn intervals_are_order_statistics_around_the_quantile() {
        let values: Vec<f64> = (1..=1000).map(f64::from).collect();
        // 1.96 · √(1000 · 0.5 · 0.5) = 30.99
        assert_eq!(quantile_interval(&values, 0.5), Some((469.0, 531.0)));
        assert_eq!(quantile_interval(&values, 0.99), Some((983.0, 997.0)));
        assert_eq!(quantile_interval(&values, 0.999), None, "a thousand values do not bound the 99.9th percentile");
        assert_eq!(quantile_interval(&[], 0.5), None);
        let (low, high) = mean_interval(&[0.0, 1.0, 2.0, 3.0]).unwrap();
        assert!((low + high - 3.0).abs() < 1e-12 && (high - 1.5 - 1.959_963_984 * (5.0f64 / 12.0).sqrt()).abs() < 1e-8);
        assert_eq!(mean_interval(&[1.0]), None);
        // Slowdowns with a long tail.
        let (low, high) = mean_interval(&[1.0, 1.0, 60.0]).unwrap();
        assert!(low > 0.0 && high > 60.0, "{low} to {high}");
        let estimate = Estimate::of(&[1.0, 2.0, 45.0]);
        assert!(estimate.interval().unwrap().0 > 0.0);
        assert_eq!(Estimate::of(&[9.0, 10.0, 11.0]).spread(|value| format!("{value:.1}")), " ±2.5");
        let wide = Estimate::of(&[2.0, 3.0, 4.0, 2.0, 3.0, 4.0]);
        assert_eq!(wide.spread(|value| format!("{value:.2}")), " (2.19–4.10)", "half is 0.94 and a third of the mean");
        assert_eq!(
            (estimate.mark(), estimate.spread(|value| value.to_string())),
            ("~", String::new()),
            "half is 3.9 means"
        );
        assert_eq!(Estimate::of(&[3.0, 3.0]).spread(|value| value.to_string()), "");
    }

    #[test]
    fn fairness_is_one_for_equals_and_a_share_for_a_monopoly() {
        assert_eq!(jain(&[2.0, 2.0, 2.0]), Some(1.0));
        assert_eq!(jain(&[3.0, 0.0, 0.0]), Some(1.0 / 3.0));
        assert_eq!((jain(&[]), jain(&[0.0])), (None, None));
    }

    #[test]
    fn every_flow_falls_in_one_bin() {
        let sizes = [1, 1_000, 1_001, 10_000, 100_000, 1_000_000, 1_000_001];
        let bins = by_size(&sizes.map(|s| (s, 1.0)));
        assert_eq!(bins.iter().map(|b| b.slowdown.count).collect::<Vec<_>>(), [2, 2, 1, 1, 1]);
        assert_eq!(Spread::of(vec![]).p99, None);
    }
}
