//! Lists of items with fields, as templates see them, each field with its own source.
//!
//! `{{ skill.name }}` must be traced to that skill's file. A field that is looked up leaves a [`Touch`], and the next
//! expression that is written takes it: so the trace knows which of a thousand skills it was.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use minijinja::value::{DynObject, Enumerator, Object, Value};
use proem_core::line_map::LineMap;
use proem_core::source::Source;
use proem_core::stability::Stability;

use crate::jinja::trace::last_lookup;

/// One item: its fields in a fixed order.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) fields: Vec<Field>,
}

/// A text with its name and origin.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    pub(crate) name: Arc<str>,
    pub(crate) text: Arc<str>,
    pub(crate) source: Source,
    pub(crate) stability: Stability,
    /// The lines of the text in the source file, for texts that are copied from one.
    pub(crate) line_map: Option<Arc<LineMap>>,
}

impl Field {
    /// Makes a field whose text is not copied from lines of a file.
    pub(crate) const fn new(name: Arc<str>, text: Arc<str>, source: Source, stability: Stability) -> Self {
        Self { name, text, source, stability, line_map: None }
    }

    /// Adds the lines of the source that the text was copied from.
    pub(crate) fn taken_from(self, line_map: Option<&LineMap>) -> Self {
        Self { line_map: line_map.cloned().map(Arc::new), ..self }
    }
}

/// The field that an expression looked up: the index of the list among the names, of the item in the list, of the field
/// in the item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Touch {
    pub(super) list: usize,
    pub(super) item: usize,
    pub(super) field: usize,
}

/// A list as a template's value.
pub(super) fn list(items: &Arc<Vec<Item>>, list: usize) -> Value {
    (0..items.len()).map(|item| one(items, list, item)).collect()
}

/// One item as a template's value.
pub(super) fn one(items: &Arc<Vec<Item>>, list: usize, item: usize) -> Value {
    Value::from_object(ItemValue { items: Arc::clone(items), list, item })
}

pub(super) struct ItemValue {
    items: Arc<Vec<Item>>,
    list: usize,
    item: usize,
}

impl ItemValue {
    /// The names of the fields, for messages.
    pub(super) fn names(&self) -> String {
        let fields = self.items.get(self.item).map(|item| item.fields.as_slice()).unwrap_or_default();
        fields.iter().map(|field| field.name.to_string()).collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Debug for ItemValue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Item").field(&self.item).finish()
    }
}

impl Object for ItemValue {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let (name, item) = (key.as_str()?, self.items.get(self.item)?);
        let field = item.fields.iter().position(|field| *field.name == *name)?;
        last_lookup::touch(Touch { list: self.list, item: self.item, field });
        Some(Value::from(Arc::clone(&item.fields.get(field)?.text)))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::NonEnumerable
    }

    /// Compares by the order in the list: minijinja panics if it cannot walk the compared values.
    fn custom_cmp(self: &Arc<Self>, other: &DynObject) -> Option<Ordering> {
        let other = other.downcast_ref::<Self>()?;
        Some((self.list, self.item).cmp(&(other.list, other.item)))
    }
}

/// Escapes a text for an XML element or attribute.
pub(super) fn xml(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    // Most texts have none of the five characters; the search compares sixteen bytes at a time.
    if memchr::memchr3(b'&', b'<', b'>', bytes).or_else(|| memchr::memchr2(b'"', b'\'', bytes)).is_none() {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + text.len() / 8);
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            other => escaped.push(other),
        }
    }
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_of_the_five_is_escaped_alone_and_beside_others() {
        for (text, expected) in [
            ("", ""),
            ("plain é🦀", "plain é🦀"),
            ("&", "&amp;"),
            ("a<b", "a&lt;b"),
            ("a>", "a&gt;"),
            ("\"a", "&quot;a"),
            ("it's", "it&apos;s"),
            ("<a b=\"c\" d='&'>", "&lt;a b=&quot;c&quot; d=&apos;&amp;&apos;&gt;"),
        ] {
            assert_eq!(xml(text), expected, "{text}");
        }
    }
}
