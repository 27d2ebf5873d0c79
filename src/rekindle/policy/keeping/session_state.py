"""What a session is doing, according to its transcript."""

from collections.abc import Iterable

import msgspec

from rekindle.documents.launches.launch_types import AssistantText, ToolCallStarted, UsageReport
from rekindle.documents.transcripts.turns import Passage, PromptText, ToolResult


class SessionState(msgspec.Struct, frozen=True):
    """The state at the end of a transcript."""

    prompts: int = 0
    first: str = ""
    """The first prompt."""
    is_working: bool = False
    """Whether the agent's turn is not over: its last message is not an answer."""
    call: str = ""
    """The tool call that has no result yet, as text; empty if there is none."""


def read_state(passages: Iterable[Passage]) -> SessionState:
    """Return what a session is doing, from all passages of its transcript.

    Passages of sub-agents are ignored. A CLI that writes a call only after the call has finished is
    working as long as its last message has no text.
    """
    prompts, first, is_working = 0, "", False
    calls: dict[str, str] = {}
    for passage in passages:
        if passage.thread:
            continue
        match passage.what:
            case PromptText(text):
                prompts, first, is_working = prompts + 1, first or text, True
                calls = {}  # a call without a result was interrupted before this prompt
            case ToolCallStarted() as call:
                calls[call.call], is_working = f"{call.tool}: {call.about}".strip(": "), True
            case ToolResult():
                calls.pop(passage.what.call, None)
                is_working = True
            case AssistantText(text) if text.strip():
                is_working = bool(calls)
            case UsageReport() | _:
                pass
    return SessionState(prompts, first, is_working, next(iter(calls.values()), ""))
