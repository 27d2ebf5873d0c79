"""A day: what a summarizer says of a stretch of work, before any of it is believed.

It answers with one JSON object, or, as Phoenix tools have it, with a brief in words, the line
`===STATE_JSON===`, and an object with the state behind it. Of several such lines the last one
outside a fence counts: the others are things that were read.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec

from rekindle.documents import brief as briefs
from rekindle.documents import jsontext, outline
from rekindle.documents.brief import Label
from rekindle.documents.summary import (
    Fault,
    Item,
    carried,
    decoded,
    items_in,
    json_in,
    line,
    require,
    turns_in,
)
from rekindle.errors import DocumentError
from rekindle.thresholds.texts import (
    DAY_NUMBER_CHARACTERS,
    LOOP_ID_CHARACTERS,
    SUMMARY_ITEMS,
    WHOLE_CHARACTERS,
)

MARKER = "===STATE_JSON==="
SECTIONS = (Label.CHANGED, Label.NEXT, Label.RISK)
"""What it is asked for in words; open loops and numbers have a form of their own."""
OPEN, RESOLVED, NUMBERS = "open_loops", "resolved", "numbers"
_FORMS = {OPEN: ("id", "text"), RESOLVED: ("id", "reason"), NUMBERS: ("name", "value")}


class Said(msgspec.Struct, frozen=True):
    """What is said of a loop: that it is open, in these words, or resolved, for this reason."""

    id: str
    text: str
    turns: tuple[int, ...] = ()


class Day(msgspec.Struct, frozen=True):
    changed: tuple[Item, ...] = ()
    next: tuple[Item, ...] = ()
    """One, or none."""
    risk: tuple[Item, ...] = ()
    open: tuple[Said, ...] = ()
    resolved: tuple[Said, ...] = ()
    numbers: dict[str, str] = {}


def schema() -> str:
    """The answer's JSON schema, for a CLI that can hold its model to one."""
    turns = {"type": "array", "items": {"type": "integer"}, "minItems": 1}
    most = {name: 1 if name is Label.NEXT else SUMMARY_ITEMS for name in SECTIONS}
    whole = {str(name): _list_of({"text"}, turns, number) for name, number in most.items()}
    whole |= {name: _list_of(set(form), turns, SUMMARY_ITEMS) for name, form in _FORMS.items()}
    return jsontext.encode(_object(whole), "schema").decode()


def _list_of(fields: set[str], turns: dict[str, Any], most: int) -> dict[str, Any]:
    said = {name: {"type": "string"} for name in sorted(fields)}
    return {"type": "array", "items": _object({**said, "turns": turns}), "maxItems": most}


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def parse(text: str, turns: frozenset[int]) -> Day:
    """What a summarizer has answered, held to what it was asked for.

    Raises:
        DocumentError: It cannot be used; the reason is a `Fault`.
    """
    words, marker, state = _parted(text)
    return _from_both(words, state, turns) if marker else _from_object(text, turns)


def _from_object(text: str, turns: frozenset[int]) -> Day:
    found = decoded(json_in(text))
    names = {*SECTIONS, *_FORMS}
    require(Fault.UNKNOWN, holds=set(found) <= names)
    require(Fault.LACKING, holds=set(found) >= names)
    changed, following, risk = (items_in(found[name], turns) for name in SECTIONS)
    require(Fault.NOT_ONE, holds=len(following) <= 1)
    opened, resolved, numbers = (_said(found[name], name, turns) for name in _FORMS)
    return Day(changed, following, risk, opened, resolved, _numbers(numbers))


def _said(found: object, name: str, turns: frozenset[int]) -> tuple[Said, ...]:
    if not isinstance(found, list):
        raise DocumentError("summary", Fault.NO_LIST)
    require(Fault.TOO_MANY, holds=len(found) <= SUMMARY_ITEMS)
    return tuple(_one(each, name, turns) for each in found)


