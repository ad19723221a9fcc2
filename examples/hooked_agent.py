"""An agent on Anthropic's SDK, with tools, a hook of its own, and a compaction.

Needs `pip install anthropic`, `proem serve` (PROEM_URL) in a project, and this hook in its proem.toml:

    [[hook]]
    name = "tickets"
    event = "before_agent_start"
    url = "http://127.0.0.1:9000/hook"

The hook runs in this process (HOOK_PORT). ANTHROPIC_BASE_URL and ANTHROPIC_API_KEY are those of the SDK.
"""
import http.server
import json
import os
import pathlib
import re
import threading
import urllib.request
import uuid

import anthropic

CONVERSATION = f"{os.environ.get('PROEM_URL', 'http://127.0.0.1:7717')}/conversations/hooked-{uuid.uuid4().hex}"
MODEL = "claude-opus-5"
TICKETS = {"12": "The parser loses comments", "13": "Dark mode"}
TOOLS = [{
    "name": "read", "description": "Reads a file",
    "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
}]


class Hook(http.server.BaseHTTPRequestHandler):
    """Adds the titles of the tickets that the user mentions, as a message behind everything that is cached."""

    def do_POST(self):
        event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        known = [f"#{number}: {TICKETS[number]}" for number in re.findall(r"#(\d+)", event["prompt"]) if number in TICKETS]
        body = json.dumps({"message": "\n".join(known)}).encode() if known else b""
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def post(path, body=None):
    request = urllib.request.Request(f"{CONVERSATION}/{path}", json.dumps(body or {}).encode(), {"Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(request))


def call(client, payload):
    """Sends a payload as proem made it: every field of it, and no other system prompt, message or tool."""
    answer = client.messages.create(max_tokens=1024, **payload)
    return [block.model_dump(exclude_none=True) for block in answer.content]


def answer_prompt(client, history, prompt):
    """Answers one prompt of the user: as many calls as the model wants tools."""
    turn = {"messages": history, "prompt": prompt, "provider": "anthropic", "model": MODEL, "tools": TOOLS}
    while True:
        made = post("turn", turn)
        print(made["epoch"], made["reason"], made["digest"])
        content = call(client, made["payload"])
        history = [*made["history"], {"role": "assistant", "content": content}]
        uses = [block for block in content if block["type"] == "tool_use"]
        if not uses:
            return history
        results = [
            {"type": "tool_result", "tool_use_id": use["id"], "content": pathlib.Path(use["input"]["path"]).read_text()} for use in uses
        ]
        # Without a prompt the turn continues this one.
        turn = {"messages": [*history, {"role": "user", "content": results}], "provider": "anthropic"}


def compact(client, history):
    """Replaces the history by a summary; the next prompt is built from the files as they are then."""
    begun = post("compaction", {"messages": history, "provider": "anthropic"})
    summary = "".join(block["text"] for block in call(client, begun["payload"]) if block["type"] == "text")
    post(f"compaction/{begun['token']}/commit")
    return [{"role": "compaction_summary", "content": summary}, {"role": "assistant", "content": "I go on from there."}]


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("HOOK_PORT", "9000"))), Hook)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    client = anthropic.Anthropic()
    history = answer_prompt(client, [], "Read NOTES.md, and look at #12.")
    pathlib.Path("AGENTS.md").write_text("Answer in French.\n")  # The frozen prompt does not change.
    history = answer_prompt(client, history, "What about #13?")
    history = compact(client, history)
    history = answer_prompt(client, history, "Go on.")
    answer_prompt(client, history, "Read NOTES.md again.")


main()
