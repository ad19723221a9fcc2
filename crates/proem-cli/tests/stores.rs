//! Stores by their names: what is refused, what a role may lack, and who may read an export.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Output;

use crate::desk::Desk;
use proem_testkit::PostgresServer;

const FORMS: &str = "hint: use a path, `sqlite:PATH`, `memory:`, `postgres://USER@HOST:PORT/DATABASE` or `postgresql://…`; \
                     write a path that contains a colon as `./a:b` or `sqlite:a:b`\n";

/// Wherever a store is named, a misspelt URL is refused; no file is made and no password printed.
#[test]
fn a_misspelt_url_makes_no_file() {
    let desk = Desk::new();
    for (name, why) in [
        ("postgress://proem:hunter2@db/proem", "`postgress://…`: unknown scheme `postgress`"),
        ("mysql://proem:hunter2@db/proem", "`mysql://…`: unknown scheme `mysql`"),
        ("postgres:/proem:hunter2@db/proem", "`postgres:…`: `postgres:` must be followed by `//`"),
        (
            "host=db password=hunter2",
            "`…`: this is a connection string of PostgreSQL, not the name of a store",
        ),
    ] {
        let expected = format!("error: invalid store {why}\n{FORMS}");
        for command in [
            &["serve", "--listen", "127.0.0.1:0"][..],
            &["store", "check"],
            &["store", "import"],
            &["store", "migrate"],
            &["conversation", "list"],
            &["drift", "c"],
            &["diff", "c@1", "c@2"],
            &["evidence", "--conversation", "c"],
        ] {
            desk.refuses(&[command, &["--store", name]].concat(), 2, &expected);
            let by_variable = desk.command(command).env("PROEM_STORE", name).output().unwrap();
            assert_eq!(
                (desk.said(&by_variable.stderr), by_variable.status.code()),
                (expected.clone(), Some(2))
            );
        }
    }
    // At a wrong place, too.
    for arguments in [
        &["store", "check", "postgres://proem:hunter2@db/proem"][..],
        &["store", "export", "--store", "memory:", "postgres://proem:hunter2@db/proem"],
        &["serve", "--public-url=https://proem:hunter2@db"],
        &["build", "--request", "https://proem:hunter2@db/proem"],
    ] {
        let output = desk.run(arguments);
        assert_ne!(output.status.code(), Some(0), "{arguments:?}");
        assert!(!desk.said(&output.stderr).contains("hunter2"), "{}", desk.said(&output.stderr));
    }
    assert_eq!(fs::read_dir(desk.work()).unwrap().count(), 0, "a file was made");
}

