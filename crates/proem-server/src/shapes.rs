//! The shapes of requests and answers. Their doc comments are the descriptions in `openapi.json`.

mod editor;
pub(crate) mod insight;
mod preview;

pub(crate) use editor::{
    EditorAnswer, FilesAnswer, LimitsShape, ModelShape, ModelsShape, ProfileShape, ValueShape, ValuesAnswer,
};
pub(crate) use preview::PreviewAnswer;
pub(crate) use proem_api::{ChangeAnswer, ConversationAnswer, ConversationsAnswer, DiffAnswer, EpochAnswer};

use proem::conversation::RecordedCall;
use proem::traffic::report::ReportNote;
use proem_store::{TemplateHead, TemplateVersion};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A new version of the template.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TemplateBody {
    /// The text.
    pub(crate) template: String,
    /// The author's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) author: Option<String>,
    /// The version that it replaces. If the current version is another one, the request is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expected_version: Option<u64>,
}

/// The template and its version.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TemplateAnswer {
    /// The text.
    pub(crate) template: String,
    /// The version; missing for the base of the server's profile, which is used while none is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<u64>,
    /// True if new conversations of the server's profile begin with it; false for a stored template that the profile
    /// does not take.
    pub(crate) used: bool,
}

/// Versions of the template, newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct VersionsAnswer {
    /// The versions.
    pub(crate) versions: Vec<VersionShape>,
}

/// One version of the template.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct VersionShape {
    /// The version, from 1.
    pub(crate) version: u64,
    /// The text; missing with `text=false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) template: Option<String>,
    /// The length of the text in bytes.
    pub(crate) bytes: usize,
    /// The author's name, as the client sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) author: Option<String>,
    /// The time of writing, in milliseconds since 1970.
    pub(crate) written_at: i64,
}

impl From<TemplateVersion> for VersionShape {
    fn from(version: TemplateVersion) -> Self {
        let TemplateVersion { version, text, author, written_at } = version;
        Self { version, bytes: text.len(), template: Some(text), author, written_at }
    }
}

impl From<TemplateHead> for VersionShape {
    fn from(head: TemplateHead) -> Self {
        let TemplateHead { version, bytes, author, written_at } = head;
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        Self { version, bytes, template: None, author, written_at }
    }
}

/// The variables that templates may use.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct VariablesAnswer {
    /// The variables.
    pub(crate) variables: Vec<VariableShape>,
}

/// A variable.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct VariableShape {
    /// The part of its key before the colon.
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    /// The part of its key after the colon.
    pub(crate) name: &'static str,
    /// A description of its value.
    pub(crate) description: &'static str,
    /// True if any name is valid.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    pub(crate) dynamic: bool,
    /// The time for which its value stays the same.
    pub(crate) stability: &'static str,
}

/// A workspace that was sent.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct WorkspaceAnswer {
    /// The digest, for the field `workspace` of requests.
    pub(crate) digest: String,
    /// The number of its files.
    pub(crate) files: usize,
    /// The bytes of its files.
    pub(crate) bytes: usize,
}

/// The calls of a conversation.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CallsAnswer {
    /// The calls, oldest first.
    pub(crate) calls: Vec<proem::evidence::JudgedCall>,
}

/// Calls that were sent, with their verdicts.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RecordedAnswer {
    /// The version of this shape.
    pub(crate) version: u32,
    /// The number of calls that the store did not have.
    pub(crate) added: usize,
    /// The calls, in the order in which they were sent.
    pub(crate) calls: Vec<RecordedCall>,
    /// Everything that was left out.
    pub(crate) notes: Vec<ReportNote>,
}

/// A page of calls, the newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CallsPage {
    /// The version of this shape.
    pub(crate) version: u32,
    /// The calls.
    pub(crate) calls: Vec<RecordedCall>,
    /// The value of `after` for the next page; missing on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}
