//! A connection to PostgreSQL that breaks while a change is committed: the store finds out whether it was written.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use proem_store::{Commit, Epoch, EpochHead, PostgresStore, StateRecord, Store};
use proem_testkit::PostgresServer;

use crate::conformance::epoch;

/// The moment at which a connection is cut.
enum Cut {
    /// The server has ended the transaction, and its answer is lost.
    AfterCommit,
    /// The server does not get the statement; the function runs before the client notices.
    BeforeCommit(Box<dyn FnOnce() + Send>),
}

/// Passes the bytes of connections, and cuts the next one that commits.
#[derive(Clone, Default)]
struct Proxy {
    next_cut: Arc<Mutex<Option<Cut>>>,
}

impl Proxy {
    /// Starts to listen; returns the port.
    fn listen(&self, server_port: u16) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let own = self.clone();
        thread::spawn(move || {
            for near in listener.incoming().map(Result::unwrap) {
                own.pass(&near, &TcpStream::connect(("127.0.0.1", server_port)).unwrap());
            }
        });
        port
    }

    fn pass(&self, near: &TcpStream, far: &TcpStream) {
        let is_cut = Arc::new(AtomicBool::new(false));
        let (own, asked) = (self.clone(), Arc::clone(&is_cut));
        let (from, to) = (near.try_clone().unwrap(), far.try_clone().unwrap());
        thread::spawn(move || copy(&from, &to, |bytes| own.sends(bytes, &to, &asked)));
        let (from, to) = (far.try_clone().unwrap(), near.try_clone().unwrap());
        thread::spawn(move || copy(&from, &to, |_| !is_cut.load(Ordering::SeqCst)));
    }

    /// Tells whether the bytes of a client are passed on.
    fn sends(&self, bytes: &[u8], server: &TcpStream, is_cut: &AtomicBool) -> bool {
        // A statement ends with a zero; the isolation level, whose name has the same beginning, does not.
        let statement = b"COMMIT\0";
        if !bytes.windows(statement.len()).any(|part| part == statement) {
            return true;
        }
        match self.next_cut.lock().unwrap().take() {
            None => true,
            Some(Cut::AfterCommit) => {
                is_cut.store(true, Ordering::SeqCst);
                true
            }
            Some(Cut::BeforeCommit(meanwhile)) => {
                server.shutdown(Shutdown::Both).unwrap();
                meanwhile();
                false
            }
        }
    }
}

/// Copies bytes in one direction until an end closes or the bytes are not to be passed.
fn copy(mut from: &TcpStream, mut to: &TcpStream, is_passed: impl Fn(&[u8]) -> bool) {
    let mut bytes = [0; 8192];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        if !is_passed(&bytes[..count]) || to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    drop((from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both)));
}

#[test]
fn a_change_whose_answer_was_lost_is_known_to_be_written() {
    let Some(server) = PostgresServer::start() else { return };
    let url = server.database("broken");
    let port = url.rsplit(':').next().unwrap().split('/').next().unwrap();
    let proxy = Proxy::default();
    let through = url.replace(port, &proxy.listen(port.parse().unwrap()).to_string());
    let store = PostgresStore::connect(&through).unwrap();
    let direct = Arc::new(PostgresStore::connect(&url).unwrap());
    let first = epoch("c", 1, "text");
    let second = Epoch { head: EpochHead { number: 2, ..first.head.clone() }, ..first.clone() };
    let change = |store: &dyn Store, version: u64, text: &str, epoch: Option<&Epoch>| {
        let state = StateRecord { version, text: text.into() };
        store.commit(&Commit { conversation: "c", based_on: version - 1, state: &state, epoch }).unwrap()
    };
    let cut = |cut: Cut| *proxy.next_cut.lock().unwrap() = Some(cut);
    let was_cut = || proxy.next_cut.lock().unwrap().is_none();

    cut(Cut::AfterCommit);
    assert!(change(&store, 1, "one", Some(&first)) && was_cut());
    cut(Cut::AfterCommit);
    assert!(change(&store, 2, "two", None) && was_cut());
    cut(Cut::AfterCommit);
    assert!(change(&store, 3, "three", Some(&second)) && was_cut());
    assert_eq!(direct.epochs("c").unwrap().len(), 2, "no epoch is written twice");
    assert!(
        !change(&store, 3, "three", None),
        "control: without a broken connection another writer was first"
    );

    cut(Cut::BeforeCommit(Box::new(|| ())));
    assert!(change(&store, 4, "four", None) && was_cut(), "it is written by the second attempt");
    let rival = Arc::clone(&direct);
    cut(Cut::BeforeCommit(Box::new(move || {
        let state = StateRecord { version: 5, text: "of another".into() };
        let own = Commit { conversation: "c", based_on: 4, state: &state, epoch: None };
        assert!(rival.commit(&own).unwrap());
    })));
    assert!(!change(&store, 5, "five", None) && was_cut(), "another writer was first");
    assert_eq!(direct.current("c").unwrap().unwrap().state.unwrap().text, "of another");
}
