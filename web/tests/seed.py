#!/usr/bin/env python3
"""Adds observed conversations and their calls to a store that `proem serve` has made: for the browser tests.

Usage: seed.py STORE [CONVERSATIONS CALLS]

The same figures every time, up to the present day: calls are spread over the last 30 days. One transaction of SQL takes some
seconds, where the API would take minutes.
"""

import json
import random
import sqlite3
import sys
import time

DAY = 86_400_000
AGENTS = ["claude-code", "codex", "opencode", "pi"]
MODELS = {"claude-opus-5": ("anthropic", 5.0, 0.5, 6.25), "gpt-5.6": ("openai", 2.0, 0.2, 2.0)}
FOLDERS = ["/srv/billing-service", "/srv/search", "/srv/onboarding", "/srv/payments/api"]
MISSES = [
    ("system_changed", {"kind": "instruction_file", "path": "/srv/billing-service/src/AGENTS.md", "line": 10}, 0.40),
    ("tools_reordered", {"kind": "mcp_server", "name": "github"}, 0.20),
    ("system_changed", {"kind": "clock"}, 0.15),
    ("provider", {"kind": "provider"}, 0.15),
    ("tools_added", {"kind": "tool", "name": "fetch"}, 0.07),
    ("system_changed", {"kind": "agent_version", "by": "claude-code", "name": "2.1.326"}, 0.03),
]
SUMS = "calls, read, written, uncached, output, unpriced, list_price, lost_tokens, usd, saved_usd, lost_usd"


def verdict_of(numbers, number):
    """Chooses the verdict of a call: its word, its owner, and the share of the expected tokens that it lost."""
    if number == 0:
        return "cold_start", None, 0.0
    if numbers.random() > 0.03:
        return "hit", None, 0.0
    chance = numbers.random()
    for verdict, owner, share in MISSES:
        chance -= share
        if chance <= 0:
            return verdict, owner, numbers.uniform(0.3, 1.0)
    return "provider", {"kind": "provider"}, 1.0


def call(numbers, head, number, at, context):
    """Makes a call: its row, its record, and the tokens that it leaves in the cache."""
    provider, price, price_read, price_write = MODELS[head["model"]]
    added = numbers.randint(200, 2_500)
    expected = 0 if number == 0 else context
    verdict, owner, share = verdict_of(numbers, number)
    lost = int(expected * share)
    read, written, uncached = expected - lost, added + lost, numbers.randint(1, 40)
    usd = (read * price_read + written * price_write + uncached * price) / 1e6
    lost_usd = lost * (price - price_read) / 1e6
    record = {
        "version": 2, "id": f"{head['id']}-{number + 1}", "conversation": head["id"], "purpose": "main",
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at / 1000)), "model": head["model"], "provider": provider,
        "read": read, "written": written, "uncached": uncached, "output": numbers.randint(20, 900), "expected_read": expected,
        "verdict": verdict, "alarming": lost > 0, "why": f"seeded: {verdict}", "lost_tokens": lost, "lost_usd": lost_usd,
        "usd": usd, "saved_usd": read * (price - price_read) / 1e6, "agent": head["agent"], "cwd": head["cwd"], "has_request": True,
    }
    if owner:
        record["owner"] = owner
    sums = (1, read, written, uncached, record["output"], 0, 0, lost, usd, record["saved_usd"], lost_usd)
    return record, sums, context + added


def add(store, conversations, calls):
    """Writes everything in one transaction."""
    numbers = random.Random(34)
    now = int(time.time() * 1000)
    rows, heads, usage = [], [], {}
    for index in range(conversations):
        agent = AGENTS[index % len(AGENTS)]
        head = {"id": f"{agent}:session-{index:05}", "agent": agent, "model": list(MODELS)[index % 2], "cwd": FOLDERS[index % len(FOLDERS)]}
        count = calls // conversations if index else calls // conversations + calls % conversations
        at = now - numbers.randint(count * 60_000, 30 * DAY)
        began, context, total, miss = at, numbers.randint(8_000, 40_000), [0] * 11, None
        for number in range(count):
            record, sums, context = call(numbers, head, number, at, context)
            owner = record.get("owner", {}).get("kind", "")
            rows.append((record["id"], at, head["id"], agent, head["model"], head["cwd"], "", "", record["verdict"], owner,
                         int(record["alarming"]), json.dumps(record), *sums))
            total = [a + b for a, b in zip(total, sums)]
            if record["alarming"]:
                miss = json.dumps({key: record[key] for key in ("id", "at", "verdict", "lost_usd")} | {"owner": owner})
            for dimension, key in (("day", ""), ("model", head["model"]), ("cwd", head["cwd"]), ("profile", ""), ("version", "")):
                name = (dimension, at // DAY, key, record["verdict"], owner)
                usage[name] = [a + b for a, b in zip(usage.get(name, [0] * 11), sums)]
            at += numbers.randint(5_000, 55_000)
        heads.append((head["id"], head["id"].split(":")[1], agent, head["model"], head["cwd"], None, total[0], total[1],
                      total[1] + total[2] + total[3], total[8], total[10], began, at, miss))
    with sqlite3.connect(store) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        marks = lambda count: ", ".join("?" * count)
        connection.executemany(
            f"INSERT INTO traffic_call (id, at, conversation, agent, model, cwd, profile, version, verdict, owner, is_alarming, record, {SUMS}) "
            f"VALUES ({marks(23)})", sorted(rows, key=lambda row: row[1]))
        connection.executemany(
            "INSERT INTO traffic_conversation (id, session, agent, model, cwd, profile, calls, read, input, usd, lost_usd, began_at, active_at, last_miss) "
            f"VALUES ({marks(14)})", heads)
        connection.executemany(
            f"INSERT INTO traffic_usage (dimension, day, key, verdict, owner, {SUMS}) VALUES ({marks(16)})",
            [(*name, *sums) for name, sums in usage.items()])
    connection.close()


if __name__ == "__main__":
    sizes = [int(size) for size in sys.argv[2:4]] or [10_000, 200_000]
    add(sys.argv[1], *sizes)
