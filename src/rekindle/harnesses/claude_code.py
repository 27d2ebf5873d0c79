"""Claude Code: what its hooks say, as events.

Seen with 2.1.325. All payloads carry session_id, transcript_path, cwd and hook_event_name; a
tool's own id stands behind its input, so that it survives when a large payload is cut.
"""

import shlex
from collections.abc import Sequence
from typing import Any

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

NAME = "claude-code"
PROMPT_CHARACTERS = 8_000
"""What is kept of a prompt: enough to say again after a compaction what was asked."""


def read_hook(line: HookLine) -> AnyEvent | None:
    """The fact that a hook reports; None where it reports nothing that we keep."""
    fields = line.fields()
    session = _text(fields.get("session_id"))
    if not STABLE_ID.match(session):
        raise DocumentError("hook payload", "names no session")
    match line.event:
        case "SessionStart":
            return SessionStarted(
                ts=line.ts,
                session=session,
                harness=NAME,
                source=line.source or one_line(_text(fields.get("source")), 40),
                launch=line.launch,
                transcript=one_line(_text(fields.get("transcript_path"))),
            )
        case "SessionEnd":
            reason = one_line(_text(fields.get("reason")), 80)
            return SessionEnded(ts=line.ts, session=session, reason=reason)
        case "UserPromptSubmit":
            prompt = _text(fields.get("prompt"))[:PROMPT_CHARACTERS]
            return PromptSubmitted(ts=line.ts, session=session, text=prompt)
        case "PreCompact":
            trigger = one_line(_text(fields.get("trigger")), 40)
            return SessionCompacted(ts=line.ts, session=session, trigger=trigger)
        case "PostToolUse" | "PostToolUseFailure":
            return Heartbeat(
                ts=line.ts,
                session=session,
                tool=one_line(_text(fields.get("tool_name")), 80),
                call=one_line(_text(fields.get("tool_use_id")), 80),
            )
        case _:
            return None


def _text(value: object) -> str:
    """A payload's text; a lone surrogate that JSON let through could not be written again."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""


_SOURCES = ("startup", "resume", "clear", "compact", "fork")
_TIMEOUT_SECONDS = 10


def hooks(
    program: Sequence[str], *, supervised: bool, folder: str = ""
) -> dict[str, list[dict[str, Any]]]:
    """The hooks of its settings; a person's own session needs no brake."""

    def entry(event: str, matcher: str = "") -> dict[str, Any]:
        words = [*program, NAME, f"{event}:{matcher}" if matcher else event]
        # Python ends with 2 where its program is gone, and 2 blocks prompts and compactions.
        command = f"{shlex.join([*words, *([folder] * bool(folder))])} || true"
        handler = {"type": "command", "command": command, "timeout": _TIMEOUT_SECONDS}
        return {"matcher": matcher, "hooks": [handler]}

    events = ["SessionEnd", "UserPromptSubmit", "PreCompact", "PostToolUse", "PostToolUseFailure"]
    events += ["PostToolBatch"] * supervised
    return {
        "SessionStart": [entry("SessionStart", source) for source in _SOURCES],
        **{event: [entry(event)] for event in events},
    }
