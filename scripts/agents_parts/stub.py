"""A provider on the loopback interface: it keeps the body of each request and answers with one word."""

import gzip
import http.server
import json
import threading
import time
import zlib

from agents_parts import cursor

WORD = "Done."
USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


def events(parts):
    """Formats server-sent events; each is a name, or None, and an object."""
    lines = []
    for name, data in parts:
        if name:
            lines.append(f"event: {name}\n")
        lines.append(f"data: {json.dumps(data)}\n\n")
    return "".join(lines).encode()


def messages(body):
    """Anthropic's Messages."""
    usage = {"input_tokens": 1, "output_tokens": 1, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": body.get("model"), "content": [],
            "stop_reason": None, "stop_sequence": None, "usage": usage}  # fmt: skip
    if not body.get("stream"):
        return json.dumps({**head, "content": [{"type": "text", "text": WORD}], "stop_reason": "end_turn"}).encode()
    block = {"type": "text", "text": ""}
    end = {"stop_reason": "end_turn", "stop_sequence": None}
    return events(
        [
            ("message_start", {"type": "message_start", "message": head}),
            ("content_block_start", {"type": "content_block_start", "index": 0, "content_block": block}),
            (
                "content_block_delta",
                {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": WORD}},
            ),
            ("content_block_stop", {"type": "content_block_stop", "index": 0}),
            ("message_delta", {"type": "message_delta", "delta": end, "usage": usage}),
            ("message_stop", {"type": "message_stop"}),
        ]
    )


def responses(body):
    """OpenAI's Responses."""
    item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": WORD, "annotations": []}]}  # fmt: skip
    usage = {"input_tokens": 1, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 1,
             "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 2}  # fmt: skip
    head = {"id": "resp_1", "object": "response", "created_at": 1, "model": body.get("model"), "output": []}
    done = {**head, "status": "completed", "output": [item], "usage": usage}
    if not body.get("stream"):
        return json.dumps(done).encode()
    return events(
        [
            ("response.created", {"type": "response.created", "response": {**head, "status": "in_progress"}}),
            ("response.output_item.done", {"type": "response.output_item.done", "output_index": 0, "item": item}),
            ("response.completed", {"type": "response.completed", "response": done}),
        ]
    )


def chat(body):
    """OpenAI's chat completions."""
    head = {"id": "chatcmpl-1", "created": 1, "model": body.get("model")}
    if not body.get("stream"):
        choice = {"index": 0, "message": {"role": "assistant", "content": WORD}, "finish_reason": "stop"}
        return json.dumps({**head, "object": "chat.completion", "choices": [choice], "usage": USAGE}).encode()
    head["object"] = "chat.completion.chunk"
    deltas = [({"role": "assistant", "content": WORD}, None), ({}, "stop")]
    chunks = [{**head, "choices": [{"index": 0, "delta": delta, "finish_reason": end}]} for delta, end in deltas]
    chunks.append({**head, "choices": [], "usage": USAGE})
    return events([(None, chunk) for chunk in chunks]) + b"data: [DONE]\n\n"


def gemini(path, body):
    """Gemini's generateContent."""
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    if "countTokens" in path:
        return json.dumps({"totalTokens": 1}).encode()
    text = WORD
    if (body.get("generationConfig") or {}).get("responseMimeType") == "application/json":
        text = json.dumps({"reasoning": "", "next_speaker": "user", "model_choice": "flash", "complexity_score": 1,
                           "complexity_reasoning": ""})  # fmt: skip
    candidate = {"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP", "index": 0}
    answer = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "stub"}
    return events([(None, answer)]) if "stream" in path else json.dumps(answer).encode()


def answer(path, body):
    """Returns the answer of a path, or None."""
    path = path.split("?")[0]
    if path.endswith("/count_tokens"):
        return b'{"input_tokens": 1}'
    for ending, reply in (("/messages", messages), ("/responses", responses), ("/chat/completions", chat)):
        if path.endswith(ending):
            return reply(body)
    return gemini(path, body) if "enerateContent" in path or "countTokens" in path else None


def decoded(data, encoding):
    """Undoes the compression of a body."""
    if encoding == "gzip":
        return gzip.decompress(data)
    return zlib.decompress(data) if encoding == "deflate" else data


class Handler(http.server.BaseHTTPRequestHandler):
    """Keeps requests and answers them."""

    protocol_version = "HTTP/1.1"
    server: "Stub"

    def log_message(self, format, *args):
        """Prints nothing."""

    def data(self):
        if "chunked" in self.headers.get("transfer-encoding", ""):
            data = b""
            while size := int(self.rfile.readline().split(b";")[0] or b"0", 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return data
        return self.rfile.read(int(self.headers.get("content-length") or 0))

    def send(self, status, kind, data):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def of_cursor(self, data):
        """Answers Cursor's client; returns False for another path."""
        if self.path.endswith("/RunSSE"):
            self.send_response(200)
            self.send_header("content-type", "application/connect+proto")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            frame = cursor.question()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(frame), frame))
            self.wfile.flush()
            time.sleep(30)
            return True
        if self.path.endswith("/BidiAppend"):
            rules = cursor.rules(bytes.fromhex(cursor.only(data, 1)[0].decode()))
            if rules is not None:
                self.server.bodies.append({"messages": ["hello"], "rules": rules})
        known = cursor.reply(self.path)
        if known is None and "/aiserver.v1." not in self.path:
            return False
        is_proto = self.headers.get("content-type", "").startswith("application/proto")
        self.send(
            200, *(known or ("application/proto" if is_proto else "application/json", b"" if is_proto else b"{}"))
        )
        return True

    def do_POST(self):
        data = decoded(self.data(), self.headers.get("content-encoding", ""))
        if self.server.is_cursor and self.of_cursor(data):
            return None
        try:
            body = json.loads(data)
        except ValueError:
            body = {}
        body = body if isinstance(body, dict) else {}
        reply = answer(self.path, body)
        if reply is None:
            return self.send(404, "application/json", b'{"error": {"message": "not found"}}')
        self.server.bodies.append(body)
        is_stream = reply.startswith((b"event:", b"data:"))
        return self.send(200, "text/event-stream" if is_stream else "application/json", reply)

    def do_GET(self):
        if self.server.is_cursor and self.of_cursor(b""):
            return None
        if self.path.split("?")[0].endswith("/models"):
            model = {"id": "stub-model", "object": "model", "created": 1, "owned_by": "stub"}
            return self.send(200, "application/json", json.dumps({"object": "list", "data": [model]}).encode())
        return self.send(404, "application/json", b'{"error": {"message": "not found"}}')


class Stub(http.server.ThreadingHTTPServer):
    """A server for one run of an agent."""

    daemon_threads = True

    def __init__(self, is_cursor=False):
        self.is_cursor = is_cursor
        super().__init__(("127.0.0.1", 0), Handler)
        self.bodies: list[dict] = []
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request, client_address):
        """Ignores connections that an agent closes."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()
