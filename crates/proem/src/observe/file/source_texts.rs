//! The texts that a build has read, so that a later build can use them instead of the files.
//!
//! A change of tools builds a prompt from the files as they were read. Instruction files and skills are kept by
//! `discover`; this module keeps the other texts: templates, packs, assets, and values of `file:` variables.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

use proem_core::fact::Absence;

use super::{Cap, ReadPolicy, read_text, read_utf8};

/// The texts of a build by path; `None` for a file that did not exist.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SourceTexts {
    texts: BTreeMap<SourceKey, Option<String>>,
}

/// A path, and the kind of policy that allowed the read: a text that the user's own template may read is not one that
/// another author's template may read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct SourceKey {
    path: String,
    is_restricted: bool,
}

impl SourceTexts {
    /// Adds a text, or the fact that there was no file.
    pub(crate) fn insert(&mut self, path: String, is_restricted: bool, text: Option<String>) {
        self.texts.insert(SourceKey { path, is_restricted }, text);
    }

    /// Iterates over the texts, with their paths and whether the read was restricted.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, bool, Option<&str>)> {
        self.texts.iter().map(|(key, text)| (key.path.as_str(), key.is_restricted, text.as_deref()))
    }
}

thread_local! {
    static TEXTS: RefCell<Option<SourceTexts>> = const { RefCell::new(None) };
}

/// Runs `work` with the texts of an earlier build. Texts that it reads besides them are added.
pub(crate) fn with_source_texts<R>(texts: &mut SourceTexts, work: impl FnOnce() -> R) -> R {
    struct Restore<'t> {
        texts: &'t mut SourceTexts,
        outer: Option<SourceTexts>,
    }
    impl Drop for Restore<'_> {
        fn drop(&mut self) {
            *self.texts = TEXTS.replace(self.outer.take()).unwrap_or_default();
        }
    }
    let outer = TEXTS.replace(Some(std::mem::take(texts)));
    let _restore = Restore { texts, outer };
    work()
}

/// Reads a text that becomes part of a prompt, as [`read_text`] does; an earlier build's text is used as it was.
pub(crate) fn read_source_text(path: &Path, policy: &ReadPolicy, cap: Cap) -> Result<String, Absence> {
    known_or(path, policy, || read_text(path, policy, cap))
}

/// Reads a UTF-8 text that becomes part of a prompt, as [`read_utf8`] does; an earlier build's text is used as it was.
pub(crate) fn read_source_utf8(path: &Path, policy: &ReadPolicy, cap: Cap) -> Result<String, Absence> {
    known_or(path, policy, || read_utf8(path, policy, cap))
}

fn known_or(
    path: &Path,
    policy: &ReadPolicy,
    read: impl FnOnce() -> Result<String, Absence>,
) -> Result<String, Absence> {
    let Some(name) = path.to_str() else { return read() };
    let key = SourceKey { path: name.to_owned(), is_restricted: policy.is_restricted() };
    let known = TEXTS.with_borrow(|texts| texts.as_ref()?.texts.get(&key).cloned());
    if let Some(known) = known {
        policy.check_as_written(path)?;
        return known.ok_or(Absence::NoSuchFile);
    }
    let text = read();
    let kept = match &text {
        Ok(text) => Some(text.clone()),
        Err(Absence::NoSuchFile) => None,
        // Another try may succeed.
        Err(_) => return text,
    };
    TEXTS.with_borrow_mut(|texts| {
        if let Some(texts) = texts {
            texts.texts.insert(key, kept);
        }
    });
    text
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_text_is_read_once_and_an_absent_file_stays_absent() {
        let site = tempfile::tempdir().expect("there is room");
        let (file, missing) = (site.path().join("a"), site.path().join("b"));
        fs::write(&file, "old").expect("there is room");
        let policy = ReadPolicy::user(None, &[]);
        let read = |path: &Path| read_source_text(path, &policy, Cap::new(100));
        let mut texts = SourceTexts::default();
        let both = || (read(&file), read(&missing));
        let old = (Ok("old".to_owned()), Err(Absence::NoSuchFile));
        assert_eq!(with_source_texts(&mut texts, both), old);
        fs::write(&file, "new").expect("there is room");
        fs::write(&missing, "new").expect("there is room");
        assert_eq!(with_source_texts(&mut texts, both), old);
        assert_eq!(both(), (Ok("new".to_owned()), Ok("new".to_owned())), "control");
        assert_eq!(texts.iter().count(), 2);
    }

    #[test]
    fn a_text_of_the_user_is_not_one_of_other_authors() {
        let site = tempfile::tempdir().expect("there is room");
        let file = site.path().join("a");
        fs::write(&file, "private").expect("there is room");
        let (user, other) =
            (ReadPolicy::user(None, &[]), ReadPolicy::beneath(&["/nowhere".into()], None, &[]));
        let read = |policy: &ReadPolicy| read_source_text(&file, policy, Cap::new(100));
        let mut texts = SourceTexts::default();
        with_source_texts(&mut texts, || {
            assert_eq!(read(&user), Ok("private".to_owned()));
            assert_eq!(read(&other), Err(Absence::OutsideRoots));
        });
    }
}
