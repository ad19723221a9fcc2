//! File names that suggest a secret. Their content never enters a prompt unless the user allows the exact path.

use std::path::Path;

use super::policy::lies_below;

const NAMES: [&str; 10] = [
    ".env",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".git-credentials",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
];
const PREFIXES: [&str; 2] = ["credentials", ".env."];
const SUFFIXES: [&str; 3] = [".pem", ".p12", ".pfx"];
/// Names of example files, which are written to be shown.
const HARMLESS: [&str; 3] = [".env.example", ".env.sample", ".env.template"];

/// Tells whether the name of `path`, or its folder, suggests that it holds a secret.
pub(super) fn is_secret(path: &Path, home: Option<&Path>) -> bool {
    has_secret_name(path) || is_in_ssh(path, home) || is_process_environment(path)
}

fn has_secret_name(path: &Path) -> bool {
    let Some(name) = path.file_name() else { return false };
    let name = name.as_encoded_bytes();
    let is = |word: &&str| name.eq_ignore_ascii_case(word.as_bytes());
    let begins =
        |word: &&str| name.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word.as_bytes()));
    let ends = |word: &&str| {
        let start = name.len().checked_sub(word.len());
        let end = start.and_then(|start| name.get(start..));
        end.is_some_and(|end| end.eq_ignore_ascii_case(word.as_bytes()))
    };
    !HARMLESS.iter().any(is)
        && (NAMES.iter().any(is) || PREFIXES.iter().any(begins) || SUFFIXES.iter().any(ends))
}

fn is_in_ssh(path: &Path, home: Option<&Path>) -> bool {
    home.is_some_and(|home| lies_below(path, home) && path.starts_with(home.join(".ssh")))
}

fn is_process_environment(path: &Path) -> bool {
    lies_below(path, Path::new("/proc")) && path.file_name().is_some_and(|name| name == "environ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Row C10.
    #[test]
    fn names_that_say_secret_are_recognised() {
        let home = Some(Path::new("/home/me"));
        for (path, expected) in [
            ("/w/.env", true),
            ("/w/.ENV", true),
            ("/w/.env.production", true),
            ("/w/.env.example", false),
            ("/w/env", false),
            ("/w/server.pem", true),
            ("/home/me/.ssh/config", true),
            ("/w/.ssh/config", false),
            ("/w/credentials.json", true),
            ("/proc/1/environ", true),
            ("/w/environ", false),
            ("/w/AGENTS.md", false),
        ] {
            assert_eq!(is_secret(Path::new(path), home), expected, "{path}");
        }
    }
}
