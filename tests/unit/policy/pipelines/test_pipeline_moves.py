"""What a run does next: one test for each row of what can happen to a worker, step or run."""

from datetime import UTC, datetime, timedelta

import pytest

from rekindle.documents.manifest_keys import Budget
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
from rekindle.policy.pipelines.pipeline_moves import (
    AskPerson,
    AwaitLimit,
    BeginWorker,
    EndPipeline,
    FindItems,
    MergeCommits,
    StopWorker,
    decide,
    is_capped_by_run,
    limit_worker,
    measure_spending,
)
from rekindle.policy.pipelines.pipeline_state import fold, stamp_command
from rekindle.policy.pipelines.run_plan import RunPlan, StepPlan
from rekindle.policy.pipelines.step_status import (
    DoneStep,
    FailedStep,
    find_statuses,
    list_failed_workers,
)
from rekindle.policy.supervision.budget import ReachedCap

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


class Run:
    """A run of a pipeline that the test plays by hand."""

    def __init__(self, *steps, budget=None):
        self.plan = RunPlan(pipeline="ship", steps=steps, budget=budget)
        self.log = [PipelineStarted(ts=NOW, pipeline="ship", run=7, base="c0")]
        self.now = NOW

    @property
    def state(self):
        return fold(self.log)

    def moves(self):
        return decide(self.plan, self.state, self.now)

    def limit(self, own):
        return limit_worker(self.plan, self.state, own, self.now)

    def statuses(self):
        return find_statuses(self.plan, self.state)

    def add(self, kind, **fields):
        self.now += timedelta(seconds=1)
        self.log.append(kind(ts=self.now, **fields))

    def find(self, step, *workers, why=""):
        self.add(ItemsFound, step=step, workers=workers, why=why)

    def begin(self, *moves):
        for move in moves or [move for move in self.moves() if isinstance(move, BeginWorker)]:
            self.add(
                WorkerBegan,
                step=move.step,
                worker=move.worker,
                attempt=move.attempt,
                agent=move.agent,
                commit=move.commit,
            )

    def end(self, step, worker="", outcome="done", **fields):
        attempt = self.state.find_worker(step, worker).attempt
        self.add(
            WorkerEnded,
            step=step,
            worker=worker,
            attempt=attempt,
            outcome=outcome,
            commit=f"{step}{worker}",
            **fields,
        )

    def merge(self, step, commit, *, stage="workers", conflicts=()):
        self.add(StepMerged, step=step, stage=stage, commit=commit, conflicts=conflicts)

    def finish(self, step, worker="", outcome="done"):
        """Play a step of one worker to its end."""
        self.begin()
        self.end(step, worker, outcome)
        if outcome == "done":
            self.merge(step, f"{step}!")


def begun(moves):
    return [(move.step, move.worker, move.attempt) for move in moves]


def matrix(**options):
    return StepPlan(id="build", is_matrix=True, **options)


# Order.


def test_a_run_that_has_not_started_or_has_ended_does_nothing():
    run = Run(StepPlan(id="plan"))
    assert decide(run.plan, fold([]), NOW) == []
    run.add(PipelineEnded, outcome="done")
    assert run.moves() == []


def test_steps_start_from_the_base_and_continue_from_the_results_before_them():
    run = Run(StepPlan(id="build", depends_on=("plan",)), StepPlan(id="plan"))
    assert run.moves() == [BeginWorker("plan", "", 1, "ship-7-plan", "c0")]
    run.begin()
    assert run.moves() == []
    run.end("plan")
    assert run.moves() == [MergeCommits("plan", "workers", (("", "plan"),), drops=False)]
    run.merge("plan", "c1")
    assert run.moves() == [BeginWorker("build", "", 1, "ship-7-build", "c1")]
    run.finish("build")
    assert run.moves() == [EndPipeline("done", "build!")]


def test_a_step_starts_as_soon_as_its_own_dependencies_are_done():
    """A slow sibling does not hold it up."""
    run = Run(StepPlan(id="fast"), StepPlan(id="slow"), StepPlan(id="after", depends_on=("fast",)))
    run.begin()
    run.end("fast")
    run.merge("fast", "c1")
    assert begun(run.moves()) == [("after", "", 1)]


