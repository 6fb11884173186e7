//! The runs of a sweep as one table: what to join with the tables of the store.

use crate::grid::Cell;
use results::comparison::Table;
use results::numbers::{Kind, numbers};
use results::tables::{self, Column};
use serde_json::Value;

/// A Parquet table, as the bytes of its file, with a row for each run of a plan, in its order: `digest`, the name of its folder in the store; a column for each
/// axis, with numbers where all its values are; for quantities, such as `4MB`, a second one with `.number` after its name;
/// `seed`, `ending`, and a column for each measure. What a run cost is left out, so that the file is always the same.
pub fn bytes(plan: &[Cell], summaries: &[Value], table: &Table) -> Vec<u8> {
    let mut columns: Vec<(String, Column)> = Vec::new();
    let mut put = |name: &str, column: Column| columns.push((name.to_string(), column));
    let texts = |values: &[String]| Column::texts(values.iter().map(String::as_str));
    put("digest", texts(&plan.iter().map(|cell| cell.digest.to_string()).collect::<Vec<_>>()));
    for axis in &table.axes {
        let label = |cell: &Cell| cell.labels.iter().find(|(name, _)| name == axis).map(|(_, value)| value.clone());
        let labels: Vec<String> = plan.iter().map(|cell| label(cell).unwrap_or_default()).collect();
        let numbers = numbers(&labels.iter().map(String::as_str).collect::<Vec<_>>());
        let exact = |numbers: Vec<f64>| Column::numbers(numbers.into_iter().map(Some));
        match numbers {
            Some((Kind::Number, numbers)) => put(axis, exact(numbers)),
            Some((_, numbers)) => {
                put(axis, texts(&labels));
                put(&format!("{axis}.number"), exact(numbers));
            }
            None => put(axis, texts(&labels)),
        }
    }
    put("seed", Column::counts(plan.iter().map(|cell| cell.seed)));
    let ending = |summary: &Value| summary["ending"].as_str().unwrap_or_default().to_string();
    put("ending", texts(&summaries.iter().map(ending).collect::<Vec<_>>()));
    for measure in &table.measures {
        put(&measure.key, Column::numbers(summaries.iter().map(|summary| measure.of(summary))));
    }
    tables::encode(&columns)
}
