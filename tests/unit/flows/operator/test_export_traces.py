"""Traces are read from logs and sent by their own process, which only reads."""

from datetime import timedelta

import pytest

from collector import list_spans
from rekindle.documents import events
from rekindle.errors import CollectorError
from rekindle.flows.operator import export_traces
from rekindle.flows.operator.export_traces import TracedLog, TraceExporter


class Sent(list):
    """Requests that a collector took; it refuses them while `is_down`."""

    is_down = False

    def __call__(self, body):
        if self.is_down:
            raise CollectorError("127.0.0.1:4318", "refused")
        self.append(list_spans(body))


@pytest.fixture
def sent():
    return Sent()


@pytest.fixture
def log(store):
    return TracedLog("shop", "trades", store.folder("trades").log)


@pytest.fixture
def exporter(sent, clock):
    return TraceExporter(sent, {}, clock() - timedelta(hours=1))


@pytest.fixture
def append_run(store, clock):
    def append(cycle=1):
        with store.writer("trades") as writer:
            writer.append(
                events.RunStarted(ts=clock()),
                events.CycleStarted(ts=clock(), cycle=cycle),
                events.CycleEnded(ts=clock(), cycle=cycle),
                events.RunEnded(ts=clock(), why="done"),
            )

    return append


def test_only_new_spans_are_sent(append_run, exporter, sent, log):
    append_run()
    assert exporter.export([log]) == 2
    assert exporter.export([log]) == 0
    append_run(2)
    assert exporter.export([log]) == 2
    assert len({span.span_id for batch in sent for span in batch}) == 4


def test_spans_wait_for_a_collector_that_is_down(append_run, exporter, sent, log):
    append_run()
    sent.is_down = True
    with pytest.raises(CollectorError):
        exporter.export([log])
    sent.is_down = False
    assert exporter.export([log]) == 2


def test_many_spans_are_sent_in_several_requests(append_run, exporter, sent, log, monkeypatch):
    monkeypatch.setattr(export_traces, "TRACE_SPANS", 3)
    for cycle in range(1, 5):
        append_run(cycle)
    assert exporter.export([log]) == 8
    assert [len(batch) for batch in sent] == [3, 3, 2]


def test_spans_from_before_the_period_are_left_out(append_run, clock, sent, log):
    append_run()
    assert TraceExporter(sent, {}, clock() + timedelta(hours=1)).export([log]) == 0


def test_a_replaced_log_is_read_from_its_start(append_run, exporter, sent, log):
    append_run()
    text = log.path.read_bytes()
    assert exporter.export([log]) == 2
    log.path.write_bytes(text.replace(b'"done"', b'"over"'))
    assert exporter.export([log]) == 2
    ids = [{span.span_id for span in batch} for batch in sent]
    assert ids[0] == ids[1]


def test_a_log_that_does_not_exist_has_no_spans(exporter, log, tmp_path):
    assert exporter.export([TracedLog("shop", "news", tmp_path / "missing")]) == 0
