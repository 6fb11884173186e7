//! What the Python package `tailwater` is made of: the laboratory, as Python calls it.
//!
//! Everything that can be said in Python is said there (`python/tailwater`); here is what must be compiled. Nothing that
//! simulates holds the interpreter's lock, except where a controller is written in Python (`controller.rs`); work goes on in a
//! thread of its own while the caller's listens for Ctrl-C (`watch.rs`). Tables go over without being copied (`table.rs`).

mod controller;
mod ledger;
mod problem;
mod runs;
mod single;
mod table;
mod watch;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The compiled half of the package.
#[pymodule]
mod _tailwater {
    #[pymodule_export]
    use crate::controller::{Ack, Flow, Hop, Permit};
    #[pymodule_export]
    use crate::ledger::{claims, reproduce, schemes};
    #[pymodule_export]
    use crate::runs::{Plan, keep, work};
    #[pymodule_export]
    use crate::single::{Run, draw, explain, ns3, open, read, run};
    #[pymodule_export]
    use crate::table::Table;

    /// The schemes that come with the package are known from the start.
    #[pymodule_init]
    fn install(_module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        ::schemes::install();
        ::report::pages::drawn_by(env!("TAILWATER_VERSION"));
        Ok(())
    }

    /// The program's version.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}

/// Refuses no threads at all.
fn check_threads(threads: Option<usize>) -> PyResult<()> {
    match threads {
        Some(0) => Err(PyValueError::new_err("threads is 0: write 1 or more, or None for one on each core")),
        _ => Ok(()),
    }
}

/// As many threads as were asked for, or as there are cores.
fn threads_or_all(threads: Option<usize>) -> usize {
    threads.or(std::thread::available_parallelism().ok().map(usize::from)).unwrap_or(1).max(1)
}
