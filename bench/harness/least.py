"""The least program with the same large libraries, which size, start and memory are compared with, and one with all of them."""
import pathlib, subprocess, sys

BENCH = pathlib.Path(__file__).resolve().parent.parent
PACKAGE, LIBRARIES = BENCH / "least", BENCH / "libraries"


def build(package=PACKAGE):
    target = BENCH.parent / "target" / f"bench-{package.name}"
    cargo(package, target)
    return target / "release" / package.name


def cargo(package, target):
    command = ["cargo", "build", "--release", "--quiet", "--locked", "--target-dir", target]
    subprocess.run(list(map(str, command)), cwd=package, check=True, stdout=sys.stderr)
