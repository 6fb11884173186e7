//! Scenarios: from a TOML text to a run with every number decided.
//!
//! The data's path: [`document`] reads the text and remembers where everything is; a [`Scenario`] is what it says, as typed values,
//! its scheme perhaps from a preset ([`presets`]); [`resolve`] turns that into a [`fabric::Setup`]. [`deadlock`] asks of
//! a resolved scenario whether it can come to a deadlock. What is wrong with an input is a [`files::problem::Problem`] with a
//! place and a remedy.
//!
//! Every key is declared once, beside its reader ([`declared`]); the manual, the studio's form and the JSON Schema are made of
//! that ([`schema`]).

pub mod deadlock;
pub mod declared;
mod describe;
pub mod document;
pub mod estimate;
pub mod forward;
pub mod kind;
mod memory;
pub mod notes;
pub mod paths;
pub mod presets;
pub mod resolve;
mod scenario;
pub mod schema;
mod settings;
pub mod slow;
mod traffic;
pub mod watch;
mod wiring;

pub use scenario::{Beside, Choices, Scenario};
pub use settings::{Lane, MeasureSettings, NicSettings, Sharing, SwitchSettings, WindowSize};
pub use traffic::GroupReport;
pub use watch::Watch;
pub use wiring::Topology;

/// The digest of the code of this crate.
pub const CODE: &str = env!("TAILWATER_CODE");

/// Tests find the schemes that come with the program.
#[cfg(test)]
#[ctor::ctor]
#[allow(unsafe_code)]
fn install() {
    schemes::install();
}
