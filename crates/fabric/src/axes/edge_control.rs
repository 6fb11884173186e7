//! What a sender does on top of its congestion control.

use super::{CongestionControlDef, Definition};

/// A mechanism around any congestion control.
pub trait EdgeControlDef: Definition {
    /// The congestion control with it on top.
    fn over(&self, inner: Box<dyn CongestionControlDef>) -> Box<dyn CongestionControlDef>;
}
