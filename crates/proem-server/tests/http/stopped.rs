//! Templates that use their whole budget: other clients are served meanwhile, and work for a disconnected client stops.

use serde_json::json;

use crate::client::{Call, Line};
use crate::server::{Server, Site};

/// A template that compares two long lists as often as the budget of a build allows.
const LONG: &str = "{% set x = range(40000)|list %}{% set y = range(40000)|list %}\
    {% for i in range(20000) %}{% if x == y %}{% endif %}{% endfor %}";

/// A template that compares two values of 2^60 parts each.
fn doubled() -> String {
    let twice = |name: &str| format!("{{% set {name} = [{name}, {name}] %}}").repeat(60);
    format!("{{% set a = 1 %}}{{% set b = 1 %}}{}{}{{{{ a == b }}}}", twice("a"), twice("b"))
}

/// Returns a turn in a workspace that chooses the template itself.
fn hostile(site: &Site, id: &str, template: &str) -> Call {
    site.write(&format!("work/{id}/.proem/proem.toml"), "profile = \"assets\"\ntemplate = \"t.j2\"\n");
    site.write(&format!("work/{id}/.proem/t.j2"), template);
    let cwd = site.text(&format!("work/{id}"));
    Call::json("POST", &format!("/conversations/{id}/turn"), &json!({ "cwd": cwd }))
}

fn metric(server: &Server, name: &str) -> u64 {
    let text = server.ask_raw(&Call::get("/metrics").bytes(server.address, "close"), false).body;
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ').map(str::to_owned));
    value.unwrap().parse().unwrap()
}

/// Polls a metric until it has the expected value.
fn wait_for(server: &Server, name: &str, expected: u64) {
    wait_until(server, name, |value| value == expected);
}

/// Polls a metric until its value is an expected one.
fn wait_until(server: &Server, name: &str, is_expected: impl Fn(u64) -> bool) {
    const QUESTIONS_MAX: usize = 100_000;
    let is_so = |_| is_expected(metric(server, name));
    assert!((0..QUESTIONS_MAX).any(is_so), "{name} stays at {}", metric(server, name));
}

/// Repeats a turn until the server is not busy.
fn first_turn(server: &Server, id: &str) -> (u16, String) {
    let body = json!({ "profile": "template", "system": "Be brief." });
    let call = Call::json("POST", &format!("/conversations/{id}/turn"), &body);
    loop {
        let answer = server.ask(&call);
        if answer.status != 503 {
            return (answer.status, answer.system());
        }
    }
}

#[test]
fn four_turns_that_take_all_places_end_and_leave_room_for_others() {
    let site = Site::new();
    let options = proem_server::Options { work_max: 4, ..site.options() };
    let server = Server::start(site.store(), options);
    let mut lines: Vec<Line> = Vec::new();
    let doubled = doubled();
    for (index, template) in [LONG, doubled.as_str(), LONG, doubled.as_str()].into_iter().enumerate() {
        let mut line = Line::open(server.address);
        assert!(line.send(&hostile(&site, &format!("h{index}"), template).bytes(server.address, "close")));
        lines.push(line);
    }
    assert_eq!(first_turn(&server, "other"), (200, "Be brief.".into()));
    for mut line in lines {
        let answer = line.answer(false).unwrap();
        // On a busy machine the request may time out first.
        let expected = if answer.status == 503 { "busy" } else { "build_failed" };
        assert_eq!(answer.code(), expected, "{answer:?}");
    }
    wait_for(&server, "proem_work_running", 0);
    assert_eq!(server.ask(&Call::get("/readyz")).status, 200);
    assert_eq!(first_turn(&server, "last"), (200, "Be brief.".into()));
}

#[test]
fn work_for_a_client_that_has_gone_stops() {
    let site = Site::new();
    let options = proem_server::Options { work_max: 1, ..site.options() };
    let server = Server::start(site.store(), options);
    let mut line = Line::open(server.address);
    assert!(line.send(&hostile(&site, "gone", LONG).bytes(server.address, "close")));
    wait_for(&server, "proem_work_running", 1);
    // This one waits in the queue. It is started only if its place is free before its disconnection is seen.
    let mut waiting = Line::open(server.address);
    assert!(waiting.send(&hostile(&site, "waiting", LONG).bytes(server.address, "close")));
    drop(waiting);
    drop(line);
    wait_until(&server, "proem_work_stopped_total", |stopped| stopped >= 1);
    wait_for(&server, "proem_work_running", 0);
    assert_eq!(first_turn(&server, "next"), (200, "Be brief.".into()));
}
