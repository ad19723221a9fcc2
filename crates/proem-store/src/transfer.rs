//! Everything that is kept, as plain JSON lines: for backups, and from one kind of store to another.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{BufRead, Write};

use proem::stored_prompt::StoredPrompt;
use proem_core::carrier::Carrier;
use proem_core::digest::Digest;
use serde::{Deserialize, Serialize};

use crate::record::{Epoch, EpochHead, Query, TemplateVersion, check_text};
use crate::{LoadedEpoch, Store, StoreError, is_conversation_id};

/// How many conversations are asked for at a time.
const PAGE: usize = 500;

/// One line of an export. A text stands before the first epoch that has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Record {
    /// The first line.
    Header {
        /// The version of this form.
        version: u32,
    },
    /// A version of the template.
    Template(TemplateVersion),
    /// A text.
    Text {
        /// Its digest.
        digest: String,
        /// The text.
        text: String,
    },
    /// An epoch, its texts by digest.
    Epoch {
        /// What is known about it.
        #[serde(flatten)]
        head: Box<EpochHead>,
        /// The texts by carrier.
        texts: BTreeMap<Carrier, String>,
        /// The description of where their bytes come from.
        description: String,
        /// The request.
        request: String,
    },
    /// What is known about a call.
    Call {
        /// The conversation.
        conversation: String,
        /// What is known.
        record: String,
    },
}

/// What an export or import did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Transferred {
    /// Epochs that were written.
    pub epochs: u64,
    /// Versions of the template that were written.
    pub templates: u64,
    /// Epochs that the store of an import had already.
    pub known_epochs: u64,
    /// Versions of the template that the store of an import had already.
    pub known_templates: u64,
}

/// Writes everything that a store keeps, oldest epochs of a conversation first.
pub fn export(store: &dyn Store, out: &mut dyn Write) -> Result<Transferred, TransferError> {
    let mut writer = Writer { out, seen: BTreeSet::new(), done: Transferred::default() };
    writer.line(&Record::Header { version: 1 })?;
    let newest = store.template_versions(None, usize::MAX)?;
    for template in newest.into_iter().rev() {
        writer.line(&Record::Template(template))?;
        writer.done.templates += 1;
    }
    // A conversation that gets an epoch meanwhile moves to the beginning of the list, past what was read: the list is
    // read again until it has nothing new.
    let mut written = BTreeSet::new();
    while writer.conversations(store, &mut written)? {}
    Ok(writer.done)
}

struct Writer<'w> {
    out: &'w mut dyn Write,
    seen: BTreeSet<Digest>,
    done: Transferred,
}

impl Writer<'_> {
    fn line(&mut self, record: &Record) -> Result<(), TransferError> {
        let line =
            serde_json::to_string(record).map_err(|error| TransferError::Line(0, error.to_string()))?;
        writeln!(self.out, "{line}").map_err(|error| TransferError::Write(error.to_string()))
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
                let id = &conversation.conversation;
                for head in store.epochs(&conversation.conversation)? {
                    if let Some(epoch) = store.epoch(&head.conversation, head.number)? {
                        self.epoch(epoch)?;
                    }
                }
                for record in store.calls(id)? {
                    self.line(&Record::Call { conversation: id.clone(), record })?;
                }
            }
            match page.next {
                Some(next) => query.after = Some(next),
                None => return Ok(written.len() > before),
            }
        }
    }

    fn text(&mut self, text: String) -> Result<String, TransferError> {
        let digest = Digest::new(text.as_bytes());
        if self.seen.insert(digest) {
            self.line(&Record::Text { digest: digest.hex(), text })?;
        }
        Ok(digest.hex())
    }

    fn epoch(&mut self, epoch: Epoch) -> Result<(), TransferError> {
        let Epoch { head, prompt, request } = epoch;
        let mut texts = BTreeMap::new();
        for (carrier, text) in prompt.texts {
            texts.insert(carrier, self.text(text)?);
        }
        let (description, request) = (self.text(prompt.description)?, self.text(request)?);
        self.done.epochs += 1;
        self.line(&Record::Epoch { head: Box::new(head), texts, description, request })
    }
}

