"""A day summary: a summarizer's claims about a stretch of work, before they are verified.

The answer is one JSON object, or, as in Phoenix tools, a brief as text, the line
`===STATE_JSON===`, and an object with the state after it. Of several such lines, the last one
outside a fence counts; earlier ones are quoted input.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec

from rekindle.documents import brief as briefs
from rekindle.documents.brief import BriefLabel
from rekindle.documents.summaries.summary import (
    AnswerFault,
    SummaryItem,
    decode_answer,
    extract_json,
    list_carried_items,
    make_line,
    read_items,
    read_turns,
    require_valid,
)
from rekindle.errors import DocumentError
from rekindle.formats import (
    json_codec,
    outline,
)
from rekindle.thresholds.texts import (
    DAY_NUMBER_CHARACTERS,
    LOOP_ID_CHARACTERS,
    SUMMARY_ITEMS,
    WHOLE_CHARACTERS,
)

STATE_MARKER = "===STATE_JSON==="
SECTIONS = (BriefLabel.CHANGED, BriefLabel.NEXT, BriefLabel.RISK)
"""Sections that the model answers as text; open loops and numbers have forms of their own."""
OPEN, RESOLVED, NUMBERS = "open_loops", "resolved", "numbers"
_FORMS = {OPEN: ("id", "text"), RESOLVED: ("id", "reason"), NUMBERS: ("name", "value")}


class LoopStatement(msgspec.Struct, frozen=True):
    """A claim about a loop: the text of an open one, or the reason why it is resolved."""

    id: str
    text: str
    turns: tuple[int, ...] = ()


class DaySummary(msgspec.Struct, frozen=True):
    changed: tuple[SummaryItem, ...] = ()
    next: tuple[SummaryItem, ...] = ()
    """At most one item."""
    risk: tuple[SummaryItem, ...] = ()
    open: tuple[LoopStatement, ...] = ()
    resolved: tuple[LoopStatement, ...] = ()
    numbers: dict[str, str] = {}


def make_schema() -> str:
    """Return the answer's JSON schema, for a CLI that can enforce one."""
    turns = {"type": "array", "items": {"type": "integer"}, "minItems": 1}
    most = {name: 1 if name is BriefLabel.NEXT else SUMMARY_ITEMS for name in SECTIONS}
    whole = {str(name): _make_list_schema({"text"}, turns, number) for name, number in most.items()}
    whole |= {
        name: _make_list_schema(set(form), turns, SUMMARY_ITEMS) for name, form in _FORMS.items()
    }
    return json_codec.encode(_make_object_schema(whole), "schema").decode()


def _make_list_schema(fields: set[str], turns: dict[str, Any], most: int) -> dict[str, Any]:
    said = {name: {"type": "string"} for name in sorted(fields)}
    return {
        "type": "array",
        "items": _make_object_schema({**said, "turns": turns}),
        "maxItems": most,
    }


