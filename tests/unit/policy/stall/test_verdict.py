"""The verdict on two consecutive relays."""

import pytest

from rekindle.policy.stall.verdict import StallKind, StallVerdict


@pytest.mark.parametrize(
    ("kind", "is_stuck"),
    [
        (StallKind.PROGRESS, False),
        (StallKind.STALLED, True),
        (StallKind.TREADMILL, True),
        (StallKind.WAITING, True),
        (StallKind.UNUSABLE, False),
    ],
)
def test_a_verdict_says_whether_the_loop_is_stuck(kind, is_stuck):
    verdict = StallVerdict(kind, ("one", "two"))
    assert verdict.is_stuck is is_stuck
    assert verdict.why == "one; two"


def test_a_verdict_without_details():
    verdict = StallVerdict(StallKind.STALLED, ())
    assert (verdict.about, verdict.is_equal, verdict.why) == ("", False, "")
