//! Files of other tools: those of the [`ns3`] simulator, run as they are, and those of [`htsim`], [`chakra`] and [`simccl`], which become scenarios.

pub mod chakra;
pub mod htsim;
pub mod ns3;
pub mod simccl;

/// Tests find the schemes that come with the program.
#[cfg(test)]
#[ctor::ctor]
#[allow(unsafe_code)]
fn install() {
    schemes::install();
}
