"""A turn over HTTP: the CPU time of the server for each request, as the system counts it."""

import collections
import contextlib
import json
import os
import pathlib
import re
import subprocess
import tempfile
import time
import urllib.request

import start

TURN = 'wrk.method = "POST"\nwrk.headers["Content-Type"] = "application/json"\nwrk.body = "{}"\n'
MANY = (
    TURN
    + """local number = 0
request = function()
  number = (number + 1) %% %d
  return wrk.format(nil, string.format("/conversations/conversation-%%09d/turn", number))
end
"""
)
FROM_MEMORY, FROM_SQLITE, UNCHANGED = (
    "a later turn, from memory",
    "a later turn, from SQLite",
    "a conversation that did not change (304)",
)
Candidate = collections.namedtuple("Candidate", "case who server path script growth", defaults=[None])
Server = collections.namedtuple("Server", "process address")


def measure(setting):
    # Many short spells rather than a few long ones: those that a neighbour disturbs do not move the median then.
    seconds, spells = 1, setting.turns if setting.is_short else 4 * setting.turns
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        candidates = gather(setting, folder, stack)
        # What is kept in memory is measured there: every conversation is asked for before.
        for candidate in candidates:
            drive(candidate, folder, 1)
        samples: list[list[float]] = [[] for _ in candidates]
        for _ in range(spells):
            for candidate, found in zip(candidates, samples):
                found.append(drive(candidate, folder, seconds))
    return [line(candidate, found) for candidate, found in zip(candidates, samples)]


def line(candidate, samples):
    growth = dict(zip(["growth", "size"], candidate.growth or []))
    return {
        "row": "P15",
        "case": candidate.case,
        "who": candidate.who,
        "unit": "ns",
        "take": "median",
        "samples": samples,
    } | growth


def gather(setting, folder, stack):
    """Starts every server, and returns its requests."""

    def served(store, cwd, home):
        command = [setting.proem, "serve", "--listen", "127.0.0.1:0", "--store", store, "--workspace", cwd]
        return launch(command, cwd, home, folder / f"{store.name}-{cwd.parent.name}.log", stack)

    data = setting.data / "serve"
    distinct = served(data / "distinct.db", data, data / "home")
    one = "/conversations/conversation-000000001"
    answer, tag = post(distinct, f"{one}/turn", {}), etag(distinct, one)
    assert len(json.loads(answer)["carriers"]["system"]) > 16_000, answer[:500]
    (folder / "answer").write_bytes(answer)
    (folder / "empty").write_bytes(b"")
    (folder / "turn.lua").write_text(TURN)
    (folder / "known.lua").write_text(f"wrk.headers['If-None-Match'] = '{tag}'\n")
    (folder / "distinct.lua").write_text(MANY % 6_000)
    (folder / "many.lua").write_text(MANY % 1_000)

    def other(command, name, argument):
        return launch([*command, folder / argument], folder, folder, folder / f"{name}.log", stack)

    bare, nothing = (
        other(setting.bench("bare-axum"), "bare", "answer"),
        other(setting.bench("bare-axum"), "nothing", "empty"),
    )
    found = [
        Candidate(FROM_MEMORY, "floor", bare, f"{one}/turn", "turn.lua"),
        Candidate(FROM_MEMORY, "proem", distinct, f"{one}/turn", "turn.lua"),
        Candidate(UNCHANGED, "floor", nothing, one, "known.lua"),
        Candidate(UNCHANGED, "proem", distinct, one, "known.lua"),
        Candidate(FROM_SQLITE, "floor", bare, f"{one}/turn", "distinct.lua"),
        Candidate(FROM_SQLITE, "proem", distinct, f"{one}/turn", "distinct.lua"),
    ]
    for who, command in [("node", setting.node("server")), ("FastAPI", setting.python("server"))]:
        if command:
            found.append(Candidate(FROM_MEMORY, who, other(command, who, "answer"), f"{one}/turn", "turn.lua"))
    for count in [1_000] if setting.is_short else [1_000, 10_000, 100_000]:
        server = served(data / f"shared-{count}.db", data, data / "home")
        growth = ("stored conversations", count)
        found.append(
            Candidate(
                f"a later turn beside {count:,} conversations", "proem", server, f"{one}/turn", "many.lua", growth
            )
        )
    for count in [10, 100] if setting.is_short else [10, 100, 1_000, 5_000]:
        tree = setting.data / f"skills-{count}" / "tree"
        server = served(folder / f"tree-{count}.db", tree, tree.parent / "home")
        # The same prompt above every tree: a longer answer costs more by itself.
        post(server, "/conversations/c/turn", {"profile": "template", "template": "x" * 16_000})
        growth = ("skills in the tree", count)
        found.append(
            Candidate(
                f"a later turn above {count:,} skills", "proem", server, "/conversations/c/turn", "turn.lua", growth
            )
        )
    return found


def launch(command, cwd, home, log, stack):
    with open(log, "w") as out:
        process = subprocess.Popen(
            on_core(0, command), cwd=cwd, env=start.environment(HOME=home), stdout=out, stderr=subprocess.STDOUT
        )
    stack.callback(end, process)
    while process.poll() is None:
        found = re.search(r"listening on http://(127\.0\.0\.1:\d+)", log.read_text())
        if found:
            return Server(process, found[1])
        time.sleep(0.01)
    raise AssertionError(f"{command[0]} did not start: {log.read_text()}")


def on_core(number, command):
    """A command pinned to one core, so that client and server do not move each other. With one core, both share it."""
    cores = sorted(os.sched_getaffinity(0))
    return ["taskset", "--cpu-list", str(cores[number % len(cores)]), *map(str, command)]


def end(process):
    process.terminate()
    try:
        process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def post(server, path, body):
    headers = {"Content-Type": "application/json"}
    return urllib.request.urlopen(
        urllib.request.Request(f"http://{server.address}{path}", json.dumps(body).encode(), headers)
    ).read()


def etag(server, path):
    return urllib.request.urlopen(f"http://{server.address}{path}").headers["ETag"]


def cpu_seconds(process):
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def drive(candidate, folder, seconds):
    """Asks for a while on four kept connections; returns CPU nanoseconds for each request."""
    process, address = candidate.server
    command = [
        "wrk",
        "-t1",
        "-c4",
        f"-d{seconds}s",
        "-s",
        folder / candidate.script,
        f"http://{address}{candidate.path}",
    ]
    before = cpu_seconds(process)
    done = subprocess.run(on_core(1, command), capture_output=True, text=True, check=True).stdout
    assert "Non-2xx or 3xx" not in done and "Socket errors" not in done, f"{candidate.case}, {candidate.who}: {done}"
    requests = re.search(r"(\d+) requests in", done)
    assert requests, done
    return (cpu_seconds(process) - before) / int(requests[1]) * 1e9
