"""The examples of the documentation run, against a provider on the loopback interface."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "scripts"))
from agents_parts.stub import Stub


@pytest.mark.parametrize("page", ["docs/python.md", "README.md", "bindings/python/README.md"])
def test_the_examples_of_a_page_run(page: str) -> None:
    blocks = [
        block for block in re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL) if "proem." in block
    ]
    assert blocks
    for text in blocks:
        with Stub() as stub:
            environment = os.environ | {"ANTHROPIC_BASE_URL": stub.url, "ANTHROPIC_API_KEY": "none"}
            done = subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        if page == "docs/python.md":
            lines = [line.split() for line in done.stdout.splitlines()]
            assert [line[0] for line in lines] == ["1", "1"] and len({line[1] for line in lines}) == 1
            assert sum(bool(line) and not line.startswith("#") for line in text.splitlines()) <= 20
