"""Files of a workspace that lead to the store, while it is backed up with SQLite's own program and servers are killed."""

import contextlib
import http.client
import subprocess
import sys
import threading

from .clients import Client, Load, differences
from .report import row
from .runs import Server, folder, proem, settings, until

# The documented backup, and a plain reader. Each is a process of its own that ends, and as the last one to close the store
# it would remove a log on which no lock is left.
BACKUP = "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=30).execute('VACUUM INTO ?', [sys.argv[2]])"
READ = "import sqlite3, sys; print(sqlite3.connect(sys.argv[1], timeout=30).execute('SELECT count(*) FROM epoch').fetchone()[0])"

# How many servers, and the endings of the files that links lead to; `None` keeps the store in the workspace.
SETTINGS = [(1, [""]), (1, ["", "-shm"]), (1, None), (2, ["-shm"]), (2, ["", "-wal", "-shm"]), (2, None)]


def lay(work, store, endings):
    """Everything that is read in a workspace leads to the store."""
    names = [
        "AGENTS.md",
        "CLAUDE.md",
        ".sf/SYSTEM.md",
        ".sf/skills/a/SKILL.md",
        ".agents/skills/b.md",
        ".gitignore",
        ".goosehints",
    ]
    for index, name in enumerate(names):
        path = work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if endings is None:
            path.write_text("@AGENTS.md\n")
        else:
            path.symlink_to(f"{store}{endings[index % len(endings)]}")


class Readers:
    """Clients whose turns read those files."""

    def __init__(self, servers, work, store):
        self.is_over, self.count = threading.Event(), 0
        files = "".join(f"[file:{store}{ending}]" for ending in ("", "-wal", "-shm"))
        self.requests = [{"profile": profile, "cwd": str(work)} for profile in ("layers", "default", "boundary")]
        self.requests.append({"profile": "template", "cwd": str(work), "template": files + "[git:status]"})
        self.threads = [threading.Thread(target=self.work, args=[server], daemon=True) for server in servers]
        for thread in self.threads:
            thread.start()

    def work(self, server):
        client = Client(server)
        while not self.is_over.is_set():
            for request in self.requests:
                with contextlib.suppress(OSError, http.client.HTTPException):
                    client.ask("POST", "/preview", request)
                    client.ask("GET", "/compat")
                    self.count += 1

    def end(self):
        self.is_over.set()
        for thread in self.threads:
            thread.join()


def once(number, program=None):
    """The result of one run: acknowledged, lost and foreign epochs, and whether the store is whole."""
    servers, endings = SETTINGS[number % len(SETTINGS)]
    with folder() as place:
        work = place / "work"
        work.mkdir()
        store = (work if endings is None else place) / "proem.db"
        lay(work, store, endings)
        group = [Server(place, store, workspaces=[work], program=program) for _ in range(servers)]
        load, readers = Load(group, f"l{number}"), Readers(group, work, store)
        for turn in range(3):
            seen, read = len(load.answered), readers.count
            with contextlib.suppress(TimeoutError):
                until(30, lambda: len(load.answered) > seen + 10 and readers.count > read + 4, "answers")
            for script, more in ((READ, []), (BACKUP, [str(place / f"backup-{turn}.db")])):
                subprocess.run([sys.executable, "-c", script, str(store), *more], capture_output=True)
        died = sum(not server.lives() for server in group)
        for server in group:
            server.kill()
        load.end()
        readers.end()
        check = proem("store", "check", "--store", store)[0]
        try:
            lost, foreign = differences(store, load.acknowledged, load.tried)
        except ValueError:
            lost, foreign = len(load.acknowledged), 0
        return len(load.acknowledged), lost, foreign, died, check != 0


def runs(count, program=None):
    totals = [sum(column) for column in zip(*(once(number, program) for number in range(count)))]
    acknowledged, lost, foreign, died, damaged = totals
    seen = f"{acknowledged} acknowledged epochs, {lost} lost, {foreign} foreign; {died} servers died, {damaged} stores damaged"
    return seen, acknowledged and not (lost or foreign or died or damaged)


def run(short):
    count = settings.count or (3 if short else 24)
    seen, is_good = runs(count)
    row(
        "links",
        "files of a workspace lead to the store; SQLite's backup and reader beside 1 or 2 servers, then kill -9",
        count,
        "every acknowledged epoch is there; no store is damaged",
        seen,
        is_good,
    )
    if settings.old:
        seen, _ = runs(count, settings.old)
        row("links", "for comparison: the same with the older program", count, "nothing is expected of it", seen, True)
