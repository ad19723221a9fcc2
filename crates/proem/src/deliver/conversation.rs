//! The conversation in a provider's shape: earlier messages unchanged, the newest one with the text that accompanies
//! it.

use super::notice::system_message;
use super::shape::{Block, MessageShape, Takes};
use super::{PromptTexts, Provider};
use crate::error::{Error, ErrorCause};
use crate::request::message::RawMessage;
use crate::request::raw_json::{Fields, Json, field, without_key};

/// The messages of a call, in the provider's shape.
#[derive(Debug)]
pub(crate) struct Conversation {
    shape: MessageShape,
    items: Vec<Item>,
}

/// One message.
#[derive(Debug, Clone)]
struct Item {
    role: Option<String>,
    json: Json,
    /// The number of blocks.
    blocks: usize,
    is_answer: bool,
}

impl Conversation {
    /// Checks the messages and adds the text for this turn to the newest message of the user. Earlier messages stay
    /// as they are, because they were sent so.
    pub(crate) fn new(
        provider: Provider,
        shape: MessageShape,
        messages: &[RawMessage],
        texts: &PromptTexts<'_>,
    ) -> Result<Self, Error> {
        let reader = Reader { provider, shape };
        let items = messages.iter().enumerate().map(|(index, message)| reader.item(index, message));
        let mut conversation = Self { shape, items: items.collect::<Result<_, _>>()? };
        reader.check_order(&conversation.items)?;
        conversation
            .add_carriers(texts)
            .map_err(|error| reader.refuse(messages.len(), &error.to_string()))?;
        Ok(conversation)
    }

    /// Tells whether the model spoke last.
    pub(crate) fn ends_with_model(&self) -> bool {
        self.items.last().is_some_and(|item| item.role.as_deref() == Some(self.shape.assistant))
    }

    /// The user's newest message, if it comes last.
    fn newest(&self) -> Option<usize> {
        let last = self.items.len().checked_sub(1)?;
        self.items.get(last).filter(|item| self.is_of_user(item) && !item.is_answer).map(|_| last)
    }

    fn is_of_user(&self, item: &Item) -> bool {
        item.role.as_deref() == self.shape.roles.first().copied()
    }

    fn add_carriers(&mut self, texts: &PromptTexts<'_>) -> Result<(), serde_json::Error> {
        if let Some(last) = self.items.iter().rposition(|item| self.is_of_user(item)) {
            self.write_as_blocks(last)?;
        }
        let Some(newest) = self.newest() else { return Ok(()) };
        // Items without a role are the model's calls and their results.
        let is_of_model = |item: &Item| item.role.as_deref().is_none_or(|role| role == self.shape.assistant);
        let is_first = !self.items.iter().any(is_of_model);
        let first = texts.first_user.filter(|_| is_first);
        // If several messages of the user come first, the text is placed before the very first.
        let user = self.shape.roles.first().copied();
        let before = self.items.iter().position(|item| item.role.as_deref() == user).unwrap_or(newest);
        if let Some(text) = first {
            self.add(before, text, Side::Before)?;
        }
        if let Some(text) = texts.turn {
            self.add(newest, text, Side::Behind)?;
        }
        Ok(())
    }

    /// Writes the newest message as blocks if a marker will follow it: the stored form must equal the sent form.
    fn write_as_blocks(&mut self, newest: usize) -> Result<(), serde_json::Error> {
        let shape = self.shape;
        match self.items.get_mut(newest) {
            Some(item) if shape.is_of_claude && plain_text(&item.json, shape)?.is_some() => {
                let blocks = blocks_of(&item.json, shape)?;
                item.set_content(shape, Json::List(blocks))
            }
            _ => Ok(()),
        }
    }

    /// Adds a block, unless it is there: a call that failed is made again with the same messages.
    fn add(&mut self, index: usize, text: &str, side: Side) -> Result<(), serde_json::Error> {
        let shape = self.shape;
        let Some(item) = self.items.get_mut(index) else { return Ok(()) };
        if shape.block == Block::Joined
            && let Some(said) = plain_text(&item.json, shape)?
        {
            if !has_text(&said, text, side) {
                let joined = match side {
                    Side::Before => format!("{text}\n\n{said}"),
                    Side::Behind => format!("{said}\n\n{text}"),
                };
                item.set_content(shape, Json::Text(joined))?;
            }
            return Ok(());
        }
        let mut blocks = blocks_of(&item.json, shape)?;
        let at = match side {
            Side::Before => blocks.first(),
            Side::Behind => blocks.last(),
        };
        if at.is_some_and(|block| text_of(block).as_deref() == Some(text)) {
            return Ok(());
        }
        match side {
            Side::Before => blocks.insert(0, shape.text_block(text)),
            Side::Behind => blocks.push(shape.text_block(text)),
        }
        item.blocks = blocks.len();
        item.set_content(shape, Json::List(blocks))
    }

