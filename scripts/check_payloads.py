"""Loads golden payloads into the request types of the official SDKs and fails on what they would refuse.

A payload is `<folder>/<case>/<provider>.json`. Types come first; the rules that no type can express
follow only when the types hold, so that a rule may rely on the shape. Sends nothing anywhere.
"""

import argparse
import copy
import itertools
import json
import pathlib
import re
import sys
import tempfile
import tomllib
from typing import Any

import botocore.loaders
import botocore.model
import botocore.validate
from acp.schema import NewSessionRequest, PromptRequest
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming as AnthropicRequest
from google.genai.types import Content, Tool
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming as ChatRequest
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming as ResponsesRequest
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import SchemaValidator

# What the types do not judge. Printed with every run: a green result must not claim more than was looked at.
EXEMPTIONS = [
    ("anthropic", "tools[].input_schema", "the type admits any object; a rule asks for type object and sorted keys"),
    ("openai-*", "prompt_cache_breakpoint by model", "the types do not tie it to gpt-5.6 and later; a rule does"),
    ("deepseek", "everything", "has no SDK of its own: OpenAI's chat types, and rules for what its server refuses"),
    ("gemini", "contents[].role", "the type admits any string; a rule asks for user or model"),
    ("bedrock", "enums, patterns, maxima", "botocore's validator skips them; read here from the same service model"),
    ("acp", "_meta.systemPrompt", "the schema leaves _meta open; a rule asks for a text or {append: text}"),
    ("codex", "everything", "publishes no types; its arguments are read with a TOML parser as it reads them"),
]

MARKERS_MAX = 4
PROMPT_CACHE_KEY_CHARS_MAX = 64
# Linux refuses to start a process with a longer single argument: 32 pages, one byte of them for the final NUL.
ARGUMENT_BYTES_MAX = 32 * 4096 - 1
FIRST_GPT_WITH_BREAKPOINTS = (5, 6)
GEMINI_ROLES = {"user", "model"}
DEEPSEEK_ROLES = {"system", "user", "assistant", "tool"}

# What a tool may be called. Bedrock's pattern is in its service model.
WORD_128 = r"[a-zA-Z0-9_-]{1,128}"
WORD_64 = r"[a-zA-Z0-9_-]{1,64}"
GEMINI_NAME = r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}"


# Whole payloads, where the SDK has types for the parts only. A default of None makes a key optional, not null.


class GeminiRequest(BaseModel, extra="forbid"):  # type: ignore[call-arg]
    systemInstruction: Content = None
    tools: list[Tool] = None  # type: ignore[assignment]
    contents: list[Content] = None  # type: ignore[assignment]
    cachedContent: str = None  # type: ignore[assignment]


class CodexCommand(BaseModel, extra="forbid"):  # type: ignore[call-arg]
    args: list[str]
    prompt: str = None  # type: ignore[assignment]


# One function per provider. Each adds what the caller of proem has to add, then returns problems as sentences.


def check_anthropic(payload, _path):
    caller = {"model": "any", "max_tokens": 1, "messages": [{"role": "user", "content": "Hello."}]}
    refused = typed_dict_problems(ANTHROPIC, caller | payload)
    if refused:
        return refused
    tools, messages = payload.get("tools", []), payload.get("messages", [])
    blocks = [*content_blocks(payload.get("system", [])), *message_blocks(messages)]
    # A marker at the top level stands for one on the last block of the request.
    marked = [block.get("cache_control") for block in [*tools, *blocks, payload]]
    schemas = [(tool["name"], tool["input_schema"]) for tool in tools if "input_schema" in tool]
    return [
        *tool_problems(payload, "tools", schemas, WORD_128),
        *text_problems(blocks),
        *empty_message_problems(messages, "content"),
        *marker_problems([marker.get("ttl", "5m") for marker in marked if marker]),
    ]


def check_openai_responses(payload, _path):
    refused = typed_dict_problems(RESPONSES, {"model": "any"} | payload)
    if refused:
        return refused
    items = payload.get("input", [])
    messages = [] if isinstance(items, str) else items
    tools = [(tool["name"], tool.get("parameters")) for tool in payload.get("tools", []) if tool["type"] == "function"]
    return [
        *tool_problems(payload, "tools", tools, WORD_64),
        *text_problems([*message_blocks(messages)]),
        *empty_message_problems([item for item in messages if "role" in item], "content"),
        *openai_cache_problems(payload, [*message_blocks(messages)]),
        *assistant_part_problems(messages),
    ]


def check_openai_chat(payload, _path):
    refused = typed_dict_problems(CHAT, {"model": "any"} | payload)
    if refused:
        return refused
    messages = payload["messages"]
    return [
        *tool_problems(payload, "tools", chat_tools(payload), WORD_64),
        *text_problems([*message_blocks(messages)]),
        *empty_message_problems(messages, "content"),
        *openai_cache_problems(payload, [*message_blocks(messages)]),
    ]


def check_deepseek(payload, path):
    """DeepSeek answers 400 to the role `developer` and to a list of parts, both right at OpenAI."""
    refused = check_openai_chat(payload, path)
    if refused:
        return refused
    messages = payload["messages"]
    return [
        *[f"role `{m['role']}` is refused by DeepSeek" for m in messages if m["role"] not in DEEPSEEK_ROLES],
        *["DeepSeek takes content as one string, not as parts" for m in messages if isinstance(m.get("content"), list)],
        *[f"`{key}` does nothing at DeepSeek" for key in payload if key.startswith("prompt_cache_")],
    ]


