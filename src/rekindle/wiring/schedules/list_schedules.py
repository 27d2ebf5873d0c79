"""List a project's schedules, their next runs, and the runs that were skipped or missed."""

from datetime import datetime, timedelta

import msgspec

from rekindle.config import Project
from rekindle.documents.manifest_schedules import Schedule
from rekindle.errors import RekindleError
from rekindle.policy.schedules.decide_run import find_next_run
from rekindle.policy.schedules.schedule_checks import list_schedules
from rekindle.policy.schedules.schedule_record import ScheduleOutcome
from rekindle.policy.schedules.schedule_rules import (
    ScheduleError,
    encode_schedule,
    render_schedule,
)
from rekindle.stores.folders import private_files
from rekindle.stores.folders.schedule_files import ScheduleFiles, ScheduleKind
from rekindle.system import clock
from rekindle.thresholds.schedule_limits import SCHEDULE_GRACE_SECONDS, SCHEDULE_SHOWN_DAYS
from rekindle.wiring.schedules.accepted_schedules import AcceptedSchedule, list_accepted

_WATCHED = timedelta(seconds=SCHEDULE_GRACE_SECONDS)
_SHOWN = timedelta(days=SCHEDULE_SHOWN_DAYS)


class ScheduleRow(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule, as `rekindle schedules` shows it."""

    kind: ScheduleKind
    """`agents` or `pipelines`."""
    name: str
    """Name of the agent or pipeline."""
    every: str
    """The schedule in effect, with its time zone if one is set."""
    accepted: bool = True
    """Whether you have accepted the schedule that is in rekindle.yaml."""
    removed: bool = False
    """Whether you have not accepted yet that the schedule was removed from rekindle.yaml."""
    watched: bool = False
    """Whether a daemon has checked the schedule recently, or a host of the fleet is running."""
    next: datetime | None = None
    """When the next run starts, or null if the schedule is not in effect."""
    waiting: bool = False
    """Whether a run is waiting to start."""
    history: tuple[ScheduleOutcome, ...] = ()
    """What happened at the last due times (`kind`, `first`, `last`, `at`, `count`, `reason`)."""
    error: str = ""
    """Why the schedule cannot be read, or empty."""

    def find_problem(self, now: datetime) -> ScheduleOutcome | None:
        """Return the last skipped or missed runs, if they are recent."""
        problems = [outcome for outcome in self.history if outcome.kind in {"skipped", "missed"}]
        return problems[-1] if problems and abs(now - problems[-1].at) < _SHOWN else None


def read_schedules(project: Project) -> list[ScheduleRow]:
    """Return the schedules in effect, and those in rekindle.yaml that are not accepted yet."""
    files = ScheduleFiles(private_files.find_private_project(project.path))
    now, checked = clock.read_clock(), files.read_last_check()
    is_watched = checked is not None and abs(now - checked) < _WATCHED
    declared: dict[tuple[str, str], Schedule | str] = {
        (str(path[0]), str(path[1])): every for path, every in list_schedules(project.manifest)
    }
    accepted = {(schedule.kind, schedule.name): schedule for schedule in list_accepted(project)}
    rows = [
        _read_row(files, schedule, declared.get(place), now, is_watched=is_watched)
        for place, schedule in accepted.items()
    ]
    rows += [
        ScheduleRow(
            kind="agents" if kind == "agents" else "pipelines",
            name=name,
            every=render_schedule(every),
            accepted=False,
            watched=is_watched,
        )
        for (kind, name), every in declared.items()
        if (kind, name) not in accepted
    ]
    return sorted(rows, key=lambda row: (row.kind, row.name))


def _read_row(
    files: ScheduleFiles,
    schedule: AcceptedSchedule,
    declared: Schedule | str | None,
    now: datetime,
    *,
    is_watched: bool,
) -> ScheduleRow:
    row = ScheduleRow(
        kind=schedule.kind,
        name=schedule.name,
        every=render_schedule(schedule.every),
        accepted=declared is not None
        and encode_schedule(declared) == encode_schedule(schedule.every),
        removed=declared is None,
        watched=is_watched,
    )
    try:
        record = files.read(schedule.kind, schedule.name)
        if record is not None and record.schedule != encode_schedule(schedule.every):
            record = None  # the daemon has not seen the new schedule yet
        following = find_next_run(schedule.make_rules(), record, now)
    except (RekindleError, ScheduleError) as error:
        return msgspec.structs.replace(row, error=str(error))
    return msgspec.structs.replace(
        row,
        next=following,
        waiting=record is not None and record.pending is not None,
        history=record.history if record else (),
    )
