//! The engraving depends only on its text, the backend and the names of the servers.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

use std::collections::BTreeSet;

use proem::{Caller, Request};
use serde_json::{Value, json};

/// The digest of the system prompt under a clock, a zone, a locale and an environment.
fn digest(folder: &str, number: i64, servers: &Value) -> String {
    const ZONES: [&str; 5] = ["UTC", "Asia/Tokyo", "America/St_Johns", "Pacific/Kiritimati", "Europe/Dublin"];
    const LOCALES: [&str; 4] = ["C", "tr_TR.UTF-8", "ar_EG.UTF-8", "de_DE@euro"];
    let choose = |list: &[&str]| list[usize::try_from(number).unwrap() % list.len()].to_owned();
    let moment = jiff::Timestamp::from_second(number * 7_919_993).unwrap();
    let request = json!({
        "profile": "engraving",
        "cwd": folder,
        "backend": "claude",
        "mcp_servers": servers,
        "host": {
            "now": moment.to_string(),
            "timezone": choose(&ZONES),
            "home": null,
            "hostname": format!("machine-{number}"),
            "os_version": number.to_string(),
            "env": {
                "PROEM_ENGRAVING_PATH": "engraving.md",
                "LANG": choose(&LOCALES),
                "TZ": choose(&ZONES),
                "RANDOM": number.to_string(),
            },
        },
    });
    let request = Request::from_json(&request.to_string()).unwrap();
    proem::build(&request, Caller::User).unwrap().frozen().digest().hex()
}

#[test]
fn a_thousand_builds_have_one_digest() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("engraving.md"), "On {{backend}} with {{mcp_servers}}.\n").unwrap();
    let cwd = folder.path().to_str().unwrap();
    let servers = json!(["files", "web"]);
    let digests: BTreeSet<String> = (0..1000).map(|number| digest(cwd, number, &servers)).collect();
    assert_eq!(digests.len(), 1);
    let others = digest(cwd, 0, &json!(["files", "mail"]));
    assert!(!digests.contains(&others), "other servers must give another text");
}
