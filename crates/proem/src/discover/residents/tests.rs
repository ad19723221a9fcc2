//! Every rule of residents, as a table where possible.

use std::fs;
use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::ResidentKind::{Knowledge, Workflow};
use super::*;

struct Fixture {
    root: TempDir,
}

impl Fixture {
    fn new(files: &[(&str, &str)]) -> Self {
        let fixture = Self { root: tempfile::tempdir().unwrap() };
        fs::create_dir(fixture.folder()).unwrap();
        for (name, text) in files {
            fixture.write(name, text.as_bytes());
        }
        fixture
    }

    fn folder(&self) -> PathBuf {
        self.root.path().join("folder")
    }

    fn write(&self, name: impl AsRef<Path>, bytes: &[u8]) {
        fs::write(self.folder().join(name), bytes).unwrap();
    }

    fn collect(&self, kind: ResidentKind) -> Result<ResidentFiles, Error> {
        collect(&self.folder(), kind, &ReadPolicy::beneath(&[self.folder()], None, &[]))
    }

    /// Returns a message with paths shortened to the fixture's root.
    fn brief(&self, text: &str) -> String {
        text.replace(&format!("{}/", self.root.path().display()), "")
    }

    /// Formats every file with its outcome and reason.
    fn considered(&self, collected: &ResidentFiles) -> Vec<String> {
        let line = |one: &FileOutcome| {
            let why = one.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
            format!("{} {}{why}", self.brief(&one.path), one.outcome.word())
        };
        collected.considered.iter().map(line).collect()
    }

    /// Formats every note as a line.
    fn notes(&self, collected: &ResidentFiles) -> Vec<String> {
        let line = |note: &Note| {
            let source = note.source.as_ref().map(ToString::to_string).unwrap_or_default();
            format!("{}: {} ({})", note.code, note.message, self.brief(&source))
        };
        collected.notes.iter().map(line).collect()
    }
}

fn resident(description: &str) -> String {
    format!("---\ndescription: {description}\nmodel_invokation: true\n---\nBody\n")
}

/// Returns the results of one file as knowledge and as a workflow: its lines, or the reason for none.
fn outcomes(name: &str, text: &str) -> (Result<String, String>, Result<String, String>) {
    let fixture = Fixture::new(&[(name, text)]);
    let knowledge = fixture.collect(Knowledge).unwrap();
    let knowledge = match &*fixture.notes(&knowledge) {
        [] => Ok(lines(&knowledge.entries)),
        notes => Err(notes.join("\n")),
    };
    let workflow = fixture.collect(Workflow);
    let workflow = workflow.map(|found| lines(&found.entries));
    (knowledge, workflow.map_err(|error| fixture.brief(&error.to_string())))
}

#[test]
fn missing_folder_is_empty() {
    let fixture = Fixture::new(&[]);
    for folder in ["gone", "gone/deeper"] {
        for kind in [Knowledge, Workflow] {
            let policy = ReadPolicy::user(None, &[]);
            let found = collect(&fixture.root.path().join(folder), kind, &policy).unwrap();
            assert!(found.entries.is_empty() && found.notes.is_empty() && found.considered.is_empty());
        }
    }
}

#[test]
fn entries_are_sorted_by_slug_not_by_file_name() {
    // `a-b.md` comes before `a.md`, and yet `a` before `a-b`.
    let names = ["b.md", "a-b.md", "a.md", "a1.md", "10.md", "9.md"];
    for turn in 0..names.len() {
        let fixture = Fixture::new(&[]);
        for name in names.iter().cycle().skip(turn).take(names.len()) {
            fixture.write(name, resident(name).as_bytes());
        }
        for kind in [Knowledge, Workflow] {
            let found = fixture.collect(kind).unwrap();
            let expected = "- 10: 10.md\n- 9: 9.md\n- a: a.md\n- a-b: a-b.md\n- a1: a1.md\n- b: b.md";
            assert_eq!(lines(&found.entries), expected);
            assert_eq!(fixture.considered(&found)[2], "folder/a.md used");
            assert_eq!(fixture.brief(&found.entries[3].path), "folder/a-b.md");
        }
    }
}

