"""The events of a run: one line each, with the common fields of every log."""

import json
from datetime import UTC, datetime

import msgspec
import pytest

from rekindle.documents import events
from rekindle.documents.events import EVENT_KINDS, UnknownEvent
from rekindle.documents.pipelines.pipeline_events import (
    PIPELINE_EVENT_KINDS,
    ItemsFound,
    PersonAsked,
    PipelineEnded,
    PipelineResumed,
    PipelineStarted,
    PipelineStopped,
    StepMerged,
    WorkerBegan,
    WorkerEnded,
    WorkerReported,
    parse_pipeline_event,
)
from rekindle.errors import DocumentError, NewerSchemaError

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
EXAMPLES = [
    PipelineStarted(ts=NOW, pipeline="ship", run=7, base="c0", input="it", definition="sha"),
    ItemsFound(ts=NOW, step="build", workers=("a", "b"), sha="sha"),
    WorkerBegan(ts=NOW, step="build", worker="a", attempt=1, agent="ship-7-build-a", commit="c0"),
    WorkerReported(ts=NOW, step="build", attempt=1, harness="codex", until=NOW, usd=0.5),
    WorkerEnded(ts=NOW, step="build", worker="a", attempt=1, outcome="failed", why="no tests"),
    StepMerged(ts=NOW, step="build", stage="inputs", commit="c1", merged=("a",), conflicts=("b",)),
    PersonAsked(ts=NOW, step="build", stage="workers"),
    PipelineStopped(ts=NOW, seq=12, gen=3),
    PipelineResumed(ts=NOW, budget={"usd": 5.0}),
    PipelineEnded(ts=NOW, outcome="budget", why="spent"),
]


@pytest.mark.parametrize("event", EXAMPLES, ids=lambda event: event.kind)
def test_an_event_reads_back(event):
    line = events.render(event)
    assert parse_pipeline_event(line) == event
    raw = json.loads(line)
    assert (raw["v"], raw["ts"], raw["kind"]) == (1, "2026-05-04T12:00:00Z", event.kind)


def test_every_kind_has_an_example_a_summary_and_its_own_name():
    assert [type(event) for event in EXAMPLES] == list(PIPELINE_EVENT_KINDS)
    kinds = [str(kind.__struct_config__.tag) for kind in (*PIPELINE_EVENT_KINDS, *EVENT_KINDS)]
    assert len(set(kinds)) == len(kinds)
    assert all(vars(kind).get("summary") for kind in PIPELINE_EVENT_KINDS)


def test_an_attempt_costs_nothing_unless_it_is_reported():
    for event in (
        WorkerReported(ts=NOW, step="a", attempt=1),
        WorkerEnded(ts=NOW, step="a", attempt=1, outcome="done"),
    ):
        assert (event.usd, event.tokens) == (0, 0)


def test_an_unknown_kind_is_read_and_an_invalid_event_is_refused():
    line = events.render(EXAMPLES[0])
    later = line.replace(b"pipeline.started", b"pipeline.paused")
    assert parse_pipeline_event(later) == UnknownEvent("pipeline.paused", NOW)
    for wrong, error in [
        (line.replace(b'"run":7', b'"run":"x"'), DocumentError),
        (line.replace(b'"kind"', b'"kin"'), DocumentError),
        (line.replace(b"00Z", b"00"), DocumentError),
        (line.replace(b'"v":1', b'"v":9'), NewerSchemaError),
        (later.replace(b'"ts"', b'"t"'), DocumentError),
        (b"{", DocumentError),
    ]:
        with pytest.raises(error):
            parse_pipeline_event(wrong)


def test_an_event_of_an_agent_is_not_an_event_of_a_run():
    line = events.render(events.Heartbeat(ts=NOW, session="s"))
    assert isinstance(parse_pipeline_event(line), UnknownEvent)
    assert msgspec.json.decode(line)["kind"] == "heartbeat"
