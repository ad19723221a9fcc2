"""The OpenAI Agents SDK: an agent whose instructions and input come from a conversation of proem.

session = ProemAgent(conversation)
agent = Agent(name="coder", instructions=session.instructions, model="gpt-5.6-sol")
await Runner.run(agent, "Why does the build fail?", run_config=session.run_config())
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from agents import Agent, RunConfig, RunContextWrapper
from agents.run import CallModelData, ModelInputData

from ._session import Session

if TYPE_CHECKING:
    from .. import Conversation


class ProemAgent:
    """The hooks of one conversation: `instructions` and `call_model_input_filter`."""

    def __init__(self, conversation: Conversation, **call: Any) -> None:
        """Make the hooks. The fields of `call` go with each turn."""
        self._conversation, self._call = conversation, call
        self._session = Session(conversation, **call)

    async def instructions(self, _context: RunContextWrapper[Any], _agent: Agent[Any]) -> str:
        """Return the frozen prompt. The filter replaces it by that of the call, with what hooks changed."""
        turn = await self._conversation.turn_async(**self._call)
        return turn.system_prompt or ""

    async def call_model_input_filter(self, data: CallModelData[Any]) -> ModelInputData:
        """Return the input of a call with the prompt and the texts of the turn."""
        items: list[Any] = list(data.model_data.input)
        places = [index for index, item in enumerate(items) if item.get("role") == "user"]
        users = [_text(items[index]["content"]) for index in places]
        system, texts = await asyncio.to_thread(self._session.call, users)
        for index, text in zip(places, texts, strict=True):
            items[index] = {**items[index], "content": _with_text(items[index]["content"], text)}
        return ModelInputData(input=items, instructions=system)

    def run_config(self, **options: Any) -> RunConfig:
        """Return settings of a run with the filter."""
        return RunConfig(call_model_input_filter=self.call_model_input_filter, **options)


def _text(content: str | list[Any]) -> str:
    """Return the first text of a message."""
    if isinstance(content, str):
        return content
    return next((str(part["text"]) for part in content if part.get("type") == "input_text"), "")


def _with_text(content: str | list[Any], text: str) -> str | list[Any]:
    """Return the content of a message with another first text."""
    if isinstance(content, str):
        return text
    at = next((index for index, part in enumerate(content) if part.get("type") == "input_text"), None)
    if at is None:
        return [*content, {"type": "input_text", "text": text}] if text else content
    return [*content[:at], {**content[at], "text": text}, *content[at + 1 :]]
