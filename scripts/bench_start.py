"""Measures the CPU time of whole processes: proem against an empty Rust program, alternating."""

import argparse
import os
import pathlib
import resource
import statistics
import subprocess
import tempfile

HELLO = 'fn main() { println!("hello"); }'


def cpu_of(command, cwd):
    """CPU milliseconds, user and system, of one run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=cwd, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


def make_project(root):
    """A repository of twelve levels with an AGENTS.md that the template inserts."""
    folder = root / "project"
    for level in range(12):
        folder = folder / f"level{level}"
    folder.mkdir(parents=True)
    (folder / "AGENTS.md").write_text("# Rules\n\n" + "Prefer small changes.\n" * 100)
    subprocess.run(["git", "init", "-q", "-b", "main", root / "project"], check=True)
    return folder


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=300)
    runs = parser.parse_args().runs
    proem = pathlib.Path(__file__).resolve().parent.parent / "target/release/proem"
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "hello.rs").write_text(HELLO)
        subprocess.run(["rustc", "-O", "-o", root / "hello", root / "hello.rs"], check=True)
        project = make_project(root)
        candidates = {
            "an empty Rust program": [root / "hello"],
            "`proem build --profile template`": [proem, "build", "--profile", "template"],
            "`proem --version`": [proem, "--version"],
        }
        times = {name: [] for name in candidates}
        for _ in range(runs):
            for name, command in candidates.items():
                times[name].append(cpu_of(command, project))
    floor = statistics.median(times["an empty Rust program"])
    print("| what | CPU, median | CPU, least | against the empty program | goal |")
    print("|---|---|---|---|---|")
    for name, values in times.items():
        goal = "≤ 3×" if "build" in name else ""
        median = statistics.median(values)
        print(f"| {name} | {median:.2f} ms | {min(values):.2f} ms | {median / floor:.2f}× | {goal} |")


main()
