"""Decide the limits for each agent on a fleet host, and describe them."""

from rekindle.formats.counts import render_count
from rekindle.policy.sandbox.profile import SandboxFloor, parse_size
from rekindle.thresholds.sandbox_limits import HOST_MEMORY_BYTES, HOST_PROCESSES


def make_host_floor(
    host_memory: int,
    slots: int,
    *,
    memory: int | None = None,
    processes: int | None = None,
    cpu: float | None = None,
    is_container: bool = False,
) -> SandboxFloor:
    """Return the limits for each agent on a host with this much memory and this many slots."""
    share = max(host_memory // slots, HOST_MEMORY_BYTES)
    return SandboxFloor(memory or share, processes or HOST_PROCESSES, cpu, is_container)


def render_floor(floor: SandboxFloor | None) -> str:
    """Describe a host's sandbox, such as `sandbox on: 6G of memory, 1,024 processes`."""
    if floor is None:
        return "sandbox off"
    parts = [
        f"{floor.memory / parse_size('1G'):.3g}G of memory" if floor.memory else "",
        render_count(floor.processes, "process", "processes") if floor.processes else "",
        render_count(floor.cpu, "core") if floor.cpu else "",
    ]
    limits = ", ".join(filter(None, parts))
    kind = "container" if floor.is_container else "on"
    return f"sandbox {kind}: {limits}" if limits else f"sandbox {kind}"
