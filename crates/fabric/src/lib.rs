//! The fabric: packets, links, switches, hosts, topologies and routing, and the traits that everything which varies implements.
//!
//! Read it in the order of a packet's life: a [`topology`] gives the wiring, [`routing`] the paths through it; a
//! [`setup`] holds everything a run needs as numbers. A packet is made by a [`host`], crosses links
//! and the queues of switches (`switch`, [`buffer`], [`port`]) and is acknowledged. [`run`] is the
//! event loop around that, with the checks every run makes of itself; [`probe`] is what is measured during the run. Mechanisms plug in
//! through [`axes`] and act through a [`view`] of one node; nothing here knows which exist. A [`mod@bench`] has one node and no network, for
//! unit tests of a mechanism.

pub mod axes;
pub mod bench;
pub mod buffer;
pub mod clock;
pub mod deadlock;
pub mod host;
pub mod id;
pub mod message;
pub mod packet;
pub mod port;
pub mod prefetch;
pub mod probe;
pub mod retry;
pub mod routing;
pub mod run;
pub mod setup;
mod switch;
pub mod topology;
pub mod view;

pub use axes::Registry;
pub use run::{Network, Outcome};
pub use setup::Setup;

/// The digest of the code of this crate.
pub const CODE: &str = env!("TAILWATER_CODE");
