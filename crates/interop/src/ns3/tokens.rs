//! Words separated by white space, and the quantities in them.
//!
//! The reference reads with C++ `>>`, so line breaks mean nothing to it: a file with everything on one line is valid.
//! Lines and columns are tracked only to say where a problem is.

use std::fmt;
use std::ops::RangeInclusive;

use engine::units::{Rate, Time};

use files::problem::Problem;

/// The fastest rate accepted, 100 Tb/s: what is computed from a rate then fits its integers.
pub const MAX_RATE: Rate = Rate(100_000_000_000_000);

/// Link delays without a unit are refused from so many seconds on.
const LONG_S: f64 = 0.01;

/// The longest link delay accepted, 1000 s.
pub const MAX_DELAY: Time = Time::from_ms(1_000_000);

/// The latest instant accepted, in seconds. It leaves room below the end of [`Time`].
pub const MAX_SECONDS: f64 = 18_000_000.0;

/// One word of a file, and where it stands.
#[derive(Clone, Copy, Debug)]
pub struct Token<'a> {
    /// The word.
    pub text: &'a str,
    /// Its line, counted from 1.
    pub line: usize,
    /// Its first character's column, counted from 1.
    pub column: usize,
    /// Whether it is the first word of its line.
    pub starts_line: bool,
    source: &'a str,
}

impl<'a> Token<'a> {
    /// A problem with this word in `file`.
    pub fn problem(&self, file: &str, message: impl Into<String>) -> Problem {
        Problem::new(file, message).at(self.line, self.column, self.source)
    }

    /// The word in quotation marks: cut where it is long, and with nothing in it that a terminal obeys.
    pub fn quoted(&self) -> String {
        quoted(self.text)
    }

    /// The same place with another word, for a value that a file leaves out.
    pub fn reading(self, text: &'a str) -> Token<'a> {
        Token { text, ..self }
    }

    /// The words of its line.
    pub fn line_words(&self) -> Vec<&'a str> {
        words(self.source).collect()
    }

    /// Whether this word opens a line of prose.
    ///
    /// Many input files of the reference end with a few lines that explain the format. It never reads them.
    /// A line of data starts with a number; one with a slip in its first word still has a number as its second.
    pub(super) fn opens_a_note(&self) -> bool {
        self.starts_line && words(self.source).take(2).all(|word| !looks_numeric(word))
    }
}

/// `text` in quotation marks, cut to a few words' length and escaped.
pub fn quoted(text: &str) -> String {
    const LONGEST: usize = 48;
    let mut characters = text.chars();
    let mut shown: String = characters.by_ref().take(LONGEST).collect();
    if characters.next().is_some() {
        shown.push('…');
    }
    format!("{shown:?}")
}

/// White space as C++ has it in its default locale.
fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(is_space).filter(|word| !word.is_empty())
}

fn looks_numeric(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.'))
}

/// The words of one file, in order.
#[derive(Clone, Debug)]
pub struct Tokens<'a> {
    file: &'a str,
    lines: std::str::Split<'a, char>,
    /// The current line, and what of it is still to be read.
    source: &'a str,
    rest: &'a str,
    line: usize,
    column: usize,
    peeked: Option<Token<'a>>,
    last: Option<Token<'a>>,
}

/// What a value should be; the words of the problem if it is not.
#[derive(Clone, Copy, Debug)]
pub struct Want<'a> {
    /// What the value is, as in "size".
    pub what: &'a str,
    /// What it must be, as in "a whole number of bytes above zero".
    pub is: &'a str,
    /// What to write instead.
    pub help: &'a str,
}

/// A number of records that a file announces before it lists them.
#[derive(Clone, Copy, Debug)]
pub struct Announced<'a> {
    /// Where the number stands.
    pub token: Token<'a>,
    /// The number.
    pub count: u64,
    /// What is counted, in the plural, as in "flows".
    pub what: &'a str,
    /// How many words one of them has.
    pub fields: usize,
}

