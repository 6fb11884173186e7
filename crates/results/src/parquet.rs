//! Parquet files of flat columns: those that [`tables`](crate::tables) writes, and what it needs to read them again.
//!
//! Written are data pages of the first version, compressed by Snappy, with a dictionary where values repeat and packed differences where they do not. Every
//! reader knows these. Read are such files from any writer, of any number of row groups and pages.

mod delta;
mod levels;
mod thrift;

use crate::tables::{Column, Texts, Values};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::io::{self, Write};
use thrift::{Reader, Writer};

const MAGIC: &[u8; 4] = b"PAR1";
/// Rows of a row group: what a reader's thread works on.
const GROUP: usize = 1 << 20;
/// Rows of a page.
const PAGE: usize = 1 << 16;
/// Different values that a dictionary of numbers has at the most.
const DICTIONARY: usize = 1 << 15;
/// Numbers that are small.
const SMALL: u64 = 256;
/// How many values are looked at to see whether most are different.
const PROBES: usize = 64;
/// Numbers of which differences are kept, at the least.
const DELTAS: usize = 32;
/// Rows of a file that is read, and bytes of a page: no more is allocated because a file says so.
const MAX_ROWS: usize = 1 << 27;
const MAX_PAGE: usize = 1 << 26;

/// Spreads numbers and names of a table over a map: these come from a run, which is not out to make them collide.
#[derive(Default)]
pub(crate) struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for word in bytes.chunks(8) {
            self.write_u64(word.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)));
        }
    }
    fn write_u8(&mut self, value: u8) {
        self.write_u64(value.into());
    }
    fn write_u64(&mut self, value: u64) {
        // An odd number, the golden ratio in binary; the upper bits of a product depend on all of the factor's.
        let product = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ product >> 32;
    }
}

/// Physical types.
const INT32: i32 = 1;
const INT64: i32 = 2;
const FLOAT64: i32 = 5;
const BYTE_ARRAY: i32 = 6;
/// Kinds of pages.
const DATA: i32 = 0;
const DICTIONARY_PAGE: i32 = 2;
/// Encodings.
const PLAIN: i32 = 0;
const PLAIN_DICTIONARY: i32 = 2;
const RLE: i32 = 3;
const DELTA: i32 = 5;
const RLE_DICTIONARY: i32 = 8;
/// Codecs.
const UNCOMPRESSED: i32 = 0;
const SNAPPY: i32 = 1;
/// What integers and bytes stand for: the older name of a logical type.
const UTF8: i32 = 0;
const UINT_8: i32 = 11;
const UINT_64: i32 = 14;

/// Why bytes are no table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// They do not begin and end as Parquet does.
    Magic,
    /// They end too early.
    Short,
    /// A number is beyond its range.
    Number,
    /// A field has another type than it should.
    Type,
    /// A text is not UTF-8.
    Text,
    /// Structures nest too deeply.
    Deep,
    /// A page does not decompress.
    Compression,
    /// Counts of rows contradict each other.
    Rows,
    /// It has more rows, or larger pages, than is allowed.
    Large,
    /// A column is of a type that no table here has, or is nested.
    Column,
    /// A page is encoded or compressed in a way that is not known here.
    Encoding,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Broken::Magic => "it is not a Parquet file",
            Broken::Short => "it ends too early",
            Broken::Number => "a number in it is out of range",
            Broken::Type => "a field of its description has the wrong type",
            Broken::Text => "a text in it is not UTF-8",
            Broken::Deep => "its description is nested too deeply",
            Broken::Compression => "a page in it cannot be decompressed",
            Broken::Rows => "its counts of rows contradict each other",
            Broken::Large => "it has more rows or larger pages than a table of results",
            Broken::Column => "it has columns of a type that no table of results has",
            Broken::Encoding => "it is encoded in a way that tables of results are not",
        })
    }
}

impl std::error::Error for Broken {}

/// A column chunk that has been written.
struct Chunk {
    encodings: Vec<i32>,
    values: usize,
    nulls: usize,
    range: Option<(u64, u64)>,
    plain_size: usize,
    size: usize,
    dictionary_at: Option<usize>,
    data_at: usize,
}