def _make_object_schema(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def parse(text: str, turns: frozenset[int]) -> DaySummary:
    """Return a summarizer's answer, checked against the request.

    Raises:
        DocumentError: The answer is unusable; the reason is an `AnswerFault`.
    """
    words, marker, state = _split_at_marker(text)
    return _parse_marked(words, state, turns) if marker else _parse_object(text, turns)


def _parse_object(text: str, turns: frozenset[int]) -> DaySummary:
    found = decode_answer(extract_json(text))
    names = {*SECTIONS, *_FORMS}
    require_valid(AnswerFault.UNKNOWN, holds=set(found) <= names)
    require_valid(AnswerFault.LACKING, holds=set(found) >= names)
    changed, following, risk = (read_items(found[name], turns) for name in SECTIONS)
    require_valid(AnswerFault.NOT_ONE, holds=len(following) <= 1)
    opened, resolved, numbers = (_read_statements(found[name], name, turns) for name in _FORMS)
    return DaySummary(changed, following, risk, opened, resolved, _read_numbers(numbers))


def _read_statements(found: object, name: str, turns: frozenset[int]) -> tuple[LoopStatement, ...]:
    if not isinstance(found, list):
        raise DocumentError("summary", AnswerFault.NO_LIST)
    require_valid(AnswerFault.TOO_MANY, holds=len(found) <= SUMMARY_ITEMS)
    return tuple(_read_statement(each, name, turns) for each in found)


def _read_statement(found: object, name: str, turns: frozenset[int]) -> LoopStatement:
    key, words = _FORMS[name]
    if not isinstance(found, dict) or set(found) != {key, words, "turns"}:
        raise DocumentError("summary", AnswerFault.NO_ITEM)
    if not isinstance(found[key], str) or not isinstance(found[words], str):
        raise DocumentError("summary", AnswerFault.NO_ITEM)
    of = read_turns(found["turns"], turns)
    return LoopStatement(
        make_line(found[key], LOOP_ID_CHARACTERS), make_line(found[words], WHOLE_CHARACTERS), of
    )


def _read_numbers(said: tuple[LoopStatement, ...]) -> dict[str, str]:
    named = {one.id: make_line(one.text, DAY_NUMBER_CHARACTERS) for one in said}
    return {name: value for name, value in named.items() if name and value}


def _split_at_marker(text: str) -> tuple[str, str, str]:
    """Return the text before the last marker outside a fence, the marker, and the text after it."""
    lines = list(outline.mark_prose(text))
    for place in range(len(lines) - 1, -1, -1):
        words, is_prose = lines[place]
        if is_prose and words.strip() == STATE_MARKER:
            before, behind = (
                "".join(one for one, _ in part) for part in (lines[:place], lines[place + 1 :])
            )
            return before, STATE_MARKER, behind
    return text, "", ""


def _parse_marked(words: str, state: str, turns: frozenset[int]) -> DaySummary:
    """Parse the Phoenix form leniently: the tools that taught it know nothing of turns."""
    found = decode_answer(extract_json(state))
    opened = [_read_loosely(one, "text", turns) for one in _require_list(found, OPEN)]
    resolved = [_read_loosely(one, "reason", turns) for one in _require_list(found, RESOLVED)]
    changed, following, risk = _read_sections(words)
    return DaySummary(
        changed,
        following[:1],
        risk,
        tuple(one for one in opened if one.text),
        tuple(one for one in resolved if one.id),
        _read_loose_numbers(found.get(NUMBERS) or {}),
    )


def _require_list(found: dict[str, Any], name: str) -> list[Any]:
    value = found.get(name) or []
    if not isinstance(value, list):
        raise DocumentError("summary", AnswerFault.NO_LIST)
    require_valid(AnswerFault.TOO_MANY, holds=len(value) <= SUMMARY_ITEMS)
    return value


def _read_loosely(found: object, words: str, turns: frozenset[int]) -> LoopStatement:
    if isinstance(found, str):
        return LoopStatement("", make_line(found, WHOLE_CHARACTERS))
    if not isinstance(found, dict):
        raise DocumentError("summary", AnswerFault.NO_ITEM)
    named = found.get("turns")
    of = {one for one in named if type(one) is int} if isinstance(named, list) else set()
    require_valid(AnswerFault.NO_TURN, holds=turns.issuperset(of))
    said = found.get(words)
    text = make_line(said, WHOLE_CHARACTERS) if isinstance(said, str) else ""
    identity = found.get("id")
    known = make_line(identity, LOOP_ID_CHARACTERS) if isinstance(identity, str) else ""
    return LoopStatement(known, text, tuple(sorted(of)))


def _read_loose_numbers(found: object) -> dict[str, str]:
    """Return numbers in the form of state.json, with every value as text."""
    if isinstance(found, list):
        pairs = [(one.get("name"), one.get("value")) for one in found if isinstance(one, dict)]
    elif isinstance(found, dict):
        pairs = list(found.items())
    else:
        raise DocumentError("summary", AnswerFault.NO_ITEM)
    named = {
        make_line(str(name), LOOP_ID_CHARACTERS): make_line(
            _require_text(value), DAY_NUMBER_CHARACTERS
        )
        for name, value in pairs[:SUMMARY_ITEMS]
    }
    return {name: value for name, value in named.items() if name and value}


def _require_text(value: object) -> str:
    return value if isinstance(value, str) else json_codec.encode(value, "summary").decode()


def _read_sections(words: str) -> list[tuple[SummaryItem, ...]]:
    texts = (list_carried_items(_read_content(words, label)) for label in SECTIONS)
    return [
        tuple(SummaryItem(make_line(one, WHOLE_CHARACTERS)) for one in text[:SUMMARY_ITEMS])
        for text in texts
    ]


def _read_content(words: str, label: BriefLabel) -> str:
    # Rekindle sets the date itself, so the answer's own title does not matter.
    with suppress(DocumentError):
        return briefs.parse(f"brief — 2000-01-01\n\n{words}").content(label) or ""
    return ""
