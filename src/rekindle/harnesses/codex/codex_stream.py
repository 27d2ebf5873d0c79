"""Convert Codex output to output items."""

from collections.abc import Mapping
from typing import Any

from rekindle.documents.launches.launch_types import (
    AssistantText,
    FinalReport,
    OutputItem,
    RetryReport,
    SessionOpened,
    ToolCallFinished,
    ToolCallStarted,
)
from rekindle.harnesses.codex.codex_exits import find_status
from rekindle.harnesses.untrusted_json import (
    parse_object,
    to_count,
    to_mapping,
    to_text,
    to_uuid,
    to_word,
)
from rekindle.thresholds.texts import CALL_PATHS

_ITEMS = {
    "command_execution": "command",
    "mcp_tool_call": "tool",
    "web_search": "query",
    "file_change": "changes",
    "collab_tool_call": "tool",
}
"""Kinds of calls in the stream, with the field that describes each one best."""


def read_stream(line: bytes) -> tuple[OutputItem, ...]:
    """Return the item in a line of output, or nothing if the line cannot be read.

    The stream does not report the window usage. A turn's usage is the sum of its requests.
    """
    record = parse_object(line)
    item = to_mapping(record.get("item"))
    result: OutputItem | None = None
    match record.get("type"), item.get("type"):
        case "thread.started", _:
            session = to_uuid(record.get("thread_id"))
            result = SessionOpened(session) if session else None
        case "item.started", str(kind) if kind in _ITEMS:
            result = ToolCallStarted(
                kind, to_word(item.get("id")), _describe_call(item.get(_ITEMS[kind]))
            )
        case "item.completed", str(kind) if kind in _ITEMS:
            result = ToolCallFinished(to_word(item.get("id")), _is_refused(item))
        case "item.completed", "agent_message":
            result = AssistantText(to_text(item.get("text")))
        case "turn.completed", _:
            result = FinalReport("", ok=True, tokens=_sum_tokens(to_mapping(record.get("usage"))))
        case "turn.failed" | "error", _:
            message = record.get("message") or to_mapping(record.get("error")).get("message")
            result = _read_failure(to_text(message))
    return (result,) if result else ()


def _is_refused(item: Mapping[str, Any]) -> bool:
    """Return whether the sandbox prevented a command from writing."""
    output, code = to_text(item.get("aggregated_output")), item.get("exit_code")
    return bool(code) and "Read-only file system" in output


def _sum_tokens(counts: Mapping[str, Any]) -> int | None:
    """Return the total tokens of a turn's requests. The input count includes cached tokens."""
    read, written = to_count(counts.get("input_tokens")), to_count(counts.get("output_tokens"))
    return None if read is None else read + (written or 0)


def _read_failure(message: str) -> OutputItem:
    if message.startswith("Reconnecting"):
        return RetryReport(find_status(message), 0.0)
    return FinalReport("", ok=False, reason="failed", errors=(message,))


def _describe_call(value: object) -> str:
    if isinstance(value, list):  # files that a patch changes
        return to_word(
            " ".join(to_text(to_mapping(each).get("path")) for each in value[:CALL_PATHS])
        )
    return to_word(value)
