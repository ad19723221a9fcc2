"""A server is killed while it works."""

import random
import time
from typing import Any

from .clients import Load, exported
from .report import row
from .runs import NotStarted, Server, folder, proem, settings


def run(short):
    cycles = settings.count or (5 if short else 200)
    chance = random.Random(17)
    with folder() as place:
        store, begun = place / "proem.db", time.monotonic()
        damaged = unopened = 0
        acknowledged: dict[Any, str] = {}
        tried: dict[Any, Any] = {}
        problems: list[str] = []
        for cycle in range(cycles):
            try:
                server = Server(place, store)
            except NotStarted as error:
                unopened += 1
                problems.append(str(error))
                break
            load = Load([server], f"k{cycle}")
            time.sleep(chance.uniform(0.02, 0.6))
            server.kill()
            load.end()
            problems += load.problems
            acknowledged |= load.acknowledged
            tried |= load.tried
            code, out, _error = proem("store", "check", "--store", store)
            damaged += code != 0 or "no damage" not in out
        stored, doubled = exported(store)
        lost = sum(stored.get(key, ("", ""))[1] != text for key, text in acknowledged.items())
        foreign = sum(tried.get(key) != text for key, (_, text) in stored.items())
        seen = (
            f"{len(acknowledged)} acknowledged epochs, {lost} lost, {foreign + doubled} foreign; {damaged} checks "
            f"found damage, {unopened} starts failed, {len(problems)} wrong answers"
        )
        row(
            "kill",
            "kill -9 of the server under load",
            cycles,
            "every acknowledged epoch is there, byte for byte",
            seen,
            acknowledged and not (lost or foreign or doubled or damaged or unopened or problems),
            seconds=round(time.monotonic() - begun, 1),
            acknowledged=len(acknowledged),
            problems=problems[:5],
        )
