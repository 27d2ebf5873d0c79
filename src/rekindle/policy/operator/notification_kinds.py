"""Kinds of notification, with their titles and severities.

A notification is sent for a stop reason, or for one of the other events in `NotificationKind`.
"""

from typing import Literal

from rekindle.documents.tables import require_rows
from rekindle.policy.exits.stop_reasons import OUTCOMES, STOP_REASONS, Severity, StopReason

NotificationKind = Literal[
    "no progress",
    "handoffs",
    "handoff failed",
    "no sign of life",
    "repeats itself",
    "permission",
    "question",
    "host refused",
    "folder lost",
    "does not come up",
    "run skipped",
    "runs missed",
]
"""Kinds of notification that are not stop reasons; each name is also the title."""
SEVERITIES: dict[NotificationKind, Severity] = {
    "no progress": "warning",
    "handoffs": "warning",
    "handoff failed": "warning",
    "no sign of life": "warning",
    "repeats itself": "warning",
    "permission": "warning",
    "question": "warning",
    "host refused": "warning",
    "folder lost": "warning",
    "does not come up": "failure",
    "run skipped": "warning",
    "runs missed": "warning",
}
require_rows(SEVERITIES, NotificationKind)
NOTIFICATIONS: dict[StopReason | NotificationKind, tuple[str, Severity]] = {
    **{news: (news, severity) for news, severity in SEVERITIES.items()},
    **{
        why: (row.state or OUTCOMES[row.outcome].words, OUTCOMES[row.outcome].severity or "info")
        for why, row in STOP_REASONS.items()
    },
}
"""Title and severity for each kind of notification."""


def parse_notification(what: str) -> StopReason | NotificationKind:
    """Parse the kind of a notification from a fleet; an unknown kind counts as a crash."""
    return what if what in NOTIFICATIONS else "crash"


def describe_notification(what: StopReason | NotificationKind) -> tuple[str, Severity]:
    """Return the title and severity for a kind of notification."""
    return NOTIFICATIONS[what]
