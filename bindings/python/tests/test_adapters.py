"""The adapters with the real frameworks, against a provider on the loopback interface that records what it gets."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import proem
import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "scripts"))
from agents_parts.stub import Stub

# The profile `default` has a frozen prompt from AGENTS.md; the hook adds a text to each prompt of the user.
FIELDS: dict[str, Any] = {"profile": "template", "system": "Be brief.", "model": "claude-opus-5"}


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub() as server:
        yield server


@pytest.fixture
def conversation() -> Iterator[proem.Conversation]:
    with proem.open("memory:") as store:
        made = store.conversation("c-17", **FIELDS)
        made.before_agent_start(ticket)
        yield made


def ticket(event: dict[str, Any]) -> dict[str, Any]:
    """Add a message to each prompt."""
    return {"message": f"Ticket of {event['prompt']}"}


def keeps(first: Any, second: Any) -> None:
    """Check that a list begins with another one: its messages keep their bytes."""
    assert json.dumps(second)[: len(json.dumps(first)) - 1] == json.dumps(first)[:-1]


def test_anthropic(stub: Stub, conversation: proem.Conversation) -> None:
    from anthropic import Anthropic

    client = Anthropic(api_key="none", base_url=stub.url)
    turn = conversation.turn("Hello", provider="anthropic")
    response = client.messages.create(max_tokens=100, **turn.payload)
    # The blocks of the SDK are objects of its own.
    history = [*turn.history, {"role": "assistant", "content": response.content}]
    turn = conversation.turn("And now?", messages=history, provider="anthropic")
    client.messages.create(max_tokens=100, **turn.payload)
    first, second = stub.bodies
    assert first["system"] == second["system"]
    assert first["system"][0]["text"] == "Be brief." and first["system"][0]["cache_control"]["type"] == "ephemeral"
    assert [message["role"] for message in second["messages"]] == ["user", "user", "assistant", "user", "user"]
    assert json.loads(turn.payload_json or "")["messages"] == second["messages"]


def test_openai(stub: Stub, conversation: proem.Conversation) -> None:
    from openai import OpenAI

    client = OpenAI(api_key="none", base_url=f"{stub.url}/v1")
    for provider, create, key in (
        ("openai-responses", client.responses.create, "input"),
        ("openai-chat", client.chat.completions.create, "messages"),
    ):
        stub.bodies.clear()
        turn = conversation.turn("Hello", provider=provider, model="gpt-5.6-sol")
        create(**turn.payload)
        answer = {"role": "assistant", "content": "Done."}
        turn = conversation.turn("And now?", messages=[*turn.history, answer], provider=provider)
        create(**turn.payload)
        first, second = stub.bodies
        assert json.dumps(first).count("Be brief.") == 1
        keeps(first[key], second[key])
        assert json.loads(turn.payload_json or "") == second


def test_openai_agents(stub: Stub, conversation: proem.Conversation) -> None:
    from agents import Agent, OpenAIResponsesModel, Runner, set_tracing_disabled
    from openai import AsyncOpenAI
    from proem.adapters.openai_agents import ProemAgent

    set_tracing_disabled(True)

    async def main() -> None:
        client = AsyncOpenAI(api_key="none", base_url=f"{stub.url}/v1")
        session = ProemAgent(conversation)
        model = OpenAIResponsesModel(model="gpt-5.6-sol", openai_client=client)
        agent = Agent(name="coder", instructions=session.instructions, model=model)
        first = await Runner.run(agent, "Hello", run_config=session.run_config())
        again: list[Any] = [*first.to_input_list(), {"role": "user", "content": "And now?"}]
        await Runner.run(agent, again, run_config=session.run_config())

    asyncio.run(main())
    first, second = stub.bodies
    assert first["instructions"] == second["instructions"] == "Be brief."
    assert first["input"][0]["content"] == "Hello\n\nTicket of Hello"
    assert second["input"][-1]["content"] == "And now?\n\nTicket of And now?"
    keeps(first["input"], second["input"])


def test_langchain(stub: Stub, conversation: proem.Conversation) -> None:
    from langchain.agents import create_agent
    from langchain_anthropic import ChatAnthropic
    from proem.adapters.langchain import ProemMiddleware

    model = ChatAnthropic(model="claude-opus-5", api_key="none", base_url=stub.url, max_tokens=100)  # type: ignore[call-arg, arg-type]
    agent = create_agent(model, [], middleware=[ProemMiddleware(conversation, cache=True)])
    state = agent.invoke({"messages": [{"role": "user", "content": "Hello"}]})
    messages = [*state["messages"], {"role": "user", "content": "And now?"}]
    asyncio.run(agent.ainvoke({"messages": messages}))
    first, second = stub.bodies
    assert (
        first["system"]
        == second["system"]
        == [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
    )
    assert "Ticket of Hello" in json.dumps(first["messages"])
    assert "Ticket of And now?" in json.dumps(second["messages"][-1])
    keeps(first["messages"], second["messages"])


def test_pydantic_ai(stub: Stub, conversation: proem.Conversation) -> None:
    from proem.adapters.pydantic_ai import ProemCapability
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    model = OpenAIChatModel("gpt-5.6-sol", provider=OpenAIProvider(base_url=f"{stub.url}/v1", api_key="none"))
    capability = ProemCapability(conversation)
    agent = Agent(model, instructions=capability.instructions, capabilities=[capability])

    async def main() -> None:
        first = await agent.run("Hello")
        await agent.run("And now?", message_history=first.all_messages())

    asyncio.run(main())
    first, second = stub.bodies
    assert first["messages"][0]["content"] == "Be brief."
    assert first["messages"][1]["content"] == "Hello\n\nTicket of Hello"
    assert second["messages"][-1]["content"] == "And now?\n\nTicket of And now?"
    keeps(first["messages"], second["messages"])


def test_claude_agent_sdk(stub: Stub, conversation: proem.Conversation, tmp_path: Path) -> None:
    from claude_agent_sdk import query
    from proem.adapters.claude_agent_sdk import options

    environment = {
        "ANTHROPIC_BASE_URL": stub.url,
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CONFIG_DIR": str(tmp_path / "claude"),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "PATH": os.environ["PATH"],
    }

    async def main() -> None:
        settings = options(conversation, env=environment, max_turns=1, cwd=str(tmp_path))
        async for _ in query(prompt="Hello", options=settings):
            pass

    asyncio.run(main())
    asked = [body for body in stub.bodies if "Hello" in json.dumps(body.get("messages"))]
    assert asked and "Be brief." in json.dumps(asked[0]["system"])
