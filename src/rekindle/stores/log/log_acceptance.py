"""Let the operator accept a log that does not match its seal.

The agent can write to its log and to all other files in its workspace. Only the seal and the
snapshot, in the user's folder, show which lines Rekindle wrote. Lines confirmed by either are kept;
all others are set aside. If no line is confirmed, as in a project from another host, all lines are
kept except the operator's decisions.
"""

import os
from collections import deque
from collections.abc import Iterator
from datetime import datetime

import msgspec

from rekindle.documents import events
from rekindle.errors import DocumentError, NewerSchemaError
from rekindle.policy.projection.projection import Projection
from rekindle.policy.supervision.budget import RunSpending
from rekindle.stores.folders import rejected_files, spending_file
from rekindle.stores.folders.agent_folder import AgentFolder
from rekindle.stores.log import (
    event_log,
    question_numbers,
    seal,
    snapshot,
)
from rekindle.stores.log.seal import (
    ChainPosition,
    Seal,
)
from rekindle.stores.log.snapshot import LogSnapshot
from rekindle.stores.log.view import (
    AgentView,
    read_state_seq,
)
from rekindle.system.files import durable_files

_DECISIONS = (
    *events.OPERATOR_COMMANDS,
    events.QuestionAsked,  # its default answer could take effect later
    events.AgentReceived,  # can contain any of these events
    events.UnknownEvent,  # could be one of these in a newer version
)
_OPERATORS = "operator/"
"""Prefix of the operator's segments. A forged cursor for one could hide a real command."""


def accept_log(folder: AgentFolder, current: AgentView, now: datetime) -> str:
    """Set aside the lines that cannot be trusted, and seal the log.

    Return the name of the file with these lines, or of the log if there are none. Other files in
    the workspace are ignored. The caller holds the agent's lock.
    """
    if folder.private is None:
        return ""
    last_snapshot = snapshot.load_any_snapshot(folder)
    confirmed = _find_confirmed(folder, current, last_snapshot)
    question_numbers.keep_accepted(folder, last_snapshot.projection)
    if current.condition == "missing":
        aside = ""
    elif confirmed.end or last_snapshot.offset:
        aside = _cut_off(folder, confirmed)
        if last_snapshot.offset > confirmed.end:
            _continue_from_snapshot(folder, last_snapshot, now)
    else:
        aside = _set_decisions_aside(folder)
    seal_log(folder)
    # Remove the snapshot of the old log last, because a second attempt would need it.
    durable_files.remove_file(folder.snapshot)
    return aside or folder.log.name


def read_known_spending(folder: AgentFolder) -> RunSpending:
    """Return the run's spending as recorded in the user's folder."""
    return (
        spending_file.load_spending(folder)
        or snapshot.load_any_snapshot(folder).projection.run.run_spending()
    )


def find_lost_spending(
    recorded: RunSpending, accepted: Projection, now: datetime
) -> events.SpendRecorded | None:
    """Return an event for spending that is missing from an accepted log, or None."""
    spent = accepted.run.run_spending()
    if recorded.usd <= spent.usd and recorded.tokens <= spent.tokens:
        return None
    return events.SpendRecorded(
        ts=now,
        launch="",
        usd=max(recorded.usd, spent.usd),
        tokens=max(recorded.tokens, spent.tokens),
        unpriced=max(recorded.unpriced, spent.unpriced),
    )


def _find_confirmed(
    folder: AgentFolder, current: AgentView, last_snapshot: LogSnapshot
) -> ChainPosition:
    """Return the last position in the log that records in the user's folder confirm, or 0."""
    private = folder.private
    if private is None:
        return ChainPosition()
    confirmed = {
        ChainPosition(last_snapshot.offset, last_snapshot.chain),
        *seal.read_positions(private.seal),
    }
    if current.condition == "appended":
        # If the project was moved and moved back, its seal at the other path counts too.
        elsewhere = private.path.parents[2].glob(f"*/agents/{folder.name}/seal")
        confirmed.update(position for path in elsewhere for position in seal.read_positions(path))
    return max(
        (position for position in event_log.list_positions(folder.log) if position in confirmed),
        key=lambda position: position.end,
        default=ChainPosition(),
    )


def _cut_off(folder: AgentFolder, confirmed: ChainPosition) -> str:
    """Move everything after a position to a new file. Return its name, or ""."""
    if event_log.measure_log(folder.log) == confirmed.end:
        return ""
    aside = rejected_files.find_free_path(folder.log)
    durable_files.write_from(aside, 0, event_log.read_pieces(folder.log, confirmed.end))
    durable_files.truncate_file(folder.log, confirmed.end)
    last = next(event_log.read_backwards(folder.log), None)
    if read_state_seq(folder) > (last.event.seq if last else 0):
        # state.json was derived from lines that no longer count. The writer creates a new one.
        durable_files.rename_durably(folder.state, rejected_files.find_free_path(folder.state))
    rejected_files.remove_older(folder.log, aside)
    return aside.name


def _continue_from_snapshot(folder: AgentFolder, last_snapshot: LogSnapshot, now: datetime) -> None:
    """Continue the log from the snapshot, which covers more events than the remaining lines."""
    plain = msgspec.to_builtins(last_snapshot.projection, str_keys=True)
    seq, gen = last_snapshot.projection.seq, last_snapshot.projection.gen
    received = events.AgentReceived(ts=now, seq=seq, gen=gen, known=plain)
    event_log.append_lines(folder.log, [events.render(received)])


def _set_decisions_aside(folder: AgentFolder) -> str:
    """Move the operator's decisions to a new file. Return its name, or "".

    Each decision is replaced with a line that has no effect, to keep the event numbers continuous.
    """
    decisions = [line for _, line in event_log.read_lines(folder.log, 0) if _render_rejection(line)]
    if not decisions:
        return ""
    aside = rejected_files.find_free_path(folder.log)
    durable_files.write_from(aside, 0, decisions)
    cleaned = (
        folder.path / f"{durable_files.TEMPORARY_PREFIX}{os.urandom(8).hex()}-{folder.log.name}"
    )
    durable_files.write_from(cleaned, 0, _drop_decisions(folder))
    durable_files.rename_durably(cleaned, folder.log)
    rejected_files.remove_older(folder.log, aside)
    return aside.name


def _drop_decisions(folder: AgentFolder) -> Iterator[bytes]:
    for _, line in event_log.read_lines(folder.log, 0):
        yield _render_rejection(line) or line


def _render_rejection(line: bytes) -> bytes:
    """Return a replacement for a line that cannot be trusted, or b"" to keep the line."""
    try:
        event = events.parse(line)
    except NewerSchemaError:
        raise
    except DocumentError:
        return b""  # an unreadable line has no effect
    if not isinstance(event, _DECISIONS) and not event.at.startswith(_OPERATORS):
        return b""
    reason = f"{event.kind}: this line of the log was not sealed"
    instead = events.InboxRejected(
        ts=event.ts, seq=event.seq, gen=event.gen, bytes=len(line), reason=reason
    )
    return events.render(instead) + b"\n"


def seal_log(folder: AgentFolder) -> None:
    """Seal the complete lines of the log as they are now."""
    if folder.private is None:
        return
    positions = deque(event_log.list_positions(folder.log), maxlen=1)
    last = positions[0] if positions else ChainPosition()
    if event_log.measure_log(folder.log) > last.end:
        durable_files.truncate_file(folder.log, last.end)
    seal.write_seal(folder.private.seal, Seal(last))
