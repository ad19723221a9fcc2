//! Pairs of calls in every provider's format: verdict, part, byte and owner of changes that a generator made.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

use proem::models::Models;
use proem::traffic::lines::{LineDefaults, call_of_line};
use proem::traffic::{Analyser, CallVerdict};
use serde_json::{Value, json};

/// A format of requests, with a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Anthropic,
    Bedrock,
    Responses,
    Chat,
    Gemini,
    Llama,
}

const SHAPES: [Shape; 6] =
    [Shape::Anthropic, Shape::Bedrock, Shape::Responses, Shape::Chat, Shape::Gemini, Shape::Llama];

/// A request without a format.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Talk {
    /// Names and descriptions.
    tools: Vec<(String, String)>,
    system: String,
    /// Texts; those of the user have even places.
    messages: Vec<String>,
}

impl Talk {
    fn new() -> Self {
        let tool = |name: &str| (name.to_owned(), format!("Does {name}."));
        Self {
            tools: ["edit", "mcp__weather__now", "read", "search"].map(tool).into(),
            system: "You are helpful.\nBe brief.\nThe rest stays.".to_owned(),
            messages: ["hello", "hi", "go on", "done", "and now"].map(str::to_owned).into(),
        }
    }

    /// Returns the next request: the same with an answer and another message.
    fn next(&self) -> Self {
        let mut next = self.clone();
        let count = next.messages.len();
        next.messages.extend([format!("answer {count}"), format!("question {count}")]);
        next
    }
}

impl Shape {
    fn request(self, talk: &Talk, model: &str) -> Value {
        let schema = json!({ "type": "object", "properties": { "path": { "type": "string" } } });
        let tools = |make: &dyn Fn(&str, &str) -> Value| -> Vec<Value> {
            talk.tools.iter().map(|(name, description)| make(name, description)).collect()
        };
        let messages = |make: &dyn Fn(bool, &str, bool) -> Value| -> Vec<Value> {
            let last = talk.messages.len() - 1;
            let one = |(index, text): (usize, &String)| make(index % 2 == 0, text, index == last);
            talk.messages.iter().enumerate().map(one).collect()
        };
        let role = |is_user: bool| if is_user { "user" } else { "assistant" };
        let chat = |is_user: bool, text: &str, _: bool| json!({ "role": role(is_user), "content": text });
        let function = |name: &str, description: &str| json!({ "type": "function", "function": { "name": name, "description": description, "parameters": schema } });
        match self {
            Self::Anthropic => json!({
                "model": model, "max_tokens": 100,
                "tools": tools(&|name, description| json!({ "name": name, "description": description, "input_schema": schema })),
                "system": [{ "type": "text", "text": talk.system, "cache_control": { "type": "ephemeral" } }],
                "messages": messages(&|is_user, text, is_last| {
                    let mut block = json!({ "type": "text", "text": text });
                    if is_last {
                        block["cache_control"] = json!({ "type": "ephemeral" });
                    }
                    json!({ "role": role(is_user), "content": [block] })
                }),
            }),
            Self::Bedrock => json!({
                "modelId": model,
                "toolConfig": { "tools": tools(&|name, description| {
                    json!({ "toolSpec": { "name": name, "description": description, "inputSchema": { "json": schema } } })
                }) },
                "system": [{ "text": talk.system }, { "cachePoint": { "type": "default" } }],
                "messages": messages(&|is_user, text, is_last| {
                    let mut blocks = vec![json!({ "text": text })];
                    if is_last {
                        blocks.push(json!({ "cachePoint": { "type": "default" } }));
                    }
                    json!({ "role": role(is_user), "content": blocks })
                }),
            }),
            Self::Responses => json!({
                "model": model, "instructions": talk.system,
                "tools": tools(&|name, description| {
                    json!({ "type": "function", "name": name, "description": description, "parameters": schema })
                }),
                "input": messages(&|is_user, text, _| {
                    let kind = if is_user { "input_text" } else { "output_text" };
                    json!({ "type": "message", "role": role(is_user), "content": [{ "type": kind, "text": text }] })
                }),
            }),
            Self::Chat | Self::Llama => {
                let mut list = vec![json!({ "role": "system", "content": talk.system })];
                list.extend(messages(&chat));
                json!({ "model": model, "tools": tools(&function), "messages": list })
            }
            Self::Gemini => json!({
                "systemInstruction": { "parts": [{ "text": talk.system }] },
                "tools": [{ "functionDeclarations": tools(&|name, description| {
                    json!({ "name": name, "description": description, "parameters": schema })
                }) }],
                "contents": messages(&|is_user, text, _| {
                    json!({ "role": if is_user { "user" } else { "model" }, "parts": [{ "text": text }] })
                }),
            }),
        }
    }

