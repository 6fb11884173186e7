//! What the traffic's describers promise.

mod drawn;
