//! The corpus through the library: bytes, notes, spans, and the documented JSON shape.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

use proem::wire::BuildShape;
use proem::{Caller, Kind, Request};
use proem_testkit::{Outcome, for_each_case, project_root};
use serde_json::{Value, json};

fn run(request: &str) -> (Outcome, Option<Value>) {
    let result = Request::from_json(request).and_then(|request| proem::build(&request, Caller::User));
    match result {
        Ok(build) => {
            let shape = serde_json::to_value(BuildShape::of(&build)).unwrap();
            (outcome(&shape), Some(shape))
        }
        Err(error) => {
            let code = if error.kind() == Kind::Usage { 2 } else { 3 };
            (Outcome::Failed { message: error.to_string(), hint: error.hint(), code }, None)
        }
    }
}

fn outcome(shape: &Value) -> Outcome {
    let brief = |note: &Value| json!({"code": note["code"], "message": note["message"], "severity": note["severity"]});
    Outcome::Built {
        carriers: shape["carriers"].as_object().unwrap().clone(),
        notes: shape["notes"].as_array().unwrap().iter().map(brief).collect(),
    }
}

/// Spans cover each carrier from its first byte to its last, without gap or overlap.
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
            assert!(schema.is_valid(&shape), "{}", schema.validate(&shape).unwrap_err());
        }
        let (again, _) = run(&laid.request);
        assert_eq!(outcome, again, "{}: a second build differs", case.name());
    });
}
