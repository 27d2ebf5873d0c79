"""Thresholds for programs that control a fleet through the Python API."""

from rekindle.thresholds import declare_threshold

FLEET_LISTING_SECONDS = declare_threshold(
    900.0,
    "fleet.listing_seconds",
    "seconds",
    "Age at which the cycle and the spending of a running agent in the engine's list are replaced. "
    "Each change of its state replaces them too.",
)
FLEET_CALLS_AT_ONCE = declare_threshold(
    32,
    "fleet.calls_at_once",
    "count",
    "Maximum number of requests for different agents that the Python API sends at the same time.",
)
FLEET_BULK_SECONDS = declare_threshold(
    60.0,
    "fleet.bulk_seconds",
    "seconds",
    "Timeout for a command of the Python API. It is longer than `fleet.rpc_seconds`, because a "
    "program may command thousands of agents at once.",
)
FLEET_WATCH_SECONDS = declare_threshold(
    1.0,
    "fleet.watch_seconds",
    "seconds",
    "Interval at which `Fleet.watch` asks the engine for changes.",
)
FLEET_WATCH_OVERLAP_SECONDS = declare_threshold(
    30.0,
    "fleet.watch_overlap_seconds",
    "seconds",
    "Time before the last known change from which `Fleet.watch` asks again, because the engine's "
    "list may be late.",
)
FLEET_WATCH_RESYNC_SECONDS = declare_threshold(
    300.0,
    "fleet.watch_resync_seconds",
    "seconds",
    "Interval at which `Fleet.watch` lists all agents, in case the engine's list was later than "
    "`fleet.watch_overlap_seconds`.",
)
