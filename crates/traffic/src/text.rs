//! Text files line by line: where a fault is, and what to do about it.

use std::fmt;

/// What is wrong with a text file, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileFault {
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// The line itself.
    pub source: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: String,
}

impl fmt::Display for FileFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {} ({})", self.line, self.column, self.message, self.help)
    }
}

impl std::error::Error for FileFault {}

/// One line and its number.
#[derive(Clone, Copy)]
pub(crate) struct Line<'a> {
    pub number: usize,
    pub text: &'a str,
}

impl<'a> Line<'a> {
    /// The lines of a file that are neither blank nor a comment.
    pub fn all(text: &'a str) -> impl Iterator<Item = Line<'a>> {
        // Spreadsheets put a byte-order mark in front.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        (1..).zip(text.lines()).map(|(number, text)| Line { number, text }).filter(|line| {
            let text = line.text.trim();
            !text.is_empty() && !text.starts_with('#')
        })
    }

    /// A fault at a part of the line, which must be a slice of it.
    pub fn fault(self, part: &str, message: impl Into<String>, help: impl Into<String>) -> FileFault {
        let offset = (part.as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize);
        let before = self.text.get(..offset).unwrap_or(self.text);
        FileFault {
            line: self.number,
            column: before.chars().count() + 1,
            source: self.text.into(),
            message: message.into(),
            help: help.into(),
        }
    }

    /// The end of the line, for what is missing there.
    pub fn end(self) -> &'a str {
        &self.text[self.text.len()..]
    }
}

/// A word in quotation marks, cut where it is long and with nothing in it that a terminal obeys.
pub(crate) fn quoted(text: &str) -> String {
    const LONGEST: usize = 48;
    let shown: String = text.chars().take(LONGEST).collect();
    format!("{shown:?}{}", if shown.len() < text.len() { "…" } else { "" })
}
