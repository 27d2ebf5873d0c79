"""Parse messages in Claude Code's output stream and transcripts."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from rekindle.documents.launches.launch_types import (
    AssistantText,
    CompactionReport,
    OutputItem,
    RefusedCall,
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

SYNTHETIC = "<synthetic>"
"""Model name for messages that the CLI itself wrote."""
_TELLING = re.compile(rb'"type" ?: ?"(?:user|assistant)"|"compact_boundary"')
"""Pattern for lines that belong to a turn. Most others are copies of requests and attachments."""

_DENIED = re.compile(
    r"(?:<tool_use_error>)?(?:Claude requested permissions? |(?:This|sed) command requires approval"
    r"|[^\n]{1,1000}? needs approval\. The path is inside the working directories"
    r"|Permission (?:to|for) .{1,400} has been denied"
    # A tool that exists but is not in `allowed_tools`. If a tool does not exist, the message ends
    # after the name.
    r"|(?:Error: )?No such tool available: (\w+)\. \1 is (?:disabled for|not among the tools))",
    re.DOTALL,
)
"""Start of a tool result with which the CLI refuses a call."""
_BY_THE_CLI = re.compile(
    r"<(?:bash-(?:input|stdout|stderr)|local-command-(?:stdout|stderr|caveat)|task-notification"
    r"|command-(?:name|message|args|contents)|system-reminder|user-prompt-submit-hook"
    r"|ide_(?:opened_file|selection|diagnostics)|teammate-message|new-diagnostics)\b"
)
"""Start of a text that the CLI itself wrote in the user's role."""


def read_transcript(line: bytes) -> tuple[Passage, ...]:
    """Return the passages in one line of a transcript."""
    if not _TELLING.search(line):
        return ()
    record = parse_object(line)
    message = to_mapping(record.get("message"))
    items: Iterable[PromptText | ToolResult | OutputItem] = ()
    match record.get("type"):
        case "user" if not (record.get("isMeta") or record.get("isCompactSummary")):
            items = _read_prompt(message)
        case "assistant" if record.get("isApiErrorMessage") is True:
            items = [WarningReport(_read_text(message.get("content")))]
        case "assistant":
            items = read_answer(message)
        case "system" if record.get("subtype") == "compact_boundary":
            sizes = to_mapping(record.get("compactMetadata"))
            items = [
                CompactionReport(
                    to_count(sizes.get("preTokens")), to_count(sizes.get("postTokens"))
                )
            ]
    return make_passages(
        items,
        at=to_word(record.get("timestamp")),
        message=to_word(message.get("id")) or to_word(record.get("uuid")),
        thread=_find_thread(record),
    )


def _find_thread(record: dict[str, Any]) -> str:
    """Return the sub-agent that wrote a line, even if it has no name, or "" for the main thread."""
    if record.get("isSidechain") is not True:
        return ""
    return to_word(record.get("agentId")) or "sidechain"


def read_answer(message: dict[str, Any]) -> Iterator[OutputItem]:
    """Yield the items in a message from the model, or in one part of it."""
    if message.get("model") == SYNTHETIC:
        return
    content = message.get("content")
    for block in map(to_mapping, content if isinstance(content, list) else ()):
        match block.get("type"):
            case "text":
                yield AssistantText(to_text(block.get("text")))
            case "tool_use":
                name, call = to_word(block.get("name")), to_word(block.get("id"))
                arguments = to_mapping(block.get("input"))
                yield ToolCallStarted(name, call, describe_call(arguments), arguments)
    if used := read_usage(message):
        # A message arrives in parts, and each part reports the usage of the whole message.
        yield UsageReport(used, to_word(message.get("id")))


def read_usage(message: dict[str, Any], requested_model: str = "") -> WindowUsage | None:
    model, counts = to_word(message.get("model")), to_mapping(message.get("usage"))
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    if model == SYNTHETIC or to_count(counts.get("input_tokens")) is None:
        return None
    new, cached, stored = (to_count(counts.get(name)) or 0 for name in names)
    long = to_count(to_mapping(counts.get("cache_creation")).get("ephemeral_1h_input_tokens")) or 0
    return WindowUsage(
        new + cached + stored,
        None,
        "unknown",
        requested_model or model,
        written=to_count(counts.get("output_tokens")) or 0,
        cached=cached,
        stored=max(0, stored - long),
        stored_long=min(stored, long),
    )


def _read_prompt(message: dict[str, Any]) -> Iterator[PromptText | ToolResult | WarningReport]:
    content = message.get("content")
    blocks = [to_mapping(block) for block in (content if isinstance(content, list) else ())]
    results = [block for block in blocks if block.get("type") == "tool_result"]
    for block in results:
        call, ok = to_word(block.get("tool_use_id")), block.get("is_error") is not True
        yield ToolResult(call, ok, _read_text(block.get("content")))
    if words := _read_text(content).strip():
        # Text next to a tool result, or inside one of the CLI's tags, was written by the CLI.
        yield WarningReport(words) if results or _BY_THE_CLI.match(words) else PromptText(words)


def _read_text(content: object) -> str:
    """Return a message's text, without images or other content."""
    if not isinstance(content, list):
        return to_text(content)
    blocks = [each for each in map(to_mapping, content) if each.get("type") == "text"]
    return "\n".join(to_text(each.get("text")) for each in blocks)


def is_denied(result: dict[str, Any]) -> bool:
    """Return whether the CLI refused a call, according to the call's result."""
    return result.get("is_error") is True and bool(_DENIED.match(_read_text(result.get("content"))))


def read_denials(record: dict[str, Any]) -> Iterator[RefusedCall]:
    """Yield the refused calls that are listed in the CLI's final report."""
    denials = record.get("permission_denials")
    for denial in map(to_mapping, denials if isinstance(denials, list) else ()):
        arguments = to_mapping(denial.get("tool_input"))
        tool, call = to_word(denial.get("tool_name")), to_word(denial.get("tool_use_id"))
        yield RefusedCall(tool, describe_call(arguments), arguments, call)
