//! The writer.

use std::io::{self, Write};

use serde::ser::{
    Error as _, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant,
    SerializeTuple, SerializeTupleStruct, SerializeTupleVariant, Serializer,
};
use serde_json::{Error, Value};

use super::text::{must_be_escaped, write_text};

/// The name that `serde_json` gives to a struct that holds raw JSON.
const RAW: &str = "$serde_json::private::RawValue";

/// The name that it gives to one that holds a number as written, if a crate of the build enables that.
const NUMBER: &str = "$serde_json::private::Number";

/// The beginning of a line, as deep as most are.
const LINE: &[u8; 17] = b"\n                ";

/// The longest name that is assembled, with its quotes and separators, before it is written.
const NAME_BYTES_MAX: usize = 24;

/// The number of bytes of long printed output that are buffered before they are written.
const HELD_BYTES_MAX: usize = 64 << 10;

/// The line breaks of the output, and its destination. The compiler makes a writer of each form, so that the compact
/// one has no branches for it.
pub(super) trait Form {
    /// True if every part has a line of its own.
    const HAS_LINES: bool;

    /// May flush the output so far.
    fn take(&mut self, out: &mut Vec<u8>) -> Result<(), Error>;
}

/// Without any space, as a whole.
#[derive(Debug)]
pub(super) struct Compact;

impl Form for Compact {
    const HAS_LINES: bool = false;

    fn take(&mut self, _: &mut Vec<u8>) -> Result<(), Error> {
        Ok(())
    }
}

/// Printed output: every part on a line of its own, indented by two spaces per level; streamed while it is written.
pub(super) struct Lines<'s> {
    sink: &'s mut dyn Write,
    /// The error that stops the output.
    failure: Option<io::Error>,
}

impl Form for Lines<'_> {
    const HAS_LINES: bool = true;

    fn take(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        if out.len() < HELD_BYTES_MAX { Ok(()) } else { self.hand_on(out) }
    }
}

impl<'s> Lines<'s> {
    pub(super) fn new(sink: &'s mut dyn Write) -> Self {
        Self { sink, failure: None }
    }

    #[cold]
    fn hand_on(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        // Closing a list inspects the last byte.
        let last = out.pop();
        let taken = self.sink.write_all(out);
        out.clear();
        out.extend(last);
        taken.map_err(|failure| {
            let error = Error::custom(&failure);
            self.failure = Some(failure);
            error
        })
    }
}

/// JSON as far as it is written, or as it is not handed on yet.
#[derive(Debug)]
pub(super) struct Writer<F> {
    out: Vec<u8>,
    /// The number of open lists and objects.
    depth: usize,
    form: F,
}

impl<F: Form> Writer<F> {
    pub(super) const fn new(form: F) -> Self {
        Self { out: Vec::new(), depth: 0, form }
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.out
    }

    /// Writes a short value through `serde_json`.
    fn short<T: Serialize>(&mut self, value: T) -> Result<(), Error> {
        serde_json::to_writer(&mut self.out, &value)
    }

    /// Writes the name of a field. The compiler knows it, and assembles it with its quotes and separators.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a name known where it is written costs a quarter less in all")]
    fn name(&mut self, name: &'static str) {
        let (bytes, end) = (name.as_bytes(), if F::HAS_LINES { b"\": ".as_slice() } else { b"\":" });
        let mut piece = [b'"'; NAME_BYTES_MAX];
        let length = 1 + bytes.len() + end.len();
        if length > NAME_BYTES_MAX || bytes.iter().any(|byte| must_be_escaped(*byte)) {
            write_text(&mut self.out, name);
            return self.colon();
        }
        for (place, byte) in piece.iter_mut().skip(1).zip(bytes.iter().chain(end)) {
            *place = *byte;
        }
        self.out.extend_from_slice(piece.get(..length).unwrap_or_default());
    }

    fn colon(&mut self) {
        self.out.extend_from_slice(if F::HAS_LINES { b": " } else { b":" });
    }

    /// Begins the line of a part.
    fn line(&mut self) {
        if F::HAS_LINES {
            let end = self.out.len() + 1 + 2 * self.depth;
            // Copy a fixed-size block, then truncate: cheaper than a variable-length copy.
            self.out.extend_from_slice(LINE);
            self.out.resize(end, b' ');
        }
    }

    /// Writes a part of a list or an object, followed by a comma until it is closed.
    fn part<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        value.serialize(&mut *self)?;
        self.out.push(b',');
        Ok(())
    }

    /// Writes an element of a list. Only lists get long, so fields are not flushed one by one.
    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.line();
        self.part(value)?;
        self.form.take(&mut self.out)
    }

    /// A part of an object.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "see `name`")]
    fn field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Error> {
        self.line();
        self.name(name);
        self.part(value)
    }

    fn open(&mut self, bracket: u8) -> &mut Self {
        self.out.push(bracket);
        self.depth += 1;
        self
    }

    fn close(&mut self, bracket: u8) {
        self.depth -= 1;
        if self.out.pop_if(|last| *last == b',').is_some() {
            self.line();
        }
        self.out.push(bracket);
    }

    fn open_variant(&mut self, variant: &'static str, bracket: u8) -> &mut Self {
        self.open(b'{').line();
        self.name(variant);
        self.open(bracket)
    }

    fn close_variant(&mut self, bracket: u8) {
        self.close(bracket);
        self.out.push(b',');
        self.close(b'}');
    }
}

