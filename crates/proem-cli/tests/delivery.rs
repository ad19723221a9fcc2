//! `proem build --for`, `--stats` and `proem simulate` as a user runs them.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

use std::process::Output;

use proem::deliver::{Provider, ProviderName};
use proem_testkit::{for_each_case_of, payload_model};
use serde_json::{Value, json};

use crate::desk::Desk;

/// The golden payloads come out of the command, byte for byte.
#[test]
fn every_payload_comes_out_of_the_command() {
    for_each_case_of("payloads", |case| {
        let laid = case.lay_out();
        let desk = Desk::new();
        let request: Value = serde_json::from_str(&laid.request).unwrap();
        let said: Value =
            case.file("options.json").map_or(json!({}), |text| serde_json::from_str(&text).unwrap());
        desk.write("request.json", laid.request.as_bytes());
        for provider in Provider::ALL.map(Provider::word) {
            let mut arguments = vec!["build", "--quiet", "--request", "request.json", "--for", provider];
            if request["model"].is_null() && said.get("model") != Some(&Value::Null) {
                arguments.extend(["--model", payload_model(provider)]);
            }
            let file = format!("messages_{provider}.json");
            if let Some(messages) = case.file(&file) {
                desk.write(&file, messages.as_bytes());
                arguments.extend(["--messages", &file]);
            }
            arguments.extend(said["lifetime"].as_str().into_iter().flat_map(|lifetime| ["--ttl", lifetime]));
            arguments.extend(
                said["cached_content"].as_str().into_iter().flat_map(|name| ["--cached-content", name]),
            );
            let output = desk.run(&arguments);
            let payload = String::from_utf8(output.stdout).unwrap();
            let is_built = output.status.success();
            case.check_file(&laid, &format!("{provider}.json"), Some(payload.as_str()).filter(|_| is_built));
            if !is_built {
                assert_eq!((output.status.code(), payload.as_str()), (Some(2), ""));
                let said = String::from_utf8(output.stderr).unwrap();
                let error = format!("{}\n", said.lines().next().unwrap());
                case.check_file(&laid, &format!("{provider}.error.txt"), Some(&error));
            }
        }
    });
}

fn text(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

const PROMPT: [&str; 5] = ["build", "--profile", "template", "--system", "Be brief."];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    PROMPT.into_iter().chain(more.iter().copied()).collect()
}

