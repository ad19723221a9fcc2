//! `proem run` and `proem gateway` as a user meets them: agents are scripts that call a provider in this process.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::desk::Desk;

/// Starts a provider that answers every call; the second and later ones read from the cache.
fn provider() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            answer(&mut stream.unwrap(), number);
        }
    });
    address
}

fn answer(stream: &mut TcpStream, number: usize) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line).unwrap() > 2 {
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        line.clear();
    }
    reader.read_exact(&mut vec![0; length]).unwrap();
    let (read, written) = if number == 0 { (0, 6_000) } else { (6_000, 0) };
    let body = format!(
        "{{\"id\":\"msg_{number}\",\"usage\":{{\"input_tokens\":3,\"cache_read_input_tokens\":{read},\"cache_creation_input_tokens\":{written},\"output_tokens\":1}}}}"
    );
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).unwrap();
}

/// An agent that makes two calls, then does the rest.
fn agent(desk: &Desk, rest: &str) -> String {
    let text = "words of a prompt ".repeat(2_000);
    let body = format!(
        "{{\"model\":\"claude-opus-5\",\"system\":[{{\"type\":\"text\",\"text\":\"{text}\",\"cache_control\":{{\"type\":\"ephemeral\"}}}}],\"messages\":[{{\"role\":\"user\",\"content\":\"x\"}}]}}"
    );
    desk.write("body.json", body.as_bytes());
    let script = format!(
        "#!/bin/bash\n\
         call() {{\n\
           local rest=${{ANTHROPIC_BASE_URL#http://}}; local host=${{rest%%/*}}; local path=/${{rest#*/}}\n\
           exec 3<>/dev/tcp/${{host%:*}}/${{host#*:}}\n\
           printf 'POST %s/v1/messages HTTP/1.1\\r\\nHost: %s\\r\\nx-api-key: sk-canary-1234\\r\\nX-Claude-Code-Session-Id: s\\r\\nContent-Length: %s\\r\\nConnection: close\\r\\n\\r\\n' \"$path\" \"$host\" \"$(wc -c < body.json)\" >&3\n\
           cat body.json >&3\n\
           cat <&3 > answer.txt\n\
         }}\n{rest}\n"
    );
    desk.write("claude", script.as_bytes());
    let path = desk.work().join("claude");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

fn run(desk: &Desk, upstream: SocketAddr, flags: &[&str], command: &[&str]) -> Output {
    let upstream = format!("anthropic=http://{upstream}");
    let mut words = vec!["run", "--upstream", &upstream];
    words.extend(flags);
    words.push("--");
    words.extend(command);
    desk.command(&words).stdin(Stdio::null()).output().unwrap()
}

#[test]
fn a_run_keeps_output_and_exit_code_and_sums_up_its_calls() {
    let (desk, upstream) = (Desk::new(), provider());
    let agent = agent(&desk, "call; call; echo \"args: $*\"; echo to-stderr >&2; exit 7");
    let output = run(&desk, upstream, &["--report", "report.json"], &[&agent, "-p", "--flag", "two words"]);
    let (out, err) = (desk.said(&output.stdout), desk.said(&output.stderr));
    assert_eq!((output.status.code(), out.as_str()), (Some(7), "args: -p --flag two words\n"), "{err}");
    assert!(err.contains("to-stderr\n"), "{err}");
    assert!(err.contains("proem: 2 calls: 49 % of the input read from the cache"), "{err}");
    let report: Value =
        serde_json::from_slice(&std::fs::read(desk.work().join("report.json")).unwrap()).unwrap();
    let verdicts: Vec<&str> =
        report["calls"].as_array().unwrap().iter().map(|call| call["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts, ["cold_start", "hit"]);
    assert!(!report.to_string().contains("canary") && !err.contains("canary"));
}

#[test]
fn the_summary_is_json_on_request() {
    let (desk, upstream) = (Desk::new(), provider());
    let agent = agent(&desk, "call");
    let output = run(&desk, upstream, &["--json"], &[&agent]);
    let summary: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(
        (&summary["agent"], &summary["totals"]["calls"], &summary["requests"]),
        (&"claude".into(), &1.into(), &1.into())
    );
}

#[test]
fn a_run_without_calls_says_why_that_may_be() {
    let (desk, upstream) = (Desk::new(), provider());
    let agent = agent(&desk, "exit 0");
    let output = run(&desk, upstream, &[], &[&agent]);
    let err = desk.said(&output.stderr);
    assert!(
        err.contains("proem: saw no call") && err.contains("settings.json has precedence over the shell"),
        "{err}"
    );
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn signals_reach_the_agent() {
    let (desk, upstream) = (Desk::new(), provider());
    let agent =
        agent(&desk, "trap 'echo caught; exit 9' TERM\necho ready\nwhile :; do read -t 1 <> <(:); done");
    let upstream = format!("anthropic=http://{upstream}");
    let mut command = desk.command(&["run", "--upstream", &upstream, "--", &agent]);
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert_eq!((rest.as_str(), child.wait().unwrap().code()), ("caught\n", Some(9)));
}

#[test]
fn a_killed_agent_has_the_code_of_its_signal() {
    let (desk, upstream) = (Desk::new(), provider());
    let agent = agent(&desk, "kill -KILL $$");
    assert_eq!(run(&desk, upstream, &[], &[&agent]).status.code(), Some(137));
}

#[test]
fn what_cannot_be_run_is_named() {
    let (desk, upstream) = (Desk::new(), provider());
    let output = run(&desk, upstream, &[], &["cursor"]);
    assert_eq!(output.status.code(), Some(2));
    let err = desk.said(&output.stderr);
    assert!(err.contains("cannot run cursor: Cursor's own servers call the providers"), "{err}");
    let output = run(&desk, upstream, &[], &["./no-such-agent"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(desk.said(&output.stderr).contains("cannot run ./no-such-agent"));
    let list = desk.said(&desk.run(&["run", "--list"]).stdout);
    for agent in ["claude", "codex", "opencode", "pi", "gemini", "copilot", "goose", "generic", "cursor"] {
        assert!(list.lines().any(|line| line.starts_with(agent)), "{list}");
    }
}

/// Row H2.
#[test]
fn a_gateway_for_other_machines_needs_a_token() {
    let desk = Desk::new();
    let output = desk.run(&["gateway", "--listen", "0.0.0.0:0"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(desk.said(&output.stderr).contains("cannot listen beyond this machine without a token"));
    let output = desk.run(&["gateway", "--upstream", "x=ftp://y"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_gateway_prints_a_line_for_each_call_and_ends_by_a_signal() {
    let (desk, upstream) = (Desk::new(), provider());
    let upstream = format!("anthropic=http://{upstream}");
    let mut command = desk.command(&["gateway", "--listen", "127.0.0.1:0", "--upstream", &upstream]);
    let mut gateway = command
        .env("TZ", "UTC")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut log = BufReader::new(gateway.stderr.take().unwrap());
    let mut line = String::new();
    log.read_line(&mut line).unwrap();
    let url = line.split("http://").nth(1).unwrap().split(['"', ' ', '\n']).next().unwrap();
    let agent = agent(&desk, "call; call");
    let status = Command::new(&agent)
        .env("ANTHROPIC_BASE_URL", format!("http://{url}/anthropic"))
        .current_dir(desk.work())
        .status();
    assert!(status.unwrap().success());
    let mut lines = BufReader::new(gateway.stdout.take().unwrap()).lines().map(Result::unwrap);
    let shown =
        [lines.next().unwrap(), lines.next().unwrap()].map(|line| line.split_once(' ').unwrap().1.to_owned());
    assert!(shown[0].starts_with("main cold start 0.0k read 6.0k new $"), "{shown:?}");
    assert!(shown[1].starts_with("main hit 99 % 6.0k read 0.0k new $"), "{shown:?}");
    Command::new("kill").args(["-TERM", &gateway.id().to_string()]).status().unwrap();
    assert!(gateway.wait().unwrap().success());
}

#[test]
fn a_second_run_is_compared_with_the_first_and_watched() {
    let (desk, upstream) = (Desk::new(), provider());
    let agent = agent(&desk, "call");
    for expected in ["cold_start", "hit"] {
        let output = run(&desk, upstream, &["--report", "report.json", "--keep", "bodies"], &[&agent]);
        let err = desk.said(&output.stderr);
        let report: Value =
            serde_json::from_slice(&std::fs::read(desk.work().join("report.json")).unwrap()).unwrap();
        assert_eq!(report["calls"][0]["verdict"], expected, "{err}");
    }
    // Requests are lines that a report reads.
    let bodies = desk.root.path().join(".local/share/proem/bodies").display().to_string();
    let report = desk.run(&["report", "--from", "jsonl", &bodies, "--json"]);
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    assert_eq!(report["totals"]["calls"], 2);
    let mut watch =
        desk.command(&["watch", "--since", "1h"]).env("TZ", "UTC").stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines().map(Result::unwrap);
    let shown =
        [lines.next().unwrap(), lines.next().unwrap()].map(|line| line.split_once(' ').unwrap().1.to_owned());
    assert!(shown[0].starts_with("main cold start") && shown[1].starts_with("main hit"), "{shown:?}");
    // A call that is made now is printed, too.
    run(&desk, upstream, &[], &[&agent]);
    assert!(lines.next().unwrap().contains(" main hit "));
    watch.kill().unwrap();
    watch.wait().unwrap();
}
