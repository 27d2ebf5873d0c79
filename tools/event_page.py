"""Generate the reference page of events from their types and field descriptions."""

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
    "agent": "Agent name.",
    "cycle": "Cycle number.",
    "harness": "Harness name.",
    "host": "Host name.",
    "id": "Loop id.",
    "launch": "Launch id.",
    "model": "Model name.",
    "question": "Question id.",
    "reason": "Reason, as text.",
    "resumes": "Whether the launch resumes an earlier session.",
    "run_usd": "Dollars that the run has spent so far.",
    "seconds": "Duration in seconds.",
    "session": "Session id.",
    "tool": "Tool name.",
    "unpriced": "Number of launches in the run whose cost is unknown.",
    "visitor": "Whether this is a person's own session alongside a supervised one.",
    "why": "Reason code, as listed under [run outcomes](exit-codes.md#outcomes-of-a-run).",
    "window": "Context-window size in tokens, or null if unknown.",
    "words": "Human-readable explanation.",
}
"""Meanings of fields that several kinds share. A field's own description takes precedence."""
_HEAD = f"""\
# Events

`rekindle events --json` and `rekindle run --json` print one event per line, as JSON:

```json
{{"v":{events.SCHEMA},"agent":"trades","seq":412,"gen":3,"ts":"2026-04-09T12:00:00.000000Z",\
"kind":"cycle.started","cycle":7}}
```

An agent's `ops.jsonl` contains the same lines without `agent`. The commands round seconds to 0.001
and dollars (fields that end with `usd`) to 0.0001. `run --json` prints only the events from its own
run, in log order. Warnings go to standard error, and the [exit code](exit-codes.md) shows how the
run ended.

Kinds and fields keep their names and meanings within a version `v`. Later releases may add kinds
and fields, so ignore any that you do not recognize. Fields with their default value are left out.

Every event has these fields:

| field | type | meaning |
|---|---|---|
| `v` | integer | Schema version. |
| `agent` | text | The agent's name. Only in printed lines and in `agent.created`. |
| `seq` | integer | The event's position in the log, counted from 1 without gaps. |
| `gen` | integer | The writer's generation, which increases when another host takes over. |
| `ts` | time | When the event happened, in UTC and RFC 3339 format. |
| `kind` | text | What happened. The table below lists all kinds. |
| `at` | text | The inbox record that the event came from, if there was one. |
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
    return [*head, *rows] if rows else ["", "This event has no other fields."]


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
