"""Many begin one conversation at once."""
import collections, http.client, threading, time

from .clients import Client, exported, text_of
from .report import row
from .runs import Server, folder, postgres, proem, settings


def race(place, store, servers, count, name):
    begun = time.monotonic()
    group = [Server(place, store) for _ in range(servers)]
    answers = [[None] * count for _ in group]
    line = threading.Barrier(servers)

    def caller(index):
        client = Client(group[index])
        for number in range(count):
            line.wait()
            try:
                answers[index][number] = client.turn(f"race-{number}", text_of(number, "by", index))
            except (OSError, http.client.HTTPException) as error:
                answers[index][number] = 0, {}, {"code": repr(error)}

    threads = [threading.Thread(target=caller, args=[index], daemon=True) for index in range(servers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.monotonic() - begun
    for server in group:
        server.stop()
    errors, several, builders, wins, expected = 0, 0, 0, collections.Counter(), {}
    for number in range(count):
        given = [caller[number] for caller in answers]
        errors += sum(status != 200 for status, _, _ in given)
        good = [body for status, _, body in given if status == 200]
        first = [index for index, (status, _, body) in enumerate(given) if status == 200 and not body["reused"]]
        builders += len(first) != 1
        several += len({(body["digest"], body["carriers"]["system"], body["epoch"]) for body in good}) != 1
        if first:
            wins[first[0]] += 1
            expected[f"race-{number}", 1] = good[0]["digest"], text_of(number, "by", first[0])
    stored, doubled = exported(store)
    wrong = sum(stored.get(key) != value for key, value in expected.items()) + len(stored.keys() ^ expected.keys())
    check = proem("store", "check", "--store", store)[0]
    seen = (f"{errors} errors, {several} with two prompts, {builders} without one builder, {wrong} wrong and "
            f"{doubled} doubled rows; won by {len(wins)} of {servers} servers")
    row("race", f"{servers} servers begin a conversation at once, {name}", count,
        "one epoch each, all callers the same bytes, no error", seen,
        not (errors or several or builders or wrong or doubled or check), seconds=round(seconds, 1),
        requests=count * servers, wins=sorted(wins.values()))


def by_turns():
    """A conversation goes to and fro between servers that were started in different folders, as behind a balancer."""
    with folder() as place:
        places = [place / f"work-{name}" for name in "ab"]
        for path in places:
            path.mkdir()
        servers = [Server(place, place / "proem.db", work=path.name, workspaces=places) for path in places]
        answers = [Client(servers[turn % 2]).ask("POST", "/conversations/by-turns/turn", {"prompt": f"turn {turn}"})
                   for turn in range(10)]
        digests = {body.get("digest") for _, _, body in answers}
        for server in servers:
            server.stop()
        row("race", "one conversation by turns on 2 servers from different folders", len(answers),
            "one epoch, the same bytes in every turn",
            f"{answers[-1][2].get('epoch')} epochs, {len(digests)} digests",
            len(digests) == 1 and all(status == 200 for status, _, _ in answers))


def run(short):
    count = settings.count or (200 if short else 10_000)
    by_turns()
    with folder() as place:
        race(place, place / "proem.db", 8, count, "SQLite")
    with folder() as place, postgres(place, "race") as server:
        if server:
            race(place, server.database("race"), 4, count, "PostgreSQL")
