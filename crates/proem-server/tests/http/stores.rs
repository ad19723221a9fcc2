//! Stores that fail, are shared, or are slow.

use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Barrier, Condvar, Mutex, mpsc};
use std::time::{Duration, Instant};

use proem_core::builtin;
use proem_server::Options;
use proem_store::{Query, Store, StoreError};
use serde_json::{Value, json};

use crate::client::{Call, Line};
use crate::gate::Gate;
use crate::routes::{done, turn};
use crate::server::{Server, Site, check_decent};

/// Checks that the server answers requests that need no store, and refuses all others.
fn check_without_store(server: &Server) {
    let template = json!({ "template": builtin::asset("default/base").unwrap(), "used": true });
    assert_eq!(done(server, &Call::get("/system-prompt")), template);
    assert!(done(server, &Call::get("/system-prompt/variables"))["variables"][0].is_object());
    for call in [
        Call::get("/readyz"),
        turn("new", "x"),
        turn("old", "x"),
        Call::get("/conversations/old"),
        Call::get("/conversations"),
        Call::get("/system-prompt/versions"),
        Call::json("PUT", "/system-prompt", &json!({ "template": "x" })),
        Call::new("DELETE", "/conversations/old"),
        Call::new("POST", "/conversations/old/compaction"),
    ] {
        let answer = server.ask(&call);
        assert_eq!(answer.status, 503, "{call:?} {answer:?}");
        assert!(!answer.body.contains("store/"), "{answer:?}");
    }
    assert!(server.is_well());
}

/// Row S9.
#[test]
fn a_removed_store_is_unavailable_and_does_not_come_back_empty() {
    let site = Site::new();
    let server = site.serve();
    done(&server, &turn("old", "x"));
    std::fs::remove_dir_all(site.path("store")).unwrap();
    check_without_store(&server);
    assert!(!site.path("store").exists());
}

/// Row S9.
#[test]
fn a_replaced_store_is_unavailable() {
    let site = Site::new();
    let server = site.serve();
    done(&server, &turn("old", "x"));
    std::fs::remove_dir_all(site.path("store")).unwrap();
    site.write("store/proem.db", "no database at all");
    check_without_store(&server);
}

#[test]
fn where_the_store_lies_is_not_told() {
    let unavailable = || Err(StoreError::Unavailable { place: "CANARY".into(), why: "CANARY".into() });
    let site = Site::new();
    let server = Server::start(Arc::new(Gate::new(unavailable)), site.options());
    let call = Call::json("POST", "/conversations/c/turn", &json!({ "profile": "template" }));
    let answer = server.ask(&call);
    assert_eq!((answer.status, answer.code()), (503, "store_unavailable".into()));
    assert!(!answer.body.contains("CANARY"), "{answer:?}");
    assert_eq!(server.ask(&Call::get("/system-prompt")).status, 200);
}

/// A server whose store refuses writes is not ready. It is ready again once the store accepts writes, without another
/// request.
#[test]
fn it_is_not_ready_while_writes_fail() {
    let site = Site::new();
    let gate = Arc::new(Gate::new(|| Ok(())));
    let server = Server::start(Arc::clone(&gate) as Arc<dyn Store>, site.options());
    let ready = || server.ask(&Call::get("/readyz"));
    assert_eq!(server.ask(&turn("before", "x")).status, 200, "control: there is room");
    assert_eq!(ready().status, 200);
    gate.is_full.store(true, Ordering::Relaxed);
    assert_eq!(server.ask(&turn("full", "x")).status, 503);
    let (begun, refused) = (Instant::now(), gate.refused.load(Ordering::Relaxed));
    for _ in 0..50 {
        let answer = ready();
        assert_eq!((answer.status, answer.code()), (503, "store_unavailable".into()));
    }
    let probes = gate.refused.load(Ordering::Relaxed) - refused;
    let most = begun.elapsed().as_secs() + 1;
    assert!((1..=most).contains(&u64::try_from(probes).unwrap()), "{probes} writes in less than {most} s");
    assert_eq!(server.ask(&Call::get("/conversations/before")).status, 200, "it still reads");
    assert_eq!(server.ask(&Call::get("/healthz")).status, 200, "and lives");
    gate.is_full.store(false, Ordering::Relaxed);
    // The result of a failed write is valid for a second.
    while ready().status != 200 {
        assert!(
            begun.elapsed() < Duration::from_mins(1),
            "the server does not notice that the store accepts writes again"
        );
    }
    assert_eq!(gate.conversations(&Query { search: None, after: None, most: 9 }).unwrap().items.len(), 1);
    assert_eq!(server.ask(&turn("full", "x")).status, 200);
}

