"""The request to a summarizer."""

import pytest

from rekindle.documents.summaries import summary as summaries
from rekindle.documents.transcripts.turns import ToolCall, Turn
from rekindle.errors import OverBudgetError
from rekindle.policy.settings.runtime_settings import SUMMARY_SHOWN_CHARACTERS
from rekindle.policy.summaries import summary_request
from rekindle.policy.text import token_estimate

TURNS = [
    Turn(number=1, who="person", text="Port the parser"),
    Turn(number=2, who="agent", text="Done", calls=(ToolCall("Bash", "make", "ok", "x " * 5000),)),
]


def ask(cap=1_000_000, **more):
    return summary_request.build_request("checkpoint", TURNS, nonce="n1", cap=cap, **more)


def test_a_session_is_between_two_marks_and_behind_bars():
    request = ask()
    lines = request.prompt.splitlines()
    inside = lines[lines.index("<session-n1>") + 1 : lines.index("</session-n1>")]
    assert inside
    assert all(line.startswith("| ") for line in inside)
    assert lines[0] == "The sections of the checkpoint:"
    assert [line.partition(":")[0][2:] for line in lines[1:5]] == list(
        summaries.list_asked_sections("checkpoint")
    )
    assert lines[-1] == "Only the JSON object:"
    assert "left-over" not in request.prompt
    assert (request.kind, request.numbers, request.carried) == ("checkpoint", {1, 2}, ())
    assert (request.spent, request.schema) == (0.0, "")
    assert request.instructions == summary_request.SUMMARY_INSTRUCTIONS


def test_what_was_left_over_is_quoted_too():
    request = ask(carried=["one", "two"])
    assert "<left-over-n1>\n| - one\n| - two\n</left-over-n1>" in request.prompt
    assert request.carried == ("one", "two")


def test_outputs_are_shown_as_far_as_they_fit():
    """The smallest prompt shows nothing of them; if that does not fit, it is refused."""
    sizes = []
    for cap in (1_000_000, 3_000, 1_500):
        request = ask(cap)
        sizes.append(len(request.turns[1].calls[0].shown))
        whole = sum(
            map(
                token_estimate.estimate_unrounded,
                (
                    summary_request.SUMMARY_INSTRUCTIONS,
                    summaries.make_schema("checkpoint"),
                    summary_request.LONGEST_RETRY,
                ),
            )
        )
        assert whole + token_estimate.estimate_unrounded(request.prompt) <= cap * 1.05
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[-1]
    assert sizes[0] <= max(SUMMARY_SHOWN_CHARACTERS) + 100
    with pytest.raises(OverBudgetError):
        ask(500)
    with pytest.raises(OverBudgetError):
        ask(1_500, words="word " * 2_000)


def test_an_answer_that_could_not_be_used_is_asked_for_again():
    request = ask()
    again = summary_request.build_retry(request, summaries.AnswerFault.TWICE, spent=0.5)
    assert again.prompt.startswith(request.prompt)
    assert "it has a key twice. Answer again" in again.prompt
    assert (
        again.spent,
        summary_request.build_retry(request, summaries.AnswerFault.TWICE).spent,
    ) == (0.5, 0.0)


def test_a_turn_weighs_as_much_as_its_lines():
    small, large = (summary_request.weigh_turn(turn) for turn in TURNS)
    assert 0 < small < large
