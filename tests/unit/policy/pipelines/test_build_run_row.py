"""The row of a run: how far each step is, what it waits for, and what failed."""

from datetime import UTC, datetime, timedelta

import pytest

from rekindle.documents.manifest_keys import Budget
from rekindle.documents.pipelines.pipeline_events import (
    ItemsFound,
    PipelineEnded,
    PipelineResumed,
    PipelineStarted,
    PipelineStopped,
    StepMerged,
    WorkerBegan,
    WorkerEnded,
    WorkerReported,
)
from rekindle.documents.screens.agent_row import AgentRow
from rekindle.documents.screens.pipeline_row import PersonTask, WorkerFailure
from rekindle.policy.pipelines.build_run_row import build_run_row
from rekindle.policy.pipelines.pipeline_state import PipelineState, fold
from rekindle.policy.pipelines.run_plan import RunPlan, StepPlan

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
PLAN = RunPlan(
    pipeline="review",
    steps=(
        StepPlan(id="plan", harness="claude-code"),
        StepPlan(
            id="build", depends_on=("plan",), is_matrix=True, attempts=2, harness="claude-code"
        ),
        StepPlan(id="judge", depends_on=("build",), harness="claude-code"),
    ),
    budget=Budget(usd=30),
)
STARTED = PipelineStarted(ts=NOW, pipeline="review", run=7, base="c0")


def begin(step, key="", attempt=1):
    agent = f"review-7-{step}{key}"
    return WorkerBegan(ts=NOW, step=step, worker=key, attempt=attempt, agent=agent, commit="c0")


def end(step, key="", attempt=1, outcome="done", **fields):
    return WorkerEnded(
        ts=NOW, step=step, worker=key, attempt=attempt, outcome=outcome, **fields
    )  # fmt: skip


PLANNED = [
    STARTED,
    begin("plan"),
    end("plan", commit="c1", usd=0.5, tokens=100),
    StepMerged(ts=NOW, step="plan", commit="c1", merged=("",)),
]
LISTED = [*PLANNED, ItemsFound(ts=NOW, step="build", workers=("a", "b", "c", "d"))]


def build(events, plan=PLAN, now=NOW, **more):
    return build_run_row(plan, fold(events), number=7, now=now, **more)


def test_a_run_without_an_event_waits():
    row = build_run_row(PLAN, PipelineState(), number=7, now=NOW)
    assert [step.state for step in row.steps] == ["waiting"] * 3
    assert (row.state, row.began) == ("running", None)


def test_a_cost_is_estimated_until_the_attempt_reports_it():
    """An earlier attempt with an estimated cost keeps the mark."""
    events = [*LISTED, begin("build", "a")]
    reported = {"step": "build", "worker": "a", "attempt": 1, "usd": 0.2, "is_estimated": True}
    events.append(WorkerReported(ts=NOW, **reported))
    row = build(events)
    assert (row.is_estimated, [step.is_estimated for step in row.steps]) == (
        True,
        [False, True, False],
    )
    assert not build([*events, end("build", "a", usd=0.3)]).is_estimated
    failed = end("build", "a", outcome="failed", usd=0.3, is_estimated=True)
    assert build([*events, failed, begin("build", "a", 2)]).is_estimated


def test_the_workers_of_a_matrix_are_counted_by_their_state():
    row = build(
        [
            *LISTED,
            *(begin("build", key) for key in "abcd"),
            end("build", "a", commit="d" * 40, usd=1.0),
            end("build", "b", outcome="failed", why="no tests", usd=1.0),
            begin("build", "b", 2),
            end("build", "c", outcome="failed", why="no tests"),
            begin("build", "c", 2),
            end("build", "c", 2, outcome="failed", why="still no tests"),
            WorkerReported(ts=NOW, step="build", worker="d", attempt=1, usd=0.25, tokens=7),
        ]
    )
    step = row.steps[1]
    counts = (step.workers, step.done, step.running, step.retrying, step.failed, step.pending)
    assert counts == (4, 1, 1, 1, 1, 0)
    assert [step.state for step in row.steps] == ["done", "running", "waiting"]
    assert (step.usd, step.tokens) == (2.25, 7)
    assert (row.usd, row.tokens, row.usd_cap) == (2.75, 107, 30)
    assert (step.is_estimated, row.is_estimated) == (False, False)
    assert row.failures == (
        WorkerFailure(step="build", worker="c", agent="review-7-buildc", why="still no tests"),
    )


def test_the_failures_that_failed_the_run_come_first():
    steps = (StepPlan(id="lint", optional=True), StepPlan(id="test"))
    events = [STARTED, begin("lint"), begin("test")]
    events += [end(step, outcome="failed", why="bad") for step in ("lint", "test")]
    row = build(events, RunPlan(pipeline="review", steps=steps))
    assert [failure.step for failure in row.failures] == ["test", "lint"]


