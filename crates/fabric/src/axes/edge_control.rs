//! What a sender does on top of its congestion control.

use super::{Chosen, CongestionControl, CongestionControlDef, Definition, MarkingDef};
use engine::{Misfit, Parameter, Parameters, Raw, ValueError};

/// A mechanism around any congestion control.
pub trait EdgeControlDef: Definition {
    /// The congestion control with it on top: [`over`] for most.
    fn over(&self, inner: Box<dyn CongestionControlDef>) -> Box<dyn CongestionControlDef>;
}

/// What a mechanism changes of the congestion control that it is around. The rest is as that has it.
pub trait Around: Send + Sync + 'static {
    /// The controller of a run, around the one inside.
    fn build(&self, inner: Box<dyn CongestionControl>) -> Box<dyn CongestionControl>;
    /// Whether switches must make marks.
    fn uses_marks(&self, inner: &dyn CongestionControlDef) -> bool {
        inner.uses_marks()
    }
    /// Whether ports to hosts make marks, too.
    fn marks_before_hosts(&self, inner: &dyn CongestionControlDef) -> bool {
        inner.marks_before_hosts()
    }
    /// Bytes that both add to the header of every data packet, and to every ACK.
    fn header(&self, inner: &dyn CongestionControlDef) -> (u16, u16) {
        inner.header()
    }
}

/// A mechanism around a congestion control.
pub fn over<T: Around>(around: T, inner: Box<dyn CongestionControlDef>) -> Box<dyn CongestionControlDef> {
    Box::new(Over { around, inner })
}

struct Over<T> {
    around: T,
    inner: Box<dyn CongestionControlDef>,
}

impl<T: Around> Parameters for Over<T> {
    fn list(&self) -> Vec<Parameter> {
        self.inner.list()
    }
    fn set(&mut self, name: &str, raw: &Raw) -> Option<Result<(), ValueError>> {
        self.inner.set(name, raw)
    }
}

impl<T: Around> Definition for Over<T> {
    fn name(&self) -> &'static str {
        self.inner.name()
    }
    fn about(&self) -> &'static str {
        self.inner.about()
    }
    fn source(&self) -> &'static str {
        self.inner.source()
    }
    fn needs_size(&self) -> bool {
        self.inner.needs_size()
    }
    fn control_packet(&self) -> u64 {
        self.inner.control_packet()
    }
    fn check(&self) -> Result<(), Misfit> {
        self.inner.check()
    }
    fn conflict(&self, with: &Chosen<'_>) -> Option<Misfit> {
        self.inner.conflict(with)
    }
}

impl<T: Around> CongestionControlDef for Over<T> {
    fn build(&self) -> Box<dyn CongestionControl> {
        self.around.build(self.inner.build())
    }
    fn uses_marks(&self) -> bool {
        self.around.uses_marks(&*self.inner)
    }
    fn notified(&self) -> bool {
        self.inner.notified()
    }
    fn marks_before_hosts(&self) -> bool {
        self.around.marks_before_hosts(&*self.inner)
    }
    fn switch_half(&self) -> Option<Box<dyn MarkingDef>> {
        self.inner.switch_half()
    }
    fn hears_of_trims(&self) -> bool {
        self.inner.hears_of_trims()
    }
    fn needs_window(&self) -> bool {
        self.inner.needs_window()
    }
    fn header(&self) -> (u16, u16) {
        self.around.header(&*self.inner)
    }
}
