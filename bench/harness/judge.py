"""Joins what programs printed, and compares it with the goals of bench/goals.toml."""

import dataclasses
import fnmatch
import pathlib
import statistics
import tomllib
from typing import Any

GOALS = pathlib.Path(__file__).resolve().parent.parent / "goals.toml"


@dataclasses.dataclass
class Book:
    """The rows, and what is wanted of them."""

    titles: dict[str, str]
    goals: list[dict]
    growths: list[dict]

    @classmethod
    def load(cls):
        found = tomllib.loads(GOALS.read_text())
        return cls(found["rows"], found["goal"], found["growth"])


def results(book, lines, missing):
    """One entry for each row that was measured."""
    found: dict[str, Any] = {}
    for line in lines:
        row = found.setdefault(line["row"], {"cases": {}, "missing": missing})
        case = row["cases"].setdefault(
            line["case"], {"found": {}, "growth": line.get("growth"), "size": line.get("size")}
        )
        entry = case["found"].setdefault(line["who"], {"unit": line["unit"], "take": line["take"], "samples": []})
        entry["samples"] += line["samples"]
    for name, row in found.items():
        for label, case in row["cases"].items():
            for entry in case["found"].values():
                weigh(entry)
            case["goals"] = [
                verdict for goal in book.goals if goal["row"] == name and (verdict := judge(goal, label, case["found"]))
            ]
        row["growths"] = list(growths(book, name, row["cases"]))
    return dict(sorted(found.items(), key=lambda pair: int(pair[0][1:])))


def weigh(entry):
    """Replaces samples by what counts of them, and how far the middle half of them is spread."""
    samples = entry.pop("samples")
    entry["value"] = min(samples) if entry["take"] == "min" else statistics.median(samples)
    quarters = statistics.quantiles(samples, n=4) if len(samples) > 1 else [samples[0]] * 3
    entry["spread"] = (quarters[2] - quarters[0]) / quarters[1] if quarters[1] else 0
    entry["count"] = len(samples)


def judge(goal, label, found):
    """The verdict on a goal; `None` if it concerns another case, or a candidate is missing."""
    ours, other = found.get(goal.get("who", "proem")), found.get(goal["against"])
    if not fnmatch.fnmatch(label, goal.get("case", "*")) or not ours or not other:
        return None
    is_at_least = "at_least" in goal

    def ratio(entry):
        return other["value"] / entry["value"] if is_at_least else entry["value"] / other["value"]

    is_met = ratio(ours) >= goal["at_least"] if is_at_least else ratio(ours) <= goal["at_most"]
    return {"words": goal["words"], "ratio": ratio(ours), "is_met": is_met}


def growths(book, name, cases):
    """Curves: from the smallest to the largest size, how the time grew against the size; 1 is linear."""
    curves: dict[tuple[str, str], list[Any]] = {}
    for case in cases.values():
        if case["growth"]:
            for who, entry in case["found"].items():
                curves.setdefault((case["growth"], who), []).append((case["size"], entry["value"]))
    for (curve, who), points in curves.items():
        points.sort()
        entry = {"curve": curve, "who": who, "points": points, "goals": []}
        for goal in book.growths:
            if (
                goal["row"] == name
                and goal.get("who", "proem") == who
                and fnmatch.fnmatch(curve, goal.get("curve", "*"))
            ):
                entry["goals"] += grown(goal, points)
        yield entry


def grown(goal, points):
    """The verdict on a goal of growth; none when fewer than two points lie within its range."""

    def within(points):
        return [point for point in points if goal.get("from", 0) <= point[0] <= goal.get("to", float("inf"))]

    def ratio(points):
        (size, value), (larger_size, larger) = points[0], points[-1]
        times = larger / value
        return times if goal["kind"] == "times" else times / (larger_size / size)

    points = within(points)
    if len(points) < 2:
        return []
    is_met = ratio(points) <= goal["at_most"]
    return [
        {"words": goal["words"], "ratio": ratio(points), "is_met": is_met, "from": points[0][0], "to": points[-1][0]}
    ]