#[test]
fn only_markdown_files_directly_in_the_folder_count() {
    let text = &*resident("x");
    let others = [("a.txt", text), ("b.MD", text), (".md", text), (".c.md", text), ("md", text)];
    let fixture = Fixture::new(&others);
    fs::create_dir(fixture.folder().join("deeper")).unwrap();
    fixture.write("deeper/d.md", text.as_bytes());
    fs::create_dir(fixture.folder().join("Folder.md")).unwrap();
    for kind in [Knowledge, Workflow] {
        let found = fixture.collect(kind).unwrap();
        assert_eq!(found.entries, []);
        assert_eq!(found.notes, []);
        assert_eq!(fixture.considered(&found), ["folder/Folder.md unreadable: is a directory"]);
    }
}

#[test]
fn line_breaks_in_a_description_become_spaces() {
    for (description, expected) in [
        ("plain", "plain"),
        ("' kept '", " kept "),
        ("\"one\\ntwo\"", "one two"),
        ("\"one\\r\\ntwo\\r\"", "one  two "),
        ("|\n  one\n  two\n", "one two "),
        (">-\n  one\n  two\n\n  three\n", "one two three"),
        ("\"\\n- evil: x\"", " - evil: x"),
        ("\"a\\tb\\u2028c\"", "a\tb\u{2028}c"),
    ] {
        let expected = Ok(format!("- slug: {expected}"));
        assert_eq!(outcomes("slug.md", &resident(description)), (expected.clone(), expected));
    }
    assert_eq!(lines(&[]), "");
}

#[test]
fn description_is_kept_as_the_yaml_says_it() {
    let fixture = Fixture::new(&[("a.md", &resident("\"one\\r\\ntwo \""))]);
    assert_eq!(fixture.collect(Knowledge).unwrap().entries[0].description, "one\r\ntwo ");
}

#[test]
fn front_matter_may_have_crlf_a_mark_and_other_keys() {
    let text = "\u{FEFF}---\r\ntags: [a, b]\r\nmodel_invocation: TRUE\r\ndescription: x\r\n---\r\nBody";
    assert_eq!(outcomes("a.md", text), (Ok("- a: x".into()), Ok("- a: x".into())));
}

#[test]
fn slugs_are_lower_case_words_joined_by_hyphens() {
    let longest = "a".repeat(64);
    for slug in ["a", "9", "a-b", "2026-03-07", "a-b-c", &*longest] {
        assert_eq!(outcomes(&format!("{slug}.md"), &resident("x")).1, Ok(format!("- {slug}: x")));
    }
    let too_long = "a".repeat(65);
    for slug in ["A", "a_b", "a b", "a.b", "-a", "a-", "a--b", "-", "ä", "a\nb", &*too_long] {
        let (knowledge, workflow) = outcomes(&format!("{slug}.md"), &resident("x"));
        let slug = slug.replace('\n', "\\u{a}");
        let why = "its name is not a slug";
        let note = format!("malformed_resident: `{slug}.md` is skipped: {why} (folder/{slug}.md)");
        assert_eq!(knowledge, Err(note));
        assert_eq!(workflow, Err(format!("cannot use the workflow folder/{slug}.md: {why}")));
    }
}

#[test]
fn name_that_is_not_utf8_is_not_a_slug() {
    let fixture = Fixture::new(&[]);
    fixture.write(OsStr::from_bytes(b"a\xff.md"), resident("x").as_bytes());
    let found = fixture.collect(Knowledge).unwrap();
    assert_eq!(fixture.considered(&found), ["folder/a\u{FFFD}.md malformed: its name is not a slug"]);
    assert!(fixture.collect(Workflow).is_err());
}

