//! Trace files: one flow per line, as comma-separated values.
//!
//! ```text
//! # all-to-one, and an answer
//! src,dst,size,start,id,after
//! h1,h0,1MB,0us,one,
//! h2,h0,64KB,1.5us,two,
//! h0,h1,1KB,0us,,one;two
//! ```
//!
//! The first line that is neither blank nor a comment names the columns, in any order. `src`, `dst`, a size and a start are
//! needed. The others may be missing, or empty in a line: `class`; `group`, a name; `until`, when the flow leaves; `id`, a word by
//! which others wait for it; `after`, the ids of the flows it waits for, with `;` or blanks between; `gap`, the time between,
//! one for all or one for each. Where scripts write bare numbers, the column's name has the unit: `size_bytes`, `start_ns`. A field may be
//! in double quotes; nothing is needed in them that could not stand without.

use crate::text::{FileFault, FileFaults, Line, quoted};
use crate::{After, FlowRequest, MAX_FLOWS, MAX_GROUPS, Names, Traffic, is_group_name};
use engine::{Bytes, QuantityError, Time};
use fabric::id::{ClassId, FlowId, NodeId};
use fabric::topology::Graph;
use std::collections::HashMap;
use std::io::{self, Write};

/// The group of flows that have none of their own.
const GROUP: &str = "trace";

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Src,
    Dst,
    Size,
    Start,
    Class,
    Group,
    Until,
    Id,
    After,
    Gap,
}

/// The fields that every flow has.
const NEEDED: [Field; 4] = [Field::Src, Field::Dst, Field::Size, Field::Start];

/// A field and how it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Column {
    field: Field,
    /// Of bare numbers: their unit in bytes or picoseconds, as a power of ten.
    bare: Option<u32>,
}

impl Field {
    const ALL: [(Field, &'static str); 10] = [
        (Field::Src, "src"),
        (Field::Dst, "dst"),
        (Field::Size, "size"),
        (Field::Start, "start"),
        (Field::Class, "class"),
        (Field::Group, "group"),
        (Field::Until, "until"),
        (Field::Id, "id"),
        (Field::After, "after"),
        (Field::Gap, "gap"),
    ];

    fn name(self) -> &'static str {
        Field::ALL.iter().find(|(field, _)| *field == self).map_or("", |(_, name)| name)
    }

    /// The endings that bare numbers of it may have, with their powers of ten.
    fn units(self) -> &'static [(&'static str, u32)] {
        match self {
            Field::Size => &[("_bytes", 0)],
            Field::Start | Field::Until | Field::Gap => &[("_ps", 0), ("_ns", 3), ("_us", 6), ("_ms", 9), ("_s", 12)],
            _ => &[],
        }
    }
}

/// Every column by name.
fn columns() -> impl Iterator<Item = (String, Column)> {
    Field::ALL.iter().flat_map(|&(field, name)| {
        let bare = field
            .units()
            .iter()
            .map(move |(ending, power)| (format!("{name}{ending}"), Column { field, bare: Some(*power) }));
        std::iter::once((name.to_string(), Column { field, bare: None })).chain(bare)
    })
}

/// The fields of a line, without the blanks and double quotes around them.
fn fields<'a>(line: Line<'a>) -> impl Iterator<Item = &'a str> {
    let mut rest = Some(line.text);
    std::iter::from_fn(move || {
        let text = rest?;
        // Quotes that are not around the whole of a field are left where they are, to be refused.
        let whole = |after: &str| after.is_empty() || after.starts_with(',');
        let inside = text.trim_start().strip_prefix('"').and_then(|text| text.split_once('"'));
        let (field, after) = match inside.map(|(field, after)| (field, after.trim_start())) {
            Some((field, after)) if whole(after) => (field, after),
            _ => text.split_at(text.find(',').unwrap_or(text.len())),
        };
        rest = after.strip_prefix(',');
        Some(field.trim())
    })
}

/// A flow that waits, and where that is written.
struct Wait<'a> {
    flow: FlowId,
    ids: &'a str,
    gap: Option<(&'a str, Column)>,
    line: Line<'a>,
}

