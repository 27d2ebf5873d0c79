"""Open questions of many agents: each names its agent."""

from datetime import UTC, datetime

import pytest

from rekindle.documents.events import QuestionAsked
from rekindle.policy.fleet.fleet_questions import make_questions

pytestmark = pytest.mark.pure
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_question_names_its_agent():
    asked = QuestionAsked(
        ts=NOW,
        question="scout-2-1",
        number=1,
        about="permission",
        text="May I?",
        choices=("yes", "no"),
        default="no",
    )
    (made,) = make_questions("scout-2", [asked])
    assert (made.agent, made.question, made.text) == ("scout-2", "scout-2-1", "May I?")
    assert (made.choices, made.default, made.asked) == (("yes", "no"), "no", NOW)
