"""The base class for all events, and events of unknown kinds."""

from datetime import datetime
from typing import Any, ClassVar

import msgspec

SCHEMA = 1


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", omit_defaults=True):
    ts: datetime
    v: int = SCHEMA
    seq: int = 0
    """Position in the log, starting at 1."""
    gen: int = 0
    """Generation of the writer. The log refuses late events from an older generation."""
    at: str = ""
    """`segment:offset` of the inbox record's end, used to avoid folding a record twice."""

    more: dict[str, Any] = {}
    """Unknown fields from an inbox record, which the log stores next to the known ones."""

    summary: ClassVar[str] = ""

    @property
    def kind(self) -> str:
        return str(self.__struct_config__.tag)


class UnknownEvent(msgspec.Struct, frozen=True):
    """Event of a kind that only later versions of Rekindle know."""

    kind: str
    ts: datetime
    seq: int = 0
    gen: int = 0
    at: str = ""
