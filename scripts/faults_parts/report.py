"""The results: rows, and the table of them."""

import sys
from typing import Any

rows: list[dict[str, Any]] = []


def row(part, fault, times, expected, seen, is_right, **figures):
    rows.append(
        {
            "part": part,
            "fault": fault,
            "times": times,
            "expected": expected,
            "seen": seen,
            "ok": bool(is_right),
            **figures,
        }
    )
    print(f"{state(rows[-1]):3} {part}: {fault}: {seen}", file=sys.stderr, flush=True)
    if not is_right:
        for problem in figures.get("problems", ()):
            print(f"    {problem}", file=sys.stderr, flush=True)


def state(found):
    return "ok" if found["ok"] else "FAILED"


def skipped(part, fault, reason, is_right=True):
    """A row for what cannot be tried here."""
    row(part, fault, 0, "", f"skipped: {reason}", is_right)


def table():
    def line(cells, widths):
        return "  ".join(str(cell).ljust(width) for cell, width in zip(cells, widths)).rstrip()

    head = ["", "fault", "times", "expected", "seen"]
    lines = [[state(found), found["fault"], f"{found['times']:,}", found["expected"], found["seen"]] for found in rows]
    widths = [max(len(cells[index]) for cells in [head, *lines]) for index in range(len(head))]
    return "\n".join(line(cells, widths) for cells in [head, *lines])
