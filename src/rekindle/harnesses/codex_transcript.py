"""The rollouts of Codex: one line for each thing that happened, most of them told several times."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from rekindle.documents.launch import Called, Compacted, Said, Seen, Usage, Used, Warned
from rekindle.documents.transcript import Asked, Gave, Passage
from rekindle.harnesses.foreign import about, count, mapping, parsed, passages, text, word
from rekindle.thresholds.texts import CODEX_CALL_WORDS

_TELLING = re.compile(
    rb'"(?:UserMessage|CommandExecution|FileChange|McpToolCall|(?:function|custom_tool)_call(?:_output)?'
    rb'|local_shell_call|web_search_call|output_text|token_usage_record|compacted|task_complete|agent_message)"'
)
CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call", "web_search_call"})
GIVEN = frozenset({"function_call_output", "custom_tool_call_output"})
_ENDED = frozenset({"CommandExecution", "FileChange", "McpToolCall"})
_AROUND = re.compile(
    r"\A(?:Chunk ID: \w+\n)?(?:Wall time: .*\n)?(?:Process exited with code 0\n)?"
    r"(Process exited .*\n)?(?:Original token count: \d+\n)?(?:Output:\n)?"
)
"""What Codex says before what a command gave; that it failed is kept."""

_TASK = "Message Type: NEW_TASK"
_FAILED = re.compile(r"Process exited |aborted by user\Z")


def read_transcript(line: bytes) -> tuple[Passage, ...]:
    """What a line of a rollout tells of the session.

    A sub-agent has a rollout of its own.
    """
    if not _TELLING.search(line):
        return ()
    record = parsed(line)
    payload = mapping(record.get("payload"))
    found: Iterable[Asked | Gave | Seen] = ()
    thread = ""
    match record.get("type"), payload.get("type"):
        case "event_msg", "item_completed":
            found = _completed(mapping(payload.get("item")))
        case "event_msg", "task_complete":
            failure = text(mapping(payload.get("error")).get("message"))
            found = [Warned(failure)] if failure else ()
        case "response_item", "agent_message":
            found = _tasked(payload)
            thread = word(payload.get("recipient")).strip("/").replace("/", ".")
        case "response_item", str(kind):
            is_summary = mapping(record.get("metadata")).get("compaction_output") is True
            found = () if is_summary else _item(kind, payload)
        case "token_usage_record", _:
            found = used(payload)
        case "compacted", _:
            found = [Compacted(None, None)]
    return passages(found, at=word(record.get("timestamp")), thread=thread)


def own_from(first: bytes) -> bytes:
    """What the first line holds that is a sub-agent's own: before it, its parent's are copied."""
    payload = mapping(parsed(first).get("payload"))
    own = word(payload.get("id")) if payload.get("forked_from_id") else ""
    return f'"thread_id":"{own}"'.encode() if own else b""


def _tasked(payload: dict[str, Any]) -> Iterator[Asked]:
    """What one agent has asked another for."""
    words = _text_of(payload.get("content")).strip()
    if words.startswith(_TASK):
        yield Asked(words)


def _item(kind: str, payload: dict[str, Any]) -> Iterator[Gave | Seen]:
    if kind == "message" and payload.get("role") == "assistant":
        yield Said(_text_of(payload.get("content")))
    elif kind in CALLS:
        yield called(kind, payload)
    elif kind in GIVEN:
        given = _given(payload.get("output"))
        yield Gave(word(payload.get("call_id")), False if _FAILED.match(given) else None, given)


def used(payload: dict[str, Any]) -> Iterator[Used]:
    """What the API counted for one of its answers."""
    counted = mapping(payload.get("usage"))
    tokens, written = count(counted.get("input_tokens")), count(counted.get("output_tokens"))
    if tokens is not None:
        found = Usage(tokens, None, "unknown", written=written or 0)
        yield Used(found, word(payload.get("response_id")))


def _completed(item: dict[str, Any]) -> Iterator[Asked | Gave]:
    kind = text(item.get("type"))
    if kind == "UserMessage" and (said := _text_of(item.get("content")).strip()):
        yield Asked(said)
    elif kind in _ENDED:
        # What it gave stands in a line of its own, which does not say whether it went well.
        ok = item.get("status") == "completed" and not count(item.get("exit_code"))
        yield Gave(word(item.get("id")), ok)


def called(kind: str, payload: dict[str, Any]) -> Called:
    """Return a call of a rollout, with its arguments."""
    given = payload.get("arguments", payload.get("action", payload.get("input")))
    if isinstance(given, str):
        given = parsed(given.encode("utf-8", "replace")) or {"input": given}
    given = mapping(given)
    telling = given.get("cmd", given.get("command"))
    if isinstance(telling, list):
        telling = " ".join(map(text, telling[:CODEX_CALL_WORDS]))
    shown = about({"command": telling} if isinstance(telling, str) else given)
    name = word(payload.get("name")) or kind
    return Called(name, word(payload.get("call_id")) or word(payload.get("id")), shown, given)


def _given(output: object) -> str:
    """What a tool gave, without what Codex says around it."""
    if isinstance(output, list):
        return _text_of(output)
    if not isinstance(output, str):
        return json.dumps(output, ensure_ascii=False) if output is not None else ""
    return _AROUND.sub(lambda found: found[1] or "", text(output), count=1)


def _text_of(content: object) -> str:
    blocks = map(mapping, content if isinstance(content, list) else ())
    return "\n".join(filter(None, (text(block.get("text")) for block in blocks)))
