"""Read the metrics of all projects for `/metrics`, each time only what is new in the logs."""

from threading import Lock

from rekindle.config import Project
from rekindle.documents.screens.metrics_text import ProjectMetrics, render_metrics
from rekindle.errors import RekindleError
from rekindle.flows.operator.read_metrics import MetricsReader
from rekindle.stores.files import FileStore
from rekindle.web.project_rows import WebProjects
from rekindle.wiring.row_setup import make_row_reader


class WebMetrics:
    """The metrics of the projects that the pages show."""

    def __init__(self, projects: WebProjects) -> None:
        self._projects, self._lock = projects, Lock()
        self._readers: dict[str, tuple[Project, MetricsReader]] = {}

    def render(self) -> str:
        """Return the metrics of all projects as text."""
        with self._lock:
            return render_metrics([self._read(name) for name in self._projects.list_names()])

    def _read(self, name: str) -> ProjectMetrics:
        try:
            home = self._projects.find(name)
            project, store = home.project, home.store
            if not isinstance(store, FileStore):
                # A fleet's log on this host is incomplete, so there are no counters.
                return ProjectMetrics(name, home.rows(project.declared_agents))
            known, reader = self._readers.get(name, (None, None))
            if reader is None or known is not project:
                rows = make_row_reader(project, store)
                reader = MetricsReader(name, store, rows, project.declared_agents)
                self._readers[name] = project, reader
            return reader.read()
        except RekindleError:
            return ProjectMetrics(name, is_readable=False)
