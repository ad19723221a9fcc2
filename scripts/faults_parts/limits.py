"""A server that gets too little: memory, descriptors, or a clock that can be trusted."""

import contextlib
import http.client
import json
import os
import pathlib
import resource
import shutil
import socket
import time

from .clients import Client, Load, differences, request, text_of, together
from .report import row, skipped
from .runs import Server, folder, proem, until

MEMORY = 192 << 20
BODY_BYTES = 15 << 20
HELD_MB_MAX = 300
JUMPS = ["-3600", "+86400", "-400d", "+20y", "-10y", "+0"]


class Group:
    """A control group with little memory: of version 2 where that may be made, else of version 1."""

    def __init__(self):
        for parent, limit in (("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")):
            self.path = pathlib.Path(parent) / f"proem-faults-{os.getpid()}"
            with contextlib.suppress(OSError):
                self.path.mkdir()
                # Files that are not there already are none of the kernel's, and limit nothing.
                with open(self.path / limit, "r+") as file:
                    file.write(str(MEMORY))
                return
            with contextlib.suppress(OSError):
                self.path.rmdir()
        raise PermissionError("no control group with a limit may be made here")

    def take(self, process):
        (self.path / "cgroup.procs").write_text(str(process))

    def remove(self):
        def try_it():
            with contextlib.suppress(OSError):
                self.path.rmdir()
            return not self.path.exists()

        until(10, try_it, "the group is empty")


class LargeLoad(Load):
    """Prompts of 100 KB each."""

    def live(self, client, conversation):
        text = text_of(conversation, 1) + "a line of a large prompt\n" * 4000
        self.tried[conversation, 1] = text
        for _ in range(2):
            self.expect(client.turn(conversation, text), conversation, 1, text)


def little_memory(short):
    try:
        group = Group()
    except OSError as error:
        skipped("limits", "little memory", error)
        return
    count = 60 if short else 3000
    with folder() as place:
        store = place / "proem.db"
        server = Server(place, store)
        try:
            group.take(server.process.pid)
            load = LargeLoad([server], "large", threads=8)
            until(120, lambda: len(load.answered) >= count or not server.lives(), "answers")
            lives = server.lives()
            load.end()
            peak = server.status("VmHWM") // 1024 if lives else 0
        finally:
            server.kill()
            group.remove()
        lost, foreign = differences(store, load.acknowledged, load.tried)
        seen = (
            f"{'lives' if lives else 'ended'}, at most {peak} MB; {len(load.acknowledged)} acknowledged epochs, {lost} lost, {foreign} foreign, "
            f"{len(load.problems)} wrong answers"
        )
        row(
            "limits",
            f"a control group of {MEMORY >> 20} MB, prompts of 100 KB",
            len(load.answered),
            "the server lives; nothing is lost",
            seen,
            lives and load.acknowledged and not (lost or foreign or load.problems),
            memory_mb=peak,
            problems=load.problems[:5],
        )


def no_memory(short):
    """No page more than it has: allocations fail, and the process ends there. It must not take a prompt with it."""
    count, ended, lost, foreign, acknowledged = (3 if short else 15), 0, 0, 0, 0
    problems = []
    for cycle in range(count):
        with folder() as place:
            store = place / "proem.db"
            server = Server(place, store)
            if cycle % 2:
                take_memory(server)
            load = LargeLoad([server], f"none-{cycle}")
            if not cycle % 2:
                until(30, lambda: len(load.answered) > 2 + cycle, "answers")
                take_memory(server)
            before = len(load.answered)
            with contextlib.suppress(TimeoutError):
                until(
                    1 if short else 3,
                    lambda: not server.lives() or len(load.answered) > before + 200,
                    "answers or an end",
                )
            ended += not server.lives()
            server.kill()
            load.end()
            # Work that was given up, such as by a thread that could not be made, is a 500.
            problems += [problem for problem in load.problems if not problem.startswith("500")]
            if proem("store", "check", "--store", store)[0]:
                problems.append("damage")
            found = differences(store, load.acknowledged, load.tried)
            lost, foreign, acknowledged = lost + found[0], foreign + found[1], acknowledged + len(load.acknowledged)
    seen = f"{ended} ended, {count - ended} went on; {acknowledged} acknowledged epochs, {lost} lost, {foreign} foreign, {len(problems)} problems"
    row(
        "limits",
        "no more memory than it has, under load",
        count,
        "it lives or ends; nothing is lost, and the store is whole",
        seen,
        acknowledged and not (lost or foreign or problems),
        problems=problems[:5],
    )


def take_memory(server):
    size = server.status("VmSize") << 10
    resource.prlimit(server.process.pid, resource.RLIMIT_AS, (size, resource.RLIM_INFINITY))


