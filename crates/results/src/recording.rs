//! `recording.bin`: what every port did and how chosen flows fared, frame by frame, in a compact file. docs/recording.md has the format.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;

/// The file of what was recorded.
pub const RECORDING: &str = "recording.bin";

/// What the file begins with.
const MAGIC: &[u8; 8] = b"TWREC1\n\0";
/// Of this format.
pub const VERSION: u32 = 2;
/// The oldest that is read. Version 1 did not tell pauses of ports, classes and queues apart: it has fewer columns.
const OLDEST: u32 = 1;

/// The most frames.
const MOST_FRAMES: usize = 4096;
/// The most frames of all ports together.
const MOST_PORT_FRAMES: usize = 2 << 20;
/// So many frames there may always be.
const FEWEST_FRAMES: usize = 64;
/// The most flows that are recorded.
pub const MOST_FLOWS: usize = 256;
/// The most columns of ports, and of flows. A few bytes may stand for a whole column, so that each is paid for with memory.
const MOST_COLUMNS: usize = 16;

/// The most frames in a fabric with so many ports; even.
pub fn most_frames(ports: usize) -> usize {
    (MOST_PORT_FRAMES / ports.max(1)).clamp(FEWEST_FRAMES, MOST_FRAMES) / 2 * 2
}

/// A node of the fabric.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// `host` or `switch`.
    pub kind: String,
    /// 0 for hosts, then by distance from them; in BCube, the level of the switch and one.
    pub tier: u8,
    /// Bytes of memory for packets; `None` for hosts that do not forward, or for no limit.
    pub buffer: Option<u64>,
}

/// One end of a link, which sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Port {
    /// The node it belongs to.
    pub node: u32,
    /// The port at the other end.
    pub peer: u32,
    /// Bits per second.
    pub rate_bps: u64,
    /// Of the link.
    pub delay_ps: u64,
    /// Bytes that one class of what comes in by it may hold of the node's memory, while nothing else is there, until it is over its
    /// threshold; `None` for hosts that do not forward, or for no limit.
    #[serde(default)]
    pub threshold: Option<u64>,
    /// Bytes in one of its queues above which packets are marked; `None` where none are.
    #[serde(default)]
    pub mark: Option<u64>,
}

/// A flow that was recorded. Times are since the beginning of the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// Its number.
    pub flow: u32,
    /// Number of its group.
    pub group: u16,
    /// The sending host.
    pub src: u32,
    /// The receiving host.
    pub dst: u32,
    /// Bytes of message.
    pub size: u64,
    /// It was handed to its NIC; `None` if what it waited for never ended.
    pub start_ps: Option<u64>,
    /// Its last byte arrived.
    pub received_ps: Option<u64>,
    /// Its last byte was acknowledged.
    pub acknowledged_ps: Option<u64>,
    /// How long it would have taken alone in the network; `None` if its sender left early.
    #[serde(default)]
    pub ideal_ps: Option<u64>,
    /// The ports by which it leaves the nodes on its path, while all links work; empty where every packet finds its own.
    pub path: Vec<u32>,
}

/// What a column says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnHeader {
    /// Its name.
    pub name: String,
    /// Of its values.
    pub unit: String,
    /// Length in the file.
    pub bytes: usize,
}

/// What the file says before its columns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Of the format.
    pub version: u32,
    /// The scenario's title.
    pub scenario: String,
    /// The preset, if one was named.
    pub preset: Option<String>,
    /// The scheme in a few words.
    pub scheme: String,
    /// The seed.
    pub seed: u64,
    /// `kind` and what the scenario says of it besides.
    pub topology: Map<String, Value>,
    /// When the first frame begins.
    pub first_ps: u64,
    /// Length of a frame: frame f lasts from just after `first + f * every` to `first + (f + 1) * every`.
    pub every_ps: u64,
    /// How many there are.
    pub frames: usize,
    /// When the run ended, within the last frame.
    pub end_ps: u64,
    /// The nodes by number.
    pub nodes: Vec<Node>,
    /// The ports by number.
    pub ports: Vec<Port>,
    /// The groups of flows by number.
    pub groups: Vec<String>,
    /// The flows that were recorded.
    pub flows: Vec<Flow>,
    /// What is said of every port.
    pub columns: Vec<ColumnHeader>,
    /// What is said of every one of `flows`.
    pub flow_columns: Vec<ColumnHeader>,
}

