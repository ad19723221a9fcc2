//! Collectors: recordings of agents become calls. Cases are `corpus/collectors/SOURCE/CASE`; damage of any kind is noted.

#![expect(clippy::unwrap_used, reason = "a case that cannot be laid out must stop the test")]

use std::fs;
use std::path::{Path, PathBuf};

use proem::traffic::Call;
use proem::traffic::call::{CallUsage, HintPlace};
use proem::traffic::collect::{ReadOptions, ReadSummary, TrafficSource, read};
use proem_core::limit::{COLLECT_BODY_BYTES_MAX, COLLECT_LINE_BYTES_MAX, COLLECT_NOTES_MAX};
use proem_testkit::project_root;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn collect(source: TrafficSource, path: &Path) -> (Vec<Call>, ReadSummary) {
    let mut calls = Vec::new();
    let summary = read(source, path, &ReadOptions::default(), &mut |call| calls.push(call));
    assert_eq!(summary.calls, calls.len());
    (calls, summary)
}

/// Returns the cases: source, name and folder.
fn cases() -> Vec<(TrafficSource, String, PathBuf)> {
    let root = project_root().join("corpus/collectors");
    let mut found = Vec::new();
    for source in TrafficSource::ALL {
        let folder = root.join(source.name());
        let mut names: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        names.sort();
        for path in names {
            found.push((source, format!("{}/{}", source.name(), path.file_name().unwrap().display()), path));
        }
    }
    found
}

fn usage_shape(usage: &CallUsage) -> Value {
    json!([usage.read, usage.written, usage.written_1h, usage.uncached, usage.output])
}

/// Returns a call as JSON, without what is unknown. The paths of places begin below `input`.
fn shape(call: &Call, input: &Path) -> Value {
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| {
        let is_empty = value.is_null() || value == json!([]) || value == json!(false);
        if !is_empty {
            fields.insert(name.to_owned(), value);
        }
    };
    put("id", json!(call.id.replace(&format!("{}/", input.display()), "")));
    put("at", json!(call.at));
    let place = call.place.as_ref().unwrap();
    let path = place.path.replace(&format!("{}/", input.display()), "");
    put("place", json!([path, place.line]));
    put("agent", json!(call.agent.as_ref().map(|agent| json!([agent.name, agent.version]))));
    for (name, value) in [
        ("conversation", &call.conversation),
        ("thread", &call.thread),
        ("parent", &call.parent),
        ("provider", &call.provider),
        ("host", &call.route.host),
        ("model", &call.model),
        ("cwd", &call.cwd),
    ] {
        put(name, json!(value));
    }
    put("purpose", json!(call.purpose));
    put("wire", json!(call.wire));
    put("headers", json!(call.headers.iter().collect::<Vec<_>>()));
    put("usage", usage_shape(&call.usage));
    put("reason", json!(call.provider_reason));
    put("is_subscription", json!(call.is_subscription));
    let hint = |hint: &proem::traffic::call::OwnerHint| match &hint.place {
        HintPlace::Text(text) => json!([hint.kind, hint.name, hint.path, text.as_ref()]),
        HintPlace::Part(part) => json!([hint.kind, hint.name, hint.path, {"part": part}]),
    };
    put("hints", Value::Array(call.hints.iter().map(hint).collect()));
    put("body", call.body.as_deref().map_or(Value::Null, |body| serde_json::from_str(body).unwrap()));
    Value::Object(fields)
}

