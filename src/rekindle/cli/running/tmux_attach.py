"""`rekindle attach`: show an agent's tmux window in the operator's terminal."""

import os
import sys

import click

from rekindle.cli.options import open_files, require_operator
from rekindle.errors import NotFoundError, UsageError
from rekindle.system.terminal import tmux
from rekindle.wiring.starting.background_start import TMUX_SESSION


@click.command()
@click.argument("agent", required=False)
def attach(agent: str | None) -> None:
    """Show AGENT's tmux window in this terminal, where you can watch and type.

    This works for agents that were started with `rekindle up --tmux`. Press Ctrl-B d to detach. The
    agent keeps running.
    """
    project, _store, name = open_files(agent)
    require_operator(project)
    if not is_at_terminal():
        raise UsageError(
            "`attach` needs a terminal",
            hint=f"`rekindle logs -f {name}` prints what the agent does",
        )
    window = tmux.find_window(TMUX_SESSION, name, str(project.path))
    if window is None:
        raise NotFoundError(
            f"{name} has no tmux window",
            hint=f"`rekindle logs -f {name}` prints what it does; `rekindle stop {name}`, then"
            f" `rekindle up --tmux {name}` opens one",
        )
    sys.stdout.flush()
    tmux.attach_window(window, os.environ)


def is_at_terminal() -> bool:
    """Return whether standard input and standard output are both terminals."""
    return sys.stdin.isatty() and sys.stdout.isatty()
