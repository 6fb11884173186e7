//! From evidence to a verdict.

use crate::evidence::{Evidence, Measured};
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
        seeds: evidence.seeds().len(),
        runs: evidence.runs(),
        verdict: overall(&expectations),
        needs: needs.into_iter().collect(),
        expectations,
    }
}

/// What is said of a value in `range`, and `partly` further out. It counts where the value may lie: a single seed cannot show that
/// something holds.
pub(crate) fn holds(range: Range, partly: Option<Range>, measured: &Measured) -> Holds {
    if range.is_open() {
        return Holds::Asked;
    }
    let (wider, exact) = (range.widened(partly), measured.seeds == 0);
    let interval = measured.interval.unwrap_or((measured.value, measured.value));
    if !wider.holds_any(interval) {
        Holds::No
    } else if range.holds_all(interval) && (exact || measured.interval.is_some()) {
        Holds::Yes
    } else if wider.holds_all(interval) {
        Holds::Partly
    } else {
        Holds::CannotTell
    }
}

fn judged(experiment: &Experiment, expect: &Expectation, evidence: &Evidence<'_>) -> Judged {
    let needs: BTreeSet<String> =
        evidence.variants_of(expect).iter().flat_map(|variant| experiment.missing(variant)).collect();
    let mut judged = unjudged(expect, needs.into_iter().collect());
    if judged.needs.is_empty() {
        match evidence.expected(expect) {
            Ok(measured) => tell(&mut judged, &measured),
            Err(why) => judged.why = Some(why),
        }
    }
    judged
}

/// An expectation of which nothing is known but what it needs that is not there.
pub(crate) fn unjudged(expect: &Expectation, needs: Vec<String>) -> Judged {
    Judged {
        paper: expect.paper.clone(),
        expression: expect.text.clone(),
        value: None,
        interval: None,
        samples: None,
        few_samples: false,
        unit: expect.unit.clone(),
        at_least: expect.range.at_least,
        at_most: expect.range.at_most,
        partly: expect.partly,
        band: expect.band.clone(),
        holds: Holds::Untold,
        why: (!needs.is_empty()).then(|| format!("needs {} (not there yet)", needs.join(", "))),
        needs,
    }
}

/// Judges an expectation by what was measured.
pub(crate) fn tell(judged: &mut Judged, measured: &Measured) {
    let range = judged.range();
    judged.holds = holds(range, judged.partly, measured);
    (judged.value, judged.interval) = (Some(measured.value), measured.interval);
    (judged.samples, judged.few_samples) = (measured.samples, measured.few);
    let reaches = measured.interval.is_some_and(|interval| range.holds_any(interval));
    judged.why = match (judged.holds, measured.interval) {
        (Holds::Partly, _) if !range.holds(measured.value) => None,
        (Holds::Partly, Some(_)) => Some("the interval reaches beyond the range".into()),
        (Holds::Partly, None) => Some("in the range, with no interval to be sure".into()),
        (Holds::CannotTell, _) if reaches => Some("the interval has values that hold and values that do not".into()),
        (Holds::CannotTell, _) => Some("the interval has values that hold partly and values that do not".into()),
        _ => None,
    };
}

/// The verdict on all expectations. Questions do not count.
pub(crate) fn overall(expectations: &[Judged]) -> Overall {
    if expectations.iter().any(|judged| !judged.needs.is_empty()) {
        return Overall::Needs;
    }
    let claims = || expectations.iter().filter(|judged| judged.holds != Holds::Asked);
    let count = |holds: Holds| claims().filter(|judged| judged.holds == holds).count();
    let (all, held, partly) = (claims().count(), count(Holds::Yes), count(Holds::Partly));
    // With more seeds or data these could hold: there are none, or the interval has values in the range.
    let open = |judged: &&Judged| match judged.holds {
        Holds::Untold => true,
        Holds::CannotTell | Holds::Partly => {
            let interval = judged.interval.or(judged.value.map(|value| (value, value)));
            interval.is_some_and(|interval| judged.range().holds_any(interval))
        }
        _ => false,
    };
    let open = claims().filter(open).count();
    let possible = all - count(Holds::No);
    match () {
        () if all == 0 && !expectations.is_empty() => Overall::Measured,
        () if count(Holds::Untold) == all => Overall::NotRun,
        () if held == all => Overall::Holds,
        () if held > 0 && 2 * (held + partly) >= all => Overall::InPart,
        () if held + open > 0 && 2 * possible >= all => Overall::CannotTell,
        () => Overall::Fails,
    }
}
