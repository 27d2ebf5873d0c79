"""The record of an agent's processes that the next supervisor could not find by their mark."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from rekindle.documents import shape

_ENDED = "What the session before had left in the background does not run any more:"


class Recorded(msgspec.Struct, frozen=True):
    process: str
    """Its number, start, boot and namespace: together they name one process for good."""
    command: str
    """Without secrets, on one line."""
    since: datetime
    """When the supervisor saw it first."""
    is_kept: bool

    @property
    def pid(self) -> int:
        return int(self.process.partition(".")[0])


class Record(msgspec.Struct, frozen=True):
    launch: str = ""
    program: str = ""
    """The process of the agent itself, in that launch."""
    processes: tuple[Recorded, ...] = ()
    may_control: bool = False
    """What the manifest said at the launch: what the agent writes there since does not count."""

    @property
    def kept(self) -> tuple[Recorded, ...]:
        return tuple(one for one in self.processes if one.is_kept)


def list_ended(commands: Sequence[str]) -> str:
    """Return what was ended with a session as a list: quoted, for an agent has written it."""
    from rekindle.documents.summary import quotation  # noqa: PLC0415 - every start would pay

    return "\n".join(f"- {quotation('ended with the session', one)}" for one in commands)


def tell_ended(commands: Sequence[str]) -> str:
    """Return what the next session is told of them; empty if there were none."""
    return f"{_ENDED}\n{list_ended(commands)}" if commands else ""


def parse(data: bytes | None) -> Record:
    """Return the record; an empty one if there is none, or if it cannot be read."""
    try:
        return shape.from_json(data, Record) if data else Record()
    except msgspec.MsgspecError:
        return Record()


def render(record: Record) -> bytes:
    return shape.to_json(record)
