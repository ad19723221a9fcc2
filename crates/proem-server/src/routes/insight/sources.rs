//! Everything that takes part in the prompts of a folder: files, skills, hooks, tools and values, with their cost, their
//! findings, the agents that read them, and the conversations that hold an older text.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::UNIX_EPOCH;

use axum::Json;
use axum::extract::State;
use proem::compat::{AgentView, look};
use proem::models::{Model, Models};
use proem::tokens::Tokenizer;
use proem::{Request, check, skills};
use proem_core::carrier::Carrier;
use proem_core::file_outcome::Outcome;
use proem_core::note::Note;
use proem_core::source::Source;
use proem_core::stability::Stability;
use proem_store::Query;
use serde::Deserialize;

use crate::app::App;
use crate::error::ApiError;
use crate::routes::Shared;
use crate::routes::body::QueryParams;
use crate::shapes::insight::{SourceAgent, SourceFinding, SourceReader, SourceRow, SourcesAnswer};

/// Conversations of the folder that are compared.
const CONVERSATIONS_MAX: usize = 50;

/// Conversations that one row names.
const NAMED_MAX: usize = 20;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::routes) struct SourcesQuery {
    cwd: Option<String>,
    profile: Option<String>,
    model: Option<String>,
}

/// Returns the sources of a folder.
pub(in crate::routes) async fn sources(
    State(app): Shared,
    QueryParams(query): QueryParams<SourcesQuery>,
) -> Result<Json<SourcesAnswer>, ApiError> {
    let SourcesQuery { cwd, profile, model } = query;
    let request = app.admit(Request { cwd, profile, model, ..Request::default() })?;
    let answer = app.work(move |app| app.sources(&request)).await?;
    Ok(Json(answer))
}

/// The identity of a source: its kind and its name.
type Key = (&'static str, String);

/// The texts of one source, by carrier.
#[derive(Debug, Default, PartialEq, Eq)]
struct Piece {
    texts: BTreeMap<Carrier, String>,
    stability: Option<Stability>,
}

/// The frozen texts that a new conversation of a folder would have.
struct FrozenNow<'n> {
    cwd: &'n str,
    pieces: &'n BTreeMap<Key, Piece>,
    skills: &'n BTreeSet<&'n str>,
    tokenizer: Tokenizer,
}

impl App {
    fn sources(&self, request: &Request) -> Result<SourcesAnswer, ApiError> {
        let models = Models::load(request, self.caller())?;
        let model = request.model.as_deref().and_then(|name| models.find(name));
        let tokenizer = model.map_or(Tokenizer::Estimate, Model::tokenizer);
        let build = self.conversations.prompt(request, self.caller())?;
        let (skills, _) = skills(request, self.caller())?;
        let skill_paths: BTreeSet<&str> = skills.iter().map(|skill| skill.location.as_str()).collect();
        let pieces = pieces_of(build.whole(), &skill_paths);
        let mut rows: BTreeMap<Key, SourceRow> = BTreeMap::new();
        for (key, piece) in &pieces {
            let row = row_of(&mut rows, key);
            row.outcome = Some(Outcome::Used.word());
            measure(row, piece, tokenizer);
        }
        for skill in &skills {
            let row = row_of(&mut rows, &("skill", skill.location.clone()));
            row.outcome = Some(skill.outcome.word());
            row.why.clone_from(&skill.why);
            if let Some(name) = &skill.name {
                row.name.clone_from(name);
            }
        }
        // Names outside of the workspaces were not looked at.
        let is_listed =
            |path: &str, outcome| outcome != Outcome::Missing && self.lies_inside(Path::new(path));
        for file in build.frozen().considered().iter().filter(|file| is_listed(&file.path, file.outcome)) {
            let row = row_of(&mut rows, &(kind_of_file(&file.path, &skill_paths), file.path.clone()));
            row.outcome = Some(file.outcome.word());
            row.why.clone_from(&file.why);
        }
        let seen = look(request, &[], self.caller())?;
        for agent in &seen {
            readers(agent, &skill_paths, &mut rows);
        }
        let cwd = request.cwd.clone().unwrap_or_default();
        // The part of a turn is not frozen.
        let frozen = pieces_of(build.frozen().body(), &skill_paths);
        let now = FrozenNow { cwd: &cwd, pieces: &frozen, skills: &skill_paths, tokenizer };
        let conversations = self.older(&now, &mut rows)?;
        let findings = findings(check::check(request, self.caller())?.findings, &mut rows);
        let mut sources: Vec<SourceRow> = rows.into_values().collect();
        for row in &mut sources {
            price(row, model);
            row.changed_at = row.path.as_deref().and_then(changed_at);
        }
        sources.sort_by(|a, b| {
            b.tokens.cmp(&a.tokens).then_with(|| a.kind.cmp(b.kind)).then_with(|| a.name.cmp(&b.name))
        });
        Ok(SourcesAnswer {
            cwd,
            profile: build.frozen().profile().to_owned(),
            model: request.model.clone(),
            prices_as_of: models.as_of.clone(),
            counted: tokenizer.describe(build.whole().carriers().map(|(_, text)| text)),
            sources,
            agents: seen.iter().map(agent).collect(),
            conversations,
            findings,
        })
    }

