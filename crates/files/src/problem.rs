//! What is wrong with an input, where, and what to do about it.

use serde_json::{Value, json};
use std::fmt;
use std::io::Read;
use std::ops::Deref;
use std::path::Path;

/// The longest piece of an input line that a [`Problem`] shows, in characters.
const SHOWN: usize = 120;

/// The largest file [`read_text`] reads, in bytes.
const LARGEST_FILE: u64 = 4 << 30;

/// What sort of thing is wrong, for programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cause {
    /// Anything else.
    #[default]
    Other,
    /// A file cannot be read.
    Unreadable,
    /// The text is not of its format.
    Syntax,
    /// There is no such key.
    UnknownKey,
    /// A key is missing.
    MissingKey,
    /// A value is not one that its key takes.
    Value,
    /// The fabric has no such node, port or path.
    Fabric,
    /// A run did not keep what it promises.
    BrokenPromise,
}

impl Cause {
    /// Its name in JSON and in Python.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Other => "other",
            Cause::Unreadable => "unreadable",
            Cause::Syntax => "syntax",
            Cause::UnknownKey => "unknown-key",
            Cause::MissingKey => "missing-key",
            Cause::Value => "value",
            Cause::Fabric => "fabric",
            Cause::BrokenPromise => "broken-promise",
        }
    }
}

/// An option by which an input was given, where it is not in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Given {
    /// `--set` with that assignment.
    Set(String),
    /// `--vary` with that key and value, or that axis.
    Vary(String),
    /// `--schemes`.
    Schemes,
    /// No option: the preset of that name has it.
    Preset(String),
}

impl Given {
    /// What was assigned to which key, if it was that.
    pub fn assignment(&self) -> Option<&str> {
        match self {
            Given::Set(assignment) | Given::Vary(assignment) => Some(assignment),
            Given::Schemes | Given::Preset(_) => None,
        }
    }
}

/// Something wrong with an input.
///
/// Its fields are those of [`Details`]. It prints as
///
/// ```text
/// flow.txt:17:11: size "-5" is not a whole number of bytes above zero
///    17 | 0 1 3 100 -5 2.0
///       |           ^
///   help: write a size in bytes, such as 10000
/// ```
// The details are boxed because readers return a `Result` per value: a wide error would slow down the good case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem(Box<Details>);

/// The parts of a [`Problem`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// The file, as its reader names it.
    pub file: String,
    /// The line, counted from 1.
    pub line: Option<usize>,
    /// The column in characters, counted from 1.
    pub column: Option<usize>,
    /// The offending line, or the part of it around the column where it is long.
    pub source: Option<String>,
    /// How many characters of `source` come before the offending one.
    pub caret: Option<usize>,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
    /// The key at fault, from the root, joined by dots and with places in arrays counted from 0: `flow.0.size`.
    pub key: Option<String>,
    /// What was probably meant by the word at this place.
    pub meant: Option<String>,
    /// What sort of thing is wrong.
    pub cause: Cause,
    /// The option at fault, where there is one.
    pub given: Option<Given>,
    /// Which of several runs it is about.
    pub run: Option<String>,
    /// What else is wrong with the same input, each without more of its own.
    pub more: Vec<Problem>,
}

impl Deref for Problem {
    type Target = Details;
    fn deref(&self) -> &Details {
        &self.0
    }
}

impl Problem {
    /// A problem with `file` as a whole.
    pub fn new(file: impl Into<String>, message: impl Into<String>) -> Problem {
        Problem(Box::new(Details { file: file.into(), message: message.into(), ..Details::default() }))
    }

    /// Says which line the problem is on, counted from 1.
    pub fn at_line(mut self, line: usize) -> Problem {
        self.0.line = Some(line);
        self
    }