def test_a_list_that_was_not_read_has_no_number_of_workers():
    row = build(PLANNED)
    assert (row.steps[1].state, row.steps[1].workers) == ("running", None)


def test_a_list_that_cannot_be_used_is_a_failure():
    row = build([*PLANNED, ItemsFound(ts=NOW, step="build", why="items.json is not a list")])
    assert row.failures == (WorkerFailure(step="build", why="items.json is not a list"),)
    assert [step.state for step in row.steps] == ["done", "failed", "skipped"]


def finish_all():
    work = [
        event
        for key in "abcd"
        for event in (begin("build", key), end("build", key, commit=key * 40))
    ]
    return [*LISTED, *work]


def test_conflicting_workers_are_merged_with_these_commands():
    merged = StepMerged(ts=NOW, step="build", commit="c2", merged=("a", "b"), conflicts=("c", "d"))
    row = build([*finish_all(), merged])
    assert (row.state, row.steps[1].state) == ("needs you", "needs you")
    assert row.tasks == (
        PersonTask(
            step="build",
            text="git cannot merge the changes of c, d. Merge and commit them on this branch; the"
            " run then continues:",
            commands=(
                "git switch rekindle/review/7-build",
                "git merge cccccccccc",
                "git merge dddddddddd",
                "git switch -",
            ),
        ),
    )


def test_on_a_fleet_a_person_fetches_the_branch_and_pushes_the_merge():
    """The branch and the commits are on the git remote, where the hosts look for the merge."""
    merged = StepMerged(ts=NOW, step="build", commit="c2", merged=("a", "b", "c"), conflicts=("d",))
    [task] = build([*finish_all(), merged], remote="origin").tasks
    refs = "refs/rekindle/pipelines/review/7/*"
    assert task.commands == (
        f"git fetch origin '{refs}:{refs}' rekindle/review/7-build:rekindle/review/7-build",
        "git switch rekindle/review/7-build",
        "git merge dddddddddd",
        "git push origin rekindle/review/7-build",
        "git switch -",
    )


def test_conflicting_last_steps_are_merged_into_the_result():
    plan = RunPlan(pipeline="review", steps=(StepPlan(id="left"), StepPlan(id="right")))
    events = [STARTED]
    for step in ("left", "right"):
        events += [begin(step), end(step, commit=step * 3)]
        events += [StepMerged(ts=NOW, step=step, commit=step * 3, merged=("",))]
    events.append(
        StepMerged(ts=NOW, stage="result", commit="c2", merged=("left",), conflicts=("right",))
    )
    [task] = build(events, plan).tasks
    assert task.step == ""
    assert "the changes of right into the result." in task.text
    assert task.commands == (
        "git switch rekindle/review/7-result",
        "git merge rightright",
        "git switch -",
    )


def test_conflicting_steps_before_a_step_are_merged_on_another_branch():
    steps = (
        *(StepPlan(id=step) for step in ("left", "right")),
        StepPlan(id="last", depends_on=("left", "right")),
    )
    events = [STARTED]
    for step in ("left", "right"):
        events += [begin(step), end(step, commit=step * 3)]
        events += [StepMerged(ts=NOW, step=step, commit=step * 3, merged=("",))]
    merged = StepMerged(ts=NOW, step="last", stage="inputs", commit="c2", conflicts=("right",))
    [task] = build([*events, merged], RunPlan(pipeline="review", steps=steps)).tasks
    assert task.commands[:2] == (
        "git switch rekindle/review/7-last-inputs",
        "git merge rightright",
    )


def test_git_or_an_agent_merges_before_a_person_does():
    assert build(finish_all()).steps[1].state == "merging"
    steps = (PLAN.steps[0], StepPlan(id="build", is_matrix=True, conflicts="agent"))
    merged = StepMerged(ts=NOW, step="build", commit="c2", merged=("a",), conflicts=("b",))
    row = build([*finish_all(), merged], RunPlan(pipeline="review", steps=steps))
    assert (row.state, row.steps[1].state, row.tasks) == ("running", "merging", ())


@pytest.mark.parametrize("state", ["needs you", "broken"])
def test_a_worker_in_safe_mode_needs_a_person(state):
    agent = AgentRow(
        agent="review-7-plan",
        state=state,
        reason="its login has expired",
        command="rekindle answer review-7-plan 1 continue",
    )
    row = build([STARTED, begin("plan")], agents={"review-7-plan": agent})
    assert row.state == "needs you"
    assert row.tasks == (
        PersonTask(
            step="plan",
            text="its login has expired",
            commands=("rekindle answer review-7-plan 1 continue",),
        ),
    )