def check_gemini(payload, _path):
    refused = model_problems(GeminiRequest, payload)
    if refused:
        return refused
    contents = payload.get("contents", [])
    declarations = [d for tool in payload.get("tools", []) for d in tool.get("functionDeclarations") or []]
    tools = [(d.get("name") or "", d.get("parametersJsonSchema")) for d in declarations]
    both_schemas = {"parameters", "parametersJsonSchema"}
    return [
        *tool_problems(payload, "tools", tools, GEMINI_NAME),
        *text_problems([p for c in [payload.get("systemInstruction", {}), *contents] for p in c.get("parts") or []]),
        *empty_message_problems(contents, "parts"),
        *[f"role `{c.get('role')}` is neither user nor model" for c in contents if c.get("role") not in GEMINI_ROLES],
        *["`parameters` excludes `parametersJsonSchema`" for d in declarations if both_schemas <= d.keys()],
        *cached_content_problems(payload),
    ]


def check_bedrock(payload, _path):
    request = {"modelId": "any"} | payload
    judged = botocore.validate.ParamValidator().validate(request, CONVERSE)
    if judged.has_errors():
        return judged.generate_report().splitlines()
    refused = service_model_problems(request, CONVERSE, "")
    if refused:
        return refused
    tools = payload.get("toolConfig", {}).get("tools", [])
    messages, system = payload.get("messages", []), payload.get("system", [])
    blocks = [*tools, *system, *[block for message in messages for block in message["content"]]]
    specs = [tool["toolSpec"] for tool in tools if "toolSpec" in tool]
    return [
        *tool_problems(payload, "toolConfig", [(spec["name"], spec["inputSchema"]["json"]) for spec in specs], WORD_64),
        *text_problems(blocks),
        *empty_message_problems(messages, "content"),
        *marker_problems([block["cachePoint"].get("ttl", "5m") for block in blocks if "cachePoint" in block]),
        *[p for part in [tools, system, *[m["content"] for m in messages]] for p in cache_point_problems(part)],
    ]


def check_acp(payload, _path):
    refused = [f"{key}: Extra inputs are not permitted" for key in payload if key not in ("_meta", "prompt")]
    texts = []
    if "_meta" in payload:
        refused += model_problems(NewSessionRequest, {"cwd": "/", "mcpServers": [], "_meta": payload["_meta"]})
        refused += meta_problems(payload["_meta"])
        texts.append({"text": meta_text(payload["_meta"])})
    if "prompt" in payload:
        refused += model_problems(PromptRequest, {"sessionId": "any", "prompt": payload["prompt"]})
        refused += empty_message_problems([payload], "prompt")
    return refused or text_problems([*texts, *payload.get("prompt", [])])


def check_codex(payload, path):
    """Reads `-c key=value` as codex does: it splits at the first `=` and parses the rest as a TOML value.

    Where TOML fails, codex silently takes the raw text with its quotes cut off; that is refused here.
    """
    refused = model_problems(CodexCommand, payload)
    if refused:
        return refused
    args = payload["args"]
    if not args:
        return text_problems([{"text": payload.get("prompt", "none")}])
    if len(args) != 2 or args[0] != "-c" or not args[1].startswith("developer_instructions="):
        return ["args are not `-c` and `developer_instructions=…`"]
    instructions = toml_text(args[1].partition("=")[2])
    if instructions is None:
        return ["developer_instructions is not one TOML string on one line"]
    return [
        *text_problems([{"text": instructions}, {"text": payload.get("prompt", "none")}]),
        *[f"an argument is over {ARGUMENT_BYTES_MAX} bytes" for a in args if len(a.encode()) > ARGUMENT_BYTES_MAX],
        *expected_text_problems(instructions, path.with_suffix(".txt")),
    ]


CHECKS = {
    "acp": check_acp,
    "anthropic": check_anthropic,
    "bedrock": check_bedrock,
    "codex": check_codex,
    "deepseek": check_deepseek,
    "gemini": check_gemini,
    "openai-chat": check_openai_chat,
    "openai-responses": check_openai_responses,
}


# Types.


def strict_validator(request_type):
    """A validator for a TypedDict that reads every list and refuses unknown keys.

    Pydantic checks an `Iterable` only once someone iterates, drops keys that a TypedDict does not name, and
    loads a dict into the response models, open to any key, that stand in the same unions: as generated,
    these types would accept nearly anything.
    """
    return SchemaValidator(tightened(TypeAdapter(request_type).core_schema))


def tightened(schema):
    if isinstance(schema, (list, tuple)):
        return type(schema)(tightened(part) for part in schema)
    if not isinstance(schema, dict):
        return schema
    schema = {key: part if key == "metadata" else tightened(part) for key, part in schema.items()}
    if schema.get("type") == "generator":
        return {key: part for key, part in schema.items() if key != "serialization"} | {"type": "list"}
    if schema.get("type") == "model":
        return {key: part for key, part in schema.items() if key in ("cls", "ref")} | {"type": "is-instance"}
    if schema.get("type") == "typed-dict" and schema.get("extra_behavior") != "allow":
        return schema | {"extra_behavior": "forbid"}
    return schema


def typed_dict_problems(validator, request):
    try:
        validator.validate_python(request, strict=True)
    except ValidationError as error:
        return [f"{place(e)}: {e['msg']}" for e in closest(error.errors(), 0)]
    return []


def place(error):
    """Without the labels of whole unions, which name every member."""
    return ".".join(str(step) for step in error["loc"] if "[" not in str(step))