    /// Says which line and column the problem is at, both counted from 1, and shows the line.
    ///
    /// Of a long line only the part around the column is kept.
    pub fn at(mut self, line: usize, column: usize, source: &str) -> Problem {
        let before = column.saturating_sub(1);
        // A third of what is shown comes before the column, so that the reader sees what led up to it.
        let skip = if before < SHOWN { 0 } else { before - SHOWN / 3 };
        let mut rest = source.chars().skip(skip);
        let shown: String = rest.by_ref().take(SHOWN).map(printable).collect();
        let start = if skip > 0 { "…" } else { "" };
        let end = if rest.next().is_some() { "…" } else { "" };
        self.0.line = Some(line);
        self.0.column = Some(column);
        self.0.caret = Some(before - skip + start.chars().count());
        self.0.source = Some(format!("{start}{shown}{end}"));
        self
    }

    /// The same with another line shown for it.
    pub fn showing(mut self, source: Option<String>) -> Problem {
        self.0.source = source;
        self
    }

    /// Replaces what is wrong, and keeps where.
    pub fn saying(mut self, message: impl Into<String>) -> Problem {
        self.0.message = message.into();
        self
    }

    /// Says which key is at fault.
    pub fn key(mut self, path: impl Into<String>) -> Problem {
        self.0.key = Some(path.into()).filter(|path: &String| !path.is_empty());
        self
    }

    /// Says what was probably meant instead.
    pub fn meant(mut self, word: Option<&str>) -> Problem {
        self.0.meant = word.map(String::from);
        self
    }

    /// Says which option is at fault.
    pub fn given(mut self, given: Given) -> Problem {
        self.0.given = Some(given);
        self
    }

    /// Several problems as one, in the order of their places; nothing if there are none.
    pub fn all(problems: impl IntoIterator<Item = Problem>) -> Option<Problem> {
        let mut all: Vec<Problem> = Vec::new();
        for problem in problems.into_iter().flat_map(Problem::split) {
            if !all.contains(&problem) {
                all.push(problem);
            }
        }
        // Those without a line are about the whole, or about the command line.
        all.sort_by_key(|problem| (problem.line.is_none(), problem.line, problem.column));
        let mut all = all.into_iter();
        let mut first = all.next()?;
        first.0.more = all.collect();
        Some(first)
    }

    /// Each of them by itself.
    pub fn split(mut self) -> Vec<Problem> {
        let more = std::mem::take(&mut self.0.more);
        std::iter::once(self).chain(more).collect()
    }

    /// The same with each of them changed.
    pub fn map(mut self, change: impl Fn(Problem) -> Problem) -> Problem {
        let more = std::mem::take(&mut self.0.more);
        let mut first = change(self);
        first.0.more.extend(more.into_iter().map(change));
        first
    }

    /// Says which of several runs it is about.
    pub fn in_run(mut self, run: impl Into<String>) -> Problem {
        self.0.run = Some(run.into());
        self
    }

    /// Says what sort of thing is wrong.
    pub fn cause(mut self, cause: Cause) -> Problem {
        self.0.cause = cause;
        self
    }

    /// Whether it, and all that is wrong besides, is with options of the command line alone.
    pub fn is_usage(&self) -> bool {
        // Other simulators' options have one dash; a dash alone is standard input.
        self.file.len() > 1 && self.file.starts_with('-') && self.more.iter().all(Problem::is_usage)
    }

    /// Its fields, and as `text` the whole of it as it prints.
    pub fn json(&self) -> Value {
        json!({
            "message": self.message,
            "help": self.help,
            "file": self.file,
            "line": self.line,
            "column": self.column,
            "key": self.key,
            "meant": self.meant,
            "cause": self.cause.name(),
            "run": self.run,
            "text": self.to_string(),
        })
    }

    /// Says what to do about it. Where a preset is at fault, that includes how to override it.
    pub fn help(mut self, help: impl Into<String>) -> Problem {
        let mut help = help.into();
        if let (Some(Given::Preset(name)), Some(key)) = (&self.given, &self.key) {
            help += &format!("; the preset \"{name}\" has set this, and a {key} of your own overrides it");
        }
        self.0.help = Some(help);
        self
    }
}

