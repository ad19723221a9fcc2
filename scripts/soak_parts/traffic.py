"""Agents: each has conversations of its own, and remembers what every one of them was told."""

import collections
import hashlib
import http.client
import json
import random
import socket
import threading
import time

from faults_parts.clients import Client, request
from faults_parts.term import go_away

AGENTS = 8
LIVE_MIN = 5
LIVE_MAX = 100  # Conversations of one agent; an older one is removed for each that is begun beyond that.
PROMPT_BYTES = 10_000
# What agents do, and how often.
MIX = {"later": 58, "look": 12, "first": 8, "preview": 5, "bad": 5, "drift": 4, "gone": 3, "compact": 3, "remove": 2}
# First turns: a profile, and whether the conversation brings a prompt of its own, one that others bring, too, or none.
FIRST = [
    ("template", "own"),
    ("template", "own"),
    ("template", "shared"),
    ("template", "shared"),
    ("default", None),
    ("default", "shared"),
    ("layers", None),
    ("boundary", None),
    ("engraving", None),
    ("codex", None),
]
# What belongs to one turn has a carrier of its own, or follows a line.
OF_TURN = "turn"
BOUNDARY = "=== DYNAMIC CONTEXT"
HEAD = "Host: 127.0.0.1\r\nContent-Type: application/json\r\n"
BAD = [
    (400, f"POST /conversations/bad/turn HTTP/1.1\r\n{HEAD}Content-Length: 8\r\n\r\n" + '{"cwd": '),
    (400, f"POST /conversations/no%20name/turn HTTP/1.1\r\n{HEAD}Content-Length: 2\r\n\r\n{{}}"),
    (403, f"POST /conversations/bad/turn HTTP/1.1\r\n{HEAD}Content-Length: 15\r\n\r\n" + '{"cwd": "/etc"}'),
    (404, f"GET /conversations/nobody HTTP/1.1\r\n{HEAD}\r\n"),
    (405, f"PATCH /conversations/nobody HTTP/1.1\r\n{HEAD}Content-Length: 0\r\n\r\n"),
    (413, f"POST /conversations/bad/turn HTTP/1.1\r\n{HEAD}Content-Length: 17000000\r\n\r\n"),
    (415, "POST /preview HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}"),
    (421, "GET /conversations HTTP/1.1\r\nHost: elsewhere.example\r\n\r\n"),
]


