"""kill -9 at an exact point: at the first call of the store that writes, at the second, and so on.

Each phase is tried from the beginning for each kind of call, and ends with the first number of which there is no such
call any more: so every point is covered without knowing their number.
"""

import contextlib
import http.client
import time

from . import tracing
from .clients import Client, Load, differences
from .report import row, skipped
from .runs import NotStarted, Server, folder, proem, until

CALLS = ["pwrite64", "fsync", "fdatasync", "ftruncate", "unlink", "linkat", "link", "rename", "fcntl"]
ANSWERS = ["sendto", "writev", "write"]
NUMBER_MAX = 400


class Attempt:
    """A server that dies at a point, and what is found afterwards."""

    def __init__(self, place, call, number):
        self.place, self.store = place, place / "data" / "proem.db"
        self.injection = f"{call}:signal=KILL:when={number}"
        self.load, self.died, self.problems = Load([], f"{call}-{number}", threads=0), False, []

    def converse(self, server, names):
        client = Client(server)
        for name in names:
            with contextlib.suppress(OSError, http.client.HTTPException):
                self.load.live(client, name)

    def look(self):
        """Starts again without the fault: all that was acknowledged is there, and it works."""
        try:
            server = Server(self.place, self.store)
        except NotStarted as error:
            self.problems.append(f"no start: {error}")
            return
        self.converse(server, ["afterwards"])
        if ("afterwards", 2) not in self.load.acknowledged:
            self.problems.append("no new conversation afterwards")
        server.stop()
        code, out, said = proem("store", "check", "--store", self.store)
        if code != 0 or "no damage" not in out:
            self.problems.append(f"check: {out}{said}")
        self.lost, self.foreign = differences(self.store, self.load.acknowledged, self.load.tried)
        self.problems += self.load.problems


def while_it_is_made(attempt):
    """The server makes its store, and begins to serve."""
    under = tracing.command([attempt.injection])
    try:
        server = Server(attempt.place, attempt.store, under=under)
        server.kill()
    except NotStarted as error:
        # strace ends as what it traced ended.
        attempt.died = error.code == -9


def while_it_writes(attempt):
    """A first turn, a later one, a compaction and a turn behind it."""
    server = Server(attempt.place, attempt.store)
    with tracing.Trace(server.process.pid, [attempt.injection]):
        attempt.converse(server, ["first"])
        attempt.died = has_died(server)
    server.kill()


def while_it_ends(attempt):
    """SIGTERM: what stands in the log goes into the file, and the log is removed."""
    server = Server(attempt.place, attempt.store)
    attempt.converse(server, ["first", "second"])
    with tracing.Trace(server.process.pid, [attempt.injection]):
        server.process.terminate()
        attempt.died = server.process.wait(30) == -9
    server.kill()


def has_died(server):
    """A client whose connection broke may know it a moment earlier than the parent of the process."""
    try:
        return Client(server).ask("GET", "/healthz")[0] != 200
    except (OSError, http.client.HTTPException):
        until(10, lambda: not server.lives(), "the server is dead")
        return True


def numbers(short):
    """All of them; or the first ones, and then ever fewer."""
    number = 1
    while number < NUMBER_MAX:
        yield number
        number += max(1, number // 2) if short else 1


def phase(name, work, calls, short):
    begun, died, lost, foreign, acknowledged, problems, points = time.monotonic(), 0, 0, 0, 0, [], {}
    for call in calls:
        for number in numbers(short):
            with folder() as place:
                (place / "data").mkdir()
                attempt = Attempt(place, call, number)
                work(attempt)
                if not attempt.died:
                    break
                attempt.look()
            died, points[call] = died + 1, number
            problems += [f"{call} {number}: {problem}" for problem in attempt.problems]
            lost, foreign = lost + getattr(attempt, "lost", 0), foreign + getattr(attempt, "foreign", 0)
            acknowledged += len(attempt.load.acknowledged)
    calls_seen = ", ".join(f"{call} {number}" for call, number in points.items())
    seen = (
        f"{acknowledged} acknowledged epochs, {lost} lost, {foreign} foreign, {len(problems)} problems; "
        f"last point of each call: {calls_seen}"
    )
    row(
        "points",
        f"kill -9 at each point {name}",
        died,
        "every acknowledged epoch is there; it starts, and `store check` is green",
        seen,
        died and not (lost or foreign or problems),
        seconds=round(time.monotonic() - begun, 1),
        points=points,
        acknowledged=acknowledged,
        problems=problems[:8],
    )


def run(short):
    if tracing.reason_not():
        skipped("points", "kill -9 at each point of a write", tracing.reason_not(), not tracing.required())
        return
    phase("while the store is made", while_it_is_made, CALLS[:8], short)
    phase("of a first turn and a compaction", while_it_writes, CALLS[:4] if short else CALLS, short)
    phase("at which an answer is sent", while_it_writes, ANSWERS, short)
    phase("of the end of a server", while_it_ends, CALLS[:5], short)
