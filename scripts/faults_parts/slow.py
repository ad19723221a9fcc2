"""More connections and more work than a server can do: it goes on for others, and says no in time."""

import asyncio
import collections
import contextlib
import json
import os
import socket
import statistics
import threading
import time
from typing import Any

from .clients import Client, Load, differences, request
from .report import row, skipped
from .runs import Server, folder, raise_descriptors

RATIO_MAX = 25  # Very generous: a busy machine must not make this red.


def healthy(server, count):
    """Median time of a turn, in ms, and CPU of the server for one."""
    client, times = Client(server), []
    ticks = server.cpu()
    for _ in range(count):
        begun = time.monotonic()
        status, _, body = client.turn("healthy", "a healthy one")
        times.append(time.monotonic() - begun)
        assert status == 200 and body["carriers"]["system"] == "a healthy one", (status, body)
    return statistics.median(times) * 1000, (server.cpu() - ticks) * 1000 / count


class Slow:
    """Many sockets: some send headers a byte at a time, some a body that never ends, some nothing."""

    HEAD = b"POST /conversations/slow/turn HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"

    def __init__(self, server, count):
        self.sockets, self.is_over, self.sent = [], threading.Event(), 0
        for number in range(count):
            connection = socket.create_connection(("127.0.0.1", server.port), timeout=20)
            if number % 3 == 1:
                connection.sendall(self.HEAD + b"Content-Length: 1000000\r\n\r\n{")
            self.sockets.append((number % 3, connection))
        self.thread = threading.Thread(target=self.drip, daemon=True)
        self.thread.start()

    def drip(self):
        """A byte of each, again and again."""
        at = 0
        while not self.is_over.wait(0.02):
            for kind, connection in self.sockets:
                with contextlib.suppress(OSError):
                    if kind < 2:
                        connection.sendall((self.HEAD[at % len(self.HEAD) :][:1], b" ")[kind])
                        self.sent += 1
            at += 1

    def end(self):
        self.is_over.set()
        self.thread.join()
        for _, connection in self.sockets:
            connection.close()


def slow_sockets(short):
    count, turns = (1000, 500) if short else (1000, 5000)
    with folder() as place:
        server = Server(place, place / "proem.db")
        healthy(server, 50)
        before, quiet = healthy(server, turns), server.sockets()
        slow = Slow(server, count)
        load = Load([server], "others", threads=1)
        during = healthy(server, turns)
        load.end()
        alone = healthy(server, turns)
        dripped = slow.sent
        slow.end()
        deadline = time.monotonic() + 40
        while server.sockets() > quiet + 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        left = max(0, server.sockets() - quiet)
        after = healthy(server, turns)
        server.stop()
        lost, foreign = differences(
            place / "proem.db", load.acknowledged, load.tried | {("healthy", 1): "a healthy one"}
        )
        ratio = alone[0] / before[0]
        seen = (
            f"median turn {before[0]:.2f} ms before, {alone[0]:.2f} ms beside them ({ratio:.2f}×), {during[0]:.2f} ms beside them and first turns, "
            f"{after[0]:.2f} ms after; CPU {before[1]:.2f} and {alone[1]:.2f} ms; {dripped} bytes dripped; {left} sockets left; "
            f"{len(load.acknowledged)} acknowledged epochs, {lost} lost, {foreign} foreign"
        )
        row(
            "slow",
            f"{count:,} slow connections beside healthy ones",
            turns,
            "turns go on as before",
            seen,
            ratio < RATIO_MAX and left <= 2 and load.acknowledged and not (lost or foreign or load.problems),
            ratio=round(ratio, 2),
            problems=load.problems[:5],
        )


async def many(port, connections, each, answers, make=request):
    """Every connection asks for builds, one after the other; all begin at once."""
    gate, missing = asyncio.Event(), set(range(connections))

    async def caller(index):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        missing.discard(index)
        if not missing:
            gate.set()
        await gate.wait()
        for number in range(each):
            body = json.dumps(make(f"build {index} {number}")).encode()
            writer.write(
                b"POST /preview HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                % len(body)
                + body
            )
            begun = time.monotonic()
            answers.append((*await answer(reader), f"build {index} {number}", time.monotonic() - begun))
        writer.close()

    async def guarded(index):
        try:
            await caller(index)
        except (OSError, asyncio.IncompleteReadError) as error:
            answers.append((repr(error), {}, b"", "", 0.0))
            missing.discard(index)
            gate.set()

    await asyncio.gather(*(guarded(index) for index in range(connections)))


async def answer(reader):
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    return int(head[0].split()[1]), headers, await reader.readexactly(int(headers.get("content-length", 0)))


def builds_at_once(short):
    connections, each = (400, 5) if short else (1000, 10)
    raise_descriptors(connections + 200)
    with folder() as place:
        answers: list[Any] = []
        server, begun = Server(place, place / "proem.db"), time.monotonic()
        Client(server).turn("healthy", "a healthy one")
        asyncio.run(many(server.port, connections, each, answers))
        seconds = time.monotonic() - begun
        statuses = collections.Counter(str(status) for status, *_ in answers)
        wrong = [
            f"{status}"
            for status, headers, *_ in answers
            if not (status == 200 or (status == 503 and "retry-after" in headers))
        ]
        wrong += [text for status, _, body, text, _ in answers if status == 200 and text.encode() not in body]
        median, _ = healthy(server, 50)
        lives, memory = server.lives(), server.status("VmHWM") // 1024
        server.stop()
        slowest = max(taken for *_, taken in answers)
        seen = (
            f"{', '.join(f'{count} × {status}' for status, count in sorted(statuses.items()))} in {seconds:.1f} s, slowest {slowest:.1f} s; "
            f"{len(wrong)} wrong; then a turn takes {median:.2f} ms; at most {memory} MB of memory"
        )
        row(
            "slow",
            f"{connections * each:,} builds by {connections:,} connections at once",
            len(answers),
            "200, or 503 with Retry-After; then as before",
            seen,
            lives and not wrong and statuses["200"],
            memory_mb=memory,
            problems=wrong[:5],
        )


def run(short):
    if not os.path.exists("/proc/self/fd"):
        skipped("slow", "slow connections", "there is no /proc")
        return
    slow_sockets(short)
    builds_at_once(short)
