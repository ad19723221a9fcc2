//! The whole store as JSON lines: for backups, and for moving from one kind of store to another.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::io::{self, BufRead, Write};

use proem::request::bundle::Bundle;
use proem::stored_prompt::StoredPrompt;
use proem::without_place;
use proem_core::carrier::Carrier;
use proem_core::digest::Digest;
use serde::{Deserialize, Serialize};

use crate::record::{Epoch, EpochHead, NewTemplate, Query, TemplateVersion, check_text};
use crate::{
    Commit, Current, Explanation, LoadedEpoch, StateRecord, Store, StoreError, WorkspaceRecord,
    is_conversation_id,
};

/// The version of the export format. Version 1 has no states and no sources, and version 2 no workspaces.
const VERSION: u32 = 3;

/// The number of conversations that are listed at a time.
const PAGE: usize = 500;

/// One line of an export. A text comes before the first epoch that has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ExportLine {
    /// The first line.
    Header {
        /// The version of the format.
        version: u32,
    },
    /// A version of the template.
    Template(TemplateVersion),
    /// A text.
    Text {
        /// The digest of the text.
        digest: String,
        /// The text.
        text: String,
    },
    /// A workspace that a request brought, before the epochs.
    Workspace {
        /// The digest of the text.
        digest: String,
        /// The workspace as JSON.
        text: String,
    },
    /// An epoch, its texts by digest.
    Epoch {
        /// The epoch without its texts.
        #[serde(flatten)]
        head: Box<EpochHead>,
        /// The texts by carrier.
        texts: BTreeMap<Carrier, String>,
        /// The description of where their bytes come from.
        description: String,
        /// The request.
        request: String,
        /// Everything that the prompt was built from, if the epoch has it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sources: Option<String>,
    },
    /// The state of a conversation, after its epochs.
    State {
        /// The conversation.
        conversation: String,
        /// The version of the state.
        version: u64,
        /// The state.
        text: String,
    },
    /// The record of a call.
    Call {
        /// The conversation.
        conversation: String,
        /// The record.
        record: String,
    },
}

impl ExportLine {
    /// Parses one line of an export.
    pub fn parse(line: &str) -> Result<Self, Explanation> {
        serde_json::from_str(line).map_err(|error: serde_json::Error| {
            // The parser counts lines within `line`, so its line is always the first.
            let (why, column) = (without_place(&error), error.column());
            let why = if column == 0 { why } else { format!("column {column}: {why}") };
            Explanation::new(why, error)
        })
    }
}

/// The numbers of items that an export or import wrote.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TransferCounts {
    /// Epochs that were written.
    pub epochs: u64,
    /// Versions of the template that were written.
    pub templates: u64,
    /// Epochs of an import that the store had already.
    pub known_epochs: u64,
    /// Versions of the template of an import that the store had already.
    pub known_templates: u64,
}

/// Writes the whole store, the oldest epochs of a conversation first.
pub fn export(store: &dyn Store, out: &mut dyn Write) -> Result<TransferCounts, TransferError> {
    let mut writer = Writer { out, seen: BTreeSet::new(), counts: TransferCounts::default() };
    writer.line(&ExportLine::Header { version: VERSION })?;
    let newest = store.template_versions(None, usize::MAX)?;
    for template in newest.into_iter().rev() {
        writer.line(&ExportLine::Template(template))?;
        writer.counts.templates += 1;
    }
    writer.workspaces(store)?;
    // A conversation that gets an epoch meanwhile moves to the beginning of the list, which was read already. So the
    // list is read again until it has nothing new.
    let mut written = BTreeSet::new();
    while writer.conversations(store, &mut written)? {}
    Ok(writer.counts)
}

struct Writer<'w> {
    out: &'w mut dyn Write,
    seen: BTreeSet<Digest>,
    counts: TransferCounts,
}

