//! What a run skipped, and how far off its result is by that.

use engine::Time;
use estimate::skip::Skipped;
use fabric::Outcome;
use fabric::run::FlowRecord;
use fabric::run::forward::Forwarded;
use results::measure::{Spread, percentile};
use serde::Serialize;

/// What is known of the error.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Error {
    /// Of completion times, of flows that were skipped in part: of every jump |before − after| / 2, relative to the mean of the two, for as long as it was; all of the jump
    /// if it could not be checked. None makes up for another.
    pub fct: Spread,
    /// Of the throughput of all flows, by jump that is not exact.
    pub throughput: Spread,
}

/// What was skipped.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FastForward {
    /// The error that was asked for.
    pub within: f64,
    /// Whether the error turned out to be larger, and all was simulated again. What follows is of the attempt.
    pub fell_back: bool,
    /// How often something was skipped.
    pub jumps: u64,
    /// The share of the time with flows under way that was skipped.
    pub skipped: f64,
    /// The same of what was skipped exactly, because the state of everything had come again.
    pub repeated: f64,
    /// The same of what was skipped and could not be checked.
    pub unchecked: f64,
    /// Flows that began while others were under way of which something was estimated: their completion times are measured as in any run, but a small difference in when they begin may be
    /// a larger one in whom they meet, and that is not in the error.
    pub followers: u64,
    /// Windows that were simulated beside flows that were streams; left out where packets were simulated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub streams: Option<Streams>,
    /// What was measured.
    pub error: Error,
}

/// By what streams were checked.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Streams {
    /// Windows of the run that were simulated packet by packet.
    pub windows: usize,
    /// The share of the run's time that these are.
    pub simulated: f64,
    /// Flows in them whose progress was compared.
    pub flows: usize,
    /// The error of the instant at which the last flow ends.
    pub end: f64,
}

impl FastForward {
    /// Of a run that may skip.
    pub fn of(outcome: &Outcome) -> Option<FastForward> {
        let about: &Forwarded = outcome.forwarded.as_ref()?;
        let all = busy(outcome).0.max(1) as f64;
        let share = |time: Time| time.0 as f64 / all;
        Some(FastForward {
            within: about.within,
            fell_back: false,
            jumps: about.jumps,
            skipped: share(about.skipped),
            repeated: share(about.repeated),
            unchecked: share(about.unchecked),
            followers: about.followers,
            streams: None,
            error: Error { fct: Spread::of(about.fct.clone()), throughput: Spread::of(about.throughput.clone()) },
        })
    }

    /// Of a run whose flows were streams.
    pub fn of_streams(within: f64, skipped: &Skipped) -> FastForward {
        let Skipped { windows, simulated, checked, end, .. } = *skipped;
        FastForward {
            within,
            fell_back: false,
            jumps: 1,
            skipped: (1.0 - simulated).max(0.0),
            repeated: 0.0,
            unchecked: skipped.unknown,
            followers: 0,
            streams: Some(Streams { windows, simulated, flows: checked, end }),
            error: Error { fct: Spread::of(skipped.fct.clone()), throughput: Spread::of(vec![skipped.throughput]) },
        }
    }

    /// Of a run in which there was nothing to skip.
    pub fn nothing(within: f64) -> FastForward {
        FastForward {
            within,
            fell_back: false,
            jumps: 0,
            skipped: 0.0,
            repeated: 0.0,
            unchecked: 0.0,
            followers: 0,
            streams: None,
            error: Error { fct: Spread::of(Vec::new()), throughput: Spread::of(Vec::new()) },
        }
    }

    /// Whether nothing is known but when flows begin and end.
    pub fn flows_alone(&self) -> bool {
        self.streams.is_some() && !self.fell_back
    }

