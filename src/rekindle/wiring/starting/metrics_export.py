"""Export the metrics of projects on this host from the daemon, in threads of its own.

A reader or a collector that hangs holds up only its thread, never the daemon.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread

from rekindle import __version__, config
from rekindle.config import Project
from rekindle.documents.screens.metrics_otlp import render_metrics_request
from rekindle.documents.screens.metrics_text import ProjectMetrics, render_metrics
from rekindle.documents.screens.status_table import name_folders
from rekindle.errors import CollectorError, RekindleError, UsageError
from rekindle.flows.operator.read_metrics import MetricsReader
from rekindle.policy.settings.metrics_check import find_listen_address, make_signal_url
from rekindle.policy.settings.metrics_settings import MetricsSettings
from rekindle.stores.folders.private_files import render_path
from rekindle.system import clock, trace_collector
from rekindle.thresholds.web_limits import METRICS_SECONDS
from rekindle.wiring.access import trust_checks
from rekindle.wiring.open_store import open_store
from rekindle.wiring.row_setup import make_row_reader

ListFolders = Callable[[], Sequence[Path]]


def export_metrics(list_folders: ListFolders) -> None:
    """Start to export the metrics of projects that set `runtime: metrics:`.

    Projects with the same address share it.

    Raises:
        UsageError: An address cannot be listened on.
    """
    found = {project.settings.runtime.metrics for _, project in _list_projects(list_folders())}
    for settings in found - {MetricsSettings()}:
        reader = _ExportedProjects(settings, list_folders)
        if address := find_listen_address(settings):
            server = _listen(address, reader)
            Thread(target=server.serve_forever, daemon=True).start()
        if settings.otlp:
            Thread(target=_send_regularly, args=(settings.otlp, reader), daemon=True).start()


class _ExportedProjects:
    """Reads the projects that have the same `metrics:`, each time only what is new."""

    def __init__(self, settings: MetricsSettings, list_folders: ListFolders) -> None:
        self._settings, self._list_folders = settings, list_folders
        self._lock = Lock()
        self._readers: dict[str, tuple[Project, MetricsReader]] = {}

    def read(self) -> list[ProjectMetrics]:
        with self._lock:
            return [
                self._read_project(name, project)
                for name, project in _list_projects(self._list_folders())
                if project.settings.runtime.metrics == self._settings
            ]

    def _read_project(self, name: str, project: Project) -> ProjectMetrics:
        try:
            known, reader = self._readers.get(name, (None, None))
            if reader is None or known is None or known.manifest != project.manifest:
                store = open_store(project)
                rows = make_row_reader(project, store)
                reader = MetricsReader(name, store, rows, project.declared_agents)
                self._readers[name] = project, reader
            return reader.read()
        except RekindleError:
            return ProjectMetrics(name, is_readable=False)


def _list_projects(folders: Sequence[Path]) -> Iterator[tuple[str, Project]]:
    """Yield readable projects on this host whose `metrics:` the operator has accepted."""
    names = name_folders([render_path(folder) for folder in folders])
    for folder, name in zip(folders, names, strict=True):
        with suppress(RekindleError):
            project = config.load_project(folder)
            if project.settings.fleet is None and _is_accepted(project):
                yield name, project


def _is_accepted(project: Project) -> bool:
    """Return whether no agent has changed where metrics go since an operator accepted it."""
    trust_checks.require_trust(project.path)
    return not any(
        change.key.startswith("runtime.metrics")
        for agent in project.declared_agents
        for change in trust_checks.find_changes(project, agent)
    )


def _listen(address: str, reader: _ExportedProjects) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_page = self.path == "/metrics"
            body = render_metrics(reader.read()).encode("utf-8", "replace") if is_page else b""
            self.send_response(200 if is_page else 404)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: object) -> None:
            """Print nothing about requests."""

    host, _, port = address.rpartition(":")
    try:
        return ThreadingHTTPServer((host.strip("[]"), int(port)), Handler)
    except OSError as error:
        raise UsageError(
            f"metrics cannot be served at {address}: {error.strerror}",
            hint="choose another address with `runtime: metrics:`",
        ) from error


def _send_regularly(otlp: str, reader: _ExportedProjects) -> None:
    headers = trace_collector.parse_headers(os.environ.get(trace_collector.HEADERS, ""))
    resource = {
        "service.name": "rekindle",
        "service.version": __version__,
        "host.name": os.uname().nodename,
    }
    while True:
        body = render_metrics_request(reader.read(), resource, clock.read_clock())
        with suppress(CollectorError):  # the next request carries the same counters
            trace_collector.send_request(make_signal_url(otlp, "metrics"), body, headers)
        time.sleep(METRICS_SECONDS)
