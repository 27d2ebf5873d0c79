"""Claude Code: how it is started, what it says, how it ends; all in our words.

Seen with 2.1.325, and held to it by the recordings in tests/recordings. All hook payloads carry
session_id, transcript_path, cwd and hook_event_name; a tool's own id stands behind its input, so
that it survives when a large payload is cut.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from rekindle.documents import jsontext
from rekindle.documents.event import AnyEvent
from rekindle.documents.hookline import HookLine
from rekindle.documents.launch import (
    Called,
    Capabilities,
    Command,
    Compacted,
    Finished,
    Opened,
    Refused,
    Retried,
    Said,
    Seen,
    Start,
    Usage,
    Used,
)
from rekindle.errors import UsageError
from rekindle.harnesses import fields, hookwords
from rekindle.harnesses.claude_code_exit import classify

__all__ = [
    "CAN",
    "INSTALL",
    "NAME",
    "NEVER_PASSED_ON",
    "PASSED_ON",
    "classify",
    "command",
    "hooks",
    "read_hook",
    "read_stream",
    "told",
    "usage",
]

NAME = "claude-code"
CAN = Capabilities()
HOOKS_FILE = "hooks.json"
INSTALL = "install it: npm install -g @anthropic-ai/claude-code"
PASSED_ON = (
    "ANTHROPIC_",
    "CLAUDE_",
    "AWS_",
    "GOOGLE_",
    "CLOUD_ML_",
    "VERTEX_",
    "DISABLE_",
    "API_TIMEOUT_MS",
    "MAX_THINKING_TOKENS",
    "BASH_",
    "MCP_",
    "IS_SANDBOX",
)
"""How the variables begin that Claude Code is set up with."""
NEVER_PASSED_ON = ("CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_PID", "CLAUDE_PROJECT_DIR")
"""Those of a session that we may have been started from ourselves."""
HOOK_SECONDS = 10
"""When the CLI gives a hook up. Ours gives itself up long before; without a number of its own,
SessionEnd's was cancelled while the program was ending."""

_SESSION = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
"""In lower case: the id is also the name of the transcript, and the CLI looks for it by letter."""
_EVENTS = ("SessionEnd", "UserPromptSubmit", "PreCompact", "PostToolUse", "PostToolUseFailure")
_SOURCES = ("startup", "resume", "clear", "compact", "fork")
_BRAKE = "PostToolBatch"
_FACTS: dict[str, hookwords.Fact] = {
    "SessionStart": "started",
    "SessionEnd": "ended",
    "UserPromptSubmit": "asked",
    "PreCompact": "compacted",
    "PostToolUse": "worked",
    "PostToolUseFailure": "worked",
}
_SYNTHETIC = "<synthetic>"
"""The model of a message that the CLI wrote itself."""


def command(start: Start) -> Command:
    """What is to be started; every option is joined to its value, so that none passes for another.

    A persona's temperature has no effect: the CLI has no option for it. Its system prompt counts
    for a fresh session only: a session keeps the one that it began with, whatever a later launch
    says.
    """
    if not _SESSION.match(start.session):
        raise UsageError(
            f"{start.session[:80]!r} cannot be a session of Claude Code",
            hint="its sessions are named by a UUID, in lower case",
        )
    argv = [*(start.program or ("claude",)), "-p", "--output-format=stream-json", "--verbose"]
    argv.append(f"--{'resume' if start.resumes else 'session-id'}={start.session}")
    files = {}
    if start.hook:
        settings = {"hooks": hooks(start.hook, supervised=True)}
        files[HOOKS_FILE] = jsontext.encode_pretty(settings, HOOKS_FILE).decode()
        argv.append(f"--settings={start.scratch}/{HOOKS_FILE}")
    if permissions := start.persona.permissions:
        argv.extend(f"--allowedTools={rule}" for rule in permissions.allowed_tools or () if rule)
        argv.extend(f"--disallowedTools={rule}" for rule in permissions.deny or () if rule)
    if start.persona.system_prompt_file and not start.resumes:
        argv.append(f"--append-system-prompt-file={start.persona.system_prompt_file}")
    return Command(tuple(argv), files=files)


def hooks(program: Sequence[str], *, supervised: bool, folder: str = "") -> dict[str, Any]:
    """The `hooks` of a settings file: `program` is told of each event that we keep.

    A supervised session can also be stopped, between its model's turns.
    """

    def entry(event: str, **matcher: str) -> dict[str, Any]:
        # Python ends with 2 where its program is gone, and 2 would block prompts and compactions.
        line = f"{shlex.join([*program, NAME, event, *([folder] if folder else [])])} || true"
        return {**matcher, "hooks": [{"type": "command", "command": line, "timeout": HOOK_SECONDS}]}

    plain = (*_EVENTS, _BRAKE) if supervised else _EVENTS
    return {
        "SessionStart": [entry(f"SessionStart:{source}", matcher=source) for source in _SOURCES],
        **{event: [entry(event)] for event in plain},
    }


