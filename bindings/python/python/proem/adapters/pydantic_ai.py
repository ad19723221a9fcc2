"""Pydantic AI: a capability for agents whose prompt comes from a conversation of proem.

agent = Agent("anthropic:claude-opus-5", capabilities=[ProemCapability(conversation)])
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import InstructionPart, ModelRequest, UserPromptPart
from pydantic_ai.models import ModelRequestContext

from ._session import Session

if TYPE_CHECKING:
    from .. import Conversation


class ProemCapability(AbstractCapability[Any]):
    """Gives each call of the model the frozen prompt, and the texts of the turn."""

    def __init__(self, conversation: Conversation, **call: Any) -> None:
        """Make a capability. The fields of `call` go with each turn."""
        self._conversation, self._call = conversation, call
        self._session = Session(conversation, **call)

    async def instructions(self) -> str:
        """Return the frozen prompt, for `Agent(instructions=…)`; the capability itself sends that of the call."""
        turn = await self._conversation.turn_async(**self._call)
        return turn.system_prompt or ""

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Put the prompt of the conversation, and the texts of the turn, into a request."""
        messages = list(request_context.messages)
        places = [
            (index, at)
            for index, message in enumerate(messages)
            if isinstance(message, ModelRequest)
            for at, part in enumerate(message.parts)
            if isinstance(part, UserPromptPart)
        ]
        users = [_text(messages[index].parts[at]) for index, at in places]
        system, texts = await asyncio.to_thread(self._session.call, users)
        for (index, at), text in zip(places, texts, strict=True):
            message: Any = messages[index]
            parts = list(message.parts)
            parts[at] = _with_text(parts[at], text)
            messages[index] = replace(message, parts=parts)
        parameters = replace(
            request_context.model_request_parameters, instruction_parts=[InstructionPart(content=system)]
        )
        return replace(request_context, messages=messages, model_request_parameters=parameters)


def _text(part: Any) -> str:
    """Return the first text of a part."""
    if isinstance(part.content, str):
        return part.content
    return next((item for item in part.content if isinstance(item, str)), "")


def _with_text(part: Any, text: str) -> Any:
    """Return a part with another first text."""
    if isinstance(part.content, str):
        return replace(part, content=text)
    content = list(part.content)
    at = next((index for index, item in enumerate(content) if isinstance(item, str)), None)
    if at is None:
        return replace(part, content=[*content, text] if text else content)
    return replace(part, content=[*content[:at], text, *content[at + 1 :]])
