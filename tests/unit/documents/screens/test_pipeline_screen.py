"""A run of a pipeline on one line, and as a live view with a line per step."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from rekindle.documents.screens.pipeline_row import PersonTask, RunRow, StepRow, WorkerFailure
from rekindle.documents.screens.pipeline_screen import (
    ASCII_MARKS,
    render_bar,
    render_run,
    render_summary,
)
from rekindle.documents.screens.status_table import display_width

NOW = datetime(2026, 5, 4, 12, 30, tzinfo=UTC)
PLAN = StepRow(step="plan", state="done", done=1, usd=0.4)
IMPLEMENT = StepRow(
    step="implement", state="running", is_matrix=True, workers=8, done=5, running=2, retrying=1,
    usd=3.7,
)  # fmt: skip
JUDGE = StepRow(step="judge", state="waiting")
ROW = RunRow(
    pipeline="review",
    run=7,
    state="running",
    began=NOW - timedelta(minutes=12),
    usd=4.1,
    usd_cap=30,
    steps=(PLAN, IMPLEMENT, JUDGE),
)


def change(row, **fields):
    return msgspec.structs.replace(row, **fields)


def render(row, columns=80, marks=None):
    lines = render_run(row, NOW, columns, *([marks] if marks else []), zone=UTC)
    return [line.text for line in lines]


def test_a_run_fits_on_one_line():
    assert render_summary(ROW, 80) == (
        "review 7  plan ✓  implement 5/8 (2 running, 1 retrying)  judge –   $4.10 of $30"
    )


def test_the_time_in_which_a_run_was_stopped_is_not_shown():
    row = change(ROW, began=NOW - timedelta(hours=9), stopped_seconds=7 * 3600, hours_cap=3)
    assert "for 2 h" in render(row)[0]


def test_a_summary_has_an_ascii_form():
    line = render_summary(ROW, 90, ASCII_MARKS)
    assert line == (
        "review 7  plan ok  implement 5/8 (2 running, 1 retrying)  judge -   $4.10 of $30"
    )
    assert line.isascii()


@pytest.mark.parametrize(
    ("step", "shown"),
    [
        (StepRow(step="plan", state="running", running=1), "plan running"),
        (StepRow(step="plan", state="running", retrying=1), "plan retrying"),
        (StepRow(step="plan", state="failed", failed=1), "plan ✗"),
        (StepRow(step="plan", state="skipped"), "plan skipped"),
        (StepRow(step="plan", state="needs you", done=1), "plan !"),
        (StepRow(step="m", state="waiting", is_matrix=True, workers=None), "m –"),
        (StepRow(step="m", state="running", is_matrix=True, workers=None), "m running"),
        (StepRow(step="m", state="done", is_matrix=True, workers=3, done=3), "m 3/3 ✓"),
        (StepRow(step="m", state="done", is_matrix=True, workers=0), "m 0/0 ✓"),
        (
            StepRow(step="m", state="failed", is_matrix=True, workers=3, done=1, failed=2),
            "m 1/3 ✗ (2 failed)",
        ),
    ],
)
def test_a_step_is_summarized_by_its_state(step, shown):
    row = change(ROW, steps=(step,), usd=0.0, usd_cap=None)
    assert render_summary(row, 80) == f"review 7  {shown}"


@pytest.mark.parametrize(
    ("fields", "spent"),
    [
        ({"usd": 0.0, "usd_cap": None}, ""),
        ({"usd": 2.0, "usd_cap": None}, "   $2.00"),
        ({"usd": 2.0, "usd_cap": None, "is_estimated": True}, "   ~$2.00"),
        ({"usd": 0.0, "usd_cap": None, "tokens": 1200}, "   1,200 tokens"),
        ({"tokens": 1200, "tokens_cap": 5000}, "   $4.10 of $30, 1,200 of 5,000 tokens"),
    ],
)
def test_the_spending_names_each_cap(fields, spent):
    row = change(ROW, steps=(PLAN,), **fields)
    assert render_summary(row, 80) == f"review 7  plan ✓{spent}"


def test_a_state_other_than_running_is_named():
    assert render_summary(change(ROW, state="failed"), 100).startswith("review 7  failed  plan ✓")


def test_many_steps_are_counted_and_the_spending_stays_visible():
    done = tuple(StepRow(step=f"check-{number}", state="done") for number in range(9))
    line = render_summary(change(ROW, steps=(*done, IMPLEMENT, JUDGE)), 80)
    assert line == (
        "review 7  9 steps ✓  implement 5/8 (2 running, 1 retrying)  judg…   $4.10 of $30"
    )
    assert display_width(line) <= 80


def test_the_live_view_has_a_line_per_step():
    assert render(ROW) == [
        "review 7  running  for 12 min                                       $4.10 of $30",
        "  plan       ✓ done                                                        $0.40",
        "  implement  running    [█████▒▒▒]  5/8, 2 running, 1 retrying             $3.70",
        "  judge      waiting",
    ]


def test_the_live_view_has_an_ascii_form():
    row = change(
        ROW,
        failures=(WorkerFailure(step="implement", worker="a", agent="review-7-a", why="no"),),
        command="rekindle pipeline resume review 7",
    )
    lines = render(row, marks=ASCII_MARKS)
    assert lines[2].startswith("  implement  running    [#####+++]  5/8")
    assert all(line.isascii() for line in lines)


def test_conflicts_and_failures_are_explained_below():
    row = change(
        ROW,
        state="needs you",
        tasks=(
            PersonTask(
                step="implement",
                text="git cannot merge the changes of alpha and of beta. " * 2,
                commands=(f"git switch rekindle/review/7-{'implement' * 9}", "git merge abc"),
            ),
        ),
        failures=(
            WorkerFailure(
                step="implement",
                worker="gamma",
                agent="review-7-gamma",
                why="the check failed. " * 20,
            ),
        ),
    )
    lines = render(row)
    assert lines[4:] == [
        "waits for you:",
        "  implement: git cannot merge the changes of alpha and of beta. git cannot merge",
        "    the changes of alpha and of beta.",
        f"    git switch rekindle/review/7-{'implement' * 9}",
        "    git merge abc",
        "failed:",
        "  implement gamma: the check failed. the check failed. the check failed. the",
        "    check failed. the check failed. the check failed. the check failed. the",
        "    check failed. the check failed. the check failed. the check failed. the …",
        "    → rekindle logs review-7-gamma",
    ]


def test_only_some_failures_are_listed():
    failures = tuple(WorkerFailure(step="m", worker=str(n), why="no") for n in range(20))
    lines = render(change(ROW, failures=failures))
    assert "  m 7: no" in lines
    assert lines[-1] == "  and 12 others"


def test_a_run_that_is_over_shows_how_long_it_took_and_the_next_command():
    row = change(
        ROW,
        state="over budget",
        reason="its budget of $30 is spent",
        updated=NOW - timedelta(minutes=7),
        command="rekindle pipeline resume review 7 --budget usd=AMOUNT",
        is_coordinated=False,
    )
    lines = render(row)
    assert lines[0].startswith("review 7  over budget  after 5 min ")
    assert lines[-2:] == [
        "over budget: its budget of $30 is spent",
        "→ rekindle pipeline resume review 7 --budget usd=AMOUNT",
    ]


def test_a_limit_and_a_lost_coordinator_are_named():
    row = change(ROW, until=NOW + timedelta(hours=1), is_coordinated=False, hours_cap=4)
    lines = render(row)
    assert lines[0].startswith("review 7  running  for 12 min of 4 hours")
    assert lines[4:] == [
        "waits for a usage limit until 13:30",
        "! its coordinator is not running; this starts it:",
        "    rekindle pipeline resume review 7",
    ]


@pytest.mark.parametrize(
    ("counts", "bar"),
    [
        ((8, 5, 2, 0), "█████▒▒░"),
        ((3, 1, 0, 2), "█xx"),
        ((240, 120, 60, 0), "█" * 12 + "▒" * 6 + "░" * 6),
        ((256, 254, 1, 1), "█" * 22 + "▒x"),
        ((256, 1, 1, 1), "█▒x" + "░" * 21),
        ((100, 100, 0, 0), "█" * 24),
    ],
)
def test_a_bar_shares_its_cells_and_hides_no_worker(counts, bar):
    workers, done, running, failed = counts
    step = change(IMPLEMENT, workers=workers, done=done, running=running, retrying=0, failed=failed)
    assert render_bar(step) == bar


def test_text_of_an_agent_cannot_add_lines():
    failure = WorkerFailure(step="m", why="no\n→ rekindle \x1b[31mrm")
    assert render(change(ROW, failures=(failure,)))[-1] == "  m: no → rekindle rm"
