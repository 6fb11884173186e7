//! The clockwork under the fabric: exact time, a deterministic event queue, random streams.
//!
//! Nothing here knows what a packet is. Three ideas carry the promises of the whole program:
//!
//! * **Time is an integer** ([`Time`], picoseconds), so sums never drift and two machines never disagree.
//! * **Order is defined, not incidental** ([`queue`]): two events at the same instant are ordered by what they
//!   are and where they come from, never by which was inserted first. Splitting the nodes over threads
//!   therefore cannot change a result.
//! * **Randomness belongs to a node** ([`random`]): each node draws from its own stream, so adding a node or
//!   a thread does not disturb the draws of another.

pub mod parameters;
pub mod queue;
pub mod random;
pub mod units;

pub use parameters::{
    Kind, Limits, Misfit, Only, Ordered, OutOfRange, Parameter, Parameters, Raw, Value, ValueError, Word,
};
pub use queue::{Event, EventQueue};
pub use random::Stream;
pub use units::{Bytes, QuantityError, Rate, Time};

/// The digest of the code of this crate.
pub const CODE: &str = env!("TAILWATER_CODE");
