//! `proem serve` as a process: where it listens, how it ends, and what it does when descriptors are few.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

#[expect(dead_code, reason = "other tests use the rest")]
mod desk;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use desk::Desk;
use rustix::process::{Pid, Signal, kill_process};

/// A server that ends with its test.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    /// Starts one by a shell, after `before`.
    fn start(desk: &Desk, before: &str, arguments: &[&str]) -> Self {
        let plain = desk.command(&[]);
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{before}\nexec \"$0\" \"$@\"")]).arg(plain.get_program());
        command.arg("serve").args(arguments).current_dir(desk.work()).env_clear();
        command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut said = lines.by_ref().map_while(Result::ok);
        let address = said.find_map(|line| line.split("http://").nth(1).map(str::to_owned));
        let address = address.expect("it says where it listens").split(',').next().unwrap().to_owned();
        // Whoever wrote into a closed pipe would end.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, address }
    }

    /// The status and the body of an answer.
    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
    }

    /// Asks it to end; returns its exit code.
    fn stop(mut self) -> Option<i32> {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

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

/// H11: silent connections do not take the descriptors that files and the store need.
#[test]
fn silent_connections_leave_room_for_files() {
    const SILENT: usize = 600;
    let desk = Desk::of("template");
    desk.write("notes.md", b"from a file");
    let server = Server::start(&desk, "ulimit -Sn 200", &["--listen", "127.0.0.1:0"]);
    let mut silent: Vec<TcpStream> =
        (0..SILENT).map(|_| TcpStream::connect(&server.address).unwrap()).collect();
    for stream in &mut silent {
        stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: loc").unwrap();
    }
    for number in 0..20 {
        let path = format!("/conversations/c-{number}/turn");
        let (status, body) = server.ask("POST", &path, r#"{"template": "<[file:notes.md]>"}"#);
        assert!(status == 200 && body.contains("<from a file>"), "{status} {body}");
    }
    // They are served when they go on: none was turned away.
    for stream in &mut silent {
        stream.write_all(b"alhost\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}