    /// Whether what streams say may be off by more than was asked for.
    pub fn streams_exceed(&self) -> bool {
        let Some(streams) = &self.streams else { return false };
        let fct = &self.error.fct;
        let off = |share: Option<f64>| share.unwrap_or(f64::INFINITY);
        self.unchecked > self.within
            || off(fct.p50) > self.within
            || off(fct.p99) > 3.0 * self.within
            || streams.end > self.within
    }

    /// Whether all that was skipped is as if it had been simulated.
    pub fn exact(&self) -> bool {
        self.repeated >= self.skipped
    }

    /// Whether the error is more than was asked for, or not known of more than that share of the time.
    pub fn exceeds(&self, outcome: &Outcome) -> bool {
        let Some(about) = &outcome.forwarded else { return false };
        let mut fct = about.fct.clone();
        fct.sort_by(f64::total_cmp);
        let off = |share: f64| if fct.is_empty() { 0.0 } else { percentile(&fct, share) };
        // What could not be checked may be off by anything.
        self.unchecked > self.within || self.followers > 0 || off(0.5) > self.within || off(0.99) > 3.0 * self.within
    }

    /// In a sentence, for people.
    pub fn sentence(&self) -> String {
        let share = |share: f64| format!("{:.2} %", 100.0 * share);
        let asked = format!("fast-forward within {} %", 100.0 * self.within);
        if self.jumps == 0 {
            return format!("{asked}: nothing was steady, so that nothing was skipped: exact");
        }
        let skipped =
            format!("{} of the time with flows under way was skipped in {} jumps", share(self.skipped), self.jumps);
        if self.exact() && !self.fell_back {
            return format!(
                "{asked}: {skipped}, all of it where everything repeats: flows end exactly when they would"
            );
        }
        let off = |spread: &Spread| match (spread.p50, spread.p99) {
            (Some(half), Some(most)) => format!("{} (half of them) and {} (99 % of them)", share(half), share(most)),
            _ => "an unknown share".into(),
        };
        let fct = off(&self.error.fct);
        let followers = match self.followers {
            0 => String::new(),
            flows => format!("; what {flows} flows make of it that began meanwhile is not in that"),
        };
        if self.fell_back {
            let unchecked = share(self.unchecked);
            return format!(
                "{asked}: completion times may have been off by {fct}, and {unchecked} of the time could not be checked{followers}, so that all was simulated again: exact"
            );
        }
        if let Some(Streams { windows, simulated, flows, end }) = &self.streams {
            return format!(
                "{asked}: flows were streams, not packets, and only when they begin and end is known. {windows} windows, {} of the time, were simulated beside. By {flows} flows in them, an estimate and no bound, \
                 completion times are off by {fct}, and the end by {}",
                share(*simulated),
                share(*end),
            );
        }
        let some = |value: f64, what: &str| if value > 0.0 { format!("{}{what}", share(value)) } else { String::new() };
        let unchecked = some(self.unchecked, " could not be checked");
        let repeated = some(self.repeated, " exactly, where everything repeats");
        let repeated = if repeated.is_empty() { repeated } else { format!(", {repeated}") };
        let unchecked = if unchecked.is_empty() { unchecked } else { format!("; {unchecked}") };
        let throughput =
            self.error.throughput.p50.map_or(String::new(), |half| format!(", throughput by {}", share(half)));
        format!(
            "{asked}: not all of it was simulated. {skipped}{repeated}{unchecked}. By what was simulated, an estimate and no bound, completion times of {} flows are off by {fct}{throughput}{followers}",
            self.error.fct.count,
        )
    }
}

/// For how long flows were under way.
fn busy(outcome: &Outcome) -> Time {
    let stage = |flow: &FlowRecord| (flow.start, flow.acknowledged.min(outcome.end));
    let mut flows: Vec<(Time, Time)> = outcome.flows.iter().map(stage).filter(|(from, to)| from < to).collect();
    flows.sort_unstable();
    let (mut sum, mut until) = (Time::ZERO, Time::ZERO);
    for (from, to) in flows {
        sum += to.saturating_sub(from.max(until));
        until = until.max(to);
    }
    sum
}
