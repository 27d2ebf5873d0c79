"""`rekindle logs`: print what agents did."""

import heapq
import sys
import time
from collections import deque
from datetime import tzinfo

import click

from rekindle.api.activity_log import ActivityLog, LogLine
from rekindle.cli.options import (
    last_option,
    open_agents,
)
from rekindle.cli.output import (
    echo,
    style_text,
)
from rekindle.policy.settings.runtime_settings import POLL_SECONDS
from rekindle.system import clock
from rekindle.thresholds.screens import EVENTS_POLL_SECONDS


@click.command()
@click.argument("agents", nargs=-1)
@last_option
@click.option(
    "-f", "--follow", is_flag=True, help="Keep printing new lines until you press Ctrl-C."
)
def logs(agents: tuple[str, ...], last: int, follow: bool) -> None:
    """Print a timestamped record of what AGENTS (by default, all agents) did, newest last.

    The lines are the same as in `rekindle run`: launches, the agent's messages and tool calls,
    refused calls, crashes, waits and exits. They come from the log and from archived transcripts.
    On a fleet, they come only from the log.
    """
    project, store, names = open_agents(agents)
    zone = project.settings.runtime.brief.zone
    printer = _Printer(clock.find_zone(zone) if zone else None, max(map(len, names), default=0))
    printer.has_names = len(names) > 1
    stories = [ActivityLog(project, store, name) for name in names]
    merged = heapq.merge(*(story.read(last) for story in stories), key=lambda item: item[0])
    shown = deque(merged, last) if last else merged
    has_lines = False
    for item in shown:
        printer.print(item)
        has_lines = True
    if not (has_lines or follow):
        echo("Nothing has happened yet: start an agent with `rekindle run`.", err=True)
    while follow:
        sys.stdout.flush()
        # On a fleet, each poll is a query to the engine.
        time.sleep(EVENTS_POLL_SECONDS if project.settings.fleet is None else POLL_SECONDS)
        new = (item for story in stories for item in story.read_new())
        for item in sorted(new, key=lambda item: item[0]):
            printer.print(item)


class _Printer:
    def __init__(self, zone: tzinfo | None, width: int) -> None:
        self._zone, self._width = zone, width
        self.has_names = True

    def print(self, item: LogLine) -> None:
        at, name, line = item
        moment = f"{at.astimezone(self._zone):%Y-%m-%d %H:%M:%S}  "
        agent = f"{name:<{self._width}}  " if self.has_names else ""
        indent = "  " if line.place == "inside" else ""
        echo(moment, agent, style_text(f"{indent}{line.text}", **line.style))
