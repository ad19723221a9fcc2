//! Findings as SARIF 2.1.0, which code hosts show beside the lines that they are about.

use std::collections::BTreeSet;
use std::path::Path;

use proem_core::digest::Digest;
use proem_core::note::{Code, Note, Severity};
use proem_core::text::Place;
use serde_json::{Value, json};

use super::Report;
use crate::observe::file::without_dots;
use crate::settings::allow::file_of;

const DOCUMENTATION: &str = "docs/notes.md";

/// A report for those who show it; paths are relative to `root` where they lie below it.
#[must_use]
pub fn sarif(report: &Report, root: &Path) -> Value {
    // What is allowed is not there: code hosts show it as open, whatever is said about its suppression.
    let codes: BTreeSet<Code> = report.findings.iter().map(|note| note.code).collect();
    let codes: Vec<Code> = codes.into_iter().collect();
    let results: Vec<Value> = report.findings.iter().map(|note| result(note, &codes, root)).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "proem",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": codes.iter().map(|code| rule(*code)).collect::<Vec<_>>(),
            } },
            "columnKind": "unicodeCodePoints",
            "originalUriBaseIds": { "%SRCROOT%": { "uri": format!("file://{}/", uri(&root.to_string_lossy())) } },
            "results": results,
        }],
    })
}

fn rule(code: Code) -> Value {
    json!({
        "id": code.word(),
        "shortDescription": { "text": code.about() },
        "help": { "text": format!("{DOCUMENTATION}#{}", code.word()) },
    })
}

fn result(note: &Note, codes: &[Code], root: &Path) -> Value {
    let level = match note.severity {
        Severity::Info => "note",
        Severity::Warning => "warning",
        Severity::Error => "error",
    };
    let hint = note.hint.as_ref().map_or_else(String::new, |hint| format!(". {hint}"));
    let place = location(note, root);
    let told = format!("{}\n{}\n{}", note.code.word(), note.message, place);
    json!({
        "ruleId": note.code.word(),
        "ruleIndex": codes.iter().position(|code| *code == note.code),
        "level": level,
        "message": { "text": format!("{}{hint}", note.message) },
        "locations": [place],
        "partialFingerprints": { "proem/v1": Digest::new(told.as_bytes()).hex() },
    })
}

fn location(note: &Note, root: &Path) -> Value {
    let Some((source, path)) = note.source.as_ref().and_then(|source| Some((source, file_of(source)?)))
    else {
        let name = note
            .source
            .as_ref()
            .map_or_else(|| "prompt".to_owned(), |source| source.without_place().to_string());
        // Code hosts refuse a finding without a file: the settings are where such a thing is said.
        return json!({
            "physicalLocation": {
                "artifactLocation": { "uri": ".proem/proem.toml", "uriBaseId": "%SRCROOT%" },
                "region": { "startLine": 1, "startColumn": 1 },
            },
            "logicalLocations": [{ "fullyQualifiedName": name }],
        });
    };
    let path = &absolute(path);
    let artifact = match Path::new(path).strip_prefix(root) {
        Ok(inside) => json!({ "uri": uri(&inside.to_string_lossy()), "uriBaseId": "%SRCROOT%" }),
        Err(_) => json!({ "uri": format!("file://{}", uri(path)) }),
    };
    let Place { line, column } = source.place().unwrap_or(Place { line: 1, column: 1 });
    json!({ "physicalLocation": {
        "artifactLocation": artifact,
        "region": { "startLine": line, "startColumn": column },
    } })
}

/// A template of the command line is named as it was written there.
fn absolute(path: &str) -> String {
    let own = std::env::current_dir().unwrap_or_default();
    let whole = without_dots(&own.join(path));
    let real = crate::observe::file::canonical(&whole).unwrap_or(whole);
    real.to_string_lossy().into_owned()
}

/// A path as an address has it: what is not plain is spelt in bytes.
fn uri(path: &str) -> String {
    let spell = |byte: u8| match byte {
        b'/' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        plain if plain.is_ascii_alphanumeric() => char::from(plain).to_string(),
        other => format!("%{other:02X}"),
    };
    path.bytes().map(spell).collect()
}
