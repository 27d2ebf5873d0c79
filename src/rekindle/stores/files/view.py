"""The view: what readers see, without a lock and without waiting.

The inbox is read before the log. A record that is folded in between is then seen twice, which
changes nothing; read the other way round it could be missed.
"""

from contextlib import suppress

import msgspec

from rekindle.documents import state
from rekindle.documents.event import AnyEvent, DesiredSaid, RelayProposed, Unrecognised
from rekindle.errors import DocumentError, LogMissingError, NewerSchemaError, TamperedLogError
from rekindle.policy import loops
from rekindle.policy.fold import Projection, fold
from rekindle.policy.redact.redaction import Redaction
from rekindle.policy.run import TAMPERED, Mark
from rekindle.stores.files import inbox, log, seal, snapshot
from rekindle.stores.files.inbox import Harnesses, Record, Segment
from rekindle.stores.files.layout import AgentFolder
from rekindle.stores.files.log import BadLine
from rekindle.stores.files.seal import Seal
from rekindle.stores.files.snapshot import Snapshot
from rekindle.system import disk
from rekindle.thresholds.storage import BATCH_EVENTS


class View(msgspec.Struct, frozen=True):
    projection: Projection
    """The log, with the inbox laid over it."""
    committed: Projection
    """The log alone."""
    pending: tuple[Record, ...]
    """Records that are acknowledged but not folded yet."""
    proposed: RelayProposed | None
    """A relay that waits in the inbox to be committed."""
    start: Projection
    """The last snapshot, or what the log added up to later: of a long log only the end is kept."""
    tail: tuple[AnyEvent | Unrecognised, ...]
    """The events after `start`."""
    bad: tuple[BadLine, ...]
    """Lines of the log since the last snapshot that count for nothing."""
    unreadable: int
    """Records of the inbox that count for nothing."""
    end: int
    """Where the next line of the log goes, as far as lines are complete."""
    snapshot_end: int
    """How much of the log the snapshot holds."""
    gen: int = 0
    """The generation of the last line that counts."""
    anchor: str = ""
    """The fingerprint of the log just before its end."""
    stamp: tuple[int, ...] | None = None
    """Of the file that the snapshot was read from."""
    resolving: tuple[AnyEvent, ...] = ()
    """Events between the snapshot and `start` that resolve loops."""
    chain: str = ""
    """The seal's chain of hashes up to `end`."""
    condition: seal.Condition = "sealed"
    """How the log compares to its seal."""
    has_leftover: bool = False
    """An append that was cut short left bytes behind `end`: the next writer cuts them off."""
    stamps: tuple[object, ...] = ()
    """Of log and seal, if the log is not as sealed: until they change it need not be read again."""

    @property
    def is_tampered(self) -> bool:
        """Whether the log is not the one that Rekindle wrote on this host."""
        return self.condition in seal.TAMPERED


def read(
    folder: AgentFolder,
    harnesses: Harnesses,
    redaction: Redaction,
    before: View | None = None,
    noted: DesiredSaid | None = None,
) -> View:
    """What is known now; `before`: from what was known then, so that only what is new is read.

    `noted` is a stop that is kept outside the folder and may not be in the log.
    """
    folder.verify()
    waiting = [(segment, list(inbox.records(segment))) for segment in inbox.of_agent(folder)]
    stamp = disk.stamp(folder.snapshot)
    if before is None or before.stamp != stamp or not _goes_on(before, folder):
        before = _as_of(snapshot.load(folder))
    stamps = (disk.stamp(folder.log), disk.stamp(folder.private.seal)) if folder.private else ()
    if before.is_tampered and before.stamps == stamps:
        known = before
    else:
        known = _held_to_seal(folder, before)
    committed = known.committed
    pending: list[Record] = []
    for segment, records in waiting:
        done = folded_up_to(segment, committed)
        pending += [record for record in records if record.end > done]
    laid_over: list[AnyEvent | Unrecognised] = [noted] if noted else []
    unreadable = 0
    for record in pending:
        try:
            event = record.event(harnesses, redaction)
        except DocumentError:
            unreadable += 1
        else:
            laid_over += [event] if event is not None else []
    proposed = [event for event in laid_over if isinstance(event, RelayProposed)]
    projection = fold(committed, laid_over)
    if known.is_tampered:
        projection = _in_safe_mode(projection, known.condition)
    return msgspec.structs.replace(
        known,
        projection=projection,
        pending=tuple(pending),
        proposed=proposed[-1] if proposed else None,
        unreadable=unreadable,
        anchor=log.anchor(folder.log, known.end),
        stamp=stamp,
        stamps=stamps,
    )


def _held_to_seal(folder: AgentFolder, before: View) -> View:
    """Read the log as far as its seal covers it, and compare the two."""
    if folder.private is None:
        return _read_log(before, folder)
    while True:
        sealed = seal.load(folder.private.seal)
        known = _compared(folder, before, sealed) if sealed else _unsealed(folder)
        # A writer may have appended while the log was read: then it is judged by the newer seal.
        if known.condition == "sealed" or seal.load(folder.private.seal) == sealed:
            return known


def _unsealed(folder: AgentFolder) -> View:
    known = _read_log(_empty(folder), folder)
    return _judged(known, "unsealed" if known.end else "new")


