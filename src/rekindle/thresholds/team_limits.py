"""Thresholds for the permits of teams that share a fleet."""

from rekindle.thresholds import declare_threshold

FLEET_PERMIT_SHOW_SECONDS = declare_threshold(
    3.0,
    "fleet.permit_show_seconds",
    "seconds",
    "Time without a permit after which an agent is listed as waiting for its team.",
)
FLEET_PERMIT_ASK_SECONDS = declare_threshold(
    900.0,
    "fleet.permit_ask_seconds",
    "seconds",
    "Interval at which a waiting agent asks its team again, in case the answer was lost.",
)
FLEET_PERMIT_CHECK_SECONDS = declare_threshold(
    60.0,
    "fleet.permit_check_seconds",
    "seconds",
    "Interval at which a team at its cap checks whether its running agents still exist.",
)
