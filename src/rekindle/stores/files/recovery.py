"""Compare the files that readers use with the log, and fix any differences.

Files are compared by hash. If a file equals the last commit, it is clean. If it equals the previous
commit, a crash occurred between the two steps, so the file is replaced now. Otherwise, the file was
edited. A valid edit is adopted with a new event. An invalid edit is set aside as `*.rejected`, the
last commit is restored, and an event records this. No edit is lost. A file with a newer schema is
also set aside: a newer Rekindle would have committed it to the log, so an agent may have forged it.
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
"""Author of an edit that one of the agent's processes may have made."""


def recover_files(writer: Writer, *, is_first: bool = True) -> None:
    """Clean up after a killed writer, and adopt manual edits.

    Only the first writer in a process cleans the archive, because the archive keeps growing.
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
            _restore_document(writer, name)
        return
    digest = json_codec.hash_bytes(data)
    if committed and digest == committed.sha256:
        return
    if committed and digest == committed.previous:
        _restore_document(writer, name)
        return
    try:
        adopt(data, author_of_edit(writer.projection))
    except (DocumentError, CheckFailedError) as unusable:
        writer.set_aside(name, path, str(unusable))
        if committed:
            _restore_document(writer, name)


def author_of_edit(projection: Projection) -> str:
    """Return the author to record for an edit to a workspace file.

    Only edits before the agent's first launch or session are attributed to a person. After that,
    one of the agent's background processes may have made them.
    """
    return BY_AGENT if projection.attempts or projection.lives else BY_HAND


def _restore_document(writer: Writer, name: str) -> None:
    """Restore the last commit from the archive, if the archived copy is intact."""
    committed = writer.projection.documents[name]
    data = durable_files.read_bytes(writer.folder.path / committed.path)
    if data is not None and json_codec.hash_bytes(data) == committed.sha256:
        durable_files.replace_file(writer.folder.document(name), data)
