//! From what happened to numbers people compare.

use fabric::Outcome;
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
}

impl Spread {
    /// Of any values; they need not be sorted.
    pub fn of(mut values: Vec<f64>) -> Spread {
        values.sort_by(f64::total_cmp);
        let some = |x: f64| (!values.is_empty()).then_some(x);
        let at = |q| some(percentile(&values, q));
        Spread {
            count: values.len(),
            mean: some(values.iter().sum::<f64>() / values.len() as f64),
            p50: at(0.5),
            p95: at(0.95),
            p99: at(0.99),
            p999: at(0.999),
            max: at(1.0),
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

/// Slowdown of every finished flow: time from start to the arrival of its last byte, over the same alone.
pub fn slowdowns(outcome: &Outcome) -> Vec<(u64, f64)> {
    let finished = outcome.flows.iter().filter(|f| f.received != engine::Time::MAX);
    finished.map(|f| (f.spec.size, (f.received - f.spec.start).0 as f64 / f.spec.ideal.0.max(1) as f64)).collect()
}

/// The same by size.
pub fn by_size(slowdowns: &[(u64, f64)]) -> Vec<SizeBin> {
    let ends = BINS.iter().map(|&b| Some(b)).chain([None]);
    let starts = [0].into_iter().chain(BINS);
    starts
        .zip(ends)
        .map(|(above, up_to)| {
            let inside = slowdowns.iter().filter(|(size, _)| *size > above && up_to.is_none_or(|end| *size <= end));
            SizeBin { above, up_to, slowdown: Spread::of(inside.map(|(_, s)| *s).collect()) }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn every_flow_falls_in_one_bin() {
        let sizes = [1, 1_000, 1_001, 10_000, 100_000, 1_000_000, 1_000_001];
        let bins = by_size(&sizes.map(|s| (s, 1.0)));
        assert_eq!(bins.iter().map(|b| b.slowdown.count).collect::<Vec<_>>(), [2, 2, 1, 1, 1]);
        assert_eq!(Spread::of(vec![]).p99, None);
    }
}