impl Writer<'_> {
    fn line(&mut self, line: &ExportLine) -> Result<(), TransferError> {
        let line = serde_json::to_string(line).map_err(|error| TransferError::Write(error.into()))?;
        writeln!(self.out, "{line}").map_err(TransferError::Write)
    }

    /// Writes the conversations that were not written yet; tells whether there were any.
    fn conversations(
        &mut self,
        store: &dyn Store,
        written: &mut BTreeSet<String>,
    ) -> Result<bool, TransferError> {
        let (mut query, before) = (Query { most: PAGE, ..Query::default() }, written.len());
        loop {
            let page = store.conversations(&query)?;
            for conversation in page.items {
                if !written.insert(conversation.conversation.clone()) {
                    continue;
                }
                self.conversation(store, &conversation.conversation)?;
            }
            match page.next {
                Some(next) => query.after = Some(next),
                None => return Ok(written.len() > before),
            }
        }
    }

    /// Writes the workspaces that requests brought. One that comes later is not part of the export.
    fn workspaces(&mut self, store: &dyn Store) -> Result<(), TransferError> {
        let mut after = String::new();
        loop {
            let digests = store.workspaces(&after, PAGE)?;
            let Some(last) = digests.last() else { return Ok(()) };
            after.clone_from(last);
            for digest in digests {
                if let Some(WorkspaceRecord { digest, text }) = store.workspace(&digest)? {
                    self.line(&ExportLine::Workspace { digest, text })?;
                }
            }
        }
    }

    /// Writes a conversation as it is at one moment. Ends early if it is removed meanwhile.
    fn conversation(&mut self, store: &dyn Store, id: &str) -> Result<(), TransferError> {
        let Some(Current { epoch: last, state }) = store.current(id)? else { return Ok(()) };
        let heads = store.epochs(id)?;
        if !heads.contains(&last.head) {
            return Ok(());
        }
        // Later epochs belong to a later state.
        for head in heads.into_iter().take_while(|head| head.number < last.head.number) {
            let found = store.epoch(id, head.number)?.filter(|epoch| epoch.head == head);
            let Some(epoch) = found else { return Ok(()) };
            self.epoch(epoch)?;
        }
        self.epoch(last)?;
        if let Some(StateRecord { version, text }) = state {
            self.line(&ExportLine::State { conversation: id.to_owned(), version, text })?;
        }
        for record in store.calls(id)? {
            self.line(&ExportLine::Call { conversation: id.to_owned(), record })?;
        }
        Ok(())
    }

    /// Writes a text unless it was written before, and returns its digest.
    fn text(&mut self, text: String) -> Result<String, TransferError> {
        let digest = Digest::new(text.as_bytes());
        if self.seen.insert(digest) {
            self.line(&ExportLine::Text { digest: digest.hex(), text })?;
        }
        Ok(digest.hex())
    }

    fn epoch(&mut self, epoch: Epoch) -> Result<(), TransferError> {
        let Epoch { head, prompt, request, sources } = epoch;
        let mut texts = BTreeMap::new();
        for (carrier, text) in prompt.texts {
            texts.insert(carrier, self.text(text)?);
        }
        let (description, request) = (self.text(prompt.description)?, self.text(request)?);
        let sources = sources.map(|sources| self.text(sources)).transpose()?;
        self.counts.epochs += 1;
        self.line(&ExportLine::Epoch { head: Box::new(head), texts, description, request, sources })
    }
}

/// Reads an export into a store. Items that the store has already are skipped; an item that differs from the one in the
/// store is an error. Nothing is replaced, except the state of a conversation by a later one.
pub fn import(store: &dyn Store, lines: &mut dyn BufRead) -> Result<TransferCounts, TransferError> {
    let mut reader = Reader {
        store,
        texts: HashMap::new(),
        calls: HashMap::new(),
        counts: TransferCounts::default(),
        line: 0,
    };
    for (index, line) in lines.lines().enumerate() {
        reader.line = index + 1;
        let line = line.map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => reader.malformed(Explanation::new("it is not UTF-8", error)),
            _ => TransferError::Read(error),
        })?;
        if !line.trim().is_empty() {
            reader.import(&line)?;
        }
    }
    Ok(reader.counts)
}

struct Reader<'r> {
    store: &'r dyn Store,
    /// The texts of the lines so far, by digest.
    texts: HashMap<String, String>,
    /// The calls of each conversation that the store had and that were not in the lines so far.
    calls: HashMap<String, Vec<String>>,
    counts: TransferCounts,
    line: usize,
}

