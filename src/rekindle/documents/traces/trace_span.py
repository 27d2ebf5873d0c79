"""Spans, and requests that carry them to an OpenTelemetry collector (OTLP/HTTP with JSON)."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

import msgspec

AttributeValue = str | int | float | bool
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_INTERNAL = 1
_FAILED = 2


class SpanMark(msgspec.Struct, frozen=True):
    """A moment within a span."""

    at: datetime
    name: str
    attributes: Mapping[str, AttributeValue] = {}


class TraceSpan(msgspec.Struct, frozen=True, kw_only=True):
    """A finished period: a run, a cycle or a session."""

    name: str
    trace: str
    """Trace id, as 32 hexadecimal digits."""
    id: str
    """Span id, as 16 hexadecimal digits."""
    parent: str = ""
    """Id of the span around this one, or empty for a run."""
    start: datetime
    end: datetime
    attributes: Mapping[str, AttributeValue] = {}
    marks: tuple[SpanMark, ...] = ()
    failure: str = ""
    """Kind of failure, or empty."""


def render_request(spans: Sequence[TraceSpan], resource: Mapping[str, AttributeValue]) -> bytes:
    """Return the body of a request to `/v1/traces`. `resource` describes the sender."""
    scope = {"name": "rekindle", "version": resource.get("service.version", "")}
    body = {
        "resourceSpans": [
            {
                "resource": {"attributes": render_attributes(resource)},
                "scopeSpans": [{"scope": scope, "spans": [_render_span(span) for span in spans]}],
            }
        ]
    }
    return msgspec.json.encode(body)


def _render_span(span: TraceSpan) -> dict[str, object]:
    marks = [
        {
            "timeUnixNano": render_time(mark.at),
            "name": mark.name,
            "attributes": render_attributes(mark.attributes),
        }
        for mark in span.marks
    ]
    return {
        "traceId": span.trace,
        "spanId": span.id,
        **({"parentSpanId": span.parent} if span.parent else {}),
        "name": span.name,
        "kind": _INTERNAL,
        "startTimeUnixNano": render_time(span.start),
        "endTimeUnixNano": render_time(max(span.start, span.end)),
        "attributes": render_attributes(span.attributes),
        "events": marks,
        "status": {"code": _FAILED, "message": span.failure} if span.failure else {},
    }


def render_attributes(attributes: Mapping[str, AttributeValue]) -> list[dict[str, object]]:
    return [{"key": key, "value": _render_value(value)} for key, value in attributes.items()]


def _render_value(value: AttributeValue) -> dict[str, object]:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}  # JSON has no 64-bit integers
        case float():
            return {"doubleValue": value}
        case _:
            return {"stringValue": value}


def render_time(at: datetime) -> str:
    microseconds = (at - _EPOCH) // timedelta(microseconds=1)
    return f"{microseconds}000"
