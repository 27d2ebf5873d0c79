"""Ten thousand pipelines of random shape, each undisturbed and with every possible fault.

`fold` and `decide` are the real ones. The world around them is in `pipeline_world.py`: it draws a
pipeline from a seed, kills the coordinator between any two moves, repeats events, fails workers,
makes changes conflict, reaches usage limits and budgets, and stops and resumes the run. It checks
every entry of the log, and a run must end with the result that follows from the facts alone.

To repeat one pipeline: `REKINDLE_SEED=1234 pytest tests/simulation/test_pipelines.py -k seed`.
CI plays a sample, `just torture tests/simulation/test_pipelines.py` all of them.
"""

import os
from collections import Counter

import msgspec
import pytest
from pipeline_world import CALM, STORM, BrokenPromiseError, World

from rekindle.policy.pipelines import pipeline_moves
from rekindle.policy.pipelines.pipeline_state import WorkerState
from rekindle.policy.pipelines.step_status import (
    ConflictedStep,
    DoneStep,
    FailedStep,
    SkippedStep,
    find_statuses,
)
from sampling import WHOLE

SEED = os.environ.get("REKINDLE_SEED")
PARTS = 4
PIPELINES = 2_500 if WHOLE else 60
"""In each part."""


def play(seed, disturbances):
    """Play one run, and require the result that follows from the facts."""
    world = World(seed, disturbances)
    try:
        outcome, commit = world.run()
        expected = world.expected
        assert (outcome, commit) == (expected.outcome, expected.commit)
        statuses = find_statuses(world.plan, world.state)
        by_kind = {
            kind: {step for step, status in statuses.items() if isinstance(status, kind)}
            for kind in (DoneStep, FailedStep, SkippedStep)
        }
        wanted = {
            DoneStep: set(expected.results),
            FailedStep: expected.failed,
            SkippedStep: expected.skipped,
        }
        if any(isinstance(status, ConflictedStep) for status in statuses.values()):
            assert outcome == "failed", "the run has not waited for a merge"
            assert all(by_kind[kind] <= steps for kind, steps in wanted.items())
            world.counts["unmerged"] += 1
        else:
            assert by_kind == wanted
        for step in by_kind[DoneStep]:
            assert statuses[step].commit == expected.results[step]
    except AssertionError as error:
        pytest.fail(f"REKINDLE_SEED={seed}: {error}\n{msgspec.json.encode(world.plan).decode()}")
    return world


@pytest.mark.torture
@pytest.mark.timeout(3600 if WHOLE else 300)
@pytest.mark.parametrize("part", range(PARTS))
def test_faults_do_not_change_the_result_of_a_pipeline(part):
    """No hang, nothing begun early or twice, no limit exceeded, and the same result."""
    seen = Counter()
    for number in range(PIPELINES):
        seed = part * PIPELINES + number
        calm, stormy = play(seed, CALM), play(seed, STORM)
        assert calm.state.commit == stormy.state.commit
        seen[calm.expected.outcome] += 1
        seen.update(stormy.counts)
    print(f"\n{PIPELINES:,} pipelines: {dict(sorted(seen.items()))}")
    faults = ("kills", "repeated", "limits", "pipeline.resumed", "person.asked", "failed", "done")
    assert all(seen[fault] > PIPELINES / 20 for fault in faults), seen


@pytest.mark.skipif(SEED is None, reason="REKINDLE_SEED names a pipeline to play again")
def test_the_seed_that_was_asked_for():
    world = play(int(SEED or 0), STORM)
    print("\n".join(str(event) for event in world.log))


def test_a_run_depends_on_its_seed_alone():
    """Otherwise a broken promise could not be repeated."""
    assert play(5, STORM).log == play(5, STORM).log
    assert play(5, STORM).log != play(6, STORM).log


# Each promise can be broken, and the world notices it.

decide = pipeline_moves.decide
change = msgspec.structs.replace


def change_steps(plan, **values):
    return change(plan, steps=tuple(change(step, **values) for step in plan.steps))


def start_too_many(plan, state, now):
    return decide(change_steps(plan, max_concurrency=9), state, now)


def start_without_inputs(plan, state, now):
    return decide(change_steps(plan, depends_on=()), state, now)


def ignore_limits(plan, state, now):
    return decide(plan, change(state, limits={}), now)


def ignore_the_budget(plan, state, now):
    return decide(change(plan, budget=None), state, now)


def ignore_a_stop(plan, state, now):
    return decide(plan, change(state, is_stopped=False), now)


def never_stop_early(plan, state, now):
    return decide(change_steps(plan, fail_fast=False), state, now)


def forget_attempts(plan, state, now):
    workers = {
        place: change(worker, attempt=0) if worker.status == "failed" else worker
        for place, worker in state.workers.items()
    }
    return decide(plan, change(state, workers=workers), now)


def start_again(plan, state, now):
    workers = {
        place: WorkerState() if worker.status == "running" else worker
        for place, worker in state.workers.items()
    }
    return decide(plan, change(state, workers=workers), now)


def retry_endlessly(plan, state, now):
    return decide(change_steps(plan, attempts=99), state, now)


def never_merge(plan, state, now):
    chosen = decide(plan, state, now)
    return [move for move in chosen if not isinstance(move, pipeline_moves.MergeCommits)]


def ask_again(plan, state, now):
    return decide(plan, change(state, asked=frozenset()), now)


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (start_too_many, "too many workers at once"),
        (start_without_inputs, "begun without its inputs|items of another commit"),
        (ignore_limits, "begun during a limit"),
        (ignore_the_budget, "over budget"),
        (ignore_a_stop, "begun in a stopped run"),
        (never_stop_early, "begun after its step had failed"),
        (forget_attempts, "begun twice"),
        (start_again, "begun twice|too many workers|is still running"),
        (retry_endlessly, "attempts are used up"),
        (never_merge, "hangs"),
        (ask_again, "asked twice"),
    ],
)
def test_a_broken_policy_is_noticed(broken, words):
    """Each policy breaks one promise, which one of the first pipelines shows."""

    def play_all():
        for seed in range(120):
            World(seed, STORM, broken).run()

    with pytest.raises(BrokenPromiseError, match=words):
        play_all()
