"""`rekindle ui`: show the agents in a browser."""

import re
from pathlib import Path

import click

from rekindle import config
from rekindle.cli.options import Number, find_current_folder
from rekindle.cli.output import echo
from rekindle.errors import NotFoundError, RekindleError, UsageError
from rekindle.thresholds.web_limits import UI_LINK_SECONDS, UI_PORT
from rekindle.wiring.access.operator_check import refuse_agent_of
from rekindle.wiring.access.trust_checks import list_trusted

_LARGEST_PORT = 65_535
_HOST_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]+)?")


def _check_name(name: str | None) -> str | None:
    """Return the proxy's name as a browser sends it, or refuse one that no browser sends."""
    if name and not _HOST_NAME.fullmatch(name.lower()):
        raise UsageError(
            f"{name!r} is not a host name",
            hint="give only the name that the proxy serves, such as agents.example",
        )
    return name.lower() if name else None


@click.command()
@click.option(
    "--port",
    type=Number(0, _LARGEST_PORT),
    help=f"Port of the pages on 127.0.0.1, or 0 for any free port. Default: {UI_PORT}.",
)
@click.option("--read-only", is_flag=True, help="Show the agents, but do not control them.")
@click.option("--link", is_flag=True, help="Print a new link to the running server, and exit.")
@click.option(
    "--behind-proxy",
    "proxy",
    metavar="NAME",
    callback=lambda _context, _option, name: _check_name(name),
    help="Also accept requests from a proxy that serves the pages at https://NAME.",
)
@click.option("--no-open", is_flag=True, help="Print the link, but do not open a browser.")
def ui(port: int | None, read_only: bool, link: bool, proxy: str | None, no_open: bool) -> None:
    """Show all agents in a browser, and control them there.

    The pages show the agents of this project and of all other projects that you trust on this host.
    The server listens only on 127.0.0.1. Its link works once, within a minute. After that, print a
    new one with --link.
    """
    folder = config.find_project(find_current_folder())
    for project in [*([folder] if folder else []), *list_trusted()]:
        refuse_agent_of(project, _list_agents(project), "rekindle ui")
    if link:
        _print_link(port, proxy)
        return
    from rekindle.web.run_server import run_server  # noqa: PLC0415 - needs the ui extra

    def tell(address: str) -> None:
        _print_address(address)
        if not no_open:
            click.launch(address)

    number = UI_PORT if port is None else port
    run_server(folder, number, read_only=read_only, proxy=proxy, tell=tell)


def _list_agents(project: Path) -> list[str]:
    try:
        return config.list_agents(project)
    except RekindleError:
        return []  # the page shows the error


def _print_link(port: int | None, proxy: str | None) -> None:
    from rekindle.web.page_links import PageLinks, find_running  # noqa: PLC0415 - as above

    running = find_running()
    if port is not None:
        running = [number for number in running if number == port]
    if not running:
        raise NotFoundError("no server is running", hint="start one with `rekindle ui`")
    if len(running) > 1:
        ports = ", ".join(map(str, running))
        raise UsageError(f"several servers are running: {ports}", hint="choose one with --port")
    _print_address(PageLinks(running[0]).make_link(proxy))


def _print_address(address: str) -> None:
    echo(address)
    echo(f"Open this link within {UI_LINK_SECONDS:.0f} s. `rekindle ui --link` prints a new one.")
