"""Start each scheduled run exactly once.

The record is written before and after the start. A process that is killed partway through leaves a
pending run. `inspect` then finds out whether it was started, so the start must atomically leave a
durable trace.
"""

from collections.abc import Callable
from datetime import datetime

import msgspec

from rekindle.errors import RekindleError
from rekindle.policy.schedules.adopt_schedule import adopt_schedule
from rekindle.policy.schedules.decide_run import RunFacts, RunRules, decide_run, is_due
from rekindle.policy.schedules.due_times import DueTimes
from rekindle.policy.schedules.schedule_record import (
    PendingRun,
    ScheduleOutcome,
    ScheduleRecord,
    select_news,
)


class SchedulePorts(msgspec.Struct, frozen=True):
    """Functions that give a schedule access to its record and its agent or pipeline."""

    read: Callable[[], ScheduleRecord | None]
    write: Callable[[ScheduleRecord], None]
    """Replaces the record durably."""
    inspect: Callable[[PendingRun | None], RunFacts]
    """Returns the state of the agent or pipeline, and whether the pending run was started."""
    start: Callable[[datetime], None]
    """Starts the run for a due time, and leaves the trace that `inspect` looks for."""
    clock: Callable[[], datetime]
    find_times: Callable[[str], DueTimes | None] = lambda _: None
    """Returns the due times of an earlier schedule, given as JSON, or None."""


class ScheduleResult(msgspec.Struct, frozen=True):
    """Result of checking a schedule."""

    outcomes: tuple[ScheduleOutcome, ...] = ()
    news: tuple[ScheduleOutcome, ...] = ()
    """Outcomes to notify the operator about."""
    error: str = ""
    """Reason why a run could not be started. The next check retries."""


def start_due_run(
    rules: RunRules, schedule: str, since: datetime, ports: SchedulePorts
) -> ScheduleResult:
    """Decide whether a run is due, record the decision, and start the run if necessary.

    `schedule` is the schedule as JSON, and `since` is the time when the operator accepted it.
    """
    now, before = ports.clock(), ports.read()
    old = ports.find_times(before.schedule) if before and before.schedule != schedule else None
    record, outcomes = adopt_schedule(before, schedule, since, now, old)
    record = record.add_outcomes(*outcomes)
    start = None
    if is_due(rules, record, now):
        decision = decide_run(rules, record, now, ports.inspect(record.pending))
        record, start = decision.record, decision.start
        outcomes += decision.outcomes
    if record != before:
        ports.write(record)
    news = tuple(select_news(before, outcomes) if before else outcomes)
    if start is None:
        return ScheduleResult(tuple(outcomes), news)
    try:
        ports.start(start)
    except RekindleError as error:
        return ScheduleResult(tuple(outcomes), news, str(error))
    ports.write(record.confirm_start(now))
    outcomes.append(ScheduleOutcome("started", start, start, now))
    return ScheduleResult(tuple(outcomes), news)
