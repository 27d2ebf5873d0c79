"""The state of an imported agent permits and starts nothing."""

from datetime import UTC, datetime

from rekindle.documents import events
from rekindle.policy.keeping.imported_state import drop_decisions
from rekindle.policy.operator.asked_calls import list_approvals
from rekindle.policy.projection.fold import fold_events
from rekindle.policy.projection.projection import Projection

NOW = datetime(2026, 11, 18, tzinfo=UTC)


def ask(number, about, **request):
    return events.QuestionAsked(
        ts=NOW,
        seq=number,
        question=f"trades-{number}",
        number=number,
        about=about,
        request=request,
        choices=("allow", "deny"),
        default="deny",
    )


def answer(number, choice="", text=""):
    return events.QuestionAnswered(
        ts=NOW,
        seq=number + 10,
        question=f"trades-{number}",
        effect="note",
        choice=choice,
        text=text,
    )


HAPPENED = [
    events.RunStarted(ts=NOW, seq=1),
    ask(2, "permission", call="d"),
    ask(3, "asked"),
    ask(4, "asked"),
    answer(2, "allow"),
    answer(3, text="Use the second one."),
    events.BudgetRaised(ts=NOW, seq=20, usd=50.0),
    events.DesiredSet(ts=NOW, seq=21, desired="running", cycles=0, unbounded=True),
    events.SpendRecorded(ts=NOW, seq=22, launch="", usd=3.0, tokens=5),
    events.LoopAdded(ts=NOW, seq=23, id="a", text="b", at="operator/1:9"),
]


def test_decisions_are_dropped_and_work_is_kept():
    before = fold_events(Projection(agent="trades"), HAPPENED)
    assert list_approvals(before, "d") == ["trades-2"]
    assert before.cursors
    after = drop_decisions(before, NOW)
    assert list_approvals(after, "d") == []
    assert list(after.questions) == ["trades-3"], "an open question has a default answer"
    assert [one.text for one in after.new_answers] == ["Use the second one."]
    assert (after.run.desired, after.run.raised_caps()) == ("stopped", {})
    assert (after.run.cycles.cycles, after.run.bounds.lifted) == (None, False)
    assert after.run.run_spending().usd == 3.0
    assert after.loops == before.loops
    assert after.cursors == {}