    const fn model(self) -> &'static str {
        match self {
            Self::Anthropic => "claude-opus-5-5",
            Self::Bedrock => "anthropic.claude-opus-5-5",
            Self::Responses | Self::Chat => "gpt-5.4",
            Self::Gemini => "gemini-3-pro",
            Self::Llama => "local",
        }
    }

    /// Returns the numbers of an answer.
    fn answer(self, read: u64, input: u64) -> Value {
        let rest = input - read;
        match self {
            Self::Anthropic => json!({ "usage": { "input_tokens": 0, "cache_read_input_tokens": read,
                "cache_creation_input_tokens": rest, "output_tokens": 9 } }),
            Self::Bedrock => json!({ "usage": { "inputTokens": 0, "cacheReadInputTokens": read,
                "cacheWriteInputTokens": rest, "outputTokens": 9 } }),
            Self::Responses => json!({ "usage": { "input_tokens": input,
                "input_tokens_details": { "cached_tokens": read }, "output_tokens": 9 } }),
            Self::Chat => json!({ "usage": { "prompt_tokens": input,
                "prompt_tokens_details": { "cached_tokens": read }, "completion_tokens": 9 } }),
            Self::Gemini => {
                json!({ "usageMetadata": { "promptTokenCount": input, "cachedContentTokenCount": read } })
            }
            Self::Llama => json!({ "timings": { "cache_n": read, "prompt_n": rest, "predicted_n": 9 } }),
        }
    }

    fn tool(self, index: usize) -> String {
        match self {
            Self::Bedrock => format!("toolConfig.tools[{index}]"),
            Self::Gemini => format!("tools[0].functionDeclarations[{index}]"),
            _ => format!("tools[{index}]"),
        }
    }

    fn system(self) -> String {
        let part = match self {
            Self::Anthropic | Self::Bedrock => "system[0]",
            Self::Responses => "instructions[0]",
            Self::Chat | Self::Llama => "messages[0].content[0]",
            Self::Gemini => "systemInstruction.parts[0]",
        };
        part.to_owned()
    }

    fn message(self, index: usize) -> String {
        match self {
            Self::Anthropic | Self::Bedrock => format!("messages[{index}].content[0]"),
            Self::Responses => format!("input[{index}]"),
            Self::Chat | Self::Llama => format!("messages[{}].content[0]", index + 1),
            Self::Gemini => format!("contents[{index}].parts[0]"),
        }
    }
}

/// The place and verdict of a change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Found {
    verdict: String,
    before: Option<String>,
    after: Option<String>,
    byte: Option<usize>,
}

impl Found {
    fn of(call: &CallVerdict) -> Self {
        let place = call.place.clone().unwrap_or_default();
        Self {
            verdict: call.verdict.word().into(),
            before: place.part_before,
            after: place.part_after,
            byte: place.byte,
        }
    }
}

/// Returns the first byte that differs.
fn first_byte(before: &str, after: &str) -> usize {
    before.bytes().zip(after.bytes()).take_while(|(old, new)| old == new).count()
}

/// Judges calls of many conversations.
struct Judge {
    analyser: Analyser,
    conversations: usize,
}

impl Judge {
    fn new() -> Self {
        Self { analyser: Analyser::new(Models::built_in().unwrap()), conversations: 0 }
    }