/// Row H17.
#[test]
fn a_panic_is_an_incident_and_nothing_more() {
    fn fail() -> Result<(), StoreError> {
        panic!("CANARY")
    }
    let site = Site::new();
    let server = Server::start(Arc::new(Gate::new(fail)), Options { work_max: 1, ..site.options() });
    for _ in 0..4 {
        let answer = server.ask(&Call::get("/system-prompt"));
        assert_eq!((answer.status, answer.code()), (500, "internal".into()));
        assert!(!answer.body.contains("CANARY"), "{answer:?}");
    }
    assert!(server.is_well());
    assert_eq!(server.ask(&turn("c", "x")).status, 200, "the slot of the failed request is free again");
}

/// Row H17: some requests do not run on a thread of their own: answers in memory are sent from the thread that reads the
/// request.
#[test]
fn a_panic_outside_of_work_is_an_incident_too() {
    let site = Site::new();
    let store = Gate { near: || panic!("CANARY"), ..Gate::new(|| Ok(())) };
    let server = Server::start(Arc::new(store), site.options());
    for _ in 0..4 {
        let answer = server.ask(&turn("c", "x"));
        assert_eq!((answer.status, answer.code()), (500, "internal".into()));
        assert!(!answer.body.contains("CANARY"), "{answer:?}");
    }
    assert!(server.is_well());
}

/// A latch at which threads wait until it is opened.
#[derive(Default)]
struct Latch {
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Latch {
    fn wait(&self) {
        let is_open = self.is_open.lock().unwrap();
        drop(self.opened.wait_while(is_open, |is_open| !*is_open).unwrap());
    }

    fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.opened.notify_all();
    }
}

/// Returns a store whose requests wait at a latch, the latch, and the count of requests that reached it.
fn latched() -> (Arc<Gate>, Arc<Latch>, mpsc::Receiver<()>) {
    let latch = Arc::new(Latch::default());
    let (tell, told) = mpsc::channel();
    let door = Arc::clone(&latch);
    let gate = Gate::new(move || {
        tell.send(()).unwrap_or_default();
        door.wait();
        Ok(())
    });
    (Arc::new(gate), latch, told)
}

/// Row S11.
#[test]
fn the_end_waits_for_what_was_accepted() {
    let (gate, latch, came) = latched();
    let mut server = Server::start(gate, Options::default());
    let mut line = Line::open(server.address);
    line.send(&Call::get("/system-prompt").bytes(server.address, "keep-alive"));
    came.recv().unwrap();
    server.end();
    while TcpStream::connect(server.address).is_ok() {
        std::thread::yield_now();
    }
    latch.open();
    let answer = line.answer(false).unwrap();
    check_decent(&answer, false);
    assert_eq!(answer.status, 200);
    assert!(line.is_closed());
}

