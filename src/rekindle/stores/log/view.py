"""The view: an agent's state for readers, without a lock and without waiting.

The inbox is read before the log. A record that is folded in between is then seen twice, which has
no effect; in the opposite order it could be missed.
"""

import msgspec

from rekindle.documents import state
from rekindle.documents.events import (
    AnyEvent,
    DesiredSet,
    RelayProposed,
    UnknownEvent,
)
from rekindle.errors import DocumentError, LogMissingError, TamperedLogError
from rekindle.policy.projection import open_loops
from rekindle.policy.projection.fold import fold_events
from rekindle.policy.projection.projection import Projection
from rekindle.policy.redact.redaction import Redaction
from rekindle.policy.supervision.run_moves import (
    TAMPERED_REASON,
    LogPosition,
)
from rekindle.stores.folders.agent_folder import AgentFolder
from rekindle.stores.log import (
    event_log,
    inbox,
    seal,
    snapshot,
)
from rekindle.stores.log.event_log import BadLine
from rekindle.stores.log.inbox import (
    HookParsers,
    InboxRecord,
    InboxSegment,
)
from rekindle.stores.log.seal import Seal
from rekindle.stores.log.snapshot import LogSnapshot
from rekindle.system.files import durable_files, file_status
from rekindle.thresholds.storage import BATCH_EVENTS


class AgentView(msgspec.Struct, frozen=True):
    projection: Projection
    """Projection of the log together with the pending inbox records."""
    committed: Projection
    """Projection of the log alone."""
    pending: tuple[InboxRecord, ...]
    """Records that are acknowledged but not yet folded into the log."""
    proposed: RelayProposed | None
    """A relay in the inbox that has not been committed yet, or None."""
    start: Projection
    """Projection before `tail`: the last snapshot's, or a later one if the log is long, because
    only the end of a long log is held in memory.
    """
    tail: tuple[AnyEvent | UnknownEvent, ...]
    """The events after `start`."""
    bad: tuple[BadLine, ...]
    """Lines since the last snapshot that do not count."""
    unreadable: int
    """Number of unreadable inbox records."""
    end: int
    """Offset after the last complete line of the log, in bytes."""
    snapshot_end: int
    """Length of the log that the snapshot covers, in bytes."""
    gen: int = 0
    """Generation of the last log line that counts."""
    anchor: str = ""
    """Fingerprint of the log just before `end`."""
    stamp: tuple[int, ...] | None = None
    """Stamp of the snapshot file when it was read."""
    resolving: tuple[AnyEvent, ...] = ()
    """Events between the snapshot and `start` that resolve loops."""
    chain: str = ""
    """The seal's chain of hashes up to `end`."""
    condition: seal.LogCondition = "sealed"
    """Result of comparing the log with its seal."""
    has_leftover: bool = False
    """Whether an interrupted append left bytes after `end`; the next writer cuts them off."""
    stamps: tuple[object, ...] = ()
    """Stamps of the log and seal; a tampered log is not read again until one of them changes."""

    @property
    def is_tampered(self) -> bool:
        """Return whether the log differs from the one that Rekindle wrote on this host."""
        return self.condition in seal.TAMPERED_CONDITIONS


def read_view(
    folder: AgentFolder,
    harnesses: HookParsers,
    redaction: Redaction,
    before: AgentView | None = None,
    noted: DesiredSet | None = None,
) -> AgentView:
    """Return the agent's current view; if `before`, an earlier view, is given, read only new lines.

    `noted` is a stop that is stored outside the folder and may be missing from the log.
    """
    folder.verify()
    waiting = [
        (segment, list(inbox.read_records(segment)))
        for segment in inbox.list_agent_segments(folder)
    ]
    stamp = file_status.make_file_stamp(folder.snapshot)
    if before is None or before.stamp != stamp or not _has_only_grown(before, folder):
        before = _start_from(snapshot.load_snapshot(folder))
    stamps = (
        (
            file_status.make_file_stamp(folder.log),
            file_status.make_file_stamp(folder.private.seal),
        )
        if folder.private
        else ()
    )
    if before.is_tampered and before.stamps == stamps:
        view = before
    else:
        view = _read_sealed(folder, before)
    committed = view.committed
    pending: list[InboxRecord] = []
    for segment, records in waiting:
        done = find_folded_end(segment, committed)
        pending += [record for record in records if record.end > done]
    pending_events: list[AnyEvent | UnknownEvent] = [noted] if noted else []
    unreadable = 0
    for record in pending:
        try:
            event = record.event(harnesses, redaction)
        except DocumentError:
            unreadable += 1
        else:
            pending_events += [event] if event is not None else []
    proposed = [event for event in pending_events if isinstance(event, RelayProposed)]
    projection = fold_events(committed, pending_events)
    if view.is_tampered:
        projection = _show_safe_mode(projection, view.condition)
    return msgspec.structs.replace(
        view,
        projection=projection,
        pending=tuple(pending),
        proposed=proposed[-1] if proposed else None,
        unreadable=unreadable,
        anchor=event_log.compute_anchor(folder.log, view.end),
        stamp=stamp,
        stamps=stamps,
    )


def _read_sealed(folder: AgentFolder, before: AgentView) -> AgentView:
    """Read the log as far as its seal covers it, and compare the two."""
    if folder.private is None:
        return _read_log(before, folder)
    while True:
        sealed = seal.read_seal(folder.private.seal)
        view = _compare_to_seal(folder, before, sealed) if sealed else _read_unsealed(folder)
        # A writer may have appended during the read; in that case, the newer seal decides.
        if view.condition == "sealed" or seal.read_seal(folder.private.seal) == sealed:
            return view


