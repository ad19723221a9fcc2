//! The corpus through the library: bytes, notes, spans, and the documented JSON shape.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

use proem::build_shape::BuildShape;
use proem::stored_prompt::StoredPrompt;
use proem::{Caller, ErrorKind, Request};
use proem_core::digest::Digest;
use proem_testkit::{CaseOutcome, for_each_case, project_root};
use serde_json::{Value, json};

fn run(request: &str) -> (CaseOutcome, Option<Value>) {
    let result = Request::from_json(request).and_then(|request| proem::build(&request, Caller::User));
    match result {
        Ok(build) => {
            let shape = serde_json::to_value(BuildShape::new(&build)).unwrap();
            (outcome(&shape), Some(shape))
        }
        Err(error) => {
            let code = if error.kind() == ErrorKind::Usage { 2 } else { 3 };
            (CaseOutcome::Failed { message: error.to_string(), hint: error.hint(), code }, None)
        }
    }
}

fn outcome(shape: &Value) -> CaseOutcome {
    let brief = |note: &Value| json!({"code": note["code"], "message": note["message"], "severity": note["severity"]});
    CaseOutcome::Built {
        carriers: shape["carriers"].as_object().unwrap().clone(),
        notes: shape["notes"].as_array().unwrap().iter().map(brief).collect(),
    }
}

/// Checks that spans cover each carrier from its first byte to its last, without gap or overlap.
fn check_spans(shape: &Value) {
    for (carrier, text) in shape["carriers"].as_object().unwrap() {
        for list in ["spans", "sections"] {
            let mut next = 0;
            for span in
                shape[list].as_array().unwrap().iter().filter(|span| span["carrier"] == json!(carrier))
            {
                assert_eq!(span["start"], json!(next), "{list} of {carrier}");
                next = span["end"].as_u64().unwrap();
            }
            assert_eq!(next, text.as_str().unwrap().len() as u64, "{list} of {carrier}");
        }
    }
}

/// Checks that the source of a span is true: its text is in that file, or is the file's path.
fn check_claims(shape: &Value) {
    for span in shape["spans"].as_array().unwrap().iter().filter(|span| span["template"].is_object()) {
        let (Some("file"), Some(path)) = (span["source"]["kind"].as_str(), span["source"]["path"].as_str())
        else {
            continue;
        };
        let carrier = shape["carriers"][span["carrier"].as_str().unwrap()].as_str().unwrap_or_default();
        let [start, end] = ["start", "end"].map(|key| usize::try_from(span[key].as_u64().unwrap()).unwrap());
        let text = carrier.get(start..end).unwrap();
        // Only texts that are inserted whole have a line; names and descriptions are taken out of YAML.
        if span["source"]["line"].is_u64() {
            // A path with a line break is shown with an escape, and so names no file.
            let Ok(file) = std::fs::read_to_string(path) else { continue };
            let own = text.strip_suffix("\n... [truncated]").unwrap_or(text);
            assert!(file.contains(own), "{path} does not have {own:?}");
        }
    }
}

/// Checks that the digest of the directory of skills is that of its lines in the prompt.
fn check_skill_directory(shape: &Value) {
    let sections = shape["sections"].as_array().unwrap();
    let text = sections.iter().find(|section| section["id"] == json!("skills")).map(|section| {
        let [start, end] =
            ["start", "end"].map(|key| usize::try_from(section[key].as_u64().unwrap()).unwrap());
        shape["carriers"]["system"].as_str().unwrap().get(start..end).unwrap()
    });
    let directory = text.filter(|text| !text.is_empty()).map(|text| {
        // A blank line, the heading and one sentence come first.
        let lines = text.splitn(5, '\n').last().unwrap();
        Digest::new(lines.strip_suffix('\n').unwrap().as_bytes()).hex()
    });
    assert_eq!(shape["skill_directory"].as_str(), directory.as_deref());
}

/// Checks that a stored prompt reads back as the same prompt.
fn check_storing(request: &str) {
    let Ok(request) = Request::from_json(request) else { return };
    assert_eq!(Request::from_json(&request.to_json().unwrap()).unwrap(), request);
    if let Ok(build) = proem::build(&request, Caller::User) {
        let stored = StoredPrompt::from_frozen(build.frozen()).unwrap();
        assert_eq!(stored.frozen().unwrap(), *build.frozen());
    }
}

/// Rows C7, T2, G9, F1, F8 and M1 to M5.
#[test]
fn every_case_gives_its_bytes_and_notes() {
    let schema: Value = serde_json::from_str(
        &std::fs::read_to_string(project_root().join("docs/schema/build.json")).unwrap(),
    )
    .unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    for_each_case(|case| {
        let laid = case.lay_out();
        let (outcome, shape) = run(&laid.request);
        case.check(&laid, &outcome);
        if let Some(shape) = shape {
            check_spans(&shape);
            check_claims(&shape);
            if case.name().starts_with("boundary/") {
                check_skill_directory(&shape);
            }
            assert!(schema.is_valid(&shape), "{}", schema.validate(&shape).unwrap_err());
        }
        check_storing(&laid.request);
        let (again, _) = run(&laid.request);
        assert_eq!(outcome, again, "{}: a second build differs", case.name());
    });
}
