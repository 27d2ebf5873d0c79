"""Send the spans of agents' runs to a collector, and each time only what is new in the logs."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

import msgspec

from rekindle.documents.traces.trace_span import AttributeValue, TraceSpan, render_request
from rekindle.policy.traces.build_trace import TraceReader
from rekindle.stores.log import event_log
from rekindle.thresholds.web_limits import TRACE_SPANS, TRACE_WAITING_SPANS


class TracedLog(msgspec.Struct, frozen=True):
    """The log of one agent."""

    project: str
    agent: str
    path: Path


class _Reading(msgspec.Struct):
    reader: TraceReader
    end: int = 0
    """Byte offset up to which the log has been read."""
    anchor: str = ""
    """Fingerprint of the log just before `end`."""


class TraceExporter:
    """Sends each span once it has ended. Nothing else waits for the collector."""

    def __init__(
        self,
        send: Callable[[bytes], None],
        resource: Mapping[str, AttributeValue],
        since: datetime,
    ) -> None:
        """Create an exporter for spans that end after `since`."""
        self._send, self._resource, self._since = send, resource, since
        self._readings: dict[Path, _Reading] = {}
        self._waiting: deque[TraceSpan] = deque(maxlen=TRACE_WAITING_SPANS)

    def export(self, logs: Sequence[TracedLog]) -> int:
        """Send what is new in the logs, and return the number of spans that were sent.

        Spans that the collector did not take are sent again with the next call.

        Raises:
            CollectorError: The collector did not take all spans.
        """
        for log in logs:
            self._waiting.extend(span for span in self._read(log) if span.end >= self._since)
        sent = 0
        while self._waiting:
            batch = [span for span, _ in zip(self._waiting, range(TRACE_SPANS), strict=False)]
            self._send(render_request(batch, self._resource))
            for _ in batch:
                self._waiting.popleft()
            sent += len(batch)
        return sent

    def _read(self, log: TracedLog) -> list[TraceSpan]:
        size = event_log.measure_log(log.path)
        reading = self._readings.get(log.path)
        if reading is not None and (
            size < reading.end or event_log.compute_anchor(log.path, reading.end) != reading.anchor
        ):
            reading = None  # the log was replaced
        if reading is None:
            reading = _Reading(TraceReader(log.project, log.agent))
            self._readings[log.path] = reading
        if size <= reading.end:
            return []
        new = []
        for entry in event_log.read_entries(log.path, reading.end):
            if not entry.line.strip():
                continue
            new.append(entry.event)
            reading.end = entry.end
        reading.anchor = event_log.compute_anchor(log.path, reading.end)
        return list(reading.reader.read(new))
