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

/// Size and slowdown of every finished flow among `flows`.
pub fn slowdowns<'a>(flows: impl Iterator<Item = &'a FlowRecord>) -> Vec<(u64, f64)> {
    flows.filter_map(|flow| Some((flow.size, slowdown(flow)?))).collect()
}
