"""The requirements on a run. They read `seen`, plain data, so that they can be tested with wrong data, too."""

import collections
import copy
import statistics

from .traffic import Conversation, Record

# The cache is full before the first quarter. What may still come is what the allocator keeps for each thread, and the
# pages that connections of SQLite hold: up to 2 MB each. In an hour at 60 requests a second, 24 MB more in the last quarter
# than in the second are about 230 bytes for each request between them.
MEMORY_ALLOWED_KB = 24 << 10
DESCRIPTORS_ALLOWED = (
    8  # SQLite has two files open for each of its connections, and may come to have a few more of these.
)
THREADS_ALLOWED = 4  # Workers that have nothing to do end after ten seconds, not at once.
RATIO_MAX = 25  # Very generous: a busy machine must not make this red.
LOG_BYTES_MAX = 64 << 20  # SQLite restarts its log at 4 MB, unless a reader is active.
QUIET = "quiet"


def found(fault, times, expected, said, is_right, **figures):
    return {"fault": fault, "times": times, "expected": expected, "seen": said, "is_right": bool(is_right)} | figures


def prompts(seen):
    wrong = seen.wrong_prompts
    return found(
        "turns of conversations, compared with the turn before",
        seen.compared,
        "the same bytes in every turn of an epoch",
        f"{len(wrong)} differ; {seen.left[0]} and, after a restart, {seen.left[1]} compared at the end",
        not wrong and seen.left[0] and seen.left[0] == seen.left[1],
        problems=wrong[:5],
    )


def answers(seen):
    counts = sum((collections.Counter(statuses) for statuses in seen.statuses.values()), collections.Counter())
    said = ", ".join(f"{count} × {status}" for status, count in sorted(counts.items()))
    return found(
        "answers to agents",
        counts.total(),
        "what each request is to be answered; 503 only under overload",
        f"{said}; {len(seen.problems)} others",
        not seen.problems and all(counts[status] for status in (200, 204, 304)) and not counts[500],
        problems=seen.problems[:5],
        done=seen.done,
        statuses=seen.statuses,
    )


def overload(seen):
    counts = sum((collections.Counter(burst["statuses"]) for burst in seen.bursts), collections.Counter())
    wrong = [problem for burst in seen.bursts for problem in burst["wrong"]]
    return found(
        f"{seen.burst[0] * seen.burst[1]:,} builds by {seen.burst[0]} connections at once",
        len(seen.bursts),
        "200, or 503 with Retry-After; then first turns again",
        f"{counts['200']} × 200, {counts['503']} × 503, {len(wrong)} others; a first turn after at most {max(seen.recoveries):.2f} s",
        not wrong and counts["200"] and all(burst["statuses"].get("503") for burst in seen.bursts),
        problems=wrong[:5],
        bursts=seen.bursts,
    )


def times(seen):
    by_phase = {phase: percentiles(seen.times.get(phase)) for phase in (QUIET, "slow", "overload", "after")}
    said = ", ".join(f"{phase} {figures['median']} ms (p99 {figures['p99']})" for phase, figures in by_phase.items())
    most = RATIO_MAX * (by_phase[QUIET]["median"] or 0)
    return found(
        f"later turns beside {seen.slow_count:,} slow sockets, and after overload",
        sum(figures["count"] for figures in by_phase.values()),
        f"medians below {RATIO_MAX} times that of quiet phases",
        f"{said}; {seen.dripped} bytes dripped, {seen.closed} sockets closed and opened again",
        seen.dripped
        and all(by_phase[phase]["count"] and by_phase[phase]["median"] < most for phase in ("slow", "after")),
        milliseconds=by_phase,
    )


