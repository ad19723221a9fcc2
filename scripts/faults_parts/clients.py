"""Clients, what they ask for, and what they remember of the answers."""

import collections
import contextlib
import hashlib
import http.client
import json
import threading
import time
from typing import Any

from .runs import proem


class Client:
    """One connection that is kept open, as an agent would."""

    def __init__(self, server, seconds_max=60):
        self.server, self.used, self.seconds_max = server, 0.0, seconds_max
        self.connection: http.client.HTTPConnection | None = None

    def ask(self, method, path, body=None, headers=()):
        # The server ends connections that are silent for ten seconds.
        if self.connection is None or time.monotonic() - self.used > 5:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=self.seconds_max)
        try:
            kind = {"Content-Type": "application/json"} if body is not None else {}
            self.connection.request(method, path, None if body is None else json.dumps(body), kind | dict(headers))
            answer = self.connection.getresponse()
            body = json.loads(answer.read() or b"{}")
            self.used = time.monotonic()
            return answer.status, answer.headers, body
        except (OSError, http.client.HTTPException):
            self.close()
            raise

    def close(self):
        if self.connection:
            self.connection.close()
            self.connection = None

    def turn(self, conversation, template):
        return self.ask("POST", f"/conversations/{conversation}/turn", request(template))


def request(template):
    return {"profile": "template", "template": template}


def text_of(*words):
    """A unique prompt: some are small, some fill several pages of the store."""
    seed = " ".join(map(str, words))
    size = int(hashlib.sha256(seed.encode()).hexdigest()[:4], 16) % 9000
    return f"You are {seed}.\n" + "ä plain line of text\n" * (size // 21)


def exported(store):
    """The stored data: the text of each epoch, and how often each epoch and text occurs."""
    code, out, error = proem("store", "export", "--store", store)
    if code != 0:
        raise ValueError(f"export: exit {code}: {error.strip()}")
    counts: collections.Counter[Any] = collections.Counter()
    texts, epochs = {}, {}
    for line in map(json.loads, out.splitlines()):
        if line["kind"] == "text":
            counts["text", line["digest"]] += 1
            texts[line["digest"]] = line["text"]
        elif line["kind"] == "epoch":
            key = line["conversation"], line["number"]
            counts["epoch", *key] += 1
            epochs[key] = line["digest"], texts[line["texts"]["system"]]
    return epochs, sum(1 for count in counts.values() if count != 1)


def differences(store, acknowledged, tried):
    """Counts acknowledged epochs that are not stored byte for byte, and stored epochs that no client sent or that are doubled."""
    stored, doubled = exported(store)
    lost = sum(stored.get(key, ("", ""))[1] != text for key, text in acknowledged.items())
    foreign = sum(tried.get(key) != text for key, (_, text) in stored.items())
    return lost, foreign + doubled


def together(works):
    """Does all of that at once, each on a thread of its own, and waits for all."""
    threads = [threading.Thread(target=work, daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class Load:
    """Clients that begin conversations and compact them, and remember what was acknowledged."""

    memory: Any = dict  # What acknowledged epochs are kept in.

    def __init__(self, servers, label, threads=4):
        self.acknowledged, self.tried, self.problems = self.memory(), {}, []
        self.statuses: collections.Counter[int] = collections.Counter()
        self.answered = []  # When, and with which status.
        self.is_over = threading.Event()
        self.threads = [
            threading.Thread(target=self.work, args=[servers[index % len(servers)], f"{label}-{index}"], daemon=True)
            for index in range(threads)
        ]
        for thread in self.threads:
            thread.start()

    def end(self):
        self.is_over.set()
        for thread in self.threads:
            thread.join()

    def work(self, server, label):
        client, number = Client(server), 0
        while not self.is_over.is_set():
            number += 1
            with contextlib.suppress(OSError, http.client.HTTPException):
                self.live(client, f"{label}-{number}")

    def live(self, client, conversation):
        """A conversation: its first turn, a later one with another template, a compaction, a turn behind it."""
        first, second = text_of(conversation, 1), text_of(conversation, 2)
        self.tried[conversation, 1], self.tried[conversation, 2] = first, second
        for _ in range(2):
            self.expect(client.turn(conversation, first), conversation, 1, first)
        path = f"/conversations/{conversation}/compaction?commit=true"
        answer = self.note(client.ask("POST", path, request(second)))
        if answer and (conversation, 1) in self.acknowledged:
            self.acknowledged[conversation, 2] = second
            self.expect(client.turn(conversation, "another one"), conversation, 2, second)

    def note(self, answer):
        status, headers, body = answer
        self.statuses[status] += 1
        self.answered.append((time.monotonic(), status))
        if status == 503 and "Retry-After" not in headers:
            self.problems.append("503 without Retry-After")
        if status not in (200, 503) and not (status == 404 and body.get("code") == "no_conversation"):
            self.problems.append(f"{status} {body}")
        return body if status == 200 else None

    def expect(self, answer, conversation, epoch, text):
        body = self.note(answer)
        if answer[0] == 404:
            self.problems.append(f"404 for {conversation}")
        if not body:
            return
        if (body["epoch"], body["carriers"]["system"]) != (epoch, text):
            self.problems.append(f"another prompt for {conversation}: epoch {body['epoch']}")
        self.acknowledged[conversation, epoch] = text
