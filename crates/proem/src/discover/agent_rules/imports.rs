//! Imports: references in instruction files to other files, which are inserted or added.

use std::collections::HashSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proem_core::fact::Absence;
use proem_core::file_outcome::Outcome;
use proem_core::limit::{
    DOCUMENTS_BYTES_MAX, IMPORT_MATCHES_MAX, IMPORT_PATTERN_BYTES_MAX, IMPORT_REFERENCES_MAX,
    IMPORTS_BYTES_MAX, Size,
};
use proem_core::note::{Code as NoteCode, Note, Severity};
use proem_core::profile::rules::{
    ImportInside, ImportOnce, ImportPut, ImportsRecipe, RulePlace, RuleStrip, RuleTrim, RulesRecipe,
};
use proem_core::text::Places;
use regex::{Regex, RegexBuilder};

use super::code::Regions;
use super::walk::Folders;
use super::{Piece, PieceSource, UsedFile, joined, text};
use crate::discover::ignored::{IgnoreFiles, Reader, Rules, UnusableFile, Verdict};
use crate::discover::{Trail, file};
use crate::observe::deadline;
use crate::observe::file::{ReadFile, ReadPolicy, read_head, shown};

/// The rules of imports, ready for use.
pub(super) struct Importer<'r> {
    recipe: &'r ImportsRecipe,
    reference: Regex,
}

/// The inputs of one file's imports.
pub(super) struct Job<'j> {
    pub(super) policy: &'j ReadPolicy,
    /// The directory that imported files must lie in; `None` allows any.
    pub(super) inside: Option<PathBuf>,
    /// The files that are in the prompt already.
    pub(super) known: &'j HashSet<PathBuf>,
    pub(super) ignores: &'j IgnoreFiles,
    pub(super) home: Option<PathBuf>,
    pub(super) recipe: &'j RulesRecipe,
    pub(super) trim: RuleTrim,
}

/// The result of a reference.
enum ReferenceResult {
    File(Box<Import>),
    /// Text that replaces it.
    Words(String, &'static str),
    /// It stays as it is.
    Nothing,
}

/// A file that is imported.
struct Import {
    /// The path as it was written.
    named: String,
    found: ReadFile,
    real: PathBuf,
}

/// The progress of an import.
struct ImportRun<'r> {
    job: &'r Job<'r>,
    /// The chain of importing files, by real path.
    chain: Vec<PathBuf>,
    /// The files that were imported.
    brought: HashSet<PathBuf>,
    references: usize,
    bytes: usize,
    entries: Vec<UsedFile>,
    trail: &'r mut Trail,
    noted: &'r mut NotedReferences,
}

/// References that are not followed and have a note: the file with the reference, and the message.
pub(super) type NotedReferences = HashSet<(String, String)>;

impl<'r> Importer<'r> {
    pub(super) fn new(recipe: &'r ImportsRecipe) -> Result<Self, String> {
        let reference = RegexBuilder::new(&recipe.reference)
            .size_limit(IMPORT_PATTERN_BYTES_MAX)
            .build()
            .map_err(|error| format!("`imports.reference` is not a regular expression: {error}"))?;
        if reference.captures_len() < 2 {
            return Err("`imports.reference` has no group for the path".into());
        }
        Ok(Self { recipe, reference })
    }

    /// Returns the folder that must contain the files that a file imports.
    pub(super) fn boundary(&self, place: &RulePlace, path: &Path, folders: &Folders) -> Option<PathBuf> {
        let inside = match place.inside.unwrap_or(self.recipe.inside) {
            ImportInside::Anywhere => return None,
            ImportInside::Cwd => folders.cwd().to_owned(),
            ImportInside::Root if place.dir.is_some() => path.parent().unwrap_or(path).to_owned(),
            ImportInside::Root => folders.root_of(path),
        };
        Some(crate::observe::file::canonical(&inside).unwrap_or(inside))
    }

