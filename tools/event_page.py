"""The reference page of events, made from their types and the texts beside their fields."""

import ast
import re
from datetime import datetime
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import msgspec

from rekindle.documents import events
from rekindle.formats import validation

_NAMES = {
    str: "text",
    int: "integer",
    float: "number",
    bool: "true or false",
    datetime: "time",
    Any: "any value",
    type(None): "null",
}
_COMMON = {
    "agent": "Name of the agent.",
    "cycle": "Number of the cycle.",
    "harness": "Name of the harness.",
    "host": "Name of the host.",
    "id": "Id of the loop.",
    "launch": "Id of the launch.",
    "model": "Name of the model.",
    "question": "Id of the question.",
    "reason": "Reason, as text.",
    "resumes": "Whether the launch resumes an earlier session.",
    "run_usd": "Dollars that the run has spent so far.",
    "seconds": "Duration in seconds.",
    "session": "Id of the session.",
    "tool": "Name of the tool.",
    "unpriced": "Number of launches of the run whose cost is unknown.",
    "visitor": "Whether this is a person's own session beside a supervised one.",
    "why": "Reason code, as in the [outcomes of a run](exit-codes.md#outcomes-of-a-run).",
    "window": "Size of the window in tokens; null if unknown.",
    "words": "Explanation, as text for people.",
}
"""Meanings of fields that several kinds have; a field's own text comes first."""
_HEAD = f"""\
# Events

`rekindle events --json` and `rekindle run --json` print one event per line, as JSON:

```json
{{"v":{events.SCHEMA},"agent":"trades","seq":412,"gen":3,"ts":"2026-04-09T12:00:00.000000Z",\
"kind":"cycle.started","cycle":7}}
```

An agent's `ops.jsonl` contains the same lines without `agent`. The commands round seconds to 0.001
and dollars (fields that end with `usd`) to 0.0001. `run --json` prints only the events of its run,
in the order of the log. Warnings go to standard error, and the [exit code](exit-codes.md) shows how
the run ended.

Kinds and fields keep their names and meanings within a version `v`. Later releases may add kinds
and fields, so ignore those that you do not know. A field with its default value is left out.

Every event has these fields:

| field | type | meaning |
|---|---|---|
| `v` | integer | The version of this schema. |
| `agent` | text | The agent; only in printed lines, and in `agent.created`. |
| `seq` | integer | Its place in the log, from 1 without a gap. |
| `gen` | integer | The generation of the writer; it goes up when another host takes over. |
| `ts` | time | When it happened: RFC 3339, in UTC. |
| `kind` | text | What happened: one of the kinds below. |
| `at` | text | The inbox record that it came from, if it came from one. |
"""


def page() -> str:
    meanings: dict[str, dict[str, str]] = {}
    for module in Path(events.__file__).parent.glob("*.py"):
        meanings |= read_meanings(module)
    parts = [_HEAD, "| kind | meaning |", "|---|---|"]
    parts += [
        f"| [`{_tag(kind)}`](#{_anchor(kind)}) | {kind.summary} |" for kind in events.EVENT_KINDS
    ]
    for kind in events.EVENT_KINDS:
        parts += ["", f"## {_tag(kind)}", "", kind.summary, *_fields(kind, meanings)]
    return "\n".join(parts) + "\n"


def _fields(kind: type[events.Event], meanings: dict[str, dict[str, str]]) -> list[str]:
    """Return the table of a kind's own fields."""
    frame = set(validation.list_fields(events.Event))
    hints = validation.list_fields(kind)
    rows = []
    for field in msgspec.structs.fields(kind):
        if field.encode_name in frame:
            continue
        texts = (meanings.get(one.__name__, {}).get(field.name) for one in kind.__mro__)
        meaning = next(filter(None, texts), None) or _COMMON[field.name]
        meaning = re.sub(r"\bNone\b", "null", meaning)
        default = "required" if field.required else f"`{_default(field)}`"
        name = _type(hints[field.encode_name])
        rows.append(f"| `{field.encode_name}` | {name} | {default} | {meaning} |")
    head = ["", "| field | type | default | meaning |", "|---|---|---|---|"]
    return [*head, *rows] if rows else ["", "It has no fields of its own."]


def _default(field: msgspec.structs.FieldInfo) -> str:
    value = field.default
    if value is msgspec.NODEFAULT:
        value = field.default_factory() if callable(field.default_factory) else None
    return msgspec.json.encode(value).decode()


def _type(annotation: Any) -> str:
    """Return an annotation in words."""
    if annotation in _NAMES:
        return _NAMES[annotation]
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin in {Union, UnionType}:
        return " or ".join(map(_type, inner))
    if origin is Literal:
        return " or ".join(f"`{one}`" for one in inner)
    if origin is tuple:
        return f"list of {_type(inner[0])}"
    if origin is dict:
        return f"object of {_type(inner[1])}"
    if validation.find_struct(annotation):
        return f"object ({', '.join(f'`{name}`' for name in validation.list_fields(annotation))})"
    raise TypeError(f"{annotation}: say in _NAMES what it is called")


def _tag(kind: type[events.Event]) -> str:
    return str(kind.__struct_config__.tag)


def _anchor(kind: type[events.Event]) -> str:
    return _tag(kind).replace(".", "")


def read_meanings(source: Path) -> dict[str, dict[str, str]]:
    """Return the text behind each field of each class, on one line."""
    found: dict[str, dict[str, str]] = {}
    for node in ast.parse(source.read_text(encoding="utf-8")).body:
        if not isinstance(node, ast.ClassDef):
            continue
        for field, text in zip(node.body, node.body[1:], strict=False):
            match field, text:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(words))),
                ):
                    found.setdefault(node.name, {})[name] = " ".join(words.split())
    return found
