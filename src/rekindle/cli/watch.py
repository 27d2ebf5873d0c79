"""`rekindle watch`, `rekindle daemon`: supervisors that are gone are started again."""

from pathlib import Path

import click

from rekindle import config
from rekindle.cli.one_host import refuse_fleet
from rekindle.cli.options import as_json, here, open_project
from rekindle.cli.output import echo, print_json
from rekindle.documents.identity import one_line
from rekindle.flows.watch_agents import Looked
from rekindle.stores.private import render_path
from rekindle.wiring import watch as wiring

SCHEMA = 1

_all_projects = click.option(
    "--all", "every", is_flag=True, help="All projects that you trust on this host."
)


@click.command()
@click.option(
    "--once", is_flag=True, help="Look once and end: what it does anyway, said for who reads it."
)
@_all_projects
@as_json
def watch(once: bool, every: bool, as_json: bool) -> None:
    """Look after the agents once: start the supervisors that are gone.

    For cron; it needs nothing of your environment:

    \b
        */5 * * * * cd /your/project && /path/to/rekindle watch --once
        */5 * * * * /path/to/rekindle watch --once --all
    """  # noqa: D301 - what keeps the lines as they are is that very character
    del once  # said for who reads the crontab: without it nothing else happens
    if every:
        _watch_all(as_json=as_json)
        return
    project, store = open_project()
    found = wiring.look_once(project, store)
    if as_json:
        print_json({"v": SCHEMA, "agents": found})
        return
    for one in found:
        _print(one)


def _watch_all(*, as_json: bool) -> None:
    from rekindle.wiring.watch_all import WatchAll  # noqa: PLC0415 - one project does not pay

    found = list(WatchAll().look())
    if as_json:
        rows = [{"project": render_path(at), "report": one} for at, one in found]
        print_json({"v": SCHEMA, "agents": rows})
        return
    for folder, one in found:
        _print_of(folder, one)


@click.command()
@_all_projects
def daemon(every: bool) -> None:
    """Look after the agents again and again, until you end it.

    It starts supervisors, never agents, and looks at what the operator has said, not at names of
    processes. Agents live on when it ends. One for each project, or with --all one for all projects
    that you trust on this host, and for those that you trust later.
    """
    if every:
        from rekindle.wiring.watch_all import keep_looking_at_all  # noqa: PLC0415 - as above

        keep_looking_at_all(_print_of)
        return
    refuse_fleet(config.load(here()))
    wiring.keep_looking(here(), _print)


def _print_of(folder: Path, one: Looked) -> None:
    _print(one, f"{one_line(render_path(folder))}: ")


def _print(one: Looked, where: str = "") -> None:
    did = ("started again: " if one.failed else "started: ") if one.started else ""
    sign = "✗" if one.failed else "✓" if one.started else "·"
    echo(f"{sign} {where}{one.agent}: {did}{one.words}")