/// Reads the flows of a trace file, in file order, or says what is wrong with each of its lines. `classes` is how many priority classes there
/// are.
pub fn read_trace(text: &str, nodes: &Names<'_>, classes: u8) -> Result<Traffic, FileFaults> {
    let mut lines = Line::all(text);
    let Some(header) = lines.next() else {
        let help = "begin with a line that names the columns: src,dst,size,start";
        return Err(Line { number: 1, text: "" }.fault("", "the file is empty", help).into());
    };
    let columns = read_header(header, nodes)?;
    let mut reader = Reader {
        nodes,
        classes,
        columns: &columns,
        traffic: Traffic::default(),
        groups: HashMap::new(),
        ids: HashMap::new(),
        waits: Vec::new(),
        faults: FileFaults::default(),
    };
    for line in lines {
        if reader.traffic.flows.len() as u64 == MAX_FLOWS {
            let fault = line.fault(line.text, format!("there are more than {MAX_FLOWS} flows"), "split the trace");
            reader.faults.push(fault);
            break;
        }
        reader.read(line);
        if reader.faults.full() {
            return Err(reader.faults);
        }
    }
    reader.finish()
}

/// What people write between fields instead of a comma.
const SEPARATORS: [(char, &str); 4] = [(';', "semicolons"), ('\t', "tabs"), ('|', "bars"), (' ', "blanks")];

fn read_header(line: Line<'_>, nodes: &Names<'_>) -> Result<Vec<Column>, FileFaults> {
    let known: Vec<(String, Column)> = columns().collect();
    let find = |name: &str| known.iter().find(|(known, _)| *known == name).map(|(_, column)| *column);
    if fields(line).all(|name| find(name).is_none()) {
        let names = |separator| line.text.split(separator).filter(|name| find(name.trim()).is_some()).count();
        if let Some((separator, called)) = SEPARATORS.into_iter().find(|(separator, _)| names(*separator) > 1) {
            let place = line.text.find(separator).map_or(line.text, |place| &line.text[place..]);
            let help = "write commas between the fields, in this line and in all others";
            return Err(line.fault(place, format!("{called} are between the columns"), help).into());
        }
        // Neither the name of a node nor a number is one of a column.
        let value = |text: &str| text.starts_with(|c: char| c.is_ascii_digit()) || nodes.find(text).is_some();
        let separators = |c: char| c == ',' || SEPARATORS.iter().any(|(separator, _)| *separator == c);
        if line.text.split(separators).any(|text| value(text.trim())) {
            let message = "the columns have no names: the first line is a flow";
            let help = "put a line with their names before it, such as src,dst,size_bytes,start_us, in the order of your fields; \
                        commas are between the fields";
            return Err(line.fault(line.text, message, help).into());
        }
    }
    let (mut found, mut faults): (Vec<Column>, FileFaults) = Default::default();
    for name in fields(line) {
        let Some(column) = find(name) else {
            let known: Vec<_> = known.iter().map(|(known, _)| known.as_str()).collect();
            let message = format!("there is no column {}", quoted(name));
            let help = format!("the first line names the columns, in any order: {}", known.join(", "));
            faults.push(line.fault(name, message, help));
            continue;
        };
        if found.iter().any(|other| other.field == column.field) {
            let message = format!("the {} of a flow is there twice", column.field.name());
            faults.push(line.fault(name, message, "keep one of the two columns"));
        }
        found.push(column);
    }
    // A column of a wrong name may be the one that is missing.
    for needed in NEEDED {
        if faults.is_empty() && !found.iter().any(|column| column.field == needed) {
            let help = match needed {
                Field::Size => "add size (such as 1MB) or size_bytes (a bare number)",
                Field::Start => "add start (such as 5us), start_ns or start_s (bare numbers)",
                _ => "name the columns src, dst, size and start",
            };
            return Err(line.fault(line.text, format!("the column {} is missing", needed.name()), help).into());
        }
    }
    faults.or(found)
}

/// A trace being read.
struct Reader<'a> {
    nodes: &'a Names<'a>,
    classes: u8,
    columns: &'a [Column],
    traffic: Traffic,
    groups: HashMap<&'a str, u16>,
    /// The flow of each id.
    ids: HashMap<&'a str, FlowId>,
    waits: Vec<Wait<'a>>,
    /// What is wrong so far.
    faults: FileFaults,
}

