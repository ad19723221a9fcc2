//! Hooks that are HTTP servers: a bad one is a note that names it, and the rest of the turn is intact.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;

use proem::hooks::AgentStart;
use proem::trust;
use proem::{Engine, Host, HostPins, Workspace};
use proem_core::note::Code;
use serde_json::{Value, json};

use crate::own::Own;
use crate::site::{Session, Site, Turn, hook, message, messages, said};

/// Starts a server that answers every request with these bytes; with none it never answers. Returns its address.
fn answering(answer: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut open = Vec::new();
        for stream in listener.incoming().map_while(Result::ok) {
            let mut reader = BufReader::new(stream);
            let (mut length, mut line) = (0, String::new());
            while reader.read_line(&mut line).is_ok_and(|_| !line.trim().is_empty()) {
                length =
                    line.trim().strip_prefix("content-length: ").map_or(length, |text| text.parse().unwrap());
                line.clear();
            }
            let mut body = vec![0; length];
            if reader.read_exact(&mut body).is_err() {
                continue;
            }
            let mut stream = reader.into_inner();
            // A client that has enough closes the connection.
            let _ = stream.write_all(answer);
            if answer.is_empty() {
                open.push(stream);
            }
        }
    });
    url
}

/// A `[[hook]]` for an address.
fn at(name: &str, url: &str, keys: &str) -> String {
    format!("[[hook]]\nname = \"{name}\"\nevent = \"before_agent_start\"\nurl = \"{url}\"\n{keys}\n")
}