/// Checks a file `a.md` that is bad both as knowledge and as a workflow.
fn check_bad(text: &str, place: Option<(usize, usize)>, why: &str) {
    let (at, line) = place.map_or_else(Default::default, |(line, column)| {
        (format!(":{line}:{column}"), format!("line {line}, column {column}: "))
    });
    let note = format!("malformed_resident: `a.md` is skipped: {why} (folder/a.md{at})");
    let error = format!("cannot use the workflow folder/a.md: {line}{why}");
    assert_eq!(outcomes("a.md", text), (Err(note), Err(error)), "{text:?}");
}

#[test]
fn bad_front_matter_is_a_note_or_an_error() {
    let absent = "there is no front matter: the first line is not `---`";
    check_bad("", None, absent);
    check_bad("# Title\n", None, absent);
    check_bad("---\ndescription: x\n", None, "front matter has no closing `---`");
    let long = format!("---\ndescription: {}\n---\n", "x".repeat(8192));
    check_bad(&long, None, "front matter has no closing `---` within 8 KiB");
    let twice = "---\ndescription: x\ndescription: y\n---\n";
    check_bad(twice, Some((3, 1)), "the key `description` is there twice");
    let text = "---\njust text\n---\n";
    check_bad(text, Some((2, 1)), "front matter must be a map of keys and values");
    let tag = "---\ndescription: !!str x\nmodel_invokation: true\n---\n";
    check_bad(tag, Some((2, 14)), "tags are not allowed; quote a value that begins with `!`");
}

#[test]
fn description_must_be_text_and_not_empty() {
    let file = |line: &str| format!("---\n{line}model_invokation: true\n---\n");
    check_bad(&file(""), None, "there is no `description`");
    check_bad(&file("description:\n"), None, "there is no `description`");
    check_bad(&file("description: ''\n"), None, "`description` is empty");
    check_bad(&file("description: \" \\n\"\n"), None, "`description` is empty");
    check_bad(&file("description: 42\n"), None, "`description` is a number, and must be text");
    check_bad(&file("description: [a]\n"), None, "`description` is a list, and must be text");
}

/// Knowledge that is not for the model may lack anything; a workflow may not.
#[test]
fn knowledge_that_says_false_is_passed_over_in_silence() {
    let (knowledge, workflow) = outcomes("a.md", "---\nmodel_invokation: false\n---\n");
    assert_eq!(knowledge, Ok(String::new()));
    assert_eq!(workflow, Err("cannot use the workflow folder/a.md: there is no `description`".to_owned()));
}

#[test]
fn flag_must_be_a_boolean_of_yaml_1_2() {
    let file = |lines: &str| format!("---\ndescription: x\n{lines}---\n");
    for key in FLAGS {
        let why = |what: &str| format!("`{key}` is {what}, and must be `true` or `false`");
        check_bad(&file(&format!("{key}: yes\n")), None, &why("text"));
        check_bad(&file(&format!("{key}: 'true'\n")), None, &why("text"));
        check_bad(&file(&format!("{key}: 1\n")), None, &why("a number"));
        check_bad(&file(&format!("{key}:\n")), None, &why("nothing"));
        let other = FLAGS.into_iter().find(|other| *other != key).unwrap();
        check_bad(&file(&format!("{other}: true\n{key}: yes\n")), None, &why("text"));
        let listed = (Ok("- a: x".into()), Ok("- a: x".into()));
        assert_eq!(outcomes("a.md", &file(&format!("{key}: true\n"))), listed);
        assert_eq!(outcomes("a.md", &file(&format!("{key}: true\n{other}: True\n"))), listed);
        let differ = file(&format!("{key}: true\n{other}: false\n"));
        check_bad(&differ, None, "`model_invokation` and `model_invocation` are both there, and they differ");
    }
}

