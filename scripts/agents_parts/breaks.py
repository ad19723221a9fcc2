"""Agents and the ways in which their caches are broken on purpose. `agent` runs the agent in the steps; versions are those
of `scripts/agents.toml`."""

import pathlib
import tomllib

RECIPES = tomllib.loads((pathlib.Path(__file__).parent.parent / "agents.toml").read_text())["agents"]

RULES = "Rules of the project. " + "Keep names short and explain every decision. " * 60 + "\n"

# A server of the Model Context Protocol with one tool.
MCP = """\
import json, sys

TOOL = {"name": "take_note", "description": "Keeps a note.", "inputSchema": {"type": "object", "properties": {}}}
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    version = message.get("params", {}).get("protocolVersion", "2025-06-18")
    info = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "notes", "version": "1"}}
    result = {"initialize": info, "tools/list": {"tools": [TOOL]}}.get(message["method"], {})
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


def agent(name, command, start, routes, scenarios, **more):
    recipe = RECIPES[name]
    env = {**{key: text for key, text in recipe.get("env", {}).items() if "{url}" not in text}, **more.pop("env", {})}
    return {"folder": name, "version": recipe["version"], "command": command, "start": start, "routes": routes,
            "env": env, "files": {**recipe.get("files", {}), **more.pop("files", {})}, "scenarios": scenarios, **more}  # fmt: skip


AGENTS = {
    "claude-code": agent(
        "claude-code",
        "claude",
        ["{bin}/node_modules/.bin/claude"],
        ["anthropic"],
        [
            {
                "name": "another system prompt",
                "steps": [
                    "agent -p hello --model claude-sonnet-5 --system-prompt-snapshot off --append-system-prompt 'Answer in English.'",
                    "agent -p again -c --model claude-sonnet-5 --system-prompt-snapshot off --append-system-prompt 'Answer in French.'",
                ],
                "expect": {"verdict": "system_changed", "after": "French"},
            },
            {
                "name": "a tool less",
                "steps": [
                    "agent -p hello --model claude-sonnet-5 --system-prompt-snapshot off",
                    "agent -p again -c --model claude-sonnet-5 --system-prompt-snapshot off --disallowedTools WebFetch",
                ],
                "expect": {"verdict": "tools_removed"},
            },
            {
                "name": "another model",
                "steps": ["agent -p hello --model claude-sonnet-5", "agent -p again -c --model claude-opus-5-5"],
                "expect": {"verdict": "model_changed"},
            },
        ],
        env={"IS_SANDBOX": "1", "ENABLE_TOOL_SEARCH": "false"},
        project={"CLAUDE.md": RULES},
    ),
    "codex": agent(
        "codex",
        "codex",
        ["{bin}/node_modules/.bin/codex"],
        ["openai"],
        [
            {
                "name": "another model",
                "steps": [
                    "agent exec --skip-git-repo-check -m gpt-5.2-codex hello",
                    "agent exec --skip-git-repo-check -m gpt-5.3-codex resume --last again",
                ],
                "expect": {"verdict": "model_changed"},
            },
            {
                "name": "a tool less",
                "steps": [
                    "agent exec --skip-git-repo-check -m gpt-5.2-codex hello",
                    "agent -c 'web_search=\"disabled\"' exec --skip-git-repo-check -m gpt-5.2-codex resume --last again",
                ],
                "expect": {"verdict": "tools_removed"},
            },
            {
                "name": "a new MCP server",
                "steps": [
                    "agent exec --skip-git-repo-check -m gpt-5.2-codex hello",
                    'agent -c \'mcp_servers.notes={command="python3",args=["mcp.py"]}\' exec --skip-git-repo-check -m gpt-5.2-codex resume --last again',
                ],
                "expect": {"verdict": "tools_added"},
            },
        ],
        env={"CODEX_API_KEY": "none"},
        project={"AGENTS.md": RULES, "mcp.py": MCP},
    ),
    "opencode": agent(
        "opencode",
        "opencode",
        ["{bin}/node_modules/.bin/opencode"],
        ["anthropic"],
        [
            {
                "name": "an edited AGENTS.md",
                "steps": [
                    "agent run --title t --model anthropic/claude-sonnet-4-5 hello",
                    "sed -i 's/names short/names long/' AGENTS.md",
                    "agent run -c --model anthropic/claude-sonnet-4-5 again",
                ],
                "expect": {"verdict": "system_changed", "owner": "instruction_file", "path": "AGENTS.md"},
            },
            {
                "name": "a tool less",
                "steps": [
                    "agent run --title t --model anthropic/claude-sonnet-4-5 hello",
                    'echo \'{"tools": {"webfetch": false}}\' > opencode.json',
                    "agent run -c --model anthropic/claude-sonnet-4-5 again",
                ],
                "expect": {"verdict": "tools_removed"},
            },
            {
                "name": "another model",
                "steps": [
                    "agent run --title t --model anthropic/claude-sonnet-4-5 hello",
                    "agent run -c --model anthropic/claude-opus-4-5 again",
                ],
                "expect": {"verdict": "model_changed"},
            },
        ],
        env={"ANTHROPIC_API_KEY": "none", "OPENCODE_DISABLE_AUTOUPDATE": "1"},
        project={"AGENTS.md": RULES},
    ),
    "pi": agent(
        "pi",
        "pi",
        ["{node}", "{bin}/package/dist/bundle/cli.js"],
        ["anthropic"],
        [
            {
                "name": "an edited AGENTS.md",
                "steps": [
                    "agent -p --provider anthropic --model claude-sonnet-4-5 hello",
                    "sed -i 's/names short/names long/' AGENTS.md",
                    "agent -p -c --provider anthropic --model claude-sonnet-4-5 again",
                ],
                "expect": {"verdict": "system_changed", "owner": "instruction_file", "path": "AGENTS.md"},
            },
            {
                "name": "tools less",
                "steps": [
                    "agent -p --provider anthropic --model claude-sonnet-4-5 hello",
                    "agent -p -c --provider anthropic --model claude-sonnet-4-5 --tools read,bash again",
                ],
                "expect": {"verdict": "tools_removed"},
            },
            {
                "name": "another model",
                "steps": [
                    "agent -p --provider anthropic --model claude-sonnet-4-5 hello",
                    "agent -p -c --provider anthropic --model claude-opus-4-5 again",
                ],
                "expect": {"verdict": "model_changed"},
            },
        ],
        env={"ANTHROPIC_API_KEY": "none"},
        files={".pi/agent/models.json": "{}"},
        project={"AGENTS.md": RULES},
    ),
    "gemini-cli": agent(
        "gemini-cli",
        "gemini",
        ["{bin}/node_modules/.bin/gemini", "--skip-trust"],
        ["gemini"],
        [
            {
                # GEMINI.md stands in the first message: with another one it is another conversation.
                "name": "an edited system prompt",
                "steps": [
                    "export GEMINI_SYSTEM_MD=$PWD/system.md",
                    "agent -m gemini-2.5-pro -p hello",
                    "sed -i 's/names short/names long/' system.md",
                    "agent -m gemini-2.5-pro --resume latest -p again",
                ],
                "expect": {"verdict": "system_changed", "after": "names long"},
            },
            {
                "name": "a tool less",
                "steps": [
                    "agent -m gemini-2.5-pro -p hello",
                    'sed -i \'s/"telemetry"/"tools": {"exclude": ["glob"]}, "telemetry"/\' ~/.gemini/settings.json',
                    "agent -m gemini-2.5-pro --resume latest -p again",
                ],
                "expect": {"verdict": "tools_removed"},
            },
            {
                "name": "another model",
                "steps": ["agent -m gemini-2.5-pro -p hello", "agent -m gemini-2.5-flash --resume latest -p again"],
                "expect": {"verdict": "model_changed"},
            },
        ],
        env={"GEMINI_API_KEY": "none"},
        project={"GEMINI.md": RULES, "system.md": RULES},
    ),
}
