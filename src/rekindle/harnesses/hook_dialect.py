"""Parse Claude Code's hook payloads, whose format Codex and Gemini CLI largely share.

All payloads have session_id, transcript_path, cwd and hook_event_name. A tool call's id comes after
the call's input, and is not lost when a large payload is truncated.
"""

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from rekindle.documents.events import (
    AnyEvent,
    Heartbeat,
    PromptSubmitted,
    SessionCompacted,
    SessionEnded,
    SessionStarted,
)
from rekindle.documents.hooks.hook_record import HookRecord
from rekindle.errors import DocumentError
from rekindle.formats import json_codec
from rekindle.formats.identifiers import (
    STABLE_ID,
    to_one_line,
)
from rekindle.harnesses.untrusted_json import (
    to_text,
)
from rekindle.thresholds.hook_limits import HOOK_PROMPT_CHARACTERS, HOOK_WORD_CHARACTERS

HookFact = Literal["started", "ended", "asked", "compacted", "worked"]
HOOK_FACTS: dict[str, HookFact] = {
    "SessionStart": "started",
    "SessionEnd": "ended",
    "UserPromptSubmit": "asked",
    "PreCompact": "compacted",
    "PostToolUse": "worked",
    "PostToolUseFailure": "worked",
}
"""Meanings of the event names that most CLIs share."""


def render_command_line(program: Sequence[str], harness: str, event: str, folder: str) -> str:
    """Return the shell command of an event's hook."""
    # Python exits with 2 if the hook's program is missing, which would block prompts and
    # compactions.
    return f"{shlex.join([*program, harness, event, *([folder] if folder else [])])} || true"


def make_handler(command: str, seconds: int, **more: Any) -> dict[str, Any]:
    return {"type": "command", "command": command, "timeout": seconds, **more}


def read_hook_record(
    line: HookRecord,
    harness: str,
    facts: Mapping[str, HookFact] = HOOK_FACTS,
    *,
    transcripts: str,
    prompt_id: str = "prompt_id",
) -> AnyEvent | None:
    """Return the event that a hook reported, or None if Rekindle does not record such events.

    `facts` maps the event names in hook commands to their meanings. `transcripts` is a pattern for
    the paths of session files. `prompt_id` is the field that identifies a prompt if two hooks
    report it.
    """
    fields = line.fields()
    session = to_text(fields.get("session_id"))
    if not STABLE_ID.match(session):
        raise DocumentError("hook payload", "does not name a session")

    def read_word(field: str, most: int) -> str:
        return to_one_line(to_text(fields.get(field)), most)

    match facts.get(line.event):
        case "started":
            return SessionStarted(
                ts=line.ts,
                session=session,
                harness=harness,
                source=line.source or read_word("source", HOOK_WORD_CHARACTERS),
                launch=line.launch,
                process=line.process,
                transcript=_find_transcript_path(
                    to_text(fields.get("transcript_path")), session, transcripts
                ),
                visitor=line.visitor,
            )
        case "ended":
            reason = read_word("reason", HOOK_WORD_CHARACTERS)
            return SessionEnded(ts=line.ts, session=session, reason=reason, visitor=line.visitor)
        case "asked" if not fields.get("agent_id"):  # not a sub-agent, which its parent prompts
            return PromptSubmitted(
                ts=line.ts,
                session=session,
                text=to_text(fields.get("prompt"))[:HOOK_PROMPT_CHARACTERS],
                call=read_word(prompt_id, HOOK_WORD_CHARACTERS) or _make_identity(line, fields),
                visitor=line.visitor,
            )
        case "compacted":
            return SessionCompacted(
                ts=line.ts,
                session=session,
                trigger=read_word("trigger", HOOK_WORD_CHARACTERS),
                visitor=line.visitor,
            )
        case "worked":
            return Heartbeat(
                ts=line.ts,
                session=session,
                tool=read_word("tool_name", HOOK_WORD_CHARACTERS),
                call=read_word("tool_use_id", HOOK_WORD_CHARACTERS) or _make_identity(line, fields),
                visitor=line.visitor,
            )
        case _:
            return None


def _make_identity(line: HookRecord, payload: dict[str, Any]) -> str:
    """Return an id that is the same if two hooks report the same event.

    If the payload has a timestamp, the id is the payload's hash, because all hooks for an event get
    the same bytes.
    """
    return json_codec.hash_bytes(line.payload)[:16] if payload.get("timestamp") else ""


def _find_transcript_path(path: str, session: str, pattern: str) -> str:
    """Return the real path of a session's transcript, or "" if it is not where it should be.

    An agent could forge a report to make Rekindle read any of the user's files and archive it in
    the agent's workspace. The resolved path must therefore match the pattern too, and links created
    later are not followed. Links in parent folders, such as the user's home, are resolved here.
    """
    path = to_one_line(path)
    names = {"session": re.escape(session), "short": re.escape(session[:8])}
    form = pattern.format(**names)
    if not re.fullmatch(form, path) or "/../" in path:
        return ""
    real = os.path.realpath(path)
    return real if re.fullmatch(form, real) else ""
