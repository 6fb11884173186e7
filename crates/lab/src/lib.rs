//! The laboratory: scenario files, the ns-3 front end, running, and result files.

pub mod ns3;
pub mod problem;
