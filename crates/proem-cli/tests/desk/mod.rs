//! A place to run the command in: a home, a working directory, and nothing of the machine's own.

use std::fs::{self, File};
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

pub(crate) struct Desk {
    pub(crate) root: tempfile::TempDir,
    profile: Option<&'static str>,
}

impl Desk {
    /// All desks have paths of the same length, so that tables with such paths have the same columns.
    pub(crate) fn new() -> Self {
        Self::below("/tmp")
    }

    /// A desk somewhere else.
    pub(crate) fn below(folder: &str) -> Self {
        let root = tempfile::Builder::new().prefix("proem-").tempdir_in(folder).unwrap();
        fs::create_dir(root.path().join("work")).unwrap();
        Self { root, profile: None }
    }

    /// A desk at which prompts are made by another profile than `default`.
    pub(crate) fn of(profile: &'static str) -> Self {
        Self { profile: Some(profile), ..Self::new() }
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.root.path().join("work")
    }

    pub(crate) fn write(&self, path: &str, content: &[u8]) -> &Self {
        let path = self.work().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_proem"));
        command.args(arguments).current_dir(self.work()).env_clear().env("HOME", self.root.path());
        command.env("PATH", std::env::var_os("PATH").unwrap()).stdin(Stdio::null());
        command.envs(self.profile.map(|profile| ("PROEM_PROFILE", profile)));
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// The text with the desk's own path replaced.
    pub(crate) fn said(&self, bytes: &[u8]) -> String {
        String::from_utf8(bytes.to_vec()).unwrap().replace(self.root.path().to_str().unwrap(), "{root}")
    }

    /// Asserts the exit code and the whole of standard error.
    #[track_caller]
    pub(crate) fn refuses(&self, arguments: &[&str], code: i32, expected: &str) {
        let output = self.run(arguments);
        assert_eq!(self.said(&output.stderr), expected);
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(code), b"".as_slice()));
    }
}

/// Runs a command on a terminal. Returns its standard output.
pub(crate) fn on_terminal(mut command: Command) -> String {
    let terminal = rustix::pty::openpt(rustix::pty::OpenptFlags::RDWR).unwrap();
    rustix::pty::grantpt(&terminal).unwrap();
    rustix::pty::unlockpt(&terminal).unwrap();
    let name = rustix::pty::ptsname(&terminal, Vec::new()).unwrap();
    let side = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let mut child = command.stdout(side).stderr(Stdio::null()).spawn().unwrap();
    // It holds the other side, and so would the read below be kept from ending.
    drop(command);
    let mut shown = Vec::new();
    // The read ends with an error once the program, the last one to hold the other side, has gone.
    let _ = File::from(terminal).read_to_end(&mut shown);
    assert!(child.wait().unwrap().success());
    String::from_utf8(shown).unwrap().replace("\r\n", "\n")
}
