//! Finds and reads the files of a source: lines one by one, other files as a whole, each up to a limit.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use proem_core::limit::{
    COLLECT_DEPTH_MAX, COLLECT_FILE_BYTES_MAX, COLLECT_FILES_MAX, COLLECT_LINE_BYTES_MAX,
};
use proem_core::note::Code;
use serde::Deserialize;

use super::notebook::{Notebook, Problem};
use crate::observe::file::{metadata, open_named, read_dir};

const UNREADABLE: Problem = Problem::warning(Code::Unreadable, "the file or folder cannot be read");
const NOT_REGULAR: Problem = Problem::info(Code::NotRegular, "a link or a special file is not read");
const TOO_DEEP: Problem =
    Problem::warning(Code::OverLimit, "the folder is below more than `collect_depth_max` others");
const TOO_MANY: Problem =
    Problem::warning(Code::OverLimit, "files after the first `collect_files_max` are not read");
const LONG_LINE: Problem =
    Problem::warning(Code::OverLimit, "a line is longer than `collect_line_bytes_max`");
const LONG_FILE: Problem =
    Problem::warning(Code::OverLimit, "the file is larger than `collect_file_bytes_max`");
const NOT_UTF8: Problem = Problem::warning(Code::NotUtf8, "text is not UTF-8");
const NOT_JSON: Problem = Problem::warning(Code::SkippedRecord, "text is not JSON of the expected shape");
const TORN: Problem = Problem::info(Code::SkippedRecord, "the last line is incomplete");

/// Returns all regular files below a path, or the path itself if it is a file, in the order of their paths.
///
/// Links below it are not followed: they could lead in a circle, or to a file that the user did not mean.
pub(super) fn below(path: &Path, notes: &mut Notebook) -> Vec<PathBuf> {
    let mut found = Vec::new();
    match metadata(path) {
        Ok(about) if about.is_dir() => walk(path, 0, &mut found, notes),
        Ok(about) if about.is_file() => found.push(path.to_owned()),
        Ok(_) => notes.add(NOT_REGULAR, path, None),
        Err(_) => notes.add(UNREADABLE, path, None),
    }
    found
}

fn walk(folder: &Path, depth: usize, found: &mut Vec<PathBuf>, notes: &mut Notebook) {
    if depth > COLLECT_DEPTH_MAX {
        return notes.add(TOO_DEEP, folder, None);
    }
    let Ok(entries) = read_dir(folder) else { return notes.add(UNREADABLE, folder, None) };
    let mut names = Vec::new();
    for entry in entries {
        if names.len() + found.len() >= COLLECT_FILES_MAX {
            notes.add(TOO_MANY, folder, None);
            break;
        }
        match entry.and_then(|entry| Ok((entry.file_type()?, entry.path()))) {
            Ok(entry) => names.push(entry),
            Err(_) => notes.add(UNREADABLE, folder, None),
        }
    }
    names.sort_by(|(_, one), (_, other)| one.cmp(other));
    for (kind, path) in names {
        if kind.is_dir() {
            walk(&path, depth + 1, found, notes);
        } else if kind.is_file() {
            found.push(path);
        } else {
            notes.add(NOT_REGULAR, &path, None);
        }
    }
}

/// Returns the name of a file, or an empty text if it is not UTF-8.
pub(super) fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// Tells if a file has this extension.
pub(super) fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}

/// Reads a whole text file of at most `bytes_max` bytes, and of the limit of files.
pub(super) fn whole(path: &Path, bytes_max: usize, notes: &mut Notebook) -> Option<String> {
    let bytes_max = bytes_max.min(COLLECT_FILE_BYTES_MAX);
    // A folder of bodies that is copied while it is read may name files that are not there yet.
    let Ok(file) = regular(path) else {
        notes.add(UNREADABLE, path, None);
        return None;
    };
    let mut bytes = Vec::new();
    if file.take(bytes_max as u64 + 1).read_to_end(&mut bytes).is_err() {
        notes.add(UNREADABLE, path, None);
        return None;
    }
    notes.count(bytes.len());
    if bytes.len() > bytes_max {
        notes.add(LONG_FILE, path, None);
        return None;
    }
    let text = String::from_utf8(bytes);
    if text.is_err() {
        notes.add(NOT_UTF8, path, None);
    }
    text.ok()
}

