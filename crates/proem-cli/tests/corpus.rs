//! The corpus through the command and the packages: the same bytes, the same notes in JSON.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

use std::cell::RefCell;
use std::io::Write;
use std::process::{Command, Output, Stdio};

use proem::{Caller, ErrorKind, Request};
use proem_testkit::{CaseOutcome, for_each_case};
use serde_json::{Value, json};

use crate::conversations::package::{self, Running};
use crate::explain::check_page;

/// Runs the command in an environment that must not matter: everything is pinned by the request.
fn proem(request: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_proem"))
        .args(["build", "--request", "-"])
        .args(arguments)
        .current_dir("/")
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .envs(environment.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(request.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn outcome(text: &Output, json: &Output) -> CaseOutcome {
    if !text.status.success() {
        let said = String::from_utf8(text.stderr.clone()).unwrap();
        let message = said.lines().find_map(|line| line.strip_prefix("error: ")).unwrap().to_owned();
        let hint = said.lines().find_map(|line| line.strip_prefix("hint: ")).map(str::to_owned);
        assert!(text.stdout.is_empty(), "a failed build printed something");
        return CaseOutcome::Failed { message, hint, code: text.status.code().unwrap() };
    }
    let shape: Value = serde_json::from_slice(&json.stdout).unwrap();
    let printed = shape["carriers"].get("system").map_or("", |system| system.as_str().unwrap());
    assert_eq!(text.stdout, printed.as_bytes(), "text and JSON differ");
    built(&shape)
}

fn built(shape: &Value) -> CaseOutcome {
    let carriers = shape["carriers"].as_object().unwrap().clone();
    let brief = |note: &Value| json!({"code": note["code"], "message": note["message"], "severity": note["severity"]});
    CaseOutcome::Built { carriers, notes: shape["notes"].as_array().unwrap().iter().map(brief).collect() }
}

/// Rows C5, C7, C8, C10, T2, G1, G9, M1 to M5 and M7 to M11.
#[test]
fn every_case_gives_the_same_through_the_command() {
    for_each_case(|case| {
        let laid = case.lay_out();
        let home = laid.root().to_str().unwrap();
        let text =
            proem(&laid.request, &[], &[("TZ", "Asia/Tokyo"), ("LANG", "tr_TR.UTF-8"), ("HOME", home)]);
        let json = proem(&laid.request, &["--format", "json"], &[("TZ", "America/Lima"), ("LC_ALL", "C")]);
        let outcome = outcome(&text, &json);
        case.check(&laid, &outcome);
        let page = proem(&laid.request, &["-q", "--annotate"], &[("HOME", home)]);
        assert_eq!(page.status, json.status);
        if let CaseOutcome::Built { carriers, .. } = &outcome {
            check_page(std::str::from_utf8(&page.stdout).unwrap(), carriers);
        }
    });
}

/// The packages for Python and Node, where they are built: `PROEM_PACKAGES`.
#[test]
fn every_case_gives_the_same_through_the_packages() {
    for name in package::installed().iter().copied() {
        let program = RefCell::new(Running::start(package::program(name, "memory:")));
        for_each_case(|case| {
            let laid = case.lay_out();
            let outcome = match program.borrow_mut().ask("case", "build", &laid.request) {
                Ok(text) => built(&serde_json::from_str(&text).unwrap()),
                Err(error) => {
                    let failed = Request::from_json(&laid.request)
                        .and_then(|request| proem::build(&request, Caller::User))
                        .unwrap_err();
                    assert_eq!(error["code"], json!(failed.code()), "{name}: {}", case.name());
                    // The package wrote the request itself, so that its lines and columns are others.
                    let unplaced = |text: &str| text.split(", at line ").next().unwrap().to_owned();
                    let (message, told) = (error["message"].as_str().unwrap(), failed.to_string());
                    let is_same = unplaced(message) == unplaced(&told);
                    CaseOutcome::Failed {
                        message: if is_same { told } else { message.to_owned() },
                        hint: error["hint"].as_str().map(str::to_owned),
                        code: if failed.kind() == ErrorKind::Usage { 2 } else { 3 },
                    }
                }
            };
            case.check(&laid, &outcome);
        });
        program.into_inner().end();
    }
}
