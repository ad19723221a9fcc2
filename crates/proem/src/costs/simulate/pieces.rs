//! A payload as the provider's cache sees it: a row of blocks, tools first, then the system prompt, then
//! the messages. The order of keys is part of what is compared.

use proem_core::digest::Digest;

use super::Payload;
use crate::request::raw_json::{Fields, Json, field, without_key};
use crate::settings::tokens::Tokenizer;

/// What an image takes, about: nobody counts its bytes as text.
const IMAGE_TOKENS: usize = 1_500;

/// Where a piece stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
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
pub(crate) enum Mark {
    Short,
    Hour,
}

/// One block.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    pub(crate) part: Part,
    pub(crate) text: String,
    pub(crate) tokens: usize,
    pub(crate) mark: Option<Mark>,
}

/// A request as a row of blocks.
#[derive(Debug, Clone)]
pub(crate) struct Pieces {
    pub(crate) list: Vec<Piece>,
    /// The model that the request names: another one has a cache of its own.
    pub(crate) model: String,
}

impl Pieces {
    /// Reads any of the payloads that proem makes. Servers of open models print the system prompt first.
    pub(crate) fn of(
        payload: &Payload,
        tokenizer: Tokenizer,
        is_chat_template: bool,
    ) -> Result<Self, serde_json::Error> {
        let fields = payload.fields()?;
        let mut reader = Reader { tokenizer, list: Vec::new() };
        reader.list_of(Part::Tools, field(&fields, "tools"), "tool")?;
        reader.inside(&fields, "toolConfig", "tools", Part::Tools)?;
        reader.list_of(Part::System, field(&fields, "system"), "system")?;
        reader.inside(&fields, "systemInstruction", "parts", Part::System)?;
        reader.list_of(Part::System, field(&fields, "instructions"), "system")?;
        // Another choice of tools leaves the system prompt alone, and nothing behind it.
        if let Some(choice) = field(&fields, "tool_choice").or_else(|| field(&fields, "toolChoice")) {
            reader.list.push(Piece { part: Part::Messages, text: written(choice)?, tokens: 0, mark: None });
        }
        for key in ["messages", "input", "contents"] {
            reader.messages(field(&fields, key))?;
        }
        let mut list = reader.list;
        if is_chat_template {
            list.sort_by_key(|piece| match piece.part {
                Part::System => 0,
                Part::Tools => 1,
                Part::Messages => 2,
            });
        }
        let model = field(&fields, "model").or_else(|| field(&fields, "modelId")).and_then(Json::text);
        Ok(Self { list, model: model.unwrap_or_default() })
    }

    /// All tokens.
    pub(crate) fn tokens(&self) -> usize {
        self.list.iter().map(|piece| piece.tokens).sum()
    }

    /// The texts, one after the other.
    pub(crate) fn text(&self) -> String {
        self.list.iter().map(|piece| piece.text.as_str()).collect()
    }

    /// For each piece, a digest of everything up to its end, and how many tokens that is.
    pub(crate) fn ends(&self) -> Vec<(Digest, usize)> {
        let (mut ends, mut before, mut tokens) = (Vec::new(), self.model.clone(), 0);
        for piece in &self.list {
            tokens += piece.tokens;
            let digest = Digest::new(format!("{before}\n{}", piece.text).as_bytes());
            before = digest.hex();
            ends.push((digest, tokens));
        }
        ends
    }

    /// Why the pieces of an earlier request are not all at the beginning of this one.
    pub(crate) fn first_change(&self, earlier: &Self) -> Option<&'static str> {
        if self.model != earlier.model {
            return Some("model_changed");
        }
        let same = self.list.iter().zip(&earlier.list).take_while(|(a, b)| a.text == b.text).count();
        earlier.list.get(same).map(|piece| piece.part.change())
    }
}

struct Reader {
    tokenizer: Tokenizer,
    list: Vec<Piece>,
}

type Done = Result<(), serde_json::Error>;

impl Reader {
    fn push(&mut self, part: Part, text: String, mark: Option<Mark>) {
        let tokens = self.tokenizer.count(&text);
        self.list.push(Piece { part, text, tokens, mark });
    }