def _compared(folder: AgentFolder, before: View, sealed: Seal) -> View:
    # From the beginning if need be: the operator may have accepted another log since `before`.
    for start in (before, _empty(folder)):
        for place in sealed.places:
            known = _read_log(start, folder, place.end)
            if (known.end, known.chain) == (place.end, place.chain):
                size = log.size(folder.log)
                is_longer = size > sealed.places[0].end and not _is_fenced(folder, known, size)
                condition: seal.Condition = "appended" if is_longer else "sealed"
                return _judged(known, condition, has_leftover=size > place.end)
    return _judged(before, "rewritten" if log.size(folder.log) else "missing")


def _is_fenced(folder: AgentFolder, known: View, size: int) -> bool:
    """Whether all that is behind `known` is what a host wrote after it had lost the agent.

    Such lines never count, whatever they say: the next writer cuts them off.
    """
    if known.gen <= 1:
        return False  # no other host ever had it
    end = known.end
    for batch in log.read_batches(folder.log, known.end, known.gen, known.committed.seq):
        if batch.events or any(line.is_damaged for line in batch.bad):
            return False
        end = batch.end
    return end == size


def _judged(known: View, condition: seal.Condition, *, has_leftover: bool = False) -> View:
    return msgspec.structs.replace(known, condition=condition, has_leftover=has_leftover)


def _empty(folder: AgentFolder) -> View:
    return _as_of(snapshot.empty(folder))


def _in_safe_mode(projection: Projection, condition: seal.Condition) -> Projection:
    """Show an agent with a log that is not as sealed in safe mode, whatever that log says."""
    safe = Mark(projection.seq + 1, TAMPERED, TamperedLogError(projection.agent, condition).reason)
    run = msgspec.structs.replace(projection.run, safe=safe)
    return msgspec.structs.replace(projection, run=run)


def _read_log(before: View, folder: AgentFolder, until: int | None = None) -> View:
    """Add what the log holds behind `before`, at most up to `until`.

    The last two batches stay as they are: an edit of state.json is compared with what was known
    when the file was made. Older events are folded and dropped, because a log without a snapshot
    may be larger than the memory.
    """
    start, committed, end, gen = before.start, before.committed, before.end, before.gen
    chain = before.chain if folder.private else None
    resolving, bad = list(before.resolving), list(before.bad)
    older: list[AnyEvent | Unrecognised] = []
    newer, newer_start = list(before.tail), start
    for batch in log.read_batches(folder.log, end, gen, committed.seq, chain, until):
        if len(newer) >= BATCH_EVENTS:
            resolving += loops.select_resolving(older)
            committed = snapshot.compact(folder, committed)
            start, older = newer_start, newer
            newer_start, newer = committed, []
        committed = fold(committed, batch.events)
        if batch.losses:
            committed = msgspec.structs.replace(committed, loss=batch.losses[-1])
        newer += batch.events
        bad += batch.bad
        end, gen, chain = batch.end, batch.gen, batch.chain
    if end == 0:
        _require_no_trace(folder)
    return msgspec.structs.replace(
        before,
        committed=committed,
        start=start,
        tail=(*older, *newer),
        resolving=tuple(resolving),
        bad=tuple(bad),
        end=end,
        gen=gen,
        chain=chain or "",
    )


def _require_no_trace(folder: AgentFolder) -> None:
    """Refuse a log that is missing or empty if other files show that there was one."""
    data, seq = disk.read(folder.state), 0
    with suppress(DocumentError):
        seq = state.parse(data).seq if data is not None and state.is_ours(data) else 0
    if seq:
        raise LogMissingError(str(folder.path), f"state.json was made at event {seq}")
    if folder.private is None and disk.exists(folder.snapshot):
        raise LogMissingError(str(folder.path), "there is a snapshot of it")
    if next(disk.entries(folder.archive), None) is not None:
        raise LogMissingError(str(folder.path), "the archive holds what it committed")


def _goes_on(before: View, folder: AgentFolder) -> bool:
    """Whether the log has only grown since then.

    Another one may stand in its place: from a backup, or received from elsewhere.
    """
    return before.anchor == log.anchor(folder.log, before.end)


def _as_of(start: Snapshot) -> View:
    """What the snapshot knows, before the log behind it is read."""
    return View(
        projection=start.projection,
        committed=start.projection,
        pending=(),
        proposed=None,
        start=start.projection,
        tail=(),
        bad=(),
        unreadable=0,
        end=start.offset,
        snapshot_end=start.offset,
        gen=start.projection.gen,
        chain=start.chain,
    )


def folded_up_to(segment: Segment, committed: Projection) -> int:
    """How far the log holds a segment.

    One that is shorter than the log knows it came back from a copy or a broken disk: what stands in
    it now is something else, and counts from its beginning.
    """
    cursor = committed.cursors.get(segment.name, 0)
    return cursor if cursor <= inbox.size(segment, gone=cursor) else 0


def made_at(folder: AgentFolder) -> int:
    """Return the event that state.json was made at; 0 if there is none, or an edited one."""
    data = disk.read(folder.state)
    try:
        return state.parse(data).seq if data is not None and state.is_ours(data) else 0
    except NewerSchemaError:
        raise
    except DocumentError:
        return 0  # an edit, which recovery looks at


def require_whole_log(folder: AgentFolder, seq: int) -> None:
    """Refuse to go on where the log ends before what was made from it: it would all be wiped."""
    known = made_at(folder)
    if known > seq:
        raise DocumentError(
            "ops.jsonl",
            f"ends at event {seq}, but state.json was made at event {known}",
            hint="restore ops.jsonl from a backup; to go on without what is lost, move state.json"
            f" and snapshot.json out of {folder.path}",
        )
