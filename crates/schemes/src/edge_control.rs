//! What a sender does on top of its congestion control, by name.

use crate::congestion_control;
use engine::{Misfit, Parameters};

pub mod onramp;

/// A mechanism with its parameters.
pub trait Choice: Parameters + Send + Sync {
    /// Its name in scenario files.
    fn name(&self) -> &'static str;
    /// What it does, in a sentence or two.
    fn about(&self) -> &'static str;
    /// Whether the parameters make sense.
    fn check(&self) -> Result<(), Misfit> {
        Ok(())
    }
    /// The congestion control with it on top.
    fn over(&self, inner: Box<dyn congestion_control::Choice>) -> Box<dyn congestion_control::Choice>;
}

/// Every mechanism with its default parameters, nothing first.
pub fn all() -> Vec<Box<dyn Choice>> {
    vec![Box::new(()), Box::new(onramp::Params::default())]
}

/// The mechanism of that name.
pub fn named(name: &str) -> Option<Box<dyn Choice>> {
    all().into_iter().find(|c| c.name() == name)
}

/// Nothing.
impl Choice for () {
    fn name(&self) -> &'static str {
        "none"
    }
    fn about(&self) -> &'static str {
        "Senders do what their congestion control says."
    }
    fn over(&self, inner: Box<dyn congestion_control::Choice>) -> Box<dyn congestion_control::Choice> {
        inner
    }
}
