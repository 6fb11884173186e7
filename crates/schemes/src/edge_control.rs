//! What a sender does on top of its congestion control: one file per mechanism.

use fabric::axes::registry::Axis;
use fabric::axes::{CongestionControlDef, Definition, EdgeControlDef};

pub mod onramp;
pub mod rccc;

/// Every mechanism, nothing first.
pub(crate) fn list(axis: &mut Axis<dyn EdgeControlDef>) {
    axis.add(|| Box::new(None::default()))
        .add(|| Box::new(onramp::Params::default()))
        .add(|| Box::new(rccc::Params::default()));
}

engine::parameters! {
    /// Nothing on top.
    pub struct None {}
}

impl Definition for None {
    fn name(&self) -> &'static str {
        "none"
    }
    fn about(&self) -> &'static str {
        "Senders do what their congestion control says."
    }
}

impl EdgeControlDef for None {
    fn over(&self, inner: Box<dyn CongestionControlDef>) -> Box<dyn CongestionControlDef> {
        inner
    }
}
