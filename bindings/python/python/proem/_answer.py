"""Answers as dictionaries that keep their JSON text."""

from __future__ import annotations

from typing import Any

from ._proem import raw_field


class Answer(dict[str, Any]):
    """An answer in the shape of the HTTP API; `json` is its text, in which numbers keep their spelling."""

    def __init__(self, fields: dict[str, Any], json: str) -> None:
        super().__init__(fields)
        self.json = json

    def raw(self, field: str) -> str | None:
        """Return a field as JSON text, such as the `payload` of a compaction; `None` if there is no such field."""
        return raw_field(self.json, field)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self), self.json)
