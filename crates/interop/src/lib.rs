//! Files of other tools: those of the [`ns3`] simulator, run as they are, those of [`htsim`], which become scenarios, and captures of
//! packets ([`pcapng`]).

pub mod htsim;
pub mod ns3;
pub mod pcapng;