impl<'a> Reader<'a> {
    /// Reads a flow, or keeps all that is wrong with its line.
    fn read(&mut self, line: Line<'a>) {
        let number = self.traffic.flows.len() as u32;
        // Others may wait for a flow whose line has a fault: that is no fault of theirs.
        let id = self.columns.iter().position(|column| column.field == Field::Id);
        let id = id.and_then(|place| fields(line).nth(place)).filter(|id| !id.is_empty());
        let known = id.and_then(|id| self.ids.insert(id, FlowId(number)));
        if let Some(id) = id.filter(|_| known.is_some()) {
            let message = format!("the id {} is there twice", quoted(id));
            self.faults.push(line.fault(id, message, "give every flow an id of its own"));
        }
        let count = fields(line).count();
        if count != self.columns.len() {
            let message = format!("the line has {count} fields and the first line names {}", self.columns.len());
            let place = fields(line).nth(self.columns.len()).unwrap_or(line.end());
            self.faults.push(line.fault(place, message, "write one field for each column"));
            return;
        }
        let mut flow = FlowRequest::new(NodeId(0), NodeId(0), 0, Time::ZERO);
        let (mut group, mut after, mut gap) = (GROUP, "", None);
        let mut good = true;
        for (text, column) in fields(line).zip(self.columns) {
            match self.field(line, text, *column, &mut flow) {
                Err(fault) => {
                    self.faults.push(fault);
                    good = false;
                }
                Ok(()) if text.is_empty() => {}
                Ok(()) => match column.field {
                    Field::Group => group = text,
                    Field::After => after = text,
                    Field::Gap => gap = Some((text, *column)),
                    _ => {}
                },
            }
        }
        let checked = self.group(line, group).and_then(|group| {
            flow.group = group;
            let check = || flow.check(self.nodes, self.classes);
            if good { check() } else { Ok(()) }.map_err(|fault| {
                let place = self.columns.iter().position(|column| column.field.name() == fault.field).unwrap_or(0);
                line.fault(fields(line).nth(place).unwrap_or(line.text), fault.message, fault.help)
            })
        });
        if let Err(fault) = checked {
            self.faults.push(fault);
        }
        if !after.is_empty() {
            self.waits.push(Wait { flow: FlowId(number), ids: after, gap, line });
        } else if let Some((text, _)) = gap {
            let help = "name what it waits for in the column after";
            self.faults.push(line.fault(text, "a gap after nothing", help));
        }
        self.traffic.flows.push(flow);
    }

    /// Reads one field of a line into its flow.
    fn field(&self, line: Line<'a>, text: &'a str, column: Column, flow: &mut FlowRequest) -> Result<(), FileFault> {
        if text.starts_with(['"', '\'']) {
            let help = "write it without quotes, or with one double quote at each end";
            return Err(line.fault(text, format!("{} begins with a quote", quoted(text)), help));
        }
        let node = || {
            let missing = || line.fault(text, format!("there is no node {}", quoted(text)), self.nodes.hint());
            self.nodes.find(text).ok_or_else(missing)
        };
        match column.field {
            Field::Src => flow.src = node()?,
            Field::Dst => flow.dst = node()?,
            Field::Size => flow.size = read_size(line, text, column)?,
            Field::Start => flow.start = read_time(line, text, column)?,
            _ if text.is_empty() => {}
            Field::Class => {
                let message = || format!("class {} is not a whole number", quoted(text));
                let help = "write a class counted from 0";
                flow.class = ClassId(text.parse().map_err(|_| line.fault(text, message(), help))?);
            }
            Field::Until => flow.until = read_time(line, text, column)?,
            Field::Id if text.contains([';', ' ', '\t']) => {
                let message = format!("the id {} has a blank or a semicolon in it", quoted(text));
                return Err(line.fault(text, message, "write an id as one word"));
            }
            Field::Id | Field::Group | Field::After | Field::Gap => {}
        }
        Ok(())
    }

    fn group(&mut self, line: Line<'a>, name: &'a str) -> Result<u16, FileFault> {
        if let Some(&group) = self.groups.get(name) {
            return Ok(group);
        }
        if !is_group_name(name) {
            let message = format!("{} is no name for a group", quoted(name));
            return Err(line.fault(name, message, "write up to 64 characters, without commas and quotes"));
        }
        let group = self.traffic.groups.len();
        if group == MAX_GROUPS {
            let message = format!("there are more than {MAX_GROUPS} groups");
            return Err(line.fault(name, message, "give flows that belong together the same group"));
        }
        self.traffic.groups.push(name.into());
        self.groups.insert(name, group as u16);
        Ok(group as u16)
    }

