"""Hosts that an agent's sandbox refused."""

from collections.abc import Iterable

import msgspec

from rekindle.thresholds.sandbox_limits import REFUSED_HOSTS


class RefusedHost(msgspec.Struct, frozen=True, order=True):
    """A host that the sandbox refused, and the log position of the last refusal."""

    seq: int
    host: str


def add_refused_host(hosts: Iterable[RefusedHost], refused: RefusedHost) -> tuple[RefusedHost, ...]:
    """Return the hosts that were refused most recently, without duplicates."""
    latest = {entry.host: entry for entry in sorted({*hosts, refused})}
    return tuple(sorted(latest.values())[-REFUSED_HOSTS:])
