//! The blocks of a request with their texts, in cache order, for every format.

use std::borrow::Cow;

use proem_core::digest::Digest;

use super::json::{self, Fields, field, fields, is_list, items, text, text_field, without};
use super::{Area, Form, LinkKind, ShortDigest};
use crate::inspect::traffic::call::{Call, Wire};
use crate::inspect::traffic::rules::{CacheFacts, TrafficRules};

/// The approximate tokens of an image: its bytes are not counted as text.
const IMAGE_TOKENS: usize = 1_500;

/// One block with its text.
#[derive(Debug, Clone)]
pub(crate) struct Block<'b> {
    pub(crate) part: String,
    pub(crate) area: Area,
    pub(crate) kind: LinkKind,
    pub(crate) role: Cow<'b, str>,
    pub(crate) name: Option<String>,
    pub(crate) form: Form,
    /// The lifetime of its marker, if it has one.
    #[expect(clippy::option_option, reason = "a marker need not name its lifetime")]
    pub(crate) marker: Option<Option<u64>>,
    /// The text that a reader sees, decoded.
    pub(crate) text: Cow<'b, str>,
    /// The other fields, in one line.
    pub(crate) rest: String,
}

impl Block<'_> {
    pub(crate) fn digest(&self) -> ShortDigest {
        let text = Digest::new(self.text.as_bytes()).half();
        let rest = Digest::new(self.rest.as_bytes()).half();
        let role: &str = &self.role;
        let whole: Vec<u8> = text.iter().chain(&rest).chain(role.as_bytes()).copied().collect();
        Digest::new(&whole).half()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.text.len() + self.rest.len()
    }

    pub(crate) fn tokens(&self) -> usize {
        if self.kind == LinkKind::Image { IMAGE_TOKENS } else { self.bytes() * 10 / 27 }
    }
}

/// A request as a list of blocks.
#[derive(Debug)]
pub(crate) struct Blocks<'b> {
    pub(crate) list: Vec<Block<'b>>,
    pub(crate) model: Option<String>,
    pub(crate) attribution: Option<String>,
    pub(crate) wire: Wire,
    fields: Fields<'b>,
}

impl<'b> Blocks<'b> {
    /// Reads the body of a call; `None` without a block.
    pub(crate) fn read(call: &'b Call, facts: &CacheFacts) -> Option<Self> {
        let fields = fields(call.body.as_deref()?);
        let wire = if call.wire == Wire::Unknown { recognise(&fields) } else { call.wire };
        let model = text_field(&fields, "model").or_else(|| text_field(&fields, "modelId"));
        let model = model.map(Cow::into_owned);
        let mut read =
            Reader { list: Vec::new(), facts, attribution: None, host: call.route.host.as_deref() };
        match wire {
            Wire::Anthropic | Wire::Unknown => read.anthropic(&fields),
            Wire::Bedrock => read.bedrock(&fields),
            Wire::Responses => read.responses(&fields),
            Wire::Chat => read.chat(&fields),
            Wire::Gemini => read.gemini(&fields),
        }
        if facts.is_system_first {
            read.list.sort_by_key(|block| match block.area {
                Area::System => 0,
                Area::Tools => 1,
                Area::Messages => 2,
            });
        }
        let Reader { list, attribution, .. } = read;
        (!list.is_empty()).then_some(Self { list, model, attribution, wire, fields })
    }

    /// Returns the value of a parameter, which may lie inside of others: `output_config.effort`.
    pub(crate) fn parameter(&self, path: &str) -> Option<String> {
        let mut names = path.split('.');
        let mut value = field(&self.fields, names.next()?)?;
        for name in names {
            value = field(&fields(value), name)?;
        }
        json::by_value(value)
    }
}

/// Recognises a format by the fields of a body.
fn recognise(body: &Fields<'_>) -> Wire {
    let has = |name: &str| field(body, name).is_some();
    if has("contents") || has("systemInstruction") {
        return Wire::Gemini;
    }
    if has("input") || has("instructions") || has("previous_response_id") {
        return Wire::Responses;
    }
    if has("toolConfig") || has("modelId") || has("inferenceConfig") {
        return Wire::Bedrock;
    }
    let is_claude = text_field(body, "model").is_some_and(|model| model.contains("claude"));
    let tools = field(body, "tools").unwrap_or_default();
    let is_anthropic = has("system") || has("anthropic_version") || tools.contains("\"input_schema\"");
    let messages = items(field(body, "messages").unwrap_or_default());
    let is_chat = tools.contains("\"function\"")
        || messages.iter().any(|message| {
            let message = fields(message.get());
            field(&message, "tool_calls").is_some()
                || matches!(text_field(&message, "role").as_deref(), Some("tool" | "developer"))
        })
        || messages.first().is_some_and(|first| {
            matches!(text_field(&fields(first.get()), "role").as_deref(), Some("system"))
        });
    if is_anthropic || is_claude && !is_chat { Wire::Anthropic } else { Wire::Chat }
}

