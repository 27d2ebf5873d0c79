"""An agent's machine-readable state, in the schema that Phoenix tools use.

Unknown fields are kept, both at the top level and in loops. `check` is a hash of the other fields.
If it does not match, a person or another tool has edited the file, and Rekindle adopts the changes.
"""

from datetime import UTC, datetime
from typing import Any

import msgspec

from rekindle.errors import DocumentError
from rekindle.formats import json_codec
from rekindle.formats.identifiers import (
    derive_id,
    to_one_line,
)
from rekindle.thresholds.texts import LOOP_ID_CHARACTERS

SCHEMA = 1
_KNOWN = {"v", "seq", "agent", "last_active", "open_loops", "resolved", "numbers", "check"}
_KNOWN_LOOP = {"id", "text", "added", "stale"}
_KNOWN_RESOLVED = {"id", "reason", "resolved_date"}


class OpenLoop(msgspec.Struct, frozen=True):
    id: str
    text: str
    added: str
    """Day on which the loop was opened, YYYY-MM-DD."""
    stale: bool = False
    extra: dict[str, Any] = {}


class Resolution(msgspec.Struct, frozen=True):
    id: str
    reason: str
    resolved_date: str
    extra: dict[str, Any] = {}


class State(msgspec.Struct, frozen=True):
    agent: str
    seq: int = 0
    """Log position of the last event that is included in the state."""
    last_active: datetime | None = None
    open_loops: tuple[OpenLoop, ...] = ()
    resolved: tuple[Resolution, ...] = ()
    numbers: dict[str, str] = {}
    extra: dict[str, Any] = {}


def parse(data: bytes) -> State:
    """Parse a state. Any field may be missing. Raise DocumentError if the JSON is invalid."""
    raw = json_codec.decode_object(data, "state.json", schema=SCHEMA)
    json_codec.refuse_repeated_keys(data, "state.json")
    seq = raw.get("seq")
    return State(
        agent=_render_text(raw.get("agent")),
        seq=seq if isinstance(seq, int) else 0,
        last_active=parse_time(raw.get("last_active")),
        open_loops=tuple(_parse_open_loop(item) for item in _require_list(raw, "open_loops")),
        resolved=tuple(_parse_resolution(item) for item in _require_list(raw, "resolved")),
        numbers={
            _render_text(key): _render_number(value)
            for key, value in _require_mapping(raw, "numbers").items()
        },
        extra={key: value for key, value in raw.items() if key not in _KNOWN},
    )


def render(state: State) -> bytes:
    body = _to_builtins(state)
    return json_codec.encode_pretty({**body, "check": _compute_check(body)}, "state.json")


def is_unedited(data: bytes) -> bool:
    """Return whether Rekindle wrote these bytes: `check` matches, and no key is repeated."""
    raw = json_codec.decode_object(data, "state.json", schema=SCHEMA)
    encoded = json_codec.encode_pretty(raw, "state.json")
    check = raw.pop("check", None)
    return bool(check == _compute_check(raw)) and encoded == data


def parse_time(value: object) -> datetime | None:
    """Parse an ISO 8601 time, which is in UTC if it has no zone. Return None if it is invalid."""
    if not isinstance(value, str):
        return None
    try:
        time = datetime.fromisoformat(value)
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _compute_check(body: dict[str, Any]) -> str:
    return json_codec.hash_bytes(json_codec.encode(body, "state.json", order="sorted"))[:16]


def _to_builtins(state: State) -> dict[str, Any]:
    active = state.last_active.isoformat().replace("+00:00", "Z") if state.last_active else None
    return {
        "v": SCHEMA,
        "seq": state.seq,
        "agent": state.agent,
        "last_active": active,
        "open_loops": [
            {
                "id": loop.id,
                "text": loop.text,
                "added": loop.added,
                "stale": loop.stale,
                **loop.extra,
            }
            for loop in state.open_loops
        ],
        "resolved": [
            {"id": item.id, "reason": item.reason, "resolved_date": item.resolved_date} | item.extra
            for item in state.resolved
        ],
        "numbers": state.numbers,
        **state.extra,
    }


def _parse_open_loop(item: object) -> OpenLoop:
    if isinstance(item, str):  # People often write a list of plain sentences.
        line = to_one_line(item)
        return OpenLoop(id=derive_id(line), text=line, added="")
    fields = _require_object(item, "open_loops")
    text = to_one_line(_render_text(fields.get("text")))
    return OpenLoop(
        id=to_one_line(_render_text(fields.get("id")), LOOP_ID_CHARACTERS) or derive_id(text),
        text=text,
        added=to_one_line(_render_text(fields.get("added")))[:10],
        stale=fields.get("stale") is True,
        extra={key: value for key, value in fields.items() if key not in _KNOWN_LOOP},
    )


def _parse_resolution(item: object) -> Resolution:
    fields = _require_object(item, "resolved")
    reason = to_one_line(_render_text(fields.get("reason")))
    return Resolution(
        id=to_one_line(_render_text(fields.get("id")), LOOP_ID_CHARACTERS) or derive_id(reason),
        reason=reason,
        resolved_date=to_one_line(_render_text(fields.get("resolved_date")))[:10],
        extra={key: value for key, value in fields.items() if key not in _KNOWN_RESOLVED},
    )


def _require_object(item: object, where: str) -> dict[str, Any]:
    if not isinstance(item, dict):
        raise DocumentError("state.json", f"{where} contains an item that is not an object")
    return item


def _require_list(raw: dict[str, Any], key: str) -> list[Any]:
    value = raw.get(key) or []
    if not isinstance(value, list):
        raise DocumentError("state.json", f"{key} is not a list")
    return value


def _require_mapping(raw: dict[str, Any], key: str) -> dict[str, Any]:
    value = raw.get(key) or {}
    if not isinstance(value, dict):
        raise DocumentError("state.json", f"{key} is not an object")
    return value


def _render_text(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def _render_number(value: object) -> str:
    """Return a number as text. People also write numbers such as $1,000 and -3 %."""
    if isinstance(value, str):
        return value
    return json_codec.encode(value, "state.json").decode()
