"""A summary: what a summarizer makes of turns, section by section, each line with where it is from.

It is no document yet. Each item is one line, so that nothing in it can be a heading, a fence or a
marker of the document that it goes into.
"""

import re
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from rekindle.documents import jsontext
from rekindle.documents.brief import Label
from rekindle.documents.checkpoint import Part
from rekindle.documents.identity import one_line, visible
from rekindle.documents.relay import Field
from rekindle.errors import DocumentError

Kind = Literal["checkpoint", "relay", "brief"]
SECTIONS: dict[Kind, tuple[str, ...]] = {
    "checkpoint": tuple(Part),
    "relay": tuple(Field),
    "brief": tuple(Label),
}
FROM_GIT = {Part.MODIFIED_FILES}
"""What no model is asked for: git knows it."""
MAY_BE_EMPTY = frozenset({Field.METRICS, Field.OPEN_QUESTIONS, Field.ACTIVE_PROJECTS, *Label})
"""Sections of which there may be nothing to say; a brief leaves such a part out."""
ITEM_CHARACTERS = 600
ITEMS = 40
_MARKER = re.compile(r"={2,}\s*\w+\s*={2,}")
"""What could be taken for a marker of ours, as ===STATE_JSON===."""


class Item(msgspec.Struct, frozen=True):
    text: str
    turns: tuple[int, ...] = ()
    """The turns that it was taken from."""


class Summary(msgspec.Struct, frozen=True):
    kind: Kind
    sections: dict[str, tuple[Item, ...]]


def asked(kind: Kind) -> tuple[str, ...]:
    """The sections that a model is asked for."""
    return tuple(name for name in SECTIONS[kind] if name not in FROM_GIT)


def schema(kind: Kind) -> str:
    """The answer's JSON schema, for a CLI that can hold its model to one."""
    turn = {"type": "array", "items": {"type": "integer"}, "minItems": 1}
    item = {
        "type": "object",
        "properties": {"text": {"type": "string"}, "turns": turn},
        "required": ["text", "turns"],
        "additionalProperties": False,
    }
    names = asked(kind)
    whole = {
        "type": "object",
        "properties": {name: {"type": "array", "items": item} for name in names},
        "required": list(names),
        "additionalProperties": False,
    }
    return jsontext.encode(whole, "schema").decode()


def parse(text: str, kind: Kind, turns: frozenset[int]) -> Summary:
    """What a summarizer has answered, held to what it was asked for.

    Raises:
        DocumentError: It is no JSON, has a heading that nobody asked for or lacks one, or an item
            names no turn that it was given.
    """
    found = jsontext.decode(_json_in(text), "summary")
    if not isinstance(found, dict):
        raise DocumentError("summary", "is not a JSON object")
    _refuse_headings(found, kind)
    sections = {name: _items(found[name], name, turns) for name in asked(kind)}
    empty = [name for name, items in sections.items() if not items and name not in MAY_BE_EMPTY]
    if empty:
        raise DocumentError("summary", f"says nothing under {', '.join(empty)}")
    return Summary(kind, sections)


def _json_in(text: str) -> bytes:
    """The object, where a model has put a fence around it; nothing else is looked for."""
    bare = text.strip()
    if bare.startswith("```") and bare.endswith("```"):
        bare = bare.partition("\n")[2].removesuffix("```")
    return bare.encode("utf-8", "replace")


def _refuse_headings(found: dict[str, Any], kind: Kind) -> None:
    known = SECTIONS[kind]
    unknown = [one_line(name, 60) for name in found if name not in known]
    if unknown:
        raise DocumentError("summary", f"has {', '.join(unknown[:5])}, which nobody asked for")
    lacking = [name for name in asked(kind) if name not in found]
    if lacking:
        raise DocumentError("summary", f"lacks {', '.join(lacking)}")


def _items(found: object, section: str, turns: frozenset[int]) -> tuple[Item, ...]:
    if not isinstance(found, list):
        raise DocumentError("summary", f"{section} is no list")
    items = [_item(one, section, turns) for one in found[:ITEMS]]
    return tuple(item for item in items if item.text)


def _item(found: object, section: str, turns: frozenset[int]) -> Item:
    if not isinstance(found, dict) or set(found) != {"text", "turns"}:
        raise DocumentError("summary", f"an item of {section} is not a text with its turns")
    text, named = found["text"], found["turns"]
    if not isinstance(text, str) or not isinstance(named, list):
        raise DocumentError("summary", f"an item of {section} is not a text with its turns")
    of = tuple(dict.fromkeys(one for one in named if type(one) is int))
    if not of or not turns.issuperset(of):
        raise DocumentError("summary", f"an item of {section} names no turn that there is")
    return Item(line(text), tuple(sorted(of)))


def line(text: str) -> str:
    """A text as one line that is nothing but text."""
    bare = one_line(visible(text), ITEM_CHARACTERS)
    return _MARKER.sub(lambda found: found[0].strip("= "), bare)


def bullets(items: tuple[Item, ...]) -> str:
    """The items of a section, a line each, with where they are from."""
    return "\n".join(f"- {item.text}{_from(item.turns)}" for item in items)


def contents(summary: Summary, more: Mapping[str, str]) -> dict[str, str]:
    """The text of each section; `more` is what no model was asked for."""
    made = {name: bullets(items) for name, items in summary.sections.items()} | dict(more)
    return {name: made[name] for name in SECTIONS[summary.kind] if made.get(name)}


def _from(turns: tuple[int, ...]) -> str:
    """As in: (turns 3, 7-9)."""
    if not turns:
        return ""
    spans: list[list[int]] = []
    for turn in turns:
        if spans and turn == spans[-1][1] + 1:
            spans[-1][1] = turn
        else:
            spans.append([turn, turn])
    told = ", ".join(f"{a}-{b}" if a != b else str(a) for a, b in spans)
    return f" (turn{'s' if len(turns) > 1 else ''} {told})"
