"""Read and archive an agent's session transcripts."""

from collections.abc import Iterator, Mapping
from contextlib import suppress

from rekindle.config import Project
from rekindle.documents.transcripts.turns import Turn
from rekindle.errors import BusyError
from rekindle.flows.transcripts.archive_transcripts import TranscriptArchiver
from rekindle.stores.files import FileStore
from rekindle.stores.files.transcript_archive import (
    ArchivedTranscript,
    TranscriptArchive,
)
from rekindle.stores.folders.private_files import find_private_project
from rekindle.system.files import durable_files
from rekindle.wiring.access.trust_checks import is_trusted
from rekindle.wiring.open_store import HARNESSES


def read_sessions(
    project: Project, store: FileStore, name: str
) -> Iterator[tuple[ArchivedTranscript, Iterator[Turn]]]:
    """Archive the newest turns, then yield each session and subagent with its turns."""
    if not store.exists(name):
        return
    with suppress(BusyError):  # another process is archiving, so use what is already there
        archive_agent(project, store, name)
    archive = TranscriptArchive(store.folder(name).transcripts)
    yield from ((transcript, archive.turns(transcript)) for transcript in archive.all())


def archive_agent(project: Project, store: FileStore, name: str) -> None:
    """Archive the new turns of an agent's sessions."""
    if _is_archived(project) and store.exists(name):
        TranscriptArchiver(store, name, HARNESSES.working()).all()
        if durable_files.path_exists(find_private_project(project.path).search):
            from rekindle.wiring.search_setup import update_index  # noqa: PLC0415 - loads SQLite

            update_index(project, store, name)


def archive_sessions(
    project: Project, store: FileStore, name: str, transcript_of: Mapping[str, str]
) -> None:
    """Archive the new turns of some sessions. `transcript_of` maps sessions to paths."""
    if _is_archived(project):
        TranscriptArchiver(store, name, HARNESSES.working()).sources(transcript_of)


def _is_archived(project: Project) -> bool:
    """Return whether to archive transcripts, which requires a trusted folder.

    Otherwise, copies of the user's own sessions could end up in a cloned repository.
    """
    return project.settings.runtime.archive.transcripts and is_trusted(project.path)
