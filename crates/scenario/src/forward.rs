//! Whether what is steady may be skipped: the table `[fast_forward]`, and what cannot be.

use crate::Scenario;
use crate::declared::Section;
use crate::estimate::Method;
use fabric::axes::Definition;
use fabric::setup::{Lines, Setup};
use files::problem::Problem;
use std::collections::HashSet;
use std::sync::LazyLock;

engine::parameters! {
    /// Settings of fast-forward: the table `[fast_forward]`.
    pub struct ForwardSettings {
        /// Skip what is steady, as long as the error that is measured stays within this share: half of the completion times within
        /// it, and 99 % within three times as much. A run whose error is larger is done again, exactly. Zero: nothing is skipped.
        within: f64 = 0.0, in 0.0..=0.5,
    }
}

/// `[fast_forward]`.
pub(crate) static FAST_FORWARD: LazyLock<Section> =
    LazyLock::new(|| Section::of("fast_forward", "Whether to skip what is steady.", &ForwardSettings::default()));

impl ForwardSettings {
    /// The share, if anything may be skipped.
    pub(crate) fn share(&self) -> Option<f64> {
        (self.within > 0.0).then_some(self.within)
    }
}

/// Whether a message may have to wait in its NIC's line for another.
fn waits_in_line(setup: &Setup) -> bool {
    let mut seen = HashSet::new();
    setup.nic.lines != Lines::Flow && !setup.flows.iter().all(|flow| seen.insert((flow.src, flow.dst, flow.class)))
}

/// Whether what repeats, or is steady, may be skipped where packets are simulated: everything says what it keeps, and no flow begins a little sooner or later by it and meets
/// others then.
pub(crate) fn repeats(scenario: &Scenario, setup: &Setup) -> bool {
    let choices = &scenario.choices;
    setup.after.is_empty() && choices.congestion_control.build().known().is_some() && choices.flow_control.soon_over()
}

/// Refuses what cannot be skipped, all of it at once.
pub(crate) fn check(scenario: &Scenario, setup: &Setup) -> Result<(), Problem> {
    if scenario.forward.share().is_none() {
        return Ok(());
    }
    let mut wrong = Vec::new();
    let mut refuse = |key: &str, message: String, help: &str| {
        let help = format!("{help}, or simulate all of it: leave --within and [fast_forward] out");
        wrong.push(scenario.problem(key, message).help(help));
    };
    if scenario.estimate.method != Method::None {
        refuse("fast_forward.within", "an estimate has nothing that could be skipped".into(), "leave [estimate] out");
    }
    if waits_in_line(setup) {
        let message = "messages that wait in line begin when another has been sent, a little sooner or later where something was skipped, and may meet others then: no check sees what becomes of that"
            .to_string();
        refuse("nic.queues", message, "write queues = \"flow\" in [nic]");
    }
    if scenario.graph.fallible() {
        let message = "with links that fail or lose packets nothing is skipped: what follows a loss is never the same"
            .to_string();
        refuse("link", message, "remove the faults");
    } else if scenario.graph.repeats() {
        let message = "links that repeat frames have their own clocks, and are not skipped".to_string();
        refuse("links.retry", message, "leave out retry");
    }
    if !scenario.slow.is_empty() {
        let message = "slow receivers come and go by the clock, and cannot be skipped".to_string();
        refuse("slow", message, "remove [[slow]]");
    }
    let watched = !scenario.watch.ports.is_empty() || !scenario.watch.groups.is_empty();
    for (key, asked, what) in [
        ("measure.why", scenario.measure.why, "why flows are slow is asked packet by packet"),
        ("measure.capture", !scenario.watch.capture.is_empty(), "packets that are skipped cannot be captured"),
        ("measure", watched, "ports and flows that are followed have no values where time is skipped"),
    ] {
        if asked {
            refuse(key, what.to_string(), "leave that out");
        }
    }
    let choices = &scenario.choices;
    let all: [(&str, &dyn Definition); 3] = [
        ("scheme.congestion_control", &*choices.congestion_control),
        ("scheme.transport", &*choices.transport),
        ("switch.scheduler", &*choices.queueing),
    ];
    for (key, definition) in all {
        if definition.needs_size() {
            let message = format!(
                "{} looks at how long flows are, and a jump makes them shorter while they are under way",
                definition.name()
            );
            refuse(key, message, "choose another");
        }
    }
    Problem::all(wrong).map_or(Ok(()), Err)
}
