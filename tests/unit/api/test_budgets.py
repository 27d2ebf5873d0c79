"""Show and raise the budget of a run."""

import json

import pytest

import rekindle
from rekindle.cli import main
from rekindle.documents import events
from rekindle.errors import AgentError, UsageError
from rekindle.policy.operator import questions
from rekindle.system import clock

MANIFEST = """\
version: 1
agents:
  scout: {harness: command, command: ["true"], prompt: task.md, budget: {usd: 2, hours: 5}}
"""


@pytest.fixture
def scout(tmp_path, monkeypatch):
    """An agent whose run has spent $1.50."""
    (tmp_path / "rekindle.yaml").write_text(MANIFEST)
    (tmp_path / "task.md").write_text("Build the form.")
    monkeypatch.chdir(tmp_path)
    with rekindle.connect(tmp_path) as home:
        agent = home.agent("scout")
        record(agent, events.RunStarted(ts=clock.read_clock()))
        spent = events.SpendRecorded(ts=clock.read_clock(), launch="a", tokens=900, usd=1.5)
        record(agent, spent)
        yield agent


def record(agent, *happened):
    with agent.home.store.writer(agent.name) as writer:
        for event in happened:
            writer.append(event)


def ask_about_budget(agent):
    known = agent.home.store.read(agent.name).projection
    ended = events.RunEnded(ts=clock.read_clock(), why="budget", words="its budget is spent")
    terms = questions.QuestionTerms(clock.read_clock(), float("inf"), agent.budget().caps)
    record(agent, *questions.add_questions(known, [ended], terms))


def test_a_raised_cap_counts_for_the_row_and_names_its_author(scout):
    budget = scout.raise_budget(usd=20)
    assert budget.caps == rekindle.Budget(usd=20, hours=5)
    assert scout.row().spend.usd_cap == 20
    assert scout.budget().caps == budget.caps
    assert (scout.budget().spent.usd, scout.budget().spent.tokens) == (1.5, 900)
    [raised] = [event for event in scout.events() if isinstance(event, events.BudgetRaised)]
    assert raised.by
    assert (raised.usd, raised.tokens, raised.origin) == (20, None, "program")
    record(scout, events.RunStarted(ts=clock.read_clock()))
    assert scout.budget().caps.usd == 2, "a new run has the caps in rekindle.yaml"


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({}, "there is no cap to raise"),
        ({"tokens": 5}, "does not have a cap in tokens"),
        ({"usd": 2}, "above 2 usd"),
        ({"usd": float("inf")}, "above 2 usd, not inf"),
        ({"usd": float("nan")}, "above 2 usd, not nan"),
    ],
)
def test_a_cap_that_is_not_a_raise_is_refused(scout, wanted, words):
    with pytest.raises(UsageError, match=words) as refused:
        scout.raise_budget(**wanted)
    assert refused.value.hint


def test_a_run_that_is_over_has_no_budget_to_raise(scout):
    record(scout, events.RunEnded(ts=clock.read_clock(), why="done"))
    with pytest.raises(AgentError, match="has no run"):
        scout.raise_budget(usd=20)


def test_an_open_question_about_the_budget_is_answered_instead(scout):
    ask_about_budget(scout)
    with pytest.raises(AgentError) as refused:
        scout.raise_budget(usd=20)
    assert refused.value.hint == "`rekindle answer scout-1 'raise 20'` raises it"


def test_the_command_shows_and_raises_the_caps(scout, capsys):
    assert main.run(["budget"]) == 0
    assert capsys.readouterr().out == ("scout: ~$1.50 of $2.00 spent, 0.0 of 5 hours used\n")
    assert main.run(["budget", "scout", "--usd", "20"]) == 0
    assert "✓ scout: ~$1.50 of $20.00 spent" in capsys.readouterr().out
    assert main.run(["budget", "scout", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["caps"] == {"usd": 20.0, "tokens": None, "hours": 5}
    assert shown["spent"]["tokens"] == 900
    [*_, raised] = scout.events()
    assert raised.origin == "command"


def test_an_agent_without_caps_is_told_where_to_set_them(scout, capsys):
    path = scout.home.path / "rekindle.yaml"
    path.write_text(path.read_text().replace(", budget: {usd: 2, hours: 5}", ""))
    assert main.run(["budget"]) == 0
    assert "set `budget:` in rekindle.yaml" in capsys.readouterr().out
