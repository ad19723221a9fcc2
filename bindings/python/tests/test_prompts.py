"""Prompts that are not kept."""

from __future__ import annotations

import asyncio
import gc
import json
import pickle
import resource
import threading
from pathlib import Path
from typing import Any

import proem
import pytest


def test_a_prompt_has_its_parts() -> None:
    prompt = proem.build(profile="template", system="Be brief.")
    assert prompt.system == prompt.prefix == "Be brief."
    assert prompt.profile == "template"
    assert prompt.to_dict()["digest"] == prompt.digest
    assert prompt.carriers == {"system": "Be brief."}
    assert prompt.explain()["sections"][0]["id"] == "base"
    assert prompt.why("brief")["places"][0]["spans"][0]["source"] == {"kind": "request", "field": "system"}
    assert prompt.why("long") == {"places": [], "elsewhere": []}
    assert asyncio.run(proem.build_async(cwd=Path())).system == proem.build().system


def test_a_payload_keeps_the_spelling_of_messages() -> None:
    prompt = proem.build(profile="template", system="Be brief.", model="claude-opus-5")
    raw = (
        '[{"role":"user","content":[{"type":"text","text":"caf\\u00e9","n":1.50}]},{"role":"assistant","content":"a"}]'
    )
    text = prompt.payload_json("anthropic", messages=raw, prompt="Go on.")
    assert '"text":"caf\\u00e9","n":1.50' in text
    assert json.loads(text) == prompt.payload("anthropic", messages=raw, prompt="Go on.")
    assert '"n":1.50' in prompt.history_json("anthropic", messages=[raw[1 : raw.index("},{") + 1]])
    assert prompt.history("anthropic", messages=raw.encode())[0]["role"] == "user"


def test_prompts_are_compared() -> None:
    a, b = (proem.build(profile="template", system=text) for text in ("Be brief.", "Be long."))
    found = proem.diff(a, b)
    assert found["first_difference"]["byte"] == 3
    assert proem.diff(a.json, b.json) == found
    assert "first_difference" not in proem.diff(a, a)


def test_files_are_checked() -> None:
    Path("AGENTS.md").write_text("A\u200bB\n")
    assert [found["code"] for found in proem.check(profile="default")["findings"]]
    agents = {agent["profile"]: agent for agent in proem.compat(agents=["codex"])["agents"]}
    assert "codex" in agents
    Path("calls.jsonl").write_text("")
    assert proem.report("calls.jsonl")["totals"]["calls"] == 0


class Odd:
    """A value that JSON does not have."""


def nested() -> list[Any]:
    deep: list[Any] = []
    deep.append(deep)
    return deep


@pytest.mark.parametrize(
    ("given", "code", "field"),
    [
        ({"system": 1}, "bad_request", None),
        ({"system": "\ud800"}, "bad_request", "system"),
        ({"variables": {"a": "\udfff"}}, "bad_request", "variables"),
        ({"variables": {1: "a"}}, "bad_request", "variables"),
        ({"images": [float("nan")]}, "bad_request", "images"),
        ({"images": nested()}, "bad_request", "images"),
        ({"system": Odd()}, "bad_request", "system"),
        ({"system": b"bytes"}, "bad_request", "system"),
        ({"messages": "[{"}, "bad_request", None),
        ({"messages": [1]}, "bad_request", None),
        ({"tools": {"name": "read"}}, "bad_request", None),
        ({"no_such_field": 1}, "bad_request", None),
        ({"system": "x" * 70_000_000}, "bad_request", None),
        ({"profile": "assets", "template": "{{ ghost }}"}, "build_failed", None),
    ],
)
def test_bad_input_gets_an_error_with_a_code(given: dict[str, Any], code: str, field: str | None) -> None:
    with pytest.raises(proem.ProemError) as raised:
        proem.build(**given)
    error = raised.value
    assert error.code == code, error
    assert isinstance(error, proem.BuildError if code == "build_failed" else proem.RequestError)
    assert field is None or (error.place is not None and error.place["field"] == field and error.hint)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)  # noqa: S301 - made here.


def test_none_is_a_field_that_is_not_given() -> None:
    assert proem.build(profile="template", system="a", model=None).system == "a"
    with pytest.raises(proem.RequestError):
        proem.build(profile="template", host=None)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        proem.build("positional")  # type: ignore[call-arg]


def test_threads_build_at_once() -> None:
    expected = proem.build().system
    found: list[str | None] = []

    def work() -> None:
        found.extend(proem.build().system for _ in range(25))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 200


def test_memory_does_not_grow(request: pytest.FixtureRequest) -> None:
    count = int(request.config.getoption("--builds"))

    def build(times: int) -> int:
        for _ in range(times):
            prompt = proem.build(profile="template", system="x" * 10_000)
            assert prompt.payload("anthropic", prompt="Hello")
            with pytest.raises(proem.RequestError):
                proem.build(system=1)  # type: ignore[arg-type]
        gc.collect()
        return resident()

    before = build(count // 10)
    # Without a leak a few pages more or less; with one, at least the text of each prompt.
    assert build(count) - before < count * 5_000


def resident() -> int:
    """Return the bytes of memory that this process has."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()
