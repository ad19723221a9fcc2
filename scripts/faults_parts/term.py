"""Servers that are asked to end, are replaced while others go on, and clients that go away in the middle of things."""

import contextlib
import json
import random
import shutil
import socket
import struct
import time
from typing import Any

from .clients import Client, Load, differences, request, text_of, together
from .report import row
from .runs import NotStarted, Server, folder, proem, settings, until

END_SECONDS_MAX = 12  # Ten for what was accepted, and a little for a busy machine.


def asked_to_end(short):
    count, codes, slowest = settings.count or (2 if short else 50), [], 0.0
    chance = random.Random(31)
    with folder() as place:
        acknowledged: dict[Any, str] = {}
        tried: dict[Any, Any] = {}
        problems: list[str] = []
        store = place / "proem.db"
        for cycle in range(count):
            server = Server(place, store)
            load = Load([server], f"t{cycle}", threads=8)
            until(20, lambda: len(load.answered) > chance.randrange(5, 40), "answers")
            begun = time.monotonic()
            codes.append(server.stop())
            slowest = max(slowest, time.monotonic() - begun)
            load.end()
            acknowledged, tried, problems = (
                acknowledged | load.acknowledged,
                tried | load.tried,
                problems + load.problems,
            )
        lost, foreign = differences(store, acknowledged, tried)
        check = proem("store", "check", "--store", store)[0]
        seen = (
            f"exit codes {sorted(set(codes))}, slowest end {slowest:.2f} s; {len(acknowledged)} acknowledged epochs, {lost} lost, "
            f"{foreign} foreign, {len(problems)} wrong answers"
        )
        row(
            "term",
            "SIGTERM under load",
            count,
            "exit 0 within 10 s; every acknowledged epoch is there",
            seen,
            set(codes) == {0}
            and slowest < END_SECONDS_MAX
            and acknowledged
            and not (lost or foreign or check or problems),
            slowest_seconds=round(slowest, 2),
            problems=problems[:5],
        )


class Either:
    """Two servers of one file, of which a client takes one that answers, as behind a balancer."""

    def __init__(self, servers, chance):
        self.servers, self.chance = servers, chance

    @property
    def port(self):
        return self.chance.choice(self.servers).port


def rolling(short):
    """Of two servers on one file one after the other is killed or asked to end, and replaced, under load."""
    count, chance = settings.count or (2 if short else 60), random.Random(37)
    with folder() as place:
        store = place / "proem.db"
        servers = [Server(place, store) for _ in range(2)]
        load = Load([Either(servers, chance)], "r", threads=6)
        for cycle in range(count):
            before = len(load.answered)
            until(30, lambda: len(load.answered) > before + chance.randrange(5, 30), "answers")
            old = servers[cycle % 2]
            old.kill() if cycle % 4 < 2 else old.stop()
            servers[cycle % 2] = Server(place, store)
        load.end()
        for server in servers:
            server.stop()
        lost, foreign = differences(store, load.acknowledged, load.tried)
        check = proem("store", "check", "--store", store)[0]
        seen = f"{len(load.acknowledged)} acknowledged epochs, {lost} lost, {foreign} foreign, {len(load.problems)} wrong answers"
        row(
            "term",
            "two servers on one file, killed or ended and replaced by turns, under load",
            count,
            "every acknowledged epoch is there; one prompt for each",
            seen,
            load.acknowledged and not (lost or foreign or check or load.problems),
            problems=load.problems[:5],
        )


def other_program(place):
    """The older proem that was named, or a copy of the one that is tried."""
    if settings.old:
        return settings.old, "another program"
    return shutil.copy(settings.proem, place / "proem-of-old"), "a copy"


