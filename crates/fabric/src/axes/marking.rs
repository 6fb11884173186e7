//! Marking: what do switches write on packets, or report to senders?

use super::{Counter, Definition};
use crate::axes::flow_control::Visit;
use crate::id::PortId;
use crate::setup::PortSetup;
use crate::view::{NodeView, Site};

/// A program at one switch, beside flow control.
///
/// What joins a queue leaves one: both hooks see the same packets, with the same size and ingress port. The egress port and queue are others
/// if flow control has [shifted](NodeView::shift) the packet meanwhile.
pub trait Marking: Send {
    /// A data packet was put in its queue.
    fn enqueued(&mut self, _at: &mut NodeView<'_>, _visit: &Visit) {}
    /// A data packet has left its queue, to be sent, to be trimmed, or to be dropped.
    fn dequeued(&mut self, _at: &mut NodeView<'_>, _visit: &Visit) {}
    /// A packet of another kind leaves by a port with queues: an ACK among the data, a control packet, or a frame.
    fn passed(&mut self, _at: &mut NodeView<'_>, _port: PortId, _size: u16) {}
    /// What it counted.
    fn counters(&self) -> Vec<Counter> {
        Vec::new()
    }
}

/// What the program knows of a marking.
pub trait MarkingDef: Definition {
    /// Adjusts how a port marks by the length of its queues (RED as data centres use it), which is built into the switch. Without thresholds
    /// from the scenario there is nothing to adjust.
    fn port(&self, _port: &mut PortSetup) {}
    /// The program at a switch; `None` where the built-in marking is all.
    fn switch(&self, _site: &Site<'_>) -> Option<Box<dyn Marking>> {
        None
    }
}
