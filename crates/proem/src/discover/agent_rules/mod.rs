//! Instruction files as another agent reads them, by a recipe that is data.

mod applies;
mod code;
mod imports;
mod listing;
mod piece;
mod text;
mod walk;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use proem_core::fact::Absence;
use proem_core::file_outcome::Outcome;
use proem_core::limit::{DOCUMENTS_BYTES_MAX, DOCUMENTS_MAX, RULE_FILES_MAX, RULE_FOLDERS_MAX, Size};
use proem_core::line_map::LineMap;
use proem_core::note::{Code, Note, Severity};
use proem_core::profile::rules::{
    ImportInside, RuleDrop, RuleFile, RuleIdentity, RulePlace, RuleTake, RuleTrim, RuleWalk, RulesRecipe,
};

use super::ignored::{Reader, Verdict};
use super::{Owner, SearchRoots, Trail, file};
use crate::observe::file::{Identity, ReadFile, ReadPolicy, exists, read_head, shown, without_dots};
use applies::Applies;
use imports::Importer;
pub(crate) use piece::{ConditionalFile, Piece, PieceSource};
use walk::Folders;

/// Most files over the size limit that are noted one by one.
const NOTES_MAX: usize = 20;

/// The results of a search.
#[derive(Debug, Clone, Default)]
pub(crate) struct RuleFiles {
    pub(crate) pieces: Vec<Piece>,
    pub(crate) conditional: Vec<ConditionalFile>,
    pub(crate) trail: Trail,
}

/// Finds instruction files. Without the project only the user's own are searched for.
pub(crate) fn find(
    recipe: &RulesRecipe,
    places: &SearchRoots,
    policy: &ReadPolicy,
    has_project: bool,
) -> Result<RuleFiles, String> {
    recipe.places.iter().try_for_each(check)?;
    let importer = recipe.imports.as_ref().map(Importer::new).transpose()?;
    let folders = Folders::new(recipe, places);
    let case = if recipe.ignore_case { listing::Case::Ignored } else { listing::Case::Exact };
    let mut search = Search {
        recipe,
        case,
        places,
        policy,
        folders,
        importer,
        taken: Vec::new(),
        known: HashSet::new(),
        noted: HashSet::new(),
        read: 0,
        budget: recipe.bytes_max,
        bytes: 0,
        left_out: 0,
        found: RuleFiles::default(),
    };
    for place in recipe.places.iter().filter(|place| has_project || place.dir.is_some()) {
        search.place(place);
    }
    search.finish();
    search.found.trail.notes.extend(places.ignores().take_note());
    Ok(search.found)
}

/// Returns the single patterns of a conditional file.
pub(crate) fn patterns(text: &str) -> Vec<String> {
    let parts = applies::parts(text).into_iter();
    parts.map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

/// Refuses a location that could never match.
fn check(place: &RulePlace) -> Result<(), String> {
    if place.dir.is_some() == place.walk.is_some() {
        return Err("a place of `collect.places` needs either `dir` or `walk`".into());
    }
    let is_pattern = |rule: &&RuleFile| rule.name.contains('*') && !listing::is_pattern(&rule.name);
    match place.files.iter().find(is_pattern) {
        Some(rule) => Err(format!("`{}` is not a pattern: write `FOLDER/**/*ENDING`", rule.name)),
        None => Ok(()),
    }
}

/// A file that was read and not yet processed.
struct Candidate {
    path: PathBuf,
    shown: String,
    rule: RuleFile,
    owner: Owner,
    found: ReadFile,
}

/// A file that is used.
struct UsedFile {
    path: String,
    real: PathBuf,
    identity: Identity,
    raw: Vec<u8>,
    pieces: Vec<Piece>,
    /// True if a pattern found it, and not a name.
    is_of_pattern: bool,
}

struct Search<'s> {
    recipe: &'s RulesRecipe,
    case: listing::Case,
    places: &'s SearchRoots,
    policy: &'s ReadPolicy,
    folders: Folders,
    importer: Option<Importer<'s>>,
    taken: Vec<UsedFile>,
    /// The real paths of the files that are used.
    known: HashSet<PathBuf>,
    noted: imports::NotedReferences,
    read: usize,
    /// The rest of the bytes that files share.
    budget: Option<usize>,
    bytes: usize,
    /// The number of files over the limit.
    left_out: usize,
    found: RuleFiles,
}

