"""Reviews: what a reviewer's answer means, and what follows from it."""

from datetime import UTC, datetime

import pytest

from rekindle.documents.events import CycleEnded
from rekindle.policy.settings.runtime_settings import StallSettings
from rekindle.policy.stall import stall_response
from rekindle.policy.stall.stall_response import (
    EnterSafeMode,
    StartNextCycle,
    StopRun,
)
from rekindle.policy.supervision import end_review

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "DONE",
        "**DONE**",
        "I ran the tests, all pass.\n\nVerdict: DONE",
        "The task is complete. Nothing is left to do.",
        "任务已完成",
    ],
)
def test_an_answer_that_agrees(text):
    assert end_review.parse_review_verdict(text) == ("passed", "")


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("NOT DONE\n- no test of the lexer", "- no test of the lexer"),
        ("Verdict: NOT DONE\nparser.py is empty", "parser.py is empty"),
        ("DONE, but the README is missing", "DONE, but the README is missing"),
        ("DONE\n\nNOT DONE: the lexer has no tests", "the lexer has no tests"),
        ("I could not find parser.py.", "I could not find parser.py."),
    ],
)
def test_an_answer_that_does_not(text, missing):
    verdict, words = end_review.parse_review_verdict(text)
    assert verdict == "failed"
    assert missing in words


def cycle(number=1, **more):
    return CycleEnded(ts=NOW, seq=number, cycle=number, **more)


def decide(last, known=(), cap=10):
    before = {one.cycle: one for one in known}
    return stall_response.decide_after_cycle(
        before, last, since=0, done=last.cycle, cap=cap, settings=StallSettings()
    )


@pytest.mark.parametrize(
    ("until", "claimed", "verdict", "then"),
    [
        ("", True, "passed", "done"),
        ("passed", False, "passed", "done"),
        ("passed", True, "passed", "done"),
        ("", True, "unavailable", "claimed"),
        ("passed", True, "unavailable", "claimed"),
        ("", True, "failed", None),
        ("passed", True, "failed", None),
        ("passed", False, "failed", None),
    ],
)
def test_an_end_counts_only_if_the_review_agrees(until, claimed, verdict, then):
    last = cycle(until=until, claimed=claimed, review=verdict, review_words="no lexer")
    found = decide(last)
    if then is None:
        assert found == StartNextCycle()
    else:
        assert isinstance(found, StopRun)
        assert found.why == then
        assert "review" in found.words


def test_the_next_cycle_is_told_what_is_missing():
    last = cycle(claimed=True, review="failed", review_words="- no test of the lexer")
    told = stall_response.render_failed_review({1: last})
    assert told.startswith("You reported that the work is done. A review does not agree.")
    assert "- no test of the lexer" in told
    assert stall_response.render_failed_review({1: cycle(claimed=True, review="passed")}) == ""
    assert stall_response.render_failed_review({1: last, 2: cycle(2)}) == ""


def test_three_refused_reports_without_work_need_a_person():
    review = {"review": "failed", "review_words": "- no lexer"}
    refused = [cycle(number, claimed=True, **review) for number in (1, 2, 3)]
    found = decide(refused[2], refused[:2])
    assert isinstance(found, EnterSafeMode)
    assert found.why == "disputed"
    assert "the review does not agree: - no lexer" in found.words
