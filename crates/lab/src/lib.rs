//! The laboratory: scenario files, the ns-3 front end, running, and result files.
//!
//! The data's way through it: a [`scenario`] file (read by [`document`]) or the [`ns3`] simulator's files become a
//! [`fabric::Setup`] ([`resolve`]); a run of that gives an outcome; [`measure`] and [`results`] turn it into files. What is
//! wrong with an input is a [`problem`] with a place and a remedy. Many runs at once are a [`grid`]; what they gave stays in
//! a [`store`], and a [`sweep`] is a grid as a file that many processes do together, kept apart by [`claims`]. Files of
//! [`htsim`] become scenarios. The [`ledger`] holds what documents say against what runs show; what they compute is [`theory`].

pub mod bench;
pub mod claims;
pub mod comparison;
pub mod deadlock;
pub mod document;
pub mod files;
pub mod grid;
pub mod htsim;
pub mod ledger;
pub mod measure;
pub mod ns3;
pub mod pcapng;
pub mod presets;
pub mod problem;
pub mod recording;
pub mod records;
pub mod resolve;
pub mod results;
pub mod run;
pub mod scenario;
pub mod store;
pub mod sweep;
pub mod tables;
pub mod theory;
