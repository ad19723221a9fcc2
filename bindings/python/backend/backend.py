"""Builds wheels and source distributions: maturin builds the library, and cargo the command that goes into the wheel.

A source distribution holds the workspace, so that both can be built from it.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import maturin

HERE = Path(__file__).resolve().parent.parent
ROOT = HERE.parent.parent
# What a build needs of the workspace, by the paths that git knows or that an unpacked distribution has.
SOURCES = ("Cargo.toml", "Cargo.lock", "clippy.toml", "LICENSE-MIT", "LICENSE-APACHE", "bindings", "crates")

get_requires_for_build_wheel = maturin.get_requires_for_build_wheel
get_requires_for_build_sdist = maturin.get_requires_for_build_sdist
prepare_metadata_for_build_wheel = maturin.prepare_metadata_for_build_wheel
get_requires_for_build_editable = maturin.get_requires_for_build_wheel
prepare_metadata_for_build_editable = maturin.prepare_metadata_for_build_wheel


def target() -> Path:
    """Return the build directory of cargo."""
    return Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")


def build_command() -> None:
    """Build the command, and put it where the wheel takes it from."""
    scripts = HERE / "proem.data" / "scripts"
    scripts.mkdir(parents=True, exist_ok=True)
    cargo = os.environ.get("CARGO", "cargo")
    subprocess.run([cargo, "build", "--release", "--locked", "--package", "proem-cli"], cwd=ROOT, check=True)
    shutil.copy2(target() / "release" / "proem", scripts / "proem")


def build_wheel(wheel: str, config: dict[str, Any] | None = None, metadata: str | None = None) -> str:
    """Build a wheel."""
    build_command()
    return str(maturin.build_wheel(wheel, config, metadata))


def build_editable(wheel: str, config: dict[str, Any] | None = None, metadata: str | None = None) -> str:
    """Build an editable wheel."""
    build_command()
    return str(maturin.build_editable(wheel, config, metadata))


def build_sdist(folder: str, _config: dict[str, Any] | None = None) -> str:
    """Build a source distribution: the workspace, with this package at its root."""
    version = field((ROOT / "Cargo.toml").read_text(), "version")
    name = f"proem-{version}"
    archive = Path(folder) / f"{name}.tar.gz"
    with tarfile.open(archive, "w:gz", format=tarfile.PAX_FORMAT) as out:
        for path in sources():
            out.add(ROOT / path, f"{name}/{path}", recursive=False, filter=plain)
        for path, text in {"pyproject.toml": at_root(), "PKG-INFO": information(version)}.items():
            made = tarfile.TarInfo(f"{name}/{path}")
            made.size = len(text)
            out.addfile(made, io.BytesIO(text))
    return archive.name


def sources() -> list[str]:
    """Return the files of the workspace, in order."""
    listed = subprocess.run(["git", "ls-files", "-z", *SOURCES], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode == 0 and listed.stdout:
        return sorted(listed.stdout.decode().rstrip("\0").split("\0"))
    found = [path for source in SOURCES for path in [ROOT / source, *sorted((ROOT / source).rglob("*"))]]
    return [str(path.relative_to(ROOT)) for path in found if path.is_file()]


def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Return a member without what depends on the machine."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = 0
    return member


def at_root() -> bytes:
    """Return the project's file for the root of the distribution."""
    text = (HERE / "pyproject.toml").read_text()
    for name in ('backend-path = ["', 'readme = "', 'python-source = "', 'data = "'):
        text = text.replace(name, f"{name}bindings/python/")
    manifest = '[tool.maturin]\nmanifest-path = "bindings/python/Cargo.toml"\n'
    return text.replace("[tool.maturin]\n", manifest).encode()


def field(text: str, name: str) -> str:
    """Return the first text of a name in a file of TOML. Python 3.10 has no reader of it."""
    found = re.search(rf'^{name} = "(.*)"$', text, re.MULTILINE)
    if found is None:
        raise ValueError(f"{name} is missing")
    return found[1]


def information(version: str) -> bytes:
    """Return the metadata of the distribution."""
    project = (HERE / "pyproject.toml").read_text()
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {field(project, 'name')}",
        f"Version: {version}",
        f"Summary: {field(project, 'description')}",
        f"License-Expression: {field(project, 'license')}",
        f"Requires-Python: {field(project, 'requires-python')}",
        "Description-Content-Type: text/markdown",
        "",
        (HERE / "README.md").read_text(),
    ]
    return "\n".join(lines).encode()
