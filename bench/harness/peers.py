"""Installs what proem is measured against: from npm and PyPI, below target/, never in the source tree."""

import dataclasses
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HOME = ROOT / "target" / "bench-peers"
SOURCES = ROOT / "bench" / "peers"
OF_NODE = {"P2", "P5", "P6", "P11", "P15", "P16"}
OF_PYTHON = {"P1", "P2", "P15"}


@dataclasses.dataclass
class Peers:
    """The installed peers, and the reason for each one that could not be installed."""

    node: pathlib.Path | None
    python: pathlib.Path | None
    missing: list[str]
    has_libraries: bool = True

    @classmethod
    def none(cls):
        return cls(
            None, None, ["the short form leaves out peers: libraries in Rust that build for minutes, npm, PyPI"], False
        )


def install(rows):
    missing: list[str] = []
    node = attempt(install_node, "node peers", missing) if OF_NODE & set(rows) else None
    python = attempt(install_python, "Python peers", missing) if OF_PYTHON & set(rows) else None
    return Peers(node, python, missing)


def attempt(action, what, missing):
    """A registry that cannot be reached costs the peers, not the run; the page says so."""
    try:
        return action()
    except (OSError, subprocess.CalledProcessError) as error:
        missing.append(f"{what} could not be installed: {error}")
        print(f"warning: {missing[-1]}", file=sys.stderr)
        return None


def install_node():
    folder = HOME / "node"
    folder.mkdir(parents=True, exist_ok=True)
    wanted = (SOURCES / "node" / "package.json").read_text()
    if not (folder / "installed").exists() or (folder / "installed").read_text() != wanted:
        print("installing peers from npm", file=sys.stderr)
        shutil.copy(SOURCES / "node" / "package.json", folder)
        run("npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error", cwd=folder)
        (folder / "installed").write_text(wanted)
    return folder


def install_python():
    folder = HOME / "python"
    wanted = (SOURCES / "python" / "requirements.txt").read_text()
    if not (folder / "installed").exists() or (folder / "installed").read_text() != wanted:
        print("installing peers from PyPI", file=sys.stderr)
        run(sys.executable, "-m", "venv", folder)
        run(folder / "bin" / "pip", "install", "--quiet", "-r", SOURCES / "python" / "requirements.txt")
        (folder / "installed").write_text(wanted)
    return folder


def run(*command, cwd=None):
    subprocess.run(list(map(str, command)), cwd=cwd, check=True, stdout=sys.stderr)
