//! Stores without space: a file that may not grow, and a folder that is not writable.

use proem_store::MaintainStore as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::child;
use crate::site::{Site, conversations, system, turn};

/// Starts a program with files of at most 512 KiB; the signal that comes with that is ignored.
const SMALL_FILES: [&str; 3] = ["/bin/sh", "-c", "trap '' XFSZ; ulimit -f 1024; exec \"$0\" \"$@\""];

/// Starts a program that may not override permissions, even as root.
const WITHOUT_PRIVILEGES: [&str; 3] = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"];

fn task(site: &Site, task: &str) -> Value {
    let request = site.request(json!({"profile": "template"})).to_json().unwrap();
    let request: Value = serde_json::from_str(&request).unwrap();
    json!({"task": task, "store": site.database(), "request": request, "answer": site.path("answer.json")})
}

/// Row S9.
#[test]
fn a_store_that_is_full_says_so_and_keeps_what_it_acknowledged() {
    let site = Site::new();
    child::run_together(vec![child::command(&SMALL_FILES, &task(&site, "fill"))]);
    let answer = child::answer(&site.path("answer.json"));
    let failed = &answer["failed"];
    let error = site.said(failed["error"].as_str().unwrap());
    assert!(error.starts_with("the store {root}/data/proem.db is unavailable: "), "{error}");
    assert!(failed["hint"].is_string());
    let done: Vec<&str> = answer["done"].as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
    assert!(!done.is_empty());
    assert_eq!(answer["again"], json!("0 ".repeat(2000)), "stored epochs are still returned");
    let store = site.sqlite();
    for (index, id) in done.iter().enumerate() {
        let kept = conversations(&store).current(id).unwrap().unwrap();
        assert_eq!(system(&kept.frozen), format!("{index} ").repeat(2000));
    }
    assert_eq!(store.current_number(&format!("c{}", done.len())).unwrap(), 0, "nothing else is stored");
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
    turn(&conversations(&store), &site.request(json!({"profile": "template"})));
}

fn set_mode(site: &Site, path: &str, mode: u32) {
    fs::set_permissions(site.path(path), fs::Permissions::from_mode(mode)).unwrap();
}

/// Returns the answer of a child that has only the rights of its user.
fn answer_without_privileges(site: &Site) -> String {
    child::run_together(vec![child::command(&WITHOUT_PRIVILEGES, &task(site, "turn"))]);
    let answer = child::answer(&site.path("answer.json"));
    match answer["error"].as_str() {
        Some(error) => site.said(&format!("{error}\nhint: {}", answer["hint"].as_str().unwrap_or_default())),
        None => format!("answered: {}", answer["system"].as_str().unwrap()),
    }
}

#[test]
fn a_folder_that_cannot_be_written_to_is_an_error() {
    let site = Site::new();
    fs::create_dir(site.path("data")).unwrap();
    set_mode(&site, "data", 0o500);
    let said = answer_without_privileges(&site);
    set_mode(&site, "data", 0o700);
    let expected = "cannot use the store {root}/data/proem.db: permission denied\nhint: choose a location that you can write to";
    assert_eq!(said, expected);
}

#[test]
fn a_file_that_cannot_be_written_to_is_an_error() {
    let site = Site::new();
    turn(&conversations(&site.sqlite()), &site.request(json!({"profile": "template", "template": "kept"})));
    set_mode(&site, "data/proem.db", 0o400);
    set_mode(&site, "data", 0o500);
    let said = answer_without_privileges(&site);
    set_mode(&site, "data", 0o700);
    set_mode(&site, "data/proem.db", 0o600);
    assert!(said.starts_with("cannot use the store {root}/data/proem.db: "), "{said}");
    assert!(said.ends_with("\nhint: check that the file and its folder exist and are writable"), "{said}");
    assert_eq!(answer_without_privileges(&site), "answered: kept", "the control");
}
