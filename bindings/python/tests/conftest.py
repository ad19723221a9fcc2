"""The surroundings of the tests: a workspace of their own, and no configuration of the user."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run each test in a workspace with one instruction file."""
    for name in ("work", "home", "config"):
        (tmp_path / name).mkdir()
    (tmp_path / "work" / "AGENTS.md").write_text("Run the tests.\n")
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PROEM_CONFIG_DIR", str(tmp_path / "config"))
    for name in ("PROEM_PROFILE", "PROEM_STORE", "PROEM_TEMPLATE"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the number of builds for the test of memory: 10,000 in the long form."""
    parser.addoption("--builds", type=int, default=500)
