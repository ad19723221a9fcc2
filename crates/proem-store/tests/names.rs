//! Names of stores: which are accepted, and that none is ever printed with its password.

use proem_store::{Place, PostgresStore, redacted};
use proptest::prelude::*;

fn refused(name: &str) -> String {
    let error = Place::parse(name).expect_err(name);
    format!("{error}; {}", error.hint().unwrap_or_default())
}

const FORMS: &str = "use a path, `sqlite:PATH`, `memory:`, `postgres://USER@HOST:PORT/DATABASE` or `postgresql://…`; \
                     write a path that contains a colon as `./a:b` or `sqlite:a:b`";

#[test]
fn stores_are_paths_memory_sqlite_or_postgresql() {
    for (name, expected) in [
        ("proem.db", Place::Sqlite("proem.db".into())),
        ("./a:b", Place::Sqlite("./a:b".into())),
        ("/a:b/c", Place::Sqlite("/a:b/c".into())),
        ("folder/a:b", Place::Sqlite("folder/a:b".into())),
        ("a@b=c.db", Place::Sqlite("a@b=c.db".into())),
        ("./host=a", Place::Sqlite("./host=a".into())),
        ("sqlite:a:b", Place::Sqlite("a:b".into())),
        ("SQLite:/x", Place::Sqlite("/x".into())),
        ("memory:", Place::Memory),
        ("postgres://h/d", Place::Postgres("postgres://h/d".into())),
        ("postgresql://h/d", Place::Postgres("postgresql://h/d".into())),
        ("Postgres://h/d", Place::Postgres("Postgres://h/d".into())),
    ] {
        assert_eq!(Place::parse(name).as_ref(), Ok(&expected), "{name}");
    }
}

#[test]
fn any_other_scheme_is_refused_without_credentials() {
    for (name, expected) in [
        ("postgress://u:secret@h/d", "invalid store `postgress://…`: the scheme `postgress` is not known"),
        ("mysql://u:secret@h/d", "invalid store `mysql://…`: the scheme `mysql` is not known"),
        ("postgres:/u:secret@h/d", "invalid store `postgres:…`: `postgres:` must be followed by `//`"),
        ("postgres:u:secret@h/d", "invalid store `postgres:…`: `postgres:` must be followed by `//`"),
        ("C:\\proem.db", "invalid store `C:…`: the scheme `C` is not known"),
        ("a:b", "invalid store `a:…`: the scheme `a` is not known"),
        ("u:secret@h/d", "invalid store `u:…`: the scheme `u` is not known"),
        ("u@h:5432/d?x=secret", "invalid store `…`: this is a URL without a scheme"),
        ("//u:secret@h/d", "invalid store `…`: this is a URL without a scheme"),
        (
            "host=h password=secret",
            "invalid store `…`: this is a list of keywords and values of PostgreSQL, not the name of a store",
        ),
        ("sqlite:", "invalid store `sqlite:`: it names no file"),
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

/// Everything that is ever said about a store of this name.
fn said(name: &str) -> String {
    let mut said = redacted(name);
    match Place::parse(name) {
        Ok(place) => {
            said.push_str(&format!("\n{place}\n{place:?}"));
            if let Place::Postgres(url) = &place {
                match PostgresStore::connect(url) {
                    Ok(store) => said.push_str(&format!("\n{store:?}")),
                    Err(error) => said.push_str(&format!("\n{error}\n{error:?}\n{:?}", error.hint())),
                }
            }
        }
        Err(error) => said.push_str(&format!("\n{error}\n{error:?}\n{:?}", error.hint())),
    }
    said
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// A password of odd characters is in no message, whether it is encoded or not, wherever it stands. Nothing listens on
    /// port 1, so an address that is accepted is also connected to.
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
            format!("host=127.0.0.1 port=1 password='{password}'"),
            format!("password={password} host=h"),
            format!("me@h/x?password={password}"),
        ] {
            let said = said(&name);
            for part in ["HUNTER", "SECRET", "%48%55", "%53%45"] {
                prop_assert!(!said.contains(part), "{name}: {said}");
            }
        }
    }
}

/// A positive control: a password that is put where a host belongs is shown, so the property above can fail.
#[test]
fn a_host_is_shown() {
    assert!(said("postgres://me@HUNTER.invalid:1/x?connect_timeout=1").contains("HUNTER.invalid:1"));
}
