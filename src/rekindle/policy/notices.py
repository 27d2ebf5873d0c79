"""Notifications: what a person who is not at the terminal is told."""

import msgspec

from rekindle.policy import endings
from rekindle.policy.endings import Severity

_COMMAND = "→ "
"""Begins the line with the command to type."""


class Notice(msgspec.Struct, frozen=True):
    title: str
    body: str
    severity: Severity


def make_notice(
    agent: str, what: str, words: str, *, project: str, host: str, severity: Severity | None = None
) -> Notice:
    """Return a notification: what happened, the command to type, and where the agent is.

    `what` is a reason to stop, or any other news; without a command in `words` it is the one that
    shows the agent.
    """
    title, usual = endings.notice(what)
    severity = severity or usual
    has_command = any(line.startswith(_COMMAND) for line in words.splitlines())
    command = "" if has_command else f"{_COMMAND}rekindle status {agent}"
    place = f"{severity}: agent {agent}, project {project}, host {host}"
    body = "\n".join(filter(None, (words, command, place)))
    return Notice(f"{agent}: {title}", body, severity)
