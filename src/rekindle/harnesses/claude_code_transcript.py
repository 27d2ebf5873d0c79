"""The messages of Claude Code, as its stream and its transcript have them."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from rekindle.documents.launch import (
    Called,
    Compacted,
    RefusedCall,
    Said,
    Seen,
    Usage,
    Used,
    Warned,
)
from rekindle.documents.transcript import Asked, Gave, Passage
from rekindle.harnesses.foreign import about, count, mapping, parsed, passages, text, word

SYNTHETIC = "<synthetic>"
"""The model of a message that the CLI wrote itself."""
_TELLING = re.compile(rb'"type" ?: ?"(?:user|assistant)"|"compact_boundary"')
"""What a line has that tells of a turn: most of the bytes are copies of requests, and attachments.
"""

_DENIED = re.compile(
    r"(?:<tool_use_error>)?(?:Claude requested permissions? |This command requires approval"
    r"|Permission (?:to|for) .{1,400} has been denied)",
    re.DOTALL,
)
"""How the result of a call begins that the CLI did not run."""
_BY_THE_CLI = re.compile(
    r"<(?:bash-(?:input|stdout|stderr)|local-command-(?:stdout|stderr|caveat)|task-notification"
    r"|command-(?:name|message|args|contents)|system-reminder|user-prompt-submit-hook"
    r"|ide_(?:opened_file|selection|diagnostics)|teammate-message|new-diagnostics)\b"
)
"""How what begins that no person has written, though it stands where a person's words do."""


def read_transcript(line: bytes) -> tuple[Passage, ...]:
    """What a line of a transcript tells of the session."""
    if not _TELLING.search(line):
        return ()
    record = parsed(line)
    message = mapping(record.get("message"))
    found: Iterable[Asked | Gave | Seen] = ()
    match record.get("type"):
        case "user" if not (record.get("isMeta") or record.get("isCompactSummary")):
            found = _asked(message)
        case "assistant" if record.get("isApiErrorMessage") is True:
            found = [Warned(_text_of(message.get("content")))]
        case "assistant":
            found = said(message)
        case "system" if record.get("subtype") == "compact_boundary":
            sizes = mapping(record.get("compactMetadata"))
            found = [Compacted(count(sizes.get("preTokens")), count(sizes.get("postTokens")))]
    return passages(
        found,
        at=word(record.get("timestamp")),
        message=word(message.get("id")) or word(record.get("uuid")),
        thread=_thread(record),
    )


def _thread(record: dict[str, Any]) -> str:
    """The sub-agent whose line it is; one that is not named is none of the main thread's either."""
    if record.get("isSidechain") is not True:
        return ""
    return word(record.get("agentId")) or "sidechain"


def said(message: dict[str, Any]) -> Iterator[Seen]:
    """What the model has answered, or a piece of it."""
    if message.get("model") == SYNTHETIC:
        return
    content = message.get("content")
    for block in map(mapping, content if isinstance(content, list) else ()):
        match block.get("type"):
            case "text":
                yield Said(text(block.get("text")))
            case "tool_use":
                name, call = word(block.get("name")), word(block.get("id"))
                yield Called(name, call, about(mapping(block.get("input"))))
    if used := usage_of(message):
        # A message comes in pieces, each with the usage of the whole.
        yield Used(used, word(message.get("id")))


def usage_of(message: dict[str, Any], asked: str = "") -> Usage | None:
    model, counts = word(message.get("model")), mapping(message.get("usage"))
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    if model == SYNTHETIC or count(counts.get("input_tokens")) is None:
        return None
    tokens = sum(count(counts.get(name)) or 0 for name in names)
    written = count(counts.get("output_tokens")) or 0
    return Usage(tokens, None, "unknown", asked or model, written)


def _asked(message: dict[str, Any]) -> Iterator[Asked | Gave | Warned]:
    content = message.get("content")
    blocks = [mapping(block) for block in (content if isinstance(content, list) else ())]
    results = [block for block in blocks if block.get("type") == "tool_result"]
    for block in results:
        call, ok = word(block.get("tool_use_id")), block.get("is_error") is not True
        yield Gave(call, ok, _text_of(block.get("content")))
    if words := _text_of(content).strip():
        # Beside what a tool gave, and in tags of its own, it is the CLI that speaks.
        yield Warned(words) if results or _BY_THE_CLI.match(words) else Asked(words)


def _text_of(content: object) -> str:
    """What is text in a message; pictures and the like are not."""
    if not isinstance(content, list):
        return text(content)
    blocks = [each for each in map(mapping, content) if each.get("type") == "text"]
    return "\n".join(text(each.get("text")) for each in blocks)


def is_denied(result: dict[str, Any]) -> bool:
    """Return whether the result of a call says that nothing permits it."""
    return result.get("is_error") is True and bool(_DENIED.match(_text_of(result.get("content"))))


def read_denials(record: dict[str, Any]) -> Iterator[RefusedCall]:
    """Yield the calls that the CLI's last report says it refused."""
    denials = record.get("permission_denials")
    for denial in map(mapping, denials if isinstance(denials, list) else ()):
        given = mapping(denial.get("tool_input"))
        tool, call = word(denial.get("tool_name")), word(denial.get("tool_use_id"))
        yield RefusedCall(tool, about(given), given, call)
