//! A payload as the provider's cache sees it: a row of blocks, tools first, then the system prompt, then
//! the messages.

use proem_core::digest::Digest;
use serde_json::Value;

use crate::tokens::Tokenizer;

/// Where a piece stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Tools,
    System,
    Messages,
}

impl Part {
    /// The providers' word for a change here.
    const fn change(self) -> &'static str {
        match self {
            Self::Tools => "tools_changed",
            Self::System => "system_changed",
            Self::Messages => "messages_changed",
        }
    }
}

/// How long a marked piece is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    Short,
    Hour,
}

/// One block.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    pub(super) part: Part,
    pub(super) text: String,
    pub(super) tokens: usize,
    pub(super) mark: Option<Mark>,
}

/// A request as a row of blocks.
#[derive(Debug, Clone)]
pub(super) struct Pieces {
    pub(super) list: Vec<Piece>,
}

impl Pieces {
    /// Reads any of the payloads that proem makes. Servers of open models print the system prompt first.
    pub(super) fn of(payload: &Value, tokenizer: Tokenizer, is_chat_template: bool) -> Self {
        let mut reader = Reader { tokenizer, list: Vec::new() };
        reader.list_of(
            Part::Tools,
            payload.get("tools").or_else(|| payload.pointer("/toolConfig/tools")),
            "tool",
        );
        reader.list_of(Part::System, payload.get("system"), "system");
        reader.list_of(Part::System, payload.pointer("/systemInstruction/parts"), "system");
        reader.list_of(Part::System, payload.get("instructions"), "system");
        for key in ["messages", "input", "contents"] {
            reader.messages(payload.get(key));
        }
        let mut list = reader.list;
        if is_chat_template {
            list.sort_by_key(|piece| match piece.part {
                Part::System => 0,
                Part::Tools => 1,
                Part::Messages => 2,
            });
        }
        Self { list }
    }

    /// All tokens.
    pub(super) fn tokens(&self) -> usize {
        self.list.iter().map(|piece| piece.tokens).sum()
    }

    /// The texts, one after the other.
    pub(super) fn text(&self) -> String {
        self.list.iter().map(|piece| piece.text.as_str()).collect()
    }

    /// For each piece, a digest of everything up to its end, and how many tokens that is.
    pub(super) fn ends(&self) -> Vec<(Digest, usize)> {
        let (mut ends, mut before, mut tokens) = (Vec::new(), String::new(), 0);
        for piece in &self.list {
            tokens += piece.tokens;
            let digest = Digest::of(format!("{before}\n{}", piece.text).as_bytes());
            before = digest.hex();
            ends.push((digest, tokens));
        }
        ends
    }

    /// Why the pieces of an earlier request are not all at the beginning of this one.
    pub(super) fn first_change(&self, earlier: &Self) -> Option<&'static str> {
        let same = self.list.iter().zip(&earlier.list).take_while(|(a, b)| a.text == b.text).count();
        earlier.list.get(same).map(|piece| piece.part.change())
    }
}

struct Reader {
    tokenizer: Tokenizer,
    list: Vec<Piece>,
}

impl Reader {
    fn push(&mut self, part: Part, text: String, mark: Option<Mark>) {
        let tokens = self.tokenizer.count(&text);
        self.list.push(Piece { part, text, tokens, mark });
    }

    /// A list of blocks, or one text.
    fn list_of(&mut self, part: Part, blocks: Option<&Value>, role: &str) {
        match blocks {
            Some(Value::String(text)) => self.push(part, framed(role, text), None),
            Some(Value::Array(blocks)) => {
                for (index, block) in blocks.iter().enumerate() {
                    self.block(part, block, if index == 0 { role } else { "" });
                }
            }
            _ => {}
        }
    }

    fn messages(&mut self, messages: Option<&Value>) {
        for message in messages.and_then(Value::as_array).into_iter().flatten() {
            let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
            let is_of_system = matches!(role, "system" | "developer");
            let is_first = self.list.iter().all(|piece| piece.part != Part::Messages);
            let part = if is_of_system && is_first { Part::System } else { Part::Messages };
            let content = message.get("content").or_else(|| message.get("parts"));
            match content {
                Some(Value::String(_) | Value::Array(_)) => self.list_of(part, content, role),
                _ => self.block(part, message, role),
            }
        }
    }

    /// One block: its text, or its JSON; a marker is no part of it.
    fn block(&mut self, part: Part, block: &Value, role: &str) {
        if let Some(point) = block.get("cachePoint") {
            if let Some(last) = self.list.last_mut() {
                last.mark = Some(mark_of(point));
            }
            return;
        }
        let mut said = block.clone();
        let mut mark = None;
        if let Value::Object(fields) = &mut said {
            for key in ["cache_control", "prompt_cache_breakpoint"] {
                mark = fields.remove(key).map(|marker| mark_of(&marker)).or(mark);
            }
        }
        let is_text = said.get("text").is_some_and(Value::is_string)
            && said.as_object().is_some_and(|fields| fields.keys().all(|key| key == "text" || key == "type"));
        let text = match said.get("text").and_then(Value::as_str) {
            Some(text) if is_text => text.to_owned(),
            _ => said.to_string(),
        };
        self.push(part, framed(role, &text), mark);
    }
}

/// A text with the word that chat templates put before it.
fn framed(role: &str, text: &str) -> String {
    if role.is_empty() { text.to_owned() } else { format!("<|{role}|>{text}") }
}

fn mark_of(marker: &Value) -> Mark {
    if marker.get("ttl").and_then(Value::as_str) == Some("1h") { Mark::Hour } else { Mark::Short }
}