/// The file with that header, and the columns that it lists.
pub fn write_file(header: &Header, columns: &[u8]) -> Vec<u8> {
    // Strings and numbers do not refuse.
    let header = serde_json::to_vec(header).unwrap_or_default();
    let mut file = MAGIC.to_vec();
    file.extend((header.len() as u32).to_le_bytes());
    file.extend(header);
    file.extend(columns);
    file
}

fn write_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 128 {
        out.push(value as u8 | 128);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Writes the differences of a series, one value after the other.
struct Differences<'a> {
    out: &'a mut Vec<u8>,
    before: u64,
    /// Differences of 0 that are still to be written.
    zeros: u64,
}

impl Differences<'_> {
    fn push(&mut self, value: u64) {
        let difference = value.wrapping_sub(self.before) as i64;
        if difference == 0 {
            self.zeros += 1;
            return;
        }
        self.write_zeros();
        write_varint(self.out, (difference << 1 ^ difference >> 63) as u64);
        self.before = value;
    }

    /// The same value again and again.
    fn fill(&mut self, value: u64, times: u64) {
        if times > 0 {
            self.push(value);
            self.zeros += times - 1;
        }
    }

    fn write_zeros(&mut self) {
        if self.zeros > 0 {
            self.out.push(0);
            write_varint(self.out, self.zeros - 1);
            self.zeros = 0;
        }
    }
}

/// Writes a series of which some values are given, by frame. The others are as before if they are `lasting`, and 0 otherwise.
pub fn write_series(out: &mut Vec<u8>, frames: usize, given: &[(u32, u64)], lasting: bool) {
    let mut series = Differences { out, before: 0, zeros: 0 };
    let mut frame = 0;
    for &(at, value) in given {
        series.fill(if lasting { series.before } else { 0 }, at as u64 - frame);
        series.push(value);
        frame = at as u64 + 1;
    }
    series.fill(if lasting { series.before } else { 0 }, frames as u64 - frame);
    series.write_zeros();
}

/// What is wrong with a recording.
#[derive(Debug)]
pub enum RecordingError {
    /// It does not begin as recordings of this format do.
    NotARecording,
    /// It ends before the length of its header.
    NoHeader,
    /// It ends within its header.
    HeaderCutOff,
    /// Its header is not one.
    Header(serde_json::Error),
    /// It is of that version, which is later than [`VERSION`].
    Version(u32),
    /// Its header announces more than a recording may have.
    TooLarge {
        /// So many frames.
        frames: usize,
        /// So many flows.
        flows: usize,
        /// So many columns.
        columns: usize,
    },
    /// It ends within its columns.
    CutOff,
    /// The column of that name does not have a value for every place and frame.
    Column(String),
    /// Something follows its last column.
    Trailing,
}

impl fmt::Display for RecordingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordingError::NotARecording => f.write_str("it is not a recording, or of another version"),
            RecordingError::NoHeader => f.write_str("it is cut off before its header"),
            RecordingError::HeaderCutOff => f.write_str("its header is cut off"),
            RecordingError::Header(error) => write!(f, "its header cannot be read: {error}"),
            RecordingError::Version(version) => {
                write!(f, "it is of version {version}; this program reads {OLDEST} to {VERSION}")
            }
            RecordingError::TooLarge { frames, flows, columns } => {
                write!(f, "it says that it has {frames} frames, {flows} flows and {columns} columns")
            }
            RecordingError::CutOff => f.write_str("it is cut off"),
            RecordingError::Column(name) => write!(f, "its column {name} is damaged"),
            RecordingError::Trailing => f.write_str("something follows its last column"),
        }
    }
}

impl std::error::Error for RecordingError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RecordingError::Header(error) => Some(error),
            _ => None,
        }
    }
}

