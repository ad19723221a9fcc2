//! Checks that lists in the documentation are complete.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

use proem_core::limit;
use proem_core::note::Code;
use proem_core::variable::Variable;
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
fn every_note_code_is_listed_with_its_meaning() {
    let row = |code: &Code| format!("| [`{code}`](#{code}) | {} |\n", code.about());
    check_part("notes.md", "codes", "| code | meaning |\n|---|---|\n", Code::ALL.iter().map(row));
}

#[test]
fn every_limit_is_listed_with_its_value() {
    let row = |limit: &limit::Limit| format!("| `{}` | {} | {} |\n", limit.name, limit.words(), limit.what);
    check_part(
        "configuration.md",
        "limits",
        "| limit | value | about |\n|---|--:|---|\n",
        limit::table().iter().map(row),
    );
}

/// Compares the part of a page between two markers with rows of a table, or writes it when blessing.
fn check_part(page_name: &str, part: &str, head: &str, rows: impl Iterator<Item = String>) {
    let (begin, end) = (format!("<!-- {part}: begin -->\n"), format!("<!-- {part}: end -->"));
    let page = page(page_name);
    let (before, rest) = page.split_once(&begin).unwrap();
    let (found, behind) = rest.split_once(&end).unwrap();
    let expected = head.to_owned() + &rows.collect::<String>();
    if std::env::var_os("PROEM_BLESS").is_some() {
        let page = [before, &begin, &expected, &end, behind].concat();
        std::fs::write(project_root().join("docs").join(page_name), page).unwrap();
    } else {
        assert_eq!(found, expected, "{page_name}: PROEM_BLESS=1 writes the table");
    }
}

#[test]
fn every_variable_is_documented_with_its_stability() {
    let page = page("templates.md");
    for variable in Variable::ALL {
        let key = format!("| `{}:{}` ", variable.kind(), variable.name());
        let line = page.lines().find(|line| line.contains(&key)).unwrap_or_default();
        assert!(line.contains(variable.stability().word()), "{key} is {}: {line}", variable.stability());
    }
}
