"""Check a project's schedules, and start the runs that are due.

A project may be watched by its own daemon and by the daemon for all projects. Only the one that
holds the lock checks the schedules, because two could start the same run.
"""

from collections.abc import Iterator
from functools import partial

import msgspec

from rekindle.config import Project
from rekindle.errors import RekindleError
from rekindle.flows.schedules.start_due_run import (
    SchedulePorts,
    ScheduleResult,
    start_due_run,
)
from rekindle.flows.supervision.watchdog import WatchReport
from rekindle.policy.operator.make_notification import make_notice
from rekindle.policy.operator.notification_kinds import NotificationKind
from rekindle.policy.schedules.describe_outcomes import render_outcome
from rekindle.policy.schedules.due_times import DueTimes
from rekindle.policy.schedules.schedule_record import OutcomeKind
from rekindle.policy.schedules.schedule_rules import (
    ScheduleError,
    decode_schedule,
    encode_schedule,
    make_rules,
)
from rekindle.stores.files import FileStore
from rekindle.stores.folders import private_files
from rekindle.stores.folders.schedule_files import ScheduleFiles
from rekindle.system import clock, host
from rekindle.system.notifications import Notifier
from rekindle.wiring.schedules.accepted_schedules import (
    AcceptedSchedule,
    find_addresses,
    list_accepted,
)
from rekindle.wiring.schedules.agent_runs import inspect_agent, start_agent
from rekindle.wiring.schedules.pipeline_runs import inspect_pipeline, start_pipeline

_NOTICES: dict[OutcomeKind, NotificationKind] = {"skipped": "run skipped", "missed": "runs missed"}


def start_due_runs(project: Project, store: FileStore) -> list[WatchReport]:
    """Start due agents and pipelines, and report what happened."""
    files = ScheduleFiles(private_files.find_private_project(project.path))
    schedules = list_accepted(project)
    if not schedules and not files.private.schedules.is_dir():
        return []
    with files.hold() as lock:
        if lock is None:
            return []
        files.note_check(clock.read_clock())
        _remove_old_records(files, schedules)
        return [
            report
            for schedule in schedules
            for report in _check_schedule(project, store, files, schedule)
        ]


def make_ports(
    project: Project, store: FileStore, files: ScheduleFiles, schedule: AcceptedSchedule
) -> SchedulePorts:
    """Return the functions that give a schedule access to its agent or pipeline."""
    kind, name = schedule.kind, schedule.name
    is_agent = kind == "agents"
    return SchedulePorts(
        read=partial(files.read, kind, name),
        write=partial(files.write, kind, name),
        inspect=partial(inspect_agent, project, store, name)
        if is_agent
        else partial(inspect_pipeline, project, name),
        start=partial(start_agent, project, store, name)
        if is_agent
        else partial(start_pipeline, project, name),
        clock=clock.read_clock,
        find_times=partial(_find_old_times, name),
    )


def _check_schedule(
    project: Project, store: FileStore, files: ScheduleFiles, schedule: AcceptedSchedule
) -> Iterator[WatchReport]:
    label = f"{schedule.name} (schedule)"
    try:
        rules = schedule.make_rules()
        ports = make_ports(project, store, files, schedule)
        result = start_due_run(rules, encode_schedule(schedule.every), schedule.since, ports)
    except (RekindleError, ScheduleError) as error:
        yield WatchReport(label, started=False, words=str(error))
        return
    zone = clock.find_zone()
    for outcome in result.outcomes:
        words = render_outcome(outcome, zone)
        yield WatchReport(label, started=outcome.kind == "started", words=words)
    if result.error:
        yield WatchReport(label, started=False, words=result.error)
    for failure in _notify(project, store, schedule, result):
        yield WatchReport(label, started=False, words=failure)


def _notify(
    project: Project, store: FileStore, schedule: AcceptedSchedule, result: ScheduleResult
) -> Iterator[str]:
    """Notify the operator about runs that were not started, and yield errors."""
    notifier = Notifier(find_addresses(project, schedule), store.redaction)
    for outcome in result.news:
        if kind := _NOTICES.get(outcome.kind):
            words = f"{render_outcome(outcome, clock.find_zone())}\n→ rekindle schedules"
            where = {"project": project.path.name, "host": host.name()}
            notice = make_notice(schedule.name, kind, words, **where)
            yield from notifier.send(notice.title, notice.body, notice.severity)


def _find_old_times(name: str, schedule: str) -> DueTimes | None:
    """Return the due times of an earlier schedule, or None if it cannot be read."""
    try:
        every = decode_schedule(msgspec.json.decode(schedule))
        return make_rules(name, every, clock.find_zone).times
    except (msgspec.MsgspecError, ScheduleError):
        return None


def _remove_old_records(files: ScheduleFiles, schedules: list[AcceptedSchedule]) -> None:
    """Remove the records of schedules that the operator has removed."""
    wanted = {(schedule.kind, schedule.name) for schedule in schedules}
    for kind in ("agents", "pipelines"):
        for name in files.list_names(kind):
            if (kind, name) not in wanted:
                files.remove(kind, name)
