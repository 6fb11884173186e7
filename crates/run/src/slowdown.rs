//! How long flows took, beside how long they would have taken alone.

use engine::Time;
use fabric::run::FlowRecord;

/// The time from a flow's start to `then`, if both came.
pub fn since(flow: &FlowRecord, then: Time) -> Option<u64> {
    // A run that ends early may end before a flow starts.
    (then != Time::MAX && flow.start <= then).then(|| (then - flow.start).0)
}

/// Time over ideal time; none for a flow whose sender left before it had sent everything.
fn over(flow: &FlowRecord, then: Time, ideal: Time) -> Option<f64> {
    let whole = flow.size == flow.spec.size && ideal > Time::ZERO;
    since(flow, then).filter(|_| whole).map(|time| time as f64 / ideal.0 as f64)
}

/// Slowdown at the receiver: time from start to the arrival of the last byte, over the same alone.
pub fn slowdown(flow: &FlowRecord) -> Option<f64> {
    over(flow, flow.received, flow.spec.ideal)
}

/// Slowdown at the sender, as SFC, BFC and HPCC have it: time from start to the acknowledgement of the last byte, over the same alone.
pub fn slowdown_acknowledged(flow: &FlowRecord) -> Option<f64> {
    over(flow, flow.acknowledged, flow.spec.ideal_acknowledged)
}

/// Whether a flow was part of a run until `end`, or waited for others to be, and did not come to `then`. One that is to leave need not.
pub fn unfinished(flow: &FlowRecord, then: Time, end: Time) -> bool {
    let waited = flow.start == Time::MAX;
    then == Time::MAX && flow.spec.until == Time::MAX && (waited || flow.start < end)
}

/// Size and slowdown of every flow among `flows` that has one; it is infinite for those that had not finished at `end`.
pub fn slowdowns<'a>(flows: impl Iterator<Item = &'a FlowRecord>, end: Time) -> Vec<(u64, f64)> {
    let open = |flow: &FlowRecord| unfinished(flow, flow.received, end).then_some(f64::INFINITY);
    flows.filter_map(|flow| Some((flow.size, slowdown(flow).or_else(|| open(flow))?))).collect()
}

/// The same to the acknowledgement, without sizes.
pub fn slowdowns_acknowledged<'a>(flows: impl Iterator<Item = &'a FlowRecord>, end: Time) -> Vec<f64> {
    let open = |flow: &FlowRecord| unfinished(flow, flow.acknowledged, end).then_some(f64::INFINITY);
    flows.filter_map(|flow| slowdown_acknowledged(flow).or_else(|| open(flow))).collect()
}