def percentiles(seconds):
    """Count, median and 99th percentile, in ms."""
    if not seconds:
        return {"count": 0, "median": None, "p99": None}
    seconds = sorted(seconds)
    return {
        "count": len(seconds),
        "median": round(statistics.median(seconds) * 1e3, 2),
        "p99": round(seconds[len(seconds) * 99 // 100] * 1e3, 2),
    }


def median(seen, name, quarter, phase=None):
    return statistics.median(
        sample[name] for sample in seen.samples if sample["quarter"] == quarter and phase in (None, sample["phase"])
    )


def memory(seen):
    medians = [median(seen, "memory_kb", quarter) for quarter in (1, 2, 3, 4)]
    said = ", ".join(f"{value / 1024:.1f}" for value in medians)
    return found(
        "resident memory, by quarters",
        len(seen.samples),
        f"the last at most {MEMORY_ALLOWED_KB >> 10} MB above the second",
        f"medians {said} MB; at most {seen.memory_kb_max / 1024:.0f} MB",
        medians[3] - medians[1] <= MEMORY_ALLOWED_KB,
        medians_kb=medians,
    )


def open_things(seen):
    said, is_right = [], True
    for name, allowed in (("descriptors", DESCRIPTORS_ALLOWED), ("threads", THREADS_ALLOWED)):
        second, last = (median(seen, name, quarter, QUIET) for quarter in (2, 4))
        before, after, most = seen.base[name], seen.rest[name], max(sample[name] for sample in seen.samples)
        is_right = is_right and after <= before + allowed and last <= second + allowed
        said.append(
            f"{name} {before} before, {second:.0f} and {last:.0f} in quiet phases, {most} at most, {after} at the end"
        )
    return found(
        "what is open, in the second and the last quarter", len(seen.samples), "as before", "; ".join(said), is_right
    )


def store(seen):
    last, log = seen.samples[-1]["store_bytes"], max(sample["log_bytes"] or 0 for sample in seen.samples)
    said = (
        f"{last / 1e6:.0f} MB, the log at most {log / 1e6:.1f} MB"
        if last is not None
        else "a database's own is not seen from here"
    )
    return found(
        "size of the store",
        len(seen.samples),
        f"its log stays below {LOG_BYTES_MAX >> 20} MB",
        said,
        log < LOG_BYTES_MAX,
    )


def end(seen):
    return found(
        "SIGTERM, and `proem store check`",
        len(seen.codes),
        "exit 0, no damage",
        f"exit codes {seen.codes}; check: exit {seen.check[0]}; {seen.cpu_share * 100:.0f} % of a core under load",
        set(seen.codes) == {0} and seen.check[0] == 0 and "no damage" in seen.check[1],
        cpu_share=round(seen.cpu_share, 3),
    )


JUDGES = [prompts, answers, overload, times, memory, open_things, store, end]


def another_prompt(seen):
    conversation = Conversation("c", {})
    told = [
        conversation.differs({"epoch": 1, "digest": "same", "carriers": {"system": text}})
        for text in ("one", "one", "another")
    ]
    seen.wrong_prompts += [wrong for wrong in told if wrong]


def answered(status, headers=()):
    def spoil(seen):
        record = Record()
        record.note(QUIET, status, headers, [200])
        seen.problems += record.problems

    return spoil


def more(name, amount):
    """As much more in the last quarter; half of it in the third."""

    def spoil(seen):
        for sample in seen.samples:
            sample[name] = (sample[name] or 0) + amount * max(0, sample["quarter"] - 2) // 2

    return spoil


def changed(change):
    return lambda seen: seen.__dict__.update(change(seen))


FAULTS = [
    (prompts, another_prompt),
    (prompts, changed(lambda seen: {"left": (seen.left[0], seen.left[0] - 1)})),
    (answers, answered(500)),
    (answers, answered(503)),
    (answers, answered(503, ["Retry-After"])),
    (answers, answered(404)),
    (overload, changed(lambda seen: {"bursts": [*seen.bursts, {"statuses": {"200": 9}, "wrong": []}]})),
    (
        overload,
        changed(
            lambda seen: {"bursts": [*seen.bursts, {"statuses": {"200": 9, "503": 9, "500": 1}, "wrong": ["500"]}]}
        ),
    ),
    (
        times,
        changed(lambda seen: {"times": seen.times | {"after": [2 * RATIO_MAX * taken for taken in seen.times[QUIET]]}}),
    ),
    (memory, more("memory_kb", 3 * MEMORY_ALLOWED_KB)),
    (open_things, more("descriptors", 3 * DESCRIPTORS_ALLOWED)),
    (open_things, more("threads", 3 * THREADS_ALLOWED)),
    (open_things, changed(lambda seen: {"rest": seen.rest | {"descriptors": seen.base["descriptors"] + 9}})),
    (store, more("log_bytes", LOG_BYTES_MAX)),
    (end, changed(lambda seen: {"codes": [0, 1]})),
    (end, changed(lambda seen: {"check": (1, "damage")})),
]


def control(seen):
    """The same run with a fault put in: each must be found."""
    missed = []
    for number, (judge, spoil) in enumerate(FAULTS):
        spoiled = copy.deepcopy(seen)
        spoil(spoiled)
        if judge(spoiled)["is_right"]:
            missed.append(f"fault {number}, {judge.__name__}")
    return found(
        "control: this run, with a fault put in",
        len(FAULTS),
        "each is found",
        f"{len(missed)} not found",
        not missed,
        problems=missed,
    )
