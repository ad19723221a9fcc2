//! A database with settings that acknowledge too soon, and a naive client as the control.

use std::collections::BTreeSet;
use std::sync::{Arc, Barrier};
use std::thread;

use proem_store::{PostgresStore, Store};
use proem_testkit::PostgresServer;
use serde_json::json;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Client, NoTls};

use crate::site::{Site, conversations, turn};

/// Refuses a row of a transaction that is not durable or has another isolation level.
const STRICT: &str = "CREATE FUNCTION strict() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN \
    IF current_setting('synchronous_commit') <> 'on' OR current_setting('transaction_isolation') <> 'read committed' \
    THEN RAISE EXCEPTION 'lax'; END IF; RETURN NEW; END $f$; \
    CREATE TRIGGER strict BEFORE INSERT ON proem_epoch FOR EACH ROW EXECUTE FUNCTION strict()";

/// Writes a row without these settings, and fails unless that is refused.
const CARELESS: &str = "DO $$ DECLARE refused bool := false; BEGIN \
    BEGIN INSERT INTO proem_epoch SELECT * FROM proem_epoch LIMIT 1; \
    EXCEPTION WHEN raise_exception THEN refused := true; END; \
    ASSERT refused; END $$";

/// Row S5.
#[test]
fn a_database_that_acknowledges_too_soon_is_overruled() {
    let Some(server) = PostgresServer::start() else { return };
    let url = server.database("lax");
    drop(PostgresStore::connect(&url).unwrap());
    for setting in
        ["synchronous_commit = off", "default_transaction_isolation = 'repeatable read'", "lock_timeout = 0"]
    {
        server.execute("lax", &format!("ALTER DATABASE lax SET {setting}"));
    }
    server.execute("lax", STRICT);
    let site = Site::new();
    let store: Arc<dyn Store> = Arc::new(PostgresStore::connect(&url).unwrap());
    let own = conversations(&store);
    turn(&own, &site.request(json!({"profile": "template", "template": "T"})));
    assert_eq!(store.epochs("c").unwrap().len(), 1);
    server.execute("lax", CARELESS);
}

fn connect(runtime: &Runtime, url: &str) -> Client {
    let (client, connection) = runtime.block_on(tokio_postgres::connect(url, NoTls)).unwrap();
    runtime.spawn(connection);
    client
}

/// Looks up, builds, writes, and answers with the prompt that it built: the obvious way.
fn naive(url: &str, built: &str, all_have_looked: &Barrier) -> String {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let client = connect(&runtime, url);
    let found =
        runtime.block_on(client.query_opt("SELECT text FROM prompt WHERE conversation = 'c'", &[])).unwrap();
    all_have_looked.wait();
    if let Some(row) = found {
        return row.get(0);
    }
    let sql =
        "INSERT INTO prompt VALUES ('c', $1) ON CONFLICT (conversation) DO UPDATE SET text = excluded.text";
    runtime.block_on(client.execute(sql, &[&built])).unwrap();
    built.to_owned()
}

/// Row S1, the control of all races: with the obvious way, one conversation has several prompts.
#[test]
fn a_naive_client_hands_out_several_prompts() {
    const RACERS: usize = 8;
    let Some(server) = PostgresServer::start() else { return };
    let url = server.database("naive");
    server.execute("naive", "CREATE TABLE prompt (conversation text PRIMARY KEY, text text NOT NULL)");
    let barrier = Barrier::new(RACERS);
    let answers: BTreeSet<String> = thread::scope(|scope| {
        let racers: Vec<_> = (0..RACERS)
            .map(|index| {
                let (url, barrier) = (&url, &barrier);
                scope.spawn(move || naive(url, &format!("template of {index}"), barrier))
            })
            .collect();
        racers.into_iter().map(|racer| racer.join().unwrap()).collect()
    });
    assert_eq!(answers.len(), RACERS, "{answers:?}");
}
