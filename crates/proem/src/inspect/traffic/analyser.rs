//! The analysis of a sequence of calls, one after the other, in bounded memory.

use std::collections::{BTreeMap, VecDeque};

use jiff::Timestamp;
use proem_core::limit::{TRAFFIC_BODIES_BYTES_MAX, TRAFFIC_THREADS_MAX};

use super::call::{Call, CallUsage, OwnerKind, Purpose, Wire};
use super::chain::{Chain, ShortDigest};
use super::judge::{Case, Cause, JudgeRules, advice, money};
use super::kept::KeptChain;
use super::rules::{CacheFacts, TrafficRules};
use super::thread::Thread;
use super::verdict::{CacheVerdict, CallVerdict};
use crate::costs::simulate::rules;
use crate::deliver::Provider;
use crate::settings::models::{CacheRules, Model, Models};

/// The place of a call among the others.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ThreadKey {
    conversation: String,
    thread: String,
    /// True for titles and probes, which have no part in the conversation.
    is_aside: bool,
}

/// A call that was read and not judged yet.
#[derive(Debug)]
pub struct PreparedCall {
    call: Call,
    model: String,
    provider: String,
    cache: CacheRules,
    facts: CacheFacts,
    chain: Option<Chain>,
    /// The id of its conversation, if none is named and none continues.
    name_of_unnamed: Option<String>,
}

impl PreparedCall {
    /// Returns the call.
    #[must_use]
    pub const fn call(&self) -> &Call {
        &self.call
    }

    /// Names the conversation, or the parent, or the id of a conversation that nothing names.
    #[must_use]
    pub fn renamed(mut self, conversation: Option<String>, parent: Option<String>, unnamed: String) -> Self {
        (self.call.conversation, self.call.parent) = (conversation, parent);
        self.name_of_unnamed = Some(unnamed);
        self
    }

    /// Returns the digest of the first message, in hexadecimal digits.
    #[must_use]
    pub fn first_message(&self) -> Option<String> {
        Some(super::kept::hex(&self.chain.as_ref()?.messages().next()?.digest))
    }
}

/// Judges calls in the order in which they were sent.
#[derive(Debug)]
pub struct Analyser {
    models: Models,
    threads: BTreeMap<ThreadKey, Thread>,
    /// The threads with a body, oldest first, and the size of it.
    bodies: VecDeque<(ThreadKey, u64, usize)>,
    body_bytes: usize,
    /// The conversations without a name, by their first message.
    unnamed: BTreeMap<ShortDigest, Vec<String>>,
    unnamed_count: usize,
    used: u64,
}

impl Analyser {
    /// Starts with no calls.
    #[must_use]
    pub const fn new(models: Models) -> Self {
        Self {
            models,
            threads: BTreeMap::new(),
            bodies: VecDeque::new(),
            body_bytes: 0,
            unnamed: BTreeMap::new(),
            unnamed_count: 0,
            used: 0,
        }
    }

    /// Judges one call, and keeps what later ones are compared with.
    pub fn take(&mut self, call: Call) -> CallVerdict {
        let prepared = self.prepare(call);
        self.take_prepared(prepared).0
    }

    /// Reads a call: its format, its model and its chain.
    #[must_use]
    pub fn prepare(&self, mut call: Call) -> PreparedCall {
        read_headers(&mut call);
        let named = call.model.clone();
        let model = named.or_else(|| body_model(&call)).unwrap_or_default();
        let (provider, cache) = self.cache_of(&call, &model);
        let facts = TrafficRules::built_in().cache(&provider);
        let chain = Chain::of_call(&call, &facts);
        PreparedCall { call, model, provider, cache, facts, chain, name_of_unnamed: None }
    }

