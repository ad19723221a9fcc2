//! Checks every file of agents in a project: each once, in every directory, without git and without building a prompt.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proem_core::fact::Absence;
use proem_core::limit::{CHECK_BYTES_MAX, DOCUMENTS_BYTES_MAX};
use proem_core::note::{Code, Note, Severity};
use proem_core::profile::rules::{RulePlace, RuleTake};
use proem_core::profile::{Profile, RulesRecipe};
use proem_core::source::Source;

use super::{FILE, Report, Subject, allowances, choices, content, references};
use crate::discover::repository::{self, Entry, Repository};
use crate::discover::roster::{Agent, Role, Roster, is_fixture};
use crate::discover::{SearchRoots, skills};
use crate::error::Error;
use crate::observe::file::{Identity, ReadFile, ReadPolicy, read, with_fixed_roots};
use crate::observe::host::Host;
use crate::observe::workspace::Workspace;
use crate::request::Request;
use crate::request::caller::Caller;
use crate::sections::text_findings::ScannedText;
use crate::settings::config::Config;
use crate::settings::profiles::Profiles;

/// Endings of pages that are written to be read.
const PAGE_ENDINGS: [&str; 2] = [".md", ".mdc"];

/// All codes that this check reports. It ignores allow rules for other codes.
pub(super) const CODES: [Code; 19] = [
    Code::SecretPath,
    Code::NotUtf8,
    Code::RootNotAllowed,
    Code::OverLimit,
    Code::NotRegular,
    Code::IgnoredSetting,
    Code::Unreadable,
    Code::MalformedSkill,
    Code::LinkOutside,
    Code::NameVariant,
    Code::HiddenText,
    Code::BidiControl,
    Code::ControlCharacter,
    Code::DisguisedText,
    Code::LooksSecret,
    Code::DuplicateContent,
    Code::Contradiction,
    Code::LineEndings,
    Code::AgentsDiffer,
];

/// Checks every file of agents in the project of a request: the git repository around the working directory, or the directory
/// itself outside of one. Only the agents that are named count where agents differ; all of them if none is named.
pub fn check_all(request: &Request, names: &[String]) -> Result<Report, Error> {
    with_fixed_roots(|| Project::open(request, names)?.check())
}

/// Lists the files of agents in the project of a request, by path, for a profile that reads none of them.
pub fn other_files(request: &Request) -> Result<Vec<PathBuf>, Error> {
    let project = Project::open(request, &[])?;
    let found = project.find();
    let own = found.entries.into_iter().filter(|entry| entry.role != Role::Text);
    Ok(own.map(|entry| entry.path).collect())
}

struct Project {
    places: SearchRoots,
    policy: ReadPolicy,
    config: Config,
    profiles: Vec<Arc<Profile>>,
    agents: Vec<Agent>,
}

/// A file that was read.
struct CheckedFile {
    entry: Entry,
    text: String,
    /// All paths that lead to it, its own first.
    paths: Vec<PathBuf>,
}

impl Project {
    /// Finds the root of the project: findings must not depend on the folder in which the check is started.
    fn open(request: &Request, names: &[String]) -> Result<Self, Error> {
        let host = Host::observe(request, Caller::User)?;
        let own = Workspace::open(request.cwd.as_deref())?;
        let root = SearchRoots::new(&host, &own).project().to_string_lossy().into_owned();
        let workspace = Workspace::open(Some(&root))?;
        let config = Config::load(&host, &workspace)?;
        let places = SearchRoots::new(&host, &workspace);
        let policy =
            ReadPolicy::user(host.home().as_deref(), &config.files_allow.value).fenced(places.fence());
        let profiles = Profiles::new(&host, &workspace);
        let agents = crate::inspect::compat::chosen(&profiles, names)?;
        let listed = profiles.list().into_iter().filter_map(|listed| profiles.find(&listed.name).ok());
        Ok(Self { places, policy, config, profiles: listed.map(|found| found.profile).collect(), agents })
    }

    fn find(&self) -> Repository {
        let roster = Roster::from_profiles(self.profiles.iter().map(|profile| &**profile));
        let mut found = repository::find(&self.places, &self.policy, &roster);
        // A folder called `skills` may hold pages of documentation: texts belong to a skill, or to the folder of an agent.
        let own = found.entries.iter().filter(|entry| entry.role == Role::Skill);
        let skills: BTreeSet<PathBuf> =
            own.filter_map(|entry| Some(entry.path.parent()?.to_owned())).collect();
        found.entries.retain(|entry| {
            let parts: Vec<&str> = entry.parts.iter().map(String::as_str).collect();
            let is_in_skill = || entry.path.ancestors().any(|folder| skills.contains(folder));
            entry.role != Role::Text || roster.is_of_agent(&parts) || is_in_skill()
        });
        // Secrets and hidden text count in these as well; whether they would work as instructions does not.
        for entry in found.entries.iter_mut().filter(|entry| is_fixture(&entry.parts)) {
            entry.role = Role::Text;
        }
        found
    }

