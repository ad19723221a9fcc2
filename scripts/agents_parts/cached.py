"""A provider with a prompt cache: it answers like the stub, and its numbers follow the rules of caches.

Four bytes are a token. Anthropic's API reads up to a marked block that was sent before; the others read the longest
common beginning, in steps of 128 tokens, from 1,024 on."""

import base64
import hashlib
import json
import struct
import zlib

from agents_parts import stub

LEAST, STEP = 1024, 128


def plain(block):
    """Returns a block without what is not part of the prompt."""
    return {key: value for key, value in block.items() if key not in ("cache_control", "id", "status")}


def blocks(path, body):
    """Returns the blocks of a request in the cache's order, and if each is marked."""
    out = []

    def add(block, mark=None):
        out.append((json.dumps(block, sort_keys=True), bool(mark)))

    for tool in body.get("tools") or []:
        if not tool.get("defer_loading"):
            add(plain(tool), tool.get("cache_control"))
    for name in ("system", "instructions", "systemInstruction"):
        value = body.get(name)
        for part in value if isinstance(value, list) else [value] if value else []:
            block = part if isinstance(part, dict) else {"text": part}
            add(plain(block), block.get("cache_control"))
    for message in body.get("messages") or body.get("input") or body.get("contents") or []:
        content = message.get("content", message.get("parts"))
        for part in content if isinstance(content, list) else [{"type": "text", "text": content}]:
            add([message.get("role"), message.get("type"), plain(part)], part.get("cache_control"))
    return out


