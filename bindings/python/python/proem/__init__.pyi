"""Builds the system prompt of an LLM agent, freezes it per conversation, and traces every byte to its source."""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

from typing_extensions import TypedDict, Unpack

__version__: str

Json = dict[str, Any]
"""An object of JSON, such as a message, a tool or an answer."""

Messages = str | bytes | Sequence[Any]
"""Messages: a list of dictionaries, or JSON text whose spelling is kept."""

Provider = str
"""The word of a provider, such as `anthropic`, `openai-responses` or `gemini`."""

Hook = Callable[[Json], Any | Awaitable[Any]]
_Hook = TypeVar("_Hook", bound=Hook)

class Tool(TypedDict, total=False):
    """A tool that the model may call. Only `name` is required."""

    name: str
    snippet: str
    guidelines: Sequence[str]
    description: str
    input_schema: Mapping[str, Any]

class PerPrompt(TypedDict, total=False):
    """Changes of the caller for one prompt, after those of hooks."""

    system_prompt: str | None
    messages: Sequence[Mapping[str, Any]] | None

class CallFields(TypedDict, total=False):
    """The fields of a request but `prompt`, as keyword arguments. In a later turn `None` removes a field."""

    profile: str | None
    cwd: str | os.PathLike[str] | None
    workspace: Mapping[str, Any] | str | None
    conversation: str | None
    workspace_id: str | None
    model: str | None
    language: str | None
    tools: Sequence[Tool | Mapping[str, Any]] | None
    scope: Mapping[str, Any] | None
    packs: Sequence[str] | None
    backend: str | None
    mcp_servers: Sequence[str] | None
    system: str | None
    append: str | Sequence[str] | None
    template: str | None
    instruction: str | None
    residents: bool | None
    project: bool | None
    recalled: str | None
    first_user_text: str | None
    touched: Sequence[str] | None
    images: Sequence[Mapping[str, Any]] | None
    messages: Messages | None
    per_prompt: PerPrompt | Mapping[str, Any] | None
    provider: Provider | None
    ttl: Literal["5m", "1h"] | None
    cached_content: str | None
    variables: Mapping[str, str | None]
    host: Mapping[str, Any]

class RequestFields(CallFields, total=False):
    """The fields of a request, as keyword arguments."""

    prompt: str | None

class ResourcePaths(TypedDict, total=False):
    """Paths of skills, packs and asset folders."""

    skill_paths: Sequence[str]
    prompt_paths: Sequence[str]
    asset_paths: Sequence[str]

class DeliveryFields(TypedDict, total=False):
    """The fields of a call to a provider, beside those that the prompt was built with."""

    messages: Messages | None
    prompt: str | None
    images: Sequence[Mapping[str, Any]] | None
    tools: Sequence[Tool | Mapping[str, Any]] | None
    model: str | None
    ttl: Literal["5m", "1h"] | None
    cached_content: str | None

class ProemError(Exception):
    """An error of proem: `code` is a stable word, `hint` tells how to fix it, `place` where the problem is."""

    message: str
    code: str
    hint: str | None
    place: Json | None
    kind: str | None
    def __init__(
        self,
        message: str,
        *,
        code: str = ...,
        hint: str | None = ...,
        place: Json | None = ...,
        kind: str | None = ...,
    ) -> None: ...

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

class Answer(dict[str, Any]):
    """An answer in the shape of the HTTP API; `json` is its text, in which numbers keep their spelling."""

    json: str
    def raw(self, field: str) -> str | None:
        """Return a field as JSON text, such as the `payload` of a compaction; `None` if there is no such field."""

class Prompt:
    """A prompt that was built for a request."""

    def __init__(self, **request: Unpack[RequestFields]) -> None: ...
    @property
    def system(self) -> str | None:
        """The system prompt; `None` if it is empty."""
    @property
    def carriers(self) -> dict[str, str]:
        """The text of each carrier; a carrier without text is missing."""
    @property
    def prefix(self) -> str:
        """The part of the system prompt that must not change."""
    @property
    def boundary(self) -> str:
        """The separator between the prefix and the rest."""
    @property
    def suffix(self) -> str:
        """The part of the system prompt that belongs to this turn alone."""
    @property
    def digest(self) -> str:
        """The SHA-256 of the prefix, in hexadecimal."""
    @property
    def profile(self) -> str:
        """The profile that it was built by."""
    @property
    def notes(self) -> list[Json]:
        """Everything that was cut, skipped or defaulted, and other findings."""
    @property
    def json(self) -> str:
        """The whole prompt as JSON text: that of `proem build --format json`."""
    def to_dict(self) -> Json:
        """Return the whole prompt: that of `proem build --format json`."""
    def explain(self) -> Answer:
        """Return sections, files, notes and the source of every byte."""
    def why(self, text: str) -> Answer:
        """Find the source of a text; if the prompt does not have it, the files that do and why they were not used."""
    def payload(self, provider: Provider, **call: Unpack[DeliveryFields]) -> Json:
        """Return the fields of a provider's request body."""
    def payload_json(self, provider: Provider, **call: Unpack[DeliveryFields]) -> str:
        """Return the fields of a provider's request body as JSON text, with the spelling of the messages."""
    def history(self, provider: Provider, **call: Unpack[DeliveryFields]) -> list[Json]:
        """Return the messages to keep for the next call, as they are sent."""
    def history_json(self, provider: Provider, **call: Unpack[DeliveryFields]) -> str:
        """Return the messages to keep for the next call as JSON text, in their spelling."""

