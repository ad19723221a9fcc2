"""Calls of the store fail: the k-th one, or all from the k-th on.

strace is put on a server that runs, and taken away again: so the very same server must go on when the fault is gone.
Only calls on the store's own files fail, but for `accept4`, which has no file. Locks do not: one that cannot be given
back, which no local file system does, is held by SQLite until the process ends.
"""

import collections
import contextlib
import http.client
import resource
import signal
import time
from typing import Any

from . import tracing
from .clients import Client, differences, request, text_of
from .report import row, skipped
from .runs import NotStarted, Server, folder, proem

# The calls that fail, and with what: each alone, and with what comes after it.
FAULTS = [
    ("pwrite64", ["EIO", "ENOSPC", "EROFS"]),
    ("fsync", ["EIO", "ENOSPC"]),
    ("pread64", ["EIO"]),
    ("openat", ["EMFILE", "EIO", "EROFS", "ENOSPC"]),
    ("accept4", ["EMFILE", "ENFILE", "ECONNABORTED"]),
]
# A connection to the file is opened when one was given up: so another call fails first.
NEED_A_NEW_CONNECTION = ("openat",)
AT_THE_START = ["openat", "pwrite64", "fsync", "ftruncate", "pread64", "linkat"]
ANSWER_SECONDS_MAX = 20


class Faulty:
    """A server, all that it acknowledged, and all that was wrong with its answers."""

    def __init__(self, place):
        self.place, self.store = place, place / "data" / "proem.db"
        self.store.parent.mkdir()
        self.server = Server(place, self.store, preexec_fn=lambda: signal.signal(signal.SIGXFSZ, signal.SIG_IGN))
        self.acknowledged, self.tried, self.problems = {}, {}, []
        self.statuses: collections.Counter[Any] = collections.Counter()
        self.number, self.slowest, self.patience = 0, 0.0, 60
        self.files = [f"{self.store}{ending}" for ending in ("", "-wal", "-shm")]

    def ask(self, client, path, template, conversation, epoch):
        """One request: the right prompt, or an error of which the client is told."""
        self.tried.setdefault((conversation, epoch), template)
        begun = time.monotonic()
        try:
            status, headers, body = client.ask("POST", f"/conversations/{conversation}/{path}", request(template))
        except (OSError, http.client.HTTPException):
            self.statuses["no answer"] += 1
            return "broken"
        self.slowest = max(self.slowest, time.monotonic() - begun)
        self.statuses[status] += 1
        if status == 503 and "Retry-After" not in headers:
            self.problems.append("503 without Retry-After")
        if status == 200:
            self.compare(body, conversation, epoch, path)
        elif status not in (500, 503):
            self.problems.append(f"{path}: {status} {body}")
        return status

    def compare(self, body, conversation, epoch, path):
        if path == "turn" and body["carriers"]["system"] != self.tried[conversation, epoch]:
            self.problems.append(f"another prompt for {conversation}, epoch {epoch}")
        if body.get("epoch", epoch) != epoch:
            self.problems.append(f"epoch {body['epoch']} in place of {epoch} of {conversation}")
        self.acknowledged[conversation, epoch] = self.tried[conversation, epoch]

    def live(self):
        """A conversation by one client, on connections of its own; whether all of it was acknowledged."""
        self.number += 1
        name, client = f"c-{self.number}", Client(self.server, self.patience)
        first = self.ask(client, "turn", text_of(name, 1), name, 1)
        if first == "broken":
            return False
        if first != 200:
            # Whether it is stored is not known; to ask again tells.
            return self.ask(client, "turn", text_of(name, 1), name, 1) == 200
        if self.ask(client, "compaction?commit=true", text_of(name, 2), name, 2) == 200:
            return self.ask(client, "turn", "another one", name, 2) == 200
        self.settle(client, name)
        return False

    def settle(self, client, name):
        """After a compaction with an unknown outcome, either of the two prompts is right."""
        status, _, body = client.turn(name, "another one")
        if status == 200 and body["carriers"]["system"] != self.tried[name, body["epoch"]]:
            self.problems.append(f"another prompt for {name} after a compaction that failed")

    def recovers(self):
        """The fault is gone: within a moment all is well again, without a restart."""
        end = time.monotonic() + 10
        while time.monotonic() < end:
            with contextlib.suppress(OSError, http.client.HTTPException):
                if self.live():
                    return True
        return False

    def known(self):
        """All that was acknowledged before is still answered with, or refused."""
        client = Client(self.server, self.patience)
        for (name, epoch), text in list(self.acknowledged.items())[-6:]:
            is_last = (name, epoch + 1) not in self.tried
            if is_last and self.ask(client, "turn", text, name, epoch) == "broken":
                return

    def end(self):
        """The lost, foreign and damaged epochs at the end."""
        code = self.server.stop()
        check, out, error = proem("store", "check", "--store", self.store)
        if code != 0 or check != 0 or "no damage" not in out:
            self.problems.append(f"exit {code}; check: {out}{error}")
        return differences(self.store, self.acknowledged, self.tried)


def injections(call, error, when):
    fault = f"{call}:error={error}:when={when}"
    return ["fsync:error=EIO:when=1", fault] if call in NEED_A_NEW_CONNECTION else [fault]