impl<'a> Tokens<'a> {
    /// The words of `text`, which is what `file` holds.
    pub fn new(file: &'a str, text: &'a str) -> Tokens<'a> {
        let lines = text.split('\n');
        Tokens { file, lines, source: "", rest: "", line: 0, column: 1, peeked: None, last: None }
    }

    /// The file's name.
    pub fn file(&self) -> &'a str {
        self.file
    }

    /// The next word, left in place.
    pub fn peek(&mut self) -> Option<Token<'a>> {
        if self.peeked.is_none() {
            self.peeked = self.advance();
        }
        self.peeked
    }

    /// A problem at the last word read, or with the whole file if it has none.
    pub fn problem_here(&self, message: impl Into<String>) -> Problem {
        match self.last {
            Some(last) => last.problem(self.file, message),
            None => Problem::new(self.file, message),
        }
    }

    fn advance(&mut self) -> Option<Token<'a>> {
        loop {
            if let Some(start) = self.rest.find(|c| !is_space(c)) {
                let (_, rest) = self.rest.split_at(start);
                let (text, rest) = rest.split_at(rest.find(is_space).unwrap_or(rest.len()));
                // White space is ASCII: its bytes are its columns.
                let column = self.column + start;
                let starts_line = self.rest.len() == self.source.len();
                self.rest = rest;
                self.column = column + text.chars().count();
                return Some(Token { text, line: self.line, column, starts_line, source: self.source });
            }
            let line = self.lines.next()?;
            self.source = line.strip_suffix('\r').unwrap_or(line);
            self.rest = self.source;
            self.line += 1;
            self.column = 1;
        }
    }

    fn not(&self, token: Token<'_>, want: Want<'_>) -> Problem {
        token.problem(self.file, format!("{} {} is not {}", want.what, token.quoted(), want.is)).help(want.help)
    }

    /// The whole number in `token`, if it is in `range`.
    pub fn whole(&self, token: Token<'_>, want: Want<'_>, range: RangeInclusive<u64>) -> Result<u64, Problem> {
        let value = token.text.parse().ok().filter(|value| range.contains(value));
        value.ok_or_else(|| self.not(token, want))
    }

    /// The number in `token`, if `allowed` allows it. It is finite.
    pub fn number(&self, token: Token<'_>, want: Want<'_>, allowed: impl Fn(f64) -> bool) -> Result<f64, Problem> {
        let value = token.text.parse().ok().filter(|value: &f64| value.is_finite() && allowed(*value));
        value.ok_or_else(|| self.not(token, want))
    }

    /// The rate in `token`, as ns-3 reads one. It may be zero.
    pub fn rate(&self, token: Token<'_>, what: &str) -> Result<Rate, Problem> {
        parse_rate(token.text).map_err(|reason| {
            token
                .problem(self.file, format!("{what} {} {reason}", token.quoted()))
                .help("write a number and a unit, such as 100Gbps or 40Mb/s")
        })
    }

    /// The delay in `token`, as ns-3 reads one: cut to whole nanoseconds. It may be zero.
    pub fn delay(&self, token: Token<'_>, what: &str) -> Result<Time, Problem> {
        // A bare number is seconds to ns-3, and hardly ever meant so.
        if let Ok(number @ LONG_S..f64::INFINITY) = token.text.parse::<f64>() {
            let message = format!("{what} {} has no unit, and the reference takes it for seconds", token.quoted());
            // Without an exponent, which is refused, and not so long or so short that it is refused in turn.
            let mut readable: Vec<String> = ["ns", "us", "ms"].iter().map(|unit| format!("{number}{unit}")).collect();
            readable.retain(|delay| parse_delay(delay).is_ok_and(|delay| delay > Time::ZERO));
            let remedy = match readable.split_last() {
                Some((last, [])) => format!("write {last}"),
                Some((last, before)) => format!("write {} or {last}", before.join(", ")),
                None => "write a number and a unit, such as 1us or 0.001ms".into(),
            };
            return Err(token.problem(self.file, message).help(remedy));
        }
        parse_delay(token.text).map_err(|reason| {
            token
                .problem(self.file, format!("{what} {} {reason}", token.quoted()))
                .help("write a number and a unit, such as 1us or 0.001ms")
        })
    }

    /// Reads how many records of `fields` words follow.
    pub fn announced(&mut self, what: &'a str, fields: usize) -> Result<Announced<'a>, Problem> {
        let Some(token) = self.next() else {
            return Err(self
                .problem_here(format!("the file ends before the number of {what}"))
                .help(format!("write how many {what} there are, then the {what}")));
        };
        let is = format!("the number of {what}, a whole number");
        let help = format!("write how many {what} there are, then the {what}");
        let want = Want { what: "count", is: &is, help: &help };
        let count = self.whole(token, want, 0..=u64::from(u32::MAX))?;
        Ok(Announced { token, count, what, fields })
    }

    /// Reads the words of the next record; `done` of those announced came before it.
    pub fn record<const N: usize>(
        &mut self,
        announced: &Announced<'_>,
        done: usize,
    ) -> Result<[Token<'a>; N], Problem> {
        let first = match self.peek() {
            None => return Err(self.ends_early(announced, done, 0)),
            Some(note) if note.opens_a_note() => return Err(self.ends_early(announced, done, 0)),
            Some(first) => first,
        };
        let mut record = [first; N];
        for (read, slot) in record.iter_mut().enumerate() {
            *slot = self.next().ok_or_else(|| self.ends_early(announced, done, read))?;
        }
        Ok(record)
    }

    fn ends_early(&self, announced: &Announced<'_>, done: usize, read: usize) -> Problem {
        let Announced { token, count, what, fields } = announced;
        let partly = if read == 0 { String::new() } else { format!(" and {read} of the next one's {fields} values") };
        let line = token.line;
        self.problem_here(format!(
            "the file ends after {done} of the {count} {what} that line {line} announces{partly}"
        ))
        .help(format!("add what is missing, or announce {done} {what} on line {line}"))
    }

    /// The problem that a file begins with its first record of `fields` words, and not with the number of them.
    ///
    /// A line break after a count and a part of a record would be valid, but nobody writes that: this is for files that cannot be
    /// read as they are.
    pub fn uncounted(mut self, what: &str, fields: usize) -> Option<Problem> {
        let first = self.next().filter(|first| looks_numeric(first.text) && words(first.source).count() == fields)?;
        let all = 1 + self.by_ref().take_while(|token| !token.opens_a_note()).count();
        let help = match all.is_multiple_of(fields) {
            true => format!("write {} on a line before it", all / fields),
            false => format!("write the number of {what}s on a line before it"),
        };
        let message = format!("the file begins with a {what}, and not with the number of {what}s");
        Some(first.problem(self.file, message).help(help))
    }

    /// What stands after the last record announced, if it is more than notes.
    pub fn surplus(mut self, announced: &Announced<'_>) -> Option<Problem> {
        let Announced { token, count, what, fields } = announced;
        let first = self.next().filter(|token| !token.opens_a_note())?;
        let more = 1 + self.by_ref().take_while(|token| !token.opens_a_note()).count();
        let line = token.line;
        let help = if more.is_multiple_of(*fields) {
            let all = count + (more / fields) as u64;
            format!("announce {all} {what} on line {line}, or remove what comes after the first {count}")
        } else {
            format!("correct the number of {what} on line {line}, or remove what comes after the first {count}")
        };
        let message = format!("{} comes after the {count} {what} that line {line} announces", first.quoted());
        Some(first.problem(self.file, message).help(help))
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;
    fn next(&mut self) -> Option<Token<'a>> {
        let token = self.peeked.take().or_else(|| self.advance());
        self.last = token.or(self.last);
        token
    }
}

