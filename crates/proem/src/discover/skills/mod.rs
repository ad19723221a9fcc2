//! Skills: files whose name, description and place are in the prompt, and whose body is not.
//!
//! Only the head of a file is read. Results keep the order of discovery, which is by entry name, never the file
//! system's.

mod entry;
mod head;
mod scan;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proem_core::fact::Absence;
use proem_core::file_outcome::{FileOutcome, Outcome};
use proem_core::limit::{PATH_BYTES_MAX, SKILL_DEPTH_MAX, SKILL_NOTES_MAX, SKILLS_MAX};
use proem_core::note::{Code, Note, Severity};
use proem_core::profile::{SkillOrder, SkillsRecipe};

use super::ignored::UnusableFile;
use super::{Owner, SearchRoots, Trail, file};
use crate::observe::file::{Identity, ReadPolicy, is_dir, metadata};

pub(crate) use entry::{Problem, Skill};

/// A directory that is searched for skills.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Root {
    path: PathBuf,
    owner: Owner,
    /// True if `*.md` files directly in it are skills.
    files: bool,
    /// True if these have the names of their files.
    named_by_file: bool,
    /// The depth of the search.
    depth_max: usize,
}

/// The place at which a skill file was found.
struct SkillPlace<'s> {
    path: &'s Path,
    owner: Owner,
    /// True if it lies directly in a directory of skills, whose name is unrelated to it.
    is_in_root: bool,
    /// True if it takes its file's name when it has none of its own.
    named_by_file: bool,
}

/// A file that could be a skill, and its outcome.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    /// The skill; `None` if the file is not valid.
    pub(crate) skill: Option<Arc<Skill>>,
    pub(crate) location: Arc<str>,
    pub(crate) outcome: Outcome,
    pub(crate) why: Option<String>,
    pub(crate) problems: Vec<Problem>,
}

/// The results of a search.
#[derive(Debug, Clone, Default)]
pub(crate) struct FoundSkills {
    pub(crate) candidates: Vec<Candidate>,
    /// Notes about directories that could not be read and about limits.
    pub(crate) notes: Vec<Note>,
    /// Files and folders that did not become candidates.
    pub(crate) considered: Vec<FileOutcome>,
}

impl FoundSkills {
    /// The skills that the prompt lists, in order.
    pub(crate) fn listed(&self) -> impl Iterator<Item = &Skill> {
        let used = self.candidates.iter().filter(|candidate| candidate.outcome == Outcome::Used);
        used.filter_map(|candidate| candidate.skill.as_deref())
    }

    /// The notes and files for the prompt.
    pub(crate) fn trail(&self) -> Trail {
        let of_skills = self
            .candidates
            .iter()
            .flat_map(|candidate| candidate.problems.iter().map(|problem| problem.note(&candidate.location)));
        let all = self.notes.iter().cloned().chain(of_skills);
        let mut notes: Vec<Note> = all.clone().take(SKILL_NOTES_MAX).collect();
        let left = all.count() - notes.len();
        if left > 0 {
            let message = format!("{left} more notes about skills are not written");
            notes.push(
                Note::new(Code::OverLimit, Severity::Warning, message)
                    .with_hint("`proem skills check` prints all of them"),
            );
        }
        let mut considered = self.considered.clone();
        considered.extend(self.candidates.iter().map(|candidate| FileOutcome {
            path: candidate.location.as_ref().into(),
            outcome: candidate.outcome,
            why: candidate.why.clone(),
        }));
        Trail { notes, considered, unread: Vec::new() }
    }
}

/// Finds skills; `more` are paths of extensions, searched last.
pub(crate) fn find(
    recipe: &SkillsRecipe,
    more: &[PathBuf],
    places: &SearchRoots,
    policy: &ReadPolicy,
    has_project: bool,
) -> FoundSkills {
    let mut search = Search {
        recipe,
        places,
        policy,
        found: FoundSkills::default(),
        names: BTreeMap::new(),
        files: BTreeMap::new(),
        left_out: 0,
    };
    for root in roots(recipe, places, has_project) {
        scan::directory(&root, &mut search);
    }
    for path in more {
        let known = search.found.candidates.len();
        if let Err(why @ (Absence::OutsideRoots | Absence::PathEscape)) = search.policy.check_as_written(path)
        {
            // One note is about all that the caller may not look at.
            search.out_of_reach(path, &why);
            continue;
        } else if is_dir(path) {
            let (path, depth_max) = (path.clone(), SKILL_DEPTH_MAX);
            let root = Root { path, owner: Owner::User, files: true, named_by_file: true, depth_max };
            scan::directory(&root, &mut search);
        } else {
            let named_by_file = path.file_name().is_none_or(|name| name != "SKILL.md");
            search.linked_file(&SkillPlace {
                path,
                owner: Owner::User,
                is_in_root: named_by_file,
                named_by_file,
            });
        }
        if search.found.candidates.len() == known {
            search.found.notes.push(no_skill(path));
        }
    }
    search.found.notes.extend(places.ignores().take_note());
    if search.left_out > 0 {
        search.found.notes.insert(0, too_many(search.left_out));
    }
    sort(&mut search.found.candidates, recipe.order);
    search.found
}

