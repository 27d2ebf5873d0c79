"""What a session is doing, according to its transcript."""

from collections.abc import Iterable, Sequence

import msgspec

from rekindle.documents.launches.launch_types import AssistantText, ToolCallStarted
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
    asked_at: str = ""
    """Time of the last prompt, in the format that the CLI uses."""


class TranscriptLine(msgspec.Struct, frozen=True):
    """A line of a transcript."""

    passages: Sequence[Passage]
    is_over: bool | None = None
    """Whether the agent's turn is over after this line; None if the CLI does not say so."""


def read_state(lines: Iterable[TranscriptLine]) -> SessionState:
    """Return what a session is doing, from all lines of its transcript.

    Passages of sub-agents are ignored. If the CLI does not say whether a turn is over, it is over
    after a text without open calls.
    """
    prompts, first, asked_at, is_working = 0, "", "", False
    calls: dict[str, str] = {}
    for line in lines:
        for passage in line.passages:
            if passage.thread:
                continue
            match passage.what:
                case PromptText(text):
                    prompts, first, asked_at = prompts + 1, first or text, passage.at
                    calls = {}  # a call without a result was interrupted before this prompt
                    is_working = True
                case ToolCallStarted() as call:
                    calls[call.call], is_working = f"{call.tool}: {call.about}".strip(": "), True
                case ToolResult() if passage.what.call in calls:
                    del calls[passage.what.call]
                    is_working = True
                case AssistantText(text) if text.strip():
                    is_working = bool(calls)
                case _:
                    pass
        if line.is_over is not None:
            is_working = not line.is_over
            calls = {} if line.is_over else calls
    return SessionState(prompts, first, is_working, next(iter(calls.values()), ""), asked_at)
