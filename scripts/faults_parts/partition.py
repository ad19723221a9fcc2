"""PostgreSQL does not answer, although it is there: a proxy between it and proem holds bytes back, drops or cuts.

The proxy's own system takes every byte that is sent, so no time limit of the kernel ends the wait: only a limit of the
client can.
"""

import collections
import contextlib
import http.client
import os
import pathlib
import select
import signal
import socket
import struct
import subprocess
import threading
import time
from typing import Any

from . import network
from .clients import Client, Load, differences, text_of, together
from .report import row, skipped
from .runs import Server, folder, postgres, settings, until

# A request may take 30 seconds; what is later has no limit at all.
ANSWER_SECONDS_MAX = 35
RECOVERY_SECONDS_MAX = 20


class Proxy:
    """Passes bytes on between proem and PostgreSQL, or does not."""

    def __init__(self, port, host="127.0.0.1"):
        self.target, self.links, self.lock = (host, port), set(), threading.Lock()
        self.there = self.back = True  # Which of the directions pass.
        self.delay, self.drops, self.dropped = 0.0, 0, 0
        self.silent = set()  # Connections on which nothing passes ever again.
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=200)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self.listener.accept()
                threading.Thread(target=self.link, args=[near], daemon=True).start()

    def link(self, near):
        with contextlib.suppress(OSError), socket.create_connection(self.target) as far, near:
            with self.lock:
                self.links.add(near)
            with contextlib.suppress(OSError):
                self.pass_on(near, far)
        with self.lock:
            self.links.discard(near)

    def pass_on(self, near, far):
        is_doomed = False
        while True:
            # What may not pass is not even read; a look every now and then finds out that it may again.
            watched = [
                end for end, passes in ((near, self.there), (far, self.back)) if passes and near not in self.silent
            ]
            if not watched:
                time.sleep(0.02)
                continue
            for end in select.select(watched, [], [], 0.02)[0]:
                data = end.recv(1 << 16)
                if not data:
                    return
                if end is near and self.drops and b"COMMIT\0" in data:
                    self.drops, is_doomed = self.drops - 1, True
                if end is far and is_doomed:
                    # The server has committed it, and the answer is lost.
                    self.dropped += 1
                    reset(near)
                    return
                if self.delay:
                    time.sleep(self.delay)
                (far if end is near else near).sendall(data)

    def cut(self):
        with self.lock:
            for near in list(self.links):
                with contextlib.suppress(OSError):
                    near.shutdown(socket.SHUT_RDWR)

    def silence(self):
        """Silences the open connections for good, as a router that forgot them does; new connections work."""
        with self.lock:
            self.silent |= self.links
        self.let_pass()

    def let_pass(self):
        self.there = self.back = True
        self.delay, self.drops = 0.0, 0

    def end(self):
        self.let_pass()
        self.listener.close()
        self.cut()


def reset(connection):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