    /// A list one level down.
    fn inside(&mut self, fields: &Fields, outer: &str, inner: &str, part: Part) -> Done {
        match field(fields, outer).cloned().map(Json::opened).transpose()? {
            Some(Json::Object(fields)) => self.list_of(part, field(&fields, inner), outer),
            _ => Ok(()),
        }
    }

    /// A list of blocks, or one text.
    fn list_of(&mut self, part: Part, blocks: Option<&Json>, role: &str) -> Done {
        match blocks.cloned().map(Json::opened).transpose()? {
            Some(Json::Text(text)) => self.push(part, framed(role, &text), None),
            Some(Json::List(blocks)) => {
                for (index, block) in blocks.into_iter().enumerate() {
                    self.block(part, block, if index == 0 { role } else { "" })?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn messages(&mut self, messages: Option<&Json>) -> Done {
        let Some(Json::List(messages)) = messages.cloned().map(Json::opened).transpose()? else {
            return Ok(());
        };
        let mut is_first = true;
        for message in messages {
            let Json::Object(fields) = message.opened()? else { continue };
            let role = field(&fields, "role").and_then(Json::text).unwrap_or_default();
            let is_of_system = is_first && matches!(role.as_str(), "system" | "developer");
            is_first = is_of_system;
            let part = if is_of_system { Part::System } else { Part::Messages };
            let content = field(&fields, "content").or_else(|| field(&fields, "parts"));
            self.list_of(part, content, &role)?;
            self.other_fields(part, &fields)?;
        }
        Ok(())
    }

    /// What a message says beside its content, such as calls of tools.
    fn other_fields(&mut self, part: Part, fields: &Fields) -> Done {
        let is_other = |key: &str| !matches!(key, "role" | "content" | "parts");
        let others: Fields = fields.iter().filter(|(key, _)| is_other(key)).cloned().collect();
        if !others.is_empty() {
            self.push(part, written(&Json::Object(others))?, None);
        }
        Ok(())
    }

    /// One block: its text, or its JSON; a marker is no part of it.
    fn block(&mut self, part: Part, block: Json, role: &str) -> Done {
        let Json::Object(mut fields) = block.opened()? else { return Ok(()) };
        if let Some(point) = field(&fields, "cachePoint") {
            let mark = mark_of(point)?;
            if let Some(last) = self.list.last_mut() {
                last.mark = Some(mark);
            }
            return Ok(());
        }
        let mut mark = None;
        for key in ["cache_control", "prompt_cache_breakpoint"] {
            if let Some(marker) = field(&fields, key) {
                mark = Some(mark_of(marker)?);
                fields = without_key(&fields, key).unwrap_or(fields);
            }
        }
        let is_text = fields.iter().all(|(key, _)| key == "text" || key == "type");
        let text = match field(&fields, "text").and_then(Json::text) {
            Some(text) if is_text => text,
            _ => written(&Json::Object(fields.clone()))?,
        };
        if is_image(&fields) {
            self.list.push(Piece { part, text, tokens: IMAGE_TOKENS, mark });
        } else {
            self.push(part, framed(role, &text), mark);
        }
        Ok(())
    }
}

/// Tells whether a block is an image, in any of the shapes.
fn is_image(fields: &Fields) -> bool {
    let kind = field(fields, "type").and_then(Json::text).unwrap_or_default();
    matches!(kind.as_str(), "image" | "image_url" | "input_image")
        || ["image", "inlineData", "inline_data"].iter().any(|key| field(fields, key).is_some())
}

fn written(value: &Json) -> Result<String, serde_json::Error> {
    serde_json::to_string(value)
}

/// A text with the word that chat templates put before it.
fn framed(role: &str, text: &str) -> String {
    if role.is_empty() { text.to_owned() } else { format!("<|{role}|>{text}") }
}

fn mark_of(marker: &Json) -> Result<Mark, serde_json::Error> {
    let Json::Object(fields) = marker.clone().opened()? else { return Ok(Mark::Short) };
    let is_hour = field(&fields, "ttl").and_then(Json::text).as_deref() == Some("1h");
    Ok(if is_hour { Mark::Hour } else { Mark::Short })
}
