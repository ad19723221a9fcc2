//! What a thread has read of templates: reading one takes longer than rendering it.
//!
//! Everything is found by the text itself, so nothing here can be out of date.

use std::cell::RefCell;
use std::sync::Arc;

use super::session::Compiled;
use super::syntax::Outline;
use super::{Assets, Options};
use crate::warm;

/// More than the templates of a profile.
const ENTRIES_MAX: usize = 32;
/// The bytes of all texts, of either kind.
const BYTES_MAX: usize = 1 << 20;

thread_local! {
    static OUTLINES: RefCell<Vec<Outlined>> = const { RefCell::new(Vec::new()) };
    static COMPILED: RefCell<Vec<Compiled>> = const { RefCell::new(Vec::new()) };
}

struct Outlined {
    text: String,
    trim_blocks: bool,
    lstrip_blocks: bool,
    outline: Arc<Outline>,
}

/// The outline of a text; those of broken ones are made each time.
pub(super) fn outline<E>(
    text: &str,
    options: &Options,
    make: impl FnOnce() -> Result<Outline, E>,
) -> Result<Arc<Outline>, E> {
    let is_it = |known: &Outlined| {
        (known.trim_blocks, known.lstrip_blocks) == (options.trim_blocks, options.lstrip_blocks)
            && known.text == text
    };
    if !warm::is_on() {
        return make().map(Arc::new);
    }
    if let Some(known) = take_from(&OUTLINES, is_it) {
        let outline = Arc::clone(&known.outline);
        put_into(&OUTLINES, known, |known| known.text.len());
        return Ok(outline);
    }
    let outline = Arc::new(make()?);
    let known = Outlined {
        text: text.to_owned(),
        trim_blocks: options.trim_blocks,
        lstrip_blocks: options.lstrip_blocks,
        outline: Arc::clone(&outline),
    };
    put_into(&OUTLINES, known, |known| known.text.len());
    Ok(outline)
}

/// Assets that were compiled before. They are the caller's from now on.
pub(super) fn take(assets: &Assets, options: &Options) -> Option<Compiled> {
    if !warm::is_on() {
        return None;
    }
    take_from(&COMPILED, |compiled| compiled.is_of(assets, options))
}

/// Keeps compiled assets, for another render.
pub(super) fn keep(compiled: Compiled) {
    if warm::is_on() {
        put_into(&COMPILED, compiled, Compiled::bytes);
    }
}

type Kept<T> = std::thread::LocalKey<RefCell<Vec<T>>>;

fn take_from<T>(kept: &'static Kept<T>, is_it: impl Fn(&T) -> bool) -> Option<T> {
    kept.with_borrow_mut(|kept| kept.iter().rposition(is_it).map(|index| kept.remove(index)))
}

/// Adds the latest, and lets go of what was not used for the longest time when there is too much.
fn put_into<T>(kept: &'static Kept<T>, latest: T, bytes: impl Fn(&T) -> usize) {
    kept.with_borrow_mut(|kept| {
        kept.push(latest);
        let mut room = BYTES_MAX;
        let fits = |kept: &&T| {
            let left = room.checked_sub(bytes(kept));
            room = left.unwrap_or(0);
            left.is_some()
        };
        let count = kept.iter().rev().take(ENTRIES_MAX).take_while(fits).count();
        kept.drain(..kept.len() - count);
    });
}
