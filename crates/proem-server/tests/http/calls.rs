//! Calls of agents: recorded, listed, and summed up.

use serde_json::{Value, json};

use crate::client::Call;
use crate::routes::done;
use crate::server::Site;

fn request(system: &str, messages: usize) -> Value {
    let messages: Vec<Value> =
        (0..messages).map(|index| json!({ "role": "user", "content": format!("message {index}") })).collect();
    json!({ "model": "claude-opus-5", "messages": messages,
        "system": [{ "type": "text", "text": system, "cache_control": { "type": "ephemeral" } }] })
}

fn line(id: usize, system: &str, read: u64) -> Value {
    let usage = json!({ "input_tokens": 5, "cache_read_input_tokens": read,
        "cache_creation_input_tokens": 5_000 - read, "output_tokens": 7 });
    let now = jiff::Timestamp::now().as_millisecond();
    json!({ "id": format!("r{id}"), "at": now - 60_000 + i64::try_from(id).unwrap() * 2_000, "conversation": "s",
        "agent": "codex", "cwd": "/work", "request": request(system, id + 1), "response": { "usage": usage } })
}

#[test]
fn calls_of_agents_are_judged_listed_and_summed_up() {
    let site = Site::new();
    let server = site.serve();
    let one = done(&server, &Call::json("POST", "/calls", &line(0, "Time 10:00:01", 0)));
    assert_eq!((&one["version"], &one["added"], &one["notes"]), (&json!(1), &json!(1), &json!([])));
    let list = json!([line(1, "Time 10:00:02", 0), line(0, "Time 10:00:01", 0)]);
    let two = done(&server, &Call::json("POST", "/calls", &list));
    assert_eq!((&two["added"], &two["calls"][1]["verdict"]), (&json!(1), &json!("cold_start")));
    let miss = &two["calls"][0];
    assert_eq!(
        (&miss["id"], &miss["verdict"], &miss["alarming"], &miss["conversation"]),
        (&json!("r1"), &json!("system_changed"), &json!(true), &json!("codex:s"))
    );
    assert_eq!((&miss["where"]["byte"], &miss["owner"]), (&json!(12), &json!({ "kind": "clock" })));
    assert_eq!((&miss["expected_read"], &miss["lost_tokens"]), (&json!(5_000), &json!(5_000)));
    let lines =
        format!("{}\nnot JSON\n{}\n", line(2, "Time 10:00:02", 5_000), line(3, "Time 10:00:02", 5_000));
    let call = Call::new("POST", "/calls").text("application/x-ndjson", lines);
    let three = done(&server, &call);
    assert_eq!(three["added"], 2);
    assert_eq!(three["notes"][0]["code"], "unreadable");

    let page = done(&server, &Call::get("/calls?limit=3"));
    let ids: Vec<&str> =
        page["calls"].as_array().unwrap().iter().map(|call| call["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["r3", "r2", "r1"]);
    let next = page["next"].as_str().unwrap();
    let rest = done(&server, &Call::get(&format!("/calls?limit=3&after={next}")));
    assert_eq!((&rest["calls"][0]["id"], &rest["next"]), (&json!("r0"), &Value::Null));
    for (query, count) in [
        ("conversation=codex:s", 4),
        ("conversation=s", 4),
        ("conversation=t", 0),
        ("verdict=hit", 2),
        ("verdict=hit,system_changed", 3),
        ("model=claude-opus-5", 4),
        ("cwd=/elsewhere", 0),
        ("alarming=true", 1),
        ("owner=clock", 1),
        ("since=1h", 4),
        ("until=1h", 0),
        ("since=2999-01-01", 0),
    ] {
        let found = done(&server, &Call::get(&format!("/calls?{query}")));
        assert_eq!(found["calls"].as_array().unwrap().len(), count, "{query}");
    }
    assert_eq!(&done(&server, &Call::get("/calls/r1")), miss);
    assert_eq!(server.ask(&Call::get("/calls/r9")).status, 404);

    let usage = done(&server, &Call::get("/usage?by=owner"));
    let totals = &usage["totals"];
    assert_eq!(
        (&totals["calls"], &totals["read"], &totals["output"]),
        (&json!(4), &json!(10_000), &json!(28))
    );
    assert_eq!(totals["by_verdict"]["hit"]["calls"], 2);
    assert_eq!(totals["lost_usd"]["agent"], miss["lost_usd"]);
    assert_eq!(usage["groups"].as_array().unwrap().len(), 2);
    let models = done(&server, &Call::get("/usage?by=model&since=1h"));
    assert_eq!(
        (&models["groups"][0]["key"], &models["groups"][0]["calls"]),
        (&json!("claude-opus-5"), &json!(4))
    );

    let observed = done(&server, &Call::get("/conversations?sort=lost_usd"));
    let shown = &observed["conversations"][0];
    assert_eq!(
        (&observed["total"], &shown["conversation"], &shown["kind"], &shown["calls"], &shown["agent"]),
        (&json!(1), &json!("codex:s"), &json!("observed"), &json!(4), &json!("codex"))
    );
    assert_eq!(
        (&shown["read_ratio"], &shown["last_miss"]["id"]),
        (&json!(10_000.0 / 20_020.0), &json!("r1"))
    );
}

#[test]
fn a_wrong_query_or_body_is_refused_with_its_name() {
    let site = Site::new();
    let server = site.serve();
    for (path, what) in [
        ("/calls?verdict=slow", "unknown verdict `slow`"),
        ("/calls?since=soon", "`since` is not a time"),
        ("/calls?after=x", "`after` is not a place"),
        ("/calls?colour=red", "unknown field `colour`"),
        ("/calls?model=%00", "`model` has a NUL"),
        ("/usage?by=moon", "cannot be summed up by `moon`"),
        ("/usage?until=-", "`until` is not a time"),
        ("/conversations?sort=taste", "cannot be sorted by that"),
        ("/conversations?kind=dream", "neither `proem` nor `observed`"),
    ] {
        let answer = server.ask(&Call::get(path));
        assert_eq!(answer.status, 400, "{path}: {answer:?}");
        assert!(answer.json()["message"].as_str().unwrap().contains(what), "{path}: {answer:?}");
    }
    for body in ["", "null", "7", "{}", "[{}]", "{\"at\": 1}\n{\"at\": 2}", "\u{0}\u{1}"] {
        let call = Call::new("POST", "/calls").text("application/json", body);
        let answer = server.ask(&call);
        assert_eq!(answer.status, 400, "{body:?}: {answer:?}");
    }
    assert_eq!(done(&server, &Call::json("POST", "/calls", &json!([])))["added"], 0);
    assert_eq!(server.ask(&Call::json("POST", "/v1/logs", &json!({}))).status, 400);
}

#[test]
fn no_credential_of_a_call_is_stored_or_shown() {
    let site = Site::new();
    let server = site.serve();
    let key = format!("sk-ant-api03-{}", "aB3dE5gH7jK9".repeat(8));
    let with = |id: usize, end: &str| {
        let mut one = line(id, &format!("token {key} {end}"), 0);
        one["request"]["headers"] = json!({ "authorization": format!("Bearer {key}"), "x-api-key": key });
        one["headers"] = json!({ "x-api-key": key, "cookie": key });
        one["request"]["metadata"] = json!({ "user_id": key });
        one["route"] = json!({ "account": key });
        one
    };
    let answer = server.ask(&Call::json("POST", "/calls", &json!([with(0, "a"), with(1, "b")])));
    assert_eq!(answer.json()["calls"][1]["verdict"], "system_changed", "{answer:?}");
    let shown = ["/calls", "/calls/r1", "/usage", "/conversations", "/metrics"]
        .map(|path| server.ask(&Call::get(path)).body);
    drop(server);
    let files = std::fs::read_dir(site.path("store")).unwrap().map(|entry| entry.unwrap().path());
    let stored: Vec<u8> = files.flat_map(|path| std::fs::read(path).unwrap()).collect();
    let part = &key.as_bytes()[20..40];
    assert!(stored.windows(14).any(|window| window == b"system_changed"));
    assert!(!answer.body.contains("dE5gH7jK9aB3"), "{answer:?}");
    assert!(shown.iter().all(|text| !text.contains("dE5gH7jK9aB3")));
    assert!(!stored.windows(part.len()).any(|window| window == part));
}

/// A log record of OTLP.
fn event(name: &str, attributes: &Value) -> Value {
    let mut list = vec![json!({ "key": "event.name", "value": { "stringValue": name } })];
    for (key, value) in attributes.as_object().unwrap() {
        list.push(json!({ "key": key, "value": { "stringValue": value } }));
    }
    json!({ "attributes": list })
}

fn logs(records: &[Value]) -> Call {
    let version = json!([{ "key": "service.version", "value": { "stringValue": "2.1.326" } }]);
    let body = json!({ "resourceLogs": [{ "resource": { "attributes": version },
        "scopeLogs": [{ "logRecords": records }] }] });
    Call::json("POST", "/v1/logs", &body)
}

#[test]
fn telemetry_events_become_calls_also_in_several_batches() {
    let site = Site::new();
    let server = site.serve();
    let at =
        |second: u32| format!("{}T12:00:{second:02}Z", jiff::Timestamp::now().to_string().get(..10).unwrap());
    let call = |id: &str, second: u32, system: &str, read: &str| {
        let body = event(
            "api_request_body",
            &json!({ "request_body_id": format!("b-{id}"), "session.id": "s", "event.timestamp": at(second),
                "body": request(system, 1).to_string() }),
        );
        let answer = event(
            "api_response_body",
            &json!({ "request_body_id": format!("b-{id}"), "request_id": id, "session.id": "s", "event.timestamp": at(second) }),
        );
        let numbers = event(
            "api_request",
            &json!({ "request_id": id, "session.id": "s", "model": "claude-opus-5", "event.timestamp": at(second),
                "input_tokens": "5", "cache_read_tokens": read, "cache_creation_tokens": "5000", "output_tokens": "9" }),
        );
        [body, answer, numbers]
    };
    let [body, answer, numbers] = call("req_1", 1, "Time 1", "0");
    assert_eq!(done(&server, &logs(&[body])), json!({}));
    assert_eq!(done(&server, &Call::get("/calls"))["calls"], json!([]), "its numbers have not come");
    done(&server, &logs(std::slice::from_ref(&answer)));
    done(&server, &logs(std::slice::from_ref(&numbers)));
    done(&server, &logs(&call("req_2", 9, "Time 2", "0")));
    done(&server, &logs(&[answer, numbers]));
    let calls = done(&server, &Call::get("/calls"))["calls"].clone();
    let shown: Vec<(&str, &str)> = calls
        .as_array()
        .unwrap()
        .iter()
        .map(|call| (call["id"].as_str().unwrap(), call["verdict"].as_str().unwrap()))
        .collect();
    assert_eq!(shown, [("req_2", "system_changed"), ("req_1", "cold_start")]);
    assert_eq!(
        (&calls[0]["conversation"], &calls[0]["agent_version"], &calls[0]["where"]["byte"]),
        (&json!("claude-code:s"), &json!("2.1.326"), &json!(5))
    );
    assert_eq!(done(&server, &Call::get("/usage"))["totals"]["calls"], 2);
}
