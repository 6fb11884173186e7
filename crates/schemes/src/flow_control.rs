//! Flow control between neighbours, by name.

use engine::{Bytes, Misfit, Parameters, Time};
use fabric::deadlock::Waits;
use fabric::network::{Core, partition};
use fabric::packet::Packet;
use fabric::scheme::{CongestionControl, FlowControl, NoFlowControl};
use fabric::setup::{Forward, Scheduler};
use fabric::topology::Graph;
use fabric::{Network, Outcome, Setup};

pub mod bfc;
pub mod dvl;
pub mod iofd;
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
    /// Whether a host whose NIC is full can stop its switch.
    fn stops_for_hosts(&self) -> bool {
        false
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
    /// Why it may drop packets although it has its headroom, if it may.
    fn may_drop(&self) -> Option<&'static str> {
        None
    }
    /// Whether it can run on a fabric; the parameter of a misfit is a key from the root of a scenario. A scheme that keeps within
    /// memory by its own means, without headroom, says whether there is enough.
    fn room(&self, _fabric: &Fabric<'_>) -> Result<Option<Room>, Misfit> {
        Ok(None)
    }
    /// How many times it lays out every class of the scenario, as virtual channels.
    fn channels(&self) -> u8 {
        1
    }
    /// What it makes wait for what, for the analysis of deadlocks. A scheme that does not say is taken to stop neighbours class by
    /// class, as PFC does.
    fn waits(&self, _setup: &Setup) -> Waits {
        Waits::Classes
    }
    /// Whether a frame without a payload is a pause (true) or a resume of PFC, and of which class.
    fn pause_in(&self, _frame: &Packet) -> Option<(u8, bool)> {
        None
    }
    /// Bytes of state that it keeps in a switch with so many ports and classes, besides the packets, as hardware would hold them.
    fn switch_state(&self, _ports: u64, _classes: u64) -> u64 {
        0
    }
    /// Runs a fabric under it. `promised` says whether the setup gives it the room to lose nothing; every thread gets a
    /// controller of its own.
    fn run(&self, setup: Setup, promised: bool, control: &Controls<'_>, report: &mut Report<'_>) -> Outcome;
}

/// Makes a congestion controller.
pub type Controls<'a> = dyn Fn() -> Box<dyn CongestionControl> + 'a;

/// Called now and then with the simulated time and the packet-hops so far; false ends the run.
pub type Report<'a> = dyn FnMut(Time, u64) -> bool + 'a;

/// Every scheme with its default parameters.
pub fn all() -> Vec<Box<dyn Choice>> {
    vec![
        Box::new(()),
        Box::new(pfc::Params::default()),
        Box::new(bfc::Params::default()),
        Box::new(sfc::Params::default()),
        Box::new(iofd::Params::default()),
        Box::new(portfc::Params::default()),
        Box::new(dvl::Params::default()),
    ]
}

/// The scheme of that name.
pub fn named(name: &str) -> Option<Box<dyn Choice>> {
    all().into_iter().find(|c| c.name() == name)
}

/// Runs a fabric under what `scheme` makes: on as many threads as the setup allows and the fabric is worth, each with a member of
/// its own. The scheme's own type is built into the event loop.
fn run_with<F: FlowControl>(
    mut scheme: impl FnMut(&mut Setup) -> F,
    mut setup: Setup,
    control: &Controls<'_>,
    report: &mut Report<'_>,
) -> Outcome {
    match partition(&setup, setup.threads) {
        None => {
            let scheme = scheme(&mut setup);
            Network::new(setup, scheme, control()).run(report)
        }
        Some(plan) => {
            let members = (0..plan.parts).map(|_| (scheme(&mut setup), control())).collect();
            Network::run_parts(setup, &plan, members, report)
        }
    }
}

/// A packet that a scheme makes must be one that a port can send.
fn check_frame(name: &'static str, size: Bytes) -> Result<(), Misfit> {
    match size.0 {
        1..=2048 => Ok(()),
        _ => Err(Misfit::new(name, size, "write a size from \"1B\" to \"2048B\"")),
    }
}

/// Timers that can be set anew and taken back, by token: when each goes off.
#[derive(Default)]
struct Deadlines(Vec<Time>);

impl Deadlines {
    /// Sets a timer anew, or none.
    fn set(&mut self, core: &mut Core, token: u32, after: Option<Time>) {
        if self.0.len() <= token as usize {
            self.0.resize(token as usize + 1, Time::MAX);
        }
        self.0[token as usize] = after.map_or(Time::MAX, |after| core.now() + after);
        if after.is_some() {
            core.set_timer(self.0[token as usize], token);
        }
    }

    /// A timer went off: whether it is the one that was set last, and not taken back.
    fn due(&mut self, core: &Core, token: u32) -> bool {
        let due = self.0[token as usize] == core.now();
        if due {
            self.0[token as usize] = Time::MAX;
        }
        due
    }
}

/// Adds the samples of another histogram.
fn add_samples(counts: &mut Vec<u64>, other: &[u64]) {
    counts.resize(counts.len().max(other.len()), 0);
    counts.iter_mut().zip(other).for_each(|(count, other)| *count += other);
}

/// No flow control.
impl Choice for () {
    fn name(&self) -> &'static str {
        "none"
    }
    fn about(&self) -> &'static str {
        "Nothing stops a neighbour; what does not fit in a buffer is dropped."
    }
    fn waits(&self, _: &Setup) -> Waits {
        Waits::Never("what does not fit in a buffer is dropped")
    }
    fn run(&self, setup: Setup, _: bool, control: &Controls<'_>, report: &mut Report<'_>) -> Outcome {
        run_with(|_| NoFlowControl, setup, control, report)
    }
}
