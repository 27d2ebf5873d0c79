"""Thresholds for moving an agent's work to another CLI or account."""

from rekindle.thresholds import declare_threshold

OUTAGE_TRIES = declare_threshold(
    5,
    "routes.outage_tries",
    "count",
    "Number of launches in a row that an outage ends before the work continues on another route.",
)
OUTAGE_SECONDS = declare_threshold(
    300.0,
    "routes.outage_seconds",
    "seconds",
    "Duration of an outage, with fewer failed launches, after which the work continues on another "
    "route.",
)
