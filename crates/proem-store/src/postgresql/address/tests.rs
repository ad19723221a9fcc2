use super::*;

fn address(url: &str, variables: &[(&str, &str)]) -> Result<Address, StoreError> {
    let value =
        |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).into());
    Address::parse(url, &value)
}

fn good(url: &str, variables: &[(&str, &str)]) -> Address {
    address(url, variables).expect(url)
}

/// Returns the message and the hint.
fn refused(url: &str, variables: &[(&str, &str)]) -> String {
    let error = address(url, variables).err().expect("it is refused");
    format!("{error}; {}", error.hint().expect("there is a hint"))
}

#[test]
fn a_url_is_read_as_libpq_reads_it() {
    let read =
        good("postgres://me:p%40s%2Fs@db.internal:5433/proem?application_name=a%20b&options=-c%20x=1", &[]);
    let Address { config, mode, roots, place, user, .. } = &read;
    assert_eq!((config.get_user(), config.get_password()), (Some("me"), Some(b"p@s/s".as_slice())));
    assert_eq!(config.get_hosts(), [Host::Tcp("db.internal".into())]);
    assert_eq!((config.get_ports(), config.get_dbname()), ([5433].as_slice(), Some("proem")));
    assert_eq!((config.get_application_name(), config.get_options()), (Some("a b"), Some("-c x=1")));
    assert_eq!((*mode, roots), (TlsMode::Prefer, &None));
    assert_eq!((place.as_str(), user.as_deref()), ("postgres://db.internal:5433/proem", Some("me")));
    // The last `@` ends the credentials, as in browsers.
    let odd = good("postgresql://me:p@ss:word@db/x", &[]);
    assert_eq!(odd.config.get_password(), Some(b"p@ss:word".as_slice()));
    assert_eq!(odd.place, "postgres://db/x");
    let several = good("postgres://a:1,[::1]:2,c/x", &[]);
    assert_eq!(several.config.get_ports(), [1, 2, 5432]);
    assert_eq!(several.place, "postgres://a:1,[::1]:2,c/x");
    let parts = good("postgres:///?host=h&port=7&user=u&password=p&dbname=d", &[]);
    assert_eq!(
        (parts.place.as_str(), parts.config.get_password()),
        ("postgres://h:7/d", Some(b"p".as_slice()))
    );
    let socket = good("postgres:///x?host=/run/pg&sslmode=verify-full", &[]);
    assert_eq!((socket.place.as_str(), socket.mode), ("postgres:///x?host=/run/pg", TlsMode::Disable));
}

#[test]
fn variables_count_where_the_url_says_nothing() {
    let variables = [
        ("PGHOST", "env.internal"),
        ("PGPORT", "6000"),
        ("PGUSER", "env-user"),
        ("PGPASSWORD", "env-password"),
        ("PGDATABASE", "env-database"),
        ("PGAPPNAME", "env-name"),
        ("PGSSLMODE", "verify-full"),
        ("PGSSLROOTCERT", "/env/root.pem"),
        ("PGCONNECT_TIMEOUT", "17"),
        ("PGOPTIONS", "-c env=1"),
    ];
    let read = good("postgres://", &variables);
    let config = &read.config;
    assert_eq!(read.place, "postgres://env.internal:6000/env-database");
    assert_eq!(
        (config.get_user(), config.get_password()),
        (Some("env-user"), Some(b"env-password".as_slice()))
    );
    assert_eq!((config.get_application_name(), config.get_options()), (Some("env-name"), Some("-c env=1")));
    assert_eq!((read.mode, read.roots), (TlsMode::VerifyFull, Some(Roots::File("/env/root.pem".into()))));
    assert_eq!(read.connect_time, Duration::from_secs(17));
    let url = "postgres://u:p@h:1/d?application_name=n&sslmode=verify-ca&sslrootcert=/r&connect_timeout=3&options=o";
    let read = good(url, &variables);
    let config = &read.config;
    assert_eq!(read.place, "postgres://h:1/d");
    assert_eq!((config.get_user(), config.get_password()), (Some("u"), Some(b"p".as_slice())));
    assert_eq!((config.get_application_name(), config.get_options()), (Some("n"), Some("o")));
    assert_eq!((read.mode, read.roots), (TlsMode::VerifyCa, Some(Roots::File("/r".into()))));
    assert_eq!(read.connect_time, Duration::from_secs(3));
    let empty = good("postgres://u@h/d", &[("PGSSLMODE", ""), ("PGPASSWORD", "")]);
    assert_eq!((empty.mode, empty.config.get_password()), (TlsMode::Prefer, None));
    assert_eq!(empty.config.get_application_name(), Some("proem"));
    assert_eq!(good("postgres://u@localhost/d", &[]).mode, TlsMode::Allow);
    assert_eq!(good("postgres://u@localhost/d?sslmode=prefer", &[]).mode, TlsMode::Prefer);
    assert_eq!(good("postgres://u@h/d?sslrootcert=system", &[]).mode, TlsMode::VerifyFull);
}

#[test]
fn what_cannot_be_used_is_refused_by_name() {
    for (url, expected) in [
        (
            "postgres://me:secret@h/d?sslmode=strict",
            "invalid store `postgres://h/d`: unknown value of `sslmode`; expected one of: disable, allow, prefer, \
             require, verify-ca, verify-full",
        ),
        (
            "postgres://me:secret@h/d?sslmod=require",
            "invalid store `postgres://…`: unknown option `sslmod`; did you mean `sslmode`?",
        ),
        (
            "postgres://me:secret@h/d?sslcert=a.pem",
            "invalid store `postgres://…`: the option `sslcert` is not supported; client certificates are not \
             supported; use a password",
        ),
        (
            "postgres://me:secret@h/d?sslmode=require&sslrootcert=system",
            "invalid store `postgres://h/d`: `sslrootcert=system` needs `sslmode=verify-full`; add \
             `sslmode=verify-full`: any site has a certificate that the system trusts, so the name must be checked",
        ),
        (
            "postgres://me:sec/ret@h/d",
            "invalid store `postgres://…`: an `@` follows the first `/` or `?` of the URL; in user names and passwords \
             write `@` as %40, `/` as %2F, `?` as %3F, `#` as %23 and `%` as %25, or set PGPASSWORD instead",
        ),
        (
            "postgres://h,i:1,j:2,k/d?port=1,2",
            "invalid store `postgres://h:1,i:2,j,k/d`: the numbers of hosts, addresses and ports differ; give one port \
             for all hosts, or one for each",
        ),
    ] {
        assert_eq!(refused(url, &[]), expected, "{url}");
    }
}

#[test]
fn a_password_file_is_read_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("passwords");
    std::fs::write(&path, "other:*:*:*:no\nh:5432:d:u:from file\n").expect("it can be written");
    let name = path.to_str().expect("it is text");
    let set =
        |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("it is ours");
    set(0o600);
    let variables = [("PGPASSFILE", name)];
    assert_eq!(good("postgres://u@h/d", &variables).config.get_password(), Some(b"from file".as_slice()));
    assert_eq!(good("postgres://u:own@h/d", &variables).config.get_password(), Some(b"own".as_slice()));
    assert_eq!(good("postgres://v@h/d", &variables).config.get_password(), None);
    set(0o644);
    assert_eq!(
        refused("postgres://u@h/d", &variables),
        format!(
            "invalid store `postgres://h/d`: the password file {name} cannot be used: other users may read or \
             write it; run `chmod 600 {name}`, or set PGPASSFILE to another file"
        )
    );
    assert_eq!(good("postgres://u@h/d", &[("PGPASSFILE", "/none")]).config.get_password(), None);
}