/// Parses a whole file; a problem is noted.
pub(super) fn json<'a, T: Deserialize<'a>>(path: &Path, text: &'a str, notes: &mut Notebook) -> Option<T> {
    let parsed = serde_json::from_str(text).ok();
    if parsed.is_none() {
        notes.add(NOT_JSON, path, None);
    }
    parsed
}

fn regular(path: &Path) -> std::io::Result<File> {
    if !metadata(path)?.is_file() {
        return Err(std::io::Error::other("it is not a regular file"));
    }
    open_named(path)
}

/// Tells if a file begins like a database of SQLite.
pub(super) fn is_sqlite(path: &Path) -> bool {
    let mut head = [0; 16];
    regular(path).is_ok_and(|mut file| file.read_exact(&mut head).is_ok() && &head == b"SQLite format 3\0")
}

/// The lines of a file, one at a time.
pub(super) struct Lines {
    path: PathBuf,
    reader: BufReader<File>,
    text: String,
    number: usize,
    is_ended: bool,
}

/// A line that is UTF-8 text and not empty.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line<'a> {
    /// The number, from 1.
    pub(super) number: usize,
    /// The text without its line break.
    pub(super) text: &'a str,
    /// True if a line break follows: a writer that was stopped leaves a line without one.
    pub(super) is_ended: bool,
}

impl Lines {
    /// Opens a file; `None`, with a note, if that is not possible.
    pub(super) fn open(path: &Path, notes: &mut Notebook) -> Option<Self> {
        let Ok(file) = regular(path) else {
            notes.add(UNREADABLE, path, None);
            return None;
        };
        let reader = BufReader::with_capacity(64 << 10, file);
        Some(Self { path: path.to_owned(), reader, text: String::new(), number: 0, is_ended: false })
    }

    /// Returns the next line. Lines that are too long or not UTF-8 are noted and skipped.
    pub(super) fn next(&mut self, notes: &mut Notebook) -> Option<Line<'_>> {
        self.advance(notes).then_some(())?;
        Some(Line { number: self.number, text: self.text.trim(), is_ended: self.is_ended })
    }

    fn advance(&mut self, notes: &mut Notebook) -> bool {
        loop {
            self.number += 1;
            let mut bytes = std::mem::take(&mut self.text).into_bytes();
            bytes.clear();
            let Some(is_whole) = self.fill(&mut bytes, notes) else { return false };
            notes.count(bytes.len() + 1);
            if !is_whole {
                notes.add(LONG_LINE, &self.path, Some(self.number));
                continue;
            }
            match String::from_utf8(bytes) {
                Ok(text) if text.trim().is_empty() => self.text = text,
                Ok(text) => {
                    self.text = text;
                    return true;
                }
                Err(_) => notes.add(NOT_UTF8, &self.path, Some(self.number)),
            }
        }
    }

    /// Reads to the next line break. Returns false if the line is over the limit, and `None` at the end of the file.
    fn fill(&mut self, bytes: &mut Vec<u8>, notes: &mut Notebook) -> Option<bool> {
        let mut is_whole = true;
        let mut is_any = false;
        self.is_ended = false;
        while !self.is_ended {
            let Ok(chunk) = self.reader.fill_buf() else {
                notes.add(UNREADABLE, &self.path, Some(self.number));
                return None;
            };
            if chunk.is_empty() {
                break;
            }
            is_any = true;
            let end = memchr::memchr(b'\n', chunk);
            let part = chunk.get(..end.unwrap_or(chunk.len())).unwrap_or(chunk);
            if is_whole && bytes.len() + part.len() <= COLLECT_LINE_BYTES_MAX {
                bytes.extend_from_slice(part);
            } else {
                is_whole = false;
                *bytes = Vec::new();
            }
            let used = part.len() + usize::from(end.is_some());
            self.reader.consume(used);
            self.is_ended = end.is_some();
        }
        is_any.then_some(is_whole)
    }
}

impl<'a> Line<'a> {
    /// Parses the line; a problem is noted.
    pub(super) fn parse<T: Deserialize<'a>>(&self, path: &Path, notes: &mut Notebook) -> Option<T> {
        let parsed = serde_json::from_str(self.text).ok();
        if parsed.is_none() {
            let problem = if self.is_ended { NOT_JSON } else { TORN };
            notes.add(problem, path, Some(self.number));
        }
        parsed
    }
}