class Turn:
    """Everything that the model sees in one turn."""

    @property
    def json(self) -> str:
        """The answer as JSON text: that of `POST /conversations/{id}/turn`."""
    def to_dict(self) -> Json:
        """Return the answer as a dictionary."""
    @property
    def version(self) -> int:
        """The version of this shape."""
    @property
    def conversation(self) -> str:
        """The id of the conversation."""
    @property
    def profile(self) -> str:
        """The profile that the prompt was built by."""
    @property
    def epoch(self) -> int:
        """The number of the epoch in force, from 1."""
    @property
    def reason(self) -> str:
        """The reason for which the epoch was opened."""
    @property
    def reused(self) -> bool:
        """True if the stored prompt was used, false if this turn built it."""
    @property
    def carriers(self) -> dict[str, str]:
        """The frozen text of each carrier."""
    @property
    def prefix(self) -> str | None:
        """The frozen text of the system carrier, before the boundary."""
    @property
    def boundary(self) -> str | None:
        """The line between the prefix and the part of this turn."""
    @property
    def suffix(self) -> str | None:
        """The text of this turn after the boundary, on the system carrier."""
    @property
    def turn(self) -> str | None:
        """The text of this turn on the `turn` carrier."""
    @property
    def digest(self) -> str:
        """The SHA-256 of the prefix, in hexadecimal."""
    @property
    def fingerprint(self) -> str:
        """The digest of the prefix and the tools, on which a provider's cache depends."""
    @property
    def signature(self) -> Json:
        """The properties that decide whether a running session may be used for this turn."""
    @property
    def system_prompt(self) -> str | None:
        """The system prompt that the model reads in this turn: after hooks."""
    @property
    def messages(self) -> list[Json]:
        """The messages of this call, in a neutral shape."""
    @property
    def messages_json(self) -> str:
        """The messages of this call as JSON text, in their spelling."""
    @property
    def tools(self) -> list[Json]:
        """The definitions of the active tools."""
    @property
    def history(self) -> list[Json]:
        """The messages to keep and send with the next turn: in the provider's shape if one was named."""
    @property
    def history_json(self) -> str:
        """The messages to keep as JSON text, in their spelling: the value of `messages` for the next turn."""
    @property
    def payload(self) -> Any:
        """The fields of the provider's request body as a dictionary; `None` if no provider was named."""
    @property
    def payload_json(self) -> str | None:
        """The fields of the provider's request body as JSON text, with the spelling of the messages."""
    @property
    def pending(self) -> list[Json]:
        """The changes that wait for the next epoch."""
    @property
    def changes(self) -> list[Json]:
        """The changes of each hook in the frozen prompt, in order."""
    @property
    def expected_miss(self) -> str | None:
        """The reason for an expected cache miss of the prefix in this turn."""
    @property
    def notes(self) -> list[Json]:
        """Notes for the reader."""

