"""Addresses for metrics are checked before anything listens or connects."""

import pytest

from rekindle.config import make_project
from rekindle.errors import ManifestError
from rekindle.policy.settings.metrics_check import find_listen_address, make_signal_url
from rekindle.policy.settings.metrics_settings import MetricsSettings


def read_fleet(folder, metrics):
    text = f"version: 1\nagents: {{}}\nfleet:\n  address: 127.0.0.1:7233\n  metrics: {metrics}\n"
    return make_project(folder, text).settings.fleet.metrics


@pytest.mark.parametrize(
    ("written", "address"),
    [(":9464", "127.0.0.1:9464"), ("0.0.0.0:1", "0.0.0.0:1"), ("[::1]:80", "[::1]:80")],
)
def test_a_port_alone_listens_on_the_loopback(tmp_path, written, address):
    assert find_listen_address(read_fleet(tmp_path, f"{{prometheus: '{written}'}}")) == address


def test_no_address_means_no_listener():
    assert find_listen_address(MetricsSettings()) == ""


@pytest.mark.parametrize("url", ["http://127.0.0.1:4318", "https://collector.example/otlp/"])
def test_a_signal_has_its_own_path_below_the_collectors(tmp_path, url):
    found = make_signal_url(read_fleet(tmp_path, f"{{otlp: '{url}'}}").otlp, "traces")
    assert found == f"{url.rstrip('/')}/v1/traces"


@pytest.mark.parametrize(
    "metrics",
    [
        "{prometheus: '9464'}",
        "{prometheus: 127.0.0.1:0}",
        "{prometheus: 127.0.0.1:65536}",
        "{prometheus: /tmp/socket}",
        "{otlp: 127.0.0.1:4318}",
        "{otlp: 'http://me:secret@collector.example'}",
        "{prometheus: ':9464', otlp: 'http://127.0.0.1:4318'}",
    ],
)
def test_an_unusable_address_is_refused_with_its_line(tmp_path, metrics):
    with pytest.raises(ManifestError) as refused:
        read_fleet(tmp_path, metrics)
    assert refused.value.line == 5
    assert refused.value.hint
    assert "secret" not in str(refused.value)