def closest(errors, depth):
    """Of a union's errors only those of the member that came closest: a union reports all members'."""
    branches: dict[Any, Any] = {}
    for error in errors:
        branches.setdefault(error["loc"][depth] if depth < len(error["loc"]) else None, []).append(error)
    if None in branches:
        return branches[None]
    kept = {label: closest(branch, depth + 1) for label, branch in branches.items()}
    if not all(re.match(r"[A-Z]|\w+\[|(str|int|float|bool|function-\w+)$", str(label)) for label in kept):
        return [error for branch in kept.values() for error in branch]
    # A member that fails as a whole (a string where a list was given) says less than one that fails inside.
    return min(kept.values(), key=lambda branch: (all(len(e["loc"]) == depth + 1 for e in branch), len(branch)))


def model_problems(model, value):
    """Compares a round trip: what a model forgives (unknown keys, other spellings, bad values) comes back changed."""
    try:
        loaded = model.model_validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        return [f"{place(e)}: {e['msg']}" for e in error.errors()]
    returned = loaded.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return [] if returned == value else [f"the type keeps {json.dumps(returned)} of {json.dumps(value)}"]


def service_model_problems(value, shape, path):
    """Enums, patterns and maxima of the service model, which botocore leaves to the server."""
    if getattr(shape, "is_document_type", False):
        return []
    if shape.type_name == "structure":
        parts = [(part, shape.members[key], f"{path}.{key}") for key, part in value.items()]
        return [problem for part in parts for problem in service_model_problems(*part)]
    if shape.type_name == "list":
        return [problem for part in value for problem in service_model_problems(part, shape.member, f"{path}[]")]
    if shape.type_name != "string":
        return []
    limits = shape.metadata
    problems = []
    if limits.get("enum") and value not in limits["enum"]:
        problems.append(f"{path}: `{value}` is none of {limits['enum']}")
    if "pattern" in limits and not re.fullmatch(limits["pattern"], value):
        problems.append(f"{path}: `{value}` does not match {limits['pattern']}")
    if len(value) > limits.get("max", len(value)):
        problems.append(f"{path}: longer than {limits['max']}")
    return problems


def converse_shape():
    description = botocore.loaders.Loader().load_service_model("bedrock-runtime", "service-2")
    return botocore.model.ServiceModel(description).operation_model("Converse").input_shape


# Rules.


def content_blocks(content):
    """Blocks in the order of the prefix: what a tool's result holds comes before its end."""
    if isinstance(content, str):
        return [{"text": content}]
    nested = [content_blocks(block["content"]) if isinstance(block.get("content"), list) else [] for block in content]
    return [part for inner, block in zip(nested, content) for part in [*inner, block]]


def message_blocks(messages):
    """A tool may answer with an empty string, so of its answers only blocks are judged."""
    contents = [message.get("content") for message in messages if message.get("role") != "tool"]
    answers = [m.get("output") or m.get("content") for m in messages if m.get("role") == "tool" or "output" in m]
    judged = [content for content in contents if content] + [answer for answer in answers if isinstance(answer, list)]
    return [block for content in judged for block in content_blocks(content)]


def chat_tools(payload):
    functions = [tool["function"] for tool in payload.get("tools", []) if tool["type"] == "function"]
    return [(function["name"], function.get("parameters")) for function in functions]


def tool_problems(payload, key, tools, name_pattern):
    """The order of tools and of their keys is part of every provider's cache key, so it may not be accidental."""
    names = [name for name, _ in tools]
    pairs = itertools.pairwise(names)
    misnamed = [name for name in names if not re.fullmatch(name_pattern, name)]
    unsorted = [(name, keys) for name, schema in tools for keys in unsorted_keys(schema)]
    return [
        *(["a list of tools without a tool"] if key in payload and not names else []),
        *[f"tool name `{name}` does not match {name_pattern}" for name in misnamed],
        *[f"tool `{after}` is not sorted after `{before}`" for before, after in pairs if before >= after],
        *[f"schema of tool `{name}` is not of type object" for name, schema in tools if not is_object_schema(schema)],
        *[f"schema of tool `{name}` has unsorted keys {keys}" for name, keys in unsorted],
    ]


def is_object_schema(schema):
    """No schema at all means a tool without parameters."""
    return schema is None or (isinstance(schema, dict) and schema.get("type") == "object")


def unsorted_keys(value):
    if isinstance(value, list):
        return [keys for part in value for keys in unsorted_keys(part)]
    if not isinstance(value, dict):
        return []
    own = [] if list(value) == sorted(value) else [list(value)]
    return own + [keys for part in value.values() for keys in unsorted_keys(part)]


def text_problems(blocks):
    texts = [block["text"] for block in blocks if isinstance(block.get("text"), str)]
    return ["an empty or blank text" for text in texts if not text.strip()]


def empty_message_problems(messages, key):
    """A tool may answer nothing, and a message that calls one needs no text."""
    talking = [message for message in messages if message.get("role") != "tool" and not message.get("tool_calls")]
    return ["a message without content" for message in talking if message.get(key) in ([], "")]


def marker_problems(lifetimes):
    """Markers in the order of the prefix: tools, system, messages."""
    problems = ["a marker of 1h after one of 5m"] if ("5m", "1h") in itertools.pairwise(lifetimes) else []
    if len(lifetimes) > MARKERS_MAX:
        problems.append(f"{len(lifetimes)} cache markers, at most {MARKERS_MAX} are taken")
    return problems


def openai_cache_problems(payload, blocks):
    """OpenAI writes the latest four breakpoints, its implicit one among them: the first to go would be the prefix."""
    explicit = sum(block.get("prompt_cache_breakpoint") is not None for block in blocks)
    implicit = payload.get("prompt_cache_options", {}).get("mode") != "explicit"
    problems = []
    if explicit + implicit > MARKERS_MAX:
        problems.append(f"{explicit} cache markers and {int(implicit)} implicit one, at most {MARKERS_MAX} are written")
    if not implicit and not explicit:
        problems.append("mode explicit without a breakpoint turns caching off")
    if (explicit or "prompt_cache_options" in payload) and is_before_breakpoints(payload.get("model", "")):
        problems.append(f"model `{payload['model']}` does not take breakpoints")
    key = payload.get("prompt_cache_key")
    if key is not None and not 0 < len(key) <= PROMPT_CACHE_KEY_CHARS_MAX:
        problems.append(f"prompt_cache_key must have 1 to {PROMPT_CACHE_KEY_CHARS_MAX} characters")
    return problems