const GOOD: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-length: 19\r\nconnection: close\r\n\r\n{\"message\": \"Good\"}";

/// Takes a turn with a hook that is bad, and a good one behind it. Returns the notes about the bad one.
fn notes_about(bad: &str) -> Vec<String> {
    let site = Site::with_hooks(&[bad.to_owned(), at("good", &answering(GOOD), "")]);
    let turn = turn(&site.start(&Engine::new()));
    assert_eq!(messages(&turn), json!([said_by("Hello"), said_by("Good")]), "the rest of the turn is intact");
    site.noted(&turn.notes, Code::HookFailed)
}

fn turn(session: &Session) -> Turn {
    session.turn(&said("Hello"))
}

fn said_by(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

#[test]
fn a_bad_server_is_a_note_that_says_what_is_wrong() {
    let begin = "the hook `bad` is skipped at `before_agent_start`: ";
    for (answer, keys, why) in [
        (&b""[..], "timeout_ms = 200", "it took longer than 200 ms"),
        (
            b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n",
            "",
            "it answered 302 Found: redirects are not followed",
        ),
        (b"HTTP/1.1 500 Oh\r\ncontent-length: 2\r\n\r\n{}", "", "it answered 500 Internal Server Error"),
        (
            b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{\"a\": 1}x",
            "output_bytes_max = 8",
            "it answered more than 8 bytes",
        ),
        (
            b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\nFine",
            "",
            "its answer is not valid: expected value at line 1 column 1",
        ),
        (
            b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\nconnection: close\r\n\r\n\xff",
            "",
            "its answer is not UTF-8: bad byte at offset 0",
        ),
    ] {
        assert_eq!(notes_about(&at("bad", &answering(answer), keys)), [format!("{begin}{why}")]);
    }
    for (answer, url) in [
        (&b"no HTTP\r\n\r\n"[..], None),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{", None),
        (b"", Some("http://127.0.0.1:1/")),
    ] {
        let url = url.map_or_else(|| answering(answer), str::to_owned);
        let notes = notes_about(&at("bad", &url, ""));
        assert!(
            notes.len() == 1 && notes[0].starts_with(&format!("{begin}it cannot be reached: ")),
            "{notes:?}"
        );
    }
}

#[test]
fn an_empty_answer_changes_nothing() {
    for answer in [
        &b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n"[..],
        b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
    ] {
        assert_eq!(notes_about(&at("bad", &answering(answer), "")), [""; 0]);
    }
}

/// The control is the test above: the same hook on this machine is asked.
#[test]
fn another_machine_is_asked_only_if_the_user_allows_it() {
    let url = "http://hooks.invalid:9000/";
    let why = "its host is not allowed: `hooks.invalid:9000` is another machine; list it in `[hosts] allow`";
    let note = |why: &str| format!("the hook `bad` is skipped at `before_agent_start`: {why}");
    assert_eq!(notes_about(&at("bad", url, "")), [note(why)]);
    let allow = "[hosts]\nallow = [\"hooks.invalid\"]\n";
    let notes = notes_about(&format!("{allow}{}", at("bad", url, "")));
    assert!(notes.len() == 1 && notes[0].starts_with(&note("it cannot be reached: ")), "{notes:?}");
    let with_token = at("bad", url, "token_file = \"token\"");
    let why = "its token would leave this machine unencrypted: give it an `https://` address";
    assert_eq!(notes_about(&format!("{allow}{with_token}")), [note(why)]);
}

/// Rows T2 and T6 for hooks with an address.
#[test]
fn a_workspace_adds_no_address_without_trust() {
    let site = Site::new();
    let url = answering(GOOD);
    let hosts = "[hosts]\nallow = [\"hooks.invalid\"]\n";
    site.write("work/.proem/proem.toml", &format!("{hosts}{}", at("own", &url, "")));
    let taken = |site: &Site| {
        let session = site.start(&Engine::new());
        let count = turn(&session).messages.len();
        let notes =
            [Code::IgnoredSetting, Code::HookChanged].map(|code| site.noted(session.build().notes(), code));
        (count, notes.concat())
    };
    let ignored = |key: &str| {
        format!("`{key}` in {{root}}/work/.proem/proem.toml is ignored: a workspace may not set it")
    };
    assert_eq!(taken(&site), (1, vec![ignored("[[hook]]"), ignored("[hosts]")]));
    let pins = json!({"config_dir": site.path("config"), "home": site.path("home")});
    let host = Host::new(&serde_json::from_value::<HostPins>(pins).unwrap()).unwrap();
    let workspace = Workspace::open(site.path("work").to_str()).unwrap();
    let trusted = trust::add(&host, &workspace).unwrap();
    assert_eq!(trusted.hook[0].url.as_deref(), Some(url.as_str()));
    assert_eq!(taken(&site), (2, vec![ignored("[hosts]")]), "control: an approved one is asked");
    site.write("work/.proem/proem.toml", &at("own", &answering(GOOD), ""));
    let (count, notes) = taken(&site);
    assert!(count == 1 && notes.len() == 1 && notes[0].ends_with("its address"), "{notes:?}");
    site.write("work/.proem/proem.toml", &at("own", &url, "token_file = \"/etc/hostname\""));
    let (count, notes) = taken(&site);
    assert!(count == 1 && notes.len() == 1 && notes[0].ends_with("the file of its token"), "{notes:?}");
}

#[test]
fn hooks_that_grow_without_limit_are_skipped() {
    let site = Site::new();
    let large = || "a".repeat((8 << 20) + 1);
    let prompt = Own::new("prompt")
        .starting(move |_| Ok(Some(AgentStart { system_prompt: Some(large()), ..AgentStart::default() })));
    let adding = Own::new("message").starting(move |_| {
        Ok(Some(AgentStart {
            message: Some(proem::hooks::InjectedMessage::Text(large())),
            ..AgentStart::default()
        }))
    });
    let context = Own::new("context").rewriting(|_| {
        let large = message(json!({"role": "user", "content": "a".repeat(1 << 20)}));
        Ok(Some(vec![large; 65]))
    });
    let engine =
        Engine::new().with_hook(prompt).with_hook(Own::mark("good")).with_hook(adding).with_hook(context);
    let session = site.start(&engine);
    let turn = turn(&session);
    assert!(turn.system_prompt.ends_with("|good"));
    assert_eq!(messages(&turn), json!([said_by("Hello")]));
    let notes = site.noted(&turn.notes, Code::HookFailed);
    let expected = [
        "the hook `prompt` is skipped at `before_agent_start`: its system prompt has 8388609 bytes, and 8388608 are allowed",
        "the hook `message` is skipped at `before_agent_start`: its message has 8388609 bytes, and 8388608 are allowed",
        "the hook `context` is skipped at `context`: its answer has 68159326 bytes, and 67108864 are allowed",
    ];
    assert_eq!(notes, expected);
}

#[test]
fn a_hook_has_a_command_or_an_address() {
    for (keys, why) in [
        ("", "a hook needs a `command` or a `url`"),
        ("url = \"http://localhost\"\ncommand = [\"a\"]", "a hook has a `command` or a `url`, not both"),
        ("url = \"http://localhost\"\nenv = [\"A\"]", "`env` is for hooks with a `command`"),
        ("command = [\"a\"]\ntoken_file = \"t\"", "`token_file` is for hooks with a `url`"),
        ("url = \"localhost:9000\"", "`url` must begin with `http://` or `https://`"),
    ] {
        let site = Site::with_hooks(&[format!("[[hook]]\nevent = \"context\"\n{keys}\n")]);
        let error = Engine::new().build(&site.request(json!({})), proem::Caller::User).unwrap_err();
        assert!(error.to_string().contains(why), "{keys}: {error}");
    }
    let site = Site::with_hooks(&[hook("a", "context", "true")]);
    assert!(Engine::new().build(&site.request(json!({})), proem::Caller::User).is_ok(), "control");
}
