//! Records calls to providers: finds the predecessor of each, judges it, and stores it.
//!
//! Requests are kept in memory alone, up to a limit, so that the exact byte of a change is named. After a restart the digests
//! of the store name the part. Nothing of a request is stored but digests, numbers and masked excerpts.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use proem_core::digest::Digest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::conversation::store::record::now;
use crate::conversation::store::traffic::{
    CHAIN_MILLIS, CallInsert, CallRow, CallSums, ChainInsert, StoredCall, oldest_row, owner_word,
};
use crate::conversation::store::{Store, StoreError, is_conversation_id};
use crate::inspect::traffic::kept::KeptChain;
use crate::inspect::traffic::{Analyser, CacheVerdict, Call, CallVerdict, PreparedCall};
use crate::settings::models::Models;

/// The version of a stored call. Version 1 had the numbers and a digest of the request, and was judged when it was read.
pub const STORED_CALL_VERSION: u32 = 2;

/// Conversations that may continue a call that names none.
const CANDIDATES_MAX: usize = 16;

/// Rows that one call removes when they have expired.
const EXPIRED_ROWS: usize = 1_000;

/// Milliseconds between two searches for expired rows.
const EXPIRY_MILLIS: i64 = 600_000;

/// A stored call: its verdict, and where it belongs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedCall {
    /// The call with its verdict, in the shape of reports.
    #[serde(flatten)]
    pub call: CallVerdict,
    /// The agent that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The version of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_version: Option<String>,
    /// The working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// The version of the template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_version: Option<u64>,
    /// The epoch, for conversations of proem.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    /// True if a subscription paid, so that the money is list price.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_list_price: bool,
    /// True if the request was known when it was judged.
    #[serde(default)]
    pub has_request: bool,
}

#[derive(Serialize)]
struct StoredShape<'c> {
    version: u32,
    #[serde(flatten)]
    call: &'c RecordedCall,
}

impl RecordedCall {
    /// Reads a stored call.
    pub fn read(stored: &StoredCall) -> Result<Self, StoreError> {
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let damaged = |why: String| StoreError::damaged(format!("call {}", stored.number), why);
        let found: Versioned =
            serde_json::from_str(&stored.record).map_err(|error| damaged(error.to_string()))?;
        if found.version > STORED_CALL_VERSION {
            return Err(damaged(format!(
                "its form has version {}, and this proem reads versions up to {STORED_CALL_VERSION}",
                found.version
            )));
        }
        serde_json::from_str(&stored.record).map_err(|error| damaged(error.to_string()))
    }

    fn row(&self, at: i64) -> Result<CallRow, StoreError> {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let call = &self.call;
        let shape = StoredShape { version: STORED_CALL_VERSION, call: self };
        let record = serde_json::to_string(&shape)
            .map_err(|error| StoreError::damaged(format!("call `{}`", call.id), error.to_string()))?;
        let row = CallRow {
            id: call.id.clone(),
            at,
            conversation: call.conversation.clone(),
            agent: text(&self.agent),
            model: text(&call.model),
            cwd: text(&self.cwd),
            profile: text(&self.profile),
            version: self.template_version.map(|version| version.to_string()).unwrap_or_default(),
            verdict: call.verdict.word().to_owned(),
            owner: call.owner.as_ref().map(|owner| owner_word(owner.kind)).unwrap_or_default(),
            is_alarming: call.alarming,
            sums: CallSums::of_call(call, self.is_list_price),
            record,
        };
        Ok(row.clipped())
    }
}

/// A verdict that needs no request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    /// The verdict.
    pub verdict: CacheVerdict,
    /// Its details in one sentence.
    pub why: String,
    /// The tokens that should have been read.
    pub expected: u64,
}

/// The outcome for one call.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// The call with its verdict.
    pub call: RecordedCall,
    /// False if the store had it already.
    pub is_new: bool,
}

/// The part of a request that is stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum KeepExcerpts {
    /// Digests and numbers only.
    No,
    /// Masked excerpts of both sides of a change, too.
    #[default]
    Yes,
}

