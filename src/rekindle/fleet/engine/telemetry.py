"""Export a host's metrics, the SDK's and Rekindle's own, to Prometheus or a collector."""

from collections.abc import Mapping
from datetime import timedelta

from temporalio.runtime import (
    LoggingConfig,
    OpenTelemetryConfig,
    PrometheusConfig,
    Runtime,
    TelemetryConfig,
    TelemetryFilter,
)

from rekindle.errors import UsageError
from rekindle.policy.settings.metrics_check import find_listen_address, make_signal_url
from rekindle.policy.settings.metrics_settings import MetricsSettings
from rekindle.thresholds.fleet_limits import FLEET_GAUGE_SECONDS

QUIET = LoggingConfig(filter=TelemetryFilter(core_level="ERROR", other_level="ERROR"))
"""Logs only errors. The SDK's other messages are meant for its developers."""


def make_runtime(metrics: MetricsSettings, labels: Mapping[str, str]) -> Runtime | None:
    """Return a runtime that exports metrics with these labels, or None if none are configured.

    The SDK exports metrics from its own threads, so a slow reader does not delay the host.
    """
    address = find_listen_address(metrics)
    exporter: PrometheusConfig | OpenTelemetryConfig
    if address:
        exporter = PrometheusConfig(bind_address=address, durations_as_seconds=True)
    elif metrics.otlp:
        exporter = OpenTelemetryConfig(
            url=make_signal_url(metrics.otlp, "metrics"),
            http=True,
            durations_as_seconds=True,
            metric_periodicity=timedelta(seconds=FLEET_GAUGE_SECONDS),
        )
    else:
        return None
    telemetry = TelemetryConfig(
        logging=QUIET, metrics=exporter, global_tags=labels, attach_service_name=False
    )
    try:
        return Runtime(telemetry=telemetry)
    except ValueError as error:
        raise UsageError(
            f"metrics cannot be exported to {address or metrics.otlp}: {error}",
            hint="choose another address with `fleet: metrics:` or `fleet worker --metrics`; two"
            " workers on one machine need two",
        ) from error