def _read_unsealed(folder: AgentFolder) -> AgentView:
    view = _read_log(_make_empty(folder), folder)
    return _set_condition(view, "unsealed" if view.end else "new")


def _compare_to_seal(folder: AgentFolder, before: AgentView, sealed: Seal) -> AgentView:
    # Fall back to offset 0, because the operator may have accepted another log since `before`.
    for start in (before, _make_empty(folder)):
        for position in sealed.places:
            view = _read_log(start, folder, position.end)
            if (view.end, view.chain) == (position.end, position.chain):
                size = event_log.measure_log(folder.log)
                is_longer = size > sealed.places[0].end and not _is_fenced(folder, view, size)
                condition: seal.LogCondition = "appended" if is_longer else "sealed"
                return _set_condition(view, condition, has_leftover=size > position.end)
    return _set_condition(before, "rewritten" if event_log.measure_log(folder.log) else "missing")


def _is_fenced(folder: AgentFolder, view: AgentView, size: int) -> bool:
    """Return whether all lines after `view` were written by a host that had lost the agent.

    Such lines never count, and the next writer cuts them off.
    """
    if view.gen <= 1:
        return False  # no other host ever had the agent
    end = view.end
    for batch in event_log.read_batches(folder.log, view.end, view.gen, view.committed.seq):
        if batch.events or any(line.is_damaged for line in batch.bad):
            return False
        end = batch.end
    return end == size


def _set_condition(
    view: AgentView, condition: seal.LogCondition, *, has_leftover: bool = False
) -> AgentView:
    return msgspec.structs.replace(view, condition=condition, has_leftover=has_leftover)


def _make_empty(folder: AgentFolder) -> AgentView:
    return _start_from(snapshot.make_empty_snapshot(folder))


def _show_safe_mode(projection: Projection, condition: seal.LogCondition) -> Projection:
    """Return the projection in safe mode, for an agent whose log does not match its seal."""
    safe = LogPosition(
        projection.seq + 1, TAMPERED_REASON, TamperedLogError(projection.agent, condition).reason
    )
    run = msgspec.structs.replace(projection.run, safe=safe)
    return msgspec.structs.replace(projection, run=run)


def _read_log(before: AgentView, folder: AgentFolder, until: int | None = None) -> AgentView:
    """Extend `before` with the log's new lines, at most up to `until`.

    The last two batches stay in memory, because an edit of state.json is compared with the
    projection from which the file was written. Older events are folded and dropped, because a log
    without a snapshot may not fit in memory.
    """
    start, committed, end, gen = before.start, before.committed, before.end, before.gen
    chain = before.chain if folder.private else None
    resolving, bad = list(before.resolving), list(before.bad)
    older: list[AnyEvent | UnknownEvent] = []
    newer, newer_start = list(before.tail), start
    for batch in event_log.read_batches(folder.log, end, gen, committed.seq, chain, until):
        if len(newer) >= BATCH_EVENTS:
            resolving += open_loops.select_resolving_events(older)
            committed = snapshot.compact_projection(folder, committed)
            start, older = newer_start, newer
            newer_start, newer = committed, []
        committed = fold_events(committed, batch.events)
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
    """Raise an error if the log is missing or empty although other files show that it existed."""
    if seq := read_state_seq(folder):
        raise LogMissingError(str(folder.path), f"state.json was written at event {seq}")
    if folder.private is None and durable_files.path_exists(folder.snapshot):
        raise LogMissingError(str(folder.path), "a snapshot of it exists")
    if next(durable_files.list_entries(folder.archive), None) is not None:
        raise LogMissingError(str(folder.path), "the archive contains relays or checkpoints")


def _has_only_grown(before: AgentView, folder: AgentFolder) -> bool:
    """Return whether the log has only grown since `before`.

    Otherwise it was replaced by another log, such as one from a backup or from another host.
    """
    return before.anchor == event_log.compute_anchor(folder.log, before.end)


def _start_from(start: LogSnapshot) -> AgentView:
    """Return the view at the snapshot, before the rest of the log is read."""
    return AgentView(
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


def find_folded_end(segment: InboxSegment, committed: Projection) -> int:
    """Return the offset up to which a segment is folded into the log.

    If a segment is shorter than its cursor, it was restored from a copy or recovered from a broken
    disk. Its content is then new, and is read from offset 0.
    """
    cursor = committed.cursors.get(segment.name, 0)
    return cursor if cursor <= inbox.measure_segment(segment, gone=cursor) else 0


def read_state_seq(folder: AgentFolder) -> int:
    """Return the number of the event at which state.json was written; 0 if missing or edited."""
    data = durable_files.read_bytes(folder.state)
    try:
        return state.parse(data).seq if data is not None and state.is_unedited(data) else 0
    except DocumentError:
        return 0  # it was edited, which recovery handles


def require_whole_log(folder: AgentFolder, seq: int) -> None:
    """Raise an error if the log ends before the event at which state.json was written.

    A sealed log is confirmed by its seal instead; state.json is not considered, because an agent
    can write to it.
    """
    state_seq = read_state_seq(folder) if folder.private is None else 0
    if state_seq > seq:
        raise DocumentError(
            "ops.jsonl",
            f"ends at event {seq}, but state.json was written at event {state_seq}",
            hint="restore ops.jsonl from a backup; to continue without the lost events, move"
            f" state.json and snapshot.json out of {folder.path}",
        )
