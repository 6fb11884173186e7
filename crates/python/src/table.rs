//! A table of results as Arrow's PyCapsule interface has it: pyarrow, pandas, Polars and DuckDB take it without a copy.

use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, Float64Array, RecordBatch, RecordBatchIterator, StringArray, UInt8Array, UInt64Array};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use results::tables::{Column, Values};
use std::sync::Arc;

/// A table. Its memory is freed with its last reader.
#[pyclass(frozen, module = "tailwater", name = "Table")]
pub struct Table(RecordBatch);

/// A column as Arrow has it.
fn array(column: &Column) -> ArrayRef {
    let there = |row: usize| column.present.as_ref().is_none_or(|present| present[row]);
    let rows = 0..column.rows();
    match &column.values {
        Values::Texts(texts) => Arc::new(rows.map(|row| there(row).then(|| texts.get(row))).collect::<StringArray>()),
        Values::Small(values) => Arc::new(rows.map(|row| there(row).then(|| values[row])).collect::<UInt8Array>()),
        Values::Counts(values) => Arc::new(rows.map(|row| there(row).then(|| values[row])).collect::<UInt64Array>()),
        Values::Numbers(values) => Arc::new(rows.map(|row| there(row).then(|| values[row])).collect::<Float64Array>()),
    }
}

impl Table {
    /// Columns as one piece.
    pub fn new<N: AsRef<str>>(columns: Vec<(N, Column)>) -> PyResult<Table> {
        let arrays = columns.iter().map(|(name, column)| (name.as_ref(), array(column), true));
        RecordBatch::try_from_iter_with_nullable(arrays).map(Table).map_err(internal)
    }
}

/// An error of Arrow, which is ours.
fn internal(error: impl std::fmt::Display) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

#[pymethods]
impl Table {
    /// Arrow's stream of the rows; `requested_schema` may be passed over, and is.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        _ = requested_schema;
        let rows = RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(rows)), c"arrow_array_stream")
    }

    /// Arrow's schema.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.0.schema().as_ref()).map_err(internal)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.0.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// How many rows it has.
    #[getter]
    fn num_rows(&self) -> usize {
        self.0.num_rows()
    }

    /// Bytes of memory.
    #[getter]
    fn nbytes(&self) -> usize {
        self.0.get_array_memory_size()
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    fn __repr__(&self) -> String {
        format!("Table({} rows: {})", self.0.num_rows(), self.column_names().join(", "))
    }

    /// As a `pyarrow.Table`.
    fn to_pyarrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pyarrow")?.call_method1("table", (slf,))
    }

    /// As a `polars.DataFrame`.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("polars")?.call_method1("DataFrame", (slf,))
    }

    /// As a `pandas.DataFrame` whose columns are Arrow's.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let arguments = pyo3::types::PyDict::new(py);
        arguments.set_item("types_mapper", py.import("pandas")?.getattr("ArrowDtype")?)?;
        Table::to_pyarrow(slf)?.call_method("to_pandas", (), Some(&arguments))
    }
}
