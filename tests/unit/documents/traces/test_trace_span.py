"""A request for a collector has the fields and types of OTLP."""

from datetime import UTC, datetime, timedelta

from collector import list_spans, parse_request
from rekindle.documents.traces.trace_span import SpanMark, TraceSpan, render_request

START = datetime(2026, 4, 9, 12, 0, 0, 123456, tzinfo=UTC)
SPAN = TraceSpan(
    name="invoke_agent trades",
    trace="0af7651916cd43dd8448eb211c80319c",
    id="b7ad6b7169203331",
    parent="00f067aa0ba902b7",
    start=START,
    end=START + timedelta(seconds=1),
    attributes={"text": "ä", "whole": 2**60, "part": 0.5, "flag": True},
    marks=(SpanMark(START, "rekindle.wait.started", {"rekindle.why": "limit"}),),
    failure="crash",
)


def test_a_collector_reads_every_field():
    [span] = list_spans(render_request([SPAN], {"service.name": "rekindle"}))
    assert (span.trace_id.hex(), span.span_id.hex()) == (SPAN.trace, SPAN.id)
    assert (span.parent_span_id.hex(), span.name, span.kind) == (SPAN.parent, SPAN.name, 1)
    assert span.start_time_unix_nano == int(START.timestamp()) * 10**9 + 123_456_000
    assert span.end_time_unix_nano - span.start_time_unix_nano == 10**9
    values = {one.key: one.value for one in span.attributes}
    assert values["text"].string_value == "ä"
    assert values["whole"].int_value == 2**60
    assert values["part"].double_value == 0.5
    assert values["flag"].bool_value
    [mark] = span.events
    assert (mark.name, mark.attributes[0].value.string_value) == ("rekindle.wait.started", "limit")
    assert (span.status.code, span.status.message) == (2, "crash")


def test_a_root_span_without_a_failure_has_neither_parent_nor_status():
    plain = TraceSpan(name="a", trace=SPAN.trace, id=SPAN.id, start=START, end=START)
    [span] = list_spans(render_request([plain], {}))
    assert (span.parent_span_id, span.status.code) == (b"", 0)


def test_a_clock_that_was_set_back_does_not_make_a_span_end_before_it_starts():
    early = TraceSpan(
        name="a", trace=SPAN.trace, id=SPAN.id, start=START, end=START - timedelta(hours=1)
    )
    [span] = list_spans(render_request([early], {}))
    assert span.end_time_unix_nano == span.start_time_unix_nano


def test_the_sender_is_described_once():
    request = parse_request(render_request([SPAN, SPAN], {"service.name": "rekindle"}))
    [resource] = request.resource_spans
    assert resource.resource.attributes[0].value.string_value == "rekindle"
    assert len(resource.scope_spans[0].spans) == 2