    /// Finds the flows that others wait for: they may come later in the file.
    fn finish(mut self) -> Result<Traffic, FileFaults> {
        for wait in std::mem::take(&mut self.waits) {
            if let Err(fault) = self.wait(&wait) {
                self.faults.push(fault);
            }
            self.waits.push(wait);
        }
        // Where a line has a fault, the flows are not those that the others mean.
        if self.faults.is_empty() {
            self.traffic.check_after(self.nodes).map_err(|(flow, fault)| {
                let place = self.waits.partition_point(|wait| wait.flow < flow);
                match self.waits.get(place) {
                    Some(wait) => wait.line.fault(wait.ids, fault.message, fault.help),
                    None => Line { number: 1, text: "" }.fault("", fault.message, fault.help),
                }
            })?;
        }
        self.faults.or(self.traffic)
    }

    /// Finds the flows that one waits for.
    fn wait(&mut self, wait: &Wait<'a>) -> Result<(), FileFault> {
        let words = |text: &'a str| text.split(|c: char| c == ';' || c.is_whitespace()).filter(|word| !word.is_empty());
        let gaps: Vec<Time> = match wait.gap {
            Some((text, column)) => {
                words(text).map(|gap| read_time(wait.line, gap, column)).collect::<Result<_, _>>()?
            }
            None => Vec::new(),
        };
        let count = words(wait.ids).count();
        if gaps.len() > 1 && gaps.len() != count {
            let message = format!("{} gaps for {count} flows", gaps.len());
            let place = wait.gap.map_or(wait.ids, |(text, _)| text);
            return Err(wait.line.fault(place, message, "write one gap for all of them, or one for each"));
        }
        for (place, id) in words(wait.ids).enumerate() {
            let Some(&first) = self.ids.get(id) else {
                let message = format!("there is no flow with the id {}", quoted(id));
                return Err(wait.line.fault(id, message, "write the id of another line in the column after"));
            };
            if self.traffic.after.len() as u64 == MAX_FLOWS {
                return Err(wait.line.fault(id, "too many flows wait for too many others", "split the trace"));
            }
            let gap = gaps.get(place).or(gaps.first()).copied().unwrap_or_default();
            self.traffic.after.push(After { flow: wait.flow, first, gap });
        }
        Ok(())
    }
}

fn read_size(line: Line<'_>, text: &str, column: Column) -> Result<u64, FileFault> {
    match column.bare {
        None => {
            let bytes: Result<Bytes, QuantityError> = text.parse();
            let help = "write it with its unit, such as 1MB, or name the column size_bytes";
            Ok(bytes.map_err(|error| line.fault(text, error.to_string(), help))?.0)
        }
        Some(_) => {
            let message = || format!("size_bytes {} is not a whole number of bytes", quoted(text));
            let help = "write a bare number, such as 1000000, or name the column size to write 1MB";
            text.parse().map_err(|_| line.fault(text, message(), help))
        }
    }
}

