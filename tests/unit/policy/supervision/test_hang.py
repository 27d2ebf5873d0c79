"""Silence: a hang, or something that takes long."""

import pytest

from rekindle.formats.validation import Duration
from rekindle.policy.settings.runtime_settings import WatchSettings
from rekindle.policy.supervision.hang import (
    ProcessSigns,
    is_excused,
    judge_silence,
)

WATCH = WatchSettings()
LONG = 700.0


def answer(watch=WATCH, **signs):
    return judge_silence(ProcessSigns(**{"silent": LONG} | signs), watch).answer


@pytest.mark.parametrize(
    ("signs", "expected"),
    [
        ({"silent": 599.9}, "fine"),
        ({"silent": 600.0}, "end"),
        ({"works": True}, "end"),
        ({"children": 2}, "end"),
        ({"stopped": True}, "say"),
        ({"stopped": True, "silent": 10.0}, "fine"),
        ({"calling": 7200.0, "silent": 7200.0}, "say"),
        ({"calling": 7200.0, "silent": 5.0}, "fine"),
        ({"calling": 7200.0, "idle": 3599.0}, "say"),
        ({"calling": 7200.0, "idle": 3600.0}, "end"),
        ({"calling": 7200.0, "idle": 3600.0, "children": 1}, "end"),
        ({"calling": 7200.0, "idle": 3600.0, "stopped": True}, "say"),
        ({"children": 1, "children_work": True}, "say"),
        ({"reports": False, "works": True}, "say"),
        ({"reports": False, "children": 1}, "end"),
        ({"reports": False, "children": 1, "children_work": True}, "say"),
        ({"reports": False}, "end"),
        ({"finished": True, "silent": 59.0}, "fine"),
        ({"finished": True, "silent": 60.0}, "reap"),
        ({"finished": True, "silent": 60.0, "children": 1}, "fine"),
    ],
)
def test_the_table(signs, expected):
    """Work in silence is a hang too, unless the program does not report its tool calls."""
    assert answer(**signs) == expected


def test_a_tool_call_is_ended_only_where_that_was_asked_for():
    """It ends at its time, whether silent or not; never while the process is stopped."""
    watch = WatchSettings(tool_timeout=Duration(3600))
    assert answer(watch, calling=3599.0) == "say"
    assert answer(watch, calling=3600.0) == "end"
    assert answer(watch, calling=3600.0, silent=1.0) == "end"
    assert answer(watch, calling=3600.0, stopped=True) == "say"
    assert answer(calling=1e9) == "say"


@pytest.mark.parametrize(
    ("signs", "expected"),
    [
        ({}, False),
        ({"works": True}, False),
        ({"children": 1}, False),
        ({"stopped": True}, True),
        ({"calling": 1.0}, True),
        ({"children_work": True}, True),
        ({"reports": False, "works": True}, True),
        ({"reports": False, "children": 1}, False),
    ],
)
def test_what_excuses_silence(signs, expected):
    assert is_excused(ProcessSigns(silent=LONG, **signs)) is expected
