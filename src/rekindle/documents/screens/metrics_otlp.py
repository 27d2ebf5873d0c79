"""Render agents' metrics as a request to an OpenTelemetry collector (OTLP/HTTP with JSON)."""

from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec

from rekindle.documents.screens.metric_names import METRICS, Metric
from rekindle.documents.screens.metrics_text import MetricSample, ProjectMetrics, list_samples
from rekindle.documents.traces.trace_span import AttributeValue, render_attributes, render_time

_CUMULATIVE = 2


def render_metrics_request(
    projects: Iterable[ProjectMetrics], resource: Mapping[str, AttributeValue], now: datetime
) -> bytes:
    """Return the body of a request to `/v1/metrics`."""
    samples: dict[str, list[MetricSample]] = {}
    for sample in list_samples(projects):
        samples.setdefault(sample.metric.name, []).append(sample)
    metrics = [
        _render_metric(metric, samples[metric.name], now)
        for metric in METRICS
        if metric.name in samples
    ]
    scope = {"name": "rekindle", "version": resource.get("service.version", "")}
    body = {
        "resourceMetrics": [
            {
                "resource": {"attributes": render_attributes(resource)},
                "scopeMetrics": [{"scope": scope, "metrics": metrics}],
            }
        ]
    }
    return msgspec.json.encode(body)


def _render_metric(metric: Metric, samples: list[MetricSample], now: datetime) -> dict[str, object]:
    points = [
        {
            "attributes": render_attributes(sample.labels),
            "timeUnixNano": render_time(now),
            "asDouble": float(sample.value),
        }
        for sample in samples
    ]
    named = {"name": metric.name, "description": metric.meaning}
    if metric.kind == "gauge":
        return {**named, "gauge": {"dataPoints": points}}
    total = {"aggregationTemporality": _CUMULATIVE, "isMonotonic": True, "dataPoints": points}
    return {**named, "sum": total}