    /// Compares the frozen texts of the newest conversations of a folder with the texts of now. Returns their number.
    fn older(&self, now: &FrozenNow<'_>, rows: &mut BTreeMap<Key, SourceRow>) -> Result<usize, ApiError> {
        let FrozenNow { cwd, pieces, skills, tokenizer } = *now;
        let query = Query { search: Some(cwd.to_owned()), most: 4 * CONVERSATIONS_MAX, ..Query::default() };
        let page = self.store().conversations(&query)?;
        let own = page.items.into_iter().filter(|head| head.cwd == cwd).take(CONVERSATIONS_MAX);
        let mut compared = 0;
        for head in own {
            // One that was damaged or removed meanwhile is not compared.
            let Ok(Some(kept)) = self.conversations.current(&head.conversation) else { continue };
            compared += 1;
            for tool in kept.request.tools.iter().flatten().filter(|_| compared == 1) {
                let row = row_of(rows, &("tool", tool.name.clone()));
                let definition = serde_json::to_string(tool).unwrap_or_default();
                (row.bytes, row.tokens) = (definition.len(), tokenizer.count(&definition));
                row.outcome = Some(Outcome::Used.word());
            }
            let kept_pieces = pieces_of(kept.frozen.body(), skills);
            for (key, piece) in &kept_pieces {
                let is_file = matches!(key.0, "instruction_file" | "skill" | "template");
                let is_older = pieces.get(key).is_none_or(|now| now.texts != piece.texts);
                if is_file && is_older {
                    let row = row_of(rows, key);
                    row.older += 1;
                    if row.older_in.len() < NAMED_MAX {
                        row.older_in.push(head.conversation.clone());
                    }
                }
            }
        }
        Ok(compared)
    }
}

/// Returns the row of a source, which is created if there is none.
fn row_of<'r>(rows: &'r mut BTreeMap<Key, SourceRow>, key: &Key) -> &'r mut SourceRow {
    rows.entry(key.clone()).or_insert_with(|| {
        let (kind, name) = key.clone();
        let path = name.starts_with('/').then(|| name.clone());
        SourceRow { kind, name, path, ..SourceRow::default() }
    })
}

/// Groups the text of a prompt by its sources.
fn pieces_of(body: &proem_core::frozen::Body, skills: &BTreeSet<&str>) -> BTreeMap<Key, Piece> {
    let mut pieces: BTreeMap<Key, Piece> = BTreeMap::new();
    for (carrier, text) in body.carriers() {
        for span in body.spans(carrier) {
            let piece = pieces.entry(key_of(&span.source, skills)).or_default();
            let more = text.get(span.bytes.clone()).unwrap_or_default();
            piece.texts.entry(carrier).or_default().push_str(more);
            piece.stability = piece.stability.max(Some(span.stability));
        }
    }
    pieces
}

