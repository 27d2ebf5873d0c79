"""What Codex prints while it works, in our words."""

from collections.abc import Mapping
from typing import Any

from rekindle.documents.launch import Called, Finished, Opened, Retried, Returned, Said, Seen
from rekindle.harnesses.codex_exit import told_status
from rekindle.harnesses.foreign import count, mapping, parsed, text, uuid, word
from rekindle.thresholds.texts import CALL_PATHS

_ITEMS = {
    "command_execution": "command",
    "mcp_tool_call": "tool",
    "web_search": "query",
    "file_change": "changes",
    "collab_tool_call": "tool",
}
"""The calls that the stream tells of, and what says most about each."""


def read_stream(line: bytes) -> tuple[Seen, ...]:
    """What a line of the program's output shows; nothing, where it cannot be read or is not known.

    How full the window is it does not tell: what a turn has used is the sum of its requests.
    """
    record = parsed(line)
    item = mapping(record.get("item"))
    seen: Seen | None = None
    match record.get("type"), item.get("type"):
        case "thread.started", _:
            session = uuid(record.get("thread_id"))
            seen = Opened(session) if session else None
        case "item.started", str(kind) if kind in _ITEMS:
            seen = Called(kind, word(item.get("id")), _about(item.get(_ITEMS[kind])))
        case "item.completed", str(kind) if kind in _ITEMS:
            seen = Returned(word(item.get("id")), _is_refused(item))
        case "item.completed", "agent_message":
            seen = Said(text(item.get("text")))
        case "turn.completed", _:
            seen = Finished("", ok=True, tokens=_spent(mapping(record.get("usage"))))
        case "turn.failed" | "error", _:
            told = record.get("message") or mapping(record.get("error")).get("message")
            seen = _failure(text(told))
    return (seen,) if seen else ()


def _is_refused(item: Mapping[str, Any]) -> bool:
    """Return whether the sandbox kept a command from writing."""
    output, code = text(item.get("aggregated_output")), item.get("exit_code")
    return bool(code) and "Read-only file system" in output


def _spent(counts: Mapping[str, Any]) -> int | None:
    """What all requests of a turn have read and written; cached ones are among the read ones."""
    read, written = count(counts.get("input_tokens")), count(counts.get("output_tokens"))
    return None if read is None else read + (written or 0)


def _failure(message: str) -> Seen:
    if message.startswith("Reconnecting"):
        return Retried(told_status(message), 0.0)
    return Finished("", ok=False, reason="failed", errors=(message,))


def _about(value: object) -> str:
    if isinstance(value, list):  # of a patch, the files that it changes
        return word(" ".join(text(mapping(each).get("path")) for each in value[:CALL_PATHS]))
    return word(value)
