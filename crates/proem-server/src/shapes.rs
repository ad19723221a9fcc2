//! The shapes of requests and answers. Their doc comments are the descriptions in `openapi.json`.

pub(crate) mod comparison;
mod editor;
mod epoch;
pub(crate) mod insight;
mod preview;

pub(crate) use editor::{
    EditorAnswer, FilesAnswer, LimitsShape, ModelShape, ModelsShape, ProfileShape, ValueShape, ValuesAnswer,
};
pub(crate) use epoch::EpochAnswer;
pub(crate) use preview::PreviewAnswer;

use std::collections::BTreeMap;

use proem::PendingKind;
use proem::conversation::RecordedCall;
use proem::store::traffic::ListedConversation;
use proem::traffic::report::ReportNote;
use proem::turn_shape::{EpochChangeShape, OwnedNoteShape};
use proem_core::carrier::Carrier;
use proem_core::frozen::Body;
use proem_store::{Child, EpochHead, NoticePrice, Parent, Plan, RebuildPrice, TemplateHead, TemplateVersion};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

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

/// Returns the texts of all carriers.
pub(crate) fn carriers(body: &Body) -> BTreeMap<&'static str, String> {
    body.carriers().map(|(carrier, text)| (carrier.word(), text.to_owned())).collect()
}

/// An epoch.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct EpochShape {
    /// The number, from 1.
    pub(crate) epoch: u64,
    /// The reason for which it was opened.
    pub(crate) reason: String,
    /// The SHA-256 of the prefix, in hexadecimal.
    pub(crate) digest: String,
    /// The digest of the prefix and the tools, on which a provider's cache depends.
    pub(crate) fingerprint: String,
    /// The profile.
    pub(crate) profile: String,
    /// The version of proem that built it.
    pub(crate) engine: String,
    /// The working directory.
    pub(crate) cwd: String,
    /// The model, if one was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    /// The time of its opening, in milliseconds since 1970.
    pub(crate) opened_at: i64,
}

impl From<EpochHead> for EpochShape {
    fn from(head: EpochHead) -> Self {
        let EpochHead { number, reason, digest, fingerprint, profile, engine, cwd, model, opened_at, .. } =
            head;
        Self { epoch: number, reason, digest, fingerprint, profile, engine, cwd, model, opened_at }
    }
}

/// A conversation: its frozen prompt and its epochs.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ConversationAnswer {
    /// The id of the conversation.
    pub(crate) conversation: String,
    /// The number of the current epoch.
    pub(crate) epoch: u64,
    /// The frozen text of each carrier.
    pub(crate) carriers: BTreeMap<&'static str, String>,
    /// All epochs, oldest first.
    pub(crate) epochs: Vec<EpochShape>,
    /// The conversations from which it began, the nearest one first.
    pub(crate) parents: Vec<Parent>,
    /// The conversations that began from it, the oldest first.
    pub(crate) children: Vec<Child>,
    /// Notes about the frozen prompt.
    pub(crate) notes: Vec<OwnedNoteShape>,
}

/// A page of conversations; without another order, the one with the newest epoch is first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ConversationsAnswer {
    /// The conversations.
    pub(crate) conversations: Vec<ConversationShape>,
    /// The value of `after` for the next page; missing on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
    /// The number of conversations on all pages.
    pub(crate) total: u64,
}

/// A conversation in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ConversationShape {
    /// The id of the conversation.
    pub(crate) conversation: String,
    /// `proem`, or `observed` if only its calls are known.
    pub(crate) kind: &'static str,
    /// The number of its current epoch; 0 for an observed conversation.
    pub(crate) epoch: u64,
    /// The reason for which the epoch was opened; empty for an observed conversation.
    pub(crate) reason: String,
    /// The profile.
    pub(crate) profile: String,
    /// The working directory.
    pub(crate) cwd: String,
    /// The agent that made the calls, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<String>,
    /// The model of the last call, or the one that was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    /// The time of the first turn or call, in milliseconds since 1970.
    pub(crate) began_at: i64,
    /// The time at which the current epoch was opened, in milliseconds since 1970; that of the last call of an observed
    /// conversation.
    pub(crate) opened_at: i64,
    /// The time of the last epoch or call, in milliseconds since 1970.
    pub(crate) active_at: i64,
    /// The number of its calls.
    pub(crate) calls: u64,
    /// Tokens read from the cache.
    pub(crate) read: u64,
    /// All input tokens.
    pub(crate) input: u64,
    /// The share of the input that was read from the cache, from 0 to 1; missing without input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) read_ratio: Option<f64>,
    /// The price of its calls.
    pub(crate) usd: f64,
    /// The price of what was lost.
    pub(crate) lost_usd: f64,
    /// The last miss.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_miss: Option<MissShape>,
}

/// The last miss of a conversation.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct MissShape {
    /// The id of the call.
    pub(crate) id: String,
    /// The time, in RFC 3339.
    pub(crate) at: String,
    /// The verdict.
    pub(crate) verdict: String,
    /// The kind of the owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) owner: Option<String>,
    /// The price of what was lost.
    pub(crate) lost_usd: f64,
}

