//! From evidence to a verdict.

use crate::evidence::Evidence;
use crate::experiment::{Expectation, Experiment, Scale};
use results::verdict::{Holds, Judged, Overall, Range, Verdict};
use std::collections::BTreeSet;

/// Judges an experiment by the evidence.
pub fn judge(experiment: &Experiment, scale: Scale, evidence: &Evidence<'_>) -> Verdict {
    let meant = experiment.expectations.iter().filter(|expect| expect.scale.is_none_or(|only| only == scale));
    let expectations: Vec<Judged> = meant.map(|expect| judged(experiment, expect, evidence)).collect();
    let needs: BTreeSet<String> = expectations.iter().flat_map(|judged| judged.needs.iter().cloned()).collect();
    Verdict {
        tailwater: env!("CARGO_PKG_VERSION"),
        id: experiment.id.clone(),
        document: format!("{}, {}", experiment.document, experiment.place),
        title: experiment.title.clone(),
        says: experiment.says.clone(),
        reading: experiment.reading.clone(),
        scale: scale.name(),
        seeds: evidence.seeds(),
        runs: evidence.runs(),
        verdict: overall(&expectations),
        needs: needs.into_iter().collect(),
        expectations,
    }
}

impl Expectation {
    fn judge(&self, value: f64) -> Holds {
        if self.range.is_open() {
            return Holds::Asked;
        }
        match self.partly {
            _ if self.range.holds(value) => Holds::Yes,
            // A side that "partly" does not speak of stays as it is.
            Some(partly) => {
                let wider = Range {
                    at_least: partly.at_least.or(self.range.at_least),
                    at_most: partly.at_most.or(self.range.at_most),
                };
                if wider.holds(value) { Holds::Partly } else { Holds::No }
            }
            None => Holds::No,
        }
    }
}

fn judged(experiment: &Experiment, expect: &Expectation, evidence: &Evidence<'_>) -> Judged {
    let needs: BTreeSet<String> =
        evidence.variants_of(expect).iter().flat_map(|variant| experiment.missing(variant)).collect();
    let mut judged = Judged {
        paper: expect.paper.clone(),
        expression: expect.text.clone(),
        value: None,
        interval: None,
        unit: expect.unit.clone(),
        at_least: expect.range.at_least,
        at_most: expect.range.at_most,
        partly: expect.partly,
        band: expect.band.clone(),
        holds: Holds::Untold,
        certain: None,
        why: None,
        needs: needs.into_iter().collect(),
    };
    if !judged.needs.is_empty() {
        judged.why = Some(format!("needs {} (not there yet)", judged.needs.join(", ")));
        return judged;
    }
    match evidence.expected(expect) {
        Ok(measured) => {
            judged.holds = expect.judge(measured.value);
            judged.value = Some(measured.value);
            judged.interval = measured.interval;
            judged.certain = measured
                .interval
                .filter(|_| judged.holds != Holds::Asked)
                .map(|(low, high)| expect.judge(low) == judged.holds && expect.judge(high) == judged.holds);
        }
        Err(why) => judged.why = Some(why),
    }
    judged
}

fn overall(expectations: &[Judged]) -> Overall {
    let any = |holds: Holds| expectations.iter().any(|judged| judged.holds == holds);
    if expectations.iter().any(|judged| !judged.needs.is_empty()) {
        return Overall::Needs;
    }
    match (any(Holds::Yes), any(Holds::Partly), any(Holds::No), any(Holds::Untold)) {
        (false, false, false, true) => Overall::NotRun,
        (false, false, false, false) if any(Holds::Asked) => Overall::Measured,
        (false, false, false, false) => Overall::NotRun,
        (true, false, false, false) => Overall::Holds,
        (false, false, true, _) => Overall::Fails,
        _ => Overall::InPart,
    }
}
