//! What a scheme makes of competition, learnt from an exact run of a part of the flows; and how far that is off, measured on others.
//!
//! An estimate says which flows lose much and which lose little; how much a scheme makes them lose is another matter. So the *excess* of a flow
//! (slowdown less one) is turned into what flows of its size with an excess of that rank had in the exact run. Flows that begin in the first half
//! of the part teach that; on those of the second half it is tried, so that the error that is stated is of flows that taught nothing.

use crate::Span;
use crate::fluid::Fluid;
use engine::Time;
use fabric::run::FlowRecord;
use results::measure::{Spread, percentile};
use serde::Serialize;

/// Upper ends of the sizes that are looked at apart.
const SIZES: [u64; 4] = [1_000, 10_000, 100_000, 1_000_000];
/// The least number of flows of a size that can teach anything.
const FEW: usize = 30;
/// Ranks that are kept.
const RANKS: usize = 200;

/// How far estimates are off, on flows that were run exactly and taught nothing.
#[derive(Clone, Debug, Serialize)]
pub struct Error {
    /// |estimated − exact| / exact of completion times, flow by flow.
    pub fct: Spread,
    /// The median of slowdown.
    pub p50: Checked,
    /// The 99th percentile of slowdown.
    pub p99: Checked,
    /// How many flows taught.
    pub taught_by: usize,
}

/// A percentile, estimated and exact.
#[derive(Clone, Debug, Serialize)]
pub struct Checked {
    /// As estimated.
    pub estimated: Option<f64>,
    /// As it is.
    pub exact: Option<f64>,
    /// With what confidence of 95 %, if the flows were drawn independently.
    pub interval: Option<(f64, f64)>,
    /// Estimated over exact, less one.
    pub off: Option<f64>,
}

/// From an estimated excess to what flows with an excess of its rank had.
#[derive(Clone, Debug, Default)]
struct Scale(Vec<(f64, f64)>);

impl Scale {
    fn of(pairs: &[(f64, f64)]) -> Scale {
        let sorted = |side: fn(&(f64, f64)) -> f64| {
            let mut all: Vec<f64> = pairs.iter().map(side).collect();
            all.sort_by(f64::total_cmp);
            all
        };
        let (rough, exact) = (sorted(|pair| pair.0), sorted(|pair| pair.1));
        let rank = |at: usize| at as f64 / RANKS as f64;
        Scale((0..=RANKS).map(|at| (percentile(&rough, rank(at)), percentile(&exact, rank(at)))).collect())
    }

    /// Between two ranks in proportion; beyond the highest by as much more as the estimate is. Where many ranks have the same estimate, the middle of
    /// them counts. Without any, the estimate stays as it is.
    fn of_excess(&self, excess: f64) -> f64 {
        let below = self.0.partition_point(|(rough, _)| *rough < excess);
        let upto = self.0.partition_point(|(rough, _)| *rough <= excess);
        if below < upto {
            return self.0[(below + upto - 1) / 2].1;
        }
        match (below.checked_sub(1).map(|before| self.0[before]), self.0.get(below)) {
            (Some((low, exact_low)), Some(&(high, exact_high))) => {
                exact_low + (exact_high - exact_low) * (excess - low) / (high - low)
            }
            (Some((low, exact_low)), None) => exact_low + (excess - low),
            (None, Some(&(_, exact_high))) => exact_high,
            (None, None) => excess,
        }
    }
}

/// What was learnt, by size.
pub struct Calibration {
    scales: Vec<Scale>,
}

fn bin(size: u64) -> usize {
    SIZES.partition_point(|&end| end < size)
}

impl Calibration {
    /// Learns from flows that were run exactly, beside how they were estimated, and says how far off that is.
    pub fn fit(exact: &[FlowRecord], rough: &[Span]) -> (Calibration, Error) {
        struct Pair {
            size: u64,
            rough: f64,
            exact: f64,
        }
        let pairs: Vec<Pair> = exact
            .iter()
            .zip(rough)
            .filter(|(flow, span)| flow.received != Time::MAX && span.end != Time::MAX && flow.size == flow.spec.size)
            .map(|(flow, span)| {
                let slowdown = |taken: Time| taken.0 as f64 / flow.spec.ideal.0.max(1) as f64;
                let (exact, rough) = (slowdown(flow.received - flow.start), slowdown(span.end - span.start));
                Pair { size: flow.size, rough: (rough - 1.0).max(0.0), exact: (exact - 1.0).max(0.0) }
            })
            .collect();
        let (taught, tried) = pairs.split_at(pairs.len() / 2);
        let scale = |place: usize| {
            let own = taught.iter().filter(|pair| bin(pair.size) == place).map(|pair| (pair.rough, pair.exact));
            let own: Vec<(f64, f64)> = own.collect();
            if own.len() >= FEW { Scale::of(&own) } else { Scale::default() }
        };
        let calibration = Calibration { scales: (0..=SIZES.len()).map(scale).collect() };
        let estimated: Vec<f64> =
            tried.iter().map(|pair| 1.0 + calibration.scales[bin(pair.size)].of_excess(pair.rough)).collect();
        let off = tried.iter().zip(&estimated).map(|(pair, estimated)| (estimated / (1.0 + pair.exact) - 1.0).abs());
        let (ours, theirs) =
            (Spread::of(estimated.clone()), Spread::of(tried.iter().map(|pair| 1.0 + pair.exact).collect()));
        let checked = |of: fn(&Spread) -> Option<f64>, interval: Option<(f64, f64)>| {
            let (estimated, exact) = (of(&ours), of(&theirs));
            let off = estimated.zip(exact).map(|(estimated, exact)| estimated / exact - 1.0);
            Checked { estimated, exact, interval, off }
        };
        let error = Error {
            p50: checked(|spread| spread.p50, theirs.interval.p50),
            p99: checked(|spread| spread.p99, theirs.interval.p99),
            fct: Spread::of(off.collect()),
            taught_by: taught.len(),
        };
        (calibration, error)
    }

    /// Applies it to the estimated times of flows. Those who waited for others begin when they did before.
    pub fn apply(&self, fluid: &Fluid, spans: &mut [Span]) {
        for (flow, span) in fluid.flows.iter().zip(spans).filter(|(_, span)| span.end != Time::MAX) {
            let ideal = flow.ideal.0.max(1) as f64;
            let excess = ((span.end - span.start).0 as f64 / ideal - 1.0).max(0.0);
            let excess = self.scales[bin(flow.size)].of_excess(excess);
            span.end = span.start.saturating_add(Time((ideal * (1.0 + excess)) as u64));
        }
    }
}