    /// Adds a block before the others of a message of the user.
    pub(super) fn add_before(&mut self, index: usize, text: &str) -> Result<(), serde_json::Error> {
        self.add(index, text, Side::Before)
    }

    /// Adds a message of the system at the end.
    pub(super) fn push_system(&mut self, notices: &[&str]) {
        let json = system_message(notices, self.shape.is_of_claude);
        let (role, blocks) = (Some("system".to_owned()), notices.len());
        self.items.push(Item { role, json, blocks, is_answer: false });
    }

    /// The messages to keep: as they are sent, without markers.
    pub(crate) fn history(&self) -> Vec<Json> {
        self.items.iter().map(|item| item.json.clone()).collect()
    }

    /// The blocks of the newest message, for providers that accept only blocks.
    pub(crate) fn newest_blocks(&self) -> Result<Vec<Json>, serde_json::Error> {
        self.newest()
            .and_then(|index| self.items.get(index))
            .map_or(Ok(Vec::new()), |item| blocks_of(&item.json, self.shape))
    }

    /// The texts of the newest message, and how many of its blocks are none.
    pub(crate) fn newest_texts(&self) -> Result<(Vec<String>, usize), serde_json::Error> {
        let blocks = self.newest_blocks()?;
        let texts: Vec<String> = blocks.iter().filter_map(text_of).collect();
        let others = blocks.len() - texts.len();
        Ok((texts, others))
    }

    /// Marks the ends of the newest and, where it is too far away to be found from there, of the last request.
    pub(crate) fn mark(
        &mut self,
        lookback: usize,
        mark: impl Fn(Vec<Json>) -> Result<Vec<Json>, serde_json::Error>,
    ) -> Result<usize, serde_json::Error> {
        let of_user: Vec<usize> = (0..self.items.len())
            .filter(|index| self.items.get(*index).is_some_and(|item| self.is_of_user(item)))
            .collect();
        let Some(&newest) = of_user.last() else { return Ok(0) };
        let mut marked = vec![newest];
        // The previous request ended with a message of the user: the one before an answer of the model, or, if that
        // call failed, the one just before this.
        let answer = self.items.iter().take(newest).rposition(|item| !self.is_of_user(item));
        let before_answer = answer.and_then(|answer| of_user.iter().rev().find(|index| **index < answer));
        let just_before = newest.checked_sub(1).filter(|index| of_user.contains(index));
        let far = |before: &&usize| {
            let between = self.items.iter().take(newest + 1).skip(**before + 1).map(|item| item.blocks);
            between.sum::<usize>() >= lookback
        };
        marked.extend(just_before.iter().chain(before_answer).find(far));
        let count = marked.len();
        for index in marked {
            let shape = self.shape;
            if let Some(item) = self.items.get_mut(index) {
                let blocks = mark(blocks_of(&item.json, shape)?)?;
                item.set_content(shape, Json::List(blocks))?;
            }
        }
        Ok(count)
    }

    /// The messages as they are sent.
    pub(crate) fn into_json(self) -> Vec<Json> {
        self.items.into_iter().map(|item| item.json).collect()
    }
}

#[derive(Debug, Clone, Copy)]
enum Side {
    Before,
    Behind,
}

fn has_text(said: &str, text: &str, side: Side) -> bool {
    match side {
        Side::Before => {
            said.strip_prefix(text).is_some_and(|rest| rest.is_empty() || rest.starts_with("\n\n"))
        }
        Side::Behind => said.strip_suffix(text).is_some_and(|rest| rest.is_empty() || rest.ends_with("\n\n")),
    }
}

