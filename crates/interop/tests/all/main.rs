//! Files of other tools.

mod fuzz;
