//! Every case of `corpus/lints` is told what is wrong with it, and nothing else.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

use std::fs;
use std::process::{Command, Output};

use proem_testkit::{Lint, LintFolder, lints};
use serde_json::Value;

fn check(laid: &LintFolder) -> Output {
    let request = laid.root().join("prompt.json");
    fs::write(&request, &laid.request).unwrap();
    let arguments = laid.expected["args"].as_array().cloned().unwrap_or_default();
    let root = laid.root().to_str().unwrap();
    let arguments = arguments.iter().map(|one| one.as_str().unwrap().replace("{{root}}", root));
    Command::new(env!("CARGO_BIN_EXE_proem"))
        .args(["check", "--format", "json", "--request"])
        .arg(&request)
        .args(arguments)
        .current_dir(laid.root().join("tree"))
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", laid.root().join("home"))
        .output()
        .unwrap()
}

/// Returns the place of a finding, relative to the tree.
fn place(found: &Value, laid: &LintFolder) -> (String, Option<u64>) {
    let path = found["source"]["path"].as_str().unwrap_or_default();
    let inside = path.strip_prefix(laid.root().to_str().unwrap()).unwrap_or(path).trim_start_matches('/');
    (inside.strip_prefix("tree/").unwrap_or(inside).to_owned(), found["source"]["line"].as_u64())
}

fn fits(found: &Value, wanted: &Value, laid: &LintFolder) -> bool {
    let is_one_of = |key: &str| {
        let Some(words) = wanted[key].as_str() else { return true };
        words.split('|').any(|word| found[key] == word)
    };
    let (path, line) = place(found, laid);
    is_one_of("code")
        && is_one_of("severity")
        && wanted["path"].as_str().is_none_or(|wanted| wanted == path)
        && wanted["line"].as_u64().is_none_or(|wanted| Some(wanted) == line)
        && wanted["contains"].as_str().is_none_or(|words| found["message"].as_str().unwrap().contains(words))
}

/// Returns the differences between the expected and the actual findings of a case.
fn complaints(case: &Lint) -> Vec<String> {
    let laid = case.lay_out();
    let output = check(&laid);
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let mut wrong: Vec<String> = Vec::new();
    let is_told = |secret: &&String| said.contains(secret.as_str());
    wrong.extend(laid.secrets.iter().filter(is_told).map(|_| "a secret is shown".to_owned()));
    let Ok(report) = serde_json::from_slice::<Value>(&output.stdout) else {
        let code = output.status.code().map(i64::from);
        let is_meant = code.is_some() && laid.expected["exit"].as_i64() == code;
        wrong.extend((!is_meant).then(|| format!("it failed: {said}")));
        return wrong;
    };
    let counts = |found: &&Value| found["severity"] != "info";
    let mut rest: Vec<&Value> = report["findings"].as_array().unwrap().iter().filter(counts).collect();
    let exit = laid.expected["exit"].as_i64().unwrap_or(i64::from(!rest.is_empty()));
    if output.status.code().map(i64::from) != Some(exit) {
        wrong.push(format!("the exit code is {:?}, not {exit}", output.status.code()));
    }
    let mut met: Vec<&Value> = Vec::new();
    for wanted in laid.expected["findings"].as_array().unwrap() {
        match rest.iter().position(|found| fits(found, wanted, &laid)) {
            Some(index) => met.push(rest.remove(index)),
            None => wrong.push(format!("missing: {wanted}")),
        }
    }
    // Of two in one line that say the same, one is enough, unless the case is about that.
    let is_once = laid.expected["once"] == true;
    let is_repeated = |found: &Value| {
        !is_once
            && met
                .iter()
                .any(|known| known["code"] == found["code"] && place(known, &laid) == place(found, &laid))
    };
    wrong.extend(rest.iter().filter(|found| !is_repeated(found)).map(|found| format!("not wanted: {found}")));
    wrong
}

/// Rows C1 to C4, C6, C7, C9, C10 and T2.
#[test]
fn every_case_is_told_what_is_wrong_and_nothing_else() {
    let all = lints();
    assert!(all.len() >= 200, "there are {} cases", all.len());
    let mut wrong = Vec::new();
    for case in &all {
        let complaints = complaints(case);
        wrong.extend(
            (!complaints.is_empty()).then(|| format!("{}: {}", case.name(), complaints.join("\n  "))),
        );
    }
    assert!(wrong.is_empty(), "{} of {} are wrong:\n{}", wrong.len(), all.len(), wrong.join("\n"));
}