/// A recording that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// What it says of itself.
    pub header: Header,
    /// By column of ports, frame by frame of port 0, then of port 1 and so on.
    pub ports: Vec<Vec<u64>>,
    /// The same by column of flows.
    pub flows: Vec<Vec<u64>>,
}

impl Recorded {
    /// Reads a recording.
    pub fn read(file: &[u8]) -> Result<Recorded, RecordingError> {
        let rest = file.strip_prefix(MAGIC).ok_or(RecordingError::NotARecording)?;
        let (length, rest) = rest.split_first_chunk().ok_or(RecordingError::NoHeader)?;
        let header = rest.get(..u32::from_le_bytes(*length) as usize).ok_or(RecordingError::HeaderCutOff)?;
        let mut rest = &rest[header.len()..];
        let header: Header = serde_json::from_slice(header).map_err(RecordingError::Header)?;
        if !(OLDEST..=VERSION).contains(&header.version) {
            return Err(RecordingError::Version(header.version));
        }
        let columns = header.columns.len().max(header.flow_columns.len());
        if header.frames > most_frames(header.ports.len()) || header.flows.len() > MOST_FLOWS || columns > MOST_COLUMNS
        {
            return Err(RecordingError::TooLarge { frames: header.frames, flows: header.flows.len(), columns });
        }
        let mut read = |headers: &[ColumnHeader], places: usize| {
            let column = |column: &ColumnHeader| {
                let (bytes, left) = rest.split_at_checked(column.bytes).ok_or(RecordingError::CutOff)?;
                rest = left;
                read_column(bytes, places, header.frames).ok_or_else(|| RecordingError::Column(column.name.clone()))
            };
            headers.iter().map(column).collect::<Result<Vec<_>, RecordingError>>()
        };
        let ports = read(&header.columns, header.ports.len())?;
        let flows = read(&header.flow_columns, header.flows.len())?;
        if !rest.is_empty() {
            return Err(RecordingError::Trailing);
        }
        Ok(Recorded { header, ports, flows })
    }

    /// What a column says of a port, frame by frame.
    pub fn port(&self, column: &str, port: usize) -> Option<&[u64]> {
        series(&self.header.columns, &self.ports, self.header.frames, column, port)
    }

    /// What a column says of a flow, by its place in the header.
    pub fn flow(&self, column: &str, place: usize) -> Option<&[u64]> {
        series(&self.header.flow_columns, &self.flows, self.header.frames, column, place)
    }
}

fn series<'a>(
    headers: &[ColumnHeader],
    columns: &'a [Vec<u64>],
    frames: usize,
    name: &str,
    place: usize,
) -> Option<&'a [u64]> {
    let column = headers.iter().position(|header| header.name == name)?;
    columns[column].get(place * frames..(place + 1) * frames)
}

fn read_varint(bytes: &mut impl Iterator<Item = u8>) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = bytes.next()?;
        let bits = (byte & 127) as u64;
        value |= bits << shift;
        if bits << shift >> shift != bits {
            return None;
        }
        if byte < 128 {
            return Some(value);
        }
    }
    None
}