#[test]
fn every_case_gives_its_calls() {
    let mut wrong = Vec::new();
    for (source, name, folder) in cases() {
        let input = folder.join("input");
        let (calls, summary) = collect(source, &input);
        let mut shapes: Vec<Value> = calls.iter().map(|call| shape(call, &input)).collect();
        // Without index and events, times are those of the files.
        if name == "claude-code/content" {
            for call in &mut shapes {
                drop(call.as_object_mut().unwrap().remove("at"));
            }
            shapes.sort_by_key(|call| call["id"].to_string());
        }
        let notes: Vec<String> = summary
            .notes
            .iter()
            .map(|note| {
                let message = note.message.replace(&format!("{}/", input.display()), "");
                format!("{} {}: {message}", note.severity.word(), note.code)
            })
            .collect();
        let found =
            json!({"files": summary.files, "foreign": summary.foreign, "calls": shapes, "notes": notes});
        let text = serde_json::to_string_pretty(&sorted(found)).unwrap() + "\n";
        let path = folder.join("expected.json");
        if std::env::var_os("PROEM_BLESS").is_some() {
            fs::write(&path, &text).unwrap();
        } else if fs::read_to_string(&path).unwrap_or_default() != text {
            wrong.push(format!("{name}:\n{text}"));
        }
    }
    assert!(wrong.is_empty(), "PROEM_BLESS=1 writes these:\n{}", wrong.join("\n"));
}

/// Sorts keys, in builds that keep their order too.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut pairs: Vec<_> = fields.into_iter().map(|(key, value)| (key, sorted(value))).collect();
            pairs.sort_by(|one, other| one.0.cmp(&other.0));
            Value::Object(pairs.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        other => other,
    }
}

/// The fixtures hold credentials in headers and options; none of them may be anywhere in a result.
#[test]
fn no_credential_reaches_a_call_or_a_note() {
    let mut inputs = 0;
    for (source, name, folder) in cases() {
        let mut files = Vec::new();
        walk(&folder.join("input"), &mut files);
        let has_secret = |file: &PathBuf| fs::read_to_string(file).unwrap().contains("secret");
        inputs += usize::from(files.iter().any(has_secret));
        let (calls, summary) = collect(source, &folder.join("input"));
        let shown = format!("{calls:?} {summary:?}");
        for word in ["our-secret", "sk-ant-api03", "me:key@", "Bearer"] {
            assert!(!shown.contains(word), "{name} shows {word}");
        }
    }
    assert!(inputs >= 3, "{inputs}");
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for entry in entries {
        if entry.is_dir() { walk(&entry, files) } else { files.push(entry) }
    }
}

/// Lays a copy of a case out.
fn copy(folder: &Path) -> tempfile::TempDir {
    let copied = tempfile::tempdir().unwrap();
    let mut files = Vec::new();
    walk(folder, &mut files);
    for file in files {
        let target = copied.path().join(file.strip_prefix(folder).unwrap());
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::copy(&file, &target).unwrap();
    }
    copied
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// A file that ends anywhere gives at least the calls of its whole lines.
    #[test]
    fn a_torn_file_keeps_its_earlier_calls(case in any::<prop::sample::Index>(), file in any::<prop::sample::Index>(), cut in 0.0..1.0) {
        let cases = cases();
        let (source, name, folder) = &cases[case.index(cases.len())];
        let copied = copy(&folder.join("input"));
        let mut files = Vec::new();
        walk(copied.path(), &mut files);
        let file = &files[file.index(files.len())];
        let (whole, _) = collect(*source, copied.path());
        let bytes = fs::read(file).unwrap();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "any place will do")]
        let end = (bytes.len() as f64 * cut) as usize;
        fs::write(file, &bytes[..end]).unwrap();
        let lines = bytes[..end].split(|byte| *byte == b'\n').count() - 1;
        let (torn, _) = collect(*source, copied.path());
        let ids: Vec<_> = torn.iter().map(|call| call.id.as_str()).collect();
        for call in whole {
            let place = call.place.unwrap();
            let is_kept = Path::new(&place.path) == file.as_path() && place.line.is_some_and(|line| line <= lines);
            prop_assert!(!is_kept || ids.contains(&call.id.as_str()), "{name}: {} of {:?} is lost", call.id, place);
        }
    }

    /// Damage in the middle of a file never stops a reading.
    #[test]
    fn damaged_bytes_never_stop_a_reading(case in any::<prop::sample::Index>(), edits in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>()), 1..20)) {
        let cases = cases();
        let (source, _, folder) = &cases[case.index(cases.len())];
        let copied = copy(&folder.join("input"));
        let mut files = Vec::new();
        walk(copied.path(), &mut files);
        for (file, place, byte) in edits {
            let file = &files[file.index(files.len())];
            let mut bytes = fs::read(file).unwrap();
            if !bytes.is_empty() {
                let place = place.index(bytes.len());
                bytes[place] = byte;
                fs::write(file, bytes).unwrap();
            }
        }
        for source in TrafficSource::ALL.into_iter().filter(|other| other == source) {
            let (_, summary) = collect(source, copied.path());
            prop_assert!(summary.notes.len() <= COLLECT_NOTES_MAX + 1);
        }
    }
}

