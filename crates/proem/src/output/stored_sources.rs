//! The stored form of everything that a prompt was built from, so that a later build need not read the files again.
//!
//! It holds the policy of the profile, the variables that the frozen text depends on, every source with its digest, and
//! the texts that were read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use proem_core::digest::Digest;
use proem_core::file_outcome::Outcome;
use proem_core::line_map::LineMap;
use proem_core::note::{Code, Severity};
use proem_core::stability::Stability;
use proem_core::text::Place;
use serde::{Deserialize, Serialize};

use super::stored_prompt::{
    DamagedPrompt, StoredFileOutcome, StoredNote, restore_considered, restore_note, store_considered,
    store_note,
};
use super::stored_view::StoredView;
use crate::build::PromptPolicy;
use crate::discover::agent_rules::{ConditionalFile, Piece, PieceSource, RuleFiles};
use crate::discover::documents::Document;
use crate::discover::override_files::FileText;
use crate::discover::skill_directory::Line;
use crate::discover::skills::{Candidate, FoundSkills, Problem, Skill};
use crate::discover::{DiscoveredFiles, Owner, Trail};
use crate::hooks::{ResourcePaths, Resources};
use crate::observe::file::SourceTexts;
use crate::request::caller::Caller;
use crate::sections::build_state::BuildState;
use crate::sections::snapshot::Snapshot;

/// The version of this shape. A later one is refused.
const VERSION: u32 = 1;

/// The part of an epoch's sources that every turn needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EpochDetails {
    version: u32,
    /// The rules for the life of the prompt.
    pub(crate) policy: PromptPolicy,
    /// The text between the frozen part and that of a turn.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) boundary: String,
    /// The keys of the variables that the frozen text depends on.
    pub(crate) facts: BTreeSet<String>,
    /// The facts that the profile fixes when a conversation begins, as they were observed; `None` for an absent one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) fixed: BTreeMap<String, Option<String>>,
    /// The files with a text in the prompt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) files: Vec<SourceFile>,
    /// The resources that the conversation had besides those of hooks.
    #[serde(default, skip_serializing_if = "ResourcePaths::is_empty")]
    pub(crate) resources: ResourcePaths,
    /// The resources that hooks brought.
    #[serde(default)]
    found: StoredResources,
    /// The text of the store's template, if it is the base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) template: Option<String>,
    /// The sources of the sections that do not hold changes back. Epochs of earlier versions have none.
    #[serde(default, skip_serializing_if = "Snapshot::is_empty")]
    pub(crate) snapshot: Snapshot,
    /// The view of files that the prompt was built with. Epochs of earlier versions do not have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) view: Option<StoredView>,
}

/// A file that a prompt was built from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SourceFile {
    pub(crate) path: String,
    /// The SHA-256 of its text, as it was used, in hexadecimal.
    pub(crate) digest: String,
    pub(crate) stability: Stability,
}

#[derive(Serialize, Deserialize)]
struct StoredSources {
    #[serde(flatten)]
    details: EpochDetails,
    read: StoredRead,
}

/// Everything that was read.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct StoredRead {
    instead: BTreeMap<String, (Vec<StoredText>, StoredTrail)>,
    documents: BTreeMap<String, (Vec<StoredText>, StoredTrail)>,
    skills: BTreeMap<String, StoredSkills>,
    rules: BTreeMap<String, StoredRules>,
    skill_directories: BTreeMap<String, (Vec<StoredLine>, StoredTrail)>,
    texts: Vec<StoredSourceText>,
    hook_notes: Vec<StoredNote>,
    /// The texts of the documents of the snapshot, by digest.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    announced: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct StoredResources {
    skills: Vec<PathBuf>,
    packs: Vec<PathBuf>,
    assets: Vec<PathBuf>,
}

/// A file's text. Lines are those of the file if there is no map of them.
#[derive(Serialize, Deserialize)]
struct StoredText {
    path: String,
    text: String,
    owner: StoredOwner,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lines: Option<StoredLines>,
}

