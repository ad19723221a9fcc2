"""Builds the programs that measure, runs them in turns, and gathers what they print."""

import collections
import dataclasses
import json
import pathlib
import shutil
import subprocess
import sys

import peers
import serve
import start

ROOT = peers.ROOT
BENCH = ROOT / "bench"
TARGET = ROOT / "target" / "bench"


class Failed(Exception):
    pass


@dataclasses.dataclass
class Setting:
    """One run: where the data is, what is wanted, and how much of it."""

    data: pathlib.Path
    rows: list[str]
    is_short: bool
    turns: int
    peers: peers.Peers

    def wants(self, *rows):
        return [row for row in rows if row in self.rows]

    @property
    def proem(self):
        return ROOT / "target" / "release" / "proem"

    def bench(self, name):
        return [TARGET / "release" / "proem-bench", name]

    def node(self, name):
        return self.peers.node and ["node", BENCH / "peers" / "node" / f"{name}.mjs"]

    def python(self, name):
        return self.peers.python and [self.peers.python / "bin" / "python", BENCH / "peers" / "python" / f"{name}.py"]


# A program, what it measures, and its rounds in the long and in the short form. Those of a group take turns.
Program = collections.namedtuple("Program", "kind name rows rounds short_rounds")
GROUPS = [
    [
        Program("bench", "templates", ["P1", "P2"], 60, 10),
        Program("node", "templates", ["P2"], 60, 10),
        Program("python", "templates", ["P1", "P2"], 20, 5),
    ],
    [Program("bench", "discover", ["P6", "P11"], 60, 10), Program("node", "discover", ["P6", "P11"], 30, 5)],
    [Program("bench", "git", ["P9"], 40, 5)],
    [Program("bench", "tokens", ["P16"], 40, 5), Program("node", "tokens", ["P16"], 5, 2)],
    [Program("bench", "doctor", ["P17"], 40, 5)],
    [Program("bench", "traffic", ["T4", "T5"], 40, 5)],
]


def measure(setting):
    """Everything that is wanted, as the lines that programs print."""
    build(setting)
    say("laying out what is measured on")
    output(*setting.bench("fixtures"), *arguments(setting, setting.rows, 1))
    lines = []
    for group in GROUPS:
        for turn in range(setting.turns):
            for program in group:
                lines += run_program(setting, program, turn)
    # Filling a store of a million conversations takes longer than asking it: once is enough.
    lines += run_program(setting, Program("bench", "store", ["P12", "P13"], 200, 10), 0)
    for module, rows in [(start, ["P5"]), (serve, ["P15"])]:
        if setting.wants(*rows):
            say(f"{rows[0]}: {str(module.__doc__).splitlines()[0]}")
            lines += module.measure(setting)
    return lines


def run_program(setting, program, turn):
    rows = setting.wants(*program.rows)
    command = getattr(setting, program.kind)(program.name)
    if not rows or not command:
        return []
    say(f"{', '.join(rows)}: {program.kind} {program.name}, turn {turn + 1} of {setting.turns}")
    rounds = program.short_rounds if setting.is_short else program.rounds
    cwd = setting.peers.node if program.kind == "node" else None
    text = output(*command, *arguments(setting, rows, rounds), cwd=cwd)
    return [json.loads(line) for line in text.splitlines()]


def arguments(setting, rows, rounds):
    return ["--data", setting.data, "--rounds", rounds, *(["--short"] if setting.is_short else []), *rows]


def build(setting):
    if not shutil.which("wrk") and setting.wants("P15"):
        call("apt-get", "update", "-qq")
        call("apt-get", "install", "-y", "-qq", "wrk")
    say("building proem and the benchmarks")
    call("cargo", "build", "--release", "--quiet", "--locked")
    features = ["--features", "peers"] if setting.peers.has_libraries else []
    call(
        "cargo",
        "build",
        "--release",
        "--quiet",
        "--locked",
        "--manifest-path",
        BENCH / "Cargo.toml",
        "--target-dir",
        TARGET,
        *features,
        hint="if only the lock file is old: cargo update --workspace --manifest-path bench/Cargo.toml",
    )


def call(*command, hint=""):
    done = subprocess.run(list(map(str, command)), cwd=ROOT, stdout=sys.stderr)
    if done.returncode:
        raise Failed(
            f"{' '.join(map(str, command))} ended with {done.returncode}" + (f"\nhint: {hint}" if hint else "")
        )


def output(*command, cwd=None):
    """The output of a program, in an environment without settings of proem's."""
    done = subprocess.run(
        list(map(str, command)), cwd=cwd or ROOT, env=start.environment(), stdout=subprocess.PIPE, text=True
    )
    if done.returncode:
        raise Failed(f"{' '.join(map(str, command))} ended with {done.returncode}")
    return done.stdout


def say(text):
    print(text, file=sys.stderr, flush=True)
