"""Measures a build and a later turn: `overhead.py ROUNDS REQUEST STORE` prints the least nanoseconds of each as JSON."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import proem


def least(rounds: int, work: Callable[[], Any]) -> int:
    """Return the least time of a call."""
    found = []
    for _ in range(rounds):
        start = time.perf_counter_ns()
        work()
        found.append(time.perf_counter_ns() - start)
    return min(found)


def main() -> None:
    """Measure both."""
    rounds, request = int(sys.argv[1]), json.loads(sys.argv[2])
    build = least(rounds // 10, lambda: proem.build(**request))
    with proem.open(sys.argv[3]) as store:
        conversation = store.conversation("c-1", **request)
        conversation.turn("Hello", provider="anthropic")
        turn = least(rounds, lambda: conversation.turn("And now?", provider="anthropic"))
    print(json.dumps({"build": build, "turn": turn}))


if __name__ == "__main__":
    main()
