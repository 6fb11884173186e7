//! Tables of results: columns in, columns out, as Parquet files.

use crate::parquet::{self, Spread};
use crate::print::field;
use files::problem::Problem;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::File;
use std::hash::BuildHasherDefault;
use std::io::BufWriter;
use std::path::Path;

/// Columns of a table, with their names.
pub type Columns = Vec<(&'static str, Column)>;

/// A column: a value for each row, or none.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// What it holds; anything where there is no value.
    pub values: Values,
    /// Which rows have a value; all, if this is not there.
    pub present: Option<Vec<bool>>,
}

/// The values of a column, row by row.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Texts.
    Texts(Texts),
    /// Whole numbers below 256.
    Small(Vec<u8>),
    /// Whole numbers.
    Counts(Vec<u64>),
    /// Numbers.
    Numbers(Vec<f64>),
}

/// Texts of which most come again and again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Texts {
    /// Each text once, in the order in which they first appear.
    pub names: Vec<String>,
    /// For each row the place of its text.
    pub rows: Vec<u32>,
}

impl Texts {
    /// The text of a row.
    pub fn get(&self, row: usize) -> &str {
        self.names.get(self.rows[row] as usize).map_or("", String::as_str)
    }
}

fn gaps<T: Copy>(values: impl Iterator<Item = Option<T>>, none: T) -> (Vec<T>, Option<Vec<bool>>) {
    let (mut present, mut all) = (Vec::with_capacity(values.size_hint().0), true);
    let fill = |value: Option<T>| {
        present.push(value.is_some());
        all &= value.is_some();
        value.unwrap_or(none)
    };
    let values = values.map(fill).collect();
    (values, (!all).then_some(present))
}

impl Column {
    /// Texts.
    pub fn texts<'a>(values: impl Iterator<Item = &'a str>) -> Column {
        Column::maybe_texts(values.map(Some))
    }

    /// Texts with gaps.
    pub fn maybe_texts<'a>(values: impl Iterator<Item = Option<&'a str>>) -> Column {
        let (values, present) = gaps(values, "");
        let (mut texts, mut known) = (Texts::default(), HashMap::new());
        for value in values {
            let place = *known.entry(value).or_insert_with(|| {
                texts.names.push(value.to_owned());
                texts.names.len() as u32 - 1
            });
            texts.rows.push(place);
        }
        Column { values: Values::Texts(texts), present }
    }

    /// Texts that are known by their places in a list. There may be many rows, and no text of a row is looked at.
    pub fn named<N: AsRef<str>>(names: &[N], rows: impl Iterator<Item = usize>) -> Column {
        const NONE: u32 = u32::MAX;
        let mut used: Vec<String> = Vec::new();
        let mut known = vec![NONE; names.len()];
        // A text may be in the list twice.
        let mut first: HashMap<&str, u32, BuildHasherDefault<Spread>> = HashMap::default();
        let mut new = |row: usize| {
            *first.entry(names[row].as_ref()).or_insert_with(|| {
                used.push(names[row].as_ref().to_owned());
                used.len() as u32 - 1
            })
        };
        let place = |row: usize| {
            if known[row] == NONE {
                known[row] = new(row);
            }
            known[row]
        };
        let rows = rows.map(place).collect();
        let texts = Texts { names: used, rows };
        Column { values: Values::Texts(texts), present: None }
    }

    /// Whole numbers below 256.
    pub fn small(values: impl Iterator<Item = u8>) -> Column {
        Column { values: Values::Small(values.collect()), present: None }
    }

    /// Whole numbers.
    pub fn counts(values: impl Iterator<Item = u64>) -> Column {
        Column { values: Values::Counts(values.collect()), present: None }
    }

    /// Whole numbers with gaps.
    pub fn maybe_counts(values: impl Iterator<Item = Option<u64>>) -> Column {
        let (values, present) = gaps(values, 0);
        Column { values: Values::Counts(values), present }
    }

    /// Numbers with gaps.
    pub fn numbers(values: impl Iterator<Item = Option<f64>>) -> Column {
        let (values, present) = gaps(values, 0.0);
        Column { values: Values::Numbers(values), present }
    }

    /// How many rows it has.
    pub fn rows(&self) -> usize {
        match &self.values {
            Values::Texts(texts) => texts.rows.len(),
            Values::Small(values) => values.len(),
            Values::Counts(values) => values.len(),
            Values::Numbers(values) => values.len(),
        }
    }

    /// Writes the value of a row, or nothing.
    fn write(&self, row: usize, text: &mut String) {
        if self.present.as_ref().is_some_and(|present| !present[row]) {
            return;
        }
        let _ = match &self.values {
            Values::Texts(texts) => write!(text, "{}", field(texts.get(row))),
            Values::Small(values) => write!(text, "{}", values[row]),
            Values::Counts(values) => write!(text, "{}", values[row]),
            Values::Numbers(values) => write!(text, "{}", values[row]),
        };
    }

    fn with_gaps<T: Copy>(&self, values: &[T]) -> Vec<Option<T>> {
        let there = |row: usize| self.present.as_ref().is_none_or(|present| present[row]);
        values.iter().enumerate().map(|(row, &value)| there(row).then_some(value)).collect()
    }
}