const RATE_UNITS: &[(&str, f64)] = &[
    ("bps", 1.0),
    ("b/s", 1.0),
    ("Bps", 8.0),
    ("B/s", 8.0),
    ("kbps", 1e3),
    ("kb/s", 1e3),
    ("Kbps", 1e3),
    ("Kb/s", 1e3),
    ("kBps", 8e3),
    ("kB/s", 8e3),
    ("KBps", 8e3),
    ("KB/s", 8e3),
    ("Kib/s", 1024.0),
    ("KiB/s", 8192.0),
    ("Mbps", 1e6),
    ("Mb/s", 1e6),
    ("MBps", 8e6),
    ("MB/s", 8e6),
    ("Mib/s", 1_048_576.0),
    ("MiB/s", 8_388_608.0),
    ("Gbps", 1e9),
    ("Gb/s", 1e9),
    ("GBps", 8e9),
    ("GB/s", 8e9),
    ("Gib/s", 1_073_741_824.0),
    ("GiB/s", 8_589_934_592.0),
];

/// How many nanoseconds a unit has, or how many of the unit a nanosecond has.
enum Scale {
    Times(u64),
    Over(u64),
}

const TIME_UNITS: &[(&str, Scale)] = &[
    ("s", Scale::Times(1_000_000_000)),
    ("ms", Scale::Times(1_000_000)),
    ("us", Scale::Times(1_000)),
    ("ns", Scale::Times(1)),
    ("ps", Scale::Over(1_000)),
    ("fs", Scale::Over(1_000_000)),
    ("min", Scale::Times(60_000_000_000)),
    ("h", Scale::Times(3_600_000_000_000)),
    ("d", Scale::Times(86_400_000_000_000)),
    ("y", Scale::Times(31_536_000_000_000_000)),
];