/// A message or item: its place, role and area.
#[derive(Clone)]
struct Frame<'b> {
    part: String,
    role: Cow<'b, str>,
    area: Area,
}

struct Reader<'b, 'f> {
    list: Vec<Block<'b>>,
    facts: &'f CacheFacts,
    attribution: Option<String>,
    host: Option<&'f str>,
}

impl<'b> Reader<'b, '_> {
    fn anthropic(&mut self, body: &Fields<'b>) {
        self.tools(field(body, "tools"), "tools");
        self.content(field(body, "system"), &frame("system", "", Area::System), "");
        self.take_attribution();
        self.messages(field(body, "messages"), "messages", "content");
        // The automatic mode marks the last block.
        if let Some(marker) = field(body, "cache_control")
            && let Some(last) = self.list.last_mut()
        {
            last.marker = Some(lifetime(marker));
        }
    }

    fn bedrock(&mut self, body: &Fields<'b>) {
        let tools = field(body, "toolConfig").map(fields).unwrap_or_default();
        self.tools(field(&tools, "tools"), "toolConfig.tools");
        self.content(field(body, "system"), &frame("system", "", Area::System), "");
        self.messages(field(body, "messages"), "messages", "content");
    }

    fn gemini(&mut self, body: &Fields<'b>) {
        for (index, tool) in items(field(body, "tools").unwrap_or_default()).iter().enumerate() {
            let tool = fields(tool.get());
            let part = format!("tools[{index}].functionDeclarations");
            self.tools(field(&tool, "functionDeclarations"), &part);
            let others = without(&tool, &["functionDeclarations"]);
            if others != "{}" {
                self.push(
                    &frame(&format!("tools[{index}]"), "", Area::Tools),
                    LinkKind::Tool,
                    "".into(),
                    others,
                );
            }
        }
        if let Some(system) = field(body, "systemInstruction").or_else(|| field(body, "system_instruction")) {
            let inner = fields(system);
            self.content(field(&inner, "parts"), &frame("systemInstruction.parts", "", Area::System), "");
        }
        self.messages(field(body, "contents"), "contents", "parts");
    }

    fn chat(&mut self, body: &Fields<'b>) {
        self.tools(field(body, "tools"), "tools");
        self.messages(field(body, "messages"), "messages", "content");
    }

    fn responses(&mut self, body: &Fields<'b>) {
        self.tools(field(body, "tools"), "tools");
        if let Some(instructions) = field(body, "instructions") {
            self.content(Some(instructions), &frame("instructions", "system", Area::System), "");
        }
        let Some(input) = field(body, "input") else { return };
        if !is_list(input) {
            self.content(Some(input), &frame("input", "user", Area::Messages), "");
            return;
        }
        let mut is_start = true;
        for (index, item) in items(input).iter().enumerate() {
            let inner = fields(item.get());
            let kind = text_field(&inner, "type").unwrap_or_default();
            let part = format!("input[{index}]");
            if kind == "additional_tools" {
                self.tools(field(&inner, "tools"), &format!("{part}.tools"));
                continue;
            }
            let role = text_field(&inner, "role").unwrap_or_default();
            is_start = is_start && matches!(role.as_ref(), "system" | "developer");
            let area = if is_start { Area::System } else { Area::Messages };
            self.item(&inner, &kind, &Frame { part, role, area });
        }
    }

    /// Adds an item of the Responses API; one part of content keeps the name of the item.
    fn item(&mut self, item: &Fields<'b>, kind: &str, frame: &Frame<'b>) {
        let ignored = &TrafficRules::built_in().ignored_item_fields;
        let kept: Fields<'b> =
            item.iter().filter(|(key, _)| !ignored.iter().any(|name| name == key)).cloned().collect();
        match field(&kept, "content") {
            Some(content) if kind.is_empty() || kind == "message" => {
                let parts = if is_list(content) { items(content).len() } else { 1 };
                let suffix = if parts == 1 { "one" } else { "content" };
                self.content(Some(content), frame, suffix);
            }
            _ => self.object(&kept, frame, Form::List),
        }
    }

    fn tools(&mut self, list: Option<&'b str>, part: &str) {
        for (index, tool) in items(list.unwrap_or_default()).iter().enumerate() {
            let inner = fields(tool.get());
            // A deferred tool joins the prompt where it is referenced, at the end.
            if field(&inner, "defer_loading") == Some("true") {
                continue;
            }
            if let Some(point) = field(&inner, "cachePoint") {
                self.mark_last(point);
                continue;
            }
            let function = field(&inner, "function").or_else(|| field(&inner, "toolSpec")).map(fields);
            let name = text_field(function.as_ref().unwrap_or(&inner), "name");
            let name = name.or_else(|| text_field(&inner, "type")).map(Cow::into_owned);
            let marker = field(&inner, "cache_control").map(lifetime);
            let mut text = without(&inner, &["cache_control", "defer_loading"]);
            if self.facts.is_by_value {
                text = json::by_value(&text).unwrap_or(text);
            }
            self.list.push(Block {
                part: format!("{part}[{index}]"),
                area: Area::Tools,
                kind: LinkKind::Tool,
                role: Cow::Borrowed(""),
                name,
                form: Form::List,
                marker,
                text: text.into(),
                rest: String::new(),
            });
        }
    }

    fn messages(&mut self, list: Option<&'b str>, part: &str, content: &str) {
        let mut is_start = true;
        for (index, message) in items(list.unwrap_or_default()).iter().enumerate() {
            let inner = fields(message.get());
            let role = text_field(&inner, "role").unwrap_or_default();
            is_start = is_start && matches!(role.as_ref(), "system" | "developer");
            let area = if is_start { Area::System } else { Area::Messages };
            let frame = Frame { part: format!("{part}[{index}]"), role, area };
            let before = self.list.len();
            self.content(field(&inner, content), &frame, content);
            for (call, tool) in items(field(&inner, "tool_calls").unwrap_or_default()).iter().enumerate() {
                let part = format!("{}.tool_calls[{call}]", frame.part);
                let frame = Frame { part, ..frame.clone() };
                self.object(&fields(tool.get()), &frame, Form::List);
            }
            let mut others =
                without(&inner, &["role", content, "tool_calls", "cache_control", "output_config"]);
            if others == "{}" || self.facts.is_by_value {
                others = String::new();
            }
            match self.list.get_mut(before) {
                Some(first) => first.rest.push_str(&others),
                None => self.push(&frame, LinkKind::Empty, "".into(), others),
            }
        }
    }

    /// Adds content: a string, or a list of blocks. `suffix` names the list inside of the frame's part; `one` means
    /// that a single block has no name of its own.
    fn content(&mut self, content: Option<&'b str>, frame: &Frame<'b>, suffix: &str) {
        let Some(content) = content else { return };
        let part = |index: usize| match suffix {
            "" => format!("{}[{index}]", frame.part),
            "one" => frame.part.clone(),
            _ => format!("{}.{suffix}[{index}]", frame.part),
        };
        if let Some(text) = text(content) {
            if !text.is_empty() {
                self.push(&Frame { part: part(0), ..frame.clone() }, LinkKind::Text, text, String::new());
                if let Some(last) = self.list.last_mut() {
                    last.form = Form::Text;
                }
            }
            return;
        }
        for (index, block) in items(content).iter().enumerate() {
            let inner = fields(block.get());
            if let Some(point) = field(&inner, "cachePoint") {
                self.mark_last(point);
                continue;
            }
            self.object(&inner, &Frame { part: part(index), ..frame.clone() }, Form::List);
        }
    }

    /// Adds one block that is an object.
    fn object(&mut self, object: &Fields<'b>, frame: &Frame<'b>, form: Form) {
        let kind = kind_of(object);
        let marker =
            field(object, "cache_control").or_else(|| field(object, "prompt_cache_breakpoint")).map(lifetime);
        let mut left_out = vec!["cache_control", "prompt_cache_breakpoint"];
        if self.facts.is_by_value {
            left_out.extend(["id", "index"]);
        }
        let shown = shown(object, kind, &mut left_out);
        let mut rest = without(object, &left_out);
        if self.facts.is_by_value {
            rest = json::by_value(&rest).unwrap_or(rest);
        }
        if kind == LinkKind::Text {
            // The words of formats for the same text: `text`, `input_text`, or none.
            left_out.push("type");
            rest = without(object, &left_out);
        }
        if rest == "{}" {
            rest = String::new();
        }
        self.push(frame, kind, shown, rest);
        if let Some(last) = self.list.last_mut() {
            (last.form, last.marker) = (form, marker);
            last.name = text_field(object, "name").map(Cow::into_owned);
        }
    }

    fn push(&mut self, frame: &Frame<'b>, kind: LinkKind, text: Cow<'b, str>, rest: String) {
        let Frame { part, role, area } = frame.clone();
        let (name, form, marker) = (None, Form::List, None);
        self.list.push(Block { part, area, kind, role, name, form, marker, text, rest });
    }

    fn mark_last(&mut self, point: &str) {
        if let Some(last) = self.list.last_mut() {
            last.marker = Some(lifetime(point));
        }
    }

    /// Takes the attribution block out of the prompt where the host removes it, or may do so.
    fn take_attribution(&mut self) {
        let rules = TrafficRules::built_in();
        let at = self.list.iter().position(|block| {
            block.area == Area::System && block.text.starts_with(rules.attribution_prefix.as_str())
        });
        let is_stripped =
            self.host.is_none_or(|host| rules.attribution_hosts.iter().any(|known| known == host));
        if let Some(at) = at.filter(|_| is_stripped) {
            self.attribution = Some(self.list.remove(at).text.into_owned());
        }
    }
}

