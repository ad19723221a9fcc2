//! Answers to the web editor: choices, files, and values of variables.

use std::path::Path;

use proem::VariableReport;
use proem::directory_listing::{FoundEntry, Listing, ListingEntry};
use proem_core::text::clip;
use schemars::JsonSchema;
use serde::Serialize;

use proem::turn_shape::OwnedNoteShape;

/// Maximum length of a variable's value in an answer, in bytes.
const VALUE_BYTES_MAX: usize = 4096;

/// The choices that the editor offers.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct EditorAnswer {
    /// The directories that requests may work in.
    pub(crate) workspaces: Vec<String>,
    /// The profiles that requests may name.
    pub(crate) profiles: Vec<ProfileShape>,
    /// The profile of a request that names none.
    pub(crate) profile: String,
    /// The models with known cache rules and prices.
    pub(crate) models: ModelsShape,
    /// The providers for which payloads can be built.
    pub(crate) providers: Vec<&'static str>,
    /// The base of that profile, which is used while no template is stored.
    pub(crate) built_in: String,
    /// The version of proem.
    pub(crate) engine: &'static str,
    /// True if the server asks for a token.
    pub(crate) has_token: bool,
    /// The limits on input.
    pub(crate) limits: LimitsShape,
}

/// A profile.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ProfileShape {
    /// The name.
    pub(crate) name: String,
    /// Its purpose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    /// The syntax of its template; missing if it has no template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) syntax: Option<&'static str>,
    /// True if the stored template is the base of its new conversations.
    pub(crate) stored_template: bool,
}

/// The models.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ModelsShape {
    /// The date of the rules and prices.
    pub(crate) as_of: String,
    /// The models.
    pub(crate) models: Vec<ModelShape>,
}

/// A model.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ModelShape {
    /// The name.
    pub(crate) name: String,
    /// The company that makes it.
    pub(crate) vendor: String,
}

/// The limits on input.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LimitsShape {
    /// The maximum length of a template, in bytes.
    pub(crate) template_bytes: usize,
}

/// The entries of a directory.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FilesAnswer {
    /// The directory.
    pub(crate) dir: String,
    /// Directories first, then files, each sorted by name.
    pub(crate) entries: Vec<EntryShape>,
    /// True if entries are left out.
    pub(crate) more: bool,
}

/// A file or a directory.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct EntryShape {
    /// The name.
    pub(crate) name: String,
    /// `file` or `directory`.
    pub(crate) kind: &'static str,
    /// The length of a file, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes: Option<u64>,
    /// The whole path, in the answer to a search; `name` is then the path below the directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<String>,
}

impl EntryShape {
    fn new(entry: ListingEntry) -> Self {
        let kind = if entry.is_file { "file" } else { "directory" };
        Self { name: entry.name, kind, bytes: entry.bytes, path: None }
    }
}

impl FilesAnswer {
    pub(crate) fn new(dir: String, listing: Listing) -> Self {
        Self {
            dir,
            entries: listing.entries.into_iter().map(EntryShape::new).collect(),
            more: listing.is_cut,
        }
    }

    /// Returns an answer without entries.
    pub(crate) const fn empty(dir: String) -> Self {
        Self { dir, entries: Vec::new(), more: false }
    }

    /// Adds what a search found in a folder.
    pub(crate) fn extend(&mut self, folder: &Path, found: Vec<FoundEntry>, is_cut: bool) {
        self.more |= is_cut;
        self.entries.extend(found.into_iter().map(|FoundEntry { below, entry }| {
            let path = Some(folder.join(&below).display().to_string());
            EntryShape { path, ..EntryShape::new(ListingEntry { name: below, ..entry }) }
        }));
    }

    /// Keeps the first `most` entries.
    pub(crate) fn cut(&mut self, most: usize) {
        self.more |= self.entries.len() > most;
        self.entries.truncate(most);
    }
}

/// The variables, with their values in a working directory.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ValuesAnswer {
    /// The variables.
    pub(crate) variables: Vec<ValueShape>,
    /// Notes about the values.
    pub(crate) notes: Vec<OwnedNoteShape>,
}

/// A variable, with its value in a working directory.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ValueShape {
    /// The part of its key before the colon.
    #[serde(rename = "type")]
    kind: String,
    /// The part of its key after the colon.
    name: String,
    /// A description of its value.
    description: String,
    /// True if any name is valid.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    dynamic: bool,
    /// The time for which its value stays the same.
    stability: &'static str,
    /// The first 4,096 bytes of its value.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    /// The length of the whole value in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<usize>,
    /// The length of the whole value in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<usize>,
    /// The reason for which it has no value.
    #[serde(skip_serializing_if = "Option::is_none")]
    absent: Option<String>,
}

impl ValueShape {
    /// Describes a variable. `count` counts the tokens of its value.
    pub(crate) fn new(report: &VariableReport, count: impl Fn(&str) -> usize) -> Self {
        let (kind, name) = proem_core::variable::split(&report.key);
        let found = report.fact.as_ref().map(|fact| fact.value.as_ref());
        let value = found.and_then(Result::ok);
        Self {
            kind: kind.to_owned(),
            name: name.to_owned(),
            description: report.description.clone(),
            dynamic: report.dynamic,
            stability: report.stability.word(),
            value: value.map(|value| clip(value, VALUE_BYTES_MAX).to_owned()),
            bytes: value.map(String::len),
            tokens: value.map(|value| count(value)),
            absent: found.and_then(Result::err).map(ToString::to_string),
        }
    }
}
