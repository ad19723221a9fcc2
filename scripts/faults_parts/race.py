"""Many begin one conversation at once."""

import collections
import hashlib
import http.client
import sqlite3
import subprocess
import threading
import time
from typing import Any

from .clients import Client, exported, text_of, together
from .report import row
from .runs import Server, folder, postgres, proem, settings, spawn, started

CONTROL_COUNT = 1000


def begin_at_once(callers, count):
    """The answers to all callers, by conversation: all request the same one at the same moment."""
    answers, line = [[None] * count for _ in callers], threading.Barrier(len(callers))

    def work(index):
        for number in range(count):
            line.wait()
            try:
                answers[index][number] = callers[index](f"race-{number}", text_of(number, "by", index))
            except (OSError, http.client.HTTPException, sqlite3.Error) as error:
                answers[index][number] = 0, {}, {"code": repr(error)}

    together([lambda index=index: work(index) for index in range(len(callers))])
    return [[caller[number] for caller in answers] for number in range(count)]


def good(given):
    return [body for status, _, body in given if status == 200]


def is_split(given):
    """True if callers got different prompts for one conversation."""
    return len({(body["digest"], body["carriers"]["system"], body["epoch"]) for body in good(given)}) != 1


def builders(given):
    return [index for index, (status, _, body) in enumerate(given) if status == 200 and not body["reused"]]


def race(place, store, servers, count, name):
    begun = time.monotonic()
    group = [Server(place, store) for _ in range(servers)]
    answers = begin_at_once([Client(server).turn for server in group], count)
    seconds = time.monotonic() - begun
    for server in group:
        server.stop()
    errors = sum(status != 200 for given in answers for status, _, _ in given)
    several = sum(map(is_split, answers))
    unclear = sum(len(builders(given)) != 1 for given in answers)
    wins: collections.Counter[Any] = collections.Counter()
    expected = {}
    for number, given in enumerate(answers):
        for first in builders(given)[:1]:
            wins[first] += 1
            expected[f"race-{number}", 1] = good(given)[0]["digest"], text_of(number, "by", first)
    stored, doubled = exported(store)
    wrong = sum(stored.get(key) != value for key, value in expected.items()) + len(stored.keys() ^ expected.keys())
    check = proem("store", "check", "--store", store)[0]
    seen = (
        f"{errors} errors, {several} with two prompts, {unclear} without one builder, {wrong} wrong and "
        f"{doubled} doubled rows; won by {len(wins)} of {servers} servers"
    )
    row(
        "race",
        f"{servers} servers begin a conversation at once, {name}",
        count,
        "one epoch each, all callers the same bytes, no error",
        seen,
        not (errors or several or unclear or wrong or doubled or check),
        seconds=round(seconds, 1),
        requests=count * servers,
        wins=sorted(wins.values()),
    )


class Naive:
    """The usual way: nothing there, so build and write. `ask` runs a statement and gives its first value, or None."""

    TABLE = "CREATE TABLE prompt (conversation TEXT PRIMARY KEY, body TEXT NOT NULL)"

    def __init__(self, ask):
        self.ask = ask

    def turn(self, conversation, text):
        found = self.ask(f"SELECT body FROM prompt WHERE conversation = '{conversation}'")
        is_reused, body = found is not None, found
        if not is_reused:
            body = hashlib.sha256(text.encode()).hexdigest()
            time.sleep(0.001)  # It takes as long as a build.
            self.ask(
                f"INSERT INTO prompt VALUES ('{conversation}', '{body}') ON CONFLICT (conversation) DO UPDATE SET body = excluded.body"
            )
        return 200, {}, {"digest": body, "carriers": {"system": body}, "epoch": 1, "reused": is_reused}


def control(asks, count, name):
    """The control: shows that the race is observable when the store does not prevent it."""
    Naive(asks[0]).ask(Naive.TABLE)
    answers = begin_at_once([Naive(ask).turn for ask in asks], count)
    several, unclear = sum(map(is_split, answers)), sum(len(builders(given)) != 1 for given in answers)
    row(
        "race",
        f"control: {len(asks)} clients find nothing, build and write, {name}",
        count,
        "two prompts for a conversation are seen",
        f"{several} with two prompts, {unclear} without one builder",
        several and unclear,
    )


def of_sqlite(path):
    connection = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")

    def ask(statement):
        found = connection.execute(statement).fetchone()
        return found and found[0]

    return ask


class Psql:
    """Python has no client of its own for PostgreSQL, so psql is one."""

    def __init__(self, server, url):
        command = [str(server.programs / "psql"), "-XqAt", url]
        self.process = spawn(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def ask(self, statement):
        self.process.stdin.write(f"{statement};\n\\echo done\n")
        self.process.stdin.flush()
        found = []
        while (line := self.process.stdout.readline()) != "done\n":
            if not line:
                raise ConnectionError("psql ended")
            found.append(line.rstrip("\n"))
        return found[0] if found else None

    def end(self):
        self.process.communicate()
        started.remove(self.process)


def by_turns():
    """A conversation goes to and fro between servers that were started in different folders, as behind a balancer."""
    with folder() as place:
        places = [place / f"work-{name}" for name in "ab"]
        for path in places:
            path.mkdir()
        servers = [Server(place, place / "proem.db", work=path.name, workspaces=places) for path in places]
        answers = [
            Client(servers[turn % 2]).ask("POST", "/conversations/by-turns/turn", {"prompt": f"turn {turn}"})
            for turn in range(10)
        ]
        digests = {body.get("digest") for _, _, body in answers}
        for server in servers:
            server.stop()
        row(
            "race",
            "one conversation by turns on 2 servers from different folders",
            len(answers),
            "one epoch, the same bytes in every turn",
            f"{answers[-1][2].get('epoch')} epochs, {len(digests)} digests",
            len(digests) == 1 and all(status == 200 for status, _, _ in answers),
        )


def run(short):
    count = settings.count or (50 if short else 10_000)
    by_turns()
    with folder() as place:
        control([of_sqlite(place / "naive.db") for _ in range(8)], min(count, CONTROL_COUNT), "SQLite")
        race(place, place / "proem.db", 8, count, "SQLite")
    with folder() as place, postgres(place, "race") as server:
        if server:
            url = server.database("naive")
            clients = [Psql(server, url) for _ in range(4)]
            control([client.ask for client in clients], min(count, CONTROL_COUNT), "PostgreSQL")
            for client in clients:
                client.end()
            race(place, server.database("race"), 4, count, "PostgreSQL")
