"""Hook reports that may wait on their host, and those that another host needs."""

from datetime import UTC, datetime

import pytest

from rekindle.documents import events
from rekindle.documents.manifest_keys import Budget
from rekindle.policy.projection.fold import fold_events
from rekindle.policy.projection.projection import Projection
from rekindle.policy.supervision.budget import RunSpending
from rekindle.policy.supervision.held_reports import is_spending_needed, shows_only_activity

NOW = datetime(2026, 4, 9, 12, 0, tzinfo=UTC)
COMMITTED = fold_events(
    Projection(agent="a"),
    [
        events.AgentCreated(ts=NOW, agent="a", seq=1),
        events.LaunchStarted(ts=NOW, seq=2, launch="l", cycle=1, session="s", harness="h"),
        events.SessionStarted(ts=NOW, seq=3, session="s", harness="h"),
    ],
)


def test_reports_of_tool_calls_only_show_activity():
    new = [
        events.Heartbeat(ts=NOW, session="s", call=str(number), at=f"1.seg:{number}")
        for number in range(3)
    ]
    assert shows_only_activity(COMMITTED, COMMITTED)
    assert shows_only_activity(COMMITTED, fold_events(COMMITTED, new))


@pytest.mark.parametrize(
    "new",
    [
        events.SessionStarted(ts=NOW, session="t", harness="h"),
        events.SessionEnded(ts=NOW, session="s", reason="exit"),
        events.PromptSubmitted(ts=NOW, session="s", text="Go on."),
        events.LoopAdded(ts=NOW, id="x", text="Fix it."),
        events.DesiredSet(ts=NOW, desired="stopped"),
        events.HandoffRequested(ts=NOW),
        events.BudgetRaised(ts=NOW, usd=5),
        events.MessageSent(ts=NOW, message="m", text="Use the blue one."),
        events.QuestionAnswered(ts=NOW, question="q", effect="note"),
    ],
    ids=lambda new: new.kind,
)
def test_everything_else_is_needed_elsewhere(new):
    report = events.Heartbeat(ts=NOW, session="s", call="c")
    assert not shows_only_activity(COMMITTED, fold_events(COMMITTED, [report, new]))


def test_spending_is_needed_only_for_a_budget():
    """The next host must not spend much more than the limit."""
    before, little, much = (RunSpending(usd=usd) for usd in (1.0, 1.2, 1.6))
    assert not is_spending_needed(before, much, None)
    assert not is_spending_needed(before, little, Budget(usd=10))
    assert is_spending_needed(before, much, Budget(usd=10))