/// Counts what goes through.
struct Counted<W> {
    out: W,
    written: usize,
    /// It has a table that is worth keeping from page to page.
    snappy: snap::raw::Encoder,
    packed: Vec<u8>,
}

impl<W: Write> Counted<W> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.written += bytes.len();
        self.out.write_all(bytes)
    }

    /// Writes a page: its header and its compressed body. Adds to the chunk's sizes.
    fn page(&mut self, chunk: &mut Chunk, kind: i32, body: &[u8], rest: impl FnOnce(&mut Writer)) -> io::Result<()> {
        let room = snap::raw::max_compress_len(body.len());
        if self.packed.len() < room {
            self.packed.resize(room, 0);
        }
        let packed = self.snappy.compress(body, &mut self.packed).map_err(io::Error::other)?;
        let size = |bytes: usize| i32::try_from(bytes).map_err(|_| io::Error::other("a page is too large"));
        let mut header = Writer::new();
        header.i32(1, kind);
        header.i32(2, size(body.len())?);
        header.i32(3, size(packed)?);
        rest(&mut header);
        let header = header.finish();
        chunk.plain_size += header.len() + body.len();
        chunk.size += header.len() + packed;
        self.put(&header)?;
        self.written += packed;
        self.out.write_all(&self.packed[..packed])
    }
}

/// Values of a chunk as they are stored: those that are there, and places in a dictionary instead where that is shorter.
enum Stored {
    Plain {
        size: usize,
        bytes: Vec<u8>,
    },
    /// Whole numbers, by what each is more than the one before.
    Delta {
        values: Vec<u64>,
    },
    Dictionary {
        entries: usize,
        bytes: Vec<u8>,
        places: Vec<u32>,
    },
}

impl Stored {
    /// Whole numbers, of which this is the highest.
    fn counts(values: Cow<'_, [u64]>, highest: u64) -> Stored {
        // A few numbers are shorter as they are.
        if values.len() < DELTAS {
            return Stored::numbers(&values, 8);
        }
        match Stored::places(&values, highest) {
            Some((order, places)) => {
                let bytes = order.iter().flat_map(|value| value.to_le_bytes()).collect();
                Stored::Dictionary { entries: order.len(), bytes, places }
            }
            None => Stored::Delta { values: values.into_owned() },
        }
    }

    /// Numbers of so many bytes.
    fn numbers(values: &[u64], size: usize) -> Stored {
        let plain = |values: &[u64]| {
            let mut bytes = Vec::with_capacity(values.len() * size);
            match size {
                8 => values.iter().for_each(|value| bytes.extend_from_slice(&value.to_le_bytes())),
                _ => values.iter().for_each(|value| bytes.extend_from_slice(&value.to_le_bytes()[..size])),
            }
            bytes
        };
        match Stored::places(values, values.iter().copied().max().unwrap_or(0)) {
            Some((order, places)) => Stored::Dictionary { entries: order.len(), bytes: plain(&order), places },
            None => Stored::Plain { size, bytes: plain(values) },
        }
    }

    /// Each value once, and for all of them their places among these; `None` if too many are different.
    fn places(values: &[u64], highest: u64) -> Option<(Vec<u64>, Vec<u32>)> {
        let most = DICTIONARY.min(values.len() / 2);
        let (mut order, mut places) = (Vec::new(), Vec::with_capacity(values.len()));
        if highest < SMALL {
            // Small numbers have a place of their own each.
            let mut known = [u32::MAX; SMALL as usize];
            for &value in values {
                let place = &mut known[value as usize];
                if *place == u32::MAX {
                    *place = order.len() as u32;
                    order.push(value);
                }
                places.push(*place);
            }
            return (order.len() <= most).then_some((order, places));
        }
        // How many values there are in a column that rises can be told without a map.
        let steps = || values.windows(2).filter(|two| two[0] < two[1]).count();
        if values.is_sorted() && steps() >= most {
            return None;
        }
        // Of a few of them nearly all are different: so it is with most columns of times, and no map is needed to see it.
        if values.len() > 8 * PROBES {
            let mut some: Vec<u64> = values.iter().step_by(values.len() / PROBES).copied().collect();
            some.sort_unstable();
            some.dedup();
            if some.len() > PROBES / 8 * 7 {
                return None;
            }
        }
        let mut known: HashMap<u64, u32, BuildHasherDefault<Spread>> = HashMap::default();
        let mut last = None;
        for &value in values {
            // The same value often comes several times in a row.
            let place = match last {
                Some((before, place)) if before == value => place,
                _ => *known.entry(value).or_insert_with(|| {
                    order.push(value);
                    order.len() as u32 - 1
                }),
            };
            last = Some((value, place));
            places.push(place);
            if order.len() > most {
                return None;
            }
        }
        Some((order, places))
    }