    /// Judges a call that was prepared. Returns the chain as a store keeps it, too; `None` for a call without a request.
    pub fn take_prepared(&mut self, prepared: PreparedCall) -> (CallVerdict, Option<KeptChain>) {
        let PreparedCall { call, model, provider, cache, facts, chain, name_of_unnamed } = prepared;
        let conversation = match &call.conversation {
            Some(known) => known.clone(),
            None => self.conversation_of(chain.as_ref(), name_of_unnamed),
        };
        let key = self.key_of(&call, conversation, &model, chain.as_ref());
        let known = self.models.find(&model).cloned();
        let judge = JudgeRules { cache: &cache, facts: &facts, model: known.as_ref() };
        let (cause, expected, predecessor) = self.judge(&call, &key, &model, (chain.as_ref(), judge));
        let subject =
            Subject { call: &call, key: &key, model: &model, provider: &provider, rates: known.as_ref() };
        let verdict = subject.verdict(cause, expected, predecessor);
        let kept = chain.as_ref().map(|chain| {
            let mut kept = KeptChain::new(&call, &model, chain, self.threads.get(&key));
            kept.thread.clone_from(&key.thread);
            (kept.is_aside, kept.is_unnamed) = (key.is_aside, call.conversation.is_none());
            kept
        });
        let is_full = kept.as_ref().is_none_or(KeptChain::is_full);
        self.keep(key, (call, model, chain), is_full);
        (verdict, kept)
    }

    /// Returns a verdict that something else than a request proves.
    #[must_use]
    pub fn revised(&self, call: CallVerdict, verdict: CacheVerdict, why: &str, expected: u64) -> CallVerdict {
        let usage = CallUsage {
            read: call.read,
            written: call.written,
            written_1h: call.written_1h,
            uncached: call.uncached,
            output: call.output,
        };
        let is_lost = !matches!(verdict, CacheVerdict::Hit | CacheVerdict::ColdStart);
        let lost = if is_lost { expected.saturating_sub(call.read.unwrap_or(expected)) } else { 0 };
        let rates = call.model.as_deref().and_then(|model| self.models.find(model));
        let owner = match verdict {
            CacheVerdict::Hit | CacheVerdict::ColdStart => None,
            CacheVerdict::Provider => Some(OwnerKind::Provider),
            CacheVerdict::Expired => Some(OwnerKind::Time),
            CacheVerdict::ModelChanged => Some(OwnerKind::User),
            _ => Some(OwnerKind::Unknown),
        };
        CallVerdict {
            verdict,
            alarming: verdict.is_alarming(),
            why: why.to_owned(),
            expected_read: Some(expected),
            owner: owner.map(super::verdict::ChangeOwner::new),
            lost_tokens: lost,
            lost_usd: money::loss(lost, &usage, rates).filter(|_| is_lost),
            advice: advice(verdict, None),
            ..call
        }
    }

    /// Returns the largest number of a stored call of a conversation; `None` if no call of it is kept.
    #[must_use]
    pub fn newest(&self, conversation: &str) -> Option<u64> {
        self.threads_of(conversation).map(|(_, thread)| thread.newest).max()
    }

    /// Notes the number under which the last call of a conversation's thread was stored.
    pub fn stored(&mut self, conversation: &str, number: u64) {
        for (_, thread) in self.threads.iter_mut().filter(|(key, _)| key.conversation == conversation) {
            thread.newest = thread.newest.max(number);
        }
    }

    /// Takes stored chains of a conversation, with their numbers, in their order.
    pub fn restore(&mut self, conversation: &str, chains: impl IntoIterator<Item = (u64, KeptChain)>) {
        for (number, kept) in chains {
            let key = ThreadKey {
                conversation: conversation.to_owned(),
                thread: kept.thread.clone(),
                is_aside: kept.is_aside,
            };
            self.make_room(&key);
            self.used += 1;
            let (is_full, is_unnamed, used) = (kept.is_full(), kept.is_unnamed, self.used);
            let thread = self.threads.entry(key).or_default();
            (thread.used, thread.newest) = (used, thread.newest.max(number));
            let is_known = thread.calls.iter().any(|past| past.call.id == kept.id);
            let Some((call, model, chain)) = kept.past(thread).filter(|_| !is_known) else { continue };
            let first = chain.messages().next().map(|link| link.digest).filter(|_| is_unnamed);
            thread.push(call, model, Some(chain), is_full);
            if let Some(first) = first {
                self.name(first, conversation.to_owned());
            }
        }
    }

