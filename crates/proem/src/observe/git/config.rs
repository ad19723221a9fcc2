//! The few settings of a repository's own configuration that affect its status and diff.
//!
//! Everything else in that file is ignored: a setting can name a program, and a status must not run it. Only the keys
//! listed below pass, and only with values of a known form.

use std::collections::BTreeMap;

/// Keys that describe the files and objects of a repository, with their possible values.
const HARMLESS: [(&str, &[&str]); 9] = [
    ("core.repositoryformatversion", &["0", "1"]),
    ("core.filemode", &["true", "false"]),
    ("core.symlinks", &["true", "false"]),
    ("core.ignorecase", &["true", "false"]),
    ("core.precomposeunicode", &["true", "false"]),
    ("core.autocrlf", &["true", "false", "input"]),
    ("core.eol", &["lf", "crlf", "native"]),
    ("extensions.objectformat", &["sha1", "sha256"]),
    ("extensions.refstorage", &["files", "reftable"]),
];

/// The harmless settings of one repository.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Settings {
    values: BTreeMap<&'static str, &'static str>,
}

impl Settings {
    pub(super) fn has(&self, key: &str, value: &str) -> bool {
        self.values.get(key).is_some_and(|own| *own == value)
    }

    /// The settings as lines of a configuration file.
    pub(super) fn lines(&self) -> String {
        let line = |(key, value): (&&str, &&str)| {
            let (section, name) = key.split_once('.').unwrap_or((key, ""));
            format!("[{section}]\n\t{name} = {value}\n")
        };
        self.values.iter().map(line).collect()
    }
}

/// Reads the settings; a file that cannot be read has none.
pub(super) fn read(text: Option<&str>) -> Settings {
    text.map(parse).unwrap_or_default()
}

/// The working tree that a configuration names, as it is written there.
pub(super) fn worktree(text: &str) -> Option<String> {
    let mut found = None;
    each(text, |key, value| {
        if key == "core.worktree" {
            found = Some(value.to_owned());
        }
    });
    found
}

fn parse(text: &str) -> Settings {
    let mut settings = Settings::default();
    each(text, |key, value| settings.take(key, &value.to_ascii_lowercase()));
    settings
}

/// Calls `take` for each key and value. Understands `[section]`, `name = value` and comments, which is enough for these
/// keys.
fn each(text: &str, mut take: impl FnMut(&str, &str)) {
    let mut section = String::new();
    for line in text.lines() {
        let mut line = line.split(['#', ';']).next().unwrap_or_default().trim();
        if let Some((header, rest)) = line.strip_prefix('[').and_then(|line| line.split_once(']')) {
            section = header.trim().to_ascii_lowercase();
            line = rest.trim();
        }
        let Some((name, value)) = line.split_once('=') else { continue };
        let (key, value) = (format!("{section}.{}", name.trim().to_ascii_lowercase()), value.trim());
        // A value that is partly quoted, or was cut at a comment sign inside quotes, is not understood.
        let plain = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value);
        if !plain.contains(['"', '\\']) {
            take(&key, plain);
        }
    }
}

impl Settings {
    fn take(&mut self, key: &str, value: &str) {
        let known = HARMLESS.iter().find(|(known, _)| *known == key);
        let Some((key, allowed)) = known else { return };
        let value = match value {
            "yes" | "on" | "1" if allowed.contains(&"true") => "true",
            "no" | "off" | "0" if allowed.contains(&"true") => "false",
            other => other,
        };
        if let Some(value) = allowed.iter().find(|allowed| **allowed == value) {
            self.values.insert(key, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Row G1.
    #[test]
    fn only_harmless_settings_pass() {
        let text = "[core]\n\tfileMode = false\n\tfsmonitor = /tmp/evil\n\tautocrlf=INPUT\n\tworktree = /\n\
                    [filter \"x\"]\n\tclean = /tmp/evil\n[extensions]\n\tobjectFormat = sha256\n\trefStorage = evil\n\
                    [core \"sub\"]\n\tsymlinks = false\n[core] ; comment\n\tsymlinks = no # comment\n[core] ignorecase = true\n";
        let expected = "[core]\n\tautocrlf = input\n[core]\n\tfilemode = false\n[core]\n\tignorecase = true\n[core]\n\tsymlinks = false\n\
                        [extensions]\n\tobjectformat = sha256\n";
        assert_eq!(parse(text).lines(), expected);
    }
}
