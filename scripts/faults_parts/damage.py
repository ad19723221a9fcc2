"""The store itself is damaged."""

import collections
import hashlib
import json
import os
import random
import re
import resource
import signal
import sqlite3
import subprocess
import threading
import time
from typing import Any

from .clients import Client, exported, request, text_of
from .report import row, skipped
from .runs import (
    IS_ROOT,
    NotStarted,
    Server,
    environment,
    folder,
    mount,
    mounts,
    proem,
    settings,
    spawn,
    started,
    unmount,
)


class Sample:
    """A store with some conversations in it, and what each of them must answer."""

    def __init__(self, place, count=20):
        self.place, self.store = place / "data", place / "data" / "proem.db"
        self.place.mkdir()
        self.slowest = 0.0
        self.texts = {f"c-{number}": text_of("sample", number) for number in range(count)}
        server = Server(place, self.store)
        client = Client(server)
        for name, text in self.texts.items():
            assert client.turn(name, text)[0] == 200
        server.stop()
        with sqlite3.connect(self.store) as connection:  # All into one file.
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()

    def wrong_answers(self, server, rounds=3, damaged=False):
        """Asks for everything on many threads: right bytes, 503, or 500 about a damaged file are fine, anything else not."""
        refused: collections.Counter[Any] = collections.Counter()
        wrong = []
        end = time.monotonic() + 5

        def check(name, what, answer, is_right):
            status, headers, body = answer
            if status == 503 and "Retry-After" not in headers:
                wrong.append("503 without Retry-After")
            is_known = damaged and status == 500 and body.get("code") == "store_damaged"
            if status != 503 and not is_known and not (status == 200 and is_right(body)):
                wrong.append(f"{what}: {status} {body.get('code', 'with other content')}")

        def ask():
            client = Client(server)
            for name, text in self.texts.items():
                if time.monotonic() > end:
                    return
                begun = time.monotonic()
                answer = client.turn(name, "another one")
                self.slowest = max(self.slowest, time.monotonic() - begun)
                refused[answer[0]] += 1
                check(name, "turn", answer, lambda body: body["carriers"]["system"] == text)
                check(
                    name,
                    "GET of one",
                    client.ask("GET", f"/conversations/{name}"),
                    lambda body: body["carriers"]["system"] == text,
                )
                check(
                    name,
                    "list",
                    client.ask("GET", "/conversations?limit=200"),
                    lambda body: {item["conversation"] for item in body["conversations"]} >= self.texts.keys(),
                )

        threads = [threading.Thread(target=ask, daemon=True) for _ in range(2 * rounds)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return wrong, refused


def under_a_server(
    fault, damage, expected="right bytes or 503; nothing new is acknowledged", may_write=False, damaged=False
):
    """Damages the file under a running server. With `damaged`, an answer may be an error that says so."""
    with folder() as place:
        sample = Sample(place)
        server = Server(place, sample.store)
        Client(server).ask("GET", "/conversations")
        other = damage(sample, place)
        client = Client(server)
        status, headers, _ = client.turn("new", "a new one")
        wrong, refused = sample.wrong_answers(server, damaged=damaged)
        if status == 200 and not may_write:
            wrong.append("a new conversation was acknowledged")
        if status == 503 and "Retry-After" not in headers:
            wrong.append("503 without Retry-After")
        lives = client.ask("GET", "/healthz")[0] == 200
        seen = f"new: {status}; known: {dict(refused)}; slowest {sample.slowest:.1f} s; {len(wrong)} wrong answers"
        seen += f", such as: {collections.Counter(wrong).most_common(1)[0][0]}" if wrong else ""
        server.stop()
        if other:
            other.stop()
        # A request may wait ten seconds for a lock, but not queue behind others that do.
        is_quick = sample.slowest < 12
        row("damage", fault, 1, expected, seen, lives and is_quick and not wrong, wrong=sorted(set(wrong))[:8])


def refuses_to_start(fault, prepare, words, untouched=True):
    """Damages the file, then starts a server on it: it must say what is wrong, and leave the file alone."""
    with folder() as place:
        sample = Sample(place)
        prepare(sample)
        before = sample.store.read_bytes() if sample.store.is_file() else None
        problems = []
        try:
            server = Server(place, sample.store)
            listed = Client(server).ask("GET", "/conversations")[2]["conversations"]
            problems.append(f"the server starts, and lists {len(listed)} conversations")
            server.stop()
        except NotStarted as error:
            said = error.text.strip()
            if error.code not in (2, 3) or not said.startswith("error: ") or not re.search(words, said):
                problems.append(f"unclear: exit {error.code}: {said}")
        code, _, complaint = proem("store", "export", "--store", sample.store)
        if code == 0:
            problems.append("export succeeds")
        if "panicked" in complaint:
            problems.append("a panic")
        after = sample.store.read_bytes() if sample.store.is_file() else None
        if untouched and before != after:
            problems.append("the file was changed")
        seen = "; ".join(problems) or said.splitlines()[0].replace(str(sample.place), "…")
        row("damage", fault, 1, "a clear error, and the file stays as it is", seen, not problems)


def flips(short):
    """One bit at a time: it is found, or nothing is different."""
    count, chance = (20 if short else 1000), random.Random(23)
    with folder() as place:
        sample = Sample(place)
        whole, (_, original, _) = sample.store.read_bytes(), proem("store", "export", "--store", sample.store)
        found = same = 0
        silent, wrong = [], []
        for _ in range(count):
            for leftover in sample.place.glob("proem.db*"):
                leftover.unlink()
            at, bit = chance.randrange(len(whole)), 1 << chance.randrange(8)
            sample.store.write_bytes(whole[:at] + bytes([whole[at] ^ bit]) + whole[at + 1 :])
            check, _said, complaint = proem("store", "check", "--store", sample.store)
            code, out, error = proem("store", "export", "--store", sample.store)
            if "panicked" in complaint + error:
                wrong.append(f"a panic at byte {at}")
            elif check != 0:
                found += 1
            elif code == 0 and out == original:
                same += 1
            elif code != 0:
                wrong.append(f"byte {at}: check finds nothing, export fails: {error.strip()}")
            else:
                changed = set(out.splitlines()) - set(original.splitlines())
                silent.append([*sorted(changed)[:1], at])
            # Whatever check says: the text of a prompt is the one that was frozen, or an error.
            if code == 0:
                for line in map(json.loads, out.splitlines()):
                    if line["kind"] == "text" and hashlib.sha256(line["text"].encode()).hexdigest() != line["digest"]:
                        wrong.append(f"byte {at}: another text under a digest")
        row(
            "damage",
            "one bit of the file is flipped, prompts",
            count,
            "an error, or the very same bytes",
            f"{found} found, {same} without effect, {len(wrong)} wrong",
            not wrong,
            wrong=wrong[:5],
        )
        row(
            "damage",
            "one bit of the file is flipped, what stands beside prompts",
            count,
            "`store check` finds it",
            f"{len(silent)} changes not found",
            not silent,
            silent=silent[:5],
        )


def full_disk():
    with folder() as place:
        data, options = place / "disk", {}
        data.mkdir()
        if not (IS_ROOT and mount(data, "-t", "tmpfs", "-o", "size=2m", "tmpfs")):
            # A limit for the size of a file does it, too; without the signal it is an error of `write`.
            def limit():
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                resource.setrlimit(resource.RLIMIT_FSIZE, (2 << 20, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))

            options = {"preexec_fn": limit}
        store, acknowledged, problems = data / "proem.db", {}, []
        server = Server(place, store, **options)
        client, refused = Client(server), 0
        for number in range(3000):
            name, text = f"c-{number}", text_of("full", number)
            status, headers, body = client.turn(name, text)
            if status == 200:
                acknowledged[name, 1] = text
            elif status == 503 and "Retry-After" in headers:
                refused += 1
            else:
                problems.append(f"{status} {body}")
            if refused >= 20:
                break
        for (name, _), text in random.Random(3).sample(sorted(acknowledged.items()), 20):
            status, _, body = client.turn(name, text)
            if status != 200 or body["carriers"]["system"] != text:
                problems.append(f"a known conversation: {status}")
            # What a turn changes is remembered, and there is no room for it.
            status, headers, _ = client.turn(name, "another one " * 9000)
            if status != 503 or "Retry-After" not in headers:
                problems.append(f"a change of a known conversation: {status}")
        way, after = "a limit of the file's size", "not tried"
        if str(data) in mounts:
            way = "a disk of 2 MB"
            subprocess.run(["mount", "-o", "remount,size=64m", data], check=True)
            status = client.turn("after", text_of("after"))[0]
            after = f"a new one {status}"
            if status != 200:
                problems.append("no recovery when there is room again")
            acknowledged["after", 1] = text_of("after")
        server.stop()
        code, _out, _ = proem("store", "check", "--store", store)
        stored, doubled = exported(store)
        lost = sum(stored.get(key, ("", ""))[1] != text for key, text in acknowledged.items())
        if str(data) in mounts:
            unmount(data)
        row(
            "damage",
            f"the disk is full ({way})",
            refused,
            "503 with Retry-After; nothing acknowledged is lost; recovery by itself",
            f"{refused} × 503, {len(acknowledged)} acknowledged, {lost} lost; when there is room: {after}",
            refused and not (lost or doubled or code or problems),
            problems=problems[:5],
        )


def read_only():
    with folder() as place:
        sample = Sample(place)
        if IS_ROOT:
            # Root may write everywhere but on a file system that is read-only.
            if not mount(sample.place, "--bind", sample.place):
                skipped("damage", "the folder is read-only", "cannot mount here")
                return
            subprocess.run(["mount", "-o", "remount,bind,ro", sample.place], check=True)
        else:
            sample.store.chmod(0o400)
            sample.place.chmod(0o500)
        try:
            server = Server(place, sample.store)
            wrong, refused = sample.wrong_answers(server)
            status = Client(server).turn("new", "a new one")[0]
            seen, is_right = f"starts; new: {status}; known: {dict(refused)}", status == 503 and not wrong
            server.stop()
        except NotStarted as error:
            seen = error.text.strip().splitlines()[0].replace(str(sample.place), "…")
            is_right = error.code == 3 and seen.startswith("error: ")
        if IS_ROOT:
            unmount(sample.place)
        else:
            sample.place.chmod(0o700)
            sample.store.chmod(0o600)
        server = Server(place, sample.store)
        wrong, _ = sample.wrong_answers(server)
        server.stop()
        row(
            "damage",
            "the folder is read-only",
            1,
            "a clear error; afterwards everything is there",
            seen,
            is_right and not wrong,
        )


def backup():
    """A conversation gets a new epoch while an export runs, which waits for its reader meanwhile."""
    with folder() as place:
        count, store = 700, place / "proem.db"
        server = Server(place, store)
        client = Client(server)
        for number in range(count):
            assert client.turn(f"c-{number}", text_of("backup", number))[0] == 200
        export = spawn(
            [settings.proem, "store", "export", "--store", str(store)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(place),
        )
        export.stdout.read(1)
        time.sleep(0.5)
        status = client.ask("POST", "/conversations/c-0/compaction?commit=true", request("a new one"))[0]
        lines = ("{" + export.communicate()[0].decode()).splitlines()
        started.remove(export)
        server.stop()
        found = {line["conversation"] for line in map(json.loads, lines) if line["kind"] == "epoch"}
        row(
            "damage",
            "an export while a conversation is compacted",
            count,
            "every conversation is in it",
            f"compaction {status}; exit {export.returncode}; {count - len(found)} conversations are missing",
            status == 200 and export.returncode == 0 and len(found) == count,
        )


def run(short):
    def remove(sample, place):
        for path in sample.place.glob("proem.db*"):
            path.unlink()

    def replace(sample, place):
        remove(sample, place)
        return Server(place, sample.store)

    def truncate(size):
        def work(sample, place=None):
            os.truncate(sample.store, int(sample.store.stat().st_size * size) // 4096 * 4096)

        return work

    def scribble(sample, place=None):
        size, chance = sample.store.stat().st_size, random.Random(5)
        with open(sample.store, "r+b") as file:
            for at in range(4096 * 4, size, 4096):
                file.seek(at + chance.randrange(4000))
                file.write(bytes(chance.randrange(256) for _ in range(64)))

    def later(sample):
        connection = sqlite3.connect(sample.store)
        connection.execute("PRAGMA user_version = 99")
        connection.close()
        for path in sample.place.glob("proem.db-*"):
            path.unlink()

    def foreign(sample):
        remove(sample, None)
        connection = sqlite3.connect(sample.store)
        connection.executescript("CREATE TABLE music (title TEXT); INSERT INTO music VALUES ('x');")
        connection.close()

    def lose_file_keep_log(sample):
        """The state after a crash whose store file was removed without its log."""
        server = Server(sample.place.parent, sample.store)
        assert Client(server).turn("late", "a late one")[0] == 200
        server.kill()
        sample.store.unlink()

    under_a_server("the file is removed under a server", remove)
    under_a_server("the file is removed and another store put there", replace)
    under_a_server("the file is cut to nothing under a server", truncate(0))
    found = "right bytes, 503, or 500 that names the damage"
    half = "the file is cut to half under a server"
    under_a_server(half, truncate(0.5), f"{found}; nothing new is acknowledged", damaged=True)
    overwritten = "64 bytes of every page are overwritten under a server"
    under_a_server(overwritten, scribble, found, may_write=True, damaged=True)
    refuses_to_start("the file is cut to nothing, then a start", truncate(0), "damaged|empty")
    refuses_to_start("the file is cut to half, then a start", truncate(0.5), "damaged|malformed")
    refuses_to_start(
        "the file is gone and its log is not, then a start", lose_file_keep_log, "log|missing|removed", untouched=False
    )
    refuses_to_start("tables of a later proem", later, "supports versions up to")
    refuses_to_start(
        "a text in place of the store",
        lambda sample: sample.store.write_text("no database\n" * 500),
        "not a SQLite database",
    )
    refuses_to_start("a database of something else", foreign, "another program|not a proem store")
    flips(short)
    read_only()
    full_disk()
    backup()
