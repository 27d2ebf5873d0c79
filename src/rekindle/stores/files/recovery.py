"""Recovery: hold the readers' files against the log, and mend the difference.

By hash. A file equal to the last commit is clean; equal to the one before, the crash came between
commit and replace: roll forward. Neither: a person edited it, or the agent, if a process of it runs
or was not seen to end. The text is adopted as an event of its own if it can be used; else it is set
aside as `*.rejected`, the last commit is restored, and an event says so. No edit is thrown away.
"""

from collections.abc import Callable

from rekindle.documents import brief, checkpoint, jsontext
from rekindle.documents import relay as relays
from rekindle.errors import CheckFailedError, DocumentError, NewerSchemaError, OversizedError
from rekindle.stores.files.writer import Writer
from rekindle.system import disk

BY_HAND = "person"
BY_AGENT = "agent-edit"
"""The author of a relay whose file changed while a process of the agent ran."""


def recover(writer: Writer, *, is_first: bool = True) -> None:
    """Mend what a killed writer left, and take over what was edited by hand.

    The archive grows without end: it is looked through by a process's first writer only.
    """
    grown = (writer.folder.archive,) if is_first else ()
    private = (writer.folder.private.path,) if writer.folder.private else ()
    for folder in (writer.folder.path, writer.folder.memories, *private, *grown):
        disk.sweep_temporary(folder)
    _document(writer, "relay", _adopt_relay)
    _document(writer, "checkpoint", _adopt_checkpoint)
    _document(writer, "brief", _adopt_brief)


def _document(writer: Writer, name: str, adopted: Callable[[Writer, bytes], None]) -> None:
    path = writer.folder.document(name)
    standing = writer.projection.documents.get(name)
    try:
        data = disk.read(path)
    except OversizedError as error:
        writer.set_aside(name, path, error.reason, is_plain=False)
        data = None
    if data is None:
        if standing:
            _restore(writer, name)
        return
    found = jsontext.fingerprint(data)
    if standing and found == standing.sha256:
        return
    if standing and found == standing.previous:
        _restore(writer, name)
        return
    try:
        adopted(writer, data)
    except NewerSchemaError:
        raise
    except (DocumentError, CheckFailedError) as unusable:
        writer.set_aside(name, path, str(unusable))
        if standing:
            _restore(writer, name)


def _adopt_relay(writer: Writer, data: bytes) -> None:
    runs = any(not one.exit for one in writer.projection.attempts.values())
    writer.commit_relay(relays.parse(data), by=BY_AGENT if runs else BY_HAND)


def _adopt_checkpoint(writer: Writer, data: bytes) -> None:
    writer.commit_checkpoint(checkpoint.parse(data), by=BY_HAND)


def _adopt_brief(writer: Writer, data: bytes) -> None:
    writer.commit_brief(brief.parse(data), by=BY_HAND)


def _restore(writer: Writer, name: str) -> None:
    """Put the last commit's bytes back from the archive; a copy that does not match stays out."""
    standing = writer.projection.documents[name]
    kept = disk.read(writer.folder.path / standing.path)
    if kept is not None and jsontext.fingerprint(kept) == standing.sha256:
        disk.replace(writer.folder.document(name), kept)