def is_before_breakpoints(model):
    version = re.match(r"(?:chat)?gpt-(\d+)(?:\.(\d+))?", model)
    if version is None:
        return re.match(r"o\d", model) is not None
    return (int(version[1]), int(version[2] or 0)) < FIRST_GPT_WITH_BREAKPOINTS


def assistant_part_problems(messages):
    """The type offers `input_text` to every role; the server refuses it from the assistant."""
    parts = [part for m in messages if m.get("role") == "assistant" for part in content_blocks(m["content"])]
    return ["an assistant message carries input_text, not a string" for p in parts if p.get("type") == "input_text"]


def cache_point_problems(blocks):
    marks = ["cachePoint" in block for block in blocks]
    return ["a cachePoint that marks nothing" for before, mark in zip([True, *marks], marks) if before and mark]


def cached_content_problems(payload):
    name = payload.get("cachedContent")
    if name is None:
        return []
    repeated = [key for key in ("systemInstruction", "tools") if key in payload]
    problems = [f"`{key}` may not be repeated beside cachedContent" for key in repeated]
    if not re.fullmatch(r"(projects/[^/]+/locations/[^/]+/)?cachedContents/[^/]+", name):
        problems.append(f"cachedContent `{name}` is not a resource name")
    return problems


def meta_text(meta):
    """The text of `_meta.systemPrompt`, or None. A text replaces the agent's own prompt, `{append}` follows it."""
    prompt = meta.get("systemPrompt") if isinstance(meta, dict) else None
    text = prompt["append"] if isinstance(prompt, dict) and prompt.keys() == {"append"} else prompt
    return text if isinstance(text, str) else None


def meta_problems(meta):
    return ["_meta.systemPrompt is neither a text nor {append: text}"] if meta_text(meta) is None else []


def expected_text_problems(text, expected):
    if not expected.exists() or expected.read_bytes().decode() == text:
        return []
    return [f"developer_instructions differ from {expected.name}"]


def toml_text(value):
    """The text of a TOML string, or None. A raw line break is refused: parsers differ on CRLF inside a string."""
    try:
        text = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return None
    return text if isinstance(text, str) and not re.search(r"[\r\n]", value) else None


# Files.


def load(path):
    """Reads strictly: a second key of the same name or half a surrogate pair would reach no provider as meant."""
    payload = json.loads(path.read_bytes().decode(), object_pairs_hook=unique_keys, parse_constant=refuse_constant)
    json.dumps(payload, ensure_ascii=False).encode()
    if not isinstance(payload, dict) or not payload:
        raise ValueError("a payload is an object with something in it")
    return payload


def unique_keys(pairs):
    if len(dict(pairs)) != len(pairs):
        raise ValueError(f"a key is given twice among {[key for key, _ in pairs]}")
    return dict(pairs)


def refuse_constant(name):
    raise ValueError(f"{name} is not JSON")


def file_problems(path):
    try:
        payload = load(path)
    except ValueError as error:
        return [str(error)]
    return CHECKS[path.stem](payload, path)


def payloads_in(folder):
    return [path for path in sorted(folder.glob("*/*.json")) if path.stem in CHECKS]


def folder_problems(folder, complete):
    """A complete folder has a payload for every provider."""
    payloads = payloads_in(folder)
    refused = [path for path in payloads if path.parent.name.startswith("refused_")]
    problems = [f"{path}: {problem}" for path in payloads if path not in refused for problem in file_problems(path)]
    # A case by this name holds what a provider would refuse, and proem warns of: both must agree. Agents that are
    # launched take no tools.
    judged = [path for path in refused if path.stem not in ("acp", "codex")]
    problems += [f"{path}: nothing is refused" for path in judged if not file_problems(path)]
    missing = CHECKS.keys() - {path.stem for path in payloads}
    if complete or not payloads:
        problems += [f"{folder}: no payload for {provider}" for provider in sorted(missing)]
    return problems


def report(folder, problems):
    for problem in problems:
        print(problem, file=sys.stderr)
    payloads = payloads_in(folder)
    print("checked: " + ", ".join(f"{provider} {sum(p.stem == provider for p in payloads)}" for provider in CHECKS))
    others = sorted({path.name for path in folder.glob("*/*.json")} - {path.name for path in payloads})
    if others:
        print("not payloads: " + ", ".join(others))
    for provider, field, reason in EXEMPTIONS:
        print(f"exempt: {provider}: {field}: {reason}")
    print(f"{len(payloads)} payloads, {len(problems)} problems")


# Self test: one good payload for each provider, and edits that must be refused, each for its own reason.

SCHEMA = {"properties": {"path": {"type": "string"}}, "required": ["path"], "type": "object"}
UNSORTED = {"type": "object", "properties": {}}
DROP = object()
EXPLICIT = {"mode": "explicit"}

CHAT_TOOLS = [
    {"type": "function", "function": {"name": name, "description": "Does it.", "parameters": SCHEMA}}
    for name in ("edit", "read")
]

