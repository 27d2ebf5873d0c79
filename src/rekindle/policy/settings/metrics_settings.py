"""Settings for the export of metrics."""

from typing import Annotated

import msgspec

from rekindle.formats.validation import describe_key as _doc


class MetricsSettings(msgspec.Struct, frozen=True):
    """Where metrics go; empty if not set."""

    prometheus: Annotated[
        str,
        _doc(
            "Address where Prometheus can read the metrics, such as `127.0.0.1:9464`. `:9464` "
            "listens on 127.0.0.1 only."
        ),
    ] = ""
    otlp: Annotated[
        str,
        _doc(
            "URL of an OpenTelemetry collector that gets the metrics, such as "
            "`http://127.0.0.1:4318`."
        ),
    ] = ""