#[test]
fn an_export_is_for_its_owner_alone() {
    let desk = Desk::new();
    fs::set_permissions(desk.work(), fs::Permissions::from_mode(0o755)).unwrap();
    desk.write("lines", b"{\"kind\":\"header\",\"version\":1}\n");
    let done = desk.run(&["store", "import", "--store", "a.db", "lines"]);
    assert!(done.status.success(), "{}", desk.said(&done.stderr));
    let export = |file: &[&str]| desk.run(&[&["store", "export", "--store", "a.db"], file].concat());
    let (whole, dash) = (export(&[]), export(&["-"]));
    assert!(whole.status.success() && !whole.stdout.is_empty(), "{}", desk.said(&whole.stderr));
    assert_eq!(dash.stdout, whole.stdout);
    assert!(!desk.work().join("-").exists(), "a file is called `-`");
    assert!(export(&["out"]).status.success());
    let mode = fs::metadata(desk.work().join("out")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(fs::read(desk.work().join("out")).unwrap(), whole.stdout);
}

/// Runs `store check` as a role, with a password by the environment.
fn check(desk: &Desk, url: &str, password: Option<&str>) -> Output {
    let mut command = desk.command(&["store", "check", "--store", url]);
    command.envs(password.map(|password| ("PGPASSWORD", password))).output().unwrap()
}

#[test]
fn a_role_without_create_uses_tables_that_are_there() {
    let Some(server) = PostgresServer::start() else { return };
    let desk = Desk::new();
    let owner = server.database("roles");
    server.execute("roles", "REVOKE CREATE ON SCHEMA public FROM PUBLIC; CREATE ROLE app LOGIN");
    let app = owner.replace("postgres@", "app@");
    let place = owner.replace("postgres@", "");
    let grant = "run `GRANT USAGE ON SCHEMA \"public\" TO \"app\"; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN \
                 SCHEMA \"public\" TO \"app\"` as their owner";
    let as_owner = place.replace("postgres://", "postgres://OWNER@");
    desk.refuses(
        &["store", "check", "--store", &app],
        3,
        &format!(
            "error: cannot use the store {place}: it has no tables of proem, and the role `app` may not create them: \
             permission denied for schema public\nhint: run `proem store migrate --store '{as_owner}'` as a role that has \
             CREATE on the schema `public`; then {grant}\n"
        ),
    );
    let made = desk.run(&["store", "migrate", "--store", &owner]);
    assert!(made.status.success(), "{}", desk.said(&made.stderr));
    desk.refuses(
        &["store", "check", "--store", &app],
        3,
        &format!(
            "error: cannot use the store {place}: the role `app` may not read its tables: permission denied for table \
             proem_schema\nhint: {grant}\n"
        ),
    );
    server.execute("roles", "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO app");
    let done = check(&desk, &app, None);
    assert!(done.status.success(), "{}", desk.said(&done.stderr));
    desk.write("lines", b"{\"kind\":\"header\",\"version\":1}\n");
    let imported = desk.run(&["store", "import", "--store", &app, "lines"]);
    assert!(imported.status.success(), "{}", desk.said(&imported.stderr));

    server.execute(
        "roles",
        "DELETE FROM proem_schema WHERE version > 3; DROP TRIGGER proem_epoch_uses ON proem_epoch; \
        DROP FUNCTION proem_epoch_uses; DROP TABLE proem_doomed, proem_prune, proem_state; \
        DROP TRIGGER proem_epoch_form ON proem_epoch; DROP FUNCTION proem_epoch_form; \
        ALTER TABLE proem_epoch DROP COLUMN form",
    );
    desk.refuses(
        &["store", "check", "--store", &app],
        3,
        &format!(
            "error: cannot use the store {place}: its tables have version 3, this proem needs 8, and the role `app` may \
             not change them: permission denied for schema public\nhint: run `proem store migrate --store '{as_owner}'` as \
             the role that owns the tables; then {grant}\n"
        ),
    );
}

#[test]
fn a_password_comes_from_the_url_the_environment_or_a_file() {
    let Some(server) = PostgresServer::start() else { return };
    let desk = Desk::new();
    let owner = server.database("passwords");
    server.execute(
        "passwords",
        "CREATE ROLE app LOGIN PASSWORD 'p@ss:w/ord%'; GRANT CREATE ON SCHEMA public TO app",
    );
    server.set_access("host all app 127.0.0.1/32 scram-sha-256\nhost all postgres 127.0.0.1/32 trust\n");
    let app = owner.replace("postgres@", "app@");
    let place = owner.replace("postgres@", "");
    let works = |output: &Output| assert!(output.status.success(), "{}", desk.said(&output.stderr));
    works(&check(&desk, &app, Some("p@ss:w/ord%")));
    works(&check(&desk, &app.replace("app@", "app:p%40ss%3Aw%2Ford%25@"), Some("wrong")));
    desk.refuses(
        &["store", "check", "--store", &app],
        3,
        &format!(
            "error: cannot use the store {place}: the server asks for a password, and there is none\n\
             hint: set PGPASSWORD, add a line to ~/.pgpass, or write it into the URL\n"
        ),
    );
    desk.refuses(
        &["store", "check", "--store", &app.replace("app@", "app:hunter2@")],
        3,
        &format!(
            "error: cannot use the store {place}: password authentication failed for user \"app\"\n\
             hint: check the user name and the password of the URL, PGPASSWORD or ~/.pgpass\n"
        ),
    );
    let file = desk.root.path().join(".pgpass");
    fs::write(&file, "127.0.0.1:*:passwords:app:p@ss\\:w/ord%\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    works(&check(&desk, &app, None));
}

#[test]
fn an_import_counts_what_is_new_and_what_was_there() {
    let desk = Desk::of("template");
    let conversations = proem_store::Conversations::new(
        proem_store::open(path(&desk, "a.db").as_str()).unwrap().into(),
        proem::Engine::new(),
    );
    let request =
        serde_json::json!({ "cwd": desk.work().to_str().unwrap(), "profile": "template", "template": "x" });
    let request = proem::Request::from_json(&request.to_string()).unwrap();
    conversations.turn("c", &request, proem::Caller::User).unwrap();
    drop(conversations);
    let said = |arguments: &[&str]| {
        let output = desk.run(arguments);
        assert_eq!(output.status.code(), Some(0), "{}", desk.said(&output.stderr));
        desk.said(&output.stderr)
    };
    let exported = "exported 1 epoch and 0 versions of the template\n";
    assert_eq!(said(&["store", "export", "--store", "a.db", "lines"]), exported);
    let import = ["store", "import", "--store", "b.db", "lines"];
    assert_eq!(said(&import), "imported 1 epoch and 0 versions of the template\n");
    let again = "imported 0 epochs and 0 versions of the template; 1 epoch and 0 versions of the template were there already\n";
    assert_eq!(said(&import), again);
}

fn path(desk: &Desk, name: &str) -> String {
    desk.work().join(name).to_str().unwrap().to_owned()
}

/// A wrong input is exit code 2, names input and store, and makes no store.
#[test]
fn an_import_of_something_else_makes_no_store() {
    let desk = Desk::new();
    desk.write("empty", b"\n").write("words", b"\nhello\n").write("latin1", b"caf\xe9\n");
    let hint = "hint: import what `proem store export` wrote, whole and unchanged\n";
    for (file, why) in [
        ("empty", "it is empty"),
        ("words", "line 2: column 1: expected value"),
        ("latin1", "line 1: it is not UTF-8"),
    ] {
        let expected = format!("error: cannot import {file} into the store sqlite:new.db: {why}\n{hint}");
        desk.refuses(&["store", "import", "--store", "new.db", file], 2, &expected);
        assert!(!desk.work().join("new.db").exists(), "{file}");
    }
    let piped = desk.run(&["store", "import", "--store", "new.db"]);
    let expected =
        format!("error: cannot import standard input into the store sqlite:new.db: it is empty\n{hint}");
    assert_eq!((desk.said(&piped.stderr), piped.status.code()), (expected, Some(2)));
}

#[test]
fn a_file_that_is_no_database_is_not_called_damaged() {
    let desk = Desk::new();
    desk.write("notes.txt", "Not a database, and long enough to have a header.\n".repeat(40).as_bytes());
    desk.refuses(
        &["store", "check", "--store", "notes.txt"],
        3,
        "error: cannot use the store notes.txt: it is not a SQLite database\n\
         hint: name the file of a store, or one that does not exist yet; if it was a store, restore a backup\n",
    );
}