impl Reader<'_> {
    fn import(&mut self, line: &str) -> Result<(), TransferError> {
        match ExportLine::parse(line).map_err(|why| self.malformed(why))? {
            ExportLine::Header { version: 1..=VERSION } => Ok(()),
            ExportLine::Header { version } => Err(self.malformed(format!(
                "the export has format version {version}, and this proem reads versions up to {VERSION}"
            ))),
            ExportLine::Template(template) => self.import_template(&template),
            ExportLine::Text { digest, text } => {
                if Digest::new(text.as_bytes()).hex() != digest {
                    return Err(self.malformed(format!("the text does not match its digest {digest}")));
                }
                self.texts.insert(digest, text);
                Ok(())
            }
            ExportLine::Workspace { digest, text } => {
                let found = Bundle::from_json(&text)
                    .map_err(|error| self.malformed(Explanation::from_error(error)))?;
                if found.digest() != digest || found.to_json() != text {
                    return Err(self.malformed(format!("the workspace does not match its digest {digest}")));
                }
                Ok(self.store.put_workspace(&WorkspaceRecord { digest, text })?)
            }
            ExportLine::Epoch { head, texts, description, request, sources } => {
                let texts = texts.iter().map(|(carrier, digest)| Ok((*carrier, self.text(digest)?)));
                let texts = texts.collect::<Result<_, TransferError>>()?;
                let prompt = StoredPrompt::new(texts, self.text(&description)?);
                let request = self.text(&request)?;
                let sources = sources.map(|digest| self.text(&digest)).transpose()?;
                self.import_epoch(&Epoch { head: *head, prompt, request, sources })
            }
            ExportLine::State { conversation, version, text } => {
                self.import_state(&conversation, &StateRecord { version, text })
            }
            ExportLine::Call { conversation, record } => self.import_call(&conversation, &record),
        }
    }

    /// Returns an error about the current line.
    fn malformed(&self, why: impl Into<Explanation>) -> TransferError {
        TransferError::Line { line: self.line, why: why.into() }
    }

    /// Returns an error about a field that no store accepts, with the fix. Texts and digests stay as they are.
    fn unstorable(&self, why: &str) -> TransferError {
        self.malformed(format!("{why}; edit this field of this line, and import again"))
    }

    /// Returns an error about an item that differs from the one in the store.
    fn conflict(&self, what: &str) -> TransferError {
        TransferError::Conflict { line: self.line, why: format!("the store has a different {what}") }
    }

    /// Returns a text of the lines so far.
    fn text(&self, digest: &str) -> Result<String, TransferError> {
        let missing = || self.malformed(format!("no line before it has the text {digest}"));
        self.texts.get(digest).cloned().ok_or_else(missing)
    }

    fn import_template(&mut self, template: &TemplateVersion) -> Result<(), TransferError> {
        let TemplateVersion { text, author, message, .. } = template;
        let new = NewTemplate {
            text,
            author: author.as_deref(),
            message: message.as_deref(),
            ..NewTemplate::default()
        };
        new.check().map_err(|why| self.unstorable(&why))?;
        match self.store.template_version(template.version)? {
            Some(known) if known.text == template.text => self.counts.known_templates += 1,
            Some(_) => return Err(self.conflict(&format!("version {} of the template", template.version))),
            None => {
                self.store.restore_template(template)?;
                self.counts.templates += 1;
            }
        }
        Ok(())
    }

    fn import_epoch(&mut self, epoch: &Epoch) -> Result<(), TransferError> {
        let EpochHead { conversation, number, .. } = &epoch.head;
        if !is_conversation_id(conversation) {
            return Err(self.malformed("invalid conversation id"));
        }
        epoch.head.check().map_err(|why| self.unstorable(&why))?;
        // An epoch that cannot be read back must not be acknowledged.
        LoadedEpoch::from_stored(epoch.clone())
            .map_err(|error| self.malformed(Explanation::from_error(error)))?;
        let is_known = self.store.epoch(conversation, *number)?.is_some();
        if self.store.open(epoch)? != *epoch {
            return Err(self.conflict(&format!("epoch {number} of `{conversation}`")));
        }
        *(if is_known { &mut self.counts.known_epochs } else { &mut self.counts.epochs }) += 1;
        Ok(())
    }

    /// Stores the state of a conversation unless the store has it or a later one.
    fn import_state(&mut self, conversation: &str, state: &StateRecord) -> Result<(), TransferError> {
        check_text("conversation", conversation).map_err(|why| self.unstorable(&why))?;
        check_text("text", &state.text).map_err(|why| self.unstorable(&why))?;
        let missing = || self.malformed(format!("no line before it has an epoch of `{conversation}`"));
        let known = self.store.current_head(conversation)?.ok_or_else(missing)?.state_version;
        let is_same = || -> Result<bool, StoreError> {
            let current = self.store.current(conversation)?;
            Ok(current.is_some_and(|current| current.state.as_ref() == Some(state)))
        };
        if known > state.version || (known == state.version && is_same()?) {
            return Ok(());
        }
        let change = Commit { conversation, based_on: known, state, epoch: None };
        if self.store.commit(&change)? {
            return Ok(());
        }
        Err(self.conflict(&format!("state of `{conversation}`")))
    }

    /// Adds a call unless the conversation has it: a second import must not add the calls of the first one again.
    fn import_call(&mut self, conversation: &str, record: &str) -> Result<(), TransferError> {
        check_text("conversation", conversation).map_err(|why| self.unstorable(&why))?;
        check_text("record", record).map_err(|why| self.unstorable(&why))?;
        if !self.calls.contains_key(conversation) {
            self.calls.insert(conversation.to_owned(), self.store.calls(conversation)?);
        }
        let known = self.calls.entry(conversation.to_owned()).or_default();
        match known.iter().position(|one| *one == record) {
            Some(index) => drop(known.remove(index)),
            None => drop(self.store.add_call(conversation, record)?),
        }
        Ok(())
    }
}

