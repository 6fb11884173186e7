//! Trace files: one flow per line, as comma-separated values.
//!
//! ```text
//! # all-to-one, two senders
//! src,dst,size,start
//! h1,h0,1MB,0us
//! h2,h0,64KB,1.5us
//! ```
//!
//! The first line that is neither blank nor a comment names the columns, in any order. `src`, `dst`, a size and a start are
//! needed, `class` is optional. Where scripts write bare numbers, the column's name has the unit: `size_bytes`,
//! `start_ns`. There is no quoting: names with commas in them cannot be used, numbers can.

use crate::{FlowRequest, MAX_FLOWS, Names};
use engine::{Bytes, Time};
use fabric::topology::Graph;
use std::fmt;
use std::io::{self, Write};

/// What is wrong with a trace file, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
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

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {} ({})", self.line, self.column, self.message, self.help)
    }
}

impl std::error::Error for TraceError {}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Src,
    Dst,
    /// A quantity with its unit.
    Size,
    /// A bare number of bytes.
    SizeBytes,
    /// A quantity with its unit.
    Start,
    /// A bare number; the unit in picoseconds as a power of ten.
    StartIn(u32),
    Class,
}

/// Every column by name.
const COLUMNS: [(&str, Column); 11] = [
    ("src", Column::Src),
    ("dst", Column::Dst),
    ("size", Column::Size),
    ("size_bytes", Column::SizeBytes),
    ("start", Column::Start),
    ("start_ps", Column::StartIn(0)),
    ("start_ns", Column::StartIn(3)),
    ("start_us", Column::StartIn(6)),
    ("start_ms", Column::StartIn(9)),
    ("start_s", Column::StartIn(12)),
    ("class", Column::Class),
];

impl Column {
    /// The field that it fills.
    fn field(self) -> &'static str {
        match self {
            Column::Src => "src",
            Column::Dst => "dst",
            Column::Size | Column::SizeBytes => "size",
            Column::Start | Column::StartIn(_) => "start",
            Column::Class => "class",
        }
    }
}

/// One line and its number.
#[derive(Clone, Copy)]
struct Line<'a> {
    number: usize,
    text: &'a str,
}

impl<'a> Line<'a> {
    /// An error at the field of that place.
    fn error(self, place: usize, message: impl Into<String>, help: impl Into<String>) -> TraceError {
        let mut before = self.text.split(',').take(place).map(|field| field.chars().count() + 1).sum::<usize>();
        match self.text.split(',').nth(place) {
            Some(field) => before += field.chars().take_while(|c| c.is_whitespace()).count(),
            None => before = self.text.chars().count(),
        }
        TraceError {
            line: self.number,
            column: before + 1,
            source: self.text.into(),
            message: message.into(),
            help: help.into(),
        }
    }

    fn fields(self) -> impl Iterator<Item = &'a str> {
        self.text.split(',').map(str::trim)
    }
}

/// Reads the flows of a trace file, in file order. `classes` is how many priority classes there are.
pub fn read_trace(text: &str, nodes: &Names<'_>, classes: u8) -> Result<Vec<FlowRequest>, TraceError> {
    // Spreadsheets put a byte-order mark in front.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = (1..).zip(text.lines()).map(|(number, text)| Line { number, text }).filter(|line| {
        let text = line.text.trim();
        !text.is_empty() && !text.starts_with('#')
    });
    let Some(header) = lines.next() else {
        let help = "begin with a line that names the columns: src,dst,size,start";
        return Err(Line { number: 1, text: "" }.error(0, "the file is empty", help));
    };
    let columns = read_header(header)?;
    let mut flows = Vec::new();
    for line in lines {
        if flows.len() as u64 == MAX_FLOWS {
            return Err(line.error(0, format!("there are more than {MAX_FLOWS} flows"), "split the trace"));
        }
        flows.push(read_flow(line, &columns, nodes, classes)?);
    }
    Ok(flows)
}

