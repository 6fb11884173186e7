//! The schemes: one file per mechanism, grouped by the question it answers.
//!
//! * [`flow_control`]: when does a switch stop its neighbours?
//! * [`congestion_control`]: how fast may a sender go?
//! * [`edge_control`]: what does a sender do on top of that?
//! * [`transport`]: how are messages cut into packets and repaired?
//!
//! Each file holds a mechanism whole: its parameters with the published defaults, its state, its counters, its tests.
//! Adding one is a new file and a line in the list of its group.

pub mod congestion_control;
pub mod edge_control;
pub mod flow_control;
pub mod transport;
