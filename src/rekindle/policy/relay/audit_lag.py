"""Find relays in the log that are missing from the audit trail."""

from collections.abc import Iterable

import msgspec

from rekindle.documents.commits.audit_commit import AuditRevision
from rekindle.documents.events import (
    AgentReceived,
    AnyEvent,
    RelayCommitted,
    UnknownEvent,
)


class AuditLag(msgspec.Struct, frozen=True):
    """The difference between the audit trail and the log."""

    is_ours: bool
    """Whether the trail belongs to this log, which must contain the trail's last commit."""
    missing: tuple[RelayCommitted, ...] = ()
    """Relays that are missing from the trail, oldest first."""


def find_audit_lag(
    tip: AuditRevision | None, newest_first: Iterable[AnyEvent | UnknownEvent], confirmed: int
) -> AuditLag:
    """Return the relays missing from the trail, up to the last event confirmed on disk.

    The log is read backwards, up to the trail's last commit. After that commit, events with an
    older generation are ignored, because they come from a host that had already lost the agent.
    """
    since: list[AnyEvent | UnknownEvent] = []
    is_ours = tip is None
    for event in newest_first:
        if tip and isinstance(event, RelayCommitted) and tip.is_of(event) and tip.gen == event.gen:
            is_ours = True
            break
        if tip and isinstance(event, AgentReceived):
            # A replica's log starts here. The engine has compared its state with the full log.
            is_ours = event.seq >= tip.seq and event.gen >= tip.gen
            break
        if tip and event.seq < tip.seq and event.gen >= tip.gen:
            break
        since.append(event)
    if not is_ours:
        return AuditLag(is_ours=False)
    missing: list[RelayCommitted] = []
    gen = tip.gen if tip else 0
    for event in reversed(since):
        if event.gen < gen:
            continue
        gen = event.gen
        if isinstance(event, RelayCommitted) and event.seq <= confirmed:
            missing.append(event)
    return AuditLag(is_ours=True, missing=tuple(missing))
