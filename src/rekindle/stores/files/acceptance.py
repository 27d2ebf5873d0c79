"""Acceptance: the operator takes a log that is not as sealed for the agent's log.

The agent can write to its log and to every other file of its workspace, and can make them agree.
Only the user's own folder tells which lines Rekindle wrote: the records of the seal, and the
snapshot. Lines that they confirm stay; every other line is set aside. If they confirm none, as in a
project from another host, the lines stay, without those that decide in the operator's place.
"""

import os
from collections.abc import Iterator
from datetime import datetime

import msgspec

from rekindle.documents import event as events
from rekindle.errors import DocumentError, NewerSchemaError
from rekindle.policy.budget import Spent
from rekindle.policy.fold import Projection
from rekindle.stores.files import log, seal, snapshot, spending
from rekindle.stores.files.layout import AgentFolder
from rekindle.stores.files.seal import Place, Seal
from rekindle.stores.files.snapshot import Snapshot
from rekindle.stores.files.view import View, made_at
from rekindle.system import disk

_DECISIONS = (
    *events.OPERATOR_COMMANDS,
    events.QuestionAsked,  # at its deadline its default counts as the answer
    events.AgentReceived,  # it holds all of these
    events.Unrecognised,  # a later Rekindle may know it as one of these
)
_OPERATORS = "operator/"
"""What the names of the operator's segments begin with: a forged place hides a real command."""


def accept(folder: AgentFolder, seen: View, now: datetime) -> str:
    """Seal the log without lines that must not count; return the file that they were moved to.

    The file's name is relative to the agent's folder; it is the log's own if no line was moved. No
    other file of the workspace has a say in it. The caller holds the agent's lock.
    """
    if folder.private is None:
        return ""
    known = snapshot.load_any(folder)
    confirmed = _find_confirmed(folder, seen, known)
    if seen.condition == "missing":
        aside = ""
    elif confirmed.end or known.offset:
        aside = _cut_off(folder, confirmed)
        if known.offset > confirmed.end:
            _continue_from(folder, known, now)
    else:
        aside = _set_decisions_aside(folder)
    reseal(folder)
    # It is of the log that was there before. Until here a second attempt would need it.
    disk.remove(folder.snapshot)
    return aside or folder.log.name


def known_spending(folder: AgentFolder) -> Spent:
    """Return what the run has spent, as far as the user's own folder knows."""
    return spending.load(folder) or snapshot.load_any(folder).projection.run.spent_of_run()


def lost_spending(known: Spent, accepted: Projection, now: datetime) -> events.SpendNoted | None:
    """Return the event that notes spending again which an accepted log leaves out, or None."""
    spent = accepted.run.spent_of_run()
    if known.usd <= spent.usd and known.tokens <= spent.tokens:
        return None
    return events.SpendNoted(
        ts=now,
        launch="",
        usd=max(known.usd, spent.usd),
        tokens=max(known.tokens, spent.tokens),
        unpriced=max(known.unpriced, spent.unpriced),
    )


def _find_confirmed(folder: AgentFolder, seen: View, known: Snapshot) -> Place:
    """Return the last place of the log that the user's own folder confirms; 0: there is none."""
    private = folder.private
    if private is None:
        return Place()
    confirmed = {Place(known.offset, known.chain), *seal.places(private.seal)}
    if seen.condition == "appended":
        # The project may have been moved, used there, and moved back: such a log continues this.
        elsewhere = private.path.parents[2].glob(f"*/agents/{folder.name}/seal")
        confirmed.update(place for path in elsewhere for place in seal.places(path))
    return max(
        (place for place in log.places(folder.log) if place in confirmed),
        key=lambda place: place.end,
        default=Place(),
    )


def _cut_off(folder: AgentFolder, confirmed: Place) -> str:
    """Move all that is behind a place to a file, and return its name; empty: there is nothing."""
    if log.size(folder.log) == confirmed.end:
        return ""
    aside = _free_name(folder, folder.log.name)
    disk.write_from(folder.path / aside, 0, log.pieces(folder.log, confirmed.end))
    disk.cut(folder.log, confirmed.end)
    last = next(log.backwards(folder.log), None)
    if made_at(folder) > (last.event.seq if last else 0):
        # Made from lines that do not count any more. The writer makes another.
        disk.set_aside(folder.state, folder.path / _free_name(folder, folder.state.name))
    return aside


def _continue_from(folder: AgentFolder, known: Snapshot, now: datetime) -> None:
    """Have the log continue from the snapshot, which knows more than the lines that are left."""
    plain = msgspec.to_builtins(known.projection, str_keys=True)
    seq, gen = known.projection.seq, known.projection.gen
    received = events.AgentReceived(ts=now, seq=seq, gen=gen, known=plain)
    log.append(folder.log, [events.render(received)])


def _set_decisions_aside(folder: AgentFolder) -> str:
    """Move the decisions to a file, and return its name; empty: there are none.

    A line without effect takes the place of each: the numbers of the others continue.
    """
    decisions = [line for _, line in log.lines(folder.log, 0) if _rejected(line)]
    if not decisions:
        return ""
    aside = _free_name(folder, folder.log.name)
    disk.write_from(folder.path / aside, 0, decisions)
    cleaned = folder.path / f"{disk.TEMPORARY_PREFIX}{os.urandom(8).hex()}-{folder.log.name}"
    disk.write_from(cleaned, 0, _without_decisions(folder))
    disk.set_aside(cleaned, folder.log)
    return aside


def _without_decisions(folder: AgentFolder) -> Iterator[bytes]:
    for _, line in log.lines(folder.log, 0):
        yield _rejected(line) or line


def _rejected(line: bytes) -> bytes:
    """Return what takes the place of a line that must not count; empty: the line may stay."""
    try:
        event = events.parse(line)
    except NewerSchemaError:
        raise
    except DocumentError:
        return b""  # it counts for nothing as it is
    if not isinstance(event, _DECISIONS) and not event.at.startswith(_OPERATORS):
        return b""
    reason = f"{event.kind}: this line of the log was not sealed"
    instead = events.InboxRejected(
        ts=event.ts, seq=event.seq, gen=event.gen, bytes=len(line), reason=reason
    )
    return events.render(instead) + b"\n"


def reseal(folder: AgentFolder) -> None:
    """Seal the complete lines of the log as they are now."""
    if folder.private is None:
        return
    whole = log.place(folder.log)
    if log.size(folder.log) > whole.end:
        disk.cut(folder.log, whole.end)
    seal.write(folder.private.seal, Seal(whole))


def _free_name(folder: AgentFolder, of: str) -> str:
    number, name = 1, f"{of}.rejected"
    while disk.exists(folder.path / name):
        number += 1
        name = f"{of}.{number}.rejected"
    return name
