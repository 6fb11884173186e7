//! Congestion control at the sender: one file per scheme.

use engine::{Misfit, Rate, Time};
use fabric::axes::congestion_control::Unlimited;
use fabric::axes::registry::Axis;
use fabric::axes::{CongestionControl, CongestionControlDef, Definition};

pub mod bolt;
pub mod dasr;
pub mod dcqcn;
pub mod dctcp;
pub mod hpcc;
pub mod ib_cc;
pub mod nscc;
pub mod powertcp;
pub mod swift;
pub mod timely;

/// Every scheme, the usual one first.
pub(crate) fn list(axis: &mut Axis<dyn CongestionControlDef>) {
    axis.add(|| Box::new(None::default()))
        .add(|| Box::new(dcqcn::Params::default()))
        .add(|| Box::new(hpcc::Params::default()))
        .add(|| Box::new(timely::Params::default()))
        .add(|| Box::new(dctcp::Params::default()))
        .add(|| Box::new(dasr::Params::default()))
        .add(|| Box::new(ib_cc::Params::default()))
        .add(|| Box::new(swift::Params::default()))
        .add(|| Box::new(powertcp::Params::default()))
        .add(|| Box::new(bolt::Params::default()))
        .add(|| Box::new(nscc::Params::default()));
}

/// Rates that are added must stay far from overflow, and a floor of nothing would stop a flow for ever.
pub fn check_rates(min: Rate, steps: &[(&'static str, Rate)]) -> Result<(), Misfit> {
    if min == Rate(0) {
        return Err(Misfit::new("min_rate", "zero", "write at least \"1Mbps\""));
    }
    match steps.iter().find(|(_, step)| *step > Rate::from_gbps(100_000)) {
        Some((name, step)) => Err(Misfit::new(name, step, "write at most \"100Tbps\"")),
        None => Ok(()),
    }
}

/// An interval that drives a timer must be above zero.
pub fn check_intervals(intervals: &[(&'static str, Time)]) -> Result<(), Misfit> {
    match intervals.iter().find(|(_, t)| *t < Time::from_ns(10) || *t > Time::from_ms(1_000_000)) {
        Some((name, t)) => Err(Misfit::new(name, t, "write a time from \"10ns\" to \"1000s\"")),
        None => Ok(()),
    }
}

/// A share must lie between zero and one.
pub fn check_shares(shares: &[(&'static str, f64)]) -> Result<(), Misfit> {
    match shares.iter().find(|(_, x)| !(0.0..=1.0).contains(x)) {
        Some((name, x)) => Err(Misfit::new(name, x, "write a number from 0 to 1")),
        None => Ok(()),
    }
}

/// The states of active flows, by slot.
#[derive(Debug)]
pub struct Slots<S>(Vec<S>);

impl<S> Default for Slots<S> {
    fn default() -> Self {
        Slots(Vec::new())
    }
}

impl<S: Clone> Slots<S> {
    /// Keeps the state of the flow that starts in a slot.
    pub fn put(&mut self, slot: u32, state: S) {
        if slot as usize >= self.0.len() {
            self.0.resize(slot as usize + 1, state.clone());
        }
        self.0[slot as usize] = state;
    }
    /// The state of the flow in a slot, to be read.
    ///
    /// # Panics
    /// If none ever started there.
    pub fn peek(&self, slot: u32) -> &S {
        &self.0[slot as usize]
    }
    /// The state of the flow in a slot.
    ///
    /// # Panics
    /// If none ever started there.
    #[inline]
    pub fn get(&mut self, slot: u32) -> &mut S {
        &mut self.0[slot as usize]
    }
}

#[cfg(test)]
pub(crate) use crate::testing::{plain_ack, plain_start};

engine::parameters! {
    /// No congestion control.
    pub struct None {}
}

impl Definition for None {
    fn name(&self) -> &'static str {
        "none"
    }
    fn about(&self) -> &'static str {
        "Senders go at line rate; a window, if there is one, is all that holds them back."
    }
}

impl CongestionControlDef for None {
    fn build(&self) -> Box<dyn CongestionControl> {
        Box::new(Unlimited)
    }
}
