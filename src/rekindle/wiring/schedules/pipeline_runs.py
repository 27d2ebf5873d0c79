"""Start a scheduled pipeline, and find out what prevents a start."""

from contextlib import suppress
from datetime import datetime

import msgspec

from rekindle.config import Project
from rekindle.documents.pipelines.pipeline_events import PipelineStarted, parse_pipeline_event
from rekindle.errors import DocumentError, RekindleError
from rekindle.policy.schedules.decide_run import RunFacts
from rekindle.policy.schedules.schedule_record import PendingRun
from rekindle.stores.folders import private_files, trust_records
from rekindle.stores.pipelines.run_folder import RunFolder, list_runs
from rekindle.wiring.access.trust_checks import explain_unaccepted_pipeline
from rekindle.wiring.pipelines import start_run


def start_pipeline(project: Project, name: str, due: datetime) -> None:
    """Start a pipeline run whose first event contains the due time."""
    start_run.start_run(project, name, due=due)


def inspect_pipeline(project: Project, name: str, pending: PendingRun | None) -> RunFacts:
    """Return whether a run is in progress, and why another one cannot be started."""
    if name not in project.manifest.pipelines:
        return RunFacts(obstacle="rekindle.yaml does not contain the pipeline any more")
    runs = list_runs(private_files.find_private_project(project.path), name)
    facts = _find_refusal(project, name)
    started = [run for run in runs if pending is not None and _read_due(run) == pending.due]
    for run in started:
        # A daemon that was killed after it created the run may not have accepted its settings.
        if not facts.obstacle and trust_records.read_settings(run.settings) is None:
            start_run.accept_settings(project, run)
    return msgspec.structs.replace(
        facts, is_running=any(map(_is_running, runs)), has_started=bool(started)
    )


def _read_due(run: RunFolder) -> datetime | None:
    """Return the due time of a scheduled run, or None."""
    with suppress(DocumentError):
        for line in run.read_lines()[:1]:
            first = parse_pipeline_event(line)
            return first.due if isinstance(first, PipelineStarted) else None
    return None


def _is_running(run: RunFolder) -> bool:
    """Return whether a run is open or, if its log is damaged, has a coordinator."""
    try:
        return run.is_open()
    except DocumentError:
        return run.is_coordinated()


def _find_refusal(project: Project, name: str) -> RunFacts:
    """Return whether the pipeline's settings and files allow a start."""
    if reason := explain_unaccepted_pipeline(project, name):
        return RunFacts(obstacle=reason)
    try:
        start_run.check_steps(project, start_run.define_run(project, name, ""))
    except RekindleError as error:
        return RunFacts(obstacle=str(error), hint=error.hint)
    return RunFacts()