def test_a_worker_that_the_operator_stopped_needs_a_person_while_the_run_continues():
    agent = AgentRow(agent="review-7-plan", state="stopped", outcome="stopped", reason="by you")
    agents = {"review-7-plan": agent}
    [task] = build([STARTED, begin("plan")], agents=agents).tasks
    assert task.commands == ("rekindle up review-7-plan",)
    stopped = [STARTED, begin("plan"), PipelineStopped(ts=LATER)]
    assert build(stopped, agents=agents).tasks == ()
    resumed = [*stopped, PipelineResumed(ts=LATER + timedelta(seconds=1))]
    assert build(resumed, agents=agents).tasks == (), "the coordinator starts it again"


def test_a_worker_that_waits_for_a_limit_does_not_need_a_person():
    agent = AgentRow(agent="review-7-plan", state="waiting", reason="usage limit")
    assert build([STARTED, begin("plan")], agents={"review-7-plan": agent}).tasks == ()


def test_a_run_waits_for_a_limit_that_holds_all_of_its_workers_back():
    limit = WorkerReported(
        ts=NOW, step="plan", attempt=1, harness="claude-code", until=LATER, usd=0.0
    )
    held = [STARTED, begin("plan"), limit, end("plan", outcome="stopped")]
    row = build(held)
    assert (row.state, row.until) == ("waiting", LATER)
    assert build(held, now=LATER).until is None
    assert build([STARTED, begin("plan"), limit]).until is None  # no other worker waits


@pytest.mark.parametrize(
    ("outcome", "state", "command"),
    [
        ("done", "done", "rekindle pipeline merge review 7"),
        ("failed", "failed", "git branch --list 'rekindle/review-7-*/work'"),
        ("stopped", "stopped", "rekindle pipeline resume review 7"),
        ("budget", "over budget", "rekindle pipeline resume review 7 --budget usd=AMOUNT"),
    ],
)
def test_a_run_that_is_over_names_the_next_command(outcome, state, command):
    row = build(
        [*LISTED, PipelineEnded(ts=NOW, outcome=outcome, commit="c9")], why="failed: because"
    )
    assert (row.state, row.command, row.is_over, row.reason) == (state, command, True, "because")
    assert (row.branch, row.commit) == (
        ("rekindle/review/7", "c9") if outcome == "done" else ("", "")
    )
    assert row.steps[1].state == "stopped"


def test_a_failed_run_without_work_names_no_command():
    ended = PipelineEnded(ts=NOW, outcome="failed", commit="")
    begun = [STARTED, begin("plan"), end("plan", outcome="failed", why="no plan")]
    assert build([*begun, ended]).command == ""


def test_a_failed_run_on_a_fleet_lists_the_branches_of_the_remote():
    ended = PipelineEnded(ts=NOW, outcome="failed", commit="")
    row = build([*LISTED, ended], remote="origin")
    assert row.command == "git ls-remote origin 'rekindle/review-7-*/work'"


def test_a_conflict_in_a_stopped_run_waits_until_it_is_resumed():
    merged = StepMerged(ts=NOW, step="build", commit="c2", conflicts=("c",))
    stopped = [*finish_all(), merged, PipelineStopped(ts=LATER)]
    assert build(stopped).state == "stopping"
    row = build([*stopped, PipelineEnded(ts=LATER, outcome="stopped")])
    assert (row.state, row.tasks) == ("stopped", ())


def test_what_the_coordinator_cannot_do_needs_a_person():
    row = build(LISTED, notice="rekindle.yaml was changed")
    assert row.state == "needs you"
    assert row.tasks == (
        PersonTask(
            step="",
            text="rekindle.yaml was changed",
            commands=("rekindle pipeline resume review 7",),
        ),
    )
    over = [*LISTED, PipelineEnded(ts=NOW, outcome="done", commit="c9")]
    assert build(over, notice="rekindle.yaml was changed").tasks == ()


def test_a_task_that_fails_on_a_fleet_needs_no_command():
    """The fleet repeats the task until it succeeds."""
    row = build(LISTED, notice="the remote is full", remote="origin")
    assert row.state == "needs you"
    assert row.tasks == (PersonTask(step="", text="the remote is full"),)


def test_a_raised_cap_is_shown():
    stopped = [*LISTED, PipelineEnded(ts=NOW, outcome="budget")]
    row = build([*stopped, PipelineResumed(ts=LATER, budget={"usd": 40})])
    assert (row.state, row.usd_cap) == ("running", 40)
