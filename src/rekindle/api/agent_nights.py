"""Read an agent's night, with the project's settings."""

from contextlib import suppress
from datetime import datetime

from rekindle.api.agent_store import AgentStore
from rekindle.config import Project
from rekindle.documents.screens.agent_night import AgentNight
from rekindle.errors import RekindleError
from rekindle.flows.operator.read_night import read_night
from rekindle.policy.handoff import window_rule
from rekindle.policy.night.build_night import NightInputs
from rekindle.stores.files import FileStore
from rekindle.stores.files.transcript_archive import TranscriptArchive
from rekindle.system import clock
from rekindle.wiring import transcript_setup


def read_agent_night(
    project: Project,
    store: AgentStore,
    name: str,
    since: datetime | None = None,
    until: datetime | None = None,
) -> AgentNight:
    """Return what happened to an agent in a period, by default in the last hours.

    A time without a time zone is in the time zone of this process.
    """
    runtime = project.settings.runtime
    entry = project.manifest.agents[project.require_agent(name)]
    inputs = NightInputs(
        now=clock.read_clock(),
        since=since and since.astimezone(),
        until=until and until.astimezone(),
        zone=clock.find_zone(runtime.brief.zone) if runtime.brief.zone else None,
        budget=entry.budget,
        handoff_percent=window_rule.find_threshold(entry.handover, runtime.relay),
    )
    archive = None
    if isinstance(store, FileStore):
        with suppress(RekindleError):  # another process is archiving, so use the existing archive
            transcript_setup.archive_agent(project, store, name)
        archive = TranscriptArchive(store.folder(name).transcripts)
    return read_night(store, name, inputs, archive)
