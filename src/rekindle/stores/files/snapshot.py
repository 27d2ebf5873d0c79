"""The snapshot: what the log added up to at some offset, so that a start reads only the tail.

It is a cache. One that is missing, broken, newer than we know, or that does not fit the log any
more is ignored, and the log is read from its beginning.
"""

import msgspec

from rekindle.documents import event as events
from rekindle.documents import jsontext
from rekindle.errors import OversizedError
from rekindle.policy.fold import Projection, pruned
from rekindle.stores.files import inbox, log
from rekindle.stores.files.layout import AgentFolder
from rekindle.system import disk

SCHEMA = 1
KINDS = tuple(str(kind.__struct_config__.tag) for kind in events.KINDS)


class Snapshot(msgspec.Struct, frozen=True):
    v: int
    offset: int
    """How much of the log it holds."""
    anchor: str
    """The fingerprint of the log just before that offset."""
    projection: Projection
    chain: str = ""
    """The seal's chain of hashes up to that offset."""
    kinds: tuple[str, ...] = ()
    """The kinds of event that whoever made it knew: what it did not know, it passed over."""


_decoder = msgspec.json.Decoder(Snapshot)


def empty(folder: AgentFolder) -> Snapshot:
    """Return the snapshot of a log that has no line yet."""
    return Snapshot(SCHEMA, 0, "", Projection(agent=folder.name))


def load(folder: AgentFolder) -> Snapshot:
    """The last snapshot that fits the log, or the empty one."""
    found = load_any(folder)
    fits = found.anchor == log.anchor(folder.log, found.offset)
    return found if fits else empty(folder)


def load_any(folder: AgentFolder) -> Snapshot:
    """Return the last snapshot, whether or not the log is still the one that it was made from."""
    try:
        data = disk.read(folder.snapshot)
    except OversizedError:
        return empty(folder)
    if data is None:
        return empty(folder)
    try:
        found = _decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return empty(folder)
    if found.v != SCHEMA or not set(KINDS) <= set(found.kinds):
        return empty(folder)
    # A folder that was copied goes by its own name.
    own = msgspec.structs.replace(found.projection, agent=folder.name)
    return msgspec.structs.replace(found, projection=own)


def compact(folder: AgentFolder, projection: Projection) -> Projection:
    """Leave out what is long past, and the cursors of segments that are gone.

    A segment whose cursor the log holds existed before: missing now, it was removed.
    """
    present = {segment.name for segment in inbox.of_agent(folder)}
    cursors = {name: end for name, end in projection.cursors.items() if name in present}
    return msgspec.structs.replace(pruned(projection), cursors=cursors)


def save(folder: AgentFolder, projection: Projection, offset: int, chain: str = "") -> None:
    """Write what the log adds up to; cursors of segments that are gone for good are left out."""
    # A removed segment could come back after a power loss, and without its cursor it would be
    # folded again: the removal must be durable first.
    disk.sync_folder(folder.inbox)
    if folder.private is not None:
        disk.sync_folder(folder.private.inbox)
    kept = compact(folder, projection)
    snapshot = Snapshot(SCHEMA, offset, log.anchor(folder.log, offset), kept, chain, KINDS)
    disk.replace(folder.snapshot, jsontext.encode(snapshot, "snapshot.json"))
