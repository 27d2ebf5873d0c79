"""Parse Gemini CLI session files. The CLI rewrites a message when it has more information."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

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

_TELLING = re.compile(rb'"type" ?: ?"(?:user|gemini|error)"')
_SHELL = "run_shell_command"
_SNAPSHOT = "<state_snapshot>"
"""Start of the message that replaces a compacted conversation."""
_CONTEXT = ("<session_context>", "<hook_context>")
"""Starts of the texts that the CLI adds before a prompt."""


def read_transcript(line: bytes) -> tuple[Passage, ...]:
    """Return the passages in one line of a session file."""
    if not _TELLING.search(line):
        return ()
    record = parse_object(line)
    if messages := to_mapping(record.get("$set")).get("messages"):
        return tuple(_read_rewritten(messages))
    items: list[PromptText | ToolResult | OutputItem] = []
    match record.get("type"):
        case "user":
            prompt = _read_text(record.get("content")).strip()
            if prompt and not prompt.startswith((*_CONTEXT, _SNAPSHOT)):
                items.append(PromptText(prompt))
        case "gemini":
            items += _read_answer(record)
        case "error":
            items.append(WarningReport(_read_text(record.get("content"))))
    at, message = to_word(record.get("timestamp")), to_word(record.get("id"))
    passages = make_passages(
        items, at=at, message=message, repeats_message=record.get("type") == "gemini"
    )
    ends = {to_word(call.get("id")): to_word(call.get("timestamp")) for call in _list_calls(record)}
    return tuple(_set_end(passage, ends) for passage in passages)


def _set_end(passage: Passage, ends: Mapping[str, str]) -> Passage:
    """Return the passage, and if it is a result, with the time at which its call ended."""
    if not isinstance(passage.what, ToolResult):
        return passage
    return msgspec.structs.replace(passage, at=ends.get(passage.what.call) or passage.at)


def _list_calls(record: dict[str, Any]) -> list[dict[str, Any]]:
    calls = record.get("toolCalls")
    return [to_mapping(call) for call in (calls if isinstance(calls, list) else ())]


def _read_rewritten(messages: object) -> Iterator[Passage]:
    """Yield the compactions in a rewritten session, whose other messages were already read."""
    for message in map(to_mapping, messages if isinstance(messages, list) else ()):
        if _read_text(message.get("content")).startswith(_SNAPSHOT):
            at, known_by = to_word(message.get("timestamp")), to_word(message.get("id"))
            yield Passage(what=CompactionReport(None, None), at=at, message=known_by)


def _read_answer(record: dict[str, Any]) -> Iterator[ToolResult | OutputItem]:
    yield AssistantText(_read_text(record.get("content")))
    for call in _list_calls(record):
        name = to_word(call.get("id"))
        arguments = to_mapping(call.get("args"))
        yield ToolCallStarted(to_word(call.get("name")), name, describe_call(arguments), arguments)
        if isinstance(status := call.get("status"), str):
            yield ToolResult(name, _has_succeeded(status, call), _read_shown(call))
    if usage := read_usage(record):
        yield usage


def read_usage(record: dict[str, Any]) -> UsageReport | None:
    """Return the usage of a message from the model, or None if it does not report any."""
    counted = to_mapping(record.get("tokens"))
    tokens, total = to_count(counted.get("input")), to_count(counted.get("total"))
    if record.get("type") != "gemini" or tokens is None:
        return None
    window_usage = WindowUsage(
        tokens,
        None,
        "unknown",
        to_word(record.get("model")),
        written=max(0, (total or tokens) - tokens),
        cached=to_count(counted.get("cached")) or 0,
    )
    return UsageReport(window_usage, to_word(record.get("id")))


def _has_succeeded(status: str, call: dict[str, Any]) -> bool:
    """Return whether a call succeeded. Only its output shows whether a command failed."""
    if status != "success" or call.get("name") != _SHELL:
        return status == "success"
    return not re.search(r"^Exit Code: [1-9]", _read_result(call), re.MULTILINE)


def _read_shown(call: dict[str, Any]) -> str:
    shown = call.get("resultDisplay")
    return to_text(shown) if isinstance(shown, str) else _read_result(call)


def _read_result(call: dict[str, Any]) -> str:
    results = call.get("result")
    responses = [
        to_mapping(to_mapping(to_mapping(each).get("functionResponse")).get("response"))
        for each in (results if isinstance(results, list) else ())
    ]
    return "\n".join(
        to_text(each.get("output")) or to_text(each.get("error")) for each in responses
    )


def _read_text(content: object) -> str:
    if not isinstance(content, list):
        return to_text(content)
    return "\n".join(filter(None, (to_text(to_mapping(each).get("text")) for each in content)))
