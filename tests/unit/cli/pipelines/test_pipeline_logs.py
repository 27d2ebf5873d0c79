"""`rekindle pipeline logs`: the events of a run and of its workers, in the order of their times."""

import json
from datetime import timedelta

import pytest

from rekindle.documents import events
from rekindle.documents.pipelines.pipeline_events import PipelineEnded
from rekindle.policy.settings.runtime_settings import Settings
from rekindle.stores.files import FileStore


@pytest.fixture
def run(make_run, tmp_path):
    """A run in which the worker a has handed off once."""
    run = make_run()
    run.plan()
    agent = run.begin("build", "a")
    store = FileStore(tmp_path, host="here", settings=Settings(), clock=lambda: run.now)
    store.create(agent)
    run.now += timedelta(seconds=10)
    with store.writer(agent) as writer:
        writer.append(events.HandoffRequested(ts=run.now))
    run.end("build", "a", outcome="failed", why="no tests")
    return run


def read(out):
    return [json.loads(line) for line in out.splitlines()]


def test_every_event_has_its_pipeline_run_step_and_worker(run, rekindle):
    code, out = rekindle("logs", "review", "--json", "-n", "0")
    assert code == 0
    lines = read(out)
    places = [(line["kind"], line["step"], line["worker"], line["agent"]) for line in lines]
    assert {(line["pipeline"], line["run"]) for line in lines} == {("review", 1)}
    assert places[0] == ("pipeline.started", None, None, None)
    assert places[1] == ("worker.began", "plan", None, "review-1-plan")
    own = [place for place in places if place[3] == "review-1-build-a"]
    assert own[0][0] == "worker.began"
    assert ("handoff.requested", "build", "a", "review-1-build-a") in own
    assert places[-1] == ("worker.ended", "build", "a", "review-1-build-a")
    assert ("items.found", "build", None, None) in places
    assert [line["ts"] for line in lines] == sorted(line["ts"] for line in lines)


def test_a_step_and_a_worker_are_selected(run, rekindle):
    lines = read(rekindle("logs", "review", "1", "--step", "build", "--json", "-n", "0")[1])
    assert {line["step"] for line in lines} == {"build"}
    assert next(line["kind"] for line in lines) == "items.found"
    lines = read(rekindle("logs", "review", "--worker", "a", "--json", "-n", "0")[1])
    assert {line["worker"] for line in lines} == {"a"}


def test_people_get_the_place_and_the_facts_of_each_event(run, rekindle):
    code, out = rekindle("logs", "review", "-n", "1")
    assert code == 0
    assert out.count("\n") == 1
    assert "  build/a               worker.ended           attempt=1  outcome=failed" in out


def test_following_ends_with_the_run(run, rekindle):
    run.append(PipelineEnded, outcome="failed", why="failed: build")
    code, out = rekindle("logs", "review", "--follow", "--json")
    assert code == 0
    assert read(out)[-1]["kind"] == "pipeline.ended"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--step", "bild"), "has no step 'bild'\n  → its steps are: plan, build"),
        (("--worker", "z"), "there is no worker 'z'\n  → its workers are: a, b"),
    ],
)
def test_an_unknown_step_or_worker_is_refused(run, rekindle, words, message):
    code, out = rekindle("logs", "review", *words)
    assert code == 7
    assert message in out
