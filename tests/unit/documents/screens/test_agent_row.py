"""One table has what every screen shows of a state."""

import re
import sys
import types
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

import pytest

from rekindle.cli.reports import status_command
from rekindle.documents.screens import (
    agent_row,
    morning_page,
)
from rekindle.documents.screens.agent_row import (
    STATES,
    AgentRow,
    AgentState,
    Figure,
    SpendFigures,
    render_spend,
)
from rekindle.documents.screens.metrics_text import ProjectMetrics, render_metrics
from rekindle.documents.screens.status_table import (
    render_table,
    summarize_rows,
)

SOURCE = Path(agent_row.__file__).read_text(encoding="utf-8")
NOW = datetime(2026, 4, 9, 6, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"done", "broken"]', '"done", "broken", "paused"]'),
        ('    "done": State', '    "paused": State'),
    ],
    ids=["state", "row"],
)
def test_a_state_without_a_row_fails_the_import(monkeypatch, before, after):
    assert before in SOURCE
    module = types.ModuleType("rekindle.documents.row_of_a_test")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    with pytest.raises(TypeError, match="paused"):
        exec(compile(SOURCE.replace(before, after, 1), "row.py", "exec"), module.__dict__)  # noqa: S102 - our own source


@pytest.mark.parametrize("state", get_args(AgentState))
def test_every_screen_shows_a_state_as_its_row_says(state):
    shown, many = (
        STATES[state],
        [AgentRow(agent="trades", state=state), AgentRow(agent="news", state=state)],
    )
    assert status_command._COLOURS[state] == shown.colour
    assert summarize_rows(many) == f"2 agents: 2 {shown.plural or state}"
    assert {line.state for line in render_table(many, NOW, 80)} == {"", state}
    assert f'agent="news",state="{state}"}} 1\n' in render_metrics([ProjectMetrics("x", many)])
    entry = morning_page.MorningEntry(agent="trades", state=state, why="")
    page = morning_page.render_html(
        morning_page.MorningPage(project="x", written="", entries=(entry,))
    )
    name = state.replace(" ", "-")
    assert f'<article class="{name}">' in page
    assert f".{name} {{ --mood: var(--{name}); }}" in page
    assert re.findall(rf"--{name}: (#\w+);", page) == [shown.light, shown.dark]


def test_a_summary_counts_the_states_in_the_order_of_the_table():
    rows = [AgentRow(agent=state, state=state) for state in get_args(AgentState)]
    counted = summarize_rows(rows).partition(": ")[2].split(", ")
    assert counted == [f"1 {state}" for state in STATES]
    assert [*STATES][:2] == ["needs you", "broken"]


def _spend(usd=None, tokens=None, source="estimated"):
    return SpendFigures(
        usd=Figure(usd, source) if usd is not None else Figure(),
        tokens=Figure(tokens, source) if tokens is not None else Figure(),
    )


@pytest.mark.parametrize(
    ("spends", "text"),
    [
        ([_spend(1.25, 1_300)], "~$1.25, ~1,300 tokens"),
        ([_spend(1.25, 1_300, "reported")], "$1.25, 1,300 tokens"),
        ([_spend(1, 1_000, "reported"), _spend(tokens=5)], "$1.00, ~1,005 tokens"),
        ([_spend(tokens=5)], "~5 tokens"),
        ([_spend(0, 0, "reported")], "$0.00"),
        ([SpendFigures()], ""),
        ([], ""),
    ],
)
def test_an_estimated_figure_is_marked(spends, text):
    assert render_spend(spends) == text