    /// Forgets a conversation.
    pub fn forget(&mut self, conversation: &str) {
        self.threads.retain(|key, _| key.conversation != conversation);
    }

    fn threads_of<'s>(&'s self, conversation: &'s str) -> impl Iterator<Item = (&'s ThreadKey, &'s Thread)> {
        self.threads.iter().filter(move |(key, _)| key.conversation == conversation)
    }

    /// Returns the name of the cache and its rules.
    fn cache_of(&self, call: &Call, model: &str) -> (String, CacheRules) {
        let known = self.models.find(model);
        let wire = if call.wire == Wire::Unknown { guess(call, model) } else { call.wire };
        let by_wire = match wire {
            Wire::Anthropic | Wire::Unknown => "anthropic",
            Wire::Bedrock => "bedrock",
            Wire::Responses => "openai-responses",
            Wire::Gemini => "gemini",
            Wire::Chat => known.map_or("openai-chat", |model| Provider::of_vendor(&model.vendor).name().word),
        };
        let by_wire = if wire == Wire::Chat && by_wire != "deepseek" { "openai-chat" } else { by_wire };
        let named = call.provider.as_deref().unwrap_or(by_wire);
        let found = rules(named, known, &self.models).or_else(|_| rules(by_wire, known, &self.models)).ok();
        let fallback = || self.models.cache("anthropic");
        let rules = found.or_else(fallback).cloned().unwrap_or_else(CacheRules::unknown);
        (rules.name.clone(), rules)
    }

    /// Finds the conversation of a call that names none: the one with the longest run of equal messages.
    fn conversation_of(&mut self, chain: Option<&Chain>, name: Option<String>) -> String {
        let Some(first) = chain.and_then(|chain| Some(chain.messages().next()?.digest)) else {
            return name.unwrap_or_else(|| "#0".to_owned());
        };
        let run = |id: &str| {
            let chains = self.threads_of(id).flat_map(|(_, thread)| thread.calls.iter().rev().take(8));
            let runs = chains.filter_map(|past| Some(chain?.common_messages(past.chain.as_ref()?)));
            runs.max().unwrap_or(0)
        };
        let candidates = self.unnamed.get(&first).into_iter().flatten();
        let best = candidates.map(|id| (run(id), id)).max_by_key(|(run, _)| *run).map(|(_, id)| id.clone());
        if let Some(best) = best {
            return best;
        }
        self.unnamed_count += 1;
        let id = name.unwrap_or_else(|| format!("#{}", self.unnamed_count));
        self.name(first, id.clone());
        id
    }

    /// Notes the conversation of a first message.
    fn name(&mut self, first: ShortDigest, id: String) {
        if self.unnamed.len() >= TRAFFIC_THREADS_MAX {
            self.unnamed.pop_first();
        }
        let known = self.unnamed.entry(first).or_default();
        if !known.contains(&id) {
            known.push(id);
        }
    }

    /// Forgets the conversation that was not used for the longest time, if another thread has no room.
    fn make_room(&mut self, key: &ThreadKey) {
        if self.threads.contains_key(key) || self.threads.len() < TRAFFIC_THREADS_MAX {
            return;
        }
        let oldest = self.threads.iter().min_by_key(|(_, thread)| thread.used);
        if let Some(oldest) = oldest.map(|(key, _)| key.conversation.clone()) {
            self.forget(&oldest);
        }
    }

    fn key_of(&self, call: &Call, conversation: String, model: &str, chain: Option<&Chain>) -> ThreadKey {
        let thread = call.thread.clone().unwrap_or_default();
        let is_aside = matches!(call.purpose, Purpose::Title | Purpose::Probe);
        let mut key = ThreadKey { conversation, thread, is_aside };
        if is_aside || call.thread.is_some() {
            return key;
        }
        // A small request to another model that shares nothing with the thread is a title or the like.
        let is_other = |thread: &Thread| {
            chain.is_some_and(|chain| {
                let found = thread.predecessor(chain);
                found.is_some_and(|(past, earlier)| {
                    past.model != model
                        && chain.common(earlier) == 0
                        && chain.common_messages(earlier) == 0
                        && is_small(chain) != is_small(earlier)
                })
            })
        };
        if self.threads.get(&key).is_some_and(is_other) {
            key.thread = format!("({model})");
        }
        key
    }

    /// Compares a call with its predecessor.
    fn judge(
        &self,
        call: &Call,
        key: &ThreadKey,
        model: &str,
        (chain, rules): (Option<&Chain>, JudgeRules<'_>),
    ) -> (Cause, Option<u64>, Option<String>) {
        let unknown = |why: &str| Cause::new(CacheVerdict::Unknown, why);
        let Some(chain) = chain else { return (unknown("the request is not known"), None, None) };
        let found = self.threads.get(key).and_then(|thread| Some((thread, thread.predecessor(chain)?)));
        let Some((thread, (past, earlier))) = found else {
            let has_unknown = self.threads.get(key).is_some_and(|thread| thread.count > 0);
            let unread = || (unknown("the requests before it are not known"), None, None);
            return if has_unknown { unread() } else { self.first(call, key, (chain, rules)) };
        };
        let predecessor = Some(past.call.id.clone());
        let case = Case { call, model, chain, past, earlier, thread, rules };
        let expected = case.expected();
        let (Some(read), Some(tokens)) = (call.usage.read, expected) else {
            return (unknown("the provider's numbers are not known"), expected, predecessor);
        };
        (case.cause(tokens, read), expected, predecessor)
    }

    /// Judges the first call of a thread.
    fn first(
        &self,
        call: &Call,
        key: &ThreadKey,
        (chain, rules): (&Chain, JudgeRules<'_>),
    ) -> (Cause, Option<u64>, Option<String>) {
        let is_parent = |other: &ThreadKey| {
            let named = call.parent.as_deref();
            other != key
                && !other.is_aside
                && (named == Some(other.conversation.as_str())
                    || other.conversation == key.conversation
                        && named.is_none_or(|name| name == other.thread))
        };
        let parents = self.threads.iter().filter(|(other, _)| is_parent(other) && !key.is_aside);
        let pasts = parents.filter_map(|(_, thread)| thread.predecessor(chain));
        let best = pasts.max_by_key(|(_, earlier)| chain.common(earlier));
        let fork = best.filter(|(_, earlier)| {
            let common = chain.common(earlier);
            chain.links.iter().take(common).any(|link| link.area == super::chain::Area::Messages)
        });
        match fork {
            Some((past, _)) => {
                let left =
                    rules.left(&past.call.usage).zip(call.usage.input()).map(|(left, input)| left.min(input));
                let is_same = past.model.as_str() == call.model.as_deref().unwrap_or(&past.model);
                let mut cause =
                    Cause::new(CacheVerdict::Fork, "the thread begins with the blocks of another one");
                cause.owner = Some(super::verdict::ChangeOwner::new(OwnerKind::User));
                (cause, left.filter(|_| is_same), Some(past.call.id.clone()))
            }
            None => (Cause::new(CacheVerdict::ColdStart, "the first call of its thread"), Some(0), None),
        }
    }

    /// Keeps a call, and forgets what exceeds the limits: bodies first, then conversations that were not used for long.
    fn keep(&mut self, key: ThreadKey, (call, model, chain): (Call, String, Option<Chain>), is_full: bool) {
        self.used += 1;
        self.make_room(&key);
        let bytes = call.body.as_ref().map_or(0, |body| body.len());
        let thread = self.threads.entry(key.clone()).or_default();
        thread.used = self.used;
        thread.push(call, model, chain, is_full);
        if bytes > 0 {
            self.bodies.push_back((key, thread.count, bytes));
            self.body_bytes = self.body_bytes.saturating_add(bytes);
        }
        while self.body_bytes > TRAFFIC_BODIES_BYTES_MAX
            && self.bodies.len() > 1
            && let Some((key, index, bytes)) = self.bodies.pop_front()
        {
            self.body_bytes = self.body_bytes.saturating_sub(bytes);
            let past = self
                .threads
                .get_mut(&key)
                .and_then(|thread| thread.calls.iter_mut().find(|past| past.index == index));
            if let Some(past) = past {
                past.call.body = None;
            }
        }
    }
}

/// A chain without tools.
fn is_small(chain: &Chain) -> bool {
    chain.links.iter().all(|link| link.area != super::chain::Area::Tools)
}

fn body_model(call: &Call) -> Option<String> {
    use super::chain::json::{fields, text_field};
    let body = fields(call.body.as_deref()?);
    let model = text_field(&body, "model").or_else(|| text_field(&body, "modelId"))?;
    Some(model.into_owned())
}

/// Guesses the format, to choose the cache's rules.
fn guess(call: &Call, model: &str) -> Wire {
    let facts = CacheFacts::default();
    let read = super::chain::Blocks::read(call, &facts).map(|blocks| blocks.wire);
    let by_model = || match model {
        name if name.contains("claude") => Wire::Anthropic,
        name if name.contains("gemini") => Wire::Gemini,
        name if name.starts_with("gpt") => Wire::Responses,
        "" => Wire::Unknown,
        _ => Wire::Chat,
    };
    read.unwrap_or_else(by_model)
}

/// Takes purpose and thread from the headers of agents that send them.
fn read_headers(call: &mut Call) {
    let get = |name: &str| call.headers.get(name).map(str::to_owned);
    let class = get("x-claude-code-request-class");
    let purpose = match class.as_deref() {
        Some("compaction") => Some(Purpose::Compaction),
        Some("auxiliary") => Some(Purpose::Title),
        Some("subagent") => Some(Purpose::SubAgent),
        _ => None,
    };
    if call.purpose == Purpose::Main {
        call.purpose = purpose.unwrap_or_default();
    }
    let session =
        ["x-claude-code-session-id", "session-id", "session_id", "x-session-affinity", "x-session-id"];
    call.conversation = call.conversation.take().or_else(|| session.iter().find_map(|name| get(name)));
    call.thread = call.thread.take().or_else(|| get("x-claude-code-agent-id"));
    call.parent = call
        .parent
        .take()
        .or_else(|| get("x-claude-code-parent-agent-id").or_else(|| get("x-parent-session-id")));
}

/// A judged call and what its figures are made of.
struct Subject<'s> {
    call: &'s Call,
    key: &'s ThreadKey,
    model: &'s str,
    provider: &'s str,
    rates: Option<&'s Model>,
}

