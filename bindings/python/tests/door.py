"""The package as a door of the suite of conversations: performs the actions of standard input, one JSON object a line."""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

import proem

DECODER = json.JSONDecoder()


def members(text: str) -> dict[str, tuple[Any, str]]:
    """Return the members of an object, each as a value and as it is written."""
    found, at = {}, text.index("{") + 1
    while text[at:].lstrip()[0] != "}":
        at += len(text[at:]) - len(text[at:].lstrip(" \t\r\n,"))
        key, at = DECODER.raw_decode(text, at)
        at = text.index(":", at) + 1
        at += len(text[at:]) - len(text[at:].lstrip())
        value, end = DECODER.raw_decode(text, at)
        found[key] = (value, text[at:end])
        at = end
    return found


def fields(body: str) -> dict[str, Any]:
    """Return a body as keyword arguments. Messages keep their spelling."""
    given = {name: raw if name == "messages" else value for name, (value, raw) in members(body or "{}").items()}
    if isinstance(own := given.get("per_prompt"), dict) and own.get("messages") is not None:
        own["messages"] = members(members(body)["per_prompt"][1])["messages"][1]
    return given


def perform(store: proem.Store, name: str, action: str, body: str) -> str:
    """Perform an action, and return its answer as JSON."""
    conversation = store.conversation(name)
    match action:
        case "turn":
            return (conversation.turn(**fields(body)) if is_plain(body) else conversation.turn_json(body)).json
        case "reload":
            return conversation.reload(**fields(body)).json
        case "reload_skills":
            return conversation.reload_skills().json
        case "plan":
            return conversation.plan(**fields(body)).json
        case "tools":
            return conversation.set_tool_registry(json.loads(body)).json
        case "active":
            return conversation.set_active_tools(json.loads(body)).json
        case "profile":
            return conversation.switch_profile(body).json
        case "resources":
            return conversation.add_resources(**fields(body)).json
        case "begin":
            return conversation.begin_compaction(**fields(body)).json
        case "commit":
            return conversation.commit_compaction(body).json
        case "abort":
            conversation.abort_compaction(body)
            return ""
        case "template":
            store.put_template(body)
            return ""
        case "fork":
            given = fields(body)
            return conversation.fork(given["id"], role=given.get("role")).json
        case "spawn":
            given = fields(body)
            return conversation.spawn(given.pop("id"), **given).json
        case "show":
            return conversation.history().json
        case "forget":
            conversation.remove()
            return ""
        case "build":
            return proem.build(**fields(body)).json
    raise AssertionError(action)


def is_plain(text: str) -> bool:
    """Tell whether a dictionary can hold what a text says: an object, with each key once."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError
        return dict(pairs)

    try:
        return isinstance(json.loads(text, object_pairs_hook=once), dict)
    except ValueError:
        return False


def failure(error: proem.ProemError) -> dict[str, Any]:
    """Return the fields of an error as a server sends them."""
    known: dict[str, Any] = {"code": error.code, "message": error.message, "hint": error.hint, "kind": error.kind}
    return {name: value for name, value in (known | (error.place or {})).items() if value is not None}


def main() -> None:
    """Perform actions until the input ends."""
    warnings.simplefilter("ignore", proem.HookWarning)
    with proem.open(sys.argv[1]) as store:
        for line in sys.stdin:
            asked = json.loads(line)
            try:
                done: dict[str, Any] = {"ok": perform(store, asked["id"], asked["action"], asked["body"])}
            except proem.ProemError as error:
                done = {"error": failure(error)}
            print(json.dumps(done), flush=True)


if __name__ == "__main__":
    main()
