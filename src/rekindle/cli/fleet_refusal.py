"""Refuse commands that do not work for agents on a fleet."""

import click

from rekindle.api import fleet_alternatives
from rekindle.config import Project


def refuse_fleet(project: Project, option: str = "") -> None:
    """Refuse the current command (or the given option) if the project's agents are on a fleet."""
    if project.settings.fleet is not None:
        path = click.get_current_context().command_path
        fleet_alternatives.refuse_fleet(project, " ".join(filter(None, (path, option))))
