"""Turns: a transcript in a form that does not depend on the CLI that wrote it.

A harness splits each line of its CLI's transcript into passages. `TurnBuilder` assembles them into
turns: a person's prompts, the agent's answers and tool calls, and the CLI's own actions. Turns are
numbered from 1, and reading a transcript again gives the same numbers.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Literal

import msgspec

from rekindle.documents.launches.launch_types import (
    AssistantText,
    CompactionReport,
    ToolCallStarted,
    UsageReport,
    WarningReport,
)
from rekindle.formats.identifiers import (
    STABLE_ID,
    to_one_line,
)
from rekindle.formats.json_codec import hash_bytes
from rekindle.thresholds.texts import (
    ABOUT_CHARACTERS,
    SHOWN_CHARACTERS,
    SHOWN_HEAD_SHARE,
    TEXT_CHARACTERS,
)

CUT_MARK = "\n[…]\n"

Speaker = Literal["person", "agent", "cli"]
CallResult = Literal["ok", "failed", "open", "unknown"]
"""`open`: no result yet. `unknown`: the transcript continues without a result."""


class PromptText(msgspec.Struct, frozen=True):
    """A prompt, from a person or a program."""

    text: str


class ToolResult(msgspec.Struct, frozen=True):
    """The result of a tool call. A CLI may report its text and its success separately."""

    call: str
    ok: bool | None = None
    text: str = ""


PassageContent = (
    PromptText
    | AssistantText
    | ToolCallStarted
    | ToolResult
    | UsageReport
    | CompactionReport
    | WarningReport
)


class Passage(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a turn, from one line of a transcript."""

    what: PassageContent
    at: str = ""
    """Time in the format that the CLI uses."""
    message: str = ""
    """Id of the answer that the passage belongs to; empty if the CLI does not report ids."""
    thread: str = ""
    """Name of the sub-agent; empty for the main thread."""
    repeats_message: bool = False
    """Whether the CLI repeats the whole message, starting with this passage."""


class SubagentTranscripts(msgspec.Struct, frozen=True):
    """Location of the transcripts of a session's sub-agents."""

    folder: str
    name: str = "*.jsonl"
    """Glob pattern for the names of the transcript files."""
    deep: bool = False
    """Whether the transcripts may be in subfolders."""
    sign: str = ""
    """Text in the first line of each transcript, needed if the pattern also matches other files."""
    begins: Callable[[bytes], bytes] | None = None
    """Function for transcripts that start with a copy of the session's transcript. It takes the
    first line, and returns text from the first line after the copy, or "" if there is no copy.
    """


class ToolCall(msgspec.Struct, frozen=True):
    tool: str
    about: str
    result: CallResult
    shown: str = ""
    """Output of the tool."""


class Turn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    number: int
    who: Speaker
    at: str = ""
    thread: str = ""
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    read: int = 0
    """Number of tokens that the model read."""
    written: int = 0
    model: str = ""
    compacted: bool = False
    """Whether the CLI replaced everything before this turn with a summary."""

    def without_secrets(self, redacted: Callable[[str], str]) -> "Turn":
        """Return the turn for the archive, redacted first and then shortened."""
        calls = [
            msgspec.structs.replace(
                call,
                tool=redacted(call.tool),
                about=to_one_line(redacted(call.about), ABOUT_CHARACTERS),
                shown=_shorten_shown(call.shown, redacted),
            )
            for call in self.calls
        ]
        return msgspec.structs.replace(
            self,
            text=cut_end(redacted(self.text), TEXT_CHARACTERS),
            calls=tuple(calls),
            model=redacted(self.model),
            thread=render_thread_name(redacted(self.thread)),
        )


class TranscriptCursor(msgspec.Struct, frozen=True):
    """Position from which to continue reading: the start of the first unfinished turn."""

    offset: int = 0
    number: int = 1
    compaction: str = ""
    """Id of the last compaction, used to ignore a second report of it."""


def cut_end(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[:limit].rstrip() + CUT_MARK.rstrip()


def _shorten_shown(shown: str, redacted: Callable[[str], str]) -> str:
    head, cut, tail = shown.partition(CUT_MARK)
    head, tail = redacted(head), redacted(tail)
    if not cut:
        return cut_middle(head, SHOWN_CHARACTERS)
    begins = int(SHOWN_CHARACTERS * SHOWN_HEAD_SHARE)
    return head[:begins] + CUT_MARK + tail[-(SHOWN_CHARACTERS - begins) :]


def cut_middle(text: str, limit: int) -> str:
    """Shorten a long text in the middle, and keep more of its end than of its start."""
    if len(text) <= limit:
        return text
    head = int(limit * SHOWN_HEAD_SHARE)
    return text[:head] + CUT_MARK + text[-(limit - head) :]


def limit_tool_output(turn: Turn, shown: int) -> Turn:
    """Return the turn with at most `shown` characters of each tool's output."""
    if all(len(call.shown) <= shown for call in turn.calls):
        return turn
    calls = (
        msgspec.structs.replace(call, shown=cut_middle(call.shown, shown) if shown else "")
        for call in turn.calls
    )
    return msgspec.structs.replace(turn, calls=tuple(calls))


def render(turn: Turn) -> str:
    """Render a turn as text for people and models: a heading, then its text and tool calls."""
    lines = [f"[{turn.number}] {_render_minute(turn.at)}{render_heading(turn)}"]
    if turn.compacted:
        lines.append("    the conversation so far was compacted")
    lines += [f"    {line}" for line in turn.text.splitlines()]
    for call in turn.calls:
        about = to_one_line(call.about, ABOUT_CHARACTERS)
        lines.append(f"    > {call.tool} {about}".rstrip() + f": {call.result}")
        lines += [f"        {line}" for line in call.shown.splitlines()]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def render_heading(turn: Turn) -> str:
    """Return the speaker and the size of a turn."""
    speaker = f"sub-agent {turn.thread}" if turn.thread else turn.who
    sizes = f" ({turn.model or 'model'}: {turn.read:,} read, {turn.written:,} written)"
    return f"{speaker}{sizes if turn.read else ''}"


def render_thread_name(thread: str) -> str:
    """Return a sub-agent's name, or a hash if the name may contain unsafe text."""
    if not thread or STABLE_ID.match(thread):
        return thread
    return f"thread-{hash_bytes(thread.encode('utf-8', 'replace'))[:8]}"


def normalize_time(at: str) -> str:
    """Convert a CLI's time to UTC, or return "" if it is not a time."""
    try:
        time = datetime.fromisoformat(at)
        aware = time if time.tzinfo else time.replace(tzinfo=UTC)
        return aware.astimezone(UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError):
        return ""


def _render_minute(at: str) -> str:
    """Return a CLI's time to the minute, or "" if it is not a time."""
    day, _, time = at.partition("T")
    return f"{day} {time[:5]} " if time else ""
