"""The normal form of a transcript: turns, whichever CLI has written them down.

A harness makes passages of a line of its CLI's transcript. `Narration` puts them together to turns:
what a person asked, what the agent said and did and what came of it, what the CLI did by itself.
Turns are numbered from 1 and keep their number, however often a transcript is read.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Literal

import msgspec

from rekindle.documents.identity import STABLE_ID, one_line
from rekindle.documents.jsontext import fingerprint
from rekindle.documents.launch import Called, Compacted, Said, Used, Warned
from rekindle.thresholds.texts import (
    ABOUT_CHARACTERS,
    SHOWN_CHARACTERS,
    TEXT_CHARACTERS,
)

CUT = "\n[…]\n"

Who = Literal["person", "agent", "cli"]
Result = Literal["ok", "failed", "open", "unknown"]
"""`open`: nothing came of it yet; `unknown`: the transcript goes on without having told."""


class Asked(msgspec.Struct, frozen=True):
    """Somebody has asked for something."""

    text: str


class Gave(msgspec.Struct, frozen=True):
    """What a tool call gave; its text and whether it went well may be told apart."""

    call: str
    ok: bool | None = None
    text: str = ""


What = Asked | Said | Called | Gave | Used | Compacted | Warned


class Passage(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of a turn, as a line of a transcript has it."""

    what: What
    at: str = ""
    """When, as the CLI writes it."""
    message: str = ""
    """The answer that it is a piece of; empty where the CLI does not say."""
    thread: str = ""
    """The sub-agent whose it is; empty: the main thread."""
    anew: bool = False
    """Its message is told again, whole, with this as its first piece."""


class Asides(msgspec.Struct, frozen=True):
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


class Call(msgspec.Struct, frozen=True):
    tool: str
    about: str
    result: Result
    shown: str = ""
    """What it gave."""


class Turn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    number: int
    who: Who
    at: str = ""
    thread: str = ""
    text: str = ""
    calls: tuple[Call, ...] = ()
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
                about=one_line(redacted(call.about), ABOUT_CHARACTERS),
                shown=_shortened(call.shown, redacted),
            )
            for call in self.calls
        ]
        return msgspec.structs.replace(
            self,
            text=beginning(redacted(self.text), TEXT_CHARACTERS),
            calls=tuple(calls),
            model=redacted(self.model),
            thread=thread_name(redacted(self.thread)),
        )


class Cursor(msgspec.Struct, frozen=True):
    """Where to read on: at the first turn to which something may still be added."""

    offset: int = 0
    number: int = 1
    compaction: str = ""
    """The last one that was told: a CLI may tell of it again."""


def beginning(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[:limit].rstrip() + CUT.rstrip()


def _shortened(shown: str, redacted: Callable[[str], str]) -> str:
    head, cut, tail = shown.partition(CUT)
    head, tail = redacted(head), redacted(tail)
    if not cut:
        return both_ends(head, SHOWN_CHARACTERS)
    begins = SHOWN_CHARACTERS * 3 // 8
    return head[:begins] + CUT + tail[-(SHOWN_CHARACTERS - begins) :]


def both_ends(text: str, limit: int) -> str:
    """The beginning and more of the end."""
    if len(text) <= limit:
        return text
    head = limit * 3 // 8
    return text[:head] + CUT + text[-(limit - head) :]


def showing(turn: Turn, shown: int) -> Turn:
    """The turn with no more of what each tool gave."""
    if all(len(call.shown) <= shown for call in turn.calls):
        return turn
    calls = (
        msgspec.structs.replace(call, shown=both_ends(call.shown, shown) if shown else "")
        for call in turn.calls
    )
    return msgspec.structs.replace(turn, calls=tuple(calls))


def render(turn: Turn) -> str:
    """A turn for people, and for models: whose it is in a line, then what was said and done."""
    lines = [f"[{turn.number}] {_time(turn.at)}{head(turn)}"]
    if turn.compacted:
        lines.append("    the conversation so far was compacted")
    lines += [f"    {line}" for line in turn.text.splitlines()]
    for call in turn.calls:
        about = one_line(call.about, ABOUT_CHARACTERS)
        lines.append(f"    > {call.tool} {about}".rstrip() + f": {call.result}")
        lines += [f"        {line}" for line in call.shown.splitlines()]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def head(turn: Turn) -> str:
    """Whose it is, and how large."""
    whose = f"sub-agent {turn.thread}" if turn.thread else turn.who
    sizes = f" ({turn.model or 'model'}: {turn.read:,} read, {turn.written:,} written)"
    return f"{whose}{sizes if turn.read else ''}"


def thread_name(thread: str) -> str:
    """The name of a sub-agent, which the CLI's file may give as any text."""
    if not thread or STABLE_ID.match(thread):
        return thread
    return f"thread-{fingerprint(thread.encode('utf-8', 'replace'))[:8]}"


def instant(at: str) -> str:
    """A time as CLIs write it, in UTC; empty, where it is none."""
    try:
        found = datetime.fromisoformat(at)
        aware = found if found.tzinfo else found.replace(tzinfo=UTC)
        return aware.astimezone(UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError):
        return ""


def _time(at: str) -> str:
    """The minute of an instant as CLIs write it; nothing, where it is none."""
    day, _, time = at.partition("T")
    return f"{day} {time[:5]} " if time else ""