impl Item {
    fn set_content(&mut self, shape: MessageShape, content: Json) -> Result<(), serde_json::Error> {
        if let Json::Object(mut fields) = std::mem::replace(&mut self.json, Json::Bool(false)).opened()? {
            match fields.iter_mut().find(|(key, _)| key == shape.content) {
                Some((_, value)) => *value = content,
                None => fields.push((shape.content.to_owned(), content)),
            }
            self.json = Json::Object(fields);
        }
        Ok(())
    }
}

/// The text of a block.
fn text_of(block: &Json) -> Option<String> {
    match block.clone().opened().ok()? {
        Json::Object(fields) => field(&fields, "text").and_then(Json::text),
        Json::Text(text) => Some(text),
        _ => None,
    }
}

/// The content of a message that is nothing but text.
fn plain_text(message: &Json, shape: MessageShape) -> Result<Option<String>, serde_json::Error> {
    let Json::Object(fields) = message.clone().opened()? else { return Ok(None) };
    Ok(match field(&fields, shape.content).cloned().map(Json::opened).transpose()? {
        Some(Json::Text(text)) => Some(text),
        _ => None,
    })
}

/// The blocks of a message; a text is one.
fn blocks_of(message: &Json, shape: MessageShape) -> Result<Vec<Json>, serde_json::Error> {
    let Json::Object(fields) = message.clone().opened()? else { return Ok(Vec::new()) };
    match field(&fields, shape.content).cloned().map(Json::opened).transpose()? {
        Some(Json::List(blocks)) => Ok(blocks),
        Some(Json::Text(text)) => Ok(vec![shape.text_block(&text)]),
        _ => Ok(Vec::new()),
    }
}

/// Reads messages, and refuses those that the provider would refuse.
struct Reader {
    provider: Provider,
    shape: MessageShape,
}

impl Reader {
    fn refuse(&self, index: usize, why: &str) -> Error {
        Error::Message { index, provider: self.provider.word(), why: why.to_owned(), cause: ErrorCause::NONE }
    }

    fn item(&self, index: usize, message: &RawMessage) -> Result<Item, Error> {
        let unread = |error: serde_json::Error| self.refuse(index, &error.to_string());
        let fields = message.fields().map_err(unread)?;
        let Some(role) = field(&fields, "role").and_then(Json::text) else {
            if !self.shape.takes_items {
                return Err(self.refuse(index, "it has no `role`"));
            }
            return Ok(Item { role: None, json: message.json(), blocks: 1, is_answer: false });
        };
        let is_plain = matches!(
            field(&fields, "content").map(|content| content.clone().opened()),
            Some(Ok(Json::Text(_)))
        );
        if is_plain && self.shape.takes == Takes::Blocks {
            return self.plain(index, &role, &fields);
        }
        self.check_role(index, &role)?;
        let mut item = Item { role: Some(role.clone()), json: message.json(), blocks: 0, is_answer: false };
        let mut blocks = blocks_of(&item.json, self.shape).map_err(unread)?;
        self.check_content(index, &role, &fields, &blocks)?;
        if let Some(unmarked) = self.unmarked(&blocks, 0).map_err(unread)? {
            item.set_content(self.shape, Json::List(unmarked.clone())).map_err(unread)?;
            blocks = unmarked;
        }
        let opened: Vec<Fields> = blocks.iter().filter_map(opened_fields).collect();
        let is_answer = opened.iter().any(|block| self.shape.is_answer(block));
        Ok(Item { blocks: blocks.len().max(1), is_answer, ..item })
    }

    /// A message of plain text for a provider that takes blocks alone.
    fn plain(&self, index: usize, role: &str, fields: &Fields) -> Result<Item, Error> {
        let role = if role == "assistant" { self.shape.assistant } else { role };
        self.check_role(index, role)?;
        let text = field(fields, "content").and_then(Json::text).unwrap_or_default();
        let block = self.shape.text_block(&text);
        if text.trim().is_empty()
            && (self.shape.is_of_claude || Some(role) == self.shape.roles.first().copied())
        {
            return Err(self.refuse(index, "it has a block without text"));
        }
        let json = crate::request::raw_json::object([
            ("role", role.into()),
            (self.shape.content, Json::List(vec![block])),
        ]);
        Ok(Item { role: Some(role.to_owned()), json, blocks: 1, is_answer: false })
    }

