"""Acceptance: the operator takes a log that is not as sealed for the agent's log.

The agent can write to its log and to state.json, and can make the two agree. Only what is outside
the workspace, the seal and the snapshot, tells which lines Rekindle wrote. Of all other lines none
counts that decides something in the operator's place, or that begins a budget again.
"""

import os
from collections.abc import Iterator
from datetime import datetime

from rekindle.documents import event as events
from rekindle.errors import DocumentError, NewerSchemaError
from rekindle.policy.budget import Spent
from rekindle.policy.fold import Projection
from rekindle.stores.files import log, seal, snapshot
from rekindle.stores.files.layout import AgentFolder
from rekindle.stores.files.seal import Place, Seal
from rekindle.stores.files.view import View, made_at
from rekindle.system import disk

_DECISIONS = (
    *events.OPERATOR_COMMANDS,
    events.QuestionAsked,  # at its deadline its default counts as the answer
    events.AgentReceived,  # it holds all of these
    events.Unrecognised,  # a later Rekindle may know it as one of these
)
_SPENDING = (events.RunStarted, events.SpendNoted)
_OPERATORS = "operator/"
"""What the names of the operator's segments begin with: a forged place hides a real command."""


def accept(folder: AgentFolder, seen: View) -> str:
    """Seal the log as it is now; return the file, below the agent's folder, that was set aside.

    Lines behind what the seal covers are moved to a file of their own, unless state.json was made
    from them: then the seal may be older than the log, as after a project was moved and moved back,
    or after the user's folder was restored. Such a log, and one that is different from its
    beginning on, is sealed without the decisions in lines that nothing outside the workspace
    confirms. The caller holds the agent's lock.
    """
    if folder.private is None:
        return ""
    if seen.condition == "appended" and made_at(folder) <= seen.committed.seq:
        aside = _free_name(folder)
        disk.write_from(folder.path / aside, 0, log.pieces(folder.log, seen.end))
        disk.cut(folder.log, seen.end)
        seal.write(folder.private.seal, Seal(Place(seen.end, seen.chain)))
        return aside
    confirmed = seen.end if seen.condition == "appended" else _confirmed_by_snapshot(folder)
    aside = _set_decisions_aside(folder, confirmed)
    # The snapshot is of the log that was there before.
    folder.snapshot.unlink(missing_ok=True)
    reseal(folder)
    return aside or folder.log.name


def known_spending(folder: AgentFolder, seen: View) -> Spent:
    """Return what the run had spent, as far as the seal or the snapshot confirms it."""
    known = seen.committed if seen.condition == "appended" else snapshot.load_any(folder).projection
    return known.run.spent_of_run()


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


def _confirmed_by_snapshot(folder: AgentFolder) -> int:
    """Return the end of the lines that are those which the snapshot was made from; 0: none are."""
    kept = snapshot.load(folder)
    is_same = log.place(folder.log, kept.offset) == Place(kept.offset, kept.chain)
    return kept.offset if is_same else 0


def _set_decisions_aside(folder: AgentFolder, confirmed: int) -> str:
    """Move the decisions behind `confirmed` to a file, and return its name; empty: there are none.

    A line without effect takes the place of each: the numbers of the others continue.
    """
    unconfirmed = (line for _, line in log.lines(folder.log, confirmed))
    decisions = [line for line in unconfirmed if _rejected(line, confirmed)]
    if not decisions:
        return ""
    aside = _free_name(folder)
    disk.write_from(folder.path / aside, 0, decisions)
    cleaned = folder.path / f"{disk.TEMPORARY_PREFIX}{os.urandom(8).hex()}-{folder.log.name}"
    disk.write_from(cleaned, 0, _without_decisions(folder, confirmed))
    disk.set_aside(cleaned, folder.log)
    return aside


def _without_decisions(folder: AgentFolder, confirmed: int) -> Iterator[bytes]:
    for offset, line in log.lines(folder.log, 0):
        yield line if offset < confirmed else _rejected(line, confirmed) or line


def _rejected(line: bytes, confirmed: int) -> bytes:
    """Return what takes the place of a line that must not count; empty: the line may stay."""
    try:
        event = events.parse(line)
    except NewerSchemaError:
        raise
    except DocumentError:
        return b""  # it counts for nothing as it is
    # Without any line that is confirmed, nothing else tells what the run has spent.
    kinds = (*_DECISIONS, *_SPENDING) if confirmed else _DECISIONS
    if not isinstance(event, kinds) and not event.at.startswith(_OPERATORS):
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


def _free_name(folder: AgentFolder) -> str:
    number, name = 1, f"{folder.log.name}.rejected"
    while disk.exists(folder.path / name):
        number += 1
        name = f"{folder.log.name}.{number}.rejected"
    return name
