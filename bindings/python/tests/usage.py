"""Uses of the package that must have types: pyright and mypy check this file, nothing runs it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, assert_type

import proem


def prompts() -> None:
    prompt = proem.build(cwd=Path(), model="claude-opus-5", tools=[{"name": "read"}], per_prompt={"messages": []})
    assert_type(prompt.system, "str | None")
    assert_type(prompt.explain(), proem.Answer)
    assert_type(prompt.payload_json("anthropic", messages="[]", ttl="1h"), str)
    assert_type(proem.diff(prompt, prompt.json, provider="anthropic").json, str)
    proem.check(strict=True, agents=["codex"], cwd=".")
    proem.build(system=1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    proem.build(no_such_field=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


async def conversations() -> None:
    with proem.open("memory:") as store:
        conversation = store.conversation("c-1", variables={"user:name": None}, mcp_servers=["a"])

        @conversation.before_agent_start
        def add(event: dict[str, Any]) -> dict[str, Any]:
            return {"message": event["prompt"]}

        @conversation.context
        async def last(event: dict[str, Any]) -> list[Any]:
            return list(event["messages"][-1:])

        assert_type(add({}), "dict[str, Any]")
        turn = await conversation.turn_async("Hello", provider="anthropic", messages=b"[]")
        assert_type(turn, proem.Turn)
        assert_type([*turn.history, {}], "list[dict[str, Any]]")
        assert_type(await conversation.plan_async(), proem.Answer)
        try:
            conversation.turn(None, model=None)
        except proem.BuildError as error:
            assert_type(error.hint, "str | None")
        conversation.context(3)  # type: ignore[type-var]  # pyright: ignore[reportArgumentType]