def held_bodies(short):
    """Large bodies that are sent but for their last byte."""
    count = 40 if short else 100
    body = json.dumps(request("x" * BODY_BYTES)).encode()
    with folder() as place, contextlib.ExitStack() as at_the_end:
        server = Server(place, place / "proem.db")
        for number in range(count):
            connection = at_the_end.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=20))
            head = f"POST /conversations/c-{number}/turn HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            # A server that does not read on is fine.
            with contextlib.suppress(OSError):
                connection.settimeout(1)
                connection.sendall(head.encode() + body[:-1])
        held = server.status("VmRSS") // 1024
        status = Client(server).turn("healthy", "a healthy one")[0]
        at_the_end.close()
        until(40, lambda: server.sockets() < 20, "connections are closed")
        server.stop()
        row(
            "limits",
            f"{count} bodies of {BODY_BYTES >> 20} MB that do not end",
            count,
            f"at most {HELD_MB_MAX} MB; others are answered",
            f"{held} MB; a turn meanwhile: {status}",
            held <= HELD_MB_MAX and status == 200,
            memory_mb=held,
        )


def few_descriptors(short):
    count = 100
    with folder() as place, contextlib.ExitStack() as at_the_end:
        store = place / "proem.db"

        def limit():
            return resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))

        server = Server(place, store, preexec_fn=limit)
        texts = {(f"few-{number}", 1): text_of("few", number) for number in range(8)}
        for (name, _), text in texts.items():
            assert Client(server).turn(name, text)[0] == 200
        for _ in range(count):
            at_the_end.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=20))
        until(10, lambda: server.descriptors() >= 20, "connections are taken")
        statuses, wrong = {}, []

        def ask(name, text):
            try:
                status, _, body = Client(server, 3).turn(name, text)
                statuses[name] = status
                if (status == 200 and body["carriers"]["system"] != text) or status not in (200, 503):
                    wrong.append(f"{name}: {status}")
            except (OSError, http.client.HTTPException):
                statuses[name] = "waits"

        together([lambda name=name, text=text: ask(name, text) for (name, _), text in texts.items()])
        during = sorted({str(status) for status in statuses.values()})
        lives, most = server.lives(), server.descriptors()
        at_the_end.close()
        begun = time.monotonic()
        until(40, lambda: answers(server, texts), "it answers again")
        seconds = time.monotonic() - begun
        server.stop()
        lost, foreign = differences(store, texts, texts | {("again", 1): "again"})
        seen = f"known conversations meanwhile: {', '.join(during)}; {most} descriptors; answers {seconds:.1f} s after they went; {lost} lost, {foreign} foreign"
        row(
            "limits",
            "32 descriptors, and 100 silent connections",
            count,
            "it lives, refuses or waits; then it answers",
            seen,
            lives and not (wrong or lost or foreign),
            problems=wrong[:5],
        )


def answers(server, texts):
    with contextlib.suppress(OSError, http.client.HTTPException):
        client = Client(server, 5)
        known = all(
            client.turn(name, "another one")[2].get("carriers", {}).get("system") == text
            for (name, _), text in texts.items()
        )
        return known and client.turn("again", "again")[0] == 200
    return False


def time_of(server, load, name):
    """The server's time in its own unit, read from a new conversation."""
    text, client = text_of(name), Client(server)
    load.tried[name, 1] = text
    load.expect(client.turn(name, text), name, 1, text)
    found = client.ask("GET", f"/conversations?search={name}&limit=200")[2]["conversations"]
    return next(item["opened_at"] for item in found if item["conversation"] == name)


def clock(short):
    """The time of day goes back and forth while a server works; the file says how far."""
    found = next(iter(pathlib.Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")), None)
    if not found or not shutil.which("faketime"):
        skipped("limits", "the clock jumps", "faketime is not installed")
        return
    with folder() as place:
        store, file = place / "proem.db", place / "clock"
        file.write_text("+0\n")
        variables = {
            "LD_PRELOAD": str(found),
            "FAKETIME_TIMESTAMP_FILE": str(file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }
        server = Server(place, store, variables=variables)
        load, known, wrong = Load([server], "clock"), text_of("clock"), []
        load.tried["known", 1] = load.acknowledged["known", 1] = known
        assert Client(server).turn("known", known)[0] == 200
        times, jumps = [], JUMPS * (1 if short else 10)
        for number, jump in enumerate(jumps):
            file.write_text(f"{jump}\n")
            before = len(load.answered)
            until(20, lambda: len(load.answered) > before + 20, "answers after a jump")
            status, _, body = Client(server).turn("known", "another one")
            times.append(time_of(server, load, f"jump-{number}"))
            if status != 200 or body["carriers"]["system"] != known:
                wrong.append(f"{jump}: {status}")
        load.end()
        code = server.stop()
        lost, foreign = differences(store, load.acknowledged, load.tried)
        check = proem("store", "check", "--store", store)[0]
        # A compaction that began before a jump took too long, by the clock; its client begins it again.
        wrong += [problem for problem in load.problems if "no_compaction" not in problem]
        years = (max(times) - min(times)) / max(abs(times[-1]), 1) * (time.time() / 31_557_600)
        seen = (
            f"times up to {years:.0f} years apart; {len(load.acknowledged)} acknowledged epochs, {lost} lost, "
            f"{foreign} foreign, {len(wrong)} wrong answers; exit {code}"
        )
        row(
            "limits",
            "the clock jumps by hours and years, both ways",
            len(times),
            "the same prompts; turns go on",
            seen,
            years > 20 and code == 0 and not (lost or foreign or check or wrong),
            problems=wrong[:5],
        )


def run(short):
    little_memory(short)
    no_memory(short)
    held_bodies(short)
    few_descriptors(short)
    clock(short)