fn read_time(line: Line<'_>, text: &str, column: Column) -> Result<Time, FileFault> {
    let name = column.field.name();
    // A clock's reading: a date, or seconds since 1970 in whatever unit.
    let date = text.contains(':') || text.split('-').filter(|part| part.parse::<u32>().is_ok()).count() > 1;
    let number = text.parse::<f64>().is_ok_and(|number| number.is_finite() && number >= 0.0);
    if date || (column.bare.is_some_and(|power| number && decimal(text, power).is_none())) {
        let message = match date {
            true => format!("{} is a clock's reading", quoted(text)),
            false => format!("{} is later than any run lasts", quoted(text)),
        };
        let help = "times count from the beginning of the run: subtract the time of the first flow from all of them";
        return Err(line.fault(text, message, help));
    }
    match column.bare {
        None => {
            let help = || format!("write it with its unit, such as 1.5us, or name the column {name}_ns or {name}_s");
            text.parse().map_err(|error: QuantityError| line.fault(text, error.to_string(), help()))
        }
        Some(power) => {
            let help = || format!("write a bare number of zero or more, or name the column {name} to write 1.5us");
            let message = || format!("{} is not a time as a bare number", quoted(text));
            Ok(Time(decimal(text, power).ok_or_else(|| line.fault(text, message(), help()))?))
        }
    }
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
/// Sizes and times are bare numbers, so that other tools read them too. A node whose name would not survive is written as its
/// number, with zeros before it where that is the name of another. Only columns that some flow needs are written. Tasks become gaps.
pub fn write_trace(out: &mut dyn Write, graph: &Graph, traffic: &Traffic) -> io::Result<()> {
    let traffic = traffic.without_tasks(MAX_FLOWS);
    let traffic = &traffic.map_err(|fault| io::Error::new(io::ErrorKind::InvalidInput, fault.message))?;
    let Traffic { flows, groups, after, .. } = traffic;
    if let Some(name) = groups.iter().find(|name| !is_group_name(name)) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{} is no name for a group", quoted(name))));
    }
    let names = Names::new(graph);
    let node = |number: NodeId| match graph.nodes.get(number.index()) {
        Some(node) if plain(&node.name) && names.find(&node.name) == Some(number) => node.name.clone(),
        None => number.to_string(),
        Some(_) => {
            let mut text = number.to_string();
            while names.find(&text) != Some(number) {
                text.insert(0, '0');
            }
            text
        }
    };
    let leave = flows.iter().any(|flow| flow.until != Time::MAX);
    let mut waits: Vec<&After> = after.iter().collect();
    waits.sort_by_key(|wait| wait.flow);
    let mut waited = vec![false; if waits.is_empty() { 0 } else { flows.len() }];
    waits.iter().for_each(|wait| waited[wait.first.index()] = true);

    write!(out, "src,dst,size_bytes,start_ns,class")?;
    for (column, there) in
        [(",group", !groups.is_empty()), (",until_ns", leave), (",id,after,gap_ns", !waits.is_empty())]
    {
        write!(out, "{}", if there { column } else { "" })?;
    }
    writeln!(out)?;
    let mut waits = waits.as_slice();
    for (number, flow) in (0u32..).zip(flows) {
        write!(out, "{},{},{},{},{}", node(flow.src), node(flow.dst), flow.size, ns(flow.start), flow.class)?;
        if let Some(group) = groups.get(flow.group as usize) {
            write!(out, ",{group}")?;
        }
        if leave {
            let until = if flow.until == Time::MAX { String::new() } else { ns(flow.until) };
            write!(out, ",{until}")?;
        }
        if !waited.is_empty() {
            let mine = waits.iter().take_while(|wait| wait.flow == FlowId(number)).count();
            let list = |word: &dyn Fn(&After) -> String| {
                waits[..mine].iter().map(|wait| word(wait)).collect::<Vec<_>>().join(";")
            };
            let id = if waited[number as usize] { number.to_string() } else { String::new() };
            let gap = if waits[..mine].iter().all(|wait| wait.gap == Time::ZERO) {
                String::new()
            } else {
                list(&|wait| ns(wait.gap))
            };
            write!(out, ",{id},{},{gap}", list(&|wait| wait.first.to_string()))?;
            waits = &waits[mine..];
        }
        writeln!(out)?;
    }
    Ok(())
}

/// A time as a bare number of nanoseconds.
fn ns(time: Time) -> String {
    match (time.0 / 1000, time.0 % 1000) {
        (ns, 0) => ns.to_string(),
        (ns, ps) => format!("{ns}.{ps:03}"),
    }
}