    fn check(&self) -> Result<Report, Error> {
        let Repository { entries, directories, mut notes } = self.find();
        let files = self.read(entries, &mut notes);
        notes.extend(self.config.notes.iter().cloned());
        for file in &files {
            notes.extend(self.lints(file));
        }
        notes.extend(repeated(&files));
        notes.extend(self.agents.iter().flat_map(|agent| cut(agent, &files)));
        let texts = files.iter().filter(|file| file.entry.role == Role::Instructions);
        let texts: choices::FileTexts<'_> =
            texts.flat_map(|file| file.paths.iter().map(|path| (path.clone(), file.text.as_str()))).collect();
        notes.extend(choices::differences(&self.agents, &texts, self.places.project()));

        let path = |file: &CheckedFile| file.entry.path.to_string_lossy().into_owned();
        let roles = files.iter().map(|file| (path(file), file.entry.role.word())).collect();
        let mut report = Report {
            findings: notes,
            allowed: Vec::new(),
            files: files.iter().map(path).collect(),
            subject: Subject::Project { directories, roles },
        };
        report.sort(&allowances(&self.config)?);
        fold_harmless(&mut report.findings);
        Ok(report)
    }

    /// Reads each file once, whatever its names; a name that is not a link gives the path.
    fn read(&self, mut entries: Vec<Entry>, notes: &mut Vec<Note>) -> Vec<CheckedFile> {
        entries.sort_by_key(|entry| entry.is_linked);
        let (mut known, mut files, mut bytes) =
            (BTreeMap::<Identity, usize>::new(), Vec::<CheckedFile>::new(), 0);
        for entry in entries {
            let found = match self.read_one(&entry) {
                Ok(found) => found,
                Err(why) => {
                    notes.extend(repository::unread(&entry.path, &why));
                    continue;
                }
            };
            if let Some(file) = known.get(&found.identity).and_then(|index| files.get_mut(*index)) {
                file.entry.role = file.entry.role.min(entry.role);
                file.paths.push(entry.path);
                continue;
            }
            bytes += found.bytes.len();
            if bytes > CHECK_BYTES_MAX {
                notes.push(no_room(&entry.path));
                break;
            }
            let identity = found.identity;
            match found.into_text() {
                Ok(text) => {
                    known.insert(identity, files.len());
                    files.push(CheckedFile { paths: vec![entry.path.clone()], entry, text });
                }
                Err(why) => notes.extend(repository::unread(&entry.path, &why)),
            }
        }
        files.sort_by(|a, b| a.entry.parts.cmp(&b.entry.parts));
        files
    }

    /// Reads a file. A page about credentials beside a skill may be opened by a model, but does not enter a prompt
    /// here, so its name does not exclude it.
    fn read_one(&self, entry: &Entry) -> Result<ReadFile, Absence> {
        let has_ending = || PAGE_ENDINGS.iter().any(|ending| entry.path.to_string_lossy().ends_with(ending));
        let is_page = || entry.role == Role::Text && !entry.is_linked && has_ending();
        match read(&entry.path, &self.policy, FILE) {
            Err(Absence::SecretPath) if is_page() => {
                read(&entry.path, &self.policy.allowing(&entry.path), FILE)
            }
            found => found,
        }
    }

    /// Everything that is wrong with a file by itself.
    fn lints(&self, file: &CheckedFile) -> Vec<Note> {
        let CheckedFile { entry, text, .. } = file;
        let mut notes = ScannedText { text, source: source(&entry.path), is_file: true }.lints();
        match entry.role {
            Role::Skill => notes.extend(skills::problems(&entry.path, text.as_bytes())),
            Role::Instructions => {
                notes.extend(references::dangling(&file.paths, text, &self.agents, self.places.project()));
                notes.extend(references::half_imported(
                    &file.paths,
                    text,
                    &self.agents,
                    self.places.project(),
                ));
            }
            Role::Text => {}
        }
        notes
    }
}

fn source(path: &Path) -> Source {
    Source::File { path: path.to_string_lossy().into(), place: None }
}

/// Merges harmless findings about many skills into one: they show a habit of the project, not a fault of each skill.
fn fold_harmless(findings: &mut Vec<Note>) {
    let is_harmless = |note: &Note| note.code == Code::MalformedSkill && note.severity == Severity::Info;
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    findings.retain(|note| {
        let count = is_harmless(note).then(|| counts.entry(note.message.clone()).or_default());
        count.is_none_or(|count| {
            *count += 1;
            *count == 1
        })
    });
    for note in findings.iter_mut().filter(|note| is_harmless(note)) {
        match counts.get(&note.message) {
            Some(2) => note.message.push_str(" (1 more skill has the same)"),
            Some(count) if *count > 2 => {
                note.message = format!("{} ({} more skills have the same)", note.message, count - 1);
            }
            _ => {}
        }
    }
}

