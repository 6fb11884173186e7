//! The store, grids, sweeps and recordings.

mod model;
mod recording;
#[path = "../../../run/tests/all/same.rs"]
mod same;
mod star;
mod store;
mod sweep;

/// Tests find the schemes that come with the program.
#[ctor::ctor]
#[allow(unsafe_code)]
fn install() {
    schemes::install();
}