class Case:
    """A server behind the proxy, with a conversation that it knows."""

    def __init__(self, place, database, name, is_direct=False):
        self.proxy = Proxy(database.port, database.host)
        self.real = database.database(name)
        through = self.real.replace(f"{database.host}:{database.port}/", f"127.0.0.1:{self.proxy.port}/")
        self.server = Server(place, self.real if is_direct else through)
        self.texts, self.problems, self.answers, self.is_crowded = {}, [], [], False
        self.acknowledged = {}
        for number in range(8):
            self.texts[f"known-{number}"] = text_of(name, "known", number)
            assert Client(self.server).turn(f"known-{number}", self.texts[f"known-{number}"])[0] == 200
            self.acknowledged[f"known-{number}", 1] = self.texts[f"known-{number}"]

    def ask(self, conversation, text, seconds_max=ANSWER_SECONDS_MAX + 10):
        """One turn: how long it took, and what came."""
        begun = time.monotonic()
        try:
            status, headers, body = Client(self.server, seconds_max).turn(conversation, text)
        except (OSError, http.client.HTTPException) as error:
            self.answers.append((time.monotonic() - begun, repr(error)))
            return None
        self.answers.append((time.monotonic() - begun, status))
        expected = self.texts.setdefault(conversation, text)
        if status == 200:
            self.acknowledged[conversation, 1] = expected
            if body["carriers"]["system"] != expected:
                self.problems.append(f"another prompt for {conversation}")
        if status == 503 and "Retry-After" not in headers:
            self.problems.append("503 without Retry-After")
        # A request in a full queue may wait for too long; one without an answer of the store may not.
        if status not in (200, 503) + ((408,) if self.is_crowded else ()):
            self.problems.append(f"{status} {body}")
        return status

    def ask_all(self, label, count):
        """Known and new conversations, all at once."""
        names = [f"known-{number % 8}" if number % 2 else f"{label}-{number}" for number in range(count)]
        together([lambda name=name: self.ask(name, self.texts.get(name, text_of(name))) for name in names])

    def recovers(self):
        """The time until known and new conversations are answered."""
        begun, number = time.monotonic(), 0
        while time.monotonic() < begun + RECOVERY_SECONDS_MAX:
            number += 1
            name = f"after-{len(self.answers)}-{number}"
            if all(self.ask(name, self.texts.get(name, text_of(name)), 5) == 200 for name in ("known-1", name)):
                return time.monotonic() - begun
        return float("inf")

    def end(self):
        """The lost and foreign epochs."""
        self.proxy.end()
        self.server.kill()
        stored = {(name, 1): text for name, text in self.texts.items()}
        return differences(self.real, self.acknowledged, stored)


def counted(values):
    """The number of occurrences of each value, for people."""
    return ", ".join(f"{count} × {value}" for value, count in sorted(collections.Counter(map(str, values)).items()))


def fault(place, database, name, title, begin, end, count, is_direct=False):
    """The fault begins, many ask, it ends, and all must be well again."""
    case = Case(place, database, name, is_direct)
    case.is_crowded = count > 100
    begin(case)
    case.ask_all(name, count)
    during = list(case.answers)
    end(case)
    recovery = case.recovers()
    lost, foreign = case.end()
    slowest = max(seconds for seconds, _ in during)
    back = (
        f"back after {recovery:.1f} s"
        if recovery < RECOVERY_SECONDS_MAX
        else f"not back within {RECOVERY_SECONDS_MAX} s"
    )
    seen = (
        f"{counted(status for _, status in during)}, slowest {slowest:.1f} s; {back}; {lost} lost, {foreign} foreign, "
        f"{len(case.problems)} wrong answers"
    )
    is_safe = not (lost or foreign or case.problems) and slowest < ANSWER_SECONDS_MAX
    is_back = recovery < RECOVERY_SECONDS_MAX
    row(
        "partition",
        title,
        count,
        f"right bytes, or 503 within {ANSWER_SECONDS_MAX} s; recovery within {RECOVERY_SECONDS_MAX} s",
        seen,
        is_safe and is_back,
        slowest_seconds=round(slowest, 2),
        recovery_seconds=round(min(recovery, 999), 2),
        problems=case.problems[:5],
    )


def lost_answers(place, database, short):
    """The commit is done, and its answer is lost: the server tries again, or the client does, and there is one prompt."""
    case, begun = Case(place, database, "ambiguous"), time.monotonic()
    outcomes: collections.Counter[Any] = collections.Counter()
    count, wrong = (20 if short else 300), []
    for number in range(count):
        name, first, other = f"twice-{number}", text_of("twice", number), text_of("other", number)
        case.proxy.drops = number % 3 + 1
        status = case.ask(name, first)
        outcomes[status] += 1
        case.proxy.let_pass()
        # Another client asks with another text: the committed prompt wins.
        _, _, body = Client(case.server).turn(name, other)
        again = Client(case.server).turn(name, first)[2]
        if body.get("epoch") != 1 or again.get("carriers") != body.get("carriers"):
            wrong.append(f"{name}: epoch {body.get('epoch')}")
        if body.get("carriers", {}).get("system") != first:
            wrong.append(f"{name}: what was committed does not hold")
    dropped = case.proxy.dropped
    lost, foreign = case.end()
    wrong += case.problems
    seen = f"{dropped} answers dropped; told {counted(outcomes.elements())}; {len(wrong)} wrong answers, {lost} lost, {foreign} foreign"
    row(
        "partition",
        "a commit is done and its answer is lost",
        count,
        "one prompt for the epoch, for every later client",
        seen,
        dropped >= count and not (wrong or lost or foreign),
        seconds=round(time.monotonic() - begun, 1),
        problems=wrong[:5],
    )


