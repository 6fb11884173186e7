//! The studio: a local web server in which experiments are found, run, watched and compared.
//!
//! A request passes the `guard` and reaches the `api`. What takes time becomes a `job` in the queue of `jobs`, a process
//! of its own that writes into the `workspace`; what came out is read by `results`. The `catalog` lists what there is to
//! run, [`check`] says what a scenario means, and the `page` is what a browser shows. What may be damaged or too large to read is
//! left to a `helper`, a process that is [asked](ask). `limits` bound everything. An [`Unplugged`] studio answers without a network.

mod api;
mod catalog;
pub mod check;
mod guard;
mod helper;
mod idle;
mod job;
mod jobs;
mod limits;
mod page;
mod results;
mod server;
mod unplugged;
mod why;
mod workspace;

pub use server::{Options, serve};
pub use unplugged::Unplugged;
pub use why::ask;

/// Tests find the schemes that come with the program.
#[cfg(test)]
#[ctor::ctor]
#[allow(unsafe_code)]
fn install() {
    schemes::install();
}
