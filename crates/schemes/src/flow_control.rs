//! Flow control between neighbours: one file per scheme.

use engine::{Bytes, Misfit, Time};
use fabric::axes::flow_control::{Fabric, FlowControlDef, Job, Layout, NoFlowControl};
use fabric::axes::registry::Axis;
use fabric::axes::{Chosen, Counter, Definition};
use fabric::deadlock::Waits;
use fabric::id::{NodeId, PortId};
use fabric::routing::PortMap;
use fabric::topology::Graph;
use fabric::view::NodeView;
use fabric::{Outcome, Setup};

pub mod bfc;
pub mod cbfc;
pub mod dvl;
pub mod floodgate;
pub mod iofd;
#[cfg(test)]
mod model;
pub mod pfc;
pub mod portfc;
pub mod sfc;

/// Every scheme.
pub(crate) fn list(axis: &mut Axis<dyn FlowControlDef>) {
    axis.add(|| Box::new(pfc::Params::default()))
        .add(|| Box::new(None::default()))
        .add(|| Box::new(bfc::Params::default()))
        .add(|| Box::new(sfc::Params::default()))
        .add(|| Box::new(iofd::Params::default()))
        .add(|| Box::new(portfc::Params::default()))
        .add(|| Box::new(dvl::Params::default()))
        .add(|| Box::new(floodgate::Params::default()))
        .add(|| Box::new(cbfc::Params::default()));
}

/// Refuses what lets packets of a flow overtake one another, or has them on several paths at once, for a flow control that keeps them in order.
pub(super) fn needs_order(name: &str, with: &Chosen<'_>) -> Option<Misfit> {
    let balancing = with.load_balancing;
    if !balancing.may_reorder() && balancing.one_path() {
        return None;
    }
    let kept = if balancing.may_reorder() { "the packets of a flow in order" } else { "a flow on one path at a time" };
    let message = format!("{name} keeps {kept}, and {} does not", balancing.name());
    let help = "write load_balancing = \"ecmp\", \"wcmp\" or \"d-mod-k\" in [scheme]".into();
    Some(Misfit { parameter: "scheme.load_balancing", message, help })
}

/// The fabric of a setup, as schemes that size their own memory look at it when they run.
fn fabric_of(setup: &Setup) -> Fabric<'_> {
    let map = PortMap::new(&setup.graph);
    Fabric {
        graph: &setup.graph,
        pool: &setup.switch.pool,
        largest: setup.max_packet(),
        classes: setup.classes,
        pipeline: setup.switch.pipeline,
        reaction: setup.switch.reaction,
        forward: setup.forward,
        unfair: false,
        cell: setup.switch.cell as u64,
        nics: setup.slow.iter().map(|slow| (NodeId(map.node[slow.port as usize]), slow.buffer)).collect(),
    }
}

/// Refuses switches that put packets aside until those before them have come, for a flow control with which these may come later than what was put
/// aside, or never. `because`: why.
pub(super) fn lets_all_come(name: &str, because: &str, with: &Chosen<'_>) -> Option<Misfit> {
    let balancing = with.load_balancing;
    balancing.sets_aside().then(|| Misfit {
        parameter: "scheme.load_balancing",
        message: format!("{name} does not go with {}, which puts packets aside: {because}", balancing.name()),
        help: "write another load_balancing in [scheme], or flow_control = \"pfc\" or \"sfc\"".into(),
    })
}

/// A packet that a scheme makes must be one that a port can send.
pub fn check_frame(name: &'static str, size: Bytes) -> Result<(), Misfit> {
    match size.0 {
        1..=2048 => Ok(()),
        _ => Err(Misfit::new(name, size, "write a size from \"1B\" to \"2048B\"")),
    }
}

/// Timers of a node that can be set anew and taken back: when each goes off, by port and timer.
pub struct Deadlines {
    each: usize,
    at: Vec<Time>,
}

impl Deadlines {
    /// For so many ports, each with so many timers.
    pub fn new(ports: usize, each: u32) -> Deadlines {
        Deadlines { each: each as usize, at: vec![Time::MAX; ports * each as usize] }
    }

    /// Sets a timer anew, or none.
    pub fn set(&mut self, at: &mut NodeView<'_>, port: PortId, timer: u32, after: Option<Time>) {
        let deadline = &mut self.at[port.index() * self.each + timer as usize];
        *deadline = after.map_or(Time::MAX, |after| at.now() + after);
        if after.is_some() {
            at.set_timer(port, timer, *deadline);
        }
    }

    /// A timer went off: whether it is the one that was set last, and not taken back.
    pub fn due(&mut self, at: &NodeView<'_>, port: PortId, timer: u32) -> bool {
        let deadline = &mut self.at[port.index() * self.each + timer as usize];
        let due = *deadline == at.now();
        if due {
            *deadline = Time::MAX;
        }
        due
    }