    fn texts(texts: &Texts, places: Vec<u32>) -> Stored {
        let mut bytes = Vec::new();
        for name in &texts.names {
            bytes.extend_from_slice(&(name.len() as u32).to_le_bytes());
            bytes.extend_from_slice(name.as_bytes());
        }
        Stored::Dictionary { entries: texts.names.len(), bytes, places }
    }
}

/// Writes a table. All columns have `rows` rows.
pub(crate) fn write(out: impl Write, columns: &[(&str, &Column)], rows: usize) -> io::Result<()> {
    let mut out = Counted { out, written: 0, snappy: snap::raw::Encoder::new(), packed: Vec::new() };
    out.put(MAGIC)?;
    let mut groups: Vec<(usize, Vec<Chunk>)> = Vec::new();
    for start in (0..rows).step_by(GROUP) {
        let end = rows.min(start + GROUP);
        let chunks = columns.iter().map(|(_, column)| write_chunk(&mut out, column, start, end));
        groups.push((end - start, chunks.collect::<io::Result<_>>()?));
    }
    let footer = footer(columns, rows, &groups);
    out.put(&footer)?;
    out.put(&(footer.len() as u32).to_le_bytes())?;
    out.put(MAGIC)?;
    out.out.flush()
}

/// The values that are there.
fn those<'a, T: Copy>(values: &'a [T], present: Option<&[bool]>) -> Cow<'a, [T]> {
    match present {
        None => Cow::Borrowed(values),
        Some(present) => values.iter().zip(present).filter(|(_, there)| **there).map(|(value, _)| *value).collect(),
    }
}

fn write_chunk<W: Write>(out: &mut Counted<W>, column: &Column, start: usize, end: usize) -> io::Result<Chunk> {
    let present = column.present.as_ref().map(|present| &present[start..end]);
    let mut range = None;
    let stored = match &column.values {
        Values::Texts(texts) => Stored::texts(texts, those(&texts.rows[start..end], present).into_owned()),
        Values::Small(values) => {
            let values: Vec<u64> = those(&values[start..end], present).iter().map(|&value| value.into()).collect();
            Stored::numbers(&values, 4)
        }
        Values::Counts(values) => {
            let values = those(&values[start..end], present);
            let both = |(low, high): (u64, u64), &value: &u64| (low.min(value), high.max(value));
            range = values.first().map(|&first| values.iter().fold((first, first), both));
            Stored::counts(values, range.map_or(0, |(_, high)| high))
        }
        Values::Numbers(values) => {
            let values: Vec<u64> = those(&values[start..end], present).iter().map(|value| value.to_bits()).collect();
            Stored::numbers(&values, 8)
        }
    };
    let begin = out.written;
    let mut chunk = Chunk {
        encodings: vec![RLE],
        values: end - start,
        nulls: present.map_or(0, |present| present.iter().filter(|there| !**there).count()),
        range,
        plain_size: 0,
        size: 0,
        dictionary_at: None,
        data_at: begin,
    };
    let mut encoding = PLAIN;
    if let Stored::Dictionary { entries, bytes, .. } = &stored {
        encoding = RLE_DICTIONARY;
        chunk.encodings.push(PLAIN);
        chunk.dictionary_at = Some(begin);
        out.page(&mut chunk, DICTIONARY_PAGE, bytes, |header| {
            header.structure(7, |page| {
                page.i32(1, *entries as i32);
                page.i32(2, PLAIN);
            });
        })?;
        chunk.data_at = out.written;
    }
    if let Stored::Delta { .. } = &stored {
        encoding = DELTA;
    }
    chunk.encodings.push(encoding);
    let mut done = 0;
    for first in (start..end).step_by(PAGE) {
        let last = end.min(first + PAGE);
        let mut defined = Vec::new();
        let count = match &column.present {
            None => {
                levels::run(&mut defined, 1, last - first, 1);
                last - first
            }
            Some(present) => {
                let flags: Vec<u32> = present[first..last].iter().map(|&there| there.into()).collect();
                levels::encode(&mut defined, &flags, 1);
                flags.iter().filter(|&&flag| flag == 1).count()
            }
        };
        let mut body = (defined.len() as u32).to_le_bytes().to_vec();
        body.append(&mut defined);
        match &stored {
            Stored::Plain { size, bytes } => body.extend_from_slice(&bytes[done * size..(done + count) * size]),
            Stored::Delta { values } => delta::encode(&mut body, &values[done..done + count]),
            Stored::Dictionary { entries, places, .. } => {
                // Not every reader takes numbers without a bit.
                let width = levels::width(*entries).max(1);
                body.push(width as u8);
                levels::encode(&mut body, &places[done..done + count], width);
            }
        }
        done += count;
        out.page(&mut chunk, DATA, &body, |header| {
            header.structure(5, |page| {
                page.i32(1, (last - first) as i32);
                page.i32(2, encoding);
                page.i32(3, RLE);
                page.i32(4, RLE);
            });
        })?;
    }
    Ok(chunk)
}

