//! Names of stores: the accepted forms, and that no password is ever printed.

use proem_store::{PostgresStore, StoreLocation, redacted};
use proptest::prelude::*;

fn refused(name: &str) -> String {
    let error = StoreLocation::parse(name).expect_err(name);
    format!("{error}; {}", error.hint().unwrap_or_default())
}

const FORMS: &str = "use a path, `sqlite:PATH`, `memory:`, `postgres://USER@HOST:PORT/DATABASE` or `postgresql://…`; \
                     write a path that contains a colon as `./a:b` or `sqlite:a:b`";

#[test]
fn stores_are_paths_memory_sqlite_or_postgresql() {
    for (name, expected) in [
        ("proem.db", StoreLocation::Sqlite("proem.db".into())),
        ("./a:b", StoreLocation::Sqlite("./a:b".into())),
        ("/a:b/c", StoreLocation::Sqlite("/a:b/c".into())),
        ("folder/a:b", StoreLocation::Sqlite("folder/a:b".into())),
        ("a@b=c.db", StoreLocation::Sqlite("a@b=c.db".into())),
        ("./host=a", StoreLocation::Sqlite("./host=a".into())),
        ("sqlite:a:b", StoreLocation::Sqlite("a:b".into())),
        ("SQLite:/x", StoreLocation::Sqlite("/x".into())),
        ("memory:", StoreLocation::Memory),
        ("postgres://h/d", StoreLocation::Postgres("postgres://h/d".into())),
        ("postgresql://h/d", StoreLocation::Postgres("postgresql://h/d".into())),
        ("Postgres://h/d", StoreLocation::Postgres("Postgres://h/d".into())),
    ] {
        assert_eq!(StoreLocation::parse(name).as_ref(), Ok(&expected), "{name}");
    }
}

#[test]
fn any_other_scheme_is_refused_without_credentials() {
    for (name, expected) in [
        ("postgress://u:secret@h/d", "invalid store `postgress://…`: unknown scheme `postgress`"),
        ("mysql://u:secret@h/d", "invalid store `mysql://…`: unknown scheme `mysql`"),
        ("postgres:/u:secret@h/d", "invalid store `postgres:…`: `postgres:` must be followed by `//`"),
        ("postgres:u:secret@h/d", "invalid store `postgres:…`: `postgres:` must be followed by `//`"),
        ("C:\\proem.db", "invalid store `C:…`: unknown scheme `C`"),
        ("a:b", "invalid store `a:…`: unknown scheme `a`"),
        ("u:secret@h/d", "invalid store `u:…`: unknown scheme `u`"),
        ("u@h:5432/d?x=secret", "invalid store `…`: this is a URL without a scheme"),
        ("//u:secret@h/d", "invalid store `…`: this is a URL without a scheme"),
        (
            "host=h password=secret",
            "invalid store `…`: this is a connection string of PostgreSQL, not the name of a store",
        ),
        ("sqlite:postgres://u:secret@h/d", "invalid store `…`: the path contains a URL"),
        ("./postgres://u:secret@h/d", "invalid store `…`: the path contains a URL"),
        ("postgres%3A//u:secret@h/d", "invalid store `…`: the path contains a URL"),
        ("sqlite:", "invalid store `sqlite:`: the path is missing"),
        ("", "invalid store ``: the name is empty"),
    ] {
        assert_eq!(refused(name), format!("{expected}; {FORMS}"), "{name}");
    }
    assert_eq!(
        refused("sqlite://u:secret@h/x"),
        "invalid store `sqlite://…`: `sqlite:` takes a path, not a URL; write `sqlite:PATH`, such as \
         `sqlite:/var/lib/proem/proem.db`"
    );
    assert_eq!(refused("memory:x"), "invalid store `memory:…`: `memory:` takes no name; write `memory:`");
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect::<Vec<_>>().concat()
}

/// Returns all texts that are shown for a store of this name.
fn shown(name: &str) -> String {
    let mut texts = redacted(name);
    match StoreLocation::parse(name) {
        Ok(place) => {
            texts.push_str(&format!("\n{place}\n{place:?}"));
            if let StoreLocation::Postgres(url) = &place {
                match PostgresStore::connect(url) {
                    Ok(store) => texts.push_str(&format!("\n{store:?}")),
                    Err(error) => texts.push_str(&format!("\n{error}\n{error:?}\n{:?}", error.hint())),
                }
            }
        }
        Err(error) => texts.push_str(&format!("\n{error}\n{error:?}\n{:?}", error.hint())),
    }
    texts
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// No message contains a password of unusual characters, encoded or not, in any position. Nothing listens on port 1, so
    /// the test also connects to accepted addresses.
    #[test]
    fn no_password_is_printed(odd in proptest::collection::vec("[@:/%?#&=;,' \"\\\\+\\[\\]é]{0,3}", 3)) {
        let password = format!("{}HUNTER{}SECRET{}", odd[0], odd[1], odd[2]);
        let safe = encoded(&password);
        for name in [
            format!("postgres://me:{password}@127.0.0.1:1/x"),
            format!("postgres://me:{safe}@127.0.0.1:1/x"),
            format!("postgresql://{password}@127.0.0.1:1/x"),
            format!("Postgres://{safe}:{safe}@127.0.0.1:1/x?sslmode=disable"),
            format!("postgres://me@127.0.0.1:1/x?password={safe}"),
            format!("postgres://me@127.0.0.1:1/x?password={safe}&sslmod=require"),
            format!("postgres://me@127.0.0.1:1/x?passwort={safe}"),
            format!("postgres://me:{password}@127.0.0.1:1/x?sslmode={safe}"),
            format!("postgress://me:{password}@h/x"),
            format!("postgres:/me:{password}@h/x"),
            format!("mysql://me:{password}@h/x"),
            format!("https://me:{password}@h/x"),
            format!("sqlite://me:{password}@h/x"),
            format!("me:{password}@h/x"),
            format!("//me:{password}@h/x"),
            format!("sqlite:postgres://me:{password}@h/x"),
            format!("./mysql://me:{password}@h/x"),
            format!("postgres%3a//me:{password}@h/x"),
            format!("host=127.0.0.1 port=1 password='{password}'"),
            format!("password={password} host=h"),
            format!("me@h/x?password={password}"),
        ] {
            let texts = shown(&name);
            for part in ["HUNTER", "SECRET", "%48%55", "%53%45"] {
                prop_assert!(!texts.contains(part), "{name}: {texts}");
            }
        }
    }
}

/// The control: a host is shown, so the property above can fail.
#[test]
fn a_host_is_shown() {
    assert!(shown("postgres://me@HUNTER.invalid:1/x?connect_timeout=1").contains("HUNTER.invalid:1"));
}
