//! What must hold for any input. Each property is one function: fuzzers call it with bytes of their own, and a test
//! with those of the corpus.

use std::path::{Component, Path, PathBuf};
use std::sync::LazyLock;

use proem::{Caller, Request};
use proem_core::bracket::{self, Policies, Template};
use proem_core::fact::{Absence, Fact, Facts};
use proem_core::source::Source;
use proem_core::stability::Stability;
use proem_core::front_matter as yaml;
use proem_core::text_safety::{hygiene as characters, secret};
use serde_json::json;
use tempfile::TempDir;

/// A property.
pub type Property = fn(&[u8]);

/// Every property with its name, which is also that of its corpus.
pub const ALL: [(&str, Property); 8] = [
    ("bracket", bracket),
    ("front_matter", front_matter),
    ("hygiene", hygiene),
    ("git_head", git_head),
    ("git_status", git_status),
    ("paths", paths),
    ("request", request),
    ("secrets", secrets),
];

fn text(input: &[u8]) -> Option<&str> {
    std::str::from_utf8(input).ok()
}

/// A template renders to the same bytes with and without spans, the spans cover all of them, and inserted text is not
/// looked at again.
pub fn bracket(input: &[u8]) {
    let Some(source) = text(input) else { return };
    let template = Template::parse(source);
    let mut facts = Facts::new();
    for (index, key) in template.wanted().iter().enumerate() {
        let fact = match index % 3 {
            0 => Fact::given("[system:date] [if a:b]x[endif]".to_owned(), Stability::Session),
            1 => Fact::given(String::new(), Stability::Turn),
            _ => Fact::absent(Absence::NotGiven, Stability::Session),
        };
        facts.insert(key, fact);
    }
    let Ok(bound) = bracket::bind(&template, &facts, &Policies::SEED) else { return };
    let plain = bracket::render(&template, &bound);
    assert!(plain.len() <= bracket::rendered_bytes(&template, &bound));
    let origin = Source::Request { field: "template".into(), place: None };
    let rendered = bracket::render_with_spans(&template, &bound, &origin, Stability::Session);
    assert_eq!(rendered.text(), plain);
    let mut end = 0;
    for span in rendered.spans() {
        assert_eq!(span.bytes.start, end, "a byte without a source");
        end = span.bytes.end;
    }
    assert_eq!(end, plain.len());
}

/// Front matter is read or refused, never both ways, and what is split is all of the text.
pub fn front_matter(input: &[u8]) {
    let Some(source) = text(input) else { return };
    let parsed = yaml::parse(source).map(|found| found.iter().count());
    assert_eq!(parsed.is_ok(), yaml::parse(source).is_ok());
    if let yaml::Split::Found { yaml, body, body_line } = yaml::split(source) {
        assert!(source.contains(yaml) && source.ends_with(body));
        assert_eq!(body_line, yaml.matches('\n').count() + 3);
    }
}

/// What was made harmless stays as it is, has nothing left to find, and has as many lines.
pub fn hygiene(input: &[u8]) {
    let Some(source) = text(input) else { return };
    let lines = |text: &str| text.matches('\n').count();
    let clean = characters::neutralised(source).unwrap_or_else(|| source.to_owned());
    assert_eq!(characters::neutralised(&clean), None, "once is not enough");
    assert_eq!(lines(&clean), lines(source));
    if let Some(removed) = characters::without_hidden(source) {
        assert_eq!(lines(&removed), lines(source));
        assert!(removed.len() < source.len());
    }
}

/// A masked text has no secret left, and masking it again changes nothing.
pub fn secrets(input: &[u8]) {
    static SCANNER: LazyLock<secret::Scanner> = LazyLock::new(secret::Scanner::new);
    let Some(source) = text(input) else { return };
    for found in SCANNER.scan(source) {
        assert!(source.get(found.bytes.clone()).is_some_and(|secret| !secret.is_empty()));
    }
    let masked = SCANNER.without_secrets(source);
    assert_eq!(SCANNER.without_secrets(&masked), masked, "masked twice");
}

/// A request is read or refused, and an error can be shown.
pub fn request(input: &[u8]) {
    let Some(source) = text(input) else { return };
    if let Err(error) = Request::from_json(source) {
        assert!(!error.to_string().is_empty());
    }
}

