//! fabric
pub mod topology;