GOOD = {
    "anthropic": {
        "model": "claude-sonnet-5",
        "tools": [
            {"name": "edit", "input_schema": SCHEMA},
            {
                "name": "read",
                "description": "Reads.",
                "input_schema": SCHEMA,
                "cache_control": {"type": "ephemeral", "ttl": "1h"},
            },
        ],
        "system": [
            {"type": "text", "text": "Prefix.", "cache_control": {"type": "ephemeral", "ttl": "1h"}},
            {"type": "text", "text": "Suffix."},
        ],
        "messages": [
            {"role": "user", "content": "Hello."},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"text": ""}}],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "Read."}]}
                ],
            },
            {"role": "system", "content": [{"type": "text", "text": "Note.", "cache_control": {"type": "ephemeral"}}]},
        ],
    },
    "openai-responses": {
        "model": "gpt-5.6",
        "prompt_cache_key": "k" * 64,
        "prompt_cache_options": {"mode": "explicit", "ttl": "12h"},
        "tools": [
            {"type": "function", "name": name, "description": "Does it.", "parameters": SCHEMA, "strict": False}
            for name in ("edit", "read")
        ],
        "input": [
            {
                "role": "developer",
                "content": [
                    {"type": "input_text", "text": "Prefix.", "prompt_cache_breakpoint": EXPLICIT | {"ttl": "12h"}},
                    {"type": "input_text", "text": "Suffix."},
                ],
            },
            {"role": "user", "content": [{"type": "input_text", "text": "Hello."}]},
            {"role": "assistant", "content": "Hi."},
            {"type": "function_call_output", "call_id": "call_1", "output": [{"type": "input_text", "text": "Read."}]},
        ],
    },
    "openai-chat": {
        "model": "gpt-5.6-sol",
        "prompt_cache_key": "key",
        "tools": CHAT_TOOLS,
        "messages": [
            {
                "role": "developer",
                "content": [
                    {"type": "text", "text": "Prefix.", "prompt_cache_breakpoint": EXPLICIT},
                    {"type": "text", "text": "Suffix."},
                ],
            },
            {"role": "user", "content": "Hello."},
            {"role": "assistant", "content": [{"type": "text", "text": "Hi."}]},
        ],
    },
    "deepseek": {
        "model": "deepseek-chat",
        "tools": CHAT_TOOLS,
        "messages": [{"role": "system", "content": "Prefix.\nSuffix."}, {"role": "user", "content": "Hello."}],
    },
    "gemini": {
        "systemInstruction": {"parts": [{"text": "Prefix."}, {"text": "Suffix."}]},
        "tools": [
            {
                "functionDeclarations": [
                    {"name": name, "description": "Does it.", "parametersJsonSchema": SCHEMA}
                    for name in ("edit", "read")
                ]
            }
        ],
        "contents": [{"role": "user", "parts": [{"text": "Hello."}]}, {"role": "model", "parts": [{"text": "Hi."}]}],
    },
    "bedrock": {
        "modelId": "anthropic.claude-sonnet-5-v1:0",
        "system": [{"text": "Prefix."}, {"cachePoint": {"type": "default", "ttl": "1h"}}, {"text": "Suffix."}],
        "toolConfig": {
            "tools": [
                {"toolSpec": {"name": "edit", "inputSchema": {"json": SCHEMA}}},
                {"toolSpec": {"name": "read", "description": "Reads.", "inputSchema": {"json": SCHEMA}}},
                {"cachePoint": {"type": "default", "ttl": "1h"}},
            ]
        },
        "messages": [
            {"role": "user", "content": [{"text": "Hello."}]},
            {"role": "assistant", "content": [{"text": "Hi."}]},
            {"role": "user", "content": [{"text": "Go on."}, {"cachePoint": {"type": "default"}}]},
        ],
    },
    "acp": {"_meta": {"systemPrompt": "Prompt."}, "prompt": [{"type": "text", "text": "Hello."}]},
    "codex": {"args": ["-c", 'developer_instructions="a = \\"b\\"\\n\\u0007"'], "prompt": "Hello."},
}

# Also good, and different enough in shape to be worth a line: each replaces a part of the good payload.
ALSO_GOOD = [
    ("anthropic", ["messages"], DROP),
    ("anthropic", ["cache_control"], {"type": "ephemeral"}),
    ("openai-responses", ["prompt_cache_key"], None),
    ("openai-responses", ["input", 3, "output"], ""),
    ("openai-chat", ["messages", 0], {"role": "system", "content": "Prompt."}),
    ("openai-chat", ["messages", 2], {"role": "tool", "tool_call_id": "call_1", "content": ""}),
    ("acp", ["_meta", "systemPrompt"], {"append": "Prompt."}),
    ("acp", ["_meta"], DROP),
    ("bedrock", ["messages"], DROP),
    ("bedrock", ["system", 1, "cachePoint", "ttl"], "5m"),
    ("codex", ["prompt"], DROP),
]

MARKED = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}
MARKED_RESULT = {
    "type": "tool_result",
    "tool_use_id": "toolu_1",
    "cache_control": {"type": "ephemeral", "ttl": "1h"},
    "content": [MARKED],
}
UNSORTED_INSIDE = {"anyOf": [{"type": "string", "enum": []}]}
FOUR_MARKED = [{"type": "text", "text": "x", "prompt_cache_breakpoint": EXPLICIT}] * 4
FIVE_MARKED = [{"type": "input_text", "text": "x", "prompt_cache_breakpoint": EXPLICIT}] * 5

