"""The normal form of a transcript: turns, whichever CLI has written them down.

A harness makes passages of a line of its CLI's transcript. `Narration` puts them together to turns:
what a person asked, what the agent said and did and what came of it, what the CLI did by itself.
Turns are numbered from 1 and keep their number, however often a transcript is read.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Literal

import msgspec

from rekindle.documents.launches.cli_output import (
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
"""`open`: nothing came of it yet; `unknown`: the transcript goes on without having told."""


class PromptText(msgspec.Struct, frozen=True):
    """Somebody has asked for something."""

    text: str


class ToolResult(msgspec.Struct, frozen=True):
    """What a tool call gave; its text and whether it went well may be told apart."""

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
    """A piece of a turn, as a line of a transcript has it."""

    what: PassageContent
    at: str = ""
    """When, as the CLI writes it."""
    message: str = ""
    """The answer that it is a piece of; empty where the CLI does not say."""
    thread: str = ""
    """The sub-agent whose it is; empty: the main thread."""
    anew: bool = False
    """Its message is told again, whole, with this as its first piece."""


class SubagentTranscripts(msgspec.Struct, frozen=True):
    """Where a session's sub-agents have transcripts of their own."""

    folder: str
    name: str = "*.jsonl"
    """The pattern of their names."""
    deep: bool = False
    """They may be in folders of that one."""
    sign: str = ""
    """What the first line of theirs holds, where others fit the pattern too."""
    begins: Callable[[bytes], bytes] | None = None
    """Where theirs begin with a copy of the session's: what their first line says that the first
    line holds that is their own; empty: all are."""


class ToolCall(msgspec.Struct, frozen=True):
    tool: str
    about: str
    result: CallResult
    shown: str = ""
    """What it gave."""


class Turn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    number: int
    who: Speaker
    at: str = ""
    thread: str = ""
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    read: int = 0
    """How much the model was given for it, in tokens."""
    written: int = 0
    model: str = ""
    compacted: bool = False
    """The CLI has put a summary in the place of all that was before."""

    def without_secrets(self, redacted: Callable[[str], str]) -> "Turn":
        """The turn as it may be kept: redacted first, and only then cut to its size."""
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
    """Where to read on: at the first turn to which something may still be added."""

    offset: int = 0
    number: int = 1
    compaction: str = ""
    """The last one that was told: a CLI may tell of it again."""


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
    """The beginning and more of the end."""
    if len(text) <= limit:
        return text
    head = int(limit * SHOWN_HEAD_SHARE)
    return text[:head] + CUT_MARK + text[-(limit - head) :]


def limit_tool_output(turn: Turn, shown: int) -> Turn:
    """The turn with no more of what each tool gave."""
    if all(len(call.shown) <= shown for call in turn.calls):
        return turn
    calls = (
        msgspec.structs.replace(call, shown=cut_middle(call.shown, shown) if shown else "")
        for call in turn.calls
    )
    return msgspec.structs.replace(turn, calls=tuple(calls))


def render(turn: Turn) -> str:
    """A turn for people, and for models: whose it is in a line, then what was said and done."""
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
    """Whose it is, and how large."""
    whose = f"sub-agent {turn.thread}" if turn.thread else turn.who
    sizes = f" ({turn.model or 'model'}: {turn.read:,} read, {turn.written:,} written)"
    return f"{whose}{sizes if turn.read else ''}"


def render_thread_name(thread: str) -> str:
    """The name of a sub-agent, which the CLI's file may give as any text."""
    if not thread or STABLE_ID.match(thread):
        return thread
    return f"thread-{hash_bytes(thread.encode('utf-8', 'replace'))[:8]}"


def normalize_time(at: str) -> str:
    """A time as CLIs write it, in UTC; empty, where it is none."""
    try:
        found = datetime.fromisoformat(at)
        aware = found if found.tzinfo else found.replace(tzinfo=UTC)
        return aware.astimezone(UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError):
        return ""


def _render_minute(at: str) -> str:
    """The minute of an instant as CLIs write it; nothing, where it is none."""
    day, _, time = at.partition("T")
    return f"{day} {time[:5]} " if time else ""
