//! Whole runs: what schemes promise, what reference results say, and that threads change nothing.

mod analysis;
mod balancing;
mod causes;
mod collectives;
mod credits;
mod deadlock;
mod directions;
mod endings;
mod forward;
mod golden;
mod graphs;
mod htsim;
mod isolation;
mod jobs;
mod lossless;
mod parts;
mod reference;
mod same;
mod shapes;
mod slow;
mod threads;
mod together;
mod traffic;
mod uec;

/// Tests find the schemes that come with the program.
#[ctor::ctor]
#[allow(unsafe_code)]
fn install() {
    schemes::install();
}
