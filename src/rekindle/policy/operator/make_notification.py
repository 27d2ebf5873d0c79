"""Compose notifications for a person who is not at the terminal."""

import msgspec

from rekindle.policy.exits.stop_reasons import Severity, StopReason
from rekindle.policy.operator import notification_kinds
from rekindle.policy.operator.notification_kinds import NotificationKind

_COMMAND = "→ "
"""Prefix of the line that contains the command to type."""


class NotificationText(msgspec.Struct, frozen=True):
    title: str
    body: str
    severity: Severity


def make_notice(
    agent: str, what: StopReason | NotificationKind, words: str, *, project: str, host: str
) -> NotificationText:
    """Return a notification: what happened, the command to type, the project and the host.

    `what` is a stop reason or another kind of notification. If `words` contains no command,
    `rekindle status` is added.
    """
    title, severity = notification_kinds.describe_notification(what)
    has_command = any(line.startswith(_COMMAND) for line in words.splitlines())
    command = "" if has_command else f"{_COMMAND}rekindle status {agent}"
    place = f"{severity}: agent {agent}, project {project}, host {host}"
    body = "\n".join(filter(None, (words, command, place)))
    return NotificationText(f"{agent}: {title}", body, severity)
