//! Errors keep their cause: `source()` returns the error of the parser, the system or the renderer.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

use std::error::Error as _;
use std::fs;
use std::path::Path;

use proem::hooks::HookError;
use proem::{Caller, Error, Request, Revision, Workspace};
use proem_core::fact::Absence;

/// Builds a request in `folder` with a configuration folder beside it; returns the error.
fn failed(folder: &Path, fields: &serde_json::Value) -> Error {
    let config = folder.join("config").display().to_string();
    let host = serde_json::json!({"home": folder, "config_dir": config});
    let mut request = serde_json::json!({"cwd": folder, "host": host});
    request.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let request = Request::from_json(&request.to_string()).unwrap();
    proem::build(&request, Caller::User).unwrap_err()
}

/// Checks that an error is caused by one of the type `T`.
fn check<T: std::error::Error + 'static>(error: &(dyn std::error::Error + 'static)) {
    let is_expected = error.source().is_some_and(|source| source.downcast_ref::<T>().is_some());
    assert!(is_expected, "{error}: {:?}", error.source());
}

#[test]
fn errors_about_the_request_keep_the_error_of_the_parser() {
    for text in ["{", r#"{"cwdd": "."}"#, r#"{"cwd": 1}"#] {
        check::<serde_json::Error>(&Request::from_json(text).unwrap_err());
    }
    let folder = tempfile::tempdir().unwrap();
    let fields = serde_json::json!({"host": {"home": folder.path(), "now": "noon"}});
    check::<jiff::Error>(&failed(folder.path(), &fields));
}

#[test]
fn errors_about_files_keep_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("none");
    check::<std::io::Error>(&Workspace::open(missing.to_str()).unwrap_err());
    let config = folder.path().join("config");
    fs::create_dir_all(config.join("profiles")).unwrap();
    fs::write(config.join("proem.toml"), "template = \"/none.md\"").unwrap();
    check::<Absence>(&failed(folder.path(), &serde_json::json!({"profile": "template"})));
    fs::remove_file(config.join("proem.toml")).unwrap();
    fs::write(config.join("profiles/broken.toml"), "[").unwrap();
    let profile = failed(folder.path(), &serde_json::json!({"profile": "broken"}));
    check::<toml::de::Error>(profile.source().unwrap());
    fs::write(config.join("proem.toml"), "[").unwrap();
    check::<toml::de::Error>(&failed(folder.path(), &serde_json::json!({})));
}

#[test]
fn errors_about_templates_keep_the_error_of_the_renderer() {
    let folder = tempfile::tempdir().unwrap();
    for text in ["{% if %}", "{{ 1 // 0 }}"] {
        let fields = serde_json::json!({"profile": "assets", "template": text});
        let error = failed(folder.path(), &fields);
        check::<minijinja::Error>(error.source().unwrap_or_else(|| panic!("no source: {error}")));
    }
}

#[test]
fn errors_of_hooks_and_revisions_keep_their_cause() {
    let system = std::io::Error::other("the ticket server is away");
    let error = HookError::from_error(system);
    assert_eq!(error.to_string(), "the ticket server is away");
    check::<std::io::Error>(&error);
    assert!(HookError::new("no tickets").source().is_none());
    check::<std::io::Error>(&Revision::open(Path::new("/none"), "HEAD").unwrap_err());
}
