//! The shapes of requests and answers. Their doc comments are the descriptions in `openapi.json`.

mod editor;
pub(crate) mod insight;
mod preview;

pub(crate) use editor::{
    EditorAnswer, FilesAnswer, LimitsShape, ModelShape, ModelsShape, ProfileShape, ValueShape, ValuesAnswer,
};
pub(crate) use preview::PreviewAnswer;
pub(crate) use proem_api::{ChangeAnswer, ConversationAnswer, ConversationsAnswer, DiffAnswer, EpochAnswer};

use std::collections::BTreeMap;

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
    /// The author's words about the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    /// `draft` for a version that new conversations do not begin with; `live`, the default, for one that they do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) label: Option<Label>,
    /// The version that it replaces. If the current version is another one, the request is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expected_version: Option<u64>,
}

/// The use of a version of the template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Label {
    /// New conversations begin with it.
    Live,
    /// It is kept, and not used.
    Draft,
}

/// A label for a version of the template.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LabelBody {
    /// The label.
    pub(crate) label: Label,
}

/// The template and its version.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TemplateAnswer {
    /// The text.
    pub(crate) template: String,
    /// The version; missing for the base of the server's profile, which is used while none is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<u64>,
    /// True if new conversations of the server's profile begin with it; false for a draft, and for a stored template that
    /// the profile does not take.
    pub(crate) used: bool,
    /// `draft` for a draft; missing otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) label: Option<Label>,
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
    /// The author's words about the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    /// `live` for the version that new conversations begin with, `draft` for a draft; missing for an earlier version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) label: Option<Label>,
    /// The number of conversations with an epoch that begins with this version.
    pub(crate) conversations: u64,
}

/// The label of each version, and the number of conversations that use it.
#[derive(Debug, Default)]
pub(crate) struct VersionUse {
    /// The version that new conversations begin with.
    pub(crate) live: Option<u64>,
    /// The number of conversations by version.
    pub(crate) conversations: BTreeMap<u64, u64>,
}

impl VersionUse {
    fn label(&self, version: u64, is_draft: bool) -> Option<Label> {
        if is_draft { Some(Label::Draft) } else { (self.live == Some(version)).then_some(Label::Live) }
    }

    /// Puts a version into its shape.
    pub(crate) fn version(&self, version: TemplateVersion) -> VersionShape {
        let TemplateVersion { version, text, author, written_at, message, is_draft } = version;
        VersionShape {
            version,
            bytes: text.len(),
            template: Some(text),
            author,
            written_at,
            message,
            label: self.label(version, is_draft),
            conversations: self.conversations.get(&version).copied().unwrap_or(0),
        }
    }

    /// Puts a version without its text into its shape.
    pub(crate) fn head(&self, head: TemplateHead) -> VersionShape {
        let TemplateHead { version, bytes, author, written_at, message, is_draft } = head;
        VersionShape {
            version,
            bytes: usize::try_from(bytes).unwrap_or(usize::MAX),
            template: None,
            author,
            written_at,
            message,
            label: self.label(version, is_draft),
            conversations: self.conversations.get(&version).copied().unwrap_or(0),
        }
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
