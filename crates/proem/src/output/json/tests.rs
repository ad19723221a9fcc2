//! Compares the output with that of `serde_json`, for every kind of value.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Write};

use proptest::prelude::*;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};

use super::{print, to_vec};

/// Values of every kind that serde knows.
#[derive(Serialize)]
struct Everything<'a> {
    truth: bool,
    small: (i8, u8, i16, u16, i32, u32),
    large: (i64, u64, i128, u128),
    fractions: (f32, f64, f64, f64),
    letter: char,
    #[serde(rename = "a \"name\"")]
    text: &'a str,
    some: Option<&'a str>,
    none: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<u8>,
    unit: (),
    unit_struct: Unit,
    newtype: Newtype<'a>,
    pair: Pair,
    list: Vec<Kind<'a>>,
    empty: (Vec<u8>, BTreeMap<u8, u8>, Empty),
    raw: Box<RawValue>,
}

#[derive(Serialize)]
struct Unit;

#[derive(Serialize)]
struct Empty {}

#[derive(Serialize)]
struct Newtype<'a>(&'a str);

#[derive(Serialize)]
struct Pair(u8, bool);

#[derive(Serialize)]
enum Kind<'a> {
    Plain,
    Newtype(&'a str),
    Tuple(u8, &'a str),
    Struct { one: u8, two: Vec<u8> },
    EmptyStruct {},
}

/// Fields of a map among those of a struct.
#[derive(Serialize)]
struct Flat<'a> {
    first: u8,
    #[serde(flatten)]
    others: BTreeMap<&'a str, Value>,
}

struct Bytes<'a>(&'a [u8]);

impl Serialize for Bytes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

/// A key of each kind that an object may have, and of some that it may not.
#[derive(Serialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(untagged)]
enum Key {
    Text(&'static str),
    Number(i64),
    Large(u128),
    Truth(bool),
    Letter(char),
    Some(Option<&'static str>),
    Unit,
    List(Vec<u8>),
    Object(BTreeMap<u8, u8>),
}

#[test]
fn every_kind_of_value_is_written_as_usual() {
    is_written_as_usual(&Everything {
        truth: true,
        small: (i8::MIN, u8::MAX, i16::MIN, u16::MAX, i32::MIN, u32::MAX),
        large: (i64::MIN, u64::MAX, i128::MIN, u128::MAX),
        fractions: (0.1, -1e300, f64::NAN, f64::INFINITY),
        letter: '"',
        text: "a\tb",
        some: Some("x,"),
        none: None,
        skipped: None,
        unit: (),
        unit_struct: Unit,
        newtype: Newtype("\\"),
        pair: Pair(1, false),
        list: vec![
            Kind::Plain,
            Kind::Newtype(","),
            Kind::Tuple(1, ","),
            Kind::Struct { one: 1, two: vec![] },
            Kind::EmptyStruct {},
        ],
        empty: (vec![], BTreeMap::new(), Empty {}),
        raw: raw(r#"{ "spaces" : [ 1.50 , "stay" ] }"#),
    });
    is_written_as_usual(&Flat { first: 1, others: BTreeMap::from([("a", Value::Null), ("b", "c".into())]) });
    is_written_as_usual(&(Bytes(&[]), Bytes(&[0, 255])));
    is_written_as_usual(&raw("[ ]"));
    is_written_as_usual(&[raw("1"), raw(r#"",""#)]);
}

#[test]
fn keys_are_texts() {
    let written = [
        Key::Text("a \"key\""),
        Key::Text(""),
        Key::Number(-7),
        Key::Large(u128::MAX),
        Key::Truth(true),
        Key::Truth(false),
        Key::Letter('\n'),
        Key::Some(Some("x")),
    ];
    for key in written {
        is_written_as_usual(&BTreeMap::from([(key, 1)]));
    }
    for refused in [Key::Some(None), Key::Unit, Key::List(vec![1]), Key::Object(BTreeMap::new())] {
        let map = BTreeMap::from([(refused, 1)]);
        let usual = serde_json::to_vec(&map).expect_err("it is no text");
        assert_eq!(to_vec(&map).expect_err("it is no text").to_string(), usual.to_string());
        let printed = print(&mut Vec::new(), &map).expect_err("it is no text");
        assert_eq!((printed.kind(), printed.to_string()), (ErrorKind::InvalidData, usual.to_string()));
    }
}

/// Deeper than the spaces that are written at once.
#[test]
fn lists_of_lists_are_written_as_usual() {
    let mut value = Value::from("x");
    for depth in 0..40 {
        value = if depth % 2 == 0 {
            Value::from(vec![value])
        } else {
            serde_json::json!({ "a": value, "b": [] })
        };
        is_written_as_usual(&value);
    }
}

/// Handed on in pieces, of which each ends anywhere.
#[test]
fn long_lists_are_written_as_usual() {
    let items = (0..30_000).map(|number| match number % 3 {
        0 => Value::from("text, and more of it"),
        1 => serde_json::json!([]),
        _ => serde_json::json!({ "a": [number], "b": {} }),
    });
    let value = Value::from(items.collect::<Vec<_>>());
    is_written_as_usual(&value);
    let (mut sink, mut refusing) = (Pieces::default(), Pieces { most: 2, ..Pieces::default() });
    print(&mut sink, &value).expect("it takes all");
    assert!(sink.count > 5, "it is handed on as a whole");
    let failure = print(&mut refusing, &value).expect_err("it takes no more");
    assert_eq!((failure.kind(), refusing.count), (ErrorKind::BrokenPipe, 2), "it went on");
}

/// Counts the pieces that it receives, and may refuse more.
struct Pieces {
    count: usize,
    most: usize,
}

impl Default for Pieces {
    fn default() -> Self {
        Self { count: 0, most: usize::MAX }
    }
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.count == self.most {
            return Err(ErrorKind::BrokenPipe.into());
        }
        self.count += 1;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

proptest! {
    #[test]
    fn every_tree_is_written_as_usual(value in tree()) {
        is_written_as_usual(&value);
    }
}

fn is_written_as_usual<T: Serialize + ?Sized>(value: &T) {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it is UTF-8");
    let ours = text(to_vec(value).expect("it is JSON"));
    assert_eq!(ours, serde_json::to_string(value).expect("it is JSON"));
    let mut printed = Vec::new();
    print(&mut printed, value).expect("it is JSON");
    assert_eq!(text(printed), serde_json::to_string_pretty(value).expect("it is JSON") + "\n");
}

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).expect("it is JSON")
}

fn tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| Number::from_f64(number).map_or(Value::Null, Value::Number)),
        any::<String>().prop_map(Value::from),
        "[ -~\n\t]{0,70}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 64, 8, |inner| {
        let list = proptest::collection::vec(inner.clone(), 0..8).prop_map(Value::from);
        let object = proptest::collection::btree_map(any::<String>(), inner, 0..8)
            .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>()));
        prop_oneof![list, object]
    })
}
