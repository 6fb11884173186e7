//! Problems as exceptions. Their classes are Python's own (`tailwater._problem`), so that they can be pickled.

use files::problem::Problem;
use pyo3::prelude::*;
use pyo3::types::PyType;
use store::grid::Failed;

/// A class of `tailwater._problem`.
fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyType>> {
    Ok(py.import("tailwater._problem")?.getattr(name)?.cast_into::<PyType>()?)
}

/// The exception for problems of which there is at least one; the place is that of the first.
fn exception(py: Python<'_>, problems: &[Problem]) -> PyResult<PyErr> {
    let text: Vec<String> = problems.iter().map(Problem::to_string).collect();
    let first = problems.first();
    let arguments = (
        text.join("\nerror: "),
        first.map(|p| p.file.clone()),
        first.and_then(|p| p.line),
        first.and_then(|p| p.column),
        first.map(|p| p.message.clone()),
        first.and_then(|p| p.help.clone()),
        first.and_then(|p| p.key.clone()),
        first.map(|p| p.cause.name()),
    );
    Ok(PyErr::from_value(class(py, "Problem")?.call1(arguments)?))
}

/// What is wrong with an input, as an exception with the command line's text.
pub fn raised(py: Python<'_>, problem: Problem) -> PyErr {
    several(py, &problem.split())
}

/// The same of several.
pub fn several(py: Python<'_>, problems: &[Problem]) -> PyErr {
    exception(py, problems).unwrap_or_else(|error| error)
}

/// Promises that were broken, and what there is to say of them if that is more.
pub fn broken(py: Python<'_>, violations: &[String], text: Option<String>) -> PyErr {
    let make = || Ok(PyErr::from_value(class(py, "BrokenPromise")?.call1((violations.to_vec(), text))?));
    make().unwrap_or_else(|error: PyErr| error)
}

/// Why a grid is not complete.
pub fn failed(py: Python<'_>, failed: &Failed) -> PyErr {
    match failed.broken {
        true => {
            let problems: Vec<String> = failed.problems.iter().map(Problem::to_string).collect();
            broken(py, &problems, Some(problems.join("\n")))
        }
        false => several(py, &failed.problems),
    }
}
