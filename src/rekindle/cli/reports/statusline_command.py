"""`rekindle statusline`: print one line about the agent, for a CLI's status line or a prompt."""

import os
import sys
from pathlib import Path

import click

from rekindle import config
from rekindle.cli.options import find_current_folder
from rekindle.cli.output import echo
from rekindle.documents.screens import status_line
from rekindle.documents.screens.status_line import CliFacts
from rekindle.errors import RekindleError
from rekindle.thresholds.screens import STATUSLINE_BYTES
from rekindle.wiring.agent_dir_list import choose_agent
from rekindle.wiring.open_store import open_store
from rekindle.wiring.row_setup import make_row_reader


@click.command()
def statusline() -> None:
    """Print the agent, its cycle, window, questions and spending on one line.

    Claude Code runs this command for its status line, and passes facts about the session on
    standard input. `rekindle hooks install --for user` sets this up if you have no status line. In
    other programs, for example tmux, run the command in the project's folder.
    """
    is_piped = sys.stdin is not None and not sys.stdin.isatty()
    data = sys.stdin.buffer.read(STATUSLINE_BYTES) if is_piped else b""
    facts = status_line.parse_facts(data)
    try:
        line = _render_line(facts)
    except (RekindleError, OSError) as error:
        # A status line must not disturb the CLI that shows it.
        line = f"rekindle: {error}"
    echo(line or "rekindle: no agent here")


def _render_line(facts: CliFacts) -> str:
    folder = Path(facts.folder) if facts.folder else find_current_folder()
    if config.find_project(folder) is None:
        return status_line.render_session(facts)
    project = config.load_project(folder)
    if project.settings.fleet is not None:
        # Asking the fleet takes too long for a line that is shown after every message.
        return f"agents on a fleet · {status_line.render_session(facts)}".rstrip(" ·")
    reader = make_row_reader(project, open_store(project))
    named = os.environ.get("REKINDLE_AGENT", "")
    agent = named if named in project.manifest.agents else choose_agent(project, folder)
    if agent:
        return status_line.render_agent(reader.row(agent), facts)
    rows = [reader.row(name) for name in project.declared_agents]
    return status_line.render_agents(rows, facts)
