//! Transports by name: how a message is cut into packets, acknowledged, and repaired where something got lost.

use engine::{Misfit, Parameters, Time};
use fabric::Setup;

pub mod irn;
pub mod ndp;

/// A transport with its parameters.
pub trait Choice: Parameters + Send + Sync {
    /// Its name in scenario files.
    fn name(&self) -> &'static str;
    /// What it does, in a sentence or two.
    fn about(&self) -> &'static str;
    /// Whether the parameters make sense.
    fn check(&self) -> Result<(), Misfit> {
        Ok(())
    }
    /// Whether it is all the control there is: no flow control, congestion control or window goes with it.
    fn alone(&self) -> bool {
        false
    }
    /// The timeout that "auto" stands for, if it has its own.
    fn timeout(&self) -> Option<Time> {
        None
    }
    /// Keys of a scenario that have no effect with it.
    fn ignores(&self) -> &'static [&'static str] {
        &[]
    }
    /// Whether it knows by itself how long to wait for an acknowledgement, unless `nic.timeout` is written.
    fn own_timeout(&self) -> bool {
        false
    }
    /// Makes a setup use it.
    fn apply(&self, setup: &mut Setup);
}

/// Every transport with its default parameters, the usual one first.
pub fn all() -> Vec<Box<dyn Choice>> {
    vec![Box::new(()), Box::new(irn::Params::default()), Box::new(ndp::Params::default())]
}

/// The transport of that name.
pub fn named(name: &str) -> Option<Box<dyn Choice>> {
    all().into_iter().find(|c| c.name() == name)
}

/// The bandwidth-delay product of the fastest link of a host and the longest base round trip.
fn bandwidth_delay(setup: &Setup) -> u64 {
    let longest = setup.flows.iter().map(|flow| flow.base_rtt).max().unwrap_or_default();
    setup.graph.hosts_rate().unwrap_or_default().bytes_over(longest)
}

/// Go-back-N, which is set by the keys of `[nic]` alone.
impl Choice for () {
    fn name(&self) -> &'static str {
        "go-back-n"
    }
    fn about(&self) -> &'static str {
        "Receivers take packets in order only; a sender that hears of a gap, or of nothing for too long, starts over from there."
    }
    fn apply(&self, _: &mut Setup) {}
}
