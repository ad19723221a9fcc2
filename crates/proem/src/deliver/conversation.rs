//! The conversation as a provider gets it: what was sent before as it was, the newest message with what
//! rides beside it.

use super::json::{Fields, Json, field, without_key};
use super::message::RawMessage;
use super::shape::{Block, Shape, Takes};
use super::{Provider, Texts};
use crate::error::Error;

/// The messages of a call, in the provider's shape.
#[derive(Debug)]
pub(crate) struct Conversation {
    shape: Shape,
    items: Vec<Item>,
}

/// One message.
#[derive(Debug, Clone)]
struct Item {
    role: Option<String>,
    json: Json,
    /// How many blocks it has.
    blocks: usize,
    is_answer: bool,
}

impl Conversation {
    /// Checks the messages and puts what rides with the user's words beside the newest of them. Everything
    /// before that is left as it is, because it was sent so.
    pub(crate) fn of(
        provider: Provider,
        shape: Shape,
        messages: &[RawMessage],
        texts: &Texts<'_>,
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

    /// Tells whether the user says something that text can ride with.
    pub(crate) fn has_newest(&self) -> bool {
        self.newest().is_some()
    }

    /// The user's newest words, if they come last.
    fn newest(&self) -> Option<usize> {
        let last = self.items.len().checked_sub(1)?;
        self.items.get(last).filter(|item| self.is_of_user(item) && !item.is_answer).map(|_| last)
    }

    fn is_of_user(&self, item: &Item) -> bool {
        item.role.as_deref() == self.shape.roles.first().copied()
    }

    fn add_carriers(&mut self, texts: &Texts<'_>) -> Result<(), serde_json::Error> {
        let Some(newest) = self.newest() else { return Ok(()) };
        self.write_as_blocks(newest)?;
        // Items without a role are the model's calls and their results.
        let is_of_model = |item: &Item| item.role.as_deref().is_none_or(|role| role == self.shape.assistant);
        let is_first = !self.items.iter().any(is_of_model);
        let first = texts.first_user.filter(|_| is_first);
        // Of several first messages of the user, the text stands before the very first.
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

    /// Writes the newest words as blocks where a marker will stand behind them: what is kept must be what is
    /// sent.
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

    /// The messages to keep: as they are sent, without markers.
    pub(crate) fn history(&self) -> Vec<Json> {
        self.items.iter().map(|item| item.json.clone()).collect()
    }

    /// The blocks of the newest message, for those who take nothing else.
    pub(crate) fn newest_blocks(&self) -> Result<Vec<Json>, serde_json::Error> {
        self.newest()
            .and_then(|index| self.items.get(index))
            .map_or(Ok(Vec::new()), |item| blocks_of(&item.json, self.shape))
    }

    /// The texts of the newest message.
    pub(crate) fn newest_texts(&self) -> Result<Vec<String>, serde_json::Error> {
        Ok(self.newest_blocks()?.iter().filter_map(text_of).collect())
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
        // The request before ended with the user's message before an answer of the model.
        let answer = self.items.iter().take(newest).rposition(|item| !self.is_of_user(item));
        let before = answer.and_then(|answer| of_user.iter().rev().find(|index| **index < answer));
        if let Some(&before) = before {
            let between: usize =
                self.items.iter().take(newest + 1).skip(before + 1).map(|item| item.blocks).sum();
            if between >= lookback {
                marked.push(before);
            }
        }
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
    fn set_content(&mut self, shape: Shape, content: Json) -> Result<(), serde_json::Error> {
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
fn plain_text(message: &Json, shape: Shape) -> Result<Option<String>, serde_json::Error> {
    let Json::Object(fields) = message.clone().opened()? else { return Ok(None) };
    Ok(match field(&fields, shape.content).cloned().map(Json::opened).transpose()? {
        Some(Json::Text(text)) => Some(text),
        _ => None,
    })
}

/// The blocks of a message; a text is one.
fn blocks_of(message: &Json, shape: Shape) -> Result<Vec<Json>, serde_json::Error> {
    let Json::Object(fields) = message.clone().opened()? else { return Ok(Vec::new()) };
    match field(&fields, shape.content).cloned().map(Json::opened).transpose()? {
        Some(Json::List(blocks)) => Ok(blocks),
        Some(Json::Text(text)) => Ok(vec![shape.text_block(&text)]),
        _ => Ok(Vec::new()),
    }
}

/// Reads messages, and refuses what the provider would.
struct Reader {
    provider: Provider,
    shape: Shape,
}

impl Reader {
    fn refuse(&self, index: usize, why: &str) -> Error {
        Error::Message { index, provider: self.provider, why: why.to_owned() }
    }

    fn item(&self, index: usize, message: &RawMessage) -> Result<Item, Error> {
        let unread = |error: serde_json::Error| self.refuse(index, &error.to_string());
        let fields = message.fields().map_err(unread)?;
        let Some(role) = field(&fields, "role").and_then(Json::text) else {
            if !self.shape.takes_items {
                return Err(self.refuse(index, "it has no `role`"));
            }
            return Ok(Item {
                role: None,
                json: self.without_markers(message, index)?,
                blocks: 1,
                is_answer: false,
            });
        };
        let is_plain = matches!(
            field(&fields, "content").map(|content| content.clone().opened()),
            Some(Ok(Json::Text(_)))
        );
        if is_plain && self.shape.takes == Takes::Blocks {
            return self.plain(index, &role, &fields);
        }
        self.check_role(index, &role)?;
        let json = self.without_markers(message, index)?;
        let blocks = blocks_of(&json, self.shape).map_err(unread)?;
        self.check_content(index, &role, &fields, &blocks)?;
        let opened: Vec<Fields> = blocks.iter().filter_map(opened_fields).collect();
        let is_answer = opened.iter().any(|block| self.shape.is_answer(block));
        Ok(Item { role: Some(role), json, blocks: blocks.len().max(1), is_answer })
    }

    /// A message of plain text for a provider that takes blocks alone.
    fn plain(&self, index: usize, role: &str, fields: &Fields) -> Result<Item, Error> {
        let role = if role == "assistant" { self.shape.assistant } else { role };
        self.check_role(index, role)?;
        let text = field(fields, "content").and_then(Json::text).unwrap_or_default();
        let block = self.shape.text_block(&text);
        self.check_content(index, role, fields, std::slice::from_ref(&block))?;
        let json =
            super::json::object([("role", role.into()), (self.shape.content, Json::List(vec![block]))]);
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
        let has_calls = field(fields, "tool_calls").is_some() || field(fields, "function_call").is_some();
        if blocks.is_empty() && !has_calls {
            return Err(self.refuse(index, &format!("it has no `{}`", self.shape.content)));
        }
        let is_blank = |block: &Json| text_of(block).is_some_and(|text| text.trim().is_empty());
        if self.shape.is_of_claude && blocks.iter().any(is_blank) {
            return Err(self.refuse(index, "it has a block without text"));
        }
        let is_of_user = Some(role) == self.shape.roles.first().copied();
        if is_of_user && !blocks.is_empty() && blocks.iter().all(is_blank) {
            return Err(self.refuse(index, "the user says nothing in it"));
        }
        let content = field(fields, self.shape.content).cloned().map(Json::opened);
        if self.shape.takes == Takes::Text && matches!(content, Some(Ok(Json::List(_)))) {
            return Err(self.refuse(index, "its content is a list, and must be one text"));
        }
        Ok(())
    }

    /// Refuses what would stand beside the system prompt or answer nothing.
    fn check_order(&self, items: &[Item]) -> Result<(), Error> {
        let is_of_system = |item: &Item| matches!(item.role.as_deref(), Some("system" | "developer"));
        match items.first() {
            Some(first) if is_of_system(first) => {
                Err(self.refuse(0, "it is a system prompt, which proem sends itself: leave it out"))
            }
            _ => Ok(()),
        }
    }

    /// Removes cache markers of earlier calls: they are no part of what was said, and there may be only few.
    fn without_markers(&self, message: &RawMessage, index: usize) -> Result<Json, Error> {
        let Some(marker) = self.shape.marker else { return Ok(message.json()) };
        let unread = |error: serde_json::Error| self.refuse(index, &error.to_string());
        let json = without_key(message.json(), marker).map_err(unread)?;
        if marker != "cachePoint" || matches!(json, Json::Raw(_)) {
            return Ok(json);
        }
        // Where a marker is a block of its own, an empty object is left of it.
        let Json::Object(mut fields) = json else { return Ok(json) };
        for (_, value) in fields.iter_mut().filter(|(key, _)| key == self.shape.content) {
            if let Json::List(blocks) = value {
                blocks.retain(|block| !matches!(block, Json::Object(fields) if fields.is_empty()));
            }
        }
        Ok(Json::Object(fields))
    }
}

fn opened_fields(block: &Json) -> Option<Fields> {
    match block.clone().opened().ok()? {
        Json::Object(fields) => Some(fields),
        _ => None,
    }
}
