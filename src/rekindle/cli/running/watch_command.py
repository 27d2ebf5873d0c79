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
@click.option("--once", is_flag=True, help="Check once and exit. This is the default.")
@_all_projects
@json_option
def watch(once: bool, every: bool, as_json: bool) -> None:
    """Check once for supervisors that have died, and restart them.

    This also starts runs that are due according to a schedule (`every:`).

    Use this command in cron. It does not need any environment variables:

    \b
        */5 * * * * cd /your/project && /path/to/rekindle watch --once
        */5 * * * * /path/to/rekindle watch --once --all
    """  # noqa: D301 - click keeps the lines after \b as they are
    del once  # `watch` always checks once; the option only makes a crontab line clearer
    if every:
        _watch_all(as_json=as_json)
        return
    project, store = open_project()
    reports = wiring.watch_once(project, store)
    if as_json:
        print_json({"agents": reports})
        return
    for report in reports:
        _print_report(report)


def _watch_all(*, as_json: bool) -> None:
    from rekindle.wiring.starting.watch_all_projects import AllProjectsWatchdog  # noqa: PLC0415 - only needed with --all

    reports = list(AllProjectsWatchdog().look())
    if as_json:
        rows = [{"project": render_path(at), "report": report} for at, report in reports]
        print_json({"agents": rows})
        return
    for folder, report in reports:
        _print_of(folder, report)


@click.command()
@_all_projects
def daemon(every: bool) -> None:
    """Restart supervisors that die, until you stop the daemon.

    The daemon starts supervisors, but never agents. It reads each agent's log to find out whether
    the agent should be running. It also starts runs that are due according to a schedule
    (`every:`). Agents keep running when the daemon stops. Run one daemon per project, or one with
    --all for all projects that you trust on this host.
    """
    if every:
        from rekindle.wiring.starting.watch_all_projects import run_daemon_for_all  # noqa: PLC0415 - as above

        run_daemon_for_all(_print_of)
        return
    refuse_fleet(config.load_project(find_current_folder()))
    wiring.run_daemon(find_current_folder(), _print_report)


def _print_of(folder: Path, report: WatchReport) -> None:
    _print_report(report, f"{to_one_line(render_path(folder))}: ")


def _print_report(report: WatchReport, where: str = "") -> None:
    did = ("started again: " if report.failed else "started: ") if report.started else ""
    sign = "✗" if report.failed else "✓" if report.started else "·"
    echo(f"{sign} {where}{report.agent}: {did}{report.words}")