/// The number in front of a unit. ns-3 takes digits and a point there, and no exponent.
fn decimal(number: &str) -> Option<f64> {
    number.parse().ok().filter(|value: &f64| value.is_finite())
}

fn names<T>(units: &[(&str, T)]) -> String {
    units.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" ")
}

/// Why a word is not a quantity. Its text completes a sentence that starts with the word itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenError {
    /// It is below zero.
    Negative,
    /// It has no number that a rate can have.
    NotARate,
    /// It has no number that a time can have.
    NotATime,
    /// It is a rate with a point and without a unit.
    NoUnit,
    /// It has none of the units of rates.
    RateUnit,
    /// It has none of the units of times.
    TimeUnit,
    /// It is above [`MAX_RATE`].
    TooFast,
    /// It is above [`MAX_DELAY`].
    TooLong,
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TokenError::Negative => f.write_str("is negative"),
            TokenError::NotARate => f.write_str("is not a rate"),
            TokenError::NotATime => f.write_str("is not a time"),
            TokenError::NoUnit => f.write_str("has no unit, and bits per second are whole"),
            TokenError::RateUnit => write!(f, "has none of the units {}", names(RATE_UNITS)),
            TokenError::TimeUnit => write!(f, "has none of the units {}", names(TIME_UNITS)),
            TokenError::TooFast => f.write_str("is above 100 Tb/s"),
            TokenError::TooLong => f.write_str("is above 1000 s"),
        }
    }
}

impl std::error::Error for TokenError {}

/// Reads a rate as ns-3 does: a number and a unit, or bare bits per second.
pub fn parse_rate(text: &str) -> Result<Rate, TokenError> {
    if text.starts_with('-') {
        return Err(TokenError::Negative);
    }
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let rate = if unit.is_empty() {
        // The reference stops at a point; what is behind it may be left out only if it is nothing.
        let number = number.split_once('.').map_or(Ok(number), |(whole, rest)| {
            if whole.is_empty() || rest.bytes().any(|digit| digit != b'0') {
                Err(TokenError::NoUnit)
            } else {
                Ok(whole)
            }
        })?;
        if number.is_empty() {
            return Err(TokenError::NotARate);
        }
        // Only digits are left, so that what does not fit is too large.
        number.parse().map_err(|_| TokenError::TooFast)?
    } else {
        let number = decimal(number).ok_or(TokenError::NotARate)?;
        let unit = RATE_UNITS.iter().find(|(name, _)| *name == unit);
        let (_, scale) = unit.ok_or(TokenError::RateUnit)?;
        // In floating point and cut to whole bits, as the reference does it.
        (number * scale) as u64
    };
    if rate > MAX_RATE.0 { Err(TokenError::TooFast) } else { Ok(Rate(rate)) }
}

