"""The record of an agent's processes that the next supervisor could not find by their mark."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from rekindle.formats import validation

_ENDED = "What the session before had left in the background does not run any more:"


class RecordedProcess(msgspec.Struct, frozen=True):
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


class BackgroundRecord(msgspec.Struct, frozen=True):
    launch: str = ""
    program: str = ""
    """The process of the agent itself, in that launch."""
    processes: tuple[RecordedProcess, ...] = ()
    may_control: bool = False
    """What the manifest said at the launch: what the agent writes there since does not count."""

    @property
    def kept(self) -> tuple[RecordedProcess, ...]:
        return tuple(one for one in self.processes if one.is_kept)


def render_ended_list(commands: Sequence[str]) -> str:
    """Return what was ended with a session as a list: quoted, for an agent has written it."""
    from rekindle.documents.summaries.summary import make_quotation  # noqa: PLC0415 - every start would pay

    return "\n".join(f"- {make_quotation('ended with the session', one)}" for one in commands)


def render_ended_notice(commands: Sequence[str]) -> str:
    """Return what the next session is told of them; empty if there were none."""
    return f"{_ENDED}\n{render_ended_list(commands)}" if commands else ""


def parse(data: bytes | None) -> BackgroundRecord:
    """Return the record; an empty one if there is none, or if it cannot be read."""
    try:
        return validation.decode_json(data, BackgroundRecord) if data else BackgroundRecord()
    except msgspec.MsgspecError:
        return BackgroundRecord()


def render(record: BackgroundRecord) -> bytes:
    return validation.encode_json(record)