class Pair:
    """An old and a new program on one file at once."""

    def __init__(self, place, store, old):
        self.place, self.store, self.programs = place, store, [old, settings.proem]
        self.servers = [self.server(index) for index in range(2)]
        self.texts, self.epochs, self.problems = {}, {}, []

    def server(self, which):
        return Server(self.place, self.store, program=self.programs[which])

    def replace(self, cycle):
        """The server at one of the two places makes room for one of the other program, so that each place has either by turns."""
        at = cycle % 2
        old = self.servers[at]
        old.kill() if cycle % 4 < 2 else old.stop()
        self.servers[at] = self.server((at + 1 + cycle // 2) % 2)
        return old.program != self.servers[at].program

    def live(self, name, first):
        """A conversation that one server begins, and the other goes on with and compacts."""
        one, other = self.servers[first], self.servers[1 - first]
        texts = [text_of(name, epoch) for epoch in (1, 2)]
        self.expect(Client(one).turn(name, texts[0]), name, 1, texts[0])
        self.expect(Client(other).turn(name, "another one"), name, 1, texts[0])
        status, _, body = Client(other).ask("POST", f"/conversations/{name}/compaction?commit=true", request(texts[1]))
        if status != 200 or body["epoch"] != 2:
            self.problems.append(f"compaction of {name}: {status} {body}")
        self.texts |= {(name, epoch): text for epoch, text in enumerate(texts, 1)}
        self.epochs[name] = 2

    def look(self):
        """Every conversation, on both."""
        for server in self.servers:
            client = Client(server)
            for name, epoch in self.epochs.items():
                self.expect(client.turn(name, "another one"), name, epoch, self.texts[name, epoch])

    def expect(self, answer, name, epoch, text):
        status, _, body = answer
        if status != 200 or (body["epoch"], body["carriers"]["system"]) != (epoch, text):
            self.problems.append(f"{name}: {status}, epoch {body.get('epoch')}, not {epoch} with its text")


def versions(short):
    """Two programs on one file, replaced by each other under load. What happens when they differ in their tables is
    a matter of the tests of proem-store."""
    count, chance = settings.count or (2 if short else 60), random.Random(41)
    fault = "an old and a new program on one file, replaced by each other under load"
    with folder() as place:
        store = place / "proem.db"
        old, kind = other_program(place)
        try:
            pair = Pair(place, store, old)
        except NotStarted as error:
            row("term", fault, 0, "both serve", str(error), False)
            return
        load, turned = Load([Either(pair.servers, chance)], "v", threads=4), 0
        for cycle in range(count):
            pair.live(f"pair-{cycle}", cycle % 2)
            before = len(load.answered)
            until(60, lambda: len(load.answered) > before + chance.randrange(5, 30), "answers")
            turned += pair.replace(cycle)
            pair.look()
        load.end()
        codes = {server.stop() for server in pair.servers}
        lost, foreign = differences(store, load.acknowledged | pair.texts, load.tried | pair.texts)
        checks = [proem("store", "check", "--store", store, program=program)[0] for program in pair.programs]
        problems = load.problems + pair.problems
        seen = (
            f"the old one is {kind}; {turned} changed programs; {len(load.acknowledged)} acknowledged epochs and {len(pair.texts)} that both "
            f"programs read, {lost} lost, {foreign} foreign, {len(problems)} wrong answers; checks by both: exit {checks}"
        )
        row(
            "term",
            fault,
            count,
            "every acknowledged epoch is there; both programs give the same bytes",
            seen,
            load.acknowledged
            and turned == count
            and codes == {0}
            and checks == [0, 0]
            and not (lost or foreign or problems),
            problems=problems[:5],
        )


def message(conversation, text):
    body = json.dumps(request(text)).encode()
    head = f"POST /conversations/{conversation}/turn HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def go_away(server, conversation, text, chance):
    """Sends some of a request, reads some of its answer, and goes, politely or not."""
    whole = message(conversation, text)
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        sent = chance.choice([len(whole), len(whole), chance.randrange(1, len(whole) + 1)])
        connection.sendall(whole[:sent])
        if chance.random() < 0.5:
            # With 0 the system sends a reset in place of an end.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if sent == len(whole) and chance.random() < 0.6:
            connection.recv(chance.randrange(1, 4000))


def gone(short):
    """Clients go away at any byte, while conversations of others go on."""
    count = settings.count or (100 if short else 8_000)
    with folder() as place:
        store = place / "proem.db"
        server = Server(place, store)
        load = Load([server], "others", threads=2)
        until(20, lambda: len(load.answered) > 50, "answers")
        texts = {f"gone-{number}": text_of("gone", number) for number in range(count // 4)}
        load.tried |= {(name, 1): text for name, text in texts.items()}
        quiet = server.sockets(), server.threads()

        def leave(seed):
            own = random.Random(seed)
            for _ in range(count // 4):
                name = own.choice(list(texts))
                go_away(server, name, texts[name], own)

        together([lambda seed=seed: leave(seed) for seed in range(4)])
        load.end()
        # A half of a request is waited for 30 seconds, unless its client is known to be gone; all of these are.
        with contextlib.suppress(TimeoutError):
            until(20, lambda: server.sockets() <= quiet[0] and server.threads() <= quiet[1], "all is closed")
        after = server.sockets(), server.threads()
        client, wrong = Client(server), list(load.problems)
        for name, text in list(texts.items())[:200]:
            _, _, body = client.turn(name, text)
            if body.get("epoch") != 1 or body["carriers"]["system"] != text:
                wrong.append(f"another prompt for {name}")
        server.stop()
        lost, foreign = differences(store, load.acknowledged, load.tried)
        seen = (
            f"{len(load.acknowledged)} acknowledged epochs of others, {lost} lost, {foreign} foreign, {len(wrong)} wrong answers; "
            f"sockets {quiet[0]} before, {after[0]} after; threads {quiet[1]} and {after[1]}"
        )
        row(
            "term",
            "clients go away at any byte of request and answer",
            count // 4 * 4,
            "nothing is lost, one prompt for each epoch, nothing is left open",
            seen,
            load.acknowledged and not (lost or foreign or wrong) and after[0] <= quiet[0] and after[1] <= quiet[1] + 4,
            problems=wrong[:5],
        )


def run(short):
    asked_to_end(short)
    rolling(short)
    versions(short)
    gone(short)
