"""Edit JSON in place, keeping unchanged parts byte for byte.

A user's file must keep its numbers, escapes, key order and line endings, which a decoder would
lose. This module therefore locates values in the text, and edits the text itself. If the text has
comments, it locates values in the output of `blank_comments`, where positions are the same.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, NoReturn

import msgspec

from rekindle.errors import DocumentError
from rekindle.thresholds.texts import QUOTED_CHARACTERS

_SPACE = re.compile(r"[ \t\r\n]*")
_SCALAR = re.compile(r"[^,\]}\s]+")
_COMMENT = re.compile(r'"(?:[^"\\]++|\\.)*+"|//[^\r\n]*|/\*.*?\*/', re.DOTALL)
_LAST_COMMA = re.compile(r'"(?:[^"\\]++|\\.)*+"|,(?=[ \t\r\n]*[}\]])', re.DOTALL)
_BETWEEN = " \t\r\n,"
_REST_OF_LINE = re.compile(r"[ \t]*\r?\n")
_DECODER = json.JSONDecoder()
_BYTE_ORDER_MARK = "\ufeff"
DEFAULT_INDENT = "  "


class JsonNode(msgspec.Struct, frozen=True):
    """A JSON value and its position in the text."""

    start: int
    end: int
    kind: str
    """Kind of the value: `object`, `array` or `scalar`."""
    parts: tuple["JsonMember", ...] = ()

    def get(self, key: str) -> "JsonNode | None":
        return next((part.value for part in self.parts if part.key == key), None)


class JsonMember(msgspec.Struct, frozen=True):
    """A member of an object, starting at its key, or an item of an array, without a key."""

    start: int
    end: int
    key: str
    value: JsonNode


class TextEdit(msgspec.Struct, frozen=True):
    start: int
    end: int
    text: str


def blank_comments(text: str) -> str:
    """Replace comments and trailing commas with spaces, so that all positions stay the same."""
    return _LAST_COMMA.sub(_blank_match, _COMMENT.sub(_blank_match, text))


def _blank_match(match: re.Match[str]) -> str:
    """Return spaces for a comment or a comma, or the unchanged text for a string."""
    return match[0] if match[0][0] == '"' else re.sub(r"[^\r\n]", " ", match[0])


def parse(text: str, document: str) -> JsonNode:
    """Return the positions of all values. Refuse invalid JSON and repeated keys."""
    start = len(_BYTE_ORDER_MARK) if text.startswith(_BYTE_ORDER_MARK) else 0
    try:
        json.loads(text[start:], parse_constant=_refuse_number, parse_int=str, parse_float=str)
        return _Scanner(text, document).value(start)
    except json.JSONDecodeError as error:
        raise DocumentError(
            document,
            f"is not valid JSON: line {error.lineno}, {error.msg}",
            hint="correct that line and repeat the command; nothing was changed",
        ) from error
    except (ValueError, RecursionError) as error:
        raise DocumentError(
            document, f"is not valid JSON ({error})", hint="correct it; nothing was changed"
        ) from error


def _refuse_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def find_line(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


class _Scanner:
    """Locates the values in a text that is valid JSON."""

    def __init__(self, text: str, document: str) -> None:
        self.text = text
        self.document = document

    def value(self, place: int) -> JsonNode:
        start = self.after_space(place)
        opening = self.text[start]
        if opening in "{[":
            return self.container(start, "object" if opening == "{" else "array")
        end = self.string(start)[1] if opening == '"' else self.scalar(start)
        return JsonNode(start, end, "scalar")

    def container(self, start: int, kind: str) -> JsonNode:
        parts: list[JsonMember] = []
        keys: set[str] = set()
        place = self.after_space(start + 1)
        while self.text[place] not in "}]":
            key, value_at = ("", place) if kind == "array" else self.key(place, keys)
            value = self.value(value_at)
            parts.append(JsonMember(place, value.end, key, value))
            place = self.after_space(value.end)
            if self.text[place] == ",":
                place = self.after_space(place + 1)
        return JsonNode(start, place + 1, kind, tuple(parts))

    def key(self, place: int, keys: set[str]) -> tuple[str, int]:
        key, end = self.string(place)
        if key in keys:
            raise DocumentError(
                self.document,
                f"line {find_line(self.text, place)} has the key {key[:QUOTED_CHARACTERS]!r} twice",
                hint="keep one of the two keys; nothing was changed",
            )
        keys.add(key)
        return key, self.after_space(end) + 1  # skip the colon

    def string(self, place: int) -> tuple[str, int]:
        return _DECODER.raw_decode(self.text, place)

    def scalar(self, place: int) -> int:
        match = _SCALAR.match(self.text, place)
        return match.end() if match else place

    def after_space(self, place: int) -> int:
        match = _SPACE.match(self.text, place)
        return match.end() if match else place


class JsonStyle(msgspec.Struct, frozen=True):
    """A JSON text's layout: its indentation, line endings and separators."""

    indent: str
    """One level of indentation; empty if everything is on one line."""
    newline: str
    colon: str
    comma: str
    """Separator between two items on the same line."""

    def render(self, value: Any, base: str | None) -> str:
        """Render a value as JSON, indented by `base`, or on one line if `base` is None."""
        separators = (self.comma if base is None else ",", self.colon)
        indent = None if base is None else self.indent or DEFAULT_INDENT
        text = json.dumps(value, ensure_ascii=False, indent=indent, separators=separators)
        return text.replace("\n", self.newline + (base or ""))


