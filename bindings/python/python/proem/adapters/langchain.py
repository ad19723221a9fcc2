"""LangChain: a middleware for agents whose prompt comes from a conversation of proem.

agent = create_agent(model, tools, middleware=[ProemMiddleware(conversation)])
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.messages import HumanMessage, SystemMessage

from ._session import Session

if TYPE_CHECKING:
    from .. import Conversation


class ProemMiddleware(AgentMiddleware[Any, Any]):
    """Gives each call of the model the frozen prompt, and the texts of the turn."""

    def __init__(self, conversation: Conversation, *, cache: bool = False, **call: Any) -> None:
        """Make a middleware. The fields of `call` go with each turn; `cache` marks the prompt for Anthropic's cache."""
        super().__init__()
        self._session, self._cache = Session(conversation, **call), cache

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Call the model with the prompt of the conversation."""
        return handler(self._with_prompt(request))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """Call the model with the prompt of the conversation, which is made on another thread."""
        return await handler(await asyncio.to_thread(self._with_prompt, request))

    def _with_prompt(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        messages = list(request.messages)
        places = [index for index, message in enumerate(messages) if isinstance(message, HumanMessage)]
        system, texts = self._session.call([_text(messages[index].content) for index in places])
        for index, text in zip(places, texts, strict=True):
            content = _with_text(messages[index].content, text)
            messages[index] = messages[index].model_copy(update={"content": content})
        block: dict[str, Any] = {"type": "text", "text": system}
        if self._cache:
            block["cache_control"] = {"type": "ephemeral"}
        prompt = SystemMessage(content=[block]) if self._cache else SystemMessage(content=system)
        return request.override(system_message=prompt, messages=messages)


def _text(content: str | list[Any]) -> str:
    """Return the first text of a message."""
    if isinstance(content, str):
        return content
    return next((str(part["text"]) for part in content if isinstance(part, dict) and part.get("type") == "text"), "")


def _with_text(content: str | list[Any], text: str) -> str | list[Any]:
    """Return the content of a message with another first text."""
    if isinstance(content, str):
        return text
    is_text = [isinstance(part, dict) and part.get("type") == "text" for part in content]
    if True not in is_text:
        return [*content, {"type": "text", "text": text}] if text else content
    at = is_text.index(True)
    return [*content[:at], {**content[at], "text": text}, *content[at + 1 :]]