BAD = [
    ("anthropic", ["systems"], [], "systems: Extra inputs are not permitted"),
    ("anthropic", ["system", 0, "cache_control", "ttl"], "2h", "Input should be '5m' or '1h'"),
    ("anthropic", ["system", 0, "cache_control", "type"], "default", "Input should be 'ephemeral'"),
    ("anthropic", ["system", 0, "cache_controls"], {}, "cache_controls: Extra inputs are not permitted"),
    ("anthropic", ["system", 0, "type"], "input_text", "Input should be 'text'"),
    ("anthropic", ["system", 1, "text"], " \n", "an empty or blank text"),
    ("anthropic", ["system"], "", "an empty or blank text"),
    ("anthropic", ["tools", 0, "parameters"], {}, "parameters: Extra inputs are not permitted"),
    ("anthropic", ["tools", 0, "input_schema"], DROP, "input_schema: Field required"),
    ("anthropic", ["tools", 0, "input_schema"], {"properties": {}}, "is not of type object"),
    ("anthropic", ["tools", 0, "input_schema"], {}, "is not of type object"),
    ("anthropic", ["tools", 0, "input_schema"], UNSORTED, "has unsorted keys ['type', 'properties']"),
    (
        "anthropic",
        ["tools", 0, "input_schema", "properties", "path"],
        UNSORTED_INSIDE,
        "has unsorted keys ['type', 'enum']",
    ),
    ("anthropic", ["tools", 0, "name"], "write", "tool `read` is not sorted after `write`"),
    ("anthropic", ["tools", 0, "name"], "read", "tool `read` is not sorted after `read`"),
    ("anthropic", ["tools", 0, "name"], "a.b", "tool name `a.b` does not match"),
    ("anthropic", ["tools"], [], "a list of tools without a tool"),
    ("anthropic", ["tools", 1, "cache_control"], {"type": "ephemeral"}, "a marker of 1h after one of 5m"),
    ("anthropic", ["cache_control"], {"type": "ephemeral", "ttl": "1h"}, "a marker of 1h after one of 5m"),
    ("anthropic", ["messages", 2, "content", 0, "content"], [MARKED] * 2, "5 cache markers"),
    ("anthropic", ["messages", 2, "content", 0], MARKED_RESULT, "a marker of 1h after one of 5m"),
    ("anthropic", ["messages", 0, "role"], "developer", "Input should be 'user'"),
    ("anthropic", ["messages", 0, "content"], " ", "an empty or blank text"),
    ("anthropic", ["messages", 0, "content"], "", "a message without content"),
    ("anthropic", ["messages", 0, "content"], [], "a message without content"),
    (
        "anthropic",
        ["messages", 0, "content"],
        [{"type": "text", "text": "x", "typo": 1}],
        "typo: Extra inputs are not permitted",
    ),
    ("openai-responses", ["instruction"], "x", "instruction: Extra inputs are not permitted"),
    ("openai-responses", ["input", 0, "role"], "model", "Input should be 'user', 'assistant', 'system' or 'developer'"),
    ("openai-responses", ["input", 0, "content", 0, "type"], "text", "Input should be 'input_text'"),
    (
        "openai-responses",
        ["input", 0, "content", 0, "prompt_cache_breakpoint", "mode"],
        "implicit",
        "Input should be 'explicit'",
    ),
    (
        "openai-responses",
        ["input", 0, "content", 0, "prompt_cache_breakpoint", "ttl"],
        "24h",
        "Input should be '30m' or '12h'",
    ),
    (
        "openai-responses",
        ["input", 0, "content", 0, "cache_control"],
        {"type": "ephemeral"},
        "cache_control: Extra inputs are not permitted",
    ),
    ("openai-responses", ["input", 0, "content", 0, "prompt_cache_breakpoint"], DROP, "turns caching off"),
    ("openai-responses", ["input", 1, "content"], FIVE_MARKED, "6 cache markers and 0 implicit one"),
    ("openai-responses", ["input", 1, "content", 0, "text"], "", "an empty or blank text"),
    (
        "openai-responses",
        ["input", 2, "content"],
        [{"type": "input_text", "text": "Hi."}],
        "an assistant message carries input_text",
    ),
    ("openai-responses", ["input", 3, "output", 0, "text"], "", "an empty or blank text"),
    ("openai-responses", ["input", 0, "content"], [], "a message without content"),
    ("openai-responses", ["tools", 0, "strict"], DROP, "strict: Field required"),
    ("openai-responses", ["tools", 0, "strict"], "false", "strict: Input should be a valid boolean"),
    ("openai-responses", ["tools", 0, "parameters"], UNSORTED, "has unsorted keys"),
    ("openai-responses", ["tools", 1, "name"], "cat", "tool `cat` is not sorted after `edit`"),
    ("openai-responses", ["prompt_cache_key"], "k" * 65, "must have 1 to 64 characters"),
    ("openai-responses", ["prompt_cache_options", "mode"], "auto", "Input should be 'implicit' or 'explicit'"),
    ("openai-responses", ["model"], "gpt-5.5", "model `gpt-5.5` does not take breakpoints"),
    ("openai-responses", ["model"], "o3", "model `o3` does not take breakpoints"),
    ("openai-chat", ["prompt_cache_options"], {"ttl": "12h"}, "Input should be '30m'"),
    ("openai-chat", ["messages"], DROP, "messages: Field required"),
    ("openai-chat", ["messages", 0, "role"], "model", "Input should be"),
    ("openai-chat", ["messages", 0, "content", 0, "type"], "input_text", "Input should be 'text'"),
    ("openai-chat", ["messages", 0, "content", 0, "prompt_cache_breakpoint"], {}, "mode: Field required"),
    ("openai-chat", ["messages", 0, "content", 1, "text"], "\t", "an empty or blank text"),
    ("openai-chat", ["messages", 0, "content"], FOUR_MARKED, "4 cache markers and 1 implicit one"),
    ("openai-chat", ["messages", 1, "content"], "", "a message without content"),
    ("openai-chat", ["messages", 1, "content"], None, "Input should be a valid"),
    (
        "openai-chat",
        ["tools", 0],
        {"type": "function", "name": "edit", "parameters": SCHEMA},
        "function: Field required",
    ),
    ("openai-chat", ["tools", 0, "function", "name"], "x" * 65, "does not match"),
    ("openai-chat", ["tools", 1, "function", "name"], "cat", "tool `cat` is not sorted after `edit`"),
    ("openai-chat", ["tools", 1, "function", "parameters"], UNSORTED, "has unsorted keys"),
    ("openai-chat", ["model"], "gpt-4o", "model `gpt-4o` does not take breakpoints"),
    ("deepseek", ["messages", 0, "role"], "developer", "role `developer` is refused by DeepSeek"),
    ("deepseek", ["messages", 0, "content"], [{"type": "text", "text": "x"}], "DeepSeek takes content as one string"),
    ("deepseek", ["messages", 0, "content"], " ", "an empty or blank text"),
    ("deepseek", ["prompt_cache_key"], "key", "`prompt_cache_key` does nothing at DeepSeek"),
    ("deepseek", ["tools", 0, "strict"], True, "strict: Extra inputs are not permitted"),
    ("gemini", ["system_instruction"], {"parts": []}, "system_instruction: Extra inputs are not permitted"),
    ("gemini", ["systemInstruction", "parts", 0, "cache_control"], {}, "Extra inputs are not permitted"),
    ("gemini", ["systemInstruction", "parts", 1, "text"], "", "an empty or blank text"),
    ("gemini", ["systemInstruction"], "Prompt.", "systemInstruction: "),
    ("gemini", ["tools", 0], {"function_declarations": [{"name": "read"}]}, "the type keeps"),
    ("gemini", ["tools", 0, "functionDeclarations", 0, "input_schema"], {}, "Extra inputs are not permitted"),
    ("gemini", ["tools", 0, "functionDeclarations", 0, "name"], "1st", "tool name `1st` does not match"),
    ("gemini", ["tools", 0, "functionDeclarations", 1, "name"], "cat", "tool `cat` is not sorted after `edit`"),
    ("gemini", ["tools", 0, "functionDeclarations", 0, "parametersJsonSchema"], UNSORTED, "has unsorted keys"),
    (
        "gemini",
        ["tools", 0, "functionDeclarations", 0, "parameters"],
        {"type": "OBJECT"},
        "excludes `parametersJsonSchema`",
    ),
    ("gemini", ["tools", 0, "functionDeclarations"], [], "a list of tools without a tool"),
    ("gemini", ["contents", 1, "role"], "assistant", "role `assistant` is neither user nor model"),
    ("gemini", ["contents"], None, "contents: Input should be a valid array"),
    ("gemini", ["contents", 0, "parts"], [], "a message without content"),
    ("gemini", ["contents", 0, "parts", 0, "text"], 1, "Input should be a valid string"),
    ("gemini", ["cachedContent"], "cachedContents/1", "`tools` may not be repeated beside cachedContent"),
    ("gemini", ["cachedContent"], "1", "is not a resource name"),
    ("bedrock", ["systems"], [], 'Unknown parameter in input: "systems"'),
    ("bedrock", ["system", 0], {"text": "x", "cachePoint": {"type": "default"}}, "Can only set one of"),
    ("bedrock", ["system", 0, "type"], "text", "Can only set one of"),
    ("bedrock", ["system", 1, "cachePoint", "ttl"], "2h", "`2h` is none of ['5m', '1h']"),
    ("bedrock", ["system", 1, "cachePoint", "type"], "ephemeral", "`ephemeral` is none of ['default']"),
    ("bedrock", ["system", 0], {"cachePoint": {"type": "default", "ttl": "1h"}}, "a cachePoint that marks nothing"),
    ("bedrock", ["messages", 2, "content"], [{"cachePoint": {"type": "default"}}, {"text": "x"}], "marks nothing"),
    ("bedrock", ["system", 2, "text"], " ", "an empty or blank text"),
    ("bedrock", ["system", 2, "text"], "", "valid min length: 1"),
    ("bedrock", ["toolConfig", "tools"], [], "valid min length: 1"),
    ("bedrock", ["toolConfig", "tools"], [{"cachePoint": {"type": "default"}}], "a list of tools without a tool"),
    ("bedrock", ["toolConfig", "tools", 0, "toolSpec", "inputSchema"], SCHEMA, "Unknown parameter in toolConfig"),
    ("bedrock", ["toolConfig", "tools", 0, "toolSpec", "inputSchema", "json"], UNSORTED, "has unsorted keys"),
    ("bedrock", ["toolConfig", "tools", 0, "toolSpec", "name"], "a.b", "does not match [a-zA-Z0-9_-]+"),
    ("bedrock", ["toolConfig", "tools", 0, "toolSpec", "name"], "a" * 65, "longer than 64"),
    ("bedrock", ["toolConfig", "tools", 1, "toolSpec", "name"], "cat", "tool `cat` is not sorted after `edit`"),
    ("bedrock", ["toolConfig", "tools", 2, "cachePoint"], {"type": "default"}, "a marker of 1h after one of 5m"),
    ("bedrock", ["messages", 0, "role"], "developer", "`developer` is none of"),
    ("bedrock", ["messages", 0, "content"], "Hello.", "Invalid type for parameter messages[0].content"),
    ("bedrock", ["messages", 0, "content"], [], "a message without content"),
    (
        "bedrock",
        ["messages", 1, "content"],
        [{"text": "x"}, {"cachePoint": {"type": "default"}}] * 2,
        "5 cache markers",
    ),
    ("acp", ["system"], "x", "system: Extra inputs are not permitted"),
    ("acp", ["_meta"], "x", "the type keeps"),
    ("acp", ["_meta", "systemPrompt"], {"append": 1}, "neither a text nor {append: text}"),
    ("acp", ["_meta", "systemPrompt"], {"prepend": "x"}, "neither a text nor {append: text}"),
    ("acp", ["_meta"], {"systemprompt": "x"}, "neither a text nor {append: text}"),
    ("acp", ["_meta", "systemPrompt"], "\n", "an empty or blank text"),
    ("acp", ["_meta"], None, "neither a text nor {append: text}"),
    ("acp", ["prompt"], [], "a message without content"),
    ("acp", ["prompt"], "Hello.", "Input should be a valid array"),
    ("acp", ["prompt", 0, "type"], "input_text", "does not match any of the expected tags"),
    ("acp", ["prompt", 0, "cache_control"], {}, "the type keeps"),
    ("acp", ["prompt", 0, "text"], "", "an empty or blank text"),
    ("codex", ["argv"], [], "argv: Extra inputs are not permitted"),
    ("codex", ["prompt"], ["x"], "prompt: Input should be a valid string"),
    ("codex", ["prompt"], " ", "an empty or blank text"),
    ("codex", ["args"], DROP, "args: Field required"),
    ("codex", ["args", 0], "--config", "args are not `-c`"),
    ("codex", ["args", 1], 'instructions="x"', "args are not `-c`"),
    ("codex", ["args", 1], "developer_instructions=Be brief.", "not one TOML string"),
    ("codex", ["args", 1], 'developer_instructions="a "quoted" word"', "not one TOML string"),
    ("codex", ["args", 1], 'developer_instructions="\\e["', "not one TOML string"),
    ("codex", ["args", 1], "developer_instructions=1", "not one TOML string"),
    ("codex", ["args", 1], 'developer_instructions="""a\r\nb"""', "not one TOML string on one line"),
    ("codex", ["args", 1], 'developer_instructions=""', "an empty or blank text"),
    ("codex", ["args", 1], f'developer_instructions="{"a" * 131072}"', "an argument is over 131071 bytes"),
    ("codex", ["args", 1], 'developer_instructions="\0"', "not one TOML string"),
]

