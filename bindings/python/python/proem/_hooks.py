"""Runs callables as hooks, each call on a thread of its own."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable
from typing import Any

Hook = Callable[[dict[str, Any]], Any]


def start(function: Hook, job: Any) -> None:
    """Start the call of a hook. The engine waits for its answer, for a limited time."""
    threading.Thread(target=_run, args=(function, job), name="proem-hook", daemon=True).start()


def _run(function: Hook, job: Any) -> None:
    try:
        answer = function(job.event())
        if inspect.isawaitable(answer):
            answer = asyncio.run(_awaited(answer))
        job.answer(answer)
    except BaseException as error:
        job.fail(f"{type(error).__name__}: {error}")


async def _awaited(answer: Awaitable[Any]) -> Any:
    return await answer


def name_of(function: Hook) -> str:
    """Return the name by which a hook is reported."""
    return getattr(function, "__name__", None) or type(function).__name__
