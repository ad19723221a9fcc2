"""The exceptions and warnings of the package."""

from __future__ import annotations

import warnings
from typing import Any

# Raised from native code by `error_of` and `warn`: the names are part of its interface.


class ProemError(Exception):
    """An error of proem: `code` is a stable word, `hint` tells how to fix it, `place` where the problem is."""

    def __init__(
        self,
        message: str,
        *,
        code: str = "internal",
        hint: str | None = None,
        place: dict[str, Any] | None = None,
        kind: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.hint = hint
        self.place = place
        self.kind = kind

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\nhint: {self.hint}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), self.message, self.code, self.hint, self.place, self.kind)


class RequestError(ProemError, ValueError):
    """The request is invalid."""


class BuildError(ProemError):
    """The request is valid, and its prompt cannot be built; `kind` is the reason."""


class NotFoundError(ProemError, LookupError):
    """There is no such conversation, epoch, compaction or workspace."""


class ConflictError(ProemError):
    """The conversation does not allow the change, or another writer was first."""


class StoreError(ProemError):
    """The store cannot be used."""


class ForkWarning(RuntimeWarning):
    """A store was opened before a fork, and was opened again in this process."""


class HookWarning(RuntimeWarning):
    """A hook failed and was skipped."""


_CLASSES: dict[str, type[ProemError]] = {
    "bad_request": RequestError,
    "bad_id": RequestError,
    "too_large": RequestError,
    "build_failed": BuildError,
    "not_found": NotFoundError,
    "no_conversation": NotFoundError,
    "no_compaction": NotFoundError,
    "no_workspace": NotFoundError,
    "other_view": ConflictError,
    "rebuild_not_allowed": ConflictError,
    "conflict": ConflictError,
    "conversation_exists": ConflictError,
    "too_many_children": ConflictError,
    "store_unavailable": StoreError,
    "store_damaged": StoreError,
    "store_closed": StoreError,
    "store_opened_twice": StoreError,
}

_WARNINGS: dict[str, type[Warning]] = {"fork": ForkWarning, "hook": HookWarning}


def error_of(code: str, message: str, hint: str | None, place: dict[str, Any] | None, kind: str | None) -> ProemError:
    """Make the exception of an error."""
    return _again(_CLASSES.get(code, ProemError), message, code, hint, place, kind)


def _again(
    cls: type[ProemError],
    message: str,
    code: str,
    hint: str | None,
    place: dict[str, Any] | None,
    kind: str | None,
) -> ProemError:
    return cls(message, code=code, hint=hint, place=place, kind=kind)


def warn(kind: str, message: str) -> None:
    """Warn of an event, at the line that called the package."""
    warnings.warn(message, _WARNINGS[kind], stacklevel=2)
