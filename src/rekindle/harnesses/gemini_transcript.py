"""The session files of Gemini CLI: a message is written again, whole, when more of it is known."""

import re
from collections.abc import Iterator
from typing import Any

from rekindle.documents.launch import Called, Compacted, Said, Seen, Usage, Used, Warned
from rekindle.documents.transcript import Asked, Gave, Passage
from rekindle.harnesses.foreign import about, count, mapping, parsed, passages, text, word

_TELLING = re.compile(rb'"type" ?: ?"(?:user|gemini|error)"')
_SHELL = "run_shell_command"
_SNAPSHOT = "<state_snapshot>"
"""How the message begins that stands in the place of all that was compacted."""
_CONTEXT = ("<session_context>", "<hook_context>")
"""How what the CLI itself puts before a prompt begins."""


def read_transcript(line: bytes) -> tuple[Passage, ...]:
    """What a line of a session file tells of the session."""
    if not _TELLING.search(line):
        return ()
    record = parsed(line)
    if messages := mapping(record.get("$set")).get("messages"):
        return tuple(_rewritten(messages))
    found: list[Asked | Gave | Seen] = []
    match record.get("type"):
        case "user":
            asked = _text_of(record.get("content")).strip()
            if asked and not asked.startswith((*_CONTEXT, _SNAPSHOT)):
                found.append(Asked(asked))
        case "gemini":
            found += _answered(record)
        case "error":
            found.append(Warned(_text_of(record.get("content"))))
    at, message = word(record.get("timestamp")), word(record.get("id"))
    return passages(found, at=at, message=message, anew=record.get("type") == "gemini")


def _rewritten(messages: object) -> Iterator[Passage]:
    """The whole session is written again, as at a start; what is new in it is a compaction."""
    for message in map(mapping, messages if isinstance(messages, list) else ()):
        if _text_of(message.get("content")).startswith(_SNAPSHOT):
            at, known_by = word(message.get("timestamp")), word(message.get("id"))
            yield Passage(what=Compacted(None, None), at=at, message=known_by)


def _answered(record: dict[str, Any]) -> Iterator[Gave | Seen]:
    yield Said(_text_of(record.get("content")))
    calls = record.get("toolCalls")
    for call in map(mapping, calls if isinstance(calls, list) else ()):
        name = word(call.get("id"))
        yield Called(word(call.get("name")), name, about(mapping(call.get("args"))))
        if isinstance(status := call.get("status"), str):
            yield Gave(name, _went_well(status, call), _shown(call))
    counted = mapping(record.get("tokens"))
    tokens, total = count(counted.get("input")), count(counted.get("total"))
    if tokens is not None:
        written = max(0, (total or tokens) - tokens)
        usage = Usage(tokens, None, "unknown", word(record.get("model")), written)
        yield Used(usage, word(record.get("id")))


def _went_well(status: str, call: dict[str, Any]) -> bool:
    """A command that failed is a success to the CLI: only what it gave says otherwise."""
    if status != "success" or call.get("name") != _SHELL:
        return status == "success"
    return not re.search(r"^Exit Code: [1-9]", _given(call), re.MULTILINE)


def _shown(call: dict[str, Any]) -> str:
    shown = call.get("resultDisplay")
    return text(shown) if isinstance(shown, str) else _given(call)


def _given(call: dict[str, Any]) -> str:
    results = call.get("result")
    responses = [
        mapping(mapping(mapping(each).get("functionResponse")).get("response"))
        for each in (results if isinstance(results, list) else ())
    ]
    return "\n".join(text(each.get("output")) or text(each.get("error")) for each in responses)


def _text_of(content: object) -> str:
    if not isinstance(content, list):
        return text(content)
    return "\n".join(filter(None, (text(mapping(each).get("text")) for each in content)))
