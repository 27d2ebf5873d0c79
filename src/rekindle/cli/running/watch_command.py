"""`rekindle watch` and `rekindle daemon`: restart supervisors that have died."""

from pathlib import Path

import click

from rekindle import config
from rekindle.cli.fleet_refusal import refuse_fleet
from rekindle.cli.options import (
    find_current_folder,
    json_option,
    open_project,
)
from rekindle.cli.output import echo, print_json
from rekindle.flows.supervision.watchdog import WatchReport
from rekindle.formats.identifiers import to_one_line
from rekindle.stores.folders.private_files import render_path
from rekindle.wiring.starting import background_start as wiring

_all_projects = click.option(
    "--all", "every", is_flag=True, help="Watch all projects that you trust on this host."
)


@click.command()
@click.option(
    "--once", is_flag=True, help="Check once and exit: the default, spelled out for a crontab."
)
@_all_projects
@json_option
def watch(once: bool, every: bool, as_json: bool) -> None:
    """Check once for supervisors that have died, and restart them.

    It is meant for cron, and needs no environment variables:

    \b
        */5 * * * * cd /your/project && /path/to/rekindle watch --once
        */5 * * * * /path/to/rekindle watch --once --all
    """  # noqa: D301 - click keeps the lines after \b as they are
    del once  # only makes the crontab line clearer: `watch` always runs once
    if every:
        _watch_all(as_json=as_json)
        return
    project, store = open_project()
    reports = wiring.watch_once(project, store)
    if as_json:
        print_json({"agents": reports})
        return
    for one in reports:
        _print_report(one)


def _watch_all(*, as_json: bool) -> None:
    from rekindle.wiring.starting.watch_all_projects import AllProjectsWatchdog  # noqa: PLC0415 - only needed with --all

    reports = list(AllProjectsWatchdog().look())
    if as_json:
        rows = [{"project": render_path(at), "report": one} for at, one in reports]
        print_json({"agents": rows})
        return
    for folder, one in reports:
        _print_of(folder, one)


@click.command()
@_all_projects
def daemon(every: bool) -> None:
    """Restart supervisors that die, until you stop the daemon.

    The daemon starts supervisors, never agents; the log of each agent tells it whether the agent is
    to run. Agents continue when the daemon stops. Run one daemon per project, or one with --all for
    all projects that you trust on this host, now or later.
    """
    if every:
        from rekindle.wiring.starting.watch_all_projects import run_daemon_for_all  # noqa: PLC0415 - as above

        run_daemon_for_all(_print_of)
        return
    refuse_fleet(config.load_project(find_current_folder()))
    wiring.run_daemon(find_current_folder(), _print_report)


def _print_of(folder: Path, one: WatchReport) -> None:
    _print_report(one, f"{to_one_line(render_path(folder))}: ")


def _print_report(one: WatchReport, where: str = "") -> None:
    did = ("started again: " if one.failed else "started: ") if one.started else ""
    sign = "✗" if one.failed else "✓" if one.started else "·"
    echo(f"{sign} {where}{one.agent}: {did}{one.words}")