/// The physical type of a column.
fn physical(column: &Column) -> i32 {
    match column.values {
        Values::Texts(_) => BYTE_ARRAY,
        Values::Small(_) => INT32,
        Values::Counts(_) => INT64,
        Values::Numbers(_) => FLOAT64,
    }
}

/// What is at the end of a file: its columns, and where they are.
fn footer(columns: &[(&str, &Column)], rows: usize, groups: &[(usize, Vec<Chunk>)]) -> Vec<u8> {
    let mut file = Writer::new();
    file.i32(1, 1);
    // The first element is the table itself.
    let elements: Vec<Option<&(&str, &Column)>> = std::iter::once(None).chain(columns.iter().map(Some)).collect();
    file.structures(2, &elements, |element, item| match item {
        None => {
            element.binary(4, b"schema");
            element.i32(5, columns.len() as i32);
        }
        Some((name, column)) => {
            const OPTIONAL: i32 = 1;
            element.i32(1, physical(column));
            element.i32(3, OPTIONAL);
            element.binary(4, name.as_bytes());
            let unsigned = |bits: u8| {
                move |kind: &mut Writer| {
                    kind.structure(10, |integer| {
                        integer.byte(1, bits);
                        integer.bool(2, false);
                    });
                }
            };
            match column.values {
                Values::Texts(_) => {
                    element.i32(6, UTF8);
                    element.structure(10, |kind| kind.structure(1, |_| ()));
                }
                Values::Small(_) => {
                    element.i32(6, UINT_8);
                    element.structure(10, unsigned(8));
                }
                Values::Counts(_) => {
                    element.i32(6, UINT_64);
                    element.structure(10, unsigned(64));
                }
                Values::Numbers(_) => (),
            }
        }
    });
    file.i64(3, rows as i64);
    file.structures(4, groups, |group, (rows, chunks)| {
        let pairs: Vec<_> = columns.iter().zip(chunks).collect();
        group.structures(1, &pairs, |part, ((name, column), chunk)| {
            part.i64(2, chunk.data_at as i64);
            part.structure(3, |meta| describe(meta, name, column, chunk));
        });
        group.i64(2, chunks.iter().map(|chunk| chunk.plain_size as i64).sum());
        group.i64(3, *rows as i64);
    });
    file.binary(6, concat!("tailwater ", env!("CARGO_PKG_VERSION")).as_bytes());
    // Ranges are ordered as the types are.
    file.structures(7, columns, |order, _| order.structure(1, |_| ()));
    file.finish()
}

