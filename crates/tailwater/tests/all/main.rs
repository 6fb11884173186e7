//! The program as people use it, in one test binary: one for each file would link everything once more.

mod book;
mod claims;
mod cli;
mod compare;
mod desk;
mod estimate;
mod export;
mod forward;
mod harm;
mod htsim;
mod outputs;
mod pages;
mod patience;
mod progress;
mod report;
mod studio;
mod sweep;
mod traffic;

/// Tests find the schemes that come with the program.
#[ctor::ctor]
#[allow(unsafe_code)]
fn install() {
    schemes::install();
}