def told(event: str, text: str) -> str:  # noqa: ARG001 - other CLIs want another form for some
    """What a hook prints, so that the session is told a text: at a start, the plain text."""
    return text


def read_hook(line: HookLine) -> AnyEvent | None:
    """The fact that a hook reports; None where it reports nothing that we keep."""
    return hookwords.read(line, NAME, _FACTS)


def read_stream(line: bytes) -> tuple[Seen, ...]:  # noqa: PLR0911 - one for each kind of line
    """What a line of the program's output shows; nothing, where it cannot be read or is not known.

    A sub-agent's own messages are left out: they fill another window.
    """
    record = fields.record(line)
    match record.get("type"), record.get("subtype"):
        case "system", "init":
            session = _session(record.get("session_id"))
            model, version = (
                fields.word(record.get("model")),
                fields.word(record.get("claude_code_version")),
            )
            return (Opened(session, model, version),) if session else ()
        case "system", "api_retry":
            seconds = (fields.count(record.get("retry_delay_ms")) or 0) / 1000
            return (Retried(fields.count(record.get("error_status")), seconds),)
        case "system", "compact_boundary":
            sizes = fields.as_object(record.get("compact_metadata"))
            return (
                Compacted(
                    fields.count(sizes.get("pre_tokens")), fields.count(sizes.get("post_tokens"))
                ),
            )
        case "rate_limit_event", _:
            limit = fields.as_object(record.get("rate_limit_info"))
            # The other statuses come on ordinary turns, also beside a rejected `overageStatus`.
            refused = limit.get("status") == "rejected"
            return (Refused(fields.count(limit.get("resetsAt"))),) if refused else ()
        case "assistant", _ if record.get("parent_tool_use_id") is None:
            return tuple(_message(fields.as_object(record.get("message"))))
        case "result", _:
            return (_finished(record),)
        case _:
            return ()


def usage(tail: bytes, windows: Mapping[str, int]) -> Usage | None:
    """How full the window is, by the last turn or compaction that a transcript's end tells of.

    `windows` is what `Finished` has told of each model. Without the model's own, how full it is
    is `unknown`: a guess at a window would end sessions that are half empty.
    """
    compacted: int | None = None
    for line in reversed(tail.split(b"\n")):
        # Most lines are large and of no interest; looking at the bytes is cheaper than decoding.
        if b'"usage"' not in line and b'"compact_boundary"' not in line:
            continue
        record = fields.record(line)
        if record.get("isSidechain") is True:
            continue
        if record.get("subtype") == "compact_boundary" and compacted is None:
            # The turns before it filled a window that has been emptied since.
            compacted = fields.count(
                fields.as_object(record.get("compactMetadata")).get("postTokens")
            )
            if compacted is None:
                return None
        if record.get("type") == "assistant":
            # The message names its model without what widens its window, as in `sonnet[1m]`.
            asked = fields.word(record.get("requestedModel"))
            if found := _usage(fields.as_object(record.get("message")), asked):
                tokens = found.tokens if compacted is None else compacted
                return msgspec.structs.replace(found, tokens=tokens).within(windows)
    return None


def _message(message: dict[str, Any]) -> Iterator[Seen]:
    if message.get("model") == _SYNTHETIC:
        return
    content = message.get("content")
    for block in map(fields.as_object, content if isinstance(content, list) else ()):
        match block.get("type"):
            case "text":
                yield Said(fields.text(block.get("text")))
            case "tool_use":
                name, call = fields.word(block.get("name")), fields.word(block.get("id"))
                yield Called(name, call, fields.about(fields.as_object(block.get("input"))))
    if used := _usage(message):
        yield Used(used)


def _usage(message: dict[str, Any], asked: str = "") -> Usage | None:
    model, counts = fields.word(message.get("model")), fields.as_object(message.get("usage"))
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    if model == _SYNTHETIC or fields.count(counts.get("input_tokens")) is None:
        return None
    tokens = sum(fields.count(counts.get(name)) or 0 for name in names)
    return Usage(tokens, None, "unknown", asked or model)


def _finished(record: dict[str, Any]) -> Finished:
    errors, usd = record.get("errors"), record.get("total_cost_usd")
    windows = {
        fields.word(model): size
        for model, used in fields.as_object(record.get("modelUsage")).items()
        if (size := fields.count(fields.as_object(used).get("contextWindow")))
    }
    return Finished(
        session=_session(record.get("session_id")),
        ok=record.get("subtype") == "success" and record.get("is_error") is False,
        reason=fields.word(record.get("terminal_reason")) or fields.word(record.get("subtype")),
        text=fields.text(record.get("result")),
        errors=tuple(map(fields.text, errors)) if isinstance(errors, list) else (),
        status=fields.count(record.get("api_error_status")),
        usd=usd if isinstance(usd, float) else fields.count(usd),
        windows=windows,
    )


def _session(value: object) -> str:
    return value if isinstance(value, str) and _SESSION.match(value) else ""