    /// Follows the references of the first file; imports that become separate entries are added after it.
    pub(super) fn run(
        &self,
        job: &Job<'_>,
        taken: &mut Vec<UsedFile>,
        trail: &mut Trail,
        noted: &mut NotedReferences,
    ) {
        let Some(first) = taken.first_mut() else { return };
        let Some(whole) = first.pieces.pop() else { return };
        let chain = match self.recipe.once {
            ImportOnce::Chain | ImportOnce::Written => Vec::new(),
            ImportOnce::File | ImportOnce::Prompt => vec![first.real.clone()],
        };
        let mut run = ImportRun {
            trail,
            noted,
            job,
            chain,
            brought: HashSet::from([first.real.clone()]),
            references: 0,
            bytes: 0,
            entries: Vec::new(),
        };
        let base = if self.recipe.from_link { PathBuf::from(&first.path) } else { first.real.clone() };
        let mut pieces = self.expanded(&whole, &base, 0, &mut run);
        ends(&mut pieces, job.trim, self.recipe.put != ImportPut::AsFile);
        first.pieces = pieces;
        taken.append(&mut run.entries);
    }

    /// Returns the pieces of a text with its references followed.
    fn expanded(&self, piece: &Piece, path: &Path, depth: usize, run: &mut ImportRun<'_>) -> Vec<Piece> {
        let is_too_large = self.recipe.text_bytes_max.is_some_and(|most| piece.text.len() > most);
        if depth >= self.recipe.depth_max || is_too_large {
            return vec![piece.clone()];
        }
        let mut code = Regions::new(&piece.text, &self.recipe.code);
        let mut places = Places::new(&piece.text);
        let (mut pieces, mut end) = (Vec::new(), 0);
        for (number, found) in self.reference.captures_iter(&piece.text).enumerate() {
            // A pattern may search all of the text for each of its matches. The build fails then.
            if number > IMPORT_MATCHES_MAX || deadline::check_clocks().is_err() {
                break;
            }
            let Some(group) = found.iter().skip(1).flatten().next() else { continue };
            let at = group.start().saturating_sub(1);
            if code.reach(at..group.end()) || at < end {
                continue;
            }
            run.references += 1;
            if run.references
                > self.recipe.references_max.unwrap_or(IMPORT_REFERENCES_MAX).min(IMPORT_REFERENCES_MAX)
            {
                break;
            }
            let named = self.plain(group.as_str());
            let told = run.trail.notes.len();
            let followed = self.follow(&named, path, run);
            place_notes(&mut run.trail.notes[told..], piece, path, at);
            match followed {
                ReferenceResult::Nothing => {}
                ReferenceResult::Words(words, key) => {
                    let is_behind = self.recipe.put == ImportPut::Behind;
                    pieces.push(cut(piece, end..if is_behind { group.end() } else { at }, &mut places));
                    end = group.end();
                    pieces.push(wording(piece, words, key));
                }
                ReferenceResult::File(import) => {
                    let is_instead = self.recipe.put == ImportPut::Instead;
                    if self.recipe.put != ImportPut::AsFile {
                        pieces.push(cut(piece, end..if is_instead { at } else { group.end() }, &mut places));
                        end = group.end();
                    }
                    pieces.extend(self.bring(&import, piece, depth, run));
                }
            }
        }
        pieces.push(cut(piece, end..piece.text.len(), &mut places));
        pieces.retain(|piece| !piece.text.is_empty());
        if pieces.is_empty() {
            pieces.push(cut(piece, 0..0, &mut places));
        }
        pieces
    }

    /// Strips the markup of a reference from its path.
    fn plain(&self, named: &str) -> String {
        let named = if self.recipe.fragment { named.split('#').next().unwrap_or(named) } else { named };
        if self.recipe.escapes { named.replace("\\ ", " ") } else { named.to_owned() }
    }

