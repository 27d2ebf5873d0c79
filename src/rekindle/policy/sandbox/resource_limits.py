"""Decide how the host enforces a sandbox's limits.

A control group (cgroup v2) limits all processes of a launch together. Without one, `prlimit` limits
each process's memory and the number of processes, but CPU time is not limited.
"""

from collections.abc import Collection, Mapping

import msgspec

from rekindle.policy.sandbox.profile import SandboxFloor, SandboxProfile
from rekindle.thresholds.sandbox_limits import CPU_PERIOD_SECONDS

_MICROSECONDS = 1_000_000
MEMORY, PROCESSES, CPU = "memory", "pids", "cpu"
"""Names of the kernel's cgroup controllers."""


class LimitPlan(msgspec.Struct, frozen=True, kw_only=True):
    files: Mapping[str, str] = {}
    """Files in the launch's control group, and the values to write to them."""
    memory: int | None = None
    """Memory limit in bytes for `prlimit` to enforce; None if not needed."""
    processes: int | None = None
    """Limit on the number of processes for `prlimit` to enforce; None if not needed."""
    ignores_cpu: bool = False
    """Whether the manifest limits CPU time, but this host cannot enforce it."""


def plan_limits(profile: SandboxProfile | SandboxFloor, controllers: Collection[str]) -> LimitPlan:
    """Decide how to enforce the limits on a host that delegates these controllers."""
    files: dict[str, str] = {}
    if profile.memory is not None and MEMORY in controllers:
        files["memory.max"] = str(profile.memory)
        # Without this limit, the processes could use swap instead.
        files["memory.swap.max"] = "0"
    if profile.processes is not None and PROCESSES in controllers:
        files["pids.max"] = str(profile.processes)
    if profile.cpu is not None and CPU in controllers:
        files["cpu.max"] = render_quota(profile.cpu)
    return LimitPlan(
        files=files,
        memory=None if MEMORY in controllers else profile.memory,
        processes=None if PROCESSES in controllers else profile.processes,
        ignores_cpu=profile.cpu is not None and CPU not in controllers,
    )


def render_quota(cores: float) -> str:
    """Return the value for `cpu.max` that allows this number of cores."""
    quota, period = find_quota(cores)
    return f"{quota} {period}"


def find_quota(cores: float) -> tuple[int, int]:
    """Return the microseconds of CPU time that this number of cores is in each period."""
    period = round(CPU_PERIOD_SECONDS * _MICROSECONDS)
    return round(cores * period), period