/// Notes an added path at which nothing was found, whatever the reason.
fn no_skill(path: &Path) -> Note {
    let message = format!("no skill was found at the added path {}", crate::observe::file::shown(path));
    Note::new(Code::Absent, Severity::Warning, message)
        .with_hint("name a directory with skills, or a file SKILL.md, that may be read here")
}

/// Sorts candidates as the recipe lists skills; other files come last.
fn sort(candidates: &mut [Candidate], order: SkillOrder) {
    let key = |candidate: &Candidate| {
        let skill = candidate.skill.as_ref();
        let is_user = skill.is_some_and(|skill| skill.owner == Owner::User);
        let name = skill.map(|skill| Arc::clone(&skill.name));
        (name.is_none(), order == SkillOrder::LayerAndName && is_user, name, Arc::clone(&candidate.location))
    };
    if order != SkillOrder::Found {
        candidates.sort_by_cached_key(key);
    }
}

/// Returns the faults of a skill file of the project, from its bytes.
pub(crate) fn problems(path: &Path, bytes: &[u8]) -> Vec<Note> {
    let is_alone = path.file_name().is_none_or(|name| name != "SKILL.md");
    let spot = SkillPlace { path, owner: Owner::Project, is_in_root: is_alone, named_by_file: is_alone };
    let location: Arc<str> = crate::observe::file::shown(path).into();
    let head = bytes.get(..bytes.len().min(head::HEAD_BYTES_MAX)).unwrap_or_default();
    let (_, problems) = entry::read(&spot, &SkillsRecipe::plain(), &location, head);
    problems.iter().map(|problem| problem.note(&location)).collect()
}

/// Returns the directories, in order. The user's own directory is not also taken for one of the project.
fn roots(recipe: &SkillsRecipe, places: &SearchRoots, has_project: bool) -> Vec<Root> {
    let own: Vec<PathBuf> = recipe
        .directories
        .iter()
        .filter_map(|directory| places.path(&directory.path))
        .filter_map(|(path, owner)| (owner == Owner::User).then_some(path))
        .collect();
    let own_folders: Vec<Identity> = own.iter().filter_map(|path| identity(path)).collect();
    // If the user has none, no folder can be the user's.
    let is_own_folder = |path: &Path| {
        !own_folders.is_empty() && identity(path).is_some_and(|folder| own_folders.contains(&folder))
    };
    let is_own = |path: &PathBuf| own.contains(path) || is_own_folder(path);
    let mut roots = Vec::new();
    for directory in &recipe.directories {
        let Some((path, owner)) = places.path(&directory.path) else { continue };
        let (files, named_by_file) = (directory.files, directory.named_by_file);
        let depth_max = directory.depth_max.unwrap_or(SKILL_DEPTH_MAX).min(SKILL_DEPTH_MAX);
        match (owner, directory.upwards) {
            (Owner::Project, _) if !has_project => {}
            (Owner::Project, true) => {
                let all = places.upwards().map(|folder| folder.join(&directory.path));
                let others = all.filter(|path| !is_own(path));
                roots.extend(others.map(|path| Root { path, owner, files, named_by_file, depth_max }));
            }
            _ => roots.push(Root { path, owner, files, named_by_file, depth_max }),
        }
    }
    roots
}

/// Identifies an existing folder with one call; resolving links takes one for every folder above.
fn identity(path: &Path) -> Option<Identity> {
    metadata(path).ok().map(|found| Identity::from_metadata(&found))
}

/// The reason why a skill is not listed.
fn hidden_why(recipe: &SkillsRecipe) -> String {
    match &recipe.hidden_by {
        None => "`disable-model-invocation` is true".to_owned(),
        Some(keys) => format!("because of {} in its front matter", keys.join(" or ")),
    }
}

fn too_many(left_out: usize) -> Note {
    let message = format!("{left_out} skills are not read: there are more than {SKILLS_MAX}");
    Note::new(Code::OverLimit, Severity::Warning, message)
}

/// The state of a search.
struct Search<'s> {
    recipe: &'s SkillsRecipe,
    places: &'s SearchRoots,
    policy: &'s ReadPolicy,
    found: FoundSkills,
    /// The first candidate of each name; `files` has the one of each file.
    names: BTreeMap<Arc<str>, usize>,
    files: BTreeMap<Identity, usize>,
    left_out: usize,
}

