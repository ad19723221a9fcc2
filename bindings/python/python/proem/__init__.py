"""Builds the system prompt of an LLM agent, freezes it per conversation, and traces every byte to its source.

>>> import proem
>>> prompt = proem.build(profile="template", system="Be brief.")
>>> prompt.system
'Be brief.'

Keyword arguments are the fields of a request, and answers have the shapes of the HTTP API. The stub file `__init__.pyi`
describes all of them.
"""

from __future__ import annotations

import asyncio
import atexit
import os
from typing import Any

from . import _hooks, _proem
from ._answer import Answer
from ._errors import (
    BuildError,
    ConflictError,
    ForkWarning,
    HookWarning,
    NotFoundError,
    ProemError,
    RequestError,
    StoreError,
)
from ._proem import Prompt, Turn, check, compat, diff, report

__all__ = [
    "Answer",
    "BuildError",
    "ConflictError",
    "Conversation",
    "ForkWarning",
    "HookWarning",
    "NotFoundError",
    "ProemError",
    "Prompt",
    "RequestError",
    "Store",
    "StoreError",
    "Turn",
    "build",
    "build_async",
    "check",
    "compat",
    "diff",
    "open",
    "open_async",
    "report",
]
__version__: str = _proem.VERSION

atexit.register(_proem.end)
os.register_at_fork(after_in_child=_proem.forked)


def build(**request: Any) -> Prompt:
    """Build the prompt for a request."""
    return Prompt(**request)


async def build_async(**request: Any) -> Prompt:
    """Build the prompt for a request, on another thread."""
    return await asyncio.to_thread(Prompt, **request)


class Store(_proem.Store):
    """A store of conversations: a file of SQLite, a database of PostgreSQL, or memory."""

    def conversation(self, id: str, /, **request: Any) -> Conversation:
        """Return a conversation. The fields of the request go with the first turn that is made with it."""
        return Conversation(self, id, **request)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open(name: str) -> Store:
    """Open a store: `sqlite:PATH`, `memory:` or `postgres://…`."""
    return Store(name)


async def open_async(name: str) -> Store:
    """Open a store, on another thread."""
    return await asyncio.to_thread(Store, name)


class Conversation(_proem.Conversation):
    """A conversation of a store. It exists from its first turn on."""

    def before_agent_start(self, function: _hooks.Hook) -> _hooks.Hook:
        """Register a callable that may change the system prompt or add a message, once for each prompt of the user."""
        return self._hook("before_agent_start", function)

    def context(self, function: _hooks.Hook) -> _hooks.Hook:
        """Register a callable that may rewrite the messages before each call of the model."""
        return self._hook("context", function)

    def resources_discover(self, function: _hooks.Hook) -> _hooks.Hook:
        """Register a callable that may add skills, packs and assets before files are searched for."""
        return self._hook("resources_discover", function)

    def _hook(self, event: str, function: _hooks.Hook) -> _hooks.Hook:
        if not callable(function):
            raise RequestError(
                f"the hook for `{event}` is not callable", code="bad_request", hint="register a function"
            )
        self._add_hook(event, _hooks.name_of(function), _hooks.start, function)
        return function

    async def turn_async(self, prompt: str | None = None, **call: Any) -> Turn:
        """Answer one turn, on another thread."""
        return await asyncio.to_thread(self.turn, prompt, **call)

    async def reload_async(self, **call: Any) -> dict[str, Any]:
        """Build the prompt again, on another thread."""
        return await asyncio.to_thread(self.reload, **call)

    async def reload_skills_async(self) -> dict[str, Any]:
        """Search for skills again, on another thread."""
        return await asyncio.to_thread(self.reload_skills)

    async def set_tool_registry_async(self, tools: list[dict[str, Any]]) -> dict[str, Any]:
        """Replace all tools, on another thread."""
        return await asyncio.to_thread(self.set_tool_registry, tools)

    async def set_active_tools_async(self, names: list[str]) -> dict[str, Any]:
        """Set the active tools, on another thread."""
        return await asyncio.to_thread(self.set_active_tools, names)

    async def add_resources_async(self, **paths: list[str]) -> dict[str, Any]:
        """Add skills, packs and asset folders, on another thread."""
        return await asyncio.to_thread(self.add_resources, **paths)

    async def switch_profile_async(self, profile: str) -> dict[str, Any]:
        """Go on with another profile, on another thread."""
        return await asyncio.to_thread(self.switch_profile, profile)

    async def begin_compaction_async(self, **call: Any) -> dict[str, Any]:
        """Begin a compaction, on another thread."""
        return await asyncio.to_thread(self.begin_compaction, **call)

    async def commit_compaction_async(self, token: str) -> dict[str, Any]:
        """Open the epoch after a compaction, on another thread."""
        return await asyncio.to_thread(self.commit_compaction, token)

    async def abort_compaction_async(self, token: str) -> None:
        """End a compaction without an epoch, on another thread."""
        await asyncio.to_thread(self.abort_compaction, token)

    async def plan_async(self, **call: Any) -> dict[str, Any]:
        """Show the changes that a reload would make, on another thread."""
        return await asyncio.to_thread(self.plan, **call)

    async def drift_async(self) -> dict[str, Any]:
        """Compare the frozen prompt with one that is built now, on another thread."""
        return await asyncio.to_thread(self.drift)

    async def history_async(self) -> dict[str, Any]:
        """Return the frozen prompt and all epochs, on another thread."""
        return await asyncio.to_thread(self.history)
