//! Files that name other files: which of them are one text under two names, and which names lead nowhere.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use proem_core::note::{Code, Note, Severity};
use proem_core::profile::RulesRecipe;
use proem_core::profile::rules::RuleFile;
use proem_core::source::Source;
use proem_core::text::Place;
use regex::Regex;

use crate::discover::roster::Agent;
use crate::observe::file::without_dots;

/// A path after `@` that only a text file has. Names of packages (`@scope/package`), people and decorators
/// (`@app.route`) do not match.
static REFERENCE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?:^|[\s(])@((?:~/|/|\.{1,2}/)?[\w.-]+(?:/[\w.-]+)*\.(?:md|mdc|markdown|txt))").ok()
});

/// Names that belong to no single agent, so that syntax that only some agents understand is worth a note.
pub(super) const SHARED_NAMES: [&str; 2] = ["AGENTS.md", "AGENTS.override.md"];

/// A reference to a file, outside of code and comments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileReference {
    /// The path as it is written, without the `@`.
    pub(super) named: String,
    pub(super) place: Place,
}

/// The references of a text, in order.
pub(super) fn references(text: &str) -> Vec<FileReference> {
    let Some(pattern) = REFERENCE.as_ref() else { return Vec::new() };
    let mut prose = Prose::default();
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = prose.of_line(line);
        for group in pattern.captures_iter(&line).filter_map(|found| found.get(1)) {
            // The `@` precedes the path.
            let column = line.get(..group.start()).map_or(1, |before| before.chars().count());
            let place = Place { line: index + 1, column };
            found.push(FileReference { named: group.as_str().to_owned(), place });
        }
    }
    found
}

/// Resolves a reference relative to the file that contains it; `None` for one in the user's home.
pub(super) fn target(by: &Path, named: &str) -> Option<PathBuf> {
    let folder = by.parent().unwrap_or(by);
    (!named.starts_with('~')).then(|| without_dots(&folder.join(named)))
}

/// Tells whether a text names a file: as an import, as a link, or in a sentence that makes the model read it.
pub(super) fn names(text: &str, file: &Path) -> bool {
    let Some(name) = file.file_name().and_then(|name| name.to_str()) else { return false };
    let is_part = |character: char| character.is_alphanumeric() || matches!(character, '_' | '-');
    text.match_indices(name).any(|(at, _)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let behind = text.get(at + name.len()..).and_then(|behind| behind.chars().next());
        !before.is_some_and(is_part) && !behind.is_some_and(is_part)
    })
}

/// Tells whether two files are one text, or whether one of them leads to the other.
pub(super) fn are_related(a: (&Path, &str), b: (&Path, &str)) -> bool {
    a.1.trim() == b.1.trim() || names(a.1, b.0) || names(b.1, a.0)
}

/// Imports of a file that lead nowhere, for the agents that would follow them.
pub(super) fn dangling(paths: &[PathBuf], text: &str, agents: &[Agent], root: &Path) -> Vec<Note> {
    let (importers, Some(path)) = (importers(paths, agents, root), paths.first()) else { return Vec::new() };
    if importers.is_empty() {
        return Vec::new();
    }
    let mut notes = Vec::new();
    for FileReference { named, place } in references(text) {
        // `path/to` is a path of an example.
        let Some(target) = target(path, &named).filter(|_| !named.contains("path/to")) else { continue };
        // A link that leads nowhere counts as missing, too.
        if target.exists() {
            continue;
        }
        let message = format!("`@{named}` names no file: {} would import it", importers.join(", "));
        let is_from_root = root.join(&named).exists();
        let hint = if is_from_root {
            "write the path from the folder of this file"
        } else {
            "correct the path, or put it into backticks if it is not an import"
        };
        let source = Source::File { path: path.to_string_lossy().into(), place: Some(place) };
        notes.push(
            Note::new(Code::Unreadable, Severity::Warning, message).with_hint(hint).with_source(source),
        );
    }
    notes
}

/// Imports of a file for all agents that only some of them follow.
pub(super) fn half_imported(paths: &[PathBuf], text: &str, agents: &[Agent], root: &Path) -> Vec<Note> {
    let is_shared = |path: &PathBuf| SHARED_NAMES.iter().any(|name| path.ends_with(name));
    let Some(path) = paths.first().filter(|path| is_shared(path)) else { return Vec::new() };
    let (some, others) = (importers(paths, agents, root), plain_readers(paths, agents, root));
    if some.is_empty() || others.is_empty() {
        return Vec::new();
    }
    let is_there = |one: &FileReference| target(path, &one.named).is_some_and(|target| target.is_file());
    // A sentence that names the file makes every model read it.
    let begins_line = |one: &FileReference| {
        let line = text.lines().nth(one.place.line - 1).unwrap_or_default();
        line.trim_start_matches([' ', '\t', '-', '*', '+', '(']).starts_with('@')
    };
    let note = |FileReference { named, place }: FileReference| {
        let message = format!(
            "`@{named}` is imported by {}, and is only text to {}",
            some.join(", "),
            others.join(", ")
        );
        let source = Source::File { path: path.to_string_lossy().into(), place: Some(place) };
        Note::new(Code::AgentsDiffer, Severity::Info, message)
            .with_hint("tell the model to read the file, or put what matters into this one")
            .with_source(source)
    };
    references(text).into_iter().filter(|one| is_there(one) && begins_line(one)).map(note).collect()
}