    /// The first that is due.
    #[cfg(test)]
    fn next(&self) -> Option<Time> {
        self.at.iter().copied().min().filter(|&at| at != Time::MAX)
    }

    /// How far off each is: what decides what they do next.
    #[cfg(test)]
    fn outlook(&self, now: Time, grain: Time) -> Vec<u64> {
        self.at.iter().map(|&at| model::left(at, now, grain)).collect()
    }
}

/// The sum of something over all nodes, as a counter.
pub fn sum<N>(name: &'static str, nodes: &[&N], of: impl Fn(&N) -> u64) -> Counter {
    Counter::sum(name, nodes.iter().map(|node| of(node)).sum())
}

/// The largest of something over all nodes, as a counter.
pub fn max<N>(name: &'static str, nodes: &[&N], of: impl Fn(&N) -> u64) -> Counter {
    Counter::max(name, nodes.iter().map(|node| of(node)).max().unwrap_or(0))
}

/// The histograms of all nodes added up.
pub fn samples<'a, N: 'a>(nodes: &[&'a N], of: impl Fn(&'a N) -> &'a [u64]) -> Vec<u64> {
    let mut all: Vec<u64> = Vec::new();
    for samples in nodes.iter().map(|node| of(node)) {
        all.resize(all.len().max(samples.len()), 0);
        all.iter_mut().zip(samples).for_each(|(count, other)| *count += other);
    }
    all
}

engine::parameters! {
    /// No flow control.
    pub struct None {}
}

impl Definition for None {
    fn name(&self) -> &'static str {
        "none"
    }
    fn about(&self) -> &'static str {
        "Nothing stops a neighbour; what does not fit in a buffer is dropped."
    }
}

impl FlowControlDef for None {
    fn soon_over(&self) -> bool {
        true
    }
    fn layout(&self, _: &Graph) -> Result<Layout, Misfit> {
        Ok(Layout::default())
    }
    fn waits(&self, _: &Setup) -> Waits {
        Waits::Never("what does not fit in a buffer is dropped")
    }
    fn run(&self, job: Job<'_>) -> Outcome {
        job.run(NoFlowControl)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric::bench::Builder;
    use fabric::buffer::ALPHA_ONE;

    #[test]
    fn without_flow_control_the_packet_that_does_not_fit_is_dropped_and_nobody_is_stopped() {
        // Room for ten packets of 1062 bytes; any port may use the whole pool.
        let mut bench = Builder::switch(3, 0).memory(10 * 1062, 16 * ALPHA_ONE, 0).build(NoFlowControl);
        let (sender, receiver, flow) = (PortId(0), PortId(2), bench.flow(0, 2, 0));
        bench.close(receiver);
        (0..11).for_each(|_| bench.arrive(sender, flow));
        assert_eq!((bench.counts().dropped_full, bench.view().queued(receiver)), (1, 10_620));
        assert!(bench.sent().is_empty());
        let sent: Vec<u64> = std::iter::from_fn(|| bench.transmit(receiver)).map(|sent| sent.packet.seq).collect();
        assert_eq!(sent, (0..10).map(|packet| packet * 1000).collect::<Vec<u64>>());
    }

    #[test]
    fn a_deadline_that_was_set_anew_or_taken_back_is_not_due_when_its_first_timer_goes_off() {
        let mut bench = fabric::bench::Bench::switch(Fickle, 1);
        let port = PortId(0);
        for us in [1, 3] {
            bench.at(|_, deadlines, at| deadlines.0.set(at, port, 0, Some(Time::from_us(us))));
        }
        bench.at(|_, deadlines, at| deadlines.0.set(at, port, 1, Some(Time::from_us(2))));
        bench.at(|_, deadlines, at| deadlines.0.set(at, port, 1, Option::None));
        assert_eq!(bench.timers().len(), 3);
        bench.advance(Time::from_us(10));
        assert_eq!(bench.node().1, [(0, Time::from_us(3))]);
    }

    /// Two timers for each port, and which were due.
    #[derive(Clone)]
    struct Fickle;
    impl fabric::axes::FlowControl for Fickle {
        type Node = (Deadlines, Vec<(u32, Time)>);
        type Frame = ();
        type Signal = ();
        fn node(&self, site: &fabric::view::Site<'_>) -> Self::Node {
            (Deadlines::new(site.ports().len(), 2), Vec::new())
        }
        fn timers(&self, _: u8) -> u32 {
            2
        }
        fn timer(&self, node: &mut Self::Node, at: &mut NodeView<'_>, port: PortId, timer: u32) {
            if node.0.due(at, port, timer) {
                node.1.push((timer, at.now()));
            }
        }
    }
}
