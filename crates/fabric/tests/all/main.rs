//! The fabric, run whole.

mod forwarding;
mod ndp;
mod order;
mod passing;
mod physics;
mod record;
