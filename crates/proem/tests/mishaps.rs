//! Every mishap of the corpus gets the right verdict.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

use proem::compare::{ComparisonShape, Snapshot, compare, lost};
use proem::tokens::Tokenizer;
use proem::{Caller, Request, build};
use proem_testkit::{Mishap, MishapSide, mishaps};
use serde_json::{Value, json};

fn snapshot(side: &MishapSide) -> Snapshot {
    match side {
        MishapSide::Saved(text) => Snapshot::read("saved", text).unwrap(),
        MishapSide::Request(text) => {
            let request = Request::from_json(text).unwrap();
            Snapshot::new("built", build(&request, Caller::User).unwrap().frozen(), &request, None)
        }
    }
}

fn owner(found: &Value) -> Value {
    if found.is_null() {
        return Value::Null;
    }
    let mut source = found["source"].clone();
    for place in ["line", "column"] {
        source.as_object_mut().unwrap().remove(place);
    }
    json!({ "section": found["section"], "source": source, "line": found["line"] })
}

fn said(before: &Snapshot, after: &Snapshot) -> Value {
    let comparison = compare(before, after, Tokenizer::Estimate);
    let lost = lost(&comparison, None);
    let shape = ComparisonShape::new(("a", "b"), &comparison, &lost, None, "");
    let said = serde_json::to_value(&shape).unwrap();
    let first = &said["first_difference"];
    let further: Vec<&Value> = said["further"].as_array().unwrap().iter().map(|one| &one["cause"]).collect();
    json!({
        "cause": first["cause"], "reason": first["reason"], "kind": first["kind"], "place": first["place"],
        "byte": first["byte"], "common_prefix_bytes": said["common_prefix"]["bytes"],
        "a": owner(&first["a"]), "b": owner(&first["b"]), "lost_tokens": said["lost"]["tokens"], "further": further,
    })
}

#[test]
fn every_mishap_gets_its_verdict() {
    let all = mishaps();
    assert!(all.len() >= 60, "there are {} mishaps", all.len());
    let wrong: Vec<String> = all.iter().filter_map(verdict).collect();
    assert!(wrong.is_empty(), "{} of {} are wrong:\n{}", wrong.len(), all.len(), wrong.join("\n"));
}

/// Returns the fault of the verdict, if any.
fn verdict(mishap: &Mishap) -> Option<String> {
    let (before, after, expected) = mishap.look(snapshot);
    let said = said(&before, &after);
    (said != expected).then(|| format!("{}\n  expected {expected}\n  said     {said}", mishap.name()))
}
