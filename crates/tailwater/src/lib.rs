//! Tailwater, a laboratory for flow control in lossless data-centre fabrics, as a library: what a crate needs that brings a scheme of its own.
//!
//! A scheme is a file: parameters that implement a definition of its axis ([`axes`]), and a mechanism that acts through a view of one node
//! ([`view`]). A crate that adds it to the registry gets the whole program with it: command line, comparisons, sweeps, ledger and studio.
//! `examples/own-scheme` is such a crate, with a flow control, a congestion control, a preset and tests.
//!
//! ```no_run
//! use tailwater::axes::congestion_control::{Ack, FlowStart, Needs, Permit};
//! use tailwater::axes::{CongestionControl, CongestionControlDef, Definition};
//!
//! tailwater::parameters! {
//!     /// Half of the line rate, always.
//!     pub struct Half {}
//! }
//!
//! impl Definition for Half {
//!     fn name(&self) -> &'static str { "half" }
//!     fn about(&self) -> &'static str { "Senders go at half of their line rate." }
//! }
//! impl CongestionControlDef for Half {
//!     fn build(&self) -> Box<dyn CongestionControl> { Box::new(Halves) }
//! }
//!
//! struct Halves;
//! impl CongestionControl for Halves {
//!     fn needs(&self) -> Needs { Needs::default() }
//!     fn start(&mut self, _: u32, flow: FlowStart) -> Permit {
//!         Permit::at(tailwater::Rate(flow.line.0 / 2))
//!     }
//!     fn ack(&mut self, _: u32, _: &Ack<'_>, _: &mut Permit) {}
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     let mut registry = tailwater::registry();
//!     registry.congestion_control.add(|| Box::new(Half::default()));
//!     tailwater::main_with(registry)
//! }
//! ```
//!
//! | for | there is |
//! |---|---|
//! | a mechanism | the traits of [`axes`], [`view`], [`message!`], [`parameters!`], and the units [`Time`], [`Rate`], [`Bytes`] |
//! | building on others | [`schemes`], such as PFC beneath a scheme ([`axes::flow_control::Over`]), and helpers such as [`schemes::congestion_control::Slots`] |
//! | its tests | [`testing`] |
//! | a run without the program | [`run_scenario`] |
//! | stored results | [`identity!`] |

mod program;

pub use engine::{
    Bytes, Kind, Misfit, OutOfRange, Parameter, Parameters, QuantityError, Rate, Raw, Stream, Time, Value, ValueError,
    choice, parameters,
};
pub use fabric::axes::registry::Preset;
pub use fabric::{
    Network, Outcome, Registry, Setup, axes, bench, buffer, deadlock, host, id, message, packet, port, probe, routing,
    setup, topology, view,
};
pub use files::problem::Problem;
pub use identity::digest;
pub use run::Finished;
pub use schemes;
pub use schemes::{registry, testing};

use std::path::Path;
use std::process::ExitCode;

/// The whole program, with what `registry` holds.
///
/// Everything that the program starts to do its work, such as the studio's jobs and the tasks of a Slurm array, is this same program, so that it
/// knows the same schemes.
pub fn main_with(registry: Registry) -> ExitCode {
    identified(registry).install();
    program::main()
}

/// Runs a scenario, a text in TOML, in this process. Files that it names are looked for in the current folder.
///
/// Schemes of your own are found if a registry with them was [installed](Registry::install) before; otherwise those that come with the
/// program are installed.
///
/// ```
/// let finished = tailwater::run_scenario(
///     r#"
///     flow = [{ src = "h1", dst = "h0", size = "100KB" }]
///     topology = { kind = "star", hosts = 2 }
///     scheme.preset = "hpcc"
///     "#,
/// )?;
/// assert_eq!((finished.summary.finished, finished.summary.ending), (1, "complete"));
/// assert!(finished.outcome.flows[0].received > tailwater::Time::from_us(1));
/// # Ok::<(), tailwater::Problem>(())
/// ```
pub fn run_scenario(text: &str) -> Result<Finished, Problem> {
    schemes::install();
    let scenario = scenario::Scenario::parse("scenario", text, Path::new(""), &[])?;
    Ok(run::run(scenario::resolve::resolve(scenario)?, &mut |_, _| true))
}

/// What identifies the code of a crate that brings schemes, for [`Registry::identities`]: after an edit its runs are done again, and stored
/// results of the code before it are not used.
///
/// A crate of a few files names them, relative to the file that says this: `registry.identities.push(tailwater::identity!("main.rs"))`. A
/// crate of more files has a build script, `build.rs`, and `tailwater-identity` among its `[build-dependencies]`:
///
/// ```no_run
/// identity::emit(&[]); // all that its main does
/// ```
///
/// Then `tailwater::identity!()` is all of its `src`.
///
/// A program whose registry has schemes of its own but no identity of theirs is identified by its whole executable: never wrong, but every
/// build is other code.
#[macro_export]
macro_rules! identity {
    () => {
        (
            ::core::env!("CARGO_PKG_NAME"),
            ::std::string::String::from(::core::env!(
                "TAILWATER_CODE",
                "name the crate's files, as in identity!(\"main.rs\"), or call identity::emit(&[]) in its build.rs"
            )),
        )
    };
    ($($file:literal),+ $(,)?) => {
        (
            ::core::env!("CARGO_PKG_NAME"),
            $crate::digest([$(($file, ::core::include_bytes!($file).as_slice())),+]),
        )
    };
}

/// A registry that says whose its schemes are: if it has more than those that come with the program and no identity is given for
/// them, the program's executable identifies them.
fn identified(mut registry: Registry) -> Registry {
    let usual = schemes::registry();
    let size = |registry: &Registry| {
        registry.definitions().iter().map(|(_, all)| all.len()).sum::<usize>() + registry.presets.len()
    };
    if size(&registry) != size(&usual) && registry.identities.len() <= usual.identities.len() {
        let bytes = std::env::current_exe().and_then(std::fs::read).unwrap_or_default();
        registry.identities.push(("program", digest([("program", bytes.as_slice())])));
    }
    registry
}

/// Tests find the schemes that come with the program.
#[cfg(test)]
#[ctor::ctor]
#[allow(unsafe_code)]
fn install() {
    schemes::install();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_is_identified_by_the_files_it_names() {
        let (name, code) = identity!("lib.rs");
        assert_eq!(name, "tailwater");
        assert_eq!(code, identity!("lib.rs").1);
        assert_ne!(code, identity!("main.rs").1);
        assert_ne!(code, identity!("lib.rs", "main.rs").1);
    }

    #[test]
    fn a_scheme_without_an_identity_is_identified_by_the_program() {
        let preset = Preset { name: "own", about: "Our own.", settings: &[] };
        let names =
            |registry: Registry| identified(registry).identities.iter().map(|(name, _)| *name).collect::<Vec<_>>();
        assert_eq!(names(registry()), ["schemes"]);
        let mut own = registry();
        own.presets.push(preset);
        assert_eq!(names(own), ["schemes", "program"]);
        let mut own = registry();
        own.presets.push(preset);
        own.identities.push(identity!("lib.rs"));
        assert_eq!(names(own), ["schemes", "tailwater"]);
    }
}
