//! Thrift's compact protocol, as far as Parquet's page headers and footers need it.

use super::Broken;

/// Types of fields, as a field's header has them.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const STRUCT: u8 = 12;

/// How deep structures may nest in a file: Parquet's own go no deeper than six.
const DEPTH: usize = 16;

/// Appends an unsigned number, seven bits to the byte.
pub(super) fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A structure as it is written. Fields come in the order of their numbers.
pub(super) struct Writer {
    out: Vec<u8>,
    last: Vec<i16>,
}

impl Writer {
    pub(super) fn new() -> Writer {
        Writer { out: Vec::new(), last: vec![0] }
    }

    /// Ends the outermost structure and gives its bytes.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.out.push(0);
        self.out
    }

    fn header(&mut self, field: i16, kind: u8) {
        let last = self.last.last_mut().expect("a structure is open");
        debug_assert!((1..=15).contains(&(field - *last)), "fields come in order");
        self.out.push(((field - *last) as u8) << 4 | kind);
        *last = field;
    }

    fn zigzag(&mut self, value: i64) {
        varint(&mut self.out, (value << 1 ^ value >> 63) as u64);
    }

    pub(super) fn bool(&mut self, field: i16, value: bool) {
        self.header(field, if value { TRUE } else { FALSE });
    }

    pub(super) fn byte(&mut self, field: i16, value: u8) {
        self.header(field, BYTE);
        self.out.push(value);
    }

    pub(super) fn i32(&mut self, field: i16, value: i32) {
        self.header(field, I32);
        self.zigzag(i64::from(value));
    }

    pub(super) fn i64(&mut self, field: i16, value: i64) {
        self.header(field, I64);
        self.zigzag(value);
    }

    pub(super) fn binary(&mut self, field: i16, bytes: &[u8]) {
        self.header(field, BINARY);
        self.bytes(bytes);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        varint(&mut self.out, bytes.len() as u64);
        self.out.extend_from_slice(bytes);
    }

    /// A structure as a field.
    pub(super) fn structure(&mut self, field: i16, fill: impl FnOnce(&mut Writer)) {
        self.header(field, STRUCT);
        self.element(fill);
    }

    fn element(&mut self, fill: impl FnOnce(&mut Writer)) {
        self.last.push(0);
        fill(self);
        self.last.pop();
        self.out.push(0);
    }

    fn list(&mut self, field: i16, kind: u8, length: usize) {
        self.header(field, LIST);
        if length < 15 {
            self.out.push((length as u8) << 4 | kind);
        } else {
            self.out.push(0xf0 | kind);
            varint(&mut self.out, length as u64);
        }
    }

    /// A list of structures.
    pub(super) fn structures<T>(&mut self, field: i16, items: &[T], fill: impl Fn(&mut Writer, &T)) {
        self.list(field, STRUCT, items.len());
        for item in items {
            self.element(|writer| fill(writer, item));
        }
    }

    /// A list of whole numbers.
    pub(super) fn i32s(&mut self, field: i16, items: &[i32]) {
        self.list(field, I32, items.len());
        for &item in items {
            self.zigzag(i64::from(item));
        }
    }

    /// A list of texts.
    pub(super) fn texts(&mut self, field: i16, items: &[&str]) {
        self.list(field, BINARY, items.len());
        for item in items {
            self.bytes(item.as_bytes());
        }
    }
}

/// Bytes as they are read.
pub(super) struct Reader<'a> {
    pub(super) rest: &'a [u8],
    depth: usize,
}

