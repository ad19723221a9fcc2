//! Values for Jinja templates: variables, and facts by namespace.
//!
//! A missing fact makes the render stop and name it; the caller observes the fact and renders again. So only facts that
//! a template uses are observed, and rendering itself observes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use minijinja::value::{Object, ObjectRepr, Value, ValueKind};
use minijinja::{Error, ErrorKind};
use proem_core::fact::{Absence, Facts};
use proem_core::source::Source;
use proem_core::stability::Stability;
use proem_core::variable::{self, Variable};

use crate::jinja::cost::value_size;
use crate::jinja::ending::Ending;
use crate::jinja::items::{self, Field, Item, ItemValue, Touch};

/// The meaning of a name.
#[derive(Debug, Clone)]
pub(crate) enum Binding {
    /// A fact, by its key.
    Fact(String),
    /// A text.
    Text { text: String, source: Source, stability: Stability },
    /// A list of texts.
    List { items: Vec<String>, source: Source, stability: Stability },
    /// A list of items with fields.
    Items { items: Arc<Vec<Item>>, source: Source, stability: Stability },
    /// One item with fields.
    Fields { item: Arc<Vec<Item>> },
}

/// All names that a template may use.
#[derive(Debug, Clone, Default)]
pub(crate) struct Context {
    pub(crate) bindings: BTreeMap<String, Binding>,
    /// The facts known so far; `None` hides the namespaces.
    pub(crate) facts: Option<Facts>,
    /// Alternative names of the libraries' prefixes.
    pub(crate) aliases: BTreeMap<String, String>,
    /// Keys that the request sets, in addition to those of the table.
    pub(crate) own_keys: Vec<String>,
    /// The keys of the facts that the template has read.
    pub(crate) read: Arc<Mutex<BTreeSet<String>>>,
}

impl Context {
    /// Tells whether the template has read a fact.
    pub(crate) fn has_read(&self, key: &str) -> bool {
        self.read.lock().unwrap_or_else(PoisonError::into_inner).contains(key)
    }

    /// Counts the items of all lists.
    pub(super) fn items(&self) -> usize {
        let items = |binding: &Binding| match binding {
            Binding::Items { items, .. } => items.len(),
            _ => 0,
        };
        self.bindings.values().map(items).sum()
    }

    /// Counts the fields of all items in lists, and their bytes.
    pub(super) fn fields(&self) -> (usize, usize) {
        let lists = self.bindings.values().filter_map(|binding| match binding {
            Binding::Items { items, .. } => Some(items),
            _ => None,
        });
        let fields = lists.flat_map(|items| items.iter()).flat_map(|item| &item.fields);
        fields.fold((0, 0), |(count, bytes), field| (count + 1, bytes + field.text.len()))
    }

    /// Returns the field that an expression looked up.
    pub(super) fn touched(&self, touch: Touch) -> Option<&Field> {
        let binding = self.bindings.values().nth(touch.list)?;
        let (Binding::Items { items, .. } | Binding::Fields { item: items }) = binding else { return None };
        items.get(touch.item)?.fields.get(touch.field)
    }

    /// The names that a template may use, for messages.
    pub(super) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.bindings.keys().cloned().collect();
        if self.facts.is_some() {
            let fixed = Variable::ALL.into_iter().filter(|variable| !variable.is_dynamic());
            names.extend(fixed.map(|variable| format!("{}.{}", variable.kind(), variable.name())));
            names.extend(self.own_keys.iter().map(|key| key.replacen(':', ".", 1)));
            names.extend(["env.NAME".to_owned(), "file(\"PATH\")".to_owned()]);
        }
        names
    }

    fn is_type(&self, name: &str) -> bool {
        let is_own = |key: &String| {
            key.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
        };
        self.facts.is_some()
            && ((variable::is_known_type(name) && name != variable::LITERAL && name != "file")
                || self.own_keys.iter().any(is_own))
    }
}

/// The value of a whole context.
pub(super) fn root(context: &Arc<Context>) -> Value {
    Value::from_object(Root { context: Arc::clone(context) })
}

/// The function `file("PATH")`, where facts are visible.
pub(super) fn file(
    context: &Arc<Context>,
) -> Option<impl Fn(&str) -> Result<Value, Error> + Send + Sync + 'static> {
    context.facts.as_ref()?;
    let context = Arc::clone(context);
    Some(move |path: &str| fact(&context, &format!("file:{path}")))
}

/// Returns the value of a fact, or an error that requests it.
fn fact(context: &Context, key: &str) -> Result<Value, Error> {
    context.read.lock().unwrap_or_else(PoisonError::into_inner).insert(key.to_owned());
    match context.facts.as_ref().and_then(|facts| facts.fact(key)).map(|fact| &fact.value) {
        Some(Ok(text)) => copied(text),
        Some(Err(why)) => Ok(Value::from_object(Absent { failure: Failure::new(why) })),
        None => Err(Ending::WantedFact(key.to_owned()).into()),
    }
}

/// A fact without a value: false in conditions, empty in text.
#[derive(Debug)]
struct Absent {
    failure: Option<Failure>,
}

/// The way in which reading a fact failed, so that nothing is known about its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failure {
    TimedOut,
    Other,
}