fn read_header(line: Line<'_>) -> Result<Vec<Column>, TraceError> {
    let mut columns: Vec<Column> = Vec::new();
    for (place, name) in line.fields().enumerate() {
        let Some((_, column)) = COLUMNS.iter().find(|(known, _)| *known == name) else {
            let known: Vec<_> = COLUMNS.iter().map(|(known, _)| *known).collect();
            let message = format!("there is no column {}", quoted(name));
            let help = format!("the first line names the columns, in any order: {}", known.join(", "));
            return Err(line.error(place, message, help));
        };
        if columns.iter().any(|other| other.field() == column.field()) {
            let message = format!("the {} of a flow is there twice", column.field());
            return Err(line.error(place, message, "keep one of the two columns"));
        }
        columns.push(*column);
    }
    for needed in [Column::Src, Column::Dst, Column::Size, Column::Start] {
        if !columns.iter().any(|column| column.field() == needed.field()) {
            let help = match needed {
                Column::Size => "add size (such as 1MB) or size_bytes (a bare number)",
                Column::Start => "add start (such as 5us), start_ns or start_s (bare numbers)",
                _ => "name the columns src, dst, size and start",
            };
            return Err(line.error(0, format!("the column {} is missing", needed.field()), help));
        }
    }
    Ok(columns)
}

fn read_flow(line: Line<'_>, columns: &[Column], nodes: &Names<'_>, classes: u8) -> Result<FlowRequest, TraceError> {
    let mut flow = FlowRequest::new(0, 0, 0, Time::ZERO);
    let mut count = 0;
    for (place, text) in line.fields().enumerate() {
        count = place + 1;
        let Some(column) = columns.get(place) else { continue };
        if text.starts_with(['"', '\'']) {
            return Err(line.error(place, format!("{} is in quotes", quoted(text)), "write it without quotes"));
        }
        let node = || {
            let missing = || line.error(place, format!("there is no node {}", quoted(text)), nodes.hint());
            nodes.find(text).ok_or_else(missing)
        };
        match column {
            Column::Src => flow.src = node()?,
            Column::Dst => flow.dst = node()?,
            Column::Size => {
                let bytes: Result<Bytes, String> = text.parse();
                let help = "write it with its unit, such as 1MB, or name the column size_bytes";
                flow.size = bytes.map_err(|message| line.error(place, message, help))?.0;
            }
            Column::SizeBytes => {
                let message = || format!("size_bytes {} is not a whole number of bytes", quoted(text));
                let help = "write a bare number, such as 1000000, or name the column size to write 1MB";
                flow.size = text.parse().map_err(|_| line.error(place, message(), help))?;
            }
            Column::Start => {
                let help = "write it with its unit, such as 1.5us, or name the column start_ns or start_s";
                flow.start = text.parse().map_err(|message: String| line.error(place, message, help))?;
            }
            Column::StartIn(power) => {
                let help = "write a bare number of zero or more, or name the column start to write 1.5us";
                let message = || format!("{} is not a time as a bare number", quoted(text));
                flow.start = Time(decimal(text, *power).ok_or_else(|| line.error(place, message(), help))?);
            }
            Column::Class => {
                let message = || format!("class {} is not a whole number", quoted(text));
                let help = "write a class counted from 0";
                flow.class = text.parse().map_err(|_| line.error(place, message(), help))?;
            }
        }
    }
    if count != columns.len() {
        let message = format!("the line has {count} fields and the first line names {}", columns.len());
        return Err(line.error(columns.len().min(count), message, "write one field for each column"));
    }
    flow.check(nodes, classes).map_err(|fault| {
        let place = columns.iter().position(|column| column.field() == fault.field).unwrap_or(0);
        line.error(place, fault.message, fault.help)
    })?;
    Ok(flow)
}

/// A word in quotation marks, cut where it is long and with nothing in it that a terminal obeys.
fn quoted(text: &str) -> String {
    const LONGEST: usize = 48;
    let shown: String = text.chars().take(LONGEST).collect();
    format!("{shown:?}{}", if shown.len() < text.len() { "…" } else { "" })
}