/// A field of a structure.
pub(super) struct Field {
    pub(super) id: i16,
    kind: u8,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes, depth: 0 }
    }

    pub(super) fn u8(&mut self) -> Result<u8, Broken> {
        let (&first, rest) = self.rest.split_first().ok_or(Broken::Short)?;
        self.rest = rest;
        Ok(first)
    }

    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], Broken> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(Broken::Short)?;
        self.rest = rest;
        Ok(taken)
    }

    pub(super) fn varint(&mut self) -> Result<u64, Broken> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Broken::Number)
    }

    fn zigzag(&mut self) -> Result<i64, Broken> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    fn length(&mut self) -> Result<usize, Broken> {
        usize::try_from(self.varint()?).map_err(|_| Broken::Short)
    }

    /// Reads the fields of a structure one by one; `each` takes a field's value, or leaves it by [`Reader::skip`].
    pub(super) fn structure(
        &mut self,
        mut each: impl FnMut(&mut Reader<'a>, Field) -> Result<(), Broken>,
    ) -> Result<(), Broken> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(Broken::Deep);
        }
        let mut id: i16 = 0;
        loop {
            let header = self.u8()?;
            if header == 0 {
                break;
            }
            id = match header >> 4 {
                0 => i16::try_from(self.zigzag()?).map_err(|_| Broken::Number)?,
                delta => id.checked_add(i16::from(delta)).ok_or(Broken::Number)?,
            };
            each(self, Field { id, kind: header & 0xf })?;
        }
        self.depth -= 1;
        Ok(())
    }

    pub(super) fn integer(&mut self, field: &Field) -> Result<i64, Broken> {
        match field.kind {
            BYTE => Ok(i64::from(self.u8()? as i8)),
            I16 | I32 | I64 => self.zigzag(),
            _ => Err(Broken::Type),
        }
    }

    pub(super) fn i32(&mut self, field: &Field) -> Result<i32, Broken> {
        i32::try_from(self.integer(field)?).map_err(|_| Broken::Number)
    }

    /// A number that counts something.
    pub(super) fn count(&mut self, field: &Field) -> Result<usize, Broken> {
        usize::try_from(self.integer(field)?).map_err(|_| Broken::Number)
    }

    pub(super) fn set_i32(&mut self, field: &Field, value: &mut i32) -> Result<(), Broken> {
        *value = self.i32(field)?;
        Ok(())
    }

    pub(super) fn set_count(&mut self, field: &Field, value: &mut usize) -> Result<(), Broken> {
        *value = self.count(field)?;
        Ok(())
    }

    pub(super) fn text(&mut self, field: &Field) -> Result<String, Broken> {
        if field.kind != BINARY {
            return Err(Broken::Type);
        }
        let length = self.length()?;
        String::from_utf8(self.take(length)?.to_vec()).map_err(|_| Broken::Text)
    }

    pub(super) fn inner(
        &mut self,
        field: &Field,
        each: impl FnMut(&mut Reader<'a>, Field) -> Result<(), Broken>,
    ) -> Result<(), Broken> {
        if field.kind != STRUCT {
            return Err(Broken::Type);
        }
        self.structure(each)
    }

    /// A list of structures: `each` reads one.
    pub(super) fn list(
        &mut self,
        field: &Field,
        mut each: impl FnMut(&mut Reader<'a>) -> Result<(), Broken>,
    ) -> Result<(), Broken> {
        let (length, kind) = if field.kind == LIST { self.list_header()? } else { return Err(Broken::Type) };
        if length > 0 && kind != STRUCT {
            return Err(Broken::Type);
        }
        (0..length).try_for_each(|_| each(self))
    }

    fn list_header(&mut self) -> Result<(usize, u8), Broken> {
        let header = self.u8()?;
        let length = match header >> 4 {
            15 => self.length()?,
            length => usize::from(length),
        };
        // Every element has a byte at least.
        if length > self.rest.len() {
            return Err(Broken::Short);
        }
        Ok((length, header & 0xf))
    }

    /// Passes over the value of a field.
    pub(super) fn skip(&mut self, field: &Field) -> Result<(), Broken> {
        match field.kind {
            TRUE | FALSE => Ok(()),
            kind => self.pass(kind),
        }
    }

    fn pass(&mut self, kind: u8) -> Result<(), Broken> {
        match kind {
            TRUE | FALSE | BYTE => self.u8().map(|_| ()),
            I16 | I32 | I64 => self.varint().map(|_| ()),
            DOUBLE => self.take(8).map(|_| ()),
            BINARY => {
                let length = self.length()?;
                self.take(length).map(|_| ())
            }
            LIST | SET => {
                self.depth += 1;
                if self.depth > DEPTH {
                    return Err(Broken::Deep);
                }
                let (length, kind) = self.list_header()?;
                (0..length).try_for_each(|_| self.pass(kind))?;
                self.depth -= 1;
                Ok(())
            }
            STRUCT => self.structure(|reader, field| reader.skip(&field)),
            _ => Err(Broken::Type),
        }
    }
}