    /// Returns the pieces of an imported file; none if it becomes a separate entry.
    fn bring(&self, import: &Import, by: &Piece, depth: usize, run: &mut ImportRun<'_>) -> Vec<Piece> {
        let Import { named, found, real } = import;
        let path = shown(real);
        // Once there is no room, nothing has room: then the text need not be looked at.
        if run.bytes > IMPORTS_BYTES_MAX {
            run.trail.consider(&path, Outcome::OverBudget, Some(over_imports()));
            return Vec::new();
        }
        let raw = found.bytes.clone();
        let whole = String::from_utf8_lossy(&found.bytes).into_owned();
        let is_entry = self.recipe.put == ImportPut::AsFile;
        let (mut text, line_map) = if is_entry {
            text::treated(&whole, run.job.recipe, run.job.trim)
        } else {
            text::treated(&whole, &without_front_matter(run.job.recipe), RuleTrim::None)
        };
        if self.recipe.trim_end {
            text.truncate(text.trim_end().len());
        }
        run.bytes += text.len();
        if run.bytes > IMPORTS_BYTES_MAX {
            run.trail.consider(&path, Outcome::OverBudget, Some(over_imports()));
            return Vec::new();
        }
        let importer = match &by.source {
            PieceSource::File(path, _) => path,
            PieceSource::Words(_) => &by.path,
        };
        run.trail.consider(&path, Outcome::Used, Some(format!("imported by {importer}")));
        run.brought.insert(real.clone());
        let source = PieceSource::File(path.clone(), line_map);
        let (own_path, relative) =
            if is_entry { (path.clone(), path.clone()) } else { (by.path.clone(), by.relative.clone()) };
        let piece = part(by, text, source);
        let piece = Piece { path: own_path, relative, begins: is_entry, ends: is_entry, ..piece };
        if is_entry {
            // The file comes before the files that it imports itself.
            let index = run.entries.len();
            let is_empty = piece.text.is_empty();
            run.entries.push(UsedFile {
                path,
                real: real.clone(),
                identity: found.identity,
                raw,
                pieces: vec![piece.clone()],
                is_of_pattern: false,
            });
            run.chain.push(real.clone());
            let own = self.expanded(&piece, real, depth + 1, run);
            run.chain.pop();
            let mut own = if is_empty { Vec::new() } else { own };
            ends(&mut own, run.job.trim, false);
            run.entries[index].pieces = own;
            return Vec::new();
        }
        let mut pieces = vec![wording(by, words(&self.recipe.before, named, real), "before")];
        run.chain.push(if self.recipe.once == ImportOnce::Written { named.into() } else { real.clone() });
        pieces.extend(self.expanded(&piece, real, depth + 1, run));
        run.chain.pop();
        pieces.push(wording(by, words(&self.recipe.after, named, real), "after"));
        pieces
    }