class Cache:
    """Everything that was sent so far."""

    def __init__(self):
        self.marked = set()
        self.seen = set()

    def look(self, path, body):
        """Returns the tokens that are read, written and neither, and keeps the request."""
        key = f"{body.get('model') or path}{body.get('prompt_cache_key')}"
        digest, tokens, chain = hashlib.sha256(key.encode()).hexdigest(), 0, []
        for text, is_marked in blocks(path, body):
            digest = hashlib.sha256((digest + text).encode()).hexdigest()
            tokens += max(1, len(text.encode()) // 4)
            chain.append((digest, tokens, is_marked))
        if path.split("?")[0].endswith("/messages"):
            marks = [index for index, (_, size, is_marked) in enumerate(chain) if is_marked and size >= LEAST]
            near = (back for mark in marks for back in range(max(0, mark - 19), mark + 1))
            read = max((chain[index][1] for index in near if chain[index][0] in self.marked), default=0)
            self.marked.update(chain[index][0] for index in marks)
            end = max((chain[index][1] for index in marks), default=0)
            return read, max(0, end - read), max(1, tokens - max(read, end))
        read = max((size for digest, size, _ in chain if digest in self.seen), default=0) // STEP * STEP
        self.seen.update(digest for digest, _, _ in chain)
        read = read if read >= LEAST else 0
        return read, 0, max(1, tokens - read)


def numbered(reply, numbers):
    """Returns an answer of the stub with other numbers."""
    read, written, rest = numbers
    usage = {
        "input_tokens": rest, "cache_read_input_tokens": read, "cache_creation_input_tokens": written, "output_tokens": 5,
    }  # fmt: skip
    total = read + written + rest
    details = {"cached_tokens": read}
    responses = {"input_tokens": total, "input_tokens_details": details, "output_tokens": 5, "total_tokens": total + 5,
                 "output_tokens_details": {"reasoning_tokens": 0}}  # fmt: skip
    chat = {"prompt_tokens": total, "completion_tokens": 5, "total_tokens": total + 5, "prompt_tokens_details": details}
    gemini = {
        "promptTokenCount": total,
        "cachedContentTokenCount": read,
        "candidatesTokenCount": 5,
        "totalTokenCount": total + 5,
    }

    def put(value):
        if isinstance(value, list):
            return [put(item) for item in value]
        if not isinstance(value, dict):
            return value
        value = {key: put(item) for key, item in value.items()}
        old = value.get("usage")
        if isinstance(old, dict):
            kind = chat if "prompt_tokens" in old else responses if "input_tokens_details" in old else usage
            value["usage"] = kind
        if "usageMetadata" in value:
            value["usageMetadata"] = gemini
        return value

    def line(text):
        head, data = (b"data: ", text[6:]) if text.startswith(b"data: ") else (b"", text)
        try:
            return head + json.dumps(put(json.loads(data))).encode()
        except ValueError:
            return text

    return b"\n".join(line(text) for text in reply.split(b"\n"))


class Handler(stub.Handler):
    """Answers with numbers of the cache, also over WebSocket."""

    server: "Provider"

    def do_POST(self):
        data = self.data()
        if self.headers.get("content-encoding") == "zstd":
            return self.send(415, "application/json", b'{"error": {"message": "no zstd here"}}')
        try:
            body = json.loads(stub.decoded(data, self.headers.get("content-encoding", "")))
        except ValueError:
            body = {}
        reply = stub.answer(self.path, body)
        if reply is None:
            return self.send(404, "application/json", b'{"error": {"message": "not found"}}')
        if "count" not in self.path:
            reply = numbered(reply, self.server.cache.look(self.path, body))
        reply = self.server.unique(reply)
        self.server.bodies.append(body)
        is_stream = reply.startswith((b"event:", b"data:"))
        return self.send(200, "text/event-stream" if is_stream else "application/json", reply)

    def do_HEAD(self):
        self.send(200, "text/plain", b"")

    def do_GET(self):
        if self.headers.get("upgrade", "").lower() != "websocket":
            return super().do_GET()
        key = self.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(key.encode(), usedforsecurity=False).digest()).decode()
        self.send_response(101)
        for name, value in (("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Accept", accept),
                            ("Sec-WebSocket-Extensions", "permessage-deflate")):  # fmt: skip
            self.send_header(name, value)
        self.end_headers()
        self.close_connection = True
        return self.messages()

    def messages(self):
        """Answers requests over WebSocket until the client ends."""
        inflate, deflate = zlib.decompressobj(-15), zlib.compressobj(wbits=-15)
        while (frame := self.frame()) is not None:
            opcode, is_deflated, data = frame
            if opcode == 8:
                return
            if opcode != 1:
                continue
            body = json.loads(inflate.decompress(data + b"\0\0\xff\xff") if is_deflated else data)
            if body.get("type") != "response.create":
                continue
            self.server.bodies.append(body)
            before = self.server.inputs.get(body.get("previous_response_id"), [])
            whole = {**body, "input": before + list(body.get("input") or []), "stream": True}
            numbers = self.server.cache.look("/responses", whole)
            reply = self.server.unique(numbered(stub.responses(whole), numbers))
            events = [line[6:] for line in reply.split(b"\n") if line.startswith(b"data: ")]
            done = json.loads(events[-1])["response"]
            self.server.inputs[done["id"]] = whole["input"] + done["output"]
            for event in events:
                data = deflate.compress(event) + deflate.flush(zlib.Z_SYNC_FLUSH)
                self.write_frame(0xC1, data[:-4])

    def frame(self):
        """Reads a frame: its opcode, if it is compressed, and its content."""
        head = self.rfile.read(2)
        if len(head) < 2:
            return None
        size = head[1] & 127
        if size > 125:
            size = int.from_bytes(self.rfile.read(2 if size == 126 else 8), "big")
        mask = self.rfile.read(4)
        data = self.rfile.read(size)
        mask = (mask * (size // 4 + 1))[:size]
        data = (int.from_bytes(data, "big") ^ int.from_bytes(mask, "big")).to_bytes(size, "big") if size else b""
        return head[0] & 15, bool(head[0] & 64), data

    def write_frame(self, first, data):
        size = len(data)
        head = bytes([first, size]) if size < 126 else bytes([first, 126]) + struct.pack(">H", size) if size < 65536 else bytes([first, 127]) + struct.pack(">Q", size)  # fmt: skip
        self.wfile.write(head + data)
        self.wfile.flush()


class Provider(stub.Stub):
    """The provider, with its cache."""

    def __init__(self):
        super().__init__()
        self.RequestHandlerClass = Handler
        self.cache = Cache()
        self.inputs: dict = {}
        self.count = 0

    def unique(self, reply):
        """Returns an answer with ids of its own."""
        self.count += 1
        for name in (b"msg_1", b"resp_1", b"chatcmpl-1"):
            reply = reply.replace(b'"' + name + b'"', b'"' + name + b"_%d" % self.count + b'"')
        return reply