/// Keeps each character one column wide, and an input from steering the terminal.
fn printable(c: char) -> char {
    match c {
        '\t' => ' ',
        c if c.is_control() => '\u{fffd}',
        c => c,
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        for place in [self.line, self.column].into_iter().flatten() {
            write!(f, ":{place}")?;
        }
        write!(f, ": {}", self.message)?;
        if let Some(run) = &self.run {
            write!(f, " (in the run {run})")?;
        }
        if let (Some(line), Some(source)) = (self.line, &self.source) {
            let line = line.to_string();
            let width = line.len().max(5);
            write!(f, "\n{line:>width$} | {}", source.trim_end())?;
            if let Some(caret) = self.caret {
                write!(f, "\n{:>width$} | {:caret$}^", "", "")?;
            }
        }
        if let Some(help) = &self.help {
            write!(f, "\n  help: {help}")?;
        }
        self.more.iter().try_for_each(|problem| write!(f, "\n{problem}"))
    }
}

impl std::error::Error for Problem {}

/// Reads a whole text file.
///
/// A file that cannot be read, a directory, a file above 4 GiB and text that is not UTF-8 are each a [`Problem`] that
/// says what to do.
pub fn read_text(path: &Path) -> Result<String, Problem> {
    read_text_up_to(path, LARGEST_FILE)
}

