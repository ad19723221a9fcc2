"""The part of Cursor's server that asks its client for the rules of a project, and keeps the answer."""

import base64
import json

TYPES = {1: "global", 2: "file_globbed", 3: "agent_fetched", 4: "manually_attached"}


def token():
    """Returns an unsigned token with a far expiry."""
    parts = ({"alg": "none"}, {"sub": "x", "exp": 4102444800})
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts]
    return ".".join([*encoded, "x"])


def varint(data, at):
    """Returns the number that starts at a byte, and the byte behind it."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data):
    """Yields the fields of a message of Protocol Buffers: number and value."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 2:
            size, at = varint(data, at)
            value, at = data[at : at + size], at + size
        else:
            size = 8 if key & 7 == 1 else 4
            value, at = data[at : at + size], at + size
        yield key >> 3, value


def only(data, *path):
    """Follows numbers of fields; returns every value at the end."""
    values = [data]
    for number in path:
        values = [value for one in values for found, value in fields(one) if found == number]
    return values


def question():
    """Returns the server's frame that asks for the context of a request."""
    inner = bytes([0x08, 1, 0x52, 0])
    message = bytes([0x12, len(inner)]) + inner
    return b"\0" + len(message).to_bytes(4, "big") + message


def rules(message):
    """Returns the rules in a message of the client: path, content and type; None if it has no context."""
    found = only(message, 2, 10, 1, 1)
    if not found:
        return None
    kept = []
    for rule in only(found[0], 2):
        parts = dict(fields(rule))
        kind = [TYPES.get(number, "unknown") for number, _ in fields(parts.get(3, b""))]
        kept.append({"path": parts.get(1, b"").decode(), "content": parts.get(2, b"").decode(), "type": "".join(kind)})
    return kept


def reply(path):
    """Returns the answer of a path: its type and its bytes; None for a path that is not Cursor's."""
    if path.endswith("/auth/exchange_user_api_key"):
        return "application/json", json.dumps({"accessToken": token(), "refreshToken": token()}).encode()
    if path.endswith("/v1/models"):
        return "application/json", json.dumps({"items": [{"id": "stub-model", "displayName": "stub"}]}).encode()
    return None
