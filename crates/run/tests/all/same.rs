//! Whether two runs are one.

use fabric::Outcome;
use fabric::packet::flag;
use fabric::probe::Captured;

/// Everything that a result can show is the same.
pub fn assert_same(one: &Outcome, several: &Outcome, what: &str) {
    assert_eq!(one.end, several.end, "{what}");
    assert_eq!(one.counts, several.counts, "{what}");
    assert_eq!(one.finished, several.finished, "{what}");
    assert_eq!(one.flow_control, several.flow_control, "{what}");
    assert_eq!(one.histograms, several.histograms, "{what}");
    assert_eq!(one.congestion_control, several.congestion_control, "{what}");
    assert_eq!(one.transport, several.transport, "{what}");
    assert_eq!(one.switches, several.switches, "{what}");
    assert_eq!(one.samples, several.samples, "{what}");
    assert_eq!(one.series, several.series, "{what}");
    assert!(one.recording == several.recording, "{what}");
    assert!(one.flows == several.flows, "{what}");
    assert_eq!((&one.paused, &one.peak, &one.sent), (&several.paused, &several.peak, &several.sent), "{what}");
    assert_eq!((one.left, &one.stall), (several.left, &several.stall), "{what}");
    assert_eq!(one.violations, several.violations, "{what}");
    assert!(one.captured.iter().map(visible).eq(several.captured.iter().map(visible)), "{what}: what was captured");
}

/// What a capture shows of a packet.
fn visible(captured: &Captured) -> impl PartialEq {
    let Captured { time, port, packet: p, payload } = captured;
    // In a frame with a payload the flow says where that lies in memory.
    let flow = if p.flags & flag::PAYLOAD == 0 { p.flow } else { 0 };
    let header = (p.kind, flow, p.seq, p.stamp, p.size, p.flags, p.class, p.tag, p.dst, p.tuple);
    (*time, *port, header, payload.clone())
}