impl From<ListedConversation> for ConversationShape {
    #[expect(clippy::cast_precision_loss, reason = "a share needs no more than 52 bits")]
    fn from(one: ListedConversation) -> Self {
        let has_input = one.input > 0;
        Self {
            conversation: one.conversation,
            kind: if one.is_observed { "observed" } else { "proem" },
            epoch: one.epoch,
            reason: one.reason,
            profile: one.profile,
            cwd: one.cwd,
            agent: one.agent,
            model: one.model,
            began_at: one.began_at,
            opened_at: one.opened_at,
            active_at: one.active_at,
            calls: one.calls,
            read: one.read,
            input: one.input,
            read_ratio: has_input.then(|| one.read as f64 / one.input as f64),
            usd: one.usd,
            lost_usd: one.lost_usd,
            last_miss: one.last_miss.and_then(|miss| serde_json::from_str(&miss).ok()),
        }
    }
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

/// The result of a rebuild, or the plan of one.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ChangeAnswer {
    #[serde(flatten)]
    pub(crate) change: EpochChangeShape,
    /// The changes that a rebuild would make.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) plan: Option<PlanShape>,
    /// The first byte that would differ, with its source, the cause of the change and its cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<proem::compare::ComparisonShape<'static>>")]
    pub(crate) comparison: Option<Value>,
    #[serde(flatten)]
    pub(crate) prices: Option<PricesShape>,
}

/// The prices in a plan.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PricesShape {
    /// The notice that the next turn would append, and its price; `null` if there is nothing to announce.
    pub(crate) notice: Option<NoticePrice>,
    /// The price of the rebuild; `null` if it would change nothing.
    pub(crate) rebuild: Option<RebuildPrice>,
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

/// The changes that a rebuild would make.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PlanShape {
    /// True if the profile allows the rebuild.
    pub(crate) allowed: bool,
    /// True if the prompt would change.
    pub(crate) changed: bool,
    /// True if the tools would change.
    pub(crate) tools_changed: bool,
    /// The sections that would change.
    pub(crate) sections: Vec<PlanSection>,
    /// The first byte of the prefix that would differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) first_byte: Option<usize>,
    /// The estimated number of tokens of the prefix that the cache loses, at 2.7 bytes per token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) lost_tokens_estimate: Option<usize>,
    /// The carriers that would change, with both texts.
    pub(crate) carriers: Vec<CarrierDiff>,
}

/// A section that would change.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PlanSection {
    /// The section's name in the profile.
    pub(crate) id: String,
    /// The carrier.
    pub(crate) carrier: &'static str,
    /// `changed`, `added` or `removed`.
    pub(crate) kind: &'static str,
}

impl From<&Plan> for PlanShape {
    fn from(plan: &Plan) -> Self {
        let kind = |kind: PendingKind| match kind {
            PendingKind::Changed => "changed",
            PendingKind::Added => "added",
            PendingKind::Removed => "removed",
        };
        let sections = plan.pending.sections.iter().map(|section| PlanSection {
            id: section.id.clone(),
            carrier: section.carrier.word(),
            kind: kind(section.kind),
        });
        Self {
            allowed: plan.is_allowed,
            changed: !plan.pending.is_empty(),
            tools_changed: plan.pending.tools,
            sections: sections.collect(),
            first_byte: plan.cost().map(|change| change.first_byte),
            lost_tokens_estimate: plan.cost().map(|change| change.lost_tokens()),
            carriers: difference(plan.kept.frozen.body(), plan.next.body()),
        }
    }
}

/// The difference between two epochs.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DiffAnswer {
    /// The number of the earlier epoch.
    pub(crate) from: u64,
    /// The number of the later epoch.
    pub(crate) to: u64,
    /// The carriers that differ.
    pub(crate) carriers: Vec<CarrierDiff>,
    /// The first byte that differs, with its source, the cause of the change and its cost.
    #[schemars(with = "proem::compare::ComparisonShape<'static>")]
    pub(crate) comparison: Value,
}

/// A carrier that differs.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CarrierDiff {
    /// The carrier.
    pub(crate) carrier: &'static str,
    /// The first byte that differs.
    pub(crate) first_byte: usize,
    /// The earlier text.
    pub(crate) before: String,
    /// The later text.
    pub(crate) after: String,
}

/// Returns the carriers in which two prompts differ.
pub(crate) fn difference(before: &Body, after: &Body) -> Vec<CarrierDiff> {
    let differing = Carrier::ALL.into_iter().filter_map(|carrier| {
        let (before, after) =
            (before.text(carrier).unwrap_or_default(), after.text(carrier).unwrap_or_default());
        (before != after).then(|| CarrierDiff {
            carrier: carrier.word(),
            first_byte: proem_core::cache_loss::between(before, after).first_byte,
            before: before.to_owned(),
            after: after.to_owned(),
        })
    });
    differing.collect()
}