/// Reads a time as ns-3 does: a number and a unit, or bare seconds; cut to whole nanoseconds.
pub fn parse_delay(text: &str) -> Result<Time, TokenError> {
    let split = text.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '+' | '-')).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let number = decimal(number).ok_or(TokenError::NotATime)?;
    if number < 0.0 {
        return Err(TokenError::Negative);
    }
    let unit = if unit.is_empty() { "s" } else { unit };
    let (_, scale) = TIME_UNITS.iter().find(|(name, _)| *name == unit).ok_or(TokenError::TimeUnit)?;
    let ns = match scale {
        Scale::Times(factor) => to_ns(number, *factor),
        Scale::Over(divisor) => to_ns(number, 1).map(|value| value / divisor),
    };
    ns.filter(|ns| *ns <= MAX_DELAY.ns()).map(Time::from_ns).ok_or(TokenError::TooLong)
}

/// `seconds` in whole nanoseconds, as the reference converts them.
///
/// It cuts and does not round: 2.000000314 s is 2000000313 ns, because the nearest floating-point number is below.
/// What is negative is 0; what does not fit is the largest number.
pub fn seconds_to_ns(seconds: f64) -> u64 {
    if seconds > 0.0 { to_ns(seconds, 1_000_000_000).unwrap_or(u64::MAX) } else { 0 }
}

/// `value * factor` cut to a whole number, with the 64 binary places that the reference's fixed-point numbers have.
fn to_ns(value: f64, factor: u64) -> Option<u64> {
    const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;
    if !(0.0..TWO_TO_64).contains(&value) {
        return None;
    }
    let whole = value.floor();
    let fraction = (value - whole) * TWO_TO_64;
    let fixed = ((whole as u128) << 64) + fraction as u128;
    u64::try_from(fixed.checked_mul(u128::from(factor))? >> 64).ok()
}

/// Texts that a reader must survive.
#[cfg(test)]
pub(crate) mod fuzz {
    use proptest::prelude::*;
    use proptest::sample::Index;

    const JUNK: &[&str] = &[
        "",
        "-1",
        "-5",
        "0",
        "1",
        "3",
        "+7",
        "0.5",
        "1.5.2",
        "nan",
        "inf",
        "-inf",
        "1e999",
        "1e-400",
        "65535",
        "65536",
        "2147483648",
        "4294967295",
        "4294967296",
        "18446744073709551615",
        "18446744073709551616",
        "99999999999999999999999999999999999999999999",
        "0x10",
        "1us",
        "100Gbps",
        "-1ns",
        "µs",
        "#",
        "CC_MODE",
        "KMAX_MAP",
        "\u{feff}",
        "\0",
        "💧",
        "\n",
        "First line: notes",
    ];

    /// Any bytes, as far as they are text.
    pub(crate) fn any_text() -> impl Strategy<Value = String> {
        let bytes = prop::collection::vec(any::<u8>(), 0..300);
        let words = prop::collection::vec(prop::sample::select(JUNK), 0..60);
        prop_oneof![
            bytes.prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
            words.prop_map(|words| words.join(" ")),
        ]
    }

