"""The stuck stretches of a history of verdicts."""

import pytest

from rekindle.policy.stall.stretches import StuckStretch, find_stretches, judge_pairs
from rekindle.policy.stall.verdict import StallKind, StallVerdict

KINDS = {
    ".": StallKind.PROGRESS,
    "s": StallKind.STALLED,
    "t": StallKind.TREADMILL,
    "w": StallKind.WAITING,
    "u": StallKind.UNUSABLE,
}


def history(marks):
    return [StallVerdict(KINDS[mark], (), about=mark) for mark in marks]


@pytest.mark.parametrize(
    ("marks", "expected"),
    [
        ("", []),
        ("..", []),
        ("ss", []),
        ("sss", [(0, 3)]),
        (".sss.", [(1, 4)]),
        ("sss.sss", [(0, 3), (4, 7)]),
        ("ss.sss", [(3, 6)]),
        ("stw", [(0, 3)]),
        ("ssuss", []),
        (".ssss", [(1, 5)]),
    ],
)
def test_a_stuck_stretch_is_found(marks, expected):
    """It runs from the relay before the first stuck pair to the one after the last."""
    found = find_stretches(history(marks), alarm=3)
    assert [(stretch.first, stretch.last) for stretch in found] == expected


def test_what_a_stretch_was_about():
    """The most frequent kind comes first, and so does the subject of most pairs."""
    (found,) = find_stretches(history(".sttts"), alarm=5)
    assert found == StuckStretch(1, 6, {StallKind.TREADMILL: 3, StallKind.STALLED: 2}, "t")
    assert list(found.verdicts) == [StallKind.TREADMILL, StallKind.STALLED]
    assert found.cycles == 5


def test_each_pair_of_relays_has_a_verdict():
    texts = [f"## Next Action\n{action}\n" for action in ("Port it.", "Port it.", "Write docs.")]
    assert [one.verdict for one in judge_pairs(texts)] == [StallKind.STALLED, StallKind.PROGRESS]
    assert judge_pairs(texts[:1]) == []
