"""P1 and P2: jinja2."""

import argparse
import json
import pathlib
import time

import jinja2

parser = argparse.ArgumentParser()
parser.add_argument("--data", type=pathlib.Path, required=True)
parser.add_argument("--rounds", type=int, default=30)
parser.add_argument("--short", action="store_true")
parser.add_argument("rows", nargs="*")
given = parser.parse_args()
folder = given.data / "templates"
values = {f"k{key}": value for key, value in enumerate(json.loads((folder / "values.json").read_text()))}


def measure(row, case, work):
    samples = []
    for _ in range(given.rounds):
        begun = time.perf_counter_ns()
        work()
        samples.append(time.perf_counter_ns() - begun)
    print(
        json.dumps({"row": row, "case": case, "who": "jinja2", "unit": "ns", "take": "min", "samples": samples}),
        flush=True,
    )


for path in sorted(folder.glob("*.jinja")):
    source, size = path.read_text(), f"{int(path.stem) // 1024} KB"
    compiled = jinja2.Environment(keep_trailing_newline=True).from_string(source)
    assert compiled.render(values) == path.with_suffix(".expected").read_text(), "not the same text as proem's"
    if not given.rows or "P1" in given.rows:
        measure("P1", f"render a compiled template, {size}", lambda: compiled.render(values))
    if not given.rows or "P2" in given.rows:
        measure("P2", f"parse and render, {size}", lambda: jinja2.Environment().from_string(source).render(values))
