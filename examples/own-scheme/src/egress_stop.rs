//! Stop at a long egress queue: whoever sends to it by an ingress port is stopped, the whole link, until the queue is short again.
//!
//! Simple, and crude: a stopped link also holds packets for other ports, and nothing is set aside for what is on its way when a frame is sent.

use tailwater::axes::flow_control::{FlowControl, FlowControlDef, Job, Layout, Visit};
use tailwater::axes::{Counter, Definition};
use tailwater::id::{ClassId, PortId};
use tailwater::schemes::flow_control::{check_frame, sum};
use tailwater::topology::Graph;
use tailwater::view::{NodeView, Site};
use tailwater::{Bytes, Misfit, Outcome, message};

tailwater::parameters! {
    /// Parameters of the stop at egress queues.
    pub struct Params {
        /// An egress port with more waiting than this stops whoever sends to it.
        stop: Bytes = Bytes(100_000),
        /// With no more than this it lets them go on.
        go: Bytes = Bytes(50_000),
        /// Size of a frame on the wire.
        frame: Bytes = Bytes(64),
    }
}

impl Definition for Params {
    fn name(&self) -> &'static str {
        "egress-stop"
    }
    fn about(&self) -> &'static str {
        "A long egress queue stops the links that feed it until it is short again. What does not fit meanwhile is dropped."
    }
    fn check(&self) -> Result<(), Misfit> {
        check_frame("frame", self.frame)?;
        match self.go > self.stop {
            true => {
                Err(Misfit::new("go", self.go, format!("write at most \"{}\", which is where it stops", self.stop)))
            }
            false => Ok(()),
        }
    }
}

impl FlowControlDef for Params {
    fn layout(&self, graph: &Graph) -> Result<Layout, Misfit> {
        if graph.fallible() {
            return Err(Misfit {
                parameter: "link",
                message: "a lost frame would stop a link for ever".into(),
                help: "take loss, corruption and down away, or write another flow control".into(),
            });
        }
        Ok(Layout { frame: self.frame.0, ..Layout::default() })
    }
    fn run(&self, job: Job<'_>) -> Outcome {
        job.run(EgressStop { params: self.clone() })
    }
}

message! {
    /// What a frame says to the neighbour.
    pub struct Frame {
        /// Stop, or go on.
        stop: bool,
    }
}

/// The mechanism: what all nodes share.
#[derive(Clone)]
pub struct EgressStop {
    params: Params,
}

/// What a node keeps.
pub struct Node {
    /// By egress port: the ingress ports that it wants stopped.
    wants: Vec<Vec<PortId>>,
    /// By ingress port: how many egress ports want it stopped.
    wanted: Vec<u32>,
    stops: u64,
}

impl FlowControl for EgressStop {
    type Node = Node;
    type Frame = Frame;
    type Signal = ();

    fn node(&self, site: &Site<'_>) -> Node {
        let ports = site.ports().len();
        Node { wants: vec![Vec::new(); ports], wanted: vec![0; ports], stops: 0 }
    }

    fn enqueued(&self, node: &mut Node, at: &mut NodeView<'_>, visit: &Visit) {
        let wants = &mut node.wants[visit.out_port.index()];
        if at.queued(visit.out_port) <= self.params.stop.0 || wants.contains(&visit.in_port) {
            return;
        }
        wants.push(visit.in_port);
        node.wanted[visit.in_port.index()] += 1;
        if node.wanted[visit.in_port.index()] == 1 {
            node.stops += 1;
            at.send_frame(visit.in_port, self.params.frame.0 as u16, Frame { stop: true });
        }
    }

    fn dequeued(&self, node: &mut Node, at: &mut NodeView<'_>, visit: &Visit) {
        if at.queued(visit.out_port) > self.params.go.0 {
            return;
        }
        for port in std::mem::take(&mut node.wants[visit.out_port.index()]) {
            node.wanted[port.index()] -= 1;
            if node.wanted[port.index()] == 0 {
                at.send_frame(port, self.params.frame.0 as u16, Frame { stop: false });
            }
        }
    }

    fn frame(&self, _: &mut Node, at: &mut NodeView<'_>, port: PortId, frame: Frame) {
        (0..at.classes()).for_each(|class| at.pause_class(port, ClassId(class), frame.stop));
    }

    fn counters(&self, nodes: &[&Node]) -> Vec<Counter> {
        vec![sum("stop_frames", nodes, |node| node.stops)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailwater::axes::flow_control::NoFlowControl;
    use tailwater::testing::{incast, run};

    #[test]
    fn a_long_egress_queue_stops_its_senders_and_lets_them_go_again() {
        let free = run(incast(4, 1_000_000), NoFlowControl);
        let held = run(incast(4, 1_000_000), EgressStop { params: Params::default() });
        assert!(held.complete() && held.violations.is_empty(), "{:?}", held.violations);
        assert_eq!(held.flow_control[0].name, "stop_frames");
        assert!(held.flow_control[0].value >= 4 && held.counts.pauses == held.counts.resumes);
        // What is on its way when a frame is sent comes on top of the threshold.
        let peak = |outcome: &Outcome| outcome.peak.iter().copied().max().unwrap();
        assert!(peak(&held) < 400_000 && peak(&free) > 2_000_000, "{} {}", peak(&held), peak(&free));
        // The link to the receiver is never idle for it.
        assert!(held.end.0 < free.end.0 + free.end.0 / 10, "{} {}", held.end, free.end);
    }

    #[test]
    fn thresholds_must_be_in_order() {
        let params = Params { go: Bytes(200_000), ..Params::default() };
        assert_eq!(params.check().unwrap_err().parameter, "go");
    }
}