/// A folder with a workspace, and a file beside it that nobody may read.
static SITE: LazyLock<TempDir> = LazyLock::new(|| {
    // In memory where there is such a place: a file that is written ten million times wears a disk out, and waits for it.
    let memory = Path::new("/dev/shm");
    let site = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    let site = site.expect("there is room");
    for folder in ["work/.git/refs/heads", "work/.git/objects", "work/sub"] {
        std::fs::create_dir_all(site.path().join(folder)).expect("there is room");
    }
    std::fs::write(site.path().join("outside"), CANARY).expect("there is room");
    std::fs::write(site.path().join("work/inside"), "inside").expect("there is room");
    let commit = "0123456789012345678901234567890123456789\n";
    std::fs::write(site.path().join("work/.git/refs/heads/main"), commit).expect("there is room");
    std::os::unix::fs::symlink("../outside", site.path().join("work/link")).expect("there is room");
    site
});

const CANARY: &str = "what lies outside";

fn built(site: &Path, template: &str) -> Option<String> {
    let request = json!({
        "profile": "template", "cwd": site.join("work"), "template": template,
        "host": {"now": "2026-01-01T00:00:00Z", "timezone": "UTC"},
    });
    let request = Request::from_json(&request.to_string()).ok()?;
    proem::build(&request, Caller::REMOTE).ok()?.system().map(str::to_owned)
}

/// However a path is written, nothing from outside of the workspace is in the prompt of somebody far away.
pub fn paths(input: &[u8]) {
    // A tag that is none stands in the prompt as it is written, and so does what is said in it.
    let is_telling =
        |path: &&str| !path.contains(['[', ']']) && !path.contains("root:") && !path.contains(CANARY);
    let Some(path) = text(input).filter(is_telling) else { return };
    let said = built(SITE.path(), &format!("<[file:{path}]>"));
    assert!(said.is_none_or(|said| !said.contains(CANARY) && !said.contains("root:")));
}

/// Whatever stands in `HEAD`, a branch is one line of visible text.
pub fn git_head(input: &[u8]) {
    let named = text(input).and_then(proem::fuzzed::head);
    if let Some(name) = &named {
        assert!(name.starts_with("refs/") && !name.contains(char::is_control), "{name:?}");
    }
    // A whole build takes hundreds of times as long, so that of one input in a thousand has to do. The bytes say which.
    if input.iter().fold(0_u16, |sum, byte| sum.wrapping_mul(31).wrapping_add((*byte).into())) % 1_000 == 0 {
        branch_is_visible(input);
    }
}

fn branch_is_visible(head: &[u8]) {
    let site = SITE.path();
    std::fs::write(site.join("work/.git/HEAD"), head).expect("there is room");
    let Some(said) = built(site, "<[git:branch]>") else { return };
    assert!(!said.contains(char::is_control), "{said:?}");
    assert!(!said.contains(CANARY));
}

/// Whatever a status says, the paths in it stay below the top of the tree; and a path is read as it was written.
pub fn git_status(input: &[u8]) {
    let Some(status) = text(input) else { return };
    let is_below = |path: &String| {
        let mut parts = Path::new(path).components();
        !path.is_empty() && parts.all(|part| matches!(part, Component::Normal(_)))
    };
    for below in ["", "sub/folder"] {
        let Some((unstaged, staged)) = proem::fuzzed::status(status, Path::new(below)) else { continue };
        assert!(unstaged.iter().chain(&staged).all(is_below), "{unstaged:?} {staged:?}");
    }
    let path = status.to_owned();
    let is_plain =
        is_below(&path) && Path::new(&path).components().collect::<PathBuf>().as_os_str() == path.as_str();
    if is_plain && path.len() < 1_000 {
        let read = proem::fuzzed::status(&format!("M  {}\n", quoted(&path)), Path::new(""));
        assert_eq!(read, Some((vec![], vec![path])));
    }
}

/// A path as git writes one with something odd in it.
fn quoted(path: &str) -> String {
    let each = path.bytes().map(|byte| match byte {
        b'"' | b'\\' => format!("\\{}", char::from(byte)),
        b'\n' => "\\n".to_owned(),
        b'\t' => "\\t".to_owned(),
        b' '..=b'~' => char::from(byte).to_string(),
        _ => format!("\\{byte:03o}"),
    });
    format!("\"{}\"", each.collect::<String>())
}