    /// Judges a call after another one, which left 5,000 tokens. `more` has fields of the second line.
    fn pair(&mut self, shape: Shape, (old, new): (&Talk, &Talk), read: u64, more: &Value) -> CallVerdict {
        self.conversations += 1;
        let conversation = format!("c{}", self.conversations);
        let line = |id: &str, at: u64, talk: &Talk, (read, input): (u64, u64), more: &Value| {
            let model = more["request_model"].as_str().unwrap_or_else(|| shape.model());
            let mut line = json!({ "id": id, "at": at, "conversation": conversation,
                "request": shape.request(talk, model), "response": shape.answer(read, input) });
            if shape == Shape::Llama {
                line["provider"] = "llama.cpp".into();
            }
            for (key, value) in more.as_object().into_iter().flatten() {
                line[key] = value.clone();
            }
            line.to_string()
        };
        let at = 1_794_900_000;
        let first = json!({ "agent": "codex", "agent_version": "1.0.0" });
        let seconds = more["seconds"].as_u64().unwrap_or(60);
        let lines =
            [line("a", at, old, (0, 5_120), &first), line("b", at + seconds, new, (read, 5_376), more)];
        let defaults = LineDefaults { path: "calls.jsonl".into(), ..LineDefaults::default() };
        let mut verdicts =
            lines.iter().map(|line| self.analyser.take(call_of_line(line, 1, &defaults).unwrap()));
        verdicts.nth(1).unwrap()
    }
}

/// An edit of a request.
type Edit = Box<dyn Fn(&mut Talk)>;

/// A change: the verdict, the kind of the owner, the edit, and fields of the second line.
type Change = (&'static str, &'static str, Edit, Value);

fn replaced(verdict: &'static str, owner: &'static str, edit: impl Fn(&mut Talk) + 'static) -> Change {
    (verdict, owner, Box::new(edit), json!({}))
}

/// Pairs of lines that differ by something that changes by itself.
const VALUES: [(&str, &str, &str); 7] = [
    ("clock", "It is 10:00:01.", "It is 10:00:59."),
    ("clock", "Time: 2026-11-15T10:00:00Z", "Time: 2026-11-16T11:30:00Z"),
    ("date", "Today's date: Tue Nov 17", "Today's date: Wed Nov 18"),
    ("date", "Today is 2026-11-15.", "Today is 2026-11-16."),
    ("counter", "Tokens left: 10000", "Tokens left: 9000"),
    ("random_id", "id 4f9e1623-eec9-4c95-bd9c-ad74f0245200", "id 50eb0351-06c0-4918-a792-3d58bb1f7b04"),
    ("random_id", "Files are in /tmp/abc.x1Y.", "Files are in /tmp/def.z2Q."),
];

/// Returns changes of one shape: edits of the first text, and edits of the second one, whose first is unchanged.
fn changes() -> Vec<(Change, Edit)> {
    let mut all: Vec<(Change, Edit)> = Vec::new();
    let none = || -> Edit { Box::new(|_: &mut Talk| ()) };
    for (owner, old, new) in VALUES {
        let before = move |talk: &mut Talk| talk.system = talk.system.replace("Be brief.", old);
        let after = move |talk: &mut Talk| talk.system = talk.system.replace("Be brief.", new);
        all.push((replaced("system_changed", owner, after), Box::new(before)));
        for place in [0, 2] {
            let before = move |talk: &mut Talk| talk.messages[place] = format!("say it\n{old}\nplease");
            let after = move |talk: &mut Talk| talk.messages[place] = format!("say it\n{new}\nplease");
            all.push((replaced("message_edited", owner, after), Box::new(before)));
        }
    }
    let edit = |talk: &mut Talk| talk.system = talk.system.replace("Be brief.", "Be thorough.");
    for kind in ["instruction_file", "skill", "hook", "plugin"] {
        let more = json!({ "hints": [{ "text": "Be thorough.", "kind": kind, "name": "n", "path": "/w/AGENTS.md" }] });
        all.push((("system_changed", kind, Box::new(edit), more), none()));
    }
    let version = json!({ "agent": "codex", "agent_version": "1.1.0" });
    all.push((("system_changed", "agent_version", Box::new(edit), version.clone()), none()));
    all.push((replaced("system_changed", "unknown", edit), none()));
    for place in [0, 2, 4] {
        let edit = move |talk: &mut Talk| talk.messages[place].push_str(" indeed");
        all.push((replaced("message_edited", "user", edit), none()));
    }
    for (place, owner) in [(0, "user"), (1, "agent"), (2, "user")] {
        let remove = move |talk: &mut Talk| drop(talk.messages.remove(place));
        all.push((replaced("message_removed", owner, remove), none()));
    }
    for place in [1, 3] {
        let edit = move |talk: &mut Talk| talk.messages[place].push_str(" indeed");
        all.push((replaced("message_edited", "agent", edit), none()));
    }
    let tool = |name: &str| (name.to_owned(), "New.".to_owned());
    for place in [0, 2, 4] {
        all.push((
            replaced("tools_added", "tool", move |talk| talk.tools.insert(place, tool("ask"))),
            none(),
        ));
        let add = move |talk: &mut Talk| talk.tools.insert(place, tool("mcp__mail__send"));
        all.push((replaced("tools_added", "mcp_server", add), none()));
    }
    for place in [0, 2, 3] {
        all.push((replaced("tools_removed", "user", move |talk| drop(talk.tools.remove(place))), none()));
        let redefine = move |talk: &mut Talk| talk.tools[place].1 = "Does it better.".into();
        all.push((replaced("tools_redefined", "tool", redefine), none()));
        let before = move |talk: &mut Talk| talk.tools[place].1 = "Today is 2026-11-15.".into();
        let after = move |talk: &mut Talk| talk.tools[place].1 = "Today is 2026-11-16.".into();
        all.push((replaced("tools_redefined", "date", after), Box::new(before)));
    }
    all.push((replaced("tools_removed", "mcp_server", |talk| drop(talk.tools.remove(1))), none()));
    all.push((replaced("tools_redefined", "mcp_server", |talk| talk.tools[1].1 = "Better.".into()), none()));
    all.push((replaced("tools_reordered", "agent", |talk| talk.tools.swap(0, 3)), none()));
    all.push((replaced("tools_reordered", "agent", |talk| talk.tools.swap(2, 3)), none()));
    let model = json!({ "request_model": "another-model" });
    all.push((("model_changed", "user", Box::new(|_: &mut Talk| ()), model), none()));
    all
}