class Store:
    """A store of conversations: a file of SQLite, a database of PostgreSQL, or memory."""

    def __init__(self, name: str) -> None: ...
    @property
    def name(self) -> str:
        """The name of the store, without a password."""
    def conversation(self, id: str, /, **request: Unpack[RequestFields]) -> Conversation:
        """Return a conversation. The fields of the request go with the first turn that is made with it."""
    def conversations(self, *, search: str | None = ..., after: str | None = ..., limit: int | None = ...) -> Answer:
        """Return a page of conversations, the one with the newest epoch first."""
    def template(self) -> Json | None:
        """Return the stored template with its version; `None` if there is none."""
    def put_template(self, template: str, *, author: str | None = ..., expected_version: int | None = ...) -> Json:
        """Store a new version of the template."""
    def remove(self, id: str) -> bool:
        """Forget a conversation; tell whether there was one."""
    def close(self) -> None:
        """Close the store: later operations fail."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...

class Conversation:
    """A conversation of a store. It exists from its first turn on."""

    def __init__(self, store: Store, id: str, /, **request: Unpack[RequestFields]) -> None: ...
    @property
    def id(self) -> str:
        """The id."""
    def before_agent_start(self, function: _Hook) -> _Hook:
        """Register a callable that may change the system prompt or add a message, once for each prompt of the user."""
    def context(self, function: _Hook) -> _Hook:
        """Register a callable that may rewrite the messages before each call of the model."""
    def resources_discover(self, function: _Hook) -> _Hook:
        """Register a callable that may add skills, packs and assets before files are searched for."""
    def turn(self, prompt: str | None = ..., **call: Unpack[CallFields]) -> Turn:
        """Answer one turn: the frozen prompt, and everything else that the model sees."""
    async def turn_async(self, prompt: str | None = ..., **call: Unpack[CallFields]) -> Turn:
        """Answer one turn, on another thread."""
    def turn_json(self, request: str) -> Turn:
        """Answer one turn for the JSON text of a request."""
    def reload(self, **call: Unpack[RequestFields]) -> Answer:
        """Build the prompt again from the files as they are now."""
    async def reload_async(self, **call: Unpack[RequestFields]) -> Answer:
        """Build the prompt again, on another thread."""
    def reload_skills(self) -> Answer:
        """Search for skills again; other files stay as they were read."""
    async def reload_skills_async(self) -> Answer:
        """Search for skills again, on another thread."""
    def set_tool_registry(self, tools: Sequence[Tool | Mapping[str, Any]]) -> Answer:
        """Replace all tools. Active ones stay active while they exist, and new ones become active."""
    async def set_tool_registry_async(self, tools: Sequence[Tool | Mapping[str, Any]]) -> Answer:
        """Replace all tools, on another thread."""
    def set_active_tools(self, names: Sequence[str]) -> Answer:
        """Set the active tools, by name."""
    async def set_active_tools_async(self, names: Sequence[str]) -> Answer:
        """Set the active tools, on another thread."""
    def add_resources(self, **paths: Unpack[ResourcePaths]) -> Answer:
        """Add skills, packs and asset folders after the present ones."""
    async def add_resources_async(self, **paths: Unpack[ResourcePaths]) -> Answer:
        """Add skills, packs and asset folders, on another thread."""
    def switch_profile(self, profile: str) -> Answer:
        """Go on with another profile."""
    async def switch_profile_async(self, profile: str) -> Answer:
        """Go on with another profile, on another thread."""
    def begin_compaction(self, **call: Unpack[RequestFields]) -> Answer:
        """Begin a compaction. The epoch in force stays in force until it is committed."""
    async def begin_compaction_async(self, **call: Unpack[RequestFields]) -> Answer:
        """Begin a compaction, on another thread."""
    def commit_compaction(self, token: str) -> Answer:
        """Open the epoch after a compaction."""
    async def commit_compaction_async(self, token: str) -> Answer:
        """Open the epoch after a compaction, on another thread."""
    def abort_compaction(self, token: str) -> None:
        """End a compaction without an epoch."""
    async def abort_compaction_async(self, token: str) -> None:
        """End a compaction without an epoch, on another thread."""
    def plan(self, **call: Unpack[RequestFields]) -> Answer:
        """Show the changes that a reload would make. Nothing is changed."""
    async def plan_async(self, **call: Unpack[RequestFields]) -> Answer:
        """Show the changes that a reload would make, on another thread."""
    def plan_tools(self, tools: Sequence[Tool | Mapping[str, Any]]) -> Answer:
        """Show the changes that other tools would make. Nothing is changed."""
    def drift(self) -> Answer:
        """Compare the frozen prompt with one that is built now. Nothing is changed."""
    async def drift_async(self) -> Answer:
        """Compare the frozen prompt with one that is built now, on another thread."""
    def diff(self, before: int, after: int) -> Answer:
        """Compare two epochs."""
    def history(self) -> Answer:
        """Return the frozen prompt and all epochs."""
    async def history_async(self) -> Answer:
        """Return the frozen prompt and all epochs, on another thread."""
    def epoch(self, number: int, *, provider: Provider | None = ...) -> Answer:
        """Return one epoch with the source of every byte, and the payload for a provider if one is named."""
    def pending(self) -> list[Json]:
        """Return the changes that wait for the next epoch."""
    def fork(self, id: str, *, role: str | None = ...) -> Answer:
        """Begin a conversation with the prompt of this one."""
    def spawn(self, id: str, /, **call: Unpack[RequestFields]) -> Answer:
        """Begin a conversation with a prompt of its own, from this one."""
    def remove(self) -> bool:
        """Forget the conversation; tell whether there was one."""

def build(**request: Unpack[RequestFields]) -> Prompt:
    """Build the prompt for a request."""

async def build_async(**request: Unpack[RequestFields]) -> Prompt:
    """Build the prompt for a request, on another thread."""

def open(name: str) -> Store:
    """Open a store: `sqlite:PATH`, `memory:` or `postgres://…`."""

async def open_async(name: str) -> Store:
    """Open a store, on another thread."""

def diff(a: Prompt | str, b: Prompt | str, *, model: str | None = ..., provider: Provider | None = ...) -> Answer:
    """Compare two prompts: each a `Prompt`, or the JSON text of one."""

def check(
    *,
    strict: bool = ...,
    determinism: bool = ...,
    agents: str | Sequence[str] | None = ...,
    all: bool = ...,
    **request: Unpack[RequestFields],
) -> Answer:
    """Find what wastes tokens, misleads the model or leaks secrets in the prompt of a request."""

def compat(*, agents: str | Sequence[str] | None = ..., **request: Unpack[RequestFields]) -> Answer:
    """Show the instruction files and skills that each agent reads in a directory."""

def report(
    path: str | os.PathLike[str] | None = ...,
    *,
    source: str | None = ...,
    since: str | None = ...,
    conversation: str | None = ...,
    provider: str | None = ...,
) -> Answer:
    """Tell why recorded calls missed the provider's cache, and what that cost."""
