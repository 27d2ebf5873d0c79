"""The view: an agent's state as readers see it, without taking a lock.

The inbox is read before the log. A record that is folded in between is then seen twice, which is
harmless. In the opposite order, the record could be missed.
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
    """Projection of the log and the pending inbox records."""
    committed: Projection
    """Projection of the log alone."""
    pending: tuple[InboxRecord, ...]
    """Acknowledged records that are not in the log yet."""
    proposed: RelayProposed | None
    """Relay in the inbox that is not committed yet, or None."""
    start: Projection
    """Projection before `tail`. In a long log, it is later than the snapshot, to save memory."""
    tail: tuple[AnyEvent | UnknownEvent, ...]
    """Events after `start`."""
    bad: tuple[BadLine, ...]
    """Invalid lines since the last snapshot."""
    unreadable: int
    """Number of unreadable inbox records."""
    end: int
    """Byte offset after the log's last complete line."""
    snapshot_end: int
    """Length of the log that the snapshot covers, in bytes."""
    gen: int = 0
    """Generation of the last valid line in the log."""
    anchor: str = ""
    """Fingerprint of the log just before `end`."""
    stamp: tuple[int, ...] | None = None
    """Stamp of the snapshot file when it was read."""
    resolving: tuple[AnyEvent, ...] = ()
    """Events between the snapshot and `start` that resolve loops."""
    chain: str = ""
    """The seal's hash chain up to `end`."""
    condition: seal.LogCondition = "sealed"
    """Result of comparing the log with its seal."""
    has_leftover: bool = False
    """Whether an interrupted append left bytes after `end`, for the next writer to remove."""
    stamps: tuple[object, ...] = ()
    """Stamps of the log and the seal. A tampered log is read again only if one changes."""

    @property
    def is_tampered(self) -> bool:
        """Whether the log differs from the one that Rekindle wrote on this host."""
        return self.condition in seal.TAMPERED_CONDITIONS


def read_view(
    folder: AgentFolder,
    harnesses: HookParsers,
    redaction: Redaction,
    before: AgentView | None = None,
    noted: DesiredSet | None = None,
) -> AgentView:
    """Return the current view of an agent. With `before`, read only the new lines.

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
    """Read the part of the log that its seal covers, and compare the two."""
    if folder.private is None:
        return _read_log(before, folder)
    while True:
        sealed = seal.read_seal(folder.private.seal)
        view = _compare_to_seal(folder, before, sealed) if sealed else _read_unsealed(folder)
        # If a writer appended during the read, the newer seal decides.
        if view.condition == "sealed" or seal.read_seal(folder.private.seal) == sealed:
            return view


def _read_unsealed(folder: AgentFolder) -> AgentView:
    view = _read_log(_make_empty(folder), folder)
    return _set_condition(view, "unsealed" if view.end else "new")


def _compare_to_seal(folder: AgentFolder, before: AgentView, sealed: Seal) -> AgentView:
    # Start over, because the operator may have accepted another log since `before`.
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

    Such lines never count, and the next writer removes them.
    """
    if view.gen <= 1:
        return False  # the agent was never on another host
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
    """Return the projection in safe mode, for a log that does not match its seal."""
    safe = LogPosition(
        projection.seq + 1, TAMPERED_REASON, TamperedLogError(projection.agent, condition).reason
    )
    run = msgspec.structs.replace(projection.run, safe=safe)
    return msgspec.structs.replace(projection, run=run)


def _read_log(before: AgentView, folder: AgentFolder, until: int | None = None) -> AgentView:
    """Extend `before` with the new lines of the log, up to `until`.

    The last two batches stay in memory, because an edit to state.json is compared with the
    projection it was based on. Older events are folded and dropped, because a log without a
    snapshot may not fit in memory.
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
    """Raise an error if the log is missing or empty, but other files show that it existed."""
    if seq := read_state_seq(folder):
        raise LogMissingError(str(folder.path), f"state.json was written at event {seq}")
    if folder.private is None and durable_files.path_exists(folder.snapshot):
        raise LogMissingError(str(folder.path), "a snapshot of it exists")
    if next(durable_files.list_entries(folder.archive), None) is not None:
        raise LogMissingError(str(folder.path), "the archive contains relays or checkpoints")


def _has_only_grown(before: AgentView, folder: AgentFolder) -> bool:
    """Return whether the log has only grown since `before`.

    Otherwise it was replaced, for example from a backup.
    """
    return before.anchor == event_log.compute_anchor(folder.log, before.end)


def _start_from(start: LogSnapshot) -> AgentView:
    """Return the view at the snapshot, before reading the rest of the log."""
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
    """Return the offset up to which a segment is folded.

    If a segment is shorter than its cursor, it was restored from a copy or a broken disk. Its
    content counts as new and is read from the start.
    """
    cursor = committed.cursors.get(segment.name, 0)
    return cursor if cursor <= inbox.measure_segment(segment, default=cursor) else 0


def read_state_seq(folder: AgentFolder) -> int:
    """Return the event number in state.json, or 0 if the file is missing or edited."""
    data = durable_files.read_bytes(folder.state)
    try:
        return state.parse(data).seq if data is not None and state.is_unedited(data) else 0
    except DocumentError:
        return 0  # edited; recovery will handle it


def require_whole_log(folder: AgentFolder, seq: int) -> None:
    """Raise an error if the log ends before the event number in state.json.

    A sealed log is checked against its seal instead, because an agent can edit state.json.
    """
    state_seq = read_state_seq(folder) if folder.private is None else 0
    if state_seq > seq:
        raise DocumentError(
            "ops.jsonl",
            f"ends at event {seq}, but state.json was written at event {state_seq}",
            hint="restore ops.jsonl from a backup; to continue without the lost events, move"
            f" state.json and snapshot.json out of {folder.path}",
        )