#[test]
#[ignore = "a removed message is still judged as an edited one"]
fn every_change_has_its_verdict_and_owner_in_every_shape() {
    let (mut judge, mut wrong, mut count) = (Judge::new(), Vec::new(), 0);
    for shape in SHAPES {
        for ((verdict, owner, edit, more), prepare) in changes() {
            // Gemini names its model in the path.
            if shape == Shape::Gemini && verdict == "model_changed" {
                continue;
            }
            let mut old = Talk::new();
            prepare(&mut old);
            let mut new = old.next();
            edit(&mut new);
            let judged = judge.pair(shape, (&old, &new), 0, &more);
            count += 1;
            let kind = judged.owner.as_ref().map(|owner| proem::store::traffic::owner_word(owner.kind));
            if judged.verdict.word() != verdict || kind.as_deref() != Some(owner) {
                wrong.push(format!(
                    "{shape:?} {verdict} {owner}: {} {kind:?}, {}",
                    judged.verdict.word(),
                    judged.why
                ));
            }
        }
    }
    assert!(count >= 300, "{count}");
    assert!(wrong.is_empty(), "{} of {count} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// A generator of numbers, always the same.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % most
    }

    /// Returns a text of some lines, as instructions and messages have them.
    fn text(&mut self, lines: usize) -> String {
        const WORDS: [&str; 16] = [
            "the",
            "build",
            "fails",
            "`cargo test`",
            "in",
            "src/main.rs",
            "naïve",
            "→",
            "run",
            "never",
            "\"quoted\"",
            "{\"key\": 1}",
            "日本",
            "- item",
            "because",
            "é",
        ];
        let line = |numbers: &mut Self| {
            let words: Vec<&str> =
                (0..=numbers.below(9)).map(|_| WORDS[numbers.below(WORDS.len())]).collect();
            words.join(" ")
        };
        (0..lines).map(|_| line(self)).collect::<Vec<_>>().join("\n")
    }

    fn talk(&mut self) -> Talk {
        let tools = (0..3 + self.below(6)).map(|index| (format!("tool_{index}"), self.text(2))).collect();
        let system = self.text(20);
        let count = 3 + 2 * self.below(5);
        let messages = (0..count).map(|index| format!("{index}: {}", self.text(3))).collect();
        Talk { tools, system, messages }
    }

    /// Replaces, inserts or removes a character of a text.
    fn mutate(&mut self, text: &str) -> String {
        let places: Vec<usize> = text.char_indices().map(|(place, _)| place).collect();
        let place = places[self.below(places.len())];
        let (head, tail) = text.split_at(place);
        let rest: String = tail.chars().skip(1).collect();
        match self.below(3) {
            0 => format!("{head}§{rest}"),
            1 => format!("{head}§{tail}"),
            _ if rest.is_empty() || head.is_empty() => format!("{text}§"),
            _ => format!("{head}{rest}"),
        }
    }
}

