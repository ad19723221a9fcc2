//! Checks that lists in the documentation are complete.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

use proem_core::limit;
use proem_core::note::Code;
use proem_core::variable::TABLE;
use proem_testkit::project_root;

fn page(name: &str) -> String {
    std::fs::read_to_string(project_root().join("docs").join(name)).unwrap()
}

#[test]
fn every_note_code_has_its_heading() {
    let page = page("notes.md");
    let headings: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    let headings: Vec<&str> = headings.iter().map(|heading| heading.trim_matches('`')).collect();
    let codes: Vec<&str> = Code::ALL.iter().map(|code| code.word()).collect();
    assert_eq!(headings, codes);
}

#[test]
fn every_limit_is_documented_with_its_value() {
    let page = page("configuration.md");
    for limit::Limit { name, value, .. } in limit::table() {
        let line = page.lines().find(|line| line.contains(name)).unwrap_or_default();
        assert!(line.contains(&value.to_string()), "{name} is {value}, documented as: {line}");
    }
}

#[test]
fn every_variable_is_documented_with_its_stability() {
    let page = page("templates.md");
    for variable in TABLE {
        let key = format!("| `{}:{}` ", variable.kind, variable.name);
        let line = page.lines().find(|line| line.contains(&key)).unwrap_or_default();
        assert!(line.contains(variable.stability.word()), "{key} is {}: {line}", variable.stability);
    }
}