BAD_FILES = [
    (b'{"prompt": [], "prompt": []}', "a key is given twice"),
    (b'{"_meta": {"systemPrompt": "\\ud800"}}', "surrogates not allowed"),
    (b'{"_meta": {"systemPrompt": "\xff"}}', "can't decode byte"),
    (b'{"_meta": {"n": NaN}}', "NaN is not JSON"),
    (b"[]", "a payload is an object"),
    (b"{}", "with something in it"),
    (b"{", "Expecting property name"),
]


def edited(payload, path, value):
    payload = copy.deepcopy(payload)
    part = payload
    for step in path[:-1]:
        part = part[step]
    if value is DROP:
        del part[path[-1]]
    else:
        part[path[-1]] = value
    return payload


def self_test(folder):
    """Returns every way in which the checks failed to tell good from bad."""
    nowhere = folder / "none.json"
    good: list[tuple[str, Any, Any]] = [(provider, [], GOOD[provider]) for provider in GOOD]
    good += [(provider, path, edited(GOOD[provider], path, value)) for provider, path, value in ALSO_GOOD]
    judged = [(provider, path, CHECKS[provider](payload, nowhere)) for provider, path, payload in good]
    wrong = [f"good {provider} {path} refused: {problems}" for provider, path, problems in judged if problems]
    for provider, path, value, reason in BAD:
        problems = CHECKS[provider](edited(GOOD[provider], path, value), nowhere)
        wrong += not_refused_for(reason, problems, f"{provider} {path}")
    return wrong + file_self_test(folder / "payloads")


