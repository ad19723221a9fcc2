//! The shapes of answers about conversations. Their doc comments are the descriptions in `openapi.json`.

use std::collections::BTreeMap;
use std::sync::Arc;

use proem::conversation::Branches;
use proem::store::traffic::{ListPage, ListedConversation};
use proem::turn_shape::{EpochChangeShape, OwnedNoteShape};
use proem::{Caller, Error, PendingKind};
use proem_core::carrier::Carrier;
use proem_core::frozen::Body;
use proem_store::{
    Changed, Child, ConversationError, Conversations, EpochHead, LoadedEpoch, NoticePrice, Parent, Plan,
    RebuildPrice,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::comparison::{self, ToolDiff};

/// Returns the texts of all carriers.
#[must_use]
pub fn carriers(body: &Body) -> BTreeMap<&'static str, String> {
    body.carriers().map(|(carrier, text)| (carrier.word(), text.to_owned())).collect()
}

/// An epoch.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EpochShape {
    /// The number, from 1.
    pub epoch: u64,
    /// The reason for which it was opened.
    pub reason: String,
    /// The SHA-256 of the prefix, in hexadecimal.
    pub digest: String,
    /// The digest of the prefix and the tools, on which a provider's cache depends.
    pub fingerprint: String,
    /// The profile.
    pub profile: String,
    /// The version of proem that built it.
    pub engine: String,
    /// The working directory.
    pub cwd: String,
    /// The model, if one was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The time of its opening, in milliseconds since 1970.
    pub opened_at: i64,
    /// The version of the stored template that it begins with, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template_version: Option<u64>,
}

impl From<EpochHead> for EpochShape {
    fn from(head: EpochHead) -> Self {
        let EpochHead { number, reason, digest, fingerprint, profile, engine, cwd, model, .. } = head;
        let EpochHead { opened_at, template_version, .. } = head;
        Self {
            epoch: number,
            reason,
            digest,
            fingerprint,
            profile,
            engine,
            cwd,
            model,
            opened_at,
            template_version,
        }
    }
}

/// A conversation: its frozen prompt and its epochs.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ConversationAnswer {
    /// The id of the conversation.
    pub conversation: String,
    /// The number of the current epoch.
    pub epoch: u64,
    /// The frozen text of each carrier.
    pub carriers: BTreeMap<&'static str, String>,
    /// All epochs, oldest first.
    pub epochs: Vec<EpochShape>,
    /// The conversations from which it began, the nearest one first.
    pub parents: Vec<Parent>,
    /// The conversations that began from it, the oldest first.
    pub children: Vec<Child>,
    /// Notes about the frozen prompt.
    pub notes: Vec<OwnedNoteShape>,
}

impl ConversationAnswer {
    /// Shows a conversation: its current epoch, the heads of all of them, and its relatives.
    #[must_use]
    pub fn new(kept: &LoadedEpoch, epochs: Vec<EpochHead>, branches: Branches) -> Self {
        Self {
            conversation: kept.head.conversation.clone(),
            epoch: kept.head.number,
            carriers: carriers(kept.frozen.body()),
            epochs: epochs.into_iter().map(EpochShape::from).collect(),
            parents: branches.parents,
            children: branches.children,
            notes: kept.frozen.notes().iter().map(OwnedNoteShape::from).collect(),
        }
    }
}

/// The result of a rebuild, or the plan of one.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ChangeAnswer {
    #[serde(flatten)]
    change: EpochChangeShape,
    /// The changes that a rebuild would make.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanShape>,
    /// The first byte that would differ, with its source, the cause of the change and its cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<proem::compare::ComparisonShape<'static>>")]
    pub comparison: Option<Value>,
    #[serde(flatten)]
    prices: Option<PricesShape>,
}

/// The prices in a plan.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PricesShape {
    /// The notice that the next turn would append, and its price; `null` if there is nothing to announce.
    pub notice: Option<NoticePrice>,
    /// The price of the rebuild; `null` if it would change nothing.
    pub rebuild: Option<RebuildPrice>,
}

impl From<&Changed> for ChangeAnswer {
    fn from(changed: &Changed) -> Self {
        Self { change: changed.shape(), plan: None, comparison: None, prices: None }
    }
}

impl ChangeAnswer {
    /// Makes the answer to a plan, which changes nothing.
    pub fn planned(
        conversations: &Conversations,
        id: &str,
        plan: &Plan,
        caller: Caller,
    ) -> Result<Self, ConversationError> {
        let epoch = Arc::clone(&plan.kept);
        let pending = conversations.pending(id)?;
        let changed = Changed { epoch, is_opened: false, pending, notes: Vec::new() };
        let stored = match plan.template_version {
            Some(version) => conversations.store().template_version(version)?,
            None => None,
        };
        let compared = comparison::compare_plan(plan, stored.and_then(|stored| stored.author), caller)?;
        let prices = Some(PricesShape { notice: plan.notice.clone(), rebuild: plan.rebuild.clone() });
        let plan = Some(PlanShape::new(plan, compared.tools, compared.is_volatile));
        Ok(Self { plan, comparison: Some(compared.shape), prices, ..Self::from(&changed) })
    }
}

