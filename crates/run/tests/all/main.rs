//! Whole runs: what schemes promise, what reference results say, and that threads change nothing.

mod analysis;
mod deadlock;
mod golden;
mod graphs;
mod htsim;
mod isolation;
mod lossless;
mod reference;
mod same;
mod slow;
mod threads;
mod together;
mod traffic;
