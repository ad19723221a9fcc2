//! Secrets appear neither in the log nor in errors. The server runs as a separate process here.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use proem_server::{Options, Token};
use serde_json::json;

use crate::client::{Answer, Call, Line};
use crate::server::{Server, Site, check_decent};

/// The environment variable that turns the test below into the server.
const ROLE: &str = "PROEM_TEST_SITE";

/// Fifty canaries, which are placed where secrets can be.
fn canaries() -> Vec<String> {
    (0..50).map(|index| format!("canary{index:02}q{:08x}", 0x9e37_79b9_u32.wrapping_mul(index + 1))).collect()
}

/// Runs the server that the test below starts; it is not a test itself.
#[test]
#[ignore = "it is started by `secrets_are_neither_logged_nor_in_errors`"]
fn child() {
    let Some(place) = std::env::var_os(ROLE) else { return };
    let place = std::path::PathBuf::from(place);
    let token = std::env::var("PROEM_TOKEN").ok().and_then(|text| Token::new(&text));
    let options = Options { workspaces: vec![place.join("work")], token, ..Options::default() };
    let store =
        proem_store::SqliteStore::open(&place.join("store").join(canaries()[4].as_str()).join("p.db"));
    let server = Server::start(std::sync::Arc::new(store.unwrap()), options);
    println!("\nADDRESS {}", server.address);
    // Until the parent closes it.
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

/// Writes files with canaries: valid ones, and ones with an error at the canary.
fn lay_out(site: &Site, canaries: &[String]) {
    for (name, text) in [
        ("work/AGENTS.md", format!("rules {}\n", canaries[5])),
        ("work/.env", format!("KEY={}\n", canaries[6])),
        ("work/.proem/profiles/broken.toml", format!("{} = [\n", canaries[7])),
        ("work/.proem/profiles/unknown.toml", format!("name = \"unknown\"\n\"{}\" = 1\n", canaries[8])),
        ("work/.proem/profiles/typed.toml", format!("rebuild = \"{}\"\n", canaries[9])),
        ("work/.proem/skills/bad/SKILL.md", format!("---\nname: [{}\n", canaries[10])),
        ("work/sub/.proem/proem.toml", format!("profile = [\"{}\n", canaries[11])),
        ("work/.proem/models.toml", format!("{}\n", canaries[12])),
        ("work/id_rsa", format!("-----BEGIN {}\n", canaries[13])),
        ("outside/secret", canaries[14].clone()),
    ] {
        site.write(name, &text);
    }
    site.link("work/link", &site.path("outside/secret"));
    let folder = site.path("store").join(&canaries[4]);
    std::fs::create_dir_all(folder).unwrap();
}

fn start(site: &Site, canaries: &[String]) -> (Child, std::net::SocketAddr) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "secrets::child", "--nocapture"])
        .env(ROLE, site.path(""))
        .env("PROEM_TOKEN", &canaries[0])
        .env("ANTHROPIC_API_KEY", &canaries[1])
        .env("DATABASE_URL", &canaries[2])
        .env(&canaries[3], "x")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let address = lines.find_map(|line| line.strip_prefix("ADDRESS ").map(str::to_owned));
    // It writes more lines at its end, and would fail if the pipe were closed.
    std::thread::spawn(move || lines.count());
    (child, address.unwrap().parse().unwrap())
}