fn kind_of_file(path: &str, skills: &BTreeSet<&str>) -> &'static str {
    if skills.contains(path) { "skill" } else { "instruction_file" }
}

fn key_of(source: &Source, skills: &BTreeSet<&str>) -> Key {
    match source {
        Source::File { path, .. } => (kind_of_file(path, skills), path.to_string()),
        Source::Variable { path: Some(path), .. } => ("instruction_file", path.to_string()),
        Source::Variable { key, .. } => ("variable", key.to_string()),
        Source::Hook { name } => ("hook", name.to_string()),
        Source::Request { field, .. } if **field == *"template" => ("template", "stored template".to_owned()),
        Source::Request { field, .. } => ("request", field.to_string()),
        Source::BuiltIn { name, .. } => ("template", name.to_string()),
        Source::Pack { path, .. } => ("other", path.to_string()),
        Source::Profile { profile, .. } => ("template", format!("profile {profile}")),
    }
}

fn measure(row: &mut SourceRow, piece: &Piece, tokenizer: Tokenizer) {
    row.bytes = piece.texts.values().map(String::len).sum();
    row.tokens = piece.texts.values().map(|text| tokenizer.count(text)).sum();
    row.carriers = piece.texts.keys().map(|carrier| carrier.word()).collect();
    row.stability = piece.stability.map(Stability::word);
}

/// Sets the prices of a row: written in a new conversation, read in each further turn.
fn price(row: &mut SourceRow, model: Option<&Model>) {
    let Some(model) = model else { return };
    let tokens = f64::from(u32::try_from(row.tokens).unwrap_or(u32::MAX));
    let usd = |price: Option<f64>| price.map(|price| tokens * price / 1e6);
    row.usd_new = usd(model.cache_write.or(model.input));
    row.usd_turn = usd(model.cache_read.or(model.input));
}

/// Adds the outcome of each file for an agent.
fn readers(seen: &AgentView, skills: &BTreeSet<&str>, rows: &mut BTreeMap<Key, SourceRow>) {
    for (path, file) in &seen.files {
        let row = row_of(rows, &(kind_of_file(path, skills), path.clone()));
        row.agents.push(SourceReader {
            profile: seen.profile.clone(),
            outcome: file.outcome.word(),
            word: file.word(),
            why: file.why.clone(),
        });
    }
}

fn agent(seen: &AgentView) -> SourceAgent {
    SourceAgent {
        profile: seen.profile.clone(),
        title: seen.agent.title.clone(),
        version: seen.agent.version.clone(),
        as_of: seen.agent.as_of.clone(),
        known_by: seen.agent.known_by.word(),
        tokens: seen.carriers().map(|(_, _, tokens)| tokens).sum(),
        out_of_reach: seen.out_of_reach,
        notes: seen.warnings().map(|note| note.message.clone()).collect(),
    }
}

/// Adds each finding to the row of its file. Returns the others.
fn findings(notes: Vec<Note>, rows: &mut BTreeMap<Key, SourceRow>) -> Vec<SourceFinding> {
    let mut others = Vec::new();
    for note in notes {
        let path = match &note.source {
            Some(Source::File { path, .. }) => Some(path.to_string()),
            _ => None,
        };
        let finding = SourceFinding {
            code: note.code.word(),
            severity: note.severity.word(),
            line: note.source.as_ref().and_then(Source::place).map(|place| place.line),
            message: note.message,
            hint: note.hint,
        };
        let row = path.and_then(|path| rows.values_mut().find(|row| row.path.as_deref() == Some(&path)));
        match row {
            Some(row) => row.findings.push(finding),
            None => others.push(finding),
        }
    }
    others
}

/// Returns the time of the last change of a file that a build has read, in milliseconds since 1970.
fn changed_at(path: &str) -> Option<i64> {
    let time = std::fs::symlink_metadata(path).ok()?.modified().ok()?;
    i64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()
}
