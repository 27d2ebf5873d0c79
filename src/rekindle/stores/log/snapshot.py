"""The snapshot: a saved projection, which leaves only the end of the log to read.

A snapshot is a cache. If it is missing, damaged, too new, or does not match the log, the log is
read from the start.
"""

import msgspec

from rekindle.documents import events
from rekindle.errors import OversizedError
from rekindle.formats import json_codec
from rekindle.policy.projection.projection import Projection, prune_projection
from rekindle.stores.folders.agent_folder import AgentFolder
from rekindle.stores.log import (
    event_log,
    inbox,
)
from rekindle.system.files import durable_files

SCHEMA = 2
KNOWN_KINDS = tuple(str(kind.__struct_config__.tag) for kind in events.EVENT_KINDS)


class LogSnapshot(msgspec.Struct, frozen=True):
    v: int
    offset: int
    """Number of log bytes that the snapshot covers."""
    anchor: str
    """Fingerprint of the log just before `offset`."""
    projection: Projection
    chain: str = ""
    """The seal's hash chain up to `offset`."""
    kinds: tuple[str, ...] = ()
    """Event kinds known to the version that wrote the snapshot; others were skipped."""


_decoder = msgspec.json.Decoder(LogSnapshot)


def make_empty_snapshot(folder: AgentFolder) -> LogSnapshot:
    """Return the snapshot of an empty log."""
    return LogSnapshot(SCHEMA, 0, "", Projection(agent=folder.name))


def load_snapshot(folder: AgentFolder) -> LogSnapshot:
    """Return the last snapshot if it matches the log, or an empty one."""
    last = load_any_snapshot(folder)
    fits = last.anchor == event_log.compute_anchor(folder.log, last.offset)
    return last if fits else make_empty_snapshot(folder)


def load_any_snapshot(folder: AgentFolder) -> LogSnapshot:
    """Return the last snapshot, even if it does not match the log."""
    try:
        data = durable_files.read_bytes(folder.snapshot)
    except OversizedError:
        return make_empty_snapshot(folder)
    if data is None:
        return make_empty_snapshot(folder)
    try:
        last = _decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return make_empty_snapshot(folder)
    if last.v != SCHEMA or not set(KNOWN_KINDS) <= set(last.kinds):
        return make_empty_snapshot(folder)
    # A copied folder may have a different agent name.
    renamed = msgspec.structs.replace(last.projection, agent=folder.name)
    return msgspec.structs.replace(last, projection=renamed)


def compact_projection(folder: AgentFolder, projection: Projection) -> Projection:
    """Drop old details, and the cursors of segments that were removed."""
    present = {segment.name for segment in inbox.list_agent_segments(folder)}
    cursors = {name: end for name, end in projection.cursors.items() if name in present}
    return msgspec.structs.replace(prune_projection(projection), cursors=cursors)


def save_snapshot(
    folder: AgentFolder, projection: Projection, offset: int, chain: str = ""
) -> None:
    """Save the projection of the log."""
    # First make the removal of segments durable. A segment that reappeared without its cursor after
    # a power loss would be folded again.
    durable_files.sync_folder(folder.inbox)
    if folder.private is not None:
        durable_files.sync_folder(folder.private.inbox)
    compacted = compact_projection(folder, projection)
    snapshot = LogSnapshot(
        SCHEMA, offset, event_log.compute_anchor(folder.log, offset), compacted, chain, KNOWN_KINDS
    )
    durable_files.replace_file(folder.snapshot, json_codec.encode(snapshot, "snapshot.json"))