impl Search<'_> {
    fn place(&mut self, place: &RulePlace) {
        let (mut folders, owner) = match (&place.dir, place.walk) {
            (Some(dir), _) => match self.places.path(dir) {
                Some((folder, owner)) => (vec![folder], owner),
                None => return,
            },
            (None, Some(walk)) => (self.folders.on(walk), Owner::Project),
            (None, None) => return,
        };
        if place.walk == Some(RuleWalk::RootAndBelow) && self.folders.has_root() {
            folders = self.all_below(&folders);
        }
        let is_barred = |rule: &&RuleFile| self.has_text_of(&folders, &rule.unless);
        let (barred, rules): (Vec<&RuleFile>, Vec<&RuleFile>) = place.files.iter().partition(is_barred);
        for rule in barred {
            let why = format!("because of {}", rule.unless.join(" or "));
            let there = folders.iter().map(|folder| folder.join(&rule.name)).filter(|path| exists(path));
            there.for_each(|path| {
                self.found.trail.consider(&shown(&path), Outcome::Shadowed, Some(why.clone()));
            });
        }
        if place.take == RuleTake::FirstName {
            return self.first_name(place, &folders, &rules, owner);
        }
        for folder in &folders {
            self.folder(place, folder, &rules, owner);
        }
    }

    /// Returns folders with all folders below them, and notes that there are more than the limit.
    fn all_below(&mut self, tops: &[PathBuf]) -> Vec<PathBuf> {
        let mut all = Vec::new();
        let ignores = self.places.ignores();
        let search = listing::Below { policy: self.policy, ignores, skip: &self.recipe.skip_folders };
        for top in tops {
            let (mut below, is_cut) = search.folders(top);
            all.append(&mut below);
            if is_cut {
                let top = shown(top);
                let message =
                    format!("not all folders below {top} are searched: over {RULE_FOLDERS_MAX} folders");
                let note = Note::new(Code::OverLimit, Severity::Warning, message);
                self.found.trail.notes.push(note.with_source(file(&top)));
            }
        }
        all
    }

    /// Tells whether a file with one of the names has text in one of the folders. A file that was taken as one of the
    /// user's own does not count, wherever the project lies.
    fn has_text_of(&self, folders: &[PathBuf], names: &[String]) -> bool {
        let is_own = |path: &Path| {
            let path = shown(path);
            let is_user = |piece: &Piece| piece.owner == Owner::User;
            self.taken.iter().any(|taken| taken.path == path && taken.pieces.first().is_some_and(is_user))
        };
        let paths = folders.iter().flat_map(|folder| names.iter().map(move |name| folder.join(name)));
        paths.into_iter().filter(|path| !is_own(path)).any(|path| {
            let found = read_head(&path, self.policy, DOCUMENTS_BYTES_MAX).ok();
            let text = found.map(|found| String::from_utf8_lossy(&found.bytes).into_owned());
            text.is_some_and(|text| {
                !text::treated(&text, self.recipe, RuleTrim::Javascript).0.trim().is_empty()
            })
        })
    }

    /// Takes all files of the first name that exists in any folder, even if it cannot be used.
    fn first_name(&mut self, place: &RulePlace, folders: &[PathBuf], rules: &[&RuleFile], owner: Owner) {
        let is_there = |rule: &&&RuleFile| folders.iter().any(|folder| exists(&folder.join(&rule.name)));
        let Some(chosen) = rules.iter().find(is_there) else {
            let paths = folders.iter().flat_map(|folder| rules.iter().map(|rule| folder.join(&rule.name)));
            paths.for_each(|path| self.missing(&path));
            return;
        };
        for folder in folders {
            for rule in rules.iter().filter(|rule| rule.name != chosen.name) {
                let path = folder.join(&rule.name);
                if exists(&path) {
                    let why = format!("by the name {}, which is there", chosen.name);
                    self.found.trail.consider(&shown(&path), Outcome::Shadowed, Some(why));
                }
            }
            self.folder(place, folder, &[chosen], owner);
        }
    }

    fn missing(&mut self, path: &Path) {
        self.found.trail.unread(&shown(path), &Absence::NoSuchFile);
    }

    fn folder(&mut self, place: &RulePlace, folder: &Path, rules: &[&RuleFile], owner: Owner) {
        let mut chosen: Option<String> = None;
        for rule in rules {
            for path in listing::paths(folder, &rule.name, self.case, self.policy) {
                let shown = shown(&path);
                if let Some(chosen) = &chosen {
                    if exists(&path) {
                        let why = format!("by {chosen}: a directory gives one file");
                        self.found.trail.consider(&shown, Outcome::Shadowed, Some(why));
                    }
                    continue;
                }
                // Of the folders below, which may be thousands, only files that exist are listed.
                if place.walk == Some(RuleWalk::RootAndBelow) && !exists(&path) {
                    continue;
                }
                if owner == Owner::Project && self.is_ignored(&path, &shown) {
                    continue;
                }
                let Some(candidate) = self.candidate(path, shown, rule, owner) else { continue };
                let is_blank = String::from_utf8_lossy(&candidate.found.bytes).trim().is_empty();
                match place.take {
                    RuleTake::First => chosen = Some(candidate.shown.clone()),
                    RuleTake::FirstText if !is_blank => chosen = Some(candidate.shown.clone()),
                    RuleTake::FirstText => {
                        self.found.trail.consider(&candidate.shown, Outcome::Empty, None);
                        continue;
                    }
                    RuleTake::All | RuleTake::FirstName => {}
                }
                self.take(place, candidate);
            }
        }
    }

    /// Reads a file; notes one that cannot be read.
    fn candidate(
        &mut self,
        path: PathBuf,
        shown: String,
        rule: &RuleFile,
        owner: Owner,
    ) -> Option<Candidate> {
        self.read += 1;
        if self.read > RULE_FILES_MAX {
            if self.read == RULE_FILES_MAX + 1 {
                self.found.trail.notes.push(too_many(&shown));
            }
            self.found.trail.consider(
                &shown,
                Outcome::OverBudget,
                Some(format!("of {RULE_FILES_MAX} files")),
            );
            return None;
        }
        match read_head(&path, self.policy, DOCUMENTS_BYTES_MAX) {
            Ok(found) => Some(Candidate { path, shown, rule: rule.clone(), owner, found }),
            // A directory of that name is not an instruction file.
            Err(why @ Absence::IsADirectory) => {
                self.found.trail.consider(&shown, Outcome::Unreadable, Some(why.to_string()));
                None
            }
            // This caller may not read the location at all: the file itself has no fault.
            Err(why @ Absence::OutsideRoots) if self.policy.check_as_written(&path).is_err() => {
                self.found.trail.out_of_reach(&shown, &why);
                None
            }
            Err(why) => {
                self.found.trail.unread(&shown, &why);
                None
            }
        }
    }

    /// Tells whether an ignore file of the recipe's leaves out a file that exists, and records it.
    fn is_ignored(&mut self, path: &Path, shown_path: &str) -> bool {
        if self.recipe.ignored_by.is_none() || !exists(path) {
            return false;
        }
        let root = self.folders.root_of(path);
        let folders: Vec<&Path> =
            path.ancestors().skip(1).take_while(|folder| folder.starts_with(&root)).collect();
        let ignores = self.places.ignores();
        let rules = |folder: &&Path| ignores.rules_of(folder, Reader::Cursor, |_| true, self.policy).0;
        let rules: Vec<_> = folders.iter().rev().map(rules).collect();
        let is_ignored = ignores.verdict(&rules, path, Reader::Cursor) == Verdict::Ignored;
        if is_ignored {
            let why = Some("by .cursorignore".to_owned());
            self.found.trail.consider(shown_path, Outcome::Ignored, why);
        }
        is_ignored
    }

    /// Returns the path under which a file is shown; `None`, with a note, if its size or a link keeps it out.
    fn admitted(&mut self, place: &RulePlace, candidate: &Candidate) -> Option<String> {
        let Candidate { path, shown: written, rule, found, .. } = candidate;
        let most = self.recipe.file_bytes_max.unwrap_or(DOCUMENTS_BYTES_MAX).min(DOCUMENTS_BYTES_MAX);
        if found.size > most as u64 {
            self.too_large(written, most);
            return None;
        }
        let inside = rule.links.filter(|_| found.real != *path);
        let leads_out = (self.recipe.no_links_out && self.leads_out(place, path, &found.real))
            || inside.is_some_and(|inside| !self.is_inside(inside, path, &found.real));
        if leads_out {
            let why = "a link that leads out of what may be read".to_owned();
            self.found.trail.consider(written, Outcome::Refused, Some(why));
            return None;
        }
        Some(if inside.is_some() { shown(&found.real) } else { written.clone() })
    }

    fn take(&mut self, place: &RulePlace, candidate: Candidate) {
        let Some(shown) = self.admitted(place, &candidate) else { return };
        let Candidate { path, rule, owner, mut found, .. } = candidate;
        if let Some(known) = self.twin(&shown, &found, (rule.twins, owner)) {
            return self.found.trail.consider(&shown, Outcome::Duplicate, Some(format!("of {known}")));
        }
        if place.budget && !self.fit(&shown, &mut found) {
            return;
        }
        let raw = found.bytes.clone();
        let is_lossy = self.recipe.lossy && !place.strict;
        let Some(text) = self.decoded(&shown, found.bytes, is_lossy) else { return };
        let applies = rule.applies.as_ref().map(|applies| (applies, Applies::from_text(applies, &text)));
        let other = applies.filter(|(_, applies)| *applies != Applies::Always);
        if let Some((recipe, other)) = &other {
            self.conditional(&shown, owner, other);
            if !recipe.imports {
                return;
            }
        }
        let trim = place.trim.unwrap_or(self.recipe.trim);
        let (treated, line_map) = text::treated(&text, self.recipe, trim);
        let is_dropped = match self.recipe.drop {
            RuleDrop::None => false,
            RuleDrop::Empty => treated.is_empty(),
            RuleDrop::Blank => treated.trim().is_empty(),
        };
        if is_dropped && other.is_none() {
            return self.found.trail.consider(&shown, Outcome::Empty, None);
        }
        if self.taken.len() >= DOCUMENTS_MAX || self.bytes + treated.len() > DOCUMENTS_BYTES_MAX {
            let why = format!(
                "of {DOCUMENTS_MAX} files and {} for all instruction files",
                Size::new(DOCUMENTS_BYTES_MAX)
            );
            return self.leave_out(&shown, why);
        }
        if other.is_none() {
            self.found.trail.notes.extend(self.places.link_outside(&path, &found.real));
            self.found.trail.consider(&shown, Outcome::Used, None);
        }
        let piece = self.piece(&shown, &rule, owner, (treated, line_map));
        let mut taken = vec![UsedFile {
            path: shown,
            real: found.real,
            identity: found.identity,
            raw,
            pieces: vec![piece],
            is_of_pattern: rule.name.contains('*'),
        }];
        if rule.imports {
            self.import(place, &path, &mut taken, trim);
        }
        // Of a file that does not apply always, at most the imports are in the prompt.
        if other.is_some() {
            taken.remove(0);
        }
        self.bytes += taken.iter().flat_map(|one| &one.pieces).map(|piece| piece.text.len()).sum::<usize>();
        self.known.extend(taken.iter().map(|one| one.real.clone()));
        self.taken.append(&mut taken);
    }

    /// Tells whether a link led out of the project, or out of the user's folder that has it.
    fn leads_out(&self, place: &RulePlace, path: &Path, real: &Path) -> bool {
        let inside = match place.dir {
            Some(_) => path.parent().unwrap_or(path).to_owned(),
            None => self.folders.root_of(path),
        };
        !real.starts_with(crate::observe::file::canonical(&inside).unwrap_or(inside))
    }

    fn piece(
        &self,
        shown: &str,
        rule: &RuleFile,
        owner: Owner,
        (text, line_map): (String, LineMap),
    ) -> Piece {
        Piece {
            path: shown.to_owned(),
            relative: self.folders.relative(shown),
            kind: rule.kind.clone(),
            owner,
            text,
            source: PieceSource::File(shown.to_owned(), line_map),
            begins: true,
            ends: true,
        }
    }

    fn import(&mut self, place: &RulePlace, path: &Path, taken: &mut Vec<UsedFile>, trim: RuleTrim) {
        let Some(importer) = &self.importer else { return };
        let inside = importer.boundary(place, path, &self.folders);
        let home = self.places.path("~").map(|(home, _)| home);
        // Imports of a project's file stay in the project; the user's own files may import any file.
        let policy = if self.places.is_in_project(path) { &self.policy.of_project() } else { self.policy };
        let (known, ignores, recipe) = (&self.known, self.places.ignores(), self.recipe);
        let job = imports::Job { policy, inside, known, ignores, home, recipe, trim };
        importer.run(&job, taken, &mut self.found.trail, &mut self.noted);
    }

    /// Tells whether a link stays in a directory.
    fn is_inside(&self, inside: ImportInside, path: &Path, real: &Path) -> bool {
        match inside {
            ImportInside::Anywhere => true,
            ImportInside::Cwd => real.starts_with(self.folders.cwd()),
            ImportInside::Root => real.starts_with(self.folders.root_of(path)),
        }
    }

    /// Returns the file that was taken before and is the same. A test of a name's own looks at files of patterns that
    /// have the same owner.
    fn twin(&self, shown: &str, found: &ReadFile, own: (Option<RuleIdentity>, Owner)) -> Option<&str> {
        let has_owner = |taken: &&UsedFile| {
            let has_owner = taken.pieces.first().is_some_and(|piece| piece.owner == own.1);
            own.0.is_none() || (taken.is_of_pattern && has_owner)
        };
        let is_twin = |taken: &&UsedFile| match own.0.unwrap_or(self.recipe.twins) {
            RuleIdentity::Path => taken.path == shown,
            RuleIdentity::File => taken.identity == found.identity || taken.real == found.real,
            RuleIdentity::Content => taken.raw == found.bytes,
        };
        self.taken.iter().filter(has_owner).find(is_twin).map(|taken| taken.path.as_str())
    }

    fn too_large(&mut self, shown: &str, most: usize) {
        self.leave_out(shown, format!("of {most} bytes for a file"));
    }

    /// Notes a file over the limit; only the first ones are noted one by one.
    fn leave_out(&mut self, shown: &str, why: String) {
        self.left_out += 1;
        if self.left_out <= NOTES_MAX {
            self.found.trail.notes.push(no_room(shown, &why));
        }
        self.found.trail.consider(shown, Outcome::OverBudget, Some(why));
    }

    /// Cuts a file to the rest of the budget, at that exact byte; returns whether any text remains.
    fn fit(&mut self, shown: &str, found: &mut ReadFile) -> bool {
        let Some(left) = self.budget else { return true };
        let all = found.bytes.len();
        let is_blank = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().is_empty();
        if all <= left {
            // A blank file contributes nothing and costs nothing.
            self.budget = Some(if is_blank(&found.bytes) { left } else { left - all });
            return true;
        }
        let kept = found.bytes.get(..left).unwrap_or_default();
        let max = self.recipe.bytes_max.unwrap_or_default();
        if left == 0 || is_blank(kept) {
            self.leave_out(shown, format!("of {max} bytes for all files"));
            return false;
        }
        found.bytes.truncate(left);
        self.budget = Some(0);
        let message = format!("{shown} is cut: {} of its {all} bytes are left out", all - left);
        self.found
            .trail
            .notes
            .push(Note::new(Code::OverLimit, Severity::Warning, message).with_source(file(shown)));
        true
    }

    fn decoded(&mut self, shown: &str, bytes: Vec<u8>, is_lossy: bool) -> Option<String> {
        match String::from_utf8(bytes) {
            Ok(text) => Some(text),
            Err(error) if self.recipe.latin1 => {
                let message = format!("{shown} is not UTF-8: it is read as Latin-1");
                let note = Note::new(Code::NotUtf8, Severity::Warning, message);
                self.found.trail.notes.push(note.with_source(file(shown)));
                Some(error.as_bytes().iter().map(|byte| char::from(*byte)).collect())
            }
            Err(error) => {
                let offset = error.utf8_error().valid_up_to();
                if !is_lossy {
                    self.found.trail.unread(shown, &Absence::NotUtf8(offset));
                    return None;
                }
                let message =
                    format!("{shown} is not UTF-8 from byte {offset} on: invalid bytes become U+FFFD");
                let note = Note::new(Code::NotUtf8, Severity::Warning, message);
                self.found.trail.notes.push(note.with_source(file(shown)));
                Some(String::from_utf8_lossy(&error.into_bytes()).into_owned())
            }
        }
    }

    fn conditional(&mut self, shown: &str, owner: Owner, applies: &Applies) {
        let (outcome, why) = (applies.outcome(), applies.why());
        self.found.trail.consider(shown, outcome, Some(why));
        if let Applies::ToFiles { patterns, description } = applies {
            self.found.conditional.push(ConditionalFile {
                path: shown.to_owned(),
                relative: self.folders.relative(shown),
                owner,
                patterns: patterns.clone(),
                description: description.clone(),
            });
        }
    }

    fn finish(&mut self) {
        if self.recipe.sorted {
            let is_user =
                |taken: &UsedFile| taken.pieces.first().is_some_and(|piece| piece.owner == Owner::User);
            self.taken.sort_by(|a, b| {
                let key = |taken: &UsedFile| (!is_user(taken), taken.path.encode_utf16().collect::<Vec<_>>());
                key(a).cmp(&key(b))
            });
        }
        // A file that another one imports is used, whatever else keeps it from being read by itself.
        let considered = &mut self.found.trail.considered;
        let used: HashSet<String> = considered
            .iter()
            .filter(|one| one.outcome == Outcome::Used && one.why.is_some())
            .map(|one| one.path.clone())
            .collect();
        considered.retain(|one| one.outcome != Outcome::Shadowed || !used.contains(&one.path));
        self.found.pieces =
            std::mem::take(&mut self.taken).into_iter().flat_map(|taken| taken.pieces).collect();
    }
}

fn no_room(path: &str, why: &str) -> Note {
    let message = format!("{path} is left out: over the limit {why}");
    Note::new(Code::OverLimit, Severity::Warning, message)
        .with_hint("shorten the instruction files before it")
        .with_source(file(path))
}

fn too_many(path: &str) -> Note {
    let message = format!("{path} and what follows is left out: over the limit of {RULE_FILES_MAX} files");
    Note::new(Code::OverLimit, Severity::Warning, message).with_source(file(path))
}

/// Joins a path to a folder, and removes dots.
fn joined(folder: &Path, name: &str) -> PathBuf {
    without_dots(&folder.join(name))
}
