"""Parse Codex rollouts, in which most events have several records, one per line."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from rekindle.documents.launches.launch_types import (
    AssistantText,
    CompactionReport,
    OutputItem,
    ToolCallStarted,
    UsageReport,
    WarningReport,
    WindowUsage,
)
from rekindle.documents.transcripts.turns import (
    Passage,
    PromptText,
    ToolResult,
)
from rekindle.harnesses.untrusted_json import (
    describe_call,
    make_passages,
    parse_object,
    to_count,
    to_mapping,
    to_text,
    to_word,
)
from rekindle.thresholds.texts import CODEX_CALL_WORDS

_TELLING = re.compile(
    rb'"(?:UserMessage|CommandExecution|FileChange|McpToolCall|(?:function|custom_tool)_call(?:_output)?'
    rb'|local_shell_call|web_search_call|output_text|token_usage_record|compacted|task_complete|agent_message)"'
)
CALL_ITEMS = frozenset({"function_call", "custom_tool_call", "local_shell_call", "web_search_call"})
RESULT_ITEMS = frozenset({"function_call_output", "custom_tool_call_output"})
_ENDED = frozenset({"CommandExecution", "FileChange", "McpToolCall"})
_AROUND = re.compile(
    r"\A(?:Chunk ID: \w+\n)?(?:Wall time: .*\n)?(?:Process exited with code 0\n)?"
    r"(Process exited .*\n)?(?:Original token count: \d+\n)?(?:Output:\n)?"
)
"""Text that Codex adds before a command's output. Only the exit code of a failure is kept."""

_TASK = "Message Type: NEW_TASK"
_FAILED = re.compile(r"Process exited |aborted by user\Z")


def read_transcript(line: bytes) -> tuple[Passage, ...]:
    """Return the passages in one line of a rollout.

    A sub-agent has its own rollout.
    """
    if not _TELLING.search(line):
        return ()
    record = parse_object(line)
    payload = to_mapping(record.get("payload"))
    items: Iterable[PromptText | ToolResult | OutputItem] = ()
    thread = ""
    match record.get("type"), payload.get("type"):
        case "event_msg", "item_completed":
            items = _read_completed(to_mapping(payload.get("item")))
        case "event_msg", "task_complete":
            failure = to_text(to_mapping(payload.get("error")).get("message"))
            items = [WarningReport(failure)] if failure else ()
        case "response_item", "agent_message":
            items = _read_task(payload)
            thread = to_word(payload.get("recipient")).strip("/").replace("/", ".")
        case "response_item", str(kind):
            is_summary = to_mapping(record.get("metadata")).get("compaction_output") is True
            items = () if is_summary else _read_item(kind, payload)
        case "token_usage_record", _:
            items = read_usage(payload)
        case "compacted", _:
            items = [CompactionReport(None, None)]
    return make_passages(items, at=to_word(record.get("timestamp")), thread=thread)


def find_own_start(first: bytes) -> bytes:
    """Return the text that marks where a sub-agent's own lines start, after its parent's lines."""
    payload = to_mapping(parse_object(first).get("payload"))
    own = to_word(payload.get("id")) if payload.get("forked_from_id") else ""
    return f'"thread_id":"{own}"'.encode() if own else b""


def _read_task(payload: dict[str, Any]) -> Iterator[PromptText]:
    """Yield the task that one agent gave another."""
    words = _read_text(payload.get("content")).strip()
    if words.startswith(_TASK):
        yield PromptText(words)


def _read_item(kind: str, payload: dict[str, Any]) -> Iterator[ToolResult | OutputItem]:
    if kind == "message" and payload.get("role") == "assistant":
        yield AssistantText(_read_text(payload.get("content")))
    elif kind in CALL_ITEMS:
        yield read_call(kind, payload)
    elif kind in RESULT_ITEMS:
        output = _read_result(payload.get("output"))
        yield ToolResult(
            to_word(payload.get("call_id")), False if _FAILED.match(output) else None, output
        )


def read_usage(payload: dict[str, Any]) -> Iterator[UsageReport]:
    """Yield the API's token count for one answer."""
    counted = to_mapping(payload.get("usage"))
    tokens, written = to_count(counted.get("input_tokens")), to_count(counted.get("output_tokens"))
    if tokens is not None:
        window_usage = WindowUsage(
            tokens,
            None,
            "unknown",
            written=written or 0,
            cached=to_count(counted.get("cached_input_tokens")) or 0,
            stored=to_count(counted.get("cache_write_input_tokens")) or 0,
        )
        yield UsageReport(window_usage, to_word(payload.get("response_id")))


def _read_completed(item: dict[str, Any]) -> Iterator[PromptText | ToolResult]:
    kind = to_text(item.get("type"))
    if kind == "UserMessage" and (text := _read_text(item.get("content")).strip()):
        yield PromptText(text)
    elif kind in _ENDED:
        # The call's output is in another line, which does not show whether the call succeeded.
        ok = item.get("status") == "completed" and not to_count(item.get("exit_code"))
        yield ToolResult(to_word(item.get("id")), ok)


def read_call(kind: str, payload: dict[str, Any]) -> ToolCallStarted:
    """Return a tool call in a rollout, with its arguments."""
    arguments = payload.get("arguments", payload.get("action", payload.get("input")))
    if isinstance(arguments, str):
        arguments = parse_object(arguments.encode("utf-8", "replace")) or {"input": arguments}
    arguments = to_mapping(arguments)
    telling = arguments.get("cmd", arguments.get("command"))
    if isinstance(telling, list):
        telling = " ".join(map(to_text, telling[:CODEX_CALL_WORDS]))
    shown = describe_call({"command": telling} if isinstance(telling, str) else arguments)
    name = to_word(payload.get("name")) or kind
    return ToolCallStarted(
        name, to_word(payload.get("call_id")) or to_word(payload.get("id")), shown, arguments
    )


def _read_result(output: object) -> str:
    """Return a tool's output without the text that Codex adds to it."""
    if isinstance(output, list):
        return _read_text(output)
    if not isinstance(output, str):
        return json.dumps(output, ensure_ascii=False) if output is not None else ""
    return _AROUND.sub(lambda match: match[1] or "", to_text(output), count=1)


def _read_text(content: object) -> str:
    blocks = map(to_mapping, content if isinstance(content, list) else ())
    return "\n".join(filter(None, (to_text(block.get("text")) for block in blocks)))
