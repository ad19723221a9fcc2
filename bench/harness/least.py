"""The least program with the same large libraries: what size, start and memory are compared with."""
import pathlib, subprocess, sys

PACKAGE = pathlib.Path(__file__).resolve().parent.parent / "least"


def build():
    target = PACKAGE.parent.parent / "target" / "bench-least"
    cargo(PACKAGE, target)
    return target / "release" / "least"


def cargo(package, target):
    command = ["cargo", "build", "--release", "--quiet", "--locked", "--target-dir", target]
    subprocess.run(list(map(str, command)), cwd=package, check=True, stdout=sys.stderr)