/// Returns requests that contain canaries in every possible place, or make the server read them.
fn calls(site: &Site, canaries: &[String]) -> Vec<Call> {
    let c = |index: usize| canaries[index].as_str();
    let turn = |body: &serde_json::Value| Call::json("POST", "/conversations/c/turn", body);
    let mut calls = vec![
        turn(
            &json!({ "system": c(15), "append": c(16), "recalled": c(17), "prompt": c(18), "provider": "anthropic" }),
        ),
        turn(
            &json!({ "messages": [{ "role": "user", "content": c(19) }], "provider": "openai-chat", "model": c(20) }),
        ),
        turn(&json!({ "messages": [{ "content": c(21) }] })),
        turn(
            &json!({ "tools": [{ "name": c(22), "description": c(23), "snippet": c(24), "guidelines": [c(25)] }] }),
        ),
        turn(&json!({ "variables": { "prompt:language": c(26) }, "language": c(27), "workspace_id": c(28) })),
        turn(&json!({ "backend": c(29), "mcp_servers": [c(30)], "first_user_text": c(31) })),
        turn(&json!({ "cwd": format!("/{}", c(32)) })),
        turn(&json!({ "profile": c(33) })),
        turn(&json!({ "instruction": c(34), "packs": [c(35)] })),
        turn(&json!({ "host": { "hostname": c(36), "timezone": c(37) } })),
        turn(&json!({ "host": { "env": { "X": c(38) } } })),
        turn(&json!({ c(39): 1 })),
        turn(&json!({ "provider": c(40) })),
        Call::new("POST", "/preview").text("application/json", format!("{{\"template\": {}", c(41))),
        Call::new("PUT", "/system-prompt").text("text/plain", c(42)),
        Call::json("PUT", "/system-prompt", &json!({ "template": c(43), "author": c(44) })),
        Call::get(&format!("/conversations?search={}&after={}", c(45), c(46))),
        Call::get("/conversations").header("origin", &format!("http://{}", c(47))),
        Call::get("/conversations").header("host", c(48)),
        Call::get("/conversations").header("cookie", c(49)).header("referer", c(49)),
        Call::json("POST", "/preview", &json!({ "cwd": site.text("work/sub") })),
        Call::get("/conversations/c"),
        Call::get("/conversations/c/drift"),
        Call::new("POST", "/conversations/c/compaction?commit=true"),
        Call::new("POST", "/conversations/c/reload"),
    ];
    for profile in ["broken", "unknown", "typed", "default", "layers"] {
        calls.push(Call::json("POST", "/preview", &json!({ "profile": profile })));
    }
    for path in ["link", "id_rsa", ".env", "/proc/self/environ", "../outside/secret"] {
        let body = json!({ "profile": "template", "template": format!("[file:{path}]") });
        calls.push(Call::json("POST", "/preview", &body));
    }
    calls
}

/// Returns all answers, with and without the token.
fn ask(address: std::net::SocketAddr, calls: &[Call], token: &str) -> Vec<Answer> {
    let shown = |shown: String| calls.iter().map(move |call| call.clone().header("authorization", &shown));
    let with = shown(format!("Bearer {token}"));
    let without = shown(format!("Basic {token}"));
    let ask = |call: Call| {
        let mut line = Line::open(address);
        line.send(&call.bytes(address, "close"));
        let answer = line.answer(false).unwrap();
        check_decent(&answer, false);
        answer
    };
    with.chain(without).map(ask).collect()
}

/// Row H19.
#[test]
fn secrets_are_neither_logged_nor_in_errors() {
    let (site, canaries) = (Site::new(), canaries());
    lay_out(&site, &canaries);
    let (mut child, address) = start(&site, &canaries);
    let mut log = child.stderr.take().unwrap();
    let log = std::thread::spawn(move || {
        let mut text = String::new();
        log.read_to_string(&mut text).map(|_| text)
    });
    let calls = calls(&site, &canaries);
    let mut answers = ask(address, &calls, &canaries[0]);
    assert!(
        answers.iter().any(|answer| answer.status == 200 && answer.body.contains(&canaries[5])),
        "control"
    );
    std::fs::remove_dir_all(site.path("store")).unwrap();
    answers.extend(ask(address, &calls, &canaries[0]));
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    let log = log.join().unwrap().unwrap();
    assert!(log.lines().count() > calls.len(), "control: {log}");
    // The log may contain the location of the store, which the operator chose, and no other canary.
    for canary in canaries.iter().filter(|canary| **canary != canaries[4]) {
        assert!(!log.contains(canary), "{canary} is in the log: {log}");
    }
    // An error may quote the client's own request, and nothing else. One exception: an invalid word in a profile of
    // the workspace is quoted, because its author could not find it otherwise.
    let unsaid = canaries.iter().take(15).filter(|canary| !canaries[8..=9].contains(canary));
    for canary in unsaid {
        let told = answers.iter().find(|answer| answer.status >= 400 && answer.body.contains(canary));
        assert_eq!(told, None, "{canary}");
    }
}
