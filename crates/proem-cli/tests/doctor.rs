//! `proem diff`, `drift` and `why` as a user meets them.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

use serde_json::Value;

use crate::desk::{Desk, on_terminal};

fn saved(desk: &Desk) {
    let built = desk.run(&["build", "--format", "json"]);
    desk.write("before.json", &built.stdout);
}

fn compared(desk: &Desk, arguments: &[&str]) -> Value {
    let output = desk.run(&[&["diff", "before.json", "now", "--format", "json"], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{}", desk.said(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn an_edited_file_is_named_with_byte_line_cause_and_cost() {
    let desk = Desk::new();
    desk.write("AGENTS.md", b"one\ntwo\nthree\n");
    saved(&desk);
    assert!(compared(&desk, &[]).get("first_difference").is_none());
    desk.write("AGENTS.md", b"one\ntoo\nthree\n");
    let found = compared(&desk, &[]);
    let first = &found["first_difference"];
    assert_eq!((&first["cause"], &first["reason"]), (&"file_edited".into(), &"system_changed".into()));
    assert_eq!((&first["a"]["line"], &first["a"]["section"]), (&2.into(), &"context".into()));
    let path = desk.work().join("AGENTS.md");
    assert_eq!(first["a"]["source"]["path"].as_str(), path.to_str());
    assert_eq!(found["common_prefix"]["bytes"], first["byte"]);
    assert!(found["lost"]["tokens"].as_u64().unwrap() > 0);
    let text = desk.run(&["diff", "before.json"]);
    let text = desk.said(&text.stdout);
    assert!(text.starts_with("{root}/work/AGENTS.md was edited\n"), "{text}");
    assert!(text.contains("\n-two\n+too\n"), "{text}");
}

#[test]
fn what_cannot_be_compared_is_said() {
    let desk = Desk::new();
    desk.write("broken.json", b"{");
    let output = desk.run(&["diff", "broken.json"]);
    assert_eq!(output.status.code(), Some(2), "{}", desk.said(&output.stderr));
    let expected = "error: `a b` is not a file, a conversation or epoch of the store, or a revision\n\
                    hint: name a request file, a saved build, `CONVERSATION@EPOCH`, `git:REVISION`, or `now`\n";
    desk.refuses(&["diff", "a b"], 3, expected);
    let expected =
        "error: there is no store at none.db\nhint: `proem serve` makes one; name another with `--store`\n";
    desk.refuses(&["diff", "c@1", "--store", "none.db"], 3, expected);
}

/// Row H21.
#[test]
fn a_terminal_gets_colours_and_no_commands_of_files() {
    let desk = Desk::of("template");
    desk.write("AGENTS.md", b"one\n");
    saved(&desk);
    desk.write("AGENTS.md", b"\x1b[31mtwo\n");
    let mut command = desk.command(&["diff", "before.json"]);
    command.env("TERM", "xterm");
    let shown = on_terminal(command);
    assert!(shown.contains("\x1b[32m+"), "{shown:?}");
    assert!(!shown.contains("\x1b[31mtwo"), "{shown:?}");
}

#[test]
fn a_text_is_followed_to_its_source() {
    let desk = Desk::new();
    desk.write("AGENTS.md", b"one\nsecret handshake\n");
    let found = desk.run(&["why", "secret handshake"]);
    assert_eq!(found.status.code(), Some(0));
    let said = desk.said(&found.stdout);
    assert!(said.contains("\n  AGENTS.md:2, project\n"), "{said}");
    let json = desk.run(&["why", "--line", "1", "--format", "json"]);
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["places"][0]["spans"][0]["source"]["kind"], "built_in");
}

#[test]
fn a_text_that_is_not_in_the_prompt_is_found_where_it_is() {
    let desk = Desk::new();
    desk.write("AGENTS.md", b"one\n");
    desk.write("CLAUDE.md", b"\nelsewhere\n");
    desk.write("GEMINI.md", b"further away\n");
    let shadowed = desk.run(&["why", "elsewhere"]);
    assert_eq!(shadowed.status.code(), Some(1));
    assert!(desk.said(&shadowed.stdout).starts_with("CLAUDE.md:2\n  the file is not used (shadowed)"));
    let unread = desk.run(&["why", "further away"]);
    let expected = "GEMINI.md:1\n  the profile `default` does not read it\n";
    assert_eq!(desk.said(&unread.stdout), expected);
    let nowhere = desk.run(&["why", "nowhere at all"]);
    assert_eq!((nowhere.status.code(), nowhere.stdout.len()), (Some(1), 0));
}

/// Row H9.
#[test]
fn an_explanation_is_a_page_that_stands_alone() {
    let desk = Desk::new();
    desk.write("AGENTS.md", "<script>alert(1)</script> \u{202e}\" onmouseover=\"x".as_bytes());
    let output = desk.run(&["explain", "--format", "html"]);
    assert_eq!(output.status.code(), Some(0));
    let page = desk.said(&output.stdout);
    assert!(page.starts_with("<!doctype html>\n") && page.ends_with("</html>\n"), "{page}");
    assert!(
        page.contains("&lt;script&gt;alert(1)&lt;/script&gt; &lt;U+202E&gt;&quot; onmouseover=&quot;x"),
        "{page}"
    );
    assert!(!page.contains("<script") && !page.contains("http:") && !page.contains("https:"), "{page}");
    assert!(
        page.contains("title=\"{root}/work/AGENTS.md:1:1, put there by built-in default/context"),
        "{page}"
    );
}

#[test]
fn a_revision_is_compared_as_if_it_were_checked_out_here() {
    let desk = Desk::of("layers");
    let git = |arguments: &[&str]| {
        let mut command = std::process::Command::new("git");
        command.args(["-c", "user.name=me", "-c", "user.email=me@example.org"]).args(arguments);
        let done = command.current_dir(desk.work()).env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
        assert!(done.status.success(), "{}", desk.said(&done.stderr));
    };
    git(&["init", "-q", "-b", "main"]);
    desk.write("AGENTS.md", b"one\ntwo\n").write("sub/AGENTS.md", b"below\n");
    // A file above the repository counts, too, and is the same on both sides.
    std::fs::write(desk.root.path().join("AGENTS.md"), "above\n").unwrap();
    git(&["add", "-A"]);
    git(&["commit", "-qm", "first"]);
    let now = ["--now", "2026-03-07T14:55:05Z"];
    let compare = |more: &[&str]| {
        let output =
            desk.run(&[&["diff", "git:HEAD", "now", "--format", "json"], now.as_slice(), more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", desk.said(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let same = compare(&[]);
    assert!(same.get("first_difference").is_none(), "{same}");
    let sub = desk.work().join("sub");
    assert!(compare(&["--cwd", sub.to_str().unwrap()]).get("first_difference").is_none());
    desk.write("AGENTS.md", b"one\ntoo\n");
    let found = compare(&[]);
    let first = &found["first_difference"];
    assert_eq!((&first["cause"], &first["a"]["line"]), (&"file_edited".into(), &2.into()), "{found}");
    assert_eq!(first["a"]["source"]["path"].as_str(), desk.work().join("AGENTS.md").to_str());
    assert!(first["edited_at"].as_str().unwrap().ends_with('Z'));
    for (name, why) in
        [("git:nothing", "there is no revision `nothing`"), ("git:--help", "there is no revision `--help`")]
    {
        let output = desk.run(&["diff", name]);
        assert_eq!(output.status.code(), Some(3));
        assert!(desk.said(&output.stderr).contains(why), "{}", desk.said(&output.stderr));
    }
}

#[test]
fn a_name_is_a_file_or_a_conversation_or_a_revision() {
    let desk = Desk::of("layers");
    let git = |arguments: &[&str]| {
        let mut command = std::process::Command::new("git");
        command.args(["-c", "user.name=me", "-c", "user.email=me@example.org"]).args(arguments);
        let done = command.current_dir(desk.work()).env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
        assert!(done.status.success(), "{}", desk.said(&done.stderr));
    };
    git(&["init", "-q", "-b", "main"]);
    for text in ["one\n", "two\n"] {
        desk.write("AGENTS.md", text.as_bytes());
        git(&["add", "-A"]);
        git(&["commit", "-qm", "x"]);
    }
    let store = desk.root.path().join("s.db");
    let place = store.to_str().unwrap();
    let conversations =
        proem_store::Conversations::new(proem_store::open(place).unwrap().into(), proem::Engine::new());
    let request = serde_json::json!({
        "cwd": desk.work().to_str().unwrap(), "profile": "layers",
        "host": { "home": desk.root.path().to_str().unwrap(), "env": {}, "now": "2026-03-07T14:55:05Z" },
    });
    let request = proem::Request::from_json(&request.to_string()).unwrap();
    for id in ["main", "chat"] {
        conversations.turn(id, &request, proem::Caller::User).unwrap();
    }
    drop(conversations);
    let cause = |a: &str, b: &str| {
        let now = ["--now", "2026-03-07T14:55:05Z"];
        let output =
            desk.run(&[&["diff", a, b, "--store", place, "--format", "json"], now.as_slice()].concat());
        assert_eq!(output.status.code(), Some(0), "{a} {b}: {}", desk.said(&output.stderr));
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        found["first_difference"]["cause"].as_str().map(str::to_owned)
    };
    assert_eq!(cause("HEAD~1", "HEAD").as_deref(), Some("file_edited"));
    assert_eq!(cause("git:HEAD", "chat"), None);
    assert_eq!(cause("HEAD", "conversation:main"), None);
    assert_eq!(cause("HEAD~1", "conversation:main@1").as_deref(), Some("file_edited"));
    let expected = "error: `main` is a conversation of the store and a revision of the repository\n\
                    hint: write `conversation:main` or `git:main`\n";
    desk.refuses(&["diff", "main", "--store", place], 2, expected);
    // A file comes first.
    desk.write("HEAD", br#"{"profile": "template", "template": "x"}"#);
    assert_eq!(cause("HEAD", "HEAD"), None);
    assert_eq!(cause("HEAD", "git:HEAD").as_deref(), Some("profile"));
    let output = desk.run(&["diff", "HEAD~9", "HEAD"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(desk.said(&output.stderr).starts_with("error: `HEAD~9` is not a file"));
}

#[test]
fn what_is_lost_depends_on_whose_cache_it_is() {
    let desk = Desk::of("template");
    let words = "word ".repeat(3000);
    desk.write("t.md", words.as_bytes());
    let built = desk.run(&["build", "--template", "t.md", "--format", "json"]);
    desk.write("before.json", &built.stdout);
    desk.write("t.md", (words + "more").as_bytes());
    let lost = |provider: &str| {
        let output = desk.run(&[
            "diff",
            "before.json",
            "now",
            "--template",
            "t.md",
            "--for",
            provider,
            "--format",
            "json",
        ]);
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(found["lost"]["provider"], provider);
        found["lost"]["tokens"].as_u64().unwrap()
    };
    let all = lost("anthropic");
    assert!(all > 5000, "a marked block is kept whole or not at all: {all}");
    assert!(lost("openai") < 130, "steps of 128 tokens");
    assert!(lost("llama.cpp") < 5, "the longest beginning");
    let output = desk.run(&["diff", "before.json", "--for", "nobody"]);
    assert!(desk.said(&output.stderr).contains("unknown provider \"nobody\"; expected one of: "));
}

/// Chat templates print the tools behind the system prompt, so a changed prompt loses them as well; Anthropic's cache has
/// them first, and keeps them.
#[test]
fn tools_count_in_what_is_lost_also_between_saved_builds() {
    let desk = Desk::of("template");
    let tool = |name: &str| serde_json::json!({ "name": name, "description": "word ".repeat(200) });
    for (file, text) in [("a", "Day one."), ("b", "Day two.")] {
        let request = serde_json::json!({
            "model": "my-llama", "template": text, "tools": [tool("read"), tool("bash")],
        });
        desk.write(&format!("{file}.request.json"), request.to_string().as_bytes());
        let built = desk.run(&["build", "--request", &format!("{file}.request.json"), "--format", "json"]);
        desk.write(&format!("{file}.json"), &built.stdout);
    }
    let compared = |a: &str, b: &str, provider: &str| -> Value {
        let output = desk.run(&["diff", a, b, "--for", provider, "--format", "json"]);
        assert_eq!(output.status.code(), Some(0), "{}", desk.said(&output.stderr));
        let mut found: Value = serde_json::from_slice(&output.stdout).unwrap();
        found["lost"].take()
    };
    for (provider, least, most) in [("llama.cpp", 700, 900), ("anthropic", 1, 10)] {
        let lost = compared("a.json", "b.json", provider);
        let tokens = lost["tokens"].as_u64().unwrap();
        assert!((least..most).contains(&tokens), "{provider}: {lost}");
        assert_eq!(lost, compared("a.request.json", "b.request.json", provider), "{provider}");
        let (min, max) = (lost["bounds"]["min"].as_u64().unwrap(), lost["bounds"]["max"].as_u64().unwrap());
        assert!(min <= tokens && tokens <= max && min < max, "{lost}");
    }
    // An older build has the digest of its tools alone: the other side has them, or the figure says what it lacks.
    for file in ["a", "b"] {
        let text = std::fs::read_to_string(desk.work().join(format!("{file}.json"))).unwrap();
        let mut build: Value = serde_json::from_str(&text).unwrap();
        build.as_object_mut().unwrap().remove("tools").unwrap();
        desk.write(&format!("old-{file}.json"), build.to_string().as_bytes());
    }
    let whole = compared("a.json", "b.json", "llama.cpp");
    assert_eq!(compared("old-a.json", "b.json", "llama.cpp"), whole);
    assert_eq!(compared("a.json", "old-b.json", "llama.cpp"), whole);
    assert_eq!(compared("old-a.json", "old-b.json", "llama.cpp")["lacks_tools"], true);
    let text = desk.run(&["diff", "old-a.json", "old-b.json", "--for", "llama.cpp", "--context", "0"]);
    let text = desk.said(&text.stdout);
    assert!(text.contains("lost per call   at least "), "{text}");
}

/// A long line of a prompt goes on below, with a mark, where there is a width; a pipe gets it as it is.
#[test]
fn changed_lines_fit_the_terminal() {
    let desk = Desk::of("template");
    let before = "one two three four five six seven eight nine ten";
    desk.write("a.json", format!(r#"{{"template": "{before}\n"}}"#).as_bytes());
    desk.write("b.json", format!(r#"{{"template": "{before} eleven\n"}}"#).as_bytes());
    let shown = |columns: Option<&str>| {
        let mut command = desk.command(&["diff", "a.json", "b.json"]);
        let output = command.envs(columns.map(|columns| ("COLUMNS", columns))).output().unwrap();
        let said = desk.said(&output.stdout);
        said.split_once("--- system\n").expect(&said).1.to_owned()
    };
    assert_eq!(shown(None), format!("-{before}\n+{before} eleven\n"));
    assert_eq!(
        shown(Some("40")),
        "-one two three four five six seven eight\n  … nine ten\n\
         +one two three four five six seven eight\n  … nine ten eleven\n"
    );
}
/// The byte at which prompts part is behind the last one of the file: it belongs to what follows, as `why --byte` says.
#[test]
fn lines_added_at_the_end_of_a_file_are_behind_its_end() {
    let desk = Desk::new();
    desk.write("AGENTS.md", b"one\ntwo\n");
    saved(&desk);
    let byte = {
        desk.write("AGENTS.md", b"one\ntwo\nthree\n");
        let found = compared(&desk, &[]);
        let first = &found["first_difference"];
        assert_eq!((&first["a"]["line"], &first["a"]["end"]), (&2.into(), &true.into()), "{found}");
        assert_eq!((&first["b"]["line"], &first["b"]["end"]), (&3.into(), &Value::Null), "{found}");
        let text = desk.said(&desk.run(&["diff", "before.json"]).stdout);
        let line = "\nin A            end of {root}/work/AGENTS.md (after line 2), section context\n";
        assert!(text.contains(line), "{text}");
        assert!(text.contains("\nin B            {root}/work/AGENTS.md:3, section context\n"), "{text}");
        first["byte"].as_u64().unwrap().to_string()
    };
    let after = desk.said(&desk.run(&["why", "--byte", &byte]).stdout);
    assert!(after.contains("  AGENTS.md:3, project\n"), "{after}");
    desk.write("AGENTS.md", b"one\ntwo\n");
    let before = desk.said(&desk.run(&["why", "--byte", &byte]).stdout);
    assert!(!before.contains("  AGENTS.md:"), "it is not the file's byte: {before}");
}

#[test]
fn a_value_that_one_side_lacks_is_absent_there() {
    let desk = Desk::of("template");
    desk.write("t.md", b"Model [prompt:model]. End");
    let build = |more: &[&str]| {
        let output = desk.run(&[&["build", "--template", "t.md", "--format", "json"], more].concat());
        desk.write("before.json", &output.stdout);
    };
    let cause = |more: &[&str]| {
        let first = &compared(&desk, &[&["--template", "t.md"], more].concat())["first_difference"];
        (first["cause"].as_str().unwrap().to_owned(), first["message"].as_str().unwrap().to_owned())
    };
    build(&["--var", "prompt:model=x"]);
    let expected = |message: &str| ("variable".to_owned(), message.to_owned());
    assert_eq!(cause(&[]), expected("[prompt:model] has a value in A, and is absent in B"));
    assert_eq!(cause(&["--var", "prompt:model=y"]), expected("[prompt:model] has another value"));
    build(&[]);
    assert_eq!(
        cause(&["--var", "prompt:model=x"]),
        expected("[prompt:model] is absent in A, and has a value in B")
    );
}

#[test]
fn files_are_no_prompts() {
    let desk = Desk::new();
    desk.write("AGENTS.md", b"# Rules\n");
    desk.refuses(
        &["diff", "AGENTS.md", "CLAUDE.md"],
        2,
        "error: `AGENTS.md` is neither a request nor a saved build: `proem diff` compares prompts, not files\n\
         hint: `proem diff git:REVISION` shows what an edit does to the prompt; `proem compat AGENTS.md` says which agents \
         read the file\n",
    );
}

/// One rule for every command: paths as the shell means them, whatever `--cwd` says.
#[test]
fn paths_are_relative_to_the_directory_of_the_process() {
    let desk = Desk::new();
    desk.write("app/AGENTS.md", b"one\nsecret handshake\n").write("app/CLAUDE.md", b"two\n");
    let said = |arguments: &[&str]| desk.said(&desk.run(&[arguments, &["--cwd", "app"]].concat()).stdout);
    for (arguments, expected) in [
        (&["why", "secret handshake"][..], "\n  app/AGENTS.md:2, project\n"),
        (&["why", "app/AGENTS.md"], "app/AGENTS.md is in the prompt\n"),
        (&["explain"], "\n    app/AGENTS.md "),
        (&["explain", "--all"], "        app/AGENTS.md:1 "),
        (&["compat", "--as", "codex"], "\napp/AGENTS.md  yes\n"),
        (&["check", "--strict"], "app/CLAUDE.md: "),
    ] {
        let text = said(arguments);
        assert!(text.contains(expected), "{arguments:?}: {text}");
    }
}
