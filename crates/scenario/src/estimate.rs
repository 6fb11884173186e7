//! Whether a run is simulated or estimated: the table `[estimate]`, and what cannot be estimated.

use crate::Scenario;
use crate::declared::Section;
use engine::Time;
use fabric::Setup;
use fabric::axes::flow_control::Layout;
use fabric::deadlock::Waits;
use fabric::routing::Rule;
use files::problem::Problem;
use std::sync::LazyLock;

engine::choice! {
    /// How completion times come about.
    pub enum Method {
        /// Packet by packet: exact.
        None = "none",
        /// All links shared fairly at once.
        MaxMin = "max-min",
        /// Link by link, each alone; what flows lose adds up.
        Links = "links",
    }
}

engine::parameters! {
    /// Settings of an estimate: the table `[estimate]`.
    pub struct EstimateSettings {
        /// Estimate completion times instead of simulating packets: in seconds, and with an error that is measured and stated. None: simulate.
        method: Method = Method::None,
        /// The share of the time in which flows begin that is simulated all the same: its first half teaches what the scheme makes of competition, on its
        /// second half the error is measured. Zero: nothing is known of the error.
        calibrate: f64 = 0.1, in 0.0..=1.0,
    }
}

/// `[estimate]`.
pub(crate) static ESTIMATE: LazyLock<Section> = LazyLock::new(|| {
    Section::of("estimate", "Whether to estimate instead of simulating.", &EstimateSettings::default())
});

/// The fewest flows in the part that is simulated.
const FEWEST: usize = 200;

impl EstimateSettings {
    /// How many of the flows, which are in order of start, are simulated.
    pub fn simulated(&self, setup: &Setup) -> usize {
        let (first, last) = (setup.flows.first(), setup.flows.last());
        let (Some(first), Some(last)) = (first, last) else { return 0 };
        if self.calibrate == 0.0 {
            return 0;
        }
        let span = (last.start - first.start).0 as f64 * self.calibrate;
        let end = first.start.saturating_add(Time(span as u64));
        setup.flows.partition_point(|flow| flow.start <= end)
    }
}

/// Refuses what no estimate knows anything of, all of it at once.
pub(crate) fn check(scenario: &Scenario, layout: &Layout, setup: &Setup) -> Result<(), Problem> {
    let settings = &scenario.estimate;
    if settings.method == Method::None {
        return Ok(());
    }
    let mut wrong = Vec::new();
    let mut refuse = |key: &str, message: String, help: &str| wrong.push(scenario.problem(key, message).help(help));
    const SIMULATE: &str = "or leave [estimate] out";
    let (choices, method) = (&scenario.choices, settings.method.word());
    let balancing = &choices.load_balancing;
    if !balancing.by_rule() || balancing.rule() == Rule::ByPacket {
        let message = format!("{} chooses paths while packets flow: an estimate does not know them", balancing.name());
        refuse("scheme.load_balancing", message, &format!("choose ecmp or d-mod-k, {SIMULATE}"));
    }
    if scenario.graph.fallible() {
        let message = "links that fail or lose packets cannot be estimated".to_string();
        refuse("link", message, &format!("remove the faults, {SIMULATE}"));
    } else if scenario.graph.repeats() {
        let message = "what links repeat cannot be estimated".to_string();
        refuse("links.retry", message, &format!("leave out retry, {SIMULATE}"));
    }
    if !scenario.slow.is_empty() {
        refuse("slow", "slow receivers cannot be estimated".into(), &format!("remove [[slow]], {SIMULATE}"));
    }
    let watched = !scenario.watch.ports.is_empty() || !scenario.watch.groups.is_empty();
    for (key, asked) in [
        ("measure.why", scenario.measure.why),
        ("measure.capture", !scenario.watch.capture.is_empty()),
        ("measure", watched),
    ] {
        if asked {
            let message = "an estimate has no packets that could be followed".to_string();
            refuse(key, message, &format!("leave that out, {SIMULATE}"));
        }
    }
    let waiting = !setup.after.is_empty();
    let leaving = setup.flows.iter().any(|flow| flow.until != Time::MAX);
    if settings.method == Method::Links && (waiting || leaving) {
        let message = "flows that wait for others, or leave, cannot be estimated link by link".to_string();
        refuse("estimate.method", message, &format!("write method = \"max-min\", {SIMULATE}"));
    }
    if settings.calibrate > 0.0 && (waiting || leaving) {
        let message = "flows that wait for others, or leave, have no part that could be simulated alone".to_string();
        refuse("estimate.calibrate", message, &format!("write calibrate = 0, {SIMULATE}"));
    }
    let couples = !matches!(choices.flow_control.waits(setup), Waits::Never(_));
    // Queues that only backpressure ends grow for longer than a part of the run shows, and with them what is stated of the error would be wrong.
    if couples && choices.congestion_control.name() == "none" && layout.queues.is_none() {
        let message = format!(
            "with {} and no congestion control nothing but backpressure slows senders down: neither method can be calibrated for that",
            choices.flow_control.name()
        );
        refuse("estimate.method", message, &format!("choose a congestion control, {SIMULATE}"));
    } else if couples && settings.calibrate == 0.0 {
        let message = format!(
            "{} stops neighbours, so that a full link slows others down: {method} knows nothing of that unless it is calibrated",
            choices.flow_control.name()
        );
        refuse("estimate.calibrate", message, &format!("write calibrate = 0.1, or another share, {SIMULATE}"));
    }
    let simulated = settings.simulated(setup);
    if settings.calibrate > 0.0 && !waiting && !leaving && simulated < FEWEST {
        let message = format!("{simulated} flows are too few to calibrate with; {FEWEST} is the least");
        refuse("estimate.calibrate", message, &format!("write a larger share, have more flows, {SIMULATE}"));
    }
    Problem::all(wrong).map_or(Ok(()), Err)
}
