//! Whether two runs are one.

use fabric::Outcome;

/// Everything that a result can show is the same.
pub fn assert_same(one: &Outcome, several: &Outcome, what: &str) {
    assert_eq!(one.end, several.end, "{what}");
    assert_eq!(one.counts, several.counts, "{what}");
    assert_eq!(one.finished, several.finished, "{what}");
    assert_eq!(one.flow_control, several.flow_control, "{what}");
    assert_eq!(one.histograms, several.histograms, "{what}");
    assert_eq!(one.congestion_control, several.congestion_control, "{what}");
    assert_eq!(one.transport, several.transport, "{what}");
    assert_eq!(one.samples, several.samples, "{what}");
    assert_eq!(one.series, several.series, "{what}");
    assert!(one.recording == several.recording, "{what}");
    assert!(one.flows == several.flows, "{what}");
    assert_eq!((&one.paused, &one.peak, &one.sent), (&several.paused, &several.peak, &several.sent), "{what}");
    assert_eq!((one.left, &one.stall), (several.left, &several.stall), "{what}");
    assert_eq!(one.violations, several.violations, "{what}");
}
