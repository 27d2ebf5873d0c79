"""A question that a CLI answers once."""

from rekindle.documents.launches.one_shot import OneShotAnswer, OneShotQuestion
from rekindle.documents.manifest import Persona


def test_a_question_permits_nothing_unless_it_says_so():
    question = OneShotQuestion(scratch="folder")
    assert (question.program, question.persona) == ((), Persona())
    assert (question.instructions, question.schema, question.usd_left) == ("", "", None)


def test_an_answer_without_a_price_has_none():
    assert (OneShotAnswer("yes").usd, OneShotAnswer("yes").tokens) == (None, None)