impl Search<'_> {
    /// Takes a file that was found through a link or by an explicit path.
    fn linked_file(&mut self, spot: &SkillPlace<'_>) {
        let path = spot.path;
        match head::read_guarded(path, self.policy) {
            Ok(head) => {
                let note = self.places.link_outside(path, &head.real);
                self.found.notes.extend(note);
                let recipe = self.recipe;
                self.take(spot, head.identity, |location| entry::read(spot, recipe, location, &head.bytes));
            }
            Err(why) => self.unread(path, &why),
        }
    }

    /// Takes a file, unless it was taken under another name; `read` parses it.
    fn take(
        &mut self,
        spot: &SkillPlace<'_>,
        identity: Identity,
        read: impl FnOnce(&Arc<str>) -> entry::ParsedSkill,
    ) {
        let path = spot.path;
        let Some(location) = path.to_str() else {
            return self.unread(path, &Absence::BadPath("the path is not UTF-8"));
        };
        if location.len() > PATH_BYTES_MAX {
            return self.unread(path, &Absence::BadPath("the path is too long"));
        }
        let location: Arc<str> = location.into();
        if let Some(first) = self.files.get(&identity).and_then(|first| self.location(*first)) {
            let why = Some(format!("of {first}"));
            return self.push(Candidate { outcome: Outcome::Duplicate, why, ..Candidate::unknown(location) });
        }
        if self.files.len() == SKILLS_MAX {
            self.left_out += 1;
            return;
        }
        let (skill, mut problems) = read(&location);
        let Some(skill) = skill else {
            let why = problems.first().map(|problem| problem.message.clone());
            let outcome = Outcome::Malformed;
            return self.push(Candidate { outcome, why, problems, ..Candidate::unknown(location) });
        };
        let first = self.names.get(&skill.name).filter(|_| !self.recipe.same_names);
        let first = first.and_then(|first| self.location(*first));
        let (outcome, why) = match first {
            Some(first) => {
                let why = format!("by {first}, which has the same name");
                problems = vec![Problem::shadowed(&skill.name, first)];
                (Outcome::Shadowed, Some(why))
            }
            None if skill.is_hidden => (Outcome::Hidden, Some(hidden_why(self.recipe))),
            None => (Outcome::Used, None),
        };
        // A file whose name another file already has may still be listed under a second name of its own.
        if outcome != Outcome::Shadowed {
            self.files.insert(identity, self.found.candidates.len());
            self.names.insert(Arc::clone(&skill.name), self.found.candidates.len());
        }
        self.push(Candidate { skill: Some(skill), location, outcome, why, problems });
    }

    fn location(&self, candidate: usize) -> Option<&str> {
        self.found.candidates.get(candidate).map(|candidate| &*candidate.location)
    }

    /// Notes a location that this caller may not read at all.
    fn out_of_reach(&mut self, path: &Path, why: &Absence) {
        let mut trail = Trail::default();
        trail.out_of_reach(&crate::observe::file::shown(path), why);
        let is_new = |note: &Note| !self.found.notes.contains(note);
        let notes: Vec<Note> = trail.notes.into_iter().filter(is_new).collect();
        self.found.notes.extend(notes);
        self.found.considered.extend(trail.considered);
    }

    fn unread(&mut self, path: &Path, why: &Absence) {
        let mut trail = Trail::default();
        trail.unread(&crate::observe::file::shown(path), why);
        self.found.notes.append(&mut trail.notes);
        self.found.considered.append(&mut trail.considered);
    }

    /// Notes an ignore file that could not be used. An exhausted budget is noted once for all of them.
    fn unread_rules(&mut self, UnusableFile { path, why }: &UnusableFile) {
        if let Some(why) = why {
            self.unread(path, why);
        } else {
            let (path, outcome) = (crate::observe::file::shown(path), Outcome::OverBudget);
            let why = Some("of the ignore files of a build".to_owned());
            self.found.considered.push(FileOutcome { path, outcome, why });
        }
    }

    fn ignored(&mut self, path: &Path, by: &str) {
        let (path, why) = (crate::observe::file::shown(path), Some(format!("by {by}")));
        self.found.considered.push(FileOutcome { path, outcome: Outcome::Ignored, why });
    }

    fn over_limit(&mut self, path: &Path, what: &str) {
        let path = crate::observe::file::shown(path);
        let note = Note::new(Code::OverLimit, Severity::Warning, format!("{path} is not searched: {what}"));
        self.found.notes.push(note.with_source(file(&path)));
        let (outcome, why) = (Outcome::OverBudget, Some(what.to_owned()));
        self.found.considered.push(FileOutcome { path, outcome, why });
    }

    fn push(&mut self, candidate: Candidate) {
        self.found.candidates.push(candidate);
    }
}

impl Candidate {
    const fn unknown(location: Arc<str>) -> Self {
        Self { skill: None, location, outcome: Outcome::Malformed, why: None, problems: Vec::new() }
    }
}
