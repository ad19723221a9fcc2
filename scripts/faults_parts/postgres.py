"""The database server goes away and comes back."""

import time

from .clients import Client, Load, exported, request, text_of
from .report import row
from .runs import Server, folder, postgres, settings, until


def run(short):
    cycles = settings.count or (1 if short else 30)
    with folder() as place, postgres(place, "postgres") as database:
        if not database:
            return
        store = database.database("faults")
        servers = [Server(place, store) for _ in range(2)]
        known = text_of("known")
        Client(servers[0]).turn("known", known)
        load = Load(servers, "p")
        wrong, recoveries, refusals = [], [], 0
        for _ in range(cycles):
            time.sleep(0.7)
            database.stop()
            away = time.monotonic()
            for server in servers:
                wrong += while_away(Client(server))
            time.sleep(0.5)
            # What was on its way when the server stopped may still be answered; after that nothing is.
            late = [status for when, status in list(load.answered) if when > away + 0.3]
            refusals += late.count(503)
            wrong += [f"{status} while PostgreSQL was away" for status in late if status == 200]
            database.start()
            back = time.monotonic()
            for server in servers:
                until(30, lambda: Client(server).turn("known", "another one")[0] == 200, "proem recovers")
                status, _, body = Client(server).turn("known", "another one")
                if status == 200 and body["carriers"]["system"] != known:
                    wrong.append("another prompt after the recovery")
            recoveries.append(time.monotonic() - back)
        load.end()
        for server in servers:
            server.stop()
        stored, doubled = exported(store)
        stored.pop(("known", 1), None)
        lost = sum(stored.get(key, ("", ""))[1] != text for key, text in load.acknowledged.items())
        foreign = sum(load.tried.get(key) != text for key, (_, text) in stored.items())
        problems = wrong + load.problems
        seen = (
            f"{refusals} × 503 while away, {len(problems)} wrong answers; {len(load.acknowledged)} acknowledged epochs, "
            f"{lost} lost, {foreign + doubled} foreign; back after at most {max(recoveries):.2f} s"
        )
        row(
            "postgres",
            "PostgreSQL stops at once and starts again under load",
            cycles,
            "503 with Retry-After while away, nothing wrong or lost, recovery by itself",
            seen,
            refusals and not (problems or lost or foreign or doubled),
            acknowledged=len(load.acknowledged),
            recovery_seconds_max=round(max(recoveries), 2),
            statuses=dict(load.statuses),
            problems=problems[:5],
        )


def while_away(client):
    """The wrong answers of a server whose store is away."""
    cases = [
        ("POST", "/conversations/known/turn", request("x"), 503),
        ("POST", "/conversations/new/turn", request("x"), 503),
        ("GET", "/conversations/known", None, 503),
        ("GET", "/conversations", None, 503),
        ("GET", "/readyz", None, 503),
        ("PUT", "/system-prompt", {"template": "x"}, 503),
        ("GET", "/system-prompt", None, 200),
        ("GET", "/system-prompt/variables", None, 200),
        ("GET", "/healthz", None, 200),
    ]
    wrong = []
    for method, path, body, expected in cases:
        status, headers, answer = client.ask(method, path, body)
        if status != expected or (status == 503 and "Retry-After" not in headers):
            wrong.append(f"{method} {path}: {status} {answer}")
    return wrong
