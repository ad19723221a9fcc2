//! The template of the server: the stored one where the profile takes it, else the base of the profile.

use proem_core::builtin;
use serde_json::{Value, json};

use crate::client::Call;
use crate::server::{Server, Site};

const SAVED: &str = "SAVED in [prompt:cwd]";

fn serve(profile: &str) -> (Site, Server) {
    let site = Site::new();
    site.write("work/.proem/proem.toml", &format!("profile = \"{profile}\"\n"));
    site.write("work/.proem/profiles/mine.toml", "extends = \"template\"\n");
    site.write(
        "work/.proem/profiles/own.toml",
        "[[section]]\nid = \"base\"\ntemplate = { text = \"Own [prompt:cwd].\" }\n",
    );
    let server = site.serve();
    (site, server)
}

fn template(server: &Server) -> Value {
    server.ask(&Call::get("/system-prompt")).json()
}

fn save(server: &Server) -> Value {
    server.ask(&Call::json("PUT", "/system-prompt", &json!({ "template": SAVED }))).json()
}

#[test]
fn without_a_stored_template_it_is_the_base_of_the_servers_profile() {
    for (profile, base) in [
        ("default", builtin::asset("default/base").unwrap()),
        ("template", builtin::asset("template/base").unwrap()),
        ("layers", builtin::asset("layers/base").unwrap()),
        ("assets", builtin::asset("default").unwrap()),
        ("boundary", builtin::asset("boundary/base-v1").unwrap()),
        ("own", "Own [prompt:cwd]."),
        ("engraving", ""),
        ("codex", ""),
    ] {
        let (_site, server) = serve(profile);
        assert_eq!(template(&server), json!({"template": base, "used": true}), "{profile}");
        let editor = server.ask(&Call::get("/editor")).json();
        assert_eq!((&editor["profile"], &editor["built_in"]), (&json!(profile), &json!(base)));
    }
}

#[test]
fn a_stored_template_says_whether_the_servers_profile_takes_it() {
    for (profile, used) in [
        ("default", true),
        ("template", true),
        ("mine", true),
        ("own", false),
        ("layers", false),
        ("assets", false),
        ("boundary", false),
        ("engraving", false),
    ] {
        let (_site, server) = serve(profile);
        let expected = json!({"template": SAVED, "version": 1, "used": used});
        assert_eq!(save(&server), expected, "{profile}");
        assert_eq!(template(&server), expected, "{profile}");
        let restored = server.ask(&Call::new("POST", "/system-prompt/versions/1/restore")).json();
        assert_eq!(restored, json!({"template": SAVED, "version": 2, "used": used}), "{profile}");
        let editor = server.ask(&Call::get("/editor")).json();
        let takes = editor["profiles"].as_array().unwrap().iter().find(|one| one["name"] == profile);
        assert_eq!(takes.unwrap()["stored_template"], used, "{profile}");
    }
}

#[test]
fn a_preview_has_the_stored_template_where_its_profile_takes_it() {
    let (site, server) = serve("default");
    let preview = |profile: &str| {
        let answer = server.ask(&Call::json("POST", "/preview", &json!({ "profile": profile })));
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["carriers"]["system"].as_str().unwrap_or_default().to_owned()
    };
    let profiles = ["layers", "assets", "boundary", "engraving", "own"];
    let before = profiles.map(preview);
    save(&server);
    // The time of `layers` may have moved on.
    let start = |text: &String| text.chars().take(200).collect::<String>();
    assert_eq!(profiles.map(preview).map(|text| start(&text)), before.map(|text| start(&text)));
    let begins = format!("SAVED in {}", site.text("work"));
    for profile in ["default", "template", "mine"] {
        assert!(preview(profile).starts_with(&begins), "{profile}");
    }
}
