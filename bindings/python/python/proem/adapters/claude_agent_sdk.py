"""The Claude Agent SDK: options whose system prompt comes from a conversation of proem.

async for message in query(prompt="Why does the build fail?", options=options(conversation)):
    print(message)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from claude_agent_sdk import ClaudeAgentOptions

if TYPE_CHECKING:
    from .. import Conversation


def options(conversation: Conversation, /, **settings: Any) -> ClaudeAgentOptions:
    """Return options with the frozen prompt. The agent takes it once, for all calls of its session.

    `settings` are those of `ClaudeAgentOptions`. `setting_sources` is empty unless it is given, so that the agent does not
    read the instruction files that are in the prompt already.
    """
    turn = conversation.turn()
    prompt = "\n\n".join(turn.carriers[name] for name in ("system", "developer") if name in turn.carriers)
    return ClaudeAgentOptions(**{"system_prompt": prompt, "setting_sources": [], **settings})
