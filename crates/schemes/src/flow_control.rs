//! Flow control between neighbours, by name.

use engine::{Misfit, Parameters, Time};
use fabric::scheme::{CongestionControl, FlowControl, NoFlowControl};
use fabric::setup::{Forward, Scheduler};
use fabric::topology::Graph;
use fabric::{Network, Outcome, Setup};

pub mod bfc;
pub mod pfc;
pub mod portfc;
pub mod sfc;

/// What a scheme may want to know of the fabric it is to run on.
pub struct Fabric<'a> {
    /// The wiring.
    pub graph: &'a Graph,
    /// Memory that is shared at each node; `None` for no limit.
    pub pool: &'a [Option<u64>],
    /// Bytes of the largest packet.
    pub largest: u64,
    /// Priority classes.
    pub classes: u8,
    /// A switch's delay.
    pub pipeline: Time,
    /// What forwarding costs hosts.
    pub forward: Forward,
    /// The choice among queues.
    pub scheduler: Scheduler,
}

impl<'a> Fabric<'a> {
    /// Of a setup.
    pub fn of(setup: &'a Setup) -> Fabric<'a> {
        Fabric {
            graph: &setup.graph,
            pool: &setup.switch.pool,
            largest: setup.max_packet(),
            classes: setup.classes,
            pipeline: setup.switch.pipeline,
            forward: setup.forward,
            scheduler: setup.switch.scheduler,
        }
    }
}

/// Whether there is memory enough for a scheme to lose nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Room {
    /// There is.
    Enough,
    /// There is not: what the user should know.
    Short(String),
}

/// A flow-control scheme with its parameters, ready to run a fabric.
pub trait Choice: Parameters + Send + Sync {
    /// Its name in scenario files.
    fn name(&self) -> &'static str;
    /// What it does, in a sentence or two.
    fn about(&self) -> &'static str;
    /// Whether switches must set headroom aside for it.
    fn needs_headroom(&self) -> bool {
        false
    }
    /// Whether the parameters make sense.
    fn check(&self) -> Result<(), Misfit> {
        Ok(())
    }
    /// Bytes of its longest frame.
    fn frame_size(&self) -> u64 {
        0
    }
    /// How many frames may go ahead of a pause, besides a pause and a resume of every class.
    fn other_frames(&self) -> u64 {
        0
    }
    /// How many queues it lays out for every port and class, if it does.
    fn queues(&self) -> Option<u32> {
        None
    }
    /// Why it may drop packets although it has its headroom, if it may.
    fn may_drop(&self) -> Option<&'static str> {
        None
    }
    /// Whether it can run on a fabric; the parameter of a misfit is a key from the root of a scenario. A scheme that keeps within
    /// memory by its own means, without headroom, says whether there is enough.
    fn room(&self, _fabric: &Fabric<'_>) -> Result<Option<Room>, Misfit> {
        Ok(None)
    }
    /// Runs a fabric under it. `promised` says whether the setup gives it the room to lose nothing.
    fn run(
        &self,
        setup: Setup,
        promised: bool,
        control: Box<dyn CongestionControl>,
        report: &mut Report<'_>,
    ) -> Outcome;
}

/// Called now and then with the simulated time and the packet-hops so far; false ends the run.
pub type Report<'a> = dyn FnMut(Time, u64) -> bool + 'a;

/// Every scheme with its default parameters.
pub fn all() -> Vec<Box<dyn Choice>> {
    vec![
        Box::new(()),
        Box::new(pfc::Params::default()),
        Box::new(bfc::Params::default()),
        Box::new(sfc::Params::default()),
        Box::new(portfc::Params::default()),
    ]
}

/// The scheme of that name.
pub fn named(name: &str) -> Option<Box<dyn Choice>> {
    all().into_iter().find(|c| c.name() == name)
}

/// Builds the network with a scheme's own type, so that its hooks are compiled into the event loop.
fn run_with<F: FlowControl>(
    scheme: F,
    setup: Setup,
    control: Box<dyn CongestionControl>,
    report: &mut Report<'_>,
) -> Outcome {
    Network::new(setup, scheme, control).run(report)
}

/// No flow control.
impl Choice for () {
    fn name(&self) -> &'static str {
        "none"
    }
    fn about(&self) -> &'static str {
        "Nothing stops a neighbour; what does not fit in a buffer is dropped."
    }
    fn run(&self, setup: Setup, _: bool, control: Box<dyn CongestionControl>, report: &mut Report<'_>) -> Outcome {
        run_with(NoFlowControl, setup, control, report)
    }
}
