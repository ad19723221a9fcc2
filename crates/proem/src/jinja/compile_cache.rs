//! What a thread has read of templates: reading one takes longer than rendering it.
//!
//! Everything is found by the text itself, so nothing here can be out of date.

use std::cell::RefCell;
use std::sync::Arc;

use super::{Assets, Options};
use crate::jinja::compiled::Compiled;
use crate::jinja::syntax::Outline;
use crate::observe::file_stamp;

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
    if !file_stamp::is_on() {
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
    if !file_stamp::is_on() {
        return None;
    }
    take_from(&COMPILED, |compiled| compiled.is_of(assets, options))
}

/// Keeps compiled assets, for another render.
pub(super) fn keep(compiled: Compiled) {
    if file_stamp::is_on() {
        put_into(&COMPILED, compiled, Compiled::bytes);
    }
}

type Kept<T> = std::thread::LocalKey<RefCell<Vec<T>>>;

fn take_from<T>(kept: &'static Kept<T>, is_it: impl Fn(&T) -> bool) -> Option<T> {
    kept.with_borrow_mut(|kept| kept.iter().rposition(is_it).map(|index| kept.remove(index)))
}

/// Adds the latest, and lets go of what was not used for the longest time when there is too much.
fn put_into<T>(kept: &'static Kept<T>, latest: T, bytes: impl Fn(&T) -> usize) {
    // One that there is no room for must not drive the others out.
    if bytes(&latest) > BYTES_MAX {
        return;
    }
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::super::{Asset, Session, syntax};
    use super::*;

    /// A thread that knows nothing yet does some work.
    fn afresh<R: Send>(work: impl FnOnce() -> R + Send) -> R {
        std::thread::scope(|scope| scope.spawn(work).join().expect("it ends"))
    }

    /// Outlines a text; tells whether it had to be read for that.
    fn is_read(text: &str, options: &Options) -> bool {
        let has_read = Cell::new(false);
        let make = || {
            has_read.set(true);
            syntax::outline(text, "t", &options.syntax())
        };
        let known = outline(text, options, make).expect("it is a template");
        let anew = syntax::outline(text, "t", &options.syntax()).expect("it is a template");
        assert_eq!(format!("{known:?}"), format!("{anew:?}"), "what is known is what would be read");
        has_read.get()
    }

    fn trimming() -> Options {
        Options { trim_blocks: true, ..Options::default() }
    }

    #[test]
    fn a_text_is_read_once_and_never_taken_for_another() {
        afresh(|| {
            let plain = Options::default();
            for (text, options, expected) in [
                ("a {{ b }}", &plain, true),
                ("a {{ b }}", &plain, false),
                ("a {{ c }}", &plain, true),
                ("a {{ b }} ", &plain, true),
                ("a {{ b }}", &plain, false),
                ("a {{ b }}", &trimming(), true),
                ("a {{ b }}", &trimming(), false),
                ("a {{ b }}", &Options { lstrip_blocks: true, ..Options::default() }, true),
                ("a {{ c }}", &plain, false),
            ] {
                assert_eq!(is_read(text, options), expected, "{text:?} {options:?}");
            }
            assert!(
                afresh(|| is_read("a {{ b }}", &Options::default())),
                "another thread knows nothing of it"
            );
        });
    }

    #[test]
    fn nothing_is_known_where_nothing_may_be() {
        afresh(|| {
            let plain = Options::default();
            assert!(is_read("x", &plain));
            assert!(!is_read("x", &plain), "control");
            assert!(file_stamp::without(|| is_read("x", &plain)), "it is not used");
            assert!(file_stamp::without(|| is_read("y", &plain)));
            assert!(is_read("y", &plain), "it was not kept");
        });
    }

    #[test]
    fn what_is_kept_has_limits() {
        afresh(|| {
            let plain = Options::default();
            let text = |number: usize| format!("text {number}");
            for number in 0..=ENTRIES_MAX {
                assert!(is_read(&text(number), &plain), "{number}");
            }
            assert_eq!(OUTLINES.with_borrow(Vec::len), ENTRIES_MAX);
            assert!(!is_read(&text(1), &plain), "this one is used again");
            assert!(is_read(&text(0), &plain), "the oldest one is gone");
            assert!(!is_read(&text(1), &plain), "what was used lately stays");
            assert!(is_read(&text(2), &plain), "another one went instead");
        });
        afresh(|| {
            let plain = Options::default();
            let third = |letter: &str| letter.repeat(BYTES_MAX / 3);
            for letter in ["a", "b", "c"] {
                assert!(is_read(&third(letter), &plain));
            }
            assert!(!is_read(&third("a"), &plain), "three thirds fit");
            assert!(is_read("more", &plain));
            assert!(is_read(&third("b"), &plain), "and no more than that");
            assert!(is_read(&"x".repeat(BYTES_MAX + 1), &plain));
            assert!(is_read(&"x".repeat(BYTES_MAX + 1), &plain), "too large to be kept");
            assert!(!is_read(&third("b"), &plain), "and it drove nobody out");
        });
    }

    fn assets(text: &str) -> Assets {
        let source = proem_core::source::Source::Request { field: "template".into(), place: None };
        let mut assets = Assets::default();
        let (text, stability) = (text.to_owned(), proem_core::stability::Stability::Session);
        assets.insert("t".to_owned(), Ok(Asset { reference: None, text, origin: source, stability }));
        assets
    }

    /// Compiled assets are one session's at a time, so what one has taken no other one gets.
    #[test]
    fn compiled_assets_are_taken_and_given_back() {
        afresh(|| {
            let (one, other, plain) = (assets("one"), assets("other"), Options::default());
            assert!(take(&one, &plain).is_none());
            Session::new("t", &one, &plain).keep();
            assert!(take(&other, &plain).is_none(), "of another text");
            assert!(take(&one, &trimming()).is_none(), "with other options");
            assert!(file_stamp::without(|| take(&one, &plain).is_none()));
            let taken = take(&one, &plain);
            assert!(taken.is_some() && take(&one, &plain).is_none());
            file_stamp::without(|| keep(taken.expect("it is there")));
            assert!(take(&one, &plain).is_none(), "it was not kept");
        });
    }
}