/// Reads lines as the source `jsonl`, and returns calls and the messages of notes without their folder.
fn lines(text: &[u8]) -> (Vec<Call>, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("calls.jsonl");
    fs::write(&file, text).unwrap();
    let (calls, summary) = collect(TrafficSource::Jsonl, folder.path());
    let bare = |message: &str| message.replace(&format!("{}/", folder.path().display()), "");
    (calls, summary.notes.iter().map(|note| bare(&note.message)).collect())
}

#[test]
fn bad_lines_are_noted_with_file_and_line() {
    const GOOD: &str =
        r#"{"id":"a","at":5,"request":{"model":"m"},"response":{"usage":{"prompt_tokens":4}},"unknown":[1]}"#;
    for (text, ids, notes) in [
        (format!("{GOOD}\n"), vec!["a"], vec![]),
        (
            format!("{GOOD}\n{{\"id\": \"b\", \"requ"),
            vec!["a"],
            vec!["calls.jsonl:2: the last line is incomplete"],
        ),
        (
            format!("{{\"id\": 7}}\nnot JSON\n{GOOD}"),
            vec!["a"],
            vec![
                "calls.jsonl:1: text is not JSON of the expected shape (2 times in this file; this is the first)",
            ],
        ),
        // The same call twice is one call.
        (format!("{GOOD}\n{GOOD}\n"), vec!["a"], vec![]),
        (
            format!("{GOOD}\n{}\n", GOOD.replace("\"a\"", "\"b\"").replace(":5,", ":4,")),
            vec!["a", "b"],
            vec!["calls.jsonl:2: the clock went back between two calls; the order of the file counts"],
        ),
        (
            "{\"id\":\"c\",\"request\":{\"messages\":[]}}\n".to_owned(),
            vec!["c"],
            vec!["calls.jsonl:1: a line has no answer"],
        ),
        (
            format!("{}\n{GOOD}\n", "[".repeat(100_000)),
            vec!["a"],
            vec!["calls.jsonl:1: text is not JSON of the expected shape"],
        ),
    ] {
        let (calls, found) = lines(text.as_bytes());
        assert_eq!(calls.iter().map(|call| call.id.as_str()).collect::<Vec<_>>(), ids, "{text:.200}");
        assert_eq!(found, notes, "{text:.200}");
    }
    let (calls, notes) = lines(&[GOOD.as_bytes(), b"\n\xFF\xFE\x00\n\0\0\n"].concat());
    assert_eq!((calls.len(), notes.len()), (1, 2), "{notes:?}");
    assert!(notes.contains(&"calls.jsonl:2: text is not UTF-8".to_owned()), "{notes:?}");
}

#[test]
fn a_body_over_the_limit_is_left_out_and_told() {
    let text = "x".repeat(COLLECT_BODY_BYTES_MAX);
    let request = json!({"model": "m", "messages": [text]}).to_string();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("00000001.request.json"), &request).unwrap();
    fs::write(folder.path().join("req_1.response.json"), r#"{"usage":{"input_tokens":1}}"#).unwrap();
    let index = json!({"request_id": "req_1", "request_file": "00000001.request.json", "timestamp": "2026-11-17T14:50:31Z"});
    fs::write(folder.path().join("index.jsonl"), format!("{index}\n")).unwrap();
    let (calls, summary) = collect(TrafficSource::ClaudeCode, folder.path());
    assert_eq!((calls[0].body.as_deref(), calls[0].usage.uncached), (None, Some(1)));
    assert!(
        summary.notes.iter().any(|note| note.message.contains("collect_file_bytes_max")),
        "{:?}",
        summary.notes
    );
    let (calls, notes) = lines(format!("{{\"id\":\"a\",\"request\":{request}}}\n").as_bytes());
    assert!(calls.is_empty());
    assert_eq!(notes, ["calls.jsonl:1: a line is longer than `collect_line_bytes_max`"]);
}

