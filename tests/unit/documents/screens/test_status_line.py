"""One line about an agent, from its row and the facts of the CLI."""

import json

import pytest

from rekindle.documents.screens.agent_row import AgentRow, Figure, SpendFigures, WindowFigures
from rekindle.documents.screens.status_line import (
    CliFacts,
    parse_facts,
    render_agent,
    render_agents,
    render_session,
)

PAYLOAD = {
    "session_id": "s",
    "cwd": "/work/shop/src",
    "model": {"id": "m", "display_name": "Sonnet"},
    "workspace": {"current_dir": "/work/shop/src", "project_dir": "/work/shop"},
    "cost": {"total_cost_usd": 0.2005},
    "context_window": {"used_percentage": 5},
}
FACTS = CliFacts("/work/shop", "Sonnet", 5.0, 0.2005)


def make_row(**more):
    return AgentRow(agent="trades", harness="claude-code", **{"state": "running", **more})


def test_the_facts_of_claude_code():
    assert parse_facts(json.dumps(PAYLOAD).encode()) == FACTS


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[]", b"nonsense", b"\xff", b'{"cost":3,"model":[],"cwd":7}']
)
def test_anything_else_has_no_facts(data):
    assert parse_facts(data) == CliFacts()


def test_a_line_has_what_is_known():
    row = make_row(
        cycle=2,
        cycles_of=5,
        open_questions=1,
        window=WindowFigures(percent=Figure(44.6, "estimated")),
        spend=SpendFigures(usd=Figure(2.1, "reported"), usd_cap=10),
    )
    line = "trades: running · cycle 2 of 5 · window {} · 1 question · $2.10 of $10"
    assert render_agent(row, CliFacts()) == line.format("~45%")
    assert render_agent(row, FACTS) == line.format("5%")
    assert render_agent(make_row(state="stopped"), CliFacts()) == "trades: stopped"
    assert render_agent(make_row(), FACTS) == "trades: running · window 5% · $0.20"


def test_several_agents_and_none():
    rows = [make_row(state="needs you", open_questions=2), make_row(), make_row(state="broken")]
    assert render_agents(rows, CliFacts()) == "3 agents · 2 need you · 2 questions"
    assert render_agents(rows[:2], FACTS).startswith("2 agents · trades needs you · 2 questions")
    assert render_session(FACTS) == "Sonnet · window 5% · $0.20"
    assert render_session(CliFacts()) == ""