/// `text` times ten to the `power`, rounded to the nearest whole number.
///
/// Scripts print times as `0.00012345678901234` or `1.2e-05`: those are finer than a picosecond, and meant well.
fn decimal(text: &str, power: u32) -> Option<u64> {
    let (number, exponent) = match text.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = [whole, fraction].concat();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let significant = digits.trim_start_matches('0');
    let zeros = digits.len() - significant.len();
    // How many of the significant digits are before the point once everything is multiplied.
    let point = whole.len() as i64 - zeros as i64 + exponent as i64 + power as i64;
    if significant.is_empty() || point < 0 {
        return Some(0);
    }
    if point > 20 {
        return None; // more digits than any u64 has
    }
    let mut padded = significant.bytes().chain(std::iter::repeat(b'0')).map(|byte| (byte - b'0') as u64);
    let value = padded
        .by_ref()
        .take(point as usize)
        .try_fold(0u64, |value, digit| value.checked_mul(10)?.checked_add(digit))?;
    value.checked_add(padded.next().is_some_and(|digit| digit >= 5) as u64)
}

/// Writes flows as a trace file that [`read_trace`] reads back the same.
///
/// Sizes and starts are bare numbers, so that other tools read them too. A node whose name would not survive is
/// written as its number.
pub fn write_trace(out: &mut dyn Write, graph: &Graph, flows: &[FlowRequest]) -> io::Result<()> {
    let names = Names::new(graph);
    let node = |number: u32| match graph.nodes.get(number as usize) {
        Some(node) if plain(&node.name) && names.find(&node.name) == Some(number) => node.name.clone(),
        _ => number.to_string(),
    };
    writeln!(out, "src,dst,size_bytes,start_ns,class")?;
    for flow in flows {
        let (ns, ps) = (flow.start.0 / 1000, flow.start.0 % 1000);
        let start = if ps == 0 { ns.to_string() } else { format!("{ns}.{ps:03}") };
        writeln!(out, "{},{},{},{start},{}", node(flow.src), node(flow.dst), flow.size, flow.class)?;
    }
    Ok(())
}

