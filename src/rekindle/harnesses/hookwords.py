"""What hooks report, in our words: the CLIs have taken their payloads from one another."""

from collections.abc import Mapping
from typing import Any, Literal

from rekindle.documents import jsontext
from rekindle.documents.event import (
    AnyEvent,
    Heartbeat,
    PromptSubmitted,
    SessionCompacted,
    SessionEnded,
    SessionStarted,
)
from rekindle.documents.hookline import HookLine
from rekindle.documents.identity import STABLE_ID, one_line
from rekindle.errors import DocumentError
from rekindle.harnesses import fields

Fact = Literal["started", "ended", "asked", "compacted", "worked"]

PROMPT_CHARACTERS = 8_000
"""What is kept of a prompt: enough to say again after a compaction what was asked."""


def read(line: HookLine, name: str, events: Mapping[str, Fact]) -> AnyEvent | None:
    """The fact that a hook of the harness `name` reports; None where we keep nothing of it.

    `events` says what the words mean that stand in its hooks' commands.
    """
    told = line.fields()
    session = fields.text(told.get("session_id"))
    if not STABLE_ID.match(session):
        raise DocumentError("hook payload", "names no session")
    match events.get(line.event):
        case "started":
            return SessionStarted(
                ts=line.ts,
                session=session,
                harness=name,
                source=line.source or one_line(fields.text(told.get("source")), 40),
                launch=line.launch,
                process=line.process,
                transcript=one_line(fields.text(told.get("transcript_path"))),
                visitor=line.visitor,
            )
        case "ended":
            reason = one_line(fields.text(told.get("reason")), 80)
            return SessionEnded(ts=line.ts, session=session, reason=reason, visitor=line.visitor)
        case "asked":
            return PromptSubmitted(
                ts=line.ts,
                session=session,
                text=fields.text(told.get("prompt"))[:PROMPT_CHARACTERS],
                call=_identity(line, told, "prompt_id"),
                visitor=line.visitor,
            )
        case "compacted":
            trigger = one_line(fields.text(told.get("trigger")), 40)
            return SessionCompacted(
                ts=line.ts, session=session, trigger=trigger, visitor=line.visitor
            )
        case "worked":
            return Heartbeat(
                ts=line.ts,
                session=session,
                tool=one_line(fields.text(told.get("tool_name")), 80),
                call=_identity(line, told, "tool_use_id"),
                visitor=line.visitor,
            )
        case _:
            return None


def _identity(line: HookLine, told: dict[str, Any], key: str) -> str:
    """What two hooks that report the same thing have in common, and nothing else has.

    Where the CLI gives it no id, the payload does, if it says when: all hooks of one event are
    told in the same bytes.
    """
    if given := one_line(fields.text(told.get(key)), 80):
        return given
    return jsontext.fingerprint(line.payload)[:16] if told.get("timestamp") else ""
