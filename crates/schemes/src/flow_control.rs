//! Flow control between neighbours, by name.

use engine::{Misfit, Parameters, Time};
use fabric::scheme::{CongestionControl, FlowControl, NoFlowControl};
use fabric::{Network, Outcome, Setup};

pub mod bfc;
pub mod dvl;
pub mod pfc;
pub mod sfc;

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
    /// How many groups of packets it tells apart at every ingress port and class, each with its own share of the memory.
    fn groups(&self) -> u32 {
        1
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
        Box::new(dvl::Params::default()),
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