def prompt(*words, size=PROMPT_BYTES):
    """A prompt of that many bytes, not all of which are ASCII."""
    seed = " ".join(map(str, words))
    line = f"ä line of {seed} that says what to do, and what to leave alone.\n"
    return (f"You are {seed}.\n" + line * (size // len(line.encode()) + 1))[: size - 200] + "\n"


class Conversation:
    """The expected answers of a conversation: the epoch, and the same bytes while it lasts."""

    def __init__(self, name, body, text=None):
        self.name, self.body, self.text = name, body, text  # `text` is its whole prompt, where that is known.
        self.epoch, self.told, self.tag, self.turns = 1, None, None, 0

    def differs(self, body):
        """The problem of the answer to a turn, if any."""
        carriers = {name: text.partition(BOUNDARY)[0] for name, text in body["carriers"].items() if name != OF_TURN}
        told = body["digest"], hashlib.sha256(json.dumps(carriers, sort_keys=True).encode()).hexdigest()
        self.turns += 1
        if body["epoch"] != self.epoch:
            return f"{self.name}: epoch {body['epoch']}, not {self.epoch}"
        if self.text is not None and carriers != {"system": self.text}:
            return f"{self.name}: another prompt than the one that was asked for"
        if self.told is not None and told != self.told:
            return f"{self.name}: another prompt in turn {self.turns}"
        self.told = told
        return None


class Record:
    """The observations of all agents, by phase."""

    def __init__(self):
        self.phase = "warm"
        self.statuses = collections.defaultdict(collections.Counter)
        self.times = collections.defaultdict(list)  # Seconds of later turns whose prompt needs nothing but the store.
        self.done: collections.Counter[str] = collections.Counter()
        self.problems, self.wrong_prompts = [], []
        self.compared = 0

    def note(self, phase, status, headers, expected):
        """Counts the begin and the end of an overload as part of it."""
        phase = "overload" if self.phase == "overload" else phase
        self.statuses[phase][status] += 1
        if status == 503:
            if "retry-after" not in {name.lower() for name in headers}:
                self.problems.append("503 without Retry-After")
            if phase != "overload":
                self.problems.append(f"503 without overload, {phase}")
        elif status not in expected:
            self.problems.append(f"{status}, not {expected[0]}, {phase}")
        return phase


class Agent:
    """One connection that is kept, and conversations that only this agent has."""

    def __init__(self, server, record, label, rate, seed):
        self.server, self.record, self.label, self.rate = server, record, label, rate
        self.client, self.chance, self.count = Client(server), random.Random(seed), 0
        self.live, self.is_over = [], threading.Event()
        self.thread = threading.Thread(target=self.work, daemon=True)

    def work(self):
        """Skips requests that are late, so that a slow moment is not followed by a burst."""
        names, weights = list(MIX), list(MIX.values())
        due = time.monotonic() + self.chance.random() / self.rate
        while not self.is_over.wait(max(0.0, due - time.monotonic())):
            due = max(due + self.chance.expovariate(self.rate), time.monotonic() - 0.1)
            what = self.chance.choices(names, weights)[0]
            self.record.done[what] += 1
            try:
                getattr(self, what)()
            except Exception as error:  # An agent that ended unseen would look like one that is content.
                self.record.problems.append(f"{what}: {error!r}")

    def end(self):
        self.is_over.set()
        self.thread.join()

    def ask(self, expected, method, path, body=None, headers=()):
        """The answer, if it is what was expected."""
        phase = self.record.phase
        status, headers, body = self.client.ask(method, path, body, headers)
        self.record.note(phase, status, headers, expected)
        return (headers, body) if status in expected else None

    def any(self):
        """A conversation, mostly one of the latest; a first one if there is none."""
        if not self.live:
            self.first()
        if not self.live:
            return None
        return self.live[max(self.chance.randrange(len(self.live)), self.chance.randrange(len(self.live)))]

    def turn(self, conversation, body):
        phase, begun = self.record.phase, time.monotonic()
        answer = self.ask([200], "POST", f"/conversations/{conversation.name}/turn", body)
        taken = time.monotonic() - begun
        if answer is None:
            return False
        if conversation.text is not None and conversation.told is not None and phase == self.record.phase:
            self.record.times[phase].append(taken)
        self.record.compared += 1
        wrong = conversation.differs(answer[1])
        if wrong:
            self.record.wrong_prompts.append(wrong)
        return True

    def first(self):
        profile, kind = self.chance.choice(FIRST)
        self.count += 1
        name = f"{self.label}-{self.count}"
        text = None
        if kind:
            text = prompt(name if kind == "own" else f"one of {self.chance.randrange(5)}")
        body = {"profile": profile} | ({"template": text} if text else {})
        conversation = Conversation(name, body, text if profile == "template" else None)
        if self.turn(conversation, body):
            self.live.append(conversation)
        if len(self.live) > LIVE_MAX:
            self.forget(self.live.pop(0))

    def later(self):
        """Most say what the user says, some bring the request again, as agents without memory do."""
        conversation = self.any()
        if conversation:
            self.turn(
                conversation, self.chance.choice([{}, {"prompt": "go on"}, {"prompt": "go on"}, conversation.body])
            )

    def look(self):
        conversation = self.any()
        if not conversation:
            return
        known = {"If-None-Match": conversation.tag} if conversation.tag else {}
        answer = self.ask([304] if known else [200], "GET", f"/conversations/{conversation.name}", None, known)
        if answer:
            conversation.tag = answer[0]["ETag"]

    def preview(self):
        profile, _ = self.chance.choice(FIRST)
        self.ask(
            [200],
            "POST",
            "/preview",
            {"profile": profile} | ({"template": prompt("a preview")} if profile == "template" else {}),
        )

    def drift(self):
        conversation = self.any()
        if conversation:
            self.ask([200], "GET", f"/conversations/{conversation.name}/drift")

    def compact(self):
        """In one step or in two; what does not come to an end is not looked at any more."""
        conversation = self.any()
        if not conversation:
            return
        body, text = None, conversation.text
        if text is not None:
            text = prompt(conversation.name, "after", conversation.epoch)
            body = request(text)
        self.live.remove(conversation)
        path = f"/conversations/{conversation.name}/compaction"
        if self.chance.random() < 0.5:
            answer = self.ask([200], "POST", f"{path}?commit=true", body)
        else:
            answer = self.ask([200], "POST", path, body)
            answer = answer and self.ask([200], "POST", f"{path}/{answer[1]['token']}/commit")
        if answer:
            conversation.epoch, conversation.told, conversation.tag, conversation.text = (
                conversation.epoch + 1,
                None,
                None,
                text,
            )
            if self.turn(conversation, {}):
                self.live.append(conversation)

    def remove(self):
        if len(self.live) > LIVE_MIN:
            self.forget(self.live.pop(self.chance.randrange(len(self.live))))

    def forget(self, conversation):
        if self.ask([204], "DELETE", f"/conversations/{conversation.name}"):
            self.ask([404], "GET", f"/conversations/{conversation.name}")

    def gone(self):
        """The client disconnects in the middle; a later client gets the prompt of the request."""
        self.count += 1
        name = f"{self.label}-{self.count}"
        text = prompt(name)
        go_away(self.server, name, text, self.chance)
        conversation = Conversation(name, request(text), text)
        if self.turn(conversation, conversation.body):
            self.live.append(conversation)

    def bad(self):
        expected, message = self.chance.choice(BAD)
        phase = self.record.phase
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=60) as connection:
            connection.sendall(message.encode())
            answer = http.client.HTTPResponse(connection)
            answer.begin()
            self.record.note(phase, answer.status, answer.headers, [expected])


def compare_all(server, agents, record):
    """Turns of every conversation that is left: how many."""
    client, count = Client(server), 0
    for agent in agents:
        for conversation in agent.live:
            status, headers, body = client.ask("POST", f"/conversations/{conversation.name}/turn", {})
            record.note("end", status, headers, [200])
            if status == 200:
                count += 1
                wrong = conversation.differs(body)
                if wrong:
                    record.wrong_prompts.append(f"at the end: {wrong}")
    return count
