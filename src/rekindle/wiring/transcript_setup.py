"""What was said and done in an agent's sessions."""

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
from rekindle.wiring.access.trust_checks import is_trusted
from rekindle.wiring.open_store import HARNESSES


def read_sessions(
    project: Project, store: FileStore, name: str
) -> Iterator[tuple[ArchivedTranscript, Iterator[Turn]]]:
    """Each session and sub-agent, with its turns: what is kept, and what came since."""
    if not store.exists(name):
        return
    with suppress(BusyError):  # somebody is at it: what is kept by now is shown
        archive_agent(project, store, name)
    kept = TranscriptArchive(store.folder(name).transcripts)
    yield from ((one, kept.turns(one)) for one in kept.all())


def archive_agent(project: Project, store: FileStore, name: str) -> None:
    """Add to the archive what the sessions of an agent have told since."""
    if _is_archived(project) and store.exists(name):
        TranscriptArchiver(store, name, HARNESSES.working()).all()


def archive_sessions(
    project: Project, store: FileStore, name: str, transcript_of: Mapping[str, str]
) -> None:
    """Keep what some of its sessions have told since, by the paths of their transcripts."""
    if _is_archived(project):
        TranscriptArchiver(store, name, HARNESSES.working()).sources(transcript_of)


def _is_archived(project: Project) -> bool:
    """Return whether transcripts are archived: not for a folder that the user has not accepted.

    A cloned repository would have the user's own sessions copied into it.
    """
    return project.settings.runtime.archive.transcripts and is_trusted(project.path)