/// Reads an export into a store. What is there already and the same is left alone; what is there and other is an
/// error, and nothing is ever replaced.
pub fn import(store: &dyn Store, lines: &mut dyn BufRead) -> Result<Transferred, TransferError> {
    let (mut texts, mut done) = (HashMap::<String, String>::new(), Transferred::default());
    let mut calls = HashMap::new();
    for (index, line) in lines.lines().enumerate() {
        let line = line.map_err(|error| unreadable(index + 1, &error))?;
        if line.trim().is_empty() {
            continue;
        }
        let bad = |why: String| TransferError::Line(index + 1, why);
        match Record::parse(&line).map_err(bad)? {
            Record::Header { version: 1 } => {}
            Record::Header { version } => {
                return Err(bad(format!("it is of form {version}, which this proem does not know")));
            }
            Record::Template(template) => {
                TemplateVersion::check(&template.text, template.author.as_deref())
                    .map_err(|why| bad(fixable(&why)))?;
                match take_template(store, &template).map_err(|error| error.at(index + 1))? {
                    Taken::New => done.templates += 1,
                    Taken::Known => done.known_templates += 1,
                }
            }
            Record::Text { digest, text } => {
                if Digest::new(text.as_bytes()).hex() != digest {
                    return Err(bad(format!("the text is not that of the digest {digest}")));
                }
                texts.insert(digest, text);
            }
            Record::Epoch { head, texts: wanted, description, request } => {
                let find = |digest: &String| {
                    texts
                        .get(digest)
                        .cloned()
                        .ok_or_else(|| bad(format!("the text {digest} does not stand before it")))
                };
                let own = wanted.iter().map(|(carrier, digest)| Ok((*carrier, find(digest)?)));
                let texts = own.collect::<Result<_, TransferError>>()?;
                let prompt = StoredPrompt::new(texts, find(&description)?);
                let epoch = Epoch { head: *head, prompt, request: find(&request)? };
                if !is_conversation_id(&epoch.head.conversation) {
                    return Err(bad("invalid conversation id".into()));
                }
                epoch.head.check().map_err(|why| bad(fixable(&why)))?;
                // What could not be read afterwards must not be acknowledged.
                LoadedEpoch::from_stored(epoch.clone()).map_err(|error| bad(error.to_string()))?;
                let EpochHead { conversation, number, .. } = &epoch.head;
                let is_known = store.epoch(conversation, *number)?.is_some();
                if store.open(&epoch)? != epoch {
                    let why = format!("the store has another epoch {number} of `{conversation}`");
                    return Err(TransferError::Taken(index + 1, why));
                }
                *(if is_known { &mut done.known_epochs } else { &mut done.epochs }) += 1;
            }
            Record::Call { conversation, record } => {
                check_text("conversation", &conversation).map_err(|why| bad(fixable(&why)))?;
                check_text("record", &record).map_err(|why| bad(fixable(&why)))?;
                take_call(store, &mut calls, &conversation, &record)?;
            }
        }
    }
    Ok(done)
}

fn unreadable(line: usize, error: &std::io::Error) -> TransferError {
    match error.kind() {
        std::io::ErrorKind::InvalidData => TransferError::Line(line, "it is not UTF-8".into()),
        _ => TransferError::Read(error.to_string()),
    }
}

impl Record {
    /// Parses one line of an export.
    pub fn parse(line: &str) -> Result<Self, String> {
        serde_json::from_str(line).map_err(|error| {
            // The line that the parser counts is always the first.
            let (said, column) = (error.to_string(), error.column());
            let why = said.split(" at line ").next().unwrap_or(&said);
            if column == 0 { why.to_owned() } else { format!("column {column}: {why}") }
        })
    }
}

/// Says what to do about a field that no store takes any more; texts and digests stay as they are.
fn fixable(why: &str) -> String {
    format!("{why}; edit this field of this line, and import again")
}

/// Adds a call, unless the conversation has it: what a first import brought, a second one must not bring again.
fn take_call(
    store: &dyn Store,
    known: &mut HashMap<String, Vec<String>>,
    conversation: &str,
    record: &str,
) -> Result<(), TransferError> {
    if !known.contains_key(conversation) {
        known.insert(conversation.to_owned(), store.calls(conversation)?);
    }
    let there = known.entry(conversation.to_owned()).or_default();
    match there.iter().position(|one| *one == record) {
        Some(index) => drop(there.remove(index)),
        None => drop(store.add_call(conversation, record)?),
    }
    Ok(())
}

/// The outcome of importing one record.
enum Taken {
    New,
    Known,
}

fn take_template(store: &dyn Store, template: &TemplateVersion) -> Result<Taken, TransferError> {
    if let Some(known) = store.template_version(template.version)? {
        let is_same = known.text == template.text;
        let why = format!("the store has another version {} of the template", template.version);
        return if is_same { Ok(Taken::Known) } else { Err(TransferError::Taken(0, why)) };
    }
    store.restore_template(template)?;
    Ok(Taken::New)
}

/// Why an export or import stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransferError {
    /// The store did not do its work.
    Store(StoreError),
    /// A line is not what it should be.
    Line(usize, String),
    /// A line brings something that the store has otherwise.
    Taken(usize, String),
    /// The input cannot be read.
    Read(String),
    /// The output cannot be written.
    Write(String),
}

impl TransferError {
    fn at(self, line: usize) -> Self {
        match self {
            Self::Line(_, why) => Self::Line(line, why),
            Self::Taken(_, why) => Self::Taken(line, why),
            other => other,
        }
    }
}

impl From<StoreError> for TransferError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl std::fmt::Display for TransferError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Store(error) => error.fmt(formatter),
            Self::Line(line, why) | Self::Taken(line, why) => write!(formatter, "line {line}: {why}"),
            Self::Read(why) => write!(formatter, "cannot read the export: {why}"),
            Self::Write(why) => write!(formatter, "cannot write the export: {why}"),
        }
    }
}

impl std::error::Error for TransferError {}

/// An epoch as one JSON text, for a row that is soon gone.
pub(crate) fn epoch_json(epoch: &Epoch) -> Result<String, StoreError> {
    let Epoch { head, prompt, request } = epoch.clone();
    let record =
        Record::Epoch { head: Box::new(head), texts: prompt.texts, description: prompt.description, request };
    serde_json::to_string(&record).map_err(|error| damaged(&error))
}

/// Reads such a text.
pub(crate) fn epoch_of_json(text: &str) -> Result<Epoch, StoreError> {
    match serde_json::from_str(text).map_err(|error| damaged(&error))? {
        Record::Epoch { head, texts, description, request } => {
            Ok(Epoch { head: *head, prompt: StoredPrompt::new(texts, description), request })
        }
        _ => Err(StoreError::Damaged { what: "a compaction".into(), why: "it holds no prompt".into() }),
    }
}

fn damaged(error: &serde_json::Error) -> StoreError {
    StoreError::Damaged { what: "a compaction".into(), why: error.to_string() }
}
