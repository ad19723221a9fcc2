"""Runs examples/hooked_agent.py against a stub of the provider, and asserts that the requests keep a byte-stable prefix.

check_hooked_agent.py PROEM FOLDER: the program, and an empty folder. Runs in an environment that has the package `anthropic`.
"""

import http.server
import itertools
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import threading
import typing

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Stub(http.server.BaseHTTPRequestHandler):
    """A provider that records bodies, uses the tool `read` after a prompt that says so, and answers otherwise."""

    bodies: typing.ClassVar[list[bytes]] = []

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.bodies.append(body)
        last = json.loads(body)["messages"][-2:]
        text = json.dumps(last)
        if "Read NOTES.md" in text and "tool_result" not in text:
            content = [
                {"type": "tool_use", "id": f"t{len(self.bodies)}", "name": "read", "input": {"path": "NOTES.md"}}
            ]
        else:
            content = [{"type": "text", "text": f"Answer {len(self.bodies)}."}]
        answer = {
            "id": "m", "type": "message", "role": "assistant", "model": "claude-opus-5", "content": content,
            "stop_reason": "end_turn", "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
        }  # fmt: skip
        sent = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *_):
        pass


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def without_markers(value):
    """A marker says where the provider may cache; it is not part of what is cached."""
    if isinstance(value, list):
        return [without_markers(item) for item in value]
    if isinstance(value, dict):
        return {key: without_markers(item) for key, item in value.items() if key != "cache_control"}
    return value


def prefix_bytes(body):
    """The bytes that a cache of the provider compares: tools, system prompt, messages; without the end of the list."""
    parts = without_markers({key: body[key] for key in ("tools", "system", "messages")})
    return json.dumps(parts, ensure_ascii=False).removesuffix("]}").encode()


def check(bodies):
    bodies = [json.loads(body) for body in bodies]
    summarising = [index for index, body in enumerate(bodies) if "long" in json.dumps(body["messages"][-1])]
    assert len(bodies) == 7, f"{len(bodies)} requests"
    assert summarising == [3], summarising
    first, second = bodies[:3], bodies[4:]
    for epoch in (first, second):
        for before, after in itertools.pairwise(epoch):
            assert prefix_bytes(after).startswith(prefix_bytes(before)), "a request does not begin with the last one"
            assert after["tools"] == before["tools"]
            assert after["system"] == before["system"]
    said = json.dumps([body["system"] for body in first], ensure_ascii=False)
    assert "French" not in said, "the frozen prompt follows an edit"
    assert "Answer in French." in json.dumps(second[0]["system"]), "the next epoch does not"
    assert "#12: The parser loses comments" in json.dumps(first[0]["messages"]), "the hook did not run"
    assert "#13: Dark mode" in json.dumps(first[2]["messages"]), "the hook did not run"
    # The tool's answer continues the prompt: the hook is not asked again.
    assert json.dumps(first[1]["messages"]).count("#12: The parser") == 1
    assert "Answer 4." in json.dumps(second[0]["messages"][0]), "the summary is not in the messages"
    assert second[0]["messages"][0]["role"] == "user"
    assert any("cache_control" in block for block in first[0]["system"]), "the system prompt is not marked"


def main():
    proem, folder = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
    work, home, config = folder / "work", folder / "home", folder / "config"
    for path in (work, home, config):
        path.mkdir(parents=True)
    (work / "AGENTS.md").write_text("Answer in English.\n")
    (work / "NOTES.md").write_text("The parser is in parse.rs.\n")
    hook = free_port()
    (config / "proem.toml").write_text(
        f'[[hook]]\nname = "tickets"\nevent = "before_agent_start"\nurl = "http://127.0.0.1:{hook}/hook"\n'
    )
    stub = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Stub)
    threading.Thread(target=stub.serve_forever, daemon=True).start()
    plain = {"PATH": os.environ["PATH"], "HOME": str(home), "PROEM_CONFIG_DIR": str(config)}
    serve = [proem, "serve", "--listen", "127.0.0.1:0", "--store", folder / "proem.db"]
    server = subprocess.Popen(serve, cwd=work, env=plain, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr
        url = next(found[1] for line in server.stderr if (found := re.search(r"listening on (http:[^,]*),", line)))
        # The server ends at a write into a closed or full pipe.
        threading.Thread(target=server.stderr.read, daemon=True).start()
        env = plain | {
            "PROEM_URL": url, "HOOK_PORT": str(hook), "ANTHROPIC_API_KEY": "none",
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{stub.server_address[1]}",
        }  # fmt: skip
        example = [sys.executable, ROOT / "examples/hooked_agent.py"]
        said = subprocess.run(
            example, cwd=work, env=env, check=True, capture_output=True, text=True, timeout=120
        ).stdout
    except subprocess.CalledProcessError as error:
        sys.exit(f"error: the example failed:\n{error.stderr}")
    finally:
        server.terminate()
        server.wait()
    epochs = [line.split()[:2] for line in said.splitlines()]
    assert epochs == [["1", "startup"]] * 3 + [["2", "compaction"]] * 3, epochs
    assert len(set(said.splitlines())) == 2, said
    check(Stub.bodies)
    print(f"sdk        {len(Stub.bodies)} requests, 2 epochs, a byte-stable prefix in each")


main()
