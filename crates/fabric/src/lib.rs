//! The fabric: packets, links, switches, NICs, topologies and routing, and the traits a scheme implements.
//!
//! Read it in the order of a packet's life: a [`topology`] gives the wiring, [`routing`] the ways through it; a
//! [`setup`] holds everything a run needs as numbers; a [`packet`] is made by a NIC (`network/nic.rs`), crosses links
//! and the queues of switches (`network/switch.rs`, [`buffer`], [`port`]) and is acknowledged. [`network`] is the
//! event loop around that, with the checks every run makes of itself. Schemes plug in through [`scheme`]; nothing
//! here knows which exist.

pub mod buffer;
pub mod clock;
pub mod deadlock;
pub mod near;
pub mod network;
pub mod packet;
pub mod port;
pub mod routing;
pub mod scheme;
pub mod setup;
pub mod topology;

pub use network::{Captured, Exchange, Network, Outcome};
pub use setup::Setup;
