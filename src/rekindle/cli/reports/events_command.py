"""`rekindle events`: print the events in agents' logs."""

import heapq
import sys
import time
from collections import deque
from collections.abc import Iterator
from itertools import islice

import click

from rekindle.api.agent_store import AgentStore
from rekindle.cli.options import (
    is_typed,
    json_option,
    last_option,
    open_agents,
)
from rekindle.cli.output import echo
from rekindle.cli.reports.event_printer import EventPrinter
from rekindle.policy.settings.runtime_settings import POLL_SECONDS
from rekindle.stores.log.event_log import LogEntry
from rekindle.thresholds.screens import EVENTS_POLL_SECONDS


@click.command()
@click.argument("agents", nargs=-1)
@last_option
@click.option(
    "-f", "--follow", is_flag=True, help="Keep printing new events until you press Ctrl-C."
)
@click.option(
    *("-a", "--agent", "options"),
    multiple=True,
    metavar="AGENT",
    envvar="REKINDLE_AGENT",
    help="Name of an agent, as an alternative to AGENTS.",
)
@json_option
def events(
    agents: tuple[str, ...], options: tuple[str, ...], last: int, follow: bool, as_json: bool
) -> None:
    """Print the events for AGENTS, or for every agent, newest last.

    With --json, each line is a log event with its agent's name. The "Events" reference page lists
    every kind of event and its fields.
    """
    # An agent named as an argument overrides the environment variable.
    chosen = (*agents, *options) if is_typed("options") else agents or options
    project, store, names = open_agents(chosen)
    names = [name for name in names if store.exists(name)]
    if not names:
        echo("Nothing has happened yet: start an agent with `rekindle run`.", err=True)
        return
    width = max(map(len, names)) if len(names) > 1 else 0
    views = {name: store.read(name) for name in names}
    lines = {
        name: EventPrinter(store, name, views[name].end, as_json=as_json, width=width)
        for name in names
    }
    elsewhere: set[str] = set()
    shown = [
        _find_events(store, name, last, views[name].committed.seq, elsewhere) for name in names
    ]
    merged = heapq.merge(*shown, key=lambda entry: entry[1].event.ts)
    for name, entry in deque(merged, last) if last else merged:
        lines[name].print(entry)
    if elsewhere:
        echo("Note: older events are in the logs of the hosts that ran the agent.", err=True)
    while follow:
        for printer in lines.values():
            printer.print_new()
        sys.stdout.flush()
        # On a fleet, each poll is a query to the engine.
        time.sleep(EVENTS_POLL_SECONDS if project.settings.fleet is None else POLL_SECONDS)


def _find_events(
    store: AgentStore, name: str, last: int, seq: int, elsewhere: set[str]
) -> Iterator[tuple[str, LogEntry]]:
    """Yield the agent's name with each of its `last` events up to `seq`, oldest first.

    If `last` is 0, all events are yielded. If the log on this host lacks the agent's first events,
    the agent is added to `elsewhere`.
    """
    entries: Iterator[LogEntry] = iter(store.entries_since(name, 0))
    is_cut = False
    if last:
        newest = (entry for entry in store.newest_entries(name) if entry.event.seq <= seq)
        recent = list(islice(newest, last))
        entries, is_cut = reversed(recent), len(recent) == last
    for number, entry in enumerate(listed for listed in entries if listed.event.seq <= seq):
        if number == 0 and entry.event.seq > 1 and not is_cut:
            elsewhere.add(name)
        yield name, entry