/// Records calls in a store.
///
/// ```
/// use std::sync::Arc;
///
/// use proem::conversation::Recorder;
/// use proem::models::Models;
/// use proem::store::MemoryStore;
/// use proem::traffic::Call;
///
/// let recorder = Recorder::new(Arc::new(MemoryStore::new()), Models::built_in()?);
/// let body = r#"{"model": "claude-opus-5", "system": "s", "messages": [{"role": "user", "content": "Hello"}]}"#;
/// let call = Call { id: "req_1".into(), conversation: Some("c".into()), body: Some(body.into()), ..Call::default() };
/// let recorded = recorder.record(call)?;
/// assert_eq!(recorded.call.call.verdict.word(), "cold_start");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Recorder {
    store: Arc<dyn Store>,
    models: Arc<Models>,
    analyser: Mutex<Analyser>,
    key: OnceLock<Vec<u8>>,
    /// The time of the next search for expired rows.
    expiry: AtomicI64,
    keep: KeepExcerpts,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Recorder").finish_non_exhaustive()
    }
}

/// A call that was judged, before it is stored.
struct Judged {
    call: RecordedCall,
    at: i64,
    kept: Option<(KeptChain, String)>,
    replaces: bool,
}

impl Recorder {
    /// Creates a recorder. Several recorders, also in other processes, may share a store.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, models: Models) -> Self {
        Self {
            store,
            analyser: Mutex::new(Analyser::new(models.clone())),
            models: Arc::new(models),
            key: OnceLock::new(),
            expiry: AtomicI64::new(0),
            keep: KeepExcerpts::Yes,
        }
    }

    /// Selects the part of a request that is stored.
    #[must_use]
    pub const fn keeping(mut self, keep: KeepExcerpts) -> Self {
        self.keep = keep;
        self
    }

    /// Returns the table of models and prices.
    #[must_use]
    pub fn models(&self) -> Arc<Models> {
        Arc::clone(&self.models)
    }

    /// Returns the store.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Returns the digest under which an account is stored: the HMAC of an account or credential with the store's key.
    pub fn account(&self, credential: &[u8]) -> Result<String, StoreError> {
        let key = if let Some(key) = self.key.get() {
            key
        } else {
            let key = self.store.account_key()?;
            self.key.get_or_init(|| key)
        };
        let mut hmac = Hmac::<Sha256>::new_from_slice(key)
            .map_err(|_| StoreError::damaged("the key of the store", "it has a wrong length"))?;
        hmac.update(credential);
        let digest = hmac.finalize().into_bytes();
        Ok(digest.iter().take(16).fold(String::new(), |text, byte| text + &format!("{byte:02x}")))
    }

    /// Judges and stores a call.
    pub fn record(&self, call: Call) -> Result<Recorded, StoreError> {
        let mut recorded = self.record_all(vec![call])?;
        recorded.pop().ok_or_else(|| StoreError::damaged("a call", "it was lost"))
    }

    /// Judges and stores a call of a conversation of proem. `proof` is the verdict that its epochs prove, for a call whose
    /// request is not known.
    pub fn record_own(&self, call: Call, proof: &Proof) -> Result<Recorded, StoreError> {
        let mut recorded = self.record_with(vec![call], Some(proof))?;
        recorded.pop().ok_or_else(|| StoreError::damaged("a call", "it was lost"))
    }

    /// Judges and stores calls, in the order in which they were sent; all of them or none.
    ///
    /// A call whose id is stored already is returned as it is stored. If it brings the request that the stored one lacks, it
    /// replaces that one.
    pub fn record_all(&self, calls: Vec<Call>) -> Result<Vec<Recorded>, StoreError> {
        self.record_with(calls, None)
    }

    fn record_with(&self, calls: Vec<Call>, proof: Option<&Proof>) -> Result<Vec<Recorded>, StoreError> {
        let mut analyser = self.lock();
        let (mut outcomes, mut fresh) = (Vec::new(), Vec::new());
        let done = self.judge_all(&mut analyser, (calls, proof), (&mut outcomes, &mut fresh));
        let done = done.and_then(|()| self.put(&fresh));
        let conversations: BTreeSet<&str> =
            fresh.iter().map(|judged| judged.call.call.conversation.as_str()).collect();
        match done {
            Ok(numbers) => {
                for (judged, number) in fresh.iter().zip(numbers) {
                    if let Some(number) = number {
                        analyser.stored(&judged.call.call.conversation, number);
                    }
                }
            }
            Err(error) => {
                // They must not be the predecessors of a second attempt.
                for conversation in conversations {
                    analyser.forget(conversation);
                }
                return Err(error);
            }
        }
        drop(analyser);
        self.expire()?;
        Ok(outcomes)
    }

    fn lock(&self) -> MutexGuard<'_, Analyser> {
        self.analyser.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn judge_all(
        &self,
        analyser: &mut Analyser,
        (calls, proof): (Vec<Call>, Option<&Proof>),
        (outcomes, fresh): (&mut Vec<Recorded>, &mut Vec<Judged>),
    ) -> Result<(), StoreError> {
        for mut call in calls {
            call.id = if call.id.is_empty() { new_id()? } else { plain_id(call.id) };
            if let Some(known) = fresh.iter().find(|judged: &&Judged| judged.call.call.id == call.id) {
                outcomes.push(Recorded { call: known.call.clone(), is_new: false });
                continue;
            }
            let stored = self.store.stored_call(&call.id)?;
            let stored = stored.as_ref().map(RecordedCall::read).transpose()?;
            let replaces = match stored {
                Some(known) if known.has_request || call.body.is_none() => {
                    outcomes.push(Recorded { call: known, is_new: false });
                    continue;
                }
                Some(known) => {
                    complete(&mut call, &known);
                    true
                }
                None => false,
            };
            let judged = Judged { replaces, ..self.judge(analyser, call, proof)? };
            outcomes.push(Recorded { call: judged.call.clone(), is_new: true });
            fresh.push(judged);
        }
        Ok(())
    }

    fn judge(
        &self,
        analyser: &mut Analyser,
        mut call: Call,
        proof: Option<&Proof>,
    ) -> Result<Judged, StoreError> {
        let at = call.at.filter(|at| Timestamp::from_millisecond(*at).is_ok()).unwrap_or_else(now);
        call.at = Some(at);
        if let Some(account) = call.route.account.take() {
            call.route.account = Some(self.account(account.as_bytes())?);
        }
        let prepared = analyser.prepare(call);
        let (prepared, own) = self.named(analyser, prepared)?;
        let call = prepared.call();
        let mut recorded = RecordedCall {
            agent: call.agent.as_ref().map(|agent| agent.name.clone()),
            agent_version: call.agent.as_ref().and_then(|agent| agent.version.clone()),
            cwd: call.cwd.clone(),
            profile: call.agent.as_ref().map(|agent| agent.name.clone()),
            template_version: None,
            epoch: call.epoch,
            is_list_price: call.is_subscription,
            has_request: call.body.is_some(),
            call: CallVerdict::default(),
        };
        if let Some(own) = own {
            recorded.epoch = recorded.epoch.or(Some(own.number));
            recorded.cwd = recorded.cwd.or(Some(own.cwd));
            recorded.profile = Some(own.profile);
        }
        let first = prepared.first_message();
        let (verdict, kept) = analyser.take_prepared(prepared);
        recorded.call = match proof.filter(|_| verdict.verdict == CacheVerdict::Unknown) {
            Some(Proof { verdict: proven, why, expected }) => {
                analyser.revised(verdict, *proven, why, *expected)
            }
            None => verdict,
        };
        if self.keep == KeepExcerpts::No
            && let Some(place) = &mut recorded.call.place
        {
            (place.before, place.after) = (None, None);
        }
        Ok(Judged { call: recorded, at, kept: kept.zip(first), replaces: false })
    }

    /// Finds the conversation of a call, and reads its chains if they are not in memory.
    fn named(
        &self,
        analyser: &mut Analyser,
        prepared: PreparedCall,
    ) -> Result<(PreparedCall, Option<crate::conversation::store::EpochHead>), StoreError> {
        let call = prepared.call();
        let agent = call.agent.as_ref().map(|agent| agent.name.clone());
        let id = |session: &str| observed_id(agent.as_deref(), session);
        let conversation = call.conversation.as_deref().map(id);
        let mut own = None;
        if let Some(conversation) = &conversation {
            self.load(analyser, conversation)?;
            if agent.is_none() {
                own = self.store.current_head(conversation)?.map(|current| current.head);
            }
        } else if let Some(first) = prepared.first_message() {
            for candidate in self.store.conversations_of_first(&first, CANDIDATES_MAX)? {
                self.load(analyser, &candidate)?;
            }
        }
        let parent = match &call.parent {
            None => None,
            Some(parent) => {
                let parent_id = id(parent);
                self.load(analyser, &parent_id)?;
                let is_known = analyser.newest(&parent_id).is_some();
                Some(if is_known { parent_id } else { parent.clone() })
            }
        };
        let seed = format!("{} {} {:?}", prepared.first_message().unwrap_or_default(), call.id, call.at);
        let digest = Digest::new(seed.as_bytes()).hex();
        let unnamed =
            observed_id(Some(agent.as_deref().unwrap_or("unknown")), digest.get(..12).unwrap_or_default());
        Ok((prepared.renamed(conversation, parent, unnamed), own))
    }

    /// Reads the chains that other processes stored.
    fn load(&self, analyser: &mut Analyser, conversation: &str) -> Result<(), StoreError> {
        let known = analyser.newest(conversation);
        let rows = self.store.chains(conversation, known.unwrap_or(0))?;
        let read = |row: crate::conversation::store::traffic::ChainRow| {
            Some((row.number, serde_json::from_str(&row.link).ok()?))
        };
        analyser.restore(conversation, rows.into_iter().filter_map(read));
        Ok(())
    }

    fn put(&self, fresh: &[Judged]) -> Result<Vec<Option<u64>>, StoreError> {
        let new_call = |judged: &Judged| {
            let chain = judged.kept.as_ref().map(|(kept, first)| {
                let link = serde_json::to_string(kept)
                    .map_err(|error| StoreError::damaged("a chain", error.to_string()))?;
                let thread = kept.stored_thread();
                Ok::<_, StoreError>(ChainInsert {
                    thread,
                    first: first.clone(),
                    is_full: kept.is_full(),
                    link,
                })
            });
            Ok(CallInsert {
                row: judged.call.row(judged.at)?,
                chain: chain.transpose()?,
                replaces: judged.replaces,
            })
        };
        let calls: Vec<CallInsert> = fresh.iter().map(new_call).collect::<Result<_, StoreError>>()?;
        if calls.is_empty() { Ok(Vec::new()) } else { self.store.put_calls(&calls) }
    }

    /// Removes some of what has expired, now and then.
    fn expire(&self) -> Result<(), StoreError> {
        let now = now();
        if now < self.expiry.load(Ordering::Relaxed) {
            return Ok(());
        }
        let removed = self.store.expire_calls(oldest_row(), now - CHAIN_MILLIS, EXPIRED_ROWS)?;
        let pause = if removed < EXPIRED_ROWS as u64 { EXPIRY_MILLIS } else { 0 };
        self.expiry.store(now + pause, Ordering::Relaxed);
        Ok(())
    }
}

