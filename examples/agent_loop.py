"""An agent loop on proem's HTTP API. Start `proem serve` in this directory, then run `python3 examples/agent_loop.py`."""
import json, os, pathlib, tempfile, urllib.request, uuid

URL = os.environ.get("PROEM_URL", "http://127.0.0.1:7717")
NAME = f"example-{uuid.uuid4().hex}"


def post(path, body=None):
    data, headers = json.dumps(body).encode() if body else b"", {"Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(f"{URL}/conversations/{NAME}/{path}", data, headers)) as answer:
        return json.load(answer)


def model(system, messages):  # Stands in for a provider: call yours here.
    return f"This answers {len(messages)} messages and a system prompt of {len(system)} characters."


with tempfile.TemporaryDirectory(dir=".") as project:
    instructions = pathlib.Path(project).resolve() / "AGENTS.md"
    instructions.write_text("Answer in English.\n")
    history, digests = [], []
    for turn in range(6):
        request = {"cwd": str(instructions.parent), "messages": history, "prompt": f"Question {turn}", "provider": "anthropic"}
        answer = post("turn", request)  # The first turn builds the prompt and freezes it; later ones get the same bytes.
        digests.append(answer["digest"])
        reply = model(answer["carriers"]["system"], answer["payload"]["messages"])
        history = answer["messages"] + [{"role": "assistant", "content": reply}]  # What was sent stays as it was sent.
        instructions.write_text("Answer in German.\n")  # Somebody edits a file: it waits until the cache is lost anyway.
        if turn == 2:  # The history is long enough: let the model sum it up, then begin again with the summary.
            begun = post("compaction")
            ask = history + [{"role": "user", "content": begun["instructions"]}]
            summary = model(begun["carriers"]["system"], ask)
            post(f"compaction/{begun['token']}/commit")
            history = [{"role": "user", "content": summary}, {"role": "assistant", "content": "I go on from there."}]

assert len(set(digests[:3])) == 1 and len(set(digests[3:])) == 1, "the prompt changed between turns"
assert digests[2] != digests[3], "the compaction did not pick up the edited file"
print(f"6 turns, 2 epochs: {digests[0][:12]} three times, then {digests[3][:12]} three times")
