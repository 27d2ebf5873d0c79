"""Agents' metrics as a collector reads them: the same figures as in Prometheus's format."""

from datetime import UTC, datetime

from google.protobuf.json_format import Parse

import prerequisites
from rekindle.documents.screens.agent_row import STATES, AgentRow
from rekindle.documents.screens.metrics_otlp import render_metrics_request
from rekindle.documents.screens.metrics_text import AgentCounts, ProjectMetrics, render_metrics

NOW = datetime(2026, 4, 9, 12, 0, tzinfo=UTC)
PROJECTS = [
    ProjectMetrics(
        "shop",
        [AgentRow(agent="trades", harness="codex", at=1, state="running", last_active=NOW)],
        {"trades": AgentCounts(cycles={"progress": 3}, run_usd=0.5)},
    ),
    ProjectMetrics("bank", is_readable=False),
]


def read_metrics(body):
    try:
        from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (  # noqa: PLC0415 - not on every machine
            ExportMetricsServiceRequest,
        )
    except ImportError:
        prerequisites.refuse("opentelemetry-proto is not installed: `just setup` installs it")
    request = Parse(body, ExportMetricsServiceRequest())
    [resource] = request.resource_metrics
    return resource, {metric.name: metric for metric in resource.scope_metrics[0].metrics}


def test_a_collector_reads_gauges_and_counters():
    body = render_metrics_request(PROJECTS, {"service.name": "rekindle"}, NOW)
    resource, metrics = read_metrics(body)
    assert resource.resource.attributes[0].value.string_value == "rekindle"
    cycles = metrics["rekindle_cycles_total"].sum
    assert (cycles.is_monotonic, cycles.aggregation_temporality) == (True, 2)
    [point] = cycles.data_points
    assert point.as_double == 3
    assert point.time_unix_nano == int(NOW.timestamp()) * 10**9
    labels = {one.key: one.value.string_value for one in point.attributes}
    assert labels == {"project": "shop", "agent": "trades", "verdict": "progress"}
    assert len(metrics["rekindle_agent_state"].gauge.data_points) == len(STATES)
    up = metrics["rekindle_project_up"].gauge.data_points
    assert [point.as_double for point in up] == [1, 0]


def test_both_formats_have_the_same_metrics_and_samples():
    _, metrics = read_metrics(render_metrics_request(PROJECTS, {}, NOW))
    text = render_metrics(PROJECTS)
    samples = [line.split("{")[0] for line in text.splitlines() if not line.startswith("#")]
    found = [
        metric.name
        for metric in metrics.values()
        for _ in (metric.gauge.data_points or metric.sum.data_points)
    ]
    assert found == samples
