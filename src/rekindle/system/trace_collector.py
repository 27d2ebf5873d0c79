"""Send requests to an OpenTelemetry collector over HTTP."""

import urllib.error
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from urllib.parse import unquote, urlsplit

from rekindle.errors import CollectorError
from rekindle.thresholds.web_limits import TRACE_SECONDS

HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"
"""Variable with headers for a collector."""


def send_request(url: str, body: bytes, headers: Mapping[str, str]) -> None:
    """Send one request with a JSON body.

    Raises:
        CollectorError: The collector did not answer in time, or refused the request.
    """
    where = urlsplit(url).netloc.rpartition("@")[2]
    request = urllib.request.Request(  # noqa: S310 - the caller checked the scheme
        url, body, {**headers, "Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=TRACE_SECONDS) as answer:  # noqa: S310 - as above
            answer.read()
    except urllib.error.HTTPError as error:
        with error:
            raise CollectorError(where, f"HTTP {error.code}") from error
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise CollectorError(where, str(reason)) from error


def parse_headers(text: str) -> dict[str, str]:
    """Parse the value of `HEADERS`, such as `authorization=Bearer%20TOKEN,team=a`."""
    pairs = (part.partition("=") for part in text.split(",") if "=" in part)
    return {unquote(name.strip()): unquote(value.strip()) for name, _, value in pairs}