def test_several_dependencies_are_merged_in_the_order_of_the_manifest():
    run = Run(
        StepPlan(id="one"), StepPlan(id="two"), StepPlan(id="both", depends_on=("two", "one"))
    )
    run.begin()
    for step in ("two", "one"):
        run.end(step)
        run.merge(step, f"{step}!")
    parts = (("one", "one!"), ("two", "two!"))
    assert run.moves() == [MergeCommits("both", "inputs", parts, drops=False)]
    run.merge("both", "joined", stage="inputs")
    assert run.moves()[0].commit == "joined"


def test_equal_commits_are_not_merged():
    """A failed optional step passes on the commit that it started from."""
    run = Run(
        StepPlan(id="plan"),
        StepPlan(id="lint", depends_on=("plan",), optional=True),
        StepPlan(id="judge", depends_on=("plan", "lint")),
    )
    run.finish("plan")
    run.finish("lint", outcome="failed")
    assert run.moves() == [BeginWorker("judge", "", 1, "ship-7-judge", "plan!")]


def test_the_results_of_several_last_steps_are_merged():
    run = Run(StepPlan(id="one"), StepPlan(id="two"))
    run.begin()
    for step in ("one", "two"):
        run.end(step)
        run.merge(step, f"{step}!")
    parts = (("one", "one!"), ("two", "two!"))
    assert run.moves() == [MergeCommits("", "result", parts, drops=False)]
    run.merge("", "partial", stage="result", conflicts=("two",))
    assert run.moves() == [AskPerson("", "result", ("two",))]
    run.add(PersonAsked, step="", stage="result")
    assert run.moves() == []
    run.merge("", "all", stage="result")
    assert run.moves() == [EndPipeline("done", "all")]


# The matrix.


def test_items_are_found_once_and_start_within_the_limit():
    run = Run(matrix(max_concurrency=2))
    assert run.moves() == [FindItems("build", "c0")]
    run.find("build", "a", "b", "c")
    run.find("build", "other")
    assert begun(run.moves()) == [("build", "a", 1), ("build", "b", 1)]
    run.begin()
    assert run.moves() == []
    run.end("build", "b")
    assert begun(run.moves()) == [("build", "c", 1)]


def test_a_matrix_without_items_is_done_with_its_input():
    run = Run(matrix(needs="any"), StepPlan(id="after", depends_on=("build",)))
    run.find("build")
    assert run.statuses()["build"] == DoneStep("c0")
    assert begun(run.moves()) == [("after", "", 1)]


def test_a_list_that_cannot_be_used_fails_the_step():
    run = Run(matrix())
    run.find("build", why="it is not JSON")
    assert run.statuses()["build"] == FailedStep("c0")
    assert run.moves() == [EndPipeline("failed", why="failed: build")]


# Failures.


def test_a_failed_attempt_is_repeated_while_attempts_are_left():
    run = Run(StepPlan(id="plan", attempts=2))
    run.begin()
    run.end("plan", outcome="failed", why="the tests fail")
    assert run.state.find_worker("plan", "").why == "the tests fail"
    assert begun(run.moves()) == [("plan", "", 2)]
    run.begin()
    run.end("plan", outcome="failed")
    assert run.moves() == [EndPipeline("failed", why="failed: plan")]


def test_a_failed_worker_fails_its_step_after_the_others_have_ended():
    run = Run(matrix(), StepPlan(id="after", depends_on=("build",)))
    run.find("build", "a", "b")
    run.begin()
    run.end("build", "a", "failed")
    assert run.moves() == []
    run.end("build", "b")
    assert run.statuses()["build"] == FailedStep("c0", ("a",))
    assert run.moves() == [EndPipeline("failed", why="failed: build")]


def test_every_step_that_can_run_runs_before_the_run_fails():
    run = Run(StepPlan(id="bad"), StepPlan(id="good"), StepPlan(id="more", depends_on=("good",)))
    run.begin()
    run.end("bad", outcome="failed")
    run.end("good")
    run.merge("good", "c1")
    assert begun(run.moves()) == [("more", "", 1)]
    run.finish("more")
    assert run.moves() == [EndPipeline("failed", why="failed: bad")]


def test_fail_fast_stops_the_other_workers():
    run = Run(matrix(fail_fast=True, max_concurrency=2))
    run.find("build", "a", "b", "c")
    run.begin()
    run.end("build", "a", "failed")
    assert run.moves() == [StopWorker("build", "b", 1)]
    run.end("build", "b", "stopped")
    assert run.statuses()["build"] == FailedStep("c0", ("a",))


