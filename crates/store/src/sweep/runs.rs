//! The runs of a sweep as one table: what to join with the tables of the store.

use crate::grid::Cell;
use arrow::array::{ArrayRef, Float64Array, StringArray, UInt64Array};
use files::problem::Problem;
use results::comparison::Table;
use results::numbers::{Kind, numbers};
use results::tables;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

/// A Parquet table, as the bytes of its file in the folder `out`, with a row for each run of a plan, in its order: `digest`, the name of its folder in the store; a column for each
/// axis, with numbers where all its values are; for quantities, such as `4MB`, a second one with `.number` after its name;
/// `seed`, `ending`, and a column for each measure. What a run cost is left out, so that the file is always the same.
pub fn bytes(out: &Path, plan: &[Cell], summaries: &[Value], table: &Table) -> Result<Vec<u8>, Problem> {
    let mut columns: Vec<(String, ArrayRef)> = Vec::new();
    let mut put = |name: &str, array: ArrayRef| columns.push((name.to_string(), array));
    put("digest", Arc::new(StringArray::from_iter_values(plan.iter().map(|cell| cell.digest.to_string()))));
    for axis in &table.axes {
        let label = |cell: &Cell| cell.labels.iter().find(|(name, _)| name == axis).map(|(_, value)| value.clone());
        let labels: Vec<String> = plan.iter().map(|cell| label(cell).unwrap_or_default()).collect();
        let numbers = numbers(&labels.iter().map(String::as_str).collect::<Vec<_>>());
        let texts = || Arc::new(StringArray::from_iter_values(labels.iter()));
        match numbers {
            Some((Kind::Number, numbers)) => put(axis, Arc::new(Float64Array::from(numbers))),
            Some((_, numbers)) => {
                put(axis, texts());
                put(&format!("{axis}.number"), Arc::new(Float64Array::from(numbers)));
            }
            None => put(axis, texts()),
        }
    }
    put("seed", Arc::new(UInt64Array::from_iter_values(plan.iter().map(|cell| cell.seed))));
    let ending = |summary: &Value| summary["ending"].as_str().unwrap_or_default().to_string();
    put("ending", Arc::new(StringArray::from_iter_values(summaries.iter().map(ending))));
    for measure in &table.measures {
        let values: Float64Array = summaries.iter().map(|summary| measure.of(summary)).collect();
        put(&measure.key, Arc::new(values));
    }
    let draft = files::draft(&out.join("runs.parquet"));
    let columns = columns.iter().map(|(name, array)| (name.as_str(), array.clone())).collect();
    let written = tables::write(&draft, columns)
        .and_then(|()| std::fs::read(&draft).map_err(|error| files::refused(&draft, error)));
    _ = std::fs::remove_file(&draft);
    written
}