def cuts(place, database, short):
    """Connections are cut again and again under load."""
    case = Case(place, database, "cuts")
    load, count = Load([case.server], "cut"), settings.count or (10 if short else 100)
    for _ in range(count):
        before = len(load.answered)
        case.proxy.cut()
        until(ANSWER_SECONDS_MAX, lambda: len(load.answered) > before + 3, "answers after a cut")
    load.end()
    case.proxy.end()
    case.server.kill()
    known = {(name, 1): text for name, text in case.texts.items()}
    lost, foreign = differences(case.real, known | load.acknowledged, known | load.tried)
    seen = (
        f"{counted(status for _, status in load.answered)}; {len(load.acknowledged)} acknowledged epochs, {lost} lost, "
        f"{foreign} foreign, {len(load.problems)} wrong answers"
    )
    row(
        "partition",
        "connections to PostgreSQL are cut under load",
        count,
        "right bytes or 503; nothing is lost",
        seen,
        load.acknowledged and not (lost or foreign or load.problems),
        problems=load.problems[:5],
    )


def frozen(place, database, count):
    """PostgreSQL and all its processes are stopped, and go on later."""

    def everyone(number):
        os.killpg(database.process.pid, number)
        # Each of its processes leads a group of its own.
        for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError, ProcessLookupError):
                if path.read_text().rpartition(")")[2].split()[1] == str(database.process.pid):
                    os.kill(int(path.parent.name), number)

    try:
        fault(
            place,
            database,
            "frozen",
            "PostgreSQL is stopped by SIGSTOP, and goes on",
            lambda _: everyone(signal.SIGSTOP),
            lambda _: everyone(signal.SIGCONT),
            count,
        )
    finally:
        everyone(signal.SIGCONT)


def packets_lost(place, count):
    """A real partition, between two machines: no packet comes back, and no kernel tells anybody."""
    title = "packets of PostgreSQL are lost, between two machines"
    try:
        with network.postgres_far_away(place / "far") as (database, cable):
            fault(
                place,
                database,
                "lost",
                title,
                lambda _: cable.silence(),
                lambda _: cable.speak(),
                count,
                is_direct=True,
            )
    except (OSError, subprocess.CalledProcessError) as error:
        skipped("partition", title, f"no network namespace may be made here ({error})")


def run(short):
    with folder() as place, postgres(place, "partition") as database:
        if not database:
            return

        def stop(there=True, back=True):
            def work(case):
                case.proxy.there, case.proxy.back = there, back

            return work

        def slow(case):
            case.proxy.delay = 0.05 if short else 0.1

        def passes(case):
            case.proxy.let_pass()

        def forget(case):
            case.proxy.silence()

        lost_answers(place, database, short)
        cuts(place, database, short)
        # These wait until the server gives up on the database; so they wait together.
        cases = [
            ("both", "no byte passes, either way", stop(False, False), passes, 8),
            ("answers", "no answer of PostgreSQL passes", stop(back=False), passes, 8),
            ("requests", "nothing to PostgreSQL passes", stop(there=False), passes, 8),
            ("forgotten", "no byte passes, and old connections stay silent for good", stop(False, False), forget, 8),
            ("slow", "slow answers starve the pool", slow, passes, 40 if short else 300),
        ]
        together([lambda case=case: fault(place, database, *case) for case in cases] + [lambda: packets_lost(place, 8)])
        if not short:
            frozen(place, database, 8)