/// The agents that read a file by one of its paths and follow its imports, by title.
pub(super) fn importers<'a>(paths: &[PathBuf], agents: &'a [Agent], root: &Path) -> Vec<&'a str> {
    titles(agents, |agent| {
        let mut recipes = agent.rules().filter(|recipe| recipe.imports.is_some());
        recipes.any(|recipe| is_read(recipe, paths, root, |file| file.imports))
    })
}

/// The agents that read a file by one of its paths and do not follow its imports, by title.
pub(super) fn plain_readers<'a>(paths: &[PathBuf], agents: &'a [Agent], root: &Path) -> Vec<&'a str> {
    let importers = importers(paths, agents, root);
    let mut readers =
        titles(agents, |agent| agent.rules().any(|recipe| is_read(recipe, paths, root, |_| true)));
    readers.retain(|title| !importers.contains(title));
    readers
}

/// Tells whether a recipe takes a file of the project, by one of its paths. A file that another one keeps out, anywhere on the
/// way from the root, is not taken.
fn is_read(recipe: &RulesRecipe, paths: &[PathBuf], root: &Path, test: fn(&RuleFile) -> bool) -> bool {
    let places = recipe.places.iter().filter(|place| place.walk.is_some());
    let mut files = places.flat_map(|place| &place.files).filter(|file| test(file));
    let is_kept_out = |file: &RuleFile, path: &Path| {
        let depth = Path::new(&file.name).components().count();
        let folders = path.ancestors().skip(depth).take_while(|folder| folder.starts_with(root));
        folders.into_iter().any(|folder| file.unless.iter().any(|name| folder.join(name).exists()))
    };
    files.any(|file| paths.iter().any(|path| path.ends_with(&file.name) && !is_kept_out(file, path)))
}

fn titles(agents: &[Agent], test: impl Fn(&Agent) -> bool) -> Vec<&str> {
    agents.iter().filter(|agent| test(agent)).map(|agent| agent.title.as_str()).collect()
}

/// Blanks out everything but prose, line by line; columns stay.
#[derive(Default)]
struct Prose {
    is_code: bool,
    is_comment: bool,
}

impl Prose {
    fn of_line(&mut self, line: &str) -> String {
        let start = line.trim_start();
        if !self.is_comment && (start.starts_with("```") || start.starts_with("~~~")) {
            self.is_code = !self.is_code;
            return String::new();
        }
        if self.is_code {
            return String::new();
        }
        let (mut shown, mut rest) = (String::with_capacity(line.len()), line);
        while !rest.is_empty() {
            if !self.is_comment {
                let (before, behind) = split(rest, rest.find('`').into_iter().chain(rest.find("<!--")).min());
                shown.push_str(before);
                rest = behind;
                self.is_comment = rest.starts_with("<!--");
            }
            let end = if self.is_comment {
                rest.find("-->").map(|at| at + "-->".len())
            } else {
                rest.get(1..).and_then(|behind| behind.find('`')).map(|at| at + 2)
            };
            let Some(end) = end else {
                // A backtick without a partner is a character; a comment goes on in the next line.
                shown.push_str(if self.is_comment { "" } else { rest });
                return shown;
            };
            let (hidden, after) = split(rest, Some(end));
            shown.extend(hidden.chars().map(|_| ' '));
            (self.is_comment, rest) = (false, after);
        }
        shown
    }
}

/// Splits a text at a byte, or after its end.
fn split(text: &str, at: Option<usize>) -> (&str, &str) {
    at.and_then(|at| text.split_at_checked(at)).unwrap_or((text, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_of_text_files_in_prose_are_references() {
        let text = "@AGENTS.md and @docs/style.md, not @scope/package\n\
                    `@code.md` <!-- @comment.md --> then @./after.md\n\
                    ```\n@fenced.md\n```\n\
                    <!-- open\n@hidden.md\n--> (@last.txt) a@b.md @app.route @user\n\
                    ä a < b @x.md `open @y.md\n";
        let found: Vec<(String, usize, usize)> =
            references(text).into_iter().map(|one| (one.named, one.place.line, one.place.column)).collect();
        let expected = [
            ("AGENTS.md", 1, 1),
            ("docs/style.md", 1, 16),
            ("./after.md", 2, 38),
            ("last.txt", 8, 6),
            ("x.md", 9, 9),
            ("y.md", 9, 21),
        ];
        assert_eq!(found, expected.map(|(named, line, column)| (named.to_owned(), line, column)));
    }

    #[test]
    fn a_name_in_a_sentence_leads_to_the_file() {
        let path = Path::new("/w/AGENTS.md");
        for text in ["@AGENTS.md", "See [rules](./AGENTS.md).", "ScannedText AGENTS.md first.", "`AGENTS.md`"]
        {
            assert!(names(text, path), "{text}");
        }
        for text in ["", "MYAGENTS.md", "AGENTS.mdx", "agents.md", "our-AGENTS.md"] {
            assert!(!names(text, path), "{text}");
        }
    }
}
