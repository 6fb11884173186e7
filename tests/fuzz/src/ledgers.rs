//! What the ledger reads.

use crate::{has_a_place, install, parts};
use ledger::experiment::{Experiment, Scale};
use ledger::expression::{Bindings, Expression, Label, Scope, Step, matches, size_range, time_range};
use ledger::published::Published;
use scenario::document::Document;
use std::sync::LazyLock;

/// An experiment, and the scenario of its first runs.
pub fn experiment(bytes: &[u8]) {
    install();
    let Some([text]) = parts(bytes) else { return };
    let experiment = match Experiment::read("a.toml", text, &ledger::text) {
        Ok(experiment) => experiment,
        Err(problem) => return has_a_place(&problem, &[("a.toml", text)]),
    };
    for scale in [Scale::Quick, Scale::Paper] {
        let cells = experiment.cells(scale);
        assert!(experiment.seeds(scale) > 0);
        if let Err(problem) = experiment.digest(scale) {
            has_a_place(&problem, &[]);
        }
        for cell in cells.iter().take(2) {
            assert!(!cell.name().is_empty());
            _ = experiment.missing(&cell.variant);
            let scenario = experiment.scenario.as_deref().expect("what has runs has a scenario");
            let mut document = Document::parse("b.toml", scenario).unwrap_or_else(|problem| panic!("{problem}"));
            // What the scenario makes of them is another target's.
            if let Err(problem) = cell.sets.iter().try_for_each(|set| document.set(set)) {
                has_a_place(&problem, &[]);
            }
        }
        let scope = experiment.scope(Some(scale));
        for expectation in &experiment.expectations {
            assert!(expectation.value.bounds().0 <= expectation.value.bounds().1);
            _ = expectation.value.probes(&scope, &Bindings::new());
        }
    }
    _ = experiment.needs();
}

static SCOPE: LazyLock<Scope> = LazyLock::new(|| Scope {
    variants: vec!["A".into(), "B".into()],
    labels: vec![Label {
        name: "rate".into(),
        values: vec![Step::new("10Gbps", 0), Step::new("100Gbps", 1)],
        variants: Some(vec!["A".into()]),
    }],
    groups: vec!["background".into(), "incast".into()],
    bins: vec![Step::new("..1KB", 0), Step::new("1KB..", 1)],
});

/// An expression, as a value and as a quantity, and what patterns and ranges are made of.
pub fn expression(bytes: &[u8]) {
    let Some([text, other]) = parts(bytes) else { return };
    let length = text.chars().count();
    for read in [Expression::parse(text), Expression::parse_quantity(text).map(|(_, expression)| expression)] {
        match read {
            Err(fault) => {
                assert!(!fault.message.is_empty() && !fault.help.is_empty(), "{fault:?}");
                assert!(fault.at <= length, "{fault:?}");
            }
            Ok(expression) => {
                match expression.check(&SCOPE, &[]) {
                    Err(fault) => assert!(fault.at <= length, "{fault:?}"),
                    Ok(()) => _ = expression.probes(&SCOPE, &Bindings::new()),
                }
                let (low, high) = expression.bounds();
                assert!(low <= high, "{low} to {high}");
                if let Some(value) = expression.constant() {
                    assert!(value.is_nan() || (low..=high).contains(&value), "{value} is not from {low} to {high}");
                }
            }
        }
    }
    _ = matches(text, other);
    for (low, high) in [size_range(text).ok(), time_range(text).ok()].into_iter().flatten() {
        assert!(low <= high, "{low} to {high}");
    }
}

/// A published result, written and read back.
pub fn published(bytes: &[u8]) {
    install();
    let Some([text]) = parts(bytes) else { return };
    match Published::read("a.json", text) {
        Err(problem) => has_a_place(&problem, &[("a.json", text)]),
        Ok(published) => {
            assert!(!published.line().is_empty());
            for judged in &published.expectations {
                _ = (judged.measured(), judged.expected(), judged.few());
            }
            _ = published.stale(&[]);
            let written = serde_json::to_string(&published).expect("text");
            let again = Published::read("b.json", &written).unwrap_or_else(|problem| panic!("{problem}\n{written}"));
            assert_eq!(serde_json::to_string(&again).expect("text"), written);
        }
    }
}
