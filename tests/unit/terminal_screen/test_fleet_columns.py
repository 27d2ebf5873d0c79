"""Each number in the table shows its source, and narrow terminals show the important columns."""

from datetime import UTC, datetime, timedelta

import pytest

from rekindle.documents.screens.agent_row import AgentRow, Figure, SpendFigures, WindowFigures
from rekindle.terminal_screen.fleet_columns import build_table, draw_bar, render_spent

NOW = datetime(2026, 4, 14, 7, 14, tzinfo=UTC)


def make_row(**fields):
    return AgentRow(**{"agent": "trades", "state": "running", "harness": "codex", **fields})


def read_cells(row, threshold=80, columns=120):
    table = build_table([row], {row.agent: threshold}, NOW, columns, is_dark=True)
    names = [name for name, _ in table.columns]
    return dict(zip(names, (cell.plain for cell in table.cells[row.agent]), strict=True))


@pytest.mark.parametrize(
    ("spend", "shown"),
    [
        (SpendFigures(), "?"),
        (SpendFigures(usd_cap=5), "?/5"),
        (SpendFigures(tokens_cap=5_000_000), "?/5.0M tok"),
        (SpendFigures(usd=Figure(3.1, "reported"), usd_cap=10), "$3.10/10"),
        (SpendFigures(usd=Figure(3.1, "estimated")), "~$3.10/–"),
        (SpendFigures(tokens=Figure(1200, "estimated"), tokens_cap=4000), "~1.2k/4.0k tok"),
        (SpendFigures(tokens=Figure(1200, "reported"), usd_cap=4), "1.2k/– tok"),
    ],
)
def test_spending_shows_its_source_and_its_cap(spend, shown):
    assert render_spent(spend) == shown


def test_an_unknown_window_is_not_zero():
    assert read_cells(make_row())["window"].split() == ["┆", "?"]


def test_the_window_marks_the_handoff_threshold():
    window = WindowFigures(percent=Figure(50.0, "estimated"))
    assert read_cells(make_row(window=window), 75)["window"] == "████  ┆   ~50%"
    assert "┆" not in read_cells(make_row(window=window), None)["window"]


@pytest.mark.parametrize(
    ("percent", "bar"), [(0, "    "), (30, "█▎  "), (100, "████"), (140, "████")]
)
def test_a_bar_never_leaves_its_columns(percent, bar):
    assert draw_bar(percent, 4) == bar


def test_stale_loops_cycles_and_age_are_shown():
    row = make_row(
        open_loops=3,
        stale_loops=1,
        cycles_done=4,
        cycles_of=10,
        last_active=NOW - timedelta(minutes=12),
    )
    cells = read_cells(row)
    assert (cells["loops"], cells["cycle"], cells["seen"]) == ("3·1", "4/10", "12 min")


def test_a_running_agent_shows_its_work_and_another_its_reason():
    texts = {"reason": "cycle 2", "next_action": "Ship the form"}
    assert read_cells(make_row(**texts))["what, or why"] == "Ship the form"
    assert read_cells(make_row(state="waiting", **texts))["what, or why"] == "cycle 2"


def test_columns_are_dropped_in_order_and_the_rest_fits():
    row = make_row(reason="a reason that is far longer than any terminal is wide " * 4)
    before = set()
    for columns in range(200, 29, -1):
        table = build_table([row], {}, NOW, columns, is_dark=False)
        names = {name for name, _ in table.columns}
        assert sum(width + 2 for _, width in table.columns) <= columns
        assert not before or names - before <= {"win"}
        before = names
    assert before == {"state", "agent", "what, or why"}
