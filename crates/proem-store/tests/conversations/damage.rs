//! Damaged data in a store: an error, never a prompt.

use std::fs;
use std::sync::Arc;

use proem::request::RequestUpdate;
use proem::{Caller, Engine};
use proem_store::MaintainStore as _;
use proem_store::{ConversationError, Conversations, Store, StoreError};
use rusqlite::Connection;
use serde_json::json;

use crate::site::{Site, conversations, epochs, history, on_each_store, shown, system, turn};

/// Returns the error of a turn whose prompt is damaged.
fn refused(site: &Site, store: &Arc<dyn Store>, id: &str) -> String {
    let request = site.request(json!({"profile": "template"}));
    let error = conversations(store).turn(id, &request, Caller::User).unwrap_err();
    assert!(matches!(error, ConversationError::Store(StoreError::Damaged { .. })), "{error}");
    assert!(!error.is_usage());
    shown(site, &error)
}

const HINT: &str = "hint: run `proem store check`, and restore a backup";

#[test]
fn a_prompt_of_a_later_form_is_refused() {
    on_each_store(|site, store| {
        turn(&conversations(store), &site.request(json!({"profile": "template"})));
        let stored = store.current("c").unwrap().unwrap().epoch;
        let later = [
            stored.prompt.description.replacen("\"version\":1", "\"version\":2", 1),
            // A form that this proem cannot parse.
            "{\"version\":2,\"parts\":[]}".to_owned(),
        ];
        for (index, description) in later.into_iter().enumerate() {
            let mut own = stored.clone();
            own.head.conversation = format!("later{index}");
            own.prompt.description = description;
            store.open(&own).unwrap();
            let expected = format!(
                "epoch 1 of `later{index}` is damaged: it was written by a later proem, in form 2\n{HINT}"
            );
            assert_eq!(refused(site, store, &own.head.conversation), expected);
        }
        assert!(turn(&conversations(store), &site.request(json!({"profile": "template"}))).is_reused);
    });
}

/// Changes the database without the store.
fn tamper(site: &Site, sql: &str) {
    let connection = Connection::open(site.database()).unwrap();
    assert!(connection.execute(sql, []).unwrap() > 0, "{sql}");
}

/// Creates a site with a conversation `c` of two epochs, and another conversation.
fn laid() -> Site {
    let site = Site::new();
    site.profile("loose", "template", "[\"reload\"]");
    site.write("work/AGENTS.md", "old\n");
    let store = site.sqlite();
    let own = conversations(&store);
    turn(&own, &site.request(json!({"profile": "loose"})));
    site.write("work/AGENTS.md", "new\n");
    own.reload("c", RequestUpdate::default(), Caller::User).unwrap();
    let other = site.request(json!({"profile": "template", "template": "other", "model": "other"}));
    own.turn("other", &other, Caller::User).unwrap();
    site
}

/// Changes the stored data of the second epoch, and returns the error of the next turn.
fn after(sql: &str) -> String {
    let site = laid();
    tamper(&site, sql);
    let store = site.sqlite();
    let said = refused(&site, &store, "c");
    let own = conversations(&store);
    assert_eq!(system(&own.current("other").unwrap().unwrap().frozen), "other", "other conversations work");
    assert_eq!(store.current_number("c").unwrap(), 2, "and nothing is repaired by guessing");
    said
}

/// Row S10.
#[test]
fn a_flipped_byte_is_found() {
    for column in ["description", "request", "json_extract(texts, '$.system')"] {
        let digest = format!("(SELECT {column} FROM epoch WHERE conversation = 'c' AND number = 2)");
        let flip = format!(
            "UPDATE blob SET bytes = CAST('~' || substr(CAST(bytes AS TEXT), 2) AS BLOB) WHERE digest = {digest}"
        );
        let said = after(&flip);
        let (start, end) = ("the text ", format!(" is damaged: its bytes do not match its digest\n{HINT}"));
        assert!(said.starts_with(start) && said.ends_with(&end), "{column}: {said}");
        let gone = after(&format!("DELETE FROM blob WHERE digest = {digest}"));
        assert!(gone.ends_with(&format!(" is damaged: it is missing\n{HINT}")), "{column}: {gone}");
    }
}

/// Row S10.
#[test]
fn a_byte_that_flipped_on_the_disk_is_found() {
    let site = laid();
    let mut bytes = fs::read(site.database()).unwrap();
    let text = b"new\n";
    let places: Vec<usize> = (0..bytes.len()).filter(|&at| bytes[at..].starts_with(text)).collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at] ^= 1;
    }
    fs::write(site.database(), bytes).unwrap();
    let said = refused(&site, &site.sqlite(), "c");
    assert!(said.ends_with(&format!(" is damaged: its bytes do not match its digest\n{HINT}")), "{said}");
}

/// Row S10.
#[test]
fn an_epoch_that_does_not_fit_its_digest_is_found() {
    let said =
        after("UPDATE epoch SET seal = NULL, digest = fingerprint WHERE conversation = 'c' AND number = 2");
    assert_eq!(said, format!("epoch 2 of `c` is damaged: its prompt is not that of its digest\n{HINT}"));
}

