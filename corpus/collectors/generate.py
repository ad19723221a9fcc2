#!/usr/bin/env python3
"""Writes the recordings of this folder.

The formats were captured from the programs named in README.md; every text is our own. Hashes and digests are computed
as the programs do. Run it without arguments; the folders `*/*/input` are replaced.
"""
import hashlib
import json
import pathlib
import shutil

ROOT = pathlib.Path(__file__).parent
SESSION = "6c7987ae-485b-4d5f-9245-000000000001"


def compact(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def canonical(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, sort_keys=True)


def digest(value):
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def message_hash(message):
    message = json.loads(json.dumps(message))
    if isinstance(message["content"], str):
        message["content"] = [{"type": "text", "text": message["content"]}]
    for block in message["content"]:
        block.pop("cache_control", None)
    return digest(message)


class Case:
    def __init__(self, name):
        self.folder = ROOT / name / "input"
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)

    def text(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def json(self, name, value):
        self.text(name, compact(value))

    def lines(self, name, values, end="\n"):
        self.text(name, "\n".join(compact(value) for value in values) + end)


MARK = {"type": "ephemeral"}
TOOLS = [
    {"name": "Read", "description": "Reads one of our files.", "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}},
    {"name": "mcp__notes__add", "description": "Adds one of our notes.", "input_schema": {"type": "object"}},
]
SYSTEM = [{"type": "text", "text": "You are the clerk of the pier."}, {"type": "text", "text": "Keep the tide table.\nAnswer briefly."}]
RULES = "# Rules\n- Name the pier. RULE-1"
PARAMS = {"model": "claude-opus-5-5", "betas": ["claude-code-20250219"], "max_tokens": 1000, "output_config": {"effort": "medium"}}
ATTRIBUTION = {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.326.aaa;"}


def usage(read, written, plain, output, hour=0):
    return {"input_tokens": plain, "cache_creation_input_tokens": written, "cache_read_input_tokens": read,
            "output_tokens": output, "cache_creation": {"ephemeral_1h_input_tokens": hour, "ephemeral_5m_input_tokens": written - hour}}


USER = {"role": "user", "content": [{"type": "text", "text": "<system-reminder>\n" + RULES + "\n</system-reminder>"}, {"type": "text", "text": "Read the notes."}]}
CALL = {"role": "assistant", "content": [{"type": "thinking", "thinking": "I read them.", "signature": "c2ln"},
                                         {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"path": "notes"}}]}
RESULT = {"role": "user", "content": [{"tool_use_id": "toolu_1", "type": "tool_result", "content": "the tide is 7.1"}]}
ANSWER = {"role": "assistant", "content": [{"type": "text", "text": "It is 7.1 metres."}]}
MORE = {"role": "user", "content": "And pier b?"}


def listed(messages):
    """Content as lists: the form in which digests are computed."""
    return [dict(one, content=[{"type": "text", "text": one["content"]}] if isinstance(one["content"], str) else one["content"]) for one in messages]


def marked(messages):
    messages = json.loads(json.dumps(messages))
    last = messages[-1]
    if isinstance(last["content"], str):
        last["content"] = [{"type": "text", "text": last["content"]}]
    last["content"][-1]["cache_control"] = MARK
    return messages


def wire(messages, session=SESSION):
    redacted = json.loads(json.dumps(marked(messages)))
    for message in redacted:
        for block in message["content"] if isinstance(message["content"], list) else []:
            if block["type"] == "thinking":
                block["thinking"] = "<REDACTED>"
    system = [ATTRIBUTION] + [dict(block, cache_control=MARK) for block in SYSTEM]
    return {"model": PARAMS["model"], "messages": redacted, "system": system, "tools": TOOLS, "betas": PARAMS["betas"],
            "metadata": {"user_id": compact({"device_id": "d", "account_uuid": "", "session_id": session})},
            "max_tokens": 1000, "output_config": PARAMS["output_config"], "stream": True}


def reply(number, content, used, reason=None):
    body = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": PARAMS["model"], "content": content, "usage": used}
    if reason:
        body["diagnostics"] = {"cache_miss_reason": reason}
    return body


TURNS = [
    ([USER], CALL, usage(0, 300, 1, 20)),
    ([USER, CALL, RESULT], ANSWER, usage(300, 40, 1, 9, 40)),
]


def claude_raw():
    case = Case("claude-code/raw")
    index = []
    for number, (messages, answer, used) in enumerate(TURNS, 1):
        case.json(f"raw/0000000{number}.request.json", wire(messages))
        reason = {"type": "tools_changed", "cache_missed_input_tokens": 7} if number == 2 else None
        case.json(f"raw/req_{number}.response.json", reply(number, answer["content"], used, reason))
        index.append({"timestamp": f"2026-11-17T14:50:3{number}.600Z", "session_id": SESSION, "query_source": "sdk", "model": PARAMS["model"],
                      "request_id": f"req_{number}", "message_id": f"msg_{number}", "request_file": f"0000000{number}.request.json",
                      "response_file": f"req_{number}.response.json"})
    index.append(dict(index[0], request_id="req_3", query_source="generate_session_title", timestamp="2026-11-17T14:50:40Z",
                      request_file="gone.request.json", response_file="../../../etc/passwd"))
    case.json("raw/0000000f.request.json", wire([USER, CALL, RESULT]))
    case.lines("raw/index.jsonl", index)
    case.text("raw/notes.txt", "not ours\n")


def event(name, at, **attributes):
    attributes = {"event.name": name, "event.timestamp": at, "session.id": SESSION, **attributes}
    kind = lambda value: {"intValue": value} if isinstance(value, int) else {"stringValue": value}
    return {"body": {"stringValue": "claude_code." + name}, "attributes": [{"key": k, "value": kind(v)} for k, v in attributes.items()]}


def otlp(records, version):
    return {"resourceLogs": [{"resource": {"attributes": [{"key": "service.version", "value": {"stringValue": version}}]},
                              "scopeLogs": [{"logRecords": records}]}]}


def claude_events():
    """A version without an index: events pair the bodies. Older ones have no `request_body_id`."""
    case = Case("claude-code/events")
    records = []
    for number, (messages, answer, used) in enumerate(TURNS, 1):
        file = f"/home/me/raw/0000000{number}.request.json"
        case.json(f"raw/0000000{number}.request.json", wire(messages))
        case.json(f"raw/req_{number}.response.json", reply(number, answer["content"], used))
        at = f"2026-11-17T14:50:5{number}"
        if number == 1:
            records.append(event("api_request_body", at + ".000Z", body_ref="/home/me/raw/failed.request.json", query_source="sdk"))
        records.append(event("api_request_body", at + ".100Z", body_ref=file, query_source="sdk"))
        records.append(event("api_request", at + ".300Z", request_id=f"req_{number}", query_source="sdk", model=PARAMS["model"],
                             input_tokens="1", output_tokens=9, cache_read_tokens=used["cache_read_input_tokens"], cache_creation_tokens=40))
        records.append(event("api_response_body", at + ".300Z", request_id=f"req_{number}", query_source="sdk"))
    case.json("raw/failed.request.json", wire([USER]))
    # An agent whose bodies are not there, with an event that came twice.
    agent = event("api_request", "2026-11-17T14:51:00Z", request_id="req_9", query_source="agent:custom", agent_id="a9", model="claude-haiku-4-5",
                  input_tokens=5, output_tokens=6, cache_read_tokens=7, cache_creation_tokens=8, **{"mcp_server.name": "notes"})
    case.lines("otlp-logs.jsonl", [otlp(records, "2.1.197"), {"path": "/v1/logs", "body": otlp([agent, agent], "2.1.326")}])


def claude_content():
    """Neither index nor events: answers are found again in later requests."""
    case = Case("claude-code/content")
    turns = TURNS + [([USER, CALL, RESULT, ANSWER, MORE], {"content": [{"type": "text", "text": "5.0"}]}, usage(340, 9, 1, 3))]
    for number, (messages, answer, used) in enumerate(turns, 1):
        case.json(f"raw/0000000{number}.request.json", wire(messages))
        case.json(f"raw/req_{number}.response.json", reply(number, answer["content"], used))


def line(kind, **fields):
    return {"type": kind, "sessionId": SESSION, "version": "2.1.326", "cwd": "/home/me/project", **fields}


class Transcript:
    def __init__(self, **common):
        self.lines, self.common, self.n = [], common, 0

    def add(self, kind, **fields):
        self.n += 1
        self.lines.append(line(kind, timestamp=f"2026-11-17T15:00:{self.n:02}.000Z", **fields, **self.common))

    def shape(self):
        shape = {"system": SYSTEM, "tools": TOOLS}
        self.add("api-request-shape", shapeHash=digest(shape), shape=shape)
        return digest(shape)

    def blob(self, message):
        self.add("api-request-blob", hash=message_hash(message), message=message)

    def request(self, shape, ident, messages, base=None, keep=0, bad=False, source="sdk"):
        plain = json.loads(json.dumps(messages))
        control = [{"path": ["system", 0], "value": MARK}, {"path": ["system", 1], "value": MARK},
                   {"path": ["messages", len(messages) - 1, "content", len(marked(messages)[-1]["content"]) - 1], "value": MARK}]
        body = dict(PARAMS, messages=listed(marked(plain)), tools=TOOLS, system=[dict(block, cache_control=MARK) for block in SYSTEM])
        fields = {"base": base} if base else {}
        self.add("api-request", id=ident, querySource=source, shapeHash=shape, params=PARAMS, keep=keep,
                 tail=[message_hash(message) for message in messages[keep:]], cacheControl=control,
                 requestDigest="0" * 64 if bad else digest(body), **fields)

    def answer(self, number, message, used, ref):
        for index, block in enumerate(message["content"]):
            self.add("assistant", message={"id": f"msg_{number}", "type": "message", "role": "assistant", "model": PARAMS["model"],
                                           "content": [block], "usage": used}, requestId=f"req_{number}", requestRef=ref, apiBlockIndex=index,
                     uuid=f"u{number}{index}")


def claude_transcript():
    case = Case("claude-code/transcript")
    t = Transcript()
    t.add("user", message={"role": "user", "content": "Read the notes."}, uuid="u0")
    t.add("attachment", attachment={"type": "instructions", "files": [{"path": "/home/me/project/CLAUDE.md", "type": "Project", "content": RULES}]},
          rendered=[{"content": USER["content"][0]["text"]}], renderedRole="user")
    t.add("attachment", attachment={"type": "mcp_instructions_delta", "addedNames": ["notes"], "addedBlocks": ["## notes\nOur notes."]})
    t.add("attachment", attachment={"type": "date", "date": "2026-11-17"}, rendered=[{"content": "<system-reminder>\nIt is 2026-11-17.\n</system-reminder>"}])
    t.add("attachment", attachment={"type": "hook_additional_context", "hookName": "SessionStart", "hookEvent": "SessionStart", "content": "The gate is open."})
    t.add("attachment", attachment={"type": "something_new", "x": 1})
    shape = t.shape()
    t.blob(USER)
    t.request(shape, "r1", [USER])
    t.answer(1, CALL, usage(0, 300, 1, 20), "r1")
    t.add("user", message=RESULT, uuid="u2")
    t.request(shape, "r2-failed", [USER, CALL, RESULT], "r1", 1)
    t.request(shape, "r2", [USER, CALL, RESULT], "r1", 1)
    t.answer(2, ANSWER, usage(300, 40, 1, 9, 40), "r2")
    t.add("user", message=MORE, uuid="u3")
    t.request(shape, "r3", [USER, CALL, RESULT, ANSWER, MORE], "r2", 3, bad=True)
    t.answer(3, {"content": [{"type": "text", "text": "5.0"}]}, usage(340, 9, 1, 3), "r3")
    t.add("system", subtype="compact_boundary", compactMetadata={"trigger": "manual"})
    t.request(shape, "r4", [MORE])
    t.answer(4, {"content": [{"type": "text", "text": "Yes."}]}, usage(0, 90, 1, 3), "r4")
    shape = t.shape()
    t.blob(MORE)
    t.request(shape, "r5", [MORE])
    t.answer(5, {"content": [{"type": "text", "text": "No."}]}, usage(0, 90, 1, 3), "r5")
    # The first message is a plain text now: its form changes when the marker moves on.
    no = {"role": "assistant", "content": [{"type": "text", "text": "No."}]}
    t.add("user", message=RESULT, uuid="u6")
    t.request(shape, "r6", [MORE, no, RESULT], "r5", 1)
    t.answer(8, {"content": [{"type": "text", "text": "Fine."}]}, usage(90, 9, 1, 3), "r6")
    torn = '{"type":"assistant","message":{"id":"msg_6","usa'
    case.lines(f"projects/-home-me-project/{SESSION}.jsonl", t.lines)
    path = case.folder / f"projects/-home-me-project/{SESSION}.jsonl"
    path.write_text(path.read_text() + torn)
    s = Transcript(agentId="a1", isSidechain=True)
    s.add("user", message=MORE)
    shape = s.shape()
    s.request(shape, "s1", [MORE], source="agent:custom:surveyor")
    s.answer(7, ANSWER, usage(0, 80, 1, 9), "s1")
    case.lines(f"projects/-home-me-project/{SESSION}/subagents/agent-a1.jsonl", s.lines)
    case.json(f"projects/-home-me-project/{SESSION}/subagents/agent-a1.meta.json", {"agentType": "surveyor"})


def claude_joined():
    """Bodies, and a transcript of an older version: the owners of one and the texts of the other."""
    case = Case("claude-code/joined")
    messages, answer, used = TURNS[0]
    case.json("raw/00000001.request.json", wire(messages))
    case.json("raw/req_1.response.json", reply(1, answer["content"], used))
    case.lines("raw/index.jsonl", [{"timestamp": "2026-11-17T15:00:09Z", "session_id": SESSION, "query_source": "sdk", "request_id": "req_1",
                                    "request_file": "00000001.request.json", "response_file": "req_1.response.json"}])
    t = Transcript()
    t.add("attachment", attachment={"type": "nested_memory", "path": "/home/me/project/CLAUDE.md",
                                    "content": {"path": "/home/me/project/CLAUDE.md", "content": RULES}})
    t.answer(1, CALL, used, None)
    case.lines(f"projects/p/{SESSION}.jsonl", t.lines)


THREAD = "01a1ea00-74f4-7270-95ed-000000000001"


def item(role, text, kind=None, ident="m", **fields):
    made = {"type": "message", "id": ident, "role": role, "content": [{"type": "output_text" if role == "assistant" else "input_text", "text": text}], **fields}
    if kind:
        made["internal_chat_message_metadata_passthrough"] = {"turn_id": "t", "content_item_kinds": [kind]}
    return made


LITE = [
    {"type": "additional_tools", "id": "at_1", "role": "developer", "tools": [{"type": "function", "name": "exec", "description": "Runs our program."}]},
    item("developer", "You keep the tide table.", "model.base_instructions", "m1"),
    item("user", "# AGENTS.md instructions for /home/me/project\n" + RULES, "agents_md.instructions", "m2"),
    item("user", "Read the notes.", "user.text", "m3"),
]
OUTPUT = [{"type": "reasoning", "id": "rs_1", "summary": [], "content": None, "encrypted_content": "gAAAA"},
          {"type": "custom_tool_call", "id": "ct_1", "status": "completed", "call_id": "c1", "name": "exec", "input": "cat notes"}]
NEW = [{"type": "custom_tool_call_output", "id": "ctco_1", "call_id": "c1", "output": "the tide is 7.1"}]
TOKENS = [{"input_tokens": 1000, "cached_input_tokens": 0, "cache_write_input_tokens": 1000, "output_tokens": 10},
          {"input_tokens": 1100, "cached_input_tokens": 896, "cache_write_input_tokens": 204, "output_tokens": 7}]


def codex_trace():
    case = Case("codex/websocket")
    folder = f"trace/trace-1-{THREAD}/"
    rest = {"model": "gpt-6.1-sol", "stream": True, "tool_choice": "auto", "reasoning": {"effort": "low"}, "prompt_cache_key": THREAD,
            "client_metadata": {"x-codex-turn-metadata": compact({"request_kind": "turn"})}}
    case.json(folder + "manifest.json", {"schema_version": 2, "rollout_id": THREAD})
    case.json(folder + "payloads/1.json", {"thread_id": THREAD, "cwd": "/home/me/project"})
    case.json(folder + "payloads/2.json", dict(rest, input=LITE))
    case.json(folder + "payloads/3.json", {"response_id": "resp_1", "token_usage": TOKENS[0], "output_items": OUTPUT})
    case.json(folder + "payloads/4.json", dict(rest, type="response.create", previous_response_id="resp_1", input=NEW))
    case.json(folder + "payloads/5.json", {"response_id": "resp_2", "token_usage": TOKENS[1], "output_items": [item("assistant", "7.1")]})
    case.json(folder + "payloads/6.json", dict(rest, type="response.create", previous_response_id="resp_lost", input=NEW))
    case.json(folder + "payloads/7.json", {"response_id": "resp_3", "token_usage": TOKENS[1], "output_items": []})
    lines = []

    def add(kind, **fields):
        lines.append({"schema_version": 2, "seq": len(lines) + 1, "wall_time_unix_ms": 1794927260000 + 100 * len(lines), "rollout_id": THREAD,
                      "thread_id": THREAD, "payload": {"type": kind, **fields}})

    add("thread_started", thread_id=THREAD, metadata_payload={"path": "payloads/1.json"})
    for n, (request, response) in enumerate([(2, 3), (4, 5), (6, 7)], 1):
        add("inference_started", inference_call_id=f"i{n}", request_payload={"path": f"payloads/{request}.json"})
        add("something_new", x=1)
        add("inference_completed", inference_call_id=f"i{n}", response_id=f"resp_{n}", response_payload={"path": f"payloads/{response}.json"})
    add("inference_started", inference_call_id="i9", request_payload={"path": "../../../../../../etc/passwd"})
    case.lines(folder + "trace.jsonl", lines)


def rollout(case, name, meta, entries):
    lines = []

    def add(kind, payload):
        lines.append({"timestamp": f"2026-11-17T14:54:{len(lines):02}.000Z", "type": kind, "payload": payload})

    add("session_meta", {"id": THREAD, "cwd": "/home/me/project", "cli_version": "0.169.0", "base_instructions": {"text": "You keep the tide table."}, **meta})
    add("turn_context", {"model": "gpt-6.1-sol", "cwd": "/home/me/project", "effort": "low"})
    for kind, payload in entries:
        add(kind, payload)
    case.lines(f"sessions/2026/11/17/rollout-{name}.jsonl", lines)


def tokens(n, used):
    return ("token_usage_record", {"thread_id": THREAD, "session_id": THREAD, "response_id": f"resp_{n}", "usage": used})


def codex_rollouts():
    case = Case("codex/rollouts")
    of = lambda items: [("response_item", one) for one in items]
    rollout(case, "lite", {}, of(LITE + OUTPUT) + [tokens(1, TOKENS[0]), ("event_msg", {"type": "token_count", "rate_limits": {"plan_type": "plus"}})]
            + of(NEW + [item("assistant", "7.1")]) + [tokens(2, TOKENS[1]), ("unheard_of", {"x": 1})])
    rollout(case, "plain", {"id": "other"}, of(LITE[2:] + OUTPUT) + [tokens(11, TOKENS[0])]
            + [("compacted", {"message": "", "replacement_history": [item("user", "Summary: the tide is 7.1")]})]
            + of([item("user", "And pier b?"), item("assistant", "5.0")]) + [tokens(12, TOKENS[1])])
    rollout(case, "fork", {"id": "fork", "forked_from_id": THREAD, "history_base": {"end_byte_offset": 99}},
            of([item("user", "And pier c?"), item("assistant", "6.0")]) + [tokens(21, TOKENS[1])])


def opencode():
    case = Case("opencode/plugin")
    ses = "ses_1"
    model = {"id": "claude-sonnet-4-5", "providerID": "anthropic"}
    secret = {"options": {"apiKey": "sk-ant-api03-our-secret"}}
    user = {"info": {"id": "msg_u1", "role": "user", "sessionID": ses, "time": {"created": 100000000100}}, "parts": [{"type": "text", "text": "Read the notes."}]}

    def info(ident, created, done=True, numbers=(1, 41, 0, 3031)):
        made = {"id": ident, "role": "assistant", "sessionID": ses, "agent": "build", "path": {"cwd": "/home/me/project"}, "modelID": model["id"],
                "providerID": "anthropic", "time": {"created": created},
                "tokens": {"input": numbers[0], "output": numbers[1], "cache": {"read": numbers[2], "write": numbers[3]}}}
        if done:
            made["time"]["completed"] = created + 900
        else:
            made["tokens"] = {"input": 0, "output": 0, "cache": {"read": 0, "write": 0}}
        return made

    first = {"info": info("msg_a1", 100000000200), "parts": [{"type": "text", "text": "I read."}, {
        "type": "tool", "tool": "read", "callID": "toolu_1", "state": {"status": "completed", "input": {"filePath": "notes"}, "output": "the tide is 7.1"}}]}
    tool = {"description": "Reads one of our files.", "parameters": {"type": "object"}}
    lines = []

    def add(hook, at, given, output=None):
        lines.append({"at": 100000000000 + at, "hook": hook, "input": given, "output": output})

    add("init", 0, {"directory": "/home/me/project"})
    add("event", 1, {"type": "session.created", "properties": {"info": {"id": ses, "version": "1.18.33"}}})
    add("event", 201, {"type": "message.updated", "properties": {"info": info("msg_a1", 100000000200, False)}})
    add("experimental.chat.system.transform", 210, {"sessionID": ses, "model": dict(model, id="claude-haiku-4-5")}, {"system": ["Name the talk."]})
    add("chat.params", 211, {"sessionID": ses, "agent": "title", "provider": secret}, {})
    for at, messages in [(300, [user]), (1300, [user, first])]:
        add("tool.definition", at, {"toolID": "read"}, tool)
        add("experimental.chat.messages.transform", at + 1, {}, {"messages": messages})
        add("experimental.chat.system.transform", at + 2, {"sessionID": ses, "model": model}, {"system": ["You keep the tide table.\n" + RULES, "Our plugin."]})
        add("chat.params", at + 3, {"sessionID": ses, "agent": "build", "provider": secret}, {})
        if at == 300:
            add("event", 1250, {"type": "message.updated", "properties": {"info": info("msg_a2", 100000001250, False)}})
    add("event", 2000, {"type": "message.updated", "properties": {"info": info("msg_a2", 100000001250, True, (1, 15, 3031, 148))}})
    case.lines("plugin.jsonl", lines)
    case.json("export.json", {"info": {"id": ses, "version": "1.18.33", "directory": "/home/me/project"}, "messages": [
        user, first, {"info": info("msg_a3", 100000005000, True, (1, 12, 3489, 257)), "parts": []}]})


def pi():
    case = Case("pi/extension")
    lines = []
    messages = [{"role": "user", "content": [{"type": "text", "text": "Read the notes.", "cache_control": MARK}]}]
    shared = "[circular]"
    for number in (1, 2):
        payload = {"model": "claude-sonnet-4-5", "messages": messages, "betas": [], "max_tokens": 10,
                   "system": [{"type": "text", "text": "You keep the tide table.", "cache_control": shared}], "tools": [dict(TOOLS[0], cache_control=shared)]}
        at = 1794927413000 + 1000 * number
        lines.append({"at": at, "hook": "before_provider_headers", "event": {"headers": {"x-api-key": "sk-ant-api03-our-secret"}}})
        lines.append({"at": at + 1, "hook": "before_provider_request", "event": {"type": "before_provider_request", "payload": payload},
                      "ctx": {"cwd": "/home/me/project", "sessionId": "pi-1"}})
        answer = {"role": "assistant", "content": [], "api": "anthropic-messages", "provider": "anthropic", "model": "claude-sonnet-4-5",
                  "usage": {"input": 1, "output": 36, "cacheRead": 1500 * (number - 1), "cacheWrite": 1503, "cacheWrite1h": 0},
                  "timestamp": at + 2, "responseId": f"msg_{number}"}
        lines.append({"at": at + 9, "hook": "message_end", "event": {"type": "message_end", "message": answer}})
        lines.append({"at": at + 10, "hook": "turn_end", "event": {"type": "turn_end"}})
    case.lines("ext.jsonl", lines)
    session = [{"type": "session", "version": 3, "id": "pi-1", "timestamp": "2026-11-17T14:56:53Z", "cwd": "/home/me/project"},
               {"type": "message", "id": "e0", "message": {"role": "system", "content": "", "sections": {"project_context": RULES, "tools": "- read"}}},
               {"type": "message", "id": "e1", "message": dict(answer, responseId="msg_3", timestamp=1794927420000)},
               {"type": "message", "id": "e2", "message": answer}]
    case.lines("sessions/--home-me-project--/2026_pi-1.jsonl", session)


def blob(value):
    text = compact(value)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest(), {"kind": "json", "bytes": len(text), "payload": value}


def claude_tap():
    case = Case("claude-tap/bundle")
    messages, answer, used = TURNS[0]
    body = wire(messages)
    blobs = dict([blob(TOOLS), blob(body["messages"][0])])
    ref = lambda value: {"__claude_tap_blob_ref__": {"version": 1, "kind": "json", "hash": blob(value)[0], "bytes": 9}}

    def record(number, body, path="/v1/messages?beta=true", method="POST"):
        return {"timestamp": f"2026-11-17T14:57:0{number}.488710+00:00", "request_id": f"req_own{number}", "turn": number,
                "request": {"method": method, "path": path, "headers": {"User-Agent": "claude-cli/2.1.326 (external, sdk-cli)", "x-api-key": "sk-ant-api03...",
                            "X-Claude-Code-Session-Id": SESSION, "anthropic-version": "2023-06-01"}, "body": body},
                "response": {"status": 200, "headers": {"Request-Id": f"req_{number}"}, "body": reply(number, answer["content"], used)},
                "upstream_base_url": "https://me:key@api.example.com/x"}

    compacted = dict(body, tools=ref(TOOLS), messages=[ref(body["messages"][0])])
    wrap = lambda one: {"__claude_tap_compact_record__": {"version": 1, "encoding": "json-blob-ref", "refs": []}, "record": one}
    records = [wrap(record(1, compacted)), wrap(record(2, dict(compacted, tools=ref("lost")))), wrap(record(3, None, "/api/hello", "HEAD"))]
    case.text("session-1.ctap.json", json.dumps({"__claude_tap_compact_trace__": {"version": 1}, "records": records, "blobs": blobs}))
    stream = "event: message_start\ndata: " + compact({"type": "message_start", "message": reply(4, [], used)}) + "\n\n"
    plain = record(4, body)
    plain["response"]["body"] = stream
    del plain["response"]["headers"]["Request-Id"]
    case.lines("session-2.jsonl", [plain])


def jsonl():
    case = Case("jsonl/lines")
    chat = {"model": "gpt-x", "messages": [{"role": "user", "content": "Hello"}]}
    stream = "data: {\"id\":\"chatcmpl-1\",\"choices\":[]}\n\ndata: {\"id\":\"chatcmpl-1\",\"model\":\"gpt-x\",\"choices\":[],\"usage\":{\"prompt_tokens\":90,\"completion_tokens\":5,\"prompt_tokens_details\":{\"cached_tokens\":64}}}\n\ndata: [DONE]\n\n"
    case.lines("calls.jsonl", [
        {"at": "2026-11-17T15:00:00Z", "conversation": "c-1", "request": chat, "response": stream},
        {"at": 1794927601, "conversation": "c-1", "request": compact(chat), "headers": {"Authorization": "Bearer our-secret", "user-agent": "opencode/1.18"},
         "response": {"id": "chatcmpl-2", "usage": {"prompt_tokens": 90, "completion_tokens": 5}}},
        {"at": 1794927500, "request": {"messages": []}, "response": None},
        {"at": 1794927700, "id": "mine", "request": "no object", "usage": {"input_tokens": 5, "cache_read_input_tokens": 6, "cache_creation_input_tokens": 7}},
        {"hello": "world"},
        {"at": 1794927800, "request": {"contents": [], "model": "gemini-x"}, "response": [{"usageMetadata": {"promptTokenCount": 9}, "responseId": "g-1"}]},
    ])
    case.json("proxy.har", {"log": {"entries": [
        {"startedDateTime": "2026-11-17T16:00:00.000Z", "request": {"method": "POST", "url": "https://api.example.com/v1/messages?beta=true",
         "headers": [{"name": "x-api-key", "value": "sk-ant-api03-our-secret"}, {"name": "X-Claude-Code-Session-Id", "value": SESSION}],
         "postData": {"mimeType": "application/json", "text": compact(wire(TURNS[0][0]))}},
         "response": {"headers": [{"name": "request-id", "value": "req_h"}], "content": {"encoding": "base64", "text": __import__("base64").b64encode(
             compact(reply(1, [], usage(1, 2, 3, 4))).encode()).decode()}}},
        {"request": {"method": "GET", "url": "https://example.com/logo.png"}, "response": {}}]}})


for make in [claude_raw, claude_events, claude_content, claude_transcript, claude_joined, codex_trace, codex_rollouts, opencode, pi, claude_tap, jsonl]:
    make()
