"""Thresholds for schedules of agents and pipelines."""

from rekindle.thresholds import declare_threshold

SCHEDULE_LEAST_SECONDS = declare_threshold(
    60, "schedule.interval", "seconds", "Minimum interval between scheduled runs."
)
SCHEDULE_JITTER_SECONDS = declare_threshold(
    86_400, "schedule.jitter", "seconds", "Maximum value of `jitter:`."
)
SCHEDULE_GRACE_SECONDS = declare_threshold(
    600,
    "schedule.grace",
    "seconds",
    "Delay after which a run that has not started counts as missed. It is longer than the "
    "interval between two watchdog checks.",
)
SCHEDULE_CLOCK_CHANGE_SECONDS = declare_threshold(
    7_200,
    "schedule.clock_change",
    "seconds",
    "Time before and after a clock change in which the engine of a fleet has other due times.",
)
SCHEDULE_COUNTED = declare_threshold(
    1_000, "schedule.counted", "count", "Maximum number of missed runs to count."
)
SCHEDULE_HISTORY = declare_threshold(
    50, "schedule.history", "count", "Number of past runs to keep in a schedule's record."
)
SCHEDULE_REVISED = declare_threshold(
    100,
    "schedule.revised",
    "count",
    "Number of runs after which Rekindle accepts a clock jump as correct, even if the clock is "
    "set back later.",
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
    "Number of days for which `status` shows a skipped or missed run.",
)
