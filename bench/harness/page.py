"""Writes tables, plots and figures into docs/."""

import datetime
import json
import os
import pathlib
import platform
import re
import subprocess
import sys

import plot

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGE, FIGURES, PLOTS = ROOT / "docs" / "benchmarks.md", ROOT / "docs" / "benchmarks.json", ROOT / "docs" / "benchmarks"


def write(book, results):
    """Replaces the rows that were measured; the others keep their figures, and prose stays as it is."""
    known = json.loads(FIGURES.read_text())["rows"] if FIGURES.exists() else {}
    where = machine()
    known |= {name: row | {"measured": where} for name, row in results.items()}
    known = dict(sorted(known.items(), key=lambda pair: int(pair[0][1:])))
    FIGURES.write_text(json.dumps({"version": 1, "rows": known}, indent=1, ensure_ascii=False) + "\n")
    text = PAGE.read_text()
    PLOTS.mkdir(exist_ok=True)
    for name in results:
        text = replaced(text, name, table(book, name, known[name]) + picture(book, name, known[name]))
    PAGE.write_text(replaced(text, "summary", summary(book, known)))
    print(f"wrote {PAGE.relative_to(ROOT)}, {FIGURES.relative_to(ROOT)} and {len(results)} rows", file=sys.stderr)


def replaced(text, name, new):
    begin, end = f"<!-- begin {name}: written by scripts/bench -->", f"<!-- end {name} -->"
    if begin not in text or end not in text:
        raise SystemExit(f"error: {PAGE.name} has no place for {name}\nhint: add `{begin}` and `{end}`, a line each")
    head, _, rest = text.partition(begin)
    return f"{head}{begin}\n\n{new.strip()}\n\n{end}{rest.partition(end)[2]}"


def machine():
    model = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    tools = {
        name: subprocess.run([name, "--version"], capture_output=True, text=True).stdout.strip()
        for name in ["rustc", "node", "git"]
    }
    return {
        "date": datetime.date.today().isoformat(),
        "processor": model[1] if model else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        **tools,
    }


def tables(book, results):
    """All tables, for a terminal."""
    parts = [f"## {name}: {book.titles[name]}\n\n{table(book, name, row)}" for name, row in results.items()]
    left_out = next(iter(results.values()))["missing"] if results else []
    return "\n\n".join(parts + left_out)


def table(book, name, row):
    """Cases down, candidates across; then the ratios that have a goal."""
    everybody = list(dict.fromkeys(who for case in row["cases"].values() for who in case["found"]))
    everybody.sort(key=lambda who: (who != "floor", not who.startswith("proem"), who))
    lines = [
        "| | " + " | ".join(everybody) + " | proem / floor | goal |",
        "|---|" + "--:|" * (len(everybody) + 1) + "---|",
    ]
    for label, case in row["cases"].items():
        cells = [cell(case["found"].get(who)) for who in everybody]
        floor, ours = case["found"].get("floor"), case["found"].get("proem")
        ratio = f"{number(ours['value'] / floor['value'])}×" if floor and ours and floor["value"] else ""
        lines.append(f"| {label} | {' | '.join(cells)} | {ratio} | {'<br>'.join(map(verdict, case['goals']))} |")
    judged = [(growth, goal) for growth in row["growths"] for goal in growth["goals"]]
    if judged:
        lines += ["", "| growth | from | to | | goal |", "|---|--:|--:|--:|---|"]
        for growth, goal in judged:
            lines.append(
                f"| {growth['curve']} | {goal['from']:,} | {goal['to']:,} | {number(goal['ratio'])}× | {verdict(goal)} |"
            )
    return "\n".join(lines) + "\n"


def verdict(goal):
    return f"{goal['words']}: {number(goal['ratio'])}×, {'met' if goal['is_met'] else '**missed**'}"


def cell(entry):
    if not entry:
        return ""
    spread = f" ±{entry['spread'] / 2:.0%}" if entry["count"] > 1 else ""
    return shown(entry["value"], entry["unit"]) + spread


def shown(value, unit):
    assert unit == "ns", unit
    steps = [(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns")]
    size, name = next(((size, name) for size, name in steps if value >= size), steps[-1])
    return f"{number(value / size)} {name}"


def number(value):
    """Three digits, which is more than most of these figures deserve."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def picture(book, name, row):
    """Draws the curves of a row, and returns what shows them."""
    growths = [growth for growth in row["growths"] if len(growth["points"]) > 1]
    if not growths:
        return ""
    several = len({growth["curve"] for growth in growths}) > 1
    # Rows with several curves show proem alone: others would fill the picture.
    chosen = [growth for growth in growths if growth["who"] == "proem"] if several else growths
    unit = next(iter(next(iter(row["cases"].values()))["found"].values()))["unit"]
    curves = [(growth["curve"] if several else growth["who"], growth["who"], growth["points"]) for growth in chosen]
    (PLOTS / f"{name}.svg").write_text(
        plot.draw(
            f"{name}: {book.titles[name]}",
            lambda value: shown(value, unit).replace(".00 ", " ").replace(".0 ", " "),
            curves,
        )
    )
    return f"\n![how {name} grows](benchmarks/{name}.svg)\n"


def summary(book, known):
    """One line for each row: how many goals are met, and when that was measured."""
    lines = ["| | what | goals met | measured |", "|---|---|---|---|"]
    for name, title in book.titles.items():
        row = known.get(name)
        goals = [goal for part in [*row["cases"].values(), *row["growths"]] for goal in part["goals"]] if row else []
        met = f"{sum(goal['is_met'] for goal in goals)} of {len(goals)}" if goals else "no goal" if row else "not yet"
        lines.append(f"| [{name}](#{name.lower()}) | {title} | {met} | {row['measured']['date'] if row else ''} |")
    machines = {
        json.dumps({key: value for key, value in row["measured"].items() if key != "date"}) for row in known.values()
    }
    for text in sorted(machines):
        where = json.loads(text)
        lines += [
            "",
            f"On {where['processor']}, {where['cores']} cores; {where['rustc']}; node {where['node']}; Python {where['python']}; {where['git']}.",
        ]
    left_out = sorted({text for row in known.values() for text in row["missing"]})
    return "\n".join(lines + (["", *left_out] if left_out else []))
