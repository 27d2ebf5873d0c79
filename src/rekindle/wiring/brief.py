"""Briefs: who writes them for an agent, with what."""

import os
from datetime import datetime

from rekindle.config import Project
from rekindle.flows.gather_morning import GatherMorning
from rekindle.flows.read_rows import ReadRows
from rekindle.flows.write_brief import Around, WriteBrief
from rekindle.policy.claims import Work
from rekindle.stores.files import FileStore
from rekindle.system import clock
from rekindle.system.processes import Processes
from rekindle.wiring import summarize, transcripts, watch
from rekindle.wiring.store import HARNESSES


def writing(
    project: Project, store: FileStore, name: str, *, by_hand: bool, mechanical: bool = False
) -> WriteBrief:
    """Whoever is not the operator has hardly an environment: theirs is remembered."""
    environ = os.environ if by_hand else {**os.environ, **watch.remembered(project, store, name)}
    asked = None if mechanical else summarize.headless(project, store, name, environ)
    around = Around(
        ask=asked.ask if asked else None,
        words=asked.words if asked else "",
        archive=lambda: transcripts.archive(project, store, name),
        work=lambda since: _work(project, name, since),
        clock=clock.now,
        zone=clock.zone(project.settings.runtime.brief.zone),
        runtime=project.settings.runtime,
        task=summarize.task(project, name),
        asks=project.manifest.agents[name].mode != "stay",
    )
    return WriteBrief(store, name, around)


def remember(project: Project, store: FileStore, name: str) -> None:
    """Keep the operator's environment for briefs by the clock, unless a run has kept it."""
    harness = HARNESSES.get(project.manifest.agents[name].harness)
    if harness is not None and not watch.has_remembered(store, name):
        watch.remember(store, name, harness)


def morning(project: Project, store: FileStore) -> GatherMorning:
    runtime = project.settings.runtime
    zone = clock.zone(runtime.brief.zone)
    rows = ReadRows(
        store,
        project.manifest.agents,
        runtime,
        clock.now,
        zone=zone,
        is_alive=Processes().is_alive,
    )
    return GatherMorning(store, clock.now(), zone, runtime, rows)


def _work(project: Project, name: str, since: datetime | None) -> Work:
    tree = summarize.tree(project, name)
    subjects, committed = tree.after(since) if since else ((), ())
    return Work(tuple(dict.fromkeys((*tree.changed(), *committed))), subjects)