def _one(found: object, name: str, turns: frozenset[int]) -> Said:
    key, words = _FORMS[name]
    if not isinstance(found, dict) or set(found) != {key, words, "turns"}:
        raise DocumentError("summary", Fault.NO_ITEM)
    if not isinstance(found[key], str) or not isinstance(found[words], str):
        raise DocumentError("summary", Fault.NO_ITEM)
    of = turns_in(found["turns"], turns)
    return Said(line(found[key], LOOP_ID_CHARACTERS), line(found[words], WHOLE_CHARACTERS), of)


def _numbers(said: tuple[Said, ...]) -> dict[str, str]:
    named = {one.id: line(one.text, DAY_NUMBER_CHARACTERS) for one in said}
    return {name: value for name, value in named.items() if name and value}


def _parted(text: str) -> tuple[str, str, str]:
    """What stands before the last marker outside a fence, that marker, and what stands behind."""
    lines = list(outline.unfenced(text))
    for place in range(len(lines) - 1, -1, -1):
        words, is_prose = lines[place]
        if is_prose and words.strip() == MARKER:
            before, behind = (
                "".join(one for one, _ in part) for part in (lines[:place], lines[place + 1 :])
            )
            return before, MARKER, behind
    return text, "", ""


def _from_both(words: str, state: str, turns: frozenset[int]) -> Day:
    """Lenient where a tool that knows no turns may have learnt to write it."""
    found = decoded(json_in(state))
    opened = [_loosely(one, "text", turns) for one in _list(found, OPEN)]
    resolved = [_loosely(one, "reason", turns) for one in _list(found, RESOLVED)]
    changed, following, risk = _sections(words)
    return Day(
        changed,
        following[:1],
        risk,
        tuple(one for one in opened if one.text),
        tuple(one for one in resolved if one.id),
        _loose_numbers(found.get(NUMBERS) or {}),
    )


def _list(found: dict[str, Any], name: str) -> list[Any]:
    value = found.get(name) or []
    if not isinstance(value, list):
        raise DocumentError("summary", Fault.NO_LIST)
    require(Fault.TOO_MANY, holds=len(value) <= SUMMARY_ITEMS)
    return value


def _loosely(found: object, words: str, turns: frozenset[int]) -> Said:
    if isinstance(found, str):
        return Said("", line(found, WHOLE_CHARACTERS))
    if not isinstance(found, dict):
        raise DocumentError("summary", Fault.NO_ITEM)
    named = found.get("turns")
    of = {one for one in named if type(one) is int} if isinstance(named, list) else set()
    require(Fault.NO_TURN, holds=turns.issuperset(of))
    said = found.get(words)
    text = line(said, WHOLE_CHARACTERS) if isinstance(said, str) else ""
    identity = found.get("id")
    known = line(identity, LOOP_ID_CHARACTERS) if isinstance(identity, str) else ""
    return Said(known, text, tuple(sorted(of)))


def _loose_numbers(found: object) -> dict[str, str]:
    """As state.json has them; whatever they are, they are kept as text."""
    if isinstance(found, list):
        pairs = [(one.get("name"), one.get("value")) for one in found if isinstance(one, dict)]
    elif isinstance(found, dict):
        pairs = list(found.items())
    else:
        raise DocumentError("summary", Fault.NO_ITEM)
    named = {
        line(str(name), LOOP_ID_CHARACTERS): line(_text(value), DAY_NUMBER_CHARACTERS)
        for name, value in pairs[:SUMMARY_ITEMS]
    }
    return {name: value for name, value in named.items() if name and value}


def _text(value: object) -> str:
    return value if isinstance(value, str) else jsontext.encode(value, "summary").decode()


def _sections(words: str) -> list[tuple[Item, ...]]:
    texts = (carried(_content(words, label)) for label in SECTIONS)
    return [
        tuple(Item(line(one, WHOLE_CHARACTERS)) for one in text[:SUMMARY_ITEMS]) for text in texts
    ]


def _content(words: str, label: Label) -> str:
    # When it was is ours to say: whatever title it has is no matter.
    with suppress(DocumentError):
        return briefs.parse(f"brief — 2000-01-01\n\n{words}").content(label) or ""
    return ""
