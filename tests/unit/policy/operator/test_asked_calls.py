"""An approval permits one call, once, until the cycle after it has ended."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from rekindle.documents import events
from rekindle.documents.launches.launch_types import RefusedCall
from rekindle.policy.operator import answers, asked_calls, questions
from rekindle.policy.operator.asked_calls import AskedCall
from rekindle.policy.operator.questions import QuestionTerms
from rekindle.policy.projection.fold import fold_events
from rekindle.policy.projection.projection import Projection, prune_projection

pytestmark = pytest.mark.pure

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
TERMS = QuestionTerms(NOON, 3600.0)
CALL = AskedCall("d1", "Bash", {"command": "git push"}, "git push", "/w/app")


class Log:
    def __init__(self):
        self.known = Projection("trades")
        self.add(events.RunStarted(ts=NOON, cycle=1), events.CycleStarted(ts=NOON, cycle=1))

    def add(self, *new):
        for event in new:
            numbered = msgspec.structs.replace(event, seq=self.known.seq + 1)
            self.known = fold_events(self.known, [numbered])

    def ask(self, call=CALL):
        asked = asked_calls.ask_about_waiting_call(
            self.known, call, "l1", NOON + timedelta(minutes=5), TERMS
        )
        self.add(asked)
        return asked

    def answer(self, question, words="allow"):
        self.add(answers.make_answer(self.known, question, words, NOON))

    def end_cycle(self, cycle):
        self.add(
            events.CycleEnded(ts=NOON, cycle=cycle, verdict="progress", how="agent"),
            events.CycleStarted(ts=NOON, cycle=cycle + 1),
        )


def test_a_question_names_the_call_and_its_default_is_deny():
    asked = Log().ask()
    assert asked.request == {
        "tool": "Bash",
        "arguments": {"command": "git push"},
        "folder": "/w/app",
        "call": "d1",
        "waits_until": "2026-03-01T12:05:00+00:00",
    }
    assert (asked.about, asked.choices, asked.default, asked.launch) == (
        "permission",
        ("allow", "deny"),
        "deny",
        "l1",
    )
    assert asked.text == "permission for a call that waits: Bash git push"
    assert asked_calls.is_about_waiting_call(asked)


def test_an_approval_counts_once_and_only_for_its_call():
    log = Log()
    asked = log.ask()
    assert asked_calls.list_approvals(log.known, "d1") == []
    assert asked_calls.find_open_question(log.known, "d1", NOON) is not None
    assert asked_calls.find_open_question(log.known, "d2", NOON) is None
    log.answer(asked)
    assert asked_calls.find_open_question(log.known, "d1", NOON) is None
    assert asked_calls.list_approvals(log.known, "d1") == ["trades-1"]
    assert asked_calls.list_approvals(log.known, "d2") == []
    assert [answer.text for answer in log.known.new_answers] != []
    log.add(events.CallPermitted(ts=NOON, question="trades-1", launch="l1"))
    assert asked_calls.list_approvals(log.known, "d1") == []
    assert asked_calls.list_approvals(prune_projection(log.known), "d1") == []
    assert log.known.new_answers == []


def test_a_denial_permits_nothing():
    log = Log()
    log.answer(log.ask(), "deny")
    assert asked_calls.list_approvals(log.known, "d1") == []


def test_an_approval_that_is_not_in_the_log_yet_permits_nothing():
    log = Log()
    answer = answers.make_answer(log.known, log.ask(), "allow", NOON)
    assert asked_calls.list_approvals(fold_events(log.known, [answer]), "d1") == []


def test_an_approval_ends_with_the_next_cycle():
    log = Log()
    log.answer(log.ask())
    log.end_cycle(1)
    assert asked_calls.list_approvals(log.known, "d1") == ["trades-1"]
    log.end_cycle(2)
    assert asked_calls.list_approvals(log.known, "d1") == []


def test_a_question_about_a_refused_call_permits_no_waiting_call():
    log = Log()
    refused = RefusedCall("Bash", "git push", {"command": "git push"}, "c1")
    [asked] = questions.ask_about_calls(log.known, [refused], "l1", TERMS)
    assert not asked_calls.is_about_waiting_call(asked)
    log.add(asked)
    log.answer(asked)
    assert asked_calls.list_approvals(log.known, "d1") == []
