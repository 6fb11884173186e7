//! Drawn traffic.

mod drawn;