#[test]
fn an_epoch_without_its_texts_is_found() {
    let said = after("UPDATE epoch SET seal = NULL, texts = '{}' WHERE conversation = 'c' AND number = 2");
    let expected =
        format!("epoch 2 of `c` is damaged: the sources of the system carrier do not fit its text\n{HINT}");
    assert_eq!(said, expected);
    let said = after("UPDATE epoch SET seal = NULL, texts = '[' WHERE conversation = 'c' AND number = 2");
    assert!(said.starts_with("the list of an epoch's texts is damaged: "), "{said}");
}

/// Row S10: the columns of a row are protected as the texts are.
#[test]
fn a_row_that_is_not_what_was_written_is_found() {
    for change in
        ["reason = 'x'", "fingerprint = 'x'", "cwd = '/'", "model = 'm'", "opened_at = 1", "engine = '9'"]
    {
        let said = after(&format!("UPDATE epoch SET {change} WHERE conversation = 'c' AND number = 2"));
        let expected = format!("epoch 2 of `c` is damaged: its row does not match its seal\n{HINT}");
        assert_eq!(said, expected, "{change}");
    }
    let site = laid();
    site.sqlite().put_template("mine", Some("me"), None).unwrap();
    for change in ["text = 'other'", "author = NULL", "written_at = 1"] {
        let sql = format!("UPDATE template SET {change}");
        Connection::open(site.database()).unwrap().execute(&sql, []).unwrap();
        let error = site.sqlite().template().unwrap_err();
        assert_eq!(
            error.to_string(),
            "version 1 of the template is damaged: its row does not match its seal",
            "{change}"
        );
        assert_eq!(site.sqlite().check().unwrap(), [error.to_string()], "{change}");
    }
}

/// The texts of another epoch are sound, but not the right ones.
#[test]
fn an_epoch_with_the_texts_of_another_is_found() {
    let said = after(
        "UPDATE epoch SET texts = (SELECT texts FROM epoch WHERE conversation = 'other') \
         WHERE conversation = 'c' AND number = 2",
    );
    assert!(said.starts_with("epoch 2 of `c` is damaged: "), "{said}");
}

/// The current epoch is missing: neither an older one nor a new one takes its place.
#[test]
fn an_epoch_that_is_gone_is_found() {
    let said = after("DELETE FROM epoch WHERE conversation = 'c' AND number = 2");
    assert_eq!(said, format!("epoch 2 of `c` is damaged: it is missing\n{HINT}"));
}

#[test]
fn a_conversation_whose_head_is_gone_is_not_begun_again() {
    let site = laid();
    tamper(&site, "DELETE FROM conversation WHERE id = 'c'");
    let store = site.sqlite();
    let request = site.request(json!({"profile": "template", "template": "new"}));
    let error = conversations(&store).turn("c", &request, Caller::User).unwrap_err();
    assert!(matches!(error, ConversationError::Store(_)), "{error}");
    assert_eq!(history(&store), epochs(&["startup", "reload"]), "nothing is replaced");
}

/// Row S10: the hint of every such error is to run a check, which must find the same damage as a turn.
#[test]
fn a_check_finds_every_damage() {
    let of_second = "WHERE conversation = 'c' AND number = 2";
    let damages = [
        format!(
            "UPDATE blob SET bytes = CAST('x' AS BLOB) WHERE digest = (SELECT request FROM epoch {of_second})"
        ),
        format!("DELETE FROM blob WHERE digest = (SELECT description FROM epoch {of_second})"),
        format!("UPDATE epoch SET digest = fingerprint {of_second}"),
        format!("UPDATE epoch SET texts = '{{}}' {of_second}"),
        format!("UPDATE epoch SET texts = '[' {of_second}"),
        format!("DELETE FROM epoch {of_second}"),
        "DELETE FROM conversation WHERE id = 'c'".to_owned(),
    ];
    let site = laid();
    assert_eq!(site.sqlite().check(), Ok(Vec::new()), "the control");
    let missed: Vec<String> = damages
        .into_iter()
        .filter(|sql| {
            let site = laid();
            tamper(&site, sql);
            !site.sqlite().check().is_ok_and(|found| !found.is_empty())
        })
        .collect();
    assert_eq!(missed, Vec::<String>::new());
}

/// A process that has read the prompt continues with it: its bytes are right.
#[test]
fn what_was_read_before_the_damage_stays_right() {
    let site = laid();
    let store = site.sqlite();
    let own = Conversations::new(Arc::clone(&store), Engine::new());
    let request = site.request(json!({"profile": "loose"}));
    let before = turn(&own, &request);
    tamper(&site, "UPDATE blob SET bytes = CAST('x' AS BLOB)");
    assert_eq!(turn(&own, &request).frozen, before.frozen);
    refused(&site, &store, "c");
}