/// Whether a name can stand in a field as it is.
fn plain(name: &str) -> bool {
    !name.is_empty()
        && name.trim() == name
        && !name.starts_with(['#', '"', '\'', '\u{feff}'])
        && !name.contains([',', '\n', '\r'])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::star;
    use engine::Stream;

    fn read(text: &str) -> Result<Vec<FlowRequest>, TraceError> {
        let graph = star();
        read_trace(text, &Names::new(&graph), 2)
    }

    fn flow(src: u32, dst: u32, size: u64, start: Time, class: u8) -> FlowRequest {
        FlowRequest { class, ..FlowRequest::new(src, dst, size, start) }
    }

    #[test]
    fn columns_come_in_any_order_with_comments_and_blank_lines_between() {
        let text =
            "\u{feff}# two flows\r\n\nstart, class ,dst,src,size\r\n1.5us,1,h0,h2,64KB\r\n  # more\n0ns,0,1,2,1B\n";
        let expected = vec![flow(2, 0, 64_000, Time::from_ns(1500), 1), flow(2, 1, 1, Time::ZERO, 0)];
        assert_eq!(read(text), Ok(expected));
        assert_eq!(read("src,dst,size,start"), Ok(vec![]));
    }

    #[test]
    fn bare_numbers_have_their_unit_in_the_header() {
        let one = |start: &str, text: &str| {
            let flows = read(&format!("src,dst,size_bytes,{start}\nh0,h1,1500,{text}")).unwrap();
            assert_eq!(flows[0].size, 1500);
            flows[0].start
        };
        assert_eq!(one("start_ns", "1.5"), Time(1500));
        assert_eq!(one("start_ps", "7"), Time(7));
        assert_eq!(one("start_us", "2"), Time::from_us(2));
        assert_eq!(one("start_ms", "0.25"), Time::from_us(250));
        assert_eq!(one("start_s", "2.5e-05"), Time::from_us(25));
        assert_eq!(one("start_s", "1E-9"), Time::from_ns(1));
        assert_eq!(one("start_s", "0.0000012345678914999"), Time(1_234_568));
        assert_eq!(one("start_s", "0e999999999"), Time::ZERO);
        assert_eq!(one("start_s", "1e-999999999"), Time::ZERO);
        assert_eq!(one("start_s", "0.00000000000051"), Time(1));
        assert_eq!(one("start_s", ".5"), Time::from_ms(500));
    }

    #[test]
    fn a_bad_line_is_named_with_its_column_and_a_remedy() {
        let cases = [
            ("", 1, 1, "empty"),
            ("src,dst,length,start", 1, 9, "no column \"length\""),
            ("src,dst,size,size_bytes,start", 1, 14, "twice"),
            ("src,dst,size", 1, 1, "start is missing"),
            ("src,dst,size,start\nh0,h1,1MB,0us\nh0, h9,1MB,0us", 3, 5, "no node \"h9\""),
            ("src,dst,size,start\nh0,h1,1XB,0us", 2, 7, "unknown unit \"XB\""),
            ("src,dst,size,start\nh0,h1,1MB,5", 2, 11, "no unit"),
            ("src,dst,size,start\nh0,h1,-1MB,0us", 2, 7, "negative"),
            ("src,dst,size,start\nh0,h1,0B,0us", 2, 7, "size is 0"),
            ("src,dst,size,start\nh1,h1,1B,0us", 2, 4, "sends to itself"),
            ("src,dst,size,start\nh1,sw0,1B,0us", 2, 4, "is a switch"),
            ("src,dst,size,start\nh0,h1,1MB", 2, 10, "3 fields"),
            ("src,dst,size,start\nh0,h1,1MB,0us,", 2, 15, "5 fields"),
            ("src,dst,size,start\n\"h0\",h1,1MB,0us", 2, 1, "in quotes"),
            ("src,dst,size,start,class\nh0,h1,1MB,0us,2", 2, 15, "class 2"),
            ("src,dst,size,start,class\nh0,h1,1MB,0us,x", 2, 15, "class \"x\""),
            ("src,dst,size_bytes,start_ns\nh0,h1,1MB,0", 2, 7, "whole number of bytes"),
            ("src,dst,size_bytes,start_ns\nh0,h1,1,-5", 2, 9, "bare number"),
            ("src,dst,size_bytes,start_ns\nh0,h1,1,5us", 2, 9, "bare number"),
            ("src,dst,size_bytes,start_s\nh0,h1,1,1e30", 2, 9, "bare number"),
            ("src,dst,size_bytes,start_s\nh0,h1,1,1e6\nh0,h1,1,1000001", 3, 9, "start is"),
        ];
        for (text, line, column, message) in cases {
            let error = read(text).expect_err(text);
            assert_eq!((error.line, error.column), (line, column), "{error}");
            assert!(error.message.contains(message), "{error}");
            assert!(!error.help.is_empty());
        }
    }

    #[test]
    fn what_is_written_reads_back_the_same() {
        let mut graph = star();
        graph.nodes[1].name = "a,b".into();
        // Named like another node's number.
        graph.nodes[2].name = "0".into();
        let flows: Vec<_> = (0..50)
            .map(|i| flow(i % 3, (i + 1) % 3, 1 + i as u64 * 997, Time(i as u64 * 1_234_567), (i % 2) as u8))
            .collect();
        let mut bytes = Vec::new();
        write_trace(&mut bytes, &graph, &flows).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.starts_with("src,dst,size_bytes,start_ns,class\nh0,1,1,0,0\n1,0,998,1234.567,1\n"), "{text}");
        // Number 0 is the name of node 2, and so h0 is always written by its name.
        assert_eq!(read_trace(&text, &Names::new(&graph), 2), Ok(flows));
    }

    #[test]
    fn no_text_makes_the_reader_panic() {
        let graph = star();
        let names = Names::new(&graph);
        let good = "src,dst,size,start_s,class\nh0,h1,1MB,1e-3,0\n# ä\nh1,2,5KB,0.5,1\n";
        let pieces =
            ["", ",", "\n", "e", "-", "9999999999999999999999", "\u{feff}", "ä", "\"", "#", ".", " ", "\r", "start_ns"];
        let mut random = Stream::new(1, 0);
        for _ in 0..5_000 {
            let mut text: Vec<char> = good.chars().collect();
            for _ in 0..=random.below(3) {
                let from = random.below(text.len() as u64 + 1) as usize;
                let to = (from + random.below(4) as usize).min(text.len());
                let piece = pieces[random.below(pieces.len() as u64) as usize];
                text.splice(from..to, piece.chars());
            }
            _ = read_trace(&text.into_iter().collect::<String>(), &names, 2);
        }
    }
}
