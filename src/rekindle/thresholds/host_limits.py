"""Limits for a fleet's hosts: their heartbeats, leases and health endpoints."""

from rekindle.thresholds import declare_threshold

FLEET_BEGIN_SECONDS = declare_threshold(
    60.0,
    "fleet.begin_seconds",
    "seconds",
    "How long a host may take to start a cycle. A host that dies meanwhile is detected earlier.",
)
FLEET_HOST_BEAT_SHARE = declare_threshold(
    0.25,
    "fleet.host_beat_share",
    "share",
    "Interval between the heartbeats with which a host vouches for its sessions, as a share of "
    "`fleet.heartbeat_timeout`.",
)
FLEET_HOST_RETRY_SHARE = declare_threshold(
    0.05,
    "fleet.host_retry_share",
    "share",
    "Pause before a host repeats a failed heartbeat, as a share of `fleet.heartbeat_timeout`.",
)
FLEET_CONFIRM_SHARE = declare_threshold(
    0.9,
    "fleet.confirm_share",
    "share",
    "Time without a confirmed heartbeat after which a host ends its sessions, as a share of "
    "`fleet.heartbeat_timeout`. Other hosts continue the agents when the whole time is over.",
)
FLEET_DECIDER_SECONDS = declare_threshold(
    20.0,
    "fleet.decider_seconds",
    "seconds",
    "Time after which a host reports that no worker decides for it.",
)
FLEET_HEALTH_SECONDS = declare_threshold(
    5.0,
    "fleet.health_seconds",
    "seconds",
    "Timeout for one request to a worker's health endpoint.",
)
FLEET_HEALTH_BYTES = declare_threshold(
    8 * 1024,
    "fleet.health_bytes",
    "bytes",
    "Maximum size of a request to a worker's health endpoint.",
)
FLEET_DRAIN_HOURS = declare_threshold(
    2,
    "fleet.drain_hours",
    "hours",
    "Default time for which `fleet drain` lets a host finish its cycles.",
)
FLEET_HOST_TASK_SECONDS = declare_threshold(
    1.0,
    "fleet.host_task_seconds",
    "seconds",
    "How long to wait for a worker to decide that a host is lost. After that, the fleet asks "
    "another worker.",
)
FLEET_VOUCH_SECONDS = declare_threshold(
    20.0,
    "fleet.vouch_seconds",
    "seconds",
    "How long a host waits for the engine to confirm a new lease before it refuses the cycle.",
)
FLEET_HOST_EVENTS = declare_threshold(
    5,
    "fleet.host_events",
    "count",
    "Length of the history of a host's workflow that has made its first decision.",
)
