"""A summary: a summarizer's account of turns, by section, with each line's source turns.

It is inserted into a document later. Each item is a single line, so it cannot contain a heading, a
fence or one of the document's markers.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Literal

import msgspec

from rekindle.documents.brief import BriefLabel
from rekindle.documents.checkpoint import CheckpointSection
from rekindle.documents.relay import OPTIONAL_FIELDS, RelayField
from rekindle.errors import DocumentError
from rekindle.formats import json_codec
from rekindle.formats.identifiers import (
    strip_invisible,
    to_one_line,
)
from rekindle.thresholds.texts import ITEM_CHARACTERS, SUMMARY_ITEMS, WHOLE_CHARACTERS

SummaryKind = Literal["checkpoint", "relay", "brief"]
SECTIONS: dict[SummaryKind, tuple[str, ...]] = {
    "checkpoint": tuple(CheckpointSection),
    "relay": tuple(field for field in RelayField if field not in OPTIONAL_FIELDS),
    "brief": tuple(BriefLabel),
}
FROM_GIT = {CheckpointSection.MODIFIED_FILES}
"""Sections whose content comes from git instead of a model."""
MAY_BE_EMPTY = frozenset(
    {RelayField.METRICS, RelayField.OPEN_QUESTIONS, RelayField.ACTIVE_PROJECTS, *BriefLabel}
)
"""Sections that may be empty. A brief omits its empty parts."""
ONE_ITEM = frozenset({RelayField.CURRENT_PHASE, RelayField.NEXT_ACTION, BriefLabel.NEXT})
_MARKER = re.compile(r"={2,}\s*\w+\s*={2,}")
"""Text that could be mistaken for one of Rekindle's markers, such as ===STATE_JSON===."""
TURNS_SCHEMA = {"type": "array", "items": {"type": "integer"}, "minItems": 1}
_BULLET = re.compile(r"\A(?:(?:[-*+•]|\d+[.)])\s+)+")
_TURNS = re.compile(r" \(turns? [\d, -]+\)\Z")
_QUOTED = re.compile(r"\A([\w ,-]{1,60}): “([^“”]*)”\Z")
_EARLIER = re.compile(r"\A((?:the|a) [\w -]{1,30}), turn \d+: “")


class SummaryItem(msgspec.Struct, frozen=True):
    text: str
    turns: tuple[int, ...] = ()
    """Numbers of the turns that support the item."""


class Summary(msgspec.Struct, frozen=True):
    kind: SummaryKind
    sections: dict[str, tuple[SummaryItem, ...]]


def list_asked_sections(kind: SummaryKind) -> tuple[str, ...]:
    """Return the sections that the model writes."""
    return tuple(name for name in SECTIONS[kind] if name not in FROM_GIT)


def make_schema(kind: SummaryKind) -> str:
    """Return the answer's JSON schema, for a CLI that can enforce one."""
    item = make_object_schema({"text": {"type": "string"}, "turns": TURNS_SCHEMA})
    lists = {name: _make_list_schema(item, name) for name in list_asked_sections(kind)}
    return json_codec.encode(make_object_schema(lists), "schema").decode()


