"""`rekindle watch`, `rekindle daemon`: supervisors that are gone are started again."""

import click

from rekindle import config
from rekindle.cli.one_host import refuse_fleet
from rekindle.cli.options import as_json, here, open_project
from rekindle.cli.output import echo, print_json
from rekindle.flows.watch_agents import Looked
from rekindle.wiring import watch as wiring

SCHEMA = 1


@click.command()
@click.option(
    "--once", is_flag=True, help="Look once and end: what it does anyway, said for who reads it."
)
@as_json
def watch(once: bool, as_json: bool) -> None:
    """Look after the agents once: start the supervisors that are gone.

    For cron; it needs nothing of your environment:

    \b
        */5 * * * * cd /your/project && /path/to/rekindle watch --once
    """  # noqa: D301 - what keeps the lines as they are is that very character
    del once  # said for who reads the crontab: without it nothing else happens
    project, store = open_project()
    found = wiring.look_once(project, store)
    if as_json:
        print_json({"v": SCHEMA, "agents": found})
        return
    for one in found:
        _print(one)


@click.command()
def daemon() -> None:
    """Look after the agents again and again, until you end it.

    It starts supervisors, never agents, and looks at what the operator has said, not at names of
    processes. Agents live on when it ends. One for each project.
    """
    refuse_fleet(config.load(here()))
    wiring.keep_looking(here(), _print)


def _print(one: Looked) -> None:
    did = ("started again: " if one.failed else "started: ") if one.started else ""
    sign = "✗" if one.failed else "✓" if one.started else "·"
    echo(f"{sign} {one.agent}: {did}{one.words}")