/// Columns as the bytes of a Parquet file.
pub fn encode<N: AsRef<str>>(columns: &[(N, Column)]) -> Vec<u8> {
    let mut out = Vec::new();
    encode_to(&mut out, columns).expect("memory takes what is written to it");
    out
}

fn encode_to<N: AsRef<str>>(out: impl std::io::Write, columns: &[(N, Column)]) -> std::io::Result<()> {
    let rows = columns.first().map_or(0, |(_, column)| column.rows());
    for (name, column) in columns {
        assert_eq!(column.rows(), rows, "column {} is as long as the others", name.as_ref());
    }
    let columns: Vec<(&str, &Column)> = columns.iter().map(|(name, column)| (name.as_ref(), column)).collect();
    parquet::write(out, &columns, rows)
}

/// Writes a table.
pub fn write<N: AsRef<str>>(path: &Path, columns: &[(N, Column)]) -> Result<(), Problem> {
    let problem = |e: std::io::Error| Problem::new(path.display().to_string(), format!("cannot be written: {e}"));
    let file = File::create(path).map_err(problem)?;
    encode_to(BufWriter::new(file), columns).map_err(problem)
}

/// A table that was read.
#[derive(Debug)]
pub struct Table {
    name: String,
    columns: Vec<(String, Column)>,
    rows: usize,
}

/// Reads a table whole.
pub fn read(path: &Path) -> Result<Table, Problem> {
    let name = path.display().to_string();
    let problem = |e: String| {
        Problem::new(name.clone(), format!("cannot be read: {e}")).help("remove its folder and run the scenario again")
    };
    let bytes = std::fs::read(path).map_err(|e| problem(e.to_string()))?;
    let (columns, rows) = parquet::read(&bytes).map_err(|e| problem(e.to_string()))?;
    Ok(Table { name, columns, rows })
}

impl Table {
    /// Its columns, with their names.
    pub fn columns(&self) -> &[(String, Column)] {
        &self.columns
    }

    /// Gives its columns away.
    pub fn into_columns(self) -> Vec<(String, Column)> {
        self.columns
    }

    /// How many rows it has.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// As CSV: a line for each row after one with the names of the columns; what is not there is empty. `before` are columns that come first and have the
    /// same value in every row. `heads` says whether the names are wanted.
    pub fn csv(&self, before: &[(String, String)], heads: bool) -> String {
        let mut text = String::new();
        if heads {
            let names = before.iter().map(|(name, _)| name).chain(self.columns.iter().map(|(name, _)| name));
            text += &(names.map(|name| field(name)).collect::<Vec<_>>().join(",") + "\n");
        }
        let before: String = before.iter().map(|(_, value)| field(value) + ",").collect();
        for row in 0..self.rows {
            text += &before;
            for (place, (_, column)) in self.columns.iter().enumerate() {
                if place > 0 {
                    text.push(',');
                }
                column.write(row, &mut text);
            }
            text.push('\n');
        }
        text
    }

    fn column(&self, column: &str) -> Result<&Column, Problem> {
        self.columns.iter().find(|(name, _)| name == column).map(|(_, found)| found).ok_or_else(|| self.wrong(column))
    }

    fn wrong(&self, column: &str) -> Problem {
        Problem::new(self.name.clone(), format!("has no column {column} as this version writes it"))
            .help("remove its folder and run the scenario again")
    }

    /// A column of numbers.
    pub fn numbers(&self, column: &str) -> Result<Vec<Option<f64>>, Problem> {
        let found = self.column(column)?;
        let Values::Numbers(values) = &found.values else { return Err(self.wrong(column)) };
        Ok(found.with_gaps(values))
    }

    /// A column of whole numbers.
    pub fn maybe_counts(&self, column: &str) -> Result<Vec<Option<u64>>, Problem> {
        let found = self.column(column)?;
        let Values::Counts(values) = &found.values else { return Err(self.wrong(column)) };
        Ok(found.with_gaps(values))
    }

    /// A column of whole numbers without gaps.
    pub fn counts(&self, column: &str) -> Result<Vec<u64>, Problem> {
        match self.column(column)? {
            Column { values: Values::Counts(values), present: None } => Ok(values.clone()),
            _ => Err(self.wrong(column)),
        }
    }

    /// A column of texts without gaps.
    pub fn texts(&self, column: &str) -> Result<Vec<&str>, Problem> {
        match self.column(column)? {
            Column { values: Values::Texts(texts), present: None } => {
                Ok((0..self.rows).map(|row| texts.get(row)).collect())
            }
            _ => Err(self.wrong(column)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_once_in_the_order_of_its_first_row() {
        let names = ["a", "b", "a", "c"];
        let rows = [3, 2, 0, 3, 1];
        assert_eq!(Column::named(&names, rows.into_iter()), Column::texts(rows.iter().map(|&row| names[row])));
    }
}