fn read_text_up_to(path: &Path, largest: u64) -> Result<String, Problem> {
    let problem = |message: String| Problem::new(path.display().to_string(), message).cause(Cause::Unreadable);
    let unreadable = |error: std::io::Error| {
        let problem = problem(format!("cannot be read: {error}"));
        match error.kind() {
            std::io::ErrorKind::NotFound if path.is_relative() => {
                problem.help("check the name; it is taken from the current directory")
            }
            std::io::ErrorKind::NotFound => problem.help("check the name"),
            std::io::ErrorKind::PermissionDenied => problem.help("give yourself permission to read it"),
            _ => problem.help("check that the file is whole and its disk is mounted"),
        }
    };
    let too_large = || {
        problem(format!("is larger than {largest} bytes, the most that is read"))
            .help("check that this is the right file; an input of that size cannot be run")
    };
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if metadata.is_dir() {
        return Err(problem("is a directory, not a file".into()).help("name a file inside it"));
    }
    if metadata.len() > largest {
        return Err(too_large());
    }
    // A pipe or a device has no length beforehand, so the limit holds while reading too.
    let mut bytes = Vec::new();
    file.take(largest.saturating_add(1)).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > largest {
        return Err(too_large());
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let before = error.as_bytes().get(..good).unwrap_or_default();
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let byte = error.as_bytes().get(good).copied().unwrap_or_default();
        problem(format!("is not UTF-8 text: byte 0x{byte:02x} at offset {good}"))
            .at_line(line)
            .help("check that this is the right file, and save it as plain text in UTF-8")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_shows_the_place_the_line_and_the_remedy() {
        let problem = Problem::new("flow.txt", "size \"-5\" is not a whole number of bytes above zero")
            .at(17, 11, "0 1 3 100 -5 2.0")
            .help("write a size in bytes, such as 10000");
        let expected = "\
flow.txt:17:11: size \"-5\" is not a whole number of bytes above zero
   17 | 0 1 3 100 -5 2.0
      |           ^
  help: write a size in bytes, such as 10000";
        assert_eq!(problem.to_string(), expected);
        assert_eq!((problem.line, problem.column), (Some(17), Some(11)));
    }

    #[test]
    fn several_problems_are_one_that_names_each_once_in_order() {
        let at = |line: usize| Problem::new("a.toml", format!("bad {line}")).at_line(line);
        assert_eq!(Problem::all([]), None);
        let both = Problem::all([at(3), Problem::new("--set x=1", "is bad")]).unwrap();
        let all = Problem::all([both, at(2), at(3)]).unwrap();
        assert_eq!(all.to_string(), "a.toml:2: bad 2\na.toml:3: bad 3\n--set x=1: is bad");
        let runs = all.map(|problem| problem.in_run("seed 1"));
        assert!(runs.clone().split().iter().all(|problem| problem.run.is_some() && problem.more.is_empty()));
        assert_eq!(runs.split().len(), 3);
    }

    #[test]
    fn a_problem_with_options_alone_is_one_of_usage() {
        let option = Problem::new("--seeds", "is bad");
        let set = Problem::new("--set x=1", "is bad").given(Given::Set("x=1".into()));
        assert!(option.is_usage() && Problem::all([option.clone(), set]).unwrap().is_usage());
        let file = Problem::new("a.toml", "is bad");
        assert!(!file.is_usage() && !Problem::all([option, file]).unwrap().is_usage());
    }

    #[test]
    fn a_problem_of_a_preset_says_how_to_override_it() {
        let problem = Problem::new("preset \"p\"", "no window").given(Given::Preset("p".into())).key("scheme.window");
        let help = problem.help("write \"bdp\"").help.clone().unwrap();
        assert!(
            help.starts_with("write \"bdp\"") && help.contains("a scheme.window of your own overrides it"),
            "{help}"
        );
    }

    #[test]
    fn a_problem_without_a_place_is_one_line() {
        assert_eq!(Problem::new("a.txt", "is empty").to_string(), "a.txt: is empty");
        assert_eq!(Problem::new("a.txt", "is bad").at_line(3).to_string(), "a.txt:3: is bad");
    }

    #[test]
    fn a_long_line_is_cut_to_the_part_around_the_column() {
        let line: String = (0..5_000).map(|i| if i == 3_000 { 'X' } else { 'ä' }).collect();
        let problem = Problem::new("a.txt", "bad").at(1, 3_001, &line);
        let source = problem.source.as_deref().unwrap();
        assert_eq!(source.chars().count(), SHOWN + 2);
        assert!(source.starts_with('…') && source.ends_with('…'));
        assert_eq!(source.chars().nth(problem.caret.unwrap()), Some('X'));

        let problem = Problem::new("a.txt", "bad").at(1, 2, &line);
        assert!(problem.source.as_deref().unwrap().starts_with('ä'));
        assert_eq!(problem.caret, Some(1));
    }

    #[test]
    fn a_column_beyond_the_line_is_harmless() {
        let problem = Problem::new("a.txt", "bad").at(1, 1_000_000, "short");
        assert!(problem.to_string().starts_with("a.txt:1:1000000: bad"));
        let problem = Problem::new("a.txt", "bad").at(0, 0, "");
        assert!(problem.to_string().starts_with("a.txt:0:0: bad"));
    }

    #[test]
    fn a_tab_and_an_escape_do_not_move_the_caret() {
        let problem = Problem::new("a.txt", "bad").at(2, 4, "\t\u{1b}[x\r");
        let expected = "a.txt:2:4: bad\n    2 |  \u{fffd}[x\u{fffd}\n      |    ^";
        assert_eq!(problem.to_string(), expected);
    }

    #[test]
    fn a_large_line_number_widens_the_margin() {
        let problem = Problem::new("a.txt", "bad").at(12_345_678, 1, "x");
        assert_eq!(problem.to_string(), "a.txt:12345678:1: bad\n12345678 | x\n         | ^");
    }

    #[test]
    fn a_file_that_cannot_be_read_as_text_is_refused_with_a_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        let error = read_text(&path).unwrap_err();
        assert!(error.message.starts_with("cannot be read"), "{error}");
        assert!(error.help.is_some());
        assert!(read_text(Path::new("no/such/file")).unwrap_err().to_string().contains("current directory"));

        let error = read_text(folder.path()).unwrap_err();
        assert_eq!(error.message, "is a directory, not a file");

        std::fs::write(&path, b"one\ntwo \xff").unwrap();
        let error = read_text(&path).unwrap_err();
        assert_eq!(error.line, Some(2));
        assert_eq!(error.message, "is not UTF-8 text: byte 0xff at offset 8");

        std::fs::write(&path, "four").unwrap();
        assert_eq!(read_text(&path).unwrap(), "four");
        assert_eq!(read_text_up_to(&path, 4).unwrap(), "four");
        let error = read_text_up_to(&path, 3).unwrap_err();
        assert!(error.message.contains("larger than 3 bytes"), "{error}");
    }

    #[test]
    fn a_file_above_the_limit_is_refused_before_it_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sparse.txt");
        std::fs::File::create(&path).unwrap().set_len(LARGEST_FILE + 1).unwrap();
        assert!(read_text(&path).unwrap_err().message.contains("larger than"));
    }
}