/// Changes a request at random; returns what must be found, or `None` if nothing changed.
fn mutated(numbers: &mut Numbers, shape: Shape, old: &Talk, new: &mut Talk) -> Option<Found> {
    let found = |verdict: &str, before: Option<String>, after: Option<String>, byte: Option<usize>| {
        Some(Found { verdict: verdict.into(), before, after, byte })
    };
    let (tools, messages) = (old.tools.len(), old.messages.len());
    match numbers.below(9) {
        0 | 1 => {
            new.system = numbers.mutate(&old.system);
            let (part, byte) = (shape.system(), first_byte(&old.system, &new.system));
            found("system_changed", Some(part.clone()), Some(part), Some(byte))
        }
        2 | 3 => {
            let place = numbers.below(messages);
            new.messages[place] = numbers.mutate(&old.messages[place]);
            let byte = first_byte(&old.messages[place], &new.messages[place]);
            let part = shape.message(place);
            found("message_edited", Some(part.clone()), Some(part), Some(byte))
        }
        4 => {
            let place = numbers.below(tools);
            new.tools[place].1 = numbers.mutate(&old.tools[place].1);
            found("tools_redefined", Some(shape.tool(place)), Some(shape.tool(place)), None)
        }
        5 => {
            let place = numbers.below(tools + 1);
            new.tools.insert(place, ("tool_new".into(), "New.".into()));
            found("tools_added", None, Some(shape.tool(place)), None)
        }
        6 => {
            let place = numbers.below(tools);
            new.tools.remove(place);
            found("tools_removed", Some(shape.tool(place)), None, None)
        }
        7 => {
            // Without the last one, the answer stands in its place.
            let place = numbers.below(messages - 1);
            new.messages.remove(place);
            found("message_removed", Some(shape.message(place)), None, None)
        }
        _ => None,
    }
}

#[test]
#[ignore = "a removed message is still judged as an edited one"]
fn of_ten_thousand_mutations_almost_all_are_found_and_none_is_invented() {
    const COUNT: usize = 10_000;
    let (mut numbers, mut judge) = (Numbers(7), Judge::new());
    let (mut changed, mut wrong, mut invented) = (0, Vec::new(), Vec::new());
    for index in 0..COUNT {
        if index % 500 == 0 {
            judge = Judge::new();
        }
        let shape = SHAPES[index % SHAPES.len()];
        let old = numbers.talk();
        let mut new = old.next();
        let Some(expected) = mutated(&mut numbers, shape, &old, &mut new) else {
            // Nothing changed: a full read is a hit, and a miss is not ours.
            for (read, allowed) in [(5_120, &["hit"][..]), (0, &["provider", "unknown"])] {
                let judged = judge.pair(shape, (&old, &new), read, &json!({}));
                if !allowed.contains(&judged.verdict.word()) {
                    invented.push(format!("{index} {shape:?}: {} {}", judged.verdict.word(), judged.why));
                }
            }
            continue;
        };
        changed += 1;
        let judged = judge.pair(shape, (&old, &new), 0, &json!({}));
        let mut found = Found::of(&judged);
        if expected.byte.is_none() {
            found.byte = None;
        }
        if found != expected {
            wrong.push(format!("{index} {shape:?}: expected {expected:?}\n  got {found:?}: {}", judged.why));
        }
    }
    assert!(invented.is_empty(), "{} false alarms:\n{}", invented.len(), invented.join("\n"));
    let shown: Vec<&String> = wrong.iter().take(20).collect();
    assert!(wrong.len() * 100 <= changed, "{} of {changed} wrong:\n{shown:#?}", wrong.len());
    eprintln!("{changed} changes, {} wrong", wrong.len());
}