fn describe(meta: &mut Writer, name: &str, column: &Column, chunk: &Chunk) {
    meta.i32(1, physical(column));
    meta.i32s(2, &chunk.encodings);
    meta.texts(3, &[name]);
    meta.i32(4, SNAPPY);
    meta.i64(5, chunk.values as i64);
    meta.i64(6, chunk.plain_size as i64);
    meta.i64(7, chunk.size as i64);
    meta.i64(9, chunk.data_at as i64);
    if let Some(at) = chunk.dictionary_at {
        meta.i64(11, at as i64);
    }
    meta.structure(12, |statistics| {
        statistics.i64(3, chunk.nulls as i64);
        if let Some((low, high)) = chunk.range {
            statistics.binary(5, &high.to_le_bytes());
            statistics.binary(6, &low.to_le_bytes());
        }
    });
}

/// A column as the footer of a file has it.
#[derive(Default)]
struct Leaf {
    name: String,
    physical: i32,
    optional: bool,
    converted: Option<i32>,
}

/// A column chunk as the footer of a file has it.
#[derive(Default)]
struct Place {
    codec: i32,
    values: usize,
    at: usize,
    dictionary_at: Option<usize>,
}

/// A page's header.
#[derive(Default)]
struct Page {
    kind: i32,
    plain: usize,
    packed: usize,
    values: usize,
    encoding: i32,
    levels: i32,
}

/// Reads a table: its columns with their names, and how many rows it has.
pub(crate) fn read(bytes: &[u8]) -> Result<(Vec<(String, Column)>, usize), Broken> {
    let inside = bytes.strip_prefix(MAGIC).and_then(|rest| rest.strip_suffix(MAGIC)).ok_or(Broken::Magic)?;
    let (inside, length) = inside.split_last_chunk::<4>().ok_or(Broken::Short)?;
    let length = u32::from_le_bytes(*length) as usize;
    let begin = inside.len().checked_sub(length).ok_or(Broken::Short)?;
    let (leaves, rows, groups) = read_footer(&inside[begin..])?;
    let pages = &bytes[..MAGIC.len() + begin];
    if rows > MAX_ROWS {
        return Err(Broken::Large);
    }
    let mut columns = leaves.iter().map(Filling::new).collect::<Result<Vec<_>, _>>()?;
    for (count, chunks) in &groups {
        if chunks.len() != columns.len() {
            return Err(Broken::Rows);
        }
        for ((filling, place), leaf) in columns.iter_mut().zip(chunks).zip(&leaves) {
            if place.values != *count || filling.rows + count > rows {
                return Err(Broken::Rows);
            }
            filling.chunk(pages, place, leaf)?;
        }
    }
    if columns.iter().any(|filling| filling.rows != rows) {
        return Err(Broken::Rows);
    }
    Ok((leaves.into_iter().zip(columns).map(|(leaf, filling)| (leaf.name, filling.finish())).collect(), rows))
}

type Footer = (Vec<Leaf>, usize, Vec<(usize, Vec<Place>)>);

fn read_footer(bytes: &[u8]) -> Result<Footer, Broken> {
    let (mut elements, mut rows, mut groups) = (Vec::new(), 0, Vec::new());
    Reader::new(bytes).structure(|file, field| match field.id {
        2 => file.list(&field, |reader| {
            let (mut leaf, mut children) = (Leaf::default(), 0);
            reader.structure(|element, field| {
                match field.id {
                    1 => element.set_i32(&field, &mut leaf.physical)?,
                    3 => match element.i32(&field)? {
                        2 => return Err(Broken::Column),
                        repetition => leaf.optional = repetition == 1,
                    },
                    4 => leaf.name = element.text(&field)?,
                    5 => children = element.count(&field)?,
                    6 => leaf.converted = Some(element.i32(&field)?),
                    _ => element.skip(&field)?,
                }
                Ok(())
            })?;
            // The first is the table; below it are columns alone.
            if children > 0 && !elements.is_empty() {
                return Err(Broken::Column);
            }
            elements.push(leaf);
            Ok(())
        }),
        3 => file.set_count(&field, &mut rows),
        4 => file.list(&field, |reader| {
            let (mut count, mut chunks) = (0, Vec::new());
            reader.structure(|group, field| match field.id {
                1 => group.list(&field, |reader| {
                    chunks.push(read_place(reader)?);
                    Ok(())
                }),
                3 => group.set_count(&field, &mut count),
                _ => group.skip(&field),
            })?;
            groups.push((count, chunks));
            Ok(())
        }),
        _ => file.skip(&field),
    })?;
    if elements.is_empty() {
        return Err(Broken::Column);
    }
    elements.remove(0);
    Ok((elements, rows, groups))
}