    fn follow(&self, named: &str, by: &Path, run: &mut ImportRun<'_>) -> ReferenceResult {
        let folder = by.parent().unwrap_or(by);
        let wanted = self.wanted(named, folder, run.job.home.as_deref());
        let words = |template: &Option<String>, real: &Path, key: &'static str| match template {
            Some(text) => ReferenceResult::Words(words(text, named, real), key),
            None => ReferenceResult::Nothing,
        };
        let Some(wanted) = wanted else {
            dropped(run, named, by, "such a path is not followed");
            return words(&self.recipe.outside, Path::new(named), "outside");
        };
        let verdict = if self.is_refused(named) { Verdict::Ignored } else { self.verdict(&wanted, run) };
        match verdict {
            Verdict::Free => {}
            Verdict::Ignored => {
                dropped(run, named, by, "such a file is not imported");
                return ReferenceResult::Nothing;
            }
            Verdict::Unknown(rules) => {
                let why = format!("{} could not be used and may exclude it", shown(&rules));
                dropped(run, named, by, &why);
                return ReferenceResult::Nothing;
            }
        }
        let real = crate::observe::file::canonical(&wanted).unwrap_or_else(|_| wanted.clone());
        if run.job.inside.as_ref().is_some_and(|inside| !real.starts_with(inside)) {
            dropped(run, named, by, "it lies outside of what may be imported");
            return words(&self.recipe.outside, &real, "outside");
        }
        let known = match self.recipe.once {
            ImportOnce::Chain => run.chain.contains(&real),
            ImportOnce::Written => run.chain.iter().any(|path| path.as_os_str() == named),
            ImportOnce::File => run.brought.contains(&real),
            ImportOnce::Prompt => run.brought.contains(&real) || run.job.known.contains(&real),
        };
        let bytes_max = if run.bytes > IMPORTS_BYTES_MAX { 0 } else { DOCUMENTS_BYTES_MAX };
        match read_head(&wanted, run.job.policy, bytes_max) {
            Ok(_) if known => words(&self.recipe.known, &real, "known"),
            Ok(found) if !run.job.recipe.lossy && str::from_utf8(&found.bytes).is_err() => {
                dropped(run, named, by, "it is not UTF-8");
                ReferenceResult::Nothing
            }
            Ok(found) => ReferenceResult::File(Box::new(Import { named: named.to_owned(), found, real })),
            Err(Absence::IsADirectory) => words(&self.recipe.directory, &wanted, "directory"),
            Err(why) => {
                dropped(run, named, by, &why.to_string());
                words(&self.recipe.missing, &wanted, "missing")
            }
        }
    }

    /// Tells whether an ignore file excludes a file, if the recipe respects ignore files.
    fn verdict(&self, path: &Path, run: &mut ImportRun<'_>) -> Verdict {
        let job = run.job;
        let Some(root) = job.inside.as_deref().filter(|_| self.recipe.not_ignored) else {
            return Verdict::Free;
        };
        if path.components().any(|part| part.as_os_str() == ".git") {
            return Verdict::Ignored;
        }
        let rules = rules_above(path, root, run);
        job.ignores.verdict(&rules, path, Reader::Imports)
    }

    /// Tells whether the recipe imports no files with such an ending.
    fn is_refused(&self, named: &str) -> bool {
        let name = named.rsplit('/').next().unwrap_or(named);
        let ending = name.rfind('.').filter(|at| *at > 0).and_then(|at| name.get(at..));
        let is_allowed = |ending: &str| {
            let ending = ending.to_lowercase();
            self.recipe.endings.is_empty() || self.recipe.endings.contains(&ending)
        };
        self.recipe.not_endings.iter().any(|ending| named.ends_with(ending.as_str()))
            || !ending.is_none_or(is_allowed)
    }

    /// Returns the path of a reference, if the recipe allows such a path.
    fn wanted(&self, named: &str, folder: &Path, home: Option<&Path>) -> Option<PathBuf> {
        if let Some(rest) = named.strip_prefix("~/") {
            return home.filter(|_| self.recipe.home).map(|home| joined(home, rest));
        }
        if named.contains("://") || (named.starts_with('/') && !self.recipe.absolute) {
            return None;
        }
        Some(joined(folder, named))
    }
}

/// Fills in the recipe's message about a file.
fn words(template: &str, named: &str, real: &Path) -> String {
    let real = real.to_string_lossy();
    template.replace("{path}", named).replace("{real}", &real).replace("{real_xml}", &xml(&real))
}

/// Returns a text with the characters replaced that have a meaning in XML.
fn xml(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;").replace('\'', "&apos;")
}

/// Returns the recipe for inserted imports, whose front matter is kept.
fn without_front_matter(recipe: &RulesRecipe) -> RulesRecipe {
    let is_kept = |removed: &RuleStrip| !matches!(removed, RuleStrip::FrontMatter | RuleStrip::Comments);
    let remove = recipe.remove.iter().copied().filter(is_kept).collect();
    RulesRecipe { remove, ..recipe.clone() }
}

