"""The rows of a run and of its steps."""

import pytest

from rekindle.documents.screens.pipeline_row import RunRow, StepRow


@pytest.mark.parametrize(
    ("workers", "counts", "pending"),
    [
        (8, {"done": 2, "running": 1, "retrying": 1, "failed": 1}, 3),
        (1, {"done": 1}, 0),
        (None, {}, 0),
        (1, {"running": 1, "failed": 1}, 0),
    ],
)
def test_workers_that_have_not_started_are_pending(workers, counts, pending):
    row = StepRow(step="build", state="running", workers=workers, **counts)
    assert row.pending == pending


@pytest.mark.parametrize(
    ("state", "is_over"),
    [
        ("running", False),
        ("waiting", False),
        ("needs you", False),
        ("stopping", False),
        ("stopped", True),
        ("over budget", True),
        ("failed", True),
        ("done", True),
    ],
)
def test_a_run_is_over_once_nothing_more_happens(state, is_over):
    assert RunRow(pipeline="ship", run=1, state=state).is_over is is_over