def fail(faulty, call, error, when):
    """Calls that failed; the server is asked for a conversation meanwhile, and for those that it knows."""
    paths = [] if call == "accept4" else faulty.files
    # Connections that are not taken wait; that they do is all there is to see.
    faulty.patience = 0.3 if call == "accept4" else 60
    with tracing.Trace(faulty.server.process.pid, injections(call, error, when), paths) as trace:
        for work in (faulty.live, faulty.known, faulty.live):
            with contextlib.suppress(OSError, http.client.HTTPException):
                work()
        if not faulty.server.lives():
            faulty.problems.append(f"the server ended: {call} {error} {when}")
            return trace
    faulty.patience = 60
    if not faulty.recovers():
        faulty.problems.append(f"no recovery: {call} {error} {when}")
    return trace


def steps(call, short):
    """The calls that fail: `7` is the seventh, `7+` also all that follow."""
    last = {"pwrite64": 40, "pread64": 12}.get(call, 6)
    numbers = [1, last // 2] if short else range(1, last + 1)
    return [f"{number}{ending}" for number in numbers for ending in ("", "+")]


def each(call, errors, short):
    begun = time.monotonic()
    with folder() as place:
        faulty, injected, tries = Faulty(place), 0, 0
        for error in errors[:1] if short else errors:
            for when in steps(call, short):
                if faulty.problems:
                    break
                injected += fail(faulty, call, error, when).counts[call]
                tries += 1
        lost, foreign = faulty.end()
        names = "/".join(errors[:1] if short else errors)
        seen = (
            f"{injected} calls failed; answers {dict(sorted(faulty.statuses.items(), key=str))}; {len(faulty.acknowledged)} acknowledged "
            f"epochs, {lost} lost, {foreign} foreign, {len(faulty.problems)} problems; slowest {faulty.slowest:.1f} s"
        )
        row(
            "errors",
            f"{call} fails with {names}, once or from then on",
            tries,
            "right bytes, 503 or 500; the server lives, and recovers",
            seen,
            injected and not (lost or foreign or faulty.problems) and faulty.slowest < ANSWER_SECONDS_MAX,
            seconds=round(time.monotonic() - begun, 1),
            problems=faulty.problems[:5],
        )


def at_the_start(short):
    """A call fails while a server makes its store and begins: it says so and ends, or it serves."""
    refused, served, said = 0, 0, []
    for call in AT_THE_START:
        for error in ["EIO"] if short else ["EIO", "ENOSPC", "EMFILE", "EROFS"]:
            for number in [1, 4] if short else range(1, 12):
                with folder() as place:
                    try:
                        start(place, f"{call}:error={error}:when={number}")
                        served += 1
                    except NotStarted as failure:
                        refused += 1
                        if failure.code != 3 or not failure.text.startswith("error: ") or "panicked" in failure.text:
                            said.append(f"{call} {error} {number}: {failure}")
                    said += begins_afterwards(place)
    seen = f"{refused} starts refused with an error, {served} served; {len(said)} problems"
    row(
        "errors",
        "a call fails while a server makes its store",
        refused + served,
        "a clear error, or it serves; without the fault it starts",
        seen,
        refused and not said,
        problems=said[:8],
    )


def start(place, injection):
    # Programs open their libraries first; those are not meant.
    data = place / "data"
    data.mkdir()
    paths = [data, *(data / f"proem.db{ending}" for ending in ("", "-wal", "-shm"))]
    call = injection.split(":")[0]
    Server(
        place, data / "proem.db", under=tracing.command([injection], paths if call in ("openat", "pread64") else [])
    ).kill()


def begins_afterwards(place):
    """The problem of a start without the fault."""
    try:
        server = Server(place, place / "data" / "proem.db")
    except NotStarted as failure:
        return [f"no start afterwards: {failure}"]
    status = Client(server).turn("new", "a new one")[0]
    server.stop()
    return [] if status == 200 else [f"afterwards: {status}"]


def short_writes(short):
    """The file may not become larger than a few bytes more than it is: a write is cut, and the next one fails."""
    begun = time.monotonic()
    with folder() as place:
        faulty, refused = Faulty(place), 0
        faulty.live()
        log = place / "data" / "proem.db-wal"
        margins = [1, 100, 4000] if short else [*range(40), *range(40, 9000, 97)]
        for margin in margins:
            process, before = faulty.server.process.pid, faulty.statuses[503]
            limits = resource.prlimit(process, resource.RLIMIT_FSIZE)
            resource.prlimit(process, resource.RLIMIT_FSIZE, (log.stat().st_size + margin, limits[1]))
            faulty.live()
            faulty.known()
            resource.prlimit(process, resource.RLIMIT_FSIZE, limits)
            refused += faulty.statuses[503] > before
            if not faulty.recovers():
                faulty.problems.append(f"no recovery after {margin} bytes")
        lost, foreign = faulty.end()
        seen = (
            f"refused in {refused}; answers {dict(faulty.statuses)}; {len(faulty.acknowledged)} acknowledged epochs, {lost} lost, "
            f"{foreign} foreign, {len(faulty.problems)} problems"
        )
        row(
            "errors",
            "a write of the store is cut short, and the next one fails",
            len(margins),
            "right bytes, 503 or 500; the server lives, and recovers",
            seen,
            refused and not (lost or foreign or faulty.problems),
            seconds=round(time.monotonic() - begun, 1),
            problems=faulty.problems[:5],
        )


def run(short):
    short_writes(short)
    if tracing.reason_not():
        skipped("errors", "calls of the store fail", tracing.reason_not(), not tracing.required())
        return
    at_the_start(short)
    for call, errors in FAULTS:
        each(call, errors, short)
