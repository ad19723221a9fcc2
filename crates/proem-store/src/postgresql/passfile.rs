//! The password file of libpq: `HOST:PORT:DATABASE:USER:PASSWORD` on each line.

use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use proem_core::limit::PASSWORD_FILE_BYTES_MAX;

use crate::Explanation;
use crate::url::Fault;

/// The connection whose password is looked up.
pub(super) struct PasswordKey<'w> {
    pub(super) host: &'w str,
    pub(super) port: u16,
    pub(super) database: &'w str,
    pub(super) user: &'w str,
}

/// Looks up a password in the named file, or else in `~/.pgpass`. A file that does not exist has none.
pub(super) fn find(
    named: Option<&str>,
    home: Option<&str>,
    key: &PasswordKey<'_>,
) -> Result<Option<String>, Fault> {
    let Some(path) = named.map(PathBuf::from).or_else(|| Some(Path::new(home?).join(".pgpass"))) else {
        return Ok(None);
    };
    match read(&path) {
        Ok(text) => Ok(text.lines().find_map(|line| password(line, key))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Fault::new(
            Explanation::new(format!("the password file {} cannot be used: {error}", path.display()), error),
            format!("run `chmod 600 {}`, or set PGPASSFILE to another file", path.display()),
        )),
    }
}

fn read(path: &Path) -> io::Result<String> {
    let file = proem::open_named(path)?;
    let data = file.metadata()?;
    if !data.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    // libpq ignores such a file with a warning, and the connection then fails for a reason that is hard to guess.
    if data.permissions().mode() & 0o077 != 0 {
        return Err(io::Error::other("other users may read or write it"));
    }
    let mut text = String::new();
    file.take(PASSWORD_FILE_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

/// Returns the password of a line, if the line is for this connection.
fn password(line: &str, key: &PasswordKey<'_>) -> Option<String> {
    if line.starts_with('#') {
        return None;
    }
    let fields = fields(line);
    let [host, port, database, user, password] = fields.as_slice() else { return None };
    let is = |field: &Field, value: &str| field.is_any || field.text == value;
    // The folder of a socket is `localhost` in this file.
    let is_host = is(host, key.host) || (key.host.starts_with('/') && host.text == "localhost");
    let is_wanted =
        is_host && is(port, &key.port.to_string()) && is(database, key.database) && is(user, key.user);
    is_wanted.then(|| password.text.clone())
}

struct Field {
    text: String,
    /// True if it is an unescaped `*`.
    is_any: bool,
}

impl Field {
    fn new(text: String, has_escape: bool) -> Self {
        Self { is_any: text == "*" && !has_escape, text }
    }
}

/// Splits a line at colons; `\:` and `\\` are characters of a field. The password is the fifth field and goes up to the
/// end of the line or the next colon, as in libpq.
fn fields(line: &str) -> Vec<Field> {
    let (mut fields, mut field, mut has_escape) = (Vec::new(), String::new(), false);
    let mut characters = line.trim_end_matches('\r').chars();
    while let Some(character) = characters.next() {
        match character {
            ':' if fields.len() == 4 => break,
            ':' => fields.push(Field::new(std::mem::take(&mut field), std::mem::take(&mut has_escape))),
            '\\' => {
                has_escape = true;
                field.push(characters.next().unwrap_or('\\'));
            }
            other => field.push(other),
        }
    }
    fields.push(Field::new(field, has_escape));
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_fits_counts() {
        let key = PasswordKey { host: "db", port: 5432, database: "proem", user: "me" };
        for (line, expected) in [
            ("db:5432:proem:me:secret", Some("secret")),
            ("*:*:*:*:any", Some("any")),
            ("# db:5432:proem:me:secret", None),
            ("other:*:*:*:x", None),
            ("db:5433:*:*:x", None),
            ("db:5432:proem:you:x", None),
            ("\\*:*:*:*:x", None),
            (r"db:*:*:me:a\:b\\c", Some(r"a:b\c")),
            ("db:*:*:me:", Some("")),
            ("db:*:*:me", None),
            ("", None),
        ] {
            assert_eq!(password(line, &key).as_deref(), expected, "{line}");
        }
        let socket = PasswordKey { host: "/var/run/postgresql", ..key };
        assert_eq!(password("localhost:*:*:*:s", &socket).as_deref(), Some("s"));
    }
}
