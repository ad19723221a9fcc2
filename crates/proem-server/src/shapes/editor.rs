//! What an editor asks besides prompts: where it is, what there is to choose, and what variables hold.

use proem::VariableReport;
use proem::directory_listing::{Listing, ListingEntry};
use proem_core::text::clip;
use schemars::JsonSchema;
use serde::Serialize;

use super::OwnedNote;

/// Longest value of a variable in an answer, in bytes.
const VALUE_BYTES_MAX: usize = 4096;

/// What an editor begins with.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct EditorAnswer {
    /// The directories that requests may work in.
    pub(crate) workspaces: Vec<String>,
    /// The profiles that requests may name.
    pub(crate) profiles: Vec<ProfileShape>,
    /// The profile of a request that names none.
    pub(crate) profile: String,
    /// The models that rules and prices are known of.
    pub(crate) models: ModelsShape,
    /// The providers that payloads can be made for.
    pub(crate) providers: Vec<&'static str>,
    /// The built-in template, which counts while none is stored.
    pub(crate) built_in: &'static str,
    /// The version of proem.
    pub(crate) engine: &'static str,
    /// What is too much.
    pub(crate) limits: LimitsShape,
}

/// A profile.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ProfileShape {
    /// The name.
    pub(crate) name: String,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    /// The syntax of its template; missing when it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) syntax: Option<&'static str>,
}

/// The models.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ModelsShape {
    /// The day of rules and prices.
    pub(crate) as_of: String,
    /// The models.
    pub(crate) models: Vec<ModelShape>,
}

/// A model.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ModelShape {
    /// The name.
    pub(crate) name: String,
    /// Who makes it.
    pub(crate) vendor: String,
}

/// What is too much.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LimitsShape {
    /// The longest template, in bytes.
    pub(crate) template_bytes: usize,
}

/// What lies in a directory.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FilesAnswer {
    /// The directory.
    pub(crate) dir: String,
    /// Directories first, then files, each by name.
    pub(crate) entries: Vec<EntryShape>,
    /// Whether there is more than is listed.
    pub(crate) more: bool,
}

/// A file or a directory.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct EntryShape {
    /// The name.
    pub(crate) name: String,
    /// `file` or `directory`.
    pub(crate) kind: &'static str,
    /// A file's length.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes: Option<u64>,
}

impl FilesAnswer {
    pub(crate) fn of(dir: String, listing: Listing) -> Self {
        let entry = |ListingEntry { is_file, name, bytes }| {
            let kind = if is_file { "file" } else { "directory" };
            EntryShape { name, kind, bytes }
        };
        Self { dir, entries: listing.entries.into_iter().map(entry).collect(), more: listing.is_cut }
    }
}

/// The variables with their values here.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ValuesAnswer {
    /// The variables.
    pub(crate) variables: Vec<ValueShape>,
    /// What a reader should know.
    pub(crate) notes: Vec<OwnedNote>,
}

/// A variable with its value here.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ValueShape {
    /// The word before the colon.
    #[serde(rename = "type")]
    kind: String,
    /// What follows it.
    name: String,
    /// What it is.
    description: String,
    /// Whether any name is valid.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    dynamic: bool,
    /// How long its value stays the same.
    stability: &'static str,
    /// Its value, of which only the first 4,096 bytes are shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    /// The length of the whole value in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<usize>,
    /// The length of the whole value in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<usize>,
    /// Why it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    absent: Option<String>,
}

impl ValueShape {
    /// Shows a variable, with tokens as `count` counts them.
    pub(crate) fn of(report: &VariableReport, count: impl Fn(&str) -> usize) -> Self {
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