/// Notes a reference that is not followed, once for each file that has it.
fn dropped(run: &mut ImportRun<'_>, named: &str, by: &Path, why: &str) {
    let by = shown(by);
    let message = format!("`@{named}` is not imported: {why}");
    if run.noted.insert((by.clone(), message.clone())) {
        let note = Note::new(NoteCode::Unreadable, Severity::Warning, message).with_source(file(&by));
        run.trail.notes.push(note);
    }
}

/// Gives notes about a reference its place in the file that has it.
fn place_notes(notes: &mut [Note], piece: &Piece, path: &Path, at: usize) {
    let PieceSource::File(own, line_map) = &piece.source else { return };
    let (by, mut places) = (file(&shown(path)), Places::new(&piece.text));
    for note in notes.iter_mut().filter(|note| note.source.as_ref() == Some(&by)) {
        let place = places.at(at);
        note.source = Some(line_map.source_at(&file(own), place));
    }
}

/// The rules of the `.gitignore` files from the root to a file, the root's first.
fn rules_above(path: &Path, root: &Path, run: &mut ImportRun<'_>) -> Vec<Arc<Rules>> {
    let folders: Vec<&Path> =
        path.ancestors().skip(1).take_while(|folder| folder.starts_with(root)).collect();
    let mut rules = Vec::new();
    for folder in folders.into_iter().rev() {
        // Files that this caller may not read are left out.
        if run.job.policy.check_as_written(&folder.join(".gitignore")).is_err() {
            continue;
        }
        let (own, is_new) = run.job.ignores.rules_of(folder, Reader::Imports, |_| true, run.job.policy);
        for UnusableFile { path, why } in own.unread.iter().filter(|_| is_new) {
            if let Some(why) = why {
                run.trail.unread(&shown(path), why);
            } else {
                let why = Some("of the ignore files of a build".to_owned());
                run.trail.consider(&shown(path), Outcome::OverBudget, why);
            }
        }
        rules.push(own);
    }
    rules
}

/// Returns a part of a piece, with its place in the file.
fn cut(piece: &Piece, bytes: Range<usize>, places: &mut Places<'_>) -> Piece {
    let source = match &piece.source {
        PieceSource::File(path, line_map) => {
            let (from, to) = (places.at(bytes.start), places.at(bytes.end));
            PieceSource::File(path.clone(), line_map.part(from, to))
        }
        words @ PieceSource::Words(_) => words.clone(),
    };
    part(piece, piece.text.get(bytes).unwrap_or_default().to_owned(), source)
}

/// Makes a piece of the profile's wording inside an entry.
fn wording(piece: &Piece, text: String, key: &'static str) -> Piece {
    part(piece, text, PieceSource::Words(key.into()))
}

/// Makes a piece inside the entry of another piece, whose text may be long and is not copied.
fn part(piece: &Piece, text: String, source: PieceSource) -> Piece {
    let Piece { path, relative, kind, owner, .. } = piece;
    let (path, relative, kind) = (path.clone(), relative.clone(), kind.clone());
    Piece { path, relative, kind, owner: *owner, text, source, begins: false, ends: false }
}

/// The reason for leaving out an import.
fn over_imports() -> String {
    format!("of {} of imported text", Size::new(IMPORTS_BYTES_MAX))
}

/// Marks the first and the last piece of an entry, and trims what imports left at its ends.
fn ends(pieces: &mut Vec<Piece>, trim: RuleTrim, is_joined: bool) {
    if is_joined {
        while pieces.len() > 1
            && pieces.last().is_some_and(|piece| text::trimmed(&piece.text, trim).0.is_empty())
        {
            pieces.pop();
        }
        if let Some(last) = pieces.last_mut() {
            let (_, cut) = text::trimmed(&last.text, trim);
            let kept = cut + text::trimmed(&last.text, trim).0.len();
            last.text.truncate(kept);
        }
    }
    if let Some(first) = pieces.first_mut() {
        first.begins = true;
    }
    if let Some(last) = pieces.last_mut() {
        last.ends = true;
    }
}