/// The first line of each run with its place in the file, and the bytes at the end that are in no file.
#[derive(Serialize, Deserialize)]
struct StoredLines(Vec<[usize; 3]>, usize);

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredOwner {
    User,
    Project,
}

#[derive(Default, Serialize, Deserialize)]
struct StoredTrail {
    notes: Vec<StoredNote>,
    considered: Vec<StoredFileOutcome>,
}

#[derive(Serialize, Deserialize)]
struct StoredSkills {
    candidates: Vec<StoredCandidate>,
    trail: StoredTrail,
}

#[derive(Serialize, Deserialize)]
struct StoredCandidate {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    skill: Option<StoredSkill>,
    location: Arc<str>,
    outcome: Outcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    problems: Vec<StoredProblem>,
}

#[derive(Serialize, Deserialize)]
struct StoredSkill {
    name: Arc<str>,
    description: Arc<str>,
    location: Arc<str>,
    owner: StoredOwner,
    is_hidden: bool,
}

#[derive(Serialize, Deserialize)]
struct StoredProblem {
    code: String,
    message: String,
    hint: Option<String>,
    severity: Severity,
    at: Option<[usize; 2]>,
}

#[derive(Serialize, Deserialize)]
struct StoredRules {
    pieces: Vec<StoredPiece>,
    conditional: Vec<StoredConditional>,
    trail: StoredTrail,
}

#[derive(Serialize, Deserialize)]
struct StoredPiece {
    path: String,
    relative: String,
    kind: String,
    owner: StoredOwner,
    text: String,
    source: StoredPieceSource,
    begins: bool,
    ends: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredPieceSource {
    File(String, StoredLines),
    Words(String),
}

#[derive(Serialize, Deserialize)]
struct StoredConditional {
    path: String,
    relative: String,
    owner: StoredOwner,
    patterns: String,
    description: String,
}

#[derive(Serialize, Deserialize)]
struct StoredLine {
    name: String,
    text: String,
    location: String,
    owner: StoredOwner,
}

#[derive(Serialize, Deserialize)]
struct StoredSourceText {
    path: String,
    is_restricted: bool,
    text: Option<String>,
}

impl EpochDetails {
    /// Describes a prompt: its policy, its boundary, and what it was built from. `fixed` names the facts that its profile
    /// fixes.
    pub(crate) fn new(
        policy: &PromptPolicy,
        boundary: &str,
        state: &BuildState,
        fixed: &[String],
        (template, caller): (Option<String>, Caller),
    ) -> Self {
        let observed = |key: &String| Some((key.clone(), state.turn_facts.get(key)?.clone().ok()));
        Self {
            view: Some(caller.into()),
            snapshot: state.snapshot.clone(),
            version: VERSION,
            policy: policy.clone(),
            boundary: boundary.to_owned(),
            facts: state.frozen_facts.clone(),
            fixed: fixed.iter().filter_map(observed).collect(),
            files: source_files(state),
            resources: state.added.clone(),
            found: {
                let Resources { skills, packs, assets } = state.resources.clone().unwrap_or_default();
                StoredResources { skills, packs, assets }
            },
            template,
        }
    }

    /// Returns the resources that hooks brought.
    pub(crate) fn found(&self) -> Resources {
        let StoredResources { skills, packs, assets } = self.found.clone();
        Resources { skills, packs, assets }
    }

    /// Writes the details and everything that was read as JSON.
    pub(crate) fn to_json(&self, state: &BuildState) -> Result<String, DamagedPrompt> {
        let stored = StoredSources { details: self.clone(), read: StoredRead::new(state) };
        serde_json::to_string(&stored).map_err(DamagedPrompt::from_json)
    }