impl Failure {
    /// Returns the failure behind an absence; `None` if the fact is known to have no value, or may not be read.
    const fn new(why: &Absence) -> Option<Self> {
        match why {
            Absence::TimedOut => Some(Self::TimedOut),
            Absence::GitFailed(_)
            | Absence::Unreadable(_)
            | Absence::OverLimit(_)
            | Absence::OverTotal(_) => Some(Self::Other),
            _ => None,
        }
    }
}

impl Object for Absent {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn is_true(self: &Arc<Self>) -> bool {
        false
    }

    fn render(self: &Arc<Self>, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

/// Tells whether a value is an absent fact: the test behind `is absent` and `is present`. An undefined name is neither.
pub(super) fn is_absent(value: &Value) -> Result<bool, Error> {
    absent(value).map(|absent| absent.is_some())
}

/// Tells whether reading a fact failed: the test `is failed`.
pub(super) fn is_failed(value: &Value) -> Result<bool, Error> {
    absent(value).map(|absent| absent.is_some_and(|absent| absent.failure.is_some()))
}

/// Tells whether reading a fact took too long: the test `is timed_out`.
pub(super) fn is_timed_out(value: &Value) -> Result<bool, Error> {
    absent(value).map(|absent| absent.is_some_and(|absent| absent.failure == Some(Failure::TimedOut)))
}

fn absent(value: &Value) -> Result<Option<&Absent>, Error> {
    if value.is_undefined() {
        return Err(Ending::UndefinedInTest.into());
    }
    Ok(value.downcast_object_ref::<Absent>())
}

/// Refuses values that are not text: a whole namespace, a function.
pub(super) fn check_text(value: &Value) -> Result<(), Error> {
    if let Some(Namespace { kind, .. }) = value.downcast_object_ref::<Namespace>() {
        let message = format!("`{kind}` is a group of facts: name one of them, as in `{kind}.NAME`");
        return Err(Error::new(ErrorKind::InvalidOperation, message));
    }
    if value.kind() == ValueKind::Seq
        && value.try_iter().is_ok_and(|mut items| items.next().is_some_and(|first| is_item(&first)))
    {
        let message = "this is a list of things with fields: walk it with `{% for … %}`";
        return Err(Error::new(ErrorKind::InvalidOperation, message));
    }
    if let Some(item) = value.downcast_object_ref::<ItemValue>() {
        let message =
            format!("this has fields and is not a text itself: name one of them ({})", item.names());
        return Err(Error::new(ErrorKind::InvalidOperation, message));
    }
    if value.kind() == ValueKind::Plain && value.downcast_object_ref::<Absent>().is_none() {
        return Err(Error::new(ErrorKind::InvalidOperation, "this is a function: call it"));
    }
    Ok(())
}

fn is_item(value: &Value) -> bool {
    value.downcast_object_ref::<ItemValue>().is_some()
}

#[derive(Debug)]
struct Root {
    context: Arc<Context>,
}

impl Root {
    /// Returns the index of a name among all names, by which touches refer to it.
    fn number(&self, name: &str) -> usize {
        self.context.bindings.keys().position(|known| known == name).unwrap_or(usize::MAX)
    }
}

impl Object for Root {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, name: &str) -> Option<Value> {
        let context = &self.context;
        match context.bindings.get(name) {
            Some(Binding::Items { items, .. }) => Some(or_error(
                value_size::charge(items.len()).map(|()| items::list(items, self.number(name))),
            )),
            Some(Binding::Fields { item }) => Some(items::one(item, self.number(name), 0)),
            Some(Binding::Text { text, .. }) => Some(or_error(copied(text))),
            Some(Binding::List { items, .. }) => {
                let bytes = items.iter().map(|item| COPIED_BYTES + item.len()).sum();
                Some(or_error(paid(bytes).map(|()| Value::from(items.clone()))))
            }
            Some(Binding::Fact(key)) => context.facts.as_ref().map(|_| or_error(fact(context, key))),
            None if context.is_type(name) => {
                let context = Arc::clone(context);
                Some(Value::from_object(Namespace { kind: name.to_owned(), context }))
            }
            None => None,
        }
    }
}

/// The facts of one type: `git.branch`.
#[derive(Debug)]
struct Namespace {
    kind: String,
    context: Arc<Context>,
}

impl Object for Namespace {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let key = format!("{}:{}", self.kind, key.as_str()?);
        let is_known = variable::find(&key).is_some() || self.context.own_keys.contains(&key);
        is_known.then(|| or_error(fact(&self.context, &key)))
    }
}

/// Bytes that are copied in the time of one step of work.
const COPIED_BYTES: usize = 64;

/// Copies a text: every use of a name makes a copy.
fn copied(text: &str) -> Result<Value, Error> {
    paid(text.len()).map(|()| Value::from(text))
}

/// Charges a copy of `bytes` bytes.
fn paid(bytes: usize) -> Result<(), Error> {
    value_size::charge(1 + bytes / COPIED_BYTES)
}

/// Converts an error to a value: it is raised when the template uses it.
fn or_error(value: Result<Value, Error>) -> Value {
    value.unwrap_or_else(Value::from)
}
