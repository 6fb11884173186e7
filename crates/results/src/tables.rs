//! Parquet tables: columns in, columns out.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::{ArrowPrimitiveType, UInt64Type};
use arrow::error::ArrowError;
use files::problem::Problem;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use std::fs::File;
use std::path::Path;

/// Columns of a table, with their names.
pub type Columns = Vec<(&'static str, ArrayRef)>;

/// Columns as one piece, in memory.
pub fn batch(columns: Vec<(&str, ArrayRef)>) -> Result<RecordBatch, ArrowError> {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)))
}

/// Writes a table.
pub fn write(path: &Path, columns: Vec<(&str, ArrayRef)>) -> Result<(), Problem> {
    let problem = |e: String| Problem::new(path.display().to_string(), format!("cannot be written: {e}"));
    let batch = batch(columns).map_err(|e| problem(e.to_string()))?;
    let file = File::create(path).map_err(|e| problem(e.to_string()))?;
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut writer =
        ArrowWriter::try_new(file, batch.schema(), Some(properties)).map_err(|e| problem(e.to_string()))?;
    writer.write(&batch).map_err(|e| problem(e.to_string()))?;
    writer.close().map_err(|e| problem(e.to_string()))?;
    Ok(())
}

/// A table that was read.
pub struct Table {
    name: String,
    batch: RecordBatch,
}

/// Reads a table whole.
pub fn read(path: &Path) -> Result<Table, Problem> {
    let name = path.display().to_string();
    let problem = |e: String| {
        Problem::new(name.clone(), format!("cannot be read: {e}")).help("remove its folder and run the scenario again")
    };
    let file = File::open(path).map_err(|e| problem(e.to_string()))?;
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|e| problem(e.to_string()))?;
    let schema = reader.schema().clone();
    let reader = reader.with_batch_size(1 << 16).build().map_err(|e| problem(e.to_string()))?;
    let batches = reader.collect::<Result<Vec<_>, _>>().map_err(|e| problem(e.to_string()))?;
    let batch = concat_batches(&schema, &batches).map_err(|e| problem(e.to_string()))?;
    Ok(Table { name, batch })
}

impl Table {
    /// All of it.
    pub fn batch(&self) -> &RecordBatch {
        &self.batch
    }

    /// How many rows it has.
    pub fn rows(&self) -> usize {
        self.batch.num_rows()
    }

    fn column(&self, column: &str) -> Result<&ArrayRef, Problem> {
        self.batch.column_by_name(column).ok_or_else(|| self.wrong(column))
    }

    fn wrong(&self, column: &str) -> Problem {
        Problem::new(self.name.clone(), format!("has no column {column} as this version writes it"))
            .help("remove its folder and run the scenario again")
    }

    /// A column of numbers.
    pub fn numbers<T: ArrowPrimitiveType>(&self, column: &str) -> Result<Vec<Option<T::Native>>, Problem> {
        let array = self.column(column)?.as_primitive_opt::<T>().ok_or_else(|| self.wrong(column))?;
        Ok(array.iter().collect())
    }

    /// A column of whole numbers without gaps.
    pub fn counts(&self, column: &str) -> Result<Vec<u64>, Problem> {
        self.numbers::<UInt64Type>(column)?.into_iter().map(|n| n.ok_or_else(|| self.wrong(column))).collect()
    }

    /// A column of text.
    pub fn texts(&self, column: &str) -> Result<Vec<&str>, Problem> {
        let array = self.column(column)?.as_string_opt::<i32>().ok_or_else(|| self.wrong(column))?;
        Ok((0..array.len()).map(|row| array.value(row)).collect())
    }
}
