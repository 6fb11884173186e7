//! Results as plain data: what comparisons, verdicts and figures are made of.
//!
//! Of one run: its [`records`] and the [`parts`] of its flows, read back from their folder through [`tables`], its [`recording`], and the
//! [`causes`] of its stops. Of several: a
//! [`comparison`], in the numbers of [`measure`]. Of an experiment: its [`verdict`], and what it has to show ([`exhibit`]). Nothing
//! here knows how a run is done.

pub mod answer;
pub mod causes;
pub mod comparison;
pub mod exhibit;
pub mod explain;
pub mod measure;
pub mod numbers;
mod parquet;
pub mod parts;
pub mod print;
pub mod recording;
pub mod records;
pub mod tables;
pub mod verdict;

/// The digest of the code of this crate that computes and writes results.
pub const CODE: &str = env!("TAILWATER_CODE");
