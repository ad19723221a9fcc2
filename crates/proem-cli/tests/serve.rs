//! `proem serve` as a process: where it listens, how it ends, and what it does when descriptors are few.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

use crate::desk::Desk;
use crate::served::Server;
use rustix::process::{Pid, Signal, kill_process};

/// H2: beyond this machine there must be a token.
#[test]
fn beyond_this_machine_a_token_is_needed() {
    let desk = Desk::new();
    for address in ["0.0.0.0:0", "[::]:0"] {
        desk.refuses(
            &["serve", "--listen", address],
            3,
            "error: cannot listen beyond this machine without a token\n\
             hint: give one with `--token-file FILE` or `PROEM_TOKEN`, or listen on 127.0.0.1\n",
        );
    }
    desk.write("token", b"0123456789abcdef0123456789abcdef\n");
    let server = Server::start(&desk, "", &["--listen", "0.0.0.0:0", "--token-file", "token"]);
    let port = server.address.rsplit(':').next().unwrap().to_owned();
    let mut near = server;
    near.address = format!("127.0.0.1:{port}");
    assert_eq!(near.ask("GET", "/conversations", "").0, 401, "control: it listens, and wants the token");
    assert_eq!(near.stop(), Some(0));
}

/// Row S11.
#[test]
fn it_ends_with_zero_when_it_is_asked_to() {
    let desk = Desk::of("template");
    let server = Server::start(&desk, "", &["--listen", "127.0.0.1:0"]);
    assert_eq!(server.ask("POST", "/conversations/c/turn", "{}").0, 200);
    assert_eq!(server.stop(), Some(0));
    let server = Server::start(&desk, "", &["--listen", "127.0.0.1:0"]);
    let (status, body) = server.ask("GET", "/conversations/c", "");
    assert!(status == 200 && body.contains("\"epoch\":1"), "what was acknowledged is there: {body}");
}

/// Rows S9 and H13 by the command: a missing store is an error, and no new one is created; an id is not a path.
#[test]
fn a_missing_store_is_not_created_again() {
    let desk = Desk::of("template");
    let server = Server::start(&desk, "", &["--listen", "127.0.0.1:0"]);
    assert_eq!(server.ask("POST", "/conversations/c/turn", "{}").0, 200);
    assert_eq!(server.stop(), Some(0));
    let show = |id: &str| desk.run(&["conversation", "show", id]).status.code();
    assert_eq!(show("c"), Some(0), "control");
    for id in ["../c", "a/b", "", "a b"] {
        assert_ne!(show(id), Some(0), "{id:?}");
    }
    let store = desk.root.path().join(".local/share/proem/proem.db");
    std::fs::rename(&store, store.with_extension("away")).unwrap();
    assert_eq!(show("c"), Some(3));
    assert!(!store.exists(), "a store was made");
}

