"""Ask the user whether to trust a folder that has a manifest."""

import os
import sys
from typing import Any

import click

from rekindle.api.operator import TRUST_VARIABLE, Operator
from rekindle.cli.output import echo
from rekindle.config import Project
from rekindle.documents.manifest import MANIFEST_FILE
from rekindle.errors import UntrustedError, UsageError
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.settings import consent
from rekindle.stores.folders.agent_folder import RekindleFolder
from rekindle.stores.folders.private_files import render_path
from rekindle.thresholds.texts import CONSENT_SHOWN_CHARACTERS
from rekindle.wiring.access import trust_checks as wiring

trust_option = click.option(
    "--trust", is_flag=True, help="Trust this folder's rekindle.yaml and .rekindle without asking."
)


def ensure_trust(project: Project, *, trust: bool) -> None:
    """Ask the user to accept the project folder, unless it is already trusted.

    Raises:
        UntrustedError: The user declined, or there is no terminal for the prompt.
    """
    if wiring.is_trusted(project.path):
        return
    if not trust and os.environ.get(TRUST_VARIABLE) != "1":
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise UntrustedError(render_path(project.path))
        _show_project(project)
        if not click.confirm("Trust this folder?", default=False, err=True):
            raise UntrustedError(render_path(project.path))
    wiring.accept_project(project)


def make_operator(*, trust: bool, origin: str = "command") -> Operator:
    """Return the user at this terminal, whom actions can ask to trust a folder."""

    def ensure(project: Project) -> None:
        ensure_trust(project, trust=trust)

    return Operator(ensure_trust=ensure, tell=_print_line, origin=origin)


def _print_line(words: str) -> None:
    echo(words, err=True)


def print_changes(name: str, changes: list[str]) -> None:
    """Print the changed settings that the current command accepts."""
    Operator(tell=_print_line).tell_changes(name, changes)


def _show_project(project: Project) -> None:
    """Print the programs, permissions and budgets that the manifest controls."""
    folder = to_one_line(render_path(project.path))
    echo(f"You have not accepted {folder} on this host yet.", err=True)
    echo(f"Its {MANIFEST_FILE} controls what Rekindle starts and permits:", err=True)
    shown: dict[str, Any] = {}
    for name in project.declared_agents:
        shown |= wiring.find_controlled(project, name)
    for name in project.manifest.pipelines:
        shown |= wiring.find_pipeline_settings(project, name)
    for change in consent.compare_settings({}, shown):
        if len(change.after) > CONSENT_SHOWN_CHARACTERS:
            raise UsageError(
                f"`{change.key}` has {len(change.after)} characters, which is too long to show",
                hint=f"read {MANIFEST_FILE}, then accept it with --trust",
            )
        echo(f"  {change.key}: {change.after}", err=True)
    state = RekindleFolder(project.path).path
    if state.exists():
        echo(
            f"Its {state.name} folder has logs, relays and briefs that agents will read.",
            err=True,
        )
