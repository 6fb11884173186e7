//! Completion times of flows without packets: in seconds what a run takes minutes for, and not exact.
//!
//! Both methods take the flows and the paths that a run would have ([`fluid`]) and let rates flow instead of packets. [`max_min`] shares all
//! links fairly at once; [`links`] takes the fabric apart and looks at each link alone. Neither knows a scheme: what a scheme makes of the
//! same competition is learnt from an exact run of a part of the flows ([`calibration`]), and how far that is off is measured on others.

pub mod calibration;
pub mod fluid;
pub mod links;
pub mod max_min;
pub mod skip;
pub mod streams;

pub use calibration::{Checked, Error};

use crate::calibration::Calibration;
use crate::fluid::Fluid;
use engine::Time;
use fabric::Outcome;
use fabric::axes::flow_control::Report;
use fabric::id::FlowId;
use fabric::run::FlowRecord;
use scenario::estimate::Method;
use scenario::resolve::Resolved;
use serde::Serialize;

/// The digest of the code that can change a result.
pub const CODE: &str = env!("TAILWATER_CODE");

/// What was estimated, beside the flows: how, and how far off it is.
#[derive(Clone, Debug, Serialize)]
pub struct About {
    /// The method's name.
    pub method: &'static str,
    /// The share of the flows' time that was run exactly; zero where nothing was.
    pub calibrated_on: f64,
    /// What came of it; none where nothing was run exactly, and so nothing is known of the error.
    pub error: Option<Error>,
}

impl About {
    /// In a sentence, for people.
    pub fn sentence(&self) -> String {
        let share = |share: f64| format!("{:.1} %", 100.0 * share);
        let Some(error) = &self.error else {
            return format!("estimated by {}, not simulated, and not calibrated: the error is not known", self.method);
        };
        let interval = |(low, high): (f64, f64)| format!(" ({} to {})", share(low), share(high));
        let fct = error.fct.p50.map_or("not known".into(), |median| {
            share(median) + &error.fct.interval.p50.map_or(String::new(), interval)
        });
        let p99 = error.p99.off.map_or("not known".into(), |off| {
            let sign = if off < 0.0 { "-" } else { "+" };
            format!("{sign}{}", share(off.abs()))
        });
        format!(
            "estimated by {}, not simulated: on {} flows that were run exactly too, half of the completion times are within {fct}, \
             and p99 slowdown is off by {p99}",
            self.method, error.fct.count
        )
    }
}

/// Flows with the times that are estimated, and how far these are off.
pub struct Estimate {
    /// What a run would give, as far as it is known: the flows, and when the last is done.
    pub outcome: Outcome,
    /// How it came about.
    pub about: About,
}

/// Estimates a run. `report` hears of the exact part, and ends it by returning false.
pub fn estimate(resolved: &Resolved, report: &mut Report<'_>) -> Estimate {
    let (method, share) = (resolved.estimate.method, resolved.estimate.calibrate);
    let setup = &resolved.setup;
    let fluid = Fluid::new(setup, setup.flows.len());
    let mut times = completion(method, &fluid);
    let (mut error, mut interrupted) = (None, false);
    let simulated = resolved.estimate.simulated(setup);
    if simulated > 0 {
        let exact = resolved.simulate_first(simulated, report);
        interrupted = exact.interrupted;
        let rough = completion(method, &Fluid::new(setup, simulated));
        let (calibration, checked) = Calibration::fit(&exact.flows, &rough);
        error = Some(checked);
        calibration.apply(&fluid, &mut times);
    }
    let about = About { method: method.word(), calibrated_on: share, error };
    Estimate { outcome: outcome(resolved, &times, interrupted), about }
}

/// When flows begin and are received, by one of the methods.
fn completion(method: Method, fluid: &Fluid) -> Vec<Span> {
    match method {
        Method::MaxMin => max_min::completion(fluid),
        _ => links::completion(fluid),
    }
}

/// When a flow begins, and when its last byte is received: [`Time::MAX`] for what never happens. In picoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// It is handed to its NIC.
    pub start: Time,
    /// All of it is there.
    pub end: Time,
}

/// What is known of a run of which only the flows are.
fn outcome(resolved: &Resolved, times: &[Span], interrupted: bool) -> Outcome {
    let stop = resolved.setup.stop;
    let record = |(spec, span): (&fabric::setup::FlowSpec, &Span)| {
        let there = |time: Time| if time < stop { time } else { Time::MAX };
        let received = there(span.end);
        let back = spec.ideal_acknowledged.saturating_sub(spec.ideal);
        let done = received != Time::MAX;
        FlowRecord {
            spec: *spec,
            delivered: if done { spec.size } else { 0 },
            start: there(span.start),
            size: spec.size,
            injected: Time::MAX,
            received,
            acknowledged: if done { there(received.saturating_add(back)) } else { Time::MAX },
            held: Time::ZERO,
            paused: Time::ZERO,
        }
    };
    let flows: Vec<FlowRecord> = resolved.setup.flows.iter().zip(times).map(record).collect();
    let mut finished: Vec<FlowId> = (0..flows.len() as u32).map(FlowId).collect();
    finished.retain(|flow| flows[flow.index()].acknowledged != Time::MAX);
    finished.sort_by_key(|flow| (flows[flow.index()].acknowledged, flow.0));
    let last = finished.last().map(|flow| flows[flow.index()].acknowledged);
    let end = if finished.len() < flows.len() && stop != Time::MAX { stop } else { last.unwrap_or_default() };
    Outcome { interrupted, ..Outcome::of_flows(&resolved.setup.graph, end, flows, finished) }
}

#[cfg(test)]
mod tests;

/// Tests find the schemes that come with the program.
#[cfg(test)]
#[ctor::ctor]
#[allow(unsafe_code)]
fn install() {
    schemes::install();
}