#[test]
fn false_flag_hides_without_a_note() {
    let text = "---\ndescription: x\nmodel_invokation: false\n---\n";
    assert_eq!(outcomes("a.md", text), (Ok(String::new()), Ok(String::new())));
    let fixture = Fixture::new(&[("a.md", text)]);
    for kind in [Knowledge, Workflow] {
        let found = fixture.collect(kind).unwrap();
        assert_eq!(fixture.considered(&found), ["folder/a.md hidden: `model_invokation` is not true"]);
    }
}

#[test]
fn flag_is_needed_in_knowledge_and_optional_in_a_workflow() {
    let text = "---\ndescription: x\n---\n";
    let why = "there is no `model_invokation`";
    let note = format!("malformed_resident: `a.md` is skipped: {why} (folder/a.md)");
    assert_eq!(outcomes("a.md", text), (Err(note), Ok(String::new())));
    let fixture = Fixture::new(&[("a.md", text)]);
    let knowledge = fixture.collect(Knowledge).unwrap();
    assert_eq!(fixture.considered(&knowledge), ["folder/a.md hidden: there is no `model_invokation`"]);
    let workflow = fixture.collect(Workflow).unwrap();
    assert_eq!(fixture.considered(&workflow), ["folder/a.md hidden: `model_invokation` is not true"]);
}

#[test]
fn only_resident_workflows_have_a_longest_description() {
    // Characters count, not bytes.
    let (longest, longer) = ("é".repeat(1024), "é".repeat(1025));
    let listed = Ok(format!("- a: {longest}"));
    assert_eq!(outcomes("a.md", &resident(&longest)), (listed.clone(), listed));
    let (knowledge, workflow) = outcomes("a.md", &resident(&longer));
    assert_eq!(knowledge, Ok(format!("- a: {longer}")));
    let why = "`description` has 1025 characters, and at most 1024 may be resident";
    assert_eq!(workflow, Err(format!("cannot use the workflow folder/a.md: {why}")));
    for flag in ["", "model_invokation: false\n"] {
        let hidden = outcomes("a.md", &format!("---\ndescription: {longer}\n{flag}---\n"));
        assert_eq!(hidden.1, Ok(String::new()));
    }
}

#[test]
fn bad_file_leaves_the_others_of_its_folder() {
    let fixture = Fixture::new(&[("a.md", &resident("x")), ("b.md", ""), ("c.md", &resident("y"))]);
    let found = fixture.collect(Knowledge).unwrap();
    assert_eq!(lines(&found.entries), "- a: x\n- c: y");
    let why = "there is no front matter: the first line is not `---`";
    let bad = format!("folder/b.md malformed: {why}");
    assert_eq!(fixture.considered(&found), ["folder/a.md used", &bad, "folder/c.md used"]);
}

#[test]
fn file_that_cannot_be_read_is_a_note_or_an_error() {
    let fixture = Fixture::new(&[]);
    fixture.write("latin.md", b"---\ndescription: caf\xe9\nmodel_invokation: true\n---\n");
    fixture.write("nul.md", b"---\ndescription: x\nmodel_invokation: true\n---\n\0");
    fixture.write("large.md", format!("{}{}", resident("x"), "x".repeat(RESIDENT_BYTES_MAX)).as_bytes());
    symlink("nowhere.md", fixture.folder().join("gone.md")).unwrap();
    fs::write(fixture.root.path().join("secret"), resident("x")).unwrap();
    symlink("../secret", fixture.folder().join("out.md")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, fixture.folder().join("queue.md"), 0o600.into()).unwrap();
    let expected = [
        ("gone", "malformed_resident", "missing", "no such file"),
        ("large", "over_limit", "unreadable", "over 1 MiB"),
        ("latin", "not_utf8", "unreadable", "not UTF-8: bad byte at offset 20"),
        ("nul", "not_utf8", "unreadable", "not text: NUL byte at offset 46"),
        ("out", "root_not_allowed", "refused", "refused: outside the allowed roots"),
        ("queue", "not_regular", "unreadable", "is a FIFO, not a regular file"),
    ];
    let found = fixture.collect(Knowledge).unwrap();
    let notes = expected
        .map(|(name, code, _, why)| format!("{code}: `{name}.md` is skipped: {why} (folder/{name}.md)"));
    assert_eq!(fixture.notes(&found), notes);
    let considered = expected.map(|(name, _, outcome, why)| format!("folder/{name}.md {outcome}: {why}"));
    assert_eq!(fixture.considered(&found), considered);
    for (name, _, _, why) in expected {
        let error = fixture.collect(Workflow).unwrap_err();
        let message = format!("cannot use the workflow folder/{name}.md: {why}");
        assert_eq!(fixture.brief(&error.to_string()), message);
        fs::remove_file(fixture.folder().join(format!("{name}.md"))).unwrap();
    }
}

