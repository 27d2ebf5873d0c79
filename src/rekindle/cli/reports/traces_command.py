"""`rekindle traces`: send runs, cycles and sessions to an OpenTelemetry collector."""

import os
import re
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import click

from rekindle import __version__, config
from rekindle.cli.options import find_current_folder, print_note
from rekindle.cli.output import echo
from rekindle.cli.reports.since_option import parse_since
from rekindle.documents.screens.status_table import name_folders
from rekindle.errors import CollectorError, RekindleError, UsageError
from rekindle.flows.operator.export_traces import TracedLog, TraceExporter
from rekindle.formats.counts import render_count
from rekindle.policy.settings.metrics_check import make_signal_url
from rekindle.stores.folders.agent_folder import RekindleFolder
from rekindle.stores.folders.private_files import render_path
from rekindle.system import clock, trace_collector
from rekindle.thresholds.web_limits import TRACE_HOURS, TRACE_POLL_SECONDS
from rekindle.wiring.access.trust_checks import list_trusted
from rekindle.wiring.open_store import open_store

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


@click.command()
@click.option(
    "--to",
    "url",
    metavar="URL",
    help=f"Collector, such as http://127.0.0.1:4318. Default: ${ENDPOINT}.",
)
@click.option(
    "--since",
    metavar="TIME",
    help="Send only spans that ended after this time: 2h, 3d, 2026-01-31. Default: 24h.",
)
@click.option("-f", "--follow", is_flag=True, help="Keep sending until you press Ctrl-C.")
@click.option(
    "--all", "every", is_flag=True, help="Include all projects that you trust on this host."
)
@click.option(
    "--root",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of a fleet worker (`fleet worker --root`). Default: this project's agents.",
)
def traces(
    *, url: str | None, since: str | None, follow: bool, every: bool, root: Path | None
) -> None:
    """Send the agents' runs, cycles and sessions as spans to an OpenTelemetry collector.

    The spans are made from the agents' logs, so sending never delays an agent. A span is sent when
    it has ended. Spans that are sent twice have the same ids. $OTEL_EXPORTER_OTLP_HEADERS can hold
    headers for the collector.
    """
    address = url or os.environ.get(ENDPOINT, "")
    if not re.match(r"https?://", address):
        raise UsageError(
            "`rekindle traces` needs a collector's URL",
            hint=f"use --to http://127.0.0.1:4318, or set {ENDPOINT}",
        )
    now = clock.read_clock()
    start = parse_since(since, now) if since else now - timedelta(hours=TRACE_HOURS)
    headers = trace_collector.parse_headers(os.environ.get(trace_collector.HEADERS, ""))
    target = make_signal_url(address, "traces")
    resource = {
        "service.name": "rekindle",
        "service.version": __version__,
        "host.name": os.uname().nodename,
    }
    exporter = TraceExporter(
        lambda body: trace_collector.send_request(target, body, headers), resource, start
    )
    find_logs = _make_finder(every=every, root=root)
    if follow:
        _follow(exporter, find_logs)
    else:
        echo(f"✓ sent {render_count(exporter.export(find_logs()), 'span')}")


def _follow(exporter: TraceExporter, find_logs: Callable[[], list[TracedLog]]) -> None:
    """Send spans until a signal ends the process. An outage of the collector is reported once."""
    reported = ""
    while True:
        try:
            exporter.export(find_logs())
            reported = ""
        except CollectorError as error:
            if str(error) != reported:
                reported = str(error)
                echo(f"waiting: {error}\n  → {error.hint}", err=True)
        time.sleep(TRACE_POLL_SECONDS)


def _make_finder(*, every: bool, root: Path | None) -> Callable[[], list[TracedLog]]:
    if every:
        return _list_all
    folder = find_current_folder()
    if root is None:
        project = config.load_project(folder)
        if project.settings.fleet is None:
            return lambda: _list_project(folder)
        root = RekindleFolder(project.path).path / "fleet"
    from rekindle.fleet.hosts.host_logs import list_host_logs  # noqa: PLC0415 - needs the fleet extra

    place = root
    return lambda: list_host_logs(place)


def _list_all() -> list[TracedLog]:
    folders = list_trusted()
    names = name_folders([render_path(folder) for folder in folders])
    logs: list[TracedLog] = []
    for folder, name in zip(folders, names, strict=True):
        try:
            logs += _list_project(folder, name)
        except RekindleError as error:
            echo(f"Note: {name}: {error}", err=True)
    return logs


def _list_project(folder: Path, name: str = "") -> list[TracedLog]:
    project = config.load_project(folder)
    store = open_store(project, say=print_note)
    name = name or os.fsencode(project.path.name).decode("utf-8", "replace")
    return [TracedLog(name, agent, store.folder(agent).log) for agent in project.declared_agents]
