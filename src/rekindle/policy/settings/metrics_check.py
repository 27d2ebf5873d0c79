"""Check the addresses in the `metrics:` settings."""

import re

from rekindle.errors import ManifestError
from rekindle.formats.validation import join_path
from rekindle.formats.yaml_lines import KeyPath, MarkedData
from rekindle.policy.settings.metrics_settings import MetricsSettings

_ADDRESS = re.compile(r"(?P<host>[\w.-]+|\[[0-9A-Fa-f:.]+\])?:(?P<port>\d{1,5})", re.ASCII)
_URL = re.compile(r"https?://[^\s/?#@]+(/[^\s?#]*)?", re.ASCII)
_PORTS = range(1, 65_536)


def require_valid_metrics(metrics: MetricsSettings, marked: MarkedData, path: KeyPath) -> None:
    """Raise ManifestError, with the line number, for the first invalid address."""
    match = _ADDRESS.fullmatch(metrics.prometheus)
    if metrics.prometheus and not (match and int(match["port"]) in _PORTS):
        raise _make_refusal(
            marked,
            (*path, "prometheus"),
            f"{metrics.prometheus!r} is not an address to listen on",
            "use a host and a port, as in `prometheus: 127.0.0.1:9464`",
        )
    if metrics.otlp and not _URL.fullmatch(metrics.otlp):
        raise _make_refusal(
            marked,
            (*path, "otlp"),
            "the collector's address is not a URL without a login",
            "use a URL such as `otlp: http://127.0.0.1:4318`",
        )


def find_listen_address(metrics: MetricsSettings) -> str:
    """Return the host and port to listen on, or "" if Prometheus reads no metrics."""
    address = metrics.prometheus
    return f"127.0.0.1{address}" if address.startswith(":") else address


def make_signal_url(otlp: str, signal: str) -> str:
    """Return the URL for a signal, such as `metrics`, below a collector's URL."""
    return f"{otlp.rstrip('/')}/v1/{signal}"


def _make_refusal(marked: MarkedData, path: KeyPath, what: str, hint: str) -> ManifestError:
    return ManifestError(
        f"{join_path(path)}: {what}", file=marked.file, line=marked.line(path), hint=hint
    )
