"""A day summary: a summarizer's claims about a period of work, before they are verified.

The answer is one JSON object. As in Phoenix tools, it may also be a brief as text, then the line
`===STATE_JSON===`, then an object with the new state. If there are several such lines, the last one
outside a fence counts, because earlier ones are quoted input.
"""

from contextlib import suppress
from typing import Any

import msgspec

from rekindle.documents import brief as briefs
from rekindle.documents.brief import BriefLabel
from rekindle.documents.summaries.summary import (
    TURNS_SCHEMA,
    AnswerFault,
    SummaryItem,
    decode_answer,
    extract_json,
    list_carried_items,
    make_line,
    make_object_schema,
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
"""Sections that the model writes as text. Open loops and numbers have formats of their own."""
OPEN, RESOLVED, NUMBERS = "open_loops", "resolved", "numbers"
_FORMS = {OPEN: ("id", "text"), RESOLVED: ("id", "reason"), NUMBERS: ("name", "value")}


class LoopStatement(msgspec.Struct, frozen=True):
    """A claim about a loop: its text if it is open, or the reason why it was resolved."""

    id: str
    text: str
    turns: tuple[int, ...] = ()


class DaySummary(msgspec.Struct, frozen=True):
    changed: tuple[SummaryItem, ...] = ()
    next: tuple[SummaryItem, ...] = ()
    """Next action; at most one item."""
    risk: tuple[SummaryItem, ...] = ()
    open: tuple[LoopStatement, ...] = ()
    resolved: tuple[LoopStatement, ...] = ()
    numbers: dict[str, str] = {}


def make_schema() -> str:
    """Return the answer's JSON schema, for a CLI that can enforce one."""
    counts = {name: 1 if name is BriefLabel.NEXT else SUMMARY_ITEMS for name in SECTIONS}
    properties = {str(name): _make_list_schema({"text"}, number) for name, number in counts.items()}
    properties |= {
        name: _make_list_schema(set(form), SUMMARY_ITEMS) for name, form in _FORMS.items()
    }
    return json_codec.encode(make_object_schema(properties), "schema").decode()


def _make_list_schema(fields: set[str], most: int) -> dict[str, Any]:
    texts = {name: {"type": "string"} for name in sorted(fields)}
    return {
        "type": "array",
        "items": make_object_schema({**texts, "turns": TURNS_SCHEMA}),
        "maxItems": most,
    }


def parse(text: str, turns: frozenset[int]) -> DaySummary:
    """Parse a summarizer's answer and check it against the request.

    Raises:
        DocumentError: The answer is unusable. The reason is an `AnswerFault`.
    """
    words, marker, state = _split_at_marker(text)
    return _parse_marked(words, state, turns) if marker else _parse_object(text, turns)


def _parse_object(text: str, turns: frozenset[int]) -> DaySummary:
    answer = decode_answer(extract_json(text))
    names = {*SECTIONS, *_FORMS}
    require_valid(AnswerFault.UNKNOWN, is_valid=set(answer) <= names)
    require_valid(AnswerFault.LACKING, is_valid=set(answer) >= names)
    changed, following, risk = (read_items(answer[name], turns) for name in SECTIONS)
    require_valid(AnswerFault.NOT_ONE, is_valid=len(following) <= 1)
    opened, resolved, numbers = (_read_statements(answer[name], name, turns) for name in _FORMS)
    return DaySummary(changed, following, risk, opened, resolved, _read_numbers(numbers))


def _read_statements(items: object, name: str, turns: frozenset[int]) -> tuple[LoopStatement, ...]:
    if not isinstance(items, list):
        raise DocumentError("summary", AnswerFault.NO_LIST)
    require_valid(AnswerFault.TOO_MANY, is_valid=len(items) <= SUMMARY_ITEMS)
    return tuple(_read_statement(item, name, turns) for item in items)


def _read_statement(item: object, name: str, turns: frozenset[int]) -> LoopStatement:
    key, words = _FORMS[name]
    if not isinstance(item, dict) or set(item) != {key, words, "turns"}:
        raise DocumentError("summary", AnswerFault.NO_ITEM)
    if not isinstance(item[key], str) or not isinstance(item[words], str):
        raise DocumentError("summary", AnswerFault.NO_ITEM)
    sources = read_turns(item["turns"], turns)
    return LoopStatement(
        make_line(item[key], LOOP_ID_CHARACTERS), make_line(item[words], WHOLE_CHARACTERS), sources
    )


def _read_numbers(statements: tuple[LoopStatement, ...]) -> dict[str, str]:
    numbers = {
        statement.id: make_line(statement.text, DAY_NUMBER_CHARACTERS) for statement in statements
    }
    return {name: value for name, value in numbers.items() if name and value}


def _split_at_marker(text: str) -> tuple[str, str, str]:
    """Return the text before the last marker outside a fence, the marker, and the text after it."""
    lines = list(outline.mark_prose(text))
    for place in range(len(lines) - 1, -1, -1):
        line, is_prose = lines[place]
        if is_prose and line.strip() == STATE_MARKER:
            before, behind = (
                "".join(line for line, _ in part) for part in (lines[:place], lines[place + 1 :])
            )
            return before, STATE_MARKER, behind
    return text, "", ""


def _parse_marked(words: str, state: str, turns: frozenset[int]) -> DaySummary:
    """Parse the Phoenix format leniently, because tools that use it do not number turns."""
    answer = decode_answer(extract_json(state))
    opened = [_read_loosely(item, "text", turns) for item in _require_list(answer, OPEN)]
    resolved = [_read_loosely(item, "reason", turns) for item in _require_list(answer, RESOLVED)]
    changed, following, risk = _read_sections(words)
    return DaySummary(
        changed,
        following[:1],
        risk,
        tuple(item for item in opened if item.text),
        tuple(item for item in resolved if item.id),
        _read_loose_numbers(answer.get(NUMBERS) or {}),
    )


def _require_list(answer: dict[str, Any], name: str) -> list[Any]:
    value = answer.get(name) or []
    if not isinstance(value, list):
        raise DocumentError("summary", AnswerFault.NO_LIST)
    require_valid(AnswerFault.TOO_MANY, is_valid=len(value) <= SUMMARY_ITEMS)
    return value


def _read_loosely(item: object, key: str, turns: frozenset[int]) -> LoopStatement:
    if isinstance(item, str):
        return LoopStatement("", make_line(item, WHOLE_CHARACTERS))
    if not isinstance(item, dict):
        raise DocumentError("summary", AnswerFault.NO_ITEM)
    numbers = item.get("turns")
    sources = (
        {turn for turn in numbers if type(turn) is int} if isinstance(numbers, list) else set()
    )
    require_valid(AnswerFault.NO_TURN, is_valid=turns.issuperset(sources))
    value = item.get(key)
    text = make_line(value, WHOLE_CHARACTERS) if isinstance(value, str) else ""
    identity = item.get("id")
    loop_id = make_line(identity, LOOP_ID_CHARACTERS) if isinstance(identity, str) else ""
    return LoopStatement(loop_id, text, tuple(sorted(sources)))


def _read_loose_numbers(source: object) -> dict[str, str]:
    """Return numbers as in state.json, with every value as text."""
    if isinstance(source, list):
        pairs = [(item.get("name"), item.get("value")) for item in source if isinstance(item, dict)]
    elif isinstance(source, dict):
        pairs = list(source.items())
    else:
        raise DocumentError("summary", AnswerFault.NO_ITEM)
    numbers = {
        make_line(str(name), LOOP_ID_CHARACTERS): make_line(
            _require_text(value), DAY_NUMBER_CHARACTERS
        )
        for name, value in pairs[:SUMMARY_ITEMS]
    }
    return {name: value for name, value in numbers.items() if name and value}


def _require_text(value: object) -> str:
    return value if isinstance(value, str) else json_codec.encode(value, "summary").decode()


def _read_sections(words: str) -> list[tuple[SummaryItem, ...]]:
    texts = (list_carried_items(_read_content(words, label)) for label in SECTIONS)
    return [
        tuple(SummaryItem(make_line(item, WHOLE_CHARACTERS)) for item in text[:SUMMARY_ITEMS])
        for text in texts
    ]


def _read_content(words: str, label: BriefLabel) -> str:
    # Rekindle sets the date itself and ignores the title in the answer.
    with suppress(DocumentError):
        return briefs.parse(f"brief — 2000-01-01\n\n{words}").content(label) or ""
    return ""
