"""Thresholds for sandboxes."""

from rekindle.thresholds import declare_threshold

PROBE_SECONDS = declare_threshold(
    10.0,
    "sandbox.probe_seconds",
    "seconds",
    "Timeout for the empty sandbox that Rekindle starts to test bubblewrap.",
)
PROBE_MEMORY_BYTES = declare_threshold(
    64 * 1024**2,
    "sandbox.probe_memory_bytes",
    "bytes",
    "Memory limit of the empty container that Rekindle starts to test an OCI runtime.",
)
CPU_PERIOD_SECONDS = declare_threshold(
    0.1,
    "sandbox.cpu_period_seconds",
    "seconds",
    "Period in which the kernel measures the CPU time of a sandbox with a `cpu:` limit.",
)
REMOVAL_SECONDS = declare_threshold(
    1.0,
    "sandbox.removal_seconds",
    "seconds",
    "Maximum time that the supervisor waits for a launch's control group to become empty. A later "
    "launch removes a group that is left.",
)
REMOVAL_TICK_SECONDS = declare_threshold(
    0.01,
    "sandbox.removal_tick_seconds",
    "seconds",
    "Interval between two attempts to remove a launch's control group.",
)
REFUSED_HOSTS = declare_threshold(
    20,
    "sandbox.refused_hosts",
    "count",
    "Maximum number of refused hosts that `status` lists, and that Rekindle sends notifications "
    "about in one run.",
)
REFUSAL_BYTES = declare_threshold(
    65_536,
    "sandbox.refusal_bytes",
    "bytes",
    "Maximum number of bytes that the supervisor reads from a sandbox's proxy at a time.",
)
HOST_MEMORY_BYTES = declare_threshold(
    2 * 1024**3,
    "sandbox.host_memory_bytes",
    "bytes",
    "Smallest default for `rekindle fleet worker --memory`. Usually, each agent may use the host's "
    "memory divided by its slots.",
)
HOST_PROCESSES = declare_threshold(
    1024,
    "sandbox.host_processes",
    "count",
    "Default for `rekindle fleet worker --processes`.",
)
