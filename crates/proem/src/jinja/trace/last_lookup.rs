//! The current expression and the field that it looked up: recorded by the filters and items that it uses, and read by
//! the formatter and the sink that write its value.
//!
//! Each thread has one record: its renders come one after the other.

use std::cell::Cell;

use crate::jinja::items::Touch;

thread_local! {
    static SEEN: LookupRecord = const { LookupRecord::nothing() };
}

#[derive(Debug)]
struct LookupRecord {
    called: Cell<Option<Evaluation>>,
    writing: Cell<Option<Evaluation>>,
    /// The field that was looked up since the last expression, if all lookups were of one item.
    touched: Cell<FieldLookup>,
    /// The lookups before the current expression, by conditions and by `set`.
    earlier: Cell<FieldLookup>,
}

impl LookupRecord {
    const fn nothing() -> Self {
        Self {
            called: Cell::new(None),
            writing: Cell::new(None),
            touched: Cell::new(FieldLookup::Nothing),
            earlier: Cell::new(FieldLookup::Nothing),
        }
    }
}

#[derive(Debug, Clone, Copy, Default)]
enum FieldLookup {
    #[default]
    Nothing,
    One(Touch),
    Several,
}

/// An expression, and the field of an item that it looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Evaluation {
    pub(crate) number: usize,
    pub(crate) touch: Option<Touch>,
}

/// Resets the record for another render.
pub(crate) fn reset() {
    SEEN.with(|seen| {
        seen.called.take();
        seen.writing.take();
        seen.touched.take();
        seen.earlier.take();
    });
}

/// Records the lookup of a field.
pub(crate) fn touch(touch: Touch) {
    SEEN.with(|seen| {
        seen.touched.set(match seen.touched.get() {
            FieldLookup::Nothing => FieldLookup::One(touch),
            FieldLookup::One(last) if (last.list, last.item) == (touch.list, touch.item) => {
                FieldLookup::One(touch)
            }
            FieldLookup::One(_) | FieldLookup::Several => FieldLookup::Several,
        });
    });
}

/// Records that a wrapped expression is about to be evaluated.
pub(crate) fn start() {
    SEEN.with(|seen| seen.earlier.set(seen.touched.take()));
}

/// Records that the wrapped expression was evaluated. Without a lookup of its own it takes the earlier one.
pub(crate) fn call(number: usize) {
    SEEN.with(|seen| {
        let (own, earlier) = (seen.touched.take(), seen.earlier.take());
        let touched = if matches!(own, FieldLookup::Nothing) { earlier } else { own };
        let touch = match touched {
            FieldLookup::One(touch) => Some(touch),
            FieldLookup::Nothing | FieldLookup::Several => None,
        };
        seen.called.set(Some(Evaluation { number, touch }));
    });
}

/// Records that a value is about to be written. A value without a recorded expression belongs to none.
pub(crate) fn begin() {
    SEEN.with(|seen| seen.writing.set(seen.called.take()));
}

/// Records that the value is written.
pub(crate) fn end() {
    SEEN.with(|seen| seen.writing.set(None));
}

/// Returns the expression whose value is being written.
pub(crate) fn evaluated() -> Option<Evaluation> {
    SEEN.with(|seen| seen.writing.get())
}
