//! `docs/security-rows.md` names the tests that hold each row of the security requirements, and ARCHITECTURE.md those that
//! hold each invariant: they are there.
#![expect(clippy::unwrap_used, reason = "a page that cannot be read must stop the test")]

use std::fs;

use proem_testkit::project_root;

/// The rows: their letter, the last number, and the numbers that were never given.
const ROWS: [(&str, u32, &[u32]); 7] = [
    ("C", 10, &[]),
    ("T", 9, &[5]),
    ("G", 10, &[]),
    ("F", 8, &[]),
    ("M", 11, &[]),
    ("H", 22, &[8, 16]),
    ("S", 12, &[]),
];

/// The cells of a line that is a row: its id, what it requires, three ways, and the control.
const CELLS: usize = 6;

/// Folders of things that hold a row and are not test functions.
const OTHERS: [&str; 4] = ["corpus/", "fuzz/", "scripts/", "web/"];

fn page() -> String {
    fs::read_to_string(project_root().join("docs/security-rows.md")).unwrap()
}

/// The cells of a line of a table.
fn cells(line: &str) -> Vec<&str> {
    line.trim_matches('|').split('|').map(str::trim).collect()
}

/// Tells whether `text` has a function of that name which is marked as a test.
fn is_test(text: &str, function: &str) -> bool {
    let begins = [format!("fn {function}("), format!("async fn {function}(")];
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let is_function = |line: &&str| begins.iter().any(|begin| line.starts_with(begin));
    let Some(at) = lines.iter().position(is_function) else { return false };
    let is_above = |line: &&&str| line.starts_with("#[") || line.starts_with("//");
    lines.iter().take(at).rev().take_while(is_above).any(|line| ["#[test]", "#[tokio::test]"].contains(line))
}

/// Tells whether what the page names is there; words that name nothing are.
fn is_there(name: &str) -> bool {
    if let Some((file, function)) = name.split_once(".rs::") {
        let path = project_root().join("crates").join(format!("{file}.rs"));
        return fs::read_to_string(path).is_ok_and(|text| is_test(&text, function));
    }
    !OTHERS.iter().any(|folder| name.starts_with(folder)) || project_root().join(name).exists()
}

#[test]
fn every_test_that_the_page_names_is_there() {
    let page = page();
    let names: Vec<&str> = page.split('`').skip(1).step_by(2).collect();
    let tests = names.iter().filter(|name| name.contains(".rs::")).count();
    assert!(tests > 100, "{tests} tests are named: the page is not read as it is written");
    let missing: Vec<&str> = names.into_iter().filter(|name| !is_there(name)).collect();
    assert!(
        missing.is_empty(),
        "docs/security-rows.md names what is not there, or is not a test:\n{}\n\
         If it was renamed or moved, say so on the page. If it is gone, name what holds the row now, or put a dash \
         in its place and a line under \"Why there is none\".",
        missing.join("\n")
    );
}

#[test]
fn every_row_is_there_once_and_whole() {
    let page = page();
    let rows: Vec<Vec<&str>> = page.lines().map(cells).filter(|cells| cells.len() == CELLS).collect();
    let is_id = |id: &&str| id.ends_with(|end: char| end.is_ascii_digit());
    let ids: Vec<String> = rows.iter().map(|cells| cells[0]).filter(is_id).map(str::to_owned).collect();
    let of_letter = |(letter, last, never): &(&str, u32, &[u32])| {
        let numbers = (1..=*last).filter(|number| !never.contains(number));
        numbers.map(|number| format!("{letter}{number}")).collect::<Vec<String>>()
    };
    let expected: Vec<String> = ROWS.iter().flat_map(of_letter).collect();
    assert_eq!(
        ids, expected,
        "docs/security-rows.md has one line for each row, in the order of ROWS in this test"
    );
    let empty: Vec<&str> = rows.iter().filter(|cells| cells.contains(&"")).map(|cells| cells[0]).collect();
    assert!(empty.is_empty(), "an empty cell says nothing; put a dash there, and why below: {empty:?}");
}

#[test]
fn every_invariant_names_tests_that_are_there() {
    let page = fs::read_to_string(project_root().join("ARCHITECTURE.md")).unwrap();
    let section = page.split("## Invariants").nth(1).and_then(|rest| rest.split("\n## ").next()).unwrap();
    let is_number =
        |line: &str| line.split_once(". **").is_some_and(|(number, _)| number.parse::<u8>().is_ok());
    let mut invariants: Vec<String> = Vec::new();
    for line in section.lines() {
        match invariants.last_mut() {
            Some(last) if !is_number(line) => last.push_str(line),
            _ if is_number(line) => invariants.push(line.to_owned()),
            _ => {}
        }
    }
    assert!(invariants.len() >= 12, "{invariants:#?}");
    for invariant in invariants {
        let names = invariant.split('`').skip(1).step_by(2).filter(|name| name.contains("/tests/"));
        let names: Vec<&str> = names.collect();
        assert!(!names.is_empty(), "no test holds this: {invariant}");
        let is_file = |name: &&&str| project_root().join("crates").join(name).is_file();
        let missing =
            names.iter().filter(|name| if name.contains("::") { !is_there(name) } else { !is_file(name) });
        assert_eq!(missing.collect::<Vec<_>>(), Vec::<&&str>::new(), "{invariant}");
    }
}

/// The control of the above: a function that was renamed, or is not a test, does not count as one.
#[test]
fn what_is_no_test_is_told() {
    let text =
        "/// Row C1.\n#[test]\nfn held() {\n}\n\n    #[test]\n    fn any(text in any()) {}\nfn plain() {}\n";
    let found = ["held", "any", "plain", "hel", "gone"].map(|function| is_test(text, function));
    assert_eq!(found, [true, true, false, false, false]);
    let absent = ["proem/tests/none.rs::held", "corpus/none", "web/none"].map(is_there);
    assert_eq!(absent, [false; 3]);
}
