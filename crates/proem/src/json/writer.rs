//! The writer.

use serde::ser::{
    Error as _, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant,
    SerializeTuple, SerializeTupleStruct, SerializeTupleVariant, Serializer,
};
use serde_json::{Error, Value};

use super::text::{must_be_escaped, write_text};

/// What `serde_json` calls a struct that holds JSON as it is.
const RAW: &str = "$serde_json::private::RawValue";

/// What it calls one that holds a number as it is written, where some crate of the build wants numbers so.
const NUMBER: &str = "$serde_json::private::Number";

/// JSON as far as it is written.
#[derive(Debug, Default)]
pub(super) struct Writer {
    out: Vec<u8>,
}

impl Writer {
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.out
    }

    /// What is short, as `serde_json` writes it.
    fn short<T: Serialize>(&mut self, value: T) -> Result<(), Error> {
        serde_json::to_writer(&mut self.out, &value)
    }

    /// The name of a field. It is known to the compiler, which writes it without a look at its bytes.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a name known where it is written costs a quarter less in all")]
    fn name(&mut self, name: &'static str) {
        if name.as_bytes().iter().any(|byte| must_be_escaped(*byte)) {
            write_text(&mut self.out, name);
        } else {
            self.out.reserve(name.len() + 3);
            self.out.push(b'"');
            self.out.extend_from_slice(name.as_bytes());
            self.out.push(b'"');
        }
        self.out.push(b':');
    }

    /// Every part of a list or an object has a comma behind it, until it is closed.
    fn part<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        value.serialize(&mut *self)?;
        self.out.push(b',');
        Ok(())
    }

    fn close(&mut self, bracket: u8) {
        match self.out.last_mut() {
            Some(last) if *last == b',' => *last = bracket,
            _ => self.out.push(bracket),
        }
    }

    fn open(&mut self, bracket: u8) -> &mut Self {
        self.out.push(bracket);
        self
    }

    fn open_variant(&mut self, variant: &'static str, bracket: u8) -> &mut Self {
        self.out.push(b'{');
        self.name(variant);
        self.open(bracket)
    }

    fn close_variant(&mut self, bracket: u8) {
        self.close(bracket);
        self.out.push(b'}');
    }
}

impl<'w> Serializer for &'w mut Writer {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Fields<'w>;
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
        self.out.push(b'{');
        self.name(variant);
        value.serialize(&mut *self)?;
        self.out.push(b'}');
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

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Fields<'w>, Error> {
        let is_raw = name == RAW || name == NUMBER;
        if !is_raw {
            self.out.push(b'{');
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

impl SerializeSeq for &mut Writer {
    type Ok = ();
    type Error = Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.part(value)
    }

    fn end(self) -> Result<(), Error> {
        self.close(b']');
        Ok(())
    }
}

impl SerializeTuple for &mut Writer {
    type Ok = ();
    type Error = Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.part(value)
    }

    fn end(self) -> Result<(), Error> {
        SerializeSeq::end(self)
    }
}

impl SerializeTupleStruct for &mut Writer {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.part(value)
    }

    fn end(self) -> Result<(), Error> {
        SerializeSeq::end(self)
    }
}

impl SerializeTupleVariant for &mut Writer {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.part(value)
    }

    fn end(self) -> Result<(), Error> {
        self.close_variant(b']');
        Ok(())
    }
}

impl SerializeMap for &mut Writer {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
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
        self.out.push(b':');
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.part(value)
    }

    fn end(self) -> Result<(), Error> {
        self.close(b'}');
        Ok(())
    }
}

impl SerializeStructVariant for &mut Writer {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), Error> {
        self.name(key);
        self.part(value)
    }

    fn end(self) -> Result<(), Error> {
        self.close_variant(b'}');
        Ok(())
    }
}

/// The fields of a struct.
#[derive(Debug)]
pub(super) struct Fields<'w> {
    writer: &'w mut Writer,
    is_raw: bool,
}

impl SerializeStruct for Fields<'_> {
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
        self.writer.name(key);
        self.writer.part(value)
    }

    fn end(self) -> Result<(), Error> {
        if !self.is_raw {
            self.writer.close(b'}');
        }
        Ok(())
    }
}
