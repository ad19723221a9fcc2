"""A conversation inside a framework that keeps the messages itself."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .. import Conversation


class Session:
    """Answers the calls of a framework with turns of a conversation.

    A framework gives all messages with each call, in its own types, and proem adds text to those of the user: facts of the
    turn, and what hooks inject. A message gets its text once, so that the next request begins with the bytes of this one.
    """

    def __init__(self, conversation: Conversation, **call: Any) -> None:
        """Make a session. The fields of `call` go with each turn."""
        self._conversation = conversation
        self._call = call
        self._given: list[str] = []
        self._texts: list[str] = []
        self._history = "[]"
        self._lock = threading.Lock()

    def call(self, users: list[str]) -> tuple[str, list[str]]:
        """Return the system prompt for a call, and the text that each message of the user gets.

        `users` are the texts of the messages of the user so far. A new one is a prompt: then hooks run.
        """
        with self._lock:
            if self._given != users[: len(self._given)]:
                # Another conversation, or one whose beginning was cut: nothing is known about its messages.
                self._given, self._texts, self._history = [], [], "[]"
            system = None
            for prompt in users[len(self._given) :]:
                system = self._turn(prompt)
            return self._turn(None) if system is None else system, list(self._texts)

    def _turn(self, prompt: str | None) -> str:
        turn = self._conversation.turn(prompt, **{**self._call, "messages": self._history})
        if prompt is not None:
            known = len(json.loads(self._history))
            self._texts.append("\n\n".join(_text(message) for message in turn.messages[known:]))
            self._given.append(prompt)
            self._history = turn.history_json
        developer = turn.carriers.get("developer", "")
        return "\n\n".join(part for part in (turn.system_prompt or "", developer) if part)


def _text(message: dict[str, Any]) -> str:
    """Return the text of a message."""
    content = message["content"]
    if isinstance(content, str):
        return content
    return "\n\n".join(part["text"] for part in content if "text" in part)
