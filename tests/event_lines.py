"""One line of the log for each kind of event, with all of its fields. These lines never change."""

from pathlib import Path
from types import ModuleType

import msgspec

from rekindle.documents.events import Event

_FILE = Path(__file__).parent / "unit/documents/events/lines.jsonl"
LINES = {msgspec.json.decode(line)["kind"]: line for line in _FILE.read_bytes().splitlines()}


def list_kinds(module: ModuleType) -> list[type[Event]]:
    """Return the kinds of event that a module defines."""
    return [
        thing
        for thing in vars(module).values()
        if isinstance(thing, type)
        and issubclass(thing, Event)
        and thing.__module__ == module.__name__
        and thing.__struct_config__.tag != thing.__name__
    ]


def find_line(kind: type[Event]) -> bytes:
    """Return the line of a kind, which must have all of its fields."""
    line = LINES[str(kind.__struct_config__.tag)]
    names = {field.encode_name for field in msgspec.structs.fields(kind)} - {"more"}
    assert set(msgspec.json.decode(line)) == names | {"kind"}
    return line
