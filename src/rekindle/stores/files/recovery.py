"""Recovery: compare the readers' files with the log and fix the differences.

Files are compared by hash. A file that equals the last commit is clean. A file that equals the
commit before the last one shows a crash between commit and replace: recovery rolls it forward. Any
other file was edited. Usable text is adopted with a new event; unusable text is set aside as
`*.rejected`, the last commit is restored, and an event records this. No edit is discarded. Text
with a newer schema is also set aside: a newer Rekindle would have committed it to the log, so an
agent may have forged it.
"""

from collections.abc import Callable

from rekindle.documents import (
    brief,
    checkpoint,
)
from rekindle.documents import relay as relays
from rekindle.errors import CheckFailedError, DocumentError, OversizedError
from rekindle.formats import json_codec
from rekindle.policy.projection.projection import Projection
from rekindle.stores.files.writer import Writer
from rekindle.system.files import durable_files

BY_HAND = "person"
BY_AGENT = "agent-edit"
"""Author to record for an edit that one of the agent's processes may have made."""


def recover_files(writer: Writer, *, is_first: bool = True) -> None:
    """Clean up after a killed writer, and adopt edits made by hand.

    The archive grows without bound, so only the first writer in a process sweeps it.
    """
    grown = (writer.folder.archive,) if is_first else ()
    private = (writer.folder.private.path,) if writer.folder.private else ()
    for folder in (writer.folder.path, writer.folder.memories, *private, *grown):
        durable_files.sweep_temporary(folder)
    for name, adopt in (
        ("relay", lambda data, by: writer.commit_relay(relays.parse(data), by=by)),
        ("checkpoint", lambda data, by: writer.commit_checkpoint(checkpoint.parse(data), by=by)),
        ("brief", lambda data, by: writer.commit_brief(brief.parse(data), by=by)),
    ):
        _recover_document(writer, name, adopt)


def _recover_document(writer: Writer, name: str, adopt: Callable[[bytes, str], object]) -> None:
    path = writer.folder.document(name)
    committed = writer.projection.documents.get(name)
    try:
        data = durable_files.read_bytes(path)
    except OversizedError as error:
        writer.set_aside(name, path, error.reason, is_plain=False)
        data = None
    if data is None:
        if committed:
            _restore(writer, name)
        return
    digest = json_codec.hash_bytes(data)
    if committed and digest == committed.sha256:
        return
    if committed and digest == committed.previous:
        _restore(writer, name)
        return
    try:
        adopt(data, author_of_edit(writer.projection))
    except (DocumentError, CheckFailedError) as unusable:
        writer.set_aside(name, path, str(unusable))
        if committed:
            _restore(writer, name)


def author_of_edit(projection: Projection) -> str:
    """Return the author to record for an edit of a file in the workspace.

    The author is a person only before the agent's first launch and session, because a process of
    the agent may outlive both if a `keep:` pattern permits it.
    """
    return BY_AGENT if projection.attempts or projection.lives else BY_HAND


def _restore(writer: Writer, name: str) -> None:
    """Restore the last commit's bytes from the archive, unless the archived copy does not match."""
    committed = writer.projection.documents[name]
    data = durable_files.read_bytes(writer.folder.path / committed.path)
    if data is not None and json_codec.hash_bytes(data) == committed.sha256:
        durable_files.replace_file(writer.folder.document(name), data)