/// Whether a name can stand in a field as it is.
pub(crate) fn plain(name: &str) -> bool {
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
    use fabric::id::ClassId;
    use proptest::prelude::*;

    fn read_whole(text: &str) -> Result<Traffic, FileFaults> {
        let graph = star();
        read_trace(text, &Names::new(&graph), 2)
    }

    /// With the first fault.
    fn read_all(text: &str) -> Result<Traffic, FileFault> {
        read_whole(text).map_err(|faults| faults.list()[0].clone())
    }

    fn read(text: &str) -> Result<Vec<FlowRequest>, FileFault> {
        read_all(text).map(|traffic| traffic.flows)
    }

    fn written(graph: &Graph, traffic: &Traffic) -> String {
        let mut bytes = Vec::new();
        write_trace(&mut bytes, graph, traffic).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    fn flow(src: u32, dst: u32, size: u64, start: Time, class: u8) -> FlowRequest {
        FlowRequest { class: ClassId(class), ..FlowRequest::new(NodeId(src), NodeId(dst), size, start) }
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
            ("src,dst,size,start\n\"h0,h1,1MB,0us", 2, 1, "begins with a quote"),
            ("src,dst,size,start\n'h0',h1,1MB,0us", 2, 1, "begins with a quote"),
            ("src,dst,size,start\n\"h0\"x,h1,1MB,0us", 2, 1, "begins with a quote"),
            ("src,dst,size,start\n\"h0\", \"h9\",1MB,0us", 2, 8, "no node \"h9\""),
            ("src,dst,size,start,class\nh0,h1,1MB,0us,2", 2, 15, "class 2"),
            ("src,dst,size,start,class\nh0,h1,1MB,0us,x", 2, 15, "class \"x\""),
            ("src,dst,size,start,until\nh0,h1,1MB,1us,1us", 2, 15, "leaves at 1us"),
            ("src,dst,size,start,until\nh0,h1,1MB,1us,soon", 2, 15, "expected a time"),
            ("src,dst,size,start,group\nh0,h1,1MB,1us,\u{1b}[0m", 2, 15, "no name for a group"),
            ("src,dst,size,start,id\nh0,h1,1B,0us,a\nh0,h1,1B,0us,a", 3, 14, "there twice"),
            ("src,dst,size,start,id\nh0,h1,1B,0us,a b", 2, 14, "a blank"),
            ("src,dst,size,start,id,after\nh0,h1,1B,0us,a,\nh1,h0,1B,0us,,a; b", 3, 18, "the id \"b\""),
            ("src,dst,size,start,id,after\nh0,h1,1B,0us,a,a", 2, 16, "waits for itself"),
            ("src,dst,size,start,id,after\nh0,h1,1B,0us,a,b\nh1,h0,1B,0us,b,a", 2, 16, "each other"),
            ("src,dst,size,start,id,after\nh0,h1,1B,0us,a,\nh2,h0,1B,0us,,a", 3, 15, "h2 cannot know"),
            ("src,dst,size,start,gap\nh0,h1,1B,0us,1us", 2, 14, "after nothing"),
            ("src,dst,size,start,id,after,gap\nh0,h1,1B,0us,a,,\nh1,h0,1B,0us,,a,1us;2us", 3, 17, "2 gaps for 1"),
            ("src,dst,size,start,id,after,gap\nh0,h1,1B,0us,a,,\nh1,h0,1B,0us,,a,1", 3, 17, "no unit"),
            ("src,dst,size_bytes,start_ns\nh0,h1,1MB,0", 2, 7, "whole number of bytes"),
            ("src,dst,size_bytes,start_ns\nh0,h1,1,-5", 2, 9, "bare number"),
            ("src,dst,size_bytes,start_ns\nh0,h1,1,5us", 2, 9, "bare number"),
            ("src,dst,size_bytes,start_s\nh0,h1,1,1e30", 2, 9, "later than any run lasts"),
            ("src,dst,size_bytes,start_ns\nh0,h1,1,1763312669123456789", 2, 9, "later than any run lasts"),
            ("src,dst,size_bytes,start_s\nh0,h1,1,2026-11-16T17:04:29", 2, 9, "a clock's reading"),
            ("src,dst,size,start\nh0,h1,1B,17:04:29", 2, 10, "a clock's reading"),
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
    fn fields_in_double_quotes_are_read_as_they_are_without() {
        let plain = "src,dst,size,start,group,id,after\nh0,h1,1MB,0us,a b,x,\nh1,h0,1KB,2us,a b,,x\n";
        let quotes = "\"src\",\"dst\", \"size\" ,start,\"group\",id,after\n\"h0\",h1,\"1MB\",0us,\"a b\",x,\"\"\n\"h1\",h0,1KB,\"2us\",a b,,\"x\"\n";
        assert_eq!(read_whole(quotes).unwrap(), read_whole(plain).unwrap());
    }

    #[test]
    fn every_bad_line_is_named_at_once() {
        let text = "src,dst,size,start,id,after\nh9,h1,1XB,0us,a,\nh0,h1,1MB,0us,b,a\nh0,h1,1MB\nh1,h0,1MB,0us,,a;z\n";
        let faults = read_whole(text).unwrap_err();
        let places: Vec<(usize, usize)> = faults.list().iter().map(|fault| (fault.line, fault.column)).collect();
        assert_eq!(places, [(2, 1), (2, 7), (4, 10), (5, 18)], "{faults}");
        assert_eq!(faults.more(), None);
        let many = |lines: usize| {
            let text = format!("src,dst,size,start\n{}", "h9,h1,1MB,0us\n".repeat(lines));
            let faults = read_whole(&text).unwrap_err();
            assert_eq!(faults.list().len(), 10);
            faults.more()
        };
        assert_eq!(many(10), None);
        assert_eq!(many(22).as_deref(), Some("12 more"));
        assert_eq!(many(5000).as_deref(), Some("at least 990 more"));
        let columns = read_whole("source,dst,size,begin").unwrap_err();
        assert_eq!(columns.list().len(), 2, "{columns}");
    }

    #[test]
    fn other_separators_and_a_missing_header_are_recognised() {
        let cases = [
            ("src;dst;size;start\nh0;h1;1MB;0us", 4, "semicolons are between the columns", "commas"),
            ("src\tdst\tsize\tstart\nh0\th1\t1MB\t0us", 4, "tabs are between", "commas"),
            ("src dst size start", 4, "blanks are between", "commas"),
            ("h0,h1,1000,0", 1, "the first line is a flow", "src,dst,size_bytes,start_us"),
            ("h0;h1;1000;0", 1, "the first line is a flow", "commas"),
            ("0 1 3 100 1000 2.0", 1, "the first line is a flow", "commas"),
        ];
        for (text, column, message, help) in cases {
            let faults = read_whole(text).unwrap_err();
            let [fault] = faults.list() else { panic!("{faults}") };
            assert_eq!((fault.line, fault.column), (1, column), "{fault}");
            assert!(fault.message.contains(message) && fault.help.contains(help), "{fault}");
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
        let traffic = Traffic { flows, groups: vec!["trace".into()], ..Traffic::default() };
        let text = written(&graph, &traffic);
        assert!(
            text.starts_with("src,dst,size_bytes,start_ns,class,group\nh0,1,1,0,0,trace\n1,0,998,1234.567,1,trace\n"),
            "{text}"
        );
        // Number 0 is the name of node 2, and so h0 is always written by its name.
        assert_eq!(read_trace(&text, &Names::new(&graph), 2), Ok(traffic));
    }

    #[test]
    fn groups_leaves_and_waits_are_read() {
        let text = "src,dst,size,start,group,until_us,id,after,gap\n\
                    h0,h1,1B,0us,a,,x,,\nh1,h2,2B,0us,,7.5,,x y,1us; 2us\nh2,h1,3B,0us,a,,y,x,\n";
        // The last line waits for a flow that h2 does not see.
        assert_eq!(read_all(text).unwrap_err().line, 4);
        let traffic = read_all(&text.replace("y,x,", "y,,")).unwrap();
        assert_eq!(traffic.groups, ["a", "trace"]);
        let groups: Vec<u16> = traffic.flows.iter().map(|flow| flow.group).collect();
        assert_eq!(groups, [0, 1, 0]);
        let until: Vec<Time> = traffic.flows.iter().map(|flow| flow.until).collect();
        assert_eq!(until, [Time::MAX, Time::from_ns(7500), Time::MAX]);
        let wait = |flow, first, gap| After { flow, first, gap: Time::from_us(gap) };
        assert_eq!(traffic.after, [wait(FlowId(1), FlowId(0), 1), wait(FlowId(1), FlowId(2), 2)]);
        let one = read_all(&text.replace("y,x,", "y,,").replace("1us; 2us", "3us")).unwrap();
        assert_eq!(one.after, [wait(FlowId(1), FlowId(0), 3), wait(FlowId(1), FlowId(2), 3)]);
    }

    /// Flows whose groups are in order of appearance and that wait only for earlier ones they see.
    fn traffics() -> impl Strategy<Value = Traffic> {
        let time = || prop_oneof![Just(0u64), 1..5_000_000u64, (0..5_000u64).prop_map(|us| us * 1_000_000)];
        let flow = (0..3u32, 1..3u32, 1..=u64::from(u32::MAX), time(), 0..2u8, 0..4u16, prop::option::of(time()));
        let waits = prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), time()), 0..8);
        (prop::collection::vec(flow, 1..40), waits).prop_map(|(flows, waits)| {
            let mut traffic = Traffic::default();
            for (src, hop, size, start, class, group, lasting) in flows {
                let group = traffic.group(["a", "b b", "long-lived", "trace"][group as usize]);
                let until = lasting.map_or(Time::MAX, |lasting| Time(start + lasting + 1));
                let flow = FlowRequest::new(NodeId(src), NodeId((src + hop) % 3), size, Time(start));
                traffic.flows.push(FlowRequest { class: ClassId(class), group, until, ..flow });
            }
            for (flow, first, gap) in waits {
                let (flow, first) = (flow.index(traffic.flows.len()), first.index(traffic.flows.len()));
                let (waits, ends) = (traffic.flows[flow], traffic.flows[first]);
                if first < flow && ends.until == Time::MAX && (waits.src == ends.src || waits.src == ends.dst) {
                    traffic.after.push(After {
                        flow: FlowId(flow as u32),
                        first: FlowId(first as u32),
                        gap: Time(gap),
                    });
                }
            }
            traffic.after.sort_by_key(|wait| wait.flow);
            traffic
        })
    }

    proptest! {
        #[test]
        fn whatever_is_written_reads_back_the_same(traffic in traffics()) {
            let graph = star();
            let text = written(&graph, &traffic);
            prop_assert_eq!(read_trace(&text, &Names::new(&graph), 2), Ok(traffic), "{}", text);
        }

        #[test]
        fn sorting_by_start_keeps_who_waits_for_whom(traffic in traffics()) {
            let sorted = traffic.in_order();
            prop_assert!(sorted.flows.is_sorted_by_key(|flow| flow.start));
            let pairs = |traffic: &Traffic| {
                let flow = |number: u32| format!("{:?}", traffic.flows[number as usize]);
                let mut pairs: Vec<_> = traffic.after.iter().map(|w| (flow(w.flow.0), flow(w.first.0), w.gap)).collect();
                pairs.sort();
                pairs
            };
            prop_assert_eq!(pairs(&sorted), pairs(&traffic));
            let graph = star();
            let text = written(&graph, &sorted);
            let read = read_trace(&text, &Names::new(&graph), 2).unwrap();
            prop_assert_eq!(pairs(&read).len(), pairs(&traffic).len());
        }
    }

    #[test]
    fn a_group_that_a_file_cannot_hold_is_not_written() {
        let traffic = Traffic { groups: vec!["a,b".into()], ..Traffic::default() };
        assert!(write_trace(&mut Vec::new(), &star(), &traffic).is_err());
    }

    #[test]
    fn no_text_makes_the_reader_panic() {
        let graph = star();
        let names = Names::new(&graph);
        let good = "src,dst,size,start_s,class,id,after,gap,until,group\nh0,h1,1MB,1e-3,0,a,,,,x\n\
                    # ä\nh1,2,5KB,0.5,1,,a;b,1us;2us,1s,x\nh2,h1,1KB,1,,b,,,,\n";
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

    #[test]
    fn a_number_that_is_the_name_of_another_host_is_not_taken_for_it() {
        let mut graph = Graph::default();
        let hosts = ["#a", "b", "0", "00"].map(|name| graph.add(fabric::topology::Kind::Host, 0, name));
        let flows =
            hosts.iter().filter(|&&host| host != hosts[1]).map(|&host| FlowRequest::new(host, hosts[1], 1, Time::ZERO));
        let traffic = Traffic { flows: flows.collect(), ..Traffic::default() };
        let mut text = Vec::new();
        write_trace(&mut text, &graph, &traffic).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("\n000,b,") && text.contains("\n0,b,") && text.contains("\n00,b,"), "{text}");
        assert_eq!(read_trace(&text, &Names::new(&graph), 1).unwrap().flows, traffic.flows);
    }
}
