"""The view: what readers see, without a lock and without waiting.

The inbox is read before the log. A record that is folded in between is then seen twice, which
changes nothing; read the other way round it could be missed.
"""

import msgspec

from rekindle.documents.event import AnyEvent, RelayProposed, Unrecognised
from rekindle.errors import DocumentError
from rekindle.policy.fold import Projection, fold
from rekindle.stores.files import inbox, log, snapshot
from rekindle.stores.files.inbox import Harnesses, Record, Segment
from rekindle.stores.files.layout import AgentFolder
from rekindle.stores.files.log import BadLine


class View(msgspec.Struct, frozen=True):
    projection: Projection
    """The log, with the inbox laid over it."""
    committed: Projection
    """The log alone."""
    pending: tuple[Record, ...]
    """Records that are acknowledged but not folded yet."""
    proposed: RelayProposed | None
    """A relay that waits in the inbox to be committed."""
    tail: tuple[AnyEvent | Unrecognised, ...]
    """The events since the last snapshot."""
    bad: tuple[BadLine, ...]
    """Lines of the log since the last snapshot that count for nothing."""
    unreadable: int
    """Records of the inbox that count for nothing."""
    end: int
    """Where the next line of the log goes, as far as lines are complete."""
    snapshot_end: int
    """How much of the log the snapshot holds."""


def read(folder: AgentFolder, harnesses: Harnesses) -> View:
    folder.verify()
    waiting = [record for segment in segments(folder) for record in inbox.records(segment)]
    start = snapshot.load(folder)
    tail = log.read(folder.log, start.offset, start.projection.gen)
    committed = fold(start.projection, tail.events)
    pending = pending_records(waiting, committed)
    laid_over: list[AnyEvent | Unrecognised] = []
    unreadable = 0
    for record in pending:
        try:
            event = record.event(harnesses)
        except DocumentError:
            unreadable += 1
        else:
            laid_over += [event] if event is not None else []
    proposed = [event for event in laid_over if isinstance(event, RelayProposed)]
    return View(
        projection=fold(committed, laid_over),
        committed=committed,
        pending=tuple(pending),
        proposed=proposed[-1] if proposed else None,
        tail=tuple(tail.events),
        bad=tuple(tail.bad),
        unreadable=unreadable,
        end=tail.end,
        snapshot_end=start.offset,
    )


def segments(folder: AgentFolder) -> list[Segment]:
    """The inbox, and what hooks had to keep elsewhere."""
    return inbox.segments(folder.inbox) + inbox.spooled(folder.path)


def pending_records(found: list[Record], committed: Projection) -> list[Record]:
    """The records that the log does not hold yet."""
    return [one for one in found if one.end > committed.cursors.get(one.segment, 0)]
