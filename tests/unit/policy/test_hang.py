"""Silence: a hang, or something that takes long."""

import pytest

from rekindle.documents.shape import Duration
from rekindle.policy.hang import Signs, is_excused, verdict
from rekindle.policy.settings import Watch

WATCH = Watch()
LONG = 700.0


def answer(watch=WATCH, **signs):
    return verdict(Signs(**{"silent": LONG} | signs), watch).answer


@pytest.mark.parametrize(
    ("signs", "expected"),
    [
        ({"silent": 599.9}, "fine"),
        ({"silent": 600.0}, "end"),
        ({"busy": True}, "end"),
        ({"tools": 2}, "end"),
        ({"stopped": True}, "say"),
        ({"stopped": True, "silent": 10.0}, "fine"),
        ({"calling": 7200.0, "silent": 7200.0}, "say"),
        ({"calling": 7200.0, "silent": 5.0}, "fine"),
        ({"tools": 1, "tools_busy": True}, "say"),
        ({"tells": False, "busy": True}, "say"),
        ({"tells": False, "tools": 1}, "say"),
        ({"tells": False}, "end"),
        ({"finished": True, "silent": 59.0}, "fine"),
        ({"finished": True, "silent": 60.0}, "reap"),
        ({"finished": True, "silent": 60.0, "tools": 1}, "fine"),
    ],
)
def test_the_table(signs, expected):
    """Busy without a word is a hang too, unless it is a program that tells nothing."""
    assert answer(**signs) == expected


def test_a_tool_call_is_ended_only_where_that_was_asked_for():
    """At its time, whether silent or not; never while somebody has stopped the process."""
    watch = Watch(tool_timeout=Duration(3600))
    assert answer(watch, calling=3599.0) == "say"
    assert answer(watch, calling=3600.0) == "end"
    assert answer(watch, calling=3600.0, silent=1.0) == "end"
    assert answer(watch, calling=3600.0, stopped=True) == "say"
    assert answer(calling=1e9) == "say"


@pytest.mark.parametrize(
    ("signs", "expected"),
    [
        ({}, False),
        ({"busy": True}, False),
        ({"tools": 1}, False),
        ({"stopped": True}, True),
        ({"calling": 1.0}, True),
        ({"tools_busy": True}, True),
        ({"tells": False, "busy": True}, True),
        ({"tells": False, "tools": 1}, True),
    ],
)
def test_what_excuses_silence(signs, expected):
    assert is_excused(Signs(silent=LONG, **signs)) is expected
