"""`rekindle top`: show the agents live in the terminal."""

import sys

import click

from rekindle.cli.options import find_current_folder
from rekindle.errors import UsageError


@click.command()
@click.option("--read-only", is_flag=True, help="Show the agents, but do not control them.")
def top(read_only: bool) -> None:
    """Show all agents live in this terminal, and control them there.

    Agents that need you are listed first, with their questions. Press enter to open an agent: its
    last hours as a timeline, its relay, loops, decisions and output. The footer shows the keys.
    Before an action runs, the screen shows its command and asks once.
    """
    from rekindle.terminal_screen.top_app import TopApp  # noqa: PLC0415 - needs the top extra

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            "`rekindle top` needs a terminal", hint="`rekindle status` prints the same agents"
        )
    TopApp(find_current_folder(), read_only=read_only).run()