impl Subject<'_> {
    fn verdict(&self, cause: Cause, expected: Option<u64>, predecessor: Option<String>) -> CallVerdict {
        let (call, usage) = (self.call, &self.call.usage);
        let is_lost = !matches!(cause.verdict, CacheVerdict::Hit | CacheVerdict::ColdStart);
        let missing = expected.zip(usage.read).map_or(0, |(expected, read)| expected.saturating_sub(read));
        let lost = if is_lost { missing } else { 0 };
        let reason = call.provider_reason.clone();
        let agrees = reason
            .as_ref()
            .and_then(|told| TrafficRules::built_in().agrees(&told.reason, cause.verdict.word()));
        let not_empty = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        CallVerdict {
            id: call.id.clone(),
            at: call.at.and_then(|at| Timestamp::from_millisecond(at).ok()).map(|at| at.to_string()),
            conversation: self.key.conversation.clone(),
            thread: not_empty(&self.key.thread),
            parent: call.parent.clone(),
            purpose: call.purpose,
            model: not_empty(self.model),
            provider: self.provider.to_owned(),
            predecessor,
            read: usage.read,
            written: usage.written,
            written_1h: usage.written_1h,
            uncached: usage.uncached,
            output: usage.output,
            expected_read: expected,
            verdict: cause.verdict,
            alarming: cause.verdict.is_alarming(),
            advice: advice(cause.verdict, cause.owner.as_ref()),
            why: cause.why,
            place: cause.place,
            owner: cause.owner,
            lost_tokens: lost,
            lost_usd: money::loss(lost, usage, self.rates).filter(|_| is_lost),
            usd: money::price(usage, self.rates),
            saved_usd: money::saved(usage, self.rates),
            provider_reason: reason,
            disagrees: agrees == Some(false),
        }
    }
}