#[test]
fn links_inside_are_followed() {
    let fixture = Fixture::new(&[("note.txt", &resident("x"))]);
    symlink("note.txt", fixture.folder().join("a.md")).unwrap();
    assert_eq!(lines(&fixture.collect(Workflow).unwrap().entries), "- a: x");
}

#[test]
fn folder_must_be_one_and_lie_inside() {
    let fixture = Fixture::new(&[("a.md", &resident("x"))]);
    let root = fixture.root.path();
    fs::write(root.join("file"), "").unwrap();
    fs::create_dir(root.join("inside")).unwrap();
    symlink("../folder", root.join("inside/link")).unwrap();
    let policy = ReadPolicy::beneath(&[root.join("inside"), root.join("file")], None, &[]);
    for (name, code, outcome, why) in [
        ("file", "malformed_resident", "malformed", "it is not a folder"),
        ("inside/link", "root_not_allowed", "refused", "refused: outside the allowed roots"),
    ] {
        let found = collect(&root.join(name), Knowledge, &policy).unwrap();
        let short = name.rsplit('/').next().unwrap();
        assert_eq!(fixture.notes(&found), [format!("{code}: `{short}` is skipped: {why} ({name})")]);
        assert_eq!(fixture.considered(&found), [format!("{name} {outcome}: {why}")]);
        let error = collect(&root.join(name), Workflow, &policy).unwrap_err();
        assert_eq!(fixture.brief(&error.to_string()), format!("cannot use the workflow {name}: {why}"));
    }
}

#[test]
fn first_files_by_name_are_read_and_the_rest_noted() {
    let fixture = Fixture::new(&[("one", &resident("x"))]);
    for number in (0..RESIDENTS_MAX + 2).rev() {
        let path = fixture.folder().join(format!("{number:05}.md"));
        fs::hard_link(fixture.folder().join("one"), path).unwrap();
    }
    let found = fixture.collect(Workflow).unwrap();
    assert_eq!(found.entries.len(), RESIDENTS_MAX);
    assert_eq!(found.entries.last().unwrap().slug, "09999");
    let note = "over_limit: 2 files are not read: there are more than 10000 (folder)";
    assert_eq!(fixture.notes(&found), [note]);
}

#[test]
fn problems_come_with_advice() {
    let hint = |name: &str, text: &str| {
        let fixture = Fixture::new(&[(name, text)]);
        fixture.collect(Knowledge).unwrap().notes.remove(0).hint
    };
    let slug = "use lower-case letters, digits and single hyphens between them, at most 64 in all";
    assert_eq!(hint("A.md", &resident("x")).as_deref(), Some(slug));
    let flag = "add `model_invokation: true`, or `false` if the model need not know of it";
    assert_eq!(hint("a.md", "---\ndescription: x\n---\n").as_deref(), Some(flag));
    let error = Fixture::new(&[("a.md", "")]).collect(Workflow).unwrap_err();
    assert_eq!(error.kind(), crate::ErrorKind::Usage);
    assert!(error.hint().is_some());
}
