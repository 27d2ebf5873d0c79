"""Combine an agent's `sandbox:` key with its persona's, using the stricter one."""

from collections.abc import Iterable

import msgspec

from rekindle.documents.manifest_sandbox import SandboxEntry

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


def choose_profile(*keys: SandboxEntry | bool | None) -> SandboxProfile | None:
    """Combine these keys into the strictest profile, or return None if none is `on`.

    An addition counts only if every key that is `on` contains it. The lowest limit applies.
    """
    entries = []
    for key in keys:
        if isinstance(key, SandboxEntry):
            entries.append(key)
        elif key:
            entries.append(SandboxEntry())
    if not entries:
        return None
    sizes = [parse_size(entry.memory) for entry in entries if entry.memory]
    counts = [entry.processes for entry in entries if entry.processes]
    cores = [entry.cpu for entry in entries if entry.cpu]
    return SandboxProfile(
        write=_intersect(entry.write or () for entry in entries),
        read=_intersect(entry.read or () for entry in entries),
        network=_intersect(entry.network or () for entry in entries),
        memory=min(sizes, default=None),
        processes=min(counts, default=None),
        cpu=min(cores, default=None),
    )


def parse_size(text: str) -> int:
    """Convert a size such as `8G` to bytes."""
    return int(float(text[:-1]) * _UNITS[text[-1]])


def _intersect(lists: Iterable[Iterable[str]]) -> tuple[str, ...]:
    first, *others = map(tuple, lists)
    return tuple(dict.fromkeys(one for one in first if all(one in other for other in others)))
