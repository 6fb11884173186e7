//! The store, grids, sweeps and recordings.

mod recording;
#[path = "../../../run/tests/all/same.rs"]
mod same;
mod star;
mod store;
mod sweep;
