"""The state of a run, computed from its events."""

from datetime import UTC, datetime, timedelta

from rekindle.documents.events.event import UnknownEvent
from rekindle.documents.pipelines.pipeline_events import (
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
)
from rekindle.policy.pipelines.pipeline_state import (
    MatrixItems,
    MergeResult,
    PipelineState,
    WorkerState,
    fold,
    stamp_command,
)

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)


def at(minutes):
    return NOW + timedelta(minutes=minutes)


def begin(attempt, **fields):
    return WorkerBegan(ts=NOW, step="a", attempt=attempt, agent="p-1-a", commit="c0", **fields)


def end(attempt, outcome="done", **fields):
    return WorkerEnded(ts=NOW, step="a", attempt=attempt, outcome=outcome, **fields)


LOG = [
    PipelineStarted(ts=NOW, pipeline="p", run=3, base="c0"),
    ItemsFound(ts=NOW, step="m", workers=("x", "y")),
    begin(1),
    WorkerReported(ts=NOW, step="a", attempt=1, usd=2.0, tokens=20),
    end(1, "failed", why="no tests", usd=1.5, tokens=30, commit="c1"),
    begin(2),
    WorkerReported(ts=NOW, step="a", attempt=2, harness="codex", until=at(60)),
    WorkerReported(ts=NOW, step="a", attempt=2, usd=0.5, tokens=5),
    end(2, commit="c2", usd=1.0, tokens=10),
    StepMerged(ts=NOW, step="a", commit="c3", conflicts=("x",)),
    PersonAsked(ts=NOW, step="a"),
    StepMerged(ts=NOW, step="a", commit="c4", dropped=("y",)),
    PipelineStopped(ts=at(1)),
    PipelineEnded(ts=at(2), outcome="stopped"),
    PipelineResumed(ts=at(3), budget={"usd": 9.0}),
    PipelineEnded(ts=at(4), outcome="done", commit="c4"),
]


def test_the_state_contains_what_the_events_say():
    assert fold(LOG) == PipelineState(
        pipeline="p",
        run=3,
        base="c0",
        began=NOW,
        items={"m": MatrixItems(("x", "y"))},
        workers={
            ("a", ""): WorkerState(
                "done",
                attempt=2,
                failures=1,
                agent="p-1-a",
                start="c0",
                commit="c2",
                usd=3.0,
                tokens=40,
            )
        },
        merges={("a", "workers"): MergeResult("c4", dropped=("y",))},
        asked=frozenset({("a", "workers")}),
        limits={"codex": at(60)},
        commanded=at(3),
        paused=at(4),
        idle=timedelta(minutes=1),
        raised={"usd": 9.0},
        ended="done",
        commit="c4",
    )


def test_a_log_can_be_folded_in_parts_and_a_state_is_never_changed():
    for cut in range(len(LOG)):
        first = fold(LOG[:cut])
        before = fold(LOG[:cut])
        assert fold(LOG[cut:], first) == fold(LOG)
        assert first == before


def test_an_event_that_is_recorded_twice_counts_once():
    """Wherever the copy is. Only the coordinator writes that a run ended, and only once."""
    for number, event in enumerate(LOG):
        if not isinstance(event, PipelineEnded):
            for place in range(number + 1, len(LOG) + 1):
                assert fold([*LOG[:place], event, *LOG[place:]]) == fold(LOG), (event, place)


def test_reports_about_other_attempts_and_unknown_events_are_ignored():
    state = fold([begin(1), end(1, "failed"), begin(2)])
    for late in (
        end(1),
        begin(1),
        WorkerReported(ts=NOW, step="a", attempt=1, usd=9.0),
        UnknownEvent("later.kind", NOW),
    ):
        assert fold([late], state) == state
    assert fold([end(1)]).find_worker("a", "") == WorkerState()


def test_the_next_attempt_is_told_only_why_a_check_failed():
    """An attempt whose work was not pushed counts as interrupted."""
    assert fold([begin(1), end(1, "failed", why="no tests")]).find_worker("a", "").why == "no tests"
    worker = fold([begin(1), end(1, "stopped", why="not pushed")]).find_worker("a", "")
    assert (worker.status, worker.failures, worker.why) == ("stopped", 0, "")


def test_a_worker_that_is_done_does_not_begin_again():
    state = fold([begin(1), end(1)])
    assert fold([begin(2)], state) == state


def test_running_workers_are_listed_for_the_coordinator():
    state = fold([begin(1), begin(1, worker="x"), end(1)])
    assert state.list_running() == [
        (("a", "x"), WorkerState("running", 1, agent="p-1-a", start="c0"))
    ]


def test_the_operators_latest_command_counts():
    stop, resume = PipelineStopped(ts=at(1)), PipelineResumed(ts=at(2))
    assert fold([stop]).is_stopped
    assert not fold([stop, resume]).is_stopped
    assert not fold([resume, stop]).is_stopped
    assert fold([stop, PipelineResumed(ts=at(1))]).is_stopped
    assert fold([]).run == 0


def test_a_command_counts_although_the_clock_was_set_back():
    stopped = fold([PipelineStopped(ts=at(5))])
    ts = stamp_command(stopped, NOW)
    assert not fold([PipelineResumed(ts=ts)], stopped).is_stopped
    assert stamp_command(fold([]), NOW) == NOW
    assert stamp_command(stopped, at(6)) == at(6)


def test_an_attempt_during_which_the_run_was_stopped_is_marked():
    """A later coordinator must know that no person stopped the worker alone."""
    stop, resume = PipelineStopped(ts=at(1)), PipelineResumed(ts=at(2))
    state = fold([begin(1), begin(1, worker="x"), end(1), stop, resume])
    assert state.find_worker("a", "x").is_stopping
    assert not state.find_worker("a", "").is_stopping
    again = [end(1, "stopped", worker="x"), begin(2, worker="x"), stop]
    assert not fold(again, state).find_worker("a", "x").is_stopping


def test_a_cap_is_only_raised():
    caps = [PipelineResumed(ts=at(number), budget={"usd": 9.0 - number}) for number in (1, 2)]
    assert fold([*caps, PipelineResumed(ts=at(3), budget={"hours": 2})]).raised == {
        "usd": 8.0,
        "hours": 2,
    }


def test_only_a_stopped_run_or_one_that_reached_its_budget_is_resumed():
    for outcome, ended in (("stopped", None), ("budget", None), ("failed", "failed")):
        end_of_run = PipelineEnded(ts=NOW, outcome=outcome)
        assert fold([end_of_run, PipelineResumed(ts=at(1))]).ended == ended
