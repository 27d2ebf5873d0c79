"""Asking the user whether a folder that brings its own manifest is to be trusted."""

import os
import sys
from pathlib import Path
from typing import Any

import click

from rekindle.cli.output import echo
from rekindle.config import Project
from rekindle.documents.identity import one_line
from rekindle.documents.manifest import FILE
from rekindle.errors import UntrustedError
from rekindle.policy import consent
from rekindle.stores.files.layout import Root
from rekindle.stores.private import render_path
from rekindle.wiring import trust as wiring

VARIABLE = "REKINDLE_TRUST"

trust_option = click.option(
    "--trust", is_flag=True, help="Accept this folder's rekindle.yaml and .rekindle unasked."
)


def ensure_trust(project: Project, *, trust: bool) -> None:
    """Have the user accept the project's folder, once; then return.

    Raises:
        UntrustedError: The user declined, or there is no terminal to ask at.
    """
    if wiring.is_trusted(project.path):
        return
    if not trust and os.environ.get(VARIABLE) != "1":
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise UntrustedError(render_path(project.path))
        _show(project)
        if not click.confirm("Trust this folder?", default=False, err=True):
            raise UntrustedError(render_path(project.path))
    wiring.accept_project(project)


def trust_if_new(folder: Path) -> bool:
    """Trust a folder that brings neither a manifest nor state; return whether it is trusted."""
    if not wiring.has_anything_to_trust(folder):
        wiring.accept_folder(folder)
    return wiring.is_trusted(folder)


def print_changes(name: str, changes: list[str]) -> None:
    """Tell the operator which settings this command accepts that were not accepted before."""
    for change in changes:
        echo(f"{name}: accepted from rekindle.yaml: {change}", err=True)


def _show(project: Project) -> None:
    """Print what the folder would have Rekindle start, permit and pay for."""
    folder = one_line(render_path(project.path))
    echo(f"You have not accepted {folder} on this host yet.", err=True)
    echo(f"Its {FILE} controls what Rekindle starts and permits:", err=True)
    shown: dict[str, Any] = {}
    for name in project.manifest.agents:
        shown |= wiring.controlled(project, name)
    for change in consent.compare({}, shown):
        echo(f"  {change.key}: {change.after}", err=True)
    state = Root(project.path).path
    if state.exists():
        echo(
            f"It brings a {state.name} folder: logs, relays and briefs that agents will read.",
            err=True,
        )