fn no_room(path: &Path) -> Note {
    let most = CHECK_BYTES_MAX >> 20;
    let message =
        format!("it is not looked at, and neither are others: the files of agents are over {most} MiB");
    let note = Note::new(Code::OverLimit, Severity::Warning, message);
    note.with_hint("check the folders one by one: `proem check --all --cwd FOLDER`").with_source(source(path))
}

/// Finds text that a file repeats from, or that contradicts, files of the same name above it: an agent that is
/// started in its folder reads all of them.
fn repeated(files: &[CheckedFile]) -> Vec<Note> {
    let instructions = || files.iter().filter(|file| file.entry.role == Role::Instructions);
    let by_parts: BTreeMap<&[String], &CheckedFile> =
        instructions().map(|file| (file.entry.parts.as_slice(), file)).collect();
    let (mut notes, mut left) = (Vec::new(), CHECK_BYTES_MAX);
    for file in instructions() {
        let Some((name, folder)) = file.entry.parts.split_last() else { continue };
        let above = (0..folder.len()).filter_map(|depth| {
            let parts: Vec<String> = folder.iter().take(depth).chain([name]).cloned().collect();
            by_parts.get(parts.as_slice()).copied()
        });
        let mut chain: Vec<&CheckedFile> = above.chain([file]).collect();
        // The nearest ones count, as many as one prompt has room for.
        let mut room = DOCUMENTS_BYTES_MAX.min(left);
        chain.reverse();
        let is_taken = |one: &&CheckedFile| {
            let rest = room.checked_sub(one.text.len());
            room = rest.unwrap_or(room);
            rest.is_some()
        };
        let mut taken: Vec<&CheckedFile> = chain.into_iter().take_while(is_taken).collect();
        taken.reverse();
        left = left.saturating_sub(taken.iter().map(|one| one.text.len()).sum());
        let paths: Vec<String> =
            taken.iter().map(|one| one.entry.path.to_string_lossy().into_owned()).collect();
        let texts: Vec<(&str, &str)> =
            paths.iter().zip(&taken).map(|(path, one)| (path.as_str(), one.text.as_str())).collect();
        match copied(&texts) {
            Some(note) => notes.push(note),
            None => notes.extend(content::lints_of_last(&texts)),
        }
    }
    notes
}

/// A file that is a copy of one above it is one finding, not one for each paragraph.
fn copied(texts: &[(&str, &str)]) -> Option<Note> {
    let ((path, text), above) = texts.split_last()?;
    // A path is relative to the folder of its file: the same line imports another file here.
    if !references::references(text).is_empty() {
        return None;
    }
    let (first, _) =
        above.iter().find(|(_, other)| !text.trim().is_empty() && other.trim() == text.trim())?;
    let message = format!("it is a copy of {first}, which is read as well");
    let note = Note::new(Code::DuplicateContent, Severity::Warning, message);
    Some(note.with_hint("remove it, or say only what is different here").with_source(source(Path::new(path))))
}

/// Files that an agent cuts, because all files from the root on share one budget.
fn cut(agent: &Agent, files: &[CheckedFile]) -> Vec<Note> {
    let mut notes = Vec::new();
    for recipe in agent.rules() {
        let places = recipe.places.iter().filter(|place| place.budget && place.walk.is_some());
        notes.extend(places.flat_map(|place| cut_here(agent, recipe, place, files)));
    }
    notes
}

fn cut_here(agent: &Agent, recipe: &RulesRecipe, place: &RulePlace, files: &[CheckedFile]) -> Vec<Note> {
    let Some(bytes_max) = recipe.bytes_max else { return Vec::new() };
    let mut by_folder: BTreeMap<&[String], &CheckedFile> = BTreeMap::new();
    // The first name comes last, so that it stays.
    for name in place.files.iter().rev().map(|file| file.name.as_str()) {
        let own = files.iter().filter(|file| file.entry.role == Role::Instructions).filter_map(|file| {
            let (last, folder) = file.entry.parts.split_last()?;
            (last == name).then_some((folder, file))
        });
        by_folder.extend(own);
        debug_assert!(place.take == RuleTake::First, "only that is counted here");
    }
    let mut notes = Vec::new();
    for (folder, file) in &by_folder {
        let above = (0..folder.len()).filter_map(|depth| by_folder.get(folder.get(..depth)?));
        let before: usize = above.map(|file| file.text.len()).sum();
        let (own, total) = (file.text.len(), before + file.text.len());
        if before > bytes_max || total <= bytes_max {
            continue;
        }
        let with = if before == 0 { String::new() } else { ", those above it included".to_owned() };
        let message = format!(
            "{} cuts it: {} of its {own} bytes are over the {bytes_max} that it reads{with}",
            agent.title,
            total - bytes_max,
        );
        let note = Note::new(Code::OverLimit, Severity::Warning, message);
        let note = note.with_hint("shorten it, or move a part into the files of folders that it is about");
        notes.push(note.with_source(source(&file.entry.path)));
    }
    notes
}
