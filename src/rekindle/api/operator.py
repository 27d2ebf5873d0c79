"""The person or program that gives commands through the API."""

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass

from rekindle.config import Project
from rekindle.stores.files import FileStore
from rekindle.wiring.access import trust_checks

TRUST_VARIABLE = "REKINDLE_TRUST"
"""Environment variable that trusts all folders, if it is 1."""
_LOG = logging.getLogger("rekindle")


def _require_trust(project: Project) -> None:
    if os.environ.get(TRUST_VARIABLE) == "1" and not trust_checks.is_trusted(project.path):
        trust_checks.accept_project(project)
    trust_checks.require_trust(project.path)


@dataclass(frozen=True)
class Operator:
    """Decides whether to trust a folder, and gets notes about what an action has changed."""

    ensure_trust: Callable[[Project], None] = _require_trust
    """Returns if the project's folder is trusted. Otherwise, it raises UntrustedError."""
    tell: Callable[[str], None] = _LOG.warning
    """Shows a note to the operator, on one line."""
    origin: str = "program"
    """Recorded as the origin of answers."""
    by: str = ""
    """Recorded as the author of answers, such as `telegram:42`; empty for the user of this process.
    """

    def accept_settings(self, project: Project, name: str) -> None:
        """Accept the agent's current settings, and tell the operator what has changed."""
        self.tell_changes(name, trust_checks.accept_settings(project, name))

    def tell_changes(self, name: str, changes: list[str]) -> None:
        for change in changes:
            self.tell(f"{name}: accepted from rekindle.yaml: {change}")

    def accept_log(self, store: object, name: str) -> None:
        """Accept a log that another program has changed, and tell the operator.

        Call this only from actions that start an agent.
        """
        if isinstance(store, FileStore) and (words := store.accept_log(name)):
            self.tell(
                f"Note: {name}: {words}. This command accepts the log, without the lines that "
                f"Rekindle cannot confirm; `rekindle events {name}` shows it"
            )
