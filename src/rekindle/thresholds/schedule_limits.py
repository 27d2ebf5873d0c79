"""Thresholds for schedules of agents and pipelines."""

from rekindle.thresholds import declare_threshold

SCHEDULE_LEAST_SECONDS = declare_threshold(
    60, "schedule.interval", "seconds", "Shortest interval of a schedule."
)
SCHEDULE_JITTER_SECONDS = declare_threshold(
    86_400, "schedule.jitter", "seconds", "Longest `jitter:` of a schedule."
)
SCHEDULE_GRACE_SECONDS = declare_threshold(
    600,
    "schedule.grace",
    "seconds",
    "Delay after which a run that has not started counts as missed. It is longer than the interval "
    "between two checks of the watchdog.",
)
SCHEDULE_COUNTED = declare_threshold(
    1_000, "schedule.counted", "count", "Number of missed runs up to which they are counted."
)
SCHEDULE_HISTORY = declare_threshold(
    50, "schedule.history", "count", "Number of past runs that a schedule's record lists."
)
SCHEDULE_REVISED = declare_threshold(
    100,
    "schedule.revised",
    "count",
    "Number of runs after which a jump of the clock counts as correct, although the clock is set "
    "back later.",
)
SCHEDULE_DAYS = declare_threshold(
    3_300,
    "schedule.days",
    "days",
    "Period in which a cron expression must match a day. 29 February can be 8 years away.",
)
SCHEDULE_SHOWN_DAYS = declare_threshold(
    7,
    "schedule.shown",
    "days",
    "Time for which `status` shows that a run was skipped or missed.",
)