def test_fail_fast_has_no_effect_if_one_success_is_enough():
    run = Run(matrix(fail_fast=True, needs="any", max_concurrency=1))
    run.find("build", "a", "b")
    run.begin()
    run.end("build", "a", "failed")
    assert begun(run.moves()) == [("build", "b", 1)]
    run.begin()
    run.end("build", "b")
    assert run.moves() == [MergeCommits("build", "workers", (("b", "buildb"),), drops=False)]
    run.merge("build", "c1")
    assert run.statuses()["build"] == DoneStep("c1", ("a",))
    assert list_failed_workers(run.statuses()) == {"build": ("a",)}
    assert run.moves() == [EndPipeline("done", "c1")]


def test_a_step_that_needs_any_worker_fails_without_one():
    run = Run(matrix(needs="any"))
    run.find("build", "a", "b")
    run.begin()
    run.end("build", "a", "failed")
    run.end("build", "b", "failed")
    assert run.statuses()["build"] == FailedStep("c0", ("a", "b"))


def test_steps_after_a_failed_step_are_skipped_even_if_optional():
    run = Run(
        StepPlan(id="plan"),
        StepPlan(id="lint", depends_on=("plan",), optional=True),
        StepPlan(id="judge", depends_on=("lint",)),
    )
    run.finish("plan", outcome="failed")
    assert run.moves() == [EndPipeline("failed", why="failed: plan")]


# Conflicts.


def conflict(conflicts, **options):
    """Return a run whose two workers made changes that conflict."""
    run = Run(matrix(conflicts=conflicts, merge_harness="codex", **options))
    run.find("build", "a", "b")
    run.begin()
    run.end("build", "a")
    run.end("build", "b")
    parts = (("a", "builda"), ("b", "buildb"))
    drops = conflicts == "drop"
    assert run.moves() == [MergeCommits("build", "workers", parts, drops=drops)]
    run.merge("build", "partial", conflicts=("b",))
    return run


def test_a_person_is_asked_once_about_a_conflict():
    run = conflict("person")
    assert run.moves() == [AskPerson("build", "workers", ("b",))]
    run.add(PersonAsked, step="build")
    assert run.moves() == []
    run.merge("build", "whole")
    assert run.moves() == [EndPipeline("done", "whole")]


def test_an_agent_merges_a_conflict():
    run = conflict("agent")
    [move] = run.moves()
    assert move == BeginWorker("build", "_merge", 1, "ship-7-build-_merge", "partial")
    run.begin()
    assert run.moves() == []
    run.end("build", "_merge")
    parts = (("_merge", "build_merge"),)
    assert run.moves() == [MergeCommits("build", "workers", parts, drops=False)]
    run.merge("build", "whole")
    assert run.moves() == [EndPipeline("done", "whole")]


def test_a_person_is_asked_if_the_agent_cannot_merge():
    run = conflict("agent", attempts=2)
    for attempt in (1, 2):
        assert begun(run.moves()) == [("build", "_merge", attempt)]
        run.begin()
        run.end("build", "_merge", "failed")
    assert run.moves() == [AskPerson("build", "workers", ("b",))]


def test_dropped_changes_are_left_out():
    assert conflict("drop").moves() == [EndPipeline("done", "partial")]


def test_a_conflict_does_not_hold_up_other_steps():
    run = Run(matrix(), StepPlan(id="docs"), StepPlan(id="site", depends_on=("docs",)))
    run.find("build", "a", "b")
    run.begin()
    for worker in ("a", "b"):
        run.end("build", worker)
    run.merge("build", "partial", conflicts=("b",))
    assert run.moves() == [AskPerson("build", "workers", ("b",))]
    run.add(PersonAsked, step="build")
    run.end("docs")
    run.merge("docs", "c1")
    assert begun(run.moves()) == [("site", "", 1)]


def test_a_run_that_can_only_fail_does_not_wait_for_a_merge():
    run = Run(matrix(), StepPlan(id="other"), StepPlan(id="after", depends_on=("build",)))
    run.find("build", "a", "b")
    run.begin()
    run.end("build", "a")
    run.end("build", "b")
    run.merge("build", "partial", conflicts=("b",))
    assert run.moves() == [AskPerson("build", "workers", ("b",))]
    run.end("other", outcome="failed")
    assert run.moves() == [EndPipeline("failed", why="failed: other")]


