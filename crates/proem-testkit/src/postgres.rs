//! A real PostgreSQL server, for one test run: in a temporary folder, on a free loopback port.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// A server that stops when dropped.
#[derive(Debug)]
pub struct PostgresServer {
    folder: TempDir,
    programs: PathBuf,
    port: u16,
}

/// The user that runs the server if the tests run as root, which PostgreSQL rejects.
const USER: &str = "postgres";

impl PostgresServer {
    /// Starts a server. Returns `None` if PostgreSQL is not installed; `PROEM_REQUIRE_POSTGRES` turns that into a
    /// failure.
    #[must_use]
    pub fn start() -> Option<Self> {
        let Some(programs) = programs() else {
            let is_required = std::env::var_os("PROEM_REQUIRE_POSTGRES").is_some();
            assert!(!is_required, "PostgreSQL is not installed");
            eprintln!("skipped: PostgreSQL is not installed");
            return None;
        };
        let folder = tempfile::Builder::new().prefix("proem-postgres-").tempdir_in("/tmp").unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let data = folder.path().join("data");
        fs::create_dir(&data).unwrap();
        if is_root() {
            chown(&data, Some(id("-u")), Some(id("-g"))).unwrap();
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let server = Self { folder, programs, port };
        let path = data.to_str().unwrap();
        server.run(
            "initdb",
            &["-D", path, "-U", USER, "-A", "trust", "-E", "UTF8", "--no-sync", "--no-instructions"],
        );
        server.start_again();
        Some(server)
    }

    /// Configures the server to accept only TLS, for `localhost`, with a certificate from a new authority. Returns
    /// the certificate of that authority.
    #[must_use]
    pub fn use_tls(&self) -> PathBuf {
        let authority = Authority::new(self.folder.path(), "trusted");
        let (certificate, key) = authority.issue(self.folder.path(), "server", "DNS:localhost");
        self.present(&certificate, &key);
        authority.certificate
    }

    /// Restarts it with a certificate and its key, and takes connections by TLS alone.
    pub fn present(&self, certificate: &Path, key: &Path) {
        let data = self.folder.path().join("data");
        let copy = |from: &Path, name: &str| {
            let to = data.join(name);
            fs::copy(from, &to).unwrap();
            to
        };
        let (certificate, key) = (copy(certificate, "server.crt"), copy(key, "server.key"));
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(data.join("pg_hba.conf"), "hostssl all all 127.0.0.1/32 trust\n").unwrap();
        if is_root() {
            chown(&key, Some(id("-u")), Some(id("-g"))).unwrap();
            chown(&certificate, Some(id("-u")), Some(id("-g"))).unwrap();
        }
        fs::write(data.join("postgresql.auto.conf"), "ssl = on\n").unwrap();
        self.stop();
        self.start_again();
    }

    /// Replaces the rules for connections, in the form of `pg_hba.conf`.
    pub fn set_access(&self, rules: &str) {
        fs::write(self.folder.path().join("data/pg_hba.conf"), rules).unwrap();
        self.run("pg_ctl", &["-D", &self.data(), "reload"]);
    }

    fn data(&self) -> String {
        self.folder.path().join("data").to_str().unwrap().to_owned()
    }

    /// Restarts it after a stop, on the same port.
    pub fn start_again(&self) {
        let options = format!(
            "-p {} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c max_connections=200",
            self.port
        );
        let log = format!("{}/log", self.data());
        self.run("pg_ctl", &["-D", &self.data(), "-o", &options, "-l", &log, "-w", "-t", "60", "start"]);
    }

    /// Stops it immediately, like a crash.
    pub fn stop(&self) {
        self.run("pg_ctl", &["-D", &self.data(), "-m", "immediate", "-w", "stop"]);
    }

    /// Creates an empty database and returns its URL.
    #[must_use]
    pub fn database(&self, name: &str) -> String {
        let port = self.port.to_string();
        self.run("createdb", &["-h", "127.0.0.1", "-p", &port, "-U", USER, name]);
        format!("postgres://{USER}@127.0.0.1:{port}/{name}")
    }

    /// Runs a statement.
    pub fn execute(&self, database: &str, sql: &str) {
        let port = self.port.to_string();
        self.run("psql", &["-h", "127.0.0.1", "-p", &port, "-U", USER, "-d", database, "-q", "-c", sql]);
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        let program = self.programs.join(program);
        let mut command = if is_root() {
            let mut command = Command::new("setpriv");
            command.args(["--reuid", USER, "--regid", USER, "--clear-groups", "--"]).arg(program);
            command
        } else {
            Command::new(program)
        };
        let done = command
            .args(arguments)
            .current_dir("/tmp")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .status()
            .unwrap();
        assert!(done.success(), "{command:?}");
    }
}

/// A certificate authority, created with `openssl`.
#[derive(Debug)]
pub struct Authority {
    /// Its own certificate, in PEM.
    pub certificate: PathBuf,
    key: PathBuf,
}

impl Authority {
    /// Creates an authority; its files are `NAME.pem` and `NAME.key` in a folder.
    #[must_use]
    pub fn new(folder: &Path, name: &str) -> Self {
        let (certificate, key) = (folder.join(format!("{name}.pem")), folder.join(format!("{name}.key")));
        let mut command = Command::new("openssl");
        command.args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]);
        command.args([
            "-subj",
            &format!("/CN=proem test {name}"),
            "-addext",
            "basicConstraints=critical,CA:TRUE",
        ]);
        command.arg("-keyout").arg(&key).arg("-out").arg(&certificate);
        succeed(&mut command);
        fs::set_permissions(&certificate, fs::Permissions::from_mode(0o644)).unwrap();
        Self { certificate, key }
    }

    /// Creates a certificate that signed itself, as `openssl req -x509` makes it by default. Returns it and its key.
    #[must_use]
    pub fn self_signed(folder: &Path, name: &str, names: &str) -> (PathBuf, PathBuf) {
        let (certificate, key) = (folder.join(format!("{name}.crt")), folder.join(format!("{name}.key")));
        let mut command = Command::new("openssl");
        command.args([
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=proem test",
        ]);
        command.args(["-addext", &format!("subjectAltName={names}")]);
        command.arg("-keyout").arg(&key).arg("-out").arg(&certificate);
        succeed(&mut command);
        (certificate, key)
    }

    /// Issues a certificate for names such as `DNS:localhost`. Returns the certificate and its key.
    #[must_use]
    pub fn issue(&self, folder: &Path, name: &str, names: &str) -> (PathBuf, PathBuf) {
        let (certificate, key) = (folder.join(format!("{name}.crt")), folder.join(format!("{name}.key")));
        let mut command = Command::new("openssl");
        command.args([
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=proem test",
        ]);
        command.args(["-addext", &format!("subjectAltName={names}")]);
        command.args([
            "-addext",
            "basicConstraints=critical,CA:FALSE",
            "-addext",
            "extendedKeyUsage=serverAuth",
        ]);
        command.arg("-CA").arg(&self.certificate).arg("-CAkey").arg(&self.key);
        command.arg("-keyout").arg(&key).arg("-out").arg(&certificate);
        succeed(&mut command);
        (certificate, key)
    }
}

fn succeed(command: &mut Command) {
    let done = command.output().unwrap();
    assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        let pid = Path::new(&self.data()).join("postmaster.pid");
        if pid.exists() {
            self.stop();
        }
    }
}

/// Returns the folder with the programs of the newest installed version.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut folders: Vec<(u32, PathBuf)> = versions
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let version = path.file_name()?.to_str()?.parse().ok()?;
            path.join("bin/initdb").exists().then(|| (version, path.join("bin")))
        })
        .collect();
    folders.sort();
    folders.pop().map(|(_, folder)| folder)
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn id(flag: &str) -> u32 {
    let output = Command::new("id").args([flag, USER]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
}
