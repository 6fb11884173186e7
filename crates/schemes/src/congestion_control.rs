//! Congestion control at the sender, by name.

use engine::{Misfit, Parameters, Rate, Time};
use fabric::scheme::{CongestionControl, Unlimited};

pub mod dasr;
pub mod dcqcn;
pub mod dctcp;
pub mod hpcc;
pub mod ib_cc;
pub mod timely;

/// A congestion-control scheme with its parameters.
pub trait Choice: Parameters + Send + Sync {
    /// Its name in scenario files.
    fn name(&self) -> &'static str;
    /// What it does, in a sentence or two.
    fn about(&self) -> &'static str;
    /// The controller of a run.
    fn build(&self) -> Box<dyn CongestionControl>;
    /// Whether it reacts to marks, so that switches must make them.
    fn uses_marks(&self) -> bool {
        false
    }
    /// Whether it takes marks from ports to hosts too; otherwise switches make none there.
    fn marks_before_hosts(&self) -> bool {
        true
    }
    /// Whether it is defined only with a window.
    fn needs_window(&self) -> bool {
        false
    }
    /// Whether the parameters make sense.
    fn check(&self) -> Result<(), Misfit> {
        Ok(())
    }
    /// Bytes it adds to the header of every data packet, and to every ACK.
    fn header(&self) -> (u16, u16) {
        (0, 0)
    }
}

/// Every scheme with its default parameters.
pub fn all() -> Vec<Box<dyn Choice>> {
    vec![
        Box::new(()),
        Box::new(dcqcn::Params::default()),
        Box::new(hpcc::Params::default()),
        Box::new(timely::Params::default()),
        Box::new(dctcp::Params::default()),
        Box::new(dasr::Params::default()),
        Box::new(ib_cc::Params::default()),
    ]
}

/// The scheme of that name.
pub fn named(name: &str) -> Option<Box<dyn Choice>> {
    all().into_iter().find(|c| c.name() == name)
}

/// Rates that are added must stay far from overflow, and a floor of nothing would stop a flow for ever.
fn check_rates(min: Rate, steps: &[(&'static str, Rate)]) -> Result<(), Misfit> {
    if min == Rate(0) {
        return Err(Misfit::new("min_rate", "zero", "write at least \"1Mbps\""));
    }
    match steps.iter().find(|(_, step)| *step > Rate::from_gbps(100_000)) {
        Some((name, step)) => Err(Misfit::new(name, step, "write at most \"100Tbps\"")),
        None => Ok(()),
    }
}

/// An interval that drives a timer must be above zero.
fn check_intervals(intervals: &[(&'static str, Time)]) -> Result<(), Misfit> {
    match intervals.iter().find(|(_, t)| *t < Time::from_ns(10) || *t > Time::from_ms(1_000_000)) {
        Some((name, t)) => Err(Misfit::new(name, t, "write a time from \"10ns\" to \"1000s\"")),
        None => Ok(()),
    }
}

/// A share must lie between zero and one.
fn check_shares(shares: &[(&'static str, f64)]) -> Result<(), Misfit> {
    match shares.iter().find(|(_, x)| !(0.0..=1.0).contains(x)) {
        Some((name, x)) => Err(Misfit::new(name, x, "write a number from 0 to 1")),
        None => Ok(()),
    }
}

/// The states of active flows, by slot.
#[derive(Debug)]
pub(crate) struct Slots<S>(Vec<S>);

impl<S> Default for Slots<S> {
    fn default() -> Self {
        Slots(Vec::new())
    }
}

impl<S: Clone> Slots<S> {
    pub(crate) fn put(&mut self, slot: u32, state: S) {
        if slot as usize >= self.0.len() {
            self.0.resize(slot as usize + 1, state.clone());
        }
        self.0[slot as usize] = state;
    }
    #[inline]
    pub(crate) fn get(&mut self, slot: u32) -> &mut S {
        &mut self.0[slot as usize]
    }
}

/// An ACK at an instant that says nothing special.
#[cfg(test)]
pub(crate) fn plain_ack(now: Time) -> fabric::scheme::Ack<'static> {
    fabric::scheme::Ack {
        now,
        cause: now,
        seq: 1000,
        next: 2000,
        marked: false,
        stamp: Time::ZERO,
        delay: Time::ZERO,
        telemetry: &[],
        share: Rate(0),
    }
}

/// No congestion control.
impl Choice for () {
    fn name(&self) -> &'static str {
        "none"
    }
    fn about(&self) -> &'static str {
        "Senders go at line rate; a window, if there is one, is all that holds them back."
    }
    fn build(&self) -> Box<dyn CongestionControl> {
        Box::new(Unlimited)
    }
}
