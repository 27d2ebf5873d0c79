"""Records of an agent's processes, for a supervisor that has just started."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from rekindle.formats import validation

_ENDED = "These background processes of the previous session are no longer running:"


class RecordedProcess(msgspec.Struct, frozen=True):
    process: str
    """Pid, start time, boot id and namespace. Together, they identify a process permanently."""
    command: str
    """Command line, redacted and on one line."""
    since: datetime
    """Time at which the supervisor first saw the process."""
    is_kept: bool

    @property
    def pid(self) -> int:
        return int(self.process.partition(".")[0])


class BackgroundRecord(msgspec.Struct, frozen=True):
    launch: str = ""
    program: str = ""
    """Identity of the agent's own process in the launch."""
    processes: tuple[RecordedProcess, ...] = ()
    may_control: bool = False
    """Value of `may_control` when the launch started, so the agent cannot change it later."""

    @property
    def kept(self) -> tuple[RecordedProcess, ...]:
        return tuple(process for process in self.processes if process.is_kept)


def render_ended_list(commands: Sequence[str]) -> str:
    """List the processes that ended with a session. Their names are quoted: an agent chose them."""
    from rekindle.documents.summaries.summary import make_quotation  # noqa: PLC0415 - would slow every start

    return "\n".join(
        f"- {make_quotation('ended with the session', command)}" for command in commands
    )


def render_ended_notice(commands: Sequence[str]) -> str:
    """Return the notice about ended processes for the next session, or "" if there were none."""
    return f"{_ENDED}\n{render_ended_list(commands)}" if commands else ""


def parse(data: bytes | None) -> BackgroundRecord:
    """Parse a record, or return an empty one if the data is missing or invalid."""
    try:
        return validation.decode_json(data, BackgroundRecord) if data else BackgroundRecord()
    except msgspec.MsgspecError:
        return BackgroundRecord()


def render(record: BackgroundRecord) -> bytes:
    return validation.encode_json(record)
