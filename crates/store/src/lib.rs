//! A store of runs, and what fills it.
//!
//! A [`Store`] has a folder for each run, named by the [`Digest`] of its [`Input`], so that nothing is run twice. A [`grid`] is many
//! runs at once; a [`sweep`] is one as a file, which many processes do together, kept apart by [`claims`].

pub mod claims;
mod digest;
pub mod grid;
mod store;
pub mod sweep;

pub use digest::Digest;
pub use store::{Checked, DAMAGED, Found, INPUT_FILES, Input, Known, Store, again, open, open_flows};

/// Tests find the schemes that come with the program.
#[cfg(test)]
#[ctor::ctor]
#[allow(unsafe_code)]
fn install() {
    schemes::install();
}