def make_object_schema(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON schema for an object with exactly these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _make_list_schema(item: dict[str, Any], name: str) -> dict[str, Any]:
    return {"type": "array", "items": item, "maxItems": 1 if name in ONE_ITEM else SUMMARY_ITEMS}


class AnswerFault(StrEnum):
    """Reasons to refuse an answer. The model receives exactly these texts.

    An answer may repeat words from the transcript. The model must not receive those as if Rekindle
    had written them.
    """

    NOT_JSON = "is not valid JSON"
    NOT_AN_OBJECT = "is not a JSON object"
    TWICE = "has a key twice"
    UNKNOWN = "has sections that were not requested"
    LACKING = "lacks sections that were requested"
    NO_LIST = "has a section that is not a list"
    TOO_MANY = f"has a section with more than {SUMMARY_ITEMS} items"
    NOT_ONE = "has more than one item in a section that allows only one"
    NO_ITEM = "has an item that is not a text with its turns"
    NO_TURN = "has an item that names no existing turn"
    EMPTY = "has an empty section that must not be empty"


def parse(text: str, kind: SummaryKind, turns: frozenset[int]) -> Summary:
    """Parse a summarizer's answer and check it against the request.

    Items are not shortened yet, because the caller first searches them for quotations of the
    transcript.

    Raises:
        DocumentError: The answer is unusable. The reason is an `AnswerFault`.
    """
    answer = decode_answer(extract_json(text))
    names = list_asked_sections(kind)
    require_valid(AnswerFault.UNKNOWN, is_valid=set(answer) <= set(names))
    require_valid(AnswerFault.LACKING, is_valid=set(answer) >= set(names))
    sections = {name: read_items(answer[name], turns) for name in names}
    for name, items in sections.items():
        require_valid(AnswerFault.EMPTY, is_valid=bool(items) or name in MAY_BE_EMPTY)
        require_valid(AnswerFault.NOT_ONE, is_valid=len(items) <= 1 or name not in ONE_ITEM)
    return Summary(kind, sections)


def require_valid(fault: AnswerFault, *, is_valid: bool) -> None:
    if not is_valid:
        raise DocumentError("summary", fault)


def extract_json(text: str) -> bytes:
    """Remove a fence around the whole answer."""
    bare = text.strip()
    if bare.startswith("```") and bare.endswith("```"):
        bare = bare.partition("\n")[2].removesuffix("```")
    return bare.encode("utf-8", "replace")


def decode_answer(data: bytes) -> dict[str, Any]:
    try:
        answer = json_codec.decode(data, "summary")
    except DocumentError as error:
        raise DocumentError("summary", AnswerFault.NOT_JSON) from error
    if not isinstance(answer, dict):
        raise DocumentError("summary", AnswerFault.NOT_AN_OBJECT)
    try:
        json_codec.refuse_repeated_keys(data, "summary")
    except (DocumentError, ValueError, RecursionError) as error:
        raise DocumentError("summary", AnswerFault.TWICE) from error
    return answer


def read_items(items: object, turns: frozenset[int]) -> tuple[SummaryItem, ...]:
    if not isinstance(items, list):
        raise DocumentError("summary", AnswerFault.NO_LIST)
    require_valid(AnswerFault.TOO_MANY, is_valid=len(items) <= SUMMARY_ITEMS)
    return tuple(item for raw in items if (item := _read_item(raw, turns)).text)


def _read_item(item: object, turns: frozenset[int]) -> SummaryItem:
    if not isinstance(item, dict) or set(item) != {"text", "turns"}:
        raise DocumentError("summary", AnswerFault.NO_ITEM)
    if not isinstance(item["text"], str):
        raise DocumentError("summary", AnswerFault.NO_ITEM)
    return SummaryItem(make_line(item["text"], WHOLE_CHARACTERS), read_turns(item["turns"], turns))


def read_turns(named: object, turns: frozenset[int]) -> tuple[int, ...]:
    """Return the turns that an item refers to. There must be at least one, and all must exist."""
    if not isinstance(named, list):
        raise DocumentError("summary", AnswerFault.NO_ITEM)
    sources = tuple(dict.fromkeys(turn for turn in named if type(turn) is int))
    require_valid(AnswerFault.NO_TURN, is_valid=bool(sources) and turns.issuperset(sources))
    return tuple(sorted(sources))


def make_line(text: str, limit: int = ITEM_CHARACTERS) -> str:
    """Return a text as one plain line, without markers or a bullet."""
    bare = to_one_line(strip_invisible(text), limit)
    return _BULLET.sub("", _MARKER.sub(lambda match: match[0].strip("= "), bare))


def make_quotation(whose: str, text: str, limit: int = ITEM_CHARACTERS) -> str:
    """Return a speaker's words as a one-line quotation that the words themselves cannot close."""
    words = make_line(text, min(limit, ITEM_CHARACTERS - len(whose) - len(": “”")))
    words = words.replace("“", "'").replace("”", "'")
    return f"{whose}: “{words}”"


def strip_quotation(text: str) -> str:
    """Return a quotation's words without its source. Other texts are unchanged."""
    match = _QUOTED.match(text)
    return match[2] if match else text


def find_quoted_source(text: str) -> str:
    """Return the source of a quotation, or "" if the text is not a quotation."""
    match = _QUOTED.match(text)
    return match[1] if match else ""


def render_code(path: str) -> str:
    """Return a file name as inline code. The name may be any text."""
    return f"`{make_line(path).replace('`', '´')}`"


def list_carried_items(text: str) -> tuple[str, ...]:
    """Return a section's items from an earlier session, without their turn numbers.

    The numbers refer to the earlier session, so they are meaningless in the next one.
    """
    lines = (make_line(line, WHOLE_CHARACTERS) for line in text.splitlines())
    bare = (make_line(_TURNS.sub("", line)) for line in lines)
    items = (_EARLIER.sub(r"\1, before: “", line) for line in bare)
    return tuple(item for item in items if item and item != "none")


def render_bullets(items: tuple[SummaryItem, ...]) -> str:
    """Return a section's items as bullets, each with its source turns."""
    return "\n".join(f"- {item.text}{_render_turn_range(item.turns)}" for item in items)


def render_sections(summary: Summary, more: Mapping[str, str]) -> dict[str, str]:
    """Return the text of each section. `more` contains sections that the model does not write."""
    texts = {name: render_bullets(items) for name, items in summary.sections.items()} | dict(more)
    return {name: texts[name] for name in SECTIONS[summary.kind] if texts.get(name)}


def _render_turn_range(turns: tuple[int, ...]) -> str:
    """Return turn numbers in short form, such as ` (turns 3, 7-9)`."""
    if not turns:
        return ""
    spans: list[list[int]] = []
    for turn in turns:
        if spans and turn == spans[-1][1] + 1:
            spans[-1][1] = turn
        else:
            spans.append([turn, turn])
    ranges = ", ".join(f"{a}-{b}" if a != b else str(a) for a, b in spans)
    return f" (turn{'s' if len(turns) > 1 else ''} {ranges})"
