"""Read the metrics of a project's agents. After the first time, read only new log entries."""

from collections.abc import Sequence
from contextlib import suppress
from itertools import takewhile

import msgspec

from rekindle.documents.screens.metrics_text import AgentCounts, ProjectMetrics, render_metrics
from rekindle.errors import RekindleError
from rekindle.flows.operator.read_rows import RowReader
from rekindle.policy.operator.count_events import NOTHING_COUNTED, count_events
from rekindle.stores.files import FileStore
from rekindle.stores.log import event_log
from rekindle.stores.log.view import AgentView


class _CountedLog(msgspec.Struct, frozen=True):
    end: int = 0
    """Byte offset up to which the log has been counted."""
    anchor: str = ""
    """Fingerprint of the log just before `end`."""
    counts: AgentCounts = NOTHING_COUNTED


class MetricsReader:
    """Reads the metrics of one project's agents."""

    def __init__(
        self, project: str, store: FileStore, rows: RowReader, agents: Sequence[str]
    ) -> None:
        """Create a reader. `project` is the value of the label `project`."""
        self._project, self._store, self._rows, self._agents = project, store, rows, agents
        self._counted: dict[str, _CountedLog] = {}

    def render(self) -> str:
        """Return the metrics of this project as text. For several, use `render_metrics`."""
        return render_metrics([self.read()])

    def read(self) -> ProjectMetrics:
        rows, counts = [], {}
        for agent in self._agents:
            reading = self._rows.read(agent)
            rows.append(reading.row)
            # An agent may have forged the entries of a log that was tampered with.
            if reading.view is not None and not reading.view.is_tampered:
                with suppress(RekindleError):
                    counts[agent] = self._count(agent, reading.view)
        return ProjectMetrics(self._project, rows, counts)

    def _count(self, agent: str, view: AgentView) -> AgentCounts:
        before = self._counted.get(agent, _CountedLog())
        if (before.end, before.anchor) != (view.end, view.anchor):
            if before.anchor != event_log.compute_anchor(self._store.folder(agent).log, before.end):
                before = _CountedLog()  # the log was replaced
            entries = self._store.entries_since(agent, before.end)
            # Bytes after `view.end` may be an interrupted append, which the next writer removes.
            new = (entry.event for entry in takewhile(lambda entry: entry.end <= view.end, entries))
            before = _CountedLog(view.end, view.anchor, count_events(before.counts, new))
            self._counted[agent] = before
        return before.counts
