"""Describe a schedule for `schedules`, `status` and `doctor`."""

from collections.abc import Sequence
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any

import msgspec

from rekindle.cli.reports.status_row import StatusRow
from rekindle.config import Project
from rekindle.stores.folders import private_files
from rekindle.system import clock

if TYPE_CHECKING:
    from rekindle.wiring.schedules.list_schedules import ScheduleRow

NOT_WATCHED = "no daemon is checking its schedule, so it does not start"
WATCH_HINT = "`rekindle daemon` checks it now, and `rekindle service install` after each boot"
NO_HOST = "no host of the fleet is running, so it does not start"
WORKER_HINT = "run `rekindle fleet worker` on each host that should run agents"
NOT_ACCEPTED = "`every:` in rekindle.yaml is not accepted yet"
REMOVED = "rekindle.yaml does not contain its `every:` any more, which is not accepted yet"
ACCEPT_HINT = "`rekindle schedules --accept` accepts it"


def render_next(row: "ScheduleRow", now: datetime, zone: tzinfo) -> str:
    """Describe when the next run starts."""
    if row.error or row.next is None:
        return row.error or "not in effect"
    if row.waiting:
        return "a run waits to start"
    from rekindle.policy.schedules.describe_outcomes import render_time  # noqa: PLC0415 - as below

    late = " (overdue)" if row.next < now else ""
    return f"next run {render_time(row.next, zone)}{late}"


def list_schedule_warnings(
    row: "ScheduleRow", now: datetime, zone: tzinfo, *, is_fleet: bool = False
) -> list[tuple[str, str]]:
    """Return the problems with a schedule, each with a hint or ""."""
    warnings = []
    if not row.accepted:
        warnings.append((REMOVED if row.removed else NOT_ACCEPTED, ACCEPT_HINT))
    if row.next is not None and not row.watched:
        warnings.append((NO_HOST, WORKER_HINT) if is_fleet else (NOT_WATCHED, WATCH_HINT))
    from rekindle.policy.schedules.describe_outcomes import render_outcome  # noqa: PLC0415 - as below

    if problem := row.find_problem(now):
        warnings.append((render_outcome(problem, zone), ""))
    return warnings


def list_pipeline_lines(project: Project) -> list[str]:
    """Return the `status` lines about the schedules of pipelines."""
    pipelines = project.manifest.pipelines.values()
    records = private_files.find_private_project(project.path).schedules
    if not (records / "pipelines").is_dir() and all(each.every is None for each in pipelines):
        return []
    from rekindle.wiring.schedules.list_schedules import read_schedules  # noqa: PLC0415 - as below

    now, zone = clock.read_clock(), clock.find_zone()
    lines = []
    for row in read_schedules(project):
        if row.kind == "pipelines":
            lines.append(f"{row.name}  every {row.every}; {render_next(row, now, zone)}")
            warnings = list_schedule_warnings(row, now, zone)
            lines += [f"  ! {'; '.join(filter(None, parts))}" for parts in warnings]
    return lines


def add_schedules(project: Project, rows: Sequence[StatusRow]) -> list[StatusRow]:
    """Add schedules to the agents' rows. With several rows, the reason includes the next run."""
    entries = project.manifest.agents.values()
    records = private_files.find_private_project(project.path).schedules
    if not records.is_dir() and all(entry.every is None for entry in entries):
        return list(rows)
    from rekindle.wiring.schedules.list_schedules import read_schedules  # noqa: PLC0415 - few projects have schedules

    found = {row.name: row for row in read_schedules(project) if row.kind == "agents"}
    return [
        _add_schedule(row, found[row.row.agent], is_listed=len(rows) > 1)
        if row.row.agent in found
        else row
        for row in rows
    ]


def _add_schedule(status: StatusRow, schedule: "ScheduleRow", *, is_listed: bool) -> StatusRow:
    now, zone = clock.read_clock(), clock.find_zone()
    warnings = list_schedule_warnings(schedule, now, zone)
    text = render_next(schedule, now, zone)
    details = {
        "every": schedule.every,
        "next": schedule.next,
        "text": text,
        "warnings": ["; ".join(filter(None, parts)) for parts in warnings],
    }
    row = status.row
    if is_listed and row.state in {"done", "stopped"}:
        reason = "; ".join(filter(None, (row.reason, text)))
        row = msgspec.structs.replace(row, reason=reason)
    return StatusRow(row, {**status.details, "schedule": details})


def render_schedule_lines(details: dict[str, Any]) -> list[str]:
    """Return an agent's schedule lines for `status`, without warnings if there is a log."""
    schedule = details.get("schedule")
    if schedule is None:
        return []
    lines = [f"  every:  {schedule['every']}; {schedule['text']}"]
    return lines + [f"  ! {line}" for line in schedule["warnings"] if "log" not in details]
