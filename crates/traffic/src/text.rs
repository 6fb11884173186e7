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

/// The most faults of a file that are kept.
const SHOWN: usize = 10;
/// With so many a file is not read on.
const ENOUGH: usize = 1000;

/// All that is wrong with a text file: at least one fault, unless it is being collected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileFaults {
    first: Vec<FileFault>,
    count: usize,
}

impl FileFaults {
    /// The first of them.
    pub fn list(&self) -> &[FileFault] {
        &self.first
    }

    /// How many there are besides those of the list, in words.
    pub fn more(&self) -> Option<String> {
        match self.count - self.first.len() {
            0 => None,
            more if self.full() => Some(format!("at least {more} more")),
            more => Some(format!("{more} more")),
        }
    }

    pub(crate) fn push(&mut self, fault: FileFault) {
        self.count += 1;
        if self.first.len() < SHOWN {
            self.first.push(fault);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether reading on is of no use.
    pub(crate) fn full(&self) -> bool {
        self.count >= ENOUGH
    }

    /// A value that was read without a fault, or all faults.
    pub(crate) fn or<T>(self, value: T) -> Result<T, FileFaults> {
        if self.is_empty() { Ok(value) } else { Err(self) }
    }
}

impl From<FileFault> for FileFaults {
    fn from(fault: FileFault) -> FileFaults {
        FileFaults { first: vec![fault], count: 1 }
    }
}

impl fmt::Display for FileFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.first.iter().map(FileFault::to_string).chain(self.more()).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for FileFaults {}

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