#[test]
fn messages_that_cannot_be_read_are_named() {
    let desk = Desk::new();
    desk.write("text.json", b"hello")
        .write("number.json", b"[1]")
        .write("role.json", b"[{\"content\": \"x\"}]");
    desk.write("surrogate.json", br#"[{"role": "user", "content": "\ud800"}]"#);
    desk.write("twice.json", br#"[{"role": "user", "role": "user", "content": "x"}]"#);
    let hint = "hint: write a JSON list of messages, or one message on each line\n";
    for (file, why) in [
        ("text.json", "line 1: expected value"),
        ("number.json", "`messages[0]`: it is not an object"),
        ("role.json", "`messages[0]`: it has no `role`"),
        ("surrogate.json", "`messages[0]`: unexpected end of hex escape"),
        ("twice.json", "`messages[0]`: duplicate key `role`"),
    ] {
        let expected = format!("error: cannot read the messages: {why}\n{hint}");
        desk.refuses(&with(&["--for", "anthropic", "--messages", file]), 2, &expected);
    }
    let missing = "error: cannot read the messages none.json: no such file or directory\n\
                   hint: name a readable UTF-8 file, or `-` for standard input\n";
    desk.refuses(&with(&["--for", "anthropic", "--messages", "none.json"]), 2, missing);
}

#[test]
fn messages_may_stand_on_lines_of_their_own() {
    let desk = Desk::new();
    let list = "[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\",\"content\":\"b\"},{\"role\":\"user\",\"content\":\"c\"}]";
    let lines = "{\"role\":\"user\",\"content\":\"a\"}\r\n\n{\"role\":\"assistant\",\"content\":\"b\"}\n{\"role\":\"user\",\"content\":\"c\"}";
    desk.write("list.json", list.as_bytes()).write("lines.jsonl", lines.as_bytes());
    let run = |file: &str| text(&desk.run(&with(&["--quiet", "--for", "openai-chat", "--messages", file])));
    assert_eq!(run("list.json"), run("lines.jsonl"));
    assert_eq!(run("list.json").matches("\"role\"").count(), 4);
}

#[test]
fn unknown_words_are_answered_with_the_known_ones() {
    let desk = Desk::new();
    desk.write("turns.jsonl", b"{}");
    let expected = "error: unknown provider \"openai2\"; expected one of: anthropic, openai-responses, openai-chat, gemini, \
                    bedrock, deepseek, acp, codex, llama.cpp, vllm, sglang\nhint: did you mean `openai`?\n";
    let output = desk.run(&with(&["--for", "openai2"]));
    assert_eq!(output.status.code(), Some(2));
    let said = desk.said(&output.stderr);
    assert!(said.starts_with(expected), "{said}");
    desk.refuses(&["simulate", "--provider", "openai2", "turns.jsonl"], 2, expected);
    desk.refuses(&["diff", "now", "now", "--for", "openai2"], 2, expected);
}

/// One list of names for every flag, aliases included.
#[test]
fn every_name_of_a_provider_is_taken_by_every_flag() {
    let desk = Desk::new();
    desk.write("turns.jsonl", b"{}");
    let words = |name: &'static ProviderName| [&[name.word], name.aliases].concat();
    for name in ProviderName::all() {
        for word in words(name) {
            let built = desk.run(&with(&["--quiet", "--for", word, "--prompt", "Hello"]));
            assert_eq!(built.status.code(), Some(0), "{word}: {}", desk.said(&built.stderr));
            let own = desk.run(&with(&["--quiet", "--for", name.provider.word(), "--prompt", "Hello"]));
            assert_eq!(built.stdout, own.stdout, "{word}");
            let code = if name.cache.is_some() { 0 } else { 2 };
            let diff = ["diff", "now", "now", "--for", word];
            for arguments in [&["simulate", "--provider", word, "turns.jsonl"][..], &diff] {
                let output = desk.run(arguments);
                assert_eq!(output.status.code(), Some(code), "{word}: {}", desk.said(&output.stderr));
            }
        }
    }
    let stats = desk.run(&with(&["--for", "vllm", "--stats", "--model", "gpt-5"]));
    assert!(desk.said(&stats.stdout).ends_with("rules of vllm, prices of gpt-5 (openai) as of 2026-11-15\n"));
}

#[test]
fn json_is_short_for_the_format() {
    let desk = Desk::new();
    for command in [&["build"][..], &["explain"], &["vars"], &["config"], &["check"], &["profile", "list"]] {
        let pins = ["--now", "2026-01-02T03:04:05Z"];
        let takes_pins = !matches!(command[0], "config" | "profile");
        let pins = if takes_pins { &pins[..] } else { &[] };
        let short = desk.run(&[command, &["--json"], pins].concat());
        let long = desk.run(&[command, &["--format", "json"], pins].concat());
        assert!(short.stdout.starts_with(b"{"), "{command:?}");
        assert_eq!(short.stdout, long.stdout, "{command:?}");
        assert_eq!(desk.run(&[command, &["--json", "--format", "text"]].concat()).status.code(), Some(2));
    }
}

/// A model that is not named cannot be added to a table.
#[test]
fn the_hint_about_a_model_fits_the_question() {
    let desk = Desk::new();
    let hint = |more: &[&str]| -> Value {
        let output = desk.run(&with(&[&["--for", "anthropic", "--json"], more].concat()));
        let shape: Value = serde_json::from_slice(&output.stdout).unwrap();
        let is_of_model = |note: &&Value| note["code"] == "unknown_model";
        shape["notes"].as_array().unwrap().iter().find(is_of_model).unwrap()["hint"].clone()
    };
    assert_eq!(hint(&[]), json!("name the model with `--model`, or `model` in the request"));
    let other = json!("add a row to models.toml in the configuration directory");
    assert_eq!(hint(&["--model", "my-own"]), other);
}

#[test]
fn stats_count_what_is_printed() {
    let desk = Desk::new();
    let arguments = with(&["--model", "gpt-4o", "--stats", "--format", "json", "--append", "x y z"]);
    let shape: Value = serde_json::from_str(&text(&desk.run(&arguments))).unwrap();
    let stats = &shape["stats"];
    assert_eq!((&stats["exact"], &stats["counted"]), (&json!(true), &json!("exact, o200k_base")));
    let sum =
        |list: &Value| list.as_array().unwrap().iter().map(|row| row["bytes"].as_u64().unwrap()).sum::<u64>();
    assert_eq!(sum(&stats["sections"]), shape["carriers"]["system"].as_str().unwrap().len() as u64);
    assert_eq!(sum(&stats["sections"]), sum(&stats["carriers"]));
    assert_eq!(stats["min_tokens"], json!(1024));
    let codes: Vec<&str> =
        shape["notes"].as_array().unwrap().iter().map(|note| note["code"].as_str().unwrap()).collect();
    assert!(codes.contains(&"below_cache_minimum"), "{codes:?}");
    let table = text(&desk.run(&with(&["--model", "gpt-4o", "--stats"])));
    assert!(
        table.contains("cold") && table.contains("rules and prices of openai-responses as of 2026-11-15"),
        "{table}"
    );
    let unpriced = text(&desk.run(&with(&["--stats"])));
    assert!(unpriced.contains("name a model with `--model`") && unpriced.contains("estimated"), "{unpriced}");
}

#[test]
fn the_user_may_change_the_table_of_models() {
    let desk = Desk::new();
    let path = "../.config/proem/models.toml";
    desk.write(
        path,
        b"as_of = \"2027-02-01\"\n[[model]]\nname = \"own\"\nvendor = \"anthropic\"\ninput = 1000000\n",
    );
    let arguments = with(&["--model", "own", "--stats", "--format", "json"]);
    let shape: Value = serde_json::from_str(&text(&desk.run(&arguments))).unwrap();
    let stats = &shape["stats"];
    assert_eq!((&stats["as_of"], &stats["provider"]), (&json!("2027-02-01"), &json!("anthropic")));
    assert_eq!(stats["cold"]["usd"].as_f64(), stats["cold"]["input_tokens"].as_f64());
    for (wrong, why) in [
        (
            "[[model]]\nname = \"own\"\ninput = -1\n",
            "a price of `own` is negative, too large or not a number",
        ),
        ("[[model]]\nname = \"own\"\ntokenizer = \"x\"\n", "the tokenizer `x` of `own` is not known"),
        ("[[model]]\nname = \"own\"\nprize = 1\n", "unknown field `prize`"),
        ("[[model]]\n", "missing field `name`"),
    ] {
        desk.write(path, wrong.as_bytes());
        let output = desk.run(&arguments);
        let said = desk.said(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(
            said.starts_with("error: cannot use the table of models {root}/.config/proem/models.toml")
                && said.contains(why),
            "{said}"
        );
    }
}

#[test]
fn a_conversation_is_followed_through_a_cache() {
    let desk = Desk::new();
    let system = "Rule: read before you write. ".repeat(400);
    desk.write("system.md", system.as_bytes());
    let mut turns = String::new();
    let mut messages = json!([]);
    for turn in 1..=3 {
        desk.write("messages.json", messages.to_string().as_bytes());
        let prompt = format!("Question {turn}");
        let arguments = [
            "build",
            "--profile",
            "template",
            "--system",
            "system.md",
            "--model",
            "claude-opus-5",
            "--for",
            "anthropic",
            "--messages",
            "messages.json",
            "--prompt-text",
            &prompt,
            "--format",
            "json",
        ];
        let shape: Value = serde_json::from_str(&text(&desk.run(&arguments))).unwrap();
        turns.push_str(&format!("{}\n", shape["payload"]));
        messages = shape["history"].clone();
        messages.as_array_mut().unwrap().push(json!({"role": "assistant", "content": "Answer"}));
    }
    desk.write("turns.jsonl", turns.as_bytes());
    let arguments = ["simulate", "--provider", "anthropic", "--model", "claude-opus-5", "turns.jsonl"];
    let table = text(&desk.run(&arguments));
    assert!(table.lines().count() == 6 && table.contains("as of 2026-11-15"), "{table}");
    let json_arguments: Vec<&str> = arguments.into_iter().chain(["--format", "json"]).collect();
    let found: Value = serde_json::from_str(&text(&desk.run(&json_arguments))).unwrap();
    let figure = |turn: usize, key: &str| found["turns"][turn][key].as_u64().unwrap();
    for turn in 1..3 {
        let written_before = figure(turn - 1, "read") + figure(turn - 1, "written");
        assert_eq!(figure(turn, "read"), written_before, "each turn reads what the last one left");
        assert_eq!(figure(turn, "uncached"), 0);
    }
}

#[test]
fn requests_that_are_none_are_refused() {
    let desk = Desk::new();
    desk.write("empty.jsonl", b"\n\n").write("text.jsonl", b"{}\nhello\n").write("list.jsonl", b"{}\n[]\n");
    let run = |file: &str| desk.run(&["simulate", "--provider", "anthropic", file]);
    assert_eq!(run("empty.jsonl").status.code(), Some(0));
    assert!(desk.said(&run("empty.jsonl").stderr).contains("the file has no request"));
    for file in ["text.jsonl", "list.jsonl"] {
        let output = run(file);
        let said = desk.said(&output.stderr);
        assert!(
            output.status.code() == Some(2) && said.contains("cannot read request 2, from line"),
            "{said}"
        );
    }
}

/// A request of one provider says little about the cache of another, and prices are those of the model.
#[test]
fn requests_of_another_form_are_doubted_and_prices_are_the_models() {
    let desk = Desk::new();
    let built = |provider: &'static str| {
        let arguments = with(&["-q", "--for", provider, "--prompt", "Hello", "--model", "claude-opus-5"]);
        desk.run(&arguments).stdout
    };
    let turn = String::from_utf8(built("anthropic")).unwrap();
    desk.write("turns.jsonl", (turn.clone() + &turn).as_bytes());
    let simulated = |provider: &'static str| {
        let output = desk.run(&["simulate", "--provider", provider, "turns.jsonl"]);
        assert_eq!(output.status.code(), Some(0), "{}", desk.said(&output.stderr));
        let last = text(&output).lines().last().unwrap().to_owned();
        (last.split_once("; ").unwrap().1.to_owned(), desk.said(&output.stderr))
    };
    let own = "rules and prices of anthropic as of 2026-11-15";
    assert_eq!(simulated("anthropic"), (own.to_owned(), String::new()));
    let (prices, warning) = simulated("openai-responses");
    assert_eq!(prices, "rules of openai, prices of claude-opus-5 (anthropic) as of 2026-11-15");
    let expected = "warning: request 1 is not in the form of openai-responses: it looks like one of anthropic, and 1 more is \
                    not either; make it with `proem build --for openai-responses`\n";
    assert_eq!(warning, expected);
    desk.write("turns.jsonl", &built("openai-chat"));
    assert_eq!(simulated("openai").1, "", "one cache, two forms");
}
