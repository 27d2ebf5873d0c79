"""What many commands share: which agent, which store, how to print."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from rekindle import config
from rekindle.config import Project
from rekindle.errors import AuditError, UsageError
from rekindle.stores.files import FileStore
from rekindle.wiring.store import open_store

F = TypeVar("F", bound=Callable[..., Any])

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
take_over = click.option(
    "--take-over", is_flag=True, help="Take the agent from the host that it lived on before."
)


how_many = click.option(
    "-n",
    "--last",
    type=click.IntRange(0, 1_000_000_000),
    default=20,
    show_default=True,
    help="How many; 0: all.",
)


def which_agent(command: F) -> F:
    """An --agent option; without it, the manifest's only agent."""
    return click.option(
        "-a", "--agent", envvar="REKINDLE_AGENT", help="The agent; default: the only one."
    )(command)


def here() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError as gone:
        raise UsageError(
            "the current folder is gone", hint="cd to a folder that exists, then repeat"
        ) from gone


def open_project() -> tuple[Project, FileStore]:
    project = config.load(here())
    return project, open_store(project, say=print_note)


def open_agent(agent: str | None) -> tuple[Project, FileStore, str]:
    project, store = open_project()
    if agent is not None:
        return project, store, project.require_agent(agent)
    names = list(project.manifest.agents)
    if len(names) == 1:
        return project, store, names[0]
    if not names:
        raise UsageError("there is no agent yet", hint="add one with `rekindle init --agent NAME`")
    which = ", ".join(names[:20])
    raise UsageError("which agent?", hint=f"say which, as AGENT or by --agent: {which}")


def print_note(error: AuditError) -> None:
    """What the user should know of, though the command did what it was asked."""
    click.echo(f"Note: {error} (→ {error.hint})", err=True)


def print_json(value: Any) -> None:
    click.echo(msgspec.json.encode(value).decode())


def ago(then: datetime | None, now: datetime) -> str:
    """How long ago, in the unit that a person would use."""
    if then is None:
        return "never"
    seconds = (now - then).total_seconds()
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")):
        if seconds >= size:
            return f"{seconds // size:.0f} {unit} ago"
    return "just now"