    /// A valid text with words swapped, replaced, doubled and removed, or cut short.
    pub(crate) fn changed(valid: &'static str) -> impl Strategy<Value = String> {
        let change = (0..5, any::<Index>(), any::<Index>(), prop::sample::select(JUNK));
        let changes = prop::collection::vec(change, 1..4);
        (changes, any::<bool>()).prop_map(move |(changes, one_line)| {
            let mut words: Vec<&str> = valid.split_inclusive(['\n', ' ']).collect();
            for (kind, at, other, junk) in changes {
                if words.is_empty() {
                    break;
                }
                let (at, other) = (at.index(words.len()), other.index(words.len()));
                match kind {
                    0 => words.truncate(at),
                    1 => words.swap(at, other),
                    2 => {
                        words[at] = junk;
                        words.insert(at + 1, " ");
                    }
                    3 => words.insert(at, words[other]),
                    _ => drop(words.remove(at)),
                }
            }
            let text: String = words.concat();
            if one_line { text.replace('\n', " ") } else { text }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_know_their_line_and_column() {
        let text = "a  bb\r\n\n\tç dd\x0bee\n";
        let found: Vec<_> =
            Tokens::new("f", text).map(|t| (t.text, t.line, t.column, t.starts_line, t.source)).collect();
        let expected = [
            ("a", 1, 1, true, "a  bb"),
            ("bb", 1, 4, false, "a  bb"),
            ("ç", 3, 2, true, "\tç dd\x0bee"),
            ("dd", 3, 4, false, "\tç dd\x0bee"),
            ("ee", 3, 7, false, "\tç dd\x0bee"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn looking_ahead_takes_nothing() {
        let mut tokens = Tokens::new("f", "a b");
        assert_eq!(tokens.peek().unwrap().text, "a");
        assert_eq!(tokens.peek().unwrap().text, "a");
        assert_eq!(tokens.next().unwrap().text, "a");
        assert_eq!(tokens.next().unwrap().text, "b");
        assert!(tokens.peek().is_none() && tokens.next().is_none());
        assert_eq!(tokens.problem_here("end").column, Some(3));
    }

    #[test]
    fn rates_are_read_as_ns3_reads_them() {
        let rate = |text| parse_rate(text).map(Rate::bps);
        assert_eq!(rate("100Gbps"), Ok(100_000_000_000));
        assert_eq!(rate("40Mb/s"), Ok(40_000_000));
        assert_eq!(rate("0.5kb/s"), Ok(500));
        assert_eq!(rate("2KBps"), Ok(16_000));
        assert_eq!(rate("1Kib/s"), Ok(1024));
        assert_eq!(rate("1GiB/s"), Ok(8 << 30));
        assert_eq!(rate("25000000000"), Ok(25_000_000_000));
        assert_eq!(rate("25000000000.0"), Ok(25_000_000_000));
        assert_eq!(rate("1.9bps"), Ok(1));
        assert_eq!(rate("0Gbps"), Ok(0));
        assert_eq!(rate("100000Gbps"), Ok(MAX_RATE.0));
    }

    #[test]
    fn a_bad_rate_says_what_is_wrong_with_it() {
        let error = |text: &str| parse_rate(text).unwrap_err().to_string();
        assert_eq!(error("-1Gbps"), "is negative");
        assert!(error("100gbps").contains("none of the units bps b/s"));
        assert!(error("1e9bps").contains("none of the units"));
        assert_eq!(error("Gbps"), "is not a rate");
        assert_eq!(error("1.2.3Gbps"), "is not a rate");
        assert_eq!(error(".Gbps"), "is not a rate");
        assert_eq!(error(""), "is not a rate");
        assert!(error("1.5").contains("no unit"));
        assert_eq!(error("100001Gbps"), "is above 100 Tb/s");
        assert_eq!(error("99999999999999999999999999"), "is above 100 Tb/s");
        let digits = "9".repeat(400);
        assert_eq!(error(&format!("{digits}Gbps")), "is not a rate");
    }

    #[test]
    fn delays_are_read_as_ns3_reads_them() {
        let ns = |text| parse_delay(text).map(Time::ns);
        assert_eq!(ns("0.001ms"), Ok(1_000));
        assert_eq!(ns("1us"), Ok(1_000));
        assert_eq!(ns("1000ns"), Ok(1_000));
        assert_eq!(ns("+1.9ns"), Ok(1));
        assert_eq!(ns("1999ps"), Ok(1));
        assert_eq!(ns("999ps"), Ok(0));
        assert_eq!(ns("2000000fs"), Ok(2));
        assert_eq!(ns("0.000001"), Ok(999), "the nearest floating-point number is below");
        assert_eq!(ns("1min"), Ok(60_000_000_000));
        assert_eq!(ns("1000s"), Ok(MAX_DELAY.ns()));
    }

    #[test]
    fn a_bad_delay_says_what_is_wrong_with_it() {
        let error = |text: &str| parse_delay(text).unwrap_err().to_string();
        assert_eq!(error("-1us"), "is negative");
        assert_eq!(error("us"), "is not a time");
        assert_eq!(error("1-2us"), "is not a time");
        assert!(error("1µs").contains("none of the units s ms us"));
        assert!(error("1e-6s").contains("none of the units"));
        assert_eq!(error("1001s"), "is above 1000 s");
        assert_eq!(error("99999999999999999999y"), "is above 1000 s");
    }

    #[test]
    fn what_a_delay_without_a_unit_is_told_to_be_is_accepted() {
        for word in ["600", "0.01", "1e3", "1e-2", "2e9", "1e17", "99999999999999999999"] {
            let tokens = Tokens::new("f", word);
            let token = tokens.clone().next().unwrap();
            let help = tokens.delay(token, "delay").unwrap_err().help.clone().unwrap();
            let words = help.trim_start_matches("write ").split([',', ' ']);
            let delays: Vec<&str> = words.filter(|word| word.starts_with(|c: char| c.is_ascii_digit())).collect();
            assert!(!delays.is_empty() && delays.iter().all(|delay| parse_delay(delay).is_ok()), "{word}: {help}");
        }
    }

    #[test]
    fn seconds_are_cut_to_nanoseconds_and_not_rounded() {
        assert_eq!(seconds_to_ns(2.000000314), 2_000_000_313);
        assert_eq!(seconds_to_ns(2.000000335), 2_000_000_335);
        assert_eq!(seconds_to_ns(2.0), 2_000_000_000);
        assert_eq!(seconds_to_ns(-1.0), 0);
        assert_eq!(seconds_to_ns(f64::NAN), 0);
        assert_eq!(seconds_to_ns(f64::INFINITY), u64::MAX);
        assert_eq!(seconds_to_ns(MAX_SECONDS), 18_000_000_000_000_000);
    }

    #[test]
    fn a_long_or_unprintable_word_is_cut_and_escaped() {
        assert_eq!(quoted("\u{feff}A\u{1b}"), "\"\\u{feff}A\\u{1b}\"");
        assert_eq!(quoted(&"ä".repeat(100)).chars().count(), 51);
    }

    proptest! {
        #[test]
        fn any_text_is_cut_into_words_that_stand_where_they_say(text in "(?s).{0,200}") {
            let lines: Vec<&str> = text.split('\n').collect();
            let mut count = 0;
            for token in Tokens::new("f", &text) {
                count += 1;
                let line = lines[token.line - 1];
                let there: String = line.chars().skip(token.column - 1).take(token.text.chars().count()).collect();
                prop_assert_eq!(there, token.text);
                let _ = token.problem("f", token.quoted()).to_string();
            }
            prop_assert_eq!(count, words(&text).count());
        }

        #[test]
        fn any_word_is_a_quantity_or_an_error(word in "[-+.0-9]{0,30}[a-zA-Z/µ]{0,5}", other in "\\PC{0,20}") {
            for word in [&word, &other] {
                let _ = parse_rate(word);
                let _ = parse_delay(word);
            }
        }

        #[test]
        fn any_number_of_seconds_converts(seconds in any::<f64>()) {
            let _ = seconds_to_ns(seconds);
        }
    }
}
