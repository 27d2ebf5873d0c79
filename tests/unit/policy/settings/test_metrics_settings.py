"""Where metrics go by default."""

from rekindle.policy.settings.metrics_settings import MetricsSettings


def test_nothing_is_exported_unless_an_address_is_set():
    assert (MetricsSettings().prometheus, MetricsSettings().otlp) == ("", "")