impl Writer<Lines<'_>> {
    /// Writes a value, followed by a line break.
    pub(super) fn print<T: Serialize + ?Sized>(mut self, value: &T) -> io::Result<()> {
        if let Err(error) = value.serialize(&mut self) {
            return Err(self.form.failure.unwrap_or_else(|| error.into()));
        }
        self.out.push(b'\n');
        self.form.sink.write_all(&self.out)
    }
}

impl<'w, F: Form> Serializer for &'w mut Writer<F> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Fields<'w, F>;
    type SerializeStructVariant = Self;

    fn serialize_bool(self, value: bool) -> Result<(), Error> {
        self.short(value)
    }

    fn serialize_i8(self, value: i8) -> Result<(), Error> {
        self.short(value)
    }

    fn serialize_i16(self, value: i16) -> Result<(), Error> {
        self.short(value)
    }

    fn serialize_i32(self, value: i32) -> Result<(), Error> {
        self.short(value)
    }

    fn serialize_i64(self, value: i64) -> Result<(), Error> {
        self.short(value)
    }

    fn serialize_u8(self, value: u8) -> Result<(), Error> {
        self.short(value)
    }

    fn serialize_u16(self, value: u16) -> Result<(), Error> {
        self.short(value)
    }

    fn serialize_u32(self, value: u32) -> Result<(), Error> {
        self.short(value)
    }

    fn serialize_u64(self, value: u64) -> Result<(), Error> {
        self.short(value)
    }

    fn serialize_i128(self, value: i128) -> Result<(), Error> {
        self.short(value)
    }

    fn serialize_u128(self, value: u128) -> Result<(), Error> {
        self.short(value)
    }

    fn serialize_f32(self, value: f32) -> Result<(), Error> {
        self.short(value)
    }

    fn serialize_f64(self, value: f64) -> Result<(), Error> {
        self.short(value)
    }

    fn serialize_char(self, value: char) -> Result<(), Error> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result<(), Error> {
        write_text(&mut self.out, value);
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.short(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.short(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        self.short(())
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), Error> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        self.open(b'{').field(variant, value)?;
        self.close(b'}');
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self, Error> {
        Ok(self.open(b'['))
    }

    fn serialize_tuple(self, _: usize) -> Result<Self, Error> {
        Ok(self.open(b'['))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, Error> {
        Ok(self.open(b'['))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Self, Error> {
        Ok(self.open_variant(variant, b'['))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self, Error> {
        Ok(self.open(b'{'))
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Fields<'w, F>, Error> {
        let is_raw = name == RAW || name == NUMBER;
        if !is_raw {
            self.open(b'{');
        }
        Ok(Fields { writer: self, is_raw })
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Self, Error> {
        Ok(self.open_variant(variant, b'{'))
    }
}

impl<F: Form> SerializeSeq for &mut Writer<F> {
    type Ok = ();
    type Error = Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.element(value)
    }

    fn end(self) -> Result<(), Error> {
        self.close(b']');
        Ok(())
    }
}

impl<F: Form> SerializeTuple for &mut Writer<F> {
    type Ok = ();
    type Error = Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.element(value)
    }

    fn end(self) -> Result<(), Error> {
        SerializeSeq::end(self)
    }
}

impl<F: Form> SerializeTupleStruct for &mut Writer<F> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.element(value)
    }

    fn end(self) -> Result<(), Error> {
        SerializeSeq::end(self)
    }
}

impl<F: Form> SerializeTupleVariant for &mut Writer<F> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.element(value)
    }

    fn end(self) -> Result<(), Error> {
        self.close_variant(b']');
        Ok(())
    }
}

impl<F: Form> SerializeMap for &mut Writer<F> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.line();
        let start = self.out.len();
        key.serialize(&mut **self)?;
        match self.out.get(start) {
            Some(b'"') => {}
            // Numbers and truths become texts.
            Some(b'-' | b'0'..=b'9' | b't' | b'f') => {
                self.out.insert(start, b'"');
                self.out.push(b'"');
            }
            _ => return Err(Error::custom("key must be a string")),
        }
        self.colon();
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.part(value)?;
        self.form.take(&mut self.out)
    }

    fn end(self) -> Result<(), Error> {
        self.close(b'}');
        Ok(())
    }
}

impl<F: Form> SerializeStructVariant for &mut Writer<F> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), Error> {
        self.field(key, value)
    }

    fn end(self) -> Result<(), Error> {
        self.close_variant(b'}');
        Ok(())
    }
}

/// The fields of a struct.
#[derive(Debug)]
pub(super) struct Fields<'w, F> {
    writer: &'w mut Writer<F>,
    is_raw: bool,
}

impl<F: Form> SerializeStruct for Fields<'_, F> {
    type Ok = ();
    type Error = Error;

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "see the writer's `name`")]
    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), Error> {
        if self.is_raw {
            let Value::String(json) = value.serialize(serde_json::value::Serializer)? else {
                return Err(Error::custom("raw JSON must be a text"));
            };
            self.writer.out.extend_from_slice(json.as_bytes());
            return Ok(());
        }
        self.writer.field(key, value)
    }

    fn end(self) -> Result<(), Error> {
        if !self.is_raw {
            self.writer.close(b'}');
        }
        Ok(())
    }
}