#[test]
fn foreign_files_links_and_missing_paths_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("picture.png"), b"\x89PNG\0\0").unwrap();
    fs::write(folder.path().join("other.jsonl"), "{\"n\": 1}\n{\"n\": 2}\n").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("/dev/zero", folder.path().join("endless.jsonl")).unwrap();
    for source in TrafficSource::ALL {
        let (calls, summary) = collect(source, folder.path());
        assert!(calls.is_empty() && !summary.notes.is_empty(), "{source:?}");
        assert!(summary.files == 2 && summary.foreign >= 1, "{source:?}: {summary:?}");
        let (_, missing) = collect(source, &folder.path().join("none"));
        assert_eq!((missing.files, missing.notes.len()), (0, 1));
    }
    let options = ReadOptions { since: Some(i64::MAX), ..ReadOptions::default() };
    let summary = read(TrafficSource::Jsonl, folder.path(), &options, &mut |_| {});
    assert_eq!((summary.files, summary.old), (2, 2));
}

/// Kilobytes behind a word in this process's status.
#[cfg(target_os = "linux")]
fn status(word: &str) -> usize {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(word)).unwrap();
    line.trim_matches([':', ' ', '\t', 'k', 'B']).parse().unwrap()
}

/// A file of 2 GiB between two calls takes the memory of one line, and both calls are found.
#[test]
#[cfg(target_os = "linux")]
fn a_file_of_two_gibibytes_takes_bounded_memory() {
    use std::io::{Seek, SeekFrom, Write};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("calls.jsonl");
    let mut file = fs::File::create(&path).unwrap();
    let call = |id: &str| format!("{{\"id\":\"{id}\",\"at\":1,\"request\":{{}},\"response\":{{}}}}\n");
    file.write_all(call("a").as_bytes()).unwrap();
    file.seek(SeekFrom::Start(2 << 30)).unwrap();
    file.write_all(format!("\n{}", call("b")).as_bytes()).unwrap();
    drop(file);
    let before = status("VmHWM");
    let (calls, summary) = collect(TrafficSource::Jsonl, &path);
    let grown = (status("VmHWM").saturating_sub(before)) << 10;
    assert_eq!(calls.iter().map(|call| call.id.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert!(
        summary.notes[0].message.ends_with(":2: a line is longer than `collect_line_bytes_max`"),
        "{summary:?}"
    );
    assert!(grown <= 3 * COLLECT_LINE_BYTES_MAX, "{grown} bytes");
}

/// Reads a folder of recordings and prints what was found: `PROEM_RECORDINGS=SOURCE:PATH`, with `--no-capture`.
#[test]
#[ignore = "reads a folder that is named in the environment"]
fn recordings_are_counted() {
    let named = std::env::var("PROEM_RECORDINGS").unwrap();
    for one in named.split(',') {
        let (source, path) = one.split_once(':').unwrap();
        let (calls, summary) = collect(TrafficSource::from_name(source).unwrap(), Path::new(path));
        let bodies = calls.iter().filter(|call| call.body.is_some()).count();
        println!(
            "{source} {path}: {} files, {} foreign, {} calls, {bodies} bodies",
            summary.files,
            summary.foreign,
            calls.len()
        );
        for call in &calls {
            let hints = call.hints.len();
            println!("  {} {:?} {:?} {:?} hints {hints}", call.id, call.purpose, call.thread, call.usage);
        }
        for note in &summary.notes {
            println!("  note: {}", note.message);
        }
        if let Ok(folder) = std::env::var("PROEM_BODIES") {
            for call in &calls {
                let name = format!("{}/{source}.{}.json", folder, call.id.replace('/', "_"));
                fs::write(name, call.body.as_deref().unwrap_or("null")).unwrap();
            }
        }
    }
}