/// An error of an export or import.
#[derive(Debug)]
#[non_exhaustive]
pub enum TransferError {
    /// The store failed.
    Store(StoreError),
    /// A line of the export cannot be imported.
    Line {
        /// The number of the line, from 1.
        line: usize,
        /// The problem.
        why: Explanation,
    },
    /// A line of the export differs from the same item in the store.
    Conflict {
        /// The number of the line, from 1.
        line: usize,
        /// The problem.
        why: String,
    },
    /// The input cannot be read.
    Read(io::Error),
    /// The output cannot be written.
    Write(io::Error),
}

impl From<StoreError> for TransferError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl fmt::Display for TransferError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => error.fmt(formatter),
            Self::Line { line, why } => write!(formatter, "line {line}: {why}"),
            Self::Conflict { line, why } => write!(formatter, "line {line}: {why}"),
            Self::Read(error) => write!(formatter, "cannot read the export: {error}"),
            Self::Write(error) => write!(formatter, "cannot write the export: {error}"),
        }
    }
}

impl std::error::Error for TransferError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Store(error) => Some(error),
            Self::Line { why, .. } => why.source(),
            Self::Conflict { .. } => None,
            Self::Read(error) | Self::Write(error) => Some(error),
        }
    }
}

/// Serialises an epoch as one JSON text, for the row of a compaction.
pub(crate) fn epoch_json(epoch: &Epoch) -> Result<String, StoreError> {
    let Epoch { head, prompt, request, sources } = epoch.clone();
    let StoredPrompt { texts, description, .. } = prompt;
    let line = ExportLine::Epoch { head: Box::new(head), texts, description, request, sources };
    serde_json::to_string(&line).map_err(damaged_compaction)
}

/// Parses the text of [`epoch_json`].
pub(crate) fn epoch_from_json(text: &str) -> Result<Epoch, StoreError> {
    match serde_json::from_str(text).map_err(damaged_compaction)? {
        ExportLine::Epoch { head, texts, description, request, sources } => {
            Ok(Epoch { head: *head, prompt: StoredPrompt::new(texts, description), request, sources })
        }
        _ => Err(StoreError::damaged("a compaction", "it has no prompt")),
    }
}

fn damaged_compaction(error: serde_json::Error) -> StoreError {
    StoreError::damaged("a compaction", Explanation::from_error(error))
}
