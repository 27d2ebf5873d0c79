"""Build the brief writer and the morning page."""

import os
from datetime import datetime

from rekindle.config import Project
from rekindle.flows.briefs.brief_material import BriefPorts
from rekindle.flows.briefs.build_morning_page import MorningPageBuilder
from rekindle.flows.briefs.write_brief import BriefWriter
from rekindle.policy.briefs.claim_check import GitWork
from rekindle.stores.files import FileStore
from rekindle.system import clock
from rekindle.wiring import (
    summarizer_setup,
    transcript_setup,
)
from rekindle.wiring.open_store import HARNESSES
from rekindle.wiring.row_setup import make_row_reader
from rekindle.wiring.starting import background_start


def make_brief_writer(
    project: Project,
    store: FileStore,
    name: str,
    *,
    by_hand: bool,
    mechanical: bool = False,
    default_zone: str = "",
) -> BriefWriter:
    """Return a brief writer. It uses the operator's saved environment unless `by_hand` is set."""
    environ = (
        os.environ
        if by_hand
        else {**os.environ, **background_start.read_environment(project, store, name)}
    )
    summarizer = (
        None if mechanical else summarizer_setup.make_headless(project, store, name, environ)
    )
    around = BriefPorts(
        ask=summarizer.ask if summarizer else None,
        words=summarizer.words if summarizer else "",
        archive=lambda: transcript_setup.archive_agent(project, store, name),
        work=lambda since: _read_git_work(project, name, since),
        clock=clock.read_clock,
        zone=clock.find_zone(project.settings.runtime.brief.zone or default_zone),
        runtime=project.settings.runtime,
        task=summarizer_setup.read_task_text(project, name),
        asks=project.manifest.agents[name].mode != "stay",
    )
    return BriefWriter(store, name, around)


def remember_operator(project: Project, store: FileStore, name: str) -> None:
    """Save the operator's environment for scheduled briefs, unless it is already saved."""
    harness = HARNESSES.get(project.manifest.agents[name].harness)
    if harness is not None and not background_start.has_environment(store, name):
        background_start.remember_environment(store, project, name)


def make_morning_builder(project: Project, store: FileStore) -> MorningPageBuilder:
    runtime = project.settings.runtime
    zone = clock.find_zone(runtime.brief.zone)
    rows = make_row_reader(project, store)
    return MorningPageBuilder(store, clock.read_clock(), zone, runtime, rows)


def _read_git_work(project: Project, name: str, since: datetime | None) -> GitWork:
    tree = summarizer_setup.open_git_status(project, name)
    subjects, committed = tree.after(since) if since else ((), ())
    return GitWork(tuple(dict.fromkeys((*tree.changed(), *committed))), subjects)
