"""Thresholds for changing the build that decides for a fleet."""

from rekindle.thresholds import declare_threshold

FLEET_ROUTING_SECONDS = declare_threshold(
    30.0,
    "fleet.routing_seconds",
    "seconds",
    "How long `fleet deploy` waits until the engine's task queue knows the new build.",
)
FLEET_MOVES_AT_ONCE = declare_threshold(
    20,
    "fleet.moves_at_once",
    "count",
    "Maximum number of agents that `fleet deploy` moves at the same time.",
)
FLEET_BUILDS_SECONDS = declare_threshold(
    90.0,
    "fleet.builds_seconds",
    "seconds",
    "Interval at which a worker whose build is not current checks whether any worker runs the "
    "current one.",
)