/// The values of a column, or nothing if it is not one of so many places and frames.
fn read_column(bytes: &[u8], places: usize, frames: usize) -> Option<Vec<u64>> {
    let mut bytes = bytes.iter().copied();
    let mut values = Vec::with_capacity(places * frames);
    for place in 0..places {
        let (mut value, end) = (0u64, (place + 1) * frames);
        while values.len() < end {
            let code = read_varint(&mut bytes)?;
            let mut times = 1;
            if code == 0 {
                times =
                    read_varint(&mut bytes)?.checked_add(1).filter(|times| *times <= (end - values.len()) as u64)?;
            }
            value = value.wrapping_add((code >> 1) ^ (code & 1).wrapping_neg());
            values.extend(std::iter::repeat_n(value, times as usize));
        }
    }
    bytes.next().is_none().then_some(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Values as they come: long runs of one, small steps, and anything.
    fn series(frames: usize) -> impl Strategy<Value = Vec<u64>> {
        let value = prop_oneof![4 => Just(0u64), 3 => 0..100u64, 1 => any::<u64>(), 1 => Just(u64::MAX)];
        prop::collection::vec((value, 1usize..200), 1..frames).prop_map(move |runs| {
            let all: Vec<u64> = runs.into_iter().flat_map(|(value, times)| std::iter::repeat_n(value, times)).collect();
            all.into_iter().chain(std::iter::repeat(7)).take(frames).collect()
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(columns in prop::collection::vec(series(70), 0..6)) {
            let (mut zeros, mut lasting) = (Vec::new(), Vec::new());
            for values in &columns {
                let given: Vec<(u32, u64)> = (0..).zip(values.iter().copied()).collect();
                let not_zero: Vec<_> = given.iter().copied().filter(|(_, value)| *value != 0).collect();
                write_series(&mut zeros, values.len(), &not_zero, false);
                let changed = |(frame, value): &(u32, u64)| {
                    *value != (*frame as usize).checked_sub(1).map_or(0, |before| values[before])
                };
                let changes: Vec<_> = given.into_iter().filter(changed).collect();
                write_series(&mut lasting, values.len(), &changes, true);
            }
            let expected: Vec<u64> = columns.concat();
            prop_assert_eq!(&zeros, &lasting);
            prop_assert_eq!(read_column(&zeros, columns.len(), 70), Some(expected));
            // Nothing may be missing, and nothing may follow.
            if let Some((_, short)) = zeros.split_last() {
                prop_assert_eq!(read_column(short, columns.len(), 70), None);
            }
            zeros.push(0);
            prop_assert_eq!(read_column(&zeros, columns.len(), 70), None);
        }

        #[test]
        fn noise_is_refused_without_falling_over(bytes in prop::collection::vec(any::<u8>(), 0..60), places in 0usize..5) {
            _ = read_column(&bytes, places, 64);
            let mut file = MAGIC.to_vec();
            file.extend(bytes);
            prop_assert!(Recorded::read(&file).is_err());
        }
    }

    #[test]
    fn the_example_of_the_documentation_has_these_bytes() {
        let mut out = Vec::new();
        write_series(&mut out, 8, &[(2, 100), (3, 100), (4, 100), (5, 40)], false);
        // 0 0, +100, 0 0, -60, -40, 0
        assert_eq!(out, [0, 1, 200, 1, 0, 1, 119, 79, 0, 0]);
        assert_eq!(read_column(&out, 1, 8), Some(vec![0, 0, 100, 100, 100, 40, 0, 0]));
    }

    #[test]
    fn a_short_file_does_not_ask_for_much_memory() {
        let port = Port { node: 0, peer: 0, rate_bps: 1, delay_ps: 1, threshold: None, mark: None };
        let mut column = Vec::new();
        (0..512).for_each(|_| write_series(&mut column, 4096, &[], false));
        let mut header = Header {
            version: VERSION,
            scenario: String::new(),
            preset: None,
            scheme: String::new(),
            seed: 1,
            topology: Map::new(),
            first_ps: 0,
            every_ps: 1,
            frames: 4096,
            end_ps: 1,
            nodes: Vec::new(),
            ports: vec![port; 512],
            groups: Vec::new(),
            flows: Vec::new(),
            columns: vec![ColumnHeader { name: "a".into(), unit: String::new(), bytes: column.len() }],
            flow_columns: Vec::new(),
        };
        let one = Recorded::read(&write_file(&header, &column)).unwrap();
        assert_eq!(one.ports[0].len(), 512 * 4096);
        header.columns = vec![header.columns[0].clone(); 1000];
        let many = Recorded::read(&write_file(&header, &column.repeat(1000)));
        assert!(matches!(many, Err(RecordingError::TooLarge { columns: 1000, .. })), "it was read");
    }

    #[test]
    fn a_recording_has_few_frames_of_many_ports_and_many_of_few() {
        assert_eq!((most_frames(2), most_frames(512), most_frames(1024)), (4096, 4096, 2048));
        assert_eq!((most_frames(4600), most_frames(1 << 20)), (454, 64));
    }
}