def test_conflicting_inputs_are_merged_by_the_steps_own_rule():
    run = Run(
        StepPlan(id="one"),
        StepPlan(id="two"),
        StepPlan(id="both", depends_on=("one", "two"), conflicts="agent"),
    )
    run.begin()
    for step in ("one", "two"):
        run.end(step)
        run.merge(step, f"{step}!")
    run.merge("both", "partial", stage="inputs", conflicts=("two",))
    assert begun(run.moves()) == [("both", "_inputs", 1)]
    run.finish("both", "_inputs", "failed")
    assert run.moves() == [AskPerson("both", "inputs", ("two",))]


# Limits and budgets.


def limit(run, harness, until, step="build", worker="a"):
    run.add(WorkerReported, step=step, worker=worker, attempt=1, harness=harness, until=until)


def test_a_usage_limit_holds_back_workers_of_the_same_cli():
    run = Run(
        matrix(harness="codex", max_concurrency=1), StepPlan(id="docs", harness="claude-code")
    )
    run.find("build", "a", "b")
    run.begin(run.moves()[0])
    limit(run, "codex", NOW + HOUR)
    limit(run, "codex", NOW + HOUR / 2)
    assert begun(run.moves()) == [("docs", "", 1)]
    run.begin()
    assert run.moves() == []
    run.end("build", "a")
    assert run.moves() == [AwaitLimit(NOW + HOUR)]
    run.now = NOW + HOUR
    assert begun(run.moves()) == [("build", "b", 1)]


def test_the_first_limit_that_ends_wakes_the_run():
    run = Run(
        matrix(harness="codex"), StepPlan(id="docs", harness="claude-code"), StepPlan(id="lint")
    )
    run.find("build", "a")
    run.log.append(
        WorkerReported(ts=NOW, step="x", attempt=1, harness="codex", until=NOW + 2 * HOUR)
    )
    run.log.append(
        WorkerReported(ts=NOW, step="x", attempt=1, harness="claude-code", until=NOW + HOUR)
    )
    moves = run.moves()
    assert begun(moves[:-1]) == [("lint", "", 1)]
    assert moves[-1] == AwaitLimit(NOW + HOUR)


def test_no_worker_starts_once_the_budget_is_spent():
    run = Run(matrix(max_concurrency=2), budget=Budget(usd=5))
    run.find("build", "a", "b", "c")
    run.begin()
    run.add(WorkerReported, step="build", worker="a", attempt=1, usd=5.0, tokens=7)
    assert measure_spending(run.state).tokens == 7
    run.end("build", "b", "failed", usd=0.5)
    assert run.moves() == []
    run.end("build", "a", usd=4.0)
    assert measure_spending(run.state).usd == 5.5
    assert run.moves() == [EndPipeline("budget", why="its budget of $5 is spent ($5.50)")]


def test_the_hours_between_the_end_of_a_run_and_its_resumption_do_not_count():
    run = Run(StepPlan(id="plan"), budget=Budget(hours=3))
    run.now += HOUR
    run.add(PipelineStopped)
    run.add(PipelineEnded, outcome="stopped")
    run.now += 10 * HOUR
    run.add(PipelineResumed)
    assert begun(run.moves()) == [("plan", "", 1)]
    assert run.limit(None).hours == pytest.approx(2, abs=0.01)
    run.now += 2 * HOUR
    assert run.moves() == [EndPipeline("budget", why="its budget of 3 hours is spent")]


def test_a_clock_that_was_set_back_adds_no_hours():
    run = Run(StepPlan(id="plan"), budget=Budget(hours=3))
    run.add(PipelineStopped)
    run.add(PipelineEnded, outcome="budget")
    ended = run.now
    run.now -= HOUR
    run.log.append(PipelineResumed(ts=stamp_command(run.state, run.now)))
    assert run.state.ended is None
    assert run.state.counted_from == NOW
    assert ended > run.now


