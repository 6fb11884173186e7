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

#[cfg(test)]
mod tests {
    use crate::congestion_control::bolt;
    use fabric::axes::{CongestionControlDef, EdgeControlDef};

    #[test]
    fn what_is_around_hides_nothing_of_what_is_inside() {
        let inside = || -> Box<dyn CongestionControlDef> { Box::new(bolt::Params::default()) };
        let around: [&dyn EdgeControlDef; 2] = [&super::onramp::Params::default(), &super::rccc::Params::default()];
        for def in around {
            let (over, inside) = (def.over(inside()), inside());
            assert!(inside.needs_size() && over.needs_size(), "{}", def.name());
            assert_eq!(over.name(), inside.name());
            assert_eq!(over.control_packet(), inside.control_packet());
            assert_eq!(over.switch_half().is_some(), inside.switch_half().is_some());
            assert!(over.header().0 >= inside.header().0);
        }
    }
}
