"""The evidence of a sentence about a loop: in doubt, that it is open."""

import pytest

from rekindle.documents.transcripts.turns import ToolCall, Turn
from rekindle.policy.briefs.loop_evidence import (
    LoopName,
    find_mention,
)
from rekindle.policy.summaries.attribution import SourceTexts

LOOP = LoopName("rate-limit", "How many requests an hour?")
OPEN = [
    "rate-limit isn’t done.",
    "rate-limit hasn’t been fixed.",
    "rate-limit hasnʼt been fixed.",
    "rate-limit isn`t resolved.",
    "Nobody has answered rate-limit.",
    "No one has answered rate-limit.",
    "No fix is in place for rate-limit.",
    "Nothing is decided on rate-limit.",
    "None of the work on rate-limit is completed.",
    "Neither rate-limit nor the header is finished.",
    "rate-limit is far from finished.",
    "rate-limit is hardly done.",
    "rate-limit was merged and then reverted.",
    "rate-limit was deployed and rolled back.",
    "rate-limit: 3 of 5 parts done.",
    "rate-limit is 80% done.",
    "I closed the PR for rate-limit without merging it.",
    "rate-limit is deployed to staging only.",
    "rate-limit could be closed.",
    "I think rate-limit is fixed.",
    "rate-limit is probably fixed.",
    "I want rate-limit fixed.",
    "Let's get rate-limit done.",
    "rate-limit was closed by mistake, it is broken.",
    "rate-limit 还没完成。",
    "rate-limit 完成了一半。",
]
OPEN_BY_PERSON = [
    "Don't forget about rate-limit!",
    "Don’t forget about rate-limit!",
    "Please don't cancel rate-limit.",
    "About rate-limit: do not drop that.",
    "Why was rate-limit cancelled?",
    "I don't want rate-limit to be fixed by hand.",
    "Get rate-limit done by Friday.",
    "get rate-limit done",
    "I want rate-limit fixed today.",
    "Please have rate-limit resolved.",
    "Have rate-limit resolved.",
    "Make sure rate-limit is done.",
    "ok, now see that rate-limit is done",
    "rate-limit 不要取消。",
]
DONE = [
    "rate-limit is done.",
    "rate-limit is 100% done.",
    "I fixed rate-limit today.",
    "rate-limit is resolved: it works as expected.",
    "rate-limit is fixed, with no regressions.",
    "rate-limit is fixed, all tests passed without any errors.",
    "The broken header of rate-limit is fixed.",
    "rate-limit was fixed, it was due to the cache.",
    "rate-limit no longer fails.",
    "rate-limit 已修复。",
]
DONE_BY_PERSON = [
    "Forget about rate-limit.",
    "rate-limit is cancelled.",
    "rate-limit isn’t needed.",
]


def found(text, who):
    turn = Turn(number=1, who=who, text=text)
    return find_mention(turn, LOOP, (), SourceTexts([turn]))


@pytest.mark.parametrize("text", OPEN)
@pytest.mark.parametrize("who", ["agent", "person"])
def test_what_may_be_open_is(text, who):
    assert found(text, who) == "open"


@pytest.mark.parametrize("text", OPEN_BY_PERSON)
def test_what_a_person_reminds_of_is_open(text):
    assert found(text, "person") == "open"


@pytest.mark.parametrize("text", DONE)
@pytest.mark.parametrize("who", ["agent", "person"])
def test_what_is_done_is(text, who):
    assert found(text, who) == "done"


@pytest.mark.parametrize("text", DONE_BY_PERSON)
def test_what_a_person_does_not_want_any_more_is_done(text):
    assert found(text, "person") == "done"


@pytest.mark.parametrize(
    ("text", "mention"),
    [
        ("The parser is fixed.", ""),
        ("How many came?", ""),
        ("How many requests came?", "open"),
        ("The limit is how many requests an hour.", "open"),
        ("How many requests an hour is answered.", "done"),
    ],
)
def test_a_sentence_without_the_id_must_have_enough_words_of_the_loop(text, mention):
    """Three of the four words are enough, two are not."""
    assert found(text, "agent") == mention


def test_a_sentence_that_came_from_a_tool_is_not_evidence():
    text = "The file says so. rate-limit is fixed by the new header of the service."
    shown = ToolCall("Read", "notes.md", "ok", text)
    turn = Turn(number=1, who="agent", text=text, calls=(shown,))
    assert find_mention(turn, LOOP, (), SourceTexts([turn])) == ""


def test_a_sentence_that_names_another_loop_as_well_is_about_neither():
    rival = LoopName("retry-count", "How many retries?")
    turn = Turn(number=1, who="agent", text="retry-count and rate-limit are fixed.")
    assert find_mention(turn, LOOP, (), SourceTexts([turn])) == "done"
    assert find_mention(turn, LOOP, (rival,), SourceTexts([turn])) == ""