/// Adds what a stored call knows and a later record of it does not.
fn complete(call: &mut Call, known: &RecordedCall) {
    let stored = &known.call;
    if call.usage.input().is_none() {
        let usage = &mut call.usage;
        (usage.read, usage.written, usage.written_1h) = (stored.read, stored.written, stored.written_1h);
        (usage.uncached, usage.output) = (stored.uncached, stored.output);
    }
    let at = || stored.at.as_deref()?.parse::<Timestamp>().ok().map(Timestamp::as_millisecond);
    call.at = call.at.or_else(at);
    call.model = call.model.take().or_else(|| stored.model.clone());
    call.cwd = call.cwd.take().or_else(|| known.cwd.clone());
    call.provider_reason = call.provider_reason.take().or_else(|| stored.provider_reason.clone());
}

/// Returns the id of a conversation in the list: the session, after the agent if it is known.
#[must_use]
pub fn observed_id(agent: Option<&str>, session: &str) -> String {
    const NAME_MAX: usize = 100;
    let whole = agent.map_or_else(|| session.to_owned(), |agent| format!("{agent}:{session}"));
    if is_conversation_id(&whole) {
        return whole;
    }
    // A name that no path may have gets a digest, so that two of them stay different.
    let is_plain = |letter: &char| letter.is_ascii_alphanumeric() || "._:-".contains(*letter);
    let name: String = whole.chars().filter(is_plain).take(NAME_MAX).collect();
    let digest = Digest::new(whole.as_bytes()).hex();
    format!("{name}-{}", digest.get(..12).unwrap_or_default())
}

/// Returns the id of a call; one that no row can have is replaced by its digest.
fn plain_id(id: String) -> String {
    const BYTES_MAX: usize = 256;
    if id.len() <= BYTES_MAX && !id.chars().any(char::is_control) {
        return id;
    }
    format!("call_{}", Digest::new(id.as_bytes()).hex().get(..24).unwrap_or_default())
}

/// Returns an id for a call that has none.
fn new_id() -> Result<String, StoreError> {
    let random = crate::conversation::store::traffic::new_key()?;
    Ok(random.iter().take(12).fold("call_".to_owned(), |text, byte| text + &format!("{byte:02x}")))
}