fn read_place(reader: &mut Reader<'_>) -> Result<Place, Broken> {
    let mut place = Place::default();
    reader.structure(|chunk, field| match field.id {
        3 => chunk.inner(&field, |meta, field| {
            match field.id {
                4 => meta.set_i32(&field, &mut place.codec)?,
                5 => meta.set_count(&field, &mut place.values)?,
                9 => meta.set_count(&field, &mut place.at)?,
                11 => place.dictionary_at = Some(meta.count(&field)?),
                _ => meta.skip(&field)?,
            }
            Ok(())
        }),
        _ => chunk.skip(&field),
    })?;
    Ok(place)
}

fn read_page(reader: &mut Reader<'_>) -> Result<Page, Broken> {
    let mut page = Page { levels: RLE, ..Page::default() };
    reader.structure(|header, field| match field.id {
        1 => header.set_i32(&field, &mut page.kind),
        2 => header.set_count(&field, &mut page.plain),
        3 => header.set_count(&field, &mut page.packed),
        5 | 7 => {
            let data = field.id == 5;
            header.inner(&field, |inner, field| match field.id {
                1 => inner.set_count(&field, &mut page.values),
                2 => inner.set_i32(&field, &mut page.encoding),
                3 if data => inner.set_i32(&field, &mut page.levels),
                _ => inner.skip(&field),
            })
        }
        _ => header.skip(&field),
    })?;
    if page.plain > MAX_PAGE || page.packed > MAX_PAGE || page.values > MAX_ROWS {
        return Err(Broken::Large);
    }
    Ok(page)
}

/// A column while it is read.
struct Filling {
    rows: usize,
    present: Option<Vec<bool>>,
    values: Values,
    /// Where texts are, by themselves.
    known: HashMap<String, u32>,
}

/// Values of a dictionary or of a page.
enum Read {
    Numbers(Vec<u64>),
    /// Places of the column's own texts.
    Texts(Vec<u32>),
}

impl Filling {
    fn new(leaf: &Leaf) -> Result<Filling, Broken> {
        let values = match (leaf.physical, leaf.converted) {
            (BYTE_ARRAY, Some(UTF8)) => Values::Texts(Texts::default()),
            (INT32, Some(UINT_8)) => Values::Small(Vec::new()),
            (INT64, Some(UINT_64)) => Values::Counts(Vec::new()),
            (FLOAT64, None) => Values::Numbers(Vec::new()),
            _ => return Err(Broken::Column),
        };
        let present = leaf.optional.then(Vec::new);
        Ok(Filling { rows: 0, present, values, known: HashMap::new() })
    }

    fn finish(mut self) -> Column {
        if self.present.as_ref().is_some_and(|present| present.iter().all(|there| *there)) {
            self.present = None;
        }
        Column { values: self.values, present: self.present }
    }

    fn chunk(&mut self, file: &[u8], place: &Place, leaf: &Leaf) -> Result<(), Broken> {
        let begin = place.dictionary_at.map_or(place.at, |at| at.min(place.at));
        let mut reader = Reader::new(file.get(begin..).ok_or(Broken::Short)?);
        let (mut dictionary, mut left) = (None, place.values);
        while left > 0 {
            let page = read_page(&mut reader)?;
            let body = reader.take(page.packed)?;
            let body = match place.codec {
                UNCOMPRESSED if page.packed == page.plain => body.to_vec(),
                SNAPPY if snap::raw::decompress_len(body) == Ok(page.plain) => {
                    snap::raw::Decoder::new().decompress_vec(body).map_err(|_| Broken::Compression)?
                }
                UNCOMPRESSED | SNAPPY => return Err(Broken::Compression),
                _ => return Err(Broken::Encoding),
            };
            match page.kind {
                DICTIONARY_PAGE if matches!(page.encoding, PLAIN | PLAIN_DICTIONARY) && dictionary.is_none() => {
                    dictionary = Some(self.plain(&body, page.values)?);
                }
                DATA if page.levels == RLE => {
                    left = left.checked_sub(page.values).ok_or(Broken::Rows)?;
                    self.data(&body, &page, leaf, dictionary.as_ref())?;
                }
                _ => return Err(Broken::Encoding),
            }
        }
        Ok(())
    }

