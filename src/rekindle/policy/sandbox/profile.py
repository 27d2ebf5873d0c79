"""Combine an agent's `sandbox:` key with its persona's and its host's, using the strictest one."""

from collections.abc import Iterable

import msgspec

from rekindle.documents.manifest_sandbox import CONTAINER, SandboxEntry

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


class SandboxProfile(msgspec.Struct, frozen=True):
    """The manifest's additions to a sandbox, and the limits for its processes."""

    write: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    network: tuple[str, ...] = ()
    memory: int | None = None
    """Maximum memory in bytes; None for no limit."""
    processes: int | None = None
    cpu: float | None = None
    """Maximum CPU time, as a number of cores; None for no limit."""
    is_container: bool = False
    """Whether an OCI runtime creates the sandbox, instead of bubblewrap."""
    is_on_host: bool = False
    """Whether the sandbox protects a fleet host, whose operator did not write the manifest."""


class SandboxFloor(msgspec.Struct, frozen=True):
    """The weakest sandbox that a fleet host permits, with the limits for each of its agents."""

    memory: int | None = None
    """Maximum memory in bytes; None for no limit."""
    processes: int | None = None
    cpu: float | None = None
    is_container: bool = False
    secrets: tuple[str, ...] = ()
    """Files that no agent on the host may read, such as the worker's keys."""


def choose_profile(
    *keys: SandboxEntry | bool | str | None, floor: SandboxFloor | None = None
) -> SandboxProfile | None:
    """Combine these keys into the strictest profile, or return None if none is `on`.

    An addition counts only if every key that is `on` contains it. The lowest limit applies. With a
    floor, the agent always has a sandbox.
    """
    entries = []
    for key in keys:
        if isinstance(key, SandboxEntry):
            entries.append(key)
        elif key:
            entries.append(SandboxEntry(container=key == CONTAINER))
    if not entries and floor is None:
        return None
    is_on_host = floor is not None
    floor = floor or SandboxFloor()
    sizes = [floor.memory, *(parse_size(entry.memory) for entry in entries if entry.memory)]
    counts = [floor.processes, *(entry.processes for entry in entries)]
    cores = [floor.cpu, *(entry.cpu for entry in entries)]
    return SandboxProfile(
        write=_intersect(entry.write or () for entry in entries),
        read=_intersect(entry.read or () for entry in entries),
        network=_intersect(entry.network or () for entry in entries),
        memory=min(filter(None, sizes), default=None),
        processes=min(filter(None, counts), default=None),
        cpu=min(filter(None, cores), default=None),
        is_container=floor.is_container or any(entry.container for entry in entries),
        is_on_host=is_on_host,
    )


def parse_size(text: str) -> int:
    """Convert a size such as `8G` to bytes."""
    return int(float(text[:-1]) * _UNITS[text[-1]])


def _intersect(lists: Iterable[Iterable[str]]) -> tuple[str, ...]:
    first, *others = [*map(tuple, lists)] or [()]
    return tuple(dict.fromkeys(one for one in first if all(one in other for other in others)))