    fn check_role(&self, index: usize, role: &str) -> Result<(), Error> {
        if self.shape.roles.contains(&role) {
            return Ok(());
        }
        let roles = self.shape.roles.join(", ");
        Err(self.refuse(index, &format!("its role is `{role}`, and {} knows: {roles}", self.provider)))
    }

    fn check_content(&self, index: usize, role: &str, fields: &Fields, blocks: &[Json]) -> Result<(), Error> {
        let content = field(fields, self.shape.content).cloned().map(Json::opened);
        let refuse = |why: &str| Err(self.refuse(index, why));
        match content {
            // The model's output may be in other fields, such as tool calls.
            None | Some(Ok(Json::Raw(_))) if role == self.shape.assistant && fields.len() > 1 => {}
            None => return refuse(&format!("it has no `{}`", self.shape.content)),
            Some(Ok(Json::List(_))) if self.shape.takes == Takes::Text => {
                return refuse("its content is a list, and must be one text");
            }
            Some(Ok(Json::List(list))) if list.is_empty() && fields.len() <= 2 => {
                return refuse(&format!("its `{}` is empty", self.shape.content));
            }
            Some(Ok(Json::List(list))) if list.iter().any(|block| opened_fields(block).is_none()) => {
                return refuse("a block of its content is not an object, or has a key twice");
            }
            Some(Ok(Json::List(_) | Json::Text(_))) => {}
            Some(_) => {
                return refuse(&format!("its `{}` is neither text nor a list of blocks", self.shape.content));
            }
        }
        let is_blank = |block: &Json| text_of(block).is_some_and(|text| text.trim().is_empty());
        if self.shape.is_of_claude && blocks.iter().any(is_blank) {
            return refuse("it has a block without text");
        }
        let is_of_user = Some(role) == self.shape.roles.first().copied();
        if is_of_user && !blocks.is_empty() && blocks.iter().all(is_blank) {
            return refuse("the user says nothing in it");
        }
        Ok(())
    }

    /// Refuses messages that compete with the system prompt, and tool results without a call.
    fn check_order(&self, items: &[Item]) -> Result<(), Error> {
        let is_of_system = |item: &Item| matches!(item.role.as_deref(), Some("system" | "developer"));
        match items.first() {
            Some(first) if is_of_system(first) => {
                Err(self.refuse(0, "it is a system prompt, which proem sends itself: leave it out"))
            }
            _ => Ok(()),
        }
    }

    /// Returns the blocks of a message without cache markers of earlier calls: a marker is not part of the message,
    /// and providers limit their number. Only blocks can carry one: data inside a tool's input is the model's own.
    /// `None` when no block has a marker.
    fn unmarked(&self, blocks: &[Json], depth: usize) -> Result<Option<Vec<Json>>, serde_json::Error> {
        let Some(marker) = self.shape.marker else { return Ok(None) };
        let (mut kept, mut is_changed) = (Vec::new(), false);
        for block in blocks {
            let Json::Object(fields) = block.clone().opened()? else {
                kept.push(block.clone());
                continue;
            };
            let without = without_key(&fields, marker);
            is_changed |= without.is_some();
            // A marker that is a block of its own leaves nothing.
            if without.as_ref().is_some_and(Vec::is_empty) {
                continue;
            }
            let inner = self.unmarked_answer(without.as_ref().unwrap_or(&fields), depth)?;
            is_changed |= inner.is_some();
            kept.push(inner.or(without).map_or_else(|| block.clone(), Json::Object));
        }
        Ok(is_changed.then_some(kept))
    }

    /// The answer of a tool may be blocks again.
    fn unmarked_answer(&self, fields: &Fields, depth: usize) -> Result<Option<Fields>, serde_json::Error> {
        if depth > 0 || !self.shape.is_answer(fields) {
            return Ok(None);
        }
        let Some(Json::List(blocks)) = field(fields, "content").cloned().map(Json::opened).transpose()?
        else {
            return Ok(None);
        };
        let Some(blocks) = self.unmarked(&blocks, depth + 1)? else { return Ok(None) };
        let blocks = Json::List(blocks);
        let replaced = fields
            .iter()
            .map(|(key, value)| (key.clone(), if key == "content" { blocks.clone() } else { value.clone() }));
        Ok(Some(replaced.collect()))
    }
}

fn opened_fields(block: &Json) -> Option<Fields> {
    match block.clone().opened().ok()? {
        Json::Object(fields) => Some(fields),
        _ => None,
    }
}
