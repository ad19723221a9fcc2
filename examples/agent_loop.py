"""An agent loop on proem's HTTP API: start `proem serve` in a project, then run this file there."""
import json, os, urllib.request, uuid

URL = f"{os.environ.get('PROEM_URL', 'http://127.0.0.1:7717')}/conversations/example-{uuid.uuid4().hex}"

def post(path, body=None):
    data = json.dumps(body).encode() if body else b""
    return json.load(urllib.request.urlopen(urllib.request.Request(f"{URL}/{path}", data, {"Content-Type": "application/json"})))

def model(system, messages):  # Stands in for a provider: call yours here.
    return f"This answers {len(messages)} messages and a system prompt of {len(system)} characters."

history = []
for turn in range(6):
    answer = post("turn", {"messages": history, "prompt": f"Question {turn}", "provider": "anthropic"})
    print(answer["epoch"], answer["reason"], answer["digest"])  # The same bytes, whatever happens to files meanwhile.
    reply = model(answer["system_prompt"], answer["payload"]["messages"])
    history = answer["history"] + [{"role": "assistant", "content": reply}]  # What was sent stays as it was sent.
    if turn == 2:  # The history is long enough: the model sums it up, and the next prompt is built from what is there then.
        begun = post("compaction")
        summary = model(begun["carriers"]["system"], history + [{"role": "user", "content": begun["instructions"]}])
        post(f"compaction/{begun['token']}/commit")
        history = [{"role": "user", "content": summary}, {"role": "assistant", "content": "I go on from there."}]
