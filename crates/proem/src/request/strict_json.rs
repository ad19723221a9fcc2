//! Reads structs from JSON objects only.
//!
//! A derived reader also accepts an array, field by field in the order of the source code: such a request works by
//! accident and changes its meaning when a field is added.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

/// Returns the text of a JSON error without its line and column, which refer to a text that the user does not see or
/// that the message around it names.
#[must_use]
pub fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&place).unwrap_or(&text).to_owned()
}

/// A value that is written as an object.
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(OnlyMap(PhantomData)).map(Self)
    }
}

struct OnlyMap<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for OnlyMap<T> {
    type Value = T;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }
}

/// Reads an object.
pub(crate) fn required_object<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    Object::deserialize(deserializer).map(|Object(value)| value)
}

/// Reads an object or `null`.
pub(crate) fn object<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    Option::<Object<T>>::deserialize(deserializer).map(|value| value.map(|Object(value)| value))
}

/// Reads a list of objects.
pub(crate) fn required_objects<'de, T, D>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    let values = Vec::<Object<T>>::deserialize(deserializer)?;
    Ok(values.into_iter().map(|Object(value)| value).collect())
}

/// Reads a list of objects or `null`.
pub(crate) fn objects<'de, T, D>(deserializer: D) -> Result<Option<Vec<T>>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    let values = Option::<Vec<Object<T>>>::deserialize(deserializer)?;
    Ok(values.map(|values| values.into_iter().map(|Object(value)| value).collect()))
}

/// Reads a map and refuses duplicate keys, since it is unclear which value is meant.
pub(crate) fn unique_keys<'de, T, D>(deserializer: D) -> Result<BTreeMap<String, T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    deserializer.deserialize_map(UniqueKeys(PhantomData))
}

struct UniqueKeys<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for UniqueKeys<T> {
    type Value = BTreeMap<String, T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut values = BTreeMap::new();
        while let Some((key, value)) = map.next_entry::<String, T>()? {
            if values.contains_key(&key) {
                return Err(serde::de::Error::custom(format_args!("duplicate key `{key}`")));
            }
            values.insert(key, value);
        }
        Ok(values)
    }
}
