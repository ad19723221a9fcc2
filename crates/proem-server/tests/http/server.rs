//! A server in this process, on a port that the system chose, and checks of all its answers.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use proem::Engine;
use proem_server::{App, Listeners, Options, serve};
use proem_store::{SqliteStore, Store};
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

use crate::client::{Answer, Call, Line};

/// A server that runs until it is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn start(store: Arc<dyn Store>, options: Options) -> Self {
        Self::run(Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap(), store, options)
    }

    /// Starts a server with a paused clock, which advances as soon as there is nothing to do.
    pub(crate) fn start_without_waiting(store: Arc<dyn Store>, options: Options) -> Self {
        Self::run(
            Builder::new_current_thread().enable_all().start_paused(true).build().unwrap(),
            store,
            options,
        )
    }

    fn run(runtime: Runtime, store: Arc<dyn Store>, options: Options) -> Self {
        let (end, ended) = oneshot::channel::<()>();
        let (tell, told) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            runtime.block_on(async {
                let listening = Listeners::bind(&["127.0.0.1:0".parse().unwrap()]).unwrap();
                tell.send(listening.addresses().unwrap().remove(0)).unwrap();
                let app = App::new(store, Engine::new(), options);
                serve(listening, app, async { ended.await.unwrap_or_default() }).await;
            });
        });
        Self { address: told.recv().unwrap(), end: Some(end), thread: Some(thread) }
    }

    /// Asks the server to stop once all requests are answered.
    pub(crate) fn end(&mut self) {
        if let Some(end) = self.end.take() {
            end.send(()).unwrap();
        }
    }

    /// Sends a request on a new connection, and checks the common properties of the answer.
    pub(crate) fn ask(&self, call: &Call) -> Answer {
        let answer = self.ask_raw(&call.bytes(self.address, "close"), call.is_head());
        check_decent(&answer, call.is_head());
        answer
    }

    /// Sends bytes that need not be a valid request.
    pub(crate) fn ask_raw(&self, bytes: &[u8], is_head: bool) -> Answer {
        let mut line = Line::open(self.address);
        line.send(bytes);
        line.answer(is_head).unwrap()
    }

    pub(crate) fn is_well(&self) -> bool {
        self.ask(&Call::get("/healthz")).status == 200
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
        let thread = self.thread.take().unwrap();
        assert!(thread.join().is_ok() || std::thread::panicking(), "the server ended in a panic");
    }
}

/// A folder with a workspace, a directory outside of it, and a store.
pub(crate) struct Site {
    folder: TempDir,
}

impl Site {
    pub(crate) fn new() -> Self {
        let site = Self { folder: tempfile::tempdir().unwrap() };
        for folder in ["work/sub", "outside", "store"] {
            std::fs::create_dir_all(site.path(folder)).unwrap();
        }
        site
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn link(&self, name: &str, target: &Path) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, path).unwrap();
    }

    pub(crate) fn store(&self) -> Arc<dyn Store> {
        Arc::new(SqliteStore::open(&self.path("store/proem.db")).unwrap())
    }

    pub(crate) fn options(&self) -> Options {
        Options { workspaces: vec![self.path("work")], ..Options::default() }
    }

    pub(crate) fn serve(&self) -> Server {
        Server::start(self.store(), self.options())
    }
}

/// Checks the headers that every answer must have, and those that none may have.
pub(crate) fn check_decent(answer: &Answer, is_head: bool) {
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        assert_eq!(answer.header(name), Some(value), "{name} of {answer:?}");
    }
    // Only the editor's own files have a policy that allows scripts.
    let policy = answer.header("content-security-policy").unwrap_or_default();
    let is_page = answer
        .header("content-type")
        .is_some_and(|kind| kind.starts_with("text/") && kind.ends_with("utf-8"));
    // H10: nothing may be cached, except the editor's script and style sheet, which are public.
    let is_asset =
        is_page && !answer.header("content-type").is_some_and(|kind| kind.starts_with("text/html"));
    let kept = if is_asset { "no-cache" } else { "no-store" };
    assert_eq!(answer.header("cache-control"), Some(kept), "{answer:?}");
    assert_eq!(policy == "default-src 'none'; frame-ancestors 'none'", !is_page, "{policy} of {answer:?}");
    assert!(answer.header("x-request-id").is_some(), "{answer:?}");
    let is_foreign = |(name, _): &(String, String)| name.starts_with("access-control-") || name == "server";
    assert!(!answer.headers.iter().any(is_foreign), "{answer:?}");
    if answer.status >= 400 && !is_head {
        check_error(answer);
    }
}

/// Checks that an error has the common shape, and reveals nothing about the implementation.
pub(crate) fn check_error(answer: &Answer) {
    assert_eq!(answer.header("content-type"), Some("application/json"), "{answer:?}");
    let Value::Object(fields) = answer.json() else { unreachable!("not an object: {answer:?}") };
    let is_failed_build = fields["code"] == "build_failed";
    assert_eq!(is_failed_build, answer.status == 422, "{answer:?}");
    let of_build = |name: &str| is_failed_build && ["path", "field", "line", "column"].contains(&name);
    let names: Vec<&str> =
        fields.keys().map(String::as_str).filter(|name| *name != "hint" && !of_build(name)).collect();
    let expected = if is_failed_build { &["code", "kind", "message"][..] } else { &["code", "message"] };
    assert_eq!(names, expected, "{answer:?}");
    let is_number = |name: &str| ["line", "column"].contains(&name);
    assert!(fields.iter().all(|(name, value)| value.is_string() != is_number(name)), "{answer:?}");
    let is_word = |word: &str| word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    for name in ["code", "kind"] {
        assert!(fields.get(name).is_none_or(|word| word.as_str().is_some_and(is_word)), "{answer:?}");
    }
    for word in ["panicked", "backtrace", ".rs:", "RUST_"] {
        assert!(!answer.body.contains(word), "{word} in {answer:?}");
    }
    assert_eq!(answer.status == 503, answer.header("retry-after").is_some(), "{answer:?}");
}
