//! A profile of the workspace is untrusted text: it decides the text of the prompt, not which files may be read.

use std::time::{Duration, Instant};

use proem::{Caller, Cancel, Error, with_cancel};
use proem_core::note::Code;
use serde_json::{Value, json};

use crate::site::{Site, count, for_each};

/// Makes a profile whose base is a file, with one line that names it.
fn profile(files: &str) -> String {
    format!(
        "[[section]]\nid = \"base\"\ntemplate = {{ text = \"none\", syntax = \"bracket\" }}\nfiles = {files}\n"
    )
}

/// Pins the user's host, with a secret in its environment.
fn host(site: &Site) -> Value {
    json!({
        "env": {"SECRET": "CANARY"}, "home": site.path("home"), "config_dir": site.path("config"),
        "now": "2026-03-07T14:55:05Z", "timezone": "UTC",
    })
}

/// T1: the value of a variable must not become the path of a file whose absence is then reported.
#[test]
fn a_profile_of_the_workspace_does_not_choose_a_variable() {
    let site = Site::bare();
    let build = || site.build_with(Caller::User, json!({"profile": "p", "host": host(&site)}));
    let asks = profile("{ env = \"SECRET\" }");

    site.write("config/profiles/p.toml", &asks);
    let everything = format!("{:?}", build().frozen());
    assert!(everything.contains("CANARY"), "control: the user's own profile may ask");

    std::fs::remove_file(site.path("config/profiles/p.toml")).unwrap();
    site.write("work/sub/.proem/profiles/p.toml", &asks);
    let refused = build();
    assert!(!format!("{:?}", refused.frozen()).contains("CANARY"), "{:#?}", refused.notes());
    assert_eq!(refused.system(), Some("none"));
    assert_eq!(count(&refused, Code::EnvNotAllowed), 1);

    site.write("config/proem.toml", "[env]\nallow = [\"SECRET\"]\n");
    let allowed = format!("{:?}", build().frozen());
    assert!(allowed.contains("CANARY"), "the user may allow it by name");
}

/// A way in which a profile names the file.
type Way = fn(&Site) -> String;

/// Rows T1 and F8: a file that a profile of the workspace names may read only the files that the workspace may, however
/// it is named.
#[test]
fn a_file_that_a_profile_of_the_workspace_names_is_the_workspaces() {
    let ways: [(&str, Way); 3] = [
        ("absolute", |site| site.path("work/sub/evil.md").display().to_string()),
        ("from home", |_| "~/../work/sub/evil.md".to_owned()),
        ("relative", |_| "evil.md".to_owned()),
    ];
    for_each(
        &ways,
        |(name, _)| (*name).to_owned(),
        |(_, way)| {
            let site = Site::bare();
            site.write("outside/private", "CANARY");
            let path = site.path("outside/private");
            site.write("work/sub/evil.md", format!("<[file:{}]>", path.display()));
            let names = profile(&format!("{{ paths = [{:?}] }}", way(&site)));
            let build = || site.build_with(Caller::User, json!({"profile": "p", "host": host(&site)}));

            site.write("work/sub/.proem/profiles/p.toml", &names);
            let refused = build();
            assert_eq!(refused.system(), Some("<>"), "{:#?}", refused.notes());
            assert_eq!(count(&refused, Code::RootNotAllowed), 1);

            site.write("config/profiles/p.toml", profile(&format!("{{ paths = [{path:?}] }}")));
            std::fs::remove_file(site.path("work/sub/.proem/profiles/p.toml")).unwrap();
            assert_eq!(build().system(), Some("CANARY"), "control: the user's own profile reads it");
        },
    );
}

/// A pattern that searches all of the text for each of its matches takes quadratic time.
#[test]
fn a_pattern_of_the_workspace_ends_with_its_build() {
    let tried = |reference: &str| {
        let site = Site::bare();
        let profile = format!(
            "name = \"evil\"\n[[section]]\nid = \"rules\"\nformat = \"$builtin/agents/gemini-cli\"\n\
             [section.collect]\nkind = \"rules\"\n[[section.collect.places]]\nwalk = \"root\"\n\
             files = [{{ name = \"AGENTS.md\", imports = true }}]\n[section.collect.imports]\n\
             reference = '{reference}'\nput = \"instead\"\ndepth_max = 2\ninside = \"root\"\n"
        );
        site.write("work/sub/.proem/profiles/evil.toml", profile);
        site.write("work/AGENTS.md", "A".repeat(1 << 20));
        let request = site.request(Caller::User, json!({"profile": "evil"}));
        let cancel = Cancel::at(Instant::now() + Duration::from_millis(200));
        let before = cpu();
        let built = with_cancel(&cancel, || proem::build(&request, Caller::User));
        (built, cpu() - before)
    };
    let (built, seconds) = tried(r"[^\n]*[^A-Z\n](q)|[A-Z]");
    assert!(matches!(built, Err(Error::Stopped { .. })), "{built:?}");
    assert!(seconds < 3, "it took {seconds} s of CPU time");
    let (built, _) = tried("(?:^|[ ])@([a-z]+)");
    assert!(built.is_ok(), "control: {built:?}");
}

/// The seconds of CPU time that this thread has used.
fn cpu() -> i64 {
    rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime).tv_sec
}
