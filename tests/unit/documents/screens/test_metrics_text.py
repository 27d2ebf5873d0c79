"""The metrics are the figures of the rows, in Prometheus's text format."""

from datetime import UTC, datetime
from typing import get_args

import pytest

from rekindle.documents.screens.agent_row import (
    AgentRow,
    AgentState,
    Figure,
    SpendFigures,
    WindowFigures,
)
from rekindle.documents.screens.metrics_text import AgentCounts, ProjectMetrics, render_metrics

NOON = datetime(2026, 4, 9, 12, 0, tzinfo=UTC)


def sample(*rows, counts=None, project="shop"):
    """Return the lines without comments, as pairs of a series and its value."""
    text = render_metrics([ProjectMetrics(project, rows, counts or {})])
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return dict(line.rsplit(" ", 1) for line in lines)


def labels(**more):
    return "{" + ",".join(f'{key}="{value}"' for key, value in more.items()) + "}"


AGENT = {"project": "shop", "agent": "trades"}


@pytest.mark.parametrize("state", get_args(AgentState))
def test_the_label_of_a_state_is_the_word_of_the_row(state):
    lines = sample(AgentRow(agent="trades", state=state))
    values = {
        word: lines[f"rekindle_agent_state{labels(**AGENT, state=word)}"]
        for word in get_args(AgentState)
    }
    assert values == {word: "1" if word == state else "0" for word in get_args(AgentState)}


def test_a_row_becomes_one_series_per_figure():
    row = AgentRow(
        agent="trades",
        harness="codex",
        at=7,
        state="waiting",
        window=WindowFigures(percent=Figure(71.5, "reported")),
        spend=SpendFigures(
            usd=Figure(3.0, "reported"), tokens=Figure(500, "reported"), usd_cap=12, tokens_cap=1000
        ),
        open_loops=3,
        stale_loops=1,
        open_questions=2,
        last_active=NOON,
        waits_until=NOON.replace(microsecond=500_000),
    )
    counts = AgentCounts(
        cycles={"progress": 2},
        launches={"crash": 0, "clean": 4},
        handoffs={"person": 1},
        past_tokens=100,
        past_usd=1.5,
        run_tokens=20,
        run_usd=0.25,
    )
    lines = sample(row, counts={"trades": counts})
    ours = labels(**AGENT)
    states = {name: value for name, value in lines.items() if "rekindle_agent_state" in name}
    assert len(states) == 6
    assert {name: value for name, value in lines.items() if name not in states} == {
        'rekindle_project_up{project="shop"}': "1",
        f"rekindle_agent_info{labels(**AGENT, harness='codex')}": "1",
        f"rekindle_window_used_ratio{ours}": "0.715",
        f"rekindle_budget_used_ratio{labels(**AGENT, of='usd')}": "0.25",
        f"rekindle_budget_used_ratio{labels(**AGENT, of='tokens')}": "0.5",
        f"rekindle_open_loops{labels(**AGENT, stale='false')}": "2",
        f"rekindle_open_loops{labels(**AGENT, stale='true')}": "1",
        f"rekindle_open_questions{ours}": "2",
        f"rekindle_last_active_timestamp_seconds{ours}": str(int(NOON.timestamp())),
        f"rekindle_waits_until_timestamp_seconds{ours}": f"{NOON.timestamp() + 0.5}",
        f"rekindle_cycles_total{labels(**AGENT, verdict='progress')}": "2",
        f"rekindle_launches_total{labels(**AGENT, exit='clean')}": "4",
        f"rekindle_launches_total{labels(**AGENT, exit='crash')}": "0",
        f"rekindle_handoffs_total{labels(**AGENT, by='person')}": "1",
        f"rekindle_tokens_total{ours}": "120",
        f"rekindle_cost_usd_total{ours}": "1.75",
    }


def test_unknown_figures_are_left_out():
    """A cap without a known amount says nothing, and a row without a log has no loops."""
    row = AgentRow(agent="trades", state="broken", spend=SpendFigures(usd_cap=5, tokens_cap=5))
    names = {name.partition("{")[0] for name in sample(row, counts={"trades": AgentCounts()})}
    assert names == {"rekindle_project_up", "rekindle_agent_info", "rekindle_agent_state"}


def test_an_amount_without_a_cap_has_no_share():
    spend = SpendFigures(usd=Figure(1.0, "reported"), tokens=Figure(5, "reported"))
    lines = sample(AgentRow(agent="trades", state="running", spend=spend))
    assert not [name for name in lines if "budget" in name]


def test_labels_are_escaped():
    lines = sample(AgentRow(agent="trades", state="done"), project='a\\b"c\nd')
    assert lines[r'rekindle_project_up{project="a\\b\"c\nd"}'] == "1"


def test_several_projects_share_one_heading_per_metric():
    projects = [
        ProjectMetrics("one", [AgentRow(agent="trades", state="done")]),
        ProjectMetrics("two", [AgentRow(agent="trades", state="done")]),
        ProjectMetrics("three", is_readable=False),
    ]
    lines = render_metrics(projects).splitlines()
    assert lines[:5] == [
        "# HELP rekindle_project_up 1 if the project's agents could be read.",
        "# TYPE rekindle_project_up gauge",
        'rekindle_project_up{project="one"} 1',
        'rekindle_project_up{project="two"} 1',
        'rekindle_project_up{project="three"} 0',
    ]
    headings = [line for line in lines if line.startswith("# TYPE")]
    assert len(headings) == len(set(headings)) == 3


def test_no_project_is_an_empty_text():
    assert render_metrics([]) == ""
