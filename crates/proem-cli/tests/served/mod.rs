//! `proem serve` as a process.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::desk::Desk;

/// A server that ends with its test.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
}

impl Server {
    /// Starts one by a shell, after `before`.
    pub(crate) fn start(desk: &Desk, before: &str, arguments: &[&str]) -> Self {
        let plain = desk.command(&[]);
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{before}\nexec \"$0\" \"$@\"")]).arg(plain.get_program());
        command.arg("serve").args(arguments).current_dir(desk.work()).env_clear();
        Self::spawn(command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?)))))
    }

    /// Starts one by a command.
    pub(crate) fn spawn(command: &mut Command) -> Self {
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut said = lines.by_ref().map_while(Result::ok);
        let address = said.find_map(|line| line.split("http://").nth(1).map(str::to_owned));
        let address = address.expect("it says where it listens").split(',').next().unwrap().to_owned();
        // Keeps the pipe open: the server would end at a write into a closed pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, address }
    }

    /// The status and the body of an answer.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        self.ask_as("", method, path, body)
    }

    /// The same, with lines for the head such as `authorization: …`.
    pub(crate) fn ask_as(&self, head: &str, method: &str, path: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
             {head}content-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
    }

    /// Asks a server below strace to end; returns its exit code.
    pub(crate) fn stop_traced(mut self) -> Option<i32> {
        let tracer = self.child.id();
        let children = std::fs::read_to_string(format!("/proc/{tracer}/task/{tracer}/children")).unwrap();
        let server = Pid::from_raw(children.trim().parse().unwrap()).unwrap();
        kill_process(server, Signal::TERM).unwrap();
        self.child.wait().unwrap().code()
    }

    /// Asks it to end; returns its exit code.
    pub(crate) fn stop(mut self) -> Option<i32> {
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