/// Row H15.
#[test]
fn what_is_too_much_is_sent_away_and_the_rest_answered() {
    let (gate, latch, came) = latched();
    let server = Server::start(gate, Options { work_max: 1, ..Options::default() });
    let ask = || {
        let mut line = Line::open(server.address);
        line.send(&Call::get("/system-prompt").bytes(server.address, "close"));
        line
    };
    let first = ask();
    came.recv().unwrap();
    // One request runs and 256 wait.
    let mut lines: Vec<Line> = std::iter::once(first).chain((0..299).map(|_| ask())).collect();
    let refused = "proem_requests_total{status=\"5xx\"} 43\n";
    while !server.ask(&Call::get("/metrics")).body.contains(refused) {
        std::thread::yield_now();
    }
    latch.open();
    let answers = lines.iter_mut().map(|line| line.answer(false).unwrap());
    let (done, busy): (Vec<_>, Vec<_>) = answers.partition(|answer| answer.status == 200);
    assert_eq!((done.len(), busy.len()), (257, 43));
    for answer in busy {
        check_decent(&answer, false);
        assert_eq!((answer.status, answer.code()), (503, "busy".into()));
    }
}

/// Row H15.
#[test]
fn what_takes_too_long_here_is_not_the_callers_doing() {
    let (gate, latch, came) = latched();
    let options = Options { work_max: 1, time_max: Duration::from_millis(500), ..Options::default() };
    let server = Server::start(gate, options);
    let mut lines: Vec<Line> = Vec::new();
    for number in 0..3 {
        let mut line = Line::open(server.address);
        line.send(&Call::get("/system-prompt").bytes(server.address, "close"));
        lines.push(line);
        if number == 0 {
            came.recv().unwrap();
        }
    }
    // One request runs, and two wait for it.
    for line in &mut lines {
        let answer = line.answer(false).unwrap();
        check_decent(&answer, false);
        assert_eq!((answer.status, answer.code()), (503, "busy".into()));
        assert!(answer.header("retry-after").is_some(), "{answer:?}");
    }
    latch.open();
    while server.ask(&Call::get("/system-prompt")).status != 200 {
        std::thread::yield_now();
    }
}

/// Starts two servers on one file.
fn pair(site: &Site) -> [Server; 2] {
    [site.serve(), site.serve()]
}

/// Row S1.
#[test]
fn two_first_turns_at_once_get_the_same_bytes() {
    let site = Site::new();
    let servers = pair(&site);
    for round in 0..20 {
        let barrier = Barrier::new(8);
        let ask = |index: usize| {
            barrier.wait();
            servers[index % 2].ask(&turn(&format!("c{round}"), &format!("by {index}"))).json()
        };
        let answers: Vec<Value> = std::thread::scope(|scope| {
            let ask = &ask;
            let asking: Vec<_> = (0..8).map(|index| scope.spawn(move || ask(index))).collect();
            asking.into_iter().map(|asked| asked.join().unwrap()).collect()
        });
        assert!(answers.iter().all(|answer| answer["carriers"] == answers[0]["carriers"]), "{answers:?}");
        assert_eq!(answers.iter().filter(|answer| answer["reused"] == false).count(), 1, "{answers:?}");
    }
}

#[test]
fn what_one_server_changes_the_other_one_knows() {
    let site = Site::new();
    let [one, two] = pair(&site);
    done(&one, &turn("c", "T"));
    assert_eq!(two.ask(&turn("c", "U")).system(), "T");
    done(&one, &Call::new("POST", "/conversations/c/compaction?commit=true"));
    assert_eq!(done(&two, &turn("c", "U"))["epoch"], 2);
    done(&one, &Call::json("PUT", "/system-prompt", &json!({ "template": "stored" })));
    assert_eq!(done(&two, &Call::get("/system-prompt"))["template"], "stored");
}

#[test]
fn a_conversation_begun_anew_is_the_same_for_both_servers() {
    let site = Site::new();
    let [one, two] = pair(&site);
    for server in [&one, &two] {
        assert_eq!(server.ask(&turn("c", "old")).system(), "old");
    }
    assert_eq!(one.ask(&Call::new("DELETE", "/conversations/c")).status, 204);
    assert_eq!(one.ask(&turn("c", "new")).system(), "new");
    assert_eq!(two.ask(&turn("c", "new")).system(), "new");
    assert_eq!(two.ask(&Call::get("/conversations/c")).system(), "new");
}