/// The changes that a rebuild would make.
#[derive(Debug, Serialize, JsonSchema)]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own in a published shape")]
pub struct PlanShape {
    /// True if the profile allows the rebuild.
    pub allowed: bool,
    /// True if the prompt would change.
    pub changed: bool,
    /// True if only values would change that change by themselves, as clocks do: nothing was edited.
    pub volatile_only: bool,
    /// True if the tools would change.
    pub tools_changed: bool,
    /// The tools that would change, with both definitions.
    pub tools: Vec<ToolDiff>,
    /// The sections that would change.
    pub sections: Vec<PlanSection>,
    /// The first byte of the prefix that would differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_byte: Option<usize>,
    /// The estimated number of tokens of the prefix that the cache loses, at 2.7 bytes per token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_tokens_estimate: Option<usize>,
    /// The carriers that would change, with both texts.
    pub carriers: Vec<CarrierDiff>,
}

/// A section that would change.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PlanSection {
    /// The section's name in the profile.
    pub id: String,
    /// The carrier.
    pub carrier: &'static str,
    /// `changed`, `added` or `removed`.
    pub kind: &'static str,
}

impl PlanShape {
    /// Describes a plan, with its tools and the kind of its differences.
    fn new(plan: &Plan, tools: Vec<ToolDiff>, is_volatile: bool) -> Self {
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
            volatile_only: is_volatile && !plan.pending.is_empty(),
            tools_changed: plan.pending.tools,
            tools,
            sections: sections.collect(),
            first_byte: plan.cost().map(|change| change.first_byte),
            lost_tokens_estimate: plan.cost().map(|change| change.lost_tokens()),
            carriers: difference(plan.kept.frozen.body(), plan.next.body()),
        }
    }
}

/// The difference between two epochs.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DiffAnswer {
    /// The number of the earlier epoch.
    pub from: u64,
    /// The number of the later epoch.
    pub to: u64,
    /// The carriers that differ.
    pub carriers: Vec<CarrierDiff>,
    /// The tools that differ.
    pub tools: Vec<ToolDiff>,
    /// The first byte that differs, with its source, the cause of the change and its cost.
    #[schemars(with = "proem::compare::ComparisonShape<'static>")]
    pub comparison: Value,
}

impl DiffAnswer {
    /// Compares two epochs of a conversation.
    pub fn new(before: &LoadedEpoch, after: &LoadedEpoch, caller: Caller) -> Result<Self, Error> {
        let sides = (comparison::snapshot(before), comparison::snapshot(after));
        let compared = comparison::compare_sides(&sides.0, &sides.1, caller)?;
        Ok(Self {
            from: before.head.number,
            to: after.head.number,
            carriers: difference(before.frozen.body(), after.frozen.body()),
            tools: compared.tools,
            comparison: compared.shape,
        })
    }
}

/// A carrier that differs.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CarrierDiff {
    /// The carrier.
    pub carrier: &'static str,
    /// The first byte that differs.
    pub first_byte: usize,
    /// The earlier text.
    pub before: String,
    /// The later text.
    pub after: String,
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

/// A page of conversations; without another order, the one with the newest epoch is first.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ConversationsAnswer {
    /// The conversations.
    pub conversations: Vec<ConversationShape>,
    /// The value of `after` for the next page; missing on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// The number of conversations on all pages.
    pub total: u64,
}

/// A conversation in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ConversationShape {
    /// The id of the conversation.
    pub conversation: String,
    /// `proem`, or `observed` if only its calls are known.
    pub kind: &'static str,
    /// The number of its current epoch; 0 for an observed conversation.
    pub epoch: u64,
    /// The reason for which the epoch was opened; empty for an observed conversation.
    pub reason: String,
    /// The profile.
    pub profile: String,
    /// The working directory.
    pub cwd: String,
    /// The agent that made the calls, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The model of the last call, or the one that was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The time of the first turn or call, in milliseconds since 1970.
    pub began_at: i64,
    /// The time at which the current epoch was opened, in milliseconds since 1970; that of the last call of an observed
    /// conversation.
    pub opened_at: i64,
    /// The time of the last epoch or call, in milliseconds since 1970.
    pub active_at: i64,
    /// The number of its calls.
    pub calls: u64,
    /// Tokens read from the cache.
    pub read: u64,
    /// All input tokens.
    pub input: u64,
    /// The share of the input that was read from the cache, from 0 to 1; missing without input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_ratio: Option<f64>,
    /// The price of its calls.
    pub usd: f64,
    /// The price of what was lost.
    pub lost_usd: f64,
    /// The last miss.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_miss: Option<MissShape>,
}

/// The last miss of a conversation.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct MissShape {
    /// The id of the call.
    pub id: String,
    /// The time, in RFC 3339.
    pub at: String,
    /// The verdict.
    pub verdict: String,
    /// The kind of the owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The price of what was lost.
    pub lost_usd: f64,
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

impl From<ListPage> for ConversationsAnswer {
    fn from(page: ListPage) -> Self {
        let conversations = page.items.into_iter().map(ConversationShape::from).collect();
        Self { conversations, next: page.next, total: page.total }
    }
}
