//! What is written is what `serde_json` writes, for everything that can be.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};

use super::to_vec;

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
    }
}

proptest! {
    #[test]
    fn every_tree_is_written_as_usual(value in tree()) {
        is_written_as_usual(&value);
    }
}

fn is_written_as_usual<T: Serialize + ?Sized>(value: &T) {
    let ours = String::from_utf8(to_vec(value).expect("it is JSON")).expect("it is UTF-8");
    assert_eq!(ours, serde_json::to_string(value).expect("it is JSON"));
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