    /// Reads the details and skips the texts.
    pub(crate) fn from_json(text: &str) -> Result<Self, DamagedPrompt> {
        check_version(text)?;
        serde_json::from_str(text).map_err(DamagedPrompt::from_json)
    }
}

/// Reads the texts of the documents of an epoch's snapshot, by digest.
pub(crate) fn announced_texts(text: &str) -> Result<BTreeMap<String, String>, DamagedPrompt> {
    check_version(text)?;
    let stored: StoredSources = serde_json::from_str(text).map_err(DamagedPrompt::from_json)?;
    Ok(stored.read.announced)
}

/// Reads everything that a prompt was built from.
pub(crate) fn build_state(text: &str) -> Result<BuildState, DamagedPrompt> {
    check_version(text)?;
    let StoredSources { details, read } = serde_json::from_str(text).map_err(DamagedPrompt::from_json)?;
    let mut texts = SourceTexts::default();
    for StoredSourceText { path, is_restricted, text } in read.texts {
        texts.insert(path, is_restricted, text);
    }
    Ok(BuildState {
        resources: Some(details.found()),
        discovered: DiscoveredFiles {
            instead: each(read.instead, |(files, trail)| {
                let file = |stored: StoredText| FileText {
                    path: stored.path,
                    text: stored.text,
                    owner: stored.owner.into(),
                };
                (files.into_iter().map(file).collect(), trail.into())
            }),
            documents: each(read.documents, |(files, trail)| {
                let document = |stored: StoredText| {
                    let lines = stored.lines.map_or_else(LineMap::whole, LineMap::from);
                    Document::restored(stored.path, stored.text, stored.owner.into(), lines)
                };
                (files.into_iter().map(document).collect(), trail.into())
            }),
            skills: each(read.skills, FoundSkills::from),
            rules: each(read.rules, RuleFiles::from),
            skill_directories: each(read.skill_directories, |(lines, trail)| {
                (lines.into_iter().map(Line::from).collect(), trail.into())
            }),
        },
        texts,
        hook_notes: read.hook_notes.into_iter().filter_map(restore_note).collect(),
        frozen_facts: details.facts,
        has_stored_template: details.template.is_some(),
        ..BuildState::default()
    })
}

fn each<A, B>(map: BTreeMap<String, A>, convert: impl Fn(A) -> B) -> BTreeMap<String, B> {
    map.into_iter().map(|(section, value)| (section, convert(value))).collect()
}

fn check_version(text: &str) -> Result<(), DamagedPrompt> {
    #[derive(Deserialize)]
    struct Form {
        version: u32,
    }
    match serde_json::from_str(text) {
        Ok(Form { version }) if version > VERSION => {
            Err(DamagedPrompt::new(format!("it was written by a later proem, in form {version}")))
        }
        Ok(_) => Ok(()),
        Err(error) => Err(DamagedPrompt::from_json(error)),
    }
}

/// Lists the files with a text in the prompt, each once.
fn source_files(state: &BuildState) -> Vec<SourceFile> {
    let DiscoveredFiles { instead, documents, rules, skill_directories, .. } = &state.discovered;
    let mut files: BTreeMap<String, SourceFile> = BTreeMap::new();
    let mut add = |path: &str, text: &str, stability: Stability| {
        let digest = Digest::new(text.as_bytes()).hex();
        let file = SourceFile { path: path.to_owned(), digest, stability };
        files.entry(path.to_owned()).or_insert(file);
    };
    for file in instead.values().flat_map(|(files, _)| files) {
        add(&file.path, &file.text, file.owner.stability());
    }
    for document in documents.values().flat_map(|(documents, _)| documents) {
        add(&document.path, &document.text, document.owner.stability());
    }
    for piece in rules.values().flat_map(|rules| &rules.pieces) {
        if let PieceSource::File(path, _) = &piece.source {
            add(path, &piece.text, piece.owner.stability());
        }
    }
    for line in skill_directories.values().flat_map(|(lines, _)| lines) {
        add(&line.location, &line.text, line.owner.stability());
    }
    for skill in state.discovered.skills.values().flat_map(FoundSkills::listed) {
        add(&skill.location, &format!("{}\n{}", skill.name, skill.description), skill.owner.stability());
    }
    for (path, _, text) in state.texts.iter() {
        if let Some(text) = text {
            add(path, text, Stability::Project);
        }
    }
    files.into_values().collect()
}

impl StoredRead {
    fn new(state: &BuildState) -> Self {
        let DiscoveredFiles { instead, documents, skills, rules, skill_directories } = &state.discovered;
        Self {
            instead: stored(instead, |(files, trail)| {
                (files.iter().map(StoredText::from).collect(), trail.into())
            }),
            documents: stored(documents, |(files, trail)| {
                (files.iter().map(StoredText::from).collect(), trail.into())
            }),
            skills: stored(skills, |found| found.into()),
            rules: stored(rules, |found| found.into()),
            skill_directories: stored(skill_directories, |(lines, trail)| {
                (lines.iter().map(StoredLine::from).collect(), trail.into())
            }),
            hook_notes: state.hook_notes.iter().map(store_note).collect(),
            announced: {
                let owned = |(digest, text): (&str, &str)| (digest.to_owned(), text.to_owned());
                state.snapshot.texts().into_iter().map(owned).collect()
            },
            texts: state
                .texts
                .iter()
                .map(|(path, is_restricted, text)| StoredSourceText {
                    path: path.to_owned(),
                    is_restricted,
                    text: text.map(str::to_owned),
                })
                .collect(),
        }
    }
}

fn stored<A, B>(map: &BTreeMap<String, A>, convert: impl Fn(&A) -> B) -> BTreeMap<String, B> {
    map.iter().map(|(section, value)| (section.clone(), convert(value))).collect()
}

impl From<&FileText> for StoredText {
    fn from(file: &FileText) -> Self {
        let FileText { path, text, owner } = file.clone();
        Self { path, text, owner: owner.into(), lines: None }
    }
}

impl From<&Document> for StoredText {
    fn from(document: &Document) -> Self {
        let Document { path, text, owner, line_map, .. } = document.clone();
        Self { path, text, owner: owner.into(), lines: Some((&line_map).into()) }
    }
}

impl From<Owner> for StoredOwner {
    fn from(owner: Owner) -> Self {
        match owner {
            Owner::User => Self::User,
            Owner::Project => Self::Project,
        }
    }
}

impl From<StoredOwner> for Owner {
    fn from(owner: StoredOwner) -> Self {
        match owner {
            StoredOwner::User => Self::User,
            StoredOwner::Project => Self::Project,
        }
    }
}

impl From<&LineMap> for StoredLines {
    fn from(map: &LineMap) -> Self {
        let (runs, added) = map.parts();
        Self(runs.iter().map(|(line, place)| [*line, place.line, place.column]).collect(), added)
    }
}

impl From<StoredLines> for LineMap {
    fn from(StoredLines(runs, added): StoredLines) -> Self {
        let run = |[first, line, column]: [usize; 3]| (first, Place { line, column });
        Self::from_parts(runs.into_iter().map(run).collect(), added)
    }
}

impl From<&Trail> for StoredTrail {
    fn from(trail: &Trail) -> Self {
        Self {
            notes: trail.notes.iter().map(store_note).collect(),
            considered: trail.considered.iter().cloned().map(store_considered).collect(),
        }
    }
}

impl From<StoredTrail> for Trail {
    fn from(stored: StoredTrail) -> Self {
        Self {
            notes: stored.notes.into_iter().filter_map(restore_note).collect(),
            considered: stored.considered.into_iter().map(restore_considered).collect(),
            // A prompt that was stored has no file that must be read and cannot be.
            unread: Vec::new(),
        }
    }
}

impl From<&FoundSkills> for StoredSkills {
    fn from(found: &FoundSkills) -> Self {
        let problem = |problem: &Problem| StoredProblem {
            code: problem.code.word().to_owned(),
            message: problem.message.clone(),
            hint: problem.hint.clone(),
            severity: problem.severity,
            at: problem.place.map(|place| [place.line, place.column]),
        };
        let skill = |skill: &Arc<Skill>| StoredSkill {
            name: Arc::clone(&skill.name),
            description: Arc::clone(&skill.description),
            location: Arc::clone(&skill.location),
            owner: skill.owner.into(),
            is_hidden: skill.is_hidden,
        };
        let candidate = |candidate: &Candidate| StoredCandidate {
            skill: candidate.skill.as_ref().map(skill),
            location: Arc::clone(&candidate.location),
            outcome: candidate.outcome,
            why: candidate.why.clone(),
            problems: candidate.problems.iter().map(problem).collect(),
        };
        let trail = StoredTrail {
            notes: found.notes.iter().map(store_note).collect(),
            considered: found.considered.iter().cloned().map(store_considered).collect(),
        };
        Self { candidates: found.candidates.iter().map(candidate).collect(), trail }
    }
}

impl From<StoredSkills> for FoundSkills {
    fn from(stored: StoredSkills) -> Self {
        let problem = |stored: StoredProblem| {
            let code = Code::from_word(&stored.code)?;
            let StoredProblem { message, hint, severity, at, .. } = stored;
            let place = at.map(|[line, column]| Place { line, column });
            Some(Problem { code, message, hint, severity, place })
        };
        let skill = |stored: StoredSkill| {
            let StoredSkill { name, description, location, owner, is_hidden } = stored;
            Arc::new(Skill { name, description, location, owner: owner.into(), is_hidden })
        };
        let candidate = |stored: StoredCandidate| Candidate {
            skill: stored.skill.map(skill),
            location: stored.location,
            outcome: stored.outcome,
            why: stored.why,
            problems: stored.problems.into_iter().filter_map(problem).collect(),
        };
        let Trail { notes, considered, .. } = stored.trail.into();
        Self { candidates: stored.candidates.into_iter().map(candidate).collect(), notes, considered }
    }
}

impl From<&RuleFiles> for StoredRules {
    fn from(found: &RuleFiles) -> Self {
        let piece = |piece: &Piece| StoredPiece {
            path: piece.path.clone(),
            relative: piece.relative.clone(),
            kind: piece.kind.clone(),
            owner: piece.owner.into(),
            text: piece.text.clone(),
            source: match &piece.source {
                PieceSource::File(path, lines) => StoredPieceSource::File(path.clone(), lines.into()),
                PieceSource::Words(key) => StoredPieceSource::Words(key.to_string()),
            },
            begins: piece.begins,
            ends: piece.ends,
        };
        let conditional = |file: &ConditionalFile| {
            let ConditionalFile { path, relative, owner, patterns, description } = file.clone();
            StoredConditional { path, relative, owner: owner.into(), patterns, description }
        };
        Self {
            pieces: found.pieces.iter().map(piece).collect(),
            conditional: found.conditional.iter().map(conditional).collect(),
            trail: (&found.trail).into(),
        }
    }
}

impl From<StoredRules> for RuleFiles {
    fn from(stored: StoredRules) -> Self {
        let piece = |stored: StoredPiece| {
            let StoredPiece { path, relative, kind, owner, text, source, begins, ends } = stored;
            let source = match source {
                StoredPieceSource::File(path, lines) => PieceSource::File(path, lines.into()),
                StoredPieceSource::Words(key) => PieceSource::Words(key.into()),
            };
            Piece { path, relative, kind, owner: owner.into(), text, source, begins, ends }
        };
        let conditional = |stored: StoredConditional| {
            let StoredConditional { path, relative, owner, patterns, description } = stored;
            ConditionalFile { path, relative, owner: owner.into(), patterns, description }
        };
        Self {
            pieces: stored.pieces.into_iter().map(piece).collect(),
            conditional: stored.conditional.into_iter().map(conditional).collect(),
            trail: stored.trail.into(),
        }
    }
}

impl From<&Line> for StoredLine {
    fn from(line: &Line) -> Self {
        let Line { name, text, location, owner } = line.clone();
        Self { name, text, location, owner: owner.into() }
    }
}

impl From<StoredLine> for Line {
    fn from(stored: StoredLine) -> Self {
        let StoredLine { name, text, location, owner } = stored;
        Self { name, text, location, owner: owner.into() }
    }
}