    fn data(&mut self, body: &[u8], page: &Page, leaf: &Leaf, dictionary: Option<&Read>) -> Result<(), Broken> {
        let mut reader = Reader::new(body);
        let flags = if leaf.optional {
            let length = u32::from_le_bytes(reader.take(4)?.try_into().expect("four bytes"));
            levels::decode(reader.take(length as usize)?, 1, page.values)?
        } else {
            vec![1; page.values]
        };
        let count = flags.iter().filter(|&&flag| flag == 1).count();
        let read = match page.encoding {
            PLAIN => self.plain(reader.rest, count)?,
            DELTA if leaf.physical == INT64 => Read::Numbers(delta::decode(reader.rest, count)?),
            PLAIN_DICTIONARY | RLE_DICTIONARY => {
                let dictionary = dictionary.ok_or(Broken::Encoding)?;
                let width = if reader.rest.is_empty() && count == 0 { 0 } else { u32::from(reader.u8()?) };
                let places = levels::decode(reader.rest, width, count)?;
                fn look<T: Copy>(values: &[T], places: &[u32]) -> Result<Vec<T>, Broken> {
                    places.iter().map(|&at| values.get(at as usize).copied().ok_or(Broken::Number)).collect()
                }
                match dictionary {
                    Read::Numbers(values) => Read::Numbers(look(values, &places)?),
                    Read::Texts(values) => Read::Texts(look(values, &places)?),
                }
            }
            _ => return Err(Broken::Encoding),
        };
        self.rows += page.values;
        if let Some(present) = &mut self.present {
            present.extend(flags.iter().map(|&flag| flag == 1));
        }
        fn spread<T: Copy, U>(out: &mut Vec<U>, flags: &[u32], values: &[T], none: T, make: impl Fn(T) -> U) {
            let mut values = values.iter().copied();
            out.extend(flags.iter().map(|&flag| make(if flag == 1 { values.next().unwrap_or(none) } else { none })));
        }
        match (&mut self.values, &read) {
            (Values::Texts(texts), Read::Texts(read)) => spread(&mut texts.rows, &flags, read, 0, |at| at),
            (Values::Small(out), Read::Numbers(read)) => {
                if read.iter().any(|&value| value > 0xff) {
                    return Err(Broken::Number);
                }
                spread(out, &flags, read, 0, |value| value as u8);
            }
            (Values::Counts(out), Read::Numbers(read)) => spread(out, &flags, read, 0, |value| value),
            (Values::Numbers(out), Read::Numbers(read)) => spread(out, &flags, read, 0, f64::from_bits),
            _ => return Err(Broken::Encoding),
        }
        Ok(())
    }

    /// Plain values, `count` of them.
    fn plain(&mut self, bytes: &[u8], count: usize) -> Result<Read, Broken> {
        let mut reader = Reader::new(bytes);
        if let Values::Texts(texts) = &mut self.values {
            let mut places = Vec::new();
            for _ in 0..count {
                let length = u32::from_le_bytes(reader.take(4)?.try_into().expect("four bytes"));
                let text = std::str::from_utf8(reader.take(length as usize)?).map_err(|_| Broken::Text)?;
                places.push(match self.known.get(text) {
                    Some(&place) => place,
                    None => {
                        let place = u32::try_from(texts.names.len()).map_err(|_| Broken::Large)?;
                        texts.names.push(text.to_owned());
                        self.known.insert(text.to_owned(), place);
                        place
                    }
                });
            }
            return Ok(Read::Texts(places));
        }
        let size = if matches!(self.values, Values::Small(_)) { 4 } else { 8 };
        let bytes = reader.take(count.checked_mul(size).ok_or(Broken::Large)?)?;
        let value = |bytes: &[u8]| bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte));
        Ok(Read::Numbers(bytes.chunks_exact(size).map(value).collect()))
    }
}

#[cfg(test)]
mod tests;
