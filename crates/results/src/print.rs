//! How tables are written: columns for people, CSV for programs.

/// A size for people, exact: `1.5KB`.
pub fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes}B"),
        1_000..1_000_000 => format!("{}KB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{}MB", bytes as f64 / 1e6),
        _ => format!("{}GB", bytes as f64 / 1e9),
    }
}

/// Lines of cells in columns, each as wide as it must be. `left` says which are aligned to the left.
pub(crate) fn columns(table: &[Vec<String>], left: impl Fn(usize) -> bool) -> String {
    let width = |column: usize| table.iter().filter_map(|line| line.get(column)).map(|c| c.chars().count()).max();
    let widths: Vec<usize> = (0..).map_while(width).collect();
    let mut text = String::new();
    for line in table {
        let cells = line.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if left(column) { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        text += &format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
    text
}

/// A field of CSV, in quotes where it must be.
pub(crate) fn field(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.into(),
    }
}

/// A number in CSV, in full; empty where there is none.
pub(crate) fn number(value: Option<f64>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_longest_cell_and_lines_have_no_blanks_at_the_end() {
        let table = [vec!["µ".into(), "long".into(), "end".into()], vec!["ab".into(), "1".into(), "".into()]];
        assert_eq!(columns(&table, |column| column != 1), "µ   long  end\nab     1\n");
    }

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        assert_eq!([field("a b"), field("a,b"), field("a\"b")], ["a b", "\"a,b\"", "\"a\"\"b\""]);
        assert_eq!([number(Some(0.1)), number(None)], ["0.1", ""]);
    }
}