/// Every line is JSON with the time first, from the first line to the last, which says why the server ended.
#[test]
fn the_log_is_json_from_the_first_line_to_the_last() {
    let desk = Desk::of("template");
    let mut command = desk.command(&["serve", "--listen", "127.0.0.1:0", "--store", "own.db"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let mut said: Vec<String> = lines.by_ref().take(2).collect();
    let port = said[1].split("127.0.0.1:").nth(1).and_then(|rest| rest.split(',').next()).unwrap().to_owned();
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    stream.write_all(b"GET /conversations HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
    stream.read_to_end(&mut Vec::new()).unwrap();
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    said.extend(lines);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let shape = |line: &String| {
        let entry: serde_json::Value = serde_json::from_str(line).expect(line);
        let time = entry["time"].as_str().expect(line);
        assert!(line.starts_with(&format!("{{\"time\":\"{time}\",\"level\":\"info\",\"event\":")), "{line}");
        let digits = |text: &str| {
            text.chars().map(|one| if one.is_ascii_digit() { '0' } else { one }).collect::<String>()
        };
        assert_eq!(digits(time), "0000-00-00T00:00:00.000Z", "{line}");
        let mut rest = line.replace(time, "TIME").replace(&port, "PORT");
        for key in ["micros", "request"] {
            rest = rest.replace(&format!("\"{key}\":{}", entry[key]), &format!("\"{key}\":…"));
        }
        (rest, entry["micros"].is_null() || entry["micros"].is_u64())
    };
    let (shapes, numbers): (Vec<String>, Vec<bool>) = said.iter().map(shape).unzip();
    assert!(numbers.into_iter().all(|is_number| is_number), "{said:?}");
    assert_eq!(
        shapes,
        [
            r#"{"time":"TIME","level":"info","event":"store","message":"made a new store sqlite:own.db","store":"sqlite:own.db"}"#,
            r#"{"time":"TIME","level":"info","event":"listening","message":"listening on http://127.0.0.1:PORT, store sqlite:own.db","url":"http://127.0.0.1:PORT","store":"sqlite:own.db"}"#,
            r#"{"time":"TIME","level":"info","event":"request","method":"GET","path":"/conversations","status":200,"micros":…,"request":…}"#,
            r#"{"time":"TIME","level":"info","event":"end","message":"stopped by SIGTERM","reason":"SIGTERM"}"#,
        ]
    );
}

/// A server that cannot listen makes no store.
#[test]
fn without_an_address_no_store_is_made() {
    let desk = Desk::of("template");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    desk.refuses(
        &["serve", "--listen", &address, "--store", "own.db"],
        3,
        &format!(
            "error: cannot listen on {address}: address already in use\n\
             hint: choose another address with `--listen ADDRESS:PORT`\n"
        ),
    );
    assert!(!desk.work().join("own.db").exists());
}

/// H11: silent connections do not take the descriptors that files and the store need.
#[test]
fn silent_connections_leave_room_for_files() {
    const SILENT: usize = 600;
    let desk = Desk::of("template");
    desk.write("notes.md", b"from a file");
    let server = Server::start(&desk, "ulimit -n 200", &["--listen", "127.0.0.1:0"]);
    let mut silent: Vec<TcpStream> =
        (0..SILENT).map(|_| TcpStream::connect(&server.address).unwrap()).collect();
    for stream in &mut silent {
        // Older ones may have made room already.
        drop(stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: loc"));
    }
    for number in 0..20 {
        let path = format!("/conversations/c-{number}/turn");
        let (status, body) = server.ask("POST", &path, r#"{"template": "<[file:notes.md]>"}"#);
        assert!(status == 200 && body.contains("<from a file>"), "{status} {body}");
    }
    // Of 200 descriptors half are for connections, and a quarter of those is not for strangers. The newest are served when
    // they go on; the others made room.
    let answers = silent.iter_mut().filter_map(|stream| {
        stream.write_all(b"alhost\r\nconnection: close\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        (!answer.is_empty()).then_some(answer)
    });
    let answers: Vec<String> = answers.collect();
    assert!(answers.iter().all(|answer| answer.starts_with("HTTP/1.1 200")), "{answers:?}");
    assert!((1..=75).contains(&answers.len()), "{} were served", answers.len());
}

/// A store with conversations of which none has its epoch.
fn damaged(desk: &Desk, conversations: usize) {
    let server = Server::start(desk, "", &["--listen", "127.0.0.1:0"]);
    assert_eq!(server.ask("POST", "/conversations/c/turn", "{}").0, 200);
    assert_eq!(server.stop(), Some(0));
    let store = rusqlite::Connection::open(desk.root.path().join(".local/share/proem/proem.db")).unwrap();
    let rows = format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {conversations}) \
         INSERT INTO conversation SELECT 'd' || i, 7, 1, 1, '/' FROM n"
    );
    store.execute_batch(&rows).unwrap();
}

/// A check that is interrupted while its output is blocked prints the place to continue from, and continues there.
#[test]
fn a_check_that_is_interrupted_goes_on_where_it_stopped() {
    const CONVERSATIONS: usize = 100_000;
    let desk = Desk::of("template");
    damaged(&desk, CONVERSATIONS);
    let path = desk.root.path().join(".local/share/proem/proem.db");
    let linked = desk.work().join("the team's.db");
    std::os::unix::fs::symlink(&path, &linked).unwrap();
    let mut command = desk.command(&["store", "check", "--store", "the team's.db"]);
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let first = lines.next().unwrap();
    assert_eq!(first, "epoch 7 of `d1`: it is missing");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let before = 1 + lines.count();
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(3), "{said}");
    assert!(before < CONVERSATIONS, "it stopped before the end");
    let place = said
        .split(r"`proem store check --store 'the team'\''s.db' --after ")
        .nth(1)
        .and_then(|rest| rest.split('`').next());
    let rest = desk.run(&["store", "check", "--after", place.expect(&said), "--format", "json"]);
    assert_eq!(rest.status.code(), Some(1));
    let text = String::from_utf8(rest.stdout).unwrap();
    let after = text.lines().filter(|line| line.starts_with("{\"event\":\"damage\"")).count();
    assert_eq!(before + after, CONVERSATIONS, "none is left out, and none is told twice");
    let done = format!("{{\"damage\":{after},\"event\":\"done\"}}");
    assert_eq!(text.lines().last(), Some(done.as_str()));
    assert_eq!(desk.run(&["store", "check", "--after", "nowhere"]).status.code(), Some(2));
}

/// A server has both texts, so that its answer is shown as the comparison of a local store.
#[test]
fn drift_and_diff_show_the_same_by_url_and_by_store() {
    let desk = Desk::of("template");
    desk.write("notes.md", b"one\ntwo\nthree\n");
    let server = Server::start(&desk, "", &["--listen", "127.0.0.1:0"]);
    let body = r#"{"template": "[file:notes.md]", "model": "claude-opus-5"}"#;
    assert_eq!(server.ask("POST", "/conversations/c/turn", body).0, 200);
    desk.write("notes.md", b"one\n2\nthree\n");
    let url = format!("http://{}", server.address);
    let both = |words: &[&str]| {
        let (here, there) = (desk.run(words), desk.run(&[words, &["--url", &url]].concat()));
        assert_eq!(here.status.code(), there.status.code(), "{}", desk.said(&there.stderr));
        // The time of a file is known where the file is.
        let here = desk.said(&here.stdout);
        let here: String =
            here.split_inclusive('\n').filter(|line| !line.starts_with("written at")).collect();
        assert_eq!(desk.said(&there.stdout), here, "{words:?}");
        here
    };
    let shown = both(&["drift", "c"]);
    let end = "\n--- system\n one\n-two\n+2\n three\n\
               rebuild: about 3 tokens of the prompt are read again once, and all messages after it\n";
    assert!(shown.ends_with(end), "{shown}");
    assert!(shown.contains("\ncounted         estimated"), "{shown}");
    assert!(!both(&["drift", "c", "--context", "0"]).contains("---"));
    let compacted = desk.run(&["conversation", "compact", "c"]);
    assert!(compacted.status.success(), "{}", desk.said(&compacted.stderr));
    both(&["drift", "c"]);
    let shown = both(&["diff", "c@1", "c@2"]);
    assert!(shown.ends_with("\n--- system\n one\n-two\n+2\n three\n"), "{shown}");
}

#[test]
fn a_short_token_is_refused_with_its_place_and_the_least() {
    let desk = Desk::new();
    desk.write("token", b"hunter2\n").write("words", b"two words that are long enough\n");
    let hint = "hint: make one with `openssl rand -hex 32`\n";
    for (file, why) in [
        ("token", "it has 7 bytes, and fewer than 16 can be guessed"),
        ("words", "it must be one word of ASCII characters"),
    ] {
        let expected = format!("error: cannot use the token of {file}: {why}\n{hint}");
        desk.refuses(&["serve", "--token-file", file], 2, &expected);
    }
    let mut command = desk.command(&["serve"]);
    let output = command.env("PROEM_TOKEN", "short").output().unwrap();
    let expected = format!(
        "error: cannot use the token of PROEM_TOKEN: it has 5 bytes, and fewer than 16 can be guessed\n{hint}"
    );
    assert_eq!((desk.said(&output.stderr), output.status.code()), (expected, Some(2)));
}