def file_self_test(folder):
    case = folder / "case"
    case.mkdir(parents=True)
    wrong = not_refused_for("no payload for acp", folder_problems(folder, complete=False), "an empty folder")
    for data, reason in BAD_FILES:
        (case / "acp.json").write_bytes(data)
        wrong += not_refused_for(reason, folder_problems(folder, complete=False), str(data))
    for provider, good in GOOD.items():
        (case / f"{provider}.json").write_text(json.dumps(good))
    (case / "codex.txt").write_text('a = "b"\n\a')
    wrong += folder_problems(folder, complete=True)
    (case / "codex.txt").write_text('a = "b"\a')
    wrong += not_refused_for("differ from codex.txt", folder_problems(folder, complete=False), "another text")
    (case / "codex.json").unlink()
    return wrong + not_refused_for("no payload for codex", folder_problems(folder, complete=True), "a folder with gaps")


def not_refused_for(reason, problems, what):
    refused = any(reason in problem for problem in problems)
    return [] if refused else [f"bad {what} not refused for «{reason}»: {problems}"]


ANTHROPIC, RESPONSES, CHAT = map(strict_validator, (AnthropicRequest, ResponsesRequest, ChatRequest))
CONVERSE = converse_shape()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=pathlib.Path, help="default: corpus/payloads, for every provider")
    parser.add_argument("--self-test", action="store_true", help="prove that bad payloads are refused, good ones not")
    arguments = parser.parse_args()
    if arguments.self_test:
        with tempfile.TemporaryDirectory() as name:
            problems = self_test(pathlib.Path(name))
        judged = f"{len(GOOD) + len(ALSO_GOOD)} good and {len(BAD) + len(BAD_FILES)} bad payloads"
        print("\n".join([*problems, f"{judged}, {len(problems)} misjudged"]))
    else:
        folder = arguments.folder or pathlib.Path(__file__).resolve().parent.parent / "corpus/payloads"
        problems = folder_problems(folder, complete=arguments.folder is None)
        report(folder, problems)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