fn frame<'b>(part: &str, role: &'static str, area: Area) -> Frame<'b> {
    Frame { part: part.to_owned(), role: Cow::Borrowed(role), area }
}

/// Returns the lifetime that a marker asks for, in seconds.
fn lifetime(marker: &str) -> Option<u64> {
    let ttl = text_field(&fields(marker), "ttl")?;
    let digits = ttl.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    let number: u64 = digits.parse().ok()?;
    match ttl.trim_start_matches(|digit: char| digit.is_ascii_digit()) {
        "h" => number.checked_mul(3_600),
        "m" => number.checked_mul(60),
        "s" => Some(number),
        _ => None,
    }
}

fn kind_of(object: &Fields<'_>) -> LinkKind {
    let has = |name: &str| field(object, name).is_some();
    match text_field(object, "type").as_deref() {
        Some("text" | "input_text" | "output_text") => LinkKind::Text,
        Some("tool_use" | "server_tool_use" | "function_call" | "custom_tool_call" | "function") => {
            LinkKind::ToolUse
        }
        Some("tool_result" | "function_call_output" | "custom_tool_call_output") => LinkKind::ToolResult,
        Some("image" | "image_url" | "input_image" | "document" | "input_file" | "file") => LinkKind::Image,
        Some("thinking" | "redacted_thinking" | "reasoning") => LinkKind::Thinking,
        Some("compaction" | "compaction_summary" | "context_compaction") => LinkKind::Summary,
        None if has("functionCall") || has("toolUse") => LinkKind::ToolUse,
        None if has("functionResponse") || has("toolResult") => LinkKind::ToolResult,
        None if has("inlineData") || has("image") || has("fileData") => LinkKind::Image,
        None if has("text") => LinkKind::Text,
        _ => LinkKind::Other,
    }
}

/// Returns the text of a block that a reader sees, and adds the names of its fields to those that are not needed
/// beside it.
fn shown<'b>(object: &Fields<'b>, kind: LinkKind, left_out: &mut Vec<&'static str>) -> Cow<'b, str> {
    let names: &[&'static str] = match kind {
        LinkKind::Text => &["text"],
        LinkKind::ToolResult => &["content", "output"],
        // Recordings redact the thoughts and keep the signature.
        LinkKind::Thinking => &["signature", "data", "encrypted_content", "thinking"],
        LinkKind::ToolUse => &["arguments"],
        _ => &[],
    };
    for name in names {
        let Some(value) = field(object, name) else { continue };
        if let Some(text) = text(value) {
            left_out.push(name);
            if kind == LinkKind::Thinking {
                left_out.extend(["thinking", "summary"]);
            }
            return text;
        }
        // One block of text is the same as its string.
        if let [only] = items(value).as_slice() {
            let inner = fields(only.get());
            if kind_of(&inner) == LinkKind::Text
                && inner.len() <= 2
                && let Some(text) = text_field(&inner, "text")
            {
                left_out.push(name);
                return text;
            }
        }
    }
    Cow::Borrowed("")
}