@pytest.mark.parametrize(
    ("budget", "later"), [(Budget(tokens=10), timedelta(0)), (Budget(hours=1), HOUR)]
)
def test_tokens_and_hours_end_a_run_too(budget, later):
    run = Run(StepPlan(id="plan", attempts=2), budget=budget)
    run.begin()
    run.end("plan", outcome="failed", tokens=10)
    run.now = NOW + later
    assert [move.outcome for move in run.moves()] == ["budget"]


def test_a_spent_budget_does_not_keep_a_run_from_its_end():
    run = Run(StepPlan(id="plan"), budget=Budget(usd=1))
    run.begin()
    run.end("plan", usd=3.0)
    assert run.moves() == [MergeCommits("plan", "workers", (("", "plan"),), drops=False)]
    run.merge("plan", "c1")
    assert run.moves() == [EndPipeline("done", "c1")]


def test_a_run_can_be_resumed_with_a_larger_budget():
    run = Run(StepPlan(id="plan", attempts=2), budget=Budget(usd=1))
    run.begin()
    run.end("plan", outcome="failed", usd=3.0)
    run.add(PipelineEnded, outcome="budget")
    assert run.moves() == []
    run.add(PipelineResumed, budget={"usd": 5.0})
    assert [type(move) for move in run.moves()] == [BeginWorker]
    assert run.limit(None) == Budget(usd=2.0)


def test_a_worker_gets_the_smaller_of_its_own_budget_and_the_rest():
    own = Budget(usd=4, hours=2)
    run = Run(StepPlan(id="plan", budget=own, attempts=2), budget=Budget(usd=6, tokens=100))
    assert run.limit(own) == Budget(usd=4, tokens=100, hours=2)
    run.begin()
    run.end("plan", outcome="failed", usd=3.0, tokens=40)
    assert run.limit(own) == Budget(usd=3, tokens=60, hours=2)
    run.plan = RunPlan(pipeline="ship", steps=run.plan.steps)
    assert run.limit(own) == own
    run.plan = RunPlan(pipeline="ship", steps=(StepPlan(id="plan"),), budget=Budget(hours=3))
    run.now = NOW + HOUR
    run.log = run.log[:1]
    assert run.limit(None) == Budget(hours=2)
    run.now = NOW + 5 * HOUR
    assert run.limit(None).hours > 0, "a manifest refuses a cap of zero"


@pytest.mark.parametrize(
    ("own", "unit", "cap", "is_capped"),
    [
        (None, "usd", 6.0, True),
        (Budget(usd=4), "usd", 4.0, False),
        (Budget(usd=4), "usd", 1.5, True),
        (Budget(usd=4), "tokens", 100, True),
        (Budget(hours=2), "hours", 2.0, False),
    ],
)
def test_a_worker_that_spends_the_rest_of_the_run_has_not_failed(own, unit, cap, is_capped):
    assert is_capped_by_run(own, ReachedCap(unit, cap, cap, "")) is is_capped
    assert not is_capped_by_run(own, None)


# Stop and resume.


def test_a_stopped_run_stops_its_workers_and_ends():
    run = Run(matrix(max_concurrency=2), StepPlan(id="after", depends_on=("build",)))
    run.find("build", "a", "b", "c")
    run.begin()
    run.add(PipelineStopped)
    assert run.moves() == [StopWorker("build", "a", 1), StopWorker("build", "b", 1)]
    run.end("build", "a", "stopped")
    run.end("build", "b")
    assert run.moves() == [EndPipeline("stopped", why="by the operator")]
    run.add(PipelineEnded, outcome="stopped")
    assert run.moves() == []
    run.add(PipelineResumed)
    assert begun(run.moves()) == [("build", "a", 2), ("build", "c", 1)]


def test_a_stopped_attempt_is_not_a_failure():
    run = Run(StepPlan(id="plan"))
    run.begin()
    run.end("plan", outcome="stopped")
    assert run.state.find_worker("plan", "").failures == 0
    assert begun(run.moves()) == [("plan", "", 2)]


def test_a_run_that_is_done_cannot_be_resumed():
    run = Run(StepPlan(id="plan"))
    run.add(PipelineEnded, outcome="failed")
    run.add(PipelineResumed)
    assert run.moves() == []


def test_steps_that_depend_on_each_other_are_an_error():
    run = Run(StepPlan(id="one", depends_on=("two",)), StepPlan(id="two", depends_on=("one",)))
    with pytest.raises(ValueError, match="depend on each other"):
        run.moves()