def detect_style(text: str, root: JsonNode) -> JsonStyle:
    newline = "\r\n" if "\r\n" in text else "\n"
    if not root.parts:
        return JsonStyle(DEFAULT_INDENT, newline, ": ", ", ")
    colon = ": "
    if root.kind == "object":
        first = root.parts[0]
        end = _DECODER.raw_decode(text, first.start)[1]
        colon = ":" + text[end : first.value.start].partition(":")[2]
    lead = _find_lead(text, root, 0)
    indent = lead.rpartition("\n")[2] if "\n" in lead else ""
    comma = "," if not colon[1:] else ", "
    if not indent and len(root.parts) > 1 and "\n" not in lead:
        comma = "," + _find_lead(text, root, 1)
    return JsonStyle(indent, newline, colon, comma)


def append_members(
    text: str, style: JsonStyle, node: JsonNode, values: Sequence[tuple[str, Any]], depth: int
) -> TextEdit:
    """Return the edit that appends members to an object, or items (with empty keys) to an array.

    New entries use the layout of their neighbours, or that of the file if there are none.
    """
    bare = blank_comments(text)
    if node.parts:
        lead = _find_lead(bare, node, len(node.parts) - 1)
        is_lines = "\n" in lead
        base = lead.rpartition("\n")[2] if is_lines else None
        if is_lines:
            lead = style.newline + (base or "")  # leaves out comment lines before the part
        between = "," + lead if is_lines or len(node.parts) > 1 else style.comma
        rendered = [_render_member(style, key, value, base) for key, value in values]
        at = node.parts[-1].end
        return TextEdit(at, at, "".join(between + member for member in rendered))
    is_lines = bool(style.indent)
    base = style.indent * (depth + 1) if is_lines else None
    rendered = [_render_member(style, key, value, base) for key, value in values]
    start, end = node.start + 1, node.end - 1
    if not is_lines:
        inner = style.comma.join(rendered)
    else:
        before = style.newline + style.indent * (depth + 1)
        inner = before + ("," + before).join(rendered) + style.newline + style.indent * depth
    if text[start:end] != bare[start:end]:  # the container has a comment
        start = len(text[:end].rstrip())
        inner = inner.rstrip() if "\n" in text[start:end] else inner
        end = start
    return TextEdit(start, end, inner)


def remove_members(text: str, node: JsonNode, removed: Sequence[int]) -> list[TextEdit]:
    """Return the edits that remove parts of a container, with their commas and whitespace.

    Comments between the removed parts belong to the user and are kept.
    """
    parts = [node.parts[place] for place in removed]
    if len(removed) == len(node.parts):
        return [_make_removal(text, node.start + 1, node.end - 1, parts)]
    first_kept = next(place for place in range(len(node.parts)) if place not in removed)
    edits = []
    if first_kept:
        edits.append(_make_removal(text, node.parts[0].start, node.parts[first_kept].start, parts))
    return edits + [
        _make_removal(text, node.parts[place - 1].end, node.parts[place].end, [node.parts[place]])
        for place in removed
        if place > first_kept
    ]


def _make_removal(text: str, start: int, end: int, parts: Sequence[JsonMember]) -> TextEdit:
    """Return the edit that removes these parts from a range but keeps the range's comments."""
    bare = _COMMENT.sub(_blank_match, text)  # trailing commas are removed below
    within = [part for part in parts if start <= part.start < end]
    starts, ends = [start, *(part.end for part in within)], [*(part.start for part in within), end]
    gaps = list(zip(starts, ends, strict=True))
    if all(text[a:b].strip(_BETWEEN) == "" for a, b in gaps):
        return TextEdit(start, end, "")
    rest = ""
    for a, b in reversed(gaps):
        if b != end and not text[a:b].strip(_BETWEEN):
            continue
        gap = "".join(text[place] for place in range(a, b) if bare[place] != ",")
        # A line comment needs a line break before any other text.
        is_closed = _REST_OF_LINE.match(rest + text[end:]) and b != end
        rest = (gap.rstrip() if is_closed else gap) + rest
    return TextEdit(start, end, rest)


def apply_edits(text: str, edits: Sequence[TextEdit]) -> str:
    for edit in sorted(edits, key=lambda edit: edit.start, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def _render_member(style: JsonStyle, key: str, value: Any, base: str | None) -> str:
    name = json.dumps(key, ensure_ascii=False) + style.colon if key else ""
    return name + style.render(value, base)


def _find_lead(text: str, node: JsonNode, place: int) -> str:
    """Return the whitespace before one of a container's parts, in a text without comments."""
    start = node.start + 1 if place == 0 else node.parts[place - 1].end
    return text[start : node.parts[place].start].partition(",")[2 if place else 0]
