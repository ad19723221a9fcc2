"""Processes, servers, databases and folders: all are ended and removed, also when something fails."""

import contextlib
import os
import pathlib
import pwd
import re
import resource
import signal
import socket
import subprocess
import tempfile
import time
import types
from typing import Any

from .report import skipped

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
IS_ROOT = os.geteuid() == 0
settings = types.SimpleNamespace(proem=None, old=None, count=None)  # Set by the command.
started: list[subprocess.Popen[Any]] = []  # Every process, each in a group of its own.
mounts: list[str] = []


def program(given):
    """The path of the proem that is tried; without one the debug build, which is made."""
    if not given:
        subprocess.run(["cargo", "build", "--locked", "--quiet"], cwd=ROOT, check=True)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    found = pathlib.Path(given or target / "debug" / "proem").resolve()
    if not (found.is_file() and os.access(found, os.X_OK)):
        raise SystemExit(
            f"error: cannot run {found}: there is no such program\nhint: name one that was built with --proem or --old"
        )
    return str(found)


def end_everything():
    while started:
        process = started.pop()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for point in reversed(mounts):
        subprocess.run(["umount", "-l", point], stderr=subprocess.DEVNULL)


def mount(point, *words):
    """True if it could be mounted; it is unmounted at the end, also after an error."""
    done = subprocess.run(["mount", *map(str, words), str(point)], stderr=subprocess.DEVNULL)
    if done.returncode == 0:
        mounts.append(str(point))
    return done.returncode == 0


def unmount(point):
    subprocess.run(["umount", str(point)], check=True)
    mounts.remove(str(point))


def spawn(command, stdin=subprocess.DEVNULL, **options):
    process = subprocess.Popen(command, start_new_session=True, stdin=stdin, **options)
    started.append(process)
    return process


def environment(home):
    dropped = ("PROEM_", "XDG_", "PG")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    return kept | {"HOME": str(home), "LC_ALL": "C"}


class Server:
    """A `proem serve` of its own. `under` is a command that runs it, such as strace; `variables` are of its environment;
    `program` is another proem than the one that is tried."""

    def __init__(self, place, store, work="work", workspaces=(), under=(), variables=(), program=None, **options):
        self.place, self.store, self.work, self.options = place, store, place / work, options
        self.workspaces, self.under, self.variables, self.program = workspaces, under, dict(variables), program
        self.start()

    def start(self):
        self.work.mkdir(exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=self.place, prefix="log-", delete=False) as out:
            command = [
                *self.under,
                self.program or settings.proem,
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--store",
                str(self.store),
            ]
            command += [word for path in self.workspaces for word in ("--workspace", str(path))]
            self.process = spawn(
                command,
                cwd=self.work,
                env=environment(self.place) | self.variables,
                stderr=out,
                stdout=out,
                **self.options,
            )
        self.log = pathlib.Path(out.name)
        end = time.monotonic() + 60
        while time.monotonic() < end:
            found = re.search(r"listening on http://127\.0\.0\.1:(\d+)", self.log.read_text())
            if found:
                self.port = int(found[1])
                return
            if self.process.poll() is not None:
                started.remove(self.process)
                break
            time.sleep(0.01)
        raise NotStarted(self.process.poll(), self.log.read_text())

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        started.remove(self.process)

    def stop(self):
        """Its exit code."""
        self.process.terminate()
        self.process.wait(30)
        started.remove(self.process)
        return self.process.returncode

    def lives(self):
        return self.process.poll() is None

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def sockets(self):
        """SQLite keeps descriptors of the file for later, so only these tell whether connections are left."""
        found = 0
        for path in pathlib.Path(f"/proc/{self.process.pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                found += os.readlink(path).startswith("socket:")
        return found

    def cpu(self):
        """Seconds that the process has used."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def threads(self):
        return len(os.listdir(f"/proc/{self.process.pid}/task"))

    def status(self, name):
        """A line of /proc/PID/status, in KB."""
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(rf"^{name}:\s*(\d+)", text, re.M)
        assert found, f"the kernel reports no {name}"
        return int(found[1])


class NotStarted(Exception):
    def __init__(self, code, text):
        super().__init__(f"exit {code}: {text}")
        self.code, self.text = code, text


class Postgres:
    """A PostgreSQL server in a temporary folder; it refuses to run as root, so then it runs as `postgres`.

    `within` is a command that runs it, where `host` is its address.
    """

    def __init__(self, place, host="127.0.0.1", within=()):
        self.host, self.within = host, within
        versions = [path for path in pathlib.Path("/usr/lib/postgresql").glob("*/bin") if (path / "initdb").exists()]
        if not versions:
            raise FileNotFoundError("PostgreSQL is not installed")
        self.programs = max(versions, key=lambda path: int(path.parent.name))
        self.data = place / "data"
        self.data.mkdir()
        self.who = []
        if IS_ROOT:
            user = pwd.getpwnam("postgres")
            os.chown(self.data, user.pw_uid, user.pw_gid)
            self.who = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups", "--"]
        self.run(
            "initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync", "--no-instructions"
        )
        with open(self.data / "pg_hba.conf", "a") as access:
            access.write("host all all samenet trust\n")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.start()

    def run(self, program, *arguments):
        command = [*self.who, str(self.programs / program), *map(str, arguments)]
        subprocess.run(command, check=True, cwd="/tmp", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def start(self):
        settings = [f"listen_addresses={self.host}", "unix_socket_directories=", "max_connections=200"]
        command = [*self.within, *self.who, str(self.programs / "postgres"), "-D", str(self.data), "-p", str(self.port)]
        command += [word for setting in settings for word in ("-c", setting)]
        self.process = spawn(command, cwd="/tmp", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        ready = [str(self.programs / "pg_isready"), "-q", "-h", self.host, "-p", str(self.port)]
        until(60, lambda: subprocess.run(ready).returncode == 0, "PostgreSQL starts")

    def stop(self):
        """At once, as a crash would."""
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(60)
        started.remove(self.process)

    def database(self, name):
        self.run("createdb", "-h", self.host, "-p", self.port, "-U", "postgres", name)
        return f"postgres://postgres@{self.host}:{self.port}/{name}?sslmode=disable"


def until(seconds, ready, what):
    end = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {seconds} s")
        time.sleep(0.02)


def proem(*arguments, program=None):
    """A command's exit code, standard output and standard error."""
    done = subprocess.run(
        [program or settings.proem, *map(str, arguments)], capture_output=True, env=environment("/nonexistent"), cwd="/"
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def raise_descriptors(wanted):
    """Raises this process's limit of descriptors, if allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


@contextlib.contextmanager
def folder(prefix="proem-faults-"):
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as name:
        os.chmod(name, 0o755)
        yield pathlib.Path(name)


@contextlib.contextmanager
def postgres(place, part):
    try:
        server = Postgres(place)
    except FileNotFoundError as missing:
        skipped(part, "all that needs PostgreSQL", missing, "PROEM_REQUIRE_POSTGRES" not in os.environ)
        yield None
        return
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.stop()
