"""The text of a pull request."""

from rekindle.documents.screens.pipeline_row import RunRow, StepRow, WorkerFailure
from rekindle.documents.screens.pull_request_body import render_body, render_title

ROW = RunRow(
    pipeline="ship",
    run=7,
    state="done",
    steps=(
        StepRow(step="plan", state="done", done=1),
        StepRow(step="build", state="done", is_matrix=True, workers=3, done=2, failed=1),
    ),
    failures=(WorkerFailure(step="build", worker="b", why="tests\nfailed"),),
)


def test_the_title_is_the_first_line_of_the_input():
    assert render_title(ROW, "\nMigrate all.\nThen test.") == "Migrate all."
    assert render_title(ROW, " ") == "ship, run 7"


def test_the_body_lists_steps_and_failed_workers():
    body = render_body(ROW, "Migrate all.\nThen test.")
    assert "> Migrate all.\n> Then test." in body
    assert "| plan | done | 1 of 1 done |" in body
    assert "| build | done | 2 of 3 done |" in body
    assert "- build b: tests failed" in body
    assert body.endswith("\n")


def test_a_run_without_failures_and_input_is_short():
    row = RunRow(pipeline="ship", run=7, state="done", steps=ROW.steps[:1])
    body = render_body(row, "")
    assert ">" not in body
    assert "Not included" not in body
