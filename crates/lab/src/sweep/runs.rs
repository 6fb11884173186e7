//! The runs of a sweep as one table: what to join with the tables of the store.

use crate::comparison::Table;
use crate::files;
use crate::grid::Cell;
use crate::problem::Problem;
use crate::tables;
use arrow::array::{ArrayRef, Float64Array, StringArray, UInt64Array};
use engine::{Bytes, Rate, Time};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

/// What the values of an axis measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Plain numbers.
    Number,
    /// Bytes.
    Bytes,
    /// Seconds.
    Time,
    /// Bits per second.
    Rate,
}

/// The values of an axis as numbers of one kind, where they all are: bytes, seconds, bits per second, or as they are.
pub fn numbers(values: &[&str]) -> Option<(Kind, Vec<f64>)> {
    type Reader = fn(&str) -> Option<f64>;
    let bare = |value: &str| value.trim().trim_matches('"').to_string();
    let all = |read: Reader| values.iter().map(|value| read(&bare(value))).collect::<Option<Vec<f64>>>();
    let readers: [(Kind, Reader); 4] = [
        (Kind::Number, |text| text.parse().ok().filter(|number: &f64| number.is_finite())),
        (Kind::Bytes, |text| text.parse::<Bytes>().ok().map(|bytes| bytes.0 as f64)),
        (Kind::Time, |text| text.parse::<Time>().ok().map(Time::secs_f64)),
        (Kind::Rate, |text| text.parse::<Rate>().ok().map(|rate| rate.0 as f64)),
    ];
    readers.into_iter().find_map(|(kind, read)| Some((kind, all(read)?)))
}

/// Writes a row for each run of a plan, in its order: `digest`, the name of its folder in the store; a column for each
/// axis, with numbers where all its values are; for quantities, such as `4MB`, a second one with `.number` after its name;
/// `seed`, `ending`, and a column for each measure. What a run cost is left out, so that the file is always the same.
pub fn write(path: &Path, plan: &[Cell], summaries: &[Value], table: &Table) -> Result<(), Problem> {
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
    let draft = files::draft(path);
    let columns = columns.iter().map(|(name, array)| (name.as_str(), array.clone())).collect();
    let written = tables::write(&draft, columns)
        .and_then(|()| std::fs::rename(&draft, path).map_err(|error| files::refused(path, error)));
    if written.is_err() {
        _ = std::fs::remove_file(&draft);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_numbers_of_one_kind_or_names() {
        assert_eq!(numbers(&["0.5", "1"]), Some((Kind::Number, vec![0.5, 1.0])));
        assert_eq!(numbers(&["\"4MB\"", "500KB"]), Some((Kind::Bytes, vec![4e6, 5e5])));
        assert_eq!(numbers(&["1us", "2ms"]), Some((Kind::Time, vec![1e-6, 2e-3])));
        assert_eq!(numbers(&["100Gbps"]), Some((Kind::Rate, vec![1e11])));
        assert_eq!(numbers(&["1us", "4MB"]), None);
        assert_eq!(numbers(&["ecmp", "1"]), None);
    }
}
