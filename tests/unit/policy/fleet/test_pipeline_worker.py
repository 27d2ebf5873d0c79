"""The reports of an agent that works for a run of a pipeline."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from rekindle.documents import events
from rekindle.policy.fleet.pipeline_worker import PipelineWorker, make_report
from rekindle.policy.projection.fold import fold_events
from rekindle.policy.projection.projection import Projection

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
RUN = events.DesiredSet(ts=NOW, desired="running")
STOP = events.DesiredSet(ts=NOW, desired="stopped")
OVER = events.RunEnded(ts=NOW, why="done")
LIMIT = events.WaitStarted(ts=NOW, why="limit", until=NOW + timedelta(hours=1))


def report(*log, seq=0):
    numbered = [
        msgspec.structs.replace(event, seq=number) for number, event in enumerate(log, start=1)
    ]
    projection = fold_events(Projection(agent="a"), numbered)
    return make_report("a", PipelineWorker(workflow="w", attempt=2, seq=seq), projection)


@pytest.mark.parametrize(
    ("log", "state"), [([RUN], "running"), ([RUN, OVER], "over"), ([RUN, STOP], "stopped")]
)
def test_a_report_says_how_far_the_attempt_is(log, state):
    made = report(*log)
    assert (made.agent, made.attempt, made.state, made.until) == ("a", 2, state, None)


def test_a_usage_limit_is_reported_until_it_ends():
    assert report(RUN, LIMIT).until == LIMIT.until


def test_an_attempt_that_has_not_begun_reports_nothing():
    """Otherwise the end of the earlier attempt would count for the next one."""
    assert report(RUN, OVER, seq=2) is None


def test_the_end_of_an_earlier_attempt_is_not_reported_again():
    assert report(RUN, OVER, RUN, seq=2).state == "running"
